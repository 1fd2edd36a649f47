/* The shared part of the device's benches. */
#include "tests/bench/device/device_bench.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROUNDS = 7,
	QUICK_ROUNDS = 5,
	EDGE = 224,
	SMALL_EDGE = 8,
	CHANNELS = 3,
	CLASSES = 1000,
	PAGE_BYTES = 4096,
	STEPS_LEAST = 4,
	STEPS_MOST = 100000,
};

double device_bench_now_s(void)
{
	return (double)clock_now_ns() / (double)NS_PER_S;
}

/* --- options -------------------------------------------------------------------------------------------- */

static int usage(const char *name, const char *about)
{
	(void)fprintf(stderr,
		"bench_%s: %s\nusage: bench_%s [--quick] [--rounds N] [--device N] [--model NAME] [--batch N] [--json "
		"FILE] [--bars FILE]\n",
		name, about, name);
	return 2;
}

static bool take(struct device_bench *bench, const char *option, const char *value)
{
	char *end = NULL;
	const long number = strtol(value, &end, 10);
	const bool is_number = *value && !*end && number >= 0 && number <= INT32_MAX;
	if (strcmp(option, "--json") == 0)
		bench->json_path = value;
	else if (strcmp(option, "--bars") == 0)
		bench->bars_path = value;
	else if (strcmp(option, "--model") == 0)
		bench->model = value;
	else if (!is_number)
		return false;
	else if (strcmp(option, "--rounds") == 0)
		bench->rounds = (size_t)number;
	else if (strcmp(option, "--device") == 0)
		bench->device = (unsigned)number;
	else if (strcmp(option, "--batch") == 0)
		bench->batch = (uint32_t)number;
	else
		return false;
	return bench->rounds <= BENCH_ROUNDS_MAX;
}

static bool parse(struct device_bench *bench, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0)
			bench->quick = true;
		else if (i + 1 >= argc || !take(bench, argv[i], argv[i + 1]))
			return false;
		else
			i++;
	}
	if (bench->rounds == 0)
		bench->rounds = bench->quick ? QUICK_ROUNDS : ROUNDS;
	return true;
}

int device_bench_open(
	struct device_bench *bench, const char *name, const char *about, int argc, char **argv)
{
	struct error err = {0};
	*bench = (struct device_bench){.name = name};
	if (!parse(bench, argc, argv))
		return usage(name, about);
	(void)setvbuf(stdout, NULL, _IOLBF, 0); /* what is known is seen, whatever comes */
	bench->plugin = mlbench_cuda_plugin();
	bench->bars = json_array();
	bench->figures = json_array();
	if (bench->plugin->node(&bench->node, &err) || bench->device >= bench->node.count) {
		(void)fprintf(stderr, "bench_%s: %s\n", name,
			err.text[0] ? err.text : "there is no such device");
		return BENCH_CANNOT;
	}
	bench->small = bench->plugin->test_double;
	printf("%s: %s\n%s, %zu rounds%s\n\n", name, about, bench->node.devices[bench->device].name,
		bench->rounds,
		bench->small ? "; TEST DOUBLE: no figure means anything, no bar is judged" : "");
	printf("%-58s %12s %26s %12s\n", "", "median", "min - max", "bar");
	return 0;
}

/* --- results ---------------------------------------------------------------------------------------------- */

struct spread {
	double low, median, high; /* NAN: a value is missing */
};

static struct spread spread_of(const double *values, size_t count)
{
	double sorted[BENCH_ROUNDS_MAX];
	for (size_t i = 0; i < count; i++) {
		if (!isfinite(values[i]))
			return (struct spread){NAN, NAN, NAN};
		sorted[i] = values[i];
	}
	if (count == 0)
		return (struct spread){NAN, NAN, NAN};
	sort_doubles(sorted, count);
	return (struct spread){
		sorted[0], (sorted[(count - 1) / 2] + sorted[count / 2]) / 2, sorted[count - 1]};
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *entry(const char *what, const char *unit, const struct spread *spread,
	const double *values, size_t count)
{
	json_t *all = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(all, number(values[i]));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "what", what, "unit", unit, "median",
		number(spread->median), "low", number(spread->low), "high", number(spread->high),
		"values", all);
}

