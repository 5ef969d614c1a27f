# SPDX-License-Identifier: Apache-2.0
"""References beside each other: each is started by its own starter, and what is wrong with one costs no other anything."""
import os
import pathlib
import shutil
import signal
import tempfile
import time
import unittest

import support

BUILD = pathlib.Path(os.environ["TUTTI_BUILD"])
FIXTURES = BUILD / "suites/backends/fixtures"
LAZY = pathlib.Path(os.environ["TUTTI_LAZY_BACKENDS"])
MPIS = [name for name in ["openmpi", "mpich"] if name in support.REFERENCES]
FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
needs_two = unittest.skipUnless(len(support.REFERENCES) >= 2, "fewer than two references are built")


def starter_of(reference):
    """An MPI's ranks are started by its own mpirun, those of any other reference by tutti."""
    return reference if reference in MPIS else "spawn"


@needs_two
class Starters(unittest.TestCase):
    """One sweep with all references, in two launches."""

    @classmethod
    def setUpClass(cls):
        cls.run_ = support.Run("run", "all_reduce", "--backends", ",".join(["tutti", *support.REFERENCES]), "--ranks", "2",
                               "--sizes", "8,4K", "--launches", "2", "--budget", "6s", *FILES)
        cls.addClassCleanup(cls.run_.__exit__)
        cls.result = cls.run_.wait(120)
        cls.left = cls.run_.left_behind()
        _, cls.rows = cls.run_.rows()
        cls.starters = {starter_of(name) for name in support.REFERENCES}

    def test_all_are_right_and_nothing_is_left(self):
        self.assertEqual(self.result.code, 0, self.result)
        self.assertEqual({row["verdict"] for row in self.rows}, {"ok"}, self.result)
        self.assertEqual(self.left, [])

    def test_each_starter_has_tutti_and_its_own_references(self):
        for row in self.rows:
            if row["backend"] != "tutti":
                self.assertEqual(row["starter"], starter_of(row["backend"]), row)
        own = {(row["bytes"], row["starter"]) for row in self.rows if row["backend"] == "tutti"}
        self.assertEqual(own, {(size, starter) for size in ["8", "4096"] for starter in self.starters})

    def test_case_starter_and_launch_are_a_row(self):
        keys = [(row["case"], row["starter"], row["launch"]) for row in self.rows]
        self.assertEqual(len(set(keys)), len(keys))
        systems = len(support.REFERENCES) + len(self.starters)
        self.assertEqual(len(keys), 2 * 2 * systems)  # launches and sizes
        self.assertEqual(len({launch for _, _, launch in keys}), 2 * len(self.starters))
        for launch in {row["launch"] for row in self.rows}:
            self.assertEqual(len({row["starter"] for row in self.rows if row["launch"] == launch}), 1)

    def test_the_ratio_to_each_and_to_the_best_comes_from_its_own_launches(self):
        def median(values):
            values = sorted(values)
            return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2

        def time_of(backend, size, launch):
            (row,) = [row for row in self.rows if (row["backend"], row["bytes"], row["launch"]) == (backend, size, launch)]
            return float(row["time_median"])

        ratios = {}
        for reference in support.REFERENCES:
            for size in ["8", "4096"]:
                launches = {row["launch"] for row in self.rows if row["backend"] == reference}
                ratios[reference, size] = median([time_of("tutti", size, one) / time_of(reference, size, one)
                                                  for one in launches])
        said = dict(support.ratios_in(self.result.out))
        for reference in support.REFERENCES:
            mean = (ratios[reference, "8"] * ratios[reference, "4096"]) ** 0.5
            self.assertAlmostEqual(said[reference], mean, delta=0.0051, msg=self.result)
        best = 1.0
        for size in ["8", "4096"]:
            best *= max(ratios[reference, size] for reference in support.REFERENCES)
        self.assertAlmostEqual(said["the best of them in each cell"], best**0.5, delta=0.0051, msg=self.result)

    def test_the_table_says_the_starter_of_a_block(self):
        for starter in self.starters:
            self.assertIn(f", started by {starter}\n", self.result.out)


