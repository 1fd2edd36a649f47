/* The lines of a verdict. */
#include "harness/analyze/job_tell.h"

#include "harness/analyze/job_cause.h"
#include "harness/analyze/job_sides.h"
#include "harness/base/array.h"
#include "harness/base/units.h"
#include "harness/record/measurement.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *job_certainty_name(enum job_certainty certainty)
{
	return certainty == JOB_LIKELY     ? "likely"
	       : certainty == JOB_POSSIBLE ? "possible"
					   : "unknown";
}
void job_say(struct job_lines *lines, const char *format, ...)
{
	va_list args;
	if (lines->count == JOB_LINES_MAX)
		return;
	va_start(args, format);
	(void)vsnprintf(lines->of[lines->count++], JOB_LINE_BYTES, format, args);
	va_end(args);
}

void job_conclude(struct job_verdict *out, const char *stage, const char *resource,
	enum job_certainty certainty, const char *format, ...)
{
	va_list args;
	(void)snprintf(out->stage, sizeof out->stage, "%s", stage);
	(void)snprintf(out->resource, sizeof out->resource, "%s", resource);
	out->certainty = certainty;
	va_start(args, format);
	(void)vsnprintf(out->words, sizeof out->words, format, args);
	va_end(args);
}

/* "62 % +- 7 %" */
static const char *job_percent(double share, uint32_t looks, char out[UNITS_BYTES])
{
	if (isnan(share) || looks == 0)
		(void)snprintf(out, UNITS_BYTES, "an unknown share");
	else
		(void)snprintf(out, UNITS_BYTES, "%.0f %% (+-%.0f)", 100 * share,
			100 * fmax(2 * sqrt(share * (1 - share) / looks), 1.0 / looks));
	return out;
}

/* The acts that take most of the time, beside those that every line has. */
static void job_tell_waits(const struct job_side *side, char line[JOB_LINE_BYTES / 2])
{
	static const struct {
		enum job_act act;
		const char *words;
	} waits[] = {{JOB_WAITS_WRITE, "writing files"}, {JOB_WAITS_SYNC, "in fsync"},
		{JOB_WAITS_FAULT, "in page faults"}, {JOB_WAITS_OUTPUT, "for room to write"},
		{JOB_WAITS_NETWORK, "at sockets of the network"}, {JOB_WAITS_LOCK, "at mutexes"},
		{JOB_WAITS_FILE_LOCK, "at locks on files"},
		{JOB_WAITS_SEMAPHORE, "at semaphores of processes"},
		{JOB_WAITS_CONDITION, "at conditions of threads"},
		{JOB_WAITS_TURN, "for their turn (GIL)"},
		{JOB_WAITS_TIME, "asleep by its own choice"}, {JOB_WAITS_DEVICE, "in ioctl"},
		{JOB_WAITS_CHILD, "for children"}, {JOB_STOPPED, "stopped"},
		{JOB_WAITS_OTHER, "elsewhere, or not seen"}};
	static const double LEAST = 0.01;
	size_t used = 0;
	line[0] = '\0';
	for (size_t i = 0; i < COUNT(waits) && used < JOB_LINE_BYTES / 2; i++)
		if (side->acts[waits[i].act] >= LEAST)
			used += (size_t)snprintf(line + used, JOB_LINE_BYTES / 2 - used,
				", %s %.0f %%", waits[i].words, 100 * side->acts[waits[i].act]);
}

