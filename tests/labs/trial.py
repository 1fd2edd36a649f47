#!/usr/bin/env python3
"""Tries the labs of configs/labs by experiment, with plain runs: whether the planted cause is diagnosed, what each wrong
fix gains of what could be had, and whether the answer gains it.  It takes minutes and a quiet machine: not in `make check`.

    tests/labs/trial.py [--mlbench PROGRAM] [--seeds 3] [--rounds 3] [--prefix 'taskset -c 0,1'] [--asks] LAB.ini...

One line an arm; the last line is "N passed, N failed, N skipped", where each lab at each seed counts once.
"""
import argparse
import json
import math
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WRONG_MOST = 0.10  # of what could be had
BEST_LEAST = 0.70
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "%": 0.01, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1e3,
         "MB": 1e6, "KiB/s": 1024, "MiB/s": 1 << 20, "kB/s": 1e3, "MB/s": 1e6}


def key_types():
    types = {}
    for line in open(os.path.join(ROOT, "harness/config/keys.def"), encoding="utf-8"):
        match = re.match(r'KEY\(\w+, "(\w+)", "(\w+)", (\w+)', line)
        if match:
            types["%s.%s" % match.group(1, 2)] = match.group(3)
    return types


TYPES = key_types()


def is_storage(key):
    return key in ("dataset.container", "dataset.shard_samples", "dataset.format")


class Lab:
    """A file, its lines of [lab], and of its variants, if it has any."""

    def __init__(self, path):
        self.path, self.name, self.lines, self.variants, plain, into = path, os.path.basename(path)[:-4], [], {}, [], None
        for line in open(path, encoding="utf-8"):
            section = re.match(r"\[(.*)\]", line)
            if section:
                name = section.group(1)
                into = self.lines if name == "lab" else self.variants.setdefault(name[4:], []) if name.startswith("lab.") else None
            if into is None:
                plain.append(line)
            elif "=" in line and not line.lstrip().startswith("#"):
                key, text = line.split("=", 1)
                into.append((key.strip(), re.sub(r"\s[;#].*", "", text).strip()))
        self.text = "".join(plain)

    def all(self, word, variant):
        return [text for key, text in self.lines + self.variants.get(variant, []) if key == word]

    def one(self, word, variant, default=""):
        return (self.all(word, variant) or [default])[-1]


def amount(text, known):
    """The value of an expression; None if it is a word."""
    code = re.sub(r"(\d[\d.]*)(%s)(?![\w/])" % "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True)),
                  lambda m: "(%s*%r)" % (m.group(1), UNITS[m.group(2)]), text)
    code = re.sub(r"\b([a-z]+\.[a-z_]+)\b", lambda m: "known[%r]" % m.group(1), code)
    try:
        return float(eval(code, {"__builtins__": {}, "min": min, "max": max, "known": known, "cores": known["cores"]}))
    except (NameError, SyntaxError, KeyError, TypeError, ValueError):
        return None


def written(key, text, known):
    value = amount(text, known)
    kind = TYPES.get(key, "INTEGER")
    if value is None or kind in ("CHOICE", "BOOLEAN", "TEXT", "BATCH_TIME") and not (kind == "BATCH_TIME" and "@" not in text):
        return text
    known[key] = value
    if kind in ("DURATION", "BATCH_TIME"):
        return "%dns" % round(value * 1e9)
    return str(round(value)) if kind in ("INTEGER", "SIZE", "RATE") else repr(value)


def settings_of(text, known):
    pairs = (part.split("=", 1) for part in text.split(",") if part.strip())
    return {key.strip(): written(key.strip(), value.strip(), known) for key, value in pairs}


def draw(text, rng, known):
    if ".." in text:
        low, high = (amount(end.strip(), known) for end in text.split("..", 1))
        return repr(math.exp(rng.uniform(math.log(low), math.log(high))))
    return rng.choice([part.strip() for part in text.split("|")])


def plant(lab, seed):
    """The variant, and the settings that a seed draws."""
    rng = random.Random("%s %d" % (lab.name, seed))
    names = sorted(lab.variants)
    variant = names[seed % len(names)] if names else ""
    known = {"cores": len(os.sched_getaffinity(0))}
    base = {}
    for word in ("scale", "plant"):
        for line in lab.all(word, variant):
            key, text = (part.strip() for part in line.split("=", 1))
            base[key] = written(key, draw(text, rng, known) if word == "plant" else text, known)
    return variant, base, known


class Failed(Exception):
    pass


