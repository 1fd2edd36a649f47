/* A repetition with something in every member, and the comparison of two. */
#ifndef MLBENCH_TESTS_RECORD_FIXTURE_H
#define MLBENCH_TESTS_RECORD_FIXTURE_H

#include "harness/base/rng.h"
#include "harness/record/measurement.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WINDOWS = 3 };

static void fill_stage(struct stage_measurement *stage, const char *name, struct rng *rng)
{
	(void)snprintf(stage->name, sizeof stage->name, "%s", name);
	stage->workers = 3;
	stage->per_batch = rng_below(rng, 2) == 1;
	stage->device = true;
	stage->items = rng_below(rng, 1000000);
	for (int i = 0; i < THREAD_STATES; i++)
		stage->seconds[i] = rng_uniform(rng);
	stage->cpu_seconds = rng_uniform(rng);
	stage->run_queue_seconds = NAN;
	stage->io_wait_seconds = NAN;
	stage->lock_wait_seconds = rng_uniform(rng);
	stage->lock_held_seconds = rng_uniform(rng);
	stage->slowest = 2;
	stage->slowest_ns = 1e6 * rng_uniform(rng);
	stage->others_ns = NAN;
	stage->capacity = 1e6 * rng_uniform(rng);
	stage->capacity_is_lower_bound = true;
	for (int i = 0; i < 500; i++)
		histogram_add(&stage->service, rng_next(rng) >> (20 + rng_below(rng, 44)),
			1 + (uint32_t)rng_below(rng, 9));
}

static struct device_range make_range(struct rng *rng)
{
	const double low = 1000 * rng_uniform(rng);
	return (struct device_range){low, low + rng_uniform(rng), low + 2};
}

/* Hostile names: quotes, control characters, what is no UTF-8 (becomes '?'), and full to the brim. */
static void fill_device(struct device_measurement *device, unsigned index, struct rng *rng)
{
	device_measurement_init(device);
	device->index = index;
	if (index == 0)
		(void)snprintf(device->name, sizeof device->name,
			"\"GPU\"\\ \n</script>\x1b[31m \u00b5, {\"a\":[1]}");
	else
		memset(device->name, 'x', sizeof device->name - 1);
	(void)snprintf(device->bus, sizeof device->bus, "0000:%02x:00.0", index);
	(void)snprintf(device->precision, sizeof device->precision, "bf16");
	device->emulated = index > 0;
	device->step_seconds = rng_uniform(rng);
	device->upload_bytes = (double)rng_below(rng, 1ULL << 50);
	device->flops_per_step = 1e15 * rng_uniform(rng);
	device->achieved_flops = 1e15 * rng_uniform(rng);
	device->idle_share = rng_uniform(rng);
	device->deterministic = true;
	device->sm_clock_mhz = make_range(rng);
	device->power_w = make_range(rng);
	device->sm_clock_max_mhz = 1980;
	device->ecc_corrected = (double)rng_below(rng, 100);
	device->samples = 30;
	for (size_t i = 0; i < index; i++) {
		(void)snprintf(
			device->throttles[i].reason, NAME_BYTES, "reason \"%u\"", (unsigned)i % 10);
		device->throttles[i].share = rng_uniform(rng);
	}
	device->throttle_count = index;
}

