"""The bank of public cases: what it measures by turns, how it judges, and what its page says."""

import math
import os
import random
import tempfile
import unittest

import cases

FEW = {"name": "cases/few", "path": "few.ini", "unavailable": None, "source": "job issue 1", "reported": "3 it/s,\nGPU idle",
       "cause": {"stage": "read", "resource": "latency or full"},
       "decoys": [{"keys": [{"key": "prefetch.depth", "value": "8"}], "gained": None, "text": "longer"}],
       "fixes": [{"keys": [{"key": "read.depth", "value": "4"}], "gained": 4.0, "text": "deeper"},
                 {"keys": [{"key": "decode.workers", "value": "8"}], "gained": None, "text": "more"}]}


class Fake(cases.Bank):
    """Rates by settings, with a spread; a verdict and predictions that a test chooses."""

    def __init__(self, rates, stage="read", resource="latency", gain=3.0):
        super().__init__("/bin/false", "/nowhere", 3, random.Random(1))
        self.rates, self.verdict, self.gain = rates, (stage, resource), gain

    def measure(self, case, settings):
        self.others.append(0.1)
        return self.rates[frozenset(settings)] * math.exp(self.draw.gauss(0, 0.01))

    def call(self, *words, **rest):
        if words[0] == "diagnose":
            return {"verdict": {"stage": self.verdict[0], "resource": self.verdict[1], "confidence": 0.9}, "sentence": "Bottleneck.", "phases": [],
                    "ladder": [{"throughput": 100}, {"throughput": 400}]}
        if words[0] == "check":
            return {"twin": {"keys": []}}
        if "decode.workers=8" in words:
            raise cases.Cannot("'decode.workers' cannot be predicted")
        return {"alternatives": [{"gain": self.gain, "throughput": 400, "interval90": [380, 420]}]}


RATES = {frozenset(): 100, frozenset({"prefetch.depth"}): 100, frozenset({"read.depth"}): 400, frozenset({"read.depth", "decode.workers"}): 405}


class Judging(unittest.TestCase):
    def test_all_as_the_case_says(self):
        row = Fake(RATES).score(FEW, "quiet")
        self.assertTrue(row["right"])
        self.assertTrue(row["decoys"][0]["nothing"])
        self.assertAlmostEqual(row["fixes"][0]["gain"], 4, delta=0.2)
        self.assertTrue(all(fix["kept"] for fix in row["fixes"]))
        self.assertEqual(row["fixes"][1]["set"], {"read.depth": "4", "decode.workers": "8"})   # on top of the first
        self.assertEqual(row["fixes"][1]["predicted"][2], "next")
        self.assertEqual(row["others"], 0.1)

    def test_a_decoy_that_gains_and_a_fix_that_does_not(self):
        row = Fake({**RATES, frozenset({"prefetch.depth"}): 120, frozenset({"read.depth"}): 200}).score(FEW, "quiet")
        self.assertFalse(row["decoys"][0]["nothing"])
        self.assertFalse(row["fixes"][0]["kept"])

    def test_verdicts(self):
        self.assertFalse(Fake(RATES, "decode", "cpu").score(FEW, "quiet")["right"])
        self.assertFalse(Fake(RATES, "decode", "external").score(FEW, "busy")["right"])
        self.assertTrue(Fake(RATES, "read", "external").score(FEW, "busy")["right"])
        with self.assertRaises(cases.Cannot):   # it was not quiet
            Fake(RATES, "read", "external").score(FEW, "quiet")


class Page(unittest.TestCase):
    def write(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            with open(path, "w") as file:
                file.write("# Head\n\n### gone: nowhere\n\nA case that is no more.\n")
            cases.write_page(path, [FEW], rows)
            with open(path) as file:
                return " ".join(file.read().split())

    def test_what_it_says(self):
        told = self.write([Fake(RATES, "decode", "cpu", gain=9.0).score(FEW, "quiet")])
        self.assertTrue(told.startswith("# Head ### few: job issue 1 3 it/s, GPU idle - No help: `prefetch.depth=8`, longer. Measured, times as fast: quiet "), told)
        self.assertIn("Cause: `read/latency or full`. `mlbench diagnose cases/few`: *Bottleneck.* **This is wrong.**", told)
        self.assertIn("Fix: `read.depth=4`, deeper. Times as fast: quiet predicted 9.50 to 10.50, measured ", told)
        self.assertIn(" (**missed**); the report 4.", told)
        self.assertNotIn("gone", told)

    def test_a_case_without_figures(self):
        self.assertIn("- Fix: `decode.workers=8`, more.", self.write([]))


if __name__ == "__main__":
    unittest.main()
