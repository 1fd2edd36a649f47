#!/usr/bin/env python3
"""How many planted bit flips a check of kind repeatable finds and locates, and how many it sees where none is.

    tests/accept/flips.py PROGRAM [RUNS]        each run plants eight of one kind, at random

A flip counts as found where its place has one more wrong result, and as located where an event names the place and the bit
(of a block: its number and the byte).  Blocks are planted as every kind of fault in turn.  Prints a table; exits with 1 if
any was missed or any sound run was not."""
import json
import os
import random
import subprocess
import sys
import tempfile

EACH = 8
PLAN = """[bits]
kind = repeatable
tier = quick
budget = 10min
size = 8 MiB
passes = {passes}
repeatable.{figure} = 0
"""
FIGURES = {"decode": "decode", "gemm": "gemm", "memory": "memory", "storage": "storage"}
KINDS = ["bits", "stale", "torn", "misplaced", "missing"]


def plant(figure, chance, cores):
    """Eight faults that do not meet: the text of the switch, and what each must be told as."""
    faults, expected = [], []
    if figure == "storage":
        for i, block in enumerate(chance.sample(range(0, 1024, 4), EACH)):
            kind = KINDS[i % len(KINDS)]
            at, bit = chance.randrange(4096), chance.randrange(8)
            faults.append(f"storage:block={block}:kind={kind}:at={at}:bit={bit}")
            where = f"the first at byte {at}:" if kind == "bits" else ""
            expected.append(("", [f"{kind}: block {block} ", where]))
    elif figure == "memory":
        for nth in [1, 1, 2, 2, 3, 3, 4, 4]:
            at, bit = chance.randrange(8 << 20), chance.randrange(8)
            faults.append(f"memory:node=0:nth={nth}:at={at}:bit={bit}")
            expected.append(("NUMA node 0", [f"(bit {at % 8 * 8 + bit}) at offset 0x{at // 8 * 8:x}"]))
    else:
        # Two passes at once and one alone: results 1 to 3 of every picture or product.
        items = 12 if figure == "decode" else 9
        for nth in chance.sample(range(1, 3 * items + 1), EACH):
            core = chance.choice(cores)
            at, bit = chance.randrange(1 << 24), chance.randrange(8)
            faults.append(f"{figure}:core={core}:nth={nth}:at={at}:bit={bit}")
            expected.append((f"core {core}", [": row "]))
    return ",".join(faults), expected


def run(program, folder, figure, planted):
    environment = dict(os.environ)
    environment.pop("MLBENCH_ACCEPT_INJECT", None)
    if planted:
        environment["MLBENCH_ACCEPT_INJECT"] = planted
    done = subprocess.run([program, "accept", f"{figure}.ini", "--tier", "quick", "--budget", "10min", "--json", "--out",
                           tempfile.mkdtemp(dir=folder)], cwd=folder, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return json.loads(done.stdout)["measured"][0]


def main():
    program = os.path.abspath(sys.argv[1])
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    chance = random.Random(1)
    cores = sorted(os.sched_getaffinity(0))
    bad = False
    print(f"{'planted in':12} {'flips':>6} {'found':>6} {'located':>8} {'sound runs':>11} {'with a wrong result':>20}")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for figure in FIGURES:
            with open(os.path.join(folder, f"{figure}.ini"), "w", encoding="utf-8") as plan:
                plan.write(PLAN.format(figure=figure, passes=2 if figure in ("decode", "gemm") else 1))
            flips = found = located = false = 0
            for _ in range(runs):
                planted, expected = plant(figure, chance, cores)
                check = run(program, folder, figure, planted)
                name = f"repeatable.{figure}"
                counts = {f["place"]: f["value"] for f in check["facts"] if f["figure"] == name}
                events = [e for e in check["events"] if e["figure"] == name]
                flips += len(expected)
                for place in {place for place, _ in expected}:
                    wanted = sum(place == p for p, _ in expected)
                    found += min(int(counts.get(place, 0)), wanted)
                    bad |= counts.get(place, 0) > wanted
                for place, texts in expected:
                    located += any(e["place"] == place and all(t in e["text"] for t in texts) for e in events)
                check = run(program, folder, figure, None)
                false += any(f["value"] > 0 for f in check["facts"]) or check["state"] != "done"
            bad |= found < flips or false > 0
            print(f"{figure:12} {flips:6} {found:6} {located:8} {runs:11} {false:20}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
