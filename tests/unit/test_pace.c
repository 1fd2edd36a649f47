/* A storage k times as slow, in virtual time: storages bound by bandwidth, by latency and by both, read
 * by a reader that keeps `depth` files in flight, give k times less; one that is never kept busy only
 * takes longer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "workloads/source/limiter.h"

#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 32, FILE_BYTES = 100000 };

struct storage {
	uint64_t latency_ns; /* of a file, overlapping */
	uint64_t byte_ps;    /* of the one link; 0: no link */
	uint64_t free_ns;
};

struct file {
	bool in_engine;
	uint64_t submitted_ns, due_ns; /* completed by the engine, or released */
	uint64_t bytes;
};

struct loop {
	struct storage storage;
	struct pace pace;
	unsigned depth;
	uint64_t think_ns; /* between release and the next submission */
	bool sizes_vary;
	struct rng rng;
	struct file files[DEPTH_MAX];
	unsigned in_engine;
	uint64_t submitted_ns;
	uint64_t flight_ns, released, released_bytes;
};

static uint64_t at_least(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void submit(struct loop *l, struct file *file, uint64_t now_ns)
{
	struct storage *s = &l->storage;
	file->bytes = FILE_BYTES;
	if (l->sizes_vary)
		file->bytes += rng_below(&l->rng, FILE_BYTES);
	file->in_engine = true;
	file->submitted_ns = now_ns;
	s->free_ns = at_least(s->free_ns, now_ns) + file->bytes * s->byte_ps / 1000;
	file->due_ns = at_least(now_ns + s->latency_ns, s->free_ns);
	l->submitted_ns = now_ns;
	l->in_engine++;
}

static void complete(struct loop *l, struct file *file, uint64_t now_ns)
{
	pace_learn(&l->pace, now_ns, l->submitted_ns, 1, file->bytes, l->in_engine == l->depth);
	l->in_engine--;
	file->in_engine = false;
	file->due_ns = pace_release_ns(&l->pace, file->submitted_ns, now_ns, file->bytes);
	assert_true(file->due_ns >= now_ns);
}

/* Counts from a second on until `seconds`. */
static void run(struct loop *l, double seconds)
{
	const uint64_t end_ns = (uint64_t)(seconds * (double)NS_PER_S);
	rng_init(&l->rng, 5, 0);
	for (unsigned i = 0; i < l->depth; i++)
		submit(l, &l->files[i], i);
	for (uint64_t now_ns = 0; now_ns < end_ns;) {
		struct file *next = &l->files[0];
		for (unsigned i = 1; i < l->depth; i++)
			if (l->files[i].due_ns < next->due_ns)
				next = &l->files[i];
		now_ns = next->due_ns;
		if (next->in_engine) {
			complete(l, next, now_ns);
			continue;
		}
		if (now_ns >= NS_PER_S) {
			l->released++;
			l->released_bytes += next->bytes;
			l->flight_ns += now_ns - next->submitted_ns;
		}
		submit(l, next, now_ns + l->think_ns);
	}
}

/* How many times fewer bytes come with the factor than without. */
static double slowdown(const struct loop *shape, double factor)
{
	struct loop plain = *shape;
	struct loop slow = *shape;
	plain.pace.factor = 1;
	slow.pace.factor = factor;
	run(&plain, 4);
	run(&slow, 4);
	return (double)plain.released_bytes / (double)slow.released_bytes;
}

static void check(const char *name, const struct loop *shape)
{
	static const double factors[] = {1.05, 1.5, 4};
	for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
		const double got = slowdown(shape, factors[i]);
		print_message("%s, depth %u: %.3f for %.3g\n", name, shape->depth, got, factors[i]);
		assert_true(fabs(got / factors[i] - 1) < 0.03);
	}
}

static void throughput_falls_by_the_factor(void **state)
{
	(void)state;
	static const unsigned depths[] = {1, 2, 8, 32};
	for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
		struct loop loop = {.depth = depths[i], .storage = {.byte_ps = 10000}};
		check("bandwidth", &loop);
		loop.sizes_vary = true;
		check("bandwidth, sizes vary", &loop);
		loop = (struct loop){.depth = depths[i], .storage = {.latency_ns = 3 * NS_PER_MS}};
		check("latency", &loop);
		loop.storage.byte_ps = 1000;
		check("latency, then bandwidth", &loop);
	}
}

/* Four files in flight now and then, of eight that might be: nothing is learnt, and times in flight
 * alone are stretched. */
static void an_idle_storage_only_takes_longer(void **state)
{
	(void)state;
	struct loop loop = {
		.depth = 1,
		.think_ns = 20 * NS_PER_MS,
		.storage = {.latency_ns = NS_PER_MS},
		.pace = {.factor = 3},
	};
	run(&loop, 4);
	assert_true(loop.pace.learned);
	assert_true(pace_ns_per_byte(&loop.pace) == 0);
	assert_int_equal(loop.flight_ns / loop.released, 3 * NS_PER_MS);
}

static void it_learns_for_a_while_only(void **state)
{
	(void)state;
	struct pace pace = {.factor = 2};
	assert_int_equal(pace_release_ns(&pace, 100, 200, 10), 200); /* undisturbed */
	pace_learn(&pace, 1000, 900, 1, 10, true);                   /* the first has no gap */
	pace_learn(&pace, 2000, 1010, 2, 100, true);                 /* 10 ns a byte */
	pace_learn(&pace, 9000, 2010, 1, 100, false);                /* not busy */
	pace_learn(&pace, 19000, 18000, 1, 100, true); /* the reader had nothing to read */
	assert_false(pace.learned);
	assert_true(fabs(pace_ns_per_byte(&pace) - 10) < 1e-9);
	pace_learn(&pace, 1000 + PACE_LEARN_NS, PACE_LEARN_NS, 1, 1, false);
	assert_true(pace.learned);
	pace_learn(&pace, 2000 + PACE_LEARN_NS, 1001 + PACE_LEARN_NS, 1, 1, true);
	assert_true(fabs(pace_ns_per_byte(&pace) - 10) < 1e-9);
	const uint64_t now = NS_PER_S;
	assert_int_equal(pace_release_ns(&pace, now, now + 5, 10), now + 200);
	assert_int_equal(
		pace_release_ns(&pace, now, now + 5, 10), now + 400); /* behind the first */
	assert_int_equal(pace_release_ns(&pace, now + 10, now + 5010, 1), now + 10010);
	memset(&pace, 0, sizeof pace);
	pace_learn(&pace, 1, 0, PACE_LEARN_FILES, 1, true);
	assert_true(pace.learned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(throughput_falls_by_the_factor),
		cmocka_unit_test(an_idle_storage_only_takes_longer),
		cmocka_unit_test(it_learns_for_a_while_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
