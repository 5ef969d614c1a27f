# SPDX-License-Identifier: Apache-2.0
"""How hosts are written: lists, hostfiles, variables of starters, places to meet. Each kind is read everywhere, what is
misread elsewhere is refused by name, and an agent gets nothing that it could take for an option."""
import pathlib
import tempfile
import unittest

import support

SECRET = "5e" * 32
EVIL = "[-Fevil.cfg]"
# Its words go to a file beside it; then it runs the command here.
RECORDER = """#!/bin/sh
printf '%s\\n' "$1" >>"$0.hosts"
shift
exec "$@"
"""
# What a login shell prints before the host's answer.
LOUD = """#!/bin/sh
{noise}
shift
exec "$@"
"""


class HostLists(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-hosts-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def file(self, name, content, mode=0o644):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)
        return path

    def recorder(self):
        agent = self.file("recorder", RECORDER, 0o755)
        agent.with_name("recorder.hosts").unlink(missing_ok=True)
        return agent

    def recorded(self, agent):
        """The hosts that the agent was called for."""
        path = agent.with_name("recorder.hosts")
        return path.read_text().splitlines() if path.exists() else []

    def ranks_on(self, *words):
        """How many ranks there would be on all hosts."""
        result = support.run("run", "barrier", *words, "--list")
        self.assertEqual((result.code, result.err), (0, ""), result)
        return int(result.out.partition("/P")[2].partition(".")[0])

    def refused(self, says, *words, code=2, environment=None):
        result = support.run(*words, environment=environment)
        self.assertEqual((result.code, result.out), (code, ""), result)
        self.assertIn(says, result.err)
        return result

    def test_every_form_of_a_list_is_read(self):
        for text, ranks in [("a:2,b:2", 4), ("n[1-3,7]:2,m", 9), ("rack[0-1]node[01-64,70]:2", 260), ("[fe80::1%eth0]:2,[::2]", 3),
                            ("a,a:2", 3)]:
            self.assertEqual(self.ranks_on("--hosts", text), ranks, text)

    def test_hostfiles_of_slurm_open_mpi_and_mpich_are_read(self):
        for text, ranks in [("n1\nn2\n", 2), ("n1\nn1\nn2\n", 3), ("n1 2\nn2 3\n", 5), ("# MPICH\nn1:2\nn2:2  # two\n", 4),
                            ("n1 slots=2 max_slots=4\nn2 slots = 2\n", 4), ("\ufeffn1:2\r\n\r\nn2 2\r\n", 4),
                            ("[2001:db8::7]:2\n[fe80::1%eth0] slots=2\n", 4), ("n[01-04] slots=2", 8)]:
            self.assertEqual(self.ranks_on("--hostfile", self.file("hosts", text)), ranks, text)

    def test_what_is_misread_elsewhere_is_refused(self):
        for text, says in [
                ("2001:db8::7", "an IPv6 address stands in brackets: write [2001:db8::7], or with a number of slots [2001:db8::7]:2"),
                ("fd00:1::1,fd00:1::2", "write [fd00:1::1], or with a number of slots [fd00:1::1]:2"),
                ("a:2:2", "'a:2:2' has 2 colons: a number of slots comes after one"),
                ("a:5000", "'5000' is not a number of slots of host 'a': a whole number from 1 to 4096: did you mean '4096'?"),
                ("n[5-2]", "the range '5-2' descends: did you mean '2-5'?"),
                ("n[1-99999]", "'n[1-99999]' names too many hosts: a list has 1 to 65536"),
                ("n[1-2", "'n[1-2' has a '[' without a ']'"),
                ("[192.0.2.7]:2", "did you mean '192.0.2.7'?"),
                ("a b", "'a b' is no name of a host"),
                ("me@-v", "'-v' is no name of a host"),
                ("n[1-9]:1024", "have room for 9216 ranks, and a job has 1 to 4096: did you mean --ranks 4096?")]:
            with self.subTest(text):
                self.refused(says, "run", "barrier", "--hosts", text)
        for text, says in [("a\nn1:2 binding=user:0\n", "line 2: 'binding=' after 'n1:2' is not known"),
                           ("a slots=4 max_slots=2\n", "line 1: host 'a' has 4 slots and at most 2: did you mean 'a slots=2'?"),
                           ("a:2 2\n", "line 1: 'a:2' has two numbers of slots"), (b"a\0b\n", "it is no text: its byte 2 is 0")]:
            with self.subTest(text):
                self.refused(says, "run", "barrier", "--hostfile", self.file("hosts", text))

    def test_no_agent_gets_an_option_in_place_of_a_host(self):
        agent = self.recorder()
        on = ["--agent", agent, "--interface", "lo"]
        says = f"'{EVIL}' is no address"
        hostfile = self.file("evil", f"localhost 1\n{EVIL} 1\n")
        for words in [["run", "all_reduce"], ["doctor"], ["check", "barrier"], ["gate", "--against", self.folder]]:
            with self.subTest(words):
                self.refused(says, *words, "--hosts", f"localhost,{EVIL}", *on)
                self.refused("line 2: " + says, *words, "--hostfile", hostfile, *on)
                self.refused("is no name of a", *words, "--hosts", "localhost,me@-oProxyCommand=x", *on)
        self.refused("--interface: '-i' is neither a name", "run", "barrier", "--hosts", "a,b", "--agent", agent, "--interface=-i")
        self.assertEqual(self.recorded(agent), [])

    def test_an_agent_gets_names_and_addresses_as_they_are(self):
        agent = self.recorder()
        result = support.run("doctor", "--hosts", "rack[0-1]n,me@b,[FE80:0::1%lo]", "--agent", agent, "--interface", "lo")
        self.assertEqual(result.err, "", result)
        self.assertEqual(sorted(self.recorded(agent)), ["fe80::1%lo", "me@b", "rack0n", "rack1n"])

    def test_a_place_to_meet_is_no_option_either(self):
        started = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "TUTTI_SECRET": SECRET}
        srun = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_STEP_NUM_NODES": "2", "SLURM_NODEID": "0", "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "TUTTI_SECRET": SECRET}
        address = f"'{EVIL}' is no address"
        for says, environment in [
                (f"MASTER_ADDR: {address}", {**started, "MASTER_ADDR": EVIL, "TUTTI_PORT": "29400"}),
                ("MASTER_ADDR: '-v' is no name of a host", {**started, "MASTER_ADDR": "-v", "TUTTI_PORT": "29400"}),
                (f"'tcp://{EVIL}:5': {address}", {**started, "TUTTI_INIT": f"tcp://{EVIL}:5"}),
                ("write [fd00:1::1]:5", {**started, "TUTTI_INIT": "tcp://fd00:1::1:5"}),
                ("TUTTI_INTERFACE: '-i' is neither", {**started, "MASTER_ADDR": "127.0.0.1", "TUTTI_PORT": "29400", "TUTTI_INTERFACE": "-i"}),
                (f"SLURM_STEP_NODELIST: {address}", {**srun, "SLURM_STEP_NODELIST": EVIL}),
                ("SLURM_STEP_NODELIST: 'n[1-2' has a '['", {**srun, "SLURM_STEP_NODELIST": "n[1-2"}),
                ("SLURM_STEP_TASKS_PER_NODE: '1(x' is no list", {**srun, "SLURM_STEP_NODELIST": "n[1-2]", "SLURM_STEP_TASKS_PER_NODE": "1(x"})]:
            with self.subTest(says):
                self.refused(says, "run", "barrier", "--timeout", "3s", environment=environment)
        both = {**srun, "SLURM_STEP_NODELIST": "rack[0-1]node[0-3].invalid,m"}
        self.refused("'rack0node0.invalid' has no address here", "run", "barrier", "--timeout", "3s", code=3, environment=both)

    def test_what_a_login_shell_prints_hides_no_answer(self):
        for name, noise in [("title", "printf '\\033]0;title\\007'"), ("large", "head -c 200000 /dev/zero | tr '\\0' x"),
                            ("lines", "echo Welcome; printf 'Last login: today'")]:
            with self.subTest(name):
                agent = self.file(name, LOUD.replace("{noise}", noise), 0o755)
                result = support.run("doctor", "--hosts", "a,b", "--agent", agent, "--interface", "127.0.0.1")
                self.assertEqual(result.err, "", result)
                self.assertNotIn("cannot be examined", result.out)
        endless = self.file("endless", "#!/bin/sh\nexec yes\n", 0o755)
        result = support.run("doctor", "--hosts", "a,localhost", "--agent", endless, "--interface", "127.0.0.1")
        self.assertEqual((result.code, result.err), (3, ""), result)
        self.assertIn("host a cannot be examined: its agent or login shell has printed 4 MiB, and no answer among them", result.out)


if __name__ == "__main__":
    unittest.main()
