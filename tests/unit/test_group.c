/* Emulated devices that train together: all begin an exchange when the last has computed, whatever the order in which
 * they come; and nobody hangs when the run stops or one of them goes away, at any moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/config/shape.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/emulated.h"
#include "workloads/model/emulated_steps.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES = 5, ROUNDS = 400, US = 1000, MS = 1000000 };

/* --- the barrier ---------------------------------------------------------------------------------- */

struct meeting {
	struct emulated_group *group;
	uint64_t seed;
	unsigned count;
	atomic_bool stop;
	atomic_uint wrong;
	atomic_uint made;  /* rounds, of all devices together */
	unsigned required; /* of them, before it is stopped */
};

struct device {
	struct meeting *meeting;
	unsigned index;
	unsigned leaves_after; /* rounds */
	unsigned rounds;
	pthread_t thread;
};

/* What device i says in a round: a function of both, so that everybody can tell what must come of it. */
static uint64_t computed_at(const struct meeting *m, unsigned device, unsigned round)
{
	return 1 + rng_mix(m->seed + device, round) % 1000;
}

static uint64_t takes(const struct meeting *m, unsigned device, unsigned round)
{
	return rng_mix(m->seed + 100 + device, round) % 50;
}

static void check_round(struct meeting *m, unsigned round, const struct emulated_exchange *exchange)
{
	uint64_t latest = 0;
	uint64_t longest = 0;
	for (unsigned i = 0; i < m->count; i++) {
		latest = computed_at(m, i, round) > latest ? computed_at(m, i, round) : latest;
		longest = takes(m, i, round) > longest ? takes(m, i, round) : longest;
	}
	m->wrong += exchange->begin_ns != latest || exchange->end_ns != latest + longest;
}

static void *meet(void *context)
{
	struct device *d = context;
	struct meeting *m = d->meeting;
	struct rng rng;
	rng_init(&rng, m->seed, 7 + d->index);
	while (d->rounds < d->leaves_after) {
		struct emulated_exchange exchange;
		if (rng_below(&rng, 8) == 0)
			clock_sleep_until_ns(clock_now_ns() + rng_below(&rng, 50) * US);
		if (!emulated_group_meet(m->group, computed_at(m, d->index, d->rounds),
			    takes(m, d->index, d->rounds), &m->stop, NULL, &exchange))
			break;
		check_round(m, d->rounds++, &exchange);
		m->made++;
	}
	return NULL;
}

static void start_meeting(struct meeting *m, struct device *devices, unsigned count, uint64_t seed)
{
	*m = (struct meeting){.seed = seed, .count = count};
	assert_int_equal(emulated_group_open(&m->group, count), 0);
	for (unsigned i = 0; i < count; i++)
		devices[i] = (struct device){.meeting = m, .index = i, .leaves_after = ROUNDS};
}

static void run_meeting(struct meeting *m, struct device *devices, uint64_t stop_after_ns)
{
	for (unsigned i = 0; i < m->count; i++)
		assert_int_equal(pthread_create(&devices[i].thread, NULL, meet, &devices[i]), 0);
	if (stop_after_ns > 0) {
		const uint64_t most_ns = clock_now_ns() + 60 * NS_PER_S;
		do
			clock_sleep_until_ns(clock_now_ns() + stop_after_ns);
		while (m->made < m->required && clock_now_ns() < most_ns);
		atomic_store(&m->stop, true);
	}
	for (unsigned i = 0; i < m->count; i++)
		assert_int_equal(pthread_join(devices[i].thread, NULL), 0);
	assert_int_equal(m->wrong, 0);
	emulated_group_close(m->group);
}

static void all_exchange_when_the_last_has_computed(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= DEVICES; count++) {
		struct meeting m;
		struct device devices[DEVICES];
		start_meeting(&m, devices, count, count);
		run_meeting(&m, devices, 0);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(devices[i].rounds, ROUNDS);
	}
}

static void a_stop_at_any_moment_ends_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct meeting m;
		struct device devices[DEVICES];
		start_meeting(&m, devices, 2 + i % 4, i);
		for (unsigned d = 0; d < m.count; d++)
			devices[d].leaves_after = 1000000;
		const uint64_t begin = clock_now_ns();
		run_meeting(&m, devices, (1 + i * 37) * 10 * US);
		assert_measured(clock_now_ns() - begin < NS_PER_S);
	}
}

