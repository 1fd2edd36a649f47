/* Events as bytes. */
#include "harness/report/tensorboard_events.h"

#include "harness/base/crc32c.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(MLBENCH_WITH_libprotobuf_c)
#include "harness/report/tensorboard.pb-c.h"

static void little_endian(uint64_t value, unsigned char *out, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out[i] = (unsigned char)(value >> (8 * i));
}

static void events_add_frame(struct buffer *out, const unsigned char *bytes, size_t size)
{
	unsigned char head[12];
	unsigned char tail[4];
	little_endian(size, head, 8);
	little_endian(crc32c_mask(crc32c_add(0, head, 8)), head + 8, 4);
	little_endian(crc32c_mask(crc32c_add(0, bytes, size)), tail, 4);
	buffer_add(out, head, sizeof head);
	buffer_add(out, bytes, size);
	buffer_add(out, tail, sizeof tail);
}

static void add_event(struct buffer *out, const Tensorboard__Event *event)
{
	const size_t size = tensorboard__event__get_packed_size(event);
	unsigned char *bytes = malloc(size + 1);
	if (!bytes) {
		out->failed = true;
		return;
	}
	(void)tensorboard__event__pack(event, bytes);
	events_add_frame(out, bytes, size);
	free(bytes);
}

void events_begin(struct buffer *out, double wall_time)
{
	static char version[] = "brain.Event:2";
	Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
	event.wall_time = wall_time;
	event.what_case = TENSORBOARD__EVENT__WHAT_FILE_VERSION;
	event.file_version = version;
	add_event(out, &event);
}

/* The library's structures point to mutable text, which packing does not change. */
static char *borrowed(const char *text)
{
	return (char *)(uintptr_t)text;
}

void events_add(struct buffer *out, double wall_time, int64_t step,
	const struct event_scalar *scalars, size_t count)
{
	Tensorboard__SummaryValue values[EVENT_SCALARS_MAX];
	Tensorboard__SummaryValue *list[EVENT_SCALARS_MAX];
	Tensorboard__SummaryMetadata metadata[EVENT_SCALARS_MAX];
	Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
	Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
	size_t used = 0;
	for (size_t i = 0; i < count && used < EVENT_SCALARS_MAX; i++) {
		if (!isfinite(scalars[i].value))
			continue;
		Tensorboard__SummaryValue *value = &values[used];
		tensorboard__summary_value__init(value);
		value->tag = borrowed(scalars[i].tag);
		value->value_case = TENSORBOARD__SUMMARY_VALUE__VALUE_SIMPLE_VALUE;
		value->simple_value = (float)scalars[i].value;
		if (scalars[i].description) {
			tensorboard__summary_metadata__init(&metadata[used]);
			metadata[used].summary_description = borrowed(scalars[i].description);
			value->metadata = &metadata[used];
		}
		list[used++] = value;
	}
	if (used == 0)
		return;
	summary.n_value = used;
	summary.value = list;
	event.wall_time = wall_time;
	event.step = step;
	event.what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
	event.summary = &summary;
	add_event(out, &event);
}

#else

/* Never asked for: the format is refused first (export_find). */
void events_begin(struct buffer *out, double wall_time)
{
	(void)wall_time;
	out->failed = true;
}

void events_add(struct buffer *out, double wall_time, int64_t step,
	const struct event_scalar *scalars, size_t count)
{
	(void)step;
	(void)scalars;
	(void)count;
	events_begin(out, wall_time);
}

#endif
