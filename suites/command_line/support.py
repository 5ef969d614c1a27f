# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: running the program with a limit, reading what it wrote, finding its ranks,
and finding what it left behind.

Everything that the program starts inherits a mark in its environment, so that what belongs to one run is told from
whatever else runs on the machine, other runs of tutti included.
"""
import csv
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import uuid

import jsonschema

PROGRAM = pathlib.Path(os.environ["TUTTI_PROGRAM"]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = json.loads((SOURCE / "harness/report/schema.json").read_text())
VERDICTS = json.loads((SOURCE / "harness/gate/schema.json").read_text())  # of gate, compare and guidelines
HAS_OPENMPI = (PROGRAM.parent / "libtutti_backend_openmpi.so").exists()
# What most tests compare: an MPI is enough there, and all of them would take long.
SYSTEMS = ["tutti", "openmpi"] if HAS_OPENMPI else ["tutti"]
# All references that were built.
BUILT = sorted(path.name[len("libtutti_backend_"):-len(".so")] for path in PROGRAM.parent.glob("libtutti_backend_*.so"))
# Those that run on any machine, which the tests of references are about: the others need a GPU.
REFERENCES = [name for name in BUILT if name != "nccl"]


def needs(reference):
    return unittest.skipUnless(reference in REFERENCES, f"the backend {reference} is not built")


needs_openmpi = unittest.skipUnless(HAS_OPENMPI, "the openmpi backend is not built")
# What takes long, and is no part of scripts/test. A file that says so is run by `ctest -C night` too (CMakeLists.txt).
at_night = unittest.skipUnless("TUTTI_NIGHT" in os.environ, "it takes long: a part of suites/nightly/run")

RANK_VARIABLES = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "TUTTI_RANK"]  # of what mpirun starts, and of the own spawn
MARK = "TUTTI_TEST_MARK"
# Columns of a selection table, without those that may be left out.
TABLE_HEADER = "collective,place,crowded,buffers,ranks_from,ranks_to,bytes_from,bytes_to,algorithm,segment,stores,source"
# A machine of the LogGP model alone.
LOGGP = """
name = "one rank a node"
ranks_per_node = 1
[far]
latency = 1000
send = 300
receive = 300
wire = [[0, 0], [1000000, 100000]]
[node]
flag = 0
reduce = [[0, 0], [1000000, 50000]]
copy = 0
read = 0
"""
LEFT_OVER = re.compile(r"^(tutti|vader|ompi|osc|sm_|shm_|open_mpi|mpich|Intel_MPI)")  # names that tutti or an MPI may leave in /dev/shm


def patience(seconds):
    """The limit `seconds`, longer where others keep the cores busy: to wait for a core is not the program's fault.

    A core that the host takes away, and a load that has just begun, are in no load average: hence twice `seconds` at least.
    """
    return seconds * max(2.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


@dataclasses.dataclass
class Process:
    pid: int
    parent: int
    state: str


def processes():
    """All live processes; zombies are dead."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = pathlib.Path("/proc", name, "stat").read_text()
        except OSError:
            continue
        state, parent = stat.rpartition(")")[2].split()[:2]
        if state != "Z":
            found.append(Process(int(name), int(parent), state))
    return found


def environment_of(pid):
    try:
        entries = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    return dict(entry.decode(errors="replace").split("=", 1) for entry in entries if b"=" in entry)


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def open_files_of(pid):
    """Descriptor's path in /proc -> what is open there; not all of them where the process ends meanwhile."""
    found = {}
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            found[path] = os.readlink(path)
    except OSError:
        pass
    return found


def memory_files_of(pid):
    """(device, inode) of each memfd that the process holds."""
    found = set()
    for path, target in open_files_of(pid).items():
        if target.startswith("/memfd:"):
            try:
                about = os.stat(path)
            except OSError:
                continue
            found.add((about.st_dev, about.st_ino))
    return found


