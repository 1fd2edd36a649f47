/* What to change, and what may be expected of it: words tied to the keys of the configuration. */
#include "harness/analyze/verdict.h"

#include "harness/analyze/device_summary.h"
#include "harness/analyze/headroom.h"
#include "harness/analyze/recommend.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- what a faster input could still gain ----------------------------------------------------- */

static const double SATURATED = 0.95;      /* of a stage's thread time at work */
static const double WAITS_TOO_LONG = 0.10; /* of its time, that a healthy step does not starve */
static const double NOTHING = 0.01;

static bool is_device_stage(const struct stage_summary *stage)
{
	return stage_is(stage->name, STAGE_STEP) || stage_is(stage->name, STAGE_SYNC);
}

static bool verdict_names(const struct verdict *verdict, const struct stage_summary *stage)
{
	return strcmp(verdict->stage, stage->name) == 0 || strcmp(verdict->also, stage->name) == 0;
}

static bool lacks_cpu(const char *resource)
{
	static const char *const takes[] = {"cores", "quota", "steal", "external"};
	for (size_t i = 0; i < sizeof takes / sizeof takes[0]; i++)
		if (strcmp(resource, takes[i]) == 0)
			return true;
	return false;
}

struct headroom headroom_of_input(const struct point_summary *point, const struct verdict *verdict)
{
	struct headroom out = {.gain = NAN, .lacks_cpu = lacks_cpu(verdict->resource)};
	for (size_t i = 0; i < point->stage_count; i++) {
		const struct stage_summary *stage = &point->stages[i];
		if (stage_is(stage->name, STAGE_STEP))
			out.waits = stage->starved;
		if (stage_is(stage->name, STAGE_STEP) && !stage->capacity_is_lower_bound)
			out.gain = fmax(stage->capacity / point->median - 1, 0);
		if (is_device_stage(stage) ||
			(!(stage->busy >= SATURATED) && !verdict_names(verdict, stage)))
			continue;
		if (!out.tight || stage->busy > out.tight->busy)
			out.tight = stage;
	}
	return out;
}

const char *headroom_words(const struct headroom *headroom, char out[HEADROOM_BYTES])
{
	const struct stage_summary *tight = headroom->tight;
	if (headroom->lacks_cpu)
		(void)snprintf(out, HEADROOM_BYTES, "The step lacks CPU time, not input.");
	else if (!tight && headroom->waits >= WAITS_TOO_LONG)
		(void)snprintf(out, HEADROOM_BYTES,
			"The step starves %.0f %% of the time although no stage before it is "
			"saturated: the timeline (trace.json) shows when.",
			100 * headroom->waits);
	else if (!tight)
		(void)snprintf(out, HEADROOM_BYTES,
			"Healthy: the data loader keeps the step busy. Only a faster step raises "
			"throughput.");
	else if (headroom->gain >= NOTHING)
		(void)snprintf(out, HEADROOM_BYTES, "A faster %s stage could gain at most %.0f %%.",
			tight->name, 100 * headroom->gain);
	else
		(void)snprintf(out, HEADROOM_BYTES,
			"The %s stage is %.0f %% busy too: only making both it and the step faster "
			"raises throughput.",
			tight->name, 100 * tight->busy);
	return out;
}

static const double FED_WAIT_MOST = 0.03; /* a step that waits less is fed */

__attribute__((format(printf, 2, 3))) static void advise(
	struct verdict *out, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out->advice, sizeof out->advice, format, args);
	va_end(args);
}

static const char *plural(unsigned count)
{
	return count == 1 ? "" : "s";
}

/* Twice the workers, if there are cores for them; the current count if there are none. */
static unsigned more_workers(const struct point_facts *facts)
{
	const unsigned busy = facts->step_threads;
	const unsigned room = facts->cores > busy ? facts->cores - busy : 1;
	const unsigned wanted = facts->decode_workers * 2;
	return wanted < room ? wanted : room > facts->decode_workers ? room : facts->decode_workers;
}

