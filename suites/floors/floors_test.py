# SPDX-License-Identifier: Apache-2.0
"""The one arrow: a file includes its own folder and the floors below, as the floors.h of each root says. Only one
folder of impl reads the environment, beside variables TUTTI_ of its bindings, and no type has two definitions in a
namespace. Every rule is a function that
returns what it finds wrong in a tree, and is tried on made-up trees too, in which something is."""
import pathlib
import re
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
ROOTS = ["impl", "harness"]  # each has a floors.h
ARROW = {"impl": 1, "harness": 2, "suites": 3, "src": 3}  # each includes itself and those with a smaller number
ENDINGS = {".h", ".cc", ".cuh", ".cu"}
READS_ENVIRONMENT = "impl/bootstrap"
READS_OWN_VARIABLES = "impl/bindings"  # those that begin with TUTTI_
BACKENDS = ["openmpi", "mpich", "gloo", "nccl"]


# What the files say

def sources(tree, root):
    return sorted(path for path in (tree / root).rglob("*") if path.suffix in ENDINGS)


def folder_of(tree, path):
    """The first folder below the root; None for a file of the root itself."""
    parts = path.relative_to(tree).parts
    return parts[1] if len(parts) > 2 else None


def floors_of(tree, root):
    """The number of each folder's floor, and what is wrong with the file that says so."""
    file = tree / root / "floors.h"
    if not file.is_file():
        return {}, [f"{root}/floors.h is missing"]
    floors, wrong, last = {}, [], 0
    for line in file.read_text().splitlines():
        if not re.match(r"//\s*floor \d", line):
            continue
        match = re.fullmatch(r"//\s+floor (\d+): (\w+(?:, \w+)*)", line)
        if not match or int(match[1]) != last + 1:
            wrong.append(f"{root}/floors.h: '{line}' is not '// floor {last + 1}: a folder, another'")
            continue
        last += 1
        for folder in match[2].split(", "):
            if folder in floors:
                wrong.append(f"{root}/floors.h: {folder} is on floors {floors[folder]} and {last}")
            floors[folder] = last
    return floors, wrong or ([] if floors else [f"{root}/floors.h says no floor"])


def without_comments(text, keeps_strings=True):
    """The text with blanks for comments and, unless they are kept, what is in strings."""
    def blank(match):
        token = match[0]
        if token.startswith("/"):
            return " " + "\n" * token.count("\n")
        return token if keeps_strings else '""'
    # A quote between digits is no character literal.
    comment = r"//(?:\\\n|[^\n])*|/\*.*?\*/"
    string = r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    character = r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'"
    return re.sub("|".join([comment, string, character]), blank, text, flags=re.S)


def without_template(head):
    """A declaration without the template clauses before it."""
    while (match := re.match(r"\s*template\s*<", head)):
        depth, end = 1, match.end()
        while end < len(head) and depth > 0:
            depth += {"<": 1, ">": -1}.get(head[end], 0)
            end += 1
        head = head[end:]
    return head.strip()


TYPE = re.compile(r"(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:\[\[.*?\]\]\s*|alignas\s*\([^)]*\)\s*|[A-Z][A-Z0-9_]+\s+)*"
                  r"(\w+)\s*(?:final\s*)?(?::(?!:).*)?", re.S)
ALIAS = re.compile(r"using\s+(\w+)\s*(?:\[\[.*?\]\]\s*)?=.*", re.S)
CONSTANT = re.compile(r"(?:(?:inline|static|constexpr|const)\s+)+[^=(]*?\b(k[A-Z]\w*)(?:\[\w*\])?\s*(?:[=(].*|$)", re.S)


def names_in(text):
    """(namespace, kind, name) of the types, aliases and constants of namespaces; '-' is one without a name."""
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", without_comments(text, keeps_strings=False), flags=re.M)
    found, scopes, head = [], [], ""

    def is_outside():
        return all(scope is not None for scope in scopes)

    def note(declaration, is_body):
        declaration = without_template(declaration)
        for kind, form in {"type": TYPE if is_body else None, "alias": ALIAS, "constant": CONSTANT}.items():
            match = form and form.fullmatch(declaration)
            if match:
                found.append(("::".join(scopes), kind, match[1]))

    for token in re.findall(r"[{};]|[^{};]+", text):
        if token == "{":
            space = re.fullmatch(r"\s*(?:inline\s+)?namespace\b\s*([\w:]*)\s*", head)
            if is_outside() and not space:
                note(head, True)
            scopes.append((space[1] or "-") if space and is_outside() else None)
            head = ""
        elif token == "}":
            if scopes:
                scopes.pop()
            head = ""
        elif token == ";":
            if is_outside():
                note(head, False)
            head = ""
        else:
            head = token
    return found


