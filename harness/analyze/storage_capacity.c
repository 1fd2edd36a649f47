/* Finds the corner of a station's throughput from all operating points; and, where one point is all
 * there is, whether its files wait for each other. */
#include "harness/analyze/storage_capacity.h"

#include "harness/analyze/reads_alone.h"
#include "harness/base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	OBSERVATIONS_MAX = 32,
	CORNERS = 161, /* of the grid */
	ROUNDINGS = 4,
	FILES_LEAST = 8, /* of a point, to be one */
	QUEUE_LEAST = 3, /* in flight, for files to wait for each other */
	RAMP_SHARE = 4,  /* first files met at most 1 / so many of those in flight later */
};

/* The corner is searched between 1 / so many and so many times the files in flight. */
static const double CORNER_RANGE = 32;
static const double BLOCKED_MOST = 0.5; /* of the readers' time, by what comes after them */
/* How sharp the corner is: X = N / L (1 + (N / k)^p)^(-1/p).  2 is softer than exponential
 * service, 50 as sharp as that of servers without a queue of their own. */
static const double roundings[ROUNDINGS] = {2.5, 5, 12, 50};
/* Deviation of ln(rate) between two parts of a run, because conditions change besides the depth;
 * the same for all repetitions. */
static const double CONDITIONS = 0.03;
static const double NOISE_LEAST = 0.01;
static const double NOISE_SINGLE = 0.02; /* of one repetition */
/* Error of a rate where it is unknown, times 1 / sqrt(files): as for files that arrive
 * independently. */
static const double UNKNOWN_ERROR = 1;
static const double IN_FLIGHT_ALIKE = 1.2; /* nearer than this, two depths are one */
/* Probability that an observation is about something else: a neighbour, a cold cache, a saved-up
 * burst. */
static const double ODD = 0.05, ODD_SWEEP = 0.05, ODD_PROBE = 0.3, ODD_RAMP = 0.2, ODD_ALONE = 0.01;
static const double ODD_WIDTH = 3; /* of ln(rate), over which it is then evenly spread */
static const double PROBE_ERROR = 0.10;
/* First files that were sent together share a link and meet as much of a queue as later ones. */
static const double RAMP_SHARED = 0.25;
static const double RAMP_ERROR = 0.15;
static const double SAME_MOMENT_S = 1e-6; /* times of a trace are known to less */
static const double MEDIAN_ERROR = 1.25;  /* over that of the mean, of normal values */
/* If k files are let through one by one, their mean takes (k - 1) / 2k longer than the first; half
 * of that is the bound. */
static const double STAIRS = 0.25;
static const double COLD_TIMES =
	2; /* a first latency, of the least of all repetitions: it was cold */
static const double LATENCY_ERROR = 0.04; /* of ln(latency) from the first files, at best */
static const double NINETY = 1.645;
/* The most certainty that each kind of evidence can give. */
static const double SURE_RAMP = 0.80, SURE_BELOW = 0.85, SURE = 0.97;
static const double SEEN_WITHIN = 2; /* 90 % interval of a capacity, high over low */
static const double PROBE_SIZES =
	4; /* requests so many times as large or small as files still tell */
/* Requests that took so many times as long, or as short, as files do here were answered by another store: a network or a mount
 * that is slow now, or was then, has another corner. */
static const double PROBE_TIMES = 8;

/* ln of the throughput with `there` files in flight over that with `here`. */
struct observation {
	double here, there;
	double value, error;
	double odd;    /* probability of telling nothing */
	double shared; /* that the value is 0 + ln(there / here) whatever the corner: ramp */
};

struct observations {
	struct observation list[OBSERVATIONS_MAX];
	size_t count;
};

static void observe_depths(struct observations *all, struct observation one)
{
	const bool tells = one.here > 0 && one.there > 0 && isfinite(one.value) &&
			   isfinite(one.error) &&
			   fabs(log(one.there / one.here)) > log(IN_FLIGHT_ALIKE);
	if (tells && all->count < OBSERVATIONS_MAX)
		all->list[all->count++] = one;
}

/* --- the measured part ------------------------------------------------------------------------ */

/* By how much ln(rate) could be higher at most if readers had not been held back, less what a
 * limiter saves up meanwhile. */
