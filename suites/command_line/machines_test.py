# SPDX-License-Identifier: Apache-2.0
"""Jobs on several machines (--hosts), through an agent that only runs the command: all of them are at 127.0.0.1. What
they measure and check, how they end, and what they leave: nothing. Those on networks of their own: namespaces_test.py.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

import support

SHIFTED = ["--time", "--monotonic", "1", "--fork", "--kill-child"]  # a clock that is a second ahead
PLAIN = 'shift\nexec "$@"\n'  # an agent that runs the command here
CHILD = 'shift\n"$@"\n'       # and one that stays beside it, as ssh does
# One that takes a line of the shell, as ssh does and mpirun needs, on a machine with a name of its own.
NAMED = """while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec unshare --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
"""
FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
# A row soon, and then a cell that lasts.
LONG = ["run", "all_reduce", "--sizes", "8,32M", "--iterations", "300", "--no-limit", "--quiet", *FILES]


class Agents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-agents-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def agent(self, text):
        path = self.folder / f"agent-{uuid.uuid4().hex}"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def on(self, hosts, *words, agent=PLAIN, interface="127.0.0.1", **options):
        return support.Run(*words, "--hosts", hosts, "--agent", self.agent(agent), "--interface", interface, **options)

    def machine(self, run, number):
        """The process that a launcher has on the machine `number`, which has ranks already."""
        parents = {process.pid: process.parent for process in support.processes()}
        machines = []
        for _, pid in sorted(run.ranks().items()):
            if parents[pid] not in machines:
                machines.append(parents[pid])
        return machines[number]

    def nothing_is_left(self, run, within=5):
        end = time.monotonic() + support.patience(within)
        while run.left_behind() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(run.left_behind(), [])


def can_shift_clocks():
    return subprocess.run(["unshare", *SHIFTED, "true"], capture_output=True, check=False).returncode == 0


@support.at_night
class OnThisMachine(Agents):
    def test_a_run_has_rows_the_hosts_and_the_bound_of_their_clocks(self):
        with self.on("a:2,b:1", "run", "all_reduce", "barrier", "--sizes", "8,64K", "--budget", "2s", *FILES) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            _, rows = run.rows()
            self.assertEqual({(row["hosts"], row["transport"], row["ranks"], row["verdict"]) for row in rows},
                             {("a:2,b:1", "tcp", "3", "ok")})
            self.assertEqual([row["limit_way"] for row in rows], ["stream", "stream", ""], "a barrier has no limit")
            self.assertTrue(all(float(row["limit_time"]) > 0 for row in rows if row["limit_way"]), rows)
            record = support.read_json(run.path / "record.json")
            bound = float(record["measurement"]["clocks_bound_ns.P3"])
            self.assertTrue(0 < bound < 50e6, bound)
            for row in rows:
                self.assertTrue(0 < float(row["clocks_bound"]) <= bound / 1e3, row)
            self.assertEqual([one["host"] for one in record["machines"]], ["a", "b"])
            self.assertRegex(result.out, r"(?m)^# clocks of the hosts: known to [0-9.]+ us \(half of the least round trip\)")
            self.nothing_is_left(run)

    def test_a_clock_that_is_a_second_ahead_changes_nothing(self):
        if shutil.which("unshare") is None or not can_shift_clocks():
            self.skipTest("no namespace with a clock of its own can be made")
        agent = f'[ "$1" = a ] || shifted="unshare {" ".join(SHIFTED)}"\nshift\nexec $shifted "$@"\n'
        with self.on("a:1,b:1", "run", "all_reduce", "barrier", "--sizes", "8", "--budget", "1s", *FILES, agent=agent) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            for row in run.rows()[1]:
                self.assertEqual(row["verdict"], "ok", result)
                self.assertLess(float(row["time_median"]), 0.5e6, result)
            measured = support.read_json(run.path / "record.json")["measurement"]
            self.assertLess(float(measured["clocks_bound_ns.P2"]), 50e6, measured)
            self.nothing_is_left(run)

    def test_ranks_are_dealt_to_the_hosts_in_turn_and_one_host_is_enough(self):
        with self.on("a:3,b:1", "run", "all_reduce", "--sizes", "8", "--ranks", "1,2,4", "--budget", "1s", *FILES) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual([row["ranks"] for row in run.rows()[1]], ["1", "2", "4"], result)

    @unittest.skipIf(os.cpu_count() < 2, "ranks that outnumber cores are not probed")
    def test_a_round_trip_between_the_hosts_stands_beside_each_row(self):
        with self.on("a:1,b:1", "run", "all_reduce", "--sizes", "8,64K", "--budget", "2s", *FILES) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            for row in run.rows()[1]:
                self.assertEqual(row["line_ns"], "")
                self.assertTrue(1e3 < float(row["net_ns"]) < 50e6, row)

    @unittest.skipIf(os.cpu_count() < 2, "one core is not more than another")
    def test_rows_are_of_the_machines_of_the_ranks_and_not_of_the_launchers(self):
        def run(name, launcher, other="0,1"):
            agent = f'cores={other}\n[ "$1" = a ] && {{ cores=0; hostname=attic; }}\n' + (
                'shift\n[ -n "$hostname" ] || exec taskset -c $cores "$@"\n'
                'exec unshare --uts sh -c \'hostname attic; exec "$@"\' sh taskset -c 0 "$@"\n')
            path = self.folder / name
            before = os.sched_getaffinity(0)
            os.sched_setaffinity(0, launcher)
            try:
                with self.on("a:1,b:1", "run", "barrier", "--ranks", "1,2", "--budget", "500ms", "--csv", path, "--json", f"{path}.json",
                             agent=agent) as started:
                    result = started.wait(60)
            finally:
                os.sched_setaffinity(0, before)
            self.assertEqual(result.code, 0, result)
            return path

        if subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no machine with a name of its own can be made")
        one, again, replaced = run("one.csv", {0, 1}), run("again.csv", {0}), run("replaced.csv", {0, 1}, other="0")
        record = support.read_json(f"{one}.json")
        self.assertEqual((record["machine"]["hostname"], record["machine"]["cores_allowed"]), ("attic", "1"))
        self.assertEqual([(machine["host"], machine["cores_allowed"]) for machine in record["machines"]], [("a", "1"), ("b", "2")])
        self.assertEqual({row["host"] for row in record["rows"]}, {"attic"})
        same = support.run("compare", one, again)
        self.assertNotIn("times of two machines", same.err, same)
        self.assertIn(same.code, (0, 6), same)
        for command in [["compare"], ["report", "--prometheus", self.folder / "page.prom"]]:
            other = support.run(*command, one, replaced)
            self.assertEqual(other.code, 2, other)
            self.assertIn("times of two machines are not compared", other.err)

    def test_an_agent_gets_an_ipv6_address_without_brackets(self):
        agent = '[ "$1" = 2001:db8::7 ] || [ "$1" = me@2001:db8::8 ] || { echo "what is $1" >&2; exit 255; }\n' + PLAIN
        hosts = "[2001:db8::7]:1,me@[2001:db8::8]"
        with self.on(hosts, "run", "barrier", "--budget", "500ms", *FILES, agent=agent) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual({row["hosts"] for row in run.rows()[1]}, {"[2001:db8::7]:1,me@[2001:db8::8]:1"})
        with self.on(hosts, "doctor", agent=agent) as run:
            self.assertNotIn("what is", str(run.wait(60)))

    def test_a_hostfile_says_the_same(self):
        path = self.folder / "hosts"
        path.write_text("# machines\na slots=2\n\nb  # one slot\n")
        with support.Run("run", "barrier", "--hostfile", path, "--agent", self.agent(PLAIN), "--interface", "lo",
                         "--budget", "500ms", *FILES) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(run.rows()[1][0]["hosts"], "a:2,b:1")

    def test_a_path_with_blanks_goes_through_ssh_alone(self):
        tools = self.folder / "my tools (2)"
        tools.mkdir()
        program = shutil.copy(support.PROGRAM, tools / "tutti")
        for name, code in [("ssh", 0), ("rsh", 3)]:
            agent = self.folder / name
            agent.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')  # its words in one line for a shell, as ssh has them
            agent.chmod(0o755)
            done = subprocess.run([program, "run", "barrier", "--hosts", "a:1,b:1", "--agent", agent, "--interface", "127.0.0.1", "--backends",
                                   "tutti", "--budget", "500ms"], capture_output=True, text=True, timeout=support.patience(60), check=False)
            self.assertEqual(done.returncode, code, done)
            self.assertIn("with ssh as agent, blanks" if code else " 1 ok, 0 wrong", done.stderr if code else done.stdout)

    def test_a_machine_that_is_this_one_needs_no_agent(self):
        result = support.run("run", "barrier", "--hosts", "localhost:1,127.0.0.1:1", "--agent", "/nowhere/agent", "--budget", "500ms")
        self.assertEqual(result.code, 0, result)

    @support.needs("gloo")
    def test_gloo_is_measured_beside_tutti(self):
        with self.on("a:2,b:1", "run", "all_reduce", "--sizes", "8,64K", "--backends", "tutti,gloo", "--budget", "3s", *FILES) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual([(row["backend"], row["hosts"], row["verdict"]) for row in run.rows()[1]],
                             [("tutti", "a:2,b:1", "ok"), ("gloo", "a:2,b:1", "ok")] * 2, result)
            self.assertRegex(result.out, r"(?m)^# ratio, time of tutti / time of gloo: (geometric mean [0-9.]+ over [12]|2 left out)")
            self.nothing_is_left(run)

    def mpi_beside_tutti(self, name):
        with self.on("a:1,b:1", "run", "all_reduce", "--sizes", "8,64K", "--backends", f"tutti,{name}", "--budget", "3s",
                     *FILES, agent=NAMED) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual([(row["backend"], row["starter"], row["hosts"], row["verdict"]) for row in run.rows()[1]],
                             [("tutti", name, "a:1,b:1", "ok"), (name, name, "a:1,b:1", "ok")] * 2, result)
            self.nothing_is_left(run)

    @support.needs("gloo")
    def test_folders_of_shared_objects_reach_machines_that_have_another_environment(self):
        program = self.folder / "tutti"  # nothing is beside it
        shutil.copy(support.PROGRAM, program)
        bare = 'shift\nexec env -i PATH="$PATH" "$@"\n'
        with self.on("a:1,b:1", "run", "all_reduce", "--backends", "gloo", "--sizes", "8", "--budget", "500ms", *FILES, agent=bare,
                     program=program, environment={"TUTTI_BACKENDS": os.path.relpath(support.PROGRAM.parent)}) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual([(row["backend"], row["verdict"]) for row in run.rows()[1]], [("gloo", "ok")], result)

    @support.needs("openmpi")
    def test_open_mpi_is_measured_beside_tutti(self):
        self.mpi_beside_tutti("openmpi")

    @support.needs("mpich")
    def test_mpich_is_measured_beside_tutti(self):
        self.mpi_beside_tutti("mpich")

    @support.needs("openmpi")
    def test_a_killed_rank_of_open_mpi_is_named_with_its_host(self):
        with self.on("a:1,b:1", *LONG, "--backends", "tutti,openmpi", agent=NAMED) as run:
            ranks = run.wait_for_ranks(2)
            run.wait_for_rows(2)
            os.kill(ranks[1], signal.SIGKILL)
            result = run.wait(15)
            self.assertEqual(result.code, 5, result)
            self.assertRegex(result.err, rf"(?m)^tutti: rank 1 on b \(pid {ranks[1]}\) was killed by signal 9")
            self.assertGreaterEqual(len(run.rows()[1]), 2)
            self.nothing_is_left(run)

    @support.needs("mpich")
    def test_an_agent_of_several_words_is_none_for_mpich(self):
        agent = self.agent(NAMED)
        result = support.run("run", "barrier", "--hosts", "a,b", "--agent", f"{agent} -x", "--interface", "lo", "--backends", "mpich")
        self.assertEqual(result.code, 3, result)
        self.assertIn("takes an agent of one word", result.err)

    def test_check_finds_everything_right(self):
        with self.on("a:2,b:1", "check", "all") as run:
            result = run.wait(120)
            self.assertEqual(result.code, 0, result)
            cases, ok, wrong = map(int, re.search(r"# check: (\d+) cases as processes, (\d+) ok, (\d+) wrong", result.out).groups())
            self.assertGreater(cases, 500)
            self.assertEqual((ok, wrong), (cases, 0), result)
            self.nothing_is_left(run)

    def test_the_verifier_finds_faults_there(self):
        with self.on("a:1,b:1", "check", "all_reduce", "broadcast", "barrier", "--faults", "all") as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertRegex(result.out, r"# faults: 14 in \d+ cells as processes, seed 1: [1-9]\d* caught \(\d+ without a named cause\), 0 missed")

    def test_a_killed_rank_is_named_with_its_host(self):
        with self.on("a:2,b:2", *LONG) as run:
            ranks = run.wait_for_ranks(4)
            run.wait_for_rows(1)
            run.note_memory()
            os.kill(ranks[3], signal.SIGKILL)
            result = run.wait(15)
            self.assertEqual(result.code, 5, result)
            self.assertRegex(result.err, rf"(?m)^tutti: rank 3 on b \(pid {ranks[3]}\) was killed by signal 9")
            self.assertGreaterEqual(len(run.rows()[1]), 1)
            self.nothing_is_left(run)

    def test_a_stopped_rank_is_named_with_its_host(self):
        with self.on("a:1,b:1", *LONG, "--timeout", "2s") as run:
            ranks = run.wait_for_ranks(2)
            run.wait_for_rows(1)
            os.kill(ranks[1], signal.SIGSTOP)
            result = run.wait(15)
            self.assertEqual(result.code, 5, result)
            self.assertRegex(result.err, rf"rank 1 on b \(pid {ranks[1]}\) is stopped \(state T\)")
            self.nothing_is_left(run)

    def test_where_a_rank_waits_is_told_of_each_host(self):
        for _ in range(4):  # a rank that is stopped between two operations is waited for elsewhere
            with self.on("a:1,b:1", *LONG, "--cadence", "streaming", "--timeout", "1s") as run:
                ranks = run.wait_for_ranks(2)
                run.wait_for_rows(1)
                time.sleep(1)  # then buffers are filled
                os.kill(ranks[1], signal.SIGSTOP)
                result = run.wait(15)
                self.assertEqual(result.code, 5, result)
                self.assertRegex(result.err, r"(?m)^  rank 0 on a \(pid \d+\): in operation")
            if re.search(r"(?m)^  rank 0 on a \(pid \d+\): in operation .*; its communicator .*\brank 1\b", result.err):
                return
        self.fail(result)

    def test_a_killed_agent_is_told_by_its_host(self):
        for name, agent in [("runs the command", PLAIN), ("stays beside it", CHILD)]:
            with self.subTest(name), self.on("a:1,b:1", *LONG, agent=agent) as run:
                run.wait_for_ranks(2)
                run.wait_for_rows(1)
                run.note_memory()
                parents = {process.pid: process.parent for process in support.processes()}
                machine = self.machine(run, 1)
                os.kill(machine if agent is PLAIN else parents[machine], signal.SIGKILL)
                result = run.wait(15)
                self.assertEqual(result.code, 5, result)
                self.assertRegex(result.err, r"(?m)^tutti: host b \(rank 1\) is lost: (its connection has ended|`\S+ b` was killed by signal 9)")
                self.assertGreaterEqual(len(run.rows()[1]), 1)
                self.nothing_is_left(run)

    def test_a_machine_that_says_nothing_is_named_in_time(self):
        with self.on("a:1,b:1", *LONG, "--timeout", "20s") as run:
            run.wait_for_ranks(2)
            run.wait_for_rows(1)
            os.kill(self.machine(run, 1), signal.SIGSTOP)
            result = run.wait(25)
            self.assertEqual(result.code, 5, result)
            self.assertRegex(result.err, r"(?m)^tutti: host b \(rank 1\) is lost: it has said nothing for \d+\.\d s")
            self.nothing_is_left(run)

    def test_an_interrupt_ends_everything_and_keeps_the_rows(self):
        with self.on("a:1,b:1", *LONG, agent=CHILD) as run:
            run.wait_for_ranks(2)
            run.wait_for_rows(1)
            run.note_memory()
            os.kill(run.process.pid, signal.SIGINT)
            result = run.wait(10)
            self.assertEqual(result.code, 130, result)
            self.assertGreaterEqual(len(run.rows()[1]), 1)
            self.nothing_is_left(run)

    def test_no_machine_outlives_its_launcher(self):
        with self.on("a:1,b:1", *LONG, agent=CHILD) as run:
            run.wait_for_ranks(2)
            run.wait_for_rows(1)
            run.note_memory()
            run.process.kill()
            run.process.wait()
            self.nothing_is_left(run)

    def test_a_wrong_secret_is_not_let_in(self):
        wrong = 'shift\nread -r line\necho "$line" | sed "s/\\"key\\":\\"..../\\"key\\":\\"0f0f/" | "$@"\n'
        with self.on("a:1,b:1", "run", "barrier", "--budget", "1s", agent=wrong) as run:
            result = run.wait(20)
            self.assertEqual((result.code, result.out), (3, ""), result)
            self.assertRegex(result.err, r"(?m)^tutti: host [ab] \(rank [01]\) is lost: `\S+ [ab]` exited with code \d+ before it had come")
            self.assertIn("did not prove that it is of this job", result.err)
            self.nothing_is_left(run)

    def test_the_secret_is_on_no_command_line_and_in_no_environment(self):
        with self.on("a:1,b:1", *LONG, agent=CHILD) as run:
            run.wait_for_ranks(2)
            run.wait_for_rows(1)
            for pid in run.living():
                words = " ".join(support.command_of(pid)) + " ".join(support.environment_of(pid).values())
                self.assertEqual(re.findall(r"\b[0-9a-f]{64}\b", words), [])

    def test_another_build_is_refused(self):
        version = re.search(r"commit (\S+?)\)", support.run("--version").out)[1].encode()
        other = self.folder / "tutti-of-another-build"
        other.write_bytes(support.PROGRAM.read_bytes().replace(version, version[::-1]))
        other.chmod(0o755)
        agent = f'if [ "$1" = b ]; then shift 2; exec {other} "$@"; fi\n{PLAIN}'
        with self.on("a:1,b:1", "run", "barrier", "--budget", "1s", agent=agent) as run:
            result = run.wait(20)
            self.assertEqual((result.code, result.out), (3, ""), result)
            self.assertRegex(result.err, 
                             rf"host b \(rank 1\) is lost: its build is '.*{re.escape(version[::-1].decode())}.*', and this one "
                             rf"is '.*{re.escape(version.decode())}")
            self.nothing_is_left(run)

    def test_an_agent_that_cannot_reach_a_host(self):
        with self.on("a:1,b:1", "run", "barrier", agent='echo "no route to $1" >&2\nexit 255\n') as run:
            result = run.wait(20)
            self.assertEqual((result.code, result.out), (3, ""), result)
            self.assertRegex(result.err, r"host ([ab]) \(rank [01]\) is lost: `\S+ \1` exited with code 255 before it had come: no route to \1\n")

    def test_what_has_no_meaning_is_said(self):
        on = ["run", "barrier", "--hosts", "a:2,b:2"]
        hostfile, broken = self.folder / "two", self.folder / "broken"
        hostfile.write_text("a 2\nb 2\n")
        broken.write_text("a 2\nb two\n")
        for code, words, says in [
                (2, ["run", "barrier", "--hosts", "a:0"], "'0' is not a number of slots of host 'a': a whole number from 1 to 4096: did you mean '1'?"),
                (2, ["run", "barrier", "--hosts", "a,"], "'' is no name of a host"),
                (2, ["run", "barrier", "--hosts", "-oProxyCommand=x"], "is no name of a host"),
                (2, [*on, "--ranks", "5"], "--ranks: 5 on a:2,b:2, which have room for 4: 1 to 4, did you mean 4?"),
                (2, [*on, "--ranks-as", "threads", "--transports", "tcp"], "did you mean --ranks-as processes?"),
                (2, [*on, "--transports", "shm"], "did you mean --transports tcp?"),
                (2, [*on, "--pretend-hosts", "2"], "--pretend-hosts: has no meaning with --hosts a:2,b:2"),
                (2, [*on, "--hostfile", hostfile], "leave one of the two out"),
                (2, ["run", "barrier", "--hostfile", broken], "line 2: 'two' is not a number of slots of host 'b'"),
                (2, ["run", "barrier", "--agent", "ssh"], "--agent: has no meaning without --hosts"),
                (2, [*on, "--interface", "no0"], "'no0' is neither an interface of this machine nor its address; there are: lo (127.0.0.1)"),
                (3, [*on, "--agent", "/nowhere/agent", "--interface", "lo"], "host a: cannot execute '/nowhere/agent'"),
                (3, ["run", "barrier", "--hosts", "no.such.host.invalid,b"], "--interface says at which address this machine is reached"),
        ]:
            with self.subTest(words):
                result = support.run(*words)
                self.assertEqual((result.code, result.out), (code, ""), result)
                self.assertIn(says, result.err)


if __name__ == "__main__":
    unittest.main()
