/* What a sample is: what becomes of a file's bytes, and what a batch of it looks like.  The pipeline
 * knows a kind by its table alone; image is the kind that crops, resizes and normalises pictures.
 *
 * To add a kind, say audio: one new file and one line.
 *   1. workloads/sample/sample_audio.c includes "workloads/sample/sample.h" and ends with
 *        const struct sample_ops sample_audio = {
 *        	.name = "audio", .summary = …,    what `mlbench list kinds` prints
 *        	.shape = audio_shape,             of one finished sample: (T) float32
 *        	.label_bytes = audio_labels,      of one sample: its class, 4 bytes
 *        	.make = audio_make,               a file's bytes into its place of the batch
 *        };
 *      and with open and close where a worker needs memory of its own, .files where not every file of a
 *      folder is a sample.
 *   2. harness/config/tables.h: X(AUDIO, audio) at the end of SAMPLE_KINDS.  sample.kind has the choice
 *      audio from then on, and `mlbench list kinds`, help and the man pages show it.
 * tests/recipes/kind.patch is a whole example, sample_volume.c one with keys and files of its own.  The
 * program refuses to start, and test_sample fails, when a table lacks a hook (sample_kinds_check).
 * Keys of its own (harness/config/keys.def) stand in a section of the kind's name and are named in .keys:
 * they are refused where another kind was chosen, leave the hashes of older configurations as they are,
 * and make results incomparable, unless config_shapes_samples (harness/config/config.c) excepts them.
 * Values that cannot be are refused by .validate, before anything is read or generated.
 * A kind whose files hold several samples has .cut where file sizes and keys say where they lie
 * (sample_tokens.c), and .container where only the files' bytes do (sample_record.c has both;
 * workloads/dataset/container.h says why they are two).
 *
 * For `mlbench gen` to make its files, it takes one maker more: workloads/dataset/maker.h.
 * codec.name = null asks for no samples at all: workers then call no hook but open, close and blank, and
 * stages are measured alone so. A backend that computes takes one class a sample, of float32 or uint8;
 * openblas takes sequences of tokens, too. */
#ifndef MLBENCH_WORKLOADS_SAMPLE_SAMPLE_H
#define MLBENCH_WORKLOADS_SAMPLE_SAMPLE_H

#include "harness/base/error.h"
#include "harness/config/config.h"
#include "workloads/backend/batch.h"
#include "workloads/dataset/dataset.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SAMPLE_DIMENSIONS_MAX = 4, SAMPLE_ALIGN_BYTES = 64, SAMPLE_ENDINGS_BYTES = 256 };

/* One finished sample in a batch, which is (B, of[0], of[1], …). */
struct sample_shape {
	enum batch_type type;
	uint32_t dimensions;
	uint32_t of[SAMPLE_DIMENSIONS_MAX];
	uint32_t tokens; /* of a sequence, which a model takes token by token; 0: it is none */
};

/* What a kind answers for a configuration and a data set. */
struct sample_sizes {
	struct sample_shape shape;
	uint32_t values;    /* in a sample: what a model's input has */
	size_t bytes;       /* of a finished sample */
	size_t label_bytes; /* of its labels; 0: it has none */
	uint32_t classes;   /* values that a label may have */
	/* Where the device finishes the samples: room of the largest unfinished one in a batch, and of the
	 * note beside each, which says what to do with it.  0: workers finish them. */
	size_t raw_bytes, note_bytes;
};

/* One file that becomes a sample.  A worker keeps the task and sets what changes. */
struct sample_task {
	const void *bytes; /* the file */
	size_t size;
	uint64_t seed; /* of everything random: of the run, the epoch and the sample */
	const struct sample *sample; /* what the data set knows of it */
	uint8_t *labels;             /* sizes->label_bytes */
	const struct sample_sizes *sizes;
	uint8_t *out; /* sizes->bytes; not where the device finishes it, but: */
	/* sizes->note_bytes; and the bytes of all unfinished samples of the batch, in any order, of which
	 * sample_take_room hands out */
	void *note;
	uint8_t *raw;
	atomic_size_t *raw_used;
};

/* Bytes that an unfinished sample takes, and a place for it: where it begins in task->raw.  Any number of
 * workers at once.  There is room for as many as the batch has samples, of sizes->raw_bytes each. */
