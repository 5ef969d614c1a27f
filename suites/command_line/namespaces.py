#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: namespaces.py [--machines N] [--ranks N] PROGRAM COMMAND [OPTION...]

Machines made of network namespaces of this one: each has a hostname, an address and a network of its own. Two have a
cable between them, more a switch. Runs `PROGRAM COMMAND OPTION...` on the first of them, over all of them by --hosts.

  --machines N   (default: 2)
  --ranks N      on each (default: 2)

A process holds the namespaces of each machine, and ends with this one, however that ends: nothing of them has a name
that could stay. Cores, memory and files are shared. Exit code: the program's; 3 where no namespace can be made, or 1
where something was left on a machine.
"""
import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

LIMIT = 10  # s, for what takes milliseconds
# Its words: hostname, the file with the names of all machines, an empty folder. It ends with its stdin. A /sys of before
# would tell of the interfaces of this machine; a new one has no control groups.
HOLDER = """hostname "$1" && mount --bind "$2" /etc/hosts && ip link set lo up && mount -t sysfs sysfs "$3" &&
{ ! [ -d /sys/fs/cgroup ] || mount --rbind /sys/fs/cgroup "$3/fs/cgroup"; } && mount --move "$3" /sys && echo ready && exec cat"""
# As ssh is called: options, a host, words for its shell. The command has a session of its own there.
AGENT = """#!/bin/sh
while :; do case $1 in -*) shift ;; *) break ;; esac; done
case $1 in
{cases}
  *) echo "no machine '$1'" >&2; exit 255 ;;
