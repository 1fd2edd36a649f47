"""From real cases to bars and tables: pure functions.  What right, wrong and abstained mean is score.py's.

A case is what score.py describes, and besides:
    family, half   of the plant; `kind` is single, control, phases or outage
    loss           throughput without the plant over that with it, as measured
    full           was the store full?  null: it is no matter of a store
    skipped        why the machine could not make it; else ''
    gain           largest gain that a recommendation promised (1: none)"""

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


def changes_right(case: Case, changes_at: float, healthy: List, slack_s: float = 1.0) -> bool:
    """A limit that begins in the run: the last phase names it, from about then on, and the first does not."""
    phases = case["verdict"]["phases"]
    pair = lambda phase: (phase["stage"], phase["resource"])
    if len(phases) < 2 or pair(phases[0]) not in healthy or pair(phases[-1]) not in score.pairs(case["truth"]):
        return False
    first = next(phase for phase in phases if pair(phase) in score.pairs(case["truth"]))
    return abs(first["begin_s"] - changes_at) <= slack_s


def promised(verdict: dict, measured: float) -> float:
    """The largest gain that any recommendation predicts."""
    return max([1.0] + [advice["predicted"] / measured for advice in verdict["recommendations"] if advice.get("predicted") and measured > 0])


# --- bars ----------------------------------------------------------------------------------------------------


def answered(cases: List[Case]) -> List[Case]:
    return [case for case in cases if not score.abstained(case)]


def costly(cases: List[Case]) -> List[Case]:
    return [case for case in score.valid(cases) if case["kind"] != "control" and case["loss"] >= COSTLY]


def with_interval(cases: List[Case]) -> List[dict]:
    return [knob for knob in score.knobs(cases) if knob.get("interval")]


def median_width(cases: List[Case]) -> Optional[float]:
    """Of the predicted intervals, as a share of the prediction."""
    found = sorted((knob["interval"][1] - knob["interval"][0]) / knob["predicted"] for knob in with_interval(cases))
    return found[len(found) // 2] if found else None


def bars(cases: List[Case]) -> List[dict]:
    asked, valid = costly(cases), score.valid(cases)
    told, healthy = answered(asked), answered(score.healthy_cases(cases))
    sure = [case for case in answered(valid) if case["verdict"]["confidence"] >= score.SURE]
    full = [case for case in valid if case["full"]]
    planted = [case for case in cases if not case["skipped"]]
    return [
        score.bar("right (stage, resource), cost >= 1.3 x", score.share_of(told, score.right), 0.95, True, len(told)),
        score.bar("right stage, cost >= 1.3 x", score.share_of(told, score.right_stage), 0.98, True, len(told)),
        score.bar("wrong at confidence >= 0.9", score.share_of(sure, score.wrong), 0.03, False, len(sure)),
        score.bar("full store: gain above 1.2 x promised", score.share_of(full, lambda c: c["gain"] > PROMISED), 0, False, len(full)),
        score.bar("false alarms on healthy runs", score.share_of(healthy, score.wrong), 0.02, False, len(healthy)),
        score.bar("abstentions", score.share_of(valid, score.abstained), 0.05, False, len(valid)),
        score.coverage_bar(with_interval(cases)),
        score.bar("labels that hold", score.share_of(planted, lambda c: c["valid"]), 0.9, True, len(planted)),
    ]


def reliability(cases: List[Case]) -> List[dict]:
    """Of the answers of each confidence, how many were right."""
    told = answered(score.valid(cases))
    rows = []
    for low, high in zip(BINS, BINS[1:]):
        inside = [c for c in told if low <= c["verdict"]["confidence"] < high or (high == BINS[-1] == c["verdict"]["confidence"])]
        right = sum(1 for case in inside if score.right(case))
        mean = sum(case["verdict"]["confidence"] for case in inside) / len(inside) if inside else None
        rows.append({"from": low, "to": high, "cases": len(inside), "right": right, "confidence": mean, "interval": score.wilson(right, len(inside))})
    return rows


def families(cases: List[Case]) -> List[dict]:
    rows = []
    for name in dict.fromkeys(case["family"] for case in cases):
        mine = [case for case in cases if case["family"] == name]
        valid = score.valid(mine)
        rows.append({"family": name, "cases": len(mine), "skipped": sum(1 for case in mine if case["skipped"]), "scored": len(valid),
                     "right": sum(1 for case in valid if score.right(case)), "stage": sum(1 for case in valid if score.right_stage(case)),
                     "abstained": sum(1 for case in valid if score.abstained(case))})
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
    mark = "void" if not case["valid"] else "ok" if score.right(case) else "none" if score.abstained(case) else "WRONG"
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
    return [[row["family"], *(str(row[key]) for key in ("cases", "skipped", "scored", "right", "stage", "abstained"))] for row in rows]


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
                 len(cases), halves, seeds, len(score.valid(cases)), sum(1 for case in cases if case["skipped"]), result["cpu"],
                 result["cores"], result["seconds"]), "",
             *report.bar_lines(result["bars"]), ""]
    if result["interval_width"]:
        lines += ["The intervals that were predicted are %s of the prediction wide (median of %d followed recommendations)." % (
            report.number(result["interval_width"]), len(with_interval(cases))), ""]
    lines += ["How often an answer of a given confidence was right:", "",
              *report.table(["confidence", "answers", "mean", "right", "95 % interval"], reliability_rows(result["reliability"])), "",
              *report.table(["family", "cases", "skipped", "scored", "right", "right stage", "abstained"], family_rows(result["families"])), "",
              "What was told, plants that cost 1.3 x and more:", "", *report.matrix_lines(score.confusion(costly(cases))), ""]
    return "\n".join(lines)


