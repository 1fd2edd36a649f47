/* summary.json, schema mlbench.summary/1 (docs/summary.schema.json).  What could not be measured is
 * null, and the object's "missing" says why. */
#include "harness/base/clock.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/record/record.h"
#include "harness/report/device_report.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/part.h"
#include "harness/report/read_points.h"
#include "harness/report/report.h"
#include "harness/report/scaling.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SUMMARY_SCHEMA "mlbench.summary/1"

/* The note that speaks of a subject, or the usual reason. */
static const char *why_missing(
	const struct point_summary *p, const char *subject, const char *usual)
{
	if (p->status == POINT_FAILED && p->error[0])
		return p->error;
	for (size_t i = 0; i < p->note_count; i++)
		if (strstr(p->notes[i], subject))
			return p->notes[i];
	return usual;
}

static json_t *throughput_json(const struct point_summary *p, const char *usual)
{
	struct part part = part_open();
	json_t *repeats = json_array();
	part_put(&part, "unit", json_string("samples/s"));
	part_number(&part, "median", p->median, why_missing(p, "no repetition", usual));
	part_put(&part, "ci95", fields_range(p->ci95.low, p->ci95.high));
	for (size_t i = 0; i < p->repeat_count; i++)
		part.bad |= json_array_append_new(repeats, fields_number(p->repeats[i]));
	part_put(&part, "repeats", repeats);
	return part_close(&part);
}

static json_t *service_json(const struct histogram *h)
{
	static const struct {
		const char *name;
		double quantile;
	} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}};
	const double none = h->count ? 0 : NAN;
	const char *why = "no item was timed";
	struct part part = part_open();
	part_number(&part, "mean", none + histogram_mean(h) / (double)NS_PER_US, why);
	for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++)
		part_number(&part, quantiles[i].name,
			none + histogram_quantile(h, quantiles[i].quantile) / (double)NS_PER_US,
			why);
	part_number(&part, "max", none + (double)h->max_ns / (double)NS_PER_US, why);
	return part_close(&part);
}

static json_t *stage_json(const struct point_summary *p, const struct stage_summary *stage)
{
	const char *off = why_missing(p, "profiler", "the profiler is off (measure.profiler)");
	const char *idle = stage->device ? "its working time is a device's"
					 : "it hardly worked, or the measurements are older";
	const char *schedstat = why_missing(p, "no schedstat", idle);
	const char *delays = why_missing(p, "no delay accounting", idle);
	struct part part = part_open();
	part_put(&part, "name", fields_text(stage->name));
	part_put(&part, "workers", json_integer(stage->workers));
	part_put(&part, "per", json_string(report_stage_item(stage)));
	part_number(&part, "busy", stage->busy, off);
	part_number(&part, "starved", stage->starved, off);
	part_number(&part, "blocked", stage->blocked, off);
	part_number(&part, "cpu", stage->cpu, schedstat);
	part_number(&part, "run_queue", stage->run_queue, schedstat);
	part_number(&part, "io_wait", stage->io_wait, delays);
	part_number(&part, "lock_wait", stage->lock_wait, idle);
	part_number(&part, "lock_busy", stage->lock_busy, idle);
	part_number(&part, "capacity", stage->capacity, "the stage never showed its limit");
	part_put(&part, "capacity_is_lower_bound", json_boolean(stage->capacity_is_lower_bound));
	part_put(&part, "service_us", service_json(&stage->service));
	return part_close(&part);
}

static json_t *summary_stages_json(const struct point_summary *p)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; i < p->stage_count; i++)
		bad |= json_array_append_new(array, stage_json(p, &p->stages[i]));
	return part_list(array, bad);
}

static json_t *queue_json(const struct point_summary *p, const struct queue_measurement *queue)
{
	const char *off = why_missing(p, "profiler", "the profiler is off (measure.profiler)");
	struct part part = part_open();
	part_put(&part, "name", fields_text(queue->name));
	part_put(&part, "capacity", json_integer(queue->capacity));
	part_number(&part, "mean_depth", queue->mean_depth, off);
	part_number(&part, "empty_share", queue->empty_share, off);
	part_number(&part, "full_share", queue->full_share, off);
	return part_close(&part);
}

static json_t *summary_queues_json(const struct point_summary *p)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; i < p->queue_count; i++)
		bad |= json_array_append_new(array, queue_json(p, &p->queues[i]));
	return part_list(array, bad);
}

