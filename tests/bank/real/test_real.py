#!/usr/bin/env python3
"""The scoring of the real bank: fake answers get the bars that they deserve, labels that do not hold are found, the
table and its halves are what they should be, and everything that a site made is gone after it.  Needs neither FUSE nor root."""

import collections
import contextlib
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import conditions
import foreign_plants
import real_bank
import real_plants
import real_score
import rpc_link
import story
import varying_plants

SEEDS = {"ours": real_plants.SEED, "foreign": foreign_plants.SEED, "varying": varying_plants.SEED}
BANDWIDTH, LATENCY, HEALTHY = ("read", "bandwidth"), ("read", "latency"), ("step", "compute")


def case(truth, told, kind="single", loss=2.0, confidence=0.95, full=None, gain=1.0, valid=True, **more):
    stage, resource = told or ("none", "unknown")
    verdict = {"stage": stage, "resource": resource, "confidence": confidence, "also": None, "abstained": told is None, "leaks": False,
               "phases": [], "recommendations": []}
    truths = truth if isinstance(truth, list) else [truth]
    return {"plant": "made-up", "family": "made", "kind": kind, "intensity": loss, "loss": loss, "seed": 9, "half": "train", "truth": [list(t) for t in truths],
            "full": full, "gain": gain, "valid": valid, "why_invalid": "" if valid else "no reason", "skipped": "", "throughput": {}, "verdict": verdict,
            "predictions": [], "verdict_s": 5.0, "rules": {}, "also": None, **more}


def skipped(reason):
    return {**case(BANDWIDTH, BANDWIDTH, valid=False), "skipped": reason, "verdict": None}


def value_of(cases, name):
    found = [one for one in real_score.bars(cases) if one["bar"].startswith(name)]
    assert len(found) == 1, name
    return found[0]


