/* The program's entry: the table of commands, signals, and the only exit. */
#include "harness/accept/plan.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/launcher.h"
#include "harness/base/log.h"
#include "harness/base/program.h"
#include "harness/base/text.h"
#include "harness/command/command.h"
#include "harness/command/party.h"
#include "harness/fit/case.h"
#include "harness/lab/lab_book.h"
#include "harness/live/front.h"
#include "harness/live/storage_watch.h"
#include "harness/live/terminal_guard.h"
#include "harness/live/watch.h"
#include "harness/measure/environment.h"
#include "harness/report/report_ranks.h"
#include "harness/report/style.h"
#include "workloads/backend/backend.h"
#include "workloads/image/codec.h"
#include "workloads/sample/sample.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { ARENAS_MAX = 2 };

static const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "harness/command/commands.def"
#undef COMMAND
	NULL};

static const struct section_owner *const section_owner_list[] = {
	&case_owner, &lab_owner, &plan_owner, NULL};

static atomic_bool stop;
static atomic_bool wants_json;
static atomic_bool document_written;

/* What stdout gets when a second signal ends the program at once. */
static const char interrupted_document[] =
	"{\"schema\": \"mlbench.error/1\", \"error\": \"interrupted twice\", \"exit_status\": 130}\n";

static void print_error_document(const char *why, int status);

enum { LAST_FILES = 256, LEAVE_STUCK_S = 1, LEAVE_S = 5 };

/* Locks on results are let go, too, since a thread that stays keeps its files open. */
static void main_say_last(int status, const char *why)
{
	terminal_guard_restore();
	log_error("%s", why);
	if (atomic_load(&wants_json) && !atomic_exchange(&document_written, true))
		print_error_document(why, status);
	for (int fd = STDERR_FILENO + 1; fd < LAST_FILES; fd++)
		(void)flock(fd, LOCK_UN);
}

static void main_end_stuck(int status)
{
	front_leave(status, LEAVE_STUCK_S);
	_exit(status);
}

/* Of one signal two may come, its own and that of the front. */
static bool main_counts_signal(const siginfo_t *info)
{
	static atomic_int own;
	static atomic_int handed_on;
	const bool front = front_sent(info);
	const int same = atomic_fetch_add(front ? &handed_on : &own, 1);
	return same >= atomic_load(front ? &own : &handed_on);
}

/* The first asks for a clean stop, the second does not wait for it. */
static void main_on_signal(int number, siginfo_t *info, void *unused)
{
	(void)number;
	(void)unused;
	const int saved = errno;
	if (!main_counts_signal(info))
		return;
	if (!atomic_exchange(&stop, true)) {
		if (!terminal_guard_is_armed()) /* which says so itself */
			log_interrupted();
		errno = saved;
		return;
	}
	terminal_guard_restore();
	if (atomic_load(&wants_json) && !atomic_exchange(&document_written, true) &&
		write(STDOUT_FILENO, interrupted_document, sizeof interrupted_document - 1) < 0) {
		front_leave(EXIT_STATUS_CANNOT, LEAVE_STUCK_S);
		_exit(EXIT_STATUS_CANNOT);
	}
	front_leave(EXIT_STATUS_INTERRUPTED, LEAVE_STUCK_S);
	_exit(EXIT_STATUS_INTERRUPTED);
}

static void main_take_signal(const siginfo_t *info)
{
	siginfo_t copy = *info;
	main_on_signal(info->si_signo, &copy, NULL);
}

static const struct storage_watch_calls storage_calls = {
	.stop = &stop, .take = main_take_signal, .say = main_say_last, .end = main_end_stuck};

/* A terminal that goes away: kernel and shell both tell of it, so that a second one is no impatience. */
static void on_hangup(int number)
{
	(void)number;
	atomic_store(&stop, true);
}

static void set_up_signals(void)
{
	struct sigaction action = {
		.sa_sigaction = main_on_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	action.sa_flags = SA_RESTART;
	action.sa_handler = on_hangup;
	struct sigaction before;
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
		(void)sigaction(SIGHUP, &action, NULL);
	action.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &action, NULL);
	(void)sigaction(
		SIGXFSZ, &action, NULL); /* a write beyond 'ulimit -f' is an error message */
}

/* A closed standard stream would be given to the next file that is opened, and be written over. */
static bool set_up_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return false;
	return true;
}

static int refuse_command(const char *name, struct error *err)
{
	const char *names[sizeof commands / sizeof commands[0]];
	size_t count = 0;
	for (; commands[count]; count++)
		names[count] = commands[count]->name;
	const char *near = suggest_nearest(name, names, count);
	if (near)
		(void)error_set(
			err, -EINVAL, "unknown command '%s' (did you mean '%s'?)", name, near);
	else
		(void)error_set(
			err, -EINVAL, "unknown command '%s'; 'mlbench help' lists them", name);
	return EXIT_STATUS_BAD_INPUT;
}

/* Before the options are parsed: a mistake among them is to be told as JSON, too. */
static bool find_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

static int check_arguments(const struct invocation *invocation, struct error *err)
{
	const struct command *command = invocation->command;
	const size_t count = invocation->options.argument_count;
	if (count < command->arguments_min)
		return error_set(err, -EINVAL, "'mlbench %s' needs %s; see 'mlbench help %s'",
			command->name, command->arguments, command->name);
	if (count > command->arguments_max)
		return error_set(err, -EINVAL,
			"'mlbench %s' does not take '%s'; see 'mlbench help %s'", command->name,
			invocation->options.arguments[command->arguments_max], command->name);
	return 0;
}

