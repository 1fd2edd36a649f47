/* Findings from a log of step times: CSV, JSON, what training programs print, or TensorBoard's
 * event files (one file, or a folder with one in it).
 *
 * What programs print (harness/fit/step_lines.h has one table of their lines) has its units, and
 * its times have the waits for batches in them.  JSON: an object on each line, or a document with
 * objects in a list; their keys are named as columns of CSV are.
 *
 * CSV (also through gzip): the first line names the columns, which commas, semicolons, tabs or
 * blanks separate.  Needed is a column of step times ("step_time_ms", "iter_time (s)",
 * "batch_time_s", ...), of steps per second ("it/s"), or of moments ("timestamp", "wall_time":
 * dates, or seconds, ms, us or ns since 1970), whose differences are the period.  Of use are,
 * beside it, the number of the step, the wait for the batch ("data_time_ms") and samples per
 * second.  One column of numbers needs no name where each has its unit ("31.5ms").
 * harness/fit/step_names.c has all names.  A unit is never guessed.
 *
 * Event files: a scalar with such a name ("perf/step_time"), else the moments at which the most
 * frequent scalar was written.  A unit that the name does not say is told by those moments: the
 * largest one in which steps fit between them.
 *
 * Whether a column of step times has the waits for batches in it, names do not say.  Moments do:
 * step times that fill the time between them are periods.  So do waits that are longer than their
 * steps.  Else they are taken as periods, and a note says so.
 *
 * Slow steps at the beginning are warm-up and left out: those before the first that takes less than
 * 1.5 times the median.  So is a slow step behind an evaluation.  A line that is written every
 * tenth step stands for ten.  Of several ranks the slowest one counts, because the others wait for
 * it. */
#include "harness/analyze/loop_headroom.h"
#include "harness/analyze/statistics.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/fit/finding.h"
#include "harness/fit/stalls.h"
#include "harness/fit/step_log.h"
#include "harness/fit/step_means.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_ROWS_LEAST = 3 };

static bool log_has(const struct step_log *rows, enum step_role role)
{
	for (size_t i = 0; i < rows->count; i++)
		if (isfinite(rows->of[i].of[role]))
			return true;
	return false;
}

static bool log_times_steps(const struct step_log *rows)
{
	return log_has(rows, STEP_ROLE_TIME) || log_has(rows, STEP_ROLE_RATE) ||
	       log_has(rows, STEP_ROLE_RUN);
}

/* Times per step, in ns, of `count` rows; owned. */
struct log_times {
	double *step, *wait, *period; /* NAN where they are not known; one allocation */
	double *weight;               /* for how many steps each stands */
	size_t count;
	bool consecutive;
};

/* How long a step takes by its row; NAN: it does not say. */
static double log_step_ns(const struct step_log_row *row)
{
	if (isfinite(row->of[STEP_ROLE_RUN]) && row->number >= 1)
		return row->of[STEP_ROLE_RUN] / row->number;
	return isfinite(row->of[STEP_ROLE_TIME]) ? row->of[STEP_ROLE_TIME]
						 : row->of[STEP_ROLE_RATE];
}

/* From the moment of the row before to that of this one, for each step between them; NAN: they do not follow each other, or there
 * was a pause. */
static double log_period(const struct step_log_row *before, const struct step_log_row *row)
{
	const double s = row->of[STEP_ROLE_CLOCK] - before->of[STEP_ROLE_CLOCK];
	const double steps = isfinite(row->number) && isfinite(before->number)
				     ? row->number - before->number
				     : 1;

	return steps >= 1 && s >= 0 && !row->apart ? s * 1e9 / steps : (double)NAN;
}

static int log_take_times(const struct step_log *rows, struct log_times *times, struct error *err)
{
	times->count = rows->count;
	times->step = malloc((4 * rows->count + 1) * sizeof *times->step);
	if (!times->step)
		return error_set_errno(err, ENOMEM, "cannot keep a log of steps");
	times->wait = times->step + rows->count;
	times->period = times->wait + rows->count;
	times->weight = times->period + rows->count;
	times->consecutive = true;
	for (size_t i = 0; i < rows->count; i++) {
		const struct step_log_row *row = &rows->of[i];
		times->step[i] = log_step_ns(row);
		times->wait[i] = row->of[STEP_ROLE_WAIT];
		times->period[i] = i > 0 ? log_period(&rows->of[i - 1], row) : (double)NAN;
		const double steps = i > 0 ? row->number - rows->of[i - 1].number : (double)NAN;
		times->weight[i] = steps >= 1 ? steps : 1;
		if (i > 0 && isfinite(row->number) && row->number != rows->of[i - 1].number + 1)
			times->consecutive = false;
	}
	return 0;
}

