# SPDX-License-Identifier: Apache-2.0
"""Transports: what `tutti list` says of them, what --transports takes, and shared objects in TUTTI_TRANSPORTS."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

import support

OBJECTS = pathlib.Path(os.environ["TUTTI_BUILD"]) / "test_transports"
KINDS = ["processes", "threads", "tasks"]


def among(*folders):
    return {"TUTTI_TRANSPORTS": ":".join(str(OBJECTS / folder) for folder in folders)}


class Transports(unittest.TestCase):
    def list(self, environment=None):
        result = support.run("list", "--json", environment=environment)
        self.assertEqual(result.code, 0, result)
        return {row["name"]: row for row in json.loads(result.out)["transports"]}

    def refused(self, code, *words, names, environment=None):
        result = support.run(*words, environment=environment)
        self.assertEqual(result.code, code, result)
        for name in names:
            self.assertIn(name, result.err)

    def rows(self, *words, environment):
        with support.Run(*words, "--csv", "{folder}/rows.csv", environment=environment) as run:
            result = run.wait(support.patience(60))
            self.assertEqual(result.code, 0, result)
            return result, run.rows()[1]

    def record(self, *words, environment):
        with support.Run(*words, "--json", "{folder}/record.json", environment=environment) as run:
            result = run.wait(support.patience(60))
            self.assertEqual(result.code, 0, result)
            return support.read_json(run.path / "record.json")

    def test_the_list_has_those_of_the_build(self):
        rows = self.list()
        self.assertEqual(rows["shm"]["serves"], ["processes"])
        self.assertEqual(rows["local"]["serves"], ["threads", "tasks", "blocks"])
        self.assertEqual(rows["tcp"]["serves"], list(KINDS))
        self.assertEqual(rows["fake"]["serves"], ["threads", "tasks"])
        self.assertTrue(all(row["available"] for row in rows.values()))
        self.assertEqual({name for name, row in rows.items() if row["addresses_peers"]}, {"local", "shm"})
        self.assertEqual(sorted(rows), ["fake", "local", "shm", "tcp"])

    def test_the_list_has_shared_objects_and_why_one_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "libtutti_transport_broken.so"
            broken.write_text("no shared object")
            environment = among("arena", "old", "renamed")
            environment["TUTTI_TRANSPORTS"] += f":{folder}:/nowhere"
            rows = self.list(environment)
        self.assertEqual(rows["arena"]["serves"], [*KINDS, "blocks"])
        self.assertIn("libtutti_transport_arena.so", rows["arena"]["note"])
        for name, words in [("old", ["built for tutti 0.0.9", "this program is tutti ", "build it again"]),
                            ("renamed", ["'elsewhere'", "libtutti_transport_elsewhere.so"]),
                            ("broken", ["broken", "cannot be loaded"])]:
            self.assertFalse(rows[name]["available"])
            for word in words:
                self.assertIn(word, rows[name]["note"])
        text = support.run("list", environment=environment).out
        self.assertRegex(text, r"(?m)^  arena +a test's own memory; .*libtutti_transport_arena\.so$")
        self.assertRegex(text, r"(?m)^  old +not available: transport old was built for tutti 0\.0\.9")

    def test_ranks_of_each_kind_run_on_one_that_is_loaded(self):
        for ranks_as in KINDS:
            with self.subTest(ranks_as):
                record = self.record("run", "all_reduce", "broadcast", "barrier", "--backends", "tutti", "--ranks", 2,
                                     "--ranks-as", ranks_as, "--transports", "arena", "--sizes", "8,64K", "--buffers",
                                     "private,shared", "--budget", "1s", environment=among("arena"))
                rows = record["rows"]
                self.assertGreater(len(rows), 5)
                self.assertEqual({(row["transport"], row["verdict"]) for row in rows}, {("arena", "ok")})
                self.assertTrue(all("/arena/" in row["case"] for row in rows))
                self.assertIn('"transport":"arena"', record["versions"]["tutti"], "the domain, not the row alone")
                case = next(row["case"] for row in rows if row["collective"] == "all_reduce")
                again = support.run("check", "--case", case, environment=among("arena"))
                self.assertEqual(again.code, 0, again)

    def test_a_check_runs_on_one_that_is_loaded(self):
        for ranks_as in KINDS:
            with self.subTest(ranks_as):
                result, rows = self.rows("check", "all_reduce", "barrier", "--ranks", 3, "--ranks-as", ranks_as, "--transports",
                                         "arena", "--dtypes", "float", "--ops", "sum", environment=among("arena"))
                self.assertGreater(len(rows), 50)
                self.assertEqual({(row["transport"], row["verdict"]) for row in rows}, {("arena", "ok")}, result)
        soak = support.run("check", "soak", "--ranks", 3, "--ranks-as", "threads", "--transports", "arena", "--operations", 200,
                           environment=among("arena"))
        self.assertEqual(soak.code, 0, soak)
        self.assertIn("--ranks-as threads --transports arena", soak.out)

    def test_two_are_held_against_each_other(self):
        _, rows = self.rows("run", "all_reduce", "--backends", "tutti", "--ranks", 2, "--ranks-as", "threads", "--transports",
                            "local,arena", "--sizes", "8", "--budget", "1s", environment=among("arena"))
        self.assertEqual([(row["transport"], row["verdict"]) for row in rows], [("local", "ok"), ("arena", "ok")])

    def test_one_that_nobody_chose_does_not_run(self):
        for environment in [among("arena"), among("old")]:
            _, rows = self.rows("run", "barrier", "--backends", "tutti", "--ranks", 2, "--ranks-as", "threads", "--budget",
                                "300ms", environment=environment)
            self.assertEqual({row["transport"] for row in rows}, {"local"})

    def test_one_that_cannot_be_used_is_refused_by_name(self):
        words = ["run", "barrier", "--ranks", 2, "--ranks-as", "threads", "--transports"]
        self.refused(3, *words, "old", environment=among("old"),
                     names=["--transports", "old", "built for tutti 0.0.9", "this program is tutti ", "build it again"])
        self.refused(3, *words, "renamed", environment=among("renamed"), names=["'elsewhere'"])
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "libtutti_transport_broken.so").write_text("no shared object")
            (pathlib.Path(folder) / "libtutti_transport_shm.so").write_text("no shared object")
            shutil.copy(OBJECTS / "arena" / "libtutti_transport_arena.so", folder)
            environment = {"TUTTI_TRANSPORTS": folder}
            self.refused(3, *words, "broken", environment=environment, names=["broken", "cannot be loaded"])
            _, rows = self.rows(*words, "arena", "--backends", "tutti", "--budget", "300ms", environment=environment)
            self.assertEqual({row["verdict"] for row in rows}, {"ok"})
            self.assertIn("is in the program already", support.run("list", environment=environment).out)

    def test_a_wrong_name_is_refused_with_the_nearest_right_one(self):
        self.refused(2, "run", "barrier", "--transports", "shn", names=["--transports", "'shn'", "did you mean 'shm'?",
                                                                        "libtutti_transport_shn.so"])
        self.refused(2, "run", "barrier", "--transports", "aena", environment=among("arena"), names=["did you mean 'arena'?"])
        self.refused(2, "run", "barrier", "--transports", "local", names=["'local' with processes", "did you mean 'shm'?"])
        for command in [["run"], ["check"], ["check", "soak"]]:
            target = ["barrier"] if command[-1] != "soak" else []
            self.refused(2, *command, *target, "--ranks-as", "tasks", "--transports", "shm",
                         names=["'shm' with tasks", "did you mean 'local'?"])
        self.refused(2, "run", "barrier", "--transports", "shm,,shm", names=["did you mean 'shm,shm'?"])
        case = "barrier/tutti.dissemination/arena/none/none/P2.processes/none/0B/none/none/isolated"
        self.refused(2, "run", "--case", case, names=["--case", "'arena'", "libtutti_transport_arena.so"])
        case = case.replace("arena", "shm")
        self.refused(2, "run", "--case", case, "--transports", "shm", names=["--transports", "leave --transports out"])


if __name__ == "__main__":
    unittest.main()
