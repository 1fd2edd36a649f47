/* A device that works by itself, for tests of what drives one: a thread that steps and a thread that copies, each with a
 * queue, sleeping as long as a seeded generator says.  It is strict about what backend.h asks of its user, counts
 * violations and fails where it is told to. */
#ifndef MLBENCH_TESTS_FAKE_DEVICE_H
#define MLBENCH_TESTS_FAKE_DEVICE_H

#include "harness/base/clock.h"
#include "harness/base/hash.h"
#include "harness/base/rng.h"
#include "workloads/backend/backend.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { FAKE_STEPS = 16, FAKE_PLACES = 65, FAKE_NEVER = -1, FAKE_WAIT_NS = 2000000 };

/* Set before the run. */
struct fake_settings {
	uint64_t step_ns, copy_ns; /* mean */
	double jitter;             /* times are mean x (1 +- jitter) */
	uint64_t launch_ns;        /* the host's part, spun */
	uint64_t seed;
	long fail_open, fail_launch, fail_finish, fail_upload, fail_upload_finish; /* call number */
	bool pin_refused;
	uint64_t
		hold_launches; /* the first step takes until so many were launched, however slow the host is */
	unsigned ahead; /* as configured: what is checked */
	double idle_share;
	unsigned statistics; /* every so many steps */
};

/* What it saw. */
struct fake_report {
	/* Several devices may be at it. */
	atomic_uint opened, closed;
	atomic_uint_least64_t launches, finishes, uploads, upload_finishes, pins;
	uint64_t marks;
	int marked; /* ranges that were begun and not ended, over all threads */
	atomic_uint_least64_t most_in_flight, most_copies, smallest_batch;
	atomic_uint_least64_t pinned_bytes, copied_bytes;
	atomic_uint_least64_t overlapped; /* copies that began while a step was computed */
	char violation[160];              /* the first */
};

struct fake_step {
	struct batch_view batch;
	uint64_t begin_ns, end_ns, hash;
};

enum fake_place_state { FAKE_FREE, FAKE_COPYING, FAKE_COPIED };

struct fake_place {
	enum fake_place_state state;
	bool finished;  /* upload_finish was called */
	bool in_step;   /* launched, not finished */
	bool unstepped; /* uploaded, not launched */
	struct batch_view batch;
	uint64_t hash, begin_ns, end_ns;
};

struct fake_device {
	struct backend backend;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t stepping, copying;
	bool ending;
	struct rng rng;
	struct fake_step steps[FAKE_STEPS];
	uint64_t launched, done, finished;
	struct fake_place places[FAKE_PLACES];
	unsigned queue[FAKE_PLACES];
	uint64_t queued, copied;
	bool computing;
};

static struct fake_settings fake_settings;
static struct fake_report fake_report;
static pthread_mutex_t fake_report_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void fake_reset(void)
{
	fake_settings = (struct fake_settings){
		.fail_open = FAKE_NEVER,
		.fail_launch = FAKE_NEVER,
		.fail_finish = FAKE_NEVER,
		.fail_upload = FAKE_NEVER,
		.fail_upload_finish = FAKE_NEVER,
		.ahead = 1,
		.idle_share = NAN,
	};
	fake_report = (struct fake_report){.smallest_batch = UINT64_MAX};
}

static inline void fake_violate(const char *what)
{
	(void)pthread_mutex_lock(&fake_report_lock);
	if (!fake_report.violation[0])
		(void)snprintf(fake_report.violation, sizeof fake_report.violation, "%s", what);
	(void)pthread_mutex_unlock(&fake_report_lock);
}

static inline bool fake_fails(uint64_t number, long at)
{
	return at >= 0 && number == (uint64_t)at;
}

static inline uint64_t fake_hash(const struct batch_view *batch)
{
	const uint64_t hash = hash_bytes(batch->data, batch->bytes, batch->index);
	return hash_bytes(batch->labels, batch->size * sizeof *batch->labels, hash);
}

/* Under the lock. */
static inline uint64_t fake_time(struct fake_device *d, uint64_t mean_ns)
{
	const double u = (double)(rng_next(&d->rng) >> 11) * 0x1.0p-53;
	return (uint64_t)((double)mean_ns * (1 + fake_settings.jitter * (2 * u - 1)));
}

