/* Repetitions of one point merged into its summary: medians and an interval for the throughput,
 * shares weighted by thread time, histograms added. */
#include "harness/analyze/summary.h"

#include "harness/analyze/diagnose.h"
#include "harness/analyze/rates.h"
#include "harness/analyze/statistics.h"
#include "harness/analyze/verdict.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the summary ------------------------------------------------------------------------------ */

static const double CONFIDENCE_LEVEL = 0.95;
static const double WORKING_MIN = 0.05; /* of a stage's time, for its split to be told */

/* The repetitions that count. */
struct chosen {
	const struct measurement **repeats; /* owned */
	size_t count;
	enum point_status status;
	struct regimes
		regimes; /* of those that count by their status: count 1, or some fell away */
};

static void summary_add_note(struct point_summary *out, const char *text)
{
	for (size_t i = 0; i < out->note_count; i++)
		if (strcmp(out->notes[i], text) == 0)
			return;
	if (out->note_count < NOTES_MAX)
		(void)snprintf(out->notes[out->note_count++], NOTE_BYTES, "%s", text);
}

static int choose_repeats(
	struct chosen *chosen, const struct measurement *const *repeats, size_t count)
{
	chosen->repeats = calloc(count, sizeof(const struct measurement *));
	if (!chosen->repeats)
		return -ENOMEM;
	size_t with_status[MEASUREMENT_STATUSES] = {0};
	for (size_t i = 0; i < count; i++)
		with_status[repeats[i]->status]++;
	chosen->status = point_status_of(with_status);
	for (size_t i = 0; i < count; i++)
		if (point_counts(chosen->status, repeats[i]->status))
			chosen->repeats[chosen->count++] = repeats[i];
	regimes_find(chosen->repeats, chosen->count, &chosen->regimes);
	return 0;
}

/* Figures are of the state that lasts; a note names each of the others. */
static void summary_keep_lasting(struct point_summary *out, struct chosen *chosen)
{
	const struct regimes *const regimes = &chosen->regimes;
	char text[NOTE_BYTES];
	char rate[UNITS_BYTES];
	size_t kept = 0;
	for (size_t i = 0; i < regimes->count && regimes->count > 1; i++) {
		const struct regime *r = &regimes->of[i];
		const uint32_t first = chosen->repeats[r->first]->repeat;
		const uint32_t last = chosen->repeats[r->last]->repeat;
		if (r->lasts)
			continue;
		if (first == last)
			(void)snprintf(text, sizeof text, "repetition %u", first);
		else
			(void)snprintf(text, sizeof text, "repetitions %u to %u", first, last);
		const size_t used = strlen(text);
		(void)snprintf(text + used, sizeof text - used,
			": %s samples/s, which did not last: left out of the figures",
			units_format_count(r->rate, rate));
		summary_add_note(out, text);
	}
	for (size_t i = 0; i < chosen->count; i++)
		if (regimes_last(regimes, i))
			chosen->repeats[kept++] = chosen->repeats[i];
	out->left_out += chosen->count - kept;
	chosen->count = kept;
}

static void summary_note_left_out(struct point_summary *out, const struct chosen *chosen,
	const struct measurement *const *repeats, size_t count)
{
	static const char *const what[] = {"", "was unsteady", "failed", "was interrupted"};
	for (size_t i = 0; i < count && chosen->count > 0; i++) {
		const struct measurement *m = repeats[i];
		if (point_counts(chosen->status, m->status))
			continue;
		out->left_out++;
		char text[NOTE_BYTES];
		(void)snprintf(text, sizeof text, "repetition %u %s and is left out%s%.180s",
			m->repeat, what[m->status], m->error[0] ? ": " : "", m->error);
		summary_add_note(out, text);
	}
}

/* The verdict does without a ceiling of the other kind. */
static void summary_note_pages(struct point_summary *out, const struct point_facts *facts)
{
	char text[NOTE_BYTES];
	(void)snprintf(text, sizeof text,
		"storage ceiling: not compared, it was read into %s and this run into %s; 'mlbench probe --fresh' with the "
		"same read.huge_pages measures it",
		facts->storage_pages, out->read_pages);
	if (facts->storage_bytes_per_s > 0 &&
		memory_pages_differ(facts->storage_pages, out->read_pages))
		summary_add_note(out, text);
}

