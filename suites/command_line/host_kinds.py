# SPDX-License-Identifier: Apache-2.0
"""What befalls a job on several machines in a trial (host_trials.py): a class for each kind."""
import os
import re
import signal
import socket
import time

import namespaces
import relay
import support
import trials
from host_trials import (FILES, LAUNCHER_SILENCE, LEFT_WITHIN, SHORT, SILENCE, TOLD, UNREACHABLE, Job,
                         JobApart, Trial, door_of, left_in)

HELLO, CLAIM, ANSWER = 40, 88, 40  # bytes of a greeting: server, client, server
HALF_OPEN = 1000


class Killed(Trial):
    """A machine: its process and all its ranks."""

    def problems(self):
        with Job(self.hosts(), self.endless(), self.agent) as run:
            def happen(ranks):
                for pid in run.processes_of("b", ranks):
                    os.kill(pid, signal.SIGKILL)
            return self.ends(run, happen, run.name_pattern("b"))


class Stopped(Trial):
    limit = SILENCE + 6

    def problems(self):
        with Job(self.hosts(), self.endless(), self.agent) as run:
            def happen(ranks):
                for pid in run.processes_of("b", ranks):
                    os.kill(pid, signal.SIGSTOP)
            return self.ends(run, happen, run.name_pattern("b"))


class Cut(Trial):
    """The cable, both ways. A machine that is cut off ends its ranks when it has heard nothing for long."""

    needs_cable = True
    limit = SILENCE + 8

    def problems(self):
        with namespaces.Machines(2) as machines, JobApart(machines, self.ranks, self.endless()) as run:
            far = run.name_pattern(machines.all[1].name)
            return self.ends(run, lambda ranks: self.cut(machines), far, LAUNCHER_SILENCE + 5) + machines.left()

    def cut(self, machines):
        machines.cut()


class CutOneWay(Cut):
    limit = LAUNCHER_SILENCE + 8

    def __init__(self, number, generator):
        super().__init__(number, generator)
        self.one = self.generator.choice([0, 1])

    def detail(self):
        return f", what machine {self.one} sends"

    def cut(self, machines):
        machines.cut_from(self.one)


class Narrow(Trial):
    """Sockets and packets that take little at a time."""

    needs_cable = True
    limit = 40

    def problems(self):
        with namespaces.Machines(2) as machines:
            machines.narrow()
            with JobApart(machines, self.ranks, SHORT) as run:
                return self.goes_on(run) + machines.left()


class Between(Trial):
    """Somebody is between the launcher and machine b."""

    at_once = 65536

    def problems(self):
        with Job(self.hosts(), self.endless(), TOLD) as run, self.relay_for(run, "b") as between:
            run.tell("a", run.said_to("a"))
            return self.ends(run, lambda ranks: self.happen(between), self.blame(run))

    def relay_for(self, run, name):
        invitation = run.said_to(name)
        between = relay.Relay(door_of(invitation), self.at_once)
        run.tell(name, {**invitation, "address": between.address})
        return between

    def blame(self, run):
        return run.name_pattern("b")


class HungUp(Between):
    def happen(self, between):
        between.hang_up()


class Unheard(Between):
    """What one of the two says does not come to the other one any more, or both."""

    limit = LAUNCHER_SILENCE + 6

    def __init__(self, number, generator):
        super().__init__(number, generator)
        self.ways = self.generator.choice([[relay.UP], [relay.UP], [relay.UP, relay.DOWN], [relay.DOWN]])

    def detail(self):
        return f", ways {self.ways}"

    def happen(self, between):
        for way in self.ways:
            between.is_stalled[way] = True


class Rubbish(Between):
    """Something else than a message comes over a connection that is made."""

    limit = LAUNCHER_SILENCE + 6

    def __init__(self, number, generator):
        super().__init__(number, generator)
        self.way = self.generator.choice([relay.UP, relay.DOWN])
        self.text = self.generator.randbytes(self.generator.choice([1, 12, 500, 5000]))

    def detail(self):
        return f", {len(self.text)} bytes, way {self.way}"

    def happen(self, between):
        between.slip_in(self.way, self.text)


