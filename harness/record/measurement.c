/* A repetition: what it owns, its notes, and as JSON.  One table of members per structure serves both directions. */
#include "harness/record/measurement.h"

#include "harness/base/array.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the stages ------------------------------------------------------------------------------- */

/* The stages' names. */

const char *const stage_names[STAGE_NAMES] = {
	[STAGE_READ] = STAGE_READ_NAME,
	[STAGE_DECODE] = STAGE_DECODE_NAME,
	[STAGE_UPLOAD] = STAGE_UPLOAD_NAME,
	[STAGE_STEP] = STAGE_STEP_NAME,
	[STAGE_SYNC] = STAGE_SYNC_NAME,
	[STAGE_CHECKPOINT] = STAGE_CHECKPOINT_NAME,
	[STAGE_EVALUATE] = STAGE_EVALUATE_NAME,
	[STAGE_PREFETCH] = STAGE_PREFETCH_NAME,
	[STAGE_MEMORY] = STAGE_MEMORY_NAME,
};

/* --- a repetition ----------------------------------------------------------------------------- */

const char *const thread_state_names[THREAD_STATES] = {"starved", "working", "blocked"};

void measurement_release(struct measurement *m)
{
	free(m->windows);
	m->windows = NULL;
	m->window_count = 0;
}

double measurement_counted_seconds(const struct measurement *m)
{
	double longest = 0;
	for (size_t i = 0; i < m->stage_count; i++) {
		const struct stage_measurement *stage = &m->stages[i];
		const double all = stage->seconds[THREAD_STARVED] + stage->seconds[THREAD_WORKING] +
				   stage->seconds[THREAD_BLOCKED];
		if (!stage->device && stage->workers > 0)
			longest = fmax(longest, all / stage->workers);
	}
	return longest > 0 ? longest : m->measured_seconds;
}

double measurement_reads(const struct measurement *m)
{
	const struct stage_measurement *const read = measurement_stage(m, STAGE_READ);
	if (m->facts.reads_large)
		return (double)m->read_requests;
	return read ? (double)read->items : 0;
}

double measurement_read_bytes(const struct measurement *m)
{
	if (!m->facts.reads_large)
		return m->file_bytes_mean;
	return m->read_requests > 0 ? (double)m->bytes_read / (double)m->read_requests : NAN;
}

bool measurement_read_point(const struct measurement *m, struct read_point *out)
{
	const struct stage_measurement *read = measurement_stage(m, STAGE_READ);
	const double seconds = measurement_counted_seconds(m);
	const double files = measurement_reads(m);
	if (!read || read->service.count == 0 || !(seconds > 0) || !(files >= 1))
		return false;
	const double latency_ns = histogram_mean(&read->service);
	const double spread_ns = (histogram_quantile(&read->service, 0.84) -
					 histogram_quantile(&read->service, 0.16)) /
				 2;
	*out = (struct read_point){.depth = (uint32_t)lround(files / seconds * latency_ns * 1e-9),
		.seconds = seconds,
		.files = (uint64_t)files,
		.bytes = m->bytes_read,
		.latency_mean_ns = latency_ns,
		.latency_deviation_ns = spread_ns,
		.rate_error = NAN,
		.blocked_share = read->workers > 0
					 ? read->seconds[THREAD_BLOCKED] / (seconds * read->workers)
					 : (double)NAN};
	return true;
}

bool measurement_stage_point(const struct measurement *m, const char *stage, struct read_point *out)
{
	const size_t at = measurement_stage_at(m, stage);
	if (at == m->stage_count || !(m->throughput > 0) || m->samples == 0)
		return false;
	const struct histogram *service = &m->stages[at].service;
	const double spread =
		(histogram_quantile(service, 0.84) - histogram_quantile(service, 0.16)) / 2;
	*out = (struct read_point){.seconds = (double)m->samples / m->throughput,
		.files = m->samples,
		.bytes = m->bytes_read,
		.latency_mean_ns = NAN,
		.latency_deviation_ns = NAN,
		.rate_error = service->count > 0 ? spread / histogram_mean(service) /
							   sqrt((double)service->count)
						 : (double)NAN,
		.blocked_share = NAN};
	return true;
}

