/* MPI without MPI: ranks are threads of this process, each with a plug-in table of its own, over mailboxes whose messages can be
 * delayed, held, or fail.  A sum or a meeting is over once every rank that trains has begun it. */
#ifndef MLBENCH_TESTS_FAKE_MPI_H
#define MLBENCH_TESTS_FAKE_MPI_H

#include "harness/base/clock.h"
#include "workloads/ranks/ranks.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAKE_RANKS = 3, FAKE_TURNS = 256, FAKE_TAG_BYTES = 2 };

enum fake_kind { FAKE_SENT, FAKE_RECEIVE, FAKE_SUM, FAKE_MEET };

struct mpi_request {
	enum fake_kind kind;
	unsigned rank, other;
	int tag;
	void *data;
	size_t bytes, turn;
};

struct fake_message {
	struct fake_message *next;
	unsigned from, to;
	int tag;
	uint64_t due_ns;
	size_t bytes;
	char data[];
};

struct fake_turn {
	unsigned came, taken;
	size_t count;
	float *values;
	struct mpi_round round;
};

static struct fake_mpi {
	pthread_mutex_t lock;
	struct fake_message *messages; /* in the order in which they were sent */
	struct fake_turn turns[FAKE_TURNS];
	size_t turn[FAKE_RANKS]; /* that a rank begins next */
	unsigned training, without;
	bool cut[FAKE_RANKS];          /* nothing comes from or to it */
	bool gone[FAKE_RANKS];         /* nor is it waited for: MPI says so */
	uint64_t delay_ns[FAKE_RANKS]; /* of what it sends */
	int64_t ahead_ns[FAKE_RANKS];  /* its clock */
	bool corrupts;                 /* the next sum */
	unsigned closed, forgotten;
	bool abort_ends;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* While ranks run: a change of it. */
#define FAKE_LOCKED(change)                             \
	do {                                            \
		(void)pthread_mutex_lock(&fake.lock);   \
		change;                                 \
		(void)pthread_mutex_unlock(&fake.lock); \
	} while (0)

static inline void fake_reset(void)
{
	for (struct fake_message *next, *m = fake.messages; m; m = next) {
		next = m->next;
		free(m);
	}
	for (size_t i = 0; i < FAKE_TURNS; i++)
		free(fake.turns[i].values);
	fake = (struct fake_mpi){.lock = PTHREAD_MUTEX_INITIALIZER, .training = FAKE_RANKS};
}

static inline int fake_request(struct mpi_request **out, struct mpi_request request)
{
	*out = malloc(sizeof **out);
	if (!*out)
		return -ENOMEM;
	**out = request;
	return 0;
}

static inline int fake_open(unsigned rank, struct mpi_world *out)
{
	*out = (struct mpi_world){.rank = rank,
		.count = FAKE_RANKS,
		.local_rank = rank,
		.local_count = FAKE_RANKS,
		.library = "a fake"};
	(void)snprintf(out->host, sizeof out->host, "node-%u", rank);
	return 0;
}

static inline void fake_close(void)
{
	(void)pthread_mutex_lock(&fake.lock);
	fake.closed++;
	(void)pthread_mutex_unlock(&fake.lock);
}

static inline void fake_abort(int status)
{
	if (fake.abort_ends)
		_exit(status);
}

static inline int fake_send(struct mpi_request **out, unsigned rank, unsigned to, int tag,
	const void *data, size_t bytes)
{
	struct fake_message *const m = malloc(sizeof *m + bytes);
	if (!m)
		return -ENOMEM;
	*m = (struct fake_message){.from = rank, .to = to, .tag = tag, .bytes = bytes};
	memcpy(m->data, data, bytes);
	(void)pthread_mutex_lock(&fake.lock);
	m->due_ns = clock_now_ns() + fake.delay_ns[rank];
	/* An answer with its time. */
	if (fake.ahead_ns[rank] != 0 && tag == FAKE_TAG_BYTES && bytes == sizeof(uint64_t)) {
		uint64_t time_ns;
		memcpy(&time_ns, m->data, sizeof time_ns);
		time_ns += (uint64_t)fake.ahead_ns[rank];
		memcpy(m->data, &time_ns, sizeof time_ns);
	}
	struct fake_message **last = &fake.messages;
	while (*last)
		last = &(*last)->next;
	*last = m;
	(void)pthread_mutex_unlock(&fake.lock);
	return fake_request(
		out, (struct mpi_request){.kind = FAKE_SENT, .rank = rank, .other = to});
}

static inline int fake_begin_turn(
	struct mpi_request **out, unsigned rank, enum fake_kind kind, void *data, size_t count)
{
	(void)pthread_mutex_lock(&fake.lock);
	const size_t turn = fake.turn[rank]++ % FAKE_TURNS;
	struct fake_turn *const t = &fake.turns[turn];
	if (t->came == 0) {
		t->count = count;
		t->values = kind == FAKE_SUM ? calloc(count, sizeof *t->values) : NULL;
		t->round = (struct mpi_round){.latest_ns = -HUGE_VAL, .second_ns = -HUGE_VAL};
	}
	for (size_t i = 0; kind == FAKE_SUM && i < count; i++)
		t->values[i] += ((const float *)data)[i];
	if (kind == FAKE_MEET) {
		const struct mpi_round *const r = data;
		const bool last = r->latest_ns > t->round.latest_ns;
		const double second_ns = last ? t->round.latest_ns : r->latest_ns;
		t->round.second_ns = fmax(t->round.second_ns, second_ns);
		t->round.latest_ns = fmax(t->round.latest_ns, r->latest_ns);
		t->round.last = last ? r->last : t->round.last;
		t->round.leaves = r->leaves > t->round.leaves ? r->leaves : t->round.leaves;
	}
	t->came++;
	(void)pthread_mutex_unlock(&fake.lock);
	return fake_request(out,
		(struct mpi_request){
			.kind = kind, .rank = rank, .data = data, .bytes = count, .turn = turn});
}

/* The lock is held. */
static inline int fake_test_receive(const struct mpi_request *r)
{
	struct fake_message **at = &fake.messages;
	/* The first of its kind alone: messages do not overtake each other. */
	while (*at && ((*at)->from != r->other || (*at)->to != r->rank || (*at)->tag != r->tag))
		at = &(*at)->next;
	struct fake_message *const m = *at;
	if (!m || m->due_ns > clock_now_ns() || fake.cut[m->from] || fake.cut[m->to])
		return 0;
	memcpy(r->data, m->data, m->bytes < r->bytes ? m->bytes : r->bytes);
	*at = m->next;
	free(m);
	return 1;
}

/* The lock is held. */
static inline int fake_test_turn(const struct mpi_request *r)
{
	struct fake_turn *const t = &fake.turns[r->turn];
	if (t->came < fake.training)
		return 0;
	if (r->kind == FAKE_SUM) {
		memcpy(r->data, t->values, t->count * sizeof *t->values);
		*(float *)r->data += fake.corrupts ? 1 : 0;
	} else {
		memcpy(r->data, &t->round, sizeof t->round);
	}
	if (++t->taken == fake.training) {
		free(t->values);
		*t = (struct fake_turn){0};
	}
	return 1;
}

static inline int fake_test(struct mpi_request **request, struct error *err)
{
	struct mpi_request *const r = *request;
	if (!r)
		return 1;
	(void)pthread_mutex_lock(&fake.lock);
	int code = 1;
	if (r->kind == FAKE_RECEIVE)
		code = fake_test_receive(r);
	else if (r->kind != FAKE_SENT)
		code = fake_test_turn(r);
	if (code == 0 && r->kind == FAKE_RECEIVE && fake.gone[r->other])
		code = -EIO;
	(void)pthread_mutex_unlock(&fake.lock);
	if (code == 0)
		return 0;
	free(r);
	*request = NULL;
	return code > 0 ? code : error_set(err, -EIO, "the connection is closed");
}

static inline void fake_forget(struct mpi_request **request)
{
	(void)pthread_mutex_lock(&fake.lock);
	fake.forgotten++;
	(void)pthread_mutex_unlock(&fake.lock);
	*request = NULL;
}

static inline int fake_train(unsigned count, unsigned without)
{
	(void)pthread_mutex_lock(&fake.lock);
	fake.training = count;
	fake.without = without;
	(void)pthread_mutex_unlock(&fake.lock);
	return 0;
}

#define FAKE_RANK(n)                                                                               \
	static int fake_open_##n(struct mpi_world *out, struct error *err)                         \
	{                                                                                          \
		(void)err;                                                                         \
		return fake_open(n, out);                                                          \
	}                                                                                          \
	static int fake_send_##n(struct mpi_request **out, unsigned to, int tag, const void *data, \
		size_t bytes, struct error *err)                                                   \
	{                                                                                          \
		(void)err;                                                                         \
		return fake_send(out, n, to, tag, data, bytes);                                    \
	}                                                                                          \
	static int fake_receive_##n(struct mpi_request **out, unsigned from, int tag, void *data,  \
		size_t bytes, struct error *err)                                                   \
	{                                                                                          \
		(void)err;                                                                         \
		return fake_request(                                                               \
			out, (struct mpi_request){FAKE_RECEIVE, n, from, tag, data, bytes, 0});    \
	}                                                                                          \
	static int fake_sum_##n(                                                                   \
		struct mpi_request **out, float *values, size_t count, struct error *err)          \
	{                                                                                          \
		(void)err;                                                                         \
		return fake_begin_turn(out, n, FAKE_SUM, values, count);                           \
	}                                                                                          \
	static int fake_meet_##n(                                                                  \
		struct mpi_request **out, struct mpi_round *round, struct error *err)              \
	{                                                                                          \
		(void)err;                                                                         \
		return fake_begin_turn(out, n, FAKE_MEET, round, 1);                               \
	}                                                                                          \
	static int fake_train_##n(unsigned count, unsigned without, struct error *err)             \
	{                                                                                          \
		(void)err;                                                                         \
		return fake_train(count, without);                                                 \
	}
