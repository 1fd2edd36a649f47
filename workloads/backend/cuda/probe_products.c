/* Matrix products through cuBLASLt: squares in every precision, and a model's largest products in one.
 *
 * Operands are random: zeros draw less power and allow higher clocks than training does.  One
 * pattern a type, of a prime number of elements, is repeated over the operands, so that what a product should give is known
 * without copying them back.
 *
 * Whether products are right is asked afterwards, of whole numbers from -1 to 1: their sums are exact however a device adds
 * them up, in fp8 too, where Hopper keeps some 13 bits beside the largest addend while it adds. */
#include "workloads/backend/cuda/device_probe.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "workloads/backend/cuda/gemm.h"
#include "workloads/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- element types as bits: all are a sign, an exponent and a fraction, so one function serves them --- */

enum { EXPONENTS = 4, WHOLES = 3 /* -1, 0, 1 */, BYTE_BITS = 8 };

struct format {
	unsigned bytes, fraction_bits, exponent_bits;
	int bias;
};

static struct format formats_of(enum element type)
{
	switch (type) {
	case ELEMENT_BF16:
		return (struct format){2, 7, 8, 127};
	case ELEMENT_F16:
		return (struct format){2, 10, 5, 15};
	case ELEMENT_E4M3:
		return (struct format){1, 3, 4, 7};
	case ELEMENT_E5M2:
		return (struct format){1, 2, 5, 15};
	case ELEMENT_F32:
	default:
		return (struct format){4, 23, 8, 127};
	}
}

void formats_fill(enum element type, void *elements, size_t count)
{
	const struct format format = formats_of(type);
	struct rng rng;
	rng_init(&rng, (uint64_t)type, count);
	for (size_t i = 0; i < count; i++) {
		const uint64_t random = rng_next(&rng);
		const uint32_t fraction =
			(uint32_t)(random >> 8) & ((1U << format.fraction_bits) - 1);
		const uint32_t exponent =
			(uint32_t)format.bias - 1 - (uint32_t)(random % EXPONENTS);
		const uint32_t sign = (uint32_t)(random >> 63) << (BYTE_BITS * format.bytes - 1);
		const uint32_t bits = sign | exponent << format.fraction_bits | fraction;
		memcpy((char *)elements + i * format.bytes, &bits,
			format.bytes); /* little-endian */
	}
}

void formats_fill_whole(enum element type, void *elements, size_t count)
{
	const struct format format = formats_of(type);
	struct rng rng;
	rng_init(&rng, (uint64_t)type, count);
	for (size_t i = 0; i < count; i++) {
		const uint64_t random = rng_next(&rng);
		const uint32_t one = (uint32_t)format.bias << format.fraction_bits |
				     (uint32_t)(random >> 63) << (BYTE_BITS * format.bytes - 1);
		const uint32_t bits = random % WHOLES ? one : 0;
		memcpy((char *)elements + i * format.bytes, &bits, format.bytes);
	}
}

double formats_value(enum element type, const void *elements, size_t index)
{
	const struct format format = formats_of(type);
	uint32_t bits = 0;
	memcpy(&bits, (const char *)elements + index * format.bytes, format.bytes);
	const uint32_t most = (1U << format.exponent_bits) - 1;
	const uint32_t fraction = bits & ((1U << format.fraction_bits) - 1);
	const uint32_t exponent = bits >> format.fraction_bits & most;
	const double sign = bits >> (BYTE_BITS * format.bytes - 1) & 1 ? -1 : 1;
	const double part = ldexp((double)fraction, -(int)format.fraction_bits);
	if (exponent == 0)
		return sign * ldexp(part, 1 - format.bias);
	if (exponent == most && type != ELEMENT_E4M3) /* which has no infinities */
		return fraction ? NAN : sign * INFINITY;
	if (exponent == most && fraction == (1U << format.fraction_bits) - 1)
		return NAN;
	return sign * ldexp(1 + part, (int)exponent - format.bias);
}

/* --- products --------------------------------------------------------------------------------- */

