/* The verdicts that a run wrote into its own summary.json: to diagnose every point of every result again takes minutes. */
#ifndef MLBENCH_REPORT_SAVED_VERDICTS_H
#define MLBENCH_REPORT_SAVED_VERDICTS_H

#include "harness/report/report.h"

#include <stdbool.h>

/* Takes them over into report's points, if the summary is of the measurements that are there now, by whichever version.
 * false: there is none such, and nothing has changed. */
bool saved_verdicts_take(struct report *report);

#endif
