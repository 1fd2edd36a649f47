# What-if on a small real run: the sign and size of a doubled step time, tables, fleets, and what is refused.
. "$CLI/lib.sh"
write_config
predictable run step.time=2ms "$MLBENCH" run tiny.ini $ONE --set step.time=1ms
is_json mlbench.what-if/1
[ "$(json 'd["predicted"] and d["complete"] and d["alternatives"][0]["predicted"]')" = True ] || fail "not marked as predicted"
! measuring || [ "$(json '-0.55 < d["alternatives"][0]["gain"] < -0.15')" = True ] || fail "half as fast a step gains $(json 'd["alternatives"][0]["gain"]')"
! measuring || [ "$(json 'd["alternatives"][0]["limit"]["stage"]')" = step ] || fail "the step is not the limit"
[ "$(json 'd["alternatives"][0]["interval90"][0] < d["alternatives"][0]["throughput"] < d["alternatives"][0]["interval90"][1]')" = True ] || fail "no interval around it"
# Gains are between replays: a setting that does not change gains nothing, whatever the model misses of the measurement.
[ "$(json 'd["base"]["replayed"] is None and abs(d["alternatives"][0]["throughput"] / d["base"]["measured"] - 1 - d["alternatives"][0]["gain"]) < 1e-6')" = True ] || fail "a calibration at the unchanged setting is told as a replay of it, or gains are not of the measurement"
cp out first
expect 0 "$MLBENCH" what-if run --set step.time=1ms --json
[ "$(json 'd["alternatives"][0]["gain"] == 0 and d["alternatives"][0]["interval90"][0] < d["base"]["measured"] < d["alternatives"][0]["interval90"][1]')" = True ] || fail "the unchanged setting gains $(json 'd["alternatives"][0]["gain"]')"
expect 0 "$MLBENCH" what-if run --set step.time=2ms --json
cmp -s out first || fail "not the same answer twice"
expect 0 "$MLBENCH" what-if run --set step.time=2ms
prints "predicted by the model from recorded service times; nothing was run"
prints "gives    predicted"
prints "measured"

# A list is a table; lists are combined; what the machine does not have is said.
expect 0 "$MLBENCH" what-if run --set sweep.decode.workers=1-2*2,64 --set step.time=1ms,2ms
[ "$(grep -cE '^ +(1|2|64) +(1ms|2ms) +~' out)" -eq 6 ] || fail "not six settings"
prints "64 workers share"

# A published device instead of a given time.
expect 0 "$MLBENCH" what-if run --set step.time=0 --set step.device=a100,h100 --json
! measuring || [ "$(json 'd["alternatives"][0]["throughput"] < 0.6 * d["alternatives"][1]["throughput"]')" = True ] || fail "an a100 is not half an h100"
expect 0 "$MLBENCH" what-if run --set step.device=h100
prints "step.time is set"

