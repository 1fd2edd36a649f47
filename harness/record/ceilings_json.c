/* Tables of members, as for measurements: what is written and what is read cannot differ. */
#include "harness/record/ceilings_json.h"

#include "harness/base/clock.h"
#include "harness/record/fields.h"
#include "harness/record/older_facts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
/* A member of a range that is a member, under a name of its own. */
#define PART(type, member, part, name, kind)                                                      \
	{                                                                                         \
		name, kind, offsetof(struct type, member) + offsetof(struct ceiling_range, part), \
			sizeof(((struct ceiling_range *)0)->part)                                 \
	}
#define RANGE(type, member, prefix)                                    \
	PART(type, member, low, #prefix "_low", FIELD_REAL),           \
		PART(type, member, high, #prefix "_high", FIELD_REAL), \
		PART(type, member, repeats, #prefix "_repeats", FIELD_UINT32)
#define OWN_RANGE(type)                                                                         \
	PART(type, range, low, "low", FIELD_REAL), PART(type, range, high, "high", FIELD_REAL), \
		PART(type, range, repeats, "repeats", FIELD_UINT32)

static const struct field head_fields[] = {
	FIELD(ceilings, measured_at, FIELD_REAL),
	FIELD(ceilings, node, FIELD_TEXT),
	FIELD(ceilings, host, FIELD_TEXT),
	FIELD(ceilings, cpu, FIELD_TEXT),
	FIELD(ceilings, kernel, FIELD_TEXT),
	FIELD(ceilings, cores, FIELD_UINT32),
	FIELD(ceilings, storage, FIELD_TEXT),
	FIELD(ceilings, quick, FIELD_BOOLEAN),
	FIELD(ceilings, interrupted, FIELD_BOOLEAN),
	FIELD(ceilings, seconds, FIELD_REAL),
	FIELD(ceilings, engine, FIELD_TEXT),
	FIELD(ceilings, reads_block, FIELD_BOOLEAN),
	FIELD(ceilings, scratch_bytes, FIELD_REAL),
	FIELD(ceilings, file_bytes, FIELD_REAL),
	FIELD(ceilings, decode_what, FIELD_TEXT),
	FIELD(ceilings, decode_one_core, FIELD_REAL),
	FIELD(ceilings, decode_all_cores, FIELD_REAL),
	FIELD(ceilings, cpu_scaling, FIELD_REAL),
	FIELD(ceilings, memory_bytes_per_s_one, FIELD_REAL),
	RANGE(ceilings, memory_range_one, memory_one),
	FIELD(ceilings, memory_bytes_per_s_all, FIELD_REAL),
	RANGE(ceilings, memory_range_all, memory_all),
	FIELD(ceilings, copy_bytes_per_s, FIELD_REAL),
	RANGE(ceilings, copy_range, copy),
	FIELD(ceilings, memory_array_bytes, FIELD_REAL),
	FIELD(ceilings, cache_bytes, FIELD_REAL),
	FIELD(ceilings, model, FIELD_TEXT),
	FIELD(ceilings, batch, FIELD_UINT32),
	FIELD(ceilings, lock_handoff_ns, FIELD_REAL),
	RANGE(ceilings, lock_range, lock_handoff),
	FIELD(ceilings, clock_read_ns, FIELD_REAL),
	RANGE(ceilings, clock_range, clock_read),
	FIELD(ceilings, cpu_clock_read_ns, FIELD_REAL),
	RANGE(ceilings, cpu_clock_range, cpu_clock_read),
	FIELD(ceilings, oversleep_ns, FIELD_REAL),
	RANGE(ceilings, oversleep_range, oversleep),
	FIELD(ceilings, oversleep_p99_ns, FIELD_REAL),
	FIELD(ceilings, gpu, FIELD_TEXT),
};

static const struct field device_fields[] = {
	FIELD(device_ceiling, index, FIELD_UINT32),
	FIELD(device_ceiling, count, FIELD_UINT32),
	FIELD(device_ceiling, name, FIELD_TEXT),
	FIELD(device_ceiling, capability, FIELD_TEXT),
	FIELD(device_ceiling, versions, FIELD_TEXT),
	FIELD(device_ceiling, test_double, FIELD_BOOLEAN),
	FIELD(device_ceiling, memory_bytes, FIELD_REAL),
	FIELD(device_ceiling, cache_bytes, FIELD_REAL),
	FIELD(device_ceiling, seconds, FIELD_REAL),
	FIELD(device_ceiling, memory_bytes_per_s, FIELD_REAL),
	RANGE(device_ceiling, memory_range, memory),
	FIELD(device_ceiling, launch_ns, FIELD_REAL),
	RANGE(device_ceiling, launch_range, launch),
	FIELD(device_ceiling, kernel_ns, FIELD_REAL),
	RANGE(device_ceiling, kernel_range, kernel),
	FIELD(device_ceiling, graph_kernel_ns, FIELD_REAL),
	RANGE(device_ceiling, graph_kernel_range, graph_kernel),
	FIELD(device_ceiling, round_trip_ns, FIELD_REAL),
	RANGE(device_ceiling, round_trip_range, round_trip),
};

static const struct field copy_fields[] = {
	FIELD(copy_ceiling, to_device, FIELD_BOOLEAN),
	FIELD(copy_ceiling, pinned, FIELD_BOOLEAN),
	FIELD(copy_ceiling, bytes, FIELD_REAL),
	FIELD(copy_ceiling, bytes_per_s, FIELD_REAL),
	OWN_RANGE(copy_ceiling),
};

static const struct field device_gemm_fields[] = {
	FIELD(device_gemm_ceiling, name, FIELD_TEXT),
	FIELD(device_gemm_ceiling, precision, FIELD_TEXT),
	FIELD(device_gemm_ceiling, m, FIELD_UINT64),
	FIELD(device_gemm_ceiling, n, FIELD_UINT64),
	FIELD(device_gemm_ceiling, k, FIELD_UINT64),
	FIELD(device_gemm_ceiling, is_best, FIELD_BOOLEAN),
	FIELD(device_gemm_ceiling, flops, FIELD_REAL),
	OWN_RANGE(device_gemm_ceiling),
	FIELD(device_gemm_ceiling, efficiency, FIELD_REAL),
};

static const struct field read_fields[] = {
	FIELD(read_ceiling, direct, FIELD_BOOLEAN),
	FIELD(read_ceiling, cold, FIELD_BOOLEAN),
	FIELD(read_ceiling, depth, FIELD_UINT32),
	FIELD(read_ceiling, request_bytes, FIELD_REAL),
	FIELD(read_ceiling, bytes_per_s, FIELD_REAL),
	FIELD(read_ceiling, requests_per_s, FIELD_REAL),
	FIELD(read_ceiling, latency_ns, FIELD_REAL),
	OWN_RANGE(read_ceiling),
};

static const struct field decode_fields[] = {
	FIELD(core_ceiling, cores, FIELD_UINT32),
	FIELD(core_ceiling, samples_per_s, FIELD_REAL),
	OWN_RANGE(core_ceiling),
};

static const struct field gemm_fields[] = {
	FIELD(gemm_ceiling, name, FIELD_TEXT),
	FIELD(gemm_ceiling, m, FIELD_UINT64),
	FIELD(gemm_ceiling, n, FIELD_UINT64),
	FIELD(gemm_ceiling, k, FIELD_UINT64),
	FIELD(gemm_ceiling, threads, FIELD_UINT32),
	FIELD(gemm_ceiling, is_best, FIELD_BOOLEAN),
	FIELD(gemm_ceiling, flops, FIELD_REAL),
	OWN_RANGE(gemm_ceiling),
	FIELD(gemm_ceiling, efficiency, FIELD_REAL),
	FIELD(gemm_ceiling, share, FIELD_REAL),
};

/* A list inside a structure: an array of structures and how many of it are in use. */
struct list {
	const char *name;
	const struct field *fields;
	size_t field_count, offset, entry_bytes, most, count_offset;
};

#define LIST(type, name, table, member, count, most)                                              \
	{                                                                                         \
		name, table, COUNT(table), offsetof(struct type, member),                         \
			sizeof(((struct type *)0)->member[0]), most, offsetof(struct type, count) \
	}

static const struct list lists[] = {
	LIST(ceilings, "reads", read_fields, reads, read_count, CEILING_READS_MAX),
	LIST(ceilings, "decode", decode_fields, decode, decode_count, CEILING_CORES_MAX),
	LIST(ceilings, "gemms", gemm_fields, gemms, gemm_count, CEILING_GEMMS_MAX),
};

static const struct list device_lists[] = {
	LIST(device_ceiling, "copies", copy_fields, copies, copy_count, CEILING_COPIES_MAX),
	LIST(device_ceiling, "gemms", device_gemm_fields, gemms, gemm_count, CEILING_GEMMS_MAX),
};

static size_t *count_of(const struct list *list, void *owner)
{
	return (size_t *)(void *)((char *)owner + list->count_offset);
}

static json_t *list_to_json(const struct list *list, const void *owner)
{
	const char *entries = (const char *)owner + list->offset;
	const size_t *count =
		(const size_t *)(const void *)((const char *)owner + list->count_offset);
	json_t *array = json_array();
	int bad = array ? 0 : -ENOMEM;
	for (size_t i = 0; i < *count && !bad; i++) {
		json_t *object = json_object();
		bad = fields_encode(
			object, list->fields, list->field_count, entries + i * list->entry_bytes);
		bad |= json_array_append_new(array, object);
	}
	if (!bad)
		return array;
	json_decref(array);
	return NULL;
}

static json_t *lines_to_json(const char (*lines)[NOTE_BYTES], size_t count)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		if (json_array_append_new(array, fields_text(lines[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *device_to_json(const struct ceilings *ceilings)
{
	if (!ceilings->has_device)
		return json_null();
	json_t *object = json_object();
	int bad = fields_encode(object, device_fields, COUNT(device_fields), &ceilings->device);
	for (size_t i = 0; i < COUNT(device_lists); i++)
		bad |= json_object_set_new(object, device_lists[i].name,
			list_to_json(&device_lists[i], &ceilings->device));
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

json_t *ceilings_to_json(const struct ceilings *ceilings, double now)
{
	char when[CLOCK_UTC_BYTES] = "";
	json_t *object = json_object();
	if (isfinite(ceilings->measured_at))
		clock_format_utc(ceilings->measured_at, when);
	int bad = json_object_set_new(object, "schema", json_string(CEILINGS_SCHEMA));
	bad |= json_object_set_new(object, "measured", json_string(when));
	bad |= json_object_set_new(object, "age_s", fields_number(now - ceilings->measured_at));
	bad |= fields_encode(object, head_fields, COUNT(head_fields), ceilings);
	for (size_t i = 0; i < COUNT(lists); i++)
		bad |= json_object_set_new(
			object, lists[i].name, list_to_json(&lists[i], ceilings));
	bad |= json_object_set_new(object, "device", device_to_json(ceilings));
	bad |= json_object_set_new(
		object, "missing", lines_to_json(ceilings->missing, ceilings->missing_count));
	bad |= json_object_set_new(
		object, "notes", lines_to_json(ceilings->notes, ceilings->note_count));
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static int list_from_json(
	const struct list *list, const json_t *array, void *owner, struct error *err)
{
	char *entries = (char *)owner + list->offset;
	if (!json_is_array(array) || json_array_size(array) > list->most)
		return error_set(
			err, -EINVAL, "'%s' is no list of at most %zu", list->name, list->most);
	size_t i;
	const json_t *object;
	int code = 0;
	json_array_foreach(array, i, object)
	{
		if (!code)
			code = fields_decode(object, list->fields, list->field_count,
				entries + i * list->entry_bytes, err);
	}
	*count_of(list, owner) = code ? 0 : json_array_size(array);
	return code ? error_prefix(err, code, "%s", list->name) : 0;
}

static int lines_from_json(
	const json_t *array, char (*lines)[NOTE_BYTES], size_t *count, struct error *err)
{
	if (!json_is_array(array) || json_array_size(array) > NOTES_MAX)
		return error_set(err, -EINVAL, "no list of at most %d lines", NOTES_MAX);
	size_t i;
	const json_t *line;
	json_array_foreach(array, i, line)
	{
		const char *text = json_string_value(line);
		(void)snprintf(lines[i], NOTE_BYTES, "%s", text ? text : "");
	}
	*count = json_array_size(array);
	return 0;
}

/* Absent in data sheets of nodes without one, and in older ones. */
static int device_from_json(struct ceilings *ceilings, const json_t *object, struct error *err)
{
	if (!object || json_is_null(object))
		return 0;
	if (!json_is_object(object))
		return error_set(err, -EINVAL, "'device' is no object");
	struct device_ceiling *device = &ceilings->device;
	int code = fields_decode(object, device_fields, COUNT(device_fields), device, err);
	for (size_t i = 0; i < COUNT(device_lists) && !code; i++)
		code = list_from_json(&device_lists[i],
			json_object_get(object, device_lists[i].name), device, err);
	ceilings->has_device = code == 0;
	return code ? error_prefix(err, code, "device") : 0;
}

int ceilings_from_json(struct ceilings *ceilings, const json_t *object, struct error *err)
{
	const char *schema = json_string_value(json_object_get(object, "schema"));
	ceilings_init(ceilings);
	if (!schema || strcmp(schema, CEILINGS_SCHEMA) != 0)
		return error_set(err, -EINVAL, "schema '%s' is not '%s'",
			schema ? schema : "(none)", CEILINGS_SCHEMA);
	int code = fields_decode(object, head_fields, COUNT(head_fields), ceilings, err);
	for (size_t i = 0; i < COUNT(lists) && !code; i++)
		code = list_from_json(
			&lists[i], json_object_get(object, lists[i].name), ceilings, err);
	if (!json_object_get(object, "reads_block"))
		ceilings->reads_block = older_reads_block(ceilings->engine);
	if (!code)
		code = device_from_json(ceilings, json_object_get(object, "device"), err);
	if (!code)
		code = lines_from_json(json_object_get(object, "missing"), ceilings->missing,
			&ceilings->missing_count, err);
	return code ? code
		    : lines_from_json(json_object_get(object, "notes"), ceilings->notes,
			      &ceilings->note_count, err);
}
