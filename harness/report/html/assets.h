/* Files that the program carries for its pages: style, script, charts, and the library that draws them. */
#ifndef MLBENCH_REPORT_HTML_ASSETS_H
#define MLBENCH_REPORT_HTML_ASSETS_H

#include <stddef.h>

struct asset {
	const char *text; /* NUL-terminated */
	size_t size;
};

struct asset asset_style(void);
struct asset asset_script(void);
/* Vega with its licence; or a line "//! why" where the build had none. */
struct asset asset_charts(void);
/* NULL, or why this program's pages have no charts: it was built without Vega. */
const char *asset_charts_unavailable(void);
/* The text of charts/NAME.vg.json; NULL: there is none. */
const char *asset_chart(const char *name);

#endif
