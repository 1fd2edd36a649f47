/* The sampled CPU time as one picture that opens by itself: a row per depth, callees below their callers, as wide as
 * their samples.  A stage has its colour and everything it called a tint of it.  The script zooms and searches; without it
 * the picture is whole, and each frame tells its figures when it is pointed at. */
#include "harness/report/flame_report.h"

#include "harness/base/units.h"
#include "harness/record/measurement.h"
#include "harness/report/html/page.h"
#include "harness/report/html/palette.h"

#include <stdlib.h>
#include <string.h>

enum {
	WIDTH = 1200,
	MARGIN = 10,
	ROW = 18,
	TOP = 84, /* title, how it was sampled, buttons */
	LETTER = 7,
	FRAMES_MOST = 1600,
	FRAMES_FEW = 100,
	NAME_LETTERS = 120,
	LEAST_SHARE = 1000, /* one in so many samples: below it, a frame is merged with its like */
	RANKS = 8,
	HOW_LETTERS = 190, /* of a line */
};

static const char *const palette[] = PALETTE_SERIES;
enum { PALETTE_COUNT = sizeof palette / sizeof *palette };

struct sized {
	uint64_t total;
	uint32_t frame;
};

struct drawing {
	const struct flame_profile *profile;
	struct buffer *out;
	uint64_t least; /* samples of what is drawn */
	struct sized *
		order; /* (order_count) frames with samples, largest first, callers before callees */
	size_t order_count, drawn_count; /* drawn: the first so many */
	bool *is_drawn;                  /* (frames) */
	double *left,
		*next; /* (frames) of each: where it begins, where its next child does; in samples */
	unsigned *depth, *stage; /* (frames) */
	unsigned rows;
};

/* Zoom and search.  It knows nothing but the drawing: a frame's place is its rectangle's, and its name the first line of its
 * title. */
static const char flame_script[] =
	"(function () {\n"
	"  'use strict';\n"
	"  var margin = 10, width = 1200, letter = 7;\n"
	"  var found = document.getElementById('found');\n"
	"  var frames = Array.from(document.querySelectorAll('#frames > g')).map(function (g) {\n"
	"    var box = g.querySelector('rect');\n"
	"    return {g: g, box: box, text: g.querySelector('text'),\n"
	"      name: g.querySelector('title').textContent.split('\\n')[0],\n"
	"      x: +box.getAttribute('x'), w: +box.getAttribute('width'), y: +box.getAttribute('y')};\n"
	"  });\n"
	"  function label(f, x, w) {\n"
	"    var room = Math.floor((w - 6) / letter);\n"
	"    if (!f.text) {\n"
	"      f.text = document.createElementNS('http://www.w3.org/2000/svg', 'text');\n"
	"      f.text.setAttribute('y', f.y + 13);\n"
	"      f.g.appendChild(f.text);\n"
	"    }\n"
	"    f.text.setAttribute('x', Math.max(x, margin) + 3);\n"
	"    f.text.textContent = room < 3 ? '' :\n"
	"      f.name.length <= room ? f.name : f.name.slice(0, room - 1) + '\\u2026';\n"
	"  }\n"
	"  function zoom(to) {\n"
	"    var left = to ? to.x : margin, wide = to ? to.w : width - 2 * margin;\n"
	"    var scale = (width - 2 * margin) / wide;\n"
	"    frames.forEach(function (f) {\n"
	"      var above = to && f.y < to.y && f.x <= left + 0.11 && f.x + f.w >= left + wide - 0.11;\n"
	"      var inside = f.x >= left - 0.11 && f.x + f.w <= left + wide + 0.11 && (!to || f.y >= to.y);\n"
	"      f.g.style.display = above || inside ? '' : 'none';\n"
	"      f.g.style.opacity = above ? 0.55 : '';\n"
	"      var x = above ? margin : margin + (f.x - left) * scale;\n"
	"      var w = above ? width - 2 * margin : f.w * scale;\n"
	"      f.box.setAttribute('x', x);\n"
	"      f.box.setAttribute('width', w);\n"
	"      label(f, x, w);\n"
	"    });\n"
	"  }\n"
	"  function search(term) {\n"
	"    var spans = [];\n"
	"    frames.forEach(function (f) {\n"
	"      var hit = term && f.name.toLowerCase().indexOf(term.toLowerCase()) >= 0;\n"
	"      f.g.classList.toggle('hit', !!hit);\n"
	"      if (hit) spans.push([f.x, f.x + f.w]);\n"
	"    });\n"
	"    spans.sort(function (a, b) { return a[0] - b[0]; });\n"
	"    var sum = 0, end = 0;\n"
	"    spans.forEach(function (s) {\n"
	"      sum += Math.max(0, s[1] - Math.max(s[0], end));\n"
	"      end = Math.max(end, s[1]);\n"
	"    });\n"
	"    found.textContent = !term ? '' : '\\u201c' + term + '\\u201d: ' +\n"
	"      (100 * sum / (width - 2 * margin)).toFixed(1) + '% of all';\n"
	"  }\n"
	"  function ask() {\n"
	"    var term = window.prompt('Function names with:', '');\n"
	"    if (term !== null) search(term);\n"
	"  }\n"
	"  frames.forEach(function (f) {\n"
	"    f.g.addEventListener('click', function () { zoom(f); });\n"
	"  });\n"
	"  ['reset', 'search'].forEach(function (id) {\n"
	"    document.getElementById(id).style.display = 'inline';\n"
	"  });\n"
	"  document.getElementById('reset').addEventListener('click', function () { zoom(null); search(''); });\n"
	"  document.getElementById('search').addEventListener('click', ask);\n"
	"  window.addEventListener('keydown', function (e) {\n"
	"    if (e.key === 'Escape') { zoom(null); search(''); }\n"
	"    if (e.key === '/') { e.preventDefault(); ask(); }\n"
	"  });\n"
	"})();\n";

