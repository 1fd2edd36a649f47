/* A session: plan, measure point by point, then the limits, report.  Each repetition is saved as it ends, so that stopping or
 * crashing at any moment keeps what was measured. */
#include "harness/command/session.h"

#include "harness/analyze/stop_rule.h"
#include "harness/analyze/summary.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/calibration.h"
#include "harness/command/decide.h"
#include "harness/command/resume.h"
#include "harness/record/fields.h"
#include "harness/report/flame_report.h"
#include "harness/report/html/report_page.h"
#include "harness/report/layout.h"
#include "harness/report/report.h"
#include "harness/report/rounds.h"
#include "harness/report/style.h"
#include "harness/report/timeline_report.h"
#include "pipelines/dither.h"
#include "pipelines/pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Repetitions that a diagnosis may come to, as times of those that are set. */
enum { SESSION_REPEATS_TIMES = 4, REASON_BYTES = 80 };
static const double DECIDE_MOST_S = 8;
/* For how long an answer waits for a narrow interval: a verdict that stands, and a rate. */
static const double VERDICT_WAITS_S = 6, AS_A_RULE_S = 10;
static const double LONGEST_S = 5; /* of a repetition */
static const double BESIDE_S = 0.1;
static const double TELLING_S = 1.5; /* of the time at most: for the last look and the report */
static const double TOLD = 0.8;      /* confidence of a verdict */
/* Half widths of the throughput's interval, as shares of it, that are narrow enough: where a verdict was asked for, and where
 * the throughput is the answer. */
static const double VERDICT_WIDTH = 0.15, RATE_WIDTH = 0.05;

/* Says why, and nothing more is measured. */
static void session_cannot_save(struct session *session, int code, const struct error *err)
{
	if (session->trouble_code)
		return;
	session->trouble = *err;
	session->trouble_code = code;
	log_error("%s; stopping here", err->text);
}

bool session_stopped(const struct session *session)
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

/* What a repetition leaves beside its measurement. */
struct recordings {
	uint32_t point, repeat;
	struct traces traces;
	struct timeline
		*timeline; /* of the first repetition of a point, where there is a schedule */
};

/* That the results are kept, and how to go on; free it. */
static char *session_what_is_left(const struct session *session)
{
	struct buffer text = {0};
	buffer_text(&text, "results are kept; '");
	record_add_command(&session->record, NULL, &text);
	buffer_text(&text, "' measures the rest");
	return text.data;
}

static void session_tell_interrupted(struct session *session)
{
	if (session->told_interrupted)
		return;
	session->told_interrupted = true;
	char *const left = session_what_is_left(session);
	log_warn("interrupted: %s", left ? left : "results are kept");
	free(left);
}

/* Without all of its ranks it cannot go on: what is finished is kept.  A launcher that has asked to stop does not wait for a
 * report. */
static void session_watch_party(struct session *session, int code, const struct error *err)
{
	if (!session->party->ranks || session->trouble_code)
		return;
	if (atomic_load(session->invocation->stop)) {
		session_tell_interrupted(session);
		return;
	}
	if (session->party->cannot_save) {
		session_cannot_save(session, session->party->cannot_save, err);
		return;
	}
	if (!session->party->ranks->lost && code != -EINTR)
		return;
	session->trouble = *err;
	session->trouble_code = code ? code : -EIO;
	char *const left = session_what_is_left(session);
	log_error("%s; stopping here: %s", err->text, left ? left : "results are kept");
	free(left);
}

