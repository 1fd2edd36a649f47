/* mlbench list: what you can choose from, and why this node lacks some of it. */
#include "harness/analyze/summary.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/program.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/config/config.h"
#include "harness/fit/case_report.h"
#include "harness/record/fields.h"
#include "harness/report/export_formats.h"
#include "harness/report/html/assets.h"
#include "harness/report/layout.h"
#include "harness/report/table.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/cuda.h"
#include "workloads/dataset/container.h"
#include "workloads/image/codec.h"
#include "workloads/model/emulated_steps.h"
#include "workloads/model/model.h"
#include "workloads/ranks/ranks_look.h"
#include "workloads/sample/sample.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_BYTES = 320, TEXT_BYTES = 480, INDENT_COLUMNS = 2 };
enum { SENTENCE_BYTES = 320, CONFIG_BYTES_MAX = 1 << 20 };

struct listing {
	json_t *rows; /* array of {"name", "summary", "unavailable"} */
	bool failed;  /* out of memory on the way */
};

/* why_not: NULL when it can be had here. */
static void listing_add(
	struct listing *listing, const char *name, const char *why_not, const char *text)
{
	json_t *row = json_pack("{s:o, s:o, s:o}", "name", fields_text(name), "summary",
		fields_text(text), "unavailable", why_not ? fields_text(why_not) : json_null());
	const bool bad = json_array_append_new(listing->rows, row) != 0;
	listing->failed = listing->failed || bad;
}

static void list_sources(struct listing *listing)
{
	for (size_t i = 0; source_list[i]; i++) {
		char why[WHY_BYTES];
		const char *reason = source_list[i]->unavailable
					     ? source_list[i]->unavailable(why, sizeof why)
					     : NULL;
		listing_add(listing, source_list[i]->name, reason, source_list[i]->summary);
	}
}

static void list_codecs(struct listing *listing)
{
	for (int format = 0; format < IMAGE_FORMATS; format++)
		for (const struct codec_ops *codec = codecs[format]; codec; codec = codec->other)
			listing_add(listing, codec->name, codec->unavailable, codec->summary);
	listing_add(listing, codec_null.name, NULL, codec_null.summary);
}

static void list_kinds(struct listing *listing)
{
	for (size_t i = 0; sample_kinds[i]; i++)
		listing_add(listing, sample_kinds[i]->name, NULL, sample_kinds[i]->summary);
}

static void list_containers(struct listing *listing)
{
	for (size_t i = 0; container_list[i]; i++)
		listing_add(listing, container_list[i]->name, NULL, container_list[i]->summary);
}

static void list_backends(struct listing *listing)
{
	for (size_t i = 0; backend_list[i]; i++) {
		const struct backend_ops *ops = backend_list[i];
		char why[BACKEND_WHY_BYTES];
		char details[BACKEND_WHY_BYTES] = "";
		char text[TEXT_BYTES];
		const char *reason = ops->unavailable ? ops->unavailable(why, sizeof why) : NULL;
		if (ops->details && !reason)
			(void)ops->details(details, sizeof details);
		(void)snprintf(
			text, sizeof text, "%s%s%s", ops->summary, *details ? ": " : "", details);
		listing_add(listing, ops->name, reason, text);
	}
}

static void list_models(struct listing *listing)
{
	for (size_t i = 0; model_list[i]; i++) {
		const struct model *model = model_list[i];
		char parameters[UNITS_BYTES];
		char flops[UNITS_BYTES];
		char text[TEXT_BYTES];
		(void)snprintf(text, sizeof text,
			"%s; %s parameters, %s FLOP per sample to train (%s)", model->summary,
			units_format_count((double)model_parameters(model), parameters),
			units_format_count(model_training_flops(model), flops), model->source);
		listing_add(listing, model->name, NULL, text);
	}
}

/* A line per device, in the table's order, with all its models. */
static void list_devices(struct listing *listing)
{
	for (size_t i = 0; i < emulated_step_count; i++) {
		bool seen = false;
		for (size_t j = 0; j < i; j++)
			seen = seen ||
			       strcmp(emulated_steps[j].device, emulated_steps[i].device) == 0;
		struct buffer text = {0};
		for (size_t j = i; !seen && j < emulated_step_count; j++) {
			char time[UNITS_BYTES];
			const struct emulated_step *step = &emulated_steps[j];
			if (strcmp(step->device, emulated_steps[i].device) == 0)
				buffer_format(&text, "%s%s %s per batch of %u",
					text.size ? ", " : "", step->model,
					units_format_duration(
						step->seconds * (double)NS_PER_S, time),
					step->batch);
		}
		if (!seen)
			listing_add(listing, emulated_steps[i].device, NULL,
				text.data ? text.data : "");
		buffer_release(&text);
	}
}

