# Every chart's file, with its sample rows, and every chart of real results compiles and runs in Vega-Lite without a
# warning, and draws something: a sweep, a run without the profiler, a computed step, none, repetitions that say nothing
# of their spread, and hostile names.
. "$CLI/lib.sh"
command -v node >/dev/null || skip "node is not installed"
libraries=$CLI/../../build/npm/charts.js
grep -q vegaLite "$libraries" 2>/dev/null || skip "the chart libraries were not fetched (make setup)"
folder=$CLI/../../harness/report
listed=$(sed -nE 's/^CHART(_FILE)?\(([a-z_]+)[,)].*/\2.vl.json/p' "$folder/html/charts.def" | sort)
[ -n "$listed" ] && [ "$listed" = "$(cd "$folder/charts" && ls | sort)" ] || fail "charts.def and the files in charts/ are not the same"
expect 0 node "$CLI/compile_charts.js" "$libraries" "$folder"/charts/*.vl.json
write_config
export XDG_CACHE_HOME="$PWD/cache"
measured() { # NAME ARGUMENTS...
	local name=$1
	shift
	expect_measured "$MLBENCH" "$@" --out "$name"
	[ -s "$name/report.html" ] || fail "$name has no report.html"
}
one=(--set decode.workers=2 --set batch.size=16)
measured sweep sweep tiny.ini --set sweep.decode.workers=1,2,3,4
measured computed run tiny.ini "${one[@]}" --set step.backend=openblas --set step.model=mlp
measured bare run tiny.ini "${one[@]}" --set measure.profiler=off
measured null run tiny.ini "${one[@]}" --set step.backend=null
measured hostile sweep tiny.ini --set run.name="x';alert(1)//" --set step.model=resnet50 \
	--set measure.repeats=1 --set read.engine=memory --set inject.begin=10% --set inject.decode_factor=3

expect 0 node "$CLI/compile_charts.js" "$libraries" ./*/report.html
for title in "Time per stage" "Bottlenecks in order" "Over time" "Service times" "Scaling"; do
	prints "./sweep/report.html: $title, 300 wide"
done
prints "./computed/report.html: Roofline of the step, 1000 wide"
! grep -q "./bare/report.html: Over time" out || fail "a run without the profiler has nothing over time"
! grep -q "./sweep/report.html: Roofline" out || fail "an emulated step has no roofline"
! grep -q "./null/report.html: Roofline" out || fail "a step that computes nothing has no roofline"

# The check itself can fail.
sed 's/"type":"quantitative"/"type":"quantitativ"/' sweep/report.html >broken.html
expect 1 node "$CLI/compile_charts.js" "$libraries" broken.html
