# The forms of an acceptance result are what their readers take: JUnit by a schema, metrics by promtool, JSON by its own
# schema, the screen at 80 columns, one line for schedulers, statuses for Nagios, pages that compile; of results that pass,
# warn, fail, hung, were skipped and interrupted, and of one whose every name is hostile.
. "$CLI/lib.sh"
kept="$ROOT/tests/golden/accept"
PYTHON=/usr/bin/python3
statuses="pass:0:0 warn:0:1 fail:1:2 error:3:3 skip:0:0 interrupted:3:3 hostile:1:2"
export COLUMNS=80

# The help names every format, and nothing that is none.
expect 2 "$MLBENCH" accept "$kept/pass.json" --format zzzzzzzzzz
all=$(sed -n 's/.*there are //p' err | tr -d ',')
[ "$(echo "$all" | wc -w)" -ge 10 ] || fail "formats are not listed: $all"
expect 0 "$MLBENCH" accept --help
said=$(tr -s ' \n' '  ' <out | sed -n 's/.*--format is one of \([^.]*\)\. .*/\1/p' | sed 's/(the default)//; s/,//g')
[ "$(echo $said)" = "$(echo $all)" ] || fail "help says '$said', not '$all'"
expect 2 "$MLBENCH" accept "$kept/pass.json" --format junitt
says "did you mean 'junit'"

# Every form of every result, with the status of the verdict; only Nagios has statuses of its own.
for one in $statuses; do
	IFS=: read -r name status nagios <<<"$one"
	for format in $all; do
		want=$status
		[ "$format" != nagios ] || want=$nagios
		expect "$want" "$MLBENCH" accept "$kept/$name.json" --format "$format"
		[ -s out ] || fail "$format of $name is empty"
		[ ! -s err ] || fail "$format of $name says something on stderr"
		[ $format = json ] || ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" out || fail "a control character in $format of $name"
		cp out "$name.$format"
	done
	expect "$status" "$MLBENCH" accept "$kept/$name.json" # a pipe or a file has no colours
	cmp -s out "$name.terminal" || fail "terminal is not the default"
done

# And of a result that is made now, whose folder has the files of the list.
printf '[inventory]\nkind = expect\ntier = quick\ncpu.cores = >= 1,000,000\nwarn.cpu.model = is nothing\nkernel.release = known\n' >now.ini
printf '[devices]\nkind = expect\ntier = quick\nif_missing = skip\ngpu.serial = known\n' >>now.ini
expect 1 "$MLBENCH" accept now.ini --tier quick --node n17 --out now
for file in accept.json:json accept.html:page certificate.html:certificate accept.md:markdown junit.xml:junit accept.prom:openmetrics; do
	cp "now/${file%%:*}" "now.${file##*:}" || fail "the folder of a result lacks ${file%%:*}"
done
expect 1 "$MLBENCH" accept now --format junit
cmp -s out now.junit || fail "a saved result is told otherwise than when it was made"

# A screen of 80 columns, whose last lines are the answer and stand for themselves.
for name in pass fail error interrupted; do
	cp "$name.terminal" out
	golden "accept/$name.txt"
	[ "$(wc -L <out)" -le 80 ] || fail "$name.terminal is wider than 80 columns"
	[ "$(wc -l <out)" -le 21 ] || fail "$name.terminal is more than a screen"
done
if command -v script >/dev/null; then # colours on a terminal, and nothing of them that is text
	script -qec "'$MLBENCH' accept '$kept/fail.json'" /dev/null >typed
	[ $? -eq 1 ] || fail "the status on a terminal"
	grep -q "$(printf '^\033')\[31mFAIL$(printf '\033')\[0m gpu-0421" typed || fail "no colours: $(head -n 1 typed)"
	! grep -qF '?[' typed || fail "a colour is text"
fi
sed -n '/^FAIL/,$p' fail.terminal >out
head -n 1 out | grep -q '^FAIL gpu-0421: not fit, take it out of service\.' && grep -q '^  repeat  ' out && ! grep -q '^$' out || fail "the last lines are not the answer"
expect 1 "$MLBENCH" accept "$kept/fail.json" --verbose
prints "mlbench help throughput"
cp fail.markdown out
golden accept/fail.markdown

