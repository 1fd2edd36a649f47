#include "harness/command/check_twin.h"

#include "harness/analyze/reproduction.h"
#include "harness/analyze/statistics.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/calibration.h"
#include "harness/command/paired.h"
#include "harness/command/run_plan.h"
#include "harness/config/tables.h"
#include "harness/fit/twin_check.h"
#include "harness/measure/data_store.h"
#include "harness/record/measurement.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHECK_REPEATS = 2,
	CHECK_CORRECTIONS = 2,
	CHECK_BATCHES = 12,
	CHECK_STALLS = 3,
	CHECK_PATH = 4096
};

static const double CHECK_SHORTEST_S = 1.5;  /* of a repetition */
static const double CHECK_LONGEST_S = 8;     /* unless whole stalls take longer */
static const double CHECK_BYTES = 128 << 20; /* of generated files, at most */

struct check {
	const struct invocation *invocation;
	struct case_file *file;
	char folder[CHECK_PATH / 2];
	struct node_limits node;
	double budget_s, spent_s;
	unsigned runs;
	struct twin_run run; /* the last */
	char disturbed[EVIDENCE_BYTES];
};

/* --- the configuration --------------------------------------------------------------------------- */

static int check_set(struct config *config, enum key_id key, struct error *err, const char *format,
	...) __attribute__((format(printf, 4, 5)));
static int check_set(
	struct config *config, enum key_id key, struct error *err, const char *format, ...)
{
	char text[CHECK_PATH];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return config_set_key(config, key, text, err);
}

static double check_period_s(const struct case_file *file)
{
	const double batch = config_real(&file->twin, KEY_BATCH_SIZE) *
			     fmax(1, config_real(&file->twin, KEY_STEP_DEVICES));
	return batch / file->observed.known[FINDING_THROUGHPUT].value;
}

/* So many that the mean of their steps, which vary as the job's did, is known well enough. */
static double check_batches(const struct case_file *file)
{
	static const double known = 0.05; /* standard error of the mean */
	const struct findings *observed = &file->observed;
	const double n = (double)observed->step_count;
	double sum = 0;
	double squares = 0;
	for (size_t i = 0; i < observed->step_count; i++) {
		sum += observed->step_ns[i];
		squares += observed->step_ns[i] * observed->step_ns[i];
	}
	const double variation = n > 1 && sum > 0 ? fmax(0, squares * n / (sum * sum) - 1) : 0;
	return fmax(CHECK_BATCHES, variation / (known * known * CHECK_REPEATS));
}

/* How long a repetition measures: some batches, and several stalls and epochs where those are known. */
static double check_duration_s(const struct case_file *file)
{
	const double batches = check_batches(file) * check_period_s(file);
	const struct finding *epoch = &file->observed.known[FINDING_EPOCH_TIME];
	const struct finding *stall = &file->observed.known[FINDING_STALL_TIME];
	const double usual = fmin(fmax(batches, CHECK_SHORTEST_S), CHECK_LONGEST_S);
	const double most = fmax(epoch->how == FINDING_UNKNOWN ? 0 : epoch->value,
		stall->how == FINDING_UNKNOWN ? 0 : stall->value);
	return fmax(usual, CHECK_STALLS * most / (double)NS_PER_S);
}

static double check_warmup_s(const struct case_file *file)
{
	const double batches = config_real(&file->twin, KEY_PREFETCH_DEPTH) + 4;
	return fmin(fmax(0.3, batches * check_period_s(file)), 4);
}

/* Few samples are soon generated; an epoch's number of them counts where workers start anew with each. */
static int check_shorten(struct check *c, struct config *config, struct error *err)
{
	const struct finding *rate = &c->file->observed.known[FINDING_THROUGHPUT];
	const struct finding *bytes = &c->file->observed.known[FINDING_FILE_BYTES];
	const double duration = check_duration_s(c->file);
	const double warmup = check_warmup_s(c->file);
	const double least = 4 * config_real(config, KEY_BATCH_SIZE) *
			     fmax(1, config_real(config, KEY_STEP_DEVICES));
	const double room = bytes->value > 0 ? CHECK_BYTES / bytes->value : 1000;
	const double samples = config_real(config, KEY_DATASET_SAMPLES);
	const double wanted = fmax(least, fmin(room, rate->value * (duration + warmup)));
	const bool whole = config_integer(config, KEY_DECODE_PERSISTENT) == 0 ||
			   config_integer(config, KEY_SAMPLE_KIND) != SAMPLE_KIND_IMAGE;
	const bool emulated = config_integer(config, KEY_INJECT_READ_LATENCY) > 0 ||
			      config_real(config, KEY_INJECT_READ_BANDWIDTH) > 0;
	int code = check_set(config, KEY_DATASET_PATH, err, "%s/data", c->folder);
	if (!code && !whole && samples > wanted)
		code = check_set(config, KEY_DATASET_SAMPLES, err, "%.0f", ceil(wanted));
	if (!code)
		code = check_set(config, KEY_MEASURE_DURATION, err, "%.0fms", 1e3 * duration);
	if (!code)
		code = check_set(config, KEY_MEASURE_WARMUP, err, "%.0fms", 1e3 * warmup);
	if (!code)
		code = check_set(config, KEY_MEASURE_REPEATS, err, "1");
	if (!code)
		code = check_set(config, KEY_MEASURE_LIMITS, err, "off");
	/* What stands in for the store is as slow from the page cache. */
	return code || !emulated ? code : check_set(config, KEY_READ_CACHE, err, "as-is");
}