static struct measurement *make_measurement(uint32_t point, uint32_t repeat, uint64_t seed)
{
	struct rng rng;
	struct measurement *m = calloc(1, sizeof *m);
	assert_non_null(m);
	rng_init(&rng, seed, 0);
	m->point = point;
	m->repeat = repeat;
	m->started = 1900000000.125;
	m->wall_seconds = 3 + rng_uniform(&rng);
	m->cut_seconds = rng_uniform(&rng);
	m->warmup_seconds = m->cut_seconds / 2;
	m->measured_seconds = 2;
	m->samples = rng_below(&rng, 1ULL << 50);
	m->throughput = 1000 + rng_uniform(&rng);
	m->step_utilisation = rng_uniform(&rng);
	m->step_wait_share = rng_uniform(&rng);
	m->oversleep_mean_ns = NAN;
	m->oversleep_max_ns = m->loss_first = m->loss_last = NAN;
	m->bytes_read_per_s = 1e9 * rng_uniform(&rng);
	m->disk_bytes_per_s = NAN;
	m->page_cache_share = NAN;
	m->resident_before = 0.25;
	m->after_cold = 0.75;
	m->rss_peak_bytes = 123456789;
	m->accounted = 0.9981234567;
	m->cores_allowed = 24;
	m->cores_busy_outside = NAN;
	m->cores_busy_elsewhere = rng_uniform(&rng);
	m->quota_cores = seed % 2 ? 1.5 : NAN;
	m->quota_used = seed % 2 ? rng_uniform(&rng) : NAN;
	(void)snprintf(
		m->quota_group, sizeof m->quota_group, "%s", seed % 2 ? "/a \"pod\"/job" : "");
	m->throttled_share = seed % 2 ? 0.123456789 : 0;
	m->throttled_seconds = seed % 2 ? 12.3456789 : 0;
	m->steal_share = rng_uniform(&rng);
	store_measurement_init(&m->store, seed % 2 ? "" : "nfs4 is none");
	if (seed % 2) {
		(void)snprintf(m->store.device, sizeof m->store.device, "sda");
		m->store.reads_per_s = 1000 * rng_uniform(&rng);
		m->store.bytes_per_s = 1e8 * rng_uniform(&rng);
		m->store.read_ns = 1e6 * rng_uniform(&rng);
		m->store.busy_share = rng_uniform(&rng);
		(void)snprintf(m->store.bytes_group, sizeof m->store.bytes_group, "/a \"pod\"/job");
		m->store.bytes_limit = 1e8;
		m->store.bytes_used = 9e7;
	}
	network_measurement_init(&m->network, seed % 2 ? "ext4 is none" : "");
	if (seed % 2 == 0) {
		struct network_call *const call = &m->network.calls[m->network.call_count++];
		(void)snprintf(m->network.protocol, sizeof m->network.protocol, "NFSv4.1");
		(void)snprintf(m->network.client, sizeof m->network.client, "kernel");
		(void)snprintf(m->network.server, sizeof m->network.server, "[fd00::1]");
		m->network.seconds = 2 * rng_uniform(&rng);
		m->network.connections = 4;
		m->network.request_bytes = 1048576;
		m->network.receiving_share = rng_uniform(&rng);
		m->network.packet_bytes = 1448;
		(void)snprintf(call->name, sizeof call->name, "READ");
		call->calls = 1000 * rng_uniform(&rng);
		call->retransmits = 0;
		call->queue_ns = NAN;
		call->round_trip_ns = 1e6 * rng_uniform(&rng);
		call->execute_ns = 2e6;
		call->bytes_sent = call->bytes_received = 1e9;
	}
	(void)snprintf(m->engine, sizeof m->engine, "io_uring");
	m->dataset_samples = rng_below(&rng, 1ULL << 40);
	m->cores_reachable = (uint32_t)rng_below(&rng, 256);
	m->system_seconds = rng_uniform(&rng);
	m->switches = 1e5 * rng_uniform(&rng);
	m->batch_bytes = rng_below(&rng, 1ULL << 40);
	m->file_bytes_mean = 1e5 * rng_uniform(&rng);
	m->checksum = 0xfedcba9876543210ULL; /* above what JSON's integers hold */
	m->has_checksum = true;
	m->checksum_samples = 96;
	m->checksum_ranks = 4;
	fill_stage(&m->stages[m->stage_count++], "read", &rng);
	fill_stage(&m->stages[m->stage_count++], "step", &rng);
	m->read_points[m->read_point_count++] = (struct read_point){.depth = 4,
		.seconds = 0.5,
		.files = 205,
		.bytes = 205000,
		.latency_mean_ns = 9.7e6,
		.latency_deviation_ns = 1e5,
		.rate_error = NAN,
		.blocked_share = 0.01};
	m->queues[m->queue_count++] = (struct queue_measurement){.name = "batches",
		.capacity = 4,
		.mean_depth = rng_uniform(&rng),
		.empty_share = 0.125,
		.full_share = NAN};
	m->device_count = seed % 3;
	for (unsigned i = 0; i < m->device_count; i++)
		fill_device(&m->devices[i], i * THROTTLES_MAX, &rng);
	m->windows = calloc(WINDOWS, sizeof *m->windows);
	assert_non_null(m->windows);
	m->window_count = WINDOWS;
	m->window_seconds = 0.1;
	for (size_t i = 0; i < WINDOWS; i++) {
		struct window *w = &m->windows[i];
		w->t = 0.1 * (double)(i + 1);
		w->samples = rng_below(&rng, 1000000);
		w->bytes_read = rng_below(&rng, 1ULL << 40);
		w->resident_bytes = 1 << 20;
		w->file_bytes = rng_below(&rng, 1 << 20);
		w->heap_used_bytes = 1e6 * rng_uniform(&rng);
		w->heap_free_bytes = NAN;
		w->device_clock_mhz =
			m->device_count > 0 ? (float)(1000 + rng_below(&rng, 1000)) + 0.1F : NAN;
		w->device_power_w = w->device_temperature_c = NAN;
		for (size_t stage = 0; stage < m->stage_count; stage++) {
			for (size_t s = 0; s < THREAD_STATES; s++)
				w->stage_seconds[stage][s] = rng_uniform(&rng);
			w->stage_cpu[stage] = NAN;
			w->stage_allocated[stage] = rng_below(&rng, 1ULL << 40);
		}
		for (size_t stage = 0; stage < m->stage_count; stage++)
			w->stage_run_queue[stage] = rng_uniform(&rng);
		w->own_cpu = rng_uniform(&rng);
		w->machine_cpu = w->machine_time = 1 + rng_uniform(&rng);
		w->machine_steal = NAN;
		w->quota_cores = w->quota_used = w->quota_periods = w->quota_throttled =
			w->throttled_seconds = seed % 2 ? rng_uniform(&rng) : NAN;
		w->queue_depth[0] = (uint32_t)rng_below(&rng, 5);
	}
	(void)snprintf(
		m->notes[m->note_count++], NOTE_BYTES, "a note with \"quotes\", \\ and \u00b5");
	return m;
}

