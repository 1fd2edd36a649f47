/* Decode workers of a replay: exchange_decode of pipelines/exchange.c and what a worker does between two
 * visits.  An item with parts beside its CPU time goes part by part, under the lock first; the CPU times of
 * others are one piece of work, whatever the chunk. */
#include "harness/analyze/replay_line.h"

static void hand_in(struct replay *r, struct replay_worker *w)
{
	for (uint32_t i = 0; i < w->items; i++) {
		flow_pool_drop(&r->flow.blobs, w->blobs[i]);
		(void)flow_fill(&r->flow, r->files.blobs[w->blobs[i]].slot, 1);
	}
	if (w->items > 0)
		flow_learn(&r->flow, (r->now - w->began) / w->items);
	w->items = 0;
}

static uint32_t replay_team_take_ready(struct replay *r, struct replay_worker *w)
{
	const uint32_t share = flow_share(&r->flow);
	while (w->items < share && flow_lack(&r->flow) == FLOW_LACKS_NOTHING) {
		const uint32_t index = flow_hand(&r->flow);
		struct replay_blob *blob = &r->files.blobs[index];
		blob->slot = flow_slot_of(&r->flow, blob->batch);
		w->blobs[w->items++] = index;
	}
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
	turn_idle(r, r->flow.ready_count > 0 ? THREAD_BLOCKED : THREAD_STARVED);
	replay_team_set_state(team, w, team->idle_in);
	w->next_idle = team->idle;
	team->idle = (uint32_t)(w - team->workers);
	r->flow.workers_idle++;
}

/* Hands in and takes; false: it sleeps. */
static bool replay_team_visit(struct replay *r, struct replay_worker *w)
{
	if (w->woken) {
		w->woken = false;
		r->flow.workers_woken--;
	}
	hand_in(r, w);
	if (replay_team_take_ready(r, w) == 0) {
		replay_team_sleep_until_woken(r, w);
		return false;
	}
	replay_team_set_state(&r->team, w, THREAD_WORKING);
	w->began = r->now;
	w->at = 0;
	w->phase = r->team.apart ? WORKER_ENTERS : WORKER_VISITS;
	return true;
}

static double cost(const struct replay *r, const struct replay_worker *w, enum replay_cost cost)
{
	return r->files.blobs[w->blobs[w->at]].cost[cost] * w->factor;
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
	replay_compute(r, EVENT_WORKER, (uint32_t)(w - r->team.workers), ns);
	return true;
}

static uint32_t id_of(const struct replay *r, const struct replay_worker *w)
{
	return replay_event_id(EVENT_WORKER, (uint32_t)(w - r->team.workers));
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
		w->phase = WORKER_ENTERS;
		w->at++;
		if (ns <= 0)
			return false;
		replay_wait(r, id_of(r, w), ns);
		return true;
	}
	}
}

void replay_worker_go(struct replay *r, uint32_t index)
{
	struct replay_worker *w = &r->team.workers[index];
	bool waits = false;
	while (!waits) {
		if (w->phase != WORKER_VISITS)
			waits = replay_team_work(r, w);
		else if (replay_team_visit(r, w))
			waits = replay_team_compute(r, w, visit_cost(r, w));
		else
			return;
	}
}

static void wake_worker(struct replay *r)
{
	struct replay_team *team = &r->team;
	struct replay_worker *w = &team->workers[team->idle];
	team->idle = w->next_idle;
	flow_worker_wakes(&r->flow);
	w->state = team->idle_in;
	w->woken = true;
	replay_wake(r, id_of(r, w));
}

bool replay_wake_workers(struct replay *r)
{
	bool any = false;
	while (r->flow.workers_idle > 0) {
		const enum flow_lack lack = flow_lack(&r->flow);
		if (lack != FLOW_LACKS_NOTHING)
			turn_idle(r, lack == FLOW_LACKS_FILES ? THREAD_STARVED : THREAD_BLOCKED);
		if (lack != FLOW_LACKS_NOTHING || !flow_calls_worker(&r->flow))
			break;
		wake_worker(r);
		any = true;
	}
	return any;
}
