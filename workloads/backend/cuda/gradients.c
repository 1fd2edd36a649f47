/* The exchange as a session sees it: device_group.c does it, through NCCL. */
#include "workloads/backend/cuda/gradients.h"

#include "workloads/backend/cuda/device_group.h"
#include "workloads/backend/cuda/device_session.h"
#include "workloads/backend/cuda/fail.h"

int exchange_join(struct cuda_session *session, struct error *err)
{
	const struct cuda_options *options = &session->options;
	if (!options->group)
		return 0;
	const int code =
		group_join(options->group, options->rank, (int)options->device, options->stop, err);
	session->joined = code == 0;
	if (code)
		return code;
	size_t count;
	float *gradients = train_gradient_array(session->train, &count);
	return group_warm_up(
		options->group, options->rank, gradients, count, session->streams[0], err);
}

void exchange_fail(struct cuda_session *session)
{
	if (session->options.group)
		group_fail(session->options.group);
}

void exchange_leave(struct cuda_session *session)
{
	if (session->joined)
		group_leave(session->options.group, session->options.rank);
	session->joined = false;
}

int exchange_enqueue(struct cuda_session *session, const struct flight *flight, struct error *err)
{
	const struct cuda_options *options = &session->options;
	cudaStream_t stream = session->streams[0];
	size_t count;
	float *gradients = train_gradient_array(session->train, &count);
	int code = CUDA_TRY(err, cudaEventRecord(flight->sync_begin, stream));
	if (!code)
		code = group_all_reduce(
			options->group, options->rank, gradients, count, stream, err);
	return code ? code : CUDA_TRY(err, cudaEventRecord(flight->sync_end, stream));
}

bool exchange_deterministic(const struct cuda_session *session)
{
	return !session->joined || group_is_deterministic(session->options.group);
}
