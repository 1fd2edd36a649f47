# The headroom of a loop: the adaptor hands out the batches that it says, in virtual time, and what `mlbench efficiency LOG` says of
# its log is what was planted.
. "$CLI/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
export PYTHONPATH=$ROOT/pipelines/adaptors PYTHONDONTWRITEBYTECODE=1
validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || return 0
	/usr/bin/python3 -m jsonschema -i out "$ROOT/docs/headroom.schema.json" >problems 2>&1 ||
		{ head -n 5 problems; fail "not valid against headroom.schema.json"; }
}
cat >loop.py <<'PY'
import threading
from headroom import headroom

class Loader:
    """One worker that needs `load` seconds a batch, and may be `ahead` batches ahead; in virtual time."""
    def __init__(self, load, ahead, epoch=10**9):
        self.load, self.ahead, self.epoch, self.now, self.given, self.dropped = load, ahead, epoch, 1.7e9, 0, 0
    def __iter__(self):
        ready, taken = [], []
        for i in range(self.epoch):
            free = taken[i - self.ahead] if 0 < self.ahead <= i else self.now
            ready.append(max(free, ready[-1] if ready else 0) + self.load)
            if threading.current_thread() is threading.main_thread():
                self.now = max(self.now, ready[-1])
            else:
                self.dropped += 1
            taken.append(self.now)
            self.given += 1
            yield [bytearray(8), i]

def train(load, step, ahead=4, epoch=10**9, evaluate=0, steps=10**9, **options):
    """Steps of each side as (side, its batch, batches given before and after)."""
    loader = Loader(load, ahead, epoch)
    options = dict(dict(prefetch=ahead, block_s=0, block_steps=20, rounds=8, samples=lambda batch: 8, clock=lambda: loader.now), **options)
    loop, seen = headroom(loader, **options), []
    while True:
        for batch in loop:
            if loop.side == "done" or len(seen) == steps:
                return loader, loop, seen
            seen.append((loop.side, batch[1], loader.given))
            loader.now += step
        loader.now += evaluate
PY

# What the loop gets: whole rounds in a drawn order, cached batches of the first ones, and a paused loader that is paused.
python3 - <<'PY' >problems 2>&1 || { cat problems; fail "the adaptor"; }
import collections, copy
from loop import *
loader, loop, seen = train(0.03, 0.02)
rows = [line.strip().split(",") for line in open("headroom.csv")][1:]
counted = collections.Counter(row[4] for row in rows if row[4] != "-")
assert counted == {"loader": 160, "cached": 160, "busy": 160}, counted
order = [side for i, (side, _, _) in enumerate(seen) if i == 0 or seen[i - 1][0] != side]
assert set(order) == {None, "loader", "cached", "busy"} and order[0] is None
kept = [batch for side, batch, _ in seen if side is None]
assert kept == list(range(8)), kept
assert {batch for side, batch, _ in seen if side in ("cached", "busy")} == set(kept)
for (side, _, before), (also, _, after) in zip(seen, seen[1:]):
    if side == also:
        assert after - before == {"cached": 0, "loader": 1, None: 1}.get(side, after - before), (side, before, after)
assert 0 < loader.dropped <= counted["busy"] + 8 * 4, loader.dropped  # one a step at most
# Once a slow loader was paused, what its workers have put into the queue meanwhile is dropped; nothing of one that keeps up.
for load, drops in (0.03, True), (0.01, False):
    loader, loop, seen = train(load, 0.02)
    resumed = [after - before for (side, _, before), (also, _, after) in zip(seen, seen[1:]) if (side, also) == ("cached", "loader")]
    assert resumed and all(n == 5 if drops else n in (1, 5) for n in resumed[1:]), resumed
    assert drops or set(resumed[1:]) == {1}, resumed
# The order is that of the seed.
sides = lambda seed: [side for side, _, _ in train(0.03, 0.02, seed=seed, rounds=3, block_steps=1)[2]]
assert sides(1) == sides(1) and len({tuple(sides(seed)) for seed in range(4)}) > 1
# A loader without workers cannot go on while it is paused.
assert {side for side, _, _ in train(0.03, 0.02, ahead=0, prefetch=0)[2]} == {None, "loader", "cached"}
# Memory is bounded, and batches that the loop changes are not handed out again as if they were new.
assert len({batch for side, batch, _ in train(0.03, 0.02, most_bytes=3 * 200, rounds=2)[2] if side == "cached"}) < 8
class Changed:
    _version, nbytes, shape = 0, 8, (8,)
for options, error in ({"most_bytes": 10}, ValueError), ({"prefetch": None}, ValueError):
    try:
        train(0.03, 0.02, **options)
        raise SystemExit("accepted: %s" % options)
    except error:
        pass
