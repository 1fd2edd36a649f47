/* ncurses, on descriptors of our own.  Signals only leave a byte in a pipe; what they mean is done by the thread that shows. */
#include "harness/live/screen.h"

#include "harness/live/terminal_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#if defined(MLBENCH_WITH_ncursesw)
/* After the system's headers: it defines short names as macros. */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
#undef columns
#undef lines

enum { INKS = INK_ACCENT + 1, LEAVE_BYTES = 256, ESCAPE_MS = 25 };

struct terminal {
	FILE *out, *in;
	int guard_fd;
	struct termios before;
	TERMINAL *asked; /* what was looked up before there was a screen; NULL */
	SCREEN *screen;
	bool colour, utf8;
	int rows, columns;
	struct cell *shown; /* (shown_rows, shown_columns) what the screen has; owned */
	int shown_rows, shown_columns;
	struct sigaction old_window, old_stop, old_continue;
};

/* --- signals ------------------------------------------------------------------------------------ */

enum { WAKE_WINDOW = 'w', WAKE_STOP = 'z', WAKE_CONTINUE = 'c', WAKE_CALLER = 'x' };

/* Made once and never closed: a handler may be writing to it at any moment. */
static int wake_pipe[2] = {-1, -1};

static int make_wake_pipe(void)
{
	return wake_pipe[0] < 0 && pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

static void wake(char why)
{
	const int saved = errno;
	/* Full: it will look anyway. */
	if (wake_pipe[1] >= 0 && write(wake_pipe[1], &why, 1) < 0)
		errno = saved;
	errno = saved;
}

static void terminal_on_signal(int number)
{
	wake(number == SIGWINCH ? WAKE_WINDOW : number == SIGTSTP ? WAKE_STOP : WAKE_CONTINUE);
}

static void catch_signals(struct terminal *t)
{
	struct sigaction action = {.sa_handler = terminal_on_signal, .sa_flags = SA_RESTART};
	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGWINCH, &action, &t->old_window);
	(void)sigaction(SIGTSTP, &action, &t->old_stop);
	(void)sigaction(SIGCONT, &action, &t->old_continue);
}

static void leave_signals(const struct terminal *t)
{
	(void)sigaction(SIGWINCH, &t->old_window, NULL);
	(void)sigaction(SIGTSTP, &t->old_stop, NULL);
	(void)sigaction(SIGCONT, &t->old_continue, NULL);
}

/* --- opening ------------------------------------------------------------------------------------ */

/* Stdout's terminal, else stderr's, else the process's own. */
static int open_device(int flags)
{
	static const int streams[] = {STDOUT_FILENO, STDERR_FILENO};
	char name[256];
	for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++)
		if (isatty(streams[i]) && ttyname_r(streams[i], name, sizeof name) == 0) {
			const int fd = open(name, flags | O_NOCTTY | O_CLOEXEC);
			if (fd >= 0)
				return fd;
		}
	return open("/dev/tty", flags | O_NOCTTY | O_CLOEXEC);
}

static int open_files(struct terminal *t, struct error *err)
{
	const int out = open_device(O_RDWR);
	if (out < 0)
		return error_set(err, -ENOTTY, "there is no terminal");
	const int in = fcntl(out, F_DUPFD_CLOEXEC, 0);
	t->out = fdopen(out, "w");
	t->in = in >= 0 ? fdopen(in, "r") : NULL;
	t->guard_fd = open_device(O_RDWR | O_NONBLOCK);
	if (!t->out || !t->in || t->guard_fd < 0)
		return error_set_errno(err, errno, "cannot open the terminal");
	if (tcgetattr(out, &t->before))
		return error_set_errno(err, errno, "cannot ask the terminal for its modes");
	return 0;
}

static int check_terminal(struct terminal *t, struct error *err)
{
	const char *name = getenv("TERM");
	int found = 0;
	if (!name || !*name || strcmp(name, "dumb") == 0)
		return error_set(err, -ENOTSUP, "TERM is %s", name && *name ? "dumb" : "not set");
	if (!terminal_is_ours(t))
		return error_set(err, -ENOTTY, "the run is in the background");
	if (setupterm(NULL, fileno(t->out), &found) != OK || found != 1)
		return error_set(err, -ENOTSUP, "TERM=%.60s is unknown here", name);
	t->asked = cur_term;
	const char *place = tigetstr("cup");
	if (!place || place == (char *)-1)
		return error_set(err, -ENOTSUP, "TERM=%.60s cannot move its cursor", name);
	return 0;
}

/* Appends a capability without its padding ("$<5>"). */
static size_t add_capability(char *out, size_t used, const char *name)
{
	const char *text = tigetstr(name);
	if (!text || text == (char *)-1)
		return used;
	for (; *text && used < LEAVE_BYTES; text++) {
		const char *end = text[0] == '$' && text[1] == '<' ? strchr(text, '>') : NULL;
		if (end)
			text = end;
		else
			out[used++] = *text;
	}
	return used;
}

