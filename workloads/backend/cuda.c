/* The CUDA device's place in the list.  This build has no plug-in for it, so it can only say so,
 * and whether there is a device that would be worth one. */
#include "workloads/backend/backends.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const char *const device_files[] = {"/dev/nvidiactl", "/dev/nvidia0"};

static const char *cuda_unavailable(char *why, size_t room)
{
	for (size_t i = 0; i < sizeof device_files / sizeof device_files[0]; i++) {
		if (access(device_files[i], F_OK) == 0)
			continue;
		(void)snprintf(why, room, "no device: %s is not there", device_files[i]);
		return why;
	}
	(void)snprintf(why, room, "a device is present, but this build has no CUDA plug-in");
	return why;
}

static int cuda_open(struct backend *backend, struct error *err)
{
	char why[sizeof backend->description];
	return error_set(err, -ENOTSUP, "cuda: %s", cuda_unavailable(why, sizeof why));
}

static int cuda_step(struct backend *backend, const struct batch_view *batch,
	struct step_result *out, struct error *err)
{
	(void)backend;
	(void)batch;
	(void)out;
	return error_set(err, -ENOTSUP, "cuda: this build has no CUDA plug-in");
}

const struct backend_ops cuda_backend_ops = {
	.name = "cuda",
	.summary = "NVIDIA GPU through the CUDA plug-in",
	.size = sizeof(struct backend),
	.unavailable = cuda_unavailable,
	.open = cuda_open,
	.step = cuda_step,
};
