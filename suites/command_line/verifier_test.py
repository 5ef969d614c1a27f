# SPDX-License-Identifier: Apache-2.0
"""The verifier on trial: `tutti check --faults` finds every fault in every collective and names it; where it is made blind
on purpose, it says what it missed, and so does the exit code."""
import collections
import json
import re
import unittest

import support

WRONG = 1
TASKS = ["--ranks", "4", "--ranks-as", "tasks"]
OUTCOMES = ["caught", "missed", "not applicable", "not injected", "wrong without it"]
ROW = re.compile(rf"^  ({'|'.join(OUTCOMES)}) +([a-z_]+) +(.*)$")
SUM = re.compile(r"^# faults: (\d+) in (\d+) cells? as (\w+), seed (\d+): (\d+) caught \((\d+) without a named cause\), (\d+) "
                 r"missed, (\d+) not applicable, (\d+) not injected, (\d+) wrong without a fault", re.MULTILINE)


class Verifier(unittest.TestCase):
    def trial(self, *arguments, code=0, unnamed=0):
        """Rows as {cell: {fault: (outcome, text)}}, checked against the numbers of the last line, of which at most so many have no
        named cause."""
        result = support.run("check", *arguments)
        self.assertEqual(result.code, code, result)
        cells = collections.defaultdict(dict)
        cell = None
        for line in result.out.splitlines():
            row = ROW.match(line)
            if row:
                outcome, fault, text = row.groups()
                self.assertNotIn(fault, cells[cell])
                cells[cell][fault] = (outcome, text)
            elif line.endswith(" ranks"):
                cell = line
        numbers = SUM.search(result.out)
        self.assertTrue(numbers, result)
        seen = collections.Counter(outcome for rows in cells.values() for outcome, _ in rows.values())
        caught, without_cause, *others = (int(number) for number in numbers.groups()[4:])
        self.assertEqual([caught, *others], [seen[outcome] for outcome in OUTCOMES], result)
        self.assertLessEqual(without_cause, unnamed, result)
        return cells

    def test_every_fault_of_every_collective_is_caught_or_says_why_it_has_no_meaning(self):
        listed = json.loads(support.run("list", "--json").out)
        faults = {fault["name"] for fault in listed["faults"]}
        self.assertEqual(len(faults), 14)
        cells = self.trial("all", "--faults", "all", "--dtypes", "float", *TASKS)
        self.assertEqual({cell.split(",")[0] for cell in cells}, set(listed["collectives"]))
        for cell, rows in cells.items():
            with self.subTest(cell):
                self.assertEqual(set(rows), faults)
                self.assertEqual({outcome for outcome, _ in rows.values()} - {"caught", "not applicable"}, set())
                self.assertEqual([fault for fault, (_, text) in rows.items() if text == ""], [])
        self.assertIn("contribution is missing", cells["all_reduce, float (float) sum, 4 ranks"]["missing_rank"][1])

    def test_hardly_a_cause_is_not_named_in_any_class_of_dtypes(self):
        cells = self.trial("all", "--faults", "all", *TASKS, unnamed=3)  # as the README says
        self.assertGreater(len(cells), 50)
        self.assertEqual({row[0] for rows in cells.values() for row in rows.values()} - {"caught", "not applicable"}, set())

    def test_an_exscan_on_two_ranks_combines_nothing(self):
        cells = self.trial("exscan", "--faults", "all", "--ranks", "2", "--ranks-as", "tasks", "--seed", "2", unnamed=5)
        self.assertEqual({row[0] for rows in cells.values() for row in rows.values()}, {"caught", "not applicable"})

    def test_without_further_choices_ranks_are_four(self):
        self.assertEqual(list(self.trial("barrier", "--faults", "missing_rank", "--ranks-as", "tasks")), ["barrier, 4 ranks"])

    def test_the_same_seed_gives_the_same_rows_on_any_kind_of_ranks(self):
        some = ["all_reduce", "gather_v", "--faults", "flipped_bit,missing_rank,wrong_root,late_write", "--dtypes", "int32"]
        first = self.trial(*some, "--seed", "3", *TASKS)
        self.assertEqual(self.trial(*some, "--seed", "3", *TASKS), first)
        self.assertNotEqual(self.trial(*some, "--seed", "4", *TASKS), first)
        for kind in ["threads", "processes"]:
            rows = self.trial(*some, "--seed", "3", "--ranks", "4", "--ranks-as", kind)
            outcomes = {cell: {fault: row[0] for fault, row in faults.items()} for cell, faults in rows.items()}
            self.assertEqual(outcomes, {cell: {fault: row[0] for fault, row in faults.items()}
                                        for cell, faults in first.items()})


if __name__ == "__main__":
    unittest.main()
