/* mlbench diagnose: which stage and which resource bind, what each alternative would gain, and the proof. */
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/calibration.h"
#include "harness/command/command.h"
#include "harness/command/follow.h"
#include "harness/command/party.h"
#include "harness/command/run_plan.h"
#include "harness/command/saved.h"
#include "harness/command/step_facts.h"
#include "harness/command/verify.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/html/report_page.h"
#include "harness/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct request {
	const struct invocation *invocation;
	bool is_saved; /* of a RESULT */
	bool verify, follow;
	double budget_s;
	int64_t point; /* -1: the best */
	size_t steps;  /* of --follow */
};

/* --- what was asked for ----------------------------------------------------------------------- */

static int read_number(const struct options *options, enum option_id id, int64_t least,
	int64_t most, int64_t *value, struct error *err)
{
	const char *text = options->values[id];
	if (text && (units_parse_integer(text, value) != 0 || *value < least || *value > most))
		return error_set(err, -EINVAL, "--%s takes a number from %lld to %lld, not '%s'",
			option_specs[id].name, (long long)least, (long long)most, text);
	return 0;
}

static int read_budget(const struct options *options, double *budget_s, struct error *err)
{
	const char *text = options->values[OPTION_BUDGET];
	uint64_t ns;
	*budget_s = VERIFY_BUDGET_DEFAULT_S;
	if (!text)
		return 0;
	if (units_parse_duration(text, &ns) != 0 || ns == 0)
		return error_set(
			err, -EINVAL, "--budget takes a time, as '90s' or '3m', not '%s'", text);
	*budget_s = (double)ns / (double)NS_PER_S;
	return 0;
}

/* Options that mean nothing with what was given are refused, not ignored. */
static int check_request(const struct request *request, struct error *err)
{
	static const enum option_id of_config[] = {OPTION_SET, OPTION_OUT, OPTION_FOLLOW};
	const struct options *options = &request->invocation->options;
	for (size_t i = 0; i < COUNT(of_config); i++)
		if (request->is_saved && options_given(options, of_config[i]))
			return error_set(err, -EINVAL,
				"--%s needs a CONFIG to measure; '%s' is a saved result",
				option_specs[of_config[i]].name, options->arguments[0]);
	if (!request->is_saved && request->point >= 0)
		return error_set(err, -EINVAL, "--point is for a saved sweep; '%s' is measured now",
			options->arguments[0]);
	if (options_given(options, OPTION_BUDGET) && !request->verify)
		return error_set(
			err, -EINVAL, "--budget limits the time of --verify: give --verify, too");
	return 0;
}

static int read_request(
	struct request *request, const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	int64_t steps = FOLLOW_DEFAULT;
	*request = (struct request){.invocation = invocation,
		.is_saved = saved_is_meant(options->arguments[0]),
		.verify = options_given(options, OPTION_VERIFY),
		.follow = options_given(options, OPTION_FOLLOW),
		.point = -1};
	int code = read_number(options, OPTION_POINT, 0, CONFIG_POINTS_MAX, &request->point, err);
	if (!code)
		code = read_number(options, OPTION_FOLLOW, 1, FOLLOW_MOST, &steps, err);
	if (!code)
		code = read_budget(options, &request->budget_s, err);
	request->steps = (size_t)steps;
	return code ? code : check_request(request, err);
}

/* --- one saved point -------------------------------------------------------------------------- */

struct finding {
	struct record record;
	struct report report;
	struct diagnosed diagnosed;
	struct verification verification;
	bool verified;
	bool out_of_time; /* --budget, to verify what was measured */
	struct follow follow;
	bool followed;
};

