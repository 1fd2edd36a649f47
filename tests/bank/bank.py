#!/usr/bin/env python3
"""The bank of planted bottlenecks: plants a known limit, has the result diagnosed by one that never sees the label,
takes the plant away again to see whether the label was true, and scores the answers.  --quick is the gate of a check:
plants of 4 x and controls, once (gate.py says what happens to what is not right).

    tests/bank/bank.py MLBENCH [--quick] [--only NAME,…] [--intensities 1.5,4] [--seeds 3] …

Exit status: 0 all bars are met, 1 one is missed (or, with --quick, an answer was wrong twice), 2 wrong use, 3 no device for --device."""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Callable, Dict, List, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import device_plants
import gate
import labels
import plants as table
import report
import rules
import score
from runner import Failed, Mistake, Runner

REFINEMENTS = 3       # corrections of a plant's strength
DISTURBED_CORES = 0.3 # unless --disturbed says otherwise: kept busy from outside while nothing of ours does
HEALTHY_USE = 0.95    # of the device's time, in a run that is to be called healthy
CANNOT = 3             # exit status: no device
QUICK_INTENSITY = 4.0
QUICK_PLAIN = "1s"     # how long a run takes that nobody diagnoses


class Bank:
    def __init__(self, runner: Runner, options: argparse.Namespace):
        self.runner = runner
        self.options = options
        self.cores = len(os.sched_getaffinity(0))
        self.plain_runs: Dict[str, dict] = {}  # quick: the latest by configuration and seed

    # --- running -------------------------------------------------------------------------------------

    def run(self, settings: dict, seed: int, cores: Optional[int] = None) -> dict:
        return self.runner.measure({**settings, "run.seed": str(seed)}, cores=cores)

    def before(self, plant: table.Plant, seed: int) -> dict:
        """The run that a plant is made for.  The quick bank diagnoses none without a plant: throughput is all that it needs of
        them, so they are short, and what came after one plant's removal is what was there before the next."""
        known = self.plain_runs.get(self.plain_key(plant, seed)) if self.options.quick else None
        return known or self.without(plant, seed, self.options.quick)

    def without(self, plant: table.Plant, seed: int, short: bool) -> dict:
        measured = self.run({**plant.base, "measure.duration": QUICK_PLAIN} if short else plant.base, seed)
        if short:
            self.plain_runs[self.plain_key(plant, seed)] = measured
        return measured

    def plain_key(self, plant: table.Plant, seed: int) -> str:
        return json.dumps([sorted({**plant.base, "measure.duration": ""}.items()), seed])

    def healthy(self, plant: table.Plant, measured: dict) -> table.Healthy:
        decode = next(stage for stage in measured["stages"] if stage["name"] == "decode")
        return table.Healthy(
            throughput=measured["throughput"],
            file_bytes=measured.get("file_bytes_mean") or labels.mean_file_bytes(measured),
            cores=self.cores,
            decode_s=decode["seconds"][1] / max(1, decode["items"]),
        )

    def planted(self, plant: table.Plant, intensity: float, seed: int, healthy: table.Healthy) -> dict:
        """The planted run, with the strength corrected until it loses about what it should."""
        aim = intensity
        for attempt in range(REFINEMENTS + 1):
            keys = plant.keys(aim, healthy)
            cores = plant.cores(aim, self.cores) if plant.cores else None
            measured = self.run({**plant.base, **keys}, seed, cores)
            measured["keys"] = keys
            if plant.kind not in ("single", "phases") or plant.least_loss or attempt == REFINEMENTS:
                return measured
            loss = self.loss(plant, healthy.throughput, measured)
            if labels.close(loss, intensity, labels.LABEL_SLACK if self.options.quick else 1):
                return measured
            shutil.rmtree(measured["folder"], ignore_errors=True)
            aim = labels.corrected(aim, intensity, loss)
        raise AssertionError

    def loss(self, plant: table.Plant, without: float, measured: dict) -> float:
        if plant.kind == "phases":
            return without / max(labels.rate_in_middle(measured), 1e-9)
        return without / measured["throughput"]

    # --- labels --------------------------------------------------------------------------------------

    def disturbance(self, case: dict) -> str:
        """'' or who else was at work: then nobody knows what the limit was, whatever was planted."""
        busy = case.get("disturbed") or 0.0
        return "others took %.1f cores" % busy if busy > self.options.disturbed else ""

    def check_label(self, plant: table.Plant, case: dict, healthy: table.Healthy, measured: dict, removed: dict) -> str:
        """'' or why the label does not hold."""
        if plant.kind == "pair":
            return self.check_pair(plant, case, healthy, measured)
        case["throughput"]["removed"] = removed["throughput"]
        if plant.kind == "leak":
            return labels.check_leak(measured, removed)
        before, after = healthy.throughput, removed["throughput"]
        now = labels.rate_in_middle(measured) if plant.kind == "phases" else measured["throughput"]
        case["loss"] = after / now
        case["returned"] = (after - now) / (before - now) if before > now else 0.0
        if case["returned"] < labels.RETURNED:
            return "only %.0f %% of the loss came back" % (100 * case["returned"])
        if plant.least_loss and case["loss"] < plant.least_loss:
            return "it loses no more than x%.2f" % case["loss"]
        if not plant.least_loss and not labels.close(case["loss"], case["intensity"], labels.LABEL_SLACK):
            return "it loses x%.2f, not x%.3g" % (case["loss"], case["intensity"])
        return ""

    def check_pair(self, plant: table.Plant, case: dict, healthy: table.Healthy, measured: dict) -> str:
        """Each of the two alone gives as much as the other, and both together hardly less."""
        rates = []
        for settings in plant.alone(healthy):
            alone = self.run({**plant.base, **measured["keys"], **settings}, case["seed"])
            shutil.rmtree(alone["folder"], ignore_errors=True)
            rates.append(alone["throughput"])
            case["disturbed"] = max(case["disturbed"], labels.cores_lost(alone, self.cores))
        case["throughput"]["alone"] = rates
        return labels.check_pair(measured["throughput"], rates) or self.disturbance(case)

    # --- cases ---------------------------------------------------------------------------------------

    def judge(self, case: dict, measured: dict) -> None:
        case["verdict"] = labels.in_words_of_bank(self.runner.diagnose(measured["folder"]))
        case["rules"] = {name: list(answer) for name, answer in rules.answers(measured).items()}

    def new_case(self, plant: table.Plant, intensity: float, seed: int) -> dict:
        return {
            "plant": plant.name, "kind": plant.kind, "intensity": intensity, "seed": seed, "truth": [list(p) for p in plant.truth],
            "also": [list(p) for p in plant.also] if plant.also else None, "valid": False, "why_invalid": "", "throughput": {},
        }

    def control(self, plant: table.Plant, seed: int) -> List[dict]:
        case = self.new_case(plant, 1.0, seed)
        measured = self.run(plant.base, seed)
        self.finish_healthy(case, measured)
        return [case]

    def finish_healthy(self, case: dict, measured: dict) -> None:
        case["throughput"]["measured"] = measured["throughput"]
        case["disturbed"] = labels.cores_lost(measured, self.cores)
        used = measured["step_utilisation"] or 0.0
        case["why_invalid"] = self.disturbance(case)
        starves = case["truth"] == [list(p) for p in table.HEALTHY_STEP] and used < HEALTHY_USE
        if starves and not case["why_invalid"]:
            case["why_invalid"] = "the device was used %.0f %% only" % (100 * used)
        case["valid"] = not case["why_invalid"]
        self.judge(case, measured)
        self.drop(case, measured)

    def case(self, plant: table.Plant, intensity: float, seed: int) -> List[dict]:
        """The planted case and, where that is known to be healthy, the run without the plant as another."""
        if plant.kind == "control":
            return self.control(plant, seed)
        case = self.new_case(plant, intensity, seed)
        before = self.before(plant, seed)
        healthy = self.healthy(plant, before)
        case["throughput"]["healthy"] = before["throughput"]
        shutil.rmtree(before["folder"], ignore_errors=True)
        measured = self.planted(plant, intensity, seed, healthy)
        case["keys"] = measured["keys"]
        case["throughput"]["planted"] = measured["throughput"]
        short = self.options.quick and plant.kind != "leak"  # growth takes its time
        removed = self.without(plant, seed, short) if plant.kind != "pair" else {}
        case["disturbed"] = labels.cores_lost(removed, self.cores) if removed else 0.0
        if not plant.hogs:
            case["disturbed"] = max(case["disturbed"], labels.cores_lost(measured, self.cores))
        case["why_invalid"] = self.disturbance(case) or self.check_label(plant, case, healthy, measured, removed)
        case["valid"] = not case["why_invalid"]
        self.judge(case, measured)
        if plant.kind == "phases":
            case["phases_right"] = labels.phases_right(case, plant, measured)
        if self.options.knobs:
            case["knob"] = self.turn_knob(plant, case, seed)
        cases = [case]
        if removed and plant.healthy_truth and not self.options.quick:
            cases.append(self.removed_case(plant, seed, removed))
        elif removed:
            shutil.rmtree(removed["folder"], ignore_errors=True)
        self.drop(case, measured)
        return cases

    def removed_case(self, plant: table.Plant, seed: int, removed: dict) -> dict:
        case = self.new_case(plant, 1.0, seed)
        case.update(kind="removed", also=None, truth=[list(p) for p in plant.healthy_truth])
        self.finish_healthy(case, removed)
        return case

    def turn_knob(self, plant: table.Plant, case: dict, seed: int) -> Optional[dict]:
        """What the first recommendation predicts, and what comes of it."""
        def turned(settings: dict) -> dict:
            cores = plant.cores(case["intensity"], self.cores) if plant.cores else None
            return self.run({**plant.base, **case["keys"], **settings}, seed, cores)

        return follow_advice(case, turned)

    def drop(self, case: dict, measured: dict) -> None:
        if self.options.keep:
            case["folder"] = measured["folder"]
        else:
            shutil.rmtree(measured["folder"], ignore_errors=True)

    def attempt(self, plant: table.Plant, intensity: float, seed: int) -> List[dict]:
        began = time.monotonic()
        try:
            cases = self.case(plant, intensity, seed)
            cases[0]["seconds"] = time.monotonic() - began
            return cases
        except Failed as failure:
            case = self.new_case(plant, intensity, seed)
            case.update(why_invalid=str(failure), verdict=None, rules={})
            return [case]


