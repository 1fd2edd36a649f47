/* The matrix products of a training step, one after the other, against the sum of the same products timed alone: each with
 * the plan that it has in the step, the best of the library's candidates.  Both are recorded as graphs and timed by events, so
 * that the host is in neither: the step's products in their order; and each of them REPEATS times in a row before the
 * next, whose time is divided by REPEATS.  The two alternate.
 *
 * Beside it, without a bar: the sum that plans were chosen by, and the whole step with all that is no product. */
#include "tests/bench/device/device_bench.h"
#include "workloads/backend/cuda/train.h"

#include "harness/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REPEATS = 8, WARM = 3 };

static const double BAR = 1.03;
static const double ROUND_S = 0.15;
static const double NS_PER_MS_ = 1e6;

struct graph {
	cudaGraphExec_t exec;
	cudaStream_t stream;
};

struct subject {
	struct device_bench *bench;
	struct train *train;
	cudaStream_t streams[DEVICE_STREAMS_MAX];
	cudaEvent_t begin, end;
	struct train_batch batch;
};

static void check(struct device_bench *bench, const char *what, cudaError_t code)
{
	struct error err = {0};
	if (code != cudaSuccess) {
		(void)fail_cuda(&err, (int)code, "%s", what);
		device_bench_die(bench, what, &err);
	}
}

static void die_on(struct device_bench *bench, const char *what, int code, const struct error *err)
{
	if (code)
		device_bench_die(bench, what, err);
}

static int sequence(struct subject *subject, struct error *err)
{
	return train_products(subject->train, err);
}

static int alone(struct subject *subject, struct error *err)
{
	struct train *train = subject->train;
	int code = 0;
	for (size_t layer = 0; layer < train->plan.layer_count; layer++)
		for (enum device_product product = 0; product < DEVICE_PRODUCTS; product++) {
			const struct train_product *at = &train->layers[layer].products[product];
			for (int i = 0; at->plan && i < REPEATS && code == 0; i++)
				code = train_run(train, layer, product, at->operands.beta, 0, err);
		}
	return code;
}

static int whole(struct subject *subject, struct error *err)
{
	const int code = train_gradients(subject->train, &subject->batch, 0, err);
	return code ? code : train_update(subject->train, 1, err);
}

/* Once as it is, so that every kernel is loaded, which a recording may not do. */
static cudaGraphExec_t record(struct subject *subject, const char *what,
	int (*work)(struct subject *subject, struct error *err))
{
	struct device_bench *bench = subject->bench;
	struct error err = {0};
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	die_on(bench, what, work(subject, &err), &err);
	check(bench, what, cudaStreamSynchronize(subject->streams[0]));
	check(bench, what,
		cudaStreamBeginCapture(subject->streams[0], cudaStreamCaptureModeThreadLocal));
	die_on(bench, what, work(subject, &err), &err);
	check(bench, what, cudaStreamEndCapture(subject->streams[0], &graph));
	check(bench, what, cudaGraphInstantiate(&exec, graph, 0));
	check(bench, what, cudaGraphDestroy(graph));
	return exec;
}

/* Device ns of one, of `count` in a row. */
static double time_graph(struct subject *subject, cudaGraphExec_t exec, unsigned count)
{
	struct device_bench *bench = subject->bench;
	const cudaStream_t stream = subject->streams[0];
	float ms = 0;
	check(bench, "an event", cudaEventRecord(subject->begin, stream));
	for (unsigned i = 0; i < count; i++)
		check(bench, "a graph", cudaGraphLaunch(exec, stream));
	check(bench, "an event", cudaEventRecord(subject->end, stream));
	check(bench, "an event", cudaEventSynchronize(subject->end));
	check(bench, "an event", cudaEventElapsedTime(&ms, subject->begin, subject->end));
	return (double)ms * NS_PER_MS_ / count;
}

static unsigned count_for(double ns)
{
	const double count = ROUND_S * (double)NS_PER_S / fmax(ns, 1);
	return count < 1 ? 1 : count > 200 ? 200 : (unsigned)count;
}

static double plans_ns(const struct train *train)
{
	double ns = 0;
	for (size_t layer = 0; layer < train->plan.layer_count; layer++)
		for (enum device_product product = 0; product < DEVICE_PRODUCTS; product++)
			if (train->layers[layer].products[product].plan)
				ns += gemm_plan_ns(train->layers[layer].products[product].plan);
	return ns;
}

