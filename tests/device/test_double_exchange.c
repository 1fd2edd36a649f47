/* Devices that sum their gradients in buckets: when each sum is enqueued, on which stream, and that the weights have the same bits
 * however the gradients are cut. */
#include "harness/base/clock.h"
#include "tests/device/double/double.h"
#include "tests/device/fixture.h"
#include "tests/measuring.h"
#include "workloads/backend/cuda/device_group.h"
#include "workloads/backend/cuda/device_session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 3, BATCH = 8, ELEMENTS = 48, CLASSES = 10, STEPS = 3, CALLS_MAX = 256 };

/* A sum as the plug-in asks for it. */
struct call {
	const float *values;
	size_t count;
	cudaStream_t stream;
	unsigned products; /* that were launched before it */
};
static struct call calls[CALLS_MAX];
static size_t call_count;
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static __typeof__(ncclAllReduce) *all_reduce;

static ncclResult_t note_sum(const void *from, void *to, size_t count, ncclDataType_t type,
	ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	(void)pthread_mutex_lock(&calls_lock);
	if (call_count < CALLS_MAX)
		calls[call_count++] =
			(struct call){to, count, stream, double_calls("cublasLtMatmul")};
	(void)pthread_mutex_unlock(&calls_lock);
	return all_reduce(from, to, count, type, op, comm, stream);
}

static int take_notes(void **state)
{
	(void)state;
	char why[256];
	assert_int_equal(setenv("MLBENCH_DOUBLE_DEVICES", "3", 1), 0);
	assert_int_equal(setenv("MLBENCH_DOUBLE_KERNELS", "1", 1), 0); /* no choice of products */
	double_configure();
	struct nccl *const nccl = (struct nccl *)(uintptr_t)nccl_find(why, sizeof why);
	assert_non_null(nccl);
	all_reduce = nccl->all_reduce;
	nccl->all_reduce = note_sum;
	return 0;
}

/* --- sessions that train together ------------------------------------------------------------- */

struct member {
	struct cuda_group *group; /* of its own, as in a process of its own; NULL: all have one */
	struct cuda_options options;
	struct cuda_session *session;
	int code;
	struct error err;
};

static void *open_member(void *context)
{
	struct member *const m = context;
	m->code = session_open(&m->session, &m->options, &m->err);
	if (!m->code && m->group)
		m->code = session_join(m->session, &m->err);
	return NULL;
}

static void *close_member(void *context)
{
	struct member *const m = context;
	session_close(m->session);
	group_close(m->group);
	return NULL;
}

static void together(struct member *members, void *(*what)(void *context))
{
	pthread_t threads[DEVICES];
	for (unsigned i = 0; i < DEVICES; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, what, &members[i]), 0);
	for (unsigned i = 0; i < DEVICES; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (unsigned i = 0; i < DEVICES; i++)
		if (members[i].code)
			fail_msg("%s", members[i].err.text);
}

struct way {
	uint64_t bucket_bytes;
	bool overlap, graph;
	unsigned streams, accumulate;
	bool apart; /* as ranks: each device is another process's */
};

static atomic_bool gone; /* the last rank */
static atomic_bool stopped;

static int look_for_the_last(void *context, struct error *err)
{
	(void)context;
	return atomic_load(&gone) ? error_set(err, -ETIMEDOUT, "the last one is gone") : 0;
}

static void open_groups(struct member *members, unsigned count)
{
	struct cuda_peers peers = {.count = DEVICES, .missing = look_for_the_last};
	struct error err = {""};
	assert_int_equal(group_id(peers.id, &err), 0);
	for (peers.rank = 0; peers.rank < count; peers.rank++) {
		struct member *const m = &members[peers.rank];
		assert_int_equal(group_open(&m->group, DEVICES, &peers, &err), 0);
		m->options.group = m->group;
		m->options.rank = 0;
		m->options.stop = &stopped;
	}
}

static struct member member_of(const struct way *way, struct cuda_group *group, unsigned device)
{
	return (struct member){.options = {.device = device,
				       .model = "mlp",
				       .batch_size = BATCH,
				       .sample_elements = ELEMENTS,
				       .class_count = CLASSES,
				       .type = AUGMENT_TYPE_FLOAT32,
				       .precision = STEP_PRECISION_FP32,
				       .rule = STEP_OPTIMIZER_ADAM,
				       .learning_rate = 0.01F,
				       .seed = 5,
				       .accumulate = way->accumulate,
				       .streams = way->streams,
				       .graph = way->graph,
				       .batch_room = BATCH * ELEMENTS * sizeof(float),
				       .group = group,
				       .rank = device,
				       .devices = DEVICES,
				       .bucket_bytes = way->bucket_bytes,
				       .overlap = way->overlap}};
}

static struct cuda_group *open_members(struct member *members, const struct way *way)
{
	struct cuda_group *group = NULL;
	struct error err = {""};
	if (!way->apart)
		assert_int_equal(group_open(&group, DEVICES, NULL, &err), 0);
	for (unsigned i = 0; i < DEVICES; i++)
		members[i] = member_of(way, group, i);
	if (way->apart)
		open_groups(members, DEVICES);
	together(members, open_member);
	return group;
}

