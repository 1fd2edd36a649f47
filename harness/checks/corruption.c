/* Planted faults: read from the environment, one word after the other. */
#include "harness/checks/corruption.h"

#include "harness/base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CORRUPTION_TEXT_BYTES = 512, CORRUPTION_BITS = 8 };

const char *block_state_name(enum block_state state)
{
	static const char *const names[] = {
		"right", "bits", "stale", "torn", "misplaced", "missing", "unreadable"};
	return names[state];
}

static const struct {
	const char *name, *place; /* what its place is called; NULL: it has none */
} corruption_targets[] = {
	[CORRUPT_DECODE] = {.name = "decode", .place = "core"},
	[CORRUPT_GEMM] = {.name = "gemm", .place = "core"},
	[CORRUPT_MEMORY] = {.name = "memory", .place = "node"},
	[CORRUPT_DEVICE] = {.name = "device", .place = "device"},
	[CORRUPT_STORAGE] = {.name = "storage", .place = NULL},
};

static bool corruption_kind_read(const char *value, struct corruption *out)
{
	for (int state = BLOCK_BITS; state < BLOCK_UNREADABLE; state++)
		if (strcmp(value, block_state_name((enum block_state)state)) == 0) {
			out->kind = (enum block_state)state;
			return true;
		}
	return false;
}

/* "core=1" */
static bool corruption_word(char *word, struct corruption *out)
{
	const char *const place = corruption_targets[out->target].place;
	char *const equals = strchr(word, '=');
	char *end = NULL;
	if (!equals || !equals[1])
		return false;
	*equals = '\0';
	const char *const value = equals + 1;
	if (strcmp(word, "kind") == 0)
		return !place && corruption_kind_read(value, out);
	const unsigned long long number = strtoull(value, &end, 10);
	if (*end || value[0] == '-')
		return false;
	if (place && strcmp(word, place) == 0)
		out->place = (long)number;
	else if (!place && strcmp(word, "block") == 0)
		out->block = number;
	else if (place && strcmp(word, "nth") == 0)
		out->nth = number;
	else if (strcmp(word, "at") == 0)
		out->at = number;
	else if (strcmp(word, "bit") == 0 && number < CORRUPTION_BITS)
		out->bit = (unsigned)number;
	else
		return false;
	return true;
}

/* "gemm:core=1:nth=3" */
static int corruption_parse(char *text, struct corruption *out, struct error *err)
{
	char *rest = NULL;
	size_t target = 0;
	const char *const name = strtok_r(text, ":", &rest);
	while (name && target < COUNT(corruption_targets) &&
		strcmp(name, corruption_targets[target].name) != 0)
		target++;
	if (!name || target == COUNT(corruption_targets))
		return error_set(err, -EINVAL,
			"%s: '%s' cannot be planted; use decode, gemm, memory, device or storage",
			CORRUPTION_VARIABLE, name ? name : "");
	*out = (struct corruption){.target = (enum corruption_target)target,
		.place = CORRUPTION_ANY,
		.nth = 1,
		.kind = BLOCK_BITS};
	for (char *word = strtok_r(NULL, ":", &rest); word; word = strtok_r(NULL, ":", &rest))
		if (!corruption_word(word, out))
			return error_set(err, -EINVAL, "%s: '%s' says nothing about %s",
				CORRUPTION_VARIABLE, word, name);
	return 0;
}

int corruptions_parse(const char *text, struct corruptions *out, struct error *err)
{
	char copy[CORRUPTION_TEXT_BYTES];
	char *rest = NULL;
	*out = (struct corruptions){0};
	if (strlen(text) >= sizeof copy)
		return error_set(err, -EINVAL, "%s is too long", CORRUPTION_VARIABLE);
	(void)snprintf(copy, sizeof copy, "%s", text);
	for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		if (out->count == CORRUPTIONS_MAX)
			return error_set(err, -EINVAL, "%s: at most %d can be planted",
				CORRUPTION_VARIABLE, CORRUPTIONS_MAX);
		const int code = corruption_parse(one, &out->list[out->count], err);
		if (code)
			return code;
		out->count++;
	}
	return 0;
}

int corruptions_read(struct corruptions *out, struct error *err)
{
	const char *const text = getenv(CORRUPTION_VARIABLE);
	return corruptions_parse(text ? text : "", out, err);
}

void corruptions_flip(const struct corruptions *corruptions, enum corruption_target target,
	unsigned place, uint64_t nth, void *data, size_t size)
{
	for (size_t i = 0; i < corruptions->count && size > 0; i++) {
		const struct corruption *const one = &corruptions->list[i];
		const bool here = one->place == CORRUPTION_ANY || one->place == (long)place;
		if (one->target == target && here && (one->nth == 0 || one->nth == nth))
			((uint8_t *)data)[one->at % size] ^= (uint8_t)(1U << one->bit);
	}
}

const struct corruption *corruptions_of_block(const struct corruptions *corruptions, uint64_t block)
{
	for (size_t i = 0; i < corruptions->count; i++) {
		const struct corruption *const one = &corruptions->list[i];
		if (one->target == CORRUPT_STORAGE && one->block == block)
			return one;
	}
	return NULL;
}
