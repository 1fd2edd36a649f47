/* Life of a measurement: what it owns, and its notes. */
#include "harness/measure/measurement.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void measurement_release(struct measurement *m)
{
	free(m->windows);
	m->windows = NULL;
	m->window_count = 0;
}

void measurement_note(struct measurement *m, const char *format, ...)
{
	if (m->note_count >= NOTES_MAX)
		return;
	char *note = m->notes[m->note_count];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(note, NOTE_BYTES, format, args);
	va_end(args);
	/* The same thing is said once. */
	for (size_t i = 0; i < m->note_count; i++)
		if (strcmp(m->notes[i], note) == 0)
			return;
	m->note_count++;
}