static inline void fake_wait(struct fake_device *d)
{
	struct timespec until;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += FAKE_WAIT_NS;
	until.tv_sec += until.tv_nsec / (long)NS_PER_S;
	until.tv_nsec %= (long)NS_PER_S;
	(void)pthread_cond_timedwait(&d->changed, &d->lock, &until);
}

static inline bool fake_stopped(const struct fake_device *d)
{
	return d->backend.stop && atomic_load(d->backend.stop);
}

/* Without the lock, from now on. */
static inline void fake_work(struct fake_device *d, uint64_t ns)
{
	const uint64_t until_ns = clock_now_ns() + ns;
	(void)pthread_mutex_unlock(&d->lock);
	while (clock_now_ns() < until_ns && !fake_stopped(d))
		clock_sleep_until_ns(until_ns < clock_now_ns() + FAKE_WAIT_NS
					     ? until_ns
					     : clock_now_ns() + FAKE_WAIT_NS);
	(void)pthread_mutex_lock(&d->lock);
}

static inline bool fake_ready(const struct fake_device *d)
{
	if (d->launched == d->done)
		return false;
	const struct fake_step *step = &d->steps[d->done % FAKE_STEPS];
	return step->batch.place == BATCH_ON_HOST ||
	       d->places[step->batch.place].state == FAKE_COPIED;
}

static void *fake_steps(void *context)
{
	struct fake_device *d = context;
	(void)pthread_mutex_lock(&d->lock);
	while (!d->ending) {
		if (!fake_ready(d)) {
			fake_wait(d);
			continue;
		}
		struct fake_step *step = &d->steps[d->done % FAKE_STEPS];
		step->begin_ns = clock_now_ns();
		d->computing = true;
		fake_work(d, fake_time(d, fake_settings.step_ns));
		while (d->launched < fake_settings.hold_launches && !d->ending && !fake_stopped(d))
			fake_wait(d);
		d->computing = false;
		step->end_ns = clock_now_ns();
		if (step->batch.place == BATCH_ON_HOST && fake_hash(&step->batch) != step->hash)
			fake_violate("a batch was changed while a step used it");
		d->done++;
		(void)pthread_cond_broadcast(&d->changed);
	}
	(void)pthread_mutex_unlock(&d->lock);
	return NULL;
}

static void *fake_copies(void *context)
{
	struct fake_device *d = context;
	(void)pthread_mutex_lock(&d->lock);
	while (!d->ending) {
		if (d->queued == d->copied) {
			fake_wait(d);
			continue;
		}
		struct fake_place *place = &d->places[d->queue[d->copied % FAKE_PLACES]];
		place->begin_ns = clock_now_ns();
		fake_report.overlapped += d->computing;
		fake_work(d, fake_time(d, fake_settings.copy_ns));
		place->end_ns = clock_now_ns();
		if (fake_hash(&place->batch) != place->hash)
			fake_violate("a batch was changed while it was copied");
		fake_report.copied_bytes += place->batch.bytes;
		place->state = FAKE_COPIED;
		d->copied++;
		(void)pthread_cond_broadcast(&d->changed);
	}
	(void)pthread_mutex_unlock(&d->lock);
	return NULL;
}

static int fake_open(struct backend *backend, struct error *err)
{
	struct fake_device *d = (struct fake_device *)backend;
	if (fake_fails(fake_report.opened++, fake_settings.fail_open)) {
		fake_report.opened--;
		return error_set(err, -ENODEV, "fake: no device");
	}
	(void)pthread_mutex_init(&d->lock, NULL);
	(void)pthread_cond_init(&d->changed, NULL);
	rng_init(&d->rng, fake_settings.seed, 1);
	if (pthread_create(&d->stepping, NULL, fake_steps, d) ||
		pthread_create(&d->copying, NULL, fake_copies, d))
		return error_set(err, -EAGAIN, "fake: no thread");
	backend->flops_per_sample = 1000;
	(void)snprintf(backend->description, sizeof backend->description, "fake device");
	return 0;
}

