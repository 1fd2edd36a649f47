/* Configurations in which a stage takes no time. */
#include "harness/command/substitute.h"

#include "pipelines/pipeline.h"

#include <string.h>

/* A stage's planted conditions go with it: keys of their section back to their defaults. */
static int reset_injection(struct config *config, const char *prefix, struct error *err)
{
	int code = 0;
	for (int key = 0; key < KEY_COUNT && !code; key++)
		if (strcmp(config_keys[key].section, "inject") == 0 &&
			strncmp(config_keys[key].name, prefix, strlen(prefix)) == 0)
			code = config_set_key(
				config, (enum key_id)key, config_keys[key].fallback, err);
	return code;
}

int substitute_read(
	struct config *config, const struct dataset *dataset, const char **how, struct error *err)
{
	struct pipeline_plan planned;
	int code = reset_injection(config, "read_", err);
	if (!code)
		code = config_set_key(config, KEY_READ_ENGINE, "memory", err);
	if (code)
		return code;
	*how = "from memory";
	if (pipeline_plan(config, dataset, &planned, NULL) == 0)
		return 0;
	*how = "from the page cache (the data set does not fit into memory twice)";
	code = config_set_key(config, KEY_READ_ENGINE, "pread", err);
	return code ? code : config_set_key(config, KEY_READ_CACHE, "warm", err);
}

int substitute_decode(struct config *config, struct error *err)
{
	static const char *const prefixes[] = {
		"decode_", "lock_", "slow_worker", "slow_share", "slow_factor", "leak"};
	int code = config_set_key(config, KEY_CODEC_NAME, "null", err);
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && !code; i++)
		code = reset_injection(config, prefixes[i], err);
	return code;
}

int substitute_upload(struct config *config, struct error *err)
{
	const int code = reset_injection(config, "upload_", err);
	return code ? code : config_set_key(config, KEY_UPLOAD_MODE, "none", err);
}

int substitute_step(struct config *config, struct error *err)
{
	static const char *const prefixes[] = {"step_", "sync_", "slow_device"};
	int code = config_set_key(config, KEY_STEP_BACKEND, "null", err);
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && !code; i++)
		code = reset_injection(config, prefixes[i], err);
	/* Which has one device, and nobody to exchange with. */
	return code ? code : config_set_key(config, KEY_STEP_DEVICES, "1", err);
}

int substitute_sync(struct config *config, struct error *err)
{
	int code = reset_injection(config, "sync_", err);
	if (!code)
		code = config_set_key(config, KEY_SYNC_BANDWIDTH, "0", err);
	return code ? code : config_set_key(config, KEY_SYNC_LATENCY, "0", err);
}
