/* Strata of a picture data set as text, and back. */
#include "harness/config/like.h"

#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/config/tables.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LIKE_EDGE_MAX = 65500,
	LIKE_PIXEL_BYTES_MAX = 4, /* of a file: no picture compresses to more */
	LIKE_OTHER_BYTES = 65536,
	LIKE_TOKEN_BYTES = 48,
};
static const double LIKE_PIXELS_MAX = 64e6; /* what the decoders take */
static const double LIKE_EDGE_SIGMA_MAX = 1, LIKE_BYTES_SIGMA_MAX = 2;
static const double LIKE_SHARES_MISS = 0.01;
static const double LIKE_HEADER_LEAST = 2048; /* less is in every file, and not written */

/* The formats that gen writes. */
#define CODEC_READS(name)
#define CODEC_WRITES(name) #name,
#define CODEC(id, name, use) CODEC_##use(name)
static const char *const like_formats[] = {
#include "harness/config/codecs.def"
};
#undef CODEC
#undef CODEC_WRITES
#undef CODEC_READS

static const char *const like_jpeg_layouts[] = {
	"420", "422", "444", "440", "411", "410", "gray", "cmyk", "other"};
static const char *const like_png_layouts[] = {"rgb", "rgba", "gray", "graya", "gray16", "palette"};

/* What else may be said of a format. */
static const struct like_words {
	const char *const *layouts;
	size_t layout_count;
	bool lossy; /* has a quality, and may be progressive */
} like_words[COUNT(like_formats)] = {
	[DATASET_FORMAT_JPEG] = {like_jpeg_layouts, COUNT(like_jpeg_layouts), true},
	[DATASET_FORMAT_PNG] = {like_png_layouts, COUNT(like_png_layouts), false},
};

int like_format(const struct like_stratum *stratum)
{
	for (size_t i = 0; i < COUNT(like_formats); i++)
		if (strcmp(stratum->format, like_formats[i]) == 0)
			return (int)i;
	return -1;
}

static bool like_has_layout(const struct like_words *words, const char *layout)
{
	for (size_t i = 0; i < words->layout_count; i++)
		if (strcmp(layout, words->layouts[i]) == 0)
			return true;
	return false;
}

