/* What `run --flame` writes: flame.folded (a line per stack, as flamegraph.pl, inferno, speedscope and the chart of
 * report.html read it), flame.json (schema mlbench.flame/1: how it was sampled, and the functions that took most), and a table
 * for the terminal. */
#ifndef MLBENCH_REPORT_FLAME_REPORT_H
#define MLBENCH_REPORT_FLAME_REPORT_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/measure/flame.h"
#include "harness/report/style.h"

#include <jansson.h>

enum { FLAME_TOP = 8 };

/* What a function of a stage took by itself, wherever it was called. */
struct flame_top {
	uint32_t stage, name; /* a frame that is a stage; of profile->names */
	uint64_t self;
};

/* The functions with most of their own, at most room, largest first; how many.  0 without memory, too. */
size_t flame_top(const struct flame_profile *profile, struct flame_top *out, size_t room);

void flame_folded(const struct flame_profile *profile, struct buffer *out);
/* name: of the benchmark.  NULL: no memory. */
json_t *flame_json(const struct flame_profile *profile, const char *name);
void flame_table(
	const struct flame_profile *profile, const struct style *style, struct buffer *out);

/* Both files into folder, each whole or not at all. */
int flame_write_files(const struct flame_profile *profile, const char *name, const char *folder,
	struct error *err);

#endif
