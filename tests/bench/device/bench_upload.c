/* Uploads through a session (places, waiting for the host memory, labels along) against a bare loop of cudaMemcpyAsync from the
 * same pinned memory, of the same sizes, as many in flight.  Both by the host's clock, from the first call until the last copy is
 * known to be done; the two alternate.
 *
 * Beside it, without a bar: the same uploads from pageable memory, and what a batch of uint8 takes against one of float. */
#include "tests/bench/device/device_bench.h"

#include "workloads/backend/cuda/runtime.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>

enum { IN_FLIGHT = 2, UPLOADS_MOST = 20000 };

static const double BAR = 0.95;

struct subject {
	struct device_bench *bench;
	struct cuda_session *session;
	struct cuda_options options;
	struct bench_batch batch;
	/* The bare loop's. */
	cudaStream_t stream;
	cudaEvent_t done[IN_FLIGHT];
	void *device[IN_FLIGHT];
};

static double seconds_of(const struct device_bench *bench)
{
	return bench->small ? 0.01 : bench->quick ? 0.15 : 0.4;
}

static void check(struct device_bench *bench, const char *what, cudaError_t code)
{
	struct error err = {0};
	if (code != cudaSuccess) {
		(void)fail_cuda(&err, (int)code, "%s", what);
		device_bench_die(bench, what, &err);
	}
}

static void finish_upload(struct subject *subject, unsigned place)
{
	struct upload_result result;
	struct error err = {0};
	if (subject->bench->plugin->upload_finish(subject->session, place, &result, &err))
		device_bench_die(subject->bench, "an upload", &err);
}

/* Bytes a second, of batches of `size` samples. */
static double by_session(struct subject *subject, uint32_t size)
{
	const struct cuda_plugin *plugin = subject->bench->plugin;
	struct batch_view view = subject->batch.view;
	struct error err = {0};
	const double begin = device_bench_now_s();
	const double end = begin + seconds_of(subject->bench);
	size_t count = 0;
	view.size = size;
	view.bytes = size * view.sample_bytes;
	while (count < IN_FLIGHT || (device_bench_now_s() < end && count < UPLOADS_MOST)) {
		const unsigned place = (unsigned)(count % IN_FLIGHT);
		if (count >= IN_FLIGHT)
			finish_upload(subject, place);
		view.index = count++;
		view.place = (int)place;
		if (plugin->upload(subject->session, place, &view, &err))
			device_bench_die(subject->bench, "an upload", &err);
	}
	for (size_t i = count - IN_FLIGHT; i < count; i++)
		finish_upload(subject, (unsigned)(i % IN_FLIGHT));
	return (double)view.bytes * (double)count / (device_bench_now_s() - begin);
}

static double bare(struct subject *subject, uint32_t size)
{
	struct device_bench *bench = subject->bench;
	const size_t bytes = size * subject->batch.view.sample_bytes;
	const double begin = device_bench_now_s();
	const double end = begin + seconds_of(bench);
	size_t count = 0;
	while (count < IN_FLIGHT || (device_bench_now_s() < end && count < UPLOADS_MOST)) {
		const size_t place = count % IN_FLIGHT;
		if (count >= IN_FLIGHT)
			check(bench, "a copy", cudaEventSynchronize(subject->done[place]));
		check(bench, "a copy",
			cudaMemcpyAsync(subject->device[place], subject->batch.data, bytes,
				cudaMemcpyHostToDevice, subject->stream));
		check(bench, "a copy", cudaEventRecord(subject->done[place], subject->stream));
		count++;
	}
	check(bench, "a copy", cudaStreamSynchronize(subject->stream));
	return (double)bytes * (double)count / (device_bench_now_s() - begin);
}

static void open_subject(
	struct device_bench *bench, enum augment_type type, bool pinned, struct subject *subject)
{
	*subject = (struct subject){.bench = bench};
	subject->options = device_bench_options(bench, "mlp", 64);
	subject->options.type = type;
	subject->options.graph = false;
	device_bench_session(bench, &subject->options, &subject->session);
	device_bench_batch(bench, subject->session, &subject->options, pinned, &subject->batch);
	check(bench, "a stream",
		cudaStreamCreateWithFlags(&subject->stream, cudaStreamNonBlocking));
	for (int i = 0; i < IN_FLIGHT; i++) {
		check(bench, "an event",
			cudaEventCreateWithFlags(&subject->done[i], cudaEventDisableTiming));
		check(bench, "a buffer",
			cudaMalloc(&subject->device[i], subject->batch.view.bytes));
	}
}

