/* Roofline of the step (S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009): FLOP/s over FLOP per byte, under what the
 * memory and the arithmetic of the device can give at best.  Bytes are compulsory traffic: of every matrix product its
 * two operands and its result, once each, forward, for the gradient of the data and for that of the weights, at the size
 * of the products' precision.  A real step moves more; so its intensity is at most what is drawn. */
#include "harness/base/units.h"
#include "harness/report/html/palette.h"
#include "harness/report/html/roofline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	HEIGHT_PIXELS = 340,
};

static const double GIGA = 1e9;
static const double TERA = 1e12;
static const double NS = 1e-9;
static const double BESIDE = 4; /* the axis goes so many times beyond what is drawn */

static const struct page_column columns[] = {
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

enum kind { KIND_STEP, KIND_PROBED, KIND_PRODUCT, KINDS };

static const struct {
	const char *name, *colour, *shape;
} kinds[KINDS] = {
	[KIND_STEP] = {"the step, measured", PALETTE_BINDS, "diamond"},
	[KIND_PROBED] = {"one of its products alone, by probe", PALETTE_WORKING, "square"},
	[KIND_PRODUCT] = {"one of its products, where the roof is", PALETTE_OTHER, "circle"},
};

/* --- rows ---------------------------------------------------------------------------------------------- */

struct dot {
	enum kind kind;
	const char *what, *shape;
	double count, flops, bytes, achieved;
};

static void add_row(struct roofline *view, const struct dot *dot)
{
	const double intensity = dot->flops / dot->bytes;
	const double roof = roofline_attainable(view, intensity);
	const double drawn = isfinite(dot->achieved) ? dot->achieved : roof;
	struct part row = part_open();
	part_put(&row, "what", parts_text(dot->what));
	part_put(&row, "kind", json_string(kinds[dot->kind].name));
	part_put(&row, "shape", parts_text(dot->shape));
	part_put(&row, "count", parts_number(dot->count));
	part_put(&row, "gflop", parts_number(dot->flops / GIGA));
	part_put(&row, "bytes", parts_number(dot->bytes));
	part_put(&row, "intensity", parts_number(intensity));
	part_put(&row, "gflops", parts_number(dot->achieved / GIGA));
	part_put(&row, "roof", parts_number(roof / GIGA));
	part_put(&row, "share", parts_number(dot->achieved / roof));
	part_put(&row, "y", parts_number(drawn));
	part_put(&row, "work", parts_number(dot->flops / view->flops));
	parts_append(&view->rows, part_close(&row));
	if (intensity > 0) {
		view->left = fmin(view->left, intensity);
		view->right = fmax(view->right, intensity);
	}
}

static void shape_text(double m, double n, double k, char out[PARTS_TEXT_BYTES])
{
	(void)snprintf(out, PARTS_TEXT_BYTES, "%.0f x %.0f x %.0f", m, n, k);
}

static void add_step(struct roofline *view)
{
	double products = 0;
	for (size_t i = 0; i < view->record->step.product_count; i++)
		products += roofline_traffic_of(view, &view->record->step.products[i]).products;
	add_row(view, &(const struct dot){KIND_STEP, "step", "", products, view->flops, view->bytes,
			      view->achieved});
}

static void add_products(struct roofline *view)
{
	for (size_t i = 0; i < view->record->step.product_count; i++) {
		const struct step_product *product = &view->record->step.products[i];
		const struct roofline_traffic t = roofline_traffic_of(view, product);
		char shape[PARTS_TEXT_BYTES];
		shape_text(t.m, product->n, product->k, shape);
		if (t.flops > 0)
			add_row(view, &(const struct dot){KIND_PRODUCT, product->name, shape,
					      t.products, t.flops, t.bytes, NAN});
	}
}

static void add_probed(
	struct roofline *view, const char *name, double m, double n, double k, double flops)
{
	char shape[PARTS_TEXT_BYTES];
	shape_text(m, n, k, shape);
	if (isfinite(flops) && flops > 0)
		add_row(view, &(const struct dot){KIND_PROBED, name, shape, 1, 2 * m * n * k,
				      (m * k + k * n + m * n) * view->element, flops});
}

static void add_probed_of_cpu(struct roofline *view, unsigned threads)
{
	const struct ceilings *c = &view->record->ceilings;
	if (!view->record->has_ceilings || strcmp(c->model, view->record->step.model) != 0)
		return;
	for (size_t i = 0; i < c->gemm_count; i++)
		if (!c->gemms[i].is_best && c->gemms[i].threads == threads)
			add_probed(view, c->gemms[i].name, (double)c->gemms[i].m,
				(double)c->gemms[i].n, (double)c->gemms[i].k, c->gemms[i].flops);
}

static void add_probed_of_device(struct roofline *view, const char *name)
{
	const struct ceilings *c = &view->record->ceilings;
	if (!view->record->has_ceilings || !c->has_device || c->device.test_double ||
		strcmp(c->model, view->record->step.model) != 0 ||
		strcmp(c->device.name, name) != 0)
		return;
	for (size_t i = 0; i < c->device.gemm_count; i++) {
		const struct device_gemm_ceiling *gemm = &c->device.gemms[i];
		if (!gemm->is_best && strcmp(gemm->precision, view->precision) == 0)
			add_probed(view, gemm->name, (double)gemm->m, (double)gemm->n,
				(double)gemm->k, gemm->flops);
	}
}

/* --- the picture ------------------------------------------------------------------------------------------ */

static json_t *kind_list(const struct roofline *view, size_t which)
{
	json_t *list = json_array();
	for (size_t i = 0; i < KINDS; i++)
		if (i != KIND_STEP || isfinite(view->achieved))
			parts_append(&list, json_string(which == 0   ? kinds[i].name
							: which == 1 ? kinds[i].colour
								     : kinds[i].shape));
	return list;
}

static json_t *kind_channel(const struct roofline *view, size_t which)
{
	return parts_channel_with("kind", "nominal", NULL,
		json_pack("{s:{s:o, s:o}, s:{s:n, s:s, s:i, s:i}}", "scale", "domain",
			kind_list(view, 0), "range", kind_list(view, which), "legend", "title",
			"orient", "top", "columns", 1, "labelLimit", 320));
}

static json_t *tips(void)
{
	static const struct parts_tip list[] = {
		{"what", "what", NULL},
		{"kind", "kind", NULL},
		{"shape", "rows x columns x inner", NULL},
		{"count", "products in a step", ",.4~r"},
		{"gflop", "GFLOP", ",.4~r"},
		{"bytes", "bytes of operands and results", ".4~s"},
		{"intensity", "FLOP per byte", ",.4~r"},
		{"gflops", "GFLOP/s reached", ",.4~r"},
		{"roof", "GFLOP/s of the roof", ",.4~r"},
		{"share", "share of the roof", ".1%"},
		{"work", "share of the step's FLOP", ".1%"},
	};
	return parts_tips(list, PARTS_COUNT(list));
}

static json_t *intensity_channel(const struct roofline *view)
{
	return parts_channel_with("intensity", "quantitative",
		"FLOP per byte of compulsory traffic",
		json_pack("{s:{s:s, s:[oo], s:b}, s:{s:s, s:i}}", "scale", "type", "log", "domain",
			parts_number(view->left), parts_number(view->right), "nice", 0, "axis",
			"format", "~s", "labelSeparation", 8));
}

static json_t *rate_channel(const char *field)
{
	return parts_channel_with(field, "quantitative", "FLOP/s",
		json_pack("{s:{s:s, s:b}, s:{s:s, s:i}}", "scale", "type", "log", "nice", 1, "axis",
			"format", "~s", "labelSeparation", 6));
}

/* Both ends of each roof, and the ridge where they meet. */
static json_t *roof_values(const struct roofline *view)
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

static json_t *roof_names(const struct roofline *view, bool dashes)
{
	json_t *list = json_array();
	for (size_t i = 0; i < view->roof_count; i++)
		parts_append(&list,
			dashes ? parts_dash(i == 0 ? 0 : i) : json_string(view->roofs[i].name));
	if (isfinite(view->bandwidth))
		parts_append(&list, dashes ? parts_dash(3) : json_string("memory"));
	return list;
}

static json_t *roof_layer(const struct roofline *view)
{
	json_t *dash = json_pack("{s:s, s:s, s:{s:o, s:o}, s:{s:n, s:s, s:i, s:s, s:i, s:i}}",
		"field", "roof", "type", "nominal", "scale", "domain", roof_names(view, false),
		"range", roof_names(view, true), "legend", "title", "orient", "top", "columns", 1,
		"symbolType", "stroke", "symbolSize", 250, "labelLimit", 320);
	return json_pack("{s:{s:o}, s:{s:s, s:s, s:f}, s:{s:o, s:o}}", "data", "values",
		roof_values(view), "mark", "type", "line", "color", "var(--ink)", "strokeWidth",
		1.6, "encoding", "y", rate_channel("y"), "strokeDash", dash);
}

static json_t *dots_layer(const struct roofline *view)
{
	json_t *size = json_pack("{s:{s:s, s:i}, s:i}", "condition", "test", "datum.what == 'step'",
		"value", 190, "value", 55);
	return json_pack("{s:[{s:s}], s:{s:s, s:b, s:f}, s:{s:o, s:o, s:o, s:o, s:o}}", "transform",
		"filter", "isValid(datum.y)", "mark", "type", "point", "filled", 1, "opacity", 0.9,
		"encoding", "y", rate_channel("y"), "color", kind_channel(view, 1), "shape",
		kind_channel(view, 2), "size", size, "tooltip", tips());
}

static json_t *roofline_spec(const struct roofline *view)
{
	json_t *layers = json_array();
	if (view->roof_count > 0 || isfinite(view->bandwidth))
		parts_append(&layers, roof_layer(view));
	parts_append(&layers, dots_layer(view));
	return json_pack("{s:{s:s}, s:i, s:{s:o}, s:o}", "data", "name", "rows", "height",
		HEIGHT_PIXELS, "encoding", "x", intensity_channel(view), "layer", layers);
}

/* Where nothing is computed: how intense each product would be, and how much of the work it is. */
static json_t *intensity_spec(const struct roofline *view)
{
	json_t *y = parts_channel_with("work", "quantitative", "share of the step's FLOP",
		json_pack("{s:{s:b}, s:{s:s}}", "scale", "zero", 1, "axis", "format", ".0%"));
	return json_pack(
		"{s:{s:s}, s:i, s:[{s:s}], s:{s:s, s:b, s:i, s:f, s:s}, s:{s:o, s:o, s:o}}", "data",
		"name", "rows", "height", HEIGHT_PIXELS / 2, "transform", "filter",
		"datum.what != 'step'", "mark", "type", "point", "filled", 1, "size", 60, "opacity",
		0.9, "color", PALETTE_OTHER, "encoding", "x", intensity_channel(view), "y", y,
		"tooltip", tips());
}

/* --- what it says -------------------------------------------------------------------------------------------- */

/* "72.2 GFLOP/s" */
static const char *rate_text(double flops, char out[UNITS_BYTES])
{
	const bool tera = flops >= TERA;
	(void)snprintf(
		out, UNITS_BYTES, "%.4g %sFLOP/s", flops / (tera ? TERA : GIGA), tera ? "T" : "G");
	return out;
}

static void say_count(const struct roofline *view, struct buffer *out)
{
	char bytes[UNITS_BYTES];
	buffer_format(out,
		"A step of %.0f samples of %s is %.4g GFLOP of matrix products, and both operands and the result of each of them, once, are %s: %.3g FLOP per byte",
		view->batch, view->record->step.model, view->flops / GIGA,
		units_format_size(view->bytes, bytes), view->flops / view->bytes);
	buffer_format(out,
		" (at %.0f %s a number; forward, gradients of data and of weights; not counted are weight updates and whatever is no product). ",
		view->element, view->element == 1 ? "byte" : "bytes");
}

static void say_reached(const struct roofline *view, struct buffer *out)
{
	char share[UNITS_BYTES];
	char rate[UNITS_BYTES];
	const double intensity = view->flops / view->bytes;
	const double roof = roofline_attainable(view, intensity);
	const bool memory = isfinite(view->bandwidth) && view->bandwidth * intensity <= roof;
	if (!isfinite(view->achieved)) {
		buffer_text(out, "How long its steps took is not known. ");
		return;
	}
	buffer_format(out, "It ran at %s in %s", rate_text(view->achieved, rate), view->precision);
	if (isfinite(roof) && memory && view->achieved > roof)
		buffer_format(out,
			", more than the %s that memory alone could feed at so many FLOP per byte: some of that traffic stays in caches",
			rate_text(roof, rate));
	else if (isfinite(roof))
		buffer_format(out, ", %s of the %s that its %s allows there",
			units_format_share(view->achieved / roof, share), rate_text(roof, rate),
			memory ? "memory" : "arithmetic");
	buffer_text(out, ". ");
}

static void say_emulated(const struct roofline *view, struct buffer *out)
{
	buffer_text(out,
		"The step is emulated: its time is published, not computed, so that nothing is under a roof here. ");
	say_count(view, out);
	buffer_format(out, "Shown is how intense its products would be in %s.", view->precision);
}

/* --- all of it ------------------------------------------------------------------------------------------------ */

/* The products are those of the first point. */
static bool is_of_point(const struct report *report, size_t point)
{
	static const enum key_id keys[] = {KEY_STEP_MODEL, KEY_AUGMENT_SIZE, KEY_STEP_BACKEND};
	const struct record *record = report->record;
	for (size_t axis = 0; axis < record->config.axis_count; axis++)
		for (size_t k = 0; k < PARTS_COUNT(keys); k++)
			if (record->config.axes[axis].key == keys[k] &&
				record->grid.choice[point * record->grid.axis_count + axis] !=
					record->grid.choice[axis])
				return false;
	return true;
}

static double seconds_of_step(const struct point_summary *p)
{
	for (size_t i = 0; i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_STEP) && p->stages[i].service.count > 0)
			return histogram_mean(&p->stages[i].service) * NS;
	return NAN;
}

