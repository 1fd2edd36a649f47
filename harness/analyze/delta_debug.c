/* The search, its rounds, and what each cause costs. */
#include "harness/analyze/delta_debug.h"

#include <math.h>
#include <string.h>

enum { DELTA_ROUNDS_MOST = 8, DELTA_UNCLEAR_MOST = 2 };

/* Of the loss: a mixture that leaves less is as slow, one that leaves more is not. */
static const double AS_SLOW_SHARE = 1.0 / 2, NOT_AS_SLOW_SHARE = 1.0 / 6;
/* And how much all others may cost together, to begin with: of the loss, and at most (ln). */
static const double REST_SHARE = 1.0 / 4, REST_MOST = 0.12;
/* Costs are known well enough at that share of the loss, or at the margin. */
static const double COST_WIDTH_SHARE = 1.0 / 8;

/* --- sets ------------------------------------------------------------------------------------- */

bool delta_has(const struct delta_set *set, size_t item)
{
	return set->words[item / 64] >> (item % 64) & 1;
}

void delta_put(struct delta_set *set, size_t item)
{
	set->words[item / 64] |= UINT64_C(1) << (item % 64);
}

size_t delta_size(const struct delta_set *set)
{
	size_t size = 0;
	for (size_t i = 0; i < DELTA_WORDS; i++)
		size += (size_t)__builtin_popcountll(set->words[i]);
	return size;
}