/* Why a member of a point's diagnosis is null. */
static const char *why_null(const char *name, const struct diagnosis *d)
{
	const char *model = d->why_not[0] ? d->why_not : "not known";
	if (strcmp(name, "not_modelled") == 0)
		return "it is modelled";
	if (strcmp(name, "knee") == 0)
		return d->modelled ? "not looked for, or at more workers than were tried" : model;
	if (strcmp(name, "stage") == 0)
		return "no stage's own allocations make up the growth";
	if (strcmp(name, "bytes_per_s") == 0 || strcmp(name, "seconds_to_full") == 0)
		return d->memory.words;
	return strcmp(name, "interval") == 0 ? "too little was measured" : model;
}

static int explain_nulls(json_t *value, const struct diagnosis *d)
{
	int bad = 0;
	size_t i;
	json_t *member;
	const char *name;
	json_t *missing = json_object();
	json_array_foreach(value, i, member) bad |= explain_nulls(member, d);
	json_object_foreach(value, name, member)
	{
		bad |= explain_nulls(member, d);
		if (json_is_null(member))
			bad |= json_object_set_new(missing, name, fields_text(why_null(name, d)));
	}
	if (json_object_size(missing) > 0)
		return bad | json_object_set_new(value, "missing", missing);
	json_decref(missing);
	return bad;
}

static void put_diagnosis(struct part *part, const struct report *report, size_t point)
{
	const struct diagnosis *d = report->diagnoses ? report->diagnoses[point] : NULL;
	if (!d) {
		part_number(part, "diagnosis", NAN, "nothing was measured, or all of it failed");
		return;
	}
	json_t *parts = diagnosis_parts_json(d);
	part->bad |= explain_nulls(parts, d);
	part_put(part, "diagnosis", parts);
}

static json_t *foreign_load_json(const struct point_summary *p)
{
	const char *why = "/proc/stat cannot be read, or nothing was measured";
	struct part part = part_open();
	part_put(&part, "contaminated", json_boolean(p->contaminated[0]));
	if (p->contaminated[0])
		part_put(&part, "reason", fields_text(p->contaminated));
	else
		part_number(&part, "reason", NAN,
			isnan(p->cores_busy_outside) && isnan(p->steal_share) ? why
									      : "not contaminated");
	part_number(&part, "cores_busy_outside", p->cores_busy_outside, why);
	part_number(&part, "steal_share", p->steal_share, why);
	return part_close(&part);
}

/* Of one sort of limit, bytes or requests a second. */
static json_t *read_limit_json(const char *unit, const char *group, double limit, double used)
{
	struct part part = part_open();
	part_put(&part, "unit", json_string(unit));
	part_put(&part, "group", fields_text(group));
	part_put(&part, "limit", fields_number(limit));
	part_number(&part, "used", used, "the group does not count what it reads");
	return part_close(&part);
}

static json_t *read_limits_json(const struct store_measurement *s)
{
	json_t *array = json_array();
	int bad = 0;
	if (s->bytes_limit > 0)
		bad |= json_array_append_new(array,
			read_limit_json("B/s", s->bytes_group, s->bytes_limit, s->bytes_used));
	if (s->requests_limit > 0)
		bad |= json_array_append_new(array, read_limit_json("requests/s", s->requests_group,
							    s->requests_limit, s->requests_used));
	return part_list(array, bad);
}

static json_t *store_json(const struct store_measurement *s)
{
	const char *why = s->why[0] ? s->why : "an older result";
	struct part part = part_open();
	if (s->device[0])
		part_put(&part, "device", fields_text(s->device));
	else
		part_number(&part, "device", NAN, why);
	part_number(&part, "reads_per_s", s->device[0] ? s->reads_per_s : NAN, why);
	part_number(&part, "bytes_per_s", s->device[0] ? s->bytes_per_s : NAN, why);
	part_number(&part, "read_ns", s->device[0] ? s->read_ns : NAN,
		s->reads_per_s <= 0 ? "nothing was read from it" : why);
	part_number(&part, "busy_share", s->device[0] ? s->busy_share : NAN, why);
	part_put(&part, "limits", read_limits_json(s));
	return part_close(&part);
}

