/* What fills a station: bytes, requests, or its number of servers.
 *
 * When a station is full, the time in which a run of files completes is in proportion to what limits it.  So of runs of some
 * files each the time is regressed on the bytes, both as shares of their means: a slope of 1 says bytes, of 0 files.  A run has
 * several times as many files as are in flight, because in which order these share a link is not known. */
#include "harness/analyze/storage.h"

#include "harness/analyze/confidence.h"

#include <math.h>
#include <stdlib.h>

enum { RUN_LEAST = 4, RUN_MOST = 32, RUNS_LEAST = 12, RUNS_WANTED = 24, SLOTS_MOST = 8 };

static const double RUN_MEAN = 1.5; /* of their files, over the least */
static const double SIZES_ALIKE =
	0.03; /* deviation over mean, of the bytes of runs: below, they tell nothing */
static const double SHARED_MOST = 1.5;  /* slope on a file's own bytes: more is something else */
static const double HALF_SURE = 0.85;   /* of bytes or requests: below, it is not clear */
static const double SLOTS_LEAST = 0.75; /* fewer servers than one there cannot be */
static const double VAGUE =
	1.5; /* 90 % interval of the latency, high over low, that tells no whole number */
static const double SLOTS_OF_A_LINK = 1.5;
static const double SHARED_BY_ALL =
	0.8; /* of the files in flight, served at once: that is no number of servers */
static const double NEAR_WHOLE = 0.12; /* of a number of servers from a whole one */
static const double SAVED_UP =
	1.25; /* rate of the first files over the later one: servers cannot save */
static const double CERTAIN_GROUPS = 0.95;
static const double CERTAIN_FEW = 0.95, CERTAIN_SLOTS = 0.85, CERTAIN_BETWEEN = 0.80,
		    CERTAIN_MANY = 0.60, CERTAIN_ALIKE = 0.7;

struct completion {
	double at, bytes;
};

