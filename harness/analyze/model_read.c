/* Tells latency and device time apart: see model_read.h. The trace consists of runs of consecutive
 * files. Each run is replayed by itself from its first completion on, and only briefly, because an
 * error of the service time adds up. */
#include "harness/analyze/model_read.h"

#include "harness/analyze/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { LATENCIES = 12, REFINEMENTS = 40, BISECTIONS = 10, USEFUL_MIN = 32, RUN_MOST = 64 };

/* The device must leave less than this share of the error of latency alone; less still where that
 * error is small (as a share of the mean time) and may be noise. */
static const double CLEARLY_BETTER = 0.7;
static const double FAR_BETTER = 0.55;
static const double SMALL_ERROR = 0.03;
/* Latency that varies so little predicts well enough to be told from a queue. */
static const double WELL_FORETOLD = 0.08;
/* Predicts as well as the best; and the step of the service time, over the time between files, that
 * ends the search. */
static const double AS_GOOD = 1.02;
static const double LEAST = 0.005;
/* Error, as a share of the time per file, that still counts as nearly as good. */
static const double HIDDEN = 0.02;
static const double FINE_ENOUGH = 1e-5;
/* Far more than rounding of sums and quotients in double. */
static const double ROUNDING = 1e-9;
/* A file that took so many services longer than the latency waited for the device. */
static const double WAITED = 0.1;
/* A device that is faster than the reader's CPU cannot be told from it. */
static const double OVER_CPU = 1.6;
/* Cache hits: the slower class takes so many times as long, and either has so many of the files. */
static const double HIT_RATIO = 4;
static const double HIT_SHARE_MIN = 0.03;

/* One file in the order of submission. */
struct file {
	double submitted, completed; /* ns */
	double weight;               /* service in units of the mean: bytes or 1 */
	size_t item;
	bool begins; /* a run: what was before is not known */
	bool hit;
};

struct play {
	struct file *files; /* (count) */
	double *scratch;    /* (2 count) */
	size_t count;
	double gap_ns;    /* mean time between files within runs, of those that are no hits */
	size_t predicted; /* files: all of those but the first of each run */
};

struct guess {
	double latency_ns, service_ns; /* of a file of weight 1 */
	double loss;                   /* mean absolute error, ns */
};

/* fmax for numbers, inlined: a trace is replayed some thousand times. */
static inline double later_of(double a, double b)
{
	return a > b ? a : b;
}

static double took(const struct file *f)
{
	return f->completed - f->submitted;
}

