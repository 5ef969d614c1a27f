#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: torch.py [--python PYTHON] [--module FOLDER] [--ranks LIST] [--write FOLDER] [TEST...]

PyTorch's own tests of torch.distributed, run with tutti and, as the control, with Gloo: those of the installed torch
that need no GPU. A table of what passed, failed and was skipped, with the reason of each that did not pass.

  TEST             only these (default: all)
  --python PYTHON  that has torch (default: /usr/bin/python3)
  --module FOLDER  of tutti_torch (default: build/lib/python of this checkout)
  --ranks LIST     numbers of ranks (default: 2,3,4)
  --systems LIST   of gloo, tutti-as-gloo, tutti, tutti-as-mpi (default: all)
  --write FOLDER   the table to README.md there, and every outcome to judge.csv

torch writes some tests for the backend "gloo" alone, and some for "mpi". So tutti runs three times: as a plugin by its
name, in the place of Gloo's class, and with the tests for mpi. Exit code: 0; 1 where a test fails with tutti that
passes with Gloo, or that Gloo cannot run; 2 usage; 3 no torch or no tutti_torch.
"""
import argparse
import collections
import csv
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKER = ROOT / "suites/judges/workers/distributed_tests.py"
SYSTEMS = ["gloo", "tutti-as-gloo", "tutti", "tutti-as-mpi"]
FOR_MPI = "test_all_to_all"
SECONDS_A_TEST = 30
LIMIT_OF_REASON = 160
CUSTOM = "'custom' != "  # torch 2 logs this as the name of every extension's backend


class Run:
    """One system under all tests, on some ranks."""

    def __init__(self, asked, system, ranks, tests):
        self.asked, self.system, self.ranks = asked, system, ranks
        self.tests = [test for test in tests if (system != "tutti-as-mpi" or test.startswith(FOR_MPI))]

    def worker(self, *words):
        path = os.pathsep.join(filter(None, [str(self.asked.module), os.environ.get("PYTHONPATH")]))
        return subprocess.Popen([self.asked.python, "-B", str(WORKER), self.system, *words], start_new_session=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True,
                                env={**os.environ, "PYTHONPATH": path, "WORLD_SIZE": str(self.ranks),
                                     "OMP_NUM_THREADS": "1"})

    def outcomes(self):
        """{test: its outcome}. A test that hangs, or takes its process with it, has failed, and the others go on."""
        found, left = {}, list(self.tests)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "outcomes")
            while left:
                process = self.worker(str(file), *left)
                done = 0
                while process.poll() is None:
                    try:
                        process.communicate(timeout=SECONDS_A_TEST)
                    except subprocess.TimeoutExpired:
                        now = len(read_outcomes(file))
                        if now == done:
                            break
                        done = now
                end(process)
                found.update((row["test"], row) for row in read_outcomes(file))
                still = [test for test in left if test not in found]
                if still:
                    why = "no end" if process.returncode == -signal.SIGKILL else f"exit code {process.returncode}"
                    found[still[0]] = {"test": still[0], "outcome": "fail", "reason": why, "seconds": SECONDS_A_TEST}
                left = still[1:]
        return found


def read_outcomes(file):
    try:
        return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
    except OSError:
        return []


def end(process):
    """It and the ranks that it forked."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    process.stdout.close()


def reason_of(row):
    """The last line of an exception, which says what it is."""
    lines = [line.strip() for line in row["reason"].splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line.split(":")[0] or "Exception" in line.split(":")[0]]
    text = (errors or lines or [""])[-1]
    return text if len(text) <= LIMIT_OF_REASON else text[:LIMIT_OF_REASON] + "..."


def verdict(by_system):
    """Whether tutti does what it must: what passes with Gloo passes, and what Gloo cannot run does not fail. A test that
    passes by the plugin's name need not pass in the place of Gloo, whose name some tests ask for. torch's own CUSTOM is
    no fault."""
    own = [by_system[system]["outcome"] for system in SYSTEMS[1:]
           if system in by_system and CUSTOM not in by_system[system]["reason"]]
    control = by_system.get("gloo", {}).get("outcome", "skip")
    if by_system.get("tutti", {}).get("outcome") == "pass" or control == "fail":
        return "ok"
    return "fails" if "fail" in own or (control == "pass" and own and "pass" not in own) else "ok"


