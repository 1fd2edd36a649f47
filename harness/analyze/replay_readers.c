/* Readers of a replay: exchange_read of pipelines/exchange.c and the loop of pipelines/readers.c.  A reader
 * spends its CPU time file by file; each is in flight from then on, and done when its latency is over and
 * the device, first come first served, has given it its time.  The reader hands in what is done when it
 * has submitted all that it took. */
#include "harness/analyze/replay_line.h"

static uint32_t reader_event(const struct replay *r, const struct replay_reader *reader)
{
	return replay_event_id(EVENT_READER, (uint32_t)(reader - r->crew.readers));
}

static void set_blocked(struct replay_crew *crew, struct replay_reader *reader, bool blocked)
{
	crew->blocked += blocked;
	crew->blocked -= reader->blocked;
	reader->blocked = blocked;
}

static void replay_readers_take_blobs(struct replay *r, struct replay_reader *reader, uint32_t want)
{
	const uint32_t index = (uint32_t)(reader - r->crew.readers);
	uint32_t n = 0;
	while (n < want && flow_has_blob(&r->flow, false) && flow_has_room(&r->flow))
		reader->taken[n++] = replay_files_take(&r->files, &r->flow, index);
	reader->taken_count = n;
	reader->submitted = 0;
	reader->is_short = n < want;
}

static void replay_readers_sleep_until_woken(struct replay_crew *crew, struct replay_reader *reader)
{
	set_blocked(crew, reader, true);
	reader->next_idle = crew->idle;
	crew->idle = (uint32_t)(reader - crew->readers);
	crew->idle_count++;
}

/* Hands in and takes; false: it sleeps. */
static bool replay_readers_visit(struct replay *r, struct replay_reader *reader)
{
	struct replay_crew *crew = &r->crew;
	r->flow.readers_woken -= reader->woken;
	reader->woken = false;
	for (uint32_t i = 0; i < reader->done_count; i++)
		flow_put(&r->flow, r->files.blobs[reader->done[i]].ticket, reader->done[i]);
	reader->in_flight -= reader->done_count;
	reader->done_count = 0;
	replay_readers_take_blobs(r, reader, crew->depth - reader->in_flight);
	if (reader->taken_count + reader->in_flight == 0) {
		replay_readers_sleep_until_woken(crew, reader);
		return false;
	}
	set_blocked(crew, reader, false);
	reader->phase = READER_SUBMITS;
	return true;
}

static void replay_readers_finish(struct replay_reader *reader, uint32_t blob)
{
	reader->done[reader->done_count++] = blob;
}

/* A file is in flight. */
static void replay_readers_launch(struct replay *r, struct replay_reader *reader, uint32_t index)
{
	const struct replay_blob *blob = &r->files.blobs[index];
	struct replay_crew *crew = &r->crew;
	double end = r->now + blob->cost[COST_READ_LATENCY];
	if (blob->cost[COST_READ_DEVICE] > 0) {
		const double from = crew->link_free > r->now ? crew->link_free : r->now;
		crew->link_free = from + blob->cost[COST_READ_DEVICE];
		crew->link_given += blob->cost[COST_READ_DEVICE];
		end = crew->link_free > end ? crew->link_free : end;
	}
	reader->in_flight++;
	if (end > r->now)
		replay_heap_push(&r->timed, (struct replay_event){.key = end,
						    .id = replay_event_id(EVENT_FILE, index)});
	else
		replay_readers_finish(reader, index);
}

/* The CPU time of the next file, or of all when they take no time in flight; true: it takes some. */
static bool replay_readers_submit(struct replay *r, struct replay_reader *reader)
{
	const uint32_t end = r->crew.apart ? reader->submitted + 1 : reader->taken_count;
	double ns = 0;
	for (uint32_t i = reader->submitted; i < end; i++)
		ns += r->files.blobs[reader->taken[i]].cost[COST_READ_CPU];
	reader->phase = READER_SUBMITTED;
	if (ns <= 0)
		return false;
	replay_compute(r, EVENT_READER, (uint32_t)(reader - r->crew.readers), ns);
	return true;
}

static void submitted(struct replay *r, struct replay_reader *reader)
{
	const uint32_t end = r->crew.apart ? reader->submitted + 1 : reader->taken_count;
	while (reader->submitted < end)
		replay_readers_launch(r, reader, reader->taken[reader->submitted++]);
	reader->phase = READER_SUBMITS;
}

/* Nothing is done: waits for a file or, when it is short of blobs, for the time to look again. */
static void wait_for_file(struct replay *r, struct replay_reader *reader)
{
	reader->phase = READER_WAITS;
	if (!reader->is_short)
		return;
	set_blocked(&r->crew, reader, true);
	reader->looks_next = r->now + FLOW_LOOK_NS;
	if (!reader->timer_set)
		replay_wait(r, replay_event_id(EVENT_LOOK, (uint32_t)(reader - r->crew.readers)),
			FLOW_LOOK_NS);
	reader->timer_set = true;
}

void replay_reader_go(struct replay *r, uint32_t index)
{
	struct replay_reader *reader = &r->crew.readers[index];
	for (;;) {
		if (reader->phase == READER_VISITS) {
			if (!replay_readers_visit(r, reader))
				return;
		} else if (reader->phase == READER_SUBMITTED) {
			submitted(r, reader);
		} else if (reader->submitted < reader->taken_count) {
			if (replay_readers_submit(r, reader))
				return;
		} else if (reader->done_count > 0) {
			reader->phase = READER_VISITS;
		} else {
			wait_for_file(r, reader);
			return;
		}
	}
}

/* It waits no more; blocked, if it was, until it comes to the exchange. */
static void go_from_waiting(struct replay *r, struct replay_reader *reader)
{
	reader->phase = READER_VISITS;
	replay_resume(r, reader_event(r, reader));
}

/* Whether another file of the same reader is done at this very moment: one reap takes both. */
static bool another_done(struct replay *r, uint32_t reader)
{
	const struct replay_event *next = replay_heap_first(&r->timed);
	if (!next || next->key > r->now || next->id >> EVENT_INDEX_BITS != EVENT_FILE)
		return false;
	return r->files.blobs[next->id & EVENT_INDEX_MASK].reader == reader;
}

void replay_file_done(struct replay *r, uint32_t blob)
{
	const uint32_t index = r->files.blobs[blob].reader;
	struct replay_reader *reader = &r->crew.readers[index];
	replay_readers_finish(reader, blob);
	if (reader->phase == READER_WAITS && !another_done(r, index))
		go_from_waiting(r, reader);
}

/* There is at most one timer of a reader, which is moved on when it comes too early. */
void replay_reader_look(struct replay *r, uint32_t index)
{
	struct replay_reader *reader = &r->crew.readers[index];
	reader->timer_set = false;
	if (reader->phase != READER_WAITS || !reader->is_short)
		return;
	if (reader->looks_next > r->now) {
		reader->timer_set = true;
		replay_wait(r, replay_event_id(EVENT_LOOK, index), reader->looks_next - r->now);
		return;
	}
	go_from_waiting(r, reader);
}

bool replay_wake_readers(struct replay *r)
{
	struct replay_crew *crew = &r->crew;
	bool any = false;
	while (crew->idle_count > 0 && flow_calls_reader(&r->flow, false)) {
		struct replay_reader *reader = &crew->readers[crew->idle];
		crew->idle = reader->next_idle;
		crew->idle_count--;
		r->flow.readers_woken++;
		reader->woken = true;
		replay_wake(r, reader_event(r, reader));
		any = true;
	}
	return any;
}