static int submitted_earlier(const void *a, const void *b)
{
	const struct file *x = a;
	const struct file *y = b;
	if (x->submitted != y->submitted)
		return x->submitted < y->submitted ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

/* --- taking the trace apart ------------------------------------------------------------------- */

static void fill_files(const struct trace_item *items, size_t count, struct play *play)
{
	size_t first = 0;
	for (size_t i = 0; i < count; i++) {
		const double completed = items[i].end_s * 1e9;
		play->files[i] = (struct file){.submitted = completed - (double)items[i].service_ns,
			.completed = completed,
			.item = i};
		const bool last = i + 1 == count || i + 1 - first == RUN_MOST ||
				  items[i + 1].number != items[i].number + 1;
		if (!last)
			continue;
		qsort(play->files + first, i + 1 - first, sizeof *play->files, submitted_earlier);
		play->files[first].begins = true;
		first = i + 1;
	}
	play->count = count;
}

static void weigh_files(const struct trace_item *items, bool by_bytes, struct play *play)
{
	double sum = 0;
	double n = 0;
	for (size_t i = 0; i < play->count; i++) {
		struct file *f = &play->files[i];
		f->weight = by_bytes ? (double)items[f->item].bytes : 1;
		sum += f->hit ? 0 : f->weight;
		n += f->hit ? 0 : 1;
	}
	for (size_t i = 0; i < play->count; i++)
		play->files[i].weight = sum > 0 ? play->files[i].weight * n / sum : 1;
}

/* The mean time between submissions: the pace that the device must keep up with. */
static void find_gap(struct play *play)
{
	double time = 0;
	double files = 0;
	const struct file *before = NULL;
	play->predicted = 0;
	for (size_t i = 0; i < play->count; i++) {
		const struct file *f = &play->files[i];
		if (f->begins)
			before = NULL;
		if (f->hit)
			continue;
		if (before) {
			time += f->submitted - before->submitted;
			files += f->weight;
			play->predicted++;
		}
		before = f;
	}
	play->gap_ns = files > 0 ? time / files : 0;
}

/* --- playing ---------------------------------------------------------------------------------- */

/* When the device is free after the first file of a run: at its completion if that took longer than
 * the latency, so that it had been waiting. */
static double first_free(const struct file *f, const struct guess *guess)
{
	const double service_ns = guess->service_ns * f->weight;
	const bool waited = took(f) > guess->latency_ns + WAITED * service_ns;
	return waited ? f->completed : f->submitted + service_ns;
}

/* Predicts each file's completion. Returns the mean absolute error, or HUGE_VAL as soon as it
 * cannot be below `most`. latency_ns, unless NULL: the latency that the replay must be given for
 * each file. */
static double play_through(
	const struct play *play, const struct guess *guess, double most, double *latency_ns)
{
	const double enough =
		most < HUGE_VAL ? most * (double)play->predicted * (1 + ROUNDING) : HUGE_VAL;
	double loss = 0;
	double device_free = 0;
	bool known = false;
	for (size_t i = 0; i < play->count && loss <= enough; i++) {
		const struct file *f = &play->files[i];
		known = known && !f->begins;
		double latency = f->hit ? took(f) : guess->latency_ns;
		if (!f->hit && known) {
			device_free =
				later_of(f->submitted, device_free) + guess->service_ns * f->weight;
			const double arrives = f->submitted + guess->latency_ns;
			loss += fabs(f->completed - later_of(arrives, device_free));
			if (arrives > device_free)
				latency = took(f);
		} else if (!f->hit) {
			device_free = first_free(f, guess);
			known = true;
		}
		if (latency_ns)
			latency_ns[i] = latency;
	}
	return play->predicted > 0 && loss <= enough ? loss / (double)play->predicted : HUGE_VAL;
}

/* The times of the files that went to the device, or of the hits. */
static size_t times_taken(const struct play *play, bool hits)
{
	size_t n = 0;
	for (size_t i = 0; i < play->count; i++)
		if (play->files[i].hit == hits)
			play->scratch[n++] = took(&play->files[i]);
	return n;
}

static void try_guess(const struct play *play, struct guess guess, struct guess *best)
{
	guess.loss = play_through(play, &guess, best->loss, NULL);
	if (guess.loss < best->loss)
		*best = guess;
}

/* Tries a service time with some latencies. */
static void try_service(
	const struct play *play, double service_ns, const double *latencies, struct guess *best)
{
	try_guess(play, (struct guess){.service_ns = service_ns}, best);
	for (size_t i = 0; i < LATENCIES; i++) {
		try_guess(play, (struct guess){latencies[i], service_ns, 0}, best);
	}
}

/* Around the best, along each axis and both diagonals, in steps that shrink when none leads
 * down. */
static void refine_guess(const struct play *play, struct guess *best)
{
	static const double ways[][2] = {
		{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}, {1, 1}, {-1, -1}};
	double step_service = 0.02 * play->gap_ns;
	double step_latency = 0.1 * best->latency_ns + 0.05 * play->gap_ns;
	for (int r = 0; r < REFINEMENTS && step_service > FINE_ENOUGH * play->gap_ns; r++) {
		const struct guess from = *best;
		for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
			try_guess(play,
				(struct guess){fmax(from.latency_ns + ways[w][0] * step_latency, 0),
					fmax(from.service_ns + ways[w][1] * step_service, 0), 0},
				best);
		if (best->loss < from.loss)
			continue;
		step_service /= 2;
		step_latency /= 2;
	}
}

/* One latency for all files, without any queue. */
static struct guess latency_alone(const struct play *play)
{
	const size_t n = times_taken(play, false);
	struct guess guess = {.latency_ns = statistics_median(play->scratch, n)};
	for (size_t i = 0; i < n; i++)
		guess.loss += fabs(play->scratch[i] - guess.latency_ns) / (double)n;
	return guess;
}

/* Behind a queue that never empties latency does not show: takes the least one that predicts as
 * well. */
static void least_latency(const struct play *play, struct guess *best)
{
	const double enough = AS_GOOD * best->loss;
	double low = 0;
	double high = best->latency_ns;
	for (int i = 0; i < BISECTIONS; i++) {
		const struct guess guess = {i == 0 ? 0 : (low + high) / 2, best->service_ns, 0};
		const double loss = play_through(play, &guess, HUGE_VAL, NULL);
		*(loss <= enough ? &high : &low) = guess.latency_ns;
	}
	best->latency_ns = high;
	best->loss = play_through(play, best, HUGE_VAL, NULL);
}

static struct guess with_device(const struct play *play)
{
	/* Busy shares: dense near 1, where the queue is. */
	static const double shares[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93,
		0.96, 0.98, 0.99, 1, 1.01, 1.03};
	/* Hardly a file was quicker than the last: what latency is if a queue hides it from nearly
	 * all. */
	double quantiles[LATENCIES + 1];
	double latencies[LATENCIES + 1];
	const size_t n = times_taken(play, false);
	for (size_t i = 0; i < LATENCIES; i++)
		quantiles[i] = 0.02 + 0.9 * (double)i / LATENCIES;
	quantiles[LATENCIES] = LEAST;
	statistics_quantiles(play->scratch, n, quantiles, LATENCIES + 1, latencies);
	struct guess best = {.loss = HUGE_VAL};
	struct guess least = {.latency_ns = latencies[LATENCIES], .loss = HUGE_VAL};
	for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
		const double service_ns = shares[i] * play->gap_ns;
		try_service(play, service_ns, latencies, &best);
		try_guess(play, (struct guess){least.latency_ns, service_ns, 0}, &least);
	}
	refine_guess(play, &best);
	refine_guess(play, &least);
	if (least.loss < best.loss)
		best = least;
	least_latency(play, &best);
	return best;
}

