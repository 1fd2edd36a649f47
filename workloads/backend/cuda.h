/* Finding and opening the CUDA plug-in, once in a process, and the exact reason when no device can be had. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_H

#include "harness/base/error.h"
#include "workloads/backend/cuda/plugin.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Names a plug-in's file; it is then looked for nowhere else. */
#define CUDA_PLUGIN_VARIABLE "MLBENCH_CUDA_PLUGIN"

struct cuda_found {
	const struct cuda_plugin
		*plugin;       /* NULL: none could be opened, or there is no driver for it */
	char path[PATH_MAX];   /* its file; "" */
	bool ready;            /* it has at least one device */
	struct cuda_node node; /* as far as it is known: versions even without a device */
	/* Not ready: the reason, in one line. */
	char why[ERROR_TEXT_BYTES];
};

/* Any thread; the first call looks (up to a second, where there is a driver), the others get what it found.  Looked at:
 * $MLBENCH_CUDA_PLUGIN, else the folder of the running program, then ../lib/mlbench and ../lib from there.
 * One that is found, not named, is opened only where there is a driver. */
const struct cuda_found *cuda_find(void);

/* One line on what was found: "driver 13.0, runtime 13.0, cuBLAS 13.1.0, NCCL 2.28.3, plug-in built with CUDA 13.0; sm_80 sm_90;
 * 2 devices: NVIDIA H200 (sm_90, 140 GiB)".  What is not known is left out; "" without a plug-in.  Returns out. */
const char *cuda_describe_node(const struct cuda_found *found, char *out, size_t room);

/* step.precision; where it is auto, what the first device trains in: bf16 if it computes in it, else fp32. */
enum step_precision cuda_precision(const struct config *config);

/* The parts, for tests.  Opens one file: -ENOENT with the linker's words when it or a library that it needs is missing or
 * broken; -ENOTSUP: it is no plug-in, or of another version.  It stays open. */
int cuda_open_plugin(const struct cuda_plugin **out, const char *path, struct error *err);
/* A fresh look, as cuda_find's, from a program in `folder`. */
void cuda_look(struct cuda_found *found, const char *folder);

#endif
