#include "harness/fit/twin.h"

#include "harness/analyze/statistics.h"
#include "harness/base/array.h"
#include "harness/base/hash.h"
#include "harness/base/units.h"
#include "harness/config/like.h"
#include "harness/config/tables.h"
#include "harness/config/value.h"
#include "harness/fit/step_series.h"
#include "harness/record/measurement.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double TWIN_NS = 1e9;
static const double TWIN_WAITS = 0.1;   /* share of the time: the trainer waits for its batches */
static const double TWIN_LATENCY = 2e5; /* ns: a read that takes longer is not the page cache's */
static const double TWIN_SHORTEST =
	0.05; /* of the steps may be shorter than what the trainer computes */
static const double TWIN_BYTES = 1 << 30; /* of generated files, at most */
enum {
	TWIN_BATCHES = 40,
	TWIN_SAMPLES_LEAST = 256,
	TWIN_SAMPLES_MOST = 20000,
	TWIN_EPOCH_MOST = 100000,
	TWIN_TEXT = 256
};

struct twin {
	struct case_file *file;
	const struct twin_hints *hints;
	double own_cpu;               /* ns for a sample; NAN */
	double batch, ranks, workers; /* workers: NAN not known */
	struct error *err;
	int code;
};

/* --- what is known and what is set -------------------------------------------------------------- */

static double twin_known(const struct case_file *file, enum finding_id id)
{
	const struct finding *finding = &file->observed.known[id];
	return finding->how == FINDING_UNKNOWN ? NAN : finding->value;
}

static double twin_or_zero(double value)
{
	return value > 0 ? value : 0;
}

static bool twin_guessed(const struct case_file *file, enum finding_id id)
{
	return file->observed.known[id].how == FINDING_ASSUMED;
}

static bool twin_is_set(const struct twin *twin, const char *key)
{
	const enum key_id id = config_find_key(key);
	return id != KEY_COUNT && twin->file->twin.is_set[id];
}

/* A key that is set already stays. */
static void twin_set_text(struct twin *twin, const char *key, const char *text)
{
	if (!twin->code && !twin_is_set(twin, key))
		twin->code = case_set(twin->file, key, text, twin->err);
}