/* recordings: NULL where none are wanted. */
static int session_run_pipeline(struct session *session, const struct config *config,
	const struct dataset *dataset, const char *label, struct measurement *m,
	struct recordings *recordings, bool first, struct error *err)
{
	const struct party_job job = {.config = config,
		.dataset = dataset,
		.point = recordings ? recordings->point : 0,
		.repeat = recordings ? recordings->repeat : 0,
		.kept = recordings != NULL};
	struct pipeline_control control = {.stop = session->invocation->stop,
		.progress = progress_tell,
		.choosing = progress_choosing,
		.context = &session->progress,
		.traces = recordings ? &recordings->traces : NULL,
		.timeline = recordings && first ? &recordings->timeline : NULL,
		.enough = recordings ? NULL : limits_enough,
		.live = &session->live->feed,
		.pools = &session->pools};
	const double started = clock_utc_seconds();
	const struct live_begin begin = {.label = label,
		.limit = !recordings,
		.done = session->progress.done,
		.total = session->progress.total,
		.rest_s = progress_rest_seconds(&session->progress)};
	live_show_run(session->live, &begin);
	session->progress.ranks =
		session->party->ranks ? (unsigned)config_integer(config, KEY_RUN_RANKS) : 0;
	progress_begin(&session->progress, label);
	const int code = party_run(session->party, &job, &control, m, err);
	session->ended_ns = clock_now_ns();
	session->data_failed = session->data_failed || code == -EBADMSG;
	progress_end(&session->progress);
	peaks_fill(m);
	m->started = started;
	session_watch_party(session, code, err);
	if (code && atomic_load(session->invocation->stop))
		m->status = MEASUREMENT_INTERRUPTED;
	if (m->status != MEASUREMENT_INTERRUPTED)
		live_show_result(session->live, code ? (double)NAN : m->throughput,
			m->status == MEASUREMENT_OK);
	return code;
}

/* Where another rank's part is missing, or is of other steps. */
static void session_check_parts(struct session *session, const struct timeline *timeline)
{
	const struct timeline_others *const others = party_timelines(session->party);
	size_t i;
	json_t *part;
	json_array_foreach(others ? others->parts : NULL, i, part)
	{
		struct buffer why = {0};
		const json_t *const missing = json_object_get(part, "missing");
		if (missing)
			buffer_format(&why, "has nothing of it: %s", json_string_value(missing));
		else
			timeline_compare_part(timeline, part, &why);
		if (why.size > 0)
			log_warn("trace.json: rank %zu on %s %s", i + 1,
				fields_text_of(part, "host"), why.data);
		session->timeline_lost = session->timeline_lost || why.size > 0;
		buffer_release(&why);
	}
}

/* A repetition without its timeline is still one. */
static void session_save_timeline(
	struct session *session, const struct measurement *m, const struct timeline *timeline)
{
	struct error err = {0};
	if (!timeline)
		return;
	if (timeline->window_count == 0) {
		log_warn(
			"no trace.json: the repetition ended after %llu steps, before trace.schedule = "
			"%s recorded one",
			(unsigned long long)timeline->steps,
			config_text(&session->record.config, KEY_TRACE_SCHEDULE));
		return;
	}
	if (timeline->dropped_steps > 0)
		log_warn("trace.json is missing %llu steps of trace.schedule: its memory was full",
			(unsigned long long)timeline->dropped_steps);
	const int code = record_save_timeline(
		&session->record, timeline, m, party_timelines(session->party), &err);
	if (!code) {
		session_check_parts(session, timeline);
		return;
	}
	if (!session->timeline_lost)
		log_warn("%s; the run continues without it", err.text);
	session->timeline_lost = true;
	session_watch_party(session, code, &err);
}

static void session_save(
	struct session *session, const struct measurement *m, const struct recordings *recordings)
{
	const struct traces *traces = &recordings->traces;
	struct error err = {0};
	/* So is one without its traces. */
	if (traces->stage_count > 0 && record_save_traces(&session->record, traces, m, &err)) {
		if (!session->traces_lost)
			log_warn("%s; repetitions are kept without their traces", err.text);
		session->traces_lost = true;
	}
	session_save_timeline(session, m, recordings->timeline);
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
	if (code || item->duration_ns == 0)
		return code;
	return config_set_key(
		config, KEY_MEASURE_DURATION, units_print_duration(item->duration_ns, text), err);
}

