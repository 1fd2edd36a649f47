"""The gate of the quick bank: what is measured again, what becomes of it, and that no run is left out that proves
anything.  Made-up answers in a made-up order; the machine is the fake one of test_score.py."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bank
import gate
import plants
import report
from test_score import FakeRunner, case

PAIR = next(p for p in plants.plants(2) if p.name == "pair-read-step")


class Counting(FakeRunner):
    """Remembers what was run: (planted, its length)."""

    def __init__(self, answer, steal=0.0):
        super().__init__(answer)
        self.runs, self.steal = [], steal

    def measure(self, settings, cores=None):
        self.runs.append((float(settings.get("inject.read_bandwidth", 0)) > 0, settings["measure.duration"]))
        return {**super().measure(settings, cores), "steal_share": self.steal}


class QuickRuns(unittest.TestCase):
    """The quick bank leaves out no run that proves anything: before, planted, after, for every plant."""

    def run_of(self, names, arguments=("--quick",)):
        runner = Counting(("read", "device"))
        driver = bank.Bank(runner, bank.parse(["mlbench", *arguments]))
        listed = {plant.name: plant for plant in plants.plants(2)}
        cases = [driver.case(listed[name], 4.0 if name == "bandwidth" else 0.98, 1)[0] for name in names]
        return runner.runs, cases

    def test_what_is_diagnosed_has_its_full_length(self):
        runs, cases = self.run_of(["bandwidth"])
        self.assertEqual(runs, [(False, "1s"), (True, "1600ms"), (False, "1s")])
        self.assertTrue(cases[0]["valid"], cases[0]["why_invalid"])
        self.assertAlmostEqual(cases[0]["returned"], 1)
        runs, _ = self.run_of(["bandwidth"], ["--no-knobs"])
        self.assertEqual([length for _, length in runs], ["1600ms"] * 3)

    def test_what_came_after_one_plant_was_before_the_next(self):
        runs, cases = self.run_of(["bandwidth", "bandwidth", "pair-read-step"])
        planted = [run for run in runs if run[0]]
        self.assertEqual(len(planted), 4)  # two plants, the pair, and its reading alone
        # One before all, one after each plant, and the pair's step alone.
        self.assertEqual(len(runs) - len(planted), 4)
        self.assertEqual([case["throughput"]["healthy"] for case in cases], [2000.0] * 3)

    def test_a_repeat_has_its_own_seed_and_runs(self):
        runner = Counting(("read", "device"))
        driver = bank.Bank(runner, bank.parse(["mlbench", "--quick"]))
        plant = next(p for p in plants.plants(2) if p.name == "bandwidth")
        driver.case(plant, 4.0, 1)
        first = len(runner.runs)
        driver.case(plant, 4.0, 2)
        self.assertEqual(len(runner.runs) - first, first)

    def test_a_stolen_machine_labels_nothing(self):
        for plant in (PAIR, next(p for p in plants.plants(2) if p.name == "bandwidth")):
            driver = bank.Bank(Counting(("read", "device"), steal=0.4), bank.parse(["mlbench", "--quick"]))
            case = driver.case(plant, plant.intensities[-1], 1)[0]
            self.assertIn("others took", case["why_invalid"])


RIGHT = case(("decode", "cpu"), ("decode", "cpu"))
WRONG = case(("decode", "cpu"), ("decode", "lock"))
SILENT = case(("decode", "cpu"), None)
INVALID = {**case(("decode", "cpu"), ("decode", "lock")), "valid": False, "why_invalid": "no label"}


class Gate(unittest.TestCase):
    def play(self, *answers):
        """Each plant's answers in their order; what gate.measure makes of them."""
        left = [list(one) for one in answers]
        order, said, kept = [], [], []

        def attempt(plant, intensity, seed):
            order.append((plant, seed))
            return {**left[plant].pop(0), "plant": "plant-%d" % plant}

        rounds = gate.measure([(i, 4.0, 1) for i in range(len(answers))], attempt, lambda why, one: said.append(why), kept.append)
        self.assertEqual(len(kept), len(order))
        return rounds, order, said, kept[-1]

    def end(self, *answers):
        rounds, order, _, _ = self.play(answers)
        return gate.outcome(rounds[0]), len(order)

    def test_ends(self):
        for answers, end in (
            ([RIGHT], gate.PASSED), ([WRONG, RIGHT], gate.PASSED), ([WRONG, WRONG], gate.FAILED), ([SILENT, SILENT], gate.FAILED),
            ([WRONG, SILENT], gate.FAILED), ([INVALID, RIGHT], gate.PASSED), ([INVALID, INVALID], gate.SKIPPED),
            ([INVALID, WRONG, RIGHT], gate.PASSED), ([INVALID, WRONG, WRONG], gate.FAILED), ([INVALID, WRONG, INVALID], gate.FAILED),
            ([WRONG, INVALID, RIGHT], gate.PASSED), ([WRONG, INVALID, WRONG], gate.FAILED), ([WRONG, INVALID, INVALID], gate.FAILED),
        ):
            self.assertEqual(self.end(*answers, RIGHT, RIGHT), (end, len(answers)), [gate.word(one) for one in answers])

    def test_a_wrong_program_fails(self):
        rounds, order, _, _ = self.play(*[[WRONG] * 3] * 20)
        self.assertTrue(gate.failed(rounds))
        self.assertEqual(len(order), 20 + gate.REPEATS_MOST)
        self.assertEqual(gate.summary(rounds)[-1], "0 passed, 20 failed, 0 skipped")
        self.assertIn("12 more cases", gate.summary(rounds)[-2])
        one, _, _, _ = self.play(*[[RIGHT]] * 19, [WRONG] * 3)
        self.assertTrue(gate.failed(one))
        self.assertEqual(gate.summary(one)[-1], "19 passed, 1 failed, 0 skipped")

    def test_one_unlucky_measurement_does_not(self):
        rounds, order, said, kept = self.play([RIGHT], [WRONG, RIGHT], [RIGHT])
        self.assertFalse(gate.failed(rounds))
        self.assertEqual(order, [(0, 1), (1, 1), (2, 1), (1, 2)])  # after all others, with a seed of its own
        self.assertEqual(said, ["", "", "", "told decode / lock"])
        self.assertEqual(gate.summary(rounds), ["again: plant-1: wrong, then right", "3 passed, 0 failed, 0 skipped"])
        self.assertEqual([one["verdict"]["resource"] for one in kept], ["cpu", "cpu", "cpu"])
        self.assertEqual(kept[1]["earlier"][0]["verdict"]["resource"], "lock")  # the first answer is not forgotten
        result = bank.scored(kept, 2, 1.0, "diagnose")
        self.assertIn("Measured again", report.markdown(result))
        self.assertIn("WRONG", report.markdown(result))

    def test_wrong_answers_go_before_labels(self):
        many = [[INVALID, RIGHT] for _ in range(gate.REPEATS_MOST + 2)]
        rounds, order, _, _ = self.play(*many, [WRONG, RIGHT])
        self.assertFalse(gate.failed(rounds))
        self.assertEqual(order[len(rounds)], (len(many), 2))
        self.assertEqual(len(order), len(rounds) + gate.REPEATS_MOST)
        self.assertEqual(gate.summary(rounds)[-1], "%d passed, 0 failed, 3 skipped" % gate.REPEATS_MOST)

    def test_nothing_right_is_no_pass(self):
        rounds, _, _, _ = self.play(*[[INVALID] * 3] * 5)
        self.assertTrue(gate.failed(rounds))
        self.assertEqual(gate.summary(rounds)[-1], "0 passed, 0 failed, 5 skipped")

    def test_a_pair_s_set_is_what_is_right_of_it(self):
        pair = [["step", "compute"]]
        both = case(("read", "device"), ("step", "compute"), kind="pair", intensity=0.98, also="read", pair=pair)
        one = case(("read", "device"), ("read", "device"), kind="pair", intensity=0.98, pair=pair)
        self.assertTrue(gate.is_right(both))
        self.assertTrue(gate.is_wrong(one))
        self.assertEqual(gate.why_again([one]), "told read / device")

    def test_the_program_s_status(self):
        for answer, status in ((("read", "device"), 0), (("decode", "cpu"), 1)):
            fake = FakeRunner(answer)
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
                options = bank.parse(["mlbench", "--quick", "--only", "bandwidth"])
                self.assertEqual(bank.quick(bank.Bank(fake, options), folder), status)
                with open(os.path.join(folder, "bank.json")) as file:
                    kept = json.load(file)["cases"]
            self.assertEqual(len(kept), 1)
            self.assertEqual(said.getvalue().count("again: told decode / cpu"), status)
            self.assertIn("%d passed, %d failed, 0 skipped" % (1 - status, status), said.getvalue())


if __name__ == "__main__":
    unittest.main()
