#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: starters.py [--program PROGRAM] [--trials NAME,...] STARTER...

`tutti run`, `tutti check` and `tutti accept`, started by real starters over two machines of two ranks each, by the scripts of ci/launch.
The machines are network namespaces (namespaces.py).

  STARTER          of openmpi mpich by-hand torchrun slurm
  --program FILE   tutti (default: build/bin/tutti of this checkout)
  --trials NAMES   of run check killed interrupted accept (default: all)

Each trial is a line. What is missing for torchrun and slurm is installed by scripts/setup. Exit code: 1 where a trial
went wrong, 3 where a starter cannot be had, otherwise 0.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
if "--program" in sys.argv[:-1]:
    os.environ["TUTTI_PROGRAM"] = sys.argv[sys.argv.index("--program") + 1]
os.environ.setdefault("TUTTI_PROGRAM", str(SOURCE / "build/bin/tutti"))  # what `support` finds depends on it

import namespaces
import support

SCRIPTS = SOURCE / "ci/launch"
RANKS = 2  # on each machine
KILLED = 3  # the last one
UNTESTED, SLOW, UNDECIDED = 3, 4, 6  # exit codes
LONG = ["run", "all_reduce", "--sizes", "8", "--iterations", "1000000", "--no-limit", "--quiet"]