static double held_back_by(double blocked)
{
	return -log1p(-blocked) / 2;
}

/* *error: of its logarithm. NAN: readers could send files too rarely for the rate to be the
 * station's. */
static double files_per_s(const struct measurement *m, double *error)
{
	const struct stage_measurement *read = measurement_stage(m, STAGE_READ);
	const double seconds = measurement_counted_seconds(m);
	*error = 0;
	const double reads = measurement_reads(m);
	if (!read || !(reads > 0) || !(seconds > 0))
		return m->throughput;
	/* Share of the readers' time in which they could not send a file because a later stage was
	 * slower; 0 where it is unknown. */
	const double all = read->seconds[THREAD_STARVED] + read->seconds[THREAD_WORKING] +
			   read->seconds[THREAD_BLOCKED];
	const double blocked = all > 0 ? read->seconds[THREAD_BLOCKED] / all : 0;
	*error = held_back_by(fmin(blocked, BLOCKED_MOST));
	return blocked <= BLOCKED_MOST ? reads / seconds : NAN;
}

static double mean_service(const struct trace *trace)
{
	double sum = 0;
	for (size_t i = 0; i < trace->count; i++)
		sum += (double)trace->items[i].service_ns;
	return trace->count > 0 ? sum / (double)trace->count : 0;
}

const struct trace *storage_trace(
	const struct storage_evidence *evidence, size_t repeat, const char *name)
{
	const struct trace *trace = evidence->traces && evidence->traces[repeat]
					    ? traces_find(evidence->traces[repeat], name)
					    : NULL;
	return trace && trace->count > 0 ? trace : NULL;
}

static double response_of(const struct storage_evidence *e, size_t repeat)
{
	const struct stage_measurement *read = measurement_stage(e->repeats[repeat], STAGE_READ);
	if (read && read->service.count > 0)
		return histogram_mean(&read->service);
	const struct trace *trace = storage_trace(e, repeat, stage_name(STAGE_READ));
	return trace ? mean_service(trace) : 0;
}

/* Means over the repetitions; false: nothing is known about reading. */
static bool take_measured_reads(
	const struct storage_evidence *e, struct storage *out, double *noise)
{
	double sum = 0;
	double squares = 0;
	double blocked = 0;
	double n = 0;
	for (size_t i = 0; i < e->count; i++) {
		double held;
		const double rate = files_per_s(e->repeats[i], &held);
		const double response = response_of(e, i);
		if (!(rate > 0) || !(response > 0))
			continue;
		sum += log(rate);
		squares += log(rate) * log(rate);
		blocked += held;
		out->response_ns += response;
		n++;
	}
	if (n < 1)
		return false;
	out->rate = exp(sum / n);
	out->response_ns /= n;
	out->in_flight = out->rate * out->response_ns * 1e-9;
	out->best_rate = out->rate;
	out->most_in_flight = out->in_flight;
	const double variance = n > 1 ? fmax(squares - sum * sum / n, 0) / (n - 1) / n
				      : NOISE_SINGLE * NOISE_SINGLE;
	*noise = sqrt(variance + NOISE_LEAST * NOISE_LEAST + blocked * blocked / (n * n));
	return true;
}

/* --- other depths ----------------------------------------------------------------------------- */

/* One depth, over the repetitions: sums of logarithms. */
struct depth_seen {
	unsigned depth;
	double n, in_flight, rate, squares, variance;
};

static double point_blocked(const struct read_point *p)
{
	return isnan(p->blocked_share) ? 0 : p->blocked_share;
}

static double point_rate(const struct read_point *p)
{
	return (double)p->files / p->seconds;
}

static double error_of_depth(const struct read_point *p)
{
	const double least = 0.3 / sqrt((double)p->files);
	const double counted = isnan(p->rate_error) ? UNKNOWN_ERROR / sqrt((double)p->files)
						    : fmax(p->rate_error, least);
	return hypot(counted, held_back_by(point_blocked(p)));
}

