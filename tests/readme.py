#!/usr/bin/env python3
"""README.md's transcripts and docs/report.png, made by the program itself.

  tests/readme.py [--program PATH]          runs the commands (6 minutes on 2 quiet cores), rewrites the blocks and the picture
  tests/readme.py --check [--program PATH]  runs none: every command line in README.md and the workshop's pages parses, every
                                            block looks as the program prints today; figures are not looked at

A block is a fence behind '<!-- made by: COMMAND -->'.  Nothing is written unless every command succeeded and every part of
every block was found in what it printed, and no result was measured beside other load (the result knows, of each point)."""
import argparse
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(ROOT, "README.md")
PICTURE = os.path.join(ROOT, "docs", "report.png")
PICTURE_PIXELS = (1200, 1330)
SECONDS_MOST = 540  # of one command
BLOCK = re.compile(r"<!-- made by: (.+?) -->\n```\n(.*?)```\n", re.S)

# Of each command's output, the parts that are shown: from the first line that matches to before the next that matches.
# None: to the end.  Parts that do not follow each other in the output have "..." between them.
PARTS = {
    "mlbench sweep configs/imagenet_like.ini": [
        (r"^imagenet_like", None),
    ],
    "mlbench diagnose configs/story.ini": [
        (r"^story", r"^  page"),
    ],
    "mlbench diagnose configs/story.ini --follow": [
        (r"^advice, followed step by step", r"^  verdict"),
    ],
}


def fail(*words):
    print("readme:", *words, file=sys.stderr)
    sys.exit(1)


