/* Repetitions as JSON.  One table of members per structure serves both directions. */
#include "harness/record/measurement_json.h"

#include "harness/record/devices_json.h"
#include "harness/record/fields.h"
#include "harness/record/windows_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHECKSUM_BYTES = 20,
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct field measurement_fields[] = {
	FIELD(measurement, point, FIELD_UINT32),
	FIELD(measurement, repeat, FIELD_UINT32),
	FIELD(measurement, started, FIELD_REAL),
	FIELD(measurement, error, FIELD_TEXT),
	FIELD(measurement, wall_seconds, FIELD_REAL),
	FIELD(measurement, cut_seconds, FIELD_REAL),
	FIELD(measurement, warmup_seconds, FIELD_REAL),
	FIELD(measurement, measured_seconds, FIELD_REAL),
	FIELD(measurement, samples, FIELD_UINT64),
	FIELD(measurement, batches, FIELD_UINT64),
	FIELD(measurement, bad_samples, FIELD_UINT64),
	FIELD(measurement, bad_share, FIELD_REAL),
	FIELD(measurement, throughput, FIELD_REAL),
	FIELD(measurement, epochs, FIELD_UINT64),
	FIELD(measurement, step_utilisation, FIELD_REAL),
	FIELD(measurement, step_wait_share, FIELD_REAL),
	FIELD(measurement, oversleep_mean_ns, FIELD_REAL),
	FIELD(measurement, oversleep_max_ns, FIELD_REAL),
	FIELD(measurement, loss_first, FIELD_REAL),
	FIELD(measurement, loss_last, FIELD_REAL),
	FIELD(measurement, bytes_read, FIELD_UINT64),
	FIELD(measurement, bytes_read_per_s, FIELD_REAL),
	FIELD(measurement, disk_bytes_per_s, FIELD_REAL),
	FIELD(measurement, page_cache_share, FIELD_REAL),
	FIELD(measurement, resident_before, FIELD_REAL),
	FIELD(measurement, rss_peak_bytes, FIELD_UINT64),
	FIELD(measurement, rss_growth_bytes, FIELD_UINT64),
	FIELD(measurement, pool_bytes, FIELD_UINT64),
	FIELD(measurement, accounted, FIELD_REAL),
	FIELD(measurement, cpu_seconds, FIELD_REAL),
	FIELD(measurement, cores_busy_outside, FIELD_REAL),
	FIELD(measurement, quota_group, FIELD_TEXT),
	FIELD(measurement, quota_cores, FIELD_REAL),
	FIELD(measurement, throttled_share, FIELD_REAL),
	FIELD(measurement, throttled_seconds, FIELD_REAL),
	FIELD(measurement, steal_share, FIELD_REAL),
	FIELD(measurement, engine, FIELD_TEXT),
	FIELD(measurement, dataset_samples, FIELD_UINT64),
	FIELD(measurement, file_bytes_mean, FIELD_REAL),
	FIELD(measurement, has_checksum, FIELD_BOOLEAN),
	FIELD(measurement, window_seconds, FIELD_REAL),
};

static const struct field facts_fields[] = {
	FIELD(workload_facts, reads_memory, FIELD_BOOLEAN),
	FIELD(workload_facts, reads_block, FIELD_BOOLEAN),
	FIELD(workload_facts, step_null, FIELD_BOOLEAN),
	FIELD(workload_facts, step_emulated, FIELD_BOOLEAN),
	FIELD(workload_facts, step_on_cores, FIELD_BOOLEAN),
	FIELD(workload_facts, step_has_memory, FIELD_BOOLEAN),
};

