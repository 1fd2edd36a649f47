/* A job that was observed from outside (mlbench observe --json, docs/observe.schema.json).  Of the document only numbers are
 * taken, and words that are ours. */
#include "harness/analyze/limit_kinds.h"
#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/fit/source.h"
#include "harness/record/measurement.h"
#include "harness/report/columns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBSERVED_BYTES_MAX = 64 << 20, OBSERVED_CLASS_SAMPLES = 100, OBSERVED_LOOKS_LEAST = 30 };

static const double OBSERVED_IDLE =
	0.1; /* of a loader's time: locks of an idle worker are its queue's */
static const double OBSERVED_STEADY = 65536; /* bytes per second that memory may grow by */
static const double OBSERVED_OTHERS = 0.25;  /* cores: fewer take none from the job */
static const double OBSERVED_FULL = 0.8;     /* of a quota, on average */
static const double OBSERVED_READS = 0.05;   /* of a thread's time in calls on files: it reads */
static const double NS_PER_SECOND = 1e9;

/* Processes of one role: sums over them, each weighed by how long it was seen. */
struct observed_side {
	double count;      /* as many as were there at a time */
	double cpu, queue; /* cores, of all; queue: NAN where the kernel does not tell it of one */
	double read, stored; /* bytes per second, of all */
	double looks;
	double runs, file, idle, output, lock, sleep, device; /* shares of the looks */
};

struct observed {
	const json_t *document;
	double seconds;
	double loader_s; /* that its loaders were seen for: less where all began meanwhile, and none ended */
	struct observed_side trainer, loader, whole;
	double readers; /* threads that read files, of a job in one process */
	double turns; /* threads of it that take turns at its interpreter's lock, and count as readers */
	/* Of ranks without loaders: how many, and the one that waits least, which sets the pace of all; 0: it is no such job. */
	size_t ranks;
	double slow_rank;
	double files_per_s;
	bool hidden; /* of a process at work neither waits nor open files were seen */
};

/* --- reading it in ------------------------------------------------------------------------------ */

static double observed_or_zero(const json_t *row, const char *path)
{
	const double value = column_number(row, path);
	return isfinite(value) && value > 0 ? value : 0;
}

/* Shares of some acts, summed. */
static double observed_acts(const json_t *row, const char *const *acts, size_t count)
{
	const json_t *shares = column_value(row, "acts");
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += observed_or_zero(shares, acts[i]);
	return sum;
}

static void observed_add_looks(struct observed_side *side, const json_t *process)
{
	const double looks = observed_or_zero(process, "looks");
	static const char *const files[] = {
		"read", "write", "sync", "fault", "held", "ring", "file"};
	static const char *const locks[] = {"lock", "file_lock", "semaphore", "condition", "turn"};
	static const char *const inputs[] = {"input", "network", "poll"};
	side->looks += looks;
	side->runs += looks * observed_or_zero(process, "acts.runs");
	side->file += looks * observed_acts(process, files, COUNT(files));
	side->idle += looks * observed_acts(process, inputs, COUNT(inputs));
	side->output += looks * observed_or_zero(process, "acts.output");
	side->lock += looks * observed_acts(process, locks, COUNT(locks));
	side->sleep += looks * observed_or_zero(process, "acts.time");
	side->device += looks * observed_or_zero(process, "acts.device");
}

static void observed_add_process(struct observed *in, const json_t *process)
{
	const char *role = column_text(process, "role");
	const double watched = strcmp(role, "loader") == 0 ? in->loader_s : in->seconds;
	const double share = fmin(1, observed_or_zero(process, "seconds") / watched);
	struct observed_side *side = strcmp(role, "trainer") == 0  ? &in->trainer
				     : strcmp(role, "loader") == 0 ? &in->loader
				     : strcmp(role, "whole") == 0  ? &in->whole
								   : NULL;
	if (!side || (side == &in->whole && in->ranks &&
			     fabs(column_number(process, "pid") - in->slow_rank) > 0.5))
		return;
	in->hidden = in->hidden || column_text(process, "unknown")[0];
	side->count += share;
	side->cpu += share * observed_or_zero(process, "cpu");
	side->queue += share * column_number(process, "run_queue_wait");
	side->read += share * observed_or_zero(process, "read_bytes_per_s");
	side->stored += share * observed_or_zero(process, "storage_read_bytes_per_s");
	observed_add_looks(side, process);
}

