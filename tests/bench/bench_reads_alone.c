/* How often reads alone (harness/analyze/reads_alone.h) tell a slow store from a full one, by simulation: stores drawn at random,
 * whose limit is therefore known.
 *
 *	build/release/bench/bench_reads_alone [SERIES]      10,000 of each kind unless given
 *
 * Right, wrong and untold (probability between 0.35 and 0.65) are those of the fit to the blocks of one experiment and one
 * repetition; sure and wrong: wrong at 0.9 or more.  Slow stores have servers for 2.6 to 8 times the files in flight, full ones for at
 * most a 1.3th of them.  Ageing: each block 5 to 25 % slower than the one before. */
#include "harness/analyze/storage_capacity.h"

#include "tests/unit/storage_fixture.h"

static double between(struct rng *rng, double low, double high)
{
	return low * pow(high / low, rng_uniform(rng));
}

enum kind {
	SLOW,
	SLOW_UNEVEN,
	SLOW_AGEING,
	FULL_SLOTS,
	FULL_IOPS,
	FULL_BYTES,
	FULL_CREDIT,
	FULL_AGEING,
	KINDS
};

static const char *const kind_names[KINDS] = {"slow", "slow, uneven (CV 1)", "slow, ageing",
	"full of slots", "full of requests", "full of bytes", "full, with a burst of credit",
	"full of slots, ageing"};

static struct store draw(enum kind kind, struct rng *rng, double *ages_ms)
{
	static const unsigned depths[] = {2, 4, 8, 16};
	struct store s = {.latency_ms = between(rng, 0.5, 20),
		.latency_cv = between(rng, 0.05, 0.5),
		.depth = depths[rng_below(rng, 4)],
		.bytes_mean = 1e5,
		.bytes_cv = between(rng, 0.1, 2),
		.block_files = 50, /* as a run has */
		.one_point = true};
	const double latency_s = s.latency_ms / 1e3;
	/* Behind one server that takes S for a file, N give N / (L + S) or 1 / S: full where N / (L + S) is 1.1 times 1 / S or more. */
	const double each_s = 1.1 * latency_s / (s.depth - 1.1) * between(rng, 1.1, 8);
	*ages_ms = 0;
	s.exponential = kind == SLOW_UNEVEN;
	if (kind == SLOW_AGEING || kind == FULL_AGEING)
		*ages_ms = s.latency_ms * between(rng, 0.05, 0.25);
	if (kind <= SLOW_AGEING)
		s.slots = (unsigned)fmin(ceil(s.depth * between(rng, 2.6, 8)), STORE_JOBS_MAX);
	else if (kind == FULL_SLOTS || kind == FULL_AGEING)
		s.slots = (unsigned)fmax(floor(s.depth / between(rng, 1.3, 8)), 1);
	else if (kind == FULL_BYTES)
		s.bytes_per_s = s.bytes_mean / each_s;
	else
		s.requests_per_s = 1 / each_s;
	if (kind == FULL_CREDIT)
		s.saved = between(rng, 1, 4 * s.depth);
	return s;
}

static double full_of(const struct store *s, double ages_ms)
{
	struct read_block blocks[STORE_ALONE_BLOCKS];
	const size_t count = store_alone(s, ages_ms, blocks);
	return store_fit_alone(s, blocks, count).full;
}

int main(int argc, char **argv)
{
	const unsigned long series = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
	printf("%-32s %8s %8s %8s %15s\n", "store", "right", "untold", "wrong", "sure and wrong");
	for (int kind = 0; kind < KINDS; kind++) {
		unsigned long right = 0, untold = 0, wrong = 0, sure = 0;
		for (unsigned long i = 0; i < series; i++) {
			struct rng rng;
			double ages_ms;
			rng_init(&rng, 20261129 + (uint64_t)kind, i);
			const struct store s = draw((enum kind)kind, &rng, &ages_ms);
			const double full = full_of(&s, ages_ms);
			const double truth = kind > SLOW_AGEING ? full : 1 - full;
			right += truth > 0.5 + STORAGE_TOLD;
			untold += fabs(truth - 0.5) <= STORAGE_TOLD;
			wrong += truth < 0.5 - STORAGE_TOLD;
			sure += truth <= 0.1;
		}
		const double share = 100.0 / (double)series;
		printf("%-32s %7.2f%% %7.2f%% %7.2f%% %14.2f%%\n", kind_names[kind],
			share * (double)right, share * (double)untold, share * (double)wrong,
			share * (double)sure);
	}
	return 0;
}