/* --- what is drawn ------------------------------------------------------------------------------------------- */

static int by_total(const void *a, const void *b)
{
	const struct sized *const x = a;
	const struct sized *const y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x->frame < y->frame ? -1 : 1;
}

static bool open_drawing(struct drawing *d)
{
	const struct flame_profile *const p = d->profile;
	const size_t count = p->frame_count + 1;
	d->order = calloc(count, sizeof *d->order);
	d->is_drawn = calloc(count, sizeof *d->is_drawn);
	d->left = calloc(count, sizeof *d->left);
	d->next = calloc(count, sizeof *d->next);
	d->depth = calloc(count, sizeof *d->depth);
	d->stage = calloc(count, sizeof *d->stage);
	if (!d->order || !d->is_drawn || !d->left || !d->next || !d->depth || !d->stage)
		return false;
	for (uint32_t i = 0; i < p->frame_count; i++)
		if (p->frames[i].total > 0)
			d->order[d->order_count++] = (struct sized){p->frames[i].total, i};
	qsort(d->order, d->order_count, sizeof *d->order, by_total);
	return true;
}

/* At most so many frames: the largest.  A caller is never smaller than its callees, so none hangs in the air. */
static void choose_drawn(struct drawing *d, size_t most)
{
	const uint64_t least = d->profile->samples / LEAST_SHARE;
	d->least = least > 0 ? least : 1;
	while (d->drawn_count < d->order_count && d->drawn_count < most &&
		d->order[d->drawn_count].total >= d->least)
		d->is_drawn[d->order[d->drawn_count++].frame] = true;
}

static void close_drawing(struct drawing *d)
{
	free(d->order);
	free(d->is_drawn);
	free(d->left);
	free(d->next);
	free(d->depth);
	free(d->stage);
}

/* Stages in the order of a sample's way, and last what is not the pipeline's. */
static unsigned rank(const char *stage)
{
	static const char *const order[] = {
		STAGE_READ_NAME, STAGE_DECODE_NAME, STAGE_UPLOAD_NAME, STAGE_STEP_NAME};
	static const char *const last[] = {FLAME_CONTROL, FLAME_SAMPLER, FLAME_OTHER};
	const unsigned known = sizeof order / sizeof *order;
	for (unsigned i = 0; i < known; i++)
		if (strcmp(stage, order[i]) == 0)
			return i;
	for (unsigned i = 0; i < sizeof last / sizeof *last; i++)
		if (strcmp(stage, last[i]) == 0)
			return known + 1 + i;
	return known;
}

