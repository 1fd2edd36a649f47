/* Other processes beside a measurement. */
#include "harness/analyze/foreign_load.h"

#include <math.h>
#include <stdio.h>

static const double HEAVY_SHARE = 0.20; /* of the cores */
/* Cores: what a node without other jobs does by itself, which comes to more of a single one. */
static const double HEAVY_LEAST = 0.50, HEAVY_LEAST_SHARE = 0.25;
static const double LIGHT_SHARE = 0.10; /* matters only where no core is left */
static const double FULL_SHARE = 0.90;  /* of the cores */
static const double STEAL_SHARE = 0.05;

bool foreign_load_is_heavy(double cores, unsigned usable)
{
	return cores >= fmax(HEAVY_SHARE * usable, fmin(HEAVY_LEAST, HEAVY_LEAST_SHARE * usable));
}

bool foreign_load_contaminates(const struct foreign_load *load, char reason[FOREIGN_LOAD_BYTES])
{
	const bool full = load->cores + load->own_cores >= FULL_SHARE * load->usable;
	const bool processes =
		foreign_load_is_heavy(load->cores, load->usable) ||
		(load->usable > 0 && full && load->cores >= LIGHT_SHARE * load->usable);
	const bool steal = load->steal_share >= STEAL_SHARE;
	char taken[FOREIGN_LOAD_BYTES / 2] = "";
	if (steal)
		(void)snprintf(taken, sizeof taken,
			"the hypervisor took %.0f %% of the time (steal)", load->steal_share * 100);
	if (processes)
		(void)snprintf(reason, FOREIGN_LOAD_BYTES,
			"other processes kept %.1f of %u core%s busy%s%s", load->cores,
			load->usable, load->usable == 1 ? "" : "s", steal ? ", and " : "", taken);
	else
		(void)snprintf(reason, FOREIGN_LOAD_BYTES, "%s", taken);
	return processes || steal;
}