static void observed_end_side(struct observed_side *side)
{
	double *const shares[] = {&side->runs, &side->file, &side->idle, &side->output, &side->lock,
		&side->sleep, &side->device};
	for (size_t i = 0; i < COUNT(shares); i++)
		*shares[i] = side->looks > 0 ? *shares[i] / side->looks : NAN;
}

static double observed_loader_seconds(const struct observed *in)
{
	const json_t *row;
	size_t i;
	double most = 0;
	json_array_foreach(column_value(in->document, "processes"), i, row)
	{
		if (strcmp(column_text(row, "role"), "loader") != 0)
			continue;
		if (json_is_true(json_object_get(row, "ended")))
			return in->seconds;
		most = fmax(most, observed_or_zero(row, "seconds"));
	}
	return most > 0 ? most : in->seconds;
}

static void observed_find_slow_rank(struct observed *in)
{
	const json_t *ranks = column_value(in->document, "ranks");
	const json_t *row;
	size_t i;
	double least = INFINITY;
	json_array_foreach(ranks, i, row)
	{
		if (!isnan(column_number(row, "loading")))
			return;
		if (column_number(row, "waits") < least) {
			least = column_number(row, "waits");
			in->slow_rank = column_number(row, "pid");
		}
	}
	in->ranks = isfinite(least) ? json_array_size(ranks) : 0;
}

/* Programs that live for a moment each are one process that does it all. */
static void observed_take_programs(struct observed *in)
{
	const json_t *programs = column_value(in->document, "programs");
	if (!json_is_object(programs))
		return;
	const double looks = observed_or_zero(programs, "looks");
	in->whole = (struct observed_side){.count = 1,
		.cpu = observed_or_zero(programs, "cpu"),
		.read = observed_or_zero(programs, "read_bytes_per_s"),
		.looks = looks,
		.runs = looks * observed_or_zero(programs, "runs"),
		.file = looks * (observed_or_zero(programs, "reads") +
					observed_or_zero(programs, "writes")),
		.idle = looks * observed_or_zero(programs, "waits")};
}

/* Threads of one process that take turns at its interpreter's lock: those beside its first that compute like the busiest of them. */
static double observed_turns(const json_t *document)
{
	static const double alike = 0.3;
	const json_t *row;
	size_t i;
	double most = 0;
	double count = 0;
	if (strcmp(column_text(document, "verdict.resource"), "gil") != 0)
		return 0;
	for (int pass = 0; pass < 2; pass++)
		json_array_foreach(column_value(document, "threads"), i, row)
		{
			const double cpu = observed_or_zero(row, "cpu");
			if (!(fabs(column_number(row, "pid") - column_number(row, "tid")) > 0.5))
				continue;
			most = pass == 0 ? fmax(most, cpu) : most;
			count += pass == 1 && cpu > 0 && cpu >= alike * most;
		}
	return count;
}

static void observed_sum(struct observed *in, const json_t *document)
{
	const json_t *row;
	size_t i;
	*in = (struct observed){.document = document,
		.seconds = column_number(document, "observed.seconds"),
		.files_per_s = column_number(document, "files_per_s.value")};
	in->loader_s = observed_loader_seconds(in);
	observed_find_slow_rank(in);
	json_array_foreach(column_value(document, "processes"), i, row)
		observed_add_process(in, row);
	json_array_foreach(column_value(document, "threads"), i, row) in->readers +=
		observed_or_zero(row, "acts.read") + observed_or_zero(row, "acts.ring") +
			observed_or_zero(row, "acts.file") >=
		OBSERVED_READS;
	in->turns = observed_turns(document);
	in->readers = fmax(in->readers, in->turns);
	observed_take_programs(in);
	observed_end_side(&in->trainer);
	observed_end_side(&in->loader);
	observed_end_side(&in->whole);
}