class Slow(Between):
    """A byte at a time, between the launcher and one machine."""

    at_once = 1
    limit = 20

    def __init__(self, number, generator):
        super().__init__(number, generator)
        self.slow = self.generator.choice(["a", "b"])

    def problems(self):
        other = {"a": "b", "b": "a"}[self.slow]
        with Job(self.hosts(), SHORT, TOLD) as run, self.relay_for(run, self.slow):
            run.tell(other, run.said_to(other))
            return self.goes_on(run)


class Strangers(Trial):
    """Somebody calls at the launcher's door while it waits for machine b, and at those of the ranks. The job goes on."""

    limit = 25

    def problems(self):
        with Job(self.hosts(), SHORT, TOLD) as run:
            invitations = {name: run.said_to(name) for name in run.hosts}
            run.tell("a", invitations["a"])
            time.sleep(self.moment / 4)
            found = self.call([door_of(invitations["b"])])
            run.tell("b", invitations["b"])
            run.wait_for_ranks(sum(run.hosts.values()))
            time.sleep(self.moment / 4)
            found += self.call(relay.doors(run.living()))
            found += self.goes_on(run)
            self.leave()
            return found

    def leave(self):
        pass


class HalfOpen(Strangers):
    """A thousand who say nothing, or little."""

    def __init__(self, number, generator):
        super().__init__(number, generator)
        self.text = self.generator.randbytes(self.generator.choice([0, 1, CLAIM - 1]))
        self.callers = []

    def detail(self):
        return f", who say {len(self.text)} bytes"

    def call(self, doors):
        for number in range(HALF_OPEN):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(doors[number % len(doors)])
            self.callers.append(one)
        for one in self.callers[-HALF_OPEN:] if self.text else []:
            try:
                one.send(self.text)
            except OSError:
                pass  # it is not connected yet, or not any more
        return []

    def leave(self):
        for one in self.callers:
            one.close()


class Knocks(Strangers):
    """Who say something else than who is of the job: words, rubbish, or what the door has said to them."""

    def __init__(self, number, generator):
        super().__init__(number, generator)
        self.texts = [b"GET / HTTP/1.0\r\n\r\n" * 8, self.generator.randbytes(CLAIM), self.generator.randbytes(5000), None]

    def call(self, doors):
        found = []
        for door in doors:
            for text in self.texts:
                if (one := relay.call(door)) is None:
                    continue
                with one:
                    try:
                        heard = one.recv(HELLO) if text is None else b""
                        one.sendall(heard * 2 if text is None else text)
                    except OSError:
                        continue  # the door is closed
                    answer, _ = relay.said_by(one, 0.2)
                    if any((heard + answer)[HELLO:]):
                        found.append(f"{door} answers {len(heard + answer)} bytes to {(text or heard)[:20]!r}")
        return found


class Replay(Strangers):
    """Who say again what machine b has said. The launcher waits for machine c."""

    def hosts(self):
        return {"a": 1, "b": 1, "c": 1}

    def problems(self):
        with Job(self.hosts(), SHORT, TOLD) as run:
            invitations = {name: run.said_to(name) for name in run.hosts}
            run.tell("a", invitations["a"])
            with relay.Relay(door_of(invitations["b"])) as between:
                run.tell("b", {**invitations["b"], "address": between.address})
                end = time.monotonic() + support.patience(20)
                while len(between.heard[relay.DOWN]) < HELLO + ANSWER and time.monotonic() < end:
                    time.sleep(0.01)
                self.said = bytes(between.heard[relay.UP][:CLAIM])
                found = self.call([door_of(invitations["c"])])
                run.tell("c", invitations["c"])
                run.wait_for_ranks(3)
                found += self.call(relay.doors(run.living()))
                return found + self.goes_on(run)

    def call(self, doors):
        found = []
        for door in doors:
            if (one := relay.call(door)) is None:
                continue
            with one:
                one.sendall(self.said)
                answer, _ = relay.said_by(one, 0.2)
                if len(self.said) != CLAIM or any(answer[HELLO:]):  # zeros say that the key is another one
                    found.append(f"{door} answers {len(answer)} bytes to the {len(self.said)} of machine b")
        return found


