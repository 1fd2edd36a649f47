/* mlbench gen: the data set of a recipe. */
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/command/data_set.h"

#include <errno.h>

static int report_verified(
	const struct invocation *invocation, const struct config *config, struct error *err)
{
	struct dataset_verified verified = {0};
	const int code = data_verify(config, invocation->stop, &verified, err);
	if (code)
		return command_status(code);
	int status;
	if (command_wants_json(invocation)) {
		status = command_print_json(invocation,
			json_pack("{s:s, s:s, s:I, s:I}", "schema", "mlbench.verify/1", "path",
				config_text(config, KEY_DATASET_PATH), "good",
				(json_int_t)verified.good, "bad", (json_int_t)verified.bad),
			err);
	} else {
		struct buffer text = {0};
		buffer_format(&text, "%s: %llu files good, %llu bad\n",
			config_text(config, KEY_DATASET_PATH), (unsigned long long)verified.good,
			(unsigned long long)verified.bad);
		status = command_print(&text, err);
	}
	return status ? status : verified.bad ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
}

static int report_generated(
	const struct invocation *invocation, const struct config *config, struct error *err)
{
	struct dataset_generated made = {0};
	const int code = data_generate(config, invocation->stop, &made, err);
	if (code == -EINTR)
		(void)error_set(err, code,
			"stopped: the files made so far are kept; the same command continues");
	if (code)
		return command_status(code);
	if (command_wants_json(invocation))
		return command_print_json(invocation,
			json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:f}", "schema", "mlbench.gen/1",
				"path", config_text(config, KEY_DATASET_PATH), "made",
				(json_int_t)made.made, "kept", (json_int_t)made.kept, "bytes",
				(json_int_t)made.bytes, "seconds", made.seconds, "encode_share",
				made.encode_share),
			err);
	char size[UNITS_BYTES];
	char took[UNITS_BYTES];
	struct buffer text = {0};
	buffer_format(&text, "%s: %llu samples made, %llu existed, %s, in %s\n",
		config_text(config, KEY_DATASET_PATH), (unsigned long long)made.made,
		(unsigned long long)made.kept, units_format_size((double)made.bytes, size),
		clock_format_span(made.seconds, took, sizeof took));
	return command_print(&text, err);
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
		status = verify ? report_verified(invocation, &config, err)
				: report_generated(invocation, &config, err);
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
		"manifest is in place.\n\n"
		"--verify writes nothing: it reads every file and compares it with the manifest.",
	.example = "mlbench gen configs/imagenet_like.ini --set dataset.samples=2000",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_VERIFY) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = gen_run,
};
