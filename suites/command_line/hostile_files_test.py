# SPDX-License-Identifier: Apache-2.0
"""Files from outside that are no such files: without end, nested, of other types, of other programs. They cost an error
in one line and an exit code; and what draws a page runs apart from the user's settings and folder."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import support

USAGE, ENVIRONMENT = 2, 3
MARK = b"\xef\xbb\xbf"  # of byte order, as spreadsheets and editors write it
ONE_CELL = ["all_reduce", "--sizes", "8", "--ranks", "2", "--backends", "tutti", "--budget", "50ms", "--quiet"]


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-hostile-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        ran = support.run("run", *ONE_CELL, "--csv", cls.folder / "a.csv", "--json", cls.folder / "a.json")
        assert ran.code == 0, ran
        cls.record = json.loads((cls.folder / "a.json").read_text())

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def refused(self, *words, names, code=USAGE, limit=20):
        result = support.run(*words, limit=limit)
        self.assertEqual((result.code, result.out), (code, ""), result)
        self.assertLessEqual(len(result.err.splitlines()), 2, result)
        for name in names:
            self.assertIn(name, result.err)


class WithoutEnd(Files):
    def test_deep_keys(self):
        deep = "a" + ".a" * 100_000
        for text in [f"\n{deep} = 1\n", f"\n[{deep}]\n", f"\nx = {{{deep} = 1}}\n"]:
            suite = self.file("deep.toml", text)
            for words in [["run", "all_reduce"], ["gate", "--against", support.PROGRAM.parent]]:
                with self.subTest(words=words, text=text[:9]):
                    self.refused(*words, "--suite", suite, names=["deep.toml", "line 2: a key of more than 16 parts"])

    @support.at_night
    def test_a_pipe_that_nobody_writes(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.refused("compare", self.folder / "a.csv", pipe, names=["pipe", "nothing came from it for 10 s"])

    def test_devices_and_large_files(self):
        large = self.folder / "large"
        with large.open("wb") as file:
            file.truncate(3 << 40)
        readers = [["run", "all_reduce", "--suite"], ["gate", "--against", support.PROGRAM.parent, "--suite"], ["gate", "--baseline"],
                   ["compare", self.folder / "a.csv"], ["report", "--html", "x.html"],
                   ["run", "all_reduce", "--interface", "lo", "--hostfile"], ["run", "all_gather_v", "--counts"]]
        for words in readers:
            with self.subTest(words):
                self.refused(*words, "/dev/zero", names=["/dev/zero", "it is no text: its byte 1 is 0"])
                self.refused(*words, large, names=["large", "it has 3 TiB, at most"])
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
            result = subprocess.run([support.PROGRAM, "run", "all_reduce", "--suite", "/dev/stdin"], stdin=endless.stdout,
                                    capture_output=True, text=True, timeout=support.patience(20))
            endless.kill()
        self.assertEqual(result.returncode, USAGE, result)
        self.assertIn("it has more than 1 MiB", result.stderr)

    def test_a_pipe_that_is_written_is_read(self):
        script = f'"$1" compare <(sleep 0.2; cat "$2") "$2"'
        result = subprocess.run(["bash", "-c", script, "bash", support.PROGRAM, self.folder / "a.csv"], capture_output=True,
                                text=True, timeout=support.patience(20))
        self.assertEqual(result.returncode, 0, result)


class OfOthers(Files):
    def test_a_byte_order_mark_is_passed_over(self):
        for name in ["a.csv", "a.json"]:
            marked = self.file(f"marked.{name}", MARK + (self.folder / name).read_bytes())
            with self.subTest(name):
                result = support.run("compare", marked, self.folder / "a.csv")
                self.assertEqual(result.code, 0, result)
        suite = self.file("marked.toml", MARK + b'[[sweep]]\ncollectives = "all_reduce"\nsizes = "8"\n')
        self.assertEqual(support.run("run", "--suite", suite, "--list").code, 0)
        counts = self.file("counts", MARK + b"1 2\n")
        self.assertEqual(support.run("run", "all_gather_v", "--counts", counts, "--ranks", "2", "--list").code, 0)
        wide = self.file("wide.csv", (self.folder / "a.csv").read_text().encode("utf-16"))
        self.refused("compare", wide, self.folder / "a.csv", names=["wide.csv", "it is UTF-16: save it as UTF-8"])

    def test_types_that_do_not_fit(self):
        gate = {"schema_version": 1, "kind": "gate", "command": "c", "seed": 1, "this": "a", "other": "b", "machine": {},
                "finished": True, "unfinished": "", "counts": {}, "counted": "", "remarks": [],
                "cells": [{"cell": "c", "collective": "all_reduce", "bytes": 8, "verdict": "same", "ratio": 1.0, "low": 0.9,
                           "high": 1.1, "floor": 0.01, "reason": "", "this_us": 1.0, "other_us": 1.0, "this_launches": 8,
                           "other_launches": 8}]}
        others = [[1], {"a": 1}, "text", 7, True]
        tried = 0
        for document in [self.record, gate]:
            for key, value in document.items():
                for other in others:
                    if isinstance(other, type(value)) or (isinstance(value, (int, float)) and isinstance(other, int)
                                                          and isinstance(other, bool) == isinstance(value, bool)):
                        continue
                    path = self.file("odd.json", json.dumps({**document, key: other}))
                    with self.subTest(key=key, other=other):
                        self.refused("report", path, "--format", "github", names=["odd.json", key])
                        tried += 1
                    if document is self.record:
                        self.refused("compare", path, self.folder / "a.csv", names=["odd.json", key])
        for key, value in gate["cells"][0].items():
            path = self.file("odd.json", json.dumps({**gate, "cells": [{**gate["cells"][0], key: [1]}]}))
            self.refused("report", path, "--html", self.folder / "x.html", names=["odd.json", f"'cells[0].{key}' must be"])
        path = self.file("odd.json", json.dumps({**gate, "cells": [1]}))
        self.refused("report", path, "--html", self.folder / "x.html", names=["odd.json", "'cells[0]' must be an object, not 1"])
        self.assertGreater(tried, 60)
        self.assertFalse((self.folder / "x.html").exists())
        self.refused("gate", "--baseline", self.file("rows.json", '{"rows": "x"}'), names=["rows.json", "neither a CSV nor a JSON"])

    def test_members_that_are_null_or_unknown_are_drawn_without(self):
        odd = {**self.record, **{key: None for key in ["machine", "versions", "environment", "left_out", "diagnoses", "command"]},
               "of_a_later_version": [1]}
        page = self.folder / "null.html"
        result = support.run("report", self.file("null.json", json.dumps(odd)), "--html", page)
        self.assertEqual(result.code, 0, result)
        self.assertTrue(page.exists())


class Drawing(Files):
    def test_a_page_is_drawn_apart_from_the_users_settings_and_folder(self):
        """Each of these modules would end the Python that imports it."""
        place = self.folder / "elsewhere"
        place.mkdir()
        for name in ["matplotlib", "jinja2", "json", "argparse", "style", "page", "sitecustomize", "usercustomize"]:
            (place / f"{name}.py").write_text("import os\nos._exit(77)\n")
        (place / "matplotlibrc").write_text("axes.titlesize: 77\nsavefig.dpi: broken\n")
        environment = {**os.environ, "PYTHONHOME": "/nowhere", "PYTHONPATH": str(place), "PYTHONSTARTUP": str(place / "json.py"),
                       "MATPLOTLIBRC": str(place), "PYTHONUSERBASE": str(place), "PYTHONINSPECT": "1"}
        result = subprocess.run([support.PROGRAM, "report", self.folder / "a.json", "--html", "page.html", "--svg", "pictures"],
                                cwd=place, env=environment, capture_output=True, text=True, timeout=support.patience(60))
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        self.assertTrue((place / "page.html").exists())
        self.assertTrue(list((place / "pictures").glob("*.svg")))

    def test_the_last_words_of_a_python_that_fails(self):
        for script, words in [("echo 'Fatal Python error: no file system' >&2; exit 1", "ended with exit code 1: Fatal Python error"),
                              ("exit 9", "ended with exit code 9: it said nothing"), ("echo jinja2; exit 3", "has no jinja2")]:
            python = self.file("python", f"#!/bin/sh\n{script}\n")
            python.chmod(0o755)
            with self.subTest(script), support.Run("report", self.folder / "a.json", "--html", "{folder}/x.html",
                                                   environment={"TUTTI_PYTHON": str(python)}) as run:
                result = run.wait(20)
                self.assertEqual(result.code, ENVIRONMENT, result)
                self.assertIn(words, result.err)
                self.assertIn("TUTTI_PYTHON", result.err)
                self.assertNotIn("this machine has not", result.err)


class Secrets(Files):
    def test_the_words_of_an_agent_are_in_no_record(self):
        agent = self.file("sshpass", '#!/bin/sh\nshift 3\nexec sh -c "$*"\n')
        agent.chmod(0o755)
        files = {name: self.folder / name for name in ["r.json", "r.csv", "r.prom", "r.html", "s.csv"]}
        for words in [["--agent", f"{agent} -p hunter2"], [f"--agent={agent} -p hunter2"]]:
            result = support.run("run", "all_reduce", "--sizes", "8", "--backends", "tutti", "--budget", "50ms", "--hosts",
                                 "localhost:1,a:1", *words, "--interface", "lo", "--timeout", "5s", "--json", files["r.json"],
                                 "--csv", files["r.csv"], "--prometheus", files["r.prom"], "--html", files["r.html"],
                                 "--samples", files["s.csv"])
            told = json.loads(files["r.json"].read_text())
            self.assertIn("sshpass (redacted)", told["command"])
            for text in [result.out, result.err, *(path.read_text() for path in files.values() if path.exists())]:
                self.assertNotIn("hunter2", text)
        result = support.run("doctor", "--hosts", "a,b", "--agent", "/bin/false hunter2", "--interface", "lo")
        self.assertNotIn("hunter2", result.out + result.err)


class WithoutTimes(Files):
    def test_exports_of_nothing_are_errors(self):
        skipped = {**self.record, "rows": [{**row, "verdict": "skipped", "time_median": None} for row in self.record["rows"]]}
        empty = {"schema_version": 1, "kind": "gate", "cells": []}
        untimed = {**empty, "cells": [{"cell": "all_reduce", "collective": "all_reduce", "bytes": 8, "verdict": "missing", "this_us": None}]}
        for name, document in [("skipped", skipped), ("empty", empty), ("untimed", untimed)]:
            path, kept = self.file(f"{name}.json", json.dumps(document)), self.file("kept.prom", "of yesterday")
            for form in ["github", "bencher"]:
                with self.subTest(name, form=form):
                    result = self.refused("report", path, "--format", form, "--prometheus", kept, code=ENVIRONMENT,
                                          names=[f"{name}.json': nothing was measured: no row of it has a time for --format"])
                    self.assertEqual(kept.read_text(), "of yesterday")

    def test_exports_of_a_gate_are_its_judged_cells(self):
        cell = "all_reduce/shm/float/sum/P2.processes/none/64B/out/private/streaming"
        gate = {"schema_version": 1, "kind": "gate", "cells": [
            {"cell": cell, "collective": "all_reduce", "bytes": 64, "verdict": "slower", "ratio": 1.5, "this_us": 3.0,
             "other_us": 2.0, "this_launches": 8},
            {"cell": cell.replace("64B", "8B"), "collective": "all_reduce", "bytes": 8, "verdict": "missing", "this_us": None}]}
        path, metrics = self.file("gate.json", json.dumps(gate)), self.folder / "m.prom"
        github, bencher = (support.run("report", path, "--format", form, "--prometheus", metrics) for form in ["github", "bencher"])
        self.assertEqual((github.code, bencher.code), (0, 0), github)
        self.assertEqual(json.loads(github.out), [{"name": cell, "unit": "us", "value": 3.0, "extra": "8 launches, slower"}])
        self.assertEqual(json.loads(bencher.out), {cell: {"latency": {"value": 3000.0}}})
        self.assertIn('nranks="2",collective="AllReduce",message_size="64B"', metrics.read_text())


if __name__ == "__main__":
    unittest.main()
