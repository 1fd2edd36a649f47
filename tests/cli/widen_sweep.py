#!/usr/bin/env python3
"""A long sweep, from a small real one: widen_sweep.py RESULT OUT KEY=VALUES...

Each KEY=VALUE,VALUE,... becomes a further axis of the sweep, whose points repeat what was measured: their
repetitions and their traces are those of the point of RESULT that has the same settings otherwise."""
import json
import os
import sys


def traces_path(folder, line):
    return os.path.join(folder, "traces", "p%05d-r%d.json" % (line["point"], line["repeat"]))


def main():
    source, out = sys.argv[1:3]
    axes = sys.argv[3:]
    copies = 1
    for axis in axes:
        copies *= len(axis.split("=", 1)[1].split(","))
    with open(os.path.join(source, "points.jsonl"), encoding="utf-8") as file:
        objects = [json.loads(line) for line in file]
    header, others = objects[0], [o for o in objects[1:] if o.get("kind") != "repetition"]
    header["points"] *= copies
    header["resolved"] += "".join("%s = %s\n" % tuple(axis.split("=", 1)) for axis in axes)
    os.makedirs(os.path.join(out, "traces"))
    with open(os.path.join(out, "points.jsonl"), "w", encoding="utf-8") as file:
        file.write(json.dumps(header) + "\n")
        for line in objects[1:]:
            if line.get("kind") != "repetition":
                continue
            of = line["point"]
            service_times = None
            if os.path.exists(traces_path(source, line)):
                with open(traces_path(source, line), encoding="utf-8") as traces:
                    service_times = json.load(traces)
            # The first axis varies slowest, so that the copies of a point follow one another.
            for copy in range(copies):
                line["point"] = of * copies + copy
                file.write(json.dumps(line) + "\n")
                if service_times is not None:
                    service_times["point"] = line["point"]
                    with open(traces_path(out, line), "w", encoding="utf-8") as traces:
                        json.dump(service_times, traces)
        file.write("".join(json.dumps(line) + "\n" for line in others))


main()
