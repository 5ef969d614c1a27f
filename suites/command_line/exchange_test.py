# SPDX-License-Identifier: Apache-2.0
"""Schedules of other programs: `tutti prove --import`, `tutti draw FILE.xml` and `tutti export`."""
import collections
import csv
import io
import json
import pathlib
import re
import resource
import tempfile
import time
import unittest

import msccl_files as files
import support


class Exchange(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, text, name="one.xml"):
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    def prove(self, text, *arguments):
        return support.run("prove", "--import", self.file(text), *arguments)

    def proved(self, text, *names):
        result = self.prove(text)
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertRegex(result.out, r"(?m)^# prove: 1 file, [1-9]\d* sets of plans proved, 0 refuted; ")
        for name in names:
            self.assertIn(name, result.out)

    def refuted(self, text, *names, arguments=()):
        result = self.prove(text, *arguments)
        self.assertEqual((result.code, result.err), (1, ""), result)
        self.assertTrue(result.out.startswith(f"refuted: {self.folder}/one.xml: "), result.out)
        for name in names:
            self.assertIn(name, result.out)

    def refused(self, text, *names):
        result = self.prove(text)
        self.assertEqual((result.code, result.out), (2, ""), result)
        for name in ["--import", "one.xml", *names]:
            self.assertIn(name, result.err)
        return result


MACHINE = support.LOGGP.replace("copy = 0", "copy = [[0, 0], [1000000, 20000]]")


def changed(text, old, new, which=0):
    """The text with one of the places where `old` stands changed."""
    places = [match.start() for match in re.finditer(re.escape(old), text)]
    at = places[which]
    return text[:at] + new + text[at + len(old):]


def goal_ns(text, latency, overhead, byte):
    """When the last rank of a GOAL file ends, whose lines each require the one before."""
    programs = [re.findall(r"(?m)^l\d+: (send|recv|calc) (\d+)(?:b (?:to|from) (\d+) tag 0)?$", one)
                for one in text.split("\nrank ")[1:]]
    ranks = range(len(programs))
    clock, out, into = ([0.0 for _ in ranks] for _ in range(3))
    at = [0 for _ in ranks]
    arrived = collections.defaultdict(collections.deque)
    moved = True
    while moved:
        moved = False
        for me in ranks:
            while at[me] < len(programs[me]):
                kind, size, peer = programs[me][at[me]]
                wire = byte * int(size)
                if kind == "calc":
                    clock[me] += int(size)
                elif kind == "send":
                    begin = max(clock[me], out[me])
                    out[me], clock[me] = begin + wire, begin + overhead
                    arrived[me, int(peer)].append(clock[me] + latency + wire)
                elif arrived[int(peer), me]:
                    begin = max(arrived[int(peer), me].popleft() - wire, into[me])
                    into[me] = begin + wire
                    clock[me] = max(clock[me], into[me]) + overhead
                else:
                    break
                at[me] += 1
                moved = True
    assert all(done == len(program) for done, program in zip(at, programs)), "a rank waits for ever"
    return max(clock)