/* The data set of the saved configuration, to run experiments with, on as many ranks as then. */
static int verify_now(const struct request *request, struct finding *finding, struct error *err)
{
	struct invocation plain = *request->invocation;
	struct party *const party = plain.joined;
	struct plan plan = {0};
	struct verify_ranks ranks = {0};
	plain.options.set_count = 0; /* they are in the saved configuration */
	int code = config_copy(&plan.config, &finding->diagnosed.config, err);
	if (!code && party->ranks && config_integer(&plan.config, KEY_RUN_RANKS) == 0)
		code = config_set_key(&plan.config, KEY_RUN_RANKS, "1", err);
	if (!code)
		code = plan_open(&plan, &plain, NULL, err);
	if (!code)
		code = plan_data(&plan, &plain, true, err);
	if (!code)
		code = party_begin(party, &plan, err);
	if (!code && party->ranks)
		code = party->calls->verify_open(
			&ranks, &finding->report, &finding->diagnosed, err);
	if (!code) {
		const struct verify_job job = {.diagnosed = &finding->diagnosed,
			.dataset = &plan.dataset,
			.party = party,
			.ranks = &ranks,
			.folder = finding->record.folder,
			.budget_s = request->budget_s,
			.stop = request->invocation->stop};
		err->text[0] = '\0';
		code = verify_run(&job, &finding->verification, err);
		finding->verified = !code;
	}
	if (party->ranks)
		party->calls->verify_close(&ranks);
	plan_close(&plan);
	return code;
}

/* How fast an emulated step lets it be at most; of others that is not known before. */
static double step_bound(const struct config *config)
{
	const double batch = (double)config_integer(config, KEY_BATCH_SIZE);
	const double step_ns = step_facts_time(config, (uint32_t)batch);
	const double devices = (double)config_integer(config, KEY_STEP_DEVICES);
	return step_ns > 0 ? devices * batch * (double)NS_PER_S / step_ns : INFINITY;
}

/* Before anything runs, as far as the configuration tells. */
static int check_budget(const struct request *request, struct error *err)
{
	struct plan plan = {0};
	int code = plan_open(
		&plan, request->invocation, request->invocation->options.arguments[0], err);
	if (!code)
		code = verify_check_budget(
			&plan.config, step_bound(&plan.config), false, request->budget_s, err);
	plan_close(&plan);
	return code;
}

/* What was measured just now is told, also where its pace leaves too little time to prove it. */
static int find_verification(
	const struct request *request, struct finding *finding, struct error *err)
{
	const struct diagnosed *d = &finding->diagnosed;
	if (request->verify && d->diagnosis.samples_needed > 0)
		return 0;
	if (request->verify) {
		const int code = verify_check_budget(&d->config, d->summary->median,
			d->diagnosis.recommendation_count > 0, request->budget_s, err);
		if (!code)
			return verify_now(request, finding, err);
		if (request->is_saved)
			return code;
		struct buffer command = {0};
		record_add_command(&finding->record, "diagnose", &command);
		log_warn("not verified: %s; to verify it: %s --verify --budget %.0fs", err->text,
			command.data ? command.data : "mlbench diagnose",
			verify_least_budget(&d->config, d->summary->median, true));
		buffer_release(&command);
		err->text[0] = '\0';
		finding->out_of_time = true;
		return 0;
	}
	const int found =
		verification_load(finding->record.folder, d->point, &finding->verification, err);
	finding->verified = found > 0;
	return found < 0 ? found : 0;
}

static int diagnose_find(
	const struct request *request, const char *name, struct finding *finding, struct error *err)
{
	const struct record *record = &finding->record;
	int code = saved_open(&finding->record, name, SAVED_NEWEST, err);
	if (!code)
		code = report_open(&finding->report, record, err);
	const size_t point = request->point >= 0 ? (size_t)request->point : finding->report.best;
	if (!code && request->point >= 0 && point >= record->grid.points)
		code = error_set(err, -EINVAL, "there is no point %zu: '%s' has %zu, from 0 on",
			point, record->folder, record->grid.points);
	else if (!code && point >= record->grid.points)
		code = error_set(err, -EAGAIN,
			"nothing that counts was measured in '%s': 'mlbench show %s' says why",
			record->folder, record->folder);
	if (!code)
		code = diagnosed_open(&finding->diagnosed, &finding->report, point, err);
	return code ? code : find_verification(request, finding, err);
}

/* --- what is printed -------------------------------------------------------------------------- */

/* That a saved verification was interrupted is said, and is no status of this command. */
static int final_status(const struct request *request, const struct finding *finding,
	const struct diagnosis_view *view)
{
	const bool interrupted =
		(request->verify && finding->verified && finding->verification.interrupted) ||
		(finding->followed && finding->follow.interrupted);
	const bool failed = finding->followed && finding->follow.failed > 0;
	if (failed && !interrupted)
		return EXIT_STATUS_FAILED;
	if (!diagnosis_tells(view) || finding->out_of_time)
		return EXIT_STATUS_CANNOT;
	if (interrupted)
		return EXIT_STATUS_INTERRUPTED;
	return finding->verified && finding->verification.failed > 0 ? EXIT_STATUS_FAILED
								     : EXIT_STATUS_DONE;
}

