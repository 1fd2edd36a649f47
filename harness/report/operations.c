/* Rows of key averages, and their order. */
#include "harness/report/operations.h"

#include "harness/base/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_LEAST = 64 };

void operations_release(struct operations *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->list[i].times);
	free(o->list);
	*o = (struct operations){0};
}

static bool is_row(const struct operation *row, const char *name, const char *stage,
	enum operation_place place)
{
	return row->place == place && strncmp(row->name, name, sizeof row->name - 1) == 0 &&
	       strncmp(row->stage, stage, sizeof row->stage - 1) == 0;
}

struct operation *operations_row(
	struct operations *o, const char *name, const char *stage, enum operation_place place)
{
	for (size_t i = 0; i < o->count; i++)
		if (is_row(&o->list[i], name, stage, place))
			return &o->list[i];
	if (!o->list)
		o->list = calloc(OPERATIONS_MAX, sizeof *o->list);
	if (!o->list || o->count == OPERATIONS_MAX)
		return NULL;
	struct operation *row = &o->list[o->count];
	*row = (struct operation){.place = place, .share = NAN, .cpu_ns = NAN};
	row->self_ns = place == OPERATION_ASYNC ? (double)NAN : 0;
	(void)snprintf(row->name, sizeof row->name, "%s", name);
	(void)snprintf(row->stage, sizeof row->stage, "%s", stage);
	row->mean_ns = NAN;
	row->p99_ns = NAN;
	row->max_ns = NAN;
	o->count++;
	return row;
}

int operation_add(struct operation *row, double ns, bool whole)
{
	row->calls++;
	row->total_ns += ns;
	if (!whole)
		return 0;
	if (row->time_count == row->time_room) {
		const size_t room = row->time_room > 0 ? 2 * row->time_room : TIMES_LEAST;
		double *times = realloc(row->times, room * sizeof *times);
		if (!times)
			return -ENOMEM;
		row->times = times;
		row->time_room = room;
	}
	row->times[row->time_count++] = ns;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void settle_times(struct operation *row)
{
	double sum = 0;
	if (row->time_count == 0)
		return;
	qsort(row->times, row->time_count, sizeof *row->times, by_value);
	for (size_t i = 0; i < row->time_count; i++)
		sum += row->times[i];
	row->mean_ns = sum / (double)row->time_count;
	/* The least value that 99 % of them do not exceed. */
	row->p99_ns = row->times[(row->time_count * 99 + 99) / 100 - 1];
	row->max_ns = row->times[row->time_count - 1];
}

void operations_settle(struct operations *o)
{
	for (size_t i = 0; i < o->count; i++) {
		struct operation *row = &o->list[i];
		const double whole = row->place == OPERATION_DEVICE ? o->device_ns : o->thread_ns;
		/* Sums of times that are whole nanoseconds. */
		row->self_ns = round(row->self_ns);
		if (row->self_ns <= 0)
			row->self_ns = 0;
		row->share = whole > 0 ? row->self_ns / whole : (double)NAN;
		settle_times(row);
	}
}

/* --- order ------------------------------------------------------------------------------------------------ */

const struct operation_column operation_columns[] = {
	{"self", "time in the operation itself, without what is inside it"},
	{"share", "self over the time of all threads, or of all devices"},
	{"total", "time in it with all that is inside it"},
	{"calls", "how often, those at the edge of a window included"},
	{"mean", "time of one that is whole"},
	{"p99", "time that 99 % of them do not exceed"},
	{"max", "time of the longest"},
	{"cpu", "CPU time, where the kernel's accounting of a stage is all there is"},
	{"operation", "its name"},
	{"stage", "the stage whose thread or device it runs on"},
	{NULL, NULL},
};

enum column {
	BY_SELF,
	BY_SHARE,
	BY_TOTAL,
	BY_CALLS,
	BY_MEAN,
	BY_P99,
	BY_MAX,
	BY_CPU,
	BY_NAME,
	BY_STAGE
};

static double value_of(const struct operation *row, enum column column)
{
	switch (column) {
	case BY_SELF:
		return row->self_ns;
	case BY_SHARE:
		return row->share;
	case BY_TOTAL:
		return row->total_ns;
	case BY_CALLS:
		return (double)row->calls;
	case BY_MEAN:
		return row->mean_ns;
	case BY_P99:
		return row->p99_ns;
	case BY_MAX:
		return row->max_ns;
	case BY_CPU:
		return row->cpu_ns;
	case BY_NAME:
	case BY_STAGE:
		break;
	}
	return NAN;
}

/* What has no value comes last; NAN is below everything. */
static int compare_values(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return a > b ? -1 : a < b;
}

static int compare(const void *a, const void *b, void *context)
{
	const struct operation *x = a;
	const struct operation *y = b;
	const enum column column = *(const enum column *)context;
	int order = 0;
	if (column == BY_STAGE)
		order = strcmp(x->stage, y->stage);
	else if (column != BY_NAME)
		order = compare_values(value_of(x, column), value_of(y, column));
	if (!order && column == BY_SELF)
		order = compare_values(x->total_ns, y->total_ns);
	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->stage, y->stage);
}

