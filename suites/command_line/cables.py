# SPDX-License-Identifier: Apache-2.0
"""Two machines with a cable between them: network namespaces of this one."""
import os
import shutil
import subprocess
import uuid

NAMED = "/run/netns"  # where `ip` keeps those that have a name


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], capture_output=True, text=True, check=True, timeout=10).stdout


class Cable:
    """`names` of the two machines, and what befalls the cable. Raises Unavailable where none can be made."""

    class Unavailable(Exception):
        pass

    def __init__(self):
        tag = uuid.uuid4().hex[:6]
        self.names = [f"tt{tag}{i}" for i in range(2)]
        self.addresses = [f"10.77.{int(tag[:2], 16)}.{i + 1}" for i in range(2)]
        if shutil.which("ip") is None or shutil.which("unshare") is None:
            raise Cable.Unavailable("there is no `ip` or no `unshare`")
        try:
            for name in self.names:
                ip("netns", "add", name)
            ends = [f"v{tag}{end}" for end in "ab"]
            ip("link", "add", ends[0], "netns", self.names[0], "type", "veth", "peer", "name", ends[1], "netns", self.names[1])
            for name, end, address in zip(self.names, ends, self.addresses):
                ip("-n", name, "link", "set", end, "name", "cable")
                ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
                for link in ["cable", "lo"]:
                    ip("-n", name, "link", "set", link, "up")
        except (OSError, subprocess.SubprocessError) as failure:
            self.remove()
            raise Cable.Unavailable(f"no network namespace can be made: {getattr(failure, 'stderr', '') or failure}") from failure

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def left(self):
        """After `remove`, in words."""
        return [f"namespace {name}" for name in self.names if os.path.exists(f"{NAMED}/{name}")]

    def cut(self):
        ip("-n", self.names[1], "link", "set", "cable", "down")

    def cut_from(self, one):
        """What machine `one` sends does not arrive any more: it believes the other to be somebody who is not there."""
        ip("-n", self.names[one], "neighbour", "replace", self.addresses[1 - one], "lladdr", "02:00:00:00:00:01", "dev", "cable",
           "nud", "permanent")

    def narrow(self):
        """Sockets take little at a time from here on, and packets are the least that there are."""
        for name in self.names:
            for setting in ["tcp_wmem=4096 4096 4096", "tcp_rmem=4096 4096 4096"]:
                words = ["netns", "exec", name, "sysctl", "-qw", f"net.ipv4.{setting}"]
                ip(*words)
            ip("-n", name, "link", "set", "cable", "mtu", 96)
