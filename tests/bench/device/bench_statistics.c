/* What step.statistics costs: steps with statistics every 10 and every 100 against steps without, on a batch that lies on the
 * device, in turn.  The same for the loss curve's other switch, a batch of uint8 that the device normalises. */
#include "tests/bench/device/device_bench.h"

#include <stdio.h>

enum { KINDS = 4 };

static const struct {
	const char *what;
	unsigned every;
	bool bytes;
} kinds[KINDS] = {
	{"without", 0, false},
	{"step.statistics = 10", 10, false},
	{"step.statistics = 100", 100, false},
	{"uint8 batches", 0, true},
};

struct subject {
	struct cuda_session *session;
	struct cuda_options options;
	struct bench_batch batch;
};

static void open_subject(struct device_bench *bench, size_t kind, struct subject *subject)
{
	struct error err = {0};
	struct upload_result result;
	subject->options = device_bench_options(bench, "resnet50", 64);
	subject->options.statistics = kinds[kind].every;
	if (kinds[kind].bytes)
		subject->options.type = AUGMENT_TYPE_UINT8;
	device_bench_session(bench, &subject->options, &subject->session);
	device_bench_batch(bench, subject->session, &subject->options, true, &subject->batch);
	subject->batch.view.place = 0;
	if (bench->plugin->upload(subject->session, 0, &subject->batch.view, &err) ||
		bench->plugin->upload_finish(subject->session, 0, &result, &err))
		device_bench_die(bench, "an upload", &err);
}

static double run(struct device_bench *bench, struct subject *subject)
{
	return device_bench_steps(bench, subject->session, &subject->options, &subject->batch.view,
		bench->small   ? 0.02
		: bench->quick ? 0.5
			       : 1.5,
		NULL, NULL);
}

int main(int argc, char **argv)
{
	struct device_bench bench;
	struct subject subjects[KINDS];
	double ns[KINDS][BENCH_ROUNDS_MAX];
	char text[96];
	const int status = device_bench_open(&bench, "statistics",
		"the cost of statistics of training, and of normalising on the device", argc, argv);
	if (status)
		return status;
	for (size_t kind = 0; kind < KINDS; kind++) {
		open_subject(&bench, kind, &subjects[kind]);
		(void)run(&bench, &subjects[kind]);
	}
	for (size_t round = 0; round < bench.rounds; round++)
		for (size_t kind = 0; kind < KINDS; kind++)
			ns[kind][round] = run(&bench, &subjects[kind]);
	for (size_t kind = 1; kind < KINDS; kind++) {
		double cost[BENCH_ROUNDS_MAX];
		for (size_t round = 0; round < bench.rounds; round++)
			cost[round] = 100 * (ns[kind][round] / ns[0][round] - 1);
		(void)snprintf(text, sizeof text, "%s: longer steps", kinds[kind].what);
		device_bench_figure(&bench, text, "%", cost, bench.rounds);
	}
	for (size_t kind = 0; kind < KINDS; kind++) {
		bench.plugin->close(subjects[kind].session);
		device_bench_batch_free(&subjects[kind].batch);
	}
	return device_bench_close(&bench);
}
