/* Edges of windows. */
#include "pipelines/monitor.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/measure/nvml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A look at all clocks takes less, unless the thread loses its core; and how often it is tried. */
enum { LOOK_NS = 2000000, LOOK_OF_THREAD_NS = 50000, LOOKS_MOST = 4 };

int monitor_open(struct monitor *m, const char *data)
{
	cgroup_cpu_quotas(&m->quotas);
	data_store_find(data, &m->store);
	m->edges = memory_touched(EDGES_MAX, sizeof *m->edges);
	return m->edges ? 0 : -ENOMEM;
}

void monitor_close(struct monitor *m)
{
	nvml_watch_free(m->nvml);
	free(m->edges);
	*m = (struct monitor){0};
}

uint64_t monitor_window(uint64_t window_ns, uint64_t planned_ns)
{
	while (planned_ns / window_ns >= WINDOWS_MAX)
		window_ns *= 2;
	return window_ns;
}

static void sample_stage(
	const struct stage *stage, uint64_t now_ns, struct thread_times *sum, bool *accounted)
{
	*accounted = stage->meters && stage->workers > 0;
	for (unsigned i = 0; stage->meters && i < stage->workers; i++) {
		struct thread_times one;
		*accounted = thread_meter_read(&stage->meters[i], now_ns, &one) && *accounted;
		for (int k = 0; k < THREAD_STATES; k++)
			sum->state_ns[k] += one.state_ns[k];
		sum->items += one.items;
		sum->cpu_ns += one.cpu_ns;
		sum->run_queue_ns += one.run_queue_ns;
		sum->io_wait_ns += one.io_wait_ns;
		sum->lock_wait_ns += one.lock_wait_ns;
		sum->lock_hold_ns += one.lock_hold_ns;
		sum->allocated_bytes += one.allocated_bytes;
	}
}

/* What devices told late was moved from one state to another (state_clock_move), maybe out of what an earlier edge has
 * counted: then so much is taken from the state that grew most. */
static void keep_growing(const struct thread_times *before, struct thread_times *now)
{
	int most = 0;
	for (int k = 1; k < THREAD_STATES; k++)
		if (now->state_ns[k] - before->state_ns[k] + (UINT64_MAX >> 1) >
			now->state_ns[most] - before->state_ns[most] + (UINT64_MAX >> 1))
			most = k;
	for (int k = 0; k < THREAD_STATES; k++) {
		if (now->state_ns[k] >= before->state_ns[k])
			continue;
		const uint64_t lacks = before->state_ns[k] - now->state_ns[k];
		now->state_ns[k] = before->state_ns[k];
		now->state_ns[most] -= lacks;
	}
}

/* A clock that is read late has run on: what grew by more than the time since the edge before is the next edge's. */
static void keep_within(
	uint64_t most_ns, const struct thread_times *before, struct thread_times *now)
{
	uint64_t grown_ns = 0;
	for (int k = 0; k < THREAD_STATES; k++)
		grown_ns += now->state_ns[k] - before->state_ns[k];
	if (grown_ns <= most_ns)
		return;
	const double share = (double)most_ns / (double)grown_ns;
	for (int k = 0; k < THREAD_STATES; k++)
		now->state_ns[k] =
			before->state_ns[k] +
			(uint64_t)(share * (double)(now->state_ns[k] - before->state_ns[k]));
}

static void sample_queues(const struct monitor *m, uint64_t now_ns, struct edge *e)
{
	struct exchange_queues queues;
	exchange_read_queues(m->exchange, now_ns, &queues);
	e->queues[QUEUE_SAMPLES] = queues.samples;
	e->queues[QUEUE_BATCHES] = queues.batches;
	e->queue_depth[QUEUE_SAMPLES] = queues.samples_depth;
	e->being_read = queues.being_read;
	e->queue_depth[QUEUE_BATCHES] = queues.batches_depth;
	e->queue_depth[QUEUE_UPLOADED] =
		devices_read_queues(m->devices, now_ns, &e->queues[QUEUE_UPLOADED]);
}

/* Every second edge stays, the start (0) among them. */
static void monitor_thin(struct monitor *m)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->count; i += 2)
		m->edges[kept++] = m->edges[i];
	m->count = kept;
	m->window_ns *= 2;
}

/* Where this thread lost its core among the clocks, it looks again. */
static void sample_clocks(const struct monitor *m, struct edge *e)
{
	uint64_t now_ns;
	uint64_t most_ns = LOOK_NS;
	int looks = 0;
	for (int i = 0; i < STAGE_IDS; i++)
		most_ns += (uint64_t)m->stages[i].workers * LOOK_OF_THREAD_NS;
	do {
		*e = (struct edge){0};
		now_ns = clock_now_ns();
		e->t_ns = now_ns - m->start_ns;
		for (int i = 0; m->timed && i < STAGE_IDS; i++)
			sample_stage(&m->stages[i], now_ns, &e->stages[i], &e->accounted[i]);
	} while (clock_now_ns() - now_ns > most_ns && ++looks < LOOKS_MOST);
	if (m->timed)
		sample_queues(m, now_ns, e);
}

