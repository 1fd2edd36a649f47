/* Sums over looks and counts. */
#include "harness/analyze/job_sides.h"

#include <math.h>

static const double ACTIVE = 0.05; /* of a thread's time: it works */

/* kept: share of its time that it waited for a core, of which looks say that it runs; NAN: unknown. */
static void job_side_looks(
	struct job_side *side, const uint32_t looks[JOB_ACTS], uint32_t count, double kept)
{
	const double n = count ? (double)count : 1;
	const double runs = fmax(looks[JOB_RUNS] / n - fmax(kept, 0), 0); /* fmax passes over NAN */
	const double busy = runs + job_looks_at_files(looks) / n;
	side->kept = fmax(side->kept, kept);
	if (count >= JOB_LOOKS_LEAST) { /* the busiest of many after few looks is the luckiest */
		side->busiest = fmax(side->busiest, busy);
		side->least_busy = fmin(side->least_busy, busy);
	}
	side->count++;
	side->looks += count;
	for (int i = 0; i < JOB_ACTS; i++)
		side->acts[i] += looks[i];
}

static void job_side_counts(struct job_side *side, const double first[JOB_COUNTS],
	const double last[JOB_COUNTS], double queue_s)
{
	const double cpu = job_grown(first, last, JOB_CPU_S);
	side->cpu += cpu;
	side->system += fmax(cpu - job_grown(first, last, JOB_USER_S), 0); /* ticks are coarse */
	side->queue += queue_s;
}

static void job_side_end(struct job_side *side, double seconds)
{
	double *const a = side->acts;
	for (int i = 0; i < JOB_ACTS; i++)
		a[i] = side->looks ? a[i] / side->looks : NAN;
	side->runs = a[JOB_RUNS];
	side->file = a[JOB_WAITS_READ] + a[JOB_WAITS_FAULT] + a[JOB_WAITS_HELD] + a[JOB_WAITS_RING];
	side->write = a[JOB_WAITS_WRITE] + a[JOB_WAITS_SYNC];
	side->idle = a[JOB_WAITS_INPUT] + a[JOB_WAITS_NETWORK] + a[JOB_WAITS_POLL];
	side->output = a[JOB_WAITS_OUTPUT];
	side->lock = a[JOB_WAITS_LOCK] + a[JOB_WAITS_FILE_LOCK] + a[JOB_WAITS_SEMAPHORE] +
		     a[JOB_WAITS_CONDITION];
	side->time = a[JOB_WAITS_TIME];
	side->cpu = seconds > 0 ? side->cpu / seconds : NAN;
	side->system = seconds > 0 ? side->system / seconds : NAN;
	side->queue = seconds > 0 ? side->queue / seconds : NAN;
}

static void job_side_of_role(const struct job_record *record, const struct job_verdict *verdict,
	enum job_role role, struct job_side *side)
{
	double seconds = 0;
	*side = (struct job_side){.least_busy = 1};
	for (uint32_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		if (verdict->roles[i] != role || process->look_count == 0)
			continue;
		const double queued = job_process_longest_queue_s(record, i);
		const double lived = job_process_seconds(process);
		job_side_looks(side, process->looks, process->look_count,
			isnan(queued) || !(lived > 0) ? (double)NAN : fmin(queued / lived, 1));
		job_side_counts(side, process->first, process->last, queued);
		seconds += lived;
	}
	job_side_end(side, seconds);
}

static uint32_t job_thread_looks(const struct job_thread *thread)
{
	uint32_t sum = 0;
	for (int i = 0; i < JOB_ACTS; i++)
		sum += thread->looks[i];
	return sum;
}

/* One that waits for a core or for its turn works, too: on a crowded node it may get hardly any time. */
static bool job_thread_works(const struct job_thread *thread, double looks, double lived)
{
	const double queued = job_thread_queue_s(thread);
	const double active =
		job_grown(thread->first, thread->last, JOB_CPU_S) + (isnan(queued) ? 0 : queued);
	return active / lived >= ACTIVE || job_looks_at_files(thread->looks) / looks >= ACTIVE;
}

/* Of trainers, or of processes that do it all: their first threads, or of the latter the others that work. */
static void job_side_of_threads(const struct job_record *record, const struct job_verdict *verdict,
	bool first, struct job_side *side)
{
	double seconds = 0;
	*side = (struct job_side){.least_busy = 1};
	for (size_t i = 0; i < record->thread_count; i++) {
		const struct job_thread *thread = &record->threads[i];
		const enum job_role role = verdict->roles[thread->process];
		const uint32_t looks = job_thread_looks(thread);
		const double lived = thread->last_s - thread->first_s;
		const bool is_first = thread->tid == record->processes[thread->process].pid;
		if ((role != JOB_ROLE_WHOLE && !(first && role == JOB_ROLE_TRAINER)) ||
			is_first != first || looks == 0 || !(lived > 0) ||
			(!first && !job_thread_works(thread, looks, lived)))
			continue;
		const double queued = job_thread_queue_s(thread);
		job_side_looks(side, thread->looks, looks, NAN);
		job_side_counts(side, thread->first, thread->last, queued);
		seconds += lived;
	}
	job_side_end(side, seconds);
}

void job_find_sides(const struct job_record *record, struct job_verdict *out)
{
	job_side_of_role(record, out, JOB_ROLE_TRAINER, &out->trainer);
	job_side_of_role(record, out, JOB_ROLE_LOADER, &out->loader);
	job_side_of_threads(record, out, true, &out->head);
	job_side_of_threads(record, out, false, &out->pool);
}

double job_cores_used(const struct job_record *record, const struct job_verdict *verdict)
{
	double own = 0;
	for (size_t i = 0; i < record->process_count; i++) {
		const double cpu =
			job_grown(record->processes[i].first, record->processes[i].last, JOB_CPU_S);
		own += isnan(cpu) ? 0 : cpu;
	}
	/* fmax passes over NAN. */
	return fmax(record->watched_s > 0 ? own / record->watched_s : NAN, verdict->programs.cores);
}

uint64_t job_class_shares(const struct job_record *record, const struct job_profile *profile,
	const struct job_verdict *verdict, enum job_role role, double shares[JOB_CLASSES])
{
	uint64_t all = 0;
	for (int k = 0; k < JOB_CLASSES; k++) {
		uint64_t sum = 0;
		for (size_t i = 0; profile && i < record->process_count; i++)
			sum += verdict->roles[i] == role ? profile->classes[i][k] : 0;
		shares[k] = (double)sum;
		all += sum;
	}
	for (int k = 0; k < JOB_CLASSES; k++)
		shares[k] = all ? shares[k] / (double)all : 0;
	return all;
}
