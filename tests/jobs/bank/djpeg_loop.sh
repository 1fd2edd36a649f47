#!/usr/bin/env bash
#: cause = loader/cpu or process/cpu
#: why = a shell loop starts one djpeg after another, on one core
#: half = open
#: needs = program:djpeg
#: data = large
#: options = --jobs 1
#: relieved = --jobs 2
#: fix = --jobs 2
#: fix_twin = decode.workers=2 prefetch.depth=4
#: owner = batch.size=8
# Photos are decoded by a program for each, and a step takes each batch of 8.
jobs=1 seconds=0
while [ $# -gt 0 ]; do
	case $1 in
	--data) data=$2 ;;
	--log) log=$2 ;;
	--work) work=$2 ;;
	--seconds) seconds=${2%.*} ;;
	--jobs) jobs=$2 ;;
	*) echo "djpeg_loop.sh: unknown option $1" >&2; exit 2 ;;
	esac
	shift 2
done
ended=
trap 'ended=1' TERM INT
echo step,wall_time,samples,data_time_ms >"$log"
step=0
while [ -z "$ended" ] && { [ "$seconds" = 0 ] || [ $SECONDS -lt "$seconds" ]; }; do
	set -- "$data"/*.jpg
	while [ $# -ge 8 ] && [ -z "$ended" ]; do
		asked=$(date +%s%3N)
		started=0
		for file in "${@:1:8}"; do
			djpeg -outfile "$work/${file##*/}.ppm" "$file" &
			started=$((started + 1))
			[ $((started % jobs)) -ne 0 ] || wait
		done
		wait
		now=$(date +%s.%6N)
		step=$((step + 1))
		echo "$step,$now,8,$((${now%.*}${now: -6:3} - asked))" >>"$log"
		echo "batch 8"
		rm -f "$work"/*.ppm
		shift 8
	done
done