class Bars(unittest.TestCase):
    def test_right_answers_pass(self):
        cases = [case(BANDWIDTH, BANDWIDTH, full=True) for _ in range(20)] + [case(HEALTHY, HEALTHY, kind="control", loss=1.0) for _ in range(20)]
        self.assertEqual([one["bar"] for one in real_score.bars(cases) if one["passed"] is False], [])
        self.assertEqual(value_of(cases, "right (stage")["cases"], 20)

    def test_another_resource_is_a_right_stage(self):
        cases = [case(BANDWIDTH, LATENCY)]
        self.assertEqual(value_of(cases, "right (stage")["value"], 0)
        self.assertEqual(value_of(cases, "right stage")["value"], 1)
        self.assertFalse(value_of(cases, "wrong at confidence")["passed"])
        self.assertEqual(value_of([case(BANDWIDTH, LATENCY, confidence=0.89)], "wrong at confidence")["value"], 0)

    def test_one_of_a_set_is_right(self):
        both = [BANDWIDTH, ("read", "iops")]
        self.assertEqual(value_of([case(both, both[0]), case(both, both[1]), case(both, LATENCY)], "right (stage")["value"], 2 / 3)

    def test_what_costs_little_need_not_be_named(self):
        self.assertEqual(value_of([case(BANDWIDTH, HEALTHY, loss=1.29), case(BANDWIDTH, BANDWIDTH, loss=1.3)], "right (stage")["cases"], 1)

    def test_promises_before_a_full_store(self):
        cases = [case(BANDWIDTH, LATENCY, full=True, gain=3.9), case(BANDWIDTH, BANDWIDTH, full=True, gain=1.19), case(LATENCY, LATENCY, full=False, gain=4)]
        promise = value_of(cases, "full store")
        self.assertEqual((promise["value"], promise["cases"], promise["passed"]), (0.5, 2, False))
        self.assertEqual(real_score.promised({"recommendations": [{"predicted": None}, {"predicted": 300.0}, {"predicted": 200.0}]}, 100.0), 3)
        self.assertEqual(real_score.promised({"recommendations": []}, 100.0), 1)

    def test_false_alarms_and_no_answers(self):
        cases = [case(HEALTHY, LATENCY, kind="control", loss=1.0), case(HEALTHY, HEALTHY, kind="control", loss=1.0), case(BANDWIDTH, None),
                 case(BANDWIDTH, ("read", "unknown"))]
        self.assertEqual(value_of(cases, "false alarms")["value"], 0.5)
        self.assertEqual(value_of(cases, "unknown")["value"], 0.5)
        self.assertEqual((value_of(cases, "right (stage")["value"], value_of(cases, "right (stage")["cases"]), (0, 2))  # no answer is not right
        self.assertEqual(value_of(cases, "wrong at confidence")["value"], 0.25)  # the false alarm

    def test_outcomes(self):
        self.assertEqual([real_score.outcome(case(BANDWIDTH, told)) for told in (BANDWIDTH, LATENCY, HEALTHY, None, ("step", "unknown"))],
                         ["right", "stage only", "wrong", "unknown", "unknown"])

    def test_what_lasts_counts(self):
        changed = case(BANDWIDTH, HEALTHY, kind="lasting")
        self.assertEqual(real_score.outcome(changed), "wrong")
        pair = lambda stage, resource: {"stage": stage, "resource": resource, "begin_s": 0.0}
        changed["verdict"]["phases"] = [pair(*BANDWIDTH), pair(*HEALTHY)]
        self.assertEqual(real_score.outcome(changed), "wrong")
        changed["verdict"]["phases"].reverse()
        self.assertEqual(real_score.outcome(changed), "right")
        self.assertEqual(real_score.outcome({**changed, "kind": "single"}), "wrong")

    def test_a_standstill_may_be_said(self):
        still = ("step", "standstill")
        self.assertEqual(real_score.outcome(case(LATENCY, still, kind="stopped")), "right")
        self.assertEqual(real_score.outcome(case(LATENCY, still)), "wrong")

    def test_labels_without_a_verdict(self):
        cases = [{**case(BANDWIDTH, None), "verdict": None}, case(BANDWIDTH, BANDWIDTH)]
        self.assertEqual((value_of(cases, "unknown")["cases"], value_of(cases, "labels that hold")["cases"]), (1, 2))
        self.assertIn(" holds", real_score.case_line(cases[0]))

    def test_times(self):
        cases = [case(BANDWIDTH, BANDWIDTH, verdict_s=seconds) for seconds in [7.0] * 18 + [19.0, 60.0]]
        self.assertEqual([value_of(cases, "seconds to the verdict, " + share)["value"] for share in ("median", "95 %")], [7.0, 19.0])
        cases.append(case(BANDWIDTH, BANDWIDTH, verdict_s=60.0))
        self.assertFalse(value_of(cases, "seconds to the verdict, 95 %")["passed"])

    def test_what_is_not_valid_is_not_scored(self):
        cases = [case(BANDWIDTH, LATENCY, valid=False), case(BANDWIDTH, BANDWIDTH), skipped("no /dev/fuse here")]
        self.assertEqual(value_of(cases, "right (stage")["value"], 1)
        self.assertEqual((value_of(cases, "labels that hold")["value"], value_of(cases, "labels that hold")["cases"]), (0.5, 2))

    def test_nothing_measured_is_no_pass(self):
        self.assertTrue(all(one["passed"] is None for one in real_score.bars([])))

    def test_predictions(self):
        one = {"from": "advice", "predicted": 200.0, "before": 100.0, "measured": 160.0, "interval": [150.0, 250.0], "settings": {}}
        cases = [case(LATENCY, LATENCY, predictions=[one, {**one, "measured": 125.0}]), case(LATENCY, LATENCY, predictions=[{**one, "measured": None}])]
        value = lambda name: value_of(cases, "predictions: " + name)["value"]
        self.assertAlmostEqual(value("error, median"), 0.25)
        self.assertEqual(value_of(cases, "what-if")["value"], 0.5)
        self.assertAlmostEqual(value("width high/low, median"), 250 / 150)
        self.assertEqual(value("that were measured"), 2)
        self.assertFalse(value_of(cases, "predictions: that were measured")["passed"])  # two are too few


class Story(unittest.TestCase):
    def test_outcomes(self):
        told = lambda stage, resource: {"stage": stage, "resource": resource}
        answers = [(0, told("read", "latency")), (0, told("read", "unknown")), (3, told("read", "latency")), (0, told("decode", "wait")), (0, {})]
        self.assertEqual([story.outcome(*one) for one in answers], ["right", "unknown", "unknown", "wrong", "unknown"])

    def test_bars(self):
        runs = [{"outcome": "right", "seconds": 5.0 + number / 10} for number in range(40)]
        self.assertTrue(all(one["passed"] for one in story.bars(runs, story.QUIET)))
        for number in range(2):
            runs[number] = {"outcome": "unknown", "seconds": 60.0}
        self.assertTrue(all(one["passed"] for one in story.bars(runs, story.QUIET)))
        runs[2] = {"outcome": "wrong", "seconds": 60.0}
        self.assertFalse(any(one["passed"] for one in story.bars(runs, story.QUIET) if not one["bar"].startswith("unknown")))


