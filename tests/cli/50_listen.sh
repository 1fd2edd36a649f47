# --listen: scraped while a run goes on, clean for promtool, counters that only grow; a port that is taken, one that is none.
. "$CLI/lib.sh"
command -v curl >/dev/null 2>&1 || skip "curl is not installed"
write_config
expect 0 "$MLBENCH" gen tiny.ini
trap '[ -z "${pid:-}" ] || kill -KILL "$pid" 2>/dev/null' EXIT
"$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --set measure.duration=1h --listen=0 --out listening >out 2>err &
pid=$!
url=
for _ in $(seq 3000); do
	url=$(sed -n 's/^metrics: //p' err)
	[ -n "$url" ] && curl -sf "$url" | grep -q '^mlbench_run_throughput_samples_per_second' && break
	sleep 0.05
done
[ -n "$url" ] || fail "it does not say where it listens"
curl -sf -D head -H 'Accept: application/openmetrics-text;version=1.0.0' "$url" >one || fail "no metrics at $url"
grep -qi '^Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8' head || fail "$(cat head)"
[ "$(tail -n 1 one)" = "# EOF" ] || fail "no end"
for metric in samples_total stage_seconds_total queue_depth throughput_samples_per_second resident_bytes; do
	grep -q "^mlbench_run_$metric" one || fail "no $metric"
done
# Without a wish: the format that promtool reads.
curl -sf -D head "$url" >plain || fail "no metrics in the older format"
grep -qi '^Content-Type: text/plain; version=0.0.4' head || fail "$(cat head)"
! grep -q '^# EOF' plain || fail "OpenMetrics that was not asked for"
if command -v promtool >/dev/null 2>&1; then
	promtool check metrics <plain >problems 2>&1 || fail "promtool: $(head -n 5 problems)"
	[ ! -s problems ] || fail "promtool: $(head -n 5 problems)"
fi
samples() { sed -n 's/^mlbench_run_samples_total[^ ]* //p' "$1"; }
more() { curl -sf "$url" >two && [ "$(samples two)" != "$(samples one)" ]; }
until_true more
python3 - <<'PY' || fail "a counter does not grow"
import re
def read(path):
    return {m[1]: float(m[2]) for m in re.finditer(r"^(mlbench_run_\S*_total\S*) (\S+)$", open(path).read(), re.M)}
one, two = read("one"), read("two")
assert one.keys() == two.keys() and len(one) > 8, (one, two)
assert all(two[k] >= one[k] for k in one), [(k, one[k], two[k]) for k in one if two[k] < one[k]]
assert two["mlbench_run_samples_total"] > one["mlbench_run_samples_total"]
PY
port=${url##*:}
port=${port%%/*}
# Only the node itself is served.
for address in $(hostname -I 2>/dev/null); do
	case "$address" in *:*) address="[$address]" ;; esac
	! curl -sf -m 2 "http://$address:$port/metrics" >/dev/null || fail "served at $address"
done

# Taken: refused before anything is measured.
expect 2 "$MLBENCH" run tiny.ini $ONE --listen="$port" --out taken
says "cannot serve port $port of 127.0.0.1: Address already in use"
[ ! -e taken ] || fail "results of a refused run"
expect 2 "$MLBENCH" run tiny.ini --listen=http
says "'http' is not a port"
expect 2 "$MLBENCH" run tiny.ini --listen=70000
kill -INT "$pid"
wait "$pid"
[ $? -eq 130 ] || fail "the run did not end as it should"
! curl -sf -m 2 "$url" >/dev/null || fail "still served"
pid=
