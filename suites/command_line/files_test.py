# SPDX-License-Identifier: Apache-2.0
"""How outputs are written: links, files that cannot be replaced, pipes and devices, and two jobs with one file."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
import unittest

import support

USAGE = 2
STRANGER = 65534
BARRIER = ["barrier", "--backends", "tutti", "--ranks", "2", "--budget", "30ms"]
# What `tutti run` writes: by the option, what the file begins with.
OUTPUTS = {"--csv": "case,", "--json": "{\n", "--samples": "case,launch,", "--prometheus": "# HELP"}

is_root = unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "another user is needed")


def can_mount():
    probe = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    return shutil.which("unshare") is not None and subprocess.run(probe, capture_output=True, check=False).returncode == 0


class Folder(unittest.TestCase):
    """A test in a folder of its own, which all users may enter."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tutti-files-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.path.chmod(0o755)

    def call(self, *words, before=(), **options):
        return subprocess.run(list(map(str, [*before, *words])), cwd=self.path, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=support.patience(60), check=False, **options)

    def run_barrier(self, *words, before=(), **options):
        return self.call(support.PROGRAM, "run", *BARRIER, *words, before=before, **options)

    def link_of_a_stranger(self, name, target):
        """In `shared`, where everybody may make one."""
        shared = self.path / "shared"
        shared.mkdir(exist_ok=True)
        shared.chmod(0o1777)
        (shared / name).symlink_to(target)
        os.lchown(shared / name, STRANGER, STRANGER)
        return shared / name

    def names(self, folder="."):
        return sorted(path.name for path in (self.path / folder).iterdir())