/* A part that is missing in the log does not make the line behind it weigh more than others. */
static void log_limit_weights(struct log_times *times, double usual)
{
	for (size_t i = 0; i < times->count; i++)
		times->weight[i] = fmin(times->weight[i], fmax(1.5 * usual, 1));
}

/* The finite ones to the front; how many. */
static size_t log_known(const double *values, size_t count, double *out)
{
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		if (isfinite(values[i]))
			out[known++] = values[i];
	return known;
}

static double log_mean_of(const double *values, size_t count, double most)
{
	double sum = 0;
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		if (isfinite(values[i]) && values[i] <= most) {
			sum += values[i];
			known++;
		}
	return known > 0 ? sum / (double)known : (double)NAN;
}

/* Evaluations, nights: they are no steps. */
static size_t log_drop_pauses(struct log_times *times, double median)
{
	size_t dropped = 0;

	for (size_t i = 0; i < times->count; i++)
		if (times->period[i] > 60.0 * (double)NS_PER_S && times->period[i] > 100 * median) {
			times->period[i] = NAN;
			dropped++;
		}
	return dropped;
}

/* How many slow steps there are before the first usual one, a third of all at most. */
static size_t log_warmup(const double *values, size_t count, double median)
{
	size_t at = 0;

	while (at < count / 3 && !(values[at] <= 1.5 * median))
		at++;
	return at < count / 3 ? at : 0;
}

struct log_told {
	struct findings *out;
	const char *path;
	struct error *err;
	struct step_log *rows;
	struct log_times times;
	double *scratch; /* twice as many as rows; owned */
	double *weights; /* the second half of it */
	bool whole;      /* one row tells of the whole run */
	double loop;     /* how many steps the one has that counts */
	size_t others;   /* rows of other loops, which were left out */
	size_t ranks;    /* that the log has; 0: it does not say */
	size_t evaluations;
};

static double log_median(struct log_told *told, const double *values)
{
	const size_t known = log_known(values, told->times.count, told->scratch);

	return statistics_median(told->scratch, known);
}

/* A unit that the name of a tag does not say: the largest in which steps fit between their moments. */
static int log_tell_unit(struct log_told *told, enum step_role role, double *values)
{
	static const double units_ns[] = {1e9, 1e6, 1e3, 1};
	double unit = told->rows->unit_ns[role];
	const double value = log_median(told, values);
	const double period = log_median(told, told->times.period);

	for (size_t i = 0; i < COUNT(units_ns) && !(unit > 0); i++)
		if (value * units_ns[i] <= 1.2 * period)
			unit = units_ns[i];
	if (!(unit > 0))
		return error_set(told->err, -EINVAL,
			"'%s' has step times that do not fit between the moments at which they were "
			"written, in no unit: name the scalar step_time_ms or step_time_s",
			told->path);
	for (size_t i = 0; i < told->times.count; i++)
		values[i] *= unit;
	return 0;
}

static int log_tell_units(struct log_told *told)
{
	const bool rates = !log_has(told->rows, STEP_ROLE_TIME);
	int code = 0;

	if (!told->rows->events) /* each cell had its unit */
		return 0;
	if (log_has(told->rows, STEP_ROLE_TIME) && !rates)
		code = log_tell_unit(told, STEP_ROLE_TIME, told->times.step);
	if (!code && log_has(told->rows, STEP_ROLE_WAIT)) {
		if (!(told->rows->unit_ns[STEP_ROLE_WAIT] > 0)) /* that of its neighbour */
			told->rows->unit_ns[STEP_ROLE_WAIT] = told->rows->unit_ns[STEP_ROLE_TIME];
		code = log_tell_unit(told, STEP_ROLE_WAIT, told->times.wait);
	}
	return code;
}

/* Whether the waits for batches are in the step times. */
enum log_waits { LOG_WAITS_INSIDE, LOG_WAITS_OUTSIDE, LOG_WAITS_UNSAID };

static enum log_waits log_where_waits_are(struct log_told *told)
{
	const struct log_times *t = &told->times;
	const double median = log_median(told, t->period);
	const double most = 1000 * median; /* of what is compared; pauses are gone */
	size_t longer = 0;

