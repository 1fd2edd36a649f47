/* What a generated data set is made from: every key that its bytes depend on. */
#ifndef MLBENCH_WORKLOADS_DATASET_RECIPE_H
#define MLBENCH_WORKLOADS_DATASET_RECIPE_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/config/like.h"
#include "harness/config/tables.h"
#include "workloads/image/encode.h"
#include "workloads/image/picture.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct container_ops;
struct maker;
struct recipe;

enum { RECIPE_KEYS_MAX = 8 };

/* What a recipe makes other than photographs of one kind: files that are a function of (recipe, id).  To add one,
 * say for a kind of samples of your own: workloads/dataset/maker_NAME.c with such a table, maker_NAME,
 * and its line in DATASET_RECIPES (harness/config/tables.h).  dataset.recipe has the choice from then on. */
struct recipe_ops {
	unsigned version; /* goes up when the same recipe gives other bytes */
	/* Keys that its files depend on, beside samples, classes and seed of [dataset]. */
	enum key_id keys[RECIPE_KEYS_MAX];
	size_t key_count;
	/* The ending of its files, without a dot. */
	const char *(*extension)(const struct recipe *recipe);
	/* -EINVAL: no such files can be.  May fill in what is the recipe's own (like). */
	int (*check)(struct recipe *recipe, struct error *err);
	/* Of a file, for estimates: its size, and a core's time to make it. */
	double (*mean_bytes)(const struct recipe *recipe);
	double (*mean_ns)(const struct recipe *recipe);
	/* Samples that a file holds, for kinds that split files (the last file may have fewer); opening the
	 * set splits them, by the keys of then.  NULL: 1. */
	uint64_t (*per_file)(const struct recipe *recipe);
	/* Into the maker's bytes (maker_grow). */
	int (*make)(
		struct maker *maker, const struct recipe *recipe, uint64_t id, struct error *err);
	/* Of pictures, which are drawn from the maker's atlas: how large each is, and the ending of its file.  NULL: it makes
	 * none. */
	struct picture_size (*size)(const struct recipe *recipe, uint64_t id);
	const char *(*extension_of)(const struct recipe *recipe, uint64_t id);
};

/* Of dataset.like: the first `count` of the files in the order of their kinds, which their numbers are spread over. */
struct recipe_like {
	struct like_stratum strata[LIKE_STRATA_MAX];
	uint64_t first[LIKE_STRATA_MAX + 1]; /* of each kind; behind the last, all */
	/* Means over the files of a kind, relative to the medians: of pixels, and of pixels times how busy pictures are. */
	double pixels[LIKE_STRATA_MAX], bytes[LIKE_STRATA_MAX];
	size_t count;
	uint64_t stride; /* from a number to the next, in that order */
};

struct recipe {
	const struct container_ops *container; /* NULL: files of their own */
	uint64_t shard_samples;                /* in each of its files */
	const struct recipe_ops *ops;          /* NULL: photographs, which the rest is about */
	/* Of ops->keys; a text is the configuration's, and is there as long as that is. */
	struct config_value values[RECIPE_KEYS_MAX];
	struct recipe_like like;
	uint64_t samples, classes, seed;
	uint64_t bytes; /* mean file size to hit; 0: natural */
	uint32_t width, height;
	double size_sigma;
	struct encode_options encode;
};

/* -EINVAL: the keys do not make a recipe, or files that are no samples of sample.kind. */
int recipe_read(const struct config *config, struct recipe *recipe, struct error *err);

/* A key of recipe->ops. */
int64_t recipe_integer(const struct recipe *recipe, enum key_id key);
double recipe_real(const struct recipe *recipe, enum key_id key);

/* A guess of the CPU time that generating all of it takes, in seconds; 0 without a recipe. */
double recipe_seconds(const struct config *config);

/* {"samples": 2000, …}: the keys by their names in the section [dataset]; those that do not matter
 * for the format are left out.  "generator" is PICTURE_VERSION.  A new reference, NULL without
 * memory. */
json_t *recipe_to_json(const struct recipe *recipe);

/* 0 when both are the same; else -EDOM, and err says which keys differ how. */
int recipe_compare(const json_t *there, const json_t *wanted, const char *path, struct error *err);

enum { RECIPE_PATH_BYTES = 64 };

/* Files of the set, and the samples that one holds: recipe_per_file, of the last one what is left. */
uint64_t recipe_files(const struct recipe *recipe);
uint64_t recipe_per_file(const struct recipe *recipe);
uint64_t recipe_samples_of(const struct recipe *recipe, uint64_t file);
bool recipe_is_packed(const struct recipe *recipe); /* in a container */

/* Of a file: "class_0007/00001234.jpg"; "shard-000012.tar" of a container. */
void recipe_file_path(const struct recipe *recipe, uint64_t file, char out[RECIPE_PATH_BYTES]);
/* Of a sample in a container: "00001234", "jpg". */
void recipe_sample_key(const struct recipe *recipe, uint64_t id, char out[RECIPE_PATH_BYTES]);
const char *recipe_extension(const struct recipe *recipe, uint64_t id); /* of a sample's file */
bool recipe_is_drawn(const struct recipe *recipe); /* of pictures: needs an atlas */
void recipe_class_name(const struct recipe *recipe, uint64_t label, char out[RECIPE_PATH_BYTES]);
uint64_t recipe_class_count(const struct recipe *recipe); /* classes that have a sample */

struct picture_size recipe_size(const struct recipe *recipe, uint64_t id); /* 0 x 0: no picture */

#endif
