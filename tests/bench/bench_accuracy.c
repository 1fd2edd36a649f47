/* How well replay foretells a finished sweep: calibrates from a few of its points, predicts all others
 * (held out), and prints the errors beside the noise of the repetitions.  What docs/ACCURACY.md shows.
 *
 *   bench_accuracy FOLDER [POINT,POINT,... [EFFORT]]   default: six points spread over the grid
 *   bench_accuracy --pairs FOLDER                      every point from every other alone
 *
 * Each held-out point is predicted by the calibrations nearest to it (forecast.h). */
#include "harness/analyze/forecast.h"
#include "harness/analyze/point_model.h"
#include "harness/base/clock.h"
#include "harness/record/record.h"
#include "workloads/backend/backend.h"
#include "workloads/model/emulated_steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_MAX = 32, CALIBRATIONS_MAX = 64, CALIBRATIONS_USUAL = 6, EFFORT = 16 };

struct point {
	struct config config;
	struct measurement repeats[REPEATS_MAX];
	struct traces traces[REPEATS_MAX];
	size_t count;
	double measured, noise; /* samples/s; relative deviation of a repetition */
	bool calibrates;
	bool open;
	struct model model;
};

struct sweep {
	struct record record;
	struct point *points; /* (count) */
	size_t count;
	double contention;
	unsigned effort;
};

static void die(const char *what, const struct error *err)
{
	fprintf(stderr, "bench_accuracy: %s: %s\n", what, err->text);
	exit(1);
}

/* As workloads/backend/emulated.c: published per batch, in proportion to the batch. */
static double step_time(const struct config *config, uint32_t batch_size)
{
	for (size_t i = 0; i < emulated_step_count; i++)
		if (strcmp(emulated_steps[i].device, config_text(config, KEY_STEP_DEVICE)) == 0 &&
			strcmp(emulated_steps[i].model, config_text(config, KEY_STEP_MODEL)) == 0)
			return emulated_steps[i].seconds * 1e9 / emulated_steps[i].batch *
			       batch_size;
	return NAN;
}

/* --- loading ---------------------------------------------------------------------------------------- */

static void load_entry(struct sweep *sweep, size_t entry)
{
	struct error err = {""};
	struct point *point = &sweep->points[sweep->record.entries[entry].point];
	if (point->count == REPEATS_MAX)
		return;
	struct measurement *m = &point->repeats[point->count];
	struct traces *traces = &point->traces[point->count];
	if (record_load(&sweep->record, entry, m, &err))
		die("repetition", &err);
	if (m->status > MEASUREMENT_UNSTEADY || !(m->throughput > 0)) {
		measurement_release(m);
		return;
	}
	if (record_load_traces(&sweep->record, entry, traces, &err))
		die("traces", &err);
	point->count++;
}

static void summarise(struct point *point)
{
	double x[REPEATS_MAX];
	for (size_t i = 0; i < point->count; i++)
		x[i] = point->repeats[i].throughput;
	point->measured = statistics_median(x, point->count);
	point->noise = statistics_deviation(x, point->count) / point->measured;
}

static void load(struct sweep *sweep, const char *folder)
{
	struct error err = {""};
	if (record_open(&sweep->record, folder, &err))
		die(folder, &err);
	sweep->count = sweep->record.grid.points;
	sweep->points = calloc(sweep->count, sizeof *sweep->points);
	if (!sweep->points)
		abort();
	for (size_t i = 0; i < sweep->count; i++)
		if (config_grid_point(&sweep->record.config, &sweep->record.grid, i,
			    &sweep->points[i].config, &err))
			die("grid", &err);
	for (size_t e = 0; e < sweep->record.entry_count; e++)
		load_entry(sweep, e);
	for (size_t i = 0; i < sweep->count; i++)
		summarise(&sweep->points[i]);
}

/* --- calibrating ------------------------------------------------------------------------------------ */

static void choose(struct sweep *sweep, const char *list)
{
	if (!list || !*list) {
		const size_t n =
			sweep->count < CALIBRATIONS_USUAL ? sweep->count : CALIBRATIONS_USUAL;
		for (size_t i = 0; i < n; i++)
			sweep->points[n > 1 ? i * (sweep->count - 1) / (n - 1) : 0].calibrates =
				true;
		return;
	}
	for (const char *at = list; *at;) {
		char *end;
		const unsigned long i = strtoul(at, &end, 10);
		if (end == at || i >= sweep->count) {
			fprintf(stderr, "bench_accuracy: no point '%s'\n", at);
			exit(2);
		}
		sweep->points[i].calibrates = true;
		at = *end == ',' ? end + 1 : end;
	}
}

static double contention(const struct sweep *sweep)
{
	double busy[CALIBRATIONS_MAX * REPEATS_MAX];
	double cpu[CALIBRATIONS_MAX * REPEATS_MAX];
	size_t n = 0;
	for (size_t i = 0; i < sweep->count; i++)
		for (size_t r = 0; sweep->points[i].calibrates && r < sweep->points[i].count; r++)
			if (n < sizeof busy / sizeof *busy &&
				model_contention_point(&sweep->points[i].repeats[r],
					sweep->record.cores, &busy[n], &cpu[n]))
				n++;
	return model_fit_contention(busy, cpu, n);
}

