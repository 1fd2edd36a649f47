/* TensorBoard: a run per repetition, in a folder per point.  Scalars of single steps come from the saved service times,
 * which are blocks of consecutive steps and not all of them; those of epochs from the windows. */
#include "harness/base/files.h"
#include "harness/base/program.h"
#include "harness/report/export.h"
#include "harness/report/tensorboard_events.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINT_NAME_BYTES = 120, TAG_BYTES = 64, EPOCH_WINDOWS_MIN = 3, WORKERS_MAX = DEVICES_MAX };

#define BLOCKS_ONLY                                                                                  \
	"Only the steps whose times were recorded: blocks of consecutive steps, spread evenly over " \
	"the measured part. "

/* What the scalars of a repetition are computed from. */
struct repetition {
	const struct measurement *m;
	const struct trace *steps; /* NULL: none were recorded */
	uint64_t batch_size;
	bool batches_full; /* all have batch_size samples */
	bool emulated;
	unsigned devices;
};

/* --- steps ------------------------------------------------------------------------------------ */

/* Tags of a device; of the only one: "step/time_ms". */
struct step_tags {
	char time[TAG_BYTES], rate[TAG_BYTES], wait[TAG_BYTES];
};

static void name_tags(const struct repetition *r, uint32_t worker, struct step_tags *tags)
{
	char group[TAG_BYTES / 2] = "step";
	if (r->devices > 1)
		(void)snprintf(group, sizeof group, "step_device_%" PRIu32, worker);
	(void)snprintf(tags->time, TAG_BYTES, "%s/time_ms", group);
	(void)snprintf(tags->rate, TAG_BYTES, "%s/samples_per_s", group);
	(void)snprintf(tags->wait, TAG_BYTES, "%s/wait_ms", group);
}

/* What was said of a device's tags already. */
struct told {
	bool time, rate, wait;
};

/* The description, the first time that there is a value. */
static const char *tensorboard_tell(bool *told, double value, const char *description)
{
	if (*told || isnan(value))
		return NULL;
	*told = true;
	return description;
}

static void tensorboard_add_step(const struct repetition *r, const struct trace_item *item,
	const struct trace_item *before, struct told *told, struct buffer *out)
{
	struct step_tags tags;
	name_tags(r, item->worker, &tags);
	const double time_s = (double)item->service_ns / 1e9;
	const double between = before ? item->end_s - before->end_s : (double)NAN;
	const double wait = isnan(between) ? between : fmax(between - time_s, 0);
	const double rate =
		between > 0 && r->batches_full ? (double)r->batch_size / between : (double)NAN;
	const struct event_scalar scalars[] = {
		{tags.time, time_s * 1e3,
			tensorboard_tell(&told->time, time_s,
				r->emulated ? BLOCKS_ONLY "Time of a step of the emulated device."
					    : BLOCKS_ONLY "Time of a step.")},
		{tags.rate, rate,
			tensorboard_tell(&told->rate, rate,
				BLOCKS_ONLY
				"A batch over the time from the end of the step before it to its own.")},
		{tags.wait, wait * 1e3,
			tensorboard_tell(&told->wait, wait,
				BLOCKS_ONLY
				"Time between the end of the step before it and its own begin.")},
	};
	events_add(out, r->m->started + item->end_s, (int64_t)item->number, scalars,
		sizeof scalars / sizeof *scalars);
}

/* The step that the same device computed before, if it is in the same stretch of consecutive ones. */
static void add_steps(const struct repetition *r, struct buffer *out)
{
	const struct trace_item *before[WORKERS_MAX] = {0};
	struct told told[WORKERS_MAX] = {0};
	const struct trace *steps = r->steps;
	for (size_t i = 0; steps && i < steps->count; i++) {
		const struct trace_item *item = &steps->items[i];
		if (item->worker >= WORKERS_MAX || isnan(item->service_ns))
			continue;
		if (i > 0 && item->number != steps->items[i - 1].number + 1)
			memset(before, 0, sizeof before);
		tensorboard_add_step(r, item, before[item->worker], &told[item->worker], out);
		before[item->worker] = item;
	}
}

/* --- epochs ----------------------------------------------------------------------------------- */

/* When so many samples were through, between the windows' ends; NAN: they never were. */
static double tensorboard_time_of(const struct measurement *m, double samples)
{
	double t = 0;
	double through = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		const struct window *w = &m->windows[i];
		const double now = (double)w->samples;
		if (now >= samples && now > through)
			return t + (w->t - t) * (samples - through) / (now - through);
		t = w->t;
		through = now;
	}
	return NAN;
}

/* Samples that an epoch trains on; 0: not known. */
static double epoch_samples(const struct repetition *r)
{
	if (r->m->bad_samples > 0 || (!r->batches_full && r->devices > 1))
		return 0;
	const uint64_t whole = r->batch_size * r->devices;
	const uint64_t n = r->m->dataset_samples;
	return (double)(r->batches_full && whole > 0 ? n / whole * whole : n);
}