class Proofs(Exchange):
    def test_right_files_are_proved(self):
        self.proved(files.ring(4), "all_reduce 'ring' on 4 gpus, in place: 28 steps in 4 thread blocks, 4 chunks per block",
                    "no deadlock with 2 slots", "same bits yes")
        self.proved(files.ring(7))
        self.proved(files.pairs(4), "no deadlock with 1 slot", "same bits no")  # each begins with its own
        self.proved(files.two_shot(4), "same bits yes")
        self.proved(files.gather(3), "all_gather 'gather'", "in place")
        self.proved(files.gather(3, in_place=0), "out of place")

    def test_a_wrong_chunk_is_named_where_it_is_added(self):
        text = changed(files.ring(4), 'type="rrs" srcbuf="i" srcoff="3"', 'type="rrs" srcbuf="i" srcoff="2"')
        self.refuted(text, "gpu 0 tb 0 step 1 (rrs, line 5) adds output chunk 2", "to what arrives, which is of chunk 3")
        text = changed(files.ring(4), 'dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>\n    </tb>',
                       'dstoff="2" cnt="1" depid="-1" deps="-1" hasdep="0"/>\n    </tb>')
        self.refuted(text, "tb 0 step 6 (r, line ", "stores chunk ", "in output chunk 2")

    def test_a_missing_send_leaves_a_receive_that_waits(self):
        self.refuted(changed(files.ring(4), 'type="rcs"', 'type="r"'),
                     "deadlock: gpu 1 tb 0 step 6 (r, line 21) can never be done: no message arrives from gpu 0 on channel 0")

    def test_a_forgotten_dependency_is_a_race(self):
        self.refuted(files.pairs(4, forgets=(2, 1)),
                     "race: gpu 2 tb 0 step 3 (re, line ", "gpu 2 tb 1 step 0 (s, line ", "nothing orders the two")

    def test_a_dependency_on_a_step_that_announces_nothing(self):
        self.refuted(changed(files.pairs(3), 'hasdep="1"', 'hasdep="0"', which=1), "gpu 0 tb 0 step 2 (nop)",
                     "waits for tb 1 step 1, which announces nothing")

    def test_too_few_slots_are_a_deadlock(self):
        self.proved(files.crossed(), "no deadlock with 2 slots")
        self.refuted(files.crossed(), "deadlock with 1 slot: gpu 0 tb 0 step 1 (s, line 5) can never be done",
                     "the 1 slot to gpu 1 on channel 0 is full", "2 slots would do", arguments=["--slots", "1"])

    def test_blocks_that_wait_for_each_other(self):
        text = changed(files.ring(3), 'depid="-1" deps="-1"', 'depid="0" deps="3"').replace('hasdep="0"', 'hasdep="1"')
        self.refuted(text, "deadlock: gpu 0 tb 0 step 0 (s, line 4) can never be done: gpu 0 tb 0 step 3", "never comes")

    def test_lost_and_doubled_inputs(self):
        self.refuted(changed(files.ring(4), 'type="rrcs"', 'type="rcs"'), "lacks the input of gpu ", "writes it last")
        self.refuted(changed(files.pairs(3), 'type="re" srcbuf="s" srcoff="2"', 'type="re" srcbuf="s" srcoff="1"'),
                     "adds up the input of gpu 1 twice")
        self.refuted(changed(files.pairs(3), 'type="re" srcbuf="s" srcoff="2"', 'type="re" srcbuf="s" srcoff="0"'),
                     "reads scratch chunk 0, which nothing has written")
        self.refuted(changed(files.ring(4), 'inplace="1"', 'inplace="0"'), "writes input chunk", "inplace='0'")


