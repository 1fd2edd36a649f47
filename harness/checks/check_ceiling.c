/* What the parts of a node give at best, each by itself, in rounds over all that the plan asks about. */
#include "harness/checks/ceiling.h"

#include "harness/accept/result.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/measure/data_store.h"
#include "harness/measure/node_files.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ceiling_subject *const subjects[] = {&ceiling_decode, &ceiling_gemm,
	&ceiling_memory, &ceiling_timing, &ceiling_storage, &ceiling_devices};

enum { SUBJECTS = COUNT(subjects) };

static const uint64_t SLOT_QUICK_NS = 60 * NS_PER_MS, SLOT_NS = 120 * NS_PER_MS;
/* A part is several times as long as a scheduler lets a thread run before it looks at others: a shorter one would not see
 * who else is on its core. */
static const uint64_t SLOT_LEAST_NS = 10 * NS_PER_MS, PART_LEAST_NS = 20 * NS_PER_MS;
static const uint64_t WARM_MOST_NS = 15 * NS_PER_MS;
static const double OVERHEAD =
	1.15; /* of a slot: starting threads, last calls, looking at results */
static const double LIMITED_SLOT_S =
	0.7; /* of reads that a control group limits, with those in flight at the end */
static const double TIME_SHARE = 0.9; /* of the time that is left: slots are made to fit into it */

static uint64_t ceiling_slot_of_tier(enum accept_tier tier)
{
	return tier == TIER_QUICK ? SLOT_QUICK_NS : SLOT_NS;
}

/* --- what is asked ---------------------------------------------------------------------------- */

/* Whether any criterion on it needs one of these. */
static bool ceiling_criteria_need(const struct ceiling *ceiling, const char *figure,
	const enum clause_of *needs, size_t count)
{
	const struct accept_check *check = ceiling->context->check;
	for (size_t i = 0; i < check->limit_count; i++)
		for (size_t j = 0; j < count; j++)
			if (strcmp(check->limits[i].figure->name, figure) == 0 &&
				criterion_needs(&check->limits[i].criterion, needs[j]))
				return true;
	return false;
}

static bool ceiling_compares_places(const struct ceiling *ceiling, const char *figure)
{
	static const enum clause_of needs[] = {OF_MEDIAN, OF_BEST};
	return ceiling_criteria_need(ceiling, figure, needs, COUNT(needs));
}

bool ceiling_needs_peak(const struct ceiling *ceiling, const char *figure)
{
	static const enum clause_of needs[] = {OF_PEAK};
	return ceiling_criteria_need(ceiling, figure, needs, COUNT(needs));
}

bool ceiling_wants(const struct ceiling *ceiling, const char *figure, const char *place)
{
	return check_wants(ceiling->context, figure, place) ||
	       (check_wants(ceiling->context, figure, NULL) &&
		       ceiling_compares_places(ceiling, figure));
}

static bool ceiling_wants_any(
	const struct ceiling *ceiling, const char *const *figures, const char *place)
{
	for (; *figures; figures++)
		if (ceiling_wants(ceiling, *figures, place))
			return true;
	return false;
}

/* --- cells ------------------------------------------------------------------------------------ */

int ceiling_add(struct ceiling *ceiling, const struct ceiling_cell *cell, struct error *err)
{
	if (!ceiling_wants_any(ceiling, cell->figures, cell->place))
		return 0;
	if (ceiling->cell_count == CEILING_CELLS_MAX)
		return error_set(err, -E2BIG, "more than %d quantities", CEILING_CELLS_MAX);
	if (ceiling->cell_count == ceiling->cell_room) {
		const size_t room = ceiling->cell_room ? 2 * ceiling->cell_room : 64;
		void *grown = realloc(ceiling->cells, room * sizeof *ceiling->cells);
		if (!grown)
			return error_set(err, -ENOMEM, "out of memory");
		ceiling->cells = grown;
		ceiling->cell_room = room;
	}
	ceiling->cells[ceiling->cell_count++] = *cell;
	return 0;
}