/* Mean of a member over the repeats where it is a number. */
static double mean_member(const struct chosen *chosen, size_t offset)
{
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < chosen->count; i++) {
		double value;
		memcpy(&value, (const char *)chosen->repeats[i] + offset, sizeof value);
		if (isnan(value))
			continue;
		sum += value;
		known++;
	}
	return known > 0 ? sum / (double)known : NAN;
}

#define MEAN(chosen, member) mean_member(chosen, offsetof(struct measurement, member))

/* Where there is no limit, the figure is 0 or NAN. */
static bool same_store(const struct store_measurement *a, const struct store_measurement *b)
{
	return strcmp(a->device, b->device) == 0 &&
	       fmax(a->bytes_limit, 0) == fmax(b->bytes_limit, 0) &&
	       fmax(a->requests_limit, 0) == fmax(b->requests_limit, 0);
}

/* Disk and limits must be the same in all repetitions; otherwise there are none. */
static void merge_store(struct point_summary *out, const struct chosen *chosen)
{
	static const size_t rates[] = {offsetof(struct store_measurement, reads_per_s),
		offsetof(struct store_measurement, bytes_per_s),
		offsetof(struct store_measurement, read_ns),
		offsetof(struct store_measurement, busy_share),
		offsetof(struct store_measurement, bytes_used),
		offsetof(struct store_measurement, requests_used)};
	store_measurement_init(&out->store, "nothing was measured");
	for (size_t i = 0; i < chosen->count; i++) {
		if (i == 0)
			out->store = chosen->repeats[0]->store;
		else if (!same_store(&out->store, &chosen->repeats[i]->store)) {
			store_measurement_init(
				&out->store, "the disk or its limits changed between repetitions");
			return;
		}
	}
	for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
		const double mean =
			mean_member(chosen, offsetof(struct measurement, store) + rates[k]);
		memcpy((char *)&out->store + rates[k], &mean, sizeof mean);
	}
}

static bool same_network(const struct network_measurement *a, const struct network_measurement *b)
{
	return strcmp(a->protocol, b->protocol) == 0 && strcmp(a->client, b->client) == 0 &&
	       strcmp(a->server, b->server) == 0;
}

/* A repetition without counts adds neither calls nor seconds. */
static void merge_network(struct point_summary *out, const struct chosen *chosen)
{
	struct network_measurement *const sum = &out->network;
	size_t counted = 0;
	network_measurement_init(sum, "nothing was measured");
	for (size_t i = 0; i < chosen->count; i++) {
		const struct network_measurement *one = &chosen->repeats[i]->network;
		if (!same_network(one, &chosen->repeats[0]->network)) {
			network_measurement_init(sum, "the server changed between repetitions");
			return;
		}
		if (i == 0 || (counted == 0 && !one->why[0])) {
			*sum = *one;
			sum->call_count = 0;
			sum->seconds = 0;
		}
		if (one->why[0] || !(one->seconds > 0))
			continue;
		counted++;
		sum->seconds += one->seconds;
		for (size_t k = 0; k < one->call_count; k++)
			network_add_call(sum, &one->calls[k]);
	}
	if (!sum->protocol[0])
		return;
	sum->idle_round_trip_ns = MEAN(chosen, network.idle_round_trip_ns);
	sum->wire_round_trip_ns = MEAN(chosen, network.wire_round_trip_ns);
	sum->receiving_share = MEAN(chosen, network.receiving_share);
}

