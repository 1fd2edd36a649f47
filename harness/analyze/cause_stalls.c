/* Storage that answers nothing for a while, now and then: no file comes in although files are in flight
 * and readers wait for them. A mean of latencies hides it, and so does a replay of recorded files, few of
 * which met a stall.
 *
 * Two records show it. Windows (0.1 s) without bytes, while readers are not blocked, show the long ones, and those that
 * go on when measuring ends. Where every file's time was recorded, a short one shows as a gap between two files after
 * which nearly all that were in flight come in together; one that comes in alone is a slow file (cause_tail.c). Gaps
 * that begin less than 0.15 s after one another are slices of a throttle or of a quota (0.1 s each), and no stalls.
 *
 * Stalls are the verdict if the step starves because of them and reading would keep up without. */
#include "harness/analyze/verdict.h"

#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STALLS_FEW = 3, STALLS_MOST = 256 /* of a repetition */ };

static const double STALL_LEAST_S = 0.15; /* a throttle lets through in slices of 0.1 s */
/* As long as ordinary files take, which may come in groups; and as usually pass between two of them. */
static const double STALL_SERVICES = 2, STALL_INTERVALS = 5;
static const double QUIET = 0.05;       /* of the usual bytes of a window */
static const double WAITING = 0.75;     /* of a window, that readers are not blocked */
static const double FILE_AS_LONG = 0.5; /* of a stall, that the files in flight took at least */
static const double OUTAGE_LEAST_S = 2; /* and of an only one that went on when measuring ended: */
static const double OUTAGE_OPEN_LEAST_S = 1;
static const double OUTAGE_SHARE = 0.7;       /* of a repetition's stalled time, of the longest */
static const double OUTAGE_COSTS = 0.15;      /* of the measured time */
static const double STALLS_COST = 0.08;       /* likewise, of a step that starves for them */
static const double STALLS_OF_STARVING = 0.6; /* of all that the step starves */
static const double STALLS_SHARE = 0.3;       /* of the time, where reading is the limit anyway */
static const double KEEPS_UP = 0.9;           /* of the next stage's capacity, without the stalls */
static const double CERTAIN = 0.93, CERTAIN_FEW = 0.8, UNSEEN_IN_FILES = 0.7;
/* Of gaps between files. */
static const double GAP_LEAST_S = 0.05, SLICE_S = 0.15;
static const double RECORDED = 0.9; /* of a repetition's files, to know that none came in a gap */
static const double AT_ONCE = 0.1;  /* of a gap, within which they come in after it */
static const double NEARLY_ALL = 0.75;
static const double LARGE = 4;       /* times the mean bytes of a file */
static const double ELSEWHERE = 0.2; /* of the windows, away from gaps */

struct stalls {
	size_t count;
	double seconds, longest_s, longest_at_s; /* at: since the repetition began */
	double measured_s;
	double repetition_s;  /* of the repetition that has the longest */
	double starved_s;     /* of the step, because of them */
	double all_starved_s; /* of the step, whatever for */
	bool in_files;        /* files took as long */
	bool open;            /* the longest went on when its repetition ended */
};

/* One stall of a repetition, in seconds since it began. */
struct silence {
	double begin_s, end_s;
};

struct arrival {
	double begin_s, end_s, bytes;
};

/* A repetition's readers and step in its windows. */
struct stalls_view {
	const struct measurement *m;
	size_t read, step; /* stage_count: not there */
	double usual;      /* bytes/s, of windows that have any */
	double most;       /* likewise, of the busiest one */
	double starved;    /* share of the step's time outside of stalls */
	double least_s, least_gap_s;
	struct silence found[STALLS_MOST];
	size_t found_count;
	struct arrival *files; /* by when they came in; owned */
	size_t file_count;     /* 0: not all of them were recorded */
	double bytes_mean;
};

static double window_length(const struct measurement *m, size_t i)
{
	return m->windows[i].t - (i > 0 ? m->windows[i - 1].t : 0);
}

static double window_bytes(const struct measurement *m, size_t i)
{
	const uint64_t before = i > 0 ? m->windows[i - 1].bytes_read : 0;
	return m->windows[i].bytes_read > before ? (double)(m->windows[i].bytes_read - before) : 0;
}

