/* mlbench probe: what this node can give at best. */
#include "harness/base/log.h"
#include "harness/base/memory.h"
#include "harness/command/command.h"
#include "harness/command/probe_node.h"
#include "harness/record/ceilings.h"
#include "harness/report/ceilings_cache.h"
#include "harness/report/ceilings_sheet.h"
#include "harness/report/style.h"
#include "workloads/backend/cuda.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct probing {
	const struct invocation *invocation;
	const struct probe_bounds *bounds;
	struct config config; /* of the first point */
	bool configured;      /* by a file */
	struct probe_target target;
	char folder[PATH_MAX];
	struct ceilings ceilings;
};

static bool given(const struct probing *probing, enum option_id id)
{
	return options_given(&probing->invocation->options, id);
}

/* Keys that are swept take the first point's values. */
static int read_config(struct probing *probing, struct error *err)
{
	const struct options *options = &probing->invocation->options;
	struct config all;
	struct config_grid grid = {0};
	probing->configured = options->argument_count > 0;
	if (!probing->configured) /* a file's reader begins anew */
		config_init(&all);
	int code = config_place_read(
		&all, probing->invocation, probing->configured ? options->arguments[0] : NULL, err);
	if (!code)
		code = config_grid_open(&all, &grid, err);
	if (!code)
		code = config_grid_point(&all, &grid, 0, &probing->config, err);
	config_grid_close(&grid);
	config_release(&all);
	return code;
}

static int probe_choose_folder(struct probing *probing, struct error *err)
{
	const char *asked = probing->invocation->options.values[OPTION_PATH];
	const char *data = config_text(&probing->config, KEY_DATASET_PATH);
	const char *path = asked ? asked : *data ? data : ".";
	struct stat st;
	if (snprintf(probing->folder, sizeof probing->folder, "%s", path) >= PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "path too long: '%s'", path);
	if (strstr(path, "://"))
		return error_set(err, -EINVAL,
			"cannot probe '%.300s': only folders of this node are probed; mount the server, or name a folder with --path",
			path);
	if (asked && stat(asked, &st) != 0)
		return error_set_errno(err, errno, "cannot probe '%s'", asked);
	if (asked && !S_ISDIR(st.st_mode))
		return error_set(err, -ENOTDIR, "cannot probe '%s': it is not a folder", asked);
	/* The data set's folder, or the nearest one above it that is there. */
	while (stat(probing->folder, &st) != 0 || !S_ISDIR(st.st_mode)) {
		char *slash = strrchr(probing->folder, '/');
		if (slash)
			slash[slash == probing->folder] = '\0';
		else
			(void)snprintf(probing->folder, sizeof probing->folder, ".");
	}
	return 0;
}

static int probe_prepare(struct probing *probing, struct error *err)
{
	struct probe_target *target = &probing->target;
	int code = read_config(probing, err);
	if (!code)
		code = probe_choose_folder(probing, err);
	target->config = &probing->config;
	target->folder = probing->folder;
	if (!code)
		code = probe_look(target, probing->bounds, probing->invocation->stop, err);
	return code ? code : node_identify(probing->folder, &target->node, err);
}

/* Reads into the pages that they would be made into now: into others they are another ceiling. */
static bool probe_same_pages(const struct probing *probing, const struct ceilings *kept)
{
	enum { TRIAL_BYTES = 8 << 20 };
	struct memory_block block;
	const bool huge = config_on(&probing->config, KEY_READ_HUGE_PAGES);
	if (!kept->read_pages[0] || memory_map(&block, TRIAL_BYTES, huge) != 0)
		return false;
	const bool same = !memory_pages_differ(kept->read_pages, memory_pages_name(block.pages));
	memory_unmap(&block);
	return same;
}

/* Whether the kept results answer what is asked now. */
static bool probe_answers(const struct probing *probing, const struct ceilings *kept)
{
	char why[NOTE_BYTES];
	if (ceilings_stale_here(kept, why, sizeof why))
		return false;
	/* What could not be measured then is tried again. */
	if (kept->read_count == 0 || kept->decode_count == 0 || !probe_same_pages(probing, kept))
		return false;
	if (kept->quick && !probing->bounds->quick)
		return false;
	if (!kept->has_device && cuda_find()->ready)
		return false; /* kept from before there was a plug-in */
	if (!probing->configured)
		return true;
	const double file = probe_file_bytes(&probing->target);
	const bool same_file = isnan(file) || file == kept->file_bytes;
	return same_file &&
	       kept->batch == (uint32_t)config_integer(&probing->config, KEY_BATCH_SIZE) &&
	       strcmp(kept->model, config_text(&probing->config, KEY_STEP_MODEL)) == 0;
}

