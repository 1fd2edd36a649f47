/* From two sides that wait for each other, or not, to a stage and a resource. */
#include "harness/analyze/job_cause.h"

#include "harness/analyze/job_roles.h"
#include "harness/analyze/job_sides.h"
#include "harness/analyze/job_tell.h"
#include "harness/base/array.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double STARVED = 0.2, FED = 0.1; /* of the trainer's time */
static const double FREE = 0.2;   /* of the loaders' time: waiting for work or for room */
static const double QUEUED = 0.2; /* run-queue wait, of wall time: too few cores; below it
					    cheaper work gains more than cores do */
/* At locks: of those that have one lock among them all but one wait at any moment, where it is what limits them; sure is how many
 * are at most at work outside of it. */
static const double LOCKED = 0.3, LOCKED_OF_OTHERS = 0.6, LOCKED_OUTSIDE = 1.5;
static const double SATURATED = 0.8;
static const double ASLEEP = 0.5;   /* of the loaders' time, by their own choice */
static const double UNEVEN = 0.4;   /* between the busiest and the least busy loader */
static const double SEEN_CPU = 0.3; /* of the time: less is no evidence of work on a core */
static const double FAULTING = 0.2; /* of the time, in page faults that wait */
static const double SHORT = 0.3;    /* of bytes from a device: they had been in memory before */
static const double AVOIDABLE = 0.2, AVOIDABLE_MUCH = 0.35; /* of the trainer's time */
static const double HALF = 0.5;   /* of the time, or of CPU time: most of it */
static const double CLEAR = 0.15; /* of the time: a cause leads the next by so much */
static const double THROTTLED = 0.1, THROTTLED_MUCH = 0.3; /* of a quota's periods */
static const double FILLED = 0.7; /* of the cores that the job may use, by itself */
static const double NODE_FULL = 0.85;
static const double CROWD = 2; /* runnable threads of the job for each core: more than work needs */
static const double WRITING = 0.05; /* of the trainer's time, in writes and fsync */
static const double HANDING = 0.2;  /* of CPU time, for copies, serialisation and queues */
enum { CLASS_SAMPLES_LEAST = 50 };

struct cause_input {
	const struct job_record *record;
	const struct job_profile *profile;
	struct job_verdict *out;
	bool device; /* a GPU is open */
	bool others; /* of the node use cores that a side waits for, though not for most of its time */
};

/* --- CPU time by what it is for ----------------------------------------------------------------- */

enum cause_part { PART_PREPARES, PART_HANDS_OVER, PART_WRITES, PART_COMPUTES, PART_KERNEL, PARTS };

/* Whether what a role writes goes to storage: pipes and sockets are written to by the same calls. */
static bool cause_writes_files(const struct cause_input *in, enum job_role role)
{
	double written = 0;
	double stored = 0;
	for (size_t i = 0; i < in->record->process_count; i++) {
		const struct job_process *process = &in->record->processes[i];
		if (in->out->roles[i] != role)
			continue;
		/* fmax passes over NAN. */
		written += fmax(job_grown(process->first, process->last, JOB_WRITTEN), 0);
		stored += fmax(job_grown(process->first, process->last, JOB_DISK_WRITTEN), 0);
	}
	return stored > 0 && stored >= HALF * written;
}

/* Shares of a role's CPU time; false: too few samples, or most of them in code that is not known. */
static bool cause_parts(const struct cause_input *in, enum job_role role, double parts[PARTS])
{
	static const enum cause_part part_of[JOB_CLASSES] = {
		[JOB_CLASS_DECODE] = PART_PREPARES,
		[JOB_CLASS_RESIZE] = PART_PREPARES,
		[JOB_CLASS_PYTHON] = PART_PREPARES,
		[JOB_CLASS_READ] = PART_PREPARES,
		[JOB_CLASS_COPY] = PART_HANDS_OVER,
		[JOB_CLASS_SERIAL] = PART_HANDS_OVER,
		[JOB_CLASS_WRITE] = PART_WRITES,
		[JOB_CLASS_QUEUE] = PART_HANDS_OVER,
		[JOB_CLASS_KERNEL] = PART_KERNEL,
		[JOB_CLASS_BLAS] = PART_COMPUTES,
		[JOB_CLASS_TENSOR] = PART_COMPUTES,
		[JOB_CLASS_LIBC] = PARTS,
		[JOB_CLASS_OTHER] = PARTS,
	};
	double shares[JOB_CLASSES];
	const uint64_t samples = job_class_shares(in->record, in->profile, in->out, role, shares);
	memset(parts, 0, PARTS * sizeof *parts);
	for (int k = 0; k < JOB_CLASSES; k++)
		if (part_of[k] < PARTS)
			parts[part_of[k]] += shares[k];
	if (!cause_writes_files(in, role)) {
		parts[PART_HANDS_OVER] += parts[PART_WRITES];
		parts[PART_WRITES] = 0;
	}
	/* The kernel maps and copies what is handed over. */
	if (parts[PART_HANDS_OVER] >= HANDING)
		parts[PART_HANDS_OVER] += parts[PART_KERNEL];
	/* Allocation is done for Python's objects, where there is Python. */
	if (shares[JOB_CLASS_PYTHON] > parts[PART_COMPUTES])
		parts[PART_PREPARES] += shares[JOB_CLASS_LIBC];
	return samples >= CLASS_SAMPLES_LEAST && parts[PART_PREPARES] + parts[PART_HANDS_OVER] +
								 parts[PART_WRITES] +
								 parts[PART_COMPUTES] >=
							 HALF;
}

