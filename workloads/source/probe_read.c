/* The cells of the read probe (cache state x request size x depth), visited in a new random order in
 * every round. */
#include "workloads/source/probe_read.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "workloads/source/probe_read_parts.h"
#include "workloads/source/residency.h"
#include "workloads/source/source.h"
#include "workloads/source/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	WHY_BYTES = 160,
	BLOCKS_LEAST = 2 * PROBE_DEPTH_MOST, /* of the largest request in the smaller file */
	READ_BYTES = 1 << 20,
};

static const double WARM_SHARE = 0.99; /* resident at least */

enum state { STATE_DIRECT, STATE_COLD, STATE_WARM, STATES };
static const char *const state_names[STATES] = {"cold direct", "cold buffered", "warm buffered"};

struct cell {
	enum state state;
	size_t size;
	unsigned depth;
	struct probe_values rate, latency;
};

/* Blocks of one size in a random order, and how far they are read. */
struct order {
	uint32_t *blocks;
	uint32_t count, next;
};

struct reads {
	const struct probe_read_plan *plan;
	const struct probe_control *control;
	struct ceilings *out;
	struct scratch_file cold, warm;
	struct order orders[STATES][PROBE_SIZES_MAX];
	struct memory_block memory;
	struct read_buffers buffers; /* in it */
	struct read_ring *ring;      /* NULL: threads */
	bool lacks[STATES];          /* given up, and said why */
	struct cell cells[CEILING_READS_MAX];
	size_t cell_count;
};

bool read_slot_next(struct read_slot *slot, uint32_t *taken, uint64_t *offset)
{
	if (!slot->wraps && *taken == slot->order_count)
		return false;
	++*taken;
	*offset = slot->order[slot->next] * slot->request_bytes;
	slot->next = (slot->next + 1) % slot->order_count;
	return true;
}

static void give_up(struct reads *reads, enum state state, const char *why)
{
	if (!reads->lacks[state])
		ceilings_lack(reads->out, "%s reads: %s", state_names[state], why);
	reads->lacks[state] = true;
}

/* --- setting up ---------------------------------------------------------------------------------- */

static uint64_t largest_size(const struct probe_read_plan *plan)
{
	uint64_t most = 0;
	for (size_t i = 0; i < plan->size_count; i++)
		most = plan->sizes[i] > most ? plan->sizes[i] : most;
	return most;
}

static int open_files(struct reads *reads, struct error *err)
{
	const struct probe_read_plan *plan = reads->plan;
	const uint64_t least = BLOCKS_LEAST * largest_size(plan);
	const uint64_t begin = clock_now_ns();
	int code = scratch_open(&reads->cold, plan->folder, plan->cold_bytes, least,
		begin + plan->write_ns, reads->control, err);
	if (code)
		return code;
	/* As much time again as the first may take, in proportion. */
	code = scratch_open(&reads->warm, plan->folder, plan->warm_bytes, least,
		clock_now_ns() + plan->write_ns, reads->control, err);
	if (code == -EINTR)
		return code;
	if (code)
		give_up(reads, STATE_WARM, err->text);
	if (reads->cold.direct_fd < 0) {
		char why[WHY_BYTES];
		(void)snprintf(why, sizeof why, "the file system has no O_DIRECT (%s)",
			strerror(-reads->cold.direct_fd));
		give_up(reads, STATE_DIRECT, why);
	}
	/* What is asked for is read, and nothing ahead of it. */
	(void)posix_fadvise(reads->cold.fd, 0, 0, POSIX_FADV_RANDOM);
	return 0;
}

static int open_orders(struct reads *reads, struct error *err)
{
	struct rng rng;
	rng_init(&rng, reads->plan->seed, 0);
	for (int state = 0; state < STATES; state++)
		for (size_t i = 0; i < reads->plan->size_count; i++) {
			const uint64_t bytes =
				state == STATE_WARM ? reads->warm.bytes : reads->cold.bytes;
			struct order *order = &reads->orders[state][i];
			order->count = (uint32_t)(bytes / reads->plan->sizes[i]);
			order->blocks = calloc(order->count + 1U, sizeof *order->blocks);
			if (!order->blocks)
				return error_set(err, -ENOMEM, "out of memory for offsets");
			rng_permutation(&rng, order->blocks, order->count);
		}
	return 0;
}

