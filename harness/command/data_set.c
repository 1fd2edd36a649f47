/* The data set of a configuration: opened, generated or verified, with a progress line.  Apart from the plan, so that
 * `mlbench gen` needs nothing of what runs and reads. */
#include "harness/command/data_set.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/config/tables.h"

#include <errno.h>
#include <malloc.h>

enum { LEFT_OUT_TOLD = 10 };

struct data_telling {
	const char *verb;
	uint64_t begun_ns, done; /* of the pass: sizes and times are one, headers another */
};

static void data_tell(void *context, uint64_t done, uint64_t total, uint64_t bytes)
{
	struct data_telling *telling = context;
	if (done < telling->done)
		telling->begun_ns = clock_now_ns();
	telling->done = done;
	const double seconds = (double)(clock_now_ns() - telling->begun_ns) / (double)NS_PER_S;
	char size[UNITS_BYTES];
	char eta[UNITS_BYTES];
	if (done == 0)
		return;
	if (total == 0) {
		log_progress("listing: %llu files so far", (unsigned long long)done);
		return;
	}
	const double rest = seconds / (double)done * (double)(total - done);
	log_progress("%s %llu of %llu samples (%.0f%%), %s, ETA %s", telling->verb,
		(unsigned long long)done, (unsigned long long)total,
		100.0 * (double)done / (double)total, units_format_size((double)bytes, size),
		clock_format_span(rest, eta, sizeof eta));
}

int data_generate(const struct config *config, const atomic_bool *stop,
	struct dataset_generated *out, struct error *err)
{
	struct data_telling telling = {.verb = "generating", .begun_ns = clock_now_ns()};
	const struct dataset_control control = {
		.progress = data_tell, .context = &telling, .stop = stop};
	const int code = dataset_generate(config, &control, out, err);
	(void)malloc_trim(0); /* what generating needed is not what a run is resident with */
	log_progress_end();
	return code;
}

int data_verify(const struct config *config, const atomic_bool *stop, struct dataset_verified *out,
	struct error *err)
{
	struct data_telling telling = {.verb = "verifying", .begun_ns = clock_now_ns()};
	const struct dataset_control control = {
		.progress = data_tell, .context = &telling, .stop = stop};
	const int code = dataset_verify(config, &control, out, err);
	log_progress_end();
	return code;
}

static int data_make(const struct config *config, const atomic_bool *stop, struct error *err)
{
	struct dataset_generated made = {0};
	char size[UNITS_BYTES];
	char took[UNITS_BYTES];
	const int code = data_generate(config, stop, &made, err);
	if (!code)
		log_info("generated %llu samples, %s, in %s",
			(unsigned long long)made.made + made.kept,
			units_format_size((double)made.bytes, size),
			clock_format_span(made.seconds, took, sizeof took));
	return code;
}

static void data_tell_left_out(const struct dataset *dataset)
{
	for (size_t i = 0; i < dataset->bad_count && i < LEFT_OUT_TOLD; i++)
		log_warn("left out: %s: %s", dataset->bad[i].path, dataset->bad[i].reason);
	if (dataset->bad_count > LEFT_OUT_TOLD)
		log_warn("left out: %s%zu more %s", dataset->offsets ? "parts of files, for " : "",
			dataset->bad_count - LEFT_OUT_TOLD, dataset->offsets ? "reasons" : "files");
	if (*dataset->skipped)
		log_warn("left out by their names: %s", dataset->skipped);
	if (*dataset->advice)
		log_warn("%s", dataset->advice);
}

int data_open(const struct config *config, struct dataset *dataset, const atomic_bool *stop,
	bool make, struct error *err)
{
	struct data_telling telling = {.verb = "looking at", .begun_ns = clock_now_ns()};
	const struct dataset_control control = {
		.progress = data_tell, .context = &telling, .stop = stop};
	log_set_wait("storage: examining the files of the data set");
	int code = dataset_open(config, &control, dataset, err);
	log_set_wait(NULL);
	log_progress_end();
	const bool recipe = config_integer(config, KEY_DATASET_RECIPE) != DATASET_RECIPE_NONE;
	const bool may = config_integer(config, KEY_DATASET_GENERATE) == DATASET_GENERATE_AUTO;
	if (code == -ENODATA && make && recipe && !may)
		return error_prefix(
			err, code, "dataset.generate = never, and 'mlbench gen' was not run");
	if (code == -ENODATA && make && recipe) {
		err->text[0] = '\0';
		code = data_make(config, stop, err);
		if (!code)
			code = dataset_open(config, &control, dataset, err);
	}
	if (!code)
		data_tell_left_out(dataset);
	return code;
}