void session_measure_item(struct session *session, const struct schedule_item *item)
{
	struct config config = {0};
	struct recordings recordings = {.point = item->point, .repeat = item->repeat};
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
		(void)session_run_pipeline(session, &config, plan_dataset(&session->plan, &config),
			label, m, &recordings, item->repeat == 0, &err); /* m->status says it too */
	if (session->flame) {
		struct flame_profile facts;
		flame_facts(session->flame, &facts);
		measurement_note(m,
			"CPU time was sampled during the run: clock signals, %.0f Hz of CPU time",
			(double)NS_PER_S / (double)facts.period_ns);
	}
	config_release(&config);
	m->point = item->point;
	m->repeat = item->repeat;
	if (item->duration_ns > 0)
		measurement_note(m, "measured for %s s: shorter repetitions did not tell enough",
			UNITS_PLAIN((double)item->duration_ns / (double)NS_PER_S, 3));
	if (m->status == MEASUREMENT_FAILED) {
		(void)snprintf(m->error, sizeof m->error, "%s",
			err.text[0] ? err.text : "failed without a reason");
		if (!session->trouble_code) /* which was said */
			log_warn("%s, repetition %u failed: %s", label, item->repeat, m->error);
	}
	if (m->status != MEASUREMENT_INTERRUPTED)
		session_save(session, m, &recordings);
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
			strcmp(record->limits[i].settings, limit->settings) == 0 &&
			strncmp(record->limits[i].how, limit->how, strlen(limit->how)) == 0)
			return true;
	return false;
}

int session_run_alone(struct session *session, const struct config *config,
	const struct dataset *dataset, const char *label, struct measurement *m, struct error *err)
{
	return session_run_pipeline(session, config, dataset, label, m, NULL, false, err);
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
	const int code = session_run_pipeline(session, &job->config,
		plan_dataset(&session->plan, &job->config), label, m, NULL, false, &err);
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
	const int saved = whole ? record_append_limit(&session->record, &limit, &err) : 0;
	if (saved)
		session_cannot_save(session, saved, &err);
}

/* --- as far as a verdict takes it ------------------------------------------------------------- */

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
		struct calibration unused;
		struct model_lack lack = {0};
		struct error why;
		(void)calibration_open(&unused, record, 0, (double)NAN, &lack, &why);
		calibration_close(&unused);
		more = way_out_for_samples(lack.recorded, lack.needed, count, most);
	}
	for (size_t i = 0; repeats && i <= loaded && i < count; i++)
		measurement_release(&repeats[i]);
	free(list);
	free(repeats);
	return more;
}

/* False: nothing of it could be kept. */
static bool session_measure_more(struct session *session, size_t repeats, uint64_t duration_ns)
{
	const size_t count = session->record.entry_count;
	session->progress.total += repeats;
	for (size_t i = 0; i < repeats && !session_stopped(session); i++) {
		const struct schedule_item item = {
			.repeat = (uint32_t)(count + i), .duration_ns = duration_ns};
		session_measure_item(session, &item);
	}
	return session->record.entry_count > count;
}

/* As many as were set, and more only where they are too few for a verdict. */
static void session_measure_on(struct session *session)
{
	const size_t most = SESSION_REPEATS_TIMES *
			    (size_t)config_integer(&session->plan.config, KEY_MEASURE_REPEATS);
	while (!session_stopped(session)) {
		const size_t count = session->record.entry_count;
		const size_t more = wanted_repetitions(session, most);
		if (more == 0)
			break;
		log_info(
			"%zu repetition%s too little for a verdict: measuring %zu more, at most %zu in "
			"total",
			count, count == 1 ? " is" : "s are", more, most);
		if (!session_measure_more(session, more, 0))
			return;
	}
}

/* --- until the answer is clear ---------------------------------------------------------------- */