# The rules

def check_folders(tree, root):
    """Every folder of sources is on one floor, and on every floor are folders of sources."""
    floors, wrong = floors_of(tree, root)
    folders = set()
    for path in sources(tree, root):
        folder = folder_of(tree, path)
        if folder is not None:
            folders.add(folder)
        elif path.name != "floors.h":
            wrong.append(f"{path.relative_to(tree)} is in no folder, so on no floor")
    unlisted = [folder for folder in sorted(folders) if folder not in floors]
    empty = [folder for folder in floors if folder not in folders]
    wrong += [f"{root}/{folder} is on no floor of {root}/floors.h" for folder in unlisted]
    wrong += [f"{root}/floors.h: there is no {root}/{folder} with sources" for folder in empty]
    return wrong


def check_includes(tree, root):
    floors, wrong = floors_of(tree, root)
    if wrong:
        return wrong
    for path in sources(tree, root):
        own, name = folder_of(tree, path), path.relative_to(tree)
        form = r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]'
        for included in re.findall(form, without_comments(path.read_text()), re.M):
            parts = included.split("/")
            if included.startswith("."):
                wrong.append(f"{name} includes {included}: a path begins at the root of the tree")
                continue
            if parts[0] not in ARROW:
                continue
            if parts[0] != root:
                if ARROW[parts[0]] >= ARROW[root]:
                    wrong.append(f"{name} includes {included}: {root} includes nothing of {parts[0]}")
                continue
            other = parts[1] if len(parts) > 2 else None
            if other == own or own is None or other is None:
                continue
            if own not in floors or other not in floors:
                wrong.append(f"{name} includes {included}: not both are on a floor of {root}/floors.h")
            elif floors[other] >= floors[own]:
                where = "above" if floors[other] > floors[own] else "beside it"
                wrong.append(f"{name} on floor {floors[own]} includes {included} {where} on floor {floors[other]}")
    return wrong


def arrows_of(floors):
    """Floors as a page writes them, from the top down: `c -> a, b`."""
    rows = [sorted(name for name in floors if floors[name] == floor) for floor in sorted(set(floors.values()), reverse=True)]
    return " -> ".join(", ".join(row) for row in rows)


def check_map(tree):
    """The pages' maps: arrows as the floors are, and a row for each folder that is there."""
    wrong = []
    arrows = {"README.md": [ARROW, floors_of(tree, "impl")[0]], "impl/README.md": [floors_of(tree, "impl")[0]]}
    for page, all_floors in arrows.items():
        quoted = [" ".join(text.split()) for text in re.findall(r"`([^`]* -> [^`]*)`", (tree / page).read_text())]
        for text in map(arrows_of, all_floors):
            if text not in quoted:
                wrong.append(f"{page} has no arrows `{text}`")
    for page, ending in {"README.md": "/", "harness/README.md": ""}.items():
        rows = re.findall(r"(?m)^\| ((?:`[\w/]+`,? ?)+) \|", (tree / page).read_text())
        named = {name for row in rows for name in re.findall(rf"`(\w+){ending}`", row)}
        folder = (tree / page).parent
        there = {path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "build", "__"))}
        wrong += [f"{page} names no folder {name}" for name in sorted(there - named)]
        wrong += [f"{page} names {name}, and there is no such folder" for name in sorted(named - there)]
    return wrong


def check_namespaces(tree):
    """A folder of the harness declares names in its own namespace alone, those of upper floors too."""
    wrong = []
    for path in sources(tree, "harness"):
        own = folder_of(tree, path)
        for space in re.findall(r"^[ \t]*namespace[ \t]+(tutti::harness[\w:]*)", without_comments(path.read_text()), re.M):
            if own is not None and not f"{space}::".startswith(f"tutti::harness::{own}::"):
                wrong.append(f"{path.relative_to(tree)} declares names in {space}")
    return wrong