static void twin_set(struct twin *twin, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void twin_set(struct twin *twin, const char *key, const char *format, ...)
{
	char text[TWIN_TEXT];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	twin_set_text(twin, key, text);
}

static void twin_set_time(struct twin *twin, const char *key, double ns)
{
	char text[UNITS_BYTES];
	/* Three digits: more would pretend. */
	double step = 1;
	while (ns / step >= 10000)
		step *= 10;
	(void)units_print_duration((uint64_t)(round(ns / step) * step), text);
	twin_set_text(twin, key, text);
}

/* Where the user or a result has set the key, it is no guess. */
static void twin_assume(struct twin *twin, const char *key, const char *why)
{
	if (!twin->code)
		twin->code = case_assume(twin->file, key, why, twin->err);
}

/* --- the loader --------------------------------------------------------------------------------- */

static void twin_batch(struct twin *twin)
{
	const double batch = twin_known(twin->file, FINDING_BATCH_SIZE);
	if (batch >= 1 && !twin_is_set(twin, "batch.size")) {
		twin_set(twin, "batch.size", "%.0f", batch);
		if (twin_guessed(twin->file, FINDING_BATCH_SIZE))
			twin_assume(twin, "batch.size",
				twin->file->observed.known[FINDING_BATCH_SIZE].why);
	} else if (!twin_is_set(twin, "batch.size"))
		twin_assume(twin, "batch.size",
			"no source tells it; a trace does, or --set batch.size=N");
	twin->batch = config_real(&twin->file->twin, KEY_BATCH_SIZE);
}

void twin_guess_batch(struct findings *findings)
{
	static const double near = 0.1; /* a rate of an observed job is known no better */
	struct finding *known = findings->known;
	const double ranks =
		known[FINDING_RANKS].how == FINDING_UNKNOWN ? 1 : known[FINDING_RANKS].value;
	const struct finding *rate = &known[FINDING_THROUGHPUT];
	const struct finding *period = &known[FINDING_STEP_PERIOD];
	const double batch = rate->value * period->value / TWIN_NS / ranks;
	const double power = exp2(round(log2(batch)));
	if (rate->how < FINDING_DERIVED || period->how < FINDING_DERIVED || !(batch >= 1))
		return;
	findings_add(findings, FINDING_BATCH_SIZE, period->source, FINDING_ASSUMED,
		fabs(power - batch) <= near * batch ? power : round(batch), NAN, NAN,
		"the throughput times the time between batches, and the power of two where one is within 10 %");
}

static void twin_ranks(struct twin *twin)
{
	const double ranks = twin_known(twin->file, FINDING_RANKS);
	if (ranks > 1 && !twin_is_set(twin, "step.devices")) {
		twin_set(twin, "step.devices", "%.0f", fmin(ranks, 16));
		twin_assume(twin, "step.devices",
			"several processes with loaders of their own are one process with several devices, which "
			"share the workers");
	}
	twin->ranks = fmax(1, config_real(&twin->file->twin, KEY_STEP_DEVICES));
}

static void twin_style(struct twin *twin)
{
	if (twin_is_set(twin, "read.by") || twin_is_set(twin, "decode.share"))
		return;
	twin_set_text(twin, "read.by", "workers");
	twin_set_text(twin, "decode.share", "batches");
	if (!twin->hints->loaders)
		twin_assume(twin, "decode.share",
			"the loader is taken to work as PyTorch's DataLoader does: a worker makes a whole batch");
}

static void twin_workers(struct twin *twin)
{
	const double known = twin_known(twin->file, FINDING_WORKERS);
	const bool set = twin_is_set(twin, "decode.workers");
	double factor = twin_known(twin->file, FINDING_PREFETCH);
	twin->workers =
		set ? config_real(&twin->file->twin, KEY_DECODE_WORKERS) / twin->ranks : known;
	if (twin->workers < 1) { /* the trainer loads by itself */
		twin_set(twin, "decode.workers", "%.0f", twin->ranks);
		twin_set_text(twin, "prefetch.depth", "0");
		return;
	}
	if (isnan(twin->workers))
		twin_assume(twin, "decode.workers",
			"no source tells how many workers load; 'mlbench observe' does, or --set decode.workers=N");
	else
		twin_set(twin, "decode.workers", "%.0f", fmin(1024, twin->workers * twin->ranks));
	if (!set && twin_guessed(twin->file, FINDING_WORKERS))
		twin_assume(
			twin, "decode.workers", twin->file->observed.known[FINDING_WORKERS].why);
	if (isnan(factor) && !twin_is_set(twin, "prefetch.depth"))
		twin_assume(twin, "prefetch.depth",
			"two batches for each worker, as PyTorch's prefetch_factor is by default");
	factor = isnan(factor) ? 2 : factor;
	twin_set(twin, "prefetch.depth", "%.0f",
		fmin(4096, factor * config_real(&twin->file->twin, KEY_DECODE_WORKERS)));
}

/* --- the step ----------------------------------------------------------------------------------- */

double twin_wait_share(const struct case_file *file)
{
	const double share = twin_known(file, FINDING_STEP_WAIT_SHARE);
	const double wait = twin_known(file, FINDING_STEP_WAIT);
	const double period = twin_known(file, FINDING_STEP_PERIOD);
	return wait >= 0 && period > 0 ? fmin(1, wait / period) : share;
}

/* From one batch of a rank to the next, ns. */
static double twin_period(const struct twin *twin)
{
	const double period = twin_known(twin->file, FINDING_STEP_PERIOD);
	const double rate = twin_known(twin->file, FINDING_THROUGHPUT);
	return period > 0 ? period : rate > 0 ? twin->batch * twin->ranks / rate * TWIN_NS : NAN;
}

/* What the trainer computes on cores takes cores from the loader, however its times were told: of a step of so long (ns) it is
 * overhead.step, and only the rest is a device's.  A trainer that waits for its batch computes, too (it unpickles, and maps
 * shared memory); from outside it cannot be told how much of its CPU time that is, so that all of it, as far as it fits, counts
 * as the step's, which stays as long as it is.  ns; 0: too little to matter, or the user knows better. */
static double twin_step_on_cores(struct twin *twin, double step)
{
	const double cores = twin_known(twin->file, FINDING_TRAINER_CORES);
	/* Of steps that stall the trainer's CPU time may be the stalls' alone. */
	const bool stalls = twin_known(twin->file, FINDING_STALL) > step;
	const double used =
		stalls ? NAN
		       : cores * twin_period(twin); /* fmin would pass over what is not known */
	const double cpu = isnan(used) ? used : fmin(used, step);
	if (!(cpu > TWIN_WAITS * step) || twin_is_set(twin, "step.time") ||
		twin_is_set(twin, "overhead.step"))
		return 0;
	twin_set_time(twin, "overhead.step", cpu);
	twin_assume(twin, "overhead.step",
		cores > 1.2
			? "CPU time of the trainer, as far as it fits into the step; it computes on several cores "
			  "at a time, of which the twin takes one"
			: "CPU time of the trainer, as far as it fits into the step; what the step takes beyond it "
			  "is a device's");
	return cpu;
}

/* While the quota is used up, the trainer stands still, too.  A job that would use `most` cores stands still for all but
 * quota / most of the time, so that at least this share of the steps are as short as without a quota: their median counts. */
static void twin_step_under_quota(struct twin *twin)
{
	const struct findings *observed = &twin->file->observed;
	const double cores = twin_known(twin->file, FINDING_CORES);
	const double quota = twin_known(twin->file, FINDING_CPU_QUOTA);
	const double most = fmin(cores, (isnan(twin->workers) ? 0 : twin->workers) + 1);
	const double share = quota > 0 && most > 0 ? fmin(1, quota / most) : 1;
	const double step = statistics_quantile(observed->step_ns, observed->step_count, share / 2);
	twin_set_time(twin, "step.time", fmax(1e3, step - twin_step_on_cores(twin, step)));
	twin_assume(twin, "step.time",
		"of the shorter steps: longer ones are taken for those in which the CPU quota was used up");
}

/* Steps stall regularly while a trainer that has loaders reads and decodes by itself: it evaluates. */
static bool twin_evaluates(const struct case_file *file)
{
	static const double LOADS = 0.5; /* of its CPU time */
	return twin_known(file, FINDING_TRAINER_LOADS) >= LOADS &&
	       twin_known(file, FINDING_WORKERS) >= 1 && twin_known(file, FINDING_STALL) > 0 &&
	       twin_known(file, FINDING_STALL_TIME) > 0;
}

/* Stalls of one series differ, and a repetition meets its first ones only: each keeps its place, and they change places among
 * themselves so that any few that follow each other are of all sizes (by the golden ratio: the fractions of its multiples are spread
 * evenly over any stretch). */
static int twin_spread_stalls(double *values, size_t count, double far, struct error *err)
{
	static const double GOLDEN = 0.6180339887498949;
	double *const keys = malloc(3 * (count + 1) * sizeof *keys);
	size_t stalls = 0;
	if (!keys)
		return error_set(err, -ENOMEM, "out of memory");
	double *const sorted = keys + count + 1; /* keys in order */
	double *const sizes = sorted + count + 1;
	for (size_t i = 0; i < count; i++)
		if (values[i] > far) {
			keys[stalls] = sorted[stalls] = fmod(GOLDEN * (double)(stalls + 1), 1);
			sizes[stalls++] = values[i];
		}
	sort_doubles(sorted, stalls);
	sort_doubles(sizes, stalls);
	size_t next = 0;
	for (size_t i = 0; i < count; i++)
		if (values[i] > far) {
			const double *const at = bsearch(
				&keys[next++], sorted, stalls, sizeof *sorted, order_doubles);
			values[i] = sizes[at - sorted];
		}
	free(keys);
	return 0;
}

/* All of them longer by shift, and none shorter than a device can be.  Evaluations are not among them. */
static int twin_step_times(
	const struct case_file *file, double shift, char text[STEP_SERIES_BYTES], struct error *err)
{
	const struct findings *observed = &file->observed;
	const double stall = twin_known(file, FINDING_STALL);
	const double usual = statistics_median(observed->step_ns, observed->step_count);
	const double far = usual + stall / 2; /* NAN: nothing is */
	const bool evaluates = twin_evaluates(file);
	int code = 0;
	double *shifted = malloc(observed->step_count * sizeof *shifted);
	if (!shifted)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < observed->step_count; i++)
		shifted[i] = evaluates && observed->step_ns[i] > far
				     ? fmax(usual, observed->step_ns[i] - stall)
				     : observed->step_ns[i];
	if (stall > 0 && !evaluates)
		code = twin_spread_stalls(shifted, observed->step_count, far, err);
	for (size_t i = 0; i < observed->step_count && fabs(shift) > 0; i++)
		shifted[i] = fmax(1e3, shifted[i] + shift);
	if (!code)
		code = step_series_text(
			shifted, observed->step_count, observed->step_series, text, err);
	free(shifted);
	return code;
}