def follow_advice(case: dict, run: Callable[[dict], dict]) -> Optional[dict]:
    """What the verdict's first recommendation promises, and what a run with its settings gives."""
    for advice in case["verdict"]["recommendations"][:1]:
        if not advice.get("predicted") or not advice.get("settings"):
            return None
        settings = dict(setting.split("=", 1) for setting in advice["settings"])
        knob = {"settings": settings, "predicted": advice["predicted"], "interval": advice.get("interval"),
                "before": case["throughput"]["planted"], "measured": None}
        try:
            measured = run(settings)
            knob["measured"] = measured["throughput"]
            shutil.rmtree(measured["folder"], ignore_errors=True)
        except (Failed, Mistake) as failure:
            knob["failure"] = str(failure)
        return knob
    return None


# --- the command ----------------------------------------------------------------------------------------------


def parse(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="plants known bottlenecks and scores their diagnosis")
    parser.add_argument("program", nargs="?", help="the built mlbench")
    parser.add_argument("--quick", action="store_true", help="plants of 4 x and controls, one seed; an answer that is wrong twice fails")
    parser.add_argument("--only", default="", help="names of plants and controls, separated by commas")
    parser.add_argument("--intensities", default="", help="losses aimed at instead of each plant's own, as 1.5,4")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--page-cache-controls", type=int, default=50, help="how many (full bank)")
    parser.add_argument("--time-limit", type=float, default=0, help="seconds after which no case begins (0: none)")
    parser.add_argument("--disturbed", type=float, default=DISTURBED_CORES,
                        help="cores kept busy by others above which a case is not scored")
    parser.add_argument("--no-knobs", dest="knobs", action="store_false", help="do not try the recommendations out")
    parser.add_argument("--keep", action="store_true", help="keep the results of the planted runs")
    parser.add_argument("--report-only", action="store_true", help="exit 0 whatever the score")
    parser.add_argument("--out", default="", help="folder of bank.json and bank.md (default: results/bank/TIME)")
    parser.add_argument("--score", nargs="+", default=[], metavar="RESULT", help="score saved banks again, as one")
    parser.add_argument("--data", default="build/bank-data", help="folder for the data sets")
    parser.add_argument("--device", action="store_true", help="the plants of a real device instead; needs a GPU")
    parser.add_argument("--list", action="store_true", help="list plants and controls")
    options = parser.parse_args(arguments)
    if not (options.program or options.list or options.score):
        parser.error("which mlbench?")
    if options.quick:
        options.seeds = 1
        options.knobs = False
        options.page_cache_controls = 1
    return options


