/* Between the files of the expect kind (check_expect.c, expect_node.c, expect_devices.c): what they share, and the subjects
 * that each tells of.  Nothing is handed over that nobody asks for, and each figure says its value or why there is none. */
#ifndef MLBENCH_CHECKS_EXPECT_H
#define MLBENCH_CHECKS_EXPECT_H

#include "harness/checks/check.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	EXPECT_FIGURES_MAX = 256,
	EXPECT_PLACE_BYTES = 160,
	EXPECT_TEXT_BYTES = 4096, /* a kernel's command line has up to 4,096 */
};

struct expect_cpu {
	unsigned number;
	bool online, is_core; /* the first of its core's threads */
	double socket;
};

struct expect {
	const struct check_context *context;
	const char *root;
	bool told[EXPECT_FIGURES_MAX]; /* by their index in figure_list */
	struct expect_cpu *cpus;       /* owned */
	size_t cpu_count, cpu_room;
	size_t error_events; /* handed over so far */
};

/* --- handing over: place "" is the node ------------------------------------------------------- */

/* Whether the plan asks about the figure there; place NULL: anywhere. */
bool expect_wants(const struct expect *e, const char *figure, const char *place);
void expect_text(struct expect *e, const char *figure, const char *place, const char *text);
void expect_number(struct expect *e, const char *figure, const char *place, double value);
void expect_switch(struct expect *e, const char *figure, const char *place, bool on);
void expect_missing(struct expect *e, const char *figure, const char *place, const char *format,
	...) __attribute__((format(printf, 4, 5)));
/* Each figure whose name begins so, and of which nothing was told, is missing for one reason. */
void expect_rest_missing(struct expect *e, const char *prefix, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A figure is missing because of a file; code: -errno of reading it. */
void expect_file_missing(
	struct expect *e, const char *figure, const char *place, const char *path, int code);
/* Whether something was told of a figure, if only why it is missing. */
bool expect_told(const struct expect *e, const char *figure);

/* --- subjects --------------------------------------------------------------------------------- */

#define EXPECT_CPUS "/sys/devices/system/cpu"
#define NO_THROTTLE_COUNTS "the CPUs do not count it (no thermal_throttle in '" EXPECT_CPUS "')"

void find_expect_cpus(struct expect *e); /* before all others; the caller frees e->cpus */
double expect_threads(const struct expect *e);
double throttle_events(const struct expect *e); /* since the node started; NAN: not counted */

void tell_cpus(struct expect *e);
void tell_numa(struct expect *e);
void tell_node_memory(struct expect *e);
void tell_cgroup(struct expect *e);
void tell_limits(struct expect *e);
void tell_clock(struct expect *e);

void tell_gpus(struct expect *e);
void tell_rdma(struct expect *e);
void tell_network(struct expect *e);
void tell_pcie(struct expect *e);
void tell_disks(struct expect *e);
void tell_data(struct expect *e); /* may hang on a mount that does not answer */

#endif