static void add_epochs(const struct repetition *r, struct buffer *out)
{
	const double samples = epoch_samples(r);
	const char *description =
		"Throughput of an epoch; its ends lie between two sampling windows, by interpolation. "
		"Epochs shorter than three windows are left out.";
	double begin = 0;
	if (samples <= 0)
		return;
	for (uint64_t epoch = 0; epoch < r->m->epochs; epoch++) {
		const double end = tensorboard_time_of(r->m, samples * (double)(epoch + 1));
		if (isnan(end))
			break;
		if (end - begin >= EPOCH_WINDOWS_MIN * r->m->window_seconds) {
			const struct event_scalar scalar = {
				"epoch/samples_per_s", samples / (end - begin), description};
			events_add(out, r->m->started + end, (int64_t)epoch, &scalar, 1);
			description = NULL;
		}
		begin = end;
	}
}

static void add_loss(const struct repetition *r, struct buffer *out)
{
	const struct measurement *m = r->m;
	const struct event_scalar first = {
		"epoch/loss", m->loss_first, "Loss of the first step and of the last one."};
	const struct event_scalar last = {"epoch/loss", m->loss_last, NULL};
	events_add(out, m->started, 0, &first, 1);
	events_add(out, m->started + m->wall_seconds, m->epochs > 0 ? (int64_t)m->epochs : 1, &last,
		1);
}

/* --- files ------------------------------------------------------------------------------------ */

/* The name is a function of the result, so that writing it again replaces it. */
static int tensorboard_save(const char *folder, const struct measurement *m,
	const struct buffer *events, struct error *err)
{
	char name[TAG_BYTES];
	(void)snprintf(name, sizeof name, "events.out.tfevents.%010.0f.mlbench", m->started);
	int code = events->failed ? error_set(err, -ENOMEM, "out of memory for events")
				  : files_make_folder(folder, err);
	char *path = files_join(folder, name);
	if (!code)
		code = path ? files_write_atomic(path, events->data, events->size, err)
			    : error_set(err, -ENOMEM, "out of memory");
	free(path);
	return code;
}

static const struct trace *find_steps(const struct traces *traces)
{
	const struct trace *device = traces_find(traces, TRACE_DEVICE_PREFIX STAGE_STEP_NAME);
	return device ? device : traces_find(traces, stage_name(STAGE_STEP));
}

static int write_loaded(const struct report *report, const struct measurement *m,
	const struct traces *traces, const char *folder, struct error *err)
{
	struct config config = {0};
	struct buffer events = {0};
	const struct record *record = report->record;
	int code = config_grid_point(&record->config, &record->grid, m->point, &config, err);
	if (code)
		return code;
	const struct repetition r = {.m = m,
		.steps = find_steps(traces),
		.batch_size = (uint64_t)config_integer(&config, KEY_BATCH_SIZE),
		.batches_full = config_on(&config, KEY_BATCH_DROP_LAST),
		.emulated = record->step.emulated,
		.devices = (unsigned)config_integer(&config, KEY_STEP_DEVICES)};
	events_begin(&events, m->started);
	add_steps(&r, &events);
	add_epochs(&r, &events);
	add_loss(&r, &events);
	code = tensorboard_save(folder, m, &events, err);
	buffer_release(&events);
	config_release(&config);
	return code;
}

static char *folder_of(
	const struct report *report, const struct record_entry *entry, const char *root)
{
	char safe[POINT_NAME_BYTES];
	char repeat[TAG_BYTES];
	struct buffer name = {0};
	buffer_format(&name, "p%05" PRIu32 " ", entry->point);
	report_settings(report, entry->point, &name);
	if (name.failed)
		return NULL;
	if (report->record->config.axis_count == 0)
		name.data[name.size - 1] = '\0';
	char *point = files_join(root, export_file_name(name.data, safe, sizeof safe));
	buffer_release(&name);
	(void)snprintf(repeat, sizeof repeat, "r%" PRIu32, entry->repeat);
	char *folder = point ? files_join(point, repeat) : NULL;
	free(point);
	return folder;
}

static int write_entry(
	const struct report *report, size_t entry, const char *root, struct error *err)
{
	const struct record *record = report->record;
	struct measurement *m = calloc(1, sizeof *m);
	struct traces traces = {0};
	char *folder = folder_of(report, &record->entries[entry], root);
	int code = m && folder ? record_load(record, entry, m, err)
			       : error_set(err, -ENOMEM, "out of memory");
	if (!code && record_load_traces(record, entry, &traces, NULL))
		traces = (struct traces){0}; /* the epochs stand without them */
	if (!code)
		code = write_loaded(report, m, &traces, folder, err);
	traces_release(&traces);
	if (m)
		measurement_release(m);
	free(m);
	free(folder);
	return code;
}

int export_tensorboard(const struct report *report, const char *folder, struct error *err)
{
	const struct record *record = report->record;
	size_t written = 0;
	int code = 0;
	for (size_t i = 0; i < record->entry_count && !code; i++) {
		const enum measurement_status status = record->entries[i].status;
		if (status != MEASUREMENT_OK && status != MEASUREMENT_UNSTEADY)
			continue;
		code = write_entry(report, i, folder, err);
		written++;
	}
	if (!code && written == 0)
		return error_set(err, -ENODATA, "nothing was measured: there is nothing to write");
	return code;
}
