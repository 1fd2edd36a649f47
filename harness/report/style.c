/* Terminal capabilities and the smallest pieces of text. */
#include "harness/report/style.h"

#include "harness/base/clock.h"
#include "harness/base/text.h"

#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

static int style_fallback =
	-1; /* a descriptor that has a width where the one that is asked for has none */

void style_use_width_of(int fd)
{
	style_fallback = fd;
}

static int style_width_of(int fd)
{
	const char *columns = getenv("COLUMNS");
	int width = columns ? (int)strtol(columns, NULL, 10) : 0;
	struct winsize size;
	if (width <= 0 && (ioctl(fd, TIOCGWINSZ, &size) == 0 ||
				  ioctl(style_fallback, TIOCGWINSZ, &size) == 0))
		width = size.ws_col;
	if (width <= 0)
		width = STYLE_WIDTH_DEFAULT;
	if (width < STYLE_WIDTH_LEAST)
		return STYLE_WIDTH_LEAST;
	return width > STYLE_WIDTH_MOST ? STYLE_WIDTH_MOST : width;
}

static bool colour_refused;

void style_refuse_colour(void)
{
	colour_refused = true;
}

struct style style_for(int fd, bool colour_allowed)
{
	const char *term = getenv("TERM");
	const char *no_color = getenv("NO_COLOR");
	const bool refused = colour_refused || (no_color && *no_color);
	const bool able = isatty(fd) && term && strcmp(term, "dumb") != 0;
	return (struct style){
		.width = style_width_of(fd),
		.colour = colour_allowed && able && !refused,
		.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
	};
}

/* Each is ESC, the number of this process, and what a terminal gets after ESC [. */
enum { KEY_DIGITS = 16, MARK_BYTES = 48 };

static pthread_once_t marks_once = PTHREAD_ONCE_INIT;
static char marks_key[1 + KEY_DIGITS + 1], ink_marks[INK_COUNT][MARK_BYTES], end_mark[MARK_BYTES],
	shade_marks[STYLE_SHADES][MARK_BYTES];

static void make_mark(char mark[MARK_BYTES], const char *sequence)
{
	(void)snprintf(mark, MARK_BYTES, "%s%s", *sequence ? marks_key : "", sequence);
}

static void make_marks(void)
{
	static const char *const inks[INK_COUNT] = {
		[INK_PLAIN] = "",
		[INK_DIM] = "2m",
		[INK_BOLD] = "1m",
		[INK_GOOD] = "32m",
		[INK_WARN] = "33m",
		[INK_BAD] = "31m",
		[INK_ACCENT] = "36m",
	};
	/* xterm's 256 colours */
	static const char *const shades[STYLE_SHADES] = {"48;5;17;38;5;255m", "48;5;18;38;5;255m",
		"48;5;25;38;5;255m", "48;5;31;38;5;255m", "48;5;37;38;5;16m", "48;5;79;38;5;16m",
		"48;5;149;38;5;16m", "48;5;227;38;5;16m"};
	uint64_t number;
	if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
		number = clock_now_ns() * (uint64_t)getpid();
	(void)snprintf(marks_key, sizeof marks_key, "\033%0*" PRIx64, KEY_DIGITS, number);
	for (size_t i = 0; i < INK_COUNT; i++)
		make_mark(ink_marks[i], inks[i]);
	for (size_t i = 0; i < STYLE_SHADES; i++)
		make_mark(shade_marks[i], shades[i]);
	make_mark(end_mark, "0m");
}

static const char *mark_or_none(const struct style *style, const char *mark)
{
	(void)pthread_once(&marks_once, make_marks);
	return style->colour ? mark : "";
}

const char *style_ink(const struct style *style, enum ink ink)
{
	return mark_or_none(style, ink_marks[ink]);
}

const char *style_end(const struct style *style)
{
	return mark_or_none(style, end_mark);
}

