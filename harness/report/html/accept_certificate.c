/* A certificate of acceptance: one sheet of A4 that a person signs, with what identifies the node, what was asked and
 * measured, and the sum of the file that has all of it.  What must fit on a sheet is cut, and says so. */
#include "harness/base/hash.h"
#include "harness/report/accept_document.h"
#include "harness/report/columns.h"
#include "harness/report/html/accept_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	CERTIFICATE_FACTS_MAX = 14,
	CERTIFICATE_FIGURES_MAX = 18,
	CERTIFICATE_TERM_BYTES = 28,
	CERTIFICATE_TEXT_BYTES = 56, /* of a value: a UUID with its prefix has 40 */
	CERTIFICATE_CELL_BYTES = 40,
	CERTIFICATE_HEADLINE_BYTES = 240,
};

/* text of at most `room` - 1 bytes, whole characters; what is cut ends in "...". */
static void certificate_add_cut(struct buffer *out, const char *text, size_t room)
{
	size_t keep = strlen(text);
	if (keep < room) {
		buffer_text(out, text);
		return;
	}
	keep = room - 4;
	while (keep > 0 && ((unsigned char)text[keep] & 0xC0) == 0x80)
		keep--;
	buffer_format(out, "%.*s...", (int)keep, text);
}

static void certificate_term(struct page *page, const char *term, const char *text)
{
	struct buffer name = {0};
	struct buffer cut = {0};
	certificate_add_cut(&name, term, CERTIFICATE_TERM_BYTES);
	certificate_add_cut(&cut, text, CERTIFICATE_TEXT_BYTES);
	page_term(page, name.data ? name.data : "", cut.data ? cut.data : "");
	buffer_release(&name);
	buffer_release(&cut);
}

/* --- which node it is ------------------------------------------------------------------------- */

struct identity {
	struct page *page;
	size_t told, serials;
};

/* Whether a fact names the one piece, and not only its kind. */
static bool identity_is_serial(const char *name)
{
	return strcasestr(name, "serial") || strcasestr(name, "uuid") || strcasestr(name, "wwn");
}

