/* Recording a timeline. */
#include "harness/measure/timeline.h"

#include "harness/measure/state_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct timeline_log *timeline_own;

const char *const timeline_names[TIMELINE_KINDS] = {
	[TIMELINE_FILE] = "file",
	[TIMELINE_FILE_OPEN] = "open",
	[TIMELINE_SUBMIT] = "submit",
	[TIMELINE_REAP] = "wait for files",
	[TIMELINE_OPEN] = "open",
	[TIMELINE_READ] = "read",
	[TIMELINE_CLOSE] = "close",
	[TIMELINE_DECODE] = "sample",
	[TIMELINE_HEADER] = "header",
	[TIMELINE_JOIN] = "join chunks",
	[TIMELINE_INFLATE] = "inflate",
	[TIMELINE_UNFILTER] = "unfilter",
	[TIMELINE_EXPAND] = "expand to RGB",
	[TIMELINE_START] = "start, skip to region",
	[TIMELINE_JPEG_ROWS] = "entropy + IDCT + colour",
	[TIMELINE_LIBPNG_ROWS] = "inflate + unfilter (libpng)",
	[TIMELINE_RAW_ROWS] = "rows in place",
	[TIMELINE_WEBP] = "decode (libwebp)",
	[TIMELINE_TIFF] = "decode (libtiff)",
	[TIMELINE_PIXELS] = "decode pixels",
	[TIMELINE_RESIZE] = "resize + flip",
	[TIMELINE_RESIZE_NORMALISE] = "resize + flip + normalise",
	[TIMELINE_COPY_REGION] = "copy region",
	[TIMELINE_COPY] = "copy batch",
	[TIMELINE_COPY_LAUNCH] = "launch copy",
	[TIMELINE_COPY_WAIT] = "wait for copy",
	[TIMELINE_COMPUTE] = "compute",
	[TIMELINE_LAUNCH] = "launch",
	[TIMELINE_STEP_WAIT] = "wait for device",
	[TIMELINE_RANKS_WAIT] = "wait for other ranks",
	[TIMELINE_RANKS_EXCHANGE] = "exchange gradients",
	[TIMELINE_DEVICE_STEP] = "device step",
	[TIMELINE_DEVICE_WAIT] = "wait for other ranks",
	[TIMELINE_DEVICE_SYNC] = "exchange gradients",
	[TIMELINE_DEVICE_COPY] = "device upload",
	[TIMELINE_CHECKPOINT] = "store checkpoint",
	[TIMELINE_EVALUATION] = "evaluate",
	[TIMELINE_GRADIENTS] = "gradients",
	[TIMELINE_LAST_RANK] = "last rank",
};

/* --- room ------------------------------------------------------------------------------------------------- */

enum { SORT_BYTES = 2 * sizeof(uint32_t) };

/* Each log has one chunk from the beginning. */
static uint64_t chunks_for(uint64_t entries, uint32_t logs)
{
	const uint64_t most = entries < TIMELINE_ENTRIES_MAX ? entries : TIMELINE_ENTRIES_MAX;
	return (most + TIMELINE_CHUNK - 1) / TIMELINE_CHUNK + logs;
}

static uint64_t pool_bytes(uint64_t chunks)
{
	return chunks * TIMELINE_CHUNK * (sizeof(struct timeline_entry) + SORT_BYTES);
}

uint64_t timeline_bytes(uint64_t entries, uint32_t logs)
{
	const uint64_t chunks = chunks_for(entries, logs);
	return pool_bytes(chunks) + chunks * 2 * sizeof(uint32_t) + sizeof(struct timeline) +
	       logs * sizeof(struct timeline_log);
}

static void *zeroed(size_t align, size_t size)
{
	void *memory = aligned_alloc(align, (size + align - 1) / align * align);
	if (memory)
		memset(memory, 0, size);
	return memory;
}

