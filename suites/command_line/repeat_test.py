# SPDX-License-Identifier: Apache-2.0
"""`tutti check repeat`: the same bits in all calls and launches, or the first that differ."""
import json
import os
import re
import unittest

import support


class Repeat(unittest.TestCase):
    def repeat(self, *arguments, code=0, **options):
        with support.Run("check", "repeat", *arguments, "--json", "{folder}/found.json", **options) as one:
            result = one.wait(120)
            self.assertEqual(result.code, code, result)
            self.assertEqual(one.left_behind(), [])
            return result, json.loads((one.path / "found.json").read_text())

    def systems(self, found):
        return [system for cell in found["cells"] for system in cell["systems"]]

    def test_our_algorithms_have_the_same_bits_in_every_launch(self):
        for ranks_as in ["processes", "threads", "tasks"]:
            result, found = self.repeat("all_reduce", "broadcast", "--launches", "3", "--backends", "tutti", "--sizes", "8,1000", "--ranks", "3",
                                        "--ranks-as", ranks_as)
            for system in self.systems(found):
                self.assertEqual((system["launches"], system["calls"], system["equal"], system["differ"]), (3, 2, True, 0), system)
                self.assertEqual(system["results"], 3 * (3 * 2 - 1), "of three ranks, all but the first")
            self.assertIn(" 0 differ and must be equal", result.out)
            self.assertEqual(re.findall(r"(?m)^(\w+)/\w+/float/\w+/P3[^ ]*/(\d+)B/", result.out),
                             [("all_reduce", "8"), ("all_reduce", "1000"), ("broadcast", "8"), ("broadcast", "1000")], result)

    def test_between_systems_sums_of_floats_may_differ_and_nothing_else(self):
        words = ["--ranks", "4", "--sizes", "4K", "--launches", "1"]
        result, found = self.repeat("all_reduce", *words, "--backends", ",".join(support.SYSTEMS))
        self.assertEqual(len(found["cells"]), 1)
        self.assertTrue(found["cells"][0]["systems_may_differ"])
        apart = [system for system in self.systems(found) if system.get("equal_to_other") is False]
        self.assertTrue(apart, "four floats are added in more than one order")
        self.assertRegex(result.out, r"differs, as it may \(rounded in another order\), from tutti\.\w+: first in rank 0, element \d+, bit \d+: "
                                     r"\S+ \(0x[0-9a-f]{8}\), where that has \S+ \(0x[0-9a-f]{8}\)")
        first = apart[0]["first_difference_from_other"]
        self.assertNotEqual(first["value"], first["other_value"])
        _, found = self.repeat("all_reduce", "all_gather", *words, "--backends", ",".join(support.SYSTEMS), "--dtypes", "int32")
        for system in self.systems(found)[1:]:
            self.assertTrue(system.get("equal_to_other", True), system)
        self.assertFalse(any(cell["systems_may_differ"] for cell in found["cells"]))

    @support.needs_openmpi
    def test_one_bit_of_one_launch_is_found(self):
        environment = {"TUTTI_BACKENDS": os.environ["TUTTI_LAZY_BACKENDS"], "TUTTI_ONE_BIT_LAUNCH": "2", "TUTTI_ONE_BIT_COUNT": "{folder}/count"}
        words = ["all_reduce", "--backends", "one_bit", "--ranks", "2", "--sizes", "8,64", "--launches", "3"]
        result, found = self.repeat(*words, code=1, environment=environment)
        self.assertEqual(found["wrong"], 1)
        system, = [system for system in self.systems(found) if not system["equal"]]
        self.assertIn("/64B/", system["case"])
        self.assertEqual(system["differ"], 1)
        first = system["first_difference"]
        self.assertEqual([first[name] for name in ["launch", "call", "rank", "element", "bit", "elements"]], [2, 1, 1, 5, 0, 1])
        self.assertRegex(result.out, r"one_bit +3 launches x 2 calls: differs from itself, and must be equal: first in launch 2, call 1, rank 1, "
                                     r"element 5, bit 0: \S+ \(0x[0-9a-f]{8}\), where its first result has \S+ \(0x[0-9a-f]{8}\); "
                                     r"1 element, and 1 of 10 results")
        bits = [int(re.search(r"0x([0-9a-f]+)", first[name])[1], 16) for name in ["value", "other_value"]]
        self.assertEqual(bits[0] ^ bits[1], 1)

    def test_what_has_no_meaning_is_refused(self):
        for words, parts in [("repeat barrier", ["no result", "all_reduce"]),
                             ("repeat --sizes 128M --backends tutti", ["--sizes", "64M"]),
                             ("repeat --sizes 32M,33M,34M --ranks 8 --backends tutti", ["--sizes", "1G"]),
                             ("repeat --calls 0", ["--calls"]),
                             ("repeat --launches 1 --calls 1", ["--launches 2"]),
                             ("repeat --json -", ["--json"]),
                             ("--ranks 2 repeat", ["--ranks", "come after `repeat`"]),
                             ("repeat --backends ompi", ["'ompi'", "did you mean 'openmpi'?"] if support.HAS_OPENMPI else ["'ompi'"])]:
            with self.subTest(words):
                result = support.run("check", *words.split(), limit=20)
                self.assertEqual(result.code, 2, result)
                for part in parts:
                    self.assertIn(part, result.err, result)


if __name__ == "__main__":
    unittest.main()
