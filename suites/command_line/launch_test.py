# SPDX-License-Identifier: Apache-2.0
"""How jobs start and what they leave: references that cannot be started, crashes in a reference's own code, limits of
the system, and somebody's mpirun. Also what happens when the starter of the ranks is killed."""
import os
import pathlib
import re
import signal
import shutil
import tempfile
import time
import unittest

import support

BUILD = pathlib.Path(os.environ["TUTTI_BUILD"])
FOREIGN = {"TUTTI_BACKENDS": str(BUILD / "foreign_backends")}  # one, "foreign", of which every rank is a world of one
CRASHING = {"TUTTI_BACKENDS": str(BUILD / "crashing_backends")}  # one, "crashing", that cannot even be loaded
LAZY = {"TUTTI_BACKENDS": os.environ["TUTTI_LAZY_BACKENDS"]}
SWEEP = ["run", "all_reduce", "--sizes", "8,64K", "--ranks", "2", "--budget", "2s"]
FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
MPIRUN = shutil.which("mpirun")
UNDER = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
HYDRA = shutil.which("mpiexec.hydra")
needs_mpirun = unittest.skipUnless(MPIRUN, "there is no mpirun")


def once(lines, words):
    return sum(words in line for line in lines.splitlines())


def is_ours(pid):
    command = support.command_of(pid)
    return bool(command) and pathlib.Path(command[0]).parent == support.PROGRAM.parent


@support.needs_openmpi
class Unusable(unittest.TestCase):
    """A reference that the mpirun at hand does not start, beside one that it does."""

    def test_it_is_left_out_with_a_sentence_where_nobody_named_it(self):
        with support.Run(*SWEEP, *FILES, environment=FOREIGN) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertRegex(result.err, r"(?m)^# without foreign: .* started by tutti: Foreign MPI sees rank 0 of 1, the launcher "
                                         r"started rank \d of 2")
            _, rows = one.rows()
            self.assertEqual({(row["backend"], row["verdict"]) for row in rows},
                             {(name, "ok") for name in ["tutti", *support.REFERENCES]}, result)
            self.assertEqual(one.left_behind(), [])

    def test_it_is_refused_where_somebody_named_it(self):
        for backends in ["foreign", "tutti,foreign", "openmpi,foreign"]:
            for command in [SWEEP, ["check", "soak", "--ranks", "2", "--operations", "10"]]:
                with self.subTest(backends, command=command[0]):
                    result = support.run(*command, "--backends", backends, environment=FOREIGN)
                    self.assertEqual((result.code, result.out), (3, ""), result)
                    self.assertRegex(result.err, r"^tutti: two ranks of backend foreign cannot be started by tutti: Foreign ")
                    self.assertEqual(len(result.err.splitlines()), 1, result)
        identifier = "barrier/foreign.none/shm/none/none/P2.processes/none/0B/none/none/isolated"
        for words in [["run", "--case", identifier], ["gate", "--against", "foreign"]]:
            result = support.run(*words, environment=FOREIGN)
            self.assertEqual((result.code, result.out), (3, ""), result)
            self.assertIn("backend foreign cannot be started", result.err)

    def test_with_threads_and_tasks_it_is_skipped_and_not_loaded(self):
        for environment, name in [(FOREIGN, "foreign"), (CRASHING, "crashing")]:
            for ranks_as in ["threads", "tasks"]:
                for named in [["--backends", f"tutti,openmpi,{name}"]]:
                    with self.subTest(ranks_as, named=named), \
                            support.Run("run", "barrier", "--ranks", "2", "--ranks-as", ranks_as, "--budget", "300ms",
                                        *named, *FILES, environment=environment) as one:
                        result = one.wait(60)
                        self.assertEqual(result.code, 0, result)
                        self.assertEqual({row["backend"]: row["verdict"] for row in one.rows()[1]},
                                         {"tutti": "ok", "openmpi": "skipped", name: "skipped"}, result)

    def test_list_and_doctor_say_so(self):
        result = support.run("list", environment=FOREIGN)
        self.assertRegex(result.out, r"(?m)^  foreign +not available: two ranks of backend foreign cannot be started by tutti")
        self.assertRegex(result.out, r"(?m)^  openmpi +/")
        result = support.run("doctor", environment=FOREIGN)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, rf"(?m)^  references +{' '.join(support.REFERENCES)};")
        self.assertIn("the reference foreign cannot be used", result.out)

    def test_one_that_crashes_when_it_is_loaded_takes_nothing_with_it(self):
        result = support.run("run", "barrier", "--ranks", "2", "--budget", "300ms", environment=CRASHING)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.err, r"(?m)^# without crashing: backend crashing crashes as soon as it is loaded: signal \d+")
        result = support.run(*SWEEP, "--backends", "crashing", environment=CRASHING)
        self.assertEqual((result.code, result.out), (3, ""), result)


