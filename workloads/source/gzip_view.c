/* Inflating by zlib, a piece of the file at a time. */
#include "workloads/source/gzip_view.h"

#include "workloads/dataset/container.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	GZIP_INPUT_BYTES = 64 * 1024,
	GZIP_PASS_BYTES = 64 * 1024,
	GZIP_WINDOW_BITS = 15 + 16, /* the largest window; a gzip header and trailer */
	GZIP_AT_ONCE = 1 << 30,     /* zlib counts in 32 bits */
};

struct gzip_view {
	struct store *store;
	union store_file file;
	z_stream inflate;
	uint64_t read;     /* bytes of the file that are here, or were */
	uint64_t position; /* in the inflated stream */
	uint64_t member;   /* where in it the member began that is being inflated */
	uint64_t good, again, packed;
	bool within; /* a member */
	int failed;  /* what each read gives from here on */
	char why[128];
	uint8_t input[GZIP_INPUT_BYTES];
	uint8_t passed[GZIP_PASS_BYTES];
};

bool gzip_view_wanted(const struct config *config)
{
	const struct container_ops *const container = container_of_config(config);
	return container && container->inflates;
}

int gzip_view_open(struct gzip_view **out, struct store *store, const char *path)
{
	struct gzip_view *const view = calloc(1, sizeof *view);
	*out = NULL;
	if (!view)
		return -ENOMEM;
	if (inflateInit2(&view->inflate, GZIP_WINDOW_BITS) != Z_OK) {
		free(view);
		return -ENOMEM;
	}
	view->store = store;
	const int code = store->ops->file_open(store, path, false, &view->file);
	if (code) {
		(void)inflateEnd(&view->inflate);
		free(view);
		return code;
	}
	*out = view;
	return 0;
}

void gzip_view_close(struct gzip_view *view)
{
	if (!view)
		return;
	(void)inflateEnd(&view->inflate);
	view->store->ops->file_close(view->store, view->file);
	free(view);
}

const char *gzip_view_why(const struct gzip_view *view)
{
	return view->why;
}

uint64_t gzip_view_good(const struct gzip_view *view)
{
	return view->good;
}

uint64_t gzip_view_again(const struct gzip_view *view)
{
	return view->again;
}

static void gzip_restart(struct gzip_view *view)
{
	view->read = view->position = view->member = 0;
	view->inflate.avail_in = 0;
	view->within = false;
	view->failed = 0;
}

static ssize_t gzip_damaged(
	struct gzip_view *view, uint64_t good, const char *why, const char *more)
{
	(void)snprintf(view->why, sizeof view->why, "%s%s", why, more);
	view->good = good;
	view->failed = -EBADMSG;
	return view->failed;
}

/* There is input, or it is the file's end: 1, 0, or a negative errno. */
static ssize_t gzip_fill(struct gzip_view *view)
{
	if (view->inflate.avail_in > 0)
		return 1;
	const ssize_t n = view->store->ops->read(
		view->store, view->file, view->read, view->input, sizeof view->input);
	if (n <= 0)
		return n;
	view->read += (uint64_t)n;
	view->packed += (uint64_t)n;
	view->inflate.next_in = view->input;
	view->inflate.avail_in = (uInt)n;
	return 1;
}

/* Begins with the next member: 1; 0: there is none. */
static ssize_t gzip_begin_member(struct gzip_view *view)
{
	ssize_t there = gzip_fill(view);
	const bool first = view->read == view->inflate.avail_in;
	while (there > 0 && !first && *view->inflate.next_in == 0) {
		view->inflate.next_in++;
		view->inflate.avail_in--;
		there = gzip_fill(view);
	}
	if (there <= 0)
		return there;
	if (inflateReset2(&view->inflate, GZIP_WINDOW_BITS) != Z_OK)
		return gzip_damaged(view, view->position, "zlib cannot be reset", "");
	view->within = true;
	view->member = view->position;
	return 1;
}

/* NULL, or why no more of it is inflated. */
static const char *gzip_refuse(const struct gzip_view *view)
{
	const uint64_t taken = view->read - view->inflate.avail_in;
	if (view->position > GZIP_BYTES_MOST)
		return "it inflates to more than 64 GiB, which is refused";
	if (view->position > GZIP_RATIO_FROM && view->position / GZIP_RATIO_MOST > taken)
		return "it inflates to more than 200 times its size, which is refused";
	return NULL;
}

/* A wrong trailer: zlib says that of bytes that it has handed out. */
static bool gzip_sum_is_wrong(const struct gzip_view *view)
{
	const char *const text = view->inflate.msg ? view->inflate.msg : "";
	return strcmp(text, "incorrect data check") == 0 ||
	       strcmp(text, "incorrect length check") == 0;
}

