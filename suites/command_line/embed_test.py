# SPDX-License-Identifier: Apache-2.0
"""The example of impl/embed/USE.md, as a user has it: compiled against the installed tree, where that was moved to, and
run as processes that find each other in a folder."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import support

BUILD = pathlib.Path(os.environ["TUTTI_BUILD"]).resolve()
CMAKE = os.environ["TUTTI_CMAKE"]
LIBRARIES = ["embed", "embed_hosts"]


def blocks_of(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


class Example(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-embed-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name).resolve()
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.folder / "first"], check=True,
                       stdout=subprocess.DEVNULL)
        cls.tree = cls.folder / "elsewhere"
        (cls.folder / "first").rename(cls.tree)
        page = support.SOURCE / "impl/embed/USE.md"
        [source], [cls.cmake] = blocks_of(page, "cpp"), blocks_of(page, "cmake")
        (cls.folder / "sum.cc").write_text(source)
        cls.program = cls.compiled("embed")

    @classmethod
    def compiled(cls, library):
        """By pkg-config, as the page has it."""
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", f"tutti-{library}"], check=True, capture_output=True,
                               text=True, env={**os.environ, "PKG_CONFIG_PATH": str(cls.tree / "lib/pkgconfig")}).stdout
        program = cls.folder / f"sum-{library}"
        subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", cls.folder / "sum.cc", *flags.split(), "-o", program,
                        f"-Wl,-rpath,{cls.tree / 'lib'}"], check=True)
        return program

    def start(self, ranks, program=None, only=None, before=(), own=lambda rank: {}):
        meeting = tempfile.mkdtemp(dir=self.folder)
        return [subprocess.Popen([*before, program or self.program, meeting, str(rank), str(ranks)], env={**os.environ, **own(rank)},
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for rank in range(ranks) if only is None or rank in only]

    def check_sums(self, jobs):
        for rank, job in enumerate(jobs):
            said, wrong = job.communicate(timeout=support.patience(60))
            self.assertEqual((job.returncode, wrong), (0, ""))
            self.assertEqual(said, f"rank {rank}: {sum(range(1, len(jobs) + 1))}\n")

    def test_three_processes_add(self):
        self.check_sums(self.start(3))

    def test_a_selection_table_is_taken_by_all_ranks_or_by_none(self):
        header = "collective,place,crowded,buffers,ranks_from,ranks_to,bytes_from,bytes_to,algorithm,segment,stores,source\n"
        tables = [self.folder / name for name in ["ring.csv", "halving.csv", "bad.csv"]]
        for path, algorithm in zip(tables, ["ring", "halving", "rung"]):
            path.write_text(f"{header}all_reduce,host,any,any,1,any,0,any,{algorithm},0,tried,measured\n")
        self.check_sums(self.start(3, own=lambda rank: {"TUTTI_TABLE": str(tables[0])}))
        for job in self.start(2, own=lambda rank: {"TUTTI_TABLE": str(tables[rank])}):
            wrong = job.communicate(timeout=support.patience(60))[1]
            self.assertEqual(job.returncode, 1)
            self.assertRegex(wrong, r"rank 1 has the selection table halving\.csv:\w{16}, and rank 0 has ring\.csv:\w{16}")
        for job in self.start(2, own=lambda rank: {"TUTTI_TABLE": str(tables[2])}):
            wrong = job.communicate(timeout=support.patience(60))[1]
            self.assertEqual(job.returncode, 1)
            self.assertIn("line 2, column 9 (algorithm): unknown all_reduce algorithm 'rung': did you mean 'ring'?", wrong)

    def test_it_is_found_by_cmake(self):
        (self.folder / "CMakeLists.txt").write_text(self.cmake)
        build = self.folder / "by-cmake"
        for arguments in [["-S", self.folder, "-B", build, f"-DCMAKE_PREFIX_PATH={self.tree}"], ["--build", build]]:
            done = subprocess.run([CMAKE, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.check_sums(self.start(2, build / "sum"))

    def test_ranks_of_two_hosts_are_refused_by_name(self):
        # Processes of two namespaces of pids share no memory.
        first = self.start(2, only=[0])
        meeting = first[0].args[1]
        second = subprocess.Popen(["unshare", "--pid", "--fork", self.program, meeting, "1", "2"], stderr=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        for job in [*first, second]:
            wrong = job.communicate(timeout=support.patience(60))[1]
            self.assertEqual(job.returncode, 1)
            self.assertRegex(wrong, r"ranks are on 2 hosts \(rank 1 is not on that of rank 0\)")

    def test_a_rank_out_of_range_and_a_folder_of_everybody_are_refused(self):
        done = subprocess.run([self.program, self.folder, "2", "2"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "sum: rank 2 is out of range: it must be between 0 and 1\n"))
        done = subprocess.run([self.program, "/tmp", "0", "2"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("only their user may write", done.stderr)

    def test_the_libraries_show_their_interface_and_need_little(self):
        for library in LIBRARIES:
            file = self.tree / f"lib/libtutti_{library}.so"
            shown = subprocess.run(["nm", "-DC", "--defined-only", file], check=True, capture_output=True, text=True).stdout
            names = [line.split(maxsplit=2)[2] for line in shown.splitlines()]
            self.assertEqual([name for name in names if not re.match(r"((typeinfo|vtable)( name)? for )?tutti::", name)], [])
            needed = subprocess.run(["readelf", "-d", file], check=True, capture_output=True, text=True).stdout
            self.assertEqual("libcrypto" in needed, library == "embed_hosts")
            self.assertNotIn("libfmt", needed)


if __name__ == "__main__":
    unittest.main()
