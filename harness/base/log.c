/* Chatter on stderr; every message is one write, so that threads do not mix lines.  File names, configurations and libraries
 * have their say in messages, a terminal obeys control characters, and so none of a message's own gets there. */
#include "harness/base/log.h"

#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE_BYTES = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum log_level level_now = LOG_LEVEL_NORMAL;
static bool progress_shown;
static uint64_t progress_last_ns;
static _Atomic(const char *) waits_for;
static atomic_bool hushed;

void log_set_level(enum log_level level)
{
	level_now = level;
}

bool log_is_terminal(void)
{
	const char *term = getenv("TERM");
	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* What cannot be shown is lost. */
static void put_line(const char *text, size_t length)
{
	(void)files_write_all(STDERR_FILENO, text, length);
}

static void emit(const char *before, const char *after, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));
static void emit(const char *before, const char *after, const char *format, va_list args)
{
	char line[LINE_BYTES];
	size_t used = (size_t)snprintf(line, sizeof line, "%s", before);
	(void)vsnprintf(line + used, sizeof line - used, format, args);
	utf8_make_plain(line + used, '?');
	used = strlen(line);
	const size_t tail = strlen(after);
	if (used + tail >= sizeof line)
		used = sizeof line - tail - 1;
	memcpy(line + used, after, tail + 1);
	put_line(line, used + tail);
}

static char speaker[96];

void log_set_speaker(const char *name)
{
	(void)snprintf(speaker, sizeof speaker, "%s", name);
}

static void message(enum log_level least, const char *prefix, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));
static void message(enum log_level least, const char *prefix, const char *format, va_list args)
{
	if (level_now < least)
		return;
	(void)pthread_mutex_lock(&lock);
	char before[64 + sizeof speaker];
	(void)snprintf(before, sizeof before, "%s%s%s%s", progress_shown ? "\r\033[K" : "", prefix,
		speaker, *speaker ? ": " : "");
	progress_shown = false;
	emit(before, "\n", format, args);
	(void)pthread_mutex_unlock(&lock);
}

#define MESSAGE(least, prefix)                        \
	do {                                          \
		va_list args;                         \
		va_start(args, format);               \
		message(least, prefix, format, args); \
		va_end(args);                         \
	} while (0)

void log_error(const char *format, ...)
{
	MESSAGE(LOG_LEVEL_ERRORS, "mlbench: error: ");
}

void log_warn(const char *format, ...)
{
	MESSAGE(LOG_LEVEL_QUIET, "mlbench: warning: ");
}

void log_info(const char *format, ...)
{
	MESSAGE(LOG_LEVEL_NORMAL, "");
}

void log_detail(const char *format, ...)
{
	MESSAGE(LOG_LEVEL_VERBOSE, "");
}

void log_lines(const char *text)
{
	while (*text) {
		const size_t length = strcspn(text, "\n");
		log_info("%.*s", (int)length, text);
		text += length + (text[length] == '\n');
	}
}

/* Of the terminal; 0: it does not say. */
static size_t terminal_columns(void)
{
	struct winsize size;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* The piece's characters up to *room columns, each of which is taken as one wide. */
static void add_piece(struct buffer *line, const struct log_piece *piece, size_t *room)
{
	static const char *const inks[] = {[LOG_INK_PLAIN] = "", [LOG_INK_ACCENT] = "\033[36m"};
	struct buffer plain = {0};
	utf8_add_plain(&plain, piece->text, "?");
	const char *text = plain.data ? plain.data : "";
	size_t shown = 0;
	for (; text[shown] && *room > 0; --*room)
		shown += utf8_character(text + shown);
	buffer_text(line, inks[piece->ink]);
	buffer_add(line, text, shown);
	buffer_text(line, *inks[piece->ink] ? "\033[0m" : "");
	buffer_release(&plain);
}

static void put_progress(const struct log_piece *pieces, size_t count, bool terminal)
{
	struct buffer line = {0};
	const size_t columns = terminal ? terminal_columns() : 0;
	size_t room = columns > 0 ? columns : LINE_BYTES;
	buffer_text(&line, terminal ? "\r\033[K" : "");
	for (size_t i = 0; i < count; i++)
		add_piece(&line, &pieces[i], &room);
	buffer_text(&line, terminal ? "" : "\n");
	if (!line.failed)
		put_line(line.data, line.size);
	buffer_release(&line);
}

void log_progress_pieces(const struct log_piece *pieces, size_t count)
{
	if (level_now < LOG_LEVEL_NORMAL)
		return;
	(void)pthread_mutex_lock(&lock);
	const bool terminal = log_is_terminal();
	const uint64_t now = clock_now_ns();
	if (terminal || progress_last_ns == 0 || now - progress_last_ns >= 5 * NS_PER_S) {
		put_progress(pieces, count, terminal);
		progress_last_ns = now;
		progress_shown = terminal;
	}
	(void)pthread_mutex_unlock(&lock);
}

void log_progress(const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	log_progress_pieces(&(struct log_piece){.text = text}, 1);
}

void log_progress_end(void)
{
	(void)pthread_mutex_lock(&lock);
	if (progress_shown)
		put_line("\r\033[K", 4);
	progress_shown = false;
	(void)pthread_mutex_unlock(&lock);
}

void log_set_wait(const char *what)
{
	atomic_store(&waits_for, what);
}

void log_hush_interrupted(void)
{
	atomic_store(&hushed, true);
}

/* No lock and no formatting, since this may interrupt either. */
void log_interrupted(void)
{
	const char *const what = atomic_load(&waits_for);
	const char *const parts[] = {"mlbench: interrupted: ", what ? "waiting for " : "stopping",
		what ? what : "", "; once more quits at once\n"};
	if (level_now < LOG_LEVEL_NORMAL || atomic_load(&hushed))
		return;
	if (isatty(STDERR_FILENO))
		put_line("\n", 1); /* behind the ^C, or a line of progress */
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		put_line(parts[i], strlen(parts[i]));
}
