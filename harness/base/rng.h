/* Random numbers that are a function of (seed, stream): the same everywhere, whatever the
 * number of threads.  Generators: splitmix64 to seed (Steele, Lea, Flood 2014) and
 * xoshiro256** (Blackman, Vigna 2018). */
#ifndef MLBENCH_BASE_RNG_H
#define MLBENCH_BASE_RNG_H

#include <stdint.h>

struct rng {
	uint64_t state[4];
};

/* A generator for item `stream` of `seed`; different pairs give independent sequences. */
void rng_init(struct rng *rng, uint64_t seed, uint64_t stream);

uint64_t rng_next(struct rng *rng);
/* Uniform in [0, bound), bound > 0, unbiased. */
uint64_t rng_below(struct rng *rng, uint64_t bound);
double rng_uniform(struct rng *rng);     /* [0, 1), 53 bits */
double rng_normal(struct rng *rng);      /* mean 0, deviation 1 (Box-Muller) */
double rng_exponential(struct rng *rng); /* mean 1 */

/* A random order of 0 .. count-1 (Fisher-Yates), written to order. */
void rng_permutation(struct rng *rng, uint32_t *order, uint32_t count);

/* One well-mixed word from two: for per-item seeds. */
uint64_t rng_mix(uint64_t a, uint64_t b);

#endif
