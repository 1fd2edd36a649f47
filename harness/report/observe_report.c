/* What was observed: the document, and its text. */
#include "harness/report/observe_report.h"

#include "harness/analyze/swing.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/program.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	OBSERVE_THREADS_MAX = 64,
	OBSERVE_EDGES_MAX = 32,
	PROCESSES_SHOWN = 24,
	THREADS_SHOWN = 12,
	PLACES_SHOWN = 5
};

static const double STEADY_BYTES_PER_S = 65536;
static const double SWING_LEAST_SHARE = 0.2; /* of busy time, that a swing has to have */

/* --- the document ------------------------------------------------------------------------------- */

static json_t *observe_acts(const uint32_t looks[JOB_ACTS], double count)
{
	json_t *out = json_object();
	for (int i = 0; i < JOB_ACTS; i++)
		(void)json_object_set_new(out, job_act_name((enum job_act)i),
			fields_number(count > 0 ? looks[i] / count : NAN));
	return out;
}

static json_t *observe_rate(const double first[JOB_COUNTS], const double last[JOB_COUNTS],
	enum job_count count, double seconds)
{
	return fields_number(seconds > 0 ? job_grown(first, last, count) / seconds : NAN);
}

static json_t *observe_process(const struct observe_input *in, size_t i)
{
	static const struct {
		const char *name;
		enum job_count count;
	} rates[] = {
		{"cpu", JOB_CPU_S},
		{"user_cpu", JOB_USER_S},
		{"block_io_wait", JOB_BLKIO_S},
		{"read_bytes_per_s", JOB_READ},
		{"written_bytes_per_s", JOB_WRITTEN},
		{"read_calls_per_s", JOB_READ_CALLS},
		{"write_calls_per_s", JOB_WRITE_CALLS},
		{"storage_read_bytes_per_s", JOB_DISK_READ},
		{"storage_written_bytes_per_s", JOB_DISK_WRITTEN},
		{"minor_faults_per_s", JOB_MINOR},
		{"major_faults_per_s", JOB_MAJOR},
	};
	const struct job_process *p = &in->record->processes[i];
	const double seconds = job_process_seconds(p);
	json_t *out = json_object();
#define SET(name, value) (void)json_object_set_new(out, name, value)
	SET("pid", json_integer(p->pid));
	SET("parent", json_integer(p->parent));
	SET("name", fields_text(p->name));
	SET("role", json_string(job_role_name(in->verdict->roles[i])));
	SET("trainer", in->verdict->roles[i] == JOB_ROLE_LOADER
			       ? json_integer(in->record->processes[in->verdict->boss[i]].pid)
			       : json_null());
	SET("ended", json_boolean(p->gone));
	SET("stands_for", json_integer(p->stands_for ? p->stands_for : 1));
	SET("seconds", fields_number(seconds));
	SET("threads", json_integer(p->threads_most));
	SET("runnable_threads",
		fields_number(p->look_count ? (double)p->runnable / p->look_count : NAN));
	SET("allowed_cpus", fields_number(job_allowed_cpus(p)));
	for (size_t k = 0; k < COUNT(rates); k++)
		SET(rates[k].name, observe_rate(p->first, p->last, rates[k].count, seconds));
	SET("run_queue_wait",
		fields_number(
			seconds > 0 ? job_process_longest_queue_s(in->record, i) / seconds : NAN));
	SET("resident_bytes", fields_number(p->last[JOB_RESIDENT]));
	SET("peak_resident_bytes", fields_number(p->peak_resident));
	SET("resident_growth_per_s", observe_rate(p->first, p->last, JOB_RESIDENT, seconds));
	SET("looks", json_integer(p->look_count));
	SET("acts", observe_acts(p->looks, p->look_count));
	SET("calls_hidden", json_boolean(p->vague));
	SET("data_file_open",
		fields_number(p->open_looks ? (double)p->file_looks / p->open_looks : NAN));
	SET("pipes", json_integer((json_int_t)p->pipe_count));
	SET("shared_memory", json_boolean(p->shared_memory));
	SET("gpu_open", json_boolean(p->device));
	SET("unknown", p->unknown[0] ? fields_text(p->unknown) : json_null());
#undef SET
	return out;
}

struct observe_rank {
	const struct job_thread *thread;
	double cpu_s;
};

static int observe_by_cpu(const void *a, const void *b)
{
	const double one = ((const struct observe_rank *)a)->cpu_s;
	const double other = ((const struct observe_rank *)b)->cpu_s;
	return (one < other) - (one > other);
}

