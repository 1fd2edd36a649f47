/* libFuzzer target: any manifest is refused with a message, or is read and survives being written and read again.  The
 * checksum in the header is made right first, so that what is behind it is reached. */
#include "harness/base/hash.h"
#include "workloads/dataset/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SUM "\"body\":\""
#define AGAIN "build/fuzz/manifest-again"

enum { SUM_DIGITS = 16, PATH_ROOM = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_manifest: %s\n", what);
	abort();
}

static void mend_sum(char *text, size_t size)
{
	char hex[SUM_DIGITS + 1];
	char *body = memchr(text, '\n', size);
	char *at = body ? memmem(text, (size_t)(body - text), SUM, strlen(SUM)) : NULL;
	if (!at || (size_t)(body - at) < strlen(SUM) + SUM_DIGITS)
		return;
	(void)snprintf(hex, sizeof hex, "%016" PRIx64,
		hash_bytes(body + 1, size - (size_t)(body + 1 - text), 0));
	memcpy(at + strlen(SUM), hex, SUM_DIGITS);
}

static void read_again(const struct dataset *set, const json_t *header)
{
	struct dataset again = {0};
	struct error err = {0};
	json_t *second = NULL;
	char path[PATH_ROOM];
	(void)snprintf(path, sizeof path, AGAIN "-%ld", (long)getpid());
	require(manifest_write(path, header, set, &err) == 0, err.text);
	const int code = manifest_read(path, &again, &second, &err);
	(void)unlink(path);
	require(code == 0, err.text);
	require(again.count == set->count && again.bad_count == set->bad_count &&
			again.total_bytes == set->total_bytes,
		"what was written is not what is read");
	for (size_t i = 0; i < set->count; i++)
		require(strcmp(again.samples[i].path, set->samples[i].path) == 0 &&
				again.samples[i].checksum == set->samples[i].checksum &&
				(!set->offsets || again.offsets[i] == set->offsets[i]),
			"another sample");
	json_decref(second);
	arena_close(again.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int file = -1;
	char path[PATH_ROOM];
	struct dataset set = {0};
	struct error err = {0};
	json_t *header = NULL;
	size_t length = 0;
	if (file < 0)
		file = memfd_create("manifest", MFD_CLOEXEC);
	char *text = malloc(size + 1);
	require(file >= 0 && text, "no memory");
	memcpy(text, data, size);
	mend_sum(text, size);
	require(ftruncate(file, 0) == 0 && pwrite(file, text, size, 0) == (ssize_t)size, "no file");
	free(text);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	if (manifest_read(path, &set, &header, &err)) {
		require(*err.text && !header && !set.arena, "a refused manifest without a message");
		return 0;
	}
	for (size_t i = 0; i < set.count; i++) {
		/* Samples of one file share its name. */
		length += i > 0 && set.samples[i].path == set.samples[i - 1].path
				  ? 0
				  : strlen(set.samples[i].path);
		require((set.samples[i].label < set.class_count ||
				set.samples[i].label == DATASET_UNLABELLED) &&
				set.samples[i].format < IMAGE_FORMATS,
			"a sample of no class or format");
	}
	for (size_t i = 0; i < set.bad_count; i++)
		length += strlen(set.bad[i].path) + strlen(set.bad[i].reason);
	for (size_t i = 0; i < set.class_count; i++)
		length += strlen(set.class_names[i]);
	require(length <= size, "names longer than the file");
	json_t *mine = json_object();
	read_again(&set, mine);
	json_decref(mine);
	json_decref(header);
	arena_close(set.arena);
	return 0;
}
