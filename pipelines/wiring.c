/* Starting and joining the threads of a repetition. */
#include "pipelines/wiring.h"

#include "harness/base/clock.h"
#include "pipelines/plan.h"
#include "pipelines/timeline_wiring.h"

enum { JOIN_PATIENCE = 20 }; /* steps that one may take to end */

static int start_readers(struct run *run, struct error *err)
{
	const struct readers_options options = {
		.crew = &run->crew,
		.exchange = &run->exchange,
		.source = run->source,
		.placement = &run->placement,
		.backend = run->backend,
		.first_place = run->plan.decode_workers,
		.meters = run->stages[STAGE_READ].meters,
		.segment_ns = run->segment_ns,
		.count = run->plan.reader_threads,
	};
	return readers_start(&run->readers, &options, err);
}

static int start_team(struct run *run, struct error *err)
{
	const struct team_options options = {
		.config = run->config,
		.dataset = run->dataset,
		.crew = &run->crew,
		.exchange = &run->exchange,
		.injection = &run->injection,
		.bad = &run->bad,
		.placement = &run->placement,
		.backend = run->backend,
		.meters = run->stages[STAGE_DECODE].meters,
		.segment_ns = run->segment_ns,
		.workers = run->plan.decode_workers,
		.sizes = run->plan.sample,
	};
	return team_start(&run->team, &options, err);
}

/* The staging places of a device, where they are host memory: batches, then labels. */
static uint8_t *staging_of(const struct run *run, unsigned device)
{
	uint8_t *const memory = run->staging_block.data;
	return memory ? memory + device * (run->plan.staging_bytes / run->plan.devices) : NULL;
}

static struct thread_meter *meter_of(const struct run *run, enum stage_id stage, unsigned device)
{
	struct thread_meter *const meters = run->stages[stage].meters;
	return meters ? meters + device : NULL;
}

static int start_upload(struct run *run, unsigned device, struct error *err)
{
	if (run->plan.staging_slots == 0)
		return 0;
	uint8_t *const memory = staging_of(run, device);
	const struct upload_options options = {
		.crew = &run->crew,
		.exchange = &run->exchange,
		.lane = device,
		.devices = run->plan.devices,
		.first = &run->first_epoch,
		.injection = &run->injection,
		.placement = &run->placement,
		.place = run->plan.decode_workers + run->plan.reader_threads + device,
		.meter = meter_of(run, STAGE_UPLOAD, device),
		.segment_ns = run->segment_ns,
		.depth = run->plan.staging_slots - 1,
		.device = run->plan.facts.step_has_memory,
		.memory = memory,
		.labels = memory ? memory + plan_labels_at(&run->plan, run->plan.staging_slots,
						    run->exchange.options.slot_samples)
				 : NULL,
		.slot_samples = run->exchange.options.slot_samples,
		.sizes = run->plan.sample,
		.queue_timeline = timeline_wiring_queue(run, "uploaded", device),
		.device_timeline = run->plan.facts.step_has_memory
					   ? timeline_wiring_stream(run, "device upload", device)
					   : NULL,
	};
	return upload_start(&run->devices.uploads[device], &options, err);
}

static int start_stepper(struct run *run, unsigned device, struct error *err)
{
	const struct stepper_options options = {
		.config = run->config,
		.dataset = run->dataset,
		.crew = &run->crew,
		.exchange = &run->exchange,
		.lane = device,
		.devices = run->plan.devices,
		.group = run->group,
		.rounds = &run->rounds,
		.upload = run->devices.uploads[device],
		.first = &run->first_epoch,
		.staging_places = run->plan.staging_slots,
		.batch_room = run->plan.batch_bytes,
		.pin_memory = run->slot_block.data,
		.pin_bytes = run->slot_block.size,
		.injection = &run->injection,
		.placement = &run->placement,
		.first_place = run->plan.decode_workers + run->plan.reader_threads +
			       device * run->plan.step_threads,
		.places = run->plan.step_threads,
		.meter = meter_of(run, STAGE_STEP, device),
		.sync_meter = meter_of(run, STAGE_SYNC, device),
		.device_timeline = timeline_wiring_stream(run, "device step", device),
		.segment_ns = run->segment_ns,
		.sizes = run->plan.sample,
		.warmup_ns = run->warmup_ns,
	};
	return stepper_start(&run->devices.steppers[device], &options, err);
}

/* Uploaders are there before anything can fail in another thread and want to wake them. */
static int start_devices(struct run *run, struct error *err)
{
	int code = 0;
	for (unsigned i = 0; i < run->plan.devices && !code; i++)
		code = start_upload(run, i, err);
	for (unsigned i = 0; i < run->plan.devices && !code; i++)
		code = start_stepper(run, i, err);
	return code;
}

void wiring_start_threads(struct run *run)
{
	struct error err = {0};
	int code = start_devices(run, &err);
	if (!code)
		code = start_readers(run, &err);
	if (!code)
		code = start_team(run, &err);
	if (code)
		crew_fail(&run->crew, code, &err);
}

bool wiring_join_threads(struct run *run, const struct pipeline_limits *limits)
{
	const uint64_t step_ns = devices_progress(&run->devices).last_step_ns;
	const uint64_t deadline_ns = clock_now_ns() + limits->join_ns + JOIN_PATIENCE * step_ns;
	bool all = readers_join(run->readers, deadline_ns);
	all = team_join(run->team, deadline_ns) && all;
	return devices_join(&run->devices, deadline_ns) && all;
}