static void calibrate(struct sweep *sweep, struct point *point)
{
	const struct measurement *repeats[REPEATS_MAX];
	const struct traces *traces[REPEATS_MAX];
	for (size_t r = 0; r < point->count; r++) {
		repeats[r] = &point->repeats[r];
		traces[r] = &point->traces[r];
	}
	const struct model_source source = {
		.config = &point->config,
		.repeats = repeats,
		.traces = traces,
		.count = point->count,
		.cores = sweep->record.cores,
		.contention = sweep->contention,
		.step_time = step_time,
	};
	struct error err = {""};
	point->open = point->count > 0 && model_open(&point->model, &source, &err) == 0;
	if (!point->open)
		printf("  not calibrated: %s\n", err.text);
}

static void describe_point(const struct sweep *sweep, size_t i, char *out, size_t room)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t a = 0; a < sweep->record.config.axis_count && used < room; a++) {
		const enum key_id key = sweep->record.config.axes[a].key;
		char value[CONFIG_VALUE_BYTES];
		(void)config_format_value(
			key, &sweep->points[i].config.values[key], value, sizeof value);
		used += (size_t)snprintf(out + used, room - used, "%s%s=%s", a ? " " : "",
			config_keys[key].name, value);
	}
}

static void print_calibration(const struct sweep *sweep, size_t i)
{
	static const char *const names[COSTS] = {"read cpu", "latency", "device", "decode cpu",
		"lock", "wait", "upload", "step host", "step device"};
	const struct model *model = &sweep->points[i].model;
	char what[256];
	describe_point(sweep, i, what, sizeof what);
	printf("calibrated from %3zu  %-36s measured %8.1f replayed %8.1f (%+.2f %%) noise %.2f %% "
	       "contention %.3f outside %.2f\n   ",
		i, what, model->measured, model->calibrated, 100 * expm1(model->unmodelled),
		100 * model->noise, model->replay.contention, model->replay.outside);
	for (int c = 0; c < COSTS; c++) {
		const struct replay_series *series = &model->replay.series[c];
		double sum = 0;
		for (size_t k = 0; k < series->count; k++)
			sum += (double)series->ns[k];
		if (series->count)
			printf(" %s %.1f us;", names[c], sum / (double)series->count / 1e3);
	}
	if (model->hidden_device_ns > 0)
		printf(" hidden device up to %.1f us", model->hidden_device_ns / 1e3);
	printf("\n");
	for (size_t n = 0; n < model->note_count; n++)
		printf("    %s\n", model->notes[n]);
}

/* --- predicting ------------------------------------------------------------------------------------- */

static int predict(
	void *context, size_t from, size_t to, struct forecast_guess *out, struct error *err)
{
	struct sweep *sweep = context;
	struct point *source = &sweep->points[from];
	struct model model;
	struct prediction prediction;
	int code = model_copy(&model, &source->model, err);
	if (code)
		return code;
	code = model_alter(&model, &source->config, &sweep->points[to].config, err);
	if (!code)
		code = model_predict(&model, sweep->effort, &prediction, err);
	model_close(&model);
	if (!code)
		*out = (struct forecast_guess){prediction.throughput, prediction.interval};
	return code;
}

/* Numbers by their logarithm, choices by their index. */
static double *places(const struct sweep *sweep, bool *is_choice)
{
	const size_t axes = sweep->record.config.axis_count;
	double *at = calloc(sweep->count * axes + 1, sizeof *at);
	for (size_t a = 0; at && a < axes; a++) {
		const enum key_id key = sweep->record.config.axes[a].key;
		is_choice[a] = config_keys[key].type == KEY_TYPE_CHOICE ||
			       config_keys[key].type == KEY_TYPE_BOOLEAN ||
			       config_keys[key].type == KEY_TYPE_TEXT;
		for (size_t i = 0; i < sweep->count; i++) {
			const double value =
				config_keys[key].type == KEY_TYPE_TEXT
					? (double)sweep->record.grid.choice[i * axes + a]
					: config_real(&sweep->points[i].config, key);
			at[i * axes + a] = is_choice[a] ? value : log2(fmax(value, 1e-9));
		}
	}
	return at;
}

static void report(const double *errors, const double *noise, size_t n, size_t covered)
{
	printf("\nheld out: %zu points; |predicted - measured| / measured: median %.2f %%, p95 %.2f %%, "
	       "worst %.2f %%\n",
		n, 100 * statistics_median(errors, n), 100 * statistics_quantile(errors, n, 0.95),
		100 * statistics_quantile(errors, n, 1));
	printf("noise of a repetition: median %.2f %%, p95 %.2f %%; 90 %% intervals cover %.0f %%\n",
		100 * statistics_median(noise, n), 100 * statistics_quantile(noise, n, 0.95),
		100.0 * (double)covered / (double)n);
}

