"""What `observe`, `fit` and the twin said of a job, held against its truth: a pure function of what was measured, and its tables.

A row has: job, cause (its truth), stage, resource, certainty (of `observe`); job_rate, twin_rate, did (the job's reaction to its
fix), predicted (the twin's), unfaithful (why, or ""); others (the share of the cores that was not the job's while it was observed),
disturbance (what `observe` said of them); error (why something is missing).
"""
import math
import statistics
from typing import Any, Callable, Dict, List, Optional, Tuple

from truth import CORES, BankJob

CONFIDENCE = {"unknown": 0.3, "possible": 0.5, "likely": 0.8}
SURE = 0.7
TWIN_CLOSE, TWIN_FAR, REACTION_CLOSE = 0.10, 0.20, 0.15
RIGHT, STAGE, WRONG, NONE, DISTURBED = "right", "stage", "wrong", "none", "disturbed"
OTHERS_MATTER = 0.25  # of the cores


def judge(job: BankJob, stage: Optional[str], resource: Optional[str], certainty: str, busy: bool = False) -> str:
    """right; stage: that alone is right, and no resource is named; wrong; none: no verdict."""
    healthy = ("none", "healthy") in job.causes
    if stage in (None, "", "none", "unknown") or certainty == "unknown":
        return RIGHT if healthy else NONE
    told = set((resource or "unknown").split(" or "))
    if any(stage == right and resource_is(told, of) for right, of in job.causes):
        return RIGHT
    if busy and told & {"external", "cores"}:
        return RIGHT  # others do take half of the cores
    if stage in [right for right, _ in job.causes] and (told == {"unknown"} or told == {"cores"} and job.causes[0][1] in CORES):
        return STAGE
    return WRONG


def resource_is(told: set, right: str) -> bool:
    return right in told and len(told) <= 3


def ratio(one: Optional[float], other: Optional[float]) -> Optional[float]:
    return one / other if one and other and one == one and other == other else None


def scored(job: BankJob, row: Dict[str, Any], busy: bool = False) -> Dict[str, Any]:
    """The row with what it is worth."""
    row = dict(row, cause=job.said["cause"])
    row["score"] = judge(job, row.get("stage"), row.get("resource"), row.get("certainty", "unknown"), busy)
    if row["score"] in (WRONG, NONE) and row.get("others", 0) >= OTHERS_MATTER and row.get("resource") == "external":
        row["score"] = DISTURBED
    row["confidence"] = CONFIDENCE.get(row.get("certainty", "unknown"), 0.0)
    row["twin_ratio"] = ratio(row.get("twin_rate"), row.get("job_rate"))
    row["reaction_ratio"] = ratio(row.get("predicted"), row.get("did"))
    return row


def share(rows: List[dict], test: Callable[[dict], bool]) -> Optional[float]:
    return sum(test(row) for row in rows) / len(rows) if rows else None


def within(value: Optional[float], bound: float) -> bool:
    return value is not None and abs(value - 1) <= bound


def bars(rows: List[dict], busy: bool = False) -> List[Tuple[str, Optional[float], float, bool, int]]:
    """(what, share, bar, whether more is better, jobs): done-when 1 of the issue, or 2 on a busy node."""
    observed = [row for row in rows if row.get("stage") is not None and row["score"] != DISTURBED]
    # Without a twin there is nothing to rely on: a miss, unless fit said so.
    twins = [row for row in rows if "job_rate" in row and not row.get("observe_only")]
    reactions = [row for row in twins if row.get("did") is not None and not row.get("unfaithful")]
    sure = lambda row: row["score"] == WRONG and row["confidence"] >= SURE
    if busy:
        return [("wrong at confidence >= %.1f" % SURE, share(observed, sure), 0.0, False, len(observed)),
                ("the disturbance is named", share(observed, lambda row: bool(row.get("disturbance"))), 1.0, True, len(observed))]
    return [
        ("cause right (stage and resource)", share(observed, lambda row: row["score"] == RIGHT), 0.90, True, len(observed)),
        ("wrong at confidence >= %.1f" % SURE, share(observed, sure), 0.03, False, len(observed)),
        ("no verdict", share(observed, lambda row: row["score"] == NONE), 0.05, False, len(observed)),
        ("twin within 10 %, or marked unfaithful",
         share(twins, lambda row: within(row["twin_ratio"], TWIN_CLOSE) or bool(row.get("unfaithful"))), 0.80, True, len(twins)),
        ("twin within 20 %, or marked unfaithful",
         share(twins, lambda row: within(row["twin_ratio"], TWIN_FAR) or bool(row.get("unfaithful"))), 0.95, True, len(twins)),
        ("reaction to the job's fix within 15 %", share(reactions, lambda row: within(row["reaction_ratio"], REACTION_CLOSE)), 0.85, True, len(reactions)),
    ]


def met(bar: Tuple[str, Optional[float], float, bool, int]) -> Optional[bool]:
    _, value, bound, more, _ = bar
    return None if value is None else value >= bound - 1e-9 if more else value <= bound + 1e-9


# --- tables ---------------------------------------------------------------------------------------------------------


def number(value: Optional[float], form: str) -> str:
    return "-" if value is None or value != value else form % value


HEADS = ("job", "cause", "observe says", "certainty", "score", "others", "job/s", "twin/s", "twin/job", "fix did", "twin's fix", "error", "remark")


def cells(row: Dict[str, Any]) -> Tuple[str, ...]:
    said = "-" if row.get("stage") is None else "%s/%s" % (row["stage"], row.get("resource"))
    error = row.get("reaction_ratio")
    remark = row.get("error") or next((key + ": " + row[key] for key in ("unfaithful", "unchecked") if row.get(key)), "")
    return (row["job"], row["cause"], said, row.get("certainty", "-"), row["score"], number(100 * row.get("others", float("nan")), "%.0f %%"),
            number(row.get("job_rate"), "%.1f"), number(row.get("twin_rate"), "%.1f"),
            number(row.get("twin_ratio"), "%.2f"), number(row.get("did"), "%.2f"), number(row.get("predicted"), "%.2f"),
            number(None if error is None else 100 * (error - 1), "%+.0f %%"), remark)


def text_table(lines: List[Tuple[str, ...]]) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def markdown_table(lines: List[Tuple[str, ...]]) -> str:
    head, *rest = ["| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines]
    return "\n".join([head, "|" + "---|" * len(lines[0]), *rest])


def bar_lines(rows: List[dict], busy: bool) -> List[Tuple[str, ...]]:
    lines = [("bar", "value", "wanted", "jobs", "met")]
    for bar in bars(rows, busy):
        what, value, bound, more, count = bar
        lines.append((what, number(None if value is None else 100 * value, "%.0f %%"), "%s %.0f %%" % (">=" if more else "<=", 100 * bound), str(count),
                      {None: "not measured", True: "yes", False: "no"}[met(bar)]))
    return lines


def tables(rows: List[dict], busy: bool, table: Callable[[List[Tuple[str, ...]]], str] = text_table) -> str:
    twins = sorted(abs(math.log(row["twin_ratio"])) for row in rows if row["twin_ratio"])
    told = "\n\nTwin against job: a factor of %.2f in the median, %.2f at worst (%d twins)." % (
        math.exp(statistics.median(twins)), math.exp(twins[-1]), len(twins)) if twins else ""
    return table([HEADS, *[cells(row) for row in rows]]) + "\n\n" + table(bar_lines(rows, busy)) + told
