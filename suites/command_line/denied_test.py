# SPDX-License-Identifier: Apache-2.0
"""System calls that a sandbox refuses: what tutti can do without goes on without, and what it needs is named."""
import json
import pathlib
import sys
import tempfile
import unittest

import support

DENIED = pathlib.Path(__file__).resolve().parent / "denied.py"
PERF = support.PROGRAM.parent / "all_reduce_perf"
SWEEP = ["run", "all_reduce", "--ranks", "2", "--sizes", "8", "--budget", "100ms"]


def run(calls, *words, program=support.PROGRAM, number="EPERM", limit=60):
    with support.Run("-B", DENIED, calls, number, program, *words, program=sys.executable) as one:
        result = one.wait(limit)
    if result.code == 77:
        raise unittest.SkipTest("there is no seccomp filter here")
    return result


class Denied(unittest.TestCase):
    def test_memory_that_ranks_share_is_named(self):
        own = [*SWEEP, "--backends", "tutti"]
        for number, said in [("EPERM", "Operation not permitted"), ("ENOSYS", "Function not implemented")]:
            for program, words in [(support.PROGRAM, own), (support.PROGRAM, [*own, "--ranks-as", "threads"]),
                                   (support.PROGRAM, [*own, "--ranks-as", "tasks"]), (support.PROGRAM, [*own, "--transports", "tcp"]),
                                   (support.PROGRAM, ["check", "barrier", "--ranks", "2"]),
                                   (PERF, ["-b", "8", "-e", "8", "-g", "2"])]:
                with self.subTest(words=words, number=number):
                    result = run("memfd_create", *words, program=program, number=number)
                    self.assertEqual(result.code, 3, result)
                    self.assertEqual(result.err.count("\n"), 1, result)
                    self.assertIn(f"memfd_create: {said}", result.err)

    def test_what_reports_need_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder, "rows.csv")
            support.run(*SWEEP, "--backends", "tutti", "--csv", table)
            result = run("memfd_create", "report", table, "--html", pathlib.Path(folder, "page.html"))
        self.assertEqual(result.code, 3, result)
        self.assertIn("memfd_create: Operation not permitted", result.err)

    def test_it_goes_on_without_what_it_does_not_need(self):
        calls = "process_vm_readv,process_vm_writev,pidfd_open,futex_waitv,perf_event_open,ptrace,mlock,mlock2,io_uring_setup,sched_setaffinity"
        for number in ["EPERM", "ENOSYS"]:
            for words in [[*SWEEP, "--backends", "tutti"], [*SWEEP, "--backends", "tutti", "--ranks-as", "threads"],
                          ["check", "barrier", "--ranks", "2"], ["explain", "all_reduce", "--ranks", "2"]]:
                with self.subTest(words=words, number=number):
                    result = run(calls, *words, number=number)
                    self.assertEqual((result.code, "tutti: " in result.err), (0, False), result)

    def test_private_buffers_are_staged_where_ranks_may_not_read_each_other(self):
        with tempfile.TemporaryDirectory() as folder:
            table, rows = pathlib.Path(folder, "once.csv"), pathlib.Path(folder, "rows.csv")
            table.write_text(f"{support.TABLE_HEADER}\n"
                             "all_reduce,host,any,any,1,any,0,any,two_shot,0,single_copy,measured\n")
            words = ["run", "all_reduce", "--ranks", "2", "--sizes", "64K", "--budget", "100ms", "--backends", "tutti", "--csv", rows]
            for calls in ["process_vm_readv", "process_vm_writev"]:
                for named, found in [(["--table", table], ",ok,"), (["--algorithms", "two_shot+single_copy"], ",skipped,")]:
                    with self.subTest(calls, named=named):
                        result = run(calls, *words, *named)
                        self.assertEqual(result.code, 0, result)
                        self.assertIn(found, rows.read_text())
                        self.assertEqual("tutti.two_shot+single_copy" in rows.read_text(), found == ",skipped,")

    def test_a_binding_that_was_asked_for_is_named(self):
        result = run("sched_setaffinity", *SWEEP, "--backends", "tutti", "--bind", "core")
        self.assertEqual(result.code, 3, result)
        self.assertRegex(result.err, r"cannot bind a rank to core \d+: sched_setaffinity: Operation not permitted\n")

    def test_calls_that_cannot_be_counted_are_told(self):
        result = run("ptrace", "list", "--costs", "all_reduce/tutti.ring/shm/float/sum/P4.processes/none/64B/out/private/isolated")
        self.assertEqual(result.code, 0, result)
        [refused] = json.loads(result.out)["not_counted"]
        self.assertEqual(refused["reason"], "system calls cannot be counted: a process may not trace its child here (ptrace)")


if __name__ == "__main__":
    unittest.main()
