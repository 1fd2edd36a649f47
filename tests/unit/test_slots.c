/* Slots of batches: given out in order, delivered in order or as completed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/flow/flow.h"

#include <stdlib.h>

enum { COUNT = 4, BATCH = 3 };

/* Whether batch has a slot, or could be given one now (with all batches before it). */
static bool can_fill(const struct flow *flow, uint64_t batch)
{
	return batch < flow->reach;
}

static uint32_t fill(struct flow *flow, uint64_t batch)
{
	assert_true(can_fill(flow, batch));
	const uint32_t slot = flow_slot_of(flow, batch);
	assert_true(slot < COUNT);
	assert_int_equal(flow->slots[slot].batch, batch);
	return slot;
}

/* Every fourth batch is the incomplete last of an epoch. */
static void open_slots(struct flow *flow, uint32_t lanes, bool in_order)
{
	const struct flow_options options = {
		.epoch_samples = 3 * BATCH + 1,
		.batch_size = BATCH,
		.blobs = 1,
		.slots = COUNT,
		.lanes = lanes,
		.in_order = in_order,
		.workers = 1,
	};
	void *const memory = calloc(1, flow_bytes(&options));
	assert_non_null(memory);
	flow_open(flow, &options, memory);
}

/* The first piece of the memory is the ring of tickets. */
static void close_slots(struct flow *flow)
{
	free(flow->items);
}

static void slots_are_given_out_in_order(void **state)
{
	(void)state;
	struct flow flow;
	open_slots(&flow, 1, true);
	assert_true(can_fill(&flow, 3));
	assert_false(can_fill(&flow, 4));
	const uint32_t two = fill(&flow, 2); /* gives 0 and 1 theirs too */
	assert_int_equal(flow.free_slot_count, 1);
	assert_int_equal(flow.assigned, 3);
	assert_true(can_fill(&flow, 0));
	assert_int_equal(flow.slots[fill(&flow, 3)].missing, 1);
	assert_int_equal(flow.free_slot_count, 0);
	assert_int_equal(fill(&flow, 2), two);
	close_slots(&flow);
}

static void batches_are_delivered_in_order(void **state)
{
	(void)state;
	struct flow flow;
	open_slots(&flow, 1, true);
	const uint32_t one = fill(&flow, 1);
	const uint32_t zero = fill(&flow, 0);
	assert_false(flow_fill(&flow, one, 2));
	assert_true(flow_fill(&flow, one, 1));
	assert_int_equal(flow.deliverable, 0);
	assert_int_equal(flow.finished_count, 1);
	assert_int_equal(flow_deliver(&flow, 0), FLOW_NONE);
	assert_true(flow_fill(&flow, zero, 3));
	assert_int_equal(flow.deliverable, 2);
	assert_int_equal(flow_deliver(&flow, 0), zero);
	assert_int_equal(flow_deliver(&flow, 0), one);
	assert_int_equal(flow_deliver(&flow, 0), FLOW_NONE);
	flow_release(&flow, one);
	flow_release(&flow, zero);
	assert_int_equal(flow.free_slot_count, COUNT);
	close_slots(&flow);
}

static void or_as_they_are_completed(void **state)
{
	(void)state;
	struct flow flow;
	open_slots(&flow, 1, false);
	const uint32_t stuck = fill(&flow, 0);
	/* Batch 0 stays incomplete while many others pass it. */
	for (uint64_t batch = 1; batch < 40; batch++) {
		const uint32_t slot = fill(&flow, batch);
		assert_int_not_equal(slot, stuck);
		assert_true(flow_fill(&flow, slot, flow_batch_size(&flow, batch)));
		assert_int_equal(flow.deliverable, 1);
		assert_int_equal(flow_deliver(&flow, 0), slot);
		flow_release(&flow, slot);
	}
	assert_true(flow_fill(&flow, stuck, BATCH));
	assert_int_equal(flow_deliver(&flow, 0), stuck);
	close_slots(&flow);
}

static uint32_t fill_whole(struct flow *flow, uint64_t batch)
{
	const uint32_t slot = fill(flow, batch);
	assert_true(flow_fill(flow, slot, flow_batch_size(flow, batch)));
	return slot;
}

/* Each lane has its own batches in their order, however far the others are. */
static void a_lane_gets_its_own_batches(void **state)
{
	(void)state;
	struct flow flow;
	open_slots(&flow, 2, true);
	for (uint64_t batch = 0; batch < 4; batch++)
		(void)fill(&flow, batch);
	const uint32_t two = fill_whole(&flow, 2);
	const uint32_t one = fill_whole(&flow, 1);
	assert_false(flow_has_for(&flow, 0));
	assert_true(flow_has_for(&flow, 1));
	assert_int_equal(flow.deliverable, 1);
	assert_int_equal(flow_deliver(&flow, 1), one);
	flow_release(&flow, one);
	/* Lane 1 goes on and on with the one slot that comes back, while 0 waits for its first batch: that is
	 * as far as slots go. */
	assert_int_equal(flow_deliver(&flow, 1), FLOW_NONE);
	const uint32_t three = fill_whole(&flow, 3);
	assert_int_equal(flow_deliver(&flow, 1), three);
	flow_release(&flow, three);
	(void)fill(&flow, 4);
	const uint32_t five = fill_whole(&flow, 5);
	assert_int_equal(flow_deliver(&flow, 1), five);
	flow_release(&flow, five);
	assert_int_equal(flow_deliver(&flow, 0), FLOW_NONE);
	const uint32_t zero = fill_whole(&flow, 0);
	assert_int_equal(flow.deliverable, 2);
	assert_int_equal(flow_deliver(&flow, 0), zero);
	assert_int_equal(flow_deliver(&flow, 0), two);
	assert_int_equal(flow_deliver(&flow, 0), FLOW_NONE);
	(void)fill_whole(&flow, 4);
	assert_int_equal(flow.slots[flow_deliver(&flow, 0)].batch, 4);
	close_slots(&flow);
}

/* As completed whoever asks, but each as many. */
static void lanes_share_what_is_completed(void **state)
{
	(void)state;
	static const uint32_t asks[6] = {1, 0, 2, 2, 1, 0};
	struct flow flow;
	open_slots(&flow, 3, false);
	for (uint64_t batch = 0; batch < 60; batch++) {
		const uint32_t slot = fill_whole(&flow, batch);
		const uint32_t lane = asks[batch % 6];
		if (batch % 3 > 0)
			assert_false(flow_has_for(&flow, asks[batch % 6 - 1]));
		assert_true(flow_has_for(&flow, lane));
		assert_int_equal(flow_deliver(&flow, lane), slot);
		flow_release(&flow, slot);
	}
	for (uint32_t lane = 0; lane < 3; lane++)
		assert_int_equal(flow.delivered[lane], 20);
	close_slots(&flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_given_out_in_order),
		cmocka_unit_test(batches_are_delivered_in_order),
		cmocka_unit_test(or_as_they_are_completed),
		cmocka_unit_test(a_lane_gets_its_own_batches),
		cmocka_unit_test(lanes_share_what_is_completed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