static json_t *observe_thread(const struct job_record *record, const struct job_thread *t)
{
	const double seconds = t->last_s - t->first_s;
	double looks = 0;
	for (int i = 0; i < JOB_ACTS; i++)
		looks += t->looks[i];
	return json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pid",
		record->processes[t->process].pid, "tid", t->tid, "name", fields_text(t->name),
		"seconds", fields_number(seconds), "cpu",
		observe_rate(t->first, t->last, JOB_CPU_S, seconds), "run_queue_wait",
		fields_number(seconds > 0 ? job_thread_queue_s(t) / seconds : NAN), "yields_per_s",
		observe_rate(t->first, t->last, JOB_YIELDED, seconds), "preemptions_per_s",
		observe_rate(t->first, t->last, JOB_PREEMPTED, seconds), "block_io_wait",
		observe_rate(t->first, t->last, JOB_BLKIO_S, seconds), "uninterruptible",
		fields_number(looks > 0 ? t->held / looks : NAN), "looks",
		json_integer((json_int_t)looks), "acts", observe_acts(t->looks, looks));
}

/* The busiest. */
static json_t *observe_threads(const struct job_record *record)
{
	json_t *list = json_array();
	struct observe_rank *order = calloc(record->thread_count + 1, sizeof *order);
	if (!order) {
		json_decref(list);
		return NULL;
	}
	for (size_t i = 0; i < record->thread_count; i++) {
		const struct job_thread *thread = &record->threads[i];
		order[i] = (struct observe_rank){
			thread, job_grown(thread->first, thread->last, JOB_CPU_S)};
	}
	qsort(order, record->thread_count, sizeof *order, observe_by_cpu);
	for (size_t i = 0; i < record->thread_count && i < OBSERVE_THREADS_MAX; i++)
		(void)json_array_append_new(list, observe_thread(record, order[i].thread));
	free(order);
	return list;
}

static json_t *observe_files(const struct job_record *record)
{
	json_t *list = json_array();
	for (size_t i = 0; i < record->group_count; i++) {
		const struct job_group *g = &record->groups[i];
		(void)json_array_append_new(
			list, json_pack("{s:o, s:s, s:i, s:b, s:i, s:i, s:o, s:o, s:o, s:o}",
				      "file_system", fields_text(g->system), "kind", g->kind,
				      "depth", (int)g->depth, "written", g->written, "files",
				      (int)g->files, "looks", (int)g->looks, "mean_bytes",
				      fields_number(g->files ? g->bytes / g->files : NAN),
				      "harmonic_mean_bytes",
				      fields_number(g->inverse > 0 ? g->files / g->inverse : NAN),
				      "least_bytes", fields_number(g->least), "most_bytes",
				      fields_number(g->most)));
	}
	return list;
}

static json_t *observe_edges(const struct job_record *record)
{
	struct job_edge edges[OBSERVE_EDGES_MAX];
	const size_t count = job_edges(record, edges, OBSERVE_EDGES_MAX);
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(list, json_pack("{s:i, s:i, s:o}", "waiting",
							  record->processes[edges[i].from].pid,
							  "for", record->processes[edges[i].to].pid,
							  "share", fields_number(edges[i].share)));
	return list;
}

static json_t *observe_moments(const struct job_record *record)
{
	json_t *list = json_array();
	for (size_t i = 0; i < record->moment_count; i++) {
		const struct job_moment *m = &record->moments[i];
		(void)json_array_append_new(
			list, json_pack("[o, o, o, o, o]", fields_number(m->t_s),
				      fields_number(m->cpu_s), fields_number(m->read_bytes),
				      fields_number(m->disk_bytes), fields_number(m->resident)));
	}
	return list;
}

static json_t *observe_lines(const struct job_lines *lines)
{
	json_t *list = json_array();
	for (size_t i = 0; lines && i < lines->count; i++)
		(void)json_array_append_new(list, fields_text(lines->of[i]));
	return list;
}

static double observe_samples(const struct observe_input *in, int class, int role)
{
	double sum = 0;
	for (size_t i = 0; i < in->record->process_count; i++)
		for (int k = 0; k < JOB_CLASSES; k++)
			if ((class < 0 || k == class) &&
				(role < 0 || in->verdict->roles[i] == (enum job_role)role))
				sum += (double)in->profile->classes[i][k];
	return sum;
}

static json_t *observe_share(const struct observe_input *in, int class, int role)
{
	const double all = observe_samples(in, -1, role);
	return fields_number(all > 0 ? observe_samples(in, class, role) / all : NAN);
}

