/* A step as a sequence on the first stream.  Nothing here waits. */
#include "workloads/backend/cuda/device_session.h"
#include "workloads/backend/cuda/fail.h"
#include "workloads/backend/cuda/gradients.h"

#include <errno.h>
#include <stddef.h>

static int mark(cudaEvent_t event, const struct cuda_session *session, struct error *err)
{
	return CUDA_TRY(err, cudaEventRecord(event, session->streams[0]));
}

/* --- pieces that a graph may hold ------------------------------------------------------------------------------------- */

static int make_samples(struct cuda_session *session, const struct staging_place *place,
	uint32_t size, struct error *err)
{
	const struct cuda_options *options = &session->options;
	const struct augment_task task = {
		.bytes = place->data,
		.pictures = staging_pictures(&session->staging, place),
		.count = size,
		.size = options->picture_size,
		.antialias = options->antialias,
		.is_float = options->type == AUGMENT_TYPE_FLOAT32,
		.channels_last = options->channels_last,
		.out = session->augmented,
	};
	const int code = kernel_augment(session->streams[0], &task);
	return code ? fail_cuda(err, code, "augmentation") : 0;
}

int enqueue_gradients(struct cuda_session *session, const struct staging_place *place,
	uint32_t size, float carry, struct error *err)
{
	const bool augments = session->options.augments;
	if (augments) {
		const int code = make_samples(session, place, size, err);
		if (code)
			return code;
	}
	const struct train_batch batch = {
		.data = augments ? session->augmented : place->data,
		.labels = staging_labels(place),
		.size = size,
	};
	return train_gradients(session->train, &batch, carry, err);
}

int enqueue_update(struct cuda_session *session, struct error *err)
{
	return train_update(session->train, session->options.accumulate * session->devices, err);
}

/* --- a step ------------------------------------------------------------------------------------------------------------- */

static int bring_batch(struct cuda_session *session, const struct flight *flight,
	const struct step_plan *plan, const struct batch_view *batch, struct error *err)
{
	int code = 0;
	/* Before the step begins: it is the upload's time, not the step's. */
	if (!plan->on_host)
		code = CUDA_TRY(err, cudaStreamWaitEvent(session->streams[0], plan->place->end, 0));
	if (!code)
		code = mark(flight->begin, session, err);
	if (code || !plan->on_host)
		return code;
	code = staging_copy(&session->staging, plan->place, batch, session->streams[0], err);
	return code ? code : mark(flight->copied, session, err);
}

static int compute_directly(struct cuda_session *session, const struct flight *flight,
	const struct step_plan *plan, struct error *err)
{
	int code = enqueue_gradients(session, plan->place, flight->size, plan->carry, err);
	if (!code && flight->syncs)
		code = exchange_enqueue(session, flight, err);
	if (!code && plan->statistics)
		code = train_statistics(session->train,
			(session->accumulated + 1) * (flight->syncs ? session->devices : 1),
			session->statistics, err);
	return code || !plan->updates ? code : enqueue_update(session, err);
}

/* A step that cannot be recorded runs kernel by kernel, unless graphs were asked for. */
static bool goes_without(const struct cuda_session *session, int code)
{
	return code == -ENOTSUP && !session->options.graph;
}

static int compute_recorded(struct cuda_session *session, struct flight *flight,
	const struct step_plan *plan, struct error *err)
{
	const unsigned apart = flight->syncs ? RECORD_UPDATES : 0;
	int code = records_run(
		session, (enum record_kind)(flight->kind & ~apart), plan->place_index, err);
	if (goes_without(session, code)) {
		flight->recorded = false;
		return compute_directly(session, flight, plan, err);
	}
	if (code || !flight->syncs)
		return code;
	code = exchange_enqueue(session, flight, err);
	if (!code)
		code = records_run_update(session, err);
	if (!goes_without(session, code))
		return code;
	flight->recorded = false;
	return enqueue_update(session, err);
}

static int read_back(struct cuda_session *session, const struct flight *flight,
	const struct step_plan *plan, struct error *err)
{
	cudaStream_t stream = session->streams[0];
	int code = CUDA_TRY(
		err, cudaMemcpyAsync(&flight->readback->loss, train_loss(session->train),
			     sizeof flight->readback->loss, cudaMemcpyDeviceToHost, stream));
	if (!code && plan->statistics)
		code = CUDA_TRY(
			err, cudaMemcpyAsync(flight->readback->statistics, session->statistics,
				     sizeof flight->readback->statistics, cudaMemcpyDeviceToHost,
				     stream));
	if (!code)
		code = mark(flight->done, session, err);
	return code ? code : mark(plan->place->used, session, err);
}

int enqueue_step(struct cuda_session *session, struct flight *flight, const struct step_plan *plan,
	const struct batch_view *batch, struct error *err)
{
	int code = bring_batch(session, flight, plan, batch, err);
	if (!code)
		code = flight->recorded ? compute_recorded(session, flight, plan, err)
					: compute_directly(session, flight, plan, err);
	if (!code)
		code = mark(flight->end, session, err);
	return code ? code : read_back(session, flight, plan, err);
}
