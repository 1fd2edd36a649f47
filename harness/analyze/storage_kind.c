/* What fills a station: bytes, requests, its number of servers, or others that read there.
 *
 * When a station is full, the time in which a run of files completes is in proportion to what
 * limits it.  So the time of runs of consecutive files, up to a pause (throttles let through in
 * slices of time), is regressed on their bytes, both as shares of their means: a slope of 1 is
 * bandwidth, of 0 requests; where all share one link, the slope of each file's time on its own
 * bytes is 1, too.  A run has several times as many files as are in flight, because the order in
 * which those share a link is not known.  Files of one size cannot tell, and the evidence says so.
 *
 * Where one file at a time was read alone, that tells requests from servers: it meets the rate of a
 * throttle, evenly, and one of several servers. Else
 * requests are concurrency where the first files of each repetition came back in groups of c > 1,
 * in which c servers that take each file the same time let them go (regular times between groups
 * that agree with the rate, the first group after as long), and iops where they came one by one.
 * Where times vary too much for groups, it is concurrency where C L is a whole number of servers,
 * and iops where that is less than one, between whole numbers, or the first files were let through
 * faster than later ones.  Files of one size whose first took as long as later ones share one link,
 * and that is no number of servers. */
#include "harness/analyze/storage_capacity.h"

#include "harness/analyze/reads_alone.h"
#include "harness/analyze/statistics.h"
#include "harness/base/array.h"

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
static const double ONE_AT_A_TIME = 1.2;                 /* files in flight, on average */
static const double ONE_SERVER = 1.7, TWO_SERVERS = 1.3; /* surely fewer than that, surely more */
static const double UNEVEN = 0.6; /* deviation over mean; files of one or two requests have less */
static const double NINETY = 1.645;
static const double CERTAIN_GROUPS = 0.95;
static const double CERTAIN_FEW = 0.95, CERTAIN_SLOTS = 0.85, CERTAIN_BETWEEN = 0.80,
		    CERTAIN_MANY = 0.60, CERTAIN_ALIKE = 0.7;

struct completion {
	double at, bytes; /* sorted by the first */
};

/* Sums over runs of files. */
struct run_sums {
	double n, t, b, tt, bb, tb;
};

static void add_sums(struct run_sums *s, double seconds, double bytes)
{
	s->n++;
	s->t += seconds;
	s->b += bytes;
	s->tt += seconds * seconds;
	s->bb += bytes * bytes;
	s->tb += seconds * bytes;
}

/* Ends a run of files between `run` and twice as many, at the longest pause: a throttle lets files
 * through in slices of time, and a run that ends within a slice is a slice too long or too
 * short. */
static size_t run_of_files_end(const struct completion *files, size_t first, size_t run)
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

/* Adds the mean time and bytes per file of each run. Items are consecutive by number; near either
 * end some neighbours are missing among the completions. */
static void add_consecutive(struct run_sums *sums, const struct trace_item *items, size_t count,
	size_t run, size_t edge, struct completion *scratch)
{
	for (size_t i = 0; i < count; i++)
		scratch[i] = (struct completion){items[i].end_s, (double)items[i].bytes};
	qsort(scratch, count, sizeof *scratch, order_doubles);
	for (size_t first = edge; first + 2 * run + edge < count;) {
		const size_t end = run_of_files_end(scratch, first, run);
		const double files = (double)(end - first);
		double bytes = 0;
		for (size_t i = first + 1; i <= end; i++)
			bytes += scratch[i].bytes;
		add_sums(sums, (scratch[end].at - scratch[first].at) / files, bytes / files);
		first = end;
	}
}

/* Files of a run: several times as many as are in flight, but not so many that there are few
 * runs. */
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

