/* Generations of workers, pauses, and growing memory. */
#include "harness/analyze/job_life.h"

#include "harness/analyze/job_tell.h"
#include "harness/analyze/job_verdict.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LIFE_KINDS_MAX = 8,
	LIFE_GENERATIONS_MAX = 1024,
	LIFE_LOOKS_LEAST = 30,
	LIFE_FORKING_BINS = 5
};
static const double LIFE_LAG_S = 0.25;                               /* an end is seen so late */
static const double LIFE_START_COSTS = 0.15, LIFE_START_MUCH = 0.25; /* of the time */
static const double LIFE_MOST_OF_WAITS = 0.4, LIFE_CROWDED = 0.2;
static const double LIFE_YOUNG = 0.5;      /* of the trainer's age: its workers are not its first */
static const double LIFE_PAUSE_S = 0.4;    /* shorter ones are the job's beat */
static const double LIFE_PAUSE_MOST = 0.7; /* of the time: more of it is no pause */
static const double LIFE_REGULAR = 0.35;   /* of the median period */
static const double LIFE_MOST_OF_WATCH = 0.5, LIFE_IDLE = 0.4;
static const double LIFE_PAUSE_LEAST = 0.05; /* of the time */
static const double LIFE_GROWS = 1 << 20;    /* bytes/s */
static const double LIFE_PERIODS = 2.2;      /* of what repeats have to be watched */
static const double LIFE_START_S = 20;       /* that a job may take: imports, lists of files */
static const double LIFE_LIMIT_SOON_S = 86400;

struct life_span {
	double begun_s, ended_s; /* ended_s INFINITY: it lives */
};

struct life_generation {
	double first_s, last_s; /* births */
	double ended_s;         /* all of them; INFINITY: one lives */
	size_t size;
};

static int life_by_value(const void *a, const void *b)
{
	const double one = *(const double *)a;
	const double other = *(const double *)b;
	return (one > other) - (one < other);
}

/* Of sorted values; NAN: none. */
static double life_quantile(double *values, size_t count, double part)
{
	if (count == 0)
		return NAN;
	qsort(values, count, sizeof *values, life_by_value);
	return values[(size_t)ceil(part * (double)(count - 1))];
}

/* --- what a trainer does over time -------------------------------------------------------------- */

static enum job_phase life_phase_of(int act)
{
	switch (act) {
	case JOB_RUNS:
		return JOB_PHASE_RUNS;
	case JOB_WAITS_INPUT:
	case JOB_WAITS_NETWORK:
	case JOB_WAITS_POLL:
	case JOB_WAITS_LOCK:
	case JOB_WAITS_SEMAPHORE:
	case JOB_WAITS_CONDITION:
		return JOB_PHASE_STARVED;
	case JOB_WAITS_READ:
	case JOB_WAITS_FAULT:
	case JOB_WAITS_HELD:
	case JOB_WAITS_RING:
		return JOB_PHASE_READS;
	case JOB_WAITS_WRITE:
	case JOB_WAITS_SYNC:
		return JOB_PHASE_WRITES;
	default:
		return JOB_PHASE_OTHER;
	}
}

static const struct job_track *life_track_of(const struct job_record *record, uint32_t process)
{
	for (size_t i = 1; i < record->track_count; i++)
		if (record->tracks[i].process == process &&
			record->tracks[i].pid == record->processes[process].pid)
			return &record->tracks[i];
	return NULL;
}

static size_t life_bins(const struct job_record *record)
{
	const double bins = record->bin_s > 0 ? ceil(record->watched_s / record->bin_s) : 0;
	return bins < JOB_BINS_MAX ? (size_t)bins : JOB_BINS_MAX;
}

/* Looks of a bin in each phase; in all. */
static unsigned life_bin(const struct job_track *track, size_t bin, unsigned phases[JOB_PHASES])
{
	unsigned all = 0;
	memset(phases, 0, JOB_PHASES * sizeof *phases);
	for (int act = 0; act < JOB_ACTS; act++) {
		phases[life_phase_of(act)] += track->looks[bin][act];
		all += track->looks[bin][act];
	}
	return all;
}