static void place_stages(struct drawing *d)
{
	const struct flame_profile *const p = d->profile;
	double at = 0;
	for (unsigned wanted = 0; wanted < RANKS; wanted++)
		for (uint32_t i = 0; i < p->frame_count; i++) {
			const struct flame_frame *const frame = &p->frames[i];
			if (frame->parent != FLAME_ROOT || frame->total == 0 ||
				rank(p->names[frame->name]) != wanted)
				continue;
			d->left[i] = d->next[i] = at;
			at += (double)frame->total;
			d->stage[i] = wanted;
		}
}

/* Callees stand side by side below their caller, the larger first: so the small ones lie together at the end. */
static void flame_svg_place(struct drawing *d)
{
	const struct flame_profile *const p = d->profile;
	place_stages(d);
	for (size_t k = 0; k < d->order_count; k++) {
		const uint32_t i = d->order[k].frame;
		const struct flame_frame *const frame = &p->frames[i];
		if (frame->parent != FLAME_ROOT) {
			d->left[i] = d->next[i] = d->next[frame->parent];
			d->next[frame->parent] += (double)frame->total;
			d->depth[i] = d->depth[frame->parent] + 1;
			d->stage[i] = d->stage[frame->parent];
		}
		if (d->is_drawn[i] && d->depth[i] + 1 > d->rows)
			d->rows = d->depth[i] + 1;
	}
}

/* --- text ------------------------------------------------------------------------------------- */

/* Bytes of the first so many characters. */
static size_t first_letters(const char *text, size_t letters)
{
	size_t at = 0;
	while (text[at]) {
		if (((unsigned char)text[at] & 0xC0) != 0x80 && letters-- == 0)
			break;
		at++;
	}
	return at;
}

/* U+FFFE and U+FFFF are characters in UTF-8 that XML does not have. */
static void replace_non_characters(char *text)
{
	for (char *c = text; *c; c++)
		if (memcmp(c, "\xef\xbf\xbe", strnlen(c, 3)) == 0 ||
			memcmp(c, "\xef\xbf\xbf", strnlen(c, 3)) == 0)
			c[2] = '\xbd';
}

