# Results in other tools' formats: read back by readers of theirs, hostile names and unwritable places included.
. "$CLI/lib.sh"
PYTHON=python3
python3 -c 'import google.protobuf' 2>/dev/null || PYTHON=/usr/bin/python3
write_config
# Names as somebody might choose them who wants to do harm, or just has no idea.
expect_measured "$MLBENCH" sweep tiny.ini --set measure.duration=150ms --set sweep.batch.size=8 --out plain
python3 - <<'PY'
import json, os
os.makedirs("hostile")
lines = open("plain/points.jsonl").read().splitlines()
header = json.loads(lines[0])
header["name"] = 'a"b\\c\nd,e|f`g`</script>\u001b[31m\u0007../é'
header["environment"]["cpu"]["model"] = 'CPU "9000"\\\n'
header["step"]["description"] = "<img src=x onerror=alert(1)> | `x` @all"
open("hostile/points.jsonl", "w").write("\n".join([json.dumps(header)] + lines[1:]) + "\n")
PY

# Formats are listed, and refused by name.
expect 0 "$MLBENCH" list formats
for format in csv markdown jsonl openmetrics tensorboard; do prints "$format"; done
expect 2 "$MLBENCH" export plain --format openmetrix
says "did you mean 'openmetrics'"
expect 2 "$MLBENCH" export plain
says "needs --format"
expect 2 "$MLBENCH" export nothing --format csv

# CSV is points.csv.
expect 0 "$MLBENCH" export plain --format csv
cmp out plain/points.csv || fail "csv is not points.csv"

# JSON lines: an object each, as many as points, flat, with the figures of points.csv.
expect 0 "$MLBENCH" export hostile --format jsonl
"$PYTHON" - <<'PY' || fail "json lines"
import csv, json
lines = [json.loads(line) for line in open("out").read().splitlines()]
rows = list(csv.DictReader(open("plain/points.csv")))
assert len(lines) == len(rows) == 2
for line, row in zip(lines, rows):
    assert not any(isinstance(v, (dict, list)) for v in line.values())
    assert line["schema"] == "mlbench.point/1" and line["emulated"] is True
    assert line["decode.workers"] == int(row["decode.workers"])
    assert line["name"].startswith('a"b\\c\nd')
    if row["samples_per_s"]:
        assert abs(line["samples_per_s"] - float(row["samples_per_s"])) < 1e-6 * line["samples_per_s"]
        assert line["decode.p99_s"] > 0
PY

# Markdown: nothing of a name is markup, and every row of a table has as many cells as its head.
expect 0 "$MLBENCH" export hostile --format markdown
! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" out || fail "control characters in Markdown"
! grep -q '<img\|</script\|[^\\]`' out || fail "markup in Markdown"
awk '/^\|/ { gsub(/\\\|/, ""); n = gsub(/\|/, ""); if (head && n != head) exit 1; head = n; next } { head = 0 }' out ||
	fail "a row has another number of cells than its table"
! measuring || prints "emulated" # in the verdict, which a short run on a busy machine may not have

# Metrics: one parser of theirs, one of ours; names are the labels' values again.
expect 0 "$MLBENCH" export hostile --format openmetrics
mv out metrics.prom
if command -v promtool >/dev/null; then
	promtool check metrics <metrics.prom >lint 2>&1 || { cat lint; fail "promtool"; }
	[ ! -s lint ] || { cat lint; fail "promtool has something to say"; }
else
	echo "note: without promtool"