class Reading(Exchange):
    def test_numbers_out_of_range(self):
        ring = files.ring(4)
        for old, new, names in [
                ('srcoff="0"', 'srcoff="-1"', ["line 4", "gpu 0 tb 0 step 0 (s)", "'-1'", "from 0 to 3", "'0'"]),
                ('srcoff="0"', 'srcoff="4"', ["'4'", "from 0 to 3", "did you mean '3'"]),
                ('srcoff="0"', 'srcoff="99999999999999999999"', ["from 0 to 3", "did you mean '3'"]),
                ('cnt="1"', 'cnt="5"', ["cnt='5'", "input of gpu 0 has 4 chunks"]),
                ('ngpus="4"', 'ngpus="1000000000"', ["line 1", "from 2 to 128"]),
                ('nchunksperloop="4"', 'nchunksperloop="0"', ["from 1 to 4096"]),
                ('send="1"', 'send="4"', ["line 3", "from -1 to 3"]),
                ('send="1"', 'send="0"', ["its own gpu"]),
                ('s="1" type', 's="2" type', ["step 2 where step 1 is next"]),
                ('type="rrs"', 'type="rsr"', ["'rsr'", "did you mean 'rrs'"]),
                ('coll="allreduce"', 'coll="allreduze"', ["did you mean 'all_reduce'"]),
                ('depid="-1"', 'depid="7"', ["depid='7'", "gpu 0 has no such tb"]),
                ('srcbuf="i"', 'srcbuf="x"', ["srcbuf='x'", "i, o or s"]),
                ('srcbuf="i"', '', ["lacks the attribute 'srcbuf'"]),
                ('<gpu id="1"', '<gpu id="0"', ["gpu 0 is there twice"]),
                ('<tb', '<bt', ["<bt> stands where <tb> is expected"])]:
            with self.subTest(new=new):
                self.refused(changed(ring, old, new), *names)

    def test_hostile_files(self):
        ring = files.ring(4)
        laughs = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(12))
        for text, names in [
                (f'<!DOCTYPE algo [<!ENTITY a0 "ha">{laughs}]>\n' + ring.replace('"ring"', '"&a12;"'), ["document type"]),
                ('<!DOCTYPE algo SYSTEM "file:///etc/passwd">' + ring, ["document type"]),
                (ring.replace("/>", "><step>", 1), ["<step> within a <step>"]),
                ("<algo>" * 100_000, ["line 1"]),
                (ring[:500], ["it is no XML"]),
                (ring.replace("ring", "ri\0ng"), ["its byte 15 is 0"]),
                (b"\xff\xfe<\0a\0", ["UTF-16"]),
                (ring.encode().replace(b"ring", b"\xff\xff"), ["it is no XML"]),
                (ring.replace('s="0" type="s"', 's="0" type="s" s="0"'), ["duplicate attribute"]),
                (ring.replace("</gpu>", "words</gpu>", 1), ["the text 'words"]),
                ("", ["it is no XML"])]:
            with self.subTest(names=names):
                began = time.monotonic()
                result = self.refused(text, *names)
                self.assertLess(time.monotonic() - began, support.patience(5))
                self.assertNotRegex(result.err, r"[\x00-\x09\x0b-\x1f]")

    def test_huge_files_end_soon(self):
        """Steps beyond a number, and bytes beyond a number, are not read."""
        step = files.step(0, "s", "i", 0, "i", 0) + "\n"
        head = '<algo name="a" ngpus="2" coll="allreduce" nchunksperloop="1"><gpu id="0"><tb id="0" send="1" recv="1" chan="0">\n'
        self.refused(head + "".join(files.step(n, "s", "i", 0, "i", 0) for n in range(100_001)), "at most 100000")
        many = self.folder / "one.xml"
        with open(many, "w") as out:
            out.write(head)
            out.write(step * 400_000)
        began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        result = support.run("prove", "--import", str(many))
        self.assertEqual(result.code, 2, result)
        self.assertIn("at most 32 MiB are read", result.err)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began, 5)

    def test_options_that_do_not_go_together(self):
        path = self.file(files.ring(3))
        for words, name in [(["prove", "--import", path, "--ranks", "3"], "leave --ranks out"),
                            (["prove", "all_reduce", "--import", path], "leave COLLECTIVE out"),
                            (["prove", "--slots", "2"], "--slots: has no meaning"),
                            (["prove", "--import", path, "--slots", "0"], "--slots: '0'"),
                            (["prove", "--import", str(self.folder / "none.xml")], "none.xml"),
                            (["draw", path, "--ranks", "3"], "leave --ranks out")]:
            result = support.run(*words)
            self.assertEqual(result.code, 2, result)
            self.assertIn(name, result.err)


