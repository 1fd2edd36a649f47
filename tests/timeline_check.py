#!/usr/bin/env python3
"""Holds a trace.json(.gz) to what it promises: the Trace Event Format's rules as viewers apply them, slices that nest,
arrows that arrive, counters that go forward, and threads whose slices sum to the time that their state clocks
counted.  timeline_check.py FILE [SHARE]: prints what is in it; exit status 1 with the first rules that are broken.
SHARE: of the accounted time that sums may be off, 0.01 by default."""
import collections
import gzip
import json
import sys

STATES = {"starved", "working", "blocked"}
FIELDS = {
    "M": {"name", "pid", "tid", "args"},
    "B": {"name", "cat", "pid", "tid", "ts"},
    "E": {"name", "pid", "tid", "ts"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "t": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
    "b": {"name", "cat", "id2", "pid", "tid", "ts"},
    "e": {"name", "cat", "id2", "pid", "tid", "ts"},
    "C": {"name", "pid", "ts", "args"},
}
problems = []


def bad(text):
    if len(problems) < 20:
        problems.append(text)


def ns(microseconds):
    return round(microseconds * 1000)


def load(path):
    with open(path, "rb") as f:
        head = f.read(2)
    opened = gzip.open(path) if head == b"\x1f\x8b" else open(path, "rb")
    with opened as f:
        return json.load(f)


def check_fields(events):
    for i, e in enumerate(events):
        want = FIELDS.get(e.get("ph"))
        if want is None:
            bad(f"event {i}: phase {e.get('ph')!r}")
            continue
        missing = want - e.keys()
        extra = e.keys() - want - {"ph", "args", "id"}
        if missing or extra:
            bad(f"event {i} ({e['ph']}): lacks {missing}, has {extra}")
        if "ts" in e and (not isinstance(e["ts"], (int, float)) or e["ts"] < 0):
            bad(f"event {i}: ts = {e['ts']!r}")
        if e["ph"] in "tf" and e.get("bp") != "e":
            bad(f"event {i}: an arrow that binds to no slice around it")


class Slice:
    def __init__(self, e, parent):
        self.name, self.args = e["name"], e.get("args", {})
        self.begin = self.end = ns(e["ts"])
        self.parent = parent


def nest(events):
    """Slices by track.  Each track's events come in the order of time, so its slices nest: an end is that of the
    slice that began last."""
    tracks = collections.defaultdict(list)
    stacks = collections.defaultdict(list)
    last = {}
    for i, e in enumerate(events):
        if e["ph"] not in "BE":
            continue
        track = (e["pid"], e["tid"])
        at, stack = ns(e["ts"]), stacks[track]
        if at < last.get(track, 0):
            bad(f"{track}: event {i} goes back to {at} ns from {last[track]}")
        last[track] = at
        if e["ph"] == "B":
            stack.append(Slice(e, stack[-1] if stack else None))
            tracks[track].append(stack[-1])
        elif stack and stack[-1].name == e["name"]:
            stack.pop().end = at
        else:
            bad(f"{track}: event {i} ends what did not begin")
    for track, stack in stacks.items():
        if stack:
            bad(f"{track}: {stack[-1].name} does not end")
    return tracks


def ancestors(s):
    while s.parent:
        s = s.parent
        yield s


def check_inside_windows(events, windows):
    for e in events:
        if "ts" not in e:
            continue
        at = ns(e["ts"])
        if not any(w[0] <= at <= w[1] for w in windows):
            bad(f"{e['ph']} {e.get('name', '')} at {at} is in no window")


def check_threads(other, tracks, windows, share):
    wall = sum(end - begin for begin, end in windows)
    for t in other["threads"]:
        slices = tracks.get((t["pid"], t["tid"]), [])
        accounted = {k: ns(v) for k, v in t["accounted_us"].items()}
        total = sum(accounted.values())
        # A thread that gets its first core late has no clock until then.
        late = min((s.begin for s in slices), default=0) if windows[0][0] == 0 else 0
        if abs(total - (wall - late)) > share * wall:
            bad(f"{t['name']}: its clock counted {total} ns of {wall}, and it began {late} ns late")
        tops = sum(s.end - s.begin for s in slices if not s.parent)
        if abs(tops - total) > share * total:
            bad(f"{t['name']}: top-level slices sum to {tops} ns, its clock counted {total}")
        sums = collections.Counter()
        for s in slices:
            state = s.args.get("state")
            if state:
                sums[state] += s.end - s.begin
                if any(a.args.get("state") for a in ancestors(s)):
                    bad(f"{t['name']}: a state inside a state at {s.begin}")
        for state in STATES:
            if abs(sums[state] - accounted[state]) > share * total:
                bad(f"{t['name']}: {state} slices sum to {sums[state]} ns, its clock counted {accounted[state]}")
        check_levels(t, slices)


def check_levels(t, slices):
    for s in slices:
        above = [a.name.split(" ")[0] for a in ancestors(s)]
        what = s.name.split(" ")[0]
        if what == "epoch" and "epoch" in s.args:
            if above:
                bad(f"{t['name']}: epoch inside {above}")
        elif what == "step" and "epoch" in s.args:
            if above != ["epoch"]:
                bad(f"{t['name']}: {s.name} inside {above}")
        elif "state" in s.args:
            if t["stage"] == "step" and above != ["step", "epoch"]:
                bad(f"{t['name']}: {s.name} inside {above}")
        elif not any(a.args.get("state") for a in ancestors(s)):
            bad(f"{t['name']}: {s.name} in no state")


def check_steps(other, tracks):
    wanted = sum(w["steps"] for w in other["windows"])
    leader = next(t for t in other["threads"] if t["stage"] == "step" and t["index"] == 0)
    steps = [s for s in tracks[(leader["pid"], leader["tid"])] if "epoch" in s.args and "batch" in s.args]
    if len(steps) != wanted:
        bad(f"{len(steps)} steps, the windows have {wanted}")
    for s in steps:
        if s.args["epoch"] != s.args["batch"] // other["batches_per_epoch"]:
            bad(f"batch {s.args['batch']} in epoch {s.args['epoch']}")


def innermost(slices, at):
    found = None
    for s in slices:
        if s.begin > at:
            break
        if at < s.end or s.begin == at == s.end:
            found = s
    return found


def check_flows(other, events, tracks):
    flows = collections.defaultdict(list)
    for e in events:
        if e["ph"] in "stf":
            flows[e["id"]].append(e)
    stage = {(t["pid"], t["tid"]): t["stage"] for t in other["threads"]}
    whole = 0
    arrives = {}
    for ident, steps in flows.items():
        phases = "".join(e["ph"] for e in steps)
        if phases[0] != "s" or phases[-1] != "f" or set(phases[1:-1]) - {"t"}:
            bad(f"arrow {ident}: {phases}")
            continue
        times = [ns(e["ts"]) for e in steps]
        if times != sorted(times):
            bad(f"arrow {ident} goes back: {times}")
        ways = [stage[(e["pid"], e["tid"])] for e in steps]
        if ways not in (["read", "decode", "step"], ["decode", "step"], ["read", "decode", "upload", "step"],
                        ["decode", "upload", "step"]):
            bad(f"arrow {ident} goes {ways}")
        whole += ways[0] == "read"
        arrives[ident] = steps
    sampled = list(flows.items())
    for ident, steps in sampled[:: max(1, len(sampled) // 500)]:  # each look is linear in its track
        for e, wanted in ((steps[0], None), (steps[-1], {"compute", "launch"})):
            s = innermost(tracks[(e["pid"], e["tid"])], ns(e["ts"]))
            if not s or (wanted and s.name not in wanted):
                bad(f"arrow {ident}: {e['ph']} binds to {s.name if s else None}")
    stepped = {s.args["batch"] for slices in tracks.values() for s in slices if s.name in ("compute", "launch")}
    for slices in tracks.values():
        for s in slices:
            if s.name == "sample" and s.args["batch"] in stepped and s.args["ticket"] not in arrives:
                bad(f"sample {s.args['ticket']} has no arrow to its step")
    return len(flows), whole


def check_async(events):
    """Of each (category, id): b and e pair up and nest."""
    stacks = collections.defaultdict(list)
    last = {}
    count = 0
    for e in events:
        if e["ph"] not in "be":
            continue
        key = (e["cat"], e["id2"]["local"])
        at = ns(e["ts"])
        if at < last.get(key, 0):
            bad(f"{key}: goes back to {at}")
        last[key] = at
        if e["ph"] == "b":
            stacks[key].append(e["name"])
            count += 1
        elif not stacks[key] or stacks[key].pop() != e["name"]:
            bad(f"{key}: {e['name']} ends, but did not begin")
    for key, stack in stacks.items():
        if stack:
            bad(f"{key}: {stack} does not end")
    return count


def check_counters(events):
    last = {}
    for e in events:
        if e["ph"] != "C":
            continue
        at = ns(e["ts"])
        if at < last.get(e["name"], 0):
            bad(f"counter {e['name']} goes back to {at}")
        last[e["name"]] = at
        for value in e["args"].values():
            if not isinstance(value, (int, float)) or value < 0:
                bad(f"counter {e['name']}: {value!r}")
    return sorted(last)


def check_names(events):
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for e in events:
        if e["ph"] in "BEstf" and (e["pid"], e["tid"]) not in named:
            bad(f"track {(e['pid'], e['tid'])} has no name")


def main():
    document = load(sys.argv[1])
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 0.01
    if document["schema"] != "mlbench.timeline/1" or document["displayTimeUnit"] != "ms":
        bad("no mlbench.timeline/1")
    other, events = document["otherData"], document["traceEvents"]
    windows = [(ns(w["begin_us"]), ns(w["end_us"])) for w in other["windows"]]
    check_fields(events)
    check_names(events)
    tracks = nest(events)
    check_inside_windows(events, windows)
    check_threads(other, tracks, windows, share)
    check_steps(other, tracks)
    flows, whole = check_flows(other, events, tracks)
    asynchronous = check_async(events)
    counters = check_counters(events)
    for p in problems:
        print(p)
    names = collections.Counter(s.name.rstrip("0123456789 ") for slices in tracks.values() for s in slices)
    print(json.dumps({"events": len(events), "tracks": len(tracks), "arrows": flows, "from_files": whole,
                      "async": asynchronous, "counters": counters, "slices": names}))
    sys.exit(1 if problems else 0)


main()