/* Share of the stage's threads' time. */
static double window_state(
	const struct measurement *m, size_t i, size_t stage, enum thread_state state)
{
	const double before = i > 0 ? m->windows[i - 1].stage_seconds[stage][state] : 0;
	const double all = window_length(m, i) * fmax(m->stages[stage].workers, 1);
	return all > 0 ? (m->windows[i].stage_seconds[stage][state] - before) / all : 0;
}

static bool window_is_measured(const struct measurement *m, size_t i)
{
	const double begin = m->windows[i].t - window_length(m, i);
	return begin >= m->cut_seconds && m->windows[i].t <= m->cut_seconds + m->measured_seconds;
}

static bool window_is_quiet(const struct stalls_view *v, size_t i)
{
	return window_is_measured(v->m, i) &&
	       window_bytes(v->m, i) < QUIET * v->usual * window_length(v->m, i) &&
	       window_state(v->m, i, v->read, THREAD_BLOCKED) < 1 - WAITING;
}

/* How much of the window next to a quiet one belongs to the same stall: while storage answers, readers are blocked, or
 * bytes come in.  After a stall they come in faster than usual. */
static double edge_s(const struct stalls_view *v, size_t i)
{
	if (i >= v->m->window_count || !window_is_measured(v->m, i))
		return 0;
	const double length = window_length(v->m, i);
	const double blocked = window_state(v->m, i, v->read, THREAD_BLOCKED);
	return length * fmin(fmax(1 - blocked - window_bytes(v->m, i) / (v->most * length), 0), 1);
}

static bool open_view(const struct measurement *m, struct stalls_view *v)
{
	double bytes = 0;
	double seconds = 0;
	*v = (struct stalls_view){.m = m,
		.read = measurement_stage_at(m, STAGE_READ_NAME),
		.step = measurement_stage_at(m, STAGE_STEP_NAME)};
	if (v->read == m->stage_count || v->step == m->stage_count || !m->windows)
		return false;
	for (size_t i = 0; i < m->window_count; i++)
		if (window_is_measured(m, i) && window_bytes(m, i) > 0) {
			bytes += window_bytes(m, i);
			seconds += window_length(m, i);
			v->most = fmax(v->most, window_bytes(m, i) / window_length(m, i));
		}
	v->usual = seconds > 0 ? bytes / seconds : 0;
	const struct stage_measurement *read = &m->stages[v->read];
	const double file_s = histogram_quantile(&read->service, 0.5) * 1e-9;
	const double interval_s =
		read->items > 0 ? m->measured_seconds / (double)read->items : file_s;
	const double ordinary_s =
		fmax(STALL_SERVICES * file_s, STALL_INTERVALS * fmin(interval_s, file_s));
	v->least_s = fmax(STALL_LEAST_S, ordinary_s);
	v->least_gap_s = fmax(GAP_LEAST_S, ordinary_s);
	return v->usual > 0;
}

static void usual_starvation(struct stalls_view *v)
{
	double starved = 0;
	double seconds = 0;
	for (size_t i = 0; i < v->m->window_count; i++)
		if (window_is_measured(v->m, i) && !window_is_quiet(v, i) &&
			(i == 0 || !window_is_quiet(v, i - 1))) {
			starved += window_state(v->m, i, v->step, THREAD_STARVED) *
				   window_length(v->m, i);
			seconds += window_length(v->m, i);
		}
	v->starved = seconds > 0 ? starved / seconds : 0;
}

/* How much longer than usual the step starves while storage is quiet and in the window after. */
static double starved_for(const struct stalls_view *v, size_t first, size_t end)
{
	double sum = 0;
	for (size_t i = first; i <= end && i < v->m->window_count; i++)
		sum += (window_state(v->m, i, v->step, THREAD_STARVED) - v->starved) *
		       window_length(v->m, i);
	return fmax(sum, 0);
}

static size_t files_as_long(const struct measurement *m, size_t read, double seconds)
{
	const struct histogram *h = &m->stages[read].service;
	size_t count = 0;
	for (unsigned b = histogram_bucket((uint64_t)(seconds * 1e9)); b < HISTOGRAM_BUCKETS; b++)
		count += h->buckets[b];
	return count;
}

