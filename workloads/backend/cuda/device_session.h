/* One device at work: what the parts of a session share.  device_session.c opens and closes it and is its part in a group of
 * devices, step.c launches and finishes steps, staging.c has the uploads. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_SESSION_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_DEVICE_SESSION_H

#include "harness/base/error.h"
#include "workloads/backend/cuda/device_clock.h"
#include "workloads/backend/cuda/plugin.h"
#include "workloads/backend/cuda/train.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STATISTICS = 4 };

/* Bits of a step's kind: it adds to gradients that are there; it changes the weights. */
enum record_kind { RECORD_START, RECORD_ADDS = 1, RECORD_UPDATES = 2, RECORD_KINDS = 4 };

struct record {
	cudaGraphExec_t exec;
	size_t nodes;
};

struct records {
	struct record *list; /* (places, RECORD_KINDS); owned */
	unsigned places;
	struct record update;    /* alone: behind an exchange */
	bool refused;            /* a step could not be recorded */
	double gap_ns;           /* period of empty kernels; NAN: not known */
	bool seen[RECORD_KINDS]; /* ran kernel by kernel once, so that all of them are loaded */
	uint64_t candidates[RECORD_KINDS]; /* full batches at the first place */
	double busy_ns[RECORD_KINDS];      /* what the kernels take, smoothed; 0: not known */
};

/* What comes back from a step: pinned, written by the device. */
struct readback {
	double statistics[STATISTICS];
	float loss;
};

/* A step that was launched, and its place in the ring of those. */
struct flight {
	cudaEvent_t begin, copied, exchange_begin, sync_begin, sync_end, end; /* timed */
	cudaEvent_t done; /* what it gives is back */
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

/* A place for a batch in the device's memory. */
struct staging_place {
	void *data;                  /* on the device: what the host's batch holds */
	uint8_t *words;              /* on the device: labels, then descriptors of pictures */
	uint8_t *host_words;         /* the same, pinned: copied from there in one piece */
	cudaEvent_t begin, end;      /* of the copy */
	cudaEvent_t used;            /* after the step that took it */
	uint64_t stamp, expected_ns; /* of the copy that is under way */
	uint64_t batch;              /* that it holds; UINT64_MAX: none yet */
	size_t bytes;                /* of it */
	uint32_t size;               /* samples of it */
};

struct staging {
	cudaStream_t stream;
	struct staging_place *places; /* (count); owned */
	unsigned count; /* at least one: where there is no upload, launches copy to them in turn */
	struct staging_place
		*evaluated; /* behind them, of evaluations alone; NULL: there are none */
	size_t pictures_at; /* in words */
	uint64_t last_ns;   /* time that the copy finished last took; 0: none yet */
	size_t last_bytes;
};

/* The sum of gradients over a group, on a stream of its own. */
struct summation {
	cudaStream_t stream;
	cudaEvent_t turn; /* what one stream waits for on another */
	float *gradients;
	struct bucket *buckets; /* (count), in the order in which they are made; owned */
	size_t count;
	size_t begun; /* of this step's */
};

struct cuda_session {
	struct cuda_options options;
	char device_name[64];
	cudaStream_t streams[DEVICE_STREAMS_MAX]; /* (options.streams) */
	struct device_clock clock;
	struct staging staging;
	struct train *train;
	struct records records;
	struct summation summation; /* {0}: alone */
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
int session_join(struct cuda_session *session, struct error *err);
int session_computed(struct cuda_session *session, uint64_t *at_ns, struct error *err);
int session_evaluate(
	struct cuda_session *session, const struct batch_view *batch, struct error *err);
int session_upload(struct cuda_session *session, unsigned place, const struct batch_view *batch,
	struct error *err);
int session_upload_finish(
	struct cuda_session *session, unsigned place, struct upload_result *out, struct error *err);
bool session_upload_finished(struct cuda_session *session, unsigned place);

/* step.c: steps kept as graphs.  On an idle device; measures the period of empty kernels. */
int records_open(struct cuda_session *session, struct error *err);
void records_close(struct records *records); /* safe on {0} */

/* --- staging.c -------------------------------------------------------------------------------- */

int staging_open(struct cuda_session *session, struct error *err);
void staging_close(struct staging *staging); /* safe on {0}; nothing runs on the device any more */

uint64_t staging_bytes(const struct cuda_options *options); /* of device memory that open takes */
size_t staging_sample_bytes(const struct cuda_options *options); /* of a finished sample */

/* -EINVAL: this session cannot take the batch (size, type, bytes, a picture outside of them). */
int staging_check(
	const struct cuda_options *options, const struct batch_view *batch, struct error *err);

/* Enqueues the copy of a checked batch to a place. */
int staging_copy(struct cuda_session *session, struct staging_place *place,
	const struct batch_view *batch, cudaStream_t stream, struct error *err);

/* Host memory that devices copy from directly.  Several sessions share the pipeline's pools, and memory can be registered once in
 * a process: the first to ask registers, the last to leave gives it up. */
struct pin; /* one session's hold on one piece of memory */

/* Any thread.  *list: what a session holds; the new one is put in front.  A refusal (a limit on locked memory, memory that
 * cannot be pinned) changes nothing: copies from there work all the same, only slower. */
int pins_add(struct pin **list, void *memory, size_t bytes, struct error *err);
/* Ends all of the list's holds. */
void pins_release(struct pin **list);

#endif
