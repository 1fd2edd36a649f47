/* A few files, or samples, that take many times as long as the others: which they are, what share of
 * the time they take, and whether reading is the bottleneck because of them.
 *
 * Slow is an item that takes more than five times the median. Exponential times give 3 % of such
 * items, with 12 % of the time beyond the median, and log-normal ones with sigma = 1 give 5 % with
 * 24 %; those are a storage's usual spread. A tail is rarer than a tenth of the items and takes at
 * least 35 % of the time beyond the median, and a replay with those items cut to the median gains
 * 15 %. That also parts it from a few slow items in front of a stage, or beside a store, that limits
 * anyway: there the replay gains nothing.
 *
 * In delivery in order, a slow file holds up its batch while later ones are complete: no stage is busy
 * then, and a deeper queue would help, too. The tail is the reason, so it is what is named.
 *
 * Which files: whether a file that was slow once is slow again when it is read again (over all
 * repetitions), whether they lie in one folder or shard, and whether they are larger. */
#include "harness/analyze/verdict.h"

#include "harness/analyze/statistics.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TAIL_ITEMS_MIN = 100, /* recorded */
	TAIL_SLOW_MIN = 5,    /* of them */
	TAIL_SLOW_SURE = 20,
	TAIL_AGAIN_MIN = 5, /* second reads of slow files */
	TAIL_NAMED = 3,     /* files that a sentence names */
	OPENS_MIN = 20,     /* that were timed */
};

static const double TAIL_MOST = 0.10;    /* of the items */
static const double TAIL_TOLD = 0.20;    /* of the time: worth a sentence */
static const double TAIL_BINDS = 0.35;   /* of the time: may be what limits */
static const double TAIL_GAIN = 0.15;    /* by replay, without it */
static const double TAIL_STARVES = 0.15; /* of the step's time; where there is no replay */
static const double CERTAIN_TAIL = 0.93, CERTAIN_TAIL_FEW = 0.8, CERTAIN_TAIL_ALONE = 0.7;
/* Without a replay: half of the time of readers that are hardly ever blocked. */
static const double ALONE_TIME = 0.5, ALONE_BUSY = 0.8;
static const double SAME_FILES = 0.7, OTHER_FILES = 0.2; /* slow again, of second reads */
static const double IN_PLACE = 0.6;                      /* of the slow items ... */
static const double PLACE_TIMES = 3;       /* ... and so many times its share of all */
static const double NEARLY_ALL = 0.9;      /* of the time beyond the median */
static const double AT_ONCE = 0.1;         /* of a slow file's time, apart */
static const double NEARLY_EACH = 0.75;    /* of the others that may be in flight */
static const double MOSTLY_TOGETHER = 0.5; /* of the slow files: it is a stall */
static const double BY_CHANCE = 0.6;       /* deviation over mean of the gaps; exponential: 1 */
static const double LARGER = 2;            /* times the bytes of the others */
static const double CACHED_LEAST = 0.04;   /* a page cache that may serve second reads */
static const double TIMED_LATE = 1.5;      /* times as long as the others */
static const double OPEN_MOSTLY = 0.5;     /* of a file's time */

/* --- the items -------------------------------------------------------------------------------- */

struct tail_item {
	double ns, bytes;
	uint32_t sample;
	bool slow;
};

struct tail {
	struct tail_item *items; /* by sample; owned */
	size_t count, slow;
	double median_ns, slow_ns; /* medians */
	double from_ns;            /* slow ones take longer than that */
	double time_share;         /* that the slow ones take beyond the median */
	double again;              /* of second reads of a slow file, also slow; NAN: too few */
	double unevenly; /* deviation over mean of the times without a slow one; NAN: few */
	double larger;   /* bytes of the slow over those of the others; NAN: not known */
	char place[TRACE_NAME_BYTES];
	double place_slow, place_all; /* shares of the slow and of all items in it; 0: none */
	char names[EVIDENCE_BYTES / 2];
};

static int by_sample(const void *a, const void *b)
{
	const struct tail_item *const one = a;
	const struct tail_item *const other = b;
	return (one->sample > other->sample) - (one->sample < other->sample);
}

