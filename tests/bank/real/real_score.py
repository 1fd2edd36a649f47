"""From real cases to bars and tables: pure functions.  What right, wrong and abstained mean is score.py's.

A case is what score.py describes, and besides:
    family, half   of the plant; `kind` is single, control, phases or outage
    loss           throughput without the plant over that with it, as measured
    full           was the store full?  null: it is no matter of a store
    skipped        why the machine could not make it; else ''
    gain           largest gain that a recommendation promised (1: none)
    verdict        null where only the label was checked
    verdict_s      seconds that `mlbench diagnose` took
    predictions    what was predicted of settings, and measured: from (advice or what-if), settings, predicted, interval, before,
                   measured"""

import math
import os
import sys
import textwrap
from typing import Dict, List, Optional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import labels
import report
import score

Case = dict

COSTLY = 1.3           # a plant that costs less need not be named
BINDS = 1.15           # one that costs less than this was none
PROMISED = 1.2         # a gain that a full store cannot give
FULL_WITHIN = 0.16     # of ln(throughput), with half of the files in flight, before a full store: 15 %
SLOW_WITHIN = 0.22     # likewise before a slow one, of what is in proportion: 20 %
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of confidence
MEDIAN_S, MOST_S = 8.0, 20.0  # of the time to a verdict
ERROR, WIDTH = 0.05, 1.4      # of a prediction: its error, and the upper end of its interval over the lower one; medians
ENOUGH_PREDICTIONS = 60
UNKNOWN, STANDSTILL = "unknown", "standstill"
COLUMNS = 80


# --- labels --------------------------------------------------------------------------------------------------


def check_turn(turn: str, throughput: Dict[str, float]) -> str:
    """'' or why the label does not hold.  Doubling a limit gives twice as much, unless the step is reached first."""
    before, planted, turned = (throughput[key] for key in ("healthy", "planted", "turned"))
    if before / planted < BINDS:
        return "it costs x%.2f only: it does not bind" % (before / planted)
    wanted = min(before, 2 * planted) if turn == "double" else before
    came_back = (turned - planted) / (wanted - planted)
    if came_back < labels.RETURNED:
        return "%s, only %.0f %% of the loss came back" % ({"double": "twice the limit", "remove": "taken away"}[turn], 100 * came_back)
    return ""


def check_flight(full: bool, factor: float, throughput: Dict[str, float]) -> str:
    """Other numbers of files in flight: before a full store they change nothing, before a slow one all."""
    ratio = throughput["flight"] / throughput["planted"]
    if full:
        return "" if abs(math.log(ratio)) <= FULL_WITHIN else "called full, yet x%.2f in flight gives x%.2f" % (factor, ratio)
    wanted = min(factor, throughput["healthy"] / throughput["planted"])
    return "" if abs(math.log(ratio / wanted)) <= SLOW_WITHIN else "called slow, yet x%.2f in flight gives x%.2f" % (factor, ratio)


def pair_of(phase: dict) -> tuple:
    return phase["stage"], phase["resource"]


def changes_right(case: Case, changes_at: float, before: List, slack_s: float = 1.0) -> bool:
    """A limit that begins in the run: the last phase names it, from about then on, and the first does not."""
    phases = case["verdict"]["phases"]
    if len(phases) < 2 or pair_of(phases[0]) not in before or pair_of(phases[-1]) not in score.pairs(case["truth"]):
        return False
    first = next(phase for phase in phases if pair_of(phase) in score.pairs(case["truth"]))
    return abs(first["begin_s"] - changes_at) <= slack_s


# --- outcomes ------------------------------------------------------------------------------------------------


def judged(cases: List[Case]) -> List[Case]:
    return [case for case in score.valid(cases) if case["verdict"]]


def right(case: Case) -> bool:
    """Of what changes in the run, the last of several phases counts; a job that stood still may be said to have done so."""
    phases = case["verdict"]["phases"]
    if case["kind"] == "lasting" and len(phases) > 1 and pair_of(phases[-1]) in score.pairs(case["truth"]):
        return True
    return score.right(case) or (case["kind"] == "stopped" and score.predicted(case)[1] == STANDSTILL)


def unknown(case: Case) -> bool:
    """No answer, or one that names no cause."""
    return not right(case) and (score.abstained(case) or score.predicted(case)[1] == UNKNOWN)


def wrong(case: Case) -> bool:
    return not right(case) and not unknown(case)


def right_stage(case: Case) -> bool:
    return right(case) or score.right_stage(case)


def outcome(case: Case) -> str:
    if right(case):
        return "right"
    return "unknown" if unknown(case) else "stage only" if score.right_stage(case) else "wrong"


def promised(verdict: dict, measured: float) -> float:
    """The largest gain that any recommendation predicts."""
    return max([1.0] + [advice["predicted"] / measured for advice in verdict["recommendations"] if advice.get("predicted") and measured > 0])


# --- bars ----------------------------------------------------------------------------------------------------


