/* Terminal capabilities and the smallest pieces of text. */
#include "harness/report/style.h"

#include "harness/base/utf8.h"

#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int width_of(int fd)
{
	const char *columns = getenv("COLUMNS");
	int width = columns ? (int)strtol(columns, NULL, 10) : 0;
	struct winsize size;
	if (width <= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0)
		width = size.ws_col;
	if (width <= 0)
		width = STYLE_WIDTH_DEFAULT;
	if (width < STYLE_WIDTH_LEAST)
		return STYLE_WIDTH_LEAST;
	return width > STYLE_WIDTH_MOST ? STYLE_WIDTH_MOST : width;
}

struct style style_for(int fd, bool colour_allowed)
{
	const char *term = getenv("TERM");
	const char *no_color = getenv("NO_COLOR");
	const bool refused = no_color && *no_color;
	const bool able = isatty(fd) && term && strcmp(term, "dumb") != 0;
	return (struct style){
		.width = width_of(fd),
		.colour = colour_allowed && able && !refused,
		.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
	};
}

const char *style_ink(const struct style *style, enum ink ink)
{
	static const char *const sequences[] = {
		[INK_PLAIN] = "",
		[INK_DIM] = "\033[2m",
		[INK_BOLD] = "\033[1m",
		[INK_GOOD] = "\033[32m",
		[INK_WARN] = "\033[33m",
		[INK_BAD] = "\033[31m",
		[INK_ACCENT] = "\033[36m",
	};
	return style->colour ? sequences[ink] : "";
}

const char *style_end(const struct style *style)
{
	return style->colour ? "\033[0m" : "";
}

const char *style_glyph(const struct style *style, const char *utf8, const char *ascii)
{
	return style->utf8 ? utf8 : ascii;
}

/* Bytes of a sequence that sets colours, as those above; 0: this is none. */
static size_t ink_bytes(const char *text)
{
	if (text[0] != '\033' || text[1] != '[')
		return 0;
	const size_t length = 2 + strspn(text + 2, "0123456789;");
	return text[length] == 'm' ? length + 1 : 0;
}

void style_add_printable(const char *text, struct buffer *out)
{
	while (*text) {
		const size_t ink = ink_bytes(text);
		const size_t length = ink > 0 ? ink : utf8_character(text);
		const bool obeyed = ink == 0 && *text != '\n' && utf8_is_control(text);
		if (length == 0 || obeyed)
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
static size_t bytes_of(const char *text, int columns)
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
	const char *begin = ink == INK_PLAIN ? "" : style_ink(style, ink);
	if (right)
		buffer_repeat(out, " ", width - shown);
	buffer_text(out, begin);
	if (used <= width) {
		buffer_text(out, text);
	} else if (width > 0) {
		buffer_add(out, text, bytes_of(text, width - 1));
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
