# A run that hangs in any phase, the opening of its data, the warm-up, the draining after its time, the saving of a repetition, the
# report: status says so, with the thread and the file that it waits for, and so does the metric that the alert reads.
# The hang is a library that has calls on files of one name read from an empty FIFO.
. "$CLI/lib.sh"
case "$MLBENCH" in */release/*) ;; *) skip "the library that hangs goes before a sanitizer's" ;; esac
cat >hang.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
typedef int open_call(const char *, int, ...);
static void hang_at(const char *path)
{
	const char *at = getenv("HANG_AT");
	char byte;
	if (!at || !strstr(path, at) || access(getenv("HANG_FLAG"), F_OK) != 0)
		return;
	open_call *real = (open_call *)dlsym(RTLD_NEXT, "open");
	const int fd = real(getenv("HANG_FIFO"), O_RDWR);
	while (read(fd, &byte, 1) != 1)
		;
	close(fd);
}
static void hang_on(int fd)
{
	char link[64], path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t size = readlink(link, path, sizeof path - 1);
	path[size > 0 ? size : 0] = '\0';
	hang_at(path);
}
#define OPEN(NAME) int NAME(const char *path, int flags, ...) \
	{ va_list args; va_start(args, flags); const int mode = va_arg(args, int); va_end(args); \
	  hang_at(path); return ((open_call *)dlsym(RTLD_NEXT, #NAME))(path, flags, mode); }
#define PREAD(NAME) ssize_t NAME(int fd, void *to, size_t size, off_t offset) \
	{ hang_on(fd); return ((ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, #NAME))(fd, to, size, offset); }
#define SYNC(NAME) int NAME(int fd) { hang_on(fd); return ((int (*)(int))dlsym(RTLD_NEXT, #NAME))(fd); }
OPEN(open) OPEN(open64) PREAD(pread) PREAD(pread64) SYNC(fsync) SYNC(fdatasync)
C
"${CC:-gcc}" -shared -fPIC -O1 -o hang.so hang.c -ldl 2>compiled || skip "no compiler: $(head -n 1 compiled)"
write_config
expect 0 "$MLBENCH" gen tiny.ini
mkdir runtime && chmod 700 runtime
export XDG_RUNTIME_DIR=$PWD/runtime
touch now
declare -A pid_of
trap 'for p in "${pid_of[@]}"; do kill -KILL "$p" 2>/dev/null; done' EXIT

# begin NAME FILE FLAG OPTIONS...: a run that hangs at files of that name once the flag is there.
begin() {
	local name=$1 at=$2 flag=$3
	shift 3
	mkfifo "$name.fifo"
	HANG_AT=$at HANG_FLAG=$PWD/$flag HANG_FIFO=$PWD/$name.fifo LD_PRELOAD=$PWD/hang.so \
		"$MLBENCH" run tiny.ini $ONE --set measure.repeats=1 --set measure.duration=200ms --set read.engine=pread "$@" --out "of_$name" \
		>"$name.out" 2>"$name.err" &
	pid_of[$name]=$!
}
# hangs NAME WORDS: status comes to say that of it, and that it is stuck.
stuck() {
	kill -0 "${pid_of[$1]}" 2>/dev/null || fail "$1 has ended, and never said '$2'"
	COLUMNS=190 "$MLBENCH" status "${pid_of[$1]}" >out 2>err
	[ $? -eq 1 ] && tr -s ' \n' ' ' <out | grep -qE -- "$2"
}
hangs() {
	until_true stuck "$@"
}
# shows NAME PATTERN: a line of its status has it, or it has ended.
shows() {
	COLUMNS=190 "$MLBENCH" status "${pid_of[$1]}" >out 2>err
	grep -qE "$2" out || ! kill -0 "${pid_of[$1]}" 2>/dev/null
}
# The flag has to come within the time that is measured.
begin drain .ppm later --set measure.duration=8s --listen=0
until_true shows drain '^ *phase +(measuring|draining)'
touch later
begin setup mlbench-manifest now
begin warmup .ppm now --set measure.warmup=900s
begin saving p00000 now
begin report summary.json now
hangs drain "waiting: draining for .* s, and no thread of it runs: read thread [0-9]+: sleeping in read of '[^']*/drain.fifo'"
"$MLBENCH" status "${pid_of[drain]}" --json >out 2>err
[ "$(json 'd["runs"][0]["health"]["kind"], d["runs"][0]["health"]["stuck"], d["runs"][0]["picture"]["phase"]')" = "('waiting', True, 'draining')" ] ||
	fail "the document: $(json 'd["runs"][0]["health"]')"
! /usr/bin/python3 -c 'import jsonschema' 2>/dev/null ||
	/usr/bin/python3 -m jsonschema -i out "$ROOT/docs/status.schema.json" || fail "not valid against the schema"
# The alert's metric: of the one that hangs.
if command -v curl >/dev/null; then
	url=$(grep -oE 'http://127.0.0.1:[0-9]+/metrics' drain.err)
	curl -s --max-time 10 "$url" >scraped || fail "no answer from $url"
	grep -qx 'mlbench_run_stuck 1' scraped || fail "the metric: $(grep stuck scraped)"
	grep -qx 'mlbench_run_phase{phase="draining"} 1' scraped || fail "the phase"
fi
hangs setup "waiting: setting up for .* s, and no thread of it runs: [^ ]+ thread ${pid_of[setup]}: sleeping in read of '[^']*/setup.fifo'"
hangs warmup "phase warm-up .*waiting: no progress for .* read: 1 file in flight, .*sleeping in read of '[^']*/warmup.fifo'"
hangs saving "waiting: between repetitions for .* s, and no thread of it runs: .* sleeping in read of '[^']*/saving.fifo'"
hangs report "waiting: reporting for .* s, and no thread of it runs: .* sleeping in read of '[^']*/report.fifo'"
# Let go, they come to their ends.
for name in setup saving report; do
	rm -f now
	printf '%0100d' 0 >"$name.fifo" &
	wait "${pid_of[$name]}"
	case $? in 0 | 3) ;; *) cp "$name.err" err; fail "$name did not end well" ;; esac
	unset "pid_of[$name]"
done
# A ring is not named by whatever has the number of its place among rings.
"$MLBENCH" run tiny.ini $ONE --set measure.duration=60s --set read.engine=io_uring --set inject.read_latency=50s --out ring </dev/null >ring.out 2>ring.err &
pid_of[ring]=$!
until_true shows ring '^ +read +[0-9]+ .*sleeping'
! grep -q /dev/null out || fail "a ring called /dev/null"
