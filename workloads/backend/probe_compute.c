/* sgemm of OpenBLAS over shapes and threads, every cell once a round.  Operands are constants whose product is known, and a
 * cell that computes anything else is an error.  A device is measured by the plug-in: medians, the best shapes and words are
 * made here. */
#include "workloads/backend/probe_compute.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "workloads/backend/openblas.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MAX = 3 * PROBE_EDGES_MAX + CEILING_GEMMS_MAX, SHAPES_MAX = 256, WARM_EDGE = 64 };

static const size_t FLOATS_MOST = (size_t)64 << 20; /* of one operand: 256 MiB */
static const float LEFT = 0.5F, RIGHT = 0.25F;

struct cell {
	long long m, n, k;
	unsigned threads;
	bool square;
	double share;
	const char *name;
	bool cut; /* rows were */
	struct probe_values flops;
};

struct probe_gemms {
	const struct probe_gemm_plan *plan;
	const struct probe_control *control;
	struct cell cells[CELLS_MAX];
	size_t cell_count;
	struct memory_block a, b, c;
	int threads_before;
};

static double probe_gemm_cell_flops(const struct cell *cell)
{
	return 2.0 * (double)cell->m * (double)cell->n * (double)cell->k;
}

/* --- cores: what to measure ------------------------------------------------------------------- */

static void probe_gemm_add_squares(struct probe_gemms *sweep, unsigned threads)
{
	for (size_t i = 0; i < sweep->cell_count; i++)
		if (sweep->cells[i].threads == threads)
			return;
	for (size_t i = 0; i < sweep->plan->edge_count; i++) {
		const long long edge = sweep->plan->edges[i];
		sweep->cells[sweep->cell_count++] = (struct cell){.m = edge,
			.n = edge,
			.k = edge,
			.threads = threads,
			.square = true,
			.share = NAN,
			.name = "square"};
	}
}

static void probe_gemm_add_product(struct probe_gemms *sweep, const struct model_product *product)
{
	const struct probe_gemm_plan *plan = sweep->plan;
	struct cell *cell = &sweep->cells[sweep->cell_count++];
	*cell = (struct cell){
		.m = model_product_rows(product, plan->call_flops_most, (double)FLOATS_MOST),
		.n = product->n,
		.k = product->k,
		.threads = plan->threads,
		.share = product->share,
		.name = product->name};
	cell->cut = cell->m < product->m;
}

static int probe_gemm_add_model(struct probe_gemms *sweep, struct error *err)
{
	const struct probe_gemm_plan *plan = sweep->plan;
	struct model_product *products = calloc(SHAPES_MAX, sizeof *products);
	if (!products)
		return error_set(err, -ENOMEM, "out of memory");
	const size_t count =
		model_products(plan->model, plan->shape, plan->batch, products, SHAPES_MAX);
	for (size_t i = 0; i < count && i < plan->shapes_most; i++)
		if (sweep->cell_count < CELLS_MAX)
			probe_gemm_add_product(sweep, &products[i]);
	free(products);
	return 0;
}

static int probe_gemm_fill(
	struct memory_block *block, size_t floats, float value, struct error *err)
{
	if (memory_map(block, floats * sizeof(float), true) != 0)
		return error_set(
			err, -ENOMEM, "out of memory for an operand of %zu floats", floats);
	float *at = block->data;
	for (size_t i = 0; i < floats; i++)
		at[i] = value;
	return 0;
}

static size_t probe_gemm_larger(size_t most, long long rows, long long columns)
{
	const size_t floats = (size_t)rows * (size_t)columns;
	return floats > most ? floats : most;
}

static int probe_gemm_open_operands(struct probe_gemms *sweep, struct error *err)
{
	size_t a = (size_t)WARM_EDGE * WARM_EDGE;
	size_t b = a;
	size_t c = a;
	for (size_t i = 0; i < sweep->cell_count; i++) {
		const struct cell *cell = &sweep->cells[i];
		a = probe_gemm_larger(a, cell->m, cell->k);
		b = probe_gemm_larger(b, cell->k, cell->n);
		c = probe_gemm_larger(c, cell->m, cell->n);
	}
	int code = probe_gemm_fill(&sweep->a, a, LEFT, err);
	if (!code)
		code = probe_gemm_fill(&sweep->b, b, RIGHT, err);
	return code ? code : probe_gemm_fill(&sweep->c, c, 0, err);
}

/* --- cores: measuring ------------------------------------------------------------------------- */

static void probe_gemm_multiply(
	const struct probe_gemms *sweep, long long m, long long n, long long k)
{
	blas->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)m, (blasint)n, (blasint)k,
		1, sweep->a.data, (blasint)k, sweep->b.data, (blasint)n, 0, sweep->c.data,
		(blasint)n);
}

