/* Cells. */
#include "harness/live/canvas.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

enum { TEXT_ROOM = 1024, EIGHTHS = 8 };

static int held(int value, int most)
{
	return value < 0 ? 0 : value > most ? most : value;
}

int canvas_clear(struct canvas *c, int rows, int columns)
{
	rows = held(rows, CANVAS_ROWS_MAX);
	columns = held(columns, CANVAS_COLUMNS_MAX);
	const size_t count = (size_t)rows * (size_t)columns;
	if (count > c->room) {
		struct cell *cells = realloc(c->cells, count * sizeof *cells);
		if (!cells)
			return -ENOMEM;
		c->cells = cells;
		c->room = count;
	}
	c->rows = rows;
	c->columns = columns;
	for (size_t i = 0; i < count; i++)
		c->cells[i] = (struct cell){.character = L' '};
	return 0;
}

void canvas_release(struct canvas *c)
{
	free(c->cells);
	*c = (struct canvas){0};
}

static struct cell *cell_at(const struct canvas *c, int row, int column)
{
	if (row < 0 || row >= c->rows || column < 0 || column >= c->columns)
		return NULL;
	return &c->cells[(size_t)row * (size_t)c->columns + (size_t)column];
}

static void canvas_put(const struct canvas *c, int row, int column, enum ink ink, wchar_t character)
{
	struct cell *cell = cell_at(c, row, column);
	if (cell)
		*cell = (struct cell){.character = character, .ink = ink};
}

/* The next character, and how many columns it takes; 0: the text is over. */
static int next_character(const char **text, mbstate_t *state, wchar_t *out)
{
	const size_t bytes = mbrtowc(out, *text, MB_CUR_MAX, state);
	if (bytes == 0)
		return 0;
	if (bytes == (size_t)-1 || bytes == (size_t)-2) {
		*state = (mbstate_t){0};
		*out = L'?';
		(*text)++;
		return 1;
	}
	*text += bytes;
	const int width = iswprint((wint_t)*out) ? wcwidth(*out) : -1;
	if (width != 1 && width != 2) {
		*out = L'?'; /* what combines with its neighbour, too */
		return 1;
	}
	return width;
}

static int columns_of(const char *text)
{
	mbstate_t state = {0};
	wchar_t character;
	int columns = 0;
	int width;
	while ((width = next_character(&text, &state, &character)) > 0)
		columns += width;
	return columns;
}

int canvas_text(struct canvas *c, int row, int column, int most, enum ink ink, const char *text)
{
	mbstate_t state = {0};
	wchar_t character;
	int used = 0;
	int width;
	most = most < c->columns - column ? most : c->columns - column;
	if (most <= 0)
		return 0;
	const bool cut = columns_of(text) > most;
	const int room = cut ? most - 1 : most;
	while ((width = next_character(&text, &state, &character)) > 0 && used + width <= room) {
		canvas_put(c, row, column + used, ink, character);
		if (width == 2)
			canvas_put(c, row, column + used + 1, ink, L'\0');
		used += width;
	}
	if (cut)
		canvas_put(c, row, column + used++, ink, c->utf8 ? L'\u2026' : L'~');
	return used;
}

int canvas_format(
	struct canvas *c, int row, int column, int most, enum ink ink, const char *format, ...)
{
	char text[TEXT_ROOM];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return canvas_text(c, row, column, most, ink, text);
}

void canvas_right(struct canvas *c, int row, int end, int most, enum ink ink, const char *text)
{
	const int columns = columns_of(text);
	const int shown = columns < most ? columns : most;
	(void)canvas_text(c, row, end - shown, shown, ink, text);
}

void canvas_fill(struct canvas *c, int row, int column, int count, enum ink ink, wchar_t character)
{
	for (int i = 0; i < count; i++)
		canvas_put(c, row, column + i, ink, character);
}

void canvas_bar(struct canvas *c, int row, int column, int columns, const struct canvas_part *parts,
	size_t count)
{
	double sum = 0;
	int done = 0;
	for (size_t i = 0; i < count; i++) {
		sum += isfinite(parts[i].share) && parts[i].share > 0 ? parts[i].share : 0;
		const int end = (int)lround(fmin(sum, 1) * columns);
		canvas_fill(c, row, column + done, end - done, parts[i].ink,
			c->utf8 ? parts[i].glyph : parts[i].ascii);
		done = end > done ? end : done;
	}
}

/* What a row of a graph shows of a value that is `units` eighths of a row above the row's foot. */
static wchar_t block(const struct canvas *c, int units)
{
	static const wchar_t eighths[] = L" \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588";
	static const wchar_t plain[] = L" .:*#";
	enum { PER_PLAIN = 2 };
	const int filled = held(units, EIGHTHS);
	return c->utf8 ? eighths[filled] : plain[(filled + 1) / PER_PLAIN];
}

void canvas_graph(struct canvas *c, int row, int rows, int column, int columns, enum ink ink,
	const float *values, size_t count, double most)
{
	const size_t shown =
		count < (size_t)held(columns, INT16_MAX) ? count : (size_t)held(columns, INT16_MAX);
	for (size_t i = 0; i < shown; i++) {
		const double value = values[count - shown + i];
		if (!isfinite(value))
			continue;
		const double share = most > 0 ? fmin(fmax(value / most, 0), 1) : 0;
		int units = (int)lround(share * rows * EIGHTHS);
		units = units == 0 ? 1 : units; /* zero is a value, no gap */
		for (int k = 0; k < rows; k++)
			canvas_put(c, row - k, column + columns - (int)shown + (int)i, ink,
				block(c, units - k * EIGHTHS));
	}
}