static json_t *observe_cpu_time(const struct observe_input *in)
{
	const struct job_profile *profile = in->profile;
	json_t *classes = json_array();
	json_t *places = json_array();
	if (!profile) {
		json_decref(classes);
		json_decref(places);
		return json_null();
	}
	for (int k = 0; k < JOB_CLASSES; k++)
		if (observe_samples(in, k, -1) > 0)
			(void)json_array_append_new(
				classes, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "class",
						 job_class_name((enum job_class)k), "words",
						 job_class_words((enum job_class)k), "share",
						 observe_share(in, k, -1), "loader",
						 observe_share(in, k, JOB_ROLE_LOADER), "trainer",
						 observe_share(in, k, JOB_ROLE_TRAINER), "whole",
						 observe_share(in, k, JOB_ROLE_WHOLE)));
	for (size_t i = 0; i < profile->place_count; i++)
		(void)json_array_append_new(places,
			json_pack("{s:o, s:s, s:o}", "name", fields_text(profile->places[i].name),
				"class", job_class_name(profile->places[i].class), "share",
				fields_number((double)profile->places[i].samples /
					      (double)profile->samples)));
	return json_pack("{s:o, s:b, s:I, s:I, s:f, s:o, s:o}", "why",
		profile->why[0] ? fields_text(profile->why) : json_null(), "kernel",
		profile->kernel, "samples", (json_int_t)profile->samples, "lost",
		(json_int_t)profile->lost, "period_s", profile->period_s, "classes", classes,
		"places", places);
}

static json_t *observe_call(const struct network_measurement *n, const struct network_call *c)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", fields_text(c->name),
		"calls_per_s", fields_number(c->calls / n->seconds), "retransmits",
		fields_number(c->retransmits), "queue_s",
		fields_number(c->queue_ns / (double)NS_PER_S), "round_trip_s",
		fields_number(c->round_trip_ns / (double)NS_PER_S), "execute_s",
		fields_number(c->execute_ns / (double)NS_PER_S), "received_bytes_per_s",
		fields_number(c->bytes_received / n->seconds));
}

static json_t *observe_mounts(const struct job_places *places)
{
	json_t *list = json_array();
	for (size_t i = 0; places && i < places->mount_count; i++) {
		const struct network_measurement *n = &places->mounts[i].network;
		json_t *calls = json_array();
		for (size_t k = 0; k < n->call_count; k++)
			(void)json_array_append_new(calls, observe_call(n, &n->calls[k]));
		(void)json_array_append_new(list,
			json_pack("{s:i, s:s, s:o, s:i, s:o, s:o}", "mount", (int)i + 1,
				"file_system", places->mounts[i].system, "protocol",
				n->protocol[0] ? fields_text(n->protocol) : json_null(),
				"connections", (int)n->connections, "why",
				n->why[0] ? fields_text(n->why) : json_null(), "calls", calls));
	}
	return list;
}

static json_t *observe_gpu(const struct job_gpu *gpu, size_t i)
{
	const struct device_measurement *d = &gpu->device;
	struct swing swing;
	json_t *throttles = json_array();
	swing_find(gpu->t_s, gpu->busy, gpu->count, SWING_LEAST_SHARE, &swing);
	for (size_t k = 0; k < d->throttle_count; k++)
		(void)json_array_append_new(throttles,
			json_pack("{s:o, s:o}", "reason", fields_text(d->throttles[k].reason),
				"share", fields_number(d->throttles[k].share)));
	return json_pack("{s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "gpu",
		(int)i, "samples", (json_int_t)gpu->count, "busy", fields_number(d->busy_share),
		"busy_low", fields_number(swing.low), "busy_high", fields_number(swing.high),
		"swing_period_s", fields_number(swing.period_s), "sm_clock_mhz",
		fields_number(d->sm_clock_mhz.mean), "sm_clock_max_mhz",
		fields_number(d->sm_clock_max_mhz), "power_w", fields_number(d->power_w.mean),
		"memory_used_bytes", fields_number(d->memory_used_bytes.mean),
		"to_device_bytes_per_s", fields_number(d->pcie_to_device_bytes_per_s.mean),
		"from_device_bytes_per_s", fields_number(d->pcie_from_device_bytes_per_s.mean),
		"throttles", throttles);
}

static json_t *observe_gpus(const struct job_places *places)
{
	json_t *list = json_array();
	for (size_t i = 0; places && i < places->gpu_count; i++)
		(void)json_array_append_new(list, observe_gpu(&places->gpus[i], i));
	return list;
}

static json_t *observe_verdict(const struct job_verdict *v)
{
	const struct job_entry *entry = job_entry_find(v);
	return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o}", "stage", v->stage, "resource",
		v->resource, "runbook",
		json_sprintf("%s/%s", entry->entry_stage, entry->entry_resource), "certainty",
		job_certainty_name(v->certainty), "words", fields_text(v->words), "evidence",
		observe_lines(&v->evidence), "unknown", observe_lines(&v->unknown), "next",
		observe_lines(&v->next));
}

