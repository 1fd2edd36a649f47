/* What a process says of the code that it makes while it runs: its perf map, /tmp/perf-PID.map, a line `START SIZE NAME` for
 * each function, as Python (-X perf), node and other interpreters and JITs write it.  It is found in the file system and under
 * the number that the process sees itself (containers), and read as it grows.
 *
 * Such a file is anybody's: it counts only as a plain file of the process's own user that is below the process's own root,
 * is read in bounded pieces and time, and names come out without control characters.  Of Python's names, which have a path,
 * the function's name alone is kept.
 *
 * One thread at a time. */
#ifndef MLBENCH_MEASURE_CODE_MAP_H
#define MLBENCH_MEASURE_CODE_MAP_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CODE_MAP_NAME_BYTES = 80, CODE_MAP_ENTRIES_MAX = 1 << 17, CODE_MAP_BYTES_MAX = 1 << 26 };

struct code_entry {
	uint64_t begin, size;
	char name[CODE_MAP_NAME_BYTES]; /* plain UTF-8 */
	uint32_t order;                 /* in the file */
	bool python;                    /* a function of Python's; else of another JIT */
};

struct code_map;

/* root: in front of /proc; "" but in tests.  -ENOENT: the process writes none; -EPERM: there is one that does not count (a
 * link, no plain file, of another user); another negative errno. */
int code_map_open(struct code_map **out, const char *root, int32_t pid, struct error *err);
void code_map_close(struct code_map *map); /* NULL is fine */

/* Reads what was added, at most 1 MiB at once. */
void code_map_refresh(struct code_map *map);
/* NULL: no code of it.  Of two entries at one place the one that was written later.  Until the next refresh. */
const struct code_entry *code_map_find(struct code_map *map, uint64_t address);
size_t code_map_count(const struct code_map *map);

#endif