static void close_members(struct member *members, struct cuda_group *group)
{
	together(members, close_member);
	group_close(group);
}

/* One thread launches on all devices, one after the other, since launching waits for none of them. */
static void launch(struct member *members, uint64_t step, unsigned device)
{
	float data[BATCH * ELEMENTS];
	uint32_t labels[BATCH];
	struct error err = {""};
	const uint64_t number = step * DEVICES + device;
	for (size_t i = 0; i < BATCH * ELEMENTS; i++)
		data[i] = (float)((number * 7 + i * 3) % 11) / 8 - 0.5F;
	for (size_t i = 0; i < BATCH; i++)
		labels[i] = (uint32_t)(number + i) % CLASSES;
	const struct batch_view view = {.data = data,
		.labels = labels,
		.bytes = sizeof data,
		.size = BATCH,
		.sample_bytes = ELEMENTS * sizeof(float),
		.type = AUGMENT_TYPE_FLOAT32,
		.index = number,
		.place = BATCH_ON_HOST};
	if (session_launch(members[device].session, &view, &err))
		fail_msg("%s", err.text);
}

static struct step_result finish(struct member *members, unsigned device)
{
	struct step_result result;
	struct error err = {""};
	if (session_finish(members[device].session, &result, &err))
		fail_msg("%s", err.text);
	return result;
}

static void step(struct member *members, uint64_t number)
{
	for (unsigned i = 0; i < DEVICES; i++)
		launch(members, number, i);
	for (unsigned i = 0; i < DEVICES; i++)
		(void)finish(members, i);
}

/* --- when sums are enqueued ------------------------------------------------------------------- */

/* Products that a step has launched when the backward pass has been through a layer: two of each, but one of the first. */
static unsigned products_down_to(const struct train *train, size_t layer)
{
	const size_t layers = train->plan.layer_count;
	for (size_t i = 0; i < layers; i++)
		assert_int_equal(train->plan.layers[i].kind, LAYER_DENSE);
	return (unsigned)(layers + 2 * (layers - layer)) - (layer == 0);
}

static void expect_order(const struct way *way)
{
	struct member members[DEVICES];
	struct cuda_group *const group = open_members(members, way);
	const struct cuda_session *const session = members[0].session;
	const struct summation *const sum = &session->summation;
	assert_true(sum->count > 3 && sum->buckets[0].layer > 0);
	assert_int_equal(call_count, DEVICES * sum->count); /* the first exchange */
	/* The second step is recorded as a graph, and without step.graph the third runs as one, too. */
	const uint64_t number = way->graph ? 1 : 3;
	for (uint64_t i = 0; i < number; i++)
		step(members, i);
	call_count = 0;
	const unsigned before = double_calls("cublasLtMatmul");
	launch(members, number, 0);
	const unsigned all = double_calls("cublasLtMatmul") - before;
	assert_int_equal(all, products_down_to(session->train, 0));
	assert_int_equal(call_count, sum->count);
	const float *end = sum->gradients + session->train->plan.parameters;
	for (size_t i = 0; i < sum->count; i++) {
		const bool early = way->overlap && !way->graph;
		assert_ptr_equal(calls[i].values + calls[i].count, end);
		assert_true(calls[i].count * sizeof(float) <= way->bucket_bytes);
		assert_ptr_equal(calls[i].stream, sum->stream);
		assert_ptr_not_equal(calls[i].stream, session->streams[0]);
		assert_int_equal(calls[i].products - before,
			early ? products_down_to(session->train, sum->buckets[i].layer) : all);
		end = calls[i].values;
	}
	assert_ptr_equal(end, sum->gradients);
	for (unsigned i = 1; i < DEVICES; i++)
		launch(members, number, i);
	for (unsigned i = 0; i < DEVICES; i++) {
		const struct step_result result = finish(members, i);
		assert_true(result.exchange_ns > 0 && result.sync_ns > 0);
		/* Without overlap its first bucket is begun when the backward pass is over. */
		assert_true((way->overlap && !way->graph) || result.exchange_ns <= result.sync_ns);
	}
	close_members(members, group);
	call_count = 0;
}

static void buckets_go_during_the_backward_pass(void **state)
{
	(void)state;
	expect_order(&(const struct way){32768, true, false, 1, 1, false});
	expect_order(&(const struct way){32768, true, false, 3, 1, false});
}

static void without_overlap_they_follow_it(void **state)
{
	(void)state;
	expect_order(&(const struct way){32768, false, false, 1, 1, false});
	expect_order(&(const struct way){32768, true, true, 1, 1, false});
}

/* Kernels that take long: the first bucket's sum begins while those of earlier layers are still to come. */
static void what_is_hidden_is_measured(void **state)
{
	(void)state;
	assert_int_equal(setenv("MLBENCH_DOUBLE_KERNEL_NS", "3000000", 1), 0);
	double_configure();
	struct member members[DEVICES];
	struct cuda_group *const group =
		open_members(members, &(const struct way){32768, true, false, 1, 1, false});
	for (unsigned i = 0; i < DEVICES; i++)
		launch(members, 0, i);
	for (unsigned i = 0; i < DEVICES; i++) {
		const struct step_result result = finish(members, i);
		print_message("exchange of %.3f ms, %.3f of it after the backward pass\n",
			(double)result.exchange_ns / 1e6, (double)result.sync_ns / 1e6);
		assert_measured(result.exchange_ns > result.sync_ns + 3000000);
	}
	close_members(members, group);
	assert_int_equal(unsetenv("MLBENCH_DOUBLE_KERNEL_NS"), 0);
	double_configure();
	call_count = 0;
}