enum {
	TYPES = ELEMENT_E4M3 + 1,
	PATTERN = 1048573, /* a prime */
	EDGE_LEAST = 64,
	EDGE_MOST = 8192,
	SQUARES = 2, /* the largest edge, and half of it */
	PRODUCT_CANDIDATES = 8,
	PADDING = 16, /* elements that the beginning of a row is a multiple of */
	PRODUCT_SHARE_OF_FREE = 4,
	PRODUCTS_LISTED = 256,
};

static const size_t WORKSPACE = (size_t)32 << 20;
static const double RUN_MOST_NS = 1e8; /* of one product in fp32: larger ones are not tried */
static const double GROWTH = 8;        /* of the time, for twice the edge */

struct product {
	struct gemm_problem problem;
	struct gemm_plan *plan;
	struct cuda_probe_gemm *out;
};

struct probing_products {
	struct gemm_context *context;
	void *left[TYPES], *right[TYPES]; /* operand_bytes(type) each */
	void *result;                     /* of fp32 */
	float *one;                       /* on the device: scale of fp8 operands */
	void *patterns[TYPES];            /* (PATTERN) elements, in host memory */
	size_t operand_elements;
	struct product list[CUDA_PROBE_GEMMS_MAX];
	size_t count;
};

static enum element product_operand_type(enum step_precision precision)
{
	static const enum element types[] = {[STEP_PRECISION_FP32] = ELEMENT_F32,
		[STEP_PRECISION_TF32] = ELEMENT_F32,
		[STEP_PRECISION_BF16] = ELEMENT_BF16,
		[STEP_PRECISION_FP16] = ELEMENT_F16,
		[STEP_PRECISION_FP8] = ELEMENT_E4M3};
	return types[precision];
}

static enum element product_result_type(enum step_precision precision)
{
	return precision == STEP_PRECISION_FP8 ? ELEMENT_BF16 : product_operand_type(precision);
}

static uint64_t product_padded(uint64_t elements)
{
	return (elements + PADDING - 1) / PADDING * PADDING;
}

/* fp8 has one form only, and dimensions in multiples of 16. */
static struct gemm_problem product_problem(
	enum step_precision precision, uint64_t m, uint64_t n, uint64_t k)
{
	const bool fp8 = precision == STEP_PRECISION_FP8;
	struct gemm_problem problem = {.m = fp8 ? product_padded(m) : m,
		.n = fp8 ? product_padded(n) : n,
		.k = fp8 ? product_padded(k) : k,
		.b_transposed = fp8,
		.a_type = product_operand_type(precision),
		.b_type = product_operand_type(precision),
		.d_type = product_result_type(precision),
		.precision = precision,
		.batch = 1,
		.epilogue = GEMM_PLAIN,
		.fast_sums = fp8};
	problem.lda = product_padded(problem.k);
	problem.ldb = product_padded(fp8 ? problem.k : problem.n);
	problem.ldd = product_padded(problem.n);
	return problem;
}

static int product_run(struct probing *probing, const void *what, struct error *err)
{
	const struct product *product = what;
	const struct probing_products *all = probing->products;
	const enum element type = product->problem.a_type;
	const struct gemm_operands operands = {.a = all->left[type],
		.b = all->right[type],
		.d = all->result,
		.alpha = 1,
		.a_scale = all->one,
		.b_scale = all->one};
	return gemm_run(product->plan, &operands, probing->stream, err);
}

static int product_visit(
	struct probing *probing, const struct quantity *quantity, double *value, struct error *err)
{
	const struct product *product = quantity->what;
	const struct gemm_problem *problem = &product->problem;
	const double flops = 2.0 * (double)problem->m * (double)problem->n * (double)problem->k;
	double ns;
	OR_RETURN(probing_slot_ns(probing, probing_device_ns, product_run, product, &ns, err));
	*value = ns > 0 ? flops * (double)NS_PER_S / ns : NAN;
	return 0;
}

/* --- operands --------------------------------------------------------------------------------- */