static void add_runs_of_trace(
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

/* Where all files in flight share a link, a larger file takes longer itself; where files queue, or
 * each has a server for a fixed time, its own bytes hardly matter. */
static void regress_own(const struct storage_evidence *e, struct storage *out)
{
	struct run_sums own = {0};
	for (size_t r = 0; r < e->count; r++) {
		const struct trace *trace = storage_trace(e, r, stage_name(STAGE_READ));
		for (size_t i = 0; trace && i < trace->count; i++)
			add_sums(&own, (double)trace->items[i].service_ns * 1e-9,
				(double)trace->items[i].bytes);
	}
	struct storage alone = {.bytes_share = NAN, .bytes_error = NAN};
	regress(&own, &alone);
	out->sizes_alike = own.n >= RUNS_LEAST && isnan(alone.bytes_share);
	if (alone.bytes_share > out->bytes_share && alone.bytes_share <= SHARED_MOST) {
		out->bytes_share = alone.bytes_share;
		out->bytes_error = alone.bytes_error;
	}
}

/* One file at a time meets the rate of a throttle, and one server of several. */
static void tell_slots_alone(struct storage *out)
{
	const double whole = round(out->slots_alone);
	const double off = fabs(log(out->slots_alone / fmax(whole, 1)));
	const double chance = NINETY * out->slots_alone_error;
	const bool one = log(out->slots_alone) + chance < log(ONE_SERVER);
	const bool several = log(out->slots_alone) - chance > log(TWO_SERVERS);
	const bool between = several && off > NEAR_WHOLE + chance;
	/* A throttle lets files through evenly; one server may take as long as it likes. */
	const bool server = !between && out->one_spread > UNEVEN;
	const bool rate = one || between || (!several && whole <= 1);
	out->kind = rate && !server ? STORAGE_REQUESTS : STORAGE_SLOTS;
	out->kind_certainty = one && !server                               ? CERTAIN_FEW
			      : between                                    ? CERTAIN_BETWEEN
			      : server || (several && whole <= SLOTS_MOST) ? CERTAIN_SLOTS
									   : CERTAIN_MANY;
}

/* Tells requests that a throttle counts from servers that are all taken: servers are a whole
 * number, C L. */
static void tell_slots(struct storage *out)
{
	const double whole = fmax(round(out->slots), 1);
	const double off = fabs(log(out->slots / whole));
	if (out->group > 0) {
		out->kind = out->group > 1 ? STORAGE_SLOTS : STORAGE_REQUESTS;
		out->kind_certainty = out->group > 1 ? CERTAIN_GROUPS : CERTAIN_FEW;
		return;
	}
	if (!isnan(out->slots_alone)) {
		tell_slots_alone(out);
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

/* With files of one size, bytes and requests are the same. But no link serves two files at once,
 * each in the time of one. */
static void tell_alike(struct storage *out)
{
	tell_slots(out);
	if (out->kind == STORAGE_SLOTS && out->group > 1)
		return;
	/* The first files took as long as later ones although more in flight gain nothing. */
	const bool shares_a_link = out->slots > SHARED_BY_ALL * out->in_flight;
	if (out->kind == STORAGE_SLOTS && out->slots > SLOTS_OF_A_LINK && !shares_a_link)
		out->kind_certainty = CERTAIN_ALIKE;
	else
		out->kind = STORAGE_UNCLEAR;
}

static void compare_one_at_a_time(const struct alone_arm *arms, size_t count, struct storage *out)
{
	const struct alone_arm *base = reads_alone_as_set(arms, count);
	for (size_t i = 0; base && i < count; i++) {
		const struct alone_arm *arm = &arms[i];
		if (arm->first->part[0] || arm == base || arm->in_flight > ONE_AT_A_TIME)
			continue;
		out->slots_alone = arm->in_flight * exp(base->log_rate - arm->log_rate);
		out->slots_alone_error = hypot(base->error, arm->error);
		out->one_spread = arm->spread;
	}
}

/* Larger files alone and smaller ones alone, in turns. */
static void compare_sizes(const struct storage_evidence *e, struct storage *out)
{
	struct alone_arm arms[ALONE_ARMS_MAX];
	const size_t count = reads_alone_arms(e->read_blocks, e->read_block_count, arms);
	double error;
	compare_one_at_a_time(arms, count, out);
	const double share = reads_alone_bytes_share(arms, count, &error);
	if (isnan(share))
		return;
	out->bytes_share = share;
	out->bytes_error = error;
	out->sizes_alike = false;
}

void storage_find_kind(const struct storage_evidence *e, struct storage *out)
{
	struct run_sums sums = {0};
	const size_t run = run_files(e, out->in_flight);
	for (size_t i = 0; i < e->count; i++) {
		const struct trace *trace = storage_trace(e, i, stage_name(STAGE_READ));
		if (trace)
			add_runs_of_trace(&sums, trace, out->in_flight, run);
	}
	regress(&sums, out);
	regress_own(e, out);
	compare_sizes(e, out);
	out->kind = STORAGE_UNCLEAR;
	out->kind_certainty = 0;
	if (isnan(out->bytes_share)) {
		tell_alike(out);
		return;
	}
	const double bytes =
		statistics_normal((out->bytes_share - 0.5) / fmax(out->bytes_error, 0.02));
	if (bytes > HALF_SURE) {
		out->kind = STORAGE_BYTES;
		out->kind_certainty = bytes;
	} else if (bytes < 1 - HALF_SURE) {
		tell_slots(out);
		out->kind_certainty *= 1 - bytes;
	}
}

/* --- the first files of a run ----------------------------------------------------------------- */

/* The first files find a station without files of ours.  Where it serves c at once, each in the
 * same time, they come back in groups of c, that time apart; what lets files through one by one
 * gives groups of one.  Where others keep N files at a station of capacity C that serves all in
 * turn, the first file waits for these, N / C, and the next ones come 1 / C apart, faster than
 * later on: d of ours then get C d / (d + N). */

enum { FIRST_FILES_LEAST = 4, GROUPS_LEAST = 2, GROUPS_MANY = 3 };

static const double LATE_FILES = 4; /* one of so many */

static const double APART = 0.4;     /* of the first file's time, between two groups */
static const double SAME_SIZE = 0.5; /* of the groups, at least */
static const double REGULAR = 0.2,
		    MOSTLY = 0.6;       /* off the median, of so many of the times between groups */
static const double FIRST_LEAST = 0.8;  /* of that time, that the first group took */
static const double OFF_CAPACITY = 0.2; /* of a whole number of servers */
static const double AGREE = 0.5;        /* of the repetitions */
static const double EVENLY =
	0.35; /* off the median, of the times between files that come one by one */
static const double OTHERS_LEAST = 0.5; /* of our files in flight: fewer are of no matter */
static const double OTHERS_MOST = 5;    /* likewise: more cannot be counted */
/* Largest difference between two counts of the others' files, over our files in flight; with a pure
 * latency the counts differ by all of them. */
static const double COUNTED_ALIKE = 0.35;
static const double ELASTICITY_SLACK = 0.1;

struct groups {
	double size; /* the median; 0: nothing regular */
	double apart_ns;
};

static double first_end(const struct trace *ramp)
{
	double end_s = ramp->items[0].end_s;
	for (size_t i = 1; i < ramp->count; i++)
		end_s = fmin(end_s, ramp->items[i].end_s);
	return end_s;
}

/* Sent before any came back. */
static bool is_first(const struct trace_item *item, double first_end_s)
{
	return item->end_s - (double)item->service_ns * 1e-9 < first_end_s;
}

struct first_file {
	double ns, bytes; /* sorted by the first */
};

static size_t first_files_of(const struct trace *ramp, struct first_file files[])
{
	size_t count = 0;
	const double fills_s = first_end(ramp);
	for (size_t i = 0; i < ramp->count && count < TRACE_RAMP_FILES_MAX; i++)
		if (is_first(&ramp->items[i], fills_s))
			files[count++] = (struct first_file){
				(double)ramp->items[i].service_ns, (double)ramp->items[i].bytes};
	qsort(files, count, sizeof *files, order_doubles);
	return count;
}

/* A file that others keep waiting leaves its group one short. */
static bool groups_alike(double a, double b)
{
	return fabs(a - b) <= floor(b / LATE_FILES);
}

/* The last of several groups may be a part of one. */
static struct groups groups_of(const struct first_file *files, size_t count)
{
	double sizes[TRACE_RAMP_FILES_MAX];
	double gaps[TRACE_RAMP_FILES_MAX];
	size_t groups = 0;
	double began = 0;
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || files[i].ns - files[i - 1].ns > APART * files[0].ns) {
			if (groups > 0)
				gaps[groups - 1] = files[i].ns - began;
			began = files[i].ns;
			sizes[groups++] = 0;
		}
		sizes[groups - 1]++;
	}
	if (count < FIRST_FILES_LEAST || groups < GROUPS_LEAST)
		return (struct groups){0};
	const size_t whole = groups >= GROUPS_MANY ? groups - 1 : groups;
	const size_t between = whole - 1;
	const double apart = statistics_median(gaps, between);
	const double size = ceil(statistics_median(sizes, whole));
	size_t same = 0;
	size_t regular = 0;
	for (size_t i = 0; i < whole; i++)
		same += groups_alike(sizes[i], size);
	for (size_t i = 0; i < between; i++)
		regular += fabs(gaps[i] / apart - 1) < REGULAR;
	if ((double)same < SAME_SIZE * (double)whole || (double)regular < MOSTLY * (double)between)
		return (struct groups){0};
	/* A throttle that lets several through in each slice of time lets the first through at
	 * once. */
	if (size > 1 && files[0].ns < FIRST_LEAST * apart)
		return (struct groups){0};
	return (struct groups){size, apart};
}

void storage_find_groups(const struct storage_evidence *e, struct storage *out)
{
	struct groups found[STORAGE_REPEATS_MAX];
	struct first_file files[TRACE_RAMP_FILES_MAX];
	double apart[STORAGE_REPEATS_MAX];
	size_t count = 0;
	size_t told = 0;
	for (size_t r = 0; r < e->count && count < STORAGE_REPEATS_MAX; r++) {
		const struct trace *ramp = storage_trace(e, r, TRACE_READ_RAMP);
		if (!ramp)
			continue;
		found[count] = groups_of(files, first_files_of(ramp, files));
		if (found[count].size > 0)
			apart[told++] = found[count].apart_ns;
		count++;
	}
	if (told == 0)
		return;
	const double between = statistics_median(apart, told);
	const double servers = out->rate * between * 1e-9;
	const double whole = fmax(round(servers), 1);
	size_t agree = 0;
	for (size_t i = 0; i < count; i++)
		agree += found[i].size > 0 && groups_alike(found[i].size, whole);
	if ((double)agree < AGREE * (double)count || fabs(servers / whole - 1) > OFF_CAPACITY)
		return;
	out->group = (unsigned)whole;
	out->group_ns = between;
}

/* --- others at the station -------------------------------------------------------------------- */

struct turns {
	double apart_ns; /* between files of the mean size; 0: they do not come evenly */
	double first_ns; /* till the first */
};

/* weights of the files, mean 1. */
static struct turns turns_of(const struct first_file *files, const double *weights, size_t count)
{
	double gaps[TRACE_RAMP_FILES_MAX] = {0};
	double sum = 0;
	size_t even = 0;
	if (count < FIRST_FILES_LEAST)
		return (struct turns){0};
	for (size_t i = 1; i < count; i++) {
		gaps[i - 1] = (files[i].ns - files[i - 1].ns) / weights[i];
		sum += weights[i];
	}
	const double median = statistics_median(gaps, count - 1);
	for (size_t i = 0; i + 1 < count; i++)
		even += fabs(gaps[i] / median - 1) < EVENLY;
	if (!(median > 0) || (double)even < MOSTLY * (double)(count - 1))
		return (struct turns){0};
	return (struct turns){(files[count - 1].ns - files[0].ns) / sum, files[0].ns};
}

/* Per file or per byte, whichever is even. */
static struct turns turns_of_ramp(const struct trace *ramp)
{
	struct first_file files[TRACE_RAMP_FILES_MAX];
	double weights[TRACE_RAMP_FILES_MAX];
	double bytes = 0;
	const size_t count = first_files_of(ramp, files);
	for (size_t i = 0; i < count; i++) {
		bytes += files[i].bytes;
		weights[i] = 1;
	}
	const struct turns each = turns_of(files, weights, count);
	for (size_t i = 0; i < count; i++)
		weights[i] = fmax(files[i].bytes * (double)count / fmax(bytes, 1), 1e-6);
	return each.apart_ns > 0 ? each : turns_of(files, weights, count);
}

/* Whether another depth gave what it would give with that many files of others. */
static bool gains_as_with(double others, const struct storage *s, double there)
{
	const double apart = log(there / s->in_flight);
	const double all = log(s->other_in_flight / s->in_flight);
	const double elasticity = s->elasticity * all / apart;
	const double error = s->elasticity_error * fabs(all / apart);
	const double expected = 1 - log((there + others) / (s->in_flight + others)) / apart;
	return fabs(elasticity - expected) <= NINETY * error + ELASTICITY_SLACK;
}

/* Behind a mount that lets only so many reads through, further ones wait in front of it. */
static bool gains_as_others(
	const struct storage_evidence *e, const struct storage *s, double others)
{
	const double most = e->let_through;
	const bool fewer = most > s->in_flight && most < s->other_in_flight;
	return gains_as_with(others, s, s->other_in_flight) ||
	       (fewer && gains_as_with(others, s, most));
}

void storage_find_others(const struct storage_evidence *e, struct storage *out)
{
	double apart[STORAGE_REPEATS_MAX];
	double first[STORAGE_REPEATS_MAX];
	size_t told = 0;
	size_t count = 0;
	if (out->compared == 0 || !(out->elasticity + NINETY * out->elasticity_error < 1))
		return;
	for (size_t r = 0; r < e->count && count < STORAGE_REPEATS_MAX; r++) {
		const struct trace *ramp = storage_trace(e, r, TRACE_READ_RAMP);
		if (!ramp)
			continue;
		const struct turns turns = turns_of_ramp(ramp);
		if (turns.apart_ns > 0) {
			apart[told] = turns.apart_ns;
			first[told++] = turns.first_ns;
		}
		count++;
	}
	if (told == 0 || (double)told < AGREE * (double)count)
		return;
	const double capacity = 1e9 / statistics_median(apart, told);
	const double waited_for = statistics_median(first, told) * 1e-9 * capacity - 1;
	const double others = out->in_flight * (capacity / out->rate - 1);
	if (others < OTHERS_LEAST * out->in_flight || others > OTHERS_MOST * out->in_flight ||
		fabs(waited_for - others) > COUNTED_ALIKE * out->in_flight ||
		!gains_as_others(e, out, others))
		return;
	out->others = others;
	out->shared_capacity = capacity;
}
