/* What all commands share: exit statuses, standard output as the product, and what names on the
 * command line mean. */
#include "harness/command/command.h"

#include "harness/base/array.h"
#include "harness/base/bounded.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/config/section_owner.h"
#include "harness/report/style.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REAL_DIGITS = 9 };

const struct command *command_find(const struct command *const *commands, const char *name)
{
	for (; *commands; commands++)
		if (strcmp((*commands)->name, name) == 0)
			return *commands;
	return NULL;
}

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
	case EEXIST:
	case E2BIG:
	case EILSEQ:
	case ENOMSG:
	case ERANGE:
	case ESRCH:
	case EDOM: /* ours: begun with other settings; ESTALE is an NFS server's */
	case ENODATA:
	case ENOTEMPTY:
	case ENAMETOOLONG:
	case ELOOP:
	case EOVERFLOW:
		return EXIT_STATUS_BAD_INPUT;
	default:
		return EXIT_STATUS_CANNOT;
	}
}

/* A file gets what is there; a terminal would obey a name with control characters. */
static int write_to_terminal(int fd, const struct buffer *text)
{
	struct buffer printable = {0};
	style_add_printable(text->data ? text->data : "", &printable);
	const int code =
		printable.failed
			? -ENOMEM
			: files_write_all(fd, printable.data ? printable.data : "", printable.size);
	buffer_release(&printable);
	return code;
}

static int command_write(int fd, const char *name, struct buffer *text, struct error *err)
{
	int code = -ENOMEM;
	if (!text->failed)
		code = isatty(fd) ? write_to_terminal(fd, text)
				  : files_write_all(fd, text->data ? text->data : "", text->size);
	if (text->failed)
		(void)error_set(err, code, "out of memory for the output");
	else if (code && code != -EPIPE)
		(void)error_set_errno(err, -code, "cannot write to %s", name);
	buffer_release(text);
	return code == 0 || code == -EPIPE ? EXIT_STATUS_DONE : EXIT_STATUS_CANNOT;
}

int command_print(struct buffer *text, struct error *err)
{
	return command_write(STDOUT_FILENO, "standard output", text, err);
}

int command_print_beside(struct buffer *text, struct error *err)
{
	return command_write(STDERR_FILENO, "standard error", text, err);
}

void command_add_json(json_t *value, struct buffer *out)
{
	char *text =
		value ? json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
	json_decref(value);
	out->failed = out->failed || !text;
	if (text)
		buffer_format(out, "%s\n", text);
	free(text);
}

int command_save_json(const char *folder, const char *file, const json_t *value, struct error *err)
{
	struct buffer text = {0};
	char *path = files_join(folder, file);
	command_add_json(json_incref((json_t *)(uintptr_t)value), &text);
	const int code = !path || text.failed ? error_set(err, -ENOMEM, "out of memory")
					      : files_write_atomic(path, text.data, text.size, err);
	free(path);
	buffer_release(&text);
	return code;
}

int command_print_json(const struct invocation *invocation, json_t *value, struct error *err)
{
	struct buffer out = {0};
	command_add_json(value, &out);
	if (!out.failed)
		atomic_store(invocation->document_written, true);
	return command_print(&out, err);
}

bool command_wants_json(const struct invocation *invocation)
{
	return options_given(&invocation->options, OPTION_JSON);
}

struct style command_style(const struct invocation *invocation)
{
	return style_for(STDOUT_FILENO, !options_given(&invocation->options, OPTION_NO_COLOR));
}

/* --- configurations by name ------------------------------------------------------------------- */

/* The shipped configurations that begin as the word does, or else the one that nearly has its name: "'a' or 'b'".  Cuts the
 * list up. */
static void config_nearest(const char *name, char *list, struct buffer *out)
{
	enum { NAMES_MAX = 256, NEAR_MAX = 3 };
	const char *names[NAMES_MAX];
	const size_t length = strlen(name);
	size_t count = 0;
	size_t near = 0;
	char *rest;
	for (char *word = strtok_r(list, " ", &rest); word && count < NAMES_MAX;
		word = strtok_r(NULL, " ", &rest)) {
		const char *slash = strrchr(word, '/');
		names[count++] = word;
		if (length > 1 && near < NEAR_MAX &&
			(strncmp(word, name, length) == 0 ||
				strncmp(slash ? slash + 1 : word, name, length) == 0))
			buffer_format(out, "%s'%s'", near++ ? " or " : "", word);
	}
	const char *similar = near ? NULL : suggest_nearest(name, names, count);
	if (similar)
		buffer_format(out, "'%s'", similar);
}

static int config_refuse_name(const char *name, int code, struct error *err)
{
	struct buffer list = {0};
	struct buffer near = {0};
	config_place_names(&list);
	if (list.data)
		config_nearest(name, list.data, &near);
	if (near.data)
		code = error_set(err, code,
			"no configuration '%.80s' (did you mean %s? 'mlbench list configs' lists them)",
			name, near.data);
	buffer_release(&near);
	buffer_release(&list);
	return code;
}

int config_place_read(struct config *config, const struct invocation *invocation, const char *name,
	struct error *err)
{
	int code = 0;
	if (name) {
		char place[PATH_MAX];
		const char *path = config_place_find(name, place, sizeof place);
		config_init(config);
		code = config_read_file(config, path, err);
		if (code == -EINVAL)
			(void)section_owners_refuse(path, name, SECTION_WANTS_CONFIG, err);
		if (code == -ENOENT && path == name)
			code = config_refuse_name(name, code, err);
	}
	for (size_t i = 0; i < invocation->options.set_count && !code; i++)
		code = config_set(config, invocation->options.sets[i], err);
	const char *const folders[] = {config_text(config, KEY_DATASET_PATH),
		config_text(config, KEY_CHECKPOINT_PATH), config_text(config, KEY_EVALUATE_PATH)};
	if (code)
		return code;
	return (invocation->ask_paths ? invocation->ask_paths : paths_answer)(
		folders, COUNT(folders), invocation->stop, err);
}

/* --- where --out goes ------------------------------------------------------------------------- */

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

int product_write(const char *out, const char *name, struct buffer *text, struct error *err)
{
	if (!out || strcmp(out, "-") == 0)
		return command_print(text, err);
	char *path = product_is_folder(out) ? files_join(out, name) : strdup(out);
	const int code = path && !text->failed
				 ? write_path(path, text, err)
				 : error_set(err, -ENOMEM, "out of memory for the output");
	free(path);
	buffer_release(text);
	return command_status(code);
}

int product_write_words(const char *out, const char *name, struct buffer *text, struct error *err)
{
	struct buffer printable = {0};
	if ((!out || strcmp(out, "-") == 0) && isatty(STDOUT_FILENO))
		return command_print(text, err); /* a second time would spoil the colours */
	style_add_printable(text->data ? text->data : "", &printable);
	printable.failed = printable.failed || text->failed;
	buffer_release(text);
	return product_write(out, name, &printable, err);
}
