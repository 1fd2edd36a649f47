/* The devices of a repetition, a step thread each and an uploader where there is that stage: what all of them
 * have done so far, as one. */
#ifndef MLBENCH_PIPELINES_DEVICES_H
#define MLBENCH_PIPELINES_DEVICES_H

#include "pipelines/stepper.h"
#include "pipelines/upload.h"

struct devices {
	unsigned count;
	struct stepper *steppers[DEVICES_MAX];
	struct upload *uploads[DEVICES_MAX]; /* NULL: no upload stage */
};

/* Samples and batches of all; the longest last step. */
struct step_progress devices_progress(const struct devices *devices);

/* Copies of each: (count). */
void devices_read_uploads(const struct devices *devices, struct upload_totals *out);

/* The queues of uploaded batches as one: depths add up, shares of time are means.  The depth now. */
void devices_start_meters(const struct devices *devices, uint64_t now_ns);
uint32_t devices_read_queues(
	const struct devices *devices, uint64_t now_ns, struct queue_integrals *out);

void devices_wake(const struct devices *devices); /* after crew's stopping was set */
bool devices_join(
	const struct devices *devices, uint64_t deadline_ns); /* false: one does not end */
void devices_free(struct devices *devices);                   /* after devices_join; safe on {0} */

#endif
