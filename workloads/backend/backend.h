/* Who computes a training step: null, emulated, openblas; cuda as a plug-in.  A backend is used by
 * the step thread alone. */
#ifndef MLBENCH_WORKLOADS_BACKEND_BACKEND_H
#define MLBENCH_WORKLOADS_BACKEND_BACKEND_H

#include "harness/base/error.h"
#include "harness/config/config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A full batch as the step receives it: (B, 3, H, W) or (B, H, W, 3), float or uint8. */
struct batch_view {
	const void *data;
	const uint32_t *labels; /* (B) */
	uint32_t size;          /* B; the last of an epoch may be smaller */
	size_t sample_bytes;
	enum augment_type type;
	uint64_t index; /* of the batch since the run began */
};

struct step_result {
	uint64_t device_ns; /* time the device was at work: nominal for emulated (less when it was
			     * stopped early), measured for a real one */
	uint64_t oversleep_ns; /* emulated: return after the deadline */
	double loss;           /* NaN where there is none */
};

struct backend;

struct backend_ops {
	const char *name, *summary;
	size_t size; /* of the implementation's struct, which begins with struct backend */
	const char *(*unavailable)(char *why, size_t room); /* NULL, or the reason */
	int (*open)(struct backend *backend, struct error *err);
	int (*step)(struct backend *backend, const struct batch_view *batch,
		struct step_result *out, struct error *err);
	void (*close)(struct backend *backend);                          /* optional */
	int (*validate)(const struct config *config, struct error *err); /* optional */
	uint64_t (*bytes)(const struct config *config, uint32_t sample_elements,
		uint32_t class_count); /* that open allocates; optional: none */
};

/* open, step and close are called on the step thread: they set its timer slack, its floating-point
 * mode and its OpenMP thread count (and put them back). */
struct backend {
	const struct backend_ops *ops;
	const struct config *config;
	uint32_t batch_size, sample_elements, class_count;
	const atomic_bool *stop; /* a step gives up soon after it becomes true; may be NULL */
	double slowdown; /* emulated: the next steps take so many times as long; 1 at first */

	/* Filled by open. */
	bool emulated;
	/* "emulated h100, resnet50: 224 ms per batch of 400, scaled to 35.8 ms per batch of 64" */
	char description[256];
	double flops_per_sample; /* forward and backward; 0 when there is no model */
	double nominal_step_ns;  /* emulated: per full batch; 0 otherwise */
};

extern const struct backend_ops *const backend_list[]; /* NULL-terminated */

/* Resolves step.backend (auto: a real device, else emulated).  NULL: -ENOTSUP with the reason for
 * one asked by name; why_not says, for auto, why no real device was taken. */
const struct backend_ops *backend_choose(
	const struct config *config, char *why_not, size_t room, struct error *err);

/* class_count: for the labels' head.  -EINVAL: model or device unknown (with a suggestion), or a
 * pair without a published time and no step.time. */
int backend_open(struct backend **out, const struct config *config, uint32_t sample_elements,
	uint32_t class_count, const atomic_bool *stop, struct error *err);
int backend_step(struct backend *backend, const struct batch_view *batch, struct step_result *out,
	struct error *err);
void backend_close(struct backend *backend); /* NULL is fine */

/* Bytes that open will allocate (weights, activations), for the printed memory bound. */
uint64_t backend_bytes(const struct config *config, uint32_t sample_elements, uint32_t class_count);

/* Checks step.model, step.device and their pair before anything runs (mlbench check). */
int backend_validate(const struct config *config, struct error *err);

/* One line on the BLAS that openblas steps call, for the environment: version, the core type whose
 * kernels it picked (OPENBLAS_CORETYPE overrides), threading, processors.  Returns out. */
const char *openblas_describe(char *out, size_t room);

/* With step.time set, step.device and step.model may have this name: nothing is published of them.
 */
extern const char backend_custom_name[]; /* "custom" */

/* The emulated devices' published steps (MLPerf Storage's workload files). */
struct emulated_step {
	const char *device, *model;
	uint32_t batch;
	double seconds; /* per batch on one accelerator */
};
extern const struct emulated_step emulated_steps[];
extern const size_t emulated_step_count;

#endif