static void merge_checkpoints(struct point_summary *out, const struct chosen *chosen)
{
	struct checkpoint_measurement *const sum = &out->checkpoint;
	double measured = 0;
	*sum = (struct checkpoint_measurement){0};
	for (size_t i = 0; i < chosen->count; i++) {
		const struct measurement *const m = chosen->repeats[i];
		const struct checkpoint_measurement *const one = &m->checkpoint[0];
		measured += m->measured_seconds;
		if (m->checkpoint_count == 0 || one->outside || one->count == 0)
			continue;
		const struct checkpoint_measurement before = *sum;
		*sum = *one;
		sum->count += before.count;
		sum->stall_max_ns = fmax(sum->stall_max_ns, before.stall_max_ns);
		sum->stall_seconds += before.stall_seconds;
		sum->wait_seconds += before.wait_seconds;
		sum->copy_seconds += before.copy_seconds;
		sum->write_seconds += before.write_seconds;
		sum->sync_seconds += before.sync_seconds;
		sum->rename_seconds += before.rename_seconds;
		sum->verify_seconds += before.verify_seconds;
	}
	out->checkpoint_share =
		sum->count > 0 && measured > 0 ? sum->stall_seconds / measured : NAN;
}

static void merge_evaluations(struct point_summary *out, const struct chosen *chosen)
{
	struct evaluation_measurement *const sum = &out->evaluation;
	double measured = 0;
	*sum = (struct evaluation_measurement){0};
	for (size_t i = 0; i < chosen->count; i++) {
		const struct measurement *const m = chosen->repeats[i];
		const struct evaluation_measurement *const one = &m->evaluation[0];
		measured += m->measured_seconds;
		if (m->evaluation_count == 0 || one->outside || one->count == 0)
			continue;
		const struct evaluation_measurement before = *sum;
		*sum = *one;
		sum->count += before.count;
		sum->samples += before.samples;
		sum->bad_samples += before.bad_samples;
		sum->stall_max_ns = fmax(sum->stall_max_ns, before.stall_max_ns);
		sum->stall_seconds += before.stall_seconds;
		sum->starved_seconds += before.starved_seconds;
		sum->working_seconds += before.working_seconds;
		if (before.count > 0 && strcmp(before.checksum, sum->checksum) != 0)
			sum->checksum[0] = '\0';
	}
	out->evaluation_share =
		sum->count > 0 && measured > 0 ? sum->stall_seconds / measured : NAN;
}