static void compare(struct subject *subject, const char *label)
{
	struct device_bench *bench = subject->bench;
	double ratios[BENCH_ROUNDS_MAX], sums[BENCH_ROUNDS_MAX], wholes[BENCH_ROUNDS_MAX];
	double flops[BENCH_ROUNDS_MAX], tuned[BENCH_ROUNDS_MAX];
	char text[96];
	/* First, because products take what the step before left. */
	const cudaGraphExec_t step = record(subject, "the whole step", whole);
	const cudaGraphExec_t in_order = record(subject, "products in order", sequence);
	const cudaGraphExec_t each = record(subject, "products alone", alone);
	double ns = 0;
	for (int i = 0; i < WARM; i++)
		ns = time_graph(subject, in_order, 1);
	(void)time_graph(subject, each, 1);
	(void)time_graph(subject, step, 1);
	const unsigned count = count_for(ns);
	const unsigned count_each = count_for(ns * REPEATS);
	for (size_t i = 0; i < bench->rounds; i++) {
		const double together = time_graph(subject, in_order, count);
		const double apart = time_graph(subject, each, count_each) / REPEATS;
		const double all = time_graph(subject, step, count);
		ratios[i] = together / apart;
		sums[i] = apart / NS_PER_MS_;
		wholes[i] = all / apart;
		flops[i] = train_flops_per_sample(subject->train) * subject->batch.size / all / 1e3;
		tuned[i] = plans_ns(subject->train) / apart;
	}
	(void)snprintf(text, sizeof text, "%s: products in order / alone", label);
	device_bench_bar(bench, text, ratios, bench->rounds, BENCH_AT_MOST, BAR);
	(void)snprintf(text, sizeof text, "%s: products alone", label);
	device_bench_figure(bench, text, "ms", sums, bench->rounds);
	(void)snprintf(text, sizeof text, "%s: whole step / products alone", label);
	device_bench_figure(bench, text, "ratio", wholes, bench->rounds);
	(void)snprintf(text, sizeof text, "%s: whole step", label);
	device_bench_figure(bench, text, "TFLOP/s", flops, bench->rounds);
	(void)snprintf(text, sizeof text, "%s: as timed when chosen / alone", label);
	device_bench_figure(bench, text, "ratio", tuned, bench->rounds);
	check(bench, "a graph", cudaGraphExecDestroy(in_order));
	check(bench, "a graph", cudaGraphExecDestroy(each));
	check(bench, "a graph", cudaGraphExecDestroy(step));
}

static void open_batch(struct subject *subject, const struct cuda_options *options)
{
	struct device_bench *bench = subject->bench;
	struct bench_batch host;
	void *data = NULL;
	void *labels = NULL;
	device_bench_batch(bench, NULL, options, false, &host);
	check(bench, "a batch", cudaMalloc(&data, host.view.bytes));
	check(bench, "labels", cudaMalloc(&labels, options->batch_size * sizeof(uint32_t)));
	check(bench, "a batch",
		cudaMemcpy(data, host.data, host.view.bytes, cudaMemcpyHostToDevice));
	check(bench, "labels",
		cudaMemcpy(labels, host.labels, options->batch_size * sizeof(uint32_t),
			cudaMemcpyHostToDevice));
	subject->batch =
		(struct train_batch){.data = data, .labels = labels, .size = options->batch_size};
	device_bench_batch_free(&host);
}

static void measure(struct device_bench *bench, const char *model, uint32_t batch)
{
	struct subject subject = {.bench = bench};
	struct error err = {0};
	char label[64];
	const struct cuda_options options = device_bench_options(bench, model, batch);
	for (unsigned i = 0; i < options.streams; i++)
		check(bench, "a stream",
			cudaStreamCreateWithFlags(&subject.streams[i], cudaStreamNonBlocking));
	check(bench, "an event", cudaEventCreate(&subject.begin));
	check(bench, "an event", cudaEventCreate(&subject.end));
	die_on(bench, options.model, train_open(&subject.train, &options, subject.streams, &err),
		&err);
	open_batch(&subject, &options);
	(void)snprintf(label, sizeof label, "%s %u bf16", options.model, options.batch_size);
	compare(&subject, label);
	train_close(subject.train);
	check(bench, "a batch", cudaFree((void *)(uintptr_t)subject.batch.data));
	check(bench, "labels", cudaFree((void *)(uintptr_t)subject.batch.labels));
	check(bench, "an event", cudaEventDestroy(subject.begin));
	check(bench, "an event", cudaEventDestroy(subject.end));
	for (unsigned i = 0; i < options.streams; i++)
		check(bench, "a stream", cudaStreamDestroy(subject.streams[i]));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *model;
		uint32_t batch;
	} subjects[] = {{"resnet50", 64}, {"vit_b16", 64}, {"mlp", 256}};
	struct device_bench bench;
	const int status = device_bench_open(&bench, "products",
		"a step's matrix products in order against the same ones timed alone", argc, argv);
	if (status)
		return status;
	check(&bench, "cudaSetDevice", cudaSetDevice((int)bench.device));
	const size_t count = bench.model || bench.small ? 1 : sizeof subjects / sizeof subjects[0];
	for (size_t i = 0; i < count; i++)
		measure(&bench, subjects[i].model, subjects[i].batch);
	return device_bench_close(&bench);
}