bool measurement_cold_ended(double after_cold, double page_cache_share, char out[COLD_ENDED_BYTES])
{
	static const double hardly = 0.01, all = 0.995;
	char share[UNITS_BYTES];
	char cached[UNITS_BYTES];
	out[0] = '\0';
	if (!(after_cold > 0) || page_cache_share < hardly)
		return false;
	(void)units_format_share(1 - after_cold, share);
	(void)units_format_share(page_cache_share, cached);
	(void)snprintf(out, COLD_ENDED_BYTES,
		"read.cache = cold ended with the first epoch, %s%s; %s%s. For a cold measurement use more samples, a shorter "
		"measure.duration or read.direct = on",
		after_cold < 1 ? share : "before the measurement",
		after_cold < 1 ? " of the measured samples" : "",
		isnan(page_cache_share)   ? "how much came from memory is unknown"
		: page_cache_share >= all ? "all that was measured came from memory"
					  : cached,
		page_cache_share < all ? " of the measured bytes came from memory" : "");
	return true;
}

void measurement_note(struct measurement *m, const char *format, ...)
{
	if (m->note_count >= NOTES_MAX)
		return;
	char *note = m->notes[m->note_count];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(note, NOTE_BYTES, format, args);
	va_end(args);
	/* The same thing is said once. */
	for (size_t i = 0; i < m->note_count; i++)
		if (strcmp(m->notes[i], note) == 0)
			return;
	m->note_count++;
}

size_t measurement_stage_at(const struct measurement *m, const char *name)
{
	size_t i = 0;
	while (i < m->stage_count && strcmp(m->stages[i].name, name) != 0)
		i++;
	return i;
}

const struct stage_measurement *measurement_stage_named(
	const struct measurement *m, const char *name)
{
	const size_t at = measurement_stage_at(m, name);
	return at < m->stage_count ? &m->stages[at] : NULL;
}

const struct stage_measurement *measurement_stage(const struct measurement *m, enum stage_id id)
{
	return measurement_stage_named(m, stage_name(id));
}

/* --- calls to a server of files --------------------------------------------------------------- */

static double network_sum(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : a + b;
}

static double network_mean(double a, double calls_a, double b, double calls_b)
{
	const double calls = calls_a + calls_b;
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	return calls > 0 ? (a * calls_a + b * calls_b) / calls : NAN;
}

void network_add_call(struct network_measurement *network, const struct network_call *call)
{
	size_t at = 0;
	while (at < network->call_count && strcmp(network->calls[at].name, call->name) != 0)
		at++;
	if (at == NETWORK_CALLS_MAX) {
		at--;
		(void)snprintf(network->calls[at].name, NAME_BYTES, "others");
	} else if (at == network->call_count) {
		network->calls[network->call_count++] = *call;
		return;
	}
	struct network_call *const sum = &network->calls[at];
	sum->queue_ns = network_mean(sum->queue_ns, sum->calls, call->queue_ns, call->calls);
	sum->round_trip_ns =
		network_mean(sum->round_trip_ns, sum->calls, call->round_trip_ns, call->calls);
	sum->execute_ns = network_mean(sum->execute_ns, sum->calls, call->execute_ns, call->calls);
	sum->calls = network_sum(sum->calls, call->calls);
	sum->retransmits = network_sum(sum->retransmits, call->retransmits);
	sum->bytes_sent = network_sum(sum->bytes_sent, call->bytes_sent);
	sum->bytes_received = network_sum(sum->bytes_received, call->bytes_received);
}

/* --- its parts, as JSON ----------------------------------------------------------------------- */

