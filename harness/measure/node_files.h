/* Small files of /proc, /sys, /etc: lines, numbers and lists in them, made fit to be shown.  A root in front of their paths
 * ("" but in tests) is part of the path that is formatted. */
#ifndef MLBENCH_MEASURE_NODE_FILES_H
#define MLBENCH_MEASURE_NODE_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { NODE_PATH_BYTES = 4096, NODE_LINE_BYTES = 512 };

/* The first line of the file, without blanks at its ends, and what is no text in it as '?'.  0; -ENODATA: it is empty;
 * -errno. */
int node_line(char *out, size_t room, const char *path, ...) __attribute__((format(printf, 3, 4)));
/* A whole number and nothing else, decimal or behind 0x.  -EINVAL: it is none; -ERANGE: 2^64 or more; -errno. */
int node_number(double *value, const char *path, ...) __attribute__((format(printf, 2, 3)));
/* Such a number in a text. */
int node_number_of(const char *text, double *value);
/* The whole file, NUL-terminated, at most 4 MiB; NULL: it cannot be read.  Free it. */
char *node_text(const char *path, ...) __attribute__((format(printf, 1, 2)));
bool node_has(const char *path, ...) __attribute__((format(printf, 1, 2)));

/* Calls visit for each path that a pattern (glob(7)) matches, "cpu2" before "cpu10", at most NODE_VISITS_MAX.  Returns how
 * many. */
enum { NODE_VISITS_MAX = 16384 };
typedef void node_visit(void *context, const char *path);
size_t node_each(node_visit *visit, void *context, const char *pattern, ...)
	__attribute__((format(printf, 3, 4)));
/* The last part of a path. */
const char *node_base(const char *path);

#endif
