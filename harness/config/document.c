/* The key table as documents: help on the terminal, one block a key with its text in columns, and mlbench.ini.5 as mdoc(7),
 * how a file is written by hand and its keys from the table. */
#include "harness/config/document.h"

#include "harness/config/config.h"
#include "harness/config/value.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* --- on the terminal -------------------------------------------------------------------------- */

enum {
	WIDTH_LEAST = 40,
	NAME_COLUMN = 2,
	WORDS_LEAST = 24,
	VALUES_LEAST = 12,
	GAP = 2,
	DETAIL_COLUMN = 2,
	DETAIL_TEXT = 12, /* where the text behind "default" and the like begins */
};

/* "1 to 1024", "on or off", "auto, memory, pread, io_uring". */
static void document_values(enum key_id id, struct buffer *out)
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
	default:
		value_write_limit(id, key->min, out);
		buffer_text(out, " to ");
		value_write_limit(id, key->max, out);
		return;
	}
}

/* Words behind `at` columns, the lines after the first indented to `column`; ends the line. */
static void document_wrap_from(
	struct buffer *out, const char *text, size_t column, size_t at, size_t width)
{
	bool fresh = true;
	while (*text) {
		const size_t length = strcspn(text, " ");
		if ((!fresh || at > column) && at + !fresh + length > width) {
			buffer_text(out, "\n");
			buffer_repeat(out, " ", (int)column);
			at = column;
			fresh = true;
		}
		buffer_text(out, fresh ? "" : " ");
		buffer_add(out, text, length);
		at += length + !fresh;
		fresh = false;
		text += length;
		text += strspn(text, " ");
	}
	buffer_text(out, "\n");
}

/* Words from the column on, the lines after the first indented to it; ends the line. */
void document_wrap(struct buffer *out, const char *text, size_t column, size_t width)
{
	document_wrap_from(out, text, column, column, width);
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

static void write_key_help(
	struct buffer *out, enum key_id id, const struct columns *columns, size_t width)
{
	const struct key *key = &config_keys[id];
	const size_t text = NAME_COLUMN + columns->name + GAP + columns->fallback + GAP;
	struct buffer values = {0};
	char name[80];
	(void)snprintf(name, sizeof name, "%s.%s", key->section, key->name);
	document_values(id, &values);
	if (key->kind == KEY_KIND_FIXED)
		buffer_text(&values, " (not swept)");
	const char *fallback = *key->fallback ? key->fallback : "-";
	/* Where names leave no room for words beside them, below them. */
	const bool beside = text + WORDS_LEAST <= width;
	const size_t doc = beside ? text : 2 * NAME_COLUMN;
	if (beside || text + VALUES_LEAST <= width) {
		buffer_format(out, "%*s%-*s%*s%-*s%*s", NAME_COLUMN, "", (int)columns->name, name,
			GAP, "", (int)columns->fallback, fallback, GAP, "");
		document_wrap(out, values.failed ? "" : values.data, text, width);
	} else {
		buffer_format(out, "%*s%s\n%*sdefault %s; ", NAME_COLUMN, "", name, (int)doc, "",
			fallback);
		document_wrap_from(out, values.failed ? "" : values.data, doc,
			doc + strlen("default ; ") + strlen(fallback), width);
	}
	buffer_repeat(out, " ", (int)doc);
	document_wrap(out, key->doc, doc, width);
	buffer_release(&values);
}

static void write_section_help(struct buffer *out, const struct key_section *section,
	const struct columns *columns, size_t width)
{
	buffer_format(out, "[%s] ", section->name);
	document_wrap(out, section->doc, strlen(section->name) + 3, width);
	for (int i = 0; i < KEY_COUNT; i++)
		if (strcmp(config_keys[i].section, section->name) == 0)
			write_key_help(out, (enum key_id)i, columns, width);
}

void document_keys(struct buffer *out, size_t width)
{
	const struct columns columns = measure_columns();
	width = width < WIDTH_LEAST ? WIDTH_LEAST : width;
	for (size_t i = 0; i < config_section_count; i++) {
		if (i > 0)
			buffer_text(out, "\n");
		write_section_help(out, &config_sections[i], &columns, width);
	}
}

static void write_detail(struct buffer *out, const char *title, const char *text, size_t width)
{
	buffer_format(out, "%*s%-*s", DETAIL_COLUMN, "", DETAIL_TEXT - DETAIL_COLUMN, title);
	document_wrap(out, text, DETAIL_TEXT, width);
}

static const char *const kind_words[] = {
	[KEY_KIND_KNOB] = "knob: a sweep looks for its best value",
	[KEY_KIND_WORKLOAD] =
		"workload: what is trained; a sweep has a best setting for each value",
	[KEY_KIND_ASSUMPTION] =
		"assumption: given, not chosen; a sweep has a best setting for each value",
};

static void write_details(struct buffer *out, enum key_id id, size_t width)
{
	const struct key *key = &config_keys[id];
	struct buffer values = {0};
	char sweep[160] = "no: one value for the whole run";
	document_values(id, &values);
	if (key->kind != KEY_KIND_FIXED)
		(void)snprintf(sweep, sizeof sweep,
			"yes: '%s.%s = A,B,C' in [sweep], or --set sweep.%s.%s=A,B,C", key->section,
			key->name, key->section, key->name);
	if (*value_example(id) && key->type != KEY_TYPE_BOOLEAN)
		buffer_format(&values, " (written like %s)", value_example(id));
	buffer_format(out, "%s.%s\n%*s", key->section, key->name, DETAIL_COLUMN, "");
	document_wrap(out, key->doc, DETAIL_COLUMN, width);
	buffer_text(out, "\n");
	write_detail(out, "default", *key->fallback ? key->fallback : "(empty)", width);
	write_detail(out, "values", values.failed ? "" : values.data, width);
	write_detail(out, "sweep", sweep, width);
	if (kind_words[key->kind])
		write_detail(out, "kind", kind_words[key->kind], width);
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
		write_section_help(out, &config_sections[i], &columns, width);
		return 0;
	}
	return keys_refuse_key(name, err);
}

