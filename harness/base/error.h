/* One way to report a failure: a negative errno as the return value, and a
 * sentence for the user in the caller's struct error.  Messages are lowercase,
 * without a full stop, and quote their subject: "cannot open 'a.ini': ...". */
#ifndef MLBENCH_BASE_ERROR_H
#define MLBENCH_BASE_ERROR_H

#include <stdarg.h>

enum { ERROR_TEXT_BYTES = 512 };

struct error {
	char text[ERROR_TEXT_BYTES];
};

/* Exit statuses of the program (docs/ARCHITECTURE.md). */
enum exit_status {
	EXIT_STATUS_DONE = 0,
	EXIT_STATUS_FAILED = 1,    /* a check, point, gate or prediction failed; never a fault */
	EXIT_STATUS_BAD_INPUT = 2, /* the input was wrong */
	EXIT_STATUS_CANNOT = 3,    /* something could not be measured, read or written */
	EXIT_STATUS_INTERRUPTED = 130, /* Ctrl-C; what was measured is kept */
};

/* Fills err (may be NULL) and returns code, so that a failure is one statement:
 *     return error_set(err, -ENOENT, "no such file '%s'", path);               */
int error_set(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* strerror's text; for EMFILE and EFBIG with the limit of this process that was met. */
enum { ERROR_REASON_BYTES = 128 };
const char *error_reason(int saved_errno, char out[ERROR_REASON_BYTES]);

/* As error_set with code = -saved_errno; appends ": " and error_reason's text. */
int error_set_errno(struct error *err, int saved_errno, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "format: " in front of what err holds already; returns code. */
int error_prefix(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__ /* it cannot see from another file that a failure's code comes back */
#define error_set(err, code, ...) ((error_set)(err, code, __VA_ARGS__), (code))
#endif

#endif
