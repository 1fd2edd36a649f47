/* The document mlbench.status/1. */
#include "harness/live/status.h"

#include "harness/base/clock.h"
#include "harness/record/fields.h"

#include <math.h>
#include <stdio.h>

static const char *state_name(unsigned state)
{
	static const char *const names[THREAD_STATES] = {"starved", "working", "blocked"};
	return state < THREAD_STATES ? names[state] : "unknown";
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? fields_text(text) : json_null();
}

static json_t *age(const struct status *s, uint64_t then_ns)
{
	return then_ns > 0 && s->now_ns >= then_ns
		       ? json_real((double)(s->now_ns - then_ns) / (double)NS_PER_S)
		       : json_null();
}

static json_t *states_json(const double seconds[THREAD_STATES])
{
	json_t *out = json_object();
	for (unsigned k = 0; k < THREAD_STATES; k++)
		(void)json_object_set_new(out, state_name(k), fields_number(seconds[k]));
	return out;
}

static json_t *stages_json(const struct live_view *v)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < v->stage_count; i++) {
		const struct live_stage *stage = &v->stages[i];
		(void)json_array_append_new(list,
			json_pack("{s:o, s:i, s:b, s:b, s:I, s:o, s:o}", "name",
				fields_text(stage->name), "workers", (int)stage->workers,
				"per_batch", stage->per_batch, "emulated", stage->emulated, "items",
				(json_int_t)stage->items, "seconds", states_json(stage->seconds),
				"cpu_seconds", fields_number(stage->cpu_seconds)));
	}
	return list;
}

static json_t *queues_json(const struct live_view *v)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < v->queue_count; i++)
		(void)json_array_append_new(
			list, json_pack("{s:o, s:i, s:i}", "name", fields_text(v->queues[i].name),
				      "depth", (int)v->queues[i].depth, "capacity",
				      (int)v->queues[i].capacity));
	return list;
}

static json_t *kernel_json(const struct thread_look *look)
{
	char words[LOOK_WORDS_BYTES];
	char state[2] = {look->state, '\0'};
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "state", text_or_null(state),
		"name", text_or_null(look->name), "call", text_or_null(look->call), "file",
		text_or_null(look->file), "place", text_or_null(look->place), "not_told",
		text_or_null(look->unknown), "words", fields_text(look_words(look, words)));
}

static json_t *thread_json(const struct status *s, size_t i)
{
	const struct live_thread *t = s->by_stage ? &s->view.threads[i] : NULL;
	const int32_t tid = t ? t->tid : s->threads[i].tid;
	json_t *out = json_object();
	(void)json_object_set_new(
		out, "stage", t ? fields_text(s->view.stages[t->stage].name) : json_null());
	(void)json_object_set_new(out, "index", t ? json_integer(t->index) : json_null());
	(void)json_object_set_new(out, "thread", tid > 0 ? json_integer(tid) : json_null());
	(void)json_object_set_new(
		out, "state", t ? json_string(state_name(t->state)) : json_null());
	(void)json_object_set_new(out, "state_seconds", t ? age(s, t->since_ns) : json_null());
	(void)json_object_set_new(
		out, "items", t ? json_integer((json_int_t)t->items) : json_null());
	(void)json_object_set_new(out, "seconds_since_item", t ? age(s, t->moved_ns) : json_null());
	(void)json_object_set_new(
		out, "kernel", tid > 0 ? kernel_json(&s->threads[i]) : json_null());
	return out;
}

static json_t *threads_json(const struct status *s)
{
	json_t *list = json_array();
	for (size_t i = 0; i < s->thread_count; i++)
		(void)json_array_append_new(list, thread_json(s, i));
	return list;
}

static json_t *health_json(const struct status *s)
{
	json_t *chain = json_array();
	for (size_t i = 0; i < s->stall.chain_count; i++)
		(void)json_array_append_new(chain, fields_text(s->stall.chain[i]));
	return json_pack("{s:s, s:b, s:o, s:o, s:o}", "kind",
		s->seen ? stall_kind_name(s->stall.kind) : "starting", "stuck", status_is_stuck(s),
		"still_seconds", fields_number(s->stall.still_s), "words",
		fields_text(s->seen ? s->stall.words : s->why), "chain", chain);
}

