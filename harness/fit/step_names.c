#include "harness/fit/step_names.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { STEP_NAME_BYTES = 96, STEP_NUMBER_BYTES = 64 };

struct step_known {
	const char *words;
	enum step_role role;
	double unit_ns;
};

/* Words are joined by '_', and "a/b" is "a_per_b". */
static const struct step_known step_known_names[] = {
	{"step_time", STEP_ROLE_TIME, 0},
	{"time_step", STEP_ROLE_TIME, 0},
	{"step_duration", STEP_ROLE_TIME, 0},
	{"step_latency", STEP_ROLE_TIME, 0},
	{"step_timing", STEP_ROLE_TIME, 0},
	{"step_period", STEP_ROLE_TIME, 0},
	{"iter_time", STEP_ROLE_TIME, 0},
	{"iteration_time", STEP_ROLE_TIME, 0},
	{"iteration_duration", STEP_ROLE_TIME, 0},
	{"batch_time", STEP_ROLE_TIME, 0},
	{"batch_duration", STEP_ROLE_TIME, 0},
	{"time_per_step", STEP_ROLE_TIME, 0},
	{"time_per_iter", STEP_ROLE_TIME, 0},
	{"time_per_iteration", STEP_ROLE_TIME, 0},
	{"time_per_batch", STEP_ROLE_TIME, 0},
	{"s_per_it", STEP_ROLE_TIME, 1e9},
	{"s_per_step", STEP_ROLE_TIME, 1e9},
	{"sec_per_step", STEP_ROLE_TIME, 1e9},
	{"seconds_per_step", STEP_ROLE_TIME, 1e9},
	{"sec_per_iter", STEP_ROLE_TIME, 1e9},
	{"seconds_per_iteration", STEP_ROLE_TIME, 1e9},
	{"ms_per_step", STEP_ROLE_TIME, 1e6},
	{"ms_per_iter", STEP_ROLE_TIME, 1e6},
	{"ms_per_it", STEP_ROLE_TIME, 1e6},
	{"data_time", STEP_ROLE_WAIT, 0},
	{"data_wait", STEP_ROLE_WAIT, 0},
	{"data_wait_time", STEP_ROLE_WAIT, 0},
	{"data_load_time", STEP_ROLE_WAIT, 0},
	{"data_loading_time", STEP_ROLE_WAIT, 0},
	{"dataloader_time", STEP_ROLE_WAIT, 0},
	{"loader_time", STEP_ROLE_WAIT, 0},
	{"load_time", STEP_ROLE_WAIT, 0},
	{"fetch_time", STEP_ROLE_WAIT, 0},
	{"wait_time", STEP_ROLE_WAIT, 0},
	{"batch_wait", STEP_ROLE_WAIT, 0},
	{"step_wait", STEP_ROLE_WAIT, 0},
	{"steps_per_s", STEP_ROLE_RATE, 0},
	{"steps_per_sec", STEP_ROLE_RATE, 0},
	{"steps_per_second", STEP_ROLE_RATE, 0},
	{"step_per_sec", STEP_ROLE_RATE, 0},
	{"step_per_s", STEP_ROLE_RATE, 0},
	{"global_step_per_sec", STEP_ROLE_RATE, 0},
	{"its_per_sec", STEP_ROLE_RATE, 0},
	{"it_per_s", STEP_ROLE_RATE, 0},
	{"iter_per_sec", STEP_ROLE_RATE, 0},
	{"iters_per_sec", STEP_ROLE_RATE, 0},
	{"iterations_per_sec", STEP_ROLE_RATE, 0},
	{"iterations_per_second", STEP_ROLE_RATE, 0},
	{"batches_per_sec", STEP_ROLE_RATE, 0},
	{"batches_per_s", STEP_ROLE_RATE, 0},
	{"images_per_s", STEP_ROLE_SAMPLES, 0},
	{"images_per_sec", STEP_ROLE_SAMPLES, 0},
	{"images_per_second", STEP_ROLE_SAMPLES, 0},
	{"images_s", STEP_ROLE_SAMPLES, 0},
	{"imgs_per_s", STEP_ROLE_SAMPLES, 0},
	{"imgs_per_sec", STEP_ROLE_SAMPLES, 0},
	{"img_per_s", STEP_ROLE_SAMPLES, 0},
	{"img_per_sec", STEP_ROLE_SAMPLES, 0},
	{"samples_per_s", STEP_ROLE_SAMPLES, 0},
	{"samples_per_sec", STEP_ROLE_SAMPLES, 0},
	{"samples_per_second", STEP_ROLE_SAMPLES, 0},
	{"samples_s", STEP_ROLE_SAMPLES, 0},
	{"sample_per_sec", STEP_ROLE_SAMPLES, 0},
	{"examples_per_sec", STEP_ROLE_SAMPLES, 0},
	{"examples_per_second", STEP_ROLE_SAMPLES, 0},
	{"examples_per_s", STEP_ROLE_SAMPLES, 0},
	{"timestamp", STEP_ROLE_CLOCK, 0},
	{"time_stamp", STEP_ROLE_CLOCK, 0},
	{"wall_time", STEP_ROLE_CLOCK, 0},
	{"walltime", STEP_ROLE_CLOCK, 0},
	{"datetime", STEP_ROLE_CLOCK, 0},
	{"elapsed", STEP_ROLE_CLOCK, 0},
	{"elapsed_time", STEP_ROLE_CLOCK, 0},
	{"time_since_start", STEP_ROLE_CLOCK, 0},
	{"relative_time", STEP_ROLE_CLOCK, 0},
	{"global_step", STEP_ROLE_NUMBER, 0},
	{"iteration", STEP_ROLE_NUMBER, 0},
	{"num_updates", STEP_ROLE_NUMBER, 0},
	{"current_steps", STEP_ROLE_NUMBER, 0},
	{"rank", STEP_ROLE_RANK, 0},
	{"train_runtime", STEP_ROLE_RUN, 1e9},
};