static void tell(const struct device_bench *bench, const char *status, const char *text)
{
	FILE *file = bench->bars_path ? fopen(bench->bars_path, "a") : NULL;
	if (!file)
		return;
	(void)fprintf(file, "%s\t%s\n", status, text);
	(void)fclose(file);
}

void device_bench_bar(struct device_bench *bench, const char *what, const double *values,
	size_t count, enum bench_sense sense, double bar)
{
	const struct spread spread = spread_of(values, count);
	const bool measured = isfinite(spread.median);
	const bool met =
		measured && (sense == BENCH_AT_MOST ? spread.median <= bar : spread.median >= bar);
	const char *verdict = bench->small ? "not judged: test double"
			      : !measured  ? "not measured"
			      : met        ? "pass"
					   : "MISS";
	bench->missed = bench->missed || (!bench->small && !met);
	printf("%-58s %12.4f %12.4f - %11.4f %s %-7.4g %s\n", what, spread.median, spread.low,
		spread.high, sense == BENCH_AT_MOST ? "<=" : ">=", bar, verdict);
	char text[256];
	(void)snprintf(text, sizeof text, "%s: %s: %.4g [%.4g - %.4g], %s %.4g%s", bench->name,
		what, spread.median, spread.low, spread.high,
		sense == BENCH_AT_MOST ? "at most" : "at least", bar,
		bench->small ? " (test double: not judged)" : "");
	tell(bench,
		bench->small ? "INFO"
		: !measured  ? "NOT MEASURED"
		: met        ? "PASS"
			     : "FAIL",
		text);
	json_t *object = entry(what, "ratio", &spread, values, count);
	(void)json_object_set_new(object, "bar", json_real(bar));
	(void)json_object_set_new(
		object, "sense", json_string(sense == BENCH_AT_MOST ? "at most" : "at least"));
	(void)json_object_set_new(object, "verdict", json_string(verdict));
	(void)json_array_append_new(bench->bars, object);
}

void device_bench_figure(struct device_bench *bench, const char *what, const char *unit,
	const double *values, size_t count)
{
	const struct spread spread = spread_of(values, count);
	printf("%-58s %12.5g %12.5g - %11.5g %s\n", what, spread.median, spread.low, spread.high,
		unit);
	(void)json_array_append_new(bench->figures, entry(what, unit, &spread, values, count));
}

static void write_json(struct device_bench *bench, const char *failure)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:b, s:b, s:i, s:o, s:o}", "schema",
		"mlbench.device-bench/1", "bench", bench->name, "device",
		bench->node.devices[bench->device].name, "test_double", bench->small, "quick",
		bench->quick, "rounds", (int)bench->rounds, "bars", bench->bars, "figures",
		bench->figures);
	if (failure)
		(void)json_object_set_new(object, "failed", json_string(failure));
	if (bench->json_path && json_dump_file(object, bench->json_path, JSON_INDENT(1)) != 0) {
		(void)fprintf(
			stderr, "bench_%s: cannot write '%s'\n", bench->name, bench->json_path);
		bench->missed = true;
	}
	json_decref(object);
}

int device_bench_close(struct device_bench *bench)
{
	write_json(bench, NULL);
	return bench->missed ? 1 : 0;
}

void device_bench_die(struct device_bench *bench, const char *what, const struct error *err)
{
	char text[2 * ERROR_TEXT_BYTES];
	(void)snprintf(text, sizeof text, "%s: %s", what, err ? err->text : "failed");
	(void)fprintf(stderr, "bench_%s: %s\n", bench->name, text);
	write_json(bench, text);
	exit(1);
}

/* --- sessions -------------------------------------------------------------------------------------------- */

struct cuda_options device_bench_options(
	const struct device_bench *bench, const char *model, uint32_t batch)
{
	const uint32_t edge = bench->small ? SMALL_EDGE : EDGE;
	struct cuda_options options = {.device = bench->device,
		.model = bench->model   ? bench->model
			 : bench->small ? "mlp"
					: model,
		.batch_size = bench->batch   ? bench->batch
			      : bench->small ? 8
					     : batch,
		.sample_elements = CHANNELS * edge * edge,
		.class_count = bench->small ? 16 : CLASSES,
		.type = AUGMENT_TYPE_FLOAT32,
		.precision = STEP_PRECISION_BF16,
		.rule = STEP_OPTIMIZER_SGD,
		.learning_rate = 0.001F,
		.seed = 1,
		.accumulate = 1,
		.streams = 1,
		.ahead = 2,
		.graph = true,
		.staging_places = 4,
		.picture_size = edge};
	options.batch_room = (size_t)options.batch_size * options.sample_elements * sizeof(float);
	return options;
}