static void arm(const struct terminal *t)
{
	static const char *const leave[] = {"sgr0", "cnorm", "rmkx", "rmcup"};
	char bytes[LEAVE_BYTES];
	size_t used = 0;
	for (size_t i = 0; i < sizeof leave / sizeof leave[0]; i++)
		used = add_capability(bytes, used, leave[i]);
	terminal_guard_arm(t->guard_fd, &t->before, bytes, used);
}

static const short ink_colours[INKS] = {[INK_GOOD] = COLOR_GREEN,
	[INK_WARN] = COLOR_YELLOW,
	[INK_BAD] = COLOR_RED,
	[INK_ACCENT] = COLOR_CYAN};

static void start_colours(struct terminal *t)
{
	t->colour = t->colour && has_colors() && start_color() == OK;
	if (!t->colour)
		return;
	const short ground = use_default_colors() == OK ? -1 : COLOR_BLACK;
	for (int i = 0; i < INKS; i++)
		if (ink_colours[i])
			(void)init_pair((short)i, ink_colours[i], ground);
}

static void set_modes(void)
{
	(void)cbreak();
	(void)noecho();
	(void)curs_set(0);
	(void)keypad(stdscr, true);
	(void)nodelay(stdscr, true);
	(void)set_escdelay(ESCAPE_MS);
}

