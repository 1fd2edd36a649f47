/* From the record of a watched job to its verdict. */
#include "harness/analyze/job_verdict.h"

#include "harness/analyze/job_cause.h"
#include "harness/analyze/job_roles.h"
#include "harness/analyze/job_sides.h"
#include "harness/analyze/job_tell.h"
#include "harness/record/measurement.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double ACTIVE_CPU = 0.05;                    /* cores: a process that works */
static const double DEVICE_BUSY = 0.9, DEVICE_IDLE = 0.5; /* share with a kernel resident */
static const double STILL_CPU = 0.005, STILL_S = 3, STILL_RUNS = 0.05;
static const double STOPPED = 0.5; /* of a process's looks */
static const double STARTS_S = 1,
		    STARTS = 0.1; /* of the watch: loaders that begin later began with it */

/* --- the runbook -------------------------------------------------------------------------------- */

const struct job_entry *job_entry_find(const struct job_verdict *verdict)
{
	const char *stage = verdict->still ? "still" : verdict->stage;
	for (size_t i = 0; i < job_entry_count; i++)
		if ((!job_entries[i].stage || strcmp(job_entries[i].stage, stage) == 0) &&
			(!job_entries[i].resource ||
				strcmp(job_entries[i].resource, verdict->resource) == 0))
			return &job_entries[i];
	return &job_entries[0];
}

/* Of another user's process neither waits nor open files are seen, and so no roles. */
static const char *job_hidden(const struct job_record *record)
{
	bool seen = false;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		seen = seen || !process->unknown[0];
		if (process->unknown[0] && job_cpu(process) > ACTIVE_CPU)
			return process->unknown;
	}
	return seen ? NULL : record->processes[0].unknown;
}

/* What is ready to run and gets no core does not stand still. */
static bool job_stands_still(const struct job_record *record)
{
	double active_s = 0;
	double bytes = 0;
	uint32_t runs = 0;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		const double cpu = job_grown(process->first, process->last, JOB_CPU_S);
		const double queued = job_process_queue_s(record, i);
		const double read = job_grown(process->first, process->last, JOB_READ);
		active_s += (isnan(cpu) ? 0 : cpu) + (isnan(queued) ? 0 : queued);
		bytes += isnan(read) ? 0 : read;
		runs += process->looks[JOB_RUNS];
	}
	return record->watched_s >= STILL_S && active_s <= STILL_CPU * record->watched_s &&
	       bytes <= 0 && (double)runs <= STILL_RUNS * record->states;
}

/* A process at the job's head that a signal or a debugger holds; NULL: none. */
static const struct job_process *job_stopped(
	const struct job_record *record, const struct job_verdict *verdict)
{
	for (size_t i = 0; i < record->process_count; i++)
		if ((i == 0 || verdict->roles[i] == JOB_ROLE_TRAINER) &&
			job_share(&record->processes[i], JOB_STOPPED) >= STOPPED)
			return &record->processes[i];
	return NULL;
}

/* Its loaders began while it was watched, and none ended: it was starting. */
static void job_find_start(const struct job_record *record, struct job_verdict *out)
{
	double first = INFINITY;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		if (out->roles[i] == JOB_ROLE_LOADER)
			first = process->gone ? 0 : fmin(first, process->first_s);
	}
	out->loaders_began_s =
		isfinite(first) && first >= STARTS_S && first >= STARTS * record->watched_s ? first
											    : 0;
}

/* Bytes of the processes that load files, or else of all that read any, over the mean size of the files that were seen open. */
static void job_estimate_files(const struct job_record *record, struct job_verdict *out)
{
	double bytes = 0;
	double seen_s = 0;
	double size = 0;
	double inverse = 0;
	uint32_t files = 0;
	for (uint32_t i = 0; i < record->process_count; i++)
		if (job_reads_files(&record->processes[i]) &&
			(!out->loader.count || out->roles[i] == JOB_ROLE_LOADER)) {
			const double read = job_grown(
				record->processes[i].first, record->processes[i].last, JOB_READ);
			bytes += isnan(read) ? 0 : read;
			seen_s += job_process_seconds(&record->processes[i]);
		}
	/* What those that ended read after the last look at their counts was not counted. */
	if (out->life.ended > 0 && seen_s > 0)
		bytes *= fmax(1, out->life.lived_s / seen_s);
	for (size_t i = 0; i < record->group_count; i++) {
		const struct job_group *group = &record->groups[i];
		if (group->written || strcmp(group->kind, "other") == 0)
			continue;
		files += group->files;
		size += group->bytes;
		inverse += group->inverse;
	}
	out->files_per_s = out->files_low = out->files_high = NAN;
	if (out->loaders_began_s > 0)
		(void)snprintf(out->files_why, sizeof out->files_why,
			"the job's start was watched: its loader workers began %.1f s after the watch did",
			out->loaders_began_s);
	else if (files < 5 || !(size > 0))
		(void)snprintf(out->files_why, sizeof out->files_why,
			"fewer than 5 data files were seen open: they are open for too short a time, read through mmap, or few and large");
	else if (!(bytes > 0) || !(record->watched_s > 0))
		(void)snprintf(out->files_why, sizeof out->files_why,
			"no bytes were counted: reads through mmap and io_uring are not among the counted read calls");
	else {
		out->files_low = bytes / (size / files) / record->watched_s;
		out->files_high = inverse > 0 ? bytes / (files / inverse) / record->watched_s
					      : out->files_low;
		out->files_per_s = sqrt(out->files_low * out->files_high);
	}
}