/* --- generations -------------------------------------------------------------------------------- */

static int life_by_birth(const void *a, const void *b)
{
	return life_by_value(
		&((const struct life_span *)a)->begun_s, &((const struct life_span *)b)->begun_s);
}

struct life_kind {
	int32_t parent;
	const char *name;
	bool forked;
};

/* Loaders of a trainer, by who begins them and what they are called: also of those whose place is another's by now. */
static size_t life_kinds(const struct job_record *record, const struct job_verdict *verdict,
	uint32_t trainer, struct life_kind kinds[LIFE_KINDS_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		if (verdict->roles[i] != JOB_ROLE_LOADER || verdict->boss[i] != trainer ||
			!process->life)
			continue;
		const struct life_kind kind = {process->parent,
			record->lives[process->life - 1].name,
			record->lives[process->life - 1].forked};
		size_t k = 0;
		while (k < count &&
			(kinds[k].parent != kind.parent || kinds[k].forked != kind.forked ||
				strcmp(kinds[k].name, kind.name) != 0))
			k++;
		if (k == count && count < LIFE_KINDS_MAX)
			kinds[count++] = kind;
	}
	return count;
}

/* Their lives, in the order of their births. */
static size_t life_spans(const struct job_record *record, const struct job_verdict *verdict,
	uint32_t trainer, struct life_span spans[JOB_LIVES_MAX])
{
	struct life_kind kinds[LIFE_KINDS_MAX];
	bool other[JOB_LIVES_MAX] = {false}; /* not a loader, though it looks like one of them */
	const size_t kind_count = life_kinds(record, verdict, trainer, kinds);
	size_t count = 0;
	for (size_t i = 0; i < record->process_count; i++)
		if (record->processes[i].life && verdict->roles[i] != JOB_ROLE_LOADER &&
			record->processes[i].look_count >= LIFE_LOOKS_LEAST)
			other[record->processes[i].life - 1] = true;
	for (size_t i = 0; i < record->life_count; i++) {
		const struct job_lifespan *life = &record->lives[i];
		for (size_t k = 0; k < kind_count && !other[i]; k++)
			if (life->parent == kinds[k].parent && life->forked == kinds[k].forked &&
				strcmp(life->name, kinds[k].name) == 0) {
				spans[count++] = (struct life_span){life->begun_s,
					isnan(life->ended_s) ? INFINITY : life->ended_s};
				break;
			}
	}
	qsort(spans, count, sizeof *spans, life_by_birth);
	return count;
}

static size_t life_generations(const struct life_span *spans, size_t count,
	struct life_generation out[LIFE_GENERATIONS_MAX])
{
	size_t generations = 0;
	for (size_t i = 0; i < count; i++) {
		struct life_generation *last = generations ? &out[generations - 1] : NULL;
		if ((!last || last->ended_s <= spans[i].begun_s + LIFE_LAG_S) &&
			generations < LIFE_GENERATIONS_MAX) {
			out[generations++] = (struct life_generation){
				spans[i].begun_s, spans[i].begun_s, spans[i].ended_s, 1};
			continue;
		}
		last->last_s = spans[i].begun_s;
		last->ended_s = fmax(last->ended_s, spans[i].ended_s);
		last->size++;
	}
	return generations;
}

/* Bins from `from` on in which a trainer only waits. */
static size_t life_starved_bins(const struct job_track *track, size_t from, size_t end)
{
	size_t bin = from;
	for (; bin < end; bin++) {
		unsigned phases[JOB_PHASES];
		if (life_bin(track, bin, phases) > phases[JOB_PHASE_STARVED])
			break;
	}
	return bin - from;
}

