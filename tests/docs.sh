#!/usr/bin/env bash
# Documents agree with the program: man pages are clean, every shipped configuration passes `check`, what
# README and ARCHITECTURE name is there, and no prose line is wider than a terminal.
set -u
cd "$(dirname "$0")/.." || exit 2
: "${MLBENCH:=build/release/mlbench}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() {
	failed=$((failed + 1))
	echo "docs: $*"
}

"$MLBENCH" help --man >"$work/mlbench.1" && "$MLBENCH" help --man-keys >"$work/mlbench.ini.5" || bad "no man pages"
if command -v mandoc >/dev/null 2>&1; then
	for page in mlbench.1 mlbench.ini.5; do
		if mandoc -Tlint -Wwarning "$work/$page" >"$work/lint" 2>&1; then ok; else bad "$page: $(head -n 5 "$work/lint")"; fi
	done
else
	skipped=$((skipped + 2))
	echo "docs: skipped: mandoc is not installed"
fi

# Every key of the table is in the page, and every command in mlbench(1) and the README.
for key in $(sed -n 's/^KEY([A-Z0-9_]*, "\([a-z]*\)", "\([a-z_0-9]*\)".*/\1.\2/p' harness/config/keys.def); do
	"$MLBENCH" help keys | grep -qF "$key" || bad "help keys lacks $key"
	name=${key#*.}
	grep -qF "${name}" "$work/mlbench.ini.5" || bad "mlbench.ini.5 lacks $key"
done
ok
for command in run sweep diagnose what-if show report top compare history export status observe efficiency fit reproduce bisect lab gen check list doctor probe explain help; do
	grep -qw "$command" "$work/mlbench.1" || bad "mlbench.1 lacks $command"
	grep -qE "mlbench $command" README.md || bad "README.md lacks 'mlbench $command'"
done
ok

for config in configs/*.ini configs/emulated/*.ini configs/cases/*.ini; do
	if "$MLBENCH" check "$config" >"$work/check" 2>&1; then ok; else bad "check $config: $(tail -n 1 "$work/check")"; fi
done

# README's command lines parse, and its transcripts look like what is printed today.
if tests/readme.py --check --program "$MLBENCH" >"$work/readme"; then ok; else bad "$(grep -v ' 0 problems' "$work/readme")"; fi

# The workshop's slides: what they measure parses, and every output and chart that they show is one of these.
if docs/workshop/make_slides.py --check --program "$MLBENCH" >"$work/slides"; then ok; else bad "$(grep -v ' 0 problems' "$work/slides")"; fi

# The page of public cases has each of them, with source, cause, decoys and fixes as its file has them; the guide names none else.
"$MLBENCH" list cases --json >"$work/cases"
python3 - "$work/cases" >"$work/problems" <<'PY'
import json, re, sys
page = open("docs/CASES.md", encoding="utf-8").read()
parts = {re.match(r"### (\w+)", part).group(1): " ".join(part.split()) for part in re.split(r"(?m)^(?=### )", page)[1:]}
cases = {case["name"].split("/")[-1]: case for case in json.load(open(sys.argv[1]))["cases"]}
for name in set(parts) ^ set(cases):
    print(f"{name} is in one of docs/CASES.md and configs/cases/")
for name in set(parts) & set(cases):
    case = cases[name]
    wanted = [f"### {name}: {case['source']} ", " ".join(case["reported"].split()), "Cause: `%(stage)s/%(resource)s`" % case["cause"]]
    for word, changes in (("No help", case["decoys"]), ("Fix", case["fixes"])):
        wanted += ["%s: `%s`, %s." % (word, " ".join("%(key)s=%(value)s" % key for key in change["keys"]), change["text"]) for change in changes]
    for text in wanted:
        if text not in parts[name]:
            print(f"docs/CASES.md lacks of {name}: {text}")
guide = open("docs/workshop/README.md", encoding="utf-8").read()
table = guide[guide.index("## Five public cases"):guide.index("## What the labs cover")]
for name in re.findall(r"`(\w+_\w+)`", "".join(line for line in table.splitlines(True) if line.startswith("| "))):
    if name not in cases and name != "persistent_workers":
        print(f"the guide names {name}, which is no case")
PY
if [ -s "$work/problems" ]; then bad "$(cat "$work/problems")"; else ok; fi

# The guide for teachers has of each lab its cause, evidence, best setting and wrong fixes as the lab's file has them.
python3 - >"$work/guide" <<'PY'
import glob, re
guide = " ".join(open("docs/workshop/README.md", encoding="utf-8").read().split())
labs = sorted(glob.glob("configs/labs/*.ini"))
if len(labs) != len(re.findall(r"### \d+ ", guide)):
    print(f"there are {len(labs)} labs and another number in the guide")
for name in labs:
    told = {}
    for key, value in re.findall(r"^(title|number|cause|right|best|wrong) = (.*)$", open(name, encoding="utf-8").read(), re.M):
        told.setdefault(key, []).append(value)
    head = f"### {told['number'][0]} {told['title'][0]} "
    part = re.split(r" ##+ ", guide.partition(head)[2])[0]
    asked = [cause.strip() for line in told["cause"] for cause in line.split("|")]
    asked += [f"`{right.strip()}`" for line in told["right"] for right in line.split("|")]
    asked += [f"`{best}`" for best in told.get("best", [])]
    for line in told["wrong"]:
        asked += ["`%s = %s`" % tuple(pair.strip().split("=")) for pair in line.partition(", ")[2].partition(":")[0].split(",")]
    for text in asked:
        if text not in part:
            print(f"{name}: '{head}' lacks {text}")
PY
if [ ! -s "$work/guide" ]; then ok; else bad "docs/workshop/README.md: $(head -n 5 "$work/guide")"; fi

# Files that the documents name exist.
for file in $(grep -ohE '`(docs|configs|tests|harness|workloads|pipelines|\.ci)/[A-Za-z0-9_./-]+`' README.md docs/*.md docs/workshop/*.md docs/workshop/labs/*.md | tr -d '`' | grep -v NAME | grep -v NN_ | sort -u); do
	[ -e "$file" ] || [ -e "${file%/}" ] || bad "a document names $file, which is not there"
done
ok

# Prose lines of Markdown are at most 100 columns wide; tables, code and single long words are as they are.
mapfile -t prose < <({ git ls-files '*.md' 2>/dev/null || find README.md docs results -name '*.md'; })
python3 - "${prose[@]}" >"$work/wide" <<'PY'
import sys
for name in sys.argv[1:]:
    code = False
    for number, line in enumerate(open(name, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        words = line.strip()
        code ^= words.startswith("```")
        if not code and not words.startswith(("|", "<!--")) and not line.startswith("    ") and " " in words and len(line) > 100:
            print(f"{name}:{number}: {len(line)} columns")
PY
if [ "${#prose[@]}" -gt 5 ] && [ ! -s "$work/wide" ]; then ok; else bad "prose wider than 100 columns: $(head -n 5 "$work/wide")"; fi

# The tour for a newcomer stays short: details belong to the head of the file that they are about.
read -r lines widest < <(python3 -c 'lines = open("docs/ARCHITECTURE.md", encoding="utf-8").read().splitlines()
print(len(lines), max(map(len, lines)))')
if [ "$lines" -le 250 ] && [ "$widest" -le 100 ]; then ok; else bad "docs/ARCHITECTURE.md has $lines lines of up to $widest columns"; fi

echo "docs: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
