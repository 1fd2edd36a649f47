/* Planted conditions.  Work is stretched by spinning for a multiple of the time it took, waiting
 * by waiting longer; the lock is held for whole items, every 1/share-th ticket, so that one worker
 * alone loses nothing by it.  A hog lives in its own process, so that the job's CPU time and
 * memory do not contain it, as those of another job on the node would not. */
#include "pipelines/injection.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/program.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LEAK_PIECE_BYTES = 256 * 1024,
	LEAK_PIECES_AT_ONCE = 64,
	SLOW_STREAM = 0x510e,
	STREAM_BYTES = 192 << 20, /* beyond any cache of a socket that a process gets to itself */
	LINE_WORDS = 8,
	TIMER_SLACK_NS = 1000, /* the default of 50 us would be added to every wait */
};
static const uint64_t WAIT_SLICE_NS = 50 * NS_PER_MS; /* between looks at the stop flag */
static const uint64_t LEAK_LIMIT_BYTES = 4ULL << 30;

struct piece {
	struct piece *next;
};

/* --- load from outside the job --------------------------------------------------------------- */

/* Ends the hog when its parent does. */
static void hog_follow(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NAME, "mlbench-hog");
	if (getppid() != parent)
		_exit(0);
}

static _Noreturn void hog_burn(void)
{
	for (volatile uint64_t turns = 0;; turns++)
		continue;
}

/* Reads and writes a word of every cache line, over and over: each line moves both ways. */
static _Noreturn void hog_stream(void)
{
	volatile uint64_t *const words = mmap(
		NULL, STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (words == MAP_FAILED)
		_exit(1);
	for (;;)
		for (size_t i = 0; i < STREAM_BYTES / sizeof *words; i += LINE_WORDS)
			words[i]++;
}

static int hogs_start(
	struct hogs *hogs, unsigned wanted, const char *key, void (*work)(void), struct error *err)
{
	const pid_t parent = getpid();
	for (unsigned i = 0; i < wanted; i++) {
		const pid_t child = fork();
		if (child == 0) {
			hog_follow(parent);
			work();
		}
		if (child < 0)
			return error_set_errno(
				err, errno, "cannot start process %u of inject.%s", i + 1, key);
		hogs->pids[hogs->count++] = child;
	}
	return 0;
}

static int hogs_open(struct hogs *hogs, const struct config *config, struct error *err)
{
	const unsigned burning = (unsigned)config_integer(config, KEY_INJECT_CPU_HOG);
	const unsigned streaming = (unsigned)config_integer(config, KEY_INJECT_MEMORY_HOG);
	*hogs = (struct hogs){0};
	if (burning + streaming == 0)
		return 0;
	hogs->pids = calloc(burning + streaming, sizeof *hogs->pids);
	if (!hogs->pids)
		return error_set(err, -ENOMEM, "out of memory");
	const int code = hogs_start(hogs, burning, "cpu_hog", hog_burn, err);
	return code ? code : hogs_start(hogs, streaming, "memory_hog", hog_stream, err);
}

static void hogs_close(struct hogs *hogs)
{
	for (unsigned i = 0; i < hogs->count; i++)
		(void)kill(hogs->pids[i], SIGKILL);
	for (unsigned i = 0; i < hogs->count; i++)
		while (waitpid(hogs->pids[i], NULL, 0) < 0 && errno == EINTR)
			continue;
	free(hogs->pids);
	*hogs = (struct hogs){0};
}

/* --- planting -------------------------------------------------------------------------------- */

/* Of ranks, which have a device each, the last one is the slow one. */
static double injection_slow_device(const struct config *config)
{
	const int64_t ranks = config_integer(config, KEY_RUN_RANKS);
	const bool other = ranks > 1 && program_rank_of(ranks) + 1 != ranks;
	return other ? 1 : config_real(config, KEY_INJECT_SLOW_DEVICE);
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
		.decode_wait_ns = (uint64_t)config_integer(config, KEY_INJECT_DECODE_WAIT),
		.upload_factor = config_real(config, KEY_INJECT_UPLOAD_FACTOR),
		.upload_bytes_per_s = config_real(config, KEY_INJECT_UPLOAD_BANDWIDTH),
		.step_factor = config_real(config, KEY_INJECT_STEP_FACTOR),
		.slow_device = injection_slow_device(config),
		.sync_factor = config_real(config, KEY_INJECT_SYNC_FACTOR),
		.checkpoint_factor = config_real(config, KEY_INJECT_CHECKPOINT_FACTOR),
		.checkpoint_bytes_per_s = config_real(config, KEY_INJECT_CHECKPOINT_BANDWIDTH),
		.step_launch_ns = (uint64_t)config_integer(config, KEY_INJECT_STEP_LAUNCH),
		.span = active_span_of(config),
	};
	in->decode_active =
		in->decode_factor > 1 || in->decode_wait_ns > 0 || in->slow_worker > 1 ||
		in->lock_share > 0 ||
		config_real(config, KEY_OVERHEAD_SAMPLE) * config_real(config, KEY_OVERHEAD_LOCK) >
			0 ||
		(in->slow_share > 0 && in->slow_factor > 1) || in->leak_per_s > 0;
	const int code = timed_lock_open(&in->lock, TIMED_LOCK_LONG);
	if (code)
		return error_set_errno(err, -code, "cannot make a lock");
	return hogs_open(&in->hogs, config, err);
}