static void assert_same_real(double a, double b)
{
	if (isnan(a) || isnan(b))
		assert_true(isnan(a) && isnan(b));
	else
		assert_true(fabs(a - b) <= 1e-14 * fabs(a));
}

static void assert_same_stage(const struct stage_measurement *a, const struct stage_measurement *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->workers, b->workers);
	assert_int_equal(a->per_batch, b->per_batch);
	assert_int_equal(a->device, b->device);
	assert_int_equal(a->items, b->items);
	for (int i = 0; i < THREAD_STATES; i++)
		assert_same_real(a->seconds[i], b->seconds[i]);
	assert_same_real(a->cpu_seconds, b->cpu_seconds);
	assert_same_real(a->run_queue_seconds, b->run_queue_seconds);
	assert_same_real(a->io_wait_seconds, b->io_wait_seconds);
	assert_same_real(a->lock_wait_seconds, b->lock_wait_seconds);
	assert_same_real(a->lock_held_seconds, b->lock_held_seconds);
	assert_int_equal(a->slowest, b->slowest);
	assert_same_real(a->slowest_ns, b->slowest_ns);
	assert_same_real(a->others_ns, b->others_ns);
	assert_same_real(a->capacity, b->capacity);
	assert_int_equal(a->capacity_is_lower_bound, b->capacity_is_lower_bound);
	assert_memory_equal(&a->service, &b->service, sizeof a->service);
}

static void assert_same_network(
	const struct network_measurement *a, const struct network_measurement *b)
{
	assert_string_equal(a->protocol, b->protocol);
	assert_string_equal(a->client, b->client);
	assert_string_equal(a->server, b->server);
	assert_string_equal(a->why, b->why);
	assert_same_real(a->seconds, b->seconds);
	assert_int_equal(a->connections, b->connections);
	assert_same_real(a->request_bytes, b->request_bytes);
	assert_same_real(a->idle_round_trip_ns, b->idle_round_trip_ns);
	assert_same_real(a->wire_round_trip_ns, b->wire_round_trip_ns);
	assert_same_real(a->link_bytes_per_s, b->link_bytes_per_s);
	assert_same_real(a->receiving_share, b->receiving_share);
	assert_same_real(a->packet_bytes, b->packet_bytes);
	assert_int_equal(a->call_count, b->call_count);
	for (size_t i = 0; i < a->call_count; i++) {
		assert_string_equal(a->calls[i].name, b->calls[i].name);
		assert_same_real(a->calls[i].calls, b->calls[i].calls);
		assert_same_real(a->calls[i].retransmits, b->calls[i].retransmits);
		assert_same_real(a->calls[i].queue_ns, b->calls[i].queue_ns);
		assert_same_real(a->calls[i].round_trip_ns, b->calls[i].round_trip_ns);
		assert_same_real(a->calls[i].execute_ns, b->calls[i].execute_ns);
		assert_same_real(a->calls[i].bytes_sent, b->calls[i].bytes_sent);
		assert_same_real(a->calls[i].bytes_received, b->calls[i].bytes_received);
	}
}