fi
"$PYTHON" - <<'PY' || fail "metrics"
import re
text = open("metrics.prom", encoding="utf-8").read()
lines = text.split("\n")
assert lines[-2] == "# EOF" and lines[-1] == ""
seen, open_family = set(), None
sample = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$')
for line in lines[:-2]:
    if line.startswith("# HELP "):
        family = line.split()[2]
        assert family not in seen, family
        seen.add(family)
        open_family = family
    elif not line.startswith("#"):
        name, labels, value = sample.match(line).groups()
        assert name == open_family, line
        float(value)
        found = dict(re.findall(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"', labels))
        assert found["name"].startswith('a\\"b\\\\c\\nd,e|f`g`</script>\ufffd[31m'), found["name"]
for name in ("mlbench_result_throughput_samples_per_second", "mlbench_result_end_timestamp_seconds",
             "mlbench_result_complete", "mlbench_result_info"):
    assert name in seen, name
assert text.count("mlbench_result_point_throughput_samples_per_second{") <= 2
PY

# Into a folder, under a name of its own that is safe; an older file is replaced at once and nothing is left beside it.
mkdir textfile
echo old >textfile/mlbench_tiny.prom
expect 0 "$MLBENCH" export plain --format openmetrics --out textfile
grep -q '^# EOF' textfile/mlbench_tiny.prom || fail "the file was not replaced"
expect 0 "$MLBENCH" export hostile --format openmetrics --out textfile/
[ "$(find textfile -type f | wc -l)" -eq 2 ] || fail "not one file each: $(ls textfile)"
! find textfile -name '*tmp*' | grep -q . || fail "a temporary file is left"
expect 0 "$MLBENCH" export plain --format openmetrics --out textfile/mine.txt
says "end in '.prom'"
# Through a link, the file it points to; a pipe and a device are written to, not replaced.
ln -s textfile/mlbench_tiny.prom link.prom
expect 0 "$MLBENCH" export plain --format openmetrics --out link.prom
[ -L link.prom ] || fail "the link was replaced"
mkfifo pipe
cat pipe >from_pipe &
expect 0 "$MLBENCH" export plain --format csv --out pipe
wait
cmp from_pipe plain/points.csv || fail "through a pipe"
[ -p pipe ] || fail "the pipe was replaced"

# Places that cannot be written, full, or closed.
expect 2 "$MLBENCH" export plain --format csv --out /proc/nothing/x.csv
says "/proc/nothing/x.csv"
expect 3 "$MLBENCH" export plain --format csv --out /dev/full
says "No space left"
[ -c /dev/full ] || fail "a device was replaced"
"$MLBENCH" export plain --format csv >/dev/full 2>err
[ $? -eq 3 ] || fail "stdout is full, and nobody says so"
says "No space left"
("$MLBENCH" export plain --format jsonl; echo $? >status) 2>err | true
[ "$(cat status)" -eq 0 ] || fail "a closed pipe is no failure"

# TensorBoard: a reader of its own where there is one, and one that is not ours in any case.
expect 0 "$MLBENCH" export plain --format tensorboard --out tb
expect 0 "$MLBENCH" export plain --format tensorboard --out tb
[ "$(find tb -type f | wc -l)" -eq 4 ] || fail "2 points x 2 repetitions: $(find tb -type f | wc -l) files"
if "$PYTHON" -c 'import google.protobuf' 2>/dev/null; then
	"$PYTHON" "$CLI/read_events.py" tb plain || fail "event files"
else
	echo "note: without python3-protobuf"
fi
# Epochs of some windows each: their throughput is that of the run, and they follow each other in time.
expect_measured "$MLBENCH" run tiny.ini $ONE --set step.time=6ms --set measure.duration=2s --set measure.repeats=1 --out epochs
expect 0 "$MLBENCH" export epochs --format tensorboard --out tb_epochs
if "$PYTHON" -c 'import google.protobuf' 2>/dev/null; then
	"$PYTHON" "$CLI/read_events.py" --epochs tb_epochs epochs || fail "epochs"
fi
expect 0 "$MLBENCH" export plain --format tensorboard
[ -d plain/tensorboard ] || fail "not beside the result"
expect 2 "$MLBENCH" export plain --format tensorboard --out /dev/null/x
touch file
expect 2 "$MLBENCH" export plain --format tensorboard --out file

# Shipped rules for Prometheus: they hold, are tested, and name no metric that mlbench does not give.
if command -v promtool >/dev/null; then
	(cd "$ROOT/docs/prometheus" && promtool check rules mlbench.rules.yml && promtool test rules runs.test.yml results.test.yml) \
		>rules 2>&1 || { cat rules; fail "rules for Prometheus"; }
fi
grep -ohE 'mlbench_(run|result|accept)_[a-z_]+' "$ROOT"/docs/prometheus/*.yml | sort -u >named
grep -oE '"mlbench_(run|result|accept)_[a-z_]+"' "$ROOT/harness/report/openmetrics_names.c" | tr -d '"' | sort -u >given
missing=$(comm -23 named given)
[ -z "$missing" ] || fail "rules name metrics that are not given: $missing"
for alert in $(sed -n 's/.*- alert: //p' "$ROOT/docs/prometheus/mlbench.rules.yml"); do
	grep -q "alertname: $alert\$" "$ROOT"/docs/prometheus/*.test.yml || fail "no test of $alert"
done
# Without a measurement there is nothing to write, and that is said.
head -n 1 plain/points.jsonl >empty.jsonl
mkdir empty && mv empty.jsonl empty/points.jsonl
expect 0 "$MLBENCH" export empty --format openmetrics
prints "mlbench_result_complete"
! grep -q throughput_samples_per_second out || fail "a throughput of nothing"
expect 2 "$MLBENCH" export empty --format tensorboard --out nothing
says "nothing was measured"
