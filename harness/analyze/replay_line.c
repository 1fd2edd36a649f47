/* One replay under way: the pipeline's threads as state machines on simulated time.  Each does what its
 * counterpart in pipelines/ does between two waits, by the same law (harness/flow/flow.h), and then either
 * begins a timed piece of work or sleeps; whoever can go on is woken when the event is over, as the exchange
 * does it. */
#include "harness/analyze/replay_line.h"

#include "harness/base/rng.h"

#include <errno.h>
#include <math.h>

/* --- pending events --------------------------------------------------------------------------- */

static inline bool replay_before(const struct replay_event *a, const struct replay_event *b)
{
	return a->key < b->key || (a->key == b->key && a->id < b->id);
}

static inline void replay_heap_down(struct replay_heap *heap, const struct replay_event event)
{
	struct replay_event *const events = heap->events;
	const uint32_t count = heap->count;
	uint32_t at = 0;
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= count)
			break;
		if (child + 1 < count && replay_before(&events[child + 1], &events[child]))
			child++;
		if (!replay_before(&events[child], &event))
			break;
		events[at] = events[child];
		at = child;
	}
	events[at] = event;
}

static inline void replay_heap_push(struct replay_heap *heap, const struct replay_event event)
{
	if (heap->open) {
		heap->open = false;
		replay_heap_down(heap, event);
		return;
	}
	struct replay_event *const events = heap->events;
	uint32_t at = heap->count++;
	while (at > 0 && replay_before(&event, &events[(at - 1) / 2])) {
		events[at] = events[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	events[at] = event;
}

/* The first event, or NULL; it stays until replay_heap_pop. */
static inline const struct replay_event *replay_heap_first(struct replay_heap *heap)
{
	if (heap->open) {
		heap->open = false;
		heap->count--;
		if (heap->count > 0)
			replay_heap_down(heap, heap->events[heap->count]);
	}
	return heap->count > 0 ? heap->events : (const struct replay_event *)0;
}

/* Takes out the event at a place; right after replay_heap_first gave one. */
static inline void replay_heap_remove(struct replay_heap *heap, uint32_t at)
{
	struct replay_event *const events = heap->events;
	/* Up to the first place, as if it were the earliest, and out there. */
	for (; at > 0; at = (at - 1) / 2)
		events[at] = events[(at - 1) / 2];
	heap->open = true;
}

/* Right after replay_heap_first gave one. */
static inline void replay_heap_pop(struct replay_heap *heap)
{
	heap->open = true;
}

/* --- cores ------------------------------------------------------------------------------------ */

/* With n of our threads runnable: what is left of the cores for us is dealt to those on places, and no more than a quota
 * allows.  A quota leaves cores idle, but not while its threads run: those slow each other down as without it. */
void replay_cores_rate(double cores, double quota, double outside, double contention,
	uint32_t places, uint32_t n, double *slowness, double *busy)
{
	const double threads = n + outside;
	const double running = n < places ? n : places;
	const double most = threads < cores ? threads : cores;
	const double shared = threads > cores ? threads / cores : 1;
	const double dealt = n > places ? shared * (double)places / n : shared;
	const double allowed = quota > 0 ? running / quota : 0;
	const double slow = allowed > dealt ? allowed : dealt;
	*slowness = slow * (1 + contention * (most > 1 ? most - 1 : 0));
	*busy = most - (slow > dealt ? running / dealt - quota : 0);
}

void replay_cores_load(struct replay_cores *c)
{
	const uint32_t runnable = c->on_place + c->in_line;
	c->slowness = c->slowness_of[runnable];
	c->busy = c->busy_of[runnable];
}

/* A thread is on a place, and its `end` and `slice_end` are set. */
static inline void replay_cores_place(struct replay_cores *c, uint32_t thread)
{
	const struct replay_thread *t = &c->threads[thread];
	const double key = t->end < t->slice_end ? t->end : t->slice_end;
	replay_heap_push(&c->running, (struct replay_event){key, thread});
	c->on_place++;
}

static inline void replay_cores_queue(struct replay_cores *c, uint32_t thread)
{
	replay_heap_push(&c->waiting, (struct replay_event){c->threads[thread].used, thread});
	c->in_line++;
}

/* Those that have used least come first. */
static void replay_cores_call(struct replay_cores *c)
{
	const struct replay_event *first;
	while (c->on_place < c->places && (first = replay_heap_first(&c->waiting))) {
		const uint32_t thread = first->id;
		struct replay_thread *t = &c->threads[thread];
		replay_heap_pop(&c->waiting);
		c->in_line--;
		c->floor = t->used > c->floor ? t->used : c->floor;
		t->from = c->virtual_now;
		t->end += c->virtual_now;
		t->slice_end = c->virtual_now + c->slice_ns;
		replay_cores_place(c, thread);
	}
}

/* The one that has used most leaves its place, if that is more than `used`, the newcomer's: so a thread that
 * seldom runs does not wait for a slice's end. */
static void replay_cores_preempt(struct replay_cores *c, double used)
{
	if (!replay_heap_first(&c->running))
		return;
	uint32_t most = REPLAY_NOBODY;
	for (uint32_t i = 0; i < c->running.count; i++) {
		const struct replay_thread *t = &c->threads[c->running.events[i].id];
		const double now_used = t->used + c->virtual_now - t->from;
		if (now_used > used) {
			used = now_used;
			most = i;
		}
	}
	if (most == REPLAY_NOBODY)
		return;
	const uint32_t thread = c->running.events[most].id;
	replay_heap_remove(&c->running, most);
	c->on_place--;
	c->threads[thread].used = used;
	c->threads[thread].end -= c->virtual_now;
	replay_cores_queue(c, thread);
}

/* Gives the free places to those that wait; after each event. */
static inline void replay_cores_fill(struct replay_cores *c)
{
	c->going_on = REPLAY_NOBODY;
	if (c->in_line > 0 && c->on_place < c->places)
		replay_cores_call(c);
}

/* With time slices: whoever begins now has to wait. */
static inline bool replay_cores_all_busy(const struct replay_cores *c)
{
	return c->on_place + c->in_line + (c->going_on != REPLAY_NOBODY) >= c->places;
}

/* A thread begins ns > 0 of work. */
static inline void replay_cores_begin(struct replay_cores *c, uint32_t thread, double ns)
{
	struct replay_thread *t = &c->threads[thread];
	if (c->slice_ns <= 0 || thread == c->going_on) {
		c->going_on = REPLAY_NOBODY;
		t->from = c->virtual_now;
		t->end = c->virtual_now + ns;
		replay_cores_place(c, thread);
	} else {
		t->end = ns;
		const double least = c->floor - c->slice_ns;
		t->used = t->used > least ? t->used : least;
		const bool full = replay_cores_all_busy(c);
		replay_cores_queue(c, thread);
		if (full)
			replay_cores_preempt(c, t->used);
	}
	replay_cores_load(c);
}

/* When the next piece of work, or slice, ends if nothing else happens; HUGE_VAL: never. */
static inline double replay_cores_next(struct replay_cores *c, double now)
{
	const struct replay_event *first = replay_heap_first(&c->running);
	if (!first)
		return HUGE_VAL;
	const double left = first->key - c->virtual_now;
	return left > 0 ? now + left * c->slowness : now;
}

/* What replay_cores_next spoke of is now.  The thread whose work ended, which may begin more before
 * replay_cores_fill gives its place away; NOBODY: a slice ended. */
static inline uint32_t replay_cores_end(struct replay_cores *c)
{
	const struct replay_event first = c->running.events[0];
	struct replay_thread *t = &c->threads[first.id];
	replay_heap_pop(&c->running);
	c->on_place--;
	c->virtual_now = first.key;
	t->used += first.key - t->from;
	t->from = first.key;
	if (t->end <= first.key) {
		c->going_on = first.id;
		replay_cores_load(c);
		return first.id;
	}
	if (c->in_line > 0) {
		t->end -= first.key;
		replay_cores_queue(c, first.id);
	} else {
		t->slice_end = first.key + c->slice_ns;
		replay_cores_place(c, first.id);
	}
	return REPLAY_NOBODY;
}

/* --- costs ------------------------------------------------------------------------------------ */

static const struct {
	const char *stage, *resource;
	enum replay_stage id;
} costs[COSTS] = {
	[COST_READ_CPU] = {STAGE_READ_NAME, "cpu", REPLAY_READ},
	[COST_READ_LATENCY] = {STAGE_READ_NAME, "latency", REPLAY_READ},
	[COST_READ_DEVICE] = {STAGE_READ_NAME, "full", REPLAY_READ},
	[COST_DECODE_CPU] = {STAGE_DECODE_NAME, "cpu", REPLAY_DECODE},
	[COST_DECODE_LOCK] = {STAGE_DECODE_NAME, "lock", REPLAY_DECODE},
	[COST_DECODE_WAIT] = {STAGE_DECODE_NAME, "wait", REPLAY_DECODE},
	[COST_DECODE_BATCH] = {STAGE_DECODE_NAME, "cpu", REPLAY_DECODE},
	[COST_DECODE_STARTUP] = {STAGE_DECODE_NAME, "startup", REPLAY_DECODE},
	[COST_UPLOAD] = {STAGE_UPLOAD_NAME, "copy", REPLAY_UPLOAD},
	[COST_STEP_HOST] = {STAGE_STEP_NAME, "launch", REPLAY_STEP},
	[COST_STEP_DEVICE] = {STAGE_STEP_NAME, "compute", REPLAY_STEP},
	[COST_SYNC] = {STAGE_SYNC_NAME, "exchange", REPLAY_SYNC},
	[COST_CHECKPOINT] = {STAGE_CHECKPOINT_NAME, "storage", REPLAY_CHECKPOINT},
	[COST_CHECKPOINT_COPY] = {STAGE_CHECKPOINT_NAME, "copy", REPLAY_CHECKPOINT},
	[COST_EVALUATE_INPUT] = {STAGE_EVALUATE_NAME, "input", REPLAY_EVALUATE},
	[COST_EVALUATE_STEP] = {STAGE_EVALUATE_NAME, "step", REPLAY_EVALUATE},
};

enum replay_stage replay_stage_of(enum replay_cost cost)
{
	return costs[cost].id;
}

const char *replay_cost_stage(enum replay_cost cost)
{
	return costs[cost].stage;
}

const char *replay_cost_resource(enum replay_cost cost)
{
	return costs[cost].resource;
}

const char *replay_cost_name(enum replay_cost cost)
{
	return cost == COST_DECODE_BATCH ? "cpu per batch" : costs[cost].resource;
}

static void replay_cursor_draw(struct replay_cursor *cursor)
{
	const uint64_t random = rng_mix(cursor->stream, cursor->next++);
	cursor->at = (random + cursor->offset) % cursor->count;
	cursor->left = cursor->block;
}

void replay_cursor_open(struct replay_cursor *cursor, const struct replay_model *model,
	const struct replay_options *options, enum replay_cost cost)
{
	const struct replay_series *series = &model->series[cost];
	*cursor = (struct replay_cursor){0};
	if (series->count == 0 || model->scale[cost] <= 0)
		return;
	cursor->ns = series->ns;
	cursor->count = series->count;
	cursor->scale = model->scale[cost];
	cursor->block = options->block;
	cursor->offset = options->offset % series->count;
	cursor->stream = rng_mix(options->seed, (uint64_t)costs[cost].id);
	cursor->at = cursor->offset;
	if (cursor->block > 0)
		replay_cursor_draw(cursor);
}

/* ns of the next item. */
static inline double replay_cursor_next(struct replay_cursor *cursor)
{
	if (cursor->count == 0)
		return 0;
	const double ns = (double)cursor->ns[cursor->at] * cursor->scale;
	if (++cursor->at == cursor->count)
		cursor->at = 0;
	if (cursor->block > 0 && --cursor->left == 0)
		replay_cursor_draw(cursor);
	return ns;
}

/* --- threads and events ----------------------------------------------------------------------- */

static inline void replay_files_draw(
	struct replay_files *f, uint32_t index, struct flow_ticket ticket)
{
	struct replay_blob *blob = &f->blobs[index];
	for (int cost = 0; cost < SAMPLE_COSTS; cost++)
		blob->cost[cost] = replay_cursor_next(&f->cursors[cost]);
	blob->ticket = ticket.number;
	blob->batch = ticket.batch;
}

/* The next ticket with a free blob; there are both. */
static inline uint32_t replay_files_take(struct replay_files *f, struct flow *flow, uint32_t reader)
{
	const uint32_t index = flow_pool_take(&flow->blobs);
	replay_files_draw(f, index, flow_take_ticket(flow));
	f->blobs[index].reader = reader;
	return index;
}

static inline bool replay_over(const struct replay *r)
{
	return r->ends.batches >= r->batches_end;
}

/* A thread begins to wait off the cores for ns > 0. */
static inline void replay_wait(struct replay *r, uint32_t id, double ns)
{
	replay_heap_push(&r->timed, (struct replay_event){.key = r->now + ns, .id = id});
}

/* A thread begins ns > 0 of work on the cores. */
static inline void replay_compute(
	struct replay *r, enum replay_event_kind kind, uint32_t index, double ns)
{
	replay_cores_begin(&r->cores, r->first_thread[kind] + index, ns);
}

/* A thread does its event now. */
static void replay_dispatch(struct replay *r, uint32_t id);

/* The same of one that was off the cores: with time slices, it first waits for a core if all are busy. */
static inline void replay_resume(struct replay *r, uint32_t id)
{
	const uint32_t kind = id >> EVENT_INDEX_BITS;
	if (kind < REPLAY_COMPUTING_KINDS && replay_cores_all_busy(&r->cores))
		replay_compute(
			r, (enum replay_event_kind)kind, id & EVENT_INDEX_MASK, REPLAY_SWITCH_NS);
	else
		replay_dispatch(r, id);
}

static inline void replay_wake(struct replay *r, uint32_t id)
{
	if (r->wake_ns > 0)
		replay_wait(r, id, r->wake_ns);
	else
		replay_resume(r, id);
}

/* --- decode workers --------------------------------------------------------------------------- */

/* Decode workers of a replay: exchange_decode of pipelines/exchange.c and what a worker does between two
 * visits.  An item with parts beside its CPU time goes part by part, under the lock first; the CPU times of
 * others are one piece of work, whatever the chunk.  One that reads for itself does so first. */

static bool replay_team_reads(const struct replay *r)
{
	return r->flow.options.by_workers;
}

static uint32_t replay_team_index(const struct replay *r, const struct replay_worker *w)
{
	return (uint32_t)(w - r->team.workers);
}

static void hand_in(struct replay *r, struct replay_worker *w)
{
	if (replay_team_reads(r) && w->items > 0)
		(void)flow_fill(&r->flow, w->first / r->files.batch_size, w->items);
	for (uint32_t i = 0; !replay_team_reads(r) && i < w->items; i++) {
		flow_pool_drop(&r->flow.blobs, w->blobs[i]);
		(void)flow_fill(&r->flow, r->files.blobs[w->blobs[i]].slot, 1);
	}
	if (w->items > 0)
		flow_learn(&r->flow, (r->now - w->began) / w->items);
	w->items = 0;
}

static uint32_t replay_team_take_ready(struct replay *r, struct replay_worker *w)
{
	const uint32_t share = flow_share(&r->flow, r->flow.ready_count);
	while (w->items < share && flow_lack(&r->flow) == FLOW_LACKS_NOTHING) {
		const uint32_t index = flow_hand(&r->flow);
		struct replay_blob *blob = &r->files.blobs[index];
		blob->slot = flow_slot_of(&r->flow, blob->batch);
		w->blobs[w->items++] = index;
	}
	return w->items;
}

/* As exchange_claim. */
static uint32_t replay_team_claim(struct replay *r, struct replay_worker *w)
{
	struct flow *const flow = &r->flow;
	const uint32_t index = replay_team_index(r, w);
	if (flow_lack_of(flow, index) != FLOW_LACKS_NOTHING)
		return 0;
	const struct flow_claim claim = flow_claim(flow, index);
	while (flow_owes(flow, &claim)) {
		const struct flow_ticket ticket = flow_deal(flow);
		const uint32_t slot = flow_slot_of(flow, ticket.batch);
		replay_files_draw(&r->files, slot * r->files.batch_size + ticket.place, ticket);
	}
	w->first = claim.slot * r->files.batch_size + claim.place;
	w->items = claim.count;
	return w->items;
}

static void replay_team_set_state(
	struct replay_team *team, struct replay_worker *w, enum thread_state state)
{
	team->waiting[w->state]--;
	team->waiting[state]++;
	w->state = state;
}

/* All sleepers are in `state` from now on. */
static void turn_idle(struct replay *r, enum thread_state state)
{
	struct replay_team *team = &r->team;
	team->waiting[team->idle_in] -= r->flow.workers_idle;
	team->waiting[state] += r->flow.workers_idle;
	team->idle_in = state;
}

static void replay_team_sleep_until_woken(struct replay *r, struct replay_worker *w)
{
	struct replay_team *team = &r->team;
	const uint32_t index = replay_team_index(r, w);
	const enum flow_lack lack =
		replay_team_reads(r) ? flow_lack_of(&r->flow, index) : flow_lack(&r->flow);
	turn_idle(r, lack == FLOW_LACKS_SLOTS ? THREAD_BLOCKED : THREAD_STARVED);
	replay_team_set_state(team, w, team->idle_in);
	w->next_idle = team->idle;
	team->idle = index;
	flow_worker_sleeps(&r->flow, team->idle);
}

/* Hands in and takes; false: it sleeps. */
static bool replay_team_visit(struct replay *r, struct replay_worker *w)
{
	if (w->woken) {
		w->woken = false;
		r->flow.workers_woken--;
	}
	hand_in(r, w);
	if ((replay_team_reads(r) ? replay_team_claim(r, w) : replay_team_take_ready(r, w)) == 0) {
		replay_team_sleep_until_woken(r, w);
		return false;
	}
	replay_team_set_state(&r->team, w, THREAD_WORKING);
	w->completed = false;
	w->began = r->now;
	w->at = 0;
	w->phase = replay_team_reads(r) ? WORKER_OPENS
		   : r->team.apart      ? WORKER_ENTERS
					: WORKER_VISITS;
	return true;
}

/* The item that it is at. */
static const struct replay_blob *replay_team_item(
	const struct replay *r, const struct replay_worker *w)
{
	return &r->files.blobs[replay_team_reads(r) ? w->first + w->at : w->blobs[w->at]];
}

static double cost(const struct replay *r, const struct replay_worker *w, enum replay_cost cost)
{
	return replay_team_item(r, w)->cost[cost] * w->factor;
}

/* CPU time of the visit and, unless items go part by part, of all of them. */
static double visit_cost(const struct replay *r, struct replay_worker *w)
{
	double ns = 0;
	if (!r->team.apart)
		for (; w->at < w->items; w->at++)
			ns += cost(r, w, COST_DECODE_CPU);
	return ns + r->visit_ns;
}

static bool replay_team_compute(struct replay *r, const struct replay_worker *w, double ns)
{
	if (ns <= 0)
		return false;
	replay_compute(r, EVENT_WORKER, replay_team_index(r, w), ns);
	return true;
}

static uint32_t id_of(const struct replay *r, const struct replay_worker *w)
{
	return replay_event_id(EVENT_WORKER, replay_team_index(r, w));
}

/* When what is submitted at a moment is done. */
static double replay_link_end(struct replay *r, double at, double latency, double device)
{
	struct replay_crew *const crew = &r->crew;
	const double end = at + latency;
	if (device <= 0)
		return end;
	crew->link_free = (crew->link_free > at ? crew->link_free : at) + device;
	crew->link_given += device;
	return crew->link_free > end ? crew->link_free : end;
}

/* Goes on with a file that it reads itself; true: it waits for something. */
static bool replay_team_read(struct replay *r, struct replay_worker *w)
{
	const struct replay_blob *const item = replay_team_item(r, w);
	if (w->phase == WORKER_OPENS) {
		r->team.reading++;
		w->phase = WORKER_FETCHES;
		return replay_team_compute(r, w, item->cost[COST_READ_CPU]);
	}
	if (w->phase == WORKER_FETCHES) {
		const double end = replay_link_end(
			r, r->now, item->cost[COST_READ_LATENCY], item->cost[COST_READ_DEVICE]);
		w->phase = WORKER_HAS_READ;
		if (end > r->now)
			replay_wait(r, id_of(r, w), end - r->now);
		return end > r->now;
	}
	r->team.reading--;
	w->phase = WORKER_ENTERS;
	return false;
}

/* With the lock, but without a core; false: none of its time is spent so. */
static bool hold_off_cores(struct replay *r, struct replay_worker *w)
{
	const double ns = cost(r, w, COST_DECODE_LOCK) * r->lock_off_cores;
	w->phase = WORKER_UNLOCKS;
	if (ns > 0)
		replay_wait(r, id_of(r, w), ns);
	return ns > 0;
}

/* Takes the lock or waits for it, at the end of the line. */
static void take_lock(struct replay *r, struct replay_worker *w)
{
	struct replay_team *team = &r->team;
	if (!team->locked) {
		team->locked = true;
		w->phase = WORKER_HOLDS;
		if (!replay_team_compute(
			    r, w, cost(r, w, COST_DECODE_LOCK) * (1 - r->lock_off_cores)))
			hold_off_cores(r, w);
		return;
	}
	w->phase = WORKER_LOCKS;
	const uint32_t last = team->lock_first + team->lock_waiting++;
	team->lock_queue[last < team->count ? last : last - team->count] =
		(uint32_t)(w - team->workers);
}

/* The first in line is woken; if that takes time, whoever comes meanwhile may be faster, as at a futex. */
static void release_lock(struct replay *r)
{
	struct replay_team *team = &r->team;
	team->locked = false;
	if (team->lock_waiting == 0 || team->lock_woken)
		return;
	const uint32_t next = team->lock_queue[team->lock_first];
	team->lock_first = team->lock_first + 1 < team->count ? team->lock_first + 1 : 0;
	team->lock_waiting--;
	team->lock_woken = true;
	replay_wake(r, replay_event_id(EVENT_WORKER, next));
}

/* Goes on with an item; true: it waits for something. */
static bool replay_team_work(struct replay *r, struct replay_worker *w)
{
	switch (w->phase) {
	case WORKER_OPENS:
	case WORKER_FETCHES:
	case WORKER_HAS_READ:
		return replay_team_read(r, w);
	case WORKER_ENTERS:
		w->phase = w->at < w->items ? WORKER_COMPUTES : WORKER_VISITS;
		if (w->at == w->items || cost(r, w, COST_DECODE_LOCK) <= 0)
			return false;
		take_lock(r, w);
		return true;
	case WORKER_LOCKS:
		r->team.lock_woken = false;
		take_lock(r, w);
		return true;
	case WORKER_HOLDS:
		return hold_off_cores(r, w);
	case WORKER_UNLOCKS:
		w->phase = WORKER_COMPUTES;
		release_lock(r);
		return false;
	case WORKER_COMPUTES:
		w->phase = WORKER_WAITED;
		return replay_team_compute(r, w, cost(r, w, COST_DECODE_CPU));
	default: { /* WORKER_WAITED: for its CPU time; now off the cores */
		const double ns = cost(r, w, COST_DECODE_WAIT);
		w->at++;
		w->phase = replay_team_reads(r) && w->at < w->items ? WORKER_OPENS : WORKER_ENTERS;
		if (ns <= 0)
			return false;
		replay_wait(r, id_of(r, w), ns);
		return true;
	}
	}
}

static uint32_t replay_team_slot(
	const struct replay *r, const struct replay_worker *w, uint32_t item)
{
	return replay_team_reads(r) ? w->first / r->files.batch_size
				    : r->files.blobs[w->blobs[item]].slot;
}

/* Puts together the batches that its items complete; false: that takes no time.  They are no part of its items' time. */
static bool replay_team_complete(struct replay *r, struct replay_worker *w)
{
	double ns = 0;
	w->completed = true;
	for (uint32_t i = 0, n; i < w->items; i += n) {
		const uint32_t slot = replay_team_slot(r, w, i);
		n = 1;
		while (i + n < w->items && replay_team_slot(r, w, i + n) == slot)
			n++;
		if (r->flow.slots[slot].missing == n)
			ns += replay_cursor_next(&r->team.batch_cost);
	}
	w->began += ns;
	return replay_team_compute(r, w, ns);
}

static void replay_worker_go(struct replay *r, uint32_t index)
{
	struct replay_worker *w = &r->team.workers[index];
	bool waits = false;
	while (!waits) {
		if (w->phase != WORKER_VISITS)
			waits = replay_team_work(r, w);
		else if (r->team.batch_cost.count > 0 && !w->completed)
			waits = replay_team_complete(r, w);
		else if (replay_team_visit(r, w))
			waits = replay_team_compute(r, w, visit_cost(r, w));
		else
			return;
	}
}

/* Takes it out of the list of sleepers. */
static void wake_worker(struct replay *r, uint32_t index)
{
	struct replay_team *team = &r->team;
	struct replay_worker *w = &team->workers[index];
	uint32_t *at = &team->idle;
	while (*at != index)
		at = &team->workers[*at].next_idle;
	*at = w->next_idle;
	flow_worker_wakes(&r->flow, index);
	w->state = team->idle_in;
	w->woken = true;
	replay_wake(r, id_of(r, w));
}

/* Whom there is work for, of those that sleep. */
static uint32_t replay_team_calls(struct replay *r, enum flow_lack lack)
{
	if (r->flow.options.whole_batches)
		return flow_calls_owner(&r->flow);
	return lack == FLOW_LACKS_NOTHING && flow_calls_worker(&r->flow) ? r->team.idle : FLOW_NONE;
}

static bool replay_wake_workers(struct replay *r)
{
	bool any = false;
	while (r->flow.workers_idle > 0) {
		const enum flow_lack lack = replay_team_reads(r) ? flow_lack_of_sleepers(&r->flow)
								 : flow_lack(&r->flow);
		if (lack != FLOW_LACKS_NOTHING)
			turn_idle(r, lack == FLOW_LACKS_FILES ? THREAD_STARVED : THREAD_BLOCKED);
		const uint32_t worker = replay_team_calls(r, lack);
		if (worker == FLOW_NONE)
			break;
		wake_worker(r, worker);
		any = true;
	}
	return any;
}

/* --- readers ---------------------------------------------------------------------------------- */

/* Readers of a replay: exchange_read of pipelines/exchange.c and the loop of pipelines/loader.c.  A reader
 * spends its CPU time file by file; each is in flight from then on, and done when its latency is over and
 * the device, first come first served, has given it its time.  The reader hands in what is done when it
 * has submitted all that it took. */

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
	while (n < want && flow_has_blob(&r->flow, false) && flow_has_room(&r->flow) &&
		flow_is_open(&r->flow) && flow_has_turn(&r->flow))
		reader->taken[n++] = replay_files_take(&r->files, &r->flow, index);
	reader->taken_count = n;
	reader->submitted = 0;
	reader->is_short = n < want && flow_is_open(&r->flow) && flow_has_turn(&r->flow);
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

/* The place of one more request in flight: one that is done, or the one that will be first. */
static double *replay_requests_place(struct replay_requests *q, double now)
{
	double *first = &q->flying[0];
	for (uint32_t i = 0; i<q->depth && * first> now; i++)
		first = q->flying[i] < *first ? &q->flying[i] : first;
	return first;
}

/* When the request that a sample lies in is done. */
static double replay_request_end(struct replay *r, uint64_t ticket)
{
	struct replay_requests *const q = &r->crew.requests;
	const uint64_t needed = (uint64_t)((double)ticket / q->samples);
	while (q->begun <= needed + q->ahead) {
		double *const place = replay_requests_place(q, r->now);
		const double at = *place > r->now ? *place : r->now;
		*place = replay_link_end(
			r, at, replay_cursor_next(&q->latency), replay_cursor_next(&q->device));
		q->done[q->begun++ % (q->ahead + 1)] = *place;
	}
	return q->done[needed % (q->ahead + 1)];
}

/* A file is in flight. */
static void replay_readers_launch(struct replay *r, struct replay_reader *reader, uint32_t index)
{
	const struct replay_blob *blob = &r->files.blobs[index];
	struct replay_crew *crew = &r->crew;
	const double end = crew->requests.samples > 0
				   ? replay_request_end(r, blob->ticket)
				   : replay_link_end(r, r->now, blob->cost[COST_READ_LATENCY],
					     blob->cost[COST_READ_DEVICE]);
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

static void replay_reader_go(struct replay *r, uint32_t index)
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

static void replay_file_done(struct replay *r, uint32_t blob)
{
	const uint32_t index = r->files.blobs[blob].reader;
	struct replay_reader *reader = &r->crew.readers[index];
	replay_readers_finish(reader, blob);
	if (reader->phase == READER_WAITS && !another_done(r, index))
		go_from_waiting(r, reader);
}

/* There is at most one timer of a reader, which is moved on when it comes too early. */
static void replay_reader_look(struct replay *r, uint32_t index)
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

static bool replay_wake_readers(struct replay *r)
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

/* --- upload and step -------------------------------------------------------------------------- */

/* Upload and step of a replay: exchange_next_batch of pipelines/exchange.c, the loops of upload.c and
 * stepper.c for each device, and the exchange of gradients between them. */

static void replay_begin_epoch(struct replay *r)
{
	flow_open_epochs(&r->flow, ++r->ends.epochs);
}

static void replay_release(struct replay *r, uint32_t slot)
{
	flow_release(&r->flow, slot);
	if (!flow_epoch_is_over(&r->flow))
		return;
	const double ns = replay_cursor_next(&r->ends.startup_cost);
	if (ns > 0)
		replay_wait(r, replay_event_id(EVENT_EPOCH, 0), ns);
	else
		replay_begin_epoch(r);
}

/* The consumer of a lane gives back what it held and takes a batch; false: there is none. */
static bool fetch(struct replay *r, uint32_t lane)
{
	struct replay_device *device = &r->ends.devices[lane];
	if (device->held != FLOW_NONE)
		replay_release(r, device->held);
	device->held = flow_deliver(&r->flow, lane);
	return device->held != FLOW_NONE;
}

/* The same from the staging slots. */
static bool fetch_staged(struct replay_device *device)
{
	struct flow_staging *staging = &device->staging;
	staging->released += device->step_holds;
	device->step_holds = flow_staging_has_batch(staging);
	staging->taken += device->step_holds;
	return device->step_holds;
}

/* The last device to come begins the exchange. */
static void replay_ends_gather(struct replay *r, struct replay_device *device)
{
	struct replay_ends *ends = &r->ends;
	device->step = STEP_SYNCS;
	if (++ends->gathered == ends->count)
		replay_wait(
			r, replay_event_id(EVENT_SYNC, 0), replay_cursor_next(&ends->sync_cost));
}

static void replay_sync_done(struct replay *r)
{
	struct replay_ends *ends = &r->ends;
	ends->gathered = 0;
	ends->batches += ends->count;
	for (uint32_t i = 0; i < ends->count; i++)
		ends->devices[i].step = i == 0 ? STEP_SAVES : STEP_FETCHES;
	for (uint32_t i = 0; i < ends->count && !replay_over(r); i++)
		replay_resume(r, replay_event_id(EVENT_STEP, i));
}

/* Whether one of what comes every so many batches is due; 0: it never comes. */
static bool replay_ends_has_due(const struct replay_ends *ends, uint64_t every)
{
	return every > 0 && ends->batches % every == 0;
}

/* ns of an evaluation. */
static double replay_ends_evaluate(struct replay *r)
{
	struct replay_ends *ends = &r->ends;
	if (!replay_ends_has_due(ends, ends->evaluate_batches))
		return 0;
	const double ns = replay_cursor_next(&ends->evaluate_input) +
			  replay_cursor_next(&ends->evaluate_step);
	r->integral[LEVEL_EVALUATE_BUSY] += ns;
	return ns;
}

/* ns of a checkpoint that begins then. */
static double replay_ends_save(struct replay *r, double begin)
{
	struct replay_ends *ends = &r->ends;
	if (!replay_ends_has_due(ends, ends->checkpoint_batches))
		return 0;
	const double store = replay_cursor_next(&ends->checkpoint_cost);
	const double copy = replay_cursor_next(&ends->checkpoint_copy);
	const double waits = ends->writer_free > begin ? ends->writer_free - begin : 0;
	const double stall = ends->checkpoint_async ? waits + copy : 0;
	ends->writer_free = begin + stall + store;
	r->integral[LEVEL_CHECKPOINT_BUSY] += store;
	return ends->checkpoint_async ? stall : store;
}

/* ns that the first device stands still after this step.  Each stall belongs to the period that it begins: the part that is
 * measured has whole ones. */
static double replay_ends_stall(struct replay *r)
{
	const double evaluated = replay_ends_evaluate(r);
	return evaluated + replay_ends_save(r, r->now + evaluated);
}

static void replay_step_go(struct replay *r, uint32_t index)
{
	struct replay_ends *ends = &r->ends;
	struct replay_device *device = &ends->devices[index];
	double ns;
	for (;;) {
		switch (device->step) {
		case STEP_FETCHES:
			device->step_woken = false;
			device->step_waits =
				ends->staging > 0 ? !fetch_staged(device) : !fetch(r, index);
			if (device->step_waits)
				return;
			device->step = STEP_LAUNCHES;
			ns = replay_cursor_next(&ends->host_cost);
			if (ns <= 0)
				break;
			for (uint32_t i = 0; i < ends->step_threads; i++)
				replay_compute(r, EVENT_STEP, index * ends->step_threads + i, ns);
			device->computing = ends->step_threads;
			return;
		case STEP_LAUNCHES:
			if (device->computing > 0 && --device->computing > 0)
				return;
			device->step = STEP_ENDS;
			ns = device->factor * replay_cursor_next(&ends->device_cost);
			if (ns <= 0)
				break;
			replay_wait(r, replay_event_id(EVENT_STEP, index), ns);
			return;
		case STEP_ENDS:
			if (ends->syncs) {
				replay_ends_gather(r, device);
				return;
			}
			device->step = STEP_SAVES;
			ends->batches++;
			if (replay_over(r))
				return;
			break;
		case STEP_SYNCS:
			return;
		case STEP_SAVES:
			device->step = STEP_STALLS;
			ns = replay_ends_stall(r);
			if (ns <= 0)
				break;
			replay_wait(r, replay_event_id(EVENT_STEP, index), ns);
			return;
		case STEP_STALLS:
			device->step = STEP_FETCHES;
			break;
		}
	}
}

static void replay_upload_go(struct replay *r, uint32_t index)
{
	struct replay_ends *ends = &r->ends;
	struct replay_device *device = &ends->devices[index];
	double ns;
	for (;;) {
		switch (device->upload) {
		case UPLOAD_FETCHES:
			device->upload_woken = false;
			device->upload_starved = !fetch(r, index);
			if (device->upload_starved)
				return;
			device->upload = UPLOAD_STAGES;
			break;
		case UPLOAD_STAGES:
			device->upload_woken = false;
			device->upload_blocked =
				!flow_staging_has_place(&device->staging, device->staging.filled);
			if (device->upload_blocked)
				return;
			device->upload = UPLOAD_ENDS;
			ns = replay_cursor_next(&ends->upload_cost);
			if (ns <= 0)
				break;
			if (ends->copies_off_cores)
				replay_wait(r, replay_event_id(EVENT_UPLOAD, index), ns);
			else
				replay_compute(r, EVENT_UPLOAD, index, ns);
			return;
		case UPLOAD_ENDS:
			device->staging.filled++;
			device->upload = UPLOAD_FETCHES;
		}
	}
}

static bool wake_upload(struct replay *r, uint32_t index)
{
	struct replay_device *device = &r->ends.devices[index];
	const bool fed = device->upload_starved && flow_has_for(&r->flow, index);
	const bool room = device->upload_blocked &&
			  flow_staging_has_place(&device->staging, device->staging.filled);
	if (device->upload_woken || !(fed || room))
		return false;
	device->upload_woken = true;
	replay_wake(r, replay_event_id(EVENT_UPLOAD, index));
	return true;
}

static bool replay_wake_ends(struct replay *r)
{
	const struct replay_ends *ends = &r->ends;
	bool any = false;
	for (uint32_t i = 0; i < ends->count; i++) {
		struct replay_device *device = &r->ends.devices[i];
		any = (ends->staging > 0 && wake_upload(r, i)) || any;
		const bool fed = ends->staging > 0 ? flow_staging_has_batch(&device->staging)
						   : flow_has_for(&r->flow, i);
		if (device->step_waits && !device->step_woken && fed) {
			device->step_woken = true;
			replay_wake(r, replay_event_id(EVENT_STEP, i));
			any = true;
		}
	}
	return any;
}

/* --- the loop of events ----------------------------------------------------------------------- */

/* Whatever is integrated over time changes only at events. */

static void replay_dispatch(struct replay *r, uint32_t id)
{
	const uint32_t index = id & EVENT_INDEX_MASK;
	switch ((enum replay_event_kind)(id >> EVENT_INDEX_BITS)) {
	case EVENT_STEP:
		replay_step_go(r, index);
		break;
	case EVENT_UPLOAD:
		replay_upload_go(r, index);
		break;
	case EVENT_WORKER:
		replay_worker_go(r, index);
		break;
	case EVENT_READER:
		replay_reader_go(r, index);
		break;
	case EVENT_FILE:
		replay_file_done(r, index);
		break;
	case EVENT_LOOK:
		replay_reader_look(r, index);
		break;
	case EVENT_SYNC:
		replay_sync_done(r);
		break;
	case EVENT_EPOCH:
		replay_begin_epoch(r);
		break;
	}
}

/* Wakes all who can go on, until nobody can. */
static void replay_line_settle(struct replay *r)
{
	bool any = true;
	while (any && !replay_over(r)) {
		any = replay_wake_workers(r);
		any = replay_wake_readers(r) || any;
		any = replay_wake_ends(r) || any;
	}
	replay_cores_fill(&r->cores);
}

/* True: a consumer of batches waits for one. */
static bool pass_ends(const struct replay_ends *ends, double ns, double *sum)
{
	bool waits = false;
	for (uint32_t i = 0; i < ends->count; i++) {
		const struct replay_device *device = &ends->devices[i];
		sum[LEVEL_UPLOAD_STARVED] += ns * device->upload_starved;
		sum[LEVEL_UPLOAD_BLOCKED] += ns * device->upload_blocked;
		sum[LEVEL_STEP_STARVED] += ns * device->step_waits;
		sum[LEVEL_STEP_BUSY] +=
			ns * (device->step == STEP_ENDS ||
				     (device->step == STEP_LAUNCHES && ends->on_cores));
		sum[LEVEL_STEP_BLOCKED] +=
			ns * (device->step == STEP_SYNCS || device->step == STEP_STALLS);
		waits = waits || (ends->staging > 0 ? device->upload_starved : device->step_waits);
	}
	sum[LEVEL_SYNC_BUSY] += ns * (ends->gathered == ends->count);
	return waits;
}

static void pass(struct replay *r, double ns)
{
	const struct flow *flow = &r->flow;
	const uint32_t waiting =
		flow->deliverable < r->prefetch_depth ? flow->deliverable : r->prefetch_depth;
	double *sum = r->integral;
	const bool consumer_waits = pass_ends(&r->ends, ns, sum);
	sum[LEVEL_READ_BLOCKED] += ns * r->crew.blocked;
	sum[LEVEL_READING] += ns * r->team.reading;
	sum[LEVEL_DECODE_STARVED] += ns * r->team.waiting[THREAD_STARVED];
	sum[LEVEL_DECODE_BLOCKED] += ns * r->team.waiting[THREAD_BLOCKED];
	sum[LEVEL_LOCK] += ns * r->team.locked;
	sum[LEVEL_CORES] += ns * r->cores.busy;
	sum[LEVEL_SAMPLES] += ns * r->flow.ready_count;
	sum[LEVEL_BATCHES] += ns * waiting;
	sum[LEVEL_ORDER_WAIT] += ns * (consumer_waits && flow->finished_count > flow->deliverable);
	r->now += ns;
}

static void do_timed(struct replay *r, const struct replay_event event)
{
	const double ns = event.key - r->now;
	replay_heap_pop(&r->timed);
	if (r->cores.on_place > 0)
		r->cores.virtual_now += ns / r->cores.slowness;
	pass(r, ns);
	replay_resume(r, event.id);
}

static void do_core(struct replay *r, double end)
{
	pass(r, end - r->now);
	const uint32_t thread = replay_cores_end(&r->cores);
	if (thread != REPLAY_NOBODY)
		replay_dispatch(r, r->event_of[thread]);
}

/* Goes to the next event and does it; false: there is none.  What is off the cores comes first. */
static bool next_event(struct replay *r)
{
	const struct replay_event *timed = replay_heap_first(&r->timed);
	const double core_end = replay_cores_next(&r->cores, r->now);
	if (timed && timed->key <= core_end)
		do_timed(r, *timed);
	else if (core_end < HUGE_VAL)
		do_core(r, core_end);
	else
		return false;
	r->events++;
	return true;
}

int replay_until(struct replay *r, uint64_t batches)
{
	r->batches_end = batches;
	/* The steps stopped where the last goal was reached. */
	for (uint32_t i = 0; r->ends.batches > 0 && !r->held && i < r->ends.count; i++)
		replay_step_go(r, i);
	r->held = false;
	replay_line_settle(r);
	while (!replay_over(r)) {
		if (r->events >= r->events_max)
			return -E2BIG;
		if (!next_event(r))
			return -EDEADLK;
		replay_line_settle(r);
	}
	return 0;
}

void replay_hold(struct replay *r, double until_ns)
{
	r->held = until_ns > r->now;
	for (uint32_t i = 0; r->held && i < r->ends.count; i++)
		replay_wait(r, replay_event_id(EVENT_STEP, i), until_ns - r->now);
}

void replay_start(struct replay *r)
{
	r->batches_end = UINT64_MAX;
	for (uint32_t i = 0; i < r->crew.count; i++)
		replay_reader_go(r, i);
	for (uint32_t i = 0; i < r->team.count; i++)
		replay_worker_go(r, i);
	for (uint32_t i = 0; r->ends.staging > 0 && i < r->ends.count; i++)
		replay_upload_go(r, i);
	for (uint32_t i = 0; i < r->ends.count; i++)
		replay_step_go(r, i);
}
