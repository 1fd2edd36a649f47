# The same program uses what a run diagnosed again and prints the same words; once any file that a diagnosis reads has
# changed, it diagnoses everything anew.
. "$CLI/lib.sh"
write_config
expect_measured "$MLBENCH" sweep tiny.ini --out run -q --set measure.duration=400ms --set measure.warmup=100ms \
	--set measure.repeats=1
[ -s run/diagnoses.json ] || fail "no diagnoses were saved"

# shown FOLDER [OPTION ...]: what is printed of it, as if it were the run's.
shown() {
	local folder=$1
	shift
	expect 0 "$MLBENCH" show "$folder" "$@"
	sed "s|$folder|run|g" out
}
# copied NAME: a result of its own, with its diagnoses.
copied() {
	rm -rf "$1"
	cp -r run "$1"
}
copied anew
rm anew/diagnoses.json
for option in --verbose --json; do
	shown run $option >first
	shown anew $option >second
	cmp -s first second || fail "show $option says something else of saved diagnoses"
done

# That they are used shows when a word of them is another one.
marked() {
	copied marked
	sed -i 's/"advice":"/"advice":"MARKED /' marked/diagnoses.json
}
marks() {
	shown marked --json >json
	grep -q MARKED json
}
marked
marks || fail "saved diagnoses are not used"

# A number of the same length: size and time of the file are as before.
marked
touch -r marked/points.jsonl time
python3 - <<'PY'
import re
text = open("marked/points.jsonl").read()
changed = re.sub(r'("wall_seconds":\d\.\d*)(\d)', lambda m: m[1] + str((int(m[2]) + 1) % 10), text, count=1)
assert changed != text and len(changed) == len(text)
open("marked/points.jsonl", "w").write(changed)
PY
touch -r time marked/points.jsonl
! marks || fail "diagnoses of other measurements are used"
for change in 'rm marked/traces/p00000-r0.json' 'echo >>marked/traces/p00001-r0.json' 'echo "{}" >marked/trials.json' \
	'sed -i s/\"checksum\":\"./\"checksum\":\"x/ marked/diagnoses.json' \
	'sed -i s/\"evidence\":\\[/\"evidence\":\[7,/ marked/diagnoses.json'; do
	marked
	eval "$change"
	! marks || fail "diagnoses are used after: $change"
done

# Half a file, and something else altogether.
shown anew --json >second
for broken in 'head -c 1000 run/diagnoses.json' 'echo "[]"' 'echo "{\"checksum\": 7}"'; do
	copied marked
	eval "$broken" >marked/diagnoses.json
	shown marked --json | cmp -s - second || fail "not diagnosed anew after: $broken"
done