static const struct field facts_fields[] = {
	FIELD(workload_facts, reads_memory, FIELD_BOOLEAN),
	FIELD(workload_facts, reads_block, FIELD_BOOLEAN),
	FIELD(workload_facts, uses_codecs, FIELD_BOOLEAN),
	FIELD(workload_facts, reads_large, FIELD_BOOLEAN),
	FIELD(workload_facts, step_null, FIELD_BOOLEAN),
	FIELD(workload_facts, step_emulated, FIELD_BOOLEAN),
	FIELD(workload_facts, step_on_cores, FIELD_BOOLEAN),
	FIELD(workload_facts, step_has_memory, FIELD_BOOLEAN),
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

static const struct field network_call_fields[] = {
	FIELD(network_call, name, FIELD_TEXT),
	FIELD(network_call, calls, FIELD_REAL),
	FIELD(network_call, retransmits, FIELD_REAL),
	FIELD(network_call, queue_ns, FIELD_REAL),
	FIELD(network_call, round_trip_ns, FIELD_REAL),
	FIELD(network_call, execute_ns, FIELD_REAL),
	FIELD(network_call, bytes_sent, FIELD_REAL),
	FIELD(network_call, bytes_received, FIELD_REAL),
};

static const struct field network_fields[] = {
	FIELD(network_measurement, protocol, FIELD_TEXT),
	FIELD(network_measurement, client, FIELD_TEXT),
	FIELD(network_measurement, server, FIELD_TEXT),
	FIELD(network_measurement, why, FIELD_TEXT),
	FIELD(network_measurement, seconds, FIELD_REAL),
	FIELD(network_measurement, connections, FIELD_UINT32),
	FIELD(network_measurement, request_bytes, FIELD_REAL),
	FIELD(network_measurement, idle_round_trip_ns, FIELD_REAL),
	FIELD(network_measurement, wire_round_trip_ns, FIELD_REAL),
	FIELD(network_measurement, link_bytes_per_s, FIELD_REAL),
	FIELD(network_measurement, receiving_share, FIELD_REAL),
	FIELD(network_measurement, packet_bytes, FIELD_REAL),
	FIELD_ENTRIES(network_measurement, calls, call_count, FIELD_LIST, network_call_fields),
};

static const struct field histogram_fields[] = {
	FIELD(histogram, count, FIELD_UINT64),
	FIELD(histogram, sum_ns, FIELD_UINT64),
	FIELD(histogram, max_ns, FIELD_UINT64),
	FIELD(histogram, buckets, FIELD_SPARSE),
};

static const struct field late_round_fields[] = {
	FIELD(late_round, step, FIELD_UINT64),
	FIELD(late_round, rank, FIELD_UINT32),
	FIELD(late_round, late_ns, FIELD_UINT64),
};

static const struct field ranks_fields[] = {
	FIELD(ranks_measurement, rank, FIELD_UINT32),
	FIELD(ranks_measurement, count, FIELD_UINT32),
	FIELD(ranks_measurement, host, FIELD_TEXT),
	FIELD(ranks_measurement, rounds, FIELD_UINT64),
	FIELD(ranks_measurement, rounds_seconds, FIELD_REAL),
	FIELD(ranks_measurement, bytes, FIELD_UINT64),
	FIELD(ranks_measurement, wait_seconds, FIELD_REAL),
	FIELD(ranks_measurement, exchange_seconds, FIELD_REAL),
	FIELD(ranks_measurement, last_rounds, FIELD_UINT64),
	FIELD(ranks_measurement, late_seconds, FIELD_REAL),
	FIELD_INSIDE(ranks_measurement, lateness, histogram_fields),
	FIELD_ENTRIES(ranks_measurement, worst, worst_count, FIELD_ROWS, late_round_fields),
	FIELD(ranks_measurement, own_seconds, FIELD_REAL),
	FIELD(ranks_measurement, own_hidden_seconds, FIELD_REAL),
	FIELD(ranks_measurement, siblings_cores, FIELD_REAL),
	FIELD(ranks_measurement, crowd, FIELD_UINT32),
	FIELD(ranks_measurement, clock_error_ns, FIELD_REAL),
};

static const struct field checkpoint_fields[] = {
	FIELD(checkpoint_measurement, every, FIELD_UINT32),
	FIELD(checkpoint_measurement, async, FIELD_BOOLEAN),
	FIELD(checkpoint_measurement, direct, FIELD_BOOLEAN),
	FIELD(checkpoint_measurement, verified, FIELD_BOOLEAN),
	FIELD(checkpoint_measurement, outside, FIELD_BOOLEAN),
	FIELD(checkpoint_measurement, count, FIELD_UINT64),
	FIELD(checkpoint_measurement, bytes, FIELD_UINT64),
	FIELD(checkpoint_measurement, stall_seconds, FIELD_REAL),
	FIELD(checkpoint_measurement, stall_max_ns, FIELD_REAL),
	FIELD(checkpoint_measurement, wait_seconds, FIELD_REAL),
	FIELD(checkpoint_measurement, copy_seconds, FIELD_REAL),
	FIELD(checkpoint_measurement, write_seconds, FIELD_REAL),
	FIELD(checkpoint_measurement, sync_seconds, FIELD_REAL),
	FIELD(checkpoint_measurement, rename_seconds, FIELD_REAL),
	FIELD(checkpoint_measurement, verify_seconds, FIELD_REAL),
	FIELD(checkpoint_measurement, copy_bytes_per_s, FIELD_REAL),
	FIELD(checkpoint_measurement, path, FIELD_TEXT),
};

static const struct field evaluation_fields[] = {
	FIELD(evaluation_measurement, every, FIELD_UINT32),
	FIELD(evaluation_measurement, batch_size, FIELD_UINT32),
	FIELD(evaluation_measurement, workers, FIELD_UINT32),
	FIELD(evaluation_measurement, computed, FIELD_BOOLEAN),
	FIELD(evaluation_measurement, outside, FIELD_BOOLEAN),
	FIELD(evaluation_measurement, samples_each, FIELD_UINT64),
	FIELD(evaluation_measurement, count, FIELD_UINT64),
	FIELD(evaluation_measurement, samples, FIELD_UINT64),
	FIELD(evaluation_measurement, bad_samples, FIELD_UINT64),
	FIELD(evaluation_measurement, stall_seconds, FIELD_REAL),
	FIELD(evaluation_measurement, stall_max_ns, FIELD_REAL),
	FIELD(evaluation_measurement, starved_seconds, FIELD_REAL),
	FIELD(evaluation_measurement, working_seconds, FIELD_REAL),
	FIELD(evaluation_measurement, checksum, FIELD_NAME),
	FIELD(evaluation_measurement, path, FIELD_TEXT),
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
	FIELD(stage_measurement, overhead_seconds, FIELD_REAL),
	FIELD(stage_measurement, cores, FIELD_UINT32),
	FIELD(stage_measurement, slowest, FIELD_UINT32),
	FIELD(stage_measurement, slowest_ns, FIELD_REAL),
	FIELD(stage_measurement, others_ns, FIELD_REAL),
	FIELD(stage_measurement, capacity, FIELD_REAL),
	FIELD(stage_measurement, capacity_is_lower_bound, FIELD_BOOLEAN),
	FIELD_ROLE(stage_measurement, name),
	FIELD(stage_measurement, seconds, FIELD_REALS),
	FIELD_INSIDE(stage_measurement, service, histogram_fields),
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

const struct field read_block_fields[READ_BLOCK_FIELDS] = {
	FIELD(read_block, point, FIELD_UINT32),
	FIELD(read_block, round, FIELD_UINT32),
	FIELD(read_block, stage, FIELD_NAME),
	FIELD(read_block, key, FIELD_TEXT),
	FIELD(read_block, value, FIELD_UINT32),
	FIELD(read_block, as_set, FIELD_BOOLEAN),
	FIELD(read_block, part, FIELD_NAME),
	FIELD_INSIDE(read_block, read, read_point_fields),
};

const struct field device_ranges[DEVICE_RANGES] = {
	FIELD(device_measurement, sm_clock_mhz, FIELD_RANGE),
	FIELD(device_measurement, memory_clock_mhz, FIELD_RANGE),
	FIELD(device_measurement, power_w, FIELD_RANGE),
	FIELD(device_measurement, temperature_c, FIELD_RANGE),
	FIELD(device_measurement, memory_used_bytes, FIELD_RANGE),
	FIELD(device_measurement, pcie_to_device_bytes_per_s, FIELD_RANGE),
	FIELD(device_measurement, pcie_from_device_bytes_per_s, FIELD_RANGE),
};

static const struct field throttle_fields[] = {
	FIELD(device_throttle, reason, FIELD_TEXT),
	FIELD(device_throttle, share, FIELD_REAL),
};

const struct field device_throttles_field =
	FIELD_ENTRIES(device_measurement, throttles, throttle_count, FIELD_ROWS, throttle_fields);

static const struct field device_fields[] = {
	FIELD(device_measurement, index, FIELD_UINT32),
	FIELD(device_measurement, name, FIELD_TEXT),
	FIELD(device_measurement, bus, FIELD_TEXT),
	FIELD(device_measurement, precision, FIELD_TEXT),
	FIELD(device_measurement, emulated, FIELD_BOOLEAN),
	FIELD(device_measurement, step_seconds, FIELD_REAL),
	FIELD(device_measurement, upload_seconds, FIELD_REAL),
	FIELD(device_measurement, sync_seconds, FIELD_REAL),
	FIELD(device_measurement, sync_wait_seconds, FIELD_REAL),
	FIELD(device_measurement, sync_hidden_share, FIELD_REAL),
	FIELD(device_measurement, idle_share, FIELD_REAL),
	FIELD(device_measurement, launch_ns, FIELD_REAL),
	FIELD(device_measurement, upload_bytes, FIELD_REAL),
	FIELD(device_measurement, flops_per_step, FIELD_REAL),
	FIELD(device_measurement, achieved_flops, FIELD_REAL),
	FIELD(device_measurement, peak_flops, FIELD_REAL),
	FIELD(device_measurement, model_utilisation, FIELD_REAL),
	FIELD(device_measurement, clock_map_error_ns, FIELD_REAL),
	FIELD(device_measurement, gradient_norm, FIELD_REAL),
	FIELD(device_measurement, nonfinite_share, FIELD_REAL),
	FIELD(device_measurement, activation_mean, FIELD_REAL),
	FIELD(device_measurement, activation_deviation, FIELD_REAL),
	FIELD(device_measurement, deterministic, FIELD_BOOLEAN),
	FIELD(device_measurement, sm_clock_max_mhz, FIELD_REAL),
	FIELD(device_measurement, busy_share, FIELD_REAL),
	FIELD(device_measurement, ecc_corrected, FIELD_REAL),
	FIELD(device_measurement, ecc_uncorrected, FIELD_REAL),
	FIELD(device_measurement, samples, FIELD_REAL),
	FIELD_MORE(device_ranges),
	FIELD_ENTRIES(device_measurement, throttles, throttle_count, FIELD_ROWS, throttle_fields),
};

/* --- windows ---------------------------------------------------------------------------------- */

enum {
	WINDOW_COLUMN_BYTES = 2 * NAME_BYTES,
	WINDOW_COLUMNS_MAX = 20 + STAGES_MAX * (THREAD_STATES + 3) + QUEUES_MAX,
};

/* A column of the rows of windows: a member of struct window, under the name that is written beside the
 * rows.  Rows are read by name, so that those of older files, which have fewer columns, are read too. */
struct window_column {
	char name[WINDOW_COLUMN_BYTES];
	struct field field; /* without a name */
};

struct window_columns {
	struct window_column list[WINDOW_COLUMNS_MAX];
	size_t count;
};

static void add_window_column(struct window_columns *columns, const char *part, const char *name,
	enum field_kind kind, size_t offset)
{
	struct window_column *column = &columns->list[columns->count++];
	column->field = (struct field){.kind = kind, .offset = offset};
	(void)snprintf(column->name, sizeof column->name, "%s%s%s", part, *part ? "." : "", name);
}

static void add_stage_columns(struct window_columns *columns, const char *stage, const size_t i)
{
	for (size_t state = 0; state < THREAD_STATES; state++)
		add_window_column(columns, stage, thread_state_names[state], FIELD_REAL,
			offsetof(struct window, stage_seconds) +
				(i * THREAD_STATES + state) * sizeof(double));
	add_window_column(columns, stage, "cpu", FIELD_REAL,
		offsetof(struct window, stage_cpu) + i * sizeof(double));
	add_window_column(columns, stage, "run_queue", FIELD_REAL,
		offsetof(struct window, stage_run_queue) + i * sizeof(double));
	add_window_column(columns, stage, "allocated", FIELD_UINT64,
		offsetof(struct window, stage_allocated) + i * sizeof(uint64_t));
}

static void window_columns(const struct measurement *m, struct window_columns *columns)
{
	static const struct field fixed[] = {
		FIELD(window, t, FIELD_REAL),
		FIELD(window, samples, FIELD_UINT64),
		FIELD(window, bytes_read, FIELD_UINT64),
		FIELD(window, resident_bytes, FIELD_UINT64),
		FIELD(window, file_bytes, FIELD_UINT64),
		FIELD(window, heap_used_bytes, FIELD_REAL),
		FIELD(window, heap_free_bytes, FIELD_REAL),
		FIELD(window, own_cpu, FIELD_REAL),
		FIELD(window, machine_cpu, FIELD_REAL),
		FIELD(window, machine_steal, FIELD_REAL),
		FIELD(window, machine_time, FIELD_REAL),
	};
	static const struct field quota[] = {
		FIELD(window, quota_cores, FIELD_REAL),
		FIELD(window, quota_used, FIELD_REAL),
		FIELD(window, quota_periods, FIELD_REAL),
		FIELD(window, quota_throttled, FIELD_REAL),
		FIELD(window, throttled_seconds, FIELD_REAL),
	};
	static const struct field device[] = {
		FIELD(window, device_clock_mhz, FIELD_FLOAT),
		FIELD(window, device_power_w, FIELD_FLOAT),
		FIELD(window, device_temperature_c, FIELD_FLOAT),
	};
	columns->count = 0;
	for (size_t i = 0; i < COUNT(fixed); i++)
		add_window_column(columns, "", fixed[i].name, fixed[i].kind, fixed[i].offset);
	for (size_t i = 0; i < COUNT(quota) && m->quota_cores > 0; i++)
		add_window_column(columns, "", quota[i].name, quota[i].kind, quota[i].offset);
	for (size_t i = 0; i < COUNT(device) && m->device_count > 0; i++)
		add_window_column(columns, "", device[i].name, device[i].kind, device[i].offset);
	for (size_t i = 0; i < m->stage_count; i++)
		add_stage_columns(columns, m->stages[i].name, i);
	for (size_t i = 0; i < m->queue_count; i++)
		add_window_column(columns, m->queues[i].name, "depth", FIELD_UINT32,
			offsetof(struct window, queue_depth) + i * sizeof(uint32_t));
}

static json_t *window_columns_to_json(const struct measurement *m)
{
	struct window_columns columns;
	json_t *names = json_array();
	int bad = 0;
	window_columns(m, &columns);
	for (size_t i = 0; i < columns.count; i++)
		bad |= json_array_append_new(names, json_string(columns.list[i].name));
	return fields_whole(names, bad);
}

static json_t *window_to_json(const struct window_columns *columns, const struct window *w)
{
	json_t *row = json_array();
	int bad = 0;
	for (size_t i = 0; i < columns->count; i++)
		bad |= json_array_append_new(row, fields_value(&columns->list[i].field, w));
	return fields_whole(row, bad);
}

static json_t *windows_to_json(const struct measurement *m)
{
	struct window_columns columns;
	json_t *array = json_array();
	int bad = 0;
	window_columns(m, &columns);
	for (size_t i = 0; i < m->window_count && !bad; i++)
		bad = json_array_append_new(array, window_to_json(&columns, &m->windows[i]));
	return fields_whole(array, bad);
}

/* Where a column is in the rows of a file; names_count: it has none of that name. */
static size_t find_window_column(const json_t *names, const char *name)
{
	size_t i;
	const json_t *value;
	json_array_foreach(names, i, value)
	{
		const char *text = json_string_value(value);
		if (text && strcmp(text, name) == 0)
			break;
	}
	return i;
}

static int check_rows(const json_t *names, const json_t *rows, struct error *err)
{
	size_t i;
	const json_t *row;
	if (json_array_size(rows) > WINDOWS_MAX)
		return error_set(err, -EINVAL, "%zu windows; at most %d are possible",
			json_array_size(rows), WINDOWS_MAX);
	json_array_foreach(rows, i, row)
	{
		if (!json_is_array(row) || json_array_size(row) != json_array_size(names))
			return error_set(err, -EINVAL, "window %zu has %zu columns, expected %zu",
				i, json_array_size(row), json_array_size(names));
	}
	return 0;
}

static int windows_from_json(struct measurement *m, const json_t *object, struct error *err)
{
	const json_t *names = json_object_get(object, "window_columns");
	const json_t *rows = json_object_get(object, "windows");
	const int code = check_rows(names, rows, err);
	if (code || json_array_size(rows) == 0)
		return code;
	m->windows = calloc(json_array_size(rows), sizeof *m->windows);
	if (!m->windows)
		return error_set(err, -ENOMEM, "out of memory");
	m->window_count = json_array_size(rows);
	for (size_t i = 0; i < m->window_count; i++) {
		m->windows[i].device_clock_mhz = m->windows[i].device_power_w =
			m->windows[i].device_temperature_c = NAN;
		m->windows[i].quota_cores = m->windows[i].quota_used = NAN;
		m->windows[i].quota_periods = m->windows[i].quota_throttled =
			m->windows[i].throttled_seconds = NAN;
	}
	struct window_columns columns;
	window_columns(m, &columns);
	for (size_t k = 0; k < columns.count; k++) {
		const size_t at = find_window_column(names, columns.list[k].name);
		for (size_t i = 0; i < m->window_count; i++)
			/* What is no number is as if it were missing. */
			(void)fields_set(&columns.list[k].field,
				json_array_get(json_array_get(rows, i), at), &m->windows[i], NULL);
	}
	return 0;
}

/* --- repetitions ------------------------------------------------------------------------------ */

enum {
	CHECKSUM_BYTES = 20,
};

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
	FIELD(measurement, restarts, FIELD_UINT64),
	FIELD(measurement, restart_seconds, FIELD_REAL),
	FIELD(measurement, stood_still_seconds, FIELD_REAL),
	FIELD(measurement, stood_still_at, FIELD_REAL),
	FIELD(measurement, machine_stood_still, FIELD_BOOLEAN),
	FIELD(measurement, step_utilisation, FIELD_REAL),
	FIELD(measurement, accelerator_utilisation, FIELD_REAL),
	FIELD(measurement, step_wait_share, FIELD_REAL),
	FIELD(measurement, oversleep_mean_ns, FIELD_REAL),
	FIELD(measurement, oversleep_max_ns, FIELD_REAL),
	FIELD(measurement, loss_first, FIELD_REAL),
	FIELD(measurement, loss_last, FIELD_REAL),
	FIELD(measurement, flops_per_sample, FIELD_REAL),
	FIELD(measurement, bytes_read, FIELD_UINT64),
	FIELD(measurement, read_requests, FIELD_UINT64),
	FIELD(measurement, storage_files, FIELD_UINT64),
	FIELD(measurement, storage_bytes, FIELD_UINT64),
	FIELD(measurement, bytes_read_per_s, FIELD_REAL),
	FIELD(measurement, disk_bytes_per_s, FIELD_REAL),
	FIELD(measurement, page_cache_share, FIELD_REAL),
	FIELD(measurement, resident_before, FIELD_REAL),
	FIELD(measurement, after_cold, FIELD_REAL),
	FIELD(measurement, rss_peak_bytes, FIELD_UINT64),
	FIELD(measurement, rss_growth_bytes, FIELD_UINT64),
	FIELD(measurement, pool_bytes, FIELD_UINT64),
	FIELD(measurement, accounted, FIELD_REAL),
	FIELD(measurement, cpu_seconds, FIELD_REAL),
	FIELD(measurement, system_seconds, FIELD_REAL),
	FIELD(measurement, switches, FIELD_REAL),
	FIELD(measurement, cores_allowed, FIELD_UINT32),
	FIELD(measurement, cores_reachable, FIELD_UINT32),
	FIELD(measurement, cores_busy_outside, FIELD_REAL),
	FIELD(measurement, cores_busy_elsewhere, FIELD_REAL),
	FIELD(measurement, quota_group, FIELD_TEXT),
	FIELD(measurement, quota_cores, FIELD_REAL),
	FIELD(measurement, quota_used, FIELD_REAL),
	FIELD(measurement, throttled_share, FIELD_REAL),
	FIELD(measurement, throttled_seconds, FIELD_REAL),
	FIELD(measurement, steal_share, FIELD_REAL),
	FIELD(measurement, engine, FIELD_TEXT),
	FIELD(measurement, read_pages, FIELD_TEXT),
	FIELD(measurement, dataset_samples, FIELD_UINT64),
	FIELD(measurement, batch_bytes, FIELD_UINT64),
	FIELD(measurement, file_bytes_mean, FIELD_REAL),
	FIELD(measurement, has_checksum, FIELD_BOOLEAN),
	FIELD(measurement, checksum_samples, FIELD_UINT64),
	FIELD(measurement, checksum_ranks, FIELD_UINT32),
	FIELD(measurement, window_seconds, FIELD_REAL),
};

static const char *const status_names[] = {"ok", "unsteady", "failed", "interrupted"};

/* What stands behind the checksum. */
static const struct field part_fields[] = {
	FIELD_INSIDE(measurement, facts, facts_fields),
	FIELD_INSIDE(measurement, store, store_fields),
	FIELD_INSIDE(measurement, network, network_fields),
	FIELD_ENTRIES(measurement, stages, stage_count, FIELD_LIST, stage_fields),
	FIELD_ENTRIES(measurement, queues, queue_count, FIELD_LIST, queue_fields),
	FIELD_ENTRIES(
		measurement, read_points, read_point_count, FIELD_LIST_IF_ANY, read_point_fields),
	FIELD_ENTRIES(measurement, devices, device_count, FIELD_LIST_IF_ANY, device_fields),
	FIELD_ENTRIES(
		measurement, checkpoint, checkpoint_count, FIELD_LIST_IF_ANY, checkpoint_fields),
	FIELD_ENTRIES(
		measurement, evaluation, evaluation_count, FIELD_LIST_IF_ANY, evaluation_fields),
	FIELD_ENTRIES(measurement, ranks, ranks_count, FIELD_LIST_IF_ANY, ranks_fields),
	FIELD_TEXTS(measurement, notes, note_count),
};

void device_measurement_init(struct device_measurement *device)
{
	*device = (struct device_measurement){0};
	(void)fields_decode(NULL, device_fields, COUNT(device_fields), device, NULL);
	device->flops_per_step = device->samples = 0;
}

void store_measurement_init(struct store_measurement *store, const char *why)
{
	(void)fields_decode(NULL, store_fields, COUNT(store_fields), store, NULL);
	(void)snprintf(store->why, sizeof store->why, "%s", why);
}

void network_measurement_init(struct network_measurement *network, const char *why)
{
	(void)fields_decode(NULL, network_fields, COUNT(network_fields), network, NULL);
	(void)snprintf(network->why, sizeof network->why, "%s", why);
}

bool measurement_json_has_fact(const json_t *object, const char *name)
{
	return json_object_get(json_object_get(object, "facts"), name) != NULL;
}

/* Older results have "checksum", over batches in their order. */
static const char EPOCH_CHECKSUM[] = "epoch_checksum";

static json_t *checksum_to_json(const struct measurement *m)
{
	char text[CHECKSUM_BYTES];
	(void)snprintf(text, sizeof text, "%016" PRIx64, m->checksum);
	return m->has_checksum ? json_string(text) : json_null();
}

json_t *measurement_to_json(const struct measurement *m)
{
	json_t *object = json_object();
	int bad = json_object_set_new(object, "kind", json_string("repetition"));
	bad |= json_object_set_new(object, "status", json_string(status_names[m->status]));
	bad |= fields_encode(object, measurement_fields, COUNT(measurement_fields), m);
	bad |= json_object_set_new(object, EPOCH_CHECKSUM, checksum_to_json(m));
	bad |= fields_encode(object, part_fields, COUNT(part_fields), m);
	bad |= json_object_set_new(object, "window_columns", window_columns_to_json(m));
	bad |= json_object_set_new(object, "windows", windows_to_json(m));
	return fields_whole(object, bad);
}

static int status_from_json(struct measurement *m, const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);
	for (size_t i = 0; text && i < COUNT(status_names); i++)
		if (strcmp(text, status_names[i]) == 0) {
			m->status = (enum measurement_status)i;
			return 0;
		}
	return error_set(
		err, -EINVAL, "not a repetition: 'status' is '%s'", text ? text : "missing");
}

