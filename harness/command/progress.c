/* The live line. */
#include "harness/command/progress.h"

#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/plan.h"
#include "harness/report/style.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { BAR_COLUMNS = 16, TAIL_COLUMNS = 62 };

void progress_begin(struct progress *progress, const char *label)
{
	(void)snprintf(progress->label, sizeof progress->label, "%s", label);
	progress->begun_ns = clock_now_ns();
	progress_tell(progress, 0, progress->each_seconds, 0, 0);
}

void progress_end(struct progress *progress)
{
	progress->spent_seconds += (double)(clock_now_ns() - progress->begun_ns) / (double)NS_PER_S;
	progress->done++;
}

static double rest_seconds(const struct progress *progress, double elapsed)
{
	const double each = progress->done > 0 ? progress->spent_seconds / (double)progress->done
					       : progress->each_seconds;
	const double rest = each * (double)(progress->total - progress->done) - elapsed;
	return rest > 0 ? rest : 0;
}

double progress_rest_seconds(const struct progress *progress)
{
	const bool known = progress->each_seconds > 0 || progress->done > 0;
	return known ? rest_seconds(progress, 0) : NAN;
}

void progress_tell(void *context, double seconds, double planned_seconds, double samples_per_s,
	uint64_t samples)
{
	const struct progress *progress = context;
	if (progress->hidden)
		return;
	const struct style style = style_for(STDERR_FILENO, true);
	char rate[UNITS_BYTES];
	char eta[UNITS_BYTES];
	struct buffer line = {0};
	(void)samples_per_s; /* of a window: a large batch makes it jump */
	const bool started = seconds > 0 && samples > 0;
	const double part = planned_seconds > 0 ? seconds / planned_seconds : 0;
	const double share =
		((double)progress->done + (part < 1 ? part : 1)) / (double)progress->total;
	if (log_is_terminal()) {
		style_bar(&style, INK_ACCENT, share, BAR_COLUMNS, &line);
		buffer_text(&line, " ");
	}
	buffer_format(&line, "%zu/%zu  ", progress->done + 1, progress->total);
	style_field(&style, INK_PLAIN, progress->label,
		style.width > TAIL_COLUMNS ? style.width - TAIL_COLUMNS : 0, &line);
	buffer_format(&line, " %10s samples/s  ETA %s",
		started ? units_format_count((double)samples / seconds, rate) : "-",
		plan_format_seconds(rest_seconds(progress, seconds), eta, sizeof eta));
	if (line.data)
		log_progress("%s", line.data);
	buffer_release(&line);
}
