#!/usr/bin/env bash
#: cause = loader/cpu or process/cpu
#: why = xargs runs one shell at a time that scales and packs large pictures, a program for each of them
#: needs = program:djpeg program:cjpeg program:xargs
#: data = photos
#: options = --jobs 1 --twice 3
#: relieved = --twice 0
#: fix = --jobs 2
#: fix_twin = decode.workers=2
#: owner = batch.size=8
# find | xargs -P: pictures made ready for a trainer that reads names from a pipe; a step waits 10 ms.
seconds=0
while [ $# -gt 0 ]; do
	case $1 in
	--data) data=$2 ;;
	--log) log=$2 ;;
	--work) work=$2 ;;
	--seconds) seconds=${2%.*} ;;
	--jobs) jobs=$2 ;;
	--twice) export twice=$2 ;;
	*) echo "xargs_thumbnails.sh: unknown option $1" >&2; exit 2 ;;
	esac
	shift 2
done
# shellcheck disable=SC2016 (for the inner shell)
ready='for file; do
	djpeg "$file" | cjpeg -quality 85 >"$0"
	for _ in $(seq 1 $twice); do djpeg "$0" | cjpeg -quality 85 -optimize -progressive >/dev/null; done
	rm -f "$0"; done; echo $#'
names() {
	while find "$data" -name '*.jpg' | sort -R; do :; done
}
ended=
exec 3< <(names | xargs -P "$jobs" -n 8 sh -c "$ready" "$work/ready.$$.jpg")
trap 'ended=1' TERM INT
echo step,wall_time,samples,data_time_ms >"$log"
step=0
while [ -z "$ended" ] && { [ "$seconds" = 0 ] || [ $SECONDS -lt "$seconds" ]; }; do
	asked=$(date +%s%6N)
	read -r -u 3 count || break
	waited=$(($(date +%s%6N) - asked))
	sleep 0.01
	step=$((step + 1))
	echo "$step,$(date +%s.%6N),$count,$((waited / 1000)).$(printf %03d $((waited % 1000)))" >>"$log"
	echo "batch $count"
done
kill "$!" 2>/dev/null
pkill -P "$!" 2>/dev/null
exit 0
