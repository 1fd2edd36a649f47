/* mlbench fit: a case from whatever there is of somebody's job. */
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/command/cache_refill.h"
#include "harness/command/check_twin.h"
#include "harness/command/command.h"
#include "harness/command/saved.h"
#include "harness/command/twin_cost.h"
#include "harness/config/value.h"
#include "harness/fit/amount.h"
#include "harness/fit/case_report.h"
#include "harness/fit/scrub.h"
#include "harness/fit/source.h"
#include "harness/fit/twin.h"
#include "harness/measure/environment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIT_SOURCES_MAX = 64, FIT_COMPLAINT_BYTES_MAX = 64 << 20 };

static const double FIT_APART =
	0.1; /* two sources that are further apart on one fact contradict each other */

struct fit {
	const struct invocation *invocation;
	struct case_file file;
	struct source_more more; /* of all sources */
	bool has[SOURCE_USER];   /* kinds of sources that were given */
	bool fixed[KEY_COUNT];   /* keys that the user said, or a result */
	double budget_s;         /* of running the twin */
};

/* --- sources ------------------------------------------------------------------------------------ */

static bool fit_overlaps(const struct finding *one, const struct finding *other)
{
	const double low = isfinite(one->low) ? one->low : one->value;
	const double high = isfinite(one->high) ? one->high : one->value;
	const double other_low = isfinite(other->low) ? other->low : other->value;
	const double other_high = isfinite(other->high) ? other->high : other->value;
	return low <= other_high && other_low <= high;
}

/* Two sources that know the same fact and differ: which one counts is told, and both are. */
static void fit_contradiction(
	struct findings *known, const struct findings *from, enum finding_id id)
{
	const struct finding *one = &known->known[id];
	const struct finding *other = &from->known[id];
	char first[AMOUNT_BYTES_OUT];
	char second[AMOUNT_BYTES_OUT];
	const double apart = fabs(one->value - other->value);
	if (one->how < FINDING_DERIVED || other->how < FINDING_DERIVED ||
		one->source == other->source || fit_overlaps(one, other) ||
		apart <= FIT_APART * fmax(fabs(one->value), fabs(other->value)))
		return;
	(void)amount_words(finding_unit(id), one->value, first);
	(void)amount_words(finding_unit(id), other->value, second);
	findings_note(known, "%s is %s by %s, but %s by %s; the %s one counts", finding_name(id),
		first, finding_source_name(one->source), second, finding_source_name(other->source),
		finding_counts_before(other, one) ? "second" : "first");
	if (known->note_count > 0)
		log_warn("%s", known->notes[known->note_count - 1]);
}

static void fit_take_environment(
	struct case_environment *known, const struct case_environment *from)
{
	for (int id = 0; id < CASE_ENVIRONMENT_COUNT; id++)
		if (!known->of[id].text[0] && isnan(known->of[id].number))
			known->of[id] = from->of[id];
}

/* The setting of a result: what differs from the defaults, but for folders. */
static int fit_take_config(struct case_file *file, const struct config *config, struct error *err)
{
	int code = 0;
	for (int i = 0; i < KEY_COUNT && !code; i++) {
		const enum key_id key = (enum key_id)i;
		struct buffer text = {0};
		char name[CASE_WORD_BYTES];
		if (config_is_default(config, key) || strcmp(config_keys[key].name, "path") == 0 ||
			key == KEY_RUN_NAME || strcmp(config_keys[key].section, "sweep") == 0)
			continue;
		(void)snprintf(name, sizeof name, "%s.%s", config_keys[key].section,
			config_keys[key].name);
		value_write(key, &config->values[key], true, &text);
		code = text.failed ? error_set(err, -ENOMEM, "out of memory")
				   : case_set(file, name, text.data ? text.data : "", err);
		buffer_release(&text);
	}
	return code;
}

static int fit_take_more(
	struct fit *fit, struct source_more *more, const char *path, struct error *err)
{
	fit_take_environment(&fit->more.environment, &more->environment);
	if (isnan(fit->more.rate)) {
		fit->more.rate = more->rate;
		fit->more.per_second = more->per_second;
	}
	if (!fit->more.format[0])
		(void)snprintf(fit->more.format, sizeof fit->more.format, "%s", more->format);
	fit->more.loaders = fit->more.loaders || more->loaders;
	fit->more.shards = fit->more.shards || more->shards;
	if (!more->has_config)
		return 0;
	if (fit->more.has_config)
		return error_set(err, -EINVAL,
			"'%.200s': a second result of mlbench; a case has one setting", path);
	fit->more.config = more->config;
	fit->more.has_config = true;
	more->has_config = false;
	return 0;
}