/* Words that tell only where there are no others. */
static const struct step_known step_whole_names[] = {
	{"step", STEP_ROLE_NUMBER, 0},
	{"steps", STEP_ROLE_NUMBER, 0},
	{"iter", STEP_ROLE_NUMBER, 0},
	{"it", STEP_ROLE_NUMBER, 0},
	{"batch", STEP_ROLE_NUMBER, 0},
	{"batch_idx", STEP_ROLE_NUMBER, 0},
	{"n", STEP_ROLE_NUMBER, 0},
	{"i", STEP_ROLE_NUMBER, 0},
	{"index", STEP_ROLE_NUMBER, 0},
	{"duration", STEP_ROLE_TIME, 0},
	{"latency", STEP_ROLE_TIME, 0},
	{"data", STEP_ROLE_WAIT, 0},
	{"ts", STEP_ROLE_CLOCK, 0},
	{"date", STEP_ROLE_CLOCK, 0},
	{"clock", STEP_ROLE_CLOCK, 0},
	{"relative", STEP_ROLE_CLOCK, 0},
	{"ups", STEP_ROLE_RATE, 0},
	{"bsz", STEP_ROLE_JOB_BATCH, 0},
	{"batch_size", STEP_ROLE_BATCH, 0},
	{"batch_samples", STEP_ROLE_BATCH, 0},
	{"samples", STEP_ROLE_BATCH, 0},
	{"num_samples", STEP_ROLE_BATCH, 0},
	{"n_samples", STEP_ROLE_BATCH, 0},
	{"images", STEP_ROLE_BATCH, 0},
	{"num_images", STEP_ROLE_BATCH, 0},
	{"examples", STEP_ROLE_BATCH, 0},
	{"sequences", STEP_ROLE_BATCH, 0},
	{"global_batch_size", STEP_ROLE_JOB_BATCH, 0},
	{"eval_runtime", STEP_ROLE_PAUSE, 1e9},
	{"phase", STEP_ROLE_PHASE, 0},
	{"split", STEP_ROLE_PHASE, 0},
	{"stage", STEP_ROLE_PHASE, 0},
	{"mode", STEP_ROLE_PHASE, 0},
	{"side", STEP_ROLE_SIDE, 0},
};