#define FAKE_TABLE(n)                                                                      \
	{                                                                                  \
		.abi = MPI_PLUGIN_ABI, .version = "a fake", .open = fake_open_##n,         \
		.close = fake_close, .abort = fake_abort, .send = fake_send_##n,           \
		.receive = fake_receive_##n, .train = fake_train_##n, .sum = fake_sum_##n, \
		.meet = fake_meet_##n, .test = fake_test, .forget = fake_forget,           \
	}
FAKE_RANK(0)
FAKE_RANK(1)
FAKE_RANK(2)
static const struct mpi_plugin fake_plugins[FAKE_RANKS] = {
	FAKE_TABLE(0), FAKE_TABLE(1), FAKE_TABLE(2)};

/* --- ranks ------------------------------------------------------------------------------------ */

/* A rank's part of a test, on its thread. */
struct fake_part {
	unsigned rank;
	void (*play)(struct fake_part *part);
	struct ranks *ranks;
	atomic_bool stop;
	uint64_t silence_ns;
	int code;
	struct error err;
	pthread_t thread;
};

static inline void fake_join(struct fake_part *part)
{
	const struct ranks_options options = {.plugin = &fake_plugins[part->rank],
		.launcher = {.name = "a fake", .rank = part->rank, .count = FAKE_RANKS},
		.stop = &part->stop,
		.pulse_ns = 2 * NS_PER_MS,
		.silence_ns = part->silence_ns};
	part->code = ranks_open_through(&part->ranks, &options, &part->err);
	if (!part->code)
		part->play(part);
	ranks_close(part->ranks, 7);
}

static inline void *fake_run(void *context)
{
	fake_join(context);
	return NULL;
}

/* The leader's part on this thread, the others' on theirs.  silence_ns: a rank is lost after; a test in which none is takes long. */
static inline void fake_play(struct fake_part parts[FAKE_RANKS], uint64_t silence_ns,
	void (*leads)(struct fake_part *part), void (*follows)(struct fake_part *part))
{
	fake_reset();
	for (unsigned i = 0; i < FAKE_RANKS; i++)
		parts[i] = (struct fake_part){
			.rank = i, .play = i ? follows : leads, .silence_ns = silence_ns};
	for (unsigned i = 1; i < FAKE_RANKS; i++)
		(void)pthread_create(&parts[i].thread, NULL, fake_run, &parts[i]);
	fake_join(&parts[0]);
	for (unsigned i = 1; i < FAKE_RANKS; i++)
		(void)pthread_join(parts[i].thread, NULL);
}

#endif