class Runs(Exchange):
    def run_it(self, collective, *names, ranks="4", more=()):
        csv = self.folder / "rows.csv"
        paths = [self.file(text, name) for name, text in names]
        result = support.run("run", collective, "--backends", "tutti", "--ranks", ranks, "--sizes", "8,1000,65536",
                             "--ranks-as", "threads", "--budget", "2s", "--no-limit", "--algorithms",
                             ",".join([*paths, "ring"]), "--csv", str(csv), "--quiet", *more)
        return result, [line.split(",") for line in csv.read_text().splitlines()] if csv.exists() else []

    def test_files_run_beside_our_own_and_are_verified(self):
        result, rows = self.run_it("all_reduce", ("ring.xml", files.ring(4)), ("pairs.xml", files.pairs(4)),
                                   ("two_shot.xml", files.two_shot(4)))
        self.assertEqual((result.code, result.err), (0, ""), result)
        verdict, algorithm = rows[0].index("verdict"), rows[0].index("algorithm")
        got = sorted((row[algorithm], row[verdict]) for row in rows[1:])
        self.assertEqual(got, sorted((name, "ok") for name in ["ring", "ring_xml", "pairs_xml", "two_shot_xml"] for _ in range(3)))

    def test_processes_get_it_too(self):
        result = support.run("run", "all_reduce", "--backends", "tutti", "--ranks", "2,3", "--sizes", "1000", "--budget", "1s",
                             "--no-limit", "--algorithms", self.file(files.two_shot(3), "two.xml"), "--csv", "-", "--quiet")
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertEqual([line.split("/")[1] for line in result.out.splitlines()[1:]], ["tutti.two_xml"])
        self.assertIn("P3.processes", result.out)

    def test_what_is_out_of_place_alone_is_left_out_in_place(self):
        result, rows = self.run_it("all_gather", ("gather.xml", files.gather(4, in_place=0)), more=["--placement", "out,in"])
        self.assertEqual((result.code, result.err), (0, ""), result)
        algorithm, placement = rows[0].index("algorithm"), rows[0].index("placement")
        self.assertEqual({row[placement] for row in rows[1:] if row[algorithm] == "gather_xml"}, {"out"})

    def test_a_wrong_file_does_not_run(self):
        result, _ = self.run_it("all_reduce", ("bad.xml", changed(files.ring(4), 'type="rcs"', 'type="r"')))
        self.assertEqual((result.code, result.out), (2, ""), result)
        self.assertIn("gpu 1 tb 0 step 6", result.err)


