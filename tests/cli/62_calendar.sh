# The calendar is set by an hour to and fro while a run goes on: its durations are those of the monotonic clock.
. "$CLI/lib.sh"
cat >stepped.c <<'C'
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* Every second look at the calendar is an hour ahead. */
static atomic_uint looks;
int clock_gettime(clockid_t clock, struct timespec *out)
{
	const long code = syscall(SYS_clock_gettime, clock, out);
	if (clock == CLOCK_REALTIME && atomic_fetch_add(&looks, 1) % 2 == 0)
		out->tv_sec += 3600;
	return (int)code;
}
int gettimeofday(struct timeval *out, void *zone)
{
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	out->tv_sec = now.tv_sec;
	out->tv_usec = now.tv_nsec / 1000;
	return 0;
}
time_t time(time_t *out)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}
C
"${CC:-gcc}" -shared -fPIC -o stepped.so stepped.c 2>err || skip "no compiler for the clock that is set"
LD_PRELOAD=$PWD/stepped.so "$MLBENCH" --version >out 2>err || skip "this build cannot be given another clock"
write_config
expect 0 "$MLBENCH" gen tiny.ini
expect_measured env LD_PRELOAD="$PWD/stepped.so" "$MLBENCH" sweep tiny.ini --out run
python3 - <<'PY' || fail "a duration is not of the monotonic clock"
import json
rows = [json.loads(line) for line in open("run/points.jsonl")]
began, ended = rows[0]["started"], rows[-1]["finished"]
assert rows[-1]["kind"] == "end", rows[-1]
assert 0 <= ended - began < 1800, (began, ended)
last = began
for row in rows[1:-1]:
    assert row["kind"] == "repetition" and 0 < row["wall_seconds"] < 1800, row["wall_seconds"]
    assert last <= row["started"] <= ended, (last, row["started"], ended)
    last = row["started"]
PY
# A sequential sweep has ended where its last line says so, whatever the times in it.
cp -r run sequential
python3 - <<'PY'
import json
lines = open("sequential/points.jsonl").read().splitlines()
head, end = json.loads(lines[0]), json.loads(lines[-1])
head["resolved"] = head["resolved"].replace("[sweep]", "[sweep]\nmode = sequential") if "mode = grid" not in head["resolved"] else head["resolved"].replace("mode = grid", "mode = sequential")
end["finished"] = head["started"] + 0.001
open("sequential/points.jsonl", "w").write("\n".join([json.dumps(head)] + lines[1:-1] + [json.dumps(end)]) + "\n")
PY
expect_measured "$MLBENCH" show sequential --json
[ "$(json 'd["status"]')" = complete ] || fail "it has not ended: $(json 'd["status"]')"