/* --- what follows from it ----------------------------------------------------------------------- */

static void observed_add(struct findings *out, enum finding_id id, enum finding_how how,
	double value, const char *why)
{
	findings_add(out, id, SOURCE_OBSERVED, how, value, NAN, NAN, why);
}

/* A share of so many looks, times a factor: with the interval that so many looks leave. */
static void observed_add_share(struct findings *out, enum finding_id id, double share, double looks,
	double factor, const char *why)
{
	if (looks < OBSERVED_LOOKS_LEAST || !isfinite(share))
		return;
	share = fmin(1, share);
	const double wide = fmax(2 * sqrt(share * (1 - share) / looks), 1 / looks);
	findings_add(out, id, SOURCE_OBSERVED, FINDING_DERIVED, share * factor,
		fmax(0, share - wide) * factor, fmin(1, share + wide) * factor, why);
}

/* The share of a role's CPU samples that fell into the classes; NAN: too few samples. */
static double observed_class_share(
	const struct observed *in, const char *role, const char *const *classes, size_t count)
{
	const json_t *row;
	size_t i;
	double sum = 0;
	if (!(column_number(in->document, "cpu_time.samples") >= OBSERVED_CLASS_SAMPLES))
		return NAN;
	json_array_foreach(column_value(in->document, "cpu_time.classes"), i,
		row) for (size_t k = 0; k < count;
			  k++) if (strcmp(column_text(row, "class"), classes[k]) == 0) sum +=
		observed_or_zero(row, role);
	return fmin(1, sum);
}

static void observed_count(const struct observed *in, struct findings *out)
{
	const double trainers = fmax(1, round(in->trainer.count));
	if (in->loader.count >= 0.5) {
		observed_add(out, FINDING_RANKS, trainers > 1 ? FINDING_ASSUMED : FINDING_DERIVED,
			trainers, "processes that others load for");
		if (trainers > 1)
			findings_note(out,
				"%.0f processes that others load for are taken for ranks of one training; if each trains on "
				"its own, observe one of them, by its process ID",
				trainers);
		observed_add(out, FINDING_WORKERS, FINDING_DERIVED,
			fmax(1, round(in->loader.count / trainers)),
			"processes that load for one trainer, as many as there were at a time");
		return;
	}
	if (in->whole.count < 0.5)
		return;
	observed_add(out, FINDING_RANKS, FINDING_ASSUMED, 1, "no process loads for another one");
	if (in->ranks)
		findings_note(out,
			"%zu ranks wait for each other: the case is of process %.0f alone, which waits least and sets the pace of all",
			in->ranks, in->slow_rank);
	if (in->readers >= 2)
		observed_add(out, FINDING_WORKERS, FINDING_ASSUMED, in->readers,
			in->turns >= 2
				? "threads of the one process that take turns at its interpreter's lock"
				: "threads of the one process that read files");
	else
		observed_add(out, FINDING_WORKERS, FINDING_ASSUMED, 0,
			"no process loads for another one, and one thread at most reads files");
}

/* Workers that come and go: how many there were at a time, and how often they began anew. */
static void observed_life(const json_t *document, double trainers, struct findings *out)
{
	static const char why[] =
		"loader workers that ended and began again while the job was observed";
	const double workers = column_number(document, "life.workers");
	const double period = column_number(document, "life.period_s");
	const double start = column_number(document, "life.start_s");
	if (!(column_number(document, "life.generations") >= 1) || !(workers > 0))
		return;
	out->known[FINDING_WORKERS] = (struct finding){.value = NAN, .low = NAN, .high = NAN};
	observed_add(out, FINDING_WORKERS, FINDING_DERIVED, fmax(1, round(workers / trainers)),
		"loader workers that there were at a time, of those that came and went");
	if (!(period > 0) || !(start > 0))
		return;
	observed_add(out, FINDING_EPOCH_TIME, FINDING_DERIVED, period * NS_PER_SECOND, why);
	observed_add(out, FINDING_EPOCH_START, FINDING_DERIVED, start * NS_PER_SECOND, why);
}