class Predictions(Exchange):
    def test_a_file_is_predicted_beside_our_own(self):
        ring = self.file(files.ring(4), "ring.xml")
        result = support.run("simulate", "all_reduce", "--algorithms", f"{ring},ring", "--ranks", "4", "--sizes", "8,64K",
                             "--csv", "-")
        self.assertEqual((result.code, result.err), (0, ""), result)
        us = {(row["algorithm"], row["bytes"]): float(row["predicted_us"]) for row in csv.DictReader(io.StringIO(result.out))}
        self.assertEqual(sorted(us), sorted((name, size) for name in ["ring", "ring_xml"] for size in ["8", "65536"]))
        self.assertGreater(us["ring_xml", "65536"], us["ring_xml", "8"])

    def test_what_was_written_by_us_takes_as_long_as_the_schedule_that_it_was_written_of(self):
        for name in ["recursive_doubling", "ring"]:
            text = support.run("export", "all_reduce", "--algorithm", name, "--ranks", "8", "--format", "msccl-xml").out
            path = self.file(text, f"{name}.xml")
            result = support.run("simulate", "all_reduce", "--algorithms", f"{path},{name}", "--ranks", "8", "--sizes", "1M",
                                 "--csv", "-")
            us = [float(row["predicted_us"]) for row in csv.DictReader(io.StringIO(result.out))]
            self.assertEqual(len(us), 2, result)
            self.assertAlmostEqual(us[0] / us[1], 1, delta=0.2)

    def test_all_ranks_of_a_file_are_walked(self):
        """That one rank stands for all is shown on a sample of the steps, and those of a file follow no rule."""
        ring = self.file(files.ring(6), "ring.xml")
        asked = ["--ranks", "6", "--sizes", "64K", "--machine", self.file(MACHINE, "machine.toml"), "--links"]
        own, other = (support.run("simulate", "all_reduce", "--algorithms", name, *asked).out for name in ["ring", ring])
        self.assertIn("in place of all, is 1 rank", own)
        self.assertIn("# busiest interfaces and links, 12 in all", other)

    def test_ranks_that_the_file_does_not_have_are_left_out_by_name(self):
        ring = self.file(files.ring(4), "ring.xml")
        result = support.run("simulate", "all_reduce", "--algorithms", f"{ring},ring", "--ranks", "2,4", "--sizes", "8")
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertIn("# left out: ring_xml: its file has steps for 4 ranks, not for 2\n", result.out)
        self.assertEqual(result.out.count("left out"), 1, result.out)
        result = support.run("simulate", "all_reduce", "--algorithms", ring, "--ranks", "2")
        self.assertEqual(result.code, 3, result)

    def test_mistakes_of_predictions(self):
        ring = self.file(files.ring(4), "ring.xml")
        wrong = self.file(changed(files.ring(4), 'type="rcs"', 'type="r"'), "wrong.xml")
        for words, names in [(["--algorithms", wrong], ["gpu 1 tb 0 step 6"]),
                             (["--algorithms", ring, "--ranks", "4", "--table", str(self.folder / "t")], ["--table", "'ring_xml'"])]:
            result = support.run("simulate", "all_reduce", *words)
            self.assertEqual((result.code, result.out), (2, ""), result)
            for name in names:
                self.assertIn(name, result.err)

    def test_a_file_is_explained_on_its_ranks(self):
        two_shot = self.file(files.two_shot(3), "two.xml")
        result = support.run("explain", "all_reduce", "--algorithm", two_shot)
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertIn("Steps of the algorithm two_xml", result.out)
        self.assertRegex(result.out, r"\nverified: .*; ok\n$")
        result = support.run("explain", "all_reduce", "--algorithm", two_shot, "--ranks", "4")
        self.assertEqual((result.code, result.out), (2, ""), result)
        self.assertIn("--ranks: '4' is not what the file has steps for: did you mean '3'?", result.err)
        result = support.run("explain", "all_reduce", "--algorithm", self.file(files.ring(9), "ring.xml"))
        self.assertEqual((result.code, result.out), (2, ""), result)
        self.assertIn("steps for 9 ranks, and at most 8 are explained", result.err)


class Pictures(Exchange):
    def test_a_file_is_drawn(self):
        result = support.run("draw", self.file(files.ring(4)))
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertTrue(result.out.startswith("all_reduce 'ring' on 4 ranks\n"), result.out)
        self.assertLessEqual(max(map(len, result.out.splitlines())), 80)
        self.assertRegex(result.out, r"rank 0 .*a\* b\* c\* d\*\n")
        picture = support.run("draw", self.file(files.ring(4)), "--svg", "-")
        self.assertTrue(picture.out.startswith("<svg"), picture.out[:200])

    def test_a_wrong_file_is_not(self):
        result = support.run("draw", self.file(changed(files.ring(4), 'type="rcs"', 'type="r"')))
        self.assertEqual((result.code, result.out), (1, ""), result)
        self.assertIn("deadlock", result.err)


