#!/usr/bin/env python3
"""The public cases (configs/cases/): does the verdict name the cause, does the fix gain what is predicted, do the decoys gain
nothing?  Each case is diagnosed, then measured in turns with its decoys and its fix, quiet and beside one busy core.

    tests/bank/cases.py PROGRAM [--only NAME ...] [--blocks N] [--beside quiet,busy,any] [--out FILE.json] [--page FILE.md]

Right is: one of the case's stages, and of its resources; beside a busy core "external" is right, too, of that stage. A run that
was to be quiet and has that verdict was not, and is not scored. --beside any plants nothing, on a machine that others use.
Predicted is what `mlbench what-if` says of the fix; where that does not model a key, the throughput of the next bottleneck in
the diagnosis, and the report says "next". A decoy gains nothing if by the measured 95 % interval it may gain less than 5 %.
--page replaces what that page says of the cases that ran. --from FILE.json takes earlier results instead of measuring. Exit
status: 0 all, 1 one is missed, 3 a case could not be run."""

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "real"))
import conditions  # noqa: E402

GAINS = 1.05          # from here on a decoy would be a fix
QUIET_MOST = 0.2      # cores that others keep busy
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36}
SHORT = {"measure.warmup": "400ms", "measure.duration": "1200ms"}   # of a run, where the case does not say
SPREAD_LEAST = 0.01   # of a ratio of two runs, in ln: two that agree by chance show no smaller one

Cannot = conditions.Cannot