/* The largest service time of a device that latency would have hidden: with it the trace is
 * predicted nearly as well as without. */
static double hidden_service(const struct play *play, const struct guess *alone)
{
	const double enough = alone->loss + HIDDEN * alone->latency_ns;
	double low = 0;
	double high = alone->latency_ns;
	for (int i = 0; i < BISECTIONS; i++) {
		const struct guess guess = {alone->latency_ns, i == 0 ? high : (low + high) / 2, 0};
		*(play_through(play, &guess, HUGE_VAL, NULL) <= enough ? &low : &high) =
			guess.service_ns;
	}
	return low;
}

/* --- cache hits ------------------------------------------------------------------------------- */

/* Splits by the time taken so that the classes differ most in its logarithm (N. Otsu, 1979); false:
 * one class. */
static bool find_hits(struct play *play)
{
	enum { LEVELS = 64 };
	const size_t n = times_taken(play, false);
	double *const logarithms = play->scratch + n;
	double quantiles[LEVELS - 1];
	double levels[LEVELS - 1];
	for (size_t i = 0; i < LEVELS - 1; i++)
		quantiles[i] = (double)(i + 1) / LEVELS;
	statistics_quantiles(play->scratch, n, quantiles, LEVELS - 1, levels);
	for (size_t i = 0; i < n; i++)
		logarithms[i] = log(fmax(play->scratch[i], 1));
	double best = 0;
	double threshold = 0;
	for (size_t level = 0; level < LEVELS - 1; level++) {
		const double at = levels[level];
		double low = 0;
		double high = 0;
		double below = 0;
		for (size_t i = 0; i < n; i++) {
			*(play->scratch[i] <= at ? &low : &high) += logarithms[i];
			below += play->scratch[i] <= at;
		}
		const double above = (double)n - below;
		if (below < 1 || above < 1)
			continue;
		const double apart = high / above - low / below;
		if (below * above * apart * apart > best && apart > log(HIT_RATIO)) {
			best = below * above * apart * apart;
			threshold = at;
		}
	}
	size_t hits = 0;
	for (size_t i = 0; i < play->count; i++) {
		play->files[i].hit = took(&play->files[i]) <= threshold;
		hits += play->files[i].hit;
	}
	const double share = (double)hits / (double)play->count;
	return threshold > 0 && share >= HIT_SHARE_MIN && share <= 1 - HIT_SHARE_MIN;
}