/* Several traces are of the ranks of one job; of anything else two are two jobs, or one at two times. */
static int fit_check_again(
	struct fit *fit, enum finding_source kind, const char *name, struct error *err)
{
	const bool again = fit->has[kind];
	fit->has[kind] = true;
	if (!again || kind == SOURCE_TRACE || kind == SOURCE_RESULT)
		return 0;
	return error_set(err, -EINVAL,
		"'%.200s' is a second source of its kind (%s); a case takes one of each, and a trace for each rank",
		name, finding_source_name(kind));
}

/* A lab's measurement keeps its verdict from cases, too. */
static int fit_keep_lab(const char *path, struct error *err)
{
	struct record record = {0};
	int code = record_open(&record, path, err);
	if (!code)
		code = saved_may_open(&record, err);
	record_release(&record);
	return code;
}

static int fit_read_source(struct fit *fit, const char *name, struct error *err)
{
	struct findings from;
	struct source_more more;
	enum finding_source kind;
	struct findings *known = &fit->file.observed;
	char *saved = access(name, F_OK) != 0 && !strchr(name, '/')
			      ? files_join(RESULTS_FOLDER, name)
			      : NULL;
	const char *path = saved && access(saved, F_OK) == 0 ? saved : name;
	findings_open(&from);
	source_more_open(&more);
	int code = source_read(path, &from, &more, &kind, fit->invocation->stop, err);
	if (!code)
		log_info("%s: %s", name,
			kind == SOURCE_RESULT ? "a result of mlbench" : finding_source_name(kind));
	if (!code && kind == SOURCE_RESULT)
		code = fit_keep_lab(path, err);
	if (!code)
		code = fit_check_again(fit, kind, name, err);
	for (int id = 0; id < FINDING_COUNT && !code; id++)
		fit_contradiction(known, &from, (enum finding_id)id);
	if (!code && from.stage[0] && !known->stage[0])
		fit->file.judge = kind;
	if (!code)
		code = findings_merge(known, &from, err);
	if (!code)
		code = fit_take_more(fit, &more, path, err);
	source_more_release(&more);
	findings_close(&from);
	free(saved);
	return code;
}

/* --- what the user says ------------------------------------------------------------------------- */

/* A case is passed on: it holds no folder and nothing that looks like a name of the user's. */
static int fit_check_words(enum key_id key, const char *text, struct error *err)
{
	struct scrub_names names;
	struct scrubbed did;
	struct buffer plain = {0};
	const struct key *entry = &config_keys[key];
	if (entry->type != KEY_TYPE_TEXT)
		return 0;
	if (strcmp(entry->name, "path") == 0)
		return error_set(err, -EINVAL,
			"'%s.%s': a case holds no folder of yours; give it where the case is run, as in 'mlbench run "
			"CASE --set %s.%s=DIR'",
			entry->section, entry->name, entry->section, entry->name);
	scrub_names_here(&names);
	scrub_text(text, strlen(text), &names, &plain, &did);
	const bool same = !plain.failed && strcmp(plain.data ? plain.data : "", text) == 0;
	buffer_release(&plain);
	return same ? 0
		    : error_set(err, -EINVAL,
			      "'%s.%s' = '%.64s' looks like a name of yours, which a case does not hold",
			      entry->section, entry->name, text);
}

static void fit_say(struct findings *findings, enum finding_id id, enum finding_how how,
	double value, const char *why)
{
	findings->known[id] = (struct finding){.how = how,
		.source = SOURCE_USER,
		.value = value,
		.low = NAN,
		.high = NAN,
		.why = why};
}

