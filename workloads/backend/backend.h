/* Who computes a training step: null, emulated, openblas; cuda as a plug-in.  A backend is used by
 * the step thread alone.
 *
 * To add a backend (null.c is the smallest, openblas.c one that computes):
 *   1. workloads/backend/NAME.c: a struct that begins with struct backend, if it has any state, the
 *      functions that it needs of struct backend_ops (at least open, and step or launch), and at the end
 *      `const struct backend_ops NAME_backend_ops`, with .name, .summary, .size, and the facts that are
 *      true of it: .null computes nothing, .emulated waits for a time that is given or published,
 *      .on_cores computes on step.threads of this node's cores; one that has launch has a device with
 *      memory of its own.
 *   2. harness/config/tables.h: `X(ID, NAME)` in STEP_BACKENDS.  step.backend has the choice NAME from
 *      then on, and `mlbench list backends`, help and the man pages show it.
 * It needs no more; tests/recipes/backend.patch is a whole example.
 * Each run records the facts, and prediction and diagnosis know it by these alone:
 * nothing compares names (tests/layering.sh).  `auto` takes cuda or emulated; step.model is checked by
 * backend_check_model where a backend computes one of ours. */
#ifndef MLBENCH_WORKLOADS_BACKEND_BACKEND_H
#define MLBENCH_WORKLOADS_BACKEND_BACKEND_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/config/tables.h"
#include "harness/record/measurement.h"
#include "workloads/backend/batch.h"
#include "workloads/ranks/ranks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Progress of opening: for how many of a step's products kernels have been chosen, over all devices that open.  Counted up by
 * the opening threads, read by any thread.  products 0: nothing to choose, or not yet. */
struct step_choosing {
	atomic_uint chosen, products;
};

struct backend;

struct backend_ops {
	const char *name, *summary;
	bool exchanges; /* gradients with other ranks, inside its own step; else backend_step does it after one */
	/* Facts (workload_facts.h); with memory of its own is what has launch. */
	bool null, emulated, on_cores;
	/* It computes on sequences of tokens, (B, T) int32 with labels (B, T), by models that have tokens. */
	bool takes_tokens;
	size_t size; /* of the implementation's struct, which begins with struct backend */
	const char *(*unavailable)(char *why, size_t room); /* NULL, or the reason */
	/* What there is, in one line: versions, devices.  Optional; also where it is unavailable. */
	const char *(*details)(char *out, size_t room);
	/* What a step would run on here, before anything is opened: "NVIDIA H200, mlp in bf16".  Optional. */
	const char *(*outline)(const struct config *config, char *out, size_t room);
	int (*open)(struct backend *backend, struct error *err);
	int (*step)(struct backend *backend, const struct batch_view *batch,
		struct step_result *out, struct error *err);
	/* The step thread, with no step in flight: the forward pass alone, of a batch of any size in host memory.  Optional:
	 * without it evaluations wait. */
	int (*evaluate)(struct backend *backend, const struct batch_view *batch, struct error *err);
	void (*close)(struct backend *backend);                          /* optional */
	int (*validate)(const struct config *config, struct error *err); /* optional */
	uint64_t (*bytes)(const struct config *config, uint32_t sample_elements,
		uint32_t class_count); /* that open allocates; optional: none */

	/* A device that works by itself (cuda).  All of these, or none; with them, step is not called.
	 *
	 * The step thread: launch begins a step and returns; finish waits for the oldest that was launched;
	 * finished says whether it would return at once.  Steps are finished in the order of launches; at
	 * most 1 + step.ahead are in flight.
	 *
	 * The uploader, at the same time as the step thread: upload begins the copy of a batch from host
	 * memory to the staging place `place` of the device; upload_finish waits until the host memory may
	 * be used again.  A step of that batch may be launched at once: the device orders the two.  A place
	 * is used again only after the step of its batch was finished.
	 *
	 * pin makes host memory one that the device copies from directly; it ends with close.  Called on
	 * the step thread before anything is uploaded.  memory: mapped for the life of the backend. */
	int (*launch)(struct backend *backend, const struct batch_view *batch, struct error *err);
	int (*finish)(struct backend *backend, struct step_result *out, struct error *err);
	bool (*finished)(struct backend *backend);
	int (*upload)(struct backend *backend, unsigned place, const struct batch_view *batch,
		struct error *err);
	int (*upload_finish)(struct backend *backend, unsigned place, struct upload_result *out,
		struct error *err);
	bool (*upload_finished)(struct backend *backend, unsigned place);
	int (*pin)(struct backend *backend, void *memory, size_t bytes, struct error *err);