static json_t *network_calls_json(const struct network_measurement *n)
{
	static const char why[] = "the client does not tell";
	json_t *calls = json_array();
	int bad = 0;
	for (size_t i = 0; i < n->call_count; i++) {
		const struct network_call *call = &n->calls[i];
		struct part part = part_open();
		part_put(&part, "name", fields_text(call->name));
		part_number(&part, "calls_per_s", call->calls / n->seconds, why);
		part_number(&part, "retransmits", call->retransmits, why);
		part_number(&part, "queue_ns", call->queue_ns, why);
		part_number(&part, "round_trip_ns", call->round_trip_ns, why);
		part_number(&part, "execute_ns", call->execute_ns, why);
		part_number(&part, "sent_bytes_per_s", call->bytes_sent / n->seconds, why);
		part_number(&part, "received_bytes_per_s", call->bytes_received / n->seconds, why);
		bad |= json_array_append_new(calls, part_close(&part));
	}
	return part_list(calls, bad);
}

/* Of data on a network file system whose client counts. */
static void put_network(struct part *whole, const struct network_measurement *n)
{
	const char *why = n->why[0] ? n->why : "not known";
	struct part part = part_open();
	part_put(&part, "protocol", fields_text(n->protocol));
	part_put(&part, "client", fields_text(n->client));
	part_put(&part, "server", fields_text(n->server));
	part_put(&part, "connections", json_integer((json_int_t)n->connections));
	part_number(&part, "request_bytes", n->request_bytes, why);
	part_number(&part, "seconds", n->seconds > 0 ? n->seconds : NAN, why);
	part_number(&part, "idle_round_trip_ns", n->idle_round_trip_ns, why);
	part_number(&part, "wire_round_trip_ns", n->wire_round_trip_ns, why);
	part_number(&part, "link_bytes_per_s", n->link_bytes_per_s, why);
	part_number(&part, "receiving_share", n->receiving_share,
		n->why[0] ? n->why : "only the nfs engine sees how the bytes of a reply come");
	part_number(&part, "packet_bytes", n->packet_bytes, why);
	part_put(&part, "calls", network_calls_json(n));
	part_put(whole, "network", part_close(&part));
}

/* Seconds are those of one, as a mean. */
static json_t *checkpoint_json(const struct point_summary *p)
{
	const struct checkpoint_measurement *const c = &p->checkpoint;
	const double n = (double)c->count;
	struct part part = part_open();
	part_put(&part, "count", json_integer((json_int_t)c->count));
	part_put(&part, "every", json_integer(c->every));
	part_put(&part, "mode", json_string(c->async ? "async" : "sync"));
	part_put(&part, "direct", json_boolean(c->direct));
	part_put(&part, "bytes", json_integer((json_int_t)c->bytes));
	part_put(&part, "stall_share", json_real(p->checkpoint_share));
	part_put(&part, "stall_s", json_real(c->stall_seconds / n));
	part_put(&part, "stall_max_s", json_real(c->stall_max_ns / 1e9));
	part_put(&part, "wait_s", json_real(c->wait_seconds / n));
	part_put(&part, "copy_s", json_real(c->copy_seconds / n));
	part_put(&part, "write_s", json_real(c->write_seconds / n));
	part_put(&part, "fsync_s", json_real(c->sync_seconds / n));
	part_put(&part, "rename_s", json_real(c->rename_seconds / n));
	part_put(&part, "verify_s", json_real(c->verify_seconds / n));
	part_put(&part, "write_bytes_per_s",
		fields_number((double)c->bytes * n / (c->write_seconds + c->sync_seconds)));
	return part_close(&part);
}

/* Seconds likewise. */
static json_t *evaluation_json(const struct point_summary *p)
{
	const struct evaluation_measurement *const e = &p->evaluation;
	const double n = (double)e->count;
	struct part part = part_open();
	part_put(&part, "count", json_integer((json_int_t)e->count));
	part_put(&part, "every", json_integer(e->every));
	part_put(&part, "samples_each", json_integer((json_int_t)e->samples_each));
	part_put(&part, "batch_size", json_integer(e->batch_size));
	part_put(&part, "workers", json_integer(e->workers));
	part_put(&part, "computed", json_boolean(e->computed));
	part_put(&part, "data", fields_text(e->path));
	part_put(&part, "stall_share", json_real(p->evaluation_share));
	part_put(&part, "stall_s", json_real(e->stall_seconds / n));
	part_put(&part, "stall_max_s", json_real(e->stall_max_ns / 1e9));
	part_put(&part, "samples_per_s", json_real((double)e->samples / e->stall_seconds));
	part_put(&part, "starved_share", json_real(e->starved_seconds / e->stall_seconds));
	part_put(&part, "working_share", json_real(e->working_seconds / e->stall_seconds));
	part_put(&part, "bad_samples", json_integer((json_int_t)e->bad_samples));
	part_put(&part, "training_samples_per_s",
		fields_number(p->median / (1 - fmin(p->evaluation_share, 1))));
	part_put(&part, "checksum", e->checksum[0] ? json_string(e->checksum) : json_null());
	return part_close(&part);
}

