/* Which samples the items of a trace are.  Done once a repetition has ended, on what was kept of it, so
 * that nothing of it is in the time of an item.  A place is what a slow part of a storage may have in
 * common: the folder of a file, or the file of samples that are parts of one. */
#include "pipelines/trace_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct placed {
	const char *path;
	size_t length; /* of the part of it that is the place */
	uint32_t item, sample;
};

static struct placed place_of(const struct dataset *dataset, const struct trace_item *item)
{
	const char *const path = dataset->samples[item->sample - 1].path;
	const char *const slash = strrchr(path, '/');
	return (struct placed){.path = path,
		.length = dataset->offsets ? strlen(path)
			  : slash          ? (size_t)(slash - path)
					   : 0,
		.sample = item->sample};
}

static int compare_places(const struct placed *a, const struct placed *b)
{
	const int order = memcmp(a->path, b->path, a->length < b->length ? a->length : b->length);
	return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int by_place(const void *a, const void *b)
{
	const struct placed *const one = a;
	const struct placed *const other = b;
	const int order = compare_places(one, other);
	return order ? order : (one->sample > other->sample) - (one->sample < other->sample);
}

static int find_places(struct trace *trace, const struct dataset *dataset)
{
	size_t known = 0;
	struct placed *const all = calloc(trace->count + 1, sizeof *all);
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < trace->count; i++)
		if (trace->items[i].sample > 0 && trace->items[i].sample <= dataset->count) {
			all[known] = place_of(dataset, &trace->items[i]);
			all[known++].item = (uint32_t)i;
		}
	qsort(all, known, sizeof *all, by_place);
	for (size_t i = 0, first = 0; i < known; i++) {
		if (compare_places(&all[first], &all[i]) != 0)
			first = i;
		trace->items[all[i].item].place = all[first].sample;
	}
	free(all);
	return 0;
}

static int slowest_first(const void *a, const void *b)
{
	const struct trace_item *const one = *(const struct trace_item *const *)a;
	const struct trace_item *const other = *(const struct trace_item *const *)b;
	return (one->service_ns < other->service_ns) - (one->service_ns > other->service_ns);
}

static bool has_name(const struct trace *trace, uint32_t sample)
{
	for (size_t i = 0; i < trace->name_count; i++)
		if (trace->names[i].sample == sample)
			return true;
	return false;
}

static void add_name(struct trace *trace, const struct dataset *dataset, uint32_t sample)
{
	struct trace_name *const name = &trace->names[trace->name_count++];
	const char *const path = dataset->samples[sample - 1].path;
	const size_t length = strlen(path);
	const size_t cut = length < sizeof name->path ? 0 : length - sizeof name->path + 1;
	*name = (struct trace_name){.sample = sample,
		.part = dataset->offsets != NULL,
		.offset = dataset->offsets ? dataset->offsets[sample - 1] : 0};
	memcpy(name->path, path + cut, length - cut + 1);
}

static int find_names(struct trace *trace, const struct dataset *dataset)
{
	const struct trace_item **const items = calloc(trace->count + 1, sizeof *items);
	trace->names = calloc(TRACE_NAMES_MAX, sizeof *trace->names);
	if (!items || !trace->names) {
		free(items);
		return -ENOMEM;
	}
	for (size_t i = 0; i < trace->count; i++)
		items[i] = &trace->items[i];
	qsort(items, trace->count, sizeof(const struct trace_item *), slowest_first);
	for (size_t i = 0; i < trace->count && trace->name_count < TRACE_NAMES_MAX; i++) {
		const uint32_t sample = items[i]->sample;
		if (sample > 0 && sample <= dataset->count && !has_name(trace, sample))
			add_name(trace, dataset, sample);
	}
	free(items);
	return 0;
}

int trace_name_samples(struct trace *trace, const struct dataset *dataset)
{
	const int code = find_places(trace, dataset);
	return code ? code : find_names(trace, dataset);
}
