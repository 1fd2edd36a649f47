/* Roles, sides and the verdict. */
#include "harness/analyze/job_verdict.h"

#include "harness/base/units.h"
#include "harness/measure/job_descriptors.h"
#include "harness/record/measurement.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Looks are samples: below so many nothing is said, and shares are compared at these bounds. */
enum { LOOKS_LEAST = 30 };
static const double STARVED = 0.2, FED = 0.1; /* of the trainer's time */
static const double FREE = 0.2;           /* of the loaders' time: waiting for work or for room */
static const double ACTIVE_CPU = 0.05;    /* cores: a process that works */
static const double ACTIVE_BYTES = 16384; /* a second, read by one that works */
static const double MESSAGE_BYTES = 32;   /* a second, written by one that hands anything over */
static const double QUEUED = 0.2;         /* run-queue wait, of wall time: too few cores; below it
					    cheaper work gains more than cores do */
/* At locks: of those that have one lock among them all but one wait at any moment, where it is what limits them. */
static const double LOCKED = 0.3, LOCKED_OF_OTHERS = 0.6;
static const double SATURATED = 0.8;
static const double ASLEEP = 0.5; /* of the loaders' time, by their own choice */
static const double DEVICE_BUSY = 0.9, DEVICE_IDLE = 0.5; /* share with a kernel resident */
static const double UNEVEN = 0.4; /* between the busiest and the least busy loader */
static const double STILL_CPU = 0.005, STILL_S = 3;
static const double READY = 0.5;   /* of a process's looks: it has work */
static const double STOPPED = 0.5; /* of a process's looks */
static const double STARTS_S = 1,
		    STARTS = 0.1;    /* of the watch: loaders that begin later began with it */
static const double THROTTLED = 0.1; /* of a quota's periods */

const char *job_role_name(enum job_role role)
{
	static const char *const names[JOB_ROLES] = {
		[JOB_ROLE_HELPER] = "helper",
		[JOB_ROLE_TRAINER] = "trainer",
		[JOB_ROLE_LOADER] = "loader",
		[JOB_ROLE_WHOLE] = "whole",
	};
	return names[role];
}

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

/* --- roles -------------------------------------------------------------------------------------- */

static double job_cpu(const struct job_process *process)
{
	const double seconds = job_process_seconds(process);
	return seconds > 0 ? job_grown(process->first, process->last, JOB_CPU_S) / seconds : NAN;
}

static bool job_reads_files(const struct job_process *process)
{
	return process->file_looks > 0 || process->looks[JOB_WAITS_READ] > 0 ||
	       process->looks[JOB_WAITS_RING] > 0;
}

/* Whether something that `one` writes to `pipe` arrives at `other`.  The two ends of a socket have numbers of their own: one
 * number in two processes is a socket that was inherited, and joins nobody.  A TCP connection joins ranks, not loaders. */
static bool job_pipe_joins(const struct job_pipe *one, const struct job_pipe *other)
{
	return one->socket
		       ? other->socket && !one->network && one->peer && one->peer == other->number
		       : !other->socket && one->number == other->number && one->writes &&
				 other->reads;
}

/* NULL: the other has no end of it. */
static const struct job_pipe *job_other_end(
	const struct job_pipe *pipe, const struct job_process *other)
{
	return job_find_pipe(other, pipe->socket ? pipe->peer : pipe->number);
}

/* Pipes and sockets of which each has an end. */
static unsigned job_pipes_between(const struct job_process *one, const struct job_process *other)
{
	unsigned count = 0;
	for (size_t i = 0; i < one->pipe_count; i++) {
		const struct job_pipe *pipe = &one->pipes[i];
		const struct job_pipe *end = job_other_end(pipe, other);
		count += end && (job_pipe_joins(pipe, end) || job_pipe_joins(end, pipe));
	}
	return count;
}

static uint32_t job_parent_of(const struct job_record *record, uint32_t index)
{
	const int32_t pid = record->processes[index].parent;
	for (uint32_t i = 0; i < record->process_count; i++)
		if (record->processes[i].pid == pid && i != index)
			return i;
	return index;
}

