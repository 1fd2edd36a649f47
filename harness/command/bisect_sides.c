/* Reading the two sides, and their differences. */
#include "harness/command/bisect_sides.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/command/saved.h"
#include "harness/config/tables.h"
#include "harness/config/value.h"
#include "harness/fit/case.h"
#include "harness/measure/data_store.h"
#include "harness/measure/proc_text.h"
#include "harness/record/config_json.h"
#include "harness/record/record.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void bisect_note(struct bisect_sides *sides, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void bisect_note(struct bisect_sides *sides, const char *format, ...)
{
	va_list args;
	if (sides->note_count == BISECT_NOTES_MAX)
		return;
	va_start(args, format);
	(void)vsnprintf(sides->notes[sides->note_count++], BISECT_NOTE_BYTES, format, args);
	va_end(args);
}

/* --- reading one side ------------------------------------------------------------------------- */

static void bisect_read_limits(
	struct bisect_side *side, double cores, double quota, const struct case_environment *node)
{
	const double memory = node->of[CASE_ENVIRONMENT_MEMORY].number;
	side->node.cores = cores >= 1 ? (unsigned)cores : 0;
	/* One that this process is under anyway needs no emulation. */
	side->node.quota_cores = quota > 0 && quota < cgroup_limits_now().cores ? quota : 0;
	side->node.memory_bytes =
		memory > 0 && memory < (double)process_memory_limit() ? (uint64_t)memory : 0;
}

static int bisect_read_case(struct bisect_side *side, bool env, struct error *err)
{
	struct case_file file;
	int code = case_read(&file, side->name, err);
	if (code)
		return code;
	side->kind = "case";
	code = case_config(&file, env, &side->config, err);
	if (!code && env)
		bisect_read_limits(
			side, file.reported_cores, file.reported_quota, &file.environment);
	case_release(&file);
	return code;
}

static int bisect_read_result(struct bisect_side *side, bool env, struct error *err)
{
	struct record record = {0};
	struct case_environment node;
	int code = saved_open(&record, side->name, SAVED_NEWEST, err);
	side->kind = "result";
	if (!code && record.grid.points != 1)
		code = error_set(err, -EINVAL,
			"'%s' is a sweep of %zu points: bisect compares two settings", side->name,
			record.grid.points);
	if (!code)
		code = config_grid_point(&record.config, &record.grid, 0, &side->config, err);
	if (!code && env) {
		case_environment_of(&record.environment, &node);
		bisect_read_limits(
			side, record.cores, node.of[CASE_ENVIRONMENT_CPU_QUOTA].number, &node);
	}
	record_release(&record);
	return code;
}

static int bisect_read_side(
	struct bisect_side *side, const struct invocation *invocation, bool env, struct error *err)
{
	int code;
	if (case_is(side->name))
		code = bisect_read_case(side, env, err);
	else if (saved_is_meant(side->name))
		code = bisect_read_result(side, env, err);
	else {
		side->kind = "configuration";
		return config_place_read(&side->config, invocation, side->name, err);
	}
	if (!code) /* --set is for both sides */
		code = config_place_read(&side->config, invocation, NULL, err);
	return code;
}

static int bisect_check_side(const struct bisect_side *side, struct error *err)
{
	if (side->config.axis_count > 0)
		return error_set(err, -EINVAL,
			"'%s' sweeps keys: bisect compares two settings; give each key one value "
			"with --set",
			side->name);
	const int code = config_validate(&side->config, err);
	return code ? error_prefix(err, code, "'%s'", side->name) : 0;
}

/* --- what they differ in ---------------------------------------------------------------------- */

static bool bisect_differs(const struct bisect_sides *sides, enum key_id key)
{
	struct buffer good = {0};
	struct buffer bad = {0};
	value_write(key, &sides->good.config.values[key], false, &good);
	value_write(key, &sides->bad.config.values[key], false, &bad);
	const bool differs = strcmp(good.data ? good.data : "", bad.data ? bad.data : "") != 0;
	buffer_release(&good);
	buffer_release(&bad);
	return differs;
}

static bool bisect_in_section(enum key_id key, const char *section)
{
	return strcmp(config_keys[key].section, section) == 0;
}

