/* Arms, blocks, and the file that says which repetitions belong together. */
#include "harness/command/paired.h"

#include "harness/analyze/summary.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "harness/command/live_show.h"
#include "harness/command/resume.h"
#include "harness/command/run_plan.h"
#include "pipelines/pipeline.h"
#include "workloads/source/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAIRED_SCHEMA "mlbench.paired/1"

enum { PAIRED_FILE_BYTES_MOST = 64 << 20, PAIRED_WHY_BYTES = 320 };

/* One data set, for all arms that read it. */
struct paired_data {
	struct config config;
	struct dataset dataset;
};

struct paired_arm {
	char label[PAIRED_LABEL_BYTES];
	bool open; /* false: known from an earlier call only */
	struct config config;
	struct config shown; /* of its results, where is_sealed */
	struct node_limits node;
	bool keep_traces, is_sealed;
	struct record record;
	size_t data;
	double *rates; /* (rate_count) by repetition; NAN: failed; owned */
	size_t rate_count;
	size_t paired; /* repetitions that stand in a block: those behind it were cut off by a kill */
	unsigned failures;
	char why[PAIRED_WHY_BYTES];
};

struct paired_member {
	uint32_t block, arm, repeat;
};

/* How many pairs of two arms the questions of this call have looked at: those of an earlier call are looked at one by one, too,
 * so that a session that goes on comes to the same answers by the same way. */
struct paired_seen {
	size_t a, b, count;
};

struct paired {
	struct invocation invocation;   /* without --set, which the arms have in them */
	const struct invocation *asked; /* with it: what is typed to measure it again */
	char *folder, *file;
	int lock;
	uint64_t seed, begun_ns;
	double budget_s;
	struct paired_arm *arms; /* (PAIRED_ARMS_MAX) */
	size_t arm_count;
	struct paired_data *data; /* (data_count); owned */
	size_t data_count;
	struct paired_member *members; /* in the order of blocks; owned */
	size_t member_count, member_room;
	uint32_t blocks;
	struct paired_seen *seen; /* (seen_count); owned */
	size_t seen_count;
	struct paired_noise noise;
	struct progress progress;
	double run_seconds; /* of this call's repetitions */
	size_t run_count;
};

/* --- the file of blocks ----------------------------------------------------------------------- */

static int paired_append(const struct paired *paired, json_t *line, struct error *err)
{
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	struct buffer out = {.failed = !text};
	if (text)
		buffer_format(&out, "%s\n", text);
	const int code = out.failed
				 ? error_set(err, -ENOMEM, "out of memory for '%s'", paired->file)
				 : files_append(paired->file, out.data, out.size, err);
	buffer_release(&out);
	free(text);
	json_decref(line);
	return code;
}

static size_t paired_find_label(const struct paired *paired, const char *label)
{
	size_t i = 0;
	while (i < paired->arm_count && strcmp(paired->arms[i].label, label) != 0)
		i++;
	return i;
}

/* The arm of this name, a new one if need be; PAIRED_ARMS_MAX: they are too many. */
static size_t paired_take_label(struct paired *paired, const char *label)
{
	const size_t i = paired_find_label(paired, label);
	if (i < paired->arm_count || i == PAIRED_ARMS_MAX)
		return i;
	(void)snprintf(paired->arms[i].label, PAIRED_LABEL_BYTES, "%s", label);
	paired->arm_count++;
	return i;
}

static int paired_add_member(struct paired *paired, size_t arm, uint32_t repeat, struct error *err)
{
	if (paired->member_count == paired->member_room) {
		const size_t room = paired->member_room ? 2 * paired->member_room : 256;
		struct paired_member *members = realloc(paired->members, room * sizeof *members);
		if (!members)
			return error_set(err, -ENOMEM, "out of memory for blocks");
		paired->members = members;
		paired->member_room = room;
	}
	paired->members[paired->member_count++] = (struct paired_member){
		.block = paired->blocks, .arm = (uint32_t)arm, .repeat = repeat};
	if (paired->arms[arm].paired < (size_t)repeat + 1)
		paired->arms[arm].paired = (size_t)repeat + 1;
	return 0;
}

