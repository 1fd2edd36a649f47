# Evaluations: refused where they cannot be, planned, the same batches whoever decodes, reported apart, and ended by Ctrl-C.
. "$CLI/lib.sh"
write_config
alone=(--set decode.workers=1 --set batch.size=8 --set step.time=2ms --set measure.duration=400ms --set measure.warmup=50ms
	--set measure.repeats=1)
evaluating=("${alone[@]}" --set evaluate.every=10 --set evaluate.samples=37 --set evaluate.batch_size=16 --set run.verify=on)

# What could not be is said before anything runs.
expect 2 "$MLBENCH" check tiny.ini --set evaluate.samples=37
says "'evaluate.samples' is set, and 'evaluate.every' = 0 never evaluates"
expect 0 "$MLBENCH" check tiny.ini --set evaluate.samples=37 --set evaluate.every=0
expect 2 "$MLBENCH" check tiny.ini --set evaluate.evry=10
says "every"
expect 0 "$MLBENCH" gen tiny.ini
expect 2 "$MLBENCH" check tiny.ini "${evaluating[@]}" --set evaluate.samples=97
says "evaluate.samples = 97 is more than the 96 samples of 'data'"
expect 2 "$MLBENCH" check tiny.ini "${evaluating[@]}" --set evaluate.path=nowhere
says "evaluate.path = nowhere"
expect 3 "$MLBENCH" run tiny.ini "${evaluating[@]}" --set evaluate.path=nfs://127.0.0.1:1/none
says "evaluate.path = nfs://127.0.0.1:1/none"
mkdir -p texts/class && echo "no picture" >texts/class/one.jpg
expect 2 "$MLBENCH" check tiny.ini "${evaluating[@]}" --set evaluate.path=texts
says "evaluate.path = texts"
expect 2 "$MLBENCH" check tiny.ini "${evaluating[@]}" --set evaluate.path=data --set sweep.dataset.container=files,tar
says "'evaluate.path' is one folder, and the sweep stores the data set in several forms"

# They are in the plan, and in the bound on memory.
expect 0 "$MLBENCH" check tiny.ini "${evaluating[@]}"
prints "evaluate 37 samples of data in batches of 16, 1 worker of their own"
expect 0 "$MLBENCH" check tiny.ini "${alone[@]}" --set evaluate.every=10 --set evaluate.workers=1024 --json
many=$(json 'd["memory_bytes"]')
expect 0 "$MLBENCH" check tiny.ini "${alone[@]}" --json
[ "$(json "$many > d['memory_bytes']")" = True ] || fail "the second loader is not in the bound on memory"

# Each is of the same batches, whoever decodes them, and training's batches stay what they are without.
training() {
	python3 -c 'import json, sys
print([d["epoch_checksum"] for d in map(json.loads, open(sys.argv[1])) if d.get("kind") == "repetition"][0])' "$1/points.jsonl"
}
expect_measured "$MLBENCH" run tiny.ini "${alone[@]}" --set run.verify=on --set measure.epochs=4 --out without
for workers in 1 3; do
	expect_measured "$MLBENCH" run tiny.ini "${evaluating[@]}" --set evaluate.workers=$workers --set measure.epochs=4 --verbose \
		--out with$workers
	reads "of 37 samples each; they stop the step for"
	reads "between them training runs at"
	[ "$(training with$workers)" = "$(training without)" ] || fail "evaluations change training's batches"
	expect 0 "$MLBENCH" show with$workers --json
	is_json mlbench.summary/1
	[ "$(json '[d["points"][0]["evaluation"][k] for k in ("every", "samples_each", "batch_size", "workers", "bad_samples")]')" \
		= "[10, 37, 16, $workers, 0]" ] || fail "show does not tell of evaluations: $(json 'd["points"][0]["evaluation"]')"
	json 'd["points"][0]["evaluation"]["checksum"]' >sum$workers
done
cmp sum1 sum3 || fail "the batches of an evaluation depend on who decodes"
grep -qE '^[0-9a-f]{16}$' sum1 || fail "an evaluation has no checksum: $(cat sum1)"
expect 0 "$MLBENCH" help "evaluation stall"

# A data set of its own; a sweep over how often; and each storage form evaluates itself.
expect 0 "$MLBENCH" gen tiny.ini --set dataset.path=other --set dataset.samples=40 --set dataset.seed=2
expect_measured "$MLBENCH" sweep tiny.ini "${alone[@]}" --set sweep.decode.workers=1 --set sweep.batch.size=8 \
	--set evaluate.path=other --set sweep.evaluate.every=0,5 --out swept --json
[ "$(json '[p.get("evaluation", {}).get("samples_each") for p in d["points"]]')" = "[None, 40]" ] ||
	fail "the sweep's points do not evaluate as they should: $(json '[p.get("evaluation") for p in d["points"]]')"
expect_measured "$MLBENCH" sweep tiny.ini "${alone[@]}" --set sweep.decode.workers=1 --set sweep.batch.size=8 \
	--set evaluate.every=5 --set evaluate.samples=20 --set sweep.dataset.container=files,tar --out forms --json
[ "$(json '[p["evaluation"]["samples_each"] for p in d["points"]]')" = "[20, 20]" ] || fail "forms do not evaluate"

# Evaluations of ten steps' length every ten steps halve the rate: named, and what fewer would give is predicted.
slow=("${alone[@]}" --set evaluate.every=10 --set evaluate.samples=64 --set evaluate.batch_size=64 --set evaluate.step_time=20ms
	--set measure.duration=1500ms)
expect_measured "$MLBENCH" run tiny.ini "${slow[@]}" --out slow
expect 0 "$MLBENCH" explain evaluate/step
prints "stands still"
expect 0 "$MLBENCH" explain evaluate/input
# Few steps on a busy machine are too few to predict from: exit status 3.
expect_measured "$MLBENCH" what-if slow --set evaluate.every=50 --json
expect_measured "$MLBENCH" what-if slow --set evaluate.samples=32 --json
"$MLBENCH" what-if slow --set evaluate.workers=4 >out 2>err
says "evaluate.workers: how long an evaluation takes with another value was not measured"
if measuring; then
	expect 0 "$MLBENCH" diagnose tiny.ini "${slow[@]}" --json --out diagnosed
	[ "$(json '(d["verdict"]["stage"], d["verdict"]["resource"])')" = "('evaluate', 'step')" ] ||
		fail "not evaluate/step: $(json 'd["verdict"]')"
fi

# Spans of the timeline.
expect_measured "$MLBENCH" run tiny.ini "${evaluating[@]}" --set trace.schedule=0,0,0,20,1 --out traced
grep -q '"evaluate"' traced/trace*.json || fail "the timeline has no evaluation"

# Ctrl-C in the middle of one that would take an hour.
"$MLBENCH" run tiny.ini "${evaluating[@]}" --set evaluate.step_time=1h --set measure.duration=60s --out stopped >out 2>err &
until_true test -e stopped
until_true heeds_interrupts $!
sleep 0.5
kill -INT $!
wait $!
[ $? -eq 130 ] || fail "an interrupted run does not exit with 130"