/* "job.throughput=600" */
static int fit_set_finding(
	struct findings *findings, enum finding_id id, const char *text, struct error *err)
{
	const char *rest;
	double value;
	double scale = finding_unit(id) == AMOUNT_PER_S ? 1 : 0;
	struct buffer padded = {0};
	/* Behind a number without a unit, a sign that may follow one. */
	buffer_format(&padded, "%s,", text);
	int code = padded.failed ? error_set(err, -ENOMEM, "out of memory")
				 : amount_parse(finding_unit(id), padded.data, &scale, &value,
					   &rest, err);
	if (!code && strcmp(rest, ",") != 0)
		code = error_set(err, -EINVAL, "'%.48s' is more than one value", text);
	if (!code)
		code = finding_check_value(id, value, err);
	buffer_release(&padded);
	if (code)
		return error_prefix(err, code, "--set %s", finding_name(id));
	fit_say(findings, id, FINDING_MEASURED, value, NULL);
	return 0;
}

static enum finding_id fit_find_finding(const char *name)
{
	int id = 0;
	while (id < FINDING_COUNT && strcmp(finding_name((enum finding_id)id), name) != 0)
		id++;
	return (enum finding_id)id;
}

/* What a key says is known, too: the rules that follow look there. */
static void fit_mirror_key(struct case_file *file, const char *key)
{
	const enum key_id id = config_find_key(key);
	for (int i = 0; i < FINDING_COUNT; i++)
		if (strcmp(finding_key((enum finding_id)i), key) == 0)
			fit_say(&file->observed, (enum finding_id)i, FINDING_MEASURED,
				config_real(&file->twin, id), NULL);
}

static int fit_set(struct case_file *file, const char *assignment, struct error *err)
{
	const char *equals = strchr(assignment, '=');
	if (!equals)
		return error_set(err, -EINVAL,
			"--set '%.48s': write it as KEY=VALUE, as in --set batch.size=64",
			assignment);
	char *name = strndup(assignment, (size_t)(equals - assignment));
	if (!name)
		return error_set(err, -ENOMEM, "out of memory");
	const char *text = equals + 1 + strspn(equals + 1, " \t");
	const char *key = text_trim(name);
	const enum key_id id = config_find_key(key);
	const enum finding_id finding = fit_find_finding(key);
	int code = 0;
	if (id == KEY_COUNT && finding != FINDING_COUNT) {
		code = fit_set_finding(&file->observed, finding, text, err);
	} else {
		code = id == KEY_COUNT ? 0 : fit_check_words(id, text, err);
		if (!code)
			code = case_set(file, key, text, err);
		if (!code)
			fit_mirror_key(file, key);
		else
			code = error_prefix(err, code, "--set '%.64s'", assignment);
	}
	free(name);
	return code;
}

/* The last rate that the complaint tells: "from 900 to 600 images/s". */
static double fit_rate_of(const char *complaint)
{
	static const char *const units[] = {"images/s", "image/s", "img/s", "imgs/s", "samples/s",
		"sample/s", "images per second", "samples per second"};
	double rate = NAN;
	for (const char *at = complaint; (at = strpbrk(at, "0123456789")) != NULL;) {
		char *end;
		const double value = strtod(at, &end);
		const char *unit = end + strspn(end, " \n");
		for (size_t i = 0; i < COUNT(units); i++)
			if (strncasecmp(unit, units[i], strlen(units[i])) == 0 && value > 0 &&
				value < 1e9)
				rate = value;
		at = end > at ? end : at + 1;
	}
	return rate;
}

static int fit_complain(struct fit *fit, struct error *err)
{
	const char *given = fit->invocation->options.values[OPTION_COMPLAINT];
	const char *path = fit->invocation->options.values[OPTION_COMPLAINT_FILE];
	struct finding *throughput = &fit->file.observed.known[FINDING_THROUGHPUT];
	char *text = NULL;
	size_t size = given ? strlen(given) : 0;
	if (given && path)
		return error_set(
			err, -EINVAL, "--complaint and --complaint-file: only one of them");
	if (!given && !path)
		return 0;
	int code = path ? files_read(path, FIT_COMPLAINT_BYTES_MAX, &text, &size, err) : 0;
	if (!code)
		code = case_complain(&fit->file, path ? text : given, size, err);
	free(text);
	const double rate = code || !fit->file.complaint ? NAN : fit_rate_of(fit->file.complaint);
	if (rate > 0 && throughput->how != FINDING_UNKNOWN &&
		fabs(rate - throughput->value) > FIT_APART * throughput->value) {
		log_warn("the complaint says %g samples/s, but the job had %g by %s, which counts",
			rate, throughput->value, finding_source_name(throughput->source));
		findings_note(&fit->file.observed,
			"the complaint says %g samples/s, but the job had %g by %s, which counts",
			rate, throughput->value, finding_source_name(throughput->source));
	}
	if (throughput->how == FINDING_UNKNOWN && rate > 0)
		fit_say(&fit->file.observed, FINDING_THROUGHPUT, FINDING_ASSUMED, rate,
			"the last rate that the complaint tells");
	return code;
}

