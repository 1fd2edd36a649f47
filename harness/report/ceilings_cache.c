/* One small JSON file a node, written whole or not at all. */
#include "harness/report/ceilings_cache.h"

#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/measure/node_probes.h"
#include "harness/record/ceilings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

enum { NAME_BYTES_MAX = 128, REAL_DIGITS = 15, FILES_LOOKED_AT = 64 };

static const size_t FILE_LIMIT_BYTES = 1 << 20;
static const char name_prefix[] = "ceilings-";

static char *cache_folder(void)
{
	const char *cache = getenv("XDG_CACHE_HOME");
	const bool given = cache && cache[0] == '/';
	const char *home = given ? cache : getenv("HOME");
	return home && home[0] == '/' ? files_join(home, given ? "mlbench" : ".cache/mlbench")
				      : NULL;
}

static void file_name(const char *key, char out[NAME_BYTES_MAX])
{
	(void)snprintf(out, NAME_BYTES_MAX, "%s%s.json", name_prefix, key);
}

static int ceilings_cache_parse(
	const char *text, size_t size, struct ceilings *ceilings, struct error *err)
{
	json_error_t wrong;
	json_t *object = json_loadb(text, size, 0, &wrong);
	const int code = object ? ceilings_from_json(ceilings, object, err)
				: error_set(err, -EINVAL, "not valid JSON: %s", wrong.text);
	json_decref(object);
	return code;
}

/* The key in it has to be that of its name. */
static int ceilings_cache_read_file(
	const char *folder, const char *name, struct ceilings *ceilings, struct error *err)
{
	char expected[NAME_BYTES_MAX];
	char *path = files_join(folder, name);
	char *text = NULL;
	size_t size = 0;
	int code = path ? files_read(path, FILE_LIMIT_BYTES, &text, &size, err) : -ENOMEM;
	if (!code)
		code = ceilings_cache_parse(text, size, ceilings, err);
	if (!code) {
		file_name(ceilings->node, expected);
		if (strcmp(name, expected) != 0)
			code = error_set(
				err, -EINVAL, "it belongs to another node ('%s')", ceilings->node);
	}
	if (code && code != -ENOENT)
		log_warn("ignoring the ceilings in '%s': %s", path ? path : name, err->text);
	free(text);
	free(path);
	return code ? -ENOENT : 0;
}

/* The newest of the same hardware in another state; the file `exact` was looked at. */
static int read_relative(const char *folder, const char *key, const char *exact,
	struct ceilings *ceilings, struct error *err)
{
	char prefix[NAME_BYTES_MAX];
	struct ceilings *one = malloc(sizeof *one);
	DIR *dir = opendir(folder);
	int found = -ENOENT;
	int looked = 0;
	(void)snprintf(prefix, sizeof prefix, "%s%.*s-", name_prefix, NODE_HARDWARE_DIGITS, key);
	for (const struct dirent *entry = one && dir ? readdir(dir) : NULL;
		entry && looked < FILES_LOOKED_AT; entry = readdir(dir)) {
		const size_t length = strlen(entry->d_name);
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || length < 5 ||
			strcmp(entry->d_name, exact) == 0 ||
			strcmp(entry->d_name + length - 5, ".json") != 0)
			continue;
		looked++;
		if (ceilings_cache_read_file(folder, entry->d_name, one, err) ||
			(!found && !(one->measured_at > ceilings->measured_at)))
			continue;
		*ceilings = *one;
		found = 0;
	}
	if (dir)
		(void)closedir(dir);
	free(one);
	return found;
}

int ceilings_load_node(
	const struct node_identity *node, struct ceilings *ceilings, struct error *err)
{
	char key[CEILINGS_NODE_BYTES];
	char name[NAME_BYTES_MAX];
	char *folder = cache_folder();
	int code = -ENOENT;
	node_key(node, key);
	file_name(key, name);
	ceilings_init(ceilings);
	if (folder)
		code = ceilings_cache_read_file(folder, name, ceilings, err);
	if (folder && code)
		code = read_relative(folder, key, name, ceilings, err);
	free(folder);
	return code ? error_set(err, -ENOENT, "this node has not been probed yet") : 0;
}

int ceilings_load(const char *path_of_data, struct ceilings *ceilings, struct error *err)
{
	struct node_identity node;
	if (node_identify(path_of_data, &node, err)) {
		ceilings_init(ceilings);
		return -ENOENT;
	}
	return ceilings_load_node(&node, ceilings, err);
}

int ceilings_save(const struct ceilings *ceilings, struct error *err)
{
	char name[NAME_BYTES_MAX];
	char *folder = cache_folder();
	if (!folder)
		return error_set(err, -ENOENT, "neither XDG_CACHE_HOME nor HOME is set");
	file_name(ceilings->node, name);
	char *path = files_join(folder, name);
	json_t *object = ceilings_to_json(ceilings, ceilings->measured_at);
	char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(REAL_DIGITS))
			    : NULL;
	json_decref(object);
	int code = path && text ? files_make_folder(folder, err)
				: error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = files_write_atomic(path, text, strlen(text), err);
	free(text);
	free(path);
	free(folder);
	return code;
}

bool ceilings_stale_here(const struct ceilings *ceilings, char *why, size_t room)
{
	struct utsname name;
	const char *kernel = uname(&name) == 0 ? name.release : "";
	char gpu[CEILINGS_NAME_BYTES];
	node_gpus(gpu);
	return ceilings_stale(ceilings, (double)time(NULL), probe_cores(), kernel, gpu, why, room);
}
