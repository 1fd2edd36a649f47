/* burn: everything at once for a time.  The loads run on threads of their own (burn_loads.h); this thread looks at them once a
 * window, and at what the node says of itself (burn_sensors.h), and judges nothing until the end: which load left its steady
 * state and when (drift.h), what was throttled, how hot it became, which errors were counted, what came back wrong. */
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/checks/burn_loads.h"
#include "harness/checks/burn_sensors.h"
#include "harness/checks/check.h"
#include "harness/checks/core_list.h"
#include "harness/checks/corruption.h"
#include "harness/checks/drift.h"
#include "harness/checks/fixed_work.h"
#include "harness/checks/votes.h"
#include "harness/measure/node_probes.h"
#include "workloads/backend/cuda.h"

#include "harness/analyze/statistics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BURN_WINDOWS_MAX = 4096,
	PARTS = 8,       /* of the burn: the median of each is a repetition of a throughput */
	WARM_SHARE = 20, /* of the windows: clocks and caches come to rest */
	WARM_LEAST = 2,
	POINTS_SHARE = 300, /* points of a sensor's series, about */
	SERIES_MAX = 16,    /* of sensors of one kind */
};

#define BURN_LEAST_DRIFT 0.03      /* a smaller one is of no interest */
#define BURN_LEAST_CORE_DRIFT 0.10 /* of one core among others */

static const char *const burn_figures[BURN_LOADS] = {[BURN_DECODE] = "burn.decode",
	[BURN_GEMM] = "burn.gemm",
	[BURN_READ] = "burn.read",
	[BURN_WRITE] = "burn.write"};
static const enum figure_unit burn_units[BURN_LOADS] = {[BURN_DECODE] = FIGURE_PER_S,
	[BURN_GEMM] = FIGURE_FLOPS,
	[BURN_READ] = FIGURE_BYTES_PER_S,
	[BURN_WRITE] = FIGURE_BYTES_PER_S};

struct burn {
	const struct check_context *context;
	struct check_sink *sink;
	struct corruptions corruptions;
	unsigned asked; /* BURN_BITs of the loads of the plan */
	uint64_t for_ns, window_ns;

	struct core_list cores;
	struct fixed_work *work;
	struct votes *votes;
	const void **right; /* (items); the votes' */
	struct burn_loads *loads;
	struct sensors *node;

	uint64_t begin_ns;              /* of the check */
	uint64_t go_ns;                 /* of the loads */
	size_t windows;                 /* done */
	const struct cuda_found *found; /* whose devices multiply; NULL: none */
	double *device_rates;           /* (devices, BURN_WINDOWS_MAX) */
	uint64_t device_before[CUDA_DEVICES_MAX];
	double *rates[BURN_LOADS];    /* (BURN_WINDOWS_MAX) */
	float *core_rates[BURN_READ]; /* (cores, BURN_WINDOWS_MAX), of loads that compute */
	float *clocks;                /* (cores, BURN_WINDOWS_MAX), MHz */
	uint64_t before[BURN_LOADS];  /* done at the last look */
	uint64_t *core_before[BURN_READ];
	double looked_s, errors_s,
		devices_s;          /* when sensors' points, counters and devices were looked at */
	double ended_s[BURN_LOADS]; /* when a load gave up; NAN */
};

static double burn_now_s(const struct burn *burn)
{
	return (double)(clock_now_ns() - burn->begin_ns) / (double)NS_PER_S;
}

/* Of a moment that the loads or the windows count from their start. */
static double burn_at_s(const struct burn *burn, double since_go_s)
{
	return since_go_s + (double)(burn->go_ns - burn->begin_ns) / (double)NS_PER_S;
}

static double burn_window_s(const struct burn *burn)
{
	return (double)burn->window_ns / (double)NS_PER_S;
}

