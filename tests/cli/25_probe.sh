# A node's data sheet: figures that can be, kept for later runs, reasons for what cannot be had, and nothing left
# behind by a stop.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini

# What the user got wrong.
expect 2 "$MLBENCH" probe --path nowhere
says "nowhere"
expect 2 "$MLBENCH" probe --path tiny.ini
says "not a folder"
expect 2 "$MLBENCH" probe nowhere.ini
expect 2 "$MLBENCH" probe tiny.ini --set dataset.recipe=none --set dataset.samples=0 --set dataset.path=nowhere
says "nowhere"
expect 2 "$MLBENCH" probe --quik
says "did you mean '--quick'"
expect 2 "$MLBENCH" probe --path nowhere --json
is_json mlbench.error/1
[ -z "$(ls -A "$XDG_CACHE_HOME" | grep ceilings)" ] || fail "a mistake was kept"

# A run without ceilings says so.
expect_measured "$MLBENCH" run tiny.ini $ONE --verbose --out before
prints "ceilings: none"

begun=$(date +%s)
expect 0 "$MLBENCH" probe tiny.ini $ONE --quick --json
took=$(($(date +%s) - begun))
! measuring || [ "$took" -le 40 ] || fail "a quick probe took $took s"
is_json mlbench.ceilings/1
cp out probed.json
python3 - <<'PY' || fail "the figures are not sane"
import json
d = json.load(open("out"))
assert d["quick"] and not d["interrupted"] and d["cores"] >= 1
assert d["age_s"] >= 0 and d["seconds"] > 0
states = {(r["direct"], r["cold"]) for r in d["reads"]}
# A slow node writes too little of a scratch file, or has no time to read it.
assert (False, False) in states or any(m.startswith("warm buffered reads:") or "out of time" in m for m in d["missing"]), d["missing"]
for r in d["reads"]:
    assert r["depth"] in (1, 4, 16, 64) and r["request_bytes"] in (4096, 131072)
    assert 0 < r["low"] <= r["bytes_per_s"] <= r["high"] < 1e13
    assert abs(r["bytes_per_s"] - r["requests_per_s"] * r["request_bytes"]) < 1e-6 * r["bytes_per_s"]
    assert r["latency_ns"] is None or r["latency_ns"] > 0
assert len(d["reads"]) == 8 * len(states) or any("want of time" in m for m in d["missing"])
assert [c["cores"] for c in d["decode"]][0] == 1 and d["decode"][-1]["cores"] == d["cores"]
assert d["decode_one_core"] > 0 and d["cpu_scaling"] > 0
assert "samples of data" in d["decode_what"]
assert d["file_bytes"] == 4096  # 1 KiB, in whole blocks
assert d["memory_bytes_per_s_one"] > 1e6 and d["memory_bytes_per_s_all"] > 1e6 and d["copy_bytes_per_s"] > 1e6
best = [g for g in d["gemms"] if g["is_best"]]
assert best and all(g["flops"] > 1e6 for g in d["gemms"])
assert d["batch"] == 8 and d["model"] == "resnet50"
assert 1 <= d["clock_read_ns"] < 1e6 and d["oversleep_ns"] > 0
PY
ls -A | grep -q mlbench-probe && fail "a scratch file is left"
ls -A data | grep -q mlbench-probe && fail "a scratch file is left"

# It is taken again at once, by another probe and by later runs.
begun=$(date +%s)
expect 0 "$MLBENCH" probe --quick
! measuring || [ $(($(date +%s) - begun)) -le 3 ] || fail "kept results were not taken"
says "kept results"
for word in storage "warm, buffered" decode memory triad gemm timing "lock hand-off" "min-max"; do
	prints "$word"
done
python3 -c 'import sys
wide = [l for l in open("out", encoding="utf-8").read().splitlines() if len(l) > 100]
sys.exit("too wide: " + wide[0] if wide else 0)' || fail "the sheet is too wide"
expect_measured "$MLBENCH" run tiny.ini $ONE --verbose --out after
prints "ceilings: probed"
python3 - <<'PY' || fail "the run has no copy of the ceilings"
import json
probed = json.load(open("probed.json"))
header = json.loads(open("after/points.jsonl").readline())
kept = header["ceilings"]
assert kept["schema"] == "mlbench.ceilings/1" and kept["node"] == probed["node"]
assert len(kept["reads"]) == len(probed["reads"])
assert abs(kept["decode_one_core"] / probed["decode_one_core"] - 1) < 1e-6
assert kept["age_s"] >= 0
assert "probed" in header["environment"]["mlbench"]["ceilings"]
assert "ceilings" not in json.loads(open("before/points.jsonl").readline())
PY
XDG_CACHE_HOME=/proc/none expect 0 "$MLBENCH" show after
prints "ceilings: probed"

