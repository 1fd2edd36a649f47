# mlbench top: key averages of timelines and of stages, every column, and files that are none.
. "$CLI/lib.sh"
write_config
expect_measured "$MLBENCH" run tiny.ini $ONE --out one --set measure.repeats=1 --set measure.epochs=4 --set trace.schedule=5,0,1,10,1
expect 0 "$MLBENCH" top one
prints 'point 0, repetition 0: 10 steps'
prints 'devices are emulated'
for operation in sample working 'rows in place' compute 'device step' step epoch filling; do prints "$operation"; done

# The same from the file itself, packed or not, and as JSON: own times sum to the time of the threads.
expect 0 "$MLBENCH" top one/trace.json --json
is_json mlbench.top/1
json 'd["source"], d["file"]' | grep -q "'timeline', 'one/trace.json'" || fail "not of the file"
json 'abs(sum(o["self_us"] for o in d["operations"] if o["on"] == "thread") / d["thread_us"] - 1) < 0.01' | grep -q True || fail "own times do not sum up"
json 'all((o["self_us"] is None) == (o["on"] == "in flight") for o in d["operations"])' | grep -q True || fail "own times of what overlaps"
json '[o["self_us"] for o in d["operations"] if o["self_us"] is not None] == sorted((o["self_us"] for o in d["operations"] if o["self_us"] is not None), reverse=True)' | grep -q True || fail "not sorted"
cp out plain.json
gzip -c one/trace.json >packed.json.gz
expect 0 "$MLBENCH" top packed.json.gz --json
json 'd["operations"] == json.load(open("plain.json"))["operations"]' | grep -q True || fail "packed is not the same"
expect 0 "$MLBENCH" top one --sort calls --json
json 'd["sort"] == "calls" and d["operations"][0]["calls"] == max(o["calls"] for o in d["operations"])' | grep -q True || fail "not by calls"
expect 2 "$MLBENCH" top one --sort slef
says "did you mean 'self'?"

# Without a timeline: the stages, and it says so; a sweep's best point, or the one asked for.
expect_measured "$MLBENCH" sweep tiny.ini --out sweep --set measure.repeats=1
expect 0 "$MLBENCH" top sweep --point 2
prints 'no timeline was recorded (trace.schedule), so this shows stages only'
prints 'point 2'
expect 0 "$MLBENCH" top sweep --json
json 'd["source"], d["file"]' | grep -q "'stages', None" || fail "not of the stages"
expect 2 "$MLBENCH" top sweep --point 4
says 'there is no point 4: the last one is 3'
expect 2 "$MLBENCH" top sweep --point two
expect 2 "$MLBENCH" top one/trace.json --point 0

# What is no timeline: one line each.
size=$(stat -c %s one/trace.json)
head -c $((size / 2)) one/trace.json >torn.json
head -c $(($(stat -c %s packed.json.gz) / 2)) packed.json.gz >torn.json.gz
printf '{"traceEvents": []}' >foreign.json
: >empty.json
head -c 300000 /dev/urandom >noise.json
sed 's/"ts":/"at":/' one/trace.json >timeless.json
for file in torn.json torn.json.gz foreign.json empty.json noise.json timeless.json; do
	expect 2 "$MLBENCH" top $file
	[ "$(wc -l <err)" -eq 1 ] || fail "more than a line on $file"
	says "'$file'"
done
expect 2 "$MLBENCH" top torn.json --json
is_json mlbench.error/1
expect 2 "$MLBENCH" top nowhere
says "no such result: 'nowhere'"
mkfifo pipe
expect 2 "$MLBENCH" top pipe
cp torn.json one/trace.json
expect 2 "$MLBENCH" top one
says 'is incomplete'
