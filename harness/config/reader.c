/* Configurations from INI files. */
#include "harness/config/config.h"
#include "harness/config/ini.h"
#include "harness/config/section_owner.h"
#include "harness/config/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int config_section(
	void *context, const struct ini_place *place, const char *name, struct error *err)
{
	struct assign_scope *scope = place->scope;
	(void)context;
	if (keys_have_section(name))
		return 0;
	const struct section_owner *owner = section_owner_of(name);
	if (!owner)
		return keys_refuse_section(name, err);
	const bool begins = section_begins(owner, name);
	if (begins && owner->sections[1])
		scope->owner = owner;
	if (begins || scope->owner == owner)
		return 0;
	return error_set(err, -EINVAL,
		"[%s] is a section of %ss; a %s begins with its [%s] section", name,
		owner->sections[0], owner->sections[0], owner->sections[0]);
}

static int refuse_outside(const char *key, struct error *err)
{
	const enum key_id id = config_find_key(key);
	if (id != KEY_COUNT)
		return error_set(err, -EINVAL,
			"'%s' stands outside any section; write '%s = ...' under [%s]", key,
			config_keys[id].name, config_keys[id].section);
	return error_set(err, -EINVAL,
		"'%.48s' stands outside any section; put it under a line '[section]'", key);
}

static int config_value(void *context, const struct ini_place *place, const char *section,
	const char *key, const char *text, struct error *err)
{
	char dotted[2 * INI_NAME_BYTES];
	if (!*section)
		return refuse_outside(key, err);
	if (section_owner_of(section))
		return 0;
	/* Including files may have set nothing yet: their scopes are named here. */
	const struct ini_place *at = place;
	do {
		struct assign_scope *scope = at->scope;
		scope->name = at->name;
		scope->outer = at->outer ? at->outer->scope : NULL;
		at = at->outer;
	} while (at);
	((struct assign_scope *)place->scope)->foreign = place->foreign;
	(void)snprintf(dotted, sizeof dotted, "%.64s.%s", section, key);
	return assign(context, place->scope, place->line, dotted, text, err);
}

static const char *const config_lists[] = {"sweep.exclude", "sweep.zip", NULL};

static struct ini_target config_target(struct config *config)
{
	return (struct ini_target){
		.context = config,
		.section = config_section,
		.value = config_value,
		.foreign = section_is_foreign,
		.scope_size = sizeof(struct assign_scope),
		.lists = config_lists,
	};
}

int config_read_file(struct config *config, const char *path, struct error *err)
{
	char *copy = strdup(path);
	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	const struct ini_target target = config_target(config);
	const int code = ini_read_file(&target, path, err);
	if (code) {
		free(copy);
		return code;
	}
	free(config->path);
	config->path = copy;
	return 0;
}

int config_read_text(
	struct config *config, const char *name, const char *text, size_t size, struct error *err)
{
	const struct ini_target target = config_target(config);
	return ini_read_text(&target, name, text, size, err);
}