const char *advice_cheaper_decode(const struct point_facts *facts, char out[CHEAPER_BYTES])
{
	(void)snprintf(out, CHEAPER_BYTES, "%s%ssmaller pictures",
		facts->may_be_jpeg ? "codec.jpeg_scaled = on for JPEG, " : "",
		facts->may_be_png ? "codec.png = fast for PNG, " : "");
	return out;
}

unsigned advice_fewer_workers(const struct point_facts *facts)
{
	const unsigned left =
		facts->cores > facts->step_threads ? facts->cores - facts->step_threads : 1;
	return facts->cores > 0 && facts->decode_workers > left ? left : 0;
}

static void advise_decode_cpu(
	const struct evidence_base *base, const struct binding *binding, struct verdict *out)
{
	const struct point_facts *facts = base->facts;
	const struct stage_summary *decode = &base->point->stages[binding->stage];
	const unsigned workers = more_workers(facts);
	char fed[UNITS_BYTES];
	char limit[UNITS_BYTES];
	(void)units_format_count(decode->capacity * workers / fmax(facts->decode_workers, 1), fed);
	if (workers == facts->decode_workers) {
		char steps[UNITS_BYTES] = "";
		char cheaper[CHEAPER_BYTES];
		if (facts->step_threads > 0)
			(void)snprintf(steps, sizeof steps, " and %u step thread%s",
				facts->step_threads, plural(facts->step_threads));
		advise(out,
			"all %u cores are in use by %u decode worker%s%s: more workers will not "
			"help. Make decoding cheaper (%s) or add cores",
			facts->cores, facts->decode_workers, plural(facts->decode_workers), steps,
			advice_cheaper_decode(facts, cheaper));
		return;
	}
	const size_t next = binding_next_capacity(base->point, binding->stage);
	if (next == base->point->stage_count) {
		advise(out, "decode.workers = %u: decode could feed up to ~%s samples/s", workers,
			fed);
		return;
	}
	(void)units_format_count(base->point->stages[next].capacity, limit);
	advise(out,
		"decode.workers = %u: decode could feed up to ~%s samples/s if the cores allow; "
		"then %s is the bottleneck, at %s%s",
		workers, fed, base->point->stages[next].name,
		base->point->stages[next].capacity_is_lower_bound ? "or above " : "", limit);
}

static void advise_cores(const struct evidence_base *base, struct verdict *out)
{
	const struct point_facts *facts = base->facts;
	const unsigned fewer = advice_fewer_workers(facts);
	advise(out,
		"%u core%s for %u decode worker%s, %u read thread%s and %u computing step "
		"thread%s: %s = %u will not be slower; more cores will be faster",
		facts->cores, plural(facts->cores), facts->decode_workers,
		plural(facts->decode_workers), facts->read_threads, plural(facts->read_threads),
		facts->step_threads, plural(facts->step_threads),
		fewer > 0 || facts->step_threads < 2 ? "decode.workers" : "step.threads",
		fewer > 0                 ? fewer
		: facts->step_threads < 2 ? (facts->decode_workers + 1) / 2
					  : facts->step_threads / 2);
}

/* Cores that all stages except the step use. */
static double cores_of_input(const struct point_summary *point)
{
	double used = 0;
	for (size_t i = 0; i < point->stage_count; i++) {
		const struct stage_summary *s = &point->stages[i];
		if (!stage_is(s->name, STAGE_STEP) && !isnan(s->cpu))
			used += s->busy * s->workers * s->cpu;
	}
	return used;
}

/* Step threads that leave the data loader the cores that it uses, and decode workers that are
 * enough to use them. */
static void advise_step_cores(const struct evidence_base *base, struct verdict *out)
{
	const struct point_facts *facts = base->facts;
	const double input = cores_of_input(base->point);
	const unsigned fit = (unsigned)fmax(round(facts->cores - input), 1);
	const unsigned enough = (unsigned)fmax(ceil(input), 1);
	char threads[48] = "";
	char workers[48] = "";
	if (fit < facts->step_threads)
		(void)snprintf(threads, sizeof threads, "step.threads = %u", fit);
	if (enough < facts->decode_workers)
		(void)snprintf(workers, sizeof workers, "%sdecode.workers = %u",
			threads[0] ? " and " : "", enough);
	advise(out,
		"%u step thread%s and %u decode worker%s share %u core%s, and the data loader uses "
		"%.1f of them: %s%s%s",
		facts->step_threads, plural(facts->step_threads), facts->decode_workers,
		plural(facts->decode_workers), facts->cores, plural(facts->cores), input, threads,
		workers, threads[0] || workers[0] ? "" : "more cores will help");
}