/* "published dense TFLOP/s: fp32 67, tf32 494 (source)". */
static void add_peaks(const char *name, struct buffer *text)
{
	static const char *const precisions[PEAK_PRECISIONS] = {
		"fp32", "tf32", "bf16", "fp16", "fp8"};
	const struct device_peak *peak = peak_find(name);
	if (!peak) {
		buffer_text(text, "; published peak unknown");
		return;
	}
	buffer_text(text, "; published dense TFLOP/s:");
	for (int i = 0; i < PEAK_PRECISIONS; i++)
		if (peak->teraflops[i] > 0)
			buffer_format(
				text, " %s %s,", precisions[i], UNITS_PLAIN(peak->teraflops[i], 4));
	text->size -= !text->failed; /* the last comma */
	buffer_format(text, " (%s)", peak->source);
}

/* This node's devices before those that can be emulated. */
static void list_real_devices(struct listing *listing)
{
	const struct cuda_found *found = cuda_find();
	if (!found->ready)
		listing_add(listing, "cuda", found->why, "");
	for (size_t i = 0; i < found->node.count && found->ready; i++) {
		const struct cuda_device_facts *facts = &found->node.devices[i];
		char name[TEXT_BYTES];
		char memory[UNITS_BYTES];
		struct buffer text = {0};
		(void)snprintf(name, sizeof name, "cuda %zu", i);
		buffer_format(&text, "%s at %s, sm_%u%u, %s", facts->name, facts->bus, facts->major,
			facts->minor, units_format_size((double)facts->memory_bytes, memory));
		buffer_text(&text, found->plugin->test_double
					   ? "; TEST DOUBLE, no figure means anything"
					   : "");
		add_peaks(facts->name, &text);
		listing_add(listing, name, NULL, text.data ? text.data : "");
		buffer_release(&text);
	}
}

/* Devices without a published step time are emulated by times that the user has; their peaks help to guess some. */
static void list_any_device(struct listing *listing)
{
	struct buffer text = {0};
	buffer_text(&text,
		"any other device, by its own step times "
		"(step.time = 106ms@64,61ms@32); published dense bf16 TFLOP/s, not step times:");
	for (size_t i = 0; i < peak_count; i++)
		buffer_format(&text, "%s %s %s", i ? "," : "", peak_list[i].device,
			UNITS_PLAIN(peak_list[i].teraflops[STEP_PRECISION_BF16], 4));
	listing_add(listing, "any", NULL, text.data ? text.data : "");
	buffer_release(&text);
}

static void list_all_devices(struct listing *listing)
{
	list_real_devices(listing);
	list_devices(listing);
	list_any_device(listing);
}

/* The first sentence of the comment at the top says what the file teaches. */
static void first_sentence(const char *path, char out[SENTENCE_BYTES])
{
	char *text = NULL;
	size_t size = 0;
	size_t used = 0;
	out[0] = '\0';
	if (files_read(path, CONFIG_BYTES_MAX, &text, &size, NULL) != 0)
		return;
	for (const char *line = text; *line == '#' || *line == ';';) {
		const char *words = line + strspn(line, "#; \t");
		const size_t length = strcspn(words, "\n");
		if (length == 0)
			break;
		used += (size_t)snprintf(out + used, SENTENCE_BYTES - used, "%s%.*s",
			used ? " " : "", (int)length, words);
		if (used >= SENTENCE_BYTES || words[length] == '\0')
			break;
		line = words + length + 1;
	}
	free(text);
	for (char *at = out; *at; at++)
		if ((*at == '.' || *at == '?') && (at[1] == ' ' || at[1] == '\0')) {
			at[1] = '\0';
			break;
		}
}

static bool listing_has(const struct listing *listing, const char *name)
{
	size_t i;
	const json_t *row;
	json_array_foreach(listing->rows, i,
		row) if (strcmp(name, json_string_value(json_object_get(row, "name"))) ==
			 0) return true;
	return false;
}

/* A file of the same name in an earlier place is the one that is meant. */
static void list_config(void *context, const char *name, const char *path)
{
	struct listing *listing = context;
	char comment[SENTENCE_BYTES];
	if (listing_has(listing, name))
		return;
	first_sentence(path, comment);
	listing_add(listing, name, NULL, comment);
	json_t *added = json_array_get(listing->rows, json_array_size(listing->rows) - 1);
	if (json_object_set_new(added, "path", fields_text(path)))
		listing->failed = true;
}

/* The .ini files of ./configs and of those beside the program, each with its first comment. */
static void list_configs(struct listing *listing)
{
	config_place_each(list_config, listing);
}

