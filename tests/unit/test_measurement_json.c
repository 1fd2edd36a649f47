/* Repetitions as JSON: read back the same, and nonsense is refused. */
#include "harness/report/measurement_json.h"
#include "tests/unit/record_fixture.h"

#include <errno.h>

static void measurement_round_trip(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct measurement *m = make_measurement(1, 2, seed);
		struct measurement back;
		struct error err;
		m->status = (enum measurement_status)(seed % 4);
		json_t *object = measurement_to_json(m);
		char *text = json_dumps(object, JSON_COMPACT);
		json_t *again = json_loads(text, 0, NULL);
		assert_non_null(again);
		assert_int_equal(measurement_from_json(&back, again, &err), 0);
		assert_same(m, &back);
		json_decref(object);
		json_decref(again);
		free(text);
		measurement_release(&back);
		measurement_release(m);
		free(m);
	}
}

/* Every member of the wrong kind is refused, not read as something else. */
static void measurement_refuses_nonsense(void **state)
{
	static const char *const rows[] = {
		"{}",
		"[]",
		"{\"status\": \"ok\"}",
		"{\"status\": \"fine\", \"point\": 0}",
		"{\"status\": \"ok\", \"point\": \"0\"}",
		"{\"status\": \"ok\", \"point\": -1}",
		"{\"status\": \"ok\", \"point\": 4294967296}",
		"{\"status\": \"ok\", \"point\": 0, \"throughput\": \"fast\"}",
		"{\"status\": \"ok\", \"point\": 0, \"has_checksum\": 1}",
		"{\"status\": \"ok\", \"point\": 0, \"stages\": [1,2,3,4,5,6,7,8,9]}",
		"{\"status\": \"ok\", \"point\": 0, \"stages\": [{\"service\": {\"buckets\": [[99999, 1]]}}]}",
		"{\"status\": \"ok\", \"point\": 0, \"stages\": [{\"service\": {\"buckets\": [[1, -1]]}}]}",
		"{\"status\": \"ok\", \"point\": 0, \"windows\": [[1, 2]]}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct measurement m;
		struct error err = {0};
		json_t *object = json_loads(rows[i], 0, NULL);
		assert_non_null(object);
		if (measurement_from_json(&m, object, &err) != -EINVAL || !err.text[0])
			fail_msg("row %zu was taken: %s", i, rows[i]);
		measurement_release(&m);
		json_decref(object);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measurement_round_trip),
		cmocka_unit_test(measurement_refuses_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
