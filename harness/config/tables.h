/* The choices that are tables of other folders: read engines, kinds of samples, containers, recipes, backends, and the formats of
 * codecs.def.  Apart from config.h, so that a further engine or backend compiles only those files anew that know the tables. */
#ifndef MLBENCH_CONFIG_TABLES_H
#define MLBENCH_CONFIG_TABLES_H

/* The read engines: identifier, and name as in read.engine; source_NAME is its table (source.h). */
#define READ_ENGINES(X)       \
	X(MEMORY, memory)     \
	X(PREAD, pread)       \
	X(IO_URING, io_uring) \
	X(NFS, nfs)           \
	X(MMAP, mmap)
#define READ_ENGINE_ID(ID, name) READ_ENGINE_##ID,
#define READ_ENGINE_CHOICE(ID, name) "|" #name
enum read_engine { READ_ENGINE_AUTO, READ_ENGINES(READ_ENGINE_ID) };

/* What a file becomes, likewise: sample_NAME is a kind's table (sample.h). */
#define SAMPLE_KINDS(X)   \
	X(IMAGE, image)   \
	X(VOLUME, volume) \
	X(TOKENS, tokens) \
	X(RECORD, record) \
	X(BYTES, bytes)
#define SAMPLE_KIND_ID(ID, name) SAMPLE_KIND_##ID,
#define SAMPLE_KIND_CHOICE(ID, name) "|" #name
enum sample_kind { SAMPLE_KINDS(SAMPLE_KIND_ID) };

/* How samples are packed into files (dataset.container), likewise: container_NAME is a container's table
 * (workloads/dataset/container.h).  files: each is a file of its own. */
#define DATASET_CONTAINERS(X) \
	X(TAR, tar)           \
	X(TFRECORD, tfrecord) \
	X(TGZ, tgz)
#define DATASET_CONTAINER_ID(ID, name) DATASET_CONTAINER_##ID,
#define DATASET_CONTAINER_CHOICE(ID, name) "|" #name
enum dataset_container { DATASET_CONTAINER_FILES, DATASET_CONTAINERS(DATASET_CONTAINER_ID) };

/* What is generated (dataset.recipe) beside photographs, likewise: maker_NAME is a recipe's table
 * (workloads/dataset/recipe.h). */
#define DATASET_RECIPES(X) \
	X(VOLUME, volume)  \
	X(TOKENS, tokens)  \
	X(RECORD, record)  \
	X(LIKE, like)
#define DATASET_RECIPE_ID(ID, name) DATASET_RECIPE_##ID,
#define DATASET_RECIPE_CHOICE(ID, name) "|" #name
enum dataset_recipe {
	DATASET_RECIPE_NONE,
	DATASET_RECIPE_PHOTO,
	DATASET_RECIPES(DATASET_RECIPE_ID)
};

/* The backends likewise: NAME_backend_ops is a backend's table (backend.h). */
#define STEP_BACKENDS(X)      \
	X(NULL, null)         \
	X(EMULATED, emulated) \
	X(OPENBLAS, openblas) \
	X(CUDA, cuda)
#define STEP_BACKEND_ID(ID, name) STEP_BACKEND_##ID,
#define STEP_BACKEND_CHOICE(ID, name) "|" #name
enum step_backend { STEP_BACKEND_AUTO, STEP_BACKENDS(STEP_BACKEND_ID) };

/* dataset.format: the formats that can be written. */
#define CODEC_READS(id)
#define CODEC_WRITES(id) DATASET_FORMAT_##id,
#define CODEC(id, name, use) CODEC_##use(id)
enum dataset_format {
#include "harness/config/codecs.def"
};
#undef CODEC
#undef CODEC_WRITES
#undef CODEC_READS

#endif