/* --- cores -------------------------------------------------------------------------------------- */

/* CPUs that any process of the job may run on by affinity; NAN: not known. */
static double cause_affinity(const struct job_record *record, const struct job_verdict *verdict)
{
	double count = 0;
	for (size_t k = 0; k < JOB_CPUS_MAX / 64; k++) {
		uint64_t all = 0;
		for (size_t i = 0; i < record->process_count; i++)
			if (verdict->roles[i] != JOB_ROLE_HELPER)
				all |= record->processes[i].cpus[k];
		count += __builtin_popcountll(all);
	}
	return count > 0 ? count : NAN;
}

static double cause_runnable(const struct job_record *record)
{
	double sum = 0;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		if (process->look_count && record->watched_s > 0)
			sum += (double)process->runnable / process->look_count *
			       fmin(job_process_seconds(process) / record->watched_s, 1);
	}
	return sum;
}

const char *job_cores_cause(const struct job_record *record, const struct job_verdict *verdict)
{
	const double own = job_cores_used(record, verdict);
	const double mask = cause_affinity(record, verdict);
	/* fmin passes over NAN. */
	const double usable = fmin(fmin(record->node_cores, mask), record->quota_cores);
	const double others = record->node_busy_cores - own;
	const double runnable = cause_runnable(record);
	const bool limited = isfinite(record->quota_cores);
	if (limited && record->throttled >= THROTTLED)
		return "quota";
	if (mask < record->node_cores)
		return own >= FILLED * mask || !(others >= JOB_OTHERS * mask) ? "affinity"
									      : "external";
	if (runnable >= 2 * CROWD * usable && own > others)
		return "threads";
	if (record->node_busy_cores >= NODE_FULL * record->node_cores &&
		others >= JOB_OTHERS * record->node_cores)
		return "external";
	if (own >= FILLED * usable)
		return runnable >= CROWD * usable ? "threads" : "cpu";
	return "cores";
}

/* Whether a quota stops the job, which some kernels do not count as run-queue wait. */
static bool cause_is_throttled(const struct job_record *record)
{
	return isfinite(record->quota_cores) && record->throttled >= THROTTLED_MUCH;
}

static const char *cause_cores_words(const char *resource)
{
	static const struct {
		const char *resource, *words;
	} words[] = {
		{"quota", "a CPU quota of its control group is used up"},
		{"affinity", "an affinity mask holds the job on few cores"},
		{"external", "other processes of the node keep its cores busy"},
		{"threads",
			"the job itself has far more threads ready to run than there are cores"},
		{"cores", "too few cores are free for them"},
	};
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(words[i].resource, resource) == 0)
			return words[i].words;
	return "";
}

/* --- those that load ---------------------------------------------------------------------------- */

struct cause_loaders {
	const char *stage, *who;
	const struct job_side *side;
	double lock
		[JOB_ACTS]; /* of these acts: shares of their time, where they are no wait for work */
	double work;        /* share of their time in which they have any */
	enum job_certainty certainty; /* at most */
	enum job_role role;
};

/* Within three standard errors of a share of looks (binomial; looks at threads that wait for each other are not independent). */
static bool job_share_may_reach(double share, uint32_t looks, double bar)
{
	return share + 3 * sqrt(share * (1 - share) / (looks ? looks : 1)) >= bar;
}

static const char *cause_lock_words(enum job_act act)
{
	return act == JOB_WAITS_FILE_LOCK   ? "locks on files (flock, fcntl)"
	       : act == JOB_WAITS_SEMAPHORE ? "semaphores that processes share"
	       : act == JOB_WAITS_LOCK      ? "mutexes"
					    : "a lock of its threads";
}

static const char *cause_lock_next(enum job_act act)
{
	return act == JOB_WAITS_FILE_LOCK
		       ? "lock no file for each sample: use a lock for each worker's own file, or none for reading"
		       : "do less while the lock is held, or give each worker a file handle, cache or connection of its own";
}

static double cause_locked_share(const struct cause_loaders *l)
{
	double all = 0;
	for (int i = 0; i < JOB_ACTS; i++)
		all += l->lock[i];
	return all;
}