static void terminal_take_size(struct terminal *t)
{
	struct winsize size;
	if (ioctl(fileno(t->out), TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
		(void)resizeterm(size.ws_row, size.ws_col);
	getmaxyx(stdscr, t->rows, t->columns);
	t->shown_rows = 0; /* what was cut off is gone */
}

static int start_screen(struct terminal *t, struct error *err)
{
	const int code = make_wake_pipe();
	if (code)
		return error_set_errno(err, -code, "cannot make a pipe");
	/* Before ncurses, which then leaves these signals alone. */
	catch_signals(t);
	arm(t);
	t->screen = newterm(NULL, t->out, t->in);
	if (!t->screen) {
		terminal_guard_disarm();
		leave_signals(t);
		return error_set(err, -ENOTSUP, "cannot set up the terminal");
	}
	(void)set_term(t->screen);
	start_colours(t);
	set_modes();
	terminal_take_size(t);
	return 0;
}

static void close_files(struct terminal *t)
{
	if (t->asked)
		(void)del_curterm(t->asked);
	if (t->out)
		(void)fclose(t->out);
	if (t->in)
		(void)fclose(t->in);
	if (t->guard_fd >= 0)
		(void)close(t->guard_fd);
	free(t->shown);
	free(t);
}

int terminal_open(struct terminal **out, bool colour, struct error *err)
{
	struct terminal *t = calloc(1, sizeof *t);
	*out = NULL;
	if (!t)
		return error_set(err, -ENOMEM, "out of memory");
	t->guard_fd = -1;
	int code = open_files(t, err);
	if (!code)
		code = check_terminal(t, err);
	if (!code) {
		const struct style style = style_for(fileno(t->out), colour);
		t->colour = style.colour;
		t->utf8 = style.utf8;
		code = start_screen(t, err);
	}
	if (code)
		close_files(t);
	else
		*out = t;
	return code;
}

void terminal_close(struct terminal *t)
{
	if (!t)
		return;
	(void)endwin();
	(void)tcsetattr(t->guard_fd, TCSADRAIN, &t->before);
	terminal_guard_disarm();
	delscreen(t->screen);
	leave_signals(t);
	close_files(t);
}

/* --- showing ------------------------------------------------------------------------------------ */

void terminal_size(const struct terminal *t, int *rows, int *columns)
{
	*rows = t->rows;
	*columns = t->columns;
}

bool terminal_is_utf8(const struct terminal *t)
{
	return t->utf8;
}

bool terminal_is_ours(const struct terminal *t)
{
	const pid_t group = tcgetpgrp(fileno(t->out));
	return group < 0 || group == getpgrp();
}

static attr_t attribute_of(const struct terminal *t, enum ink ink)
{
	if (ink == INK_BOLD)
		return A_BOLD;
	if (ink == INK_DIM)
		return t->colour ? A_DIM : A_NORMAL;
	if (!t->colour)
		return ink == INK_BAD ? A_REVERSE : A_NORMAL;
	return ink == INK_PLAIN ? A_NORMAL : (attr_t)COLOR_PAIR(ink);
}

/* Cells of one ink at a time. */
static void show_row(const struct terminal *t, const struct canvas *canvas, int row)
{
	wchar_t text[CANVAS_COLUMNS_MAX + 1];
	const struct cell *cells = &canvas->cells[(size_t)row * (size_t)canvas->columns];
	for (int begin = 0; begin < canvas->columns;) {
		int end = begin;
		int used = 0;
		for (; end < canvas->columns && cells[end].ink == cells[begin].ink; end++)
			if (cells[end].character)
				text[used++] = cells[end].character;
		text[used] = L'\0';
		(void)attrset((int)attribute_of(t, cells[begin].ink));
		(void)mvaddnwstr(row, begin, text, used);
		begin = end;
	}
}

/* False: what the screen has is not known, or of another size, and all of it is shown. */
static bool is_shown(struct terminal *t, const struct canvas *canvas)
{
	if (t->shown_rows == canvas->rows && t->shown_columns == canvas->columns)
		return true;
	const size_t cells = (size_t)canvas->rows * (size_t)canvas->columns;
	struct cell *shown = realloc(t->shown, cells * sizeof *shown);
	t->shown = shown ? shown : t->shown;
	t->shown_rows = shown ? canvas->rows : 0;
	t->shown_columns = shown ? canvas->columns : 0;
	return false;
}

/* Most rows are as they were: curses is told of the others only. */
void terminal_show(struct terminal *t, const struct canvas *canvas)
{
	const bool known = is_shown(t, canvas);
	const size_t row_cells = (size_t)canvas->columns;
	if (!known)
		(void)erase();
	for (int row = 0; row < canvas->rows && row < t->rows; row++) {
		const size_t at = (size_t)row * row_cells;
		const size_t bytes = row_cells * sizeof *canvas->cells;
		if (known && memcmp(t->shown + at, canvas->cells + at, bytes) == 0)
			continue;
		if (known) {
			(void)move(row, 0);
			(void)clrtoeol();
		}
		show_row(t, canvas, row);
		if (t->shown_rows > 0)
			memcpy(t->shown + at, canvas->cells + at, bytes);
	}
	(void)attrset(A_NORMAL);
	(void)refresh();
}

/* --- events ------------------------------------------------------------------------------------- */

static enum terminal_event event_of_key(int key)
{
	switch (key) {
	case 'q':
	case 'Q':
		return TERMINAL_QUIT;
	case 'p':
	case 'P':
	case ' ':
		return TERMINAL_PAUSE;
	case '?':
	case 'h':
	case 'H':
		return TERMINAL_HELP;
	case KEY_RESIZE:
		return TERMINAL_REDRAW;
	default:
		return TERMINAL_NOTHING;
	}
}

static enum terminal_event event_of_wake(struct terminal *t)
{
	char why[64];
	const ssize_t n = read(wake_pipe[0], why, sizeof why);
	if (n <= 0)
		return TERMINAL_NOTHING;
	if (memchr(why, WAKE_STOP, (size_t)n))
		return TERMINAL_SUSPEND;
	const bool resumed = memchr(why, WAKE_CONTINUE, (size_t)n) != NULL;
	if (!resumed && !memchr(why, WAKE_WINDOW, (size_t)n))
		return TERMINAL_WOKEN;
	if (terminal_is_ours(t)) {
		if (resumed)
			(void)reset_prog_mode(); /* the shell had set its own modes */
		/* A terminal breaks the lines of a picture that was on its way while it shrank: where they
		 * are now, curses does not know. */
		(void)clearok(curscr, true);
	}
	terminal_take_size(t);
	return TERMINAL_REDRAW;
}

enum terminal_event terminal_wait(struct terminal *t, int timeout_ms)
{
	struct pollfd files[] = {{.fd = wake_pipe[0], .events = POLLIN},
		{.fd = terminal_is_ours(t) ? fileno(t->in) : -1, .events = POLLIN}};
	if (poll(files, 2, timeout_ms) <= 0)
		return TERMINAL_NOTHING;
	if (files[0].revents)
		return event_of_wake(t);
	const int key = getch();
	if (key == ERR && files[1].revents & (POLLHUP | POLLERR))
		return TERMINAL_GONE;
	return event_of_key(key);
}

void terminal_wake(void)
{
	wake(WAKE_CALLER);
}

/* The signal stops this thread only a moment after it was sent: until the process goes on nothing is drawn. */
static void wait_for_continue(void)
{
	struct pollfd file = {.fd = wake_pipe[0], .events = POLLIN};
	char why[64];
	for (;;) {
		const ssize_t n = read(wake_pipe[0], why, sizeof why);
		if (n > 0 && memchr(why, WAKE_CONTINUE, (size_t)n))
			return;
		if (n < 0)
			(void)poll(&file, 1, -1);
	}
}

void terminal_suspend(struct terminal *t)
{
	char stale[64];
	(void)endwin();
	while (read(wake_pipe[0], stale, sizeof stale) > 0)
		continue;
	(void)kill(getpid(), SIGSTOP);
	wait_for_continue();
	if (terminal_is_ours(t)) {
		(void)reset_prog_mode();
		(void)clearok(curscr, true);
	}
	terminal_take_size(t);
}

#endif