static void ceiling_hand_over(
	struct ceiling *ceiling, const char *figure, const char *place, double value)
{
	if (!ceiling->warming && isfinite(value) && ceiling_wants(ceiling, figure, place))
		sink_value(ceiling->context->sink, figure, place, value);
}

void ceiling_value(struct ceiling *ceiling, const char *figure, const char *place, double value)
{
	const struct ceiling_cell *cell = ceiling->visited;
	if (cell->parts < 2) {
		ceiling_hand_over(ceiling, figure, place, value);
		return;
	}
	const bool more = figure_find(ACCEPT_CEILING, figure)->sense != FIGURE_LESS_IS_BETTER;
	for (size_t i = 0; cell->figures[i]; i++)
		if (strcmp(cell->figures[i], figure) == 0)
			ceiling->best[i] = more ? fmax(ceiling->best[i], value)
						: fmin(ceiling->best[i], value);
}

void ceiling_lack(
	struct ceiling *ceiling, const char *const *figures, const char *place, const char *why)
{
	for (; *figures; figures++)
		if (ceiling_wants(ceiling, *figures, place))
			sink_lack(ceiling->context->sink, *figures, place ? place : "", "%s", why);
}

void ceiling_miss(
	struct ceiling *ceiling, const char *const *figures, const char *place, const char *why)
{
	for (; *figures; figures++)
		if (ceiling_wants(ceiling, *figures, place))
			sink_missing(
				ceiling->context->sink, *figures, place ? place : "", "%s", why);
}

bool ceiling_is_lack(int code)
{
	static const int lacks[] = {-ENOTSUP, -ENODEV, -ENOSYS, -EBUSY};
	for (size_t i = 0; i < COUNT(lacks); i++)
		if (code == lacks[i])
			return true;
	return false;
}

/* What the node lacks, what it has and refuses, or a measurement that failed, which fails the check. */
static void ceiling_give_up(struct ceiling *ceiling, const char *const *figures, const char *place,
	int code, const struct error *why)
{
	if (ceiling_is_lack(code)) {
		ceiling_lack(ceiling, figures, place, why->text);
		return;
	}
	if (code == -EPERM || code == -EACCES) {
		ceiling_miss(ceiling, figures, place, why->text);
		return;
	}
	sink_note(ceiling->context->sink, "%s%s%s", place ? place : "", place && *place ? ": " : "",
		why->text);
	if (!ceiling->code) {
		ceiling->code = code;
		ceiling->failure = *why;
	}
}

/* --- rounds ----------------------------------------------------------------------------------- */

static bool ceiling_user_stopped(const struct ceiling *ceiling)
{
	return ceiling->context->stop && atomic_load(ceiling->context->stop);
}

/* How much of their slots there is time for. */
static double ceiling_fit(const struct ceiling *ceiling)
{
	const struct check_context *context = ceiling->context;
	const uint64_t now = clock_now_ns();
	double wanted = 0;
	for (size_t i = 0; i < ceiling->cell_count; i++) {
		const struct ceiling_cell *cell = &ceiling->cells[i];
		const unsigned visits = cell->visits && cell->visits < context->repeats
						? cell->visits
						: context->repeats;
		wanted += OVERHEAD * (double)visits * (double)cell->slot_ns +
			  (cell->warms ? (double)WARM_MOST_NS : 0);
	}
	if (!context->deadline_ns || wanted == 0)
		return 1;
	const double left = context->deadline_ns > now ? (double)(context->deadline_ns - now) : 0;
	return fmin(1, TIME_SHARE * left / wanted);
}

static uint64_t ceiling_slot(
	const struct ceiling *ceiling, const struct ceiling_cell *cell, double fit)
{
	uint64_t slot = (uint64_t)(fit * (double)cell->slot_ns);
	slot = slot < SLOT_LEAST_NS ? SLOT_LEAST_NS : slot;
	return ceiling->warming && slot > WARM_MOST_NS ? WARM_MOST_NS : slot;
}

