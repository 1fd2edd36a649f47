/* Logs of items, and the trace of a stage from those of its threads. */
#include "harness/measure/trace_log.h"

#include "harness/base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t trace_log_room(unsigned workers)
{
	const uint32_t share = TRACE_ROOM_STAGE / (workers > 0 ? workers : 1);
	return share > TRACE_ROOM_LEAST ? share : TRACE_ROOM_LEAST;
}

int trace_log_open(struct trace_log *log, uint32_t room)
{
	*log = (struct trace_log){.limit = UINT64_MAX, .room = room};
	log->entries = memory_touched(room, sizeof *log->entries);
	return log->entries ? 0 : -ENOMEM;
}

void trace_log_close(struct trace_log *log)
{
	free(log->entries);
	*log = (struct trace_log){0};
}

/* One block has at most TRACE_BLOCK entries, and the last limit of all keeps one block. */
void trace_log_thin(struct trace_log *log)
{
	while (log->count == log->room) {
		uint32_t kept = 0;
		log->limit /= 2;
		for (uint32_t i = 0; i < log->count; i++)
			if (trace_log_keeps(log->limit, log->entries[i].number))
				log->entries[kept++] = log->entries[i];
		log->count = kept;
	}
}

static bool wanted(
	const struct trace_source *source, uint64_t limit, const struct trace_entry *entry)
{
	return entry->end_ns >= source->begin_ns && entry->end_ns <= source->end_ns &&
	       trace_log_keeps(limit, entry->number);
}

static size_t count_wanted(const struct trace_source *source, uint64_t limit)
{
	size_t count = 0;
	for (unsigned i = 0; i < source->count; i++)
		for (uint32_t k = 0; source->logs[i] && k < source->logs[i]->count; k++)
			count += wanted(source, limit, &source->logs[i]->entries[k]);
	return count;
}

/* What every thread has kept. */
static uint64_t common_limit(const struct trace_source *source)
{
	uint64_t limit = UINT64_MAX;
	for (unsigned i = 0; i < source->count; i++)
		if (source->logs[i] && source->logs[i]->room > 0 && source->logs[i]->limit < limit)
			limit = source->logs[i]->limit;
	return limit;
}

/* The largest, to a thousandth, at which the trace is small enough to be saved. */
static uint64_t saved_limit(const struct trace_source *source)
{
	uint64_t high = common_limit(source);
	if (count_wanted(source, high) <= TRACE_ITEMS_MAX)
		return high;
	uint64_t low = 0;
	for (uint64_t step = high / 1024; high - low > step;) {
		const uint64_t middle = low + (high - low) / 2;
		if (count_wanted(source, middle) <= TRACE_ITEMS_MAX)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static struct trace_item item_of(
	const struct trace_source *source, const struct trace_entry *entry, unsigned worker)
{
	struct trace_item item = {
		.number = entry->number,
		.end_s = (double)(entry->end_ns - source->start_ns) / 1e9,
		.worker = worker,
		.service_ns = entry->service_ns,
		.lock_wait_ns = NAN,
		.lock_hold_ns = NAN,
		.host_ns = NAN,
	};
	switch (source->kind) {
	case TRACE_READ:
		item.bytes = entry->read.bytes;
		item.in_flight = entry->read.in_flight;
		break;
	case TRACE_DECODE:
		item.lock_wait_ns = entry->decode.lock_wait_ns;
		item.lock_hold_ns = entry->decode.lock_hold_ns;
		break;
	case TRACE_BATCH:
		item.host_ns = entry->host_ns;
		break;
	}
	return item;
}

static int by_item_number(const void *a, const void *b)
{
	const uint64_t x = ((const struct trace_item *)a)->number;
	const uint64_t y = ((const struct trace_item *)b)->number;
	return x < y ? -1 : x > y;
}

int trace_gather(struct trace *trace, const struct trace_source *source)
{
	*trace = (struct trace){.block = TRACE_BLOCK};
	(void)snprintf(trace->stage, sizeof trace->stage, "%s", source->stage);
	const uint64_t limit = saved_limit(source);
	const size_t count = count_wanted(source, limit);
	trace->items = calloc(count > 0 ? count : 1, sizeof *trace->items);
	if (!trace->items)
		return -ENOMEM;
	for (unsigned i = 0; i < source->count; i++) {
		const struct trace_log *log = source->logs[i];
		for (uint32_t k = 0; log && k < log->count; k++)
			if (wanted(source, limit, &log->entries[k]))
				trace->items[trace->count++] = item_of(source, &log->entries[k], i);
	}
	qsort(trace->items, trace->count, sizeof *trace->items, by_item_number);
	return 0;
}
