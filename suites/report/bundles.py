# SPDX-License-Identifier: Apache-2.0
"""Bundles of made-up results, and a page made of one."""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = SOURCE / "scripts/report"
sys.path.insert(0, str(SCRIPTS))

CASE = "{collective}/{backend}.{algorithm}/shm/float/sum/P2.processes/none/{bytes}B/out/private/isolated"
HOSTILE = "<script>document.title='broken'</script> \"quoted\" 'single' & ünïcode ✓"


def system(backend, usual_time, **changes):
    """What one system measured in a cell; an interval of 2 % to either side."""
    time = changes.get("time", usual_time)
    known = {"curve": backend, "backend": backend, "algorithm": "ring" if backend == "tutti" else "none", "verdict": "ok",
             "reason": "", "time": time, "low": time and time * 0.98, "high": time and time * 1.02,
             "interval_of": "launches", "launches": 6, "samples": 100, "algbw": None, "busbw": None, "limit_time": None,
             "limit_fraction": None, "marks": [], "disturbed": [], "arrival_skew": 0.1, "last_rank": 1,
             "slowest_rank": 0, "line_ns": 90.0, "rows": []}
    return {**known, **changes}


def empty():
    """A bundle of nothing."""
    return {"version": 1, "made_by": "tutti 0.0.0", "made": "2026-01-01T00:00:00Z", "sources": [], "rows": [], "cells": [],
            "judged": [], "samples": [], "history": None, "omitted": []}


def row_of(cell, measured, source=0):
    """The row of a system in a cell."""
    return {"case": CASE.format(collective=cell["collective"], backend=measured["backend"],
                                algorithm=measured["algorithm"], bytes=cell["bytes"]),
            "collective": cell["collective"], "backend": measured["backend"], "algorithm": measured["algorithm"],
            "transport": "shm", "ranks": 2, "dtype": "float", "op": "sum", "root": None, "placement": "out",
            "buffers": "private", "bytes": cell["bytes"], "launch": 1, "time_median": measured["time"],
            "time_ci_low": measured["low"], "time_ci_high": measured["high"], "algbw": measured["algbw"],
            "busbw": measured["busbw"], "limit_fraction": measured["limit_fraction"], "samples": measured["samples"],
            "verdict": measured["verdict"], "marks": "; ".join(measured["marks"]),
            "disturbed": "; ".join(measured["disturbed"]), "reason": measured["reason"], "source": source}


def bundle_of(series, **source):
    """A bundle of `{collective: {bytes: [systems]}}`; ratios are those of tutti to each of the others."""
    bundle = empty()
    bundle["sources"].append({"file": "made.json", "kind": "rows", "command": "tutti run", "seed": 1, "finished": True,
                              "machine": {"hostname": "host", "cpu_model": "a processor"}, "versions": {}, **source})
    for collective, cells in series.items():
        for size, systems in cells.items():
            cell = {"cell": f"{collective}/{size}B", "series": collective, "source": 0, "collective": collective,
                    "bytes": size, "ranks": 2, "starter": "spawn", "systems": copy.deepcopy(systems), "ratios": []}
            ours = systems[0]
            for other in systems[1:]:
                if ours["time"] and other["time"] and ours["verdict"] == other["verdict"] == "ok":
                    ratio = ours["time"] / other["time"]
                    cell["ratios"].append({"curve": ours["curve"], "reference": other["curve"], "ratio": ratio,
                                           "low": ratio * 0.95, "high": ratio * 1.05, "interval_of": "launches"})
            for measured in cell["systems"]:
                measured["rows"] = [len(bundle["rows"])]
                bundle["rows"].append(row_of(cell, measured))
            bundle["cells"].append(cell)
    return bundle


def usual():
    """Two collectives, three sizes, tutti and Open MPI, all right."""
    return bundle_of({collective: {size: [system("tutti", 1.0 + size / 1000, busbw=2.0, limit_time=0.5, limit_fraction=0.4),
                                          system("openmpi", 2.0 + size / 900, busbw=1.0)]
                                   for size in (8, 1024, 65536)} for collective in ("all_reduce", "broadcast")})


def of_all_states():
    """One cell in each state, the others right."""
    states = {8: {"verdict": "wrong", "reason": "rank 1 differs"}, 64: {"verdict": "skipped", "time": None, "low": None, "high": None},
              512: {"verdict": "unchecked"}, 4096: {"marks": ["noisy"]}, 32768: {"marks": ["near floor"]}, 262144: {},
              1 << 20: {"verdict": "error", "time": None, "low": None, "high": None}}
    return bundle_of({"all_reduce": {size: [system("tutti", 5.0 + size / 1000, **changes), system("openmpi", 6.0 + size / 900)]
                                     for size, changes in states.items()}})


def report(bundle, *arguments):
    """Runs report.py with the bundle; the finished process."""
    return subprocess.run([sys.executable, "-B", SCRIPTS / "report.py", *arguments], input=json.dumps(bundle),
                          capture_output=True, text=True, check=False, timeout=120)


def page_of(bundle):
    """The text of the page of a bundle."""
    with tempfile.TemporaryDirectory(prefix="tutti-page-") as folder:
        path = pathlib.Path(folder) / "page.html"
        done = report(bundle, "--html", path)
        assert done.returncode == 0, done.stderr
        return path.read_text(encoding="utf-8")
