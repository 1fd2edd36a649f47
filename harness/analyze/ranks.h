/* A job of ranks that meet after each step: who waits for whom, what the exchange of gradients takes, and what of that makes the
 * verdict.  From each rank's own measurements (struct ranks_measurement); pure functions.
 *
 * In each round the last rank waits for nobody, and all others wait for it; then gradients are exchanged.  So the time of a round is
 * the last rank's own, and what is not hidden of the exchange.  Where one rank is the last again and again, it is a straggler: the
 * verdict is sync/imbalance, and the cause is in that rank's own measurements, since the others' show nothing but waiting.  So are
 * several that wait as little as it, and are the last in turn: those of a slow node, at most half of all.  A rank
 * that is the last because its exchange ended last, and not because its own work took longer, is none: what the others wait for it
 * is the exchange's.  Where
 * all ranks are last in turn, none is to blame, and the verdict is that of one of them.
 *
 * A rank that gets no core, by a quota or for other programs, holds the exchange itself up, in which all need all: it is not the
 * last, but the one whose threads were stopped or queued while the others' were not.  Where ranks share their cores with one another,
 * all alike, the exchange itself keeps these busy, and which of them the kernel lets wait says nothing.
 *
 * Scores per stage compare what an item takes: relative, the fastest rank's time over this one's; individual, its own best
 * repetition's over its usual one.  Below RANKS_SCORE_LOW they are flagged, as NVIDIA's straggler detection does
 * (nvidia-resiliency-ext, "straggler detection"). */
#ifndef MLBENCH_ANALYZE_RANKS_H
#define MLBENCH_ANALYZE_RANKS_H

#include "harness/analyze/summary.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const double RANKS_SCORE_LOW = 0.7;

enum { RANK_ROUNDS_MOST = 16 };

struct rank_score {
	double item_ns; /* what an item of the stage takes, mean; NAN: nothing was done */
	double best_ns; /* in its best repetition */
	double busy;    /* share of its threads' time; one that hardly works tells nothing */
	double relative, individual; /* 0..1; NAN: not known */
};

struct rank_of {
	char host[RANK_HOST_BYTES];
	size_t repeats; /* that were added; 0: nothing is known of it */
	double rate;    /* samples/s, mean */
	double seconds; /* measured; that is what shares below are of */
	double wait, exchange;
	/* Of the first repetitions: a round without waiting for others, and without what is exposed of the exchange. */
	double own_round_s[RANK_ROUNDS_MOST];
	uint64_t rounds, last_rounds;
	double late_s; /* in these, that all others waited for it alone, together */
	double own_s, own_hidden_s;
	double clock_error_ns;
	/* Shares of the time: a quota stopped its threads; its step's thread waited for a core.  Cores that other programs used. */
	double throttled, queued, outside;
	unsigned crowd; /* ranks that may run on its cores, itself among them; 0: not known */
	bool crowded; /* by other ranks, as most are: how long it waits for a core is the kernel's choice */
	double cpu_s[STAGE_IDS];
	double slack; /* share of the time that its loader had nothing to do: its readers or its decoders were blocked */
	double starved; /* share of its time that its step waited for batches; NAN */
	bool lags;      /* it is one of those that the others wait for */
	struct rank_score scores[STAGE_IDS];
};

struct ranks_view {
	struct rank_of *of; /* (count); owned */
	unsigned count;     /* ranks of the job; 0: it is none */
	unsigned known;     /* of which something was measured */
	/* By ranks_conclude. */
	double wait,
		exchange; /* shares of the time, medians over the ranks (wait: over those that wait) */
	double bytes;     /* of gradients in a round */
	double round_s,
		own_s; /* a round; an exchange, as the last rank saw it: from its first bucket until the sums were there */
	double hidden; /* share of own_s that passed beside the step; NAN */
	double bus_bytes_per_s; /* as nccl-tests define it: 2 (n - 1) / n x bytes / time of an exchange; NAN */
	struct histogram
		lateness; /* of rounds: how long all waited for the last rank alone; as rank 0 saw them */
	double longest_s;        /* that a rank measured, of all its repetitions */
	double rate, rate_least; /* samples/s of all; of the slowest rank times their number */
	unsigned last;           /* the rank that was the last most often */
	unsigned laggards;       /* that lag as it does, itself included */
	double last_share;       /* of the rounds in which one of them was the last */
	/* Share of their time that the others lose by them: what they wait and exchange beyond what these do. */
	double lost;
	bool straggles; /* and that is no chance, and costs something */
	/* They straggle by holding the exchange up: they are stopped, or wait for a core, while the others exchange. */
	bool is_held;
	/* Files/s of one rank that reads alone, and of each while all do, both without other stages; NAN: they did not. */
	double alone_files, together_files;
	struct verdict cause; /* of that rank alone; stage "": not looked at */
};

/* count: ranks of the job.  -ENOMEM. */
int ranks_view_open(struct ranks_view *view, unsigned count);
void ranks_view_close(struct ranks_view *view); /* safe on {0} */
/* One good repetition of one rank; of ranks beyond the count, and without rounds, it does nothing. */
void ranks_view_add(struct ranks_view *view, unsigned rank, const struct measurement *m);
/* After all: scores, medians, and whether one straggles. */
void ranks_conclude(struct ranks_view *view);

/* Makes the verdict of one rank that of the job. */
void ranks_weigh(const struct ranks_view *view, struct verdict *verdict);

#endif
