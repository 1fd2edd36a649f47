/* libFuzzer target: any text is refused with a message or read, and what was read is dumped, read
 * back and hashed alike.  From the root of the tree:
 *
 *   clang-14 -std=gnu17 -D_GNU_SOURCE -DMLBENCH_VERSION='"fuzz"' -I. -g -O1 -fno-omit-frame-pointer
 * \
 *     -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -o build/fuzz_config \
 *     tests/fuzz/fuzz_config.c harness/config/{assign,config,dump,exclude,expand,grid,lines,list}.c
 * \
 *     harness/config/{reader,table,text,validate,value}.c \
 *     harness/base/{buffer,error,files,hash,suggest,units,units_format}.c -linih -lxxhash -lm
 *   mkdir -p build/fuzz-config && build/fuzz_config -max_total_time=120 -max_len=4096 -timeout=10 \
 *     -dict=tests/fuzz/config.dict build/fuzz-config tests/fuzz/corpus/config
 */
#include "harness/config/config.h"
#include "harness/fit/case.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_TRIED = 512 }; /* keeps an input's time short */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_config: %s\n", what);
	abort();
}

static void use_grid(const struct config *config)
{
	struct config_grid grid;
	struct config point;
	struct error err = {0};
	if (config_grid_open(config, &grid, &err)) {
		require(*err.text, "a refused grid without a message");
		return;
	}
	require(grid.points > 0, "an empty grid");
	const size_t last = grid.points - 1;
	if (config_grid_point(config, &grid, last, &point, &err) == 0) {
		require(point.axis_count == 0, "a point with axes");
		config_release(&point);
	}
	if (grid.points <= POINTS_TRIED && config_validate(config, &err))
		require(*err.text, "a refused configuration without a message");
	config_grid_close(&grid);
}

static void read_back(const struct config *config)
{
	struct config again;
	struct error err = {0};
	char hash[17];
	char hash_again[17];
	char *dump = config_dump(config);
	if (!dump)
		return;
	config_init(&again);
	if (config_read_text(&again, "dump", dump, strlen(dump), &err)) {
		(void)fprintf(stderr, "%s\n", err.text);
		require(0, "a dump that is refused");
	}
	char *dump_again = config_dump(&again);
	config_hash(config, hash);
	config_hash(&again, hash_again);
	require(dump_again && strcmp(dump, dump_again) == 0,
		"a dump that reads back as something else");
	require(strcmp(hash, hash_again) == 0, "a dump that hashes to something else");
	free(dump_again);
	free(dump);
	config_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct section_owner *const owners[] = {&case_owner, NULL};
	section_owners_register(owners);
	struct config config;
	struct error err = {0};
	config_init(&config);
	if (config_read_text(&config, "fuzz", (const char *)data, size, &err)) {
		require(strncmp(err.text, "fuzz:", 5) == 0, "a message without its place");
	} else {
		use_grid(&config);
		read_back(&config);
	}
	config_release(&config);
	return 0;
}