/* Of the workers that come and go, and what the first trainer does again and again. */
static json_t *observe_life(const struct job_life *life)
{
	static const char *const phases[JOB_PHASES] = {
		[JOB_PHASE_STARVED] = "waits",
		[JOB_PHASE_RUNS] = "runs",
		[JOB_PHASE_READS] = "reads",
		[JOB_PHASE_WRITES] = "writes",
		[JOB_PHASE_OTHER] = "other",
	};
	json_t *pauses = json_array();
	for (int phase = 0; phase < JOB_PHASES; phase++) {
		const struct job_pause *pause = &life->pauses[phase];
		if (pause->count > 0)
			(void)json_array_append_new(pauses,
				json_pack("{s:s, s:i, s:o, s:o, s:o, s:b}", "phase", phases[phase],
					"count", (int)pause->count, "seconds",
					fields_number(pause->seconds), "period_s",
					fields_number(pause->period_s), "share",
					fields_number(pause->share), "regular", !pause->irregular));
	}
	return json_pack("{s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "workers",
		fields_number(life->workers), "begun", (int)life->begun, "ended", (int)life->ended,
		"generations", (int)life->generations, "period_s", fields_number(life->period_s),
		"start_s", fields_number(life->start_s), "start_share",
		fields_number(life->start_share), "pauses", pauses);
}

/* null: the job does not consist of such programs. */
static json_t *observe_programs(const struct job_record *record, const struct job_programs *p)
{
	json_t *names = json_array();
	for (size_t i = 0; i < p->count; i++)
		(void)json_array_append_new(names,
			json_pack("{s:o, s:i, s:o}", "name", fields_text(p->of[i].name), "seen",
				(int)p->of[i].seen, "share", fields_number(p->of[i].share)));
	if (p->seen == 0) {
		json_decref(names);
		return json_null();
	}
	return json_pack("{s:i, s:i, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o}", "pid",
		record->processes[p->boss].pid, "seen", (int)p->seen, "life_s",
		fields_number(p->life_s), "cpu", fields_number(p->cores), "read_bytes_per_s",
		fields_number(p->read_bytes_per_s), "looks", (int)p->looks, "runs",
		fields_number(p->runs), "reads", fields_number(p->reads), "writes",
		fields_number(p->writes), "waits", fields_number(p->waits), "names", names);
}

static json_t *observe_ranks(const struct job_record *record, const struct job_ranks *ranks)
{
	json_t *list = json_array();
	for (size_t i = 0; i < ranks->count; i++)
		(void)json_array_append_new(
			list, json_pack("{s:i, s:o, s:o, s:o}", "pid",
				      record->processes[ranks->of[i].process].pid, "rank",
				      ranks->of[i].number < 0 ? json_null()
							      : json_integer(ranks->of[i].number),
				      "waits", fields_number(ranks->of[i].waits), "loading",
				      fields_number(ranks->of[i].loading)));
	return list;
}

static json_t *observe_about(const struct job_record *record)
{
	char begun[CLOCK_UTC_BYTES];
	clock_format_utc(record->begun_utc, begun);
	return json_pack(
		"{s:i, s:s, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"pid", record->pid, "begun", begun, "seconds", fields_number(record->watched_s),
		"ended_after", fields_number(record->ended_s), "state_looks", (int)record->states,
		"file_looks", (int)record->files, "count_looks", (int)record->counts,
		"own_cpu_seconds", fields_number(record->own_cpu_s), "own_share",
		fields_number(record->watched_s > 0 ? record->own_cpu_s / record->watched_s : NAN),
		"beyond_bounds", (json_int_t)record->no_room, "node_cores",
		fields_number(record->node_cores), "node_busy_cores",
		fields_number(record->node_busy_cores), "allowed_cpus",
		fields_number(record->allowed_cpus), "quota_cores",
		fields_number(record->quota_cores), "throttled_periods",
		fields_number(record->throttled), "memory_limit_bytes",
		fields_number(record->memory_limit), "refaulted_file_bytes",
		fields_number(record->refault_file), "refaulted_swap_bytes",
		fields_number(record->refault_swap));
}