/* in_order: some wait for the one that waits for the lock. */
static bool cause_is_locked(struct cause_input *in, const struct cause_loaders *l, bool in_order)
{
	const struct job_side *side = l->side;
	const double n = (double)side->count;
	const double others = n > 1 ? 1 - 1 / n : 1;
	const double bar = l->work * (in_order ? LOCKED : fmax(LOCKED, LOCKED_OF_OTHERS * others));
	const double all = cause_locked_share(l);
	enum job_act most = JOB_WAITS_LOCK;
	for (int i = 0; i < JOB_ACTS; i++)
		most = l->lock[i] > l->lock[most] ? (enum job_act)i : most;
	if (all < bar || all <= side->file)
		return false;
	/* Who waits for a core may hold the lock. */
	const bool sure = most != JOB_WAITS_CONDITION && n > 1 && !in_order &&
			  all >= fmax(bar, l->work * (1 - LOCKED_OUTSIDE / n)) &&
			  !(side->queue >= QUEUED);
	job_conclude(in->out, l->stage, "lock", sure ? l->certainty : JOB_POSSIBLE,
		"%s seem to hold the job up, and spend %.0f %% of their time at locks, most of it at %s",
		l->who, 100 * all, cause_lock_words(most));
	job_say(&in->out->next, "%s", cause_lock_next(most));
	return true;
}

/* So many looks do not exclude a lock: the share of their time, or 0. */
static double cause_may_be_locked(const struct cause_loaders *l)
{
	const double n = (double)l->side->count;
	const double all = cause_locked_share(l);
	const double bar = l->work * fmax(LOCKED, LOCKED_OF_OTHERS * (n > 1 ? 1 - 1 / n : 1));
	return job_share_may_reach(all, l->side->looks, bar) ? all : 0;
}

/* Bytes that came from a device again though they had been in memory; NAN: not known. */
static double cause_refaults(const struct job_record *record)
{
	double stored = 0;
	for (size_t i = 0; i < record->process_count; i++) {
		const double grown = job_grown(
			record->processes[i].first, record->processes[i].last, JOB_DISK_READ);
		stored += isnan(grown) ? 0 : grown;
	}
	return stored > 0 ? record->refault_file / stored : NAN;
}

static bool cause_is_memory(struct cause_input *in, const struct cause_loaders *l)
{
	static const double MUCH = 1 << 20; /* bytes a second */
	const double fault = l->side->acts[JOB_WAITS_FAULT];
	if (!(fault >= FAULTING) || !(in->record->refault_swap >= MUCH * in->record->watched_s))
		return false;
	job_conclude(in->out, l->stage, "memory", JOB_POSSIBLE,
		"%s seem to hold the job up, and memory is short: they wait in page faults %.0f %% of the time, and pages come back from swap",
		l->who, 100 * fault);
	job_say(&in->out->next,
		"use fewer workers or a smaller prefetch depth, or raise the limit of memory");
	return true;
}

static void cause_is_read(struct cause_input *in, const struct cause_loaders *l, double reading)
{
	struct job_verdict *out = in->out;
	const double network = l->side->acts[JOB_WAITS_NETWORK];
	if (cause_refaults(in->record) >= SHORT) {
		job_conclude(out, "read", "cache", JOB_POSSIBLE,
			"Reading files seems to hold the job up, for they do not stay in memory: %c%s spend %.0f %% of their time in calls on files, and %.0f %% of what is read from storage had been in memory before",
			tolower((unsigned char)l->who[0]), l->who + 1, 100 * reading,
			100 * fmin(cause_refaults(in->record), 1));
		job_say(&out->next,
			"give the job more memory, or read in an order that comes back to a file before it is dropped");
		return;
	}
	job_conclude(out, "read", "latency or device", l->certainty,
		"Reading %s seems to hold the job up: %c%s spend %.0f %% of their time in calls on %s",
		network > l->side->file ? "from the network" : "files",
		tolower((unsigned char)l->who[0]), l->who + 1, 100 * reading,
		network > l->side->file ? "sockets" : "files");
	job_say(&out->unknown,
		"whether the store is slow (latency) or full (bandwidth, IOPS): at one operating point both look the same");
	job_say(&out->next,
		"double the number of workers for a moment: if throughput doubles it was latency, if it stays the store is full");
}

/* Whether a side's waits for cores are what limits it.  Others beside whom it has its core for longer than it waits are no more than a
 * part of it: cheaper work gains as much as they cost. */
static bool cause_lacks_cores(
	struct cause_input *in, const struct job_side *side, const char **resource)
{
	*resource = job_cores_cause(in->record, in->out);
	if (!(side->queue >= QUEUED) && !cause_is_throttled(in->record))
		return false;
	if (strcmp(*resource, "cpu") == 0) {
		job_say(&in->out->evidence,
			"the job itself uses up the cores that it may use: more of them would help as well");
		return false;
	}
	if (strcmp(*resource, "external") != 0 || side->queue > side->cpu)
		return true;
	in->others = true;
	job_say(&in->out->unknown,
		"how much the other processes of the node cost: %.0f %% of the time it waits for cores that they use, and %.0f %% it has one",
		100 * side->queue, 100 * side->cpu);
	return false;
}