int timeline_open(struct timeline **out, const struct step_schedule *schedule, uint64_t entries,
	uint32_t logs)
{
	struct timeline *t = zeroed(_Alignof(struct timeline), sizeof *t);
	*out = NULL;
	if (!t)
		return -ENOMEM;
	t->schedule = *schedule;
	t->log_room = logs;
	t->chunks = (uint32_t)chunks_for(entries, logs);
	t->logs = zeroed(_Alignof(struct timeline_log), logs * sizeof *t->logs);
	t->owners = memory_touched(t->chunks, sizeof *t->owners);
	t->used = memory_touched(t->chunks, sizeof *t->used);
	atomic_init(&t->full_ns, UINT64_MAX);
	if (!t->logs || !t->owners || !t->used ||
		memory_map(&t->block, pool_bytes(t->chunks), false)) {
		timeline_close(t);
		return -ENOMEM;
	}
	t->entries = t->block.data;
	*out = t;
	return 0;
}

void timeline_close(struct timeline *t)
{
	if (!t)
		return;
	memory_unmap(&t->block);
	free(t->logs);
	free(t->owners);
	free(t->used);
	free(t);
}

static bool take_chunk(struct timeline_log *log)
{
	struct timeline *t = log->timeline;
	if (atomic_load_explicit(&t->taken, memory_order_relaxed) >= t->chunks)
		return false;
	const unsigned chunk = atomic_fetch_add_explicit(&t->taken, 1, memory_order_relaxed);
	if (chunk >= t->chunks)
		return false;
	t->owners[chunk] = log->index;
	log->next = t->entries + (size_t)chunk * TIMELINE_CHUNK;
	log->last = log->next + TIMELINE_CHUNK - 1;
	return true;
}

struct timeline_log *timeline_add_log(
	struct timeline *t, enum timeline_track track, const char *stage, unsigned thread)
{
	if (!t || t->log_count == t->log_room)
		return NULL;
	struct timeline_log *log = &t->logs[t->log_count];
	*log = (struct timeline_log){
		.timeline = t, .index = t->log_count, .track = track, .thread = thread};
	(void)snprintf(log->stage, sizeof log->stage, "%s", stage);
	t->log_count++;
	(void)take_chunk(log);
	return log;
}

void timeline_use(struct timeline_log *log)
{
	timeline_own = log;
}

/* --- entries ---------------------------------------------------------------------------------------------- */

static bool is_state(const struct timeline_entry *entry)
{
	return entry->kind >= TIMELINE_STATE && entry->kind < TIMELINE_STATE + THREAD_STATES;
}

static void lose(struct timeline *t, const struct timeline_entry *entry)
{
	uint_least64_t full = atomic_load_explicit(&t->full_ns, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&t->lost, 1, memory_order_relaxed);
	while (entry->begin_ns < full &&
		!atomic_compare_exchange_weak_explicit(&t->full_ns, &full, entry->begin_ns,
			memory_order_relaxed, memory_order_relaxed))
		continue;
}

/* The last place of all is for the state that the thread is in when something is lost: the state's span began
 * long before, and would take with it all steps since. */
void timeline_put_last(struct timeline_log *log, const struct timeline_entry *entry)
{
	struct timeline_entry *const place = log->last;
	if (place && take_chunk(log)) {
		*place = *entry;
	} else if (place && is_state(entry)) {
		*place = *entry;
		log->next = NULL;
		log->last = NULL;
	} else {
		lose(log->timeline, entry);
	}
}

void timeline_state(struct timeline_log *log, enum thread_state state, uint64_t since_ns,
	uint64_t now_ns, uint64_t had_ns)
{
	const uint64_t from_ns = since_ns > log->cut_ns ? since_ns : log->cut_ns;
	if (now_ns <= from_ns)
		return;
	timeline_put(log, &(const struct timeline_entry){.begin_ns = from_ns,
				  .end_ns = now_ns,
				  .number = had_ns + (from_ns - since_ns),
				  .kind = (uint16_t)(TIMELINE_STATE + (unsigned)state)});
}