static const struct field stage_fields[] = {
	FIELD(stage_measurement, name, FIELD_TEXT),
	FIELD(stage_measurement, workers, FIELD_UINT32),
	FIELD(stage_measurement, per_batch, FIELD_BOOLEAN),
	FIELD(stage_measurement, device, FIELD_BOOLEAN),
	FIELD(stage_measurement, items, FIELD_UINT64),
	FIELD(stage_measurement, cpu_seconds, FIELD_REAL),
	FIELD(stage_measurement, run_queue_seconds, FIELD_REAL),
	FIELD(stage_measurement, io_wait_seconds, FIELD_REAL),
	FIELD(stage_measurement, lock_wait_seconds, FIELD_REAL),
	FIELD(stage_measurement, lock_held_seconds, FIELD_REAL),
	FIELD(stage_measurement, capacity, FIELD_REAL),
	FIELD(stage_measurement, capacity_is_lower_bound, FIELD_BOOLEAN),
};

static const struct field queue_fields[] = {
	FIELD(queue_measurement, name, FIELD_TEXT),
	FIELD(queue_measurement, capacity, FIELD_UINT32),
	FIELD(queue_measurement, mean_depth, FIELD_REAL),
	FIELD(queue_measurement, empty_share, FIELD_REAL),
	FIELD(queue_measurement, full_share, FIELD_REAL),
};

static const struct field read_point_fields[] = {
	FIELD(read_point, depth, FIELD_UINT32),
	FIELD(read_point, seconds, FIELD_REAL),
	FIELD(read_point, files, FIELD_UINT64),
	FIELD(read_point, bytes, FIELD_UINT64),
	FIELD(read_point, latency_mean_ns, FIELD_REAL),
	FIELD(read_point, latency_deviation_ns, FIELD_REAL),
	FIELD(read_point, rate_error, FIELD_REAL),
	FIELD(read_point, blocked_share, FIELD_REAL),
};

static const struct field store_fields[] = {
	FIELD(store_measurement, device, FIELD_TEXT),
	FIELD(store_measurement, why, FIELD_TEXT),
	FIELD(store_measurement, reads_per_s, FIELD_REAL),
	FIELD(store_measurement, bytes_per_s, FIELD_REAL),
	FIELD(store_measurement, read_ns, FIELD_REAL),
	FIELD(store_measurement, busy_share, FIELD_REAL),
	FIELD(store_measurement, bytes_group, FIELD_TEXT),
	FIELD(store_measurement, bytes_limit, FIELD_REAL),
	FIELD(store_measurement, bytes_used, FIELD_REAL),
	FIELD(store_measurement, requests_group, FIELD_TEXT),
	FIELD(store_measurement, requests_limit, FIELD_REAL),
	FIELD(store_measurement, requests_used, FIELD_REAL),
};

static const struct field histogram_fields[] = {
	FIELD(histogram, count, FIELD_UINT64),
	FIELD(histogram, sum_ns, FIELD_UINT64),
	FIELD(histogram, max_ns, FIELD_UINT64),
};

static const char *const status_names[] = {"ok", "unsteady", "failed", "interrupted"};

static int append_integer(json_t *array, uint64_t value)
{
	return json_array_append_new(array, json_integer((json_int_t)value));
}

static int append_number(json_t *array, double value)
{
	return json_array_append_new(array, fields_number(value));
}

static json_t *histogram_to_json(const struct histogram *h)
{
	json_t *object = json_object();
	json_t *buckets = json_array();
	int bad = fields_encode(object, histogram_fields, COUNT(histogram_fields), h);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (h->buckets[i] == 0)
			continue;
		json_t *pair = json_array();
		bad |= append_integer(pair, i) | append_integer(pair, h->buckets[i]);
		bad |= json_array_append_new(buckets, pair);
	}
	bad |= json_object_set_new(object, "buckets", buckets);
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static int histogram_from_json(struct histogram *h, const json_t *object, struct error *err)
{
	const int code = fields_decode(object, histogram_fields, COUNT(histogram_fields), h, err);
	if (code)
		return code;
	const json_t *buckets = json_object_get(object, "buckets");
	size_t i;
	const json_t *pair;
	json_array_foreach(buckets, i, pair)
	{
		const json_int_t index = json_integer_value(json_array_get(pair, 0));
		const json_int_t count = json_integer_value(json_array_get(pair, 1));
		if (index < 0 || index >= HISTOGRAM_BUCKETS || count < 0 || count > UINT32_MAX)
			return error_set(err, -EINVAL, "a histogram has a bucket that cannot be");
		h->buckets[index] = (uint32_t)count;
	}
	return 0;
}