/* --- files ------------------------------------------------------------------------------------ */

static int by_end(const void *a, const void *b)
{
	const struct arrival *const one = a;
	const struct arrival *const other = b;
	return (one->end_s > other->end_s) - (one->end_s < other->end_s);
}

/* Unless not all of them were recorded. */
static void open_files(const struct evidence_base *base, struct stalls_view *v)
{
	const struct model_source *source = base->source;
	const struct trace *read = NULL;
	for (size_t i = 0; source && source->traces && i < source->count; i++)
		if (source->repeats[i] == v->m && source->traces[i])
			read = traces_find(source->traces[i], STAGE_READ_NAME);
	if (!read || base->facts->reads_large ||
		(double)read->count < RECORDED * (double)v->m->stages[v->read].items)
		return;
	v->files = calloc(read->count + 1, sizeof *v->files);
	for (size_t i = 0; v->files && i < read->count; i++)
		if (isfinite(read->items[i].service_ns))
			v->files[v->file_count++] = (struct arrival){
				read->items[i].end_s - (double)read->items[i].service_ns * 1e-9,
				read->items[i].end_s, read->items[i].bytes};
	if (!v->files)
		return;
	qsort(v->files, v->file_count, sizeof *v->files, by_end);
	for (size_t i = 0; i < v->file_count; i++)
		v->bytes_mean += v->files[i].bytes / (double)v->file_count;
}

/* A link that a large file has to itself does not stall. */
static bool is_one_file(const struct stalls_view *v, const struct silence *stall, double within_s)
{
	for (size_t i = 0; i < v->file_count; i++)
		if (fabs(v->files[i].end_s - stall->end_s) <= within_s &&
			v->files[i].begin_s < (stall->begin_s + stall->end_s) / 2 &&
			v->files[i].bytes >= LARGE * v->bytes_mean)
			return true;
	return false;
}

/* --- in windows ------------------------------------------------------------------------------- */

static void note_stall(struct stalls_view *v, double begin_s, double seconds, bool open,
	double starved_s, struct stalls *out)
{
	const struct silence silence = {begin_s, begin_s + seconds};
	if (v->found_count == STALLS_MOST || is_one_file(v, &silence, v->m->window_seconds))
		return;
	v->found[v->found_count++] = silence;
	out->count++;
	out->seconds += seconds;
	out->starved_s += starved_s;
	if (seconds <= out->longest_s)
		return;
	out->longest_s = seconds;
	out->longest_at_s = begin_s;
	out->open = open;
}

static void add_quiet_windows(struct stalls_view *v, struct stalls *out)
{
	const struct measurement *m = v->m;
	for (size_t i = 0; i < m->window_count; i++) {
		if (!window_is_quiet(v, i))
			continue;
		const size_t first = i;
		double seconds = first > 0 ? edge_s(v, first - 1) : 0;
		for (; i < m->window_count && window_is_quiet(v, i); i++)
			seconds += window_length(m, i);
		/* After it, what was missing may come in within a moment; the step tells how long it was missing. */
		const double starved_s = starved_for(v, first, i);
		seconds = fmax(seconds + edge_s(v, i), starved_s);
		if (seconds >= v->least_s)
			note_stall(v, m->windows[first].t - window_length(m, first), seconds,
				i >= m->window_count || !window_is_measured(m, i), starved_s, out);
	}
}

/* --- between files ---------------------------------------------------------------------------- */

/* Whether nearly all files that were in flight in the second half of the gap before files[at] come in right after it. */
static bool come_in_together(const struct arrival *files, size_t count, size_t at)
{
	const struct silence gap = {files[at - 1].end_s, files[at].end_s};
	const double half_s = (gap.end_s - gap.begin_s) / 2;
	const double soon_s = gap.end_s + AT_ONCE * (gap.end_s - gap.begin_s);
	size_t together = 0;
	size_t all = 0;
	for (size_t i = at; i < count; i++) {
		all += files[i].begin_s < gap.begin_s + half_s;
		together += files[i].begin_s < gap.begin_s + half_s && files[i].end_s <= soon_s;
	}
	return together > 1 && (double)together >= NEARLY_ALL * (double)all;
}

