/* One benchmark, completely described: a value for each key of keys.def, and the axes of a sweep.
 * Read from an INI file (inih), `include =` files and --set overrides; every mistake is refused
 * with file, line, what was wrong and the nearest valid name. */
#ifndef MLBENCH_CONFIG_CONFIG_H
#define MLBENCH_CONFIG_CONFIG_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum key_id {
#define SECTION(name, doc)
#define KEY(id, ...) KEY_##id,
#include "harness/config/keys.def"
#undef KEY
#undef SECTION
	KEY_COUNT
};

enum key_type {
	KEY_TYPE_BOOLEAN, /* on off true false yes no 1 0 */
	KEY_TYPE_INTEGER,
	KEY_TYPE_REAL,
	KEY_TYPE_SHARE,    /* 0..1 */
	KEY_TYPE_SIZE,     /* bytes */
	KEY_TYPE_DURATION, /* ns */
	/* ns per batch, or text: times at batch sizes (config_step_time); then integer is the first */
	KEY_TYPE_BATCH_TIME,
	KEY_TYPE_RATE,   /* bytes/s */
	KEY_TYPE_CHOICE, /* index into choices */
	KEY_TYPE_TEXT,
};

/* What a key is to somebody who compares settings.  Points are better or worse than one another only
 * by their knobs: another workload is other training, and another assumption another node. */
enum key_kind {
	KEY_KIND_FIXED,      /* one value for the whole run: it cannot be swept */
	KEY_KIND_KNOB,       /* the user's choice, the training stays the same */
	KEY_KIND_WORKLOAD,   /* what is trained */
	KEY_KIND_ASSUMPTION, /* the device, a declared cost, a planted fault: given, not chosen */
};

struct key {
	const char *section, *name;
	enum key_type type;
	const char *fallback; /* the default, as text */
	double min, max;
	const char *choices; /* "a|b|c" */
	enum key_kind kind;
	const char *doc;
};

struct key_section {
	const char *name, *doc;
};

/* The choices, in keys.def's order; those that other folders' tables make are in tables.h. */
enum affinity { AFFINITY_NONE, AFFINITY_COMPACT, AFFINITY_SPREAD };
enum numa_policy { NUMA_AUTO, NUMA_INTERLEAVE, NUMA_NONE };
enum dataset_volume_format {
	DATASET_VOLUME_FORMAT_NPY,
	DATASET_VOLUME_FORMAT_NPZ,
	DATASET_VOLUME_FORMAT_NPZ_DEFLATED
};
enum tokens_type { TOKENS_TYPE_UINT16, TOKENS_TYPE_UINT32 };
enum tokens_packing { TOKENS_PACKING_STREAM, TOKENS_PACKING_DOCUMENTS };
enum record_layout { RECORD_LAYOUT_COLUMNS, RECORD_LAYOUT_ROWS };
enum dataset_subsampling {
	DATASET_SUBSAMPLING_420,
	DATASET_SUBSAMPLING_422,
	DATASET_SUBSAMPLING_444,
	DATASET_SUBSAMPLING_GRAY
};
enum dataset_png_color {
	DATASET_PNG_RGB,
	DATASET_PNG_RGBA,
	DATASET_PNG_GRAY,
	DATASET_PNG_GRAY16,
	DATASET_PNG_PALETTE
};
enum dataset_generate { DATASET_GENERATE_AUTO, DATASET_GENERATE_NEVER };
enum read_cache { READ_CACHE_COLD, READ_CACHE_WARM, READ_CACHE_AS_IS };
enum read_by { READ_BY_READERS, READ_BY_WORKERS };
enum read_order { READ_ORDER_SHUFFLE, READ_ORDER_SEQUENTIAL, READ_ORDER_SHARDS };
enum codec_name { CODEC_NAME_AUTO, CODEC_NAME_NULL };
enum codec_png { CODEC_PNG_LIBPNG, CODEC_PNG_FAST };
enum augment_crop { AUGMENT_CROP_RANDOM, AUGMENT_CROP_CENTER, AUGMENT_CROP_NONE };
enum augment_type { AUGMENT_TYPE_FLOAT32, AUGMENT_TYPE_UINT8 };
enum augment_layout { AUGMENT_LAYOUT_CHW, AUGMENT_LAYOUT_HWC };
enum augment_device { AUGMENT_DEVICE_CPU, AUGMENT_DEVICE_GPU };
enum decode_share { DECODE_SHARE_SAMPLES, DECODE_SHARE_BATCHES };
enum batch_order { BATCH_ORDER_IN_ORDER, BATCH_ORDER_AS_COMPLETED };
enum upload_mode { UPLOAD_MODE_NONE, UPLOAD_MODE_COPY, UPLOAD_MODE_AUTO };
enum upload_memory { UPLOAD_MEMORY_PINNED, UPLOAD_MEMORY_PAGEABLE };
enum step_optimizer { STEP_OPTIMIZER_SGD, STEP_OPTIMIZER_ADAM };
enum step_precision {
	STEP_PRECISION_FP32,
	STEP_PRECISION_TF32,
	STEP_PRECISION_BF16,
	STEP_PRECISION_FP16,
	STEP_PRECISION_FP8,
	STEP_PRECISION_AUTO
};
enum checkpoint_mode { CHECKPOINT_MODE_SYNC, CHECKPOINT_MODE_ASYNC };
enum measure_depths { MEASURE_DEPTHS_AUTO, MEASURE_DEPTHS_OFF };
enum sweep_mode { SWEEP_MODE_AUTO, SWEEP_MODE_GRID, SWEEP_MODE_SEQUENTIAL };