static double session_seconds(const struct session *session)
{
	return (double)(clock_now_ns() - session->begun_ns) / (double)NS_PER_S;
}

/* For measuring. */
static double session_left_s(const struct session *session)
{
	return PLAN_AT_MOST_S - TELLING_S - session_seconds(session);
}

/* What is known so far. */
struct session_look {
	bool told;         /* the stage and its resource */
	bool decided;      /* an experiment was run, and more may be known */
	double half_width; /* of the throughput's interval, as a share of it */
	double missing_s; /* of measuring, until there are samples enough for a verdict; 0: there are */
};

/* The interval of what lasts: of repetitions before a change there is no more to learn. */
static double session_half_width(const struct session *session, size_t point)
{
	size_t count;
	double *const rates = calibration_repeats(&session->record, point, &count);
	const double width = rates ? stop_rule_estimate(rates, count, 0).half_width : HUGE_VAL;
	free(rates);
	return width;
}

/* A straggler's experiments are about its own measurements, and kept with them. */
static bool session_decide_straggler(
	struct session *session, unsigned rank, size_t point, double seconds)
{
	struct record record = {0};
	struct report report = {0};
	struct diagnosed *const d = calloc(1, sizeof *d);
	char *const folder = record_rank_folder(&session->record, rank);
	struct error why;
	bool decided = false;
	if (d && folder && record_open(&record, folder, &why) == 0 &&
		report_open(&report, &record, &why) == 0 &&
		diagnosed_open(d, &report, point, &why) == 0) {
		session->judged = &record;
		session->party->judged = rank;
		decided = decide(session, d, seconds);
		session->judged = NULL;
		session->party->judged = 0;
		diagnosed_close(d);
	}
	report_close(&report);
	record_release(&record);
	free(folder);
	free(d);
	return decided;
}

/* Experiments on a leader that straggles are about what holds it back. */
static void session_judge_leader(struct verdict *v)
{
	memcpy(v->stage, v->straggler.stage, sizeof v->stage);
	memcpy(v->resource, v->straggler.resource, sizeof v->resource);
	v->confidence = v->straggler.confidence;
}

static struct session_look session_look(struct session *session, double seconds)
{
	struct session_look look = {.half_width = HUGE_VAL};
	struct report report = {0};
	struct diagnosed *d = calloc(1, sizeof *d);
	struct error why = {0};
	if (d && report_open(&report, &session->record, &why) == 0 &&
		report.best < session->plan.grid.points &&
		diagnosed_open(d, &report, report.best, &why) == 0) {
		const struct verdict *v = &d->diagnosis.verdict;
		/* A queue is too short for uneven times, of which a short time shows few: a slow file may be behind it. */
		const bool early =
			strcmp(v->resource, "depth") == 0 && session_seconds(session) < AS_A_RULE_S;
		const struct verdict_straggler *const s = &v->straggler;
		look.told = v->confidence >= TOLD && strcmp(v->resource, "unknown") != 0 &&
			    d->diagnosis.samples_needed == 0 && !early &&
			    (!s->known || s->confidence >= TOLD);
		look.half_width = session_half_width(session, report.best);
		if (d->diagnosis.samples_needed > d->samples && d->summary->median > 0)
			look.missing_s = (double)(d->diagnosis.samples_needed - d->samples) /
					 d->summary->median;
		const double most_s = fmin(seconds, DECIDE_MOST_S);
		if (s->known && s->rank == 0)
			session_judge_leader(&d->diagnosis.verdict);
		look.decided = s->known && s->rank > 0 ? session_decide_straggler(session, s->rank,
								 report.best, most_s)
						       : decide(session, d, most_s);
		diagnosed_close(d);
	}
	report_close(&report);
	free(d);
	return look;
}

/* The experiments alone. */
static void session_decide(struct session *session)
{
	while (!session_stopped(session) && session_look(session, DECIDE_MOST_S).decided)
		;
}