int twin_shift_step_times(struct case_file *file, double shift, struct error *err)
{
	char text[STEP_SERIES_BYTES];
	const double cpu = config_real(&file->twin, KEY_OVERHEAD_STEP);
	int code = twin_step_times(file, shift - cpu, text, err);
	if (!code)
		code = case_set(file, "step.times", text, err);
	return code ? code
		    : case_assume(file, "step.times",
			      "the recorded ones, corrected by a run of the twin, so that its time between batches "
			      "without waiting is the job's",
			      err);
}

static bool twin_step_series(struct twin *twin)
{
	const struct findings *observed = &twin->file->observed;
	char text[STEP_SERIES_BYTES];
	if (observed->step_count < 8 || observed->step_is != FINDING_STEP_TIME ||
		twin_is_set(twin, "step.times") || twin_is_set(twin, "step.time"))
		return false;
	if (strcmp(observed->resource, "quota") == 0) {
		twin_step_under_quota(twin);
		return true;
	}
	/* Less what the trainer computes: so they vary by as much as they did. */
	const double cpu = twin_step_on_cores(
		twin, statistics_quantile(observed->step_ns, observed->step_count, TWIN_SHORTEST));
	const int code = twin_step_times(twin->file, -cpu, text, twin->err);
	if (code) {
		twin->code = code == -ENODATA ? twin->code : code;
		return false;
	}
	twin_set_text(twin, "step.times", text);
	return true;
}

