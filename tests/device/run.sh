#!/usr/bin/env bash
# Everything that needs a GPU, in one command: on a machine with one, from the repository after `make device` or from an unpacked
# `make dist`.  No network, nothing outside the output folder.
#   tests/device/run.sh [BUILD_FOLDER] [options]
#     --out DIR      where all goes (default: results/device/TIME); a second call with the same folder adds to it
#     --only A,B     some of the steps: doctor numerics probe models features devices throttle repeat sweep resnet50 bench bank
#                    Calls of less than ten minutes each: --only doctor,numerics,probe  --only models,features,devices,throttle
#                    --only repeat,sweep,resnet50  --only bench  --only bank
#     --full         longer: more repeats, the whole sweep, the bank's seeds (about an hour); else less than 9 minutes
#     --limit S      seconds for all of it; what has no time left is "not measured"
#     --double       on the CPU, with the test double: tries the script, judges nothing that depends on time
# The summary has a line per check: PASS, FAIL, INFO, or NOT MEASURED with the reason; and which steps were not run at all.
# Exit status: 0 all that was asked passed; 1 something failed or was not measured; 2 wrong use; 3 no GPU can be used.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
all_steps="doctor numerics probe models features devices throttle repeat sweep resnet50 bench bank"
build= out= only=$all_steps full=no double=no limit=
die() {
	echo "run.sh: $*" >&2
	exit 2
}
while [ $# -gt 0 ]; do
	case $1 in
	--out) out=${2:?} && shift ;;
	--only) only=$(echo "${2:?}" | tr , ' ') && shift ;;
	--full) full=yes ;;
	--limit) limit=${2:?} && shift ;;
	--double) double=yes ;;
	-h | --help) sed -n '2,/^set -u/p' "$0" | sed '$d;s/^# \{0,1\}//' && exit 0 ;;
	-*) die "no such option: $1" ;;
	*) build=$1 ;;
	esac
	shift
done
for step in $only; do
	case " $all_steps " in *" $step "*) ;; *) die "no such step: $step (there are: $all_steps)" ;; esac
done
: "${limit:=$([ $full = yes ] || [ $double = yes ] && echo 7200 || echo 530)}"

# --- where things are: an unpacked dist, or a build folder ------------------------------------------------
if [ -z "$build" ] && [ -x "$root/bin/mlbench" ]; then
	mlbench=$root/bin/mlbench programs=$root/device
else
	build=$(cd "${build:-$root/build/release}" 2>/dev/null && pwd) || die "no build folder '${build:-build/release}'"
	mlbench=$build/mlbench programs=$build/device
fi
if [ $double = yes ]; then
	[ -n "$build" ] || die "--double needs a build folder"
	programs=$build/double
	export MLBENCH_CUDA_PLUGIN=$programs/libmlbench-cuda.so LD_LIBRARY_PATH=$programs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
[ -x "$mlbench" ] || die "no program at '$mlbench': build it first"
: "${out:=results/device/$(date -u +%Y%m%dT%H%M%SZ)}"
mkdir -p "$out" || die "cannot make '$out'"
out=$(cd "$out" && pwd)
export MLBENCH_DATA="${MLBENCH_DATA:-$out/data}" XDG_CACHE_HOME=$out/cache COLUMNS=150 LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
unset NO_COLOR
mkdir -p "$XDG_CACHE_HOME"
# The bench of the profiler looks for the plug-in as the program does.
[ -n "${MLBENCH_CUDA_PLUGIN:-}" ] || for at in "$(dirname "$mlbench")" "$(dirname "$mlbench")/../lib/mlbench"; do
	[ -e "$at/libmlbench-cuda.so" ] && plugin=$at/libmlbench-cuda.so
done