/* The process above it that shares most pipes with it; itself: none does.  A fork server between them shares few. */
static uint32_t job_boss_of(const struct job_record *record, uint32_t index)
{
	uint32_t boss = index;
	unsigned most = 0;
	uint32_t at = index;
	for (size_t step = 0; step < record->process_count; step++) {
		const uint32_t above = job_parent_of(record, at);
		if (above == at)
			break;
		const unsigned pipes =
			job_pipes_between(&record->processes[index], &record->processes[above]);
		if (pipes > most) {
			most = pipes;
			boss = above;
		}
		at = above;
	}
	return boss;
}

/* Whether anything goes over the pipes that both hold: what a fork inherits is held by both, too.  A result is written, if
 * only where in shared memory it lies. */
static bool job_hands_over(const struct job_process *process, const struct job_process *boss)
{
	bool seen = false;
	for (size_t i = 0; i < process->pipe_count; i++)
		seen = seen || process->pipes[i].read_looks || process->pipes[i].write_looks;
	for (size_t i = 0; i < boss->pipe_count; i++)
		seen = seen || boss->pipes[i].read_looks;
	return seen || job_grown(process->first, process->last, JOB_WRITTEN) >=
			       MESSAGE_BYTES * job_process_seconds(process);
}

/* Those that began as it did, itself among them. */
static double job_count_alike(const struct job_record *record, const struct job_process *process)
{
	static const double MOST = 64;
	double count = 0;
	for (size_t i = 0; i < record->process_count; i++)
		count += record->processes[i].parent == process->parent &&
			 strcmp(record->processes[i].name, process->name) == 0;
	return fmin(count, MOST);
}

/* One of those that end and begin anew; programs that others run for a moment live for less. */
static bool job_is_made_anew(const struct job_record *record, const struct job_process *process)
{
	static const double LIVED_S = 0.5;
	unsigned ended = 0;
	if (!process->life || process->begun_s <= 0)
		return false;
	const struct job_lifespan *own = &record->lives[process->life - 1];
	for (size_t i = 0; i < record->life_count && ended < 2; i++) {
		const struct job_lifespan *life = &record->lives[i];
		ended += life->parent == own->parent && life->forked == own->forked &&
			 life->ended_s - life->begun_s >= LIVED_S &&
			 strcmp(life->name, own->name) == 0;
	}
	return ended >= 2;
}

/* It reads data or computes for one above it, which hands it work or takes its results.  One that has a GPU of its own is a
 * rank that a launcher began, and so are those that are ranks to each other. */
static bool job_is_loader(const struct job_record *record, uint32_t index, uint32_t boss)
{
	const struct job_process *process = &record->processes[index];
	if (boss == index || !job_hands_over(process, &record->processes[boss]) ||
		(process->device && !record->processes[boss].device) ||
		job_ranks_has(record, index))
		return false;
	const double read = job_grown(process->first, process->last, JOB_READ);
	const double alike = job_count_alike(record, process); /* many share the work */
	/* Where cores are few, one that has work all the time uses hardly any. */
	return job_reads_files(process) || job_share(process, JOB_RUNS) >= READY ||
	       job_is_made_anew(record, process) || job_cpu(process) > ACTIVE_CPU / alike ||
	       read >= ACTIVE_BYTES / alike * job_process_seconds(process);
}

/* Whether both run their parent's program, or both one of their own; those of which it is not known are alike. */
static bool job_begun_alike(const struct job_record *record, const struct job_process *one,
	const struct job_process *other)
{
	return !one->life || !other->life ||
	       record->lives[one->life - 1].forked == record->lives[other->life - 1].forked;
}