static void twin_step_time(struct twin *twin)
{
	const double known = twin_known(twin->file, FINDING_STEP_TIME);
	const double period = twin_period(twin);
	const double waits = twin_wait_share(twin->file);
	const double step = known > 0 ? known : period * (1 - waits);
	const double cpu = twin_step_on_cores(twin, step);
	if (known > 0) {
		twin_set_time(twin, "step.time", fmax(1e3, known - cpu));
		if (twin_guessed(twin->file, FINDING_STEP_TIME))
			twin_assume(twin, "step.time",
				twin->file->observed.known[FINDING_STEP_TIME].why);
	} else if (period > 0 && waits >= 0) {
		twin_set_time(twin, "step.time", fmax(1e3, step - cpu));
		twin_assume(twin, "step.time",
			cpu > 0 ? "the time between batches less the share in which the trainer waits, and less its CPU "
				  "time; a trace tells it"
				: "the time between batches less the share in which the trainer waits; a trace tells it");
	} else if (period > 0) {
		twin_set_time(twin, "step.time", period);
		twin_assume(twin, "step.time",
			"the time between batches: nothing tells how much of it is waiting for data; a trace does, or "
			"--set step.time=TIME");
	}
}

bool twin_step_is_of_rate(const struct case_file *file)
{
	return case_why_assumed(file, KEY_STEP_TIME) &&
	       !(twin_known(file, FINDING_STEP_TIME) > 0) && isnan(twin_wait_share(file));
}

static void twin_step(struct twin *twin)
{
	if (twin_known(twin->file, FINDING_CPU_TRAINER) > 0)
		twin_set_time(twin, "overhead.step", twin_known(twin->file, FINDING_CPU_TRAINER));
	if (twin_is_set(twin, "step.backend") && !twin_is_set(twin, "step.time"))
		return; /* the user knows better */
	if (!twin_step_series(twin) && !twin_is_set(twin, "step.time"))
		twin_step_time(twin);
	const bool timed = twin_is_set(twin, "step.time") || twin_is_set(twin, "step.times");
	twin_set_text(twin, "step.backend", timed ? "emulated" : "null");
	if (!timed)
		twin_assume(twin, "step.backend",
			"nothing tells how long a step takes, so there is none; give a trace, a log of step times, or "
			"--set step.time=TIME");
}

/* --- the data ----------------------------------------------------------------------------------- */

static void twin_pictures(struct twin *twin)
{
	const double bytes = twin_known(twin->file, FINDING_FILE_BYTES);
	/* The default picture has 110 KB; others of the same detail have edges by the root of it. */
	const double scale = bytes > 0 ? sqrt(fmin(fmax(bytes / 110e3, 0.001), 300)) : 1;
	twin_set_text(twin, "dataset.recipe", "photo");
	if (twin->hints->format[0])
		twin_set_text(twin, "dataset.format", twin->hints->format);
	else if (!twin_is_set(twin, "dataset.format"))
		twin_assume(twin, "dataset.format",
			"no source tells what the files are; their folder does");
	if (bytes > 0)
		twin_set(twin, "dataset.bytes", "%.0f", fmin(fmax(round(bytes), 200), 1e9));
	if (twin_is_set(twin, "dataset.width"))
		return;
	twin_set(twin, "dataset.width", "%.0f", fmax(8, round(500 * scale)));
	twin_set(twin, "dataset.height", "%.0f", fmax(8, round(375 * scale)));
	twin_assume(twin, "dataset.width",
		bytes > 0
			? "pixels of a usual photograph with as many bytes; the folder's headers tell them"
			: "a usual photograph: no source tells sizes; the folder's headers do");
}

/* Whether the loader was seen to decode pictures: shards may hold them. */
static bool twin_decodes(const struct twin *twin)
{
	static const double share = 0.05; /* of its CPU time */
	const double decode = twin_known(twin->file, FINDING_CPU_DECODE);
	return isnan(decode) || decode > share * twin_known(twin->file, FINDING_CPU_SAMPLE);
}

/* Files of as many bytes of which nothing is decoded. */
static void twin_bytes(struct twin *twin)
{
	static const double usual = 16384;
	const double known = twin_known(twin->file, FINDING_FILE_BYTES);
	const double bytes = known > 0 ? known : usual;
	const double edge = fmax(1, round(sqrt(fmin(bytes, TWIN_BYTES / 16) / 3)));
	twin_set_text(twin, "dataset.recipe", "photo");
	twin_set_text(twin, "dataset.format", "raw");
	twin_set(twin, "dataset.width", "%.0f", edge);
	twin_set(twin, "dataset.height", "%.0f", edge);
	twin_set_text(twin, "dataset.size_sigma", "0");
	twin_set_text(twin, "codec.name", "null");
	twin_assume(twin, "codec.name",
		"the samples are no pictures: the twin reads as many bytes and decodes nothing, and overhead.sample stands "
		"for all CPU time of the job's loader");
	if (!(known > 0))
		twin_assume(
			twin, "dataset.width", "16 KB a sample: no source tells how large one is");
	twin_set_text(twin, "augment.size", "16");
}