/* Bins at the begin of these in which a trainer runs still, since forking has much to copy. */
static size_t life_forking_bins(const struct job_track *track, size_t from, size_t end)
{
	size_t bin = from;
	for (; bin < end && bin < from + LIFE_FORKING_BINS; bin++) {
		unsigned phases[JOB_PHASES];
		const unsigned all = life_bin(track, bin, phases);
		if (phases[JOB_PHASE_RUNS] == 0 ||
			phases[JOB_PHASE_RUNS] + phases[JOB_PHASE_STARVED] < all)
			break;
	}
	return bin - from;
}

/* Of one trainer and its generations. */
struct life_starts {
	size_t count;   /* starts that were seen */
	double waits_s; /* from the births to what the trainer does next, of all of them */
	size_t active,
		starved; /* bins of the rest of their lives: it does something, or it only waits */
};

static void life_watch_rest(
	const struct job_track *track, size_t from, size_t end, struct life_starts *out)
{
	for (size_t bin = from; bin < end; bin++) {
		unsigned phases[JOB_PHASES];
		const unsigned all = life_bin(track, bin, phases);
		out->active += all > phases[JOB_PHASE_STARVED];
		out->starved += all > 0 && all == phases[JOB_PHASE_STARVED];
	}
}

static void life_watch_starts(const struct job_record *record, const struct job_track *track,
	const struct life_generation *of, size_t count, struct life_starts *out)
{
	for (size_t i = 0; i < count; i++) {
		const double until_s = i + 1 < count ? of[i + 1].first_s : record->watched_s;
		const size_t bins = life_bins(record);
		const size_t until = (size_t)(fmax(until_s, 0) / record->bin_s);
		const size_t end = until < bins ? until : bins;
		size_t bin = 0;
		if (i > 0 && of[i].first_s > 0) {
			const size_t birth = (size_t)(of[i].last_s / record->bin_s) + 1;
			bin = birth + life_forking_bins(track, birth, end);
			if (bin >= end)
				continue;
			const size_t starved = life_starved_bins(track, bin, end);
			bin += starved;
			out->waits_s +=
				of[i].last_s - of[i].first_s + (double)starved * record->bin_s;
			out->count++;
		}
		life_watch_rest(track, bin, end, out);
	}
}

/* How long a trainer waits for a generation beyond what it takes the workers to prepare a batch each, which is as many times the
 * wait for a batch at other times as there are workers. */
static double life_start_s(
	const struct job_record *record, const struct life_starts *starts, double workers)
{
	const double usual_s = starts->active ? (double)starts->starved / (double)starts->active *
							record->bin_s * workers
					      : 0;
	return starts->count ? fmax(starts->waits_s / (double)starts->count - usual_s, 0) : NAN;
}

/* Time with at least one of them, s; *lived_s: of all together. */
static double life_present_s(const struct job_record *record, const struct life_span *spans,
	size_t count, double *lived_s)
{
	double present = 0;
	double until = 0;
	for (size_t i = 0; i < count; i++) {
		const double begin = fmax(spans[i].begun_s, 0);
		const double end = fmin(spans[i].ended_s, record->watched_s);
		*lived_s += fmax(end - begin, 0);
		present += fmax(end - fmax(begin, until), 0);
		until = fmax(until, end);
	}
	return present;
}

struct life_work {
	struct life_span spans[JOB_LIVES_MAX];
	struct life_generation generations[LIFE_GENERATIONS_MAX];
	double period_s; /* of all trainers' generations, summed */
	size_t period_count;
};

/* An end is seen late: those of a generation had ended when the next began. */
static void life_end_on_time(struct life_work *work, size_t count, size_t generations)
{
	size_t span = 0;
	for (size_t i = 0; i + 1 < generations; i++)
		for (size_t k = 0; k < work->generations[i].size && span < count; k++, span++)
			work->spans[span].ended_s =
				fmin(work->spans[span].ended_s, work->generations[i + 1].first_s);
}