class Reliability(unittest.TestCase):
    def test_bins(self):
        cases = [case(LATENCY, LATENCY, confidence=c) for c in (0.3, 0.85, 0.9, 1.0)] + [case(LATENCY, BANDWIDTH, confidence=0.85), case(LATENCY, None)]
        rows = {row["from"]: row for row in real_score.reliability(cases)}
        self.assertEqual([(rows[low]["cases"], rows[low]["right"]) for low in (0.0, 0.5, 0.8, 0.9)], [(1, 1), (0, 0), (2, 1), (2, 2)])
        self.assertEqual(sum(row["cases"] for row in rows.values()), 5)
        self.assertAlmostEqual(rows[0.8]["confidence"], 0.85)


class Labels(unittest.TestCase):
    def test_twice_the_limit_gives_twice_as_much(self):
        rates = {"healthy": 600.0, "planted": 150.0, "turned": 298.0}
        self.assertEqual(real_score.check_turn("double", rates), "")
        self.assertIn("came back", real_score.check_turn("double", {**rates, "turned": 200.0}))
        self.assertEqual(real_score.check_turn("double", {"healthy": 200.0, "planted": 150.0, "turned": 197.0}), "")  # the step comes first

    def test_taken_away_all_comes_back(self):
        rates = {"healthy": 600.0, "planted": 150.0, "turned": 300.0}
        self.assertIn("taken away, only 33 %", real_score.check_turn("remove", rates))
        self.assertEqual(real_score.check_turn("remove", {**rates, "turned": 580.0}), "")

    def test_what_does_not_bind(self):
        self.assertIn("does not bind", real_score.check_turn("double", {"healthy": 100.0, "planted": 98.0, "turned": 99.0}))

    def test_full_and_slow_stores(self):
        rates = {"healthy": 600.0, "planted": 200.0, "flight": 195.0}
        self.assertEqual(real_score.check_flight(True, 0.5, rates), "")
        self.assertIn("called slow", real_score.check_flight(False, 0.5, rates))
        rates["flight"] = 101.0
        self.assertIn("called full", real_score.check_flight(True, 0.5, rates))
        self.assertEqual(real_score.check_flight(False, 0.5, rates), "")
        rates["flight"] = 395.0
        self.assertEqual(real_score.check_flight(False, 2, rates), "")
        self.assertEqual(real_score.check_flight(False, 4, {**rates, "flight": 590.0}), "")  # the step comes first

    def test_changes_in_the_run(self):
        def judged(*phases):
            verdict = {"phases": [{"begin_s": b, "stage": s, "resource": r} for b, (s, r) in phases]}
            return real_score.changes_right({"verdict": verdict, "truth": [list(LATENCY)]}, 7.0, [HEALTHY])

        self.assertTrue(judged((1.0, HEALTHY), (7.3, LATENCY)))
        self.assertFalse(judged((1.0, HEALTHY), (3.0, LATENCY)))
        self.assertFalse(judged((1.0, LATENCY), (7.0, HEALTHY)))
        self.assertFalse(judged((7.0, LATENCY)))

    def test_what_a_plant_left(self):
        plant = lambda kind: next(p for p in real_plants.real_plants() if p.kind == kind)
        whole = lambda rate: {"throughput": 600.0, "window_columns": ["t", "samples"], "windows": [[t / 10, rate * t / 10] for t in range(41)], "wall_seconds": 4.0}
        repetitions = [whole(rate) for rate in (500.0, 90.0, 510.0)]
        self.assertEqual(real_bank.planted_throughput(plant("single"), repetitions), 600)
        for kind in ("outage", "stalls"):
            self.assertAlmostEqual(real_bank.planted_throughput(plant(kind), repetitions), (500 + 90 + 510) / 3)
        rows = [[t / 10, 60.0 * min(t, 50) + 10 * max(0, t - 50)] for t in range(91)]
        changing = {"window_columns": ["t", "samples"], "windows": rows, "wall_seconds": 9.0}
        for kind in ("phases", "lasting"):
            self.assertAlmostEqual(real_bank.planted_throughput(plant(kind), [whole(500.0), changing]), 100, delta=1)