static bool burn_stopped(const struct burn *burn)
{
	const atomic_bool *const stop = burn->context->stop;
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

/* --- what the plan asks for --------------------------------------------------------------------- */

static int burn_read_loads(const struct accept_check *check, unsigned *loads, struct error *err)
{
	char text[128];
	char *rest = NULL;
	*loads = 0;
	if (snprintf(text, sizeof text, "%s", check_text(check, PLAN_LOADS)) >= (int)sizeof text)
		return error_set(err, -EINVAL, "loads is too long");
	for (char *word = strtok_r(text, ", \t", &rest); word;
		word = strtok_r(NULL, ", \t", &rest)) {
		int load = 0;
		while (load < BURN_LOADS && strcmp(word, burn_load_name((enum burn_load)load)) != 0)
			load++;
		if (load == BURN_LOADS)
			return error_set(err, -EINVAL,
				"loads = %s: unknown load '%s'; use decode, gemm, read, write",
				check_text(check, PLAN_LOADS), word);
		*loads |= BURN_BIT(load);
	}
	return *loads ? 0
		      : error_set(err, -EINVAL, "loads names none of decode, gemm, read, write");
}

static int burn_validate(
	const struct accept_plan *plan, const struct accept_check *check, struct error *err)
{
	unsigned loads;
	(void)plan;
	const int code = burn_read_loads(check, &loads, err);
	for (int load = 0; !code && load < BURN_LOADS; load++)
		if (!(loads & BURN_BIT(load)) && check_asks(check, burn_figures[load]))
			return error_set(err, -EINVAL,
				"%s is asked for, but loads = %s runs no %s load",
				burn_figures[load], check_text(check, PLAN_LOADS),
				burn_load_name((enum burn_load)load));
	return code;
}

static uint64_t burn_for_ns(const struct check_context *context)
{
	static const uint64_t seconds[] = {
		[TIER_QUICK] = 15, [TIER_STANDARD] = 120, [TIER_BURN] = 3600};
	const int64_t asked = check_integer(context->check, PLAN_FOR);
	if (context->for_ns > 0)
		return context->for_ns;
	if (asked > 0)
		return (uint64_t)asked;
	return seconds[context->tier <= TIER_BURN ? context->tier : TIER_BURN] * NS_PER_S;
}

/* Short ones for short burns, so that there are enough to see a change, and no more than are kept. */
static uint64_t burn_window_of(uint64_t for_ns)
{
	const uint64_t wanted = for_ns / 60;
	const uint64_t least = 100 * NS_PER_MS;
	const uint64_t most = 10 * NS_PER_S;
	const uint64_t window = wanted < least ? least : wanted > most ? most : wanted;
	return for_ns / window < BURN_WINDOWS_MAX - 1 ? window
						      : for_ns / (BURN_WINDOWS_MAX - 1) + 1;
}

/* Of both files; at most a quarter of what is free. */
static uint64_t burn_file_bytes(const struct check_context *context)
{
	static const uint64_t mebibytes[] = {
		[TIER_QUICK] = 192, [TIER_STANDARD] = 1024, [TIER_BURN] = 4096};
	const int64_t asked = check_integer(context->check, PLAN_SIZE);
	const uint64_t bytes = mebibytes[context->tier <= TIER_BURN ? context->tier : TIER_BURN]
			       << 20;
	if (asked > 0)
		return (uint64_t)asked;
	return (uint64_t)fmin(
		(double)bytes, context->free_bytes / 4); /* of NAN and a number: the number */
}

static void burn_estimate(const struct check_context *context, struct check_cost *cost)
{
	/* Of a core: two decoders and BLAS's buffers.  Before it begins: pictures, a first pass, the file that is read. */
	static const double CORE_BYTES = 48 << 20, SETUP_S = 10, WRITE_BYTES_PER_S = 200e6;
	unsigned loads;
	struct error ignored;
	const bool files = burn_read_loads(context->check, &loads, &ignored) == 0 &&
			   loads & (BURN_BIT(BURN_READ) | BURN_BIT(BURN_WRITE));
	const double bytes = files ? (double)burn_file_bytes(context) : 0;
	*cost = (struct check_cost){.seconds = (double)burn_for_ns(context) / (double)NS_PER_S +
					       SETUP_S + bytes / WRITE_BYTES_PER_S,
		.disk_bytes = bytes,
		.memory_bytes = CORE_BYTES * probe_cores()};
}

/* --- before it begins ---------------------------------------------------------------------------- */

/* A load that cannot run: whoever asks for its figure has the reason; lacking: what it needs is no part of this node. */
static void burn_lacks(struct burn *burn, enum burn_load load, bool lacking, const char *why)
{
	void (*const say)(struct check_sink *, const char *, const char *, const char *, ...) =
		lacking ? sink_lack : sink_missing;
	say(burn->sink, burn_figures[load], "", "%s", why);
	say(burn->sink, "burn.drift", burn_load_name(load), "%s", why);
	sink_note(burn->sink, "the %s load did not run: %s", burn_load_name(load), why);
	burn->asked &= ~BURN_BIT(load);
}

static int burn_open_work(struct burn *burn, struct error *err)
{
	int code = fixed_work_open(&burn->work, burn->context->stop, err);
	if (!code && burn->asked & BURN_BIT(BURN_DECODE)) {
		sink_activity(burn->sink, "making pictures");
		code = fixed_work_add_pictures(burn->work, err);
	}
	if (!code && burn->asked & BURN_BIT(BURN_GEMM)) {
		code = fixed_work_add_products(burn->work, err);
		if (code == -ENOTSUP) {
			burn_lacks(burn, BURN_GEMM, true, err->text);
			code = 0;
		}
	}
	return code;
}

static size_t burn_devices(const struct burn *burn)
{
	return burn->found ? burn->found->node.count : 0;
}

static const char *burn_device_place(size_t device, char out[CORE_PLACE_BYTES])
{
	(void)snprintf(out, CORE_PLACE_BYTES, "device %zu", device);
	return out;
}

/* Where there are any, products run on them, too. */
static int burn_find_devices(struct burn *burn, struct error *err)
{
	sink_activity(burn->sink, "looking for devices");
	burn->found = cuda_find();
	if (!burn->found->ready || !(burn->asked & BURN_BIT(BURN_GEMM)))
		burn->found = NULL;
	if (burn->found && burn->found->plugin->test_double)
		sink_note(burn->sink, "devices are simulated on the CPU by a test double");
	burn->device_rates =
		calloc((burn_devices(burn) + 1) * BURN_WINDOWS_MAX, sizeof *burn->device_rates);
	return burn->device_rates ? 0 : error_set(err, -ENOMEM, "out of memory");
}

struct burn_first {
	struct burn *burn;
	atomic_int code;
};

/* Every item once on every core: what most agree on is what the burn's results are held against. */
static void burn_vote(void *context, unsigned index)
{
	struct burn_first *const first = context;
	const struct burn *const burn = first->burn;
	struct fixed_hand *hand = NULL;
	struct error err;
	void *result;
	(void)core_pin(burn->cores.cores[index]);
	int code = fixed_hand_open(&hand, burn->work, &err);
	for (size_t i = 0; !code && i < fixed_work_count(burn->work) && !burn_stopped(burn); i++) {
		code = fixed_hand_do(hand, i, &result, &err);
		if (!code)
			votes_add(burn->votes, i, index, result,
				fixed_work_item(burn->work, i)->bytes);
	}
	fixed_hand_close(hand);
	if (code)
		atomic_store(&first->code, code);
}

static int burn_settle_right(struct burn *burn, struct error *err)
{
	const size_t items = fixed_work_count(burn->work);
	struct burn_first first = {.burn = burn};
	burn->right = calloc(items + 1, sizeof *burn->right);
	int code = burn->right ? votes_open(&burn->votes, items, burn->cores.count, err)
			       : error_set(err, -ENOMEM, "out of memory");
	if (!code && items > 0)
		code = probe_crew((unsigned)burn->cores.count, false, burn_vote, &first, err);
	if (!code && atomic_load(&first.code) && atomic_load(&first.code) != -EINTR)
		code = error_set(
			err, atomic_load(&first.code), "the fixed work cannot be done here");
	for (size_t i = 0; !code && i < items; i++) {
		const int right = votes_right(burn->votes, i, fixed_work_golden(burn->work, i));
		burn->right[i] = right < 0 ? NULL : votes_copy(burn->votes, i, right);
		if (right < 0 && !burn_stopped(burn))
			sink_event(burn->sink, "burn.wrong", "", burn_now_s(burn),
				"%s: the cores disagree from the start, and nothing tells which of them are "
				"right; it is not compared (a check of kind repeatable says more)",
				fixed_work_item(burn->work, i)->name);
	}
	return code;
}

static int burn_open_series(struct burn *burn, struct error *err)
{
	const size_t cores = burn->cores.count;
	bool all = true;
	for (int load = 0; load < BURN_LOADS; load++) {
		burn->ended_s[load] = NAN;
		burn->rates[load] = calloc(BURN_WINDOWS_MAX, sizeof *burn->rates[load]);
		all = all && burn->rates[load];
	}
	for (int load = 0; load < BURN_READ; load++) {
		burn->core_rates[load] = calloc(cores * BURN_WINDOWS_MAX, sizeof(float));
		burn->core_before[load] = calloc(cores, sizeof(uint64_t));
		all = all && burn->core_rates[load] && burn->core_before[load];
	}
	burn->clocks = calloc(cores * BURN_WINDOWS_MAX, sizeof(float));
	return all && burn->clocks ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int burn_prepare(struct burn *burn, struct error *err)
{
	const uint64_t bytes = burn_file_bytes(burn->context);
	int code = core_list_open(&burn->cores, err);
	if (!code)
		code = burn_open_series(burn, err);
	if (!code)
		code = burn_open_work(burn, err);
	if (!code)
		code = burn_settle_right(burn, err);
	if (!code)
		code = burn_find_devices(burn, err);
	if (!code)
		code = sensors_open(&burn->node, burn->context->root, err);
	if (code)
		return code;
	const struct burn_loads_plan plan = {.loads = burn->asked,
		.cores = &burn->cores,
		.work = burn->work,
		.right = burn->right,
		.scratch = burn->context->scratch,
		.read_bytes = bytes / 4 * 3,
		.write_bytes = bytes / 4,
		.stop = burn->context->stop,
		.corruptions = &burn->corruptions,
		.found = burn->found};
	sink_activity(burn->sink, "writing the file that is read");
	code = burn_loads_open(&burn->loads, &plan, err);
	for (int load = 0; !code && load < BURN_LOADS; load++) {
		char why[ERROR_TEXT_BYTES];
		burn_loads_why(burn->loads, (enum burn_load)load, why, sizeof why);
		if (why[0])
			burn_lacks(burn, (enum burn_load)load, false, why);
	}
	if (!code && burn->asked == 0)
		code = error_set(err, -ENOTSUP, "none of the loads can run here");
	return code;
}

/* --- windows -------------------------------------------------------------------------------------- */

static void burn_look_at_cores(struct burn *burn, size_t window, double seconds)
{
	double sum = 0;
	for (size_t core = 0; core < burn->cores.count; core++) {
		const double clock = burn_loads_clock(burn->loads, core);
		burn->clocks[core * BURN_WINDOWS_MAX + window] = (float)clock;
		sum += clock;
		for (int load = 0; load < BURN_READ; load++) {
			const uint64_t done =
				burn_loads_done_on(burn->loads, (enum burn_load)load, core);
			burn->core_rates[load][core * BURN_WINDOWS_MAX + window] =
				(float)((double)(done - burn->core_before[load][core]) / seconds);
			burn->core_before[load][core] = done;
		}
	}
	if (sum > 0)
		sink_point(burn->sink, "clock", "mean of the cores", FIGURE_MHZ,
			burn_at_s(burn, (double)(window + 1) * burn_window_s(burn)),
			sum / (double)burn->cores.count);
}

static void burn_look_at_devices(struct burn *burn, size_t window, double at_s, double seconds)
{
	for (size_t device = 0; device < burn_devices(burn); device++) {
		const uint64_t done = burn_loads_done_on(burn->loads, BURN_DEVICE, device);
		const double rate = (double)(done - burn->device_before[device]) / seconds;
		char place[CORE_PLACE_BYTES];
		burn->device_before[device] = done;
		burn->device_rates[device * BURN_WINDOWS_MAX + window] = rate;
		sink_point(burn->sink, burn_load_name(BURN_GEMM), burn_device_place(device, place),
			FIGURE_FLOPS, burn_at_s(burn, at_s), rate);
	}
}

/* seconds: since the last look. */
static void burn_look_at_loads(struct burn *burn, size_t window, double at_s, double seconds)
{
	for (int load = 0; load < BURN_LOADS; load++) {
		const uint64_t done = burn_loads_done(burn->loads, (enum burn_load)load);
		char why[ERROR_TEXT_BYTES];
		if (!(burn->asked & BURN_BIT(load)))
			continue;
		burn->rates[load][window] = (double)(done - burn->before[load]) / seconds;
		burn->before[load] = done;
		sink_point(burn->sink, burn_load_name((enum burn_load)load), "", burn_units[load],
			burn_at_s(burn, at_s), burn->rates[load][window]);
		burn_loads_why(burn->loads, (enum burn_load)load, why, sizeof why);
		if (!why[0] || !isnan(burn->ended_s[load]))
			continue;
		burn->ended_s[load] = at_s;
		sink_event(burn->sink, burn_figures[load], "", burn_at_s(burn, at_s),
			"the %s load ended: %s", burn_load_name((enum burn_load)load), why);
	}
}

/* The sensors of a kind, or the highest of them where there are more than a person looks at. */
static void burn_tell_sensors(struct burn *burn, enum sensor_kind kind, double at_s)
{
	static const struct {
		const char *series;
		enum figure_unit unit;
	} of[SENSOR_KINDS] = {
		[SENSOR_TEMPERATURE] = {"temperature", FIGURE_CELSIUS},
		[SENSOR_POWER] = {"power", FIGURE_WATTS},
		[SENSOR_THROTTLE] = {"throttled", FIGURE_SHARE},
		[SENSOR_PRESSURE] = {"pressure", FIGURE_SHARE},
		[SENSOR_CLOCK] = {"clock", FIGURE_MHZ},
	};
	const struct sensor *sensors;
	const size_t count = sensors_list(burn->node, &sensors);
	size_t of_kind = 0;
	double most = NAN;
	char place[SENSOR_PLACE_BYTES];
	for (size_t i = 0; i < count; i++)
		of_kind += sensors[i].kind == kind;
	for (size_t i = 0; i < count; i++) {
		if (sensors[i].kind != kind || !isfinite(sensors[i].value) ||
			(kind == SENSOR_THROTTLE && sensors[i].throttled == 0))
			continue;
		most = fmax(most, sensors[i].value);
		if (of_kind <= SERIES_MAX)
			sink_point(burn->sink, of[kind].series, sensors[i].place, of[kind].unit,
				burn_at_s(burn, at_s), sensors[i].value);
	}
	(void)snprintf(place, sizeof place, "highest of %zu", of_kind);
	if (of_kind > SERIES_MAX && !isnan(most))
		sink_point(burn->sink, of[kind].series, place, of[kind].unit, burn_at_s(burn, at_s),
			most);
}

static void burn_look_at_sensors(struct burn *burn, double at_s)
{
	const double every_s = (double)burn->for_ns / (double)NS_PER_S / POINTS_SHARE;
	const bool devices = at_s - burn->devices_s >= 1;
	sensors_look(burn->node, at_s, devices);
	burn->devices_s = devices ? at_s : burn->devices_s;
	if (at_s - burn->looked_s < every_s)
		return;
	burn->looked_s = at_s;
	for (int kind = 0; kind < SENSOR_KINDS; kind++)
		burn_tell_sensors(burn, (enum sensor_kind)kind, at_s);
}

static void burn_tell_error(void *context, const struct error_counter *counter, uint64_t growth)
{
	const struct burn *const burn = context;
	sink_event(burn->sink,
		counter->corrected ? "burn.errors.corrected" : "burn.errors.uncorrected",
		error_class_name(counter->class), burn_now_s(burn),
		"%s%s%s: %" PRIu64 " since the burn began%s%s", counter->name,
		counter->place[0] ? " of " : "", counter->place, growth,
		counter->evidence[0] ? ": " : "", counter->evidence);
}

static int burn_look_at_errors(struct burn *burn, double at_s, bool last, struct error *err)
{
	static const double EVERY_S = 5;
	if (!last && at_s - burn->errors_s < fmin(EVERY_S, 2 * burn_window_s(burn)))
		return 0;
	burn->errors_s = at_s;
	return sensors_errors(burn->node, last, burn_tell_error, burn, err);
}

/* Sleeps until then; false: stopped. */
static bool burn_wait(const struct burn *burn, uint64_t until_ns)
{
	enum { PIECE_MS = 20 };
	while (!burn_stopped(burn)) {
		const uint64_t now = clock_now_ns();
		if (now >= until_ns)
			return true;
		clock_sleep_until_ns(until_ns - now > PIECE_MS * NS_PER_MS
					     ? now + PIECE_MS * NS_PER_MS
					     : until_ns);
	}
	return false;
}

static uint64_t burn_end_ns(const struct burn *burn)
{
	const uint64_t end = burn->go_ns + burn->for_ns;
	const uint64_t deadline = burn->context->deadline_ns;
	return deadline && deadline < end ? deadline : end;
}

/* Windows have equal lengths by plan; where this thread was late, what was done is divided by the time that it took. */
static int burn_windows(struct burn *burn, struct error *err)
{
	const uint64_t end_ns = burn_end_ns(burn);
	uint64_t last_ns = burn->go_ns;
	int code = 0;
	sink_activity(burn->sink, "burning");
	while (!code && burn->windows < BURN_WINDOWS_MAX) {
		const uint64_t edge = burn->go_ns + (burn->windows + 1) * burn->window_ns;
		if (edge > end_ns || !burn_wait(burn, edge))
			break;
		const uint64_t now = clock_now_ns();
		const double at_s = (double)(now - burn->go_ns) / (double)NS_PER_S;
		const double seconds = (double)(now - last_ns) / (double)NS_PER_S;
		burn_look_at_loads(burn, burn->windows, at_s, seconds);
		burn_look_at_cores(burn, burn->windows, seconds);
		burn_look_at_devices(burn, burn->windows, at_s, seconds);
		burn_look_at_sensors(burn, at_s);
		code = burn_look_at_errors(burn, at_s, false, err);
		last_ns = now;
		burn->windows++;
	}
	return code;
}

/* --- figures: throughput and drift ----------------------------------------------------------------- */

static size_t burn_warm(const struct burn *burn)
{
	const size_t share = burn->windows / WARM_SHARE;
	const size_t warm = share > WARM_LEAST ? share : WARM_LEAST;
	return warm < burn->windows ? warm : burn->windows;
}

/* Of a load, or of its part on a device: rates of all windows, the figure's place, and what its drift's place is. */
static void burn_hand_throughput(
	struct burn *burn, const char *figure, const char *place, const double *rates)
{
	const size_t first = burn_warm(burn);
	const size_t count = burn->windows - first;
	const size_t parts = count < PARTS ? count : PARTS;
	for (size_t i = 0; i < parts; i++) {
		const size_t from = i * count / parts;
		const size_t to = (i + 1) * count / parts;
		sink_value(burn->sink, figure, place,
			statistics_median(rates + first + from, to - from));
	}
}

static void burn_hand_drift(struct burn *burn, const char *place, const double *rates)
{
	const size_t first = burn_warm(burn);
	char text[DRIFT_TEXT_BYTES];
	struct drift drift;
	drift_find(rates + first, burn->windows - first, burn_window_s(burn),
		burn_at_s(burn, (double)first * burn_window_s(burn)), BURN_LEAST_DRIFT, &drift);
	if (drift.part_count == 0) {
		sink_missing(burn->sink, "burn.drift", place,
			"the burn has only %zu windows: too few to tell a change from noise",
			burn->windows - first);
		return;
	}
	sink_number(burn->sink, "burn.drift", place, drift.lost);
	sink_number(burn->sink, "burn.dip", place, drift.dip);
	if (drift.part_count > 1)
		sink_event(burn->sink, drift.lost > 0 ? "burn.drift" : "burn.dip", place,
			drift.from_s, "%s", drift_text(&drift, text));
}

static void burn_hand_devices(struct burn *burn)
{
	char why[ERROR_TEXT_BYTES];
	burn_loads_why(burn->loads, BURN_DEVICE, why, sizeof why);
	for (size_t device = 0; device < burn_devices(burn); device++) {
		const double *const rates = burn->device_rates + device * BURN_WINDOWS_MAX;
		char place[CORE_PLACE_BYTES];
		uint64_t checked;
		(void)burn_device_place(device, place);
		const uint64_t wrong =
			burn_loads_wrong_on_device(burn->loads, (unsigned)device, &checked);
		if (checked > 0)
			sink_number(burn->sink, "burn.wrong", place, (double)wrong);
		if (why[0] || burn->windows <= burn_warm(burn)) {
			sink_missing(burn->sink, burn_figures[BURN_GEMM], place, "%s",
				why[0] ? why : "the burn ended too early");
			sink_missing(burn->sink, "burn.drift", place, "%s",
				why[0] ? why : "the burn ended too early");
			continue;
		}
		burn_hand_throughput(burn, burn_figures[BURN_GEMM], place, rates);
		burn_hand_drift(burn, place, rates);
	}
}

static void burn_hand_core(struct burn *burn, size_t core, double *relative, double *scratch)
{
	const size_t first = burn_warm(burn);
	char place[CORE_PLACE_BYTES];
	char text[DRIFT_TEXT_BYTES];
	double worst = 0;
	bool told = false;
	(void)core_place(burn->cores.cores[core], place);
	for (int load = 0; load < BURN_READ; load++) {
		struct drift drift;
		if (!(burn->asked & BURN_BIT(load)) || !isnan(burn->ended_s[load]))
			continue;
		drift_against_others(burn->core_rates[load], BURN_WINDOWS_MAX, burn->cores.count,
			core, burn->windows, relative, scratch);
		drift_find(relative + first, burn->windows - first, burn_window_s(burn),
			burn_at_s(burn, (double)first * burn_window_s(burn)), BURN_LEAST_CORE_DRIFT,
			&drift);
		told = told || drift.part_count > 0;
		worst = fmax(worst, drift.lost);
		if (drift.part_count > 1)
			sink_event(burn->sink, "burn.drift.core", place, drift.from_s,
				"%s, against the other cores: %s",
				burn_load_name((enum burn_load)load), drift_text(&drift, text));
	}
	if (told)
		sink_number(burn->sink, "burn.drift.core", place, worst);
}

static int burn_hand_cores(struct burn *burn, struct error *err)
{
	double *const relative = calloc(BURN_WINDOWS_MAX, sizeof *relative);
	double *const scratch = calloc(burn->cores.count, sizeof *scratch);
	const int code = relative && scratch ? 0 : error_set(err, -ENOMEM, "out of memory");
	if (burn->cores.count < 3)
		sink_lack(burn->sink, "burn.drift.core", "",
			"%zu cores are too few to compare one with the others", burn->cores.count);
	for (size_t core = 0; !code && burn->cores.count >= 3 && core < burn->cores.count; core++)
		burn_hand_core(burn, core, relative, scratch);
	for (size_t core = 0; !code && core < burn->cores.count; core++) {
		const size_t first = burn_warm(burn);
		char place[CORE_PLACE_BYTES];
		size_t known = 0;
		for (size_t w = first; w < burn->windows; w++)
			if (burn->clocks[core * BURN_WINDOWS_MAX + w] > 0)
				relative[known++] =
					(double)burn->clocks[core * BURN_WINDOWS_MAX + w];
		if (known > 0)
			sink_number(burn->sink, "burn.clock",
				core_place(burn->cores.cores[core], place),
				statistics_median(relative, known));
	}
	free(relative);
	free(scratch);
	return code;
}

/* --- figures: what the node said of itself ----------------------------------------------------------- */

static void burn_hand_throttle(struct burn *burn, const struct sensor *sensor)
{
	if (sensor->looks == 0)
		return;
	sink_number(burn->sink, "burn.throttled", sensor->place,
		(double)sensor->throttled / (double)sensor->looks);
	if (sensor->throttled > 0)
		sink_event(burn->sink, "burn.throttled", sensor->place,
			burn_at_s(burn, sensor->first_s),
			"from %s s on, for the last time at %s s: throttled in %" PRIu64
			" of %" PRIu64 " windows%s%s",
			UNITS_PLAIN(burn_at_s(burn, sensor->first_s), 4),
			UNITS_PLAIN(burn_at_s(burn, sensor->last_s), 4), sensor->throttled,
			sensor->looks, sensor->reason[0] ? ": " : "", sensor->reason);
}

static void burn_hand_sensors(struct burn *burn)
{
	const struct sensor *sensors;
	const size_t count = sensors_list(burn->node, &sensors);
	size_t throttles = 0;
	size_t temperatures = 0;
	for (size_t i = 0; i < count; i++) {
		if (sensors[i].kind == SENSOR_THROTTLE) {
			throttles += sensors[i].looks > 0;
			burn_hand_throttle(burn, &sensors[i]);
		}
		if (sensors[i].kind == SENSOR_TEMPERATURE && isfinite(sensors[i].most)) {
			temperatures++;
			sink_number(
				burn->sink, "burn.temperature", sensors[i].place, sensors[i].most);
		}
	}
	if (throttles == 0)
		sink_lack(burn->sink, "burn.throttled", "",
			"this node counts no throttling: no thermal_throttle, no CPU quota's counters, no NVML");
	if (temperatures == 0)
		sink_lack(burn->sink, "burn.temperature", "",
			"no sensor is readable: no hwmon, no thermal zone, no NVML");
}

static void burn_hand_errors(struct burn *burn, bool corrected)
{
	const char *const figure = corrected ? "burn.errors.corrected" : "burn.errors.uncorrected";
	size_t counted = 0;
	const char *why = "";
	for (int class = 0; class < ERROR_CLASSES; class ++) {
		uint64_t growth;
		if (!sensors_errors_of(
			    burn->node, (enum error_class) class, corrected, &growth, &why))
			continue;
		counted++;
		sink_number(burn->sink, figure, error_class_name((enum error_class) class),
			(double)growth);
	}
	if (counted == 0)
		sink_lack(burn->sink, figure, "", "this node counts no errors: %s", why);
}

/* One note for all classes that are not counted. */
static void burn_note_uncounted(struct burn *burn)
{
	char text[512] = "";
	size_t used = 0;
	for (int class = 0; class < ERROR_CLASSES; class ++) {
		uint64_t growth;
		const char *why;
		if (sensors_errors_of(burn->node, (enum error_class) class, true, &growth, &why))
			continue;
		const int n = snprintf(text + used, sizeof text - used, "%s%s (%s)",
			used ? ", " : "", error_class_name((enum error_class) class), why);
		used = n < 0 || used + (size_t)n >= sizeof text ? sizeof text - 1
								: used + (size_t)n;
	}
	if (used)
		sink_note(burn->sink, "errors that are not counted here: %s", text);
}

/* --- figures: what was wrong ------------------------------------------------------------------------- */

static void burn_hand_findings(struct burn *burn)
{
	struct burn_finding findings[BURN_FINDINGS_MAX];
	const size_t count = burn_loads_findings(burn->loads, findings);
	for (size_t i = 0; i < count; i++) {
		char place[CORE_PLACE_BYTES];
		const char *at = burn_load_name(findings[i].load);
		if (findings[i].load <= BURN_GEMM)
			at = core_place(findings[i].core, place);
		else if (findings[i].load == BURN_DEVICE)
			at = burn_device_place(findings[i].core, place);
		sink_event(burn->sink, "burn.wrong", at,
			(double)(findings[i].at_ns - burn->begin_ns) / (double)NS_PER_S, "%s",
			findings[i].text);
	}
}

static void burn_hand_wrong(struct burn *burn)
{
	uint64_t checked = 0;
	char results[UNITS_BYTES];
	char blocks[UNITS_BYTES];
	uint64_t read_back = 0;
	for (int load = BURN_DECODE; load <= BURN_GEMM; load++)
		checked += burn_loads_checked(burn->loads, (enum burn_load)load);
	for (size_t core = 0; checked > 0 && core < burn->cores.count; core++) {
		char place[CORE_PLACE_BYTES];
		sink_number(burn->sink, "burn.wrong", core_place(burn->cores.cores[core], place),
			(double)burn_loads_wrong_on(burn->loads, core));
	}
	for (int load = BURN_READ; load <= BURN_WRITE; load++) {
		const uint64_t of = burn_loads_checked(burn->loads, (enum burn_load)load);
		read_back += of;
		if (of > 0)
			sink_number(burn->sink, "burn.wrong", burn_load_name((enum burn_load)load),
				(double)burn_loads_wrong_blocks(burn->loads, (enum burn_load)load));
		else if (burn->asked & BURN_BIT(load))
			sink_missing(burn->sink, "burn.wrong", burn_load_name((enum burn_load)load),
				"no block was read back in the time");
	}
	burn_hand_findings(burn);
	sink_note(burn->sink, "compared: %s results on %zu cores, %s blocks of 4 KiB",
		units_format_count((double)checked, results), burn->cores.count,
		units_format_count((double)read_back, blocks));
}

static void burn_hand_load(struct burn *burn, enum burn_load load)
{
	char why[ERROR_TEXT_BYTES];
	const double planned_s = (double)burn->for_ns / (double)NS_PER_S;
	const double ran_s = (double)burn->windows * burn_window_s(burn);
	const bool ended = !isnan(burn->ended_s[load]);
	sink_number(burn->sink, "burn.accounted", burn_load_name(load),
		fmin((ended ? burn->ended_s[load] : ran_s + burn_window_s(burn)) / planned_s, 1));
	burn_loads_why(burn->loads, load, why, sizeof why);
	/* What ended early has no throughput of the whole time. */
	if (why[0]) {
		sink_missing(burn->sink, burn_figures[load], "", "%s", why);
		sink_missing(burn->sink, "burn.drift", burn_load_name(load), "%s", why);
		sink_missing(burn->sink, "burn.dip", burn_load_name(load), "%s", why);
		return;
	}
	if (burn->windows <= burn_warm(burn)) {
		sink_missing(burn->sink, burn_figures[load], "", "the burn ended too early");
		return;
	}
	burn_hand_throughput(burn, burn_figures[load], "", burn->rates[load]);
	burn_hand_drift(burn, burn_load_name(load), burn->rates[load]);
}

static int burn_hand_all(struct burn *burn, struct error *err)
{
	for (int load = 0; load < BURN_LOADS; load++)
		if (burn->asked & BURN_BIT(load))
			burn_hand_load(burn, (enum burn_load)load);
	burn_hand_devices(burn);
	burn_hand_wrong(burn);
	burn_hand_sensors(burn);
	burn_hand_errors(burn, true);
	burn_hand_errors(burn, false);
	burn_note_uncounted(burn);
	return burn_hand_cores(burn, err);
}

/* --- the kind ------------------------------------------------------------------------------------------ */

static int burn_go(struct burn *burn, struct error *err)
{
	sensors_look(burn->node, 0, false); /* what is counted is counted from now on */
	burn->go_ns = clock_now_ns();
	int code = burn_loads_go(burn->loads, err);
	if (!code)
		code = burn_windows(burn, err);
	sink_activity(burn->sink, "ending the loads");
	const bool all = burn_loads_stop(burn->loads);
	if (!code)
		code = burn_look_at_errors(
			burn, (double)(clock_now_ns() - burn->go_ns) / (double)NS_PER_S, true, err);
	if (!code)
		code = burn_hand_all(burn, err);
	if (!all) {
		burn->loads =
			NULL; /* threads still work with it: it lives as long as the process */
		burn->work = NULL;
		burn->votes = NULL;
		burn->right = NULL;
		burn->cores = (struct core_list){0};
		if (burn_stopped(burn))
			return error_set(err, -EINTR, "interrupted");
		return error_set(err, -ETIMEDOUT,
			"the storage under '%s' does not answer: a read or a write has not come back",
			burn->context->folder);
	}
	return code;
}

static void burn_release(struct burn *burn)
{
	burn_loads_close(burn->loads);
	sensors_close(burn->node);
	votes_close(burn->votes);
	fixed_work_close(burn->work);
	core_list_close(&burn->cores);
	for (int load = 0; load < BURN_LOADS; load++)
		free(burn->rates[load]);
	for (int load = 0; load < BURN_READ; load++) {
		free(burn->core_rates[load]);
		free(burn->core_before[load]);
	}
	free(burn->clocks);
	free(burn->device_rates);
	free(burn->right);
	free(burn);
}

/* Whether the budget ended the burn well before its time: what did not show until then may show later. */
static bool burn_cut_short(const struct burn *burn)
{
	const uint64_t lasted = burn_end_ns(burn) - burn->go_ns;
	return lasted < burn->for_ns - burn->for_ns / 20;
}

static int burn_refuse_short(const struct burn *burn, struct error *err)
{
	char planned[UNITS_BYTES];
	char lasted[UNITS_BYTES];
	return error_set(err, -ETIMEDOUT,
		"the burn lasted %s of %s, because its budget was over: give it a larger one",
		units_format_duration((double)(burn_end_ns(burn) - burn->go_ns), lasted),
		units_format_duration((double)burn->for_ns, planned));
}

static int burn_run(const struct check_context *context, struct error *err)
{
	struct burn *const burn = calloc(1, sizeof *burn);
	if (!burn)
		return error_set(err, -ENOMEM, "out of memory");
	burn->context = context;
	burn->sink = context->sink;
	burn->begin_ns = clock_now_ns();
	burn->for_ns = burn_for_ns(context);
	burn->window_ns = burn_window_of(burn->for_ns);
	int code = burn_read_loads(context->check, &burn->asked, err);
	if (!code)
		code = corruptions_read(&burn->corruptions, err);
	if (!code && burn->corruptions.count > 0)
		sink_note(context->sink,
			"corruption was planted by " CORRUPTION_VARIABLE
			"=%s: this result says nothing about the node",
			getenv(CORRUPTION_VARIABLE));
	if (!code)
		code = burn_prepare(burn, err);
	if (!code && !burn_stopped(burn))
		code = burn_go(burn, err);
	if (burn_stopped(burn))
		code = error_set(err, -EINTR, "stopped");
	else if (!code && burn_cut_short(burn))
		code = burn_refuse_short(burn, err);
	burn_release(burn);
	return code;
}

const struct check_ops check_burn = {
	.kind = ACCEPT_BURN,
	.validate = burn_validate,
	.estimate = burn_estimate,
	.run = burn_run,
};