static double session_key_seconds(const struct session *session, enum key_id key)
{
	return (double)config_integer(&session->plan.config, key) / (double)NS_PER_S;
}

/* Short repetitions, looked at in between: an answer as soon as it is clear, within 10 s as a rule and 20 s at most. Where
 * they tell nothing the next ones are longer. */
static void session_measure_as_needed(struct session *session)
{
	const double share = session->sequel ? VERDICT_WIDTH : RATE_WIDTH;
	const double waits_s = session->sequel ? VERDICT_WAITS_S : AS_A_RULE_S;
	const double set_s = session_key_seconds(session, KEY_MEASURE_DURATION);
	const double beside_s = session_key_seconds(session, KEY_MEASURE_WARMUP) + BESIDE_S;
	double each_s = set_s;
	double took_s = session_seconds(session) / fmax((double)session->record.entry_count, 1);
	while (!session_stopped(session)) {
		const struct session_look look = session_look(session, session_left_s(session));
		const bool narrow = look.half_width <= share || session_seconds(session) > waits_s;
		if (look.decided)
			continue;
		if (look.told && narrow)
			return;
		if (look.missing_s > 0)
			each_s = fmin(fmax(look.missing_s, set_s), LONGEST_S);
		else if (!look.told)
			each_s = fmin(2 * each_s, LONGEST_S);
		const double left_s = session_left_s(session);
		each_s = fmin(each_s, fmax(left_s - beside_s, set_s));
		const double fit = floor(left_s / fmax(each_s + beside_s, took_s));
		const size_t third = session->record.entry_count / 3;
		const double some = fmin(fit, (double)third);
		const double before_s = session_seconds(session);
		if (fit < 1 || !session_measure_more(session, (size_t)fmax(some, 1),
				       each_s > set_s ? (uint64_t)(each_s * (double)NS_PER_S) : 0))
			return;
		took_s = (session_seconds(session) - before_s) / fmax(some, 1);
	}
}

/* No samples any more, and the files of --flame. */
static void session_finish_flame(struct session *session)
{
	struct error err = {0};
	if (!session->flame)
		return;
	int code = flame_finish(session->flame, &session->flame_profile, &err);
	if (!code && session->flame_profile.windows == 0) {
		log_warn("no flame graph: nothing was measured");
		return;
	}
	if (!code)
		code = flame_write_files(&session->flame_profile, session->record.name,
			session->record.folder, &err);
	session->flame_finished = code == 0;
	if (code)
		session_cannot_save(session, code, &err);
}

/* At the setting that the verdict will speak of. */
static void session_open_limits(struct session *session)
{
	const struct plan *plan = &session->plan;
	struct config config = {0};
	struct report report = {0};
	struct error err = {0};
	int code = report_open(&report, &session->record, &err);
	if (!code && report.best < plan->grid.points)
		code = config_grid_point(&plan->config, &plan->grid, report.best, &config, &err);
	if (!code && report.best < plan->grid.points)
		code = limits_open(&session->limits, &plan->config, &plan->grid, report.best,
			plan_dataset(plan, &config), &err);
	if (code)
		log_warn("the limits of the stages could not be measured: %s", err.text);
	config_release(&config);
	report_close(&report);
}

/* --- a sequential sweep ------------------------------------------------------------------------ */

static size_t round_missing(
	const struct session *session, const struct stop_point *states, size_t round)
{
	size_t missing = 0;
	for (size_t i = 0; i < session->plan.grid.points; i++)
		missing += states[i].more &&
			   !record_has(&session->record, (uint32_t)i, (uint32_t)round);
	return missing;
}

static void measure_round(struct session *session, const struct stop_point *states, size_t round)
{
	const size_t points = session->plan.grid.points;
	const struct schedule_item *items = &session->items[round * points];
	for (size_t i = 0; i < points && !session_stopped(session); i++)
		if (states[items[i].point].more &&
			!record_has(&session->record, items[i].point, items[i].repeat))
			session_measure_item(session, &items[i]);
}

