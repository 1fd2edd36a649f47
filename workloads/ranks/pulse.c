/* Questions, answers, and a last word. */
#include "workloads/ranks/pulse.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
	TAG_ASK = 3,
	TAG_HERE = 4,
	LEADER = 0,
	ENDING_LOOK_NS = 1000 * 1000,
	NOBODY = 0, /* of `lost`, which is a rank and 1 */
};

enum pulse_word { PULSE_ASKS = 1, PULSE_ENDS = 2 };

/* Of another rank; of one that follows, the leader.  MPI writes to it. */
struct pulse_peer {
	uint64_t heard_ns;
	struct mpi_request *sent, *awaited;
	uint64_t word, answer;
	bool ended; /* the last word is said, or heard */
	atomic_bool lost;
};

struct pulse {
	struct pulse_options options;
	struct pulse_peer *peers; /* (count), by rank; owned */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ending, at_once; /* lock held */
	uint64_t looked_ns;
	uint64_t lost_ns;
	atomic_uint lost;
	atomic_bool spared;
	atomic_uint_least64_t silent_ns;
};

static bool pulse_leads(const struct pulse *p)
{
	return p->options.world->rank == LEADER;
}

static bool pulse_has_lost(const struct pulse *p)
{
	return atomic_load_explicit(&p->lost, memory_order_acquire) != NOBODY;
}

/* Whether nobody is asked any more. */
static bool pulse_is_over(const struct pulse *p)
{
	return pulse_has_lost(p) && !p->spared;
}

static void pulse_lose(struct pulse *p, unsigned rank, uint64_t silent_ns, uint64_t now_ns)
{
	p->peers[rank].lost = true;
	if (pulse_has_lost(p))
		return;
	p->lost_ns = now_ns;
	atomic_store_explicit(&p->silent_ns, silent_ns, memory_order_relaxed);
	atomic_store_explicit(&p->lost, rank + 1, memory_order_release);
}

/* True: the request is over, or there was none. */
static bool pulse_test(
	struct pulse *p, unsigned rank, struct mpi_request **request, uint64_t now_ns)
{
	struct error why;
	const int code = *request ? p->options.plugin->test(request, &why) : 1;
	if (code < 0)
		pulse_lose(p, rank, now_ns - p->peers[rank].heard_ns, now_ns);
	return code != 0;
}

static void pulse_send(struct pulse *p, unsigned rank, int tag, uint64_t word, uint64_t now_ns)
{
	struct error why;
	struct pulse_peer *const peer = &p->peers[rank];
	peer->word = word;
	if (p->options.plugin->send(&peer->sent, rank, tag, &peer->word, sizeof peer->word, &why))
		pulse_lose(p, rank, now_ns - peer->heard_ns, now_ns);
}

static void pulse_await(struct pulse *p, unsigned rank, int tag, uint64_t now_ns)
{
	struct error why;
	struct pulse_peer *const peer = &p->peers[rank];
	if (p->options.plugin->receive(
		    &peer->awaited, rank, tag, &peer->answer, sizeof peer->answer, &why))
		pulse_lose(p, rank, now_ns - peer->heard_ns, now_ns);
}

/* The leader, at one of the others. */
static void pulse_ask(struct pulse *p, unsigned rank, bool ending, uint64_t now_ns)
{
	struct pulse_peer *const peer = &p->peers[rank];
	const bool sent = pulse_test(p, rank, &peer->sent, now_ns);
	const bool awaited = peer->awaited != NULL;
	const bool answered = pulse_test(p, rank, &peer->awaited, now_ns);
	if (awaited && answered)
		peer->heard_ns = now_ns;
	if (!sent || !answered || pulse_is_over(p) || peer->ended)
		return;
	if (!ending)
		pulse_await(p, rank, TAG_HERE, now_ns);
	pulse_send(p, rank, TAG_ASK, ending ? PULSE_ENDS : PULSE_ASKS, now_ns);
	peer->ended = ending;
}

/* The others, at the leader. */
static void pulse_answer(struct pulse *p, uint64_t now_ns)
{
	struct pulse_peer *const peer = &p->peers[LEADER];
	if (!pulse_test(p, LEADER, &peer->sent, now_ns) ||
		!pulse_test(p, LEADER, &peer->awaited, now_ns) || pulse_has_lost(p) || peer->ended)
		return;
	peer->heard_ns = now_ns;
	if (peer->answer == PULSE_ENDS) {
		peer->ended = true;
		return;
	}
	pulse_send(p, LEADER, TAG_HERE, PULSE_ASKS, now_ns);
	if (!pulse_has_lost(p))
		pulse_await(p, LEADER, TAG_ASK, now_ns);
}

