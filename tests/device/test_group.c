/* Devices that train together: the sum is right on each of them, step after step, and nobody hangs when the run stops, when one
 * fails or never comes, at any moment.  On the double there are four devices; on a real node, what there is. */
#include "tests/device/fixture.h"
#include "tests/measuring.h"

#ifdef MLBENCH_CUDA_DOUBLE
#include "tests/device/double/double.h"
#endif

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "workloads/backend/cuda/device_group.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, COUNT = 10007, MS = 1000000 };

enum misfortune {
	MISFORTUNE_NONE,
	MISFORTUNE_ABSENT,  /* never joins: its device failed to open */
	MISFORTUNE_SILENT,  /* joins, and stops exchanging after some rounds */
	MISFORTUNE_FAILING, /* the same, and says so */
};

struct party {
	struct cuda_group *group;
	unsigned count, rounds;
	atomic_bool stop;
	enum misfortune misfortune;
	unsigned unlucky, after; /* which rank, and after how many rounds */
};

struct member {
	struct party *party;
	unsigned rank;
	unsigned done; /* rounds whose sum was right */
	int code;
	bool joined, wrong;
	pthread_t thread;
};

static unsigned devices_here(void)
{
	int count = 0;
	if (cudaGetDeviceCount(&count) != cudaSuccess)
		(void)cudaGetLastError();
	return (unsigned)(count < RANKS ? count : RANKS);
}

static void need_devices(unsigned count)
{
	char why[256];
	if (devices_here() < count || !nccl_find(why, sizeof why)) {
		print_message("skipped: it takes %u devices and NCCL\n", count);
		skip();
	}
}

static float value_of(unsigned rank, unsigned round, size_t i)
{
	return (float)(1 + rank) * (float)(1 + round % 7) + (float)(i % 13);
}

static float sum_of(unsigned ranks, unsigned round, size_t i)
{
	float sum = 0;
	for (unsigned rank = 0; rank < ranks; rank++)
		sum += value_of(rank, round, i);
	return sum;
}

/* Waits for the stream without blocking in the runtime; false: the run was stopped. */
static bool drained(const struct party *p, cudaStream_t stream)
{
	for (;;) {
		const cudaError_t code = cudaStreamQuery(stream);
		if (code != cudaErrorNotReady)
			return code == cudaSuccess;
		(void)cudaGetLastError();
		if (atomic_load(&p->stop))
			return false;
		clock_sleep_until_ns(clock_now_ns() + MS / 20);
	}
}

/* Small whole numbers: their sums are exact in any order. */
static bool exchange(struct member *m, float *host, float *device, cudaStream_t stream)
{
	const struct party *p = m->party;
	struct error err = {""};
	for (size_t i = 0; i < COUNT; i++)
		host[i] = value_of(m->rank, m->done, i);
	if (cudaMemcpyAsync(device, host, COUNT * sizeof *host, cudaMemcpyHostToDevice, stream) !=
		cudaSuccess)
		return false;
	m->code = group_all_reduce(p->group, m->rank, device, COUNT, stream, &err);
	if (m->code ||
		cudaMemcpyAsync(host, device, COUNT * sizeof *host, cudaMemcpyDeviceToHost,
			stream) != cudaSuccess ||
		!drained(p, stream))
		return false;
	for (size_t i = 0; i < COUNT; i++)
		m->wrong = m->wrong || host[i] != sum_of(p->count, m->done, i);
	return true;
}

static void exchange_rounds(struct member *m, float *host, float *device, cudaStream_t stream)
{
	struct party *p = m->party;
	for (; m->done < p->rounds; m->done++) {
		const bool unlucky = m->rank == p->unlucky && m->done >= p->after;
		if (unlucky && p->misfortune == MISFORTUNE_FAILING) {
			group_fail(p->group);
			return;
		}
		/* As the program does it: a failure stops the run. */
		while (unlucky && p->misfortune == MISFORTUNE_SILENT && !atomic_load(&p->stop))
			clock_sleep_until_ns(clock_now_ns() + MS);
		if (!exchange(m, host, device, stream))
			return;
	}
}