static const struct {
	const char *name;
	double ns;
} step_units[] = {
	{"s", 1e9},
	{"sec", 1e9},
	{"secs", 1e9},
	{"second", 1e9},
	{"seconds", 1e9},
	{"ms", 1e6},
	{"msec", 1e6},
	{"msecs", 1e6},
	{"millis", 1e6},
	{"millisecond", 1e6},
	{"milliseconds", 1e6},
	{"us", 1e3},
	{"usec", 1e3},
	{"micros", 1e3},
	{"microsecond", 1e3},
	{"microseconds", 1e3},
	{"ns", 1},
	{"nsec", 1},
	{"nanoseconds", 1},
};

static double step_unit_ns(const char *word)
{
	for (size_t i = 0; i < COUNT(step_units); i++)
		if (strcasecmp(step_units[i].name, word) == 0)
			return step_units[i].ns;
	return 0;
}

static size_t step_add_word(char words[STEP_NAME_BYTES], size_t at, const char *word)
{
	for (; *word && at < STEP_NAME_BYTES - 1; word++)
		words[at++] = *word;
	return at;
}

/* Lower case, words joined by '_'. */
static void step_words(const char *name, size_t length, char words[STEP_NAME_BYTES])
{
	size_t at = 0;

	for (size_t i = 0; i < length && at < STEP_NAME_BYTES - 1; i++) {
		const unsigned char c = (unsigned char)name[i];
		if (isalnum(c))
			words[at++] = (char)tolower(c);
		else if (c == '/' && at > 0)
			at = step_add_word(words, at, "_per_");
		else if (at > 0 && words[at - 1] != '_')
			words[at++] = '_';
	}
	while (at > 0 && words[at - 1] == '_')
		at--;
	words[at] = '\0';
}

static bool step_words_validate(const char *words)
{
	static const char *const of[] = {"val", "valid", "validation", "validating", "eval",
		"evaluation", "evaluating", "test", "testing", "predicting"};

	for (const char *word = words; word; word = strchr(word, '_')) {
		word += *word == '_';
		const size_t length = strcspn(word, "_");
		for (size_t i = 0; i < COUNT(of); i++)
			if (strlen(of[i]) == length && strncmp(of[i], word, length) == 0)
				return true;
	}
	return false;
}

bool step_is_of_validation(const char *text, size_t length)
{
	char words[STEP_NAME_BYTES];

	step_words(text, length, words);
	return step_words_validate(words);
}

/* Among the names that are known, with any words before them. */
static const struct step_known *step_lookup(const char *words)
{
	for (size_t i = 0; i < COUNT(step_whole_names); i++)
		if (strcmp(step_whole_names[i].words, words) == 0)
			return &step_whole_names[i];
	for (const char *from = words; from; from = strchr(from, '_')) {
		from += *from == '_';
		for (size_t i = 0; i < COUNT(step_known_names); i++)
			if (strcmp(step_known_names[i].words, from) == 0)
				return &step_known_names[i];
	}
	return NULL;
}

/* Cuts a unit off the end: "_ms", "_in_s". */
static double step_cut_unit(char *words)
{
	char *last = strrchr(words, '_');
	const double ns = last ? step_unit_ns(last + 1) : 0;

	if (ns <= 0)
		return 0;
	*last = '\0';
	last = strrchr(words, '_');
	if (last && (strcmp(last, "_in") == 0 || strcmp(last, "_per") == 0))
		*last = '\0';
	return ns;
}

struct step_name step_name_of(const char *name, size_t length)
{
	char words[STEP_NAME_BYTES];
	struct step_name out = {0};

