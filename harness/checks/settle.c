/* Temperatures and writes over a short time. */
#include "harness/checks/settle.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/measure/node_files.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTLE_SENSORS_MAX = 64 };

#define SETTLE_FALL_C 0.5                        /* from one look to the next: still cooling */
#define SETTLE_DIRTY_BYTES (256.0 * 1024 * 1024) /* on their way to the disk */

struct settle_state {
	double sensors[SETTLE_SENSORS_MAX]; /* C */
	size_t sensor_count;
	double writeback; /* bytes; NAN: not known */
};

static void settle_sensor(void *context, const char *path)
{
	struct settle_state *state = context;
	double value;
	if (state->sensor_count < SETTLE_SENSORS_MAX && node_number(&value, "%s", path) == 0)
		state->sensors[state->sensor_count++] = value / 1000;
}

/* A value of /proc/meminfo, bytes. */
static double settle_meminfo(const char *text, const char *name)
{
	const char *at = text ? strstr(text, name) : NULL;
	return at ? 1024 * strtod(at + strlen(name), NULL) : (double)NAN;
}

static void settle_read(const char *root, struct settle_state *state)
{
	*state = (struct settle_state){0};
	(void)node_each(settle_sensor, state, "%s/sys/class/thermal/thermal_zone*/temp", root);
	(void)node_each(settle_sensor, state, "%s/sys/class/hwmon/hwmon*/temp*_input", root);
	char *text = node_text("%s/proc/meminfo", root);
	state->writeback = settle_meminfo(text, "\nWriteback:");
	free(text);
}

/* Whether something has not come to rest since `before`. */
static bool settle_moves(const struct settle_state *before, const struct settle_state *now,
	char why[SETTLE_WHY_BYTES])
{
	char size[UNITS_BYTES];
	why[0] = '\0';
	for (size_t i = 0; i < now->sensor_count && i < before->sensor_count; i++)
		if (before->sensors[i] - now->sensors[i] >= SETTLE_FALL_C) {
			(void)snprintf(why, SETTLE_WHY_BYTES,
				"a sensor still cools down, from %.1f to %.1f C",
				before->sensors[i], now->sensors[i]);
			return true;
		}
	if (now->writeback > SETTLE_DIRTY_BYTES) {
		(void)snprintf(why, SETTLE_WHY_BYTES, "%s are still being written to disks",
			units_format_size(now->writeback, size));
		return true;
	}
	return false;
}

uint64_t settle_wait(const char *root, uint64_t look_ns, uint64_t most_ns, const atomic_bool *stop,
	char why[SETTLE_WHY_BYTES])
{
	const uint64_t began = clock_now_ns();
	struct settle_state before;
	struct settle_state now;
	why[0] = '\0';
	settle_read(root, &before);
	/* Without sensors and writes there is nothing to wait for. */
	if (before.sensor_count == 0 && !settle_moves(&before, &before, why))
		return clock_now_ns() - began;
	while (clock_now_ns() - began < most_ns && !(stop && atomic_load(stop))) {
		clock_sleep_until_ns(clock_now_ns() + look_ns);
		settle_read(root, &now);
		if (!settle_moves(&before, &now, why))
			break;
		before = now;
	}
	return clock_now_ns() - began;
}