/* Every point once, then round by round those whose answer is open.  A round follows from those before it alone, so that a
 * sweep that was stopped goes on as it would have. */
static int measure_rounds(struct session *session, struct error *err)
{
	const size_t points = session->plan.grid.points;
	struct stop_point *states = calloc(points, sizeof *states);
	int wanted = states ? 1 : error_set(err, -ENOMEM, "out of memory for %zu points", points);
	for (size_t round = 0; wanted > 0 && !session_stopped(session); round++) {
		wanted = rounds_judge(&session->record, round, states, err);
		session->complete = wanted == 0;
		const size_t missing = wanted > 0 ? round_missing(session, states, round) : 0;
		if (round > 0)
			session->progress.total += missing;
		if (round > 0 && missing > 0)
			log_info("round %zu: %d of %zu points again, whose answer is open",
				round + 1, wanted, points);
		if (missing > 0)
			measure_round(session, states, round);
	}
	free(states);
	return wanted < 0 ? wanted : 0;
}

static void session_measure(struct session *session)
{
	session->begun_ns = clock_now_ns();
	const double each = plan_repetition_seconds(&session->plan);
	struct error err = {0};
	int code = 0;
	size_t limits = 0; /* still to be measured */
	if (session->plan.limits > session->record.limit_count)
		limits = session->plan.limits - session->record.limit_count;
	session->progress = (struct progress){.total = session->item_count + limits,
		.each_seconds = each,
		.hidden = session->live->watch != NULL};
	if (session->sequential)
		code = measure_rounds(session, &err);
	if (code)
		session_cannot_save(session, code, &err);
	for (size_t i = 0;
		!session->sequential && i < session->item_count && !session_stopped(session); i++)
		session_measure_item(session, &session->items[i]);
	if (session->plan.as_needed && session->plan.grid.points == 1)
		session_measure_as_needed(session);
	else {
		if (session->sequel)
			session_measure_on(session);
		if (session->sequel || session->sequential)
			session_decide(session);
	}
	session_finish_flame(session);
	if (session->plan.limits > 0 && !session_stopped(session))
		session_open_limits(session);
	for (size_t i = 0; i < session->limits.count && !session_stopped(session); i++)
		if (!limit_is_known(&session->record, &session->limits.jobs[i].limit))
			run_limit(session, &session->limits.jobs[i]);
	pipeline_pools_release(&session->pools);
	log_progress_end();
	live_feed_phase(&session->live->feed, LIVE_REPORTING);
}

/* --- the end: what was measured becomes a report, files and an exit status -------------------- */

static int session_print_report(
	const struct session *session, const struct report *report, struct error *err)
{
	if (command_wants_json(session->invocation))
		return command_print_json(session->invocation, report_summary_json(report), err);
	const struct style style = command_style(session->invocation);
	struct buffer text = {0};
	if (session->flame_finished)
		flame_table(&session->flame_profile, &style, &text);
	report_terminal(report, &style,
		options_given(&session->invocation->options, OPTION_VERBOSE) ? REPORT_EVERY_POINT
									     : REPORT_SCREEN,
		&text);
	return command_print(&text, err);
}

static int session_final_status(struct session *session, const struct report *report)
{
	if (session->trouble_code)
		return EXIT_STATUS_CANNOT;
	if (session->record.interrupted) {
		session_tell_interrupted(session);
		return EXIT_STATUS_INTERRUPTED;
	}
	if (report->good + report->unsteady == 0) {
		log_warn("nothing could be measured");
		/* That the data are no good was found out, that there is no device was not measured. */
		return session->data_failed ? EXIT_STATUS_FAILED : EXIT_STATUS_CANNOT;
	}
	if (report->checksum_check.differ) {
		log_error("%s", report->checksum_check.words);
		return EXIT_STATUS_FAILED;
	}
	if (report->failed > 0) {
		log_warn("%zu of %zu points failed", report->failed, session->plan.grid.points);
		return EXIT_STATUS_FAILED;
	}
	if (report->good == 0)
		log_warn(
			"no point was steady: measure longer (measure.duration, measure.warmup), or find what "
			"disturbs this node");
	return report->good == 0 ? EXIT_STATUS_CANNOT : EXIT_STATUS_DONE;
}

