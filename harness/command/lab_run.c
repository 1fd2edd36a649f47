/* The measurements of labs. */
#include "harness/command/lab_run.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/paired.h"
#include "harness/measure/data_store.h"
#include "harness/report/saved_diagnoses.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* LAB_SEED: of sessions of one arm, which have no order to draw; a check draws another order each time. */
enum { LAB_SLEEPS = 100, LAB_SLEEP_NS = 1000000, LAB_SEED = 1 };

static const double LAB_CHECK_S = 90, LAB_MEASURE_S = 110, LAB_LAPTOP_S = 25;
static const double LAB_SHARE_TO_PASS = 0.7;
static const double LAB_WRONG_RATE = 0.05; /* of a check, at all looks together */

/* --- arms ------------------------------------------------------------------------------------- */

static int lab_open_session(const struct invocation *invocation, const char *folder, uint64_t seed,
	double budget_s, struct paired **paired, struct error *err)
{
	char *file = files_join(folder, "paired.jsonl");
	if (!file)
		return error_set(err, -ENOMEM, "out of memory");
	const struct paired_options options = {.invocation = invocation,
		.folder = folder,
		.seed = seed,
		.budget_s = budget_s,
		.resume = access(file, F_OK) == 0};
	free(file);
	return paired_open(paired, &options, err);
}

/* The setting under what is planted, whose results do not say it. */
static int lab_add_arm(struct paired *paired, const struct lab *lab, const struct lab_drawn *drawn,
	const struct lab_setting *setting, const char *label, bool keep_traces, size_t *arm,
	int64_t *repeats, struct error *err)
{
	struct lab_run planted;
	struct lab_run shown = {0};
	int code = lab_configure(lab, drawn, setting, true, &planted, err);
	if (code)
		return code;
	code = lab_configure(lab, drawn, setting, false, &shown, err);
	if (!code) {
		char name[RECORD_NAME_BYTES];
		(void)snprintf(name, sizeof name, "lab-%02u-%s", lab->number, label);
		const struct paired_arm_spec spec = {.label = label,
			.name = name,
			.config = &planted.config,
			.node = {.cores = planted.node_cores},
			.keep_traces = keep_traces,
			.shown = &shown.config};
		*repeats = config_integer(&planted.config, KEY_MEASURE_REPEATS);
		code = paired_add(paired, &spec, arm, err);
		config_release(&shown.config);
	}
	config_release(&planted.config);
	return code;
}

/* --- the laptop ------------------------------------------------------------------------------- */

static double lab_usable_cores(void)
{
	cpu_set_t usable;
	struct cpu_quotas quotas;
	double cores = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
	cgroup_cpu_quotas(&quotas);
	const struct cpu_quota *least = cgroup_tightest(&quotas);
	if (least && isfinite(least->cores))
		cores = fmin(cores, floor(least->cores));
	return fmax(cores, 1);
}

static double lab_sleep_late_s(void)
{
	double late[LAB_SLEEPS];
	for (size_t i = 0; i < LAB_SLEEPS; i++) {
		const struct timespec wait = {.tv_nsec = LAB_SLEEP_NS};
		const uint64_t began = clock_now_ns();
		(void)nanosleep(&wait, NULL);
		const double took = (double)(clock_now_ns() - began);
		late[i] = fmax(took - LAB_SLEEP_NS, 0) / (double)NS_PER_S;
	}
	sort_doubles(late, LAB_SLEEPS);
	return late[LAB_SLEEPS * 9 / 10];
}

/* One worker that decodes what lies in memory, for a step that takes no time. */
static int lab_decode_alone(struct config *config, struct error *err)
{
	static const struct {
		enum key_id key;
		const char *value;
	} alone[] = {{KEY_READ_ENGINE, "memory"}, {KEY_READ_CACHE, "as-is"},
		{KEY_DECODE_WORKERS, "1"}, {KEY_DECODE_SHARE, "samples"},
		{KEY_STEP_BACKEND, "null"}, {KEY_STEP_DEVICES, "1"}, {KEY_PREFETCH_DEPTH, "4"},
		{KEY_MEASURE_WARMUP, "300ms"}, {KEY_MEASURE_DURATION, "1s"},
		{KEY_MEASURE_EPOCHS, "0"}};
	int code = 0;
	for (size_t i = 0; i < COUNT(alone) && !code; i++)
		code = config_set_key(config, alone[i].key, alone[i].value, err);
	return code;
}