static void list_cells(struct reads *reads)
{
	const struct probe_read_plan *plan = reads->plan;
	for (int state = 0; state < STATES; state++)
		for (size_t size = 0; size < plan->size_count; size++)
			for (size_t i = 0; i < plan->depth_count; i++)
				if (reads->cell_count < CEILING_READS_MAX)
					reads->cells[reads->cell_count++] =
						(struct cell){.state = (enum state)state,
							.size = size,
							.depth = plan->depths[i]};
}

static void choose_engine(struct reads *reads)
{
	char why[WHY_BYTES] = "";
	struct error err = {0};
	const char *lack =
		reads->plan->without_uring ? "left out" : uring_unavailable(why, sizeof why);
	if (!lack && read_ring_open(&reads->ring, &reads->buffers, &err))
		lack = err.text;
	if (lack)
		ceilings_note(
			reads->out, "reads: by threads of pread; io_uring: %.*s", WHY_BYTES, lack);
	(void)snprintf(reads->out->engine, sizeof reads->out->engine, "%s",
		reads->ring ? source_io_uring.name : source_pread.name);
	reads->out->reads_block = !reads->ring;
}

static int reads_open(struct reads *reads, struct error *err)
{
	reads->buffers.each = largest_size(reads->plan);
	int code = open_files(reads, err);
	if (!code)
		code = open_orders(reads, err);
	if (!code && memory_map(&reads->memory, reads->buffers.each * PROBE_DEPTH_MOST, true) != 0)
		code = error_set(
			err, -ENOMEM, "out of memory for %d requests in flight", PROBE_DEPTH_MOST);
	if (code)
		return code;
	reads->buffers.bytes = reads->memory.data;
	reads->out->scratch_bytes = (double)reads->cold.bytes;
	choose_engine(reads);
	list_cells(reads);
	return 0;
}

static void reads_close(struct reads *reads)
{
	if (!read_ring_lost(reads->ring)) /* else the kernel may still write to them */
		memory_unmap(&reads->memory);
	read_ring_close(reads->ring);
	for (int state = 0; state < STATES; state++)
		for (size_t i = 0; i < PROBE_SIZES_MAX; i++)
			free(reads->orders[state][i].blocks);
	scratch_close(&reads->cold);
	scratch_close(&reads->warm);
}

/* --- measuring ----------------------------------------------------------------------------------- */

/* Reads the warm file until it is in the page cache; its buffers are free between slots. */
static int make_warm(struct reads *reads, struct error *err)
{
	const struct scratch_file *file = &reads->warm;
	struct residency now;
	int code = residency_of_file(file->fd, &now, err);
	if (!code && (double)now.resident_pages >= WARM_SHARE * (double)now.total_pages)
		return 0;
	uint8_t *bytes = code ? NULL : malloc(READ_BYTES);
	if (!code && !bytes)
		code = error_set(err, -ENOMEM, "out of memory");
	for (uint64_t at = 0; at < file->bytes && !code; at += READ_BYTES) {
		if (probe_time_over(reads->control))
			code = error_set(err, -EINTR, "no time was left to read it in");
		else if (pread(file->fd, bytes, READ_BYTES, (off_t)at) < 0)
			code = error_set_errno(err, errno, "reading the scratch file");
	}
	free(bytes);
	if (!code)
		code = residency_of_file(file->fd, &now, err);
	if (!code && (double)now.resident_pages < WARM_SHARE * (double)now.total_pages)
		code = error_set(err, -ENOMEM, "the page cache does not keep %llu MiB",
			(unsigned long long)(file->bytes >> 20));
	return code;
}

/* Brings the page cache into the cell's state, and proves it. */
static int make_ready(struct reads *reads, enum state state, struct error *err)
{
	struct residency after;
	if (state == STATE_COLD)
		return residency_evict_file(reads->cold.fd, &after, err);
	return state == STATE_WARM ? make_warm(reads, err) : 0;
}

static int file_of(const struct reads *reads, enum state state)
{
	switch (state) {
	case STATE_DIRECT:
		return reads->cold.direct_fd;
	case STATE_COLD:
		return reads->cold.fd;
	default:
		return reads->warm.fd;
	}
}

