/* The test double of NCCL: sums over devices of one process or two, waiting for one another on streams, in progress until asked,
 * given up when one gives up. */
#include "tests/device/double/double.h"
#include "tests/device/fixture.h"
#include "tests/device/launches.h"
#include "workloads/backend/cuda/nccl_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { RANKS = 4, COUNT = 1000 };

#define FUNCTIONS(X)              \
	X(ncclGetVersion)         \
	X(ncclGetUniqueId)        \
	X(ncclCommInitRank)       \
	X(ncclCommInitRankConfig) \
	X(ncclCommInitAll)        \
	X(ncclCommGetAsyncError)  \
	X(ncclCommAbort)          \
	X(ncclCommDestroy)        \
	X(ncclAllReduce)          \
	X(ncclGroupStart)         \
	X(ncclGroupEnd)
#define DECLARE(name) __typeof__(name) *name;
static struct {
	FUNCTIONS(DECLARE)
} nccl;

static int load(void **state)
{
	(void)state;
	void *const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
#define FIND(name) *(void **)(&nccl.name) = dlsym(library, #name);
	FUNCTIONS(FIND)
	assert_non_null(nccl.ncclAllReduce);
	setenv("MLBENCH_DOUBLE_DEVICES", "4", 1);
	return 0;
}

static int fresh(void **state)
{
	(void)state;
	unsetenv("MLBENCH_DOUBLE_FAIL");
	double_configure();
	return 0;
}

static int leaves_nothing(void **state)
{
	assert_int_equal(double_live(), 0);
	return fresh(state);
}

struct rank {
	int number;
	bool blocking;
	ncclUniqueId id;
	ncclComm_t comm;
	cudaStream_t stream;
	float *data, host[COUNT];
	int failed_line; /* asserting is the main thread's */
};

#define RANK_OK(rank, call)                                   \
	do {                                                  \
		if ((int)(call) != 0 && !(rank)->failed_line) \
			(rank)->failed_line = __LINE__;       \
	} while (0)

static ncclResult_t settle(ncclComm_t comm, ncclResult_t result)
{
	while (result == ncclInProgress) {
		(void)sched_yield();
		if (nccl.ncclCommGetAsyncError(comm, &result) != ncclSuccess)
			return ncclInternalError;
	}
	return result;
}

static void rank_open(struct rank *r)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	RANK_OK(r, cudaSetDevice(r->number));
	RANK_OK(r, cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
	RANK_OK(r, cudaMalloc((void **)&r->data, sizeof r->host));
	for (int i = 0; i < COUNT; i++)
		r->host[i] = (float)(i * (r->number + 1));
	RANK_OK(r, cudaMemcpyAsync(
			   r->data, r->host, sizeof r->host, cudaMemcpyHostToDevice, r->stream));
	if (r->blocking) {
		RANK_OK(r, nccl.ncclCommInitRank(&r->comm, RANKS, r->id, r->number));
		return;
	}
	config.blocking = 0;
	const ncclResult_t begun =
		nccl.ncclCommInitRankConfig(&r->comm, RANKS, r->id, r->number, &config);
	RANK_OK(r, settle(r->comm, begun));
}

static void rank_close(struct rank *r)
{
	RANK_OK(r, nccl.ncclCommAbort(r->comm));
	RANK_OK(r, cudaFree(r->data));
	RANK_OK(r, cudaStreamDestroy(r->stream));
}

/* Twice, so that what one sum leaves is what the next takes; ranks come at different times. */
static void *sum_twice(void *argument)
{
	struct rank *const r = argument;
	rank_open(r);
	for (int round = 0; round < 2; round++) {
		RANK_OK(r, launch_slow(r->stream, r->data, (unsigned)(RANKS - r->number) * 100000));
		const ncclResult_t begun = nccl.ncclAllReduce(
			r->data, r->data, COUNT, ncclFloat, ncclSum, r->comm, r->stream);
		RANK_OK(r, settle(r->comm, begun));
	}
	RANK_OK(r, cudaMemcpyAsync(
			   r->host, r->data, sizeof r->host, cudaMemcpyDeviceToHost, r->stream));
	RANK_OK(r, cudaStreamSynchronize(r->stream));
	return NULL;
}

/* Ranks from .. to-1; the others are in another process. */
static void run_some(struct rank *ranks, int from, int to, ncclUniqueId id, bool blocking)
{
	pthread_t threads[RANKS];
	for (int i = from; i < to; i++) {
		ranks[i] = (struct rank){.number = i, .blocking = blocking, .id = id};
		assert_int_equal(pthread_create(&threads[i], NULL, sum_twice, &ranks[i]), 0);
	}
	for (int i = from; i < to; i++)
		pthread_join(threads[i], NULL);
	for (int i = from; i < to; i++) {
		rank_close(&ranks[i]);
		assert_int_equal(ranks[i].failed_line, 0);
		for (int j = 1; j < COUNT; j++) /* (1 + 2 + 3 + 4) j, then four times that */
			assert_true(ranks[i].host[j] == (float)(10 * j * RANKS));
	}
}

