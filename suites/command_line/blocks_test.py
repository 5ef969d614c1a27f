# SPDX-License-Identifier: Apache-2.0
"""Ranks that are thread blocks, as threads of the host: `run`, `check`, its faults and its soak, what is refused, and what
is left when a job is interrupted or killed."""
import os
import pathlib
import re
import signal
import time
import unittest

import support
from trials import CRASH, KILL_LIMIT

USAGE, ENVIRONMENT, INTERRUPTED = 2, 3, 130
FILES = ["--csv", "{folder}/rows.csv", "--json", "{folder}/record.json"]
HOST = ["--ranks-as", "blocks", "--device", "host"]
LONG = [*HOST, "--backends", "tutti", "--ranks", "2", "--sizes", "8:64K:+64", "--budget", "100s", *FILES]
HAS_GPU = pathlib.Path("/dev/nvidia0").exists()
COLUMNS = ["ranks_as", "device", "lanes", "block_threads"]
DOUBLES = pathlib.Path(os.environ["TUTTI_BUILD"]) / "doubles"
TWO_GPUS = {"TUTTI_CUDART": str(DOUBLES / "libcudart.so"), "TUTTI_TRANSPORTS": str(DOUBLES / "kernels"), "TUTTI_DOUBLE_DEVICES": "2"}
ON_GPUS = ["--ranks-as", "blocks", "--gpus", "2", "--dtypes", "float", "--ops", "sum"]
HAS_DOUBLES = pathlib.Path(TWO_GPUS["TUTTI_TRANSPORTS"]).exists()


def columns_of(rows):
    return {tuple(row[name] for name in COLUMNS) for row in rows}


class Measured(unittest.TestCase):
    def sweep(self, *words):
        with support.Run("run", *words, *HOST, "--sizes", "8,4096", "--budget", "1s", *FILES) as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertEqual(run.left_behind(), [])
            _, rows = run.rows()
            self.assertEqual(support.differences(rows, support.read_json(run.path / "record.json")["rows"]), [])
            return result, rows

    def test_rows_say_what_ran_the_blocks(self):
        result, rows = self.sweep("all_reduce", "barrier", "--backends", "tutti", "--ranks", "2", "--lanes", "2", "--block-threads", "2")
        self.assertEqual(len(rows), 3, result)
        self.assertEqual({row["verdict"] for row in rows}, {"ok"}, result)
        self.assertEqual(columns_of(rows), {("blocks", "host", "2", "2")})
        self.assertTrue(all("/P2.blocks/" in row["case"] for row in rows), rows)
        self.assertIn("# measured with thread blocks as threads of the host, 2 thread blocks a rank, 2 threads a block\n", result.out)

    def test_what_auto_took_from_the_cost_formula_is_marked(self):
        result, rows = self.sweep("all_reduce", "--backends", "tutti", "--ranks", "2")
        self.assertEqual({row["marks"].split("; ")[-1] for row in rows}, {"from the cost formula"}, rows)
        self.assertIn("# from the cost formula: 2 rows whose algorithm `auto` chose by it", result.out)
        named, rows = self.sweep("all_reduce", "--backends", "tutti", "--ranks", "2", "--algorithms", rows[0]["algorithm"])
        self.assertFalse(any("cost formula" in row["marks"] for row in rows), rows)
        self.assertNotIn("cost formula", named.out)

    def test_the_limit_is_what_teams_move(self):
        _, rows = self.sweep("all_reduce", "all_gather", "--backends", "tutti", "--ranks", "2", "--lanes", "2")
        for row in rows:
            self.assertEqual((row["memory"], row["limit_way"], row["verified_by"]), ("host", "movements", "teams"), row)
            self.assertGreater(float(row["limit_fraction"]), 0)

    def test_what_nobody_chose_is_not_said(self):
        result, rows = self.sweep("all_reduce", "--backends", "tutti", "--ranks", "3")
        self.assertEqual(columns_of(rows), {("blocks", "host", "", "")})
        self.assertIn("# measured with thread blocks as threads of the host\n", result.out)

    def test_ranks_dealt_over_devices_are_told_so(self):
        result, rows = self.sweep("all_reduce", "--backends", "tutti", "--ranks", "3", "--gpus", "2")
        self.assertEqual({(row["verdict"], row["gpus"]) for row in rows}, {("ok", "2")}, rows)
        self.assertIn("# measured with thread blocks as threads of the host, ranks dealt over 2 devices\n", result.out)
        _, rows = self.sweep("all_reduce", "--backends", "tutti", "--ranks", "3")
        self.assertEqual({row["gpus"] for row in rows}, {""})

    @unittest.skipUnless(support.REFERENCES, "no reference is built")
    def test_references_are_skipped_by_name(self):
        _, rows = self.sweep("all_reduce", "--backends", ",".join(["tutti", *support.REFERENCES]), "--ranks", "2")
        skipped = {row["backend"]: row["reason"] for row in rows if row["verdict"] == "skipped"}
        self.assertEqual(set(skipped), set(support.REFERENCES))
        for name, reason in skipped.items():
            self.assertEqual(reason, f"{name} runs with ranks as processes, not as blocks")

    def test_a_case_is_brought_back(self):
        case = "all_reduce/tutti.ring/local/bfloat16/avg/P3.blocks/none/1002B/out/private/isolated"
        with support.Run("check", "--case", case, "--device", "host", "--lanes", "2", "--csv", "{folder}/rows.csv") as run:
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            rows = run.rows()[1]
        self.assertEqual([(row["case"], row["verdict"]) for row in rows], [(case, "ok")])
        self.assertEqual(columns_of(rows), {("blocks", "host", "2", "")})


