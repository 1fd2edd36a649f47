/* Memory modules of a DMI table. */
#include "harness/measure/dmi.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/measure/node_files.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	HEADER_BYTES = 4, /* type, length, handle */
	TYPE_MEMORY = 17,
	TYPE_END = 127,
	/* Places in a memory device's structure. */
	TOTAL_WIDTH = 0x08,
	DATA_WIDTH = 0x0a,
	SIZE_WORD = 0x0c,
	SLOT_NAME = 0x10,
	BANK_NAME = 0x11,
	MEMORY_TYPE = 0x12,
	RATED_WORD = 0x15,
	MAKER = 0x17,
	SERIAL = 0x18,
	PART = 0x1a,
	SIZE_LONG = 0x1c,
	SPEED_WORD = 0x20,
	RATED_LONG = 0x54,
	SPEED_LONG = 0x58,
	WORD_UNKNOWN = 0xffff,
	SIZE_IS_LONG = 0x7fff,
	SIZE_IN_KIB = 0x8000,
};

/* A structure: its formatted part, and the strings behind it up to `end`, where two zero bytes are. */
struct dmi_structure {
	const unsigned char *at, *strings, *end;
	size_t length;
};

/* The structure at `at`; false: what is left of the table holds no whole one. */
static bool dmi_take(const unsigned char *at, const unsigned char *end, struct dmi_structure *out)
{
	if (end - at < HEADER_BYTES || at[1] < HEADER_BYTES || end - at < at[1] + 2)
		return false;
	*out = (struct dmi_structure){.at = at, .length = at[1], .strings = at + at[1]};
	const unsigned char *zero = out->strings;
	while (end - zero >= 2 && (zero[0] || zero[1]))
		zero++;
	out->end = zero;
	return end - zero >= 2;
}

/* A number of `bytes` bytes, the least first; what is not in the structure is 0. */
static uint32_t dmi_number(const struct dmi_structure *s, size_t place, size_t bytes)
{
	uint32_t value = 0;
	for (size_t i = 0; i < bytes && place + bytes <= s->length; i++)
		value |= (uint32_t)s->at[place + i] << (8 * i);
	return value;
}

bool dmi_is_placeholder(const char *text)
{
	static const char *const texts[] = {"To be filled by O.E.M.", "Default string",
		"Not Specified", "System Serial Number", "System Product Name", "None", "Unknown",
		"N/A", "NO DIMM"};
	for (size_t i = 0; i < COUNT(texts); i++)
		if (strcasecmp(text, texts[i]) == 0)
			return true;
	return false;
}

/* The string that the byte at `place` numbers, fit to be shown; "" where there is none. */
static void dmi_string(const struct dmi_structure *s, size_t place, char *out, size_t room)
{
	uint32_t number = dmi_number(s, place, 1);
	const unsigned char *at = s->strings;
	out[0] = '\0';
	if (number == 0)
		return;
	while (--number > 0) {
		const unsigned char *zero = memchr(at, 0, (size_t)(s->end - at));
		if (!zero)
			return;
		at = zero + 1;
	}
	(void)snprintf(out, room, "%.*s", (int)(s->end - at), (const char *)at);
	utf8_make_plain(out, '?');
	size_t length = strlen(out);
	while (length > 0 && out[length - 1] == ' ')
		out[--length] = '\0';
	if (dmi_is_placeholder(out))
		out[0] = '\0';
}

static double dmi_bytes(const struct dmi_structure *s)
{
	const uint32_t size = dmi_number(s, SIZE_WORD, 2);
	if (size == WORD_UNKNOWN)
		return NAN;
	if (size == SIZE_IS_LONG)
		return (double)(dmi_number(s, SIZE_LONG, 4) & 0x7fffffffU) * 0x1p20;
	return (double)(size & 0x7fffU) * (size & SIZE_IN_KIB ? 0x1p10 : 0x1p20);
}

static double dmi_speed(const struct dmi_structure *s, size_t word, size_t longer)
{
	const uint32_t speed = dmi_number(s, word, 2);
	const uint32_t wide = speed == WORD_UNKNOWN ? dmi_number(s, longer, 4) : speed;
	return wide > 0 && wide != 0xffffffffU ? (double)wide : (double)NAN;
}

