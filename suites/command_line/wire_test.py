# SPDX-License-Identifier: Apache-2.0
"""Somebody sits on the wire between the machines of a job: what can be read there, and what comes of changing it."""
import contextlib
import itertools
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import host_trials
import joined_test
import namespaces
import relay
import support

ENVIRONMENT, CRASH = 3, 5
CHANGED = r"bytes of the connection to 127\.0\.0\.1:\d+ were changed on the way"
GREETING = {relay.UP: 88, relay.DOWN: 40 + 40}  # bytes
HEAD = 4 + 16  # of a sealed message
SHORT = ["run", "all_reduce", "barrier", "--sizes", "8,64K", "--budget", "400ms", "--timeout", "20s"]
# Writes what comes over an interface to a file: the length of a packet, and the packet. It ends with its stdin.
LISTEN = """
import select, socket, struct, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind((sys.argv[1], 0))
wire.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
print("ready", flush=True)
with open(sys.argv[2], "wb") as file:
    while True:
        ready = select.select([wire, sys.stdin], [], [])[0]
        if wire in ready:
            packet = wire.recv(1 << 18)
            file.write(struct.pack("=I", len(packet)) + packet)
        elif sys.stdin in ready:
            break
"""


def streams_in(path):
    """What was said over each TCP connection of IPv4, by the two ends, as the packets came."""
    streams, data, at = {}, path.read_bytes(), 0
    while at < len(data):
        size, = struct.unpack_from("=I", data, at)
        packet, at = data[at + 4:at + 4 + size], at + 4 + size
        if packet[12:14] != b"\x08\x00" or packet[23] != socket.IPPROTO_TCP:
            continue
        tcp = 14 + 4 * (packet[14] & 15)
        text = packet[tcp + 4 * (packet[tcp + 12] >> 4):14 + struct.unpack_from(">H", packet, 16)[0]]
        streams.setdefault(packet[26:34] + packet[tcp:tcp + 4], bytearray()).extend(text)
    return streams


class OnTheWire(unittest.TestCase):
    """Between the launcher and machine b, by a relay."""

    @contextlib.contextmanager
    def between(self, words, change=None):
        with host_trials.Job({"a": 1, "b": 1}, words, host_trials.TOLD) as run:
            invitation = run.said_to("b")
            with relay.Relay(host_trials.door_of(invitation), change=change) as wire:
                run.tell("b", {**invitation, "address": wire.address})
                run.tell("a", run.said_to("a"))
                yield run, wire, invitation

    def test_the_key_of_the_job_is_not_on_it(self):
        with self.between(SHORT) as (run, wire, invitation):
            result = run.wait(60)
            self.assertEqual(result.code, 0, result)
            self.assertIn(b'"task":"measure"', wire.heard[relay.DOWN], "it is the payload that is listened to")
            keys = [text for text in invitation.values() if len(str(text)) == 64]
            self.assertEqual(len(keys), 1, invitation)
            for said in wire.heard:
                self.assertNotIn(keys[0].encode(), said)
                self.assertNotIn(bytes.fromhex(keys[0]), said)

    def test_a_secret_in_the_environment_goes_to_no_other_process(self):
        secret = "7a" * 32
        with support.Run(*host_trials.ENDLESS, "--backends", "tutti", "--ranks", 2, environment={"TUTTI_SECRET": secret}) as run:
            for pid in run.wait_for_ranks(2).values():
                self.assertNotIn("TUTTI_SECRET", support.environment_of(pid))

    def test_what_is_changed_on_it_ends_the_job_by_name_and_is_not_obeyed(self):
        for way, place in itertools.product([relay.UP, relay.DOWN], [0, 5, HEAD + 40]):
            with self.subTest(way=way, place=place):
                def change(direction, at, piece, way=way, place=GREETING[way] + place):
                    if direction == way and at <= place < at + len(piece):
                        piece = piece[:place - at] + bytes([piece[place - at] ^ 1]) + piece[place - at + 1:]
                    return piece
                with self.between(SHORT, change) as (run, _, _):
                    result = run.wait(15)
                    self.assertIn(result.code, (ENVIRONMENT, CRASH), result)
                    self.assertRegex(result.err, r"(?m)^tutti: host b \(rank 1\) is lost: " + CHANGED, result)
                    self.assertEqual(host_trials.left_in(run, 5), [])

    def test_what_was_put_on_it_is_not_taken_for_a_message(self):
        with self.between([*host_trials.ENDLESS, "--timeout", "4s"]) as (run, wire, _):
            run.wait_for_ranks(2)
            run.wait_for_rows(1)
            # A message to end, as it would be without seals.
            wire.slip_in(relay.DOWN, struct.pack("=III", 0x74757401, 3, 0) + b"end" + bytes(40))
            result = run.wait(15)
            self.assertIn(result.code, (ENVIRONMENT, CRASH), result)
            self.assertRegex(result.err, CHANGED)
            self.assertGreaterEqual(len(run.rows()[1]), 1, "rows are kept")