static void observed_rates(const struct observed *in, struct findings *out)
{
	const struct observed_side *side = in->loader.count >= 0.5 ? &in->loader : &in->whole;
	findings_add(out, FINDING_THROUGHPUT, SOURCE_OBSERVED, FINDING_DERIVED, in->files_per_s,
		column_number(in->document, "files_per_s.low"),
		column_number(in->document, "files_per_s.high"),
		"bytes read over the mean size of the files seen open: if each is read whole, once, and is one sample");
	if (side->read > 0) {
		observed_add(out, FINDING_READ_RATE, FINDING_MEASURED, side->read, NULL);
		observed_add(out, FINDING_READ_STORED, FINDING_DERIVED,
			fmin(1, side->stored / side->read),
			"bytes from block devices and network file systems over bytes read; FUSE counts as neither");
	}
	if (side->cpu + side->queue > 0)
		observed_add(out, FINDING_CPU_QUEUE, FINDING_DERIVED,
			side->queue / (side->cpu + side->queue),
			"run-queue wait of those that load over their run-queue wait and CPU time");
}

/* What the files are that were seen open most often, of those that are read. */
static enum finding_data observed_data(const json_t *document)
{
	const json_t *row;
	const json_t *most = NULL;
	size_t i;
	json_array_foreach(column_value(document, "files"), i, row)
	{
		if (json_is_true(json_object_get(row, "written")) ||
			strcmp(column_text(row, "kind"), "other") == 0)
			continue;
		if (!most || observed_or_zero(row, "looks") > observed_or_zero(most, "looks"))
			most = row;
	}
	return most ? finding_data_of(
			      column_text(most, "kind"), observed_or_zero(most, "mean_bytes"))
		    : DATA_UNKNOWN;
}

static void observed_files(
	const struct observed *in, struct findings *out, struct source_more *more)
{
	static const struct {
		const char *kind, *format;
	} formats[] = {{"jpg", "jpeg"}, {"jpeg", "jpeg"}, {"png", "png"}, {"ppm", "raw"}};
	const json_t *row;
	const json_t *most = NULL;
	size_t i;
	double files = 0;
	double bytes = 0;
	double inverse = 0;
	json_array_foreach(column_value(in->document, "files"), i, row)
	{
		const double count = observed_or_zero(row, "files");
		if (json_is_true(json_object_get(row, "written")) ||
			strcmp(column_text(row, "kind"), "other") == 0)
			continue;
		files += count;
		bytes += count * observed_or_zero(row, "mean_bytes");
		inverse += count / observed_or_zero(row, "harmonic_mean_bytes");
		if (!most || observed_or_zero(row, "looks") > observed_or_zero(most, "looks"))
			most = row;
	}
	const double low = inverse > 0 && isfinite(inverse) ? files / inverse : bytes / files;
	if (files >= 5 && bytes > 0)
		findings_add(out, FINDING_FILE_BYTES, SOURCE_OBSERVED, FINDING_DERIVED,
			sqrt(low * bytes / files), low, bytes / files,
			"of the files seen open, of which large ones may be open for longer and be seen more often");
	for (size_t k = 0; most && k < COUNT(formats); k++)
		if (strcmp(column_text(most, "kind"), formats[k].kind) == 0)
			(void)snprintf(more->format, sizeof more->format, "%s", formats[k].format);
}

