/* What a generated data set is made from: every key that its bytes depend on. */
#ifndef MLBENCH_WORKLOADS_DATASET_RECIPE_H
#define MLBENCH_WORKLOADS_DATASET_RECIPE_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/image/encode.h"
#include "workloads/image/picture.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct recipe {
	uint64_t samples, classes, seed;
	uint64_t bytes; /* mean file size to hit; 0: natural */
	uint32_t width, height;
	double size_sigma;
	struct encode_options encode;
};

/* -EINVAL: the keys do not make a recipe. */
int recipe_read(const struct config *config, struct recipe *recipe, struct error *err);

/* {"samples": 2000, …}: the keys by their names in the section [dataset]; those that do not matter
 * for the format are left out.  "generator" is PICTURE_VERSION.  A new reference, NULL without
 * memory. */
json_t *recipe_to_json(const struct recipe *recipe);

/* 0 when both are the same; else -ESTALE, and err says which keys differ how. */
int recipe_compare(const json_t *there, const json_t *wanted, const char *path, struct error *err);

enum { RECIPE_PATH_BYTES = 64 };

/* "class_0007/00001234.jpg" */
void recipe_sample_path(const struct recipe *recipe, uint64_t id, char out[RECIPE_PATH_BYTES]);
void recipe_class_name(const struct recipe *recipe, uint64_t label, char out[RECIPE_PATH_BYTES]);
uint64_t recipe_class_count(const struct recipe *recipe); /* classes that have a sample */

struct picture_size recipe_size(const struct recipe *recipe, uint64_t id);

#endif
