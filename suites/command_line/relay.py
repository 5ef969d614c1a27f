# SPDX-License-Identifier: Apache-2.0
"""What stands between two ends of a connection on 127.0.0.1: a relay that hands on, slowly, not at all or with something
of its own in between, and the doors at which strangers call."""
import pathlib
import socket
import threading

import support

LISTENS = "0A"  # state in /proc/net/tcp
UP, DOWN = 0, 1  # from who has connected, and to it


def doors(pids):
    """(address, port) of every TCP socket of IPv4 at which one of the processes listens."""
    inodes = set()
    for pid in pids:
        inodes |= {target[len("socket:["):-1] for target in support.open_files_of(pid).values() if target.startswith("socket:[")}
    found = []
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENS and fields[9] in inodes:
            address, port = fields[1].split(":")
            found.append((socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)))
    return found


def call(door, limit=5):
    """A connection to it, or None where it is not open any more."""
    try:
        return socket.create_connection(door, limit)
    except OSError:
        return None


def said_by(one, limit):
    """What comes until the other end has closed the connection, and whether it has, within `limit` seconds."""
    heard = b""
    one.settimeout(limit)
    try:
        while piece := one.recv(4096):
            heard += piece
    except TimeoutError:
        return heard, False
    except OSError:
        pass  # it was reset
    return heard, True


class Relay:
    """Listens at `address`, and hands on between one who connects there and `target`, at most `at_once` bytes in a turn.
    `heard[direction]` has all that has come. `change(direction, at, piece)` gives what is handed on in place of the piece
    that begins at byte `at`."""

    def __init__(self, target, at_once=65536, change=None):
        self.target, self.at_once = target, at_once
        self.change = change or (lambda direction, at, piece: piece)
        self.heard = [bytearray(), bytearray()]
        self.is_stalled = [False, False]
        self._ends, self._threads = [], []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self._start(self._serve)

    def _start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)  # for who waits there
        self.hang_up()
        for thread in list(self._threads):
            thread.join(5)
        for one in [self._listener, *self._ends]:
            one.close()

    def hang_up(self):
        for end in self._ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is gone already

    def slip_in(self, direction, text):
        with self._lock:
            self._ends[1 - direction].sendall(text)

    def _serve(self):
        try:
            self._ends.append(self._listener.accept()[0])
            self._ends.append(socket.create_connection(self.target))
        except OSError:
            return  # nobody has come, or nobody is there
        for end in self._ends:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for direction in (UP, DOWN):
            self._start(self._hand_on, direction)

    def _hand_on(self, direction):
        source, sink = self._ends[direction], self._ends[1 - direction]
        try:
            while piece := source.recv(65536):
                at = len(self.heard[direction])
                self.heard[direction] += piece
                piece = self.change(direction, at, piece)
                if self.is_stalled[direction]:
                    continue
                with self._lock:
                    for at in range(0, len(piece), self.at_once):
                        sink.sendall(piece[at:at + self.at_once])
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.hang_up()