def check_environment(tree):
    """In impl one folder reads the environment, and one its own variables there."""
    wrong = []
    for path in sources(tree, "impl"):
        name = path.relative_to(tree)
        if name.as_posix().startswith(READS_ENVIRONMENT + "/"):
            continue
        if name.as_posix().startswith(READS_OWN_VARIABLES + "/"):
            text = without_comments(path.read_text())
            for call in re.findall(r"\b(?:secure_)?getenv\b(?!\(\"TUTTI_)[^;]*|\benviron\b", text):
                wrong.append(f"{name} reads the environment ({call.strip()}), of which it may read TUTTI_... alone")
            continue
        for call in re.findall(r"\b(?:secure_)?getenv\b|\benviron\b", without_comments(path.read_text(), False)):
            wrong.append(f"{name} reads the environment ({call}), as only {READS_ENVIRONMENT} may")
    return wrong


def check_types(tree, roots):
    """A type has one definition in a namespace: two in two files, no linker tells apart."""
    places, wrong = {}, []
    for path in (path for root in roots for path in sources(tree, root)):
        for space, kind, name in names_in(path.read_text()):
            if kind != "constant" and "-" not in space.split("::"):
                places.setdefault((space, name), set()).add(path.relative_to(tree).as_posix())
    for (space, name), files in sorted(places.items()):
        if len(files) > 1:
            wrong.append(f"{space}::{name} is defined in {' and in '.join(sorted(files))}")
    return wrong


def apart_in(tree, root):
    """The folders whose files are never compiled as one."""
    file = tree / root / "CMakeLists.txt"
    listed = re.search(r"tutti_compile_by_folder\([^)]*\bEACH ([^)A-Z]+)", file.read_text()) if file.is_file() else None
    return listed[1].split() if listed else []


def check_hidden_names(tree, root):
    """The files of a folder may be compiled as one: a type or constant in a namespace without a name is there once. An
    alias may be there again."""
    places, wrong, apart = {}, [], apart_in(tree, root)
    for path in sources(tree, root):
        if path.suffix != ".cc" or folder_of(tree, path) in apart:
            continue
        folder = path.parent.relative_to(tree).as_posix()
        for space, kind, name in names_in(path.read_text()):
            if kind != "alias" and "-" in space.split("::"):
                places.setdefault((folder, space, name), set()).add(path.name)
    for (folder, _, name), files in sorted(places.items()):
        if len(files) > 1:
            wrong.append(f"{folder}: {name} is in {' and in '.join(sorted(files))}, each in a namespace without a name")
    return wrong


def transports_in(tree):
    """Their names: a folder each, with the row that says it."""
    return sorted(path.name for path in (tree / "impl/transports").iterdir() if path.is_dir())


def check_names(tree, names):
    """A transport or a backend is named in its folder and one table. Elsewhere no literal of the program is its name, none
    has it in quotes, and nobody includes its headers. The folder of a reference speaks of its own library."""
    wrong = []
    quoted = re.compile(r"\"(?:[^\"\n]*')?(" + "|".join(names) + r")(?:'[^\"\n]*)?\"")
    header = re.compile(r'#[ \t]*include[ \t]*[<"](impl/transports/(?:' + "|".join(names) + r')/[^>"]+)')
    for path in (path for root in ["harness", "src"] for path in sources(tree, root)):
        name = path.relative_to(tree).as_posix()
        if re.match(r"harness/backends/(?!tutti/)[^/]+/", name):
            continue
        text = without_comments(path.read_text())
        wrong += [f"{name} includes {found}: a transport is opened by its row" for found in header.findall(text)]
        wrong += [f"{name} says '{found}', as only its folder and its table may" for found in quoted.findall(text)]
    return wrong