/* Recommends as many cores as the threads want, up to what the node has; and what to run where
 * nobody may raise the quota. */
static void advise_quota(const struct evidence_base *base, struct verdict *out)
{
	const struct point_summary *point = base->point;
	const struct findings *f = base->findings;
	const double wanted = ceil(cause_cores_wanted(point));
	const double most = fmax(fmin(wanted, base->facts->cores), ceil(point->quota_cores));
	const unsigned fit = (unsigned)fmax(ceil(point->quota_cores), 1);
	char quota[QUOTA_NAME_BYTES];
	char gain[64] = "";
	char fewer[80] = "";
	if (f)
		(void)snprintf(gain, sizeof gain, ": up to %.3g times the throughput (predicted)",
			1 + f->unthrottled);
	if (base->facts->decode_workers > fit)
		(void)snprintf(
			fewer, sizeof fewer, "; within it decode.workers = %u is enough", fit);
	advise(out, "raise %s to %.0f core%s%s%s", cause_quota_name(point, quota), most,
		most == 1 ? "" : "s", gain, fewer);
}

static void advise_storage(
	const struct evidence_base *base, const struct cause *cause, struct verdict *out)
{
	const unsigned depth = base->facts->read_depth;
	const unsigned threads = base->facts->read_threads;
	if (advice_of_limits(
		    base->point, base->facts, cause->resource, out->advice, sizeof out->advice))
		return;
	if (strcmp(cause->resource, "latency") == 0)
		advise(out,
			"read.depth = %u, or more read.threads: storage throughput still rises "
			"with the files in flight",
			depth * 2);
	else if (strcmp(cause->resource, "unknown") == 0)
		advise(out,
			"sweep read.depth=%u,%u (with pread read.threads=%u,%u): if throughput "
			"rises, reading is latency-bound; if not, storage is saturated",
			depth, depth * 2, threads, threads * 2);
	else if (!recommend_without_keys(
			 STAGE_READ_NAME, cause->resource, out->advice, sizeof out->advice))
		advise(out, "not enough was measured to name the resource that read lacks");
}

/* Advice for a real device; false: there is none. */
static bool advise_device(
	const struct evidence_base *base, const struct cause *cause, struct verdict *out)
{
	const struct device_view view = device_view_of(base->repeats, base->count);
	if (!view.any)
		return false;
	if (strcmp(cause->resource, "throttled") == 0)
		advise(out,
			"cool the device or raise its power limit: nothing in the input pipeline "
			"will help");
	else if (strcmp(cause->resource, "copy") == 0)
		advise(out, "upload.mode = copy: a stage of its own copies while the previous step "
			    "computes; augment.type = uint8 copies a quarter of the bytes");
	else if (strcmp(cause->resource, "launch") == 0)
		advise(out,
			"step.graph = on launches a whole step at once; a larger batch.size makes "
			"fewer, larger kernels");
	else
		return false;
	return true;
}

static double step_starved(const struct point_summary *point)
{
	const struct stage_summary *step = summary_stage(point, STAGE_STEP_NAME);
	return step ? step->starved : 0;
}

