/* What each accelerator gives, by the plug-in's probe, which measures all of a device's quantities in rounds of its own:
 * a device is visited twice, so that what disturbs the node does not meet one device alone. */
#include "harness/checks/ceiling.h"

#include "harness/analyze/summary.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/measure/node_files.h"
#include "workloads/backend/probe_compute.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBE_LEAST = 3, VISITS_MOST = 2, COPY_SHARE_OF_FREE = 8 };

static const size_t COPY_BYTES = (size_t)64 << 20;
static const uint64_t QUICK_NS = 2 * NS_PER_S, STANDARD_NS = 10 * NS_PER_S; /* of a device */

static const struct device_gemm_figure {
	const char *figure;
	enum step_precision precision;
} device_gemms[] = {
	{"gemm.device", STEP_PRECISION_BF16},
	{"gemm.device.fp32", STEP_PRECISION_FP32},
	{"gemm.device.tf32", STEP_PRECISION_TF32},
	{"gemm.device.fp16", STEP_PRECISION_FP16},
	{"gemm.device.fp8", STEP_PRECISION_FP8},
};

static const char *const device_figures[] = {"gemm.device", "gemm.device.fp32", "gemm.device.tf32",
	"gemm.device.fp16", "gemm.device.fp8", "device.memory", "device.launch", "copy.to_device",
	"copy.from_device", NULL};

_Static_assert(COUNT(device_figures) <= CEILING_FIGURES_MAX, "figures of a device");

/* --- a visit ---------------------------------------------------------------------------------- */

static void device_series(struct ceiling *ceiling, const char *figure, const char *place,
	const struct cuda_probe_series *series)
{
	for (unsigned i = 0; i < series->count && i < CUDA_PROBE_REPEATS_MAX; i++)
		ceiling_value(ceiling, figure, place, series->values[i]);
}

/* From pinned memory, the largest. */
static void device_copies(struct ceiling *ceiling, const char *place,
	const struct cuda_probe *probe, enum cuda_copy direction, const char *figure)
{
	const struct cuda_probe_copy *largest = NULL;
	for (size_t i = 0; i < probe->copy_count; i++) {
		const struct cuda_probe_copy *copy = &probe->copies[i];
		if (copy->pinned && copy->direction == direction && copy->bytes_per_s.count > 0 &&
			(!largest || copy->bytes > largest->bytes))
			largest = copy;
	}
	if (largest)
		device_series(ceiling, figure, place, &largest->bytes_per_s);
}

static void device_hand_over(
	struct ceiling *ceiling, const struct ceiling_cell *cell, const struct cuda_probe *probe)
{
	for (size_t i = 0; i < COUNT(device_gemms); i++) {
		const struct cuda_probe_gemm *best =
			probe_device_best_square(probe, device_gemms[i].precision);
		if (best)
			device_series(ceiling, device_gemms[i].figure, cell->place, &best->flops);
	}
	device_series(ceiling, "device.memory", cell->place, &probe->memory_bytes_per_s);
	device_series(ceiling, "device.launch", cell->place, &probe->launch_ns);
	device_copies(ceiling, cell->place, probe, CUDA_COPY_TO_DEVICE, "copy.to_device");
	device_copies(ceiling, cell->place, probe, CUDA_COPY_FROM_DEVICE, "copy.from_device");
	for (size_t i = 0; i < probe->missing_count; i++)
		sink_note(ceiling->context->sink, "%s: %s", cell->place, probe->missing[i]);
}

static int device_visit(struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	struct cuda_probe *probe = calloc(1, sizeof *probe);
	const double room = probe_free_memory() / COPY_SHARE_OF_FREE;
	const size_t copy = room > 0 && room < (double)COPY_BYTES ? (size_t)room : COPY_BYTES;
	const struct probe_device_plan plan = {.device = cell->index,
		.most_ns = ceiling->control.slot_ns,
		.copy_least = copy,
		.copy_most = copy};
	struct probe_control control = ceiling->control;
	if (!probe)
		return error_set(err, -ENOMEM, "out of memory");
	/* Shared out among its visits. */
	const unsigned repeats = ceiling->context->repeats;
	control.rounds = (repeats + cell->visited) / cell->visits;
	int code = probe_device_ask(&plan, &control, probe, err);
	if (!code)
		device_hand_over(ceiling, cell, probe);
	free(probe);
	/* A device that went away since it was found has failed. */
	return code == -ENODEV ? -EIO : code;
}

