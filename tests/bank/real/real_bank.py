#!/usr/bin/env python3
"""The bank of real plants: conditions made by other programs and by the kernel, each diagnosed with `mlbench diagnose
CONFIG` as a user would, whose truth was decided and checked without looking at the verdict.

    tests/bank/real/real_bank.py MLBENCH TOOLS [--half train|held-out|both] [--origin ours|foreign|varying|all] [--only NAME,…] …

TOOLS is the folder of slowfs and hog.  Exit status: 0 all bars are met, 1 one is missed, 2 wrong use, 3 nothing could
be planted here."""

import argparse
import collections
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from typing import Dict, List, Optional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bank
import labels
import real_plants as table
import real_score
import score
from conditions import Cannot, Site, Starter, sweep_leftovers
from real_plants import RealPlant, Seen
from runner import NOT_STEADY, WRONG_INPUT, Failed, Mistake, Runner, Settings, read_diagnosis, read_points

CASE_LIMIT_S = 240.0
ENOUGH_BATCHES = 10   # a throughput from fewer says little
PLAIN_S, FOLLOWED_S = 1.2, 2.0  # of a run that checks a label, and of one that a prediction is held to
LIMITS_CHECKED = 2    # times: a check that fails may have been disturbed
CANNOT = 3
SETTLED_S = 1.0       # after a change
LAST_S = 1.2          # of a run: what lasts has come by then
LASTS_WITHIN = 1.3    # times the throughput that what lasts gives by itself
FOLLOWED_MOST = 2     # recommendations of a case
NOT_FOLLOWED = ("control", "phases", "lasting", "ageing")  # a plain run is another time than the diagnosed one


class RealRunner(Runner):
    """Runs mlbench in a site, on a folder as it lies there."""

    deadline = 0.0
    site: Optional[Site] = None

    def read_defaults(self) -> Dict[str, Dict[str, object]]:
        return {}  # nothing is hidden: there is nothing to see

    def folder_of(self, settings: Settings) -> str:
        return settings["dataset.path"]

    def call(self, arguments, cores=None, timeout=CASE_LIMIT_S):
        left = self.deadline - time.monotonic() if self.deadline else timeout
        if left <= 0:
            raise Failed("the case took more than %.0f s" % CASE_LIMIT_S)
        return super().call(arguments, cores, min(timeout, left))

    def dataset(self, name: str) -> str:
        """The folder of a data set, made when it is missing."""
        settings = {"dataset.recipe": "photo", **table.DATA[name]}
        folder = Runner.folder_of(self, settings)
        if not os.path.exists(os.path.join(folder, "mlbench-manifest.jsonl")):
            entered, self.enter = self.enter, None
            done = Runner.call(self, ["gen", *self.arguments({**settings, "dataset.path": folder}, "")[1:2],
                                      *[word for key, value in settings.items() for word in ("--set", key + "=" + value)], "--set", "dataset.path=" + folder])
            self.enter = entered
            if done.returncode:
                raise Mistake("mlbench gen: %s" % done.stderr.strip()[-400:])
        return folder

    def diagnose_here(self, settings: Settings) -> dict:
        """What a user gets: the verdict of summary.json, and the repetitions it stands on."""
        self.count += 1
        folder = os.path.join(self.work, "run-%04d" % self.count)
        began = time.monotonic()
        done = self.call(["diagnose", *self.arguments(settings, folder)[1:]])
        seconds = time.monotonic() - began
        if done.returncode not in (0, NOT_STEADY):
            kind = Mistake if done.returncode == WRONG_INPUT else Failed
            raise kind("mlbench diagnose: exit status %d: %s" % (done.returncode, done.stderr.strip()[-400:]))
        with open(os.path.join(folder, "summary.json")) as file:
            point = json.load(file)["points"][0]
        repetitions = [one for one in read_points(folder)[1] if one.get("throughput")]
        if not repetitions:
            raise Failed("mlbench diagnose: nothing was measured")
        document = {**(point["diagnosis"] or {}), "verdict": point["verdict"] or {"stage": "none", "resource": "unknown", "confidence": 0}}
        verdict = read_diagnosis(document, done.returncode == NOT_STEADY)
        return {"verdict": verdict, "repetitions": repetitions, "folder": folder, "seconds": seconds}

    def foretell(self, folder: str, settings: Settings) -> Optional[dict]:
        """What `mlbench what-if` predicts of other settings; None: nothing."""
        done = self.call(["what-if", folder, "--json", *[word for key, value in settings.items() for word in ("--set", key + "=" + value)]])
        if done.returncode == WRONG_INPUT:
            raise Mistake("mlbench what-if: %s" % done.stderr.strip()[-400:])
        told = json.loads(done.stdout)["alternatives"] if done.returncode == 0 else []
        if not told or not told[0]["throughput"]:
            return None
        return {"from": "what-if", "settings": settings, "predicted": told[0]["throughput"], "interval": told[0]["interval90"]}