static void merge_restarts(struct point_summary *out, const struct chosen *chosen)
{
	double measured = 0;
	out->restarts = 0;
	out->restart_seconds = 0;
	for (size_t i = 0; i < chosen->count; i++) {
		const struct measurement *const m = chosen->repeats[i];
		measured += m->measured_seconds;
		out->restarts += m->restarts;
		out->restart_seconds += m->restarts > 0 ? m->restart_seconds : 0;
	}
	out->restart_share = measured > 0 ? out->restart_seconds / measured : 0;
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void add_storage(struct point_summary *out, const struct measurement *m, size_t repeats)
{
	/* CPU time is counted between windows, throughput perhaps over whole periods; so are requests, whose
	 * samples may be waiting for the step yet. */
	const struct stage_measurement *const read = measurement_stage(m, STAGE_READ);
	const double samples = m->throughput * measurement_counted_seconds(m) * (double)repeats;
	const bool large = m->facts.reads_large && samples > 0;
	out->reads_per_sample += large ? measurement_reads(m) / samples : 1 / (double)repeats;
	if (m->storage_bytes == 0 || !(samples > 0))
		return;
	out->storage.files = (double)m->storage_files;
	out->storage.bytes = (double)m->storage_bytes;
	if (read && read->items > 0)
		out->storage.requests_per_sample +=
			(double)m->read_requests / (double)read->items / (double)repeats;
	out->storage.cpu_us_per_sample += 1e6 * m->cpu_seconds / samples;
}

/* Other ranks of the node are no foreign load: what they use is of the same job. */
static void leave_out_siblings(struct point_summary *out, const struct chosen *chosen)
{
	double cores = 0;
	for (size_t i = 0; i < chosen->count; i++) {
		const struct measurement *const m = chosen->repeats[i];
		if (m->ranks_count > 0 && m->ranks[0].siblings_cores > 0)
			cores += m->ranks[0].siblings_cores / (double)chosen->count;
	}
	const double here = fmin(cores, fmax(out->cores_busy_outside, 0));
	if (!(cores > 0))
		return;
	out->cores_busy_outside -= here;
	out->cores_busy_elsewhere = fmax(out->cores_busy_elsewhere - (cores - here), 0);
}

static void merge_scalars(
	struct point_summary *out, const struct chosen *chosen, const struct point_facts *facts)
{
	out->step_utilisation = MEAN(chosen, step_utilisation);
	out->accelerator_utilisation = MEAN(chosen, accelerator_utilisation);
	out->step_wait_share = MEAN(chosen, step_wait_share);
	out->bytes_read_per_s = MEAN(chosen, bytes_read_per_s);
	out->page_cache_share = MEAN(chosen, page_cache_share);
	out->cores_busy_outside = MEAN(chosen, cores_busy_outside);
	out->throttled_share = MEAN(chosen, throttled_share);
	out->cores_busy_elsewhere = MEAN(chosen, cores_busy_elsewhere);
	leave_out_siblings(out, chosen);
	out->steal_share = MEAN(chosen, steal_share);
	out->cores_allowed = facts->cores;
	out->resident_before = MEAN(chosen, resident_before);
	(void)measurement_cold_ended(
		MEAN(chosen, after_cold), out->page_cache_share, out->cold_ended);
	merge_store(out, chosen);
	merge_network(out, chosen);
	merge_checkpoints(out, chosen);
	merge_evaluations(out, chosen);
	merge_restarts(out, chosen);
	out->system_share = MEAN(chosen, system_seconds) / MEAN(chosen, cpu_seconds);
	out->switches = MEAN(chosen, switches) / MEAN(chosen, cpu_seconds);
	out->quota_cores = out->quota_others = NAN;
	double throttled = -1;
	out->accounted = NAN;
	out->bad_share = NAN;
	for (size_t i = 0; i < chosen->count; i++) {
		const struct measurement *m = chosen->repeats[i];
		out->accounted = fmin(out->accounted, m->accounted); /* fmin passes over NAN */
		out->cores_used +=
			m->cpu_seconds / measurement_counted_seconds(m) / (double)chosen->count;
		if (m->quota_cores > 0 && fmax(m->throttled_share, 0) > throttled) {
			throttled = fmax(m->throttled_share, 0);
			out->quota_cores = m->quota_cores;
			out->quota_others =
				m->quota_used - m->cpu_seconds / measurement_counted_seconds(m);
			memcpy(out->quota_group, m->quota_group, sizeof out->quota_group);
		}
		if (m->cores_allowed > 0)
			out->cores_allowed = m->cores_allowed;
		if (m->cores_reachable > out->cores_reachable)
			out->cores_reachable = m->cores_reachable;
		out->epochs = larger_of(out->epochs, m->epochs);
		if (!out->engine[0])
			memcpy(out->engine, m->engine, sizeof out->engine);
		if (!out->read_pages[0])
			memcpy(out->read_pages, m->read_pages, sizeof out->read_pages);
		out->data_bytes =
			fmax(out->data_bytes, (double)m->dataset_samples * m->file_bytes_mean);
		out->data_samples = fmax(out->data_samples, (double)m->dataset_samples);
		out->batch_bytes = fmax(out->batch_bytes, (double)m->batch_bytes);
		add_storage(out, m, chosen->count);
		out->rss_peak_bytes = larger_of(out->rss_peak_bytes, m->rss_peak_bytes);
		out->pool_bytes = larger_of(out->pool_bytes, m->pool_bytes);
		out->bad_samples = larger_of(out->bad_samples, m->bad_samples);
		out->bad_share = fmax(out->bad_share, m->bad_share);
	}
}

/* Sums of one stage over the repeats. */
struct stage_sums {
	double seconds[THREAD_STATES];
	double cpu, run_queue, io_wait, lock_wait, lock_held, measured;
	double *capacities; /* room for one per repeat */
	size_t capacity_count;
};

static void add_stage_sums(struct stage_sums *sums, struct stage_summary *out,
	const struct stage_measurement *stage, double measured)
{
	for (size_t s = 0; s < THREAD_STATES; s++)
		sums->seconds[s] += stage->seconds[s];
	sums->cpu += stage->cpu_seconds;
	sums->run_queue += stage->run_queue_seconds;
	sums->io_wait += stage->io_wait_seconds;
	sums->lock_wait += stage->lock_wait_seconds;
	sums->lock_held += stage->lock_held_seconds;
	sums->measured += measured;
	if (!isnan(stage->capacity))
		sums->capacities[sums->capacity_count++] = stage->capacity;
	out->capacity_is_lower_bound |= stage->capacity_is_lower_bound;
	out->cores = stage->cores > out->cores ? stage->cores : out->cores;
	histogram_merge(&out->service, &stage->service);
}

/* NAN stays NAN. */
static double at_most(double share, double most)
{
	return share > most ? most : share;
}

static void merge_stage(struct stage_summary *out, const struct chosen *chosen,
	const struct stage_measurement *first, double *capacities)
{
	memcpy(out->name, first->name, sizeof out->name);
	out->workers = first->workers;
	out->per_batch = first->per_batch;
	out->device = first->device;
	struct stage_sums sums = {.capacities = capacities};
	for (size_t i = 0; i < chosen->count; i++) {
		const struct stage_measurement *stage =
			measurement_stage_named(chosen->repeats[i], first->name);
		if (stage)
			add_stage_sums(
				&sums, out, stage, measurement_counted_seconds(chosen->repeats[i]));
	}
	const double working = sums.seconds[THREAD_WORKING];
	const double total = sums.seconds[THREAD_STARVED] + working + sums.seconds[THREAD_BLOCKED];
	out->busy = total > 0 ? working / total : NAN;
	out->starved = total > 0 ? sums.seconds[THREAD_STARVED] / total : NAN;
	out->blocked = total > 0 ? sums.seconds[THREAD_BLOCKED] / total : NAN;
	/* The kernel counts a thread's time whatever its state: of a stage that hardly worked the
	 * ratio would tell about its waking up only. */
	const bool tells = working > WORKING_MIN * total && !out->device;
	out->cpu = tells ? at_most(sums.cpu / working, 1) : NAN;
	/* A thread is on a core, ready, or asleep; run-queue time beyond the working time belongs to
	 * wake-ups from another state. */
	out->run_queue =
		tells ? at_most(sums.run_queue / working, isnan(out->cpu) ? 1 : 1 - out->cpu) : NAN;
	out->queued = total > 0 ? at_most(sums.run_queue / total, 1) : NAN;
	out->io_wait = tells ? at_most(sums.io_wait / working, 1) : NAN;
	out->lock_wait = tells ? at_most(sums.lock_wait / working, 1) : NAN;
	out->lock_busy = tells ? at_most(sums.lock_held / sums.measured, 1) : NAN;
	out->capacity = statistics_median(capacities, sums.capacity_count);
}

static const struct queue_measurement *find_queue(const struct measurement *m, const char *name)
{
	for (size_t i = 0; i < m->queue_count; i++)
		if (strcmp(m->queues[i].name, name) == 0)
			return &m->queues[i];
	return NULL;
}

/* Means weighted by the measured time. */
static void merge_queue(struct queue_measurement *out, const struct chosen *chosen,
	const struct queue_measurement *first)
{
	*out = *first;
	out->mean_depth = out->empty_share = out->full_share = 0;
	double weight = 0;
	for (size_t i = 0; i < chosen->count; i++) {
		const struct queue_measurement *queue = find_queue(chosen->repeats[i], first->name);
		const double seconds = chosen->repeats[i]->measured_seconds;
		if (!queue)
			continue;
		out->mean_depth += queue->mean_depth * seconds;
		out->empty_share += queue->empty_share * seconds;
		out->full_share += queue->full_share * seconds;
		weight += seconds;
	}
	out->mean_depth = weight > 0 ? out->mean_depth / weight : NAN;
	out->empty_share = weight > 0 ? out->empty_share / weight : NAN;
	out->full_share = weight > 0 ? out->full_share / weight : NAN;
}

/* A repetition in which fewer than two steps ended has no throughput; its note says so. */
static void merge_throughput(struct point_summary *out, const struct chosen *chosen, uint64_t seed)
{
	for (size_t i = 0; i < chosen->count; i++)
		if (!isnan(chosen->repeats[i]->throughput))
			out->repeats[out->repeat_count++] = chosen->repeats[i]->throughput;
	out->median = statistics_median(out->repeats, out->repeat_count);
	out->ci95 = statistics_bootstrap_median(
		out->repeats, out->repeat_count, CONFIDENCE_LEVEL, seed);
}

/* Stages and queues in the order of the first repetition that counts; scratch: one double per
 * repetition. */
static void merge_parts(struct point_summary *out, const struct chosen *chosen, double *scratch)
{
	if (chosen->count == 0)
		return;
	const struct measurement *first = chosen->repeats[0];
	out->stage_count = first->stage_count;
	for (size_t i = 0; i < first->stage_count; i++)
		merge_stage(&out->stages[i], chosen, &first->stages[i], scratch);
	out->queue_count = first->queue_count;
	for (size_t i = 0; i < first->queue_count; i++)
		merge_queue(&out->queues[i], chosen, &first->queues[i]);
	out->device_count = device_summaries(chosen->repeats, chosen->count, out->devices);
	for (size_t i = 0; i < chosen->count; i++)
		for (size_t n = 0; n < chosen->repeats[i]->note_count; n++)
			summary_add_note(out, chosen->repeats[i]->notes[n]);
}

struct flight point_facts_flight(const struct point_facts *facts)
{
	if (facts->by_workers)
		return (struct flight){"decode.workers", facts->read_threads, 1};
	if (facts->reads_block)
		return (struct flight){"read.threads", facts->read_threads, 1};
	return (struct flight){"read.depth", facts->read_depth, facts->read_threads};
}

struct workload_facts summary_facts(const struct measurement *const *repeats, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (repeats[i]->status != MEASUREMENT_FAILED)
			return repeats[i]->facts;
	return repeats[0]->facts;
}

int summary_of_point(const struct measurement *const *repeats, size_t count,
	const struct point_facts *facts, struct point_summary *out, struct error *err)
{
	*out = (struct point_summary){
		.id = repeats[0]->point, .facts = summary_facts(repeats, count)};
	struct chosen chosen = {0};
	double *scratch = calloc(count, sizeof *scratch);
	out->repeats = calloc(count, sizeof *out->repeats);
	const int code =
		!scratch || !out->repeats ? -ENOMEM : choose_repeats(&chosen, repeats, count);
	if (!code) {
		out->status = chosen.status;
		summary_keep_lasting(out, &chosen);
		for (size_t i = 0; i < count && !out->error[0]; i++)
			if (repeats[i]->status == MEASUREMENT_FAILED)
				memcpy(out->error, repeats[i]->error, sizeof out->error);
		merge_throughput(out, &chosen, facts->seed);
		merge_scalars(out, &chosen, facts);
		const struct foreign_load load = {.cores = out->cores_busy_outside,
			.own_cores = out->cores_used,
			.steal_share = out->steal_share,
			.usable = out->cores_allowed};
		(void)foreign_load_contaminates(&load, out->contaminated);
		merge_parts(out, &chosen, scratch);
		if (!facts->any_order)
			out->same_results = device_same_results(chosen.repeats, chosen.count);
		summary_note_left_out(out, &chosen, repeats, count);
		summary_note_pages(out, facts);
		const struct point_facts measured = point_facts_measured(out, facts);
		if (out->facts.step_emulated && facts->batch_size > 0)
			out->step_declared_seconds =
				measured.overhead_step_ns * 1e-9 / facts->batch_size;
		const struct evidence_base base = {.point = out,
			.repeats = chosen.repeats,
			.count = chosen.count,
			.facts = &measured};
		verdict_judge(&base, &out->verdict);
	}
	free(scratch);
	free(chosen.repeats);
	if (code) {
		point_summary_release(out);
		return error_set(err, code, "out of memory");
	}
	return 0;
}

const struct stage_summary *summary_stage(const struct point_summary *point, const char *name)
{
	for (size_t i = 0; i < point->stage_count; i++)
		if (strcmp(point->stages[i].name, name) == 0)
			return &point->stages[i];
	return NULL;
}

double summary_step_takes(const struct point_summary *point, const struct stage_summary *step)
{
	if (point->facts.step_null)
		return NAN;
	return step->capacity / (1 + step->capacity * point->step_declared_seconds);
}

void point_summary_release(struct point_summary *point)
{
	free(point->repeats);
	point->repeats = NULL;
	point->repeat_count = 0;
}

/* --- whether it is enough --------------------------------------------------------------------- */

/* Batches: what three repetitions hold at least (measure.min_batches). */
enum { BATCHES_LEAST = 9, SAMPLES_LEAST = 64 };

static const double WIDTH_MOST = 0.20;
static const double NINETY = 1.645;

struct sufficiency sufficiency_of(const struct measurement *const *repeats, size_t count)
{
	struct sufficiency s = {.width = NAN};
	double squares = 0;
	size_t known = 0;
	uint64_t batches = 0;
	for (size_t i = 0; i < count; i++) {
		const double error = rate_squared_error(repeats[i]);
		s.samples += repeats[i]->samples;
		batches += repeats[i]->batches;
		squares += isnan(error) ? 0 : error;
		known += isnan(error) ? 0 : 1;
	}
	if (known > 0)
		s.width = NINETY * sqrt(squares / (double)known / (double)known);
	const double per_batch = batches > 0 ? (double)s.samples / (double)batches : 1;
	double needed = fmax(BATCHES_LEAST * per_batch, SAMPLES_LEAST);
	if (s.width > WIDTH_MOST)
		needed = fmax(needed, (double)s.samples * pow(s.width / WIDTH_MOST, 2));
	s.needed = (double)s.samples < needed ? statistics_round_up(needed) : 0;
	return s;
}

/* --- the way out ------------------------------------------------------------------------------ */

/* A run twice as long halves the effect of its edges. */
static const double TWICE = 2;

/* Rounded up to a figure that people write. */
static const char *seconds_text(double seconds, char out[UNITS_BYTES])
{
	static const double WHOLE = 1, TENTH = 0.1;
	const double unit = seconds >= WHOLE ? WHOLE : TENTH;
	const double rounded = unit * ceil(seconds / unit - 1e-9);
	return units_print_duration((uint64_t)llround(rounded * 1e3) * 1000000, out);
}

/* " to 14s or more"; nothing where it is not known. */
static const char *to_seconds(double seconds, char out[UNITS_BYTES])
{
	char text[UNITS_BYTES];
	out[0] = '\0';
	if (seconds > 0 && isfinite(seconds))
		(void)snprintf(out, UNITS_BYTES, " to %.12s or more", seconds_text(seconds, text));
	return out;
}

const char *way_out_longer(const struct sufficiency *s, const struct point_facts *facts,
	const struct measurement *const *repeats, size_t count, char out[WAY_OUT_BYTES])
{
	char to[UNITS_BYTES];
	double seconds = 0;
	for (size_t i = 0; i < count; i++)
		seconds += repeats[i]->measured_seconds;
	const double planned = facts->repeats > 0 ? facts->repeats : (double)count;
	const double rate = (double)s->samples / seconds;
	if (facts->epochs > 0 && s->samples > 0) {
		const double times =
			(double)s->needed / (double)s->samples * (double)count / planned;
		(void)snprintf(out, WAY_OUT_BYTES, "set measure.epochs to %.0f or more",
			ceil(times * facts->epochs));
		return out;
	}
	/* Nothing went through it: only so much longer is known to be more. */
	const double each =
		rate > 0 ? (double)s->needed / rate / planned : 2 * TWICE * facts->duration_s;
	(void)snprintf(out, WAY_OUT_BYTES, "set measure.duration%s",
		to_seconds(fmax(each, facts->duration_s), to));
	return out;
}

const char *way_out_steadier(
	const char *reason, const struct point_facts *facts, char out[WAY_OUT_BYTES])
{
	char to[UNITS_BYTES];
	if (strstr(reason, "never settled"))
		(void)snprintf(out, WAY_OUT_BYTES,
			"set measure.warmup%s, so that the rate settles before it is measured",
			to_seconds(facts->warmup_s + facts->duration_s, to));
	else
		(void)snprintf(out, WAY_OUT_BYTES,
			"set measure.duration%s, or find what disturbs this node (mlbench doctor)",
			to_seconds(TWICE * facts->duration_s, to));
	return out;
}

const char *way_out_again(const struct point_facts *facts, char out[WAY_OUT_BYTES])
{
	char to[UNITS_BYTES];
	(void)snprintf(out, WAY_OUT_BYTES,
		"set measure.duration%s; if it happens again, the node disturbs its clocks "
		"(mlbench doctor)",
		to_seconds(TWICE * facts->duration_s, to));
	return out;
}

const char *way_out_states(const struct point_facts *facts, char out[WAY_OUT_BYTES])
{
	char to[UNITS_BYTES];
	(void)snprintf(out, WAY_OUT_BYTES, "set measure.profiler=on, and measure.duration%s",
		to_seconds(TWICE * facts->duration_s, to));
	return out;
}

/* --- repetitions ------------------------------------------------------------------------------ */

/* Selects the repetitions of a status, in order; returns how many. */
static size_t select_status(const struct measurement *const *repeats, size_t count,
	enum measurement_status status, const struct measurement **out)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++)
		if (repeats[i]->status == status)
			out[found++] = repeats[i];
	return found;
}

