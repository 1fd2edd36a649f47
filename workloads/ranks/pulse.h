/* Whether the other ranks are still there.  A thread of the leader asks each of them every second, a thread of theirs answers,
 * whatever the rank does otherwise: so one that computes for long, or waits for its storage, is told from one whose node has
 * stopped or cannot be reached.  The others know by the questions that the leader is there.
 *
 * A process that was stopped itself counts nobody's silence meanwhile. */
#ifndef MLBENCH_WORKLOADS_RANKS_PULSE_H
#define MLBENCH_WORKLOADS_RANKS_PULSE_H

#include "harness/base/error.h"
#include "workloads/ranks/mpi/plugin.h"

#include <stdbool.h>
#include <stdint.h>

struct pulse;

struct pulse_options {
	const struct mpi_plugin *plugin;
	const struct mpi_world *world;
	uint64_t look_ns;    /* between looks, and so between questions */
	uint64_t silence_ns; /* of a rank that is lost */
	/* The job that has lost one is ended by force when it has not closed this for so long: a call of MPI holds it. */
	uint64_t end_ns;
	int status; /* that it then ends with */
};

int pulse_open(struct pulse **out, const struct pulse_options *options, struct error *err);

/* Waits until all have closed it; with at_once for nobody, and then requests stay open.  NULL is fine. */
void pulse_close(struct pulse *pulse, bool at_once);

/* From now on a job that has lost one is not ended by force, and the leader goes on asking the others.  Any thread. */
void pulse_spare(struct pulse *pulse);

/* A rank has been silent for too long, or MPI says that it is gone: the first one.  Any thread. */
bool pulse_lost(const struct pulse *pulse, unsigned *rank, uint64_t *silent_ns);
/* Whether it is this one, or one of those that were lost later, in a job that was spared. */
bool pulse_lost_rank(const struct pulse *pulse, unsigned rank);

#endif
