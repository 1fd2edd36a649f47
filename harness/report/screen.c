#include "harness/report/screen.h"

#include "harness/base/files.h"
#include "harness/report/html/report_page.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

struct buffer *screen_add(struct screen *screen, int keep)
{
	assert(screen->count < SCREEN_PIECES_MAX);
	screen->pieces[screen->count].keep = keep;
	return &screen->pieces[screen->count++].text;
}

size_t screen_lines_of(const struct buffer *text)
{
	size_t lines = 0;
	for (size_t i = 0; i < text->size; i++)
		lines += text->data[i] == '\n';
	return lines;
}

static size_t lines_of_screen(const struct screen *screen)
{
	size_t lines = 0;
	for (size_t i = 0; i < screen->count; i++)
		lines += screen_lines_of(&screen->pieces[i].text);
	return lines;
}

static size_t screen_height(const struct screen *screen)
{
	return screen->lines > 0 ? screen->lines : SCREEN_LINES;
}

size_t screen_left(const struct screen *screen)
{
	const size_t lines = lines_of_screen(screen);
	return lines < screen_height(screen) ? screen_height(screen) - lines : 0;
}

/* The least important piece; false: what is left has to stay. */
static bool screen_drop(struct screen *screen, int least_kept)
{
	size_t least = screen->count;
	for (size_t i = 0; i < screen->count; i++)
		if (screen->pieces[i].keep > least_kept && screen->pieces[i].text.size > 0 &&
			(least == screen->count ||
				screen->pieces[i].keep > screen->pieces[least].keep))
			least = i;
	if (least == screen->count)
		return false;
	buffer_release(&screen->pieces[least].text);
	return true;
}

void screen_make_room(struct screen *screen, size_t lines, int least_kept)
{
	while (screen_left(screen) < lines && screen_drop(screen, least_kept))
		;
}

void screen_print(struct screen *screen, struct buffer *out)
{
	while (lines_of_screen(screen) > screen_height(screen) && screen_drop(screen, 0))
		;
	for (size_t i = 0; i < screen->count; i++) {
		struct buffer *text = &screen->pieces[i].text;
		buffer_add(out, text->data, text->size);
		out->failed = out->failed || text->failed;
		buffer_release(text);
	}
	screen->count = 0;
}

void screen_put_place(struct medium *medium, const char *folder)
{
	char *page = medium->style ? files_join(folder, REPORT_PAGE_FILE) : NULL;
	const bool there = page && access(page, R_OK) == 0;
	medium_fact_text(medium, INK_DIM, there ? "page" : "results", there ? page : folder);
	medium_end(medium);
	free(page);
}