static int fit_hear(struct fit *fit, struct error *err)
{
	const struct options *options = &fit->invocation->options;
	const char *name = options->values[OPTION_NAME];
	int code = fit_complain(fit, err);
	if (!code && name) {
		code = fit_check_words(KEY_RUN_NAME, name, err);
		code = code ? error_prefix(err, code, "--name")
			    : case_set(&fit->file, "run.name", name, err);
	}
	if (!code && fit->more.has_config)
		code = fit_take_config(&fit->file, &fit->more.config, err);
	for (size_t i = 0; i < options->set_count && !code; i++)
		code = fit_set(&fit->file, options->sets[i], err);
	return code;
}

static int fit_read_budget(struct fit *fit, struct error *err)
{
	const char *budget = fit->invocation->options.values[OPTION_BUDGET];
	uint64_t ns = CHECK_TWIN_BUDGET_S * NS_PER_S;
	if (budget && units_parse_duration(budget, &ns) != 0)
		return error_set(
			err, -EINVAL, "--budget takes a time, as '20s', or 0, not '%.40s'", budget);
	fit->budget_s = (double)ns / (double)NS_PER_S;
	return 0;
}

/* --- the twin ----------------------------------------------------------------------------------- */

/* Whether a CPU like the job's is here, so that the twin's own CPU time can be measured. */
static bool fit_cpu_is_here(const struct fit *fit)
{
	struct fact_list facts = {0};
	struct case_environment here;
	const char *there = fit->file.environment.of[CASE_ENVIRONMENT_CPU].text;
	if (!there[0])
		return false;
	environment_capture(&facts, NULL);
	case_environment_of(&facts, &here);
	fact_list_release(&facts);
	return strcmp(there, here.of[CASE_ENVIRONMENT_CPU].text) == 0;
}

/* The twin's own CPU time for a sample; NAN where it cannot be told, or is of no use. */
static double fit_twin_cpu(struct fit *fit)
{
	struct error err = {0};
	double ns = NAN;
	if (fit->file.twin.is_set[KEY_OVERHEAD_SAMPLE] ||
		isnan(twin_loader_cpu(&fit->file, NULL)) || !fit_cpu_is_here(fit))
		return NAN;
	log_info("measuring the twin's own CPU time: this node has the job's model of CPU");
	if (twin_cost_measure(fit->invocation, &fit->file.twin, &ns, &err)) {
		log_warn("the twin's own CPU time was not measured: %s", err.text);
		return NAN;
	}
	char text[AMOUNT_BYTES_OUT];
	findings_note(&fit->file.observed,
		"the twin's own loader took %s of CPU time a sample on the node where the case was made, whose CPU is "
		"of the job's model; the rest of the job's is overhead",
		amount_words(AMOUNT_NS, ns, text));
	return ns;
}

/* What each wait for slow storage costs a loader in CPU time afterwards, where the node is like the job's: it goes with the
 * waits. */
static void fit_refill(struct fit *fit)
{
	const struct finding *cpu = &fit->file.observed.known[FINDING_CPU_SAMPLE];
	const double wait = twin_slow_read(&fit->file);
	const struct finding *read = &fit->file.observed.known[FINDING_CPU_READ];
	const double beyond = cpu->value - (read->how == FINDING_UNKNOWN ? 0 : read->value);
	struct error err = {0};
	double ns;
	double low;
	double high;
	if (isnan(wait) || cpu->how < FINDING_DERIVED || cpu->source != SOURCE_OBSERVED ||
		fit->file.twin.is_set[KEY_OVERHEAD_SAMPLE] || !fit_cpu_is_here(fit))
		return;
	if (cache_refill_measure(wait, beyond, fit->invocation->stop, &ns, &low, &high, &err))
		log_warn("what caches cost after a wait was not measured: %s", err.text);
	else
		findings_add(&fit->file.observed, FINDING_CPU_REFILL, SOURCE_OBSERVED,
			FINDING_ASSUMED, ns, low, high,
			"more CPU time that work of 10 MB of pages takes after a wait as long, measured where the case was "
			"made: a loader on CPython is taken to be like it");
}