class Table(unittest.TestCase):
    def setUp(self):
        self.plants = real_plants.real_plants()
        self.seen = real_plants.Seen(throughput=600.0, file_bytes=20000.0, cores=2, decode_s=1e-3, cpu_cores=1.9, resident=2e8)

    def test_names_and_number(self):
        self.assertEqual(len({plant.name for plant in self.plants}), len(self.plants))
        self.assertGreaterEqual(len(self.plants), 60)
        for plant in self.plants:
            self.assertTrue(len(plant.truth) == 1 or plant.why, plant.name)
            self.assertLessEqual(len(plant.name), 21)  # what a line has room for
            self.assertTrue(plant.flight is None or plant.full is not None, plant.name)

    def test_halves(self):
        for origin, seed in SEEDS.items():
            halves = collections.Counter(real_plants.half_of(plant.name, seed) for plant in self.plants if plant.origin == origin)
            self.assertLessEqual(abs(halves["train"] - halves["held-out"]), 6, halves)
        for seed in (1, 2):
            for half in ("train", "held-out"):
                options = real_bank.parse(["--list", "--half", half, "--seed", str(seed)])
                self.assertTrue(all(real_plants.half_of(plant.name, seed) == half for plant in real_bank.chosen(options)))
        self.assertEqual(real_bank.parse(["--list"]).half, "train")  # nobody scores the other half by accident
        train = {plant.name for plant in real_bank.chosen(real_bank.parse(["--list"]))}
        for origin, seed in SEEDS.items():
            held = real_bank.chosen(real_bank.parse(["--list", "--half", "held-out", "--origin", origin, "--seed", str(seed)]))
            self.assertFalse(train & {plant.name for plant in held})

    def test_origins(self):
        names = {origin: {plant.name for plant in real_bank.chosen(real_bank.parse(["--list", "--half", "both", *words]))}
                 for origin, words in (("all", []), *((one, ["--origin", one]) for one in SEEDS))}
        self.assertEqual(names["all"], {plant.name for plant in self.plants})
        self.assertEqual(names["foreign"], {plant.name for plant in foreign_plants.foreign_plants()})
        self.assertEqual(names["varying"], {plant.name for plant in varying_plants.varying_plants()})
        self.assertEqual(names["ours"], names["all"] - names["foreign"] - names["varying"])
        self.assertTrue(all(names.values()))
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            real_bank.parse(["--list", "--origin", "theirs"])

    def test_a_limit_of_time_leaves_some_of_all(self):
        families = [plant.family for plant in real_bank.in_turn(self.plants)]
        self.assertEqual(len(set(families[:len(set(families))])), len(set(families)))
        self.assertEqual(sorted(families), sorted(plant.family for plant in self.plants))

    def test_intensities_are_drawn_by_the_seed(self):
        plant = self.plants[0]
        low, high = real_plants.intensities_of(plant)
        self.assertTrue(real_plants.LOW[0] <= low <= real_plants.LOW[1] and real_plants.HIGH[0] <= high <= real_plants.HIGH[1])
        self.assertEqual(real_plants.intensities_of(plant), (low, high))
        plant.drawn = 10
        self.assertNotEqual(real_plants.intensities_of(plant), (low, high))

    def test_other_parameters_in_the_same_halves(self):
        chosen = lambda *words: real_bank.chosen(real_bank.parse(["--list", "--half", "held-out", *words]))
        self.assertEqual([plant.name for plant in chosen()], [plant.name for plant in chosen("--draw", "5")])
        drawn = [[real_plants.intensities_of(plant) for plant in chosen(*words) if not plant.intensities] for words in ([], ["--draw", "5"])]
        self.assertTrue(all(one != other for one, other in zip(*drawn)))
        sites = [conditions.Site("", str, "", seed) for seed in ("a:1:1.5", "a:1:1.5", "a:2:1.5")]
        first, again, other = (site.draw("what", 3, 7) for site in sites)
        self.assertTrue(first == again != other and 3 <= first <= 7)

    def test_every_plant_can_be_built(self):
        """In a site that only notes what it is asked for."""
        for plant in self.plants:
            for loss in (None, 1.5, 4.0):
                site = Noted()
                settings = plant.build(site, loss, self.seen if loss else None)
                self.assertIn("dataset.path", settings, plant.name)
                self.assertTrue(all("." in key and isinstance(value, str) for key, value in settings.items()), plant.name)
                self.assertTrue(all(isinstance(word, str) for call in site.calls if call[0] == "store" for word in call[1:]), plant.name)
            if plant.kind != "control":
                self.assertNotEqual(self.built(plant, 1.5), self.built(plant, None), plant.name)

    def built(self, plant, loss):
        site = Noted()
        return plant.build(site, loss, self.seen if loss else None), site.calls

    def test_stronger_is_more(self):
        for plant in self.plants:
            if plant.family not in ("cores", "decode") and plant.name != "elsewhere-decode":  # whole cores
                self.assertNotEqual(self.built(plant, 1.4), self.built(plant, 5.0), plant.name)

    def test_halves_of_a_limit(self):
        """What is said to be doubled is a limit of twice the rate."""
        limits = {plant.name: [self.built(plant, loss)[1][-1] for loss in (4.0, 2.0)] for plant in self.plants if plant.name in ("bytes", "iops", "slots-2")}
        value = lambda call, option: float(call[call.index(option) + 1])
        for name, option, ratio in (("bytes", "--bytes-per-s", 2), ("iops", "--iops", 2), ("slots-2", "--latency", 0.5)):
            strong, weak = limits[name]
            self.assertAlmostEqual(value(weak, option) / value(strong, option), ratio, delta=0.01)