static json_t *notes_json(const struct point_summary *p)
{
	json_t *notes = json_array();
	int bad = 0;
	for (size_t i = 0; i < p->note_count; i++)
		bad |= json_array_append_new(notes, fields_text(p->notes[i]));
	return part_list(notes, bad);
}

/* Only where a device stepped. */
static void put_devices(struct part *part, const struct point_summary *p)
{
	static const char *const same[] = {[SAME_YES] = "same", [SAME_NO] = "different"};
	if (p->device_count == 0)
		return;
	part_put(part, "devices", device_summaries_to_json(p));
	if (same[p->same_results])
		part_put(part, "first_losses", json_string(same[p->same_results]));
	else
		part_number(part, "first_losses", NAN,
			"fewer than two repetitions have a loss, or batches have no order");
}

static void put_read_points(
	struct part *part, const struct report *report, size_t point, const char *usual)
{
	const struct point_summary *p = report->points[point];
	json_t *points = read_points_json(report, point);
	json_t *alone = reads_alone_json(report, point, false);
	json_t *stages = reads_alone_json(report, point, true);
	if (alone)
		part_put(part, "reads_alone", alone);
	if (stages)
		part_put(part, "stages_alone", stages);
	if (!json_is_null(points)) {
		part_put(part, "read_points", points);
		return;
	}
	json_decref(points);
	part_number(part, "read_points", NAN,
		p ? why_missing(p, "reads at ",
			    "no other depth is tried: nothing is read while measuring, or measure.depths = off, measure.warmup = 0s, a run by epochs, or an older result")
		  : usual);
}

static json_t *storage_json(const struct point_summary *p)
{
	struct part part = part_open();
	part_put(&part, "files", json_integer((json_int_t)p->storage.files));
	part_put(&part, "bytes", json_integer((json_int_t)p->storage.bytes));
	part_number(&part, "requests_per_sample", p->storage.requests_per_sample, "not counted");
	part_number(&part, "cpu_us_per_sample", p->storage.cpu_us_per_sample,
		"no CPU time was counted");
	return part_close(&part);
}

json_t *report_point_json(const struct report *report, size_t point)
{
	static const struct point_summary unmeasured = {
		.status = POINT_INTERRUPTED,
		.error = "not measured: the run was interrupted before",
		.median = NAN,
		.ci95 = {NAN, NAN},
		.step_utilisation = NAN,
		.accelerator_utilisation = NAN,
		.step_wait_share = NAN,
		.bytes_read_per_s = NAN,
		.page_cache_share = NAN,
		.accounted = NAN,
		.cores_busy_outside = NAN,
		.steal_share = NAN,
		.bad_share = NAN,
		.store.why = "not measured: the run was interrupted before",
	};
	const struct point_summary *p = report->points[point] ? report->points[point] : &unmeasured;
	const char *usual = p == &unmeasured ? unmeasured.error : "see the notes";
	struct part part = part_open();
	part_put(&part, "id", json_integer((json_int_t)point));
	part_put(&part, "status", json_string(point_status_name(p->status)));
	part_put(&part, "error", p->error[0] ? fields_text(p->error) : json_null());
	part_put(&part, "settings",
		config_point_to_json(&report->record->config, &report->record->grid, point));
	if (report->decided)
		part_put(&part, "decision",
			json_string(stop_state_name(report->decided[point].state)));
	part_put(&part, "throughput",
		throughput_json(p, p == &unmeasured ? usual : "no good repetition"));
	part_number(&part, "step_utilisation", p->step_utilisation,
		why_missing(p, "utilisation", usual));
	if (isfinite(p->accelerator_utilisation))
		part_put(&part, "accelerator_utilisation", json_real(p->accelerator_utilisation));
	part_number(
		&part, "step_wait_share", p->step_wait_share, why_missing(p, "profiler", usual));
	if (p->engine[0])
		part_put(&part, "engine", fields_text(p->engine));
	part_number(&part, "bytes_read_per_s", p->bytes_read_per_s, why_missing(p, "bytes", usual));
	part_number(&part, "page_cache_share", p->page_cache_share,
		why_missing(p, "page cache", usual));
	if (p->cold_ended[0])
		part_put(&part, "cold_ended", fields_text(p->cold_ended));
	part_put(&part, "rss_peak_bytes", json_integer((json_int_t)p->rss_peak_bytes));
	part_put(&part, "pool_bytes", json_integer((json_int_t)p->pool_bytes));
	if (p->storage.bytes > 0)
		part_put(&part, "storage", storage_json(p));
	part_put(&part, "store", store_json(&p->store));
	if (p->network.protocol[0])
		put_network(&part, &p->network);
	if (p->checkpoint.count > 0)
		part_put(&part, "checkpoint", checkpoint_json(p));
	if (p->evaluation.count > 0)
		part_put(&part, "evaluation", evaluation_json(p));
	if (p->restarts > 0)
		part_put(&part, "restarts",
			json_pack("{s:I, s:f, s:f}", "count", (json_int_t)p->restarts, "share",
				p->restart_share, "each_s",
				p->restart_seconds / (double)p->restarts));
	part_put(&part, "foreign_load", foreign_load_json(p));
	part_put(&part, "bad_samples", json_integer((json_int_t)p->bad_samples));
	part_number(&part, "bad_share", p->bad_share,
		p == &unmeasured ? usual : "no sample was counted, or an older result");
	part_number(&part, "accounted", p->accounted, why_missing(p, "profiler", usual));
	part_put(&part, "stages", summary_stages_json(p));
	part_put(&part, "queues", summary_queues_json(p));
	put_read_points(&part, report, point, usual);
	put_devices(&part, p);
	const struct report_ranks *const of_ranks = report_ranks_registered();
	json_t *const ranks = p == &unmeasured || !of_ranks ? NULL : of_ranks->json(report, point);
	if (ranks)
		part_put(&part, "ranks", ranks);
	part_put(&part, "verdict", verdict_to_json(&p->verdict));
	put_diagnosis(&part, report, point);
	part_put(&part, "notes", notes_json(p));
	return part_close(&part);
}

