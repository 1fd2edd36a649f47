/* Planted conditions.  Work is stretched by spinning for a multiple of the time it took; the lock is
 * held for whole items, every 1/share-th ticket, so that one worker alone loses nothing by it. */
#include "pipelines/injection.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEAK_PIECE_BYTES = 256 * 1024, LEAK_PIECES_AT_ONCE = 64, SLOW_STREAM = 0x510e };
static const uint64_t LEAK_LIMIT_BYTES = 4ULL << 30;

struct piece {
	struct piece *next;
};

/* Burns CPU time until the parent ends or kills it. */
static _Noreturn void hog(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NAME, "mlbench-hog");
	if (getppid() != parent)
		_exit(0);
	for (volatile uint64_t turns = 0;; turns++)
		continue;
}

static int start_hogs(struct injection *in, unsigned count, struct error *err)
{
	const pid_t parent = getpid();
	in->hogs = calloc(count, sizeof *in->hogs);
	if (!in->hogs)
		return error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < count; i++) {
		const pid_t child = fork();
		if (child == 0)
			hog(parent);
		if (child < 0)
			return error_set_errno(
				err, errno, "cannot start process %u of inject.cpu_hog", i + 1);
		in->hogs[in->hog_count++] = child;
	}
	return 0;
}

int injection_open(struct injection *in, const struct config *config, struct error *err)
{
	*in = (struct injection){
		.decode_factor = config_real(config, KEY_INJECT_DECODE_FACTOR),
		.slow_worker = config_real(config, KEY_INJECT_SLOW_WORKER),
		.lock_share = config_real(config, KEY_INJECT_LOCK_SHARE),
		.slow_share = config_real(config, KEY_INJECT_SLOW_SHARE),
		.slow_factor = config_real(config, KEY_INJECT_SLOW_FACTOR),
		.leak_per_s = (uint64_t)config_integer(config, KEY_INJECT_LEAK),
	};
	in->decode_active = in->decode_factor > 1 || in->slow_worker > 1 || in->lock_share > 0 ||
			    (in->slow_share > 0 && in->slow_factor > 1) || in->leak_per_s > 0;
	const int code = timed_lock_open(&in->lock, TIMED_LOCK_LONG);
	if (code)
		return error_set_errno(err, -code, "cannot make a lock");
	const unsigned hogs = (unsigned)config_integer(config, KEY_INJECT_CPU_HOG);
	return hogs > 0 ? start_hogs(in, hogs, err) : 0;
}

void injection_close(struct injection *in)
{
	for (unsigned i = 0; i < in->hog_count; i++)
		(void)kill(in->hogs[i], SIGKILL);
	for (unsigned i = 0; i < in->hog_count; i++)
		while (waitpid(in->hogs[i], NULL, 0) < 0 && errno == EINTR)
			continue;
	free(in->hogs);
	struct piece *piece = in->leaked;
	while (piece) {
		struct piece *const next = piece->next;
		(void)munmap(piece, LEAK_PIECE_BYTES);
		piece = next;
	}
	timed_lock_close(&in->lock);
	*in = (struct injection){0};
}

/* Evenly spread over tickets: item t when the running sum of shares passes a whole number. */
static bool holds_lock(const struct injection *in, const struct ticket *ticket)
{
	if (in->lock_share <= 0)
		return false;
	const double t = (double)ticket->number;
	return (uint64_t)((t + 1) * in->lock_share) != (uint64_t)(t * in->lock_share);
}

uint64_t injection_begin(
	struct injection *in, const struct ticket *ticket, struct lock_meter *meter)
{
	uint64_t now_ns = clock_now_ns();
	if (holds_lock(in, ticket)) {
		timed_lock_enter(&in->lock, meter, &now_ns);
		if (!meter)
			now_ns = clock_now_ns();
	}
	return now_ns;
}

static bool is_slow(const struct injection *in, const struct ticket *ticket)
{
	return in->slow_share > 0 &&
	       (double)(rng_mix(ticket->seed, SLOW_STREAM) >> 11) * 0x1.0p-53 < in->slow_share;
}

