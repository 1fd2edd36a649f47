# The samples of ranks are those of one process: run.verify's checksum of a job is the sum over its ranks.
. "$CLI/lib.sh"
need_ranks
write_config
checked=(--set run.verify=on --set measure.epochs=2 --set measure.warmup=0s --set decode.workers=2 --set step.time=100us --set sync.gradients=4KiB)
# agree FOLDER: its checksums are those of the one process.
agree() {
	local status=0
	"$MLBENCH" compare one "$1" --json >out 2>err || status=$?
	[ "$status" -ne 1 ] && [ "$(json 'd["comparisons"][0]["checksums"]["agree"]')" = True ] || fail "$1 has other samples than one process"
}
expect_measured "$MLBENCH" run tiny.ini "${checked[@]}" --set batch.size=32 --out one

# Four ranks with a quarter of the batch each, three, two of them alone, and ranks that do not meet, since nothing steps.
expect_measured ranks 4 "$MLBENCH" run tiny.ini "${checked[@]}" --set batch.size=8 --out four
expect 0 "$MLBENCH" show four
sum=$(sed -n 's/.*"epoch_checksum":"\([0-9a-f]*\)".*/\1/p' one/points.jsonl | sort -u)
prints "checksums of 2 repetitions agree: the sum over all ranks is $sum"
agree four
expect_measured ranks 3 "$MLBENCH" sweep tiny.ini "${checked[@]}" --set batch.size=16 --set sweep.ranks=2,3 --set sweep.mode=grid --out some
[ "$(grep -c "\"epoch_checksum\":\"$sum\"" some/points.jsonl)" -eq 4 ] || fail "two ranks, or three, have other samples than one process"
expect_measured ranks 2 "$MLBENCH" run tiny.ini "${checked[@]}" --set batch.size=16 --set step.backend=null --out apart
grep -q "\"epoch_checksum\":\"$sum\"" apart/points.jsonl || fail "ranks that do not meet have other samples"

# Each rank's share adds up to it, and is held beside nothing.
python3 - <<'PY' || fail "the shares are not the sum"
import json
def last(path):
    rows = [json.loads(line) for line in open(path + "/points.jsonl")]
    return [row for row in rows if row.get("kind") == "repetition"][-1]
job = last("four")
shares = [last(f"four/ranks/000{rank}") for rank in (1, 2, 3)]
assert (job["checksum_samples"], job["checksum_ranks"]) == (96, 4)
assert all((share["checksum_samples"], share["checksum_ranks"]) == (24, 1) for share in shares)
assert len({row["epoch_checksum"] for row in shares + [job]}) == 4
PY
expect 0 "$MLBENCH" compare four/ranks/0001 four/ranks/0002 --json
[ "$(json 'd["comparisons"][0]["checksums"]')" = None ] || fail "shares were compared"

# A job of whose samples one is another; and one of an older program, which had another checksum.
cp -r four wrong
sed -i "s/\"epoch_checksum\":\"$sum/\"epoch_checksum\":\"0123456789abcdef/" wrong/points.jsonl
expect 1 "$MLBENCH" compare one wrong
says "checksums differ"
cp -r four older
sed -i 's/"epoch_checksum":/"checksum":/' older/points.jsonl
expect 0 "$MLBENCH" compare one older --json
[ "$(json 'd["comparisons"][0]["checksums"]')" = None ] || fail "an older checksum was compared"

# By shards each rank has a part of the order in one piece.
shards=(--set dataset.path=shards --set dataset.container=tar --set dataset.shard_samples=12 --set read.order=shards --set read.shuffle_buffer=16)
rm -r one
expect_measured "$MLBENCH" run tiny.ini "${checked[@]}" "${shards[@]}" --set batch.size=32 --out one
expect_measured ranks 2 "$MLBENCH" run tiny.ini "${checked[@]}" "${shards[@]}" --set batch.size=16 --out two
agree two