/* --- the manual page -------------------------------------------------------------------------- */

static const char introduction[] =
	".Sh DESCRIPTION\n"
	"A file describes one benchmark of\n"
	".Xr mlbench 1\n"
	"completely: what is read and from where, how it is decoded, batched and handed to the training\n"
	"step, how long it is measured, and which of these keys are varied.\n"
	"A key that is not set has its default.\n"
	"Every mistake is refused before anything runs, with file, line and the nearest right name.\n"
	".Ss Lines\n"
	"A line holds a\n"
	".Li [section] ,\n"
	"or\n"
	".Li key = value ,\n"
	"or nothing.\n"
	"A\n"
	".Li #\n"
	"or\n"
	".Li \\&;\n"
	"at the start of a line or after a blank begins a comment.\n"
	"Indentation means nothing, a line is not continued on the next, and letters count in upper and\n"
	"lower case, except in units.\n"
	"A section may be opened again; a key stands once in a file.\n"
	".Ss Values\n"
	".Bl -tag -width Ds\n"
	".It whole numbers\n"
	".Li 4 ,\n"
	".Li 50k ;\n"
	"k, M and G are powers of 1000.\n"
	".It sizes\n"
	".Li 4096 ,\n"
	".Li 64k ,\n"
	".Li 64KiB ,\n"
	".Li 110KB ;\n"
	"k, M, G, T and KiB, MiB, GiB, TiB are powers of 1024, and KB, MB, GB, TB are powers of 1000.\n"
	".It rates\n"
	"A size with\n"
	".Li /s ,\n"
	"as in\n"
	".Li 2GiB/s .\n"
	".It durations\n"
	".Li 1.5ms ,\n"
	".Li 100us ,\n"
	".Li 3s ;\n"
	"the units are ns, us, ms, s, m (or min) and h, and a bare number is seconds.\n"
	".It shares\n"
	".Li 0.9\n"
	"or\n"
	".Li 90% .\n"
	".It switches\n"
	".Li on\n"
	"or\n"
	".Li off ;\n"
	"yes, no, true, false, 1 and 0 are understood too.\n"
	".El\n"
	".Ss Variables\n"
	".Li ${NAME}\n"
	"is replaced from the environment.\n"
	"A variable that is not defined is an error, also in the middle of a value;\n"
	".Li ${NAME:-default}\n"
	"names what to take where it is unset or empty.\n"
	"A dollar sign is written\n"
	".Li $$ ;\n"
	".Li $#\n"
	"and\n"
	".Li $;\n"
	"are these letters where they would begin a comment.\n"
	".Ss Including files\n"
	".Li include = base.ini\n"
	"reads another file at that place, before or within any section; its path is relative to the file\n"
	"that includes it.\n"
	"What follows overrides what was included.\n"
	"To set a key above a line that includes a file which sets it too is an error, and so are files\n"
	"that include each other.\n"
	".Ss Cases\n"
	"A file with a\n"
	".Li [case]\n"
	"section is a case, as\n"
	".Ic mlbench fit\n"
	"makes them: the sections of cases below it\n"
	".Po Li observed , verdict , environment , assumed , reported Pc\n"
	"say what is known of somebody's job, and set no keys.\n"
	"A case, and a lab, may come from others: it includes nothing, expands no variable but\n"
	".Ev MLBENCH_DATA\n"
	"in front of a path, and a server or a folder elsewhere that it names is refused until\n"
	".Fl -data\n"
	"or\n"
	".Fl -set\n"
	"gives it.\n"
	".Ss Sweeps\n"
	"Under\n"
	".Li [sweep]\n"
	"a key is named in full and given a list of values, a range, or a mixture of them:\n"
	".Bd -literal -offset indent\n"
	"[sweep]\n"
	"decode.workers = 1,2,4\n"
	"read.depth = 1-64*2           # 1 2 4 8 16 32 64\n"
	"prefetch.depth = 1-3+1,8      # 1 2 3 8\n"
	"exclude = decode.workers=1 read.depth=64; read.depth=1\n"
	".Ed\n"
	".Pp\n"
	"Each combination is a point; the first key varies slowest.\n"
	".Li FROM-TO+STEP\n"
	"adds and\n"
	".Li FROM-TO*FACTOR\n"
	"multiplies, up to the last value that is not above TO.\n"
	".Cm zip\n"
	"names keys whose lists are stepped together, groups of them separated by semicolons.\n"
	".Cm exclude\n"
	"leaves out the points at which all conditions of a combination hold; combinations are separated\n"
	"by semicolons, and the line may be repeated.\n"
	".Pp\n"
	"On the command line\n"
	".Fl -set Ar key Ns = Ns Ar value\n"
	"overrides a key, and takes it out of the sweep;\n"
	".Fl -set Cm sweep. Ns Ar key Ns = Ns Ar list\n"
	"sweeps it.\n";

