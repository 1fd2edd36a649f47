/* Files that the program carries for its pages: style, script, and the libraries that draw charts. */
#ifndef MLBENCH_REPORT_HTML_ASSETS_H
#define MLBENCH_REPORT_HTML_ASSETS_H

#include <stddef.h>

struct asset {
	const char *text; /* NUL-terminated */
	size_t size;
};

struct asset asset_style(void);
struct asset asset_script(void);
/* Vega, Vega-Lite and Vega-Embed with their licences; or a line "//! why" where the build could not have them. */
struct asset asset_charts(void);
/* The text of charts/NAME.vl.json; NULL: there is none. */
const char *asset_chart(const char *name);

#endif
