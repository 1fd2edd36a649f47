/* Quantities: known values, refusals, and parse(format(x)) over random x. */
#include "harness/base/rng.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 20000 };

/* The seed of the random cases: SEED=n repeats a failure. */
static uint64_t test_seed(void)
{
	const char *text = getenv("SEED");
	const uint64_t seed = text ? strtoull(text, NULL, 10) : 20240611;
	print_message("seed %llu\n", (unsigned long long)seed);
	return seed;
}

struct case_unsigned {
	const char *text;
	int code;
	uint64_t value;
};

static void check_cases(
	int (*parse)(const char *, uint64_t *), const struct case_unsigned *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 0;
		const int code = parse(cases[i].text, &value);
		if (code != cases[i].code || value != cases[i].value)
			fail_msg("'%s' gave %d, %llu", cases[i].text, code,
				(unsigned long long)value);
	}
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void sizes(void **state)
{
	(void)state;
	static const struct case_unsigned cases[] = {
		{"0", 0, 0},
		{"4096", 0, 4096},
		{"64k", 0, 65536},
		{"64K", 0, 65536},
		{"64KiB", 0, 65536},
		{"64 KiB", 0, 65536},
		{" 64kiB ", 0, 65536},
		{" 64kib ", -EINVAL, 0},
		{"64kb", -EINVAL, 0},
		{"64b", -EINVAL, 0},
		{"1Gbit", -EINVAL, 0},
		{"64KB", 0, 64000},
		{"1.5M", 0, 1572864},
		{"1.5MB", 0, 1500000},
		{".5k", 0, 512},
		{"2G", 0, 2147483648ULL},
		{"1T", 0, 1099511627776ULL},
		{"1TB", 0, 1000000000000ULL},
		{"7B", 0, 7},
		{"1e3", 0, 1000},
		{"1.0001k", 0, 1024},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"16777216T", -ERANGE, 0},
		{"1e30", -ERANGE, 0},
		{"1e999999999999", -ERANGE, 0},
		{"1e-99", -EINVAL, 0},
		{"0.0001", -EINVAL, 0},
		{"", -EINVAL, 0},
		{" ", -EINVAL, 0},
		{".", -EINVAL, 0},
		{"k", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{"1 2", -EINVAL, 0},
		{"64q", -EINVAL, 0},
		{"64kk", -EINVAL, 0},
		{"1e", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"64k/s", -EINVAL, 0},
		{"nan", -EINVAL, 0},
		{"1.2.3", -EINVAL, 0},
	};
	check_cases(units_parse_size, cases, COUNT(cases));
}

static void durations(void **state)
{
	(void)state;
	static const struct case_unsigned cases[] = {
		{"3", 0, 3000000000ULL},
		{"0.25", 0, 250000000ULL},
		{"0", 0, 0},
		{"1.5ms", 0, 1500000},
		{"100 us", 0, 100000},
		{"0.000375s", 0, 375000},
		{"7ns", 0, 7},
		{"2m", 0, 120000000000ULL},
		{"2min", 0, 120000000000ULL},
		{"1.5h", 0, 5400000000000ULL},
		{"0.1ns", -EINVAL, 0},
		{"5124096h", -ERANGE, 0},
		{"3 sec", -EINVAL, 0},
		{"3ss", -EINVAL, 0},
		{"-3s", -EINVAL, 0},
		{"ms", -EINVAL, 0},
	};
	check_cases(units_parse_duration, cases, COUNT(cases));
}

