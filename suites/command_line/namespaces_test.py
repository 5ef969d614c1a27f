# SPDX-License-Identifier: Apache-2.0
"""Jobs on machines that have networks and hostnames of their own: namespaces of this one, where these can be made. The
launcher is on the first machine. What they check, how they end, and what they leave: nothing.
"""
import json
import os
import re
import signal
import time
import unittest

import namespaces
import support

from machines_test import FILES, LONG

CRASH = 5
RANKS = 2  # on each machine of four


class Machines(unittest.TestCase):
    NUMBER = 2
    NAMES = "{}n{}"

    @classmethod
    def setUpClass(cls):
        cls.machines = cls.enterClassContext(namespaces.Machines(cls.NUMBER, cls.NAMES))
        cls.names = [machine.name for machine in cls.machines.all]

    def on_all(self, ranks, *words, agent=None):
        options = self.machines.options(ranks, agent)
        program, *rest = self.machines.all[0].enter(support.PROGRAM, *words, *options)
        return support.Run(*rest, program=program)

    def agent(self, text):
        """One that does something before the usual one, which is `$usual`."""
        path = self.machines.folder / f"agent-of-{self.id().split('.')[-1]}"
        path.write_text(f"#!/bin/sh\nusual={self.machines.agent}\n{text}")
        path.chmod(0o755)
        return path

    def ends(self, run, code, within):
        result = run.wait(within)
        self.assertEqual(result.code, code, result)
        self.assertEqual(self.machines.left(support.patience(5)), [])
        self.assertEqual(run.left_behind(), [])
        return result


