/* Fields of comma-separated values. */
#include "harness/report/csv.h"

#include <math.h>
#include <string.h>

void csv_text(struct buffer *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		buffer_text(out, text);
		return;
	}
	buffer_text(out, "\"");
	for (; *text; text++)
		buffer_format(out, *text == '"' ? "\"\"" : "%c", *text);
	buffer_text(out, "\"");
}
