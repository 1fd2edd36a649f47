"""From cases to a confusion matrix and bars: pure functions, so that tests can show that a score can fail.

A case is a dictionary; see `bank.md` in a result, and test_score.py for the least that there must be:
    kind        single, pair, control, phases, leak; "removed": a run whose plant was taken away again
    intensity   loss of throughput aimed at
    truth       pairs (stage, resource) that are right; the first one names the row of the matrix
    also        pair: the pairs of the other stage
    valid       the label was validated; else why_invalid says, and the case is not scored
    verdict     stage, resource, confidence, also, abstained, leaks
    rules       {name of the rule: (stage, resource)}
    phases_right, knob   where there are any"""

import math
from typing import Dict, Iterable, List, Optional, Tuple

Case = dict
Pair = Tuple[str, str]

CLEAR = 1.5  # intensity from which a single plant has to be named
SURE = 0.9
ABSTAINED: Pair = ("(abstained)", "")
HEALTHY_KINDS = ("control", "removed")


def pairs(listed: Iterable) -> List[Pair]:
    return [(stage, resource) for stage, resource in listed or []]


def predicted(case: Case) -> Pair:
    verdict = case["verdict"]
    if verdict.get("leaks"):
        return ("memory", "leak")
    if verdict["abstained"]:
        return ABSTAINED
    return (verdict["stage"], verdict["resource"])


def abstained(case: Case) -> bool:
    return predicted(case) == ABSTAINED


def right(case: Case) -> bool:
    if case["kind"] == "phases":
        return bool(case.get("phases_right"))
    return predicted(case) in pairs(case["truth"])


def right_stage(case: Case) -> bool:
    if case["kind"] == "phases":
        return bool(case.get("phases_right"))
    return predicted(case)[0] in [stage for stage, _ in pairs(case["truth"])]


def answered_set(case: Case) -> List[str]:
    """The stages that the verdict holds for co-binding."""
    verdict = case["verdict"]
    stages = [predicted(case)[0]]
    if verdict.get("also") and verdict["also"] not in stages:
        stages.append(verdict["also"])
    return stages


def set_holds_truth(case: Case) -> bool:
    """Near balance.  A pair: both stages; one plant: its stage."""
    stages = answered_set(case)
    wanted = [pairs(case["truth"])]
    if case.get("also"):
        wanted.append(pairs(case["also"]))
    return all(any(stage in stages for stage, _ in group) for group in wanted)


def valid(cases: Iterable[Case]) -> List[Case]:
    return [case for case in cases if case["valid"]]


def clear_cases(cases: Iterable[Case]) -> List[Case]:
    return [c for c in valid(cases) if c["kind"] in ("single", "phases", "leak") and c["intensity"] >= CLEAR]


def near_cases(cases: Iterable[Case]) -> List[Case]:
    return [c for c in valid(cases) if c["kind"] == "pair" or (c["kind"] == "single" and c["intensity"] < CLEAR)]


def healthy_cases(cases: Iterable[Case]) -> List[Case]:
    return [c for c in valid(cases) if c["kind"] in HEALTHY_KINDS]


# --- the matrix ------------------------------------------------------------------------------------------


def name_of(pair: Pair) -> str:
    return " / ".join(part for part in pair if part)


def confusion(cases: Iterable[Case], answer=predicted) -> Dict[str, Dict[str, int]]:
    matrix: Dict[str, Dict[str, int]] = {}
    for case in cases:
        row = matrix.setdefault(name_of(pairs(case["truth"])[0]), {})
        column = name_of(answer(case))
        row[column] = row.get(column, 0) + 1
    return matrix


def rule_answer(rule: str):
    return lambda case: tuple(case["rules"][rule])


# --- bars ------------------------------------------------------------------------------------------------


def share(count: int, total: int) -> Optional[float]:
    return count / total if total else None


def share_of(cases: List[Case], test) -> Optional[float]:
    return share(sum(1 for case in cases if test(case)), len(cases))


def wilson(count: int, total: int, z: float = 1.96) -> Tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    if total == 0:
        return (0.0, 1.0)
    p = count / total
    centre = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total))
    return (max(0.0, centre - half), min(1.0, centre + half))