esac
shift
exec setsid --wait nsenter --target "$holder" --net --uts --mount --wdns="$PWD" sh -c "$*"
"""


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return "gone"


class Machine:
    def __init__(self, name, address, hosts, empty):
        self.name, self.address = name, address
        command = ["unshare", "--net", "--uts", "--mount", "sh", "-c", HOLDER, "sh", name, hosts, empty]
        self.holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = self.holder.stdout.readline()
        if said != "ready\n":
            self.remove()
            raise OSError(said.strip() or "unshare failed")

    def enter(self, *words):
        """The command that runs `words` there."""
        return ["nsenter", "--target", str(self.holder.pid), "--net", "--uts", "--mount", f"--wdns={os.getcwd()}", *map(str, words)]

    def run(self, *words):
        return subprocess.run(self.enter(*words), capture_output=True, text=True, check=True, timeout=LIMIT)

    def processes(self):
        """Those that run there, without the one that holds it: their ids."""
        own = os.stat(f"/proc/{self.holder.pid}/ns/net").st_ino
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and int(name) != self.holder.pid and os.stat(f"/proc/{name}/ns/net").st_ino == own:
                    found.append(int(name))
            except OSError:
                continue  # it has ended
        return found

    def remove(self):
        self.holder.stdin.close()
        self.holder.wait(LIMIT)
        self.holder.stdout.close()


class Machines:
    """`number` machines, for a `with`. `names` takes a word that is theirs, and the number of each. Raises unittest.SkipTest
    where they cannot be made."""

    CABLE = "cable"  # the interface of each

    def __init__(self, number, names="{}n{}"):
        missing = [name for name in ["ip", "unshare", "nsenter", "setsid", "setpriv"] if shutil.which(name) is None]
        if missing:
            raise unittest.SkipTest(f"there is no `{missing[0]}`: no network namespace can be made")
        tag = uuid.uuid4().hex[:6]
        self._folder = tempfile.TemporaryDirectory(prefix="tutti-machines-")
        self.folder = pathlib.Path(self._folder.name)
        self.all, self.switch = [], None
        self.residents = set()  # ids of processes that belong there
        try:
            addresses = {names.format(f"tt{tag}", i): f"10.77.0.{i + 1}" for i in range(number)}
            hosts = self.folder / "hosts"
            hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in addresses.items()))
            empty = self.folder / "empty"
            empty.mkdir()
            for name, address in addresses.items():
                self.all.append(Machine(name, address, hosts, empty))
            if number > 2:
                self.switch = Machine(f"tt{tag}switch", "", hosts, empty)
            self.connect()
        except (OSError, subprocess.SubprocessError) as failure:
            self.remove()
            raise unittest.SkipTest(f"no network namespace can be made: {(getattr(failure, 'stderr', '') or str(failure)).strip()}")
        self.agent = self.folder / "agent"
        cases = [f"  {machine.name}|{machine.address}) holder={machine.holder.pid} ;;" for machine in self.all]
        self.agent.write_text(AGENT.replace("{cases}", "\n".join(cases)))
        self.agent.chmod(0o755)

    def connect(self):
        if self.switch:
            self.switch.run("ip", "link", "add", "switch", "type", "bridge")
            self.switch.run("ip", "link", "set", "switch", "up")
            for i, machine in enumerate(self.all):
                self.lay_cable(machine, self.switch, f"port{i}")
                self.switch.run("ip", "link", "set", f"port{i}", "master", "switch", "up")
        else:
            self.lay_cable(*self.all, self.CABLE)
        for machine in self.all:
            machine.run("ip", "address", "add", f"{machine.address}/24", "dev", self.CABLE)
            machine.run("ip", "link", "set", self.CABLE, "up")
        # The kernel may take a second to see the carrier. Until then an interface has no IPv6 address, and libraries that
        # look for one that is up pass it over.
        end = time.monotonic() + LIMIT
        while any(machine.run("cat", f"/sys/class/net/{self.CABLE}/operstate").stdout.strip() != "up" for machine in self.all):
            if time.monotonic() > end:
                raise OSError("a cable that does not come up")
            time.sleep(0.05)

    def lay_cable(self, one, other, port):
        one.run("ip", "link", "add", self.CABLE, "type", "veth", "peer", "name", port, "netns", str(other.holder.pid))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def cut(self):
        """The cable of the last one."""
        self.all[-1].run("ip", "link", "set", self.CABLE, "down")

    def mend(self):
        self.all[-1].run("ip", "link", "set", self.CABLE, "up")

    def cut_from(self, one):
        """Of two: what machine `one` sends does not arrive any more, for it goes to somebody who is not there."""
        self.all[one].run("ip", "neighbour", "replace", self.all[1 - one].address, "lladdr", "02:00:00:00:00:01", "dev", self.CABLE,
                          "nud", "permanent")

    def narrow(self):
        """Sockets take little at a time from here on, and packets are the least that there are."""
        for machine in self.all:
            machine.run("sysctl", "-qw", "net.ipv4.tcp_wmem=4096 4096 4096", "net.ipv4.tcp_rmem=4096 4096 4096")
            machine.run("ip", "link", "set", self.CABLE, "mtu", 96)

    def hosts(self, ranks):
        """As --hosts takes them."""
        return ",".join(f"{machine.name}:{ranks}" for machine in self.all)

    def options(self, ranks, agent=None):
        """By which tutti, on the first machine, has ranks on all of them."""
        return ["--hosts", self.hosts(ranks), "--agent", str(agent or self.agent), "--interface", self.CABLE]

    def left(self, within=LIMIT):
        """What still runs on them after a while, in words."""
        end = time.monotonic() + within
        while True:
            found = [f"process {pid} on {machine.name}: {command_of(pid)}" for machine in self.all for pid in machine.processes()
                     if pid not in self.residents]
            if not found or time.monotonic() > end:
                return found
            time.sleep(0.05)

    def remove(self):
        for machine in [*self.all, *filter(None, [self.switch])]:
            machine.remove()
        self._folder.cleanup()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("--machines", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--help", action="store_true")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    if asked.help:
        print(__doc__, end="")
        return 0
    if not 2 <= asked.machines <= 250 or asked.ranks < 1 or len(asked.words) < 2:
        parser.error(f"--machines {asked.machines} is 2 to 250, --ranks {asked.ranks} at least 1, then a program and its command")
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))  # KeyboardInterrupt, too
    try:
        with Machines(asked.machines) as machines:
            command = machines.all[0].enter(*asked.words, *machines.options(asked.ranks))
            code = subprocess.run(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL, check=False).returncode
            left = machines.left()
            for line in left:
                print(f"left behind: {line}", flush=True)
            return code or int(bool(left))
    except unittest.SkipTest as reason:
        print(reason)
        return 3


if __name__ == "__main__":
    sys.exit(main())
