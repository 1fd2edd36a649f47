/* What measures stands without what reads: makes a data set, runs one repetition and leaves its record, linked with the whole of
 * libmeasuring.a and with no library that only reports need (Makefile).  Whatever reads may fail, or be missing: the run is there.
 *
 *     measuring_alone CONFIG FOLDER */
#include "harness/base/clock.h"
#include "harness/record/record.h"
#include "pipelines/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int open_record(
	struct record *record, const char *folder, const struct config *config, struct error *err)
{
	*record = (struct record){
		.folder = strdup(folder), .started = clock_utc_seconds(), .cores = 1};
	if (!record->folder)
		return error_set(err, -1, "out of memory");
	(void)snprintf(record->name, sizeof record->name, "alone");
	(void)snprintf(record->step.backend, sizeof record->step.backend, "emulated");
	(void)snprintf(record->step.description, sizeof record->step.description, "emulated");
	record->step.emulated = true;
	int code = config_copy(&record->config, config, err);
	if (code)
		return code;
	config_hash(&record->config, record->config_hash);
	code = config_grid_open(&record->config, &record->grid, err);
	return code ? code : record_create(record, err);
}

static int measure(const struct config *config, struct record *record, struct error *err)
{
	const struct dataset_control quiet = {.progress = NULL};
	struct dataset_generated made;
	struct dataset dataset = {0};
	struct measurement m = {0};
	struct traces traces = {0};
	int code = dataset_generate(config, &quiet, &made, err);
	if (!code)
		code = dataset_open(config, &quiet, &dataset, err);
	if (!code) {
		const struct pipeline_control control = {.traces = &traces};
		m.started = clock_utc_seconds();
		code = pipeline_run(config, &dataset, &control, &m, err);
	}
	if (!code)
		code = record_save_traces(record, &traces, &m, err);
	if (!code)
		code = record_append(record, &m, err);
	traces_release(&traces);
	measurement_release(&m);
	dataset_close(&dataset);
	return code ? code : record_end(record, err);
}

int main(int count, char **arguments)
{
	struct config config;
	struct record record = {0};
	struct error err = {""};
	if (count != 3)
		return 2;
	config_init(&config);
	int code = config_read_file(&config, arguments[1], &err);
	if (!code)
		code = open_record(&record, arguments[2], &config, &err);
	if (!code)
		code = measure(&config, &record, &err);
	if (code)
		fprintf(stderr, "%s\n", err.text);
	record_release(&record);
	config_release(&config);
	return code ? 1 : 0;
}