	step_words(name, length, words);
	const struct step_known *known = step_lookup(words);
	if (step_words_validate(words) && !(known && known->role == STEP_ROLE_PAUSE))
		return out;
	if (!known) {
		out.unit_ns = step_cut_unit(words);
		known = step_lookup(words);
	}
	if (known) {
		out.role = known->role;
		if (known->unit_ns > 0)
			out.unit_ns = known->unit_ns;
	} else if (strcmp(words, "time") == 0) {
		out.role = STEP_ROLE_TIME;
		out.either = true;
	}
	if (out.role == STEP_ROLE_NUMBER && out.unit_ns > 0) /* "step_ms" */
		out.role = STEP_ROLE_TIME;
	return out;
}

bool step_number(const char *text, size_t length, double *value, double *unit_ns)
{
	char copy[STEP_NUMBER_BYTES];
	char *end;

	if (length == 0 || length >= sizeof copy)
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (strchr("0123456789+-.", copy[0]) == NULL || strchr(copy, 'x') || strchr(copy, 'X'))
		return false;
	*value = strtod(copy, &end);
	if (end == copy || !isfinite(*value))
		return false;
	while (*end == ' ')
		end++;
	*unit_ns = *end ? step_unit_ns(end) : 0;
	return *end == '\0' || *unit_ns > 0;
}

/* Adds the fraction of a second that may follow; how long it is. */
static size_t step_fraction(const char *text, double *s)
{
	size_t at = 0;

	if ((text[0] == '.' || text[0] == ',') && isdigit((unsigned char)text[1])) {
		double unit = 0.1;
		for (at = 1; isdigit((unsigned char)text[at]); at++, unit /= 10)
			*s += (text[at] - '0') * unit;
	}
	return at;
}

static size_t step_date(const char *text, double *s)
{
	struct tm tm = {0};
	int used = 0;
	const bool year_last =
		strspn(text, "0123456789") <= 2; /* 11/26/2026, as loggers of transformers */
	const int found =
		year_last ? sscanf(text, "%2d/%2d/%4d%*1[ T]%2d:%2d:%2d%n", &tm.tm_mon, &tm.tm_mday,
				    &tm.tm_year, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &used)
			  : sscanf(text, "%4d%*1[-/]%2d%*1[-/]%2d%*1[ T]%2d:%2d:%2d%n", &tm.tm_year,
				    &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec,
				    &used);

	if (found != 6 || used == 0)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*s = (double)timegm(&tm);
	return (size_t)used + step_fraction(text + used, s);
}

bool step_moment(const char *text, size_t length, double *s)
{
	char copy[STEP_NUMBER_BYTES];

	if (length < sizeof "2026-11-26 06:53:01" - 1 || length >= sizeof copy)
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	const size_t used = step_date(copy, s);
	return used > 0 &&
	       strchr("Z+- ", copy[used]) != NULL; /* '\0', too; the offset is the same for all */
}

size_t step_clock(const char *text, double *s)
{
	unsigned part[3] = {0};
	size_t at = 0;
	int parts = 0;

	const size_t first = strspn(text, "0123456789");
	if (first == 0 || !text[first] || !strchr("-/:", text[first]))
		return 0;
	const size_t date = step_date(text, s);
	if (date > 0)
		return date;
	while (parts < 3) {
		size_t digits = 0;
		for (; isdigit((unsigned char)text[at]) && digits < 6; at++, digits++)
			part[parts] = part[parts] * 10 + (unsigned)(text[at] - '0');
		if (digits == 0 || (parts > 0 && digits != 2))
			return 0;
		parts++;
		if (text[at] != ':' || parts == 3)
			break;
		at++;
	}
	if (parts < 2)
		return 0;
	*s = parts == 2 ? part[0] * 60.0 + part[1] : part[0] * 3600.0 + part[1] * 60.0 + part[2];
	return parts == 2 ? at : at + step_fraction(text + at, s);
}

double step_epoch_unit_ns(double value)
{
	/* from 1973 to the year 5138 */
	static const double units_ns[] = {1e9, 1e6, 1e3, 1};

	for (size_t i = 0; i < COUNT(units_ns); i++)
		if (value >= 1e8 * (1e9 / units_ns[i]) && value < 1e11 * (1e9 / units_ns[i]))
			return units_ns[i];
	return 0;
}
