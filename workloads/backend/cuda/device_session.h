/* One device at work: what the parts of a session share.  session.c opens and closes, step.c launches and finishes, enqueue.c is
 * the sequence of a step on the stream, record.c keeps steps as graphs, staging.c has the uploads. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_SESSION_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_SESSION_H

#include "workloads/backend/cuda/device_clock.h"
#include "workloads/backend/cuda/pins.h"
#include "workloads/backend/cuda/plugin.h"
#include "workloads/backend/cuda/staging.h"
#include "workloads/backend/cuda/step_graph.h"
#include "workloads/backend/cuda/train.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

enum { STATISTICS = 4 };

/* What comes back from a step: pinned, written by the device. */
struct readback {
	double statistics[STATISTICS];
	float loss;
};

/* A step that was launched, and its place in the ring of those. */
struct flight {
	cudaEvent_t begin, copied, sync_begin, sync_end, end; /* timed */
	cudaEvent_t done;                                     /* what it gives is back */
	struct readback *readback;
	uint64_t batch; /* its number */
	uint32_t size;
	uint64_t stamp;
	uint64_t launched_ns, launch_ns;
	bool copies, syncs, has_statistics;
	bool whole;    /* a full batch without statistics */
	bool recorded; /* launched as a graph */
	enum record_kind kind;
};

/* What is taken of this batch. */
struct step_plan {
	struct staging_place *place;
	unsigned place_index;
	bool on_host;    /* the launch copies it */
	bool updates;    /* the weights change */
	bool statistics; /* are taken */
	float carry;     /* see train_gradients */
};

struct cuda_session {
	struct cuda_options options;
	char device_name[64];
	cudaStream_t streams[DEVICE_STREAMS_MAX]; /* (options.streams) */
	struct device_clock clock;
	struct staging staging;
	struct train *train;
	struct records records;
	struct pin *pins;
	void *augmented;    /* (batch_size) finished samples that kernels made of pictures; NULL */
	double *statistics; /* (STATISTICS), on the device */
	struct readback *readbacks; /* (room), pinned */
	struct flight *flights;     /* ring of (room); owned */
	unsigned room;
	uint64_t launched, finished;
	unsigned devices;     /* that train together */
	unsigned accumulated; /* batches whose gradients wait for an update */
	uint64_t last_ns[2];  /* device time of the two full batches that were finished last */
	uint64_t last_end_ns;
	bool joined;        /* the group */
	bool broken;        /* an earlier call failed: what is on the device is unknown */
	int timer_slack_ns; /* the step thread's own, to be put back */
};

/* What open takes of the device's memory; 0: unknown model. */
uint64_t session_device_bytes(const struct cuda_options *options);

/* plugin.h's functions. */
int session_open(struct cuda_session **out, const struct cuda_options *options, struct error *err);
void session_close(struct cuda_session *session);
void session_describe(const struct cuda_session *session, struct cuda_description *out);
int session_pin(struct cuda_session *session, void *memory, size_t bytes, struct error *err);
int session_launch(struct cuda_session *session, const struct batch_view *batch, struct error *err);
int session_finish(struct cuda_session *session, struct step_result *out, struct error *err);
bool session_finished(struct cuda_session *session);
int session_upload(struct cuda_session *session, unsigned place, const struct batch_view *batch,
	struct error *err);
int session_upload_finish(
	struct cuda_session *session, unsigned place, struct upload_result *out, struct error *err);
bool session_upload_finished(struct cuda_session *session, unsigned place);

/* enqueue.c: all of a step on the first stream, events included. */
int enqueue_step(struct cuda_session *session, struct flight *flight, const struct step_plan *plan,
	const struct batch_view *batch, struct error *err);
/* The pieces of it that a graph may hold: samples made of pictures where that is asked for, then the gradients; the update. */
int enqueue_gradients(struct cuda_session *session, const struct staging_place *place,
	uint32_t size, float carry, struct error *err);
int enqueue_update(struct cuda_session *session, struct error *err);

#endif