static void fake_close(struct backend *backend)
{
	struct fake_device *d = (struct fake_device *)backend;
	(void)pthread_mutex_lock(&d->lock);
	d->ending = true;
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
	(void)pthread_join(d->stepping, NULL);
	(void)pthread_join(d->copying, NULL);
	(void)pthread_cond_destroy(&d->changed);
	(void)pthread_mutex_destroy(&d->lock);
	fake_report.closed++;
}

static int fake_step(struct backend *backend, const struct batch_view *batch,
	struct step_result *out, struct error *err)
{
	(void)backend;
	(void)batch;
	(void)out;
	return error_set(err, -ENOSYS, "fake: step must not be called");
}

static inline void fake_take_place(struct fake_device *d, const struct batch_view *batch)
{
	struct fake_place *place = &d->places[batch->place];
	if (!place->unstepped || place->batch.index != batch->index)
		fake_violate("a step of a batch that is not in its place");
	place->unstepped = false;
	place->in_step = true;
}

static int fake_launch(struct backend *backend, const struct batch_view *batch, struct error *err)
{
	struct fake_device *d = (struct fake_device *)backend;
	const uint64_t until_ns = clock_now_ns() + fake_settings.launch_ns;
	while (clock_now_ns() < until_ns)
		continue;
	(void)pthread_mutex_lock(&d->lock);
	const bool fails = fake_fails(fake_report.launches++, fake_settings.fail_launch);
	if (!fails) {
		struct fake_step *step = &d->steps[d->launched % FAKE_STEPS];
		*step = (struct fake_step){.batch = *batch};
		if (batch->place == BATCH_ON_HOST)
			step->hash = fake_hash(batch);
		else
			fake_take_place(d, batch);
		d->launched++;
		const uint64_t in_flight = d->launched - d->finished;
		if (in_flight > fake_report.most_in_flight)
			fake_report.most_in_flight = in_flight;
		if (in_flight > 1 + fake_settings.ahead)
			fake_violate("more steps in flight than 1 + step.ahead");
		if (batch->size < fake_report.smallest_batch)
			fake_report.smallest_batch = batch->size;
		(void)pthread_cond_broadcast(&d->changed);
	}
	(void)pthread_mutex_unlock(&d->lock);
	return fails ? error_set(err, -EIO, "fake: launch failed") : 0;
}

static int fake_finish(struct backend *backend, struct step_result *out, struct error *err)
{
	struct fake_device *d = (struct fake_device *)backend;
	(void)pthread_mutex_lock(&d->lock);
	if (fake_fails(fake_report.finishes++, fake_settings.fail_finish)) {
		(void)pthread_mutex_unlock(&d->lock);
		return error_set(err, -EIO, "fake: the device is lost");
	}
	if (d->finished == d->launched)
		fake_violate("finish without a step in flight");
	while (d->done == d->finished && !fake_stopped(d))
		fake_wait(d);
	const bool is_done = d->done > d->finished;
	const struct fake_step *step = &d->steps[d->finished % FAKE_STEPS];
	if (is_done) {
		const unsigned every = fake_settings.statistics;
		const bool sampled = every > 0 && d->finished % every == 0;
		*out = (struct step_result){
			.device_ns = step->end_ns - step->begin_ns,
			.begin_ns = step->begin_ns,
			.end_ns = step->end_ns,
			.loss = (double)step->batch.index,
			.idle_share = fake_settings.idle_share,
			.gradient_norm = sampled ? (double)step->batch.index : NAN,
			.nonfinite_share = sampled ? 0 : NAN,
			.activation_mean = NAN,
			.activation_deviation = NAN,
		};
		if (step->batch.place != BATCH_ON_HOST)
			d->places[step->batch.place].in_step = false;
		d->finished++;
	}
	(void)pthread_mutex_unlock(&d->lock);
	return is_done ? 0 : error_set(err, -ECANCELED, "fake: stopped");
}

static bool fake_finished(struct backend *backend)
{
	struct fake_device *d = (struct fake_device *)backend;
	(void)pthread_mutex_lock(&d->lock);
	const bool is = d->done > d->finished;
	(void)pthread_mutex_unlock(&d->lock);
	return is;
}

