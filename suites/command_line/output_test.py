# SPDX-License-Identifier: Apache-2.0
"""Where output goes and what happens when it cannot: stderr, stdout, files on a full disk, the width of a terminal; and
what a record says of where and when it was made."""
import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import jsonschema

import support

USAGE = 2
SMALL = ["all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "8,64", "--budget", "300ms"]
PERF = support.PROGRAM.parent / "all_reduce_perf"
COMMANDS = [([support.PROGRAM, "run", *SMALL], 0),
            ([support.PROGRAM, "check", "all_reduce", "--ranks", "2", "--algorithms", "ring", "--dtypes", "float", "--ops",
              "sum"], 0),
            ([support.PROGRAM, "run", "--sizez", "8"], USAGE),
            ([support.PROGRAM, "run", *SMALL, "--csv", "/nowhere/rows"], USAGE),
            ([PERF, "-b", "8", "-e", "64", "-g", "2", "-n", "3"], 0),
            ([PERF, "-q"], USAGE)]


def environment(**more):
    return {**{name: value for name, value in os.environ.items() if name != "COLUMNS"}, **more}


def call(words, **options):
    done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, timeout=support.patience(60), check=False,
                          text=True, **{"env": environment(), **options})
    return done


class Stderr(unittest.TestCase):
    """Trouble on stderr changes nothing but stderr."""

    def both(self, **options):
        for words, code in COMMANDS:
            with self.subTest(words):
                done = call(words, stdout=subprocess.PIPE, **options)
                self.assertEqual(done.returncode, code, done)
                self.assertEqual(bool(done.stdout), code == 0, done)

    def test_a_full_disk(self):
        with open("/dev/full", "w") as full:
            self.both(stderr=full)

    def test_a_closed_descriptor(self):
        self.both(preexec_fn=lambda: os.close(2))

    def test_no_descriptor_at_all(self):
        for words, code in COMMANDS:
            done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *map(str, words)], check=False,
                                  env=environment(), timeout=support.patience(60))
            self.assertEqual(done.returncode, code or USAGE, (words, "stdout cannot be written"))

    def test_a_reader_that_is_gone(self):
        for words, code in COMMANDS:
            with self.subTest(words):
                reader, writer = os.pipe()
                os.close(reader)
                done = call(words, stdout=subprocess.PIPE, stderr=writer)
                os.close(writer)
                self.assertEqual(done.returncode, code, done)

    def test_rows_on_disk_are_complete_all_the_same(self):
        with tempfile.TemporaryDirectory() as folder, open("/dev/full", "w") as full:
            done = call([support.PROGRAM, "run", *SMALL, "--csv", f"{folder}/rows.csv"], stdout=subprocess.PIPE, stderr=full)
            self.assertEqual(done.returncode, 0, done)
            self.assertEqual(len(support.read_csv(f"{folder}/rows.csv")[1]), 2)