def take_shared_memory_of_its_own():
    """Gives this test, and all that it starts, a /dev/shm that no other test writes to: one that kills a launcher leaves
    names there for a while. Without the right to mount, the test shares /dev/shm with the others."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, recursive_private = 0x00020000, (1 << 14) | (1 << 18)  # CLONE_NEWNS; MS_REC | MS_PRIVATE
    if libc.unshare(new_mounts) == 0 and libc.mount(None, b"/", None, recursive_private, None) == 0:
        libc.mount(b"tests", b"/dev/shm", b"tmpfs", 0, b"mode=1777")


take_shared_memory_of_its_own()


def shared_memory():
    return {name for name in os.listdir("/dev/shm") if LEFT_OVER.match(name)}


def is_in_use(path):
    """Whether a live process has something at or below `path` open or mapped."""
    for process in processes():
        if any(target.startswith(path) for target in open_files_of(process.pid).values()):
            return True
        try:
            if path in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
                return True
        except OSError:
            continue  # it has ended
    return False


def abandoned_shared_memory(before):
    """What is new since `before` = shared_memory() and belongs to nobody, now and a moment later."""
    for _ in range(3):
        left = {name for name in shared_memory() - before if not is_in_use(f"/dev/shm/{name}")}
        if not left:
            return left
        time.sleep(0.5)  # another program may have made it just now
    return left


class Cgroup:
    """A cgroup of its own, within the one that this process is in; `command` starts a program there. `controller` and its files:
    a limit of memory, unless another one is named."""

    def __init__(self, limit=None, controller="memory", files=None):
        group = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
        version_1 = [path for _, controllers, path in group if controller in controllers.split(",")]
        top = pathlib.Path(f"/sys/fs/cgroup/{controller}" if version_1 else "/sys/fs/cgroup")
        files = files or {1: {"memory.limit_in_bytes": limit}, 2: {"memory.max": limit}}
        own = (version_1 or [path for _, controllers, path in group if controllers == ""] or ["/"])[0].strip("/")
        parents = [top / own, top]
        self.folder, reasons = None, []
        for parent in parents:
            folder = parent / f"tutti-test-{uuid.uuid4().hex}"
            try:
                folder.mkdir()
            except OSError as failure:
                reasons.append(str(failure))
                continue
            try:
                for name, text in files[1 if version_1 else 2].items():
                    (folder / name).write_text(str(text))
                self.folder = folder
                return
            except OSError as failure:
                reasons.append(str(failure))
                folder.rmdir()
        raise unittest.SkipTest(f"no {controller} cgroup can be made: {reasons[-1]}")

    @classmethod
    def of_cores(cls, cores):
        """One that grants the time of so many cores."""
        quota = int(cores * 100000)
        return cls(controller="cpu", files={1: {"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": quota},
                                            2: {"cpu.max": f"{quota} 100000"}})

    def command(self, program=PROGRAM):
        """Words that start the program in the group; its own words follow."""
        return ["-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh", program]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(100):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.05)  # its last process is about to be gone


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str
    seconds: float

    def __str__(self):
        return f"exit code {self.code} after {self.seconds:.2f} s\n-- stdout\n{self.out}\n-- stderr\n{self.err}"


class Run:
    """One start of the program, with files and a folder for temporary files of its own."""

    def __init__(self, *arguments, program=PROGRAM, environment=None):
        self.folder = tempfile.TemporaryDirectory(prefix="tutti-test-")
        self.path = pathlib.Path(self.folder.name)
        self.mark = uuid.uuid4().hex
        (self.path / "tmp").mkdir()
        self._out = open(self.path / "stdout", "w+")
        self._err = open(self.path / "stderr", "w+")
        self.memory_files = set()
        self.begin = time.monotonic()
        inherited = {name: value for name, value in os.environ.items() if name not in ("TUTTI_BACKENDS", "TUTTI_TRANSPORTS", "COLUMNS")}
        asked = {name: value.replace("{folder}", str(self.path)) for name, value in (environment or {}).items()}
        everything = {**inherited, MARK: self.mark, "TMPDIR": str(self.path / "tmp"), **asked}
        command = [str(program), *(str(word).replace("{folder}", str(self.path)) for word in arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err,
                                        env=everything, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.living():
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        self._out.close()
        self._err.close()
        self.folder.cleanup()

    def wait(self, limit):
        """The Result; raises subprocess.TimeoutExpired after `limit` seconds of a quiet machine."""
        code = self.process.wait(timeout=patience(limit))
        seconds = time.monotonic() - self.begin
        return Result(code, (self.path / "stdout").read_text(), (self.path / "stderr").read_text(), seconds)

    def living(self):
        """Live processes that this run started, itself included."""
        return [process.pid for process in processes() if environment_of(process.pid).get(MARK) == self.mark]

    def ranks(self):
        """Rank -> pid of the rank programs that run now."""
        children = {}
        for process in processes():
            children.setdefault(process.parent, []).append(process.pid)
        found, left = {}, [self.process.pid]
        while left:
            for pid in children.get(left.pop(), []):
                left.append(pid)
                if command_of(pid)[1:] != ["rank"]:
                    continue  # mpirun, or not yet what it will be
                environment = environment_of(pid)
                ranks = [environment[name] for name in RANK_VARIABLES if name in environment]
                if ranks:
                    found[int(ranks[0])] = pid
        return found

    def wait_for_ranks(self, number, limit=30):
        """ranks(), once all are there. Notes the memory that they share."""
        end = time.monotonic() + patience(limit)
        while time.monotonic() < end and self.process.poll() is None:
            ranks = self.ranks()
            if len(ranks) == number:
                return ranks
            time.sleep(0.002)
        raise AssertionError(f"{number} ranks were not there within {limit} s: {self.ranks()}\n{self.texts()}")

    def wait_for_rows(self, number, limit=30):
        """Until the CSV has as many rows."""
        end = time.monotonic() + patience(limit)
        path = self.path / "rows.csv"
        while time.monotonic() < end and self.process.poll() is None:
            if path.exists() and len(path.read_text().splitlines()) > number:
                return
            time.sleep(0.01)
        raise AssertionError(f"{number} rows were not there within {limit} s\n{self.texts()}")

    def note_memory(self):
        for pid in self.living():
            self.memory_files |= memory_files_of(pid)

    def texts(self):
        return (self.path / "stdout").read_text() + (self.path / "stderr").read_text()

    def left_behind(self):
        """What is left after the end, in words. The kernel of a busy machine may take a moment to close what was open."""
        end = time.monotonic() + 2
        while (left := self.left_now()) and time.monotonic() < end:
            time.sleep(0.05)
        return left

    def left_now(self):
        left = [f"process {pid}: {' '.join(command_of(pid))}" for pid in self.living()]
        held = {process.pid: memory_files_of(process.pid) & self.memory_files for process in processes()}
        left += [f"process {pid} holds shared memory of the run" for pid, files in held.items() if files]
        name = f"@tutti-{os.getuid()}-{self.process.pid}-"
        sockets = pathlib.Path("/proc/net/unix").read_text().splitlines()
        left += [f"socket {line.split()[-1]}" for line in sockets if name in line]
        left += [f"file {path}" for path in (self.path / "tmp").rglob("*")]
        return left

    def rows(self, name="rows.csv"):
        return read_csv(self.path / name)


def run(*arguments, limit=60, **options):
    """The Result of one run."""
    with Run(*arguments, **options) as one:
        return one.wait(limit)


def read_csv(path):
    """Header and rows; raises where a line is not complete."""
    text = pathlib.Path(path).read_text()
    if not text.endswith("\n"):
        raise AssertionError(f"the last line is not complete: {text[-200:]!r}")
    header, *lines = list(csv.reader(text.splitlines()))
    for line in lines:
        if len(line) != len(header):
            raise AssertionError(f"{len(line)} fields under {len(header)} names: {line}")
    return header, [dict(zip(header, line)) for line in lines]


def ratios_in(text):
    """Of a table's footer: with whom tutti was compared, and the geometric mean of the ratios of times."""
    found = re.findall(r"(?m)^# ratio, time of tutti / time of (.*): geometric mean (\S+) over", text)
    return [(whom, float(mean)) for whom, mean in found]


def verdicts_of(text):
    """The document of gate, compare or guidelines; raises where its schema does not hold."""
    document = json.loads(text)
    jsonschema.Draft202012Validator(VERDICTS).validate(document)
    return document


def read_json(path):
    """The document, numbers as they are written; raises where the schema does not hold."""
    text = pathlib.Path(path).read_text()
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    return json.loads(text, parse_float=str, parse_int=str)


def differences(csv_rows, json_rows):
    """Where CSV and JSON disagree, in words. An empty field is null."""
    found = []
    if len(csv_rows) != len(json_rows):
        found.append(f"{len(csv_rows)} rows in the CSV, {len(json_rows)} in the JSON")
    for number, (one, other) in enumerate(zip(csv_rows, json_rows)):
        if list(one) != list(other):
            found.append(f"row {number}: columns {list(one)} and {list(other)}")
        for name, text in one.items():
            value = "" if other.get(name) is None else other[name]
            if text != value:
                found.append(f"row {number}, {name}: {text!r} and {other.get(name)!r}")
    return found