static void job_estimate_growth(const struct job_record *record, struct job_verdict *out)
{
	double n = 0;
	double st = 0;
	double sy = 0;
	double stt = 0;
	double sty = 0;
	out->growth = NAN;
	for (size_t i = record->moment_count / 3; i < record->moment_count; i++) {
		const struct job_moment *m = &record->moments[i];
		n++;
		st += m->t_s;
		sy += m->resident;
		stt += m->t_s * m->t_s;
		sty += m->t_s * m->resident;
	}
	const double spread = n * stt - st * st;
	if (n >= 5 && spread > 0)
		out->growth = (n * sty - st * sy) / spread;
}
void job_verdict_find(
	const struct job_record *record, const struct job_profile *profile, struct job_verdict *out)
{
	*out = (struct job_verdict){.growth = NAN};
	if (record->process_count == 0)
		return;
	job_find_roles(record, out);
	job_programs_find(record, out);
	job_find_sides(record, out);
	job_find_start(record, out);
	job_estimate_growth(record, out);
	job_life_find(record, out);
	job_ranks_find(record, out);
	job_estimate_files(record, out);
	const struct job_process *stopped = job_stopped(record, out);
	out->still = isnan(record->ended_s) && (stopped || job_stands_still(record));
	/* Slices come to the trainer each time, and to loaders in turn. */
	const uint32_t looks = out->loader.count && out->loader.looks < record->states
				       ? out->loader.looks
				       : record->states;
	if (out->still && stopped)
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"The job is stopped: a signal (SIGSTOP) or a debugger held process %d for %.0f %% of the time. 'kill -CONT %d' lets it go on",
			stopped->pid, 100 * job_share(stopped, JOB_STOPPED), stopped->pid);
	else if (out->still)
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"The job stands still: nothing of it ran and nothing was read for %.0f s. It hangs, or its pause is longer than this",
			record->watched_s);
	else if (looks < JOB_LOOKS_LEAST)
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"Too few looks for a verdict: %u of at least %d; observe it for longer",
			looks, JOB_LOOKS_LEAST);
	else if (job_hidden(record))
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"What limits the job cannot be told, for what its processes wait for is not seen (%s)",
			job_hidden(record));
	else if (job_programs_conclude(record, out) || job_ranks_conclude(record, out) ||
		 job_life_conclude(record, out))
		; /* programs that live for a moment, a rank that holds up the others, starts of workers */
	else {
		job_find_cause(record, profile, out);
		job_life_resolve(out);
	}
	job_tell_side(&out->evidence, "trainer", &out->trainer);
	job_tell_side(&out->evidence, "loader workers", &out->loader);
	job_tell_side(&out->evidence,
		out->trainer.count ? "trainer's first thread" : "first thread", &out->head);
	job_tell_side(&out->evidence, "other threads that work", &out->pool);
	if (profile)
		job_tell_classes(record, profile, out);
	job_tell_cores(record, out);
	job_tell_start(record, out);
	job_ranks_tell(record, out);
	job_life_tell(record, out);
	job_tell_unknown(record, out);
}

/* --- GPUs ----------------------------------------------------------------------------------------- */

static bool job_opens_device(const struct job_record *record)
{
	for (size_t i = 0; i < record->process_count; i++)
		if (record->processes[i].device)
			return true;
	return false;
}

static double job_busy_devices(const struct job_places *places)
{
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < places->gpu_count; i++)
		if (!isnan(places->gpus[i].device.busy_share)) {
			sum += places->gpus[i].device.busy_share;
			known++;
		}
	return known ? sum / (double)known : NAN;
}

void job_verdict_weigh_devices(
	const struct job_record *record, const struct job_places *places, struct job_verdict *out)
{
	const double busy = job_busy_devices(places);
	if (!job_opens_device(record))
		return;
	if (!isnan(busy))
		job_say(&out->evidence,
			"GPU: some kernel was resident %.0f %% of the time, of this job or of others",
			100 * busy);
	if (!stage_is(out->stage, STAGE_STEP) || busy < DEVICE_IDLE)
		return;
	const bool computes = busy >= DEVICE_BUSY;
	(void)snprintf(out->resource, sizeof out->resource, "%s", computes ? "compute" : "unknown");
	if (!computes)
		job_say(&out->unknown,
			"whether the step's CPU work or the GPU limits it: a thread that waits for its GPU may spin, which looks like work%s",
			isnan(busy) ? ", and how busy the GPU was is not known" : "");
}