double like_mean_exp(double sigma)
{
	const double root = sqrt(2);
	const double tail = erfc(LIKE_DEVIATIONS / root) / 2;
	const double above = erfc((LIKE_DEVIATIONS - sigma) / root) / 2;
	const double below = erfc((LIKE_DEVIATIONS + sigma) / root) / 2;
	return exp(sigma * sigma / 2) * (1 - above - below) +
	       tail * (exp(sigma * LIKE_DEVIATIONS) + exp(-sigma * LIKE_DEVIATIONS));
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The words of one stratum. */
struct like_reading {
	const char *at, *end;
	char word[LIKE_TOKEN_BYTES]; /* the next one; "": none is left */
	struct like_stratum *stratum;
};

static int like_refuse(const struct like_reading *reading, struct error *err, const char *wanted)
{
	return error_set(err, -EINVAL, "%s expected, not '%s'", wanted,
		*reading->word ? reading->word : "the end");
}

static int like_next(struct like_reading *reading, struct error *err)
{
	reading->at += strspn(reading->at, " \t");
	const size_t length = reading->at < reading->end ? strcspn(reading->at, " \t,;") : 0;
	if (length >= sizeof reading->word)
		return error_set(err, -EINVAL, "'%.40s...' is too long", reading->at);
	memcpy(reading->word, reading->at, length);
	reading->word[length] = '\0';
	reading->at += length;
	return 0;
}

/* Cuts "~0.15" off the word: 0 without it.  False: it is no number up to most. */
static bool like_cut_sigma(char *word, double most, double *sigma)
{
	char *const tilde = strchr(word, '~');
	*sigma = 0;
	if (!tilde)
		return true;
	*tilde = '\0';
	return units_parse_real(tilde + 1, sigma) == 0 && *sigma >= 0 && *sigma <= most;
}

static bool like_read_edge(const char *text, unsigned *edge)
{
	int64_t value;
	if (units_parse_integer(text, &value) || value < 1 || value > LIKE_EDGE_MAX)
		return false;
	*edge = (unsigned)value;
	return true;
}

static int like_read_format(struct like_reading *reading, struct error *err)
{
	struct like_stratum *const stratum = reading->stratum;
	const int code = like_next(reading, err);
	if (code)
		return code;
	(void)snprintf(stratum->format, sizeof stratum->format, "%.7s", reading->word);
	if (strlen(reading->word) < sizeof stratum->format && like_format(stratum) >= 0)
		return 0;
	const char *const nearest =
		suggest_nearest(reading->word, like_formats, COUNT(like_formats));
	return nearest ? error_set(err, -EINVAL,
				 "'%s' is no format that can be generated; did you mean '%s'?",
				 reading->word, nearest)
		       : like_refuse(reading, err, "a format that can be generated (jpeg)");
}

static int like_read_edges(struct like_reading *reading, struct error *err)
{
	static const char wanted[] =
		"width x height up to 65500 and 64 million pixels (500x375~0.15)";
	struct like_stratum *const stratum = reading->stratum;
	char whole[LIKE_TOKEN_BYTES];
	const int code = like_next(reading, err);
	if (code)
		return code;
	memcpy(whole, reading->word, sizeof whole);
	char *const x = strchr(whole, 'x');
	bool right = x && like_cut_sigma(x, LIKE_EDGE_SIGMA_MAX, &stratum->edge_sigma);
	if (right) {
		*x = '\0';
		right = like_read_edge(whole, &stratum->width) &&
			like_read_edge(x + 1, &stratum->height) &&
			(double)stratum->width * stratum->height <= LIKE_PIXELS_MAX;
	}
	return right ? 0 : like_refuse(reading, err, wanted);
}

/* Words that need not be there; behind them, the next word is read already. */
static int like_read_layout(struct like_reading *reading, struct error *err)
{
	struct like_stratum *const stratum = reading->stratum;
	const struct like_words *const words = &like_words[like_format(stratum)];
	int code = like_next(reading, err);
	if (!code && like_has_layout(words, reading->word)) {
		(void)snprintf(
			stratum->subsampling, sizeof stratum->subsampling, "%.7s", reading->word);
		code = like_next(reading, err);
	}
	if (!code && words->lossy && strcmp(reading->word, "progressive") == 0) {
		stratum->progressive = true;
		code = like_next(reading, err);
	}
	if (code || !words->lossy || *reading->word != 'q')
		return code;
	int64_t quality;
	if (units_parse_integer(reading->word + 1, &quality) || quality < 1 || quality > 100)
		return like_refuse(reading, err, "a quality q1 to q100");
	stratum->quality = (unsigned)quality;
	return like_next(reading, err);
}

/* The word is read already: SIZE[~S][+HEAD]. */
static int like_read_bytes(struct like_reading *reading, struct error *err)
{
	static const char wanted[] = "a layout of its format or a mean file size (110KB~0.3)";
	struct like_stratum *const stratum = reading->stratum;
	const double most = LIKE_PIXEL_BYTES_MAX * (double)stratum->width * stratum->height;
	char whole[LIKE_TOKEN_BYTES];
	uint64_t bytes = 0, header = 0;
	memcpy(whole, reading->word, sizeof whole);
	char *const plus = strchr(whole, '+');
	if (plus)
		*plus = '\0';
	if (!like_cut_sigma(whole, LIKE_BYTES_SIGMA_MAX, &stratum->bytes_sigma) ||
		units_parse_size(whole, &bytes) || bytes == 0 ||
		(plus && (!like_words[like_format(stratum)].lossy ||
				 units_parse_size(plus + 1, &header))))
		return like_refuse(reading, err, wanted);
	if (header >= bytes || (double)(bytes - header) > most + LIKE_OTHER_BYTES)
		return error_set(err, -EINVAL, "a picture of %u x %u does not have '%s'",
			stratum->width, stratum->height, reading->word);
	stratum->bytes = (double)bytes;
	stratum->header = (double)header;
	return 0;
}

static int like_read_share(struct like_reading *reading, struct error *err)
{
	int code = like_next(reading, err);
	if (code)
		return code;
	const size_t length = strlen(reading->word);
	if (length == 0 || reading->word[length - 1] != '%' ||
		units_parse_share(reading->word, &reading->stratum->share) ||
		!(reading->stratum->share > 0 && reading->stratum->share <= 1))
		return like_refuse(reading, err, "a share of the files (92%)");
	code = like_next(reading, err);
	return code || !*reading->word ? code : like_refuse(reading, err, "a comma");
}

static int like_read_stratum(struct like_reading *reading, struct error *err)
{
	int code = like_read_format(reading, err);
	if (!code)
		code = like_read_edges(reading, err);
	if (!code)
		code = like_read_layout(reading, err);
	if (!code)
		code = like_read_bytes(reading, err);
	return code ? code : like_read_share(reading, err);
}

int like_parse(const char *text, struct like_stratum out[LIKE_STRATA_MAX], size_t *count,
	struct error *err)
{
	double shares = 0;
	*count = 0;
	for (const char *at = text; *at || *count == 0;) {
		const char *const end = at + strcspn(at, ",;");
		if (*count == LIKE_STRATA_MAX)
			return error_set(
				err, -EINVAL, "more than %d kinds of files", LIKE_STRATA_MAX);
		struct like_reading reading = {.at = at, .end = end, .stratum = &out[*count]};
		out[*count] = (struct like_stratum){0};
		const int code = like_read_stratum(&reading, err);
		if (code)
			return error_prefix(err, code, "kind of files %zu", *count + 1);
		shares += out[(*count)++].share;
		at = end + (*end != '\0');
	}
	if (!(fabs(shares - 1) <= LIKE_SHARES_MISS))
		return error_set(err, -EINVAL, "the shares come to %s %%, not to 100 %%",
			UNITS_PLAIN(100 * shares, 4));
	for (size_t i = 0; i < *count; i++)
		out[i].share /= shares;
	return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Four digits: "110.5KB". */
static void like_write_size(double bytes, struct buffer *out)
{
	static const char *const units[] = {"", "KB", "MB", "GB"};
	size_t unit = 0;
	double value = round(bytes);
	while (value >= 1000 && unit + 1 < COUNT(units)) {
		value /= 1000;
		unit++;
	}
	buffer_format(out, value < 999.95 ? "%.4g%s" : "%.0f%s", value, units[unit]);
}

static void like_write_stratum(const struct like_stratum *s, double share, struct buffer *out)
{
	buffer_format(out, "%s %ux%u", s->format, s->width, s->height);
	if (s->edge_sigma >= 0.0005)
		buffer_format(out, "~%.3f", s->edge_sigma);
	if (*s->subsampling)
		buffer_format(out, " %s", s->subsampling);
	if (s->progressive)
		buffer_text(out, " progressive");
	if (s->quality)
		buffer_format(out, " q%u", s->quality);
	buffer_text(out, " ");
	like_write_size(s->bytes, out);
	if (s->bytes_sigma >= 0.0005)
		buffer_format(out, "~%.3f", s->bytes_sigma);
	if (s->header >= LIKE_HEADER_LEAST) {
		buffer_text(out, "+");
		like_write_size(s->header, out);
	}
	buffer_format(out, " %.4g%%", 100 * share);
}

double like_write(const struct like_stratum *strata, size_t count, struct buffer *out)
{
	double kept = 0, all = 0;
	bool first = true;
	for (size_t i = 0; i < count; i++) {
		all += strata[i].share;
		kept += like_format(&strata[i]) >= 0 ? strata[i].share : 0;
	}
	for (size_t i = 0; i < count; i++) {
		if (like_format(&strata[i]) < 0)
			continue;
		buffer_text(out, first ? "" : ", ");
		like_write_stratum(&strata[i], strata[i].share / kept, out);
		first = false;
	}
	return all > 0 ? 1 - kept / all : 0;
}
