/* Buckets, their due times, and the meeting. */
#include "workloads/ranks/gradients.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "workloads/ranks/ranks.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	SPIN_NS = 200 * 1000, /* looks without a pause, at first */
	LOOK_SHARE = 128,     /* of the time that passed since then */
	LOOK_MOST_NS = 250 * 1000,
	FURTHER_NS = 200 * 1000, /* between looks while the step goes on */
	ROUNDS = 20, /* as long as the longest that a round is waited for, and MORE_NS */
};
/* A rank that does not go on says so itself, after a minute (pipelines/conduct.c). */
static const uint64_t MORE_NS = 180 * NS_PER_S;
/* A leader that is told to stop has results to write, and mpirun kills it after a second. */
static const uint64_t STOPPED_NS = 500 * NS_PER_MS;
static const double BACKWARD_SHARE = 2.0 / 3;

struct bucket {
	size_t begin, count; /* in values */
	struct mpi_request *request;
};

struct summing {
	struct gradients gradients;
	struct ranks *ranks;
	struct memory_block block;
	float *values;
	struct bucket *buckets; /* (bucket_count); owned */
	size_t bucket_count;
	size_t begun; /* of this round's */
	size_t open;  /* the first that is not over; those before it are */
	uint64_t began_ns, computed_ns, first_ns;
	uint64_t longest_ns; /* of the rounds that ended */
	bool going;          /* in a round */
	bool over;           /* somebody left, or is lost */
	unsigned crowd;      /* ranks of this node for each of its cores; 1 at least */
	struct mpi_round *round;
	struct mpi_request *meeting;
};

/* --- buckets ---------------------------------------------------------------------------------- */

static size_t summing_values(const struct gradients_options *options)
{
	return options->on_device ? 0 : (size_t)(options->bytes / sizeof(float));
}

static size_t summing_bucket_values(const struct gradients_options *options)
{
	const uint64_t values = summing_values(options);
	uint64_t most = options->bucket_bytes / sizeof(float);
	if (most == 0 || most > values)
		most = values;
	return (size_t)(most > INT_MAX ? INT_MAX : most);
}

static int summing_cut(struct summing *g, struct error *err)
{
	const size_t values = summing_values(&g->gradients.options);
	const size_t most = summing_bucket_values(&g->gradients.options);
	g->bucket_count = values > 0 ? (values + most - 1) / most : 0;
	g->buckets = calloc(g->bucket_count + 1, sizeof *g->buckets);
	if (!g->buckets)
		return error_set(err, -ENOMEM, "out of memory for %zu buckets", g->bucket_count);
	for (size_t i = 0; i < g->bucket_count; i++) {
		g->buckets[i].begin = i * most;
		g->buckets[i].count = i + 1 < g->bucket_count ? most : values - i * most;
	}
	if (values > 0 && memory_map(&g->block, values * sizeof(float), false))
		return error_set(err, -ENOMEM, "out of memory for gradients of %zu values", values);
	g->values = g->block.data;
	return 0;
}

/* What MPI may still write to stays mapped. */
static void summing_close(struct gradients *gradients)
{
	struct summing *const g = (struct summing *)gradients;
	if (!g->ranks->lost) {
		memory_unmap(&g->block);
		free(g->round);
	}
	free(g->buckets);
	free(g);
}

/* --- a round ---------------------------------------------------------------------------------- */

static void summing_begin(struct gradients *gradients, uint64_t began_ns, uint64_t computed_ns)
{
	struct summing *const g = (struct summing *)gradients;
	g->began_ns = began_ns;
	g->computed_ns = computed_ns;
	g->begun = g->open = 0;
	g->first_ns = 0;
	g->going = true;
}

/* When the backward pass has made a bucket. */
static uint64_t summing_due_ns(const struct summing *g, size_t bucket)
{
	if (!g->gradients.options.overlap || g->computed_ns <= g->began_ns)
		return g->computed_ns;
	const double made = (double)(bucket + 1) / (double)g->bucket_count;
	const double share = 1 - BACKWARD_SHARE + BACKWARD_SHARE * made;
	return g->began_ns + (uint64_t)(share * (double)(g->computed_ns - g->began_ns));
}

