/* Reads at other depths than the set one (struct read_point), for who reads a report. */
#ifndef MLBENCH_REPORT_READ_POINTS_H
#define MLBENCH_REPORT_READ_POINTS_H

#include "harness/report/report.h"

/* "alone, at read.depth 4, 8, 16: 410, 812, 1,590 files/s"; where they were not read alone, "at depth 4, ..." over a point's
 * repetitions, the set depth (of the measured part) among them; nothing where no other was tried. */
void read_points_text(const struct report *report, size_t point, struct buffer *out);

/* Blocks of reads alone, or of two stages alone, in the order in which they ran; NULL where there are none. */
json_t *reads_alone_json(const struct report *report, size_t point, bool stages);
/* Those of every repetition, with its number; null where there are none. */
json_t *read_points_json(const struct report *report, size_t point);

#endif