def environment():
    keep = {k: v for k, v in os.environ.items() if k not in ("MLBENCH_OUT",)}
    return {**keep, "COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


def run(program, command, folder):
    words = shlex.split(command)
    for attempt in range(2):  # 3: something was not steady, once
        print("readme: $", command, file=sys.stderr, flush=True)
        done = subprocess.run([program] + words[1:], cwd=folder, env=environment(), timeout=SECONDS_MOST, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 3:
            break
    if done.returncode != 0:
        fail(f"'{command}' ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()


def part_of(lines, begin, end, command):
    first = next((i for i, line in enumerate(lines) if re.search(begin, line)), None)
    if first is None:
        fail(f"'{command}' prints no line like '{begin}':\n" + "\n".join(lines))
    last = first + 1
    while last < len(lines) and not (end and re.search(end, lines[last])):
        last += 1
    kept = lines[first:last]
    while kept and not kept[-1].strip():
        kept.pop()
    return first, first + len(kept), kept


def excerpt(lines, command):
    out, at = [], 0
    for begin, end in PARTS[command]:
        first, last, kept = part_of(lines, begin, end, command)
        if out and any(line.strip() for line in lines[at:first]):
            out.append("...")
        out += kept
        at = last
    return "".join(line.rstrip() + "\n" for line in out)


def page_of(lines, folder):
    for line in lines:
        if line.startswith("  page "):
            return os.path.join(folder, line[len("  page "):].strip())
    return None


def photograph(page, to):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        fail("no chromium for docs/report.png")
    width, height = PICTURE_PIXELS
    subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}",
                    "--virtual-time-budget=30000", f"--screenshot={to}", "file://" + page],
                   check=True, timeout=180, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(to, "rb") as file:
        head = file.read(24)
    if (int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")) != PICTURE_PIXELS:
        fail("the picture has another size than", PICTURE_PIXELS)


def refuse_noise(folder):
    """Figures of a busy machine are no figures for a README; the program itself knows, of each point."""
    summaries = glob.glob(os.path.join(folder, "results", "*", "*", "summary.json"))
    beside = []
    for path in summaries:
        with open(path, encoding="utf-8") as file:
            points = json.load(file)["points"]
        beside += [point["foreign_load"]["reason"] or "nothing was measured" for point in points
                   if point["status"] != "ok" or point["foreign_load"]["contaminated"]]
    if beside or not summaries:
        fail(f"not measured alone, or not at all: {'; '.join(beside)}; nothing was written (--noisy writes it all the same)")


def remake(program, text, noisy):
    folder = tempfile.mkdtemp(prefix="readme-")
    try:
        os.symlink(os.path.join(ROOT, "configs"), os.path.join(folder, "configs"))
        made, picture = {}, os.path.join(folder, "report.png")
        for command in PARTS:
            lines = run(program, command, folder)
            made[command] = excerpt(lines, command)
            if command.startswith("mlbench sweep"):
                page = page_of(lines, folder)
                if not page:
                    fail("the sweep names no report")
                photograph(page, picture)
            if not noisy:
                refuse_noise(folder)
        text = BLOCK.sub(lambda m: f"<!-- made by: {m[1]} -->\n```\n{made[m[1]]}```\n", text)
        with open(README + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(README + ".new", README)
        shutil.copyfile(picture, PICTURE)
        print("readme: rewritten; read the difference, and the sentences around the blocks", file=sys.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- the check ------------------------------------------------------------------------------------------------------

def commands_in(text):
    """Every 'mlbench ...' in a code span or on a line of a fence, its continuation left out."""
    spans = re.findall(r"`(mlbench [^`]+?)`", text, re.S)
    fences = re.findall(r"^```\n(.*?)^```", text, re.S | re.M)
    lines = [line for fence in fences for line in fence.splitlines()] + re.findall(r"^    (mlbench .*)", text, re.M)
    lines = [line.split("#")[0].strip() for line in lines if line.startswith("mlbench ")]
    return [" ".join(command.split()) for command in spans + lines]


def is_placeholder(word):
    return bool(re.fullmatch(r"[A-Z][A-Z_/]*…?|…|\.\.\.|\[.*\]|or|NAME=VALUE|KEY=VALUE,…", word))


def output(program, *words):
    done = subprocess.run([program, *words], env=environment(), cwd=ROOT, timeout=60, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def problem_of(program, command):
    try:
        words = shlex.split(command)[1:]
    except ValueError as error:
        return str(error)
    name = words[0]
    code, text = output(program, "help", name)
    if name.startswith("-") or name == "help":
        return None
    if code != 0:
        return f"no command '{name}'"
    sets = []
    for i, word in enumerate(words[1:], 1):
        option = word.split("=")[0]
        if word.startswith("--") and not re.search(rf"(?<![-\w]){re.escape(option)}(?![-\w])", text):
            return f"'mlbench {name}' has no {option}"
        if words[i - 1] == "--set" and not word.isupper() and "=" in word and not word.startswith("KEY"):
            sets.append(word.split("=")[0])
        if word.endswith(".ini") and "/" in word and not os.path.exists(os.path.join(ROOT, word)):
            return f"no file {word}"
    for key in sets:
        key = key.removeprefix("sweep.") if not output(program, "help", key)[0] == 0 else key
        if output(program, "help", key)[0] != 0:
            return f"no key '{key}'"
    file = next((word for word in words if word.endswith(".ini") and "/" in word), None)
    if file and name in ("run", "sweep", "diagnose", "check") and not any(is_placeholder(word) for word in words[1:]):
        settings = [part for i, word in enumerate(words) if word == "--set" for part in ("--set", words[i + 1])
                    if not words[i + 1].startswith("dataset.path=")]
        settings = [part for part in settings if part != "dataset.recipe=none"]
        settings = [part for i, part in enumerate(settings) if part != "--set" or (i + 1 < len(settings) and settings[i + 1] != "--set")]
        code, said = output(program, "check", file, *settings)
        if code not in (0, 1, 3):
            return f"'mlbench check {file}': {said.strip().splitlines()[-1] if said.strip() else code}"
    return None


def strings_of(program):
    with open(program, "rb") as file:
        return set(re.findall(rb"[\x20-\x7e\x80-\xff]{3,}", file.read()))


def workshop():
    pages = glob.glob(os.path.join(ROOT, "docs", "workshop", "**", "*.md"), recursive=True)
    return "\n\n".join(open(page, encoding="utf-8").read() for page in sorted(pages))


def saved_problems(program, text):
    """Blocks of saved results ('mlbench show tests/golden/sample'): the program prints the same today, part by part."""
    problems = []
    for command, block in BLOCK.findall(text):
        if shlex.split(command)[1] not in ("show", "top", "explain", "help"):
            continue  # it measures: tests/labs
        said = "\n".join(line.rstrip() for line in output(program, *shlex.split(command)[1:])[1].splitlines()) + "\n"
        if any("\n" + part not in "\n" + said for part in block.split("...\n")):
            problems.append(f"'{command}' does not print that block today")
    return problems


def check(program, text):
    problems = []
    commands = commands_in(text) + commands_in(workshop())
    for command in dict.fromkeys(commands):
        problem = problem_of(program, command)
        if problem:
            problems.append(f"`{command}`: {problem}")
    problems += saved_problems(program, workshop())
    blocks = dict(BLOCK.findall(text))
    for command in PARTS:
        if command not in blocks:
            problems.append(f"no block is made by '{command}'")
    known = b"\n".join(strings_of(program))
    shown = output(program, "show", os.path.join(ROOT, "tests", "golden", "sample"))[1]
    for command, block in blocks.items():
        if command not in PARTS:
            problems.append(f"nobody knows what to show of '{command}'")
            continue
        for begin, _ in PARTS[command]:
            if not any(re.search(begin, line) for line in block.splitlines()):
                problems.append(f"the block of '{command}' has no line like '{begin}'")
        for line in block.splitlines():
            # Headings: words alone; labels: one word at the margin, then text.
            words = line.strip()
            heading = not line.startswith(" ") and re.fullmatch(r"[a-z][a-z ,/%±-]{11,}", words)
            label = re.match(r"  ([a-z]+) {2,}\S", line)
            if heading and words.encode() not in known:
                problems.append(f"'{command}' has no heading '{words}' today")
            if label and label[1].encode() not in known and label[1] not in shown:
                problems.append(f"'{command}' has no label '{label[1]}' today")
    if "docs/report.png" in text and not os.path.exists(PICTURE):
        problems.append("no docs/report.png")
    for problem in problems:
        print("readme:", problem)
    print(f"readme: {len(commands)} command lines and {len(blocks)} blocks, {len(problems)} problems")
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "mlbench"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--noisy", action="store_true", help="write figures of a busy machine, too")
    options = parser.parse_args()
    program = os.path.realpath(options.program)
    if not os.access(program, os.X_OK):
        fail(f"no program at '{program}': make first")
    with open(README, encoding="utf-8") as file:
        text = file.read()
    if options.check:
        return check(program, text)
    remake(program, text, options.noisy)
    return check(program, open(README, encoding="utf-8").read())


if __name__ == "__main__":
    sys.exit(main())
