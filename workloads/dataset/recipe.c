/* Recipes: from the configuration, to JSON, and compared. */
#include "workloads/dataset/recipe.h"

#include "harness/base/clock.h"
#include "workloads/dataset/container.h"
#include "workloads/dataset/maker.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECIPE_DECLARE(ID, name) extern const struct recipe_ops maker_##name;
DATASET_RECIPES(RECIPE_DECLARE)
#undef RECIPE_DECLARE

/* By dataset.recipe. */
#define RECIPE_ENTRY(ID, name) [DATASET_RECIPE_##ID] = &maker_##name,
static const struct recipe_ops *const recipe_list[] = {
	[DATASET_RECIPE_PHOTO] = NULL, DATASET_RECIPES(RECIPE_ENTRY)};

static uint64_t number(const struct config *config, enum key_id key)
{
	return (uint64_t)config_integer(config, key);
}

/* Files that the samples' kind would not find in the folder are not generated. */
static int recipe_check_kind(
	const struct config *config, const struct recipe *recipe, struct error *err)
{
	const struct sample_ops *const kind = sample_kind_of(config);
	char name[RECIPE_PATH_BYTES];
	char endings[SAMPLE_ENDINGS_BYTES];
	char asked[CONFIG_VALUE_BYTES];
	(void)snprintf(name, sizeof name, "0.%s", recipe_extension(recipe, 0));
	if (sample_takes_name(kind, name))
		return 0;
	return error_set(err, -EINVAL,
		"dataset.recipe = %s makes %s files, and sample.kind = %s reads %s: set the two alike",
		config_format_value(KEY_DATASET_RECIPE, &config->values[KEY_DATASET_RECIPE], asked,
			sizeof asked),
		strrchr(name, '.'), kind->name, sample_endings(kind, endings));
}

int recipe_read(const struct config *config, struct recipe *recipe, struct error *err)
{
	*recipe = (struct recipe){
		.container = container_of_config(config),
		.shard_samples = number(config, KEY_DATASET_SHARD_SAMPLES),
		.samples = number(config, KEY_DATASET_SAMPLES),
		.classes = number(config, KEY_DATASET_CLASSES),
		.seed = number(config, KEY_DATASET_SEED),
		.bytes = number(config, KEY_DATASET_BYTES),
		.width = (uint32_t)number(config, KEY_DATASET_WIDTH),
		.height = (uint32_t)number(config, KEY_DATASET_HEIGHT),
		.size_sigma = config_real(config, KEY_DATASET_SIZE_SIGMA),
		.encode =
			{
				.format = (enum dataset_format)number(config, KEY_DATASET_FORMAT),
				.quality = (int)number(config, KEY_DATASET_QUALITY),
				.subsampling = (enum dataset_subsampling)number(
					config, KEY_DATASET_SUBSAMPLING),
				.png_color = (enum dataset_png_color)number(
					config, KEY_DATASET_PNG_COLOR),
				.png_level = (int)number(config, KEY_DATASET_PNG_LEVEL),
			},
	};
	if (recipe->samples == 0)
		return error_set(err, -EINVAL,
			"dataset.samples is 0: a recipe needs the number of samples to generate");
	recipe->ops = recipe_list[config_integer(config, KEY_DATASET_RECIPE)];
	for (size_t i = 0; recipe->ops && i < recipe->ops->key_count; i++)
		recipe->values[i] = config->values[recipe->ops->keys[i]];
	int code = container_validate(config, false, err);
	if (!code && recipe->ops)
		code = recipe->ops->check(recipe, err);
	return code ? code : recipe_check_kind(config, recipe, err);
}

static size_t recipe_find_key(const struct recipe *recipe, enum key_id key)
{
	size_t i = 0;
	while (recipe->ops->keys[i] != key)
		i++;
	return i;
}

int64_t recipe_integer(const struct recipe *recipe, enum key_id key)
{
	return recipe->values[recipe_find_key(recipe, key)].integer;
}

double recipe_real(const struct recipe *recipe, enum key_id key)
{
	return recipe->values[recipe_find_key(recipe, key)].real;
}