static int lab_measure_decode(const struct invocation *invocation, const struct lab *lab,
	const char *folder, double *seconds, struct error *err)
{
	struct config config = {0};
	struct paired *paired = NULL;
	size_t arm = 0;
	size_t count;
	config_init(&config);
	int code = config_read_file(&config, lab->path, err);
	if (!code)
		code = lab_settle_storage(lab, &config, err);
	if (!code)
		code = lab_decode_alone(&config, err);
	if (!code)
		code = lab_open_session(invocation, folder, LAB_SEED, LAB_LAPTOP_S, &paired, err);
	const struct paired_arm_spec spec = {.label = "decode-alone", .config = &config};
	if (!code)
		code = paired_add(paired, &spec, &arm, err);
	if (!code)
		code = paired_block(paired, &arm, 1, err);
	*seconds = NAN;
	if (!code) {
		const double *rates = paired_rates(paired, arm, &count);
		if (count > 0 && rates[count - 1] > 0)
			*seconds = 1 / rates[count - 1];
		else
			code = error_set(err, -EIO, "decoding could not be measured here");
	}
	paired_close(paired);
	config_release(&config);
	return code;
}

int lab_run_laptop(const struct invocation *invocation, const struct lab *lab, json_t *known,
	const char *place, struct lab_laptop *laptop, struct error *err)
{
	char name[LAB_WORD_BYTES];
	(void)snprintf(name, sizeof name, "decode_s_%02u", lab->number);
	laptop->cores = lab_usable_cores();
	/* Another number of cores is another laptop. */
	if (json_number_value(json_object_get(known, "cores")) != laptop->cores)
		(void)json_object_clear(known);
	laptop->decode_s = json_number_value(json_object_get(known, name));
	laptop->sleep_s = json_number_value(json_object_get(known, "sleep_s"));
	int code = 0;
	if (!(laptop->sleep_s > 0))
		laptop->sleep_s = lab_sleep_late_s();
	if (!lab_needs_decode(lab)) {
		laptop->decode_s = NAN;
	} else if (!(laptop->decode_s > 0)) {
		char *folder = files_join(place, "calibration");
		code = folder ? lab_measure_decode(invocation, lab, folder, &laptop->decode_s, err)
			      : error_set(err, -ENOMEM, "out of memory");
		if (folder)
			(void)files_remove_tree(folder, NULL);
		free(folder);
		if (!code)
			(void)json_object_set_new(known, name, json_real(laptop->decode_s));
	}
	(void)json_object_set_new(known, "cores", json_real(laptop->cores));
	(void)json_object_set_new(known, "sleep_s", json_real(laptop->sleep_s));
	return code;
}

/* --- measuring -------------------------------------------------------------------------------- */

static int lab_measure_arm(struct paired *paired, size_t arm, int64_t repeats, struct error *err)
{
	int code = 0;
	for (int64_t i = 0; i < repeats && !code; i++) {
		code = paired_block(paired, &arm, 1, err);
		if (!code && paired_arm_broken(paired, arm))
			code = error_set(err, -EIO, "the measurement fails: %s",
				paired_arm_broken(paired, arm));
	}
	/* What is there will do. */
	size_t count;
	(void)paired_rates(paired, arm, &count);
	return code == -ETIME && count > 0 ? 0 : code;
}

static int lab_result_open(struct lab_result *result, const char *folder, struct error *err)
{
	int code = record_open(&result->record, folder, err);
	if (!code)
		code = report_open(&result->report, &result->record, err);
	if (!code)
		code = report_diagnose(&result->report, err);
	if (!code) /* the verdict is what the student shall find, not read in the folder */
		saved_diagnoses_forget(&result->record);
	const struct point_summary *p = code ? NULL : result->report.points[0];
	if (!code && (!p || p->repeat_count == 0))
		return error_set(err, -EIO, "no repetition could be measured");
	if (code)
		return code;
	result->measured = (struct lab_measured){.rate = p->median,
		.low = p->repeats[0],
		.high = p->repeats[0],
		.device = p->step_utilisation * 100};
	for (size_t i = 0; i < p->repeat_count; i++) {
		result->measured.low = fmin(result->measured.low, p->repeats[i]);
		result->measured.high = fmax(result->measured.high, p->repeats[i]);
	}
	return 0;
}

void lab_result_close(struct lab_result *result)
{
	if (result->report.record)
		report_close(&result->report);
	record_release(&result->record);
	*result = (struct lab_result){0};
}