static void close_subject(struct subject *subject)
{
	struct device_bench *bench = subject->bench;
	for (int i = 0; i < IN_FLIGHT; i++) {
		check(bench, "an event", cudaEventDestroy(subject->done[i]));
		check(bench, "a buffer", cudaFree(subject->device[i]));
	}
	check(bench, "a stream", cudaStreamDestroy(subject->stream));
	bench->plugin->close(subject->session);
	device_bench_batch_free(&subject->batch);
}

/* Batches of 64 and 8 are judged; a single sample is shown. */
static void against_bare(struct subject *subject)
{
	struct device_bench *bench = subject->bench;
	const uint32_t sizes[] = {subject->options.batch_size, subject->options.batch_size / 8, 1};
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		double ratios[BENCH_ROUNDS_MAX], rates[BENCH_ROUNDS_MAX];
		char text[96];
		const uint32_t size = sizes[s];
		(void)by_session(subject, size);
		(void)bare(subject, size);
		for (size_t i = 0; i < bench->rounds; i++) {
			const double first = bare(subject, size);
			const double session = by_session(subject, size);
			const double second = bare(subject, size);
			ratios[i] = 2 * session / (first + second);
			rates[i] = session / 1e9;
		}
		(void)snprintf(text, sizeof text, "pinned, %.1f MB: session / bare",
			(double)size * (double)subject->batch.view.sample_bytes / 1e6);
		if (size > 1)
			device_bench_bar(bench, text, ratios, bench->rounds, BENCH_AT_LEAST, BAR);
		else
			device_bench_figure(bench, text, "ratio", ratios, bench->rounds);
		(void)snprintf(text, sizeof text, "pinned, %.1f MB: session",
			(double)size * (double)subject->batch.view.sample_bytes / 1e6);
		device_bench_figure(bench, text, "GB/s", rates, bench->rounds);
	}
}

/* Sessions of each kind at the same time, in turn. */
static void kinds(struct device_bench *bench, struct subject *pinned)
{
	struct subject pageable, bytes;
	double ratio[BENCH_ROUNDS_MAX], rate[BENCH_ROUNDS_MAX], quarter[BENCH_ROUNDS_MAX];
	const uint32_t size = pinned->options.batch_size;
	open_subject(bench, AUGMENT_TYPE_FLOAT32, false, &pageable);
	open_subject(bench, AUGMENT_TYPE_UINT8, true, &bytes);
	(void)by_session(&pageable, size);
	(void)by_session(&bytes, size);
	for (size_t i = 0; i < bench->rounds; i++) {
		const double by_pinned = by_session(pinned, size);
		const double by_pageable = by_session(&pageable, size);
		const double by_bytes = by_session(&bytes, size);
		ratio[i] = by_pageable / by_pinned;
		rate[i] = by_pageable / 1e9;
		/* time of a batch: its bytes over the rate */
		quarter[i] = ((double)bytes.batch.view.bytes / by_bytes) /
			     ((double)pinned->batch.view.bytes / by_pinned);
	}
	device_bench_figure(
		bench, "pageable / pinned, a batch of float", "ratio", ratio, bench->rounds);
	device_bench_figure(bench, "pageable, a batch of float", "GB/s", rate, bench->rounds);
	device_bench_figure(
		bench, "time of a batch, uint8 / float, pinned", "ratio", quarter, bench->rounds);
	close_subject(&pageable);
	close_subject(&bytes);
}

int main(int argc, char **argv)
{
	struct device_bench bench;
	struct subject pinned;
	const int status = device_bench_open(&bench, "upload",
		"uploads through a session against a bare loop of copies", argc, argv);
	if (status)
		return status;
	check(&bench, "cudaSetDevice", cudaSetDevice((int)bench.device));
	open_subject(&bench, AUGMENT_TYPE_FLOAT32, true, &pinned);
	against_bare(&pinned);
	kinds(&bench, &pinned);
	close_subject(&pinned);
	return device_bench_close(&bench);
}
