/* The parts of the environment, one file per subject, and the parsing of what the kernel tells.
 * Internal to measure, but for tests: environment.h is the way in. */
#ifndef MLBENCH_MEASURE_ENVIRONMENT_PARTS_H
#define MLBENCH_MEASURE_ENVIRONMENT_PARTS_H

#include "harness/measure/environment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void environment_build(struct fact_list *list);                          /* group "build" */
void environment_node(struct fact_list *list);                           /* "node" */
void environment_cpu(struct fact_list *list);                            /* "cpu" */
void environment_memory(struct fact_list *list);                         /* "memory" */
void environment_cgroup(struct fact_list *list);                         /* "cgroup" */
void environment_kernel(struct fact_list *list);                         /* "kernel" */
void environment_storage(struct fact_list *list, const char *data_path); /* "data" */
void environment_gpu(struct fact_list *list);                            /* "gpu" */
void environment_nvml(struct fact_list *list);                           /* "gpu", by the driver */
void environment_load(struct fact_list *list);                           /* "load" */

/* First line of a small file as a fact, or missing with the reason. */
void environment_line(
	struct fact_list *list, const char *group, const char *name, const char *path);
/* A whole /proc text, NUL-terminated, NULL when it cannot be read; free it. */
char *environment_text(const char *path);

/* --- environment_parse.c: pure ------------------------------------------------------------------- */

enum { MOUNT_TEXT_BYTES = 512 };

/* One line of /proc/self/mountinfo (proc(5)), its octal escapes undone. */
struct mount_entry {
	unsigned major, minor;
	char root[MOUNT_TEXT_BYTES], point[MOUNT_TEXT_BYTES], options[MOUNT_TEXT_BYTES];
	char type[64], source[MOUNT_TEXT_BYTES], super_options[MOUNT_TEXT_BYTES];
};
bool parse_mount(const char *line, struct mount_entry *entry);
/* The mount that an absolute path lies on: the longest mount point above it, the last of equals. */
bool parse_mount_of(const char *mountinfo, const char *path, struct mount_entry *entry);

/* Value after "Key:" at the start of a line ("MemTotal:  24 kB" -> "24 kB"); false when there is none. */
bool parse_field(const char *text, const char *key, char *out, size_t room);
/* Such a value as a number, "kB" counted in. */
bool parse_field_number(const char *text, const char *key, double *value);
/* Whether a space-separated list has the word. */
bool parse_has_word(const char *list, const char *word);

/* cgroup v2 "max 100000" or "150000 100000": cores; INFINITY when there is no limit; NAN: malformed. */
double parse_cpu_max(const char *text);
/* cgroup v2 "max" or bytes; v1 has a huge number for none: INFINITY then; NAN: malformed. */
double parse_memory_max(const char *text);
/* The path of a controller in /proc/self/cgroup; controller "" is the v2 line. */
bool parse_cgroup_path(const char *text, const char *controller, char *out, size_t room);

/* "none [mq-deadline] kyber" -> "mq-deadline". */
void parse_bracketed(const char *text, char *out, size_t room);

/* Totals of /proc/stat's "cpu" line, in ticks. */
struct cpu_ticks {
	double busy, idle, steal; /* busy: user, nice, system, irq, softirq */
};
bool parse_cpu_ticks(const char *text, struct cpu_ticks *ticks);

/* --- asked of the node ------------------------------------------------------------------------- */

/* The mount of path, or of its nearest existing parent; 0 or -errno. */
int environment_mount_of(const char *path, struct mount_entry *entry);

#endif