def small_disks():
    """Whether a file system of some KiB can be mounted here, where nobody else sees it."""
    probe = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=8k none /mnt"]
    return shutil.which("unshare") is not None and subprocess.run(probe, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(small_disks(), "no file system can be mounted here")
class FullDisk(unittest.TestCase):
    """A disk of 8 KiB, which has room for some of the rows."""

    def on_small_disk(self, *words):
        """The result, and what the files hold afterwards, by name."""
        with tempfile.TemporaryDirectory() as folder:
            small, kept = pathlib.Path(folder, "small"), pathlib.Path(folder, "kept")
            small.mkdir()
            kept.mkdir()
            script = f'mount -t tmpfs -o size=8k none {small} && cd {small} && "$@"; code=$?; cp {small}/* {kept}; exit $code'
            done = call(["unshare", "-rm", "sh", "-c", script, "sh", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            return done, {path.name: path.read_text() for path in kept.iterdir()}

    def assert_told(self, done, name):
        self.assertEqual(done.returncode, USAGE, done)
        self.assertIn(f"cannot write '{name}': No space left on device", done.stderr)

    MANY = ["all_reduce", "--backends", "tutti", "--ranks", "1", "--sizes", "8:256:+8", "--budget", "300ms", "--no-limit"]

    def test_a_csv_ends_with_a_whole_row_and_nothing_else_is_lost(self):
        with tempfile.TemporaryDirectory() as folder:
            record = pathlib.Path(folder, "record.json")
            done, files = self.on_small_disk(support.PROGRAM, "run", *self.MANY, "--csv", "rows.csv", "--json", record)
            self.assert_told(done, "rows.csv")
            rows = list(csv.DictReader(io.StringIO(files["rows.csv"])))
            self.assertTrue(files["rows.csv"].endswith("\n"), files["rows.csv"][-100:])
            self.assertTrue(3 < len(rows) < 32 and all(row["timestamp"] for row in rows), rows)
            self.assertIn("# 32 rows in 32 cells: 32 ok", done.stdout, "the table has them all")
            document = support.read_json(record)
            self.assertEqual((len(document["rows"]), document["finished"]), (32, True))

    def test_a_record_stays_as_it_was(self):
        done, files = self.on_small_disk(support.PROGRAM, "run", *self.MANY, "--json", "record.json")
        self.assert_told(done, "record.json")
        self.assertEqual(list(files), ["record.json"])
        jsonschema.Draft202012Validator(support.SCHEMA).validate(json.loads(files["record.json"]))

    def test_samples_end_with_a_whole_case(self):
        done, files = self.on_small_disk(support.PROGRAM, "run", *self.MANY, "--samples", "samples.csv")
        self.assert_told(done, "samples.csv")
        lines = list(csv.reader(io.StringIO(files["samples.csv"])))
        self.assertTrue(files["samples.csv"].endswith("\n"))
        self.assertEqual({len(line) for line in lines}, {len(lines[0])})

    def test_the_others(self):
        done, files = self.on_small_disk(support.PROGRAM, "check", "all_reduce", "--ranks", "1", "--csv", "rows.csv")
        self.assert_told(done, "rows.csv")
        self.assertTrue(files["rows.csv"].endswith("\n"))
        self.assertRegex(done.stdout, "# check: [0-9]+ cases as processes, [0-9]+ ok, 0 wrong, 0 neither, 0 not run")
        done, files = self.on_small_disk(PERF, "-b", "8", "-e", "256", "-i", "8", "-n", "2", "--csv", "rows.csv")
        self.assert_told(done, "rows.csv")
        self.assertTrue(files["rows.csv"].endswith("\n"))
        self.assertIn("# Avg bus bandwidth", done.stdout)


def on_terminal(words, columns, variable=None):
    """stdout of a program that has a terminal of `columns` columns for its stdout."""
    leader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.DEVNULL,
                          env=environment(**({"COLUMNS": variable} if variable else {}))) as process:
        os.close(terminal)
        text = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the last writer has closed it
                break
            if not part:
                break
            text += part
        code = process.wait(support.patience(60))
    os.close(leader)
    return code, text.decode().replace("\r\n", "\n")


@support.needs_openmpi
class Width(unittest.TestCase):
    PAIR = ["run", "all_reduce", "--backends", "tutti,openmpi", "--ranks", "2", "--sizes", "8", "--budget", "500ms"]

    def lines(self, out):
        return [line for line in out.splitlines() if line.startswith("   ")]

    def widest(self, out):
        """But for identifiers of cases, which are one word."""
        return max(len(line) for line in out.splitlines() if "/P2." not in line)

    def test_a_table_fits_the_terminal(self):
        for columns in (80, 120):
            code, out = on_terminal([support.PROGRAM, *self.PAIR], columns)
            self.assertEqual(code, 0, out)
            self.assertLessEqual(self.widest(out), columns, out)
            self.assertEqual([line.split()[1 if columns < 103 else 2] for line in self.lines(out)], ["tutti", "openmpi"], out)
        code, out = on_terminal([support.PROGRAM, *self.PAIR], 200)
        self.assertEqual((code, len(self.lines(out))), (0, 1), out)

    def test_columns_says_it_anywhere(self):
        code, out = on_terminal([support.PROGRAM, *self.PAIR], 200, variable="80")
        self.assertEqual((code, len(self.lines(out))), (0, 2), out)
        done = call([support.PROGRAM, *self.PAIR], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    env=environment(COLUMNS="80"))
        self.assertEqual(len(self.lines(done.stdout)), 2, done)
        self.assertLessEqual(self.widest(done.stdout), 80, done)

    def test_elsewhere_it_has_its_full_width(self):
        done = call([support.PROGRAM, *self.PAIR], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(len(self.lines(done.stdout)), 1, done)

    def test_a_long_name_does_not_shift_its_row(self):
        result = support.run(*self.PAIR, "--algorithms", "recursive_doubling,ring")
        self.assertEqual(result.code, 0, result)
        verdict = next(line for line in result.out.splitlines() if "verdict" in line).index("verdict") + len("verdict")
        shown = self.lines(result.out)
        self.assertEqual({line[:verdict].split()[-1] for line in shown}, {"ok"}, result)
        self.assertEqual({line[verdict - 2:verdict] for line in shown}, {"ok"}, result)


class Stdout(unittest.TestCase):
    def test_rows_go_there_and_the_table_elsewhere(self):
        result = support.run("run", *SMALL, "--csv", "-")
        self.assertEqual(result.code, 0, result)
        rows = list(csv.DictReader(io.StringIO(result.out)))
        self.assertEqual([(row["bytes"], row["verdict"]) for row in rows], [("8", "ok"), ("64", "ok")], result)
        self.assertIn("# 2 rows in 2 cells: 2 ok", result.err)

    def test_a_record_is_all_that_is_there(self):
        result = support.run("run", *SMALL, "--json", "-")
        document = json.loads(result.out)
        jsonschema.Draft202012Validator(support.SCHEMA).validate(document)
        self.assertEqual((len(document["rows"]), document["finished"]), (2, True))
        self.assertIn("# 2 rows in 2 cells: 2 ok", result.err)

    def test_an_interrupted_record_is_there_too(self):
        with support.Run("run", *SMALL[:-1], "20s", "--json", "-", "--csv", "{folder}/rows.csv") as one:
            one.wait_for_ranks(2)
            one.wait_for_rows(1)
            one.process.send_signal(signal.SIGINT)
            result = one.wait(20)
        self.assertEqual(result.code, 130, result)
        document = json.loads(result.out)
        self.assertEqual((len(document["rows"]) > 0, document["finished"]), (True, False))

    def test_samples_and_checks_and_drop_ins_do_the_same(self):
        result = support.run("run", *SMALL, "--samples", "-")
        self.assertEqual(len({len(line) for line in csv.reader(io.StringIO(result.out))}), 1, result)
        result = support.run("check", "barrier", "--ranks", "2", "--csv", "-")
        self.assertEqual({row["verdict"] for row in csv.DictReader(io.StringIO(result.out))}, {"ok"}, result)
        self.assertIn("# check: ", result.err)
        result = support.run("-b", "8", "-e", "64", "-g", "2", "-n", "3", "--json", "-", program=PERF)
        self.assertTrue(json.loads(result.out)["finished"], result)
        self.assertIn("# Avg bus bandwidth", result.err)

    def test_it_is_not_for_two(self):
        result = support.run("run", *SMALL, "--csv", "-", "--json", "-")
        self.assertEqual(result.code, USAGE, result)
        self.assertIn("--csv and --json are both '-', which is stdout", result.err)
        result = support.run("gate", "--against", "openmpi", "--csv", "-")
        self.assertEqual(result.code, USAGE, result)
        self.assertIn("'-' is stdout, where the gate's table goes", result.err)

    def test_a_closed_one_is_found_before_anything_is_measured(self):
        for option in ("--csv", "--json"):
            done = call([support.PROGRAM, "run", *SMALL, option, "-"], stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
            self.assertEqual((done.returncode, done.stderr), (USAGE, "tutti: the output cannot be written: Bad file descriptor\n"))


def read_late(reader, seconds):
    """All that comes out of a pipe, of which nothing is taken for some seconds."""
    time.sleep(seconds)
    with open(reader, "rb") as stream:
        return stream.read().decode()


class SlowReader(unittest.TestCase):
    """A reader who does nothing for twice the deadline of an operation delays a job, and no more."""

    DEADLINE = 2
    MANY = ["run", "all", "--backends", "tutti", "--ranks", "2", "--sizes", "8:4K:x8"]

    def start(self, *words, stream="stdout", **variables):
        """A process whose output is read late."""
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, env=environment(**variables),
                                   **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, stream: writer})
        os.close(writer)
        self.addCleanup(process.kill)
        return process, reader

    def text_of(self, process, reader):
        text = read_late(reader, 2 * self.DEADLINE)
        _, errors = process.communicate(timeout=support.patience(60))
        self.assertEqual(process.returncode, 0, (text[-300:], errors))
        return text

    def check_run(self, *words, **options):
        process, reader = self.start(support.PROGRAM, *words, "--timeout", f"{self.DEADLINE}s", **options)
        text = self.text_of(process, reader)
        self.assertGreater(len(text), 4096, "the pipe was full")
        return text

    def test_a_job_waits_at_its_end(self):
        text = self.check_run(*self.MANY, "--budget", "1s", "--samples", "-")
        lines = list(csv.reader(io.StringIO(text)))
        self.assertTrue(text.endswith("\n") and len(lines) > 1000 and {len(line) for line in lines} == {len(lines[0])})

    def test_an_interrupt_ends_it_all_the_same(self):
        process, reader = self.start(support.PROGRAM, *self.MANY, "--budget", "60s", "--samples", "-")
        rest = open(reader, "rb")
        self.addCleanup(rest.close)
        rest.read(1)  # the job has begun
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=support.patience(20))
        self.assertEqual(process.returncode, 130)

    @support.at_night
    def test_rows_and_the_table_on_stderr(self):
        words = [*self.MANY, "--budget", "3s"]
        self.check_run(*words, "--csv", "-")
        self.check_run(*words, "--csv", "-", stream="stderr")

    @support.at_night
    def test_checks(self):
        self.check_run("check", "all_reduce", "broadcast", "--ranks", "2,3", "--csv", "-")
        self.check_run("check", "all_reduce", "--faults", "all", "--ranks", "2")
        self.check_run("check", "soak", "--ranks", "2", "--operations", "200", "--seed", "1:12")

    @support.at_night
    def test_processes_of_a_drop_in(self):
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29731", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        words = [PERF, "-b", "8", "-e", "8K", "-i", "64", "-n", "2", "-T", str(self.DEADLINE)]
        first, reader = self.start(*words, RANK="0", LOCAL_RANK="0", **common)
        second = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  env=environment(RANK="1", LOCAL_RANK="1", **common))
        self.addCleanup(second.kill)
        self.assertIn("# Avg bus bandwidth", self.text_of(first, reader))
        _, errors = second.communicate(timeout=support.patience(20))
        self.assertEqual((second.returncode, errors), (0, ""))