static bool is_found(const struct stalls_view *v, size_t known, const struct silence *gap)
{
	for (size_t i = 0; i < known; i++)
		if (v->found[i].begin_s < gap->end_s && gap->begin_s < v->found[i].end_s)
			return true;
	return false;
}

/* Whether the whole job stood still in a part of it: a window that lasted longer than the others. */
static bool stood_still(const struct measurement *m, const struct silence *gap)
{
	for (size_t i = 0; i < m->window_count; i++)
		if (m->windows[i].t > gap->begin_s &&
			m->windows[i].t - window_length(m, i) < gap->end_s &&
			window_length(m, i) > 2 * m->window_seconds)
			return true;
	return false;
}

/* Whether gaps follow one another as slices of a throttle do. */
static bool are_slices(const struct silence *gaps, size_t count)
{
	size_t close = 0;
	for (size_t i = 1; i < count; i++)
		close += gaps[i].begin_s - gaps[i - 1].begin_s < SLICE_S;
	return count > 1 && 2 * close >= count;
}

/* The step's starvation in windows that gaps lie in, and in the ones after, beyond what it is elsewhere. */
static double starved_in(const struct stalls_view *v, const struct silence *gaps, size_t count)
{
	const struct measurement *m = v->m;
	double in[2] = {0}; /* starved s: elsewhere, in gaps */
	double all[2] = {0};
	double gaps_s = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		if (!window_is_measured(m, i))
			continue;
		const double length = window_length(m, i);
		bool touched = false;
		for (size_t k = 0; k < count; k++)
			touched |= gaps[k].begin_s < m->windows[i].t &&
				   gaps[k].end_s > m->windows[i].t - 2 * length;
		in[touched] += window_state(m, i, v->step, THREAD_STARVED) * length;
		all[touched] += length;
	}
	for (size_t k = 0; k < count; k++)
		gaps_s += gaps[k].end_s - gaps[k].begin_s;
	/* Of a few windows elsewhere, which catch up, nothing is learnt. */
	const double usual = all[0] >= ELSEWHERE * (all[0] + all[1]) ? in[0] / all[0] : 0;
	return fmin(fmax(in[1] - usual * all[1], 0), gaps_s);
}

static void add_gaps(struct stalls_view *v, struct stalls *out)
{
	struct silence gaps[STALLS_MOST];
	size_t n = 0;
	const size_t known = v->found_count;
	const struct arrival *const files = v->files;
	for (size_t i = 1; i < v->file_count && n < STALLS_MOST; i++) {
		const struct silence gap = {files[i - 1].end_s, files[i].end_s};
		if (gap.end_s - gap.begin_s >= v->least_gap_s && !stood_still(v->m, &gap) &&
			come_in_together(files, v->file_count, i))
			gaps[n++] = gap;
	}
	if (are_slices(gaps, n))
		return;
	size_t left = 0;
	for (size_t i = 0; i < n; i++)
		if (!is_found(v, known, &gaps[i]))
			gaps[left++] = gaps[i];
	const double starved_s = starved_in(v, gaps, left);
	for (size_t i = 0; i < left; i++)
		note_stall(v, gaps[i].begin_s, gaps[i].end_s - gaps[i].begin_s, false,
			starved_s / (double)left, out);
}

/* --- all of them ------------------------------------------------------------------------------ */

static void add_stalls(
	const struct evidence_base *base, const struct measurement *m, struct stalls *out)
{
	struct stalls_view *v = calloc(1, sizeof *v);
	const double before_s = out->seconds;
	const double longest_s = out->longest_s;
	double longest = 0;
	out->measured_s += m->measured_seconds;
	if (v && open_view(m, v)) {
		out->all_starved_s += m->stages[v->step].seconds[THREAD_STARVED];
		usual_starvation(v);
		open_files(base, v);
		add_quiet_windows(v, out);
		add_gaps(v, out);
		for (size_t i = 0; i < v->found_count; i++)
			longest = fmax(longest, v->found[i].end_s - v->found[i].begin_s);
		if (out->longest_s > longest_s)
			out->repetition_s = out->seconds - before_s;
		out->in_files =
			out->in_files ||
			(v->found_count > 0 && files_as_long(m, v->read, FILE_AS_LONG * longest) >=
						       v->found_count);
	}
	if (v)
		free(v->files);
	free(v);
}

