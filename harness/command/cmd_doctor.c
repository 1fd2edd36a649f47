/* mlbench doctor: what this node has and lacks for measuring, what follows, and how to mend it. */
#include "harness/command/command.h"
#include "harness/measure/node_checks.h"
#include "harness/record/fields.h"
#include "harness/report/html/assets.h"
#include "harness/report/style.h"
#include "workloads/backend/backend.h"
#include "workloads/ranks/ranks_look.h"
#include "workloads/source/residency.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	ALL_MAX = DOCTOR_FINDINGS_MAX + 16,
	SUBJECT_COLUMNS = 18,
	NARROW_COLUMNS = 4,
	INDENT_COLUMNS = 10,
	WHY_BYTES = BACKEND_WHY_BYTES
};

struct findings {
	struct doctor_finding all[ALL_MAX];
	size_t count;
};

/* consequence, remedy: "": there is none. */
static void add_finding(struct findings *findings, enum doctor_level level, const char *subject,
	const char *name, const char *state, const char *consequence, const char *remedy)
{
	struct doctor_finding *finding = &findings->all[findings->count];
	if (findings->count + 1 < ALL_MAX)
		findings->count++;
	*finding = (struct doctor_finding){.level = level};
	(void)snprintf(finding->subject, sizeof finding->subject, "%s%s", subject, name);
	(void)snprintf(finding->state, sizeof finding->state, "%.*s",
		(int)sizeof finding->state - 1, state);
	(void)snprintf(finding->consequence, sizeof finding->consequence, "%s", consequence);
	(void)snprintf(finding->remedy, sizeof finding->remedy, "%s", remedy);
}

static void doctor_add_sources(struct findings *findings)
{
	for (size_t i = 0; source_list[i]; i++) {
		char why[WHY_BYTES];
		const char *reason = source_list[i]->unavailable
					     ? source_list[i]->unavailable(why, sizeof why)
					     : NULL;
		add_finding(findings, reason ? DOCTOR_LACKS : DOCTOR_OK, "engine ",
			source_list[i]->name, reason ? reason : "works",
			reason ? "read.engine = auto uses pread instead; asked for by name, a run exits with "
				 "status 3"
			       : "",
			"");
	}
}

static void add_backends(struct findings *findings)
{
	for (size_t i = 0; backend_list[i]; i++) {
		const struct backend_ops *ops = backend_list[i];
		char why[WHY_BYTES];
		char details[WHY_BYTES] = "";
		char state[sizeof findings->all[0].state];
		const char *reason = ops->unavailable ? ops->unavailable(why, sizeof why) : NULL;
		/* Versions and devices, also where something is lacking. */
		if (ops->details)
			(void)ops->details(details, sizeof details);
		(void)snprintf(state, sizeof state, "%s%s%s", reason ? reason : "works",
			*details ? (reason ? "; " : ": ") : "", details);
		add_finding(findings, reason ? DOCTOR_NOTE : DOCTOR_OK, "backend ", ops->name,
			state,
			!reason ? ""
			: ops->on_cores
				? "no step is computed on the CPU, and no matrix product is probed"
				: "step.backend = auto emulates a device, and every output says so",
			"");
	}
}

static void add_residency(struct findings *findings)
{
	bool available = false;
	char state[sizeof findings->all[0].state];
	const char *how = residency_method(&available);
	(void)snprintf(state, sizeof state, "%s%s", available ? "measured by " : "", how);
	add_finding(findings, available ? DOCTOR_OK : DOCTOR_LACKS, "cache residency", "", state,
		available ? "" : "read.cache = cold and warm cannot be proved, and are refused",
		"");
}

static void add_charts(struct findings *findings)
{
	const char *why = asset_charts_unavailable();
	add_finding(findings, why ? DOCTOR_NOTE : DOCTOR_OK, "charts", "",
		why ? why : "report.html draws them, without a network",
		why ? "report.html has tables only" : "",
		why ? "install libjs-vega (or run 'make setup'), then 'make'" : "");
}

static void add_ranks(struct findings *findings)
{
	struct ranks_found found;
	char text[RANKS_SENTENCE_BYTES];
	ranks_look(&found);
	ranks_describe(&found, text);
	add_finding(findings, found.why[0] || !found.launchers[0] ? DOCTOR_NOTE : DOCTOR_OK,
		"ranks", "", text,
		found.why[0] || !found.launchers[0]
			? "a job has one rank here: no other node or process trains with it"
			: "",
		found.why[0]          ? "install libopenmpi-dev, then 'make'"
		: !found.launchers[0] ? "install openmpi-bin, or use your scheduler's launcher"
				      : "");
}