class Quiet(unittest.TestCase):
    def test_nothing_is_said_where_all_is_right(self):
        with support.Run("run", *SMALL, "--quiet", "--csv", "{folder}/rows.csv") as one:
            result = one.wait(60)
            self.assertEqual((result.code, result.out, result.err), (0, "", ""))
            self.assertEqual(len(one.rows()[1]), 2)

    def test_errors_and_exit_codes_stay(self):
        result = support.run("run", *SMALL, "--quiet", "--csv", "/nowhere/rows")
        self.assertEqual((result.code, result.out), (USAGE, ""), result)
        self.assertIn("cannot write '/nowhere/rows'", result.err)
        result = support.run("run", "all_reduce", "--backends", "tutti", "--ranks", "1", "--sizes", "8T", "--quiet", "--require",
                             "--budget", "1s")
        self.assertEqual((result.code, result.out), (3, ""), result)

    @support.needs_openmpi
    def test_a_wrong_result_is_named(self):
        result = support.run("run", "all_reduce", "--backends", "lazy_in_samples", "--ranks", "2", "--sizes", "64", "--budget",
                             "3s", "--quiet",
                             environment={"TUTTI_BACKENDS": os.environ["TUTTI_LAZY_BACKENDS"]})
        self.assertEqual((result.code, result.out), (1, ""), result)
        self.assertIn("tutti: wrong all_reduce/lazy_in_samples.none", result.err)


