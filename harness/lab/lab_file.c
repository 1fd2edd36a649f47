/* Reading [lab]. */
#include "harness/lab/lab_file.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/config/ini.h"
#include "harness/config/section_owner.h"
#include "harness/config/value.h"
#include "harness/lab/ask_figures.h"
#include "harness/lab/cause_words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum lab_form {
	LAB_FORM_TEXT,   /* as it is */
	LAB_FORM_NUMBER, /* whole, above 0 */
	LAB_FORM_SHARE,
	LAB_FORM_TIME,
	LAB_FORM_CAUSE,
	LAB_FORM_PAIR,
	LAB_FORM_HEAD, /* NAME[, ...]: TEXT */
};

static const struct lab_word_spec {
	const char *name;
	enum lab_form form;
	bool repeats; /* otherwise a variant's replaces that of [lab] */
	int second;   /* a head's: whether a second word follows (1) and a third, a share (2) */
	bool pairs;   /* ... and settings */
} lab_words[LAB_WORDS] = {
	[LAB_NUMBER] = {"number", LAB_FORM_NUMBER, false, 0, false},
	[LAB_TITLE] = {"title", LAB_FORM_TEXT, false, 0, false},
	[LAB_MINUTES] = {"minutes", LAB_FORM_NUMBER, false, 0, false},
	[LAB_PAGE] = {"page", LAB_FORM_TEXT, false, 0, false},
	[LAB_GOAL] = {"goal", LAB_FORM_TEXT, false, 0, false},
	[LAB_PASS] = {"pass", LAB_FORM_SHARE, false, 0, false},
	[LAB_CHECK] = {"check", LAB_FORM_TIME, false, 0, false},
	[LAB_CAUSE] = {"cause", LAB_FORM_CAUSE, false, 0, false},
	[LAB_RIGHT] = {"right", LAB_FORM_TEXT, false, 0, false},
	[LAB_EXPLAIN] = {"explain", LAB_FORM_TEXT, true, 0, false},
	[LAB_SCALE] = {"scale", LAB_FORM_PAIR, true, 0, false},
	[LAB_PLANT] = {"plant", LAB_FORM_PAIR, true, 0, false},
	[LAB_KNOB] = {"knob", LAB_FORM_PAIR, true, 0, false},
	[LAB_BEST] = {"best", LAB_FORM_PAIR, true, 0, false},
	[LAB_WRONG] = {"wrong", LAB_FORM_HEAD, true, 0, true},
	[LAB_ASK] = {"ask", LAB_FORM_HEAD, true, 1, true},
	[LAB_EVIDENCE] = {"evidence", LAB_FORM_HEAD, true, 0, false},
	[LAB_ANSWER] = {"answer", LAB_FORM_HEAD, true, 2, false},
	[LAB_HINT1] = {"hint1", LAB_FORM_HEAD, false, 0, false},
	[LAB_HINT2] = {"hint2", LAB_FORM_HEAD, false, 0, false},
	[LAB_HINT3] = {"hint3", LAB_FORM_HEAD, false, 0, false},
};

struct lab_reading {
	struct lab *lab;
	size_t variant;
	bool any;
};

/* --- one line --------------------------------------------------------------------------------- */

static bool lab_is_key(const char *key)
{
	return config_find_key(key) != KEY_COUNT || strcmp(key, LAB_NODE_CORES) == 0;
}

static bool lab_is_name(const char *text)
{
	const size_t length = strlen(text);
	return length > 0 && length < LAB_WORD_BYTES && !isdigit((unsigned char)*text) &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
		       length;
}

/* "KEY = VALUE", which is cut up. */
static int lab_take_pair(struct lab_line *line, char *text, struct error *err)
{
	char *equals = strchr(text, '=');
	if (!equals)
		return error_set(err, -EINVAL, "expected KEY=VALUE, not '%.60s'", text);
	*equals = '\0';
	const char *key = text_trim(text);
	const char *value = text_trim(equals + 1);
	if (!lab_is_key(key))
		return keys_refuse_key(key, err);
	if (config_is_path(config_find_key(key)))
		return error_set(err, -EINVAL, "'%s': a lab sets no paths: write it under [%.*s]",
			key, (int)strcspn(key, "."), key);
	if (!*value || strlen(value) >= LAB_VALUE_BYTES)
		return error_set(err, -EINVAL, "'%s' has no value, or one that is too long", key);
	if (line->pair_count == LAB_PAIRS_MAX)
		return error_set(err, -EINVAL, "more than %d settings", LAB_PAIRS_MAX);
	struct lab_pair *pair = &line->pairs[line->pair_count++];
	(void)snprintf(pair->key, sizeof pair->key, "%s", key);
	(void)snprintf(pair->value, sizeof pair->value, "%s", value);
	return 0;
}