static int diagnose_tell(
	const struct request *request, const struct finding *finding, struct error *err)
{
	const struct diagnosed *d = &finding->diagnosed;
	struct buffer settings = {0};
	report_settings(&finding->report, d->point, &settings);
	const struct diagnosis_view view = {.name = finding->record.name,
		.folder = finding->record.folder,
		.point = d->point,
		.settings = settings.data ? settings.data : "",
		.is_best = request->point < 0,
		.points = finding->record.grid.points,
		.samples = d->samples,
		.summary = d->summary,
		.diagnosis = &d->diagnosis,
		.verification = finding->verified ? &finding->verification : NULL,
		.follow = finding->followed ? &finding->follow : NULL};
	int printed;
	if (command_wants_json(request->invocation)) {
		printed = command_print_json(request->invocation, diagnosis_json(&view), err);
	} else {
		const struct style style = command_style(request->invocation);
		struct buffer text = {0};
		diagnosis_text(&view, &style,
			options_given(&request->invocation->options, OPTION_VERBOSE), &text);
		printed = command_print(&text, err);
	}
	const int status = final_status(request, finding, &view);
	buffer_release(&settings);
	return status ? status : printed;
}

/* The page has the experiments, too, and the summary what came of its advice; without them the diagnosis stands. */
static int renew_page(struct finding *finding)
{
	struct error err = {0};
	char *path = files_join(finding->record.folder, REPORT_PAGE_FILE);
	int code = path ? report_diagnose(&finding->report, &err) : -ENOMEM;
	if (!code && finding->followed)
		code = report_write_files(&finding->report, &err);
	if (!code)
		code = report_page_write(&finding->report, finding->diagnosed.point, path, &err);
	if (code)
		log_warn("%s", err.text[0] ? err.text : "out of memory for the report");
	else
		log_info("report: %s", path);
	free(path);
	return command_status(code);
}

/* --- the command ------------------------------------------------------------------------------ */

/* Measured now: *folder is where; the settings that --follow found lead to another one. */
static int measure(
	const struct request *request, struct finding *finding, char **folder, struct error *err)
{
	const struct invocation *invocation = request->invocation;
	int status = follow_measure(invocation, NULL, 0, NULL, folder, err);
	if (status == EXIT_STATUS_DONE && request->follow) {
		status = follow_advice(invocation, request->steps, folder, &finding->follow, err);
		finding->followed = status == EXIT_STATUS_DONE || finding->follow.interrupted;
	}
	return status;
}

static int diagnose_lead(const struct invocation *invocation, struct error *err)
{
	struct request request;
	struct finding *finding = calloc(1, sizeof *finding);
	char *folder = NULL;
	int code = finding ? read_request(&request, invocation, err)
			   : error_set(err, -ENOMEM, "out of memory");
	if (code) {
		free(finding);
		return command_status(code);
	}
	int status = EXIT_STATUS_DONE;
	if (!request.is_saved && request.verify)
		status = command_status(check_budget(&request, err));
	if (!request.is_saved && !status)
		status = measure(&request, finding, &folder, err);
	const bool stopped = status == EXIT_STATUS_INTERRUPTED;
	if (status && !request.is_saved && !folder && !err->text[0])
		(void)error_set(err, -ENODATA, "%s before there was anything to diagnose",
			stopped ? "interrupted" : "it failed");
	request.verify = request.verify && !stopped;
	const char *name = request.is_saved ? invocation->options.arguments[0] : folder;
	if (name && (status == EXIT_STATUS_DONE || stopped)) {
		code = diagnose_find(&request, name, finding, err);
		const int told =
			code ? command_status(code) : diagnose_tell(&request, finding, err);
		status = status ? status : told;
		const bool told_more = (request.verify && finding->verified) || finding->followed;
		const int renewed = !code && told_more ? renew_page(finding) : EXIT_STATUS_DONE;
		status = status ? status : renewed;
	}
	diagnosed_close(&finding->diagnosed);
	report_close(&finding->report);
	record_release(&finding->record);
	free(finding);
	free(folder);
	return status;
}

