# SPDX-License-Identifier: Apache-2.0
"""Builds the module with the repository's CMake, in a folder of its own, and puts it where pip looks."""
import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Build(build_ext):
    def build_extension(self, extension):
        folder = pathlib.Path(self.build_temp).resolve()
        # pip hides what is installed, such as torch, from what it builds.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

        def cmake(*words):
            subprocess.run(["cmake", *words], check=True, env=environment)
        cmake("-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release", "-DTUTTI_COMPILE_BY_FOLDER=ON",
              "-DBUILD_TESTING=OFF", "-DTUTTI_WITH_TORCH=ON", f"-DTUTTI_TORCH_PYTHON={sys.executable}")
        cmake("--build", str(folder), "--target", "tutti_torch", "--parallel",
              str(len(os.sched_getaffinity(0))))
        into = pathlib.Path(self.get_ext_fullpath(extension.name))
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(next((folder / "lib/python").glob("tutti_torch*.so")), into)


setup(ext_modules=[Extension("tutti_torch", [])], cmdclass={"build_ext": Build})