/* Flat arrays, of which a sample is a part. */
static void twin_tokens(struct twin *twin)
{
	enum { FILES = 20 }; /* of 2 MB each */
	twin_set_text(twin, "dataset.recipe", "tokens");
	twin_set_text(twin, "sample.kind", "tokens");
	twin_set(twin, "dataset.samples", "%d", FILES);
	if (!twin_is_set(twin, "tokens.length"))
		twin_assume(twin, "tokens.length",
			"no source tells how long a sequence is; --set tokens.length=N does");
}

static void twin_like(struct twin *twin)
{
	struct buffer text = {0};
	const double lost =
		like_write(twin->file->observed.like, twin->file->observed.like_count, &text);
	if (text.failed) {
		twin->code = error_set(twin->err, -ENOMEM, "out of memory");
	} else if (lost > 0.999 || !text.data || !text.data[0]) {
		twin_pictures(twin);
	} else {
		twin_set_text(twin, "dataset.recipe", "like");
		twin_set_text(twin, "dataset.like", text.data);
		if (lost > 0.005)
			twin_assume(twin, "dataset.like",
				"some of the files are of formats or kinds that cannot be generated; the others stand for "
				"them");
	}
	buffer_release(&text);
}

/* Enough that an epoch lasts, and no more than a disk takes. */
static void twin_samples(struct twin *twin)
{
	const double files = twin_known(twin->file, FINDING_FILES);
	const double rate = twin_known(twin->file, FINDING_THROUGHPUT);
	const double bytes = twin_known(twin->file, FINDING_FILE_BYTES);
	double wanted = fmax(TWIN_BATCHES * twin->batch * twin->ranks, rate > 0 ? 10 * rate : 1000);
	wanted = fmin(fmax(wanted, TWIN_SAMPLES_LEAST), TWIN_SAMPLES_MOST);
	if (bytes > 0)
		wanted = fmin(wanted, fmax(TWIN_BYTES / bytes, 4 * twin->batch * twin->ranks));
	const bool fewer = !(files > 0) || files > wanted;
	if (twin_is_set(twin, "dataset.samples"))
		return;
	twin_set(twin, "dataset.samples", "%.0f", ceil(fewer ? wanted : files));
	if (fewer)
		twin_assume(twin, "dataset.samples",
			files > 0
				? "fewer files than the job has, so that they are soon generated: its epochs are longer"
				: "no source tells how many files there are; their folder does");
}

/* Where the loader starts anew with each epoch the trainer waits, and an epoch has as many samples as the job's.  Of that wait the
 * first batch takes a part, which the twin's workers take, too. */
static void twin_epochs(struct twin *twin)
{
	const double time = twin_known(twin->file, FINDING_EPOCH_TIME);
	const double start = twin_known(twin->file, FINDING_EPOCH_START);
	const double rate = twin_known(twin->file, FINDING_THROUGHPUT);
	const double round_of = twin->batch * twin->ranks;
	const double steps = round(rate * time / TWIN_NS / round_of);
	const double sample = twin_or_zero(twin_known(twin->file, FINDING_CPU_SAMPLE)) +
			      twin_or_zero(twin_known(twin->file, FINDING_READ_TIME)) +
			      twin_or_zero(twin_known(twin->file, FINDING_LOADER_WAIT));
	if (!(steps >= 1) || !(start > 0) || !(twin->workers >= 1) ||
		twin_is_set(twin, "decode.persistent") || twin_is_set(twin, "dataset.samples") ||
		twin->file->observed.data == DATA_ARRAYS || steps * round_of > TWIN_EPOCH_MOST)
		return;
	twin_set(twin, "dataset.samples", "%.0f", steps * round_of);
	twin_set_text(twin, "decode.persistent", "off");
	twin_set_time(
		twin, "decode.startup", fmax(1e6, start - fmin(start / 2, sample * twin->batch)));
	twin_assume(twin, "decode.startup",
		"the regular long waits for a batch, less the time of its samples: workers that start anew with each epoch "
		"stand for whatever holds the loader up then");
}

/* Evaluations that take as long as the job's, by one worker: as many samples as the trainer decodes meanwhile, or all that there are,
 * and steps that take the time for them. */
