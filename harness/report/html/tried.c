/* A recommendation as a point of the sweep: the same choices but for the keys that it sets. */
#include "harness/report/html/tried.h"

#include "harness/report/config_json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The choice that "decode.workers=8" makes, *axis its axis; false: it is of no swept key, or no value of it. */
static bool find_choice(
	const struct config *config, const char *setting, size_t *axis, size_t *choice)
{
	for (*axis = 0; *axis < config->axis_count; (*axis)++) {
		const struct config_axis *a = &config->axes[*axis];
		for (*choice = 0; *choice < a->count; (*choice)++) {
			char name[CONFIG_NAME_BYTES];
			char value[CONFIG_VALUE_BYTES];
			char text[CONFIG_NAME_BYTES + CONFIG_VALUE_BYTES];
			(void)snprintf(text, sizeof text, "%s=%s", config_key_name(a->key, name),
				config_format_value(
					a->key, &a->values[*choice], value, sizeof value));
			if (strcmp(text, setting) == 0)
				return true;
		}
	}
	return false;
}

double tried_rate(const struct report *report, size_t point, const struct recommendation *r)
{
	const struct config_grid *grid = &report->record->grid;
	size_t wanted[CONFIG_AXES_MAX];
	for (size_t axis = 0; axis < grid->axis_count; axis++)
		wanted[axis] = grid->choice[point * grid->axis_count + axis];
	for (size_t i = 0; i < r->setting_count; i++) {
		size_t axis;
		size_t choice;
		if (!find_choice(&report->record->config, r->settings[i], &axis, &choice))
			return NAN;
		wanted[axis] = choice;
	}
	for (size_t i = 0; i < grid->points && grid->axis_count > 0; i++) {
		const struct point_summary *p = report->points[i];
		const size_t *is = grid->choice + i * grid->axis_count;
		if (memcmp(is, wanted, grid->axis_count * sizeof *is) == 0)
			return p && p->status != POINT_FAILED ? p->median : (double)NAN;
	}
	return NAN;
}