/* The first and the last element; sums of that many equal terms are exact in float. */
static bool probe_gemm_is_right(const struct probe_gemms *sweep, const struct cell *cell)
{
	static const double TOLERANCE = 1e-5;
	const float *c = sweep->c.data;
	const double want = (double)cell->k * (double)(LEFT * RIGHT);
	const size_t last = (size_t)cell->m * (size_t)cell->n - 1;
	return fabs((double)c[0] - want) <= TOLERANCE * want &&
	       fabs((double)c[last] - want) <= TOLERANCE * want;
}

int probe_gemms_slot(
	struct probe_gemms *sweep, size_t index, double *flops_per_s, struct error *err)
{
	const struct cell *cell = &sweep->cells[index];
	*flops_per_s = NAN;
	const int code = blas_set_threads((int)cell->threads, err);
	if (code)
		return code;
	/* After another thread count the threads have to be woken first. */
	probe_gemm_multiply(sweep, WARM_EDGE, WARM_EDGE, WARM_EDGE);
	const uint64_t begin = clock_now_ns();
	const uint64_t end = probe_slot_end(sweep->control, begin);
	uint64_t now;
	unsigned calls = 0;
	do {
		probe_gemm_multiply(sweep, cell->m, cell->n, cell->k);
		now = clock_now_ns();
		calls++;
	} while (now < end && !probe_stopped(sweep->control));
	if (!probe_gemm_is_right(sweep, cell))
		return error_set(err, -EIO, "sgemm of %lld x %lld x %lld gave a wrong result",
			cell->m, cell->n, cell->k);
	*flops_per_s =
		calls * probe_gemm_cell_flops(cell) * (double)NS_PER_S / (double)(now - begin);
	return 0;
}

static int probe_gemm_measure_rounds(struct probe_gemms *sweep, struct error *err)
{
	const struct probe_control *control = sweep->control;
	int code = 0;
	for (unsigned round = 0; round < control->rounds && !code; round++)
		for (size_t i = 0; i < sweep->cell_count && !code; i++) {
			if (probe_time_over(control))
				return 0;
			double flops;
			code = probe_gemms_slot(sweep, i, &flops, err);
			probe_add(&sweep->cells[i].flops, flops);
		}
	return code;
}

/* --- cores: results --------------------------------------------------------------------------- */

static void probe_gemm_keep_cell(const struct cell *cell, struct ceilings *out)
{
	if (cell->flops.count == 0 || out->gemm_count == CEILING_GEMMS_MAX)
		return;
	struct gemm_ceiling *gemm = &out->gemms[out->gemm_count++];
	*gemm = (struct gemm_ceiling){.m = cell->m,
		.n = cell->n,
		.k = cell->k,
		.threads = cell->threads,
		.is_best = cell->square,
		.share = cell->share};
	gemm->flops = probe_median(&cell->flops, &gemm->range);
	(void)snprintf(gemm->name, sizeof gemm->name, "%s", cell->name);
	gemm->efficiency = gemm->flops / ceilings_best_flops(out, gemm->threads);
}

/* The best square shape of each thread count. */
static void probe_gemm_keep_best(const struct probe_gemms *sweep, struct ceilings *out)
{
	for (size_t i = 0; i < sweep->cell_count; i++) {
		const struct cell *best = &sweep->cells[i];
		bool seen = !best->square;
		for (size_t j = 0; j < sweep->cell_count && best->square; j++) {
			const struct cell *other = &sweep->cells[j];
			if (!other->square || other->threads != best->threads)
				continue;
			seen = seen || j < i;
			if (probe_median(&other->flops, NULL) > probe_median(&best->flops, NULL))
				best = other;
		}
		if (!seen)
			probe_gemm_keep_cell(best, out);
	}
}

static void probe_gemm_keep(const struct probe_gemms *sweep, struct ceilings *out)
{
	const struct probe_gemm_plan *plan = sweep->plan;
	bool cut = false;
	size_t unseen = 0;
	probe_gemm_keep_best(sweep, out);
	for (size_t i = 0; i < sweep->cell_count; i++) {
		const struct cell *cell = &sweep->cells[i];
		unseen += cell->flops.count == 0;
		cut = cut || cell->cut;
		if (!cell->square)
			probe_gemm_keep_cell(cell, out);
	}
	if (plan->model) {
		(void)snprintf(out->model, sizeof out->model, "%s", plan->model->name);
		out->batch = plan->batch;
	}
	if (cut && plan->model)
		ceilings_note(out,
			"gemm: %s at batch %u: products of more than %.0f GFLOP or 256 MiB an operand "
			"are cut to fewer rows",
			plan->model->name, plan->batch, plan->call_flops_most * 1e-9);
	if (unseen > 0 && !probe_stopped(sweep->control))
		ceilings_lack(
			out, "gemm: %zu of %zu shapes: out of time", unseen, sweep->cell_count);
}