	if (told->rows->lines || !log_has(told->rows, STEP_ROLE_TIME)) /* a rate is of everything */
		return LOG_WAITS_INSIDE;
	for (size_t i = 0; i < t->count; i++)
		longer += t->wait[i] > t->step[i];
	if (20 * longer > t->count) /* more than rounding makes */
		return LOG_WAITS_OUTSIDE;
	if (!(median > 0))
		return LOG_WAITS_UNSAID;
	return log_mean_of(t->step, t->count, most) > 0.9 * log_mean_of(t->period, t->count, most)
		       ? LOG_WAITS_INSIDE
		       : LOG_WAITS_OUTSIDE;
}

/* One series of the findings: the values that are known after the warm-up, with their weights. */
static size_t log_series(struct log_told *told, const double *values, size_t skip)
{
	size_t known = 0;

	for (size_t i = skip; i < told->times.count; i++)
		if (isfinite(values[i])) {
			told->scratch[known] = values[i];
			told->weights[known++] = told->times.weight[i];
		}
	return known;
}

/* A series that is no sequence has each value as often as it weighs. */
static int log_keep_weighed(struct log_told *told, enum finding_id is, size_t count)
{
	enum { SERIES_MOST = 1 << 16 };
	double sum = 0;
	double due = 0;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		sum += told->weights[i];
	const double each = fmin(1, SERIES_MOST / sum);
	double *series = malloc((size_t)(sum * each + 2) * sizeof *series);
	if (!series)
		return error_set_errno(told->err, ENOMEM, "cannot keep a log of steps");
	for (size_t i = 0; i < count; i++)
		for (due += told->weights[i] * each; due >= 1 - 1e-6; due--)
			series[kept++] = told->scratch[i];
	const int code = step_mean_keep(told->out, is, false, series, kept, told->err);
	free(series);
	return code;
}

static int log_keep(struct log_told *told, enum finding_id is, const double *values, size_t skip)
{
	const size_t count = log_series(told, values, skip);
	const bool whole = count == told->times.count - skip;

	for (size_t i = 1; i < count; i++)
		if (fabs(told->weights[i] - told->weights[0]) > 0.5)
			return log_keep_weighed(told, is, count);
	return step_mean_keep(
		told->out, is, told->times.consecutive && whole, told->scratch, count, told->err);
}

static void log_add(struct log_told *told, enum finding_id id, enum finding_how how,
	const double *values, size_t skip, const char *why)
{
	const size_t count = log_series(told, values, skip);

	if (count > 0)
		step_mean_find(told->out, id, SOURCE_STEP_LOG, how, told->scratch, told->weights,
			count, why);
}

/* A step that stalls leaves the next one a shorter wait: no epoch begins there. */
static bool log_waits_follow(const struct stalls *waits, const struct stalls *steps)
{
	return fabs(waits->every - steps->every) <= fmax(1, steps->every / 20) &&
	       waits->each < steps->each - steps->usual;
}

/* Waits and steps that stall again and again, where the log has each step. */
static void log_find_stalls(struct log_told *told, size_t skip)
{
	static const double least = 20.0 * (double)NS_PER_MS;
	const struct finding *period = &told->out->known[FINDING_STEP_PERIOD];
	const struct log_times *t = &told->times;
	struct stalls waits;
	struct stalls stalls;
	const size_t count = log_series(told, t->wait, skip);

	if (!t->consecutive || period->how == FINDING_UNKNOWN)
		return;
	const bool stall = told->out->step_is == FINDING_STEP_TIME && told->out->step_series &&
			   stalls_find(told->out->step_ns, told->out->step_count, least, &stalls);
	if (count == t->count - skip && stalls_find(told->scratch, count, least, &waits) &&
		!(stall && log_waits_follow(&waits, &stalls))) {
		/* Before what looks from outside tell: the trainer's own clock is in the log. */
		findings_add(told->out, FINDING_EPOCH_TIME, SOURCE_STEP_LOG, FINDING_MEASURED,
			waits.every * period->value, NAN, NAN,
			"from one long wait for a batch to the next, which come regularly");
		findings_add(told->out, FINDING_EPOCH_START, SOURCE_STEP_LOG, FINDING_MEASURED,
			waits.each, NAN, NAN, "the long waits for a batch, which come regularly");
	}
	if (!stall)
		return;
	findings_add(told->out, FINDING_STALL_TIME, SOURCE_STEP_LOG, FINDING_DERIVED,
		stalls.every * period->value, NAN, NAN,
		"from one long step to the next, which come regularly");
	findings_add(told->out, FINDING_STALL, SOURCE_STEP_LOG, FINDING_DERIVED,
		stalls.each - stalls.usual, NAN, NAN, "the long steps less the usual ones");
}