static void assert_same_range(const struct device_range *a, const struct device_range *b)
{
	assert_same_real(a->low, b->low);
	assert_same_real(a->mean, b->mean);
	assert_same_real(a->high, b->high);
}

static void assert_same_device(
	const struct device_measurement *a, const struct device_measurement *b)
{
	assert_int_equal(a->index, b->index);
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->bus, b->bus);
	assert_string_equal(a->precision, b->precision);
	assert_int_equal(a->emulated, b->emulated);
	assert_int_equal(a->deterministic, b->deterministic);
	assert_same_real(a->step_seconds, b->step_seconds);
	assert_same_real(a->upload_seconds, b->upload_seconds);
	assert_same_real(a->sync_seconds, b->sync_seconds);
	assert_same_real(a->idle_share, b->idle_share);
	assert_same_real(a->launch_ns, b->launch_ns);
	assert_same_real(a->upload_bytes, b->upload_bytes);
	assert_same_real(a->flops_per_step, b->flops_per_step);
	assert_same_real(a->achieved_flops, b->achieved_flops);
	assert_same_real(a->peak_flops, b->peak_flops);
	assert_same_real(a->model_utilisation, b->model_utilisation);
	assert_same_real(a->clock_map_error_ns, b->clock_map_error_ns);
	assert_same_real(a->gradient_norm, b->gradient_norm);
	assert_same_range(&a->sm_clock_mhz, &b->sm_clock_mhz);
	assert_same_range(&a->memory_clock_mhz, &b->memory_clock_mhz);
	assert_same_range(&a->power_w, &b->power_w);
	assert_same_range(&a->pcie_to_device_bytes_per_s, &b->pcie_to_device_bytes_per_s);
	assert_same_real(a->sm_clock_max_mhz, b->sm_clock_max_mhz);
	assert_same_real(a->busy_share, b->busy_share);
	assert_same_real(a->ecc_corrected, b->ecc_corrected);
	assert_same_real(a->ecc_uncorrected, b->ecc_uncorrected);
	assert_same_real(a->samples, b->samples);
	assert_int_equal(a->throttle_count, b->throttle_count);
	for (size_t i = 0; i < a->throttle_count; i++) {
		assert_string_equal(a->throttles[i].reason, b->throttles[i].reason);
		assert_same_real(a->throttles[i].share, b->throttles[i].share);
	}
}