static void life_take_trainer(const struct job_record *record, const struct job_verdict *verdict,
	uint32_t trainer, struct life_work *work, struct job_life *out)
{
	const size_t count = life_spans(record, verdict, trainer, work->spans);
	const size_t generations = life_generations(work->spans, count, work->generations);
	life_end_on_time(work, count, generations);
	double lived_s = 0;
	double youngest = -INFINITY;
	const double present_s = life_present_s(record, work->spans, count, &lived_s);
	out->workers += generations > 1 ? (double)count / (double)generations
			: present_s > 0 ? lived_s / present_s
					: 0;
	out->lived_s += lived_s;
	for (size_t i = 0; i < count; i++) {
		out->begun += work->spans[i].begun_s > 0;
		out->ended += isfinite(work->spans[i].ended_s);
		youngest = fmax(youngest, work->spans[i].begun_s);
	}
	for (size_t i = 1; i < generations; i++) {
		out->generations += work->generations[i].first_s > 0;
		work->period_s += work->generations[i].first_s - work->generations[i - 1].first_s;
		work->period_count++;
	}
	const double begun_s = record->processes[trainer].begun_s;
	const double age = record->watched_s - youngest;
	if (isfinite(youngest) && age < LIFE_YOUNG * (record->watched_s - begun_s))
		out->worker_age_s = fmax(age, isnan(out->worker_age_s) ? 0 : out->worker_age_s);
	const struct job_track *track = life_track_of(record, trainer);
	struct life_starts starts = {.count = 0};
	if (!track)
		return;
	life_watch_starts(record, track, work->generations, generations, &starts);
	const double start_s = life_start_s(
		record, &starts, (double)count / (double)(generations ? generations : 1));
	if (!isnan(start_s)) {
		out->start_s = isnan(out->start_s) ? start_s : fmax(out->start_s, start_s);
		out->start_share += start_s * (double)starts.count;
	}
}

/* --- pauses ------------------------------------------------------------------------------------- */

/* One phase in most of a bin's looks, for so long that it is not the job's beat. */
static void life_find_pauses(const struct job_record *record, const struct job_track *track,
	enum job_phase phase, struct job_pause *out)
{
	double lengths[JOB_BINS_MAX];
	double periods[JOB_BINS_MAX];
	size_t period_count = 0;
	double last_s = NAN;
	double sum = 0;
	const size_t end = life_bins(record);
	const size_t least = (size_t)fmax(2, ceil(LIFE_PAUSE_S / record->bin_s));
	for (size_t bin = 0; bin < end; bin++) {
		size_t bins = 0;
		size_t seen = 0; /* there may be no look in a bin */
		unsigned phases[JOB_PHASES];
		for (size_t at = bin; at < end; at++) {
			const unsigned all = life_bin(track, at, phases);
			if (all > 0 && 2 * phases[phase] <= all)
				break;
			seen += all > 0;
			bins = all > 0 ? at + 1 - bin : bins;
		}
		if (bins < least || seen < 2)
			continue;
		const double begin_s = (double)bin * record->bin_s;
		lengths[out->count++] = (double)bins * record->bin_s;
		sum += (double)bins * record->bin_s;
		if (!isnan(last_s))
			periods[period_count++] = begin_s - last_s;
		last_s = begin_s;
		bin += bins;
	}
	out->share = record->watched_s > 0 ? sum / record->watched_s : 0;
	if (out->share >= LIFE_PAUSE_MOST) { /* it is what the job does, not a pause of it */
		*out = (struct job_pause){.seconds = NAN, .period_s = NAN};
		return;
	}
	out->seconds = life_quantile(lengths, out->count, 0.5);
	out->period_s = life_quantile(periods, period_count, 0.5);
	out->irregular = period_count < 2;
	for (size_t i = 0; i < period_count; i++)
		if (fabs(periods[i] - out->period_s) > LIFE_REGULAR * out->period_s)
			out->irregular = true;
}