def measure(options, plain, settings, repeats):
    prefix = shlex.split(options.prefix)
    sets = {**settings, "measure.repeats": str(repeats), "measure.limits": "off"}
    cores = int(float(sets.pop("node.cores", "0")))
    if cores:
        prefix += ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))]
    swept = any(is_storage(key) for key in sets)
    command = prefix + [options.mlbench, "sweep" if swept else "run", plain, "--json", "--quiet"]
    for key, value in sets.items():
        command += ["--set", "%s%s=%s" % ("sweep." if is_storage(key) else "", key, value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=options.work, check=False)
    try:
        point = json.loads(done.stdout)["points"][0]
        if not point["throughput"]["median"]:  # one that was not steady has one
            raise Failed(point["error"] or "it is %s" % point["status"])
        return point
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Failed("%s: %s" % (" ".join(command), done.stderr.strip()[-300:] or done.stdout[-300:])) from error


def middle(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def arms_of(lab, variant, base, known, asks):
    """Each arm's settings: as it stands, the answer, and the wrong fixes."""
    best = {}
    for line in lab.all("best", variant):
        best.update(settings_of(line, known))
    arms = {"broken": dict(base), "best": {**base, **best}}
    for line in lab.all("wrong", variant):
        name, rest = line.split(",", 1)
        arms["wrong " + name.strip()] = {**base, **settings_of(rest.split(":", 1)[0], known)}
    for line in lab.all("ask", variant) if asks else []:
        parts = [part.strip() for part in line.split(":", 1)[0].split(",")]
        if parts[1] in ("rate", "device") and len(parts) > 2:
            arms["ask " + parts[0]] = {**base, **settings_of(",".join(parts[2:]), known)}
    return arms


def memory_growth(point):
    growth = point["diagnosis"].get("memory") or {}
    return growth


def trial(options, lab, plain, seed):
    variant, base, known = plant(lab, seed)
    causes = [cause.strip() for cause in lab.one("cause", variant).split("|")]
    arms = arms_of(lab, variant, base, known, options.asks)
    diagnosed = measure(options, plain, base, 3)
    verdict = diagnosed["verdict"]
    named = "%s/%s" % (verdict.get("stage"), verdict.get("resource"))
    found = named in causes
    print("%s seed %d%s: planted %s" % (lab.name, seed, variant and " (%s)" % variant,
                                        " ".join("%s=%s" % pair for pair in base.items())))
    print("  diagnosed %s at %s, wanted %s: %s" % (named, verdict.get("confidence"), " or ".join(causes), "yes" if found else "NO"))
    rates = {name: [] for name in arms}
    for turn in range(options.rounds):
        order = list(arms)
        random.Random(turn).shuffle(order)
        for name in order:
            rates[name].append(measure(options, plain, arms[name], 1)["throughput"]["median"])
    rate = {name: middle(values) for name, values in rates.items()}
    could = rate["best"] - rate["broken"]
    good = found and rate["best"] >= 1.15 * rate["broken"]
    for name, value in rate.items():
        share = (value - rate["broken"]) / could if could > 0 else float("nan")
        bad = name.startswith("wrong") and not share < WRONG_MOST
        good = good and not bad
        print("  %-28s %8.0f samples/s  %5.2f times  %4.0f %% of what could be had%s  (%s)" % (
            name, value, value / rate["broken"], 100 * share, "  TOO MUCH" if bad else "",
            " ".join("%.0f" % one for one in rates[name])))
    sys.stdout.flush()
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mlbench", default=os.environ.get("MLBENCH", os.path.join(ROOT, "build/release/mlbench")))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--asks", action="store_true")
    parser.add_argument("labs", nargs="+")
    options = parser.parse_args()
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("MLBENCH_TRIAL_DIR")) as work:
        options.work = work
        for path in options.labs:
            lab = Lab(path)
            if not lab.all("best", "") and not any(lab.all("best", name) for name in lab.variants):
                print("%s: skipped: it has no setting that is the answer" % lab.name)
                skipped += 1
                continue
            plain = os.path.join(work, lab.name + ".ini")
            with open(plain, "w", encoding="utf-8") as out:
                out.write(lab.text)
            for seed in range(options.first, options.first + options.seeds):
                try:
                    good = trial(options, lab, plain, seed)
                except Failed as error:
                    print("%s seed %d: cannot be measured: %s" % (lab.name, seed, error))
                    good = False
                passed, failed = passed + good, failed + (not good)
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
