/* All formats are a sign, an exponent and a fraction, so one function serves them. */
#include "workloads/backend/cuda/probe_formats.h"

#include "harness/base/rng.h"

#include <math.h>
#include <string.h>

enum { EXPONENTS = 4, BYTE_BITS = 8 };

struct format {
	unsigned bytes, fraction_bits, exponent_bits;
	int bias;
};

static struct format probe_formats_format_of(enum element type)
{
	switch (type) {
	case ELEMENT_BF16:
		return (struct format){2, 7, 8, 127};
	case ELEMENT_F16:
		return (struct format){2, 10, 5, 15};
	case ELEMENT_E4M3:
		return (struct format){1, 3, 4, 7};
	case ELEMENT_E5M2:
		return (struct format){1, 2, 5, 15};
	case ELEMENT_F32:
	default:
		return (struct format){4, 23, 8, 127};
	}
}

void formats_fill(enum element type, void *elements, size_t count)
{
	const struct format format = probe_formats_format_of(type);
	struct rng rng;
	rng_init(&rng, (uint64_t)type, count);
	for (size_t i = 0; i < count; i++) {
		const uint64_t random = rng_next(&rng);
		const uint32_t fraction =
			(uint32_t)(random >> 8) & ((1U << format.fraction_bits) - 1);
		const uint32_t exponent =
			(uint32_t)format.bias - 1 - (uint32_t)(random % EXPONENTS);
		const uint32_t sign = (uint32_t)(random >> 63) << (BYTE_BITS * format.bytes - 1);
		const uint32_t bits = sign | exponent << format.fraction_bits | fraction;
		memcpy((char *)elements + i * format.bytes, &bits,
			format.bytes); /* little-endian */
	}
}

double formats_value(enum element type, const void *elements, size_t index)
{
	const struct format format = probe_formats_format_of(type);
	uint32_t bits = 0;
	memcpy(&bits, (const char *)elements + index * format.bytes, format.bytes);
	const uint32_t most = (1U << format.exponent_bits) - 1;
	const uint32_t fraction = bits & ((1U << format.fraction_bits) - 1);
	const uint32_t exponent = bits >> format.fraction_bits & most;
	const double sign = bits >> (BYTE_BITS * format.bytes - 1) & 1 ? -1 : 1;
	const double part = ldexp((double)fraction, -(int)format.fraction_bits);
	if (exponent == 0)
		return sign * ldexp(part, 1 - format.bias);
	if (exponent == most && type != ELEMENT_E4M3) /* which has no infinities */
		return fraction ? NAN : sign * INFINITY;
	if (exponent == most && fraction == (1U << format.fraction_bits) - 1)
		return NAN;
	return sign * ldexp(1 + part, (int)exponent - format.bias);
}