void timeline_span(enum timeline_kind kind, uint64_t begin_ns, uint64_t end_ns, uint64_t number,
	uint32_t value)
{
	if (begin_ns == 0 || !timeline_own || end_ns < begin_ns)
		return;
	timeline_put(timeline_own, &(const struct timeline_entry){.begin_ns = begin_ns,
					   .end_ns = end_ns,
					   .number = number,
					   .value = value,
					   .kind = (uint16_t)kind});
}

void timeline_pieces(enum timeline_kind kind, uint64_t begin_ns, uint64_t end_ns, uint32_t pieces)
{
	if (begin_ns == 0 || !timeline_own || end_ns < begin_ns)
		return;
	timeline_put(timeline_own,
		&(const struct timeline_entry){.begin_ns = begin_ns,
			.end_ns = end_ns,
			.kind = (uint16_t)kind,
			.pieces = (uint16_t)(pieces < UINT16_MAX ? pieces : UINT16_MAX)});
}

/* --- the schedule ----------------------------------------------------------------------------------------- */

static void close_window(struct timeline *t, uint64_t now_ns)
{
	t->windows[t->window_count - 1].end_ns = now_ns;
	t->closed_ns = now_ns;
}

/* Every thread looks at both all the time: they are written when they change. */
static void switch_to(struct timeline *t, bool on, bool keep)
{
	const uint64_t kept_ns = keep ? UINT64_MAX : t->closed_ns;
	if (atomic_load_explicit(&t->kept_ns, memory_order_relaxed) != kept_ns)
		atomic_store_explicit(&t->kept_ns, kept_ns, memory_order_relaxed);
	if (atomic_load_explicit(&t->on, memory_order_relaxed) != on)
		atomic_store_explicit(&t->on, on, memory_order_relaxed);
}

static void keep_depths(const struct timeline *t, struct timeline_window *window)
{
	size_t queue = 0;
	for (uint32_t i = 0; i < t->log_count && queue < TIMELINE_QUEUES_MAX; i++)
		if (t->logs[i].track == TIMELINE_QUEUE)
			window->depths[queue++] =
				atomic_load_explicit(&t->logs[i].depth, memory_order_relaxed);
}

static bool open_window(struct timeline *t, uint64_t now_ns)
{
	if (t->window_count == TIMELINE_WINDOWS_MAX)
		return false;
	struct timeline_window *window = &t->windows[t->window_count++];
	*window = (struct timeline_window){.begin_ns = now_ns, .first_step = t->steps};
	keep_depths(t, window);
	return true;
}

static bool is_pool_full(const struct timeline *t)
{
	return atomic_load_explicit(&t->full_ns, memory_order_relaxed) != UINT64_MAX;
}

/* What is done with the next step.  The one before an active step is kept, too: when a window begins every thread has
 * long known of it, whoever was held up in between.  What lies before the window is left out when it is written. */
static void enter_step_phase(struct timeline *t, uint64_t now_ns)
{
	const bool room = !is_pool_full(t);
	enum step_phase phase = step_schedule_phase(&t->schedule, t->steps);
	const bool wanted = phase == STEP_PHASE_ACTIVE;
	const bool leads_in =
		room && step_schedule_phase(&t->schedule, t->steps + 1) == STEP_PHASE_ACTIVE;
	if (!room)
		phase = STEP_PHASE_IDLE;
	if (t->phase == STEP_PHASE_ACTIVE && phase != STEP_PHASE_ACTIVE)
		close_window(t, now_ns);
	if (t->phase != STEP_PHASE_ACTIVE && phase == STEP_PHASE_ACTIVE && !open_window(t, now_ns))
		phase = STEP_PHASE_IDLE;
	t->dropped_steps += wanted && phase != STEP_PHASE_ACTIVE;
	t->phase = phase;
	switch_to(t, phase != STEP_PHASE_IDLE || leads_in, phase == STEP_PHASE_ACTIVE || leads_in);
}

void timeline_start(struct timeline *t, uint64_t start_ns)
{
	t->start_ns = start_ns;
	for (uint32_t i = 0; i < t->log_count; i++)
		t->logs[i].step_ns = start_ns;
	enter_step_phase(t, start_ns);
}

