/* Runs one check of a plan as its process would, with the real sink: what it handed over is a line of measured.jsonl. */
#ifndef MLBENCH_TESTS_CHECK_FIXTURE_H
#define MLBENCH_TESTS_CHECK_FIXTURE_H

#include "harness/base/files.h"
#include "harness/checks/sink.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct check_fixture {
	char folder[64]; /* the scratch folder is in it */
	char scratch[80];
	struct accept_plan plan;
	struct check_context context; /* what a test may change before check_fixture_run */
	struct check_sink sink;
	FILE *lines;
	struct gather gather;
	struct error err;
	int code;
};

/* criteria: lines of a section. */
static inline void check_fixture_open(
	struct check_fixture *f, const char *kind, const char *criteria)
{
	char text[2048];
	*f = (struct check_fixture){.folder = "/var/tmp/mlbench-check-XXXXXX"};
	assert_non_null(mkdtemp(f->folder));
	(void)snprintf(f->scratch, sizeof f->scratch, "%s/scratch", f->folder);
	assert_int_equal(files_make_folder(f->scratch, &f->err), 0);
	(void)snprintf(text, sizeof text, "[plan]\nname = test\n[a check]\nkind = %s\n%s\n", kind,
		criteria);
	if (plan_read_text(&f->plan, "test.ini", text, strlen(text), &f->err))
		fail_msg("%s", f->err.text);
	f->lines = tmpfile();
	assert_non_null(f->lines);
	f->sink = (struct check_sink){.fd = fileno(f->lines), .lock = PTHREAD_MUTEX_INITIALIZER};
	f->context = (struct check_context){.plan = &f->plan,
		.check = &f->plan.checks[0],
		.tier = TIER_QUICK,
		.folder = f->folder,
		.free_bytes = (double)NAN,
		.scratch = f->scratch,
		.root = "",
		.program = "/proc/self/exe",
		.repeats = 2,
		.sink = &f->sink};
}

static inline void check_fixture_run(struct check_fixture *f)
{
	char piece[4096];
	size_t size;
	const struct accept_check *check = f->context.check;
	f->code = check_list[check->kind]->run(&f->context, &f->err);
	sink_end(&f->sink, f->code, &f->err);
	gather_close(&f->gather);
	assert_int_equal(gather_open(&f->gather, check->name, accept_kind_name(check->kind)), 0);
	rewind(f->lines);
	while ((size = fread(piece, 1, sizeof piece, f->lines)) > 0)
		gather_bytes(&f->gather, piece, size);
}

static inline void check_fixture_close(struct check_fixture *f)
{
	gather_close(&f->gather);
	(void)fclose(f->lines);
	plan_release(&f->plan);
	assert_int_equal(files_remove_tree(f->folder, &f->err), 0);
}

/* The entry of a list ("values", "missing", "facts") about a figure at a place; NULL: there is none. */
static inline const json_t *check_fixture_entry(
	const struct check_fixture *f, const char *list, const char *figure, const char *place)
{
	size_t i;
	json_t *entry;
	json_array_foreach(json_object_get(f->gather.check, list), i, entry)
	{
		if (strcmp(json_string_value(json_object_get(entry, "figure")), figure) == 0 &&
			strcmp(json_string_value(json_object_get(entry, "place")), place) == 0)
			return entry;
	}
	return NULL;
}

/* A fact that is a number; -1: it was not handed over. */
static inline double check_fixture_number(
	const struct check_fixture *f, const char *figure, const char *place)
{
	const json_t *fact = check_fixture_entry(f, "facts", figure, place);
	return fact ? json_number_value(json_object_get(fact, "value")) : -1;
}

/* Facts about a figure at all places together. */
static inline double check_fixture_sum(const struct check_fixture *f, const char *figure)
{
	double sum = 0;
	size_t i;
	json_t *fact;
	json_array_foreach(json_object_get(f->gather.check, "facts"), i, fact)
	{
		if (strcmp(json_string_value(json_object_get(fact, "figure")), figure) == 0)
			sum += json_number_value(json_object_get(fact, "value"));
	}
	return sum;
}

/* Whether an event about a figure at a place has this text. */
static inline bool check_fixture_tells(
	const struct check_fixture *f, const char *figure, const char *place, const char *text)
{
	size_t i;
	json_t *event;
	json_array_foreach(json_object_get(f->gather.check, "events"), i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "figure")), figure) == 0 &&
			strcmp(json_string_value(json_object_get(event, "place")), place) == 0 &&
			strstr(json_string_value(json_object_get(event, "text")), text))
			return true;
	}
	return false;
}

/* How many values; all are above 0. */
static inline size_t check_fixture_values(
	const struct check_fixture *f, const char *figure, const char *place)
{
	size_t i;
	json_t *value;
	json_t *values = json_object_get(check_fixture_entry(f, "values", figure, place), "values");
	json_array_foreach(values, i, value) assert_true(json_number_value(value) > 0);
	return json_array_size(values);
}

static inline double check_fixture_best(
	const struct check_fixture *f, const char *figure, const char *place)
{
	double best = 0;
	size_t i;
	json_t *value;
	json_array_foreach(
		json_object_get(check_fixture_entry(f, "values", figure, place), "values"), i,
		value) best = json_number_value(value) > best ? json_number_value(value) : best;
	return best;
}

static inline const char *check_fixture_missing(
	const struct check_fixture *f, const char *figure, const char *place)
{
	const char *why = json_string_value(
		json_object_get(check_fixture_entry(f, "missing", figure, place), "why"));
	return why ? why : "";
}

/* Whether the node is said to have no such thing, and not that it could not be had. */
static inline bool check_fixture_lacks(
	const struct check_fixture *f, const char *figure, const char *place)
{
	return json_is_true(
		json_object_get(check_fixture_entry(f, "missing", figure, place), "lack"));
}

static inline bool check_fixture_notes(const struct check_fixture *f, const char *text)
{
	size_t i;
	json_t *note;
	json_array_foreach(json_object_get(f->gather.check, "notes"), i,
		note) if (strstr(json_string_value(note), text)) return true;
	return false;
}

static inline void check_fixture_print(const struct check_fixture *f)
{
	char *text = json_dumps(f->gather.check, JSON_INDENT(1));
	print_message("%d %s\n%s\n", f->code, f->err.text, text);
	free(text);
}

#endif