void injection_close(struct injection *in)
{
	hogs_close(&in->hogs);
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
static bool injection_holds_lock(const struct injection *in, const struct ticket *ticket)
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
	if (injection_holds_lock(in, ticket)) {
		timed_lock_enter(&in->lock, meter, &now_ns);
		if (!meter)
			now_ns = clock_now_ns();
	}
	return now_ns;
}

static bool injection_is_active(const struct injection *in, uint64_t now_ns)
{
	return active_at(&in->span, now_ns - in->start_ns);
}

static bool injection_is_stopped(const atomic_bool *stop)
{
	return atomic_load_explicit(stop, memory_order_relaxed);
}

static void injection_spin_until(uint64_t until_ns, const atomic_bool *stop)
{
	while (clock_now_ns() < until_ns && !injection_is_stopped(stop))
		continue;
}

/* Without a core, and on time. */
void injection_hold(uint64_t until_ns, const atomic_bool *stop)
{
	static _Thread_local bool is_exact;
	if (!is_exact)
		is_exact = prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0) == 0;
	uint64_t now_ns = clock_now_ns();
	while (now_ns < until_ns && !injection_is_stopped(stop)) {
		const uint64_t slice_ns = now_ns + WAIT_SLICE_NS;
		clock_sleep_until_ns(until_ns < slice_ns ? until_ns : slice_ns);
		now_ns = clock_now_ns();
	}
}

static bool injection_is_slow(const struct injection *in, const struct ticket *ticket)
{
	return in->slow_share > 0 &&
	       (double)(rng_mix(ticket->seed, SLOW_STREAM) >> 11) * 0x1.0p-53 < in->slow_share;
}

static void injection_leak(struct injection *in, uint64_t elapsed_ns)
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

/* How many times as long as it is this item takes. */
static double injection_stretch(
	const struct injection *in, unsigned worker, const struct ticket *ticket)
{
	double times = in->decode_factor;
	if (worker == 0)
		times *= in->slow_worker;
	if (injection_is_slow(in, ticket))
		times *= in->slow_factor;
	return times;
}

void injection_end(struct injection *in, unsigned worker, const struct ticket *ticket,
	struct lock_meter *meter, uint64_t began_ns, uint64_t start_ns, const atomic_bool *stop)
{
	const uint64_t now = clock_now_ns();
	if (injection_is_active(in, began_ns)) {
		const double times = injection_stretch(in, worker, ticket);
		if (times > 1)
			injection_spin_until(
				began_ns + (uint64_t)(times * (double)(now - began_ns)), stop);
		if (in->decode_wait_ns > 0)
			injection_hold(
				clock_now_ns() + (uint64_t)(times * (double)in->decode_wait_ns),
				stop);
	}
	if (injection_holds_lock(in, ticket))
		timed_lock_leave(&in->lock, meter, clock_now_ns());
	if (in->leak_per_s > 0)
		injection_leak(in, now - start_ns);
}

