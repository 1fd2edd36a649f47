/* mlbench reproduce: the twin of a reported job beside variants of it, in turns, until it is shown that
 * what was reported happens here, that it does not, or the time is over. */
#include "harness/analyze/reproduction.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/calibration.h"
#include "harness/command/command.h"
#include "harness/command/paired.h"
#include "harness/command/relief.h"
#include "harness/command/run_plan.h"
#include "harness/fit/amount.h"
#include "harness/fit/case.h"
#include "harness/fit/twin.h"
#include "harness/measure/data_store.h"
#include "harness/record/config_json.h"
#include "harness/report/reproduce_report.h"
#include "pipelines/pipeline.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	REPRODUCE_BUDGET_S = 300,
	REPRODUCE_BUDGET_MOST_S = 3600, /* that is taken without being asked for */
	REPRODUCE_ROUNDS_LEAST = 4,
	REPRODUCE_ROUNDS_STUCK = 9
};

/* Of throughput, that a stage's costs must account for where only a replay says what it lacks. */
static const double REPRODUCE_ELASTICITY_LEAST = 0.5;

struct reproduce {
	const struct invocation *invocation;
	struct case_file file;
	struct config twin;
	char name[RECORD_NAME_BYTES], folder[PATH_MAX];
	struct node_limits node;
	bool as_reported;
	double budget_s;
	struct relief reliefs[RELIEFS_MAX];
	size_t relief_count;
	struct paired *paired;
	size_t twin_arm, arms[RELIEFS_MAX]; /* of the session */
	bool runs[RELIEFS_MAX];             /* it has an arm */
	char why_not[RELIEFS_MAX][RELIEF_WHY_BYTES];
	struct reproduction reproduction;
	struct report report;        /* of the twin, as last looked at */
	struct diagnosed *diagnosed; /* likewise; owned */
	bool is_diagnosed;
	char seen_why[EVIDENCE_BYTES];
	struct reproduction_need needs[COSTS];
	size_t need_count;
	char no_replay[EVIDENCE_BYTES];
	struct reproduction_difference differences[REPRODUCTION_DIFFERENCES_MAX];
	size_t difference_count;
	struct reproduce_lines emulated, assumed, unknown;
	bool interrupted;
};

/* --- what was asked for ----------------------------------------------------------------------- */

static int reproduce_read_options(struct reproduce *r, struct error *err)
{
	const struct options *options = &r->invocation->options;
	const char *budget = options->values[OPTION_BUDGET];
	const char *tolerance = options->values[OPTION_TOLERANCE];
	uint64_t ns = (uint64_t)REPRODUCE_BUDGET_S * NS_PER_S;
	double share = REPRODUCTION_TOLERANCE;
	if (budget && (units_parse_duration(budget, &ns) != 0 || ns == 0))
		return error_set(err, -EINVAL,
			"--budget takes a time, as '90s' or '10m', not '%.40s'", budget);
	if (tolerance && (units_parse_share(tolerance, &share) != 0 || !(share > 0) || share >= 1))
		return error_set(err, -EINVAL,
			"--tolerance takes a share above 0 and below 100%%, as '10%%', not '%.40s'",
			tolerance);
	if (options->values[OPTION_RESUME] && options->values[OPTION_OUT])
		return error_set(err, -EINVAL,
			"--resume and --out exclude each other: --resume names the folder");
	r->budget_s = (double)ns / (double)NS_PER_S;
	r->reproduction.tolerance = share;
	r->as_reported = options_given(options, OPTION_AS_REPORTED);
	return 0;
}

static int reproduce_read_case(struct reproduce *r, struct error *err)
{
	const char *path = r->invocation->options.arguments[0];
	char place[PATH_MAX];
	const char *found = config_place_find(path, place, sizeof place);
	if (access(found, R_OK) == 0 && !case_is(found))
		return error_set(err, -EINVAL,
			"'%s' is no case: it has no [case] section; 'mlbench fit' makes cases, and "
			"'mlbench run' measures configurations",
			path);
	int code = case_read(&r->file, found, err);
	if (!code && r->file.check == CASE_CHECK_UNFAITHFUL)
		code = error_set(err, -ENOTSUP,
			"'%s' is marked unfaithful, so nothing is concluded from it: %.160s; fit it again with more "
			"sources, or measure the twin alone with 'mlbench run'",
			path, r->file.check_why);
	if (!code)
		code = case_config(&r->file, r->as_reported, &r->twin, err);
	return code ? code : config_place_read(&r->twin, r->invocation, NULL, err);
}