static void rates(void **state)
{
	(void)state;
	static const struct case_unsigned cases[] = {
		{"2GiB/s", 0, 2147483648ULL},
		{"2GiB", 0, 2147483648ULL},
		{"100MB/s", 0, 100000000ULL},
		{"1.20 GiB/s ", 0, 1288490189ULL},
		{"512/s", 0, 512},
		{"0", 0, 0},
		{"2GiBps", 0, 2147483648ULL},
		{"2 GiB /s", 0, 2147483648ULL},
		{"10GB/s", 0, 10000000000ULL},
		{"10Gb/s", 0, 1250000000ULL},
		{"10gb/s", 0, 1250000000ULL},
		{"10Gbit/s", 0, 1250000000ULL},
		{"10GBit/s", 0, 1250000000ULL},
		{"10 Gbits/s", 0, 1250000000ULL},
		{"10Gbps", 0, 1250000000ULL},
		{"10Gbit", 0, 1250000000ULL},
		{"10Gb", 0, 1250000000ULL},
		{"1Gibit/s", 0, 134217728ULL},
		{"100Mbps", 0, 12500000ULL},
		{"64kb/s", 0, 8000ULL},
		{"8bit/s", 0, 1},
		{"12b/s", 0, 2},
		{"1bit/s", -EINVAL, 0},
		{"1e25b/s", -ERANGE, 0},
		{"10GBPS", -EINVAL, 0},
		{"10Gps", -EINVAL, 0},
		{"10Gbps/s", -EINVAL, 0},
		{"10xbit/s", -EINVAL, 0},
		{"/s", -EINVAL, 0},
		{"b/s", -EINVAL, 0},
		{"2GiB/m", -EINVAL, 0},
		{"2GiB/s/s", -EINVAL, 0},
	};
	check_cases(units_parse_rate, cases, COUNT(cases));
}

static void bits_are_no_size(void **state)
{
	(void)state;
	char out[UNITS_BYTES];
	assert_string_equal(units_bytes_for_bits("64kb", out), "64KB");
	assert_string_equal(units_bytes_for_bits("1.5 mbit", out), "1.5 MB");
	assert_string_equal(units_bytes_for_bits("4kib", out), "4KiB");
	assert_string_equal(units_bytes_for_bits("8bit", out), "8B");
	assert_null(units_bytes_for_bits("64kB", out));
	assert_null(units_bytes_for_bits("64", out));
	assert_null(units_bytes_for_bits("64qb", out));
	assert_true(units_bit_rate("Gb/s", 4) == 125e6);
	assert_true(units_bit_rate("Gb", 2) == 0);
	assert_true(units_bit_rate("GB/s", 4) == 0);
}

static void integers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int code;
		int64_t value;
	} cases[] = {
		{"0", 0, 0},
		{"-7", 0, -7},
		{"+7", 0, 7},
		{"50k", 0, 50000},
		{"1.5k", 0, 1500},
		{"2M", 0, 2000000},
		{"1e6", 0, 1000000},
		{"9223372036854775807", 0, INT64_MAX},
		{"9223372036854775808", -ERANGE, 0},
		{"1.5", -EINVAL, 0},
		{"1.0001k", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1,000", -EINVAL, 0},
		{"--1", -EINVAL, 0},
		{"12 monkeys", -EINVAL, 0},
		{"1m", -EINVAL, 0},
		{"", -EINVAL, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t value = 0;
		const int code = units_parse_integer(cases[i].text, &value);
		if (code != cases[i].code || value != cases[i].value)
			fail_msg("'%s' gave %d, %lld", cases[i].text, code, (long long)value);
	}
}

static void reals_and_shares(void **state)
{
	(void)state;
	double value = -1;
	assert_int_equal(units_parse_real("-1.25e2", &value), 0);
	assert_true(value == -125.0);
	assert_int_equal(units_parse_share("90%", &value), 0);
	assert_true(value == 0.9);
	assert_int_equal(units_parse_share(" 0.125 ", &value), 0);
	assert_true(value == 0.125);
	assert_int_equal(units_parse_share("12.5 %", &value), 0);
	assert_true(value == 0.125);
	static const char *const wrong[] = {
		"", "nan", "inf", "0x1p3", "1.2x", "%", "90%%", "e5", "infinity"};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(units_parse_real(wrong[i], &value), -EINVAL);
		assert_int_equal(units_parse_share(wrong[i], &value), -EINVAL);
	}
	assert_int_equal(units_parse_real("1e999", &value), -ERANGE);
	assert_int_equal(units_parse_real("90%", &value), -EINVAL);
	assert_true(value == 0.125);
}