/* One that ended before its pipes were seen, or before it did much, is what those are that began as it did. */
static void job_adopt_ended(const struct job_record *record, struct job_verdict *out)
{
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *ended = &record->processes[i];
		if (!ended->gone || out->roles[i] == JOB_ROLE_LOADER ||
			(ended->pipe_count > 0 && !ended->life))
			continue;
		for (size_t k = 0; k < record->process_count; k++)
			if (out->roles[k] == JOB_ROLE_LOADER && out->boss[k] != i &&
				record->processes[k].parent == ended->parent &&
				strcmp(record->processes[k].name, ended->name) == 0 &&
				job_begun_alike(record, ended, &record->processes[k])) {
				out->roles[i] = JOB_ROLE_LOADER;
				out->boss[i] = out->boss[k];
				break;
			}
	}
}

static void job_find_roles(const struct job_record *record, struct job_verdict *out)
{
	const uint32_t count = (uint32_t)record->process_count;
	bool has_loaders = false;
	bool is_boss[JOB_PROCESSES_MAX] = {false};
	for (uint32_t i = 0; i < count; i++) {
		out->boss[i] = job_boss_of(record, i);
		if (job_is_loader(record, i, out->boss[i])) {
			out->roles[i] = JOB_ROLE_LOADER;
			is_boss[out->boss[i]] = true;
		}
	}
	job_adopt_ended(record, out);
	/* One that loaders work for is a trainer, also where a launcher above it holds pipes of it. */
	for (uint32_t i = 0; i < count; i++)
		if (is_boss[i])
			out->roles[i] = JOB_ROLE_HELPER;
	for (uint32_t i = 0; i < count; i++)
		if (out->roles[i] == JOB_ROLE_LOADER) {
			out->roles[out->boss[i]] = JOB_ROLE_TRAINER;
			has_loaders = true;
		}
	if (has_loaders)
		return;
	uint32_t busiest = 0;
	double most = -1;
	for (uint32_t i = 0; i < count; i++) {
		const double cpu = job_cpu(&record->processes[i]);
		if (job_reads_files(&record->processes[i]) || cpu > ACTIVE_CPU ||
			record->processes[i].device || job_ranks_has(record, i))
			out->roles[i] = JOB_ROLE_WHOLE;
		if (cpu > most) {
			most = cpu;
			busiest = i;
		}
	}
	out->roles[busiest] = JOB_ROLE_WHOLE;
}

/* --- sides -------------------------------------------------------------------------------------- */

/* kept: share of its time that it waited for a core, of which looks say that it runs; NAN: unknown. */
static void job_side_looks(
	struct job_side *side, const uint32_t looks[JOB_ACTS], uint32_t count, double kept)
{
	const double n = count ? (double)count : 1;
	const double runs = fmax(looks[JOB_RUNS] / n - fmax(kept, 0), 0); /* fmax passes over NAN */
	const double busy = runs + job_looks_at_files(looks) / n;
	side->kept = fmax(side->kept, kept);
	if (count >= LOOKS_LEAST) { /* the busiest of many after few looks is the luckiest */
		side->busiest = fmax(side->busiest, busy);
		side->least_busy = fmin(side->least_busy, busy);
	}
	side->count++;
	side->looks += count;
	side->runs += looks[JOB_RUNS];
	side->file += job_looks_at_files(looks);
	side->idle += looks[JOB_WAITS_INPUT] + looks[JOB_WAITS_NETWORK] + looks[JOB_WAITS_POLL];
	side->output += looks[JOB_WAITS_OUTPUT];
	side->lock += job_looks_at_locks(looks);
	side->time += looks[JOB_WAITS_TIME];
	side->device += looks[JOB_WAITS_DEVICE];
}

static void job_side_end(struct job_side *side, double cpu_s, double queue_s, double seconds)
{
	double *const sums[] = {&side->runs, &side->file, &side->idle, &side->output, &side->lock,
		&side->time, &side->device};
	for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
		*sums[i] = side->looks ? *sums[i] / side->looks : NAN;
	side->cpu = seconds > 0 ? cpu_s / seconds : NAN;
	side->queue = seconds > 0 ? queue_s / seconds : NAN;
}