/* Mean absolute error over all files, hits taken as a constant. */
static double overall(const struct play *play, double loss)
{
	const size_t n = times_taken(play, true);
	const double middle = statistics_median(play->scratch, n);
	double hits = 0;
	for (size_t i = 0; i < n; i++)
		hits += fabs(play->scratch[i] - middle);
	return (hits + loss * (double)(play->count - n)) / (double)play->count;
}

/* --- the choice ------------------------------------------------------------------------------- */

struct choice {
	struct guess guess;
	double loss, alone; /* over all files: with the device, and with latency alone */
	bool by_bytes, hits;
};

static void consider_choice(const struct trace_item *items, bool by_bytes, bool hits,
	struct play *play, struct choice *best)
{
	weigh_files(items, by_bytes, play);
	find_gap(play);
	if (!(play->gap_ns > 0))
		return;
	const struct guess guess = with_device(play);
	const double loss = overall(play, guess.loss);
	if (loss < best->loss)
		*best = (struct choice){
			guess, loss, overall(play, latency_alone(play).loss), by_bytes, hits};
}

static void restore(const struct trace_item *items, const struct choice *choice, struct play *play)
{
	for (size_t i = 0; i < play->count; i++)
		play->files[i].hit = false;
	if (choice->hits)
		(void)find_hits(play);
	weigh_files(items, choice->by_bytes, play);
	find_gap(play);
}

static void all_latency(const struct play *play, double cpu_ns, float *latency_ns, float *device_ns)
{
	for (size_t i = 0; i < play->count; i++) {
		const struct file *f = &play->files[i];
		latency_ns[f->item] = (float)fmax(took(f) - cpu_ns, 0);
		device_ns[f->item] = 0;
	}
}

/* Leaves out what the queue explains: the replay makes it anew. */
static void queue_out(const struct play *play, const struct guess *guess, double cpu_ns,
	bool device, float *latency_ns, float *device_ns)
{
	(void)play_through(play, guess, HUGE_VAL, play->scratch);
	for (size_t i = 0; i < play->count; i++) {
		const struct file *f = &play->files[i];
		latency_ns[f->item] = (float)fmax(play->scratch[i] - cpu_ns, 0);
		device_ns[f->item] = f->hit || !device ? 0 : (float)(guess->service_ns * f->weight);
	}
}

static double mean_ns(const float *values, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += (double)values[i];
	return count > 0 ? sum / (double)count : 0;
}

/* Uses the latency and capacity of all operating points. Cache hits are in the rate but do not use
 * the device. */
static void split_at_capacity(const struct trace_item *items, const struct read_facts *facts,
	const struct choice *best, struct play *play, float *latency_ns, float *device_ns,
	struct read_split *out)
{
	const struct storage *storage = facts->storage;
	struct choice choice = *best;
	choice.by_bytes = storage->kind == STORAGE_BYTES ||
			  (storage->kind == STORAGE_UNCLEAR && best->by_bytes);
	restore(items, &choice, play);
	double hits = 0;
	for (size_t i = 0; i < play->count; i++)
		hits += play->files[i].hit;
	out->hit_share = hits / (double)play->count;
	const double service_ns = 1e9 / storage->capacity / fmax(1 - out->hit_share, LEAST);
	const struct guess guess = {fmin(storage->latency_ns, storage->response_ns), service_ns, 0};
	queue_out(play, &guess, facts->cpu_ns, true, latency_ns, device_ns);
	out->by_bytes = choice.by_bytes;
	out->device_share = fmin(storage->rate / storage->capacity, 1);
	out->identified = true;
}