static void formats_for_people(void **state)
{
	(void)state;
	char out[UNITS_BYTES];
	assert_string_equal(units_format_size(0, out), "0 B");
	assert_string_equal(units_format_size(512, out), "512 B");
	assert_string_equal(units_format_size(1023, out), "1023 B");
	assert_string_equal(units_format_size(1024, out), "1.00 KiB");
	assert_string_equal(units_format_size(99719577.6, out), "95.1 MiB");
	assert_string_equal(units_format_size(1048575, out), "1.00 MiB");
	assert_string_equal(units_format_size(-2048, out), "-2.00 KiB");
	assert_string_equal(units_format_size(NAN, out), "n/a");
	assert_string_equal(units_format_rate(1288490189, out), "1.20 GiB/s");
	assert_string_equal(units_format_duration(0, out), "0 ns");
	assert_string_equal(units_format_duration(7, out), "7 ns");
	assert_string_equal(units_format_duration(22.53, out), "22.5 ns");
	assert_string_equal(units_format_duration(375000, out), "375 us");
	assert_string_equal(units_format_duration(1500000, out), "1.50 ms");
	assert_string_equal(units_format_duration(999600, out), "1.00 ms");
	assert_string_equal(units_format_duration(125e9, out), "2.08 min");
	assert_string_equal(units_format_duration(5400e9, out), "1.50 h");
	assert_string_equal(units_format_share(0.9714, out), "97.1%");
	assert_string_equal(units_format_share(1, out), "100%");
	assert_string_equal(units_format_share(0, out), "0%");
	assert_string_equal(units_or_dash(units_format_share, 0.9714, out), "97.1%");
	assert_string_equal(units_or_dash(units_format_count, (double)NAN, out), "-");
	assert_string_equal(units_or_dash(units_format_duration, (double)INFINITY, out), "n/a");
	assert_string_equal(units_format_share(0.0523, out), "5.23%");
	assert_string_equal(units_format_count(0, out), "0");
	assert_string_equal(units_format_count(1786, out), "1,786");
	assert_string_equal(units_format_count(1786.4, out), "1,786");
	assert_string_equal(units_format_count(-1005, out), "-1,005");
	assert_string_equal(units_format_count(999999.6, out), "1.00 M");
	assert_string_equal(units_format_count(1523456, out), "1.52 M");
	assert_string_equal(units_format_count(2.5e9, out), "2.50 G");
	assert_string_equal(units_format_count(12.345, out), "12.3");
	assert_string_equal(units_format_count(3, out), "3");
}

static void plain_figures_have_no_exponent(void **state)
{
	(void)state;
	char out[UNITS_BYTES];
	assert_string_equal(units_format_plain(112.3, 2, out), "110");
	assert_string_equal(units_format_plain(1.149, 2, out), "1.1");
	assert_string_equal(units_format_plain(99.6, 2, out), "100");
	assert_string_equal(units_format_plain(9.96, 2, out), "10");
	assert_string_equal(units_format_plain(100, 2, out), "100");
	assert_string_equal(units_format_plain(1234.5, 3, out), "1,230");
	assert_string_equal(units_format_plain(999.6, 3, out), "1,000");
	assert_string_equal(units_format_plain(-45678, 2, out), "-46,000");
	assert_string_equal(units_format_plain(3.4e6, 2, out), "3.40 M");
	assert_string_equal(units_format_plain(0.1234, 2, out), "0.12");
	assert_string_equal(units_format_plain(0.00001234, 3, out), "0.0000123");
	assert_string_equal(units_format_plain(2.50, 3, out), "2.5");
	assert_string_equal(units_format_plain(0.5, 1, out), "0.5");
	assert_string_equal(units_format_plain(0, 3, out), "0");
	assert_string_equal(units_format_plain(NAN, 3, out), "n/a");
	assert_string_equal(UNITS_PLAIN(1536, 2), "1,500");
}

