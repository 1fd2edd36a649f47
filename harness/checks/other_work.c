/* The difference of two looks at /proc/stat, less what was ours. */
#include "harness/checks/other_work.h"

#include "harness/base/clock.h"
#include "harness/measure/node_files.h"
#include "harness/measure/proc_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* The kernel counts in ticks of 10 ms: less is within its error. */
static const double OTHER_WORK_LEAST_S = 0.1;

double parse_cores_used(const char *stat, const unsigned *cores, size_t count)
{
	double ticks = 0;
	size_t found = 0;
	for (const char *line = stat; line; line = text_next_line(line)) {
		unsigned core;
		double user;
		double nice;
		double steal;
		if (sscanf(line, "cpu%u %lf %lf %*f %*f %*f %*f %*f %lf", &core, &user, &nice,
			    &steal) != 4)
			continue;
		for (size_t i = 0; i < count; i++)
			if (cores[i] == core) {
				ticks += user + nice + steal;
				found++;
			}
	}
	return found == count && count > 0 ? ticks / (double)sysconf(_SC_CLK_TCK) : (double)NAN;
}

double cores_used_seconds(const char *root, const unsigned *cores, size_t count)
{
	char *stat = node_text("%s/proc/stat", root);
	const double seconds = parse_cores_used(stat, cores, count);
	free(stat);
	return seconds;
}

static double user_seconds(int who)
{
	struct rusage used;
	return getrusage(who, &used) == 0
		       ? (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec
		       : (double)NAN;
}

double own_user_seconds(void)
{
	return user_seconds(RUSAGE_SELF) + user_seconds(RUSAGE_CHILDREN);
}

void other_work_begin(struct other_work *work, double used_s, double own_s)
{
	work->begun_ns = clock_now_ns();
	work->used_before_s = used_s;
	work->own_before_s = own_s;
}

void other_work_end(struct other_work *work, double used_s, double own_s, size_t count)
{
	work->used_s += used_s - work->used_before_s;
	work->own_s += own_s - work->own_before_s;
	work->wall_s += (double)count * 1e-9 * (double)(clock_now_ns() - work->begun_ns);
}

bool other_work_is_busy(const struct other_work *work, double share, size_t count,
	char words[OTHER_WORK_WORDS_BYTES])
{
	const double others = work->used_s - work->own_s;
	/* NAN: not known, and not said. */
	if (!(others >= OTHER_WORK_LEAST_S && others > share * work->wall_s))
		return false;
	(void)snprintf(words, OTHER_WORK_WORDS_BYTES,
		"other work took %.0f %% of the time of %zu core%s",
		100 * fmin(1, others / work->wall_s), count, count == 1 ? "" : "s");
	return true;
}