/* The word of a head at this place: the name, then what its spec says. */
static int lab_take_word(struct lab_line *line, const struct lab_word_spec *spec, int place,
	char *word, struct error *err)
{
	const bool priced = line->word >= LAB_HINT1 && line->word <= LAB_HINT3;
	double amount = 0;
	if (place == 0 && priced) {
		if (units_parse_real(word, &line->amount) || line->amount < 0 || line->amount > 100)
			return error_set(
				err, -EINVAL, "a price is points from 0 to 100, not '%.40s'", word);
		return 0;
	}
	if (place == 0) {
		if (!lab_is_name(word))
			return error_set(err, -EINVAL,
				"'%.48s' is no name: letters, digits, '-', '_'", word);
		(void)snprintf(line->name, sizeof line->name, "%s", word);
		return 0;
	}
	if (place <= spec->second && place == 1) {
		if (strlen(word) >= sizeof line->second)
			return error_set(err, -EINVAL, "'%.40s...' is too long", word);
		(void)snprintf(line->second, sizeof line->second, "%s", word);
		if (line->word == LAB_ASK && ask_figure_find(word) == ASK_FIGURES)
			return ask_figure_refuse(word, err);
		return 0;
	}
	if (place <= spec->second) {
		if (units_parse_share(word, &amount) || !(amount > 0) || amount >= 1)
			return error_set(err, -EINVAL,
				"a tolerance is a share as '25%%', not '%.40s'", word);
		line->amount = amount;
		return 0;
	}
	return spec->pairs ? lab_take_pair(line, word, err)
			   : error_set(err, -EINVAL, "'%.48s' is one word too many", word);
}

/* Behind the next comma outside of brackets, which is cut; NULL: none. */
static char *lab_next_comma(char *text)
{
	int depth = 0;
	for (; *text; text++) {
		depth += (*text == '(') - (*text == ')');
		if (*text == ',' && depth <= 0) {
			*text = '\0';
			return text + 1;
		}
	}
	return NULL;
}

static int lab_take_head(struct lab_line *line, const struct lab_word_spec *spec, struct error *err)
{
	char *colon = strchr(line->text, ':');
	int place = 0;
	if (!colon || !*text_trim(colon + 1))
		return error_set(err, -EINVAL, "'%s' needs a ':' and a text behind it", spec->name);
	*colon = '\0';
	char *rest = line->text;
	while (rest) {
		char *word = rest;
		rest = lab_next_comma(rest);
		const int code = lab_take_word(line, spec, place++, text_trim(word), err);
		if (code)
			return code;
	}
	if (place <= spec->second)
		return error_set(err, -EINVAL, "'%s' needs %d words in front of ':'", spec->name,
			spec->second + 1);
	const char *text = text_trim(colon + 1);
	memmove(line->text, text, strlen(text) + 1);
	return 0;
}