@support.needs_openmpi
class CrashOfAReference(unittest.TestCase):
    def complaint(self, backend):
        result = support.run(*SWEEP, "--backends", f"tutti,{backend}", environment=LAZY)
        self.assertEqual(result.code, 5, result)
        (line,) = [line for line in result.err.splitlines() if line.startswith("tutti: ")]
        self.assertRegex(line, r"^tutti: rank 1 \(pid \d+\) was killed by signal 11 \(Segmentation fault\); it was ")
        return line

    def test_in_a_call_names_the_case_of_that_backend(self):
        self.assertRegex(self.complaint("crashes_in_calls"), r"in operation \d+ \(all_reduce/crashes_in_calls\.none/\S+\)$")

    def test_at_its_start_it_is_found_out_before_anything_is_measured(self):
        result = support.run(*SWEEP, "--backends", "tutti,crashes_in_start", environment=LAZY)
        self.assertEqual((result.code, result.out), (3, ""), result)
        self.assertRegex(result.err, r"^tutti: two ranks of backend crashes_in_start cannot be started by \S*mpirun\S*: rank [01] "
                                     r"\(pid \d+\) was killed by signal 11")


class Limits(unittest.TestCase):
    """The numbers are told before anything is started."""

    def limited(self, limit, *words):
        with support.Run("-c", f'ulimit {limit} && exec "$0" "$@"', support.PROGRAM, *words, program="/bin/bash") as one:
            result = one.wait(20)
            self.assertEqual((result.code, result.out), (3, ""), result)
            self.assertEqual(one.left_behind(), [])
            complaint = [line for line in result.err.splitlines() if line.startswith("tutti: ")]
            self.assertEqual(len(complaint), 1, result)
            return complaint[0]

    def test_of_open_files(self):
        said = self.limited("-n 32", "run", "barrier", "--backends", "tutti", "--ranks", "64", "--budget", "1s")
        self.assertRegex(said, r"64 ranks need \d+ open files in one process, and the limit is 32 \(ulimit -n\): raise it, "
                               r"or take at most \d+ ranks")

    @support.needs_openmpi
    def test_of_open_files_of_mpirun(self):
        said = self.limited("-n 128", "run", "barrier", "--backends", "openmpi", "--ranks", "64", "--budget", "1s")
        self.assertRegex(said, r"64 ranks need \d+ open files in one process, and the limit is 128 \(ulimit -n\)")

    def test_as_many_ranks_as_are_said_to_fit_do_run(self):
        said = self.limited("-n 32", "run", "barrier", "--backends", "tutti", "--ranks", "64", "--budget", "1s")
        most = re.search(r"at most (\d+) ranks", said)[1]
        result = support.run("-c", f'ulimit -n 32 && exec "$0" "$@"', support.PROGRAM, "run", "barrier", "--backends",
                             "tutti", "--ranks", most, "--budget", "300ms", program="/bin/bash")
        self.assertEqual(result.code, 0, result)

    def test_of_addresses(self):
        said = self.limited("-v 60000", "run", "barrier", "--backends", "tutti", "--ranks", "64", "--ranks-as", "threads",
                            "--budget", "1s")
        self.assertRegex(said, r"64 ranks need \d+ KiB of addresses in one process, and the limit is 60000 \(ulimit -v\)")

    def test_of_stacks(self):
        perf = support.PROGRAM.parent / "all_reduce_perf"
        run = [support.PROGRAM, "run", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes", "8,64K", "--budget", "300ms"]
        for limit in ["-S -s 64", "-s 64", "-s 256", "-s unlimited"]:
            for words in [run, [*run, "--ranks-as", "threads"], [*run, "--ranks-as", "tasks"], [perf, "-b", "8", "-e", "8", "-g", "2"],
                          [support.PROGRAM, "check", "all_reduce", "--ranks", "2", "--ranks-as", "threads", "--dtypes", "float"]]:
                with self.subTest(limit=limit, words=words[1:]):
                    result = support.run("-c", f'ulimit {limit} && exec "$0" "$@"', *words, program="/bin/bash")
                    if limit == "-s 64":
                        self.assertEqual((result.code, result.out), (3, ""), result)
                        self.assertRegex(result.err, r"^\S+: the stack of a process needs 256 KiB, and the limit is 64 \(ulimit -s\): "
                                                     r"raise it\n$")
                    else:
                        self.assertEqual((result.code, re.findall("(?m)^(tutti|all_reduce_perf): ", result.err)), (0, []), result)

    def test_of_a_program_that_joins_a_job(self):
        words = ["-c", 'ulimit -n 32 && exec "$0" "$@"', support.PROGRAM.parent / "all_reduce_perf", "-b", "8", "-e", "8"]
        started = {"RANK": "0", "WORLD_SIZE": "64", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"limits-{os.getpid()}"}
        result = support.run(*words, program="/bin/bash", environment=started)
        self.assertEqual((result.code, result.out), (3, ""), result)
        self.assertRegex(result.err, r"64 ranks need \d+ open files in one process, and the limit is 32")


@needs_mpirun
class Under(unittest.TestCase):
    """Somebody's mpirun."""

    def under(self, ranks, program, *words, limit=60):
        return support.run(*UNDER, "-np", ranks, support.PROGRAM.parent / program, *words, program=MPIRUN, limit=limit)

    def test_one_tutti_starts_its_ranks_itself(self):
        backends = "tutti,openmpi" if support.HAS_OPENMPI else "tutti"
        with support.Run(*UNDER, "-np", 1, support.PROGRAM, *SWEEP, "--backends", backends, *FILES, program=MPIRUN) as one:
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual({(row["backend"], row["ranks"], row["verdict"]) for row in one.rows()[1]},
                             {(name, "2", "ok") for name in backends.split(",")}, result)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core is all that there is")
    def test_one_tutti_has_the_cores_of_who_starts_it(self):
        """Open MPI leaves it one, where nobody asks for another binding."""
        cores = len(os.sched_getaffinity(0))
        words = ["run", "all_reduce", "--sizes", 8, "--backends", "tutti", "--ranks", 2, "--budget", "500ms", *FILES]
        for binding, expected in [([], cores), (["--bind-to", "core"], 1)]:
            with support.Run("--allow-run-as-root", "-np", 1, *binding, support.PROGRAM, *words, program=MPIRUN) as one:
                result = one.wait(60)
                self.assertEqual(result.code, 0, result)
                self.assertEqual(support.read_json(one.path / "record.json")["machine"]["cores_allowed"], str(expected), binding)
                self.assertEqual(once(result.out, "# measured with 2 ranks on 1 core: "), int(expected == 1), result)

    def test_what_is_wrong_is_told_once(self):
        for words, said in [(["run", "all_reduce", "--bogus", "3"], "unknown option '--bogus'"),
                            (["list", "--bogus"], "unknown option '--bogus'"),
                            (["explain", "all_reduce"], "joins no job"), (["train"], "joins no job"),
                            (["run", "all_reduce", "--sizes", "x"], "size 'x' is not a number of bytes"),
                            (["run", "all_reduce", "--ranks", "2"], "did you mean --ranks 3?")]:
            result = self.under(3, "tutti", *words)
            self.assertEqual((result.code, once(result.err, said)), (2, 1), result)
        result = self.under(3, "all_reduce_perf", "-b", "8", "-e", "8", "--csv", "/nowhere/x.csv")
        self.assertEqual((result.code, once(result.err, "/nowhere/x.csv")), (2, 1), result)


@unittest.skipUnless(HYDRA, "there is no mpiexec.hydra")
class UnderHydra(unittest.TestCase):
    """MPICH's mpirun, which kills all processes as soon as one was killed."""

    def test_the_rank_that_is_stopped_is_named_before_it_is_killed(self):
        words = ["run", "all_reduce", "--backends", "tutti", "--sizes", "8,32M", "--iterations", "100000", "--no-limit", "--timeout", "2s"]
        with support.Run("-np", 3, support.PROGRAM, *words, program=HYDRA) as one:
            pid = one.wait_for_ranks(3)[2]
            time.sleep(1)  # they have met, and measure
            os.kill(pid, signal.SIGSTOP)
            result = one.wait(30)
            self.assertIn(f"tutti: rank 2 (pid {pid}) is stopped (state T)", result.err)


    @support.at_night
    def test_a_first_process_that_is_stopped_is_named_and_the_job_ends(self):
        words = ["run", "all_reduce", "--backends", "tutti", "--sizes", "8,32M", "--iterations", "100000", "--no-limit"]
        with support.Run("-np", 3, support.PROGRAM, *words, program=HYDRA) as one:
            one.wait_for_ranks(1)
            time.sleep(1)  # they have met, and measure
            [first] = [pid for pid in one.living() if support.command_of(pid)[1:2] == ["run"]]
            os.kill(first, signal.SIGSTOP)
            result = one.wait(30)
            self.assertNotEqual(result.code, 0, result)
            self.assertIn(f"tutti: the first rank's process of this host (pid {first}) has been stopped (state T) for more than 10 s\n",
                          result.err)
            self.assertEqual(one.left_behind(), [])


class Started(unittest.TestCase):
    """By what says so in the environment only: `tutti run` and `tutti check` join, the others start their ranks themselves."""

    BATCH = {"SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "2"}
    WORDS = ["run", "barrier", "--backends", "tutti", "--ranks", "1", "--budget", "200ms"]

    def test_several_are_refused(self):
        srun = {**self.BATCH, "SLURM_STEP_ID": "0"}
        for variables, code, said in [
                (srun, 2, "srun (SLURM_PROCID) has started 2 ranks, and all of them take part: did you mean --ranks 2?"),
                ({**srun, "SLURM_STEP_NUM_TASKS": "3"}, 2, "did you mean --ranks 3?"),
                ({**srun, "SLURM_STEP_NUM_NODES": "2"}, 2, "do not say which tasks are on this node"),
                ({"PMIX_RANK": "1"}, 2, "PMIX_RANK is 1 and nothing says of how many"),
                ({"RANK": "0", "WORLD_SIZE": "2"}, 2, "nothing names the job")]:
            with self.subTest(variables=variables):
                result = support.run(*self.WORDS, environment=variables)
                self.assertEqual((result.code, result.out, once(result.err, said)), (code, "", 1), result)

    def test_a_single_one_is_not(self):
        for variables in [self.BATCH, {**self.BATCH, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1"},
                          {**self.BATCH, "SLURM_STEP_ID": "0", "SLURM_NTASKS": "1"}]:
            with self.subTest(variables=variables):
                result = support.run(*self.WORDS, environment=variables)
                self.assertEqual(result.code, 0, result)


class Abandoned(unittest.TestCase):
    def test_any_job_removes_what_a_launcher_left_that_was_killed(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"tutti-{os.getuid()}-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        (folder / "backing").write_text("of an MPI")
        result = support.run("run", "barrier", "--backends", "tutti", "--ranks", "2", "--budget", "100ms")
        self.assertEqual(result.code, 0, result)
        self.assertFalse(folder.exists())


@needs_mpirun
class StarterKilled(unittest.TestCase):
    """The starter of the ranks is killed and cannot end them: they end by themselves."""

    def killed(self, expected, *words):
        with support.Run(*UNDER, *words, program=MPIRUN) as one:
            end = time.monotonic() + support.patience(30)
            working = []
            while len(working) < expected and time.monotonic() < end:
                working = [pid for pid in one.living() if is_ours(pid)]
                time.sleep(0.02)
            self.assertGreaterEqual(len(working), expected, one.texts())
            time.sleep(0.5)  # they have met, and measure
            one.process.send_signal(signal.SIGKILL)
            one.process.wait()
            end = time.monotonic() + support.patience(10)
            while one.living() and time.monotonic() < end:
                time.sleep(0.05)
            self.assertEqual([support.command_of(pid) for pid in one.living()], [])

    def test_programs_of_nccl_tests(self):
        self.killed(2, "-np", 2, support.PROGRAM.parent / "all_reduce_perf", "-b", "8", "-e", "64K", "-f", "8", "-N", "0")

    def test_a_single_one(self):
        self.killed(1, "-np", 1, support.PROGRAM.parent / "all_reduce_perf", "-b", "8", "-e", "64K", "-f", "8", "-N", "0",
                    "-g", "2")

    def test_with_a_shell_between(self):
        program = support.PROGRAM.parent / "all_reduce_perf"
        self.killed(2, "-np", 2, "/bin/sh", "-c", f"{program} -b 8 -e 64K -f 8 -N 0; true")

    def test_tutti_and_its_ranks(self):
        self.killed(3, "-np", 1, support.PROGRAM, "run", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes",
                    "8:1M:x2", "--budget", "60s")


if __name__ == "__main__":
    unittest.main()