/* Of one sample, where processes load for trainers: how long it keeps a worker, and with what. */
static void observed_loading(const struct observed *in, struct findings *out)
{
	static const char *const reading[] = {"reading"};
	static const char *const decoding[] = {"decoding"};
	static const char *const resizing[] = {"resize"};
	const struct observed_side *l = &in->loader;
	/* How long a worker has for a sample: all that it does between two. */
	const double slot = l->count / in->files_per_s * NS_PER_SECOND;
	const double cpu = l->cpu / in->files_per_s * NS_PER_SECOND;
	const bool idle = l->idle + l->output >= OBSERVED_IDLE;
	observed_add(out, FINDING_CPU_SAMPLE, FINDING_DERIVED, cpu,
		"CPU time of all loader processes over the samples");
	observed_add(out, FINDING_CPU_READ, FINDING_DERIVED,
		cpu * observed_class_share(in, "loader", reading, 1),
		"share of the loaders' CPU samples in the kernel's read path");
	observed_add(out, FINDING_CPU_DECODE, FINDING_DERIVED,
		cpu * observed_class_share(in, "loader", decoding, 1),
		"share of the loaders' CPU samples in functions of codecs");
	observed_add(out, FINDING_CPU_AUGMENT, FINDING_DERIVED,
		cpu * observed_class_share(in, "loader", resizing, 1),
		"share of the loaders' CPU samples in functions that resize");
	observed_add_share(out, FINDING_READ_TIME, l->file, l->looks, slot,
		"share of the looks that found a loader in a call on a file, of its time for a sample");
	if (l->sleep + (idle ? 0 : l->lock) > 0.02)
		observed_add_share(out, FINDING_LOADER_WAIT, l->sleep + (idle ? 0 : l->lock),
			l->looks, slot,
			"share of the looks that found a loader asleep or at a lock, of its time for a sample");
}

/* Of a job in one process, by the classes of its CPU time alone. */
static void observed_whole(const struct observed *in, struct findings *out)
{
	static const char *const loading[] = {
		"decoding", "resize", "reading", "copy", "libc", "python"};
	const struct observed_side *w = &in->whole;
	const double cpu = w->cpu / in->files_per_s * NS_PER_SECOND;
	const double share = observed_class_share(in, "whole", loading, COUNT(loading));
	const double busy = w->runs + w->file;
	findings_add(out, FINDING_CPU_SAMPLE, SOURCE_OBSERVED, FINDING_ASSUMED, cpu * share, NAN,
		NAN,
		"CPU time of the process in codecs, resizing, reading, copies and the interpreter: loading and "
		"training are one process");
	observed_add(out, FINDING_CPU_DECODE, FINDING_DERIVED,
		cpu * observed_class_share(in, "whole", loading, 1),
		"share of the process's CPU samples in functions of codecs");
	observed_add(out, FINDING_CPU_AUGMENT, FINDING_DERIVED,
		cpu * observed_class_share(in, "whole", &loading[1], 1),
		"share of the process's CPU samples in functions that resize");
	observed_add_share(out, FINDING_READ_TIME, w->file, w->looks,
		w->count / in->files_per_s * NS_PER_SECOND,
		"share of the looks that found the process in a call on a file");
	if (busy > 0 && isfinite(share) && in->readers < 2)
		findings_add(out, FINDING_STEP_WAIT_SHARE, SOURCE_OBSERVED, FINDING_ASSUMED,
			fmin(1, w->runs * share + w->file), NAN, NAN,
			"loading is what is spent in codecs, resizing, copies, the interpreter and on files; the rest "
			"of the process is its step");
}

static double observed_gpu_busy(const json_t *document)
{
	const json_t *row;
	size_t i;
	double sum = 0;
	double count = 0;
	json_array_foreach(column_value(document, "gpus"), i, row)
	{
		const double busy = column_number(row, "busy");
		sum += isfinite(busy) ? busy : 0;
		count += isfinite(busy);
	}
	return count > 0 ? sum / count : NAN;
}

