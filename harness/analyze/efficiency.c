/* Rates, what is lost of a sample's time, and what follows from that. */
#include "harness/analyze/efficiency.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double LEVEL = 0.95;
static const double BUSY_LEAST = 0.8; /* of the workers' time: CPU time decides, not waits */
static const double WORTH = 0.03;     /* of the time that a worker has for a sample */
static const uint64_t CLASS_SAMPLES_LEAST = 100;

static double efficiency_workers(const struct efficiency_input *in)
{
	return in->workers ? in->workers : 1;
}

static struct efficiency_rate efficiency_rate_of(const double *values, size_t count)
{
	return (struct efficiency_rate){.median = statistics_median(values, count),
		.interval = statistics_bootstrap_median(values, count, LEVEL, 1)};
}

static double efficiency_mean(const struct efficiency_look *looks, size_t count, size_t offset)
{
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < count; i++) {
		double value;
		memcpy(&value, (const char *)&looks[i] + offset, sizeof value);
		if (isnan(value))
			continue;
		sum += value;
		known++;
	}
	return known ? sum / (double)known : NAN;
}

/* Rounds without samples count for the CPU time and not for its classes.  Where those with samples have no CPU time, a tick of
 * the kernel being too coarse for them, the classes are not known: their sum would not be that time. */
static void efficiency_share_cpu(struct efficiency_look *mean)
{
	double sum = 0;
	for (int k = 0; k < JOB_CLASSES; k++)
		sum += mean->classes[k];
	for (int k = 0; k < JOB_CLASSES && (sum > 0 || mean->worker_cpu_s > 0); k++)
		mean->classes[k] = sum > 0 ? mean->classes[k] * mean->worker_cpu_s / sum : NAN;
}

static void efficiency_side_of(const struct efficiency_input *in,
	const struct efficiency_look *looks, struct efficiency_side *out)
{
	double rates[EFFICIENCY_ROUNDS_MAX];
#define MEAN(member) efficiency_mean(looks, in->rounds, offsetof(struct efficiency_look, member))
	out->mean = (struct efficiency_look){.rate = MEAN(rate),
		.cpu_s = MEAN(cpu_s),
		.worker_cpu_s = MEAN(worker_cpu_s),
		.queue_s = MEAN(queue_s),
		.memory_bytes = MEAN(memory_bytes),
		.read_bytes = MEAN(read_bytes),
		.start_s = MEAN(start_s)};
#undef MEAN
	for (size_t k = 0; k < JOB_CLASSES; k++)
		out->mean.classes[k] = efficiency_mean(looks, in->rounds,
			offsetof(struct efficiency_look, classes) + k * sizeof(double));
	efficiency_share_cpu(&out->mean);
	for (size_t i = 0; i < in->rounds; i++) {
		rates[i] = looks[i].rate;
		out->mean.class_samples += looks[i].class_samples;
	}
	out->rate = efficiency_rate_of(rates, in->rounds);
	out->each_s = efficiency_workers(in) / out->rate.median;
}

/* --- forecasts ---------------------------------------------------------------------------------- */

/* Workers that are busy all the time give as many samples as their time has room for; all processes together no more than the
 * cores have time for. */
static void efficiency_add_forecast(const struct efficiency_input *in,
	const enum job_class *classes, size_t count, struct efficiency *out)
{
	struct efficiency_forecast *forecast = &out->forecasts[out->forecast_count++];
	double saved = 0;
	for (size_t i = 0; i < count; i++) {
		forecast->classes[i] = classes[i];
		saved += out->class_lost[classes[i]];
	}
	forecast->class_count = count;
	forecast->rate = efficiency_workers(in) / (out->loader.each_s - saved);
	const double cores_rate = in->cores / (out->loader.mean.cpu_s - saved);
	forecast->by_cores = cores_rate < forecast->rate;
	forecast->rate = fmin(forecast->rate, isnan(cores_rate) ? INFINITY : cores_rate);
}

/* Classes in which much is lost, the most first. */
static size_t efficiency_rank(const struct efficiency *found, enum job_class *out)
{
	size_t count = 0;
	for (int k = 0; k < JOB_CLASSES; k++) {
		if (!(found->class_lost[k] >= WORTH * found->loader.each_s))
			continue;
		size_t at = count++;
		for (; at > 0 && found->class_lost[out[at - 1]] < found->class_lost[k]; at--)
			out[at] = out[at - 1];
		out[at] = (enum job_class)k;
	}
	return count;
}

static void efficiency_forecast_all(const struct efficiency_input *in, struct efficiency *out)
{
	enum job_class order[JOB_CLASSES];
	const size_t count = efficiency_rank(out, order);
	if (out->loader.mean.class_samples < CLASS_SAMPLES_LEAST ||
		out->hardware.mean.class_samples < CLASS_SAMPLES_LEAST)
		(void)snprintf(out->no_forecast, sizeof out->no_forecast,
			"too few samples of the CPU time (%llu and %llu of at least %llu)",
			(unsigned long long)out->loader.mean.class_samples,
			(unsigned long long)out->hardware.mean.class_samples,
			(unsigned long long)CLASS_SAMPLES_LEAST);
	else if (!(out->worker_busy >= BUSY_LEAST))
		(void)snprintf(out->no_forecast, sizeof out->no_forecast,
			"the loader's workers are on a core %.0f %% of the time only: what they wait for limits it, and cheaper code may gain nothing",
			100 * out->worker_busy);
	else if (count == 0)
		(void)snprintf(out->no_forecast, sizeof out->no_forecast,
			"in no class of code does the loader lose 3 %% of its time");
	if (out->no_forecast[0])
		return;
	efficiency_add_forecast(in, order, 1, out);
	if (count > 1)
		efficiency_add_forecast(in, &order[1], 1, out);
	if (count > 1)
		efficiency_add_forecast(in, order, 2, out);
}

/* --- all of it ---------------------------------------------------------------------------------- */

void efficiency_find(const struct efficiency_input *in, struct efficiency *out)
{
	double ratios[EFFICIENCY_ROUNDS_MAX];
	*out = (struct efficiency){0};
	efficiency_side_of(in, in->loader, &out->loader);
	efficiency_side_of(in, in->hardware, &out->hardware);
	for (size_t i = 0; i < in->rounds; i++)
		ratios[i] = in->loader[i].rate / in->hardware[i].rate;
	/* Whoever divides the two figures gets this one, which the ratios' own median need not be. */
	out->ratio = efficiency_rate_of(ratios, in->rounds);
	out->ratio.median = out->loader.rate.median / out->hardware.rate.median;
	if (!isnan(out->ratio.interval.low)) { /* of one round it is not known */
		out->ratio.interval.low = fmin(out->ratio.interval.low, out->ratio.median);
		out->ratio.interval.high = fmax(out->ratio.interval.high, out->ratio.median);
	}
	out->lost_s = out->loader.each_s - out->hardware.each_s;
	out->queue_lost_s = out->loader.mean.queue_s - out->hardware.mean.queue_s;
	out->rest_s = out->lost_s -
		      (out->loader.mean.worker_cpu_s - out->hardware.mean.worker_cpu_s) -
		      (isnan(out->queue_lost_s) ? 0 : out->queue_lost_s);
	for (int k = 0; k < JOB_CLASSES; k++)
		out->class_lost[k] = out->loader.mean.classes[k] - out->hardware.mean.classes[k];
	out->worker_busy = out->loader.mean.worker_cpu_s / out->loader.each_s;
	efficiency_forecast_all(in, out);
}
