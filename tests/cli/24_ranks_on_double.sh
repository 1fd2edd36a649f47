# Ranks with a device each, on the test double: which device each one takes, what is refused, that they sum and meet in every step, who
# was last, and a rank that dies.
. "$CLI/lib.sh"
export MLBENCH_CUDA_PLUGIN=$(dirname "$MLBENCH")/double/libmlbench-cuda.so
[ -e "$MLBENCH_CUDA_PLUGIN" ] || skip "the test double is not built (make double)"
need_ranks
write_config
sed -i '/^\[sweep\]/,$d' tiny.ini
expect 0 "$MLBENCH" gen tiny.ini
host=$(uname -n)
export MLBENCH_DOUBLE_DEVICES=2
cuda="--set step.backend=cuda --set step.model=mlp --set measure.repeats=1 --set measure.epochs=2 --set measure.warmup=0s --set batch.size=8 --set decode.workers=1 --set sync.bucket=64KiB"

# More of them than devices, of those that train; and what ranks with devices cannot do.
of() { echo "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_SIZE=$1 OMPI_COMM_WORLD_LOCAL_SIZE=$1"; }
expect 2 env $(of 3) "$MLBENCH" check tiny.ini $cuda
says "Open MPI started 3 ranks on this node, which has 2 devices: start a rank for each device, or set run.ranks = 2"
expect 2 env $(of 2) "$MLBENCH" check tiny.ini $cuda --set sync.gradients=4KiB
says "sync.gradients has no effect with step.backend = cuda"
expect 2 env $(of 2) "$MLBENCH" check tiny.ini $cuda --set step.devices=2
says "run.ranks = 2: ranks exchange gradients of one device each; set step.devices = 1, and start a rank for each device"
expect_measured ranks 3 "$MLBENCH" run tiny.ini $cuda --set run.ranks=2 --out two-of-three

# trained FOLDER EXPRESSION: over l and f, the repetition of rank 0 and rank 1.
trained() {
	python3 - "$1" "$2" <<'PY' || fail "not so of $1: $2"
import json, sys
def repetition(path):
    rows = [json.loads(line) for line in open(path + "/points.jsonl")]
    return [row for row in rows if row.get("kind") == "repetition"][0]
l, f = repetition(sys.argv[1]), repetition(sys.argv[1] + "/ranks/0001")
if not eval(sys.argv[2]):
    print(json.dumps([[r["ranks"], r["devices"]] for r in (l, f)], indent=1))
    sys.exit(1)
PY
}

# Each takes the device of its place on the node, or the one that its launcher shows it.
buses='[r["devices"][0]["bus"] for r in (l, f)]'
of_two='["0000:01:00.0", "0000:02:00.0"]'
expect_measured ranks 2 "$MLBENCH" run tiny.ini $cuda --out dealt
says "; one device each"
trained dealt "$buses == $of_two"
trained two-of-three "$buses == $of_two"
cat >shown.sh <<'S'
export CUDA_VISIBLE_DEVICES=$((1 - OMPI_COMM_WORLD_LOCAL_RANK))
exec "$@"
S
expect_measured ranks 2 sh shown.sh "$MLBENCH" run tiny.ini $cuda --out shown
trained shown "$buses == $of_two[::-1]"
CUDA_VISIBLE_DEVICES=1 expect 2 ranks 2 "$MLBENCH" run tiny.ini $cuda --out none
says "2 ranks on $host share 1 device (rank 1 has 0000:02:00.0, as an earlier one does): start one rank for each device"

# They meet in every step, however it is launched; what the exchange took the device says, and how much of it passed meanwhile.
for way in "--set run.verify=on" "--set step.graph=on --set sync.overlap=off --set upload.mode=none --set step.ahead=0" "--set step.accumulate=2"; do
	rm -rf way
	# shellcheck disable=SC2086
	expect_measured ranks 2 "$MLBENCH" run tiny.ini $cuda $way --out way
	trained way 'all(r["ranks"][0]["bytes"] > 0 and 0 < r["ranks"][0]["rounds"] <= 12 and r["ranks"][0]["exchange_seconds"] > 0 for r in (l, f))'
	case $way in
	*verify*) prints "the sum over all ranks is" ;;
	*graph*) trained way 'all(r["ranks"][0]["own_hidden_seconds"] == 0 for r in (l, f))' ;;
	*accumulate*) trained way 'all(r["ranks"][0]["rounds"] <= 6 for r in (l, f))' ;;
	esac
done

# The one whose device is slow is the last of most rounds, and the other waits for it.
cat >slow.sh <<'S'
[ "$OMPI_COMM_WORLD_RANK" -eq 0 ] || export MLBENCH_DOUBLE_KERNEL_NS=10000000
exec "$@"
S
expect_measured ranks 2 sh slow.sh "$MLBENCH" run tiny.ini $cuda --out slow
trained slow '2 * f["ranks"][0]["last_rounds"] > f["ranks"][0]["rounds"]'
trained slow 'l["ranks"][0]["wait_seconds"] > f["ranks"][0]["wait_seconds"]'

# A rank whose device cannot be opened, or fails, is named with its reason, and the others do not wait for it.
cat >broken.sh <<'S'
[ "$OMPI_COMM_WORLD_RANK" -eq 0 ] || export MLBENCH_DOUBLE_FAIL=$FAILS
exec "$@"
S
for fails in cudaMalloc:1 kernel:700; do
	FAILS=$fails ranks 2 sh broken.sh "$MLBENCH" run tiny.ini $cuda --set measure.epochs=9 --out broken-$fails >out 2>err
	status=$?
	[ "$status" -eq 1 ] || [ "$status" -eq 3 ] || fail "exit $status with $fails"
	says "rank 1 on $host: "
	! grep -q "test double: " err || fail "the runtime was misused"
done
says "unspecified launch failure"

# One that freezes, too, and what was measured is kept.
start_ranks 2 "$MLBENCH" sweep tiny.ini $cuda --set measure.repeats=2 --set measure.epochs=0 --set measure.duration=1s --set sweep.batch.size=4,8 --out frozen
until_true repetitions frozen 1
pids=($(pgrep -P "$launcher"))
for pid in "${pids[@]}"; do
	tr '\0' '\n' <"/proc/$pid/environ" | grep -qx OMPI_COMM_WORLD_RANK=1 && kill -STOP "$pid"
done
wait "$launcher"
status=$?
[ "$status" -eq 3 ] || fail "exit $status of a job with a frozen rank"
says "rank 1 on $host has not answered for "
# Where they had not all joined, the double's leader leaves their shared memory when MPI ends it.
for pid in "${pids[@]}"; do
	rm -f /dev/shm/mlbench-nccl-"$pid"-*
done
for folder in frozen frozen/ranks/0001; do
	expect 0 "$MLBENCH" show $folder
done
