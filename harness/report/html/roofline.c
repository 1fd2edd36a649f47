/* Counting a step's products, and its roofs.  Forward, gradient of the data and gradient of the weights are products of the
 * same three matrices, so that each moves (and multiplies) as much as the others. */
#include "harness/report/html/roofline.h"

#include "harness/analyze/peaks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PASSES = 3 };

struct roofline_traffic roofline_traffic_of(
	const struct roofline *view, const struct step_product *product)
{
	struct roofline_traffic t = {.m = product->m * (product->weights ? view->batch : 1)};
	const double n = product->n;
	const double k = product->k;
	const double forward = product->count * (product->weights ? 1 : view->batch);
	const double one = product->first ? 1 : 0; /* whose data gets no gradient */
	t.products = PASSES * forward - one;
	t.flops = t.products * 2 * t.m * n * k;
	t.bytes = t.products * (t.m * k + k * n + t.m * n) * view->element;
	return t;
}

void roofline_count(struct roofline *view)
{
	for (size_t i = 0; i < view->record->step.product_count; i++) {
		const struct roofline_traffic t =
			roofline_traffic_of(view, &view->record->step.products[i]);
		view->flops += t.flops;
		view->bytes += t.bytes;
	}
}

double roofline_bytes_of(const char *precision)
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

/* --- roofs ---------------------------------------------------------------------------------------------- */

static void add_roof(struct roofline *view, double flops, const char *name)
{
	if (!isfinite(flops) || flops <= 0 || view->roof_count == ROOFLINE_ROOFS_MAX)
		return;
	struct roof *roof = &view->roofs[view->roof_count++];
	roof->flops = flops;
	(void)snprintf(roof->name, sizeof roof->name, "%s", name);
}

static enum step_precision precision_of(const char *name)
{
	static const char *const names[] = {"fp32", "tf32", "bf16", "fp16", "fp8"};
	size_t i = 0;
	while (i + 1 < PARTS_COUNT(names) && strcmp(names[i], name) != 0)
		i++;
	return (enum step_precision)i;
}

void roofline_of_device(struct roofline *view, const struct device_measurement *device)
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
		add_roof(view, ceilings_device_flops(&record->ceilings, view->precision), words);
		view->bandwidth = probed->memory_bytes_per_s;
	}
	(void)snprintf(words, sizeof words, "published peak in %s, dense", view->precision);
	add_roof(view, peak_flops(device->name, precision_of(view->precision)), words);
	(void)snprintf(view->source, sizeof view->source, "%s%s%s%s",
		is_probed
			? "Roofs are measured on this node (mlbench probe)"
			: "The device was not probed (mlbench probe), so that its memory's roof is not known",
		peak ? "; the published peak is from: " : "; no published peak is known of it",
		peak ? peak->source : "", ".");
}

void roofline_of_cpu(struct roofline *view, unsigned threads)
{
	const struct record *record = view->record;
	char words[PARTS_TEXT_BYTES];
	if (!record->has_ceilings) {
		(void)snprintf(view->source, sizeof view->source,
			"The node was not probed (mlbench probe) before this run, so that no roof is known.");
		return;
	}
	(void)snprintf(words, sizeof words, "best square product on %u %s, probed", threads,
		threads == 1 ? "thread" : "threads");
	add_roof(view, ceilings_best_flops(&record->ceilings, threads), words);
	view->bandwidth = threads == 1 ? record->ceilings.memory_bytes_per_s_one
				       : record->ceilings.memory_bytes_per_s_all;
	(void)snprintf(view->source, sizeof view->source,
		"Roofs are measured on this node (mlbench probe): the best square product on %u %s, and the memory's triad on %s.",
		threads, threads == 1 ? "thread" : "threads",
		threads == 1 ? "one core" : "all cores");
	if (view->roof_count == 0)
		(void)snprintf(view->source, sizeof view->source,
			"No product was probed on %u threads (mlbench probe), so that the arithmetic's roof is not known.",
			threads);
}

double roofline_attainable(const struct roofline *view, double intensity)
{
	double most = view->roof_count > 0 ? view->roofs[0].flops : (double)NAN;
	for (size_t i = 1; i < view->roof_count; i++)
		most = fmin(most, view->roofs[i].flops);
	return isfinite(view->bandwidth)
		       ? fmin(view->bandwidth * intensity, isfinite(most) ? most : HUGE_VAL)
		       : most;
}