/* Of a job of ranks, the others measure for the leader until it is done. */
static int diagnose_run(const struct invocation *invocation, struct error *err)
{
	struct invocation leading = *invocation;
	struct party party;
	int status;
	if (!party_join(&party, invocation, &status, err))
		return status;
	leading.joined = &party;
	status = diagnose_lead(&leading, err);
	party_close(&party, status);
	return status;
}

const struct command command_diagnose = {
	.name = "diagnose",
	.summary = "name the bottleneck, predict what each fix gains, verify it",
	.arguments = "CONFIG | RESULT",
	.description =
		"Measures CONFIG as 'mlbench run' does, or takes a saved RESULT (of a sweep its "
		"fastest point, or --point N). Prints the stage and the resource that are the "
		"bottleneck, the confidence, what each cost takes from throughput, which "
		"bottlenecks come next, what to set and what that will gain, whether memory "
		"leaks, and whether the bottleneck changed during the run.\n\n"
		"Where measure.duration and measure.repeats are not set, it measures until the "
		"answer is clear: often 4 s, 10 s as a rule, 20 s at most. Where they are, it "
		"measures as long as they say, and if that is too little for a verdict up to "
		"four times measure.repeats; the first lines say how long that may take. If "
		"storage is the bottleneck, it reads alone for some seconds, with as many, twice "
		"and four times as many files in flight, to tell slow storage from full "
		"storage; if it is full, it reads the larger half of the files and the smaller "
		"half, to tell bytes from requests. If that is not enough, or the result is a "
		"saved one, it says which key to set to what ('set measure.duration to 14s or "
		"more').\n\n"
		"--verify tests the diagnosis by experiment. It replaces each stage by "
		"ready-made outputs, slows it down by 5 % and 10 %, and sets the recommended "
		"keys, in blocks of four runs (ABBA, in random order) against the configuration "
		"as it is, for at most --budget (3 minutes). The stage that the verdict names "
		"comes first, an experiment ends as soon as it is decided, and the time goes to "
		"the open ones. A prediction that the measurement misses is printed as FAILED. "
		"Only a miss that speaks against the verdict counts: the bottleneck may gain "
		"more than predicted, other stages less. Each failed prediction divides the odds "
		"that the verdict is right by 4 (same stage) or 1.5 (other stage). A prediction "
		"is unclear if the measurement is inconclusive, or if the configuration itself "
		"ran differently during the experiments than when it was diagnosed. A block whose "
		"baseline differs from that of the other blocks beyond their spread is measured "
		"again, at most twice for each experiment. verification.json keeps the "
		"measurements, and 'mlbench diagnose RESULT' prints them again.\n\n"
		"--follow applies the advice: it sets the recommended keys, measures, and "
		"continues from there until nothing is left to gain. Then it prints each step "
		"and the final settings. A prediction failed if the measurement lies outside its "
		"90 % interval (below half of the predicted gain, where that interval includes "
		"no gain) and the measurement's own interval does not reach it. The setting is "
		"then undone unless it certainly gains 5 % or more, the odds of the verdict "
		"behind it are divided by 4, and the advice is not given again. trials.json "
		"beside the result keeps the measurements for 'mlbench diagnose RESULT'.\n\n"
		"Started by a launcher ('mpirun -n 4 mlbench diagnose CONFIG'), all ranks measure "
		"together, and so do they for --verify and --follow; each experiment counts the "
		"slowest rank. A job with a straggler is also run without it, unless that is rank "
		"0, which leads. RESULT --verify needs as many ranks as the result has.\n\n"
		"Exit status: 0 diagnosed; 1 a prediction of --verify or --follow failed; 2 "
		"wrong input, or a --budget that is too short; 3 inconclusive, or no time was "
		"left for --verify; 130 interrupted.",
	.example = "mlbench diagnose configs/story.ini --verify",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_OUT) |
		   OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_POINT) |
		   OPTION_BIT(OPTION_VERIFY) | OPTION_BIT(OPTION_BUDGET) |
		   OPTION_BIT(OPTION_FOLLOW),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = diagnose_run,
};
