# Ranks that are not alike (data, build, plug-in, launcher, clock), and a full disk: said in one line that names the rank, and what was
# measured stays readable.  These jobs run at the same time.
. "$CLI/lib.sh"
need_ranks
write_config
sed -i '/^\[sweep\]/,$d' tiny.ini
printf '[sync]\ngradients = 64KiB\n[batch]\nsize = 8\n' >>tiny.ini
sed -i -e 's/^time = 500us/time = 20ms/' -e 's/^duration = 60ms/duration = 400ms/' tiny.ini
expect 0 "$MLBENCH" gen tiny.ini
data=$PWD/data
config=$PWD/tiny.ini
host=$(uname -n)

# one_error STATUS COMMAND ...: it ends with it, says one line, and measures nothing.
one_error() {
	expect "$@"
	[ "$(grep -c '^mlbench: error: ' err)" -eq 1 ] || fail "not one line says it"
	! grep -q '"kind":"repetition"' job/points.jsonl 2>/dev/null || fail "it was measured all the same"
}

# second STATUS COMMAND ...: of two ranks the second one is this.
second() {
	local want=$1
	shift
	one_error "$want" ranks 1 "$MLBENCH" run "$config" --set dataset.path="$data" --out job : --oversubscribe -n 1 "$@"
}

no_data() {
	mkdir there
	ln -s "$data" data
	sed 's#^path = data#path = ./data#' "$config" >job.ini
	one_error 3 ranks 1 "$MLBENCH" run job.ini --out job : --oversubscribe -n 1 -wdir there "$MLBENCH" run "$PWD/job.ini" --out job
	says "rank 1 on $host: "
	says "there is no data set at './data' yet: make it with"
}

# A file of which one byte more is there, among those of another program.
other_data() {
	mkdir here there
	expect 0 "$MLBENCH" gen "$config" --set dataset.path="$PWD/made" --set dataset.format=png
	mkdir here/pictures
	cp -r made/class* here/pictures
	cp -r here/pictures there/pictures
	find there/pictures -type f | sort | sed -n 5p | while read -r file; do echo >>"$file"; done
	sed -e '/^\[dataset\]/,/^$/d' "$config" >here/job.ini
	printf '[dataset]\npath = ./pictures\n' >>here/job.ini
	one_error 2 ranks 1 -wdir here "$MLBENCH" run job.ini --out job : --oversubscribe -n 1 -wdir there "$MLBENCH" run "$PWD/here/job.ini" --out job
	says "rank 1 on $host has other files in dataset.path than rank 0 ("
}

other_build() {
	mkdir build
	cp "$MLBENCH" "${MLBENCH%/*}/libmlbench-mpi.so" build/
	echo >>build/mlbench
	second 2 build/mlbench run "$config" --out job
	says "rank 1 on $host has another build of mlbench than rank 0 ("
}

# A program that lacks a key: its own reason is said, although it is not the first rank of its node.
older_build() {
	mkdir build
	cp "$MLBENCH" "${MLBENCH%/*}/libmlbench-mpi.so" build/
	perl -0777 -pi -e 's/overlap\0/overlaq\0/g' build/mlbench
	second 3 build/mlbench run "$config" --out job
	says "rank 1 on $host: rank 0:"
	says "unknown key 'sync.overlap'"
}

no_plugin() {
	MLBENCH_MPI_PLUGIN=/nowhere one_error 2 ranks 3 "$MLBENCH" run "$config" --set dataset.path="$data" --out job
	says "Open MPI started 3 ranks: the MPI plug-in cannot be opened: /nowhere"
	second 2 env MLBENCH_MPI_PLUGIN=/nowhere "$MLBENCH" run "$config" --out job
	says "rank 1 on $host: Open MPI started 2 ranks: the MPI plug-in cannot be opened: /nowhere"
}

# srun without PMIx: MPI takes each rank for a job of its own.
unseen() {
	SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 SLURM_STEP_ID=0 one_error 3 "$MLBENCH" run "$config" --out job
	says "Slurm started 2 ranks, but MPI (Open MPI"
	says "srun --mpi=pmix"
	SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 SLURM_STEP_ID=0 expect 3 "$MLBENCH" run "$config" --out job
	[ ! -s err ] || fail "each rank says it"
}

full_disk() {
	local folder
	mkdir small
	mount -t tmpfs -o size=256k tmpfs small 2>/dev/null || return 0
	trap "umount '$PWD/small' 2>/dev/null" EXIT
	dd if=/dev/zero of=small/ballast bs=1k count=160 2>/dev/null
	expect 3 ranks 2 "$MLBENCH" run "$config" --set dataset.path="$data" --set measure.repeats=12 --set measure.duration=100ms --set measure.limits=off --out small/job
	says "No space left on device; stopping here"
	for folder in small/job small/job/ranks/0001; do
		expect_measured "$MLBENCH" show $folder
	done
	rm small/ballast
	mount -o remount,size=16m small || fail "remount"
	expect_measured ranks 2 "$MLBENCH" run --resume small/job
	for folder in small/job small/job/ranks/0001; do
		python3 - $folder <<'PY' || fail "$folder is not whole"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/points.jsonl")]
assert len({line["repeat"] for line in lines if line.get("kind") == "repetition"}) == 12
PY
	done
}

# Its monotonic clock is 100,000 s ahead.
other_clock() {
	unshare -T --monotonic 1 true 2>/dev/null || return 0
	expect_measured ranks 1 "$MLBENCH" run "$config" --set dataset.path="$data" --set trace.schedule=2,0,1,4,1 --set measure.duration=1s --out job : --oversubscribe -n 1 \
		unshare -T --monotonic 100000 --fork "$MLBENCH" run "$config" --out job
	python3 - <<'PY' || fail "the clocks are not mapped onto each other"
import json
ranks = json.load(open("job/trace.json"))["otherData"]["ranks"]
offset, error = ranks[1]["clock_offset_ns"], ranks[1]["clock_error_ns"]
assert abs(offset + 100000 * 10**9) <= error, (offset, error)
assert ranks[0]["clock_offset_ns"] == ranks[0]["clock_error_ns"] == 0
# Nor is anybody late by days.
ranks = [[json.loads(line) for line in open(f"job{of}/points.jsonl")] for of in ("", "/ranks/0001")]
ranks = [[line["ranks"][0] for line in lines if line.get("kind") == "repetition"] for lines in ranks]
for leader, other in zip(*ranks):
    assert other["clock_error_ns"] > 0 == leader["clock_error_ns"]
    assert leader["late_seconds"] < 1000 and other["late_seconds"] < 1000
PY
}

at_once no_data other_data other_build older_build no_plugin unseen full_disk other_clock
