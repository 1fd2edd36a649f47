/* The fingerprint of hardware: made of a node's facts, it is the same for like nodes after another boot, and says what differs. */
#include "harness/accept/fingerprint.h"

#include "harness/measure/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { GIB = 1 << 30 };

static struct fact_list gpu_node(double gib)
{
	struct fact_list facts = {0};
	fact_text(&facts, "cpu", "model", "A CPU");
	fact_text(&facts, "cpu", "hypervisor", "no");
	fact_number(&facts, "cpu", "sockets", 2, NULL);
	fact_number(&facts, "cpu", "cores", 64, NULL);
	fact_number(&facts, "memory", "total", gib * GIB, "B");
	fact_text(&facts, "gpu", "name_0", "GPU B");
	fact_text(&facts, "gpu", "name_1", "GPU A");
	fact_text(&facts, "gpu", "name_2", "GPU B");
	fact_text(&facts, "data", "file_system", "ext4");
	fact_text(&facts, "data", "disk", "nvme0n1");
	fact_text(&facts, "data", "rotational", "no");
	return facts;
}

static void expect_words(const json_t *fingerprint, const char *words)
{
	struct buffer out = {0};
	fingerprint_words(fingerprint, &out);
	assert_string_equal(out.data, words);
	buffer_release(&out);
}

static void says_what_a_node_is(void **state)
{
	(void)state;
	struct fact_list facts = gpu_node(503.2);
	json_t *fingerprint = fingerprint_make(&facts);
	expect_words(fingerprint, "2 x A CPU, 64 cores, 512 GiB, 1 x GPU A, 2 x GPU B, NVMe disk");
	json_decref(fingerprint);
	fact_list_release(&facts);
	fingerprint = fingerprint_make(&facts); /* of no facts at all */
	expect_words(
		fingerprint, "cpu unknown, cores unknown, memory unknown, no GPU, storage unknown");
	json_decref(fingerprint);
}

static void is_the_same_after_another_boot(void **state)
{
	(void)state;
	struct fact_list facts[3] = {gpu_node(503.2), gpu_node(503.9), gpu_node(471.6)};
	json_t *made[3];
	for (size_t i = 0; i < 3; i++)
		made[i] = fingerprint_make(&facts[i]);
	assert_true(fingerprint_same(made[0], made[1], NULL));
	struct buffer why = {0};
	assert_false(
		fingerprint_same(made[2], made[0], &why)); /* one module of sixteen is missing */
	assert_string_equal(why.data, "memory: 480 GiB, not 512 GiB");
	buffer_release(&why);
	(void)json_object_set_new(made[1], "storage", json_null());
	(void)json_object_set_new(made[1], "cores", json_integer(63));
	assert_false(fingerprint_same(made[1], made[0], &why));
	assert_string_equal(why.data, "cores: 63, not 64; storage: unknown, not NVMe disk");
	buffer_release(&why);
	for (size_t i = 0; i < 3; i++) {
		json_decref(made[i]);
		fact_list_release(&facts[i]);
	}
}

static void is_made_of_what_is_captured_here(void **state)
{
	(void)state;
	struct fact_list facts = {0};
	environment_capture(&facts, ".");
	json_t *fingerprint = fingerprint_make(&facts);
	assert_non_null(fingerprint);
	assert_true(json_is_integer(json_object_get(fingerprint, "memory")));
	/* Below a root without a mount of its own nobody says what the data lies on. */
	const struct fact *lies_on = fact_find(&facts, "data", "file_system");
	if (lies_on && lies_on->kind == FACT_TEXT)
		assert_true(json_is_string(json_object_get(fingerprint, "storage")));
	assert_true(json_is_string(json_object_get(fingerprint, "gpus")));
	json_decref(fingerprint);
	fact_list_release(&facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_a_node_is),
		cmocka_unit_test(is_the_same_after_another_boot),
		cmocka_unit_test(is_made_of_what_is_captured_here),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