static void dmi_memory_type(uint32_t code, char out[16])
{
	static const struct {
		uint32_t code;
		const char *name;
	} names[] = {{0x12, "DDR"}, {0x13, "DDR2"}, {0x18, "DDR3"}, {0x1a, "DDR4"}, {0x1b, "LPDDR"},
		{0x1c, "LPDDR2"}, {0x1d, "LPDDR3"}, {0x1e, "LPDDR4"}, {0x1f, "NVDIMM"},
		{0x20, "HBM"}, {0x21, "HBM2"}, {0x22, "DDR5"}, {0x23, "LPDDR5"}, {0x24, "HBM3"}};
	out[0] = '\0';
	for (size_t i = 0; i < COUNT(names); i++)
		if (names[i].code == code)
			(void)snprintf(out, 16, "%s", names[i].name);
}

static int dmi_corrects(const struct dmi_structure *s)
{
	const uint32_t total = dmi_number(s, TOTAL_WIDTH, 2);
	const uint32_t data = dmi_number(s, DATA_WIDTH, 2);
	if (total == 0 || data == 0 || total == WORD_UNKNOWN || data == WORD_UNKNOWN)
		return -1;
	return total > data;
}

static bool dmi_is_taken(const char *slot, const struct dmi_module *modules, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(modules[i].slot, slot) == 0)
			return true;
	return false;
}

/* Many boards call every channel's first slot "DIMM 0". */
static void dmi_name_slot(
	const struct dmi_structure *s, const struct dmi_module *modules, size_t count, char out[48])
{
	char slot[24];
	char bank[16];
	dmi_string(s, SLOT_NAME, slot, sizeof slot);
	dmi_string(s, BANK_NAME, bank, sizeof bank);
	(void)snprintf(out, 48, "%s", slot[0] ? slot : "slot");
	if (bank[0] && (!slot[0] || dmi_is_taken(out, modules, count)))
		(void)snprintf(out, 48, "%s %s", slot[0] ? slot : "slot", bank);
	for (size_t n = 2; dmi_is_taken(out, modules, count) && n <= DMI_MODULES_MAX + 1; n++)
		(void)snprintf(out, 48, "%s #%zu", slot[0] ? slot : "slot", n);
}

size_t dmi_modules(const unsigned char *table, size_t size, struct dmi_module *modules, size_t room)
{
	struct dmi_structure s;
	size_t count = 0;
	for (const unsigned char *at = table; count < room && dmi_take(at, table + size, &s);
		at = s.end + 2) {
		if (s.at[0] == TYPE_END)
			break;
		if (s.at[0] != TYPE_MEMORY || s.length <= MEMORY_TYPE)
			continue;
		struct dmi_module *module = &modules[count];
		*module = (struct dmi_module){.bytes = dmi_bytes(&s),
			.speed = dmi_speed(&s, SPEED_WORD, SPEED_LONG),
			.rated = dmi_speed(&s, RATED_WORD, RATED_LONG),
			.corrects = dmi_corrects(&s)};
		dmi_name_slot(&s, modules, count, module->slot);
		dmi_memory_type(dmi_number(&s, MEMORY_TYPE, 1), module->type);
		dmi_string(&s, MAKER, module->maker, sizeof module->maker);
		dmi_string(&s, PART, module->part, sizeof module->part);
		dmi_string(&s, SERIAL, module->serial, sizeof module->serial);
		count++;
	}
	return count;
}

int dmi_modules_read(const char *root, struct dmi_module *modules, size_t room, size_t *count)
{
	char path[NODE_PATH_BYTES];
	char *table = NULL;
	size_t size = 0;
	struct error err;
	*count = 0;
	(void)snprintf(path, sizeof path, "%s/sys/firmware/dmi/tables/DMI", root);
	const int code = files_read(path, DMI_TABLE_BYTES_MAX, &table, &size, &err);
	if (code)
		return code;
	*count = dmi_modules((const unsigned char *)table, size, modules, room);
	free(table);
	return 0;
}
