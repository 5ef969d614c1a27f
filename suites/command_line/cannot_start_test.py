# SPDX-License-Identifier: Apache-2.0
"""References that cannot be started here: what they cost, and what is said of them. The surroundings are made with
unshare and setpriv; a script in the place of mpirun works when it is tried, and not when it is needed."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import support

BUILD = pathlib.Path(os.environ["TUTTI_BUILD"])
LATER = BUILD / "later_backends"  # one, "fails_later", whose start command is that of the environment
SWEEP = ["run", "all_reduce", "--sizes", "8", "--ranks", "2", "--budget", "50ms"]
FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
# Its words come from the environment: FLAG is a file that it makes when it has worked once.
SCRIPT = """#!/bin/sh
if [ -e "$FLAG" ]; then
  case $LATER in
    exit) echo "reading the licence" >&2; echo "licence server: connection refused" >&2; echo bye >&2; exit 7 ;;
    abort) kill -ABRT $$ ;;
    *) export TUTTI_TEST_FAULT=$LATER ;;
  esac
fi
touch "$FLAG"
exec "$MPIRUN" "$@"
"""


def mpirun():
    """Open MPI's own, as its backend names it."""
    said = support.run("probe", "openmpi")
    return json.loads(said.out)["start"]["command"][0]


class Later(unittest.TestCase):
    """The trial before the measurement works, and the start does not."""

    def environment(self, fault):
        folder = tempfile.TemporaryDirectory(prefix="tutti-test-")
        self.addCleanup(folder.cleanup)
        script = pathlib.Path(folder.name, "mpirun")
        script.write_text(SCRIPT)
        script.chmod(0o755)
        return {"TUTTI_BACKENDS": str(LATER), "TUTTI_TEST_MPIRUN": str(script), "LATER": fault, "MPIRUN": mpirun(),
                "FLAG": str(script) + ".worked"}

    def begin(self, fault, *words):
        return support.Run(*SWEEP, *words, *FILES, environment=self.environment(fault))

    def measured(self, run):
        return {(row["backend"], row["starter"]) for row in run.rows()[1] if row["verdict"] == "ok"}

    @support.needs_openmpi
    def test_one_that_nobody_named_is_left_out(self):
        with self.begin("exit") as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual({name for name, _ in self.measured(one)}, {"tutti", *support.REFERENCES}, result)
            why = r"ranks of backend fails_later cannot be started here: mpirun \(pid \d+\) exited with code 7: " \
                  r"licence server: connection refused"
            self.assertRegex(result.err, rf"(?m)^# without fails_later: {why}$")
            self.assertRegex(result.out, rf"(?m)^# left out: 1 x {why}$")
            (left_out,) = support.read_json(one.path / "record.json")["left_out"]
            self.assertRegex(left_out["reason"], f"^{why}$")
            self.assertEqual(one.left_behind(), [])

    def named(self, faults):
        for fault, said in faults.items():
            with self.subTest(fault), self.begin(fault, "--backends", "tutti,fails_later") as one:
                result = one.wait(60)
                self.assertEqual(result.code, 3, result)
                self.assertRegex(result.err, rf"(?m)^tutti: ranks of backend fails_later cannot be started here: .*{said}")
                self.assertEqual(self.measured(one), {("tutti", "spawn")}, result)
                self.assertEqual(one.left_behind(), [])

    @support.needs_openmpi
    def test_one_that_was_named_is_refused_and_the_others_are_measured(self):
        self.named({"abort": r"mpirun \(pid \d+\) was killed by signal 6", "leave": "exited with code 15"})

    @support.at_night
    @support.needs_openmpi
    def test_other_ways_to_fail(self):
        self.named({"exit": "licence server: connection refused", "crash": "was killed by signal 11",
                    "error": "no licence for this machine"})

    @support.at_night
    @support.needs_openmpi
    def test_beside_another_one(self):
        for launches in [1, 2]:
            with self.subTest(launches=launches), \
                    self.begin("exit", "--backends", "tutti,fails_later,openmpi", "--launches", launches) as one:
                result = one.wait(60)
                self.assertEqual(result.code, 3, result)
                self.assertEqual(self.measured(one), {("tutti", "openmpi"), ("openmpi", "openmpi")}, result)
                self.assertEqual(len(one.rows()[1]), 2 * launches)

    @support.at_night
    @support.needs_openmpi
    def test_a_soak(self):
        result = support.run("check", "soak", "--backends", "fails_later", "--ranks", "2", "--operations", "10",
                             environment=self.environment("exit"))
        self.assertEqual(result.code, 3, result)
        self.assertIn("tutti: ranks of backend fails_later cannot be started here: mpirun", result.err)


