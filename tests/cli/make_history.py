#!/usr/bin/env python3
"""Results as a history would have them, from one real result: make_history.py RESULT OUT SERIES.json

SERIES.json: a list of {"name", "started" (seconds), "factor" (of the throughput), "facts": {"group.name": value},
"config_hash"}, each of which becomes OUT/NAME/TIME/points.jsonl.  Members that are not given stay as they are."""
import json
import os
import sys
import time


def change_header(header, item):
    for member in ("name", "started", "config_hash", "version"):
        if member in item:
            header[member] = item[member]
    for name, value in item.get("facts", {}).items():
        group, fact = name.split(".", 1)
        header["environment"].setdefault(group, {})[fact] = value


def change_line(line, item, shift, usual):
    if line.get("kind") == "repetition":
        line["started"] += shift
        # Repetitions agree to half a percent, however busy the machine was that measured them.
        line["throughput"] = usual[line["point"]] * item.get("factor", 1) * (1 + 0.005 * (line["repeat"] % 2))
        for stage in line["stages"]:
            if stage["capacity"] is not None:
                stage["capacity"] *= item.get("factor", 1)
    if line.get("kind") == "end":
        line["finished"] += shift


def main():
    source, out, series = sys.argv[1:4]
    with open(os.path.join(source, "points.jsonl"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    with open(series, encoding="utf-8") as file:
        items = json.load(file)
    for item in items:
        objects = [json.loads(line) for line in lines]
        shift = item.get("started", objects[0]["started"]) - objects[0]["started"]
        change_header(objects[0], item)
        usual = {}
        for line in objects[1:]:
            if line.get("kind") == "repetition":
                usual.setdefault(line["point"], line["throughput"])
        for line in objects[1:]:
            change_line(line, item, shift, usual)
        name = item.get("folder", objects[0]["name"])
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(objects[0]["started"]))
        folder = os.path.join(out, name, stamp)
        os.makedirs(folder)
        with open(os.path.join(folder, "points.jsonl"), "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(line) + "\n" for line in objects))


main()