double recipe_seconds(const struct config *config)
{
	static const double ns_per_pixel = 30; /* to draw and encode one as JPEG */
	struct recipe recipe;
	struct error ignored;
	if (config_integer(config, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE ||
		recipe_read(config, &recipe, &ignored))
		return 0;
	const double each = recipe.ops ? recipe.ops->mean_ns(&recipe)
				       : (double)recipe.width * recipe.height * ns_per_pixel;
	const uint64_t made = recipe.container ? recipe.samples : recipe_files(&recipe);
	return each * (double)made / (double)NS_PER_S;
}

static const char *choice(enum key_id key, int index, char out[CONFIG_VALUE_BYTES])
{
	const struct config_value value = {.integer = index};
	return config_format_value(key, &value, out, CONFIG_VALUE_BYTES);
}

static void add_number(json_t *object, const char *key, uint64_t value)
{
	(void)json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void add_choice(json_t *object, const char *key, enum key_id id, int index)
{
	char text[CONFIG_VALUE_BYTES];
	(void)json_object_set_new(object, key, json_string(choice(id, index, text)));
}

static int encode_value(const struct encode_options *encode, enum key_id key)
{
	switch (key) {
	case KEY_DATASET_QUALITY:
		return encode->quality;
	case KEY_DATASET_SUBSAMPLING:
		return (int)encode->subsampling;
	case KEY_DATASET_PNG_COLOR:
		return (int)encode->png_color;
	case KEY_DATASET_PNG_LEVEL:
		return encode->png_level;
	default:
		return 0; /* no encoder has another */
	}
}

/* What is no key of [dataset] goes by its whole name. */
static void recipe_add_value(json_t *object, enum key_id id, const struct config_value *value)
{
	const struct key *const key = &config_keys[id];
	char name[CONFIG_VALUE_BYTES];
	(void)snprintf(name, sizeof name, "%s.%s", key->section, key->name);
	const char *const own = strcmp(key->section, "dataset") == 0 ? key->name : name;
	if (key->type == KEY_TYPE_CHOICE)
		add_choice(object, own, id, (int)value->integer);
	else if (key->type == KEY_TYPE_REAL || key->type == KEY_TYPE_SHARE)
		(void)json_object_set_new(object, own, json_real(value->real));
	else if (key->type == KEY_TYPE_TEXT)
		(void)json_object_set_new(object, own, json_string(value->text ? value->text : ""));
	else
		add_number(object, own, (uint64_t)value->integer);
}

json_t *recipe_to_json(const struct recipe *recipe)
{
	json_t *object = json_object();
	const struct encode_options *encode = &recipe->encode;
	add_number(object, "generator", recipe->ops ? recipe->ops->version : PICTURE_VERSION);
	add_number(object, "samples", recipe->samples);
	add_number(object, "classes", recipe->classes);
	add_number(object, "seed", recipe->seed);
	if (recipe->container) {
		(void)json_object_set_new(
			object, "container", json_string(recipe->container->name));
		add_number(object, "shard_samples", recipe->shard_samples);
	}
	for (size_t i = 0; recipe->ops && i < recipe->ops->key_count; i++)
		recipe_add_value(object, recipe->ops->keys[i], &recipe->values[i]);
	if (recipe->ops)
		return object;
	add_number(object, "width", recipe->width);
	add_number(object, "height", recipe->height);
	(void)json_object_set_new(object, "size_sigma", json_real(recipe->size_sigma));
	add_number(object, "bytes", recipe->bytes);
	add_choice(object, "format", KEY_DATASET_FORMAT, (int)encode->format);
	const struct encoder_ops *const encoder = encoder_of(encode->format);
	for (size_t i = 0; i < encoder->key_count; i++) {
		const struct key *const key = &config_keys[encoder->keys[i]];
		const int value = encode_value(encode, encoder->keys[i]);
		if (key->type == KEY_TYPE_CHOICE)
			add_choice(object, key->name, encoder->keys[i], value);
		else
			add_number(object, key->name, (uint64_t)value);
	}
	return object;
}

/* A value as JSON text; "unset" for NULL. */
static void recipe_describe(const json_t *value, char *out, size_t room)
{
	char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
	(void)snprintf(out, room, "%s", text ? text : "unset");
	free(text);
}

static void add_difference(
	const char *key, const json_t *there, const json_t *wanted, char *out, size_t room)
{
	enum { VALUE = 64 };
	char old[VALUE], new[VALUE];
	if (there && wanted && json_equal((json_t *)(uintptr_t)there, (json_t *)(uintptr_t)wanted))
		return;
	recipe_describe(there, old, sizeof(old));
	recipe_describe(wanted, new, sizeof(new));
	const size_t used = strlen(out);
	(void)snprintf(out + used, room - used, "%s%s%s is %s there and %s here", used ? ", " : "",
		strchr(key, '.') ? "" : "dataset.", key, old, new);
}

int recipe_compare(const json_t *there, const json_t *wanted, const char *path, struct error *err)
{
	char differences[ERROR_TEXT_BYTES / 2] = "";
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)wanted, key, value) add_difference(
		key, json_object_get(there, key), value, differences, sizeof(differences));
	json_object_foreach(
		(json_t *)(uintptr_t)there, key, value) if (!json_object_get(wanted, key))
		add_difference(key, value, NULL, differences, sizeof(differences));
	if (!differences[0])
		return 0;
	return error_set(err, -EDOM,
		"'%s' was generated from another recipe: %s; choose another dataset.path, or remove the folder",
		path, differences);
}

