# SPDX-License-Identifier: Apache-2.0
"""Pieces of a night. A command of suites/nightly/run is a list of words, some of which are cuts: `Ranks("1:33,64")`.

A cut is a word that a share of the night has a piece of. All pieces together are the whole, and no two have anything in
common. deal() says which share has which pieces; it reads nothing but the parts, so that shares that are run on
different days or machines still make one night.
"""
import dataclasses

MOST_SHARES = 64
LEAST_LIMIT = 30  # min, to which limits of whole parts fall as shares grow many
STARTS = 10  # min: what a piece may take beside its part of the whole's limit, to build or to start
GUESS = 0.1  # of its limit: what a part takes for which no log has a time


class BadShare(ValueError):
    """A text that is no share; its message names the nearest one."""


@dataclasses.dataclass(frozen=True)
class Share:
    """Piece `number`, from 1, of `of`."""

    number: int
    of: int

    @classmethod
    def parse(cls, text):
        """Errors: BadShare."""
        words = text.split("/")
        known = [int(word) if word.isascii() and word.isdecimal() and len(word) < 10 else None for word in words]
        number, of = (known + [None])[:2]
        if len(words) == 2 and number is not None and of is not None and 1 <= number <= of <= MOST_SHARES:
            return cls(number, of)
        of = min(max(16 if of is None else of, 1), MOST_SHARES)
        number = min(max(1 if number is None else number, 1), of)
        shown = text if len(text) <= 40 else text[:40] + "..."
        raise BadShare(f"'{shown}' is not K/N, share K of N: K is 1 to N, N is 1 to {MOST_SHARES}; did you mean '{number}/{of}'?")

    def __str__(self):
        return f"{self.number}/{self.of}"


@dataclasses.dataclass(frozen=True)
class Piece:
    """Words in the place of a cut, and how much of the whole's work they are, from 0 to 1."""

    words: list
    load: float


def ranges(first, number, of):
    """`number` numbers from `first` on, as `of` contiguous (first, number)."""
    ends = [number * i // of for i in range(of + 1)]
    return [(first + begin, end - begin) for begin, end in zip(ends, ends[1:])]


@dataclasses.dataclass(frozen=True)
class Ranks:
    """A list of numbers of ranks. A piece has every N-th of them, for large numbers cost more than small ones."""

    text: str
    is_even = False  # its pieces cost about the same

    def numbers(self):
        found = []
        for item in self.text.split(","):
            first, _, last = item.partition(":")
            found += range(int(first), int(last or first) + 1)
        return found

    def whole(self):
        return [self.text]

    def pieces(self, of):
        numbers = self.numbers()
        shares = [numbers[i::of] for i in range(of)]
        cost = sum(number**2 for number in numbers)  # as of messages between all
        return [Piece([",".join(map(str, share))], sum(number**2 for number in share) / cost) for share in shares]


@dataclasses.dataclass(frozen=True)
class Seeds:
    """`FIRST:LAST`. A piece is a contiguous range."""

    text: str
    is_even = True

    def whole(self):
        return [self.text]

    def pieces(self, of):
        first, last = map(int, self.text.split(":"))
        number = last - first + 1
        return [Piece([f"{begin}:{begin + some - 1}"], some / number) for begin, some in ranges(first, number, of)]


@dataclasses.dataclass(frozen=True)
class Trials:
    """A number of trials. With `seeded` a piece has --seed too, of its first trial: the whole starts at 1 or draws it."""

    number: int
    seeded: bool = False
    is_even = True

    def whole(self):
        return [str(self.number)]

    def pieces(self, of):
        return [Piece([str(some), *(["--seed", str(first)] if self.seeded else [])], some / self.number)
                for first, some in ranges(1, self.number, of)]


@dataclasses.dataclass(frozen=True)
class Effort:
    """A number of seconds or minutes that may all be used."""

    number: int
    is_even = True

    def whole(self):
        return [str(self.number)]

    def pieces(self, of):
        return [Piece([str(-(-self.number // of))], 1 / of)] * of


@dataclasses.dataclass(frozen=True)
class Tests:
    """The tests that ctest selects, of which a piece has every N-th."""

    is_even = True

    def whole(self):
        return []

    def pieces(self, of):
        return [Piece(["-I", f"{i},,{of}"], 1 / of) for i in range(1, of + 1)]


CUTS = (Ranks, Seeds, Trials, Effort, Tests)


def whole(command):
    return [word for one in command for word in (one.whole() if isinstance(one, CUTS) else [one])]


def pieces(command, of):
    """Of a command with cuts: `of` pieces, of which those without work have the load 0."""
    cuts = {i: one.pieces(of) for i, one in enumerate(command) if isinstance(one, CUTS)}
    found = []
    for number in range(of):
        words = [word for i, one in enumerate(command) for word in (cuts[i][number].words if i in cuts else [one])]
        found.append(Piece(words, sum(cut[number].load for cut in cuts.values()) / len(cuts)))
    return found


def seconds_of(part):
    return part.seconds or GUESS * 60 * part.minutes


@dataclasses.dataclass
class Task:
    """What a share has of a part: words, and their limit in minutes."""

    part: object
    words: list
    minutes: float


def deal(parts, of):
    """`of` lists of tasks, in the order of the parts, that take about as long as each other.

    The K-th piece of what is cut evenly is share K's. The rest goes, the longest first, to the share that has the least,
    and to each at most one piece of a part.
    """
    most = max(LEAST_LIMIT, max(part.minutes for part in parts) / of)
    takes = [0.0] * of
    shares = [{} for _ in range(of)]  # index of the part -> task
    rest = []  # seconds, index of the part, task

    def place(share, seconds, index, task):
        takes[share] += seconds
        shares[share][index] = task

    for index, part in enumerate(parts):
        cuts = [word for word in part.long if isinstance(word, CUTS)]
        if not cuts:
            rest.append((seconds_of(part), index, Task(part, part.long, min(part.minutes, most))))
            continue
        for number, piece in enumerate(pieces(part.long, of)):
            if piece.load == 0:
                continue
            seconds = seconds_of(part) * piece.load
            task = Task(part, piece.words, min(part.minutes * piece.load + STARTS, part.minutes, most))
            if all(cut.is_even for cut in cuts):
                place(number, seconds, index, task)
            else:
                rest.append((seconds, index, task))
    for seconds, index, task in sorted(rest, key=lambda one: (-one[0], one[1])):
        free = [share for share in range(of) if index not in shares[share]]
        place(min(free, key=lambda share: takes[share]), seconds, index, task)
    return [[share[index] for index in sorted(share)] for share in shares]
