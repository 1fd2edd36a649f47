/* A storage that is k times as slow as the one there is (inject.read_factor).
 *
 * Stretching the time in flight by k is not enough: the storage then has fewer files in flight at once,
 * and one that is bound by bandwidth gives all it has as long as it has any.  So a reader's pace learns
 * first, undisturbed, how far apart completions are while the reader keeps all the files in flight that
 * it may: what this storage can give it.  From then on a file is released at
 *     max(submitted + k (done - submitted), the time its bytes come through a link that is k times as
 *         slow as that)
 * A storage that was never kept busy has no pace to learn, and only times in flight are stretched.
 *
 * Plain arithmetic on given times.  One reader's own. */
#ifndef MLBENCH_WORKLOADS_SOURCE_PACE_H
#define MLBENCH_WORKLOADS_SOURCE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PACE_LEARN_NS = 200 * 1000 * 1000, /* since the first completion, at most */
	PACE_LEARN_FILES = 1024,           /* enough of them, sooner */
};

struct pace {
	double factor; /* k */
	uint64_t first_ns, last_ns;
	uint64_t files, busy_bytes, busy_ns; /* seen while it learned */
	uint64_t link_free_ns;
	bool learned;
};

/* Files that completed together at now_ns, bytes in all.  busy: all that may be in flight were, and
 * have been since submitted_ns, when the last of them was handed over. */
void pace_learn(struct pace *pace, uint64_t now_ns, uint64_t submitted_ns, size_t files,
	uint64_t bytes, bool busy);

/* ns for a byte that this storage needs when it is kept busy; 0: not known. */
double pace_ns_per_byte(const struct pace *pace);

/* When a file is released that would be done at done_ns; takes the link's time. */
uint64_t pace_release_ns(
	struct pace *pace, uint64_t submitted_ns, uint64_t done_ns, uint64_t bytes);

#endif
