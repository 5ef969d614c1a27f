# SPDX-License-Identifier: Apache-2.0
"""Transports: what `tutti list` says of them, what --transports takes, and shared objects in TUTTI_TRANSPORTS."""
import json
import os
import pathlib
import shutil
import signal
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
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            return result, run.rows()[1]

    def record(self, *words, environment):
        with support.Run(*words, "--json", "{folder}/record.json", environment=environment) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            return support.read_json(run.path / "record.json")

    def test_the_list_has_those_of_the_build(self):
        rows = self.list()
        self.assertEqual(rows["shm"]["serves"], ["processes"])
        self.assertEqual(rows["local"]["serves"], ["threads", "tasks", "blocks"])
        self.assertEqual(rows["tcp"]["serves"], list(KINDS))
        self.assertEqual(rows["fake"]["serves"], ["threads", "tasks"])
        self.assertIn("cuda", rows)
        for name in ["verbs", "cuda"]:  # what they need is not everywhere
            rows.pop(name, None)
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


@unittest.skipUnless((OBJECTS / "verbs").exists(), "built without libibverbs")
class Verbs(unittest.TestCase):
    """The transport over RDMA, on a double of its library that has two devices. ci/soft-roce runs it on real ones."""

    WORDS = ["--transports", "verbs"]
    HOSTS = [*WORDS, "--pretend-hosts", 2]

    def done(self, *words, code=0, devices=2):
        result = support.run(*words, environment={**among("verbs"), "TUTTI_DOUBLE_DEVICES": str(devices)})
        self.assertEqual(result.code, code, result)
        return result

    def test_the_list_has_its_devices_or_why_there_is_none(self):
        self.assertRegex(self.done("list").out, r"(?m)^  verbs +processes on several hosts, over RDMA .*; double0 port 1 "
                         r"\(10\.78\.0\.1\), double1 port 1 \(10\.78\.0\.2\); .*libtutti_transport_verbs\.so$")
        row = {row["name"]: row for row in json.loads(self.done("list", "--json", devices=0).out)["transports"]}["verbs"]
        self.assertFalse(row["available"])
        self.assertIn("no RDMA device: /sys/class/infiniband ", row["note"])

    def test_without_a_device_nothing_starts(self):
        for command in [["run", "all_reduce"], ["check", "all_reduce"], ["check", "soak"]]:
            result = self.done(*command, *self.HOSTS, "--ranks", 2, code=3, devices=0)
            self.assertIn("transport verbs: no RDMA device: /sys/class/infiniband ", result.err)

    def test_all_that_needs_no_memory_of_others_is_checked(self):
        for ranks_as in ["processes", "threads"]:
            with self.subTest(ranks_as):
                result = self.done("check", "all", "--ranks", "2,3", "--ranks-as", ranks_as, *self.HOSTS, "--dtypes", "float",
                                   "--ops", "sum")
                self.assertRegex(result.out, r"# check: (\d\d\d+) cases as \w+, \1 ok, 0 wrong, 0 neither, 0 not run")
                self.assertRegex(result.out, r"# left out: \d+ x all_reduce two_shot, which touches memory of other hosts\n")

    def test_a_run_is_measured_and_verified(self):
        with support.Run("run", "all_reduce", "barrier", "sendrecv", "--ranks", 4, *self.HOSTS, "--sizes", "8,64K", "--budget",
                         "2s", "--csv", "{folder}/rows.csv", environment=among("verbs")) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            rows = run.rows()[1]
            self.assertEqual({(row["transport"], row["verdict"], row["backend"]) for row in rows}, {("verbs", "ok", "tutti")}, result)
            self.assertEqual(run.left_behind(), [])

    def test_a_rank_that_is_killed_is_named(self):
        with support.Run("run", "all_reduce", "--ranks", 3, *self.HOSTS, "--sizes", "8:1M:x2", "--budget", "60s", "--csv",
                         "{folder}/rows.csv", environment=among("verbs")) as run:
            pids = run.wait_for_ranks(3)
            run.wait_for_rows(1)
            os.kill(pids[2], signal.SIGKILL)
            result = run.wait(10)
            self.assertEqual(result.code, 5, result)
            self.assertRegex(result.err, r"(?m)^tutti: rank 2 \(pid \d+\).* was killed by signal 9")
            self.assertEqual(run.left_behind(), [])

    def test_an_address_that_no_device_has_is_refused_with_those_there_are(self):
        result = self.done("run", "all_reduce", "--hosts", "127.0.0.1,localhost", "--interface", "127.0.0.1", *self.WORDS,
                           "--budget", "1s", code=3)
        self.assertIn("no RDMA device here has the address 127.0.0.1", result.err)
        self.assertIn("double0 port 1 (10.78.0.1), double1 port 1 (10.78.0.2)", result.err)


if __name__ == "__main__":
    unittest.main()
