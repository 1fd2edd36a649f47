/* The interface between the program and libmlbench-cuda.so, which it opens at run time: one function table.
 * The plug-in knows nothing of configurations, threads or queues; the program knows nothing of CUDA.  Both
 * sides are built from one tree: a plug-in of another version is refused. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_PLUGIN_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_PLUGIN_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/backend/batch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUDA_PLUGIN_ABI = 5, CUDA_DEVICES_MAX = 16 };

/* The only symbol that is looked up, and the file's name. */
#define CUDA_PLUGIN_ENTRY "mlbench_cuda_plugin"
#define CUDA_PLUGIN_FILE "libmlbench-cuda.so"

struct cuda_device_facts {
	char name[64], bus[32];
	unsigned major, minor; /* compute capability */
	unsigned multiprocessors;
	uint64_t memory_bytes, l2_bytes;
	bool precisions[STEP_PRECISION_FP8 + 1]; /* which of enum step_precision it computes */
};

/* What is there.  Versions are as CUDA counts: 13000 is 13.0. */
struct cuda_node {
	int driver, runtime; /* what the driver supports; what the plug-in was linked with */
	char cublas[32];     /* "13.0.2" */
	char nccl[64];       /* "2.27.7", or why it cannot be used */
	size_t count;
	struct cuda_device_facts devices[CUDA_DEVICES_MAX];
};

struct step_choosing;

struct cuda_options {
	unsigned device;   /* as the driver counts */
	const char *model; /* of workloads/model */
	uint32_t batch_size, sample_elements, class_count;
	enum augment_type type; /* of finished samples */
	bool channels_last;     /* HWC; else CHW */
	enum step_precision precision;
	enum step_optimizer rule;
	float learning_rate;
	uint64_t seed; /* of the weights: the same on all devices */
	unsigned accumulate, streams, ahead, statistics;
	bool graph;
	unsigned staging_places; /* 0: launch copies */
	size_t batch_room;       /* bytes of the largest batch */
	bool evaluates;          /* evaluate will be called; not with augments */
	/* augment.device = gpu: batches are pictures, of which so large samples are made. */
	bool augments, antialias;
	uint32_t picture_size;    /* edge of a sample */
	struct cuda_group *group; /* NULL: alone */
	unsigned rank, devices;   /* of that group; devices below 2: alone */
	uint64_t bucket_bytes;    /* its gradients are summed in buckets of so many (0: one), */
	bool overlap;             /* each as soon as the backward pass has made it */
	const atomic_bool *stop;  /* waiting gives up soon after it becomes true; may be NULL */
	struct step_choosing *choosing; /* backend.h; counted up while it opens; may be NULL */
};

struct cuda_session; /* one device at work */
struct cuda_group;   /* devices that train together */

enum { CUDA_ID_BYTES = 128 };

/* Processes that train together, with a device each. */
struct cuda_peers {
	unsigned rank, count;            /* of these; options.rank is 0 */
	unsigned char id[CUDA_ID_BYTES]; /* by group_id of one of them; zeros: it could not */
	/* -ETIMEDOUT: one of them is gone; any thread. */
	int (*missing)(void *context, struct error *err);
	void *context;
};

/* What a session is, once open. */
struct cuda_description {
	char text
		[256]; /* "NVIDIA H200 (cuda 13.0), resnet50: GEMMs of a training step with sgd in bf16, graph" */
	double flops_per_sample; /* forward and backward */
	uint64_t device_bytes;   /* allocated */
	bool deterministic;
	double clock_map_error_ns; /* largest so far; NAN before the first event */
};

/* --- what the device can give at best (mlbench probe) ----------------------------------------- */

enum cuda_copy { CUDA_COPY_TO_DEVICE, CUDA_COPY_FROM_DEVICE };

enum { CUDA_PROBE_COPIES_MAX = 64, CUDA_PROBE_GEMMS_MAX = 32, CUDA_PROBE_REPEATS_MAX = 32 };

struct cuda_probe_plan {
	unsigned device;
	unsigned
		repeats; /* of each quantity, in rounds that visit all; 3 to CUDA_PROBE_REPEATS_MAX */
	double seconds; /* to spend, about */
	/* Bytes: 4 KiB to 256 MiB, by factors of 4.  The probe takes twice copy_most of host memory; of the device's memory at
	 * most twice four times copy_most for copies, and as much as products of 8192 x 8192 take, where a quarter of
	 * what is free has room for it. */
	size_t copy_least, copy_most;
	const char *model; /* whose GEMM shapes are measured too; NULL: none */
	uint32_t batch_size, sample_elements, class_count;
	enum step_precision precision; /* of the model's shapes; squares are measured in all */
	unsigned shapes_most;          /* of the model: those with most FLOPs */
	const atomic_bool *stop;
};

