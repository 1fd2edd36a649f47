/* The measuring of a session: point by point, then the limits.  Each repetition is saved as it ends, so that
 * stopping at any moment keeps what was measured. */
#include "harness/analyze/peaks.h"
#include "harness/analyze/sufficiency.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/adaptive_sweep.h"
#include "harness/command/calibration.h"
#include "harness/command/diagnosed.h"
#include "harness/command/session_parts.h"
#include "harness/report/report.h"
#include "harness/report/timeline_report.h"
#include "pipelines/dither.h"
#include "pipelines/pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASON_BYTES = 80 };

static bool stopped(const struct session *session)
{
	return atomic_load(session->invocation->stop) || session->trouble_code;
}

static void label_point(const struct session *session, size_t point, char *out, size_t room)
{
	const struct report view = {.record = &session->record};
	struct buffer text = {0};
	report_settings(&view, point, &text);
	(void)snprintf(out, room, "%s", text.data ? text.data : session->plan.name);
	buffer_release(&text);
}

static void show_run(struct session *session, const char *label, bool limit)
{
	const struct live_begin begin = {.label = label,
		.limit = limit,
		.done = session->progress.done,
		.total = session->progress.total,
		.rest_s = progress_rest_seconds(&session->progress)};
	live_show_run(session->live, &begin);
}

/* What a repetition leaves beside its measurement. */
struct recordings {
	struct traces traces;
	struct timeline
		*timeline; /* of the first repetition of a point, where there is a schedule */
};

/* recordings: NULL where none are wanted. */
static int run_pipeline(struct session *session, const struct config *config, const char *label,
	struct measurement *m, struct recordings *recordings, bool first, struct error *err)
{
	const struct pipeline_control control = {.stop = session->invocation->stop,
		.progress = progress_tell,
		.choosing = progress_choosing,
		.context = &session->progress,
		.traces = recordings ? &recordings->traces : NULL,
		.timeline = recordings && first ? &recordings->timeline : NULL,
		.live = live_show_feed(session->live)};
	const double started = clock_utc_seconds();
	show_run(session, label, !recordings);
	progress_begin(&session->progress, label);
	const int code = pipeline_run(config, &session->plan.dataset, &control, m, err);
	session->data_failed = session->data_failed || code == -EBADMSG;
	progress_end(&session->progress);
	peaks_fill(m);
	m->started = started;
	if (code && atomic_load(session->invocation->stop))
		m->status = MEASUREMENT_INTERRUPTED;
	if (m->status != MEASUREMENT_INTERRUPTED)
		live_show_result(session->live, code ? (double)NAN : m->throughput,
			m->status == MEASUREMENT_OK);
	return code;
}

/* A repetition without its traces is still one. */
static void save_traces(
	struct session *session, const struct measurement *m, const struct traces *traces)
{
	struct error err = {0};
	if (traces->stage_count == 0 || !record_save_traces(&session->record, traces, m, &err))
		return;
	if (!session->traces_lost)
		log_warn("%s; repetitions are kept without their traces", err.text);
	session->traces_lost = true;
}

/* Nor does one without its timeline. */
static void save_timeline(
	struct session *session, const struct measurement *m, const struct timeline *timeline)
{
	struct error err = {0};
	if (!timeline)
		return;
	if (timeline->window_count == 0) {
		log_warn(
			"no trace.json: the repetition ended after %llu steps, before trace.schedule = %s kept a whole one",
			(unsigned long long)timeline->steps,
			config_text(&session->record.config, KEY_TRACE_SCHEDULE));
		return;
	}
	if (timeline->dropped_steps > 0)
		log_warn(
			"trace.json lacks %llu steps that trace.schedule asks for: its memory was used up",
			(unsigned long long)timeline->dropped_steps);
	if (!record_save_timeline(&session->record, timeline, m, &err))
		return;
	if (!session->timeline_lost)
		log_warn("%s; the run goes on without it", err.text);
	session->timeline_lost = true;
}

static void save(
	struct session *session, const struct measurement *m, const struct recordings *recordings)
{
	struct error err = {0};
	save_traces(session, m, &recordings->traces);
	save_timeline(session, m, recordings->timeline);
	const int code = record_append(&session->record, m, &err);
	if (code)
		session_cannot_save(session, code, &err);
}

static int configure_item(const struct session *session, const struct schedule_item *item,
	struct config *config, struct error *err)
{
	char text[UNITS_BYTES];
	const int code = config_grid_point(
		&session->plan.config, &session->plan.grid, item->point, config, err);
	if (code || item->warmup_ns == 0)
		return code;
	return config_set_key(
		config, KEY_MEASURE_WARMUP, units_print_duration(item->warmup_ns, text), err);
}