class Broken(unittest.TestCase):
    """Objects that cannot be used, beside those that can."""

    def test_each_is_named_and_the_others_are_measured(self):
        with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
            pathlib.Path(folder, "libtutti_backend_damaged.so").write_bytes(b"\x7fELF and nothing else")
            shutil.copy(FIXTURES / "libtutti_backend_old.so", folder)
            shutil.copy(BUILD / "crashing_backends/libtutti_backend_crashing.so", folder)
            broken = {"damaged": "backend damaged cannot be loaded", "old": "backend old has ABI 77, this program needs",
                      "crashing": "backend crashing crashes as soon as it is loaded"}
            if support.HAS_OPENMPI:
                shutil.copy(LAZY / "libtutti_backend_crashes_in_start.so", folder)
                broken["crashes_in_start"] = "was killed by signal 11"
            with support.Run("run", "barrier", "--backends", "all", "--ranks", "2", "--budget", "2s", *FILES,
                             environment={"TUTTI_BACKENDS": folder}) as one:
                result = one.wait(60)
                self.assertEqual(result.code, 0, result)
                self.assertEqual({row["backend"] for row in one.rows()[1]}, {"tutti", *support.REFERENCES})
                self.assertEqual(one.left_behind(), [])
            for name, words in broken.items():
                (line,) = [line for line in result.err.splitlines() if line.startswith(f"# without {name}: ")]
                self.assertIn(words, line)

    @support.needs_openmpi
    def test_one_that_crashes_in_a_call_costs_its_own_starter_only(self):
        backends = ["crashes_in_calls", *support.REFERENCES]
        with support.Run("run", "all_reduce", "--backends", ",".join(["tutti", *backends]), "--ranks", "2", "--sizes", "8",
                         "--budget", "3s", *FILES, environment={"TUTTI_BACKENDS": str(LAZY)}) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 5, result)
            self.assertIn("all_reduce/crashes_in_calls.none", result.err)
            self.assertEqual({row["backend"] for row in one.rows()[1]}, {"tutti", *support.REFERENCES}, result)
            self.assertEqual(one.left_behind(), [])


@needs_two
class Twins(unittest.TestCase):
    def test_one_beside_another_starter(self):
        """A twin is of its own starter's launches, and no reference to tutti."""
        references = [support.REFERENCES[0], *support.REFERENCES]
        with support.Run("run", "barrier", "--backends", ",".join(["tutti", "tutti", *references]), "--ranks", "2", "--budget",
                         "2s", *FILES) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            starters = {(row["backend"], row["starter"]) for row in one.rows()[1]}
        own = {(name, starter_of(reference)) for name in ["tutti", "tutti:2"] for reference in support.REFERENCES}
        twin = (references[0] + ":2", starter_of(references[0]))
        self.assertEqual(starters, own | {(name, starter_of(name)) for name in support.REFERENCES} | {twin})
        self.assertEqual({whom for whom, _ in support.ratios_in(result.out)},
                         {*support.REFERENCES, "tutti:2", references[0] + ":2", "the best of them in each cell"})


class Soak(unittest.TestCase):
    def test_a_mix_of_each_is_right(self):
        for reference in support.REFERENCES:
            with self.subTest(reference):
                result = support.run("check", "soak", "--backends", reference, "--ranks", "2", "--operations", "300")
                self.assertEqual(result.code, 0, result)
                self.assertRegex(result.out, r"(?m)^# soak: 1 mix, 1 ok, 0 wrong,")


class Integers(unittest.TestCase):
    """Some versions saturate sums of 8 bits, or compare unsigned integers as signed: that is refused by name."""

    @support.at_night
    def test_none_is_wrong(self):
        for reference in support.REFERENCES:
            with self.subTest(reference), \
                    support.Run("run", "all_reduce", "reduce", "--backends", reference, "--ranks", "2", "--sizes", "512", "--dtypes",
                                "int8,uint8,int32,uint32,int64,uint64", "--ops", "sum,min,max", "--budget", "3s", *FILES) as one:
                result = one.wait(60)
                self.assertEqual(result.code, 0, result)
                _, rows = one.rows()
                self.assertEqual(len(rows), 2 * 6 * 3)
                self.assertLessEqual({row["verdict"] for row in rows}, {"ok", "skipped"}, result)
                self.assertTrue(all(row["reason"] for row in rows if row["verdict"] == "skipped"), result)


class Killed(unittest.TestCase):
    def test_a_rank_is_named_and_nothing_is_left(self):
        for reference in support.REFERENCES:
            with self.subTest(reference), \
                    support.Run("run", "all_reduce", "--backends", f"tutti,{reference}", "--ranks", "2", "--sizes", "8:64K:+64",
                                "--budget", "100s", *FILES) as one:
                rank = one.wait_for_ranks(2)[1]
                one.wait_for_rows(1)
                os.kill(rank, signal.SIGKILL)
                result = one.wait(20)
                self.assertEqual(result.code, 5, result)
                self.assertRegex(result.err, rf"tutti: rank \d \(pid {rank}\) was killed by signal 9")
                self.assertEqual(one.left_behind(), [])

    def test_one_that_dies_while_it_starts_leaves_nothing(self):
        for reference in support.REFERENCES:
            for number, delay in enumerate([0, 0, 0.005, 0.01, 0.02]):
                before = support.shared_memory()
                with self.subTest(reference, delay=delay), \
                        support.Run("run", "all_reduce", "--backends", f"tutti,{reference}", "--ranks", "2", "--sizes",
                                    "8:64K:+64", "--budget", "100s", *FILES) as one:
                    rank = one.wait_for_ranks(2)[1 - number % 2]
                    time.sleep(delay)
                    os.kill(rank, signal.SIGKILL)
                    result = one.wait(20)
                    self.assertEqual(result.code, 5, result)
                    self.assertRegex(result.err, r"tutti: .*rank.* was killed by signal 9")
                    self.assertEqual(one.left_behind(), [])
                    self.assertEqual(support.abandoned_shared_memory(before), set())


if __name__ == "__main__":
    unittest.main()