/* A wait that is longer than the step which it is a part of is wrong, but for what rounding makes. */
static void log_drop_longer_waits(struct log_told *told)
{
	struct log_times *t = &told->times;
	size_t dropped = 0;

	for (size_t i = 0; i < t->count; i++)
		if (t->wait[i] > 1.05 * t->step[i]) {
			t->wait[i] = NAN;
			dropped++;
		}
	if (dropped > 0)
		findings_note(told->out, "%zu wait%s longer than the step with it %s left out",
			dropped, dropped == 1 ? "" : "s", dropped == 1 ? "was" : "were");
}

/* Step times, and whatever else the rows have. */
static int log_conclude_steps(struct log_told *told, size_t skip)
{
	struct log_times *t = &told->times;
	const enum log_waits waits = log_where_waits_are(told);
	const bool has_wait = log_has(told->rows, STEP_ROLE_WAIT);

	if (waits != LOG_WAITS_OUTSIDE)
		log_drop_longer_waits(told);
	if (has_wait)
		log_add(told, FINDING_STEP_WAIT, FINDING_MEASURED, t->wait, skip, NULL);
	if (waits == LOG_WAITS_OUTSIDE) {
		log_add(told, FINDING_STEP_TIME, FINDING_MEASURED, t->step, skip, NULL);
		const int code = log_keep(told, FINDING_STEP_TIME, t->step, skip);
		log_add(told, FINDING_STEP_PERIOD, FINDING_MEASURED, t->period, skip, NULL);
		for (size_t i = 0; i < t->count; i++)
			t->step[i] += t->wait[i];
		log_add(told, FINDING_STEP_PERIOD, FINDING_DERIVED, t->step, skip,
			"the step time and the wait for its batch");
		return code;
	}
	log_add(told, FINDING_STEP_PERIOD, FINDING_MEASURED, t->step, skip, NULL);
	if (waits == LOG_WAITS_UNSAID)
		findings_note(told->out,
			"the log does not say whether its step times have the waits for batches in "
			"them: they are taken to have; a column of moments (timestamp) would tell");
	if (!has_wait)
		return log_keep(told, FINDING_STEP_PERIOD, t->step, skip);
	for (size_t i = 0; i < t->count; i++)
		t->step[i] = t->step[i] < t->wait[i] ? 0 : t->step[i] - t->wait[i];
	log_add(told, FINDING_STEP_TIME, FINDING_DERIVED, t->step, skip,
		"the period without the wait for the batch");
	return log_keep(told, FINDING_STEP_TIME, t->step, skip);
}

static int log_conclude_moments(struct log_told *told, size_t skip)
{
	struct log_times *t = &told->times;

	log_add(told, FINDING_STEP_PERIOD, FINDING_DERIVED, t->period, skip,
		"from one moment of the log to the next");
	findings_note(told->out,
		"the log has no column of step times: periods are the time between its moments");
	if (!log_has(told->rows, STEP_ROLE_WAIT))
		return log_keep(told, FINDING_STEP_PERIOD, t->period, skip);
	log_add(told, FINDING_STEP_WAIT, FINDING_MEASURED, t->wait, skip, NULL);
	for (size_t i = 0; i < t->count; i++)
		t->step[i] =
			isfinite(t->period[i]) ? fmax(0, t->period[i] - t->wait[i]) : (double)NAN;
	log_add(told, FINDING_STEP_TIME, FINDING_DERIVED, t->step, skip,
		"the time between moments of the log without the wait for the batch");
	return log_keep(told, FINDING_STEP_TIME, t->step, skip);
}

/* Samples that each row counts from the first one on, and not those of its step. */
static bool log_counts_samples(const struct step_log *rows)
{
	bool grows = rows->count >= LOG_ROWS_LEAST;

	for (size_t i = 1; i < rows->count && grows; i++)
		grows = rows->of[i].of[STEP_ROLE_BATCH] > rows->of[i - 1].of[STEP_ROLE_BATCH];
	return grows;
}

/* Of rows that count samples: those since the row before, a step. */
static double log_batch_between(const struct step_log_row *before, const struct step_log_row *row)
{
	const double steps = row->number - before->number;

	return (row->of[STEP_ROLE_BATCH] - before->of[STEP_ROLE_BATCH]) / (steps >= 1 ? steps : 1);
}

/* The samples of a step, of rows that say so, or that have both a rate of samples and a time; how
 * many rows. */
