/* Whether a model makes sense, before anything is allocated. */
#include "harness/analyze/replay_check.h"

#include <errno.h>
#include <math.h>

static int refuse(struct error *err, const char *what, double value)
{
	return error_set(err, -EINVAL, "cannot replay with %s = %g", what, value);
}

static int check_counts(const struct pipeline_shape *shape, struct error *err)
{
	const struct {
		const char *what;
		uint64_t value, most;
	} counts[] = {
		{"reader threads", shape->reader_threads, REPLAY_THREADS_MAX},
		{"files in flight a reader", shape->read_depth, REPLAY_BLOBS_MAX},
		{"blobs", shape->blobs, REPLAY_BLOBS_MAX},
		{"decode workers", shape->decode_workers, REPLAY_THREADS_MAX},
		{"samples a batch", shape->batch_size, REPLAY_BATCH_MAX},
		{"slots", shape->slots, REPLAY_SLOTS_MAX},
	};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		if (counts[i].value < 1 || counts[i].value > counts[i].most)
			return refuse(err, counts[i].what, (double)counts[i].value);
	if (shape->step_threads > REPLAY_THREADS_MAX)
		return refuse(err, "threads of the step", shape->step_threads);
	if (shape->devices > DEVICES_MAX)
		return refuse(err, "devices", shape->devices);
	if (shape->devices > 1 && shape->step_threads > 0)
		return refuse(err, "several devices that compute on cores, threads of each",
			shape->step_threads);
	return 0;
}

static int check_numbers(const struct replay_model *model, struct error *err)
{
	const struct {
		const char *what;
		double value;
	} numbers[] = {
		{"threads outside", model->outside},
		{"contention", model->contention},
		{"a time slice", model->slice_ns},
		{"a visit's time", model->visit_ns},
		{"a wake-up's time", model->wake_ns},
		{"the lock's share off the cores", model->lock_off_cores},
		{"the quota", model->quota},
	};
	if (!(model->cores > 0))
		return refuse(err, "cores", model->cores);
	if (model->lock_off_cores > 1)
		return refuse(err, "the lock's share off the cores", model->lock_off_cores);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!(numbers[i].value >= 0) || !isfinite(numbers[i].value))
			return refuse(err, numbers[i].what, numbers[i].value);
	for (unsigned i = 0; model->worker_factor && i < model->shape.decode_workers; i++)
		if (!(model->worker_factor[i] > 0) || !isfinite(model->worker_factor[i]))
			return refuse(err, "a factor on a worker's time",
				(double)model->worker_factor[i]);
	for (unsigned i = 0; model->device_factor && i < model->shape.devices; i++)
		if (!(model->device_factor[i] > 0) || !isfinite(model->device_factor[i]))
			return refuse(err, "a factor on a device's time",
				(double)model->device_factor[i]);
	return 0;
}

/* Sums to *total ns what is not nothing. */
static int check_series(
	const struct replay_model *model, enum replay_cost cost, double *total, struct error *err)
{
	const struct replay_series *series = &model->series[cost];
	const double scale = model->scale[cost];
	if (!(scale >= 0) || !isfinite(scale))
		return error_set(err, -EINVAL, "cannot replay with %s/%s scaled by %g",
			replay_cost_stage(cost), replay_cost_resource(cost), scale);
	for (size_t i = 0; i < series->count; i++) {
		if (!(series->ns[i] >= 0) || !isfinite(series->ns[i]))
			return error_set(err, -EINVAL,
				"cannot replay with %s/%s of %g ns (entry %zu)",
				replay_cost_stage(cost), replay_cost_resource(cost),
				(double)series->ns[i], i);
		*total += (double)series->ns[i] * scale;
	}
	return 0;
}

int replay_check(
	const struct replay_model *model, const struct replay_options *options, struct error *err)
{
	int code = check_counts(&model->shape, err);
	if (!code)
		code = check_numbers(model, err);
	double total = 0;
	for (int cost = 0; !code && cost < COSTS; cost++)
		code = check_series(model, (enum replay_cost)cost, &total, err);
	if (code)
		return code;
	if (options->batches == 0 || options->batches > REPLAY_BATCHES_MAX ||
		options->warmup_batches > REPLAY_BATCHES_MAX)
		return refuse(err, "batches", (double)options->batches);
	if (total <= 0)
		return error_set(err, -EINVAL, "cannot replay what takes no time at all");
	return 0;
}