/* The page, and its name where people look last. */
static int session_write_page(
	struct session *session, const struct report *report, struct error *err)
{
	char *path = files_join(session->record.folder, REPORT_PAGE_FILE);
	if (!path)
		return error_set(err, -ENOMEM, "out of memory for '%s'", REPORT_PAGE_FILE);
	const int code = report_page_write(report, report->best, path, err);
	session->page = code ? NULL : path;
	if (code)
		free(path);
	return code;
}

static int session_finish(struct session *session, struct error *err)
{
	struct report report;
	struct error saving = {0};
	session->record.interrupted = atomic_load(session->invocation->stop) ||
				      (session->sequential && !session->complete);
	int saved = record_end(&session->record, &saving);
	if (!saved)
		saved = party_end_records(session->party, &session->record, &saving);
	int code = report_open(&report, &session->record, err);
	if (code)
		return command_status(code);
	code = report_diagnose(&report, err);
	if (!code && !saved)
		saved = report_write_files(&report, &saving);
	if (!code && !saved)
		saved = session_write_page(session, &report, &saving);
	if (saved)
		session_cannot_save(session, saved, &saving);
	if (code) {
		report_close(&report);
		return command_status(code);
	}
	live_show_end_view(session->live);
	int status;
	if (session->sequel) {
		const struct session_result result = {.record = &session->record,
			.report = &report,
			.status = session_final_status(session, &report)};
		status = session->sequel(session->context, &result, err);
	} else {
		const int printed = session_print_report(session, &report, err);
		status = session_final_status(session, &report);
		status = status ? status : printed;
		/* A file that was asked for is not there. */
		if (!status && (session->traces_lost || session->timeline_lost))
			status = EXIT_STATUS_CANNOT;
	}
	report_close(&report);
	if (session->page && !session->sequel && command_wants_json(session->invocation))
		log_info("report: %s", session->page);
	return status;
}

/* --- from plan to exit status ----------------------------------------------------------------- */

/* A run alone has no limits measured unless the user asks: they take longer than the run. */
static int make_one_point(struct session *session, struct error *err)
{
	struct plan *plan = &session->plan;
	struct buffer names = {0};
	if (!plan->config.is_set[KEY_MEASURE_LIMITS])
		plan->limits = 0;
	if (plan->config.axis_count == 0)
		return 0;
	plan_swept(&plan->config, &names);
	const int code = error_set(err, -EINVAL,
		"'%s' sweeps %s: measure it with 'mlbench sweep', or give each one value with --set",
		plan->config.path ? plan->config.path : plan->name, names.data ? names.data : "");
	buffer_release(&names);
	return code;
}

static int list_items(struct session *session, struct error *err)
{
	const struct config *config = &session->plan.config;
	const size_t repeats = (size_t)config_integer(config, KEY_MEASURE_REPEATS);
	const size_t all = session->plan.grid.points * repeats;
	session->items = schedule_make(
		session->plan.grid.points, repeats, (uint64_t)config_integer(config, KEY_RUN_SEED));
	if (!session->items)
		return error_set(
			err, -ENOMEM, "out of memory for the order of %zu repetitions", all);
	/* Of a sequential sweep: of the first round; the others have their places behind it. */
	for (size_t i = 0; i < all; i++) {
		if (record_has(&session->record, session->items[i].point, session->items[i].repeat))
			continue;
		if (!session->sequential)
			session->items[session->item_count++] = session->items[i];
		else
			session->item_count += i < session->plan.grid.points;
	}
	return 0;
}