static void reproduce_take_reported(struct reproduce *r)
{
	const struct finding *rate = &r->file.observed.known[FINDING_THROUGHPUT];
	struct reproduction_reported *reported = &r->reproduction.reported;
	const bool known = rate->how != FINDING_UNKNOWN;
	*reported = (struct reproduction_reported){.rate = known ? rate->value : (double)NAN,
		.interval = {NAN, NAN},
		.confidence = r->file.observed.confidence};
	if (known && rate->low > 0 && isfinite(rate->high))
		reported->interval = (struct interval){rate->low, rate->high};
	r->reproduction.step_is_of_rate =
		twin_step_is_of_rate(&r->file) &&
		config_real(&r->twin, KEY_STEP_TIME) == config_real(&r->file.twin, KEY_STEP_TIME);
	(void)snprintf(reported->stage, sizeof reported->stage, "%s", r->file.observed.stage);
	(void)snprintf(
		reported->resource, sizeof reported->resource, "%s", r->file.observed.resource);
}

/* --- the reported node ------------------------------------------------------------------------ */

static bool reproduce_could_emulate(const struct case_file *file)
{
	return file->reported.count > 0 || file->reported_cores >= 1 ||
	       file->environment.of[CASE_ENVIRONMENT_MEMORY].number <
		       (double)process_memory_limit() ||
	       (file->reported_quota > 0 && isfinite(file->reported_quota));
}

static void reproduce_emulate_cores(struct reproduce *r)
{
	cpu_set_t usable;
	const double wish = r->file.reported_cores;
	const int have = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 0;
	if (!(wish >= 1) || (int)fmin(wish, INT_MAX) == have)
		return;
	if (wish < have)
		r->node.cores = (unsigned)wish;
	if (wish < have)
		reproduce_add_line(
			&r->emulated, "", true, "%u of %d cores, as reported", r->node.cores, have);
	else
		reproduce_add_line(&r->emulated, "", false,
			"not the %.0f cores of the reported node: this one has %d, and only slower "
			"nodes can be emulated",
			wish, have);
}

static void reproduce_emulate_quota(struct reproduce *r)
{
	const double wish = r->file.reported_quota;
	const struct node_limits limits = {.quota_cores = wish};
	struct node_emulation emulation;
	struct cpu_quotas quotas;
	struct error why;
	if (!(wish > 0) || !isfinite(wish))
		return;
	cgroup_cpu_quotas(&quotas);
	const struct cpu_quota *least = cgroup_tightest(&quotas);
	if (least && least->cores <= wish) {
		reproduce_add_line(&r->emulated, "", false,
			"not the CPU quota of %s cores: this process has one of %s already",
			UNITS_PLAIN(wish, 3), UNITS_PLAIN(least->cores, 3));
		return;
	}
	if (node_emulation_begin(&emulation, &limits, &why) == 0) {
		r->node.quota_cores = wish;
		reproduce_add_line(&r->emulated, "", true, "a CPU quota of %s cores, as reported",
			UNITS_PLAIN(wish, 3));
	} else {
		reproduce_add_line(&r->emulated, "", false, "not the CPU quota of %s cores: %.150s",
			UNITS_PLAIN(wish, 3), why.text);
	}
	node_emulation_end(&emulation);
}

static void reproduce_emulate_memory(struct reproduce *r)
{
	char text[CASE_WORD_BYTES];
	const struct case_environment *reported = &r->file.environment;
	const double wish = reported->of[CASE_ENVIRONMENT_MEMORY].number;
	struct node_emulation emulation;
	struct error why;
	if (!(wish >= 1) || wish >= (double)process_memory_limit())
		return;
	const struct node_limits limits = {.memory_bytes = (uint64_t)wish};
	(void)case_environment_words(reported, CASE_ENVIRONMENT_MEMORY, text);
	if (node_emulation_begin(&emulation, &limits, &why) == 0) {
		r->node.memory_bytes = limits.memory_bytes;
		reproduce_add_line(&r->emulated, "", true,
			"%s of memory, page cache included, as reported", text);
	} else {
		reproduce_add_line(&r->emulated, "", false,
			"not the memory of the reported node, %s: %.150s", text, why.text);
	}
	node_emulation_end(&emulation);
}

static bool reproduce_is_set(const struct reproduce *r, const char *name)
{
	const struct options *options = &r->invocation->options;
	const size_t length = strlen(name);
	bool is = false;
	for (size_t i = 0; i < options->set_count; i++)
		is = is || (strncmp(options->sets[i], name, length) == 0 &&
				   options->sets[i][length] == '=');
	return is;
}

