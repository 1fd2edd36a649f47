#!/usr/bin/env bash
#: cause = loader/lock
#: why = four shells side by side, but each holds one lock (flock) while it converts its pictures
#: needs = program:djpeg program:flock program:xargs
#: data = photos
#: options = --jobs 4 --lock one
#: relieved = --lock own
#: fix = --jobs 8
#: fix_twin = decode.workers=8
#: owner = batch.size=4
# find | xargs -P under flock, as a cache directory that several jobs share is guarded.
seconds=0
while [ $# -gt 0 ]; do
	case $1 in
	--data) data=$2 ;;
	--log) log=$2 ;;
	--work) work=$2 ;;
	--seconds) seconds=${2%.*} ;;
	--jobs) jobs=$2 ;;
	--lock) lock=$2 ;;
	*) echo "xargs_flock.sh: unknown option $1" >&2; exit 2 ;;
	esac
	shift 2
done
[ "$lock" = own ] && lock='$$' || lock=one
convert="exec 9>\"\$0/lock.$lock\"; flock 9; for file; do djpeg \"\$file\" >/dev/null; sleep 0.01; done; echo \$#"
names() {
	while find "$data" -name '*.jpg' | sort -R; do :; done
}
ended=
exec 3< <(names | xargs -P "$jobs" -n 4 sh -c "$convert" "$work")
trap 'ended=1' TERM INT
echo step,wall_time,samples,data_time_ms >"$log"
step=0
while [ -z "$ended" ] && { [ "$seconds" = 0 ] || [ $SECONDS -lt "$seconds" ]; }; do
	asked=$(date +%s%6N)
	read -r -u 3 count || break
	waited=$(($(date +%s%6N) - asked))
	step=$((step + 1))
	echo "$step,$(date +%s.%6N),$count,$((waited / 1000)).$(printf %03d $((waited % 1000)))" >>"$log"
	echo "batch $count"
done
pkill -P "$!" 2>/dev/null
kill "$!" 2>/dev/null
exit 0