	/* Of this device, for the measurement: names, peak, determinism, what was sampled of training; times
	 * and NVML's figures are filled by others.  Optional. */
	void (*describe)(struct backend *backend, struct device_measurement *out);

	/* Devices that train together (step.devices > 1); without it the backend has one device only.  *own is
	 * handed to each backend as group->own, and to group_close when all of them are closed. */
	int (*group_open)(
		void **own, const struct config *config, unsigned count, struct error *err);
	void (*group_close)(void *own);

	/* Ranks that train together with a device each, which computes by itself; without these two such a backend trains alone.  One
	 * of them makes an id, by which all open the group; group_close ends it. */
	int (*ranks_id)(unsigned char id[RANKS_ID_BYTES], struct error *err);
	int (*ranks_open)(void **own, struct ranks *ranks, unsigned count, struct error *err);
	/* The device that this rank takes, of those of its node: "0000:81:00.0".  Returns out; "": it has none. */
	const char *(*ranks_device)(unsigned local_rank, char *out, size_t room);

	/* Marks a stage of the calling thread for an outside profiler (NVTX); NULL name: its end.  Optional. */
	void (*mark)(const char *name);
};

/* Devices that train together in one process: after each step all of them exchange their gradients, so none begins its
 * next step before the slowest has computed this one (synchronous data-parallel training).  What a group is depends on
 * the backend: emulated devices meet at a barrier (emulated.h), CUDA devices through NCCL. */
struct backend_group {
	const struct backend_ops *ops;
	unsigned count;
	void *own; /* the backend's: what its group_open made */
};

/* What a device does in its step, reported to its watcher by the thread that steps it; at the end of a step it is computing. */
enum group_phase {
	GROUP_COMPUTES,
	GROUP_WAITS,     /* its gradients are there, another device's are not */
	GROUP_EXCHANGES, /* all are */
};
struct group_watch {
	/* On the step's thread; at_ns, on the monotonic clock, may lie a moment back. */
	void (*enter)(void *context, enum group_phase phase, uint64_t at_ns);
	void *context;
};

/* open, step and close are called on the step thread: they set its timer slack, its floating-point
 * mode and its OpenMP thread count (and put them back). */
struct backend {
	const struct backend_ops *ops;
	const struct config *config;
	uint32_t batch_size, sample_elements, class_count;
	const atomic_bool *stop; /* a step gives up soon after it becomes true; may be NULL */
	struct step_choosing *choosing;      /* counted up while it opens; may be NULL */
	unsigned device_index, device_count; /* of step.devices that train together */
	const struct backend_group *group;   /* of those; NULL: alone */
	struct gradients *gradients; /* exchanged with other ranks after each step; NULL: alone */
	const struct group_watch *watch; /* called in each phase of a step; may be NULL */
	unsigned staging_places; /* uploaded batches at once; 0: launch copies (or step reads) */
	size_t batch_room;       /* bytes of the largest batch that is uploaded or stepped */
	/* Emulated: factors of the time that the next steps, and exchanges of gradients, take; 1 at first. */
	double slowdown, exchange_slowdown;

	/* Filled by open. */
	bool emulated;
	/* "emulated h100, resnet50: 224 ms per batch of 400, scaled to 35.8 ms per batch of 64" */
	char description[256];
	double flops_per_sample; /* forward and backward; 0 when there is no model */
	double nominal_step_ns;  /* emulated: per full batch; 0 otherwise */
};

#define BACKEND_DECLARE(ID, name) extern const struct backend_ops name##_backend_ops;
STEP_BACKENDS(BACKEND_DECLARE)
#undef BACKEND_DECLARE
extern const struct backend_ops *const backend_list[]; /* NULL-terminated */

enum { BACKEND_WHY_BYTES = 400 }; /* room for why_not that cuts no reason short */

/* Whether its device works by itself, in memory of its own. */
static inline bool backend_is_device(const struct backend_ops *ops)
{
	return ops->launch != NULL;
}

