/* Meters of threads. */
#include "harness/measure/thread_meter.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/measure/proc_text.h"
#include "harness/measure/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- locks that are timed --------------------------------------------------------------------- */

int timed_lock_open(struct timed_lock *lock, enum timed_lock_kind kind)
{
	pthread_mutexattr_t attributes;
	int code = pthread_mutexattr_init(&attributes);
	if (code)
		return -code;
	(void)pthread_mutexattr_settype(&attributes,
		kind == TIMED_LOCK_SHORT ? PTHREAD_MUTEX_ADAPTIVE_NP : PTHREAD_MUTEX_NORMAL);
	code = pthread_mutex_init(&lock->mutex, &attributes);
	(void)pthread_mutexattr_destroy(&attributes);
	return -code;
}

void timed_lock_close(struct timed_lock *lock)
{
	(void)pthread_mutex_destroy(&lock->mutex);
}

void timed_lock_wait(struct timed_lock *lock, struct lock_meter *meter, uint64_t *now_ns)
{
	if (!meter) {
		(void)pthread_mutex_lock(&lock->mutex);
		return;
	}
	const int64_t before = atomic_load_explicit(&meter->wait_ns, memory_order_relaxed) -
			       (int64_t)clock_now_ns();
	atomic_store_explicit(&meter->wait_ns, before, memory_order_relaxed);
	(void)pthread_mutex_lock(&lock->mutex);
	const uint64_t ended_ns = clock_now_ns();
	atomic_store_explicit(&meter->wait_ns, before + (int64_t)ended_ns, memory_order_relaxed);
	atomic_store_explicit(&meter->waits,
		atomic_load_explicit(&meter->waits, memory_order_relaxed) + 1,
		memory_order_relaxed);
	if (*now_ns > 0)
		*now_ns = ended_ns;
}

/* --- service times by segment ----------------------------------------------------------------- */

int service_log_open(struct service_log *log, unsigned segments)
{
	*log = (struct service_log){.segments = segments};
	log->histograms = memory_touched(segments, sizeof *log->histograms);
	return log->histograms ? 0 : -ENOMEM;
}

void service_log_close(struct service_log *log)
{
	free(log->histograms);
	*log = (struct service_log){0};
}

void service_log_start(struct service_log *log, uint64_t start_ns, uint64_t length_ns)
{
	log->start_ns = start_ns;
	log->length_ns = length_ns;
	log->end_ns = start_ns + length_ns;
	log->current = 0;
}

/* Two old segments become one; the upper half is empty again. */
static void halve(struct service_log *log)
{
	const unsigned half = log->segments / 2;
	for (unsigned i = 0; i < half; i++) {
		if (i > 0)
			log->histograms[i] = log->histograms[2 * i];
		histogram_merge(&log->histograms[i], &log->histograms[2 * i + 1]);
	}
	memset(&log->histograms[half], 0, half * sizeof *log->histograms);
	log->length_ns *= 2;
}

void service_log_advance(struct service_log *log, uint64_t now_ns)
{
	while (now_ns - log->start_ns >= log->segments * log->length_ns)
		halve(log);
	log->current = (unsigned)((now_ns - log->start_ns) / log->length_ns);
	log->end_ns = log->start_ns + (log->current + 1) * log->length_ns;
}

void service_log_merge(
	const struct service_log *log, uint64_t cut_ns, uint64_t end_ns, struct histogram *to)
{
	if (log->length_ns == 0)
		return; /* never started */
	const uint64_t first = (cut_ns + log->length_ns - 1) / log->length_ns;
	for (uint64_t i = first; i < log->segments && i * log->length_ns < end_ns; i++)
		histogram_merge(to, &log->histograms[i]);
}

/* --- service times in sequence ---------------------------------------------------------------- */

uint32_t trace_log_room(unsigned workers)
{
	const uint32_t share = TRACE_ROOM_STAGE / (workers > 0 ? workers : 1);
	return share > TRACE_ROOM_LEAST ? share : TRACE_ROOM_LEAST;
}

int trace_log_open(struct trace_log *log, uint32_t room)
{
	*log = (struct trace_log){.limit = UINT64_MAX, .room = room};
	log->entries = memory_touched(room, sizeof *log->entries);
	return log->entries ? 0 : -ENOMEM;
}

void trace_log_close(struct trace_log *log)
{
	free(log->entries);
	*log = (struct trace_log){0};
}

