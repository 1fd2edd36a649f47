#!/usr/bin/env python3
"""Walls inside the program: what each command links, which files of a folder need each other in a circle, and names that
a source exports although nothing else uses them.
  tests/walls.py BUILD_FOLDER            holds them against tests/walls.txt
  tests/walls.py BUILD_FOLDER COMMAND    the edges that carry most of what a command links, and by which names
What is linked is read from the objects (nm): from a command's object on, every object that defines what another one
lacks.  An object counts the lines of its source and of the header of the same name."""
import collections
import glob
import os
import re
import signal
import subprocess
import sys

TOPS = ("harness", "workloads", "pipelines")
SLACK = 4  # thousand lines that a command may be below its limit: then the limit is lowered


def folder_of(source):
    return os.path.dirname(source).removeprefix("harness/")


def lines_of(source):
    return sum(open(source + end, "rb").read().count(b"\n") for end in (".c", ".h") if os.path.exists(source + end))


class Graph:
    def __init__(self, build):
        self.sources = sorted(
            os.path.relpath(os.path.join(at, name), build)[:-2]
            for top in TOPS
            for at, _, names in os.walk(os.path.join(build, top))
            for name in names
            if name.endswith(".o") and os.path.exists(os.path.relpath(os.path.join(at, name), build)[:-2] + ".c")
        )
        of_object = {os.path.join(build, source + ".o"): source for source in self.sources}
        listed = subprocess.run(["nm", "-A", "-g", *of_object], capture_output=True, text=True, check=True).stdout
        self.defined, lacks = {}, collections.defaultdict(set)
        for line in listed.splitlines():
            path, rest = line.split(":", 1)
            kind, name = rest.split()[-2:]
            if kind in "Uvw":
                lacks[of_object[path]].add(name)
            else:
                self.defined[name] = of_object[path]
        self.needs = {source: collections.defaultdict(set) for source in self.sources}
        for source in self.sources:
            for name in lacks[source]:
                if self.defined.get(name, source) != source:
                    self.needs[source][self.defined[name]].add(name)
        self.lines = {source: lines_of(source) for source in self.sources}

    def linked(self, start, without=None):
        seen, todo = {start}, [start]
        while todo:
            source = todo.pop()
            for other in self.needs[source]:
                if other not in seen and (source, other) != without:
                    seen.add(other)
                    todo.append(other)
        return seen

    def circles(self, folder):
        """Each greatest set of files of the folder of which every one needs every other."""
        files = [source for source in self.sources if os.path.dirname(source) == folder]
        inside = {source: [other for other in self.needs[source] if other in files] for source in files}
        reached = {}
        for source in files:
            seen, todo = set(), [source]
            while todo:
                for other in inside[todo.pop()]:
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
            reached[source] = seen
        return {
            frozenset(other for other in reached[source] if source in reached[other])
            for source in files
            if source in reached[source]
        }


def explain(graph, command):
    start = f"harness/command/cmd_{command}"
    linked = graph.linked(start)
    total = sum(graph.lines[source] for source in linked)
    print(f"{command} links {total} lines of {len(linked)} files; without one edge it would link less:")
    saved = []
    for source in linked:
        for other, names in graph.needs[source].items():
            less = total - sum(graph.lines[left] for left in graph.linked(start, (source, other)))
            saved.append((less, source, other, sorted(names)))
    for less, source, other, names in sorted(saved, reverse=True)[:30]:
        print(f"  {less:7} {source} -> {other}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}")


def read_table(path):
    commands, circles = {}, {}
    for line in open(path, encoding="utf-8"):
        words = line.split("#")[0].split()
        if words and words[0] == "circle":
            circles[words[1]] = int(words[2])
        elif words:
            commands[words[0]] = (int(words[1]), set(words[2:]))
    return commands, circles


def check_command(graph, command, limit, allowed):
    linked = graph.linked(f"harness/command/cmd_{command}")
    total = sum(graph.lines[source] for source in linked)
    folders = {folder_of(source) for source in linked}
    bad = []
    if total > limit * 1000:
        bad.append(f"links {total} lines, over its {limit},000 (tests/walls.py BUILD {command} tells by which edges)")
    if total < (limit - SLACK) * 1000:
        bad.append(f"links {total} lines: lower its limit in tests/walls.txt to {-(-total // 1000)}")
    for folder in sorted(folders - allowed):
        files = sorted(source for source in linked if folder_of(source) == folder)
        bad.append(f"links {folder}, which it does without: {', '.join(files[:4])}{' …' if len(files) > 4 else ''}")
    for folder in sorted(allowed - folders):
        bad.append(f"links nothing of {folder} any more: take it out of tests/walls.txt")
    return [f"{command} {what}" for what in bad]


def check_folder(graph, folder, limit):
    found = max(graph.circles(folder), key=len, default=frozenset())
    if len(found) > limit:
        return [f"{folder}: {len(found)} files need each other, over {limit}: {', '.join(sorted(map(os.path.basename, found)))}"]
    if len(found) < limit:
        return [f"{folder}: only {len(found)} files need each other: lower its circle in tests/walls.txt"]
    return []


def check_exported(graph, build):
    # Beside the sources, names are used by the variants without a library, the plug-in, main.c and the tests.
    used = {name for needs in graph.needs.values() for names in needs.values() for name in names}
    bare = glob.glob(os.path.join(build, "bare/**/*.o"), recursive=True)
    used.update(subprocess.run(["nm", "-u", "-j", *bare], capture_output=True, text=True).stdout.split() if bare else [])
    for path in ["harness/main.c", *glob.glob("workloads/backend/cuda/*"), *glob.glob("tests/**/*.*", recursive=True)]:
        if path.endswith((".c", ".cc", ".cu", ".h", ".patch")):
            text = open(path, encoding="utf-8", errors="replace").read()
            used.update(re.findall(r"\w+", re.sub(r"(?s)/\*.*?\*/", "", text)))
    return [
        f"{source}.c: nothing else uses {name}: make it static, or remove it"
        for name, source in sorted(graph.defined.items())
        if name not in used and name[0] not in "._"
    ]


def main():
    build = os.path.normpath(sys.argv[1])
    graph = Graph(build)
    if len(sys.argv) > 2:
        explain(graph, sys.argv[2])
        return 0
    commands, circles = read_table("tests/walls.txt")
    there = {re.sub(".*/cmd_", "", source) for source in graph.sources if source.startswith("harness/command/cmd_")}
    results = [[f"{command} stands in one of tests/walls.txt and the program alone"] for command in there ^ set(commands)]
    results += [check_command(graph, command, *commands[command]) for command in sorted(there & set(commands))]
    for folder in sorted({os.path.dirname(source) for source in graph.sources}):
        results.append(check_folder(graph, folder, circles.get(folder, 0)))
    results.append(check_exported(graph, build))
    for bad in results:
        for line in bad:
            print("walls:", line)
    failed = sum(1 for bad in results if bad)
    print(f"walls: {len(results) - failed} passed, {failed} failed")
    return failed > 0


signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.exit(main())
