"""The gate of the quick bank: which cases are measured again, and what becomes of them.  Pure functions of cases.

The machine is shared, so one unlucky measurement decides nothing: an answer fails the gate when it was wrong twice, or
wrong once and never right.  How often anything is measured again is bounded by number, not by the time that is left:
on a slow machine a case has the same chances.  What was measured first is said and kept beside what came of it."""

from typing import Callable, List, Optional

import score

REPEATS_MOST = 8  # of all cases together: more wrong answers than that are no bad luck
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

Case = dict


def is_wrong(case: Case) -> bool:
    """The label held, and the answer was another or none."""
    return case["valid"] and (score.abstained(case) or score.wrong(case))


def is_right(case: Case) -> bool:
    return case["valid"] and not is_wrong(case)


def needs_another(attempts: List[Case]) -> bool:
    """After one that was not right; after two of which one was wrong, and the other had no label."""
    if any(is_right(case) for case in attempts):
        return False
    wrong = sum(1 for case in attempts if is_wrong(case))
    return len(attempts) == 1 or (len(attempts) == 2 and wrong == 1)


def outcome(attempts: List[Case]) -> str:
    if any(is_right(case) for case in attempts):
        return PASSED
    return FAILED if any(is_wrong(case) for case in attempts) else SKIPPED


def deciding(attempts: List[Case]) -> Case:
    """The one that is scored, with the others beside it."""
    for test in (is_right, is_wrong):
        found = [case for case in attempts if test(case)]
        if found:
            break
    case = (found or attempts)[-1]
    earlier = [one for one in attempts if one is not case]
    return {**case, "earlier": earlier} if earlier else case


def next_again(rounds: List[List[Case]], repeats: int) -> Optional[int]:
    """Which to measure again, of those that need it: wrong answers come before labels that did not hold."""
    if repeats >= REPEATS_MOST:
        return None
    waiting = [i for i, attempts in enumerate(rounds) if needs_another(attempts)]
    waiting.sort(key=lambda i: not any(is_wrong(case) for case in rounds[i]))
    return waiting[0] if waiting else None


def why_again(attempts: List[Case]) -> str:
    wrong = [case for case in attempts if is_wrong(case)]
    if wrong:
        return "told " + " + ".join([score.name_of(score.predicted(wrong[-1])), *score.answered_set(wrong[-1])[1:]])
    return attempts[-1]["why_invalid"]


def measure(plan: List[tuple], attempt: Callable[..., Case], tell: Callable[[str, Case], None],
            keep: Callable[[List[Case]], None]) -> List[List[Case]]:
    """Every (plant, intensity, seed) once, then again what needs it, each time with a seed of its own.  keep() is given
    all deciding cases after each."""
    rounds: List[List[Case]] = []
    for plant, intensity, seed in plan:
        rounds.append([attempt(plant, intensity, seed)])
        tell("", rounds[-1][0])
        keep([deciding(attempts) for attempts in rounds])
    repeats = 0
    while (i := next_again(rounds, repeats)) is not None:
        plant, intensity, seed = plan[i]
        why = why_again(rounds[i])
        rounds[i].append(attempt(plant, intensity, seed + len(rounds[i])))
        repeats += 1
        tell(why, rounds[i][-1])
        keep([deciding(attempts) for attempts in rounds])
    return rounds


def word(case: Case) -> str:
    return "right" if is_right(case) else "wrong" if is_wrong(case) else "no label"


def summary(rounds: List[List[Case]]) -> List[str]:
    """What was measured more than once, and the line that tests/run.sh counts."""
    lines = []
    for attempts in rounds:
        if len(attempts) > 1:
            lines.append("again: %s: %s" % (attempts[0]["plant"], ", then ".join(word(case) for case in attempts)))
    left = sum(1 for attempts in rounds if needs_another(attempts))
    if left:
        lines.append("again: %d more cases would have been measured again, after %d of them" % (left, REPEATS_MOST))
    ends = [outcome(attempts) for attempts in rounds]
    lines.append("%d passed, %d failed, %d skipped" % tuple(ends.count(end) for end in (PASSED, FAILED, SKIPPED)))
    return lines


def failed(rounds: List[List[Case]]) -> bool:
    """A check of which nothing was right has shown nothing."""
    ends = [outcome(attempts) for attempts in rounds]
    return FAILED in ends or PASSED not in ends
