/* Roofline of the step (S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009): FLOP/s over FLOP per byte, under what the
 * memory and the arithmetic of the device can give at best.  Bytes are compulsory traffic: of every matrix product its
 * two operands and its result, once each, forward, for the gradient of the data and for that of the weights, at the size
 * of the products' precision.  A real step moves more; so its intensity is at most what is drawn. */
#include "harness/analyze/summary.h"
#include "harness/base/units.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOFLINE_ROOFS_MAX = 3, ROOFLINE_WORDS_BYTES = 2 * PARTS_TEXT_BYTES, ROOFLINE_PASSES = 3 };

static const double GIGA = 1e9;
static const double TERA = 1e12;
static const double NS = 1e-9;
static const double ROOFLINE_BESIDE = 4; /* the axis goes so many times beyond what is drawn */

enum roofline_kind { KIND_STEP, KIND_PROBED, KIND_PRODUCT, KINDS };

static const struct chart_ink roofline_kinds[KINDS] = {
	[KIND_STEP] = {"the step, measured", PALETTE_BINDS, "diamond"},
	[KIND_PROBED] = {"one of its products alone, by probe", PALETTE_WORKING, "square"},
	[KIND_PRODUCT] = {"one of its products, where the roof is", PALETTE_OTHER, "circle"}};

/* What limits: a level, or the memory's slope. */
struct roof {
	char name[PARTS_TEXT_BYTES];
	double flops; /* per second */
};

struct roofline {
	const struct record *record;
	const struct point_summary *p;
	double batch, element; /* samples; bytes of a number */
	char precision[NAME_BYTES];
	double flops, bytes;                   /* of a step on one device */
	double achieved;                       /* FLOP/s; NAN: not measured */
	struct roof roofs[ROOFLINE_ROOFS_MAX]; /* what was measured before what is published */
	size_t roof_count;
	double bandwidth;                  /* bytes/s; NAN: not known */
	char source[ROOFLINE_WORDS_BYTES]; /* of it all */
	double left, right;                /* ends of the axis, FLOP per byte */
	json_t *rows;
};

struct roofline_traffic {
	double m;                      /* rows of one product */
	double products, flops, bytes; /* of all passes of all products of the shape */
};

static const struct page_column roofline_columns[] = {
	{"what", "What", PAGE_TEXT},
	{"kind", "Kind", PAGE_TEXT},
	{"shape", "Rows x columns x inner", PAGE_TEXT},
	{"count", "Products in a step", PAGE_COUNT},
	{"gflop", "GFLOP", PAGE_REAL},
	{"bytes", "Operands and results", PAGE_BYTES},
	{"intensity", "FLOP per byte", PAGE_REAL},
	{"gflops", "GFLOP/s reached", PAGE_REAL},
	{"roof", "GFLOP/s of the roof", PAGE_REAL},
	{"share", "Share of the roof", PAGE_SHARE},
};

/* --- counting products, and roofs ------------------------------------------------------------- */

static struct roofline_traffic roofline_traffic_of(
	const struct roofline *view, const struct step_product *product)
{
	struct roofline_traffic t = {.m = product->m * (product->weights ? view->batch : 1)};
	const double n = product->n;
	const double k = product->k;
	const double forward = product->count * (product->weights ? 1 : view->batch);
	const double one = product->first ? 1 : 0; /* whose data gets no gradient */
	t.products = ROOFLINE_PASSES * forward - one;
	t.flops = t.products * 2 * t.m * n * k;
	t.bytes = t.products * (t.m * k + k * n + t.m * n) * view->element;
	return t;
}

static void roofline_count(struct roofline *view)
{
	for (size_t i = 0; i < view->record->step.product_count; i++) {
		const struct roofline_traffic t =
			roofline_traffic_of(view, &view->record->step.products[i]);
		view->flops += t.flops;
		view->bytes += t.bytes;
	}
}

static double roofline_bytes_of(const char *precision)
{
	static const struct {
		const char *name;
		double bytes;
	} sizes[] = {{"fp32", 4}, {"tf32", 4}, {"bf16", 2}, {"fp16", 2}, {"fp8", 1}};
	for (size_t i = 0; i < PARTS_COUNT(sizes); i++)
		if (strcmp(precision, sizes[i].name) == 0)
			return sizes[i].bytes;
	return NAN;
}

/* --- roofs ------------------------------------------------------------------------------------ */

