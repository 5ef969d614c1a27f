# SPDX-License-Identifier: Apache-2.0
"""The installed tree works where it was moved to, and so does a bundle on a machine that has nothing: neither looks
back at the build."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import support

BUILD = pathlib.Path(os.environ["TUTTI_BUILD"]).resolve()
CMAKE = os.environ["TUTTI_CMAKE"]
BACKENDS = "tutti,openmpi" if support.HAS_OPENMPI else "tutti"


def maps_of(pid):
    """The files that are mapped into the process."""
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {pathlib.Path(words[5]) for words in (line.split(maxsplit=5) for line in lines) if len(words) > 5}


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def foreign_search_paths(folder):
    """What the loader would search for libraries outside of absolute folders and the file's own: file and element."""
    found, read = [], 0
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if not path.is_file() or path.is_symlink() or not is_elf(path):
            continue
        text = subprocess.run(["readelf", "--dynamic", "--wide", path], capture_output=True, text=True, check=True,
                              env={**os.environ, "LC_ALL": "C"}).stdout
        read += 1
        for elements in re.findall(r"Library (?:runpath|rpath): \[(.*)\]", text):
            found += [(str(path), one) for one in elements.split(":") if not re.match(r"/|\$ORIGIN(/|$)", one)]
    return read, found


class Moved(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-installed-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name).resolve()
        first = cls.folder / "first"
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", first], check=True, stdout=subprocess.DEVNULL)
        cls.tree = cls.folder / "elsewhere" / "tutti here"
        cls.tree.parent.mkdir()
        first.rename(cls.tree)
        cls.program = cls.tree / "bin" / "tutti"

    def test_its_files_are_there(self):
        for name in ["bin/tutti", "share/doc/tutti/LICENSE", "share/doc/tutti/README.md", "share/tutti/schema.json",
                     "share/man/man1/tutti.1", "share/bash-completion/completions/tutti",
                     "share/zsh/site-functions/_tutti"]:
            self.assertTrue((self.tree / name).is_file(), name)
        self.assertEqual(json.loads((self.tree / "share/tutti/schema.json").read_text()), support.SCHEMA)

    def test_the_pages_that_the_readme_points_at_are_there(self):
        folder = self.tree / "share/doc/tutti"
        text = (folder / "README.md").read_text()
        pages = set(re.findall(r"\]\(([^)#]+)\)", text)) | set(re.findall(r"`([\w/-]+\.md)`", text))
        self.assertIn("suites/perf/coming-from.md", pages)
        self.assertEqual([page for page in sorted(pages) if not (folder / page).is_file()], [])

    def test_links_of_the_pages_lead_somewhere(self):
        pages = list((self.tree / "share/doc/tutti").rglob("*.md"))
        self.assertGreater(len(pages), 10)
        for page in pages:
            for path in re.findall(r"\]\(([^)#]+)", page.read_text()):
                if not path.startswith("http"):
                    self.assertTrue((page.parent / path).is_file(), f"{page}: {path}")

    def test_no_file_knows_the_build(self):
        for path in (self.tree / "bin").iterdir():
            self.assertNotIn(str(BUILD / "bin").encode(), path.read_bytes(), path)

    def test_libraries_are_searched_in_no_folder_that_others_choose(self):
        for folder in [BUILD / "bin", BUILD / "lazy_backends", self.tree]:
            read, found = foreign_search_paths(folder)
            self.assertGreater(read, 0, folder)
            self.assertEqual(found, [], "an empty or relative element is looked up in the current folder")

    def test_a_library_in_the_current_folder_is_not_loaded(self):
        with tempfile.TemporaryDirectory(prefix="tutti-foreign-") as folder:
            for name in ["libcsv.so.3", "libfmt.so.9", "libcrypto.so.3", "libstdc++.so.6"]:
                (pathlib.Path(folder) / name).write_text("no library\n")  # the loader would refuse to start
            for program in [BUILD / "bin/tutti", BUILD / "bin/all_reduce_perf", self.program]:
                result = subprocess.run([program, "--version"], cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 0, result)

    def test_list_finds_the_backends_beside_the_program(self):
        result = support.run("list", "--json", program=self.program)
        self.assertEqual(result.code, 0, result)
        for backend in json.loads(result.out)["backends"]:
            if backend["name"] == "openmpi" and support.HAS_OPENMPI:
                self.assertTrue(backend["note"].startswith(str(self.tree)), backend)

    def test_check(self):
        result = support.run("check", "all_reduce", "barrier", "--ranks", "2", program=self.program)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.out, r"# check: \d+ cases as processes, \d+ ok, 0 wrong")

    def test_run_with_all_backends_maps_nothing_of_the_build(self):
        arguments = ["run", "all_reduce", "--backends", BACKENDS, "--ranks", "2", "--sizes", "8,4K", "--budget", "3s",
                     "--csv", "{folder}/rows.csv"]
        with support.Run(*arguments, program=self.program) as one:
            one.wait_for_ranks(2)
            mapped = set()
            while one.process.poll() is None:
                for pid in one.ranks().values():
                    try:
                        mapped |= maps_of(pid)
                    except (FileNotFoundError, ProcessLookupError):
                        continue  # it has ended
                if len([path for path in mapped if path.is_relative_to(self.tree)]) == len(BACKENDS.split(",")):
                    break
            result = one.wait(60)
            self.assertEqual(result.code, 0, result)
            _, rows = one.rows()
            self.assertEqual({row["backend"] for row in rows}, set(BACKENDS.split(",")))
            self.assertEqual({row["verdict"] for row in rows}, {"ok"})
            self.assertIn(self.program, mapped)
            if support.HAS_OPENMPI:
                self.assertIn(self.tree / "bin/libtutti_backend_openmpi.so", mapped)
            self.assertEqual([path for path in mapped if path.is_relative_to(BUILD)], [])

    @support.needs_openmpi
    @support.at_night
    def test_it_can_build_the_backend_of_another_mpi(self):
        output = self.folder / "backends"
        built = subprocess.run([self.tree / "share/tutti/scripts/build-backend", "mpi", "--mpicc", "mpicc", "--name",
                                "other", "--output", output], capture_output=True, text=True, check=True)
        self.assertEqual(built.stdout.strip(), str(output / "libtutti_backend_other.so"))
        self.assertIn(f"tutti looks there with TUTTI_BACKENDS={output}", built.stderr)
        result = support.run("list", "--json", program=self.program, environment={"TUTTI_BACKENDS": str(output)})
        available = {item["name"]: item["available"] for item in json.loads(result.out)["backends"]}
        self.assertEqual(available["other"], True, result)


    def test_where_backends_are_looked_for_is_told(self):
        for command in ["run", "list", "gate"]:
            self.assertIn("TUTTI_BACKENDS", support.run(command, "--help", program=self.program).out, command)
        self.assertIn("TUTTI_BACKENDS", (self.tree / "share/doc/tutti/README.md").read_text())