static struct stalls stalls_find(const struct evidence_base *base)
{
	struct stalls stalls = {0};
	for (size_t i = 0; i < base->count; i++)
		add_stalls(base, base->repeats[i], &stalls);
	return stalls;
}

static bool is_outage(const struct stalls *s)
{
	const bool only = s->open && s->count == 1;
	return s->longest_s >= (only ? OUTAGE_OPEN_LEAST_S : OUTAGE_LEAST_S) &&
	       s->longest_s >= OUTAGE_SHARE * s->repetition_s;
}

static bool say_stalls(const struct stalls *s, struct cause *out)
{
	char each[UNITS_BYTES];
	char every[UNITS_BYTES];
	char longest[UNITS_BYTES];
	const double share = s->seconds / s->measured_s * 100;
	const double certainty = (s->count < STALLS_FEW && !is_outage(s) ? CERTAIN_FEW : CERTAIN) *
				 (s->in_files ? 1 : UNSEEN_IN_FILES);
	(void)units_format_duration(s->longest_s * 1e9, longest);
	if (is_outage(s))
		return cause_is(out, "outage", certainty,
			"storage did not answer for %s from %.1f s on, %.0f %% of the time: files "
			"were in flight and none arrived",
			longest, s->longest_at_s, share);
	return cause_is(out, "stalls", certainty,
		"storage stalled %zu times for about %s, every %s, %.0f %% of the time (longest "
		"%s, at %.1f s): files were in flight and none arrived; the step starved for it "
		"%.0f %% of the time",
		s->count, units_format_duration(s->seconds / (double)s->count * 1e9, each),
		units_format_duration(s->measured_s / (double)s->count * 1e9, every), share,
		longest, s->longest_at_s, s->starved_s / s->measured_s * 100);
}

/* The step starves for most of a stall, as of long ones, or starves for hardly anything else: the batches that are ready
 * bridge a good part of short ones. */
static bool starved_by_stalls(const struct stalls *s)
{
	return s->starved_s >= STALLS_COST * s->measured_s &&
	       (s->starved_s >= s->seconds * FILE_AS_LONG ||
		       s->starved_s >= STALLS_OF_STARVING * s->all_starved_s);
}

/* Reading is the bottleneck because of stalls if it would keep up without them, or if they take a
 * good part of the time. */
bool cause_stalls(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct stalls s = stalls_find(base);
	const struct point_summary *point = base->point;
	if (s.count == 0)
		return false;
	const double share = s.seconds / s.measured_s;
	const size_t read = (size_t)(stage - point->stages);
	const size_t next = binding_next_capacity(point, read);
	const bool keeps_up =
		next < point->stage_count && share < 1 &&
		point->median / (1 - share) >= KEEPS_UP * point->stages[next].capacity;
	const bool costs = s.starved_s >= STALLS_COST * s.measured_s;
	if (!(share >= STALLS_SHARE || (is_outage(&s) && share >= OUTAGE_COSTS) ||
		    (keeps_up && costs) || starved_by_stalls(&s)))
		return false;
	return say_stalls(&s, out);
}

bool stalls_bind(const struct evidence_base *base)
{
	const struct stalls s = stalls_find(base);
	return s.count > 0 && starved_by_stalls(&s);
}

void evidence_add_stalls(
	const struct evidence_base *base, const char *resource, struct verdict *out)
{
	struct cause stalls;
	const struct stalls s = stalls_find(base);
	if (base->facts->reads_memory || strcmp(resource, "stalls") == 0 ||
		strcmp(resource, "outage") == 0 || s.count < STALLS_FEW || !s.in_files ||
		s.seconds < STALLS_COST * s.measured_s)
		return;
	(void)say_stalls(&s, &stalls);
	evidence_add(out, "%s", stalls.words);
}
