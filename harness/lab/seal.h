/* Keeping what is planted from being read by the way (libsodium).
 *
 * What a lab drew is sealed twice: under a key that is made from the student's secret, with which the program opens it to
 * measure, and as a sealed box for the teacher's public key, which only the teacher opens.  A code over the state says
 * whether somebody changed the file by hand.
 *
 * What that is worth: the student's secret lies on the student's own account (lab_book.h), because the program must measure
 * without a teacher.  So nobody reads the plant by opening a file, a result or a report; but who takes this program apart, runs it in
 * a debugger or watches /proc finds it.  docs/workshop/LABS.md says so, too. */
#ifndef MLBENCH_LAB_SEAL_H
#define MLBENCH_LAB_SEAL_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SEAL_SECRET_TEXT = 48, /* 32 bytes as base64, with its end */
	SEAL_CODE_TEXT = 65,   /* 32 bytes in hex, with its end */
	SEAL_TEXT_MAX = 1 << 16,
};

/* Before any other.  -ENOSYS: the library cannot get random numbers. */
int seal_begin(struct error *err);

void seal_make_secret(char out[SEAL_SECRET_TEXT]);
void seal_make_pair(char public_text[SEAL_SECRET_TEXT], char secret_text[SEAL_SECRET_TEXT]);
/* Whether text is 32 bytes as base64. */
bool seal_is_key(const char *text);

/* A number that (secret, words) decides, for a draw. */
int seal_number(const char *secret, const char *words, uint64_t *number, struct error *err);

/* Text under a student's secret, as base64 in fresh memory; and back.  -EBADMSG: another secret, or changed by hand. */
int seal_close(const char *secret, const char *text, char **sealed, struct error *err);
int seal_open(const char *secret, const char *sealed, char **text, struct error *err);

/* The same for a teacher: with the public key, and with the secret key. */
int seal_close_for(const char *public_key, const char *text, char **sealed, struct error *err);
int seal_open_box(const char *secret_key, const char *sealed, char **text, struct error *err);

/* Of text, under a student's secret. */
int seal_code(const char *secret, const char *text, char out[SEAL_CODE_TEXT], struct error *err);
bool seal_code_equal(const char *a, const char *b);

#endif