class Record(unittest.TestCase):
    SETTINGS = {"OMPI_MCA_btl_base_verbose": "0", "UCX_LOG_LEVEL": "error", "NCCL_AUTH_TOKEN": "hush", "HOME_SECRET": "hush"}

    def check(self, row, document):
        self.assertRegex(row["timestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertGreaterEqual(row["timestamp"], document["started"])
        self.assertEqual((row["host"], document["machine"]["hostname"]), (socket.gethostname(),) * 2)
        settings = document["environment"]
        self.assertEqual({name: settings.get(name) for name in self.SETTINGS},
                         {**self.SETTINGS, "NCCL_AUTH_TOKEN": "(redacted)", "HOME_SECRET": None})
        self.assertNotIn("hush", json.dumps(document))

    def test_says_where_and_when_and_with_what_settings(self):
        with support.Run("run", *SMALL, "--csv", "{folder}/rows.csv", "--json", "{folder}/record.json",
                         environment=self.SETTINGS) as one:
            self.assertEqual(one.wait(60).code, 0)
            self.check(one.rows()[1][0], support.read_json(one.path / "record.json"))

    def test_a_drop_ins_too(self):
        with support.Run("-b", "8", "-e", "8", "-g", "2", "-n", "3", "--csv", "{folder}/rows.csv", "--json",
                         "{folder}/record.json", program=PERF, environment=self.SETTINGS) as one:
            self.assertEqual(one.wait(60).code, 0)
            self.check(one.rows()[1][0], support.read_json(one.path / "record.json"))


if __name__ == "__main__":
    unittest.main()