static void job_side_of_role(const struct job_record *record, const struct job_verdict *verdict,
	enum job_role role, struct job_side *side)
{
	double cpu_s = 0;
	double queue_s = 0;
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
		cpu_s += job_grown(process->first, process->last, JOB_CPU_S);
		queue_s += queued;
		seconds += lived;
	}
	job_side_end(side, cpu_s, queue_s, seconds);
}

static double job_thread_looks(const struct job_thread *thread)
{
	double sum = 0;
	for (int i = 0; i < JOB_ACTS; i++)
		sum += thread->looks[i];
	return sum;
}

/* Of a process that does it all: threads that read files, else those that compute. */
static void job_side_of_threads(const struct job_record *record, const struct job_verdict *verdict,
	bool readers, struct job_side *side)
{
	double cpu_s = 0;
	double queue_s = 0;
	double seconds = 0;
	*side = (struct job_side){.least_busy = 1};
	for (size_t i = 0; i < record->thread_count; i++) {
		const struct job_thread *thread = &record->threads[i];
		const double looks = job_thread_looks(thread);
		const double lived = thread->last_s - thread->first_s;
		const double cpu = job_grown(thread->first, thread->last, JOB_CPU_S);
		const double queued = job_thread_queue_s(thread);
		/* One that waits for a core works, too: on a crowded node it may get hardly any time. */
		const double active = cpu + (isnan(queued) ? 0 : queued);
		const double file = job_looks_at_files(thread->looks);
		const bool reads = looks > 0 && file / looks >= ACTIVE_CPU;
		if (verdict->roles[thread->process] != JOB_ROLE_WHOLE || looks < 1 ||
			!(lived > 0) || reads != readers ||
			(!reads && !(active / lived >= ACTIVE_CPU)))
			continue;
		job_side_looks(side, thread->looks, (uint32_t)looks, NAN);
		cpu_s += cpu;
		queue_s += queued;
		seconds += lived;
	}
	job_side_end(side, cpu_s, queue_s, seconds);
}

/* --- who waits for whom ------------------------------------------------------------------------- */

/* Of those that hold the end that writes: those above or below come first, since others may have inherited it. */
static bool job_writes_for(
	const struct job_record *record, uint32_t from, uint32_t to, const struct job_pipe *pipe)
{
	const struct job_pipe *end = job_other_end(pipe, &record->processes[to]);
	return end && job_pipe_joins(end, pipe) &&
	       (job_parent_of(record, from) == to || job_parent_of(record, to) == from);
}

static size_t job_add_edge(
	struct job_edge *out, size_t count, size_t room, const struct job_edge *edge)
{
	size_t at = count;
	while (at > 0 && out[at - 1].share < edge->share)
		at--;
	if (at == room)
		return count;
	const size_t kept = count < room ? count : room - 1;
	memmove(&out[at + 1], &out[at], (kept - at) * sizeof *out);
	out[at] = *edge;
	return kept + 1;
}

size_t job_edges(const struct job_record *record, struct job_edge *out, size_t room)
{
	size_t count = 0;
	for (uint32_t from = 0; from < record->process_count; from++) {
		const struct job_process *process = &record->processes[from];
		for (uint32_t to = 0; to < record->process_count; to++) {
			struct job_edge edge = {.from = from, .to = to};
			for (size_t i = 0; from != to && i < process->pipe_count; i++)
				if (process->pipes[i].read_looks &&
					job_writes_for(record, from, to, &process->pipes[i]))
					edge.share += (double)process->pipes[i].read_looks /
						      fmax(process->look_count, 1);
			if (edge.share > 0)
				count = job_add_edge(out, count, room, &edge);
		}
	}
	return count;
}

/* --- the runbook -------------------------------------------------------------------------------- */

const struct job_entry *job_entry_find(const struct job_verdict *verdict)
{
	const char *stage = verdict->still ? "still" : verdict->stage;
	for (size_t i = 0; i < job_entry_count; i++)
		if (strcmp(job_entries[i].stage, stage) == 0 &&
			(!job_entries[i].resource ||
				strcmp(job_entries[i].resource, verdict->resource) == 0))
			return &job_entries[i];
	return &job_entries[0];
}