class Noted:
    """A site that makes nothing."""

    def __init__(self):
        self.calls = []

    def data(self, name):
        assert name in real_plants.DATA, name
        return "/data/" + name

    def draw(self, what, low, high):
        return conditions.Site.draw(self, what, low, high)

    seed = "noted"

    def __getattr__(self, name):
        def note(*what, **how):
            self.calls.append((name, *what, *how.items()))
            return "/made/" + name

        return note


class Driver(unittest.TestCase):
    def bank_with(self, build):
        plant = real_plants.RealPlant("made-up", "made", "", [BANDWIDTH], build)
        bank = real_bank.RealBank.__new__(real_bank.RealBank)
        bank.options, bank.cores, bank.seen, bank.checked = real_bank.parse(["mlbench", "tools"]), 2, {}, {}
        bank.runner = real_bank.RealRunner.__new__(real_bank.RealRunner)
        bank.runner.work, bank.runner.count, bank.runner.enter = "/nonexistent", 0, None
        return bank.attempt(plant, 2.0)

    def test_what_the_machine_lacks_is_said(self):
        def build(site, loss, seen):
            raise conditions.Cannot("no /dev/fuse here")

        done = self.bank_with(build)
        self.assertEqual((done["skipped"], done["valid"]), ("no /dev/fuse here", False))
        self.assertIn("skipped", real_score.case_line(done))
        self.assertIn("no /dev/fuse here", "\n".join(real_score.why_not([done])))

    def test_what_fails_is_not_scored(self):
        def build(site, loss, seen):
            raise real_bank.Failed("no answer\nwithin 5 s")

        self.assertEqual(self.bank_with(build)["why_invalid"], "no answer within 5 s")

    def test_a_case_has_a_limit_of_time(self):
        runner = real_bank.RealRunner.__new__(real_bank.RealRunner)
        runner.program, runner.enter, runner.deadline = "/bin/sleep", None, time.monotonic() + 0.2
        with self.assertRaises(real_bank.Failed):
            runner.call(["100"])
        with self.assertRaises(real_bank.Failed):  # what is over begins nothing more
            runner.call(["0"])

    def test_nothing_planted_is_no_pass(self):
        result = real_score.scored([skipped("not root")], 2, "a CPU", 1.0)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(real_bank.finish(real_bank.parse(["--score", "x"]), result), real_bank.CANNOT)

    def test_hogs_end_with_their_site(self):
        with tempfile.TemporaryDirectory() as tools:
            with open(os.path.join(tools, "hog"), "w") as file:
                file.write("#!/bin/sh\nexec sleep 1000\n")
            os.chmod(os.path.join(tools, "hog"), 0o755)
            with self.assertRaises(KeyError), conditions.Site(tools, str, tools) as site:
                site.hogs(2, "cpu")
                pids = self.children()
                self.assertEqual(len(pids), 2)
                raise KeyError("whatever happens")
            self.assertEqual(self.children(), [])

    def test_what_comes_and_goes_from_outside(self):
        made = []
        with conditions.Site("", str, "") as site:
            site.from_time_to_time(made.append, 0.01, 0.02, 0.05)
            self.assertEqual(made, [])  # not before the run
            site.begins()
            conditions.until(lambda: len(made) >= 4, "it comes and goes too seldom")
        count = len(made)
        self.assertEqual(made, [True, False] * (count // 2))  # it ends as it was
        time.sleep(0.1)
        self.assertEqual(len(made), count)

    def children(self):
        with open("/proc/self/task/%d/children" % os.getpid()) as file:
            return file.read().split()

    def test_an_end_by_signal_cleans_up(self):
        script = ("import sys, signal, time; sys.path.insert(0, %r); import real_bank, conditions\n"
                  "signal.signal(signal.SIGTERM, real_bank.end_by_signal)\n"
                  "with conditions.Site('', str, '') as site:\n"
                  "    site.stack.callback(print, 'taken away', flush=True)\n"
                  "    print('planted', flush=True)\n"
                  "    time.sleep(1000)\n" % os.path.dirname(os.path.abspath(__file__)))
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "planted\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.communicate()[0], "taken away\n")
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_leftovers_of_the_dead_alone(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        with tempfile.TemporaryDirectory() as folder:
            dead, alive = (os.path.join(folder, conditions.PREFIX + "real-%d-x" % pid) for pid in (gone.pid, os.getpid()))
            os.mkdir(dead), os.mkdir(alive)
            conditions.sweep_leftovers(folder)
            self.assertEqual((os.path.exists(dead), os.path.exists(alive)), (False, True))


class RpcLink(unittest.TestCase):
    """Answers come back whole, in turn or later; the server says what it was asked, in two fragments."""

    def answering(self, listener):
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            while True:
                call = rpc_link.record(connection)[4:]
                half = len(call) // 2
                connection.sendall(struct.pack(">I", half) + call[:half] + struct.pack(">I", rpc_link.LAST | len(call) - half) + call[half:])

    def asked(self, how, seconds, connections):
        """Seconds that one call took on each connection, all sent at once; what came back is checked."""
        server = socket.create_server(("127.0.0.1", 0))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for _ in range(connections):
            threading.Thread(target=self.answering, args=(server,), daemon=True).start()
        link = subprocess.Popen([sys.executable, rpc_link.__file__, "127.0.0.1", str(port), str(server.getsockname()[1]), how, str(seconds)])
        try:
            clients = []
            while len(clients) < connections:
                with contextlib.suppress(ConnectionRefusedError):
                    clients.append(socket.create_connection(("127.0.0.1", port)))
            began, took = time.monotonic(), []
            calls = [os.urandom(1000 + i) for i in range(connections)]
            for client, call in zip(clients, calls):
                client.sendall(struct.pack(">I", rpc_link.LAST | len(call)) + call)
            for client, call in zip(clients, calls):
                answer = rpc_link.record(client)
                half = len(call) // 2
                self.assertEqual(answer[4:4 + half] + answer[8 + half:], call)
                took.append(time.monotonic() - began)
                client.close()
            return took
        finally:
            link.kill()
            link.wait()
            server.close()

    def test_one_call_after_the_other(self):
        self.assertGreaterEqual(max(self.asked("turns", 0.05, 4)), 0.2)

    def test_each_byte_takes_its_time(self):
        self.assertGreaterEqual(max(self.asked("bytes", 5e-5, 2)), 0.1)  # of 1000 bytes and some

    def test_every_answer_comes_later(self):
        self.assertGreaterEqual(min(self.asked("far", 0.05, 2)), 0.05)


class Report(unittest.TestCase):
    def result(self):
        cases = [case(BANDWIDTH, LATENCY, full=True, gain=3.9, plant="a-name-of-many-letters-indeed"), case([HEALTHY, LATENCY], None), skipped("no program sshfs here"),
                 case(HEALTHY, HEALTHY, kind="control", loss=1.0), case(BANDWIDTH, BANDWIDTH, valid=False)]
        return real_score.scored(cases, 2, "a CPU", 12.0)

    def test_80_columns(self):
        result = self.result()
        for line in [*map(real_score.case_line, result["cases"]), *real_score.terminal(result).splitlines()]:
            self.assertLessEqual(len(line), 80, line)
        self.assertIn("WRONG!", real_score.case_line(result["cases"][0]))
        self.assertIn(" none", real_score.case_line(result["cases"][1]))

        self.assertIn("a-name-of-many-letters-indeed 2 x3.9", real_score.terminal(result))

    def test_the_block_for_the_document(self):
        result = json.loads(json.dumps(self.result()))
        block = real_score.accuracy_block(result)
        for one in result["bars"]:
            self.assertIn(one["bar"], block)
        self.assertIn("planted \\ told", block)
        self.assertIn("5 cases of the train half (seed 9), 3 scored, 1 skipped", block)


if __name__ == "__main__":
    unittest.main()
