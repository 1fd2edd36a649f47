"""The bank of real jobs without running one: every file says its truth in known words, halves are drawn as promised, and the
scorer can fail.  tests/bank/run.sh runs it in `make check`."""
import ast
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import data  # noqa: E402
import matrix  # noqa: E402
import score  # noqa: E402
import truth  # noqa: E402

LINES_MOST = 100
NETWORK = ("http://", "https://", "download=True", "urllib.request", "import requests")


def job_of(text, name="one"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".py")
        with open(path, "w") as file:
            file.write(text)
        return truth.read_job(path)


def planted(name, cause, half=""):
    return truth.BankJob(name, name + ".py", {"cause": cause, "why": "w", "data": "photos", "options": "", "relieved": "--a 1", **({"half": half} if half else {})})


def options_of(job):
    """The options that a job's program knows."""
    with open(job.path) as file:
        text = file.read()
    if not job.path.endswith(".py"):
        return {word for word in job.varied("relieved", "fix")[0] if word in text}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Job":
            return {"--" + keyword.arg.replace("_", "-") for keyword in node.keywords if keyword.arg}
    return set()


class TestJobs(unittest.TestCase):
    def setUp(self):
        self.jobs = truth.read_all()

    def test_each_says_its_truth(self):
        self.assertTrue(self.jobs)
        for job in self.jobs.values():
            with self.subTest(job.name):
                self.assertIn(job.said["data"], data.MAKERS)
                with open(job.path) as file:
                    text = file.read()
                self.assertLessEqual(text.count("\n"), LINES_MOST)
                for word in NETWORK:
                    self.assertNotIn(word, text)

    def test_each_program_is_well_formed_and_knows_its_options(self):
        for job in self.jobs.values():
            with self.subTest(job.name):
                with open(job.path) as file:
                    text = file.read()
                if job.path.endswith(".py"):
                    compile(text, job.path, "exec")
                elif job.path.endswith(".sh"):
                    subprocess.run(["bash", "-n", job.path], check=True)
                for vary in ((), ("relieved",), ("fix",)):
                    self.assertLessEqual(set(job.varied(*vary)[0]), options_of(job))

    def test_the_twins_have_the_keys_that_jobs_name(self):
        with open(os.path.join(score.ROOT, "harness", "config", "keys.def")) as file:
            known = {"%s.%s" % found for found in re.findall(r'^KEY\(\w+, "(\w+)", "(\w+)"', file.read(), re.M)}
        self.assertIn("decode.workers", known)
        for job in self.jobs.values():
            with self.subTest(job.name):
                named = [truth.twin_change(word)[0] for word in job.words("fix_twin")] + [word.partition("=")[0] for word in job.words("owner")]
                self.assertFalse(set(named) - known)

    def test_the_table_of_the_issue_is_open(self):
        self.assertGreaterEqual(sum(job.open for job in self.jobs.values()), 18)


class TestTruth(unittest.TestCase):
    TEXT = "#: cause = loader/cpu\n#: why = w\n#: data = photos\n#: options = --workers 1 --step-ms 2\n#: around = quota:0.6 cpus:0\n#: relieved = --workers 2 quota:0\n"

    def test_later_wins(self):
        job = job_of(self.TEXT)
        self.assertEqual(job.varied(), ({"--workers": "1", "--step-ms": "2"}, {"quota": "0.6", "cpus": "0"}))
        self.assertEqual(job.varied("relieved"), ({"--workers": "2", "--step-ms": "2"}, {"cpus": "0"}))

    def test_mistakes_are_told(self):
        for before, after in (("loader/cpu", "loader/magic"), ("loader/cpu", "loader"), ("#: why = w\n", ""), ("quota:0.6", "quote:0.6"), ("quota:0.6", "quota:much"),
                              ("--step-ms 2", "--step-ms"), ("#: why = w", "#: wy = w"), ("#: why = w", "#: why = w\n#: why = v"), ("#: why = w", "#: why = w\n#: fix = --workers 2")):
            with self.subTest(after), self.assertRaises(truth.Mistake):
                job_of(self.TEXT.replace(before, after))
        with self.assertRaises(truth.Mistake):
            job_of(self.TEXT + "#: needs = torch\n", "torch")

    def test_halves(self):
        causes = ["loader/cpu", "loader/lock", "step/write", "trainer/cpu"]
        jobs = {name: planted(name, causes[i % 4], "open" if i < 8 else "") for i, name in enumerate("job%02d" % i for i in range(40))}
        held = truth.held_out(jobs, "1")
        self.assertEqual(held, truth.held_out(dict(reversed(list(jobs.items()))), "1"))
        self.assertNotEqual(held, truth.held_out(jobs, "2"))
        self.assertEqual(len(held), 20)
        self.assertFalse([name for name in held if jobs[name].open])
        for cause in causes:
            self.assertEqual(sum(jobs[name].said["cause"] == cause for name in held), 5)

    def test_halves_where_few_are_free(self):
        jobs = {name: planted(name, "loader/cpu", "open" if name < "job3" else "") for name in ("job%d" % i for i in range(5))}
        self.assertEqual(truth.held_out(jobs, "1"), ["job3", "job4"])