# JUnit: a schema, then what CI servers count.
if command -v xmllint >/dev/null; then
	for one in $statuses now; do
		name=${one%%:*}
		xmllint --noout --schema "$kept/junit.xsd" "$name.junit" 2>problems || { cat problems; fail "$name.junit"; }
	done
	# The check itself can fail.
	sed 's/ hostname="[^"]*"//' pass.junit >broken.xml
	! xmllint --noout --schema "$kept/junit.xsd" broken.xml 2>/dev/null || fail "the schema takes nonsense"
else
	echo "note: without xmllint"
fi
python3 - <<'PY' || fail "JUnit"
import xml.etree.ElementTree as ET
def read(name):
    return ET.parse(name + ".junit").getroot()
for name in "pass warn fail error skip interrupted hostile".split():
    for suite in read(name):
        cases = suite.findall("testcase")
        told = [c.tag for case in cases for c in case]
        assert int(suite.get("tests")) == len(cases)
        for kind, plural in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(plural)) == told.count(kind), (name, kind)
        assert abs(sum(float(c.get("time")) for c in cases) - float(suite.get("time"))) < 0.001 * len(cases) + 1e-9
def cases(name, kind):
    return [c.get("name") for s in read(name) for c in s.findall("testcase") if c.find(kind) is not None]
assert [n.split(":")[0] for n in cases("fail", "failure")] == ["decode.core of core 3", "decode.core of core 6", "burn.drift"]
assert cases("pass", "failure") + cases("pass", "error") + cases("pass", "skipped") == []
assert cases("warn", "failure") + cases("warn", "error") == []
assert "block-17" in next(c.find("error").get("message") for s in read("error") for c in s if c.find("error") is not None)
assert len(cases("skip", "skipped")) > 0 and len(cases("skip", "error")) == 0
assert cases("interrupted", "error")[-1] == "complete"
evil = 'a"b\'c<d>&e`f|g\nh\ti\u00e9\ufffd[31m\ufffd\u202e\u65e5\u672c ]]> $(id) %n \ufffd\ufffd'
assert read("hostile")[0].get("name") == evil, read("hostile")[0].get("name")
PY

# Metrics.
if command -v promtool >/dev/null; then
	for one in $statuses now; do
		promtool check metrics <"${one%%:*}.openmetrics" >lint 2>&1 || { cat lint; fail "promtool"; }
		[ ! -s lint ] || { cat lint; fail "promtool has something to say"; }
	done
else
	echo "note: without promtool"
fi
grep -q 'mlbench_accept_verdict{node="gpu-0421",plan="node",verdict="FAIL"} 1' fail.openmetrics || fail "the verdict"
grep -q 'mlbench_accept_figure{.*figure="decode.core",place="core 3",statistic="median",unit="samples/s"} 123' fail.openmetrics || fail "the figure"
[ "$(tail -n 1 hostile.openmetrics)" = "# EOF" ] || fail "torn metrics"
[ -z "$(grep -v '^#' fail.openmetrics | sed 's/} .*/}/' | sort | uniq -d)" ] || fail "a series stands twice"
mkdir textfile
expect 1 "$MLBENCH" accept "$kept/fail.json" --format openmetrics --out textfile
cmp -s textfile/accept.prom fail.openmetrics || fail "not into the folder: $(ls textfile)"
[ "$(find textfile -type f | wc -l)" -eq 1 ] || fail "something else is left in the collector's folder"

