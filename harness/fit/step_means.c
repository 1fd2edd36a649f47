#include "harness/fit/step_means.h"

#include "harness/analyze/student.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How like each value is to the one before it, between 0 and 0.99. */
static double step_mean_likeness(const double *values, size_t count, double mean)
{
	double products = 0;
	double squares = 0;

	for (size_t i = 0; i < count; i++) {
		squares += (values[i] - mean) * (values[i] - mean);
		if (i > 0)
			products += (values[i] - mean) * (values[i - 1] - mean);
	}
	return squares > 0 ? fmin(fmax(products / squares, 0), 0.99) : 0;
}

/* Of consecutive values, each of which stands for as many steps as its weight says (NULL: one).
 * The interval is Student's, wider where each value is like the one before it: n values with a
 * correlation of r from one to the next are worth n (1 - r) / (1 + r). */
static struct step_mean step_mean_of(const double *values, const double *weights, size_t count)
{
	double sum = 0;
	double weight = 0;
	double weight_squares = 0;
	double squares = 0;

	for (size_t i = 0; i < count; i++) {
		const double w = weights ? weights[i] : 1;
		sum += w * values[i];
		weight += w;
		weight_squares += w * w;
	}
	struct step_mean out = {sum / weight, NAN, NAN};
	if (count < 3)
		return out;
	for (size_t i = 0; i < count; i++)
		squares += (weights ? weights[i] : 1) * (values[i] - out.mean) *
			   (values[i] - out.mean);
	const double n = weight * weight / weight_squares;
	const double likeness = step_mean_likeness(values, count, out.mean);
	const double worth = fmax(n * (1 - likeness) / (1 + likeness), 2);
	const double deviation = sqrt(squares / weight * (n / fmax(n - 1, 1)));
	const double half = student_quantile(0.975, worth - 1) * deviation / sqrt(worth);
	out.low = out.mean - half;
	out.high = out.mean + half;
	return out;
}

void step_mean_find(struct findings *findings, enum finding_id id, enum finding_source source,
	enum finding_how how, const double *values, const double *weights, size_t count,
	const char *why)
{
	const struct step_mean mean = step_mean_of(values, weights, count);

	findings_add(
		findings, id, source, how, mean.mean, mean.low < 0 ? 0 : mean.low, mean.high, why);
}

int step_mean_keep(struct findings *findings, enum finding_id is, bool consecutive,
	const double *ns, size_t count, struct error *err)
{
	if (count > FINDINGS_STEPS_MAX)
		count = FINDINGS_STEPS_MAX;
	if (count == 0)
		return 0;
	double *copy = malloc(count * sizeof *copy);
	if (!copy)
		return error_set_errno(err, ENOMEM, "cannot keep step times");
	memcpy(copy, ns, count * sizeof *copy);
	free(findings->step_ns);
	findings->step_ns = copy;
	findings->step_count = count;
	findings->step_series = consecutive;
	findings->step_is = is;
	return 0;
}
