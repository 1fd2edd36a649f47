/* Rounds over all quantities, within bounds of time and memory. */
#include "workloads/backend/cuda/probe_parts.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_LEAST = 3, RUNS_MOST = 2000 };

static const double SLOT_LEAST_NS = 5e5;
static const double SLOT_MOST_NS = 5e7;
static const double PATIENCE = 2.5; /* after so many times plan->seconds, rounds end */

/* --- for the parts -------------------------------------------------------------------------------- */

void probing_lack(struct probing *probing, const char *format, ...)
{
	struct cuda_probe *out = probing->out;
	const size_t room = sizeof out->missing / sizeof out->missing[0];
	if (out->missing_count == room)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out->missing[out->missing_count++], sizeof out->missing[0], format, args);
	va_end(args);
}

struct quantity *probing_add(struct probing *probing, const char *format, ...)
{
	if (probing->quantity_count == PROBING_QUANTITIES_MAX) {
		probing_lack(probing, "more than %d quantities", PROBING_QUANTITIES_MAX);
		return NULL;
	}
	struct quantity *quantity = &probing->quantities[probing->quantity_count++];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(quantity->name, sizeof quantity->name, format, args);
	va_end(args);
	return quantity;
}

bool probing_stopped(const struct probing *probing)
{
	const atomic_bool *stop = probing->plan->stop;
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static int probe_put(struct probing *probing, probing_work *work, const void *what, unsigned count,
	struct error *err)
{
	int code = 0;
	for (unsigned i = 0; i < count && code == 0; i++)
		code = work(probing, what, err);
	return code;
}

int probing_device_ns(struct probing *probing, probing_work *work, const void *what, unsigned count,
	double *ns, struct error *err)
{
	float ms = 0;
	int code = CUDA_TRY(err, cudaEventRecord(probing->begin, probing->stream));
	if (code == 0)
		code = probe_put(probing, work, what, count, err);
	if (code == 0)
		code = CUDA_TRY(err, cudaEventRecord(probing->end, probing->stream));
	if (code == 0)
		code = CUDA_TRY(err, cudaEventSynchronize(probing->end));
	if (code == 0)
		code = CUDA_TRY(err, cudaEventElapsedTime(&ms, probing->begin, probing->end));
	*ns = (double)ms * (double)NS_PER_MS / count;
	return code;
}

int probing_host_ns(struct probing *probing, probing_work *work, const void *what, unsigned count,
	double *ns, struct error *err)
{
	const uint64_t begin = clock_now_ns();
	int code = probe_put(probing, work, what, count, err);
	if (code == 0)
		code = CUDA_TRY(err, cudaStreamSynchronize(probing->stream));
	*ns = (double)(clock_now_ns() - begin) / count;
	return code;
}

int probing_slot_ns(struct probing *probing, probing_clock *clock, probing_work *work,
	const void *what, double *ns, struct error *err)
{
	int code = clock(probing, work, what, 1, ns, err);
	const double fit = probing->slot_ns / fmax(*ns, 1);
	const unsigned count = fit < 1 ? 1 : fit > RUNS_MOST ? RUNS_MOST : (unsigned)fit;
	return code ? code : clock(probing, work, what, count, ns, err);
}

/* --- rounds ---------------------------------------------------------------------------------------- */

static bool time_over(const struct probing *probing)
{
	return probing_stopped(probing) || clock_now_ns() >= probing->deadline_ns;
}

/* What fails is left out from then on: the rest may be had all the same. */
static void probe_visit(struct probing *probing, struct quantity *quantity)
{
	struct cuda_probe_series *series = quantity->series;
	struct error err = {0};
	double value = NAN;
	if (quantity->dead || series->count == CUDA_PROBE_REPEATS_MAX)
		return;
	if (quantity->visit(probing, quantity, &value, &err)) {
		quantity->dead = true;
		probing_lack(probing, "%s: %.180s", quantity->name, err.text);
	} else if (isfinite(value)) {
		series->values[series->count++] = value;
	}
}

static void device_probe_probe_measure(struct probing *probing, unsigned repeats)
{
	for (unsigned round = 0; round < repeats; round++)
		for (size_t i = 0; i < probing->quantity_count; i++) {
			if (time_over(probing))
				return;
			probe_visit(probing, &probing->quantities[i]);
		}
}

static void say_unseen(struct probing *probing)
{
	size_t unseen = 0;
	const char *first = "";
	for (size_t i = probing->quantity_count; i-- > 0;) {
		const struct quantity *quantity = &probing->quantities[i];
		if (quantity->dead || quantity->series->count > 0)
			continue;
		unseen++;
		first = quantity->name;
	}
	if (unseen > 0 && !probing_stopped(probing))
		probing_lack(probing, "%zu of %zu quantities, for want of time: %s%s", unseen,
			probing->quantity_count, first, unseen > 1 ? " ..." : "");
}

/* --- open and close ---------------------------------------------------------------------------------- */

static unsigned repeats_of(const struct cuda_probe_plan *plan)
{
	return plan->repeats < REPEATS_LEAST            ? REPEATS_LEAST
	       : plan->repeats > CUDA_PROBE_REPEATS_MAX ? CUDA_PROBE_REPEATS_MAX
							: plan->repeats;
}

/* Before any part allocates: the probe's own marks on the device. */
static int open_stream(struct probing *probing, struct error *err)
{
	const int device = (int)probing->plan->device;
	int code = CUDA_TRY(err, cudaSetDevice(device));
	if (code == 0)
		code = CUDA_TRY(
			err, cudaStreamCreateWithFlags(&probing->stream, cudaStreamNonBlocking));
	if (code == 0)
		code = CUDA_TRY(err, cudaEventCreate(&probing->begin));
	return code ? code : CUDA_TRY(err, cudaEventCreate(&probing->end));
}

/* Nothing can be done about a failure here. */
static void probe_release(struct probing *probing)
{
	probing_close_products(probing);
	probing_close_launches(probing);
	for (int i = 0; i < 2; i++)
		if (probing->device[i])
			(void)cudaFree(probing->device[i]);
	if (probing->pinned)
		(void)cudaFreeHost(probing->pinned);
	free(probing->pageable);
	if (probing->begin)
		(void)cudaEventDestroy(probing->begin);
	if (probing->end)
		(void)cudaEventDestroy(probing->end);
	if (probing->stream)
		(void)cudaStreamDestroy(probing->stream);
	(void)cudaGetLastError();
}

static int probe_open_parts(struct probing *probing, struct error *err)
{
	int code = open_stream(probing, err);
	if (code == 0)
		code = probing_add_copies(probing, err);
	if (code == 0 && !probing_stopped(probing))
		code = probing_add_launches(probing, err);
	if (code == 0 && !probing_stopped(probing))
		code = probing_add_products(probing, err);
	return code;
}

static int device_probe_probe_run(struct probing *probing, struct error *err)
{
	const struct cuda_probe_plan *plan = probing->plan;
	const unsigned repeats = repeats_of(plan);
	int code = probe_open_parts(probing, err);
	if (code)
		return code;
	const double ns = plan->seconds * (double)NS_PER_S;
	const double each = ns / repeats / (double)(probing->quantity_count + 1);
	probing->slot_ns = fmin(fmax(each, SLOT_LEAST_NS), SLOT_MOST_NS);
	probing->deadline_ns = clock_now_ns() + (uint64_t)(PATIENCE * fmax(ns, SLOT_LEAST_NS));
	device_probe_probe_measure(probing, repeats);
	say_unseen(probing);
	probing_keep_memory(probing);
	if (!probing_stopped(probing))
		code = probing_check_products(probing, err);
	return code;
}

int probing_run(const struct cuda_probe_plan *plan, struct cuda_probe *out, struct error *err)
{
	memset(out, 0, sizeof *out);
	struct probing *probing = calloc(1, sizeof *probing);
	if (!probing)
		return error_set(err, -ENOMEM, "cuda: out of memory for a probe");
	probing->plan = plan;
	probing->out = out;
	int code = device_probe_probe_run(probing, err);
	if (code == 0 && probing_stopped(probing))
		code = error_set(err, -EINTR, "cuda: the probe was stopped");
	probe_release(probing);
	free(probing);
	return code;
}
