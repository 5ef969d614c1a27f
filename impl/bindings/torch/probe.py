# SPDX-License-Identifier: Apache-2.0
"""What CMake asks the interpreter: "VALUE;VALUE;..." of the torch that it has, or why there is none."""
import os
import sys
import sysconfig

try:
    import torch
    import torch.distributed
except Exception as failure:
    sys.exit(f"{sys.executable} has no torch ({type(failure).__name__})")
if not torch.distributed.is_available():
    sys.exit("torch was built without torch.distributed")


def first(*folders):
    return next((folder for folder in folders if folder and os.path.exists(folder)), "")


root = os.path.dirname(torch.__file__)
python = sysconfig.get_path("include")
header = "torch/csrc/distributed/c10d/ProcessGroup.hpp"
include = next((f for f in (os.path.join(root, "include"), "/usr/include") if os.path.exists(os.path.join(f, header))), "")
pybind = first(os.path.join(include, "pybind11"), "/usr/include/pybind11", "/usr/local/include/pybind11")
missing = [name for name, there in [("torch's headers (libtorch-dev)", include), ("pybind11 (pybind11-dev)", pybind),
                                    ("Python.h (python3-dev)", os.path.exists(os.path.join(python, "Python.h")))] if not there]
if missing:
    sys.exit("no " + ", no ".join(missing))
print(";".join([torch.__version__, str(int(torch._C._GLIBCXX_USE_CXX11_ABI)), include, os.path.join(root, "lib"), python,
                sysconfig.get_config_var("EXT_SUFFIX"), str(getattr(torch._C, "_PYBIND11_BUILD_ABI", None) or "")]))
