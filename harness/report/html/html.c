/* Text as HTML: whatever it holds, it stays text. */
#include "harness/report/html/html.h"

#include "harness/report/html/page.h"

#include <stdbool.h>
#include <string.h>

/* Bytes of the character that begins here, 0 where there is none in UTF-8 (RFC 3629: no overlong forms, no
 * surrogates, nothing above U+10FFFF). */
static size_t character_bytes(const unsigned char *at)
{
	const unsigned char lead = at[0];
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	const size_t bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	if (at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < bytes; i++)
		if (at[i] < 0x80 || at[i] > 0xbf)
			return 0;
	return bytes;
}

/* C0 and C1 controls but for tab and newline, and those that turn the direction of what follows: a name must not
 * reorder the page around it. */
static bool is_control(const unsigned char *at, size_t bytes)
{
	if (bytes == 1)
		return (at[0] < 0x20 && at[0] != '\t' && at[0] != '\n') || at[0] == 0x7f;
	if (bytes == 2)
		return at[0] == 0xc2 && at[1] < 0xa0;
	if (bytes != 3 || at[0] != 0xe2)
		return false;
	return (at[1] == 0x80 && (at[2] >= 0xaa && at[2] <= 0xae)) ||
	       (at[1] == 0x81 && (at[2] >= 0xa6 && at[2] <= 0xa9));
}

size_t html_unshown(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	const size_t bytes = character_bytes(at);
	if (bytes == 0)
		return 1;
	return is_control(at, bytes) ? bytes : 0;
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void html_escape(const char *text, struct buffer *out)
{
	const char *plain = text; /* what was not written yet */
	while (*text) {
		const size_t unshown = html_unshown(text);
		const char *instead = unshown ? HTML_REPLACEMENT : entity(*text);
		if (instead) {
			buffer_add(out, plain, (size_t)(text - plain));
			buffer_text(out, instead);
			plain = text + (unshown ? unshown : 1);
		}
		text += unshown ? unshown : character_bytes((const unsigned char *)text);
	}
	buffer_add(out, plain, (size_t)(text - plain));
}