def all_plants(options: argparse.Namespace, cores: int) -> List[table.Plant]:
    if options.device:
        return device_plants.device_plants() + device_plants.device_controls()
    return table.plants(cores) + table.controls()


def chosen(options: argparse.Namespace, cores: int) -> List[table.Plant]:
    listed = all_plants(options, cores)
    names = [name for name in options.only.split(",") if name]
    unknown = [name for name in names if name not in [plant.name for plant in listed]]
    if unknown:
        sys.exit("bank: no such plant on %d cores: %s; there are: %s" % (cores, ", ".join(unknown), ", ".join(p.name for p in listed)))
    if names:
        return [plant for plant in listed if plant.name in names]
    return [plant for plant in listed if plant.quick or not options.quick]


def intensities(plant: table.Plant, options: argparse.Namespace) -> List[float]:
    if plant.kind in ("control", "pair") or plant.slow:
        return list(plant.intensities)[:1] if options.quick else list(plant.intensities)
    if options.intensities:
        return [float(word) for word in options.intensities.split(",")]
    return [QUICK_INTENSITY] if options.quick else list(plant.intensities)


def schedule(options: argparse.Namespace, cores: int) -> List[tuple]:
    """Every seed in turn, so that a limit of time leaves whole rounds."""
    listed = chosen(options, cores)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    cases = [(plant, intensity, seed) for seed in seeds for plant in listed for intensity in intensities(plant, options)]
    for plant in listed:
        if plant.name == "page-cache":
            begun = options.first_seed + options.seeds
            more = max(0, options.page_cache_controls - options.seeds)
            cases += [(plant, 1.0, seed) for seed in range(begun, begun + more)]
    return cases


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return "an unknown CPU"


