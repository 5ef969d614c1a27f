# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them print with tutti what they print with Gloo, which is the same program with another name
for the backend. What Gloo cannot do is compared with what was worked out by hand."""
import pathlib
import unittest

import programs
import support

RUNS = "programs.py"


def floats(*numbers):
    return "tensor([" + ", ".join(f"{number:.0f}." for number in numbers) + "])"


class Programs(support.TestCase):
    def outputs(self, backend, ranks, names):
        """{program: [what each rank printed]}."""
        folder = self.folder()
        done = support.python(support.FOLDER / RUNS, backend, ranks, folder, *names)
        self.assertEqual(done.returncode, 0, f"{backend} on {ranks} ranks: {done.stdout}")
        return {name: [pathlib.Path(folder, f"{name}.{rank}").read_text() for rank in range(ranks)] for name in names}

    def compare(self, ranks):
        both = [name for name in programs.PROGRAMS if name not in programs.BEYOND_GLOO]
        ours = self.outputs("tutti", ranks, list(programs.PROGRAMS))
        theirs = self.outputs("gloo", ranks, both)
        for name in both:
            for rank in range(ranks):
                self.assertSameText(ours[name][rank], theirs[name][rank], f"{name}, rank {rank} of {ranks}")
        for rank in range(ranks):
            expected = self.expected(rank, ranks)
            for name in programs.BEYOND_GLOO:
                self.assertEqual(ours[name][rank].split("\n"), expected[name] + [""], f"{name}, rank {rank} of {ranks}")

    def expected(self, rank, ranks):
        everybody = range(ranks)
        total = sum(everybody)
        shard = ranks * rank
        return {
            "lists": [
                f"reduce_scatter {floats(*[total + ranks * rank] * 2)}",
                "all_to_all [" + ", ".join(floats(*[10 * peer + rank] * (peer + 1)) for peer in everybody) + "]",
                "all_gather [" + ", ".join(floats(*[peer] * peer) for peer in everybody) + "]",
                f"all_to_all_single {floats(*[10 * peer + rank for peer in everybody])}",
                *self.rows(rank, ranks),
            ],
            "averages": [
                f"avg {self.shown([total / ranks, 2 * total / ranks])}",
                f"premul_sum {self.shown([0.5 * (total + ranks)] * 2)}",
                f"torch.bool tensor([ True, False, {' True' if ranks > 1 else 'False'}])",
                f"torch.bfloat16 tensor([{ranks}., 0., {total}.], dtype=torch.bfloat16)",
                f"torch.int16 tensor([{ranks}, 0, {total}], dtype=torch.int16)",
            ],
            "sharded": [
                f"whole {floats(*[peer for peer in everybody for _ in range(3)])}",
                f"shard {floats(*[shard] * 3)}",
            ],
        }

    @staticmethod
    def shown(numbers):
        import torch
        return str(torch.tensor(numbers))

    @staticmethod
    def rows(rank, ranks):
        import torch
        rows = torch.tensor([[float(peer)] * 2 for peer in range(ranks) for _ in range(rank + 1)])
        return f"splits {rows}".split("\n")

    def test_one_rank_is_enough(self):
        self.compare(1)

    def test_two_ranks(self):
        self.compare(2)

    def test_three_ranks(self):
        self.compare(3)

    def test_four_ranks(self):
        self.compare(4)

    @support.at_night
    def test_eight_ranks(self):
        self.compare(8)


if __name__ == "__main__":
    unittest.main()