static void roofline_add_roof(struct roofline *view, double flops, const char *name)
{
	if (!isfinite(flops) || flops <= 0 || view->roof_count == ROOFLINE_ROOFS_MAX)
		return;
	struct roof *roof = &view->roofs[view->roof_count++];
	roof->flops = flops;
	(void)snprintf(roof->name, sizeof roof->name, "%s", name);
}

static enum step_precision roofline_precision(const char *name)
{
	static const char *const names[] = {"fp32", "tf32", "bf16", "fp16", "fp8"};
	size_t i = 0;
	while (i + 1 < PARTS_COUNT(names) && strcmp(names[i], name) != 0)
		i++;
	return (enum step_precision)i;
}

static void roofline_of_device(struct roofline *view, const struct device_measurement *device)
{
	const struct record *record = view->record;
	const struct device_ceiling *probed = &record->ceilings.device;
	const struct device_peak *peak = peak_find(device->name);
	const bool is_probed = record->has_ceilings && record->ceilings.has_device &&
			       !probed->test_double && strcmp(probed->name, device->name) == 0;
	char words[PARTS_TEXT_BYTES];
	if (is_probed) {
		(void)snprintf(
			words, sizeof words, "best square product in %s, probed", view->precision);
		roofline_add_roof(
			view, ceilings_device_flops(&record->ceilings, view->precision), words);
		view->bandwidth = probed->memory_bytes_per_s;
	}
	(void)snprintf(words, sizeof words, "published peak in %s, dense", view->precision);
	roofline_add_roof(
		view, peak_flops(device->name, roofline_precision(view->precision)), words);
	(void)snprintf(view->source, sizeof view->source, "%s%s%s%s",
		is_probed
			? "Roofs are measured on this node (mlbench probe)"
			: "The device was not probed (mlbench probe), so the roof of its memory is "
			  "unknown",
		peak ? "; the published peak is from: " : "; no published peak is known of it",
		peak ? peak->source : "", ".");
}

static void roofline_of_cpu(struct roofline *view, unsigned threads)
{
	const struct record *record = view->record;
	char words[PARTS_TEXT_BYTES];
	if (!record->has_ceilings) {
		(void)snprintf(view->source, sizeof view->source,
			"The node was not probed (mlbench probe) before this run, so no roof is known.");
		return;
	}
	(void)snprintf(words, sizeof words, "best square product on %u %s, probed", threads,
		threads == 1 ? "thread" : "threads");
	roofline_add_roof(view, ceilings_best_flops(&record->ceilings, threads), words);
	view->bandwidth = threads == 1 ? record->ceilings.memory_bytes_per_s_one
				       : record->ceilings.memory_bytes_per_s_all;
	(void)snprintf(view->source, sizeof view->source,
		"Roofs are measured on this node (mlbench probe): the best square product on %u %s, and the memory's triad on %s.",
		threads, threads == 1 ? "thread" : "threads",
		threads == 1 ? "one core" : "all cores");
	if (view->roof_count == 0)
		(void)snprintf(view->source, sizeof view->source,
			"No product was probed on %u threads (mlbench probe), so the arithmetic roof is "
			"unknown.",
			threads);
}

static double roofline_attainable(const struct roofline *view, double intensity)
{
	double most = view->roof_count > 0 ? view->roofs[0].flops : (double)NAN;
	for (size_t i = 1; i < view->roof_count; i++)
		most = fmin(most, view->roofs[i].flops);
	return isfinite(view->bandwidth)
		       ? fmin(view->bandwidth * intensity, isfinite(most) ? most : HUGE_VAL)
		       : most;
}

/* --- rows ------------------------------------------------------------------------------------- */

struct dot {
	enum roofline_kind kind;
	const char *what, *shape;
	double count, flops, bytes, achieved;
};

static void roofline_add_row(struct roofline *view, const struct dot *dot)
{
	const double intensity = dot->flops / dot->bytes;
	const double roof = roofline_attainable(view, intensity);
	const double drawn = isfinite(dot->achieved) ? dot->achieved : roof;
	struct part row = part_open();
	part_put(&row, "what", parts_text(dot->what));
	part_put(&row, "kind", json_string(roofline_kinds[dot->kind].name));
	part_put(&row, "shape", parts_text(dot->shape));
	part_put(&row, "count", parts_number(dot->count));
	part_put(&row, "gflop", parts_number(dot->flops / GIGA));
	part_put(&row, "bytes", parts_number(dot->bytes));
	part_put(&row, "intensity", parts_number(intensity));
	part_put(&row, "gflops", parts_number(dot->achieved / GIGA));
	part_put(&row, "roof", parts_number(roof / GIGA));
	part_put(&row, "share", parts_number(dot->achieved / roof));
	part_put(&row, "y", parts_number(drawn));
	parts_append(&view->rows, part_close(&row));
	if (intensity > 0) {
		view->left = fmin(view->left, intensity);
		view->right = fmax(view->right, intensity);
	}
}

