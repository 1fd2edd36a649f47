/* What the files of a picture data set are like: kinds of files (strata), each with its share, sizes and deviations.  Together
 * they are the joint distribution that `mlbench fit` finds in a folder (harness/fit/from_folder.c) and that
 * dataset.recipe = like generates (workloads/dataset/maker_like.c).
 *
 * As text, the value of dataset.like, a stratum is a line of words, and a comma separates strata:
 *
 *   jpeg 500x375~0.15 420 q90 110KB~0.3 92%, jpeg 2048x1365 420 progressive q85 640KB+24KB 3%, png 640x480 rgb 420KB 5%
 *
 * In this order; words in brackets may be left out:
 *   FORMAT             jpeg, png, raw
 *   WIDTHxHEIGHT[~S]   medians in pixels; S: standard deviation of ln(edge length)
 *   [LAYOUT]           of a JPEG 420 (the default), 422, 444, 440, 411, 410, gray, cmyk or other; of a PNG rgb (the
 *                      default), rgba, gray, graya, gray16 or palette
 *   [progressive]      of a JPEG
 *   [qN]               quality of a JPEG on libjpeg's scale
 *   SIZE[~S][+HEAD]    mean file size; S: standard deviation of ln(file size) given the picture's size; HEAD: bytes of it that
 *                      lie in front of the picture (EXIF, colour profiles)
 *   SHARE%             of the files; 100 % together */
#ifndef MLBENCH_CONFIG_LIKE_H
#define MLBENCH_CONFIG_LIKE_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* So many strata always fit into the text of a value (4,096 bytes). */
enum { LIKE_STRATA_MAX = 48, LIKE_WORD_BYTES = 8 };

struct like_stratum {
	char format[LIKE_WORD_BYTES]; /* name of a codec: "jpeg" */
	char subsampling
		[LIKE_WORD_BYTES]; /* LAYOUT above, of a JPEG or PNG; "": the default, or none */
	bool progressive;          /* a JPEG of several scans */
	unsigned quality;          /* of a JPEG, 1..100; 0: not known */
	unsigned width, height;    /* medians, in pixels */
	double edge_sigma;         /* of ln(edge length) */
	double bytes;              /* mean file size */
	double bytes_sigma;        /* of ln(file size) given the picture's size */
	double header; /* mean bytes of it in front of the picture; 0: next to nothing */
	double share;  /* of the files, 0..1 */
};

/* What dataset.format says of its format (enum dataset_format); -1: that cannot be generated. */
int like_format(const struct like_stratum *stratum);

/* Reads a text.  Shares are scaled to a sum of 1.  -EINVAL with what is wrong and in which stratum: a word out of place, numbers
 * out of range, more than LIKE_STRATA_MAX, shares that are not 100 % together (to 1 %), no stratum at all. */
int like_parse(const char *text, struct like_stratum out[LIKE_STRATA_MAX], size_t *count,
	struct error *err);

/* The mean of exp(sigma z) for a normal z that is cut at LIKE_DEVIATIONS: what is drawn of a deviation. */
#define LIKE_DEVIATIONS 3.0
double like_mean_exp(double sigma);

/* Appends the text: numbers of four digits.  Strata of formats that cannot be generated are left out, the shares of the others
 * being scaled to 100 %.  Returns the share of the files that was left out. */
double like_write(const struct like_stratum *strata, size_t count, struct buffer *out);

#endif