/* Decimal digits of a number, at least `least`: names of equal length sort as numbers do. */
static unsigned digits(uint64_t largest, unsigned least)
{
	enum { DIGITS_MAX = 20 }; /* of 2^64 - 1 */
	unsigned count = 1;
	for (; largest >= 10; largest /= 10)
		count++;
	if (count < least)
		count = least;
	return count < DIGITS_MAX ? count : DIGITS_MAX;
}

void recipe_class_name(const struct recipe *recipe, uint64_t label, char out[RECIPE_PATH_BYTES])
{
	enum { DIGITS = 4 };
	(void)snprintf(out, RECIPE_PATH_BYTES, "class_%0*" PRIu64,
		(int)digits(recipe->classes - 1, DIGITS), label);
}

const char *recipe_extension(const struct recipe *recipe, uint64_t id)
{
	const struct recipe_ops *const ops = recipe->ops;
	if (!ops)
		return encoder_of(recipe->encode.format)->extension;
	return ops->extension_of ? ops->extension_of(recipe, id) : ops->extension(recipe);
}

bool recipe_is_drawn(const struct recipe *recipe)
{
	return !recipe->ops || recipe->ops->size;
}

void recipe_sample_key(const struct recipe *recipe, uint64_t id, char out[RECIPE_PATH_BYTES])
{
	enum { DIGITS = 8 };
	(void)snprintf(
		out, RECIPE_PATH_BYTES, "%0*" PRIu64, (int)digits(recipe->samples - 1, DIGITS), id);
}

void recipe_file_path(const struct recipe *recipe, uint64_t file, char out[RECIPE_PATH_BYTES])
{
	enum { DIGITS = 6 };
	char key[RECIPE_PATH_BYTES];
	if (recipe->container) {
		(void)snprintf(out, RECIPE_PATH_BYTES, "shard-%0*" PRIu64 ".%s",
			(int)digits(recipe_files(recipe) - 1, DIGITS), file,
			recipe->container->extension);
		return;
	}
	recipe_class_name(recipe, file % recipe->classes, out);
	recipe_sample_key(recipe, file, key);
	const size_t used = strlen(out);
	(void)snprintf(out + used, RECIPE_PATH_BYTES - used, "/%.40s.%s", key,
		recipe_extension(recipe, file));
}

bool recipe_is_packed(const struct recipe *recipe)
{
	return recipe->container != NULL;
}

uint64_t recipe_per_file(const struct recipe *recipe)
{
	if (recipe->container)
		return recipe->shard_samples;
	return recipe->ops && recipe->ops->per_file ? recipe->ops->per_file(recipe) : 1;
}

uint64_t recipe_files(const struct recipe *recipe)
{
	const uint64_t each = recipe_per_file(recipe);
	return recipe->samples / each + (recipe->samples % each > 0);
}

uint64_t recipe_samples_of(const struct recipe *recipe, uint64_t file)
{
	const uint64_t each = recipe_per_file(recipe);
	const uint64_t left = recipe->samples - file * each;
	return left < each ? left : each;
}

uint64_t recipe_class_count(const struct recipe *recipe)
{
	const uint64_t labelled = recipe->container ? recipe->samples : recipe_files(recipe);
	return recipe->classes < labelled ? recipe->classes : labelled;
}

struct picture_size recipe_size(const struct recipe *recipe, uint64_t id)
{
	if (recipe->ops)
		return recipe->ops->size ? recipe->ops->size(recipe, id) : (struct picture_size){0};
	return picture_draw_size(
		recipe->seed, id, recipe->width, recipe->height, recipe->size_sigma);
}
