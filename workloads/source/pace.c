#include "workloads/source/pace.h"

enum {
	REFILL_SHARE = 4, /* of a gap, at most, may the reader have left the storage short */
};

/* Counts a gap between completions if the storage had all its work for nearly all of it. */
static void learn_gap(struct pace *pace, uint64_t now_ns, uint64_t submitted_ns, uint64_t bytes)
{
	const uint64_t gap_ns = now_ns - pace->last_ns;
	const uint64_t short_ns = submitted_ns > pace->last_ns ? submitted_ns - pace->last_ns : 0;
	if (short_ns > gap_ns / REFILL_SHARE)
		return;
	pace->busy_ns += gap_ns;
	pace->busy_bytes += bytes;
}

void pace_learn(struct pace *pace, uint64_t now_ns, uint64_t submitted_ns, size_t files,
	uint64_t bytes, bool busy)
{
	if (pace->learned)
		return;
	if (pace->files == 0)
		pace->first_ns = now_ns;
	else if (busy)
		learn_gap(pace, now_ns, submitted_ns, bytes);
	pace->last_ns = now_ns;
	pace->files += files;
	pace->learned = pace->files >= PACE_LEARN_FILES || now_ns - pace->first_ns >= PACE_LEARN_NS;
}

double pace_ns_per_byte(const struct pace *pace)
{
	return pace->busy_bytes > 0 ? (double)pace->busy_ns / (double)pace->busy_bytes : 0;
}

uint64_t pace_release_ns(struct pace *pace, uint64_t submitted_ns, uint64_t done_ns, uint64_t bytes)
{
	if (!pace->learned)
		return done_ns;
	const uint64_t stretched_ns =
		submitted_ns + (uint64_t)(pace->factor * (double)(done_ns - submitted_ns));
	const uint64_t from_ns =
		pace->link_free_ns > submitted_ns ? pace->link_free_ns : submitted_ns;
	pace->link_free_ns =
		from_ns + (uint64_t)(pace->factor * pace_ns_per_byte(pace) * (double)bytes);
	return pace->link_free_ns > stretched_ns ? pace->link_free_ns : stretched_ns;
}
