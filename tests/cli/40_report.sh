# report.html: written at the end of a run, again from a saved result, of what there is when a run was stopped; clear
# refusals of what is no result; the command that it prints is the same measurement.
. "$CLI/lib.sh"
write_config
expect_measured "$MLBENCH" sweep tiny.ini --set "decode.workers=1" --set run.seed=7 --out 'a "sweep"'
prints 'page     a "sweep"/report.html'
tail -n 1 out | grep -qF 'report.html' || fail "a sweep does not end by naming its page"
[ -s 'a "sweep"/report.html' ] || fail "no page"
cp 'a "sweep"/report.html' first.html
expect 0 "$MLBENCH" report 'a "sweep"'
[ "$(cat out)" = 'a "sweep"/report.html' ] || fail "it does not print the page's name"
cmp -s first.html 'a "sweep"/report.html' || fail "made again, the page is another"

# The page as a text: first the verdict, each section, the points' figures, one document that fetches nothing.
python3 - first.html 'a "sweep"/summary.json' >commands <<'PY' || fail "the page is not what it should be"
import html, json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
summary = json.load(open(sys.argv[2]))
assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")
body = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
assert not re.search(r'(?:src|href)=(?!"#)', body), "it refers to something outside"
assert "default-src 'none'" in page
text = html.unescape(re.sub(r"<[^>]*>", " ", body))
for title in ("Bottlenecks in order", "Throughput over the swept keys", "What to do", "Evidence", "Reproduce", "Environment", "Configuration"):
    assert title in text, title
for point in summary["points"]:
    median = point["throughput"]["median"]
    assert median is None or f"{median:,.0f}" in text, median
assert not re.search(r"<th\b[^>]*>\s*<", body), "a column without a name"
assert summary["config_hash"] in text and "Seed 7" in text
assert summary["step"]["description"] in text
codes = [html.unescape(code) for code in re.findall(r"<pre[^>]*><code>(.*?)</code>", page, re.S)]
print("\n".join(code for code in codes if code.startswith("mlbench sweep")))
PY
[ "$(wc -l <commands)" -eq 2 ] || fail "not two commands that measure it again: $(cat commands)"
hash=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["config_hash"])' 'a "sweep"/summary.json')
while read -r line; do
	line=${line/mlbench sweep/\"$MLBENCH\" check}" --json"
	eval "$line" >out 2>err || fail "it does not run: $line"
	[ "$(json 'd["config_hash"]')" = "$hash" ] || fail "it is another measurement: $line"
done <commands

# Elsewhere, and about another point; as a document.
other=$(python3 -c 'import json,sys
summary = json.load(open(sys.argv[1]))
print(1 if summary["best"] in (0, None) else 0)' 'a "sweep"/summary.json')
expect 0 "$MLBENCH" report 'a "sweep"' --out page.html --point "$other"
[ -s page.html ] || fail "--out was not written"
cmp -s page.html first.html && fail "--point $other is about the best point"
mkdir folder
expect 0 "$MLBENCH" report 'a "sweep"' --out folder --json
is_json mlbench.report/1
[ "$(json 'd["file"]')" = folder/report.html ] || fail "it does not say the file"
[ -s folder/report.html ] || fail "a folder is not written into"
expect 2 "$MLBENCH" report 'a "sweep"' --point 9
says "0 to 1"
expect 2 "$MLBENCH" report 'a "sweep"' --point x
expect 2 "$MLBENCH" report 'a "sweep"' --out nowhere/page.html
says "nowhere/page.html"

# What is no result, or is one no more.
expect 2 "$MLBENCH" report nonesuch
says "no such result"
mkdir empty
expect 2 "$MLBENCH" report empty
says "no points.jsonl"
broken() { # NAME SAYS: of the file on stdin
	mkdir "$1" && cat >"$1/points.jsonl"
	expect 2 "$MLBENCH" report "$1"
	says "$2"
	[ ! -e "$1/report.html" ] || fail "$1 left a page"
	[ "$(wc -l <err)" -eq 1 ] || fail "$1 is refused in more than one line"
}
sed 's#mlbench.points/1#mlbench.points/0#' 'a "sweep"/points.jsonl' | broken older "schema is 'mlbench.points/0'"
: | broken zero "no complete line"
head -c 200 'a "sweep"/points.jsonl' | broken half "no complete line"
head -c 100000 /dev/urandom | broken noise "noise/points.jsonl"
if [ "$(id -u)" -ne 0 ]; then
	mkdir closed && cp 'a "sweep"/points.jsonl' closed && chmod 000 closed/points.jsonl
	expect 2 "$MLBENCH" report closed
fi

# A run that was killed: a page of what there is, which says so.
mkdir killed
head -n 3 'a "sweep"/points.jsonl' >killed/points.jsonl
head -n 4 'a "sweep"/points.jsonl' | tail -n 1 | head -c 100 >>killed/points.jsonl
expect 0 "$MLBENCH" report killed
grep -q 'Interrupted:' killed/report.html || fail "it does not say that the run was interrupted"
grep -qF 'mlbench sweep --resume killed' killed/report.html || fail "it does not say how to go on"
mkdir begun
head -n 1 'a "sweep"/points.jsonl' >begun/points.jsonl
expect 0 "$MLBENCH" report begun
grep -q 'Nothing was measured yet' begun/report.html || fail "a run that only began has no such page"

# A repetition that does not count is told of, on the page and in the terminal, whichever point it is of.
mkdir left
sed '2s/"status":"[a-z]*"/"status":"unsteady"/; 3,$s/"status":"unsteady"/"status":"ok"/' 'a "sweep"/points.jsonl' >left/points.jsonl
expect 0 "$MLBENCH" report left
grep -q 'Left out:.*1 of 4 repetitions, at 1 point, were unsteady' left/report.html || fail "the page does not tell of a repetition that is left out"
expect 0 "$MLBENCH" show left
prints "1 of 4 repetitions, at 1 point"

# A stage alone that gave less than the pipeline did is no limit of it, and that is said.
mkdir slowed
sed '$i {"kind":"limit","stage":"decode","capacity":1.5,"how":"alone: 1 worker, from memory, null step"}' 'a "sweep"/points.jsonl' >slowed/points.jsonl
expect 0 "$MLBENCH" report slowed
grep -q 'The decode limit (1.5[0-9]*/s) is less than the best point gives' slowed/report.html || fail "the page has a limit that was exceeded, and says nothing"
expect 0 "$MLBENCH" show slowed
prints "The decode limit (1.5"

# Planted conditions stand on top.
expect_measured "$MLBENCH" run tiny.ini $ONE --set inject.read_latency=1ms --out slow
grep -q 'Planted conditions:.*read_latency 1ms' slow/report.html || fail "planted conditions are not announced"

# More points than have a section on the page, most of which failed or are alike: the fastest have one, and no more than fit.
python3 "$CLI/widen_sweep.py" 'a "sweep"' wide prefetch.depth="$(seq -s, 1 601)"
python3 - wide/points.jsonl <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
for line in lines:
    if line.get("kind") == "repetition" and line["point"] != 1100:
        line.update(status="failed", error="it was planted", throughput=0)
with open(sys.argv[1], "w") as file:
    file.writelines(json.dumps(line) + "\n" for line in lines)
PY
expect 0 "$MLBENCH" report wide --out wide.html
[ "$(grep -o '<details class="point"' wide.html | wc -l)" -eq 1000 ] || fail "not 1,000 of 1,202 points have a section"
grep -q 'id="point-1100"' wide.html || fail "the only point that was measured has no section"
grep -q 'The fastest points' wide.html || fail "the page does not say that points have no section"