json_t *observe_json(const struct observe_input *in)
{
	const struct job_record *record = in->record;
	json_t *processes = json_array();
	for (size_t i = 0; i < record->process_count; i++)
		(void)json_array_append_new(processes, observe_process(in, i));
	return json_pack(
		"{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"schema", OBSERVE_SCHEMA, "version", MLBENCH_VERSION, "observed",
		observe_about(record), "processes", processes, "threads", observe_threads(record),
		"waits", observe_edges(record), "files", observe_files(record), "files_per_s",
		"value", fields_number(in->verdict->files_per_s), "low",
		fields_number(in->verdict->files_low), "high",
		fields_number(in->verdict->files_high), "why",
		isnan(in->verdict->files_per_s) ? fields_text(in->verdict->files_why) : json_null(),
		"resident_growth_per_s", fields_number(in->verdict->growth), "life",
		observe_life(&in->verdict->life), "ranks",
		observe_ranks(record, &in->verdict->ranks), "programs",
		observe_programs(record, &in->verdict->programs), "moments",
		observe_moments(record), "hang", in->hang ? observe_lines(in->hang) : json_null(),
		"cpu_time", observe_cpu_time(in), "mounts", observe_mounts(in->places), "gpus",
		observe_gpus(in->places), "gpu_why",
		in->places && in->places->gpu_why[0] ? fields_text(in->places->gpu_why)
						     : json_null(),
		"verdict", observe_verdict(in->verdict));
}

/* --- the text ----------------------------------------------------------------------------------- */

/* Sums of shares. */
static void observe_acts_cell(
	const json_t *row, const enum job_act *acts, size_t count, struct buffer *out)
{
	char path[JOB_NAME_BYTES];
	double share = 0;
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(path, sizeof path, "acts.%s", job_act_name(acts[i]));
		share += column_number(row, path);
	}
	if (!isnan(share))
		buffer_format(out, "%.0f%%", 100 * share);
}

static void observe_waits_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	static const enum job_act acts[] = {JOB_WAITS_INPUT, JOB_WAITS_NETWORK, JOB_WAITS_POLL};
	(void)column;
	observe_acts_cell(row, acts, COUNT(acts), out);
}

static void observe_files_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	static const enum job_act acts[] = {JOB_WAITS_READ, JOB_WAITS_WRITE, JOB_WAITS_SYNC,
		JOB_WAITS_FAULT, JOB_WAITS_HELD, JOB_WAITS_RING};
	(void)column;
	observe_acts_cell(row, acts, COUNT(acts), out);
}

static void observe_locks_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	static const enum job_act acts[] = {JOB_WAITS_LOCK, JOB_WAITS_FILE_LOCK,
		JOB_WAITS_SEMAPHORE, JOB_WAITS_CONDITION, JOB_WAITS_TURN};
	(void)column;
	observe_acts_cell(row, acts, COUNT(acts), out);
}

static enum ink observe_role_ink(const struct table_column *column, const json_t *row)
{
	(void)column;
	return strcmp(column_text(row, "role"), "helper") == 0 ? INK_DIM : INK_PLAIN;
}

static const struct table_column thread_columns[] = {
	{.head = "process", .path = "pid"},
	{.head = "thread", .path = "tid"},
	{.head = "cores\nused", .path = "cpu", COLUMN_DECIMALS(2)},
	{.head = "run-queue\nwait", .path = "run_queue_wait", .unit = COLUMN_SHARE},
	{.head = "file\nwait", .text_of = observe_files_cell},
	{.head = "input\nwait", .text_of = observe_waits_cell},
	{.head = "lock", .text_of = observe_locks_cell},
	{.head = "name", .left = true, .path = "name", .keep = 1},
};

static const struct table_column class_columns[] = {
	{.head = "CPU time", .left = true, .path = "words"},
	{.head = "all", .path = "share", .unit = COLUMN_SHARE},
	{.head = "loaders", .path = "loader", .unit = COLUMN_SHARE},
	{.head = "trainer", .path = "trainer", .unit = COLUMN_SHARE},
};

static const struct table_column file_columns[] = {
	{.head = "open files", .left = true, .path = "kind"},
	{.head = "file system", .left = true, .path = "file_system"},
	{.head = "folder\ndepth", .path = "depth"},
	{.head = "files\nseen", .path = "files", .unit = COLUMN_COUNT},
	{.head = "mean size", .path = "mean_bytes", .unit = COLUMN_BYTES},
	{.head = "largest", .path = "most_bytes", .unit = COLUMN_BYTES, .keep = 1},
};

static json_t *observe_first(const json_t *list, size_t most)
{
	json_t *out = json_array();
	for (size_t i = 0; i < json_array_size(list) && i < most; i++)
		(void)json_array_append(out, json_array_get(list, i));
	return out;
}

/* --- rows of processes that are alike ------------------------------------------------------------ */

