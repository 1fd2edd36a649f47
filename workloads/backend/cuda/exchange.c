/* The exchange as a session sees it: group.c does it, through NCCL. */
#include "workloads/backend/cuda/exchange.h"

#include "workloads/backend/cuda/fail.h"
#include "workloads/backend/cuda/session.h"

#include <errno.h>
#include <stdio.h>

int exchange_join(struct cuda_session *session, struct error *err)
{
	if (!session->options.group)
		return 0;
	return error_set(err, -ENOTSUP, "cuda: devices cannot train together yet");
}

void exchange_leave(struct cuda_session *session)
{
	(void)session;
}

int exchange_enqueue(struct cuda_session *session, const struct flight *flight, struct error *err)
{
	(void)session;
	(void)flight;
	return error_set(err, -ENOTSUP, "cuda: devices cannot train together yet");
}

bool exchange_deterministic(const struct cuda_session *session)
{
	return session->devices == 1;
}

void exchange_version(char *out, size_t room)
{
	(void)snprintf(out, room, "not looked for");
}