def seen_by(measured: dict, cores: int) -> Seen:
    """What the run without the limit used: the plants are made to its measure."""
    decode = next(stage for stage in measured["stages"] if stage["name"] == "decode")
    return Seen(throughput=measured["throughput"], file_bytes=measured.get("file_bytes_mean") or labels.mean_file_bytes(measured), cores=cores,
                decode_s=decode["seconds"][1] / max(1, decode["items"]), cpu_cores=(measured.get("cpu_seconds") or 0) / measured["wall_seconds"],
                resident=measured["rss_peak_bytes"])


def planted_throughput(plant: RealPlant, repetitions: List[dict]) -> float:
    """What the plant left: of a change what came after it, and of what comes and goes, all repetitions together: nothing is
    cut off as warm-up."""
    if plant.kind in ("phases", "lasting"):
        last = repetitions[-1]
        begin = plant.changes_at + SETTLED_S if plant.kind == "phases" else last["wall_seconds"] - LAST_S
        return max(labels.rate_between(last, begin / last["wall_seconds"], 1.0), 1e-9)
    if plant.kind in ("stalls", "outage"):
        samples = sum(one["wall_seconds"] * labels.rate_between(one, 0.0, 1.0) for one in repetitions)
        return max(samples, 1e-9) / sum(one["wall_seconds"] for one in repetitions)
    return statistics.median(one["throughput"] for one in repetitions)


def step_used(repetitions: List[dict]) -> str:
    """'' or why a run is not called healthy."""
    used = statistics.median(one["step_utilisation"] or 0.0 for one in repetitions)
    return "" if used >= bank.HEALTHY_USE else "the device was used %.0f %% only" % (100 * used)


def key_of(case: dict) -> tuple:
    return case["plant"], case["intensity"], case["seed"]