/* The cores that a cell needs: its own, or all. */
static const unsigned *ceiling_cell_cores(
	const struct ceiling *ceiling, const struct ceiling_cell *cell, size_t *count)
{
	unsigned core;
	*count = ceiling->core_count;
	if (sscanf(cell->place, "core %u", &core) != 1)
		return ceiling->cores;
	for (unsigned i = 0; i < ceiling->core_count; i++)
		if (ceiling->cores[i] == core) {
			*count = 1;
			return &ceiling->cores[i];
		}
	return ceiling->cores;
}

/* What a visit sees of others is little where it is short: a thread that has just been woken gets the core at once, and may
 * be done before its turn is over.  While this process rests, before the rounds and after them, a core that is used is used by
 * others, whatever its scheduler does. */
static void ceiling_look_at_idle_cores(struct ceiling *ceiling)
{
	static const uint64_t SPIN_NS = 50 * NS_PER_MS; /* OpenBLAS's threads, after a product */
	static const uint64_t LOOK_NS = 250 * NS_PER_MS;
	const struct check_context *context = ceiling->context;
	const uint64_t begin = clock_now_ns() + SPIN_NS;
	if (context->deadline_ns && begin + 2 * LOOK_NS > context->deadline_ns)
		return;
	for (unsigned end = 0; end < 2; end++) {
		const uint64_t at = begin + end * LOOK_NS;
		for (uint64_t now = clock_now_ns(); now < at; now = clock_now_ns()) {
			if (check_stopped(context))
				return;
			clock_sleep_until_ns(at < now + SPIN_NS ? at : now + SPIN_NS);
		}
		char *stat = node_text("%s/proc/stat", context->root ? context->root : "");
		for (unsigned i = 0; i < ceiling->core_count; i++) {
			const double used_s = parse_cores_used(stat, &ceiling->cores[i], 1);
			if (end == 0)
				other_work_begin(&ceiling->idle[i], used_s, 0);
			else
				other_work_end(&ceiling->idle[i], used_s, 0, 1);
		}
		free(stat);
	}
}

/* Whether others use the cores while this process rests. */
static bool ceiling_cores_are_taken(const struct ceiling *ceiling, const unsigned *cores,
	size_t count, char words[OTHER_WORK_WORDS_BYTES])
{
	static const double IDLE_SHARE = 0.2;
	const struct other_work *idle = ceiling->idle + (cores - ceiling->cores);
	struct other_work all = {0};
	for (size_t i = 0; i < count; i++) {
		all.used_s += idle[i].used_s;
		all.wall_s += idle[i].wall_s;
	}
	return other_work_is_busy(&all, IDLE_SHARE, count, words);
}

/* Other work on the cores while it was visited, or between, if it was enough to matter.  Who serves files in user mode (FUSE) is
 * no other. */
static void ceiling_say_busy(const struct ceiling *ceiling, const struct ceiling_cell *cell)
{
	static const double CORES_SHARE = 0.1, STORAGE_SHARE = 0.5;
	char words[OTHER_WORK_WORDS_BYTES];
	size_t count;
	const unsigned *cores = ceiling_cell_cores(ceiling, cell, &count);
	const bool stores = strncmp(cell->figures[0], "read.", 5) == 0 ||
			    strncmp(cell->figures[0], "write.", 6) == 0;
	if (!other_work_is_busy(
		    &cell->others, stores ? STORAGE_SHARE : CORES_SHARE, count, words) &&
		(stores || !ceiling_cores_are_taken(ceiling, cores, count, words)))
		return;
	for (size_t i = 0; cell->figures[i]; i++)
		if (ceiling_wants(ceiling, cell->figures[i], cell->place))
			sink_condition(ceiling->context->sink, cell->figures[i], cell->place,
				CONDITION_BUSY, "%s", words);
}