class ThisTree(unittest.TestCase):
    """The rules hold here, and what they read is what is there."""
    def test_every_folder_is_on_one_floor(self):
        for root in ROOTS:
            self.assertGreater(len(sources(TREE, root)), 50)
            self.assertEqual(check_folders(TREE, root), [])

    def test_includes_go_down(self):
        for root in ROOTS:
            self.assertEqual(check_includes(TREE, root), [])

    def test_each_folder_of_the_harness_is_a_namespace(self):
        self.assertEqual(check_namespaces(TREE), [])

    def test_one_folder_of_impl_reads_the_environment(self):
        self.assertEqual(check_environment(TREE), [])
        self.assertIn("getenv", "".join(path.read_text() for path in sources(TREE, READS_ENVIRONMENT)))

    def test_no_type_is_defined_twice(self):
        self.assertEqual(check_types(TREE, ["impl", "harness", "src", "suites"]), [])
        found = {name for path in sources(TREE, "impl") for _, _, name in names_in(path.read_text())}
        self.assertLessEqual({"Status", "Result", "Count", "Collective", "Communicator", "DomainShape"}, found)

    def test_no_hidden_name_is_in_two_files_of_a_folder(self):
        for root in ["impl", "harness", "src"]:
            self.assertEqual(check_hidden_names(TREE, root), [])

    def test_nobody_else_names_a_transport(self):
        self.assertEqual(transports_in(TREE), ["cuda", "fake", "local", "shm", "tcp", "verbs"])
        self.assertEqual(check_names(TREE, transports_in(TREE)), [])

    def test_the_maps_of_the_pages_are_the_tree(self):
        self.assertEqual(check_map(TREE), [])

    def test_nobody_else_names_a_backend(self):
        self.assertEqual(check_names(TREE, BACKENDS), [])


FLOORS = "// floor 1: types\n// floor 2: left, right\n// floor 3: roof\n#pragma once\n"


def within(space, text):
    return f"namespace {space + ' ' if space else ''}{{\n{text}\n}}  // namespace {space}\n"