static void render_finding(
	const struct doctor_finding *finding, const struct style *style, struct buffer *out)
{
	static const enum ink inks[] = {INK_GOOD, INK_WARN, INK_BAD};
	static const char *const words[] = {"ok", "warning", "missing"};
	enum { WORD_COLUMNS = 8 };
	const bool narrow = style->width < STYLE_WIDTH_NARROW;
	const int indent = narrow ? NARROW_COLUMNS : INDENT_COLUMNS + SUBJECT_COLUMNS + 2;
	buffer_text(out, "  ");
	style_field(style, inks[finding->level], words[finding->level], WORD_COLUMNS, out);
	style_field(style, INK_BOLD, finding->subject, SUBJECT_COLUMNS, out);
	buffer_text(out, narrow ? "\n" : "  ");
	buffer_repeat(out, " ", narrow ? indent : 0);
	style_wrap(style, finding->state, indent, indent, out);
	if (finding->consequence[0]) {
		buffer_repeat(out, " ", indent);
		style_wrap(style, finding->consequence, indent, indent, out);
	}
	if (finding->remedy[0]) {
		buffer_repeat(out, " ", indent);
		buffer_format(out, "%sfix:%s ", style_ink(style, INK_ACCENT), style_end(style));
		style_wrap(style, finding->remedy, indent, indent + (int)strlen("fix: "), out);
	}
}

static size_t count_level(const struct findings *findings, enum doctor_level level)
{
	size_t count = 0;
	for (size_t i = 0; i < findings->count; i++)
		count += findings->all[i].level == level;
	return count;
}

static int print_text(
	const struct invocation *invocation, const struct findings *findings, struct error *err)
{
	const struct style style = command_style(invocation);
	struct buffer text = {0};
	buffer_text(&text, "is this node fit for measuring?\n\n");
	for (size_t i = 0; i < findings->count; i++)
		render_finding(&findings->all[i], &style, &text);
	buffer_format(&text, "\n%zu ok, %zu warnings, %zu missing\n",
		count_level(findings, DOCTOR_OK), count_level(findings, DOCTOR_NOTE),
		count_level(findings, DOCTOR_LACKS));
	return command_print(&text, err);
}

static int doctor_print_json(
	const struct invocation *invocation, const struct findings *findings, struct error *err)
{
	static const char *const levels[] = {"ok", "note", "lacks"};
	json_t *array = json_array();
	int bad = array ? 0 : -ENOMEM;
	for (size_t i = 0; i < findings->count && !bad; i++) {
		const struct doctor_finding *finding = &findings->all[i];
		bad = json_array_append_new(array,
			json_pack("{s:s, s:o, s:o, s:o, s:o}", "level", levels[finding->level],
				"subject", fields_text(finding->subject), "state",
				fields_text(finding->state), "consequence",
				fields_text(finding->consequence), "remedy",
				fields_text(finding->remedy)));
	}
	return command_print_json(invocation,
		json_pack("{s:s, s:o}", "schema", "mlbench.doctor/1", "findings", array), err);
}

static int doctor_run(const struct invocation *invocation, struct error *err)
{
	struct findings findings = {0};
	const char *path =
		invocation->options.argument_count > 0 ? invocation->options.arguments[0] : NULL;
	findings.count = node_checks(findings.all, DOCTOR_FINDINGS_MAX, path);
	doctor_add_sources(&findings);
	add_residency(&findings);
	add_backends(&findings);
	add_ranks(&findings);
	add_charts(&findings);
	return command_wants_json(invocation) ? doctor_print_json(invocation, &findings, err)
					      : print_text(invocation, &findings, err);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "find what disturbs measuring on this node, and how to fix it",
	.arguments = "[FOLDER]",
	.description =
		"Each finding says what was found, what it means for measuring, and how to fix "
		"it. With FOLDER, it also checks the file system and the disk of a data set "
		"there.",
	.example = "mlbench doctor data/imagenet_like",
	.options = OPTION_BIT(OPTION_JSON),
	.arguments_max = 1,
	.run = doctor_run,
};
