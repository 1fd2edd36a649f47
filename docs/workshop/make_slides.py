#!/usr/bin/env python3
"""The workshop's slides: docs/workshop/slides.html with the outputs and charts of real measurements put in.

  docs/workshop/make_slides.py [--program PATH] [--out FILE]   measures what is missing (five minutes on 2 quiet cores), and
                                                               writes build/workshop/slides.html: one file, which fetches nothing
  docs/workshop/make_slides.py --check                         measures nothing: every command parses, every reference is met

Measurements stay in build/workshop/runs and are used again; --fresh makes them anew.  Charts are those of the program's own
pages, with their script and style.  What slides.html may say, each as a comment of its own:

  run NAME: COMMAND              what is measured; 'NAME status 1:' where the command ends with that
  run NAME beside OTHER: COMMAND OTHER is started first and ended afterwards; PID in COMMAND is its process
  text NAME: FROM | TO           of what it printed: from the first line that matches FROM to before the next that matches TO
  command NAME                   the command line
  chart NAME: ID [PANEL,...]     a chart of its result's page, with its finding as the title; of many panels, those (from 0)
  timeline NAME                  its recorded steps (trace.json) as a chart
"""
import argparse
import hashlib
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCE = os.path.join(HERE, "slides.html")
SECONDS_MOST = 400  # of one command
NOTE = re.compile(r"<!-- (run|text|command|chart|timeline) (\S+?)(?: status (\d))?(?: beside (\S+?))?(?:: (.+?))? -->")
FIGURE = r'<figure class="chart" id="%s">.*?</figure>'
SPANS_MOST = 700  # of a timeline: what a slide can show


def fail(*words):
    print("slides:", *words, file=sys.stderr)
    sys.exit(1)


class Run:
    def __init__(self, name, status, beside, command):
        self.name, self.status, self.beside, self.command = name, int(status or 0), beside, command
        self.folder = None
        self.lines = []