class Links(Folder):
    def test_own_ones_are_followed(self):
        for option, begin in OUTPUTS.items():
            for old in ("old", None):
                with self.subTest(option, old=old):
                    target, link = self.path / f"target{option}{old}", self.path / f"link{option}{old}"
                    if old:
                        target.write_text(old)
                        target.chmod(0o640)
                    link.symlink_to(target.name)
                    done = self.run_barrier(option, link)
                    self.assertEqual(done.returncode, 0, done)
                    self.assertTrue(link.is_symlink())
                    self.assertTrue(target.read_text().startswith(begin), target.read_text())
                    if old:
                        self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o640)
        self.assertEqual(len(self.names()), 4 * len(OUTPUTS), "nothing lies beside them")

    def test_a_mistake_leaves_no_target(self):
        for option in OUTPUTS:
            (self.path / f"link{option}").symlink_to(f"target{option}")
            done = self.run_barrier(option, f"link{option}", "--html", "/nowhere/page")
            self.assertEqual(done.returncode, USAGE, done)
        self.assertEqual(self.names(), sorted(f"link{option}" for option in OUTPUTS))

    @is_root
    def test_a_strangers_is_refused_before_anything_is_measured(self):
        precious = self.path / "precious"
        precious.write_text("mine")
        self.link_of_a_stranger("link", "../precious")
        self.link_of_a_stranger("around", "..")
        (self.path / "chain").symlink_to("shared/link")
        for option in [*OUTPUTS, "--html"]:
            for name in ("shared/link", "chain", "shared/around/new") if option == "--csv" else ("chain",):
                with self.subTest(option, name=name):
                    done = self.run_barrier(option, name)
                    self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done)
                    self.assertRegex(done.stderr, r"cannot write '.*': the symbolic link '.*' to '.*' belongs to user 65534")
        self.assertEqual(precious.read_text(), "mine")
        self.assertEqual(self.names(), ["chain", "precious", "shared"])

    @is_root
    def test_a_strangers_does_not_lie_in_the_way(self):
        (self.path / "precious").write_text("mine")
        links = [self.link_of_a_stranger(f"out{option}.part", "../precious") for option in OUTPUTS]
        (self.path / "mine.json.part").write_text("mine too")
        words = [word for option in OUTPUTS for word in (option, f"shared/out{option}")]
        done = self.run_barrier(*words)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.run_barrier("--json", "mine.json").returncode, 0)
        self.assertTrue(all(link.is_symlink() for link in links))
        self.assertEqual([(self.path / name).read_text() for name in ("precious", "mine.json.part")], ["mine", "mine too"])

    def test_one_that_others_may_have_given_a_second_name_is_refused(self):
        precious = self.path / "precious"
        precious.write_text("mine")
        (self.path / "mine").symlink_to(precious)
        for mode in (0o1777, 0o775):
            folder = self.path / f"open{mode:o}"
            folder.mkdir()
            folder.chmod(mode)
            os.link(self.path / "mine", folder / "link", follow_symlinks=False)
            os.link(precious, folder / "file")
            for option in [*OUTPUTS, "--html"]:
                for name, what in (("link", "the symbolic link '.*' to '.*'"), ("file", "the file")):
                    with self.subTest(option, folder=folder.name, name=name):
                        done = self.run_barrier(option, folder / name)
                        self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done)
                        self.assertRegex(done.stderr, f"cannot write '.*': {what} has [23] names, and other users may have made")
        self.assertEqual(precious.read_text(), "mine")

    @is_root
    def test_pictures_do_not_go_where_a_stranger_leads_them_meanwhile(self):
        result, mine = self.path / "result.json", self.path / "mine"
        self.assertEqual(self.run_barrier("--json", result).returncode, 0)
        if self.call(support.PROGRAM, "report", result, "--svg", mine).returncode == 3:
            self.skipTest("no Python here draws pictures")
        for picture in mine.iterdir():
            picture.write_text("mine")
        theirs = self.link_of_a_stranger("theirs", "../mine").with_name("pictures")
        theirs.mkdir()
        os.chown(theirs, STRANGER, STRANGER)
        # A Python that is slow to start: meanwhile the folder, which was looked at, has become a link.
        python = self.path / "python"
        python.write_text(f"""#!/bin/sh
case $* in *report.py*) mv -T {theirs} {theirs}.old && mv -T {self.path}/shared/theirs {theirs} ;; esac
exec {shutil.which("python3", path="/usr/bin") or "python3"} "$@"
""")
        python.chmod(0o755)
        done = self.call(support.PROGRAM, "report", result, "--svg", theirs, env={**os.environ, "TUTTI_PYTHON": str(python)})
        self.assertTrue(theirs.is_symlink(), done)
        self.assertTrue(all(picture.read_text() == "mine" for picture in mine.iterdir()), "overwritten")
        self.assertEqual(done.returncode, USAGE, done)
        self.assertRegex(done.stderr, "the symbolic link 'pictures' belongs to user 65534")

    @is_root
    def test_pictures_follow_the_same_rule(self):
        result, precious = self.path / "result.json", self.path / "precious"
        self.assertEqual(self.run_barrier("--json", result).returncode, 0)
        if self.call(support.PROGRAM, "report", result, "--svg", "pictures").returncode == 3:
            self.skipTest("no Python here draws pictures")
        precious.write_text("mine")
        picture = self.names("pictures")[0]
        self.link_of_a_stranger(picture, "../precious")
        done = self.call(support.PROGRAM, "report", result, "--svg", "shared")
        self.assertEqual(done.returncode, USAGE, done)
        self.assertRegex(done.stderr, "cannot write '.*/shared/.*': the symbolic link '.*' belongs to user 65534")
        (self.path / "pictures" / picture).unlink()
        (self.path / "pictures" / picture).symlink_to("../precious")
        self.assertEqual(self.call(support.PROGRAM, "report", result, "--svg", "pictures").returncode, 0)
        self.assertIn("<svg", precious.read_text())