static int product_repeat_pattern(struct probing *probing, void *operand, enum element type,
	size_t elements, struct error *err)
{
	const struct probing_products *all = probing->products;
	const size_t bytes = elements * element_bytes(type);
	size_t done = PATTERN * element_bytes(type);
	done = done < bytes ? done : bytes;
	CUDA_OR_RETURN(err, cudaMemcpyAsync(operand, all->patterns[type], done,
				    cudaMemcpyHostToDevice, probing->stream));
	while (done < bytes) {
		const size_t more = done < bytes - done ? done : bytes - done;
		CUDA_OR_RETURN(err, cudaMemcpyAsync((char *)operand + done, operand, more,
					    cudaMemcpyDeviceToDevice, probing->stream));
		done += more;
	}
	return CUDA_TRY(err, cudaStreamSynchronize(probing->stream));
}

static int product_open_operands(
	struct probing *probing, enum element type, size_t elements, struct error *err)
{
	struct probing_products *all = probing->products;
	const size_t bytes = elements * element_bytes(type);
	if (all->left[type])
		return 0;
	if (!all->patterns[type]) {
		all->patterns[type] = malloc((size_t)PATTERN * element_bytes(type));
		if (!all->patterns[type])
			return error_set(err, -ENOMEM, "cuda: out of memory for random operands");
		formats_fill(type, all->patterns[type], PATTERN);
	}
	CUDA_OR_RETURN(err, cudaMalloc(&all->left[type], bytes));
	CUDA_OR_RETURN(err, cudaMalloc(&all->right[type], bytes));
	OR_RETURN(product_repeat_pattern(probing, all->left[type], type, elements, err));
	return product_repeat_pattern(probing, all->right[type], type, elements, err);
}

static void product_close_operands(struct probing_products *all, enum element type)
{
	release_device(all->left[type]);
	release_device(all->right[type]);
	all->left[type] = all->right[type] = NULL;
}

static int product_open_result(struct probing_products *all, size_t elements, struct error *err)
{
	release_device(all->result);
	all->result = NULL;
	all->operand_elements = elements;
	return CUDA_TRY(err, cudaMalloc(&all->result, elements * sizeof(float)));
}

/* --- are they right? -------------------------------------------------------------------------- */

static int product_check_element(struct probing *probing, const struct product *product,
	uint64_t row, uint64_t column, struct error *err)
{
	const struct probing_products *all = probing->products;
	const struct gemm_problem *problem = &product->problem;
	const void *pattern = all->patterns[problem->a_type];
	const size_t bytes = element_bytes(problem->d_type);
	double sum = 0;
	uint32_t bits = 0;
	for (uint64_t i = 0; i < problem->k; i++) {
		const uint64_t b = problem->b_transposed ? column * problem->ldb + i
							 : i * problem->ldb + column;
		sum += formats_value(problem->a_type, pattern, (row * problem->lda + i) % PATTERN) *
		       formats_value(problem->b_type, pattern, b % PATTERN);
	}
	const char *at = (const char *)all->result + (row * problem->ldd + column) * bytes;
	CUDA_OR_RETURN(err, cudaMemcpy(&bits, at, bytes, cudaMemcpyDeviceToHost));
	const double value = formats_value(problem->d_type, &bits, 0);
	const unsigned kept = formats_of(problem->d_type).fraction_bits;
	if (fabs(value - sum) <= ldexp(fabs(sum), -(int)kept - 1)) /* rounded once, at the end */
		return 0;
	return error_set(err, -EILSEQ,
		"a product of %llu x %llu x %llu in %s gave %.9g instead of %.9g",
		(unsigned long long)problem->m, (unsigned long long)problem->n,
		(unsigned long long)problem->k, gemm_precision_name(problem->precision), value,
		sum);
}

static int product_open_wholes(struct probing *probing, struct error *err)
{
	struct probing_products *all = probing->products;
	for (int type = 0; type < TYPES; type++) {
		if (!all->left[type])
			continue;
		formats_fill_whole((enum element)type, all->patterns[type], PATTERN);
		OR_RETURN(product_repeat_pattern(
			probing, all->left[type], (enum element)type, all->operand_elements, err));
		OR_RETURN(product_repeat_pattern(
			probing, all->right[type], (enum element)type, all->operand_elements, err));
	}
	return 0;
}