static bool paired_is_label(const char *label)
{
	const size_t length = strlen(label);
	return length > 0 && length < PAIRED_LABEL_BYTES && label[0] != '.' &&
	       strspn(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		       length;
}

static int paired_read_block(struct paired *paired, const json_t *object, struct error *err)
{
	const json_t *arms = json_object_get(object, "arms");
	const json_t *repeats = json_object_get(object, "repeats");
	const size_t count = json_array_size(arms);
	if (count == 0 || count > PAIRED_TOGETHER_MAX || json_array_size(repeats) != count)
		return error_set(err, -EINVAL, "no block");
	for (size_t i = 0; i < count; i++) {
		const char *label = json_string_value(json_array_get(arms, i));
		const json_int_t repeat = json_integer_value(json_array_get(repeats, i));
		const size_t arm = label && paired_is_label(label)
					   ? paired_take_label(paired, label)
					   : PAIRED_ARMS_MAX;
		if (arm == PAIRED_ARMS_MAX || repeat < 0 || repeat > INT32_MAX)
			return error_set(err, -EINVAL, "no arms of a block");
		const int code = paired_add_member(paired, arm, (uint32_t)repeat, err);
		if (code)
			return code;
	}
	paired->blocks++;
	return 0;
}

static int paired_read_line(
	struct paired *paired, const char *line, size_t size, bool head, struct error *err)
{
	json_error_t wrong;
	json_t *object = json_loadb(line, size, 0, &wrong);
	const char *schema = json_string_value(json_object_get(object, "schema"));
	int code = 0;
	if (!object)
		code = error_set(err, -EINVAL, "not JSON: %s", wrong.text);
	else if (!head)
		code = paired_read_block(paired, object, err);
	else if (!schema || strcmp(schema, PAIRED_SCHEMA) != 0)
		code = error_set(err, -EINVAL, "not " PAIRED_SCHEMA);
	else if (json_integer_value(json_object_get(object, "seed")) != (json_int_t)paired->seed)
		code = error_set(err, -EDOM, "it was begun with another run.seed");
	json_decref(object);
	return code;
}

/* A torn last line is cut off. */
static int paired_read(struct paired *paired, struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	size_t at = 0;
	int code = files_read(paired->file, PAIRED_FILE_BYTES_MOST, &text, &size, err);
	for (size_t number = 1; !code && at < size; number++) {
		const char *end = memchr(text + at, '\n', size - at);
		if (!end)
			break;
		const size_t length = (size_t)(end - text) - at;
		code = paired_read_line(paired, text + at, length, number == 1, err);
		if (code)
			(void)error_prefix(err, code, "%s:%zu", paired->file, number);
		at += length + 1;
	}
	if (!code && at == 0)
		code = error_set(err, -EINVAL, "'%s' is empty", paired->file);
	if (!code && at < size && truncate(paired->file, (off_t)at) != 0)
		code = error_set_errno(err, errno, "cannot cut '%s'", paired->file);
	free(text);
	return code;
}

static int paired_begin_file(struct paired *paired, bool resume, struct error *err)
{
	const bool there = access(paired->file, F_OK) == 0;
	if (resume && !there)
		return error_set(err, -ENOENT, "'%s' holds nothing to go on with", paired->folder);
	if (!resume && there)
		return error_set(err, -EEXIST,
			"'%s' holds results already: go on with --resume, or name another folder",
			paired->folder);
	if (resume)
		return paired_read(paired, err);
	return paired_append(paired,
		json_pack("{s:s, s:I}", "schema", PAIRED_SCHEMA, "seed", (json_int_t)paired->seed),
		err);
}

int paired_open(struct paired **out, const struct paired_options *options, struct error *err)
{
	if (options->invocation->party)
		return error_set(err, -EINVAL,
			"'mlbench %s' measures on one node: start it without a launcher",
			options->invocation->command->name);
	struct paired *paired = calloc(1, sizeof *paired);
	*out = paired;
	if (!paired)
		return error_set(err, -ENOMEM, "out of memory");
	paired->lock = -1;
	paired->asked = options->invocation;
	paired->invocation = *options->invocation;
	paired->invocation.options.set_count = 0;
	paired->seed = options->seed;
	paired->budget_s = options->budget_s;
	paired->begun_ns = clock_now_ns();
	paired->folder = strdup(options->folder);
	paired->file = files_join(options->folder, RECORD_BLOCKS_FILE);
	paired->arms = calloc(PAIRED_ARMS_MAX, sizeof *paired->arms);
	int code = paired->folder && paired->file && paired->arms
			   ? 0
			   : error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = files_make_folder(paired->folder, err);
	if (!code) {
		paired->lock = open(paired->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		code = paired->lock < 0
			       ? error_set_errno(err, errno, "cannot open '%s'", paired->folder)
			       : files_lock(paired->lock, paired->folder);
		if (code == -EBUSY)
			(void)error_set(
				err, code, "another process measures into '%s'", paired->folder);
	}
	if (!code)
		code = paired_begin_file(paired, options->resume, err);
	if (code) {
		paired_close(paired);
		*out = NULL;
	}
	return code;
}

/* --- arms ------------------------------------------------------------------------------------- */

static bool paired_same_text(const struct config *a, const struct config *b, enum key_id key)
{
	char left[CONFIG_VALUE_BYTES];
	char right[CONFIG_VALUE_BYTES];
	if (config_keys[key].type == KEY_TYPE_TEXT)
		return strcmp(config_text(a, key), config_text(b, key)) == 0;
	return strcmp(config_format_value(key, &a->values[key], left, sizeof left),
		       config_format_value(key, &b->values[key], right, sizeof right)) == 0;
}

/* Whether both read the same data set: what a scan of it depends on. */
static bool paired_same_data(const struct config *a, const struct config *b)
{
	static const char *const sections[] = {"dataset", "sample", "volume", "tokens", "record"};
	for (int key = 0; key < KEY_COUNT; key++)
		for (size_t i = 0; i < COUNT(sections); i++)
			if (strcmp(config_keys[key].section, sections[i]) == 0 &&
				!paired_same_text(a, b, (enum key_id)key))
				return false;
	return paired_same_text(a, b, KEY_READ_ENGINE);
}

/* The plan with its data set, which the session owns. */
static int paired_plan(struct paired *paired, struct plan *plan, size_t *data, struct error *err)
{
	size_t at = 0;
	while (at < paired->data_count &&
		!paired_same_data(&paired->data[at].config, &plan->config))
		at++;
	const bool known = at < paired->data_count;
	if (known)
		plan->dataset = paired->data[at].dataset;
	plan->limits = 0;
	int code = plan_data(plan, &paired->invocation, true, err);
	*data = at;
	if (known || code)
		return code;
	struct paired_data *all = realloc(paired->data, (at + 1) * sizeof *all);
	if (!all)
		return error_set(err, -ENOMEM, "out of memory");
	paired->data = all;
	code = config_copy(&all[at].config, &plan->config, err);
	if (code)
		return code;
	all[at].dataset = plan->dataset;
	paired->data_count++;
	return 0;
}

static void paired_close_plan(struct paired *paired, struct plan *plan)
{
	for (size_t i = 0; i < paired->data_count; i++)
		if (plan->dataset.root && plan->dataset.root == paired->data[i].dataset.root)
			plan->dataset = (struct dataset){0};
	plan_close(plan);
}

/* The number of repetitions is not what was set, but what it came to. */
static int paired_check_config(const struct paired_arm *arm, struct error *err)
{
	struct config was = {0};
	char hashes[2][RECORD_HASH_BYTES];
	char repeats[CONFIG_VALUE_BYTES];
	int code = config_copy(&was, &arm->record.config, err);
	if (!code)
		code = config_set_key(&was, KEY_MEASURE_REPEATS,
			config_format_value(KEY_MEASURE_REPEATS,
				&arm->config.values[KEY_MEASURE_REPEATS], repeats, sizeof repeats),
			err);
	if (code)
		return code;
	config_hash(&was, hashes[0]);
	config_hash(arm->is_sealed ? &arm->shown : &arm->config, hashes[1]);
	config_release(&was);
	return strcmp(hashes[0], hashes[1]) == 0
		       ? 0
		       : error_set(err, -EDOM,
				 "cannot go on in '%s': it was measured with another configuration",
				 arm->record.folder);
}

static int paired_add_rate(struct paired_arm *arm, double rate, struct error *err)
{
	if ((arm->rate_count & (arm->rate_count + 1)) ==
		0) { /* 0, 1, 3, 7, ...: room for twice as many */
		double *rates = realloc(arm->rates, 2 * (arm->rate_count + 1) * sizeof *arm->rates);
		if (!rates)
			return error_set(err, -ENOMEM, "out of memory");
		arm->rates = rates;
	}
	arm->rates[arm->rate_count++] = rate;
	return 0;
}

static double paired_rate_of(const struct measurement *m)
{
	const bool good = m->status == MEASUREMENT_OK || m->status == MEASUREMENT_UNSTEADY;
	return good && m->throughput > 0 && isfinite(m->throughput) ? m->throughput : (double)NAN;
}

/* What an earlier call measured of it. */
static int paired_reopen(struct paired_arm *arm, char *folder, struct error *err)
{
	int code = record_open(&arm->record, folder, err);
	if (!code)
		code = paired_check_config(arm, err);
	if (!code)
		code = record_continue(&arm->record, err);
	for (size_t i = 0; i < arm->record.entry_count && !code; i++) {
		struct measurement *m = calloc(1, sizeof *m);
		code = m ? record_load(&arm->record, i, m, err)
			 : error_set(err, -ENOMEM, "out of memory");
		if (!code)
			code = paired_add_rate(arm, paired_rate_of(m), err);
		if (!code)
			arm->failures = isnan(arm->rates[i]) ? arm->failures + 1 : 0;
		if (m)
			measurement_release(m);
		free(m);
	}
	return code;
}

static int paired_make_record(
	struct paired *paired, struct paired_arm *arm, const struct plan *plan, struct error *err)
{
	char *folder = files_join(paired->folder, arm->label);
	char *points = folder ? files_join(folder, "points.jsonl") : NULL;
	int code = points ? 0 : error_set(err, -ENOMEM, "out of memory");
	if (!code && files_has_line(points)) {
		code = paired_reopen(arm, folder, err);
	} else if (!code) {
		arm->record.folder = folder;
		folder = NULL;
		code = resume_new_record(&arm->record, plan, paired->asked, err);
	}
	free(points);
	free(folder);
	return code;
}

static void paired_release_arm(struct paired_arm *arm)
{
	record_release(&arm->record);
	config_release(&arm->config);
	config_release(&arm->shown);
	free(arm->rates);
	arm->record = (struct record){0};
	arm->config = (struct config){0};
	arm->shown = (struct config){0};
	arm->rates = NULL;
	arm->rate_count = 0;
}

static int paired_take_config(struct config *to, const struct config *from, struct error *err)
{
	int code = config_copy(to, from, err);
	if (!code) /* how many there will be is not known */
		code = config_set_key(to, KEY_MEASURE_REPEATS, "1", err);
	return code ? code : config_set_key(to, KEY_MEASURE_LIMITS, "off", err);
}

/* From here on the plan is what results say. */
static int paired_seal_plan(const struct paired_arm *arm, struct plan *plan, struct error *err)
{
	struct config shown = {0};
	const int code = config_copy(&shown, &arm->shown, err);
	if (code)
		return code;
	config_release(&plan->config);
	plan->config = shown;
	config_hash(&plan->config, plan->hash);
	return 0;
}

/* Beyond its limit the kernel kills the process, as it would on that node. */
static int paired_check_memory(
	const struct plan *plan, const struct node_limits *node, struct error *err)
{
	char text[2][UNITS_BYTES];
	if (node->memory_bytes == 0 || plan->cost.bound_bytes <= node->memory_bytes)
		return 0;
	return error_set(err, -ENOTSUP,
		"the run may take %s of memory, more than the %s of the emulated node",
		units_format_size((double)plan->cost.bound_bytes, text[0]),
		units_format_size((double)node->memory_bytes, text[1]));
}

static int paired_open_arm(struct paired *paired, struct paired_arm *arm,
	const struct paired_arm_spec *spec, struct error *err)
{
	struct plan plan = {0};
	struct node_emulation emulation;
	arm->node = spec->node;
	arm->keep_traces = spec->keep_traces;
	arm->is_sealed = spec->shown != NULL;
	int code = paired_take_config(&arm->config, spec->config, err);
	if (!code && spec->shown)
		code = paired_take_config(&arm->shown, spec->shown, err);
	if (!code)
		code = config_copy(&plan.config, &arm->config, err);
	/* The plan is made on the emulated node: it has its cores. */
	if (!code)
		code = node_emulation_begin(&emulation, &arm->node, err);
	if (!code) {
		code = plan_open(&plan, &paired->invocation, NULL, err);
		if (!code)
			code = paired_plan(paired, &plan, &arm->data, err);
		if (!code)
			code = paired_check_memory(&plan, &arm->node, err);
		node_emulation_end(&emulation);
	}
	if (!code && arm->is_sealed)
		code = paired_seal_plan(arm, &plan, err);
	if (!code)
		(void)snprintf(
			plan.name, sizeof plan.name, "%s", spec->name ? spec->name : arm->label);
	if (!code)
		code = paired_make_record(paired, arm, &plan, err);
	paired_close_plan(paired, &plan);
	return code;
}

int paired_add(
	struct paired *paired, const struct paired_arm_spec *spec, size_t *out, struct error *err)
{
	if (!paired_is_label(spec->label))
		return error_set(err, -EINVAL, "'%.48s' is no name of an arm", spec->label);
	if (spec->config->axis_count > 0)
		return error_set(err, -EINVAL, "'%s' sweeps: an arm is one setting", spec->label);
	const size_t i = paired_take_label(paired, spec->label);
	if (i == PAIRED_ARMS_MAX)
		return error_set(err, -E2BIG, "more than %d arms", PAIRED_ARMS_MAX);
	struct paired_arm *arm = &paired->arms[i];
	*out = i;
	if (arm->open)
		return 0;
	const int code = paired_open_arm(paired, arm, spec, err);
	arm->open = code == 0;
	if (code)
		paired_release_arm(arm);
	return code;
}

/* Repetitions that the configuration says: as many as there are, so that nobody takes the result for unfinished. */
static void paired_end_arm(struct paired_arm *arm)
{
	struct error err = {0};
	int code = 0;
	if (arm->record.entry_count > 0)
		code = record_settle_repeats(&arm->record, (uint32_t)arm->record.entry_count, &err);
	if (!code)
		code = record_end(&arm->record, &err);
	if (code)
		log_warn("%s", err.text);
}

void paired_close(struct paired *paired)
{
	if (!paired)
		return;
	log_progress_end();
	for (size_t i = 0; paired->arms && i < paired->arm_count; i++) {
		if (paired->arms[i].open)
			paired_end_arm(&paired->arms[i]);
		paired_release_arm(&paired->arms[i]);
	}
	for (size_t i = 0; i < paired->data_count; i++) {
		dataset_close(&paired->data[i].dataset);
		config_release(&paired->data[i].config);
	}
	if (paired->lock >= 0)
		(void)close(paired->lock);
	free(paired->data);
	free(paired->members);
	free(paired->seen);
	free(paired->arms);
	free(paired->folder);
	free(paired->file);
	free(paired);
}

/* --- one repetition --------------------------------------------------------------------------- */

/* Files that were read before are held by whoever read them.  Read anew, they count against the limit, and those stay that have
 * room. */
static void paired_fill_cache(const struct paired *paired, const struct paired_arm *arm)
{
	const struct dataset *dataset = &paired->data[arm->data].dataset;
	struct residency after;
	struct error why;
	if (arm->node.memory_bytes == 0 || residency_evict(dataset, &after, &why) != 0)
		return;
	if (config_integer(&arm->config, KEY_READ_CACHE) != READ_CACHE_COLD)
		(void)residency_warm(dataset, &after, &why); /* -ENOMEM: not all of them have */
}

static int paired_run_pipeline(struct paired *paired, struct paired_arm *arm, struct measurement *m,
	struct traces *traces, struct error *err)
{
	struct node_emulation emulation;
	const struct pipeline_control control = {.stop = paired->invocation.stop,
		.progress = progress_tell,
		.choosing = progress_choosing,
		.context = &paired->progress,
		.traces = arm->keep_traces ? traces : NULL};
	const double started = clock_utc_seconds();
	int code = node_emulation_begin(&emulation, &arm->node, err);
	if (!code) {
		paired_fill_cache(paired, arm);
		progress_begin(&paired->progress, arm->label);
		code = pipeline_run(
			&arm->config, &paired->data[arm->data].dataset, &control, m, err);
		progress_end(&paired->progress);
		node_emulation_end(&emulation);
	}
	peaks_fill(m);
	m->started = started;
	if (code && m->status != MEASUREMENT_INTERRUPTED)
		m->status = MEASUREMENT_FAILED;
	if (atomic_load(paired->invocation.stop))
		m->status = MEASUREMENT_INTERRUPTED;
	return code;
}

/* A failure is told, counted, and kept in the result. */
static void paired_note_failure(
	struct paired_arm *arm, struct measurement *m, const struct error *why)
{
	(void)snprintf(m->error, sizeof m->error, "%s",
		why->text[0] ? why->text : "no batch was finished in it");
	(void)snprintf(arm->why, sizeof arm->why, "%.*s", PAIRED_WHY_BYTES - 1, m->error);
	arm->failures++;
	log_warn("%s, repetition %u failed: %s", arm->label, m->repeat, m->error);
}

static int paired_save(struct paired_arm *arm, const struct measurement *m,
	const struct traces *traces, struct error *err)
{
	struct error why = {0};
	if (traces->stage_count > 0 && record_save_traces(&arm->record, traces, m, &why))
		log_warn("%s; this repetition is kept without its traces", why.text);
	const int code = record_append(&arm->record, m, err);
	return code ? code : paired_add_rate(arm, paired_rate_of(m), err);
}

/* That something is planted is said; what it is, is not. */
static void paired_seal_notes(struct measurement *m)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->note_count; i++)
		if (strncmp(m->notes[i], "injected", strlen("injected")) != 0 &&
			strncmp(m->notes[i], "declared", strlen("declared")) != 0)
			memmove(m->notes[kept++], m->notes[i], NOTE_BYTES);
	m->note_count = kept;
	/* "the storage is emulated" */
	char *const whys[] = {m->store.why, m->network.why};
	for (size_t i = 0; i < COUNT(whys); i++)
		if (whys[i][0])
			(void)snprintf(whys[i], STORE_WHY_BYTES, "not told in a lab");
	measurement_note(m, RECORD_LAB_NOTE);
}