static const char ending[] =
	".Sh ENVIRONMENT\n"
	".Bl -tag -width Ds\n"
	".It Ev MLBENCH_DATA\n"
	"The folder of the data sets of the configurations that come with the program, by default\n"
	".Pa data .\n"
	".El\n"
	".Sh EXAMPLES\n"
	"Pictures from the page cache, decoded by one, two and four workers, for an accelerator that is\n"
	"emulated:\n"
	".Bd -literal -offset indent\n"
	"[dataset]\n"
	"path = ${MLBENCH_DATA:-data}/imagenet_like\n"
	"recipe = photo\n"
	"samples = 1200\n"
	"\n"
	"[step]\n"
	"backend = emulated\n"
	"device = h100\n"
	"model = resnet50\n"
	"\n"
	"[sweep]\n"
	"decode.workers = 1,2,4\n"
	".Ed\n"
	".Sh SEE ALSO\n"
	".Xr mlbench 1\n";

/* Text for a text line: sentences on lines of their own, `words` in quotes, nothing that mdoc would
 * take for a request. */
static void write_mdoc_text(struct buffer *out, const char *text)
{
	bool open = false;
	bool at_start = true;
	for (const char *at = text; *at; at++) {
		const bool sentence_ends =
			*at == '.' && at[1] == ' ' && isupper((unsigned char)at[2]);
		if (at_start && (*at == '.' || *at == '\''))
			buffer_text(out, "\\&");
		at_start = false;
		if (*at == '`') {
			buffer_text(out, open ? "\\(rq" : "\\(lq");
			open = !open;
		} else if (*at == '\\') {
			buffer_text(out, "\\e");
		} else {
			buffer_add(out, at, 1);
		}
		if (sentence_ends) {
			buffer_text(out, "\n");
			at_start = true;
			at++;
		}
	}
	buffer_text(out, "\n");
}

static void write_key_mdoc(struct buffer *out, enum key_id id)
{
	const struct key *key = &config_keys[id];
	struct buffer values = {0};
	document_values(id, &values);
	buffer_format(
		out, ".It Cm %s No = Ar %s\n", key->name, *key->fallback ? key->fallback : "\\&");
	write_mdoc_text(out, key->doc);
	if (key->type != KEY_TYPE_TEXT || key->kind == KEY_KIND_FIXED)
		buffer_format(out, ".br\nValues: %s%s.\n", values.failed ? "" : values.data,
			key->kind == KEY_KIND_FIXED ? " (not swept)" : "");
	buffer_release(&values);
}

static void write_section_mdoc(struct buffer *out, const struct key_section *section)
{
	buffer_format(out, ".Ss [%s]\n%c", section->name, toupper((unsigned char)section->doc[0]));
	write_mdoc_text(out, section->doc + 1);
	buffer_text(out, ".Bl -tag -width Ds\n");
	for (int i = 0; i < KEY_COUNT; i++)
		if (strcmp(config_keys[i].section, section->name) == 0)
			write_key_mdoc(out, (enum key_id)i);
	buffer_text(out, ".El\n");
}

void document_manual(struct buffer *out, const char *date)
{
	buffer_format(out,
		".\\\" Generated from the program's key table.\n"
		".Dd %s\n.Dt MLBENCH.INI 5\n.Os mlbench\n"
		".Sh NAME\n.Nm mlbench.ini\n.Nd description of a training pipeline benchmark\n",
		date);
	buffer_text(out, introduction);
	buffer_text(out, ".Sh KEYS\nEach key is shown with its default.\n");
	for (size_t i = 0; i < config_section_count; i++)
		write_section_mdoc(out, &config_sections[i]);
	buffer_text(out, ending);
}
