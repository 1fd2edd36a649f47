# A fault in what writes or prints the report takes nothing of what was measured: the record stands before it is reached.
# The fault is a library in which giving a file its final name, or printing, ends the process.
. "$CLI/lib.sh"
case "$MLBENCH" in */release/*) ;; *) skip "the library with the fault goes before a sanitizer's" ;; esac
cat >crash.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int rename(const char *from, const char *to)
{
	if (strstr(to, getenv("CRASH_AT")))
		raise(SIGSEGV);
	return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
ssize_t write(int fd, const void *bytes, size_t size)
{
	if (fd == STDOUT_FILENO && strcmp(getenv("CRASH_AT"), "printing") == 0)
		raise(SIGSEGV);
	return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, bytes, size);
}
C
"${CC:-gcc}" -shared -fPIC -O1 -o crash.so crash.c -ldl 2>compiled || skip "no compiler: $(head -n 1 compiled)"
write_config
expect 0 "$MLBENCH" gen tiny.ini
for at in summary.json points.csv report.html printing; do
	rm -rf left
	CRASH_AT=$at LD_PRELOAD=$PWD/crash.so "$MLBENCH" run tiny.ini $ONE --set measure.repeats=2 --out left >out 2>err
	status=$?
	[ $status -eq $((128 + 11)) ] || fail "at $at it did not crash: exit status $status"
	repetitions left 2 || fail "after a crash at $at, not both repetitions are there"
	"$MLBENCH" show left >out 2>err || [ $? -eq 3 ] || fail "after a crash at $at, its result cannot be shown: $(cat err)"
	prints "samples/s"
	# What the crash kept from being written is made from the record; nothing is measured again.
	expect_measured "$MLBENCH" run --resume left
	! repetitions left 3 || fail "after a crash at $at, something was measured again"
	for file in summary.json points.csv report.html; do
		[ -s "left/$file" ] || fail "after a crash at $at, --resume leaves no $file"
	done
done