/* How it is measured, not what: of GOOD, on both sides. */
static bool bisect_is_method(enum key_id key)
{
	return bisect_in_section(key, "measure") || bisect_in_section(key, "trace") ||
	       bisect_in_section(key, "sweep") || key == KEY_RUN_NAME || key == KEY_RUN_SEED ||
	       key == KEY_RUN_VERIFY || key == KEY_DATASET_GENERATE || key == KEY_CHECKPOINT_PATH ||
	       key == KEY_CHECKPOINT_KEEP;
}

/* Another kind of samples needs another data set, and its own keys. */
static bool bisect_is_data(enum key_id key, bool kinds_differ)
{
	static const char *const kinds[] = {"sample", "volume", "tokens", "record"};
	if (bisect_in_section(key, "dataset"))
		return true;
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (kinds_differ && bisect_in_section(key, kinds[i]))
			return true;
	return false;
}

static struct bisect_item *bisect_add_item(struct bisect_sides *sides, const char *name)
{
	struct bisect_item *item = &sides->items[sides->count++];
	(void)snprintf(item->name, sizeof item->name, "%s", name);
	return item;
}

/* A data set is one thing: half of another one would be a third. */
static void bisect_list_keys(struct bisect_sides *sides)
{
	struct bisect_item *data = NULL;
	const bool kinds = bisect_differs(sides, KEY_SAMPLE_KIND);
	for (int i = 0; i < KEY_COUNT; i++) {
		const enum key_id key = (enum key_id)i;
		char name[CONFIG_NAME_BYTES];
		if (!bisect_differs(sides, key))
			continue;
		(void)config_key_name(key, name);
		if (bisect_is_method(key)) {
			if (key != KEY_RUN_NAME)
				bisect_note(sides,
					"%s differs; both sides are measured with GOOD's", name);
			continue;
		}
		struct bisect_item *item;
		if (!bisect_is_data(key, kinds))
			item = bisect_add_item(sides, name);
		else
			item = data = data ? data : bisect_add_item(sides, "dataset");
		item->keys[item->key_count++] = key;
	}
	if (data && data->key_count == 1)
		(void)config_key_name(data->keys[0], data->name);
}

/* Any two nodes may differ in it, so that one that cannot be emulated is no reason to end. */
static void bisect_list_memory(struct bisect_sides *sides)
{
	uint64_t *const both[] = {&sides->good.node.memory_bytes, &sides->bad.node.memory_bytes};
	struct error why = {0};
	int code = 0;
	for (size_t i = 0; i < COUNT(both) && !code; i++) {
		const struct node_limits limits = {.memory_bytes = *both[i]};
		struct node_emulation emulation;
		code = node_emulation_begin(&emulation, &limits, &why);
		node_emulation_end(&emulation);
	}
	if (code) {
		bisect_note(sides, "node.memory differs: %.150s", why.text);
		*both[0] = *both[1] = 0;
	}
	if (*both[0] != *both[1])
		bisect_add_item(sides, "node.memory")->memory = true;
}

static void bisect_list_node(struct bisect_sides *sides)
{
	const struct node_limits *good = &sides->good.node;
	const struct node_limits *bad = &sides->bad.node;
	cpu_set_t here;
	const unsigned cores =
		sched_getaffinity(0, sizeof here, &here) == 0 ? (unsigned)CPU_COUNT(&here) : 1;
	if (good->cores > cores || bad->cores > cores)
		bisect_note(sides,
			"cores: %u and %u there, %u here: a side with more cores than this node is "
			"measured with all of them",
			good->cores, bad->cores, cores);
	const unsigned good_cores = good->cores > 0 && good->cores < cores ? good->cores : cores;
	const unsigned bad_cores = bad->cores > 0 && bad->cores < cores ? bad->cores : cores;
	sides->good.node.cores = good_cores < cores ? good_cores : 0;
	sides->bad.node.cores = bad_cores < cores ? bad_cores : 0;
	if (good_cores != bad_cores)
		bisect_add_item(sides, "node.cores")->cores = true;
	if (good->quota_cores > bad->quota_cores || good->quota_cores < bad->quota_cores)
		bisect_add_item(sides, "node.cpu_quota")->quota = true;
	bisect_list_memory(sides);
}

/* --- data sets -------------------------------------------------------------------------------- */