int measurement_from_json(struct measurement *m, const json_t *object, struct error *err)
{
	memset(m, 0, sizeof *m);
	store_measurement_init(&m->store, "an older result");
	network_measurement_init(&m->network, "an older result");
	int code = status_from_json(m, json_object_get(object, "status"), err);
	if (!code && !json_is_integer(json_object_get(object, "point")))
		code = error_set(err, -EINVAL, "not a repetition: 'point' is missing");
	if (!code)
		code = fields_decode(object, measurement_fields, COUNT(measurement_fields), m, err);
	if (!code)
		code = fields_decode(object, part_fields, COUNT(part_fields), m, err);
	if (code)
		return code;
	const char *checksum = json_string_value(json_object_get(object, EPOCH_CHECKSUM));
	m->has_checksum = m->has_checksum && checksum;
	if (checksum)
		m->checksum = strtoull(checksum, NULL, 16);
	return windows_from_json(m, object, err);
}

/* --- a point ---------------------------------------------------------------------------------- */

/* The one rule for which repetitions count. */

enum point_status point_status_of(const size_t with_status[MEASUREMENT_STATUSES])
{
	const size_t good = with_status[MEASUREMENT_OK];
	const size_t unsteady = with_status[MEASUREMENT_UNSTEADY];
	const size_t lost = with_status[MEASUREMENT_FAILED] + with_status[MEASUREMENT_INTERRUPTED];
	if (good + unsteady == 0)
		return with_status[MEASUREMENT_FAILED] > 0 ? POINT_FAILED : POINT_INTERRUPTED;
	return unsteady == 0 || good >= unsteady + lost ? POINT_OK : POINT_UNSTEADY;
}

bool point_counts(enum point_status point, enum measurement_status repetition)
{
	return repetition == MEASUREMENT_OK ||
	       (point == POINT_UNSTEADY && repetition == MEASUREMENT_UNSTEADY);
}

const char *point_status_name(enum point_status status)
{
	static const char *const names[POINT_STATUSES] = {
		[POINT_OK] = "ok",
		[POINT_UNSTEADY] = "unsteady",
		[POINT_FAILED] = "failed",
		[POINT_INTERRUPTED] = "interrupted",
	};
	return names[status];
}
