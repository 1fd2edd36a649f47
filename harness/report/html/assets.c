/* The assembler puts the files into the program; the Makefile says which they are. */
#include "harness/report/html/assets.h"

#include <stdio.h>
#include <string.h>

enum { WHY_BYTES = 240 };

static const char NO_CHARTS[] = "//!";

#define TAKE_IN(name, path)                 \
	__asm__(".pushsection .rodata\n"    \
		"mlbench_" name "_begin:\n" \
		".incbin \"" path "\"\n"    \
		"mlbench_" name "_end:\n"   \
		".byte 0\n"                 \
		".popsection\n")

TAKE_IN("page_css", "harness/report/html/page.css");
TAKE_IN("page_js", "harness/report/html/page.js");
TAKE_IN("charts_js", "build/charts/vega.js");
extern const char mlbench_page_css_begin[], mlbench_page_css_end[], mlbench_page_js_begin[],
	mlbench_page_js_end[], mlbench_charts_js_begin[], mlbench_charts_js_end[];

/* One for each line of charts.def: a file that is not there does not assemble. */
#define CHART(id, title, part) CHART_FILE(id)
#define CHART_FILE(id)                                                  \
	TAKE_IN("chart_" #id, "harness/report/charts/" #id ".vg.json"); \
	extern const char mlbench_chart_##id##_begin[];
#include "harness/report/html/charts.def"
#undef CHART_FILE
#define CHART_FILE(id) {#id, mlbench_chart_##id##_begin},
static const struct {
	const char *name, *text;
} asset_charts_list[] = {
#include "harness/report/html/charts.def"
};

const char *asset_chart(const char *name)
{
	for (size_t i = 0; i < sizeof asset_charts_list / sizeof asset_charts_list[0]; i++)
		if (strcmp(asset_charts_list[i].name, name) == 0)
			return asset_charts_list[i].text;
	return NULL;
}

struct asset asset_style(void)
{
	return (struct asset){.text = mlbench_page_css_begin,
		.size = (size_t)(mlbench_page_css_end - mlbench_page_css_begin)};
}

struct asset asset_script(void)
{
	return (struct asset){.text = mlbench_page_js_begin,
		.size = (size_t)(mlbench_page_js_end - mlbench_page_js_begin)};
}

struct asset asset_charts(void)
{
	return (struct asset){.text = mlbench_charts_js_begin,
		.size = (size_t)(mlbench_charts_js_end - mlbench_charts_js_begin)};
}

const char *asset_charts_unavailable(void)
{
	static char why[WHY_BYTES];
	const char *text = asset_charts().text;
	if (strncmp(text, NO_CHARTS, sizeof NO_CHARTS - 1) != 0)
		return NULL;
	text += strspn(text, "/! ");
	(void)snprintf(why, sizeof why, "%.*s", (int)strcspn(text, "\n"), text);
	return why;
}