static int product_check(struct probing *probing, const struct product *product, struct error *err)
{
	const struct gemm_problem *problem = &product->problem;
	const size_t bytes = problem->m * problem->ldd * element_bytes(problem->d_type);
	/* NAN in every type. */
	CUDA_OR_RETURN(
		err, cudaMemsetAsync(probing->products->result, 0xff, bytes, probing->stream));
	OR_RETURN(product_run(probing, product, err));
	CUDA_OR_RETURN(err, cudaStreamSynchronize(probing->stream));
	OR_RETURN(product_check_element(probing, product, 0, 0, err));
	return product_check_element(probing, product, problem->m - 1, problem->n - 1, err);
}

/* A product that is wrong has no speed; the others keep theirs. */
int probing_check_products(struct probing *probing, struct error *err)
{
	struct probing_products *all = probing->products;
	if (all)
		OR_RETURN(product_open_wholes(probing, err));
	for (size_t i = 0; all && i < all->count; i++) {
		struct cuda_probe_gemm *out = all->list[i].out;
		struct error why = {0};
		const int code =
			out->flops.count > 0 ? product_check(probing, &all->list[i], &why) : 0;
		if (code != 0 && code != -EILSEQ)
			return error_set(err, code, "%s", why.text);
		if (code == 0)
			continue;
		probing_lack(probing, "%s in %s: wrong: %.180s", out->layer,
			gemm_precision_name(out->precision), why.text);
		out->flops.count = 0;
	}
	return 0;
}

/* --- which ------------------------------------------------------------------------------------ */

static int product_open_plan(
	struct probing *probing, struct product *product, unsigned candidates, struct error *err)
{
	const enum element type = product->problem.a_type;
	const int code =
		product_open_operands(probing, type, probing->products->operand_elements, err);
	return code ? code
		    : gemm_plan_open(&product->plan, probing->products->context, &product->problem,
			      candidates, err);
}

/* Adds a quantity; a product that the library lacks becomes a line of missing. */
static void product_add(
	struct probing *probing, const struct gemm_problem *problem, const char *layer)
{
	struct probing_products *all = probing->products;
	struct cuda_probe *out = probing->out;
	struct error err = {0};
	if (all->count == CUDA_PROBE_GEMMS_MAX || probing_stopped(probing))
		return;
	struct product *product = &all->list[all->count];
	*product = (struct product){.problem = *problem, .out = &out->gemms[all->count]};
	if (product_open_plan(probing, product, PRODUCT_CANDIDATES, &err)) {
		probing_lack(probing, "%s in %s: %.180s", layer,
			gemm_precision_name(problem->precision), err.text);
		return;
	}
	all->count++;
	out->gemm_count = all->count;
	*product->out = (struct cuda_probe_gemm){.precision = problem->precision,
		.m = (uint32_t)problem->m,
		.n = (uint32_t)problem->n,
		.k = (uint32_t)problem->k};
	(void)snprintf(product->out->layer, sizeof product->out->layer, "%s", layer);
	(void)probing_add(probing, product_visit, product, &product->out->flops, "%s in %s", layer,
		gemm_precision_name(problem->precision));
}

/* Time of one square product in fp32, the second of two. */
static int product_time_square(
	struct probing *probing, uint64_t edge, double *ns, struct error *err)
{
	struct product product = {
		.problem = product_problem(STEP_PRECISION_FP32, edge, edge, edge)};
	int code = product_open_result(probing->products, (size_t)(edge * edge), err);
	if (code == 0)
		code = product_open_plan(probing, &product, 1, err);
	if (code == 0)
		code = probing_device_ns(probing, product_run, &product, 1, ns, err);
	if (code == 0)
		code = probing_device_ns(probing, product_run, &product, 1, ns, err);
	gemm_plan_close(product.plan);
	product_close_operands(probing->products, ELEMENT_F32);
	return code;
}

/* Twice as large as long as one run stays short and the operands of all types fit: two of 4 + 2 + 2 + 1 bytes an element,
 * and a result of 4. */