/* What is in the configuration announces itself in the results, too. */
static void reproduce_emulate_storage(struct reproduce *r)
{
	for (size_t i = 0; i < r->file.reported.count; i++) {
		const struct case_line *line = &r->file.reported.of[i];
		char name[CONFIG_NAME_BYTES];
		const char *words = line->key == KEY_INJECT_READ_LATENCY
					    ? "more for each file, as reported"
				    : line->key == KEY_INJECT_READ_BANDWIDTH
					    ? "for all reads together, as reported"
					    : "as reported";
		(void)config_key_name(line->key, name);
		if (reproduce_is_set(r, name))
			reproduce_add_line(&r->emulated, "", false,
				"not %s = %.100s, as reported: --set says another value", name,
				line->text);
		else
			reproduce_add_line(
				&r->emulated, "", true, "%s = %.100s: %s", name, line->text, words);
	}
}

static void reproduce_emulate(struct reproduce *r)
{
	if (!r->as_reported)
		return;
	reproduce_emulate_cores(r);
	reproduce_emulate_quota(r);
	reproduce_emulate_memory(r);
	reproduce_emulate_storage(r);
	if (r->emulated.count == 0)
		reproduce_add_line(&r->emulated, "", false,
			"nothing: the case says of the reported node nothing that could be");
	for (size_t i = 0; i < r->emulated.count; i++)
		log_info("emulated: %s", r->emulated.of[i].words);
}

/* --- arms ------------------------------------------------------------------------------------- */

/* results/reproduce-NAME/TIME-PID, or what was asked for. */
static void reproduce_choose_folder(struct reproduce *r)
{
	const struct options *options = &r->invocation->options;
	const char *asked = options->values[OPTION_RESUME] ? options->values[OPTION_RESUME]
							   : options->values[OPTION_OUT];
	char utc[CLOCK_UTC_BYTES];
	clock_format_utc_compact(clock_utc_seconds(), utc);
	if (asked)
		(void)snprintf(r->folder, sizeof r->folder, "%.4000s", asked);
	else
		(void)snprintf(r->folder, sizeof r->folder, RESULTS_FOLDER "/reproduce-%s/%s-%d",
			r->name, utc, (int)getpid());
}

/* All that can be refused is refused here; and the variants, which need the data set. */
static int reproduce_plan(struct reproduce *r, struct error *err)
{
	struct invocation plain = *r->invocation;
	struct plan plan = {0};
	plain.options.set_count = 0; /* they are in the configuration */
	int code = config_copy(&plan.config, &r->twin, err);
	if (!code)
		code = plan_open(&plan, &plain, NULL, err);
	if (!code && plan.grid.points != 1)
		code = error_set(err, -EINVAL, "'%s' sweeps: a case is one setting",
			r->invocation->options.arguments[0]);
	if (!code)
		code = plan_data(&plan, &plain, true, err);
	if (!code)
		code = relief_list(&r->twin, &plan.dataset,
			stage_is(r->reproduction.reported.stage, STAGE_PREFETCH), r->reliefs,
			&r->relief_count, err);
	(void)snprintf(r->name, sizeof r->name, "%s", plan.name);
	plan_close(&plan);
	return code;
}

static int reproduce_add_arm(struct reproduce *r, const char *label, const struct config *config,
	bool keep_traces, size_t *arm, struct error *err)
{
	char name[RECORD_NAME_BYTES];
	(void)snprintf(name, sizeof name, "%.80s-%.40s", r->name, label);
	const struct paired_arm_spec spec = {.label = label,
		.name = name,
		.config = config,
		.node = r->node,
		.keep_traces = keep_traces};
	return paired_add(r->paired, &spec, arm, err);
}

/* A variant that cannot run here says why, and the others do. */
static int reproduce_add_arms(struct reproduce *r, struct error *err)
{
	int code = reproduce_add_arm(r, RECORD_TWIN, &r->twin, true, &r->twin_arm, err);
	for (size_t i = 0; i < r->relief_count && !code; i++) {
		struct relief *relief = &r->reliefs[i];
		struct reproduction_variant *v = &r->reproduction.variants[i];
		struct error why = {0};
		(void)snprintf(v->stage, sizeof v->stage, "%s", relief->stage);
		(void)snprintf(v->what, sizeof v->what, "%s", relief->what);
		v->aside = relief->stage[0] == '\0';
		memcpy(r->why_not[i], relief->why, sizeof r->why_not[i]);
		if (relief->why[0])
			continue;
		const int added = reproduce_add_arm(
			r, relief->label, &relief->config, false, &r->arms[i], &why);
		r->runs[i] = added == 0;
		if (added == -EDOM || added == -ENOMEM || added == -EINTR) {
			*err = why;
			code = added;
		}
		(void)snprintf(r->why_not[i], sizeof r->why_not[i], "%.*s", RELIEF_WHY_BYTES - 1,
			why.text);
	}
	r->reproduction.variant_count = r->relief_count;
	return code;
}

