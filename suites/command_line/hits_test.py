# SPDX-License-Identifier: Apache-2.0
"""A few of the random hits that random_hits.py makes: early ones, which do not wait for a deadline. Also what a hit that
went wrong looks like."""
import signal
import unittest

import hit_jobs
import hits

EARLY = 0.4  # of the time in which hits fall


class Hits(unittest.TestCase):
    def quick(self, name, first=1):
        """The trial of the first seed that is over soon."""
        trials = (hits.Trial(hit_jobs.ALL[name], seed) for seed in range(first, first + 1000))
        return next(trial for trial in trials if trial.moment < EARLY and trial.signal != signal.SIGSTOP)

    def test_each_job_ends_in_time_with_the_right_name_and_leaves_nothing(self):
        names = ["run", "run_tcp", "soak", "joined_by_hand", "drop_in_by_hand", "report"]
        done = hits.perform([self.quick(name) for name in names])
        self.assertEqual([problem for _, problems in done for problem in problems], [])
        self.assertIn("run_tcp", "\n".join(hits.summary(done)))

    def test_what_is_wrong_is_found(self):
        class Nameless(hit_jobs.Job):
            """A job of which another rank than the one that is hit would have to be named."""

            def start(self):
                super().start()
                self.runs[0].wait_for_ranks(3)

            def blamed(self, target, number):
                return [rf"rank {target.number + 1} "]

            def wrong_rows(self, trial, result):
                return hits.check_rows(self.runs[0], True, self.runs[0].path / "tmp")

            def left(self):
                return [f"process {pid} is left" for pid in [self.runs[0].process.pid]]

        trial = self.quick("run")
        trial.job, trial.moment = Nameless(None), 0.0
        trial.signal, trial.choice = signal.SIGKILL, 0.99  # the last in order is a rank
        found = "\n".join(trial.perform())
        for words in [r"not 'rank \d ' is what is blamed", "there is no JSON", "is left", f"--seed {trial.seed} --scenario run: "]:
            self.assertRegex(found, words)


if __name__ == "__main__":
    unittest.main()
