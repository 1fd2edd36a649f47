/* "106ms@64,61ms@32": times of batches of several sizes, and the line a + b x batch through them. */
#include "harness/config/batch_time.h"

#include "harness/base/buffer.h"
#include "harness/base/units.h"
#include "harness/config/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 16 };

struct batch_times {
	double batch[POINTS_MAX], ns[POINTS_MAX];
	size_t count;
};

struct time_line {
	double fixed_ns, sample_ns;
};

bool batch_time_is_line(const char *text)
{
	return strchr(text, '@') != NULL;
}

/* Least squares; one point: in proportion to the batch, as published times are scaled. */
static struct time_line fit(const struct batch_times *times)
{
	double batch = 0;
	double ns = 0;
	for (size_t i = 0; i < times->count; i++) {
		batch += times->batch[i] / (double)times->count;
		ns += times->ns[i] / (double)times->count;
	}
	if (times->count == 1)
		return (struct time_line){0, ns / batch};
	double square = 0;
	double product = 0;
	for (size_t i = 0; i < times->count; i++) {
		square += (times->batch[i] - batch) * (times->batch[i] - batch);
		product += (times->batch[i] - batch) * (times->ns[i] - ns);
	}
	const double slope = product / square;
	return (struct time_line){ns - slope * batch, slope};
}

static int refuse_point(enum key_id key, const char *text, const char *why, struct error *err)
{
	return error_set(err, -EINVAL,
		"'%s.%s': '%.48s' %s (example: 106ms@64,61ms@32, the times of batches of 64 and of 32)",
		config_keys[key].section, config_keys[key].name, text, why);
}

static int add_point(enum key_id key, char *text, struct batch_times *times, struct error *err)
{
	const struct key *size = &config_keys[KEY_BATCH_SIZE];
	char *at = strchr(text, '@');
	uint64_t ns;
	int64_t batch;
	if (!at)
		return refuse_point(key, text, "has no '@' and a batch size", err);
	*at = '\0';
	const int bad_time = units_parse_duration(text_trim(text), &ns);
	const int bad_batch = units_parse_integer(text_trim(at + 1), &batch);
	*at = '@';
	if (bad_time || ns < 1 || (double)ns > config_keys[key].max)
		return refuse_point(key, text, "does not begin with a time", err);
	if (bad_batch || (double)batch < size->min || (double)batch > size->max)
		return refuse_point(key, text, "does not end with a batch size", err);
	if (times->count == POINTS_MAX)
		return refuse_point(key, text, "is one point too many: 16 is the limit", err);
	for (size_t i = 0; i < times->count; i++)
		if (times->batch[i] == (double)batch)
			return refuse_point(key, text, "is a second time for one batch size", err);
	times->batch[times->count] = (double)batch;
	times->ns[times->count++] = (double)ns;
	return 0;
}

static int read_points(enum key_id key, char *text, struct batch_times *times, struct error *err)
{
	int code = 0;
	times->count = 0;
	for (char *next = text; next && !code;)
		code = add_point(key, text_trim(strsep(&next, ",")), times, err);
	return code;
}

static char *write_points(const struct batch_times *times)
{
	struct buffer out = {0};
	char text[UNITS_BYTES];
	for (size_t i = 0; i < times->count; i++)
		buffer_format(&out, "%s%s@%.0f", i ? "," : "",
			units_print_duration((uint64_t)times->ns[i], text), times->batch[i]);
	if (!out.failed)
		return out.data;
	buffer_release(&out);
	return NULL;
}

int batch_time_parse(
	enum key_id key, const char *text, struct config_value *value, struct error *err)
{
	struct batch_times times;
	char *copy = strdup(text);
	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	int code = read_points(key, copy, &times, err);
	free(copy);
	if (!code && fit(&times).sample_ns < 0)
		code = refuse_point(key, text, "makes a larger batch take less time", err);
	if (code)
		return code;
	value->integer = (int64_t)times.ns[0];
	value->text = write_points(&times);
	if (!value->text)
		return error_set(err, -ENOMEM, "out of memory");
	if (strlen(value->text) < CONFIG_VALUE_BYTES)
		return 0;
	free(value->text);
	value->text = NULL;
	return refuse_point(key, text, "has too many points: 63 characters are the limit", err);
}

double config_step_time(const struct config *config, double batch_size)
{
	const struct config_value *value = &config->values[KEY_STEP_TIME];
	struct batch_times times;
	char *copy = value->text ? strdup(value->text) : NULL;
	const bool read = copy && read_points(KEY_STEP_TIME, copy, &times, NULL) == 0;
	free(copy);
	if (!read)
		return (double)value->integer;
	const struct time_line line = fit(&times);
	return line.fixed_ns + line.sample_ns * batch_size;
}

bool config_step_time_is_fixed(const struct config *config)
{
	const struct config_value *value = &config->values[KEY_STEP_TIME];
	return value->integer > 0 && !value->text;
}

static const struct config_axis *axis_of(const struct config *config, enum key_id key)
{
	for (size_t i = 0; i < config->axis_count; i++)
		if (config->axes[i].key == key)
			return &config->axes[i];
	return NULL;
}

bool config_sweeps_batch_over_fixed_time(const struct config *config)
{
	const struct config_axis *batch = axis_of(config, KEY_BATCH_SIZE);
	const struct config_axis *time = axis_of(config, KEY_STEP_TIME);
	bool fixed = !time && config_step_time_is_fixed(config);
	for (size_t i = 0; time && i < time->count; i++)
		fixed = fixed || (time->values[i].integer > 0 && !time->values[i].text);
	const bool together = time && batch && time->zip_with == batch->zip_with;
	return batch && batch->count > 1 && fixed && !together;
}