static void *take_part(void *context)
{
	struct member *m = context;
	struct party *p = m->party;
	struct error err = {""};
	if (p->misfortune == MISFORTUNE_ABSENT && m->rank == p->unlucky) {
		group_fail(p->group);
		return NULL;
	}
	float *host =
		NULL; /* pinned: copies to other memory would wait for the stream, and so for the others */
	float *device = NULL;
	cudaStream_t stream = NULL;
	if (cudaSetDevice((int)m->rank) != cudaSuccess ||
		cudaMallocHost((void **)&host, COUNT * sizeof *host) != cudaSuccess ||
		cudaMalloc((void **)&device, COUNT * sizeof *device) != cudaSuccess ||
		cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
		m->wrong = true;
	m->code = group_join(p->group, m->rank, (int)m->rank, &p->stop, &err);
	m->joined = m->code == 0;
	if (m->joined) {
		exchange_rounds(m, host, device, stream);
		/* A device that gives up makes the run stop. */
		if (m->done < p->rounds)
			atomic_store(&p->stop, true);
		group_leave(p->group, m->rank);
	}
	(void)cudaStreamSynchronize(stream);
	(void)cudaStreamDestroy(stream);
	(void)cudaFree(device);
	(void)cudaFreeHost(host);
	(void)cudaGetLastError();
	return NULL;
}

static void run(struct party *p, struct member *members, void *(*part)(void *context),
	uint64_t stop_after_ns)
{
	struct error err = {""};
	if (group_open(&p->group, p->count, NULL, &err))
		fail_msg("%s", err.text);
	const uint64_t begin = clock_now_ns();
	for (unsigned i = 0; i < p->count; i++) {
		members[i] = (struct member){.party = p, .rank = i};
		assert_int_equal(pthread_create(&members[i].thread, NULL, part, &members[i]), 0);
	}
	if (stop_after_ns > 0) {
		clock_sleep_until_ns(begin + stop_after_ns);
		atomic_store(&p->stop, true);
	}
	for (unsigned i = 0; i < p->count; i++)
		assert_int_equal(pthread_join(members[i].thread, NULL), 0);
	for (unsigned i = 0; i < p->count; i++)
		assert_false(members[i].wrong);
	assert_measured(clock_now_ns() - begin < 30 * NS_PER_S);
	group_close(p->group);
}

static void every_device_has_the_sum(void **state)
{
	(void)state;
	need_devices(2);
	for (unsigned count = 2; count <= devices_here(); count++) {
		struct party p = {.count = count, .rounds = 30};
		struct member members[RANKS];
		run(&p, members, take_part, 0);
		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(members[i].code, 0);
			assert_int_equal(members[i].done, 30);
		}
	}
}

static void a_stop_at_any_moment_hangs_nobody(void **state)
{
	(void)state;
	need_devices(2);
	for (unsigned i = 0; i < 12; i++) {
		struct party p = {.count = devices_here(), .rounds = 1000000};
		struct member members[RANKS];
		run(&p, members, take_part, (1 + i * i) * (uint64_t)MS / 2);
	}
}

/* One is lost while the others wait for it on their streams. */
static void who_goes_silent_hangs_nobody(void **state)
{
	(void)state;
	need_devices(2);
	for (unsigned i = 0; i < 4; i++) {
		struct party p = {.count = devices_here(),
			.rounds = 100,
			.misfortune = MISFORTUNE_SILENT,
			.unlucky = i % devices_here(),
			.after = i};
		struct member members[RANKS];
		run(&p, members, take_part, 50 * (uint64_t)MS);
		for (unsigned k = 0; k < p.count; k++)
			assert_true(members[k].done <= i);
	}
}