void device_bench_session(
	struct device_bench *bench, const struct cuda_options *options, struct cuda_session **out)
{
	struct error err = {0};
	if (bench->plugin->open(out, options, &err))
		device_bench_die(bench, "opening a session", &err);
}

static void fill_floats(float *data, size_t count)
{
	struct rng rng;
	rng_init(&rng, count, 1);
	for (size_t i = 0; i < count; i++)
		data[i] = (float)(4 * rng_uniform(&rng) - 2);
}

static void fill_bytes(unsigned char *data, size_t count)
{
	struct rng rng;
	rng_init(&rng, count, 2);
	for (size_t i = 0; i < count; i++)
		data[i] = (unsigned char)rng_next(&rng);
}

void device_bench_batch(struct device_bench *bench, struct cuda_session *session,
	const struct cuda_options *options, bool pinned, struct bench_batch *out)
{
	const bool bytes = options->type == AUGMENT_TYPE_UINT8;
	const size_t elements = (size_t)options->batch_size * options->sample_elements;
	const size_t size = elements * (bytes ? 1 : sizeof(float));
	const size_t room = (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	struct error err = {0};
	*out = (struct bench_batch){0};
	out->labels = calloc(options->batch_size, sizeof *out->labels);
	if (posix_memalign(&out->data, PAGE_BYTES, room) != 0 || !out->labels)
		device_bench_die(bench, "a batch: out of memory", NULL);
	for (uint32_t i = 0; i < options->batch_size; i++)
		out->labels[i] = i % options->class_count;
	if (bytes)
		fill_bytes(out->data, elements);
	else
		fill_floats(out->data, elements);
	if (pinned && bench->plugin->pin(session, out->data, room, &err))
		device_bench_die(bench, "pinning a batch", &err);
	out->view = (struct batch_view){.data = out->data,
		.labels = out->labels,
		.bytes = size,
		.size = options->batch_size,
		.sample_bytes = size / options->batch_size,
		.type = options->type,
		.place = BATCH_ON_HOST};
}

void device_bench_batch_free(struct bench_batch *batch)
{
	free(batch->data);
	free(batch->labels);
	*batch = (struct bench_batch){0};
}

/* What finished steps say of themselves. */
struct told {
	double idle, device_ns;
	size_t idle_count, count;
};

static void finish_one(struct device_bench *bench, struct cuda_session *session, struct told *told)
{
	struct step_result result;
	struct error err = {0};
	if (bench->plugin->finish(session, &result, &err))
		device_bench_die(bench, "a step", &err);
	told->count++;
	told->device_ns += (double)result.device_ns;
	if (isfinite(result.idle_share)) {
		told->idle += result.idle_share;
		told->idle_count++;
	}
}

double device_bench_steps(struct device_bench *bench, struct cuda_session *session,
	const struct cuda_options *options, const struct batch_view *batch, double seconds,
	double *idle, double *device_ns)
{
	struct told told = {0};
	struct error err = {0};
	const double begin = device_bench_now_s();
	size_t launched = 0;
	while (launched < STEPS_LEAST ||
		(device_bench_now_s() - begin < seconds && launched < STEPS_MOST)) {
		if (launched - told.count > options->ahead)
			finish_one(bench, session, &told);
		if (bench->plugin->launch(session, batch, &err))
			device_bench_die(bench, "launching a step", &err);
		launched++;
	}
	while (told.count < launched)
		finish_one(bench, session, &told);
	const double took = device_bench_now_s() - begin;
	if (idle)
		*idle = told.idle_count > 0 ? told.idle / (double)told.idle_count : NAN;
	if (device_ns)
		*device_ns = told.device_ns / (double)told.count;
	return took * (double)NS_PER_S / (double)launched;
}
