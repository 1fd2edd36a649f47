/* Storage that answers nothing for a while, now and then: no file comes in though files are in flight and readers wait for them.
 * A mean of latencies hides it, and so does a replay of recorded files, of which few met a stall.  It shows in the windows of the
 * measured part, and in the files that took as long. */
#include "harness/analyze/verdict_parts.h"

#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STALLS_FEW = 3 };

static const double STALL_LEAST_S = 0.15; /* a throttle lets through in slices of 0.1 s */
static const double STALL_SERVICES = 5;   /* as long as so many ordinary files take */
static const double QUIET = 0.05;         /* of the usual bytes of a window */
static const double WAITING = 0.75;       /* of a window, that readers are not blocked */
static const double FILE_AS_LONG = 0.5;   /* of a stall, that the files in flight took at least */
static const double OUTAGE_LEAST_S = 2; /* and of an only one that went on when measuring ended: */
static const double OUTAGE_OPEN_LEAST_S = 1;
static const double OUTAGE_SHARE = 0.7;  /* of a repetition's stalled time, of the longest */
static const double OUTAGE_COSTS = 0.15; /* of the measured time */
static const double STALLS_COST = 0.08;  /* likewise, of a step that starves for them */
static const double STALLS_SHARE = 0.3;  /* of the time, where reading is the limit anyway */
static const double KEEPS_UP = 0.9;      /* of the next stage's capacity, without the stalls */
static const double CERTAIN = 0.93, CERTAIN_FEW = 0.8, UNSEEN_IN_FILES = 0.7;

struct stalls {
	size_t count;
	double seconds, longest_s, longest_at_s; /* at: since the repetition began */
	double measured_s;
	double repetition_s; /* of the repetition that has the longest */
	double starved_s;    /* of the step, because of them */
	bool in_files;       /* files took as long */
	bool open;           /* the longest went on when its repetition ended */
};

/* A repetition's readers and step in its windows. */
struct stalls_view {
	const struct measurement *m;
	size_t read, step; /* stage_count: not there */
	double usual;      /* bytes/s, of windows that have any */
	double starved;    /* share of the step's time outside of stalls */
	double least_s;
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

static bool is_measured(const struct measurement *m, size_t i)
{
	const double begin = m->windows[i].t - window_length(m, i);
	return begin >= m->cut_seconds && m->windows[i].t <= m->cut_seconds + m->measured_seconds;
}

static bool is_quiet(const struct stalls_view *v, size_t i)
{
	return is_measured(v->m, i) &&
	       window_bytes(v->m, i) < QUIET * v->usual * window_length(v->m, i) &&
	       window_state(v->m, i, v->read, THREAD_BLOCKED) < 1 - WAITING;
}

/* How much of a window beside a quiet one is of the same stall. */
static double edge_s(const struct stalls_view *v, size_t i)
{
	if (i >= v->m->window_count || !is_measured(v->m, i))
		return 0;
	const double length = window_length(v->m, i);
	const double blocked = window_state(v->m, i, v->read, THREAD_BLOCKED);
	return length * fmin(fmax(1 - blocked - window_bytes(v->m, i) / (v->usual * length), 0), 1);
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
		if (is_measured(m, i) && window_bytes(m, i) > 0) {
			bytes += window_bytes(m, i);
			seconds += window_length(m, i);
		}
	v->usual = seconds > 0 ? bytes / seconds : 0;
	const double file_s = histogram_quantile(&m->stages[v->read].service, 0.5) * 1e-9;
	v->least_s = fmax(STALL_LEAST_S, STALL_SERVICES * file_s);
	return v->usual > 0;
}

static void usual_starvation(struct stalls_view *v)
{
	double starved = 0;
	double seconds = 0;
	for (size_t i = 0; i < v->m->window_count; i++)
		if (is_measured(v->m, i) && !is_quiet(v, i) && (i == 0 || !is_quiet(v, i - 1))) {
			starved += window_state(v->m, i, v->step, THREAD_STARVED) *
				   window_length(v->m, i);
			seconds += window_length(v->m, i);
		}
	v->starved = seconds > 0 ? starved / seconds : 0;
}

/* What the step starves for beyond the usual while storage is quiet, and in the window after. */
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

static void add_stalls(const struct measurement *m, struct stalls *out)
{
	struct stalls_view v;
	size_t found = 0;
	double longest = 0;
	double all_s = 0;
	out->measured_s += m->measured_seconds;
	if (!open_view(m, &v))
		return;
	usual_starvation(&v);
	for (size_t i = 0; i < m->window_count; i++) {
		if (!is_quiet(&v, i))
			continue;
		const size_t first = i;
		double seconds = first > 0 ? edge_s(&v, first - 1) : 0;
		for (; i < m->window_count && is_quiet(&v, i); i++)
			seconds += window_length(m, i);
		seconds += edge_s(&v, i);
		if (seconds < v.least_s)
			continue;
		found++;
		all_s += seconds;
		out->starved_s += starved_for(&v, first, i);
		longest = fmax(longest, seconds);
		if (seconds > out->longest_s) {
			out->longest_s = seconds;
			out->open = i >= m->window_count || !is_measured(m, i);
			out->longest_at_s = m->windows[first].t - window_length(m, first);
		}
	}
	out->count += found;
	out->seconds += all_s;
	out->repetition_s = longest > 0 && longest >= out->longest_s ? all_s : out->repetition_s;
	out->in_files = out->in_files ||
			(found > 0 && files_as_long(m, v.read, FILE_AS_LONG * longest) >= found);
}

static struct stalls stalls_of(const struct evidence_base *base)
{
	struct stalls stalls = {0};
	for (size_t i = 0; i < base->count; i++)
		add_stalls(base->repeats[i], &stalls);
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
			"storage did not answer for %s from %.1f s on: files were in flight and none came in; %.0f %% of the time",
			longest, s->longest_at_s, share);
	return cause_is(out, "stalls", certainty,
		"storage stalls: %zu times for about %s, every %s, %.0f %% of the time (the longest %s, at %.1f s): files are in flight and none comes in; the step starves for it %.0f %% of the time",
		s->count, units_format_duration(s->seconds / (double)s->count * 1e9, each),
		units_format_duration(s->measured_s / (double)s->count * 1e9, every), share,
		longest, s->longest_at_s, s->starved_s / s->measured_s * 100);
}

/* Reading is the limit: for its stalls, if it would keep up without them, or if they are a good part of the time. */
bool cause_stalls(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	const struct stalls s = stalls_of(base);
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
		    (keeps_up && costs)))
		return false;
	return say_stalls(&s, out);
}

bool stalls_bind(const struct evidence_base *base)
{
	const struct stalls s = stalls_of(base);
	return s.count > 0 && s.starved_s >= STALLS_COST * s.measured_s &&
	       s.starved_s >= s.seconds * FILE_AS_LONG;
}