/* --- the verdict -------------------------------------------------------------------------------- */

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

static void job_tell_side(struct job_lines *lines, const char *who, const struct job_side *side)
{
	char runs[UNITS_BYTES];
	char file[UNITS_BYTES];
	char idle[UNITS_BYTES];
	if (side->count == 0 || side->looks == 0)
		return;
	job_say(lines,
		"%s: on a core or queued for one %s of the time, in calls on files %s, waiting for work or data %s, "
		"for room to write %.0f %%, at locks %.0f %%, asleep by its own choice %.0f %% (%u looks)",
		who, job_percent(side->runs, side->looks, runs),
		job_percent(side->file, side->looks, file),
		job_percent(side->idle, side->looks, idle), 100 * side->output, 100 * side->lock,
		100 * side->time, side->looks);
	if (!isnan(side->cpu))
		job_say(lines, "%s: %.2f cores used on average%s", who, side->cpu,
			isnan(side->queue) ? "; run-queue wait: not available" : "");
	if (!isnan(side->queue))
		job_say(lines, "%s: %.1f %% of the time ready to run with no core free", who,
			100 * side->queue);
}

/* Within three standard errors of a share of looks (binomial; looks at threads that wait for each other are not independent). */
static bool job_share_may_reach(double share, uint32_t looks, double bar)
{
	return share + 3 * sqrt(share * (1 - share) / (looks ? looks : 1)) >= bar;
}

/* What the loaders spend their time on decides the resource. */
static void job_conclude_loading(const char *stage, const char *who, const struct job_side *side,
	double lock, enum job_certainty certainty, struct job_verdict *out)
{
	const double others = side->count > 1 ? 1 - 1 / (double)side->count : 1;
	const double locked = fmax(LOCKED, LOCKED_OF_OTHERS * others);
	if (lock >= locked && lock > side->file) {
		job_conclude(out, stage, "lock", JOB_POSSIBLE,
			"%s seem to hold the job up, and spend %.0f %% of their time at locks", who,
			100 * lock);
		return;
	}
	if (side->time >= ASLEEP && side->time > side->file) {
		job_conclude(out, stage, "wait", JOB_POSSIBLE,
			"%s seem to hold the job up, and sleep by their own choice %.0f %% of the time: a rate limit, a retry after an error, or a poll",
			who, 100 * side->time);
		job_say(&out->next,
			"look for sleeps, time-outs and rate limits in the loader's code, and for retries in its log");
		return;
	}
	if (side->file >= side->runs && side->file > 0) {
		job_conclude(out, "read", "latency or device", certainty,
			"Reading files seems to hold the job up: %c%s spend %.0f %% of their time in calls on files",
			tolower((unsigned char)who[0]), who + 1, 100 * side->file);
		job_say(&out->unknown,
			"whether the store is slow (latency) or full (bandwidth, IOPS): at one operating point both look the same");
		job_say(&out->next,
			"double the number of workers for a moment: if throughput doubles it was latency, if it stays the store is full");
		return;
	}
	if (side->queue >= QUEUED) {
		job_conclude(out, stage, "cores", certainty,
			"%s seem to hold the job up, and too few cores are free for them: %.0f %% of their time they are ready to run and wait for a core",
			who, 100 * side->queue);
		return;
	}
	const bool may_be_lock = job_share_may_reach(lock, side->looks, locked);
	job_conclude(out, stage, "cpu", may_be_lock ? JOB_POSSIBLE : certainty,
		"%s seem to hold the job up, and CPU time limits them: they are on a core %.0f %% of the time",
		who, 100 * side->runs);
	if (may_be_lock)
		job_say(&out->unknown,
			"whether a lock limits them instead: %.0f %% of their time at locks, from %u looks, is too near the bar of %.0f %%; observe for longer",
			100 * lock, side->looks, 100 * locked);
}