static int run_slot(struct reads *reads, struct cell *cell, struct error *err)
{
	struct order *order = &reads->orders[cell->state][cell->size];
	struct read_slot slot = {
		.fd = file_of(reads, cell->state),
		.request_bytes = reads->plan->sizes[cell->size],
		.order = order->blocks,
		.order_count = order->count,
		.next = order->next,
		.wraps = cell->state != STATE_COLD,
		.depth = cell->depth,
		.control = reads->control,
	};
	slot.end_ns = probe_slot_end(reads->control, clock_now_ns());
	const int code = reads->ring ? read_ring_run(reads->ring, &slot, err)
				     : read_threads_run(&reads->buffers, &slot, err);
	order->next = slot.next;
	if (!code && !probe_stopped(reads->control)) {
		probe_add(&cell->rate, slot.requests_per_s);
		probe_add(&cell->latency, slot.latency_ns);
	}
	return code;
}

/* A negative result ends the probe: what failed would fail again. */
static int visit(struct reads *reads, struct cell *cell, struct error *err)
{
	if (reads->lacks[cell->state])
		return 0;
	struct error why = {0};
	int code = make_ready(reads, cell->state, &why);
	if (!code)
		code = run_slot(reads, cell, &why);
	if (!code || probe_time_over(reads->control))
		return 0;
	if (read_ring_lost(reads->ring))
		return error_set(err, code, "%s", why.text);
	give_up(reads, cell->state, why.text);
	return 0;
}

static int measure_rounds(struct reads *reads, struct error *err)
{
	uint32_t order[CEILING_READS_MAX];
	struct rng rng;
	int code = 0;
	rng_init(&rng, reads->plan->seed, 1);
	for (unsigned round = 0; round < reads->control->rounds && !code; round++) {
		rng_permutation(&rng, order, (uint32_t)reads->cell_count);
		for (size_t i = 0; i < reads->cell_count && !code; i++) {
			if (probe_time_over(reads->control))
				return 0;
			code = visit(reads, &reads->cells[order[i]], err);
		}
	}
	return code;
}

/* --- results ------------------------------------------------------------------------------------- */

static void keep_cell(struct reads *reads, const struct cell *cell)
{
	const double size = (double)reads->plan->sizes[cell->size];
	struct ceiling_range range;
	struct read_ceiling *read = &reads->out->reads[reads->out->read_count++];
	const double rate = probe_median(&cell->rate, &range);
	*read = (struct read_ceiling){.direct = cell->state == STATE_DIRECT,
		.cold = cell->state != STATE_WARM,
		.depth = cell->depth,
		.request_bytes = size,
		.bytes_per_s = rate * size,
		.requests_per_s = rate,
		.latency_ns = probe_median(&cell->latency, NULL),
		.range = {range.low * size, range.high * size, range.repeats}};
}

static void keep(struct reads *reads)
{
	size_t unseen = 0;
	unsigned least = reads->control->rounds;
	for (size_t i = 0; i < reads->cell_count; i++) {
		const struct cell *cell = &reads->cells[i];
		if (reads->lacks[cell->state] && cell->rate.count == 0)
			continue;
		unseen += cell->rate.count == 0;
		if (cell->rate.count == 0)
			continue;
		keep_cell(reads, cell);
		least = cell->rate.count < least ? cell->rate.count : least;
	}
	if (probe_stopped(reads->control))
		return;
	if (unseen > 0)
		ceilings_lack(reads->out,
			"reads: %zu of %zu combinations of cache, size and depth, for want of time",
			unseen, reads->cell_count);
	if (least < reads->control->rounds)
		ceilings_note(reads->out, "reads: some have %u repeats, not %u, for want of time",
			least, reads->control->rounds);
}

int probe_read(const struct probe_read_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err)
{
	struct reads *reads = calloc(1, sizeof *reads);
	if (!reads)
		return error_set(err, -ENOMEM, "out of memory");
	reads->plan = plan;
	reads->control = control;
	reads->out = out;
	reads->cold.fd = reads->warm.fd = -1;
	reads->cold.direct_fd = reads->warm.direct_fd = -EBADF;
	int code = reads_open(reads, err);
	if (!code) {
		code = measure_rounds(reads, err);
		keep(reads);
	}
	reads_close(reads);
	free(reads);
	return probe_stopped(control) ? -EINTR : code;
}