static int reproduce_open(struct reproduce *r, struct error *err)
{
	const struct paired_options options = {.invocation = r->invocation,
		.folder = r->folder,
		.seed = (uint64_t)config_integer(&r->twin, KEY_RUN_SEED),
		.budget_s = r->budget_s,
		.resume = options_given(&r->invocation->options, OPTION_RESUME)};
	const int code = paired_open(&r->paired, &options, err);
	return code ? code : reproduce_add_arms(r, err);
}

/* --- looking ---------------------------------------------------------------------------------- */

static void reproduce_forget(struct reproduce *r)
{
	if (r->is_diagnosed)
		diagnosed_close(r->diagnosed);
	r->is_diagnosed = false;
	report_close(&r->report);
	r->report = (struct report){0};
}

/* Where the diagnosis abstains: what the stage lacks that the experiments are about, by the costs
 * that throughput answers to.  Of reads one operating point does not tell. */
static void reproduce_ask_replay(struct reproduce *r)
{
	struct reproduction_seen *seen = &r->reproduction.seen;
	struct elasticities elasticities;
	struct error why;
	double sum = 0;
	if (strcmp(seen->stage, "none") != 0 || !r->diagnosed->calibrated ||
		model_elasticities(&r->diagnosed->calibration.model, 1, &elasticities, &why))
		return;
	const enum replay_cost most = model_limiting_cost(&elasticities);
	const char *stage = replay_cost_stage(most);
	for (int cost = 0; cost < COSTS; cost++)
		if (strcmp(replay_cost_stage((enum replay_cost)cost), stage) == 0)
			sum += elasticities.costs[cost].value;
	if (sum < REPRODUCE_ELASTICITY_LEAST || stage_is(stage, STAGE_READ))
		return;
	(void)snprintf(seen->stage, sizeof seen->stage, "%s", stage);
	(void)snprintf(seen->resource, sizeof seen->resource, "%s", replay_cost_resource(most));
	seen->confidence = REPRODUCTION_SURE;
	seen->by_replay = true;
	char words[EVIDENCE_BYTES];
	memcpy(words, r->seen_why, sizeof words);
	(void)snprintf(r->seen_why, sizeof r->seen_why,
		"by replay alone; the diagnosis abstains: %.*s", EVIDENCE_BYTES - 64, words);
}

/* What the twin's repetitions say of their bottleneck; nothing is an answer, too. */
static void reproduce_diagnose(struct reproduce *r)
{
	struct reproduction_seen *seen = &r->reproduction.seen;
	struct error why = {0};
	*seen = (struct reproduction_seen){.stage = ""};
	reproduce_forget(r);
	int code = report_open(&r->report, paired_record(r->paired, r->twin_arm), &why);
	if (!code)
		code = diagnosed_open(r->diagnosed, &r->report, 0, &why);
	r->is_diagnosed = code == 0;
	(void)snprintf(r->seen_why, sizeof r->seen_why, "%.*s", EVIDENCE_BYTES - 1, why.text);
	if (code)
		return;
	const struct verdict *v = &r->diagnosed->diagnosis.verdict;
	memcpy(seen->stage, v->stage, sizeof seen->stage);
	memcpy(seen->also, v->also, sizeof seen->also);
	memcpy(seen->resource, v->resource, sizeof seen->resource);
	seen->confidence = v->confidence;
	(void)snprintf(
		r->seen_why, sizeof r->seen_why, "%s", v->evidence_count > 0 ? v->evidence[0] : "");
	reproduce_ask_replay(r);
}

/* A repetition's rate, where it counts (measurement.h); else NAN. */
static double reproduce_rate(const struct reproduce *r, size_t arm, size_t repeat)
{
	const struct record *record = paired_record(r->paired, arm);
	size_t count;
	const double *rates = paired_rates(r->paired, arm, &count);
	return repeat < count && repeat < record->entry_count &&
			       record_counts(record, &record->entries[repeat])
		       ? rates[repeat]
		       : (double)NAN;
}