static void tail_release(struct tail *tail)
{
	free(tail->items);
	*tail = (struct tail){0};
}

/* The median of a figure over the items that are slow, or over the others; NAN: there are none. */
static double median_over(const struct tail *tail, bool slow, bool bytes)
{
	double *x = calloc(tail->count + 1, sizeof *x);
	size_t n = 0;
	for (size_t i = 0; x && i < tail->count; i++)
		if (tail->items[i].slow == slow)
			x[n++] = bytes ? tail->items[i].bytes : tail->items[i].ns;
	const double median = n > 0 ? statistics_median(x, n) : NAN;
	free(x);
	return median;
}

/* Bytes are known of what was read; samples are decoded from them. */
static void add_bytes(const struct evidence_base *base, struct tail *tail)
{
	const struct trace_set reads = cause_traces(base, STAGE_READ_NAME);
	for (size_t i = 0; i < reads.count; i++)
		for (size_t k = 0; k < reads.of[i]->count; k++) {
			const struct trace_item *read = &reads.of[i]->items[k];
			const struct tail_item key = {.sample = read->sample};
			struct tail_item *at = read->sample > 0
						       ? bsearch(&key, tail->items, tail->count,
								 sizeof *tail->items, by_sample)
						       : NULL;
			for (; at && at > tail->items && at[-1].sample == read->sample; at--)
				continue;
			for (; at && at < tail->items + tail->count && at->sample == read->sample;
				at++)
				at->bytes = read->bytes;
		}
}

static bool gather_items(const struct trace_set *set, struct tail *tail)
{
	tail->items = set->items > 0 ? calloc(set->items, sizeof *tail->items) : NULL;
	for (size_t i = 0; tail->items && i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			if (isfinite(item->service_ns) && item->service_ns > 0)
				tail->items[tail->count++] =
					(struct tail_item){.ns = (double)item->service_ns,
						.bytes = NAN,
						.sample = item->sample};
		}
	return tail->count >= TAIL_ITEMS_MIN;
}

/* --- which they are --------------------------------------------------------------------------- */

/* Of all pairs of reads of one file of which one was slow: the share in which the other was, too. */
static void find_again(struct tail *tail)
{
	double both = 0;
	double pairs = 0;
	for (size_t i = 0; i < tail->count;) {
		size_t end = i;
		double slow = 0;
		for (; end < tail->count && tail->items[end].sample == tail->items[i].sample; end++)
			slow += tail->items[end].slow;
		const double reads = tail->items[i].sample > 0 ? (double)(end - i) : 0;
		both += reads > 1 ? slow * (slow - 1) : 0;
		pairs += reads > 1 ? slow * (reads - 1) : 0;
		i = end;
	}
	tail->again = pairs >= TAIL_AGAIN_MIN ? both / pairs : NAN;
}

static void find_gaps(const struct trace_set *set, struct tail *tail)
{
	double *gaps = calloc(set->items + 1, sizeof *gaps);
	size_t n = 0;
	for (size_t i = 0; gaps && i < set->count; i++) {
		double last_s = NAN;
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			if (!((double)item->service_ns > tail->from_ns))
				continue;
			const double begin_s = item->end_s - (double)item->service_ns * 1e-9;
			if (begin_s > last_s)
				gaps[n++] = begin_s - last_s;
			last_s = item->end_s;
		}
	}
	if (n >= TAIL_SLOW_MIN)
		tail->unevenly = statistics_deviation(gaps, n) / statistics_mean(gaps, n);
	free(gaps);
}

struct slow_item {
	double begin_s, end_s;
};

/* How many of n slow items were in flight beside this one and came in with it. */
static size_t companions(const struct slow_item *items, size_t n, const struct slow_item *of)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += &items[i] != of && items[i].begin_s < of->end_s &&
			 fabs(items[i].end_s - of->end_s) <= AT_ONCE * (of->end_s - of->begin_s);
	return count;
}

/* The share of slow items that came in with nearly all that was in flight: a stall holds up all files,
 * a tail each by itself. */
