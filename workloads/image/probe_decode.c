/* Decoding on more and more cores.  Threads go where the kernel puts them, as the workers of a run do;
 * each takes pictures in its own order and times itself, so that none waits for another. */
#include "workloads/image/probe_decode.h"

#include "harness/base/clock.h"
#include "workloads/image/transform.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void picture_set_release(struct picture_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->pictures[i].bytes);
	free(set->pictures);
	*set = (struct picture_set){0};
}

struct worker {
	struct transform *transform;
	uint8_t *sample;
	size_t next; /* picture */
	double rate; /* samples/s in this slot */
	int code;
	struct error why;
};

struct decoding {
	const struct picture_set *set;
	const struct probe_control *control;
	struct worker *workers; /* (cores), owned */
	unsigned cores;
	uint64_t end_ns;
};

static void decoding_work(void *context, unsigned me)
{
	const struct decoding *decoding = context;
	const struct picture_set *set = decoding->set;
	struct worker *worker = &decoding->workers[me];
	const uint64_t begin = clock_now_ns();
	uint64_t now;
	uint64_t done = 0;
	do {
		const struct picture_bytes *picture = &set->pictures[worker->next % set->count];
		worker->code = transform_sample(worker->transform, picture->bytes, picture->size,
			worker->next++, worker->sample, NULL, &worker->why);
		now = clock_now_ns();
		done++;
	} while (!worker->code && now < decoding->end_ns && !probe_stopped(decoding->control));
	worker->rate = (double)done * (double)NS_PER_S / (double)(now - begin);
}

static int decoding_open(struct decoding *decoding, const struct config *config, struct error *err)
{
	const struct picture_set *set = decoding->set;
	const size_t bytes = transform_sample_bytes(config);
	decoding->workers = calloc(decoding->cores, sizeof *decoding->workers);
	int code = decoding->workers ? 0 : error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < decoding->cores && !code; i++) {
		struct worker *worker = &decoding->workers[i];
		worker->next = i;
		worker->sample = aligned_alloc(64, (bytes + 63) / 64 * 64);
		code = worker->sample ? transform_open(&worker->transform, config, &set->extents,
						NULL, err)
				      : error_set(err, -ENOMEM, "out of memory");
	}
	return code;
}

static void decoding_close(struct decoding *decoding)
{
	for (unsigned i = 0; decoding->workers && i < decoding->cores; i++) {
		transform_close(decoding->workers[i].transform);
		free(decoding->workers[i].sample);
	}
	free(decoding->workers);
}

static double decoding_rate(struct decoding *decoding, unsigned cores, int *code, struct error *err)
{
	double sum = 0;
	decoding->end_ns = probe_slot_end(decoding->control, clock_now_ns());
	*code = probe_crew(cores, false, decoding_work, decoding, err);
	for (unsigned i = 0; i < cores && !*code; i++) {
		const struct worker *worker = &decoding->workers[i];
		sum += worker->rate;
		if (worker->code)
			*code = error_set(err, worker->code, "%s", worker->why.text);
	}
	return *code || probe_stopped(decoding->control) ? (double)NAN : sum;
}

/* 1, 2, 4 ... and all. */
static size_t decoding_list_counts(unsigned cores, unsigned counts[CEILING_CORES_MAX])
{
	size_t n = 0;
	for (unsigned c = 1; c < cores && n + 1 < CEILING_CORES_MAX; c *= 2)
		counts[n++] = c;
	counts[n++] = cores;
	return n;
}

static void decoding_keep(
	const struct probe_values *values, const unsigned *counts, size_t n, struct ceilings *out)
{
	for (size_t i = 0; i < n; i++) {
		struct core_ceiling *entry = &out->decode[out->decode_count];
		entry->cores = counts[i];
		entry->samples_per_s = probe_median(&values[i], &entry->range);
		out->decode_count += values[i].count > 0;
	}
	out->decode_one_core = probe_median(&values[0], NULL);
	out->decode_all_cores = probe_median(&values[n - 1], NULL);
	out->cpu_scaling = out->decode_all_cores / ((double)counts[n - 1] * out->decode_one_core);
}

static int decoding_measure(struct decoding *decoding, const unsigned *counts, size_t n,
	struct probe_values *values, struct error *err)
{
	const struct probe_control *control = decoding->control;
	int code = 0;
	(void)decoding_rate(
		decoding, decoding->cores, &code, err); /* caches and clocks get going */
	for (unsigned round = 0; round < control->rounds && !code; round++) {
		if (probe_stopped(control) || (round > 0 && probe_time_over(control)))
			break;
		for (size_t i = 0; i < n && !code; i++)
			probe_add(&values[i], decoding_rate(decoding, counts[i], &code, err));
	}
	return code;
}

int probe_decode(const struct config *config, const struct picture_set *set, unsigned cores,
	const struct probe_control *control, struct ceilings *out, struct error *err)
{
	struct decoding decoding = {
		.set = set, .control = control, .cores = cores ? cores : probe_cores()};
	unsigned counts[CEILING_CORES_MAX];
	struct probe_values values[CEILING_CORES_MAX] = {0};
	const size_t n = decoding_list_counts(decoding.cores, counts);
	int code = decoding_open(&decoding, config, err);
	if (!code)
		code = decoding_measure(&decoding, counts, n, values, err);
	decoding_close(&decoding);
	(void)snprintf(out->decode_what, sizeof out->decode_what, "%s", set->what);
	decoding_keep(values, counts, n, out);
	if (probe_stopped(control))
		return -EINTR;
	return code;
}