class Checked(unittest.TestCase):
    @support.at_night
    def test_windows_prefixes_and_v_forms(self):
        with support.Run("check", "pingpong", "bandwidth", "bibandwidth", "message_rate", "scan", "exscan", "all_gather_v",
                         "all_to_all_v", "--ranks", "1,2,3", *HOST, "--dtypes", "int32", "--ops", "sum", "--lanes", "3",
                         "--csv", "{folder}/rows.csv") as run:
            result = run.wait(120)
            self.assertEqual(result.code, 0, result)
            rows = run.rows()[1]
        ok, = re.findall(r"^# check: (\d+) cases as blocks, \1 ok, 0 wrong, 0 neither, 0 not run; every plan proved", result.out, re.M)
        self.assertEqual(len(rows), int(ok))
        self.assertEqual({row["collective"] for row in rows}, {"pingpong", "bandwidth", "bibandwidth", "message_rate", "scan", "exscan",
                                                               "all_gather_v", "all_to_all_v"})

    def test_faults_are_found(self):
        result = support.run("check", "all_reduce", "broadcast", "all_to_all_v", "--faults", "all", "--ranks", "3", *HOST,
                             limit=120)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^# faults: .* as blocks, seed 1: \d{2,} caught .*, 0 missed,")

    def test_faults_on_two_devices_are_found(self):
        result = support.run("check", "all_reduce", "broadcast", "--faults", "all", "--ranks", "3", *HOST, "--gpus", "2",
                             limit=120)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^# faults: .* as blocks, seed 1: \d{2,} caught .*, 0 missed,")

    def test_the_mix_of_a_seed_is_that_of_tasks(self):
        mixes = {}
        for words in [["--ranks-as", "tasks"], HOST, [*HOST, "--lanes", "2"], [*HOST, "--gpus", "3"]]:
            result = support.run("check", "soak", "--ranks", "3", *words, "--seed", "3", "--operations", "300")
            self.assertEqual((result.code, result.err), (0, ""), result)
            command, mix, wrong = re.match(r"(tutti check soak .*): mix (\w{16}), \d+ results verified, (\d+) wrong", result.out).groups()
            self.assertEqual(wrong, "0")
            mixes[command] = mix
        self.assertEqual(len(set(mixes.values())), 1, mixes)
        self.assertIn("tutti check soak --ranks 3 --ranks-as blocks --device host --lanes 2 --seed 3 --operations 300", mixes)