static int product_choose_edge(struct probing *probing, uint64_t *edge, struct error *err)
{
	enum { BYTES_AN_ELEMENT = 2 * (4 + 2 + 2 + 1) + 4 };
	size_t is_free = 0;
	size_t total = 0;
	double ns = NAN;
	CUDA_OR_RETURN(err, cudaMemGetInfo(&is_free, &total));
	const double room = (double)is_free / PRODUCT_SHARE_OF_FREE;
	for (*edge = EDGE_LEAST;; *edge *= 2) {
		OR_RETURN(product_time_square(probing, *edge, &ns, err));
		const double next = 4.0 * (double)*edge * (double)*edge * BYTES_AN_ELEMENT;
		if (*edge == EDGE_MOST || GROWTH * ns > RUN_MOST_NS || next > room ||
			probing_stopped(probing))
			break;
	}
	return product_open_result(probing->products, (size_t)(*edge * *edge), err);
}

static void product_add_squares(struct probing *probing, uint64_t edge)
{
	for (int precision = STEP_PRECISION_FP32; precision <= STEP_PRECISION_FP8; precision++)
		for (unsigned i = SQUARES; i-- > 0;) {
			const uint64_t side = edge >> i;
			const struct gemm_problem problem =
				product_problem((enum step_precision)precision, side, side, side);
			const size_t before = probing->products->count;
			product_add(probing, &problem, "square");
			if (probing->products->count == before)
				break; /* nor will it have the next */
		}
}

/* Rows are cut so that a product takes no longer than the largest square, and fits with the padding of its rows.  0: its
 * weights alone are too large. */
static uint64_t product_rows(const struct model_product *product, uint64_t edge)
{
	const struct model_product wide = {.m = product->m,
		.n = (long long)product_padded((uint64_t)product->n),
		.k = (long long)product_padded((uint64_t)product->k)};
	const double widest = (double)(wide.n > wide.k ? wide.n : wide.k);
	const double room = (double)edge * (double)edge;
	if ((double)wide.n * (double)wide.k > room || widest * 2 * PADDING > room)
		return 0;
	return (uint64_t)model_product_rows(
		&wide, 2 * room * (double)edge, room - widest * PADDING);
}

static void product_add_layers(struct probing *probing, uint64_t edge)
{
	const struct cuda_probe_plan *plan = probing->plan;
	const struct model *model = plan->model ? model_find(plan->model) : NULL;
	const struct model_shape shape = {plan->sample_elements, plan->class_count, 0};
	struct model_product *list = calloc(PRODUCTS_LISTED, sizeof *list);
	unsigned large = 0;
	if (plan->model && !model)
		probing_lack(probing, "the products of model '%.40s' are unknown", plan->model);
	const size_t count = model && list ? model_products(model, shape, plan->batch_size, list,
						     PRODUCTS_LISTED)
					   : 0;
	for (size_t i = 0; i < count && i < plan->shapes_most; i++) {
		const uint64_t m = product_rows(&list[i], edge);
		large += m == 0;
		const struct gemm_problem problem = product_problem(
			plan->precision, m, (uint64_t)list[i].n, (uint64_t)list[i].k);
		if (m > 0)
			product_add(probing, &problem, list[i].name);
	}
	if (large > 0)
		probing_lack(probing,
			"%u products of %s: larger than the largest square measured here, %llu",
			large, model->name, (unsigned long long)edge);
	free(list);
}

static int product_open_context(struct probing *probing, struct error *err)
{
	const float one = 1;
	struct probing_products *all = probing->products;
	OR_RETURN(gemm_context_open(&all->context, WORKSPACE, err));
	CUDA_OR_RETURN(err, cudaMalloc((void **)&all->one, sizeof one));
	return CUDA_TRY(err, cudaMemcpy(all->one, &one, sizeof one, cudaMemcpyHostToDevice));
}

void probing_close_products(struct probing *probing)
{
	struct probing_products *all = probing->products;
	if (!all)
		return;
	for (size_t i = 0; i < all->count; i++)
		gemm_plan_close(all->list[i].plan);
	gemm_context_close(all->context);
	for (int type = 0; type < TYPES; type++) {
		product_close_operands(all, (enum element)type);
		free(all->patterns[type]);
	}
	release_device(all->result);
	release_device(all->one);
	free(all);
	probing->products = NULL;
}

