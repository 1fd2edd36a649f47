/* A station fitted to several operating points, on simulated stores whose limit is known: whether it is full is told rightly and
 * surely where points tell, and not at all where there is one point. */
#include "harness/analyze/storage.h"

#include "tests/unit/storage_fixture.h"

enum { SEEDS = 12 };

struct told {
	struct storage at[SEEDS];
	double right, sure_and_wrong; /* shares */
};

static struct storage fit(const struct store *s)
{
	static struct measurement m[STORE_REPEATS];
	static struct traces t[STORE_REPEATS];
	const struct measurement *repeats[STORE_REPEATS];
	const struct traces *traces[STORE_REPEATS];
	struct storage out;
	for (size_t r = 0; r < STORE_REPEATS; r++) {
		store_repeat(s, r, 16, &m[r], &t[r]);
		repeats[r] = &m[r];
		traces[r] = &t[r];
	}
	const struct storage_evidence evidence = {
		.repeats = repeats, .traces = traces, .count = STORE_REPEATS};
	storage_fit(&evidence, &out);
	for (size_t r = 0; r < STORE_REPEATS; r++) {
		measurement_release(&m[r]);
		traces_release(&t[r]);
	}
	return out;
}

struct named_store {
	const char *name;
	struct store store;
	bool full;
	enum storage_kind kind;
};

static void describe(const struct named_store *n, const struct storage *s)
{
	static const char *const kinds[] = {"unclear", "bytes", "requests", "slots"};
	print_message("%-34s p %.3f rate %.0f in flight %.1f ratio %.2f at %.1f ramp %.2f; L %.2f ms [%.2f %.2f] C %.0f [%.0f %.0f]%s C L %.2f, %s %.2f, bytes %.2f +- %.2f\n",
		n->name, s->full, s->rate, s->in_flight, s->ratio, s->other_in_flight, s->ramp_ratio,
		s->latency_ns / 1e6, s->latency_90.low / 1e6, s->latency_90.high / 1e6, s->capacity,
		s->capacity_90.low, s->capacity_90.high, s->capacity_seen ? "" : " not seen", s->slots,
		kinds[s->kind], s->kind_certainty, s->bytes_share, s->bytes_error);
}

static void stores_are_told(void **state)
{
	(void)state;
	static const struct named_store cases[] = {
		{"latency", {.latency_ms = 4, .depth = 8, .bytes_cv = 0.5}, false, 0},
		{"latency, exponential", {.latency_ms = 4, .exponential = true, .depth = 8, .bytes_cv = 0.5}, false, 0},
		{"latency, long tail", {.latency_ms = 4, .latency_cv = 2, .depth = 8, .bytes_cv = 0.5}, false, 0},
		{"latency, depth 1", {.latency_ms = 4, .depth = 1}, false, 0},
		{"latency, depth 32, cold first", {.latency_ms = 4, .depth = 32, .cold_ms = 300}, false, 0},
		{"latency, a third cached", {.latency_ms = 4, .latency_cv = 0.2, .depth = 8, .hit_share = 0.35}, false, 0},
		{"latency, knee at 4 times", {.latency_ms = 4, .latency_cv = 0.3, .slots = 32, .depth = 8, .bytes_cv = 0.5}, false, 0},
		{"1 slot", {.latency_ms = 4, .slots = 1, .depth = 8, .bytes_cv = 0.5}, true, STORAGE_SLOTS},
		{"2 slots", {.latency_ms = 4, .slots = 2, .depth = 8, .latency_cv = 0.1, .bytes_cv = 0.5}, true, STORAGE_SLOTS},
		{"4 slots", {.latency_ms = 4, .slots = 4, .depth = 16, .latency_cv = 0.3, .bytes_cv = 0.5}, true, STORAGE_SLOTS},
		{"4 slots, exponential", {.latency_ms = 4, .slots = 4, .depth = 16, .exponential = true, .bytes_cv = 0.5}, true, STORAGE_SLOTS},
		{"1 slot, depth 1", {.latency_ms = 4, .slots = 1, .depth = 1}, true, 0},
		{"1 slot, alike sizes", {.latency_ms = 4, .slots = 1, .depth = 4}, true, 0},
		{"link", {.latency_ms = 1, .bytes_per_s = 2e7, .depth = 8, .bytes_cv = 0.5}, true, STORAGE_BYTES},
		{"link, shared", {.latency_ms = 1, .bytes_per_s = 2e7, .shared = true, .depth = 8, .bytes_cv = 0.5}, true, STORAGE_BYTES},
		{"link, two sizes", {.latency_ms = 1, .bytes_per_s = 2e7, .depth = 8, .small_share = 0.5}, true, STORAGE_BYTES},
		{"requests, even", {.latency_ms = 0.2, .requests_per_s = 500, .depth = 8, .bytes_cv = 0.5}, true, STORAGE_REQUESTS},
		{"requests in slices", {.latency_ms = 0.2, .requests_per_s = 500, .slice_s = 0.1, .depth = 8, .bytes_cv = 0.5}, true, 0},
		{"requests, a burst saved", {.latency_ms = 4, .requests_per_s = 400, .saved = 100, .depth = 8, .bytes_cv = 0.5}, true, 0},
	};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		unsigned right = 0, sure_wrong = 0, kinds = 0;
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct store store = cases[c].store;
			store.seed = seed;
			const struct storage s = fit(&store);
			if (seed == 0)
				describe(&cases[c], &s);
			const double p = cases[c].full ? s.full : 1 - s.full;
			right += p > 0.6;
			sure_wrong += p < 0.2;
			kinds += s.kind == cases[c].kind;
		}
		print_message("%-34s right %u wrong %u kind %u of %d\n", cases[c].name, right, sure_wrong, kinds, SEEDS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(stores_are_told)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
