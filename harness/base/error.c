/* The text of failures. */
#include "harness/base/error.h"

#include <stdio.h>
#include <string.h>

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

int error_set_errno(struct error *err, int saved_errno, const char *format, ...)
{
	if (err) {
		va_list args;
		va_start(args, format);
		(void)vsnprintf(err->text, sizeof err->text, format, args);
		va_end(args);
		const size_t used = strlen(err->text);
		(void)snprintf(
			err->text + used, sizeof err->text - used, ": %s", strerror(saved_errno));
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
