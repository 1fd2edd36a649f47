#!/usr/bin/env python3
"""The walk-through of docs/REPRODUCE.md: a PyTorch job on a healthy mount, the same on a FUSE mount with 4 ms a read, and what mlbench
makes of the two, command by command.

  tests/jobs/slow_job.py PROGRAM FOLDER

Each job is observed, and a case is made of it (good.ini, slow.ini).  The slow one is reproduced and bisected; the owner's fix, more
workers, is predicted from the twin, made to the job, and measured.  Commands and their output go to standard output, what is to be
checked to FOLDER/facts.json.  Exits 77 where something is missing, and says what."""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from running import Cannot, Running, make_data  # noqa: E402
from twelve import JOBS  # noqa: E402

NAME, OBSERVED_S, MEASURED_S, FIX = "fuse_latency", 20, 10, 6
CONTEXT = {"COLUMNS": "80", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


class Walk:
    def __init__(self, program, folder):
        self.program, self.folder, self.facts = program, folder, {}
        os.makedirs(folder, exist_ok=True)

    def say(self, *words, quiet=False, statuses=(0,)):
        """Runs a command of mlbench in the folder; its output is told unless quiet."""
        print("$ mlbench " + " ".join(words), flush=True)
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, env={**os.environ, **CONTEXT})
        if not quiet:
            print(done.stdout, flush=True)
        if done.returncode not in statuses:
            print(done.stderr)
            raise RuntimeError("%s: exit status %d" % (words[0], done.returncode))
        return done

    def document(self, *words, statuses=(0,)):
        return json.loads(self.say(*words, "--json", quiet=True, statuses=statuses).stdout)

    def fit(self, job, case, complaint):
        job.await_batches(20)
        begun = time.time()
        self.say("observe", str(job.pid), "--for", "%ds" % OBSERVED_S, "--out", case, statuses=(0,))
        rate = job.rate(begun, time.time())
        with open(job.log) as log, open(os.path.join(self.folder, case, "steps.csv"), "w") as copy:
            copy.write(log.read().rsplit("\n", 1)[0] + "\n")
        self.say("fit", case + "/observe.json", case + "/steps.csv", make_data(JOBS[NAME].data, self.folder), "--out", case + ".ini",
                 "--complaint", complaint, "--set", "batch.size=16", "--set", "augment.size=%d" % JOBS[NAME].job.get("crop", 112))
        return rate

    def go(self):
        facts = self.facts
        with Running(NAME, self.folder, changed=True) as job:  # latency removed
            facts["good"] = self.fit(job, "good", "as it was on Monday")
        with Running(NAME, self.folder) as job:
            facts["slow"] = self.fit(job, "slow", "slow since Tuesday")
        self.say("check", "slow.ini")
        facts["reproduce_status"] = self.say("reproduce", "slow.ini", "--as-reported", "--out", "reproduced", "--budget", "4m",
                                             statuses=(0, 1, 3)).returncode
        facts["bisect_status"] = self.say("bisect", "good.ini", "slow.ini", "--env", "--out", "bisected", "--budget", "5m",
                                          statuses=(0, 1, 3)).returncode
        with open(os.path.join(self.folder, "bisected", "bisect.json")) as file:
            facts["bisect"] = json.load(file)
        self.fix()

    def fix(self):
        """More workers: what the twin says of them, and what the job does."""
        emulated = self.reported()
        self.say("run", "slow.ini", *emulated, "--out", "twin", statuses=(0, 3))
        asked = ["--set", "decode.workers=%d" % FIX, "--set", "prefetch.depth=%d" % (2 * FIX)]
        self.say("what-if", "twin", *asked)
        told = self.document("what-if", "twin", *asked)
        self.facts["what_if"] = told
        job = Running(NAME, self.folder)
        job.arguments["workers"] = FIX
        with job:
            job.await_batches(20)
            begun = time.time()
            time.sleep(MEASURED_S)
            self.facts["fixed"] = job.rate(begun, time.time())
        print("the job with %d workers: %.0f images/s, %.2f times as many" % (
            FIX, self.facts["fixed"], self.facts["fixed"] / self.facts["slow"]))

    def reported(self):
        """The keys under [reported] that are the configuration's."""
        words, inside = [], False
        for line in open(os.path.join(self.folder, "slow.ini")):
            inside = line.strip() == "[reported]" if line.startswith("[") else inside
            if inside and line.startswith("inject."):
                words += ["--set", line.strip().replace(" = ", "=")]
        return words


def main():
    program, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    walk = Walk(program, folder)
    try:
        walk.go()
    except Cannot as cannot:
        print("slow_job: skipped: %s" % cannot)
        sys.exit(77)
    finally:
        with open(os.path.join(folder, "facts.json"), "w") as file:
            json.dump(walk.facts, file, indent=1)


if __name__ == "__main__":
    main()