class RealBank:
    def __init__(self, runner: RealRunner, options: argparse.Namespace):
        self.runner, self.options = runner, options
        self.cores = len(os.sched_getaffinity(0))
        self.seen: Dict[str, Seen] = {}
        self.checked: Dict[tuple, dict] = {key_of(case): case for case in read_result(options.checked)["cases"]} if options.checked else {}

    # --- runs ----------------------------------------------------------------------------------------

    def site(self, plant: RealPlant, intensity: float) -> Site:
        return Site(os.path.abspath(self.options.tools), self.runner.dataset, self.runner.work, "%s:%d:%g" % (plant.name, plant.drawn_by(), intensity))

    def inside(self, site: Site, run):
        """run() with the program in the site; a condition in its midst counts from the beginning of its result."""
        self.runner.enter = site.enter
        points = os.path.join(self.runner.work, "run-%04d" % (self.runner.count + 1), "points.jsonl")
        try:
            with Starter(site, points):
                return run()
        finally:
            self.runner.enter = None

    def plain(self, plant: RealPlant, intensity: float, loss: Optional[float], seen: Optional[Seen], rate: float = 0, more: Settings = {},
              least_s: float = PLAIN_S) -> dict:
        """One repetition of what lasts, long enough for the rate that is expected."""
        with self.site(plant, intensity) as site:
            settings = {**(plant.lasts or plant.build)(site, loss, seen), **more}
            batch = int(settings.get("batch.size", table.BATCH))
            length = max(least_s, ENOUGH_BATCHES * batch / rate) if rate else least_s
            short = {"measure.repeats": "1", "measure.warmup": "400ms", "measure.duration": "%dms" % (1000 * length), "measure.limits": "off"}
            measured = self.inside(site, lambda: self.runner.measure({**settings, **short}))
            shutil.rmtree(measured["folder"], ignore_errors=True)
            return measured

    def before(self, plant: RealPlant, intensity: float, again: bool = False) -> Seen:
        if again or plant.name not in self.seen:
            self.seen[plant.name] = seen_by(self.plain(plant, intensity, None, None), self.cores)
        return self.seen[plant.name]

    # --- one case --------------------------------------------------------------------------------------

    def new_case(self, plant: RealPlant, intensity: float) -> dict:
        return {"plant": plant.name, "family": plant.family, "kind": plant.kind, "origin": plant.origin, "intensity": intensity,
                "seed": plant.drawn_by(), "half": table.half_of(plant.name, plant.seed), "truth": [list(pair) for pair in plant.truth], "why": plant.why, "full": plant.full,
                "also": None, "valid": False, "why_invalid": "", "skipped": "", "throughput": {}, "verdict": None, "gain": 1.0, "predictions": [],
                "rules": {}}

    def diagnose(self, plant: RealPlant, case: dict, seen: Optional[Seen]) -> List[dict]:
        with self.site(plant, case["intensity"]) as site:
            settings = plant.build(site, case["intensity"], seen)
            told = self.inside(site, lambda: self.runner.diagnose_here(settings))
        case["settings"], case["verdict"], case["verdict_s"] = settings, told["verdict"], told["seconds"]
        case["gain"] = real_score.promised(told["verdict"], statistics.median(one["throughput"] for one in told["repetitions"]))
        case["disturbed"] = max(labels.cores_lost(one, self.cores) for one in told["repetitions"])
        if self.options.advice and plant.flight and plant.kind == "single":
            case["predictions"] += filter(None, [self.runner.foretell(told["folder"], plant.flight)])
        if self.options.keep:
            case["folder"] = told["folder"]
        else:
            shutil.rmtree(told["folder"], ignore_errors=True)
        return told["repetitions"]

    def turned(self, plant: RealPlant, case: dict, seen: Seen) -> float:
        loss = case["intensity"] / 2 if plant.turn == "double" else None
        with_store = seen if plant.turn == "remove" and plant.family in ("external", "cache") else None
        return self.plain(plant, case["intensity"], loss, seen if loss else with_store,
                          min(seen.throughput, 2 * case["throughput"]["planted"]))["throughput"]

    def check(self, plant: RealPlant, case: dict) -> str:
        """'' or why the label does not hold.  What was disturbed is measured once more."""
        why = ""
        for attempt in range(LIMITS_CHECKED):
            seen = self.before(plant, case["intensity"], again=attempt > 0)
            rates = case["throughput"]
            rates.pop("flight", None)
            rates["healthy"], rates["turned"] = seen.throughput, self.turned(plant, case, seen)
            why = self.label(plant, case)
            if not why and plant.flight:
                rates["flight"] = self.plain(plant, case["intensity"], case["intensity"], seen, rates["planted"], plant.flight)["throughput"]
                why = self.label(plant, case)
            if not why:
                return ""
        return why

    def label(self, plant: RealPlant, case: dict) -> str:
        rates = case["throughput"]
        case["loss"] = rates["healthy"] / rates["planted"]
        why = real_score.check_turn(plant.turn, rates)
        return why or (real_score.check_flight(bool(plant.full), plant.flight_factor, rates) if "flight" in rates else "")

    def healthy(self, plant: RealPlant, case: dict, known: Optional[dict]) -> None:
        case["loss"] = 1.0
        if not self.options.checks_only:
            repetitions = self.diagnose(plant, case, None)
        if self.options.checks_only or (plant.lasts and not known):
            repetitions = [self.plain(plant, case["intensity"], case["intensity"], None)]
        case["why_invalid"] = "" if known and plant.lasts else step_used(repetitions)

    def planted(self, plant: RealPlant, case: dict, known: Optional[dict]) -> None:
        """The diagnosis of the plant, and whether its label holds: checked now, or before where that was saved."""
        seen = Seen(**known["seen"]) if known else self.before(plant, case["intensity"])
        case["seen"] = vars(seen)
        rates = case["throughput"]
        repetitions = [] if self.options.checks_only else self.diagnose(plant, case, seen)
        by_itself = self.options.checks_only and plant.kind not in ("phases", "stalls", "outage")
        if known:
            rates.update(known["throughput"])
        if not known and (by_itself or plant.lasts):
            rates["planted"] = self.plain(plant, case["intensity"], case["intensity"], seen, seen.throughput / case["intensity"])["throughput"]
        elif not plant.lasts:
            rates["planted"] = planted_throughput(plant, repetitions or self.whole_run(plant, case, seen))
        case["why_invalid"] = self.label(plant, case) if known else self.check(plant, case)
        if plant.kind == "lasting" and repetitions and not case["why_invalid"]:
            came = planted_throughput(plant, repetitions)
            case["why_invalid"] = "" if came <= LASTS_WITHIN * rates["planted"] else "what lasts did not come in the run"
        if plant.kind == "phases" and repetitions:
            case["phases_right"] = real_score.changes_right(case, plant.changes_at, plant.before)
        if self.options.advice and repetitions:
            self.follow(plant, case, seen)

    def whole_run(self, plant: RealPlant, case: dict, seen: Seen) -> List[dict]:
        """Of a condition in the midst of a run, without a diagnosis."""
        with self.site(plant, case["intensity"]) as site:
            settings = {"measure.repeats": "2", **plant.build(site, case["intensity"], seen), "measure.limits": "off"}
            measured = self.inside(site, lambda: self.runner.measure(settings))
            repetitions = read_points(measured["folder"])[1]
            shutil.rmtree(measured["folder"], ignore_errors=True)
            return repetitions

    def follow(self, plant: RealPlant, case: dict, seen: Seen) -> None:
        """What was predicted, and what comes of it."""
        rates = case["throughput"]
        for told in case["predictions"]:  # by what-if, for the check of files in flight
            told["measured"] = rates.get("flight")
        advised = [one for one in case["verdict"]["recommendations"] if one.get("predicted") and one.get("settings")]
        for advice in advised[:0 if plant.kind in NOT_FOLLOWED else FOLLOWED_MOST]:
            settings = dict(setting.split("=", 1) for setting in advice["settings"])
            told = {"from": "advice", "settings": settings, "predicted": advice["predicted"], "interval": advice.get("interval"), "measured": None}
            try:
                told["measured"] = self.plain(plant, case["intensity"], case["intensity"], seen, rates["planted"], settings, FOLLOWED_S)["throughput"]
            except (Failed, Mistake) as failure:
                told["failure"] = str(failure)
            case["predictions"].append(told)
        for told in case["predictions"]:
            told["before"] = rates["planted"]

    def attempt(self, plant: RealPlant, intensity: float) -> dict:
        began = time.monotonic()
        self.runner.deadline = began + CASE_LIMIT_S
        case = self.new_case(plant, intensity)
        known = self.checked.get(key_of(case))
        try:
            if known and (known["skipped"] or not known["valid"]):
                case["skipped"], case["why_invalid"] = known["skipped"], known["why_invalid"]
            else:
                (self.healthy if plant.kind == "control" else self.planted)(plant, case, known)
        except Cannot as reason:
            case = {**self.new_case(plant, intensity), "skipped": str(reason)}
        except (Failed, Mistake, OSError) as failure:
            case = {**self.new_case(plant, intensity), "why_invalid": " ".join(str(failure).split())}
        else:
            case["valid"] = not case["why_invalid"] and not case["skipped"]
        case["seconds"] = time.monotonic() - began
        return case