void session_measure_item(struct session *session, const struct schedule_item *item)
{
	struct config config = {0};
	struct recordings recordings = {0};
	struct error err = {0};
	char label[PROGRESS_LABEL_BYTES];
	struct measurement *m = calloc(1, sizeof *m);
	const int code = m ? configure_item(session, item, &config, &err)
			   : error_set(&err, -ENOMEM, "out of memory for a repetition");
	if (!m) {
		session_cannot_save(session, code, &err);
		return;
	}
	label_point(session, item->point, label, sizeof label);
	if (code)
		m->status = MEASUREMENT_FAILED;
	else
		(void)run_pipeline(session, &config, label, m, &recordings, item->repeat == 0,
			&err); /* m->status says it too */
	flame_run_note(&session->flame, m);
	config_release(&config);
	m->point = item->point;
	m->repeat = item->repeat;
	if (item->warmup_ns > 0)
		measurement_note(m,
			"a longer warm-up than is set: %.3g s, for reads at other depths",
			(double)item->warmup_ns / (double)NS_PER_S);
	if (m->status == MEASUREMENT_FAILED) {
		(void)snprintf(m->error, sizeof m->error, "%s",
			err.text[0] ? err.text : "failed without a reason");
		log_warn("%s, repeat %u failed: %s", label, item->repeat, m->error);
	}
	if (m->status != MEASUREMENT_INTERRUPTED)
		save(session, m, &recordings);
	timeline_close(recordings.timeline);
	traces_release(&recordings.traces);
	measurement_release(m);
	free(m);
}

/* What was found out about a limit follows its description. */
static bool limit_is_known(const struct record *record, const struct stage_limit *limit)
{
	for (size_t i = 0; i < record->limit_count; i++)
		if (strcmp(record->limits[i].stage, limit->stage) == 0 &&
			strncmp(record->limits[i].how, limit->how, strlen(limit->how)) == 0)
			return true;
	return false;
}

static void save_limit(struct session *session, const struct stage_limit *limit)
{
	struct error err = {0};
	const int code = record_append_limit(&session->record, limit, &err);
	if (code)
		session_cannot_save(session, code, &err);
}

static void run_limit(struct session *session, const struct limit_job *job)
{
	struct error err = {0};
	struct stage_limit limit = job->limit;
	char label[PROGRESS_LABEL_BYTES];
	struct measurement *m = calloc(1, sizeof *m);
	if (!m)
		return;
	(void)snprintf(label, sizeof label, "limit of %s, %.80s", limit.stage, limit.how);
	const int code = run_pipeline(session, &job->config, label, m, NULL, false, &err);
	limit.capacity = code ? (double)NAN : m->throughput;
	const size_t used = strlen(limit.how);
	if (code)
		(void)snprintf(limit.how + used, sizeof limit.how - used,
			"; could not be measured: %.*s", REASON_BYTES, err.text);
	else if (m->status == MEASUREMENT_UNSTEADY)
		(void)snprintf(limit.how + used, sizeof limit.how - used, " (unsteady)");
	const bool whole = m->status != MEASUREMENT_INTERRUPTED;
	measurement_release(m);
	free(m);
	if (whole)
		save_limit(session, &limit);
}

static void measure_repetition(void *context, uint32_t point, uint32_t repeat)
{
	struct session *session = context;
	const struct schedule_item item = {.point = point, .repeat = repeat};
	session_measure_item(session, &item);
}

static bool is_stopped(void *context)
{
	return stopped(context);
}

static void expect_more(void *context, size_t repetitions)
{
	struct session *session = context;
	session->progress.total += repetitions;
}

static void measure_adaptively(struct session *session)
{
	const struct adaptive_hooks hooks = {.measure = measure_repetition,
		.stopped = is_stopped,
		.expect = expect_more,
		.context = session};
	struct error err = {0};
	const int code = adaptive_sweep_run(&session->record, &hooks, &session->complete, &err);
	if (code)
		session_cannot_save(session, code, &err);
}

/* --- as far as a verdict takes it -------------------------------------------------------------------- */

/* How many repetitions more, for a verdict or for its predictions; what cannot be loaded asks for none. */
static size_t wanted_repetitions(const struct session *session, size_t most)
{
	const struct record *record = &session->record;
	const size_t count = record->entry_count;
	struct measurement *repeats = calloc(count + 1, sizeof *repeats);
	const struct measurement **list = calloc(count + 1, sizeof(const struct measurement *));
	size_t loaded = 0;
	size_t more = 0;
	while (repeats && list && loaded < count &&
		record_load(record, loaded, &repeats[loaded], NULL) == 0) {
		list[loaded] = &repeats[loaded];
		loaded++;
	}
	if (loaded > 0 && loaded == count)
		more = way_out_repetitions(list, count, most);
	if (more == 0 && loaded > 0) {
		const struct model_lack lack = calibration_lack(record, 0);
		more = way_out_for_samples(lack.recorded, lack.needed, count, most);
	}
	for (size_t i = 0; repeats && i <= loaded && i < count; i++)
		measurement_release(&repeats[i]);
	free(list);
	free(repeats);
	return more;
}

/* False: nothing of it could be kept. */
static bool measure_more(struct session *session, size_t repeats, uint64_t warmup_ns)
{
	const size_t count = session->record.entry_count;
	session->progress.total += repeats;
	for (size_t i = 0; i < repeats && !stopped(session); i++) {
		const struct schedule_item item = {
			.repeat = (uint32_t)(count + i), .warmup_ns = warmup_ns};
		session_measure_item(session, &item);
	}
	return session->record.entry_count > count;
}