static void roofline_shape(double m, double n, double k, char out[PARTS_TEXT_BYTES])
{
	(void)snprintf(out, PARTS_TEXT_BYTES, "%.0f x %.0f x %.0f", m, n, k);
}

static void roofline_add_step(struct roofline *view)
{
	double products = 0;
	for (size_t i = 0; i < view->record->step.product_count; i++)
		products += roofline_traffic_of(view, &view->record->step.products[i]).products;
	roofline_add_row(view, &(const struct dot){KIND_STEP, "step", "", products, view->flops,
				       view->bytes, view->achieved});
}

static void roofline_add_products(struct roofline *view)
{
	for (size_t i = 0; i < view->record->step.product_count; i++) {
		const struct step_product *product = &view->record->step.products[i];
		const struct roofline_traffic t = roofline_traffic_of(view, product);
		char shape[PARTS_TEXT_BYTES];
		roofline_shape(t.m, product->n, product->k, shape);
		if (t.flops > 0)
			roofline_add_row(view, &(const struct dot){KIND_PRODUCT, product->name,
						       shape, t.products, t.flops, t.bytes, NAN});
	}
}

static void roofline_add_probed(
	struct roofline *view, const char *name, double m, double n, double k, double flops)
{
	char shape[PARTS_TEXT_BYTES];
	roofline_shape(m, n, k, shape);
	if (isfinite(flops) && flops > 0)
		roofline_add_row(
			view, &(const struct dot){KIND_PROBED, name, shape, 1, 2 * m * n * k,
				      (m * k + k * n + m * n) * view->element, flops});
}

static void roofline_add_probed_of_cpu(struct roofline *view, unsigned threads)
{
	const struct ceilings *c = &view->record->ceilings;
	if (!view->record->has_ceilings || strcmp(c->model, view->record->step.model) != 0)
		return;
	for (size_t i = 0; i < c->gemm_count; i++)
		if (!c->gemms[i].is_best && c->gemms[i].threads == threads)
			roofline_add_probed(view, c->gemms[i].name, (double)c->gemms[i].m,
				(double)c->gemms[i].n, (double)c->gemms[i].k, c->gemms[i].flops);
}

static void roofline_add_probed_of_device(struct roofline *view, const char *name)
{
	const struct ceilings *c = &view->record->ceilings;
	if (!view->record->has_ceilings || !c->has_device || c->device.test_double ||
		strcmp(c->model, view->record->step.model) != 0 ||
		strcmp(c->device.name, name) != 0)
		return;
	for (size_t i = 0; i < c->device.gemm_count; i++) {
		const struct device_gemm_ceiling *gemm = &c->device.gemms[i];
		if (!gemm->is_best && strcmp(gemm->precision, view->precision) == 0)
			roofline_add_probed(view, gemm->name, (double)gemm->m, (double)gemm->n,
				(double)gemm->k, gemm->flops);
	}
}

/* --- the picture ------------------------------------------------------------------------------ */

/* Both ends of each roof, and the ridge where they meet. */
static json_t *roofline_roofs(const struct roofline *view)
{
	json_t *values = json_array();
	double highest = 0;
	for (size_t i = 0; i < view->roof_count; i++) {
		const struct roof *roof = &view->roofs[i];
		const double ridge = roof->flops / view->bandwidth;
		const double from =
			isfinite(ridge) ? fmax(fmin(ridge, view->right), view->left) : view->left;
		highest = fmax(highest, roof->flops);
		parts_append(&values, json_pack("{s:o, s:o, s:s}", "intensity", parts_number(from),
					      "y", parts_number(roof->flops), "roof", roof->name));
		parts_append(&values,
			json_pack("{s:o, s:o, s:s}", "intensity", parts_number(view->right), "y",
				parts_number(roof->flops), "roof", roof->name));
	}
	if (isfinite(view->bandwidth)) {
		const double ridge = highest > 0 ? highest / view->bandwidth : view->right;
		const double to = fmin(fmax(ridge, view->left), view->right);
		parts_append(&values,
			json_pack("{s:o, s:o, s:s}", "intensity", parts_number(view->left), "y",
				parts_number(view->left * view->bandwidth), "roof", "memory"));
		parts_append(
			&values, json_pack("{s:o, s:o, s:s}", "intensity", parts_number(to), "y",
					 parts_number(to * view->bandwidth), "roof", "memory"));
	}
	return values;
}