class MadeUpTrees(unittest.TestCase):
    """Each rule refuses what is against it, and says which file it is."""
    def tree(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        tree = pathlib.Path(folder.name)
        sound = {"impl/floors.h": FLOORS, "impl/types/a.h": "", "impl/left/a.h": '#include "impl/types/a.h"\n',
                 "impl/right/a.cc": "", "impl/roof/part/a.cc": '#include "impl/left/a.h"\n#include "impl/roof/b.h"\n',
                 "impl/roof/b.h": ""}
        for name, text in {**sound, **files}.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                path.write_text(text)
        return tree

    def test_a_sound_one_is_let_through(self):
        tree = self.tree({"harness/floors.h": "// floor 1: base\n", "harness/base/a.h": '#include "impl/roof/b.h"\n'})
        for root in ["impl", "harness"]:
            self.assertEqual(check_folders(tree, root) + check_includes(tree, root), [])
            self.assertEqual(check_hidden_names(tree, root), [])
        self.assertEqual(check_environment(tree) + check_types(tree, ["impl", "harness"]), [])

    def test_an_include_that_goes_up(self):
        tree = self.tree({"impl/types/b.cc": '#include "impl/roof/b.h"\n'})
        self.assertEqual(check_includes(tree, "impl"),
                         ["impl/types/b.cc on floor 1 includes impl/roof/b.h above on floor 3"])

    def test_an_include_that_goes_sideways(self):
        tree = self.tree({"impl/right/deep/b.cc": ' # include "impl/left/a.h"\n'})
        self.assertEqual(check_includes(tree, "impl"),
                         ["impl/right/deep/b.cc on floor 2 includes impl/left/a.h beside it on floor 2"])

    def test_an_include_in_angles_and_one_that_begins_at_the_file(self):
        tree = self.tree({"impl/types/b.cc": '#include <impl/roof/b.h>\n', "impl/types/c.cc": '#include "../roof/b.h"\n'})
        self.assertEqual(check_includes(tree, "impl"),
                         ["impl/types/b.cc on floor 1 includes impl/roof/b.h above on floor 3",
                          "impl/types/c.cc includes ../roof/b.h: a path begins at the root of the tree"])

    def test_names_of_another_folder(self):
        base = "harness/base/a.h"
        for space in ["tutti::harness", "tutti::harness::roof", "tutti::harness::basement"]:
            tree = self.tree({base: within(space, "struct Spec;")})
            self.assertEqual(check_namespaces(tree), [f"{base} declares names in {space}"])
        tree = self.tree({base: within("tutti::harness::base", ""), "harness/floors.h": within("tutti::harness", "")})
        self.assertEqual(check_namespaces(tree), [])

    def test_an_include_in_a_comment_is_none(self):
        tree = self.tree({"impl/types/b.cc": '// #include "impl/roof/b.h"\n/*\n#include "impl/roof/b.h"\n*/\n'})
        self.assertEqual(check_includes(tree, "impl"), [])

    def test_an_include_against_the_arrow_between_roots(self):
        harness = {"harness/floors.h": "// floor 1: base\n", "harness/base/a.h": '#include "src/a.h"\n'}
        tree = self.tree({**harness, "impl/roof/c.cc": '#include "harness/base/a.h"\n#include "suites/a.h"\n'})
        self.assertEqual(check_includes(tree, "impl"),
                         ["impl/roof/c.cc includes harness/base/a.h: impl includes nothing of harness",
                          "impl/roof/c.cc includes suites/a.h: impl includes nothing of suites"])
        self.assertEqual(check_includes(tree, "harness"),
                         ["harness/base/a.h includes src/a.h: harness includes nothing of src"])

    def test_a_map_that_is_not_the_tree(self):
        maps = {"README.md": "`src, suites -> harness -> impl` `roof -> left, right ->\n types`\n| `harness/` | |\n| `impl/` | |\n",
                "impl/README.md": "`roof -> left, right -> types`\n", "harness/README.md": "| `base` `top` | |\n",
                "harness/base/a.h": "", "harness/top/a.h": ""}
        self.assertEqual(check_map(self.tree(maps)), [])
        wrong = {"README.md": maps["README.md"].replace("suites -> harness", "harness -> suites").replace("`impl/`", "`attic/`"),
                 "impl/README.md": "`roof -> types`\n", "harness/cellar/a.h": ""}
        self.assertEqual(check_map(self.tree({**maps, **wrong})), [
            "README.md has no arrows `src, suites -> harness -> impl`", "impl/README.md has no arrows `roof -> left, right -> types`",
            "README.md names no folder impl", "README.md names attic, and there is no such folder",
            "harness/README.md names no folder cellar"])

    def test_a_folder_on_no_floor(self):
        tree = self.tree({"impl/attic/a.cc": "", "impl/roof/c.cc": '#include "impl/attic/a.h"\n'})
        self.assertEqual(check_folders(tree, "impl"), ["impl/attic is on no floor of impl/floors.h"])
        self.assertEqual(check_includes(tree, "impl"),
                         ["impl/roof/c.cc includes impl/attic/a.h: not both are on a floor of impl/floors.h"])

    def test_a_file_in_no_folder(self):
        tree = self.tree({"impl/a.cc": ""})
        self.assertEqual(check_folders(tree, "impl"), ["impl/a.cc is in no folder, so on no floor"])

    def test_a_floor_with_a_folder_that_is_not_there(self):
        tree = self.tree({"impl/floors.h": FLOORS.replace("roof", "roof, chimney"), "impl/chimney/README.md": ""})
        self.assertEqual(check_folders(tree, "impl"), ["impl/floors.h: there is no impl/chimney with sources"])

    def test_a_folder_on_two_floors(self):
        tree = self.tree({"impl/floors.h": FLOORS.replace("roof", "roof, left")})
        self.assertEqual(check_folders(tree, "impl"), ["impl/floors.h: left is on floors 2 and 3"])

    def test_floors_that_cannot_be_read(self):
        no_first = "impl/floors.h: '// floor 2: types' is not '// floor 1: a folder, another'"
        for text, wrong in {"// floor 2: types\n": no_first, "#pragma once\n": "impl/floors.h says no floor"}.items():
            self.assertIn(wrong, check_folders(self.tree({"impl/floors.h": text}), "impl"))

    def test_floors_that_are_missing(self):
        tree = self.tree({"harness/base/a.h": ""})
        self.assertIn("harness/floors.h is missing", check_folders(tree, "harness"))
        self.assertEqual(check_includes(tree, "harness"), ["harness/floors.h is missing"])

    def test_a_getenv(self):
        reads = "const char* home = std::getenv(\"HOME\");\n"
        tree = self.tree({"impl/bootstrap/a.cc": reads, "impl/left/b.cc": reads, "impl/right/b.cc": "// no getenv\n"})
        self.assertEqual(check_environment(tree),
                         ["impl/left/b.cc reads the environment (getenv), as only impl/bootstrap may"])

    def test_a_getenv_of_a_binding(self):
        tree = self.tree({"impl/bindings/own.cc": "auto* own = std::getenv(\"TUTTI_X\");\n",
                          "impl/bindings/home.cc": "auto* home = std::getenv(\"HOME\");\n"})
        self.assertEqual(check_environment(tree), [
            "impl/bindings/home.cc reads the environment (getenv(\"HOME\")), of which it may read TUTTI_... alone"])

    def test_a_type_that_is_defined_twice(self):
        head = "template <class A, class B = C<A>>\nclass [[nodiscard]] Twice final : public Base"
        one = within("t", head + " {\n  int x{};\n};")
        for other in ["struct Twice {};", "struct EXPORTED Twice {};", "using Twice = int;", "enum class Twice : int { a, b };",
                      within("", "int f() { return 1; }") + "union Twice {};"]:
            tree = self.tree({"impl/left/b.h": one, "impl/right/b.h": within("t", other)})
            wrong = ["t::Twice is defined in impl/left/b.h and in impl/right/b.h"]
            self.assertEqual(check_types(tree, ["impl"]), wrong, other)

    def test_a_name_that_is_no_second_definition(self):
        one = within("t", "class Once {\n public:\n  struct Nested {};\n};\nusing Alias = int;")
        for other in [within("t", "class Once;\nOnce* make(struct Once one);"),
                      within("t", within("", "struct Once {};")),
                      within("t::u", "struct Once {};"),
                      within("t", "void f() {\n  struct Once {};\n  using Alias = int;\n}"),
                      within("t", "// struct Once {};\nconst char* text = \"struct Once {};\";\nchar brace = '{';"),
                      within("t", "int large = 1'000'000;\nclass Other {\n  struct Nested {};\n};"),
                      within("t", "template <>\nstruct Once<int> {};")]:
            tree = self.tree({"impl/left/b.h": one, "impl/right/b.h": other})
            self.assertEqual(check_types(tree, ["impl"]), [], other)

    def test_a_name_of_a_transport_in_another_place(self):
        row = 'constexpr const char* kName = "tcp";\n'
        tree = self.tree({"impl/transports/tcp/a.cc": row, "impl/transports/link.h": "",
                          "harness/roof/a.cc": '// "tcp"\nauto a = "tcpdump", b = "over tcp";\n'})
        self.assertEqual(transports_in(tree), ["tcp"])
        self.assertEqual(check_names(tree, ["tcp", "shm"]), [])
        wrong = "src/a.cc says 'tcp', as only its folder and its table may"
        for text in ['one.transport = is_far ? "tcp" : best;', 'print("did you mean \'tcp\'?");']:
            (tree / "src").mkdir(exist_ok=True)
            (tree / "src/a.cc").write_text(text)
            self.assertEqual(check_names(tree, ["tcp", "shm"]), [wrong])
        (tree / "src/a.cc").write_text("")
        for folder, found in [("harness/backends/mpi", 0), ("harness/backends/tutti", 1), ("harness/backends", 1)]:
            (tree / folder).mkdir(parents=True, exist_ok=True)
            (tree / folder / "a.cc").write_text('auto a = "tcp";')
            self.assertEqual(len(check_names(tree, ["tcp", "shm"])), found, folder)
            (tree / folder / "a.cc").unlink()
        (tree / "src/a.cc").write_text('#include "impl/transports/tcp/domain.h"\n#include "impl/transports/link.h"\n')
        self.assertEqual(check_names(tree, ["tcp", "shm"]),
                         ["src/a.cc includes impl/transports/tcp/domain.h: a transport is opened by its row"])

    def test_a_hidden_name_that_is_in_two_files_of_a_folder(self):
        for what, name in {"struct Row {\n  int a;\n};": "Row", "constexpr int kMost = 3;": "kMost",
                           "constexpr std::array kTable{1, 2};": "kTable"}.items():
            hidden = within("t", within("", what))
            tree = self.tree({"impl/left/b.cc": hidden, "impl/left/c.cc": hidden, "impl/right/b.cc": hidden})
            self.assertEqual(check_hidden_names(tree, "impl"),
                             [f"impl/left: {name} is in b.cc and in c.cc, each in a namespace without a name"])
            (tree / "impl/CMakeLists.txt").write_text("tutti_compile_by_folder(x EACH roof left HEADERS <a>)\n")
            self.assertEqual(check_hidden_names(tree, "impl"), [])


if __name__ == "__main__":
    unittest.main()