static bool observe_are_alike(const json_t *one, const json_t *other)
{
	static const char *const same[] = {"role", "name"};
	for (size_t i = 0; i < COUNT(same); i++)
		if (strcmp(column_text(one, same[i]), column_text(other, same[i])) != 0)
			return false;
	return json_equal(column_value(one, "parent"), column_value(other, "parent"));
}

/* Of the numbers at a path, of all that are like `one`: their mean; NAN: none is known. */
static double observe_mean(
	const json_t *all, const json_t *one, const char *path, double *least, double *most)
{
	const json_t *row;
	size_t i;
	double sum = 0;
	size_t count = 0;
	*least = INFINITY;
	*most = -INFINITY;
	json_array_foreach(all, i, row)
	{
		const double value = column_number(row, path);
		if (!observe_are_alike(one, row) || isnan(value))
			continue;
		sum += value;
		count++;
		*least = fmin(*least, value);
		*most = fmax(*most, value);
	}
	return count ? sum / (double)count : NAN;
}

/* One row for all that are like `one`: means, and of cores the range. */
static json_t *observe_alike_row(const json_t *all, const json_t *one, size_t count)
{
	json_t *out = json_deep_copy(one);
	json_t *const parts[] = {out, json_object_get(out, "acts")};
	const json_t *const from[] = {one, column_value(one, "acts")};
	double least;
	double most;
	for (size_t part = 0; part < COUNT(parts); part++) {
		char path[64];
		for (void *at = json_object_iter((json_t *)(uintptr_t)from[part]); at;
			at = json_object_iter_next((json_t *)(uintptr_t)from[part], at)) {
			const char *key = json_object_iter_key(at);
			const json_t *value = json_object_iter_value(at);
			(void)snprintf(path, sizeof path, "%s%s", part ? "acts." : "", key);
			if (!json_is_object(value) && !json_is_string(value))
				(void)json_object_set_new(parts[part], key,
					fields_number(observe_mean(all, one, path, &least, &most)));
		}
	}
	(void)observe_mean(all, one, "cpu", &least, &most);
	(void)json_object_set_new(out, "cpu_least", fields_number(least));
	(void)json_object_set_new(out, "cpu_most", fields_number(most));
	(void)json_object_set_new(out, "pid", json_sprintf("%zu alike", count));
	return out;
}

/* Some that are alike are told one by one, since one of them may be the slow one. */
static json_t *observe_rows(const json_t *processes)
{
	enum { ALIKE_LEAST = 5 };
	const json_t *row;
	size_t i;
	json_t *out = json_array();
	json_array_foreach(processes, i, row)
	{
		size_t before = 0;
		size_t count = 0;
		for (size_t k = 0; k < json_array_size(processes); k++)
			if (observe_are_alike(row, json_array_get(processes, k))) {
				before += k < i;
				count++;
			}
		if (count < ALIKE_LEAST)
			(void)json_array_append_new(out, json_deep_copy(row));
		else if (before == 0)
			(void)json_array_append_new(out, observe_alike_row(processes, row, count));
	}
	return out;
}

static void observe_cores_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double cpu = column_number(row, "cpu");
	const double least = column_number(row, "cpu_least");
	(void)column;
	if (!isnan(cpu))
		buffer_format(out, "%.2f", cpu);
	if (!isnan(least))
		buffer_format(out, " (%.2f-%.2f)", least, column_number(row, "cpu_most"));
}

static const struct table_column process_columns[] = {
	{.head = "process", .path = "pid"},
	{.head = "role", .left = true, .path = "role", .ink_of = observe_role_ink},
	{.head = "cores\nused", .text_of = observe_cores_cell},
	{.head = "run-queue\nwait", .path = "run_queue_wait", .unit = COLUMN_SHARE, .keep = 2},
	{.head = "file\nwait", .text_of = observe_files_cell},
	{.head = "input\nwait", .text_of = observe_waits_cell},
	{.head = "lock", .text_of = observe_locks_cell, .keep = 4},
	{.head = "sleep", .path = "acts.time", .unit = COLUMN_SHARE, .keep = 5},
	{.head = "read", .path = "read_bytes_per_s", .unit = COLUMN_RATE, .keep = 1},
	{.head = "memory", .path = "resident_bytes", .unit = COLUMN_BYTES, .keep = 3},
	{.head = "threads", .path = "threads", .unit = COLUMN_COUNT, .keep = 6},
	{.head = "name", .left = true, .path = "name", .keep = 7},
};

/* --- the parts of the text ----------------------------------------------------------------------- */