/* Without products the rest of a probe is worth having. */
int probing_add_products(struct probing *probing, struct error *err)
{
	struct error why = {0};
	uint64_t edge = 0;
	probing->products = calloc(1, sizeof *probing->products);
	if (!probing->products)
		return error_set(err, -ENOMEM, "cuda: out of memory for products");
	int code = product_open_context(probing, &why);
	if (code == 0)
		code = product_choose_edge(probing, &edge, &why);
	if (code) {
		probing_lack(probing, "products: %.200s", why.text);
		return 0;
	}
	product_add_squares(probing, edge);
	if (!probing_stopped(probing))
		product_add_layers(probing, edge);
	return 0;
}

/* --- the same products again and again -------------------------------------------------------- */

enum { REPEAT_IN_FLIGHT = 64 };

static void product_count(const struct cuda_repeat_plan *plan, unsigned products)
{
	if (plan->done)
		(void)atomic_fetch_add_explicit(plan->done, products, memory_order_relaxed);
}

/* Products that nobody looks at: a few in flight, so that a stop is not waited for. */
static int product_load(struct probing *probing, const struct cuda_repeat_plan *plan,
	const struct product *product, struct error *err)
{
	unsigned in_flight = 0;
	for (unsigned i = 0; i < plan->between && !probing_stopped(probing); i++) {
		OR_RETURN(product_run(probing, product, err));
		if (++in_flight < REPEAT_IN_FLIGHT && i + 1 < plan->between)
			continue;
		CUDA_OR_RETURN(err, cudaStreamSynchronize(probing->stream));
		product_count(plan, in_flight);
		in_flight = 0;
	}
	return CUDA_TRY(err, cudaStreamSynchronize(probing->stream));
}

static int product_repeat(struct probing *probing, const struct cuda_repeat_plan *plan,
	const struct product *product, void *host, struct error *err)
{
	const struct gemm_problem *problem = &product->problem;
	const size_t element = element_bytes(problem->d_type);
	const size_t bytes = (size_t)problem->m * problem->ldd * element;
	void *const result = probing->products->result;
	for (unsigned i = 0; i < plan->times && !probing_stopped(probing); i++) {
		/* What is not written must not look right. */
		CUDA_OR_RETURN(err, cudaMemsetAsync(result, 0xff, bytes, probing->stream));
		const int code = product_run(probing, product, err);
		if (code == -ENOTSUP && i == 0)
			return 0; /* found out when it runs, where no candidates are tried */
		OR_RETURN(code);
		CUDA_OR_RETURN(err, cudaMemcpyAsync(host, result, bytes, cudaMemcpyDeviceToHost,
					    probing->stream));
		CUDA_OR_RETURN(err, cudaStreamSynchronize(probing->stream));
		product_count(plan, 1);
		plan->take(plan->context, problem->precision, host, element);
		OR_RETURN(product_load(probing, plan, product, err));
	}
	return 0;
}

int probing_repeat_product(struct probing *probing, const struct cuda_repeat_plan *plan,
	enum step_precision precision, struct error *err)
{
	const size_t elements = (size_t)plan->edge * plan->edge;
	struct product product = {
		.problem = product_problem(precision, plan->edge, plan->edge, plan->edge)};
	void *const host = malloc(elements * sizeof(float));
	probing->products = calloc(1, sizeof *probing->products);
	int code = host && probing->products
			   ? product_open_context(probing, err)
			   : error_set(err, -ENOMEM, "cuda: out of memory for products");
	if (code == 0)
		code = product_open_result(probing->products, elements, err);
	if (code == 0)
		code = product_open_operands(probing, product.problem.a_type, elements, err);
	/* One candidate, so that it is the same algorithm every time. */
	if (code == 0)
		code = gemm_plan_open(
			&product.plan, probing->products->context, &product.problem, 1, err);
	if (code == 0)
		code = product_repeat(probing, plan, &product, host, err);
	else if (code == -ENOTSUP)
		code = 0; /* the device does not compute it */
	gemm_plan_close(product.plan);
	probing_close_products(probing);
	free(host);
	return code;
}