# Fleets: more nodes give more until the file server is full.
expect 0 "$MLBENCH" what-if run --fleet 1,2,1000 --storage 30MB/s --json --force
[ "$(json '[p["limit"] == "file server" for p in d["fleet"]["points"]]')" = "[False, False, True]" ] || fail "the file server binds elsewhere"
[ "$(json 'abs(d["fleet"]["points"][2]["throughput"] * d["fleet"]["bytes_per_sample"] / 3e7 - 1) < 0.01')" = True ] || fail "more than the file server gives"
# Two nodes share nothing, and lose what they wait for each other; the fewest nodes are what strong scaling starts from.
[ "$(json 'abs(d["fleet"]["points"][1]["efficiency"] + d["fleet"]["points"][1]["waiting_share"] - 1) < 0.05')" = True ] || fail "two nodes lose more than they wait"
[ "$(json 'all(p["interval90"][0] <= p["throughput"] * 1.000001 and p["throughput"] <= p["interval90"][1] * 1.000001 for p in d["fleet"]["points"])')" = True ] || fail "no interval around it"
[ "$(json '[p["strong"] and (p["strong"]["batch"], p["strong"]["efficiency"] <= 1.05) for p in d["fleet"]["points"]]')" = "[(8, True), (4, True), None]" ] || fail "strong scaling keeps another batch"
# A data sheet stands for the file server only where it and the run read into pages of one kind.
sheet() { # SHEET_PAGES RUN_PAGES
	rm -rf paged && cp -r run paged
	python3 - "$1" "$2" <<'PY'
import json, sys
lines = [json.loads(line) for line in open("paged/points.jsonl")]
lines[0]["ceilings"] = {"schema": "mlbench.ceilings/1", "measured_at": lines[0]["started"], "node": "n", "cores": 2, "storage": "ext4",
    "engine": "pread", "read_pages": sys.argv[1], "reads": [{"direct": True, "cold": True, "depth": 4, "request_bytes": size, "bytes_per_s": 2e8,
    "requests_per_s": 2e8 / size, "latency_ns": 1e5, "low": 1.9e8, "high": 2.1e8, "repeats": 5} for size in (256.0, 1024.0, 4096.0, 16384.0)]}
for line in lines:
    if line.get("kind") == "repetition":
        line["read_pages"] = sys.argv[2]
open("paged/points.jsonl", "w").write("".join(json.dumps(line) + "\n" for line in lines))
PY
	expect 0 "$MLBENCH" what-if paged --fleet 4 --force
}
sheet "transparent huge pages" "transparent huge pages"
reads "as 'mlbench probe' read cold from ext4"
sheet "transparent huge pages" "4 KiB pages"
reads "file server: not available: the run read into 4 KiB pages, and 'mlbench probe' into transparent huge pages; give --storage"
expect 0 "$MLBENCH" what-if run --set decode.workers=2 --fleet 1-64*2 --network-bandwidth 1GB/s --network-latency 5us --force
prints "a fleet of such nodes, predicted"
prints "the network is the bottleneck from 2 nodes on"
reads "which overlap with the last 67 % of the step, except the last one"
reads "nodes are assumed to be equally fast on average"
# Nodes that differ wait for the slowest; the rest is the same.
expect 0 "$MLBENCH" what-if run --fleet 64,4,64:10% --overlap 0 --json --force
[ "$(json '[p["nodes"] for p in d["fleet"]["points"]]')" = "[4, 64]" ] || fail "not each number of nodes once"
[ "$(json 'd["fleet"]["spread"], d["fleet"]["points"][1]["waiting_share"] > 0.1, d["fleet"]["first_limits"]["slowest_node"] in range(2, 65)')" = "(0.1, True, True)" ] || fail "64 nodes that differ by 10 % do not wait for the slowest"
cp out first
expect 0 "$MLBENCH" what-if run --fleet 4,64:10% --overlap 0 --json --force
cmp -s out first || fail "not the same fleet twice"
expect 0 "$MLBENCH" what-if run --fleet 4 --network-bandwidth 1GB/s --gradient-bytes 1k --overlap 50% --all-reduce tree --json --force
[ "$(json 'd["fleet"]["points"][0]["exchange"]')" = tree ] || fail "not the asked all-reduce"

# Refused, with what would be right.
expect 2 "$MLBENCH" what-if run --set augment.size=8
says "'augment.size' cannot be predicted"
says "decode.workers"
expect 2 "$MLBENCH" what-if run --set decode.worker=8 --json
says "did you mean 'decode.workers'"
is_json mlbench.error/1
expect 2 "$MLBENCH" what-if run --set decode.workers=0
expect 2 "$MLBENCH" what-if run --set decode.workers=1-1000+1 --set read.depth=1,2
says "2000 settings"
expect 2 "$MLBENCH" what-if run
says "needs a change"
expect 2 "$MLBENCH" what-if run --set decode.workers=2 --point 1
says "not a point of this result (0 to 0)"
expect 2 "$MLBENCH" what-if run --set decode.workers=2 --storage 1GB/s
says "--fleet"
for bad in 0 -1 x 1-3*1 70000 1,,2 8-4 8:x 8:-1% 8:60% 8: :3%; do
	expect 2 "$MLBENCH" what-if run --fleet "$bad"
	says "--fleet"