/* Variants against the twin's repetition of the same number: of the same round, but after a kill. */
static void reproduce_gather(struct reproduce *r)
{
	struct reproduction *to = &r->reproduction;
	size_t count;
	(void)paired_rates(r->paired, r->twin_arm, &count);
	to->rate_count = 0;
	for (size_t k = 0; k < count && to->rate_count < REPRODUCTION_REPEATS_MAX; k++)
		if (reproduce_rate(r, r->twin_arm, k) > 0)
			to->rates[to->rate_count++] = reproduce_rate(r, r->twin_arm, k);
	for (size_t i = 0; i < to->variant_count; i++) {
		struct reproduction_variant *v = &to->variants[i];
		bool any = false;
		v->count = 0;
		if (!r->runs[i])
			continue;
		for (size_t k = 0; k < count && v->count < REPRODUCTION_REPEATS_MAX; k++) {
			v->ratios[v->count] = reproduce_rate(r, r->arms[i], k) /
					      reproduce_rate(r, r->twin_arm, k);
			any = any || v->ratios[v->count] > 0;
			v->count++;
		}
		const char *broken = paired_arm_broken(r->paired, r->arms[i]);
		if (broken && !any)
			(void)snprintf(r->why_not[i], sizeof r->why_not[i], "%.*s",
				RELIEF_WHY_BYTES - 1, broken);
	}
}

static void reproduce_look(struct reproduce *r)
{
	reproduce_gather(r);
	reproduce_diagnose(r);
	reproduction_judge(&r->reproduction);
}

/* --- measuring -------------------------------------------------------------------------------- */

static int reproduce_round(struct reproduce *r, struct error *err)
{
	size_t arms[RELIEFS_MAX + 1] = {r->twin_arm};
	size_t count = 1;
	for (size_t i = 0; i < r->relief_count; i++)
		if (r->runs[i] && !paired_arm_broken(r->paired, r->arms[i]))
			arms[count++] = r->arms[i];
	const char *broken = paired_arm_broken(r->paired, r->twin_arm);
	if (broken)
		return error_set(err, -EIO, "the twin cannot be measured: %.250s", broken);
	return paired_block(r->paired, arms, count, err);
}

/* 0: decided, or the time is over, or it was stopped. */
static int reproduce_measure(struct reproduce *r, struct error *err)
{
	struct reproduction *to = &r->reproduction;
	int code = 0;
	reproduce_look(r);
	while (!code && to->rate_count < REPRODUCTION_REPEATS_MAX &&
		(to->rate_count < REPRODUCE_ROUNDS_LEAST || to->outcome == REPRODUCTION_OPEN)) {
		code = reproduce_round(r, err);
		reproduce_gather(r);
		if (code || !reproduction_is_look(to->rate_count))
			continue;
		reproduce_look(r);
		if (to->rate_count >= REPRODUCE_ROUNDS_STUCK && reproduction_is_stuck(to))
			break;
	}
	log_progress_end();
	r->interrupted = code == -EINTR;
	if (code == -ETIME || code == -EINTR) {
		err->text[0] = '\0';
		code = 0;
	}
	if (!code)
		reproduce_look(r);
	return code;
}

static double reproduce_round_s(const struct reproduce *r, size_t arms)
{
	return (double)arms *
	       (double)(config_integer(&r->twin, KEY_MEASURE_WARMUP) +
			config_integer(&r->twin, KEY_MEASURE_DURATION)) /
	       (double)NS_PER_S;
}

/* Where none was set, one that has time for the rounds which an answer takes at least: the twin of a slow job runs for long. */
static void reproduce_widen_budget(struct reproduce *r)
{
	static const double spare = 1.5;
	const double least = reproduce_round_s(r, 1 + r->relief_count) * REPRODUCE_ROUNDS_LEAST;
	if (!options_given(&r->invocation->options, OPTION_BUDGET))
		r->budget_s = fmin(fmax(r->budget_s, spare * least), REPRODUCE_BUDGET_MOST_S);
}

static void reproduce_tell_plan(const struct reproduce *r)
{
	size_t arms = 1;
	char time[UNITS_BYTES];
	char most[UNITS_BYTES];
	for (size_t i = 0; i < r->relief_count; i++)
		arms += r->runs[i];
	log_info("the twin and %zu variant%s of it in turns, about %s a round, at most %s in all",
		arms - 1, arms == 2 ? "" : "s",
		clock_format_span(reproduce_round_s(r, arms), time, sizeof time),
		clock_format_span(r->budget_s, most, sizeof most));
	log_info("results in %s", r->folder);
	const double least = reproduce_round_s(r, arms) * REPRODUCE_ROUNDS_LEAST;
	if (least > r->budget_s)
		log_warn("--budget is too short for the %d rounds that an answer takes, about %s",
			(int)REPRODUCE_ROUNDS_LEAST, clock_format_span(least, time, sizeof time));
}