size_t way_out_for_samples(uint64_t have, uint64_t needed, size_t count, size_t most)
{
	if (needed <= have || have == 0 || count >= most)
		return 0;
	const double more = ceil((double)(needed - have) * (double)count / (double)have);
	return more <= (double)(most - count) ? (size_t)more : 0;
}

/* A point is steady where half of its repetitions are; one whose bottleneck changes is cut into
 * parts instead. Where several are unsteady and none is good, more of the same length would be no
 * better: that takes another key. */
static size_t for_steadiness(size_t good, size_t unsteady, size_t left)
{
	const size_t more = good > 0 || unsteady == 1 ? unsteady - good : 0;
	return more <= left ? more : 0;
}

size_t way_out_repetitions(const struct measurement *const *repeats, size_t count, size_t most)
{
	const struct measurement **chosen = calloc(count + 1, sizeof(const struct measurement *));
	size_t more = 0;
	if (!chosen)
		return 0;
	const size_t unsteady = select_status(repeats, count, MEASUREMENT_UNSTEADY, chosen);
	struct phase_cut cut = {.count = 1};
	const struct evidence_base uneven = {.repeats = chosen, .count = unsteady};
	const bool stalled = unsteady > 0 && stalls_bind(&uneven);
	if (unsteady > 0)
		phases_cut(chosen, unsteady, &cut);
	const size_t good = select_status(repeats, count, MEASUREMENT_OK, chosen);
	struct regimes regimes;
	regimes_find(chosen, good, &regimes);
	const struct regime *const last = &regimes.of[regimes.count - 1];
	const bool young = regimes.count > 1 && last->whole_end <= last->whole + 1;
	const struct sufficiency enough = sufficiency_of(chosen, good);
	const size_t with_status[MEASUREMENT_STATUSES] = {
		[MEASUREMENT_OK] = good, [MEASUREMENT_UNSTEADY] = unsteady};
	if (good + unsteady == count && count < most) {
		if (point_status_of(with_status) == POINT_UNSTEADY)
			more = cut.count > 1 || stalled
				       ? 0
				       : for_steadiness(good, unsteady, most - count);
		else
			more = way_out_for_samples(
				enough.samples, enough.needed, good, most - count + good);
		/* Whether a state lasts that only the last repetition shows. */
		if (more == 0 && young)
			more = 1;
	}
	free(chosen);
	return more;
}
