/* A batch as a step receives it, and what a step gives back: what the program and the plug-in of a device
 * hand each other, so that it knows nothing of configurations. */
#ifndef MLBENCH_WORKLOADS_BACKEND_BATCH_H
#define MLBENCH_WORKLOADS_BACKEND_BATCH_H

#include "harness/config/config.h"
#include "workloads/ranks/gradients_round.h"

#include <stddef.h>
#include <stdint.h>

/* A decoded picture that the device will crop, resize, flip and normalise (augment.device = gpu): RGB bytes
 * (height, width, 3) at data + offset, and the box of it that becomes the sample. */
struct batch_picture {
	uint64_t offset;
	uint32_t width, height;
	float x, y, box_width, box_height; /* in its pixels, with fractions, inside it */
	uint32_t flip;
	uint32_t bad; /* could not be decoded: the sample is zeros, and there are no bytes */
};

enum { BATCH_ON_HOST = -1 };

/* What the numbers of a batch are; the first two are augment.type's. */
enum batch_type {
	BATCH_FLOAT32 = AUGMENT_TYPE_FLOAT32,
	BATCH_UINT8 = AUGMENT_TYPE_UINT8,
	BATCH_INT32,
};

static inline size_t batch_type_bytes(enum batch_type type)
{
	return type == BATCH_UINT8 ? 1 : 4;
}

/* In labels of sequences (B, T): no loss is taken of this token. */
static const uint32_t BATCH_LABEL_MASKED = UINT32_MAX; /* -1 as int32 */

/* B samples of the shape that their kind says (workloads/sample/sample.h): images are (B, 3, H, W) or
 * (B, H, W, 3), float or uint8, and their labels (B); sequences and their labels are (B, T) int32.  Or what
 * the device makes them of. */
struct batch_view {
	const void *data;       /* in host memory; ignored when it was uploaded */
	const uint32_t *labels; /* (B, label_bytes), host memory; likewise */
	union {                 /* (B), host memory; NULL: data are finished samples */
		const void *notes;
		const struct batch_picture *pictures; /* of images */
	};
	size_t bytes;        /* of data in use */
	uint32_t size;       /* B; the last of an epoch may be smaller */
	size_t sample_bytes; /* of a finished sample */
	uint32_t type;       /* of finished samples: enum batch_type */
	uint64_t index;      /* of the batch since the run began */
	int place;           /* staging place that it was uploaded to, or BATCH_ON_HOST */
	size_t label_bytes;  /* of a sample's labels; 4 where it has a class */
};

/* Times on the monotonic clock, ns. */
struct step_result {
	uint64_t device_ns; /* time the device was at work: nominal for emulated (less when it was
			     * stopped early), measured for a real one */
	uint64_t oversleep_ns; /* emulated: return after the deadline */
	double loss;           /* NaN: the backend computes none */

	/* Devices that work by themselves; 0 elsewhere, but for the first two where the device is emulated. */
	uint64_t begin_ns, end_ns; /* of the step on the device; emulated: as its clock has it */
	uint64_t launch_ns;        /* the host's time in launching it */
	uint64_t sync_ns; /* of device_ns: the exchange of gradients, waiting for others included */
	/* When the device had its gradients and that began; 0: alone, or not known.  What of sync_ns is waiting
	 * for others follows from theirs. */
	uint64_t sync_begin_ns;
	/* From when the first bucket was begun until the sums were there: what of it is beyond sync_ns passed beside the backward
	 * pass; 0: not timed. */
	uint64_t exchange_ns;
	uint64_t copy_ns; /* of device_ns: copying the batch, where it was not uploaded before */
	/* Between ranks: how the round ended; met_ns 0: there are none. */
	struct gradients_round round;
	double idle_share; /* of device_ns in which no kernel ran; NAN: not measured in this step */
	/* Sampled by step.statistics; NAN in other steps. */
	double gradient_norm, nonfinite_share, activation_mean, activation_deviation;
};

struct upload_result {
	uint64_t begin_ns, end_ns; /* of the copy on the device; 0: not known */
	uint64_t device_ns;        /* time that it took there */
};

#endif
