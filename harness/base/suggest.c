/* "did you mean": optimal string alignment (Damerau-Levenshtein with each pair of letters swapped
 * at most once), letters compared without regard to case. */
#include "harness/base/suggest.h"

#include <ctype.h>
#include <string.h>

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
		const size_t d = distance(word, word_size, names[i], size);
		/* A word that shares no letter with the name is no misspelling of it. */
		if (d > (third > DISTANCE_LEAST ? third : DISTANCE_LEAST) || d >= longer)
			continue;
		if (!nearest || d < least) {
			nearest = names[i];
			least = d;
		}
	}
	return nearest;
}