static double held_together(
	const struct trace_set *set, const struct tail *tail, unsigned in_flight)
{
	struct slow_item *slow = calloc(set->items + 1, sizeof *slow);
	size_t together = 0;
	size_t all = 0;
	for (size_t i = 0; slow && i < set->count; i++) {
		size_t n = 0;
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			const double ns = (double)item->service_ns;
			if (ns > tail->from_ns)
				slow[n++] =
					(struct slow_item){item->end_s - ns * 1e-9, item->end_s};
		}
		for (size_t k = 0; k < n; k++)
			together += (double)companions(slow, n, &slow[k]) >=
				    NEARLY_EACH * (in_flight - 1);
		all += n;
	}
	free(slow);
	return in_flight > 1 && all > 0 ? (double)together / (double)all : 0;
}

/* The folder of a file, or the file of a part; "" at the top. */
static void place_of_name(const struct trace_name *name, char out[TRACE_NAME_BYTES])
{
	(void)snprintf(out, TRACE_NAME_BYTES, "%s", name->path);
	char *slash = name->part ? NULL : strrchr(out, '/');
	if (slash)
		*slash = '\0';
	else if (!name->part)
		out[0] = '\0';
}

/* What the place is called in one trace; 0: nothing of it was named there. */
static uint32_t place_in(const struct trace *trace, const char *place)
{
	char own[TRACE_NAME_BYTES];
	for (size_t i = 0; i < trace->name_count; i++) {
		place_of_name(&trace->names[i], own);
		for (size_t k = 0; k < trace->count && strcmp(own, place) == 0; k++)
			if (trace->items[k].sample == trace->names[i].sample)
				return trace->items[k].place;
	}
	return 0;
}

static void weigh_place(const struct trace_set *set, const char *place, struct tail *tail)
{
	double slow = 0;
	double all = 0;
	for (size_t i = 0; i < set->count; i++) {
		const uint32_t at = place_in(set->of[i], place);
		for (size_t k = 0; at > 0 && k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			all += item->place == at;
			slow += item->place == at && (double)item->service_ns > tail->from_ns;
		}
	}
	const double share = slow / (double)tail->slow;
	if (share <= tail->place_slow)
		return;
	tail->place_slow = share;
	tail->place_all = all / (double)tail->count;
	(void)snprintf(tail->place, sizeof tail->place, "%s", place);
}

static void find_place(const struct trace_set *set, struct tail *tail)
{
	char place[TRACE_NAME_BYTES];
	for (size_t i = 0; i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->name_count && k < TAIL_SLOW_MIN; k++) {
			place_of_name(&set->of[i]->names[k], place);
			if (place[0])
				weigh_place(set, place, tail);
		}
	if (!(tail->place_slow >= IN_PLACE && tail->place_slow >= PLACE_TIMES * tail->place_all))
		tail->place_slow = 0;
}

/* "a/b.jpg, a/c.jpg": the slowest of each repetition in turn. */
static void find_names(const struct trace_set *set, struct tail *tail)
{
	size_t named = 0;
	size_t used = 0;
	for (size_t k = 0; k < TRACE_NAMES_MAX && named < TAIL_NAMED; k++)
		for (size_t i = 0; i < set->count && named < TAIL_NAMED; i++) {
			const struct trace_name *name =
				k < set->of[i]->name_count ? &set->of[i]->names[k] : NULL;
			char one[64];
			if (!name)
				continue;
			if (name->part)
				(void)snprintf(one, sizeof one, "%.36s at byte %llu", name->path,
					(unsigned long long)name->offset);
			else
				(void)snprintf(one, sizeof one, "%.38s", name->path);
			if (strstr(tail->names, one))
				continue;
			used += (size_t)snprintf(tail->names + used, sizeof tail->names - used,
				"%s%s", named++ > 0 ? ", " : "", one);
			if (used >= sizeof tail->names)
				return;
		}
}