/* Beside others cheaper work gains at least as much as cores do, unless the job has hardly any. */
static bool cause_surely_cores(const struct job_side *side, const char *resource)
{
	static const double TIMES = 2;
	return strcmp(resource, "external") != 0 || side->queue >= TIMES * side->cpu;
}

static bool cause_is_cores(struct cause_input *in, const struct cause_loaders *l, double lock)
{
	const char *resource;
	if (!cause_lacks_cores(in, l->side, &resource))
		return false;
	const bool sure = cause_surely_cores(l->side, resource) && !(lock >= FED);
	job_conclude(in->out, l->stage, resource, sure ? l->certainty : JOB_POSSIBLE,
		"%s seem to hold the job up, and %s: %.0f %% of their time they are ready to run and wait for a core",
		l->who, cause_cores_words(resource), 100 * l->side->queue);
	return true;
}

/* What the loaders spend their time on decides the resource. */
static void job_conclude_loading(struct cause_input *in, const struct cause_loaders *l)
{
	struct job_verdict *out = in->out;
	const struct job_side *side = l->side;
	const double reading = side->file + side->acts[JOB_WAITS_NETWORK];
	double parts[PARTS];
	const double lock = cause_may_be_locked(l);
	if (cause_is_locked(in, l, false))
		return;
	if (side->time >= ASLEEP && side->time > reading) {
		job_conclude(out, l->stage, "wait", JOB_POSSIBLE,
			"%s seem to hold the job up, and sleep by their own choice %.0f %% of the time: a rate limit, a retry after an error, or a poll",
			l->who, 100 * side->time);
		job_say(&out->next,
			"look for sleeps, time-outs and rate limits in the loader's code, and for retries in its log");
		return;
	}
	if (cause_is_memory(in, l))
		return;
	if (reading >= side->runs && reading > 0) {
		cause_is_read(in, l, reading);
		return;
	}
	if (cause_is_cores(in, l, cause_locked_share(l)))
		return;
	if (side->runs < SEEN_CPU && !(side->cpu >= SEEN_CPU)) {
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"%s seem to hold the job up, and what they do is not seen: they are on a core %.0f %% of the time, and read files %.0f %%",
			l->who, 100 * side->runs, 100 * reading);
		return;
	}
	const bool known = cause_parts(in, l->role, parts);
	if (known && parts[PART_HANDS_OVER] >= HALF) {
		job_conclude(out, "trainer", "hand-over", JOB_POSSIBLE,
			"Handing batches over seems to hold the job up: %c%s are on a core %.0f %% of the time, of which %.0f %% is for copies, serialisation and queues",
			tolower((unsigned char)l->who[0]), l->who + 1, 100 * side->runs,
			100 * parts[PART_HANDS_OVER]);
		return;
	}
	const bool near =
		lock > 0 || in->others || (reading >= side->runs - CLEAR && reading > FED);
	job_conclude(out, l->stage, "cpu", near ? JOB_POSSIBLE : l->certainty,
		"%s seem to hold the job up, and CPU time limits them: they are on a core %.0f %% of the time",
		l->who, 100 * side->runs);
	if (lock > 0)
		job_say(&out->unknown,
			"whether a lock limits them instead: %.0f %% of their time at locks, from %u looks, is too near the bar; observe for longer",
			100 * lock, side->looks);
}

/* --- the trainer -------------------------------------------------------------------------------- */

enum { CAUSE_WRITE, CAUSE_PREPARE, CAUSE_HAND_OVER, CAUSE_COMPUTE, CAUSE_READ, CAUSE_REST, CAUSES };

struct cause_trainer {
	const struct job_side *side, *head; /* the process, and its first thread */
	enum job_role role;
	double starved, waiting; /* of its time: for data; of the loaders': for the trainer */
	const char *others;      /* who waits for it; NULL: nobody */
};

/* "; the loader workers have nothing to do 80 % of the time", or nothing. */
static const char *cause_others_words(const struct cause_trainer *t, char words[JOB_LINE_BYTES])
{
	words[0] = '\0';
	if (t->others)
		(void)snprintf(words, JOB_LINE_BYTES,
			", it waits for data %.0f %%, and %s have nothing to do %.0f %%",
			100 * t->starved, t->others, 100 * t->waiting);
	return words;
}

