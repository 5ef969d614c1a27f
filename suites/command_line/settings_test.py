# SPDX-License-Identifier: Apache-2.0
"""Settings as systems: one library under several settings in one run, and what is refused."""
import json
import unittest

import support

NO_COPY = "openmpi{btl_vader_single_copy_mechanism=none}"
OVER_TCP = "openmpi{btl=self,tcp}"


class Settings(unittest.TestCase):
    def measure(self, backends, *arguments):
        with support.Run("run", "all_reduce", "--backends", backends, "--ranks", "2", "--sizes", "64K", "--iterations", "20", *arguments,
                         "--csv", "{folder}/rows.csv", "--json", "{folder}/run.json", "--samples", "{folder}/samples.csv") as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            samples = support.read_csv(one.path / "samples.csv")[1]
            self.drawn = support.run("report", one.path / "run.json", "--svg", one.path / "svg")
            self.pictures = {path.name: path.read_text() for path in (one.path / "svg").glob("time-*.svg")}
            return one.rows()[1], support.read_json(one.path / "run.json"), samples, result

    @support.needs_openmpi
    def test_each_is_a_system_whose_library_has_the_setting(self):
        """Also where the start command sets the same by a flag."""
        systems = ["openmpi", NO_COPY, OVER_TCP]
        rows, record, samples, result = self.measure(",".join(systems))
        self.assertEqual([row["backend"] for row in rows], systems)
        self.assertEqual({row["verdict"] for row in rows}, {"ok"}, result)
        self.assertEqual([row["starter"] for row in rows], systems)
        self.assertEqual(len({row["launch"] for row in rows}), 3)
        self.assertEqual(result.out.count("# all_reduce float sum"), 1, "one block of the table")
        for row, system in zip(rows, systems):
            self.assertIn(f"all_reduce/{system}.none/", row["case"])
        self.assertEqual([row["case"] for row in record["rows"]], [row["case"] for row in rows])
        self.assertLessEqual({row["case"] for row in rows}, {sample["case"] for sample in samples})
        if self.drawn.code != 3:  # nothing that draws is installed
            self.assertEqual(len(self.pictures), 1, self.drawn)
            for system in systems:
                self.assertIn(system[:20], *self.pictures.values())  # a long one is cut
        versions = {name: json.loads(text) for name, text in record["versions"].items()}
        self.assertEqual(versions[NO_COPY]["single_copy"], "none")
        self.assertEqual(versions[NO_COPY]["transport"], versions["openmpi"]["transport"])
        self.assertIn("tcp", versions[OVER_TCP]["transport"])
        self.assertNotIn("tcp", versions["openmpi"]["transport"])

    @support.needs_openmpi
    def test_a_case_runs_by_its_id_and_two_results_are_compared(self):
        name = f"all_reduce/{NO_COPY}.none/shm/float/sum/P2.processes/none/4096B/out/private/isolated"
        with support.Run("run", "--case", name, "--iterations", "20", "--csv", "{folder}/rows.csv") as one:
            result = one.wait(30)
            self.assertEqual(result.code, 0, result)
            self.assertEqual([row["case"] for row in one.rows()[1]], [name])
            compared = support.run("compare", one.path / "rows.csv", one.path / "rows.csv")
            self.assertEqual(compared.code, 0, compared)
            self.assertRegex(compared.out, r"(?m)^  \S*openmpi\{btl_vader_single_copy_mechanism=none\}\.none\S* under openmpi\{.* same$")

    @support.needs_openmpi
    def test_twice_the_same_are_twins(self):
        rows, _, _, _ = self.measure(f"{NO_COPY},{NO_COPY}")
        self.assertEqual([row["backend"] for row in rows], [NO_COPY, NO_COPY + ":2"])
        self.assertEqual(len({row["launch"] for row in rows}), 1)

    @support.needs_openmpi
    def test_a_name_that_the_library_does_not_know_is_no_system(self):
        result = support.run("run", "all_reduce", "--backends", "openmpi{coll_tuned_nonsense=1}", "--ranks", "2", "--sizes", "8",
                             limit=30)
        self.assertEqual(result.code, 3, result)
        self.assertIn("Open MPI has no setting 'coll_tuned_nonsense' in a rank", result.err)

    @support.needs("mpich")
    def test_of_mpich(self):
        system = "mpich{ALLREDUCE_INTRA_ALGORITHM=recursive_doubling}"
        rows, _, _, _ = self.measure(system)
        self.assertEqual([(row["backend"], row["verdict"]) for row in rows], [(system, "ok")])
        result = support.run("run", "all_reduce", "--backends", "mpich{NONSENSE=1}", "--ranks", "2", "--sizes", "8",
                             limit=30)
        self.assertEqual(result.code, 3, result)
        self.assertIn("MPICH has no setting 'MPIR_CVAR_NONSENSE' in a rank", result.err)

    def test_what_has_none_is_named(self):
        for backends, parts in [("tutti{a=1}", ["'tutti' has no settings", "did you mean 'tutti'?"]),
                                *([("gloo{a=1}", ["'gloo' has no settings"])] if "gloo" in support.BUILT else []),
                                *([("openmpi{OMPI_MCA_coll=^han}", ["'OMPI_MCA_coll'", "did you mean 'coll'?"]),
                                   ("openmpi{coll=^han", ["braces do not match"]),
                                   ("openmpi{coll=/x}", ["'/x'", "letters, digits"]),
                                   ("openmpi{coll=\x1b[31mred}", ["must have letters, digits"]),
                                   ("openmpi{coll}", ["setting 'coll' has no value"])] if support.HAS_OPENMPI else [])]:
            for command in [["run", "all_reduce", "--backends", backends], ["guidelines", "--backends", backends],
                            ["gate", "--against", backends]]:
                with self.subTest(command):
                    result = support.run(*command, "--ranks", "2", limit=20)
                    self.assertEqual(result.code, 2, result)
                    self.assertNotIn("\x1b", result.err)
                    for part in parts:
                        self.assertIn(part, result.err)

    @support.needs_openmpi
    def test_guidelines_of_one_with_settings(self):
        with support.Run("guidelines", "reduce", "--backends", NO_COPY, "--ranks", "2", "--sizes", "64K", "--blocks", "8", "--json",
                         "{folder}/found.json") as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            cells = json.loads((one.path / "found.json").read_text())["cells"]
        self.assertIn(f"reduce <= all_reduce/{NO_COPY}/P2/65536B", [cell["cell"] for cell in cells])


if __name__ == "__main__":
    unittest.main()
