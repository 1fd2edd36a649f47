/* The program's entry: the table of commands, signals, and the only exit. */
#include "harness/accept/plan.h"
#include "harness/base/array.h"
#include "harness/base/bounded.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/command/command.h"
#include "harness/fit/case.h"
#include "harness/lab/lab_book.h"
#include "harness/live/terminal_guard.h"
#include "harness/measure/environment.h"
#include "harness/measure/proc_text.h"
#include "harness/report/style.h"
#include "workloads/image/codec.h"
#include "workloads/sample/sample.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* The first asks for a clean stop, the second does not wait for it. */
static void main_on_signal(int number)
{
	(void)number;
	const int saved = errno;
	if (!atomic_exchange(&stop, true)) {
		if (!terminal_guard_is_armed()) /* which says so itself */
			log_interrupted();
		errno = saved;
		return;
	}
	terminal_guard_restore();
	if (atomic_load(&wants_json) && !atomic_exchange(&document_written, true) &&
		write(STDOUT_FILENO, interrupted_document, sizeof interrupted_document - 1) < 0)
		_exit(EXIT_STATUS_CANNOT);
	_exit(EXIT_STATUS_INTERRUPTED);
}

/* A terminal that goes away: kernel and shell both tell of it, so that a second one is no impatience. */
static void on_hangup(int number)
{
	(void)number;
	atomic_store(&stop, true);
}

static void set_up_signals(void)
{
	struct sigaction action = {.sa_handler = main_on_signal, .sa_flags = SA_RESTART};
	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	action.sa_handler = on_hangup;
	struct sigaction before;
	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup */
		(void)sigaction(SIGHUP, &action, NULL);
	action.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &action, NULL);
	(void)sigaction(
		SIGXFSZ, &action, NULL); /* a write beyond 'ulimit -f' is an error message */
}

/* --- a main thread that no signal reaches ------------------------------------------------------- */

/* Storage that does not answer holds a thread inside the kernel, where its signals wait for it.  A thread that touches
 * nothing takes them in its place. */
enum { WATCH_LOOK_MS = 500, WATCH_LOOKS_TAKE = 4, WATCH_LOOKS_END = 20 };

/* How often the main thread gave up its core; NAN: not known. */
static double watch_main_switches(void)
{
	char path[64];
	char text[4096];
	double voluntary = (double)NAN;
	(void)snprintf(path, sizeof path, "/proc/self/task/%d", (int)getpid());
	const int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0 && proc_text_at(folder, text, sizeof text, "status") == 0)
		(void)parse_field_number(text, "voluntary_ctxt_switches", &voluntary);
	if (folder >= 0)
		(void)close(folder);
	return voluntary;
}

/* Takes one of them, if the main thread has not. */
static void watch_take(void)
{
	const struct timespec none = {0};
	sigset_t ends;
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGTERM);
	const int number = sigtimedwait(&ends, NULL, &none);
	if (number > 0)
		main_on_signal(number);
}

static bool watch_sees_signal(void)
{
	sigset_t pending;
	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM));
}

static void *watch_main(void *unused)
{
	int pending = 0; /* looks at which a signal waited */
	int stuck = 0;   /* looks since one was taken, at which the main thread had not run */
	double before = (double)NAN;
	for (;;) {
		clock_sleep_until_ns(clock_now_ns() + WATCH_LOOK_MS * NS_PER_MS);
		pending = watch_sees_signal() ? pending + 1 : 0;
		if (pending >= WATCH_LOOKS_TAKE || (pending > 0 && stuck > 0)) {
			watch_take();
			before = watch_main_switches();
			stuck = 1;
		} else if (stuck > 0) {
			stuck = watch_main_switches() == before ? stuck + 1 : 0;
		}
		if (stuck > WATCH_LOOKS_END) {
			log_error(
				"a call into the kernel does not return, as of storage that does not answer: "
				"ended without it");
			main_on_signal(SIGTERM);
		}
	}
	return unused;
}

/* Without it, signals wait for as long as the storage. */
static void set_up_watch(void)
{
	pthread_t thread;
	pthread_attr_t attributes;
	sigset_t all;
	sigset_t before;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	if (pthread_attr_init(&attributes) == 0) {
		(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		(void)pthread_create(&thread, &attributes, watch_main, NULL);
		(void)pthread_attr_destroy(&attributes);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* As many open files as may be had without asking anybody: the usual 1024 are few for deep queues. */
static void set_up_limits(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
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
	const int code = paths_answer(paths, count, &stop, err);
	free(paths);
	return code;
}

static int main_run_command(const struct command *command, int argc, char **argv, struct error *err)
{
	struct invocation invocation = {.commands = commands,
		.command = command,
		.stop = &stop,
		.document_written = &document_written};
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
		if (options_given(&invocation.options, OPTION_NO_COLOR))
			style_refuse_colour();
		if (options_given(&invocation.options, OPTION_QUIET))
			log_set_level(LOG_LEVEL_QUIET);
		else if (options_given(&invocation.options, OPTION_VERBOSE))
			log_set_level(LOG_LEVEL_VERBOSE);
		code = check_arguments(&invocation, err);
		if (!code)
			code = check_paths(&invocation, err);
		if (!code && !command->bounded)
			set_up_watch();
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

static void print_error_document(const struct error *err, int status)
{
	json_t *text = json_string(err->text);
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
	set_up_signals();
	set_up_limits();
	store_patience.stop = &stop;
	atomic_store(&wants_json, find_json(argc, argv));
	const int status = codecs_check(&err) || sample_kinds_check(&err)
				   ? EXIT_STATUS_CANNOT
				   : dispatch(argc, argv, &err);
	log_progress_end();
	if (status && err.text[0])
		log_error("%s", err.text);
	if (atomic_load(&wants_json) && !atomic_exchange(&document_written, true))
		print_error_document(&err, status);
	return status;
}