static json_t *verdict_json(const struct live_verdict *v)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "words", text_or_null(v->words), "stage",
		v->told ? fields_text(v->verdict.stage) : json_null(), "resource",
		v->told ? fields_text(v->verdict.resource) : json_null(), "confidence",
		v->told ? json_real(v->verdict.confidence) : json_null(), "over_seconds",
		fields_number(v->over_s));
}

static json_t *device_json(const struct live_view *v)
{
	return json_pack("{s:o, s:o, s:o}", "clock_mhz", fields_number(v->device_clock_mhz),
		"power_w", fields_number(v->device_power_w), "temperature_c",
		fields_number(v->device_temperature_c));
}

static void add_view(json_t *out, const struct status *s)
{
	const struct live_view *v = &s->view;
	char started[CLOCK_UTC_BYTES];
#define SET(name, value) (void)json_object_set_new(out, name, value)
	SET("phase", json_string(live_phase_name(v->phase)));
	SET("phase_seconds", age(s, v->phase_ns));
	SET("picture_seconds", age(s, v->updated_ns));
	SET("label", text_or_null(v->label));
	SET("limit", json_boolean(v->limit));
	SET("folder", text_or_null(v->folder));
	clock_format_utc(v->started, started);
	SET("started", text_or_null(started));
	SET("done", json_integer(v->done));
	SET("total", json_integer(v->total));
	SET("elapsed_seconds", fields_number(v->elapsed_s));
	SET("planned_seconds", v->planned_s > 0 ? json_real(v->planned_s) : json_null());
	SET("rest_seconds", fields_number(v->rest_s));
	SET("profiler", json_boolean(v->timed));
	SET("samples", json_integer((json_int_t)v->samples));
	SET("batches", json_integer((json_int_t)v->batches));
	SET("epochs", json_integer((json_int_t)v->epochs));
	SET("bad_samples", json_integer((json_int_t)v->bad_samples));
	SET("throughput_window", fields_number(v->throughput_window));
	SET("throughput", fields_number(v->throughput));
	SET("window_seconds", fields_number(v->window_s));
	SET("step_utilisation_window", fields_number(v->step_utilisation_window));
	SET("step_emulated", json_boolean(v->step_emulated));
	SET("bytes_read_per_s", fields_number(v->bytes_read_per_s));
	SET("files_in_flight", json_integer(v->files_in_flight));
	SET("resident_bytes", json_integer((json_int_t)v->resident_bytes));
	SET("pool_bytes", json_integer((json_int_t)v->pool_bytes));
	SET("device", device_json(v));
	SET("stages", stages_json(v));
	SET("queues", queues_json(v));
#undef SET
}

static json_t *run_json(const struct status *s)
{
	json_t *out = json_object();
	(void)json_object_set_new(out, "pid", json_integer(s->pid));
	(void)json_object_set_new(out, "command", text_or_null(s->view.command));
	(void)json_object_set_new(out, "name", text_or_null(s->view.name));
	(void)json_object_set_new(out, "node", text_or_null(s->view.node));
	(void)json_object_set_new(out, "version", text_or_null(s->view.version));
	(void)json_object_set_new(out, "health", health_json(s));
	json_t *picture = s->whole ? json_object() : json_null();
	if (s->whole)
		add_view(picture, s);
	(void)json_object_set_new(out, "picture", picture);
	(void)json_object_set_new(out, "verdict", verdict_json(&s->verdict));
	(void)json_object_set_new(out, "threads", threads_json(s));
	return out;
}

json_t *status_json(const struct status *list, size_t count)
{
	json_t *runs = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(runs, run_json(&list[i]));
	return json_pack("{s:s, s:o}", "schema", "mlbench.status/1", "runs", runs);
}