/* --- running it ---------------------------------------------------------------------------------- */

static void check_take_diagnosis(struct check *c, struct paired *paired, size_t arm)
{
	struct diagnosed *diagnosed = calloc(1, sizeof *diagnosed);
	struct report report = {0};
	struct error why = {0};
	if (diagnosed && !report_open(&report, paired_record(paired, arm), &why) &&
		!diagnosed_open(diagnosed, &report, 0, &why)) {
		const struct verdict *v = &diagnosed->diagnosis.verdict;
		memcpy(c->run.stage, v->stage, sizeof c->run.stage);
		memcpy(c->run.resource, v->resource, sizeof c->run.resource);
		c->run.confidence = v->confidence;
		(void)snprintf(
			c->disturbed, sizeof c->disturbed, "%s", diagnosed->summary->contaminated);
		diagnosed_close(diagnosed);
	}
	report_close(&report);
	free(diagnosed);
}

/* Steps, and those of them that take longer than from_ns. */
static void check_count_stalls(
	const struct histogram *steps, double from_ns, double *all, double *stalls)
{
	for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
		*all += (double)steps->buckets[bucket];
		if ((double)histogram_lower(bucket) >= from_ns)
			*stalls += (double)steps->buckets[bucket];
	}
}

/* Means over the repetitions of how long the step waited, and of the CPU time of a sample. */
static void check_take_shares(struct check *c, const struct record *record)
{
	const double stall_ns = twin_stalls_from(c->file);
	double wait = 0;
	double cpu = 0;
	double steps = 0;
	double stalls = 0;
	size_t count = 0;
	for (size_t i = 0; i < record->entry_count; i++) {
		struct measurement m = {0};
		struct error ignored;
		if (record_load(record, i, &m, &ignored))
			continue;
		const struct stage_measurement *step = measurement_stage_named(&m, STAGE_STEP_NAME);
		const struct stage_measurement *decode =
			measurement_stage_named(&m, STAGE_DECODE_NAME);
		const struct stage_measurement *read = measurement_stage_named(&m, STAGE_READ_NAME);
		double all = 0;
		for (int state = 0; step && state < THREAD_STATES; state++)
			all += step->seconds[state];
		if (step && decode && all > 0 && decode->items > 0) {
			const double own = read && read->items > 0 && isfinite(read->cpu_seconds)
						   ? read->cpu_seconds / (double)read->items
						   : 0;
			wait += step->seconds[THREAD_STARVED] / all;
			cpu += decode->cpu_seconds / (double)decode->items + own;
			count++;
			check_count_stalls(&step->service, stall_ns, &steps, &stalls);
		}
		measurement_release(&m);
	}
	c->run.wait = count > 0 ? wait / (double)count : NAN;
	c->run.stall_every = stalls > 0 ? steps / stalls : NAN;
	c->run.cpu = count > 0 ? 1e9 * cpu / (double)count : NAN;
}

static int check_take(struct check *c, struct paired *paired, size_t arm, struct error *err)
{
	size_t count;
	double known[CHECK_REPEATS];
	size_t rates = 0;
	const double *of = paired_rates(paired, arm, &count);
	c->run = (struct twin_run){
		.rate = NAN, .wait = NAN, .cpu = NAN, .stall_every = NAN, .confidence = NAN};
	c->disturbed[0] = '\0';
	for (size_t i = 0; i < count && rates < COUNT(known); i++)
		if (of[i] > 0)
			known[rates++] = of[i];
	if (rates == 0)
		return error_set(err, -EIO, "no repetition of it gave a rate");
	c->run.rate = statistics_median(known, rates);
	check_take_shares(c, paired_record(paired, arm));
	check_take_diagnosis(c, paired, arm);
	c->run.disturbed = c->disturbed;
	return 0;
}

static int check_measure(struct check *c, const struct config *config, struct error *err)
{
	char folder[CHECK_PATH];
	struct paired *paired;
	size_t arm;
	(void)snprintf(folder, sizeof folder, "%s/run%u", c->folder, c->runs++);
	const struct paired_options options = {.invocation = c->invocation,
		.folder = folder,
		.seed = (uint64_t)config_integer(config, KEY_RUN_SEED),
		.budget_s = INFINITY};
	const struct paired_arm_spec spec = {
		.label = "twin", .config = config, .node = c->node, .keep_traces = true};
	int code = paired_open(&paired, &options, err);
	if (code)
		return code;
	code = paired_add(paired, &spec, &arm, err);
	for (int i = 0; i < CHECK_REPEATS && !code && !paired_arm_broken(paired, arm); i++)
		code = paired_block(paired, &arm, 1, err);
	const char *broken = code ? NULL : paired_arm_broken(paired, arm);
	if (broken)
		code = error_set(err, -EIO, "%s", broken);
	if (!code)
		code = check_take(c, paired, arm, err);
	log_progress_end();
	paired_close(paired);
	return code;
}