/* Slow is what takes longer than that.  Returns the time beyond the median. */
static double mark_slow(struct tail *tail, double from_ns)
{
	double beyond = 0;
	tail->from_ns = from_ns;
	tail->slow = 0;
	for (size_t i = 0; i < tail->count; i++) {
		struct tail_item *item = &tail->items[i];
		item->slow = item->ns > from_ns;
		tail->slow += item->slow;
		beyond += item->slow ? item->ns - tail->median_ns : 0;
	}
	return beyond;
}

static int longest_first(const void *a, const void *b)
{
	const double one = *(const double *)a;
	const double other = *(const double *)b;
	return (one < other) - (one > other);
}

/* Many items that took a little more, as those that a scheduler interrupted, do not hide the few that
 * take nearly all of that time: slow are those that are at least half as long as they. */
static double worth_from(const struct tail *tail, double beyond)
{
	double *ns = calloc(tail->slow + 1, sizeof *ns);
	size_t n = 0;
	double sum = 0;
	double last = 0;
	for (size_t i = 0; ns && i < tail->count; i++)
		if (tail->items[i].slow)
			ns[n++] = tail->items[i].ns;
	if (ns)
		qsort(ns, n, sizeof *ns, longest_first);
	for (size_t i = 0; i < n && sum < NEARLY_ALL * beyond; i++) {
		sum += ns[i] - tail->median_ns;
		last = ns[i];
	}
	free(ns);
	return fmax(last / 2, tail->from_ns);
}

/* False: there is no tail worth a sentence.  Release it in any case. */
static bool tail_of(
	const struct evidence_base *base, const struct stage_summary *stage, struct tail *tail)
{
	const struct trace_set set = cause_traces(base, stage->name);
	double sum = 0;
	*tail = (struct tail){.again = NAN, .larger = NAN, .unevenly = NAN};
	if (!gather_items(&set, tail))
		return false;
	tail->median_ns = median_over(tail, false, false);
	for (size_t i = 0; i < tail->count; i++)
		sum += tail->items[i].ns;
	const double beyond = mark_slow(tail, TAIL_TIMES * tail->median_ns);
	tail->time_share = mark_slow(tail, worth_from(tail, beyond)) / sum;
	if (tail->slow < TAIL_SLOW_MIN || (double)tail->slow > TAIL_MOST * (double)tail->count ||
		tail->time_share < TAIL_TOLD)
		return false;
	qsort(tail->items, tail->count, sizeof *tail->items, by_sample);
	add_bytes(base, tail);
	tail->slow_ns = median_over(tail, true, false);
	tail->larger = median_over(tail, true, true) / median_over(tail, false, true);
	find_again(tail);
	find_gaps(&set, tail);
	find_place(&set, tail);
	find_names(&set, tail);
	return true;
}

/* --- words ------------------------------------------------------------------------------------ */

/* Whose: "file", "sample". */
static void say_which(const struct evidence_base *base, const struct tail *tail, const char *unit,
	struct verdict *out)
{
	const bool cached = base->point->page_cache_share > CACHED_LEAST;
	char slow[UNITS_BYTES];
	char others[UNITS_BYTES];
	if (tail->again >= SAME_FILES)
		evidence_add(out,
			"the slow %ss are the same each time (%.0f %% of them are slow again): %s",
			unit, tail->again * 100, tail->names);
	else if (tail->again <= OTHER_FILES && !cached)
		evidence_add(out,
			"the slow %ss are others each time (%.0f %% of them are slow again): what delays them is not in the %ss",
			unit, tail->again * 100, unit);
	else if (tail->names[0])
		evidence_add(out, "the slowest %ss are %s", unit, tail->names);
	if (tail->place_slow > 0)
		evidence_add(out, "%.0f %% of the slow %ss lie in %s, which has %.1f %% of all",
			tail->place_slow * 100, unit, tail->place, tail->place_all * 100);
	if (tail->larger >= LARGER)
		evidence_add(out,
			"the slow %ss are larger: %s against %s (medians); store these smaller or in parts",
			unit, units_format_size(median_over(tail, true, true), slow),
			units_format_size(median_over(tail, false, true), others));
}