static size_t log_batches(struct log_told *told, enum step_role said, size_t skip)
{
	const struct step_log *rows = told->rows;
	const bool counted = said == STEP_ROLE_BATCH && log_counts_samples(rows);
	size_t count = 0;

	for (size_t i = counted && skip == 0 ? 1 : skip; i < rows->count && !rows->events; i++) {
		const struct step_log_row *row = &rows->of[i];
		const double ns = isfinite(row->of[STEP_ROLE_TIME]) ? row->of[STEP_ROLE_TIME]
								    : row->of[STEP_ROLE_RATE];
		const double batch = counted ? log_batch_between(&rows->of[i - 1], row)
				     : said != STEP_ROLE_SAMPLES
					     ? row->of[said]
					     : row->of[STEP_ROLE_SAMPLES] * ns / 1e9;
		if (isfinite(batch))
			told->scratch[count++] = batch;
	}
	return count;
}

/* A mean of rates is not the rate of the whole: the batch comes first, and with the period it makes
 * the throughput. */
static void log_add_samples(struct log_told *told, size_t skip)
{
	static const char *const why[STEP_ROLES] = {
		[STEP_ROLE_BATCH] = "the log says how many samples a step takes",
		[STEP_ROLE_JOB_BATCH] =
			"the batch of all ranks: they are taken to be those of the log",
		[STEP_ROLE_SAMPLES] = "samples per second times the step time",
	};
	const struct finding *period = &told->out->known[FINDING_STEP_PERIOD];
	const enum step_role said = log_has(told->rows, STEP_ROLE_JOB_BATCH) ? STEP_ROLE_JOB_BATCH
				    : log_has(told->rows, STEP_ROLE_BATCH)   ? STEP_ROLE_BATCH
									     : STEP_ROLE_SAMPLES;
	const size_t count = log_batches(told, said, skip);
	const bool of_all = said == STEP_ROLE_JOB_BATCH;
	const double quantiles[] = {0.1, 0.5, 0.9};
	double batch[3];

	if (count == 0 || period->how == FINDING_UNKNOWN)
		return;
	if (told->ranks > 1 && said == STEP_ROLE_SAMPLES) {
		findings_note(told->out,
			"the log does not say whether its samples are those of a rank or of all: "
			"job.batch_size and job.throughput are not known");
		return;
	}
	statistics_quantiles(told->scratch, count, quantiles, COUNT(quantiles), batch);
	const double whole = round(batch[1]);
	const bool rated = said == STEP_ROLE_SAMPLES;
	if (whole < 1 || (rated && batch[2] - batch[0] > 0.02 * whole) ||
		fabs(batch[1] - whole) > 0.02 * whole)
		return; /* no batch of one size */
	const double ranks = told->ranks > 1 ? (double)told->ranks : 1;
	/* An epoch's last batch may be smaller than the usual one. */
	const double mean = rated ? whole : log_mean_of(told->scratch, count, INFINITY);
	const double samples = mean * (of_all ? 1 : ranks) * 1e9;
	findings_add(told->out, FINDING_BATCH_SIZE, SOURCE_STEP_LOG,
		of_all ? FINDING_ASSUMED : FINDING_DERIVED, of_all ? whole / ranks : whole, NAN,
		NAN, why[said]);
	findings_add(told->out, FINDING_THROUGHPUT, SOURCE_STEP_LOG, FINDING_DERIVED,
		samples / period->value, samples / period->high,
		period->low > 0 ? samples / period->low : (double)NAN,
		"the batch over the period of the steps");
}

/* A table of numbers is taken for a log that needs a better name, other text for something else. */
static int log_refuse(const struct log_told *told)
{
	const bool column = log_times_steps(told->rows) || log_has(told->rows, STEP_ROLE_CLOCK);

	if (!column && log_has(told->rows, STEP_ROLE_SAMPLES))
		return error_set(told->err, -EINVAL,
			"'%s' has samples per second, but no times of steps: name a column step_time_ms, step_time_s, "
			"it/s or timestamp, or give the throughput alone, with --set job.throughput=N",
			told->path);
	if (!column && !told->rows->events && told->rows->numbers < LOG_ROWS_LEAST)
		return error_set(told->err, -ENOMSG,
			"'%s' is no log of steps: no column has a name or a unit of step times",
			told->path);
	if (!column)
		return error_set(told->err, -EINVAL,
			"'%s' has no column of step times: name one step_time_ms, step_time_s, it/s "
			"or timestamp",
			told->path);
	return error_set(told->err, -EINVAL, "'%s' has %zu usable steps: it needs %d at least",
		told->path, told->rows->count, LOG_ROWS_LEAST);
}