static void add_escaped(const char *text, size_t letters, struct buffer *out)
{
	const size_t size = first_letters(text, letters);
	char *const copy = strndup(text, size);
	if (!copy) {
		out->failed = true;
		return;
	}
	for (char *c = copy; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	replace_non_characters(copy);
	html_escape(copy, out);
	free(copy);
	if (text[size])
		buffer_text(out, "\xe2\x80\xa6"); /* an ellipsis */
}

static double flame_svg_share(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static double to_x(const struct drawing *d, double samples)
{
	return MARGIN + samples * (WIDTH - 2 * MARGIN) / (double)d->profile->samples;
}

/* --- elements --------------------------------------------------------------------------------- */

static void add_title(const struct drawing *d, uint32_t number)
{
	char text[UNITS_BYTES];
	const struct flame_profile *const p = d->profile;
	const struct flame_frame *const frame = &p->frames[number];
	const struct flame_frame *const stage = &p->frames[flame_stage_of(p, number)];
	buffer_text(d->out, "<title>");
	add_escaped(p->names[frame->name], NAME_LETTERS, d->out);
	buffer_format(d->out, "\n%s samples, ", units_format_count((double)frame->total, text));
	buffer_format(d->out, "%.2f%% of all", 100 * flame_svg_share(frame->total, p->samples));
	if (frame != stage) {
		buffer_format(
			d->out, ", %.1f%% of ", 100 * flame_svg_share(frame->total, stage->total));
		add_escaped(p->names[stage->name], NAME_LETTERS, d->out);
	}
	if (frame->self > 0)
		buffer_format(
			d->out, "; itself %.2f%%", 100 * flame_svg_share(frame->self, p->samples));
	buffer_text(d->out, "</title>");
}

static void add_box(const struct drawing *d, double x, double y, double width)
{
	buffer_format(d->out, "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\"/>", x, y,
		width, ROW - 1);
}

static void add_label(const struct drawing *d, const char *name, double x, double y, double width)
{
	const double letters = (width - 6) / LETTER;
	if (letters < 3)
		return;
	buffer_format(d->out, "<text x=\"%.1f\" y=\"%.0f\">", x + 3, y + ROW - 5);
	const size_t most = (size_t)letters;
	add_escaped(name, name[first_letters(name, most)] ? most - 1 : most, d->out);
	buffer_text(d->out, "</text>");
}

/* Neighbours differ a little, always the same way for the same name. */
static unsigned tint_of(const char *name)
{
	unsigned hash = 2166136261U;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619U;
	return (hash >> 8) % 3;
}

static void add_frame(const struct drawing *d, uint32_t number)
{
	const struct flame_frame *const frame = &d->profile->frames[number];
	const char *const name = d->profile->names[frame->name];
	const double x = to_x(d, d->left[number]);
	const double width = to_x(d, d->left[number] + (double)frame->total) - x;
	const double y = TOP + d->depth[number] * ROW;
	const bool is_stage = frame->parent == FLAME_ROOT;
	buffer_format(d->out, "<g class=\"f s%u %s%u\">", d->stage[number] % PALETTE_COUNT,
		is_stage ? "b" : "t", is_stage ? 0 : tint_of(name));
	add_title(d, number);
	add_box(d, x, y, width);
	add_label(d, name, x, y, width);
	buffer_text(d->out, "</g>\n");
}

/* The rest of a frame whose callees are too small to be drawn, where all of it is large enough. */
static void add_small(
	const struct drawing *d, uint32_t parent, uint64_t samples, unsigned count, double left)
{
	const double x = to_x(d, left);
	const double y = TOP + (d->depth[parent] + 1) * ROW;
	const double width = to_x(d, left + (double)samples) - x;
	buffer_format(d->out,
		"<g class=\"f m\"><title>%u smaller\n%llu samples, %.2f%% of all</title>", count,
		(unsigned long long)samples, 100 * flame_svg_share(samples, d->profile->samples));
	add_box(d, x, y, width);
	buffer_text(d->out, "</g>\n");
}

struct small {
	uint64_t samples;
	unsigned count;
};

/* Small callees are drawn together behind their siblings. */
static void add_smalls(struct drawing *d)
{
	const struct flame_profile *const p = d->profile;
	struct small *const smalls = calloc(p->frame_count + 1, sizeof *smalls);
	for (uint32_t i = 0; smalls && i < p->frame_count; i++) {
		const struct flame_frame *const frame = &p->frames[i];
		if (frame->total == 0 || d->is_drawn[i] || frame->parent == FLAME_ROOT)
			continue;
		smalls[frame->parent].samples += frame->total;
		smalls[frame->parent].count++;
	}
	for (uint32_t i = 0; smalls && i < p->frame_count; i++) {
		if (smalls[i].samples < d->least || !d->is_drawn[i])
			continue;
		add_small(d, i, smalls[i].samples, smalls[i].count,
			d->next[i] - (double)smalls[i].samples);
		if (d->depth[i] + 2 > d->rows)
			d->rows = d->depth[i] + 2;
	}
	free(smalls);
}

static void add_style(struct buffer *out)
{
	buffer_text(out,
		"<style>\n"
		"svg{background:#fff;color:#1b1f24;font:12px system-ui,sans-serif}\n"
		"text{fill:currentColor;pointer-events:none}\n"
		".head{font-size:17px;font-weight:600}.how{font-size:11px;opacity:.8}\n"
		".act{pointer-events:auto;cursor:pointer;text-decoration:underline;display:none}\n"
		".f{cursor:pointer}.f:hover rect{stroke:currentColor}.f rect{stroke-width:1}\n"
		".t0 rect{fill-opacity:.28}.t1 rect{fill-opacity:.38}.t2 rect{fill-opacity:.48}\n"
		".b0 text{font-weight:600}.b0 rect{fill-opacity:.75}\n"
		".m rect{fill:#888;fill-opacity:.25}\n"
		".hit rect{fill:#d5008f;fill-opacity:.75}\n");
	for (size_t i = 0; i < PALETTE_COUNT; i++)
		buffer_format(out, ".s%zu rect{fill:%s}", i, palette[i]);
	buffer_text(out,
		"\n@media (prefers-color-scheme:dark){svg{background:#14171b;color:#e8eaed}"
		".b0 rect{fill-opacity:.6}}\n</style>\n");
}

/* Broken at blanks into lines of the header. */
static void add_how(const struct flame_profile *profile, struct buffer *out)
{
	struct buffer how = {0};
	flame_describe(profile, &how);
	const char *at = how.data ? how.data : "";
	for (int line = 0; *at && line < 2; line++) {
		size_t size = first_letters(at, HOW_LETTERS);
		while (at[size] && size > 0 && at[size] != ' ')
			size--;
		size = size > 0 ? size : strlen(at);
		char *const text = strndup(at, size);
		buffer_format(
			out, "<text class=\"how\" x=\"%d\" y=\"%d\">", MARGIN, 44 + 15 * line);
		add_escaped(text ? text : "", HOW_LETTERS, out);
		buffer_text(out, "</text>\n");
		free(text);
		at += size;
		at += *at == ' ';
	}
	buffer_release(&how);
}

static void flame_svg_add_head(const struct drawing *d, const char *name, int height)
{
	struct buffer *const out = d->out;
	buffer_format(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
		"role=\"img\" aria-labelledby=\"title how\">\n<title id=\"title\">CPU time of ",
		WIDTH, height, WIDTH, height);
	add_escaped(name, NAME_LETTERS, out);
	buffer_text(out, " by stage and function</title>\n<desc id=\"how\">");
	struct buffer how = {0};
	flame_describe(d->profile, &how);
	add_escaped(how.data ? how.data : "", SIZE_MAX, out);
	buffer_release(&how);
	buffer_text(out, "</desc>\n");
	add_style(out);
	buffer_format(out, "<text class=\"head\" x=\"%d\" y=\"24\">CPU time of ", MARGIN);
	add_escaped(name, NAME_LETTERS / 2, out);
	buffer_text(out, " by stage and function</text>\n");
	add_how(d->profile, out);
	buffer_format(out,
		"<text class=\"act\" id=\"reset\" x=\"%d\" y=\"24\" text-anchor=\"end\">whole picture</text>\n"
		"<text class=\"act\" id=\"search\" x=\"%d\" y=\"24\" text-anchor=\"end\">search</text>\n"
		"<text id=\"found\" x=\"%d\" y=\"76\" text-anchor=\"end\"></text>\n",
		WIDTH - MARGIN - 60, WIDTH - MARGIN, WIDTH - MARGIN);
}

static void flame_svg_draw(struct drawing *d, const char *name)
{
	struct buffer *const out = d->out;
	struct buffer frames = {0};
	flame_svg_place(d);
	d->out = &frames;
	for (size_t i = 0; i < d->drawn_count; i++)
		add_frame(d, d->order[i].frame);
	add_smalls(d);
	d->out = out;
	flame_svg_add_head(d, name, TOP + (int)d->rows * ROW + MARGIN);
	if (d->profile->samples == 0)
		buffer_format(out, "<text x=\"%d\" y=\"%d\">no CPU time was sampled</text>\n",
			MARGIN, TOP);
	buffer_text(out, "<g id=\"frames\">\n");
	buffer_add(out, frames.data ? frames.data : "", frames.size);
	out->failed |= frames.failed;
	buffer_release(&frames);
	buffer_format(out, "</g>\n<script><![CDATA[\n%s]]></script>\n</svg>\n", flame_script);
}

void flame_svg(const struct flame_profile *profile, const char *name, struct buffer *out)
{
	for (size_t most = FRAMES_MOST;; most /= 2) {
		struct drawing d = {.profile = profile, .out = out};
		if (open_drawing(&d)) {
			choose_drawn(&d, most);
			flame_svg_draw(&d, name);
		} else {
			out->failed = true;
		}
		close_drawing(&d);
		if (out->failed || out->size <= FLAME_SVG_BYTES_MAX || most <= FRAMES_FEW)
			return;
		buffer_release(out);
	}
}
