/* The table of keys as data, and finding a key or the nearest to a wrong name. */
#include "harness/base/text.h"
#include "harness/config/config.h"
#include "harness/config/tables.h"
#include "harness/config/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "|jpeg|png|raw": the formats that can be written. */
#define CODEC_READS(name)
#define CODEC_WRITES(name) "|" #name
#define CODEC(id, name, use) CODEC_##use(name)
static const char codec_choices[] =
#include "harness/config/codecs.def"
	;
#undef CODEC
#define CODEC_CHOICES (codec_choices + 1)

static const char sample_choices[] = SAMPLE_KINDS(SAMPLE_KIND_CHOICE);
#define SAMPLE_CHOICES (sample_choices + 1)

#define SECTION(name, doc)
#define KEY(id, section, name, type, ...) \
	[KEY_##id] = {section, name, KEY_TYPE_##type, __VA_ARGS__},
const struct key config_keys[KEY_COUNT] = {
#include "harness/config/keys.def"
};
#undef KEY
#undef SECTION

#define SECTION(name, doc) {name, doc},
#define KEY(...)
const struct key_section config_sections[] = {
#include "harness/config/keys.def"
};
#undef KEY
#undef SECTION

const size_t config_section_count = sizeof config_sections / sizeof config_sections[0];

enum { DOTTED_BYTES = 64 };

static const char *dotted_name(enum key_id key, char out[DOTTED_BYTES])
{
	(void)snprintf(out, DOTTED_BYTES, "%s.%s", config_keys[key].section, config_keys[key].name);
	return out;
}

enum key_id config_find_key(const char *dotted)
{
	const char *dot = strchr(dotted, '.');
	if (!dot)
		return KEY_COUNT;
	const size_t length = (size_t)(dot - dotted);
	for (int key = 0; key < KEY_COUNT; key++) {
		const char *section = config_keys[key].section;
		if (strlen(section) == length && strncmp(section, dotted, length) == 0 &&
			strcmp(config_keys[key].name, dot + 1) == 0)
			return (enum key_id)key;
	}
	return KEY_COUNT;
}

bool keys_have_section(const char *name)
{
	for (size_t i = 0; i < config_section_count; i++)
		if (strcmp(config_sections[i].name, name) == 0)
			return true;
	return false;
}

int keys_refuse_section(const char *name, struct error *err)
{
	const char *names[32];
	size_t count = 0;
	for (; count < config_section_count && count < sizeof names / sizeof names[0]; count++)
		names[count] = config_sections[count].name;
	const char *nearest = suggest_nearest(name, names, count);
	if (nearest)
		return error_set(
			err, -EINVAL, "unknown section '%.48s'; did you mean '%s'?", name, nearest);
	return error_set(err, -EINVAL, "unknown section '%.48s'; see `mlbench help keys`", name);
}

/* The key whose last name is nearest to a word without a dot. */
static enum key_id nearest_bare(const char *word)
{
	const char *names[KEY_COUNT];
	for (int key = 0; key < KEY_COUNT; key++)
		names[key] = config_keys[key].name;
	const char *nearest = suggest_nearest(word, names, KEY_COUNT);
	int key = 0;
	while (key < KEY_COUNT && names[key] != nearest)
		key++;
	return (enum key_id)key;
}

/* A right name under a wrong section ("batch.workers"); a misspelt section is left to the nearest
 * dotted name. */
static enum key_id nearest_cousin(const char *dotted, const char *dot)
{
	char section[DOTTED_BYTES];
	(void)snprintf(section, sizeof section, "%.*s", (int)(dot - dotted), dotted);
	if (!keys_have_section(section))
		return KEY_COUNT;
	for (int key = 0; key < KEY_COUNT; key++)
		if (strcmp(config_keys[key].name, dot + 1) == 0)
			return (enum key_id)key;
	return KEY_COUNT;
}

int keys_refuse_key(const char *dotted, struct error *err)
{
	char room[KEY_COUNT][DOTTED_BYTES];
	const char *names[KEY_COUNT];
	const char *dot = strrchr(dotted, '.');
	for (int key = 0; key < KEY_COUNT; key++)
		names[key] = dotted_name((enum key_id)key, room[key]);
	const enum key_id meant = dot ? nearest_cousin(dotted, dot) : nearest_bare(dotted);
	const char *nearest =
		meant == KEY_COUNT ? suggest_nearest(dotted, names, KEY_COUNT) : names[meant];
	if (nearest)
		return error_set(
			err, -EINVAL, "unknown key '%.64s'; did you mean '%s'?", dotted, nearest);
	return error_set(err, -EINVAL, "unknown key '%.64s'; see `mlbench help keys`", dotted);
}
