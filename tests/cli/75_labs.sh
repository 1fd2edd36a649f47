# The labs that are shipped: files, pages and the program agree.  Nothing is measured here but a sleep; what the labs plant,
# and what their answers gain, is tried by `make labs`.
. "$CLI/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
ln -s "$ROOT/configs" configs
ln -s "$ROOT/docs" docs

expect 0 "$MLBENCH" lab list --json
[ ! -s err ] || fail "a lab is left out: $(head -n 1 err)"
python3 - "$ROOT" >commands <<'PY' || fail "files and pages do not agree"
import glob, json, os, re, subprocess, sys
root = sys.argv[1]
told = {lab["lab"]: lab for lab in json.load(open("out"))["labs"]}
bad = []
folders = {}  # of data sets: labs that store theirs in several forms share none
if sorted(told) != list(range(1, 13)):
    bad.append("labs %s" % sorted(told))

golden = open(root + "/tests/golden/show_100.txt", encoding="utf-8").read()
# The beginning of each line of the table and below it, of which the golden output has most.
printed = set(re.findall(r"^  (\S+)", golden, re.M)) | {"checkpoint", "upload", "uploaded", "decode", "of"}
header = re.search(r"^ +(stage +threads .*)$", golden, re.M).group(1).split()

def seconds(text):
    number, unit = re.match(r"([\d.]+)(ms|s)", text).groups()
    return float(number) * (0.001 if unit == "ms" else 1)

for path in sorted(glob.glob(root + "/configs/labs/*.ini")):
    name = os.path.basename(path)[:-4]
    text = open(path, encoding="utf-8").read()
    lesson, lab = text.split("[lab]", 1)
    plain = {match[0]: match[1] for match in re.findall(r"^(\w+) = (\S+)", lesson, re.M)}
    values = [(key, value.strip()) for key, value in re.findall(r"^(\w+) = (.*)$", lab, re.M)]
    of = lambda word: [value for key, value in values if key == word]
    number, page = int(of("number")[0]), of("page")[0]

    def must(so, what):
        if not so:
            bad.append("%s: %s" % (name, what))

    must(name.startswith("%02d_" % number) and page == "docs/workshop/labs/%s.md" % name, "number, name and page differ")
    must(len(lesson.splitlines()) <= 60, "the lesson has more than 60 lines")
    must("# What to expect" in lesson and "# What to change next" in lesson, "it is no lesson")
    must(max(map(len, lesson.splitlines())) <= 106, "a comment is too wide")
    once = seconds(plain["warmup"]) + seconds(plain["duration"])
    must(once * int(plain["repeats"]) <= 20, "a measurement takes more than 20 s")
    answers = {line.split(",")[0]: line.split(":", 1)[1] for line in of("answer")}
    must(all(line.endswith(":" + answers[line.split(",")[0]]) for line in of("answer")), "a variant's question tells which it is")
    must(len(of("wrong")) >= 2 and len(of("plant")) >= 1 and of("explain"), "too few wrong fixes, plants or explanations")
    shown = open(os.path.join(root, page), encoding="utf-8").read()
    must(shown.startswith("# Lab %d: " % number), "the page has another number")
    must(shown.count("\n") <= 100, "the page is longer than a page")
    forms = any(line.startswith("dataset.") for line in of("knob"))
    must(not forms and not folders.get(plain["path"]) or plain["path"] not in folders, "it shares %s" % plain["path"])
    folders[plain["path"]] = forms
    asks = [line.split(",")[0] for line in of("ask")]
    for word in asks:
        must("%s=" % word in shown, "the page does not name the prediction %s" % word)
    for word in [line.split(",")[0] for line in of("answer")]:
        must("%s=NUMBER" % word in shown, "the page does not name the answer %s" % word)
    for knob in [line.split("=")[0].strip() for line in of("knob")]:
        must("`%s`" % knob in shown, "the page does not name the knob %s" % knob)
    for cause in of("cause"):
        must(cause.split("|")[0].strip() not in shown, "the cause stands on the page")
    checks = re.findall(r"^    mlbench lab check %d (.*)$" % number, shown, re.M)
    must(len(checks) == 1 and "cause=STAGE/RESOURCE evidence=..." in checks[0] and "." not in checks[0].replace("...", ""),
         "the page does not show a check, or shows the answer in it")
    blocks = re.findall(r"^```\n(where the time went.*?)^```", shown, re.M | re.S)
    rows = [line.split() for line in blocks[0].splitlines()[1:] if line[2:3] != " "] if len(blocks) == 1 else [[]]
    must(rows[0] == header and all(row[0] in printed for row in rows[1:]), "nobody prints the page's output today")
    # What the page has run is one point, and what it has swept is more of them.
    for verb, words in re.findall(r"mlbench (run|sweep) ([^\s`]+(?:\s+--set \S+=[^\s`]+)*)", shown):
        checked = subprocess.run([os.environ["MLBENCH"], "check", *words.split(), "--json"], stdout=subprocess.PIPE, text=True)
        count = json.loads(checked.stdout).get("point_count", 0)
        must(count == 1 if verb == "run" else count > 1, "'mlbench %s %s' has %d points" % (verb, words, count))
    told_there = re.search(r"^    mlbench lab predict %d (.*)$" % number, shown, re.M)
    must(told_there and told_there.group(1).split() == ["%s=..." % ask for ask in asks], "the page predicts something else")
    words = {"stage": "read", "resource": "latency"}
    print("predict", number, *["%s=%s" % (ask, words.get(ask, "10..20@70%")) for ask in asks])
print("\n".join(bad), file=sys.stderr)
sys.exit(1 if bad else 0)
PY

for config in configs/labs/*.ini; do
	expect 0 "$MLBENCH" check "$config"
done
for number in 1 2 3 4 5 6 7 8 9 10 11 12; do
	expect 0 "$MLBENCH" lab start $number
done
while read -r action number words; do
	# shellcheck disable=SC2086
	expect 0 "$MLBENCH" lab "$action" "$number" $words
done <commands
