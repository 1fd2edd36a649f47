/* What a node says of itself while it is loaded: temperatures, power, who holds the clocks or the cores down, pressure, and
 * errors that the hardware counts.  What a node has no sensor for is not there; a reading is bounded in time. */
#ifndef MLBENCH_CHECKS_BURN_SENSORS_H
#define MLBENCH_CHECKS_BURN_SENSORS_H

#include "harness/base/error.h"
#include "harness/measure/error_counters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sensor_kind {
	SENSOR_TEMPERATURE, /* C */
	SENSOR_POWER,       /* W */
	SENSOR_THROTTLE,    /* share of the time since the last look, 0 .. 1 */
	SENSOR_PRESSURE,    /* share of the time in which some thread waited (PSI) */
	SENSOR_CLOCK,       /* MHz, of devices */
	SENSOR_KINDS
};

enum { SENSORS_MAX = 1024, SENSOR_PLACE_BYTES = 96, SENSOR_WHY_BYTES = 128 };

struct sensor {
	enum sensor_kind kind;
	char place
		[SENSOR_PLACE_BYTES]; /* "core 3", "CPU quota of /job", "device 0", "coretemp Package id 0" */
	double value;                 /* at the last look; NAN: it could not be read */
	double most;                  /* of all looks; NAN: none */
	/* Of throttles: looks at which it had been throttled, and when the first and the last of them were. */
	uint64_t looks, throttled;
	double first_s, last_s;
	char reason[SENSOR_WHY_BYTES]; /* "power cap"; "" */
};

struct sensors;

/* root: in front of /proc and /sys, "" but in tests.  The first look is the base of what is counted.  0 or -ENOMEM. */
int sensors_open(struct sensors **out, const char *root, struct error *err);
void sensors_close(struct sensors *sensors); /* NULL is fine */

/* Looks at all sensors; at_s: when, since the burn began.  devices: asks the driver, too, which takes a while. */
void sensors_look(struct sensors *sensors, double at_s, bool devices);

size_t sensors_list(const struct sensors *sensors, const struct sensor **list);

/* --- errors ------------------------------------------------------------------------------------ */

/* A counter that rose since the last such look; its total growth since the burn began. */
typedef void sensors_risen(void *context, const struct error_counter *counter, uint64_t growth);
/* Reads the counters again, and tells of those that rose.  0 or -ENOMEM. */
int sensors_errors(struct sensors *sensors, bool devices, sensors_risen *risen, void *context,
	struct error *err);
/* Growth of a class since the burn began; false: it is not counted here, why has the reason. */
bool sensors_errors_of(const struct sensors *sensors, enum error_class class, bool corrected,
	uint64_t *growth, const char **why);

#endif
