/* Which of many results of the same work is right: the one that a golden checksum names, else the one that most results are
 * equal to.  Results come from places (cores); what differs is counted for its place, and one copy of each different
 * result is kept, so that it can be said where they differ. */
#ifndef MLBENCH_CHECKS_VOTES_H
#define MLBENCH_CHECKS_VOTES_H

#include "harness/base/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
	VOTES_VARIANTS =
		4, /* different results of one item that are told apart; the rarest are counted together */
	VOTES_UNDECIDED = -1,
};

struct votes;

/* 0 or -ENOMEM. */
int votes_open(struct votes **out, size_t items, size_t places, struct error *err);
void votes_close(struct votes *votes); /* NULL is fine */

/* A result of an item at a place.  Any thread.  Without memory for a copy the result is counted all the same. */
void votes_add(struct votes *votes, size_t item, size_t place, const void *result, size_t bytes);

/* --- when all are there ----------------------------------------------------------------------- */

/* The variant of an item that is right.  golden: 0, or the hash (votes_hash) that it should have.  VOTES_UNDECIDED: as
 * many results are equal to one as to another, or there is no result. */
int votes_right(const struct votes *votes, size_t item, uint64_t golden);

uint64_t votes_hash(const struct votes *votes, size_t item, int variant);
/* NULL: no memory was there for it. */
const void *votes_copy(const struct votes *votes, size_t item, int variant);

/* Results of an item at a place, and those of them that are not the right one; where it is undecided which that is,
 * all of them: the places disagree. */
uint64_t votes_count(const struct votes *votes, size_t item, size_t place);
uint64_t votes_wrong(const struct votes *votes, size_t item, size_t place, int right);

/* A variant that is not the right one and came from this place; the next one after `after` (-1 first); VOTES_UNDECIDED:
 * none. */
int votes_next_wrong(const struct votes *votes, size_t item, size_t place, int right, int after);

#endif
