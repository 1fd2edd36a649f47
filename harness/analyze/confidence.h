/* How sure a verdict is: the probability that (stage, resource) is right, as a product of what may be wrong
 * with it.
 *
 *   confidence = stage x resource x busy x pair x completeness, at most 0.97 (0.90 below 3 repeats)
 *
 *   stage         by the arrows beside it alone, or by arrows and replay together: two witnesses that
 *                 agree err together only if both err (1 - (1-a)(1-r)); of two that disagree the replay
 *                 is believed, at 0.65 of what it claims; two that name one each of a pair agree;
 *                 where a quota stops the threads the replay alone is asked, as stopped threads wait anywhere
 *   resource      how far the time split is from the threshold that names it (cause*.c)
 *   busy          without a replay: 1 for a stage busy 90 % of the time, 0.7 at 70 %: what it waits is
 *                 not its own limit, and the queues' share is not known
 *   pair          0.6 when another stage binds as much, for all that can be told; else the probability that none
 *                 does, which is 0.9 at least: that the next one's capacity is 5 % above the first's
 *   completeness  1 while the replay explains the time between batches to within 5 %, 0.5 at 30 %; 0.8 where
 *                 it misses more than a fifth and does not agree, so that only the arrows count
 *
 * A queue's depth as the verdict has 0.5 without a replay: only that, or an experiment, can prove it. */
#ifndef MLBENCH_ANALYZE_CONFIDENCE_H
#define MLBENCH_ANALYZE_CONFIDENCE_H

#include <stdbool.h>
#include <stddef.h>

double confidence_stage(double arrows, double replay, bool agree); /* replay NAN: none */
double confidence_busy(double busy);
double confidence_pair(bool pair, double alone);
double confidence_completeness(double unmodelled); /* NAN: no replay */
double confidence_most(size_t repeats);

/* That a normal variable is below z. */
double confidence_normal(double z);

/* That a stage binds alone: that the next one's capacity is more than 5 % above its own, given their ratio and the
 * deviation of its ln. */
double confidence_alone(double ratio, double deviation);
/* Whether that is too little to name one of the two only. */
bool confidence_is_pair(double alone);

/* After a prediction that failed: its odds over the divisor. */
#define CONFIDENCE_ODDS_OWN 4 /* of the stage that the verdict names, or of what it recommends */
double confidence_failed(double confidence, double divisor);

#endif
