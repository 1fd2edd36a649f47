/* What all commands share: exit statuses, standard output as the product, and what names on the
 * command line mean. */
#include "harness/command/command.h"

#include "harness/accept/plan.h"
#include "harness/base/array.h"
#include "harness/base/bounded.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/fit/case.h"
#include "harness/lab/lab_book.h"
#include "harness/report/style.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REAL_DIGITS = 9, RUNS_LOOKED_AT = 64 };

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
	case ESTALE:
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

int command_print(struct buffer *text, struct error *err)
{
	int code = -ENOMEM;
	if (!text->failed)
		code = isatty(STDOUT_FILENO) ? write_to_terminal(text)
					     : files_write_all(STDOUT_FILENO,
						       text->data ? text->data : "", text->size);
	if (text->failed)
		(void)error_set(err, code, "out of memory for the output");
	else if (code && code != -EPIPE)
		(void)error_set_errno(err, -code, "cannot write to standard output");
	buffer_release(text);
	return code == 0 || code == -EPIPE ? EXIT_STATUS_DONE : EXIT_STATUS_CANNOT;
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
		if (code == -EINVAL && plan_is(path))
			code = error_set(err, code,
				"'%s' is a plan of acceptance checks, and no configuration: 'mlbench accept %s' "
				"runs it, with --dry-run it only shows what would run",
				name, name);
		if (code == -ENOENT && path == name)
			code = config_refuse_name(name, code, err);
	}
	for (size_t i = 0; i < invocation->options.set_count && !code; i++)
		code = config_set(config, invocation->options.sets[i], err);
	const char *const folders[] = {config_text(config, KEY_DATASET_PATH),
		config_text(config, KEY_CHECKPOINT_PATH), config_text(config, KEY_EVALUATE_PATH)};
	return code ? code : paths_answer(folders, COUNT(folders), invocation->stop, err);
}

/* --- saved results by name -------------------------------------------------------------------- */

/* The newest sweep among the runs of a benchmark that has something measured; -ENOENT: none of them is one. */
static int open_newest_sweep(
	struct record *record, const char *root, size_t *passed_over, struct error *err)
{
	char **folders;
	size_t count;
	int code = record_find_runs(root, &folders, &count, NULL);
	if (code)
		return code;
	code = -ENOENT;
	for (size_t i = 0; i < count && i < RUNS_LOOKED_AT && code; i++) {
		code = record_open(record, folders[i], err);
		if (!code && record->grid.points > 1 && record->entry_count > 0) {
			*passed_over = i;
			break;
		}
		record_release(record);
		code = -ENOENT;
	}
	record_runs_free(folders, count);
	return code;
}

/* What else people take for a result, and what makes a result of it. */
static int saved_explain(const char *name, const char *path, int code, struct error *err)
{
	struct stat st;
	const size_t length = strlen(path);
	char *observed = files_join(path, "observe.json");
	const bool is_observed = (observed && access(observed, F_OK) == 0) ||
				 (length > 12 && strcmp(path + length - 12, "observe.json") == 0);
	free(observed);
	if (is_observed)
		return error_set(err, code,
			"'%s' is what 'mlbench observe' saw of a job, and no result: 'mlbench fit' makes a case of it, "
			"and 'mlbench run' a result of the case",
			name);
	if (case_is(path))
		return error_set(err, code,
			"'%s' is a case, and no result: 'mlbench run %s' makes one of its twin, and 'mlbench reproduce' measures "
			"it beside what was reported",
			name, name);
	if (length > 4 && strcmp(path + length - 4, ".ini") == 0 && stat(path, &st) == 0 &&
		S_ISREG(st.st_mode))
		return error_set(err, code,
			"'%s' is a configuration, and no result: 'mlbench run %s' makes one", name,
			name);
	return code;
}

/* passed_over: newer results than the sweep that was asked for. */
static int saved_find_named(struct record *record, const char *name, enum saved_choice choice,
	size_t *passed_over, struct error *err)
{
	char *path = access(name, F_OK) == 0 || strchr(name, '/')
			     ? strdup(name)
			     : files_join(RESULTS_FOLDER, name);
	int code = path ? 0 : error_set(err, -ENOMEM, "out of memory");
	*passed_over = 0;
	if (!code && !strchr(name, '/') && access(path, F_OK) != 0)
		code = error_set(err, -ENOENT, "no such result: '%s' (nor '" RESULTS_FOLDER "/%s')",
			name, name);
	else if (!code && (choice != SAVED_SWEEP_FIRST || record_is_run(path) ||
				  open_newest_sweep(record, path, passed_over, err) != 0))
		code = record_open(record, path, err);
	if (code == -ENOENT && path && access(path, F_OK) == 0)
		code = saved_explain(name, path, code, err);
	free(path);
	if (!code && (code = lab_book_may_open(record, err)) != 0)
		record_release(record);
	return code;
}

int saved_find(struct record *record, const char *name, struct error *err)
{
	size_t passed_over;
	return saved_find_named(record, name, SAVED_NEWEST, &passed_over, err);
}

int saved_open(struct record *record, const char *name, enum saved_choice choice, struct error *err)
{
	size_t passed_over;
	struct buffer text = {0};
	const int code = saved_find_named(record, name, choice, &passed_over, err);
	if (code)
		return code;
	record_describe(record, &text);
	if (passed_over > 0)
		buffer_format(&text, " (the newest sweep; %zu newer result%s passed over)",
			passed_over, passed_over == 1 ? "" : "s");
	log_info("result: %s", text.data ? text.data : record->folder);
	buffer_release(&text);
	return 0;
}

static bool is_file_of_result(const char *name)
{
	static const char *const files[] = {"points.jsonl", "summary.json", "points.csv"};
	const char *slash = strrchr(name, '/');
	const char *file = slash ? slash + 1 : name;
	for (size_t i = 0; i < COUNT(files); i++)
		if (strcmp(file, files[i]) == 0)
			return true;
	return false;
}

bool saved_is_meant(const char *name)
{
	struct stat st;
	if (stat(name, &st) == 0)
		return S_ISDIR(st.st_mode) || is_file_of_result(name);
	char *path = strchr(name, '/') ? NULL : files_join(RESULTS_FOLDER, name);
	const bool there = path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	free(path);
	return there;
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