/* Two generated data sets cannot lie in one folder. */
static int bisect_part_data(struct bisect_sides *sides, const char *folder, struct error *err)
{
	struct bisect_side *const both[] = {&sides->good, &sides->bad};
	static const char *const names[] = {"data-good", "data-bad"};
	const bool same = !bisect_differs(sides, KEY_DATASET_PATH);
	bool others = false;
	int code = 0;
	for (int key = 0; key < KEY_COUNT; key++)
		others = others || ((bisect_in_section((enum key_id)key, "dataset") ||
					    key == KEY_SAMPLE_KIND) &&
					   key != KEY_DATASET_GENERATE &&
					   bisect_differs(sides, (enum key_id)key));
	if (!same || !others)
		return 0;
	for (size_t i = 0; i < COUNT(both) && !code; i++) {
		if (config_integer(&both[i]->config, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE)
			continue;
		char *path = files_join(folder, names[i]);
		code = path ? config_set_key(&both[i]->config, KEY_DATASET_PATH, path, err)
			    : error_set(err, -ENOMEM, "out of memory");
		free(path);
	}
	bisect_note(sides, "both sides generate a data set in the same folder: each gets one of "
			   "its own beside the results");
	return code;
}

int bisect_sides_open(struct bisect_sides *sides, const struct invocation *invocation,
	const char *folder, struct error *err)
{
	const bool env = options_given(&invocation->options, OPTION_ENV);
	*sides = (struct bisect_sides){.good.name = invocation->options.arguments[0],
		.bad.name = invocation->options.arguments[1]};
	sides->items = calloc(KEY_COUNT + 3, sizeof *sides->items);
	int code = sides->items ? 0 : error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = bisect_read_side(&sides->good, invocation, env, err);
	if (!code)
		code = bisect_read_side(&sides->bad, invocation, env, err);
	if (!code)
		code = bisect_check_side(&sides->good, err);
	if (!code)
		code = bisect_check_side(&sides->bad, err);
	if (!code)
		code = bisect_part_data(sides, folder, err);
	if (code)
		return code;
	bisect_list_keys(sides);
	if (env)
		bisect_list_node(sides);
	return 0;
}

void bisect_sides_close(struct bisect_sides *sides)
{
	config_release(&sides->good.config);
	config_release(&sides->bad.config);
	free(sides->items);
	*sides = (struct bisect_sides){0};
}

/* --- mixtures --------------------------------------------------------------------------------- */

int bisect_mix(const struct bisect_sides *sides, const struct delta_set *set, struct config *out,
	struct node_limits *node, struct error *err)
{
	int code = config_copy(out, &sides->good.config, err);
	*node = sides->good.node;
	if (code)
		return code;
	for (size_t i = 0; i < sides->count && !code; i++) {
		const struct bisect_item *item = &sides->items[i];
		if (!delta_has(set, i))
			continue;
		for (size_t k = 0; k < item->key_count && !code; k++) {
			struct buffer value = {0};
			value_write(item->keys[k], &sides->bad.config.values[item->keys[k]], false,
				&value);
			code = config_set_key(
				out, item->keys[k], value.data ? value.data : "", err);
			buffer_release(&value);
		}
		if (item->cores)
			node->cores = sides->bad.node.cores;
		if (item->quota)
			node->quota_cores = sides->bad.node.quota_cores;
		if (item->memory)
			node->memory_bytes = sides->bad.node.memory_bytes;
	}
	if (!code)
		code = config_validate(out, err);
	if (code)
		config_release(out);
	return code;
}

const char *bisect_value(const struct bisect_sides *sides, const struct bisect_item *item, bool bad,
	char *out, size_t room)
{
	const struct bisect_side *side = bad ? &sides->bad : &sides->good;
	struct buffer value = {0};
	char bytes[UNITS_BYTES];
	if (item->cores && side->node.cores == 0)
		(void)snprintf(out, room, "all of this node");
	else if (item->cores)
		(void)snprintf(out, room, "%u", side->node.cores);
	else if (item->quota && side->node.quota_cores > 0)
		(void)snprintf(out, room, "%s cores", UNITS_PLAIN(side->node.quota_cores, 3));
	else if (item->memory && side->node.memory_bytes > 0)
		(void)snprintf(
			out, room, "%s", units_format_size((double)side->node.memory_bytes, bytes));
	else if (item->quota || item->memory)
		(void)snprintf(out, room, "none");
	else if (item->key_count > 1)
		(void)snprintf(out, room, "%zu keys", item->key_count);
	else {
		value_write(item->keys[0], &side->config.values[item->keys[0]], false, &value);
		(void)snprintf(out, room, "%s", value.data && *value.data ? value.data : "\"\"");
	}
	buffer_release(&value);
	return out;
}
