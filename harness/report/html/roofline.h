/* A step under its roofs: FLOP and compulsory bytes of its products, and what memory and arithmetic can give at best. */
#ifndef MLBENCH_REPORT_HTML_ROOFLINE_H
#define MLBENCH_REPORT_HTML_ROOFLINE_H

#include "harness/report/html/chart_parts.h"

enum { ROOFLINE_ROOFS_MAX = 3, ROOFLINE_WORDS_BYTES = 2 * PARTS_TEXT_BYTES };

/* What limits: a level, or the memory's slope. */
struct roof {
	char name[PARTS_TEXT_BYTES];
	double flops; /* per second */
};

struct roofline {
	const struct record *record;
	const struct point_summary *p;
	double batch, element; /* samples; bytes of a number */
	char precision[NAME_BYTES];
	double flops, bytes;                   /* of a step on one device */
	double achieved;                       /* FLOP/s; NAN: not measured */
	struct roof roofs[ROOFLINE_ROOFS_MAX]; /* what was measured before what is published */
	size_t roof_count;
	double bandwidth;                  /* bytes/s; NAN: not known */
	char source[ROOFLINE_WORDS_BYTES]; /* of it all */
	double left, right;                /* ends of the axis, FLOP per byte */
	json_t *rows;
};

struct roofline_traffic {
	double m;                      /* rows of one product */
	double products, flops, bytes; /* of all passes of all products of the shape */
};

/* Of all passes of a product's shape, for a batch of view->batch. */
struct roofline_traffic roofline_traffic_of(
	const struct roofline *view, const struct step_product *product);
/* flops and bytes of a step, from the record's products. */
void roofline_count(struct roofline *view);
/* Bytes of a number, "bf16": 2; NAN: unknown. */
double roofline_bytes_of(const char *precision);

/* Roofs, bandwidth and where they come from. */
void roofline_of_device(struct roofline *view, const struct device_measurement *device);
void roofline_of_cpu(struct roofline *view, unsigned threads);
/* FLOP/s that the least roof leaves at an intensity (FLOP/byte); NAN: none is known. */
double roofline_attainable(const struct roofline *view, double intensity);

#endif