class Doctor(Machines):
    def examined(self, code, *words, agent=None):
        with self.on_all(2, "doctor", *words, agent=agent) as run:
            return self.ends(run, code, 60)

    def findings(self, code, agent=None):
        """Those of the hosts beside each other, by their names, and the hosts."""
        everything = json.loads(self.examined(code, "--json", agent=agent).out)
        return {one["name"]: one for one in everything["findings"]}, everything["hosts"]

    def test_hosts_alike(self):
        text = self.examined(0).out
        for number, machine in enumerate(self.machines.all):
            clock = "0" if number == 0 else r"[+-]\d+\.\d{3} \+- \d+\.\d{3}"
            self.assertRegex(text, rf"(?m)^  {machine.name}  \S+ +\S+ +\S+ +{clock} +cable {machine.address} +1500 +all, in \d+ us$")
        self.assertRegex(text, r"(?m)^  build +tutti .+\(commit ")
        self.assertIn(f"note      {self.names[0]} and {self.names[1]} are one machine", text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 120, line)
        findings, hosts = self.findings(0)
        self.assertIn("one_machine", findings)
        self.assertEqual([host["name"] for host in hosts], self.names)
        for host, other in zip(hosts, reversed(hosts)):
            self.assertIsNone(host["failure"])
            self.assertTrue(host["machine"]["cores_online"])
            self.assertEqual([(route["to"], route["interface"], route["mtu"], route["failure"]) for route in host["routes"]],
                             [(other["name"], "cable", 1500, None)])
            self.assertLess(host["clock"]["bound_ns"], 1e9)
            self.assertLessEqual(abs(host["clock"]["ahead_ns"]), host["clock"]["bound_ns"], "both read one clock")

    def test_what_differs(self):
        first, second = self.machines.all
        second.run("ip", "link", "set", self.machines.CABLE, "mtu", "1400")
        self.addCleanup(second.run, "ip", "link", "set", self.machines.CABLE, "mtu", "1500")
        core = min(os.sched_getaffinity(0))
        agent = self.agent(f'[ $1 = {first.name} ] || {{ name=$1; shift; set -- $name taskset -c {core} "$@"; }}\nexec $usual "$@"\n')
        findings, _ = self.findings(0, agent)
        self.assertEqual((findings["mtu"]["severity"], findings["mtu"]["what"]),
                         ("spoils", f"MTU differs: 1500 on {first.name}; 1400 on {second.name}"))
        if os.cpu_count() > 1:
            self.assertRegex(findings["cores"]["what"], rf"^cores differs: .* on {first.name}; 1 of \d+ on {second.name}$")
        self.assertIn(f"spoils    MTU differs: 1500 on {first.name}; 1400 on {second.name}\n", self.examined(0).out)

    @support.at_night
    def test_a_slow_login(self):
        agent = self.agent(f'[ $1 = {self.names[0]} ] || sleep 4\nexec $usual "$@"\n')
        findings, _ = self.findings(0, agent)
        self.assertEqual(findings["slow_login"]["severity"], "note")
        self.assertRegex(findings["slow_login"]["what"], rf"^it took [4-9]\.\d s until something ran on {self.names[1]}$")

    def test_another_build(self):
        version = re.search(r"commit (\S+?)\)", support.run("--version").out)[1].encode()
        other = self.machines.folder / "tutti-of-another-build"
        other.write_bytes(support.PROGRAM.read_bytes().replace(version, version[::-1]))
        other.chmod(0o755)
        agent = self.agent(f'[ $1 = {self.names[0]} ] || {{ name=$1; shift 2; set -- $name {other} "$@"; }}\nexec $usual "$@"\n')
        findings, _ = self.findings(3, agent)
        self.assertEqual(findings["build"]["severity"], "blocks")
        self.assertRegex(findings["build"]["what"], rf"{re.escape(version.decode())}.* on {self.names[0]}; .*"
                                                    rf"{re.escape(version[::-1].decode())}.* on {self.names[1]}")

    def test_a_host_that_the_agent_does_not_reach(self):
        agent = self.agent(f'[ $1 = {self.names[0]} ] || {{ echo "a banner"; echo "no key for $1" >&2; exit 9; }}\nexec $usual "$@"\n')
        findings, hosts = self.findings(3, agent)
        self.assertEqual(findings["unreachable"]["what"],
                         f"host {self.names[1]} cannot be examined: `{agent} {self.names[1]}` exited with code 9: no key for {self.names[1]}")
        self.assertIsNone(hosts[0]["failure"])
        self.assertIn("no key for", hosts[1]["failure"])
        self.assertRegex(self.examined(3, agent=agent).out, rf"(?m)^  {self.names[1]}  not examined$")

    def test_hosts_that_do_not_reach_each_other(self):
        first, second = self.machines.all
        second.run("ip", "route", "add", "unreachable", f"{first.address}/32")
        self.addCleanup(second.run, "ip", "route", "delete", "unreachable", f"{first.address}/32")
        findings, hosts = self.findings(3)
        ways = [f"{one.name} does not reach {other.name}" for one, other in [(first, second), (second, first)]]
        self.assertIn(findings["connection"]["what"].split(": ")[0], ways)
        self.assertRegex(hosts[1]["routes"][0]["failure"], r"^cannot connect to 10\.77\.0\.1:\d+: No route to host$")
        self.assertRegex(self.examined(3).out, rf"(?m)^  {second.name} .* 0 of 1$")


class Alike(Machines):
    """Their names are one up to the first dot."""
    NAMES = "{}.{}.pod.example"

    @support.needs_openmpi
    def test_openmpi_takes_them_for_two(self):
        with self.on_all(1, "run", "all_reduce", "--backends", "tutti,openmpi", "--sizes", "8", "--budget", "100ms", *FILES) as run:
            self.ends(run, 0, 60)
            self.assertEqual({(row["backend"], row["hosts"], row["verdict"]) for row in run.rows()[1]},
                             {(name, self.machines.hosts(1), "ok") for name in ["tutti", "openmpi"]})


