/* Samples over a run in bounded memory, and what they say of a measurement.  A call that hangs costs the memory of its watch, never
 * the run. */
#include "harness/measure/nvml_watch.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/measure/nvml_calls.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- samples over time ------------------------------------------------------------------------ */

static const struct nvml_group nvml_quick = {
	.list = {NVML_SM_CLOCK, NVML_MEMORY_CLOCK, NVML_POWER, NVML_TEMPERATURE, NVML_THROTTLES,
		NVML_ECC_CORRECTED, NVML_ECC_UNCORRECTED, NVML_MEMORY_USED, NVML_KERNEL_RESIDENT},
	.count = 9,
};
const struct nvml_group nvml_slow = {
	.list = {NVML_PCIE_TO_DEVICE, NVML_PCIE_FROM_DEVICE},
	.count = 2,
};

int nvml_series_open(struct nvml_series *series, const struct nvml_group *group)
{
	*series = (struct nvml_series){
		.group = group, .samples = calloc(NVML_SAMPLES_MAX, sizeof *series->samples)};
	for (size_t i = 0; i < group->count; i++)
		series->codes[i] = NVML_NOT_ASKED;
	return series->samples ? 0 : -ENOMEM;
}

void nvml_series_close(struct nvml_series *series)
{
	free(series->samples);
	series->samples = NULL;
}

bool nvml_series_add(struct nvml_series *series, const struct nvml_sample *sample, const int *codes)
{
	const bool full = series->count == NVML_SAMPLES_MAX;
	if (full) {
		for (size_t i = 0; i < NVML_SAMPLES_MAX / 2; i++)
			series->samples[i] = series->samples[2 * i];
		series->count = NVML_SAMPLES_MAX / 2;
	}
	series->samples[series->count++] = *sample;
	for (size_t i = 0; i < series->group->count; i++)
		if (codes[i] != NVML_OK || series->codes[i] == NVML_NOT_ASKED)
			series->codes[i] = codes[i];
	return full;
}

struct nvml_span nvml_series_span(
	const struct nvml_series *series, uint64_t from_ns, uint64_t to_ns)
{
	size_t first = 0;
	size_t end = series->count;
	while (first < end && series->samples[first].t_ns < from_ns)
		first++;
	while (end > first && series->samples[end - 1].t_ns > to_ns)
		end--;
	return (struct nvml_span){.first = series->samples + first, .count = end - first};
}

/* Where a quantity is in a group; the group's count: nowhere. */
static size_t nvml_group_place(const struct nvml_group *group, enum nvml_quantity quantity)
{
	size_t i = 0;
	while (i < group->count && group->list[i] != quantity)
		i++;
	return i;
}

struct device_range nvml_span_range(const struct nvml_span *span, size_t place)
{
	struct device_range range = {NAN, NAN, NAN};
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < span->count; i++) {
		const double value = span->first[i].values[place];
		if (isnan(value))
			continue;
		range.low = fmin(range.low, value); /* of a NAN and a number: the number */
		range.high = fmax(range.high, value);
		sum += value;
		known++;
	}
	range.mean = known > 0 ? sum / (double)known : NAN;
	return range;
}

double nvml_span_share(const struct nvml_span *span, size_t place, unsigned bit)
{
	size_t known = 0;
	size_t set = 0;
	for (size_t i = 0; i < span->count; i++) {
		const double value = span->first[i].values[place];
		if (isnan(value))
			continue;
		known++;
		set += (uint64_t)value >> bit & 1;
	}
	return known > 0 ? (double)set / (double)known : NAN;
}

double nvml_series_growth(
	const struct nvml_series *series, size_t place, uint64_t from_ns, uint64_t to_ns)
{
	double before = NAN;
	double after = NAN;
	for (size_t i = 0; i < series->count && series->samples[i].t_ns <= to_ns; i++) {
		const double value = series->samples[i].values[place];
		if (isnan(value))
			continue;
		if (isnan(before) || series->samples[i].t_ns <= from_ns)
			before = value;
		after = value;
	}
	return after >= before ? after - before : NAN;
}

/* --- the threads ------------------------------------------------------------------------------ */