def bar(name: str, value: Optional[float], limit: float, at_least: bool, count: int, unit: str = "%") -> dict:
    """One line of the list of bars; nothing measured is neither a pass nor a miss."""
    passed = None if value is None else (value >= limit if at_least else value <= limit)
    return {"bar": name, "value": value, "limit": limit, "at_least": at_least, "cases": count, "unit": unit, "passed": passed}


def knobs(cases: Iterable[Case]) -> List[dict]:
    return [case["knob"] for case in valid(cases) if case.get("knob") and case["knob"].get("measured")]


def sign_right(knob: dict) -> bool:
    return (knob["predicted"] > knob["before"]) == (knob["measured"] > knob["before"])


def covered(knob: dict) -> bool:
    low, high = knob["interval"]
    return low <= knob["measured"] <= high


def coverage_bar(judged: List[dict]) -> dict:
    count = sum(1 for knob in judged if covered(knob))
    result = bar("what-if: 90 % intervals cover 85-95 %", share(count, len(judged)), 0.85, True, len(judged))
    if judged:  # few experiments cannot tell 84 % from 90 %
        low, high = wilson(count, len(judged))
        result["passed"] = high >= 0.85 and low <= 0.95
    return result


def wrong(case: Case) -> bool:
    return not (set_holds_truth(case) if case["kind"] == "pair" else right(case))


def bars(cases: List[Case]) -> List[dict]:
    clear = [c for c in clear_cases(cases) if not abstained(c)]
    near = [c for c in near_cases(cases) if not abstained(c)]
    healthy = [c for c in healthy_cases(cases) if not abstained(c)]
    told = [c for c in valid(cases) if not abstained(c)]
    sure = [c for c in told if c["verdict"]["confidence"] >= SURE]
    judged = knobs(cases)
    gains = [k for k in judged if abs(k["measured"] / k["before"] - 1) > 0.05]
    sizes = [len(answered_set(c)) for c in near]
    page_cache = [c for c in healthy_cases(cases) if c["plant"] == "page-cache"]
    slow_leaks = [c for c in valid(cases) if c["plant"] == "leak-0.1"]
    return [
        bar("right (stage, resource), single plants >= 1.5 x", share_of(clear, right), 0.95, True, len(clear)),
        bar("right stage, single plants >= 1.5 x", share_of(clear, right_stage), 0.98, True, len(clear)),
        bar("near balance: the set holds the truth", share_of(near, set_holds_truth), 0.95, True, len(near)),
        bar("near balance: mean size of the set", sum(sizes) / len(sizes) if sizes else None, 2, False, len(sizes), ""),
        bar("false alarms on healthy runs", share_of(healthy, lambda c: not right(c)), 0.02, False, len(healthy)),
        bar("wrong at confidence >= 0.9", share_of(sure, wrong), 0.05, False, len(sure)),
        bar("abstentions", share_of(valid(cases), abstained), 0.10, False, len(valid(cases))),
        bar("what-if: sign right when the gain is over 5 %", share_of(gains, sign_right), 0.98, True, len(gains)),
        coverage_bar([k for k in judged if k.get("interval")]),
        bar("leak of 0.1 MB/s found within 60 s", share_of(slow_leaks, right), 1, True, len(slow_leaks)),
        bar("false leaks in page-cache controls", share_of(page_cache, lambda c: bool(c["verdict"].get("leaks"))), 0, False, len(page_cache)),
        bar("labels that hold", share_of(cases, lambda c: c["valid"]), 0.9, True, len(cases)),
    ]


def rule_scores(cases: List[Case]) -> List[dict]:
    """The bars on (stage, resource) and stage for the diagnosis and for each rule, on the same clear cases."""
    clear = [c for c in clear_cases(cases) if c["kind"] == "single"]
    healthy = healthy_cases(cases)
    names = sorted({name for case in clear for name in case["rules"]})
    table = [("mlbench", predicted)] + [(name, rule_answer(name)) for name in names]
    result = []
    for name, answer in table:
        result.append({
            "rule": name,
            "pair": share_of(clear, lambda c: answer(c) in pairs(c["truth"])),
            "stage": share_of(clear, lambda c: answer(c)[0] in [s for s, _ in pairs(c["truth"])]),
            "false_alarms": share_of(healthy, lambda c: answer(c) not in pairs(c["truth"])),
            "cases": len(clear),
        })
    return result


def missed(listed: List[dict]) -> List[dict]:
    return [one for one in listed if one["passed"] is False]
