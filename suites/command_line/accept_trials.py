#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: accept_trials.py --program TUTTI [--trials N] [--seed N] [--machines N] [--kinds LIST] [--rail-trials N] [--budget SECONDS]

`tutti accept` on machines made of network namespaces, each behind a cable of 100 Mbit/s, with one fault that is drawn: which
node or pair it names, its class, exit code and exclusion file, and that nothing stays.

  --trials N     (default: 10)
  --seed N       of the first trial; the next ones count on (default: 1)
  --machines N   (default: 4)
  --kinds LIST   of none, nic, nic-out, nic-in, hung, dead, agent (default: these); or of rail-nic, rail-hung, rail-absent:
                 each machine has two cables, and the fault is on the second
  --rail-trials N  further trials, of these three (default: 0)
  --budget N     seconds of one acceptance (default: 600)

Exit code: 0 if no trial blamed a part that is well, and each fault that ends tests (hung, dead, agent) was named; else 1. Faults
of speed that were not decided are counted: on a busy machine they may be. 3 where no namespace can be made.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import namespaces

RATE = 100  # Mbit/s of a cable
KINDS = ["none", "nic", "nic-out", "nic-in", "hung", "dead", "agent"]
SPEEDS = ["nic", "nic-out", "nic-in"]
RAIL_KINDS = ["rail-nic", "rail-hung", "rail-absent"]
CODES = {"none": [0], "hung": [5], "dead": [5], "agent": [3], **{kind: [4] for kind in SPEEDS},
         "rail-nic": [4], "rail-hung": [5], "rail-absent": [3]}
NOT_DECIDED = [0, 3, 6]  # of a fault of speed: not seen, out of time, undecided


SECOND = "cable2"  # the interface of each machine that has two


def lay_second_cables(machines, without=None):
    """A second interface of each machine but one, in a network of its own behind a switch of its own."""
    switch = machines.switch
    switch.run("ip", "link", "add", "switch2", "type", "bridge")
    switch.run("ip", "link", "set", "switch2", "up")
    for i, machine in enumerate(machines.all):
        machine.run("ip", "link", "add", SECOND, "type", "veth", "peer", "name", f"second{i}", "netns", str(switch.holder.pid))
        switch.run("ip", "link", "set", f"second{i}", "master", "switch2", "up")
        if i != without:
            machine.run("ip", "address", "add", machine.address.replace("10.77.", "10.78.") + "/24", "dev", SECOND)
        machine.run("ip", "link", "set", SECOND, "up")


def has_second_cables(machines):
    return any(SECOND in machine.run("ls", "/sys/class/net").stdout.split() for machine in machines.all[:1])


def traffic(where, words):
    subprocess.run(where.enter("tc", *words.split()), check=True, capture_output=True)


def shape(share):
    return f"rate {RATE * (1 - share):.2f}mbit burst 32k cburst 32k quantum 1514"


def limit_cables(machines):
    """What a machine sends is limited at its own end of the cable, what it receives at the switch."""
    for i, machine in enumerate(machines.all):
        cables = [(machine, machines.CABLE), (machines.switch, f"port{i}")]
        if has_second_cables(machines):
            cables += [(machine, SECOND), (machines.switch, f"second{i}")]
        for where, device in cables:
            traffic(where, f"qdisc add dev {device} root handle 1: htb default 10")
            traffic(where, f"class add dev {device} parent 1: classid 1:10 htb {shape(0)}")


def put_in(machines, kind, first, second, share):
    if kind in ("nic", "nic-out"):
        traffic(machines.all[first], f"class change dev {machines.CABLE} parent 1: classid 1:10 htb {shape(share)}")
    if kind in ("nic", "nic-in"):
        traffic(machines.switch, f"class change dev port{first} parent 1: classid 1:10 htb {shape(share)}")
    if kind == "hung":
        for one, other in ((first, second), (second, first)):
            machines.all[one].run("ip", "neighbour", "replace", machines.all[other].address, "lladdr", "02:00:00:00:00:01", "dev",
                                  machines.CABLE, "nud", "permanent")
    if kind == "rail-nic":
        traffic(machines.all[first], f"class change dev {SECOND} parent 1: classid 1:10 htb {shape(share)}")
        traffic(machines.switch, f"class change dev second{first} parent 1: classid 1:10 htb {shape(share)}")
    if kind == "rail-hung":
        for one, other in ((first, second), (second, first)):
            machines.all[one].run("ip", "neighbour", "replace", machines.all[other].address.replace("10.77.", "10.78."), "lladdr",
                                  "02:00:00:00:00:01", "dev", SECOND, "nud", "permanent")
    if kind == "agent":
        text = machines.agent.read_text()
        machines.agent.write_text(text.replace(f"  {machines.all[first].name}|", "  none|"))