enum nvml_pace { NVML_PACE_QUICK, NVML_PACE_SLOW, NVML_PACES };

/* One of the two threads: the quick one has NVML opened, the slow one waits for that. */
struct nvml_sampler {
	struct nvml_watch *watch;
	const struct nvml_group *group;
	uint64_t period_ns; /* grows where samples take much of it, or are thinned out */
	uint64_t cpu_ns;    /* what it has cost; under the lock */
	bool running;       /* under the lock */
	struct nvml_series series[DEVICES_MAX]; /* of each watched device; under the lock */
};

enum nvml_phase { NVML_PHASE_OPENING, NVML_PHASE_READY, NVML_PHASE_ABSENT };

struct nvml_watch {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Who still holds it: the starter and the threads; the last one frees it. */
	unsigned holders;
	enum nvml_phase phase;
	bool stopping;
	bool given_up;                  /* the starter waited no longer */
	char why[ERROR_TEXT_BYTES / 2]; /* ABSENT */
	char buses[DEVICES_MAX][32];
	size_t count;
	struct nvml_handle *devices[DEVICES_MAX]; /* NULL: not found, codes says why */
	int codes[DEVICES_MAX];
	double clock_max[DEVICES_MAX]; /* MHz; NAN */
	struct nvml_sampler samplers[NVML_PACES];
	uint64_t started_ns, stopped_ns;
};

/* --- under the lock --------------------------------------------------------------------------- */

static void lock_watch(struct nvml_watch *w)
{
	(void)pthread_mutex_lock(&w->lock);
}

static void unlock_watch(struct nvml_watch *w)
{
	(void)pthread_mutex_unlock(&w->lock);
}