static int paired_run_once(struct paired *paired, struct paired_arm *arm, struct error *err)
{
	struct error why = {0};
	struct traces traces = {0};
	struct measurement *m = calloc(1, sizeof *m);
	const uint64_t begun_ns = clock_now_ns();
	int code = 0;
	if (!m)
		return error_set(err, -ENOMEM, "out of memory for a repetition");
	(void)paired_run_pipeline(paired, arm, m, &traces, &why);
	m->point = 0;
	m->repeat = (uint32_t)arm->rate_count;
	if (m->status == MEASUREMENT_INTERRUPTED) {
		code = error_set(err, -EINTR, "stopped");
	} else {
		if (m->status != MEASUREMENT_FAILED && isnan(paired_rate_of(m)))
			m->status = MEASUREMENT_FAILED; /* it would never become a pair */
		if (m->status == MEASUREMENT_FAILED)
			paired_note_failure(arm, m, &why);
		else
			arm->failures = 0;
		if (arm->is_sealed)
			paired_seal_notes(m);
		else if (node_limits_any(&arm->node)) {
			char words[96];
			measurement_note(m, "emulated node: %s",
				node_limits_words(&arm->node, words, sizeof words));
		}
		code = paired_save(arm, m, &traces, err);
	}
	traces_release(&traces);
	measurement_release(m);
	free(m);
	paired->run_seconds += (double)(clock_now_ns() - begun_ns) / (double)NS_PER_S;
	paired->run_count++;
	return code;
}