/* --- what it says ----------------------------------------------------------------------------- */

/* "72.2 GFLOP/s" */
static const char *roofline_rate(double flops, char out[UNITS_BYTES])
{
	const bool tera = flops >= TERA;
	(void)snprintf(out, UNITS_BYTES, "%s %sFLOP/s",
		UNITS_PLAIN(flops / (tera ? TERA : GIGA), 4), tera ? "T" : "G");
	return out;
}

static void roofline_say_count(const struct roofline *view, struct buffer *out)
{
	char bytes[UNITS_BYTES];
	buffer_format(out,
		"A step of %.0f samples of %s is %s GFLOP of matrix products, and both operands and the result of each of them, once, are %s: %s FLOP per byte",
		view->batch, view->record->step.model, UNITS_PLAIN(view->flops / GIGA, 4),
		units_format_size(view->bytes, bytes), UNITS_PLAIN(view->flops / view->bytes, 3));
	buffer_format(out,
		" (at %.0f %s a number; forward, gradients of data and of weights; weight updates and other work are not counted). ",
		view->element, view->element == 1 ? "byte" : "bytes");
}

static void roofline_say_reached(const struct roofline *view, struct buffer *out)
{
	char share[UNITS_BYTES];
	char rate[UNITS_BYTES];
	const double intensity = view->flops / view->bytes;
	const double roof = roofline_attainable(view, intensity);
	const bool memory = isfinite(view->bandwidth) && view->bandwidth * intensity <= roof;
	if (!isfinite(view->achieved)) {
		buffer_text(out, "The duration of its steps is unknown. ");
		return;
	}
	buffer_format(
		out, "It ran at %s in %s", roofline_rate(view->achieved, rate), view->precision);
	if (isfinite(roof) && memory && view->achieved > roof)
		buffer_format(out,
			", more than the %s that memory alone could feed at so many FLOP per byte: some of that traffic stays in caches",
			roofline_rate(roof, rate));
	else if (isfinite(roof))
		buffer_format(out, ", %s of the %s that its %s allows there",
			units_format_share(view->achieved / roof, share), roofline_rate(roof, rate),
			memory ? "memory" : "arithmetic");
	buffer_text(out, ". ");
}

/* --- all of it -------------------------------------------------------------------------------- */

/* The products are those of the first point. */
static bool roofline_is_of_point(const struct report *report, size_t point)
{
	const struct record *record = report->record;
	for (size_t axis = 0; axis < record->config.axis_count; axis++) {
		const enum key_id key = record->config.axes[axis].key;
		const bool changes = key == KEY_STEP_MODEL || key == KEY_STEP_BACKEND ||
				     config_shapes_samples(key);
		if (changes && record->grid.choice[point * record->grid.axis_count + axis] !=
				       record->grid.choice[axis])
			return false;
	}
	return true;
}

static double roofline_step_seconds(const struct point_summary *p)
{
	for (size_t i = 0; i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_STEP) && p->stages[i].service.count > 0)
			return histogram_mean(&p->stages[i].service) * NS;
	return NAN;
}

static void roofline_measure(struct roofline *view, const struct config *config)
{
	const struct point_summary *p = view->p;
	const unsigned threads = (unsigned)config_integer(config, KEY_STEP_THREADS);
	const struct device_measurement *device = p->device_count > 0 ? &p->devices[0].all : NULL;
	if (device) {
		view->achieved = device->achieved_flops;
		roofline_of_device(view, device);
	} else {
		view->achieved = view->flops / roofline_step_seconds(p);
		roofline_of_cpu(view, threads);
	}
	roofline_add_step(view);
	roofline_add_products(view);
	if (device)
		roofline_add_probed_of_device(view, device->name);
	else
		roofline_add_probed_of_cpu(view, threads);
}