static void release_watch(struct nvml_watch *w)
{
	lock_watch(w);
	const bool last = --w->holders == 0;
	unlock_watch(w);
	if (!last)
		return;
	for (size_t pace = 0; pace < NVML_PACES; pace++)
		for (size_t i = 0; i < w->count; i++)
			nvml_series_close(&w->samplers[pace].series[i]);
	(void)pthread_cond_destroy(&w->changed);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

static bool is_stopping(struct nvml_watch *w)
{
	lock_watch(w);
	const bool stopping = w->stopping;
	unlock_watch(w);
	return stopping;
}

/* --- sampling --------------------------------------------------------------------------------- */

/* Of the time, in calls; above it a sampler slows down. */
static const double SHARE_IN_CALLS_MOST = 0.1;
static const uint64_t PERIOD_MOST_NS = 60 * NS_PER_S;

static void ask_device(struct nvml_sampler *s, size_t device)
{
	struct nvml_watch *w = s->watch;
	const struct nvml_group *group = s->group;
	struct nvml_sample sample = {.t_ns = clock_now_ns()};
	int codes[NVML_GROUP_MAX] = {0};
	for (size_t i = 0; i < group->count; i++) {
		/* Only this thread writes codes. */
		codes[i] = s->series[device].codes[i];
		sample.values[i] = NAN;
		if (!nvml_code_is_final(codes[i]))
			codes[i] = nvml_ask(w->devices[device], group->list[i], &sample.values[i]);
	}
	lock_watch(w);
	if (nvml_series_add(&s->series[device], &sample, codes) && device == 0)
		s->period_ns = s->period_ns < PERIOD_MOST_NS ? 2 * s->period_ns : s->period_ns;
	s->cpu_ns = clock_thread_cpu_ns();
	unlock_watch(w);
}

/* Samples on a grid; one that was missed is left out. */
static void sample_all(struct nvml_sampler *s)
{
	struct nvml_watch *w = s->watch;
	uint64_t due_ns = clock_now_ns();
	while (!is_stopping(w)) {
		const uint64_t began_ns = clock_now_ns();
		for (size_t i = 0; i < w->count && !is_stopping(w); i++)
			if (w->devices[i])
				ask_device(s, i);
		const uint64_t now_ns = clock_now_ns();
		lock_watch(w);
		if ((double)(now_ns - began_ns) > SHARE_IN_CALLS_MOST * (double)s->period_ns &&
			s->period_ns < PERIOD_MOST_NS)
			s->period_ns *= 2;
		due_ns += (now_ns - due_ns) / s->period_ns * s->period_ns + s->period_ns;
		while (!w->stopping && nvml_wait_until(&w->changed, &w->lock, due_ns))
			continue;
		unlock_watch(w);
	}
}

/* --- opening, on the quick thread ------------------------------------------------------------- */

static void enter_nvml_phase(struct nvml_watch *w, enum nvml_phase phase, const char *why)
{
	lock_watch(w);
	w->phase = phase;
	(void)snprintf(w->why, sizeof w->why, "%s", why);
	(void)pthread_cond_broadcast(&w->changed);
	unlock_watch(w);
}

static bool open_nvml(struct nvml_watch *w)
{
	char why[sizeof w->why];
	if (!nvml_begin(why, sizeof why)) {
		enter_nvml_phase(w, NVML_PHASE_ABSENT, why);
		return false;
	}
	for (size_t i = 0; i < w->count; i++) {
		w->codes[i] = nvml_find_device(w->buses[i], &w->devices[i]);
		w->clock_max[i] = NAN;
		if (w->codes[i])
			w->devices[i] = NULL;
		else
			(void)nvml_ask(w->devices[i], NVML_SM_CLOCK_MAX, &w->clock_max[i]);
	}
	enter_nvml_phase(w, NVML_PHASE_READY, "");
	return true;
}

static bool await_nvml(struct nvml_watch *w)
{
	lock_watch(w);
	while (w->phase == NVML_PHASE_OPENING && !w->stopping)
		(void)pthread_cond_wait(&w->changed, &w->lock);
	const bool ready = w->phase == NVML_PHASE_READY;
	unlock_watch(w);
	return ready;
}

static bool is_last_sampler(const struct nvml_watch *w)
{
	unsigned running = 0;
	for (size_t i = 0; i < NVML_PACES; i++)
		running += w->samplers[i].running;
	return running == 1;
}

/* The last of the threads has NVML closed.  One that nobody waits for any more says that it is back. */
static void end_sampler(struct nvml_sampler *s)
{
	struct nvml_watch *w = s->watch;
	lock_watch(w);
	if (is_last_sampler(w) && w->phase == NVML_PHASE_READY) {
		unlock_watch(w);
		nvml_end();
		lock_watch(w);
	}
	s->running = false;
	const bool back = w->given_up;
	(void)pthread_cond_broadcast(&w->changed);
	unlock_watch(w);
	if (back)
		nvml_came_back();
}

static void *run_sampler(void *context)
{
	struct nvml_sampler *s = context;
	struct nvml_watch *w = s->watch;
	if (s->group == &nvml_quick ? open_nvml(w) : await_nvml(w))
		sample_all(s);
	end_sampler(s);
	release_watch(w);
	return NULL;
}

/* --- from outside ----------------------------------------------------------------------------- */

static int open_watch(struct nvml_watch **out, const struct nvml_watch_options *o)
{
	struct nvml_watch *w = calloc(1, sizeof *w);
	if (!w || !nvml_lock_open(&w->lock, &w->changed)) {
		free(w);
		return -ENOMEM;
	}
	w->holders = 1;
	w->count = o->count < DEVICES_MAX ? o->count : DEVICES_MAX;
	int code = 0;
	for (size_t pace = 0; pace < NVML_PACES; pace++) {
		struct nvml_sampler *s = &w->samplers[pace];
		s->watch = w;
		s->group = pace == NVML_PACE_QUICK ? &nvml_quick : &nvml_slow;
		s->period_ns = pace == NVML_PACE_QUICK ? o->period_ns : o->pcie_period_ns;
		for (size_t i = 0; i < w->count && !code; i++)
			code = nvml_series_open(&s->series[i], s->group);
	}
	for (size_t i = 0; i < w->count; i++) {
		(void)snprintf(w->buses[i], sizeof w->buses[i], "%s", o->buses[i]);
		w->codes[i] = NVML_NOT_ASKED;
	}
	if (code)
		release_watch(w);
	*out = code ? NULL : w;
	return code;
}

/* Who starts a sampler holds the lock, so that it sees all that was started. */
static int start_sampler(struct nvml_sampler *s)
{
	pthread_t thread;
	s->running = true;
	s->watch->holders++;
	const int code = pthread_create(&thread, NULL, run_sampler, s);
	if (code) {
		s->running = false;
		s->watch->holders--;
		return -code;
	}
	(void)pthread_setname_np(thread, "mlb-nvml");
	(void)pthread_detach(thread);
	return 0;
}

int nvml_watch_start(
	struct nvml_watch **out, const struct nvml_watch_options *options, struct error *err)
{
	int code = open_watch(out, options);
	if (code)
		return error_set(err, code, "out of memory for the samples of NVML");
	struct nvml_watch *w = *out;
	w->started_ns = clock_now_ns();
	if (nvml_hangs()) {
		enter_nvml_phase(w, NVML_PHASE_ABSENT, NVML_HANGS);
		return 0;
	}
	lock_watch(w);
	for (size_t i = 0; i < NVML_PACES && !code; i++)
		code = start_sampler(&w->samplers[i]);
	w->stopping = code;
	(void)pthread_cond_broadcast(&w->changed);
	unlock_watch(w);
	if (!code)
		return 0;
	release_watch(w);
	*out = NULL;
	return error_set_errno(err, -code, "cannot start a thread to ask NVML");
}

void nvml_watch_stop(struct nvml_watch *w, uint64_t patience_ns)
{
	const uint64_t until_ns = clock_now_ns() + patience_ns;
	lock_watch(w);
	w->stopping = true;
	w->stopped_ns = clock_now_ns();
	(void)pthread_cond_broadcast(&w->changed);
	for (size_t i = 0; i < NVML_PACES; i++) {
		while (w->samplers[i].running &&
			(nvml_wait_until(&w->changed, &w->lock, until_ns) ||
				clock_now_ns() < until_ns))
			continue;
		w->given_up = w->given_up || w->samplers[i].running;
	}
	for (size_t i = 0; w->given_up && i < NVML_PACES; i++)
		if (w->samplers[i].running)
			nvml_give_up();
	unlock_watch(w);
}

void nvml_watch_free(struct nvml_watch *w)
{
	if (w)
		release_watch(w);
}

/* --- from samples to a measurement ------------------------------------------------------------ */

/* A window's value is no older than so many periods. */
enum { STALE_PERIODS = 3, NAMES_BYTES = 160 };

/* What the ranges of a device (device_ranges) are of. */
static const enum nvml_quantity range_quantities[DEVICE_RANGES] = {NVML_SM_CLOCK, NVML_MEMORY_CLOCK,
	NVML_POWER, NVML_TEMPERATURE, NVML_MEMORY_USED, NVML_PCIE_TO_DEVICE, NVML_PCIE_FROM_DEVICE};

static struct device_range *device_range_at(struct device_measurement *d, size_t i)
{
	return (void *)((char *)d + device_ranges[i].offset);
}

void nvml_forget(struct device_measurement *d)
{
	for (size_t i = 0; i < DEVICE_RANGES; i++)
		*device_range_at(d, i) = (struct device_range){NAN, NAN, NAN};
	d->sm_clock_max_mhz = NAN;
	d->busy_share = NAN;
	d->ecc_corrected = d->ecc_uncorrected = NAN;
	d->throttle_count = 0;
	d->samples = 0;
}

static int by_falling_share(const void *a, const void *b)
{
	const double one = ((const struct device_throttle *)a)->share;
	const double other = ((const struct device_throttle *)b)->share;
	return one < other ? 1 : one > other ? -1 : 0;
}

static void fill_throttles(const struct nvml_span *span, struct device_measurement *d)
{
	struct device_throttle found[NVML_THROTTLE_BITS];
	const size_t place = nvml_group_place(&nvml_quick, NVML_THROTTLES);
	size_t count = 0;
	for (unsigned bit = 0; bit < NVML_THROTTLE_BITS; bit++) {
		const char *name = nvml_throttle_name(bit);
		const double share = nvml_span_share(span, place, bit);
		if (!name || !(share > 0))
			continue;
		(void)snprintf(found[count].reason, sizeof found[count].reason, "%s", name);
		found[count++].share = share;
	}
	qsort(found, count, sizeof *found, by_falling_share);
	d->throttle_count = count < THROTTLES_MAX ? count : THROTTLES_MAX;
	memcpy(d->throttles, found, d->throttle_count * sizeof *found);
}

static void fill_watched(struct nvml_watch *w, size_t i, uint64_t from_ns, uint64_t to_ns,
	struct device_measurement *d)
{
	const struct nvml_series *quick = &w->samplers[NVML_PACE_QUICK].series[i];
	const struct nvml_span span = nvml_series_span(quick, from_ns, to_ns);
	const struct nvml_span copies =
		nvml_series_span(&w->samplers[NVML_PACE_SLOW].series[i], from_ns, to_ns);
	const size_t resident = nvml_group_place(&nvml_quick, NVML_KERNEL_RESIDENT);
	for (size_t k = 0; k < DEVICE_RANGES; k++) {
		const size_t place = nvml_group_place(&nvml_quick, range_quantities[k]);
		*device_range_at(d, k) =
			place < nvml_quick.count
				? nvml_span_range(&span, place)
				: nvml_span_range(&copies,
					  nvml_group_place(&nvml_slow, range_quantities[k]));
	}
	d->samples = (double)span.count;
	d->sm_clock_max_mhz = w->clock_max[i];
	d->busy_share = nvml_span_range(&span, resident).mean;
	d->ecc_corrected = nvml_series_growth(
		quick, nvml_group_place(&nvml_quick, NVML_ECC_CORRECTED), from_ns, to_ns);
	d->ecc_uncorrected = nvml_series_growth(
		quick, nvml_group_place(&nvml_quick, NVML_ECC_UNCORRECTED), from_ns, to_ns);
	fill_throttles(&span, d);
}

/* --- what is missing -------------------------------------------------------------------------- */

/* Of one quantity: no sample of the span has it. */
static bool lacks_quantity(const struct nvml_span *span, size_t place)
{
	return isnan(nvml_span_range(span, place).mean);
}

static int reason_code(const struct nvml_series *series, size_t place)
{
	return series->codes[place] == NVML_OK ? NVML_NOT_ASKED : series->codes[place];
}

/* The quantities from `place` on that are missing for the same reason, marked as told. */
static void gather_missing(const struct nvml_series *series, const struct nvml_span *span,
	size_t place, bool told[NVML_GROUP_MAX], char *names, size_t room)
{
	size_t used = 0;
	for (size_t k = place; k < series->group->count; k++) {
		if (told[k] || reason_code(series, k) != reason_code(series, place) ||
			!lacks_quantity(span, k))
			continue;
		told[k] = true;
		if (used < room)
			used += (size_t)snprintf(names + used, room - used, "%s%s",
				used ? ", " : "", nvml_quantity_name(series->group->list[k]));
	}
}

static void note_missing(const struct nvml_series *series, uint64_t from_ns, uint64_t to_ns,
	unsigned index, struct measurement *m)
{
	bool told[NVML_GROUP_MAX] = {false};
	char names[NAMES_BYTES];
	const struct nvml_span span = nvml_series_span(series, from_ns, to_ns);
	for (size_t place = 0; place < series->group->count; place++) {
		if (told[place] || !lacks_quantity(&span, place))
			continue;
		const int code = reason_code(series, place);
		gather_missing(series, &span, place, told, names, sizeof names);
		measurement_note(m, "device %u: %s unknown: %s", index, names,
			code == NVML_NOT_ASKED ? "no sample fell into the measured part"
					       : nvml_code_words(code));
	}
}

/* In decades, so that repetitions say the same: the next of 0.01, 0.1, 1, 10 and 100 %. */
static double cost_percent(const struct nvml_watch *w)
{
	const double wall = (double)(w->stopped_ns - w->started_ns);
	double cpu = 0;
	double bound = 0.01;
	for (size_t i = 0; i < NVML_PACES; i++)
		cpu += (double)w->samplers[i].cpu_ns;
	while (wall > 0 && 100 * cpu / wall > bound)
		bound *= 10;
	return bound;
}

static void note_cost(const struct nvml_watch *w, struct measurement *m)
{
	measurement_note(m, "NVML: sampled every %s s%s; it took at most %s %% of a core",
		UNITS_PLAIN((double)w->samplers[NVML_PACE_QUICK].period_ns / (double)NS_PER_S, 3),
		w->given_up ? " until a call did not come back" : "",
		UNITS_PLAIN(cost_percent(w), 3));
}

static size_t find_watched(const struct nvml_watch *w, const char *bus)
{
	size_t i = 0;
	while (i < w->count && !nvml_same_bus(w->buses[i], bus))
		i++;
	return i;
}

static void fill_ready(
	struct nvml_watch *w, uint64_t from_ns, uint64_t to_ns, struct measurement *m)
{
	for (size_t i = 0; i < m->device_count; i++) {
		struct device_measurement *d = &m->devices[i];
		const size_t at = find_watched(w, d->bus);
		if (at == w->count)
			continue;
		if (!w->devices[at]) {
			measurement_note(m, "device %u: NVML does not show '%s': %s", d->index,
				d->bus, nvml_code_words(w->codes[at]));
			continue;
		}
		fill_watched(w, at, from_ns, to_ns, d);
		for (size_t pace = 0; pace < NVML_PACES; pace++)
			note_missing(&w->samplers[pace].series[at], from_ns, to_ns, d->index, m);
	}
	note_cost(w, m);
}

void nvml_watch_fill(struct nvml_watch *w, uint64_t from_ns, uint64_t to_ns, struct measurement *m)
{
	for (size_t i = 0; i < m->device_count; i++)
		nvml_forget(&m->devices[i]);
	(void)pthread_mutex_lock(&w->lock);
	if (w->phase == NVML_PHASE_READY)
		fill_ready(w, from_ns, to_ns, m);
	else
		measurement_note(m,
			"clocks, power, temperature and throttling of the device unknown: %s",
			w->phase == NVML_PHASE_ABSENT ? w->why
						      : "NVML did not start within the run");
	(void)pthread_mutex_unlock(&w->lock);
}

void nvml_watch_window(struct nvml_watch *w, uint64_t t_ns, struct window *window)
{
	const struct nvml_sampler *quick = &w->samplers[NVML_PACE_QUICK];
	const struct nvml_sample *latest = NULL;
	window->device_clock_mhz = window->device_power_w = window->device_temperature_c = NAN;
	(void)pthread_mutex_lock(&w->lock);
	const uint64_t oldest_ns = STALE_PERIODS * quick->period_ns;
	const struct nvml_span span =
		nvml_series_span(&quick->series[0], t_ns > oldest_ns ? t_ns - oldest_ns : 0, t_ns);
	if (w->count > 0 && span.count > 0)
		latest = &span.first[span.count - 1];
	if (latest) {
		const struct nvml_group *group = &nvml_quick;
		window->device_clock_mhz =
			(float)latest->values[nvml_group_place(group, NVML_SM_CLOCK)];
		window->device_power_w = (float)latest->values[nvml_group_place(group, NVML_POWER)];
		window->device_temperature_c =
			(float)latest->values[nvml_group_place(group, NVML_TEMPERATURE)];
	}
	(void)pthread_mutex_unlock(&w->lock);
}

size_t nvml_watch_series(struct nvml_watch *w, size_t index, enum nvml_quantity quantity,
	uint64_t from_ns, uint64_t to_ns, double *t_s, double *values, size_t room)
{
	const size_t place = nvml_group_place(&nvml_quick, quantity);
	size_t count = 0;
	if (index >= w->count || place == nvml_quick.count || room == 0)
		return 0;
	(void)pthread_mutex_lock(&w->lock);
	const struct nvml_span span =
		nvml_series_span(&w->samplers[NVML_PACE_QUICK].series[index], from_ns, to_ns);
	const size_t stride = (span.count + room - 1) / room;
	for (size_t i = 0; i < span.count; i += stride) {
		if (isnan(span.first[i].values[place]))
			continue;
		t_s[count] = (double)(span.first[i].t_ns - from_ns) / (double)NS_PER_S;
		values[count++] = span.first[i].values[place];
	}
	(void)pthread_mutex_unlock(&w->lock);
	return count;
}