/* --- blocks ----------------------------------------------------------------------------------- */

double paired_spent_s(const struct paired *paired)
{
	return (double)(clock_now_ns() - paired->begun_ns) / (double)NS_PER_S;
}

double paired_each_s(const struct paired *paired)
{
	return paired->run_count > 0 ? paired->run_seconds / (double)paired->run_count
				     : (double)NAN;
}

/* Before the first repetition: what the configurations say. */
static double paired_expected_s(const struct paired *paired, const size_t *arms, size_t count)
{
	double seconds = 0;
	for (size_t i = 0; i < count; i++) {
		const struct config *config = &paired->arms[arms[i]].config;
		seconds += (double)(config_integer(config, KEY_MEASURE_WARMUP) +
				    config_integer(config, KEY_MEASURE_DURATION)) /
			   (double)NS_PER_S;
	}
	return paired->run_count > 0 ? paired_each_s(paired) * (double)count : seconds;
}

/* Whether the repetition behind the last block was made in the block that a kill cut off, just now. */
static bool paired_is_left(const struct paired_arm *arm)
{
	if (arm->paired >= arm->rate_count || isnan(arm->rates[arm->rate_count - 1]))
		return false;
	const struct record_entry *last = &arm->record.entries[arm->record.entry_count - 1];
	const double age_s = clock_utc_seconds() - last->ended;
	return age_s >= 0 && age_s < PAIRED_REUSE_S;
}

