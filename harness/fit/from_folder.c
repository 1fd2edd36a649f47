/* What a folder of pictures is like, from a bounded sample of their headers.
 *
 * All names are listed first, and a sample of the files is kept on the way, each with the same chance (reservoir sampling: Vitter,
 * "Random sampling with a reservoir", ACM TOMS 1985).  A tree that is too large for that is estimated: in each folder some
 * of its subfolders are drawn at random, and what is found below them stands for the others, too (Knuth, "Estimating the efficiency of
 * backtrack programs", Math. Comp. 1975).  That is done several times from the start, so that the spread between the estimates
 * tells how far to trust them.  Either way a file is in the sample by chance alone, never by its name, its age or its place in a
 * folder.  Then the files of the sample are opened in random order, until the time is up, and only their headers are read.
 *
 * Files count as those of a scan do (workloads/dataset/scan.h): names that begin with a dot are passed over, and so is what has the
 * ending of no picture; but files without an ending count by what they are.
 *
 * Nothing that a folder holds is obeyed: links are followed, but not back up; what is no regular file is not opened; and no name
 * is kept or shown. */
#include "harness/fit/from_folder.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/fit/source.h"
#include "harness/fit/strata.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/threads.h"
#include "workloads/image/formats.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FOLDER_DEPTH_MAX = 64, /* nested folders, each of which is open meanwhile */
	FOLDER_ESTIMATES = 8,
	FOLDER_THREADS = 16,
	FOLDER_GROUPS = 32, /* that a uniform sample is divided into, for the spread between them */
	FOLDER_FILES_EACH = 16, /* of a folder that was drawn */
	FOLDER_LOOK_EVERY = 64, /* names, between two looks at the clock */
	FOLDER_PATH_MAX = 4096,
	FOLDER_LINE_MAX = 2 * FOLDER_PATH_MAX, /* of a list */
	FOLDER_ROOM = 1024,
};
/* Bytes of a file's beginning that are read, one after the other, until the header is whole. */
static const size_t folder_heads[] = {4 << 10, 64 << 10, 1 << 20, 4 << 20};

const struct folder_bounds folder_bounds_usual = {
	.seed = 1, /* the same folder gives the same sample */
	.entries = 4 << 20,
	.drawn_entries = 4 << 20,
	.folders = 64,
	.files = 8192,
	.list_ns = 4 * NS_PER_S,
	.draw_ns = 2 * NS_PER_S,
	.open_ns = 3 * NS_PER_S,
};

/* A file that may be opened. */
struct folder_file {
	char *path;      /* relative to the root; owned */
	double weight;   /* files that it stands for */
	unsigned group;  /* the estimate that drew it */
	uint64_t offset; /* of a sample in a packed file, which has `bytes` */
	uint64_t bytes;  /* as a list has it; 0: not known */
	uint32_t width, height;
	uint8_t format; /* of a manifest: enum image_format */
};

struct folder_hunt {
	const struct folder_bounds *bounds;
	struct folder_seen *seen;
	struct rng rng;
	int root;                  /* open folder */
	struct folder_file *files; /* the sample: (count) of (room); owned */
	size_t count, room;
	uint64_t offered;                   /* files that the sample was taken from */
	uint64_t listed, most, deadline;    /* of names, in this way of listing */
	double estimates[FOLDER_ESTIMATES]; /* of the number of files */
	unsigned groups;
	bool no_memory;
};

static bool folder_is_late(const struct folder_hunt *hunt)
{
	return hunt->listed > hunt->most ||
	       (hunt->listed % FOLDER_LOOK_EVERY == 0 && clock_now_ns() > hunt->deadline);
}

/* ---- names ---------------------------------------------------------------------------------- */

enum folder_kind { FOLDER_FILE, FOLDER_FOLDER, FOLDER_DEAD_LINK, FOLDER_OTHER, FOLDER_IS_SKIPPED };

/* An open folder, and those above it. */
struct folder_place {
	const struct folder_place *above;
	DIR *dir;
	dev_t device;
	ino_t inode;
	unsigned depth;
	char path[]; /* from the root, with a slash behind it; "" for the root */
};

static enum folder_kind folder_kind_of_mode(mode_t mode)
{
	return S_ISREG(mode) ? FOLDER_FILE : S_ISDIR(mode) ? FOLDER_FOLDER : FOLDER_OTHER;
}

static enum folder_kind folder_kind_of(const struct folder_place *place, const struct dirent *entry)
{
	struct stat st;
	const bool ours = place->depth == 0 &&
			  strncmp(entry->d_name, MANIFEST_PREFIX, sizeof MANIFEST_PREFIX - 1) == 0;
	if (entry->d_name[0] == '.' || ours)
		return FOLDER_IS_SKIPPED;
	if (entry->d_type == DT_REG)
		return FOLDER_FILE;
	if (entry->d_type == DT_DIR)
		return FOLDER_FOLDER;
	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return FOLDER_OTHER;
	if (fstatat(dirfd(place->dir), entry->d_name, &st, 0) != 0)
		return FOLDER_DEAD_LINK;
	return folder_kind_of_mode(st.st_mode);
}

