/* Text of a user's, made fit to be passed on: what looks like a path, a file, a host, a person, an address or a key is replaced
 * by a word that says what stood there.  It looks at shapes and at the names of this user and this node; a project's or a
 * person's name that is a plain word cannot be told from other words, so whoever passes the text on reads it first. */
#ifndef MLBENCH_FIT_SCRUB_H
#define MLBENCH_FIT_SCRUB_H

#include "harness/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

enum scrub_kind {
	SCRUB_PATH,
	SCRUB_FILE,
	SCRUB_HOST,
	SCRUB_USER,
	SCRUB_ADDRESS, /* e-mail */
	SCRUB_URL,
	SCRUB_SECRET, /* a password, a key, any long random word */
	SCRUB_KINDS
};

enum { SCRUB_INPUT_BYTES_MAX = 1 << 16, SCRUB_NAMES_MAX = 16, SCRUB_NAME_BYTES = 64 };

/* Names that are replaced wherever they stand as a word. */
struct scrub_names {
	struct {
		char text[SCRUB_NAME_BYTES];
		enum scrub_kind kind; /* SCRUB_USER, SCRUB_HOST */
	} of[SCRUB_NAMES_MAX];
	size_t count;
};

struct scrubbed {
	size_t replaced[SCRUB_KINDS];
	bool shortened; /* there was more than SCRUB_INPUT_BYTES_MAX of it */
};

/* The user's and the node's, as this process finds them. */
void scrub_names_here(struct scrub_names *out);

/* Appends size bytes of text, which need be no UTF-8, scrubbed: UTF-8 without control and invisible characters, '\n' between
 * lines. */
void scrub_text(const char *text, size_t size, const struct scrub_names *names, struct buffer *out,
	struct scrubbed *did);

/* Appends "2 paths, 1 host name"; nothing where nothing was replaced. */
void scrub_words(const struct scrubbed *did, struct buffer *out);

#endif