static void assert_same(const struct measurement *a, const struct measurement *b)
{
	assert_int_equal(a->point, b->point);
	assert_int_equal(a->repeat, b->repeat);
	assert_int_equal(a->status, b->status);
	assert_string_equal(a->error, b->error);
	assert_same_real(a->started, b->started);
	assert_same_real(a->wall_seconds, b->wall_seconds);
	assert_same_real(a->warmup_seconds, b->warmup_seconds);
	assert_same_real(a->throughput, b->throughput);
	assert_same_real(a->oversleep_mean_ns, b->oversleep_mean_ns);
	assert_same_real(a->page_cache_share, b->page_cache_share);
	assert_same_real(a->after_cold, b->after_cold);
	assert_same_real(a->accounted, b->accounted);
	assert_int_equal(a->cores_allowed, b->cores_allowed);
	assert_same_real(a->cores_busy_outside, b->cores_busy_outside);
	assert_same_real(a->cores_busy_elsewhere, b->cores_busy_elsewhere);
	assert_same_real(a->steal_share, b->steal_share);
	assert_string_equal(a->quota_group, b->quota_group);
	assert_same_real(a->quota_cores, b->quota_cores);
	assert_same_real(a->quota_used, b->quota_used);
	assert_same_real(a->throttled_share, b->throttled_share);
	assert_same_real(a->throttled_seconds, b->throttled_seconds);
	assert_same_real(a->file_bytes_mean, b->file_bytes_mean);
	assert_string_equal(a->store.device, b->store.device);
	assert_string_equal(a->store.why, b->store.why);
	assert_string_equal(a->store.bytes_group, b->store.bytes_group);
	assert_same_real(a->store.read_ns, b->store.read_ns);
	assert_same_real(a->store.busy_share, b->store.busy_share);
	assert_same_real(a->store.bytes_limit, b->store.bytes_limit);
	assert_same_real(a->store.bytes_used, b->store.bytes_used);
	assert_same_real(a->store.requests_limit, b->store.requests_limit);
	assert_same_network(&a->network, &b->network);
	assert_string_equal(a->engine, b->engine);
	assert_true(a->dataset_samples == b->dataset_samples);
	assert_true(a->batch_bytes == b->batch_bytes);
	assert_true(a->cores_reachable == b->cores_reachable);
	assert_same_real(a->system_seconds, b->system_seconds);
	assert_same_real(a->switches, b->switches);
	assert_int_equal(a->samples, b->samples);
	assert_int_equal(a->rss_peak_bytes, b->rss_peak_bytes);
	assert_true(a->checksum == b->checksum && a->has_checksum == b->has_checksum);
	assert_true(a->checksum_samples == b->checksum_samples &&
		    a->checksum_ranks == b->checksum_ranks);
	assert_int_equal(a->stage_count, b->stage_count);
	for (size_t i = 0; i < a->stage_count; i++)
		assert_same_stage(&a->stages[i], &b->stages[i]);
	assert_int_equal(a->queue_count, b->queue_count);
	assert_string_equal(a->queues[0].name, b->queues[0].name);
	assert_same_real(a->queues[0].mean_depth, b->queues[0].mean_depth);
	assert_same_real(a->queues[0].full_share, b->queues[0].full_share);
	assert_int_equal(a->read_point_count, b->read_point_count);
	for (size_t i = 0; i < a->read_point_count; i++) {
		const struct read_point *const p = &a->read_points[i];
		const struct read_point *const q = &b->read_points[i];
		assert_int_equal(p->depth, q->depth);
		assert_int_equal(p->files, q->files);
		assert_int_equal(p->bytes, q->bytes);
		assert_same_real(p->seconds, q->seconds);
		assert_same_real(p->latency_mean_ns, q->latency_mean_ns);
		assert_same_real(p->latency_deviation_ns, q->latency_deviation_ns);
		assert_same_real(p->rate_error, q->rate_error);
		assert_same_real(p->blocked_share, q->blocked_share);
	}
	assert_int_equal(a->device_count, b->device_count);
	for (size_t i = 0; i < a->device_count; i++)
		assert_same_device(&a->devices[i], &b->devices[i]);
	assert_int_equal(a->window_count, b->window_count);
	for (size_t i = 0; i < a->window_count; i++) {
		assert_same_real(a->windows[i].t, b->windows[i].t);
		assert_int_equal(a->windows[i].samples, b->windows[i].samples);
		assert_same_real(
			a->windows[i].stage_seconds[1][2], b->windows[i].stage_seconds[1][2]);
		assert_same_real(a->windows[i].stage_cpu[1], b->windows[i].stage_cpu[1]);
		assert_int_equal(a->windows[i].queue_depth[0], b->windows[i].queue_depth[0]);
		assert_true(a->windows[i].file_bytes == b->windows[i].file_bytes);
		assert_true(a->windows[i].resident_bytes == b->windows[i].resident_bytes);
		assert_same_real(a->windows[i].heap_used_bytes, b->windows[i].heap_used_bytes);
		assert_same_real(a->windows[i].heap_free_bytes, b->windows[i].heap_free_bytes);
		assert_same_real((double)a->windows[i].device_clock_mhz,
			(double)b->windows[i].device_clock_mhz);
		assert_true(isnan(b->windows[i].device_power_w));
		assert_same_real(
			a->windows[i].stage_run_queue[1], b->windows[i].stage_run_queue[1]);
		assert_same_real(a->windows[i].own_cpu, b->windows[i].own_cpu);
		assert_same_real(a->windows[i].machine_cpu, b->windows[i].machine_cpu);
		assert_same_real(a->windows[i].machine_time, b->windows[i].machine_time);
		assert_true(isnan(b->windows[i].machine_steal));
		assert_same_real(a->windows[i].quota_cores, b->windows[i].quota_cores);
		assert_same_real(a->windows[i].quota_used, b->windows[i].quota_used);
		assert_same_real(a->windows[i].quota_periods, b->windows[i].quota_periods);
		assert_same_real(a->windows[i].quota_throttled, b->windows[i].quota_throttled);
		assert_same_real(a->windows[i].throttled_seconds, b->windows[i].throttled_seconds);
		assert_true(a->windows[i].stage_allocated[1] == b->windows[i].stage_allocated[1]);
	}
	assert_int_equal(a->note_count, b->note_count);
	assert_string_equal(a->notes[0], b->notes[0]);
}

#endif
