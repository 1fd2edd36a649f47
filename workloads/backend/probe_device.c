/* The plug-in measures; medians, the best shapes and words are made here. */
#include "workloads/backend/probe_device.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t COPY_LEAST = 4096;

_Static_assert((int)CUDA_PROBE_COPIES_MAX <= (int)CEILING_COPIES_MAX, "copies of a probe");
_Static_assert((int)CUDA_PROBE_GEMMS_MAX <= (int)CEILING_GEMMS_MAX, "products of a probe");

static double probe_device_keep_series(
	const struct cuda_probe_series *series, struct ceiling_range *range)
{
	struct probe_values values = {0};
	for (unsigned i = 0; i < series->count && i < CUDA_PROBE_REPEATS_MAX; i++)
		probe_add(&values, series->values[i]);
	return probe_median(&values, range);
}

static void probe_device_keep_copies(const struct cuda_probe *probe, struct device_ceiling *device)
{
	for (size_t i = 0; i < probe->copy_count && i < CUDA_PROBE_COPIES_MAX; i++) {
		const struct cuda_probe_copy *from = &probe->copies[i];
		struct copy_ceiling copy = {.to_device = from->direction == CUDA_COPY_TO_DEVICE,
			.pinned = from->pinned,
			.bytes = (double)from->bytes};
		copy.bytes_per_s = probe_device_keep_series(&from->bytes_per_s, &copy.range);
		if (copy.range.repeats > 0)
			device->copies[device->copy_count++] = copy;
	}
}

/* --- products ------------------------------------------------------------------------------------ */

/* As the key's choices are called. */
static const char *probe_device_precision_name(enum step_precision precision, char out[NAME_BYTES])
{
	const char *at = config_keys[KEY_STEP_PRECISION].choices;
	for (int i = 0; i < (int)precision; i++) {
		const char *bar = strchr(at, '|');
		at = bar ? bar + 1 : "";
	}
	(void)snprintf(out, NAME_BYTES, "%.*s", (int)strcspn(at, "|"), at);
	return out;
}

static bool probe_device_is_square(const struct cuda_probe_gemm *gemm)
{
	return strcmp(gemm->layer, "square") == 0;
}

static void probe_device_add_gemm(const struct cuda_probe_gemm *from, struct device_ceiling *device)
{
	struct device_gemm_ceiling gemm = {.m = from->m,
		.n = from->n,
		.k = from->k,
		.is_best = probe_device_is_square(from),
		.efficiency = NAN};
	char name[NAME_BYTES];
	gemm.flops = probe_device_keep_series(&from->flops, &gemm.range);
	(void)snprintf(gemm.name, sizeof gemm.name, "%s", from->layer);
	(void)snprintf(gemm.precision, sizeof gemm.precision, "%s",
		probe_device_precision_name(from->precision, name));
	device->gemms[device->gemm_count++] = gemm;
}

/* The best square of a precision; NULL: none was measured. */
static const struct cuda_probe_gemm *probe_device_best_square(
	const struct cuda_probe *probe, enum step_precision precision)
{
	const struct cuda_probe_gemm *best = NULL;
	double most = -INFINITY;
	for (size_t i = 0; i < probe->gemm_count; i++) {
		const struct cuda_probe_gemm *gemm = &probe->gemms[i];
		const double flops = probe_device_keep_series(&gemm->flops, NULL);
		if (gemm->precision == precision && probe_device_is_square(gemm) && flops > most) {
			most = flops;
			best = gemm;
		}
	}
	return best;
}

static void probe_device_keep_gemms(const struct cuda_probe *probe, struct ceilings *out)
{
	struct device_ceiling *device = &out->device;
	for (int precision = STEP_PRECISION_FP32; precision <= STEP_PRECISION_FP8; precision++) {
		const struct cuda_probe_gemm *best =
			probe_device_best_square(probe, (enum step_precision)precision);
		if (best)
			probe_device_add_gemm(best, device);
	}
	for (size_t i = 0; i < probe->gemm_count; i++)
		if (!probe_device_is_square(&probe->gemms[i]) && probe->gemms[i].flops.count > 0)
			probe_device_add_gemm(&probe->gemms[i], device);
	for (size_t i = 0; i < device->gemm_count; i++)
		device->gemms[i].efficiency =
			device->gemms[i].flops /
			ceilings_device_flops(out, device->gemms[i].precision);
}