def scored(cases: List[dict], cores: int, seconds: float, diagnosed_by: str) -> dict:
    return {"cases": cases, "bars": score.bars(cases), "rules": score.rule_scores(cases), "cores": cores, "cpu": cpu_name(),
            "seconds": seconds, "diagnosed_by": diagnosed_by}


def score_again(paths: List[str]) -> dict:
    """Saved banks as one, by the bars as they are now."""
    banks = []
    for path in paths:
        with open(os.path.join(path, "bank.json") if os.path.isdir(path) else path) as file:
            banks.append(json.load(file))
    cases = [case for one in banks for case in one["cases"]]
    result = scored(cases, banks[0].get("cores", 0), sum(one["seconds"] for one in banks), banks[0]["diagnosed_by"])
    return {**result, "cpu": banks[0].get("cpu", "an unknown CPU")}


def save(folder: str, result: dict, render: Callable[[dict], str] = report.markdown) -> None:
    os.makedirs(folder, exist_ok=True)
    for name, content in (("bank.json", json.dumps(result, indent=1)), ("bank.md", render(result))):
        with open(os.path.join(folder, name + ".new"), "w") as file:
            file.write(content)
        os.replace(os.path.join(folder, name + ".new"), os.path.join(folder, name))


def no_device(program: str) -> str:
    """Why the program cannot use a GPU; '' when it can."""
    listed = subprocess.run([program, "list", "--json"], capture_output=True, text=True, timeout=60, check=True)
    cuda = next(row for row in json.loads(listed.stdout)["backends"] if row["name"] == "cuda")
    return cuda["unavailable"] or ""


def main(arguments: List[str]) -> int:
    options = parse(arguments)
    cores = len(os.sched_getaffinity(0))
    if options.list:
        for plant in all_plants(options, cores):
            print("%-16s %-28s %s" % (plant.name, score.name_of(plant.truth[0]), plant.what))
        return 0
    folder = options.out or os.path.join("results", "bank", time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    if options.score:
        return finish(options, folder, score_again(options.score))
    if options.device and (missing := no_device(options.program)):
        print("bank: the plants of a device cannot run here: %s" % missing)
        return CANNOT
    work = tempfile.mkdtemp(prefix="mlbench-bank-")
    try:
        bank = Bank(Runner(options.program, options.data, work), options)
        return quick(bank, folder) if options.quick else full(bank, folder)
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)


class Kept:
    """The result as it grows: a kill loses the case in flight at most."""

    def __init__(self, bank: Bank, folder: str):
        self.bank, self.folder, self.began = bank, folder, time.monotonic()
        self.keep([])

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def keep(self, cases: List[dict]) -> None:
        self.result = scored(cases, self.bank.cores, self.seconds(), "diagnose" if self.bank.runner.diagnoses else "show")
        if cases:
            save(self.folder, self.result)


def full(bank: Bank, folder: str) -> int:
    options = bank.options
    kept = Kept(bank, folder)
    cases: List[dict] = []
    for plant, intensity, seed in schedule(options, bank.cores):
        if options.time_limit and kept.seconds() > options.time_limit:
            print("the time limit of %.0f s ends the bank here" % options.time_limit)
            break
        done = bank.attempt(plant, intensity, seed)
        cases += done
        print(report.case_line(done[0]), flush=True)
        kept.keep(cases)
    return finish(options, folder, kept.result)


def quick(bank: Bank, folder: str) -> int:
    def tell(why: str, case: dict) -> None:
        if why:
            print("%-16s again: %s" % (case["plant"], why))
        print(report.case_line(case), flush=True)

    kept = Kept(bank, folder)
    rounds = gate.measure(schedule(bank.options, bank.cores), lambda *what: bank.attempt(*what)[0], tell, kept.keep)
    show(folder, kept.result)
    print("\n".join(gate.summary(rounds)))
    return 1 if gate.failed(rounds) and not bank.options.report_only else 0


def show(folder: str, result: dict) -> None:
    save(folder, result)
    print()
    print(report.markdown(result))
    print("saved in %s" % folder)


def finish(options: argparse.Namespace, folder: str, result: dict) -> int:
    show(folder, result)
    failed = bool(score.missed(result["bars"])) or not score.valid(result["cases"])
    return 1 if failed and not options.report_only else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Mistake as mistake:
        sys.exit("bank: %s" % mistake)