bool delta_equal(const struct delta_set *a, const struct delta_set *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

struct delta_set delta_all(size_t count)
{
	struct delta_set set = {{0}};
	for (size_t i = 0; i < count; i++)
		delta_put(&set, i);
	return set;
}

struct delta_set delta_union(const struct delta_set *a, const struct delta_set *b)
{
	struct delta_set set = *a;
	for (size_t i = 0; i < DELTA_WORDS; i++)
		set.words[i] |= b->words[i];
	return set;
}

struct delta_set delta_without(const struct delta_set *from, const struct delta_set *out)
{
	struct delta_set set = *from;
	for (size_t i = 0; i < DELTA_WORDS; i++)
		set.words[i] &= ~out->words[i];
	return set;
}

/* --- questions -------------------------------------------------------------------------------- */

const char *delta_purpose_name(enum delta_purpose purpose)
{
	static const char *const names[] = {[DELTA_LOSS] = "loss",
		[DELTA_SEARCH] = "search",
		[DELTA_NEEDED] = "needed",
		[DELTA_REST] = "rest",
		[DELTA_WHOLE] = "whole",
		[DELTA_ADDED] = "added",
		[DELTA_REMOVED] = "removed"};
	return names[purpose];
}

enum delta_answer delta_answer_of(
	const struct delta_question *question, const struct paired_estimate *estimate)
{
	const bool below = paired_side(estimate, question->below) < 0;
	const bool above = paired_side(estimate, question->above) > 0;
	if (below && above) /* what is sure of both: the nearer end */
		return estimate->value < (question->below + question->above) / 2 ? DELTA_BELOW
										 : DELTA_ABOVE;
	if (below)
		return DELTA_BELOW;
	return above ? DELTA_ABOVE : DELTA_UNCLEAR;
}

bool delta_is_answered(
	const struct delta_question *question, const struct paired_estimate *estimate)
{
	const double half = (estimate->interval.high - estimate->interval.low) / 2;
	return delta_answer_of(question, estimate) != DELTA_UNCLEAR || half <= question->width;
}

/* --- the state of a search -------------------------------------------------------------------- */

struct delta_work {
	const struct delta_task *task;
	struct delta_result *result;
	size_t order[DELTA_ITEMS_MAX]; /* all differences, the most suspected first */
	struct delta_set all, none, blamed;
	double margin; /* ln */
	double loss;   /* ln, above 0 */
	bool over;     /* nothing more may be asked */
	bool unclear;  /* some question that matters stayed open */
};

static enum delta_answer delta_put_question(
	struct delta_work *work, struct delta_question *question)
{
	if (work->over)
		return DELTA_OVER;
	question->hint = work->loss;
	question->rate = question->purpose == DELTA_SEARCH ? DELTA_SEARCH_RATE : DELTA_RATE;
	const enum delta_answer answer = work->task->ask(work->task->context, question);
	work->over = answer == DELTA_OVER;
	work->result->questions += answer != DELTA_INVALID && answer != DELTA_OVER;
	return answer;
}

/* One threshold for both answers. */
static enum delta_answer delta_compare(struct delta_work *work, enum delta_purpose purpose,
	const struct delta_set *mix, const struct delta_set *reference, double threshold,
	struct paired_estimate *estimate)
{
	struct delta_question question = {.purpose = purpose,
		.mix = *mix,
		.reference = *reference,
		.below = threshold,
		.above = threshold};
	const enum delta_answer answer = delta_put_question(work, &question);
	if (estimate)
		*estimate = question.estimate;
	return answer;
}

static double suspicion_of(const struct delta_work *work, size_t item)
{
	/* Something of each, so that halving goes on where nothing is suspected. */
	const double least = 1e-3 / (double)work->task->count;
	return work->task->suspicion ? work->task->suspicion[item] + least : least;
}

static void delta_order_items(struct delta_work *work)
{
	for (size_t i = 0; i < work->task->count; i++) {
		size_t at = i;
		for (; at > 0 && suspicion_of(work, work->order[at - 1]) < suspicion_of(work, i);
			at--)
			work->order[at] = work->order[at - 1];
		work->order[at] = i;
	}
}

/* --- one search ------------------------------------------------------------------------------- */

struct delta_search {
	struct delta_set base; /* in every mixture */
	struct delta_set slow; /* base and all candidates: what is as slow is compared with this */
	double loss;           /* ln(base / slow), above 0 */
	size_t list[DELTA_ITEMS_MAX]; /* candidates, the most suspected first */
	size_t count;                 /* of list: those that may still be needed */
	struct delta_set kept;
	struct delta_cause *causes; /* kept, by cause; (cause_count) */
	size_t cause_count, cause_room;
};

/* base, what is kept, and the first `length` candidates. */
static struct delta_set delta_prefix(const struct delta_search *search, size_t length)
{
	struct delta_set set = delta_union(&search->base, &search->kept);
	for (size_t i = 0; i < length; i++)
		delta_put(&set, search->list[i]);
	return set;
}

static enum delta_answer delta_ask_slow(
	struct delta_work *work, const struct delta_search *search, const struct delta_set *mix)
{
	struct delta_question question = {.purpose = DELTA_SEARCH,
		.mix = *mix,
		.reference = search->slow,
		.below = AS_SLOW_SHARE * search->loss,
		.above = NOT_AS_SLOW_SHARE * search->loss};
	if (delta_equal(mix, &search->slow))
		return DELTA_BELOW;
	return delta_put_question(work, &question);
}

/* The length between `low` and `high` that was not tried yet and halves the suspicion best; 0: there is none. */
static size_t delta_halve(const struct delta_work *work, const struct delta_search *search,
	size_t low, size_t high, const bool *tried)
{
	double total = 0;
	double best = (double)INFINITY;
	double sum = 0;
	size_t length = 0;
	for (size_t i = low; i < high; i++)
		total += suspicion_of(work, search->list[i]);
	for (size_t i = low; i + 1 < high; i++) {
		sum += suspicion_of(work, search->list[i]);
		const double off = fabs(sum - total / 2);
		if (!tried[i + 1] && off < best) {
			best = off;
			length = i + 1;
		}
	}
	return length;
}

/* The candidates behind the longest prefix that is not as slow, up to the shortest that is: [*low, *high). */
static void delta_find_next(
	struct delta_work *work, const struct delta_search *search, size_t *low, size_t *high)
{
	bool tried[DELTA_ITEMS_MAX + 1] = {false};
	size_t unclear = 0;
	*low = 0;
	*high = search->count;
	while (unclear < DELTA_UNCLEAR_MOST) {
		const size_t length = delta_halve(work, search, *low, *high, tried);
		if (length == 0)
			return;
		const struct delta_set mix = delta_prefix(search, length);
		const enum delta_answer answer = delta_ask_slow(work, search, &mix);
		tried[length] = true;
		if (answer == DELTA_OVER)
			return;
		if (answer == DELTA_BELOW)
			*high = length;
		else if (answer == DELTA_ABOVE)
			*low = length;
		unclear += answer == DELTA_UNCLEAR;
	}
}

static struct delta_cause delta_cause_of(const struct delta_set *items)
{
	return (struct delta_cause){
		.items = *items, .added.value = (double)NAN, .removed.value = (double)NAN};
}

static void delta_keep(struct delta_search *search, size_t low, size_t high)
{
	struct delta_set items = {{0}};
	for (size_t i = low; i < high; i++)
		delta_put(&items, search->list[i]);
	search->causes[search->cause_count++] = delta_cause_of(&items);
	search->kept = delta_union(&search->kept, &items);
	search->count = low;
}

/* Whether a part of what is kept can go, and nothing gets faster by it: DELTA_BELOW, and it is gone; DELTA_ABOVE: it is needed
 * for sure.  What costs less than a sixth of the loss here need not be kept: the rest is looked at again. */
static enum delta_answer delta_drop(
	struct delta_work *work, struct delta_search *search, const struct delta_set *part)
{
	struct delta_question question = {.purpose = DELTA_NEEDED,
		.reference = delta_union(&search->base, &search->kept),
		.below = fmax(work->margin, NOT_AS_SLOW_SHARE * search->loss),
		.above = work->margin};
	question.mix = delta_without(&question.reference, part);
	const enum delta_answer answer = delta_put_question(work, &question);
	if (answer == DELTA_BELOW)
		search->kept = delta_without(&search->kept, part);
	return answer;
}

/* Items of cause i that came together because the mixtures between were unresolved: those that are not needed go, and those
 * that are become causes of their own. */
static void delta_split(struct delta_work *work, struct delta_search *search, size_t i)
{
	struct delta_cause *cause = &search->causes[i];
	for (size_t item = 0; item < work->task->count && delta_size(&cause->items) > 1; item++) {
		struct delta_set one = {{0}};
		if (!delta_has(&cause->items, item))
			continue;
		delta_put(&one, item);
		const enum delta_answer answer = delta_drop(work, search, &one);
		if (answer == DELTA_UNCLEAR || answer == DELTA_OVER)
			cause->ambiguous = true;
		if (answer == DELTA_ABOVE && search->cause_count < search->cause_room) {
			search->causes[search->cause_count] = delta_cause_of(&one);
			search->causes[search->cause_count++].confirmed = true;
		} else if (answer != DELTA_BELOW) {
			continue;
		}
		cause->items = delta_without(&cause->items, &one);
	}
	if (delta_size(&cause->items) == 1)
		cause->ambiguous = false;
}

/* 1-minimality. */
static void delta_minimise(struct delta_work *work, struct delta_search *search)
{
	size_t left = 0;
	for (size_t i = 0; i < search->cause_count; i++) {
		struct delta_cause *cause = &search->causes[i];
		/* The only one: nothing was as slow without it. */
		const bool alone = delta_size(&search->kept) == delta_size(&cause->items);
		const enum delta_answer answer = alone || cause->confirmed
							 ? DELTA_UNCLEAR
							 : delta_drop(work, search, &cause->items);
		if (answer == DELTA_BELOW)
			continue;
		cause->confirmed = cause->confirmed || answer == DELTA_ABOVE;
		delta_split(work, search, i);
		search->causes[left++] = search->causes[i];
	}
	search->cause_count = left;
}

/* A smallest set of candidates that is as slow as all of them.  False: it was cut short. */
static bool delta_search_run(struct delta_work *work, struct delta_search *search)
{
	while (search->count > 0 && search->cause_count < search->cause_room) {
		size_t low;
		size_t high;
		if (search->cause_count > 0) {
			const struct delta_set mix = delta_prefix(search, 0);
			const enum delta_answer answer = delta_ask_slow(work, search, &mix);
			if (answer == DELTA_BELOW)
				break;
			if (answer == DELTA_OVER)
				return false;
		}
		delta_find_next(work, search, &low, &high);
		if (work->over) { /* a cause is among these */
			struct delta_set rest = {{0}};
			for (size_t i = 0; i < high; i++)
				delta_put(&rest, search->list[i]);
			work->result->remaining = rest;
			return false;
		}
		delta_keep(search, low, high);
	}
	delta_minimise(work, search);
	return !work->over;
}

/* Candidates are those of `from` that are not in base. */
static bool delta_search_in(struct delta_work *work, const struct delta_set *base,
	const struct delta_set *from, double loss, struct delta_set *found)
{
	struct delta_result *result = work->result;
	struct delta_search search = {.base = *base,
		.slow = delta_union(base, from),
		.loss = loss,
		.causes = result->causes + result->cause_count,
		.cause_room = DELTA_CAUSES_MAX - result->cause_count};
	for (size_t i = 0; i < work->task->count; i++)
		if (delta_has(from, work->order[i]) && !delta_has(base, work->order[i]))
			search.list[search.count++] = work->order[i];
	result->remaining = *from;
	*found = work->none;
	const bool whole = delta_search_run(work, &search);
	result->cause_count += search.cause_count;
	*found = search.kept;
	return whole;
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Causes one after the other, until the rest costs less than the threshold.  False: that is not sure. */
static bool delta_peel(struct delta_work *work, double threshold)
{
	struct delta_result *result = work->result;
	for (int round = 0; round < DELTA_ROUNDS_MOST; round++) {
		struct delta_set found;
		struct delta_set left = delta_without(&work->all, &work->blamed);
		double loss = work->loss;
		if (delta_size(&left) == 0)
			return true;
		if (delta_size(&work->blamed) > 0) {
			const enum delta_answer answer = delta_compare(
				work, DELTA_REST, &left, &work->none, -threshold, &result->rest);
			if (answer != DELTA_BELOW)
				return answer == DELTA_ABOVE;
			loss = -result->rest.value;
		}
		const bool whole = delta_search_in(work, &work->none, &left, loss, &found);
		if (!whole)
			return false;
		if (delta_size(&found) == 0)
			break;
		work->blamed = delta_union(&work->blamed, &found);
		result->remaining = delta_without(&work->all, &work->blamed);
	}
	work->unclear = true; /* something costs so much, and was not found */
	return false;
}

/* What costs something only beside the causes.  False: it is not sure that nothing does. */
static bool delta_complete(struct delta_work *work, double threshold)
{
	struct delta_result *result = work->result;
	for (int round = 0; round < DELTA_ROUNDS_MOST; round++) {
		struct delta_set found;
		const struct delta_set left = delta_without(&work->all, &work->blamed);
		if (delta_size(&left) == 0)
			return true;
		const enum delta_answer answer = delta_compare(
			work, DELTA_WHOLE, &work->blamed, &work->all, threshold, &result->whole);
		if (answer != DELTA_ABOVE)
			return answer == DELTA_BELOW;
		if (!delta_search_in(work, &work->blamed, &left, result->whole.value, &found))
			return false;
		if (delta_size(&found) == 0)
			break;
		work->blamed = delta_union(&work->blamed, &found);
		result->remaining = delta_without(&work->all, &work->blamed);
	}
	work->unclear = true;
	return false;
}

/* --- what each costs -------------------------------------------------------------------------- */

static void delta_measure_cost(struct delta_work *work, enum delta_purpose purpose,
	const struct delta_set *mix, const struct delta_set *reference, struct delta_cause *cause,
	struct paired_estimate *estimate)
{
	struct delta_question question = {.purpose = purpose,
		.mix = *mix,
		.reference = *reference,
		.below = -work->margin,
		.above = -work->margin,
		.width = fmax(work->margin, COST_WIDTH_SHARE * work->loss)};
	const enum delta_answer answer = delta_put_question(work, &question);
	if (answer != DELTA_INVALID && answer != DELTA_OVER)
		*estimate = question.estimate;
	cause->confirmed = cause->confirmed || answer == DELTA_BELOW;
}

static bool delta_is_nothing(const struct delta_work *work, const struct paired_estimate *cost)
{
	const double least = fmax(2 * work->margin, NOT_AS_SLOW_SHARE * work->loss);
	return cost->pairs > 0 && cost->interval.low > -least;
}

static void delta_measure_costs(struct delta_work *work)
{
	for (size_t i = 0; i < work->result->cause_count && !work->over; i++) {
		struct delta_cause *cause = &work->result->causes[i];
		const struct delta_set without = delta_without(&work->all, &cause->items);
		if (cause->added.pairs > 0)
			continue;
		delta_measure_cost(
			work, DELTA_ADDED, &cause->items, &work->none, cause, &cause->added);
		delta_measure_cost(
			work, DELTA_REMOVED, &work->all, &without, cause, &cause->removed);
		/* That it was needed is one answer, which may be wrong; both sides say that it costs nothing. */
		if (delta_is_nothing(work, &cause->added) &&
			delta_is_nothing(work, &cause->removed))
			cause->confirmed = false;
	}
}

/* Up to one threshold. */
static void delta_explain(struct delta_work *work, double threshold)
{
	struct delta_result *result = work->result;
	const bool peeled = delta_peel(work, threshold);
	const bool sure = !work->over && delta_complete(work, threshold) && peeled;
	if (sure) {
		result->within = 1 - exp(-threshold);
		result->remaining = work->none;
	}
	if (!work->over)
		delta_measure_costs(work);
}

static enum delta_status delta_status_of(const struct delta_work *work)
{
	const struct delta_result *result = work->result;
	bool clear = !work->unclear && result->cause_count > 0;
	for (size_t i = 0; i < result->cause_count; i++)
		clear = clear && result->causes[i].confirmed && !result->causes[i].ambiguous;
	/* The time may end while only the bound on the rest was still being lowered. */
	if (clear && !isnan(result->within) && delta_size(&result->remaining) == 0)
		return DELTA_EXPLAINED;
	return work->over ? DELTA_UNFINISHED : DELTA_PARTLY;
}

void delta_debug(const struct delta_task *task, struct delta_result *result)
{
	struct delta_work work = {.task = task,
		.result = result,
		.all = delta_all(task->count),
		.margin = -log(1 - task->margin)};
	*result = (struct delta_result){.remaining = work.all, .within = (double)NAN};
	const enum delta_answer answer = delta_compare(
		&work, DELTA_LOSS, &work.all, &work.none, -work.margin, &result->loss);
	if (answer != DELTA_BELOW) {
		result->status = answer == DELTA_ABOVE  ? DELTA_NO_LOSS
				 : answer == DELTA_OVER ? DELTA_UNFINISHED
							: DELTA_UNKNOWN;
		return;
	}
	work.loss = -result->loss.value;
	delta_order_items(&work);
	const double coarse = fmax(work.margin, fmin(REST_MOST, REST_SHARE * work.loss));
	delta_explain(&work, coarse);
	if (!work.over && coarse > work.margin && !isnan(result->within))
		delta_explain(&work, work.margin);
	result->status = delta_status_of(&work);
}