/* One that fails leaves; the others wait for it until the run is stopped. */
static void who_goes_away_hangs_nobody(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct meeting m;
		struct device devices[DEVICES];
		start_meeting(&m, devices, 3, i);
		devices[i % 3].leaves_after = i;
		m.required = 3 * i;
		run_meeting(&m, devices, 20 * MS);
		for (unsigned d = 0; d < 3; d++)
			assert_int_equal(devices[d].rounds, i);
	}
}

/* --- backends that meet ------------------------------------------------------------------------------ */

static void configure(struct config *config, const char *const *settings)
{
	struct error err;
	config_init(config);
	for (; *settings; settings++)
		assert_int_equal(config_set(config, *settings, &err), 0);
}

struct phases {
	uint64_t at_ns[3]; /* last time of each */
	unsigned count[3];
};

static void enter(void *context, enum group_phase phase, uint64_t at_ns)
{
	struct phases *p = context;
	p->at_ns[phase] = at_ns;
	p->count[phase]++;
}

struct trainer {
	const struct config *config;
	const struct backend_group *group;
	unsigned index, steps;
	double slowdown;
	struct phases phases;
	struct step_result last;
	uint64_t begin_ns, end_ns;
	int code;
	atomic_bool *stop;
	pthread_t thread;
};

static void *train(void *context)
{
	struct trainer *t = context;
	struct error err;
	struct backend *backend;
	const struct group_watch watch = {enter, &t->phases};
	t->code = backend_open(&backend,
		&(const struct backend_options){.config = t->config,
			.sample_elements = 12,
			.class_count = 3,
			.device_index = t->index,
			.device_count = 2,
			.group = t->group,
			.watch = &watch,
			.stop = t->stop},
		&err);
	if (t->code)
		return NULL;
	backend->slowdown = t->slowdown;
	t->begin_ns = clock_now_ns();
	const struct batch_view view = {.size = backend->batch_size};
	for (unsigned i = 0; i < t->steps && !t->code; i++)
		t->code = backend_step(backend, &view, &t->last, &err);
	t->end_ns = clock_now_ns();
	backend_close(backend);
	return NULL;
}