# JSON, by its schema, which is strict.
if "$PYTHON" -c 'import jsonschema' 2>/dev/null; then
	"$PYTHON" - "$ROOT/docs/accept.schema.json" now.json "$kept"/*.json <<-'PY' || fail "accept.json"
		import copy, json, sys
		import jsonschema
		schema = json.load(open(sys.argv[1]))
		jsonschema.Draft202012Validator.check_schema(schema)
		validator = jsonschema.Draft202012Validator(schema)
		for path in sys.argv[2:]:
		    found = list(validator.iter_errors(json.load(open(path))))
		    assert not found, (path, found[0].json_path, found[0].message)
		good = json.load(open(sys.argv[-1]))
		def refuse(change):
		    other = copy.deepcopy(good)
		    change(other)
		    assert not validator.is_valid(other), "taken"
		refuse(lambda d: d.pop("verdict"))
		refuse(lambda d: d.update(extra=1))
		refuse(lambda d: d.update(verdict="FINE"))
		refuse(lambda d: d["checks"][0]["findings"][0].pop("measured"))
		refuse(lambda d: d["checks"][0].update(kind="guess"))
		refuse(lambda d: d["counts"].pop("ERROR"))
	PY
else
	echo "note: without python3-jsonschema"
fi
python3 - "$kept/fail.json" <<'PY' || fail "json is not the document"
import json, sys
assert json.load(open("fail.json")) == json.load(open(sys.argv[1]))
PY

# Schedulers: one line, as long as they take it, without anything that quotes.
for one in $statuses; do
	name=${one%%:*}
	for form in slurm nhc; do
		[ "$(wc -l <"$name.$form")" -eq 1 ] || fail "$form of $name is not a line"
		! LC_ALL=C grep -q "[^ -~]\|['\"\`\\\\\$|]" "$name.$form" || fail "$form of $name could quote: $(cat "$name.$form")"
	done
	[ "$(wc -c <"$name.slurm")" -le 101 ] || fail "the reason of $name is too long"
	[ "$(head -n 1 "$name.nagios" | tr -cd '|' | wc -c)" -eq 1 ] || fail "performance data of $name"
done
grep -q "core 3 is 123 samples/s, asked at least 343" fail.slurm || fail "the reason says nothing: $(cat fail.slurm)"
expect 3 "$MLBENCH" accept nothing.json --format nagios # unknown, and not critical
says "nothing.json"
grep -q "^MLBENCH CRITICAL - .* | .*'burn burn.drift'=21.2%;;~:3" fail.nagios || fail "$(cat fail.nagios)"

# Pages: their charts compile, the certificate names the sum of the file beside it.
if can_draw; then
	for name in pass fail hostile; do cp "$name.page" "$name.html"; done
	expect 0 draw pass.html fail.html hostile.html
	prints "fail.html: limits, 300 wide"
	prints "fail.html: time-3, 1000 wide"
fi
grep -q '"beyond":\["◀ −607 %",null' fail.page || fail "a bar that is cut off does not say how far it goes"
for form in page certificate; do
	! grep -q '<d>' hostile.$form || fail "markup out of a name in $form"
done
for word in SN-0042-7731 gpu-0421 "at least 343 samples/s" "core 3, the worst of 8" "signature" "Record of a failed acceptance test"; do
	grep -qF "$word" fail.certificate || fail "the certificate lacks '$word'"
done
if command -v xxhsum >/dev/null; then
	for name in fail now; do
		grep -qF "accept.json: $(xxhsum -H3 $name.json | sed 's/.*= //; s/ .*//; s/^XXH3_//')" $name.certificate ||
			fail "the certificate's sum is of another file"
	done
else
	echo "note: without xxhsum"
fi
grep -q "<h1>Certificate of acceptance" pass.certificate || fail "no certificate for what passes"
if command -v chromium >/dev/null; then
	# The most that there can be still is one sheet.
	python3 - "$kept/fail.json" <<-'PY'
		import copy, json, sys
		d = json.load(open(sys.argv[1]))
		checks = []
		for i in range(64):
		    check = copy.deepcopy(d["checks"][i % 5])
		    check["check"] = "check %d with a long name, as names are" % i
		    checks.append(check)
		d["checks"] = checks
		d["measured"] = [{"check": c["check"], "kind": c["kind"], "state": "done"} for c in checks]
		d["node"]["name"] = "node-with-a-long-name.rack-17.row-3.datacentre.example.org"
		d["environment"] = {"dmi": {"serial number %d of a part" % i: "GPU-5f1a0c3e-0000-4000-8000-aabbccddee%02d" % i for i in range(40)}}
		json.dump(d, open("many.json", "w"))
	PY
	expect 1 "$MLBENCH" accept many.json --format certificate --out many.html
	for name in fail many; do
		[ "$name" = many ] || cp fail.certificate fail.html
		HOME=$PWD timeout 600 chromium --headless=new --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf="$PWD/$name.pdf" "file://$PWD/$name.html" >/dev/null 2>&1
		[ -s "$name.pdf" ] || { echo "note: chromium does not print"; break; }
		pages=$(LC_ALL=C grep -ac '/Type */Page$' "$name.pdf")
		[ "$pages" -eq 1 ] || fail "the certificate $name prints on $pages pages"
	done
fi