class Preset(unittest.TestCase):
    """`cmake --build --preset programs` builds all that `cmake --install` takes: asked of the build, which is not made."""

    @staticmethod
    def ninja(*words):
        program = re.search("^CMAKE_MAKE_PROGRAM:.*=(.*)", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
        return subprocess.run([program, "-C", BUILD, *words], stdout=subprocess.PIPE, text=True, check=True).stdout

    @unittest.skipUnless((BUILD / "build.ninja").exists(), "this build is not made by ninja")
    def test_nothing_that_is_installed_is_missing(self):
        presets = json.loads((support.SOURCE / "CMakePresets.json").read_text())["buildPresets"]
        targets, = (preset["targets"] for preset in presets if preset["name"] == "programs")
        built = set(self.ninja("-t", "inputs", *targets).splitlines())
        installed = set()
        others = [cache.parent for cache in BUILD.rglob("CMakeCache.txt") if cache.parent != BUILD]  # as ci/gpu --pack makes one
        for script in BUILD.rglob("cmake_install.cmake"):
            if any(script.is_relative_to(other) for other in others):
                continue
            for files in re.findall(r'file\(INSTALL [^)]* FILES((?: "[^"]+")+)', script.read_text()):
                installed |= set(re.findall(rf'"{re.escape(str(BUILD))}/([^"]+)"', files))
        self.assertIn("bin/tutti", installed)
        self.assertIn("bin/alltoallv_perf", installed)
        configured = {path for path in installed if path.endswith((".cmake", ".pc"))}  # CMake itself writes these
        for path in sorted(installed - configured):
            queried = self.ninja("-t", "query", path)
            sources = set(re.findall(r"^    (?!\|)(\S+)$", queried.partition("  outputs:")[0], re.MULTILINE))
            self.assertTrue(sources, queried)
            self.assertLessEqual(sources, built, f"{path} is built by none of {targets}")


class Bundled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti-bundle-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name).resolve()
        made = subprocess.run([support.SOURCE / "scripts/bundle", "--build", BUILD, "--output", cls.folder / "made"],
                              stdout=subprocess.PIPE, text=True, check=True)
        cls.said = made.stdout
        packed, = (cls.folder / "made").iterdir()
        subprocess.run(["tar", "xf", packed, "-C", cls.folder], check=True)
        cls.tree, = (path for path in cls.folder.glob("tutti-*") if path.is_dir())
        cls.program = cls.tree / "tutti"

    def bare(self, *arguments):
        """Run with next to no environment."""
        environment = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": ""}
        return subprocess.run([self.program, *arguments], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=support.patience(60), check=False)

    def test_it_says_what_is_in_it_and_what_is_not(self):
        self.assertRegex(self.said, r"(?m)^bundle: with .*\blibfmt\.so")
        self.assertRegex(self.said, r"(?m)^bundle: needs glibc \d+\.\d+")
        libraries = {path.name.split(".so")[0] for path in (self.tree / "lib").iterdir()}
        self.assertLessEqual({"libstdc++", "libcsv"}, libraries)
        self.assertEqual(libraries & {"libc", "libm", "libmpi", "ld-linux-x86-64"}, set())
        if support.HAS_OPENMPI:
            self.assertRegex(self.said, r"(?m)^bundle: without libmpi\.so\S*, for libtutti_backend_openmpi\.so")

    def test_it_runs_with_its_own_libraries(self):
        result = self.bare("run", "all", "--ranks", "2", "--sizes", "8", "--budget", "2s")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn(", 0 wrong", result.stdout)
        files = [self.tree / "bin/tutti", *(self.tree / "bin").glob("libtutti_backend_gloo.so")]
        loaded = "".join(subprocess.run(["ldd", file], stdout=subprocess.PIPE, text=True, check=True).stdout for file in files)
        libraries = [path for path in (self.tree / "lib").iterdir() if path.is_file() and not path.name.startswith("libtutti")]
        self.assertTrue(libraries)
        for library in libraries:
            self.assertIn(f"{library.name} => {self.tree}/bin/../lib/{library.name}", loaded)

    @support.needs_openmpi
    @support.at_night
    def test_a_backend_that_it_builds_is_found_beside_it(self):
        built = subprocess.run([self.tree / "share/tutti/scripts/build-backend", "mpi", "--mpicc", "mpicc", "--name",
                                "beside"], capture_output=True, text=True, check=True)
        self.assertEqual((built.stdout.strip(), built.stderr), (str(self.tree / "bin/libtutti_backend_beside.so"), ""))
        listed = json.loads(self.bare("list", "--json").stdout)["backends"]
        self.assertIn(("beside", True), [(item["name"], item["available"]) for item in listed])

    def test_libraries_are_searched_in_no_folder_that_others_choose(self):
        read, found = foreign_search_paths(self.tree)
        self.assertGreater(read, len(list((self.tree / "lib").iterdir())))
        self.assertEqual(found, [])

    def test_it_starts_through_a_link(self):
        link = self.folder / "link"
        link.symlink_to(self.program)
        result = subprocess.run([link, "--version"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertTrue(result.stdout.startswith("tutti "), result)

    def test_mistakes_are_named(self):
        for arguments, code, name in [(["--outptu", "x"], 2, "'--outptu'"), (["--build"], 2, "needs a value"),
                                      (["--build", "/nowhere"], 3, "/nowhere/bin/tutti"),
                                      (["--output", "/proc/here"], 2, "'/proc/here'")]:
            result = subprocess.run([support.SOURCE / "scripts/bundle", *arguments], stderr=subprocess.PIPE, text=True,
                                    stdout=subprocess.DEVNULL, check=False)
            self.assertEqual(result.returncode, code, result)
            self.assertIn(name, result.stderr)


if __name__ == "__main__":
    unittest.main()