# The CUDA libraries come from the node; where the linker does not find them, they are looked for where they usually lie.
find_libraries() {
	local library=${MLBENCH_CUDA_PLUGIN:-${plugin:-}} folder
	[ -e "$library" ] || return 0
	ldd "$library" 2>/dev/null | grep -q 'not found' || return 0
	for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64 /usr/local/cuda-1[3-9]*/lib64 /usr/lib/x86_64-linux-gnu/cuda* \
		$(python3 -c 'import site, glob
for base in site.getsitepackages() + [site.getusersitepackages()]:
    print("\n".join(glob.glob(base + "/nvidia/*/lib")))' 2>/dev/null); do
		[ -d "$folder" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
	done
	export LD_LIBRARY_PATH
	echo "CUDA libraries: LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
}
find_libraries

# --- what is known so far, always on disk -------------------------------------------------------------------
summary=$out/summary.tsv
touch "$summary"
begun=$SECONDS
failed=no
left() { echo $((limit - SECONDS + begun)); }

# result STATUS STEP TEXT
result() {
	printf '%s\t%s\t%s\n' "$1" "$2" "$3" | tee -a "$summary" | awk -F '\t' '{ printf "  %-13s %-9s %s\n", $1, $2, $3 }'
	case $1 in FAIL | "NOT MEASURED") failed=yes ;; esac
}

finish() {
	trap - EXIT
	{
		echo "device run of $(date -u +%Y-%m-%dT%H:%M:%SZ) on $(uname -n), $(nproc) cores: $("$mlbench" --version 2>/dev/null | head -n 1)"
		[ $double = no ] || echo "TEST DOUBLE: computed on the CPU; no figure means anything and no bar is judged"
		awk -F '\t' '{ printf "%-13s %-9s %s\n", $1, $2, $3 }' "$summary"
		for step in $all_steps; do
			awk -F '\t' -v step="$step" '$2 == step { found = 1 } END { exit !found }' "$summary" ||
				printf '%-13s %-9s %s\n' "NOT RUN" "$step" "--only $step --out $out runs it"
		done
		awk -F '\t' '{ n[$1]++ } END { printf "%d passed, %d failed, %d not measured\n", n["PASS"], n["FAIL"], n["NOT MEASURED"] }' "$summary"
	} >"$out/summary.txt"
	echo "-----"
	tail -n 1 "$out/summary.txt"
	echo "all of it: $out (summary.txt; a log per step)"
	if [ "$1" -ne 0 ]; then exit "$1"; fi
	[ $failed = no ] || exit 1
	exit 0
}
running=
stop() {
	trap '' INT TERM # a second one would end it before its summary
	[ -z "$running" ] || kill -TERM "$running" 2>/dev/null
	result FAIL run.sh interrupted
	finish 130
}
trap stop INT TERM
trap 'finish 1' EXIT

# within SECONDS LOG COMMAND …: at most so long, and no longer than what is left of all; its output to the log.
within() {
	local most=$1 log=$out/$2.log
	shift 2
	[ $double = no ] || most=$((most * 10)) # a guard alone
	[ "$(left)" -ge 5 ] || { echo "no time left" >"$log"; return 124; }
	[ "$most" -le "$(left)" ] || most=$(left)
	echo "\$ $*" >>"$log"
	# Waited for, not run in front: a signal to this script is answered at once.
	timeout -k 10 "$most" "$@" >>"$log" 2>&1 &
	running=$!
	wait "$running"
	local status=$?
	running=
	return $status
}
last_line() { grep -v '^ *$' "$out/$1.log" | tail -n 1 | cut -c1-200; }
why() { # STATUS LOG: of a command that failed
	case $1 in
	124 | 137) [ "$(left)" -lt 5 ] && echo "no time left of the $limit s" || echo "it took too long; $(last_line "$2")" ;;
	*) echo "exit $1: $(last_line "$2")" ;;
	esac
}
# unmeasured STATUS: for want of time nothing is known; else it is a failure.
verdict_of() { case $1 in 124 | 137) [ "$(left)" -lt 5 ] && echo "NOT MEASURED" || echo FAIL ;; *) echo FAIL ;; esac; }
need_python() {
	command -v python3 >/dev/null && return 0
	result "NOT MEASURED" "$1" "no python3 to read the results"
	return 1
}
# Lines of judge.py are results: STATUS TAB TEXT.
judged() { # STEP COMMAND …
	local step=$1 line ok=no
	shift
	while IFS= read -r line; do
		result "${line%%$'\t'*}" "$step" "${line#*$'\t'}"
		ok=yes
	done < <(python3 "$here/judge.py" "$@" 2>"$out/judge.err")
	[ $ok = yes ] || result FAIL "$step" "its results could not be read: $(tail -n 1 "$out/judge.err")"
}