static void measure(struct roofline *view, const struct config *config)
{
	const struct point_summary *p = view->p;
	const unsigned threads = (unsigned)config_integer(config, KEY_STEP_THREADS);
	const struct device_measurement *device = p->device_count > 0 ? &p->devices[0].all : NULL;
	if (view->record->step.emulated)
		return;
	if (device) {
		view->achieved = device->achieved_flops;
		roofline_of_device(view, device);
	} else {
		view->achieved = view->flops / seconds_of_step(p);
		roofline_of_cpu(view, threads);
	}
	add_step(view);
	add_products(view);
	if (device)
		add_probed_of_device(view, device->name);
	else
		add_probed_of_cpu(view, threads);
}

static void choose_precision(struct roofline *view, const struct config *config)
{
	char text[CONFIG_VALUE_BYTES];
	const bool device = view->p->device_count > 0 && view->p->devices[0].all.precision[0];
	/* Without a device, auto is what the CPU computes in, or what a device of that name would. */
	const bool is_auto = config_integer(config, KEY_STEP_PRECISION) == STEP_PRECISION_AUTO;
	const char *usual = view->record->step.emulated ? "bf16" : "fp32";
	(void)snprintf(view->precision, sizeof view->precision, "%s",
		device    ? view->p->devices[0].all.precision
		: is_auto ? usual
			  : config_format_value(KEY_STEP_PRECISION,
				    &config->values[KEY_STEP_PRECISION], text, sizeof text));
	view->element = roofline_bytes_of(view->precision);
	view->batch = (double)config_integer(config, KEY_BATCH_SIZE);
}

