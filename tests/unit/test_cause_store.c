/* What the system knows of the store, in a verdict about reads: a control group's limit on reads, the disk, the mount, and a
 * memory limit under which the page cache is too small. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/verdict.h"
#include "tests/unit/verdict_fixture.h"

#define GIB 1073741824.0

static void read_bound_of_a_disk(struct measurement *m)
{
	hand_made(m, (struct shares){0.998, 0, 0.002}, (struct shares){0.3, 0.7, 0},
		(struct shares){0.2, 0.8, 0});
	set_read_latency(m, 14e-3);
	store_measurement_init(&m->store, "");
	(void)snprintf(m->store.device, sizeof m->store.device, "sda");
	m->store.reads_per_s = 1000;
	m->store.bytes_per_s = 1e8;
	m->store.read_ns = 2e6;
	m->store.busy_share = 0.99;
	m->dataset_samples = 20000;
	m->file_bytes_mean = GIB / 20000;
	m->rss_peak_bytes = (uint64_t)(GIB / 4);
}

static void limit_bytes(struct measurement *m, double limit, double used)
{
	(void)snprintf(m->store.bytes_group, sizeof m->store.bytes_group, "/pod");
	m->store.bytes_limit = limit;
	m->store.bytes_used = used;
}

static void limit_requests(struct measurement *m, double limit, double used)
{
	(void)snprintf(m->store.requests_group, sizeof m->store.requests_group, "/pod/job");
	m->store.requests_limit = limit;
	m->store.requests_used = used;
}

static void a_limit_that_is_used_up(void **state)
{
	(void)state;
	static struct measurement m;
	const struct point_facts facts = hand_facts();
	read_bound_of_a_disk(&m);
	limit_bytes(&m, 100 << 20, 100 << 20);
	const struct verdict bytes = judge(&m, &facts);
	expect(&bytes, "read", "bandwidth");
	assert_true(says(&bytes, "The read limit of cgroup /pod on sda (100 MiB/s) is used up"));
	assert_true(strstr(bytes.advice, "raise the read limit of cgroup /pod on sda") != NULL);
	/* Of two, the one that is nearer to used up. */
	limit_requests(&m, 1000, 1010);
	const struct verdict requests = judge(&m, &facts);
	expect(&requests, "read", "iops");
	assert_true(says(&requests, "cgroup /pod/job on sda (1,000 requests/s)"));
	/* Used well, not up: less certain. */
	read_bound_of_a_disk(&m);
	limit_bytes(&m, 1e8, 0.92e8);
	const struct verdict less = judge(&m, &facts);
	expect(&less, "read", "bandwidth");
	assert_true(less.confidence < bytes.confidence);
}

static void a_limit_that_does_not_hold(void **state)
{
	(void)state;
	static const double used[] = {0, 0.5, 0.89, 1.2, NAN};
	static struct measurement m;
	struct point_facts facts = hand_facts();
	for (size_t i = 0; i < sizeof used / sizeof used[0]; i++) {
		read_bound_of_a_disk(&m);
		limit_bytes(&m, 1e8, used[i] * 1e8);
		limit_requests(&m, 1e3, used[i] * 1e3);
		const struct verdict v = judge(&m, &facts);
		expect(&v, "read", "unknown");
		assert_false(says(&v, "cgroup"));
	}
	/* Nor one that another reads up, where this run reads from memory. */
	limit_bytes(&m, 1e8, 1e8);
	facts.reads_memory = true;
	const struct verdict v = judge(&m, &facts);
	assert_string_not_equal(v.resource, "bandwidth");
	assert_false(says(&v, "read limit"));
}

/* The advice stands whatever a replay recommends, which knows no limit. */
static void advice_of_a_limit_outranks_settings(void **state)
{
	(void)state;
	static struct measurement m;
	static struct point_summary point;
	static struct diagnosis d;
	const struct measurement *repeats[] = {&m, &m, &m};
	const struct point_facts facts = hand_facts();
	struct error err;
	char advice[EVIDENCE_BYTES];
	read_bound_of_a_disk(&m);
	limit_bytes(&m, 1e8, 1e8);
	assert_int_equal(summary_of_point(repeats, 3, &facts, &point, &err), 0);
	d = (struct diagnosis){.verdict = point.verdict, .recommendation_count = 1};
	recommend_advise(&d, &point, &facts, advice, sizeof advice);
	assert_string_equal(advice, point.verdict.advice);
	point_summary_release(&point);
}

static void repeats_under_other_limits_have_none(void **state)
{
	(void)state;
	static struct measurement m[2];
	static struct point_summary point;
	const struct measurement *repeats[] = {&m[0], &m[1]};
	const struct point_facts facts = hand_facts();
	struct error err;
	for (int i = 0; i < 2; i++) {
		read_bound_of_a_disk(&m[i]);
		limit_bytes(&m[i], 1e8, 0.8e8 + i * 0.2e8);
	}
	assert_int_equal(summary_of_point(repeats, 2, &facts, &point, &err), 0);
	assert_true(point.store.bytes_limit == 1e8 && point.store.bytes_used == 0.9e8);
	assert_true(point.store.reads_per_s == 1000);
	point_summary_release(&point);
	m[1].store.bytes_limit = 2e8;
	assert_int_equal(summary_of_point(repeats, 2, &facts, &point, &err), 0);
	assert_true(isnan(point.store.bytes_limit) && isnan(point.store.reads_per_s));
	assert_string_not_equal(point.store.why, "");
	point_summary_release(&point);
}

