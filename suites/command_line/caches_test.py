# SPDX-License-Identifier: Apache-2.0
"""Many ranks of one host, which share caches in groups: nested algorithms, and who says where a cache ends."""
import unittest

import support

NESTED = {"broadcast": ["nested"], "reduce": ["nested"], "all_reduce": ["nested_one_shot", "nested_two_shot"],
          "all_gather": ["nested"], "reduce_scatter": ["nested"], "barrier": ["nested"]}


class Caches(unittest.TestCase):
    def test_nested_algorithms_run_as_processes_threads_and_many_tasks(self):
        for ranks, ranks_as, per_cache in [(4, "processes", 2), (5, "threads", 2), (64, "tasks", 8)]:
            with self.subTest(ranks_as), support.Run(
                    "run", *NESTED, "--ranks", ranks, "--ranks-as", ranks_as, "--ranks-per-cache", per_cache, "--algorithms",
                    "nested,nested_one_shot,nested_two_shot", "--backends", "tutti", "--sizes", "8,64K", "--budget", "4s", "--csv", "{folder}/rows.csv") as run:
                result = run.wait(90)
                self.assertEqual(result.code, 0, result)
                rows = run.rows()[1]
                self.assertEqual({row["verdict"] for row in rows}, {"ok"}, result)
                self.assertEqual({row["ranks_per_cache"] for row in rows}, {str(per_cache)})
                ran = {(row["collective"], row["algorithm"]) for row in rows}
                self.assertEqual(ran, {(name, one) for name, algorithms in NESTED.items() for one in algorithms})
                self.assertIn(f"{per_cache} ranks a cache", result.out)

    def test_what_cannot_be_is_refused(self):
        for words, parts in [("run barrier --ranks-per-cache 0", ["--ranks-per-cache", "'0'", "1 to 1024", "did you mean '1'?"]),
                             ("run barrier --ranks-per-cache 2000", ["'2000'", "did you mean '1024'?"]),
                             ("draw barrier --ranks 4 --ranks-per-cache 5", ["'5'", "1 to 4"]),
                             ("draw barrier --ranks 4 --hosts 2 --ranks-per-cache 2", ["--hosts 2", "leave one of the two out"])]:
            with self.subTest(words):
                result = support.run(*words.split())
                self.assertEqual(result.code, 2, result)
                for part in parts:
                    self.assertIn(part, result.err)


if __name__ == "__main__":
    unittest.main()
