/* Depths of reads tried in the warm-up: see dither.h. */
#include "pipelines/dither.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "workloads/source/limiter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	FILES_WANTED = 64,
	FILES_LEAST = 8,
	BLOCKS = 8,            /* of a point, whose rates differ by what its own is unsure */
	DEPTH_MOST = 4096,     /* of read.depth: what rings and buffers are known to work with */
	LENGTHENED_SHARE = 25, /* the 25th part of a repetition */
};

static const uint64_t LENGTHENED_MOST_NS = 10 * NS_PER_S;
static const uint64_t RAMP_NS = 50 * NS_PER_MS;
/* A store that has not filled the depth twice by then, nor in the warm-up, has not the time for a point, either. */
static const uint64_t BEGUN_NS = NS_PER_S;
static const uint64_t LOOK_NS = 100 * NS_PER_MS;
/* The kernel throttles in slices of 100 ms: a point of less than two shows one burst, and one of five the rate. */
static const uint64_t POINT_LEAST_NS = 200 * NS_PER_MS;
static const uint64_t POINT_NS = 500 * NS_PER_MS;
static const uint64_t RETURN_NS = 100 * NS_PER_MS;
static const uint64_t LATE_NS = 20 * NS_PER_MS; /* that looks may come later than they are due */
static const double RATE_ERROR_SURE = 0.02;
static const double BLOCKED_MOST = 0.5; /* of the readers' time */
static const double CPU_MOST = 0.8;     /* of what they worked and did not wait for a core */
/* Of the warm-up, before points that are sure enough have to be over. */
static const double WARMUP_SHARE = 0.75;

/* --- planning -------------------------------------------------------------------------------- */

uint64_t dither_longer_ns(const struct config *config)
{
	const uint64_t warmup_ns = (uint64_t)config_integer(config, KEY_MEASURE_WARMUP);
	const bool tried = config_integer(config, KEY_MEASURE_DEPTHS) == MEASURE_DEPTHS_AUTO &&
			   config_on(config, KEY_MEASURE_PROFILER) && warmup_ns > 0 &&
			   config_integer(config, KEY_MEASURE_EPOCHS) == 0;
	if (!tried)
		return 0;
	const uint64_t share_ns =
		(warmup_ns + (uint64_t)config_integer(config, KEY_MEASURE_DURATION)) /
		LENGTHENED_SHARE;
	return share_ns < LENGTHENED_MOST_NS ? share_ns : LENGTHENED_MOST_NS;
}

static __attribute__((format(printf, 2, 0))) void add_reason(
	char note[NOTE_BYTES], const char *format, va_list args)
{
	const size_t used = strlen(note);
	const int lead = snprintf(note + used, NOTE_BYTES - used, "%s", used > 0 ? "; " : "");
	if (lead >= 0 && used + (size_t)lead < NOTE_BYTES)
		(void)vsnprintf(
			note + used + (size_t)lead, NOTE_BYTES - used - (size_t)lead, format, args);
}