bool injection_slows_copies(const struct injection *in)
{
	return in->upload_factor > 1 || in->upload_bytes_per_s > 0;
}

uint64_t injection_copy_ns(
	const struct injection *in, uint64_t began_ns, uint64_t took_ns, size_t bytes)
{
	if (!injection_slows_copies(in) || !injection_is_active(in, began_ns))
		return took_ns;
	const double took = (double)took_ns;
	const double rate = in->upload_bytes_per_s;
	const double least = rate > 0 ? (double)bytes * (double)NS_PER_S / rate : 0;
	return (uint64_t)(in->upload_factor * (took > least ? took : least));
}

uint64_t injection_checkpoint_ns(
	const struct injection *in, uint64_t began_ns, uint64_t took_ns, uint64_t bytes)
{
	const double rate = in->checkpoint_bytes_per_s;
	if ((in->checkpoint_factor <= 1 && rate <= 0) || !injection_is_active(in, began_ns))
		return took_ns;
	const double least = rate > 0 ? (double)bytes * (double)NS_PER_S / rate : 0;
	return (uint64_t)(in->checkpoint_factor * fmax((double)took_ns, least));
}

uint64_t injection_begin_copy(const struct injection *in)
{
	return injection_slows_copies(in) ? clock_now_ns() : 0;
}

void injection_end_copy(
	const struct injection *in, uint64_t began_ns, size_t bytes, const atomic_bool *stop)
{
	if (began_ns == 0 || !injection_is_active(in, began_ns))
		return;
	const uint64_t took_ns = clock_now_ns() - began_ns;
	injection_spin_until(began_ns + injection_copy_ns(in, began_ns, took_ns, bytes), stop);
}

double injection_begin_step(const struct injection *in, unsigned device, const atomic_bool *stop)
{
	const double factor = in->step_factor * (device == 0 ? in->slow_device : 1);
	if (factor <= 1 && in->step_launch_ns == 0)
		return 1;
	const uint64_t now_ns = clock_now_ns();
	if (!injection_is_active(in, now_ns))
		return 1;
	if (in->step_launch_ns > 0)
		injection_spin_until(now_ns + in->step_launch_ns, stop);
	return factor;
}

double injection_exchange_factor(const struct injection *in)
{
	return in->sync_factor > 1 && injection_is_active(in, clock_now_ns()) ? in->sync_factor : 1;
}

void injection_end_step(double factor, uint64_t began_ns, const atomic_bool *stop)
{
	if (factor > 1)
		injection_spin_until(
			began_ns + (uint64_t)(factor * (double)(clock_now_ns() - began_ns)), stop);
}

/* --- what was planted, in words, for the notes of every result ------------------------------- */

enum planted_unit { PLANTED_FACTOR, PLANTED_SHARE, PLANTED_RATE, PLANTED_DURATION, PLANTED_COUNT };

/* "injected: BEFORE value AFTER (inject.key)", where the value is not the one that plants
 * nothing. */
