/* mlbench gen: the data set of a recipe. */
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/command/data_set.h"
#include "harness/config/tables.h"

#include <errno.h>
#include <string.h>

/* What is printed of one data set or several: one object, or all of them in "forms". */
struct gen_output {
	json_t *forms; /* an array */
	struct buffer text;
	uint64_t bad;
};

static int verify_one_form(const struct invocation *invocation, const struct config *config,
	struct gen_output *out, struct error *err)
{
	struct dataset_verified verified = {0};
	const char *const path = config_text(config, KEY_DATASET_PATH);
	const int code = data_verify(config, invocation->stop, &verified, err);
	if (code)
		return code;
	out->bad += verified.bad;
	(void)json_array_append_new(out->forms,
		json_pack("{s:s, s:s, s:I, s:I}", "schema", "mlbench.verify/1", "path", path,
			"good", (json_int_t)verified.good, "bad", (json_int_t)verified.bad));
	buffer_format(&out->text, "%s: %llu files good, %llu bad\n", path,
		(unsigned long long)verified.good, (unsigned long long)verified.bad);
	return 0;
}

static int generate_one_form(const struct invocation *invocation, const struct config *config,
	struct gen_output *out, struct error *err)
{
	struct dataset_generated made = {0};
	char size[UNITS_BYTES];
	char took[UNITS_BYTES];
	const char *const path = config_text(config, KEY_DATASET_PATH);
	const int code = data_generate(config, invocation->stop, &made, err);
	if (code == -EINTR)
		(void)error_set(err, code,
			"stopped: the files made so far are kept; the same command continues");
	if (code)
		return code;
	(void)json_array_append_new(
		out->forms, json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:f}", "schema",
				    "mlbench.gen/1", "path", path, "made", (json_int_t)made.made,
				    "kept", (json_int_t)made.kept, "bytes", (json_int_t)made.bytes,
				    "seconds", made.seconds, "encode_share", made.encode_share));
	buffer_format(&out->text, "%s: %llu samples made, %llu existed, %s, in %s\n", path,
		(unsigned long long)made.made, (unsigned long long)made.kept,
		units_format_size((double)made.bytes, size),
		clock_format_span(made.seconds, took, sizeof took));
	return 0;
}

typedef int gen_form(const struct invocation *invocation, const struct config *config,
	struct gen_output *out, struct error *err);

/* Points of one storage form have one data set. */
static int gen_each_form(const struct invocation *invocation, const struct config *config,
	gen_form *one, struct gen_output *out, struct error *err)
{
	struct config_grid grid = {0};
	if (!config_sweeps_storage(config))
		return one(invocation, config, out, err);
	json_t *const done = json_object(); /* paths */
	int code = config_grid_open(config, &grid, err);
	for (size_t point = 0; point < grid.points && !code; point++) {
		struct config form = {0};
		code = config_grid_point(config, &grid, point, &form, err);
		const char *const path = code ? "" : config_text(&form, KEY_DATASET_PATH);
		if (!code && !json_object_get(done, path)) {
			(void)json_object_set_new_nocheck(done, path, json_true());
			code = one(invocation, &form, out, err);
		}
		config_release(&form);
	}
	config_grid_close(&grid);
	json_decref(done);
	return code;
}

static int gen_report(const struct invocation *invocation, const struct config *config,
	gen_form *one, struct error *err)
{
	struct gen_output out = {.forms = json_array()};
	int status = command_status(gen_each_form(invocation, config, one, &out, err));
	if (!status && !command_wants_json(invocation)) {
		status = command_print(&out.text, err);
		out.text = (struct buffer){0};
	} else if (!status) {
		json_t *const first = json_array_get(out.forms, 0);
		status = command_print_json(invocation,
			config_sweeps_storage(config)
				? json_pack("{s:s, s:O}", "schema", "mlbench.gen_forms/1", "forms",
					  out.forms)
				: json_incref(first),
			err);
	}
	buffer_release(&out.text);
	json_decref(out.forms);
	return status ? status : out.bad ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
}

/* Every point of it: a mistake is said before anything is written. */
static int gen_validate(const struct config *config, struct error *err)
{
	struct config_grid grid = {0};
	int code = config_grid_open(config, &grid, err);
	for (size_t point = 0; point < grid.points && !code; point++) {
		struct config one = {0};
		code = config_grid_point(config, &grid, point, &one, err);
		if (!code)
			code = config_validate(&one, err);
		config_release(&one);
	}
	config_grid_close(&grid);
	return code;
}

static int gen_run(const struct invocation *invocation, struct error *err)
{
	struct config config = {0};
	const char *name = invocation->options.arguments[0];
	const bool verify = options_given(&invocation->options, OPTION_VERIFY);
	int code = config_place_read(&config, invocation, name, err);
	if (!code)
		code = gen_validate(&config, err);
	if (!code && config_integer(&config, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE)
		code = error_set(err, -EINVAL, "'%s' has no recipe to %s (dataset.recipe = none)",
			name, verify ? "verify it against" : "generate");
	int status = command_status(code);
	if (!status)
		status = gen_report(
			invocation, &config, verify ? verify_one_form : generate_one_form, err);
	config_release(&config);
	return status;
}

const struct command command_gen = {
	.name = "gen",
	.summary = "generate the data set of a recipe, or verify it",
	.arguments = "CONFIG",
	.description =
		"Writes the synthetic samples of CONFIG's [dataset] section into dataset.path, on "
		"all cores. The files depend on dataset.seed and their number only. After a stop "
		"or a crash, it continues where it was; the data set is complete only when its "
		"manifest is in place. Of a sweep over storage forms (sweep.dataset.container, "
		"sweep.dataset.format) it makes each.\n\n"
		"--verify writes nothing: it reads every file and compares it with the manifest.",
	.example = "mlbench gen configs/imagenet_like.ini --set dataset.samples=2000",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_VERIFY) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = gen_run,
};