/* The state goes on, but belongs to the next step. */
static void cut_state(struct timeline_log *log, uint64_t now_ns)
{
	const struct state_clock *clock = log->clock;
	if (!clock)
		return;
	const enum thread_state state = state_clock_state(clock);
	const uint64_t since_ns = atomic_load_explicit(&clock->since_ns, memory_order_relaxed);
	if (since_ns == 0)
		return;
	timeline_state(log, state, since_ns, now_ns,
		atomic_load_explicit(&clock->total_ns[state], memory_order_relaxed));
	log->cut_ns = now_ns;
}

void timeline_step(struct timeline_log *log, uint64_t batch, uint64_t now_ns)
{
	struct timeline *t = log->timeline;
	cut_state(log, now_ns);
	timeline_put(log, &(const struct timeline_entry){.begin_ns = log->step_ns,
				  .end_ns = now_ns,
				  .number = batch,
				  .kind = TIMELINE_STEP});
	log->step_ns = now_ns;
	if (!log->leads)
		return;
	if (t->phase == STEP_PHASE_ACTIVE)
		t->windows[t->window_count - 1].steps++;
	t->steps++;
	enter_step_phase(t, now_ns);
}

/* --- the end ---------------------------------------------------------------------------------------------- */

/* Nothing was lost before the end of a window; the leader's steps say where it may be cut. */
static void cut_window(struct timeline *t, struct timeline_window *window, uint64_t until_ns)
{
	uint64_t end_ns = window->begin_ns;
	uint64_t steps = 0;
	for (uint32_t c = 0; c < t->chunks; c++) {
		const struct timeline_entry *entries = t->entries + (size_t)c * TIMELINE_CHUNK;
		for (uint32_t i = 0; i < t->used[c]; i++) {
			const struct timeline_entry *e = &entries[i];
			if (e->kind != TIMELINE_STEP || !t->logs[t->owners[c]].leads ||
				e->end_ns <= window->begin_ns || e->end_ns > until_ns)
				continue;
			steps++;
			end_ns = e->end_ns > end_ns ? e->end_ns : end_ns;
		}
	}
	t->dropped_steps += window->steps - steps;
	window->end_ns = end_ns;
	window->steps = steps;
}

/* Windows that hold a whole step stay. */
static void settle_windows(struct timeline *t)
{
	const uint64_t full_ns = atomic_load(&t->full_ns);
	size_t kept = 0;
	for (size_t i = 0; i < t->window_count; i++) {
		struct timeline_window *window = &t->windows[i];
		if (window->end_ns > full_ns)
			cut_window(t, window, full_ns);
		if (window->steps > 0)
			t->windows[kept++] = *window;
	}
	t->window_count = kept;
}

static void count_used(struct timeline *t)
{
	const unsigned taken = atomic_load(&t->taken);
	for (uint32_t c = 0; c < t->chunks && c < taken; c++)
		t->used[c] = TIMELINE_CHUNK;
	for (uint32_t i = 0; i < t->log_count; i++) {
		const struct timeline_log *log = &t->logs[i];
		if (!log->next)
			continue;
		const uint32_t chunk = (uint32_t)((log->last - t->entries) / TIMELINE_CHUNK);
		t->used[chunk] =
			(uint32_t)(log->next - (t->entries + (size_t)chunk * TIMELINE_CHUNK));
	}
}

void timeline_finish(struct timeline *t, uint64_t now_ns)
{
	t->end_ns = now_ns;
	/* A window that the end of the run cut off ends with its last whole step. */
	for (uint32_t i = 0; i < t->log_count && t->phase == STEP_PHASE_ACTIVE; i++)
		if (t->logs[i].leads) {
			close_window(t, t->logs[i].step_ns);
			t->phase = STEP_PHASE_IDLE;
			switch_to(t, true, false);
		}
	for (uint32_t i = 0; i < t->log_count; i++) {
		t->logs[i].step_ns = now_ns;
		cut_state(&t->logs[i], now_ns);
		t->logs[i].clock = NULL;
	}
	count_used(t);
	settle_windows(t);
	atomic_store(&t->on, false);
}