static void add_depth_seen(
	struct depth_seen *seen, size_t *count, size_t room, const struct read_point *p)
{
	if (!(p->seconds > 0) || p->files < FILES_LEAST || point_blocked(p) > BLOCKED_MOST)
		return;
	size_t at = 0;
	while (at < *count && seen[at].depth != p->depth)
		at++;
	if (at == room)
		return;
	if (at == *count)
		seen[(*count)++] = (struct depth_seen){.depth = p->depth};
	seen[at].n++;
	/* Little's law: what was in flight, whatever the depth allowed. */
	seen[at].in_flight +=
		log(p->latency_mean_ns > 0 ? point_rate(p) * p->latency_mean_ns * 1e-9 : p->depth);
	seen[at].rate += log(point_rate(p));
	seen[at].squares += pow(log(point_rate(p)), 2);
	seen[at].variance += error_of_depth(p) * error_of_depth(p);
}

/* Variance of the mean: from the points' own errors, or from the spread between repetitions if that
 * is larger. */
static double variance_of(const struct depth_seen *s)
{
	const double within = s->variance / (s->n * s->n);
	const double between =
		s->n > 1 ? (s->squares - s->rate * s->rate / s->n) / (s->n - 1) / s->n : 0;
	return fmax(within, between);
}

static void take_depths(const struct depth_seen *seen, size_t count, double odd, double noise,
	struct storage *out, struct observations *all)
{
	for (size_t i = 0; i < count; i++) {
		const struct depth_seen *s = &seen[i];
		const double in_flight = exp(s->in_flight / s->n);
		const double rate = exp(s->rate / s->n);
		const double error = sqrt(variance_of(s) + noise * noise + CONDITIONS * CONDITIONS);
		const size_t before = all->count;
		observe_depths(all, (struct observation){out->in_flight, in_flight,
					    log(rate / out->rate), error, odd, 0});
		if (all->count == before)
			continue;
		const double apart = log(in_flight / out->in_flight);
		out->compared++;
		out->best_rate = fmax(out->best_rate, rate);
		out->most_in_flight = fmax(out->most_in_flight, in_flight);
		if (out->compared > 1 &&
			(out->alone > 0 ||
				fabs(apart) <= fabs(log(out->other_in_flight / out->in_flight))))
			continue;
		out->other_in_flight = in_flight;
		out->ratio = rate / out->rate;
		out->elasticity = log(out->ratio) / apart;
		out->elasticity_error = error / fabs(apart);
	}
}

static void compare_depths(const struct storage_evidence *e, double noise, struct storage *out,
	struct observations *all)
{
	struct depth_seen seen[READ_POINTS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < e->count && isnan(out->alone); i++)
		for (size_t k = 0; k < e->repeats[i]->read_point_count; k++)
			add_depth_seen(
				seen, &count, READ_POINTS_MAX, &e->repeats[i]->read_points[k]);
	take_depths(seen, count, ODD, noise, out, all);
	struct depth_seen sweep[OBSERVATIONS_MAX];
	count = 0;
	for (size_t i = 0; i < e->other_count; i++)
		add_depth_seen(sweep, &count, OBSERVATIONS_MAX, &e->others[i]);
	take_depths(sweep, count, ODD_SWEEP, noise, out, all);
}

static const double MORE = 100; /* before any that is less */

/* Reads alone: nothing else held them back, and they ran in turns. */
static void take_reads_alone(
	const struct storage_evidence *e, struct storage *out, struct observations *all)
{
	struct alone_arm arms[ALONE_ARMS_MAX];
	const size_t count = reads_alone_arms(e->read_blocks, e->read_block_count, arms);
	const struct alone_arm *base = reads_alone_as_set(arms, count);
	double furthest = 0;
	for (size_t i = 0; base && i < count; i++) {
		const struct alone_arm *arm = &arms[i];
		const double apart = log(arm->in_flight / base->in_flight);
		const double value = arm->log_rate - base->log_rate;
		const double error = hypot(hypot(arm->error, base->error), NOISE_LEAST);
		if (arm->first->part[0] || fabs(apart) <= log(IN_FLIGHT_ALIKE))
			continue;
		observe_depths(all, (struct observation){base->in_flight, arm->in_flight, value,
					    error, ODD_ALONE, 0});
		out->compared++;
		out->alone = exp(base->log_rate);
		out->alone_in_flight = base->in_flight;
		out->best_rate = fmax(out->best_rate, exp(arm->log_rate));
		out->most_in_flight = fmax(out->most_in_flight, arm->in_flight);
		/* What is told of is more in flight, if there is any. */
		const double far = apart > 0 ? MORE + apart : -apart;
		if (far <= furthest)
			continue;
		furthest = far;
		out->other_in_flight = arm->in_flight;
		out->ratio = exp(value);
		out->elasticity = value / apart;
		out->elasticity_error = error / fabs(apart);
	}
}