static void twin_evaluations(struct twin *twin)
{
	const double stall = twin_known(twin->file, FINDING_STALL);
	const double every = round(twin_known(twin->file, FINDING_STALL_TIME) / twin_period(twin));
	const double cpu = twin_known(twin->file, FINDING_CPU_SAMPLE);
	const double samples = fmin(
		config_real(&twin->file->twin, KEY_DATASET_SAMPLES), fmax(1, floor(stall / cpu)));
	if (!twin_evaluates(twin->file) || !(every >= 1) || !(samples >= 1) ||
		twin_is_set(twin, "evaluate.every"))
		return;
	twin_set(twin, "evaluate.every", "%.0f", every);
	twin_set(twin, "evaluate.samples", "%.0f", samples);
	twin_set_text(twin, "evaluate.workers", "1");
	twin_set_time(twin, "evaluate.step_time", stall / ceil(samples / twin->batch));
	/* What looked like its step is that. */
	struct findings *observed = &twin->file->observed;
	if (strcmp(observed->stage, STAGE_STEP_NAME) == 0) {
		(void)snprintf(observed->stage, sizeof observed->stage, "%s",
			STAGE_STEP_NAME " or " STAGE_EVALUATE_NAME);
		observed->resource[0] = '\0';
	}
	twin_assume(twin, "evaluate.every",
		"steps stall regularly, and the trainer spends most of its CPU time on reading and decoding: it is "
		"taken to evaluate then");
}

/* A folder of the twin's own: cases of the same data share it. */
static void twin_path(struct twin *twin)
{
	struct buffer text = {0};
	for (int key = 0; key < KEY_COUNT; key++)
		if (strcmp(config_keys[key].section, "dataset") == 0 && key != KEY_DATASET_PATH)
			value_write((enum key_id)key, &twin->file->twin.values[key], true, &text);
	const uint64_t hash = text.failed ? 0 : hash_bytes(text.data, text.size, 0);
	buffer_release(&text);
	twin_set(twin, "dataset.path", CONFIG_DATA_ROOT "/case-%08" PRIx32, (uint32_t)hash);
}

static void twin_data(struct twin *twin)
{
	const double stored = twin_known(twin->file, FINDING_READ_STORED);
	const enum finding_data data = twin->file->observed.data;
	const bool image = !twin_is_set(twin, "sample.kind");
	if (!twin_is_set(twin, "dataset.recipe") && !twin_is_set(twin, "dataset.path")) {
		if (twin->file->observed.like_count > 0)
			twin_like(twin);
		else if (image && data == DATA_ARRAYS)
			twin_tokens(twin);
		else if (image &&
			 (data == DATA_SAMPLES || (data != DATA_PICTURES && !twin_decodes(twin))))
			twin_bytes(twin);
		else
			twin_pictures(twin);
		twin_epochs(twin);
		twin_samples(twin);
		twin_evaluations(twin);
	}
	if (stored >= 0.5)
		twin_set_text(twin, "read.cache", "cold");
	twin_path(twin);
	if (!twin_is_set(twin, "augment.size") && !twin_is_set(twin, "sample.kind"))
		twin_assume(twin, "augment.size",
			"224 pixels, as most picture models take; no source tells it");
}

/* --- CPU time of the loader --------------------------------------------------------------------- */

double twin_slow_read(const struct case_file *file)
{
	const double latency = twin_known(file, FINDING_READ_LATENCY);
	const double read = twin_known(file, FINDING_READ_TIME);
	const double wait = isnan(latency) ? read : latency;
	return wait > TWIN_LATENCY ? wait : NAN;
}

/* ns of CPU time for a sample that come and go with the latency of slow storage: calls that send requests and wait for them,
 * and caches that hold other data after each wait.  They are part of the latency that stands in for the storage, and no part
 * of the loader's overhead.  0: the storage is fast, so that what the twin's own reads take stands for them. */
static double twin_slow_read_cpu(const struct case_file *file)
{
	return isnan(twin_slow_read(file))
		       ? 0
		       : twin_or_zero(twin_known(file, FINDING_CPU_READ)) +
				 twin_or_zero(twin_known(file, FINDING_CPU_REFILL));
}

/* Whether the loader starts anew with each epoch. */
static bool twin_starts_anew(const struct case_file *file)
{
	return config_integer(&file->twin, KEY_DECODE_PERSISTENT) == 0;
}

/* How long the workers can be at one sample each, in all: the loader does nothing else, but start anew; NAN: not known. */
static double twin_slot_most(const struct case_file *file)
{
	const double rate = twin_known(file, FINDING_THROUGHPUT);
	const double start = twin_starts_anew(file) ? twin_known(file, FINDING_EPOCH_START) /
							      twin_known(file, FINDING_EPOCH_TIME)
						    : 0;
	const double workers = file->twin.is_set[KEY_DECODE_WORKERS]
				       ? config_real(&file->twin, KEY_DECODE_WORKERS)
				       : NAN;
	return rate > 0 ? workers / rate * TWIN_NS * (1 - fmin(0.95, twin_or_zero(start))) : NAN;
}

