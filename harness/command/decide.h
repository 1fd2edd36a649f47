/* The experiment that decides: where a verdict leaves two causes open, the one that parts them is run at once.
 *
 *   open                          experiment                                  each outcome means
 *   a store that limits reads:    reads alone with as many, twice and four    the rate follows the files in flight:
 *   slow or full                  times as many files in flight, or half      latency; it does not: full
 *                                 where more cannot be
 *   a full store: of bytes, of    reads alone, the larger half of the files   the time of a file follows its bytes:
 *   requests, or of files that    and the smaller half, and one file at       bandwidth; one at a time is as fast:
 *   it serves at once             a time                                      requests; as slow as one of n: files
 *   which of two stages, or       each of them alone, the others null, their  the slower one by more than 5 % is the
 *   both as much                  files from the page cache                   bottleneck; within 5 %: both are; both
 *                                                                             faster than the run: neither alone
 *
 * Reads alone: a null codec and a null step, so that no later stage hides a faster read. How many files are in flight is told
 * by the key that has an effect: read.depth, read.threads where an engine blocks (pread, mmap), decode.workers where workers
 * read (read.by). Blocks run forth and back (A-B-B-A), so that drift cancels (harness/analyze/reads_alone.h), each with
 * other files, one of each tenth by size in turn, long enough for BLOCK_FILES of them and for what was in flight before. An
 * arm that needs more memory than was promised is left out. Two stages are compared last, and only if the answer would leave a
 * verdict that is sure; it counts where the run agrees with it (harness/analyze/bottleneck.c). Blocks are kept as lines of
 * points.jsonl: a saved result has the same verdict. */
#ifndef MLBENCH_COMMAND_DECIDE_H
#define MLBENCH_COMMAND_DECIDE_H

#include "harness/command/calibration.h"
#include "harness/command/session.h"

/* Runs the first that this verdict leaves open and that was not run yet, within about so many seconds. Returns whether it
 * was: the verdict may be another one. */
bool decide(struct session *session, const struct diagnosed *diagnosed, double seconds);

#endif