@unittest.skipUnless(HAS_DOUBLES, "no double of CUDA is built")
class OnGpus(unittest.TestCase):
    """On the double of CUDA, which runs the kernels' text late, and refuses what a GPU would."""

    def test_ranks_on_two_gpus_are_right_and_launched_together(self):
        with support.Run("check", "all_reduce", "all_gather", "--ranks", "2,3", *ON_GPUS, "--csv", "{folder}/rows.csv",
                         environment={**TWO_GPUS, "TUTTI_DOUBLE_LOG": "{folder}/log"}) as run:
            result = run.wait(120)
            self.assertEqual(result.code, 0, result)
            rows = [row for row in run.rows()[1] if row["buffers"] == "private"]
            self.assertGreater(len(rows), 20)
            self.assertEqual({(row["verdict"], row["memory"], row["gpus"]) for row in rows}, {("ok", "gpu", "2")})
            log = (run.path / "log").read_text().splitlines()
        loaded = [line for line in log if line.startswith("kernels on ")]
        peers = [line for line in log if line.startswith("peers ")]
        blocks = [line.split(":")[0] for line in log if line.startswith("blocks on ")]
        self.assertEqual((sorted(set(loaded)), sorted(set(peers))), (["kernels on 0", "kernels on 1"], ["peers 0 1", "peers 1 0"]))
        first = log.index(next(line for line in log if line.startswith("blocks on ")))
        self.assertLess(max(log.index("kernels on 0"), log.index("kernels on 1")), first, "a kernel that spins would never end")
        self.assertEqual(blocks, ["blocks on 0", "blocks on 1"] * (len(blocks) // 2))

    def test_a_rank_has_as_many_blocks_as_there_are_multiprocessors_for_it(self):
        four = {**TWO_GPUS, "TUTTI_DOUBLE_MULTIPROCESSORS": "4", "TUTTI_DOUBLE_LOG": "{folder}/log"}
        for words, blocks, lanes in [([], [2, 4], ""), (["--lanes", "1"], [1, 2], "1")]:
            with self.subTest(words), support.Run("check", "all_reduce", "--ranks", "3", *ON_GPUS, *words,
                                                  "--csv", "{folder}/rows.csv", environment=four) as run:
                result = run.wait(60)
                self.assertEqual(result.code, 0, result)
                self.assertEqual({row["lanes"] for row in run.rows()[1] if row["verdict"] == "ok"}, {lanes})
                log = set((run.path / "log").read_text().splitlines())
            # Of three ranks two lie on the first GPU, and by them all ranks have as many.
            self.assertEqual({line for line in log if line.startswith("blocks on ")}, {f"blocks on 0: {blocks[1]}", f"blocks on 1: {blocks[0]}"})

    def test_faults_of_plans_are_found(self):
        result = support.run("check", "all_reduce", "all_to_all_v", "--faults", "all", "--ranks", "3",
                             *ON_GPUS, limit=120, environment=TWO_GPUS)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"(?m)^# faults: .* as blocks, seed 1: 15 caught .*, 0 missed, 13 not applicable, 0 not injected")
        self.assertRegex(result.out, r"(?m)^  not applicable   flipped_bit +the arithmetic of a GPU's kernels cannot be replaced$")

    def test_times_are_the_hosts_alone(self):
        # Launches are on no stream of the buffers' memory.
        for cadence in ["isolated", "streaming"]:
            with support.Run("run", "all_reduce", "broadcast", "--backends", "tutti", "--ranks", "3", *ON_GPUS, "--sizes", "1K", "--budget", "1s",
                             "--cadence", cadence, "--csv", "{folder}/rows.csv", environment=TWO_GPUS) as run:
                result = run.wait(60)
                self.assertEqual(result.code, 0, result)
                rows = run.rows()[1]
            self.assertEqual([(row["verdict"], row["memory"], row["time_on_gpu"]) for row in rows], [("ok", "gpu", "")] * 2, rows)

    def test_more_than_there_are_is_refused_with_the_numbers(self):
        for command in [["run", "all_reduce", "--backends", "tutti"], ["check", "all_reduce"]]:
            result = support.run(*command, "--ranks-as", "blocks", "--ranks", "4", "--gpus", "4", environment=TWO_GPUS)
            self.assertEqual(result.code, ENVIRONMENT, result)
            self.assertRegex(result.err, r"(?m)^tutti: rank 0: --gpus 4: this process has 2 GPUs \(CUDA_VISIBLE_DEVICES is .*\); --device host "
                                         r"runs thread blocks as threads of the host\n$")

    def test_gpus_that_are_no_peers_are_refused_by_name(self):
        result = support.run("check", "all_reduce", "--ranks", "2", *ON_GPUS, environment={**TWO_GPUS, "TUTTI_DOUBLE_PEERS": "0"})
        self.assertEqual(result.code, ENVIRONMENT, result)
        self.assertIn("GPU 0 (Double 0) cannot address the memory of GPU 1 (Double 1), where other ranks lie", result.err)

    def test_more_blocks_than_are_at_work_at_once(self):
        result = support.run("check", "all_reduce", "--ranks", "65", "--ranks-as", "blocks", environment=TWO_GPUS)
        self.assertEqual(result.code, ENVIRONMENT, result)
        self.assertIn("65 thread blocks at once: the Double 0 has room for 64 (64 on each of its 1 multiprocessors)", result.err)


class Refused(unittest.TestCase):
    def refused(self, code, *words, said):
        with support.Run(*words) as run:
            result = run.wait(30)
            self.assertEqual(result.code, code, result)
            self.assertEqual(result.err.strip(), said)
            return result

    @unittest.skipIf(HAS_GPU, "there is a GPU")
    def test_without_a_gpu_one_line_says_why_and_what_there_is_instead(self):
        for command in [["run", "all_reduce", "--backends", "tutti", "--csv", "{folder}/rows.csv"], ["check", "all_reduce"],
                        ["check", "soak", "--operations", "10"], ["check", "all_reduce", "--faults", "all"]]:
            with support.Run(*command, "--ranks-as", "blocks", "--ranks", "2") as run:
                result = run.wait(30)
                self.assertEqual(result.code, ENVIRONMENT, result)
                said = result.err.strip().splitlines()
                self.assertEqual(len(said), 1, result)
                self.assertRegex(said[0], r"^tutti: rank 0: .*--device host runs thread blocks as threads of the host$")
                if "{folder}/rows.csv" in command:
                    self.assertEqual(run.rows()[1], [])

    def test_a_device_without_blocks(self):
        for words in [["run", "all_reduce", "--ranks", "2"], ["check", "all_reduce", "--ranks-as", "tasks"],
                      ["run", "all_reduce", "--ranks-as", "threads"]]:
            kind = words[words.index("--ranks-as") + 1] if "--ranks-as" in words else "processes"
            for option, value in [("--device", "host"), ("--lanes", "2"), ("--block-threads", "2"), ("--gpus", "2")]:
                self.refused(USAGE, *words, option, value,
                             said=f"tutti: {option}: '{value}' has no meaning with --ranks-as {kind}, whose ranks are no thread "
                                  "blocks: did you mean --ranks-as blocks?")

    def test_numbers_out_of_range(self):
        for option, value, noun, most, nearest in [("--lanes", "0", "thread blocks", 64, 1), ("--lanes", "65", "thread blocks", 64, 64),
                                                   ("--block-threads", "2000", "threads", 1024, 1024),
                                                   ("--block-threads", "0", "threads", 1024, 1),
                                                   ("--gpus", "0", "devices", 64, 1), ("--gpus", "100", "devices", 64, 64)]:
            self.refused(USAGE, "run", "all_reduce", *HOST, option, value,
                         said=f"tutti: {option}: '{value}' is not a number of {noun}: a whole number from 1 to {most}: did you mean "
                              f"'{nearest}'?")
        self.refused(USAGE, "run", "all_reduce", "--ranks-as", "blocks", "--device", "hots",
                     said="tutti: --device: unknown device 'hots': did you mean 'host'? (one of: gpu host)")

    def test_more_devices_than_ranks(self):
        for command in [["run", "all_reduce", "--ranks", "2,8"], ["check", "all_reduce", "--ranks", "2:4"],
                        ["check", "soak", "--ranks", "2"]]:
            self.refused(USAGE, *command, *HOST, "--gpus", "3",
                         said="tutti: --gpus: 3 of them are more than 2 ranks: did you mean 2, or --ranks 3?")

    def test_more_blocks_than_can_be_at_work_are_refused_before_anything_is_measured(self):
        for words, teams, threads in [(["--ranks", "2000"], 2000, 1), (["--ranks", "300", "--lanes", "4"], 1200, 1),
                                      (["--ranks", "8", "--lanes", "64", "--block-threads", "4"], 512, 4)]:
            with support.Run("run", "all_reduce", "--backends", "tutti", *HOST, *words, "--sizes", "8", *FILES) as run:
                result = run.wait(30)
                self.assertEqual(result.code, ENVIRONMENT, result)
                self.assertEqual(result.err.strip(), f"tutti: rank 0: {teams} blocks of {threads} threads are {teams * threads} threads of "
                                                     "the host: at most 1024")
                self.assertEqual(run.rows()[1], [])
                self.assertEqual(run.left_behind(), [])


class Ended(unittest.TestCase):
    """Nothing is left, and what was measured is kept."""

    def started(self):
        run = support.Run("run", "all_reduce", *LONG)
        self.addCleanup(run.__exit__)
        pid = run.wait_for_ranks(1)[0]  # one process for all
        run.note_memory()
        run.wait_for_rows(2)
        return run, pid

    def assert_kept(self, run, result):
        _, rows = run.rows()
        self.assertGreaterEqual(len(rows), 2, result)
        self.assertEqual({row["verdict"] for row in rows}, {"ok"}, result)
        self.assertEqual(support.differences(rows, support.read_json(run.path / "record.json")["rows"]), [])
        self.assertEqual(run.left_behind(), [], result)

    def test_interrupted(self):
        before = support.shared_memory()
        run, _ = self.started()
        run.process.send_signal(signal.SIGINT)
        result = run.wait(5)
        self.assertEqual(result.code, INTERRUPTED, result)
        self.assertIn("interrupted", result.err)
        self.assert_kept(run, result)
        self.assertEqual(support.abandoned_shared_memory(before), set())

    def test_the_ranks_are_killed(self):
        run, pid = self.started()
        os.kill(pid, signal.SIGKILL)
        result = run.wait(KILL_LIMIT)
        self.assertEqual(result.code, CRASH, result)
        self.assertRegex(result.err, rf"(?m)^tutti: rank 0 \(pid {pid}\) .*was killed by signal 9", result)
        self.assert_kept(run, result)

    def test_the_program_is_killed(self):
        run, pid = self.started()
        run.process.kill()
        run.process.wait()
        end = time.monotonic() + support.patience(5)
        while run.living() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual([left for left in run.left_behind() if not left.startswith("file ")], [], f"the ranks were {pid}")
        self.assertGreaterEqual(len(run.rows()[1]), 2)


if __name__ == "__main__":
    unittest.main()
