# Help of every command and key; near names for what is misspelt.
. "$CLI/lib.sh"
expect 2 "$MLBENCH"
prints "commands"
expect 0 "$MLBENCH" --help
golden help.txt
for command in run sweep what-if gen check list doctor probe show help; do
	expect 0 "$MLBENCH" help "$command"
	prints "usage: mlbench $command"
	cp out by_topic
	expect 0 "$MLBENCH" "$command" -h
	cmp -s out by_topic || fail "'help $command' and '$command -h' differ"
done
expect 0 "$MLBENCH" help sweep
golden help_sweep.txt
expect 0 "$MLBENCH" --version
grep -qE '^mlbench [0-9]+\.[0-9]+' out || fail "no version"
expect 0 "$MLBENCH" help keys
prints "decode.workers"
expect 0 "$MLBENCH" help decode.workers
prints "workers"
expect 2 "$MLBENCH" help decode.worker
says "decode.workers"
# Names of other tools, terms of the field, and what the tables print.
for pair in num_workers:decode.workers prefetch_factor:prefetch.depth pin_memory:upload.memory; do
	expect 0 "$MLBENCH" help "${pair%:*}"
	prints "${pair%:*} "
	prints "${pair#*:}"
	prints "default "
done
for term in dataloader gil iops straggler gpu utilization oom nfs pcie starved; do
	expect 0 "$MLBENCH" help "$term"
	prints "see "
done
expect 0 "$MLBENCH" help queue depth
prints "in flight"
expect 0 "$MLBENCH" help step
prints "forward pass"
prints "step.backend"
expect 0 "$MLBENCH" help terms
prints "straggler"
expect 2 "$MLBENCH" help stragler
says "did you mean 'straggler'"
expect 2 "$MLBENCH" help num_worker
says "did you mean 'num_workers'"
expect 2 "$MLBENCH" help quite-another
says "mlbench help terms"
expect 0 "$MLBENCH" explain decode
prints "decode/lock"
! grep -q "read/" out || fail "'explain decode' lists verdicts of read"
expect 0 "$MLBENCH" explain decode --json
is_json mlbench.explain/1
expect 0 "$MLBENCH" explain loader/cores
prints "loader/cores" # as observe says it
expect 0 "$MLBENCH" explain quota
prints "step/quota"
expect 2 "$MLBENCH" explain mutex
says "mlbench help mutex"
expect 2 "$MLBENCH" explain decode/lok
says "did you mean 'decode/lock'"
expect 2 "$MLBENCH" swep
says "did you mean 'sweep'"
expect 2 "$MLBENCH" sweep --jsno x.ini
says "did you mean '--json'"
expect 2 "$MLBENCH" check
says "needs CONFIG"
expect 2 "$MLBENCH" check a b
says "does not take 'b'"
expect 2 "$MLBENCH" check --set
says "needs a value"
expect 2 "$MLBENCH" list sorces
says "did you mean 'sources'"