static const struct planted {
	enum key_id key;
	enum planted_unit unit;
	double nothing;
	const char *before, *after;
} planted[] = {
	{KEY_INJECT_READ_BANDWIDTH, PLANTED_RATE, 0, "reads capped at ", ""},
	{KEY_INJECT_READ_LATENCY, PLANTED_DURATION, 0, "", " more for each file read"},
	{KEY_INJECT_READ_SLOW_SHARE, PLANTED_SHARE, 0, "", " of the files take"},
	{KEY_INJECT_READ_CACHE, PLANTED_SHARE, 0, "a cache for ",
		" of the data in front of that storage"},
	{KEY_INJECT_READ_FACTOR, PLANTED_FACTOR, 1, "storage is ", " times as slow"},
	{KEY_INJECT_DECODE_FACTOR, PLANTED_FACTOR, 1, "decoding takes ", " times as long"},
	{KEY_INJECT_DECODE_WAIT, PLANTED_DURATION, 0, "each sample waits ", " in the decode stage"},
	{KEY_INJECT_SLOW_WORKER, PLANTED_FACTOR, 1, "decode worker 0 takes ", " times as long"},
	{KEY_INJECT_LOCK_SHARE, PLANTED_SHARE, 0, "", " of samples are decoded under one lock"},
	{KEY_INJECT_SLOW_SHARE, PLANTED_SHARE, 0, "", " of samples take"},
	{KEY_INJECT_UPLOAD_BANDWIDTH, PLANTED_RATE, 0, "batches are copied at ", " at most"},
	{KEY_INJECT_UPLOAD_FACTOR, PLANTED_FACTOR, 1, "the copy of a batch takes ",
		" times as long"},
	{KEY_INJECT_STEP_FACTOR, PLANTED_FACTOR, 1, "a step takes its device ", " times as long"},
	{KEY_INJECT_SLOW_DEVICE, PLANTED_FACTOR, 1, "device 0, or the last rank, takes ",
		" times as long to compute a step"},
	{KEY_INJECT_SYNC_FACTOR, PLANTED_FACTOR, 1, "the exchange of gradients takes ",
		" times as long"},
	{KEY_INJECT_CHECKPOINT_BANDWIDTH, PLANTED_RATE, 0, "checkpoints are stored at ",
		" at most"},
	{KEY_INJECT_CHECKPOINT_FACTOR, PLANTED_FACTOR, 1, "storing a checkpoint takes ",
		" times as long"},
	{KEY_INJECT_STEP_LAUNCH, PLANTED_DURATION, 0, "",
		" of CPU time before the device begins a step"},
	{KEY_INJECT_LEAK, PLANTED_RATE, 0, "decoding leaks ", ""},
	{KEY_INJECT_CPU_HOG, PLANTED_COUNT, 0, "", " busy processes outside the job"},
	{KEY_INJECT_MEMORY_HOG, PLANTED_COUNT, 0, "",
		" processes outside the job stream through memory"},
	{KEY_INJECT_CPUS, PLANTED_COUNT, 0, "readers and decode workers are held on the first ",
		" of the cores"},
	{KEY_INJECT_BEGIN, PLANTED_SHARE, 0, "slow-downs begin after ", " of the planned time"},
	{KEY_INJECT_END, PLANTED_SHARE, 1, "slow-downs end after ", " of the planned time"},
};

static const char *planted_value(enum planted_unit unit, double value, char text[UNITS_BYTES])
{
	switch (unit) {
	case PLANTED_RATE:
		return units_format_rate(value, text);
	case PLANTED_DURATION:
		return units_format_duration(value, text);
	case PLANTED_SHARE:
		(void)snprintf(text, UNITS_BYTES, "%s %%", UNITS_PLAIN(value * 100, 3));
		break;
	case PLANTED_FACTOR:
	case PLANTED_COUNT:
		(void)snprintf(text, UNITS_BYTES, "%s", UNITS_PLAIN(value, 3));
		break;
	}
	return text;
}

void injection_announce(const struct config *config, struct measurement *m)
{
	for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
		const struct planted *const p = &planted[i];
		const double value = config_real(config, p->key);
		char text[UNITS_BYTES];
		if (value == p->nothing)
			continue;
		char longer[UNITS_BYTES] = "";
		char more[UNITS_BYTES];
		if (p->key == KEY_INJECT_SLOW_SHARE)
			(void)snprintf(longer, sizeof longer, " %s times as long",
				UNITS_PLAIN(config_real(config, KEY_INJECT_SLOW_FACTOR), 3));
		if (p->key == KEY_INJECT_READ_SLOW_SHARE)
			(void)snprintf(longer, sizeof longer, " %.20s longer",
				units_format_duration(
					config_real(config, KEY_INJECT_READ_SLOW_LATENCY), more));
		measurement_note(m, "injected: %s%s%s%s (inject.%s)", p->before,
			planted_value(p->unit, value, text), p->after, longer,
			config_keys[p->key].name);
	}
}