static int check_run(struct check *c, struct error *err)
{
	struct config config;
	const uint64_t begun = clock_now_ns();
	int code = case_config(c->file, true, &config, err);
	if (code)
		return code;
	code = check_shorten(c, &config, err);
	if (!code)
		code = config_validate(&config, err);
	if (!code)
		code = check_measure(c, &config, err);
	config_release(&config);
	c->spent_s += (double)(clock_now_ns() - begun) / (double)NS_PER_S;
	return code;
}

/* --- the whole ----------------------------------------------------------------------------------- */

static double check_cores_here(void)
{
	cpu_set_t usable;
	return sched_getaffinity(0, sizeof usable, &usable) == 0 ? (double)CPU_COUNT(&usable)
								 : (double)NAN;
}

/* Whether `mlbench run` takes it at all: -EINVAL and the like when it does not. */
static int check_plan(const struct check *c, struct error *err)
{
	struct invocation plain = *c->invocation;
	struct plan plan = {0};
	plain.options.set_count = 0; /* they are in the configuration */
	int code = config_copy(&plan.config, &c->file->twin, err);
	if (!code)
		code = plan_open(&plan, &plain, NULL, err);
	plan_close(&plan);
	return code;
}

static void check_limits(struct check *c, double cores_here)
{
	struct cpu_quotas quotas;
	cgroup_cpu_quotas(&quotas);
	const struct cpu_quota *least = cgroup_tightest(&quotas);
	if (c->file->reported_cores >= 1 && c->file->reported_cores < cores_here)
		c->node.cores = (unsigned)c->file->reported_cores;
	if (c->file->reported_quota > 0 && !(least && least->cores <= c->file->reported_quota))
		c->node.quota_cores = c->file->reported_quota;
}

static double check_seconds(const struct check *c)
{
	return CHECK_REPEATS * (check_duration_s(c->file) + check_warmup_s(c->file));
}

static int check_correct(struct check *c, const bool *fixed, struct error *err)
{
	struct twin_corrections corrections = {.fixed = fixed};
	int code = check_run(c, err);
	for (int i = 0; i < CHECK_CORRECTIONS && !code; i++) {
		if (c->spent_s + check_seconds(c) > c->budget_s)
			break;
		code = twin_correct(c->file, &c->run, &corrections, err);
		if (code || !corrections.changed)
			break;
		log_info(
			"the twin gave %s samples/s, the job %s: corrected what was assumed, and running it again",
			UNITS_PLAIN(c->run.rate, 4),
			UNITS_PLAIN(c->file->observed.known[FINDING_THROUGHPUT].value, 4));
		code = check_run(c, err);
	}
	return code;
}

static int check_in_folder(struct check *c, const bool *fixed, struct error *err)
{
	struct error why = {0};
	char words[EVIDENCE_BYTES];
	log_info("running the twin for some seconds, to see whether it is like the job");
	const int code = check_correct(c, fixed, &why);
	if (code == -EINTR || code == -ENOMEM) {
		*err = why;
		return code;
	}
	if (!code)
		return twin_judge(c->file, &c->run, err);
	(void)snprintf(
		words, sizeof words, "the twin could not be measured here: %.200s", why.text);
	return case_say_check(c->file, CASE_CHECK_UNCHECKED, words, err);
}

int check_twin(const struct invocation *invocation, struct case_file *file, const char *cannot,
	const bool *fixed, double budget_s, struct error *err)
{
	struct check c = {.invocation = invocation, .file = file, .budget_s = budget_s};
	struct error why = {0};
	char words[EVIDENCE_BYTES];
	const char *temporary = getenv("TMPDIR");
	const double cores = check_cores_here();
	const char *const own = twin_cannot_check(file, cores);
	if (config_integer(&file->twin, KEY_RUN_RANKS) < 2 && check_plan(&c, &why)) {
		(void)snprintf(
			words, sizeof words, "'mlbench run' refuses the twin: %.200s", why.text);
		return case_say_check(file, CASE_CHECK_UNFAITHFUL, words, err);
	}
	if (cannot || own)
		return case_say_check(file, CASE_CHECK_UNCHECKED, cannot ? cannot : own, err);
	check_limits(&c, cores);
	if (check_seconds(&c) > budget_s) {
		char time[UNITS_BYTES];
		(void)snprintf(words, sizeof words, "it takes about %s, and --budget has less",
			clock_format_span(check_seconds(&c), time, sizeof time));
		return case_say_check(file, CASE_CHECK_UNCHECKED, words, err);
	}
	(void)snprintf(c.folder, sizeof c.folder, "%.1900s/mlbench-fit-XXXXXX",
		temporary && *temporary ? temporary : "/tmp");
	if (!mkdtemp(c.folder))
		return error_set_errno(err, errno, "cannot make a folder '%.200s'", c.folder);
	const int code = check_in_folder(&c, fixed, err);
	(void)files_remove_tree(c.folder, NULL);
	return code;
}
