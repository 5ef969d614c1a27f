# SPDX-License-Identifier: Apache-2.0
"""usage: stranger.py hold NAME... | race | flood

Another user's process at the abstract sockets of jobs. strangers_test.py hands this text to Python's -c, as another user
need not be able to read it here.

  hold NAME...  holds these names, and answers each connection as a launcher would, with orders to load a transport of the
                folder that EVIL names in the environment
  race          takes each name that a job on this machine may want, as soon as a similar one appears, and answers so
  flood         connects to each name of a job on this machine many times, and stays

It prints `ready` once it has begun, and for each connection at a name that it holds `caller PID`.
"""
import json
import os
import re
import selectors
import socket
import struct
import sys

MAGIC = 0x74757401
PREFIX = "tutti-"
MOST = 64  # connections to one name


def memory(data, size):
    file = os.memfd_create("orders")
    os.ftruncate(file, size)
    os.pwrite(file, data, 0)
    return file


def orders(ranks):
    payload = json.dumps({"task": "check", "ranks": ranks, "ranks_as": "processes", "cells": {"ids": [], "counts": {}},
                          "transport": "evil", "transport_directories": [os.environ["EVIL"]]}).encode()
    return [memory(payload, len(payload)), memory(b"", 4 << 20)]


def frame(kind, text):
    return struct.pack("III", MAGIC, len(kind), len(text)) + kind + text


class Holder:
    def __init__(self, ranks=2):
        self.ranks, self.selector, self.names, self.kept = ranks, selectors.DefaultSelector(), set(), []

    def take(self, name):
        if name in self.names:
            return
        one = socket.socket(socket.AF_UNIX)
        try:
            one.bind("\0" + name)
        except OSError:
            return
        one.listen(64)
        self.names.add(name)
        self.selector.register(one, selectors.EVENT_READ)

    def serve(self, most):
        for key, _ in self.selector.select(most):
            caller, _ = key.fileobj.accept()
            pid, _, _ = struct.unpack("iII", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            print("caller", pid, flush=True)
            try:
                caller.settimeout(0.05)
                try:
                    caller.recv(4096)
                except TimeoutError:
                    pass
                # A name to go to, should it want one, and a job.
                caller.sendall(frame(b"control", next(iter(self.names)).encode()))
            except OSError:
                pass
            try:
                socket.send_fds(caller, [frame(b"welcome", f"{self.ranks} {self.ranks} 0 0 1".encode())], orders(self.ranks))
            except OSError:
                pass
            self.kept.append(caller)


def names_of_jobs():
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
        return {match[1] for match in (re.search(r" @(\S+)$", line) for line in table) if match and match[1].startswith(PREFIX)}


def hold(names):
    holder = Holder()
    for name in names:
        holder.take(name)
    print("ready", flush=True)
    while True:
        holder.serve(None)


def race():
    holder, seen = Holder(ranks=3), set()
    print("ready", flush=True)
    while True:
        for name in names_of_jobs() - seen - holder.names:
            seen.add(name)
            for other in [name.removesuffix("-alive"), name + "-alive", name + "-control", name + "-first0", name.rsplit("-", 1)[0], name]:
                holder.take(other)
        holder.serve(0)


def flood():
    open_now = {}
    print("ready", flush=True)
    while True:
        for name in names_of_jobs():
            kept = open_now.setdefault(name, [])
            while len(kept) < MOST:
                one = socket.socket(socket.AF_UNIX)
                one.setblocking(False)
                try:
                    one.connect("\0" + name)
                except OSError:
                    break
                kept.append(one)


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    {"hold": lambda: hold(words), "race": race, "flood": flood}[what]()
