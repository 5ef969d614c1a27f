# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them print with tutti what they print with Gloo, which is the same program with another name
for the backend. What Gloo cannot do is compared with what was worked out by hand."""
import pathlib
import unittest

import torch

import programs
import support

def shown(numbers, dtype=torch.float):
    return str(torch.tensor(numbers, dtype=dtype))


class Programs(support.TestCase):
    def outputs(self, backend, ranks, names):
        """{program: [what each rank printed]}."""
        folder = self.folder()
        done = support.python(support.FOLDER / "programs.py", backend, ranks, folder, *names)
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
                self.assertEqual(ours[name][rank], expected[name] + "\n", f"{name}, rank {rank} of {ranks}")

    @staticmethod
    def expected(rank, ranks):
        """What a rank prints, by program."""
        everybody = range(ranks)
        total = sum(everybody)
        return {
            "lists": "\n".join([
                f"reduce_scatter {shown([float(total + ranks * rank)] * 2)}",
                f"all_to_all {[torch.full((peer + 1,), 10.0 * peer + rank) for peer in everybody]}",
                f"all_gather {[torch.full((peer,), float(peer)) for peer in everybody]}",
                f"all_to_all_single {shown([10.0 * peer + rank for peer in everybody])}",
                f"splits {shown([[float(peer)] * 2 for peer in everybody for _ in range(rank + 1)])}",
            ]),
            "averages": "\n".join([
                f"avg {shown([total / ranks, 2 * total / ranks])}",
                f"premul_sum {shown([0.5 * sum(peer + 1 for peer in everybody)] * 2)}",
                f"torch.bool {shown([True, False, ranks > 1], torch.bool)}",
                f"torch.bfloat16 {shown([ranks, 0, total], torch.bfloat16)}",
                f"torch.int16 {shown([ranks, 0, total], torch.int16)}",
            ]),
            "logic": "\n".join([
                *[f"{name} {shown([any_of or ranks == 1, name != 'BXOR' or ranks % 2 == 1, False], torch.bool)}"
                  for name, any_of in [("SUM", True), ("PRODUCT", False), ("MIN", False), ("MAX", True), ("BAND", False),
                                       ("BOR", True), ("BXOR", True)]],
                str(torch.tensor([[0.0, float(rank > 0), 0.0, 0.0]] * 3)),
                f"exchanged where they lie {shown([10.0 * peer + rank for peer in everybody])}",
                f"and turned by one {shown([10.0 * peer + (rank + 1) % ranks for peer in everybody])}",
                f"and added up {shown(10.0 * rank * ranks + total)}",
                f"{[torch.tensor([(1 - 2j) * (peer + 1)]) for peer in everybody]} {torch.tensor([1 + 2j])}",
            ]),
            "sharded": "\n".join([
                f"whole {shown([float(peer) for peer in everybody for _ in range(3)])}",
                f"shard {shown([float(ranks * rank)] * 3)}",
            ]),
        }

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
