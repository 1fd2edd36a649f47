"""The score as Markdown, and as lines for a terminal (they are the same)."""

from typing import Dict, List

import score


def table(head: List[str], rows: List[List[str]]) -> List[str]:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    line = lambda cells: "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"
    return [line(head), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *[line(row) for row in rows]]


def number(value, unit: str = "%") -> str:
    if value is None:
        return "-"
    return "%.1f %%" % (100 * value) if unit == "%" else "%.2f" % value


def matrix_lines(matrix: Dict[str, Dict[str, int]]) -> List[str]:
    columns = sorted({column for row in matrix.values() for column in row})
    rows = [[truth] + [str(matrix[truth].get(column, "") or "") for column in columns] for truth in sorted(matrix)]
    return table(["planted \\ told", *columns], rows) if rows else ["(no case)"]


def bar_lines(bars: List[dict]) -> List[str]:
    words = {True: "pass", False: "MISS", None: "not measured"}
    rows = [[one["bar"], number(one["value"], one["unit"]), (">= " if one["at_least"] else "<= ") + number(one["limit"], one["unit"]),
             str(one["cases"]), words[one["passed"]]] for one in bars]
    return table(["bar", "value", "wanted", "cases", ""], rows)


def rule_lines(cases: List[dict]) -> List[str]:
    rows = [[one["rule"], number(one["pair"]), number(one["stage"]), number(one["false_alarms"])] for one in score.rule_scores(cases)]
    return table(["rule", "right pair", "right stage", "false alarms"], rows)


def case_line(case: dict) -> str:
    """One case as it ends, for the terminal."""
    verdict = case.get("verdict") or {}
    told = score.name_of(score.predicted(case)) if verdict else "-"
    if verdict.get("also"):
        told += " + " + verdict["also"]
    if not case["valid"]:
        mark = "not scored: " + case["why_invalid"]
    elif case["kind"] == "pair" or (case["kind"] == "single" and case["intensity"] < score.CLEAR):
        mark = "ok" if score.set_holds_truth(case) else "WRONG"
    else:
        mark = "ok" if score.right(case) else "WRONG"
    if verdict and score.abstained(case) and verdict.get("reason"):
        mark += " (%s)" % verdict["reason"]
    loss = "x%.2f" % case["loss"] if case.get("loss") else "     "
    return "%-16s %4g  seed %d  %-6s %-24s told %-28s %.2f  %s" % (
        case["plant"], case["intensity"], case["seed"], loss, score.name_of(score.pairs(case["truth"])[0]), told,
        verdict.get("confidence") or 0, mark)


def markdown(result: dict) -> str:
    cases = result["cases"]
    scored = score.valid(cases)
    lines = ["# The bank of planted bottlenecks", "",
             "%d cases, %d scored, on %s with %d cores, in %.0f s, diagnosed by `mlbench %s`." % (
                 len(cases), len(scored), result["cpu"], result["cores"], result["seconds"], result["diagnosed_by"]), "",
             "## Bars", "", *bar_lines(result["bars"]), "",
             "## Planted >= 1.5 x: what was told", "", *matrix_lines(score.confusion(score.clear_cases(cases))), "",
             "## Near balance", "", *matrix_lines(score.confusion(score.near_cases(cases))), "",
             "## Healthy", "", *matrix_lines(score.confusion(score.healthy_cases(cases))), "",
             "## Beside four rules, single plants >= 1.5 x", "", *rule_lines(cases), ""]
    singles = [c for c in score.clear_cases(cases) if c["kind"] == "single"]
    for rule in sorted({name for case in singles for name in case["rules"]}):
        lines += ["### " + rule, "", *matrix_lines(score.confusion(singles, score.rule_answer(rule))), ""]
    wrong = [c for c in scored if not score.abstained(c) and score.wrong(c)]
    lines += ["## Wrong", ""] + (["    " + case_line(c) for c in wrong] or ["none"]) + [""]
    again = [c for c in cases if c.get("earlier")]
    if again:
        lines += ["## Measured again", ""] + ["    " + case_line(one) for c in again for one in [*c["earlier"], c]] + [""]
    invalid = [c for c in cases if not c["valid"]]
    lines += ["## Labels that did not hold", ""] + (["    " + case_line(c) for c in invalid] or ["none"]) + [""]
    return "\n".join(lines)
