/* Sorting and finding the entries of a timeline. */
#include "harness/report/timeline_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct timeline_window *timeline_index_window(
	const struct timeline *t, uint64_t begin_ns, uint64_t end_ns)
{
	size_t low = 0;
	size_t high = t->window_count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (t->windows[middle].end_ns > begin_ns)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == t->window_count)
		return NULL;
	const struct timeline_window *window = &t->windows[low];
	const uint64_t last_ns = end_ns > begin_ns ? end_ns - 1 : begin_ns;
	return window->begin_ns <= last_ns ? window : NULL;
}

/* --- sorting ---------------------------------------------------------------------------------------------- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int index_by_time(const void *a, const void *b, void *context)
{
	const struct timeline_entry *entries = context;
	const uint32_t i = *(const uint32_t *)a;
	const uint32_t k = *(const uint32_t *)b;
	const struct timeline_entry *x = &entries[i];
	const struct timeline_entry *y = &entries[k];
	int order = compare_numbers(x->begin_ns, y->begin_ns);
	if (!order)
		order = compare_numbers(y->end_ns, x->end_ns);
	if (!order)
		order = compare_numbers(x->kind, y->kind);
	return order ? order : compare_numbers(i, k);
}

static uint64_t group_of(const struct timeline_entry *entry)
{
	return entry->kind == TIMELINE_DECODE ? entry->value : entry->number;
}

static int index_by_number(const void *a, const void *b, void *context)
{
	const struct timeline_entry *entries = context;
	const struct timeline_entry *x = &entries[*(const uint32_t *)a];
	const struct timeline_entry *y = &entries[*(const uint32_t *)b];
	int order = compare_numbers(x->kind, y->kind);
	if (!order)
		order = compare_numbers(group_of(x), group_of(y));
	if (!order)
		order = compare_numbers(x->number, y->number);
	return order ? order : compare_numbers(x->begin_ns, y->begin_ns);
}

static void gather_log(struct timeline_index *index, uint32_t log)
{
	const struct timeline *t = index->timeline;
	struct timeline_range *range = &index->logs[log];
	range->first = index->count;
	for (uint32_t c = 0; c < t->chunks; c++) {
		if (t->owners[c] != log)
			continue;
		for (uint32_t i = 0; i < t->used[c]; i++) {
			const uint32_t id = c * TIMELINE_CHUNK + i;
			const struct timeline_entry *e = &t->entries[id];
			if (timeline_index_window(t, e->begin_ns, e->end_ns))
				index->order[index->count++] = id;
		}
	}
	range->count = index->count - range->first;
	qsort_r(index->order + range->first, range->count, sizeof *index->order, index_by_time,
		t->entries);
}

static void find_kinds(struct timeline_index *index)
{
	for (uint32_t i = 0; i < index->count; i++) {
		struct timeline_range *range =
			&index->kinds[timeline_index_entry(index, index->by_number[i])->kind];
		if (range->count++ == 0)
			range->first = i;
	}
}

int timeline_index_open(struct timeline_index *index, const struct timeline *t)
{
	*index = (struct timeline_index){.timeline = t};
	index->logs = calloc(t->log_count + 1, sizeof *index->logs);
	if (!index->logs)
		return -ENOMEM;
	const size_t room = (size_t)t->chunks * TIMELINE_CHUNK;
	index->order = (uint32_t *)(void *)(t->entries + room);
	index->by_number = index->order + room;
	for (uint32_t log = 0; log < t->log_count; log++)
		gather_log(index, log);
	memcpy(index->by_number, index->order, index->count * sizeof *index->order);
	qsort_r(index->by_number, index->count, sizeof *index->by_number, index_by_number,
		t->entries);
	find_kinds(index);
	return 0;
}

void timeline_index_close(struct timeline_index *index)
{
	free(index->logs);
	*index = (struct timeline_index){0};
}

/* --- finding ---------------------------------------------------------------------------------------------- */

/* The first of the kind whose group is not below. */
static uint32_t lower_bound(
	const struct timeline_index *index, enum timeline_kind kind, uint64_t group)
{
	uint32_t low = index->kinds[kind].first;
	uint32_t high = low + index->kinds[kind].count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (group_of(timeline_index_entry(index, index->by_number[middle])) < group)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool timeline_index_find(
	const struct timeline_index *index, enum timeline_kind kind, uint64_t number, uint32_t *id)
{
	const uint32_t at = lower_bound(index, kind, number);
	const uint32_t end = index->kinds[kind].first + index->kinds[kind].count;
	if (at == end || timeline_index_entry(index, index->by_number[at])->number != number)
		return false;
	*id = index->by_number[at];
	return true;
}

struct timeline_range timeline_index_batch(const struct timeline_index *index, uint64_t batch)
{
	const uint32_t first = lower_bound(index, TIMELINE_DECODE, batch);
	const uint32_t end = lower_bound(index, TIMELINE_DECODE, batch + 1);
	return (struct timeline_range){first, end - first};
}

/* --- the account of a thread ------------------------------------------------------------------------------ */

/* What the clock had of the entry's state at ns, which is not before its beginning. */
static uint64_t had_at(const struct timeline_entry *e, uint64_t ns)
{
	return e->number + (ns < e->end_ns ? ns : e->end_ns) - e->begin_ns;
}

/* What the clock had of a state at the end of the window less what it had at its beginning; *from: entries in front of
 * it end before the window, and those that follow it. */
static uint64_t account_window(const struct timeline_index *index,
	const struct timeline_range *range, uint16_t kind, const struct timeline_window *window,
	uint32_t *from)
{
	const uint32_t end = range->first + range->count;
	const struct timeline_entry *first = NULL;
	const struct timeline_entry *last = NULL;
	while (*from < end &&
		timeline_index_entry(index, index->order[*from])->end_ns <= window->begin_ns)
		(*from)++;
	for (uint32_t at = *from; at < end; at++) {
		const struct timeline_entry *e = timeline_index_entry(index, index->order[at]);
		if (e->begin_ns >= window->end_ns)
			break;
		if (e->kind != kind || e->end_ns <= window->begin_ns)
			continue;
		first = first ? first : e;
		last = e;
	}
	if (!first)
		return 0;
	const uint64_t begin_ns =
		first->begin_ns > window->begin_ns ? first->begin_ns : window->begin_ns;
	return had_at(last, window->end_ns) - had_at(first, begin_ns);
}

void timeline_index_account(const struct timeline_index *index, const struct timeline_log *log,
	uint64_t ns[THREAD_STATES])
{
	const struct timeline *t = index->timeline;
	const struct timeline_range *range = &index->logs[log->index];
	for (int state = 0; state < THREAD_STATES; state++) {
		uint32_t from = range->first;
		ns[state] = 0;
		for (size_t i = 0; i < t->window_count; i++)
			ns[state] += account_window(index, range,
				(uint16_t)(TIMELINE_STATE + state), &t->windows[i], &from);
	}
}
