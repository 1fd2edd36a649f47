/* The text of failures. */
#include "harness/base/error.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

int(error_set)(struct error *err, int code, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		(void)vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
	}
	return code;
}

const char *error_reason(int saved_errno, char out[ERROR_REASON_BYTES])
{
	struct rlimit limit;
	const char *reason = strerror(saved_errno);
	if (saved_errno == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
		(void)snprintf(out, ERROR_REASON_BYTES, "%s (the limit is %ju: ulimit -n)", reason,
			(uintmax_t)limit.rlim_cur);
	else if (saved_errno == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
		 limit.rlim_cur != RLIM_INFINITY)
		(void)snprintf(out, ERROR_REASON_BYTES, "%s (the limit is %ju bytes: ulimit -f)",
			reason, (uintmax_t)limit.rlim_cur);
	else
		(void)snprintf(out, ERROR_REASON_BYTES, "%s", reason);
	return out;
}

int error_set_errno(struct error *err, int saved_errno, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		(void)vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		const size_t used = strlen(err->text);
		char reason[ERROR_REASON_BYTES];
		(void)snprintf(err->text + used, sizeof err->text - used, ": %s",
			error_reason(saved_errno, reason));
	}
	return -saved_errno;
}

int error_prefix(struct error *err, int code, const char *format, ...)
{
	if (err) {
		char tail[ERROR_TEXT_BYTES];
		memcpy(tail, err->text, sizeof tail);
		va_list args;
		va_start(args, format);
		(void)vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		const size_t used = strlen(err->text);
		(void)snprintf(err->text + used, sizeof err->text - used, ": %s", tail);
	}
	return code;
}
