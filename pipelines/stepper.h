/* The step thread: takes batches, has the backend compute a step of each, and keeps the account of
 * what came through.  States: starved (waits for a batch, with no step in flight), working; blocked while its
 * device waits for the others that train with it, or exchanges gradients with them. */
#ifndef MLBENCH_PIPELINES_STEPPER_H
#define MLBENCH_PIPELINES_STEPPER_H

#include "harness/measure/steady.h"
#include "harness/measure/thread_meter.h"
#include "pipelines/crew.h"
#include "pipelines/exchange.h"
#include "pipelines/first_epoch.h"
#include "pipelines/injection.h"
#include "pipelines/placement.h"
#include "pipelines/upload.h"
#include "workloads/dataset/dataset.h"

struct rounds;

struct stepper_options {
	const struct config *config;
	const struct dataset *dataset;
	struct crew *crew;
	struct exchange *exchange;
	unsigned lane; /* at the exchange, and which of the devices */
	unsigned devices;
	const struct backend_group *group; /* NULL: one device */
	struct rounds *rounds;
	struct upload *upload; /* NULL: batches come from the exchange */
	const struct injection *injection;
	const struct placement *placement;
	unsigned first_place, places;
	struct first_epoch *first;
	/* For a backend that works by itself: places that upload copies to (0: none), room of the largest
	 * batch, and the memory of batches, to be pinned (NULL: no). */
	unsigned staging_places;
	size_t batch_room;
	void *pin_memory;
	size_t pin_bytes;
	struct thread_meter *meter; /* or NULL: not timed */
	struct thread_meter
		*sync_meter; /* of the device in the stage sync; NULL: not timed, or alone */
	struct timeline_log *device_timeline; /* what the device does; NULL: no timeline */
	uint64_t segment_ns;
	struct sample_sizes sizes;
	uint64_t warmup_ns;
};

/* What it found; read after it was joined. */
struct step_account {
	struct completions completions;
	bool emulated;
	char description[256];
	uint64_t oversleep_max_ns;    /* after the configured warm-up */
	double loss_first, loss_last; /* NAN: none */
	bool on_device;               /* steps are launched on a device that works by itself */
	double flops_per_sample;
	bool described;
	struct device_measurement device; /* what the backend says; with `described` */
	char not_pinned[256];             /* why; "" */
};

struct stepper;

int stepper_start(struct stepper **out, const struct stepper_options *options, struct error *err);
bool stepper_join(struct stepper *stepper, uint64_t deadline_ns); /* false: it does not end */
void stepper_free(struct stepper *stepper); /* after stepper_join; NULL is fine */
const struct step_account *stepper_account(const struct stepper *stepper);

/* Any thread, any time. */
struct step_progress {
	uint64_t samples, batches; /* good samples, and batches, through the step */
	uint64_t last_step_ns;     /* time of the last step, or the nominal one */
};
struct step_progress stepper_progress(const struct stepper *stepper);

#endif
