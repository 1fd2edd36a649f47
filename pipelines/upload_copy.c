/* Uploading where the step runs in host memory: the thread itself copies. */
#include "pipelines/upload_parts.h"

#include "harness/base/clock.h"
#include "harness/measure/timeline.h"

#include <string.h>

static void copy(const struct upload *u, struct slot *to, const struct slot *from)
{
	memcpy(to->data, from->data, from->size * u->options.sizes.bytes);
	memcpy(to->labels, from->labels, from->size * u->options.sizes.label_bytes);
	upload_label(to, from);
}

void upload_by_copying(struct upload *u, uint64_t start_ns)
{
	const struct upload_options *o = &u->options;
	uint64_t now = o->meter ? start_ns : 0;
	struct slot *from = NULL;
	for (uint64_t number = 0;; number++) {
		from = exchange_next_batch(o->exchange, o->lane, &u->seat, from, &now);
		struct slot *to = from ? upload_take_place(u, number, true, &now) : NULL;
		if (!to)
			break;
		const size_t bytes = from->size * o->sizes.bytes;
		const uint64_t began_ns = now;
		const uint64_t copied_ns = injection_begin_copy(o->injection);
		const bool shown = timeline_is_on();
		copy(u, to, from);
		injection_end_copy(o->injection, copied_ns, bytes, &o->crew->stopping);
		if (o->meter)
			now = clock_now_ns();
		timeline_span(TIMELINE_COPY, shown ? began_ns : 0, now, to->batch, from->size);
		upload_count(u,
			&(const struct copy_times){.batch = to->batch,
				.bytes = bytes,
				.ended_ns = now,
				.service_ns = now - began_ns},
			false);
		upload_deliver(u, now);
	}
}