static void who_fails_ends_it_for_all(void **state)
{
	(void)state;
	need_devices(2);
	for (unsigned i = 0; i < 4; i++) {
		struct party p = {.count = devices_here(),
			.rounds = 100,
			.misfortune = MISFORTUNE_FAILING,
			.unlucky = i % devices_here(),
			.after = i};
		struct member members[RANKS];
		run(&p, members, take_part, 0);
		for (unsigned k = 0; k < p.count; k++)
			assert_true(members[k].done <= i + 1);
	}
}

static void who_never_comes_is_not_waited_for(void **state)
{
	(void)state;
	need_devices(2);
	for (unsigned i = 0; i < 3; i++) {
		struct party p = {.count = devices_here(),
			.rounds = 5,
			.misfortune = MISFORTUNE_ABSENT,
			.unlucky = i % devices_here()};
		struct member members[RANKS];
		run(&p, members, take_part, 0);
		for (unsigned k = 0; k < p.count; k++) {
			assert_false(members[k].joined);
			assert_int_equal(members[k].code, k == p.unlucky ? 0 : -ECANCELED);
		}
	}
}

/* Joins as the others do; then rank 0 alone exchanges for the first time. */
static void *warm_up_alone(void *context)
{
	struct member *m = context;
	struct party *p = m->party;
	struct error err = {""};
	float *device = NULL;
	cudaStream_t stream = NULL;
	if (cudaSetDevice((int)m->rank) != cudaSuccess ||
		cudaMalloc((void **)&device, COUNT * sizeof *device) != cudaSuccess ||
		cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
		m->wrong = true;
	m->code = group_join(p->group, m->rank, (int)m->rank, &p->stop, &err);
	m->joined = m->code == 0;
	if (m->joined && m->rank > 0)
		group_fail(p->group);
	else if (m->joined)
		m->code = group_warm_up(p->group, m->rank, device, COUNT, stream, &err);
	if (m->joined)
		group_leave(p->group, m->rank);
	(void)cudaStreamSynchronize(stream);
	(void)cudaStreamDestroy(stream);
	(void)cudaFree(device);
	(void)cudaGetLastError();
	return NULL;
}

static void a_first_exchange_can_be_given_up(void **state)
{
	(void)state;
	need_devices(2);
	struct party p = {.count = 2};
	struct member members[RANKS];
	run(&p, members, warm_up_alone, 0);
	/* Whoever fails may do so while the other still joins. */
	assert_int_equal(members[0].code, -ECANCELED);
}

static void senseless_groups_are_refused(void **state)
{
	(void)state;
	struct cuda_group *group;
	struct error err;
	assert_int_equal(group_open(&group, 1, NULL, &err), -EINVAL);
	assert_null(group);
	assert_int_equal(group_open(&group, 1000, NULL, &err), -EINVAL);
	group_close(NULL);
	char version[64] = "";
	nccl_version(version, sizeof version);
	assert_true(strlen(version) > 0);
	print_message("NCCL: %s\n", version);
}

static void two_are_deterministic(void **state)
{
	(void)state;
	need_devices(2);
	for (unsigned count = 2; count <= 3; count++) {
		struct cuda_group *group;
		struct error err;
		assert_int_equal(group_open(&group, count, NULL, &err), 0);
		assert_int_equal(group_is_deterministic(group), count == 2);
		group_close(group);
	}
}

int main(void)
{
#ifdef MLBENCH_CUDA_DOUBLE
	(void)setenv("MLBENCH_DOUBLE_DEVICES", "4", 1);
	double_configure();
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_device_has_the_sum),
		cmocka_unit_test(a_stop_at_any_moment_hangs_nobody),
		cmocka_unit_test(who_goes_silent_hangs_nobody),
		cmocka_unit_test(who_fails_ends_it_for_all),
		cmocka_unit_test(who_never_comes_is_not_waited_for),
		cmocka_unit_test(a_first_exchange_can_be_given_up),
		cmocka_unit_test(senseless_groups_are_refused),
		cmocka_unit_test(two_are_deterministic),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
