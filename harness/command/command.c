/* What all commands share: exit statuses, and standard output as the product. */
#include "harness/command/command.h"

#include "harness/base/files.h"
#include "harness/report/style.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REAL_DIGITS = 9 };

int command_status(int code)
{
	switch (-code) {
	case 0:
		return EXIT_STATUS_DONE;
	case EINTR:
		return EXIT_STATUS_INTERRUPTED;
	case EINVAL:
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case EACCES:
	case EPERM:
	case EROFS:
	case EEXIST:
	case ERANGE:
	case ESTALE:
	case ENODATA:
	case ENOTEMPTY:
	case ENAMETOOLONG:
	case ELOOP:
	case EOVERFLOW:
		return EXIT_STATUS_BAD_INPUT;
	case ENOTSUP:
	case ENODEV:
	case ENOSYS:
	case EBUSY:
		return EXIT_STATUS_CANNOT;
	default:
		return EXIT_STATUS_FAILED;
	}
}

/* A file gets what is there; a terminal would obey a name with control characters. */
static int write_to_terminal(const struct buffer *text)
{
	struct buffer printable = {0};
	style_add_printable(text->data ? text->data : "", &printable);
	const int code = printable.failed
				 ? -ENOMEM
				 : files_write_all(STDOUT_FILENO,
					   printable.data ? printable.data : "", printable.size);
	buffer_release(&printable);
	return code;
}

int command_print(const struct buffer *text, struct error *err)
{
	if (text->failed) {
		(void)error_set(err, -ENOMEM, "out of memory for the output");
		return EXIT_STATUS_FAILED;
	}
	const int code = isatty(STDOUT_FILENO) ? write_to_terminal(text)
					       : files_write_all(STDOUT_FILENO,
							 text->data ? text->data : "", text->size);
	if (code == 0 || code == -EPIPE)
		return EXIT_STATUS_DONE;
	(void)error_set_errno(err, -code, "cannot write to standard output");
	return EXIT_STATUS_FAILED;
}

int command_print_json(const struct invocation *invocation, json_t *value, struct error *err)
{
	char *text =
		value ? json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
	json_decref(value);
	struct buffer out = {.failed = !text};
	if (text) {
		buffer_text(&out, text);
		buffer_text(&out, "\n");
	}
	free(text);
	if (!out.failed)
		atomic_store(invocation->document_written, true);
	const int status = command_print(&out, err);
	buffer_release(&out);
	return status;
}

bool command_wants_json(const struct invocation *invocation)
{
	return options_given(&invocation->options, OPTION_JSON);
}

struct style command_style(const struct invocation *invocation)
{
	return style_for(STDOUT_FILENO, !options_given(&invocation->options, OPTION_NO_COLOR));
}