static json_t *summary_points_json(const struct report *report)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; i < report->record->grid.points; i++)
		bad |= json_array_append_new(array, report_point_json(report, i));
	return part_list(array, bad);
}

json_t *report_limits_json(const struct record *record)
{
	json_t *array = json_array();
	int bad = 0;
	for (size_t i = 0; i < record->limit_count; i++) {
		const struct stage_limit *limit = &record->limits[i];
		struct part part = part_open();
		part_put(&part, "stage", fields_text(limit->stage));
		part_number(&part, "capacity", limit->capacity, limit->how);
		part_put(&part, "unit", json_string("samples/s"));
		part_put(&part, "how", fields_text(limit->how));
		if (limit->settings[0])
			part_put(&part, "settings", fields_text(limit->settings));
		bad |= json_array_append_new(array, part_close(&part));
	}
	return part_list(array, bad);
}

static json_t *time_json(double seconds)
{
	char text[CLOCK_UTC_BYTES];
	clock_format_utc(seconds, text);
	return json_string(text);
}

/* Null where none were taken (run.verify). */
static json_t *summary_checksums_json(const struct checksum_check *check)
{
	if (check->checked == 0)
		return json_null();
	return json_pack("{s:I, s:I, s:b, s:s}", "checked", (json_int_t)check->checked, "compared",
		(json_int_t)check->together, "agree", !check->differ, "words", check->words);
}

json_t *report_summary_json(const struct report *report)
{
	const struct record *record = report->record;
	struct part part = part_open();
	part_put(&part, "schema", json_string(SUMMARY_SCHEMA));
	part_put(&part, "name", fields_text(record->name));
	part_put(&part, "version", json_string(MLBENCH_VERSION));
	part_put(&part, "started", time_json(record->started));
	part_put(&part, "finished", time_json(record->finished));
	part_put(&part, "status", json_string(report_status(report)));
	part_put(&part, "config", config_to_json(&record->config));
	part_put(&part, "config_hash", json_string(record->config_hash));
	part_put(&part, "environment", record_environment_to_json(&record->environment));
	part_put(&part, "environment_units", record_units_to_json(&record->environment));
	part_put(&part, "step", record_step_to_json(&record->step));
	if (record->of_case.known)
		part_put(&part, "case", record_case_to_json(&record->of_case));
	part_put(&part, "checksums", summary_checksums_json(&report->checksum_check));
	part_put(&part, "best",
		report->best < record->grid.points ? json_integer((json_int_t)report->best)
						   : json_null());
	part_put(&part, "points", summary_points_json(report));
	part_put(&part, "limits", report_limits_json(record));
	part_put(&part, "scaling", scaling_to_json(report));
	return part_close(&part);
}