static int paired_save_block(
	struct paired *paired, const size_t *arms, size_t count, struct error *err)
{
	json_t *labels = json_array();
	json_t *repeats = json_array();
	int code = 0;
	for (size_t i = 0; i < count && !code; i++) {
		const struct paired_arm *arm = &paired->arms[arms[i]];
		const uint32_t repeat = (uint32_t)arm->rate_count - 1;
		(void)json_array_append_new(labels, json_string(arm->label));
		(void)json_array_append_new(repeats, json_integer(repeat));
		code = paired_add_member(paired, arms[i], repeat, err);
	}
	if (code) {
		json_decref(labels);
		json_decref(repeats);
		return code;
	}
	paired->blocks++;
	return paired_append(
		paired, json_pack("{s:o, s:o}", "arms", labels, "repeats", repeats), err);
}

int paired_block(struct paired *paired, const size_t *arms, size_t count, struct error *err)
{
	uint32_t order[PAIRED_TOGETHER_MAX];
	struct rng rng;
	int code = 0;
	if (count == 0 || count > PAIRED_TOGETHER_MAX)
		return error_set(err, -EINVAL, "a block has 1 to %d arms", PAIRED_TOGETHER_MAX);
	if (paired_spent_s(paired) + paired_expected_s(paired, arms, count) > paired->budget_s)
		return error_set(err, -ETIME, "the time is over");
	paired->progress.total = paired->progress.done + count;
	rng_init(&rng, paired->seed, paired->blocks);
	rng_permutation(&rng, order, (uint32_t)count);
	for (size_t i = 0; i < count && !code; i++) {
		struct paired_arm *arm = &paired->arms[arms[order[i]]];
		if (!paired_is_left(arm))
			code = paired_run_once(paired, arm, err);
	}
	return code ? code : paired_save_block(paired, arms, count, err);
}

