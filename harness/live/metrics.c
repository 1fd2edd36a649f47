/* Which member is which metric. */
#include "harness/live/metrics.h"

#include "harness/base/clock.h"
#include "harness/report/openmetrics_names.h"

#include <math.h>

static const double HERTZ_PER_MHZ = 1e6;

struct metrics_time metrics_now(void)
{
	return (struct metrics_time){.now_ns = clock_now_ns(), .now = clock_utc_seconds()};
}

static void metrics_add_value(struct openmetrics *m, enum run_metric metric, double value)
{
	openmetrics_add(m, &run_metrics[metric], NULL, 0, value);
}

static void add_one(struct openmetrics *m, enum run_metric metric, const char *label,
	const char *of, double value)
{
	const struct openmetrics_label labels[] = {{label, of}};
	openmetrics_add(m, &run_metrics[metric], labels, 1, value);
}

static void add_command(
	const struct live_view *v, struct metrics_time time, double stuck, struct openmetrics *m)
{
	const struct openmetrics_label info[] = {{"name", v->name}, {"version", v->version},
		{"command", v->command}, {"node", v->node}};
	const double age_s = time.now_ns > v->updated_ns
				     ? (double)(time.now_ns - v->updated_ns) / (double)NS_PER_S
				     : 0;
	openmetrics_add(m, &run_metrics[RUN_INFO], info, sizeof info / sizeof info[0], 1);
	for (unsigned p = 0; p < LIVE_PHASES; p++)
		add_one(m, RUN_PHASE, "phase", live_phase_name((enum live_phase)p),
			p == (unsigned)v->phase);
	metrics_add_value(m, RUN_STUCK, stuck);
	metrics_add_value(m, RUN_STARTED, v->started);
	metrics_add_value(m, RUN_UPDATED, time.now - age_s);
	metrics_add_value(m, RUN_REPETITIONS, v->total);
	metrics_add_value(m, RUN_REPETITIONS_DONE, v->done);
}

static void metrics_add_counts(const struct live_view *v, struct openmetrics *m)
{
	metrics_add_value(m, RUN_SAMPLES, (double)v->samples);
	metrics_add_value(m, RUN_BATCHES, (double)v->batches);
	metrics_add_value(m, RUN_EPOCHS, (double)v->epochs);
	metrics_add_value(m, RUN_BAD_SAMPLES, (double)v->bad_samples);
}

/* Of what goes on now. */
static void add_gauges(const struct live_view *v, struct openmetrics *m)
{
	metrics_add_value(m, RUN_THROUGHPUT, v->throughput_window);
	metrics_add_value(m, RUN_STEP_UTILISATION, v->step_utilisation_window);
	metrics_add_value(m, RUN_READ_BYTES, v->bytes_read_per_s);
	metrics_add_value(
		m, RUN_RESIDENT, v->resident_bytes > 0 ? (double)v->resident_bytes : (double)NAN);
	metrics_add_value(m, RUN_POOL, (double)v->pool_bytes);
}

static void add_stages(const struct live_view *v, struct openmetrics *m)
{
	static const char *const states[THREAD_STATES] = {"starved", "working", "blocked"};
	for (uint32_t i = 0; v->timed && i < v->stage_count; i++)
		for (unsigned k = 0; k < THREAD_STATES; k++) {
			const struct openmetrics_label labels[] = {
				{"stage", v->stages[i].name}, {"state", states[k]}};
			openmetrics_add(m, &run_metrics[RUN_STAGE_SECONDS], labels, 2,
				v->stages[i].seconds[k]);
		}
	for (uint32_t i = 0; v->timed && i < v->stage_count; i++)
		add_one(m, RUN_STAGE_CPU, "stage", v->stages[i].name, v->stages[i].cpu_seconds);
	for (uint32_t i = 0; v->timed && i < v->stage_count; i++)
		add_one(m, RUN_STAGE_ITEMS, "stage", v->stages[i].name, (double)v->stages[i].items);
	for (uint32_t i = 0; i < v->stage_count; i++)
		add_one(m, RUN_STAGE_WORKERS, "stage", v->stages[i].name, v->stages[i].workers);
}

static void metrics_add_queues(const struct live_view *v, struct openmetrics *m)
{
	for (uint32_t i = 0; v->timed && i < v->queue_count; i++)
		add_one(m, RUN_QUEUE_DEPTH, "queue", v->queues[i].name, v->queues[i].depth);
	for (uint32_t i = 0; v->timed && i < v->queue_count; i++)
		add_one(m, RUN_QUEUE_CAPACITY, "queue", v->queues[i].name, v->queues[i].capacity);
}

static void add_device(const struct live_view *v, struct openmetrics *m)
{
	metrics_add_value(m, RUN_DEVICE_CLOCK, v->device_clock_mhz * HERTZ_PER_MHZ);
	metrics_add_value(m, RUN_DEVICE_POWER, v->device_power_w);
	metrics_add_value(m, RUN_DEVICE_TEMPERATURE, v->device_temperature_c);
}

void metrics_write(const struct live_view *v, struct metrics_time time, double stuck,
	enum openmetrics_dialect dialect, struct buffer *out)
{
	struct openmetrics m = {.out = out, .dialect = dialect};
	const bool runs = !isnan(v->period_s);
	add_command(v, time, stuck, &m);
	if (v->begun_ns > 0)
		metrics_add_counts(v, &m);
	if (runs)
		add_gauges(v, &m);
	if (v->begun_ns > 0)
		add_stages(v, &m);
	if (runs)
		metrics_add_queues(v, &m);
	if (runs)
		add_device(v, &m);
	if (dialect == OPENMETRICS_1_0)
		openmetrics_end(&m);
}