/* Whether it computes the steps of evaluations.  Finished samples on a device that makes them itself it does not. */
static inline bool backend_evaluates(const struct backend_ops *ops, const struct config *config)
{
	return ops->evaluate && config_integer(config, KEY_EVALUATE_EVERY) > 0 &&
	       config_integer(config, KEY_AUGMENT_DEVICE) != AUGMENT_DEVICE_GPU;
}

/* Marks a stage of the calling thread (NULL: its end) for an outside profiler, where the backend knows of one: a
 * test of a pointer where it does not. */
static inline void backend_mark(const struct backend_ops *ops, const char *name)
{
	if (__builtin_expect(ops->mark != NULL, 0))
		ops->mark(name);
}

/* Resolves step.backend (auto: a real device that can compute step.model, unless step.time asks for an
 * emulated one; else emulated).  NULL: -ENOTSUP with the reason for one asked by name; why_not says, for
 * auto, why no real device was taken. */
const struct backend_ops *backend_choose(
	const struct config *config, char *why_not, size_t room, struct error *err);

/* Where a real device computes the step and its step time of this model is published: that figure, to stand
 * beside what is measured ("published h100, resnet50: 224 ms per batch of 400, ... samples/s").  False: none. */
bool backend_reference(const struct config *config, char *out, size_t room);

/* class_count: for the labels' head.  -EINVAL: model or device unknown (with a suggestion), or a
 * pair without a published time and no step.time. */
struct backend_options {
	const struct config *config;
	uint32_t sample_elements, class_count;
	const atomic_bool *stop;             /* may be NULL */
	struct step_choosing *choosing;      /* likewise */
	unsigned device_index, device_count; /* 0 of 1: alone */
	const struct backend_group *group;   /* NULL: alone */
	struct gradients *gradients;         /* of this rank; NULL: it is alone */
	const struct group_watch *watch;     /* may be NULL */
	unsigned staging_places;
	size_t batch_room;
};
int backend_open(struct backend **out, const struct backend_options *options, struct error *err);
int backend_step(struct backend *backend, const struct batch_view *batch, struct step_result *out,
	struct error *err);
void backend_close(struct backend *backend); /* NULL is fine */

/* Bytes that open will allocate (weights, activations), for the printed memory bound. */
uint64_t backend_bytes(const struct config *config, uint32_t sample_elements, uint32_t class_count);

/* Checks step.model, step.device and their pair before anything runs (mlbench check). */
int backend_validate(const struct config *config, struct error *err);

/* One line on the BLAS that openblas steps call, for the environment: version, the core type whose
 * kernels it picked (OPENBLAS_CORETYPE overrides), threading, processors; opens it.  Without one: why.  Returns out. */
const char *openblas_describe(char *out, size_t room);

/* --- devices that train together -------------------------------------------------------------- */

/* Opens the group of step.devices, or of ranks (NULL: alone), for the backend that step.backend chooses; before the backends, on any
 * thread.  *out is NULL for one device, and for ranks that exchange through gradients.h.  -EINVAL: the backend has one device only;
 * -ENOTSUP: it cannot exchange (err: why). */
int backend_group_open(struct backend_group **out, const struct config *config, struct ranks *ranks,
	struct error *err);
/* After all its backends were closed; NULL is fine. */
void backend_group_close(struct backend_group *group);

/* --- for the backends themselves, and tests --------------------------------------------------- */

/* The published step of a device by its driver's name for it, in words.  False: none is published. */
bool emulated_reference(const char *device, const struct config *config, char *out, size_t room);

/* The first key that is set and that an emulated step ignores; KEY_COUNT: none. */
enum key_id emulated_ignores(const struct config *config);

/* For tests, before any thread chooses a backend: stands where cuda's would; NULL: cuda's again. */
void backend_replace_device(const struct backend_ops *ops);

/* Fills err with "step.KIND = WORD: unknown KIND", the nearest of names or else all of them;
 * -EINVAL. */
int backend_refuse_name(struct error *err, const char *kind, const char *word,
	const char *const *names, size_t count);

/* For backends that compute: refuses a step.model that model_find does not know; -EINVAL. */
int backend_check_model(const struct config *config, struct error *err);

/* Adds name to names (room of them) unless it is there; the new count. */
size_t backend_add_name(const char **names, size_t count, size_t room, const char *name);

enum { BACKEND_NAMES_MAX = 64 };

#endif
