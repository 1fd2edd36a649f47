/* Text to the place that is meant. */
#include "harness/command/product.h"

#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is no file cannot be replaced by one. */
static int write_through(const char *path, const struct buffer *text, struct error *err)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	int code = fd < 0 ? -errno : 0;
	for (size_t done = 0; done < text->size && !code;) {
		const ssize_t n = write(fd, text->data + done, text->size - done);
		if (n < 0 && errno != EINTR)
			code = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0 && close(fd) != 0 && !code)
		code = -errno;
	return code && code != -EPIPE ? error_set_errno(err, -code, "cannot write '%s'", path) : 0;
}

static int write_path(const char *path, const struct buffer *text, struct error *err)
{
	struct stat st;
	const bool there = stat(path, &st) == 0;
	if (there && !S_ISREG(st.st_mode))
		return write_through(path, text, err);
	char *target = there ? realpath(path, NULL) : NULL;
	const int code = files_write_atomic(
		target ? target : path, text->data ? text->data : "", text->size, err);
	free(target);
	if (!code)
		log_info("wrote %s", path);
	return code;
}

bool product_is_folder(const char *path)
{
	struct stat st;
	const size_t length = strlen(path);
	return (length > 0 && path[length - 1] == '/') ||
	       (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

int product_write(const char *out, const char *name, const struct buffer *text, struct error *err)
{
	if (!out || strcmp(out, "-") == 0)
		return command_print(text, err);
	if (text->failed) {
		(void)error_set(err, -ENOMEM, "out of memory for the output");
		return EXIT_STATUS_FAILED;
	}
	char *path = product_is_folder(out) ? files_join(out, name) : strdup(out);
	const int code = path ? write_path(path, text, err)
			      : error_set(err, -ENOMEM, "out of memory for the output");
	free(path);
	return command_status(code);
}