static void sums_of_all_ranks(void **state)
{
	(void)state;
	int version = 0;
	assert_int_equal(nccl.ncclGetVersion(&version), ncclSuccess);
	assert_int_equal(version, DOUBLE_NCCL_VERSION);
	for (int blocking = 0; blocking < 2; blocking++) {
		struct rank *ranks = calloc(RANKS, sizeof *ranks);
		ncclUniqueId id;
		assert_int_equal(nccl.ncclGetUniqueId(&id), ncclSuccess);
		run_some(ranks, 0, RANKS, id, blocking);
		for (int i = 1; i < RANKS; i++)
			assert_memory_equal(ranks[0].host, ranks[i].host, sizeof ranks[0].host);
		free(ranks);
	}
}

static const char *other_half; /* the id, of this program as a second process */

static void the_other_half(void **state)
{
	(void)state;
	struct rank *ranks = calloc(RANKS, sizeof *ranks);
	ncclUniqueId id;
	memset(&id, 0, sizeof id);
	(void)strcpy(id.internal, other_half);
	run_some(ranks, RANKS / 2, RANKS, id, false);
	free(ranks);
}

static void ranks_of_two_processes(void **state)
{
	(void)state;
	ncclUniqueId id;
	pid_t other;
	int status = -1;
	assert_int_equal(nccl.ncclGetUniqueId(&id), ncclSuccess);
	char name[] = "test_double_nccl";
	char *const arguments[] = {name, id.internal, NULL};
	assert_int_equal(posix_spawn(&other, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
	struct rank *ranks = calloc(RANKS, sizeof *ranks);
	run_some(ranks, 0, RANKS / 2, id, false);
	free(ranks);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
}

static void a_group_from_one_thread(void **state)
{
	(void)state;
	ncclComm_t comms[2];
	cudaStream_t streams[2];
	float *data[2], value;
	assert_int_equal(nccl.ncclCommInitAll(comms, 2, NULL), ncclSuccess);
	for (int i = 0; i < 2; i++) {
		OK(cudaSetDevice(i));
		data[i] = on_device(256);
		OK(cudaStreamCreate(&streams[i]));
		OK(cudaMemset(data[i], 0, 256));
		OK(launch_add(streams[i], data[i], (float)(i + 1), 64));
	}
	assert_int_equal(nccl.ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < 2; i++) {
		OK(cudaSetDevice(i));
		assert_int_equal(nccl.ncclAllReduce(data[i], data[i], 64, ncclFloat, ncclSum,
					 comms[i], streams[i]),
			ncclSuccess);
	}
	assert_int_equal(nccl.ncclGroupEnd(), ncclSuccess);
	for (int i = 0; i < 2; i++) {
		OK(cudaSetDevice(i));
		OK(cudaStreamSynchronize(streams[i]));
		OK(cudaMemcpy(&value, data[i], sizeof value, cudaMemcpyDeviceToHost));
		assert_true(value == 3);
		assert_int_equal(nccl.ncclCommDestroy(comms[i]), ncclSuccess);
		OK(cudaStreamDestroy(streams[i]));
		OK(cudaFree(data[i]));
	}
}

/* One rank never comes: the others wait until they are given up. */
static void waiting_can_be_given_up(void **state)
{
	(void)state;
	ncclUniqueId id;
	ncclComm_t comm;
	ncclResult_t result = ncclSuccess;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = 0;
	OK(cudaSetDevice(0));
	assert_int_equal(nccl.ncclGetUniqueId(&id), ncclSuccess);
	assert_int_equal(nccl.ncclCommInitRankConfig(&comm, 2, id, 0, &config), ncclInProgress);
	assert_int_equal(nccl.ncclCommGetAsyncError(comm, &result), ncclSuccess);
	assert_int_equal(result, ncclInProgress);
	assert_int_equal(nccl.ncclCommAbort(comm), ncclSuccess);
	assert_int_not_equal(nccl.ncclCommAbort(comm), ncclSuccess);
}

static void *join_and_give_up(void *argument)
{
	struct rank *const r = argument;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = 0;
	RANK_OK(r, cudaSetDevice(r->number));
	(void)nccl.ncclCommInitRankConfig(&r->comm, RANKS, r->id, r->number, &config);
	for (int i = 0; i < 50 * r->number;
		i++) { /* the first gives up under the eyes of the others */
		ncclResult_t result;
		RANK_OK(r, nccl.ncclCommGetAsyncError(r->comm, &result));
		(void)sched_yield();
	}
	RANK_OK(r, nccl.ncclCommAbort(r->comm));
	return NULL;
}

/* One gives up while another joins: ThreadSanitizer sees who looks without the lock. */
static void joining_and_giving_up_at_once(void **state)
{
	(void)state;
	for (int round = 0; round < 50; round++) {
		struct rank ranks[RANKS];
		pthread_t threads[RANKS];
		ncclUniqueId id;
		assert_int_equal(nccl.ncclGetUniqueId(&id), ncclSuccess);
		for (int i = 0; i < RANKS; i++) {
			ranks[i] = (struct rank){.number = i, .id = id};
			assert_int_equal(
				pthread_create(&threads[i], NULL, join_and_give_up, &ranks[i]), 0);
		}
		for (int i = 0; i < RANKS; i++)
			pthread_join(threads[i], NULL);
		for (int i = 0; i < RANKS; i++)
			assert_int_equal(ranks[i].failed_line, 0);
	}
}

static void *reduce_alone(void *argument)
{
	struct rank *const r = argument;
	rank_open(r);
	if (r->number > 0)
		return NULL; /* joins, and sums nothing */
	const ncclResult_t begun =
		nccl.ncclAllReduce(r->data, r->data, COUNT, ncclFloat, ncclSum, r->comm, r->stream);
	RANK_OK(r, settle(r->comm, begun));
	return NULL;
}

static void a_sum_can_be_given_up(void **state)
{
	(void)state;
	struct rank *ranks = calloc(RANKS, sizeof *ranks);
	pthread_t threads[RANKS];
	ncclUniqueId id;
	assert_int_equal(nccl.ncclGetUniqueId(&id), ncclSuccess);
	for (int i = 0; i < RANKS; i++) {
		ranks[i] = (struct rank){.number = i, .id = id};
		assert_int_equal(pthread_create(&threads[i], NULL, reduce_alone, &ranks[i]), 0);
	}
	for (int i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
	OK(cudaSetDevice(0));
	assert_int_equal(cudaStreamQuery(ranks[0].stream), cudaErrorNotReady);
	(void)cudaGetLastError();
	for (int i = 0; i < RANKS; i++) {
		OK(cudaSetDevice(i));
		rank_close(&ranks[i]);
		assert_int_equal(ranks[i].failed_line, 0);
	}
	free(ranks);
}

static void misuse_is_found(void **state)
{
	(void)state;
	ncclUniqueId id;
	ncclComm_t comm;
	float host[4];
	OK(cudaSetDevice(0));
	float *data = on_device(16);
	assert_int_equal(nccl.ncclGetUniqueId(&id), ncclSuccess);
	assert_int_equal(nccl.ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
	assert_int_equal(nccl.ncclAllReduce(host, data, 4, ncclFloat, ncclSum, comm, NULL),
		ncclInvalidArgument);
	assert_int_equal(nccl.ncclAllReduce(data, data, 5, ncclFloat, ncclSum, comm, NULL),
		ncclInvalidArgument);
	OK(cudaSetDevice(1)); /* its default stream is another device's */
	assert_int_equal(nccl.ncclAllReduce(data, data, 4, ncclFloat, ncclSum, comm, NULL),
		ncclInvalidUsage);
	OK(cudaSetDevice(0));
	setenv("MLBENCH_DOUBLE_FAIL", "ncclAllReduce:1,ncclGetUniqueId:1", 1);
	double_configure();
	assert_int_equal(nccl.ncclAllReduce(data, data, 4, ncclFloat, ncclSum, comm, NULL),
		ncclUnhandledCudaError);
	assert_int_equal(nccl.ncclGetUniqueId(&id), ncclSystemError);
	assert_int_equal(nccl.ncclCommDestroy(comm), ncclSuccess);
	OK(cudaFree(data));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, leaves_nothing)

int main(int count, char **arguments)
{
	const struct CMUnitTest half[] = {TEST(the_other_half)};
	const struct CMUnitTest tests[] = {
		TEST(sums_of_all_ranks),
		TEST(ranks_of_two_processes),
		TEST(a_group_from_one_thread),
		TEST(waiting_can_be_given_up),
		TEST(joining_and_giving_up_at_once),
		TEST(a_sum_can_be_given_up),
		TEST(misuse_is_found),
	};
	other_half = count > 1 ? arguments[1] : NULL;
	return other_half ? cmocka_run_group_tests(half, load, NULL)
			  : cmocka_run_group_tests(tests, load, NULL);
}