# --- is there a GPU? ------------------------------------------------------------------------------------------
listed=$("$mlbench" list 2>&1)
reason=$(printf '%s\n' "$listed" | awk '/^  cuda +not here: /{ on = 1; sub(/^  cuda +not here: /, ""); printf "%s", $0; next }
	on && /^            /{ sub(/^ +/, " "); printf "%s", $0; next } { on = 0 }')
if [ -n "$reason" ]; then
	echo "run.sh: no GPU can be used: $reason" >&2
	result INFO device "no GPU can be used: $reason" >/dev/null
	finish 3
fi
gpu=$(command -v nvidia-smi >/dev/null && [ $double = no ] && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)
echo "mlbench on ${gpu:-$([ $double = yes ] && echo 'the test double' || echo 'a GPU')}; steps: $only; at most $limit s; into $out"

# --- what a step is measured on ---------------------------------------------------------------------------------
imagenet=$root/configs/imagenet_like.ini
set_all() { for pair in "$@"; do printf -- '--set\n%s\n' "$pair"; done; }
cuda_keys="step.backend=cuda step.precision=bf16 step.graph=on"
small=
if [ $double = yes ]; then
	# The double computes on the CPU: a small model and small pictures.
	cuda_keys="step.backend=cuda step.graph=on step.model=mlp"
	small="dataset.format=raw dataset.width=20 dataset.height=20 dataset.bytes=0 dataset.samples=64
		dataset.classes=8 augment.size=8 batch.size=8 measure.warmup=20ms measure.duration=100ms measure.window=20ms"
fi

# --- the steps ----------------------------------------------------------------------------------------------------
step_doctor() {
	within 60 doctor "$mlbench" doctor
	local status=$?
	{ [ $status -eq 0 ] || [ $status -eq 1 ]; } && grep -q cuda "$out/doctor.log" && result PASS doctor "$(grep -m 1 -A 1 'backend cuda' "$out/doctor.log" | tr -s ' \n' ' ' | cut -c1-160)" ||
		result "$(verdict_of $status)" doctor "$(why $status doctor)"
	within 60 list "$mlbench" list || true
	{ command -v nvidia-smi >/dev/null && [ $double = no ] && timeout 30 nvidia-smi -q >"$out/nvidia-smi.txt" 2>&1; } || true
}

# Counts of a cmocka program's log: passed failed skipped.
counts() {
	awk '/^\[  PASSED  \]/ { p += $4 } /^\[  FAILED  \] [0-9]/ { f += $4 } /^\[  SKIPPED \] [0-9]/ { s += $4 } END { print p + 0, f + 0, s + 0 }' "$1"
}

step_numerics() {
	local program name status p f s seen=no
	for program in "$programs"/test_*; do
		case $program in *.[do] | */test_double* | *\*) continue ;; esac
		[ -x "$program" ] || continue
		seen=yes
		name=$(basename "$program")
		: >"$out/$name.log"
		within 150 "$name" "$program"
		status=$?
		read -r p f s < <(counts "$out/$name.log")
		if [ $status -eq 0 ] && [ "$f" -eq 0 ] && [ "$p" -gt 0 ]; then
			result PASS numerics "$name: $p passed, $s skipped"
		elif [ $status -eq 0 ] && [ "$f" -eq 0 ]; then
			result "NOT MEASURED" numerics "$name: nothing ran, $s skipped: $(grep -m 1 -i skipped "$out/$name.log" | cut -c1-120)"
		else
			result "$(verdict_of $status)" numerics "$name: $f failed: $(why $status "$name")"
		fi
	done
	[ $seen = yes ] || result "NOT MEASURED" numerics "no test programs in '$programs': make device builds them"
}

step_probe() {
	local quick=--quick status
	[ $full = no ] || quick=
	# shellcheck disable=SC2046
	within 150 probe "$mlbench" probe "$imagenet" $(set_all $small $cuda_keys) $quick --fresh --path "$out"
	status=$?
	[ $status -eq 0 ] || { result "$(verdict_of $status)" probe "$(why $status probe)"; return; }
	"$mlbench" probe "$imagenet" $(set_all $small $cuda_keys) $quick --path "$out" --json >"$out/probe.json" 2>>"$out/probe.log"
	need_python probe && judged probe probe "$out/probe.json"
}

