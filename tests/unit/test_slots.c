/* Slots of batches: given out in order, delivered in order or as completed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipelines/slots.h"

#include <string.h>

enum { COUNT = 4, BATCH = 3 };

static uint8_t bytes[COUNT * BATCH * 5];
static uint32_t labels[COUNT * BATCH];

static uint32_t size_of(const void *context, uint64_t batch)
{
	(void)context;
	return batch % 4 == 3 ? 1 : BATCH; /* every fourth is the incomplete last of an epoch */
}

static struct slot *fill(struct slots *slots, uint64_t batch)
{
	assert_true(slots_can_fill(slots, batch));
	struct slot *slot = slots_fill(slots, batch, size_of, NULL);
	assert_non_null(slot);
	assert_int_equal(slot->batch, batch);
	return slot;
}

static int open_slots(struct slots *slots, uint32_t lanes, bool in_order)
{
	const struct slots_options options = {
		.count = COUNT,
		.lanes = lanes,
		.in_order = in_order,
		.data = bytes,
		.slot_bytes = BATCH * 5,
		.labels = labels,
		.slot_labels = BATCH,
	};
	return slots_open(slots, &options);
}

static void slots_are_given_out_in_order(void **state)
{
	(void)state;
	struct slots slots;
	assert_int_equal(open_slots(&slots, 1, true), 0);
	assert_true(slots_can_fill(&slots, 3));
	assert_false(slots_can_fill(&slots, 4));
	struct slot *two = fill(&slots, 2); /* gives 0 and 1 theirs too */
	assert_int_equal(slots.free_count, 1);
	assert_int_equal(slots.filling_count, 3);
	assert_true(slots_can_fill(&slots, 0));
	assert_int_equal(fill(&slots, 3)->size, 1);
	assert_int_equal(slots.free_count, 0);
	assert_ptr_equal(fill(&slots, 2), two);
	assert_ptr_equal(two->data, bytes + two->index * BATCH * 5);
	assert_ptr_equal(two->labels, labels + two->index * BATCH);
	slots_close(&slots);
}

static void batches_are_delivered_in_order(void **state)
{
	(void)state;
	struct slots slots;
	assert_int_equal(open_slots(&slots, 1, true), 0);
	struct slot *one = fill(&slots, 1);
	struct slot *zero = fill(&slots, 0);
	assert_false(slots_filled(&slots, one, 2, 1));
	assert_true(slots_filled(&slots, one, 1, 0));
	assert_int_equal(slots.deliverable, 0);
	assert_int_equal(slots.finished_count, 1);
	assert_null(slots_deliver(&slots, 0));
	assert_true(slots_filled(&slots, zero, 3, 0));
	assert_int_equal(slots.deliverable, 2);
	assert_ptr_equal(slots_deliver(&slots, 0), zero);
	assert_ptr_equal(slots_deliver(&slots, 0), one);
	assert_int_equal(one->bad, 1);
	assert_null(slots_deliver(&slots, 0));
	slots_release(&slots, one);
	slots_release(&slots, zero);
	assert_int_equal(slots.free_count, COUNT);
	slots_close(&slots);
}

static void or_as_they_are_completed(void **state)
{
	(void)state;
	struct slots slots;
	assert_int_equal(open_slots(&slots, 1, false), 0);
	struct slot *stuck = fill(&slots, 0);
	/* Batch 0 stays incomplete while many others pass it. */
	for (uint64_t batch = 1; batch < 40; batch++) {
		struct slot *slot = fill(&slots, batch);
		assert_ptr_not_equal(slot, stuck);
		assert_true(slots_filled(&slots, slot, slot->size, 0));
		assert_int_equal(slots.deliverable, 1);
		assert_ptr_equal(slots_deliver(&slots, 0), slot);
		slots_release(&slots, slot);
	}
	assert_true(slots_filled(&slots, stuck, BATCH, 0));
	assert_ptr_equal(slots_deliver(&slots, 0), stuck);
	slots_close(&slots);
}

static struct slot *fill_whole(struct slots *slots, uint64_t batch)
{
	struct slot *slot = fill(slots, batch);
	assert_true(slots_filled(slots, slot, slot->size, 0));
	return slot;
}

/* Each lane has its own batches in their order, however far the others are. */
static void a_lane_gets_its_own_batches(void **state)
{
	(void)state;
	struct slots slots;
	assert_int_equal(open_slots(&slots, 2, true), 0);
	for (uint64_t batch = 0; batch < 4; batch++)
		(void)fill(&slots, batch);
	struct slot *two = fill_whole(&slots, 2);
	struct slot *one = fill_whole(&slots, 1);
	assert_false(slots_has_for(&slots, 0));
	assert_true(slots_has_for(&slots, 1));
	assert_int_equal(slots.deliverable, 1);
	assert_ptr_equal(slots_deliver(&slots, 1), one);
	slots_release(&slots, one);
	/* Lane 1 goes on and on with the one slot that comes back, while 0 waits for its first batch: that is
	 * as far as slots go. */
	assert_ptr_equal(slots_deliver(&slots, 1), NULL);
	struct slot *three = fill_whole(&slots, 3);
	assert_ptr_equal(slots_deliver(&slots, 1), three);
	slots_release(&slots, three);
	(void)fill(&slots, 4);
	struct slot *five = fill_whole(&slots, 5);
	assert_ptr_equal(slots_deliver(&slots, 1), five);
	slots_release(&slots, five);
	assert_null(slots_deliver(&slots, 0));
	struct slot *zero = fill_whole(&slots, 0);
	assert_int_equal(slots.deliverable, 2);
	assert_ptr_equal(slots_deliver(&slots, 0), zero);
	assert_ptr_equal(slots_deliver(&slots, 0), two);
	assert_null(slots_deliver(&slots, 0));
	(void)fill_whole(&slots, 4);
	assert_int_equal(slots_deliver(&slots, 0)->batch, 4);
	slots_close(&slots);
}

/* As completed whoever asks, but each as many. */
static void lanes_share_what_is_completed(void **state)
{
	(void)state;
	static const uint32_t asks[6] = {1, 0, 2, 2, 1, 0};
	struct slots slots;
	assert_int_equal(open_slots(&slots, 3, false), 0);
	for (uint64_t batch = 0; batch < 60; batch++) {
		struct slot *slot = fill_whole(&slots, batch);
		const uint32_t lane = asks[batch % 6];
		if (batch % 3 > 0)
			assert_false(slots_has_for(&slots, asks[batch % 6 - 1]));
		assert_true(slots_has_for(&slots, lane));
		assert_ptr_equal(slots_deliver(&slots, lane), slot);
		slots_release(&slots, slot);
	}
	for (uint32_t lane = 0; lane < 3; lane++)
		assert_int_equal(slots.delivered[lane], 20);
	slots_close(&slots);
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
