/* A node's data sheet: its life, looking into it, and as JSON. */
#include "harness/record/ceilings.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/record/fields.h"
#include "harness/record/record.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400, STALE_DAYS = 30 };

static const double SIZES_ALIKE = 4;         /* requests up to so many times as large or small */
static const double BANDWIDTH_BYTES = 65536; /* from here on requests are limited by bandwidth */
static const double CLOCKS_AGREE_S = 60;

/* --- as JSON ---------------------------------------------------------------------------------- */

/* A range beside the figures that it is of, and the one of an entry. */
// NOLINTBEGIN(bugprone-macro-parentheses): a member's name is none that parentheses may stand around
#define RANGE(type, member, prefix)                                       \
	FIELD_AS(type, member.low, #prefix "_low", FIELD_REAL),           \
		FIELD_AS(type, member.high, #prefix "_high", FIELD_REAL), \
		FIELD_AS(type, member.repeats, #prefix "_repeats", FIELD_UINT32)
#define OWN_RANGE(type)                                         \
	FIELD_AS(type, range.low, "low", FIELD_REAL),           \
		FIELD_AS(type, range.high, "high", FIELD_REAL), \
		FIELD_AS(type, range.repeats, "repeats", FIELD_UINT32)
// NOLINTEND(bugprone-macro-parentheses)

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

static const struct field ceilings_fields[] = {
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
	FIELD(ceilings, read_pages, FIELD_TEXT),
	FIELD(ceilings, first_read_bytes_per_s, FIELD_REAL),
	FIELD(ceilings, reread_bytes_per_s, FIELD_REAL),
	FIELD(ceilings, first_read_bytes, FIELD_REAL),
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
	FIELD_ENTRIES(ceilings, reads, read_count, FIELD_LIST, read_fields),
	FIELD_ENTRIES(ceilings, decode, decode_count, FIELD_LIST, decode_fields),
	FIELD_ENTRIES(ceilings, gemms, gemm_count, FIELD_LIST, gemm_fields),
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
	FIELD_ENTRIES(device_ceiling, copies, copy_count, FIELD_LIST, copy_fields),
	FIELD_ENTRIES(device_ceiling, gemms, gemm_count, FIELD_LIST, device_gemm_fields),
};

static const struct field device_field = FIELD_INSIDE(ceilings, device, device_fields);

static const struct field line_fields[] = {
	FIELD_TEXTS(ceilings, missing, missing_count),
	FIELD_TEXTS(ceilings, notes, note_count),
};

json_t *ceilings_to_json(const struct ceilings *ceilings, double now)
{
	char when[CLOCK_UTC_BYTES] = "";
	json_t *object = json_object();
	if (isfinite(ceilings->measured_at))
		clock_format_utc(ceilings->measured_at, when);
	int bad = json_object_set_new(object, "schema", json_string(CEILINGS_SCHEMA));
	bad |= json_object_set_new(object, "measured", json_string(when));
	bad |= json_object_set_new(object, "age_s", fields_number(now - ceilings->measured_at));
	bad |= fields_encode(object, ceilings_fields, COUNT(ceilings_fields), ceilings);
	bad |= json_object_set_new(object, "device",
		ceilings->has_device ? fields_value(&device_field, ceilings) : json_null());
	bad |= fields_encode(object, line_fields, COUNT(line_fields), ceilings);
	return fields_whole(object, bad);
}

void ceilings_init(struct ceilings *ceilings)
{
	*ceilings = (struct ceilings){0};
	(void)fields_decode(NULL, ceilings_fields, COUNT(ceilings_fields), ceilings, NULL);
	(void)fields_decode(NULL, device_fields, COUNT(device_fields), &ceilings->device, NULL);
}

int ceilings_from_json(struct ceilings *ceilings, const json_t *object, struct error *err)
{
	const char *schema = json_string_value(json_object_get(object, "schema"));
	/* Absent in data sheets of nodes without one, and in older ones. */
	const json_t *device = json_object_get(object, "device");
	ceilings_init(ceilings);
	if (!schema || strcmp(schema, CEILINGS_SCHEMA) != 0)
		return error_set(err, -EINVAL, "schema is '%s', expected '%s'",
			schema ? schema : "(none)", CEILINGS_SCHEMA);
	int code = fields_decode(object, ceilings_fields, COUNT(ceilings_fields), ceilings, err);
	if (!json_object_get(object, "reads_block"))
		ceilings->reads_block = older_reads_block(ceilings->engine);
	if (!code)
		code = fields_set(&device_field, device, ceilings, err);
	ceilings->has_device = !code && json_is_object(device);
	return code ? code : fields_decode(object, line_fields, COUNT(line_fields), ceilings, err);
}

/* --- looking into it -------------------------------------------------------------------------- */

void ceilings_lack(struct ceilings *ceilings, const char *format, ...)
{
	if (ceilings->missing_count == NOTES_MAX)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(ceilings->missing[ceilings->missing_count++], NOTE_BYTES, format, args);
	va_end(args);
}

void ceilings_note(struct ceilings *ceilings, const char *format, ...)
{
	if (ceilings->note_count == NOTES_MAX)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(ceilings->notes[ceilings->note_count++], NOTE_BYTES, format, args);
	va_end(args);
}

static bool is_asked(const struct read_ceiling *read, unsigned depth, bool cold)
{
	const bool warm = !read->cold && !read->direct;
	return (cold ? read->cold : warm) && (depth == 0 || read->depth <= depth) &&
	       isfinite(read->bytes_per_s);
}

/* Of the sizes measured, the nearest by ratio; NAN: none is near. */
static double nearest_size(
	const struct ceilings *ceilings, double request_bytes, unsigned depth, bool cold)
{
	double nearest = NAN;
	double least = INFINITY;
	for (size_t i = 0; i < ceilings->read_count; i++) {
		const struct read_ceiling *read = &ceilings->reads[i];
		if (!is_asked(read, depth, cold))
			continue;
		const double far = fabs(log(request_bytes / read->request_bytes));
		if (far < least) {
			least = far;
			nearest = read->request_bytes;
		}
	}
	const bool saturates = depth == 0 && request_bytes > nearest && nearest >= BANDWIDTH_BYTES;
	return least <= log(SIZES_ALIKE) || saturates ? nearest : NAN;
}

double ceilings_read_bytes_per_s(
	const struct ceilings *ceilings, double request_bytes, unsigned depth, bool cold)
{
	if (!(request_bytes > 0))
		return NAN;
	const double size = nearest_size(ceilings, request_bytes, depth, cold);
	double best = NAN;
	for (size_t i = 0; i < ceilings->read_count; i++) {
		const struct read_ceiling *read = &ceilings->reads[i];
		if (is_asked(read, depth, cold) && read->request_bytes == size)
			best = fmax(best, read->bytes_per_s);
	}
	return best;
}

double ceilings_best_flops(const struct ceilings *ceilings, unsigned threads)
{
	double best = NAN;
	for (size_t i = 0; i < ceilings->gemm_count; i++)
		if (ceilings->gemms[i].is_best && ceilings->gemms[i].threads == threads)
			best = fmax(best, ceilings->gemms[i].flops);
	return best;
}

double ceilings_device_flops(const struct ceilings *ceilings, const char *precision)
{
	double best = NAN;
	for (size_t i = 0; ceilings->has_device && i < ceilings->device.gemm_count; i++) {
		const struct device_gemm_ceiling *gemm = &ceilings->device.gemms[i];
		if (gemm->is_best && strcmp(gemm->precision, precision) == 0)
			best = fmax(best, gemm->flops);
	}
	return best;
}

const char *ceilings_age(
	const struct ceilings *ceilings, double moment, const char *word, char *out, size_t room)
{
	const double age = moment - ceilings->measured_at;
	if (isnan(age))
		(void)snprintf(out, room, "probed at an unknown time");
	else if (age < -CLOCKS_AGREE_S)
		(void)snprintf(out, room, "probed in the future, by this clock");
	else if (age < MINUTE_S)
		(void)snprintf(out, room, "probed less than a minute %s", word);
	else if (age < HOUR_S)
		(void)snprintf(out, room, "probed %.0f min %s", floor(age / MINUTE_S), word);
	else if (age < 2 * DAY_S)
		(void)snprintf(out, room, "probed %.0f h %s", floor(age / HOUR_S), word);
	else
		(void)snprintf(out, room, "probed %.0f days %s", floor(age / DAY_S), word);
	return out;
}

bool ceilings_stale(const struct ceilings *ceilings, double now, unsigned cores, const char *kernel,
	const char *gpu, char *why, size_t room)
{
	const double age = now - ceilings->measured_at;
	why[0] = '\0';
	if (ceilings->cores != cores)
		(void)snprintf(why, room, "probed with %u cores, now there are %u", ceilings->cores,
			cores);
	else if (strcmp(ceilings->kernel, kernel) != 0)
		(void)snprintf(
			why, room, "probed under kernel %s, this is %s", ceilings->kernel, kernel);
	else if (strcmp(ceilings->gpu, gpu) != 0)
		(void)snprintf(why, room, "probed with %s, now there is %s",
			ceilings->gpu[0] ? ceilings->gpu : "no GPU", gpu[0] ? gpu : "none");
	else if (isnan(age) || age < -CLOCKS_AGREE_S || age > (double)STALE_DAYS * DAY_S)
		(void)ceilings_age(ceilings, now, "ago", why, room);
	return why[0] != '\0';
}