/* "2.5 % of the files take 401 ms (median) and the others 4.00 ms: 71 % of the reading time" */
enum { TAIL_WORDS_BYTES = 160 };
static const char *tail_words(
	const struct tail *tail, const char *unit, const char *what, char out[TAIL_WORDS_BYTES])
{
	char slow[UNITS_BYTES];
	char others[UNITS_BYTES];
	(void)snprintf(out, TAIL_WORDS_BYTES,
		"%.1f %% of the %ss take %s (median), the others %s: they take %.0f %% of the %s time",
		(double)tail->slow / (double)tail->count * 100, unit,
		units_format_duration(tail->slow_ns, slow),
		units_format_duration(tail->median_ns, others), tail->time_share * 100, what);
	return out;
}

/* While a thread waits for a core, all that it has in flight waits with it: so much of the files' time
 * as of its own.  Where that could be the whole tail, the cores are why. */
static bool tail_of_cores(const struct stage_summary *stage, const struct tail *tail)
{
	return stage->busy * stage->run_queue >= tail->time_share;
}

static bool tail_of_reads(
	const struct evidence_base *base, const struct stage_summary *read, struct tail *tail)
{
	*tail = (struct tail){0};
	if (!read || base->facts->reads_memory || !tail_of(base, read, tail) ||
		tail_of_cores(read, tail))
		return false;
	const struct trace_set set = cause_traces(base, read->name);
	const unsigned in_flight = base->facts->read_threads * base->facts->read_depth;
	return held_together(&set, tail, in_flight) < MOSTLY_TOGETHER;
}

/* Slow samples matter where the job gains without them, or where the same ones take much of the time
 * of a stage that limits. */
static void add_slow_samples(const struct evidence_base *base, bool limits, struct verdict *out)
{
	const struct stage_summary *decode = summary_stage(base->point, STAGE_DECODE_NAME);
	const double gain = base->findings ? base->findings->untailed_decode : 0;
	char words[TAIL_WORDS_BYTES];
	char faster[64] = "";
	struct tail tail = {0};
	if (gain >= TAIL_GAIN)
		(void)snprintf(faster, sizeof faster,
			"; without them the job is %.1f times as fast (predicted)", 1 + gain);
	if (decode && tail_of(base, decode, &tail) && !tail_of_cores(decode, &tail) &&
		(gain >= TAIL_GAIN || (limits && tail.again >= SAME_FILES))) {
		evidence_add(out, "%s%s", tail_words(&tail, "sample", "decoding", words), faster);
		say_which(base, &tail, "sample", out);
	}
	tail_release(&tail);
}

void evidence_add_tail(const struct evidence_base *base, const char *stage, const char *resource,
	struct verdict *out)
{
	const struct stage_summary *read = summary_stage(base->point, STAGE_READ_NAME);
	const bool reads = stage_is(stage, STAGE_READ);
	const bool named = reads && strcmp(resource, "tail") == 0; /* the cause has its figures */
	char words[TAIL_WORDS_BYTES];
	struct tail tail = {0};
	if ((reads || strcmp(resource, "depth") == 0) && tail_of_reads(base, read, &tail)) {
		if (!named)
			evidence_add(out, "%s",
				tail_words(&tail, cause_read_unit(base), "reading", words));
		say_which(base, &tail, cause_read_unit(base), out);
	}
	tail_release(&tail);
	if (!named)
		add_slow_samples(base, stage_is(stage, STAGE_DECODE), out);
}

/* --- whether it is the bottleneck ------------------------------------------------------------- */

/* By replay; 0: there is none. */
static double tail_gain(const struct evidence_base *base)
{
	return base->findings ? base->findings->untailed_read : base->untailed;
}

static bool tail_costs(const struct evidence_base *base, const struct tail *tail)
{
	const struct stage_summary *step = summary_stage(base->point, STAGE_STEP_NAME);
	if (tail->time_share < TAIL_BINDS)
		return false;
	return base->findings || base->untailed > 0 ? tail_gain(base) >= TAIL_GAIN
						    : step && step->starved >= TAIL_STARVES;
}

