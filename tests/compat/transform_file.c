/* Transforms files as mlbench's workers do and says which crop was drawn, so that compare.py can
 * ask torchvision for the same.  For each line "seed path" on stdin: one line "x y width height
 * flip" on stdout, or "bad: reason"; the samples follow each other in OUT.
 *
 *   transform_file OUT [section.key=value ...] <LIST */
#include "harness/base/files.h"
#include "workloads/image/transform.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096, FILE_BYTES_MAX = 1 << 30 };

static int complain(const struct error *err)
{
	(void)fprintf(stderr, "transform_file: %s\n", err->text);
	return 1;
}

static void print_choice(const struct config *config, const char *data, size_t size, uint64_t seed)
{
	struct augment_options options;
	struct augment_choice choice;
	struct image_info info;
	augment_read_options(&options, config);
	if (image_read_info(data, size, &info, NULL))
		return;
	augment_choose(&options, info.width, info.height, seed, &choice);
	printf("%u %u %u %u %d\n", choice.crop.x, choice.crop.y, choice.crop.width,
		choice.crop.height, choice.flip);
}

static int transform_line(struct transform *transform, const struct config *config, char *line,
	void *sample, struct error *err)
{
	char *path;
	const uint64_t seed = strtoull(line, &path, 10);
	path += strspn(path, " ");
	path[strcspn(path, "\n")] = '\0';
	char *data;
	size_t size;
	const int result = files_read(path, FILE_BYTES_MAX, &data, &size, err);
	if (result)
		return result;
	struct error reason;
	if (transform_sample(transform, data, size, seed, sample, NULL, &reason))
		printf("bad: %s\n", reason.text);
	else
		print_choice(config, data, size, seed);
	free(data);
	return 0;
}

static int transform_list(
	struct transform *transform, const struct config *config, FILE *out, struct error *err)
{
	const size_t bytes = transform_sample_bytes(config);
	void *const sample = malloc(bytes);
	char line[LINE_BYTES];
	int result = sample ? 0 : error_set(err, -1, "no memory");
	while (!result && fgets(line, sizeof line, stdin)) {
		result = transform_line(transform, config, line, sample, err);
		if (!result && fwrite(sample, 1, bytes, out) != bytes)
			result = error_set(err, -1, "cannot write");
	}
	free(sample);
	return result;
}

static int transform_all(const char *path, const struct config *config, struct error *err)
{
	struct transform *transform;
	int result = transform_open(&transform, config, NULL, NULL, err);
	if (result)
		return result;
	FILE *const out = fopen(path, "wb");
	if (out)
		result = transform_list(transform, config, out, err);
	else
		result = error_set(err, -1, "cannot open '%s'", path);
	if (out && fclose(out) && !result)
		result = error_set(err, -1, "cannot write '%s'", path);
	transform_close(transform);
	return result;
}

int main(int argc, char **argv)
{
	struct error err;
	struct config config;
	if (argc < 2)
		return 2;
	config_init(&config);
	int result = 0;
	for (int i = 2; i < argc && !result; i++)
		result = config_set(&config, argv[i], &err);
	if (!result)
		result = transform_all(argv[1], &config, &err);
	config_release(&config);
	return result ? complain(&err) : 0;
}