class TestScore(unittest.TestCase):
    def test_judge(self):
        lock, quota, fine = planted("a", "loader/lock"), planted("b", "loader/quota"), planted("c", "none/healthy")
        either = planted("d", "read/latency or loader/cpu")
        for want, job, stage, resource, certainty in (
                ("right", lock, "loader", "lock", "possible"), ("wrong", lock, "loader", "cpu", "likely"), ("stage", lock, "loader", "unknown", "possible"),
                ("none", lock, "loader", "lock", "unknown"), ("none", lock, "none", "unknown", "unknown"), ("stage", quota, "loader", "cores", "likely"),
                ("right", either, "read", "latency or device", "likely"), ("right", either, "loader", "cpu", "likely"), ("wrong", either, "step", "unknown", "likely"),
                ("right", fine, "none", "unknown", "unknown"), ("wrong", fine, "loader", "cpu", "likely"), ("wrong", quota, "step", "cores", "possible")):
            with self.subTest("%s: %s/%s" % (job.said["cause"], stage, resource)):
                self.assertEqual(matrix.judge(job, stage, resource, certainty), want)
        self.assertEqual(matrix.judge(lock, "loader", "external", "likely", busy=True), "right")
        self.assertEqual(matrix.judge(lock, "loader", "external", "likely"), "wrong")

    @staticmethod
    def row(**said):
        return matrix.scored(planted("a", "loader/cpu"), {"job": "a", "stage": "loader", "resource": "cpu", "certainty": "likely", "job_rate": 100.0, "twin_rate": 104.0,
                                                         "did": 2.0, "predicted": 1.9, "unfaithful": "", **said})

    def met(self, rows):
        return [matrix.met(bar) for bar in matrix.bars(rows)]

    def test_bars_are_met_and_missed(self):
        self.assertEqual(self.met([self.row()]), [True] * 6)
        self.assertEqual(self.met([self.row(resource="lock")])[:3], [False, False, True])
        self.assertEqual(self.met([self.row(resource="lock", certainty="possible")])[:3], [False, True, True])
        self.assertEqual(self.met([self.row(certainty="unknown")])[:3], [False, True, False])
        self.assertEqual(self.met([self.row(twin_rate=115.0)])[3:5], [False, True])
        self.assertEqual(self.met([self.row(twin_rate=220.0)])[3:5], [False, False])
        self.assertEqual(self.met([self.row(twin_rate=220.0, unfaithful="off by 120 %")])[3:], [True, True, None])
        self.assertEqual(self.met([self.row(twin_rate=float("nan"))])[3:5], [False, False])
        self.assertEqual(self.met([self.row(predicted=1.0)])[5], False)
        self.assertEqual(self.met([]), [None] * 6)

    def test_a_disturbed_job_counts_neither_way(self):
        self.assertEqual(self.row(resource="external", others=0.5)["score"], "disturbed")
        self.assertEqual(self.row(resource="external", others=0.1)["score"], "wrong")
        self.assertEqual(self.row(resource="lock", others=0.5)["score"], "wrong")
        self.assertEqual(self.row(others=0.5)["score"], "right")
        self.assertEqual(self.met([self.row(), self.row(resource="external", others=0.5)])[:3], [True] * 3)

    def test_busy(self):
        rows = [self.row(resource="lock", disturbance="others are busy"), self.row(disturbance="")]
        self.assertEqual([matrix.met(bar) for bar in matrix.bars(rows, True)], [False, False])
        self.assertEqual([matrix.met(bar) for bar in matrix.bars([self.row(disturbance="others")], True)], [True, True])

    def test_tables(self):
        rows = [self.row(), self.row(twin_rate=float("nan"), error="the twin | did not run")]
        self.assertIn("1.04", matrix.tables(rows, False))
        self.assertIn("| the twin / did not run |", matrix.tables(rows, False, matrix.markdown_table))

    def test_changes_of_a_twin(self):
        self.assertEqual(score.changed_by("*=", "0.5", "8ms"), "4ms")
        self.assertEqual(score.changed_by("-=", "4ms", "9000us"), "5ms")
        self.assertEqual(score.changed_by("*=", "0.5", "30%"), "15%")
        self.assertEqual(score.changed_by("*=", "0.5", "120 ms (measured, 110-130 ms)"), "60ms")
        job = planted("a", "loader/cpu")
        job.said["fix_twin"] = "decode.workers=4 step.time*=0.5 overhead.sample-=1ms"
        self.assertEqual(score.twin_sets(job, {"observed.step.time": "120ms"}), {"decode.workers": "4", "step.time": "60ms"})

    def test_rate_of_turns(self):
        nan = float("nan")
        self.assertAlmostEqual(score.together([{"rate": 10, "seconds": 10}, {"rate": 20, "seconds": 5}, {"rate": nan, "seconds": 5}]), 200 / 15)
        self.assertTrue(score.together([{"rate": nan, "seconds": 5}]) != score.together([]))


if __name__ == "__main__":
    unittest.main()
