# SPDX-License-Identifier: Apache-2.0
"""usage: distributed_tests.py WHO OUTCOMES [TEST...]

Runs tests of torch's own distributed_test.py, by the Python that has torch, and writes a line of JSON for each to the
file OUTCOMES: test, outcome (pass, fail, skip), reason, seconds. Without a TEST it lists those that need no GPU.

  WHO      gloo           the control
           tutti-as-gloo  the class of the backend gloo is ours: torch has tests for that name alone
           tutti          as a plugin, by its name
           tutti-as-mpi   tests that torch keeps for mpi, run by name
WORLD_SIZE is the number of ranks. They are forked, as in torch's own test_distributed_fork.py, so that none imports
torch anew.
"""
import dataclasses
import inspect
import json
import os
import re
import sys
import tempfile
import time
import types
import unittest

WHO = sys.argv[1]
NAME_AT_IMPORT = {"gloo": "gloo", "tutti-as-gloo": "gloo", "tutti": "tutti", "tutti-as-mpi": "mpi"}[WHO]
NEEDS_GPU = re.compile(r"@(skip_if_no_gpu|skip_if_lt_x_gpu|require_n_gpus|skip_if_rocm|requires_nccl)|BACKEND != \"nccl\"")

# Decorators read these while the tests are imported.
os.environ["BACKEND"] = NAME_AT_IMPORT
os.environ.setdefault("WORLD_SIZE", "2")
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
folder = tempfile.TemporaryDirectory(prefix="tutti-judge-")
os.environ["TEMP_DIR"] = folder.name
os.environ["INIT_METHOD"] = f"file://{folder.name}/meeting"  # the timeout tests want one that is no env://


def stand_in_for_expecttest():
    """torch's utilities derive from it; these tests use nothing of it."""
    try:
        import expecttest  # noqa: F401
    except ImportError:
        module = types.ModuleType("expecttest")
        module.TestCase, module.ACCEPT = unittest.TestCase, True
        sys.modules["expecttest"] = module


def import_what_311_refuses():
    """torch 1.13 has dataclasses as defaults, which Python 3.11 takes only if they can be hashed. DDP's tests need them."""
    real = dataclasses.dataclass

    def lenient(cls=None, **options):
        def make(of):
            return real(of, **(options if "__hash__" in of.__dict__ else {**options, "unsafe_hash": True}))
        return make if cls is None else make(cls)
    dataclasses.dataclass = lenient
    try:
        import torch.distributed._shard.sharded_tensor  # noqa: F401
    finally:
        dataclasses.dataclass = real


def type_in_place_of_gloo():
    """Calling it makes a group of ours. torch 2 asks whether that is an instance of it, and gives it options of Gloo's. Its
    own C++ takes whatever has Gloo's number for Gloo, so ours has that of extensions."""
    base = getattr(torch._C._distributed_c10d, "Backend", dist.ProcessGroup)
    if hasattr(dist.ProcessGroup, "BackendType"):
        kinds = dist.ProcessGroup.BackendType
        kinds.GLOO = c10d.Backend.backend_type_map["gloo"] = kinds.CUSTOM

    class Stand(type):
        def __call__(cls, store, rank, size, timeout):
            return tutti_torch.create(store, rank, size, timeout, "gloo")

        def __instancecheck__(cls, group):
            return type(group) is base
    if not hasattr(base, "options"):
        base.options = types.SimpleNamespace()
    return Stand("ProcessGroupGloo", (), {})


import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.distributed_c10d as c10d  # noqa: E402

stand_in_for_expecttest()
import_what_311_refuses()
if WHO != "gloo":
    import tutti_torch
if WHO == "tutti-as-gloo":
    c10d.ProcessGroupGloo = type_in_place_of_gloo()
    c10d._create_process_group_wrapper = lambda wrapped_pg, **_: wrapped_pg  # wants a Gloo beside it

from torch.testing._internal.common_distributed import DistTestCases  # noqa: E402

if WHO.startswith("tutti"):
    for feature in ["ddp", "subgroup", "plugin", "gpu", "cuda"]:
        DistTestCases.backend_feature[feature].add("tutti")
import torch.testing._internal.distributed.distributed_test as theirs  # noqa: E402

if WHO in ("tutti", "tutti-as-mpi"):
    theirs.BACKEND = os.environ["BACKEND"] = "tutti"
    theirs.PROFILING_SUPPORTED_BACKENDS.append("tutti")
    theirs.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append("tutti")


class TestJudge(theirs.TestDistBackend, theirs.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


def names():
    """Tests that need no GPU, by what stands above them."""
    found = []
    for name in unittest.defaultTestLoader.getTestCaseNames(TestJudge):
        function = inspect.unwrap(getattr(theirs.DistributedTest._DistTestBase, name))
        if not NEEDS_GPU.search(inspect.getsource(function).split("def ")[0]):
            found.append(name)
    return found


class Outcomes(unittest.TestResult):
    def __init__(self, file):
        super().__init__()
        self.file = file

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def say(self, test, outcome, reason=""):
        json.dump({"test": test.id().split(".")[-1], "outcome": outcome, "reason": reason,
                   "seconds": round(time.monotonic() - self.begun, 2)}, self.file)
        self.file.write("\n")
        self.file.flush()

    def addSuccess(self, test):
        self.say(test, "pass")

    def addSkip(self, test, reason):
        self.say(test, "skip", reason)

    def addFailure(self, test, failure):
        self.say(test, "fail", self._exc_info_to_string(failure, test))

    addError = addFailure


def main():
    if len(sys.argv) == 3:
        print("\n".join(names()))
        return
    with open(sys.argv[2], "a", encoding="utf-8") as file:
        unittest.TestSuite([TestJudge(name) for name in sys.argv[3:]]).run(Outcomes(file))


if __name__ == "__main__":
    main()
