# SPDX-License-Identifier: Apache-2.0
"""Text from outside the program, such as a host's name, a library's words, a file or an argument: whatever it holds, no
terminal is steered by it, and no file that the program writes is broken by it."""
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import support

PERF = support.PROGRAM.parent / "all_reduce_perf"
# A title, a colour, C1 as UTF-8 and as a byte, DEL, an override of direction, a separator of lines, no UTF-8.
BYTES = b"\x1b]0;title\x07\x1b[31m\xc2\x9b32m\x9b33m\x7f\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xff"
SHOWN = r"\x1b]0;title\x07\x1b[31m\u009b32m\x9b33m\u007f\u202e\u2066\u2028\xff"
STEERS = {*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)} - {0x0A, 0x09}
ONE_CELL = ["all_reduce", "--sizes", "8", "--backends", "tutti", "--budget", "50ms", "--quiet"]


class Text(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tutti-text-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ran(self, *words, codes=(0,), environment=None):
        """What a program printed on both streams, in this folder, checked for what steers a terminal."""
        found = subprocess.run([os.fsencode(word) if isinstance(word, (str, pathlib.Path)) else word for word in words],
                               capture_output=True, cwd=self.folder, env={**os.environ, **(environment or {})}, timeout=60)
        self.assertIn(found.returncode, codes, found)
        self.is_plain(found.stdout)
        self.is_plain(found.stderr)
        return found.stdout.decode() + found.stderr.decode()

    def is_plain(self, text):
        """UTF-8, and nothing in it steers a terminal."""
        self.assertEqual(sorted({ord(letter) for letter in text.decode()} & STEERS), [], text)

    def script(self, text):
        path = self.folder / "agent"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path


class FromArguments(Text):
    def test_arguments_and_variables(self):
        for words in [["run", BYTES], ["run", "all_reduce", "--sizes", BYTES], ["run", "all_reduce", "--case", BYTES],
                      ["run", "all_reduce", "--csv", b"/" + BYTES + b"/x.csv"], ["run", "--suite", BYTES], [BYTES],
                      ["run", b"--" + BYTES], ["compare", BYTES, BYTES], ["report", BYTES, "--html", "x.html"],
                      ["gate", "--against", BYTES], ["check", "all_reduce", "--counts", BYTES], ["explain", BYTES],
                      ["list", BYTES], ["doctor", "--hosts", b"a" + BYTES], ["prove", BYTES]]:
            with self.subTest(words):
                self.ran(support.PROGRAM, *words, codes=(2, 3))
        for name in ["TUTTI_BACKENDS", "TUTTI_TRANSPORTS", "TUTTI_PYTHON", "WORLD_SIZE", "MASTER_ADDR", "TUTTI_INIT"]:
            with self.subTest(name):
                self.ran(support.PROGRAM, "run", *ONE_CELL, "--html", "x.html", codes=(0, 2, 3), environment={name: BYTES})
        self.ran(PERF, "-b", BYTES, codes=(2,))
        self.ran(PERF, "-b", "8", "-e", "8", codes=(2,), environment={"NCCL_TESTS_SPLIT": BYTES})


class FromHosts(Text):
    def test_an_agents_words(self):
        agent = self.script("printf '%s' '" + BYTES.decode("latin-1").replace("'", "") + "' >&2; exit 3\n")
        agent.write_bytes(b"#!/bin/sh\nprintf '%s\\n' '" + BYTES + b"' >&2\nexit 3\n")
        for words in [["run", "all_reduce", "--sizes", "8"], ["doctor"]]:
            with self.subTest(words):
                told = self.ran(support.PROGRAM, *words, "--hosts", "a,b", "--agent", agent, "--interface", "lo", codes=(3, 5))
                self.assertIn(SHOWN, told)

    def test_an_agent_that_prints_without_end_takes_no_memory(self):
        agent = self.script("head -c 64M /dev/zero | tr '\\0' y >&2; touch done; exec sleep 60\n")
        words = [support.PROGRAM, "run", *ONE_CELL, "--hosts", "a,b", "--agent", agent, "--interface", "lo"]
        with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
            try:
                def held():
                    files = pathlib.Path(f"/proc/{job.pid}/fd").iterdir()
                    return sum(file.stat().st_blocks * 512 for file in files if "/memfd:" in os.readlink(file))
                end = time.monotonic() + 20
                while not ((self.folder / "done").exists() and held() < 40 << 20) and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertLess(held(), 40 << 20)
                self.assertIsNone(job.poll())
            finally:
                job.terminate()

    def test_a_hosts_name(self):
        name = b"a\xff\x1b[31m\xc2\x9b"
        files = {name: self.folder / name for name in ["rows.csv", "record.json", "metrics.prom", "samples.csv"]}
        words = ["unshare", "--uts", "sh", "-c", 'printf "%s" "$0" > /proc/sys/kernel/hostname && exec "$@"', name, support.PROGRAM]
        if subprocess.run(words[:5] + [b"b", "true"], capture_output=True).returncode != 0:
            self.skipTest("no host name can be set here")
        self.ran(*words, "run", *ONE_CELL, "--ranks", "2", "--csv", files["rows.csv"], "--json", files["record.json"],
                 "--prometheus", files["metrics.prom"], "--samples", files["samples.csv"])
        for file in files.values():
            with self.subTest(file.name):
                self.is_plain(file.read_bytes())
        shown = r"a\xff\x1b[31m\u009b"
        self.assertEqual(support.read_csv(files["rows.csv"])[1][0]["host"], shown)
        self.assertEqual(json.loads(files["record.json"].read_text())["rows"][0]["host"], shown)
        self.assertIn('node="' + shown.replace("\\", "\\\\") + '"', files["metrics.prom"].read_text())
        for command in ["doctor", "list"]:
            self.ran(*words, command)
            self.is_plain(json.dumps(json.loads(self.ran(*words, command, "--json")), ensure_ascii=True).encode())


class FromFiles(Text):
    def setUp(self):
        super().setUp()
        self.ran(support.PROGRAM, "run", *ONE_CELL, "--csv", "plain.csv", "--json", "plain.json")
        with (self.folder / "plain.csv").open() as file:
            header, *rows = csv.reader(file)
        texts = [i for i, name in enumerate(header) if name in ("backend", "algorithm", "reason", "starter", "host", "marks",
                                                                "disturbed", "case", "transport", "machine", "placement")]
        for row in rows:
            for i in texts:
                row[i] += "HERE"
        lines = "\n".join(",".join(f'"{field}"' for field in row) for row in [header, *rows]) + "\n"
        (self.folder / "hostile.csv").write_bytes(lines.encode().replace(b"HERE", BYTES))
        record = json.loads((self.folder / "plain.json").read_text())
        hostile = BYTES.decode(errors="replace")
        record["rows"] = [{name: value + hostile if isinstance(value, str) and name not in ("verdict", "timestamp") else value
                           for name, value in row.items()} for row in record["rows"]]
        for name in ["command", "started"]:
            record[name] += hostile
        record["machine"]["hostname"] = record["machine"]["cpu_model"] = record["versions"]["tutti"] = hostile
        record["left_out"] = [{"cells": 1, "reason": hostile}]
        (self.folder / "hostile.json").write_text(json.dumps(record))

    def test_what_is_compared_and_drawn(self):
        for name in ["hostile.csv", "hostile.json"]:
            with self.subTest(name):
                self.ran(support.PROGRAM, "compare", name, name, "--json", "found.json")
                self.is_plain((self.folder / "found.json").read_bytes())
                self.ran(support.PROGRAM, "compare", name, "plain.csv", codes=(0, 2, 3))
                self.ran(support.PROGRAM, "report", name, "--html", "page.html", "--svg", "pictures", "--prometheus", "m.prom")
                for form in ["github", "bencher"]:
                    self.ran(support.PROGRAM, "report", name, "--format", form)
                for path in ["page.html", "m.prom", *(self.folder / "pictures").iterdir()]:
                    self.is_plain((self.folder / path).read_bytes())
                self.ran(support.PROGRAM, "gate", "--baseline", name, "--ranks", "2", codes=(2, 3))

    def test_a_baselines_words_in_a_summary(self):
        words = r"x\|y `z` <img src=a> [b](c)"
        with (self.folder / "plain.csv").open() as file:
            header, row = list(csv.reader(file))[:2]
        row[header.index("machine")] = ""
        row[header.index("starter")] = words
        with (self.folder / "strange.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, row])
        suite = f'[[sweep]]\ncollectives = "all_reduce"\nsizes = "8"\nranks = {row[header.index("ranks")]}\n'
        (self.folder / "suite.toml").write_text(suite)
        self.ran(support.PROGRAM, "gate", "--baseline", "strange.csv", "--suite", "suite.toml", "--blocks", "8", "--cell-time",
                 "1ms", "--summary", "summary.md", codes=(3,))
        self.assertIn(r"x\\\|y \`z\` \<img src=a\> \[b\](c)", (self.folder / "summary.md").read_text())

    def test_suites_and_counts(self):
        (self.folder / "suite.toml").write_bytes(b'[[sweep]]\ncollectives = "' + BYTES[:12] + b'"\n')
        self.ran(support.PROGRAM, "run", "--suite", "suite.toml", codes=(2,))
        (self.folder / "counts").write_bytes(b"1 " + BYTES)
        self.ran(support.PROGRAM, "run", "all_gather_v", "--counts", "counts", codes=(2,))
        (self.folder / "hosts").write_bytes(b"n1 " + BYTES + b"\n")
        self.ran(support.PROGRAM, "run", "barrier", "--hostfile", "hosts", codes=(2,))


if __name__ == "__main__":
    unittest.main()