/* Shares of the first thread's time, as far as they can be told: what runs by the classes of the CPU time. */
static bool cause_split(
	const struct cause_input *in, const struct cause_trainer *t, double of[CAUSES])
{
	double parts[PARTS];
	const struct job_side *h = t->head;
	const double runs = h->runs; /* what waits for a core is work as well */
	const bool known = cause_parts(in, t->role, parts);
	/* What the kernel computes for a thread that is seen in writes is for these. */
	const double writes =
		h->write >= WRITING ? h->acts[JOB_WAITS_HELD] + runs * parts[PART_KERNEL] : 0;
	of[CAUSE_WRITE] = h->write + (known ? writes + runs * parts[PART_WRITES] : 0);
	of[CAUSE_READ] = h->file;
	of[CAUSE_PREPARE] = known ? runs * parts[PART_PREPARES] : 0;
	of[CAUSE_HAND_OVER] = known ? runs * parts[PART_HANDS_OVER] : 0;
	of[CAUSE_COMPUTE] = known ? runs * parts[PART_COMPUTES] : runs;
	of[CAUSE_REST] = h->time + h->acts[JOB_WAITS_DEVICE] + h->acts[JOB_WAITS_CHILD] +
			 h->acts[JOB_WAITS_OTHER];
	return known;
}

static void cause_say_trainer(struct cause_input *in, const struct cause_trainer *t, int cause,
	double share, enum job_certainty certainty, bool known)
{
	struct job_verdict *out = in->out;
	const bool alone = !t->others;
	char others[JOB_LINE_BYTES];
	(void)cause_others_words(t, others);
	switch (cause) {
	case CAUSE_WRITE:
		job_conclude(out, "step", "write", certainty,
			"Writing files seems to hold the job up: the trainer's own thread is in writes and fsync %.0f %% of the time%.160s",
			100 * share, others);
		job_say(&out->next,
			"write in another thread or less often, and call fsync once at the end: checkpoints and logs need not stop the training");
		return;
	case CAUSE_PREPARE:
		job_conclude(out, alone ? "process" : "trainer", "cpu", certainty,
			"%s: it is on a core for that %.0f %% of the time%.160s",
			alone ? "The one process loads data and trains in turns, and CPU time for data seems to limit it"
			      : "The trainer's own thread prepares data, which seems to hold the job up",
			100 * share, others);
		job_say(&out->next, "%s",
			alone ? "load in worker processes (PyTorch: num_workers above 0), which overlaps loading and training"
			      : "move what the trainer does between its steps (tokenising, collating, shuffling) into the loader workers");
		return;
	case CAUSE_HAND_OVER:
		job_conclude(out, "trainer", "hand-over", certainty,
			"Handing batches over seems to hold the job up: the trainer's own thread copies, unpacks and receives %.0f %% of the time%.160s",
			100 * share, others);
		job_say(&out->next,
			"hand over few large arrays instead of many small objects, collate in the workers, and keep batches in shared memory");
		return;
	case CAUSE_READ:
		job_conclude(out, "read", "latency or device", certainty,
			"Reading files seems to hold the job up: the trainer's own thread is in calls on files %.0f %% of the time%.160s",
			100 * share, others);
		return;
	default:
		job_conclude(out, alone && !known ? "process" : "step",
			cause == CAUSE_COMPUTE ? "cpu" : "unknown", certainty,
			"%s seems to limit the job: %s %.0f %% of the time%.160s",
			alone && !known ? "CPU time of the one process" : "The training step",
			cause == CAUSE_COMPUTE ? "it is on a core" : "it takes", 100 * share,
			others);
	}
}

/* What takes most of its time.  The step's own pace (it sleeps, or waits for a device) is what a trainer is for: anything else that it does
 * between two steps is named before that, once it costs enough. */
static int cause_of_trainer(const double of[CAUSES])
{
	int most = CAUSE_WRITE;
	for (int i = 0; i < CAUSE_REST; i++)
		most = of[i] > of[most] ? i : most;
	return of[most] >= AVOIDABLE || of[most] > of[CAUSE_REST] ? most : CAUSE_REST;
}