/* One value; which member holds it is the key's type (integer: BOOLEAN INTEGER SIZE DURATION RATE
 * CHOICE; real: REAL SHARE; text: TEXT, owned by the config). */
struct config_value {
	int64_t integer;
	double real;
	char *text;
};

/* One swept key and its values, in the file's order. */
struct config_axis {
	enum key_id key;
	struct config_value *values; /* count of them; owned */
	size_t count;
	size_t zip_with; /* index of the axis that leads this one's zip group; its own index if none
			  */
};

enum { CONFIG_AXES_MAX = 16, CONFIG_POINTS_MAX = 100000 };

struct config {
	struct config_value values[KEY_COUNT];
	bool is_set[KEY_COUNT]; /* by the user, not by default */
	/* A server or a folder elsewhere that a case or a lab names: config_validate refuses it until the
	 * user sets the key. */
	bool is_elsewhere[KEY_COUNT];
	struct config_axis axes[CONFIG_AXES_MAX];
	size_t axis_count;
	char *path; /* the file it came from, owned; NULL when from nothing */
};

/* The table itself, for help and documents. */
extern const struct key config_keys[KEY_COUNT];
extern const struct key_section config_sections[];
extern const size_t config_section_count;
/* Keys that name a folder or a server. */
bool config_is_path(enum key_id key);

/* Whether a key makes samples others than they were: those of the kinds' own sections (a kind's section has
 * its name), and augment.size; less what leaves their shapes as they are. */
bool config_shapes_samples(enum key_id key);

/* Keys that change only how the same samples are stored.  Where they are swept, each storage form is a
 * data set of its own in a folder under dataset.path that is called after its values ("tar-jpeg"), and the
 * dataset.path of a point (config_grid_point) is that folder. */
bool config_is_storage(enum key_id key);
bool config_sweeps_storage(const struct config *config);

/* KEY_COUNT when there is no such key. dotted: "decode.workers" */
enum key_id config_find_key(const char *dotted);

void config_init(struct config *config);    /* all defaults */
void config_release(struct config *config); /* safe on {0} */
/* to is written over; on failure there is nothing to release. */
int config_copy(struct config *to, const struct config *from, struct error *err);

/* Reads a file over what config holds.  -EINVAL: the file is wrong, err says where; -errno: it
 * cannot be read.  After a failure config is half changed: release it.
 *
 * A line is "[section]", "key = value", or empty; a '#' or ';' at its start or after a blank begins
 * a comment ("$#" and "$;" are the letters themselves).  Indentation means nothing.  A key stands
 * once in a file; only sweep.exclude may be repeated, and adds.  "include = FILE" reads another
 * file at that place, relative to this one: what follows overrides it, and it must not set what
 * this file has set above it.  Relative dataset.path stays relative to the working directory.
 * Sections of others (section_owner.h) are passed over.  A file with one, as a case or a lab, may
 * come from others: it includes nothing and expands no variables, but for the MLBENCH_DATA that its
 * paths may begin with. */