def costly(cases: List[Case]) -> List[Case]:
    return [case for case in judged(cases) if case["kind"] != "control" and case["loss"] >= COSTLY]


def healthy(cases: List[Case]) -> List[Case]:
    return [case for case in judged(cases) if case["kind"] == "control"]


def sure(case: Case) -> bool:
    return case["verdict"]["confidence"] >= score.SURE


def predictions(cases: List[Case]) -> List[dict]:
    """That were measured, and have an interval."""
    return [one for case in judged(cases) for one in case.get("predictions", []) if one.get("measured") and one.get("interval")]


def quantile(values: List[float], share: float) -> Optional[float]:
    """The least value that so many are not above."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None


def prediction_bars(cases: List[Case]) -> List[dict]:
    told = predictions(cases)
    error = quantile([abs(one["predicted"] / one["measured"] - 1) for one in told], 0.5)
    width = quantile([one["interval"][1] / max(one["interval"][0], 1e-9) for one in told], 0.5)
    return [
        score.bar("predictions: error, median", error, ERROR, False, len(told)),
        score.coverage_bar(told),
        score.bar("predictions: width high/low, median", width, WIDTH, False, len(told), ""),
        score.bar("predictions: that were measured", len(told) or None, ENOUGH_PREDICTIONS, True, len(told), ""),
    ]


def bars(cases: List[Case]) -> List[dict]:
    asked, told = costly(cases), judged(cases)
    full = [case for case in told if case["full"]]
    times = [case["verdict_s"] for case in told if case.get("verdict_s")]
    planted = [case for case in cases if not case["skipped"]]
    return [
        score.bar("right (stage, resource), cost >= 1.3 x", score.share_of(asked, right), 0.95, True, len(asked)),
        score.bar("right stage, cost >= 1.3 x", score.share_of(asked, right_stage), 0.97, True, len(asked)),
        score.bar("unknown or inconclusive", score.share_of(told, unknown), 0.03, False, len(told)),
        score.bar("wrong at confidence >= 0.9", score.share_of(told, lambda c: wrong(c) and sure(c)), 0.01, False, len(told)),
        score.bar("full store: gain above 1.2 x promised", score.share_of(full, lambda c: c["gain"] > PROMISED), 0, False, len(full)),
        score.bar("false alarms on healthy runs", score.share_of(healthy(cases), wrong), 0.02, False, len(healthy(cases))),
        score.bar("seconds to the verdict, median", quantile(times, 0.5), MEDIAN_S, False, len(times), "s"),
        score.bar("seconds to the verdict, 95 %", quantile(times, 0.95), MOST_S, False, len(times), "s"),
        *prediction_bars(cases),
        score.bar("labels that hold", score.share_of(planted, lambda c: c["valid"]), 0.9, True, len(planted)),
    ]


def reliability(cases: List[Case]) -> List[dict]:
    """Of the answers of each confidence, how many were right."""
    told = [case for case in judged(cases) if not unknown(case)]
    rows = []
    for low, high in zip(BINS, BINS[1:]):
        inside = [c for c in told if low <= c["verdict"]["confidence"] < high or (high == BINS[-1] == c["verdict"]["confidence"])]
        count = sum(1 for case in inside if right(case))
        mean = sum(case["verdict"]["confidence"] for case in inside) / len(inside) if inside else None
        rows.append({"from": low, "to": high, "cases": len(inside), "right": count, "confidence": mean, "interval": score.wilson(count, len(inside))})
    return rows


OUTCOMES = ("right", "stage only", "unknown", "wrong")


def families(cases: List[Case]) -> List[dict]:
    rows = []
    for name in dict.fromkeys(case["family"] for case in cases):
        mine = [case for case in cases if case["family"] == name]
        told = [outcome(case) for case in judged(mine)]
        times = [case["verdict_s"] for case in judged(mine) if case.get("verdict_s")]
        rows.append({"family": name, "cases": len(mine), "skipped": sum(1 for case in mine if case["skipped"]), "scored": len(told),
                     **{one: told.count(one) for one in OUTCOMES}, "seconds": quantile(times, 0.5)})
    return rows


# --- tables --------------------------------------------------------------------------------------------------


def case_line(case: Case) -> str:
    """One case in 80 columns: intensity aimed at, truth (+: or another), cost, answer, confidence, and whether it is right (!: it
    promises a gain that a full store cannot give)."""
    truth = "/".join(score.pairs(case["truth"])[0]) + ("+" if len(case["truth"]) > 1 else "")
    head = "%-21.21s %4.3g %-17.17s" % (case["plant"], case["intensity"], truth)
    if case["skipped"]:
        return "%s skipped" % head
    verdict = case.get("verdict")
    told = "/".join(part for part in score.predicted(case) if part) if verdict else "-"
    words = {"right": "ok", "unknown": "none"}
    mark = "void" if not case["valid"] else words.get(outcome(case), "WRONG") if verdict else "holds"
    if case["valid"] and case["full"] and case["gain"] > PROMISED:
        mark += "!"
    loss = "x%.2f" % case["loss"] if case.get("loss") else ""
    return ("%s %5s %-16.16s %.2f %s" % (head, loss, told, (verdict or {}).get("confidence") or 0, mark)).rstrip()


def why_not(cases: List[Case]) -> List[str]:
    """What was skipped or not scored, each reason once."""
    lines: Dict[str, List[str]] = {}
    for case in cases:
        reason = "skipped: " + case["skipped"] if case["skipped"] else "" if case["valid"] else "not scored: " + case["why_invalid"]
        if reason:
            lines.setdefault(reason, []).append("%s %.3g" % (case["plant"], case["intensity"]))
    return [line for reason, names in lines.items()
            for line in textwrap.wrap("%s: %s" % (", ".join(names), reason), COLUMNS, initial_indent="  ", subsequent_indent="    ")]


def reliability_rows(rows: List[dict]) -> List[List[str]]:
    return [["%.1f-%.1f" % (row["from"], row["to"]), str(row["cases"]), "%.2f" % row["confidence"], report.number(row["right"] / row["cases"]),
             "%.0f-%.0f %%" % (100 * row["interval"][0], 100 * row["interval"][1])] for row in rows if row["cases"]]


def family_rows(rows: List[dict]) -> List[List[str]]:
    return [[row["family"], *(str(row[key]) for key in ("cases", "skipped", "scored", *OUTCOMES)), report.number(row["seconds"], "s")] for row in rows]


def confusion_lines(matrix: Dict[str, Dict[str, int]]) -> List[str]:
    """The matrix in 80 columns: a line for each truth."""
    lines = []
    for truth in sorted(matrix):
        told = ", ".join("%s %d" % item for item in sorted(matrix[truth].items(), key=lambda item: -item[1]))
        lines += textwrap.wrap("%-20s told %s" % (truth, told), COLUMNS, initial_indent="  ", subsequent_indent=" " * 27)
    return lines


def accuracy_block(result: dict) -> str:
    """The section for docs/ACCURACY.md."""
    cases = result["cases"]
    halves = " and ".join(sorted({case["half"] for case in cases})) or "no"
    seeds = " and ".join(str(seed) for seed in sorted({case["seed"] for case in cases}))
    lines = ["## The bank of real plants", "",
             "`make bank-real`: %d cases of the %s half (seed %s), %d scored, %d skipped, on %s with %d cores, in %.0f s." % (
                 len(cases), halves, seeds, len(judged(cases)), sum(1 for case in cases if case["skipped"]), result["cpu"],
                 result["cores"], result["seconds"]), "",
             *report.bar_lines(result["bars"]), ""]
    lines += ["How often an answer of a given confidence was right:", "",
              *report.table(["confidence", "answers", "mean", "right", "95 % interval"], reliability_rows(result["reliability"])), "",
              *report.table(["family", "cases", "skipped", "scored", *OUTCOMES, "seconds"], family_rows(result["families"])), "",
              "What was told, plants that cost 1.3 x and more:", "", *report.matrix_lines(score.confusion(costly(cases))), ""]
    return "\n".join(lines)


def terminal(result: dict) -> str:
    """The whole result in 80 columns."""
    cases = result["cases"]
    words = {True: "pass", False: "MISS", None: "-"}
    lines = ["%-42s %8s %s %-8s %5d %s" % (one["bar"], report.number(one["value"], one["unit"]), ">=" if one["at_least"] else "<=",
                                           report.number(one["limit"], one["unit"]), one["cases"], words[one["passed"]]) for one in result["bars"]]
    lines += ["", "confidence    answers   mean    right   95 % interval"]
    lines += ["%-12s %8s %6s %8s   %s" % tuple(row) for row in reliability_rows(result["reliability"])]
    lines += ["", "family        cases skipped scored  right stage only unknown wrong seconds"]
    lines += ["%-12s %6s %7s %6s %6s %10s %7s %5s %7s" % tuple(row) for row in family_rows(result["families"])]
    lines += ["", "told, plants that cost 1.3 x and more:", *confusion_lines(score.confusion(costly(cases)))]
    promises = ["%s %.3g x%.1f" % (c["plant"], c["intensity"], c["gain"]) for c in judged(cases) if c["full"] and c["gain"] > PROMISED]
    lines += ["", "! gains promised before a full store:", *(textwrap.wrap(", ".join(promises), COLUMNS, initial_indent="  ", subsequent_indent="  ") or ["  none"])]
    lines += ["", "skipped or not scored:", *(why_not(cases) or ["  none"])]
    return "\n".join(line.rstrip() for line in lines)


def document(result: dict) -> str:
    return "# The bank of real plants\n\n" + "\n".join("    " + case_line(case) for case in result["cases"]) + "\n\n" + accuracy_block(result)


def scored(cases: List[Case], cores: int, cpu: str, seconds: float, program: Optional[str] = None) -> dict:
    return {"cases": cases, "bars": bars(cases), "reliability": reliability(cases), "families": families(cases),
            "cores": cores, "cpu": cpu, "seconds": seconds, "program": program}