/* --- the device ------------------------------------------------------------------------------------ */

static void probe_device_keep_facts(
	const struct cuda_found *found, unsigned index, struct device_ceiling *device)
{
	device->index = index;
	device->count = (unsigned)found->node.count;
	device->test_double = found->plugin && found->plugin->test_double;
	if (index < found->node.count && index < CUDA_DEVICES_MAX) {
		const struct cuda_device_facts *facts = &found->node.devices[index];
		(void)snprintf(device->name, sizeof device->name, "%s", facts->name);
		(void)snprintf(device->capability, sizeof device->capability, "%u.%u",
			facts->major % 100, facts->minor % 100);
		device->memory_bytes = (double)facts->memory_bytes;
		device->cache_bytes = (double)facts->l2_bytes;
	}
	(void)snprintf(device->versions, sizeof device->versions,
		"driver for CUDA %d.%d, runtime %d.%d, cuBLAS %s", found->node.driver / 1000,
		found->node.driver % 1000 / 10, found->node.runtime / 1000,
		found->node.runtime % 1000 / 10, found->node.cublas);
}

void probe_device_keep(const struct cuda_probe *probe, const struct cuda_found *found,
	unsigned index, struct ceilings *out)
{
	struct device_ceiling *device = &out->device;
	out->has_device = true;
	probe_device_keep_facts(found, index, device);
	device->memory_bytes_per_s =
		probe_device_keep_series(&probe->memory_bytes_per_s, &device->memory_range);
	device->launch_ns = probe_device_keep_series(&probe->launch_ns, &device->launch_range);
	device->kernel_ns = probe_device_keep_series(&probe->kernel_ns, &device->kernel_range);
	device->graph_kernel_ns =
		probe_device_keep_series(&probe->graph_launch_ns, &device->graph_kernel_range);
	device->round_trip_ns =
		probe_device_keep_series(&probe->round_trip_ns, &device->round_trip_range);
	probe_device_keep_copies(probe, device);
	probe_device_keep_gemms(probe, out);
	for (size_t i = 0; i < probe->missing_count; i++)
		ceilings_lack(out, "device: %.240s", probe->missing[i]);
}

static void probe_device_note(
	const struct cuda_found *found, const struct probe_device_plan *plan, struct ceilings *out)
{
	if (found->plugin->test_double)
		ceilings_note(out,
			"device: a test double computed on the CPU; none of its figures means anything");
	if (found->node.count > 1)
		ceilings_note(out, "device: %u of %zu was probed", plan->device, found->node.count);
}

int probe_device(const struct probe_device_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err)
{
	const struct cuda_found *found = cuda_find();
	if (!found->ready)
		return error_set(err, -ENODEV, "%s", found->why);
	struct cuda_probe *probe = calloc(1, sizeof *probe);
	if (!probe)
		return error_set(err, -ENOMEM, "out of memory");
	const struct cuda_probe_plan asked = {.device = plan->device,
		.repeats = control->rounds,
		.seconds = (double)plan->most_ns / (double)NS_PER_S,
		.copy_least = COPY_LEAST,
		.copy_most = plan->copy_most,
		.model = plan->model ? plan->model->name : NULL,
		.batch_size = plan->batch,
		.sample_elements = plan->shape.sample_elements,
		.class_count = plan->shape.class_count,
		.precision = plan->precision,
		.shapes_most = plan->shapes_most,
		.stop = control->stop};
	const uint64_t begin = clock_now_ns();
	const int code = found->plugin->probe(&asked, probe, err);
	if (code == 0 || code == -EINTR) {
		probe_device_keep(probe, found, plan->device, out);
		out->device.seconds = (double)(clock_now_ns() - begin) / (double)NS_PER_S;
		probe_device_note(found, plan, out);
	}
	free(probe);
	return code;
}
