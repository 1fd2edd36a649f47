/* How much of a step's device time no kernel runs, with step.graph on: the median over rounds of the mean that the steps report
 * (workloads/backend/cuda/step.c: nodes of the graph times the period of empty kernels, over the step's device time: an upper
 * bound, because an empty kernel's own run is in that period).
 *
 * Beside it, without a bar: the device's time between steps, 1 - (sum of the steps' device times) / (wall time) with the batch
 * on the device and steps launched ahead; and the same step launched kernel by kernel. */
#include "tests/bench/device/device_bench.h"

#include <math.h>
#include <stdio.h>

static const double BAR = 0.02;

struct shares {
	double inside[BENCH_ROUNDS_MAX], between[BENCH_ROUNDS_MAX], step_ms[BENCH_ROUNDS_MAX];
};

static void run(struct device_bench *bench, struct cuda_session *session,
	const struct cuda_options *options, const struct batch_view *view, size_t round,
	struct shares *out)
{
	double device_ns = NAN;
	const double wall_ns = device_bench_steps(bench, session, options, view,
		bench->small   ? 0.02
		: bench->quick ? 0.3
			       : 0.8,
		&out->inside[round], &device_ns);
	out->between[round] = fmax(1 - device_ns / wall_ns, 0);
	out->step_ms[round] = device_ns / 1e6;
}

static void say(
	struct device_bench *bench, const char *label, bool judged, const struct shares *shares)
{
	char text[96];
	(void)snprintf(text, sizeof text, "%s: idle inside a step", label);
	if (judged)
		device_bench_bar(bench, text, shares->inside, bench->rounds, BENCH_AT_MOST, BAR);
	else
		device_bench_figure(bench, text, "share", shares->inside, bench->rounds);
	(void)snprintf(text, sizeof text, "%s: idle between steps", label);
	device_bench_figure(bench, text, "share", shares->between, bench->rounds);
	(void)snprintf(text, sizeof text, "%s: step", label);
	device_bench_figure(bench, text, "ms", shares->step_ms, bench->rounds);
}

/* A session with graphs and one without, in turn. */
static void measure(struct device_bench *bench, const char *model, uint32_t batch)
{
	struct cuda_session *sessions[2];
	struct cuda_options options[2];
	struct bench_batch batches[2];
	struct shares shares[2];
	struct error err = {0};
	char label[64];
	for (int i = 0; i < 2; i++) {
		options[i] = device_bench_options(bench, model, batch);
		options[i].graph = i == 0;
		device_bench_session(bench, &options[i], &sessions[i]);
		device_bench_batch(bench, sessions[i], &options[i], true, &batches[i]);
		batches[i].view.place = 0;
		if (bench->plugin->upload(sessions[i], 0, &batches[i].view, &err) ||
			bench->plugin->upload_finish(
				sessions[i], 0, &(struct upload_result){0}, &err))
			device_bench_die(bench, "an upload", &err);
		(void)device_bench_steps(bench, sessions[i], &options[i], &batches[i].view,
			bench->small ? 0.01 : 0.2, NULL, NULL);
	}
	for (size_t round = 0; round < bench->rounds; round++)
		for (int i = 0; i < 2; i++)
			run(bench, sessions[i], &options[i], &batches[i].view, round, &shares[i]);
	for (int i = 0; i < 2; i++) {
		(void)snprintf(label, sizeof label, "%s %u %s", options[i].model,
			options[i].batch_size, i == 0 ? "graph" : "no graph");
		say(bench, label, i == 0, &shares[i]);
		bench->plugin->close(sessions[i]);
		device_bench_batch_free(&batches[i]);
	}
}

int main(int argc, char **argv)
{
	struct device_bench bench;
	const int status = device_bench_open(
		&bench, "idle", "device time inside a step in which no kernel runs", argc, argv);
	if (status)
		return status;
	measure(&bench, "mlp", 64);
	if (!bench.small && !bench.batch)
		measure(&bench, "mlp", 256);
	return device_bench_close(&bench);
}