class OfOtherJobs(joined_test.Joined):
    """Processes with the same secret, at the same address."""

    def test_one_of_another_job_is_turned_away_and_the_job_goes_on(self):
        port = str(joined_test.free_port())
        mine = {"TUTTI_PORT": port}
        words = ["run", "barrier", "--budget", "300ms", "--timeout", "20s"]
        first, = self.start([1, 1], *words, own=lambda rank: mine, only=[0])
        for own, says in [({"RANK": "2", "WORLD_SIZE": "3"}, "it is of 2 processes, and this is process 2 of 3"),
                          ({"RANK": "1", "WORLD_SIZE": "3"}, "it is of 2 processes, and this is process 1 of 3"),
                          ({"TUTTI_LAUNCH": "yesterday"}, "its starter has given it another id than this process")]:
            stray, = self.start([1, 1], *words, own=lambda rank, own=own: {**mine, **own}, only=[1])
            result = stray.wait(20)
            self.assertEqual(result.code, ENVIRONMENT, result)
            self.assertIn(f"another job meets at 127.0.0.1:{port}: {says}", result.err)
        second, = self.start([1, 1], *words, own=lambda rank: mine, only=[1])
        results = self.ends([first, second])
        self.assertEqual([result.code for result in results], [0, 0], results)


class OnTheCable(joined_test.Joined):
    """All that goes between two machines."""

    @contextlib.contextmanager
    def listening(self):
        with namespaces.Machines(2) as self.machines, tempfile.NamedTemporaryFile() as heard:
            command = self.machines.all[1].enter(sys.executable, "-c", LISTEN, self.machines.CABLE, heard.name)
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ear:
                self.assertEqual(ear.stdout.readline(), "ready\n")
                texts = []
                yield texts
                time.sleep(0.1)
                ear.stdin.close()
                ear.wait(support.patience(10))
            texts.extend(streams_in(joined_test.pathlib.Path(heard.name)).values())

    def check(self, texts, contains):
        self.assertTrue(any(contains in text for text in texts), "it is the job that was listened to")
        for text in texts:
            self.assertNotIn(joined_test.SECRET.encode(), text)
            self.assertNotIn(bytes.fromhex(joined_test.SECRET), text)

    def test_the_lasting_secret_is_never_there(self):
        perf = support.PROGRAM.parent / "all_reduce_perf"
        for program, words, contains in [(support.PROGRAM, SHORT, b'"task":"measure"'), (perf, ["-b", "8", "-e", "8", "-n", "2"], b"kernel")]:
            with self.subTest(program.name):
                with self.listening() as texts:
                    first = self.machines.all[0].address
                    results = self.ends(self.start([1, 1], *words, program=program, own=lambda rank: {"MASTER_ADDR": first},
                                                   enter=lambda rank, command: self.machines.all[rank].enter(*command)))
                    self.assertEqual([result.code for result in results], [0, 0], results)
                self.check(texts, contains)


if __name__ == "__main__":
    unittest.main()
