#!/usr/bin/env bash
# What trying other depths in the warm-up costs (measure.depths): a repetition with it over one without, in turns, on a store that is
# slow and one that answers at once.
#   tests/bench/bench_depths.sh BUILD_FOLDER      REPEATS=5
# Exits 1 when a bar is missed: 5 % of a repetition's time, and a measured part that is shorter than it was asked for.
set -u
build=${1:-build/release}
repeats=${REPEATS:-5}
program=$(realpath "$build/mlbench") || exit 2
dir=$(mktemp -d /var/tmp/mlbench-depths-XXXXXX) || exit 2
end() { fusermount3 -uzq "$dir/slow" 2>/dev/null || umount -l "$dir/slow" 2>/dev/null; rm -rf "$dir"; }
trap end EXIT
trap 'exit 130' INT TERM
settings=(--set dataset.recipe=photo --set dataset.format=jpeg --set dataset.width=240 --set dataset.height=180 --set dataset.samples=512)
: >"$dir/bench.ini"
"$program" gen "$dir/bench.ini" "${settings[@]}" --set dataset.path="$dir/data" >/dev/null 2>&1 || { echo "no data could be made" >&2; exit 2; }
stores=(data)
mkdir "$dir/slow"
if [ ! -x "$build/real/slowfs" ]; then
	echo "  slow store: no $build/real/slowfs (make real-tools)"
elif "$build/real/slowfs" "$dir/data" "$dir/slow" --latency 25000 >/dev/null 2>&1 & then
	for i in $(seq 50); do mountpoint -q "$dir/slow" && break; sleep 0.1; done
	mountpoint -q "$dir/slow" && stores+=(slow) || echo "  slow store: nothing can be mounted here"
fi
# one STORE DEPTHS: seconds of a repetition with its warm-up, and of that, as points.jsonl has them.
one() {
	rm -rf "$dir/result"
	"$program" run "$dir/bench.ini" --set dataset.path="$dir/$1" --set dataset.recipe=none --set step.backend=null --set measure.depths="$2" \
		--set measure.repeats=1 --set measure.warmup=1s --set measure.duration=3s --set measure.limits=off --out "$dir/result" >/dev/null 2>&1
	python3 - "$dir/result/points.jsonl" <<'PY'
import json, sys
m = [line for line in map(json.loads, open(sys.argv[1])) if line.get("kind") == "repetition"][0]
print(m["wall_seconds"], m["warmup_seconds"])
PY
}
status=0
for store in "${stores[@]}"; do
	for i in $(seq "$repeats"); do
		echo "off $(one "$store" off)"
		echo "auto $(one "$store" auto)"
	done >"$dir/$store.times"
	python3 - "$store" "$dir/$store.times" <<'PY' || status=1
import statistics, sys
rows = [line.split() for line in open(sys.argv[2])]
off, auto = ([list(map(float, row[1:])) for row in rows if row[0] == name] for name in ("off", "auto"))
ratios = sorted(b[0] / a[0] for a, b in zip(off, auto))
shortest = min(row[0] - row[1] for row in auto)
print("  %-5s %.3f of a repetition without [%.3f-%.3f], %d pairs; %.2f s at least after the warm-up, 3 asked for" % (
    {"data": "fast", "slow": "slow"}[sys.argv[1]], statistics.median(ratios), ratios[0], ratios[-1], len(ratios), shortest))
sys.exit(0 if statistics.median(ratios) <= 1.05 and shortest >= 3 * 0.98 else 1)
PY
done
exit $status