const char *style_shade(const struct style *style, int shade)
{
	return mark_or_none(style, shade_marks[shade]);
}

const char *style_glyph(const struct style *style, const char *utf8, const char *ascii)
{
	return style->utf8 ? utf8 : ascii;
}

void style_add_printable(const char *text, struct buffer *out)
{
	const size_t key = strlen(marks_key); /* 0: no mark was ever given away */
	while (*text) {
		const bool mark = key > 0 && strncmp(text, marks_key, key) == 0;
		const size_t length = mark ? key : utf8_character(text);
		if (mark)
			buffer_text(out, "\033[");
		else if (length == 0 || (*text != '\n' && utf8_is_control(text)))
			buffer_text(out, "?");
		else
			buffer_add(out, text, length);
		text += length > 0 ? length : 1;
	}
}

static bool starts_character(char c)
{
	return ((unsigned char)c & 0xC0) != 0x80;
}

int style_columns(const char *text)
{
	int columns = 0;
	for (; *text; text++)
		columns += starts_character(*text);
	return columns;
}

/* Bytes of the first `columns` characters. */
static size_t style_bytes_of(const char *text, int columns)
{
	size_t n = 0;
	for (; text[n]; n++)
		if (starts_character(text[n]) && columns-- == 0)
			break;
	return n;
}

void style_field(
	const struct style *style, enum ink ink, const char *text, int columns, struct buffer *out)
{
	const bool right = columns < 0;
	const int width = right ? -columns : columns;
	const int used = style_columns(text);
	const int shown = used <= width ? used : width;
	const char *begin = ink == INK_PLAIN || !*text ? "" : style_ink(style, ink);
	if (right)
		buffer_repeat(out, " ", width - shown);
	buffer_text(out, begin);
	if (used <= width) {
		buffer_text(out, text);
	} else if (width > 0) {
		buffer_add(out, text, style_bytes_of(text, width - 1));
		buffer_text(out, style_glyph(style, "…", "~"));
	}
	buffer_text(out, *begin ? style_end(style) : "");
	if (!right)
		buffer_repeat(out, " ", width - shown);
}

void style_end_line(struct buffer *out)
{
	while (out->size > 0 && out->data[out->size - 1] == ' ')
		out->data[--out->size] = '\0';
	buffer_text(out, "\n");
}

void style_bar(
	const struct style *style, enum ink ink, double share, int columns, struct buffer *out)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	enum { EIGHTHS = 8 };
	const double clipped = isnan(share) || share < 0 ? 0 : share > 1 ? 1 : share;
	const int units = (int)lround(clipped * columns * EIGHTHS);
	const int whole = style->utf8 ? units / EIGHTHS : (int)lround(clipped * columns);
	const char *part = style->utf8 ? eighths[units % EIGHTHS] : "";
	buffer_text(out, style_ink(style, ink));
	buffer_repeat(out, style_glyph(style, "█", "#"), whole);
	buffer_text(out, part);
	buffer_text(out, style_end(style));
	buffer_repeat(out, " ", columns - whole - (*part ? 1 : 0));
}

void style_wrap(
	const struct style *style, const char *text, int indent, int used, struct buffer *out)
{
	int column = used;
	bool fresh = true;
	while (*text) {
		const size_t bytes = strcspn(text, " ");
		char word[256];
		const size_t kept = bytes < sizeof word ? bytes : sizeof word - 1;
		memcpy(word, text, kept);
		word[kept] = '\0';
		const int columns = style_columns(word);
		if (!fresh && column + 1 + columns > style->width) {
			buffer_text(out, "\n");
			buffer_repeat(out, " ", indent);
			column = indent;
			fresh = true;
		}
		buffer_text(out, fresh ? "" : " ");
		buffer_text(out, word);
		column += columns + (fresh ? 0 : 1);
		fresh = false;
		text += bytes;
		text += strspn(text, " ");
	}
	buffer_text(out, "\n");
}
