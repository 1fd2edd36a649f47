/* Help on keys: one block a key, its text in columns. */
#include "harness/config/document.h"

#include "harness/config/config.h"
#include "harness/config/document_key.h"
#include "harness/config/table.h"
#include "harness/config/value.h"

#include <stdio.h>
#include <string.h>

enum {
	WIDTH_LEAST = 60,
	NAME_COLUMN = 2,
	GAP = 2,
	DETAIL_COLUMN = 2,
	DETAIL_TEXT = 12, /* where the text behind "default" and the like begins */
};

void document_values(enum key_id id, struct buffer *out)
{
	const struct key *key = &config_keys[id];
	switch (key->type) {
	case KEY_TYPE_BOOLEAN:
		buffer_text(out, "on or off");
		return;
	case KEY_TYPE_TEXT:
		buffer_text(out, "text");
		return;
	case KEY_TYPE_CHOICE:
		for (const char *at = key->choices; *at; at++)
			buffer_format(out, *at == '|' ? ", %.0s" : "%.1s", at);
		return;
	case KEY_TYPE_INTEGER:
	case KEY_TYPE_REAL:
	case KEY_TYPE_SHARE:
	case KEY_TYPE_SIZE:
	case KEY_TYPE_DURATION:
	case KEY_TYPE_BATCH_TIME:
	case KEY_TYPE_RATE:
		value_write_limit(id, key->min, out);
		buffer_text(out, " to ");
		value_write_limit(id, key->max, out);
		return;
	}
}

/* Words from the column on, the lines after the first indented to it; ends the line. */
static void wrap(struct buffer *out, const char *text, size_t column, size_t width)
{
	size_t at = column;
	while (*text) {
		const size_t length = strcspn(text, " ");
		if (at > column && at + 1 + length > width) {
			buffer_text(out, "\n");
			buffer_repeat(out, " ", (int)column);
			at = column;
		}
		if (at > column) {
			buffer_text(out, " ");
			at++;
		}
		buffer_add(out, text, length);
		at += length;
		text += length;
		text += strspn(text, " ");
	}
	buffer_text(out, "\n");
}

struct columns {
	size_t name, fallback;
};

static struct columns measure_columns(void)
{
	struct columns columns = {0, 0};
	for (int i = 0; i < KEY_COUNT; i++) {
		const size_t name =
			strlen(config_keys[i].section) + 1 + strlen(config_keys[i].name);
		const size_t fallback = strlen(config_keys[i].fallback);
		columns.name = name > columns.name ? name : columns.name;
		columns.fallback = fallback > columns.fallback ? fallback : columns.fallback;
	}
	return columns;
}

static void write_key(
	struct buffer *out, enum key_id id, const struct columns *columns, size_t width)
{
	const struct key *key = &config_keys[id];
	const size_t text = NAME_COLUMN + columns->name + GAP + columns->fallback + GAP;
	struct buffer values = {0};
	char name[80];
	(void)snprintf(name, sizeof name, "%s.%s", key->section, key->name);
	buffer_format(out, "%*s%-*s%*s%-*s%*s", NAME_COLUMN, "", (int)columns->name, name, GAP, "",
		(int)columns->fallback, *key->fallback ? key->fallback : "-", GAP, "");
	document_values(id, &values);
	if (!key->sweepable)
		buffer_text(&values, "; not swept");
	wrap(out, values.failed ? "" : values.data, text, width);
	buffer_repeat(out, " ", (int)text);
	wrap(out, key->doc, text, width);
	buffer_release(&values);
}

static void write_section(struct buffer *out, const struct key_section *section,
	const struct columns *columns, size_t width)
{
	buffer_format(out, "[%s] ", section->name);
	wrap(out, section->doc, strlen(section->name) + 3, width);
	for (int i = 0; i < KEY_COUNT; i++)
		if (strcmp(config_keys[i].section, section->name) == 0)
			write_key(out, (enum key_id)i, columns, width);
}

void document_keys(struct buffer *out, size_t width)
{
	const struct columns columns = measure_columns();
	width = width < WIDTH_LEAST ? WIDTH_LEAST : width;
	for (size_t i = 0; i < config_section_count; i++) {
		if (i > 0)
			buffer_text(out, "\n");
		write_section(out, &config_sections[i], &columns, width);
	}
}

static void write_detail(struct buffer *out, const char *title, const char *text, size_t width)
{
	buffer_format(out, "%*s%-*s", DETAIL_COLUMN, "", DETAIL_TEXT - DETAIL_COLUMN, title);
	wrap(out, text, DETAIL_TEXT, width);
}

static void write_sweep_detail(struct buffer *out, const struct key *key, size_t width)
{
	char text[160];
	if (key->sweepable)
		(void)snprintf(text, sizeof text,
			"yes: '%s.%s = A,B,C' in [sweep], or --set sweep.%s.%s=A,B,C", key->section,
			key->name, key->section, key->name);
	else
		(void)snprintf(text, sizeof text, "no: one value for the whole run");
	write_detail(out, "sweep", text, width);
}

static void write_details(struct buffer *out, enum key_id id, size_t width)
{
	const struct key *key = &config_keys[id];
	struct buffer values = {0};
	document_values(id, &values);
	if (*value_example(id) && key->type != KEY_TYPE_BOOLEAN)
		buffer_format(&values, " (written like %s)", value_example(id));
	buffer_format(out, "%s.%s\n%*s", key->section, key->name, DETAIL_COLUMN, "");
	wrap(out, key->doc, DETAIL_COLUMN, width);
	buffer_text(out, "\n");
	write_detail(out, "default", *key->fallback ? key->fallback : "(empty)", width);
	write_detail(out, "values", values.failed ? "" : values.data, width);
	write_sweep_detail(out, key, width);
	buffer_release(&values);
}

int document_key(struct buffer *out, const char *name, size_t width, struct error *err)
{
	const enum key_id id = config_find_key(name);
	width = width < WIDTH_LEAST ? WIDTH_LEAST : width;
	if (id != KEY_COUNT) {
		write_details(out, id, width);
		return 0;
	}
	const struct columns columns = measure_columns();
	for (size_t i = 0; i < config_section_count; i++) {
		if (strcmp(config_sections[i].name, name) != 0)
			continue;
		write_section(out, &config_sections[i], &columns, width);
		return 0;
	}
	return table_unknown_key(name, err);
}