static json_t *observe_files_read(const json_t *files)
{
	json_t *out = json_array();
	for (size_t i = 0; i < json_array_size(files); i++)
		if (!json_is_true(column_value(json_array_get(files, i), "written")))
			(void)json_array_append(out, json_array_get(files, i));
	return out;
}

static void observe_say_about(const json_t *document, struct medium *medium)
{
	struct buffer text = {0};
	const double ended = column_number(document, "observed.ended_after");
	buffer_format(&text, "%.1f s from outside", column_number(document, "observed.seconds"));
	if (!isnan(ended))
		buffer_format(&text, "; the process ended then");
	buffer_format(&text,
		"; the job was neither stopped nor changed; observing it took %.2f %% of one core",
		100 * column_number(document, "observed.own_share"));
	medium_fact(medium, INK_DIM, "observed", &text);
}

static void observe_say_cpu(const json_t *document, struct medium *medium, bool verbose)
{
	const json_t *cpu = column_value(document, "cpu_time");
	const json_t *places = column_value(cpu, "places");
	const char *why = column_text(cpu, "why");
	struct buffer text = {0};
	if (json_array_size(column_value(cpu, "classes"))) {
		medium_space(medium);
		medium_table(medium, class_columns, COUNT(class_columns),
			column_value(cpu, "classes"), "CPU time by class");
	}
	for (size_t i = 0;
		i < json_array_size(places) && i < (verbose ? JOB_PLACES_MAX : PLACES_SHOWN); i++)
		buffer_format(&text, "%s%s %.0f %%", i ? ", " : "",
			column_text(json_array_get(places, i), "name"),
			100 * column_number(json_array_get(places, i), "share"));
	if (json_array_size(places) || why[0])
		medium_space(medium);
	medium_fact(medium, INK_DIM, "hottest", &text);
	if (why[0])
		buffer_format(&text, "not sampled%s: %s",
			json_array_size(places) ? " completely" : "", why);
	else if (cpu && !json_is_null(cpu) && !json_is_true(column_value(cpu, "kernel")))
		buffer_text(
			&text, "time in the kernel is not sampled (kernel.perf_event_paranoid)");
	medium_fact(medium, INK_WARN, "CPU time", &text);
}

static const struct table_column call_columns[] = {
	{.head = "NFS call", .left = true, .path = "name"},
	{.head = "calls/s", .path = "calls_per_s", COLUMN_DECIMALS(1)},
	{.head = "round trip", .path = "round_trip_s", .unit = COLUMN_SECONDS},
	{.head = "queue", .path = "queue_s", .unit = COLUMN_SECONDS},
	{.head = "retransmits", .path = "retransmits", .unit = COLUMN_COUNT},
	{.head = "received", .path = "received_bytes_per_s", .unit = COLUMN_RATE, .keep = 1},
};

static void observe_say_mounts(const json_t *document, struct medium *medium)
{
	const json_t *mounts = column_value(document, "mounts");
	for (size_t i = 0; i < json_array_size(mounts); i++) {
		const json_t *mount = json_array_get(mounts, i);
		const char *protocol = column_text(mount, "protocol");
		const char *why = column_text(mount, "why");
		struct buffer text = {0};
		medium_space(medium);
		medium_table(medium, call_columns, COUNT(call_columns),
			column_value(mount, "calls"), "calls to the server");
		medium_space(medium);
		buffer_format(&text, "%zu, %s, of everybody who uses it%s%s", i + 1,
			protocol[0] ? protocol : column_text(mount, "file_system"),
			why[0] ? ": no counts: " : "", why);
		medium_fact(medium, INK_DIM, "mount", &text);
	}
}

static void observe_say_gpu(const json_t *gpu, struct medium *medium)
{
	const double period = column_number(gpu, "swing_period_s");
	const double busy = column_number(gpu, "busy");
	const double clock = column_number(gpu, "sm_clock_mhz");
	const json_t *throttles = column_value(gpu, "throttles");
	struct buffer text = {0};
	buffer_format(&text, "%d: ", (int)column_number(gpu, "gpu"));
	if (isnan(busy))
		buffer_text(&text, "busy share not available");
	else
		buffer_format(&text, "some kernel was resident %.0f %% of the time", 100 * busy);
	if (!isnan(period))
		buffer_format(&text,
			"; its busy share swings between %.0f %% and %.0f %% with a period of "
			"%.1f s: a buffer before it seems to fill and to empty",
			100 * column_number(gpu, "busy_low"), 100 * column_number(gpu, "busy_high"),
			period);
	if (!isnan(clock))
		buffer_format(&text, "; SM clock %.0f MHz of %.0f", clock,
			column_number(gpu, "sm_clock_max_mhz"));
	for (size_t i = 0; i < json_array_size(throttles); i++)
		buffer_format(&text, "; clocks held down by %s %.0f %% of the time",
			column_text(json_array_get(throttles, i), "reason"),
			100 * column_number(json_array_get(throttles, i), "share"));
	medium_fact(medium, INK_PLAIN, "GPU", &text);
}

