/* Text of unknown origin: its characters (UTF-8, RFC 3629), and the nearest of a list of names. */
#include "harness/base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

/* --- characters ------------------------------------------------------------------------------- */

/* UTF-8 as RFC 3629 defines it. */

enum { CONTINUATION_BITS = 6 };

static bool continues(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

/* How long the first byte says that the character is, and its bits of the code point. */
static size_t sequence_length(unsigned char first, uint32_t *bits)
{
	if (first < 0x80) {
		*bits = first;
		return 1;
	}
	if (first >= 0xC2 && first < 0xE0) {
		*bits = first & 0x1FU;
		return 2;
	}
	if (first >= 0xE0 && first < 0xF0) {
		*bits = first & 0x0FU;
		return 3;
	}
	if (first >= 0xF0 && first < 0xF5) {
		*bits = first & 0x07U;
		return 4;
	}
	return 0;
}

static bool is_allowed(uint32_t point, size_t length)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	return point >= least[length] && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
}

size_t utf8_character(const char *text)
{
	uint32_t point = 0;
	const size_t length = *text ? sequence_length((unsigned char)*text, &point) : 0;
	for (size_t i = 1; i < length; i++) {
		if (!continues(text[i]))
			return 0;
		point = point << CONTINUATION_BITS | ((unsigned char)text[i] & 0x3FU);
	}
	return length > 0 && is_allowed(point, length) ? length : 0;
}

bool utf8_is_control(const char *character)
{
	const unsigned char first = (unsigned char)character[0];
	return first < 0x20 || first == 0x7F ||
	       (first == 0xC2 && (unsigned char)character[1] < 0xA0);
}

void utf8_add_plain(struct buffer *out, const char *text, const char *replacement)
{
	while (*text) {
		const size_t length = utf8_character(text);
		if (length == 0 || utf8_is_control(text))
			buffer_text(out, replacement);
		else
			buffer_add(out, text, length);
		text += length > 0 ? length : 1;
	}
}

void utf8_make_plain(char *text, char replacement)
{
	char *to = text;
	for (const char *from = text; *from;) {
		const size_t length = utf8_character(from);
		if (length == 0 || utf8_is_control(from)) {
			*to++ = replacement;
		} else {
			memmove(to, from, length);
			to += length;
		}
		from += length > 0 ? length : 1;
	}
	*to = '\0';
}

/* --- did you mean ----------------------------------------------------------------------------- */

/* "did you mean": optimal string alignment (Damerau-Levenshtein with each pair of letters swapped
 * at most once), letters compared without regard to case. */

enum { WORD_BYTES_MAX = 96, DISTANCE_LEAST = 2, DISTANCE_SHARE = 3 };

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Both words are at most WORD_BYTES_MAX long. */
static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t rows[3][WORD_BYTES_MAX + 1];
	size_t *before = rows[0];
	size_t *above = rows[1];
	size_t *row = rows[2];
	for (size_t j = 0; j <= b_size; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_size; i++) {
		size_t *spare = before;
		before = above;
		above = row;
		row = spare;
		row[0] = i;
		for (size_t j = 1; j <= b_size; j++) {
			row[j] = min_size(above[j], row[j - 1]) + 1;
			row[j] =
				min_size(row[j], above[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1));
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				row[j] = min_size(row[j], before[j - 2] + 1);
		}
	}
	return row[b_size];
}

const char *suggest_nearest(const char *word, const char *const *names, size_t count)
{
	const size_t word_size = strlen(word);
	const char *nearest = NULL;
	size_t least = 0;
	if (word_size > WORD_BYTES_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const size_t size = strlen(names[i]);
		if (size > WORD_BYTES_MAX)
			continue;
		const size_t longer = size > word_size ? size : word_size;
		const size_t third = longer / DISTANCE_SHARE;
		const size_t few = longer > DISTANCE_SHARE ? DISTANCE_LEAST : 1;
		const size_t d = distance(word, word_size, names[i], size);
		/* A word that shares no letter with the name is no misspelling of it. */
		if (d > (third > few ? third : few) || d >= longer)
			continue;
		if (!nearest || d < least) {
			nearest = names[i];
			least = d;
		}
	}
	return nearest;
}