void job_tell_side(struct job_lines *lines, const char *who, const struct job_side *side)
{
	char runs[UNITS_BYTES];
	char file[UNITS_BYTES];
	char idle[UNITS_BYTES];
	char waits[JOB_LINE_BYTES / 2];
	if (side->count == 0 || side->looks == 0)
		return;
	job_tell_waits(side, waits);
	job_say(lines,
		"%s: on a core or queued for one %s of the time, reading files %s, waiting for work or data %s%s (%u looks)",
		who, job_percent(side->runs, side->looks, runs),
		job_percent(side->file, side->looks, file),
		job_percent(side->idle - side->acts[JOB_WAITS_NETWORK], side->looks, idle), waits,
		side->looks);
	if (!isnan(side->cpu))
		job_say(lines, "%s: %.2f cores used on average%s", who, side->cpu,
			isnan(side->queue) ? "; run-queue wait: not available" : "");
	if (!isnan(side->queue))
		job_say(lines, "%s: %.1f %% of the time ready to run with no core free", who,
			100 * side->queue);
}

void job_tell_start(const struct job_record *record, struct job_verdict *out)
{
	if (!(out->loaders_began_s > 0))
		return;
	if (out->certainty == JOB_LIKELY)
		out->certainty = JOB_POSSIBLE;
	job_say(&out->unknown,
		"what limits the job once it runs: its loader workers began %.1f s after the watch did, of %.1f s in all, so that its start was watched",
		out->loaders_began_s, record->watched_s);
	job_say(&out->next, "observe it again, now that its loader workers are there");
}

/* Time in an interpreter whose functions are not known. */
static void job_tell_functions(
	const struct job_profile *profile, double python, struct job_verdict *out)
{
	static const double MUCH = 0.2;
	if (python < MUCH || (profile->mapped && profile->named))
		return;
	job_say(&out->unknown, "which Python functions take that time: %s",
		profile->mapped
			? "there is a perf map, but the interpreter was built without frame pointers (-fno-omit-frame-pointer)"
			: "no process writes a perf map (Python 3.12 or later with -X perf)");
}

static void job_tell_classes_of(const struct job_record *record, const struct job_profile *profile,
	enum job_role role, const char *who, struct job_verdict *out)
{
	enum { CLASSES_TOLD = 4, CLASS_SAMPLES_LEAST = 50 };
	double shares[JOB_CLASSES];
	char line[JOB_LINE_BYTES / 2] = "";
	size_t used = 0;
	const uint64_t all = job_class_shares(record, profile, out, role, shares);
	if (all < CLASS_SAMPLES_LEAST)
		return;
	const bool limits = strcmp(out->resource, "cpu") == 0 &&
			    !stage_is(out->stage, STAGE_STEP) &&
			    (role == JOB_ROLE_TRAINER) == (strcmp(out->stage, "trainer") == 0);
	if (role != JOB_ROLE_TRAINER || limits)
		job_tell_functions(profile, shares[JOB_CLASS_PYTHON], out);
	for (int told = 0; told < CLASSES_TOLD && used < sizeof line; told++) {
		int most = 0;
		for (int k = 1; k < JOB_CLASSES; k++)
			if (shares[k] > shares[most])
				most = k;
		if (shares[most] <= 0)
			break;
		used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %.0f %%",
			told ? ", " : "", job_class_words((enum job_class)most),
			100 * shares[most]);
		if (told == 0 && limits)
			job_say(&out->next,
				"make the largest part of the CPU time cheaper (%s), or add workers while cores are free; neither gain is predicted here",
				job_class_words((enum job_class)most));
		shares[most] = 0;
	}
	job_say(&out->evidence, "%s: CPU time by its innermost functions: %s (%llu samples)", who,
		line, (unsigned long long)all);
}

void job_tell_classes(
	const struct job_record *record, const struct job_profile *profile, struct job_verdict *out)
{
	if (!out->loader.count) {
		job_tell_classes_of(record, profile, JOB_ROLE_WHOLE, "process", out);
		return;
	}
	job_tell_classes_of(record, profile, JOB_ROLE_LOADER, "loader workers", out);
	job_tell_classes_of(record, profile, JOB_ROLE_TRAINER, "trainer", out);
}

