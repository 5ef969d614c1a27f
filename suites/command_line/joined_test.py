# SPDX-License-Identifier: Apache-2.0
"""`tutti run` and `tutti check` that somebody has started once per rank, on hosts that the environment pretends: all of
them are at 127.0.0.1. What depends on a host's own addresses and processes is tried on namespaces."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import namespaces
import support

SECRET = "5e" * 32


def free_port():
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def own_address():
    """One of this machine's that is not loopback. Nothing is sent."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as one:
        with contextlib.suppress(OSError):
            one.connect(("198.51.100.1", 9))
        address = one.getsockname()[0]
    return None if address.startswith(("127.", "0.")) else address


class Joined(unittest.TestCase):
    def start(self, hosts, *words, own=lambda rank: {}, program=support.PROGRAM, only=None, enter=lambda rank, command: command):
        """The processes of all ranks, or of these; `hosts` says how many are on each, `enter` puts a command there."""
        port, ranks, runs = str(free_port()), sum(hosts), []
        numbers = iter(range(ranks))
        for here in hosts:
            for local in range(here):
                rank = next(numbers)
                if only is not None and rank not in only:
                    continue
                environment = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(local),
                               "LOCAL_WORLD_SIZE": str(here), "MASTER_ADDR": "127.0.0.1", "TUTTI_PORT": port,
                               "TUTTI_SECRET": SECRET, **own(rank)}
                environment = {name: value for name, value in environment.items() if value is not None}
                first, *rest = enter(rank, [program, *words])
                runs.append(self.enterContext(support.Run(*rest, environment=environment, program=first)))
        return runs

    def ends(self, runs, within=60):
        return [run.wait(within) for run in runs]