# try_setting STEP NAME KEYS…: a short run on the device, from memory.  What this device lacks is said and is no failure.
try_setting() {
	local step=$1 name=$2 status log folder times="measure.duration=2s measure.warmup=500ms"
	shift 2
	log=$step-$(echo "$name" | tr -c 'a-z0-9\n' -) folder=$out/$step-$(echo "$name" | tr -c 'a-z0-9\n' -)
	[ $double = no ] || times="measure.epochs=2 measure.warmup=0s"
	[ $full = no ] || times="measure.duration=6s measure.warmup=2s"
	rm -rf "$folder"
	: >"$out/$log.log"
	# shellcheck disable=SC2086,SC2046
	within 90 "$log" "$mlbench" run "$imagenet" $(set_all batch.size=64 $small $cuda_keys read.engine=memory decode.workers="$(workers)" prefetch.depth=4 \
		measure.limits=off measure.repeats=1 $times "$@") --out "$folder"
	status=$?
	if [ -s "$folder/points.jsonl" ] && { [ $status -eq 0 ] || [ $status -eq 3 ]; }; then
		need_python "$step" && judged "$step" "${judge:-ran}" "$name" "$folder"
	elif [ $status -eq 3 ] && grep -qE 'does not support it|of device memory|this node has only [0-9]+ device|cannot exchange' "$out/$log.log"; then
		result INFO "$step" "$name: not run: $(last_line "$log")"
	else
		result "$(verdict_of $status)" "$step" "$name: $(why $status "$log")"
	fi
}

# Each model in each precision.  The double computes one of them; test_models has the others there.
step_models() {
	local model precision models="mlp resnet50 vit_b16 gpt2_small" precisions="fp32 tf32 bf16 fp16 fp8" batch
	[ $double = no ] || models=mlp precisions="bf16 fp8"
	for model in $models; do
		case $model in gpt2_small) batch=8 ;; mlp) batch=256 ;; *) batch=64 ;; esac
		[ $double = no ] || batch=8
		for precision in $precisions; do
			try_setting models "$model $precision" step.model=$model step.precision=$precision batch.size=$batch
		done
	done
}

# What else a step can be told: where pictures are augmented, how batches get there, how kernels are launched, what is watched.
step_features() {
	try_setting features "augmented on the gpu" augment.device=gpu
	try_setting features "uint8 batches" augment.type=uint8
	try_setting features "uploaded beside the step" upload.mode=copy
	try_setting features "copied by the step" upload.mode=none
	try_setting features "pageable memory" upload.memory=pageable
	try_setting features "kernel by kernel" step.graph=off
	try_setting features "as a graph" step.graph=on
	try_setting features "four streams" step.graph=off step.streams=4
	try_setting features "each step waited for" step.ahead=0
	try_setting features "accumulated, watched, adam" step.accumulate=4 step.statistics=5 step.optimizer=adam
}

step_devices() {
	local extra=
	[ $double = no ] || extra="batch.size=8 dataset.samples=64"
	try_setting devices "two devices" step.devices=2 $extra
	try_setting devices "two devices, accumulated" step.devices=2 step.accumulate=4 $extra
}

# Under load for as long as clocks take to fall: what the driver says of clocks, power and what held them down.
step_throttle() {
	local load="batch.size=256 measure.duration=20s"
	[ $full = no ] || load="batch.size=256 measure.duration=120s"
	[ $double = no ] || load=
	judge=watched try_setting throttle "under load" codec.name=null $load
}

# In one process, so that the plans of the products are the same: which one wins is timed, and may differ from process to process.
step_repeat() {
	local precision status precisions="fp32 bf16"
	[ $full = no ] || precisions="fp32 tf32 bf16 fp16 fp8"
	for precision in $precisions; do
		rm -rf "$out/repeat-$precision"
		within 120 repeat "$mlbench" run "$imagenet" $(set_all $(repeat_keys) step.precision="$precision") --out "$out/repeat-$precision"
		status=$?
		if [ $status -ne 0 ] && [ $status -ne 3 ]; then
			result "$(verdict_of $status)" repeat "$precision: $(why $status repeat)"
		else
			need_python repeat && judged repeat repeat "$precision" "$out/repeat-$precision"
		fi
	done
}
repeat_keys() {
	echo "${small:-batch.size=64} $cuda_keys decode.workers=$(workers) prefetch.depth=2 read.engine=memory run.verify=on
		measure.epochs=2 measure.warmup=0s measure.repeats=3 measure.limits=off"
}
workers() { local n; n=$(nproc); [ "$n" -le 16 ] || n=16; echo "$n"; }

step_sweep() {
	local extra= most=200 status
	if [ $full = no ]; then extra="measure.duration=1500ms measure.warmup=500ms measure.repeats=1 measure.limits=off"; else most=1500; fi
	[ $double = no ] || extra="measure.repeats=1 measure.limits=off sweep.decode.workers=1,2 sweep.batch.size=8,16 sweep.prefetch.depth=2"
	rm -rf "$out/sweep"
	within $most sweep "$mlbench" sweep "$imagenet" $(set_all $small $cuda_keys $extra) --out "$out/sweep"
	status=$?
	[ $status -eq 0 ] || [ $status -eq 3 ] || result "$(verdict_of $status)" sweep "$(why $status sweep)"
	[ -e "$out/sweep/points.jsonl" ] || return
	within 60 sweep-show "$mlbench" show "$out/sweep" || true
	within 120 sweep-diagnose "$mlbench" diagnose "$out/sweep" || true
	need_python sweep && judged sweep sweep "$out/sweep"
}