/* Compares the probe's reads of about these sizes, each depth against the one nearest to what is in
 * flight here. Another program's rates say nothing about these, but its corner does. */
static bool probe_tells(const struct read_ceiling *read, double bytes, bool cold)
{
	return read->cold == cold && (cold || read->direct) && read->requests_per_s > 0 &&
	       read->depth > 0 && fabs(log(read->request_bytes / bytes)) < log(PROBE_SIZES);
}

/* Of a full station a response grows with what is in flight. */
static bool probe_is_alike(const struct read_ceiling *read, const struct storage *out)
{
	const double ns =
		read->latency_ns > 0 ? read->latency_ns : read->depth / read->requests_per_s * 1e9;
	const double queued = fmax(out->in_flight / read->depth, 1);
	return out->response_ns < PROBE_TIMES * queued * ns && out->response_ns > ns / PROBE_TIMES;
}

static void compare_probe(
	const struct storage_evidence *e, const struct storage *out, struct observations *all)
{
	const double bytes = measurement_read_bytes(e->repeats[0]);
	const struct read_ceiling *base = NULL;
	if (!e->ceilings || !(bytes > 0))
		return;
	for (size_t i = 0; i < e->ceilings->read_count; i++) {
		const struct read_ceiling *read = &e->ceilings->reads[i];
		if (probe_tells(read, bytes, true) &&
			(!base || fabs(log(read->depth / out->in_flight)) <
					  fabs(log(base->depth / out->in_flight))))
			base = read;
	}
	if (base && !probe_is_alike(base, out))
		return;
	for (size_t i = 0; base && i < e->ceilings->read_count; i++) {
		const struct read_ceiling *read = &e->ceilings->reads[i];
		if (read == base || !probe_tells(read, bytes, true) ||
			read->request_bytes != base->request_bytes)
			continue;
		observe_depths(all, (struct observation){base->depth, read->depth,
					    log(read->requests_per_s / base->requests_per_s),
					    PROBE_ERROR, ODD_PROBE, 0});
	}
}

/* --- the first files -------------------------------------------------------------------------- */

/* Files sent before the first one came back, over all repetitions: how many each met, itself
 * included, and how long it took. */
struct first_files {
	unsigned met[TRACE_RAMP_FILES_MAX];
	size_t repeat[TRACE_RAMP_FILES_MAX];
	double ns[TRACE_RAMP_FILES_MAX];
	size_t count;
};

static double submitted_s(const struct trace_item *item)
{
	return item->end_s - (double)item->service_ns * 1e-9;
}

/* How many files of all readers were in flight when this one was submitted, itself included (the
 * ramp has all first files). Files sent at the same moment count in their order. */
static unsigned files_met(const struct trace *ramp, size_t at)
{
	const double moment = submitted_s(&ramp->items[at]);
	unsigned n = 1;
	for (size_t i = 0; i < ramp->count; i++) {
		const double sent = submitted_s(&ramp->items[i]);
		const bool before =
			sent < moment - SAME_MOMENT_S || (sent < moment + SAME_MOMENT_S && i < at);
		n += i != at && before && ramp->items[i].end_s > moment;
	}
	return n;
}

/* A later moment with few files in flight is a gap in the flow, not an idle station. */
static void take_first(const struct trace *ramp, size_t repeat, struct first_files *first)
{
	const double fills_s = ramp->items[0].end_s;
	for (size_t i = 0; i < ramp->count && first->count < TRACE_RAMP_FILES_MAX; i++) {
		const struct trace_item *item = &ramp->items[i];
		if (submitted_s(item) >= fills_s || !(item->service_ns > 0))
			continue;
		first->met[first->count] = files_met(ramp, i);
		first->repeat[first->count] = repeat;
		first->ns[first->count++] = (double)item->service_ns;
	}
}

