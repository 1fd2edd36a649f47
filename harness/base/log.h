/* Chatter for people goes to stderr through here; stdout belongs to the product.
 * A progress line is rewritten in place on a terminal and printed at most every 5 s in a pipe.
 *
 * Every message goes through here, and what commands print through command_print:
 * the two places where names of files and configurations lose their control characters, in
 * messages always, in what is printed where stdout is a terminal. Colours come after that: the
 * live line is made of pieces with an ink each (log_progress_pieces), and what style.h puts into
 * a text is a mark with a random number of the process, which a name cannot guess. */
#ifndef MLBENCH_BASE_LOG_H
#define MLBENCH_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* Errors alone; those and warnings; ... */
enum log_level { LOG_LEVEL_ERRORS, LOG_LEVEL_QUIET, LOG_LEVEL_NORMAL, LOG_LEVEL_VERBOSE };

void log_set_level(enum log_level level); /* before threads start */
/* One of several processes whose messages come out at one place: "mlbench: error: rank 3 on gpu-07: ...".  Before threads start. */
void log_set_speaker(const char *name);
bool log_is_terminal(void); /* stderr is one, and TERM is not "dumb" */

/* A message is one line: control characters (line ends, too) and bytes that are no UTF-8 come out as '?', whatever a file is
 * called; what does not fit into 1 KiB is cut off.
 * "mlbench: error: ..." and "mlbench: warning: ..." */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_detail(const char *format, ...) __attribute__((format(printf, 1, 2))); /* verbose only */

void log_lines(const char *text); /* each of its lines as log_info has it */

/* A piece of the progress line.  Its text is made plain like any message; its colour is put around it afterwards, by name, so that no
 * text can bring one. */
enum log_ink { LOG_INK_PLAIN, LOG_INK_ACCENT };
struct log_piece {
	enum log_ink ink; /* plain where nothing is to be coloured */
	const char *text;
};

/* On a terminal no wider than that. */
void log_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_progress_pieces(const struct log_piece *pieces, size_t count);
void log_progress_end(void); /* clears the line; harmless when there is none */

/* What the end that a signal asks for will wait for, in a few words: a constant; NULL: nothing. */
void log_set_wait(const char *what);
/* The answer to that signal, from its handler: one line, unless the level is quiet. */
void log_interrupted(void);
/* For a process whose parent asks it to end by a signal: no such line, because no user has interrupted anything. */
void log_hush_interrupted(void);

#endif
