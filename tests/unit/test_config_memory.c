/* Each allocation fails once: nothing crashes, nothing is lost, and the failure is reported. */
#include "harness/base/buffer.h"
#include "harness/config/config.h"
#include "harness/config/document.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATOR_IS_OURS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ALLOCATOR_IS_OURS 0
#endif
#endif
#ifndef ALLOCATOR_IS_OURS
#define ALLOCATOR_IS_OURS 1
#endif

static const char text[] =
	"[dataset]\npath = ${NO_SUCH_VARIABLE:-data}/x\nsamples = 1200\n"
	"[step]\nmodel = vit_b16\n"
	"[sweep]\ndecode.workers = 1,2,4\nbatch.size = 8-128*2\nstep.model = mlp,resnet50\n"
	"read.depth = 1,2,3\nzip = decode.workers, read.depth\n"
	"exclude = decode.workers=1 batch.size=8\nexclude = batch.size=16\n";

#if ALLOCATOR_IS_OURS
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *block);

static int armed;
static long until_failure;
static long live;

static int fails(void)
{
	return armed && until_failure-- == 0;
}

static void *count(void *block)
{
	if (armed && block)
		live++;
	return block;
}

void *malloc(size_t size)
{
	return fails() ? NULL : count(__libc_malloc(size));
}

void *calloc(size_t blocks, size_t size)
{
	return fails() ? NULL : count(__libc_calloc(blocks, size));
}

void *realloc(void *old, size_t size)
{
	if (fails())
		return NULL;
	return old ? __libc_realloc(old, size) : count(__libc_realloc(old, size));
}

void free(void *block)
{
	if (armed && block)
		live--;
	__libc_free(block);
}

/* A whole life of a configuration; 0, or the first error. */
static int live_once(void)
{
	struct config config;
	struct config point;
	struct config_grid grid;
	struct error err;
	char hash[17];
	config_init(&config);
	int code = config_read_text(&config, "a.ini", text, sizeof text - 1, &err);
	if (!code)
		code = config_set(&config, "read.depth=4", &err);
	if (!code)
		code = config_validate(&config, &err);
	if (!code)
		code = config_grid_open(&config, &grid, &err);
	if (!code) {
		code = config_grid_point(&config, &grid, 0, &point, &err);
		if (!code)
			config_release(&point);
		config_grid_close(&grid);
	}
	char *dump = config_dump(&config);
	config_hash(&config, hash);
	if (!code && !dump)
		code = -ENOMEM;
	free(dump);
	config_release(&config);
	return code;
}

static int write_documents(void)
{
	struct buffer out = {0};
	document_keys(&out, 80);
	document_manual(&out, "May 4, 2025");
	const int code = out.failed ? -ENOMEM : 0;
	buffer_release(&out);
	return code;
}

/* Fails the first allocation, then the second, ... until none is left to fail. */
static void fail_each(int (*run)(void), long least)
{
	long n = 0;
	for (int code = -1; code != 0; n++) {
		live = 0;
		until_failure = n;
		armed = 1;
		code = run();
		const long left = live;
		const int reached = until_failure < 0;
		armed = 0;
		if (left != 0)
			fail_msg("allocation %ld failed: %ld blocks were lost", n, left);
		if (code != 0 && code != -ENOMEM)
			fail_msg("allocation %ld failed: result %d", n, code);
		if (code == 0 && reached)
			code = -1; /* survived without it; go on to the next */
		assert_true(n < 100000);
	}
	assert_true(n > least);
}

static void configuration(void **state)
{
	(void)state;
	fail_each(live_once, 100);
}

static void documents(void **state)
{
	(void)state;
	fail_each(write_documents, 20);
}
#else
static void configuration(void **state)
{
	(void)state;
	(void)text;
	print_message("the sanitizer has its own allocator\n");
	skip();
}

static void documents(void **state)
{
	(void)state;
	skip();
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(configuration),
		cmocka_unit_test(documents),
	};
	return cmocka_run_group_tests_name("config_memory", tests, NULL, NULL);
}
