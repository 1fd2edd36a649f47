#!/usr/bin/env python3
"""Counts what tests/labs/both_ends.py printed, as the table of docs/workshop/TRIED.md: how often a right answer failed or a
wrong one passed, of those that could be told, and what 95 % confidence bounds that rate by (exact binomial).

    tests/labs/count.py LOG...
"""
import collections
import math
import re
import sys


def bound(failed, tried):
    """The rate at which as few failures as these come once in 20 times."""
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        few = sum(math.comb(tried, n) * rate ** n * (1 - rate) ** (tried - n) for n in range(failed + 1))
        low, high = (rate, high) if few > 0.05 else (low, rate)
    return "%.0f %%" % math.ceil(100 * high) if tried else "-"


def main():
    counts, drawn, lab = collections.Counter(), collections.defaultdict(set), None
    for path in sys.argv[1:]:
        for line in open(path, encoding="utf-8"):
            begun = re.match(r"(\d\d_\w+) seed (\d+)", line)
            told = re.match(r"  (\S.*?) +exit status \d+ +(as it must|WRONG|skipped)", line)
            if begun:
                lab = begun.group(1)
                drawn[lab].add(begun.group(2))
            elif told:
                counts[lab, told.group(1) == "answer", told.group(2)] += 1
    print("| lab | draws | answer passed | answer failed | at most | wrong refused | wrong passed | at most | could not tell |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in sorted(drawn) + ["all"]:
        def of(answer, verdict):
            return sum(n for (lab, a, v), n in counts.items() if name in (lab, "all") and a == answer and v == verdict)
        row = [sum(map(len, drawn.values())) if name == "all" else len(drawn[name])]
        for answer in (True, False):
            good, bad = of(answer, "as it must"), of(answer, "WRONG")
            row += [good, bad, bound(bad, good + bad)]
        row.append(of(True, "skipped") + of(False, "skipped"))
        print("| %s | %s |" % (name, " | ".join(map(str, row))))


if __name__ == "__main__":
    main()