static int summing_start(struct summing *g, struct bucket *bucket, struct error *err)
{
	float *const values = g->values + bucket->begin;
	values[0] = gradients_mark(ranks_index(g->ranks));
	return g->ranks->plugin->sum(&bucket->request, values, bucket->count, err);
}

static int summing_check(const struct summing *g, const struct bucket *bucket, struct error *err)
{
	const float due = gradients_mark_sum(g->gradients.options.count);
	const float sum = g->values[bucket->begin];
	if (sum == due)
		return 0;
	return error_set(err, -EIO, "the exchange of gradients gave a wrong sum: %g for %g",
		(double)sum, (double)due);
}

static int summing_test(struct summing *g, struct error *err)
{
	while (g->open < g->begun) {
		struct bucket *const bucket = &g->buckets[g->open];
		int code = g->ranks->plugin->test(&bucket->request, err);
		if (code > 0)
			code = summing_check(g, bucket, err);
		else if (code == 0)
			return 0;
		if (code)
			return code;
		g->open++;
	}
	return 0;
}

/* A failed one is lost to the others. */
static int summing_lose(struct summing *g, int code)
{
	if (code) {
		g->over = true;
		g->going = false;
		g->ranks->lost = true;
	}
	return code;
}

static int summing_further(
	struct gradients *gradients, uint64_t now_ns, uint64_t *due_ns, struct error *err)
{
	struct summing *const g = (struct summing *)gradients;
	int code = 0;
	while (!code && g->begun < g->bucket_count && summing_due_ns(g, g->begun) <= now_ns) {
		if (g->begun == 0)
			g->first_ns = now_ns;
		code = summing_start(g, &g->buckets[g->begun], err);
		g->begun += !code;
	}
	if (!code)
		code = summing_test(g, err);
	*due_ns = g->begun < g->bucket_count ? summing_due_ns(g, g->begun) : UINT64_MAX;
	if (g->open < g->begun && now_ns + FURTHER_NS < *due_ns)
		*due_ns = now_ns + FURTHER_NS;
	return summing_lose(g, code);
}

static bool summing_stopped(const struct summing *g)
{
	return ranks_leads(g->ranks) && g->ranks->stop &&
	       atomic_load_explicit(g->ranks->stop, memory_order_relaxed);
}

/* MPI goes on only while it is looked at; ranks that share cores would take them from one another by looking. */
static void summing_pause(const struct summing *g, uint64_t begin_ns, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - begin_ns;
	const uint64_t share_ns = passed_ns / LOOK_SHARE * g->crowd;
	const uint64_t most_ns = (uint64_t)LOOK_MOST_NS * g->crowd;
	if (passed_ns > SPIN_NS)
		clock_sleep_until_ns(now_ns + (share_ns < most_ns ? share_ns : most_ns));
}

/* Until the buckets are over, and the meeting. */
static int summing_wait(struct summing *g, struct error *err)
{
	const uint64_t begin_ns = clock_now_ns();
	uint64_t last_ns = begin_ns + MORE_NS + ROUNDS * g->longest_ns;
	bool stopped = false;
	for (;;) {
		int code = summing_test(g, err);
		const uint64_t now_ns = clock_now_ns();
		if (!code && g->open == g->begun) {
			code = g->ranks->plugin->test(&g->meeting, err);
			if (code > 0)
				return 0;
		}
		if (!code)
			code = ranks_missing(g->ranks, err);
		if (code)
			return code;
		if (!stopped && summing_stopped(g)) {
			stopped = true;
			last_ns = now_ns + STOPPED_NS;
		}
		if (now_ns > last_ns)
			return stopped ? error_set(err, -EINTR, "stopped")
				       : error_set(err, -ETIMEDOUT,
						 "the other ranks have not come to the exchange for %.0f s",
						 (double)(now_ns - begin_ns) / (double)NS_PER_S);
		summing_pause(g, begin_ns, now_ns);
	}
}