/* An observed job shows bytes and not samples.  Where another source knows the rate, or how large files are, what was divided by
 * the first estimate of the rate is divided by the better one. */
static void fit_rescale(struct fit *fit)
{
	struct finding *known = fit->file.observed.known;
	struct finding *rate = &known[FINDING_THROUGHPUT];
	if ((rate->source == SOURCE_OBSERVED || rate->how < FINDING_DERIVED) &&
		known[FINDING_FILE_BYTES].source == SOURCE_FOLDER &&
		known[FINDING_READ_RATE].source == SOURCE_OBSERVED)
		*rate = (struct finding){.how = FINDING_DERIVED,
			.source = SOURCE_OBSERVED,
			.value = known[FINDING_READ_RATE].value / known[FINDING_FILE_BYTES].value,
			.low = NAN,
			.high = NAN,
			.why = "bytes read over the mean size of the folder's files: if each is read whole, once, and is "
			       "one sample"};
	const double factor = fit->more.rate / rate->value;
	const bool better = rate->how >= FINDING_DERIVED ||
			    (fit->more.per_second && rate->how != FINDING_UNKNOWN);
	if (!better || !(factor > 0) || !isfinite(factor)) {
		if (fit->more.per_second)
			source_forget_samples(&fit->file.observed);
		return;
	}
	if (fit->more.shards && known[FINDING_READ_RATE].source == SOURCE_OBSERVED)
		findings_add(&fit->file.observed, FINDING_FILE_BYTES, SOURCE_OBSERVED,
			FINDING_DERIVED, known[FINDING_READ_RATE].value / rate->value, NAN, NAN,
			"bytes read over the samples: the job's files may hold many each");
	for (const enum finding_id *id = source_of_sample; *id != FINDING_COUNT; id++)
		if (known[*id].source == SOURCE_OBSERVED) {
			known[*id].value *= factor;
			known[*id].low *= factor;
			known[*id].high *= factor;
		}
}

/* Whether the time between batches tells more of the rate than what was derived of it elsewhere: where that was of another time
 * between batches (a trace's, beside a log of steps), or of bytes that an observed job read, which may be far off. */
static bool fit_rate_by_period(const struct finding *rate, const struct finding *period)
{
	if (rate->how != FINDING_DERIVED)
		return rate->how < FINDING_DERIVED;
	return rate->source != SOURCE_USER && rate->source != period->source &&
	       period->high - period->low < period->value; /* NAN is not */
}

/* Whoever knows the time between batches and how large one is knows the rate. */
static void fit_complete(struct fit *fit)
{
	struct finding *known = fit->file.observed.known;
	const struct finding *period = &known[FINDING_STEP_PERIOD];
	const struct finding *batch = &known[FINDING_BATCH_SIZE];
	const double ranks =
		known[FINDING_RANKS].how == FINDING_UNKNOWN ? 1 : known[FINDING_RANKS].value;
	const double samples = batch->value * ranks * 1e9; /* over a time in ns */
	if (period->how < FINDING_DERIVED || batch->how < FINDING_DERIVED || !(period->value > 0) ||
		!fit_rate_by_period(&known[FINDING_THROUGHPUT], period))
		return;
	known[FINDING_THROUGHPUT] = (struct finding){.how = FINDING_DERIVED,
		.source = period->source,
		.value = samples / period->value,
		.low = samples / period->high,
		.high = samples / period->low,
		.why = "samples of a batch of all ranks over the time between batches"};
}