/* --- listing them ----------------------------------------------------------------------------- */

static void device_peaks(
	struct ceiling *ceiling, const char *place, const struct cuda_device_facts *facts)
{
	struct check_sink *sink = ceiling->context->sink;
	const struct device_peak *peak = peak_find(facts->name);
	bool needed = false;
	for (size_t i = 0; i < COUNT(device_gemms); i++) {
		const struct device_gemm_figure *gemm = &device_gemms[i];
		const double flops = peak_flops(facts->name, gemm->precision);
		const char *const figures[] = {gemm->figure, NULL};
		char why[PROBE_WHY_BYTES];
		needed = needed || ceiling_needs_peak(ceiling, gemm->figure);
		if (!facts->precisions[gemm->precision]) {
			(void)snprintf(why, sizeof why,
				"%.64s (sm_%u%u) does not compute in this precision", facts->name,
				facts->major, facts->minor);
			ceiling_lack(ceiling, figures, place, why);
		} else if (peak && isfinite(flops) && ceiling_wants(ceiling, gemm->figure, place)) {
			sink_peak(sink, gemm->figure, place, flops, peak->source);
		}
	}
	if (needed && !peak)
		sink_note(sink, "%s: no published peak is known of '%s'", place, facts->name);
}

static int device_add(
	struct ceiling *ceiling, const struct cuda_found *found, unsigned index, struct error *err)
{
	const struct cuda_device_facts *facts = &found->node.devices[index];
	const unsigned visits = ceiling->context->repeats / PROBE_LEAST;
	struct ceiling_cell cell = {.visit = device_visit,
		.index = index,
		.visits = visits < 1             ? 1
			  : visits > VISITS_MOST ? VISITS_MOST
						 : visits};
	const bool quick = ceiling->context->tier == TIER_QUICK;
	cell.slot_ns = (quick ? QUICK_NS : STANDARD_NS) / cell.visits;
	memcpy(cell.figures, device_figures, sizeof device_figures);
	(void)snprintf(cell.place, sizeof cell.place, "device %u", index);
	(void)snprintf(cell.activity, sizeof cell.activity, "probing device %u, %.48s", index,
		facts->name);
	if (found->plugin->test_double)
		sink_note(ceiling->context->sink,
			"device %u is simulated on the CPU by a test double: its figures are meaningless",
			index);
	device_peaks(ceiling, cell.place, facts);
	return ceiling_add(ceiling, &cell, err);
}

static void device_seen(void *context, const char *path)
{
	(void)path;
	++*(size_t *)context;
}

/* A node without a GPU lacks them; one whose GPUs the driver shows and nothing can use, or whose plug-in was named and
 * cannot be opened, does not. */
static int devices_refuse(
	const struct ceiling *ceiling, const struct cuda_found *found, struct error *err)
{
	size_t seen = 0;
	const char *root = ceiling->context->root ? ceiling->context->root : "";
	(void)node_each(device_seen, &seen, "%s/proc/driver/nvidia/gpus/*", root);
	if (seen > 0)
		return error_set(err, -EPERM, "the driver shows %zu GPU%s, but: %.400s", seen,
			seen == 1 ? "" : "s", found->why);
	return error_set(err, getenv(CUDA_PLUGIN_VARIABLE) && !found->plugin ? -EPERM : -ENODEV,
		"%s", found->why);
}

static int devices_open(struct ceiling *ceiling, void **state, struct error *err)
{
	*state = NULL;
	sink_activity(ceiling->context->sink, "looking for devices");
	const struct cuda_found *found = cuda_find();
	if (!found->ready)
		return devices_refuse(ceiling, found, err);
	int code = 0;
	for (unsigned i = 0; i < found->node.count && i < CUDA_DEVICES_MAX && !code; i++)
		code = device_add(ceiling, found, i, err);
	return code;
}

static void devices_close(void *state)
{
	(void)state;
}

const struct ceiling_subject ceiling_devices = {
	.figures = device_figures, .open = devices_open, .close = devices_close};
