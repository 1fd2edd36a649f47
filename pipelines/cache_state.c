/* Cold, warm, or as it is. */
#include "pipelines/cache_state.h"

#include "workloads/source/residency.h"

#include <errno.h>
#include <math.h>

enum { MEASURE_FILES_MAX = 100000 }; /* some 10 us a file */
static const double COLD_BELOW = 0.01, WARM_ABOVE = 0.99;

static double cache_state_share(const struct residency *residency)
{
	return residency->total_pages > 0
		       ? (double)residency->resident_pages / (double)residency->total_pages
		       : 0;
}

static int cache_state_check(enum read_cache wanted, double resident, struct error *err)
{
	if (wanted == READ_CACHE_COLD && resident >= COLD_BELOW)
		return error_set(err, -EBUSY,
			"read.cache = cold, but %.2f %% of the data set is in the page cache",
			resident * 100);
	if (wanted == READ_CACHE_WARM && resident < WARM_ABOVE)
		return error_set(err, -EBUSY,
			"read.cache = warm, but only %.2f %% of the data set is in the page cache",
			resident * 100);
	return 0;
}

/* As it is: knowing how much is resident is good, but no reason to fail or to wait long. */
static void cache_state_look(const struct dataset *dataset, struct measurement *m)
{
	struct error why;
	struct residency residency;
	if (dataset->count > MEASURE_FILES_MAX)
		measurement_note(m,
			"page cache before: not measured, the data set has more than %d files",
			MEASURE_FILES_MAX);
	else if (residency_measure(dataset, &residency, &why))
		measurement_note(m, "page cache before: not measured, %.160s", why.text);
	else
		m->resident_before = cache_state_share(&residency);
}

int cache_state_prepare(const struct config *config, const struct dataset *dataset,
	bool reads_memory, struct measurement *m, struct error *err)
{
	const enum read_cache wanted = (enum read_cache)config_integer(config, KEY_READ_CACHE);
	m->resident_before = NAN;
	if (reads_memory)
		return 0;
	if (wanted == READ_CACHE_AS_IS) {
		cache_state_look(dataset, m);
		return 0;
	}
	struct residency after = {0};
	const int code = wanted == READ_CACHE_COLD ? residency_evict(dataset, &after, err)
						   : residency_warm(dataset, &after, err);
	if (code)
		return code;
	m->resident_before = cache_state_share(&after);
	return cache_state_check(wanted, m->resident_before, err);
}