/* True: there is nobody left to look at. */
static bool pulse_look(struct pulse *p, bool ending)
{
	const uint64_t now_ns = clock_now_ns();
	const uint64_t gap_ns = now_ns - p->looked_ns;
	const unsigned end = pulse_leads(p) ? p->options.world->count : LEADER + 1;
	bool over = true;
	p->looked_ns = now_ns;
	for (unsigned rank = pulse_leads(p); rank < end && !pulse_is_over(p); rank++) {
		struct pulse_peer *const peer = &p->peers[rank];
		if (gap_ns > 2 * p->options.look_ns)
			peer->heard_ns += gap_ns - p->options.look_ns;
		if (pulse_leads(p))
			pulse_ask(p, rank, ending, now_ns);
		else
			pulse_answer(p, now_ns);
		over = over && peer->ended && !peer->sent;
	}
	/* Of several the one that has been silent for longest. */
	unsigned last = NOBODY;
	uint64_t most_ns = 0;
	for (unsigned rank = pulse_leads(p); rank < end; rank++) {
		struct pulse_peer *const peer = &p->peers[rank];
		const uint64_t silent_ns = now_ns - peer->heard_ns;
		if (peer->ended || silent_ns <= p->options.silence_ns)
			continue;
		peer->lost = true;
		last = silent_ns > most_ns ? rank + 1 : last;
		most_ns = silent_ns > most_ns ? silent_ns : most_ns;
	}
	if (last != NOBODY)
		pulse_lose(p, last - 1, most_ns, now_ns);
	return over;
}

/* Returns whether to end at once.  The lock is held. */
static bool pulse_sleep(struct pulse *p)
{
	const uint64_t until_ns =
		clock_now_ns() + (p->ending ? ENDING_LOOK_NS : p->options.look_ns);
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};
	const bool ending = p->ending;
	while (p->ending == ending && !p->at_once && clock_now_ns() < until_ns)
		(void)pthread_cond_timedwait(&p->changed, &p->lock, &until);
	return p->at_once;
}

static void pulse_abort(const struct pulse *p)
{
	log_error("rank %u is gone, and MPI still waits for it: ending all ranks",
		atomic_load_explicit(&p->lost, memory_order_relaxed) - 1);
	p->options.plugin->abort(p->options.status);
}

static void *pulse_run(void *context)
{
	struct pulse *const p = context;
	bool over = false;
	(void)pthread_mutex_lock(&p->lock);
	while (!over) {
		const bool ending = p->ending;
		(void)pthread_mutex_unlock(&p->lock);
		over = pulse_look(p, ending);
		if (pulse_has_lost(p)) {
			over = ending;
			if (clock_now_ns() - p->lost_ns > p->options.end_ns && !p->spared)
				pulse_abort(p);
		}
		(void)pthread_mutex_lock(&p->lock);
		over = over || pulse_sleep(p);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void pulse_free(struct pulse *p)
{
	(void)pthread_cond_destroy(&p->changed);
	(void)pthread_mutex_destroy(&p->lock);
	free(p->peers);
	free(p);
}

/* MPI may write to what is left open. */
static void pulse_keep_peers(struct pulse *p)
{
	for (unsigned i = 0; p->peers && i < p->options.world->count; i++)
		if (p->peers[i].sent || p->peers[i].awaited) {
			p->peers = NULL;
			return;
		}
}

int pulse_open(struct pulse **out, const struct pulse_options *options, struct error *err)
{
	struct pulse *const p = calloc(1, sizeof *p);
	pthread_condattr_t attributes;
	*out = NULL;
	if (!p)
		return error_set(err, -ENOMEM, "out of memory for the ranks' pulse");
	p->options = *options;
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&p->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	(void)pthread_mutex_init(&p->lock, NULL);
	p->peers = calloc(options->world->count, sizeof *p->peers);
	p->looked_ns = clock_now_ns();
	for (unsigned i = 0; p->peers && i < options->world->count; i++)
		p->peers[i].heard_ns = p->looked_ns;
	int code = p->peers ? 0 : error_set(err, -ENOMEM, "out of memory for the ranks' pulse");
	if (!code && !pulse_leads(p))
		code = options->plugin->receive(&p->peers[LEADER].awaited, LEADER, TAG_ASK,
			&p->peers[LEADER].answer, sizeof p->peers[LEADER].answer, err);
	const int failed = code ? 0 : pthread_create(&p->thread, NULL, pulse_run, p);
	if (failed)
		code = error_set_errno(err, failed, "no thread for the ranks' pulse");
	if (code) {
		pulse_keep_peers(p);
		pulse_free(p);
		return code;
	}
	(void)pthread_setname_np(p->thread, "mlb-pulse");
	*out = p;
	return 0;
}

void pulse_close(struct pulse *p, bool at_once)
{
	if (!p)
		return;
	(void)pthread_mutex_lock(&p->lock);
	p->ending = true;
	p->at_once = at_once;
	(void)pthread_cond_broadcast(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
	(void)pthread_join(p->thread, NULL);
	pulse_keep_peers(p);
	pulse_free(p);
}

void pulse_spare(struct pulse *p)
{
	p->spared = true;
}

bool pulse_lost(const struct pulse *p, unsigned *rank, uint64_t *silent_ns)
{
	const unsigned lost = p ? atomic_load_explicit(&p->lost, memory_order_acquire) : NOBODY;
	if (lost == NOBODY)
		return false;
	*rank = lost - 1;
	*silent_ns = atomic_load_explicit(&p->silent_ns, memory_order_relaxed);
	return true;
}

bool pulse_lost_rank(const struct pulse *p, unsigned rank)
{
	return p && p->peers[rank].lost;
}