/* --- what differs ----------------------------------------------------------------------------- */

static struct reproduction_difference *reproduce_add_difference(
	struct reproduce *r, const char *name, enum reproduction_lever lever, double value)
{
	struct reproduction_difference *d = &r->differences[r->difference_count++];
	*d = (struct reproduction_difference){
		.lever = lever, .value = value, .predicted = NAN, .weight = WEIGHT_MAY};
	(void)snprintf(d->name, sizeof d->name, "%s", name);
	return d;
}

/* What a row of the fingerprint acts on.  An emulated step is as fast on any GPU. */
static void reproduce_lever(const struct reproduce *r, enum case_environment_id id, double value,
	struct reproduction_difference *d)
{
	const bool emulated = pipeline_facts(&r->twin).step_emulated;
	d->value = value;
	d->lever = LEVER_STAGE;
	switch (id) {
	case CASE_ENVIRONMENT_CORES:
		d->lever = LEVER_CORES;
		break;
	case CASE_ENVIRONMENT_CPU_QUOTA:
		d->lever = isfinite(value) ? LEVER_QUOTA : LEVER_NONE;
		break;
	case CASE_ENVIRONMENT_CPU:
		(void)snprintf(d->stage, sizeof d->stage, "%s", STAGE_DECODE_NAME);
		break;
	case CASE_ENVIRONMENT_MEMORY:
	case CASE_ENVIRONMENT_FILE_SYSTEM:
	case CASE_ENVIRONMENT_DEVICE:
		(void)snprintf(d->stage, sizeof d->stage, "%s", STAGE_READ_NAME);
		break;
	case CASE_ENVIRONMENT_GPU:
	case CASE_ENVIRONMENT_GPUS:
		d->lever = emulated ? LEVER_NONE : LEVER_STAGE;
		(void)snprintf(d->stage, sizeof d->stage, "%s", STAGE_STEP_NAME);
		break;
	case CASE_ENVIRONMENT_KERNEL:
	case CASE_ENVIRONMENT_COUNT:
		d->lever = LEVER_NONE;
		break;
	}
}

/* The result's environment is that of the node itself. */
static bool reproduce_is_emulated(const struct reproduce *r, enum case_environment_id id)
{
	return (id == CASE_ENVIRONMENT_CORES && r->node.cores > 0) ||
	       (id == CASE_ENVIRONMENT_CPU_QUOTA && r->node.quota_cores > 0) ||
	       (id == CASE_ENVIRONMENT_MEMORY && r->node.memory_bytes > 0);
}

static void reproduce_compare_nodes(struct reproduce *r)
{
	struct case_environment here;
	case_environment_of(&paired_record(r->paired, r->twin_arm)->environment, &here);
	for (int i = 0; i < CASE_ENVIRONMENT_COUNT; i++) {
		const enum case_environment_id id = (enum case_environment_id)i;
		char reported[CASE_WORD_BYTES];
		char mine[CASE_WORD_BYTES];
		const struct case_fact *fact = &r->file.environment.of[id];
		const char *name = case_environment_name(id);
		(void)case_environment_words(&r->file.environment, id, reported);
		(void)case_environment_words(&here, id, mine);
		if (!fact->text[0] && isnan(fact->number)) {
			reproduce_add_line(&r->unknown, "", true, "%s", name);
			continue;
		}
		if (strcmp(reported, mine) == 0 || reproduce_is_emulated(r, id))
			continue;
		struct reproduction_difference *d =
			reproduce_add_difference(r, name, LEVER_NONE, NAN);
		(void)snprintf(d->reported, sizeof d->reported, "%s", reported);
		(void)snprintf(d->here, sizeof d->here, "%s", mine);
		reproduce_lever(r, id, fact->number, d);
	}
}

static const char *reproduce_reported_text(const struct reproduce *r, enum key_id key)
{
	for (size_t i = 0; i < r->file.reported.count; i++)
		if (r->file.reported.of[i].key == key)
			return r->file.reported.of[i].text;
	return NULL;
}