static void job_conclude_two_sides(struct job_verdict *out, bool device)
{
	const struct job_side *t = &out->trainer;
	const struct job_side *l = &out->loader;
	const double starved = t->idle + t->lock;
	/* Idle workers take turns at a queue's lock: it counts as waiting for work where any of them waits for input. */
	const bool queue_lock = l->idle >= FED / 2;
	const double lock = queue_lock ? 0 : l->lock;
	const double waiting = l->idle + l->output + (queue_lock ? l->lock : 0);
	const double work = l->runs + l->file + l->lock;
	if (starved >= STARVED && waiting < FREE) {
		job_conclude_loading("loader", "The loader workers", l, lock,
			device ? JOB_POSSIBLE : JOB_LIKELY, out);
	} else if (starved < FED && waiting >= FREE) {
		job_conclude(out, "step",
			t->queue >= QUEUED    ? "cores"
			: t->cpu >= SATURATED ? "cpu"
					      : "unknown",
			JOB_LIKELY,
			"The training step seems to limit the job: the trainer waits for data %.0f %% of the time, and the loader workers have nothing to do %.0f %% of the time",
			100 * starved, 100 * waiting);
	} else if (starved < STARVED && waiting < FREE && t->queue >= QUEUED &&
		   l->queue >= QUEUED) {
		job_conclude(out, "loader and step", "cores", device ? JOB_POSSIBLE : JOB_LIKELY,
			"Too few cores seem to be free for the job: the trainer is ready to run and waits for a core %.0f %% of the time, and the loader workers %.0f %%",
			100 * t->queue, 100 * l->queue);
	} else if (starved < STARVED && waiting < FREE && work > 0) {
		job_conclude(out, "loader and step", "unknown", JOB_POSSIBLE,
			"Loading and the training step seem nearly balanced: neither waits much for the other");
	} else if (l->count > 1 && l->kept >= UNEVEN && l->kept - l->queue >= UNEVEN / 2) {
		job_conclude(out, "loader", "cores", JOB_POSSIBLE,
			"One loader worker seems to hold the others up because it gets no core: it waits for one %.0f %% of the time",
			100 * l->kept);
	} else if (l->count > 1 && l->busiest - l->least_busy >= UNEVEN) {
		job_conclude(out, "loader", "imbalance", JOB_POSSIBLE,
			"One loader worker seems to hold the others up: the busiest works %.0f %% of the time, the least busy %.0f %%",
			100 * l->busiest, 100 * l->least_busy);
	} else {
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"What limits the job cannot be told: the trainer waits %.0f %% of the time, and its loader workers wait %.0f %% as well",
			100 * starved, 100 * waiting);
		job_say(&out->next,
			"look at the order of delivery, the prefetch depth, and what moves batches between the processes");
	}
	if (device && starved >= FED)
		job_say(&out->unknown,
			"whether the trainer waits for data or for its GPU: both look like a wait in poll or at a lock");
}

/* Of two trainers that differ a mean says nothing: they are two jobs of one launcher, or one holds the other up. */
static bool job_trainers_differ(const struct job_record *record, struct job_verdict *out)
{
	const struct job_process *most = NULL;
	const struct job_process *least = NULL;
	double high = 0;
	double low = 1;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		if (out->roles[i] != JOB_ROLE_TRAINER || process->look_count < LOOKS_LEAST)
			continue;
		const double starved =
			job_share(process, JOB_WAITS_INPUT) + job_share(process, JOB_WAITS_POLL) +
			(double)job_looks_at_locks(process->looks) / process->look_count;
		most = !most || starved > high ? process : most;
		least = !least || starved < low ? process : least;
		high = fmax(high, starved);
		low = fmin(low, starved);
	}
	if (!most || most == least || high - low < UNEVEN)
		return false;
	job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
		"What limits the job cannot be told, for its trainers differ: process %d waits for data %.0f %% of the time, and process %d %.0f %%. They are jobs of their own, or ranks of which one holds the others up",
		most->pid, 100 * high, least->pid, 100 * low);
	job_say(&out->next, "observe each by its own process ID, as %d and %d", most->pid,
		least->pid);
	return true;
}

static const char job_one_thread[] =
	"whether that one thread loads data or trains: see the CPU classes, if there are any";