class Bank:
    def __init__(self, program, work, blocks, draw):
        self.program, self.work, self.blocks, self.draw = os.path.abspath(program), work, blocks, draw
        self.others = []   # cores that other processes kept busy, of each run
        self.environment = dict(os.environ, MLBENCH_DATA=os.path.join(work, "data"))

    def call(self, *words, good=(0,), timeout=240):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, timeout=timeout, env=self.environment, cwd=self.work)
        if done.returncode not in good:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise Cannot("%s: exit %d: %s" % (words[0], done.returncode, " ".join(last)))
        return json.loads(done.stdout) if done.stdout.startswith("{") else None

    def measure(self, case, settings):
        """Samples/s of one short run."""
        out = os.path.join(self.work, "one")
        shutil.rmtree(out, ignore_errors=True)
        stored = any(key.startswith("dataset.") for key in settings)   # another form of the data set, which only a sweep keeps apart
        words = [word for key, value in dict(case["short"], **settings).items()
                 for word in ("--set", "%s%s=%s" % ("sweep." if key.startswith("dataset.") else "", key, value))]
        self.call("sweep" if stored else "run", case["path"], "--quiet", "--out", out, *words, good=(0, 3))
        with open(os.path.join(out, "points.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        found = [line["throughput"] for line in lines if line.get("kind") == "repetition" and line.get("throughput")]
        if not found:
            raise Cannot("run: nothing was measured")
        self.others += [line["cores_busy_outside"] for line in lines if line.get("kind") == "repetition" and line.get("cores_busy_outside") is not None]
        return found[-1]

    def ratios(self, case, sides):
        """For each side its throughput over that of the first one, in turns: (geometric mean, low, high)."""
        logs = {name: [] for name in sides}
        for _ in range(self.blocks):
            order = list(sides)
            self.draw.shuffle(order)
            for name in order + order[::-1]:
                logs[name].append(math.log(self.measure(case, sides[name])))
        first = next(iter(sides))
        out = {}
        for name in sides:
            each = [a - b for a, b in zip(logs[name], logs[first])]
            spread = max(statistics.stdev(each) if len(each) > 1 else 0, SPREAD_LEAST)
            half = T95.get(len(each) - 1, 2.2) * spread / math.sqrt(len(each)) if len(each) > 1 else 4 * spread
            middle = statistics.mean(each)
            out[name] = tuple(math.exp(middle + part) for part in (0, -half, half))
        return out, math.exp(statistics.mean(logs[first]))

    def predicted(self, folder, diagnosis, settings):
        """(low, high, by): the predicted gain, as a factor."""
        words = [word for pair in settings.items() for word in ("--set", "%s=%s" % pair)]
        try:
            told = self.call("what-if", folder, "--json", *words)
        except Cannot as why:
            ladder = diagnosis["ladder"]
            if "cannot be predicted" not in str(why) or len(ladder) < 2:
                return None, str(why)
            gain = ladder[1]["throughput"] / ladder[0]["throughput"]
            return (gain / 1.1, gain * 1.1, "next"), None
        row = told["alternatives"][0]
        factor = 1 + row["gain"]
        return tuple(factor * edge / row["throughput"] for edge in row["interval90"]) + ("what-if",), None

    def score(self, case, beside):
        """One case in one surrounding."""
        folder, self.others = os.path.join(self.work, "diagnosed"), []
        shutil.rmtree(folder, ignore_errors=True)
        diagnosis = self.call("diagnose", case["path"], "--json", "--out", folder, good=(0, 3))
        if "verdict" not in diagnosis:
            raise Cannot("diagnose: " + str(diagnosis.get("error")))
        keys = {row["key"] for row in self.call("check", case["path"], "--json")["twin"]["keys"]}
        case["short"] = dict({} if "measure.duration" in keys else SHORT, **{"measure.repeats": "1"})
        verdict = diagnosis["verdict"]
        stages, resources = case["cause"]["stage"].split(" or "), case["cause"]["resource"].split(" or ")
        disturbed = verdict["stage"] in stages and verdict["resource"] == "external"
        if disturbed and beside == "quiet":
            raise Cannot("other processes use the cores: " + diagnosis["sentence"])
        right = disturbed or (verdict["stage"] in stages and verdict["resource"] in resources)
        sides = {"as it is": {}}
        for i, decoy in enumerate(case["decoys"]):
            sides["decoy %d" % i] = settings_of([decoy])
        for i in range(len(case["fixes"])):
            sides["fix %d" % i] = settings_of(case["fixes"][:i + 1])
        ratios, rate = self.ratios(case, sides)
        row = {"case": case["name"], "sentence": diagnosis["sentence"], "beside": beside, "others": statistics.median(self.others), "told": "%s/%s" % (verdict["stage"], verdict["resource"]),
               "confidence": verdict["confidence"], "right": right, "cause": "%(stage)s/%(resource)s" % case["cause"], "rate": rate, "decoys": [], "fixes": [],
               "phases": [(phase.get("stage"), phase.get("resource")) for phase in diagnosis.get("phases") or []]}
        for i, decoy in enumerate(case["decoys"]):
            gain, low, high = ratios["decoy %d" % i]
            row["decoys"].append({"set": settings_of([decoy]), "gain": gain, "low": low, "high": high, "nothing": low < GAINS})
        for i, fix in enumerate(case["fixes"]):
            gain, low, high = ratios["fix %d" % i]
            told, why = self.predicted(folder, diagnosis, settings_of(case["fixes"][:i + 1]))
            row["fixes"].append({"set": settings_of(case["fixes"][:i + 1]), "gain": gain, "low": low, "high": high, "reported": fix["gained"],
                                 "predicted": told, "why_not": why, "kept": told is not None and low <= told[1] and high >= told[0]})
        return row


def settings_of(changes):
    return {row["key"]: row["value"] for change in changes for row in change["keys"]}


@contextlib.contextmanager
def busy(kind):
    """One core that a program of somebody else's keeps busy."""
    if kind != "busy":
        yield
        return
    core = str(max(os.sched_getaffinity(0)))
    hog = subprocess.Popen(["taskset", "-c", core, "sh", "-c", "while :; do :; done"], preexec_fn=conditions.dies_with_parent)
    try:
        yield
    finally:
        conditions.end(hog)


def words_of(row):
    text = "%-18s %-5s %.1f  %-5s %-24s %.2f" % (row["case"].split("/")[-1], row["beside"], row["others"], "right" if row["right"] else "WRONG",
                                           row["told"], row["confidence"] or 0)
    for decoy in row["decoys"]:
        text += "  decoy %.2f (%.2f-%.2f)%s" % (decoy["gain"], decoy["low"], decoy["high"], "" if decoy["nothing"] else " GAINS")
    for fix in row["fixes"]:
        told = fix["predicted"]
        text += "  fix %.2f (%.2f-%.2f), predicted %s%s" % (fix["gain"], fix["low"], fix["high"],
                                                           "%.2f-%.2f%s" % (told[0], told[1], "" if told[2] == "what-if" else " (next)") if told
                                                           else "nothing: " + fix["why_not"], "" if fix["kept"] or not told else " MISSED")
    return text + ("" if row["right"] else "  truth: " + row["cause"])


def span(middle, low, high):
    return "%.2f (%.2f to %.2f)" % (middle, low, high)


def where(row):
    """How busy others kept the cores, the planted hog included."""
    others = row.get("others")
    return "beside other jobs" if others is None else "quiet" if others <= QUIET_MOST else "beside %.1f busy cores" % others


def of_settings(settings):
    return "`%s`" % " ".join("%s=%s" % pair for pair in settings.items())


def section_of(case, rows):
    """What a page says of a case, by its rows: one for each surrounding."""
    def say(*sentences, first="", indent=""):
        return textwrap.fill(" ".join(sentences), 100, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    name = case["name"].split("/")[-1]
    out = ["### %s: %s" % (name, case["source"]), "", say(case["reported"].replace("\n", " ")), ""]
    for i, decoy in enumerate(case["decoys"]):
        told = ", ".join("%s %s" % (where(row), span(*(row["decoys"][i][k] for k in ("gain", "low", "high")))) for row in rows)
        out.append(say("No help: %s, %s." % (of_settings(settings_of([decoy])), decoy["text"]), *(["Measured, times as fast: %s." % told] if rows else []),
                       first="- ", indent="  "))
    verdicts = ["`mlbench diagnose cases/%s`: *%s*" % (name, row["sentence"].rstrip()) if row is rows[0] else
                "%s%s: `%s` (%.0f %%)." % (where(row)[:1].upper(), where(row)[1:], row["told"], 100 * row["confidence"]) for row in rows]
    out.append(say("Cause: `%(stage)s/%(resource)s`." % case["cause"], *(verdict + ("" if row["right"] else " **This is wrong.**")
                   for verdict, row in zip(verdicts, rows)), first="- ", indent="  "))
    for i, fix in enumerate(case["fixes"]):
        told = []
        for row in rows:
            found = row["fixes"][i]
            guess = found["predicted"]
            told.append("%s predicted %s, measured %s%s" % (
                where(row), "%.2f to %.2f" % tuple(guess[:2]) if guess else "nothing", span(*(found[k] for k in ("gain", "low", "high"))),
                "" if found["kept"] else " (**missed**)" if guess else ""))
        told += ["the report %g" % fix["gained"]] if fix["gained"] else []
        out.append(say("Fix: %s, %s." % (of_settings(settings_of([fix])), fix["text"]), *(["Times as fast: %s." % "; ".join(told)] if told else []),
                       first="- ", indent="  "))
    return "\n".join(out) + "\n"


def write_page(path, cases, rows):
    with open(path, encoding="utf-8") as file:
        head, *parts = re.split(r"(?m)^(?=### )", file.read())
    told = {re.match(r"### (\w+)", part).group(1): part.rstrip("\n") + "\n" for part in parts}
    names = {case["name"].split("/")[-1]: case for case in cases}
    for name, case in names.items():
        own = [row for row in rows if row["case"] == case["name"]]
        if own or name not in told:
            told[name] = section_of(case, own)
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + "\n".join(told[name] for name in sorted(names)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--beside", default="quiet,busy")
    parser.add_argument("--draw", type=int, default=1)
    parser.add_argument("--out")
    parser.add_argument("--page")
    parser.add_argument("--from", dest="earlier")
    args = parser.parse_args()
    rows, cannot = [], []
    if args.earlier:
        with open(args.earlier) as file:
            rows = json.load(file)
    with tempfile.TemporaryDirectory(prefix="mlbench-cases-") as work:
        bank = Bank(args.program, work, args.blocks, random.Random(args.draw))
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        done = subprocess.run([bank.program, "list", "cases", "--json"], capture_output=True, text=True, check=True, cwd=here)
        cases = json.loads(done.stdout)["cases"]
        for case in cases:
            case["path"] = os.path.join(here, case["path"]) if "path" in case else ""
            if args.earlier or (args.only and case["name"].split("/")[-1] not in args.only.split(",")):
                continue
            for beside in args.beside.split(","):
                try:
                    if case["unavailable"]:
                        raise Cannot(case["unavailable"])
                    with busy(beside):
                        row = bank.score(case, beside)
                except (Cannot, subprocess.TimeoutExpired, OSError) as why:
                    cannot.append(case["name"])
                    print("%-18s %-5s cannot: %s" % (case["name"].split("/")[-1], beside, why), flush=True)
                    continue
                rows.append(row)
                print(words_of(row), flush=True)
                if args.out:
                    with open(args.out, "w") as file:
                        json.dump(rows, file, indent=1)
    if args.page:
        write_page(args.page, cases, rows)
    decoys = [decoy for row in rows for decoy in row["decoys"]]
    fixes = [fix for row in rows for fix in row["fixes"]]
    told = [fix for fix in fixes if fix["predicted"]]
    right, refused, kept = sum(row["right"] for row in rows), sum(decoy["nothing"] for decoy in decoys), sum(fix["kept"] for fix in fixes)
    print("cases: cause right in %d of %d, %d of %d decoys gain nothing, %d of %d fixes as predicted, %d of which nothing is predicted, cannot: %s" % (
        right, len(rows), refused, len(decoys), kept, len(told), len(fixes) - len(told), ", ".join(cannot) or "none"))
    if cannot or not rows:
        return 3
    return 0 if right == len(rows) and refused == len(decoys) and kept == len(told) else 1


if __name__ == "__main__":
    sys.exit(main())