static bool folder_is_above(const struct folder_place *place, const struct stat *st)
{
	for (; place; place = place->above)
		if (place->inode == st->st_ino && place->device == st->st_dev)
			return true;
	return false;
}

static void folder_leave(struct folder_place *place)
{
	if (place)
		(void)closedir(place->dir);
	free(place);
}

/* name: below `above`, or the root where that is NULL.  NULL: it cannot be entered, which is counted. */
static struct folder_place *folder_enter(
	struct folder_hunt *hunt, const struct folder_place *above, const char *name)
{
	struct stat st;
	const size_t length = above ? strlen(above->path) + strlen(name) + 1 : 0;
	const unsigned depth = above ? above->depth + 1 : 0;
	struct folder_place *const place = calloc(1, sizeof *place + length + 1);
	const int fd = depth < FOLDER_DEPTH_MAX && length < FOLDER_PATH_MAX
			       ? openat(above ? dirfd(above->dir) : hunt->root, name,
					 O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC)
			       : -1;
	const bool known = fd >= 0 && fstat(fd, &st) == 0;
	const bool loops = known && folder_is_above(above, &st);
	DIR *const dir = known && !loops && place ? fdopendir(fd) : NULL;
	if (!dir) {
		hunt->seen->loops += loops;
		hunt->seen->folders_unread += !loops;
		if (fd >= 0)
			(void)close(fd);
		free(place);
		return NULL;
	}
	*place = (struct folder_place){.above = above,
		.dir = dir,
		.device = st.st_dev,
		.inode = st.st_ino,
		.depth = depth};
	if (above)
		(void)snprintf(place->path, length + 1, "%s%s/", above->path, name);
	return place;
}

/* The next name; NULL at the end, which a failure in the middle is, too. */
static const struct dirent *folder_next(
	struct folder_hunt *hunt, const struct folder_place *place, enum folder_kind *kind)
{
	const struct dirent *entry;
	do {
		errno = 0;
		entry = readdir(place->dir);
		hunt->seen->folders_unread += !entry && errno != 0;
		*kind = entry ? folder_kind_of(place, entry) : FOLDER_IS_SKIPPED;
	} while (entry && *kind == FOLDER_IS_SKIPPED);
	if (entry) {
		hunt->seen->entries++;
		hunt->listed++;
		if (hunt->listed % FOLDER_LOOK_EVERY == 0)
			source_progress("listing the folder: %llu names so far",
				(unsigned long long)hunt->seen->entries);
		hunt->seen->dead_links += *kind == FOLDER_DEAD_LINK;
		hunt->seen->others += *kind == FOLDER_OTHER;
	}
	return entry;
}

/* ---- a sample -------------------------------------------------------------------------------- */

static void folder_drop_files(struct folder_hunt *hunt, size_t keep)
{
	while (hunt->count > keep)
		free(hunt->files[--hunt->count].path);
}

static void folder_put(struct folder_hunt *hunt, size_t at, const char *folder, const char *name,
	struct folder_file file)
{
	if (hunt->count == hunt->room) {
		const size_t larger = 2 * hunt->room + FOLDER_ROOM;
		struct folder_file *const files = realloc(hunt->files, larger * sizeof *files);
		hunt->no_memory = hunt->no_memory || !files;
		hunt->files = files ? files : hunt->files;
		hunt->room = files ? larger : hunt->room;
	}
	if (hunt->no_memory || asprintf(&file.path, "%s%s", folder, name) < 0) {
		hunt->no_memory = true;
		return;
	}
	if (at == hunt->count)
		hunt->count++;
	else
		free(hunt->files[at].path);
	hunt->files[at] = file;
}

/* One more of a number of files that nobody knows yet: each of them is in the sample with the same chance. */
static void folder_offer(
	struct folder_hunt *hunt, const char *folder, const char *name, struct folder_file file)
{
	const uint64_t place = hunt->count < hunt->bounds->files
				       ? hunt->count
				       : rng_below(&hunt->rng, hunt->offered + 1);
	hunt->offered++;
	if (place < hunt->bounds->files)
		folder_put(hunt, place, folder, name, file);
}

static void folder_weigh_offered(struct folder_hunt *hunt, double files)
{
	for (size_t i = 0; i < hunt->count; i++)
		hunt->files[i].weight = files / (double)hunt->count;
}

/* ---- all of a tree --------------------------------------------------------------------------- */