class InPlace(Folder):
    """What cannot be renamed upon."""

    def check_outputs(self):
        for option, begin in OUTPUTS.items():
            self.assertTrue((self.path / f"out{option}").read_text().startswith(begin), option)
        self.assertTrue(json.loads((self.path / "out--json").read_text())["finished"])

    @unittest.skipUnless(can_mount(), "nothing can be mounted here")
    def test_files_that_are_mounted(self):
        for option in OUTPUTS:
            (self.path / f"out{option}").write_text("old" * 100000)
        mounts = "; ".join(f"mount --bind out{option} out{option}" for option in OUTPUTS)
        words = [word for option in OUTPUTS for word in (option, f"out{option}")]
        done = self.run_barrier(*words, before=["unshare", "-m", "sh", "-ec", f'{mounts}; exec "$@"', "sh"])
        self.assertEqual(done.returncode, 0, done)
        self.check_outputs()

    @is_root
    def test_files_of_another_user_in_a_folder_of_another_user(self):
        for option in OUTPUTS:
            (self.path / f"out{option}").write_text("old" * 100000)
            (self.path / f"out{option}").chmod(0o666)
        words = [word for option in OUTPUTS for word in (option, f"out{option}")]
        stranger = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
        done = self.run_barrier(*words, before=stranger)
        self.assertEqual(done.returncode, 0, done)
        self.check_outputs()
        done = self.run_barrier("--json", "new", before=stranger)
        self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done)
        self.assertIn("cannot write 'new': Permission denied", done.stderr)

    def test_a_device_and_a_pipe_get_one_document(self):
        done = self.run_barrier("--json", "/dev/null")
        self.assertEqual(done.returncode, 0, done)
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        done = self.run_barrier("--quiet", "--json", "/dev/stdout")
        self.assertTrue(json.loads(done.stdout)["finished"], done)
        os.mkfifo(self.path / "pipe")
        texts = []
        reader = threading.Thread(target=lambda: texts.append((self.path / "pipe").read_text()))
        reader.start()
        done = self.run_barrier("--json", "pipe")
        reader.join()
        self.assertTrue(json.loads(texts[0])["finished"], done)

    @is_root
    def test_a_strangers_pipe_is_refused(self):
        """Its reader, who reads nothing, would keep the job for ever."""
        pipe = self.link_of_a_stranger("link", "nowhere").with_name("pipe")
        os.mkfifo(pipe)
        os.chown(pipe, STRANGER, STRANGER)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        for option in [*OUTPUTS, "--html"]:
            done = self.run_barrier(option, pipe)
            self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done)
            self.assertIn("the pipe belongs to user 65534", done.stderr)

    @support.at_night
    def test_a_pipe_that_no_program_reads_is_refused(self):
        os.mkfifo(self.path / "pipe")
        for option in OUTPUTS:
            done = self.run_barrier(option, "pipe")
            self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done)
            self.assertIn("cannot write 'pipe': no program has opened this pipe to read it", done.stderr)


class TwoJobs(Folder):
    def test_who_can_only_read_a_file_keeps_no_job_from_it(self):
        for option in OUTPUTS:
            out = self.path / f"out{option}"
            out.write_text("old")
            with out.open() as file:
                fcntl.lockf(file, fcntl.LOCK_SH, 0, 1 << 62)
                done = self.run_barrier(option, out)
            self.assertEqual(done.returncode, 0, done)
            self.assertNotEqual(out.read_text(), "old")

    def test_the_second_is_refused_and_the_first_is_named(self):
        words = [word for option in OUTPUTS for word in (option, f"out{option}")]
        with subprocess.Popen([support.PROGRAM, "run", "all_reduce", "--backends", "tutti", "--ranks", "2", "--sizes",
                               "8:1M:x8", "--budget", "60s", *words], cwd=self.path, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as first:
            try:
                end = time.monotonic() + support.patience(20)
                last = self.path / "out--samples"
                while not (last.exists() and last.read_text()) and time.monotonic() < end:
                    time.sleep(0.01)
                for option in OUTPUTS:
                    (self.path / f"link{option}").symlink_to(f"out{option}")
                    for name in (f"out{option}", f"link{option}"):
                        with self.subTest(option, name=name):
                            before = (self.path / "out--csv").read_text()
                            done = self.run_barrier(option, name)
                            self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done)
                            self.assertIn(f"cannot write '{name}': another job writes it, process {first.pid}", done.stderr)
                            self.assertTrue((self.path / "out--csv").read_text().startswith(before))
            finally:
                first.send_signal(signal.SIGKILL)
        done = self.run_barrier(*words)
        self.assertEqual(done.returncode, 0, done)


if __name__ == "__main__":
    unittest.main()