static ssize_t gzip_take_failure(struct gzip_view *view)
{
	const char *const text = view->inflate.msg ? view->inflate.msg : "no memory for zlib";
	if (gzip_sum_is_wrong(view))
		return gzip_damaged(view, view->member,
			"its checksum or length is not that of its bytes: all of its samples may be wrong",
			"");
	if (view->position == 0 && strcmp(text, "incorrect header check") == 0)
		return gzip_damaged(view, 0, "it is not packed by gzip", "");
	return gzip_damaged(view, view->position, "its compressed bytes are damaged: ", text);
}

/* Up to `size` bytes, at least one; 0 at the end of the stream; or a negative errno. */
static ssize_t gzip_inflate(struct gzip_view *view, uint8_t *to, size_t size)
{
	while (!view->failed) {
		ssize_t there = view->within ? 1 : gzip_begin_member(view);
		if (there > 0 && (there = gzip_fill(view)) == 0)
			return gzip_damaged(
				view, view->position, "its compressed bytes are cut short", "");
		if (there <= 0)
			return there;
		const uInt room = size < GZIP_AT_ONCE ? (uInt)size : GZIP_AT_ONCE;
		view->inflate.next_out = to;
		view->inflate.avail_out = room;
		const int status = inflate(&view->inflate, Z_NO_FLUSH);
		const ssize_t n = room - view->inflate.avail_out;
		view->position += (uint64_t)n;
		view->within = status != Z_STREAM_END;
		const char *const refused = gzip_refuse(view);
		if (refused)
			return gzip_damaged(view, 0, refused, "");
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			(void)gzip_take_failure(view); /* told behind these bytes */
		if (n > 0)
			return n;
	}
	return view->failed;
}

ssize_t gzip_view_read(struct gzip_view *view, uint64_t offset, void *buffer, size_t size)
{
	size_t got = 0;
	if (offset < view->position)
		gzip_restart(view);
	if (view->position == 0)
		view->again += offset;
	while (view->position < offset) {
		const uint64_t left = offset - view->position;
		const ssize_t n = gzip_inflate(view, view->passed,
			left < sizeof view->passed ? (size_t)left : sizeof view->passed);
		if (n <= 0)
			return n;
	}
	while (got < size) {
		const ssize_t n = gzip_inflate(view, (uint8_t *)buffer + got, size - got);
		if (n < 0 && got == 0)
			return n;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* ---- several ---------------------------------------------------------------------------------- */

struct gzip_kept {
	const char *path; /* NULL: none */
	struct gzip_view *view;
};

bool gzip_views_open(struct gzip_views *views)
{
	*views = (struct gzip_views){.list = calloc(GZIP_VIEWS, sizeof *views->list)};
	return views->list;
}

static void gzip_kept_close(struct gzip_views *views, struct gzip_kept *kept)
{
	views->again += kept->view ? gzip_view_again(kept->view) : 0;
	gzip_view_close(kept->view);
	*kept = (struct gzip_kept){0};
}

uint64_t gzip_views_close(struct gzip_views *views)
{
	for (size_t i = 0; views->list && i < GZIP_VIEWS; i++)
		gzip_kept_close(views, &views->list[i]);
	free(views->list);
	const uint64_t again = views->again;
	*views = (struct gzip_views){0};
	return again;
}

/* Names are told apart by where they are: all samples of a file have the same. */
static struct gzip_kept *gzip_kept_find(struct gzip_views *views, const char *path)
{
	for (size_t i = 0; i < GZIP_VIEWS; i++)
		if (views->list[i].path == path)
			return &views->list[i];
	return NULL;
}

int gzip_views_read(struct gzip_views *views, struct store *store, const char *path,
	uint64_t offset, void *buffer, size_t size)
{
	struct gzip_kept *kept = gzip_kept_find(views, path);
	if (!kept) {
		kept = &views->list[views->next];
		views->next = (views->next + 1) % GZIP_VIEWS;
		gzip_kept_close(views, kept);
		const int code = gzip_view_open(&kept->view, store, path);
		if (code)
			return code;
		kept->path = path;
	}
	for (size_t got = 0; got < size;) {
		const uint64_t before = kept->view->packed;
		const ssize_t n = gzip_view_read(
			kept->view, offset + got, (uint8_t *)buffer + got, size - got);
		views->packed += kept->view->packed - before;
		if (n < 0 && !store_repeats(n))
			return (int)n;
		if (n == 0)
			return -ENODATA;
		got += n > 0 ? (size_t)n : 0;
	}
	return 0;
}
