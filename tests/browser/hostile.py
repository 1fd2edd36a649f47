"""A copy of a result in which every text that comes from outside tries to become a part of the page."""
import json
import os
import shutil
import sys

MARKUP = "</script><script>window.owned=1</script><img src=x onerror='window.owned=2'>\"'&amp;<!--"
BREAK = "\x01\x1b[31m\u202e\u2028</style></title><svg onload=window.owned=3>"
EVIL = MARKUP + BREAK


def poison(value):
    """Texts of facts, notes, names; numbers stay."""
    if isinstance(value, dict):
        return {key: poison(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poison(item) for item in value]
    return EVIL[:200] if isinstance(value, str) else value


def main(source, target):
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("report.html"))
    path = os.path.join(target, "points.jsonl")
    out = []
    for number, line in enumerate(open(path, encoding="utf-8")):
        row = json.loads(line)
        if number == 0:
            row["name"] = EVIL[:120]
            row["command"] = "mlbench sweep " + EVIL
            row["environment"] = poison(row["environment"])
            row["step"]["description"] = EVIL[:200]
            row["case"] = {name: EVIL for name in ("created", "complaint", "stage", "resource", "changed")}
            row["case"].update(rate=600.0, low=580.0, high=620.0, confidence=0.9)
            row["resolved"] = row["resolved"].replace("path = data\n", "path = data/</script><img src=x onerror=window.owned=4>\n")
            row["resolved"] = row["resolved"].replace("read_latency = 0\n", "read_latency = 1ms\n")
        elif row.get("kind") == "repetition":
            row["notes"] = [EVIL[:200]] + row.get("notes", [])
            if number % 7 == 1:
                row["status"], row["error"] = "failed", EVIL[:200]
        elif row.get("kind") == "limit":
            row["how"] += EVIL[:120]
        out.append(json.dumps(row))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")
    with open(os.path.join(target, "flame.folded"), "w", encoding="utf-8") as file:
        file.write("".join(f"decode;{EVIL}{depth * ';f'} {7 + depth}\n" for depth in range(3)))


main(*sys.argv[1:])