/* Files/s of the ramp; over the rate of the measured part it shows a saved-up burst. */
static double files_per_s_of_ramp(const struct trace *ramp)
{
	double last = 0;
	for (size_t i = 0; i < ramp->count; i++)
		last = fmax(last, ramp->items[i].end_s);
	const double seconds = last - submitted_s(&ramp->items[0]);
	return seconds > 0 ? (double)ramp->count / seconds : 0;
}

/* Mean and deviation of ln(response) of the measured part. */
static bool steady_logs(const struct storage_evidence *e, double *mean, double *deviation)
{
	double sum = 0;
	double squares = 0;
	double n = 0;
	for (size_t r = 0; r < e->count; r++) {
		const struct trace *trace = storage_trace(e, r, stage_name(STAGE_READ));
		for (size_t i = 0; trace && i < trace->count; i++) {
			const double ns = (double)trace->items[i].service_ns;
			if (!(ns > 0))
				continue;
			sum += log(ns);
			squares += log(ns) * log(ns);
			n++;
		}
	}
	if (n < FILES_LEAST)
		return false;
	*mean = sum / n;
	*deviation = sqrt(fmax(squares / n - *mean * *mean, 0));
	return true;
}

static void take_ramps(
	const struct storage_evidence *e, struct storage *out, struct first_files *first)
{
	double ramps = 0;
	double rate = 0;
	for (size_t r = 0; r < e->count; r++) {
		const struct trace *ramp = storage_trace(e, r, TRACE_READ_RAMP);
		if (!ramp)
			continue;
		take_first(ramp, r, first);
		rate += files_per_s_of_ramp(ramp);
		ramps++;
	}
	out->ramp_rate = ramps > 0 ? rate / ramps / out->rate : NAN;
}

static void compare_ramp(const struct storage_evidence *e, const struct first_files *first,
	struct storage *out, struct observations *all)
{
	const double most = fmax(out->in_flight / RAMP_SHARE, out->in_flight >= RAMP_SHARE ? 2 : 1);
	double logs[TRACE_RAMP_FILES_MAX];
	double steady;
	double deviation;
	double in_flight = 0;
	size_t n = 0;
	for (size_t i = 0; i < first->count; i++)
		if (first->met[i] <= most) {
			logs[n++] = log(first->ns[i]);
			in_flight += first->met[i];
		}
	if (n == 0 || !steady_logs(e, &steady, &deviation))
		return;
	/* The median: the very first opens what nobody has opened before. */
	const double quick = statistics_median(logs, n);
	const double spread = MEDIAN_ERROR * deviation / sqrt((double)n);
	in_flight /= (double)n;
	out->ramp_ratio = exp(steady - quick);
	observe_depths(all, (struct observation){out->in_flight, in_flight,
				    steady - quick + log(in_flight / out->in_flight),
				    hypot(spread, RAMP_ERROR), ODD_RAMP, RAMP_SHARED});
}

/* Mean response of one repetition's first `served` files; NAN: none.  *files: how many they are. */
static double first_response(
	const struct first_files *first, size_t repeat, unsigned served, double *files)
{
	double sum = 0;
	*files = 0;
	for (size_t k = 0; k < first->count; k++)
		if (first->repeat[k] == repeat && first->met[k] <= served) {
			sum += first->ns[k];
			*files += 1;
		}
	return *files > 0 ? sum / *files : NAN;
}

/* Over the repetitions, without those whose first files were opened cold. */
static double first_mean(
	const struct first_files *first, size_t repeats, unsigned served, double *files)
{
	double least = HUGE_VAL;
	double sum = 0;
	double n;
	for (size_t r = 0; r < repeats; r++)
		least = fmin(least, first_response(first, r, served, &n));
	*files = 0;
	for (size_t r = 0; r < repeats; r++) {
		const double one = first_response(first, r, served, &n);
		if (!(one <= COLD_TIMES * least))
			continue;
		sum += n * one;
		*files += n;
	}
	return *files > 0 ? sum / *files : NAN;
}

