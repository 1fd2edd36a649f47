/* Recorded step times as text, and drawn from again. */
#include "harness/config/step_times.h"

#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Separates them from other uses of run.seed. */
#define STEP_TIMES_STREAM 0x74696d6573000000ULL

enum { TOKEN_BYTES = 48 };

static const char QUANTILES[] = "quantiles";
static const char CORRELATION[] = "correlation=";

static int step_times_refuse(struct error *err, const char *token, const char *why)
{
	return error_set(err, -EINVAL,
		"'step.times': '%.40s' %s (example: 20ms 21 19.5, or quantiles 5%%=18ms 50%%=20 99%%=80 correlation=0.3)",
		token, why);
}

/* --- reading ---------------------------------------------------------------------------------- */

struct times_reader {
	struct step_times *times;
	const char *at;          /* what is left of the text */
	char token[TOKEN_BYTES]; /* the word that is read, cut to fit */
	char unit[8];            /* the last that was given; "": none yet */
	struct error *err;
};

/* False: there is no other word. */
static bool times_next_word(struct times_reader *r)
{
	r->at += strspn(r->at, " \t");
	const size_t length = strcspn(r->at, " \t");
	(void)snprintf(r->token, sizeof r->token, "%.*s",
		(int)(length < TOKEN_BYTES ? length : TOKEN_BYTES), r->at);
	r->at += length;
	return length > 0;
}

/* A duration, which may leave out the unit where one was given before. */
static int times_read_duration(struct times_reader *r, const char *text, double *ns)
{
	const char *const unit = text + strspn(text, "0123456789.");
	char whole[TOKEN_BYTES + sizeof r->unit];
	uint64_t value;
	if (*unit == '\0' && r->unit[0] == '\0')
		return step_times_refuse(r->err, r->token, "has no unit, and none before it has");
	(void)snprintf(whole, sizeof whole, "%s%s", text, *unit ? "" : r->unit);
	if (units_parse_duration(whole, &value))
		return step_times_refuse(r->err, r->token, "is not a duration");
	if (value < 1 || (double)value > config_keys[KEY_STEP_TIME].max)
		return step_times_refuse(
			r->err, r->token, "is not between 1 ns and 10,000 s, as a step is");
	if (*unit)
		(void)snprintf(r->unit, sizeof r->unit, "%.7s", unit);
	*ns = (double)value;
	return 0;
}

static int times_read_series(struct times_reader *r)
{
	struct step_times *const t = r->times;
	t->is_series = true;
	do {
		if (t->count == STEP_TIMES_MAX)
			return step_times_refuse(r->err, r->token,
				"is the 1,025th time, and 1,024 are the limit: give quantiles of longer series");
		const int code = times_read_duration(r, r->token, &t->ns[t->count]);
		if (code)
			return code;
		t->mean_ns += t->ns[t->count++];
	} while (times_next_word(r));
	t->mean_ns /= (double)t->count;
	return 0;
}

static int times_read_correlation(struct times_reader *r)
{
	if (units_parse_real(r->token + strlen(CORRELATION), &r->times->correlation) ||
		fabs(r->times->correlation) > STEP_CORRELATION_MOST)
		return step_times_refuse(
			r->err, r->token, "is not a correlation from -0.999 to 0.999");
	return 0;
}

static int times_read_quantile(struct times_reader *r)
{
	struct step_times *const t = r->times;
	char *const equal = strchr(r->token, '=');
	if (!equal)
		return step_times_refuse(r->err, r->token, "is not a quantile, as 50%=20ms is");
	if (t->count == STEP_QUANTILES_MAX)
		return step_times_refuse(
			r->err, r->token, "is one quantile too many: 64 are the limit");
	*equal = '\0';
	const bool bad = units_parse_share(r->token, &t->shares[t->count]) != 0;
	*equal = '=';
	if (bad || !(t->shares[t->count] >= 0 && t->shares[t->count] <= 1))
		return step_times_refuse(
			r->err, r->token, "does not begin with a share, as 50% is");
	const int code = times_read_duration(r, equal + 1, &t->ns[t->count]);
	if (code)
		return code;
	if (t->count > 0 && t->shares[t->count] <= t->shares[t->count - 1])
		return step_times_refuse(
			r->err, r->token, "is not of a larger share than the one before it");
	if (t->count > 0 && t->ns[t->count] < t->ns[t->count - 1])
		return step_times_refuse(
			r->err, r->token, "is a shorter time than that of a smaller share");
	t->count++;
	return 0;
}