/* How long a worker has for a sample where the trainer waits for it; NAN: it does not, or too little is known. */
static double twin_slot(const struct case_file *file)
{
	const double waits = twin_wait_share(file);
	return waits >= TWIN_WAITS
		       ? twin_slot_most(file) *
				 (config_integer(&file->twin, KEY_PREFETCH_DEPTH) == 0 ? waits : 1)
		       : NAN;
}

/* A trainer that loads by itself: how long it waits for a batch is known better than which of its CPU time is loading. */
static bool twin_slot_counts(const struct case_file *file)
{
	const struct findings *observed = &file->observed;
	return observed->known[FINDING_CPU_SAMPLE].how == FINDING_ASSUMED &&
	       observed->known[FINDING_STEP_WAIT].how >= FINDING_DERIVED &&
	       config_integer(&file->twin, KEY_PREFETCH_DEPTH) == 0;
}

double twin_loader_cpu(const struct case_file *file, const char **why)
{
	const double known = twin_known(file, FINDING_CPU_SAMPLE);
	const double queue = twin_or_zero(twin_known(file, FINDING_CPU_QUEUE));
	const double slot = twin_slot(file) * (1 - fmin(1, queue)) -
			    twin_or_zero(twin_known(file, FINDING_READ_TIME)) -
			    twin_or_zero(twin_known(file, FINDING_LOADER_WAIT));
	const bool by_slot = !(known > 0) || (slot > 0 && twin_slot_counts(file));
	if (why)
		*why = by_slot ? "the trainer waits for its batches, so those that load are taken to compute all that time"
			       : NULL;
	/* What workers compute beyond that is their start. */
	const double most =
		twin_starts_anew(file) ? twin_slot_most(file) * (1 - fmin(1, queue)) : INFINITY;
	return !by_slot ? fmin(known, most) : slot > 0 ? slot : NAN;
}

static void twin_overhead_sample(struct twin *twin)
{
	const char *why;
	const double cpu = twin_loader_cpu(twin->file, &why);
	const bool null = twin_is_set(twin, "codec.name") || twin_is_set(twin, "sample.kind");
	const double decode = null ? 0 : twin_known(twin->file, FINDING_CPU_DECODE);
	const double augment = null ? 0 : twin_or_zero(twin_known(twin->file, FINDING_CPU_AUGMENT));
	const double per_batch = twin_or_zero(twin_known(twin->file, FINDING_CPU_COLLATE)) +
				 twin_or_zero(twin_known(twin->file, FINDING_CPU_TRANSFER));
	const double own = twin->own_cpu;
	if (twin_is_set(twin, "overhead.sample"))
		return;
	if (isnan(cpu)) {
		twin_assume(twin, "overhead.sample",
			"nothing tells the loader's CPU time; 'mlbench observe' on the job does, or --set "
			"overhead.sample=TIME");
		return;
	}
	const double rest = cpu - (own > 0 ? own : decode + augment) - per_batch / twin->batch -
			    twin_slow_read_cpu(twin->file);
	if (rest > 0)
		twin_set_time(twin, "overhead.sample", rest);
	if (own > 0 && !(rest > 0))
		twin_assume(twin, "overhead.sample",
			"none: the twin's own decoding takes as much CPU time as the whole of the job's loader, or more");
	else if (why)
		twin_assume(twin, "overhead.sample", why);
	else if (isnan(own) && isnan(decode))
		twin_assume(twin, "overhead.sample",
			"none: nothing tells what the loader's CPU time is spent on, and the twin's own decoding stands "
			"for all of it");
	else if (isnan(own))
		twin_assume(twin, "overhead.sample",
			"the loader's CPU time beyond codecs and resizing; the twin's decoder is taken to be as fast as "
			"the job's");
}

/* Workers that take turns under one lock: nothing but it lets samples through, so it is held for as long as one takes to come.  That
 * is a share of what a worker computes for it beyond decoding, or, if it is more than that, of all. */
static bool twin_lock(struct twin *twin)
{
	static const char why[] =
		"one lock of all workers, held as long as a sample takes to come through";
	const double rate = twin_known(twin->file, FINDING_THROUGHPUT);
	const double overhead = config_real(&twin->file->twin, KEY_OVERHEAD_SAMPLE);
	const double held = TWIN_NS / rate;
	if (strcmp(twin->file->observed.resource, "lock") != 0 || !(rate > 0) ||
		config_integer(&twin->file->twin, KEY_DECODE_WORKERS) < 2 ||
		twin_is_set(twin, "inject.decode_wait") || twin_is_set(twin, "overhead.lock") ||
		twin_is_set(twin, "inject.lock_share"))
		return false;
	const double cpu = twin_loader_cpu(twin->file, NULL);
	if (held <= overhead) {
		twin_set(twin, "overhead.lock", "%.3f", held / overhead);
		twin_assume(twin, "overhead.lock", why);
	} else if (cpu > 0) {
		twin_set(twin, "inject.lock_share", "%.3f", fmin(1, held / cpu));
		twin_assume(twin, "inject.lock_share", why);
	}
	return held <= overhead || cpu > 0;
}

