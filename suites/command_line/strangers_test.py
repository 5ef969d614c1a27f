# SPDX-License-Identifier: Apache-2.0
"""Another user on the same machine: it holds the names at which processes of a job meet, races for them, or fills them
with connections. No code of that user runs, and the message has that user's id."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import joined_test
import support

STRANGER = 65534
BECOME_STRANGER = ["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups"]
TEXT = (pathlib.Path(__file__).parent / "stranger.py").read_text()
CRASHING = pathlib.Path(os.environ["TUTTI_BUILD"]) / "crashing_backends/libtutti_backend_crashing.so"  # when it is loaded
USER = f"a process of user {STRANGER}"


def python_of_stranger():
    """One that another user may start, which this process's need not be."""
    for python in [sys.executable, "/usr/bin/python3"]:
        with contextlib.suppress(OSError):
            if subprocess.run([*BECOME_STRANGER, python, "-c", ""], capture_output=True, check=False).returncode == 0:
                return python
    return None


PYTHON = python_of_stranger() if os.getuid() == 0 else None


@unittest.skipUnless(PYTHON, "only root, with `setpriv` and a Python for all users, can start a process of another user")
class Strangers(unittest.TestCase):
    def setUp(self):
        self.evil = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copy(CRASHING, self.evil / "libtutti_transport_evil.so")

    @contextlib.contextmanager
    def stranger(self, *words):
        """The process, once it has begun."""
        with subprocess.Popen([*BECOME_STRANGER, PYTHON, "-c", TEXT, *words], stdout=subprocess.PIPE, text=True, env={**os.environ, "EVIL": str(self.evil)}) as process:
            try:
                self.assertEqual(process.stdout.readline(), "ready\n")
                yield process
            finally:
                process.kill()

    def start(self, rank, port, *words, program=support.PROGRAM, ranks=2, **more):
        environment = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **more}
        return self.enterContext(support.Run(*words, program=program, environment=environment))

    def test_who_holds_the_names_first_is_named(self):
        run = ["run", "all_reduce", "--sizes", "8", "--budget", "1s", "--timeout", "5s"]
        perf = support.PROGRAM.parent / "all_reduce_perf"
        for words, program in [(run, support.PROGRAM), (["check", "barrier", "--timeout", "5s"], support.PROGRAM),
                               (["-b", "8", "-e", "8", "-T", "5"], perf)]:
            port = joined_test.free_port()
            name = f"tutti-meeting-{os.getuid()}-127.0.0.1-{port}"
            with self.subTest(words), self.stranger("hold", name, f"{name}-alive"):
                runs = [self.start(rank, port, *words, program=program) for rank in [1, 0]]
                for result in [one.wait(20) for one in runs]:
                    self.assertEqual(result.code, 3, result)
                    self.assertIn(USER, result.err)
                    self.assertIn(name, result.err)
                    self.assertIn("MASTER_PORT", result.err)

    def test_who_holds_a_name_of_two_hosts_is_named(self):
        port = joined_test.free_port()
        name = f"tutti-meeting-{os.getuid()}-127.0.0.1-{port}-first0"
        more = {"LOCAL_WORLD_SIZE": "2", "TUTTI_PORT": str(port), "TUTTI_SECRET": joined_test.SECRET}
        with self.stranger("hold", name, f"{name}-alive"):
            first = self.start(0, port, "run", "barrier", "--timeout", "5s", ranks=3, **more)
            result = first.wait(20)
            self.assertEqual(result.code, 3, result)
            self.assertIn(USER, result.err)

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
    def test_a_race_for_the_names_that_all_users_see_is_lost(self):
        words = ["--allow-run-as-root", "--oversubscribe", "-np", "3", support.PROGRAM, "run", "all_reduce", "--backends", "tutti",
                 "--sizes", "8", "--budget", "1s"]
        with self.stranger("race") as stranger:
            for _ in range(2):
                run = self.enterContext(support.Run(*words, program=shutil.which("mpirun")))
                result = run.wait(40)
                self.assertEqual(result.code, 0, result)
                self.assertRegex(result.out, r"(?m)^# 1 rows? in 1 cells?: 1 ok")
            stranger.kill()
            self.assertNotIn("caller", stranger.stdout.read())

    def test_a_flood_of_connections_keeps_no_rank_out(self):
        run = ["run", "all_reduce", "--sizes", "8", "--budget", "1s", "--timeout", "10s"]
        perf = support.PROGRAM.parent / "all_reduce_perf"
        for words, program in [(run, support.PROGRAM), (["-b", "8", "-e", "8", "-n", "5"], perf)]:
            port = joined_test.free_port()
            with self.subTest(words), self.stranger("flood"):
                runs = [self.start(rank, port, *words, program=program) for rank in [0, 1]]
                results = [one.wait(40) for one in runs]
                self.assertEqual([result.code for result in results], [0, 0], results)
        with self.stranger("flood"):
            result = support.run(*run, "--ranks", "2", limit=40)
            self.assertEqual(result.code, 0, result)

    def test_a_second_job_at_the_same_place_ends_no_job(self):
        port = joined_test.free_port()
        words = ["run", "all_reduce", "--sizes", "8", "--iterations", "1000000", "--no-limit", "--backends", "tutti"]
        first = [self.start(rank, port, *words) for rank in [0, 1]]
        first[0].wait_for_ranks(1)
        end = time.monotonic() + support.patience(20)
        while support.command_of(first[1].process.pid)[1:] != ["rank"] and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.5)
        late = self.start(1, port, "run", "barrier").wait(20)
        self.assertEqual(late.code, 3, late)
        self.assertIn("rank 1 of the job that meets here has come before", late.err)
        again = self.start(0, port, "run", "barrier").wait(20)
        self.assertEqual(again.code, 3, again)
        self.assertIn("is here already", again.err)
        self.assertEqual([one.process.poll() for one in first], [None, None], [one.texts() for one in first])


if __name__ == "__main__":
    unittest.main()
