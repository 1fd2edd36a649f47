# run --flame: files that other tools read, sums and shares that hold, and what is refused.
. "$CLI/lib.sh"
name="a <b> & \"c\"; d"
cat >"$name.ini" <<'INI'
[dataset]
path = data
recipe = photo
samples = 48
bytes = 40k
width = 320
height = 240

[decode]
workers = 2

[batch]
size = 8

[step]
backend = openblas
model = mlp
threads = 1

[augment]
size = 32

[upload]
mode = copy

[measure]
duration = 700ms
warmup = 100ms
repeats = 2
limits = off
INI
expect 0 "$MLBENCH" gen "$name.ini"

sampled() { # FOLDER: what a run left there
	python3 - "$1" <<'PY' || fail "$1: see above"
import json, os, re, sys
folder = sys.argv[1]
facts = json.load(open(folder + "/flame.json"))
assert facts["schema"] == "mlbench.flame/1" and facts["method"] == "clock signals", facts
assert facts["name"] == 'a <b> & "c"; d', facts["name"]
assert facts["repetitions"] == 2, facts

# Folded: "frame;frame;... count", and no more of it than samples.
stages, total, functions = {}, 0, set()
for line in open(folder + "/flame.folded", encoding="utf-8"):
    match = re.fullmatch(r"([^\n]+) ([0-9]+)\n", line)
    assert match, repr(line)
    frames = match[1].split(";")
    assert all(frames), line
    functions.update(frames[1:])
    stages[frames[0]] = stages.get(frames[0], 0) + int(match[2])
    total += int(match[2])
assert total == facts["samples"] > 0, (total, facts["samples"])
assert stages == {s["name"]: s["samples"] for s in facts["stages"]}, stages
for function in ("transform_sample", "openblas_step"):
    assert function in functions, (function, sorted(functions))

# Slices add up to the CPU time of the process by the kernel's account.
sampled = (total + facts["lost"]) * facts["period_ns"] / 1e9
print(total, "samples,", facts["lost"], "lost,", facts["truncated"], "truncated:", round(sampled, 3), "s of",
      round(facts["cpu_s"], 3))
assert not os.environ.get("MLBENCH_MEASURING") or abs(sampled / facts["cpu_s"] - 1) < 0.15, (sampled, facts["cpu_s"])
assert facts["truncated"] <= 0.25 * total, facts

# The chart of the page: a function for every bar, stages that fill the width.
text = open(folder + "/report.html", encoding="utf-8").read()
chart = [json.loads(one) for one in re.findall(r'<script type="application/json">(.*?)</script>', text, re.S)]
bars = next(one["columns"] for one in chart if one["title"] == "Flame graph")
assert len(bars["function"]) > 5 and all(bars["function"]), bars
rows = {}
for depth, share in zip(bars["depth"], bars["share"]):
    rows[depth] = rows.get(depth, 0) + share
assert all(share < 1.001 for share in rows.values()) and rows[0] > 0.975, rows
assert set(bars["stage"]) <= set(stages), bars["stage"]
assert len(bars["function"]) <= 1600
assert not os.path.exists(folder + "/flame.svg")
PY
}

# Of the stages' CPU time, each has the share that the kernel's accounting of its threads says (which is of the steady part).
shares() { # FOLDER
	python3 - "$1" <<'PY' || fail "$1: shares of stages"
import json, math, os, sys
facts = json.load(open(sys.argv[1] + "/flame.json"))
cpu = {}
for line in open(sys.argv[1] + "/points.jsonl"):
    for stage in json.loads(line).get("stages", []):
        cpu[stage["name"]] = cpu.get(stage["name"], 0) + stage["cpu_seconds"]
found = {s["name"]: s["samples"] for s in facts["stages"] if s["name"] in cpu}
all_cpu, all_found = sum(cpu.values()), sum(found.values())
assert set(cpu) == {"read", "decode", "upload", "step"}, cpu
for name in cpu:
    expected, got = cpu[name] / all_cpu, found.get(name, 0) / all_found
    bound = 6 * math.sqrt(max(expected * (1 - expected), 0.01) / all_found) + 0.05
    print(name, round(expected, 3), round(got, 3), "+-", round(bound, 3))
    assert got > 0 or expected * all_found < 20, name
    assert not os.environ.get("MLBENCH_MEASURING") or abs(expected - got) < bound, name
PY
}

expect_measured "$MLBENCH" run "$name.ini" --flame --verbose --out signals
prints "CPU time by function"
prints "CPU time was sampled during the run"
sampled signals
shares signals

# It takes no privilege.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 . .. && mkdir -m 777 free && chmod -R a+rX data
	if setpriv --reuid=65534 --clear-groups --bounding-set=-all test -x "$MLBENCH" -a -r "$name.ini"; then
		expect_measured env HOME="$PWD/free" XDG_CACHE_HOME="$PWD/free" setpriv --reuid=65534 --clear-groups --bounding-set=-all \
			"$MLBENCH" run "$name.ini" --flame --out free/result
		prints "clock signals"
	else
		echo "an unprivileged user cannot reach the program here: left out"
	fi
fi

# Standard output stays one document; nothing is left where nothing was measured.
expect_measured "$MLBENCH" run "$name.ini" --flame --json --out json --set measure.repeats=1
is_json mlbench.summary/1
[ -s json/flame.folded ] || fail "no flame.folded beside --json"
grep -q 'id="flame"' json/report.html || fail "no flame graph in the page beside --json"
expect_measured "$MLBENCH" run "$name.ini" --flame --resume json --set measure.repeats=1
says "no flame graph: nothing was measured"

# Without --flame, nothing; elsewhere it is refused.
expect_measured "$MLBENCH" run "$name.ini" --out plain --set measure.repeats=1
! ls plain | grep -q flame || fail "flame graphs that nobody asked for"
! grep -q 'was sampled' out || fail "it says that it sampled"
expect 2 "$MLBENCH" sweep "$name.ini" --flame
says "option '--flame' is not one of this command"
[ "$(wc -l <err)" -eq 1 ] || fail "more than one line"