/* before: the edge before it, NULL: it is the first. */
static void monitor_take(const struct monitor *m, const struct edge *before, struct edge *e)
{
	sample_clocks(m, e);
	for (int i = 0; m->timed && before && i < STAGE_IDS; i++) {
		keep_growing(&before->stages[i], &e->stages[i]);
		keep_within(m->stages[i].workers * (e->t_ns - before->t_ns), &before->stages[i],
			&e->stages[i]);
	}
	const struct step_progress progress = devices_progress(m->devices);
	e->samples = progress.samples;
	e->batches = progress.batches;
	devices_read_uploads(m->devices, e->uploads);
	rounds_read(m->rounds, e->rounds);
	source_read_counts(m->source, &e->read);
	process_usage_read(&e->usage);
	for (size_t i = 0; i < m->quotas.count; i++)
		cgroup_cpu_use(&m->quotas.of[i], &e->quotas[i]);
	data_store_read(&m->store, &e->store);
}

/* A group that was given its quota while it ran: periods are counted for it now. */
static void see_new_quotas(struct monitor *m, const struct edge *e)
{
	for (size_t i = 0; i < m->quotas.count; i++)
		if (isinf(m->quotas.of[i].cores) &&
			e->quotas[i].periods > m->edges[0].quotas[i].periods)
			(void)cgroup_quota_again(&m->quotas.of[i]);
}

void monitor_sample(struct monitor *m)
{
	if (m->count == EDGES_MAX)
		monitor_thin(m);
	struct edge *e = &m->edges[m->count];
	monitor_take(m, m->count > 0 ? e - 1 : NULL, e);
	m->count++;
	see_new_quotas(m, e);
}

void monitor_peek(const struct monitor *m, struct edge *edge)
{
	monitor_take(m, &m->edges[m->count - 1], edge);
}

uint64_t monitor_next_ns(const struct monitor *m)
{
	const uint64_t last = m->count > 0 ? m->edges[m->count - 1].t_ns : 0;
	/* Edges stay on the grid; one that was missed is left out. */
	return m->start_ns + (last / m->window_ns + 1) * m->window_ns;
}

void monitor_watch_devices(struct monitor *m, const struct config *config, struct measurement *out)
{
	const uint64_t least_ns = NVML_PERIOD_MS * NS_PER_MS;
	struct nvml_watch_options options = {
		.period_ns = m->window_ns > least_ns ? m->window_ns : least_ns,
		.pcie_period_ns = NVML_PCIE_PERIOD_MS * NS_PER_MS,
	};
	for (unsigned i = 0; i < m->devices->count; i++) {
		const struct step_account *const step = stepper_account(m->devices->steppers[i]);
		if (step->described && !step->device.emulated && step->device.bus[0])
			(void)snprintf(options.buses[options.count++], sizeof options.buses[0],
				"%s", step->device.bus);
	}
	struct error err = {0};
	if (options.count == 0)
		return;
	if (!config_on(config, KEY_MEASURE_DEVICE) || !config_on(config, KEY_MEASURE_PROFILER))
		(void)error_set(&err, -ENOTSUP, "measure.%s is off",
			config_on(config, KEY_MEASURE_DEVICE) ? "profiler" : "device");
	else if (!nvml_watch_start(&m->nvml, &options, &err))
		return;
	measurement_note(out, "clocks, power, temperature and throttling of the device unknown: %s",
		err.text);
}

void monitor_stop_watching(struct monitor *m)
{
	if (m->nvml)
		nvml_watch_stop(m->nvml, NVML_STOP_PATIENCE_MS * NS_PER_MS);
}

void monitor_device_window(const struct monitor *m, uint64_t t_ns, struct window *window)
{
	window->device_clock_mhz = window->device_power_w = window->device_temperature_c = NAN;
	if (m->nvml)
		nvml_watch_window(m->nvml, t_ns, window);
}

static const char *monitor_state_name(enum thread_state state)
{
	static const char *const names[THREAD_STATES] = {"starved", "working", "blocked"};
	return names[state];
}

void monitor_describe(const struct monitor *m, char *out, size_t room)
{
	size_t used = 0;
	out[0] = '\0';
	for (int i = 0; i < STAGE_IDS; i++) {
		const struct stage *stage = &m->stages[i];
		unsigned threads[THREAD_STATES] = {0};
		for (unsigned k = 0; stage->meters && k < stage->workers; k++)
			threads[state_clock_state(&stage->meters[k].clock)]++;
		for (int k = 0; k < THREAD_STATES; k++)
			if (threads[k] > 0 && used < room)
				used += (size_t)snprintf(out + used, room - used, "%s%s %u %s",
					used > 0 ? ", " : "", stage->name, threads[k],
					monitor_state_name((enum thread_state)k));
	}
	if (used == 0)
		(void)snprintf(out, room, "states unknown: the profiler is off");
}