/* How long it may take where the planned repetitions are too few for a verdict. */
static void describe_more(const struct session *session, struct buffer *out)
{
	char time[UNITS_BYTES];
	const size_t most = SESSION_REPEATS_TIMES *
			    (size_t)config_integer(&session->plan.config, KEY_MEASURE_REPEATS);
	if (!session->sequel || session->plan.as_needed)
		return;
	buffer_format(out, "  verdict  up to %zu repetitions if it needs more", most);
	if (plan_repetition_seconds(&session->plan) > 0)
		buffer_format(out, ", about %s in total",
			clock_format_span(plan_seconds(&session->plan, most), time, sizeof time));
	buffer_text(out, "\n");
}

static void tell_plan(const struct session *session)
{
	struct buffer text = {0};
	const size_t most = session->plan.grid.points *
			    (size_t)config_integer(&session->plan.config, KEY_MEASURE_REPEATS);
	plan_describe(&session->plan,
		session->sequential ? most - session->record.entry_count : session->item_count,
		&text);
	party_describe(session->party, &text);
	describe_more(session, &text);
	buffer_format(&text, "  results  %s\n", session->record.folder);
	const size_t failed = record_failed_count(&session->record);
	if (failed > 0)
		buffer_format(&text, "  again    %zu repetition%s that failed\n", failed,
			failed == 1 ? "" : "s");
	buffer_text(&text, "\n");
	const struct style style = style_for(STDERR_FILENO, false);
	struct buffer lines = {.failed = text.failed};
	layout_lines(&style, text.data ? text.data : "", &lines);
	if (!lines.failed)
		log_lines(lines.data);
	buffer_release(&text);
	buffer_release(&lines);
}

static int session_prepare(struct session *session, bool one_point, struct error *err)
{
	const struct invocation *invocation = session->invocation;
	struct plan *plan = &session->plan;
	plan->as_needed = true; /* where the times are not set */
	int code = resume_plan(plan, &session->record, invocation, err);
	/* Its file is named after the process, which only now is the one that works (storage_watch.h). */
	if (!code)
		code = live_show_open(&session->live, invocation, err);
	if (!code && one_point)
		code = make_one_point(session, err);
	if (!code)
		code = plan_data(plan, invocation, true, err);
	if (!code)
		code = party_begin(session->party, plan, err);
	if (!code && options_given(&invocation->options, OPTION_FLAME))
		code = flame_open(&session->flame, &(struct flame_options){0}, err);
	if (!code)
		code = resume_record(&session->record, plan, invocation, err);
	if (!code)
		code = party_begin_records(session->party, &session->record, err);
	session->sequential = !code && record_is_sequential(&plan->config);
	return code ? code : list_items(session, err);
}

int session_run(const struct invocation *invocation, bool one_point, session_sequel *sequel,
	void *context, struct error *err)
{
	struct session *session = calloc(1, sizeof *session);
	if (!session)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	struct party own;
	int status = EXIT_STATUS_DONE;
	session->invocation = invocation;
	session->sequel = sequel;
	session->context = context;
	session->party = invocation->joined ? invocation->joined : &own;
	if (!invocation->joined && !party_join(&own, invocation, &status, err)) {
		free(session);
		return status;
	}
	status = command_status(session_prepare(session, one_point, err));
	if (!status) {
		err->text[0] =
			'\0'; /* what was met and overcome on the way is no error of the run */
		tell_plan(session);
		live_show_plan(session->live, session->plan.name, session->record.folder);
		live_show_begin_view(session->live);
		session_measure(session);
		status = session_finish(session, err);
	}
	if (!invocation->joined)
		party_close(&own, status);
	live_show_close(session->live);
	free(session->items);
	free(session->page);
	flame_profile_release(&session->flame_profile);
	flame_close(session->flame);
	limits_close(&session->limits);
	record_release(&session->record);
	plan_close(&session->plan);
	free(session);
	return status;
}