static int lab_take_line(struct lab_line *line, struct error *err)
{
	const struct lab_word_spec *spec = &lab_words[line->word];
	uint64_t ns = 0;
	int64_t whole = 0;
	switch (spec->form) {
	case LAB_FORM_TEXT:
		return *line->text ? 0 : error_set(err, -EINVAL, "'%s' is empty", spec->name);
	case LAB_FORM_NUMBER:
		if (units_parse_integer(line->text, &whole) || whole < 1 || whole > 999)
			return error_set(err, -EINVAL,
				"'%s' is a number from 1 to 999, not '%.40s'", spec->name,
				line->text);
		line->amount = (double)whole;
		return 0;
	case LAB_FORM_SHARE:
		if (units_parse_share(line->text, &line->amount) || !(line->amount > 0) ||
			line->amount > 1)
			return error_set(err, -EINVAL, "'%s' is a share as '70%%', not '%.40s'",
				spec->name, line->text);
		return 0;
	case LAB_FORM_TIME:
		if (units_parse_duration(line->text, &ns) || ns == 0 || ns > 110 * NS_PER_S)
			return error_set(err, -EINVAL, "'%s' is a time up to 110s, not '%.40s'",
				spec->name, line->text);
		line->amount = (double)ns / (double)NS_PER_S;
		return 0;
	case LAB_FORM_CAUSE:
		return cause_check(line->text, err);
	case LAB_FORM_PAIR:
		return lab_take_pair(line, line->text, err);
	case LAB_FORM_HEAD:
		return lab_take_head(line, spec, err);
	}
	return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

const char *const lab_sections[] = {"lab", NULL};

static bool lab_is_section(const char *name)
{
	return section_begins(
		&(const struct section_owner){.sections = lab_sections, .variants = true}, name);
}

static int lab_section(
	void *context, const struct ini_place *place, const char *name, struct error *err)
{
	struct lab_reading *reading = context;
	struct lab *lab = reading->lab;
	(void)place;
	if (!lab_is_section(name))
		return 0;
	reading->any = true;
	const char *variant = name[3] ? name + 4 : "";
	size_t i = 0;
	while (i < lab->variant_count && strcmp(lab->variants[i], variant) != 0)
		i++;
	reading->variant = i;
	if (i < lab->variant_count)
		return 0;
	if (!lab_is_name(variant) || i == LAB_VARIANTS_MAX)
		return error_set(err, -EINVAL,
			"'%.40s' is no name of a variant, or one of too many", variant);
	(void)snprintf(lab->variants[lab->variant_count++], LAB_WORD_BYTES, "%s", variant);
	return 0;
}

static enum lab_word lab_find_word(const char *name)
{
	int word = 0;
	while (word < LAB_WORDS && strcmp(lab_words[word].name, name) != 0)
		word++;
	return (enum lab_word)word;
}

static int lab_refuse_word(const char *name, struct error *err)
{
	const char *names[LAB_WORDS];
	for (size_t i = 0; i < LAB_WORDS; i++)
		names[i] = lab_words[i].name;
	const char *nearest = suggest_nearest(name, names, LAB_WORDS);
	return error_set(err, -EINVAL, "unknown word '%.40s' of a lab%s%s%s", name,
		nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int lab_value(void *context, const struct ini_place *place, const char *section,
	const char *key, const char *text, struct error *err)
{
	const struct lab_reading *reading = context;
	struct lab *lab = reading->lab;
	if (!lab_is_section(section))
		return 0;
	const enum lab_word word = lab_find_word(key);
	if (word == LAB_WORDS)
		return lab_refuse_word(key, err);
	for (size_t i = 0; i < lab->line_count && !lab_words[word].repeats; i++)
		if (lab->lines[i].word == word && lab->lines[i].variant == reading->variant)
			return error_set(err, -EINVAL, "'%s' stands twice", key);
	if (lab->line_count == LAB_LINES_MAX)
		return error_set(err, -EINVAL, "more than %d lines of a lab", LAB_LINES_MAX);
	struct lab_line *line = &lab->lines[lab->line_count];
	*line = (struct lab_line){.word = word,
		.variant = reading->variant,
		.number = place->line,
		.text = strdup(text)};
	if (!line->text)
		return error_set(err, -ENOMEM, "out of memory");
	lab->line_count++;
	return lab_take_line(line, err);
}

/* What a lab cannot be without, in each of its variants. */
static int lab_check_variant(const struct lab *lab, size_t variant, struct error *err)
{
	static const enum lab_word needed[] = {LAB_NUMBER, LAB_TITLE, LAB_PAGE, LAB_CAUSE,
		LAB_RIGHT, LAB_PLANT, LAB_ASK, LAB_EVIDENCE, LAB_HINT1, LAB_HINT2, LAB_HINT3,
		LAB_EXPLAIN};
	for (size_t i = 0; i < COUNT(needed); i++)
		if (!lab_line(lab, variant, needed[i]))
			return error_set(
				err, -EINVAL, "[lab] has no line '%s'", lab_words[needed[i]].name);
	if (!lab_line(lab, variant, LAB_BEST) && !lab_line(lab, variant, LAB_ANSWER))
		return error_set(err, -EINVAL, "[lab] has neither 'best' nor 'answer'");
	bool right = false;
	size_t at = 0;
	const struct lab_line *evidence;
	while ((evidence = lab_next(lab, variant, LAB_EVIDENCE, &at)))
		right = right || lab_is_among(lab_text(lab, variant, LAB_RIGHT), evidence->name);
	if (!right)
		return error_set(err, -EINVAL, "'right = %.60s' names no line 'evidence'",
			lab_text(lab, variant, LAB_RIGHT));
	double price = -1;
	for (enum lab_word hint = LAB_HINT1; hint <= LAB_HINT3; hint++) {
		if (!(lab_amount(lab, variant, hint, 0) > price))
			return error_set(
				err, -EINVAL, "each hint must be dearer than the one before");
		price = lab_amount(lab, variant, hint, 0);
	}
	return 0;
}

static int lab_finish(struct lab_reading *reading, const char *path, struct error *err)
{
	struct lab *lab = reading->lab;
	int code = reading->any ? 0 : error_set(err, -ENODATA, "it has no [lab] section");
	/* Variant 0 is none of its own where there are others. */
	for (size_t i = lab->variant_count > 1; i < lab->variant_count && !code; i++)
		code = lab_check_variant(lab, i, err);
	if (code)
		return error_prefix(err, code, "%s", path);
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	lab->number = (unsigned)lab_amount(lab, 0, LAB_NUMBER, 0);
	(void)snprintf(lab->name, sizeof lab->name, "%.*s", (int)strcspn(name, "."), name);
	lab->path = strdup(path);
	return lab->path ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int lab_read_either(struct lab **out, const char *path, const char *text, struct error *err)
{
	struct lab *lab = calloc(1, sizeof *lab);
	struct lab_reading reading = {.lab = lab};
	const struct ini_target target = {.context = &reading,
		.section = lab_section,
		.value = lab_value,
		.foreign = section_is_foreign};
	*out = lab;
	if (!lab)
		return error_set(err, -ENOMEM, "out of memory");
	lab->variant_count = 1;
	int code = text ? ini_read_text(&target, path, text, strlen(text), err)
			: ini_read_file(&target, path, err);
	if (!code)
		code = lab_finish(&reading, path, err);
	if (code) {
		lab_free(lab);
		*out = NULL;
	}
	return code;
}

int lab_read(struct lab **lab, const char *path, struct error *err)
{
	return lab_read_either(lab, path, NULL, err);
}

int lab_read_text(struct lab **lab, const char *name, const char *text, struct error *err)
{
	return lab_read_either(lab, name, text, err);
}

void lab_free(struct lab *lab)
{
	if (!lab)
		return;
	for (size_t i = 0; i < lab->line_count; i++)
		free(lab->lines[i].text);
	free(lab->path);
	free(lab);
}

/* --- looking things up ------------------------------------------------------------------------ */

const struct lab_line *lab_next(
	const struct lab *lab, size_t variant, enum lab_word word, size_t *at)
{
	while (*at < lab->line_count) {
		const struct lab_line *line = &lab->lines[(*at)++];
		if (line->word == word && (line->variant == 0 || line->variant == variant))
			return line;
	}
	return NULL;
}

const struct lab_line *lab_line(const struct lab *lab, size_t variant, enum lab_word word)
{
	const struct lab_line *found = NULL;
	const struct lab_line *line;
	size_t at = 0;
	while ((line = lab_next(lab, variant, word, &at)))
		if (!found || line->variant > found->variant)
			found = line;
	return found;
}

const char *lab_text(const struct lab *lab, size_t variant, enum lab_word word)
{
	const struct lab_line *line = lab_line(lab, variant, word);
	return line ? line->text : "";
}

double lab_amount(const struct lab *lab, size_t variant, enum lab_word word, double otherwise)
{
	const struct lab_line *line = lab_line(lab, variant, word);
	return line ? line->amount : otherwise;
}

const struct lab_line *lab_named(
	const struct lab *lab, size_t variant, enum lab_word word, const char *name)
{
	const struct lab_line *line;
	size_t at = 0;
	while ((line = lab_next(lab, variant, word, &at)))
		if (strcasecmp(line->name, name) == 0)
			return line;
	return NULL;
}

bool lab_is_among(const char *choices, const char *word)
{
	const size_t length = strlen(word);
	while (*choices) {
		choices += strspn(choices, " |");
		size_t size = strcspn(choices, "|");
		const char *const next = choices + size;
		while (size > 0 && choices[size - 1] == ' ')
			size--;
		if (size == length && size > 0 && strncasecmp(choices, word, size) == 0)
			return true;
		choices = next;
	}
	return false;
}
