# All results below a folder: found, filtered, plotted, from their summaries or, where there is none that holds, their points.
. "$CLI/lib.sh"
write_config
expect_measured "$MLBENCH" run tiny.ini --set decode.workers=1 --set batch.size=8 --set measure.epochs=4 --out one
expect_measured "$MLBENCH" sweep tiny.ini --set sweep.batch.size=8 --set measure.epochs=4 --out two
# A month of one benchmark that loses a fifth when the kernel changes; another one, with a hostile name; a sweep.
python3 - <<'PY'
import json, random
random.seed(3)
start, items = 1790000000, []
for i in range(16):
    items.append({"name": "alpha", "folder": "alpha", "started": start + 86400 * i,
                  "factor": (1 if i < 10 else 0.8) * (1 + 0.01 * random.gauss(0, 1)),
                  "facts": {"kernel.release": "6.1.0" if i < 10 else "6.6.1"}})
for i in range(6):
    items.append({"name": "b<i>\"'\u001b[31m,|`\n</script>", "folder": "hostile", "config_hash": "00ff00ff00ff00ff",
                  "started": start + 86400 * i + 7})
json.dump(items, open("series.json", "w"))
json.dump([{"name": "sweep", "folder": "sweep", "started": start + 99}], open("sweep.json", "w"))
PY
python3 "$CLI/make_history.py" one results series.json
python3 "$CLI/make_history.py" two results sweep.json

# --- the list ---
expect 0 "$MLBENCH" history
prints "23 of 23 results in results"
[ "$(grep -c alpha out)" -eq 16 ] || fail "16 results of alpha"
! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" out || fail "control characters on the terminal"
[ "$(wc -L <out)" -le 100 ] || fail "a line is wider than the terminal"
expect 0 "$MLBENCH" history --where name=alpha --where 'throughput>0' --since 2026-09-22
prints "with name=alpha, throughput>0, since 2026-09-22"
expect 0 "$MLBENCH" history --where decode.workers=2
prints "1 of 23"
prints "decode.workers=2"
expect 0 "$MLBENCH" history --where kernel.release=6.6.1
prints "6 of 23"
expect 2 "$MLBENCH" history --where nmae=x
says "did you mean 'name'"
expect 2 "$MLBENCH" history --metric decode.capacit
says "did you mean 'decode.capacity'"
expect 2 "$MLBENCH" history --since someday
expect 2 "$MLBENCH" history --significance 3
expect 2 "$MLBENCH" history --format htlm
says "did you mean 'html'"
expect 2 "$MLBENCH" history --json --out file.json
says "--format json"
expect 2 "$MLBENCH" history nowhere
says "nowhere"
expect 2 "$MLBENCH" history --json --where "name) OR (1"
is_json mlbench.error/1

# --- over time ---
expect 0 "$MLBENCH" history --metric throughput --where name=alpha
prints "change"
prints "kernel.release 6.1.0 -> 6.6.1"
prints "●"
LC_ALL=C expect 0 "$MLBENCH" history --metric throughput --where name=alpha
! LC_ALL=C grep -q '[^ -~]' out || fail "more than ASCII in the C locale"
expect 0 "$MLBENCH" history --metric decode.capacity --json
is_json mlbench.history/1
python3 - <<'PY' || fail "change points"
import json
plot = json.load(open("out"))["plot"]
assert plot["metric"] == "decode.capacity" and plot["significance"] == 0.01
series = {s["name"]: s for s in plot["series"]}
assert len(series) == 3, list(series)
changes = series["alpha"]["changes"]
assert len(changes) == 1 and changes[0]["at"] == 10, changes
assert 0.77 < changes[0]["ratio"] < 0.83 and changes[0]["p"] <= 0.01
assert [s for n, s in series.items() if n.startswith("b<i>")][0]["changes"] == []
PY
expect 0 "$MLBENCH" history --format csv
python3 - <<'PY' || fail "csv"
import csv
rows = list(csv.DictReader(open("out", newline="")))  # control characters are '?'
assert len(rows) == 23 and any(row["name"].startswith("b<i>\"'?[31m,|`?</script>") for row in rows)
PY
expect 0 "$MLBENCH" history --format html --metric throughput --out page.html
! grep -q '<i>\|`$(printf "\033")' page.html || fail "a name is markup"
grep -q 'b&lt;i&gt;' page.html || fail "the name is not on the page"
! grep -qE '(src|href)="https?:' page.html || fail "the page wants a network"
expect 0 "$MLBENCH" history --metric throughput --json
cp out plotted.json
python3 - <<'PY' 2>perr || fail "html: $(cat perr)"
import html.parser
class Tags(html.parser.HTMLParser):
    scripts = 0
    def handle_starttag(self, tag, attrs):
        assert tag != "i", "markup from a name"
