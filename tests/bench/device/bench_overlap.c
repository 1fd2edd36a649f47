/* Steps a second while every batch is uploaded by another thread, against steps on a batch that lies on the device.  Data are
 * ready: pinned host batches that nobody has to make.  The two alternate. */
#include "tests/bench/device/device_bench.h"

#include "harness/base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { PLACES = 4, HOST_BATCHES = 3, PATIENCE_NS = 20000 };

static const double BAR = 0.98;

/* Batches in order: uploaded up to `uploaded`, whose places are free again up to `finished` + PLACES. */
struct line {
	struct device_bench *bench;
	struct cuda_session *session;
	struct cuda_options options;
	struct bench_batch batches[HOST_BATCHES];
	uint64_t first; /* number of this round's first batch: numbers are not used twice */
	size_t wanted;
	atomic_size_t uploaded, finished;
	atomic_bool failed;
	struct error err; /* of the uploader */
};

static struct batch_view batch_at(const struct line *line, size_t number)
{
	struct batch_view view = line->batches[number % HOST_BATCHES].view;
	view.index = line->first + number;
	view.place = (int)(number % PLACES);
	return view;
}

static int upload_one(struct line *line, size_t number)
{
	const struct cuda_plugin *plugin = line->bench->plugin;
	const struct batch_view view = batch_at(line, number);
	struct upload_result result;
	while (number >= atomic_load(&line->finished) + PLACES)
		clock_sleep_until_ns(clock_now_ns() + PATIENCE_NS);
	int code = plugin->upload(line->session, (unsigned)view.place, &view, &line->err);
	/* The next step may be launched at once; the host memory is used again HOST_BATCHES later. */
	if (code == 0)
		atomic_store(&line->uploaded, number + 1);
	if (code == 0)
		code = plugin->upload_finish(
			line->session, (unsigned)view.place, &result, &line->err);
	return code;
}

static void *upload_all(void *argument)
{
	struct line *line = argument;
	for (size_t number = 0; number < line->wanted; number++)
		if (upload_one(line, number)) {
			atomic_store(&line->failed, true);
			break;
		}
	return NULL;
}

static void finish_one(struct line *line)
{
	struct step_result result;
	struct error err = {0};
	if (line->bench->plugin->finish(line->session, &result, &err))
		device_bench_die(line->bench, "a step", &err);
	atomic_fetch_add(&line->finished, 1);
}

/* Host ns a step. */
static double overlapped(struct line *line, size_t steps)
{
	struct error err = {0};
	pthread_t uploader;
	line->first += line->wanted;
	line->wanted = steps;
	atomic_store(&line->uploaded, 0);
	atomic_store(&line->finished, 0);
	if (pthread_create(&uploader, NULL, upload_all, line) != 0)
		device_bench_die(line->bench, "no thread", NULL);
	const uint64_t begin = clock_now_ns();
	for (size_t number = 0; number < steps; number++) {
		if (number > atomic_load(&line->finished) + line->options.ahead)
			finish_one(line);
		while (atomic_load(&line->uploaded) <= number && !atomic_load(&line->failed))
			; /* the step thread of a pipeline would sleep here: that is not what is measured */
		if (atomic_load(&line->failed))
			device_bench_die(line->bench, "an upload", &line->err);
		const struct batch_view view = batch_at(line, number);
		if (line->bench->plugin->launch(line->session, &view, &err))
			device_bench_die(line->bench, "launching a step", &err);
	}
	while (atomic_load(&line->finished) < steps)
		finish_one(line);
	const double ns = (double)(clock_now_ns() - begin) / (double)steps;
	(void)pthread_join(uploader, NULL);
	return ns;
}

static double alone(struct line *line, double seconds)
{
	struct upload_result result;
	struct error err = {0};
	const struct cuda_plugin *plugin = line->bench->plugin;
	line->first += line->wanted;
	line->wanted = 1;
	const struct batch_view view = batch_at(line, 0);
	if (plugin->upload(line->session, 0, &view, &err) ||
		plugin->upload_finish(line->session, 0, &result, &err))
		device_bench_die(line->bench, "an upload", &err);
	return device_bench_steps(
		line->bench, line->session, &line->options, &view, seconds, NULL, NULL);
}

static void measure(struct device_bench *bench, const char *model, uint32_t batch)
{
	struct line *line = calloc(1, sizeof *line);
	double ratios[BENCH_ROUNDS_MAX], steps_ms[BENCH_ROUNDS_MAX];
	char text[96];
	if (!line)
		device_bench_die(bench, "out of memory", NULL);
	line->bench = bench;
	line->options = device_bench_options(bench, model, batch);
	line->options.staging_places = PLACES;
	device_bench_session(bench, &line->options, &line->session);
	for (int i = 0; i < HOST_BATCHES; i++)
		device_bench_batch(bench, line->session, &line->options, true, &line->batches[i]);
	const double seconds = bench->small ? 0.02 : bench->quick ? 0.5 : 1.5;
	double ns = alone(line, seconds / 2);
	const double fit = seconds * (double)NS_PER_S / ns;
	const size_t steps = fit < PLACES ? PLACES : fit > 100000 ? 100000 : (size_t)fit;
	(void)overlapped(line, steps / 2 + 1);
	for (size_t i = 0; i < bench->rounds; i++) {
		const double before = alone(line, seconds);
		const double both = overlapped(line, steps);
		const double after = alone(line, seconds);
		ns = (before + after) / 2;
		ratios[i] = ns / both;
		steps_ms[i] = ns / 1e6;
	}
	(void)snprintf(text, sizeof text, "%s %u bf16: with uploads / step alone",
		line->options.model, line->options.batch_size);
	device_bench_bar(bench, text, ratios, bench->rounds, BENCH_AT_LEAST, BAR);
	(void)snprintf(text, sizeof text, "%s %u bf16: step alone", line->options.model,
		line->options.batch_size);
	device_bench_figure(bench, text, "ms", steps_ms, bench->rounds);
	bench->plugin->close(line->session);
	for (int i = 0; i < HOST_BATCHES; i++)
		device_bench_batch_free(&line->batches[i]);
	free(line);
}

int main(int argc, char **argv)
{
	struct device_bench bench;
	const int status = device_bench_open(&bench, "overlap",
		"steps while batches are uploaded against steps alone", argc, argv);
	if (status)
		return status;
	measure(&bench, "resnet50", 64);
	return device_bench_close(&bench);
}