/* On a saturated station the latency shows only in the first C L files, as many as are served at
 * once. Servers take these side by side, each as long as the first; a station that lets files
 * through one by one keeps each waiting longer. */
static void take_latency(
	const struct storage_evidence *e, const struct first_files *first, struct storage *out)
{
	double files;
	double steady;
	double varies = 0;
	double latency = first_mean(first, e->count, 1, &files);
	if (!(latency > 0))
		return;
	const double most = out->in_flight + 1;
	const double served = fmin(fmax(round(out->capacity * latency * 1e-9), 1), most);
	double together;
	const double all = first_mean(first, e->count, (unsigned)served, &together);
	out->side_by_side = all <= latency * (1 + STAIRS * (served - 1) / served);
	if (out->side_by_side) {
		latency = all;
		files = together;
	}
	/* A response is the sum of as many services as queue in front of a server, and varies less
	 * by their root. */
	(void)steady_logs(e, &steady, &varies);
	const double turns = fmax(out->response_ns / latency, 1);
	const double half = NINETY * hypot(varies * sqrt(turns / files), LATENCY_ERROR);
	/* First files that took longer than those that wait were opened cold: groups tell, or the
	 * corner. */
	if (out->group <= 1 && log(latency / out->response_ns) > half)
		return;
	if (out->group > 1) {
		latency = out->group_ns;
		const double served_per_s = fmax(out->group / latency * 1e9, out->rate);
		out->capacity = fmin(out->capacity, served_per_s);
		out->capacity_90.low = fmin(out->capacity_90.low, out->capacity);
	}
	out->latency_ns = latency;
	out->latency_90 = (struct interval){
		latency * exp(-half), fmax(fmin(latency * exp(half), out->response_ns), latency)};
	out->slots = out->capacity * latency * 1e-9;
}

/* --- one operating point: do files wait for each other? --------------------------------------- */

/* Where N files queue for one server, when one comes back depends on those before it and not on
 * when it was sent: regress the times between completions (in order of submission) on those between
 * submissions, and the slope is 0.  Each file also waits for N - 1 of the N services that the one
 * before it waited for, so the times of neighbours correlate, by 1 - 1 / N.  Behind a constant
 * latency the slope is 1; behind one that varies, neighbours know nothing of each other.  Anything
 * else tells nothing: a station that serves all at once, each more slowly, looks like a latency. */

enum { PAIRS_LEAST = 64, PAIRS_RUN_LEAST = 8 };

static const double PAIRS_UNEVEN =
	0.25; /* deviation over mean, of times between submissions: below, they tell nothing */
static const double QUEUES_BELOW = 0.35; /* slope */
static const double ALIKE_LEAST = 0.6;   /* correlation of neighbours' times */

struct sent {
	double at, back; /* sorted by the first */
};

struct pair_sums {
	double n, x, y, xx, xy, yy;
	double took, took_squared,
		both_took; /* of the later one, and its product with that of the one before */
};

/* Items are consecutive by number. */
static void add_pairs(
	struct pair_sums *sums, const struct trace_item *items, size_t count, struct sent *scratch)
{
	if (count < PAIRS_RUN_LEAST)
		return;
	for (size_t i = 0; i < count; i++)
		scratch[i] = (struct sent){
			items[i].end_s - (double)items[i].service_ns * 1e-9, items[i].end_s};
	qsort(scratch, count, sizeof *scratch, order_doubles);
	for (size_t i = 1; i < count; i++) {
		const double x = scratch[i].at - scratch[i - 1].at;
		const double y = scratch[i].back - scratch[i - 1].back;
		const double took = scratch[i].back - scratch[i].at;
		sums->n++;
		sums->x += x;
		sums->y += y;
		sums->xx += x * x;
		sums->xy += x * y;
		sums->yy += y * y;
		sums->took += took;
		sums->took_squared += took * took;
		sums->both_took += took * (scratch[i - 1].back - scratch[i - 1].at);
	}
}

static void add_pairs_of_trace(struct pair_sums *sums, const struct trace *trace)
{
	struct sent *scratch = malloc((trace->count + 1) * sizeof *scratch);
	for (size_t first = 0; scratch && first < trace->count;) {
		const size_t last = trace_run_end(trace, first);
		add_pairs(sums, &trace->items[first], last - first, scratch);
		first = last;
	}
	free(scratch);
}

