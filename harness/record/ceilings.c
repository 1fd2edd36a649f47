/* Questions to a node's data sheet. */
#include "harness/record/ceilings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400, STALE_DAYS = 30 };

static const double SIZES_ALIKE = 4;         /* requests up to so many times as large or small */
static const double BANDWIDTH_BYTES = 65536; /* from here on requests are limited by bandwidth */
static const double CLOCKS_AGREE_S = 60;

static void clear_range(struct ceiling_range *range)
{
	*range = (struct ceiling_range){.low = NAN, .high = NAN};
}

static void device_ceiling_init(struct device_ceiling *device)
{
	device->memory_bytes = device->cache_bytes = device->seconds = NAN;
	device->memory_bytes_per_s = device->launch_ns = device->kernel_ns = NAN;
	device->graph_kernel_ns = device->round_trip_ns = NAN;
	clear_range(&device->memory_range);
	clear_range(&device->launch_range);
	clear_range(&device->kernel_range);
	clear_range(&device->graph_kernel_range);
	clear_range(&device->round_trip_range);
}

void ceilings_init(struct ceilings *ceilings)
{
	*ceilings = (struct ceilings){0};
	double *const numbers[] = {&ceilings->measured_at, &ceilings->decode_one_core,
		&ceilings->decode_all_cores, &ceilings->cpu_scaling,
		&ceilings->memory_bytes_per_s_one, &ceilings->memory_bytes_per_s_all,
		&ceilings->copy_bytes_per_s, &ceilings->lock_handoff_ns, &ceilings->clock_read_ns,
		&ceilings->cpu_clock_read_ns, &ceilings->oversleep_ns, &ceilings->seconds,
		&ceilings->scratch_bytes, &ceilings->file_bytes, &ceilings->memory_array_bytes,
		&ceilings->cache_bytes, &ceilings->oversleep_p99_ns};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		*numbers[i] = NAN;
	clear_range(&ceilings->memory_range_one);
	clear_range(&ceilings->memory_range_all);
	clear_range(&ceilings->copy_range);
	clear_range(&ceilings->lock_range);
	clear_range(&ceilings->clock_range);
	clear_range(&ceilings->cpu_clock_range);
	clear_range(&ceilings->oversleep_range);
	device_ceiling_init(&ceilings->device);
}

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

/* The nearest sizes measured on both sides of what is asked; NULL: none. */
struct copy_neighbours {
	const struct copy_ceiling *below, *above;
};

static struct copy_neighbours find_copies(
	const struct device_ceiling *device, double bytes, bool pinned, bool to_device)
{
	struct copy_neighbours near = {0};
	for (size_t i = 0; i < device->copy_count; i++) {
		const struct copy_ceiling *copy = &device->copies[i];
		if (copy->pinned != pinned || copy->to_device != to_device ||
			!(copy->bytes_per_s > 0))
			continue;
		if (copy->bytes <= bytes && (!near.below || copy->bytes > near.below->bytes))
			near.below = copy;
		if (copy->bytes >= bytes && (!near.above || copy->bytes < near.above->bytes))
			near.above = copy;
	}
	return near;
}

static double copy_seconds(const struct copy_ceiling *copy)
{
	return copy->bytes / copy->bytes_per_s;
}

double ceilings_copy_bytes_per_s(
	const struct ceilings *ceilings, double bytes, bool pinned, bool to_device)
{
	if (!ceilings->has_device || !(bytes > 0))
		return NAN;
	const struct copy_neighbours near =
		find_copies(&ceilings->device, bytes, pinned, to_device);
	if (!near.above)
		return near.below ? near.below->bytes_per_s : NAN;
	if (!near.below)
		return bytes / copy_seconds(near.above);
	const double span = near.above->bytes - near.below->bytes;
	const double along = span > 0 ? (bytes - near.below->bytes) / span : 0;
	const double seconds =
		copy_seconds(near.below) * (1 - along) + copy_seconds(near.above) * along;
	return bytes / seconds;
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

double ceilings_launch_ns(const struct ceilings *ceilings)
{
	return ceilings->has_device ? ceilings->device.launch_ns : NAN;
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