def table(rows):
    """Markdown: how many of each, then every test that tutti did not pass, with the reason."""
    lines = ["| ranks | system | pass | fail | skip |", "| --- | --- | --- | --- | --- |"]
    counts = collections.Counter((row["ranks"], row["system"], row["outcome"]) for row in rows)
    for ranks, system in dict.fromkeys((row["ranks"], row["system"]) for row in rows):
        numbers = " | ".join(str(counts[ranks, system, outcome]) for outcome in ["pass", "fail", "skip"])
        lines.append(f"| {ranks} | {system} | {numbers} |")
    for outcome, title in [("fail", "Failed"), ("skip", "Skipped")]:
        grouped = collections.defaultdict(set)
        for row in rows:
            if row["outcome"] == outcome:
                grouped[row["reason"], row["system"]].add((row["test"], row["ranks"]))
        lines += ["", f"## {title}", "", *(["| system | reason | tests |", "| --- | --- | --- |"] if grouped else ["None."])]
        for (reason, system), tests in sorted(grouped.items(), key=lambda item: (item[0][1], item[0][0])):
            names = collections.defaultdict(list)
            for test, ranks in sorted(tests):
                names[test].append(str(ranks))
            shown = ", ".join(f"`{test}` ({','.join(numbers)})" for test, numbers in names.items())
            lines.append(f"| {system} | {reason.replace('|', '/')} | {shown} |")
    return lines


def versions(asked):
    code = "import torch, tutti_torch, sys; print(torch.__version__, sys.version.split()[0])"
    done = subprocess.run([asked.python, "-B", "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(asked.module)})
    if done.returncode != 0:
        print(f"torch.py: {asked.python} has no torch, or {asked.module} no tutti_torch: "
              f"{(done.stderr.strip().splitlines() or [''])[-1]}", file=sys.stderr)
        sys.exit(3)
    return done.stdout.split()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--module", type=pathlib.Path, default=ROOT / "build/lib/python")
    parser.add_argument("--ranks", default="2,3,4")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--help", action="store_true")
    asked = parser.parse_args()
    if asked.help:
        print(__doc__, end="")
        return 0
    if not all(word.isdigit() and int(word) > 0 for word in asked.ranks.split(",")):
        parser.error(f"--ranks: '{asked.ranks}' is not a list of numbers such as 2,3,4")
    unknown = [system for system in asked.systems.split(",") if system not in SYSTEMS]
    if unknown:
        parser.error(f"--systems: '{unknown[0]}' is none of {', '.join(SYSTEMS)}")
    torch, python = versions(asked)
    rows, wrong = [], []
    for ranks in map(int, asked.ranks.split(",")):
        lister = Run(asked, "gloo", ranks, []).worker("-")
        tests = lister.communicate()[0].split()
        if asked.tests:
            missing = [test for test in asked.tests if test not in tests]
            if missing:
                parser.error(f"'{missing[0]}' is no test of torch {torch} that needs no GPU")
            tests = asked.tests
        by_test = collections.defaultdict(dict)
        for system in asked.systems.split(","):
            outcomes = Run(asked, system, ranks, tests).outcomes()
            for test, row in outcomes.items():
                by_test[test][system] = row
                rows.append({"test": test, "ranks": ranks, "system": system, "outcome": row["outcome"],
                             "seconds": row["seconds"], "reason": reason_of(row)})
            counts = collections.Counter(row["outcome"] for row in outcomes.values())
            print(f"{ranks} ranks, {system}: {counts['pass']} pass, {counts['fail']} fail, {counts['skip']} skip", flush=True)
        wrong += [(ranks, test) for test, found in by_test.items() if verdict(found) != "ok"]
    for ranks, test in wrong:
        print(f"fails: {test} on {ranks} ranks")
        for row in rows:
            if (row["test"], row["ranks"], row["outcome"]) == (test, ranks, "fail"):
                print(f"    {row['system']}: {row['reason']}")
    if asked.write:
        asked.write.mkdir(parents=True, exist_ok=True)
        head = ["# PyTorch's own tests", "",
                f"`distributed_test.py` of torch {torch} on Python {python}, {datetime.date.today()}, by "
                "`suites/judges/torch.py --write`: the tests that need no GPU.",
                "Gloo is the control. torch has tests for the backend gloo alone, and for mpi alone, so tutti runs as a plugin by",
                "its name, and in the place of each of the two.", "",
                f"Tests that pass with Gloo, or that Gloo cannot run, and fail with tutti: {len(wrong)}.",
                "In Gloo's place a test may fail that passes by tutti's name: it asks for Gloo's. torch 2 logs 'custom' as the name",
                "of every extension's backend, so the test of that log fails with each.", ""]
        (asked.write / "README.md").write_text("\n".join(head + table(rows)) + "\n")
        with open(asked.write / "judge.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["test", "ranks", "system", "outcome", "seconds", "reason"], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