page = open("page.html", encoding="utf-8").read()
Tags().feed(page)
# Which series, which result, and hours of a day and not of a dial.
import re
heads = re.findall(r"<h[23] id=\"series-\d+-title\">(.*?)</h", page, re.S)
assert heads and len(set(heads)) == len(heads), heads
import json
sizes = [len(series["values"]) for series in json.load(open("plotted.json"))["plot"]["series"]]
assert len(heads) == sum(size > 1 for size in sizes), (heads, sizes)
single = page.split("Series of one result", 1)[1].split("</table>")[0] if 1 in sizes else ""
assert single.count("<tr>") == sizes.count(1) + (1 in sizes), (single, sizes)
assert page.count("%H:%M") and "<th scope=col>result" in page[page.index("the best point of each"):]
PY

# --- what is new, has changed, is gone ---
cp -r results/alpha/20260921T141320Z results/alpha/20270101T000000Z
expect 0 "$MLBENCH" history
prints "24 of 24"
rm -r results/alpha/20270101T000000Z
head -c 1000 one/points.jsonl >results/alpha/20260921T141320Z/points.jsonl
expect 0 "$MLBENCH" history
prints "1 cannot be read"
prints "unreadable"
expect 0 "$MLBENCH" history --where status=unreadable
prints "1 of 23"
cp one/points.jsonl results/alpha/20260921T141320Z/points.jsonl
expect 0 "$MLBENCH" history
! grep -q unreadable out || fail "it can be read again"
# A result of another schema, half a line, nothing at all.
mkdir -p results/odd/{schema,half,nothing}
sed 's#mlbench.points/1#mlbench.points/9#' one/points.jsonl >results/odd/schema/points.jsonl
(head -n 1 one/points.jsonl; printf '{"kind": "rep') >results/odd/half/points.jsonl
: >results/odd/nothing/points.jsonl
expect 0 "$MLBENCH" history
prints "mlbench.points/9"
prints "2 cannot be read"
prints "interrupted"
rm -r results/odd

# Figures and verdicts are those of the run's own summary, unless measurements came after it, or it is torn.
cp -rp two results/saved
edit() { python3 -c 'import json, sys
s = json.load(open("results/saved/summary.json"))
for p in s["points"]:
    exec(sys.argv[1])
json.dump(s, open("results/saved/summary.json", "w"))' "$1"; }
edit 'p["verdict"]["stage"] = "sync"'
expect 0 "$MLBENCH" history --where stage=sync
prints "1 of 24"
cp -p results/saved/points.jsonl kept
touch -d '+1 minute' results/saved/points.jsonl
expect 0 "$MLBENCH" history --where stage=sync
prints "0 of 24"
cp -p kept results/saved/points.jsonl
head -c 3000 results/saved/summary.json >torn && mv torn results/saved/summary.json
expect 0 "$MLBENCH" history --where stage=sync
prints "0 of 24"
expect 0 "$MLBENCH" history
! grep -q unreadable out || fail "the points of a torn summary can be read"
# A run that goes on holds its file locked; whether it ends well or not, that is seen afterwards.
head -n 2 two/points.jsonl >results/saved/points.jsonl
expect 0 "$MLBENCH" history --where status=interrupted
prints "1 of 24"
python3 -c "import fcntl, time; f = open(\"results/saved/points.jsonl\", \"a\"); fcntl.flock(f, fcntl.LOCK_EX); open(\"held\", \"w\"); time.sleep(600)" &
holder=$!
until_true test -e held
if grep FLOCK /proc/locks | grep -q ":$(stat -c %i results/saved/points.jsonl) "; then
	expect 0 "$MLBENCH" history --where status=running
	prints "1 of 24"
fi
kill $holder && wait $holder 2>/dev/null
rm -r results/saved

# --- nothing is written ---
before=$("$MLBENCH" history --format csv)
same() { [ "$("$MLBENCH" history --format csv 2>err "$@")" = "$before" ] || fail "another list: $*"; }
same
[ -z "$(find results -newer kept -not -name points.jsonl -type f)" ] || fail "a listing leaves a file"
# A folder that cannot be written (root could).
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	cp "$MLBENCH" ./mlbench && chmod 755 ./mlbench . && chmod -R a+rX . && chmod 711 "$TOOLS"
	if "${as[@]}" ./mlbench --version >/dev/null 2>&1; then
		"${as[@]}" ./mlbench history --format csv >out 2>err || fail "a read-only folder"
		[ "$(cat out)" = "$before" ] || fail "a read-only folder: another list"
	fi
fi
# A result alone; an empty folder.
expect 0 "$MLBENCH" history one
prints "1 of 1"
mkdir nothing
expect 0 "$MLBENCH" history nothing
prints "0 of 0"
"$MLBENCH" history --format csv >/dev/full 2>err
[ $? -eq 3 ] || fail "stdout is full, and nobody says so"
says "No space left"
exit 0
