# SPDX-License-Identifier: Apache-2.0
"""What the pages say holds: their links lead somewhere, their options exist, and the README's commands run."""
import re
import shlex
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

import support

LONGEST_README = 10_000  # bytes
PERFORMANCE = support.SOURCE / "results/performance.md"
ALGORITHMS = support.SOURCE / "impl/algorithms/README.md"
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]*)\)")
LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")
COMMANDS = ["run", "check", "check soak", "check repeat", "prove", "explain", "draw", "simulate", "export", "train", "gate", "accept", "guidelines", "tune", "compare", "report", "list", "doctor"]
OF_OTHERS = {"--benchmark_filter", "--bind-to", "--build", "--double", "--gtest_filter", "--install", "--least", "--list", "--most",
             "--cflags", "--libs", "--mpicc", "--name", "--no_python", "--nproc_per_node", "--out", "--output", "--pack", "--prefix", "--preset",
             "--ranks-per-gpu", "--same", "--share", "--short", "--slowed", "--target", "--with", "--map-by", "--mca", "--nnodes",
             "--ntasks-per-node", "--distribution", "--mpi", "--nodes", "--exclusive", "--partition", "--time", "--redirects", "--tee", "--rdzv_id"}


def pages():
    """All pages of the tree, and none of what was built or is somebody's own."""
    left_out = {"results", "build", ".git"}
    for folder in sorted(path for path in support.SOURCE.iterdir() if path.is_dir() and path.name not in left_out
                         and not path.name.startswith("build")):
        yield from sorted(folder.rglob("*.md"))
    yield from [support.SOURCE / "README.md", support.SOURCE / "results/README.md", PERFORMANCE]


def anchors(text):
    """The links' names of a page's headings, as GitHub makes them."""
    for heading in re.findall(r"(?m)^#+ (.*)$", text):
        yield "#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


class Pages(unittest.TestCase):
    def test_links_lead_somewhere(self):
        found = 0
        for page in pages():
            for path, anchor in LINK.findall(page.read_text()):
                if path.startswith("http"):
                    continue
                target = page.parent / path if path else page
                with self.subTest(page=page, path=path, anchor=anchor):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, list(anchors(target.read_text())))
                found += 1
        self.assertGreater(found, 20)

    def test_options_exist(self):
        known = set(OF_OTHERS)
        drop_in = subprocess.run([support.PROGRAM.parent / "all_reduce_perf", "--help"], capture_output=True, text=True, timeout=20)
        known |= set(re.findall(r"--[a-z][a-z-]+", drop_in.stdout))
        for command in COMMANDS:
            known |= set(re.findall(r"--[a-z][a-z-]+", support.run(*command.split(), "--help").out))
        for page in pages():
            for option in re.findall(r"(?<![\w-])--[a-z][a-z_-]+", page.read_text()):
                with self.subTest(page=page):
                    self.assertIn(option, known)


def pictures_of(page):
    """The files of the pictures that a page shows, each with its text alternative."""
    return {(page.parent / path).resolve(): alternative for alternative, path in PICTURE.findall(page.read_text())}


class Pictures(unittest.TestCase):
    README = support.SOURCE / "README.md"

    def test_every_picture_is_there_and_does_nothing_but_show(self):
        shown = {**pictures_of(PERFORMANCE), **pictures_of(self.README), **pictures_of(ALGORITHMS)}
        self.assertGreater(len(shown), 5)
        for path, alternative in shown.items():
            with self.subTest(path.name):
                self.assertGreater(len(alternative), 20, "a text alternative")
                text = path.read_text()
                self.assertGreater(len(text), 1000)
                self.assertNotIn("<!DOCTYPE", text[:500])
                drawn = 0
                for element in ElementTree.fromstring(text).iter():
                    name = element.tag.rpartition("}")[2]
                    drawn += name in ("path", "use", "text")
                    self.assertNotIn(name, ("script", "foreignObject", "image", "iframe", "a"))
                    for key, value in element.attrib.items():
                        self.assertFalse(key.startswith("on"), key)
                        if key.rpartition("}")[2] in ("href", "src"):
                            self.assertEqual(value[:1], "#", "a reference within the file")
                        for reference in re.findall(r"url\(([^)]*)\)", value):
                            self.assertEqual(reference[:1], "#", "a reference within the file")
                    if name == "style":
                        self.assertNotRegex(element.text or "", "url|import")
                self.assertGreater(drawn, 20)

    def test_the_readme_shows_one_of_times_and_one_of_a_schedule(self):
        self.assertEqual([path.name for path in pictures_of(self.README)], ["private-overview.svg", "two_shot.svg"])

    def test_figures_makes_those_that_are_shown_and_no_others(self):
        listed = subprocess.run([support.SOURCE / "scripts/figures", "--list"], capture_output=True, text=True, check=True,
                                timeout=60).stdout.split()
        made = {support.SOURCE / path for path in listed}
        self.assertEqual(made, set(pictures_of(PERFORMANCE)))
        self.assertEqual(made, set((support.SOURCE / "results/2026-11-performance").glob("*.svg")))

    def test_command_and_machine_stand_below_each(self):
        parts = re.split(r"(?m)^(?=!\[)", PERFORMANCE.read_text())[1:]
        commands = re.findall(r"`(tutti run [^`]*)`", (support.SOURCE / "results/2026-11-performance/README.md").read_text())
        self.assertEqual(len(commands), 4)
        for part in parts:
            with self.subTest(part.splitlines()[0]):
                (line,) = re.findall(r"(?m)^Command: (.*)$", part)
                told = re.findall(r"`([^`]*)`", line)
                self.assertTrue(told and set(told) <= set(commands), told)
                self.assertEqual(len(re.findall(r"(?m)^Machine: .*AMD EPYC", part)), 1)


class Readme(unittest.TestCase):
    TEXT = (support.SOURCE / "README.md").read_text()

    def test_it_is_short(self):
        self.assertLessEqual(len(self.TEXT.encode()), LONGEST_README)

    @support.at_night
    def test_its_recipes_run(self):
        recipes = re.findall(r"(?m)^\| .* \| `((?:tutti (?:run|check)|mpirun) .*)` \|$", self.TEXT)
        self.assertGreaterEqual(len(recipes), 6)
        for recipe in recipes:
            if "openmpi" in recipe and not support.HAS_OPENMPI or recipe.startswith("mpirun"):
                continue  # perf_test.py runs those of mpirun
            words = ["{folder}/" + word if word.startswith("out.") else word for word in shlex.split(recipe)[1:]]
            words += ["--budget", "500ms"] if words[0] == "run" else ["--operations", "300"]
            with self.subTest(recipe), support.Run(*words) as one:
                result = one.wait(60)
                self.assertEqual(result.code, 0, result)


if __name__ == "__main__":
    unittest.main()
