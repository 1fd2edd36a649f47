/* What a result is to be seen beside, where there is such a thing: the slow job that was reported, whose twin it is
 * (mlbench fit), and the data loader of the user's that was measured in turn with it (mlbench efficiency).  The job's figures and
 * the loader's are those of other programs and are never among this result's.
 *
 * The complaint is text of the user's; it is written plain, and media escape it. */
#ifndef MLBENCH_REPORT_ALONGSIDE_H
#define MLBENCH_REPORT_ALONGSIDE_H

#include "harness/report/medium.h"
#include "harness/report/report.h"

struct alongside {
	const struct report *report;
	size_t point;   /* whose figures stand beside it; grid.points: nothing was measured */
	json_t *loader; /* the document that `mlbench efficiency` left; NULL: there is none; owned */
};

/* False: there is nothing to tell, and nothing to release. */
bool alongside_open(struct alongside *alongside, const struct report *report, size_t point);
void alongside_close(struct alongside *alongside); /* safe on {0} */
void alongside_put(const struct alongside *alongside, struct medium *medium);

#endif
