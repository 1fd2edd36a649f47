#!/usr/bin/env python3
"""Goes through labs as a student would, with `mlbench lab`, at both ends: untouched, with each wrong fix, with the answer but
the wrong cause or evidence, a check must not pass; with the answer it must.  Each seed is a student of its own.  It takes
minutes a lab, and the cores of labs 4 and 8 must be free: not in `make check`.

    tests/labs/both_ends.py [--mlbench PROGRAM] [--seeds 3] [--first 1] [--prefix 'taskset -c 0,1'] [--only answer] LAB.ini...

One line a check; the last line is "N passed, N failed, N skipped" of the checks, where one that was too noisy to tell is
skipped.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from trial import ROOT, Lab, amount  # noqa: E402

NEXT_TO_NONE = 3  # exit status: too noisy to tell


class Student:
    def __init__(self, options, work, lab, seed):
        self.options, self.lab, self.number = options, lab, lab.one("number", "")
        self.folder, self.key = os.path.join(work, "%s-%d" % (lab.name, seed)), os.path.join(work, "key")
        if not os.path.exists(self.key):
            self.call("key", self.key)
        public = self.key + ".pub"
        self.call("start", self.number, "student=%s-%d" % (lab.name, seed), "teacher=%s" % public)
        opened = json.loads(self.call("open", self.folder, "key=%s" % self.key, "--json")[1])["labs"][0]["drawn"]
        self.variant, self.plants = opened["variant"], opened["plants"]
        self.known = {"cores": len(os.sched_getaffinity(0)), **opened["scope"]}
        asks = [[part.strip() for part in line.split(":", 1)[0].split(",")][:2] for line in lab.all("ask", self.variant)]
        guess = {"rate": "1..100000", "best": "1..100000", "device": "1..100", "stage": "decode", "resource": "cpu"}
        self.call("predict", self.number, *["%s=%s" % (name, guess[figure]) for name, figure in asks])
        self.call("measure", self.number)

    def call(self, *words):
        command = shlex.split(self.options.prefix) + [self.options.mlbench, "lab", *words, "--quiet"]
        if words[0] not in ("key", "open"):
            command += ["--dir", self.folder]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode not in (0, 1, NEXT_TO_NONE) or words[0] != "check" and done.returncode:
            raise RuntimeError("%s: %s" % (" ".join(command), done.stderr.strip()))
        return done.returncode, done.stdout

    def answers(self, wrong=False):
        out = []
        for line in self.lab.all("answer", self.variant):
            name, expression = [part.strip() for part in line.split(":", 1)[0].rsplit(",", 1)[0].split(",", 1)]
            out.append("%s=%.6g" % (name, amount(expression, self.known) * (10 if wrong else 1)))
        return out

    def check(self, settings, cause=None, evidence=None, wrong=False):
        cause = cause or self.lab.one("cause", self.variant).split("|")[0].strip()
        evidence = evidence or self.lab.one("right", self.variant).split("|")[0].strip()
        return self.call("check", self.number, *settings, "cause=%s" % cause, "evidence=%s" % evidence, *self.answers(wrong), "--json")


def words_of(text):
    return [part.strip().replace(" ", "") for part in text.split(",") if part.strip()]


def checks_of(student):
    """Name, what is passed to check(), and whether it must pass; the answer comes last, since nothing is checked after it."""
    lab, variant = student.lab, student.variant
    best = [line.replace(" ", "").replace("=cores", "=%d" % student.known["cores"]) for line in lab.all("best", variant)]
    right = [word.strip() for word in lab.one("right", variant).split("|")]
    other = [line.split(":")[0].strip() for line in lab.all("evidence", variant)]
    cause = lab.one("cause", variant)
    yield "untouched", {"settings": [], "wrong": not best}, False
    for line in lab.all("wrong", variant) if best else []:
        name, rest = line.split(",", 1)
        yield "wrong fix: " + name, {"settings": words_of(rest.split(":", 1)[0])}, False
    yield "wrong cause", {"settings": best, "cause": "decode/cores" if "decode/cores" not in cause else "read/cpu"}, False
    yield "wrong evidence", {"settings": best, "evidence": next(one for one in other if one not in right)}, False
    yield "answer", {"settings": best}, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mlbench", default=os.environ.get("MLBENCH", os.path.join(ROOT, "build/release/mlbench")))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("labs", nargs="+")
    options = parser.parse_args()
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as work:
        for path in options.labs:
            lab = Lab(path)
            for seed in range(options.first, options.first + options.seeds):
                student = Student(options, work, lab, seed)
                print("%s seed %d%s: planted %s" % (lab.name, seed, student.variant and " (%s)" % student.variant,
                                                    " ".join("%s=%s" % pair for pair in student.plants.items())))
                for name, arguments, must in checks_of(student):
                    if not name.startswith(options.only):
                        continue
                    status, text = student.check(**arguments)
                    try:
                        told = json.loads(text)
                        told = (told.get("checks") or told.get("lab", {}).get("checks") or [told])[-1]
                    except ValueError:
                        told = {}
                    verdict = "skipped: too noisy" if status == NEXT_TO_NONE else "as it must" if (status == 0) == must else "WRONG"
                    passed, failed = passed + (verdict == "as it must"), failed + (verdict == "WRONG")
                    skipped += status == NEXT_TO_NONE
                    print("  %-32s exit status %d  %s  %s" % (name, status, verdict, " ".join(
                        "%s=%s" % (key, told[key]) for key in ("broken", "yours", "best", "share", "gain", "blocks") if key in told)))
                    sys.stdout.flush()
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