def spoil(**options):
    for i, batch in enumerate(headroom([{"x": Changed(), "y": 1} for _ in range(100)], prefetch=0, block_s=0, block_steps=2, **options)):
        batch["x"]._version += 1
        del batch["y"]
        if i > 60:
            return
try:
    spoil()
    raise SystemExit("a changed batch was handed out")
except RuntimeError as error:
    assert "copy=copy.deepcopy" in str(error), error
spoil(copy=copy.deepcopy)
# What the loader raises reaches the loop, from the thread too; and what is asked of the loader is answered.
class Failing(list):
    dataset = "set"
    def __iter__(self):
        yield from [[1]] * 60
        raise OSError("lost")
try:
    for batch in headroom(Failing(), prefetch=1, block_s=0, block_steps=2):
        pass
    raise SystemExit("an error of the loader was lost")
except OSError:
    pass
assert headroom(Failing([1, 2]), prefetch=1).dataset == "set" and len(headroom(Failing([1, 2]), prefetch=1)) == 2
PY

# A loader that takes 30 ms where the step takes 20: half as fast again, all of it from not waiting.  Evaluations between epochs do
# not count, and the log may be read while it grows.
python3 -c 'from loop import *; train(0.03, 0.02, epoch=150, evaluate=100)' 2>problems || fail "the loop"
expect 0 "$MLBENCH" efficiency headroom.csv --json
is_json mlbench.headroom/1
validate
python3 - <<'PY' || fail "not the gain that was planted"
import json
d = json.load(open("out"))
assert d["headroom"] == "some" and d["gain"]["rounds"] == 8, d
assert d["gain"]["low"] - 0.01 <= 0.5 <= d["gain"]["high"] + 0.01 and abs(d["gain"]["value"] - 0.5) < 0.02, d["gain"]
assert abs(d["not_waiting"]["value"] - 0.5) < 0.02 and abs(d["free_cores"]["value"]) < 0.02, d
loader = d["sides"][0]
assert loader["side"] == "loader" and abs(loader["samples_per_s"] / (8 / 0.03) - 1) < 0.02 and abs(loader["waits"] - 1 / 3) < 0.03, loader
PY
expect 0 "$MLBENCH" efficiency headroom.csv
reads "A perfect loader would gain 50"
COLUMNS=80 "$MLBENCH" efficiency headroom.csv >out
awk 'length($0) > 80 { print; bad = 1 } END { exit bad }' out || fail "a line is wider than 80 columns"
head -c 20000 headroom.csv >torn.csv
expect 0 "$MLBENCH" efficiency torn.csv

# One that keeps up.
python3 -c 'from loop import *; train(0.01, 0.02)' 2>problems || fail "the loop"
expect 0 "$MLBENCH" efficiency headroom.csv
reads "The loader keeps up"

# What does not show it is no verdict; what is no such log is refused.
python3 -c 'from loop import *; train(0.03, 0.02, rounds=2)' 2>problems || fail "the loop"
expect 3 "$MLBENCH" efficiency headroom.csv
reads "2 complete rounds"
expect 3 "$MLBENCH" efficiency headroom.csv --json
is_json mlbench.headroom/1
validate
printf 'step,wall_time,data_time_ms\n1,1700000000.1,3\n2,1700000000.2,3\n3,1700000000.3,3\n' >plain.csv
expect 2 "$MLBENCH" efficiency plain.csv
says "has no column of sides"
expect 2 "$MLBENCH" efficiency missing.csv
says "missing.csv"

# PyTorch's own loader says how far it loads ahead, and is paused and goes on as the adaptor says, where it is installed.
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
	/usr/bin/python3 - <<'PY' >problems 2>&1 || { tail -n 5 problems; fail "with PyTorch's DataLoader"; }
import torch
from torch.utils.data import DataLoader, Dataset
from headroom import headroom
class Numbers(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return torch.full((4,), float(i)), i
loop = headroom(DataLoader(Numbers(), batch_size=4, num_workers=2, prefetch_factor=3), block_s=0, block_steps=4, rounds=3, batches=4)
assert loop.prefetch == 6
sides = set()
while "done" not in sides:
    for pictures, labels in loop:
        sides.add(loop.side)
        assert pictures.shape == (4, 4) and labels.tolist() == pictures[:, 0].tolist()
assert sides == {None, "loader", "cached", "busy", "done"}
PY
	expect 0 /usr/bin/python3 -c 'rows = [line.split(",") for line in open("headroom.csv")][1:]
assert {row[2] for row in rows} == {"4", ""} and sum(row[4].strip() == "busy" for row in rows) == 12, rows'
fi
