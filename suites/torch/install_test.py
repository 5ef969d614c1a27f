# SPDX-License-Identifier: Apache-2.0
"""The process group as pip installs it, beside the distribution's torch and beside that of scripts/setup --with torch2."""
import os
import pathlib
import subprocess
import sys
import unittest

import support

ROOT = support.FOLDER.parents[1]


class Install(support.TestCase):
    def run_outside(self, python, *words, **more):
        """With nothing of the tree in the path."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run([python, *map(str, words)], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env={**environment, "OMP_NUM_THREADS": "1"},
                              timeout=support.patience(1200), **more)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    @support.at_night
    def test_pip_installs_it_for_the_torch_that_there_is(self):
        folder = pathlib.Path(self.folder())
        self.run_outside(sys.executable, "-I", "-m", "venv", "--system-site-packages", folder / "venv")
        python = folder / "venv/bin/python"
        self.run_outside(python, "-m", "pip", "install", "--quiet", ROOT / "impl/bindings/torch")
        start = folder / "start.py"
        start.write_text((support.FOLDER / "start.py").read_text())
        said = self.run_outside(python, start, f"file://{folder}/meeting")
        self.assertEqual(said.count("sum 3.0"), 2, said)

    @support.at_night
    @support.with_torch_2
    def test_the_module_brings_the_torch_that_it_lies_beside(self):
        """Imported first, with the distribution's torch in the system's folders."""
        said = self.run_outside(support.TORCH2, "-c", "import tutti_torch; print(open('/proc/self/maps').read())")
        loaded = {line.split()[-1] for line in said.splitlines() if "libc10.so" in line or "libtorch_cpu.so" in line}
        self.assertEqual({path for path in loaded if not path.startswith(str(ROOT))}, set())
        self.assertEqual(len(loaded), 2, loaded)

    @support.at_night
    @support.with_torch_2
    def test_programs_run_with_torch_2(self):
        folder = self.folder()
        self.run_outside(support.TORCH2, "-B", support.FOLDER / "programs.py", "tutti", 2, folder)


if __name__ == "__main__":
    unittest.main()