static void advise_step(
	const struct evidence_base *base, const struct cause *cause, struct verdict *out)
{
	if (strcmp(cause->resource, "imbalance") == 0) {
		advise(out,
			"find what slows that device (its clocks and temperature, another process "
			"on it, its place on the bus): all devices wait for it in every step");
		return;
	}
	if (advise_device(base, cause, out))
		return;
	const double waits = step_starved(base->point);
	const struct headroom headroom = headroom_of_input(base->point, out);
	if (strcmp(cause->resource, "compute") == 0 && step_is_late(base))
		advise(out, "the data loader keeps up, but the device's thread is late: leave it a "
			    "core (fewer decode.workers, no other processes), and measure again");
	else if (strcmp(cause->resource, "compute") == 0 && waits > FED_WAIT_MOST)
		advise(out,
			"the step still starves %.1f %% of the time, although the data loader is "
			"faster on average: prefetch.depth = %u evens that out; beyond that only a "
			"faster step raises throughput",
			waits * 100, base->facts->prefetch_depth * 2);
	else if (headroom.tight && strcmp(cause->resource, "compute") == 0)
		advise(out,
			"the %s stage is %.0f %% busy too: a faster step also needs a faster %s "
			"stage",
			headroom.tight->name, headroom.tight->busy * 100, headroom.tight->name);
	else if (base->facts->step_emulated)
		advise(out,
			"the data loader keeps the emulated device busy, with capacity to spare; a "
			"faster step.device shows how much further it reaches");
	else if (strcmp(cause->resource, "compute") == 0)
		advise(out,
			"the data loader keeps the step busy, with capacity to spare; %s may help "
			"the step",
			device_view_of(base->repeats, base->count).any
				? "a lower step.precision or a larger batch.size"
				: "a larger batch.size or more step.threads");
	else
		advise(out, "the step does not get enough CPU time: set step.threads and "
			    "decode.workers so that both fit the cores");
}

static void advise_depth(
	const struct evidence_base *base, const struct binding *binding, struct verdict *out)
{
	if (stage_is(out->stage, STAGE_PREFETCH))
		advise(out,
			"prefetch.depth = %u: uneven %s and %s times cancel out over more batches "
			"(or batch.order = as-completed)",
			base->facts->prefetch_depth * 2,
			base->point->stages[binding->queue_above].name,
			base->point->stages[binding->queue_above + 1].name);
	else
		advise(out,
			"read.depth = %u: uneven read and decode times cancel out over more files",
			base->facts->read_depth * 2);
}

static void advise_resource(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	const char *stage = base->point->stages[binding->stage].name;
	if (strcmp(cause->resource, "quota") == 0)
		advise_quota(base, out);
	else if (strcmp(cause->resource, "steal") == 0)
		advise(out,
			"the host gives this machine's CPUs to others, and no setting helps: ask "
			"for dedicated cores, or move to a host that is not overcommitted");
	else if (strcmp(cause->resource, "external") == 0)
		advise(out, "stop the other processes, or keep cores for this job (run.affinity, "
			    "cgroup cpuset)");
	else if (strcmp(cause->resource, "lock") == 0)
		advise(out,
			"more %s workers will not help while they wait for one lock: do less under "
			"it",
			stage);
	else if (stage_is(stage, STAGE_STEP) && strcmp(cause->resource, "cores") == 0)
		advise_step_cores(base, out);
	else if (stage_is(stage, STAGE_STEP))
		advise_step(base, cause, out);
	else if (stage_is(stage, STAGE_SYNC))
		advise(out,
			"a larger batch.size exchanges the same gradients for more samples; a "
			"faster link between the devices helps too; a faster data loader does not");
	else if (strcmp(cause->resource, "cores") == 0)
		advise_cores(base, out);
	else if (strcmp(cause->resource, "cpu") == 0 && stage_is(stage, STAGE_DECODE))
		advise_decode_cpu(base, binding, out);
	else if (strcmp(cause->resource, "cpu") == 0)
		advise(out, "the reader threads are CPU-bound: raise read.threads, or read larger "
			    "files");
	else if (stage_is(stage, STAGE_READ))
		advise_storage(base, cause, out);
	else if (strcmp(cause->resource, "copy") == 0 &&
		 device_view_of(base->repeats, base->count).any)
		advise(out,
			"copying to the device is the bottleneck: upload.memory = pinned where it "
			"is not, augment.type = uint8 for a quarter of the bytes, augment.device = "
			"gpu where crops are small");
	else if (strcmp(cause->resource, "copy") == 0)
		advise(out,
			"copying batches is the bottleneck: upload.mode = none, or augment.type = "
			"uint8 for a quarter of the bytes");
	else
		advise(out, "not enough was measured to name the resource that %s lacks", stage);
}

void advice_write(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	if (binding->depth)
		advise_depth(base, binding, out);
	else
		advise_resource(base, binding, cause, out);
}