class ByHand(Joined):
    def test_a_run_on_two_hosts(self):
        runs = self.start([2, 2], "run", "all_reduce", "--sizes", "8,64K", "--budget", "2s")
        results = self.ends(runs)
        self.assertEqual([result.code for result in results], [0] * 4, results)
        self.assertRegex(results[0].out, r"(?m)^# measured with hosts \S+:2,\S+:2$")
        self.assertRegex(results[0].out, r"(?m)^# 2 rows in 2 cells: 2 ok")
        self.assertEqual([result.out for result in results[1:]], [""] * 3, results)

    def test_a_host_that_calls_itself_an_option_has_a_name_that_is_none(self):
        rename = "import os, socket, sys; socket.sethostname('-v[\\x1b'); os.execv(sys.argv[1], sys.argv[1:])"
        if subprocess.run(["unshare", "--uts", "true"], check=False).returncode != 0:
            self.skipTest("no namespace can be made for a host's name")
        results = self.ends(self.start([1, 1], "run", "barrier", "--budget", "200ms",
                                       enter=lambda rank, command: ["unshare", "--uts", sys.executable, "-c", rename, *command]))
        self.assertEqual([result.code for result in results], [0, 0], results)
        self.assertIn("# measured with hosts _v__:1,_v__-1:1\n", results[0].out)

    def test_hosts_of_other_sizes_and_a_check(self):
        results = self.ends(self.start([1, 2], "check", "all_reduce", "barrier", "broadcast", "--hosts", "2"))
        self.assertEqual([result.code for result in results], [0] * 3, results)
        self.assertRegex(results[0].out, r"# check: \d+ cases as processes, \d+ ok, 0 wrong, 0 neither, 0 not run")

    def test_a_random_mix_on_the_world_and_on_groups(self):
        results = self.ends(self.start([2, 1, 2], "check", "soak", "--operations", "300", "--seed", "4"))
        self.assertEqual([result.code for result in results], [0] * 5, results)
        self.assertRegex(results[0].out, r"\d{4} results verified, 0 wrong, \d+ barriers judged, 0 not run")
        self.assertIn("+0 descriptors, +0 mappings of groups", results[0].out)

    def test_one_host(self):
        results = self.ends(self.start([2], "run", "barrier", "--backends", "tutti", "--budget", "500ms"))
        self.assertEqual([result.code for result in results], [0, 0], results)

    def test_a_file_says_where_they_meet(self):
        with tempfile.TemporaryDirectory() as folder:
            init = {"MASTER_ADDR": None, "TUTTI_PORT": None, "TUTTI_INIT": f"file://{folder}/meeting"}
            results = self.ends(self.start([1, 1], "run", "barrier", "--budget", "500ms", "--interface", "127.0.0.1",
                                           own=lambda rank: init))
            self.assertEqual([result.code for result in results], [0, 0], results)
            self.assertEqual(os.listdir(folder), [])

    @support.at_night
    def test_a_file_that_a_former_job_has_left_is_told_and_waited_for(self):
        # At a loopback address nobody may be because rank 0 is on another host.
        loopback = " on this host: rank 0 needs an address that other hosts reach, by --interface or TUTTI_INTERFACE, unless a former job has left it"
        for address, why in [("127.0.0.1", loopback), (own_address(), ", so a former job has left it")]:
            with self.subTest(address):
                if address is None:
                    self.skipTest("this machine has no address but loopback ones")
                self.leave_a_file(f"{address}:{free_port()}", why)

    def leave_a_file(self, nobody, why):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "meeting"
            left = f"--init: '{path}' says that rank 0 listens at {nobody}, where no process listens{why}"
            init = {"MASTER_ADDR": None, "TUTTI_PORT": None, "TUTTI_INIT": f"file://{path}"}
            words = ["run", "barrier", "--budget", "500ms", "--interface", "127.0.0.1"]
            path.write_text(nobody + "\n")
            late, = self.start([1, 1], *words, own=lambda rank: init, only=[1])
            said = late.path / "stderr"
            begin = time.monotonic()
            while not said.read_text() and time.monotonic() < begin + support.patience(20):
                time.sleep(0.05)
            self.assertLess(time.monotonic(), begin + support.patience(5), "it is told at once")
            self.assertEqual(said.read_text(), f"tutti: rank 1: {left}; waiting for that of this job\n")
            first, = self.start([1, 1], *words, own=lambda rank: init, only=[0])
            results = self.ends([first, late])
            self.assertEqual([result.code for result in results], [0, 0], results)
            self.assertEqual(os.listdir(folder), [])
            path.write_text(nobody + "\n")
            alone, = self.start([1, 1], *words, "--timeout", "2s", own=lambda rank: init, only=[1])
            result = alone.wait(20)
            self.assertEqual(result.code, 5, result)
            self.assertIn(f"tutti: {left}; rank 0 has written no other within 2 s\n", result.err)
            path.unlink()
            alone, = self.start([1, 1], *words, "--timeout", "1s", own=lambda rank: init, only=[1])
            result = alone.wait(20)
            self.assertEqual(result.err, f"tutti: --init: rank 0 has not written '{path}' within 1 s\n")

    def test_what_is_wrong(self):
        for code, own, says in [
                (3, lambda rank: {"TUTTI_SECRET": None}, "openssl rand -hex 32"),
                (3, lambda rank: {"TUTTI_SECRET_FILE": "/nowhere/secret"}, "'/nowhere/secret': No such file or directory; `openssl rand"),
                (2, lambda rank: {"TUTTI_SECRET": "5e"}, "64 digits of base 16"),
                (3, lambda rank: {"TUTTI_PORT": None}, "MASTER_ADDR is set and MASTER_PORT is not"),
                (3, lambda rank: {"MASTER_ADDR": "192.0.2.1"}, "says that rank 0 is at '192.0.2.1'")]:
            runs = self.start([1, 1], "run", "barrier", "--timeout", "3s", own=own)
            result = runs[0].wait(20)
            self.assertIn(says, result.err)
            self.assertIn(result.code, (2, 3), result)

    def test_each_process_says_what_only_it_can_know(self):
        cases = [
                (3, [], {"MASTER_ADDR": "nobody.invalid"}, "'nobody.invalid' has no address here: "),
                (3, [], {"MASTER_ADDR": "255.255.255.255"}, "there is no route to '255.255.255.255': "),
                (5, [], {"TUTTI_PORT": "1"}, "no process listens at 127.0.0.1:1, an address of this host, where process 0 should be, within 1.0 s\n"),
                (3, [], {"TUTTI_SECRET": None}, "openssl rand -hex 32"),
                (2, [], {"TUTTI_SECRET": "5e"}, "64 digits of base 16"),
                (2, ["--budgit", "1s"], {}, "--budgit"),
                (2, ["--sizes", "many"], {}, "'many'"),
                (2, ["--ranks-as", "threads"], {}, "--ranks-as")]
        # Rank 1 of each, without rank 0.
        runs = [self.start([1, 1], "run", "barrier", "--timeout", "1s", *words, only=[1], own=lambda rank, own=own: own)[0]
                for _, words, own, _ in cases]
        for (code, _, _, says), result in zip(cases, self.ends(runs)):
            with self.subTest(says):
                self.assertEqual(result.code, code, result)
                self.assertRegex(result.err, r"\Atutti: ")
                self.assertIn(says, result.err)

    def test_of_several_processes_of_a_host_one_says_it(self):
        for only in [[1, 2, 3], [2, 3]]:
            with self.subTest(only):
                results = self.ends(self.start([1, 3], "run", "barrier", only=only, own=lambda rank: {"MASTER_ADDR": "nobody.invalid"}))
                self.assertEqual({result.code for result in results}, {3}, results)
                said = [result.err for result in results if result.err]
                self.assertEqual(len(said), 1, results)
                self.assertIn("'nobody.invalid' has no address here", said[0])
                if 1 in only:
                    self.assertTrue(results[0].err, "the first of the host says it")

    def test_another_secret_is_told_by_both_at_once(self):
        runs = self.start([1, 1], "run", "barrier", "--timeout", "2s", own=lambda rank: {"TUTTI_SECRET": ("ab" if rank else "cd") * 32})
        guest = runs[1].wait(20)
        self.assertEqual(guest.code, 3, guest)
        self.assertRegex(guest.err, r"\Atutti: who listens at 127\.0\.0\.1:\d+ knows another secret: .*TUTTI_SECRET_FILE")
        host = runs[0].wait(20)
        self.assertEqual(host.code, 3, host)
        self.assertRegex(host.err, r"\Atutti: rank 0: process 1 at 127\.0\.0\.1 knows another secret, and is not let in; still waiting\n"
                                   r"tutti: 1 of 2 processes did not come to \S+ within 2\.0 s: 1; with another secret came process 1 at 127\.0\.0\.1\n")

    def test_who_was_started_otherwise_says_so_itself(self):
        results = self.ends(self.start([1, 2, 1], "run", "barrier",
                                       enter=lambda rank, command: [*command, "--seed", "7"] if rank in (1, 2) else command))
        self.assertEqual([result.code for result in results], [3] * 4, results)
        self.assertRegex(results[0].err, r"rank 1 on \S+ was started with '.* --seed 7', rank 0 on \S+ '")
        said = [result.err for result in results[1:3] if result.err]
        self.assertEqual(len(said), 1, results)
        self.assertRegex(said[0], r"\Atutti: this process was started with '.* --seed 7', rank 0 on \S+ '")
        self.assertEqual(results[3].err, "", "it is as rank 0 is")

    def test_a_left_file_is_not_believed_where_a_stranger_listens(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = pathlib.Path(folder) / "meeting"
        stranger = self.enterContext(socket.create_server(("127.0.0.1", 0)))

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    with stranger.accept()[0] as one:
                        one.sendall(b"220 mail.example.org ESMTP, and what else such a program says\r\n")

        threading.Thread(target=answer, daemon=True).start()
        address = f"127.0.0.1:{stranger.getsockname()[1]}"
        path.write_text(address + "\n")
        init = {"MASTER_ADDR": None, "TUTTI_PORT": None, "TUTTI_INIT": f"file://{path}"}
        words = ["run", "barrier", "--budget", "300ms", "--interface", "127.0.0.1"]
        late, = self.start([1, 1], *words, own=lambda rank: init, only=[1])
        said = late.path / "stderr"
        end = time.monotonic() + support.patience(20)
        while not said.read_text() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(said.read_text(), f"tutti: rank 1: --init: what '{path}' says is of another job: the program at {address} did not "
                                           "prove that it is of this job: it is no tutti of this version; waiting for that of this job\n")
        first, = self.start([1, 1], *words, own=lambda rank: init, only=[0])
        results = self.ends([first, late])
        self.assertEqual([result.code for result in results], [0, 0], results)

    @unittest.skipIf(os.geteuid() != 0, "only root gives a file away")
    def test_a_file_of_another_user_is_not_believed(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = pathlib.Path(folder) / "meeting"
        path.write_text("127.0.0.1:1\n")
        os.chown(path, 12345, 12345)
        result, = self.ends(self.start([1, 1], "run", "barrier", "--timeout", "1s", only=[1],
                                       own=lambda rank: {"MASTER_ADDR": None, "TUTTI_INIT": f"file://{path}"}))
        self.assertEqual(result.code, 3, result)
        why = f"--init: '{path}' belongs to user 12345, and this process to user 0: who writes it decides where this process connects"
        self.assertEqual(result.err, f"tutti: rank 1: {why}; waiting for that of this job\ntutti: {why}; rank 0 has written no other within 1 s\n")

    def test_others_than_were_expected(self):
        for words, code, says in [(["--hosts", "3"], 3, "--hosts 3: the job has 2 hosts"),
                                  (["--ranks", "4"], 2, "did you mean --ranks 2?"),
                                  (["--hosts", "a,b"], 2, "leave it out, or say how many hosts, as --hosts 2")]:
            results = self.ends(self.start([1, 1], "run", "barrier", *words))
            self.assertEqual([result.code for result in results], [code, code], results)
            self.assertIn(says, results[0].err)
        self.assertIn("--hosts 2: the job has 1 host\n", support.run("run", "barrier", "--hosts", "2").err)

    def test_ranks_that_are_not_numbered_by_hosts_are_told_at_once(self):
        for order in [[0, 2, 1, 3], [0, 2, 3, 1], [0, 3, 1, 2]]:
            results = self.ends(self.start([2, 2], "run", "barrier", own=lambda rank: {"RANK": str(order[rank])}), 20)
            self.assertEqual([result.code for result in results], [3] * 4, results)
            self.assertIn("ranks have to be numbered by hosts (mpirun --map-by slot, srun --distribution=block)", results[0].err)
            self.assertEqual([result.err for result in results[1:]], [""] * 3, results)

    def test_one_that_does_not_come_is_named(self):
        runs = self.start([1, 1], "run", "barrier", "--timeout", "2s", own=lambda rank: {"TUTTI_SECRET": ("ab" if rank else "cd") * 32})
        result = runs[0].wait(20)
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.err, r"1 of 2 processes did not come to 127\.0\.0\.1:\d+ within 2\.0 s: 1")

    def test_a_killed_rank_ends_all(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        rows = pathlib.Path(folder) / "rows.csv"
        runs = self.start([1, 2], "run", "all_reduce", "--sizes", "8,32M", "--iterations", "300", "--no-limit", "--csv", rows)
        end = time.monotonic() + support.patience(30)
        while time.monotonic() < end and not (rows.exists() and rows.read_text().count("\n") > 1):
            time.sleep(0.05)
        time.sleep(0.3)
        runs[2].process.send_signal(signal.SIGKILL)
        results = self.ends(runs, 30)
        self.assertEqual(results[0].code, 5, results)
        self.assertRegex(results[0].err, r"rank 2 on \S+ \(pid \d+\) closed its connection before it was done")
        self.assertEqual((results[1].code, results[1].err), (5, ""), results)
        self.assertGreater(rows.read_text().count("\n"), 1)

    def test_ranks_say_that_the_first_process_of_their_host_was_killed(self):
        for hosts in [[3], [2, 2]]:
            with self.subTest(hosts), tempfile.TemporaryDirectory() as folder:
                rows = pathlib.Path(folder) / "rows.csv"
                runs = self.start(hosts, "run", "all_reduce", "--sizes", "8,32M", "--iterations", "100000", "--backends", "tutti",
                                  "--no-limit", "--csv", rows)
                runs[0].wait_for_ranks(1)
                time.sleep(1)
                runs[0].process.send_signal(signal.SIGKILL)
                results = self.ends(runs[1:], 30)
                self.assertEqual({result.code for result in results}, {5}, results)
                gone = (f"tutti: the first rank's process of this host (pid {runs[0].process.pid}) ended without a word: killed, or "
                        "crashed\n")
                far = [f"tutti: rank 0 on {socket.gethostname()} is gone\n", ""]
                said = [result.err for result in results]
                if len(hosts) == 1:
                    self.assertEqual(said, [gone, gone])
                else:  # the rank beside it may hear of the other host's end first, which tells of rank 0
                    self.assertIn(said, ([gone, *far], ["", *far]))

    def test_ranks_are_silent_where_the_first_process_speaks(self):
        for hosts in [[3], [2, 2]]:
            with self.subTest(hosts):
                runs = self.start(hosts, "run", "all_reduce", "--sizes", "8,32M", "--iterations", "100000", "--backends", "tutti", "--no-limit")
                runs[0].wait_for_ranks(1)
                time.sleep(1)
                runs[0].process.send_signal(signal.SIGTERM)
                results = self.ends(runs, 30)
                self.assertEqual([result.code for result in results], [130] + [5] * (len(runs) - 1), results)
                self.assertIn("tutti: interrupted by signal 15", results[0].err)
                self.assertEqual([result.err for result in results[1:]], [""] * (len(runs) - 1), results)

    @support.at_night
    def test_each_other_host_says_that_rank_0_is_gone_or_silent(self):
        for number, what in [(signal.SIGKILL, "is gone"), (signal.SIGSTOP, "has said nothing for 10 s")]:
            with self.subTest(number.name), tempfile.TemporaryDirectory() as folder:
                rows = pathlib.Path(folder) / "rows.csv"
                runs = self.start([1, 2, 1], "run", "all_reduce", "--sizes", "8,32M", "--iterations", "300", "--no-limit", "--csv", rows)
                end = time.monotonic() + support.patience(30)
                while time.monotonic() < end and not (rows.exists() and rows.read_text().count("\n") > 1):
                    time.sleep(0.05)
                runs[0].process.send_signal(number)
                results = self.ends(runs[1:], 30)
                self.assertEqual([result.code for result in results], [5] * 3, results)
                said = f"tutti: rank 0 on {socket.gethostname()} {what}\n"
                self.assertEqual([result.err for result in results], [said, "", said])

    def test_the_environment_names_an_interface(self):
        program = support.PROGRAM.parent / "all_reduce_perf"
        for name in ["nonsense", "192.0.2.77"]:
            refusal = f"'{name}' is neither an interface of this machine nor its address; there are: "
            for hosts, words, more in [([1, 1], ["run", "barrier"], {}), ([1, 1], ["-b", "8", "-e", "8"], {"program": program}),
                                       ([1], ["run", "barrier", "--hosts", "localhost:2"], {})]:
                with self.subTest(name, words=words):
                    first = self.start(hosts, *words, own=lambda rank: {"TUTTI_INTERFACE": name}, only=[0], **more)[0]
                    result = first.wait(20)
                    self.assertEqual(result.code, 2, result)
                    self.assertIn(refusal, result.err)
        # An option goes before it, and nothing is said of it where there is one host.
        for hosts, words in [([1, 1], ["--interface", "127.0.0.1"]), ([1], [])]:
            results = self.ends(self.start(hosts, "run", "barrier", "--budget", "500ms", *words,
                                           own=lambda rank: {"TUTTI_INTERFACE": "nonsense"}))
            self.assertEqual({result.code for result in results}, {0}, results)


    @support.at_night
    def test_ranks_of_one_host_say_that_its_first_process_is_stopped(self):
        runs = self.start([2], "run", "all_reduce", "--sizes", "8,32M", "--iterations", "100000", "--backends", "tutti", "--no-limit")
        runs[0].wait_for_ranks(1)
        time.sleep(1)
        runs[0].process.send_signal(signal.SIGSTOP)
        result = runs[1].wait(40)
        self.assertEqual(result.code, 5, result)
        self.assertEqual(result.err, f"tutti: the first rank's process of this host (pid {runs[0].process.pid}) has been stopped "
                                     "(state T) for more than 10 s\n")


class Programs(Joined):
    """The programs named as nccl-tests' on two hosts."""

    def perf(self, name, hosts, *words, **options):
        return self.start(hosts, *words, program=support.PROGRAM.parent / name, **options)

    def test_their_table(self):
        for name, last in [("all_reduce_perf", 1024), ("alltoall_perf", 1024), ("sendrecv_perf", 1024)]:
            with self.subTest(name):
                results = self.ends(self.perf(name, [2, 1], "-b", "64", "-e", "1K", "-f", "4", "-n", "5"))
                self.assertEqual([result.code for result in results], [0] * 3, results)
                self.assertIn("# Backend: tutti, 3 ranks in 3 processes over tcp\n", results[0].out)
                self.assertRegex(results[0].out, r"(?m)^# Out of bounds values : 0 OK$")
                rows = [line.split() for line in results[0].out.splitlines() if line.strip() and not line.startswith("#")]
                self.assertEqual(len(rows), 3, results[0])
                self.assertTrue(last * 0.9 <= int(rows[-1][0]) <= last, rows)
                self.assertEqual([result.out for result in results[1:]], ["", ""], results)

    def test_their_record_does_not_tell_the_secret(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        results = self.ends(self.perf("all_reduce_perf", [1, 1], "-b", "64", "-e", "64", "-n", "2", "-J", folder / "record.json"))
        self.assertEqual([result.code for result in results], [0, 0], results)
        record = (folder / "record.json").read_text()
        self.assertIn("TUTTI_SECRET=(redacted)", json.loads(record)["env"])
        self.assertNotIn(SECRET, record)

    def long(self, hosts, *more, **options):
        runs = self.perf("all_reduce_perf", hosts, "-b", "8", "-e", "8M", "-i", "1M", "-n", "20000", *more, **options)
        end = time.monotonic() + support.patience(30)
        while time.monotonic() < end and "Using devices" not in (runs[0].path / "stdout").read_text():
            time.sleep(0.05)
        time.sleep(0.5)
        return runs

    def test_a_killed_rank_of_any_host_is_named_by_all(self):
        for killed in [0, 1, 3]:
            with self.subTest(killed):
                runs = self.long([2, 2])
                runs[killed].process.send_signal(signal.SIGKILL)
                results = self.ends(runs, 20)
                for rank, result in enumerate(results):
                    if rank == killed:
                        continue
                    self.assertEqual(result.code, 5, results)
                    self.assertRegex(result.err, rf"all_reduce_perf: rank {killed} \(pid {runs[killed].process.pid}\) ended without a word")

    def test_a_stopped_rank_of_another_host_ends_all(self):
        runs = self.long([1, 1], "-T", "2")
        runs[1].process.send_signal(signal.SIGSTOP)
        result = runs[0].wait(20)
        runs[1].process.send_signal(signal.SIGKILL)
        self.assertEqual(result.code, 5, result)
        self.assert_far_rank_is_waited_for(result, 1, rf"rank 0 \(pid {runs[0].process.pid}\)")

    def assert_far_rank_is_waited_for(self, result, rank, who):
        self.assertRegex(result.err, rf"all_reduce_perf: rank {rank} on {socket.gethostname()}-{rank} is waited for, and no more is known of "
                                     rf"it here; {who} has waited ")

    def test_a_stopped_rank_is_named_by_hosts_that_do_not_see_its_processes(self):
        # Each host has processes of its own, whose numbers say something else on the others.
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no namespace of processes can be made")
        runs = self.long([1, 1, 1], "-T", "2", enter=lambda rank, command: [*apart, *command])
        stopped, = [process.pid for process in support.processes() if process.parent == runs[2].process.pid]
        os.kill(stopped, signal.SIGSTOP)
        results = self.ends(runs[:2], 20)
        for result in results:
            self.assertEqual(result.code, 5, results)
            self.assert_far_rank_is_waited_for(result, 2, r"rank [01] \(pid 1\)")
            self.assertNotRegex(result.err, "before its first operation|is sleeping")

    def test_a_host_tells_which_of_its_own_ranks_is_stopped(self):
        runs = self.long([1, 2], "-T", "2")
        runs[2].process.send_signal(signal.SIGSTOP)
        for result in self.ends(runs[:2], 20):
            self.assertEqual(result.code, 5, result)
            self.assertRegex(result.err, rf"all_reduce_perf: rank 2 \(pid {runs[2].process.pid}\) is stopped \(state T\), in")

    def test_the_last_words_of_another_host_are_heard_late_too(self):
        """Rank 0 reads them, and the end of their connection, at once."""
        runs = self.long([1, 2], "-T", "2")
        runs[2].process.send_signal(signal.SIGSTOP)
        runs[0].process.send_signal(signal.SIGSTOP)
        other = runs[1].wait(20)
        runs[0].process.send_signal(signal.SIGCONT)
        for result in [other, runs[0].wait(20)]:
            self.assertEqual(result.code, 5, result)
            self.assertRegex(result.err, rf"all_reduce_perf: rank 2 \(pid {runs[2].process.pid}\) is stopped \(state T\), in")

    def test_what_is_wrong(self):
        for words, own, says in [
                (["-t", "2"], lambda rank: {}, "a process has 2 ranks: there each has one, so start as many processes as ranks"),
                ([], lambda rank: {"TUTTI_SECRET": None}, "openssl rand -hex 32"),
                (["-T", "2"], lambda rank: {"TUTTI_SECRET": ("ab" if rank else "cd") * 32}, "1 of 2 processes did not come to")]:
            with self.subTest(says):
                results = self.ends(self.perf("all_reduce_perf", [1, 1], "-b", "8", "-e", "8", *words, own=own), 20)
                self.assertIn(says, results[0].err)
                self.assertIn(results[0].code, (3, 5), results)


class OnMachines(Joined):
    """The own name of the first machine is a loopback address there, as systems have it."""

    def setUp(self):
        self.machines = self.enterContext(namespaces.Machines(2))
        first, second = self.machines.all
        names = self.machines.folder / "own-names"
        names.write_text(f"127.0.0.1 localhost\n127.0.1.1 {first.name}\n{second.address} {second.name}\n")
        first.run("mount", "--bind", names, "/etc/hosts")

    def run_there(self, *words, own=lambda rank: {}, **options):
        """By the first machine's name, and by a file that says where that one listens."""
        for way in ["env", "file"]:
            meeting = {"MASTER_ADDR": self.machines.all[0].name} if way == "env" else \
                {"MASTER_ADDR": None, "TUTTI_PORT": None, "TUTTI_INIT": f"file://{self.machines.folder}/meeting"}
            yield self.ends(self.start([1, 1], *words, own=lambda rank: {**meeting, **own(rank)},
                                       enter=lambda rank, command: self.machines.all[rank].enter(*command), **options))

    def test_a_name_that_is_a_loopback_address_of_its_own_machine(self):
        for results in self.run_there("run", "barrier", "--budget", "500ms", "--timeout", "10s"):
            self.assertEqual([result.code for result in results], [0, 0], results)

    def test_a_name_that_a_copied_file_makes_loopback_on_another_host(self):
        first, second = self.machines.all
        second.run("mount", "--bind", self.machines.folder / "own-names", "/etc/hosts")
        for program, words in [(support.PROGRAM, ["run", "barrier"]), (support.PROGRAM.parent / "all_reduce_perf", ["-b", "8", "-e", "8"])]:
            with self.subTest(program.name):
                run, = self.start([1, 1], *words, only=[1], program=program, own=lambda rank: {"MASTER_ADDR": first.name},
                                  enter=lambda rank, command: second.enter(*command))
                result = run.wait(10)
                self.assertEqual(result.code, 3, result)
                self.assertIn(f"MASTER_ADDR and TUTTI_PORT says that rank 0 is at '{first.name}', and on this host, '{second.name}', that "
                              "name is the loopback address 127.0.1.1: ", result.err)
        # Of the host of rank 0 it is the usual entry, for each of its processes.
        results = self.ends(self.start([2], "run", "barrier", "--budget", "300ms", own=lambda rank: {"MASTER_ADDR": first.name},
                                       enter=lambda rank, command: first.enter(*command)))
        self.assertEqual([result.code for result in results], [0, 0], results)
        runs = self.start([2, 1], "run", "barrier", "--budget", "300ms", own=lambda rank: {
            "MASTER_ADDR": first.name if rank < 2 else first.address},
                          enter=lambda rank, command: self.machines.all[rank // 2].enter(*command))
        self.assertEqual([result.code for result in self.ends(runs)], [0] * 3, runs)

    def test_each_host_looks_at_itself_while_it_measures(self):
        group = self.enterContext(support.Cgroup.of_cores(0.2))
        first, second = self.machines.all
        enter = [first.enter, lambda *command: ["sh", *group.command(second.enter()[0]), *second.enter(*command)[1:]]]
        table = self.machines.folder / "rows.csv"
        runs = self.start([1, 1], "run", "all_reduce", "--sizes", "8", "--budget", "3s", "--csv", str(table),
                          own=lambda rank: {"MASTER_ADDR": first.name}, enter=lambda rank, command: enter[rank](*command))
        results = self.ends(runs)
        self.assertEqual([result.code for result in results], [0, 0], results)
        for row in support.read_csv(table)[1]:
            seen = [word for word in row["disturbed"].split("; ") if word.startswith("quota")]
            self.assertEqual(seen, [f"quota on {second.name}"], row)
        self.assertIn(f"quota on {second.name}", results[0].out)

    def test_which_of_several_addresses_is_asked_for(self):
        first = self.machines.all[0]
        first.run("ip", "link", "add", "other", "type", "veth", "peer", "name", "end")
        first.run("ip", "address", "add", "10.76.0.1/24", "dev", "other")
        first.run("ip", "link", "set", "end", "up")
        first.run("ip", "link", "set", "other", "up")
        refusal = (f"'{first.name}' is 127.0.1.1 here, where no other host comes, and this machine has several addresses: name one by "
                   "--interface or TUTTI_INTERFACE; there are: ")
        for results in self.run_there("run", "barrier", only=[0]):
            self.assertEqual(results[0].code, 3, results)
            self.assertIn(refusal, results[0].err)
            self.assertIn(f"cable ({first.address})", results[0].err)
            self.assertIn("other (10.76.0.1)", results[0].err)
        named = {"TUTTI_INTERFACE": "cable"}
        for results in self.run_there("run", "barrier", "--budget", "500ms", "--timeout", "10s", own=lambda rank: named):
            self.assertEqual([result.code for result in results], [0, 0], results)
        for results in self.run_there("-b", "8", "-e", "8", "-T", "10", own=lambda rank: named, program=support.PROGRAM.parent / "all_reduce_perf"):
            self.assertEqual([result.code for result in results], [0, 0], results)


if __name__ == "__main__":
    unittest.main()
