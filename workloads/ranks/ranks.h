/* The ranks of a job: processes that a launcher started, one of which leads.  The leader (rank 0) has the configuration, the
 * record and every decision; the others follow: they hear what to do, do it, and answer.  All of this goes from or to the
 * leader, so that whoever does not answer has a name.
 *
 * Opened through the MPI plug-in, where a launcher started us as one of several; alone there are no ranks, and no MPI is opened.
 *
 * Each wait ends within a limit, and as soon as a rank is known to be gone (pulse.h), whichever it waits for; of the leader also
 * within two seconds of *stop becoming true, since the others end when it does.  One thread at a time, but for gradients.h. */
#ifndef MLBENCH_WORKLOADS_RANKS_RANKS_H
#define MLBENCH_WORKLOADS_RANKS_RANKS_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/base/launcher.h"
#include "workloads/ranks/mpi/plugin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANKS_MESSAGE_MAX = 64 << 20 /* bytes */, RANKS_CLOCK_BYTES = 80, RANKS_ID_BYTES = 128 };

/* Where a rank is, as the leader knows it.  Its monotonic clock and offset_ns are the leader's, give or take error_ns. */
struct rank_place {
	char host[MPI_HOST_BYTES];
	char clock[RANKS_CLOCK_BYTES]; /* ranks of which this is the same have one clock */
	int64_t offset_ns;
	uint64_t error_ns;
};

struct ranks;
struct pulse;
struct gradients;
struct gradients_options;

struct ranks {
	/* What a pipeline calls of the ranks that it trains with, so that one that never does links nothing of them: ranks_agree and
	 * ranks_missing; and gradients_open, which whoever opened them sets where they are to train. */
	int (*agree)(struct ranks *ranks, unsigned count, int code, struct error *err);
	int (*missing)(struct ranks *ranks, struct error *err);
	int (*open_gradients)(
		struct gradients **out, const struct gradients_options *options, struct error *err);
	const struct mpi_plugin *plugin;
	struct mpi_world world;
	struct launcher launcher;
	const atomic_bool *stop;
	uint64_t patience_ns;      /* for what another rank, which is there, sends or takes */
	struct rank_place *places; /* (count), by rank: the others know the leader's; owned */
	int64_t offset_ns;         /* of this rank's clock, as in its place; 0 of the leader's */
	uint64_t error_ns;
	struct pulse *pulse; /* of which the others are; owned */
	/* By which devices find one another, of the leader's backend: of this repetition. */
	unsigned char id[RANKS_ID_BYTES];
	unsigned without; /* the one that takes no part for now, never the leader; 0: all do */
	bool spares;      /* a lost rank ends no waiting but for itself */
	atomic_bool lost; /* somebody is gone, or requests stay open: ending waits for nobody */
};

/* *out is NULL with 0: this process is alone.  -ENOTSUP: a launcher started several, and there is no plug-in, or MPI sees others
 * than the launcher says.  stop: may be NULL. */
int ranks_open(struct ranks **out, const atomic_bool *stop, struct error *err);
/* The same through a plug-in that is at hand. */
struct ranks_options {
	const struct mpi_plugin *plugin;
	struct launcher launcher;
	const atomic_bool *stop;
	uint64_t pulse_ns, silence_ns; /* as in struct pulse_options */
};
int ranks_open_through(struct ranks **out, const struct ranks_options *options, struct error *err);
/* Waits for the others, unless somebody was lost: then all are ended when this process exits, with this status.  NULL is fine. */
void ranks_close(struct ranks *ranks, int status);

static inline bool ranks_leads(const struct ranks *ranks)
{
	return ranks->world.rank == 0;
}

/* Those that take part, from 0 on: the i-th of them, and which one this is. */
static inline unsigned ranks_nth(const struct ranks *ranks, unsigned i)
{
	return i + (ranks->without > 0 && i >= ranks->without);
}

static inline unsigned ranks_index(const struct ranks *ranks)
{
	return ranks->world.rank - (ranks->without > 0 && ranks->world.rank > ranks->without);
}

/* "rank 3 on gpu-07". */
const char *ranks_name(const struct ranks *ranks, unsigned rank, char *out, size_t room);

/* -ETIMEDOUT with who it is when a rank is gone; else 0.  Any thread. */
int ranks_missing(struct ranks *ranks, struct error *err);

/* The leader: the same bytes to each of the first `count` ranks that take part, but itself.  -ETIMEDOUT with who does not take
 * them; -EINTR. */
int ranks_tell(
	struct ranks *ranks, unsigned count, const void *data, size_t bytes, struct error *err);
int ranks_tell_one(
	struct ranks *ranks, unsigned rank, const void *data, size_t bytes, struct error *err);
/* The others: what the leader tells next, into a buffer that is emptied first.  limit_ns 0: however long that takes. */
int ranks_hear(struct ranks *ranks, uint64_t limit_ns, struct buffer *out, struct error *err);
/* The others: an answer, which the leader takes. */
int ranks_answer(struct ranks *ranks, const void *data, size_t bytes, struct error *err);
/* The leader: the answer of one rank. */
int ranks_take(struct ranks *ranks, unsigned rank, struct buffer *out, struct error *err);

/* Each of the first `count` ranks that take part, at the same point of its work: the leader's bytes, into the others' data. */
int ranks_share(struct ranks *ranks, unsigned count, void *data, size_t bytes, struct error *err);

/* Each of the first `count` ranks that take part, at the same point of its work: 0 when all of them said 0.  Else the first one's
 * reason with its name, and -ECANCELED, of those who had said 0 themselves; of who had not, its own code. */
static inline int ranks_agree(struct ranks *ranks, unsigned count, int code, struct error *err)
{
	return ranks->agree(ranks, count, code, err);
}

/* The first `count` ranks that take part train from now on: each of them at the same time. */
int ranks_train(struct ranks *ranks, unsigned count, struct error *err);

/* The leader, while the first `count` hear: looks at their clocks (Cristian 1989: half of the shortest round trip). */
int ranks_map_clocks(struct ranks *ranks, unsigned count, struct error *err);

#endif