class OnTwo(Machines):
    def test_a_run(self):
        with self.on_all(2, "run", "all_reduce", "--sizes", "8,64K,1M", "--budget", "2s", *FILES) as run:
            self.ends(run, 0, 60)
            self.assertEqual({(row["ranks"], row["verdict"], row["hosts"]) for row in run.rows()[1]},
                             {("4", "ok", self.machines.hosts(2))})

    @support.needs("mpich")
    def test_mpich_goes_over_the_interface_that_was_named(self):
        # There is another one on each machine, in one network by its address, behind which nobody is.
        for i, machine in enumerate(self.machines.all):
            machine.run("ip", "link", "add", "blind", "type", "veth", "peer", "name", "end")
            self.addCleanup(machine.run, "ip", "link", "delete", "blind")
            machine.run("ip", "address", "add", f"10.76.0.{i + 1}/24", "dev", "blind")
            machine.run("ip", "link", "set", "end", "up")
            machine.run("ip", "link", "set", "blind", "up")
        with self.on_all(1, "run", "all_reduce", "--backends", "tutti,mpich", "--sizes", "8,64K", "--budget", "2s", *FILES) as run:
            self.ends(run, 0, 60)
            self.assertEqual([(row["backend"], row["hosts"], row["verdict"]) for row in run.rows()[1]],
                             [("tutti", self.machines.hosts(1), "ok"), ("mpich", self.machines.hosts(1), "ok")] * 2)

    def test_each_host_looks_at_itself_while_it_measures(self):
        group = self.enterContext(support.Cgroup.of_cores(0.2))
        slow = self.names[1]
        agent = self.agent(f'[ $1 = {slow} ] && echo $$ > {group.folder}/cgroup.procs\nexec $usual "$@"\n')
        with self.on_all(1, "run", "all_reduce", "--sizes", "8,64K", "--budget", "3s", *FILES, agent=agent) as run:
            result = self.ends(run, 0, 60)
            for row in run.rows()[1]:
                words = [word for word in row["disturbed"].split("; ") if word.startswith("quota")]
                self.assertEqual(words, [f"quota on {slow}"], row)
                self.assertNotEqual((row["last_rank"], row["slowest_rank"]), ("", ""), row)
                if not row["time_median"]:
                    self.assertRegex(row["reason"], r"^no time: to each of \d+ samples? a rank came late, most often rank \d on \S+$")
            self.assertRegex(result.out, rf"(?s)# disturbed while they were measured: .*quota on {slow}\b")

    def test_a_killed_rank(self):
        with self.on_all(1, *LONG) as run:
            ranks = run.wait_for_ranks(2)
            run.wait_for_rows(1)
            os.kill(ranks[1], signal.SIGKILL)
            result = self.ends(run, CRASH, 15)
            self.assertRegex(result.err, rf"(?m)^tutti: rank 1 on {self.names[1]} \(pid {ranks[1]}\) was killed by signal 9")

    @support.at_night
    def test_a_slow_login_costs_no_host_its_name(self):
        for slow in self.names:
            agent = self.agent(f'[ $1 = {slow} ] && sleep 4\nexec $usual "$@"\n')
            # Of a host that has come silence for half of this would count.
            with self.subTest(slow), self.on_all(1, "run", "barrier", "--budget", "300ms", "--timeout", "6s", agent=agent) as run:
                self.ends(run, 0, 60)

    @support.at_night
    def test_a_login_of_a_quarter_of_a_minute(self):
        agent = self.agent(f'[ $1 = {self.names[1]} ] && sleep 15\nexec $usual "$@"\n')
        with self.on_all(1, "run", "barrier", "--budget", "300ms", agent=agent) as run:
            self.ends(run, 0, 60)

    @support.at_night
    def test_hosts_that_stand_still_together_go_on(self):
        for options, seconds in [([], 12), (["--timeout", "3s"], 5)]:
            with self.subTest(seconds), self.on_all(1, "run", "all_reduce", "--sizes", "8:1M:x2", "--budget", "14s", *options, *FILES) as run:
                run.wait_for_ranks(2)
                run.wait_for_rows(1)
                all_pids = [pid for machine in self.machines.all for pid in machine.processes() if pid not in self.machines.residents]
                for signal_number in [signal.SIGSTOP, signal.SIGCONT]:
                    for pid in all_pids:
                        os.kill(pid, signal_number)
                    if signal_number == signal.SIGSTOP:
                        time.sleep(seconds)
                result = self.ends(run, 0, 60)
                words = {word for row in run.rows()[1] for word in row["disturbed"].split("; ")}
                self.assertLessEqual({f"stopped on {name}" for name in self.names}, words, result)

    def test_a_cut_cable(self):
        # An agent that is cut off does not tell its machine that the launcher has gone.
        mute = self.agent('read -r line\n{ echo "$line"; exec sleep 60; } | $usual "$@"\n')
        with self.on_all(1, *LONG, "--timeout", "6s", agent=mute) as run:
            run.wait_for_ranks(2)
            run.wait_for_rows(1)
            self.machines.cut()
            self.addCleanup(self.machines.mend)
            result = run.wait(20)
            self.assertEqual(result.code, CRASH, result)
            self.assertRegex(result.err, rf"(?m)^tutti: host {self.names[1]} \(rank 1\) is lost: it has said nothing for \d+\.\d s")
            self.assertGreaterEqual(len(run.rows()[1]), 1)
            self.assertEqual(self.machines.left(support.patience(15)), [])  # the machine that is cut off ends by itself

    @support.at_night
    def test_whom_ranks_wait_for_is_in_the_record(self):
        for stopped, waits in [(1, 0), (0, 1)]:
            with self.subTest(stopped):
                for _ in range(8):  # a rank that is stopped between two calls keeps nobody in one
                    diagnosis, errors = self.diagnosis_of_a_stopped(stopped)
                    its = {one["rank"]: one for one in diagnosis["waiting"]}
                    if waits in its:
                        break
                self.assertEqual((its[waits]["peer"], its[waits]["operation"] > 0), (stopped, True), diagnosis)
                self.assertIn(f"rank {waits} on {self.names[waits]} ", errors)

    def diagnosis_of_a_stopped(self, rank):
        with self.on_all(1, "run", "all_reduce", "--sizes", "16M", "--iterations", "100000", "--no-limit", "--timeout", "2s",
                         *FILES) as run:
            ranks = run.wait_for_ranks(2)
            time.sleep(1)  # they have met, and measure
            os.kill(ranks[rank], signal.SIGSTOP)
            result = self.ends(run, CRASH, 20)
            diagnosis = json.loads((run.path / "record.json").read_text())["diagnoses"][-1]
            self.assertEqual((diagnosis["how"], diagnosis["rank"], diagnosis["host"]), ("stopped", rank, self.names[rank]))
            return diagnosis, result.err

    def test_ranks_that_call_something_else_are_named(self):
        # The program of the second machine takes uint64 for uint32, and claims to be the same.
        program = support.PROGRAM.read_bytes()
        for one, other in [(b"uint32\0", b"uint??\0"), (b"uint64\0", b"uint32\0"), (b"uint??\0", b"uint64\0")]:
            self.assertIn(one, program)
            program = program.replace(one, other)
        other = self.machines.folder / "tutti-of-another-mind"
        other.write_bytes(program)
        other.chmod(0o755)
        agent = self.agent(f'[ $1 = {self.names[0]} ] || {{ name=$1; shift 2; set -- $name {other} "$@"; }}\nexec $usual "$@"\n')
        with self.on_all(2, "run", "all_reduce", "--dtypes", "uint32", "--sizes", "1K", agent=agent) as run:
            result = self.ends(run, 1, 20)
            self.assertRegex(result.err, rf"(?m)^tutti: rank (\d) on ({'|'.join(self.names)}): rank \1 on host [01] and rank \d on "
                                         r"host [01] do not agree on operation \d+")


