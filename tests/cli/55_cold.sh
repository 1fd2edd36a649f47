# read.cache = cold: said in the verdict's own line where it did not last, an error for accept, refused where nothing can be evicted;
# and what looking at the page cache costs where an open takes long.
. "$CLI/lib.sh"
write_config

# A memory file system: refused before anything runs, by check as well, with what to do.
if [ -w /dev/shm ] && [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
	shm=$(mktemp -d /dev/shm/mlbench-cold-XXXXXX)
	trap 'rm -rf "$shm"' EXIT
	expect 0 "$MLBENCH" gen tiny.ini --set dataset.path="$shm/data"
	for command in check "run --out shm"; do
		expect 3 "$MLBENCH" $command tiny.ini $ONE --set dataset.path="$shm/data" --set read.cache=cold
		says "a memory file system cannot be evicted"
		says "set read.cache = as-is"
		! grep -q "another process" err || fail "it blames another process"
	done
	[ ! -e shm ] || fail "it made results"
fi
[ "$(stat -f -c %T .)" != tmpfs ] || skip "the rest needs a file system that is not in memory"

# Five epochs, of which the first was cold.
cold=($ONE --set read.cache=cold --set measure.warmup=0 --set measure.repeats=1)
expect 0 "$MLBENCH" gen tiny.ini
expect_measured "$MLBENCH" run tiny.ini "${cold[@]}" --set measure.epochs=5 --out five
reads "But read.cache = cold ended with the first epoch, "
expect 0 "$MLBENCH" show five --json
json 'd["points"][0]["cold_ended"]' | grep -qE '(% of the measured samples|before the measurement); ' || fail "the record does not say how long it was cold"
# A file system that counts what it fetches: four of five epochs or more, whose files are smaller than a page.
[ "$(json 'd["points"][0]["page_cache_share"] is None or d["points"][0]["page_cache_share"] > 0.7')" = True ] ||
	fail "share of the page cache: $(json 'd["points"][0]["page_cache_share"]')"
grep -q "cold ended with the first epoch" five/report.html || fail "the page does not say it"
# One epoch is cold.
expect_measured "$MLBENCH" run tiny.ini "${cold[@]}" --set measure.epochs=1 --json --out one
[ "$(json '"cold_ended" in d["points"][0]')" = False ] || fail "one epoch is not held to be cold"
# Past the page cache nothing fills it.
expect_measured "$MLBENCH" run tiny.ini "${cold[@]}" --set measure.epochs=5 --set read.direct=on --json --out direct
grep -q "refuses O_DIRECT" out || [ "$(json '"cold_ended" in d["points"][0]')" = False ] || fail "direct reads are not held to be cold"

# accept does not judge what was not measured as asked.
cat >plan.ini <<'INI'
[job]
kind = pipeline
tier = quick
budget = 5min
config = tiny.ini
set.decode.workers = 1
set.batch.size = 8
set.read.cache = cold
set.measure.warmup = 0
set.measure.epochs = 5
throughput >= 1 samples/s
INI
expect 3 "$MLBENCH" accept plan.ini --tier quick --budget 30min --json
[ "$(json 'd["checks"][0]["verdict"]')" = ERROR ] || fail "a check that asked for cold gave $(json 'd["checks"][0]["verdict"]')"
grep -q "cold ended with the first epoch" out || fail "accept does not say why"

# An open takes 20 ms, as on a distant server.  As it is: no more files are asked than threads that ask.
cat >slow_open.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
int openat(int folder, const char *path, int flags, ...)
{
	static int (*next)(int, const char *, int, int);
	const struct timespec wait = {.tv_nsec = 20000000};
	va_list rest;
	va_start(rest, flags);
	const int mode = va_arg(rest, int);
	va_end(rest);
	if (!next)
		next = (int (*)(int, const char *, int, int))dlsym(RTLD_NEXT, "openat");
	if (strstr(path, ".ppm"))
		nanosleep(&wait, NULL);
	return next(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));
C
gcc -shared -fPIC -o slow_open.so slow_open.c -ldl || fail "slow_open does not build"
slow=(env LD_PRELOAD="$PWD/slow_open.so" "$MLBENCH")
"${slow[@]}" --version >out 2>err || skip "this build takes no other library in front of it"
many=($ONE --set dataset.path=many --set dataset.samples=2048 --set read.engine=pread)
expect 0 "$MLBENCH" gen tiny.ini "${many[@]}"
expect_measured "${slow[@]}" run tiny.ini "${many[@]}" --set measure.repeats=1 --json --out asked
asked=$(json '[n for n in d["points"][0]["notes"] if n.startswith("page cache before: ")][0].split()[3]')
[ "$asked" -ge 1 ] && [ "$asked" -le 64 ] || fail "$asked of 2048 files were asked before a repetition"
# Cold asks each of them, 64 at a time: 0.64 s for each repetition, which the estimate counts.
seconds() {
	expect 0 "${slow[@]}" check tiny.ini "${many[@]}" --set measure.repeats=10 --set "read.cache=$1" --json
	json 'd["seconds"]'
}
as_is=$(seconds as-is) cold=$(seconds cold)
python3 -c 'import sys; sys.exit(not float(sys.argv[2]) - float(sys.argv[1]) > 6)' "$as_is" "$cold" ||
	fail "check expects $as_is s as it is, and $cold s with an eviction of 0.64 s before each of 10 repetitions"