/* The trainer has the work: what its first thread spends most of its time on. */
static void job_conclude_trainer(struct cause_input *in, const struct cause_trainer *t)
{
	struct job_verdict *out = in->out;
	const bool alone = !t->others;
	const char *cores;
	double of[CAUSES] = {0};
	const bool known = cause_split(in, t, of);
	const int most = cause_of_trainer(of);
	int next = most == CAUSE_WRITE ? CAUSE_READ : CAUSE_WRITE;
	for (int i = 0; i < CAUSES; i++)
		next = i != most && i != CAUSE_REST && of[i] > of[next] ? i : next;
	if (most != CAUSE_WRITE && most != CAUSE_REST && cause_lacks_cores(in, t->side, &cores)) {
		job_conclude(out, alone ? "process" : "step", cores,
			t->starved < FED && cause_surely_cores(t->side, cores) ? JOB_LIKELY
									       : JOB_POSSIBLE,
			"%s seems to limit the job, and %s: %.0f %% of the time it is ready to run and waits for a core",
			alone ? "The one process" : "The training step", cause_cores_words(cores),
			100 * t->side->queue);
		return;
	}
	if (alone && most == CAUSE_REST) {
		job_conclude(out, "unknown", "unknown", JOB_UNKNOWN,
			"No thread that reads or computes is busy all the time: the step's own pace, a device or a wait between threads seems to limit the job");
		return;
	}
	const double sure = most == CAUSE_WRITE     ? AVOIDABLE
			    : most == CAUSE_COMPUTE ? HALF
						    : AVOIDABLE_MUCH;
	const bool clear = of[most] >= sure && of[most] - of[next] >= CLEAR;
	const bool told = most != CAUSE_COMPUTE || known;
	cause_say_trainer(in, t, most, of[most],
		t->starved < FED && clear && told && !in->others &&
				!(in->device && most != CAUSE_WRITE && most != CAUSE_REST)
			? JOB_LIKELY
			: JOB_POSSIBLE,
		known);
	if (!told)
		job_say(&out->unknown,
			"whether that is the step or the preparation of data: its CPU time was not sampled, or is in code that is not known");
	else if (of[next] > FED)
		job_say(&out->unknown,
			"whether removing that alone helps: it takes %.0f %% of the trainer's time, and what comes next %.0f %%",
			100 * of[most], 100 * of[next]);
}

/* --- two sides ---------------------------------------------------------------------------------- */

struct cause_sides {
	struct cause_trainer trainer;
	struct cause_loaders loaders;
};

static void job_conclude_two_sides(struct cause_input *in, const struct cause_sides *sides)
{
	struct job_verdict *out = in->out;
	const struct cause_trainer *t = &sides->trainer;
	const struct job_side *l = sides->loaders.side;
	const double starved = t->starved;
	const double waiting = t->waiting;
	const double work = l->runs + l->file + l->lock + l->acts[JOB_WAITS_NETWORK];
	const double handing = l->output + l->acts[JOB_WAITS_SEMAPHORE];
	const char *cores = job_cores_cause(in->record, out);
	if (starved >= STARVED && waiting < FREE) {
		job_conclude_loading(in, &sides->loaders);
	} else if (starved < STARVED && waiting >= FREE) {
		job_conclude_trainer(in, t);
	} else if (starved < STARVED && waiting < FREE && t->side->queue >= QUEUED &&
		   l->queue >= QUEUED) {
		const bool own = strcmp(cores, "cpu") == 0;
		job_conclude(out, "loader and step", own ? "cores" : cores,
			sides->loaders.certainty,
			"Too few cores seem to be free for the job%s%s: the trainer is ready to run and waits for a core %.0f %% of the time, and %s %.0f %%",
			own ? "" : ", for ", own ? "" : cause_cores_words(cores),
			100 * t->side->queue, t->others, 100 * l->queue);
	} else if (starved < STARVED && waiting < FREE && work > 0) {
		job_conclude(out, "loader and step", "unknown", JOB_POSSIBLE,
			"Loading and the training step seem nearly balanced: neither waits much for the other");
	} else if (l->output >= FREE && handing >= HALF && t->side->acts[JOB_WAITS_INPUT] >= FED) {
		job_conclude(out, "trainer", "hand-over", JOB_POSSIBLE,
			"Handing batches over seems to hold the job up: %s wait for room to write %.0f %% of the time, while the trainer waits in the middle of what it reads %.0f %%",
			t->others, 100 * l->output, 100 * t->side->acts[JOB_WAITS_INPUT]);
		job_say(&out->next,
			"hand over few large arrays in shared memory instead of bytes through a pipe");
	} else if (cause_locked_share(&sides->loaders) >= LOCKED * (1 - waiting) && l->count > 1) {
		/* Delivery in order lets some wait for the one that waits for the lock. */
		(void)cause_is_locked(in, &sides->loaders, true);
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
			"What limits the job cannot be told: the trainer waits %.0f %% of the time, and %s wait %.0f %% as well",
			100 * starved, t->others, 100 * waiting);
		job_say(&out->next,
			"look at the order of delivery, the prefetch depth, and what moves batches between the processes");
	}
	if (in->device && starved >= FED)
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
		if (out->roles[i] != JOB_ROLE_TRAINER || process->look_count < JOB_LOOKS_LEAST)
			continue;
		const double starved =
			job_share(process, JOB_WAITS_INPUT) +
			job_share(process, JOB_WAITS_NETWORK) + job_share(process, JOB_WAITS_POLL) +
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

/* Whether semaphores are those of queues that idle workers wait for in turn: while one waits for its input, the others wait for that.
 * Where it polls its queue, it does so with a time-out, and so do the others. */
static bool cause_is_queue(
	const struct job_record *record, const struct job_verdict *out, const struct job_side *l)
{
	double timed = 0;
	double all = 0;
	for (size_t i = 0; i < record->process_count; i++)
		if (out->roles[i] == JOB_ROLE_LOADER) {
			timed += record->processes[i].timed_semaphores;
			all += record->processes[i].looks[JOB_WAITS_SEMAPHORE];
		}
	const bool polls = l->acts[JOB_WAITS_POLL] > l->acts[JOB_WAITS_INPUT];
	return l->idle >= FED / 2 && !(polls && timed < HALF * all);
}

