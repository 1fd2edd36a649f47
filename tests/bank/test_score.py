#!/usr/bin/env python3
"""The scorer itself: fake diagnosers that are right, wrong, overconfident or silent get the matrix and the bars that
they deserve; what the bank computes from measurements is held to made-up ones; and no label reaches the diagnoser."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bank
import device_plants
import labels
import plants
import report
import rules
import runner
import score

SINGLES = [("read", "device"), ("read", "latency"), ("decode", "cpu"), ("step", "launch")]


def case(truth, told, kind="single", intensity=4.0, confidence=0.95, also=None, pair=None, plant="made-up", **more):
    abstained = told is None
    stage, resource = told or ("none", "unknown")
    verdict = {"stage": stage, "resource": resource, "confidence": confidence, "also": also, "abstained": abstained, "leaks": False,
               "phases": [], "recommendations": []}
    return {"plant": plant, "kind": kind, "intensity": intensity, "seed": 1, "truth": [list(truth)], "also": pair, "valid": True,
            "why_invalid": "", "throughput": {}, "verdict": verdict, "rules": {"lazy": ["read", "device"]}, **more}


def value_of(cases, name):
    found = [one for one in score.bars(cases) if one["bar"].startswith(name)]
    assert len(found) == 1, name
    return found[0]


def full_bank(answer, confidence=0.95):
    """Twenty of everything, told what `answer(truth)` says."""
    cases = [case(truth, answer(truth), intensity=k, confidence=confidence) for truth in SINGLES for k in (1.5, 4.0) for _ in range(5)]
    cases += [case(("step", "compute"), answer(("step", "compute")), kind="control", intensity=1.0, confidence=confidence,
                   plant="page-cache") for _ in range(20)]
    return cases


class Bars(unittest.TestCase):
    def test_right_answers_pass(self):
        cases = full_bank(lambda truth: truth)
        self.assertEqual(score.missed(score.bars(cases)), [])
        self.assertEqual(value_of(cases, "right (stage, resource)")["value"], 1)
        self.assertEqual(value_of(cases, "right (stage, resource)")["cases"], 40)
        matrix = score.confusion(score.clear_cases(cases))
        self.assertEqual(matrix, {score.name_of(truth): {score.name_of(truth): 10} for truth in SINGLES})

    def test_wrong_answers_miss(self):
        cases = full_bank(lambda truth: ("read", "device"))
        missed = [one["bar"] for one in score.missed(score.bars(cases))]
        self.assertTrue(any(name.startswith("right (stage, resource)") for name in missed))
        self.assertTrue(any(name.startswith("right stage") for name in missed))
        self.assertTrue(any(name.startswith("false alarms") for name in missed))
        self.assertTrue(any(name.startswith("wrong at confidence") for name in missed))
        self.assertEqual(value_of(cases, "right (stage, resource)")["value"], 0.25)
        self.assertEqual(value_of(cases, "right stage")["value"], 0.5)
        self.assertEqual(value_of(cases, "false alarms")["value"], 1)
        self.assertEqual(score.confusion(score.clear_cases(cases))["decode / cpu"], {"read / device": 10})

    def test_a_wrong_resource_is_a_right_stage(self):
        cases = [case(("decode", "cpu"), ("decode", "lock"))]
        self.assertEqual(value_of(cases, "right (stage, resource)")["value"], 0)
        self.assertEqual(value_of(cases, "right stage")["value"], 1)

    def test_one_wrong_in_twenty_is_the_limit(self):
        def bank_with(wrong):
            return [case(("decode", "cpu"), ("decode", "lock") if i < wrong else ("decode", "cpu")) for i in range(20)]

        self.assertTrue(value_of(bank_with(1), "right (stage, resource)")["passed"])
        self.assertFalse(value_of(bank_with(2), "right (stage, resource)")["passed"])

    def test_abstaining_is_no_way_out(self):
        cases = full_bank(lambda truth: None)
        self.assertEqual(value_of(cases, "abstentions")["value"], 1)
        self.assertFalse(value_of(cases, "abstentions")["passed"])
        self.assertIsNone(value_of(cases, "right (stage, resource)")["passed"])  # nothing was answered
        self.assertEqual(score.confusion(score.clear_cases(cases))["decode / cpu"], {"(abstained)": 10})

    def test_doubt_is_no_wrong_confidence(self):
        unsure = full_bank(lambda truth: ("read", "device"), confidence=0.5)
        self.assertIsNone(value_of(unsure, "wrong at confidence")["passed"])

    def test_invalid_labels_are_not_scored(self):
        bad = case(("decode", "cpu"), ("read", "device"))
        bad["valid"] = False
        good = case(("decode", "cpu"), ("decode", "cpu"))
        self.assertEqual(value_of([bad, good], "right (stage, resource)")["cases"], 1)
        self.assertEqual(value_of([bad, good], "right (stage, resource)")["value"], 1)
        self.assertFalse(value_of([bad, good], "labels that hold")["passed"])

    def test_nothing_measured_is_no_pass(self):
        self.assertTrue(all(one["passed"] is None for one in score.bars([])))


class Sets(unittest.TestCase):
    def test_a_set_may_hold_the_truth(self):
        near = case(("read", "device"), ("step", "compute"), intensity=1.1, also="read")
        alone = case(("read", "device"), ("step", "compute"), intensity=1.1)
        self.assertTrue(score.set_holds_truth(near))
        self.assertFalse(score.set_holds_truth(alone))
        self.assertEqual(value_of([near, alone], "near balance: the set")["value"], 0.5)
        self.assertEqual(value_of([near, alone], "near balance: mean size")["value"], 1.5)

    def test_a_pair_needs_both(self):
        pair = [["step", "compute"]]
        both = case(("read", "device"), ("step", "compute"), kind="pair", intensity=0.98, also="read", pair=pair)
        one = case(("read", "device"), ("read", "device"), kind="pair", intensity=0.98, pair=pair)
        self.assertTrue(score.set_holds_truth(both))
        self.assertFalse(score.set_holds_truth(one))
        self.assertFalse(score.wrong(both))
        self.assertTrue(score.wrong(one))

    def test_a_leak_is_its_own_answer(self):
        found = case(("memory", "leak"), ("step", "compute"), kind="leak")
        self.assertFalse(score.right(found))
        found["verdict"]["leaks"] = True
        self.assertTrue(score.right(found))
        control = case(("step", "compute"), ("step", "compute"), kind="control", plant="page-cache")
        self.assertEqual(value_of([control], "false leaks")["value"], 0)
        control["verdict"]["leaks"] = True
        self.assertFalse(value_of([control], "false leaks")["passed"])
        self.assertFalse(value_of([control], "false alarms")["passed"])

    def test_phases_are_judged_by_their_own(self):
        self.assertTrue(score.right(case(("read", "device"), ("step", "compute"), kind="phases", phases_right=True)))
        self.assertFalse(score.right(case(("read", "device"), ("read", "device"), kind="phases", phases_right=False)))


class Rules(unittest.TestCase):
    def test_a_rule_is_scored_on_the_same_cases(self):
        scores = {one["rule"]: one for one in score.rule_scores(full_bank(lambda truth: truth))}
        self.assertEqual(scores["mlbench"]["pair"], 1)
        self.assertEqual(scores["lazy"]["pair"], 0.25)
        self.assertEqual(scores["lazy"]["stage"], 0.5)
        self.assertEqual(scores["lazy"]["false_alarms"], 1)

    def test_the_four_rules(self):
        def stage(name, seconds, capacity):
            return {"name": name, "seconds": seconds, "capacity": capacity}

        measured = {
            # 1 reader, 4 workers, 1 step; starved, working, blocked
            "stages": [stage("read", [0, 0.9, 0.1], 500), stage("decode", [2, 2, 0], 300), stage("step", [0.5, 0.5, 0], 200)],
            "queues": [{"name": "samples", "empty_share": 0.9}, {"name": "batches", "empty_share": 0.6}],
        }
        self.assertEqual(rules.answers(measured), {
            "largest self time": ("decode", "cpu"), "highest utilisation": ("read", "device"),
            "min of rates": ("step", "compute"), "empty queue": ("read", "device")})
        measured["queues"][0]["empty_share"] = 0.1
        self.assertEqual(rules.empty_queue(measured), "decode")
        measured["queues"][1]["empty_share"] = 0.4
        self.assertEqual(rules.empty_queue(measured), "step")
        measured["queues"].append({"name": "uploaded", "empty_share": 0.8})
        self.assertEqual(rules.empty_queue(measured), "upload")


class Saved(unittest.TestCase):
    def test_saved_banks_are_scored_as_one(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, answer in (("a", ("decode", "cpu")), ("b", ("decode", "lock"))):
                cases = [case(("decode", "cpu"), answer) for _ in range(10)]
                bank.save(os.path.join(folder, name), bank.scored(cases, 2, 5.0, "diagnose"))
            result = bank.score_again([os.path.join(folder, "a"), os.path.join(folder, "b", "bank.json")])
        self.assertEqual(len(result["cases"]), 20)
        self.assertEqual(result["seconds"], 10)
        self.assertEqual(value_of(result["cases"], "right (stage, resource)")["value"], 0.5)


class Knobs(unittest.TestCase):
    def knob(self, predicted, measured, interval):
        return {"predicted": predicted, "before": 100.0, "measured": measured, "interval": interval}

    def test_signs_and_intervals(self):
        good = case(("decode", "cpu"), ("decode", "cpu"), knob=self.knob(150, 152, [140, 160]))
        bad = case(("decode", "cpu"), ("decode", "cpu"), knob=self.knob(150, 80, [140, 160]))
        self.assertEqual(value_of([good], "what-if: sign")["value"], 1)
        self.assertEqual(value_of([good, bad], "what-if: sign")["value"], 0.5)
        self.assertFalse(value_of([good, bad], "what-if: sign")["passed"])
        self.assertEqual(value_of([good, bad], "what-if: 90 %")["value"], 0.5)
        many_bad = [case(("decode", "cpu"), ("decode", "cpu"), knob=self.knob(150, 80, [140, 160])) for _ in range(20)]
        self.assertFalse(value_of(many_bad, "what-if: 90 %")["passed"])

    def test_small_gains_have_no_sign(self):
        small = case(("decode", "cpu"), ("decode", "cpu"), knob=self.knob(103, 98, [95, 105]))
        self.assertIsNone(value_of([small], "what-if: sign")["passed"])
        failed = case(("decode", "cpu"), ("decode", "cpu"), knob=self.knob(150, None, [140, 160]))
        self.assertIsNone(value_of([failed], "what-if: 90 %")["passed"])


def windows(rate_at, end=3.0, memory_at=lambda t: 1e7, step=0.05):
    samples, rows, t = 0.0, [], 0.0
    while t < end:
        t += step
        samples += rate_at(t) * step
        rows.append([t, samples, memory_at(t)])
    return {"window_columns": ["t", "samples", "resident_bytes"], "windows": rows, "wall_seconds": end, "cut_seconds": 0.4}


class Arithmetic(unittest.TestCase):
    def test_what_is_close(self):
        self.assertTrue(labels.close(1.1, 1.1) and labels.close(4.4, 4.0) and labels.close(1.52, 1.5))
        self.assertFalse(labels.close(1.0, 1.1) or labels.close(5.5, 4.0) or labels.close(1.3, 1.5))

    def test_a_weak_plant_is_strengthened(self):
        self.assertGreater(labels.corrected(4.0, 4.0, 3.0), 4.0)
        self.assertLess(labels.corrected(4.0, 4.0, 6.0), 4.0)
        self.assertGreater(labels.corrected(1.1, 1.1, 1.0), 1.1)
        self.assertLess(labels.corrected(1.1, 1.1, 1.5), 0.9)  # one that loses too much at any aim above 1

    def test_the_throttled_third(self):
        measured = windows(lambda t: 250.0 if 1 <= t <= 2 else 1000.0)
        self.assertAlmostEqual(labels.rate_in_middle(measured), 250, delta=5)

    def test_growth(self):
        self.assertAlmostEqual(labels.growth(windows(lambda t: 1, memory_at=lambda t: 1e7 + 1e6 * t)), 1e6, delta=1e4)
        leaking = windows(lambda t: 1, memory_at=lambda t: 1e7 + 1e6 * t)
        flat = windows(lambda t: 1)
        self.assertEqual(labels.check_leak(leaking, flat), "")
        self.assertIn("without", labels.check_leak(leaking, leaking))
        self.assertIn("without", labels.check_leak(flat, flat))

    def test_disturbance(self):
        quiet = bank.Bank(None, bank.parse(["mlbench"]))
        self.assertEqual(quiet.disturbance({"disturbed": 0.1}), "")
        self.assertIn("others", quiet.disturbance({"disturbed": 1.5}))
        self.assertEqual(bank.Bank(None, bank.parse(["mlbench", "--disturbed", "2"])).disturbance({"disturbed": 1.5}), "")

    def test_what_a_host_takes_is_a_disturbance(self):
        stolen = {"cores_busy_outside": 0.1, "steal_share": 0.2}
        self.assertAlmostEqual(labels.cores_lost(stolen, 2), 0.5)
        self.assertEqual(labels.cores_lost({"cores_busy_outside": None, "steal_share": None}, 2), 0)

    def test_the_label_of_a_pair(self):
        self.assertEqual(labels.check_pair(1960, [1970, 2000]), "")
        self.assertEqual(labels.check_pair(2050, [1970, 2000]), "")  # alone, one of them was held up a little
        self.assertIn("one stage alone", labels.check_pair(1900, [1900, 2050]))
        self.assertIn("both together", labels.check_pair(1800, [1970, 2000]))  # a third thing held that run up
        self.assertEqual(labels.check_pair(1970 * 0.95, [1970, 2000]), "")

    def test_phases_and_their_times(self):
        plant = next(p for p in plants.plants(2) if p.kind == "phases")

        def judged(*phases):
            listed = [{"begin_s": b, "end_s": e, "stage": s, "resource": r} for b, e, s, r in phases]
            return labels.phases_right({"verdict": {"phases": listed}}, plant, {"wall_seconds": 3.0})

        step = ("step", "compute")
        self.assertTrue(judged((0.4, 1.0, *step), (1.0, 2.0, "read", "device"), (2.0, 3.0, *step)))
        self.assertFalse(judged((0.4, 1.5, *step), (1.5, 2.0, "read", "device"), (2.0, 3.0, *step)))  # late
        self.assertFalse(judged((0.4, 1.0, *step), (1.0, 2.0, "read", "latency"), (2.0, 3.0, *step)))
        self.assertFalse(judged((0.4, 3.0, "read", "device")))
        self.assertFalse(judged((0.4, 1.0, "decode", "cpu"), (1.0, 2.0, "read", "device"), (2.0, 3.0, *step)))


class FakeRunner:
    """A machine on which each plant does exactly what it should, or nothing (`broken`), or for good (`sticks`)."""

    diagnoses = True

    def __init__(self, answer, broken=False, sticks=False):
        self.answer, self.broken, self.sticks, self.was_planted = answer, broken, sticks, False

    def measure(self, settings, cores=None):
        limit = float(settings.get("inject.read_bandwidth", 0)) / 12000.0
        planted = limit > 0
        self.was_planted |= planted
        rate = min(2000.0, limit) if planted and not self.broken else 2000.0
        if self.sticks and self.was_planted:
            rate = min(rate, 600.0)
        stage = lambda name: {"name": name, "seconds": [0, 1, 0], "items": 100, "capacity": rate}
        return {"throughput": rate, "bytes_read": 1200000, "stages": [stage(n) for n in ("read", "decode", "step")],
                "queues": [{"name": "samples", "empty_share": 0}, {"name": "batches", "empty_share": 0}], "folder": "/nonexistent",
                "cores_busy_outside": 0.0, "step_utilisation": rate / 2000.0}

    def diagnose(self, folder):
        return {**case(("x", "y"), self.answer)["verdict"]}


class Labels(unittest.TestCase):
    def one(self, fake, **more):
        options = bank.parse(["mlbench", "--no-knobs", *more.get("arguments", [])])
        plant = next(p for p in plants.plants(2) if p.name == "bandwidth")
        return bank.Bank(fake, options).case(plant, 4.0, 1)

    def test_a_label_that_holds(self):
        cases = self.one(FakeRunner(("read", "device")))
        self.assertTrue(cases[0]["valid"], cases[0]["why_invalid"])
        self.assertAlmostEqual(cases[0]["loss"], 4.0, places=1)
        self.assertTrue(score.right(cases[0]))
        self.assertEqual(cases[1]["kind"], "removed")  # a healthy run comes of it, which was called read / device
        self.assertEqual(value_of(cases, "false alarms")["value"], 1)
        self.assertIn("ok", report.case_line(cases[0]))

    def test_a_wrong_answer(self):
        self.assertIn("WRONG", report.case_line(self.one(FakeRunner(("decode", "cpu")))[0]))

    def test_a_plant_that_does_nothing(self):
        broken = self.one(FakeRunner(("read", "device"), broken=True))[0]
        self.assertFalse(broken["valid"])

    def test_a_loss_that_does_not_come_back(self):
        sticking = self.one(FakeRunner(("read", "device"), sticks=True))[0]
        self.assertFalse(sticking["valid"])
        self.assertIn("came back", sticking["why_invalid"])


class Blindness(unittest.TestCase):
    def test_no_label_is_left(self):
        plain = "[inject]\nread_bandwidth = 0\nleak = 0\n"
        header = {"resolved": "[read]\ndepth = 8\n\n[inject]\nread_bandwidth = 5000\nleak = 7\n\n[sweep]\nzip = \n",
                  "config": {"inject": {"read_bandwidth": "5000", "leak": "7"}, "read": {"depth": 8}}}
        repetition = {"kind": "repetition", "notes": ["injected: reads capped at 5 kB/s", "read engine pread"]}
        with tempfile.TemporaryDirectory() as folder:
            result = os.path.join(folder, "result")
            os.makedirs(os.path.join(result, "traces"))
            for name, content in (("summary.json", "injected: x"), ("points.csv", "injected: x"), ("traces/p0.json", "{}"),
                                  ("points.jsonl", json.dumps(header) + "\n" + json.dumps(repetition) + "\n")):
                with open(os.path.join(result, name), "w") as file:
                    file.write(content)
            driver = runner.Runner.__new__(runner.Runner)
            driver.defaults = {"text": plain.rstrip("\n") + "\n", "json": {"read_bandwidth": "0", "leak": "0"}}
            driver.copy_blind(result, result + "-blind")
            with open(os.path.join(result + "-blind", "points.jsonl")) as file:
                lines = [json.loads(line) for line in file]
            self.assertEqual(lines[0]["config"]["inject"], {"read_bandwidth": "0", "leak": "0"})
            self.assertIn("read_bandwidth = 0\n", lines[0]["resolved"])
            self.assertIn("[read]\ndepth = 8", lines[0]["resolved"])
            self.assertIn("[sweep]", lines[0]["resolved"])
            self.assertNotIn("5000", json.dumps(lines[0]))
            self.assertEqual(lines[1]["notes"], ["read engine pread"])
            self.assertEqual(sorted(os.listdir(result + "-blind")), ["points.jsonl", "traces"])
            with open(os.path.join(result + "-blind", "traces", "p0.json"), "w") as file:
                file.write('"injected: a label"')
            with self.assertRaises(runner.Mistake):
                runner.check_blind(result + "-blind")


class Table(unittest.TestCase):
    def test_every_plant_can_be_planted(self):
        healthy = plants.Healthy(throughput=2000, file_bytes=12000, cores=2, decode_s=1e-4)
        listed = plants.plants(2) + plants.controls()
        self.assertEqual(len({plant.name for plant in listed}), len(listed))
        for plant in listed:
            for intensity in plant.intensities:
                keys = plant.keys(intensity, healthy)
                self.assertTrue(all("." in key for key in keys))
                self.assertTrue(keys or plant.cores or plant.kind == "control", plant.name)
        self.assertGreaterEqual(len(plants.controls()), 4)

    def test_device_plants_can_be_planted(self):
        healthy = plants.Healthy(throughput=2500.0, file_bytes=12300.0, cores=16, decode_s=1e-5)
        listed = device_plants.device_plants() + device_plants.device_controls()
        self.assertEqual(len({plant.name for plant in listed}), len(listed))
        for plant in listed:
            self.assertEqual(plant.base["step.backend"], "cuda")
            for value in {**plant.base, **plant.keys(4.0, healthy)}.values():
                self.assertIsInstance(value, str)
            self.assertTrue(plant.kind == "control" or plant.keys(4.0, healthy) != plant.keys(1.5, healthy), plant.name)

    def test_without_a_device_its_plants_say_so(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "mlbench")
            with open(program, "w") as file:
                file.write("""#!/bin/sh\necho '{"backends": [{"name": "cuda", "unavailable": "no device: none"}]}'\n""")
            os.chmod(program, 0o755)
            self.assertEqual(bank.no_device(program), "no device: none")
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(bank.main([program, "--device"]), bank.CANNOT)
            self.assertIn("no device: none", said.getvalue())

    def test_stronger_is_more(self):
        healthy = plants.Healthy(throughput=2000, file_bytes=12000, cores=2, decode_s=1e-4)
        for plant in plants.plants(2):
            if plant.kind == "single" and len(plant.intensities) == 3:
                self.assertNotEqual(plant.keys(1.5, healthy), plant.keys(4.0, healthy), plant.name)

    def test_the_report_has_every_bar(self):
        cases = full_bank(lambda truth: truth)
        result = {"cases": cases, "bars": score.bars(cases), "cores": 2, "cpu": "a CPU", "seconds": 1.0, "diagnosed_by": "diagnose"}
        text = report.markdown(result)
        for one in result["bars"]:
            self.assertIn(one["bar"], text)
        self.assertIn("planted \\ told", text)


if __name__ == "__main__":
    unittest.main()