static int find_column(const char *name, enum column *column, struct error *err)
{
	const char *names[sizeof operation_columns / sizeof operation_columns[0]];
	size_t count = 0;
	for (; operation_columns[count].name; count++) {
		names[count] = operation_columns[count].name;
		if (strcmp(names[count], name) == 0) {
			*column = (enum column)count;
			return 0;
		}
	}
	struct buffer list = {0};
	for (size_t i = 0; i < count; i++)
		buffer_format(&list, "%s%s", i ? ", " : "", names[i]);
	const char *nearest = suggest_nearest(name, names, count);
	const int code =
		error_set(err, -EINVAL, "no column '%.48s' to sort by; there are: %s%s%s%s", name,
			list.data ? list.data : "", nearest ? " (did you mean '" : "",
			nearest ? nearest : "", nearest ? "'?)" : "");
	buffer_release(&list);
	return code;
}

int operations_sort(struct operations *o, const char *name, struct error *err)
{
	enum column column = BY_SELF;
	const int code = name ? find_column(name, &column, err) : 0;
	if (!code && o->count > 0)
		qsort_r(o->list, o->count, sizeof *o->list, compare, &column);
	return code;
}

/* --- from the stages -------------------------------------------------------------------------------------- */

static int add_state(struct operations *o, const struct stage_measurement *stage, int state)
{
	const double ns = stage->seconds[state] * 1e9;
	if (ns <= 0)
		return 0;
	struct operation *row =
		operations_row(o, thread_state_names[state], stage->name, OPERATION_THREAD);
	if (!row)
		return -ENOMEM;
	row->self_ns = ns;
	row->total_ns = ns;
	o->thread_ns += ns;
	if (state != THREAD_WORKING)
		return 0;
	row->calls = stage->items;
	row->cpu_ns = stage->cpu_seconds * 1e9;
	if (stage->service.count == 0)
		return 0;
	row->mean_ns = histogram_mean(&stage->service);
	row->p99_ns = histogram_quantile(&stage->service, 0.99);
	row->max_ns = (double)stage->service.max_ns;
	return 0;
}

static int add_device(struct operations *o, const char *name, double seconds)
{
	if (!(seconds > 0))
		return 0;
	struct operation *row = operations_row(o, name, "device", OPERATION_DEVICE);
	if (!row)
		return -ENOMEM;
	row->self_ns += seconds * 1e9;
	row->total_ns += seconds * 1e9;
	return 0;
}

static int add_devices(struct operations *o, const struct measurement *m)
{
	int code = 0;
	for (size_t i = 0; i < m->device_count && !code; i++) {
		const struct device_measurement *d = &m->devices[i];
		code = add_device(o, "device step", d->step_seconds);
		if (!code)
			code = add_device(o, "device upload", d->upload_seconds);
		if (!code)
			code = add_device(o, "exchange gradients", d->sync_seconds);
		o->emulated = o->emulated || d->emulated;
	}
	o->device_ns = (double)m->device_count * m->measured_seconds * 1e9;
	return code;
}

int operations_of_stages(
	struct operations *o, const struct measurement *m, const char *name, struct error *err)
{
	int code = 0;
	*o = (struct operations){.seconds = m->measured_seconds};
	(void)snprintf(o->title, sizeof o->title, "%.128s, point %u, repeat %u", name, m->point,
		m->repeat);
	for (size_t i = 0; i < m->stage_count && !code; i++)
		for (int state = 0; state < THREAD_STATES && !code; state++)
			code = add_state(o, &m->stages[i], state);
	if (!code)
		code = add_devices(o, m);
	operations_settle(o);
	if (!code && o->count == 0)
		return error_set(err, -ENODATA,
			"point %u has no times of its stages (measure.profiler is off)", m->point);
	return code ? error_set(err, code, "out of memory") : 0;
}