static int by_end(const void *a, const void *b)
{
	const struct completion *x = a;
	const struct completion *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

/* Sums over runs of files. */
struct run_sums {
	double n, t, b, tt, bb, tb;
};

static void add_run(struct run_sums *s, double seconds, double bytes)
{
	s->n++;
	s->t += seconds;
	s->b += bytes;
	s->tt += seconds * seconds;
	s->bb += bytes * bytes;
	s->tb += seconds * bytes;
}

/* Between `run` and twice as many files, up to the longest pause: a throttle lets through in slices of time, and a run that ends
 * within one is a slice too long or too short. */
static size_t run_end(const struct completion *files, size_t first, size_t run)
{
	size_t end = first + run;
	double longest = 0;
	for (size_t i = first + run; i < first + 2 * run; i++) {
		const double pause = files[i + 1].at - files[i].at;
		end = pause > longest ? i : end;
		longest = fmax(longest, pause);
	}
	return end;
}

/* A file's mean time and bytes over each run of files.  Items are consecutive by number; near either end neighbours are missing
 * among the completions. */
static void add_consecutive(struct run_sums *sums, const struct trace_item *items, size_t count,
	size_t run, size_t edge, struct completion *scratch)
{
	for (size_t i = 0; i < count; i++)
		scratch[i] = (struct completion){items[i].end_s, (double)items[i].bytes};
	qsort(scratch, count, sizeof *scratch, by_end);
	for (size_t first = edge; first + 2 * run + edge < count;) {
		const size_t end = run_end(scratch, first, run);
		const double files = (double)(end - first);
		double bytes = 0;
		for (size_t i = first + 1; i <= end; i++)
			bytes += scratch[i].bytes;
		add_run(sums, (scratch[end].at - scratch[first].at) / files, bytes / files);
		first = end;
	}
}

/* Files of a run: several times as many as are in flight, but not so many that there are few runs. */
static size_t run_files(const struct storage_evidence *e, double in_flight)
{
	double files = 0;
	for (size_t i = 0; i < e->count; i++) {
		const struct trace *trace = storage_trace(e, i, stage_name(STAGE_READ));
		files += trace ? (double)trace->count : 0;
	}
	const double most = fmin(fmax(floor(files / RUNS_WANTED / RUN_MEAN), RUN_LEAST), RUN_MOST);
	return (size_t)fmin(fmax(ceil(2 * in_flight), RUN_LEAST), most);
}

static void add_trace(
	struct run_sums *sums, const struct trace *trace, double in_flight, size_t run)
{
	struct completion *scratch = malloc((trace->count + 1) * sizeof *scratch);
	const size_t edge = (size_t)fmin(ceil(in_flight / 2), RUN_MOST / 4.0);
	for (size_t first = 0; scratch && first < trace->count;) {
		const size_t last = trace_run_end(trace, first);
		add_consecutive(sums, &trace->items[first], last - first, run, edge, scratch);
		first = last;
	}
	free(scratch);
}

static void regress(const struct run_sums *s, struct storage *out)
{
	const double n = s->n;
	if (n >= RUNS_LEAST && s->t > 0 && s->b > 0) {
		const double var_b = fmax(s->bb / n / (s->b / n) / (s->b / n) - 1, 0);
		const double var_t = fmax(s->tt / n / (s->t / n) / (s->t / n) - 1, 0);
		const double both = s->tb / n / (s->t / n) / (s->b / n) - 1;
		if (sqrt(var_b) > SIZES_ALIKE) {
			const double slope = both / var_b;
			const double rest = fmax(var_t - slope * both, 0);
			out->bytes_share = slope;
			out->bytes_error = sqrt(rest / var_b / (n - 2));
		}
	}
}

/* Where all in flight share a link, a file takes the longer the larger it is itself; where files queue or each has a server for
 * a fixed time, its own bytes hardly matter. */
static void regress_own(const struct storage_evidence *e, struct storage *out)
{
	struct run_sums own = {0};
	for (size_t r = 0; r < e->count; r++) {
		const struct trace *trace = storage_trace(e, r, stage_name(STAGE_READ));
		for (size_t i = 0; trace && i < trace->count; i++)
			add_run(&own, (double)trace->items[i].service_ns * 1e-9,
				(double)trace->items[i].bytes);
	}
	struct storage alone = {.bytes_share = NAN, .bytes_error = NAN};
	regress(&own, &alone);
	out->sizes_alike = isnan(alone.bytes_share);
	if (alone.bytes_share > out->bytes_share && alone.bytes_share <= SHARED_MOST) {
		out->bytes_share = alone.bytes_share;
		out->bytes_error = alone.bytes_error;
	}
}

/* Requests that a throttle counts, or servers that are all taken: these are a whole number, C L. */
static void tell_slots(struct storage *out)
{
	const double whole = fmax(round(out->slots), 1);
	const double off = fabs(log(out->slots / whole));
	if (out->group > 0) {
		out->kind = out->group > 1 ? STORAGE_SLOTS : STORAGE_REQUESTS;
		out->kind_certainty = out->group > 1 ? CERTAIN_GROUPS : CERTAIN_FEW;
		return;
	}
	const bool vague = out->latency_90.high > VAGUE * out->latency_90.low;
	if (isnan(out->ramp_ratio)) {
		/* What a file takes on an idle station was not seen. */
		out->kind = STORAGE_REQUESTS;
		out->kind_certainty = CERTAIN_MANY;
	} else if ((out->slots < SLOTS_LEAST && !vague) || out->ramp_rate > SAVED_UP) {
		out->kind = STORAGE_REQUESTS;
		out->kind_certainty = CERTAIN_FEW;
	} else if (!vague &&
		   (!out->side_by_side || (off > NEAR_WHOLE && whole < SLOTS_MOST / 2.0))) {
		out->kind = STORAGE_REQUESTS;
		out->kind_certainty = CERTAIN_BETWEEN;
	} else {
		out->kind = STORAGE_SLOTS;
		out->kind_certainty = whole <= SLOTS_MOST && !vague ? CERTAIN_SLOTS : CERTAIN_MANY;
	}
}

/* The first files took as long as later ones, though more in flight gain nothing: all in flight have a share of one link. */
static bool shares(const struct storage *s)
{
	return s->slots > SHARED_BY_ALL * s->in_flight;
}

/* Files of one size: bytes and requests are one.  But no link serves two at once, each in the time of one. */
static void tell_alike(struct storage *out)
{
	tell_slots(out);
	if (out->kind == STORAGE_SLOTS && out->group > 1)
		return;
	if (out->kind == STORAGE_SLOTS && out->slots > SLOTS_OF_A_LINK && !shares(out))
		out->kind_certainty = CERTAIN_ALIKE;
	else
		out->kind = STORAGE_UNCLEAR;
}

void storage_find_kind(const struct storage_evidence *e, struct storage *out)
{
	struct run_sums sums = {0};
	const size_t run = run_files(e, out->in_flight);
	for (size_t i = 0; i < e->count; i++) {
		const struct trace *trace = storage_trace(e, i, stage_name(STAGE_READ));
		if (trace)
			add_trace(&sums, trace, out->in_flight, run);
	}
	regress(&sums, out);
	regress_own(e, out);
	out->kind = STORAGE_UNCLEAR;
	out->kind_certainty = 0;
	if (isnan(out->bytes_share)) {
		tell_alike(out);
		return;
	}
	const double bytes =
		confidence_normal((out->bytes_share - 0.5) / fmax(out->bytes_error, 0.02));
	if (bytes > HALF_SURE) {
		out->kind = STORAGE_BYTES;
		out->kind_certainty = bytes;
	} else if (bytes < 1 - HALF_SURE) {
		tell_slots(out);
		out->kind_certainty *= 1 - bytes;
	}
}
