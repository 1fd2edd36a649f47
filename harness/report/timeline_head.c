/* What a trace.json says of itself: where its times come from, what is in it and what is not, and what each thread's state
 * clock counted meanwhile. */
#include "harness/report/timeline_stream.h"

#include "harness/base/clock.h"
#include "harness/record/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static json_t *microseconds(uint64_t ns)
{
	return json_real((double)ns / (double)NS_PER_US);
}

int timeline_pid(const struct timeline_log *log)
{
	const bool on_device = log->track == TIMELINE_DEVICE || stage_is(log->stage, STAGE_SYNC);
	return on_device ? TIMELINE_DEVICES : TIMELINE_HOST;
}

void timeline_track_name(const struct timeline_log *log, char out[2 * NAME_BYTES])
{
	if (log->lone)
		(void)snprintf(out, 2 * NAME_BYTES, "%s", log->stage);
	else
		(void)snprintf(out, 2 * NAME_BYTES, "%s %u", log->stage, log->thread);
}

static json_t *windows_of(const struct timeline_stream *stream)
{
	const struct timeline *t = stream->story->timeline;
	json_t *array = json_array();
	for (size_t i = 0; i < t->window_count; i++) {
		const struct timeline_window *w = &t->windows[i];
		(void)json_array_append_new(array,
			json_pack("{s:o, s:o, s:I, s:I}", "begin_us",
				microseconds(timeline_since(stream, w->begin_ns)), "end_us",
				microseconds(timeline_since(stream, w->end_ns)), "first_step",
				(json_int_t)w->first_step, "steps", (json_int_t)w->steps));
	}
	return array;
}

static json_t *thread_of(const struct timeline_stream *stream, const struct timeline_log *log)
{
	uint64_t ns[THREAD_STATES];
	char name[2 * NAME_BYTES];
	json_t *accounted = json_object();
	timeline_index_account(&stream->index, log, ns);
	for (int state = 0; state < THREAD_STATES; state++)
		(void)json_object_set_new(
			accounted, thread_state_names[state], microseconds(ns[state]));
	timeline_track_name(log, name);
	return json_pack("{s:i, s:i, s:s, s:s, s:i, s:o}", "pid", timeline_pid(log), "tid",
		(int)timeline_tid(log), "name", name, "stage", log->stage, "index",
		(int)log->thread, "accounted_us", accounted);
}

static json_t *threads_of(const struct timeline_stream *stream)
{
	const struct timeline *t = stream->story->timeline;
	json_t *array = json_array();
	for (uint32_t i = 0; i < t->log_count; i++)
		if (t->logs[i].track == TIMELINE_THREAD)
			(void)json_array_append_new(array, thread_of(stream, &t->logs[i]));
	return array;
}

static json_t *devices_of(const struct measurement *m)
{
	json_t *array = json_array();
	for (size_t i = 0; i < m->device_count; i++) {
		const struct device_measurement *d = &m->devices[i];
		(void)json_array_append_new(
			array, json_pack("{s:i, s:o, s:b, s:o}", "index", (int)d->index, "name",
				       fields_text(d->name), "emulated", (int)d->emulated,
				       "clock_map_error_us",
				       fields_number(d->clock_map_error_ns / (double)NS_PER_US)));
	}
	return array;
}

static json_t *dropped_of(const struct timeline *t)
{
	return json_pack("{s:I, s:I}", "steps", (json_int_t)t->dropped_steps, "entries",
		(json_int_t)atomic_load(&t->lost));
}

static json_t *other_data(const struct timeline_stream *stream)
{
	const struct timeline_story *story = stream->story;
	const struct timeline *t = story->timeline;
	char started[CLOCK_UTC_BYTES];
	clock_format_utc(story->m->started, started);
	return json_pack(
		"{s:s, s:s, s:o, s:I, s:I, s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:b, s:s, s:I, s:o, s:o, s:o, s:o, s:s}",
		"program", "mlbench", "version", MLBENCH_VERSION, "benchmark",
		fields_text(story->name), "point", (json_int_t)story->m->point, "repeat",
		(json_int_t)story->m->repeat, "config_hash", story->config_hash, "schedule",
		fields_text(story->schedule), "started", started, "origin_monotonic_ns",
		(json_int_t)t->start_ns, "batch_size", (json_int_t)t->batch_size,
		"batches_per_epoch", (json_int_t)t->batches_per_epoch, "device_count",
		(json_int_t)t->devices, "emulated", (int)t->emulated, "engine", t->engine,
		"steps_of_run", (json_int_t)t->steps, "windows", windows_of(stream), "dropped",
		dropped_of(t), "threads", threads_of(stream), "devices", devices_of(story->m),
		"times",
		"microseconds since the repetition began, to the nanosecond; accounted_us: by the threads' state clocks, within the windows");
}

json_t *timeline_head(const struct timeline_stream *stream)
{
	json_t *other = other_data(stream);
	return other ? json_pack("{s:s, s:s, s:o}", "schema", TIMELINE_SCHEMA, "displayTimeUnit",
			       "ms", "otherData", other)
		     : NULL;
}