static void list_case_changes(const struct case_file *file, bool helps, struct buffer *text)
{
	for (size_t i = 0, told = 0; i < file->change_count; i++) {
		const struct case_change *change = &file->changes[i];
		if (change->helps != helps)
			continue;
		buffer_text(text, !told++ ? (helps ? " Fix: " : " No help: ")
				  : helps ? "; then "
					  : " or ");
		case_change_keys(change, " ", text);
		if (helps && !isnan(change->gained))
			buffer_format(text, " (reported: %g times as fast)", change->gained);
	}
	if (text->size && text->data[text->size - 1] != '.')
		buffer_text(text, ".");
}

/* "COMPLAINT (SOURCE) Cause: decode/wait. No help: prefetch.depth=8. Fix: decode.workers=9 (reported: 4.3 times as fast)." */
static void list_case_text(const struct case_file *file, struct buffer *text)
{
	const struct findings *observed = &file->observed;
	for (const char *at = file->complaint; at && *at; at++)
		buffer_add(text, *at == '\n' ? " " : at, 1);
	if (file->source)
		buffer_format(text, " (%s)", file->source);
	buffer_format(text, " Cause: %s%s%s.", observed->stage, observed->resource[0] ? "/" : "",
		observed->resource);
	list_case_changes(file, false, text);
	list_case_changes(file, true, text);
}

/* Cases among the configurations whose fix is known: those that come with the program. */
static void list_case(void *context, const char *name, const char *path)
{
	struct listing *listing = context;
	struct case_file file;
	struct error err;
	struct buffer text = {0};
	if (!case_is(path) || listing_has(listing, name))
		return;
	if (case_read(&file, path, &err)) {
		listing_add(listing, name, err.text, "");
		return;
	}
	list_case_text(&file, &text);
	listing_add(listing, name, NULL, text.failed ? "" : text.data);
	json_t *row = json_array_get(listing->rows, json_array_size(listing->rows) - 1);
	json_t *more = json_pack("{s:o, s:o, s:o, s:{s:s, s:s}, s:o, s:o}", "path",
		fields_text(path), "reported", fields_text(file.complaint ? file.complaint : ""),
		"source", fields_text(file.source ? file.source : ""), "cause", "stage",
		file.observed.stage, "resource", file.observed.resource, "decoys",
		case_json_changes(&file, false), "fixes", case_json_changes(&file, true));
	listing->failed = json_object_update(row, more) != 0 || text.failed || listing->failed;
	json_decref(more);
	buffer_release(&text);
	case_release(&file);
}

static void list_cases(struct listing *listing)
{
	config_place_each(list_case, listing);
}

static void list_keys(struct listing *listing)
{
	for (int key = 0; key < KEY_COUNT; key++) {
		char name[TEXT_BYTES];
		(void)snprintf(name, sizeof name, "%s.%s", config_keys[key].section,
			config_keys[key].name);
		listing_add(listing, name, NULL, config_keys[key].doc);
	}
}

static void list_formats(struct listing *listing)
{
	for (unsigned i = 0; i < EXPORTS; i++)
		listing_add(listing, export_formats[i].name, export_unavailable(i),
			export_formats[i].summary);
}

static void list_ranks(struct listing *listing)
{
	struct ranks_found found;
	char text[RANKS_SENTENCE_BYTES];
	struct buffer summary = {0};
	ranks_look(&found);
	ranks_describe(&found, text);
	buffer_format(&summary, "several ranks of a job, which mpirun or srun starts, by '%s': %s",
		found.path, text);
	listing_add(listing, "ranks", found.why[0] ? found.why : NULL,
		summary.data ? summary.data : "");
	buffer_release(&summary);
}

static void list_parts(struct listing *listing)
{
	for (enum part part = 0; part < PARTS; part++)
		listing_add(listing, part_name(part), part_missing(part), part_summary(part));
	listing_add(listing, "charts", asset_charts_unavailable(), "the pictures of report.html");
	list_ranks(listing);
}

static const struct topic {
	const char *name, *heading;
	void (*fill)(struct listing *listing);
} topics[] = {
	{"sources", "engines that read files (read.engine)", list_sources},
	{"codecs", "codecs", list_codecs},
	{"kinds", "kinds of samples (sample.kind)", list_kinds},
	{"containers", "files that hold many samples (dataset.container)", list_containers},
	{"backends", "backends that compute a step (step.backend)", list_backends},
	{"models", "models (step.model)", list_models},
	{"devices",
		"devices: this node's GPUs, and emulated ones (step.device) with their published step times",
		list_all_devices},
	{"formats", "output formats (export --format)", list_formats},
	{"parts", "optional parts of this build", list_parts},
	{"configs", "configurations (run, sweep, diagnose or check NAME; --json has their paths)",
		list_configs},
	{"cases", "reported slow jobs, with cause and fix (run, diagnose, check or reproduce NAME)",
		list_cases},
	{"keys", "keys; 'mlbench help KEY' explains one", list_keys},
};

