"""The four rules that people use, on the same measurements as the diagnosis.  None of them knows resources: each
names the one that its stage is usually said to lack."""

from typing import Callable, Dict, Tuple

USUAL = {"read": "device", "decode": "cpu", "upload": "copy", "step": "compute"}
EMPTY_MOST = 0.5  # of the time


def working(stage: dict) -> float:
    return stage["seconds"][1]  # starved, working, blocked


def share(stage: dict) -> float:
    total = sum(stage["seconds"])
    return working(stage) / total if total > 0 else 0.0


def largest_self_time(measured: dict) -> str:
    return max(measured["stages"], key=working)["name"]


def highest_utilisation(measured: dict) -> str:
    return max(measured["stages"], key=share)["name"]


def least_rate(measured: dict) -> str:
    known = [stage for stage in measured["stages"] if stage["capacity"]]
    return min(known, key=lambda stage: stage["capacity"])["name"] if known else "step"


def empty_queue(measured: dict) -> str:
    """The stage in front of the first queue that is empty most of the time, seen from the step."""
    empty = {queue["name"]: queue["empty_share"] for queue in measured["queues"]}
    if "uploaded" in empty:
        if empty["uploaded"] <= EMPTY_MOST:
            return "step"
        if empty["batches"] <= EMPTY_MOST:
            return "upload"
    elif empty["batches"] <= EMPTY_MOST:
        return "step"
    return "decode" if empty["samples"] <= EMPTY_MOST else "read"


RULES: Dict[str, Callable[[dict], str]] = {
    "largest self time": largest_self_time,
    "highest utilisation": highest_utilisation,
    "min of rates": least_rate,
    "empty queue": empty_queue,
}


def answers(measured: dict) -> Dict[str, Tuple[str, str]]:
    result = {}
    for name, rule in RULES.items():
        stage = rule(measured)
        result[name] = (stage, USUAL.get(stage, "unknown"))
    return result
