/* One table of members: how each is made of facts, compared and said. */
#include "harness/accept/fingerprint.h"

#include "harness/base/array.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_MODELS_MAX = 256, GPU_NAME_BYTES = 32 };

/* --- made of facts ---------------------------------------------------------------------------- */

static const char *fingerprint_text(
	const struct fact_list *facts, const char *group, const char *name)
{
	const struct fact *fact = fact_find(facts, group, name);
	return fact && fact->kind == FACT_TEXT ? fact->text : NULL;
}

/* jansson takes UTF-8 alone; a name of hardware that is none counts as unknown. */
static json_t *text_or_null(const char *text)
{
	json_t *value = text ? json_string(text) : NULL;
	return value ? value : json_null();
}

static json_t *fingerprint_cpu(const struct fact_list *facts)
{
	return text_or_null(fingerprint_text(facts, "cpu", "model"));
}

static json_t *count_or_null(const struct fact_list *facts, const char *name)
{
	const struct fact *fact = fact_find(facts, "cpu", name);
	return fact && fact->kind == FACT_NUMBER ? json_integer((json_int_t)fact->number)
						 : json_null();
}

static json_t *fingerprint_sockets(const struct fact_list *facts)
{
	return count_or_null(facts, "sockets");
}

static json_t *fingerprint_cores(const struct fact_list *facts)
{
	return count_or_null(facts, "cores");
}

static json_t *fingerprint_memory(const struct fact_list *facts)
{
	const struct fact *fact = fact_find(facts, "memory", "total");
	if (!fact || fact->kind != FACT_NUMBER || !(fact->number > 0) || fact->number > 1e18)
		return json_null();
	const double grain = exp2(floor(log2(fact->number))) / 8;
	return json_integer((json_int_t)(ceil(fact->number / grain) * grain));
}

static json_t *fingerprint_virtual(const struct fact_list *facts)
{
	const char *text = fingerprint_text(facts, "cpu", "hypervisor");
	return text_or_null(text ? strncmp(text, "yes", 3) == 0 ? "yes" : "no" : NULL);
}