static void observe_say_gpus(const json_t *document, struct medium *medium)
{
	const json_t *gpus = column_value(document, "gpus");
	const char *why = column_text(document, "gpu_why");
	if (json_array_size(gpus) || why[0])
		medium_space(medium);
	for (size_t i = 0; i < json_array_size(gpus); i++)
		observe_say_gpu(json_array_get(gpus, i), medium);
	if (why[0])
		medium_fact_text(medium, INK_WARN, "GPU", why);
}

static void observe_say_rates(const json_t *document, struct medium *medium)
{
	const double files = column_number(document, "files_per_s.value");
	const double growth = column_number(document, "resident_growth_per_s");
	char rate[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	struct buffer text = {0};
	if (isnan(files))
		buffer_format(&text, "files per second: not available: %s",
			column_text(document, "files_per_s.why"));
	else
		buffer_format(&text, "about %s files/s (%s to %s), if each is read whole and once",
			units_format_count(files, rate),
			units_format_count(column_number(document, "files_per_s.low"), low),
			units_format_count(column_number(document, "files_per_s.high"), high));
	medium_fact(medium, INK_DIM, "reading", &text);
	if (fabs(growth) < STEADY_BYTES_PER_S)
		buffer_text(&text, "steady over the last two thirds");
	else if (!isnan(growth))
		buffer_format(&text, "%s %s/s over the last two thirds",
			growth < 0 ? "shrinks by" : "grows by",
			units_format_size(fabs(growth), rate));
	medium_fact(medium, INK_DIM, "memory", &text);
}

void observe_text(const json_t *document, struct medium *medium, bool verbose)
{
	const size_t all = json_array_size(column_value(document, "processes"));
	const json_t *each = column_value(document, "processes");
	json_t *rows = verbose ? observe_first(each, all) : observe_rows(each);
	json_t *processes = observe_first(rows, verbose ? all : PROCESSES_SHOWN);
	json_t *threads = observe_first(
		column_value(document, "threads"), verbose ? OBSERVE_THREADS_MAX : THREADS_SHOWN);
	json_t *files = observe_files_read(column_value(document, "files"));
	struct buffer title = {0};
	struct buffer text = {0};
	buffer_format(&title, "job of process %d", (int)column_number(document, "observed.pid"));
	medium_title(medium, title.data ? title.data : "", "");
	buffer_release(&title);
	observe_say_about(document, medium);
	medium_space(medium);
	medium_table(medium, process_columns, COUNT(process_columns), processes, "processes");
	if (json_array_size(processes) < json_array_size(rows)) {
		buffer_format(&text, "%zu more rows: --verbose",
			json_array_size(rows) - json_array_size(processes));
		medium_note(medium, &text);
	}
	json_decref(rows);
	if (verbose || all == 1) {
		medium_space(medium);
		medium_table(medium, thread_columns, COUNT(thread_columns), threads, "threads");
	}
	if (json_array_size(files)) {
		medium_space(medium);
		medium_table(medium, file_columns, COUNT(file_columns), files, "open files");
	}
	observe_say_mounts(document, medium);
	observe_say_gpus(document, medium);
	observe_say_cpu(document, medium, verbose);
	medium_space(medium);
	observe_say_rates(document, medium);
	medium_list(medium, INK_BAD, "hang", column_value(document, "hang"), 0);
	medium_heading(medium, "what this means");
	buffer_format(&text, "%s.", column_text(document, "verdict.words"));
	medium_fact(medium, INK_BOLD, "verdict", &text);
	buffer_format(&text, "%s, of one operating point: stage %s, resource %s",
		column_text(document, "verdict.certainty"), column_text(document, "verdict.stage"),
		column_text(document, "verdict.resource"));
	medium_fact(medium, INK_PLAIN, "how sure", &text);
	medium_list(medium, INK_DIM, "evidence", column_value(document, "verdict.evidence"), 0);
	medium_list(medium, INK_WARN, "unknown", column_value(document, "verdict.unknown"), 0);
	medium_list(medium, INK_GOOD, "next", column_value(document, "verdict.next"), 0);
	buffer_format(&text, "mlbench explain %s", column_text(document, "verdict.runbook"));
	medium_fact(medium, INK_DIM, "more", &text);
	medium_end(medium);
	json_decref(processes);
	json_decref(threads);
	json_decref(files);
}