/* False: it is too large. */
static bool folder_walk(struct folder_hunt *hunt)
{
	struct folder_place *place = folder_enter(hunt, NULL, ".");
	bool whole = true;
	hunt->listed = 0;
	hunt->most = hunt->bounds->entries;
	hunt->deadline = clock_now_ns() + hunt->bounds->list_ns;
	while (place) {
		enum folder_kind kind;
		const struct dirent *const entry =
			whole && !hunt->no_memory ? folder_next(hunt, place, &kind) : NULL;
		struct folder_place *below = NULL;
		if (entry && kind == FOLDER_FILE)
			folder_offer(hunt, place->path, entry->d_name, (struct folder_file){0});
		if (entry && kind == FOLDER_FOLDER)
			below = folder_enter(hunt, place, entry->d_name);
		if (entry)
			whole = !folder_is_late(hunt);
		if (below) {
			place = below;
		} else if (!entry) {
			struct folder_place *const above =
				(struct folder_place *)(uintptr_t)place->above;
			folder_leave(place);
			place = above;
		}
	}
	return whole;
}

/* ---- drawn folders --------------------------------------------------------------------------- */

/* Names of one folder, drawn of as many as there were. */
struct folder_names {
	char (*names)[NAME_MAX + 1]; /* (room) */
	size_t room, count;
	uint64_t seen;
};

static void folder_draw_name(struct folder_hunt *hunt, struct folder_names *drawn, const char *name)
{
	const uint64_t at = drawn->count < drawn->room ? drawn->count++
						       : rng_below(&hunt->rng, drawn->seen + 1);
	drawn->seen++;
	if (at < drawn->room)
		(void)snprintf(drawn->names[at], sizeof drawn->names[at], "%s", name);
}

/* The folder stands for `weight` of them; `budget` folders may be drawn below it. */
static bool folder_estimate(
	struct folder_hunt *hunt, struct folder_place *place, double weight, size_t budget)
{
	struct folder_names files = {.room = FOLDER_FILES_EACH};
	struct folder_names folders = {.room = budget};
	const struct dirent *entry;
	enum folder_kind kind;
	bool whole = true;
	files.names = calloc(files.room, sizeof *files.names);
	folders.names = calloc(folders.room, sizeof *folders.names);
	hunt->no_memory = hunt->no_memory || !files.names || !folders.names;
	while (whole && !hunt->no_memory && (entry = folder_next(hunt, place, &kind))) {
		if (kind == FOLDER_FILE)
			folder_draw_name(hunt, &files, entry->d_name);
		if (kind == FOLDER_FOLDER)
			folder_draw_name(hunt, &folders, entry->d_name);
		whole = !folder_is_late(hunt);
	}
	hunt->estimates[hunt->groups] += weight * (double)files.seen;
	for (size_t i = 0; i < files.count; i++)
		folder_put(hunt, hunt->count, place->path, files.names[i],
			(struct folder_file){.group = hunt->groups,
				.weight = weight * (double)files.seen / (double)files.count});
	for (size_t i = 0; i < folders.count && whole && !hunt->no_memory; i++) {
		struct folder_place *const below = folder_enter(hunt, place, folders.names[i]);
		const size_t share = budget / folders.count;
		if (below)
			whole = folder_estimate(hunt, below,
				weight * (double)folders.seen / (double)folders.count,
				share > 0 ? share : 1);
		folder_leave(below);
	}
	free(files.names);
	free(folders.names);
	return whole && !hunt->no_memory;
}

/* Estimates until there are enough or the time is up; false: not one came to its end.  The sample of the walk is kept then. */
static bool folder_draw(struct folder_hunt *hunt)
{
	const size_t walked = hunt->count;
	const struct folder_seen before = *hunt->seen;
	bool whole = true;
	hunt->listed = 0;
	hunt->most = hunt->bounds->drawn_entries;
	hunt->deadline = clock_now_ns() + hunt->bounds->draw_ns;
	*hunt->seen = (struct folder_seen){0};
	while (whole && hunt->groups < FOLDER_ESTIMATES) {
		const size_t kept = hunt->count;
		struct folder_place *const place = folder_enter(hunt, NULL, ".");
		hunt->estimates[hunt->groups] = 0;
		whole = place && folder_estimate(hunt, place, 1, hunt->bounds->folders);
		folder_leave(place);
		if (whole)
			hunt->groups++;
		else
			folder_drop_files(hunt, kept);
	}
	if (hunt->groups == 0) {
		*hunt->seen = before;
		return false;
	}
	for (size_t i = 0; i < walked; i++)
		free(hunt->files[i].path);
	hunt->count -= walked;
	memmove(hunt->files, hunt->files + walked, hunt->count * sizeof *hunt->files);
	for (size_t i = 0; i < hunt->count; i++)
		hunt->files[i].weight /= hunt->groups;
	return true;
}