class Starter:
    """One way to start ranks on two machines: the script of ci/launch of that name, on the first or on each of them."""

    on_each = False
    needs = []  # programs
    setup = ""  # what scripts/setup --with installs them by

    def __init__(self, name):
        self.name = name
        self.script = SCRIPTS / f"{name}.sh"

    def get(self):
        """Raises unittest.SkipTest where it cannot be had."""
        if self.setup and not self.is_there():
            done = subprocess.run([SOURCE / "scripts/setup", "--with", self.setup], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise unittest.SkipTest(f"{self.name}: {done.stderr.strip()}")
        if not self.is_there():
            raise unittest.SkipTest(f"{self.name}: there is no `{' or '.join(self.needs)}`")

    def is_there(self):
        return all(shutil.which(name) for name in self.needs)

    @contextlib.contextmanager
    def on(self, machines):
        """While it can start something there."""
        yield

    def environment(self, machines):
        return {"HOSTS": machines.hosts(RANKS)}

    def command(self, _, words):
        return [self.script, *words]

    def names(self, rank, host):
        """What is said of a killed rank."""
        return rf"rank {rank} on {host}\b.* (was killed by signal 9|closed its connection)"

    def exclusion_problems(self, _):
        """What is wrong about the exclusion line of an acceptance: it is for Slurm."""
        return []

    def interrupt(self, job):
        """As a terminal does."""
        for run in job.runs:
            os.killpg(run.process.pid, signal.SIGINT)


class OpenMpi(Starter):
    needs = ["mpirun.openmpi"]

    def environment(self, machines):
        return {"HOSTS": machines.hosts(RANKS), "MPIRUN": "mpirun.openmpi", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm_rsh_agent": str(machines.agent),
                "OMPI_MCA_oob_tcp_if_include": machines.CABLE}


class Mpich(Starter):
    needs = ["mpiexec.hydra"]

    def environment(self, machines):
        return {"HOSTS": machines.hosts(RANKS), "HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(machines.agent)}

    def names(self, rank, host):
        """Hydra ends all ranks as soon as one is dead, and tells of one of that machine. What tutti says may be lost."""
        return rf"{super().names(rank, host)}|PID \d+ RUNNING AT {host}"


class ByHand(Starter):
    on_each = True


class Torchrun(Starter):
    on_each = True
    needs = ["torchrun"]
    setup = "torch"

    def environment(self, machines):
        # Of torch 1.13 with Python 3.11 the defaults of --redirects and --tee do not work: what they say of a rank 9 does.
        return {"NODES": "2", "RANKS": str(RANKS), "FIRST": machines.all[0].address,
                "TORCHRUN_OPTIONS": f"--redirects 9:1 --tee 9:1 --log_dir {machines.folder}/log"}


class Slurm(Starter):
    """slurmctld and a slurmd for each machine, out of the distribution's packages, which are only unpacked."""

    setup = "slurm"
    root = SOURCE / "build/slurm"

    def __init__(self, name, mpi):
        super().__init__(name)
        self.script = SCRIPTS / "slurm.sh"
        self.mpi = mpi

    def is_there(self):
        return (self.root / "usr/sbin/slurmd-wlm").exists()

    def environment(self, machines):
        return {**self.variables(machines), "SLURM_MPI_TYPE": self.mpi}

    def variables(self, machines):
        libraries = self.root / "usr/lib/x86_64-linux-gnu"
        return {"LD_LIBRARY_PATH": f"{libraries}/slurm-wlm:{libraries}", "SLURM_CONF": str(machines.folder / "slurm.conf"),
                "PATH": f"{self.root}/usr/bin:{os.environ['PATH']}"}

    def command(self, folder, words):
        return ["sbatch", "--wait", "--output", folder / "out", "--error", folder / "err", self.script, *words]

    @contextlib.contextmanager
    def on(self, machines):
        folder = machines.folder
        for name in ["state", "pmix"]:
            (folder / name).mkdir()
        first = machines.all[0]
        nodes = [f"NodeName={one.name} NodeAddr={one.address} CPUs={RANKS}" for one in machines.all]
        (folder / "slurm.conf").write_text("\n".join([
            "ClusterName=trial", f"SlurmctldHost={first.name}({first.address})", "SlurmUser=root", "AuthType=auth/none",
            "CredType=cred/none", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SelectType=select/linear",
            "KillWait=2", "ReturnToService=2", f"PluginDir={self.root}/usr/lib/x86_64-linux-gnu/slurm-wlm",
            f"StateSaveLocation={folder}/state", f"SlurmdSpoolDir={folder}/spool-%n", f"SlurmctldPidFile={folder}/slurmctld.pid",
            f"SlurmdPidFile={folder}/slurmd-%n.pid", *nodes,
            f"PartitionName=all Nodes={','.join(one.name for one in machines.all)} Default=YES",
            "NodeName=node[1-8] State=FUTURE", ""]))  # those of a pretended cluster: names that an exclusion may have
        (folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={folder}/pmix\n")
        environment = {**os.environ, **self.variables(machines)}
        daemons = []
        with contextlib.ExitStack() as stack:
            def start(machine, program, *words):
                log = stack.enter_context(open(folder / f"{program}-{machine.name}.log", "w", encoding="utf-8"))
                command = machine.enter(self.root / "usr/sbin" / program, "-D", "-f", folder / "slurm.conf", *words)
                daemons.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
                stack.callback(end, daemons[-1])

            start(first, "slurmctld-wlm")
            for machine in machines.all:
                for name in ["spool", "pmix"]:
                    (folder / f"{name}-{machine.name}").mkdir()
                # Both have the same /tmp, and Slurm would make the same folder in it twice.
                machine.run("mount", "--bind", folder / f"pmix-{machine.name}", folder / "pmix")
                start(machine, "slurmd-wlm", "-N", machine.name, "-d", self.root / "usr/sbin/slurmstepd-wlm")
            limit = time.monotonic() + 30
            while self.states(first, environment) != {"idle"}:
                if time.monotonic() > limit or any(one.poll() is not None for one in daemons):
                    logs = "\n".join(path.read_text()[-1000:] for path in folder.glob("slurm*.log"))
                    raise unittest.SkipTest(f"{self.name}: its daemons do not get on\n{logs}")
                time.sleep(0.1)
            machines.residents.update(pid for machine in machines.all for pid in machine.processes())
            yield

    def states(self, machine, environment):
        said = subprocess.run(machine.enter("sinfo", "--noheader", "--Node", "--format", "%T"), env=environment,
                              capture_output=True, text=True, check=False)
        return set(said.stdout.split())

    def exclusion_problems(self, machines):
        """sbatch takes the line that an acceptance proposes, and no other name."""
        folder = machines.folder
        (folder / "cluster.toml").write_text('nodes = 8\n[[fault]]\nwhat = "nic"\nnode = "node3"\nshare = "30%"\n')
        support.run("accept", "--pretend", folder / "cluster.toml", "--exclude", folder / "night")
        line = (folder / "night.exclude.slurm").read_text().splitlines()[0]
        problems = [] if "node3" in line else [f"node3 is not in the exclusion line '{line}'"]
        for words, is_taken in [(line, True), (line.replace("node3", "absent"), False)]:
            said = subprocess.run(machines.all[0].enter("sbatch", "--test-only", *words.split(), self.script, "list"),
                                  env={**os.environ, **self.variables(machines)}, capture_output=True, text=True, check=False)
            if (said.returncode == 0) != is_taken:
                problems.append(f"sbatch --test-only {words}: exit code {said.returncode}: {said.stderr}")
        return problems

    def interrupt(self, job):
        job.machines.all[0].run("env", *(f"{name}={text}" for name, text in self.variables(job.machines).items()), "scancel",
                                "--user", "root")


def end(process):
    """Asked first."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


NAMES = {"openmpi": [OpenMpi("openmpi")], "mpich": [Mpich("mpich")], "by-hand": [ByHand("by-hand")],
         "torchrun": [Torchrun("torchrun")], "slurm": [Slurm("slurm with PMI2", "pmi2"), Slurm("slurm with PMIx", "pmix")]}


class Job:
    """What the starter has started; for a `with`."""

    def __init__(self, starter, machines, *words):
        self.starter, self.machines = starter, machines
        self.folder = tempfile.TemporaryDirectory(prefix="tutti-starter-")
        self.path = pathlib.Path(self.folder.name)
        secret = self.path / "secret"
        secret.touch(0o600)
        secret.write_text(os.urandom(32).hex() + "\n")
        environment = {"TUTTI": str(support.PROGRAM), "TUTTI_SECRET_FILE": str(secret), **starter.environment(machines)}
        command = starter.command(self.path, [str(word).replace("{folder}", str(self.path)) for word in words])
        self.runs = []
        for machine in machines.all if starter.on_each else machines.all[:1]:
            program, *rest = machine.enter(*command)
            self.runs.append(support.Run(*rest, program=program, environment=environment))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for run in self.runs:
            run.__exit__()
        for pid in (pid for machine in self.machines.all for pid in machine.processes() if pid not in self.machines.residents):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.folder.cleanup()

    def text(self):
        """All that it has said."""
        written = [path.read_text() for path in [self.path / "out", self.path / "err"] if path.exists()]
        return "".join([*(run.texts() for run in self.runs), *written])

    def ranks(self):
        """Rank -> pid of those that run now."""
        found = {}
        for machine in self.machines.all:
            for pid in machine.processes():
                if support.command_of(pid)[1:] == ["rank"] and "TUTTI_RANK" in support.environment_of(pid):
                    found[int(support.environment_of(pid)["TUTTI_RANK"])] = pid
        return found

    def wait_for_ranks(self, limit=30):
        end_at = time.monotonic() + support.patience(limit)
        while len(self.ranks()) < RANKS * len(self.machines.all):
            if time.monotonic() > end_at or self.runs[0].process.poll() is not None:
                return None
            time.sleep(0.05)
        time.sleep(1)  # they have met, and measure
        return self.ranks()

    def end(self, limit=60):
        """(the exit code of the first command, what is wrong about the end)."""
        try:
            codes = [run.wait(limit).code for run in self.runs]
        except subprocess.TimeoutExpired:
            return None, [f"still there after {limit} s"]
        left = self.machines.left(support.patience(10)) + [one for run in self.runs for one in run.left_behind()]
        return codes[0], [f"left behind: {one}" for one in left]


def trial_run(starter, machines):
    """Rows of four ranks on both machines, and one report."""
    with Job(starter, machines, "run", "all_reduce", "--sizes", "8,64K", "--budget", "2s", "--csv", "{folder}/rows.csv") as job:
        code, problems = job.end()
        if code != 0:
            return [f"exit code {code}", *problems, job.text()]
        rows = support.read_csv(job.path / "rows.csv")[1]
        found = {(row["verdict"], row["ranks"], row["hosts"], row["transport"]) for row in rows}
        if len(rows) != 2 or found != {("ok", str(2 * RANKS), machines.hosts(RANKS), "tcp")}:
            problems.append(f"{len(rows)} rows: {found}")
        if job.text().count("# 2 rows in 2 cells: 2 ok") != 1:
            problems.append(f"not one report\n{job.text()}")
        return problems


def trial_check(starter, machines):
    with Job(starter, machines, "check", "all_reduce", "barrier", "broadcast", "--hosts", "2", "--ranks", "4") as job:
        code, problems = job.end()
        if code != 0 or not re.search(r"# check: (\d+) cases as processes, \1 ok, 0 wrong, 0 neither, 0 not run", job.text()):
            problems += [f"exit code {code}", job.text()]
        return problems


def trial_killed(starter, machines):
    """Of the second machine its first rank, which is a child of what the starter has started, and its last."""
    problems = []
    for rank in [RANKS, KILLED]:
        with Job(starter, machines, *LONG) as job:
            ranks = job.wait_for_ranks()
            if ranks is None:
                return [*problems, f"the ranks did not come\n{job.text()}"]
            os.kill(ranks[rank], signal.SIGKILL)
            code, found = job.end(30)
            named = starter.names(rank, machines.all[1].name)
            if code == 0 or not re.search(named, job.text()):
                found += [f"exit code {code}, or it is not named", job.text()]
            problems += [f"rank {rank}: {one}" for one in found]
    return problems


def trial_interrupted(starter, machines):
    with Job(starter, machines, *LONG) as job:
        if job.wait_for_ranks() is None:
            return [f"the ranks did not come\n{job.text()}"]
        starter.interrupt(job)
        code, problems = job.end(30)
        return problems + ([f"exit code {code}"] if code == 0 else [])


def trial_accept(starter, machines):
    """Pairs of both machines, by the first process of each; two machines are too few to blame one."""
    with Job(starter, machines, "accept", "--stages", "inventory,pairs", "--margin", "50%", "--message-size", "64K", "--budget", "60s",
             "--lines", "{folder}/lines") as job:
        code, problems = job.end(90)
        text = job.text()
        if told := re.search(r"exitcode +: (\d+)", text):
            code = int(told[1])  # torchrun's own is 1, whatever its ranks' are
        if code not in (0, UNTESTED, SLOW, UNDECIDED) or text.count("# tutti accept:") != 1:
            return [f"exit code {code}", *problems, text]
        lines = [json.loads(line) for line in (job.path / "lines").read_text().splitlines()]
        tests = [line for line in lines[1:] if "group" in line]
        names = sorted(machine.name for machine in machines.all)
        if not tests or {tuple(sorted(line["group"])) for line in tests if line["stage"] == "pairs"} != {tuple(names)}:
            problems.append(f"{len(tests)} tests\n{text}")
        if {line["ending"] for line in tests} - {"measured", "interrupted"}:
            problems.append(f"a test that failed: {tests}")
        if not any(f"# inventory: {one} and {other} are one machine" in text for one, other in [names, names[::-1]]):
            problems.append(f"its inventory has not both machines\n{text}")
        return problems + starter.exclusion_problems(machines)


TRIALS = {"run": trial_run, "check": trial_check, "killed": trial_killed, "interrupted": trial_interrupted, "accept": trial_accept}


def perform(name, trials):
    """(starter, trial, seconds, problems) of each. Raises unittest.SkipTest where the starter cannot be had."""
    for starter in NAMES[name]:
        starter.get()
        with namespaces.Machines(2) as machines, starter.on(machines):
            for trial in trials:
                begin = time.monotonic()
                problems = TRIALS[trial](starter, machines)
                yield starter.name, trial, time.monotonic() - begin, problems


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("starters", nargs="*")
    parser.add_argument("--trials", type=lambda text: text.split(","), default=list(TRIALS))
    parser.add_argument("--help", action="store_true")
    parser.add_argument("--program")
    asked = parser.parse_args()
    if asked.help:
        print(__doc__, end="")
        return 0
    if not asked.starters or not set(asked.starters) <= set(NAMES) or not set(asked.trials) <= set(TRIALS):
        parser.error(f"a STARTER is of {' '.join(NAMES)}, a trial of {' '.join(TRIALS)}")
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))  # KeyboardInterrupt, too
    code = 0
    try:
        for name in asked.starters:
            for starter, trial, seconds, problems in perform(name, asked.trials):
                print(f"{'wrong' if problems else 'ok':<6} {seconds:>5.1f} s  {starter:<16} {trial}", *problems, sep="\n", flush=True)
                code = code or int(bool(problems))
    except unittest.SkipTest as reason:
        print(reason)
        return code or 3
    return code


if __name__ == "__main__":
    sys.exit(main())