static int log_check_range(const struct log_told *told, bool moments, double median)
{
	char took[UNITS_BYTES];

	if (median > 0 && median >= (double)NS_PER_US && median <= 24 * 3600 * (double)NS_PER_S)
		return 0;
	if (moments && median <= 0)
		return error_set(told->err, -EINVAL,
			"'%s' has the same time for several steps in a row: it needs times with fractions of a second",
			told->path);
	return error_set(told->err, -EINVAL, "'%s' has steps of %s: is the unit right?", told->path,
		units_format_duration(median, took));
}

static void log_note_choice(struct log_told *told, enum step_role role, const char *of)
{
	const unsigned named = told->rows->named[role];
	if (named > 1 && told->rows->events)
		findings_note(told->out, "%u scalars of the log tell %s: the most frequent counts",
			named, of);
	else if (named > 1 && told->rows->column[role] == 0)
		findings_note(told->out,
			"%u keys of the log tell %s: the first one of each object counts", named,
			of);
	else if (named > 1)
		findings_note(told->out, "%u columns of the log tell %s: column %zu counts", named,
			of, told->rows->column[role]);
}

static void log_note_rows(struct log_told *told, size_t count, size_t skip, size_t pauses)
{
	if (told->whole)
		findings_note(told->out,
			"the log has no times of single steps: the mean of the whole run counts");
	else if (told->rows->lines)
		findings_note(told->out, "%zu lines of the log count, as %s writes them", count,
			told->rows->lines);
	else
		findings_note(told->out, "%zu steps of the log count", count);
	if (told->evaluations > 0)
		findings_note(told->out, "%zu slow step%s behind an evaluation %s left out",
			told->evaluations, told->evaluations == 1 ? "" : "s",
			told->evaluations == 1 ? "was" : "were");
	if (told->others > 0)
		findings_note(told->out,
			"the loop of %.0f steps counts; %zu line%s of other loops, such as an "
			"evaluation, %s left out",
			told->loop, told->others, told->others == 1 ? "" : "s",
			told->others == 1 ? "was" : "were");
	log_note_choice(told, STEP_ROLE_TIME, "how long a step takes");
	log_note_choice(told, STEP_ROLE_WAIT, "how long it waits for its batch");
	if (skip > 0)
		findings_note(told->out,
			"%zu slow step%s at its beginning %s warm-up, and %s left out", skip,
			skip == 1 ? "" : "s", skip == 1 ? "is" : "are", skip == 1 ? "was" : "were");
	if (pauses > 0)
		findings_note(told->out, "%zu pause%s of more than a minute %s left out", pauses,
			pauses == 1 ? "" : "s", pauses == 1 ? "was" : "were");
	if (told->rows->torn)
		findings_note(told->out,
			"the end of the event file is missing: what is before it counts");
	if (told->rows->damaged > 0)
		findings_note(told->out,
			"%" PRIu64 " records of the event file are damaged, and were left out",
			told->rows->damaged);
	if (told->rows->unread > 0)
		findings_note(told->out, "%" PRIu64 " lines that could not be read were left out",
			told->rows->unread);
	if (told->rows->lost)
		findings_note(told->out, "only the first %d steps count", STEP_LOG_ROWS_MAX);
}

/* --- which rows count ------------------------------------------------------------------------- */

typedef bool log_keeps(const struct log_told *told, const struct step_log_row *row, double what);

/* Leaves the other rows out; how many they were. */
static size_t log_keep_rows(struct log_told *told, log_keeps *keeps, double what)
{
	struct step_log *rows = told->rows;
	const size_t all = rows->count;
	size_t kept = 0;

	for (size_t i = 0; i < all; i++)
		if (keeps(told, &rows->of[i], what))
			rows->of[kept++] = rows->of[i];
	rows->count = kept;
	return all - kept;
}

static bool log_is_of_run(const struct log_told *told, const struct step_log_row *row, double run)
{
	(void)told;
	return isfinite(row->of[STEP_ROLE_RUN]) == (run > 0);
}

static bool log_is_of_loop(
	const struct log_told *told, const struct step_log_row *row, double total)
{
	(void)told;
	return fabs(row->of[STEP_ROLE_TOTAL] - total) <= 0.1 * total;
}

static bool log_is_of_rank(const struct log_told *told, const struct step_log_row *row, double rank)
{
	(void)told;
	return fabs(row->of[STEP_ROLE_RANK] - rank) < 0.5;
}

