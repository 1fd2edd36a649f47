/* How much of some cores' time others took while something was measured on them: programs in user mode and, on a virtual
 * machine, its host.  Time in the kernel is left out: part of it is spent by kernel threads on our own reads and writes, and no
 * account says how much.  So our own time is that in user mode, too: the kernel splits it from the rest by the same ticks that it
 * counts in /proc/stat, and the difference holds however few of them there were. */
#ifndef MLBENCH_CHECKS_OTHER_WORK_H
#define MLBENCH_CHECKS_OTHER_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OTHER_WORK_WORDS_BYTES = 96 };

/* The cores' seconds since the node started; root: in front of /proc, "" but in tests.  NAN: /proc/stat does not say. */
double cores_used_seconds(const char *root, const unsigned *cores, size_t count);
/* The same of the text of /proc/stat. */
double parse_cores_used(const char *stat, const unsigned *cores, size_t count);

struct other_work {
	double used_s, own_s; /* of the looks so far */
	double wall_s;        /* x the number of cores */
	double used_before_s; /* of the look that goes on */
	double own_before_s;
	uint64_t begun_ns;
};
/* A look at `count` cores begins and ends; used_s: cores_used_seconds or parse_cores_used of them; own_s: seconds of user mode
 * that are ours (bounded.h's, or own_user_seconds). */
void other_work_begin(struct other_work *work, double used_s, double own_s);
void other_work_end(struct other_work *work, double used_s, double own_s, size_t count);
double own_user_seconds(void); /* of this process and of children that have ended */

/* Whether others took more than that share of the cores' time; words: "other work took 89 % of the time of 1 core". */
bool other_work_is_busy(const struct other_work *work, double share, size_t count,
	char words[OTHER_WORK_WORDS_BYTES]);

#endif
