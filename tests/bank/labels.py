"""What a label is held to: the loss of throughput, what came back, growth of memory, phases and their times.  Pure
functions of measurements."""

import math
from typing import List

from plants import Plant
from runner import Failed

RETURNED = 0.9      # of the lost throughput must come back
NEAR_ENOUGH = 0.12  # of ln(loss): a plant this close to its aim is not corrected
LABEL_SLACK = 2     # a label holds so many times as far from its aim
PAIR_WITHIN = 0.06  # of ln(throughput): of the two alone, and of both together below them
BINDS = 1.03        # a loss from which the plant is what binds
OF_A_DEVICE = (("read", "bandwidth"), ("read", "full")) # what the plants of this bank call read / device
MIDDLE = (1 / 3, 2 / 3)
MIDDLE_SLACK = 0.08 # of the repetition, on the times of its phases


def in_words_of_bank(verdict: dict) -> dict:
    """A token bucket of bytes is named for its bandwidth, or as full where files are alike: either is read / device here."""
    for named in [verdict, *verdict.get("phases", [])]:
        if (named.get("stage"), named.get("resource")) in OF_A_DEVICE:
            named["resource"] = "device"
    return verdict


def mean_file_bytes(measured: dict) -> float:
    read = next(stage for stage in measured["stages"] if stage["name"] == "read")
    return measured["bytes_read"] / max(1, read["items"])


def close(loss: float, wanted: float, slack: float = 1) -> bool:
    """Within a tenth of the factor, or 2 % of the throughput, whichever is more."""
    return abs(math.log(loss / wanted)) <= slack * max(NEAR_ENOUGH * abs(math.log(wanted)), 0.02)


def corrected(aim: float, wanted: float, loss: float) -> float:
    """The strength for another try.  What binds loses in proportion to it; what does not bind yet needs more."""
    return aim * wanted / loss if loss > BINDS else aim * max(wanted, 1.1)


def cores_lost(measured: dict, cores: int) -> float:
    """To others on this machine, and to other machines on its host."""
    return (measured.get("cores_busy_outside") or 0.0) + cores * (measured.get("steal_share") or 0.0)


def check_pair(together: float, alone: List[float]) -> str:
    """Two that bind give together what the lesser gives alone, but for what their turns cost (measured: 1 %).  Where much
    less came of it, something else held up that run, and it was no pair that bound.  What was answered does not matter."""
    if abs(math.log(alone[0] / alone[1])) > PAIR_WITHIN:
        return "one stage alone gives %.0f samples/s and the other %.0f" % tuple(alone)
    if math.log(min(alone) / together) > PAIR_WITHIN:
        return "both together give %.0f samples/s, and either alone %.0f or more" % (together, min(alone))
    return ""


def columns(measured: dict) -> List[dict]:
    return [dict(zip(measured["window_columns"], row)) for row in measured["windows"]]


def rate_in_middle(measured: dict) -> float:
    """Samples/s between 40 % and 60 % of the repetition: well inside the throttled third."""
    return rate_between(measured, 0.4, 0.6)


def rate_between(measured: dict, begin: float, until: float) -> float:
    """Samples/s between two shares of a repetition."""
    windows = columns(measured)
    end = measured["wall_seconds"]
    inside = [w for w in windows if begin * end <= w["t"] <= until * end]
    if len(inside) < 2:
        raise Failed("too few windows to tell the rate of a part of the repetition")
    return (inside[-1]["samples"] - inside[0]["samples"]) / (inside[-1]["t"] - inside[0]["t"])


def growth(measured: dict) -> float:
    """Bytes/s of the resident set after the cut, by the medians of its thirds."""
    points = [(w["t"], w["resident_bytes"]) for w in columns(measured) if w["t"] >= measured["cut_seconds"]]
    third = max(1, len(points) // 3)
    middle = lambda part: sorted(part, key=lambda p: p[1])[len(part) // 2]
    first, last = middle(points[:third]), middle(points[-third:])
    return (last[1] - first[1]) / max(last[0] - first[0], 1e-9)


def check_leak(measured: dict, removed: dict) -> str:
    planted, without = growth(measured), growth(removed)
    if planted <= 0 or without > (1 - RETURNED) * planted:
        return "memory grows by %.0f bytes/s with the leak and by %.0f without" % (planted, without)
    return ""


def phases_right(case: dict, plant: Plant, measured: dict) -> bool:
    """A phase of the plant's label in the middle, the healthy label before and after, and their times."""
    phases = case["verdict"]["phases"]
    planned = measured["wall_seconds"]
    slack = MIDDLE_SLACK * planned
    throttled = [p for p in phases if (p["stage"], p["resource"]) in plant.truth]
    others = [p for p in phases if p not in throttled]
    if len(throttled) != 1 or not others:
        return False
    begin, end = (share * planned for share in MIDDLE)
    on_time = abs(throttled[0]["begin_s"] - begin) <= slack and abs(throttled[0]["end_s"] - end) <= slack
    return on_time and all((p["stage"], p["resource"]) in plant.healthy_truth for p in others)
