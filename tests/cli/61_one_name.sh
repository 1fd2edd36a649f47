# Runs of one name that begin together, as nodes on a shared folder do: each has a folder of its own, and --resume finds it.
. "$CLI/lib.sh"
write_config
expect 0 "$MLBENCH" gen tiny.ini
runs=()
for i in 1 2 3 4 5 6; do
	"$MLBENCH" run tiny.ini $ONE --set measure.duration=20ms >"out.$i" 2>"err.$i" &
	runs+=($!)
done
for i in 1 2 3 4 5 6; do
	wait "${runs[i - 1]}"
	status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || fail "run $i ended with $status: $(tail -n 1 "err.$i")"
done
folders=(results/tiny/*/)
[ "${#folders[@]}" -eq 6 ] || fail "not six folders: ${folders[*]}"
for folder in "${folders[@]}"; do
	[ "$(grep -c '"schema"' "$folder/points.jsonl")" -eq 1 ] || fail "$folder is not of one run"
	[ "$(grep -c '"kind":"repetition"' "$folder/points.jsonl")" -eq 2 ] || fail "$folder has not its two repetitions"
	expect_measured "$MLBENCH" run --resume "$folder"
done
expect_measured "$MLBENCH" run tiny.ini $ONE --set measure.duration=20ms --resume latest
# Of those that are given one folder, one gets it.
runs=()
for i in 1 2 3 4; do
	"$MLBENCH" run tiny.ini $ONE --out one >"out.$i" 2>"err.$i" &
	runs+=($!)
done
refused=0
for i in 1 2 3 4; do
	wait "${runs[i - 1]}"
	[ $? -ne 2 ] || { refused=$((refused + 1)) && grep -q "'one' already holds a run" "err.$i" || fail "run $i: no reason"; }
done
[ "$refused" -eq 3 ] || fail "$refused of four were refused, not three"
# Nor do nodes that are tested at the same time share one.
printf '[inventory]\nkind = expect\ntier = quick\ncpu.cores = >= 1\n' >plan.ini
for i in $(seq 12); do
	"$MLBENCH" accept plan.ini --quiet --node "n$i" >"out.$i" 2>"err.$i" &
done
wait
[ "$(grep -ho '"name": *"n[0-9]*"' results/plan/*/accept.json | sort -u | wc -l)" -eq 12 ] ||
	fail "not a result of each node: $(ls results/plan)"