/* One process: readers and computing threads of it; a thread may be both where there is only one. */
static void job_conclude_one_side(struct job_verdict *out)
{
	const struct job_side *r = &out->readers;
	const struct job_side *w = &out->workers;
	const enum job_certainty certainty = r->count + w->count > 1 ? JOB_LIKELY : JOB_POSSIBLE;
	if (r->count && r->file >= SATURATED && !(w->count && w->runs >= SATURATED)) {
		job_conclude_loading("read", "The threads that read", r, 0, certainty, out);
	} else if (r->count && w->count == 0 && r->runs + r->file >= SATURATED) {
		job_conclude_loading("process", "Its working threads", r, 0, JOB_POSSIBLE, out);
	} else if (w->count && w->runs >= SATURATED) {
		job_conclude_loading("process", "Its computing threads", w, 0, certainty, out);
		if (w->count == 1)
			job_say(&out->unknown, "%s", job_one_thread);
	} else if (w->count > 1 && w->busiest >= SATURATED &&
		   w->busiest - w->least_busy >= UNEVEN) {
		job_conclude(out, "process", "cpu", JOB_POSSIBLE,
			"One of its computing threads seems to hold the job up: it is on a core or queued for one %.0f %% of the time, and the least busy of the others %.0f %%",
			100 * w->busiest, 100 * w->least_busy);
		job_say(&out->unknown, "%s", job_one_thread);
	} else {
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"No thread that reads or computes is busy all the time: the step's own pace, a device or a wait between threads seems to limit the job");
	}
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

static bool job_stands_still(const struct job_record *record)
{
	double cpu_s = 0;
	double bytes = 0;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		const double cpu = job_grown(process->first, process->last, JOB_CPU_S);
		const double read = job_grown(process->first, process->last, JOB_READ);
		cpu_s += isnan(cpu) ? 0 : cpu;
		bytes += isnan(read) ? 0 : read;
	}
	return record->watched_s >= STILL_S && cpu_s <= STILL_CPU * record->watched_s && bytes <= 0;
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

static void job_tell_start(const struct job_record *record, struct job_verdict *out)
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

/* Time in an interpreter whose functions are not known. */
static void job_tell_functions(
	const struct job_profile *profile, uint64_t python, uint64_t all, struct job_verdict *out)
{
	static const double MUCH = 0.2;
	if ((double)python < MUCH * (double)all || (profile->mapped && profile->named))
		return;
	job_say(&out->unknown, "which Python functions take that time: %s",
		profile->mapped
			? "there is a perf map, but the interpreter was built without frame pointers (-fno-omit-frame-pointer)"
			: "no process writes a perf map (Python 3.12 or later with -X perf)");
}

/* What those that load spend their CPU time on, the most first. */
static void job_tell_classes(
	const struct job_record *record, const struct job_profile *profile, struct job_verdict *out)
{
	enum { CLASSES_TOLD = 4, CLASS_SAMPLES_LEAST = 50 };
	const enum job_role role = out->loader.count ? JOB_ROLE_LOADER : JOB_ROLE_WHOLE;
	uint64_t samples[JOB_CLASSES] = {0};
	uint64_t all = 0;
	char line[JOB_LINE_BYTES / 2] = "";
	size_t used = 0;
	for (size_t i = 0; i < record->process_count; i++)
		for (int k = 0; k < JOB_CLASSES && out->roles[i] == role; k++) {
			samples[k] += profile->classes[i][k];
			all += profile->classes[i][k];
		}
	if (all < CLASS_SAMPLES_LEAST)
		return;
	job_tell_functions(profile, samples[JOB_CLASS_PYTHON], all, out);
	for (int told = 0; told < CLASSES_TOLD && used < sizeof line; told++) {
		int most = 0;
		for (int k = 1; k < JOB_CLASSES; k++)
			if (samples[k] > samples[most])
				most = k;
		if (samples[most] == 0)
			break;
		used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %.0f %%",
			told ? ", " : "", job_class_words((enum job_class)most),
			100 * (double)samples[most] / (double)all);
		if (told == 0 && strcmp(out->resource, "cpu") == 0 &&
			!stage_is(out->stage, STAGE_STEP))
			job_say(&out->next,
				"make the largest part of the CPU time cheaper (%s), or add workers while cores are free; neither gain is predicted here",
				job_class_words((enum job_class)most));
		samples[most] = 0;
	}
	job_say(&out->evidence, "%s: CPU time by its innermost functions: %s (%llu samples)",
		out->loader.count ? "loader workers" : "process", line, (unsigned long long)all);
}