static inline size_t sample_room(size_t bytes)
{
	return (bytes + SAMPLE_ALIGN_BYTES - 1) / SAMPLE_ALIGN_BYTES * SAMPLE_ALIGN_BYTES;
}
static inline size_t sample_take_room(const struct sample_task *task, size_t bytes)
{
	return atomic_fetch_add_explicit(task->raw_used, sample_room(bytes), memory_order_relaxed);
}

/* The label of a kind that has one: the class of its file. */
static inline void sample_put_class(const struct sample_task *task)
{
	*(uint32_t *)(void *)task->labels = task->sample->label;
}

/* What a worker is opened with. */
struct sample_options {
	const struct config *config;
	const struct dataset *dataset;
	const atomic_bool *stop; /* true: give up the sample soon, with -EINTR; may be NULL */
};

/* Makes a sample.  0; -EINTR (which needs no reason); or another negative errno with the reason, where the
 * file is bad: what was written means nothing then.  worker: what open gave, NULL without one. */
typedef int sample_make(void *worker, const struct sample_task *task, struct error *err);

/* A sample that could not be read or made. */
typedef void sample_blank(const struct sample_task *task);

/* Where a device can make the samples of what workers only prepare. */
struct sample_device_ops {
	const char *on, *off; /* the setting that asks for it, and the one that does not */
	const char *called;   /* what a batch then holds, "a decoded picture" */
	size_t note_bytes;    /* a multiple of 8 */
	/* Room of the largest one of the data set; 0: the configuration does not ask for it. */
	uint64_t (*room)(const struct config *config, const struct dataset *dataset);
	sample_make *make; /* fills task->note, and bytes in room that it takes */
	sample_blank *blank;
	/* Of a batch's unfinished samples, wherever they lie in raw. */
	uint64_t (*hash)(const void *notes, const uint8_t *raw, uint32_t count);
};

struct container_ops;
struct store;

/* Which files of a user's folder become samples. */
struct sample_file_ops {
	const char *called;                                     /* several of them, "pictures" */
	bool (*takes)(const char *name);                        /* is a file one, by its name? */
	const char *(*endings)(char out[SAMPLE_ENDINGS_BYTES]); /* of names, ".jpg or .png" */
	const char *beside; /* ending of files that belong to one of them, ".idx"; NULL: none do */
	/* What the beginning of a file says of it, in width, height and format.  -EAGAIN: more of it is
	 * needed; another negative errno, with the reason: it is none. */
	int (*look)(const void *head, size_t size, uint64_t file_bytes, struct sample *out,
		struct error *err);
};

/* The samples of one file, or of one place that a container found: as many of `bytes` each, the first at
 * byte `first`, from one to the next `stride`.  All lie within it. */
struct sample_cut {
	uint64_t first, stride, bytes, count;
};

/* Those up to make are needed. */
struct sample_ops {
	const char *name, *summary;

	/* Functions of the configuration alone. */
	void (*shape)(const struct config *config, struct sample_shape *out);
	size_t (*label_bytes)(const struct config *config);

	/* A worker's: one thread calls them, for file after file, from many threads at once. */
	sample_make *make;
	sample_blank *blank; /* NULL: zeros, labels too */
	/* Upper estimate of what open allocates; NULL: nothing. */
	uint64_t (*scratch_bytes)(const struct config *config, const struct dataset *dataset);
	int (*open)(void **worker, const struct sample_options *options, struct error *err);
	void (*close)(void *worker); /* fine on NULL */

	/* Values that a label may have; NULL: the classes of the data set. */
	uint32_t (*classes)(const struct config *config, const struct dataset *dataset);
	/* The file that scratch is so large for: "'a.jpg', of 10 x 10 pixels"; NULL: the largest file. */
	void (*describe_largest)(const struct dataset *dataset, char *out, size_t room);

