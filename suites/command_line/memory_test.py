# SPDX-License-Identifier: Apache-2.0
"""A memory cgroup that is too small for what was asked: what does not fit is skipped with its numbers, and nobody is
killed."""
import re
import unittest

import support

GIB = 1 << 30
FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
REASON = r"the buffers of this cell take [\d.]+ [GM]iB.*; \d+ MiB are left of the 1\.0 GiB of the cgroup"


class Limited(unittest.TestCase):
    def limited(self, *arguments, code=0, program=support.PROGRAM, limit=GIB):
        """The Result of a run in a group of `limit` bytes of memory, and the rows where it wrote some."""
        with support.Cgroup(limit) as group, support.Run(*group.command(program), *arguments, program="/bin/sh") as one:
            result = one.wait(120)
            self.assertEqual(result.code, code, result)
            return result, one.rows()[1] if (one.path / "rows.csv").exists() else []

    def test_a_cell_that_does_not_fit_is_skipped(self):
        for options in [["--ranks-as", "threads"], ["--backends", "tutti"], []]:
            with self.subTest(options):
                result, rows = self.limited("run", "all_reduce", "--ranks", "2", "--sizes", "16M,256M", "--budget", "3s",
                                            "--check", "sample", *options, *FILES)
                verdicts = {(row["backend"], row["bytes"]): row["verdict"] for row in rows}
                self.assertEqual(verdicts["tutti", str(16 << 20)], "ok", result)
                self.assertEqual(verdicts["tutti", str(256 << 20)], "skipped", result)
                self.assertRegex(next(row["reason"] for row in rows if row["bytes"] == str(256 << 20)), REASON)

    def test_shared_buffers_and_a_limit_have_the_room_that_is_left(self):
        result, rows = self.limited("run", "all_reduce", "--ranks", "2", "--sizes", "100M,200M", "--backends", "tutti",
                                    "--buffers", "private,shared", "--iterations", "1", "--check", "sample", *FILES)
        self.assertEqual(len(rows), 4, result)
        verdicts = {(row["buffers"], row["bytes"]): row["verdict"] for row in rows}
        self.assertEqual(verdicts["shared", str(100 << 20)], "ok", result)
        self.assertEqual(verdicts["shared", str(200 << 20)], "ok", result)
        for row in rows:  # those with private buffers have what the shared ones leave
            if row["buffers"] == "private":
                self.assertEqual(row["verdict"], "skipped", row)
                self.assertRegex(row["reason"], REASON)

    def test_a_check_skips_too(self):
        counts = "{folder}/counts"
        with support.Cgroup(GIB) as group:
            words = ["-c", f'echo "64000000 64000000" > {counts}; ' + group.command()[1], *group.command()[2:]]
            with support.Run(*words, "check", "all_gather_v", "--ranks", "2", "--ranks-as", "threads", "--counts", counts,
                             "--dtypes", "float", program="/bin/sh") as one:
                result = one.wait(120)
        self.assertRegex(str(result), "skipped  all_gather_v/.*\n  the buffers of this cell take")
        self.assertEqual(result.code, 0, result)

    def test_the_programs_of_nccl_tests_say_what_they_leave_out(self):
        result, _ = self.limited("-b", "16M", "-e", "1G", "-f", "4", "-g", "2", "-n", "2", "-w", "1",
                                 program=support.PROGRAM.parent / "all_reduce_perf")
        self.assertRegex(result.out, r"# Sizes above \d+ are skipped, up to 1073741824: their buffers do not fit; "
                                     r"\d+ MiB are left of the 1\.0 GiB of the cgroup")
        self.assertRegex(result.out, r"# Reducing maxBytes to \d+ due to memory limitation")
        self.assertEqual(len(re.findall(r"(?m)^ +(?:16777216|67108864) ", result.out)), 2, result)
        self.assertIn("# Out of bounds values : 0 OK", result.out)

    def test_a_size_that_does_not_fit_is_no_other_size(self):
        result, _ = self.limited("-b", "1G", "-e", "1G", "-g", "2", program=support.PROGRAM.parent / "all_reduce_perf", code=3)
        self.assertEqual(result.out, "", result)
        self.assertRegex(result.err, "^all_reduce_perf: sizes from 1073741824 to 1073741824 are skipped, which are all: their buffers do not fit: at most ")


if __name__ == "__main__":
    unittest.main()
