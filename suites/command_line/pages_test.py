# SPDX-License-Identifier: Apache-2.0
"""What the pages say holds: their links lead somewhere, their options exist, and the README's commands run."""
import re
import shlex
import unittest

import support

LONGEST_README = 10_000  # bytes
LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")
COMMANDS = ["run", "check", "check soak", "prove", "explain", "gate", "compare", "report", "list", "doctor"]
OF_OTHERS = {"--benchmark_filter", "--bind-to", "--build", "--gtest_filter", "--install", "--least", "--list", "--most",
             "--mpicc", "--name", "--no-python", "--nproc-per-node", "--output", "--prefix", "--preset", "--same",
             "--short", "--slowed", "--target"}


def pages():
    """All pages of the tree, and none of what was built or is somebody's own."""
    left_out = {"results", "build", ".git"}
    for folder in sorted(path for path in support.SOURCE.iterdir() if path.is_dir() and path.name not in left_out
                         and not path.name.startswith("build")):
        yield from sorted(folder.rglob("*.md"))
    yield from [support.SOURCE / "README.md", support.SOURCE / "results/README.md"]


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
        for command in COMMANDS:
            known |= set(re.findall(r"--[a-z][a-z-]+", support.run(*command.split(), "--help").out))
        for page in pages():
            for option in re.findall(r"(?<![\w-])--[a-z][a-z_-]+", page.read_text()):
                with self.subTest(page=page):
                    self.assertIn(option, known)


class Readme(unittest.TestCase):
    TEXT = (support.SOURCE / "README.md").read_text()

    def test_it_is_short(self):
        self.assertLessEqual(len(self.TEXT.encode()), LONGEST_README)

    def test_its_recipes_run(self):
        recipes = re.findall(r"(?m)^\| .* \| `((?:tutti (?:run|check)|mpirun) .*)` \|$", self.TEXT)
        self.assertGreaterEqual(len(recipes), 6)
        for recipe in recipes:
            if "openmpi" in recipe and not support.HAS_OPENMPI or recipe.startswith("mpirun"):
                continue  # perf_test.py runs those of mpirun
            words = ["{folder}/" + word if word.startswith("out.") else word for word in shlex.split(recipe)[1:]]
            words += ["--budget", "500ms"] if words[0] == "run" else ["--operations", "300"]
            with self.subTest(recipe), support.Run(*words) as one:
                result = one.wait(support.patience(60))
                self.assertEqual(result.code, 0, result)


if __name__ == "__main__":
    unittest.main()
