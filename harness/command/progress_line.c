/* The live line. */
#include "harness/command/progress_line.h"

#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/run_plan.h"
#include "harness/report/style.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { BAR_COLUMNS = 16, SILENCE_SECONDS = 30 };

void progress_begin(struct progress *progress, const char *label)
{
	(void)snprintf(progress->label, sizeof progress->label, "%s", label);
	progress->begun_ns = clock_now_ns();
	if (progress->done >= progress->total) /* one more than was to be foreseen */
		progress->total = progress->done + 1;
	progress_tell(progress, 0, progress->each_seconds, (double)NAN);
}

void progress_end(struct progress *progress)
{
	progress->spent_seconds += (double)(clock_now_ns() - progress->begun_ns) / (double)NS_PER_S;
	progress->done++;
}

/* What one takes, as far as that is known; 0: it is not. */
static double each_seconds(const struct progress *progress)
{
	return progress->done > 0 ? progress->spent_seconds / (double)progress->done
				  : progress->each_seconds;
}

void progress_expect_within(struct progress *progress, double seconds, size_t together)
{
	const double each = each_seconds(progress) * (double)together;
	const double fit = each > 0 && seconds > each ? floor(seconds / each) : 1;
	progress->at_most = true;
	progress->total = progress->done + (size_t)fit * together;
}

static double rest_seconds(const struct progress *progress, double elapsed)
{
	const double rest =
		each_seconds(progress) * (double)(progress->total - progress->done) - elapsed;
	return rest > 0 ? rest : 0;
}

double progress_rest_seconds(const struct progress *progress)
{
	return each_seconds(progress) > 0 ? rest_seconds(progress, 0) : NAN;
}

/* Into a pipe goes what says something: how fast it is, or, after a while, that it is not known. */
static bool is_worth_a_line(struct progress *progress, bool rated)
{
	const uint64_t now = clock_now_ns();
	if (!rated && progress->told_ns > 0 &&
		now - progress->told_ns < (uint64_t)SILENCE_SECONDS * NS_PER_S)
		return false;
	progress->told_ns = now;
	return true;
}

/* The label has what the rest leaves of the width. */
static void progress_add_words(const struct progress *progress, const struct style *style,
	int columns, double seconds, double samples_per_s, struct buffer *line)
{
	char head[64];
	char tail[64 + 2 * UNITS_BYTES];
	char rate[UNITS_BYTES];
	char eta[UNITS_BYTES];
	const bool known = each_seconds(progress) > 0;
	(void)snprintf(head, sizeof head, "%zu%s%zu  ", progress->done + 1,
		progress->at_most ? " of at most " : "/", progress->total);
	(void)snprintf(tail, sizeof tail, " %10s samples/s  %s %s",
		isnan(samples_per_s) ? "-" : units_format_count(samples_per_s, rate),
		progress->at_most ? "at most" : "ETA",
		known ? clock_format_span(rest_seconds(progress, seconds), eta, sizeof eta) : "-");
	const int room = columns - style_columns(head) - style_columns(tail);
	buffer_text(line, head);
	style_field(style, INK_PLAIN, progress->label, room > 0 ? room : 0, line);
	buffer_text(line, tail);
}

void progress_tell(void *context, double seconds, double planned_seconds, double samples_per_s)
{
	struct progress *progress = context;
	const bool terminal = log_is_terminal();
	if (progress->hidden || (!terminal && !is_worth_a_line(progress, !isnan(samples_per_s))))
		return;
	const struct style style = style_for(STDERR_FILENO, true);
	const struct style uncoloured = {.width = style.width, .utf8 = style.utf8};
	struct buffer bar = {0};
	struct buffer words = {0};
	const double part = planned_seconds > 0 ? seconds / planned_seconds : 0;
	const double share =
		((double)progress->done + (part < 1 ? part : 1)) / (double)progress->total;
	style_bar(&uncoloured, INK_PLAIN, share, terminal ? BAR_COLUMNS : 0, &bar);
	buffer_text(&bar, terminal ? " " : "");
	progress_add_words(progress, &uncoloured, style.width - (terminal ? BAR_COLUMNS + 1 : 0),
		seconds, samples_per_s, &words);
	const struct log_piece pieces[] = {
		{style.colour ? LOG_INK_ACCENT : LOG_INK_PLAIN, bar.data ? bar.data : ""},
		{LOG_INK_PLAIN, words.data ? words.data : ""}};
	log_progress_pieces(pieces, sizeof pieces / sizeof *pieces);
	buffer_release(&bar);
	buffer_release(&words);
}

void progress_choosing(void *context, unsigned chosen, unsigned products)
{
	struct progress *progress = context;
	struct progress now = *progress;
	(void)snprintf(now.label, sizeof now.label, "choosing kernels: %u of %u", chosen, products);
	progress_tell(&now, 0, now.each_seconds, (double)NAN);
	progress->told_ns = now.told_ns;
}