static void life_watch_trainers(
	const struct job_record *record, const struct job_verdict *verdict, struct job_life *out)
{
	const struct job_track *first = NULL;
	unsigned starved = 0;
	unsigned all = 0;
	for (uint32_t i = 0; i < record->process_count; i++) {
		const struct job_track *track = life_track_of(record, i);
		if (verdict->roles[i] != JOB_ROLE_TRAINER || !track)
			continue;
		first = first ? first : track;
		for (size_t bin = 0; bin < life_bins(record); bin++) {
			unsigned phases[JOB_PHASES];
			all += life_bin(track, bin, phases);
			starved += phases[JOB_PHASE_STARVED];
		}
	}
	out->starved = all ? (double)starved / all : NAN;
	if (!first && record->process_count > 0 && verdict->roles[0] == JOB_ROLE_WHOLE)
		first = life_track_of(record, 0);
	for (int phase = 0; first && phase < JOB_PHASES; phase++)
		life_find_pauses(record, first, (enum job_phase)phase, &out->pauses[phase]);
}

/* When the youngest of those that train is so old that its start is over, s of the watch; 0: when the watch began. */
static double life_started_s(const struct job_record *record, const struct job_verdict *verdict)
{
	double begun_s = -INFINITY;
	for (size_t i = 0; i < record->process_count; i++)
		if (!record->processes[i].gone && (verdict->roles[i] == JOB_ROLE_TRAINER ||
							  verdict->roles[i] == JOB_ROLE_WHOLE))
			begun_s = fmax(begun_s, record->processes[i].begun_s);
	return fmax(0, begun_s + LIFE_START_S);
}

/* --- memory ------------------------------------------------------------------------------------- */

/* Where processes come and go, what they have is theirs for a while: the growth is that of those that stay. */
static void life_find_growth(const struct job_record *record, struct job_verdict *out)
{
	struct job_life *life = &out->life;
	double staying = 0;
	bool go = false;
	life->growing = -1;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		const double seconds = job_process_seconds(process);
		const double rate =
			job_grown(process->first, process->last, JOB_RESIDENT) / seconds;
		go = go || process->gone;
		if (process->gone || seconds < LIFE_MOST_OF_WATCH * record->watched_s ||
			isnan(rate))
			continue;
		staying += rate;
		if (rate > life->growing_per_s) {
			life->growing = (int)i;
			life->growing_per_s = rate;
		}
	}
	if (go && !isnan(out->growth))
		out->growth = staying;
	life->limit_s = out->growth > 0 && record->memory_left > 0
				? record->memory_left / out->growth
				: INFINITY;
}

/* --- all of it ---------------------------------------------------------------------------------- */

void job_life_find(const struct job_record *record, struct job_verdict *out)
{
	struct life_work *work = calloc(1, sizeof *work);
	struct job_life *life = &out->life;
	*life = (struct job_life){.period_s = NAN,
		.start_s = NAN,
		.worker_age_s = NAN,
		.starved = NAN,
		.growing = -1,
		.limit_s = INFINITY};
	for (int phase = 0; phase < JOB_PHASES; phase++)
		life->pauses[phase].seconds = life->pauses[phase].period_s = NAN;
	life_watch_trainers(record, out, life);
	life_find_growth(record, out);
	unsigned trainers = 0;
	for (uint32_t i = 0; work && i < record->process_count; i++)
		if (out->roles[i] == JOB_ROLE_TRAINER) {
			life_take_trainer(record, out, i, work, life);
			trainers++;
		}
	if (trainers && record->watched_s > 0)
		life->start_share /= trainers * record->watched_s;
	if (work && work->period_count) {
		life->period_s = work->period_s / (double)work->period_count;
		if (life->start_s > life->period_s) /* of few generations */
			life->start_s = life->period_s;
	}
	free(work);
}

bool job_life_conclude(const struct job_record *record, struct job_verdict *out)
{
	const struct job_life *life = &out->life;
	/* Where cores are short, what begins is slow as all else is. */
	const bool crowded = out->loader.queue >= LIFE_CROWDED;
	(void)record;
	if (life->generations == 0 || life->start_share < LIFE_START_COSTS ||
		life->start_share < LIFE_MOST_OF_WAITS * life->starved)
		return false;
	job_conclude(out, "loader", "restarts",
		life->generations > 1 && life->start_share >= LIFE_START_MUCH && !crowded
			? JOB_LIKELY
			: JOB_POSSIBLE,
		"Starting loader workers seems to hold the job up: they end and begin anew every %.1f s, and each time the trainer waits %.1f s for them, %.0f %% of the time in all",
		life->period_s, life->start_s, 100 * life->start_share);
	job_say(&out->next,
		"keep the workers from epoch to epoch (PyTorch: persistent_workers=True), make epochs longer, or make their start cheaper (imports, what worker_init_fn and the data set build)");
	return true;
}