static void twin_overheads(struct twin *twin)
{
	const double collate = twin_known(twin->file, FINDING_CPU_COLLATE);
	const double transfer = twin_known(twin->file, FINDING_CPU_TRANSFER);
	const double wait = twin_known(twin->file, FINDING_LOADER_WAIT);
	const double start = twin_known(twin->file, FINDING_WORKER_START);
	if (twin_or_zero(collate) + twin_or_zero(transfer) > 0)
		twin_set_time(
			twin, "overhead.batch", twin_or_zero(collate) + twin_or_zero(transfer));
	twin_overhead_sample(twin);
	if (!twin_lock(twin) && wait > 0 && !twin_is_set(twin, "inject.decode_wait")) {
		twin_set_time(twin, "inject.decode_wait", wait);
		twin_assume(twin, "inject.decode_wait",
			"waits at locks and in sleeps, each sample the mean; with more workers a lock would be waited for "
			"longer");
	}
	if (start > 0)
		twin_set_time(twin, "decode.startup", start);
}

/* --- the rest ----------------------------------------------------------------------------------- */

/* Forty batches, and several stalls and epochs, so that each repetition has as many of them. */
static void twin_measure(struct twin *twin)
{
	enum { STALLS = 5, EPOCHS = 4 };
	const double period = twin_period(twin);
	const double stalls = STALLS * twin_or_zero(twin_known(twin->file, FINDING_STALL_TIME));
	const double epochs = EPOCHS * twin_or_zero(twin_known(twin->file, FINDING_EPOCH_TIME));
	const double wanted = fmax(TWIN_BATCHES * period, fmax(stalls, epochs));
	if (!(wanted > 3 * TWIN_NS))
		return;
	twin_set(twin, "measure.duration", "%.0fs", fmin(60, ceil(wanted / TWIN_NS)));
	twin_set(twin, "measure.warmup", "%.0fs",
		fmax(1, fmin(20, ceil((config_real(&twin->file->twin, KEY_PREFETCH_DEPTH) + 4) *
					 period / TWIN_NS))));
}

static void twin_report(struct twin *twin, const char *key, double ns)
{
	char text[UNITS_BYTES];
	(void)units_print_duration((uint64_t)(round(ns / 1e3) * 1e3), text);
	if (!twin->code)
		twin->code = case_report_as(twin->file, key, text, twin->err);
}

static void twin_node(struct twin *twin)
{
	struct case_file *file = twin->file;
	const double wait = twin_slow_read(file);
	const double bandwidth = twin_known(file, FINDING_READ_BANDWIDTH);
	const double quota = twin_known(file, FINDING_CPU_QUOTA);
	if (isnan(file->reported_cores))
		file->reported_cores = twin_known(file, FINDING_CORES);
	if (isnan(file->reported_cores))
		file->reported_cores = file->environment.of[CASE_ENVIRONMENT_CORES].number;
	if (isnan(file->reported_quota))
		file->reported_quota =
			isnan(quota) ? file->environment.of[CASE_ENVIRONMENT_CPU_QUOTA].number
				     : quota;
	if (isinf(file->reported_quota))
		file->reported_quota = NAN;
	/* A read of the twin takes its own time, too, which is that of a local file. */
	if (!isnan(wait))
		twin_report(twin, "inject.read_latency", wait + twin_slow_read_cpu(file));
	if (bandwidth > 0 && !twin->code) {
		char text[TWIN_TEXT];
		(void)snprintf(text, sizeof text, "%.0f", bandwidth);
		twin->code = case_report_as(file, "inject.read_bandwidth", text, twin->err);
	}
}

/* A recipe generates the data anew; a user's folder stays at the user's. */
static void twin_setting(struct twin *twin)
{
	twin->batch = config_real(&twin->file->twin, KEY_BATCH_SIZE);
	twin->ranks = config_real(&twin->file->twin, KEY_STEP_DEVICES);
	if (config_integer(&twin->file->twin, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE)
		twin_data(twin);
	else
		twin_path(twin);
}

int twin_derive(struct case_file *file, const struct twin_hints *hints, struct error *err)
{
	struct twin twin = {.file = file, .hints = hints, .err = err};
	if (hints->setting) {
		twin_setting(&twin);
	} else {
		twin_batch(&twin);
		twin_ranks(&twin);
		twin_style(&twin);
		twin_workers(&twin);
		twin_step(&twin);
		twin_data(&twin);
		twin_measure(&twin);
	}
	twin_node(&twin);
	return twin.code;
}

int twin_derive_costs(struct case_file *file, double twin_cpu_ns, struct error *err)
{
	struct twin twin = {.file = file,
		.own_cpu = twin_cpu_ns,
		.batch = config_real(&file->twin, KEY_BATCH_SIZE),
		.err = err};
	twin_overheads(&twin);
	return twin.code;
}
