/* Lines of a loader, byte by byte. */
#include "harness/measure/batch_lines.h"

#include <stdlib.h>
#include <string.h>

static const char BATCH_WORD[] = "batch";

static void batch_lines_end(struct batch_lines *lines)
{
	const size_t word = sizeof BATCH_WORD - 1;
	char *end = lines->line;
	unsigned long long count = 0;
	while (lines->used > 0 && lines->line[lines->used - 1] &&
		strchr(" \t\r", lines->line[lines->used - 1]))
		lines->used--;
	lines->line[lines->used] = '\0';
	const bool ours = !lines->too_long && strncmp(lines->line, BATCH_WORD, word) == 0 &&
			  (lines->line[word] == ' ' || lines->line[word] == '\0');
	if (ours && lines->line[word] == ' ' && lines->line[word + 1] >= '0' &&
		lines->line[word + 1] <= '9')
		count = strtoull(lines->line + word + 1, &end, 10);
	if (!ours) {
		lines->others += lines->used > 0 || lines->too_long;
	} else if (count == 0 || count > BATCH_SAMPLES_MAX || *end ||
		   memchr(lines->line, '\0', lines->used)) {
		lines->wrong++;
	} else {
		lines->batches++;
		lines->samples += count;
		lines->last_samples = count;
	}
	lines->used = 0;
	lines->too_long = false;
}

void batch_lines_take(struct batch_lines *lines, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] == '\n')
			batch_lines_end(lines);
		else if (lines->used < sizeof lines->line - 1)
			lines->line[lines->used++] = bytes[i];
		else
			lines->too_long = true;
}