enum { TOPICS = COUNT(topics) };

static int find_topic(const char *name, const struct topic **topic, struct error *err)
{
	const char *names[TOPICS];
	for (size_t i = 0; i < TOPICS; i++) {
		names[i] = topics[i].name;
		if (strcmp(name, topics[i].name) == 0) {
			*topic = &topics[i];
			return 0;
		}
	}
	const char *near = suggest_nearest(name, names, TOPICS);
	if (near)
		return error_set(err, -EINVAL, "cannot list '%s' (did you mean '%s'?)", name, near);
	return error_set(err, -EINVAL,
		"cannot list '%s': sources, codecs, kinds, containers, backends, models, devices, formats, parts, configs, cases or keys",
		name);
}

void list_names(const char *topic, struct buffer *out)
{
	size_t row;
	const json_t *value;
	for (size_t i = 0; i < TOPICS; i++) {
		if (!topic) {
			buffer_format(out, " %s", topics[i].name);
		} else if (strcmp(topics[i].name, topic) == 0) {
			struct listing listing = {.rows = json_array()};
			topics[i].fill(&listing);
			json_array_foreach(listing.rows, row, value)
			{
				const char *name =
					json_string_value(json_object_get(value, "name"));
				if (json_is_null(json_object_get(value, "unavailable")) &&
					!strchr(name, ' '))
					buffer_format(out, " %s", name);
			}
			json_decref(listing.rows);
		}
	}
}

static void list_render(const struct topic *topic, const struct listing *listing,
	const struct style *style, struct buffer *out)
{
	static const struct table_column columns[] = {
		{.head = "", .left = true}, {.head = "", .left = true, .wraps = true}};
	struct table table;
	size_t i;
	const json_t *row;
	table_open(&table, columns, COUNT(columns));
	json_array_foreach(listing->rows, i, row)
	{
		const char *why = json_string_value(json_object_get(row, "unavailable"));
		const char *text = json_string_value(json_object_get(row, "summary"));
		table_add(&table, why ? INK_DIM : INK_BOLD, "%s",
			json_string_value(json_object_get(row, "name")));
		if (why)
			table_add(&table, INK_WARN, "not here: %s", why);
		else
			table_add(&table, INK_PLAIN, "%s", text);
	}
	layout_title(style, INK_ACCENT, topic->heading, out);
	table_render(&table, style, INDENT_COLUMNS, false, out);
	table_close(&table);
}

/* Fills each topic of the range into the text or the document. */
static int list_topics(const struct topic *first, size_t count, const struct invocation *invocation,
	struct buffer *text, json_t *document)
{
	const struct style style = command_style(invocation);
	for (size_t i = 0; i < count; i++) {
		struct listing listing = {.rows = json_array()};
		first[i].fill(&listing);
		buffer_text(text, i ? "\n" : "");
		list_render(&first[i], &listing, &style, text);
		if (listing.failed ||
			json_object_set_new(document, first[i].name, listing.rows) != 0)
			return -ENOMEM;
	}
	return 0;
}

static int list_run(const struct invocation *invocation, struct error *err)
{
	const bool one = invocation->options.argument_count > 0;
	const struct topic *topic = topics;
	if (one) {
		const int code = find_topic(invocation->options.arguments[0], &topic, err);
		if (code)
			return command_status(code);
	}
	/* All of them but cases and keys, which are many. */
	const size_t count = one ? 1 : TOPICS - 2;
	struct buffer text = {0};
	json_t *document = json_pack("{s:s}", "schema", "mlbench.list/1");
	int status;
	if (list_topics(topic, count, invocation, &text, document))
		status = command_status(error_set(err, -ENOMEM, "out of memory"));
	else if (command_wants_json(invocation))
		status = command_print_json(invocation, json_incref(document), err);
	else
		status = command_print(&text, err);
	json_decref(document);
	buffer_release(&text);
	return status;
}

const struct command command_list = {
	.name = "list",
	.summary = "list engines, codecs, backends, models, devices, configurations, cases, keys",
	.arguments = "[sources|codecs|backends|models|devices|formats|parts|configs|cases|keys]",
	.description =
		"Lists what you can choose from. What this node cannot do is listed too, with "
		"the reason. Without a topic: everything but the cases and keys.",
	.example = "mlbench list backends",
	.options = OPTION_BIT(OPTION_JSON),
	.arguments_max = 1,
	.run = list_run,
};