/* The store, as a replay has it: by what was measured of the reported one, or stands in for it. */
static void reproduce_compare_stores(struct reproduce *r, const struct model *model)
{
	static const struct {
		const char *name;
		enum finding_id id;
		enum key_id key;
		enum reproduction_lever lever;
		int (*parse)(const char *text, uint64_t *number);
	} parts[] = {
		{"read latency", FINDING_READ_LATENCY, KEY_INJECT_READ_LATENCY, LEVER_LATENCY,
			units_parse_duration},
		{"read bandwidth", FINDING_READ_BANDWIDTH, KEY_INJECT_READ_BANDWIDTH,
			LEVER_BANDWIDTH, units_parse_rate},
	};
	for (size_t i = 0; i < COUNT(parts); i++) {
		const struct finding *finding = &r->file.observed.known[parts[i].id];
		const char *text = reproduce_reported_text(r, parts[i].key);
		char words[CASE_WORD_BYTES];
		uint64_t number = 0;
		double value = finding->how != FINDING_UNKNOWN ? finding->value : (double)NAN;
		if (isnan(value) && text && parts[i].parse(text, &number) == 0)
			value = (double)number;
		if (!(value > 0) || (r->as_reported && text))
			continue;
		struct reproduction_difference *d =
			reproduce_add_difference(r, parts[i].name, parts[i].lever, value);
		(void)snprintf(d->stage, sizeof d->stage, "%s", STAGE_READ_NAME);
		(void)snprintf(d->reported, sizeof d->reported, "%s",
			amount_format(finding_unit(parts[i].id), value, words));
		const double mine = model && parts[i].lever == LEVER_LATENCY
					    ? model_mean_cost(&model->replay, COST_READ_LATENCY)
					    : (double)NAN;
		(void)snprintf(d->here, sizeof d->here, "%s",
			mine > 0 ? units_format_duration(mine, words) : "-");
	}
}

/* Only where the throughput is another one is it asked why. */
static int reproduce_explain(struct reproduce *r, struct error *err)
{
	const struct reproduction *to = &r->reproduction;
	const bool calibrated = r->is_diagnosed && r->diagnosed->calibrated;
	const struct model *model = calibrated ? &r->diagnosed->calibration.model : NULL;
	if (to->outcome == REPRODUCTION_SHOWN || to->twin.count == 0)
		return 0;
	reproduce_compare_nodes(r);
	reproduce_compare_stores(r, model);
	if (!calibrated)
		(void)snprintf(r->no_replay, sizeof r->no_replay,
			"what would have to differ is not predicted: %.*s", EVIDENCE_BYTES / 2,
			r->is_diagnosed ? r->diagnosed->why_not : r->seen_why);
	int code = 0;
	if (model && to->rate != RATE_WITHIN && to->reported.rate > 0)
		code = reproduction_needs(
			model, to->reported.rate, r->needs, COUNT(r->needs), &r->need_count, err);
	return code ? code
		    : reproduction_rank(r->differences, r->difference_count,
			      to->rate == RATE_WITHIN ? NULL : model,
			      calibrated ? r->diagnosed->calibration.bytes_per_sample : (double)NAN,
			      to, err);
}

/* --- telling ---------------------------------------------------------------------------------- */

static void reproduce_fill_view(const struct reproduce *r, struct reproduce_view *view)
{
	const struct record *record = paired_record(r->paired, r->twin_arm);
	size_t count;
	const double *rates = paired_rates(r->paired, r->twin_arm, &count);
	*view = (struct reproduce_view){.name = r->name,
		.created = r->file.created,
		.folder = r->folder,
		.reproduction = &r->reproduction,
		.disturbed = r->is_diagnosed ? r->diagnosed->summary->contaminated : "",
		.seen_why = r->seen_why,
		.needs = r->needs,
		.need_count = r->need_count,
		.no_replay = r->no_replay,
		.differences = r->differences,
		.difference_count = r->difference_count,
		.unknown = &r->unknown,
		.as_reported = r->as_reported,
		.could_emulate = !r->as_reported && reproduce_could_emulate(&r->file),
		.emulated = &r->emulated,
		.assumed = &r->assumed,
		.budget_s = r->budget_s,
		.spent_s = paired_spent_s(r->paired),
		.interrupted = r->interrupted};
	for (size_t i = 0; i < count; i++)
		view->left_out += isnan(rates[i]) ? 1 : 0;
	for (size_t i = 0; i < record->entry_count; i++)
		view->unsteady += record->entries[i].status == MEASUREMENT_UNSTEADY;
	for (size_t i = 0; i < r->relief_count; i++) {
		view->labels[i] = r->runs[i] ? r->reliefs[i].label : "";
		view->why_not[i] = r->why_not[i];
	}
}

static int reproduce_status(const struct reproduce *r)
{
	switch (r->reproduction.outcome) {
	case REPRODUCTION_SHOWN:
		return EXIT_STATUS_DONE;
	case REPRODUCTION_REFUTED:
		return EXIT_STATUS_FAILED;
	case REPRODUCTION_OPEN:
		break;
	}
	return r->interrupted ? EXIT_STATUS_INTERRUPTED : EXIT_STATUS_CANNOT;
}