def read_result(path: str) -> dict:
    with open(os.path.join(path, "bank.json") if os.path.isdir(path) else path) as file:
        return json.load(file)


# --- the command ------------------------------------------------------------------------------------------------


def parse(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="plants real bottlenecks and scores what mlbench diagnose says of them")
    parser.add_argument("program", nargs="?", help="the built mlbench")
    parser.add_argument("tools", nargs="?", help="folder of slowfs and hog")
    parser.add_argument("--half", choices=("train", "held-out", "both"), default="train", help="which cases (default: train)")
    parser.add_argument("--only", default="", help="names of plants or families, separated by commas")
    parser.add_argument("--origin", choices=("ours", "foreign", "varying", "all"), default="all", help="which plants: ours, those of an author who has "
                        "not seen the rules, or those of what varies with time, files, cores (default: all)")
    parser.add_argument("--seed", type=int, help="draws halves, intensities and parameters (default: each plant's own)")
    parser.add_argument("--draw", type=int, metavar="N", help="draws intensities and parameters alone: the same halves, other plants")
    parser.add_argument("--advice", action="store_true", help="measure what was predicted: of recommendations, and of other files in flight")
    parser.add_argument("--checks-only", action="store_true", help="check the labels and diagnose nothing")
    parser.add_argument("--checked", default="", metavar="RESULT", help="labels that were checked here before, with --checks-only")
    parser.add_argument("--time-limit", type=float, default=0, help="seconds after which no case begins (0: none)")
    parser.add_argument("--data", default="build/bank-data", help="folder for the data sets; on a disk, for plants of disks")
    parser.add_argument("--out", default="", help="folder of bank.json and bank.md (default: results/bank-real/TIME)")
    parser.add_argument("--keep", action="store_true", help="keep the results of the planted runs")
    parser.add_argument("--report-only", action="store_true", help="exit 0 whatever the score")
    parser.add_argument("--score", default="", metavar="RESULT", help="score a saved bank again, and run nothing")
    parser.add_argument("--list", action="store_true", help="list the plants of the half, with their truths")
    options = parser.parse_args(arguments)
    if not (options.list or options.score) and not options.tools:
        parser.error("which mlbench, and which folder of tools?")
    return options