def can(*words):
    """Whether the machine lets us make such surroundings."""
    return shutil.which(words[0]) is not None and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0


GONE = 'cd "$(mktemp -d)" && rmdir "$PWD" && exec "$@"'
SMALL = 'mount -t tmpfs -o size=1m small /dev/shm && exec "$@"'
READ_ONLY = 'mount -t tmpfs -o ro small /dev/shm && exec "$@"'


def named(letters):
    """The name is in the table of hosts, as on most machines: how long a name server takes to deny it is no part of this."""
    name = "h" * letters
    table = f'table=$(mktemp) && cat /etc/hosts >"$table" && echo 127.0.1.1 {name} >>"$table" && mount --bind "$table" /etc/hosts && rm "$table"'
    return ["unshare", "--uts", "--mount", "sh", "-c", f'hostname {name} && {table} && exec "$@"', "sh"]


SURROUNDINGS = {
    "a host name of 57 letters": named(57),
    "a user whom passwd does not know": ["env", "-u", "HOME", "setpriv", "--reuid", "4242", "--clear-groups"],
    "a small /dev/shm": ["unshare", "--mount", "sh", "-c", SMALL, "sh"],
}
AT_NIGHT = {
    "no working directory": ["sh", "-c", GONE, "sh"],
    "a host name of 64 letters": named(64),
    "a read-only /dev/shm": ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh"],
    "no network": ["unshare", "--net"],
    "few files": ["sh", "-c", 'ulimit -n 48 && exec "$@"', "sh"],
    "variables of an MPI that is none": ["env", "OMPI_MCA_btl=none", "UCX_TLS=none", "OMPI_MCA_ess=none", "GLOO_INTERFACE=none"],
}


class Surroundings(unittest.TestCase):
    """None of the references has to start in them; what each MPI makes of them is its own affair."""

    def tried(self, surroundings):
        for name, words in surroundings.items():
            with self.subTest(name):
                if not can(*words):
                    self.skipTest(f"this machine does not let us have {name}")
                with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
                    os.chmod(folder, 0o777)
                    rows = pathlib.Path(folder, "rows.csv")
                    result = support.run(*words[1:], support.PROGRAM, *SWEEP, "--csv", rows, program=words[0],
                                         environment={"TMPDIR": "/tmp"})
                    self.assertEqual(result.code, 0, result)
                    measured = {row["backend"] for row in support.read_csv(rows)[1] if row["verdict"] == "ok"}
                without = {line.split()[2].rstrip(":") for line in result.err.splitlines() if line.startswith("# without ")}
                self.assertEqual(measured - without, {"tutti", *support.REFERENCES} - without, result)
                self.assertIn("tutti", measured)
                self.assertEqual(measured & without, set(), result)
                # All are started at once there: in little memory one of them may be in the way of another.
                for _ in range(3):
                    listed = support.run(*words[1:], support.PROGRAM, "list", "--json", program=words[0],
                                         environment={"TMPDIR": "/tmp"})
                    available = {one["name"] for one in json.loads(listed.out)["backends"] if one["available"]}
                    if available == measured:
                        break
                self.assertEqual(available, measured, listed)

    def test_what_cannot_be_started_is_left_out_and_listed_so(self):
        self.tried(SURROUNDINGS)

    @support.at_night
    def test_more_of_them(self):
        self.tried(AT_NIGHT)


if __name__ == "__main__":
    unittest.main()