int lab_run_measure(const struct invocation *invocation, const struct lab *lab,
	const struct lab_drawn *drawn, const struct lab_setting *setting, const char *place,
	unsigned number, struct lab_result *result, struct error *err)
{
	struct paired *paired = NULL;
	char label[PAIRED_LABEL_BYTES];
	size_t arm = 0;
	int64_t repeats = 0;
	*result = (struct lab_result){0};
	(void)snprintf(label, sizeof label, "m%03u", number);
	char *folder = files_join(place, label);
	int code =
		folder ? files_make_folder(place, err) : error_set(err, -ENOMEM, "out of memory");
	if (!code && access(folder, F_OK) ==
			     0) /* of a kill: no measurement that counts has this number */
		code = files_remove_tree(folder, err);
	if (!code)
		code = lab_open_session(invocation, place, LAB_SEED, LAB_MEASURE_S, &paired, err);
	if (!code)
		code = lab_add_arm(paired, lab, drawn, setting, label, true, &arm, &repeats, err);
	if (!code)
		code = lab_measure_arm(paired, arm, repeats, err);
	paired_close(paired);
	if (!code)
		code = lab_result_open(result, folder, err);
	if (code)
		lab_result_close(result);
	free(folder);
	return code;
}

/* --- the check -------------------------------------------------------------------------------- */

enum { LAB_ARM_BROKEN, LAB_ARM_YOURS, LAB_ARM_BEST, LAB_ARMS };

static int lab_check_blocks(struct paired *paired, const size_t arms[LAB_ARMS], double pass,
	struct lab_judgement *judgement, struct error *err)
{
	struct lab_block blocks[LAB_BLOCKS_MOST];
	size_t count = 0;
	int code = 0;
	while (!code && judgement->gain == LAB_GAIN_OPEN && count < LAB_BLOCKS_MOST) {
		const double *rates[LAB_ARMS];
		code = paired_block(paired, arms, LAB_ARMS, err);
		for (size_t i = 0; i < LAB_ARMS && !code; i++) {
			rates[i] = paired_rates(paired, arms[i], &count);
			if (paired_arm_broken(paired, arms[i]))
				code = error_set(err, -EIO, "the check fails: %s",
					paired_arm_broken(paired, arms[i]));
		}
		for (size_t i = 0; i < count && !code; i++)
			blocks[i] = (struct lab_block){rates[LAB_ARM_BROKEN][i],
				rates[LAB_ARM_YOURS][i], rates[LAB_ARM_BEST][i]};
		if (!code)
			*judgement = lab_judge(blocks, count, pass, LAB_WRONG_RATE);
	}
	return code == -ETIME ? 0 : code; /* what is known by then holds */
}

int lab_run_check(const struct invocation *invocation, const struct lab *lab,
	const struct lab_drawn *drawn, const struct lab_setting *setting, const char *place,
	struct lab_judgement *judgement, struct error *err)
{
	static const char *const labels[LAB_ARMS] = {"as-it-stood", "yours", "best"};
	const struct lab_setting broken = {0};
	struct lab_setting best;
	struct paired *paired = NULL;
	size_t arms[LAB_ARMS] = {0};
	int64_t repeats;
	*judgement = lab_judge(NULL, 0, 0, LAB_WRONG_RATE);
	int code = lab_setting_best(lab, drawn, &best, err);
	const struct lab_setting *const settings[LAB_ARMS] = {&broken, setting, &best};
	char *folder = files_join(place, "check");
	if (!code && !folder)
		code = error_set(err, -ENOMEM, "out of memory");
	if (!code && access(folder, F_OK) == 0) /* of a kill */
		code = files_remove_tree(folder, err);
	if (!code)
		code = lab_open_session(invocation, folder, (uint64_t)clock_utc_seconds(),
			lab_amount(lab, drawn->variant, LAB_CHECK, LAB_CHECK_S), &paired, err);
	for (size_t i = 0; i < LAB_ARMS && !code; i++)
		code = lab_add_arm(
			paired, lab, drawn, settings[i], labels[i], false, &arms[i], &repeats, err);
	if (!code)
		code = lab_check_blocks(paired, arms,
			lab_amount(lab, drawn->variant, LAB_PASS, LAB_SHARE_TO_PASS), judgement,
			err);
	paired_close(paired);
	if (folder && access(folder, F_OK) == 0)
		(void)files_remove_tree(folder, NULL);
	free(folder);
	return code;
}