/* A row of the whole run counts where no others have times. */
static void log_choose_run(struct log_told *told)
{
	size_t steps = 0;

	for (size_t i = 0; i < told->rows->count; i++) {
		const struct step_log_row *row = &told->rows->of[i];
		steps += !isfinite(row->of[STEP_ROLE_RUN]) &&
			 (isfinite(log_step_ns(row)) || isfinite(row->of[STEP_ROLE_CLOCK]));
	}
	if (!log_has(told->rows, STEP_ROLE_RUN))
		return;
	told->whole = steps < LOG_ROWS_LEAST;
	(void)log_keep_rows(told, log_is_of_run, told->whole);
	if (told->whole && told->rows->count > 1) { /* of several runs the last */
		told->rows->of[0] = told->rows->of[told->rows->count - 1];
		told->rows->count = 1;
	}
}

/* Of several loops, as training and evaluating are, the one with most lines counts. */
static void log_choose_loop(struct log_told *told)
{
	size_t count = 0;

	for (size_t i = 0; i < told->rows->count; i++)
		if (isfinite(told->rows->of[i].of[STEP_ROLE_TOTAL]))
			told->scratch[count++] = told->rows->of[i].of[STEP_ROLE_TOTAL];
	if (count < told->rows->count || count == 0)
		return;
	sort_doubles(told->scratch, count);
	double most = told->scratch[0];
	size_t most_count = 0;
	for (size_t i = 0, same = 0; i < count; i++) {
		same = i > 0 && !(told->scratch[i] > told->scratch[i - 1]) ? same + 1 : 1;
		if (same > most_count) {
			most_count = same;
			most = told->scratch[i];
		}
	}
	told->loop = most;
	told->others = log_keep_rows(told, log_is_of_loop, most);
}

/* Of a log in turns with batches from memory, the steps with the real loader count. */
static void log_choose_side(struct log_told *told)
{
	struct step_log *rows = told->rows;
	size_t kept = 0;
	bool apart = false;

	if (!log_has(rows, STEP_ROLE_SIDE))
		return;
	for (size_t i = 0; i < rows->count; i++) {
		const bool loader = fabs(rows->of[i].of[STEP_ROLE_SIDE] - LOOP_LOADER) < 0.5;
		if (loader) {
			rows->of[kept] = rows->of[i];
			rows->of[kept++].apart = apart;
		}
		apart = !loader;
	}
	findings_note(told->out,
		"the log is one of headroom.py: its steps with the real loader count, and %zu others do not",
		rows->count - kept);
	rows->count = kept;
}

/* A progress bar is drawn again where something beside its steps changed: of the same step at the
 * same moment the last line counts. */
static void log_drop_repeats(struct step_log *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const struct step_log_row *row = &rows->of[i];
		const struct step_log_row *next = i + 1 < rows->count ? &rows->of[i + 1] : NULL;
		const bool again =
			next && fabs(next->number - row->number) < 0.5 &&
			fabs(next->of[STEP_ROLE_CLOCK] - row->of[STEP_ROLE_CLOCK]) < 1e-9;
		if (!again)
			rows->of[kept++] = *row;
	}
	rows->count = kept;
}

/* Of several steps at one moment, as in whole seconds, the first one counts, which is nearest to
 * the moment; but for the first moment of all. */
static void log_drop_same_moments(struct step_log *rows)
{
	const size_t all = rows->count;
	size_t kept = 0;

	for (size_t i = 0; i < all; i++) {
		const struct step_log_row *row = &rows->of[i];
		const struct step_log_row *last = kept > 0 ? &rows->of[kept - 1] : NULL;
		const bool same = last && row->number >= last->number &&
				  fabs(row->of[STEP_ROLE_CLOCK] - last->of[STEP_ROLE_CLOCK]) < 1e-9;
		if (!same)
			rows->of[kept++] = *row;
	}
	if (kept > 1 && kept < all)
		memmove(rows->of, rows->of + 1, --kept * sizeof *rows->of);
	rows->count = kept;
}

/* The mean time of a rank's steps, by what its rows have. */
static double log_rank_ns(const struct step_log *rows, double rank)
{
	const struct step_log_row *first = NULL;
	const struct step_log_row *last = NULL;
	double sum = 0;
	double count = 0;
	double between = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const struct step_log_row *row = &rows->of[i];
		if (!(fabs(row->of[STEP_ROLE_RANK] - rank) < 0.5))
			continue;
		between += first != NULL;
		first = first ? first : row;
		last = row;
		if (isfinite(log_step_ns(row))) {
			sum += log_step_ns(row);
			count++;
		}
	}
	if (count > 0)
		return sum / count;
	return between > 0 ? (last->of[STEP_ROLE_CLOCK] - first->of[STEP_ROLE_CLOCK]) / between
			   : (double)NAN;
}