/* ---- intervals -------------------------------------------------------------------------------- */

struct folder_mean {
	double value, low, high;
};

/* Student's t that 95 % lie within, of so many degrees of freedom. */
static double folder_student(unsigned freedom)
{
	static const double few[] = {NAN, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365};
	/* Beyond, by the expansion of Cornish and Fisher: to 0.3 %. */
	return freedom < COUNT(few) ? few[freedom]
				    : 1.95996 + 2.3723 / freedom + 2.8225 / freedom / freedom;
}

/* Of the values of groups that were drawn apart; left: share of the files that is not in the sample. */
static struct folder_mean folder_spread(
	const double *values, unsigned count, double value, double left)
{
	double mean = 0, square = 0;
	for (unsigned i = 0; i < count; i++)
		mean += values[i] / count;
	for (unsigned i = 0; i < count; i++)
		square += (values[i] - mean) * (values[i] - mean);
	if (!(left > 0))
		return (struct folder_mean){value, value, value};
	if (count < 2)
		return (struct folder_mean){value, NAN, NAN};
	const double error = sqrt(square / (count - 1) / count * left);
	const double away = error * folder_student(count - 1);
	return (struct folder_mean){value, value - away, value + away};
}

static void folder_count(struct folder_hunt *hunt)
{
	struct folder_seen *const seen = hunt->seen;
	double mean = 0;
	for (unsigned i = 0; i < hunt->groups; i++)
		mean += hunt->estimates[i] / hunt->groups;
	seen->drawn = hunt->groups > 0;
	const struct folder_mean files =
		folder_spread(hunt->estimates, hunt->groups, mean, hunt->groups > 0);
	const double offered = (double)hunt->offered;
	seen->files = seen->drawn ? files.value : offered;
	seen->files_low = seen->drawn ? files.low : offered;
	seen->files_high = seen->drawn ? files.high : seen->cut ? NAN : offered;
}

/* ---- headers ---------------------------------------------------------------------------------- */

enum folder_outcome {
	FOLDER_PICTURE,
	FOLDER_UNKNOWN,
	FOLDER_UNREAD,
	FOLDER_EMPTY,
	FOLDER_OUTCOMES
};

/* Sums of one group: weights by outcome, and bytes of pictures. */
struct folder_sums {
	double weight[FOLDER_OUTCOMES], bytes;
};

/* What one file turned out to be. */
struct folder_answer {
	enum folder_outcome outcome;
	bool looked, opened;    /* looked: before the time was up */
	enum finding_data data; /* of one that is no picture, by its name */
	double bytes;           /* of that */
	struct strata_file picture;
};

struct folder_looks {
	struct folder_hunt *hunt;
	struct folder_answer *answers; /* (hunt->count): each one thread's */
	uint8_t *heads[FOLDER_THREADS];
	uint64_t deadline;
	struct strata_file *pictures; /* (hunt->count) */
	size_t count;
	struct folder_sums groups[FOLDER_GROUPS], all;
	double other[DATA_SHARDS + 1], other_bytes[DATA_SHARDS + 1]; /* weights, of no pictures */
	size_t looked;
};

/* From `offset` of the file on, `size` bytes at most. */
static enum folder_outcome folder_read_head(
	int fd, uint64_t offset, uint64_t size, uint8_t *head, struct image_info *info)
{
	struct error ignored;
	int code = -EAGAIN;
	size_t got = 0;
	for (size_t i = 0; i < COUNT(folder_heads) && code == -EAGAIN && got < size; i++) {
		const size_t wanted = size < folder_heads[i] ? (size_t)size : folder_heads[i];
		while (got < wanted) {
			const ssize_t n =
				pread(fd, head + got, wanted - got, (off_t)(offset + got));
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return FOLDER_UNREAD;
			if (n == 0) /* it became shorter */
				size = got;
			if (n == 0)
				break;
			got += (size_t)n;
		}
		code = image_read_info(head, got, info, &ignored);
	}
	if (!code)
		code = image_check_bytes(info, size, &ignored);
	return code ? FOLDER_UNKNOWN : FOLDER_PICTURE;
}

static void folder_take_info(const struct folder_file *file, uint64_t bytes,
	const struct image_info *info, struct strata_file *out)
{
	*out = (struct strata_file){
		.weight = file->weight,
		.format = image_format_name(info->format),
		.layout = info->layout ? info->layout : "",
		.width = info->width,
		.height = info->height,
		.bytes = bytes,
		.front = info->front_bytes,
		.quality = (uint8_t)image_quality(info->quantisation),
		.progressive = info->progressive,
	};
}