def chosen(options: argparse.Namespace) -> List[RealPlant]:
    listed = table.real_plants()
    names = [name for name in options.only.split(",") if name]
    unknown = [name for name in names if not any(name in (plant.name, plant.family) for plant in listed)]
    if unknown:
        raise Mistake("no such plant or family: %s (--list --half both names them)" % ", ".join(unknown))
    for plant in listed:
        plant.seed = plant.seed if options.seed is None else options.seed
        plant.drawn = options.draw
    in_half = [plant for plant in listed if options.half in ("both", table.half_of(plant.name, plant.seed))]
    in_half = [plant for plant in in_half if options.origin in ("all", plant.origin)]
    return [plant for plant in in_half if not names or plant.name in names or plant.family in names]


def in_turn(plants: List[RealPlant]) -> List[RealPlant]:
    """One of each family after another, so that a limit of time leaves some of all."""
    count: Dict[str, int] = collections.Counter()
    places = {}
    for plant in plants:
        places[plant.name] = count[plant.family]
        count[plant.family] += 1
    return sorted(plants, key=lambda plant: places[plant.name])


def print_list(options: argparse.Namespace) -> None:
    for plant in chosen(options):
        print("%-22s %-9s x%.2f x%.2f  %s" % (plant.name, table.half_of(plant.name, plant.seed), *table.intensities_of(plant),
                                             " or ".join(score.name_of(pair) for pair in plant.truth)))
        print("    %s%s" % (plant.what, "; " + plant.why if plant.why else ""))


def measure_all(real: RealBank, folder: str) -> dict:
    options, began = real.options, time.monotonic()
    cases: List[dict] = []
    result = real_score.scored(cases, real.cores, bank.cpu_name(), 0.0)
    for plant in in_turn(chosen(options)):
        for intensity in table.intensities_of(plant):
            if options.time_limit and time.monotonic() - began > options.time_limit:
                print("the time limit of %.0f s ends the bank here" % options.time_limit)
                return result
            cases.append(real.attempt(plant, intensity))
            print(real_score.case_line(cases[-1]), flush=True)
            result = real_score.scored(cases, real.cores, bank.cpu_name(), time.monotonic() - began)
            bank.save(folder, result, real_score.document)
    return result


def finish(options: argparse.Namespace, result: dict) -> int:
    print()
    print(real_score.terminal(result))
    planted = [case for case in result["cases"] if not case["skipped"]]
    if not planted:
        print("nothing could be planted here")
        return CANNOT
    failed = bool(score.missed(result["bars"])) or not score.valid(planted)
    return 1 if failed and not options.report_only else 0


def end_by_signal(number: int, _frame) -> None:
    """Once, so that what was planted is taken away in peace."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    sys.exit(128 + number)


def main(arguments: List[str]) -> int:
    options = parse(arguments)
    if options.list:
        print_list(options)
        return 0
    if options.score:
        old = read_result(options.score)
        return finish(options, real_score.scored(old["cases"], old["cores"], old["cpu"], old["seconds"]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_by_signal)
    sweep_leftovers()
    folder = options.out or os.path.join("results", "bank-real", time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    work = tempfile.mkdtemp(prefix="mlbench-bank-real-%d-" % os.getpid())
    try:
        result = measure_all(RealBank(RealRunner(options.program, options.data, work), options), folder)
        print("\nsaved in %s" % folder)
        return finish(options, result)
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        sys.exit("bank: %s" % mistake)