/* In flight on average: Little's law. */
static double files_in_flight(const struct point_summary *point)
{
	const struct stage_summary *read = summary_stage(point, STAGE_READ_NAME);
	return read ? point->median * histogram_mean(&read->service) * 1e-9 : 0;
}

static double slowest_rate(const struct diagnosis *diagnosis)
{
	double least = HUGE_VAL;
	for (size_t i = 0; i < diagnosis->phase_count; i++)
		least = fmin(least, diagnosis->phases[i].throughput);
	return least;
}

/* What tells more of the storage; repeats 0: nothing, or there is nothing more to tell. */
struct storage_wish {
	size_t repeats;
	uint64_t warmup_ns; /* in place of the one that is set; 0: that */
};

static struct storage_wish wish_of(const struct session *session, const struct diagnosed *d)
{
	const struct config *config = &session->plan.config;
	const struct verdict *v = &d->diagnosis.verdict;
	if (!stage_is(v->stage, STAGE_READ))
		return (struct storage_wish){0};
	/* Latency and a full store look alike at one depth: a warm-up that has the time for others. */
	if (strcmp(v->resource, "unknown") == 0 && dither_longer_ns(config) > 0) {
		const uint64_t ns =
			dither_warmup_ns(slowest_rate(&d->diagnosis), files_in_flight(d->summary));
		const uint64_t set_ns = (uint64_t)config_integer(config, KEY_MEASURE_WARMUP);
		return (struct storage_wish){.repeats = ns > set_ns, .warmup_ns = ns};
	}
	/* Whether of bytes or of requests is a question of how many files were seen. */
	if (strcmp(v->resource, "full") == 0)
		return (struct storage_wish){.repeats = session->record.entry_count};
	return (struct storage_wish){0};
}

static struct storage_wish storage_wish(const struct session *session)
{
	struct report report = {0};
	struct diagnosed *d = calloc(1, sizeof *d);
	struct error why = {0};
	struct storage_wish wish = {0};
	if (d && report_open(&report, &session->record, &why) == 0 &&
		diagnosed_open(d, &report, 0, &why) == 0) {
		wish = wish_of(session, d);
		diagnosed_close(d);
	}
	report_close(&report);
	free(d);
	return wish;
}

/* Once for whether it is full, once for what fills it. */
static void measure_storage(struct session *session, size_t most)
{
	bool deeper = false;
	bool longer = false;
	while (!stopped(session)) {
		const size_t count = session->record.entry_count;
		const struct storage_wish wish = storage_wish(session);
		bool *const done = wish.warmup_ns > 0 ? &deeper : &longer;
		char with[64] = "";
		if (wish.repeats == 0 || *done || count + wish.repeats > most)
			return;
		*done = true;
		if (wish.warmup_ns > 0)
			(void)snprintf(with, sizeof with,
				", with a warm-up of %.0f s that tries other depths",
				(double)wish.warmup_ns / (double)NS_PER_S);
		log_info("it is not clear yet what limits the storage: measuring %zu more%s",
			wish.repeats, with);
		if (!measure_more(session, wish.repeats, wish.warmup_ns))
			return;
	}
}

static void measure_on(struct session *session)
{
	const size_t most = SESSION_REPEATS_TIMES *
			    (size_t)config_integer(&session->plan.config, KEY_MEASURE_REPEATS);
	while (!stopped(session)) {
		const size_t count = session->record.entry_count;
		const size_t more = wanted_repetitions(session, most);
		if (more == 0)
			break;
		log_info(
			"%zu repeat%s too little for a verdict: measuring %zu more, %zu in all at most",
			count, count == 1 ? " is" : "s are", more, most);
		if (!measure_more(session, more, 0))
			return;
	}
	measure_storage(session, most);
}

static void finish_flame(struct session *session)
{
	struct error err = {0};
	const int code = flame_run_finish(&session->flame, &session->record, &err);
	if (code)
		session_cannot_save(session, code, &err);
}

/* Limits that are still to be measured. */
static size_t limits_to_go(const struct session *session)
{
	size_t count = 0;
	for (size_t i = 0; i < session->limits.count; i++)
		count += !limit_is_known(&session->record, &session->limits.jobs[i].limit);
	return count;
}

void session_measure(struct session *session)
{
	const double each = plan_repetition_seconds(&session->plan);
	session->progress = (struct progress){.total = session->item_count + limits_to_go(session),
		.each_seconds = each,
		.hidden = live_show_has_view(session->live)};
	if (session->adaptive)
		measure_adaptively(session);
	for (size_t i = 0; i < session->item_count && !stopped(session); i++)
		session_measure_item(session, &session->items[i]);
	if (session->sequel)
		measure_on(session);
	finish_flame(session);
	for (size_t i = 0; i < session->limits.count && !stopped(session); i++)
		if (!limit_is_known(&session->record, &session->limits.jobs[i].limit))
			run_limit(session, &session->limits.jobs[i]);
	log_progress_end();
	live_show_phase(session->live, LIVE_REPORTING);
}