/* --- questions -------------------------------------------------------------------------------- */

static double paired_rate_at(const struct paired *paired, const struct paired_member *member)
{
	const struct paired_arm *arm = &paired->arms[member->arm];
	return member->repeat < arm->rate_count ? arm->rates[member->repeat] : (double)NAN;
}

size_t paired_ratios(const struct paired *paired, size_t a, size_t b, double *out, size_t room)
{
	size_t count = 0;
	for (size_t end = paired->member_count; end > 0 && count < room;) {
		double of_a = (double)NAN;
		double of_b = (double)NAN;
		const uint32_t block = paired->members[end - 1].block;
		for (; end > 0 && paired->members[end - 1].block == block; end--) {
			const struct paired_member *member = &paired->members[end - 1];
			if (member->arm == a)
				of_a = paired_rate_at(paired, member);
			if (member->arm == b)
				of_b = paired_rate_at(paired, member);
		}
		if (of_a > 0 && of_b > 0)
			out[count++] = log(of_a / of_b);
	}
	for (size_t i = 0; i < count / 2; i++) {
		const double other = out[i];
		out[i] = out[count - 1 - i];
		out[count - 1 - i] = other;
	}
	return count;
}

const char *paired_arm_broken(const struct paired *paired, size_t arm)
{
	const struct paired_arm *of = &paired->arms[arm];
	bool worked = false;
	for (size_t i = 0; i < of->rate_count; i++)
		worked = worked || !isnan(of->rates[i]);
	return of->failures >= (worked ? PAIRED_FLAKES_MOST : PAIRED_FAILURES_MOST) ? of->why
										    : NULL;
}