int measurement_json_put_role(json_t *object, const char *role)
{
	return json_object_set_new(object, "role", json_string(role));
}

void measurement_json_take_role(const json_t *object, char *role, size_t room)
{
	const char *text = json_string_value(json_object_get(object, "role"));
	if (text)
		(void)snprintf(role, room, "%s", text);
}

static json_t *stage_to_json(const struct stage_measurement *stage)
{
	json_t *object = json_object();
	json_t *seconds = json_array();
	int bad = fields_encode(object, stage_fields, COUNT(stage_fields), stage);
	bad |= measurement_json_put_role(object, stage->name);
	for (int state = 0; state < THREAD_STATES; state++)
		bad |= append_number(seconds, stage->seconds[state]);
	bad |= json_object_set_new(object, "seconds", seconds);
	bad |= json_object_set_new(object, "service", histogram_to_json(&stage->service));
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static int stage_from_json(struct stage_measurement *stage, const json_t *object, struct error *err)
{
	const int code = fields_decode(object, stage_fields, COUNT(stage_fields), stage, err);
	if (code)
		return code;
	measurement_json_take_role(object, stage->name, sizeof stage->name);
	const json_t *seconds = json_object_get(object, "seconds");
	for (size_t state = 0; state < THREAD_STATES; state++)
		stage->seconds[state] = fields_real(json_array_get(seconds, state));
	return histogram_from_json(&stage->service, json_object_get(object, "service"), err);
}

static json_t *stages_to_json(const struct measurement *m)
{
	json_t *array = json_array();
	for (size_t i = 0; i < m->stage_count; i++)
		if (json_array_append_new(array, stage_to_json(&m->stages[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *queues_to_json(const struct measurement *m)
{
	json_t *array = json_array();
	for (size_t i = 0; i < m->queue_count; i++) {
		json_t *object = json_object();
		const int code =
			fields_encode(object, queue_fields, COUNT(queue_fields), &m->queues[i]);
		if (code || json_array_append_new(array, object) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *read_points_to_json(const struct measurement *m)
{
	json_t *array = json_array();
	for (size_t i = 0; i < m->read_point_count; i++) {
		json_t *object = json_object();
		const int code = fields_encode(
			object, read_point_fields, COUNT(read_point_fields), &m->read_points[i]);
		if (json_array_append_new(array, object) != 0 || code) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *store_to_json(const struct measurement *m)
{
	json_t *object = json_object();
	if (fields_encode(object, store_fields, COUNT(store_fields), &m->store) == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *facts_to_json(const struct measurement *m)
{
	json_t *object = json_object();
	if (fields_encode(object, facts_fields, COUNT(facts_fields), &m->facts) == 0)
		return object;
	json_decref(object);
	return NULL;
}

bool measurement_json_has_facts(const json_t *object)
{
	return json_object_get(object, "facts") != NULL;
}

static json_t *notes_to_json(const struct measurement *m)
{
	json_t *array = json_array();
	for (size_t i = 0; i < m->note_count; i++)
		if (json_array_append_new(array, fields_text(m->notes[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

static json_t *checksum_to_json(const struct measurement *m)
{
	char text[CHECKSUM_BYTES];
	(void)snprintf(text, sizeof text, "%016" PRIx64, m->checksum);
	return m->has_checksum ? json_string(text) : json_null();
}

json_t *measurement_to_json(const struct measurement *m)
{
	json_t *object = json_object();
	if (!object)
		return NULL;
	int bad = json_object_set_new(object, "kind", json_string("repetition"));
	bad |= json_object_set_new(object, "status", json_string(status_names[m->status]));
	bad |= fields_encode(object, measurement_fields, COUNT(measurement_fields), m);
	bad |= json_object_set_new(object, "checksum", checksum_to_json(m));
	bad |= json_object_set_new(object, "facts", facts_to_json(m));
	bad |= json_object_set_new(object, "store", store_to_json(m));
	bad |= json_object_set_new(object, "stages", stages_to_json(m));
	bad |= json_object_set_new(object, "queues", queues_to_json(m));
	if (m->read_point_count > 0)
		bad |= json_object_set_new(object, "read_points", read_points_to_json(m));
	if (m->device_count > 0)
		bad |= json_object_set_new(object, "devices", devices_to_json(m));
	bad |= json_object_set_new(object, "notes", notes_to_json(m));
	bad |= json_object_set_new(object, "window_columns", window_columns_to_json(m));
	bad |= json_object_set_new(object, "windows", windows_to_json(m));
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static int status_from_json(struct measurement *m, const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);
	for (size_t i = 0; text && i < COUNT(status_names); i++)
		if (strcmp(text, status_names[i]) == 0) {
			m->status = (enum measurement_status)i;
			return 0;
		}
	return error_set(err, -EINVAL, "no repetition: 'status' is '%s'", text ? text : "missing");
}

static int parts_from_json(struct measurement *m, const json_t *object, struct error *err)
{
	const json_t *stages = json_object_get(object, "stages");
	const json_t *queues = json_object_get(object, "queues");
	const json_t *points = json_object_get(object, "read_points");
	if (json_array_size(stages) > STAGES_MAX || json_array_size(queues) > QUEUES_MAX ||
		json_array_size(points) > READ_POINTS_MAX)
		return error_set(
			err, -EINVAL, "more stages, queues or read points than this version knows");
	m->read_point_count = json_array_size(points);
	m->stage_count = json_array_size(stages);
	m->queue_count = json_array_size(queues);
	int code = 0;
	for (size_t i = 0; i < m->stage_count && !code; i++)
		code = stage_from_json(&m->stages[i], json_array_get(stages, i), err);
	for (size_t i = 0; i < m->queue_count && !code; i++)
		code = fields_decode(json_array_get(queues, i), queue_fields, COUNT(queue_fields),
			&m->queues[i], err);
	for (size_t i = 0; i < m->read_point_count && !code; i++)
		code = fields_decode(json_array_get(points, i), read_point_fields,
			COUNT(read_point_fields), &m->read_points[i], err);
	return code;
}

static int store_from_json(struct measurement *m, const json_t *object, struct error *err)
{
	store_measurement_init(&m->store, "an older result");
	return object ? fields_decode(object, store_fields, COUNT(store_fields), &m->store, err)
		      : 0;
}

static void notes_from_json(struct measurement *m, const json_t *notes)
{
	size_t i;
	const json_t *note;
	json_array_foreach(notes, i, note)
	{
		if (m->note_count == NOTES_MAX)
			break;
		const char *text = json_string_value(note);
		(void)snprintf(m->notes[m->note_count++], NOTE_BYTES, "%s", text ? text : "");
	}
}

int measurement_from_json(struct measurement *m, const json_t *object, struct error *err)
{
	memset(m, 0, sizeof *m);
	int code = status_from_json(m, json_object_get(object, "status"), err);
	if (!code && !json_is_integer(json_object_get(object, "point")))
		code = error_set(err, -EINVAL, "no repetition: 'point' is missing");
	if (!code)
		code = fields_decode(object, measurement_fields, COUNT(measurement_fields), m, err);
	if (!code)
		code = parts_from_json(m, object, err);
	if (!code)
		code = fields_decode(json_object_get(object, "facts"), facts_fields,
			COUNT(facts_fields), &m->facts, err);
	if (!code)
		code = store_from_json(m, json_object_get(object, "store"), err);
	if (!code)
		code = devices_from_json(m, json_object_get(object, "devices"), err);
	if (code)
		return code;
	const char *checksum = json_string_value(json_object_get(object, "checksum"));
	if (checksum)
		m->checksum = strtoull(checksum, NULL, 16);
	notes_from_json(m, json_object_get(object, "notes"));
	return windows_from_json(m, object, err);
}
