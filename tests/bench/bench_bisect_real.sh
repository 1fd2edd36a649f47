#!/usr/bin/env bash
# Real planted differences, bisected on this machine: what was planted, what was blamed, how many runs and how long.
#	tests/bench/bench_bisect_real.sh [MLBENCH or its build folder] [BUDGET] [PLANT...]
# Each plant stands among seven harmless differences.  Pictures are decoded, files are read: only the step is emulated.  A
# quota is the other node's, by a control group (--env); without the right to make one, these plants are skipped.
set -u
mlbench=$(realpath "${1:-build/release/mlbench}")
[ ! -d "$mlbench" ] || mlbench=$mlbench/mlbench
budget=${2:-5m}
shift $(($# < 2 ? $# : 2))
chosen=" $* "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
cat >good.ini <<'INI'
[dataset]
path = data
recipe = photo
samples = 100
width = 120
height = 90
size_sigma = 0
[read]
engine = pread
threads = 2
[decode]
workers = 2
[batch]
size = 16
[step]
backend = emulated
time = 8ms
[measure]
warmup = 300ms
duration = 1s
INI
harmless='[prefetch]
depth = 3
[decode]
queue = 40
[read]
huge_pages = off
[augment]
flip = 40%
ratio_min = 0.74
layout = hwc
[upload]
depth = 3'
"$mlbench" gen good.ini >/dev/null || exit 1
printf '%-12s %-44s %5s %6s  %s\n' plant blamed runs time status
# plant NAME WANTED LINE ...: WANTED: the names that are to be blamed, in order of the alphabet.
plant() {
	local name=$1 wanted=$2 begun=$SECONDS
	shift 2
	[ "$chosen" = "  " ] || [[ "$chosen" = *" $name "* ]] || return 0
	{
		cat good.ini
		printf '%s\n' "$harmless"
		printf '%s\n' "$@"
	} >"$name.ini"
	"$mlbench" bisect good.ini "$name.ini" --env --budget "$budget" --margin 10% --out "$name" --json >"$name.json" 2>"$name.err"
	python3 - "$name" "$wanted" $((SECONDS - begun)) <<'PY'
import json, sys
name, wanted, seconds = sys.argv[1:]
if "cannot be emulated" in open(name + ".err").read():
    print("%-12s skipped: no control group can be made here" % name)
    sys.exit()
d = json.load(open(name + ".json"))
if "causes" not in d:
    print(name, d)
    sys.exit()
blamed = sorted(n for c in d["causes"] if c["confirmed"] and not c["ambiguous"] for n in c["differences"])
print("%-12s %-44s %5d %4s s  %s%s" % (name, ", ".join(blamed), d["runs"], seconds, d["status"],
      "" if blamed == sorted(wanted.split()) else "  NOT " + wanted))
PY
}
plant step inject.step_factor '[inject]' 'step_factor = 20'
plant decode inject.decode_factor '[inject]' 'decode_factor = 12'
plant latency inject.read_latency '[inject]' 'read_latency = 60ms'
plant size augment.size '[augment]' 'size = 700'
plant quota node.cpu_quota '[case]' 'version = 1' '[reported]' 'cpu_quota = 0.15'
plant lock 'inject.decode_wait inject.lock_share' '[inject]' 'lock_share = 90%' 'decode_wait = 5ms'
plant two 'inject.decode_factor inject.read_latency' '[inject]' 'decode_factor = 12' 'read_latency = 60ms'
plant quota-step 'inject.step_factor node.cpu_quota' '[inject]' 'step_factor = 3' '[case]' 'version = 1' '[reported]' 'cpu_quota = 0.1'
