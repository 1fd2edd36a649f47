# --follow on a store with one place, planted from outside: reads are served one after the other, 20 ms each, however many
# are asked for at once.  What it recommends may come true or not; what it says of that must.
# measuring
. "$CLI/lib.sh"
write_config
"${CC:-gcc}" -shared -fPIC -o one_place.so -x c - -ldl 2>/dev/null <<'C' || skip "no compiler for the plant"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t free_at; /* when the one place is, ns */

static void serve(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	const int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	int64_t was = atomic_load(&free_at);
	int64_t done;
	do
		done = (was > now ? was : now) + 20000000;
	while (!atomic_compare_exchange_weak(&free_at, &was, done));
	t = (struct timespec){done / 1000000000, done % 1000000000};
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t at)
{
	ssize_t (*next)(int, void *, size_t, off_t) =
		(ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
	serve();
	return next(fd, bytes, size, at);
}

ssize_t pread64(int fd, void *bytes, size_t size, off_t at)
{
	return pread(fd, bytes, size, at);
}
C
plant=(--set decode.workers=1 --set batch.size=4 --set step.time=30ms --set read.engine=pread --set read.depth=1
	--set measure.duration=6s --set measure.warmup=500ms --set measure.window=100ms --set measure.repeats=1)
LD_PRELOAD=$PWD/one_place.so "$MLBENCH" diagnose tiny.ini "${plant[@]}" --follow=3 --json --out followed >out 2>err
status=$?
is_json mlbench.diagnosis/1
python3 - "$status" <<'PY' || fail "what --follow says of its advice"
import json, sys
follow = json.load(open("out"))["follow"]
steps = follow["steps"]
failed = [s for s in steps if s["outcome"] == "failed"]
assert follow["failed"] == len(failed), follow
assert int(sys.argv[1]) in ((1,) if failed else (0, 3)), (sys.argv[1], follow)
assert len({s["set"] for s in steps}) == len(steps), "advice was given twice"
before = steps[0]["measured"]
for s in steps[1:]:
    if s["measured"] is not None and s["predicted"] > 3 * before and s["measured"] < 1.2 * before:
        assert s["outcome"] == "failed" and not s["kept"], s
    before = s["measured"] if s["kept"] else before
# 20 ms a read, and two reads at most in each sample: no setting goes beyond what the place serves.
assert before < 55, before
PY
[ ! -e followed/trials.json ] || python3 -m json.tool followed/trials.json >/dev/null || fail "trials.json is torn"
LD_PRELOAD='' "$MLBENCH" diagnose followed >out 2>err
status=$?
[ $status -eq 0 ] || [ $status -eq 3 ] || fail "exit $status for the saved result"