/* Loader processes and their trainers. */
static void job_conclude_processes(struct cause_input *in)
{
	struct job_verdict *out = in->out;
	const struct job_side *t = &out->trainer;
	const struct job_side *l = &out->loader;
	const bool queue = cause_is_queue(in->record, out, l);
	const double waiting = l->idle - l->acts[JOB_WAITS_NETWORK] + l->output +
			       l->acts[JOB_WAITS_CONDITION] +
			       (queue ? l->acts[JOB_WAITS_SEMAPHORE] : 0);
	struct cause_sides sides = {.trainer = {.side = t,
					    .head = out->head.count ? &out->head : t,
					    .role = JOB_ROLE_TRAINER,
					    .starved = t->idle + t->lock,
					    .waiting = waiting,
					    .others = "the loader workers"},
		.loaders = {.stage = "loader",
			.who = "The loader workers",
			.side = l,
			.work = 1 - waiting,
			.certainty = in->device ? JOB_POSSIBLE : JOB_LIKELY,
			.role = JOB_ROLE_LOADER}};
	sides.loaders.lock[JOB_WAITS_LOCK] = l->acts[JOB_WAITS_LOCK];
	sides.loaders.lock[JOB_WAITS_FILE_LOCK] = l->acts[JOB_WAITS_FILE_LOCK];
	if (!queue)
		sides.loaders.lock[JOB_WAITS_SEMAPHORE] = l->acts[JOB_WAITS_SEMAPHORE];
	job_conclude_two_sides(in, &sides);
}

/* --- threads of one process --------------------------------------------------------------------- */

struct cause_turns {
	size_t threads,
		pool; /* that take turns; of these those that are not the first of their process */
	double cores; /* that they use in sum */
	double waiting, ran; /* of them at a time; threads on a core meanwhile */
	double busy; /* the least share of its time that one of them runs or waits for its turn */
};

/* Threads that wait at one place of one process; the place where most do. */
static bool cause_find_turns(
	const struct job_record *record, const struct job_verdict *out, struct cause_turns *turns)
{
	const struct job_futex *best = NULL;
	uint32_t process = 0;
	double queued = 0;
	*turns = (struct cause_turns){.busy = 1};
	for (uint32_t i = 0; i < record->process_count; i++)
		for (size_t k = 0; out->roles[i] == JOB_ROLE_WHOLE && k < JOB_FUTEXES_MAX; k++) {
			const struct job_futex *futex = &record->processes[i].futexes[k];
			if (futex->several && 2 * futex->timed > futex->waits &&
				(!best || futex->waits > best->waits)) {
				best = futex;
				process = i;
			}
		}
	if (!best || record->processes[process].look_count == 0)
		return false;
	for (size_t i = 0; i < record->thread_count; i++) {
		const struct job_thread *thread = &record->threads[i];
		const double lived = thread->last_s - thread->first_s;
		double looks = 0;
		for (int act = 0; act < JOB_ACTS; act++)
			looks += thread->looks[act];
		const double turn = thread->looks[JOB_WAITS_TURN] / looks;
		if (thread->process != process || !(turn >= FED) || !(lived > 0))
			continue;
		turns->threads++;
		turns->pool += thread->tid != record->processes[process].pid;
		turns->cores += job_grown(thread->first, thread->last, JOB_CPU_S) / lived;
		queued += fmax(job_thread_queue_s(thread), 0) / lived;
		turns->busy = fmin(turns->busy, turn + thread->looks[JOB_RUNS] / looks);
	}
	turns->waiting = (double)best->waits / record->processes[process].look_count;
	turns->ran = (double)best->ran / best->looks - queued;
	return turns->threads > 1;
}

/* The lock of an interpreter: its threads have work and take turns, about one core in sum.  A pool that waits for work at one
 * place uses less, or more than one of it runs. */
static bool job_conclude_turns(struct cause_input *in)
{
	static const double ONE_CORE_LEAST = 0.7, ONE_CORE_MOST = 1.5, RUN_AT_ONCE = 1.5;
	struct cause_turns turns;
	double parts[PARTS];
	if (!cause_find_turns(in->record, in->out, &turns) || turns.waiting < HALF ||
		!(turns.cores >= ONE_CORE_LEAST && turns.cores <= ONE_CORE_MOST) ||
		turns.ran > RUN_AT_ONCE)
		return false;
	/* Where there is but one core, threads of a program without such a lock take turns at it as well, though in the run queue. */
	const bool cores = !(fmin(in->record->allowed_cpus, in->record->quota_cores) < 2) &&
			   !(in->out->pool.queue >= QUEUED);
	const bool python = !cause_parts(in, JOB_ROLE_WHOLE, parts) || parts[PART_PREPARES] >= HALF;
	job_conclude(in->out, turns.pool > 1 ? "loader" : "process", "gil",
		cores && python && turns.busy >= HALF ? JOB_LIKELY : JOB_POSSIBLE,
		"Threads of one interpreter seem to hold the job up, for only one of them runs at a time (GIL): %zu threads use %.2f cores in sum, and %.1f of them wait for their turn at any moment",
		turns.threads, turns.cores, turns.waiting);
	job_say(&in->out->next,
		"use worker processes instead of threads, or let the work be done by code that releases the lock");
	return true;
}