int probe_gemms_open(struct probe_gemms **out, const struct probe_gemm_plan *plan,
	const struct probe_control *control, struct error *err)
{
	char why[ERROR_TEXT_BYTES];
	*out = NULL;
	if (!blas_find(why, sizeof why))
		return error_set(err, -ENOTSUP, "%s", why);
	struct probe_gemms *sweep = calloc(1, sizeof *sweep);
	if (!sweep)
		return error_set(err, -ENOMEM, "out of memory");
	sweep->plan = plan;
	sweep->control = control;
	sweep->threads_before = omp_get_max_threads();
	probe_gemm_add_squares(sweep, 1);
	probe_gemm_add_squares(sweep, plan->all_threads ? plan->all_threads : probe_cores());
	if (plan->model)
		probe_gemm_add_squares(sweep, plan->threads);
	int code = plan->model ? probe_gemm_add_model(sweep, err) : 0;
	if (!code)
		code = probe_gemm_open_operands(sweep, err);
	if (code)
		probe_gemms_close(sweep);
	else
		*out = sweep;
	return code;
}

void probe_gemms_close(struct probe_gemms *sweep)
{
	if (!sweep)
		return;
	memory_unmap(&sweep->a);
	memory_unmap(&sweep->b);
	memory_unmap(&sweep->c);
	blas->set_num_threads(sweep->threads_before);
	free(sweep);
}

size_t probe_gemms_find(const struct probe_gemms *sweep, unsigned edge, unsigned threads)
{
	size_t i = 0;
	while (i < sweep->cell_count && !(sweep->cells[i].square && sweep->cells[i].m == edge &&
						sweep->cells[i].threads == threads))
		i++;
	return i;
}

int probe_gemm(const struct probe_gemm_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err)
{
	struct probe_gemms *sweep;
	int code = probe_gemms_open(&sweep, plan, control, err);
	if (code)
		return code;
	code = probe_gemm_measure_rounds(sweep, err);
	probe_gemm_keep(sweep, out);
	probe_gemms_close(sweep);
	return probe_stopped(control) ? -EINTR : code;
}

/* --- the device ------------------------------------------------------------------------------- */

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

/* --- the device: products --------------------------------------------------------------------- */

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
	const struct config_value precision = {.integer = from->precision};
	gemm.flops = probe_device_keep_series(&from->flops, &gemm.range);
	(void)snprintf(gemm.name, sizeof gemm.name, "%s", from->layer);
	(void)config_format_value(
		KEY_STEP_PRECISION, &precision, gemm.precision, sizeof gemm.precision);
	device->gemms[device->gemm_count++] = gemm;
}

/* The best square of a precision; NULL: none was measured. */
const struct cuda_probe_gemm *probe_device_best_square(
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

/* --- the device ------------------------------------------------------------------------------- */

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
			"device: simulated on the CPU by a test double; its figures are meaningless");
	if (found->node.count > 1)
		ceilings_note(out, "device: only device %u of %zu was probed", plan->device,
			found->node.count);
}

int probe_device_ask(const struct probe_device_plan *plan, const struct probe_control *control,
	struct cuda_probe *probe, struct error *err)
{
	const struct cuda_found *found = cuda_find();
	if (!found->ready)
		return error_set(err, -ENODEV, "%s", found->why);
	const struct cuda_probe_plan asked = {.device = plan->device,
		.repeats = control->rounds,
		.seconds = (double)plan->most_ns / (double)NS_PER_S,
		.copy_least = plan->copy_least ? plan->copy_least : COPY_LEAST,
		.copy_most = plan->copy_most,
		.model = plan->model ? plan->model->name : NULL,
		.batch_size = plan->batch,
		.sample_elements = plan->shape.sample_elements,
		.class_count = plan->shape.class_count,
		.precision = plan->precision,
		.shapes_most = plan->shapes_most,
		.stop = control->stop};
	return found->plugin->probe(&asked, probe, err);
}

int probe_device(const struct probe_device_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err)
{
	struct cuda_probe *probe = calloc(1, sizeof *probe);
	if (!probe)
		return error_set(err, -ENOMEM, "out of memory");
	const uint64_t begin = clock_now_ns();
	const int code = probe_device_ask(plan, control, probe, err);
	if (code == 0 || code == -EINTR) {
		const struct cuda_found *found = cuda_find();
		probe_device_keep(probe, found, plan->device, out);
		out->device.seconds = (double)(clock_now_ns() - begin) / (double)NS_PER_S;
		probe_device_note(found, plan, out);
	}
	free(probe);
	return code;
}