static void observed_step(const struct observed *in, struct findings *out)
{
	static const char *const loading[] = {"decoding", "resize", "reading"};
	const struct observed_side *t = &in->trainer;
	const double gpu = observed_gpu_busy(in->document);
	/* A step that the job's own device takes waits for no core. */
	const double queued = t->queue > 0 ? fmin(t->runs, t->queue / t->count) : 0;
	const double waits = t->idle + t->lock + queued;
	observed_add(out, FINDING_DEVICE_BUSY, FINDING_MEASURED, gpu, NULL);
	if (t->count < 0.5)
		return;
	observed_add(out, FINDING_TRAINER_CORES, FINDING_MEASURED, t->cpu / t->count, NULL);
	observed_add(out, FINDING_TRAINER_LOADS, FINDING_DERIVED,
		observed_class_share(in, "trainer", loading, COUNT(loading)),
		"share of the trainer's CPU samples in reads, codecs and functions that resize");
	if (isfinite(gpu) && waits > 1 - gpu)
		observed_add(out, FINDING_STEP_WAIT_SHARE, FINDING_DERIVED, 1 - gpu,
			"the GPU is idle so long: a trainer that waits for it looks like one that waits for data");
	else
		observed_add_share(out, FINDING_STEP_WAIT_SHARE, waits, t->looks, 1,
			"share of the looks that found the trainer waiting for data, at a lock or for a core");
}

static void observed_mounts(const json_t *document, struct findings *out)
{
	const json_t *mount;
	const json_t *call;
	size_t i;
	size_t k;
	double calls = 0;
	double seconds = 0;
	json_array_foreach(column_value(document, "mounts"), i, mount)
		json_array_foreach(column_value(mount, "calls"), k, call)
	{
		const double rate = observed_or_zero(call, "calls_per_s");
		if (strcmp(column_text(call, "name"), "READ") != 0 || rate <= 0)
			continue;
		calls += rate;
		seconds += rate * observed_or_zero(call, "execute_s");
	}
	if (calls > 0 && seconds > 0)
		observed_add(out, FINDING_READ_LATENCY, FINDING_MEASURED,
			seconds / calls * NS_PER_SECOND, NULL);
}

/* Cores that processes beside the job kept busy. */
static double observed_others(const json_t *document)
{
	const json_t *processes = column_value(document, "processes");
	const double seconds = column_number(document, "observed.seconds");
	double others = column_number(document, "observed.node_busy_cores");
	for (size_t i = 0; i < json_array_size(processes); i++) {
		const json_t *process = json_array_get(processes, i);
		const double cpu =
			column_number(process, "cpu") * column_number(process, "seconds");
		others -= isnan(cpu) ? 0 : cpu / seconds;
	}
	return others;
}

static void observed_node(const json_t *document, struct findings *out)
{
	const double growth = column_number(document, "resident_growth_per_s");
	const double others = observed_others(document);
	observed_add(out, FINDING_CORES, FINDING_MEASURED,
		column_number(document, "observed.allowed_cpus"), NULL);
	observed_add(out, FINDING_CPU_QUOTA, FINDING_MEASURED,
		column_number(document, "observed.quota_cores"), NULL);
	observed_add(out, FINDING_OTHERS, FINDING_DERIVED, others > 0 || isnan(others) ? others : 0,
		"cores of the node that were busy less those of the job");
	if (fabs(growth) > OBSERVED_STEADY)
		observed_add(out, FINDING_MEMORY_GROWTH, FINDING_MEASURED, growth, NULL);
}

/* Of a job in one process: what most of its time goes into. */
static const char *observed_stage_of_whole(const struct findings *out)
{
	const struct finding *loading = &out->known[FINDING_STEP_WAIT_SHARE];
	return loading->how == FINDING_UNKNOWN ? ""
	       : loading->value >= 0.5         ? STAGE_DECODE_NAME
					       : STAGE_STEP_NAME;
}

/* Of a job whose loader and step are nearly balanced: what most of the loader's time goes into, or the step. */
static const char *observed_stages_of_both(const struct findings *out)
{
	const struct finding *read = &out->known[FINDING_READ_TIME];
	const struct finding *cpu = &out->known[FINDING_CPU_SAMPLE];
	const bool reads = read->how != FINDING_UNKNOWN && cpu->how != FINDING_UNKNOWN &&
			   read->value > cpu->value;
	return reads ? STAGE_READ_NAME " or " STAGE_STEP_NAME
		     : STAGE_DECODE_NAME " or " STAGE_STEP_NAME;
}