static void leak(struct injection *in, uint64_t elapsed_ns)
{
	const double due = (double)in->leak_per_s * (double)elapsed_ns / (double)NS_PER_S;
	const uint64_t owed = due < (double)LEAK_LIMIT_BYTES ? (uint64_t)due : LEAK_LIMIT_BYTES;
	if (atomic_exchange_explicit(&in->leaking, true, memory_order_acquire))
		return;
	for (int i = 0; i < LEAK_PIECES_AT_ONCE && in->leaked_bytes + LEAK_PIECE_BYTES <= owed;
		i++) {
		struct piece *piece = mmap(NULL, LEAK_PIECE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (piece == MAP_FAILED)
			break;
		memset(piece, 1, LEAK_PIECE_BYTES);
		piece->next = in->leaked;
		in->leaked = piece;
		in->leaked_bytes += LEAK_PIECE_BYTES;
		memory_account_add(LEAK_PIECE_BYTES);
	}
	atomic_store_explicit(&in->leaking, false, memory_order_release);
}

void injection_end(struct injection *in, unsigned worker, const struct ticket *ticket,
	struct lock_meter *meter, uint64_t began_ns, uint64_t start_ns, const atomic_bool *stop)
{
	const uint64_t now = clock_now_ns();
	double times = in->decode_factor;
	if (worker == 0)
		times *= in->slow_worker;
	if (is_slow(in, ticket))
		times *= in->slow_factor;
	const uint64_t until = now + (uint64_t)((times - 1) * (double)(now - began_ns));
	while (times > 1 && clock_now_ns() < until &&
		!atomic_load_explicit(stop, memory_order_relaxed))
		continue;
	if (holds_lock(in, ticket))
		timed_lock_leave(&in->lock, meter, clock_now_ns());
	if (in->leak_per_s > 0)
		leak(in, now - start_ns);
}

static void announce_reading(const struct config *config, struct measurement *m)
{
	char text[UNITS_BYTES];
	const int64_t bandwidth = config_integer(config, KEY_INJECT_READ_BANDWIDTH);
	const int64_t latency = config_integer(config, KEY_INJECT_READ_LATENCY);
	if (bandwidth > 0)
		measurement_note(m, "injected: reads capped at %s (inject.read_bandwidth)",
			units_format_rate((double)bandwidth, text));
	if (latency > 0)
		measurement_note(m, "injected: %s more for each file read (inject.read_latency)",
			units_format_duration((double)latency, text));
}

void injection_announce(const struct config *config, struct measurement *m)
{
	char text[UNITS_BYTES];
	const double decode_factor = config_real(config, KEY_INJECT_DECODE_FACTOR);
	const double slow_worker = config_real(config, KEY_INJECT_SLOW_WORKER);
	const double lock_share = config_real(config, KEY_INJECT_LOCK_SHARE);
	const double slow_share = config_real(config, KEY_INJECT_SLOW_SHARE);
	const int64_t leak_per_s = config_integer(config, KEY_INJECT_LEAK);
	const int64_t hogs = config_integer(config, KEY_INJECT_CPU_HOG);
	announce_reading(config, m);
	if (decode_factor > 1)
		measurement_note(m,
			"injected: decoding takes %.3g times as long (inject.decode_factor)",
			decode_factor);
	if (slow_worker > 1)
		measurement_note(m,
			"injected: decode worker 0 takes %.3g times as long (inject.slow_worker)",
			slow_worker);
	if (lock_share > 0)
		measurement_note(m,
			"injected: %.3g %% of samples are decoded under one lock (inject.lock_share)",
			lock_share * 100);
	if (slow_share > 0)
		measurement_note(m,
			"injected: %.3g %% of samples take %.3g times as long (inject.slow_share)",
			slow_share * 100, config_real(config, KEY_INJECT_SLOW_FACTOR));
	if (leak_per_s > 0)
		measurement_note(m, "injected: decoding leaks %s (inject.leak)",
			units_format_rate((double)leak_per_s, text));
	if (hogs > 0)
		measurement_note(m,
			"injected: %lld busy processes outside the job (inject.cpu_hog)",
			(long long)hogs);
}
