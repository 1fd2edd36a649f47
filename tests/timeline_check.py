#!/usr/bin/env python3
"""Holds a trace.json(.gz) to what it promises: the Trace Event Format's rules as viewers apply them, slices that nest,
arrows that arrive, counters that go forward, and threads whose slices sum to the time that their state clocks
counted; of several ranks also that they met after each step, by clocks that are as near as the file says.
timeline_check.py FILE [SHARE]: prints what is in it; exit status 1 with the first rules that are broken.
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
    "i": {"name", "cat", "pid", "tid", "ts", "s", "args"},
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


def parts_of(other):
    """What is known of each rank; of one that is alone, all of it."""
    return other.get("ranks") or [dict(other, rank=0, pid=1, devices_pid=2, began_us=0)]


def windows_of(part):
    return [(ns(w["begin_us"]), ns(w["end_us"])) for w in part["windows"]]


def check_inside_windows(events, parts):
    of_process = {part[pid]: windows_of(part) for part in parts for pid in ("pid", "devices_pid")}
    for e in events:
        if e["pid"] not in of_process:
            bad(f"{e['ph']} {e.get('name', '')} is of process {e['pid']}, which is no rank's")
            continue
        if "ts" not in e:
            continue
        at, windows = ns(e["ts"]), of_process[e["pid"]]
        if not any(w[0] <= at <= w[1] for w in windows):
            bad(f"{e['ph']} {e.get('name', '')} at {at} is in no window")


def check_threads(other, tracks, share):
    windows = windows_of(other)
    wall = sum(end - begin for begin, end in windows)
    for t in other["threads"]:
        slices = tracks.get((t["pid"], t["tid"]), [])
        accounted = {k: ns(v) for k, v in t["accounted_us"].items()}
        total = sum(accounted.values())
        # A thread that gets its first core late has no clock until then.
        began = ns(other["began_us"])
        late = min((s.begin for s in slices), default=began) - began if windows[0][0] == began else 0
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


def step_track(part, tracks):
    leader = next(t for t in part["threads"] if t["stage"] == "step" and t["index"] == 0)
    return tracks[(leader["pid"], leader["tid"])]


def steps_of(part, tracks):
    return [s for s in step_track(part, tracks) if "epoch" in s.args and "batch" in s.args]


def check_steps(other, part, tracks):
    wanted = sum(w["steps"] for w in part["windows"])
    steps = steps_of(part, tracks)
    if len(steps) != wanted:
        bad(f"{len(steps)} steps, the windows have {wanted}")
    for s in steps:
        if s.args["epoch"] != s.args["batch"] // other["batches_per_epoch"]:
            bad(f"batch {s.args['batch']} in epoch {s.args['epoch']}")


def meeting_of(step, slices):
    """When the last rank had its gradients: this one waited until then, or was the last."""
    ends = [s.end for s in slices if s.name == "wait for other ranks" and step in ancestors(s)]
    begins = [s.begin for s in slices if s.name == "exchange gradients" and step in ancestors(s)]
    return ends[0] if ends else begins[0] if begins else None


def check_ranks(parts, events, tracks):
    """Whatever the speed: ranks have the same steps, a step of one overlaps with that of every other, and all put the
    meeting at its end at the same time, within what the file says of their clocks."""
    error = sum(part["clock_error_ns"] for part in parts) + 2
    names = {part["pid"]: f"rank {part['rank']} on {part['host']}: " for part in parts}
    for e in events:
        if e["ph"] == "M" and e["name"] == "process_name" and not e["args"]["name"].startswith(
                names.get(e["pid"], names.get(e["pid"] - 1))):
            bad(f"process {e['pid']} is called {e['args']['name']}")
    for part in parts:
        if [(w["first_step"], w["steps"]) for w in part["windows"]] != [
                (w["first_step"], w["steps"]) for w in parts[0]["windows"]]:
            bad(f"rank {part['rank']} has the windows {part['windows']}")
            return 0
    if not any(s.name == "exchange gradients" for slices in tracks.values() for s in slices):
        return 0  # ranks without a step, which meet nowhere
    all_steps = [steps_of(part, tracks) for part in parts]
    rounds = [w["first_step"] + k for w in parts[0]["windows"] for k in range(w["steps"])]
    last = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "i":
            last[e["args"]["round"]].append(e)
    for number, steps in zip(rounds, zip(*all_steps)):
        if max(s.begin for s in steps) > min(s.end for s in steps) + error:
            bad(f"step {number}: {[(s.begin, s.end) for s in steps]} do not overlap")
        met = [meeting_of(s, step_track(part, tracks)) for s, part in zip(steps, parts)]
        if None in met or max(met) - min(met) > error:
            bad(f"step {number}: ranks met at {met}, clocks are off by {error}")
        if len(last[number]) != 1:
            bad(f"step {number}: {len(last[number])} ranks were the last")
        elif None not in met and abs(ns(last[number][0]["ts"]) - met[0]) > error:
            bad(f"step {number}: the last rank came at {last[number][0]['ts']}, ranks met at {met}")
    if set(last) - set(rounds):
        bad(f"last ranks of {set(last) - set(rounds)}")
    return len(rounds)


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
    stage = {(t["pid"], t["tid"]): t["stage"] for part in parts_of(other) for t in part["threads"]}
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
    for part in parts_of(other):
        own = [s for (pid, _), slices in tracks.items() if pid == part["pid"] for s in slices]
        stepped = {s.args["batch"] for s in own if s.name in ("compute", "launch")}
        for s in own:
            if s.name == "sample" and s.args["batch"] in stepped:
                if s.args["ticket"] + (part["rank"] << 40) not in arrives:
                    bad(f"sample {s.args['ticket']} of rank {part['rank']} has no arrow to its step")
    return len(flows), whole


def check_async(events):
    """Of each (category, id): b and e pair up and nest."""
    stacks = collections.defaultdict(list)
    last = {}
    count = 0
    for e in events:
        if e["ph"] not in "be":
            continue
        key = (e["pid"], e["cat"], e["id2"]["local"])
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
        key = (e["name"], e["pid"])
        if at < last.get(key, 0):
            bad(f"counter {key} goes back to {at}")
        last[key] = at
        for value in e["args"].values():
            if not isinstance(value, (int, float)) or value < 0:
                bad(f"counter {e['name']}: {value!r}")
    return sorted({name for name, _ in last})


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
    parts = [part for part in parts_of(other) if "missing" not in part]
    check_fields(events)
    check_names(events)
    tracks = nest(events)
    check_inside_windows(events, parts)
    for part in parts:
        check_threads(part, tracks, share)
        check_steps(other, part, tracks)
    rounds = check_ranks(parts, events, tracks) if "ranks" in other else 0
    flows, whole = check_flows(other, events, tracks)
    asynchronous = check_async(events)
    counters = check_counters(events)
    for p in problems:
        print(p)
    names = collections.Counter(s.name.rstrip("0123456789 ") for slices in tracks.values() for s in slices)
    print(json.dumps({"events": len(events), "tracks": len(tracks), "arrows": flows, "from_files": whole,
                      "async": asynchronous, "counters": counters, "slices": names, "ranks": len(parts),
                      "rounds": rounds}))
    sys.exit(1 if problems else 0)


main()