static bool storage_queues(const struct storage_evidence *e)
{
	struct pair_sums s = {0};
	for (size_t i = 0; i < e->count; i++) {
		const struct trace *trace = storage_trace(e, i, stage_name(STAGE_READ));
		if (trace)
			add_pairs_of_trace(&s, trace);
	}
	if (s.n < PAIRS_LEAST || !(s.x > 0))
		return false;
	const double var_x = s.xx / s.n - s.x * s.x / s.n / s.n;
	const double var_y = s.yy / s.n - s.y * s.y / s.n / s.n;
	const double both = s.xy / s.n - s.x * s.y / s.n / s.n;
	if (!(sqrt(var_x) > PAIRS_UNEVEN * s.x / s.n))
		return false;
	const double slope = both / var_x;
	const double rest = fmax(var_y - slope * both, 0);
	const double mean = s.took / s.n;
	const double alike = (s.both_took / s.n - mean * mean) /
			     fmax(s.took_squared / s.n - mean * mean, 1e-300);
	return slope + NINETY * sqrt(rest / var_x / s.n) < QUEUES_BELOW && alike > ALIKE_LEAST;
}

/* --- the corner ------------------------------------------------------------------------------- */

/* ln of the law's throughput, less a constant. */
static double law(double in_flight, double corner, double rounding)
{
	return log(in_flight) - log1p(pow(in_flight / corner, rounding)) / rounding;
}

static double normal_density(double value, double error)
{
	const double z = value / error;
	return exp(-z * z / 2) / error / sqrt(2 * M_PI);
}

static double likelihood(const struct observation *o, double corner, double rounding)
{
	const double expected = law(o->there, corner, rounding) - law(o->here, corner, rounding);
	const double alike = log(o->there / o->here);
	return o->odd / (2 * ODD_WIDTH) +
	       (1 - o->odd - o->shared) * normal_density(o->value - expected, o->error) +
	       o->shared * normal_density(o->value - alike, o->error);
}

/* One cell of the grid and what follows from it. */
struct cell {
	double weight, latency_ns, capacity;
	bool full;
};

static int by_latency(const void *a, const void *b)
{
	return order_doubles(
		&((const struct cell *)a)->latency_ns, &((const struct cell *)b)->latency_ns);
}

static int by_capacity(const void *a, const void *b)
{
	return order_doubles(
		&((const struct cell *)a)->capacity, &((const struct cell *)b)->capacity);
}

static struct interval cell_quantiles(
	const struct cell *cells, size_t count, size_t offset, double *middle)
{
	struct interval out = {NAN, NAN};
	double sum = 0;
	*middle = NAN;
	for (size_t i = 0; i < count; i++) {
		const double value =
			*(const double *)(const void *)((const char *)&cells[i] + offset);
		sum += cells[i].weight;
		out.low = isnan(out.low) && sum >= 0.05 ? value : out.low;
		*middle = isnan(*middle) && sum >= 0.5 ? value : *middle;
		out.high = isnan(out.high) && sum >= 0.95 ? value : out.high;
	}
	return out;
}

/* Evidence of one kind alone goes only so far. */
static double bounded_probability(const struct storage *s, bool probed, double full)
{
	const bool above = s->most_in_flight > IN_FLIGHT_ALIKE * s->in_flight;
	const bool ramp = !isnan(s->ramp_ratio);
	const double most = s->compared > 0 ? SURE : ramp || probed ? SURE_RAMP : 0.5;
	const double least = s->compared > 0 && above ? SURE : fmin(most, SURE_BELOW);
	return fmin(fmax(full, 1 - least), most);
}