def judged(machines, kind, first, second, result, document):
    """"right", "not decided", or what is wrong."""
    named = {name for finding in document["findings"] if finding["verdict"] == "FAIL" for name in finding["nodes"]}
    guilty = {"none": [], "hung": [first, second], "rail-hung": [first, second]}.get(kind, [first])
    names = {machines.all[node].name for node in guilty}
    if not named <= names:
        return f"it blames {sorted(named - names)}: " + "; ".join(finding["sentence"] for finding in document["findings"])
    if kind in RAIL_KINDS:
        return judged_rail(kind, names, result, document)
    if result.returncode in CODES[kind] and (kind in ("none", "agent") or named == names):
        classes = {finding["class"] for finding in document["findings"] if finding["verdict"] == "FAIL"}
        # A machine that sends and receives slowly has a slow NIC; alone it is as fast as the others.
        return "right" if kind in ("none", "agent") or classes == {kind} else f"its class is {sorted(classes)}"
    return "not decided" if kind in SPEEDS and result.returncode in NOT_DECIDED else f"exit code {result.returncode}"


def judged_rail(kind, names, result, document):
    """The second rail is to blame, and nothing on the first one."""
    if blamed := [finding["sentence"] for finding in document["findings"] if finding["verdict"] == "FAIL" and finding["rail"] != "10.78.0.0/24"]:
        return f"it does not name the second rail: {blamed}"
    of_first = {node["node"]: node["verdict"] for node in document["rails"][0]["nodes"]}
    if any(of_first[name] == "FAIL" for name in names):
        return f"it blames the first rail: {of_first}"
    if document["is_interrupted"]:
        return "not decided"  # out of time
    if result.returncode not in CODES[kind]:
        return "not decided" if kind == "rail-nic" and result.returncode in NOT_DECIDED else f"exit code {result.returncode}"
    named = {(finding["class"], finding["rail"], *sorted(finding["nodes"])) for finding in document["findings"]
             if finding["verdict"] in ("FAIL", "ERROR")}
    wanted = {"rail-nic": "nic", "rail-hung": "hung", "rail-absent": "dead"}[kind]
    return "right" if named == {(wanted, "10.78.0.0/24", *sorted(names))} else f"it names {sorted(named)}"


def trial(asked, seed, kinds):
    draw = random.Random(seed)
    kind = draw.choice(kinds)
    budget = asked.budget * (2 if kind in RAIL_KINDS else 1)  # each pair plays on both cables
    # The launcher is on the first machine: a fault that ends it would be another test.
    first, second = draw.sample(range(1, asked.machines), 2)
    share = draw.choice([0.3, 0.4, 0.5])
    with namespaces.Machines(asked.machines) as machines, tempfile.TemporaryDirectory(prefix="tutti-trials-") as folder:
        if kind in RAIL_KINDS:
            lay_second_cables(machines, first if kind == "rail-absent" else None)
        limit_cables(machines)
        put_in(machines, kind, first, second, share)
        path = pathlib.Path(folder) / "json"
        command = machines.all[0].enter(asked.program, "accept", *machines.options(1), "--message-size", "16K", "--stages",
                                        "inventory,pairs", "--margin", "15%", "--timeout", "20s", "--budget", f"{budget}s",
                                        "--json", path, "--exclude", path, *(["--rails", "10.77.0.0/24,10.78.0.0/24"] if kind in RAIL_KINDS else []))
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if kind == "dead":  # once it plays
            while process.poll() is None and not machines.all[first].processes():
                pass
            try:
                process.wait(8)
            except subprocess.TimeoutExpired:
                machines.all[first].run("ip", "link", "set", machines.CABLE, "down")
        out, err = process.communicate(timeout=budget + 120)
        document = json.loads(path.read_text())
        verdict = judged(machines, kind, first, second, process, document)
        hosts = [line for line in path.with_suffix(".exclude.hosts").read_text().splitlines() if not line.startswith("#")]
        if verdict == "right" and kind in ("dead", "agent", "rail-nic", "rail-absent", *SPEEDS) and machines.all[first].name in hosts:
            verdict = "the hostfile has the faulty node"
        if kind == "dead":
            machines.all[first].run("ip", "link", "set", machines.CABLE, "up")
        if left := machines.left(30):
            verdict = f"it left {left}"
    sentence = out.splitlines()[1] if len(out.splitlines()) > 1 else err
    slower = f" by {100 * share:.0f} %" if kind in (*SPEEDS, "rail-nic") else ""
    print(f"seed {seed}: {kind} at machine {first}{slower}: {verdict}. {sentence}", flush=True)
    return verdict


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--rail-trials", type=int, default=0)
    parser.add_argument("--budget", type=int, default=600)
    asked = parser.parse_args()
    for kind in asked.kinds:
        if kind not in KINDS + RAIL_KINDS:
            parser.error(f"--kinds: no kind '{kind}' (one of: {' '.join(KINDS + RAIL_KINDS)})")
    asked.program = asked.program.resolve()
    try:
        verdicts = [trial(asked, asked.seed + i, asked.kinds) for i in range(asked.trials)]
        verdicts += [trial(asked, asked.seed + i, RAIL_KINDS) for i in range(asked.rail_trials)]
    except unittest.SkipTest as why:
        print(why, file=sys.stderr)
        return 3
    right, open_ = verdicts.count("right"), verdicts.count("not decided")
    print(f"# {len(verdicts)} trials: {right} right, {open_} not decided, {len(verdicts) - right - open_} wrong")
    return 0 if right + open_ == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