static int ceiling_visit_parts(
	struct ceiling *ceiling, struct ceiling_cell *cell, uint64_t slot, struct error *why)
{
	const unsigned most = (unsigned)(slot / PART_LEAST_NS);
	const unsigned parts = cell->parts < most ? cell->parts : most;
	const char *root = ceiling->context->root ? ceiling->context->root : "";
	size_t core_count;
	const unsigned *cores = ceiling_cell_cores(ceiling, cell, &core_count);
	int code = 0;
	if (!ceiling->warming)
		other_work_begin(&cell->others, cores_used_seconds(root, cores, core_count),
			own_user_seconds());
	ceiling->visited = cell;
	ceiling->control.slot_ns = parts > 1 ? slot / parts : slot;
	for (size_t i = 0; i < CEILING_FIGURES_MAX; i++)
		ceiling->best[i] = NAN;
	for (unsigned part = 0; part < (parts > 1 ? parts : 1) && !code; part++)
		code = ceiling_user_stopped(ceiling) ? 0 : cell->visit(ceiling, cell, why);
	if (!ceiling->warming)
		other_work_end(&cell->others, cores_used_seconds(root, cores, core_count),
			own_user_seconds(), core_count);
	for (size_t i = 0; cell->parts > 1 && cell->figures[i] && !code; i++)
		ceiling_hand_over(ceiling, cell->figures[i], cell->place, ceiling->best[i]);
	return code;
}

/* False: the time is over, or somebody stopped it.  A slot that the deadline would cut is not begun. */
static bool ceiling_go(struct ceiling *ceiling, struct ceiling_cell *cell, double fit)
{
	const struct check_context *context = ceiling->context;
	const uint64_t slot = ceiling_slot(ceiling, cell, fit);
	struct error why = {0};
	if (check_stopped(context) ||
		(context->deadline_ns && clock_now_ns() + (uint64_t)(OVERHEAD * (double)slot) >=
						 context->deadline_ns))
		return false;
	if (cell->over || (ceiling->warming && !cell->warms))
		return true;
	sink_activity(context->sink, "%s", cell->activity);
	const int code = ceiling_visit_parts(ceiling, cell, slot, &why);
	if (!ceiling->warming)
		cell->visited++;
	if (ceiling_user_stopped(ceiling))
		return false;
	if (code)
		ceiling_give_up(ceiling, cell->figures, cell->place, code, &why);
	cell->over = code != 0 || (cell->visits && cell->visited == cell->visits);
	return true;
}

static bool ceiling_round(struct ceiling *ceiling, struct rng *rng, uint32_t *order, double fit)
{
	rng_permutation(rng, order, (uint32_t)ceiling->cell_count);
	for (size_t i = 0; i < ceiling->cell_count; i++)
		if (!ceiling_go(ceiling, &ceiling->cells[order[i]], fit))
			return false;
	return true;
}

static int ceiling_rounds(struct ceiling *ceiling, struct error *err)
{
	const struct check_context *context = ceiling->context;
	uint32_t *order = calloc(ceiling->cell_count + 1, sizeof *order);
	struct rng rng;
	unsigned round = 0;
	if (!order)
		return error_set(err, -ENOMEM, "out of memory");
	rng_init(&rng, context->round, ceiling->cell_count);
	const double fit = ceiling_fit(ceiling);
	ceiling->warming = true;
	bool on = ceiling_round(ceiling, &rng, order, fit);
	ceiling->warming = false;
	while (on && round < context->repeats) {
		on = ceiling_round(ceiling, &rng, order, fit);
		round += on;
	}
	free(order);
	if (!on && !ceiling_user_stopped(ceiling))
		sink_note(context->sink, "time was over after %u of %u rounds", round,
			context->repeats);
	return 0;
}

/* --- the check -------------------------------------------------------------------------------- */

static void ceiling_open(struct ceiling *ceiling, void *states[SUBJECTS])
{
	for (size_t i = 0; i < SUBJECTS && !check_stopped(ceiling->context); i++) {
		const struct ceiling_subject *subject = subjects[i];
		const size_t before = ceiling->cell_count;
		struct error why = {0};
		if (!ceiling_wants_any(ceiling, subject->figures, NULL))
			continue;
		const int code = subject->open(ceiling, &states[i], &why);
		if (!code || ceiling_user_stopped(ceiling))
			continue;
		ceiling->cell_count = before;
		ceiling_give_up(ceiling, subject->figures, NULL, code, &why);
	}
}

