"""A job's twin: what its case holds, and a run of it."""
import json
import subprocess
from typing import Callable, Dict, List, Optional, Sequence, Tuple

FAILED = float("nan")
NOT_STEADY = 3  # a complete run all the same
OUTPUT_KEPT = 200000


def run(words: List[str], log: str, statuses: Sequence[int] = (0,), cwd: Optional[str] = None, enter: Optional[Callable[[], None]] = None,
        limit_s: Optional[float] = None) -> Optional[str]:
    """Its standard output; None where it failed, with its last words in the log."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, preexec_fn=enter, timeout=limit_s)
        out, err, status = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        out, err, status = "", "no end within %.0f s" % (limit_s or 0), -1
    with open(log, "a") as file:
        file.write("$ %s\n%s\n%s(exit status %d)\n" % (" ".join(words), out[-OUTPUT_KEPT:], err[-4000:], status))
    if status not in statuses:
        print("  %s: exit status %d: %s" % (" ".join(words[:2]), status, err.strip()[-200:]), flush=True)
        return None
    return out


def keys_of(case: str) -> Tuple[Dict[str, str], Dict[str, str]]:
    """{"decode.workers": "2"}, and what stands under [reported]."""
    keys: Dict[str, str] = {}
    reported: Dict[str, str] = {}
    section = ""
    with open(case) as file:
        for line in file:
            line = line.strip()
            if line.startswith("["):
                section = line[1:-1]
            elif "=" in line and not line.startswith("#"):
                name, value = (word.strip() for word in line.split("=", 1))
                (reported if section == "reported" else keys)[name if section == "reported" else section + "." + name] = value
    return keys, reported


def run_twin(command: List[str], out: str, log: str, cwd: str, enter: Optional[Callable[[], None]] = None,
             limit_s: Optional[float] = None) -> Tuple[float, Optional[str]]:
    """Its rate, and the "stage/resource" that its diagnosis names."""
    subprocess.run(["rm", "-rf", out], check=True)
    text = run([*command, "--json", "--quiet", "--out", out], log, (0, NOT_STEADY), cwd, enter, limit_s)
    if not text:
        return FAILED, None
    point = json.loads(text)["points"][0]
    verdict = point.get("verdict") or {}
    return (point.get("throughput") or {}).get("median") or FAILED, "%s/%s" % (verdict.get("stage"), verdict.get("resource"))