static bool identity_is_kind(const char *name)
{
	static const char *const words[] = {
		"model", "vendor", "product", "bios", "firmware", "microcode", "modules"};
	for (size_t i = 0; i < PARTS_COUNT(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

static void identity_add(
	struct identity *identity, const char *group, const char *name, const json_t *value)
{
	const char *text = json_string_value(value);
	struct buffer term = {0};
	if (!text || identity->told++ >= CERTIFICATE_FACTS_MAX)
		return;
	buffer_format(&term, "%s%s%s", group, *group ? " " : "", name);
	certificate_term(identity->page, term.data ? term.data : "", text);
	buffer_release(&term);
}

static void identity_add_environment(
	struct identity *identity, const json_t *document, bool serials)
{
	json_t *environment = json_object_get(document, "environment");
	const char *group;
	const char *name;
	json_t *facts;
	json_t *value;
	json_object_foreach(environment, group, facts)
	{
		json_object_foreach(facts, name, value)
		{
			const bool serial = identity_is_serial(name);
			if (serial != serials || (!serial && !identity_is_kind(name)))
				continue;
			identity->serials += serial && json_is_string(value);
			identity_add(identity, group, name, value);
		}
	}
}

/* What the plan asked for by itself: of devices and disks. */
static void identity_add_found(struct identity *identity, const json_t *document)
{
	size_t i;
	size_t at;
	const json_t *line;
	const json_t *fact;
	json_array_foreach(json_object_get(document, "measured"), i, line)
	{
		json_array_foreach(json_object_get(line, "facts"), at, fact)
		{
			const json_t *value = json_object_get(fact, "value");
			if (!identity_is_serial(column_text(fact, "figure")))
				continue;
			identity->serials += json_is_string(value);
			identity_add(identity, column_text(fact, "place"),
				column_text(fact, "figure"), value);
		}
	}
}

/* What names the one machine first. */
static void certificate_identity(struct page *page, const json_t *document)
{
	struct identity identity = {.page = page};
	page_terms_begin(page);
	certificate_term(page, "node", accept_node(document));
	identity_add_environment(&identity, document, true);
	identity_add_found(&identity, document);
	identity_add_environment(&identity, document, false);
	page_terms_end(page);
	if (identity.serials == 0)
		page_paragraph(page,
			"No serial number could be read, which needs root. Serial number: ______________________________");
}

/* --- what was asked and measured -------------------------------------------------------------- */

static void certificate_check(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	certificate_add_cut(out, column_text(row, "check"), CERTIFICATE_CELL_BYTES);
}

/* The place stands beside it. */
static void certificate_figure(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *statistic = column_text(row, "finding.statistic");
	struct buffer text = {0};
	(void)column;
	buffer_format(
		&text, "%s%s%s", statistic, *statistic ? " of " : "", column_text(row, "figure"));
	certificate_add_cut(out, text.data ? text.data : "", CERTIFICATE_CELL_BYTES);
	buffer_release(&text);
}

static void certificate_measured(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	char value[ACCEPT_VALUE_BYTES];
	(void)column;
	certificate_add_cut(out, accept_value(json_object_get(row, "finding"), "measured", value),
		CERTIFICATE_CELL_BYTES);
}

static void certificate_limit(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	struct buffer text = {0};
	(void)column;
	accept_add_limit(&text, json_object_get(row, "finding"));
	certificate_add_cut(out, text.data ? text.data : "", CERTIFICATE_CELL_BYTES);
	buffer_release(&text);
}

/* "core 3, the worst of 64" */
static void certificate_place(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double places = column_number(row, "places");
	(void)column;
	certificate_add_cut(out, column_text(row, "place"), CERTIFICATE_CELL_BYTES);
	if (places > 1)
		buffer_format(out, ", the worst of %.0f", places);
}

/* The worst first, as many as a sheet holds. */
static int certificate_figures(struct page *page, const json_t *figures)
{
	static const struct table_column columns[] = {
		{.head = "verdict", .left = true, .path = "verdict"},
		{.head = "check", .left = true, .text_of = certificate_check},
		{.head = "figure", .left = true, .text_of = certificate_figure},
		{.head = "place", .left = true, .text_of = certificate_place},
		{.head = "measured", .left = true, .text_of = certificate_measured},
		{.head = "limit", .left = true, .text_of = certificate_limit},
	};
	const size_t count = json_array_size(figures);
	json_t *shown = json_array();
	size_t i;
	json_t *row;
	int bad = !shown;
	for (int verdict = VERDICT_FAIL; verdict >= VERDICT_PASS; verdict--)
		json_array_foreach(figures, i,
			row) if ((int)accept_verdict_in(row) == verdict &&
				 json_array_size(shown) < CERTIFICATE_FIGURES_MAX) bad |=
			json_array_append(shown, row);
	char caption[120];
	(void)snprintf(caption, sizeof caption, "%zu of %zu figures%s", json_array_size(shown),
		count, json_array_size(shown) < count ? "; the others are in accept.json" : "");
	page_rows(page, columns, PARTS_COUNT(columns), shown, caption);
	json_decref(shown);
	return bad ? -ENOMEM : 0;
}

/* --- the sheet -------------------------------------------------------------------------------- */

static void certificate_rules(struct page *page, const json_t *document, const char *sum)
{
	const json_t *baseline = column_value(document, "judged_by.baseline");
	const json_t *counts = json_object_get(document, "counts");
	char text[200];
	page_terms_begin(page);
	certificate_term(page, "verdict", column_text(document, "verdict"));
	(void)snprintf(text, sizeof text,
		"%.0f passed, %.0f warned, %.0f failed, %.0f skipped, %.0f not judged",
		column_number(counts, "PASS"), column_number(counts, "WARN"),
		column_number(counts, "FAIL"), column_number(counts, "SKIP"),
		column_number(counts, "ERROR"));
	certificate_term(page, "checks", text);
	certificate_term(page, "plan", column_text(document, "judged_by.plan.name"));
	certificate_term(page, "hash of the plan", column_text(document, "judged_by.plan.hash"));
	certificate_term(page, "tier", column_text(document, "tier"));
	certificate_term(page, "started", column_text(document, "started"));
	if (json_is_object(baseline))
		(void)snprintf(text, sizeof text, "%.0f nodes, %.0f repetitions, made %.32s",
			column_number(baseline, "nodes"), column_number(baseline, "repetitions"),
			column_text(baseline, "made"));
	certificate_term(page, "baseline", json_is_object(baseline) ? text : "none");
	certificate_term(page, "program, version", column_text(document, "program"));
	page_terms_end(page);
	(void)snprintf(text, sizeof text, "XXH3 of accept.json: %s (xxhsum -H3)", sum);
	page_paragraph(page, text);
}

/* Only what is fit gets a certificate. */
static const char *certificate_title(const json_t *document)
{
	const enum accept_verdict verdict = accept_verdict_in(document);
	if (verdict <= VERDICT_WARN && !result_is_whole(document))
		return *accept_qualifier(document)
			       ? "Record of an acceptance test that was not of the whole plan or node"
			       : "Record of an acceptance test that was not complete";
	return verdict == VERDICT_PASS || verdict == VERDICT_WARN ? "Certificate of acceptance"
	       : verdict == VERDICT_FAIL ? "Record of a failed acceptance test"
					 : "Record of an acceptance test without a verdict";
}

static int certificate_fill(
	struct page *page, const json_t *document, const json_t *figures, const char *sum)
{
	static const char *const labels[] = {
		"tested by: name, date, signature", "accepted by: name, date, signature"};
	page_sheet(page);
	page_heading(page, 2, NULL, "The node");
	certificate_identity(page, document);
	page_heading(page, 2, NULL, "The test");
	certificate_rules(page, document, sum);
	page_heading(page, 2, NULL, "Figures and limits");
	const int code = certificate_figures(page, figures);
	page_signatures(page, labels, PARTS_COUNT(labels));
	return code;
}

int accept_write_certificate(const json_t *document, const struct accept_view *view,
	struct buffer *out, struct error *err)
{
	char sum[17];
	struct buffer json = {0};
	struct buffer headline = {0};
	struct buffer lead = {0};
	json_t *rows = accept_rows(document);
	json_t *figures = accept_figures(document);
	int code = accept_write_json(document, view, &json, err);
	accept_headline(document, rows, &headline);
	certificate_add_cut(&lead, headline.data ? headline.data : "", CERTIFICATE_HEADLINE_BYTES);
	struct page *page = rows && figures && !code && !headline.failed && !lead.failed
				    ? page_begin(certificate_title(document), lead.data)
				    : NULL;
	(void)snprintf(
		sum, sizeof sum, "%016" PRIx64, code ? 0 : hash_bytes(json.data, json.size, 0));
	code = page ? certificate_fill(page, document, figures, sum) : -ENOMEM;
	buffer_release(&json);
	buffer_release(&headline);
	buffer_release(&lead);
	json_decref(rows);
	json_decref(figures);
	if (!code)
		return page_end(page, out, err);
	page_release(page);
	return error_set(err, code, "out of memory for the certificate");
}
