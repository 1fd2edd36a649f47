# What measures links and runs without what reads (tests/measuring_alone.c), and leaves a record that mlbench reads.
. "$CLI/lib.sh"
alone=$(dirname "$MLBENCH")/measuring_alone
[ -x "$alone" ] || skip "it runs elsewhere; make all first, for the program that measures alone"
write_config
sed -i '/^\[sweep\]/,$d' tiny.ini
expect 0 "$alone" tiny.ini left
repetitions left 1 || fail "no repetition is recorded"
libraries=$(ldd "$alone")
for needless in ncurses microhttpd protobuf tinfo gnutls yajl; do
	case $libraries in *lib"$needless"*) fail "what measures needs lib$needless" ;; esac
done
"$MLBENCH" show left >out 2>err || [ $? -eq 3 ] || fail "its record cannot be read"
prints "samples/s"

# A program without any of the optional libraries does the rest, lists what it is without, and says so to whoever asks for it.
bare=$(dirname "$MLBENCH")/bare/mlbench
[ -x "$bare" ] || skip "it runs elsewhere; make all first, for the program without the optional libraries"
libraries=$(ldd "$bare")
for optional in webp tiff ncurses tinfo microhttpd gnutls dw elf protobuf yajl; do
	case $libraries in *"lib$optional"[-.w0-9]*) fail "the program without the optional libraries needs lib$optional" ;; esac
done
expect_measured "$bare" run tiny.ini --out bare
[ -s bare/report.html ] || fail "no report"
for command in "show bare" "diagnose bare" "top bare" "compare left bare" "history ." "export bare --format markdown"; do
	# shellcheck disable=SC2086
	"$bare" $command >out 2>err || [ $? -eq 3 ] || fail "without the optional libraries, '$command' fails: $(cat err)"
done
"$bare" run tiny.ini --watch --out watched >out 2>err || [ $? -eq 3 ] || fail "a run without its view fails"
says "built without ncurses"
# without LIBRARY COMMAND ...: cannot be done here (3), and the line says which library that is.
without() {
	expect 3 "$bare" "${@:2}"
	says "built without $1"
}
without libdw run tiny.ini --flame --out flamed
without libmicrohttpd run tiny.ini --listen --out served
without protobuf-c export bare --format tensorboard
printf '{"traceEvents": []}' >trace.json
without yajl fit trace.json
printf 'step_time_ms\n30\n31\n32\n' >steps.csv
expect 0 "$bare" fit steps.csv
printf '{"step": 1, "step_time_ms": 30}\n{"step": 2, "step_time_ms": 31}\n{"step": 3, "step_time_ms": 32}\n' >steps.jsonl
expect 0 "$bare" fit steps.jsonl
expect 0 "$bare" list parts --json
python3 - <<'PY' || fail "the list of parts"
import json
rows = {row["name"]: row["unavailable"] for row in json.load(open("out"))["parts"]}
assert set(rows) == {"live view", "metrics server", "flame graphs", "TensorBoard", "traces", "charts", "ranks"}, rows
assert all(why for name, why in rows.items() if name not in ("charts", "ranks")), rows
PY
expect 0 "$bare" list codecs
[ "$(grep -c 'not here' out)" -ge 2 ] || fail "webp and tiff are decoded without their libraries"