/* One block has at most TRACE_BLOCK entries, and the last limit of all keeps one block. */
void trace_log_thin(struct trace_log *log)
{
	while (log->count == log->room) {
		uint32_t kept = 0;
		log->limit /= 2;
		for (uint32_t i = 0; i < log->count; i++)
			if (trace_log_keeps(log->limit, log->entries[i].number))
				log->entries[kept++] = log->entries[i];
		log->count = kept;
	}
}

static bool wanted(
	const struct trace_source *source, uint64_t limit, const struct trace_entry *entry)
{
	return entry->end_ns >= source->begin_ns && entry->end_ns <= source->end_ns &&
	       trace_log_keeps(limit, entry->number);
}

static size_t count_wanted(const struct trace_source *source, uint64_t limit)
{
	size_t count = 0;
	for (unsigned i = 0; i < source->count; i++)
		for (uint32_t k = 0; source->logs[i] && k < source->logs[i]->count; k++)
			count += wanted(source, limit, &source->logs[i]->entries[k]);
	return count;
}

/* What every thread has kept. */
static uint64_t common_limit(const struct trace_source *source)
{
	uint64_t limit = UINT64_MAX;
	for (unsigned i = 0; i < source->count; i++)
		if (source->logs[i] && source->logs[i]->room > 0 && source->logs[i]->limit < limit)
			limit = source->logs[i]->limit;
	return limit;
}