/* Where nothing was observed, the trainer's waits say whether the input or the step limits the job, and by how much. */
static void fit_judge_waits(struct fit *fit)
{
	static const double bound = 0.3;    /* of the time: it is the input */
	static const double free_of = 0.05; /* it is the step */
	struct findings *observed = &fit->file.observed;
	const struct finding *busy = &observed->known[FINDING_DEVICE_BUSY];
	const struct finding *step = &observed->known[FINDING_STEP_WAIT];
	const double waits = twin_wait_share(&fit->file);
	/* Steps take no less time than the device is busy, nor than the trainer does not wait. */
	const double least = fmax(1 - waits, busy->how == FINDING_UNKNOWN ? 0 : busy->value);
	const bool input = 1 - least >= bound;
	if (observed->stage[0] || fit->has[SOURCE_OBSERVED] || fit->more.has_config ||
		!(waits >= 0) || !(least > 0))
		return;
	findings_note(observed,
		"%s: the step waits %.0f %% of the time for data; a perfect loader would give at most %s times the "
		"throughput; measure next: %s",
		input                 ? "input-bound"
		: least > 1 - free_of ? "step-bound"
				      : "the input costs little",
		100 * waits, UNITS_PLAIN(1 / least, 3),
		input ? "'mlbench observe' on the job tells reading, decoding and locks apart"
		      : "what the step's own time is spent on, by a profiler");
	if (!input && least <= 1 - free_of)
		return;
	(void)snprintf(observed->stage, sizeof observed->stage, "%s",
		input ? STAGE_READ_NAME " or " STAGE_DECODE_NAME : STAGE_STEP_NAME);
	if (!input)
		(void)snprintf(observed->resource, sizeof observed->resource, "unknown");
	observed->confidence = 0.8;
	fit->file.judge = step->how == FINDING_UNKNOWN
				  ? observed->known[FINDING_STEP_WAIT_SHARE].source
				  : step->source;
}

static int fit_derive(struct fit *fit, struct error *err)
{
	const struct twin_hints hints = {.format = fit->more.format,
		.loaders = fit->more.loaders,
		.setting = fit->more.has_config};
	fit->file.environment = fit->more.environment;
	fit_complete(fit);
	fit_rescale(fit);
	twin_guess_batch(&fit->file.observed);
	fit_judge_waits(fit);
	if (!hints.setting)
		fit_refill(fit);
	int code = twin_derive(&fit->file, &hints, err);
	if (!code && !hints.setting)
		code = twin_derive_costs(&fit->file, fit_twin_cpu(fit), err);
	if (!code && atomic_load(fit->invocation->stop))
		code = error_set(err, -EINTR, "stopped; no case was written");
	return code ? code : config_validate(&fit->file.twin, err);
}

/* Whether the twin is like the job can be told on a node like the job's alone. */
static int fit_check(struct fit *fit, struct error *err)
{
	const char *cpu = fit->file.environment.of[CASE_ENVIRONMENT_CPU].text;
	const char *cannot =
		fit->more.has_config
			? "the twin is the setting of a result of mlbench, as it was measured"
		: !cpu[0]
			? "nothing tells which node the job ran on; 'mlbench observe' on the job does"
		: !fit_cpu_is_here(fit) ? "the job ran on another model of CPU than this node has"
		: !(fit->budget_s > 0)  ? "--budget 0"
					: NULL;
	return check_twin(fit->invocation, &fit->file, cannot, fit->fixed, fit->budget_s, err);
}

/* --- the case ----------------------------------------------------------------------------------- */

static int fit_show(const struct fit *fit, const char *out, struct error *err)
{
	struct buffer text = {0};
	if (!out && !command_wants_json(fit->invocation)) {
		case_print(&fit->file, &text);
		return command_print(&text, err);
	}
	json_t *document = case_json(&fit->file, out ? out : "case.ini", NULL);
	if (!document)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	if (command_wants_json(fit->invocation))
		return command_print_json(fit->invocation, document, err);
	const struct style style = command_style(fit->invocation);
	struct medium medium = medium_terminal(&style, &text);
	case_text(document, &medium);
	json_decref(document);
	struct buffer said = {0};
	buffer_format(&said, "wrote %s; read it once before you pass it on", out);
	buffer_text(&text, "\n");
	style_wrap(&style, said.data ? said.data : "", 0, 0, &text);
	buffer_release(&said);
	return command_print(&text, err);
}

static int fit_deliver(struct fit *fit, struct error *err)
{
	const char *out = fit->invocation->options.values[OPTION_OUT];
	char now[CLOCK_UTC_BYTES];
	clock_format_utc(clock_utc_seconds(), now);
	(void)snprintf(fit->file.created, sizeof fit->file.created, "%.10s", now);
	if (out && product_is_folder(out))
		return command_status(error_set(err, -EISDIR,
			"--out '%.200s' is a folder; name the case's file, as case.ini", out));
	const int code = out ? case_write(&fit->file, out, err) : 0;
	return code ? command_status(code) : fit_show(fit, out, err);
}