/* What a manifest says of a file that is not here. */
static enum folder_outcome folder_take_listed(
	const struct folder_file *file, struct strata_file *out)
{
	if (file->width == 0 || file->height == 0)
		return FOLDER_UNREAD;
	const struct image_info info = {
		.format = file->format, .width = file->width, .height = file->height};
	folder_take_info(file, file->bytes, &info, out);
	return FOLDER_PICTURE;
}

/* Only a regular file is opened, so that nothing waits and no device moves; what it is after that, counts. */
static int folder_open(const struct folder_hunt *hunt, const char *path, struct stat *st)
{
	if (fstatat(hunt->root, path, st, 0) != 0 || !S_ISREG(st->st_mode))
		return -1;
	const int fd = openat(hunt->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* Of a file that is a sample by itself: its name has another ending than pictures have. */
static bool folder_names_other(const struct folder_file *file)
{
	const char *const slash = strrchr(file->path, '/');
	const char *const dot = strrchr(slash ? slash : file->path, '.');
	return file->bytes == 0 && dot && isalpha((unsigned char)dot[1]) &&
	       image_format_of_name(file->path) == IMAGE_FORMAT_UNKNOWN;
}

/* What a file that is no picture is, by its name and its size. */
static void folder_take_other(const struct folder_hunt *hunt, const struct folder_file *file,
	struct folder_answer *answer)
{
	struct stat st;
	if (fstatat(hunt->root, file->path, &st, 0) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return;
	answer->bytes = (double)st.st_size;
	answer->data = finding_data_of(strrchr(file->path, '.') + 1, answer->bytes);
}

static enum folder_outcome folder_look_at(const struct folder_hunt *hunt,
	const struct folder_file *file, uint8_t *head, struct folder_answer *answer)
{
	struct stat st;
	struct image_info info;
	if (folder_names_other(file)) {
		folder_take_other(hunt, file, answer);
		return FOLDER_UNKNOWN;
	}
	const int fd = folder_open(hunt, file->path, &st);
	if (fd < 0)
		return folder_take_listed(file, &answer->picture);
	answer->opened = true;
	const uint64_t whole = (uint64_t)st.st_size;
	const uint64_t size = file->offset == 0                    ? whole
			      : file->offset > whole               ? 0
			      : file->bytes < whole - file->offset ? file->bytes
								   : whole - file->offset;
	/* Headers lie apart: what the kernel would read ahead is of no use. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	const enum folder_outcome outcome =
		size == 0 ? FOLDER_EMPTY : folder_read_head(fd, file->offset, size, head, &info);
	(void)close(fd);
	if (outcome == FOLDER_PICTURE)
		folder_take_info(file, size, &info, &answer->picture);
	return outcome;
}

static void folder_shuffle(struct folder_hunt *hunt)
{
	for (size_t i = hunt->count; i > 1; i--) {
		const size_t other = rng_below(&hunt->rng, i);
		const struct folder_file kept = hunt->files[i - 1];
		hunt->files[i - 1] = hunt->files[other];
		hunt->files[other] = kept;
	}
}

static void folder_add(struct folder_sums *sums, enum folder_outcome outcome, double weight,
	const struct strata_file *picture)
{
	sums->weight[outcome] += weight;
	if (outcome == FOLDER_PICTURE)
		sums->bytes += weight * (double)picture->bytes;
}

static int folder_answer_one(void *context, unsigned worker, uint64_t index, struct error *err)
{
	struct folder_looks *const looks = context;
	struct folder_answer *const answer = &looks->answers[index];
	if (clock_now_ns() > looks->deadline)
		return 0;
	if (!looks->heads[worker])
		looks->heads[worker] = malloc(folder_heads[COUNT(folder_heads) - 1]);
	if (!looks->heads[worker])
		return error_set(err, -ENOMEM, "no memory for the beginnings of files");
	answer->outcome = folder_look_at(
		looks->hunt, &looks->hunt->files[index], looks->heads[worker], answer);
	answer->looked = true;
	return 0;
}

static void folder_sum_up(struct folder_looks *looks, size_t files)
{
	struct folder_hunt *const hunt = looks->hunt;
	for (size_t i = 0; i < files; i++) {
		const struct folder_answer *const answer = &looks->answers[i];
		const double weight = hunt->files[i].weight;
		const unsigned group =
			hunt->groups > 0 ? hunt->files[i].group : (unsigned)(i % FOLDER_GROUPS);
		if (!answer->looked)
			continue;
		folder_add(&looks->groups[group], answer->outcome, weight, &answer->picture);
		folder_add(&looks->all, answer->outcome, weight, &answer->picture);
		if (answer->outcome == FOLDER_PICTURE)
			looks->pictures[looks->count++] = answer->picture;
		looks->other[answer->data] += weight;
		looks->other_bytes[answer->data] += weight * answer->bytes;
		looks->looked++;
		hunt->seen->opened += answer->opened;
		hunt->seen->headers += answer->opened && answer->outcome == FOLDER_PICTURE;
	}
}

/* In random order, so that those which are looked at within the time are a sample, too; several at once, since a store may be
 * slow to answer.  What is begun is ended: a file that takes long counts like any. */
static int folder_look_at_all(
	struct folder_hunt *hunt, struct folder_looks *looks, struct error *err)
{
	const size_t files = hunt->count < hunt->bounds->files ? hunt->count : hunt->bounds->files;
	const struct team_job job = {.count = files,
		.item = folder_answer_one,
		.context = looks,
		.threads = FOLDER_THREADS};
	folder_shuffle(hunt);
	looks->hunt = hunt;
	looks->deadline = clock_now_ns() + hunt->bounds->open_ns;
	looks->pictures = calloc(files + 1, sizeof *looks->pictures);
	looks->answers = calloc(files + 1, sizeof *looks->answers);
	if (!looks->pictures || !looks->answers)
		return error_set(err, -ENOMEM, "no memory to look at %zu files", files);
	source_progress("looking at the headers of %zu files", files);
	const int code = team_run(&job, err);
	if (!code)
		folder_sum_up(looks, files);
	return code;
}

/* ---- findings --------------------------------------------------------------------------------- */

static double folder_weight(const struct folder_sums *sums)
{
	double weight = 0;
	for (int i = 0; i < FOLDER_OUTCOMES; i++)
		weight += sums->weight[i];
	return weight;
}

/* Pictures among the files, and their mean bytes, of a group or of all. */
static double folder_pictures_of(const struct folder_sums *sums, double files)
{
	return files * sums->weight[FOLDER_PICTURE] / folder_weight(sums);
}

static double folder_bytes_of(const struct folder_sums *sums)
{
	return sums->bytes / sums->weight[FOLDER_PICTURE];
}

static const char *folder_why(const struct folder_seen *seen)
{
	return seen->cut
		       ? "the tree could not be listed in time: at least so many, by those that were found first"
	       : seen->drawn
		       ? "estimated from folders that were drawn at random: the tree is too large to be listed in time"
		       : NULL;
}

static void folder_find(
	const struct folder_hunt *hunt, const struct folder_looks *looks, struct findings *out)
{
	struct folder_seen *const seen = hunt->seen;
	const double weight = folder_weight(&looks->all);
	double pictures[FOLDER_GROUPS], bytes[FOLDER_GROUPS];
	unsigned groups = 0;
	for (unsigned i = 0; i < FOLDER_GROUPS; i++) {
		const struct folder_sums *const sums = &looks->groups[i];
		if (!(sums->weight[FOLDER_PICTURE] > 0))
			continue;
		pictures[groups] = folder_pictures_of(
			sums, hunt->groups > 0 ? hunt->estimates[i] : seen->files);
		bytes[groups++] = folder_bytes_of(sums);
	}
	const double left = seen->drawn || seen->cut ? 1 : 1 - (double)looks->looked / seen->files;
	const struct folder_mean count =
		folder_spread(pictures, groups, folder_pictures_of(&looks->all, seen->files), left);
	const struct folder_mean mean =
		folder_spread(bytes, groups, folder_bytes_of(&looks->all), left);
	const enum finding_how how = seen->drawn || seen->cut ? FINDING_DERIVED : FINDING_MEASURED;
	seen->unknown = looks->all.weight[FOLDER_UNKNOWN] / weight;
	seen->unread = looks->all.weight[FOLDER_UNREAD] / weight;
	seen->empty = looks->all.weight[FOLDER_EMPTY] / weight;
	findings_add(out, FINDING_FILES, SOURCE_FOLDER, how, round(count.value), count.low,
		seen->cut ? NAN : count.high, folder_why(seen));
	findings_add(out, FINDING_FILE_BYTES, SOURCE_FOLDER, how, mean.value, mean.low, mean.high,
		folder_why(seen));
	findings_add(out, FINDING_FILES_OPENED, SOURCE_FOLDER, FINDING_MEASURED,
		(double)seen->opened, NAN, NAN, NULL);
	findings_add(out, FINDING_FILES_UNKNOWN, SOURCE_FOLDER, FINDING_MEASURED,
		seen->unknown + seen->empty, NAN, NAN, NULL);
	findings_add(out, FINDING_FILES_UNREAD, SOURCE_FOLDER, FINDING_MEASURED, seen->unread, NAN,
		NAN, NULL);
}

/* Of a data set without pictures: how many files there are of the kind that most are, and how large.  False: most are of no
 * known kind. */
static bool folder_find_other(
	const struct folder_hunt *hunt, const struct folder_looks *looks, struct findings *out)
{
	static const char why[] = "files that are no pictures, by their names and sizes";
	const double all = folder_weight(&looks->all);
	enum finding_data most = DATA_SAMPLES;
	for (enum finding_data data = DATA_SAMPLES; data <= DATA_SHARDS; data++)
		most = looks->other[data] > looks->other[most] ? data : most;
	if (!(looks->other[most] > all / 2))
		return false;
	out->data = most;
	if (most != DATA_SAMPLES)
		return true;
	findings_add(out, FINDING_FILES, SOURCE_FOLDER, FINDING_DERIVED,
		round(hunt->seen->files * looks->other[most] / all), NAN, NAN, why);
	findings_add(out, FINDING_FILE_BYTES, SOURCE_FOLDER, FINDING_DERIVED,
		looks->other_bytes[most] / looks->other[most], NAN, NAN, why);
	return true;
}

/* What stood in the way, where no picture was found. */
static int folder_refuse(const struct folder_hunt *hunt, const struct folder_looks *looks,
	const char *path, struct error *err)
{
	const struct folder_seen *const seen = hunt->seen;
	const double *const weight = looks->all.weight;
	if (looks->looked == 0)
		return error_set(err, -ENODATA,
			"no file in '%s' (folders that cannot be read: %llu, links to nothing: %llu)",
			path, (unsigned long long)seen->folders_unread,
			(unsigned long long)seen->dead_links);
	const double all = folder_weight(&looks->all) / 100;
	return error_set(err, -ENODATA,
		"none of the %zu files of '%s' that were looked at is a picture, nor of another known kind: %.0f %% are of no known format, %.0f %% cannot be read, %.0f %% are empty",
		looks->looked, path, weight[FOLDER_UNKNOWN] / all, weight[FOLDER_UNREAD] / all,
		weight[FOLDER_EMPTY] / all);
}

static int folder_judge(
	struct folder_hunt *hunt, const char *path, struct findings *out, struct error *err)
{
	struct folder_looks looks = {0};
	folder_count(hunt);
	int code = folder_look_at_all(hunt, &looks, err);
	const bool other = !code && looks.count == 0 && folder_find_other(hunt, &looks, out);
	if (!code && looks.count == 0 && !other)
		code = folder_refuse(hunt, &looks, path, err);
	if (!code && !other) {
		out->data = DATA_PICTURES;
		folder_find(hunt, &looks, out);
		code = strata_find(looks.pictures, looks.count, out->like, &out->like_count, err);
	}
	for (size_t i = 0; i < FOLDER_THREADS; i++)
		free(looks.heads[i]);
	free(looks.answers);
	free(looks.pictures);
	return code;
}

/* ---- a list of files -------------------------------------------------------------------------- */

static int folder_is_no_list(const char *path, struct error *err)
{
	return error_set(
		err, -ENOMSG, "'%s' is neither a folder nor a list of picture files", path);
}

/* A manifest of ours: what it says of files counts where they are not beside it. */
static int folder_take_manifest(struct folder_hunt *hunt, const char *path, struct error *err)
{
	struct dataset dataset = {0};
	json_t *header = NULL;
	const int code = manifest_read(path, &dataset, &header, err);
	for (size_t i = 0; !code && i < dataset.count && !hunt->no_memory; i++) {
		const struct sample *const sample = &dataset.samples[i];
		folder_offer(hunt, "", sample->path,
			(struct folder_file){.offset = dataset.offsets ? dataset.offsets[i] : 0,
				.bytes = sample->bytes,
				.width = sample->width,
				.height = sample->height,
				.format = sample->format});
	}
	json_decref(header);
	arena_close(dataset.arena);
	return code;
}

/* Takes the size off the end of a line "PATH SIZE"; the path may hold blanks.  0: there is none. */
static uint64_t folder_cut_size(char *line)
{
	char *at = line + strlen(line);
	while (at > line && isdigit((unsigned char)at[-1]))
		at--;
	if (!*at || at == line || (at[-1] != '\t' && at[-1] != ' '))
		return 0;
	const uint64_t bytes = strtoull(at, NULL, 10);
	while (at > line && (at[-1] == '\t' || at[-1] == ' '))
		at--;
	*at = '\0';
	return bytes;
}

/* Whether a line names a picture or a file that is there. */
static bool folder_line_is_file(const struct folder_hunt *hunt, const char *line)
{
	struct stat st;
	return image_format_of_name(line) != IMAGE_FORMAT_UNKNOWN ||
	       image_ending_without_codec(line) || fstatat(hunt->root, line, &st, 0) == 0;
}

static void folder_take_line(struct folder_hunt *hunt, char *line)
{
	struct stat st;
	struct folder_file file = {0};
	if (fstatat(hunt->root, line, &st, 0) != 0)
		file.bytes = folder_cut_size(line);
	folder_offer(hunt, "", line, file);
}

/* A line, without its end; false at the end of the list, or where it is none: too long, or binary. */
static bool folder_next_line(FILE *list, char line[FOLDER_LINE_MAX])
{
	if (!fgets(line, FOLDER_LINE_MAX, list))
		return false;
	const size_t length = strlen(line);
	if (length == 0 || (line[length - 1] != '\n' && length + 1 == FOLDER_LINE_MAX))
		return false;
	line[strcspn(line, "\r\n")] = '\0';
	return true;
}

static int folder_take_lines(
	struct folder_hunt *hunt, FILE *list, const char *path, struct error *err)
{
	char line[FOLDER_LINE_MAX];
	char first[FOLDER_LINE_MAX];
	hunt->listed = 0;
	hunt->most = hunt->bounds->entries;
	hunt->deadline = clock_now_ns() + hunt->bounds->list_ns;
	while (!hunt->no_memory && !hunt->seen->cut && folder_next_line(list, line)) {
		if (!*line)
			continue;
		(void)snprintf(first, sizeof first, "%s", line);
		(void)folder_cut_size(first);
		if (hunt->listed == 0 && !folder_line_is_file(hunt, line) &&
			!folder_line_is_file(hunt, first))
			return folder_is_no_list(path, err);
		folder_take_line(hunt, line);
		hunt->listed++;
		hunt->seen->entries++;
		hunt->seen->cut = folder_is_late(hunt);
	}
	return hunt->listed > 0 && (hunt->seen->cut || feof(list)) ? 0
								   : folder_is_no_list(path, err);
}

/* Whether its first line is that of a manifest of ours, of any version. */
static bool folder_is_manifest(FILE *list)
{
	enum { LOOK = 64 };
	char begin[LOOK + 1];
	const size_t got = fread(begin, 1, LOOK, list);
	begin[got] = '\0';
	rewind(list);
	return strstr(begin, "\"mlbench.manifest/") != NULL;
}

/* The folder that a list's names are relative to: its own. */
static int folder_open_beside(const char *path)
{
	const char *const slash = strrchr(path, '/');
	char *const folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	free(folder);
	return fd;
}

static int folder_take_list(struct folder_hunt *hunt, int fd, const char *path, struct error *err)
{
	FILE *const list = fdopen(fd, "r");
	hunt->root = folder_open_beside(path);
	if (!list)
		(void)close(fd);
	int code =
		!list || hunt->root < 0 ? error_set_errno(err, errno, "cannot read '%s'", path) : 0;
	if (!code)
		code = folder_is_manifest(list) ? folder_take_manifest(hunt, path, err)
						: folder_take_lines(hunt, list, path, err);
	if (list)
		(void)fclose(list);
	folder_weigh_offered(hunt, (double)hunt->offered);
	return code;
}

/* ---- either ------------------------------------------------------------------------------------ */

static void folder_hunt_tree(struct folder_hunt *hunt)
{
	if (!folder_walk(hunt) && !folder_draw(hunt))
		hunt->seen->cut = true;
	if (hunt->groups == 0)
		folder_weigh_offered(hunt, (double)hunt->offered);
}

int folder_look(struct findings *out, const char *path, const struct folder_bounds *bounds,
	struct folder_seen *seen, struct error *err)
{
	struct stat st;
	struct folder_hunt hunt = {.bounds = bounds, .seen = seen, .root = -1};
	*seen = (struct folder_seen){0};
	rng_init(&hunt.rng, bounds->seed, 0);
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0) {
		const int code = error_set_errno(err, errno, "cannot open '%s'", path);
		if (fd >= 0)
			(void)close(fd);
		return code;
	}
	const enum folder_kind kind = folder_kind_of_mode(st.st_mode);
	int code = kind == FOLDER_OTHER ? folder_is_no_list(path, err) : 0;
	if (code || kind == FOLDER_FOLDER)
		hunt.root = fd;
	if (!code && kind == FOLDER_FOLDER)
		folder_hunt_tree(&hunt);
	else if (!code)
		code = folder_take_list(&hunt, fd, path, err);
	if (!code && hunt.no_memory)
		code = error_set(err, -ENOMEM, "no memory to look at '%s'", path);
	if (!code)
		code = folder_judge(&hunt, path, out, err);
	folder_drop_files(&hunt, 0);
	free(hunt.files);
	if (hunt.root >= 0)
		(void)close(hunt.root);
	return code;
}

int findings_from_folder(struct findings *out, const char *path, struct error *err)
{
	struct folder_seen seen;
	return folder_look(out, path, &folder_bounds_usual, &seen, err);
}