static void job_tell_memory(const struct job_record *record, struct job_verdict *out)
{
	char limit[UNITS_BYTES];
	char files[UNITS_BYTES];
	char swap[UNITS_BYTES];
	if (!(record->refault_file > 0) && !(record->refault_swap > 0))
		return;
	job_say(&out->evidence,
		"memory: %s of files and %s of swap came back from a device though they had been in memory (%s%s)",
		units_format_size(record->refault_file, files),
		units_format_size(record->refault_swap, swap),
		isfinite(record->memory_limit) ? "of its control group, whose limit is "
					       : "of the whole node",
		isfinite(record->memory_limit) ? units_format_size(record->memory_limit, limit)
					       : "");
}

/* What may take the cores that are missing. */
void job_tell_cores(const struct job_record *record, struct job_verdict *out)
{
	char share[UNITS_BYTES];
	const double own = job_cores_used(record, out);
	const double others = record->node_busy_cores - own; /* NAN: not known */
	if (record->watched_s > 0 && !isnan(record->node_busy_cores))
		job_say(&out->evidence,
			"node: %.1f of %.0f cores busy, of which %.1f by this job; it may run on %.0f CPUs",
			record->node_busy_cores, record->node_cores, own, record->allowed_cpus);
	if (others >= JOB_OTHERS * record->node_cores)
		job_say(&out->unknown,
			"what limits the job on a quiet node: other processes kept %.1f of %.0f cores busy meanwhile",
			others, record->node_cores);
	const bool limited = !isnan(record->quota_cores) && !isinf(record->quota_cores);
	if (limited)
		job_say(&out->evidence,
			"a control group limits it to %.2f cores; share of its periods in which they were used up: %s",
			record->quota_cores,
			units_or_dash(units_format_share, record->throttled, share));
	job_tell_memory(record, out);
	if (strcmp(out->resource, "quota") == 0)
		job_say(&out->next,
			"raise the CPU quota of its control group (cpu.max, cpu.cfs_quota_us), which is used up in %s of its periods, or use fewer busy threads",
			units_or_dash(units_format_share, record->throttled, share));
	else if (strcmp(out->resource, "affinity") == 0)
		job_say(&out->next,
			"give the job more CPUs: taskset, numactl, a cpuset or the launcher's binding holds it on those it has");
	else if (strcmp(out->resource, "external") == 0)
		job_say(&out->next,
			"stop or move the other processes of the node, or ask the scheduler for cores of the job's own");
	else if (strcmp(out->resource, "threads") == 0)
		job_say(&out->next,
			"use fewer threads: OMP_NUM_THREADS, torch.set_num_threads, and workers and threads of each together no more than there are cores");
	else if (strcmp(out->resource, "cores") == 0)
		job_say(&out->next,
			"look for a CPU quota, CPU affinity, other jobs on the node, and more threads than cores");
}

void job_tell_unknown(const struct job_record *record, struct job_verdict *out)
{
	bool vague = false;
	bool device = false;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		device = device || process->device;
		vague = vague || process->vague;
		if (process->unknown[0] && out->unknown.count < JOB_LINES_MAX / 2)
			job_say(&out->unknown,
				"process %d: %s (run 'mlbench observe' as its user or as root)",
				process->pid, process->unknown);
	}
	if (vague)
		job_say(&out->unknown,
			"which locks its threads wait for, and at which pipes: their calls may not be seen (kernel.yama.ptrace_scope; run 'mlbench observe' as root)");
	job_say(&out->unknown,
		"batches, steps and samples: a job does not show them to others, so there are no images/s");
	job_say(&out->unknown,
		"reads through mmap and io_uring: the kernel does not count them among the job's read calls");
	if (record->no_blkio)
		job_say(&out->unknown, "block I/O wait by the kernel's own account: %s",
			record->no_blkio);
	if (!device)
		job_say(&out->unknown, "a GPU: no process of the job has one open");
	if (record->no_room)
		job_say(&out->unknown,
			"%llu processes, threads, files or pipes beyond the tables' bounds",
			(unsigned long long)record->no_room);
}