static int ceiling_run(const struct check_context *context, struct error *err)
{
	struct ceiling ceiling = {.context = context,
		.control = {.stop = context->stop,
			.rounds = 1,
			.deadline_ns = context->deadline_ns},
		.slot_ns = ceiling_slot_of_tier(context->tier)};
	void *states[SUBJECTS] = {NULL};
	ceiling.core_count = probe_core_list(&ceiling.cores);
	if (ceiling.core_count == 0)
		return error_set(err, -ENOSYS, "the kernel does not tell which cores there are");
	ceiling.idle = calloc(ceiling.core_count, sizeof *ceiling.idle);
	if (!ceiling.idle) {
		free(ceiling.cores);
		return error_set(err, -ENOMEM, "out of memory");
	}
	ceiling_look_at_idle_cores(&ceiling);
	ceiling_open(&ceiling, states);
	int code = ceiling_rounds(&ceiling, err);
	ceiling_look_at_idle_cores(&ceiling);
	for (size_t i = 0; i < ceiling.cell_count; i++)
		ceiling_say_busy(&ceiling, &ceiling.cells[i]);
	for (size_t i = 0; i < SUBJECTS; i++)
		subjects[i]->close(states[i]);
	free(ceiling.cells);
	free(ceiling.idle);
	free(ceiling.cores);
	if (ceiling_user_stopped(&ceiling))
		return error_set(err, -EINTR, "stopped");
	if (!code && ceiling.code) {
		code = ceiling.code;
		*err = ceiling.failure;
	}
	return code;
}

/* --- what it takes ---------------------------------------------------------------------------- */

/* Seconds before the first slot, and slots of a round in units of a core's, of a figure. */
static const struct ceiling_need {
	const char *figure;
	double seconds, slots;
	bool per_core;
} needs[] = {
	{"decode.core", 0.6, 1, true},
	{"decode.all", 0.6, 1, false},
	{"gemm.core", 0.1, 1, true},
	{"gemm.all", 0.1, 1.5, false},
	{"memory.core", 0.4, 0.7, true},
	{"memory.node", 0.4, 1, false},
	{"memory.across", 0.4, 1, false},
	{"memory.all", 0.4, 1, false},
	{"lock.handoff", 0, 0.5, false},
	{"wake.latency", 0, 1, false},
	{"wake.tail", 0, 1, false},
	{"read.direct", 0.5, 1, false},
	{"read.cold", 0.5, 1.5, false},
	{"read.latency", 0.5, 1, false},
	{"read.iops", 0.5, 1, false},
	{"write.synced", 0.5, 2, false},
	{"device.memory", 1.5, 20, false},
	{"gemm.device", 1.5, 20, false},
};

static void ceiling_estimate(const struct check_context *context, struct check_cost *cost)
{
	const double slot = OVERHEAD * (double)ceiling_slot_of_tier(context->tier) * 1e-9;
	const double repeats = context->repeats > 0 ? context->repeats : 1;
	const double cores = probe_cores();
	*cost = (struct check_cost){.seconds = 0.7}; /* with two looks at idle cores */
	const bool limited = cgroup_limits_reads();
	double device_seconds = 0;
	for (size_t i = 0; i < COUNT(needs); i++) {
		const struct ceiling_need *need = &needs[i];
		if (!check_asks(context->check, need->figure))
			continue;
		const double slots = need->slots * (need->per_core ? cores : 1);
		const bool reads = strncmp(need->figure, "read.", 5) == 0;
		if (reads && limited)
			cost->seconds += LIMITED_SLOT_S * repeats;
		if (strstr(need->figure, "device"))
			device_seconds = need->seconds + slot * slots * repeats;
		else
			cost->seconds += need->seconds + slot * slots * repeats;
		if (reads || strncmp(need->figure, "write.", 6) == 0)
			cost->disk_bytes = (double)ceiling_scratch_bytes(context);
		if (strncmp(need->figure, "memory.", 7) == 0)
			cost->memory_bytes = probe_free_memory() / 4;
	}
	cost->seconds += device_seconds;
}

const struct check_ops check_ceiling = {
	.kind = ACCEPT_CEILING,
	.estimate = ceiling_estimate,
	.run = ceiling_run,
};