/* Whether every path that the command line names answers. */
static int check_paths(const struct invocation *invocation, struct error *err)
{
	static const enum option_id named[] = {OPTION_OUT, OPTION_RESUME, OPTION_PATH,
		OPTION_BASELINE, OPTION_JUDGE, OPTION_EXPECT, OPTION_COMPLAINT_FILE, OPTION_DIR};
	const struct options *options = &invocation->options;
	const char **paths = calloc(options->argument_count + COUNT(named) + 1, sizeof *paths);
	size_t count = 0;
	if (!paths)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < options->argument_count; i++)
		paths[count++] = options->arguments[i];
	for (size_t i = 0; i < COUNT(named); i++)
		if (named[i] != OPTION_PATH || !invocation->command->bounded)
			paths[count++] = options->values[named[i]];
	if (invocation->command->options & OPTION_BIT(OPTION_OUT) && !options->values[OPTION_OUT])
		paths[count++] = RESULTS_FOLDER;
	const int code = storage_watch_paths(paths, count, &stop, err);
	free(paths);
	return code;
}

/* Where a launcher started several of us. */
static const struct party_calls *main_party(void)
{
	struct launcher launcher;
	if (!launcher_find(&launcher) || launcher.count < 2)
		return NULL;
	program_be_rank(launcher.rank);
	return &party_of_ranks;
}

/* Open MPI gives each rank a terminal of its own for stdout alone, as wide as the user's, which may lead to a file. */
static bool main_lacks_terminal(void)
{
	struct launcher launcher;
	return launcher_find(&launcher) && !isatty(STDERR_FILENO);
}

static int main_run_command(const struct command *command, int argc, char **argv, struct error *err)
{
	struct invocation invocation = {.commands = commands,
		.command = command,
		.stop = &stop,
		.view = &watch_calls,
		.party = main_party(),
		.document_written = &document_written,
		.ask_paths = storage_watch_paths,
		.check_backend = backend_validate};
	int code = options_parse(&invocation.options, command->options | OPTIONS_COMMON, argc,
		(const char *const *)argv, err);
	int status;
	if (code) {
		status = command_status(code);
	} else if (options_given(&invocation.options, OPTION_HELP)) {
		struct invocation help = invocation;
		help.command = &command_help;
		help.options.arguments = (const char *[]){command->name};
		help.options.argument_count = 1;
		status = command_help.run(&help, err);
	} else {
		if (options_given(&invocation.options, OPTION_NO_COLOR) || main_lacks_terminal())
			style_refuse_colour();
		if (main_lacks_terminal())
			style_use_width_of(STDOUT_FILENO);
		if (options_given(&invocation.options, OPTION_QUIET))
			log_set_level(LOG_LEVEL_QUIET);
		else if (options_given(&invocation.options, OPTION_VERBOSE))
			log_set_level(LOG_LEVEL_VERBOSE);
		code = check_arguments(&invocation, err);
		if (!code)
			storage_watch_begin(&storage_calls);
		if (!code)
			code = check_paths(&invocation, err);
		if (!code && invocation.options.values[OPTION_NODE])
			code = node_name_give(invocation.options.values[OPTION_NODE], err);
		status = code ? command_status(code) : command->run(&invocation, err);
	}
	options_release(&invocation.options);
	return status;
}

static int dispatch(int argc, char **argv, struct error *err)
{
	const char *first = argc > 1 ? argv[1] : "--help";
	if (strcmp(first, "--version") == 0) {
		struct buffer text = {0};
		buffer_text(&text, "mlbench " MLBENCH_VERSION "\n");
		return command_print(&text, err);
	}
	if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
		const int status = main_run_command(&command_help, 0, argv, err);
		return argc > 1 ? status : EXIT_STATUS_BAD_INPUT;
	}
	const struct command *command = command_find(commands, first);
	return command ? main_run_command(command, argc - 2, argv + 2, err)
		       : refuse_command(first, err);
}

static void print_error_document(const char *why, int status)
{
	json_t *text = json_string(why);
	json_t *document = json_pack("{s:s, s:o, s:i}", "schema", "mlbench.error/1", "error",
		text ? text : json_string("the reason is no valid text"), "exit_status", status);
	char *line = document ? json_dumps(document, 0) : NULL;
	struct buffer out = {0};
	buffer_format(&out, "%s\n", line ? line : "{\"schema\": \"mlbench.error/1\"}");
	(void)command_print(&out, NULL);
	free(line);
	json_decref(document);
}

int main(int argc, char **argv)
{
	struct error err = {0};
	(void)setlocale(LC_CTYPE, "");
	(void)mallopt(M_ARENA_MAX, ARENAS_MAX); /* arenas per thread would blur the memory bound */
	if (!set_up_streams())
		return EXIT_STATUS_CANNOT;
	section_owners_register(section_owner_list);
	report_ranks_register(&report_of_ranks);
	set_up_signals();
	program_raise_limits();
	store_patience.stop = &stop;
	atomic_store(&wants_json, find_json(argc, argv));
	const int status = codecs_check(&err) || sample_kinds_check(&err)
				   ? EXIT_STATUS_CANNOT
				   : dispatch(argc, argv, &err);
	log_progress_end();
	if (status && err.text[0])
		log_error("%s", err.text);
	if (atomic_load(&wants_json) && !atomic_exchange(&document_written, true))
		print_error_document(err.text, status);
	front_leave(status, LEAVE_S);
	return status;
}
