/* Quantities as people write them: parse and format are pairs, and parse(format(x)) is x to the
 * printed precision.  Sizes: k M G T and KiB MiB GiB TiB are powers of 1024 (as in fio); KB MB GB TB
 * are powers of 1000.  Durations: ns us ms s m h.  Rates: a size with "/s", or bits: Gbit/s, Gb/s and
 * Gbps are powers of 1000, Gibit/s of 1024.  Case matters for B (bytes) and b (bits) alone.  Shares:
 * 0.9 or 90%. */
#ifndef MLBENCH_BASE_UNITS_H
#define MLBENCH_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* Each returns 0, or -EINVAL when text is not wholly such a quantity, -ERANGE when it overflows. */
int units_parse_size(const char *text, uint64_t *bytes);
int units_parse_duration(const char *text, uint64_t *ns);      /* a bare number is seconds */
int units_parse_rate(const char *text, uint64_t *bytes_per_s); /* "2GiB/s", "2GiB", "10Gbit/s" */
int units_parse_share(const char *text, double *share);
int units_parse_integer(const char *text, int64_t *value); /* k M G suffixes: powers of 1000 */
int units_parse_real(const char *text, double *value);

enum { UNITS_BYTES = 32 };

/* Bytes per second of a unit of bits per second ("Gbit/s", "kb/s", "Mbps"); 0 if it is none. */
double units_bit_rate(const char *unit, size_t size);

/* The size that text would be if it did not name bits: "64KB" for "64kb".  NULL: it names none. */
const char *units_bytes_for_bits(const char *text, char out[UNITS_BYTES]);

/* For people, three significant digits: "97.3 KB"-like columns. Each returns out. */
const char *units_format_size(double bytes, char out[UNITS_BYTES]);       /* "95.1 MiB" */
const char *units_format_duration(double ns, char out[UNITS_BYTES]);      /* "375 us", "1.50 ms" */
const char *units_format_rate(double bytes_per_s, char out[UNITS_BYTES]); /* "1.20 GiB/s" */
const char *units_format_share(double share, char out[UNITS_BYTES]);      /* "97.1%" */
const char *units_format_count(double count, char out[UNITS_BYTES]);      /* "1,786", "1.52 M" */

/* A bare number of so many significant digits without an exponent: "0.012", "110", "1,230"; what
 * a person is told is never "1.1e+02".  UNITS_PLAIN has room for it until its block ends. */
const char *units_format_plain(double value, int digits, char out[UNITS_BYTES]);
#define UNITS_PLAIN(value, digits) units_format_plain(value, digits, (char[UNITS_BYTES]){0})

/* One of them, for the cell of a table: "-" for what is not known (NAN).  Returns out. */
typedef const char *units_formatter(double value, char out[UNITS_BYTES]);
const char *units_or_dash(units_formatter *format, double value, char out[UNITS_BYTES]);

/* Exact, for files that are read again: "64KiB" if whole, else "65537". Each returns out. */
const char *units_print_size(uint64_t bytes, char out[UNITS_BYTES]);
const char *units_print_duration(uint64_t ns, char out[UNITS_BYTES]);

#endif