static int summing_meet(
	struct summing *g, uint64_t computed_ns, enum gradients_leave why, struct error *err)
{
	uint64_t due_ns;
	g->computed_ns = g->computed_ns < computed_ns ? g->computed_ns : computed_ns;
	int code = summing_further(&g->gradients, computed_ns, &due_ns, err);
	if (code)
		return code;
	/* By the leader's clock, whose zero is long past. */
	*g->round = (struct mpi_round){
		.latest_ns = (double)((int64_t)computed_ns + g->ranks->offset_ns),
		.second_ns = -HUGE_VAL,
		.last = (int)g->ranks->world.rank,
		.leaves = (int)why};
	code = g->ranks->plugin->meet(&g->meeting, g->round, err);
	atomic_store(&g->gradients.waits, true);
	if (!code)
		code = summing_wait(g, err);
	atomic_store(&g->gradients.waits, false);
	const uint64_t took_ns = clock_now_ns() - g->began_ns;
	g->longest_ns = took_ns > g->longest_ns ? took_ns : g->longest_ns;
	g->going = false;
	g->over = g->over || (!code && g->round->leaves != GRADIENTS_STAY);
	return summing_lose(g, code);
}

static int summing_finish(struct gradients *gradients, uint64_t computed_ns,
	struct gradients_round *out, struct error *err)
{
	struct summing *const g = (struct summing *)gradients;
	const int code = summing_meet(g, computed_ns, GRADIENTS_STAY, err);
	if (code)
		return code;
	const uint64_t ended_ns = clock_now_ns();
	const double met_ns = g->round->latest_ns - (double)g->ranks->offset_ns;
	/* Clocks are known with an error: it is neither before this rank's own time, nor after the end. */
	uint64_t met = met_ns > (double)computed_ns ? (uint64_t)met_ns : computed_ns;
	met = met < ended_ns ? met : ended_ns;
	const double late_ns = g->round->latest_ns - g->round->second_ns;
	*out = (struct gradients_round){.first_ns = g->first_ns > 0 ? g->first_ns : computed_ns,
		.met_ns = met,
		.ended_ns = ended_ns,
		.late_ns = g->gradients.options.count > 1 && late_ns > 0 ? (uint64_t)late_ns : 0,
		.last = (unsigned)g->round->last,
		.leaves = (enum gradients_leave)g->round->leaves};
	return 0;
}

static int summing_leave(struct gradients *gradients, enum gradients_leave why, struct error *err)
{
	struct summing *const g = (struct summing *)gradients;
	if (g->over)
		return 0;
	const uint64_t now_ns = clock_now_ns();
	if (!g->going)
		summing_begin(gradients, now_ns, now_ns);
	return summing_meet(g, now_ns, why, err);
}

int gradients_open(
	struct gradients **out, const struct gradients_options *options, struct error *err)
{
	static const struct gradients_calls calls = {.close = summing_close,
		.begin = summing_begin,
		.further = summing_further,
		.finish = summing_finish,
		.leave = summing_leave};
	struct summing *const g = calloc(1, sizeof *g);
	*out = NULL;
	if (!g)
		return error_set(err, -ENOMEM, "out of memory for gradients");
	g->gradients.calls = &calls;
	g->gradients.options = *options;
	g->ranks = options->ranks;
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	g->crowd = cores > 0 ? (g->ranks->world.local_count + (unsigned)cores - 1) / (unsigned)cores
			     : 1;
	g->crowd = g->crowd > 0 ? g->crowd : 1;
	g->round = calloc(1, sizeof *g->round);
	const int code = g->round ? summing_cut(g, err)
				  : error_set(err, -ENOMEM, "out of memory for a round");
	if (code)
		summing_close(&g->gradients);
	else
		*out = &g->gradients;
	return code;
}