# End to end: the memory source, up to 16 workers; which stage binds, and by how much.
step_resnet50() {
	local name extra status batch=256
	[ $double = no ] || batch=8
	for name in cpu gpu; do
		extra="augment.device=$name"
		[ $full = yes ] || extra="$extra measure.duration=3s measure.warmup=1s measure.repeats=2"
		[ $double = no ] || extra="augment.device=$name measure.epochs=1 measure.warmup=0s measure.repeats=1"
		rm -rf "$out/resnet50-$name"
		within 120 "resnet50-$name" "$mlbench" run "$imagenet" $(set_all $small $cuda_keys read.engine=memory decode.workers="$(workers)" \
			batch.size=$batch prefetch.depth=4 measure.limits=on $extra) --out "$out/resnet50-$name"
		status=$?
		if [ $status -ne 0 ] && [ $status -ne 3 ]; then
			result "$(verdict_of $status)" resnet50 "augment on $name: $(why $status "resnet50-$name")"
			continue
		fi
		within 60 "resnet50-$name-diagnose" "$mlbench" diagnose "$out/resnet50-$name" || true
		within 60 "resnet50-$name-diagnose-json" "$mlbench" diagnose "$out/resnet50-$name" --json || true
		need_python resnet50 && judged resnet50 binding "augment on $name" "$out/resnet50-$name" "$out/resnet50-$name-diagnose-json.log"
	done
}

step_bench() {
	local program name status quick=--quick line seen=no
	[ $full = no ] || quick=
	for program in "$programs"/bench_*; do
		case $program in *.[do] | *\*) continue ;; esac
		[ -x "$program" ] || continue
		seen=yes
		name=$(basename "$program")
		rm -f "$out/$name.json" "$out/$name.bars"
		MLBENCH_CUDA_PLUGIN=${MLBENCH_CUDA_PLUGIN:-${plugin:-}} within $([ $full = yes ] && echo 600 || echo 90) "$name" \
			"$program" $quick --json "$out/$name.json" --bars "$out/$name.bars"
		status=$?
		[ ! -e "$out/$name.bars" ] || while IFS=$'\t' read -r line text; do
			result "$line" bench "$text"
		done <"$out/$name.bars"
		[ $status -eq 0 ] || [ $status -eq 1 -a -s "$out/$name.bars" -a -e "$out/$name.json" ] ||
			result "$(verdict_of $status)" bench "$name: $(why $status "$name")"
	done
	[ $seen = yes ] || result "NOT MEASURED" bench "no benches in '$programs': make device builds them"
}

step_bank() {
	local status options=--quick
	need_python bank || return
	if [ $double = yes ]; then
		result INFO bank "test double: not judged"
		return
	fi
	[ $full = no ] || options="--seeds 3"
	local most=$([ $full = yes ] && echo 3000 || echo 200)
	[ "$most" -le "$(left)" ] || most=$(left)
	if [ "$most" -lt 60 ]; then
		result "NOT MEASURED" bank "no time left of the $limit s: --only bank --out $out measures it"
		return
	fi
	# No case begins in the last seconds: one takes about so long.
	within "$most" bank python3 "$here/../bank/bank.py" "$mlbench" --device $options --time-limit $((most - 45)) \
		--out "$out/bank" --data "$out/data/bank"
	status=$?
	case $status in
	0) result PASS bank "$(last_line bank)" ;;
	3) result "NOT MEASURED" bank "$(last_line bank)" ;;
	*) result "$(verdict_of $status)" bank "$(why $status bank)" ;;
	esac
}

for step in $only; do
	echo "$step ($(left) s left)"
	if [ "$(left)" -lt 5 ]; then
		result "NOT MEASURED" "$step" "no time left of the $limit s: --only $step --out $out measures it"
		continue
	fi
	case $step in numerics | bench) ;; *) : >"$out/$step.log" ;; esac
	awk -F '\t' -v step="$step" '$2 != step' "$summary" >"$summary.new" && mv "$summary.new" "$summary" # what it found before
	"step_$step"
done
rm -rf "$out/data/bank"
finish 0