class Exports(Exchange):
    def exported(self, *arguments):
        return support.run("export", *arguments)

    def test_what_is_written_as_msccl_is_proved_again(self):
        written, refused = 0, []
        for item in json.loads(support.run("list", "--json").out)["algorithms"]:
            for ranks in ["4", "5"]:
                name = f"{item['collective']} {item['name']} {ranks}"
                result = self.exported(item["collective"], "--algorithm", item["name"], "--ranks", ranks,
                                       "--format", "msccl-xml")
                if result.code == 0:
                    with self.subTest(name):
                        self.proved(result.out, f"# {item['collective']} '{item['name']}' on {ranks} gpus", "out of place: ")
                        written += 1
                    continue
                refused.append(name)
                self.assertEqual((result.code, result.out), (3, ""), result)
                self.assertRegex(result.err, r"MSCCL XML (has no|cannot say what rank \d+ does in step \d+)")
        self.assertGreaterEqual(written, 34, refused)
        for name in ["all_reduce ring 4", "all_reduce recursive_doubling 5", "broadcast knomial 5", "reduce knomial 4", "all_to_all pairwise 4"]:
            self.assertNotIn(name, refused)
        self.assertIn("all_reduce two_shot 4", refused)

    def test_goal(self):
        result = self.exported("all_reduce", "--algorithm", "ring", "--ranks", "3", "--format", "goal", "--size", "300")
        self.assertEqual((result.code, result.err), (0, ""), result)
        ranks = result.out.split("\nrank ")
        self.assertEqual(ranks[0], "num_ranks 3\n")
        for rank, text in enumerate(ranks[1:]):
            self.assertEqual(len(re.findall(rf"(?m)^l\d+: send 100b to {(rank + 1) % 3} tag 0$", text)), 4, text)
            self.assertEqual(len(re.findall(rf"(?m)^l\d+: recv 100b from {(rank - 1) % 3} tag 0$", text)), 4, text)
            self.assertEqual(len(re.findall(r"(?m)^l\d+ requires l\d+$", text)), 7, text)
        result = self.exported("all_reduce", "--algorithm", "two_shot", "--ranks", "3", "--format", "goal")
        self.assertEqual(result.code, 3, result)
        self.assertIn("GOAL cannot say what rank 0 does in step 0: a SIGNAL", result.err)

    def test_goal_with_calc_takes_as_long_as_the_prediction(self):
        """A reader of GOAL that is not ours: LogGP, each rank's lines one after the other."""
        latency, overhead, byte = 1000, 300, 0.1
        machine = self.file(MACHINE, "machine.toml")
        for name, ranks in [("ring", 16), ("recursive_doubling", 16), ("halving", 16), ("ring", 5)]:
            with self.subTest(name, ranks=ranks):
                goal = self.exported("all_reduce", "--algorithm", name, "--ranks", str(ranks), "--format", "goal", "--size",
                                     "80K", "--machine", machine)
                self.assertEqual((goal.code, goal.err), (0, ""), goal)
                row = support.run("simulate", "all_reduce", "--algorithms", name, "--ranks", str(ranks), "--sizes", "80K",
                                  "--machine", machine, "--csv", "-").out
                (row,) = csv.DictReader(io.StringIO(row))
                ns = goal_ns(goal.out, latency, overhead, byte)
                self.assertAlmostEqual(ns / (1000 * float(row["predicted_us"])), 1, delta=0.001)
                without = goal_ns(re.sub(r"calc \d+", "calc 0", goal.out), latency, overhead, byte)
                self.assertLess(without, 0.95 * ns)

    def test_mistakes(self):
        for words, names in [(["--format", "gaol"], ["--format", "did you mean 'goal'"]),
                             (["--format", "msccl-xml", "--size", "8"], ["--size"]),
                             (["--format", "msccl-xml", "--machine", "x.toml"], ["--machine", "has no times"]),
                             (["--format", "goal", "--machine", "/nowhere/x.toml"], ["--machine", "/nowhere/x.toml"]),
                             (["--format", "goal", "--root", "0"], ["all_reduce has no root"])]:
            result = self.exported("all_reduce", "--algorithm", "ring", "--ranks", "3", *words)
            self.assertEqual((result.code, result.out), (2, ""), result)
            for name in names:
                self.assertIn(name, result.err)


if __name__ == "__main__":
    unittest.main()