static int fake_upload(
	struct backend *backend, unsigned at, const struct batch_view *batch, struct error *err)
{
	struct fake_device *d = (struct fake_device *)backend;
	(void)pthread_mutex_lock(&d->lock);
	const bool fails = fake_fails(fake_report.uploads++, fake_settings.fail_upload);
	if (!fails) {
		struct fake_place *place = &d->places[at];
		if (at >= backend->staging_places || batch->place != (int)at)
			fake_violate("an upload to a place that is not there");
		if (place->state == FAKE_COPYING || place->unstepped || place->in_step ||
			(place->state == FAKE_COPIED && !place->finished))
			fake_violate("an upload to a place in use");
		if (batch->bytes > backend->batch_room)
			fake_violate("a batch larger than its room");
		*place = (struct fake_place){.state = FAKE_COPYING,
			.unstepped = true,
			.batch = *batch,
			.hash = fake_hash(batch)};
		d->queue[d->queued++ % FAKE_PLACES] = at;
		const uint64_t copies = d->queued - d->copied;
		if (copies > fake_report.most_copies)
			fake_report.most_copies = copies;
		(void)pthread_cond_broadcast(&d->changed);
	}
	(void)pthread_mutex_unlock(&d->lock);
	return fails ? error_set(err, -EIO, "fake: upload failed") : 0;
}

static int fake_upload_finish(
	struct backend *backend, unsigned at, struct upload_result *out, struct error *err)
{
	struct fake_device *d = (struct fake_device *)backend;
	struct fake_place *place = &d->places[at];
	(void)pthread_mutex_lock(&d->lock);
	if (fake_fails(fake_report.upload_finishes++, fake_settings.fail_upload_finish)) {
		(void)pthread_mutex_unlock(&d->lock);
		return error_set(err, -EIO, "fake: copying failed");
	}
	if (place->state == FAKE_FREE || place->finished)
		fake_violate("upload_finish without a copy");
	while (place->state != FAKE_COPIED && !fake_stopped(d))
		fake_wait(d);
	const bool is_done = place->state == FAKE_COPIED;
	place->finished = is_done;
	*out = (struct upload_result){
		.begin_ns = place->begin_ns,
		.end_ns = place->end_ns,
		.device_ns = place->end_ns - place->begin_ns,
	};
	(void)pthread_mutex_unlock(&d->lock);
	return is_done ? 0 : error_set(err, -ECANCELED, "fake: stopped");
}

static bool fake_upload_finished(struct backend *backend, unsigned at)
{
	struct fake_device *d = (struct fake_device *)backend;
	(void)pthread_mutex_lock(&d->lock);
	const bool is = d->places[at].state == FAKE_COPIED;
	(void)pthread_mutex_unlock(&d->lock);
	return is;
}

static int fake_pin(struct backend *backend, void *memory, size_t bytes, struct error *err)
{
	(void)backend;
	(void)memory;
	fake_report.pins++;
	fake_report.pinned_bytes += bytes;
	return fake_settings.pin_refused ? error_set(err, -EPERM, "fake: pinning is not allowed")
					 : 0;
}

static void fake_describe(struct backend *backend, struct device_measurement *out)
{
	(void)backend;
	(void)snprintf(out->name, sizeof out->name, "fake device");
	(void)snprintf(out->precision, sizeof out->precision, "fp32");
	out->peak_flops = 1e6;
	out->deterministic = true;
	out->clock_map_error_ns = 0;
}

static void fake_mark(const char *name)
{
	(void)pthread_mutex_lock(&fake_report_lock);
	fake_report.marks += name != NULL;
	fake_report.marked += name ? 1 : -1;
	(void)pthread_mutex_unlock(&fake_report_lock);
}

static const struct backend_ops fake_device_ops = {
	.name = "cuda",
	.summary = "fake device",
	.size = sizeof(struct fake_device),
	.open = fake_open,
	.step = fake_step,
	.close = fake_close,
	.launch = fake_launch,
	.finish = fake_finish,
	.finished = fake_finished,
	.upload = fake_upload,
	.upload_finish = fake_upload_finish,
	.upload_finished = fake_upload_finished,
	.pin = fake_pin,
	.describe = fake_describe,
	.mark = fake_mark,
};

#endif