def terminal(result: dict) -> str:
    """The whole result in 80 columns."""
    cases = result["cases"]
    words = {True: "pass", False: "MISS", None: "-"}
    lines = ["%-42s %8s %s %-8s %5d %s" % (one["bar"], report.number(one["value"], one["unit"]), ">=" if one["at_least"] else "<=",
                                           report.number(one["limit"], one["unit"]), one["cases"], words[one["passed"]]) for one in result["bars"]]
    if result["interval_width"]:
        lines.append("what-if: median width of the intervals     %8s" % report.number(result["interval_width"]))
    lines += ["", "confidence    answers   mean    right   95 % interval"]
    lines += ["%-12s %8s %6s %8s   %s" % tuple(row) for row in reliability_rows(result["reliability"])]
    lines += ["", "family        cases skipped scored  right  stage  abstained"]
    lines += ["%-12s %6s %7s %6s %6s %6s %6s" % tuple(row) for row in family_rows(result["families"])]
    lines += ["", "told, plants that cost 1.3 x and more:", *confusion_lines(score.confusion(costly(cases)))]
    promises = ["%s %.3g x%.1f" % (c["plant"], c["intensity"], c["gain"]) for c in score.valid(cases) if c["full"] and c["gain"] > PROMISED]
    lines += ["", "! gains promised before a full store:", *(textwrap.wrap(", ".join(promises), COLUMNS, initial_indent="  ", subsequent_indent="  ") or ["  none"])]
    lines += ["", "skipped or not scored:", *(why_not(cases) or ["  none"])]
    return "\n".join(line.rstrip() for line in lines)


def document(result: dict) -> str:
    return "# The bank of real plants\n\n" + "\n".join("    " + case_line(case) for case in result["cases"]) + "\n\n" + accuracy_block(result)


def scored(cases: List[Case], cores: int, cpu: str, seconds: float, program: Optional[str] = None) -> dict:
    return {"cases": cases, "bars": bars(cases), "reliability": reliability(cases), "families": families(cases),
            "interval_width": median_width(cases), "cores": cores, "cpu": cpu, "seconds": seconds, "program": program}