/* One quantity: its repeats, in the order measured. */
struct cuda_probe_series {
	double values[CUDA_PROBE_REPEATS_MAX];
	unsigned count;
};
struct cuda_probe_copy {
	enum cuda_copy direction;
	bool pinned;
	size_t bytes;
	struct cuda_probe_series bytes_per_s;
};
struct cuda_probe_gemm {
	enum step_precision precision;
	uint32_t m, n, k;
	char layer[24]; /* of the model; "square" */
	struct cuda_probe_series flops;
};
struct cuda_probe {
	struct cuda_probe_copy copies[CUDA_PROBE_COPIES_MAX];
	size_t copy_count;
	struct cuda_probe_gemm gemms[CUDA_PROBE_GEMMS_MAX];
	size_t gemm_count;
	struct cuda_probe_series
		memory_bytes_per_s; /* read + written of a large copy on the device */
	struct cuda_probe_series
		launch_ns; /* of an empty kernel: host time of the call, back to back */
	struct cuda_probe_series
		kernel_ns; /* from one empty kernel's end to the next one's, on the device */
	struct cuda_probe_series
		graph_launch_ns; /* of a graph of 100 empty kernels, per kernel, on the device */
	struct cuda_probe_series round_trip_ns; /* launch, run, host sees the end */
	char missing[8][256];
	size_t missing_count;
};

/* --- the same products again and again (mlbench accept) ---------------------------------------- */

struct cuda_repeat_plan {
	unsigned device;
	unsigned
		precisions; /* 1 << enum step_precision, of those to compute; what a device lacks is left out */
	unsigned times;   /* that a result is taken, in each of them */
	unsigned between; /* products that are computed before each of these, and not looked at */
	uint32_t
		edge; /* of the squares, a multiple of 16; operands are a function of it and the precision */
	const atomic_bool *stop;
	atomic_uint_least64_t *done; /* products, counted up as they end; may be NULL */
	/* Each result, (edge, edge) elements in host memory, on the calling thread. */
	void (*take)(void *context, enum step_precision precision, const void *result,
		size_t element_bytes);
	void *context;
};

/* --- the table -------------------------------------------------------------------------------- */

/* Functions return 0 or a negative errno with err filled: "cuda: cudaMalloc of 3 GiB: out of memory".  A
 * session's functions are called by one thread each as backend.h says: launch, finish and finished on the
 * step thread; upload, upload_finish and upload_finished on the uploader. */
struct cuda_plugin {
	uint32_t abi;        /* CUDA_PLUGIN_ABI */
	const char *version; /* MLBENCH_VERSION */
	const char *built;   /* "CUDA 13.0; sm_80 sm_90 sm_100, PTX compute_100" */
	bool test_double; /* computes on the CPU, for tests: every output with its figures must say so */

	/* -ENODEV: no device, with the reason; -ENOTSUP: the driver is missing or too old, both versions said. */
	int (*node)(struct cuda_node *out, struct error *err);

	int (*open)(
		struct cuda_session **out, const struct cuda_options *options, struct error *err);
	void (*close)(struct cuda_session *session); /* NULL is fine */
	void (*describe)(const struct cuda_session *session, struct cuda_description *out);
	int (*pin)(struct cuda_session *session, void *memory, size_t bytes, struct error *err);

	int (*launch)(
		struct cuda_session *session, const struct batch_view *batch, struct error *err);
	int (*finish)(struct cuda_session *session, struct step_result *out, struct error *err);
	bool (*finished)(struct cuda_session *session);
	/* The step thread, with no step in flight: the forward pass over a batch of any size in host memory; returns when it is
	 * done.  -ECANCELED: stopped. */
	int (*evaluate)(
		struct cuda_session *session, const struct batch_view *batch, struct error *err);
	int (*upload)(struct cuda_session *session, unsigned place, const struct batch_view *batch,
		struct error *err);
	int (*upload_finish)(struct cuda_session *session, unsigned place,
		struct upload_result *out, struct error *err);
	bool (*upload_finished)(struct cuda_session *session, unsigned place);

	/* Bytes of device memory that open would take; 0: unknown model. */
	uint64_t (*device_bytes)(const struct cuda_options *options);

	/* Devices 0 .. count-1 of one process; made once, before the sessions, on any thread.  Each session
	 * joins in its open, all of them at the same time.  peers: NULL, or of whom this process's one device is one; then its session
	 * joins by `join`, as soon as all of them are open.  -ENOTSUP: no NCCL. */
	int (*group_open)(struct cuda_group **out, unsigned count, const struct cuda_peers *peers,
		struct error *err);
	int (*group_id)(unsigned char out[CUDA_ID_BYTES], struct error *err);
	int (*join)(struct cuda_session *session, struct error *err);
	/* The step thread: waits until the device has the gradients of the step that finish is about; when that was, monotonic ns;
	 * 0: it exchanges none.  -ECANCELED: stopped. */
	int (*computed)(struct cuda_session *session, uint64_t *at_ns, struct error *err);
	void (*group_close)(struct cuda_group *group); /* NULL is fine; after its sessions */

	int (*probe)(const struct cuda_probe_plan *plan, struct cuda_probe *out, struct error *err);
	/* 0, also where it was stopped: what was done was taken. */
	int (*repeat)(const struct cuda_repeat_plan *plan, struct error *err);

	void (*mark)(const char *name); /* NVTX range of the calling thread; NULL ends it */
};

const struct cuda_plugin *mlbench_cuda_plugin(void);

#endif