	/* NULL: a file, or what the container found, is a sample.  A count of 0: it is too short for one.
	 * -EINVAL with the reason: it is not what the keys say of it.  A function of the configuration and
	 * the data set's entry. */
	int (*cut)(const struct config *config, const struct sample *file, struct sample_cut *out,
		struct error *err);
	/* -EINVAL with the reason: what lies beside the files of a user's folder contradicts the keys.  Optional. */
	int (*check)(const struct config *config, struct store *store, const struct dataset *files,
		struct error *err);
	/* What a run says of its samples beside the figures, where out is written.  Optional. */
	void (*note)(const struct config *config, char *out, size_t room);
	/* Sets its keys so that nothing random is done to its samples, as evaluations want them.  NULL: nothing is. */
	int (*settle)(struct config *config, struct error *err);
	/* -EINVAL: what its own keys say cannot be.  NULL: it always can. */
	int (*validate)(const struct config *config, struct error *err);

	const enum key_id *keys; /* that say something of this kind alone, without codec.name */
	size_t key_count;
	const char *size_key; /* that makes samples smaller, "augment.size"; NULL: none */
	bool uses_codecs; /* a fact: its files are pictures, which codecs decode as codec.* says */

	const struct sample_device_ops *device; /* NULL: workers make the samples */
	/* NULL: every file, but those that are empty or hidden. */
	const struct sample_file_ops *files;
	/* What its files are, where each holds many samples: .name, .endings, .takes and .split of one, in
	 * place of .files.  dataset.container has then nothing to pack.  Optional. */
	const struct container_ops *container;
};

extern const struct sample_ops *const sample_kinds[]; /* by enum sample_kind; NULL-terminated */

/* The kind that sample.kind asks for. */
const struct sample_ops *sample_kind_of(const struct config *config);

/* For tests, before any thread asks: stands for whatever sample.kind says; NULL: no more. */
void sample_replace_kind(const struct sample_ops *kind);

/* -EINVAL with the name of a kind and what its table lacks: a fault of the program. */
int sample_kind_check(const struct sample_ops *kind, struct error *err);
int sample_kinds_check(struct error *err);

/* -EINVAL: a key of another kind is set, one of its own to what cannot be, or no batch can be. */
int sample_validate(const struct config *config, struct error *err);

/* The data set as the samples of this configuration: a list of its own where the kind's files hold several
 * (sample_kind's .cut), which differ from point to point of a sweep; else, and where it was cut already,
 * *out is a copy of *files.  Paths, classes and root stay those of files.  -EINVAL: a file is not what the
 * keys say; -ENODATA: no file has a sample; -ENOMEM. */
int sample_cut_files(const struct config *config, const struct dataset *files, struct dataset *out,
	struct error *err);
/* Frees what sample_cut_files(files) made. */
void sample_cut_release(struct dataset *cut, const struct dataset *files);

/* dataset: NULL where none is known; classes, raw_bytes and note_bytes are 0 then. */
void sample_sizes_of(
	const struct config *config, const struct dataset *dataset, struct sample_sizes *out);

/* What a model's input is made of. */
enum batch_type sample_type_of(const struct config *config);

/* Of a sequence, which a model takes token by token; 0: samples are no sequences. */
uint32_t sample_tokens_of(const struct config *config);

uint64_t sample_scratch_bytes(const struct config *config, const struct dataset *dataset);
void sample_describe_largest(
	const struct sample_ops *kind, const struct dataset *dataset, char *out, size_t room);

/* As the kind's files, or its container, say; endings: "" where any file is one. */
const char *sample_endings(const struct sample_ops *kind, char out[SAMPLE_ENDINGS_BYTES]);
bool sample_takes_name(const struct sample_ops *kind, const char *name);
int sample_look(const struct sample_ops *kind, const void *head, size_t size, uint64_t file_bytes,
	struct sample *out, struct error *err);

/* What makes the samples of one worker. */
struct sample_maker {
	sample_make *make;
	sample_blank *blank;
	void *worker;
	const struct sample_ops *kind;
	bool checks; /* bytes against their checksum first, as readers of their container do */
};
/* {0} before.  Samples of sizes, which were given for the same options. */
int sample_maker_open(struct sample_maker *maker, const struct sample_options *options,
	const struct sample_sizes *sizes, struct error *err);
int sample_maker_make(
	const struct sample_maker *maker, const struct sample_task *task, struct error *err);
void sample_maker_close(struct sample_maker *maker); /* fine on {0} */

#endif