/* The slowest rank counts. */
static void log_choose_rank(struct log_told *told)
{
	double ranks[FINDINGS_RANKS_MAX];
	double slowest = NAN;
	double least = INFINITY;
	double most = 0;

	for (size_t i = 0; i < told->rows->count; i++) {
		const double rank = told->rows->of[i].of[STEP_ROLE_RANK];
		size_t at = 0;
		while (at < told->ranks && fabs(ranks[at] - rank) >= 0.5)
			at++;
		if (isfinite(rank) && at == told->ranks && at < FINDINGS_RANKS_MAX)
			ranks[told->ranks++] = rank;
	}
	if (told->ranks < 2)
		return;
	for (size_t i = 0; i < told->ranks; i++) {
		const double ns = log_rank_ns(told->rows, ranks[i]);
		if (ns < least)
			least = ns;
		if (!isfinite(slowest) || ns > most) {
			most = ns;
			slowest = ranks[i];
		}
	}
	(void)log_keep_rows(told, log_is_of_rank, slowest);
	findings_add(told->out, FINDING_RANKS, SOURCE_STEP_LOG, FINDING_ASSUMED,
		(double)told->ranks, NAN, NAN, "the ranks of the log, taken to run on one node");
	findings_note(told->out,
		"the log has %zu ranks: the steps of rank %.0f count, the slowest; the fastest "
		"takes %s times as long",
		told->ranks, slowest, UNITS_PLAIN(least / most, 3));
}

/* Behind an evaluation, the time of a step may have it in it. */
static void log_drop_evaluations(struct log_told *told, double step_median, double period_median)
{
	struct log_times *t = &told->times;

	for (size_t i = 0; i < t->count; i++) {
		if (!told->rows->of[i].evaluated)
			continue;
		const bool slow = t->step[i] > 1.5 * step_median;
		const bool late = t->period[i] > 1.5 * period_median;
		told->evaluations += slow || late;
		if (slow)
			t->step[i] = t->wait[i] = NAN;
		if (slow || late)
			t->period[i] = NAN;
	}
}

static int log_conclude_rows(struct log_told *told)
{
	const bool steps = log_times_steps(told->rows);
	int code = log_take_times(told->rows, &told->times, told->err);

	if (!code)
		code = log_tell_units(told);
	if (code)
		return code;
	log_limit_weights(&told->times, log_median(told, told->times.weight));
	const size_t pauses = log_drop_pauses(&told->times, log_median(told, told->times.period));
	const double *values = steps ? told->times.step : told->times.period;
	const double median = log_median(told, values);
	code = log_check_range(told, !steps, median);
	if (code)
		return code;
	log_drop_evaluations(
		told, log_median(told, told->times.step), log_median(told, told->times.period));
	const size_t first = steps ? 0 : 1; /* the first moment ends no period */
	const size_t slow = log_warmup(values + first, told->times.count - first, median);
	const size_t skip = slow + first;
	const size_t count = log_series(told, values, skip);
	code = steps ? log_conclude_steps(told, skip) : log_conclude_moments(told, skip);
	if (!code)
		log_add_samples(told, skip);
	if (!code)
		log_find_stalls(told, skip);
	log_note_rows(told, count, slow, pauses);
	return code;
}

static int log_conclude(struct log_told *told)
{
	told->scratch = malloc((2 * told->rows->count + 1) * sizeof *told->scratch);
	if (!told->scratch)
		return error_set_errno(told->err, ENOMEM, "cannot keep a log of steps");
	told->weights = told->scratch + told->rows->count;
	log_choose_run(told);
	log_choose_loop(told);
	log_choose_rank(told);
	log_choose_side(told);
	if (told->rows->lines)
		log_drop_repeats(told->rows);
	if (!log_times_steps(told->rows))
		log_drop_same_moments(told->rows);
	const bool times = log_times_steps(told->rows) || log_has(told->rows, STEP_ROLE_CLOCK);
	if (!times || (told->rows->count < LOG_ROWS_LEAST && !told->whole))
		return log_refuse(told);
	return log_conclude_rows(told);
}

int findings_from_step_log(struct findings *out, const char *path, struct error *err)
{
	struct step_log rows;
	struct log_told told = {.out = out, .path = path, .err = err, .rows = &rows};
	int code = step_log_read(&rows, path, err);

	if (!code)
		code = log_conclude(&told);
	free(told.times.step);
	free(told.scratch);
	step_log_release(&rows);
	return code;
}