/* Whether pauses of a trainer for which its loaders wait take so much that they are what is left to name. */
void job_life_resolve(struct job_verdict *out)
{
	static const struct {
		enum job_phase phase;
		const char *stage, *resource, *words, *next;
	} causes[] = {
		{JOB_PHASE_WRITES, "step", "write",
			"it writes files, and waits until they are written",
			"write checkpoints less often or in a process of their own, and sync logs seldom"},
		{JOB_PHASE_RUNS, "trainer", "cpu", "it computes by itself",
			"move what the trainer does between its steps (shuffling, evaluation, statistics) into the loader workers, or do it less often"}};
	const struct job_life *life = &out->life;
	if (out->certainty != JOB_UNKNOWN || !out->trainer.count || !out->loader.count ||
		!(out->loader.idle + out->loader.output >= LIFE_IDLE))
		return;
	for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
		const struct job_pause *pause = &life->pauses[causes[i].phase];
		if (pause->count < 2 || pause->share < LIFE_START_MUCH)
			continue;
		job_conclude(out, causes[i].stage, causes[i].resource, JOB_POSSIBLE,
			"Pauses of the trainer seem to hold the job up: for %.1f s at a time, about every %.1f s, %s; its loader workers have nothing to do %.0f %% of the time",
			pause->seconds, pause->period_s, causes[i].words,
			100 * (out->loader.idle + out->loader.output));
		job_say(&out->next, "%s", causes[i].next);
		return;
	}
}

static void life_tell_workers(struct job_verdict *out)
{
	const struct job_life *life = &out->life;
	if (life->generations > 0 && !isnan(life->start_s))
		job_say(&out->evidence,
			"loader workers: %.0f at a time; they end and begin anew every %.1f s (%u times in this watch), and the trainer waits %.1f s for each start: %.0f %% of the time",
			round(life->workers), life->period_s, life->generations, life->start_s,
			100 * life->start_share);
	else if (life->begun > 0 && life->ended > 0)
		job_say(&out->evidence,
			"loader workers: %.0f at a time, of which %u ended and %u began in this watch",
			round(life->workers), life->ended, life->begun);
}

static void life_tell_pauses(struct job_verdict *out)
{
	static const char *const words[JOB_PHASES] = {
		[JOB_PHASE_STARVED] = "waits for its loaders or for others",
		[JOB_PHASE_RUNS] = "computes without a wait",
		[JOB_PHASE_READS] = "reads files",
		[JOB_PHASE_WRITES] =
			"writes files or waits until they are written (a checkpoint, a log)",
		[JOB_PHASE_OTHER] = "neither computes nor waits for data",
	};
	for (int phase = 0; phase < JOB_PHASES; phase++) {
		const struct job_pause *pause = &out->life.pauses[phase];
		if (pause->count < 2 || pause->share < LIFE_PAUSE_LEAST)
			continue;
		job_say(&out->evidence,
			"%s: it %s for %.1f s at a time, %s every %.1f s: %.0f %% of the time",
			out->trainer.count ? "trainer" : "process", words[phase], pause->seconds,
			pause->irregular ? "about" : "regularly", pause->period_s,
			100 * pause->share);
	}
}