/* The area below the quantiles, which stay level beyond the outermost. */
static double times_mean_of_quantiles(const struct step_times *t)
{
	const size_t last = t->count - 1;
	double mean = t->shares[0] * t->ns[0] + (1 - t->shares[last]) * t->ns[last];
	for (size_t i = 0; i < last; i++)
		mean += (t->shares[i + 1] - t->shares[i]) * (t->ns[i] + t->ns[i + 1]) / 2;
	return mean;
}

static int times_read_quantiles(struct times_reader *r)
{
	int code = 0;
	bool correlated = false;
	while (!code && times_next_word(r)) {
		const bool is = strncmp(r->token, CORRELATION, strlen(CORRELATION)) == 0;
		if (is && correlated)
			return step_times_refuse(r->err, r->token, "is a second correlation");
		correlated = correlated || is;
		code = is ? times_read_correlation(r) : times_read_quantile(r);
	}
	if (!code && r->times->count < 2)
		return step_times_refuse(r->err, QUANTILES, "needs two of them at least");
	if (!code)
		r->times->mean_ns = times_mean_of_quantiles(r->times);
	return code;
}

int step_times_parse(struct step_times *times, const char *text, struct error *err)
{
	struct times_reader r = {.times = times, .at = text, .err = err};
	*times = (struct step_times){0};
	if (strlen(text) > STEP_TIMES_BYTES_MAX)
		return error_set(err, -EINVAL,
			"'step.times' is longer than %d bytes: give quantiles of longer series",
			STEP_TIMES_BYTES_MAX);
	if (!times_next_word(&r))
		return 0;
	return strcmp(r.token, QUANTILES) == 0 ? times_read_quantiles(&r) : times_read_series(&r);
}

void step_times_of(const struct config *config, struct step_times *times)
{
	if (step_times_parse(times, config_text(config, KEY_STEP_TIMES), NULL))
		*times = (struct step_times){0};
}

/* --- drawing ---------------------------------------------------------------------------------- */

double step_times_at(const struct step_times *times, double share)
{
	const size_t last = times->count - 1;
	if (share <= times->shares[0])
		return times->ns[0];
	if (share >= times->shares[last])
		return times->ns[last];
	size_t above = 1;
	while (times->shares[above] < share)
		above++;
	const double from = times->shares[above - 1];
	const double part = (share - from) / (times->shares[above] - from);
	return times->ns[above - 1] + part * (times->ns[above] - times->ns[above - 1]);
}

void step_walk_begin(
	struct step_walk *walk, const struct step_times *times, uint64_t seed, unsigned device)
{
	*walk = (struct step_walk){0};
	rng_init(&walk->rng, seed ^ STEP_TIMES_STREAM, device);
	if (times->is_series)
		walk->at = (size_t)rng_below(&walk->rng, times->count);
	else
		walk->score = rng_normal(&walk->rng);
}

/* The share of a normal distribution that lies below a score. */
static double times_share_below(double score)
{
	return erfc(-score / sqrt(2)) / 2;
}

double step_walk_next(struct step_walk *walk, const struct step_times *times)
{
	if (times->is_series) {
		const double ns = times->ns[walk->at];
		walk->at = (walk->at + 1) % times->count;
		return ns;
	}
	const double rho = times->correlation;
	const double ns = step_times_at(times, times_share_below(walk->score));
	walk->score = rho * walk->score + sqrt(1 - rho * rho) * rng_normal(&walk->rng);
	return ns;
}