static int order_texts(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Models of devices, sorted: by the driver's library, or as its files name them. */
static size_t gpu_models(
	const struct fact_list *facts, const char *stem, const char *models[GPU_MODELS_MAX])
{
	size_t count = 0;
	for (; count < GPU_MODELS_MAX; count++) {
		char name[GPU_NAME_BYTES];
		(void)snprintf(name, sizeof name, "%s_%zu", stem, count);
		models[count] = fingerprint_text(facts, "gpu", name);
		if (!models[count])
			break;
	}
	if (count > 1)
		qsort(models, count, sizeof *models, order_texts);
	return count;
}

static json_t *fingerprint_gpus(const struct fact_list *facts)
{
	const char *models[GPU_MODELS_MAX];
	struct buffer text = {0};
	size_t count = gpu_models(facts, "name", models);
	if (count == 0)
		count = gpu_models(facts, "model", models);
	for (size_t i = 0; i < count;) {
		size_t same = 1;
		while (i + same < count && strcmp(models[i], models[i + same]) == 0)
			same++;
		buffer_format(&text, "%s%zu x %s", i ? ", " : "", same, models[i]);
		i += same;
	}
	json_t *value = text_or_null(count > 0 ? text.failed ? NULL : text.data : "none");
	buffer_release(&text);
	return value;
}

static json_t *fingerprint_storage(const struct fact_list *facts)
{
	const char *type = fingerprint_text(facts, "data", "file_system");
	const char *disk = fingerprint_text(facts, "data", "disk");
	const char *rotational = fingerprint_text(facts, "data", "rotational");
	char text[128];
	if (!type)
		return json_null();
	if (fact_find(facts, "data", "nfs")) /* known or not, of such mounts alone */
		return json_string("NFS");
	if (disk && strncmp(disk, "nvme", 4) == 0)
		return json_string("NVMe disk");
	if (disk && rotational)
		return json_string(
			strcmp(rotational, "yes") == 0 ? "rotating disk" : "solid-state disk");
	(void)snprintf(text, sizeof text, "%s file system", type);
	return text_or_null(text);
}

/* --- the members ------------------------------------------------------------------------------ */

enum member_words { WORDS_TEXT, WORDS_COUNT, WORDS_BYTES };

static const struct fingerprint_member {
	const char *name;
	enum member_words words;
	json_t *(*make)(const struct fact_list *facts);
} fingerprint_members[] = {
	{"cpu", WORDS_TEXT, fingerprint_cpu},
	{"sockets", WORDS_COUNT, fingerprint_sockets},
	{"cores", WORDS_COUNT, fingerprint_cores},
	{"memory", WORDS_BYTES, fingerprint_memory},
	{"virtual", WORDS_TEXT, fingerprint_virtual},
	{"gpus", WORDS_TEXT, fingerprint_gpus},
	{"storage", WORDS_TEXT, fingerprint_storage},
};

json_t *fingerprint_make(const struct fact_list *environment)
{
	json_t *fingerprint = json_object();
	for (size_t i = 0; fingerprint && i < COUNT(fingerprint_members); i++)
		if (json_object_set_new(fingerprint, fingerprint_members[i].name,
			    fingerprint_members[i].make(environment))) {
			json_decref(fingerprint);
			return NULL;
		}
	return fingerprint;
}

static void member_words(
	const struct fingerprint_member *member, const json_t *value, struct buffer *out)
{
	char number[UNITS_BYTES];
	if (json_is_string(value))
		buffer_text(out, json_string_value(value));
	else if (!json_is_number(value))
		buffer_text(out, "unknown");
	else if (member->words == WORDS_BYTES)
		buffer_text(out, units_format_size(json_number_value(value), number));
	else
		buffer_format(out, "%.15g", json_number_value(value));
}

bool fingerprint_same(const json_t *node, const json_t *other, struct buffer *why)
{
	bool same = true;
	for (size_t i = 0; i < COUNT(fingerprint_members); i++) {
		const struct fingerprint_member *const member = &fingerprint_members[i];
		const json_t *const a = json_object_get(node, member->name);
		const json_t *const b = json_object_get(other, member->name);
		const bool none = (!a || json_is_null(a)) && (!b || json_is_null(b));
		if (none || (a && b && json_equal(a, b)))
			continue;
		if (why) {
			buffer_format(why, "%s%s: ", same ? "" : "; ", member->name);
			member_words(member, a, why);
			buffer_text(why, ", not ");
			member_words(member, b, why);
		}
		same = false;
	}
	return same;
}

void fingerprint_words(const json_t *fingerprint, struct buffer *out)
{
	const double sockets = json_number_value(json_object_get(fingerprint, "sockets"));
	const char *separator = "";
	if (sockets > 1)
		buffer_format(out, "%.0f x ", sockets);
	for (size_t i = 0; i < COUNT(fingerprint_members); i++) {
		const struct fingerprint_member *const member = &fingerprint_members[i];
		const json_t *const value = json_object_get(fingerprint, member->name);
		const char *const text = json_string_value(value);
		if (strcmp(member->name, "sockets") == 0)
			continue;
		if (strcmp(member->name, "gpus") == 0 && text && strcmp(text, "none") == 0) {
			buffer_format(out, "%sno GPU", separator);
			continue;
		}
		if (strcmp(member->name, "virtual") == 0) {
			if (text && strcmp(text, "yes") == 0)
				buffer_format(out, "%svirtual machine", separator);
			continue;
		}
		buffer_text(out, separator);
		if (!value || json_is_null(value))
			buffer_format(out, "%s ", member->name);
		member_words(member, value, out);
		if (strcmp(member->name, "cores") == 0 && json_is_number(value))
			buffer_text(out, json_number_value(value) == 1 ? " core" : " cores");
		separator = ", ";
	}
}