static void take_quantiles(struct storage *out, struct cell *cells, size_t count)
{
	qsort(cells, count, sizeof *cells, by_latency);
	out->latency_90 =
		cell_quantiles(cells, count, offsetof(struct cell, latency_ns), &out->latency_ns);
	qsort(cells, count, sizeof *cells, by_capacity);
	out->capacity_90 =
		cell_quantiles(cells, count, offsetof(struct cell, capacity), &out->capacity);
	/* A full station gave what it has: a rounder corner would leave it some more beyond what
	 * was observed. */
	if (out->full > 0.5)
		out->capacity = fmin(out->capacity, out->best_rate);
	out->capacity_90.low = fmin(out->capacity_90.low, out->capacity);
	out->slots = out->capacity * out->latency_ns * 1e-9;
	out->capacity_seen = out->full > 0.5 + STORAGE_TOLD ||
			     out->capacity_90.high < SEEN_WITHIN * out->capacity_90.low;
	out->capacity_90.low = fmax(out->capacity_90.low, fmin(out->best_rate, out->capacity));
}

static void weigh_corner(const struct observations *all, bool probed, struct storage *out)
{
	static const size_t cells_count = (size_t)CORNERS * ROUNDINGS;
	struct cell *cells = calloc(cells_count, sizeof *cells);
	double evidence[2] = {0, 0}; /* not full, full */
	double prior[2] = {0, 0};
	for (size_t i = 0; cells && i < cells_count; i++) {
		const double rounding = roundings[i % ROUNDINGS];
		const size_t column = i / ROUNDINGS;
		const double place = 2.0 * (double)column / (CORNERS - 1) - 1;
		const double corner = out->in_flight * pow(CORNER_RANGE, place);
		const double now = law(out->in_flight, corner, rounding);
		const double gain = law(2 * out->in_flight, corner, rounding) - now;
		const bool full = gain < log(STORAGE_FULL_GAIN);
		double weight = 1;
		for (size_t k = 0; k < all->count; k++)
			weight *= likelihood(&all->list[k], corner, rounding);
		const double slowed = pow(1 + pow(out->in_flight / corner, rounding), 1 / rounding);
		const double latency = out->response_ns / slowed;
		cells[i] = (struct cell){weight, latency, corner / (latency * 1e-9), full};
		prior[full]++;
		evidence[full] += weight;
	}
	const double no = evidence[0] / fmax(prior[0], 1);
	const double yes = evidence[1] / fmax(prior[1], 1);
	const bool told = cells && no + yes > 0;
	out->full = told ? bounded_probability(out, probed, yes / (no + yes)) : 0.5;
	for (size_t i = 0; told && i < cells_count; i++) {
		const bool full = cells[i].full;
		cells[i].weight *=
			(full ? out->full : 1 - out->full) / fmax(evidence[full], 1e-300);
	}
	if (told)
		take_quantiles(out, cells, cells_count);
	free(cells);
}

void storage_fit(const struct storage_evidence *e, struct storage *out)
{
	struct observations all = {.count = 0};
	double noise = 0;
	*out = (struct storage){.full = 0.5,
		.ramp_ratio = NAN,
		.ramp_rate = NAN,
		.elasticity = NAN,
		.elasticity_error = NAN,
		.alone = NAN,
		.alone_in_flight = NAN,
		.bytes_share = NAN,
		.slots_alone = NAN,
		.bytes_error = NAN};
	out->reads_large = e->count > 0 && e->repeats[0]->facts.reads_large;
	out->known = e->count > 0 && take_measured_reads(e, out, &noise);
	if (!out->known)
		return;
	take_reads_alone(e, out, &all);
	compare_depths(e, noise, out, &all);
	const size_t before = all.count;
	compare_probe(e, out, &all);
	const bool probed = all.count > before;
	struct first_files first = {.count = 0};
	take_ramps(e, out, &first);
	compare_ramp(e, &first, out, &all);
	weigh_corner(&all, probed, out);
	/* Not against first files that say otherwise. */
	out->queues = out->compared == 0 && out->full >= 0.5 - STORAGE_TOLD &&
		      out->in_flight >= QUEUE_LEAST && storage_queues(e);
	if (out->queues) {
		out->full = fmax(out->full, SURE_RAMP);
		out->capacity = out->rate;
		out->capacity_90 = (struct interval){out->rate, out->rate * STORAGE_FULL_GAIN};
		out->capacity_seen = true;
	}
	storage_find_others(e, out);
	if (out->full > 0.5 && out->capacity_seen) {
		storage_find_groups(e, out);
		take_latency(e, &first, out);
	}
	storage_find_kind(e, out);
}