static void life_tell_growth(const struct job_record *record, struct job_verdict *out)
{
	const struct job_life *life = &out->life;
	char rate[UNITS_BYTES];
	char own[UNITS_BYTES];
	char left[UNITS_BYTES];
	if (!(out->growth >= LIFE_GROWS) || record->watched_s < life_started_s(record, out))
		return;
	if (life->growing >= 0 && life->growing_per_s >= out->growth / 4)
		job_say(&out->evidence,
			"memory: grows by %s/s; process %d (%s) grows most, by %s/s",
			units_format_size(out->growth, rate), record->processes[life->growing].pid,
			job_role_name(out->roles[life->growing]),
			units_format_size(life->growing_per_s, own));
	else
		job_say(&out->evidence, "memory: grows by %s/s, in many processes",
			units_format_size(out->growth, rate));
	if (life->limit_s < LIFE_LIMIT_SOON_S)
		job_say(&out->next,
			"find what grows (a list that keeps batches, losses with their graph, a cache without a bound): at this rate the %s that are left are used up in %.0f min",
			units_format_size(record->memory_left, left), ceil(life->limit_s / 60));
}

double job_life_enough_s(const struct job_record *record, const struct job_verdict *verdict)
{
	static const double LONG_S = 1;
	const struct job_life *life = &verdict->life;
	double enough = life_started_s(record, verdict);
	if (life->generations > 0)
		enough = LIFE_PERIODS * life->period_s;
	for (int phase = 0; phase < JOB_PHASES; phase++) {
		const struct job_pause *pause = &life->pauses[phase];
		if (pause->count > 1 && pause->share >= LIFE_PAUSE_LEAST)
			enough = fmax(enough, LIFE_PERIODS * pause->period_s);
		else if (pause->count == 1 && pause->seconds >= LONG_S)
			return INFINITY;
	}
	return enough;
}

/* Why this watch was too short, and for how long it has to be; 0: it is not known to be. */
static double life_longer(const struct job_record *record, const struct job_verdict *verdict,
	char why[JOB_LINE_BYTES])
{
	static const double TWICE = 2.2;
	const struct job_life *life = &verdict->life;
	const uint32_t looks = verdict->loader.count && verdict->loader.looks < record->states
				       ? verdict->loader.looks
				       : record->states;
	const double enough = job_life_enough_s(record, verdict);
	if (looks < LIFE_LOOKS_LEAST) {
		(void)snprintf(why, JOB_LINE_BYTES,
			"in %.0f s there was time for %u looks of at least %d", record->watched_s,
			looks, LIFE_LOOKS_LEAST);
		return record->watched_s * TWICE * LIFE_LOOKS_LEAST / fmax(looks, 1);
	}
	if (record->watched_s < life_started_s(record, verdict)) {
		(void)snprintf(why, JOB_LINE_BYTES,
			"the job began %.0f s before the watch ended, and what it does at its start is not what it does later",
			record->watched_s + LIFE_START_S - life_started_s(record, verdict));
		return life_started_s(record, verdict);
	}
	if (isinf(enough)) {
		(void)snprintf(why, JOB_LINE_BYTES,
			"in %.0f s a long pause was seen once, and it may come again",
			record->watched_s);
		return record->watched_s * 3;
	}
	if (record->watched_s < enough) {
		(void)snprintf(why, JOB_LINE_BYTES,
			"what it does repeats every %.0f s, of which %.0f s were watched",
			enough / LIFE_PERIODS, record->watched_s);
		return enough;
	}
	if (isnan(life->worker_age_s))
		return 0;
	(void)snprintf(why, JOB_LINE_BYTES,
		"its loader workers began %.0f s before the watch ended and long after their trainer: if they are made anew each epoch, one takes longer than that, and none ended meanwhile",
		life->worker_age_s);
	return life->worker_age_s * TWICE;
}

void job_life_tell(const struct job_record *record, struct job_verdict *out)
{
	static const double STEP_S = 10;
	char why[JOB_LINE_BYTES];
	life_tell_workers(out);
	life_tell_pauses(out);
	life_tell_growth(record, out);
	const double longer_s = isnan(record->ended_s) ? life_longer(record, out, why) : 0;
	if (longer_s > 0 && !out->still)
		job_say(&out->next, "observe it for longer (--for %.0fs): %s",
			STEP_S * ceil(longer_s / STEP_S), why);
}