static void exact_prints(void **state)
{
	(void)state;
	char out[UNITS_BYTES];
	assert_string_equal(units_print_size(0, out), "0");
	assert_string_equal(units_print_size(65536, out), "64KiB");
	assert_string_equal(units_print_size(65537, out), "65537");
	assert_string_equal(units_print_size(1ULL << 40, out), "1TiB");
	assert_string_equal(units_print_duration(0, out), "0");
	assert_string_equal(units_print_duration(3000000000ULL, out), "3s");
	assert_string_equal(units_print_duration(1500000, out), "1500us");
	assert_string_equal(units_print_duration(7, out), "7ns");
	assert_string_equal(units_print_duration(7200000000000ULL, out), "2h");
}

/* A random magnitude, so that every unit comes up. */
static uint64_t random_value(struct rng *rng)
{
	const uint64_t value = rng_next(rng) >> rng_below(rng, 64);
	return rng_below(rng, 2) ? value : value / 1024 * 1024;
}

static void exact_prints_are_read_back(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, test_seed(), 0);
	for (int i = 0; i < ROUNDS; i++) {
		char out[UNITS_BYTES];
		uint64_t again;
		const uint64_t value = random_value(&rng);
		assert_int_equal(units_parse_size(units_print_size(value, out), &again), 0);
		assert_true(again == value);
		assert_int_equal(units_parse_rate(out, &again), 0);
		assert_true(again == value);
		assert_int_equal(units_parse_duration(units_print_duration(value, out), &again), 0);
		assert_true(again == value);
	}
}

static void assert_near(double value, double again)
{
	/* Three digits: half a unit of the third, at worst of 1.00. */
	if (fabs(value - again) > 0.00501 * fabs(value))
		fail_msg("%.17g came back as %.17g", value, again);
}

static void formats_are_read_back(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, test_seed(), 1);
	for (int i = 0; i < ROUNDS; i++) {
		char out[UNITS_BYTES];
		uint64_t again = 0;
		double share = 0;
		const double value = (double)(rng_next(&rng) >> (4 + rng_below(&rng, 60)));
		assert_int_equal(units_parse_size(units_format_size(value, out), &again), 0);
		assert_near(value, (double)again);
		assert_int_equal(units_parse_rate(units_format_rate(value, out), &again), 0);
		assert_near(value, (double)again);
		assert_int_equal(
			units_parse_duration(units_format_duration(value, out), &again), 0);
		assert_near(value, (double)again);
		const double part = 0.01 + 0.99 * rng_uniform(&rng);
		assert_int_equal(units_parse_share(units_format_share(part, out), &share), 0);
		assert_near(part, share);
	}
}

/* Whatever the bytes are, a parser ends and leaves the value alone when it refuses. */
static void noise_is_refused_or_read(void **state)
{
	(void)state;
	static const char letters[] = "0123456789.eE+-kKMGTiBsmnuh%/ \t";
	struct rng rng;
	rng_init(&rng, test_seed(), 2);
	int read = 0;
	for (int i = 0; i < ROUNDS; i++) {
		char text[12] = {0};
		const uint64_t size = rng_below(&rng, sizeof text);
		for (uint64_t c = 0; c < size; c++)
			text[c] = letters[rng_below(&rng, sizeof letters - 1)];
		uint64_t value = 42;
		const int code = units_parse_size(text, &value);
		assert_true(code == 0 || (value == 42 && (code == -EINVAL || code == -ERANGE)));
		read += code == 0;
		int64_t number = 42;
		assert_true(units_parse_integer(text, &number) == 0 || number == 42);
		double real = 42;
		assert_true(units_parse_real(text, &real) == 0 || real == 42.0);
	}
	assert_true(read > 0 && read < ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(durations),
		cmocka_unit_test(rates),
		cmocka_unit_test(bits_are_no_size),
		cmocka_unit_test(integers),
		cmocka_unit_test(reals_and_shares),
		cmocka_unit_test(formats_for_people),
		cmocka_unit_test(plain_figures_have_no_exponent),
		cmocka_unit_test(exact_prints),
		cmocka_unit_test(exact_prints_are_read_back),
		cmocka_unit_test(formats_are_read_back),
		cmocka_unit_test(noise_is_refused_or_read),
	};
	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
