/* sgemm of OpenBLAS over shapes and threads, every cell once a round.  Operands are constants whose
 * product is known, and a cell that computes anything else is an error. */
#include "workloads/backend/probe_gemm.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "workloads/backend/blas.h"
#include "workloads/model/products.h"

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

struct sweep {
	const struct probe_gemm_plan *plan;
	const struct probe_control *control;
	struct cell cells[CELLS_MAX];
	size_t cell_count;
	struct memory_block a, b, c;
};

static double probe_gemm_cell_flops(const struct cell *cell)
{
	return 2.0 * (double)cell->m * (double)cell->n * (double)cell->k;
}

/* --- what to measure ----------------------------------------------------------------------------- */

static void probe_gemm_add_squares(struct sweep *sweep, unsigned threads)
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

static void probe_gemm_add_product(struct sweep *sweep, const struct model_product *product)
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

static int probe_gemm_add_model(struct sweep *sweep, struct error *err)
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

static int probe_gemm_open_operands(struct sweep *sweep, struct error *err)
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

/* --- measuring ----------------------------------------------------------------------------------- */

static int probe_gemm_set_threads(unsigned threads, struct error *err)
{
	const int code =
		(int)threads > blas->get_num_threads() ? blas_check_room((int)threads, err) : 0;
	if (code < 0)
		return code;
	blas->set_num_threads((int)threads);
	if (blas->get_num_threads() == (int)threads)
		return 0;
	return error_set(err, -ENOTSUP, "openblas was built for %d threads, not %u",
		blas->get_num_threads(), threads);
}

static void probe_gemm_multiply(const struct sweep *sweep, long long m, long long n, long long k)
{
	blas->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)m, (blasint)n, (blasint)k,
		1, sweep->a.data, (blasint)k, sweep->b.data, (blasint)n, 0, sweep->c.data,
		(blasint)n);
}

/* The first and the last element; sums of so many equal terms are exact in float. */
static bool probe_gemm_is_right(const struct sweep *sweep, const struct cell *cell)
{
	static const double TOLERANCE = 1e-5;
	const float *c = sweep->c.data;
	const double want = (double)cell->k * (double)(LEFT * RIGHT);
	const size_t last = (size_t)cell->m * (size_t)cell->n - 1;
	return fabs((double)c[0] - want) <= TOLERANCE * want &&
	       fabs((double)c[last] - want) <= TOLERANCE * want;
}

static int probe_gemm_measure_cell(struct sweep *sweep, struct cell *cell, struct error *err)
{
	const int code = probe_gemm_set_threads(cell->threads, err);
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
	probe_add(&cell->flops,
		calls * probe_gemm_cell_flops(cell) * (double)NS_PER_S / (double)(now - begin));
	return 0;
}

static int probe_gemm_measure_rounds(struct sweep *sweep, struct error *err)
{
	const struct probe_control *control = sweep->control;
	int code = 0;
	for (unsigned round = 0; round < control->rounds && !code; round++)
		for (size_t i = 0; i < sweep->cell_count && !code; i++) {
			if (probe_time_over(control))
				return 0;
			code = probe_gemm_measure_cell(sweep, &sweep->cells[i], err);
		}
	return code;
}

/* --- results ------------------------------------------------------------------------------------- */

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
static void probe_gemm_keep_best(const struct sweep *sweep, struct ceilings *out)
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

static void probe_gemm_keep(const struct sweep *sweep, struct ceilings *out)
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
		ceilings_lack(out, "gemm: %zu of %zu shapes, for want of time", unseen,
			sweep->cell_count);
}

int probe_gemm(const struct probe_gemm_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err)
{
	const int threads_before = omp_get_max_threads();
	char why[ERROR_TEXT_BYTES];
	if (!blas_find(why, sizeof why))
		return error_set(err, -ENOTSUP, "%s", why);
	struct sweep *sweep = calloc(1, sizeof *sweep);
	if (!sweep)
		return error_set(err, -ENOMEM, "out of memory");
	sweep->plan = plan;
	sweep->control = control;
	probe_gemm_add_squares(sweep, 1);
	probe_gemm_add_squares(sweep, plan->all_threads ? plan->all_threads : probe_cores());
	if (plan->model)
		probe_gemm_add_squares(sweep, plan->threads);
	int code = plan->model ? probe_gemm_add_model(sweep, err) : 0;
	if (!code)
		code = probe_gemm_open_operands(sweep, err);
	if (!code)
		code = probe_gemm_measure_rounds(sweep, err);
	probe_gemm_keep(sweep, out);
	memory_unmap(&sweep->a);
	memory_unmap(&sweep->b);
	memory_unmap(&sweep->c);
	free(sweep);
	blas->set_num_threads(threads_before);
	return probe_stopped(control) ? -EINTR : code;
}