done
expect 2 "$MLBENCH" what-if run --fleet 2 --storage fast
says "--storage"
expect 2 "$MLBENCH" what-if run --fleet 2 --overlap 3
says "--overlap"
expect 2 "$MLBENCH" what-if run --fleet 2 --all-reduce star
says "ring|tree"
expect 2 "$MLBENCH" what-if run --fleet 2 --set decode.workers=1,2
says "one setting"
expect 2 "$MLBENCH" what-if nothing --set decode.workers=2
says "no such result"
mkdir hostile
expect 2 "$MLBENCH" what-if hostile --set decode.workers=2
printf 'not json\n' >hostile/points.jsonl
expect 2 "$MLBENCH" what-if hostile --set decode.workers=2 --json
is_json mlbench.error/1
printf '{"schema":"mlbench.points/0"}\n' >hostile/points.jsonl
expect 2 "$MLBENCH" what-if hostile --set decode.workers=2
says "mlbench.points/0"

# Too little to tell from, no service times at all, or torn ones: said, never guessed.
expect_measured "$MLBENCH" run tiny.ini $ONE --set step.time=100ms --set measure.repeats=1 --out short
expect 3 "$MLBENCH" what-if short --set decode.workers=2
says "needed"
cp -r run without
rm -r without/traces
expect 3 "$MLBENCH" what-if without --set decode.workers=2
says "no service times"
cp -r run torn
for file in torn/traces/*; do head -c 500 "$file" >cut && cp cut "$file"; done
"$MLBENCH" what-if torn --set decode.workers=2 >out 2>err
status=$?
[ "$status" -eq 2 ] || [ "$status" -eq 3 ] || fail "torn traces: exit $status"
says "traces"

# Which result is read is said first; of a benchmark's runs the newest sweep comes before newer single points.
expect_measured "$MLBENCH" sweep tiny.ini --set measure.repeats=1 --out results/bench/20260101T000000Z
cp -r run results/bench/20260102T000000Z
"$MLBENCH" what-if bench --set step.time=2ms >out 2>err
head -n 1 err | grep -qF 'result: results/bench/20260101T000000Z: sweep, 4 points x 1 repetition, started' || fail "the sweep is not read"
says "(the newest sweep; 1 newer result passed over)"
expect 0 "$MLBENCH" show bench
says "result: results/bench/20260102T000000Z: run, 1 point x"
expect 0 "$MLBENCH" show bench --quiet
[ ! -s err ] || fail "--quiet"
"$MLBENCH" what-if results/bench/20260102T000000Z --set step.time=2ms >out 2>err
says "result: results/bench/20260102T000000Z: run, 1 point x"

# However many points were recorded, of batches however large, the replays behind an answer have a bound.
predictable large prefetch.depth=3 "$MLBENCH" sweep tiny.ini --set dataset.samples=1024 --set dataset.path=large_data --set sweep.decode.workers=1 --set sweep.batch.size=1024 --set step.time=10ms
python3 "$CLI/widen_sweep.py" large many prefetch.depth="$(seq -s, 1 10)" read.depth="$(seq -s, 1 20)"
"$MLBENCH" what-if many --set decode.workers=2 --json --verbose >out 2>err
status=$?
# The points have other depths than what they were measured with: on a busy machine the model may miss them, and says so.
[ "$status" -eq 0 ] || { [ "$status" -eq 3 ] && grep -qE 'the replay of the unchanged setting gives|samples recorded' err; } || fail "exit $status: what-if many"
replayed=$(sed -n 's/^\([0-9]*\) samples were replayed, .*/\1/p' err)
[ "${replayed:-0}" -gt 0 ] && [ "$replayed" -le 16000000 ] || fail "${replayed:-no} samples were replayed"
[ "$status" -eq 3 ] || [ "$(json 'd["cross_errors"]["points"] >= 1 and d["alternatives"][0]["interval90"][0] < d["alternatives"][0]["throughput"] < d["alternatives"][0]["interval90"][1]')" = True ] || fail "no interval around it, or no errors"