static void roofline_choose_precision(struct roofline *view, const struct config *config)
{
	char text[CONFIG_VALUE_BYTES];
	const bool device = view->p->device_count > 0 && view->p->devices[0].all.precision[0];
	/* Without a device, auto is what the CPU computes in. */
	const bool is_auto = config_integer(config, KEY_STEP_PRECISION) == STEP_PRECISION_AUTO;
	(void)snprintf(view->precision, sizeof view->precision, "%s",
		device    ? view->p->devices[0].all.precision
		: is_auto ? "fp32"
			  : config_format_value(KEY_STEP_PRECISION,
				    &config->values[KEY_STEP_PRECISION], text, sizeof text));
	view->element = roofline_bytes_of(view->precision);
	view->batch = (double)config_integer(config, KEY_BATCH_SIZE);
}

static void roofline_find(const struct roofline *view, struct buffer *out)
{
	char share[UNITS_BYTES];
	char rate[UNITS_BYTES];
	const double intensity = view->flops / view->bytes;
	const double roof = roofline_attainable(view, intensity);
	const bool memory = isfinite(view->bandwidth) && view->bandwidth * intensity <= roof;
	if (isfinite(view->achieved) && isfinite(roof) && view->achieved <= roof)
		buffer_format(out, "The step reaches %s of what its %s allows",
			units_format_share(view->achieved / roof, share),
			memory ? "memory" : "arithmetic");
	else if (isfinite(view->achieved))
		buffer_format(out, "The step runs at %s", roofline_rate(view->achieved, rate));
}

static void roofline_draw(const struct roofline *view, struct chart *chart)
{
	chart_open(chart, "roofline");
	chart_legend(chart, "kind", "y", roofline_kinds, KINDS);
	chart_param(chart, "left", parts_number(view->left));
	chart_param(chart, "right", parts_number(view->right));
	chart_data(chart, "roofs", roofline_roofs(view));
}

static int roofline_build(struct roofline *view, const struct config *config, struct chart *chart)
{
	roofline_choose_precision(view, config);
	roofline_count(view);
	if (!isfinite(view->element) || !(view->flops > 0))
		return chart_why_not(
			chart, "The size of the step's numbers (%s) is unknown.", view->precision);
	PARTS_COLUMNS(chart, roofline_columns);
	view->left = view->right = view->flops / view->bytes;
	roofline_measure(view, config);
	chart->table.rows = view->rows;
	if (!isfinite(view->achieved) && view->roof_count == 0 && !isfinite(view->bandwidth))
		return chart_why_not(chart,
			"Neither the duration of a step nor the ceilings of the node (mlbench probe) "
			"are known.");
	view->left /= ROOFLINE_BESIDE;
	view->right *= ROOFLINE_BESIDE;
	roofline_find(view, &chart->finding);
	roofline_say_count(view, &chart->text);
	roofline_say_reached(view, &chart->text);
	buffer_text(&chart->text, view->source);
	roofline_draw(view, chart);
	return chart_done(chart);
}

static int roofline_refuse(const struct chart_input *input, struct chart *chart)
{
	const struct step_info *step = &input->report->record->step;
	const struct point_summary *p = parts_point(input);
	if (!p || p->status == POINT_FAILED)
		return chart_why_not(chart, "No point has been measured.");
	if (p->facts.step_null)
		return chart_why_not(chart, "The step computes nothing (step.backend = null).");
	if (step->emulated)
		return chart_why_not(
			chart, "The step is emulated: its time is published, not computed.");
	if (step->product_count == 0)
		return chart_why_not(chart,
			"The matrix products of the model '%.*s' are unknown to this result.",
			NAME_BYTES, step->model);
	return chart_why_not(chart,
		"The result has the products of its first point's model alone; point %zu has another.",
		input->point);
}

int chart_roofline(const struct chart_input *input, struct chart *chart)
{
	const struct record *record = input->report->record;
	const struct point_summary *p = parts_point(input);
	struct config config = {0};
	if (!p || p->status == POINT_FAILED || p->facts.step_null || record->step.emulated ||
		record->step.product_count == 0 ||
		!roofline_is_of_point(input->report, input->point))
		return roofline_refuse(input, chart);
	struct roofline *view = calloc(1, sizeof *view);
	struct error err;
	if (!view ||
		config_grid_point(&record->config, &record->grid, input->point, &config, &err)) {
		free(view);
		return -ENOMEM;
	}
	*view = (struct roofline){
		.record = record, .p = p, .achieved = NAN, .bandwidth = NAN, .rows = json_array()};
	const int code = roofline_build(view, &config, chart);
	if (!chart->table.rows)
		json_decref(view->rows);
	config_release(&config);
	free(view);
	return code;
}
