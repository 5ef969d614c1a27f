# SPDX-License-Identifier: Apache-2.0
"""A rank or a link that is slow on purpose: what a row, the straggler table, a comparison and the gate make of it."""
import os
import pathlib
import signal
import tempfile
import time
import unittest

import support

PLAIN = ["run", "all_gather", "--algorithms", "ring", "--backends", "tutti", "--ranks", "2", "--no-limit"]


class Slow(unittest.TestCase):
    def measure(self, *arguments, code=0):
        with support.Run(*arguments, "--csv", "{folder}/rows.csv", "--json", "{folder}/run.json") as one:
            result = one.wait(60)
            self.assertEqual(result.code, code, result)
            return result, one.rows()[1], support.read_json(one.path / "run.json"), (one.path / "rows.csv").read_text()

    def test_the_straggler_table_names_the_slow_rank(self):
        """Of one_shot the others wait for what it shows them, and not for what it adds up afterwards: most of its time."""
        for _ in range(3):  # who else wants the cores makes other ranks late
            result, rows, record, _ = self.measure("run", "all_reduce", "--algorithms", "one_shot", "--dtypes", "f8e4m3", *PLAIN[4:], "--sizes", "64K",
                                                   "--iterations", "60", "--slow-rank", "1:10000%")
            if not rows[0]["disturbed"]:
                break
        self.assertEqual([(row["verdict"], row["slow_rank"], row["slow_link"], row["slowest_rank"]) for row in rows], [("ok", "1:10000%", "", "1")])
        self.assertIn("# measured with slow rank 1:10000%", result.out)
        self.assertRegex(result.out, r"# straggler, P=2: rank 1 on \S+ ended last in \d+ of \d+ samples")
        self.assertEqual({one["rank"]: one["ends_late"] for one in record["ranks"]["P2"]}, {"0": False, "1": True})

    def held_up(self):
        """The row and the result of a training whose rank 1 has an eighth of the time."""
        with support.Run("train", "--ranks", 2, "--images", 1536, "--epochs", 1, "--batch", 32, "--gradients", "buckets", "--backends",
                         "tutti", "--csv", "{folder}/rows.csv") as one:
            slow = one.wait_for_ranks(2)[1]
            while one.process.poll() is None:
                for number, seconds in [(signal.SIGSTOP, 0.035), (signal.SIGCONT, 0.005)]:
                    try:
                        os.kill(slow, number)
                    except ProcessLookupError:
                        pass
                    time.sleep(seconds)
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            (row,) = one.rows()[1]
        return row, result

    def test_a_training_names_the_rank_for_which_the_others_wait(self):
        for _ in range(3):  # a rank that gets no core is late too
            row, result = self.held_up()
            if row["straggler"] == "1":
                break
        self.assertEqual(row["straggler"], "1", result)
        self.assertGreater(int(row["straggler_last"]), int(row["steps"]) // 2)
        self.assertRegex(result.out, r"(?m)^# straggler: tutti buckets \S+: rank 1 came last to the sums of \d+ of \d+ steps, and the "
                                     r"others waited for it \d+\.\d % of the time$")

    def test_a_slow_link_is_a_condition_of_the_row_and_of_comparisons(self):
        _, rows, _, slow = self.measure(*PLAIN, "--sizes", "64K", "--iterations", "16", "--slow-link", "1-0:50%")
        self.assertEqual([(row["verdict"], row["slow_rank"], row["slow_link"]) for row in rows], [("ok", "", "0-1:50%")])
        _, _, _, usual = self.measure(*PLAIN, "--sizes", "64K", "--iterations", "16")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "slow.csv").write_text(slow)
            (path / "usual.csv").write_text(usual)
            compared = support.run("compare", path / "usual.csv", path / "slow.csv")
            self.assertEqual(compared.code, 3, compared)
            self.assertIn("slow link 0-1:50%", compared.out)
            (path / "suite.toml").write_text('cells = ["all_gather/shm/float/none/P2.processes/none/65536B/out/private/isolated"]\n')
            gated = support.run("gate", "--baseline", path / "slow.csv", "--suite", path / "suite.toml", "--cell-time", "20ms")
            self.assertEqual(gated.code, 3, gated)
            self.assertIn("with slow_link '0-1:50%'", gated.out)

    @support.needs_openmpi
    def test_a_library_that_moves_its_own_bytes_is_skipped_by_name(self):
        result, rows, _, _ = self.measure("run", "all_reduce", "--backends", "tutti,openmpi", "--ranks", "2", "--sizes", "4K", "--iterations", "16",
                                          "--slow-rank", "0:20%")
        self.assertEqual({row["backend"]: row["verdict"] for row in rows}, {"tutti": "ok", "openmpi": "skipped"}, result)
        self.assertIn("openmpi moves bytes by itself", result.out)

    def test_in_threads_and_in_groups(self):
        _, rows, _, _ = self.measure("run", "all_reduce", "--backends", "tutti", "--ranks-as", "threads", "--groups", "2x2", "--sizes", "4K",
                                     "--iterations", "16", "--slow-rank", "3:100%", "--slow-link", "0-1:100%")
        self.assertEqual({(row["verdict"], row["slow_rank"], row["slow_link"]) for row in rows}, {("ok", "3:100%", "0-1:100%")})

    def test_what_has_no_meaning_is_refused(self):
        for words, parts in [("--slow-rank 1", ["--slow-rank", "'1'", "did you mean '1:20%'?"]),
                             ("--slow-rank x:20%", ["'x:20%'"]),
                             ("--slow-rank 1:0%", ["1% to 10000%"]),
                             ("--slow-rank 2:20%", ["no rank 2", "0 to 1"]),
                             ("--slow-link 0:20%", ["--slow-link", "did you mean '0-1:20%'?"]),
                             ("--slow-link 1-1:20%", ["two ranks"]),
                             ("--slow-link 0-2:20%", ["no rank 2"]),
                             ("--slow-rank 1:20% --ranks-as tasks", ["--slow-rank", "--ranks-as processes"]),
                             ("--slow-link 0-1:20% --transports tcp --pretend-hosts 2", ["--slow-link", "transport tcp", "several hosts"]),
                             ("--slow-rank 1:20% --transports cuda --device host", ["--slow-rank", "transport cuda", "on a device"])]:
            with self.subTest(words):
                result = support.run(*PLAIN, "--sizes", "8", *words.split(), limit=20)
                self.assertEqual(result.code, 2, result)
                for part in parts:
                    self.assertIn(part, result.err, result)
        result = support.run("run", "barrier", "--backends", "tutti", "--slow-rank", "1:20%")
        self.assertEqual(result.code, 2, result)


if __name__ == "__main__":
    unittest.main()