static int draw(struct roofline *view, const struct config *config, struct chart *chart)
{
	const bool emulated = view->record->step.emulated;
	choose_precision(view, config);
	roofline_count(view);
	if (!isfinite(view->element) || !(view->flops > 0))
		return parts_why_not(chart, "The size of the step's numbers (%s) is not known.",
			view->precision);
	PARTS_COLUMNS(chart, columns);
	view->left = view->right = view->flops / view->bytes;
	measure(view, config);
	if (emulated) {
		add_step(view);
		add_products(view);
	}
	chart->table.rows = view->rows;
	if (!emulated && !isfinite(view->achieved) && view->roof_count == 0 &&
		!isfinite(view->bandwidth))
		return parts_why_not(chart,
			"Neither how long a step took is known, nor what the node could give (mlbench probe).");
	view->left /= BESIDE;
	view->right *= BESIDE;
	if (emulated) {
		say_emulated(view, &chart->text);
	} else {
		say_count(view, &chart->text);
		say_reached(view, &chart->text);
		buffer_text(&chart->text, view->source);
	}
	chart->spec = emulated ? intensity_spec(view) : roofline_spec(view);
	return parts_done(chart);
}

static int refuse(const struct chart_input *input, struct chart *chart)
{
	const struct step_info *step = &input->report->record->step;
	const struct point_summary *p = parts_point(input);
	if (!p || p->status == POINT_FAILED)
		return parts_why_not(chart, "No point has been measured.");
	if (p->facts.step_null)
		return parts_why_not(chart, "The step computes nothing (step.backend = null).");
	if (step->product_count == 0)
		return parts_why_not(chart,
			"%sThe matrix products of the model '%.*s' are not known to this result.",
			step->emulated
				? "The step is emulated: its time is published, not computed. "
				: "",
			NAME_BYTES, step->model);
	return parts_why_not(chart,
		"The result has the products of its first point's model alone; point %zu has another.",
		input->point);
}

static int build(const struct chart_input *input, struct chart *chart)
{
	const struct record *record = input->report->record;
	const struct point_summary *p = parts_point(input);
	struct config config = {0};
	if (!p || p->status == POINT_FAILED || p->facts.step_null ||
		record->step.product_count == 0 || !is_of_point(input->report, input->point))
		return refuse(input, chart);
	struct roofline *view = calloc(1, sizeof *view);
	struct error err;
	if (!view ||
		config_grid_point(&record->config, &record->grid, input->point, &config, &err)) {
		free(view);
		return -ENOMEM;
	}
	*view = (struct roofline){
		.record = record, .p = p, .achieved = NAN, .bandwidth = NAN, .rows = json_array()};
	const int code = draw(view, &config, chart);
	if (!chart->table.rows)
		json_decref(view->rows);
	config_release(&config);
	free(view);
	return code;
}

const struct chart_kind chart_roofline = {"roofline", "Roofline of the step", build};
