/* Keeping reads in flight with one blocking thread for each: where there is no io_uring. */
#include "workloads/source/probe_read_parts.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

struct reading {
	struct read_slot *slot;
	struct read_buffers buffers;
	atomic_uint_fast32_t taken;
	atomic_int status;
	/* Of each thread; its own. */
	uint64_t count[PROBE_DEPTH_MOST], spent_ns[PROBE_DEPTH_MOST];
};

static bool next_offset(struct reading *reading, uint64_t *offset)
{
	const struct read_slot *slot = reading->slot;
	const uint32_t taken =
		(uint32_t)atomic_fetch_add_explicit(&reading->taken, 1, memory_order_relaxed);
	if (!slot->wraps && taken >= slot->order_count)
		return false;
	*offset = slot->order[(slot->next + taken) % slot->order_count] * slot->request_bytes;
	return true;
}

static void read_on(void *context, unsigned me)
{
	struct reading *reading = context;
	const struct read_slot *slot = reading->slot;
	const uint64_t begin = clock_now_ns();
	uint64_t offset;
	do {
		if (!next_offset(reading, &offset))
			break;
		const ssize_t n =
			pread(slot->fd, reading->buffers.bytes + me * reading->buffers.each,
				slot->request_bytes, (off_t)offset);
		if (n != (ssize_t)slot->request_bytes) {
			atomic_store(&reading->status, n < 0 ? -errno : -EIO);
			break;
		}
		reading->count[me]++;
		reading->spent_ns[me] = clock_now_ns() - begin;
	} while (begin + reading->spent_ns[me] < slot->end_ns && !atomic_load(&reading->status) &&
		 !probe_stopped(slot->control));
}

int read_threads_run(const struct read_buffers *buffers, struct read_slot *slot, struct error *err)
{
	struct reading reading = {.slot = slot, .buffers = *buffers};
	const int code = probe_crew(slot->depth, false, read_on, &reading, err);
	double rate = 0;
	uint64_t count = 0;
	uint64_t spent = 0;
	for (unsigned i = 0; i < slot->depth; i++) {
		count += reading.count[i];
		spent += reading.spent_ns[i];
		if (reading.spent_ns[i])
			rate += (double)reading.count[i] * (double)NS_PER_S /
				(double)reading.spent_ns[i];
	}
	slot->next = (uint32_t)((slot->next + atomic_load(&reading.taken)) % slot->order_count);
	slot->requests = count;
	slot->requests_per_s = count ? rate : (double)NAN;
	slot->latency_ns = count ? (double)spent / (double)count : (double)NAN;
	if (code)
		return code;
	const int status = atomic_load(&reading.status);
	return status ? error_set_errno(err, -status, "reading the scratch file") : 0;
}