/* The largest, to a thousandth, at which the trace is small enough to be saved. */
static uint64_t saved_limit(const struct trace_source *source)
{
	uint64_t high = common_limit(source);
	if (count_wanted(source, high) <= TRACE_ITEMS_MAX)
		return high;
	uint64_t low = 0;
	for (uint64_t step = high / 1024; high - low > step;) {
		const uint64_t middle = low + (high - low) / 2;
		if (count_wanted(source, middle) <= TRACE_ITEMS_MAX)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static struct trace_item item_of(
	const struct trace_source *source, const struct trace_entry *entry, unsigned worker)
{
	struct trace_item item = {
		.number = entry->number,
		.end_s = (double)(entry->end_ns - source->start_ns) / 1e9,
		.worker = worker,
		.sample = entry->sample,
		.service_ns = entry->service_ns,
		.open_ns = NAN,
		.lock_wait_ns = NAN,
		.lock_hold_ns = NAN,
		.host_ns = NAN,
	};
	switch (source->kind) {
	case TRACE_READ:
		item.bytes = entry->read.bytes;
		item.in_flight = entry->read.in_flight;
		if (entry->read.open > 0)
			item.open_ns = entry->service_ns * (float)entry->read.open /
				       (float)TRACE_OPEN_WHOLE;
		break;
	case TRACE_DECODE:
		item.lock_wait_ns = entry->decode.lock_wait_ns;
		item.lock_hold_ns = entry->decode.lock_hold_ns;
		break;
	case TRACE_BATCH:
		item.host_ns = entry->host_ns;
		break;
	}
	return item;
}

static int by_item_number(const void *a, const void *b)
{
	const uint64_t x = ((const struct trace_item *)a)->number;
	const uint64_t y = ((const struct trace_item *)b)->number;
	return x < y ? -1 : x > y;
}

int trace_gather(struct trace *trace, const struct trace_source *source)
{
	*trace = (struct trace){.block = TRACE_BLOCK};
	(void)snprintf(trace->stage, sizeof trace->stage, "%s", source->stage);
	const uint64_t limit = saved_limit(source);
	const size_t count = count_wanted(source, limit);
	trace->items = calloc(count > 0 ? count : 1, sizeof *trace->items);
	if (!trace->items)
		return -ENOMEM;
	for (unsigned i = 0; i < source->count; i++) {
		const struct trace_log *log = source->logs[i];
		for (uint32_t k = 0; log && k < log->count; k++)
			if (wanted(source, limit, &log->entries[k]))
				trace->items[trace->count++] = item_of(source, &log->entries[k], i);
	}
	qsort(trace->items, trace->count, sizeof *trace->items, by_item_number);
	return 0;
}

/* --- what one thread is metered by ------------------------------------------------------------ */

struct thread_meter *thread_meters_open(unsigned count, unsigned segments)
{
	struct thread_meter *meters =
		aligned_alloc(_Alignof(struct thread_meter), count * sizeof *meters);
	if (!meters)
		return NULL;
	memset(meters, 0, count * sizeof *meters);
	for (unsigned i = 0; i < count; i++) {
		atomic_init(&meters[i].schedstat, -1);
		atomic_init(&meters[i].io_delay, -1);
	}
	for (unsigned i = 0; i < count; i++) {
		if (service_log_open(&meters[i].service, segments) ||
			trace_log_open(&meters[i].trace, trace_log_room(count))) {
			thread_meters_close(meters, count);
			return NULL;
		}
	}
	return meters;
}

int thread_meters_add_devices(struct thread_meter *meters, unsigned count)
{
	int code = 0;
	for (unsigned i = 0; i < count && !code; i++)
		code = trace_log_open(&meters[i].device, trace_log_room(count));
	return code;
}

int thread_meters_add_ramps(struct thread_meter *meters, unsigned count)
{
	int code = 0;
	for (unsigned i = 0; i < count && !code; i++)
		code = trace_log_open(&meters[i].ramp, TRACE_RAMP_FILES_MAX);
	return code;
}

static void close_file(const atomic_int *file)
{
	const int fd = atomic_load(file);
	if (fd >= 0)
		(void)close(fd);
}

void thread_meters_close(struct thread_meter *meters, unsigned count)
{
	if (!meters)
		return;
	for (unsigned i = 0; i < count; i++) {
		close_file(&meters[i].schedstat);
		close_file(&meters[i].io_delay);
		service_log_close(&meters[i].service);
		trace_log_close(&meters[i].trace);
		trace_log_close(&meters[i].device);
		trace_log_close(&meters[i].ramp);
	}
	free(meters);
}

void thread_meter_attach(struct thread_meter *meter)
{
	atomic_store(&meter->tid, (int)gettid());
	if (sched_getaffinity(0, sizeof meter->cores, &meter->cores) != 0)
		CPU_ZERO(&meter->cores);
	atomic_store(&meter->schedstat, open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
	if (!io_delay_unavailable())
		atomic_store(&meter->io_delay, io_delay_open());
	timeline_use(meter->clock.timeline);
}

void thread_meter_start(
	struct thread_meter *meter, enum thread_state state, uint64_t start_ns, uint64_t segment_ns)
{
	service_log_start(&meter->service, start_ns, segment_ns);
	state_clock_start(&meter->clock, state, start_ns);
	memory_account_use(&meter->allocated);
}

static bool parse_schedstat(int fd, uint64_t *cpu_ns, uint64_t *run_queue_ns)
{
	char text[96];
	const ssize_t size = pread(fd, text, sizeof text - 1, 0);
	if (size <= 0)
		return false;
	text[size] = '\0';
	char *end;
	*cpu_ns = strtoull(text, &end, 10);
	*run_queue_ns = strtoull(end, NULL, 10);
	return true;
}

static bool read_schedstat(struct thread_meter *meter)
{
	const int fd = atomic_load(&meter->schedstat);
	uint64_t cpu_ns;
	uint64_t run_queue_ns;
	if (fd < 0)
		return false;
	if (!parse_schedstat(fd, &cpu_ns, &run_queue_ns))
		return atomic_load(&meter->cpu_ns) > 0; /* it has ended: what was read last holds */
	atomic_store(&meter->cpu_ns, cpu_ns);
	atomic_store(&meter->run_queue_ns, run_queue_ns);
	return true;
}

static void read_io_delay(struct thread_meter *meter)
{
	const int fd = atomic_load(&meter->io_delay);
	uint64_t ns;
	if (fd >= 0 && io_delay_read(fd, &ns))
		atomic_store(&meter->io_wait_ns, ns);
}

void thread_meter_detach(struct thread_meter *meter)
{
	timeline_use(NULL);
	memory_account_use(NULL);
	(void)read_schedstat(meter);
	read_io_delay(meter);
}

/* --- threads of two stages -------------------------------------------------------------------- */

void thread_meter_start_part(struct thread_meter *meter, struct thread_meter *part)
{
	enum thread_state state;
	const uint64_t start_ns = state_clock_look(&meter->clock, &state);
	service_log_start(&part->service, start_ns, meter->service.length_ns);
	state_clock_start(&part->clock, state, start_ns);
	atomic_store(&part->tid, atomic_load(&meter->tid));
	part->cores = meter->cores;
	atomic_store(&part->whole, meter);
	atomic_store(&meter->part, part);
}

/* How long the thread waited for a core since this was asked last; 0 where nothing long has passed since. */
static uint64_t part_queued(struct thread_meter *part, uint64_t took_ns)
{
	const struct thread_meter *const whole = atomic_load(&part->whole);
	const int fd = atomic_load(&whole->schedstat);
	uint64_t cpu_ns; /* that of the last tick: its own clock has it exactly */
	uint64_t queue_ns;
	if (took_ns < PART_LONG_NS || fd < 0 || !parse_schedstat(fd, &cpu_ns, &queue_ns))
		return 0;
	const uint64_t more_ns = queue_ns - part->seen_queue_ns;
	part->seen_queue_ns = queue_ns;
	return more_ns;
}

static void part_add_cpu(struct thread_meter *part, uint64_t ns)
{
	atomic_store_explicit(&part->cpu_ns,
		atomic_load_explicit(&part->cpu_ns, memory_order_relaxed) + ns,
		memory_order_relaxed);
}

/* Of a piece that is over: how long of it the thread waited for a core. */
static uint64_t part_add_queue(struct thread_meter *part, uint64_t took_ns)
{
	const uint64_t queued_ns = part_queued(part, took_ns);
	if (queued_ns > 0)
		atomic_fetch_add(&part->run_queue_ns, queued_ns);
	return queued_ns < took_ns ? queued_ns : took_ns;
}

static bool piece_is_looked_at(const struct thread_meter *part)
{
	return part->pieces % PART_LOOKED_AT == PART_LOOKED_AT / 2;
}

void thread_meter_begin_piece(struct thread_meter *part)
{
	if (piece_is_looked_at(part))
		part->piece_cpu_ns = clock_thread_cpu_ns();
}

uint64_t thread_meter_end_piece(struct thread_meter *part, uint64_t took_ns)
{
	if (piece_is_looked_at(part))
		part_add_cpu(part, PART_LOOKED_AT * (clock_thread_cpu_ns() - part->piece_cpu_ns));
	part->pieces++;
	return part_add_queue(part, took_ns);
}

uint64_t thread_meter_add_piece(struct thread_meter *part, uint64_t took_ns)
{
	const uint64_t queued_ns = part_add_queue(part, took_ns);
	part_add_cpu(part, took_ns - queued_ns);
	return queued_ns;
}

void thread_meter_pass_rest(struct thread_meter *part, uint64_t took_ns)
{
	(void)part_queued(part, took_ns);
}

static uint64_t part_of(const atomic_uint_least64_t *part, const atomic_uint_least64_t *whole)
{
	const uint64_t most = atomic_load(whole);
	const uint64_t ns = atomic_load(part);
	return ns < most ? ns : most;
}

/* What the kernel says of a thread, or of its part, or of the rest of it. */
static bool thread_meter_account(struct thread_meter *meter, struct thread_times *out)
{
	struct thread_meter *const as_whole = atomic_load(&meter->whole);
	struct thread_meter *const thread = as_whole ? as_whole : meter;
	const struct thread_meter *const part = as_whole ? meter : atomic_load(&meter->part);
	const bool accounted = read_schedstat(thread);
	read_io_delay(thread);
	out->cpu_ns = atomic_load(&thread->cpu_ns);
	out->run_queue_ns = atomic_load(&thread->run_queue_ns);
	out->io_wait_ns = atomic_load(&thread->io_wait_ns);
	if (!part)
		return accounted;
	const uint64_t cpu_ns = part_of(&part->cpu_ns, &thread->cpu_ns);
	const uint64_t run_queue_ns = part_of(&part->run_queue_ns, &thread->run_queue_ns);
	out->cpu_ns = as_whole ? cpu_ns : out->cpu_ns - cpu_ns;
	out->run_queue_ns = as_whole ? run_queue_ns : out->run_queue_ns - run_queue_ns;
	out->io_wait_ns = as_whole ? out->io_wait_ns : 0;
	return accounted;
}

bool thread_meter_read(struct thread_meter *meter, uint64_t now_ns, struct thread_times *out)
{
	state_clock_read(&meter->clock, now_ns, out->state_ns);
	out->items = atomic_load_explicit(&meter->items, memory_order_relaxed);
	const bool accounted = thread_meter_account(meter, out);
	out->lock_wait_ns = lock_meter_wait_ns(&meter->lock, now_ns);
	out->lock_hold_ns = lock_meter_hold_ns(&meter->lock);
	out->overhead_ns = atomic_load_explicit(&meter->overhead_ns, memory_order_relaxed);
	out->allocated_bytes = memory_account_held(&meter->allocated);
	return accounted;
}