/* Two devices of a group that step five times: one takes 4 ms, the other 24. */
static void step_unlike(
	struct backend_group *group, const struct config *config, struct trainer trainers[2])
{
	atomic_bool stop = false;
	for (unsigned i = 0; i < 2; i++) {
		trainers[i] = (struct trainer){.config = config,
			.group = group,
			.index = i,
			.steps = 5,
			.slowdown = i ? 6 : 1,
			.stop = &stop};
		assert_int_equal(pthread_create(&trainers[i].thread, NULL, train, &trainers[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_join(trainers[i].thread, NULL), 0);
}

/* The exchange takes 3 ms: each step of either lasts 27.  A node that is busy wakes the quick one so late that it has nothing to
 * wait for: then they step again. */
static void the_slowest_sets_the_pace(void **state)
{
	(void)state;
	enum { TRIES = 50 };
	static const char *const settings[] = {"step.backend=emulated", "step.time=4ms",
		"step.device=custom", "step.model=custom", "step.devices=2", "sync.latency=1500us",
		NULL};
	struct config config;
	struct error err;
	struct trainer trainers[2];
	bool waited = false;
	configure(&config, settings);
	for (int try = 0; try < TRIES && !waited; try++) {
		struct backend_group *group;
		assert_int_equal(backend_group_open(&group, &config, NULL, &err), 0);
		step_unlike(group, &config, trainers);
		/* One that begins late finds the other well on its way. */
		const uint64_t begin_ns = trainers[0].begin_ns < trainers[1].begin_ns
						  ? trainers[0].begin_ns
						  : trainers[1].begin_ns;
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(trainers[i].code, 0);
			assert_int_equal(trainers[i].phases.count[GROUP_EXCHANGES], 5);
			assert_int_equal(trainers[i].phases.count[GROUP_COMPUTES], 5);
			assert_true(trainers[i].end_ns - begin_ns >= 5 * 27 * MS - 4 * MS);
			assert_true(trainers[i].last.sync_begin_ns > 0);
		}
		/* Both exchange at once; the quick one waits for the other. */
		assert_int_equal(trainers[0].phases.at_ns[GROUP_EXCHANGES],
			trainers[1].phases.at_ns[GROUP_EXCHANGES]);
		assert_int_equal(trainers[0].phases.at_ns[GROUP_COMPUTES],
			trainers[1].phases.at_ns[GROUP_COMPUTES]);
		assert_int_equal(trainers[0].last.device_ns - trainers[0].last.sync_ns, 4 * MS);
		assert_int_equal(trainers[1].last.device_ns - trainers[1].last.sync_ns, 24 * MS);
		waited = trainers[0].phases.count[GROUP_WAITS] >= 4 &&
			 trainers[1].last.sync_ns < trainers[0].last.sync_ns &&
			 trainers[1].last.sync_ns == 3 * MS;
		backend_group_close(group);
	}
	assert_true(waited);
	config_release(&config);
}

/* --- what it costs, and who can -------------------------------------------------------------------------- */

static void the_exchange_costs_what_a_ring_costs(void **state)
{
	(void)state;
	static const char *const settings[] = {"step.backend=emulated", "step.model=resnet50",
		"step.devices=4", "sync.bandwidth=10GB/s", "sync.latency=10us", NULL};
	struct config config;
	configure(&config, settings);
	const double bytes = model_gradient_bytes(&config);
	assert_true(bytes > 100e6 && bytes < 104e6);
	assert_true(fabs(emulated_exchange_ns(&config) / 1e9 -
			    all_reduce_ring_seconds(bytes, 4, 10e9, 10e-6)) < 1e-9);
	struct error err;
	assert_int_equal(config_set(&config, "step.devices=1", &err), 0);
	assert_true(emulated_exchange_ns(&config) <= 0);
	assert_int_equal(config_set(&config, "step.devices=3", &err), 0);
	assert_int_equal(config_set(&config, "sync.bandwidth=0", &err), 0);
	assert_true(fabs(emulated_exchange_ns(&config) - 40000) < 1e-3);
	config_release(&config);
}

static void who_has_one_device_refuses_two(void **state)
{
	(void)state;
	static const char *const refused[] = {"null", "openblas"};
	for (size_t i = 0; i < 2; i++) {
		struct config config;
		struct error err;
		char setting[64];
		config_init(&config);
		(void)snprintf(setting, sizeof setting, "step.backend=%s", refused[i]);
		assert_int_equal(config_set(&config, setting, &err), 0);
		assert_int_equal(backend_validate(&config, &err), 0);
		assert_int_equal(config_set(&config, "step.devices=2", &err), 0);
		assert_int_equal(backend_validate(&config, &err), -EINVAL);
		assert_non_null(strstr(err.text, "step.devices = 2"));
		assert_non_null(strstr(err.text, refused[i]));
		struct backend_group *group;
		assert_int_equal(backend_group_open(&group, &config, NULL, &err), -EINVAL);
		assert_null(group);
		config_release(&config);
	}
}

static void a_bandwidth_needs_a_size(void **state)
{
	(void)state;
	static const char *const settings[] = {"step.backend=emulated", "step.model=custom",
		"step.device=custom", "step.time=1ms", "step.devices=2", "sync.latency=1ms", NULL};
	struct config config;
	struct error err;
	configure(&config, settings);
	assert_int_equal(backend_validate(&config, &err), 0);
	assert_int_equal(config_set(&config, "sync.bandwidth=1GB/s", &err), 0);
	assert_int_equal(backend_validate(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "sync.bandwidth"));
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_exchange_when_the_last_has_computed),
		cmocka_unit_test(a_stop_at_any_moment_ends_it),
		cmocka_unit_test(who_goes_away_hangs_nobody),
		cmocka_unit_test(the_slowest_sets_the_pace),
		cmocka_unit_test(the_exchange_costs_what_a_ring_costs),
		cmocka_unit_test(who_has_one_device_refuses_two),
		cmocka_unit_test(a_bandwidth_needs_a_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