static bool say_tail(const struct evidence_base *base, const struct stage_summary *read,
	const struct tail *tail, struct cause *out)
{
	char words[TAIL_WORDS_BYTES];
	char gain[96] = "";
	char p50[UNITS_BYTES];
	char p99[UNITS_BYTES];
	const bool replayed = tail_gain(base) > 0;
	const bool plain = tail->time_share >= ALONE_TIME && read->busy >= ALONE_BUSY;
	const double certainty = base->findings && tail->slow >= TAIL_SLOW_SURE ? CERTAIN_TAIL
				 : replayed || plain                            ? CERTAIN_TAIL_FEW
						     : CERTAIN_TAIL_ALONE;
	if (replayed)
		(void)snprintf(gain, sizeof gain,
			"; without them the job is %.1f times as fast (predicted)",
			1 + tail_gain(base));
	return cause_is(out, "tail", certainty, "%s (p50 %s, p99 %s)%s",
		tail_words(tail, cause_read_unit(base), "reading", words),
		units_format_duration(histogram_quantile(&read->service, 0.5), p50),
		units_format_duration(histogram_quantile(&read->service, 0.99), p99), gain);
}

/* A stall picks no files.  With one file in flight the two look alike, a file that takes long and nothing
 * that arrives; there stalls come evenly, and slow files by chance. */
static bool is_no_stall(const struct evidence_base *base, const struct tail *tail)
{
	const bool alone = base->facts->read_threads * base->facts->read_depth <= 1;
	return tail->again >= SAME_FILES || (alone && tail->unevenly >= BY_CHANCE);
}

static bool cause_tail_if(const struct evidence_base *base, bool no_stall, struct cause *out)
{
	struct tail tail;
	const struct stage_summary *read = summary_stage(base->point, STAGE_READ_NAME);
	const bool binds = tail_of_reads(base, read, &tail) && tail_costs(base, &tail) &&
			   (!no_stall || is_no_stall(base, &tail));
	if (binds)
		(void)say_tail(base, read, &tail, out);
	if (binds && no_stall && !(tail.again >= SAME_FILES))
		out->certainty = fmin(out->certainty, CERTAIN_TAIL_ALONE);
	tail_release(&tail);
	return binds;
}

bool cause_tail(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	return cause_tail_if(base, false, out);
}

bool cause_tail_no_stall(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	return cause_tail_if(base, true, out);
}

bool tail_binds(const struct evidence_base *base, bool no_stall)
{
	struct cause cause;
	return cause_tail_if(base, no_stall, &cause);
}

/* --- opening a file --------------------------------------------------------------------------- */

void evidence_add_open(const struct evidence_base *base, struct verdict *out)
{
	const struct trace_set set = cause_traces(base, STAGE_READ_NAME);
	double *const opens = calloc(3 * set.items + 1, sizeof *opens);
	double *const timed = opens ? opens + set.items : NULL;
	double *const all = opens ? timed + set.items : NULL;
	size_t n = 0;
	size_t items = 0;
	char opening[UNITS_BYTES];
	char whole[UNITS_BYTES];
	for (size_t i = 0; opens && i < set.count; i++)
		for (size_t k = 0; k < set.of[i]->count; k++) {
			const struct trace_item *item = &set.of[i]->items[k];
			if (!isfinite(item->service_ns))
				continue;
			all[items++] = (double)item->service_ns;
			if (!isfinite(item->open_ns))
				continue;
			opens[n] = (double)item->open_ns;
			timed[n++] = (double)item->service_ns;
		}
	if (n >= OPENS_MIN) {
		const double open_ns = statistics_median(opens, n);
		const double timed_ns = statistics_median(timed, n);
		/* Where the files that were timed take longer than the others, the reader came late to
		 * their reads, for want of a core or of a buffer. */
		if (open_ns >= OPEN_MOSTLY * timed_ns &&
			timed_ns <= TIMED_LATE * statistics_median(all, items))
			evidence_add(out,
				"opening a file takes %s of its %s, %.0f %% (medians of %zu): lookups and metadata, not "
				"data; files that hold several samples (shards) need fewer of them",
				units_format_duration(open_ns, opening),
				units_format_duration(timed_ns, whole), open_ns / timed_ns * 100,
				n);
	}
	free(opens);
}