static void hold_out(struct sweep *sweep)
{
	bool is_choice[CONFIG_AXES_MAX];
	double *measured = calloc(sweep->count, sizeof *measured);
	bool *calibrated = calloc(sweep->count, sizeof *calibrated);
	double *errors = calloc(2 * sweep->count, sizeof *errors);
	double *noise = errors + sweep->count;
	double *at = places(sweep, is_choice);
	if (!measured || !calibrated || !errors || !at)
		abort();
	for (size_t i = 0; i < sweep->count; i++) {
		calibrated[i] = sweep->points[i].open;
		measured[i] = calibrated[i] ? sweep->points[i].measured : NAN;
	}
	const struct forecast_input input = {
		.space = {sweep->count, sweep->record.config.axis_count, at, is_choice},
		.measured = measured,
		.calibrated = calibrated,
		.predict = predict,
		.context = sweep,
	};
	struct forecast_errors known;
	forecast_errors_find(&input, &known);
	size_t n = 0;
	size_t covered = 0;
	for (size_t i = 0; i < sweep->count; i++) {
		const struct point *point = &sweep->points[i];
		char what[256];
		if (point->open || point->count == 0)
			continue;
		struct forecast forecast;
		forecast_point(&input, known.widening, i, &forecast);
		describe_point(sweep, i, what, sizeof what);
		if (!forecast.known) {
			printf("%4zu %-44s not predicted: %s\n", i, what, forecast.why);
			continue;
		}
		const bool inside = point->measured >= forecast.interval.low &&
				    point->measured <= forecast.interval.high;
		errors[n] = fabs(forecast.throughput / point->measured - 1);
		noise[n] = point->noise;
		printf("%4zu %-44s measured %9.1f (+-%4.1f %%) predicted %9.1f [%9.1f %9.1f] %+6.2f "
		       "%%%s\n",
			i, what, point->measured, 100 * point->noise, forecast.throughput,
			forecast.interval.low, forecast.interval.high,
			100 * (forecast.throughput / point->measured - 1),
			inside ? "" : "  outside");
		covered += inside;
		n++;
	}
	if (n > 0)
		report(errors, noise, n, covered);
	free(measured);
	free(calibrated);
	free(errors);
	free(at);
}

static void all_pairs(struct sweep *sweep)
{
	const size_t pairs = sweep->count * sweep->count;
	double *errors = calloc(2 * pairs, sizeof *errors);
	double *noise = errors + pairs;
	size_t n = 0;
	size_t covered = 0;
	if (!errors)
		abort();
	printf("columns: calibrated from; rows: predicted; error in %%, ! outside its interval\n      ");
	for (size_t j = 0; j < sweep->count; j++)
		printf(" %7zu", j);
	for (size_t i = 0; i < sweep->count; i++) {
		printf("\n%5zu:", i);
		for (size_t j = 0; j < sweep->count; j++) {
			struct forecast_guess guess;
			struct error err;
			if (!sweep->points[j].open || predict(sweep, j, i, &guess, &err)) {
				printf("       -");
				continue;
			}
			const double off = guess.throughput / sweep->points[i].measured - 1;
			const bool inside = sweep->points[i].measured >= guess.interval.low &&
					    sweep->points[i].measured <= guess.interval.high;
			printf(" %+6.1f%s", 100 * off, inside ? " " : "!");
			if (i == j)
				continue;
			covered += inside;
			noise[n] = sweep->points[i].noise;
			errors[n++] = fabs(off);
		}
	}
	printf("\n");
	if (n > 0)
		report(errors, noise, n, covered);
	free(errors);
}

int main(int argc, char **argv)
{
	const bool pairs = argc > 1 && strcmp(argv[1], "--pairs") == 0;
	argv += pairs;
	argc -= pairs;
	if (argc < 2) {
		/* As one of the benches of run.sh it has no sweep to look at. */
		fprintf(stderr, "usage: bench_accuracy [--pairs] FOLDER [POINT,... [EFFORT]]\n");
		return 77;
	}
	static struct sweep sweep;
	load(&sweep, argv[1]);
	sweep.effort = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : EFFORT;
	choose(&sweep, argc > 2 ? argv[2] : NULL);
	for (size_t i = 0; i < sweep.count && pairs; i++)
		sweep.points[i].calibrates = true;
	sweep.contention = contention(&sweep);
	const uint64_t start_ns = clock_now_ns();
	for (size_t i = 0; i < sweep.count; i++)
		if (sweep.points[i].calibrates) {
			calibrate(&sweep, &sweep.points[i]);
			if (sweep.points[i].open)
				print_calibration(&sweep, i);
		}
	printf("calibrated in %.0f ms\n", (double)(clock_now_ns() - start_ns) / 1e6);
	if (pairs)
		all_pairs(&sweep);
	else
		hold_out(&sweep);
	for (size_t i = 0; i < sweep.count; i++) {
		struct point *point = &sweep.points[i];
		for (size_t r = 0; r < point->count; r++) {
			measurement_release(&point->repeats[r]);
			traces_release(&point->traces[r]);
		}
		if (point->open)
			model_close(&point->model);
		config_release(&point->config);
	}
	free(sweep.points);
	record_release(&sweep.record);
	return 0;
}