static int probe_measure(struct probing *probing)
{
	struct error err = {0};
	struct ceilings *ceilings = &probing->ceilings;
	if (probe_node(&probing->target, probing->bounds, probing->invocation->stop, ceilings)) {
		log_warn("interrupted: what was measured is printed, but not kept");
		return EXIT_STATUS_INTERRUPTED;
	}
	if (ceilings->read_count == 0 && ceilings->decode_count == 0 && ceilings->gemm_count == 0 &&
		!ceilings->has_device && !isfinite(ceilings->memory_bytes_per_s_one) &&
		!isfinite(ceilings->clock_read_ns)) {
		log_warn("nothing could be measured");
		return EXIT_STATUS_CANNOT;
	}
	if (!given(probing, OPTION_NO_CACHE) && ceilings_save(ceilings, &err))
		log_warn("not kept for later runs: %s", err.text);
	/* Every node has storage, cores and memory: without its figure the sheet is no answer. */
	if (ceilings->read_count == 0)
		log_warn("the storage could not be measured; the sheet says why");
	return ceilings->read_count == 0 ? EXIT_STATUS_CANNOT : EXIT_STATUS_DONE;
}

static int probe_print(const struct probing *probing, struct error *err)
{
	const double now = (double)time(NULL);
	if (command_wants_json(probing->invocation))
		return command_print_json(
			probing->invocation, ceilings_to_json(&probing->ceilings, now), err);
	const struct style style = command_style(probing->invocation);
	struct buffer text = {0};
	ceilings_sheet(&probing->ceilings, now, &style, &text);
	return command_print(&text, err);
}

static int probe_run(const struct invocation *invocation, struct error *err)
{
	struct probing *probing = calloc(1, sizeof *probing);
	if (!probing)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	probing->invocation = invocation;
	probing->bounds = given(probing, OPTION_QUICK) ? &probe_bounds_quick : &probe_bounds_full;
	int status = command_status(probe_prepare(probing, err));
	if (!status) {
		struct error why;
		if (!given(probing, OPTION_FRESH) && !given(probing, OPTION_NO_CACHE) &&
			ceilings_load_node(&probing->target.node, &probing->ceilings, &why) == 0 &&
			probe_answers(probing, &probing->ceilings))
			log_info("kept results of this node; --fresh measures again");
		else
			status = probe_measure(probing);
		const int printed = probe_print(probing, err);
		status = status ? status : printed;
	}
	probe_forget(&probing->target);
	config_release(&probing->config);
	free(probing);
	return status;
}

const struct command command_probe = {
	.name = "probe",
	.summary = "measure the ceilings of this node: storage, cores, memory, GPU",
	.arguments = "[CONFIG]",
	.description =
		"Prints the node's data sheet. Storage: bytes and requests per second over the "
		"queue depth, cold past the page cache, cold through it, and warm. Decoding on "
		"one core, on all, and between. Memory bandwidth. Matrix products at their best "
		"shape and at the model's shapes. The cost of handing over a lock, reading a "
		"clock, and sleeping. Of a GPU: copies to and from it (pinned and pageable "
		"memory, 4 KiB to 256 MiB), its memory, launches, and products in every "
		"precision. Each figure is the median of five interleaved repetitions, with "
		"minimum and maximum. It takes about a minute, with --quick a quarter of that. "
		"What cannot be measured is listed with the reason. Probe an idle node: a note says "
		"how many cores other programs took.\n\n"
		"With CONFIG, it probes that data set's file system, mean file size and samples, "
		"and the model's shapes; without, the current folder's file system, generated "
		"images, and the default model. It writes scratch files of some hundred MiB to "
		"the folder; they have no name, so nothing of them remains.\n\n"
		"Results are kept per node in $XDG_CACHE_HOME/mlbench (or ~/.cache/mlbench), for "
		"30 days and as long as cores and kernel stay the same. Later runs on the same "
		"storage copy them into their own results, with their age, for verdicts and "
		"predictions.",
	.example = "mlbench probe configs/imagenet_like.ini --quick",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_JSON) |
		   OPTION_BIT(OPTION_PATH) | OPTION_BIT(OPTION_QUICK) | OPTION_BIT(OPTION_FRESH) |
		   OPTION_BIT(OPTION_NO_CACHE),
	.arguments_max = 1,
	.run = probe_run,
};