void dither_plan_not_twice(struct depth_plan *plan, const char *format, ...)
{
	char why[NOTE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(why, sizeof why, format, args);
	va_end(args);
	(void)snprintf(plan->why_not, sizeof plan->why_not,
		"reads at depth %u were not tried: %.160s", plan->twice, why);
	plan->twice = 0;
	plan->spare_blobs = plan->spare_large_blobs = 0;
	plan->spare_bytes = plan->spare_source_bytes = 0;
}

void dither_plan(
	const struct config *config, const struct source_ops *source, struct pipeline_plan *plan)
{
	struct depth_plan *const d = &plan->depths;
	const uint32_t depth = source->blocking || plan->by_workers ? 1 : plan->read_depth;
	const uint64_t longer_ns = dither_longer_ns(config);
	const uint64_t least_ns = RAMP_NS + LOOK_NS + POINT_LEAST_NS + RETURN_NS;
	*d = (struct depth_plan){.set = plan->readers * depth};
	if (longer_ns == 0 || (source->immediate && !limiter_wanted(config)))
		return;
	if (plan->by_workers || plan->turns) {
		(void)snprintf(d->why_not, sizeof d->why_not,
			"reads at other depths were not tried: %s",
			plan->by_workers ? "each worker reads the file that it decodes"
					 : "nothing is read while a step computes");
		return;
	}
	if ((uint64_t)config_integer(config, KEY_MEASURE_WARMUP) + longer_ns < least_ns)
		return;
	d->half = d->set / 2;
	d->twice = source->blocking ? 0 : 2 * d->set;
	if (d->twice > 0 && 2 * depth > DEPTH_MOST)
		dither_plan_not_twice(d, "that is %u for a reader, and read.depth is %d at most",
			2 * depth, DEPTH_MOST);
	if (d->half > 0 || d->twice > 0)
		d->longer_ns = longer_ns;
	else if (!d->why_not[0])
		(void)snprintf(d->why_not, sizeof d->why_not,
			"reads at other depths were not tried: one thread of %s reads one file at a time",
			source->name);
}

/* --- a point --------------------------------------------------------------------------------- */

static void dither_keep_mark(struct dither *d, const struct dither_look *now)
{
	if (d->marks_passed++ % d->mark_every != 0)
		return;
	if (d->mark_count == DITHER_MARKS) {
		for (unsigned i = 0; i < DITHER_MARKS / 2; i++)
			d->marks[i] = d->marks[2 * i];
		d->mark_count = DITHER_MARKS / 2;
		d->mark_every *= 2;
	}
	d->marks[d->mark_count++] = *now;
}

/* Standard error of the rate as a share of it, from blocks of the count: a burst that is spent shows as one. */
static double rate_error(const struct dither *d, const struct dither_look *now)
{
	const struct dither_look *const first = &d->marks[0];
	const double all_ns = (double)(now->now_ns - first->now_ns);
	const double rate = (double)(now->files - first->files) / all_ns;
	if (d->mark_count < BLOCKS || !(rate > 0))
		return NAN;
	double squares = 0;
	const struct dither_look *from = first;
	for (unsigned i = 1; i <= BLOCKS; i++) {
		const struct dither_look *const to =
			i < BLOCKS ? &d->marks[i * d->mark_count / BLOCKS] : now;
		const double share = (double)(to->now_ns - from->now_ns) / all_ns;
		const double own =
			(double)(to->files - from->files) / (double)(to->now_ns - from->now_ns);
		squares += share * share * (own / rate - 1) * (own / rate - 1);
		from = to;
	}
	return sqrt(squares * BLOCKS / (BLOCKS - 1));
}

static double blocked_share(const struct dither_look *from, const struct dither_look *to)
{
	const double blocked = (double)(to->blocked_ns - from->blocked_ns);
	const double working = (double)(to->working_ns - from->working_ns);
	return blocked + working > 0 ? blocked / (blocked + working) : NAN;
}

static void dither_add_point(struct dither *d, const struct dither_look *now)
{
	const struct dither_look *const from = &d->marks[0];
	const double files = (double)(now->files - from->files);
	const double mean = (now->latency_ns - from->latency_ns) / files;
	const double square = (now->latency_squares - from->latency_squares) / files;
	d->points[d->point_count++] = (struct read_point){
		.depth = d->depth,
		.seconds = (double)(now->now_ns - from->now_ns) / (double)NS_PER_S,
		.files = now->files - from->files,
		.bytes = now->bytes - from->bytes,
		.latency_mean_ns = mean,
		.latency_deviation_ns = sqrt(fmax(square - mean * mean, 0)),
		.rate_error = rate_error(d, now),
		.blocked_share = blocked_share(from, now),
	};
}

/* --- phases ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(struct dither *d, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	add_reason(d->note, format, args);
	va_end(args);
}

static void dither_enter(struct dither *d, enum dither_phase phase, const struct dither_look *now)
{
	d->phase = phase;
	d->entered = *now;
}

static uint32_t trial_depth(const struct dither *d, unsigned trial)
{
	const uint32_t depths[] = {d->plan->half, d->plan->twice};
	uint32_t left = trial;
	for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
		if (depths[i] > 0 && left-- == 0)
			return depths[i];
	return 0;
}

/* Half the depth has as many files to finish at half the rate; from twice the depth there are twice as many. */
static uint64_t settle_ns(const struct dither *d)
{
	return 2 * d->drain_ns;
}

static uint64_t return_ns(const struct dither *d)
{
	return settle_ns(d) > RETURN_NS ? settle_ns(d) : RETURN_NS;
}

/* Time for each trial that is left, if all are to be over by end_ns. */
static uint64_t time_for_one(const struct dither *d, uint64_t now_ns, uint64_t end_ns)
{
	unsigned left = 0;
	while (trial_depth(d, d->trial + left) > 0)
		left++;
	const uint64_t last_ns = now_ns + return_ns(d) + LATE_NS;
	return end_ns > last_ns && left > 0 ? (end_ns - last_ns) / left : 0;
}

static void go_back(struct dither *d, const struct dither_look *now)
{
	/* Nothing was tried: nothing has to settle. */
	dither_enter(d, d->depth == d->plan->set ? DITHER_OVER : DITHER_RETURN, now);
	d->depth = d->plan->set;
}

static void next_trial(struct dither *d, const struct dither_look *now)
{
	const uint32_t depth = trial_depth(d, d->trial);
	const uint64_t hard_ns = time_for_one(d, now->now_ns, d->latest_ns);
	const uint64_t soft_ns =
		time_for_one(d, now->now_ns, (uint64_t)(WARMUP_SHARE * (double)d->warmup_ns));
	if (depth == 0) {
		go_back(d, now);
		return;
	}
	if (hard_ns < POINT_LEAST_NS + settle_ns(d)) {
		say(d, "reads at depth %u were not tried: the warm-up is too short for them",
			depth);
		d->trial++;
		next_trial(d, now);
		return;
	}
	d->soft_ns = now->now_ns + soft_ns;
	d->hard_ns = now->now_ns + hard_ns;
	d->depth = depth;
	dither_enter(d, DITHER_SETTLE, now);
}

static void ramp(struct dither *d, const struct dither_look *now)
{
	if (now->files >= 2 * (uint64_t)d->plan->set && now->now_ns >= RAMP_NS)
		dither_enter(d, DITHER_LOOK, now);
}

static void dither_take_look(struct dither *d, const struct dither_look *now)
{
	const struct dither_look *const from = &d->entered;
	const uint64_t took_ns = now->now_ns - from->now_ns;
	const uint64_t files = now->files - from->files;
	if (took_ns < LOOK_NS || files == 0)
		return;
	const double waited = (double)(now->run_queue_ns - from->run_queue_ns);
	const double worked = (double)(now->working_ns - from->working_ns) - waited;
	d->drain_ns = took_ns * d->plan->set / files;
	if (blocked_share(from, now) > BLOCKED_MOST) {
		say(d, "reads at other depths were not tried: no buffer was free for the readers most of the time, so reads are not the limit");
		dither_enter(d, DITHER_OVER, now);
	} else if ((double)(now->cpu_ns - from->cpu_ns) > CPU_MOST * worked) {
		say(d, "reads at other depths were not tried: the store answers at once, and the readers' CPU time is what reads take");
		dither_enter(d, DITHER_OVER, now);
	} else {
		next_trial(d, now);
	}
}

/* All that was in flight when the depth changed is done, and as much as is in flight now. */
static bool has_settled(const struct dither *d, const struct dither_look *now)
{
	return now->earlier == 0 && now->files - d->entered.files >= d->depth &&
	       now->files - d->entered.files >= d->entered.in_flight;
}

static void dither_settle(struct dither *d, const struct dither_look *now)
{
	if (has_settled(d, now)) {
		d->mark_count = d->marks_passed = 0;
		d->mark_every = 1;
		dither_keep_mark(d, now);
		dither_enter(d, DITHER_COUNT, now);
	} else if (now->now_ns >= d->hard_ns) {
		say(d, "reads at depth %u are not counted: what was in flight before was not done in time",
			d->depth);
		d->trial++;
		next_trial(d, now);
	}
}

static void count(struct dither *d, const struct dither_look *now)
{
	const uint64_t files = now->files - d->entered.files;
	const uint64_t took_ns = now->now_ns - d->entered.now_ns;
	const bool enough = files >= FILES_WANTED && took_ns >= POINT_NS;
	const bool sure = now->now_ns >= d->soft_ns || rate_error(d, now) <= RATE_ERROR_SURE;
	if (now->now_ns < d->hard_ns && !(enough && sure)) {
		dither_keep_mark(d, now);
		return;
	}
	if (files >= FILES_LEAST)
		dither_add_point(d, now);
	else
		say(d, "reads at depth %u are not counted: %u files came in the time that the warm-up has for them",
			d->depth, (unsigned)files);
	d->trial++;
	next_trial(d, now);
}

static void come_back(struct dither *d, const struct dither_look *now)
{
	if (has_settled(d, now) && now->now_ns - d->entered.now_ns >= RETURN_NS)
		dither_enter(d, DITHER_OVER, now);
}

/* Slower than was thought.  What was not begun lengthens nothing. */
static void end_in_time(struct dither *d, const struct dither_look *now)
{
	const bool begun = d->phase > DITHER_LOOK;
	const uint64_t needed_ns = begun ? 0 : POINT_LEAST_NS + RETURN_NS;
	const uint64_t begin_ns = d->warmup_ns > BEGUN_NS ? d->warmup_ns : BEGUN_NS;
	const bool in_time = begun || now->now_ns < begin_ns;
	if (d->phase == DITHER_OVER || (in_time && now->now_ns + needed_ns < d->latest_ns))
		return;
	if (!begun)
		say(d, "reads at other depths were not tried: the warm-up is too short for them");
	else if (now->earlier > 0)
		say(d, "%u files that were submitted at another depth were still being read when the measured part began",
			now->earlier);
	d->depth = d->plan->set;
	dither_enter(d, DITHER_OVER, now);
}

uint32_t dither_step(struct dither *d, const struct dither_look *now)
{
	if (d->depth == 0)
		d->depth = d->plan->set;
	switch (d->phase) {
	case DITHER_RAMP:
		ramp(d, now);
		break;
	case DITHER_LOOK:
		dither_take_look(d, now);
		break;
	case DITHER_SETTLE:
		dither_settle(d, now);
		break;
	case DITHER_COUNT:
		count(d, now);
		break;
	case DITHER_RETURN:
		come_back(d, now);
		break;
	case DITHER_OVER:
		break;
	}
	end_in_time(d, now);
	return d->depth;
}