/* The words of `observe` in those of a diagnosis, as far as one operating point tells. */
static void observed_verdict(const json_t *document, struct findings *out)
{
	/* What looks the same from outside, at one operating point: all that makes calls on files take long, and all that keeps a
	 * trainer on its cores. */
	static const char calls_on_files[] = "latency or full or cache or shared or stalls";
	static const char on_cores[] = "compute or launch";
	static const char taken_cores[] = "cores or external";
	static const char any_cores[] = "quota or cores or external";
	/* Resources that a diagnosis has other words for. */
	static const struct {
		const char *seen, *resource;
	} words[] = {{"gil", "lock"}, {"restarts", "startup"}, {"affinity", "cores"},
		{"threads", "cores"}, {"network", "exchange"}};
	const bool workers = out->known[FINDING_WORKERS].value >= 1;
	const struct {
		const char *seen, *stage;
	} stages[] = {{"loader", STAGE_DECODE_NAME}, {STAGE_READ_NAME, STAGE_READ_NAME},
		{STAGE_STEP_NAME, STAGE_STEP_NAME}, {"process", observed_stage_of_whole(out)},
		/* What the trainer computes on its own thread is its step's, where others load; else it is loading. */
		{"trainer", workers ? STAGE_STEP_NAME : STAGE_DECODE_NAME},
		{STAGE_SYNC_NAME, STAGE_SYNC_NAME},
		{"loader and step", observed_stages_of_both(out)}};
	const char *seen = column_text(document, "verdict.stage");
	const char *resource = column_text(document, "verdict.resource");
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(resource, words[i].seen) == 0)
			resource = words[i].resource;
	const double others = observed_others(document);
	const double quota = column_number(document, "observed.quota_cores");
	const double own = column_number(document, "observed.node_busy_cores") - others;
	const bool used_up = column_number(document, "observed.throttled_periods") >= 0.1;
	/* A job that other processes keep from using up its quota on average is not limited by the quota alone. */
	const bool both = own < OBSERVED_FULL * quota && others >= OBSERVED_OTHERS;
	for (size_t i = 0; i < COUNT(stages); i++) {
		const char *stage = stages[i].stage;
		if (strcmp(seen, stages[i].seen) != 0 || !stage[0])
			continue;
		if (limit_is_several(stage))
			resource = "";
		else if (strcmp(resource, "cores") == 0 && used_up)
			resource =
				both && strcmp(stage, STAGE_DECODE_NAME) == 0 ? any_cores : "quota";
		else if (strcmp(resource, "cores") == 0 && strcmp(stage, STAGE_DECODE_NAME) == 0 &&
			 others >= OBSERVED_OTHERS)
			resource = taken_cores;
		else if (strcmp(resource, "latency or device") == 0)
			resource = calls_on_files;
		else if (strcmp(stage, STAGE_STEP_NAME) == 0 && strcmp(resource, "cpu") == 0)
			resource = on_cores;
		else if (!limit_kind_find(stage, resource))
			resource = "unknown";
		const char *certainty = column_text(document, "verdict.certainty");
		out->confidence = strcmp(certainty, "likely") == 0     ? 0.8
				  : strcmp(certainty, "possible") == 0 ? 0.5
								       : out->confidence;
		(void)snprintf(out->stage, sizeof out->stage, "%s", stage);
		(void)snprintf(out->resource, sizeof out->resource, "%s", resource);
	}
}

static void observed_environment(const json_t *document, struct case_environment *out)
{
	const json_t *environment = column_value(document, "environment");
	for (int i = 0; i < CASE_ENVIRONMENT_COUNT; i++) {
		const enum case_environment_id id = (enum case_environment_id)i;
		const json_t *value = json_object_get(environment, case_environment_name(id));
		if (case_environment_is_text(id))
			case_environment_word(out->of[id].text,
				json_is_string(value) ? json_string_value(value) : "");
		else if (json_is_number(value))
			out->of[id].number = json_number_value(value);
		else if (json_is_string(value) && strcmp(json_string_value(value), "none") == 0)
			out->of[id].number = INFINITY;
	}
	if (isnan(out->of[CASE_ENVIRONMENT_CORES].number))
		out->of[CASE_ENVIRONMENT_CORES].number =
			column_number(document, "observed.allowed_cpus");
	if (isnan(out->of[CASE_ENVIRONMENT_CPU_QUOTA].number))
		out->of[CASE_ENVIRONMENT_CPU_QUOTA].number =
			column_number(document, "observed.quota_cores");
}