/* Half of the run under a limit that is used up, half of it under one that is not: each part has its own. */
static void a_phase_has_its_own_use(void **state)
{
	(void)state;
	static struct window windows[] = {
		{.t = 5, .samples = 8000, .bytes_read = 800000000},
		{.t = 10, .samples = 11900, .bytes_read = 1190000000},
	};
	static struct measurement m;
	static struct measurement part;
	read_bound_of_a_disk(&m);
	m.windows = windows;
	m.window_count = 2;
	m.bytes_read_per_s = 119e6;
	limit_bytes(&m, 160e6, 119e6);
	phase_slice(&m, NULL, 0, 5, &part);
	assert_true(fabs(part.store.bytes_used / 160e6 - 1) < 1e-9);
	phase_slice(&m, NULL, 5, 10, &part);
	assert_true(fabs(part.store.bytes_used / 78e6 - 1) < 1e-9);
	assert_true(part.store.bytes_limit == 160e6 && isnan(part.store.busy_share));
}

static void the_mount_and_its_disk(void **state)
{
	(void)state;
	static struct measurement m;
	struct point_facts facts = hand_facts();
	read_bound_of_a_disk(&m);
	(void)snprintf(facts.mount, sizeof facts.mount, "xfs (rw,noatime)");
	const struct verdict busy = judge(&m, &facts);
	assert_true(says(&busy,
		"The data is on xfs (rw,noatime) on sda (busy 99 % of the time, 2.00 ms per request)"));
	/* A disk that idles under a full store is not what is full. */
	limit_bytes(&m, 1e8, 1e8);
	assert_false(says(&busy, "above the disk"));
	m.store.busy_share = 0.2;
	const struct verdict idle = judge(&m, &facts);
	assert_true(says(&idle, "the saturated part lies above the disk"));
	/* Unless the page cache took a part from it. */
	m.page_cache_share = 0.6;
	const struct verdict cached = judge(&m, &facts);
	assert_false(says(&cached, "above the disk"));
	assert_true(says(&cached, "the page cache served 60 %"));
	/* No disk: the mount alone; and of reads that wait for a core, nothing. */
	read_bound_of_a_disk(&m);
	store_measurement_init(&m.store, "nfs4 is no file system on a block device of this node");
	(void)snprintf(facts.mount, sizeof facts.mount, "nfs4 (rw,rsize=1048576)");
	const struct verdict network = judge(&m, &facts);
	assert_true(says(&network, "The data is on nfs4 (rw,rsize=1048576)"));
	m.stages[0].cpu_seconds = 0.98 * m.stages[0].seconds[THREAD_WORKING];
	const struct verdict cpu = judge(&m, &facts);
	expect(&cpu, "read", "cpu");
	assert_false(says(&cpu, "The data is on"));
}

static struct point_facts limited_memory(double bytes)
{
	struct point_facts facts = hand_facts();
	facts.cache_limit_bytes = bytes;
	facts.machine_bytes = 64 * GIB;
	(void)snprintf(facts.cache_limit_name, sizeof facts.cache_limit_name, "memory.max");
	(void)snprintf(facts.cache_limit_group, sizeof facts.cache_limit_group, "/pod");
	return facts;
}

static void a_memory_limit_that_is_too_small(void **state)
{
	(void)state;
	static struct measurement m;
	struct point_facts facts = limited_memory(GIB * 3 / 4);
	read_bound_of_a_disk(&m);
	m.epochs = 2;
	const struct verdict v = judge(&m, &facts);
	assert_true(says(&v,
		"memory.max of cgroup /pod (768 MiB) is less than the data (1.00 GiB) and the program (256 MiB) need"));
	assert_true(says(&v, "keeps at most 50 % of the data"));
	static struct point_summary point = {
		.data_bytes = GIB, .epochs = 1, .page_cache_share = 0.4};
	char advice[EVIDENCE_BYTES];
	point.rss_peak_bytes = (uint64_t)(GIB / 4);
	assert_true(advice_of_limits(&point, &facts, "cache", advice, sizeof advice));
	assert_non_null(strstr(advice, "raise memory.max of cgroup /pod (768 MiB) to 1.25 GiB"));
	assert_null(strstr(advice, "this node's memory"));
	facts.machine_bytes = GIB;
	assert_true(advice_of_limits(&point, &facts, "cache", advice, sizeof advice));
	assert_non_null(strstr(advice, "more than this node's memory"));
}

/* It fits; nothing is read twice; the page cache serves all; or reads pass it by. */
static void a_memory_limit_that_does_not_matter(void **state)
{
	(void)state;
	static struct measurement m;
	for (int i = 0; i < 5; i++) {
		struct point_facts facts = limited_memory(i == 0 ? GIB * 2 : i == 1 ? 0 : GIB / 2);
		read_bound_of_a_disk(&m);
		m.epochs = i == 2 ? 0 : 3;
		m.page_cache_share = i == 3 ? 0.99 : 0.3;
		facts.reads_direct = i == 4;
		const struct verdict v = judge(&m, &facts);
		if (says(&v, "is less than the data"))
			fail_msg("case %d: %s", i, v.evidence[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_that_is_used_up),
		cmocka_unit_test(a_limit_that_does_not_hold),
		cmocka_unit_test(advice_of_a_limit_outranks_settings),
		cmocka_unit_test(repeats_under_other_limits_have_none),
		cmocka_unit_test(a_phase_has_its_own_use),
		cmocka_unit_test(the_mount_and_its_disk),
		cmocka_unit_test(a_memory_limit_that_is_too_small),
		cmocka_unit_test(a_memory_limit_that_does_not_matter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