class Reflection(Trial):
    """Who is in the launcher's place gives machine b its own seal back."""

    limit = 10

    def problems(self):
        with Job(self.hosts(), SHORT, TOLD) as run, socket.create_server(("127.0.0.1", 0)) as door:
            door.settimeout(20)
            run.tell("a", run.said_to("a"))
            invitation = run.said_to("b")
            with relay.call(door_of(invitation)) as true_door:
                hello = true_door.recv(HELLO)
            run.tell("b", {**invitation, "address": "{}:{}".format(*door.getsockname())})
            with door.accept()[0] as caller:
                caller.sendall(hello)
                claim = b""
                while len(claim) < CLAIM and (piece := caller.recv(CLAIM)):
                    claim += piece
                caller.sendall((1).to_bytes(8, "little") + claim[-32:])
                found = self.is_refused(run, r"host b \(ranks? .*\) is lost: `\S+ b` exited with code \d+ before it had come")
            if "did not prove that it is of this job" not in run.texts():
                found.append(f"the machine does not say why\n{run.texts()}")
            return found


class WrongSecret(Trial):
    limit = 10

    def problems(self):
        with Job(self.hosts(), SHORT, TOLD) as run:
            run.tell("a", run.said_to("a"))
            invitation = run.said_to("b")
            place = self.generator.randrange(64)
            digits = list(invitation["key"])
            digits[place] = "0" if digits[place] != "0" else "1"
            run.tell("b", {**invitation, "key": "".join(digits)})
            found = self.is_refused(run, r"host b \(ranks? .*\) is lost: `\S+ b` exited with code \d+ before it had come")
            if "did not prove that it is of this job" not in run.texts():
                found.append(f"the machine does not say why\n{run.texts()}")
            return found


class SecondJob(Trial):
    """Two jobs, of which somebody has started each rank, are to meet at one port. The first one's last rank comes late."""

    limit = 25
    taken = r"another job (?:needs another port|may be there: name another port)"

    def problems(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.door = free.getsockname()
        with self.start(0, "5e", "20s") as first:
            end = time.monotonic() + support.patience(20)
            while self.door not in relay.doors(first.living()) and time.monotonic() < end:
                time.sleep(0.01)
            with self.start(0, "7a", "2s") as other, self.start(1, "7a", "2s") as its_second:
                found = [*self.check(other, UNREACHABLE, self.taken), *self.check(its_second, UNREACHABLE)]
            with self.start(1, "5e", "20s", first) as second:
                found += [*self.check(first, 0), *self.check(second, 0)]
                found += trials.check_files(first)
        return found

    def start(self, rank, secret, timeout, first=None):
        own = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": self.door[0],
               "TUTTI_PORT": self.door[1], "TUTTI_SECRET": secret * 32}
        files = [word.replace("{folder}", str(first.path)) if first else word for word in FILES]
        return support.Run(*SHORT, "--timeout", timeout, *files, environment={name: str(value) for name, value in own.items()})

    def check(self, run, code, says=""):
        result, self.seconds = trials.end_of(run, self.limit)
        if result is None:
            return [f"still there after {self.seconds:.2f} s\n{run.texts()}"]
        is_right = result.code == code and re.search(says, result.err)
        return left_in(run, LEFT_WITHIN) + ([] if is_right else [f"not exit code {code} and '{says}': {result}"])


KINDS = [Killed, Stopped, Cut, CutOneWay, Narrow, HungUp, Unheard, Rubbish, Slow, HalfOpen, Knocks, Replay, Reflection,
         WrongSecret, SecondJob]