def environment():
    return {**os.environ, "COLUMNS": "96", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


def start(program, words, folder):
    return subprocess.Popen([program, *words[1:]], cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def measure(program, run, runs, folder, noisy):
    """Prints and results of a run, kept in a folder of its name; the command of what it stands beside is ended afterwards."""
    words = shlex.split(run.command)
    other = None
    if "--out" in words:
        shutil.rmtree(os.path.join(folder, os.path.basename(words[words.index("--out") + 1])), ignore_errors=True)
    print("slides: $", run.command, file=sys.stderr, flush=True)
    if run.beside:
        other = start(program, shlex.split(runs[run.beside].command), folder)
        words = [str(other.pid) if word == "PID" else word for word in words]
    made = start(program, words, folder)
    try:
        out, err = made.communicate(timeout=SECONDS_MOST)
    except subprocess.TimeoutExpired:
        made.kill()
        fail(f"'{run.command}' took more than {SECONDS_MOST} s")
    finally:
        if other:
            other.terminate()
            other.communicate()
    if made.returncode != run.status and not (noisy and made.returncode in (0, 1, 3)):
        fail(f"'{run.command}' ended with {made.returncode}, not {run.status}:\n{err[-1500:]}")
    with open(os.path.join(folder, run.name + ".txt"), "w", encoding="utf-8") as file:
        file.write(out)
    said = re.findall(r"^(?:report|result|results): +(\S+?)(?:/report\.html)?(?::.*)?$|^  results  (\S+)", err + "\n" + out, re.M)
    places = [a or b for a, b in said if os.path.isdir(os.path.join(folder, a or b))]
    with open(os.path.join(folder, run.name + ".json"), "w", encoding="utf-8") as file:
        json.dump({"command": run.command, "result": places[-1] if places else None}, file)


def kept(run, folder):
    try:
        with open(os.path.join(folder, run.name + ".json"), encoding="utf-8") as file:
            record = json.load(file)
        with open(os.path.join(folder, run.name + ".txt"), encoding="utf-8") as file:
            run.lines = file.read().splitlines()
    except (OSError, ValueError):
        return False
    run.folder = record["result"] and os.path.join(folder, record["result"])
    return record["command"] == run.command and (not run.folder or os.path.isdir(run.folder))


def refuse_noise(run):
    """Figures of a busy machine teach nothing; the program itself knows, of each point."""
    try:
        with open(os.path.join(run.folder or "", "summary.json"), encoding="utf-8") as file:
            points = json.load(file)["points"]
    except OSError:
        return
    beside = [point["foreign_load"]["reason"] for point in points if point["foreign_load"]["contaminated"]]
    if beside:
        fail(f"{run.name} was not measured alone ({beside[0]}): again with --fresh on a quiet machine, or with --noisy")


# --- what is put in ----------------------------------------------------------------------------------------------------------

def text_of(run, asked):
    begin, _, end = (asked or "").partition(" | ")
    first = next((i for i, line in enumerate(run.lines) if re.search(begin, line)), None)
    if first is None:
        fail(f"'{run.command}' prints no line like '{begin}'")
    last = first + 1
    while last < len(run.lines) and not (end and re.search(end, run.lines[last])):
        last += 1
    return "<pre>" + html.escape("\n".join(run.lines[first:last]).rstrip()) + "</pre>"


def page_of(program, run):
    page = os.path.join(run.folder, "report.html")
    if not os.path.exists(page):
        subprocess.run([program, "report", run.folder], env=environment(), check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    with open(page, encoding="utf-8") as file:
        return file.read()


def keep_panels(figure, panels):
    data = re.search(r'(<script type="application/json">)(.*?)(</script>)', figure, re.S)
    chart = json.loads(data[2])
    chart["panels"] = [chart["panels"][int(panel)] for panel in panels]
    return figure.replace(data[0], data[1] + json.dumps(chart).replace("<", "\\u003c") + data[3])


def chart_of(program, run, asked):
    """The figure of the program's own page, without the table behind it, under an id that is its own among the slides."""
    name, _, panels = asked.partition(" ")
    found = re.search(FIGURE % re.escape(name), page_of(program, run), re.S)
    if not found or 'class="plot"' not in found[0]:
        fail(f"the page of '{run.command}' draws no chart '{name}'")
    figure = re.sub(r"<details.*?</details>|<p class=\"said\">.*?</p>", "", found[0], flags=re.S)
    figure = keep_panels(figure, panels.split(",")) if panels else figure
    return re.sub(rf'((?:id|labelledby|describedby)=")({name})', rf"\1{run.name}-\2", figure)


def timeline_spans(events, names):
    """Each slice of a thread: (thread, name, begin, end) in ms."""
    opened, spans = {}, []
    begin = min(event["ts"] for event in events if event["ph"] == "B")
    for event in sorted((e for e in events if e["ph"] in "BE" and (e["pid"], e["tid"]) in names), key=lambda e: e["ts"]):
        stack = opened.setdefault((event["pid"], event["tid"]), [])
        if event["ph"] == "B":
            stack.append((event["name"], event["ts"]))
        elif stack:
            name, since = stack.pop()
            spans.append((names[event["pid"], event["tid"]], name, (since - begin) / 1000, (event["ts"] - begin) / 1000))
    return spans


def timeline_rows(run):
    """The three states of each thread; a worker's and the step's working time by its samples and batches."""
    with open(os.path.join(run.folder, "trace.json"), encoding="utf-8") as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    told = {(what, e["pid"], e["tid"]): e["args"] for e in events for what in [e["name"]] if e["ph"] == "M"}
    names = {(pid, tid): args["name"] for (what, pid, tid), args in told.items() if what == "thread_name"}
    places = {names[pid, tid]: args["sort_index"] for (what, pid, tid), args in told.items() if what == "thread_sort_index"}
    spans = timeline_spans(events, names)
    by_item = {thread for thread, name, _, _ in spans if name in ("sample", "compute")}
    rows = []
    for thread, name, begin, end in sorted(spans, key=lambda span: span[2]):
        state = name.split(":")[0]
        if name in ("sample", "compute") or (name == "working" and thread not in by_item):
            state = "working"
        if state in ("working", "starved", "blocked") and (name != "working" or thread not in by_item):
            rows.append({"thread": thread, "state": state, "what": name, "begin": round(begin, 3), "end": round(end, 3)})
    return sorted(rows[:SPANS_MOST], key=lambda row: (places.get(row["thread"], 0), row["begin"]))


def timeline_of(run):
    rows = timeline_rows(run)
    with open(os.path.join(HERE, "timeline.vl.json"), encoding="utf-8") as file:
        title = json.load(file)["title"]
    with open(os.path.join(HERE, "timeline.vg.json"), encoding="utf-8") as file:
        compiled = file.read()
    caption = json.loads(compiled)["description"]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    drawing = {"title": title, "file": "slides", "signals": {}, "data": {}, "drop": [], "panels": [], "choices": [], "columns": columns}
    data = json.dumps(drawing).replace("<", "\\u003c")
    name = run.name + "-steps"
    return (f'<figure class="chart" id="{name}"><figcaption><h2 id="{name}-title">{html.escape(title)}</h2>'
            f'<p id="{name}-text">{html.escape(caption)}</p></figcaption><div class="choices"></div>'
            f'<div class="plot" role="img" aria-labelledby="{name}-title" aria-describedby="{name}-text"></div>'
            f'<script type="application/json">{data}</script>'
            f'<script type="application/json" data-chart="slides">{compiled}</script></figure>')


def put_in(program, note, runs):
    what, name, _, _, rest = note.groups()
    if what == "run":
        return ""
    if what == "command":
        return f'<p class="typed">$ {html.escape(runs[name].command)}</p>'
    if what == "text":
        return text_of(runs[name], rest)
    return chart_of(program, runs[name], rest) if what == "chart" else timeline_of(runs[name])


def whole(text, page):
    """The slides with the style and scripts of a page of the program; the policy allows no other script, and no request."""
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    scripts = re.findall(r"<script nonce=\"[0-9a-f]+\">(.*?)</script>", page, re.S)
    mark = hashlib.sha256((text + "".join(scripts)).encode()).hexdigest()[:32]
    policy = ("default-src 'none'; script-src 'nonce-%s'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
              "form-action 'none'" % mark)
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    text = text.replace("<style>", head + "<style>", 1)
    return text.replace("</body>", "".join(f'<script nonce="{mark}">{script}</script>\n' for script in scripts) + "</body>")


# --- the check ---------------------------------------------------------------------------------------------------------------

def problems_of(program, notes, runs):
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(ROOT, "tests"))
    import readme
    out = []
    used = {note[2] for note in notes if note[1] != "run"} | {run.beside for run in runs.values()}
    used |= {word for run in runs.values() for word in shlex.split(run.command) if word != run.name}
    out += [f"'{name}' is measured and not shown" for name in runs if name not in used]
    for run in runs.values():
        problem = readme.problem_of(program, run.command)
        if problem:
            out.append(f"`{run.command}`: {problem}")
    with open(os.path.join(ROOT, "harness", "report", "html", "charts.def"), encoding="utf-8") as file:
        charts = set(re.findall(r"^CHART\((\w+),", file.read(), re.M))
    out += [f"no chart '{note[5]}'" for note in notes if note[1] == "chart" and note[5].split()[0] not in charts]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "mlbench"))
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "workshop", "slides.html"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--fresh", action="store_true", help="measure everything anew")
    parser.add_argument("--noisy", action="store_true", help="show figures of a busy machine, too")
    options = parser.parse_args()
    program = os.path.realpath(options.program)
    if not os.access(program, os.X_OK):
        fail(f"no program at '{program}': make first")
    with open(SOURCE, encoding="utf-8") as file:
        text = file.read()
    notes = list(NOTE.finditer(text))
    runs = {note[2]: Run(note[2], note[3], note[4], note[5]) for note in notes if note[1] == "run"}
    for note in notes:
        if note[2] not in runs or (note[4] and note[4] not in runs):
            fail(f"nothing is measured for '{note[0]}'")
    if options.check:
        problems = problems_of(program, notes, runs)
        for problem in problems:
            print("slides:", problem)
        print(f"slides: {len(runs)} commands and {len(notes) - len(runs)} outputs, {len(problems)} problems")
        return 1 if problems else 0
    folder = os.path.join(ROOT, "build", "workshop", "runs")
    if options.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    if not os.path.islink(os.path.join(folder, "configs")):
        os.symlink(os.path.join(ROOT, "configs"), os.path.join(folder, "configs"))
    beside = {run.beside for run in runs.values()}
    for run in runs.values():
        if run.name in beside:
            continue
        if not kept(run, folder):
            measure(program, run, runs, folder, options.noisy)
            kept(run, folder)
        if not options.noisy:
            refuse_noise(run)
    page = next(page_of(program, run) for run in runs.values() if run.folder and os.path.exists(os.path.join(run.folder, "points.jsonl")))
    made = whole(NOTE.sub(lambda note: put_in(program, note, runs), text), page)
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(made)
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