static int fit_run(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	struct fit fit = {.invocation = invocation};
	int code = 0;
	case_open(&fit.file);
	source_more_open(&fit.more);
	for (size_t i = 0; i < options->argument_count && !code; i++)
		code = fit_read_source(&fit, options->arguments[i], err);
	if (!code)
		code = fit_read_budget(&fit, err);
	if (!code)
		code = fit_hear(&fit, err);
	memcpy(fit.fixed, fit.file.twin.is_set, sizeof fit.fixed);
	if (!code)
		code = fit_derive(&fit, err);
	if (!code)
		code = fit_check(&fit, err);
	const int status = code ? command_status(code) : fit_deliver(&fit, err);
	source_more_release(&fit.more);
	case_release(&fit.file);
	return status;
}

const struct command command_fit = {
	.name = "fit",
	.summary =
		"make a case of a slow job: a synthetic twin in one file, without its owner's data",
	.arguments = "SOURCE...",
	.description =
		"Each SOURCE is recognised by its content: a folder of data (headers only), a trace of "
		"torch.profiler (.json, .json.gz), a log of step times (CSV, JSON, TensorBoard, what a program prints), a result of "
		"'mlbench observe --json', a result of mlbench. What they know is put together: what was "
		"measured counts before what was derived, and that before what is assumed; contradictions "
		"are told.\n\n"
		"A trace: steps by the profiler's annotations, else by requests to the DataLoader, else by "
		"Optimizer.step(); waits for batches, the device's busy share, copies to it, and the batch "
		"size where record_shapes=True was set. Of a job with several ranks give one trace per "
		"rank: their means count, and intervals hold all of them. Of a torn "
		"or damaged trace the complete steps count; how busy the device is, and what is copied to "
		"it, is unknown then.\n\n"
		"A log of step times: CSV whose first line names its columns (step_time_ms, iter_time_s, "
		"it/s or timestamp, and of use data_time_ms, the wait for a batch, samples, images/s and rank), or "
		"one column of times with their units; JSON with such keys, an object on each line or in a "
		"list, trainer_state.json of transformers too; TensorBoard's events with a scalar such as "
		"perf/step_time; or what a program prints, with whatever stands between: nanoGPT, "
		"nanochat, llm.c, LitGPT, Megatron-LM, NeMo, DeepSpeed, MaxText, pytorch/examples, "
		"torchvision, timm, MMEngine or detectron2, PaddlePaddle, fairseq, Keras, TensorFlow's "
		"Estimator, the Trainer of transformers, tqdm (Lightning's bars, too), or a logger with "
		"moments. Units are never guessed. Of several columns with step times one counts, and "
		"the case says which; of several ranks, the slowest one counts.\n\n"
		"The case is one INI file that 'mlbench run' runs as it is. It holds the twin's keys, what "
		"was observed and how it is known, the bottleneck as it was held to be, the node's "
		"fingerprint, and the complaint. Every guess is listed with its reason. No path, file, "
		"user or host name gets in: in the complaint they are replaced, and it is told what was.\n\n"
		"--set takes keys of configurations and names of findings, as 'job.throughput=600'; it "
		"counts before all sources. What the job's loader takes beyond the twin's own decoding "
		"becomes overhead.sample: where this node has the job's model of CPU, the twin is measured "
		"for a few seconds to tell how much. CPU time that goes with waiting for slow storage (calls, and "
		"caches that are filled again) is part of the latency that stands in for it.\n\n"
		"Where the job was observed on a node with this one's model of CPU, the twin runs for some "
		"seconds (--budget), with the reported store, cores and quota emulated. Its throughput, the trainer's wait, the "
		"loader's CPU time and its bottleneck are compared with the job's, and what was assumed is corrected. The case "
		"says what came of it: 'faithful'; 'unfaithful', with the reason, if the twin is more than 15 % off, something "
		"else limits it, or 'mlbench run' would refuse it: 'mlbench reproduce' concludes nothing from such a case; or "
		"'unchecked', with the reason, where it could not be told here.\n\n"
		"Without --out the file goes to standard output.",
	.example =
		"mlbench fit results/observe-python3/20261126T120000Z-4711 --complaint 'slow since Tuesday' --out case.ini",
	.options = OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_COMPLAINT) |
		   OPTION_BIT(OPTION_BUDGET) | OPTION_BIT(OPTION_COMPLAINT_FILE) |
		   OPTION_BIT(OPTION_NAME) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = FIT_SOURCES_MAX,
	.run = fit_run,
};
