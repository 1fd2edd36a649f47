/* "did you mean": the nearest of a list of names. */
#ifndef MLBENCH_BASE_SUGGEST_H
#define MLBENCH_BASE_SUGGEST_H

#include <stddef.h>

/* The name with the least Damerau-Levenshtein distance to word, or NULL when none is near enough to
 * be worth saying (distance above a third of the longer word, at least 2). */
const char *suggest_nearest(const char *word, const char *const *names, size_t count);

#endif
