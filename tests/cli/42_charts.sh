# Every chart's compiled file is that of its source.  Each, with its sample rows, and every chart of real results is drawn
# without a warning, with its marks, and with a mark for each entry of its legend: a sweep, a run without the profiler, a
# computed step, none, repetitions that say nothing of their spread, and hostile names.
. "$CLI/lib.sh"
folder=$ROOT/harness/report
listed=$(sed -nE 's/^CHART(_FILE)?\(([a-z_]+)[,)].*/\2/p' "$folder/html/charts.def" | sort)
for kind in vl vg; do
	[ -n "$listed" ] && [ "$listed" = "$(cd "$folder/charts" && printf '%s\n' *.$kind.json | sed "s/.$kind.json//" | sort)" ] ||
		fail "charts.def and the .$kind.json files in charts/ are not the same"
done
for source in "$folder"/charts/*.vl.json "$ROOT/docs/workshop/timeline.vl.json"; do
	sum=$(cat "$source" "$ROOT/.ci/compile-charts" "$folder/html/palette.h" | sha256sum | cut -d' ' -f1)
	grep -q "\"source\":\"$sum\"" "${source%.vl.json}.vg.json" || fail "the compiled chart of $source is of another source (make charts)"
done
# Without Vega the program is built all the same, and says why it has no charts.
MLBENCH_VEGA=$PWD/nowhere expect 0 "$ROOT/.ci/charts" vega.js
grep -qx '//! this mlbench was built without charts: libjs-vega is not installed' vega.js || fail "no reason: $(head -n 1 vega.js)"
# Where the compiler is at hand, it says so itself.
if command -v node >/dev/null && [ -s "$ROOT/build/charts/vega-lite.js" ]; then
	cp -r "$folder/charts" again
	rm again/*.vg.json
	expect 0 "$ROOT/.ci/compile-charts" "$ROOT/build/charts/vega.js" again
	diff -rq "$folder/charts" again >out || fail "compiled anew, the charts differ"
fi

can_draw || skip "charts cannot be drawn: no libjs-vega, chromium, chromedriver or python3-selenium"
cp "$ROOT"/docs/workshop/timeline.vl.json slides.vl.json && cp "$ROOT"/docs/workshop/timeline.vg.json slides.vg.json
expect 0 draw "$folder"/charts/*.vl.json slides.vl.json
prints "samples: timeline, 300 wide"
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

expect 0 draw ./*/report.html
for chart in stages ladder timeline latency scaling; do
	prints "./sweep/report.html: $chart, 300 wide"
done
prints "./computed/report.html: roofline, 1000 wide"
! grep -q "./bare/report.html: timeline" out || fail "a run without the profiler has nothing over time"
! grep -q "./sweep/report.html: roofline" out || fail "an emulated step has no roofline"
! grep -q "./null/report.html: roofline" out || fail "a step that computes nothing has no roofline"

# The check itself can fail: a name that the rows no longer have, and a transform that is none.
sed 's/"lines":\["throughput, other/"lines":["renamed: other/' sweep/report.html >renamed.html
sed 's/"type":"filter"/"type":"filtre"/' sweep/report.html >broken.html
expect 1 draw renamed.html broken.html
prints "marks have no colour"
prints 'its legend names "renamed: other keys as at the best point", and no mark is of it'
prints "broken.html: scaling, 1000 wide: 0 marks"