/* Without a queue, the rate with the most files in flight bounds what a device may hide. */
static void split_as_latency(const struct read_facts *facts, const struct play *play,
	float *latency_ns, float *device_ns, struct read_split *out)
{
	all_latency(play, facts->cpu_ns, latency_ns, device_ns);
	out->hidden_ns = 1e9 / facts->storage->best_rate;
	out->identified = true;
}

static void decide(const struct trace_item *items, const struct read_facts *facts,
	struct play *play, float *latency_ns, float *device_ns, struct read_split *out)
{
	(void)times_taken(play, false);
	const double mean_ns = statistics_mean(play->scratch, play->count);
	struct choice best = {.loss = HUGE_VAL};
	consider_choice(items, false, false, play, &best);
	consider_choice(items, true, false, play, &best);
	if (find_hits(play)) {
		consider_choice(items, false, true, play, &best);
		consider_choice(items, true, true, play, &best);
	}
	const struct storage *storage = facts->storage;
	if (storage && storage->capacity_seen && fabs(storage->full - 0.5) > STORAGE_TOLD) {
		split_at_capacity(items, facts, &best, play, latency_ns, device_ns, out);
		return;
	}
	if (storage && storage->full < 0.5 - STORAGE_TOLD) {
		split_as_latency(facts, play, latency_ns, device_ns, out);
		return;
	}
	restore(items, &best, play);
	out->error_latency = mean_ns > 0 ? best.alone / mean_ns : 0;
	out->error_device = mean_ns > 0 ? best.loss / mean_ns : 0;
	const double needed = out->error_latency < SMALL_ERROR ? FAR_BETTER : CLEARLY_BETTER;
	const bool better = best.loss < needed * best.alone;
	out->identified = better || out->error_latency < WELL_FORETOLD;
	if (!better) {
		all_latency(play, facts->cpu_ns, latency_ns, device_ns);
		const struct guess alone = latency_alone(play);
		out->hidden_ns = hidden_service(play, &alone);
	} else {
		const bool device = best.guess.service_ns > OVER_CPU * facts->cpu_ns;
		queue_out(play, &best.guess, facts->cpu_ns, device, latency_ns, device_ns);
		out->by_bytes = best.by_bytes;
		out->device_share = device ? fmin(best.guess.service_ns / play->gap_ns, 1) : 0;
		double hits = 0;
		for (size_t i = 0; i < play->count; i++)
			hits += play->files[i].hit;
		out->hit_share = hits / (double)play->count;
	}
}

int read_split(const struct trace_item *items, size_t count, const struct read_facts *facts,
	float *latency_ns, float *device_ns, struct read_split *out)
{
	*out = (struct read_split){0};
	struct play play = {.files = calloc(count + 1, sizeof(struct file)),
		.scratch = calloc(2 * count + 1, sizeof(double))};
	if (!play.files || !play.scratch) {
		free(play.files);
		free(play.scratch);
		return -ENOMEM;
	}
	fill_files(items, count, &play);
	const bool one = facts->threads * (facts->blocking ? 1 : facts->depth) <= 1;
	const struct storage *storage = facts->storage;
	const bool seen =
		storage && storage->capacity_seen && fabs(storage->full - 0.5) > STORAGE_TOLD;
	if (one && seen && count >= USEFUL_MIN)
		split_at_capacity(items, facts, &(struct choice){.hits = false}, &play, latency_ns,
			device_ns, out);
	else if (one || count < USEFUL_MIN)
		all_latency(&play, facts->cpu_ns, latency_ns, device_ns);
	else
		decide(items, facts, &play, latency_ns, device_ns, out);
	out->latency_ns = mean_ns(latency_ns, count);
	if (one && out->device_share <= 0)
		out->hidden_ns = out->latency_ns;
	if (storage && storage->known)
		out->hidden_ns = fmin(out->hidden_ns, 1e9 / storage->best_rate);
	out->device_ns = mean_ns(device_ns, count);
	free(play.files);
	free(play.scratch);
	return 0;
}