/* --- the source --------------------------------------------------------------------------------- */

/* Another user's job: who loads for whom, and what each waits for, was not seen, so that nothing follows from looks. */
static void observed_hidden(
	const struct observed *in, struct findings *out, struct source_more *more)
{
	findings_note(out,
		"what the job's processes wait for and have open was not seen, so that its loaders are not known: "
		"'mlbench observe' as their user, or as root, sees it");
	observed_node(in->document, out);
	observed_environment(in->document, &more->environment);
}

static int observed_take(const json_t *document, const char *path, struct findings *out,
	struct source_more *more, struct error *err)
{
	struct observed in;
	observed_sum(&in, document);
	out->data = observed_data(document);
	/* Files a second are no samples a second. */
	more->shards = out->data == DATA_SHARDS || out->data == DATA_ARRAYS;
	if (more->shards)
		in.files_per_s = NAN;
	if (!(in.seconds > 0) || !json_is_array(column_value(document, "processes")))
		return error_set(
			err, -EINVAL, "'%.200s' is a torn result of 'mlbench observe'", path);
	if (json_is_array(column_value(document, "hang")))
		return error_set(err, -EINVAL,
			"'%.200s': the job stood still while it was observed; there is nothing to fit",
			path);
	if (in.hidden) {
		observed_hidden(&in, out, more);
		return 0;
	}
	observed_count(&in, out);
	observed_life(document, fmax(1, round(in.trainer.count)), out);
	observed_rates(&in, out);
	if (more->shards)
		findings_note(out,
			"the job's files are of a kind that may hold many samples each, so that files a second are not taken for "
			"samples a second: a log of "
			"step times and --set batch.size=N tell them");
	else
		observed_files(&in, out, more);
	more->loaders = in.loader.count >= 0.5;
	/* Whoever knows the rate divides by it (cmd_fit.c). */
	more->per_second = !(in.files_per_s > 0);
	if (more->per_second)
		in.files_per_s = 1;
	more->rate = in.files_per_s;
	if (in.files_per_s > 0 && more->loaders)
		observed_loading(&in, out);
	else if (in.files_per_s > 0 && in.whole.count >= 0.5)
		observed_whole(&in, out);
	observed_step(&in, out);
	observed_mounts(document, out);
	observed_node(document, out);
	observed_verdict(document, out);
	observed_environment(document, &more->environment);
	return 0;
}

int source_observed(
	const char *path, struct findings *out, struct source_more *more, struct error *err)
{
	char *text;
	size_t size;
	json_error_t wrong;
	int code = files_read(path, OBSERVED_BYTES_MAX, &text, &size, err);
	if (code)
		return code;
	if (!source_is_document(text, "mlbench.observe/")) {
		free(text);
		return error_set(
			err, -ENOMSG, "'%.200s' is no result of 'mlbench observe --json'", path);
	}
	json_t *document = json_loadb(text, size, 0, &wrong);
	free(text);
	if (!document)
		return error_set(err, -EINVAL, "%.200s:%d: %.160s", path, wrong.line, wrong.text);
	code = strcmp(column_text(document, "schema"), "mlbench.observe/1") == 0
		       ? observed_take(document, path, out, more, err)
		       : error_set(err, -EINVAL,
				 "'%.200s' has the schema '%.40s'; this program reads mlbench.observe/1",
				 path, column_text(document, "schema"));
	json_decref(document);
	return code;
}

int findings_from_observed(struct findings *out, const char *path, struct error *err)
{
	struct source_more more;
	source_more_open(&more);
	const int code = source_observed(path, out, &more, err);
	if (!code && more.per_second)
		source_forget_samples(out);
	source_more_release(&more);
	return code;
}