/* Of threads that all wait at one place but one: where it is always one that does not, the place is a lock; where it is a queue, now
 * more are at work and now fewer. */
static double cause_condition_lock(const struct job_record *record, const struct job_verdict *out)
{
	static const double STEADY = 0.35, ONE = 0.4; /* standard deviation; how far from one */
	double most = 0;
	for (size_t i = 0; i < record->process_count; i++)
		for (size_t k = 0; out->roles[i] == JOB_ROLE_WHOLE && k < JOB_FUTEXES_MAX; k++) {
			const struct job_process *process = &record->processes[i];
			const struct job_futex *futex = &process->futexes[k];
			const double n = fmax(process->look_count, 1);
			const double mean = futex->waits / n;
			const double spread = sqrt(fmax(futex->squares / n - mean * mean, 0));
			double threads = 0;
			for (size_t t = 0; t < record->thread_count; t++)
				threads += record->threads[t].process == i && futex->address &&
					   record->threads[t].futex_votes > 0 &&
					   record->threads[t].futex == futex->address;
			if (futex->several && threads > 1 && spread <= STEADY &&
				fabs(threads - mean - 1) <= ONE)
				most = fmax(most, mean / threads);
		}
	return most;
}

/* A process whose threads load for its first one, or help it. */
static void job_conclude_threads(struct cause_input *in)
{
	struct job_verdict *out = in->out;
	const struct job_side *h = &out->head;
	const struct job_side *p = &out->pool;
	const double lock = cause_condition_lock(in->record, out);
	double parts[PARTS];
	const bool known = cause_parts(in, JOB_ROLE_WHOLE, parts);
	const bool computes = known && parts[PART_COMPUTES] >= HALF;
	const double idle = p->idle - p->acts[JOB_WAITS_NETWORK] + p->output +
			    (lock > 0 ? 0 : p->acts[JOB_WAITS_CONDITION]) +
			    p->acts[JOB_WAITS_SEMAPHORE];
	struct cause_sides sides = {.trainer = {.side = h,
					    .head = h,
					    .role = JOB_ROLE_WHOLE,
					    .starved = h->idle + h->lock,
					    .waiting = idle,
					    .others = "its other threads"},
		.loaders = {.stage = computes ? "process" : "loader",
			.who = "Its other threads",
			.side = p,
			.work = 1 - idle,
			.certainty = !computes && (known || p->file >= HALF) && !in->device
					     ? JOB_LIKELY
					     : JOB_POSSIBLE,
			.role = JOB_ROLE_WHOLE}};
	sides.loaders.lock[JOB_WAITS_LOCK] = p->acts[JOB_WAITS_LOCK];
	sides.loaders.lock[JOB_WAITS_FILE_LOCK] = p->acts[JOB_WAITS_FILE_LOCK];
	sides.loaders.lock[JOB_WAITS_CONDITION] = lock;
	/* One of a pool may have all the work, and the others wait for it. */
	if (sides.trainer.starved >= STARVED && idle >= FREE && p->busiest >= SATURATED) {
		job_conclude(out, sides.loaders.stage, "cpu", JOB_POSSIBLE,
			"One thread of the process seems to hold the job up: it works %.0f %% of the time, while its first thread waits for data %.0f %%",
			100 * p->busiest, 100 * sides.trainer.starved);
		job_say(&out->next, "split that thread's work, or give it more threads");
		return;
	}
	job_conclude_two_sides(in, &sides);
}

void job_find_cause(
	const struct job_record *record, const struct job_profile *profile, struct job_verdict *out)
{
	struct cause_input in = {.record = record, .profile = profile, .out = out};
	for (size_t i = 0; i < record->process_count; i++)
		in.device = in.device || record->processes[i].device;
	if (out->loader.count) {
		if (!job_trainers_differ(record, out))
			job_conclude_processes(&in);
	} else if (!job_conclude_turns(&in)) {
		const struct cause_trainer alone = {.side = &out->head,
			.head = &out->head,
			.role = JOB_ROLE_WHOLE,
			.starved = out->head.idle + out->head.lock};
		if (out->pool.count)
			job_conclude_threads(&in);
		else
			job_conclude_trainer(&in, &alone);
	}
}