int config_read_file(struct config *config, const char *path, struct error *err);

/* The same from memory, for tests and fuzzing; name stands for the file in messages; includes are
 * refused. */
int config_read_text(
	struct config *config, const char *name, const char *text, size_t size, struct error *err);

/* One override, "decode.workers=4" or "sweep.decode.workers=1,2,4", with variables as in a file.
 * A plain value pins the key: it leaves the sweep, and sweep.zip.  An including file's value does
 * the same to an included file's axis; within one file value and axis stand side by side (the value
 * counts where nothing is swept). */
int config_set(struct config *config, const char *assignment, struct error *err);

/* Sets a value in a program's own words, without variables, and takes the key out of the sweep:
 * (KEY_READ_ENGINE, "memory"). */
int config_set_key(struct config *config, enum key_id key, const char *value, struct error *err);

/* Rules across keys, at each point of the sweep: a path, samples where there is a recipe, batches
 * that can be full, ratio_min <= ratio_max, no cold cache for the memory engine ...  For what a
 * user wrote: a program that replaces a stage (limits) need not ask again.  -EINVAL with the
 * reason. */
int config_validate(const struct config *config, struct error *err);

int64_t config_integer(const struct config *config, enum key_id key); /* BOOLEAN … CHOICE */
double config_real(
	const struct config *config, enum key_id key); /* REAL, SHARE, or an integer's value */
const char *config_text(const struct config *config, enum key_id key); /* TEXT, never NULL */
bool config_on(const struct config *config, enum key_id key);          /* BOOLEAN */

/* step.time of a batch of that size, ns; without it the mean of step.times; 0: neither is set.  Of a line, it may be below 0
 * where that has no points. */
double config_step_time(const struct config *config, double batch_size);
/* Whether either is set. */
bool config_sets_step_time(const struct config *config);
/* Whether that is one duration for a batch of any size. */
bool config_step_time_is_fixed(const struct config *config);
/* Whether batch.size is swept over such a time, and not with it (sweep.zip): the largest batch then wins by construction. */
bool config_sweeps_batch_over_fixed_time(const struct config *config);

enum { CONFIG_VALUE_BYTES = 64 };

/* A value as text that config_set reads back exactly: no blanks or units to guess.  TEXT values are
 * escaped ('$' is "$$") and cut to fit room; config_text has them as they are. */
const char *config_format_value(
	enum key_id key, const struct config_value *value, char *out, size_t room);

/* The resolved file ("[section]\nkey = value ...", every key, the axes last) as a fresh string that
 * reads back to the same values and axes; free it.  NULL without memory. */
char *config_dump(const struct config *config);

/* The axis of a swept key, or NULL. */
const struct config_axis *config_find_axis(const struct config *config, enum key_id key);

bool config_is_default(const struct config *config, enum key_id key);

/* 16 hex digits over every resolved key and axis that can change a measurement (not run.name; not
 * the order of keys in a file, nor how a value was spelled). */
void config_hash(const struct config *config, char out[17]);

/* The sweep's grid.  points is the product of the axes less the excluded combinations; 1 when
 * nothing is swept.  The first axis is the slowest.  sweep.zip ("a, b; c, d") makes groups that
 * step together; a condition of sweep.exclude on a key that is not swept compares its fixed value.
 * -EINVAL: empty, too many, or a bad zip or exclude. */
struct config_grid {
	size_t *choice; /* (points, axis_count): value index per axis; owned */
	size_t points;
	size_t axis_count;
};
int config_grid_open(const struct config *config, struct config_grid *grid, struct error *err);
void config_grid_close(struct config_grid *grid);

/* The configuration of one point: a copy without axes, zip and exclude, with the swept keys set.
 * out is written over (release it after); on failure there is nothing to release. */
int config_grid_point(const struct config *config, const struct config_grid *grid, size_t point,
	struct config *out, struct error *err);
/* Points of one workload differ in knobs only (enum key_kind), so that one may be called better than
 * the other. */
bool config_grid_same_workload(
	const struct config *config, const struct config_grid *grid, size_t a, size_t b);
/* No swept value of point a is larger than that of b; texts, choices and booleans are equal. */
bool config_grid_no_larger(
	const struct config *config, const struct config_grid *grid, size_t a, size_t b);

#endif
