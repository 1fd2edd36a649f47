/* UTF-8 as RFC 3629 defines it. */
#include "harness/base/utf8.h"

#include <stdint.h>
#include <string.h>

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