/* --- what they sum ---------------------------------------------------------------------------- */

static float *train_a_little(const struct way *way)
{
	struct member members[DEVICES];
	struct cuda_group *const group = open_members(members, way);
	for (uint64_t i = 0; i < STEPS * way->accumulate; i++)
		step(members, i);
	const size_t count = members[0].session->train->plan.parameters;
	float *const first = malloc(count * sizeof *first);
	float *const other = malloc(count * sizeof *other);
	assert_true(first && other);
	for (unsigned i = 0; i < DEVICES; i++) {
		const struct train *const train = members[i].session->train;
		OK(cudaSetDevice((int)i));
		OK(cudaMemcpy(i == 0 ? first : other, train_at(train, train->plan.weights),
			count * sizeof *first, cudaMemcpyDeviceToHost));
		if (i > 0)
			assert_memory_equal(first, other, count * sizeof *first);
	}
	free(other);
	close_members(members, group);
	call_count = 0;
	return first;
}

static void the_weights_have_the_same_bits(void **state)
{
	(void)state;
	static const struct way ways[] = {{0, true, false, 1, 1, false},
		{0, false, false, 1, 1, false}, {4096, true, false, 1, 1, false},
		{10000, true, false, 1, 1, false}, {32768, false, false, 1, 1, false},
		{32768, true, false, 4, 1, false}, {32768, true, true, 1, 1, false},
		{4096, true, false, 1, 1, true}, {32768, true, true, 1, 1, true}};
	struct member members[DEVICES];
	struct cuda_group *const group = open_members(members, &ways[0]);
	const size_t bytes = members[0].session->train->plan.parameters * sizeof(float);
	close_members(members, group);
	for (unsigned accumulate = 1; accumulate <= 2; accumulate++) {
		float *whole = NULL;
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
			struct way way = ways[i];
			way.accumulate = accumulate;
			float *const weights = train_a_little(&way);
			if (whole)
				assert_memory_equal(whole, weights, bytes);
			if (whole)
				free(weights);
			else
				whole = weights;
		}
		free(whole);
	}
}

/* --- ranks: each device is another process's -------------------------------------------------- */

/* A device that waits for one that does not come gives up when that is gone, or the run is stopped. */
static void expect_end(atomic_bool *why, int code, const char *text)
{
	struct member members[DEVICES];
	struct step_result result;
	struct error err = {""};
	uint64_t computed_ns = 0;
	(void)open_members(members, &(const struct way){32768, true, false, 1, 1, true});
	step(members, 0);
	for (unsigned i = 0; i + 1 < DEVICES; i++)
		launch(members, 1, i);
	assert_int_equal(session_computed(members[0].session, &computed_ns, &err), 0);
	assert_true(computed_ns > 0 && computed_ns <= clock_now_ns());
	atomic_store(why, true);
	for (unsigned i = 0; i + 1 < DEVICES; i++) {
		assert_int_equal(session_finish(members[i].session, &result, &err), code);
		assert_non_null(strstr(err.text, text));
	}
	together(members, close_member);
	atomic_store(why, false);
	call_count = 0;
}

static void who_is_gone_is_not_waited_for(void **state)
{
	(void)state;
	expect_end(&gone, -ETIMEDOUT, "the last one is gone");
	expect_end(&stopped, -ECANCELED, "stopped during a step");
}

/* Nor is one that is gone before it joined. */
static void who_never_joins_is_not_waited_for(void **state)
{
	(void)state;
	struct member one = member_of(&(const struct way){0, true, false, 1, 1, true}, NULL, 0);
	pthread_t thread;
	open_groups(&one, 1);
	assert_int_equal(pthread_create(&thread, NULL, open_member, &one), 0);
	(void)usleep(20 * 1000);
	atomic_store(&gone, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(one.code, -ETIMEDOUT);
	assert_string_equal(one.err.text, "the last one is gone");
	(void)close_member(&one);
	atomic_store(&gone, false);
}

static void nothing_is_left(void **state)
{
	(void)state;
	assert_string_equal(double_complaint(), "");
	assert_int_equal(double_live(), 0);
	assert_int_equal(double_allocated(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_go_during_the_backward_pass),
		cmocka_unit_test(without_overlap_they_follow_it),
		cmocka_unit_test(what_is_hidden_is_measured),
		cmocka_unit_test(the_weights_have_the_same_bits),
		cmocka_unit_test(who_is_gone_is_not_waited_for),
		cmocka_unit_test(who_never_joins_is_not_waited_for),
		cmocka_unit_test(nothing_is_left),
	};
	return cmocka_run_group_tests(tests, take_notes, NULL);
}
