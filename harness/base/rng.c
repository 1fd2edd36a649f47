/* Random numbers as a function of (seed, stream). */
#include "harness/base/rng.h"

#include <math.h>

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint64_t rng_mix(uint64_t a, uint64_t b)
{
	uint64_t state = a;
	state = splitmix(&state) ^ b;
	return splitmix(&state);
}

void rng_init(struct rng *rng, uint64_t seed, uint64_t stream)
{
	uint64_t state = rng_mix(seed, stream);
	for (int i = 0; i < 4; i++)
		rng->state[i] = splitmix(&state);
}

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->state;
	const uint64_t result = rotl(s[1] * 5, 7) * 9;
	const uint64_t t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
	/* Rejection of the incomplete last interval keeps it unbiased. */
	const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
	uint64_t x;
	do
		x = rng_next(rng);
	while (x >= limit);
	return x % bound;
}

double rng_uniform(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}

double rng_normal(struct rng *rng)
{
	const double u = 1.0 - rng_uniform(rng);
	const double v = rng_uniform(rng);
	return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

double rng_exponential(struct rng *rng)
{
	return -log(1.0 - rng_uniform(rng));
}

void rng_permutation(struct rng *rng, uint32_t *order, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t j = (uint32_t)rng_below(rng, (uint64_t)i + 1);
		order[i] = order[j];
		order[j] = i;
	}
}