class OnFour(Machines):
    NUMBER = 4

    def test_results_are_right(self):
        with self.on_all(RANKS, "check", "all_reduce", "all_to_all_v", "barrier", "--dtypes", "float", "--ops", "sum") as run:
            result = self.ends(run, 0, 60)
            self.assertRegex(result.out, r"# check: (\d\d+) cases as processes, \1 ok, 0 wrong, 0 neither, 0 not run")

    def test_a_random_mix_on_the_world_and_on_groups(self):
        with self.on_all(RANKS, "check", "soak", "--operations", "200", "--seed", "5") as run:
            result = self.ends(run, 0, 60)
            self.assertRegex(result.out, r"\d+ results verified, 0 wrong, \d+ barriers judged, 0 not run")
            self.assertIn("+0 descriptors, +0 mappings of groups", result.out)

    def test_a_rank_that_hangs_is_named(self):
        with self.on_all(RANKS, "run", "all_reduce", "--sizes", "8", "--iterations", "1000000", "--timeout", "2s") as run:
            ranks = run.wait_for_ranks(4 * RANKS)
            time.sleep(1)  # they have met, and measure
            os.kill(ranks[6], signal.SIGSTOP)
            result = self.ends(run, CRASH, 20)
            self.assertRegex(result.err, rf"rank 6 on {self.names[3]} \(pid {ranks[6]}\) is stopped \(state T\)")


if __name__ == "__main__":
    unittest.main()