# A ceiling of reads is one of the pages that they are made into: the sheet names them, read.huge_pages is heeded, kept results of
# the other kind are no answer, and what accept measures into 4 KiB pages has a place of its own, which no baseline of the other
# kind has.
pages=$(python3 -c 'import json; print(json.load(open("probed.json"))["read_pages"])')
case $pages in "4 KiB pages" | "some transparent huge pages" | "transparent huge pages" | "2 MiB huge pages" | "pages of unknown size") ;;
*) fail "pages of the sheet: '$pages'" ;;
esac
grep -q '"first reads: ' probed.json || [ "$(python3 -c 'import json; print(json.load(open("probed.json"))["reread_bytes_per_s"])')" != None ] ||
	fail "no rate of first reads, and no reason"
expect 0 "$MLBENCH" probe tiny.ini $ONE --quick --set read.huge_pages=off --no-cache --json
[ "$(json 'd["read_pages"]')" = "4 KiB pages" ] || fail "read.huge_pages = off reads into $(json 'd["read_pages"]')"
cat >without_huge_pages.py <<'PY'
import ctypes, os, sys
PR_SET_THP_DISABLE = 41
ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) and sys.exit(77)
os.execvp(sys.argv[1], sys.argv[1:])
PY
if [ "$pages" = "transparent huge pages" ] && python3 without_huge_pages.py true; then
	write_iops_plan speed.ini
	expect 0 "$MLBENCH" accept speed.ini --tier quick --budget 30min --out huge --json
	grep -q 'into transparent huge pages' out || skip "the kernel had no huge pages left"
	as_if_quiet huge
	expect 0 "$MLBENCH" baseline huge --out base.json
	sed -i "s/^read.iops.*/read.iops >= 1 % of baseline/" speed.ini
	expect 3 python3 without_huge_pages.py "$MLBENCH" accept speed.ini --tier quick --budget 30min --baseline base.json --out small --json
	[ "$(json '{e["place"] for m in d["measured"] for e in m["values"]}')" = "{'4 KiB pages'}" ] || fail "the pages are not the place"
	grep -q 'the baseline has nothing on it' out || fail "reads into 4 KiB pages are judged by reads into huge ones"
fi

# Stopped: what there is, as such, and the kept results are still the whole ones.
kept=$(ls "$XDG_CACHE_HOME"/mlbench/ceilings-*.json)
cp "$kept" whole.json
for after in 0.2 1.5; do
	"$MLBENCH" probe --fresh --json >out 2>err &
	pid=$!
	until_true grep -q probing err
	sleep "$after"
	kill -INT "$pid"
	begun=$(date +%s%N)
	wait "$pid"
	status=$?
	took=$((($(date +%s%N) - begun) / 1000000))
	[ "$status" -eq 130 ] || fail "exit $status after SIGINT, not 130"
	! measuring || [ "$took" -lt 3000 ] || fail "it took $took ms to stop"
	is_json mlbench.ceilings/1
	[ "$(json 'd["interrupted"]')" = True ] || fail "it does not say that it was interrupted"
	cmp -s "$kept" whole.json || fail "an interrupted probe was kept"
done
ls -A | grep -q mlbench-probe && fail "a scratch file is left"

# Beside programs that take the cores: it says so, and does not take cores that are not there for cores that are slow.
if measuring; then
	hogs=
	trap 'kill $hogs 2>/dev/null' EXIT
	for _ in $(seq $((2 * $(nproc)))); do
		python3 -c 'while True: pass' &
		hogs="$hogs $!"
	done
	expect 0 "$MLBENCH" probe --fresh --no-cache --quick --json
	kill $hogs
	grep -q 'other programs took' out || fail "it does not say that others took cores"
	alone=$(python3 -c 'import json; print(json.load(open("probed.json"))["cpu_scaling"])')
	[ "$(json "d['cpu_scaling'] > 0.75 * $alone")" = True ] || fail "cores beside others: $(json 'd["cpu_scaling"]'), and $alone alone"
fi

# A torn file is as if there were none; a folder that takes no file, and no place to keep results: reasons, and
# the rest.
head -c 500 "$kept" >torn && cp torn "$kept"
expect_measured "$MLBENCH" run tiny.ini $ONE --verbose --out torn_cache
prints "ceilings: none"
says "ignoring the ceilings in"
XDG_CACHE_HOME=/proc/none expect 3 "$MLBENCH" probe --quick --path /proc
says "the storage could not be measured"
says "not kept for later runs"
prints "storage: cannot create a scratch file in '/proc'"
prints "triad"
prints "lock hand-off"