static int reproduce_tell(struct reproduce *r, struct error *err)
{
	struct reproduce_view view;
	struct buffer text = {0};
	for (size_t i = 0; i < r->file.assumed.count; i++) {
		const struct case_line *line = &r->file.assumed.of[i];
		char name[CONFIG_NAME_BYTES];
		reproduce_add_line(
			&r->assumed, config_key_name(line->key, name), true, "%s", line->text);
	}
	reproduction_advise(&r->reproduction);
	reproduce_fill_view(r, &view);
	json_t *document = reproduce_json(&view);
	if (!document)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	const int saved = command_save_json(r->folder, REPRODUCE_FILE, document, err);
	int printed;
	if (command_wants_json(r->invocation)) {
		printed = command_print_json(r->invocation, json_incref(document), err);
	} else {
		const struct style style = command_style(r->invocation);
		struct medium medium = medium_terminal(&style, &text);
		reproduce_text(document, &medium);
		printed = command_print(&text, err);
	}
	json_decref(document);
	const int status = reproduce_status(r);
	return saved ? command_status(saved) : printed ? EXIT_STATUS_CANNOT : status;
}

static void reproduce_close(struct reproduce *r)
{
	reproduce_forget(r);
	free(r->diagnosed);
	paired_close(r->paired);
	relief_close(r->reliefs, r->relief_count);
	config_release(&r->twin);
	case_release(&r->file);
	free(r);
}

static int reproduce_run(const struct invocation *invocation, struct error *err)
{
	struct reproduce *r = calloc(1, sizeof *r);
	if (!r)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	r->invocation = invocation;
	r->diagnosed = calloc(1, sizeof *r->diagnosed);
	int code = r->diagnosed ? 0 : error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = reproduce_read_options(r, err);
	if (!code)
		code = reproduce_read_case(r, err);
	if (!code) {
		reproduce_take_reported(r);
		reproduce_emulate(r);
		code = reproduce_plan(r, err);
	}
	if (!code) {
		reproduce_widen_budget(r);
		reproduce_choose_folder(r);
		code = reproduce_open(r, err);
	}
	if (!code) {
		err->text[0] = '\0'; /* what was met and overcome on the way is no error */
		reproduce_tell_plan(r);
		code = reproduce_measure(r, err);
	}
	if (!code)
		code = reproduce_explain(r, err);
	const int status = code ? command_status(code) : reproduce_tell(r, err);
	reproduce_close(r);
	return status;
}

const struct command command_reproduce = {
	.name = "reproduce",
	.summary = "say whether the slow job of a case is seen here, and for the same reason",
	.arguments = "CASE",
	.description =
		"Measures the twin of a case (mlbench fit) on this node, in turns with variants of "
		"it. In each variant one suspected cost is taken away: files come from memory, "
		"samples are ready-made, the step takes no time; one has twice the workers. What "
		"limits the twin is what gains when it is taken away, so the cause is shown by "
		"experiment.\n\n"
		"It says 'reproduced' if the 95 % interval of the twin's throughput lies within "
		"--tolerance of the reported one, and the same stage and resource limit it. It says "
		"'not reproduced here' if the interval lies outside, or something else limits the "
		"twin; then it lists what differs between the two nodes, weighed by replay, and what "
		"would have to be slower by how much to give the reported throughput. Else it "
		"cannot tell, and says how many repetitions would decide. It looks after 4, 6, 9, 14, "
		"21, 32 and 48 rounds, stops at the first look that decides, and at the end of "
		"--budget; intervals are wide enough to hold over all these looks. Without --budget it "
		"takes at most 5 minutes, or as long as some rounds of a twin that runs for long.\n\n"
		"--as-reported emulates what the case says of the reported node: fewer cores, a CPU "
		"quota, less memory, the latency and the bandwidth of its storage. Only slower nodes than this "
		"one can be emulated. The output names what is emulated and what is not.\n\n"
		"Each repetition is saved as it ends, in a result of its own for the twin and for "
		"each variant, which every other command takes; reproduce.json beside them has the "
		"verdict. --resume adds repetitions to those in a folder.\n\n"
		"Exit status: 0 reproduced, 1 not reproduced here, 2 wrong input, 3 cannot tell.",
	.example = "mlbench reproduce case.ini --budget 5m",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_OUT) |
		   OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_RESUME) | OPTION_BIT(OPTION_BUDGET) |
		   OPTION_BIT(OPTION_TOLERANCE) | OPTION_BIT(OPTION_AS_REPORTED) |
		   OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = reproduce_run,
};
