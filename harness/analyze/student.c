/* Student's t by the incomplete beta function: see student.h. */
#include "harness/analyze/student.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* The continued fraction of the incomplete beta function (NIST DLMF 8.17.22), by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	enum { TERMS_MAX = 500 };
	double c = 1;
	double d = 1 / fmax(1 - (a + b) * x / (a + 1), DBL_MIN);
	double value = d;
	for (int i = 1; i < TERMS_MAX; i++) {
		const double m = i;
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 / (1 + even * d);
		c = 1 + even / c;
		value *= d * c;
		d = 1 / (1 + odd * d);
		c = 1 + odd / c;
		value *= d * c;
		if (fabs(d * c - 1) < 4 * DBL_EPSILON)
			break;
	}
	return value;
}

/* lgamma is not thread-safe: it writes a global. */
static double log_gamma(double x)
{
	int sign;
	return lgamma_r(x, &sign);
}

static double incomplete_beta(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	const double front =
		exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_below(double t, double freedom)
{
	const double tail =
		isinf(t) ? 0 : incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
	return t > 0 ? 1 - tail : tail;
}

/* The density, for Newton's steps. */
static double student_density(double t, double freedom)
{
	return exp(log_gamma((freedom + 1) / 2) - log_gamma(freedom / 2) -
		       (freedom + 1) / 2 * log1p(t * t / freedom)) /
	       sqrt(freedom * M_PI);
}

/* The t > 0 that a share `tail` lies above: Newton's steps, bisection where they leave the known
 * bracket. */
static double upper_quantile(double tail, double freedom)
{
	enum { STEPS = 60 };
	static const double precise = 1e-12;
	double low = 0;
	double high = 2;
	while (student_below(-high, freedom) > tail && high < 1e12) {
		low = high;
		high *= 4;
	}
	double t = (low + high) / 2;
	for (int i = 0; i < STEPS && high - low > precise * high; i++) {
		const double above = student_below(-t, freedom) - tail;
		*(above > 0 ? &low : &high) = t;
		const double next = t + above / student_density(t, freedom);
		if (fabs(next - t) <= precise * t)
			return next;
		t = next > low && next < high ? next : (low + high) / 2;
	}
	return t;
}

double student_quantile(double p, double freedom)
{
	if (p == 0.5)
		return 0;
	return p < 0.5 ? -upper_quantile(p, freedom) : upper_quantile(1 - p, freedom);
}
