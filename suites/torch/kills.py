#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: kills.py [--trials N] [--seed N] [--python PYTHON] [--module FOLDER]

Kills a rank of suites/training/train.py at a random moment, again and again: with 2 to 4 ranks, by all_reduce or DDP, with
and without processes that load data. All other ranks must end in time, with an error that names the dead one and its
process, and leave nothing: no process, and no memory.

  --trials N         (default: 200)
  --seed N           of the first trial; the next has the next (default: drawn)
  --python PYTHON    that has torch (default: /usr/bin/python3)
  --module FOLDER    of tutti_torch (default: build/lib/python of this checkout)

Exit code: 0; 1 where a trial failed, which is printed with its seed; 2 usage; 3 no torch or no tutti_torch.
"""
import argparse
import ctypes
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = 64
SECONDS = 5  # until all others have told of the death, on an idle machine
SECONDS_TO_MEET = 30
SECONDS_TO_GO = 12  # a process that loads data asks every 5 s whether its rank lives
LONGEST = 0.6  # s, of the training before the kill
SET_CHILD_SUBREAPER = 36  # of prctl


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--module", type=pathlib.Path, default=ROOT / "build/lib/python")
    parser.add_argument("--help", action="store_true")
    asked = parser.parse_args()
    if asked.help:
        print(__doc__, end="")
        sys.exit(0)
    if asked.trials < 1:
        parser.error(f"--trials {asked.trials}: 1 or more")
    return asked


def with_torch(asked):
    """This script again, by the Python that has torch; it imports torch once for all trials."""
    path = os.pathsep.join(filter(None, [str(asked.module), str(ROOT / "suites/training"), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TUTTI_KILLS": "1"}
    try:
        done = subprocess.run([asked.python, "-B", "-c", "import torch, tutti_torch"], env=environment, capture_output=True, text=True)
        why_not = (done.stderr.strip().splitlines() or [""])[-1] if done.returncode != 0 else ""
    except OSError as failure:
        why_not = str(failure)
    if why_not:
        print(f"kills.py: {asked.python} has no torch, or {asked.module} no tutti_torch: {why_not}", file=sys.stderr)
        sys.exit(3)
    sys.stdout.flush()
    os.execve(asked.python, [asked.python, "-B", __file__, *sys.argv[1:]], environment)


def patience(seconds):
    """Longer where others keep the cores busy."""
    return seconds * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def children():
    """Ids of all that this process started, or that their own parents left behind."""
    found = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(word) for word in found.split()]


def rank_main(rank, size, asked, folder):
    """The program as it is. That it trains, and how it ends, stands in files."""
    import torch.distributed as dist
    import train

    said = os.open(pathlib.Path(folder, f"said.{rank}"), os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    meet = dist.init_process_group

    def meet_and_tell(*words, **more):
        meet(*words, **more)
        pathlib.Path(folder, f"met.{rank}").touch()

    dist.init_process_group = meet_and_tell
    met = {"type": "", "text": ""}
    try:
        train.process(rank, size, asked)
    except BaseException as failure:
        met = {"type": type(failure).__name__, "text": str(failure)}
    met["at"] = time.monotonic()
    unfinished = pathlib.Path(folder, f"{rank}.part")
    unfinished.write_text(json.dumps(met))
    unfinished.rename(pathlib.Path(folder, f"{rank}.json"))


class Trial:
    def __init__(self, seed):
        draws = random.Random(seed)
        self.seed, self.size = seed, draws.choice([2, 3, 4])
        self.victim = draws.randrange(self.size)
        self.ddp, self.workers = draws.random() < 0.5, draws.choice([0, 0, 1])
        self.after = draws.uniform(0, LONGEST)
        self.seconds = 0.0
        self.problems = []

    def __str__(self):
        how = ("DDP" if self.ddp else "all_reduce") + (f", {self.workers} to load" if self.workers else "")
        return f"--seed {self.seed}: rank {self.victim} of {self.size} ({how}) killed {self.after:.2f} s after they met"

    def perform(self):
        import multiprocessing
        fork = multiprocessing.get_context("fork")
        asked = argparse.Namespace(backend="tutti", ranks=self.size, images=IMAGES, batch=16, epochs=10**6, rate=0.01, momentum=0.5,
                                   data=None, ddp=self.ddp, workers=self.workers)
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        with tempfile.TemporaryDirectory(prefix="tutti-kills-") as folder:
            ranks = [fork.Process(target=rank_main, args=(rank, self.size, asked, folder)) for rank in range(self.size)]
            for rank in ranks:
                rank.start()
            try:
                self.kill(ranks, folder)
                self.judge(ranks, folder)
            finally:
                for rank in ranks:
                    rank.kill()
                    rank.join()
        self.look_for_what_is_left()

    def kill(self, ranks, folder):
        end = time.monotonic() + patience(SECONDS_TO_MEET)
        while not all(pathlib.Path(folder, f"met.{rank}").exists() for rank in range(self.size)):
            if time.monotonic() > end:
                self.problems.append("the ranks do not meet")
                self.problems += [file.read_text() for file in pathlib.Path(folder).glob("said.*")]
                return
            time.sleep(0.01)
        time.sleep(self.after)
        self.killed_at = time.monotonic()
        ranks[self.victim].kill()

    def judge(self, ranks, folder):
        if self.problems:
            return
        end = self.killed_at + patience(SECONDS)
        for rank, process in enumerate(ranks):
            process.join(max(0.0, end - time.monotonic()) + patience(SECONDS_TO_GO))
            if rank == self.victim:
                continue
            if process.exitcode != 0:
                self.problems.append(f"rank {rank} has " + ("not ended" if process.exitcode is None else f"exit code {process.exitcode}"))
                continue
            met = json.loads(pathlib.Path(folder, f"{rank}.json").read_text())
            self.seconds = max(self.seconds, met["at"] - self.killed_at)
            named = f"rank {self.victim} failed: its process (pid {ranks[self.victim].pid}) has ended"
            if met["type"] != "RuntimeError" or named not in met["text"]:
                self.problems.append(f"rank {rank}: {met['type']}: {met['text']}")
            if met["at"] > end:
                self.problems.append(f"rank {rank} told of it after {met['at'] - self.killed_at:.1f} s")

    def look_for_what_is_left(self):
        """Of a killed rank the processes that load data end by themselves."""
        end = time.monotonic() + patience(SECONDS_TO_GO)
        while (left := children()) and time.monotonic() < end:
            for child in left:
                os.waitpid(child, os.WNOHANG)
            time.sleep(0.02)
        for child in left:
            self.problems.append(f"left behind: process {child}")
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.problems += [f"left behind: /dev/shm/{name}" for name in os.listdir("/dev/shm") if "tutti-world" in name]
        if "tutti-world" in pathlib.Path("/proc/self/maps").read_text():
            self.problems.append("left behind: memory in the process that starts the ranks")


def main():
    asked = arguments()
    if "TUTTI_KILLS" not in os.environ:
        with_torch(asked)
    import torch
    import tutti_torch  # noqa: F401
    import train
    torch.set_num_threads(1)
    drawn = train.drawn(IMAGES, train.SEED)
    train.drawn = lambda *_: drawn
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print(f"seed {asked.seed}, torch {torch.__version__}", flush=True)
    begin = time.monotonic()
    trials = []
    for number in range(asked.trials):
        trial = Trial(asked.seed + number)
        trial.perform()
        trials.append(trial)
        print(f"{'FAILED' if trial.problems else 'held'}: {trial}, told within {trial.seconds:.2f} s", *trial.problems, sep="\n", flush=True)
    failed = [trial for trial in trials if trial.problems]
    longest = max(trial.seconds for trial in trials)
    print(f"{len(trials)} kills, {len(trials) - len(failed)} held, {len(failed)} failed; all others told of it within {longest:.2f} s; "
          f"{time.monotonic() - begin:.0f} s in all")
    for trial in failed:
        print(f"  suites/torch/kills.py --trials 1 --seed {trial.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