/* NULL without memory. */
static struct paired_seen *paired_seen_of(struct paired *paired, size_t a, size_t b)
{
	for (size_t i = 0; i < paired->seen_count; i++)
		if (paired->seen[i].a == a && paired->seen[i].b == b)
			return &paired->seen[i];
	struct paired_seen *all = realloc(paired->seen, (paired->seen_count + 1) * sizeof *all);
	if (!all)
		return NULL;
	paired->seen = all;
	all[paired->seen_count] = (struct paired_seen){.a = a, .b = b};
	return &all[paired->seen_count++];
}

/* One pair more: of an earlier call, or measured now. */
static int paired_next(struct paired *paired, const struct paired_question *question,
	struct paired_seen *seen, size_t there, struct error *err)
{
	const size_t arms[2] = {question->a, question->b};
	for (size_t i = 0; i < COUNT(arms); i++)
		if (paired_arm_broken(paired, arms[i]))
			return error_set(err, -EIO, "'%s' fails: %s", paired->arms[arms[i]].label,
				paired->arms[arms[i]].why);
	const int code = seen->count < there ? 0 : paired_block(paired, arms, COUNT(arms), err);
	seen->count += !code;
	return code;
}

int paired_ask(struct paired *paired, const struct paired_question *question, paired_enough *enough,
	void *context, struct paired_estimate *estimate, struct error *err)
{
	const struct paired_beliefs beliefs = {&paired->noise, question->hint};
	struct paired_seen *const seen = paired_seen_of(paired, question->a, question->b);
	double ratios[PAIRED_PAIRS_MOST];
	int code = 0;
	if (!seen)
		return error_set(err, -ENOMEM, "out of memory");
	for (;;) {
		const size_t there =
			paired_ratios(paired, question->a, question->b, ratios, PAIRED_PAIRS_MOST);
		if (seen->count > there) /* a repetition of the last block failed */
			seen->count = there;
		*estimate = paired_estimate_of(ratios, seen->count, &beliefs, question->rate);
		if (code || enough(context, estimate) || seen->count >= question->pairs_most ||
			seen->count == PAIRED_PAIRS_MOST) {
			paired_noise_learn(&paired->noise, ratios, seen->count, question->hint);
			return code;
		}
		code = paired_next(paired, question, seen, there, err);
	}
}

/* --- what was measured ------------------------------------------------------------------------ */

const double *paired_rates(const struct paired *paired, size_t arm, size_t *count)
{
	*count = paired->arms[arm].rate_count;
	return paired->arms[arm].rates;
}

const struct record *paired_record(const struct paired *paired, size_t arm)
{
	return &paired->arms[arm].record;
}

const struct paired_noise *paired_noise_of(const struct paired *paired)
{
	return &paired->noise;
}

size_t paired_runs(const struct paired *paired)
{
	size_t runs = 0;
	for (size_t i = 0; i < paired->arm_count; i++)
		runs += paired->arms[i].rate_count;
	return runs;
}