/* What may take the cores that are missing. */
static void job_tell_cores(const struct job_record *record, struct job_verdict *out)
{
	char share[UNITS_BYTES];
	double own = 0;
	for (size_t i = 0; i < record->process_count; i++) {
		const double cpu =
			job_grown(record->processes[i].first, record->processes[i].last, JOB_CPU_S);
		own += isnan(cpu) ? 0 : cpu;
	}
	if (record->watched_s > 0 && !isnan(record->node_busy_cores))
		job_say(&out->evidence,
			"node: %.1f of %.0f cores busy, of which %.1f by this job; it may run on %.0f CPUs",
			record->node_busy_cores, record->node_cores, own / record->watched_s,
			record->allowed_cpus);
	const bool limited = !isnan(record->quota_cores) && !isinf(record->quota_cores);
	if (limited)
		job_say(&out->evidence,
			"a control group limits it to %.2f cores; share of its periods in which they were used up: %s",
			record->quota_cores,
			units_or_dash(units_format_share, record->throttled, share));
	if (strcmp(out->resource, "cores") != 0)
		return;
	if (limited && record->throttled >= THROTTLED)
		job_say(&out->next,
			"raise the CPU quota of its control group (cpu.max, cpu.cfs_quota_us), which is used up in %s of its periods, or use fewer busy threads",
			units_or_dash(units_format_share, record->throttled, share));
	else
		job_say(&out->next,
			"look for a CPU quota, CPU affinity, other jobs on the node, and more threads than cores");
}

static void job_tell_unknown(const struct job_record *record, struct job_verdict *out)
{
	bool device = false;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		device = device || process->device;
		if (process->unknown[0] && out->unknown.count < JOB_LINES_MAX / 2)
			job_say(&out->unknown,
				"process %d: %s (run 'mlbench observe' as its user or as root)",
				process->pid, process->unknown);
	}
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

void job_verdict_find(
	const struct job_record *record, const struct job_profile *profile, struct job_verdict *out)
{
	bool device = false;
	*out = (struct job_verdict){.growth = NAN};
	if (record->process_count == 0)
		return;
	for (size_t i = 0; i < record->process_count; i++)
		device = device || record->processes[i].device;
	job_find_roles(record, out);
	job_side_of_role(record, out, JOB_ROLE_TRAINER, &out->trainer);
	job_side_of_role(record, out, JOB_ROLE_LOADER, &out->loader);
	job_side_of_threads(record, out, true, &out->readers);
	job_side_of_threads(record, out, false, &out->workers);
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
	else if (looks < LOOKS_LEAST)
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"Too few looks for a verdict: %u of at least %d; observe it for longer",
			looks, LOOKS_LEAST);
	else if (job_hidden(record))
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"What limits the job cannot be told, for what its processes wait for is not seen (%s)",
			job_hidden(record));
	else if (job_ranks_conclude(record, out) || job_life_conclude(record, out))
		; /* a rank holds up the others, or starts of workers cost most */
	else if (out->loader.count && !job_trainers_differ(record, out))
		job_conclude_two_sides(out, device);
	else if (!out->loader.count)
		job_conclude_one_side(out);
	job_tell_side(&out->evidence, "trainer", &out->trainer);
	job_tell_side(&out->evidence, "loader workers", &out->loader);
	job_tell_side(&out->evidence, "threads that read files", &out->readers);
	job_tell_side(&out->evidence, "threads that compute", &out->workers);
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
