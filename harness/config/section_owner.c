/* Sections of cases, labs and plans, by whoever has registered them. */
#include "harness/config/section_owner.h"

#include <stddef.h>
#include <string.h>

static const struct section_owner *const nobody[] = {NULL};
static const struct section_owner *const *registered = nobody;

void section_owners_register(const struct section_owner *const *owners)
{
	registered = owners;
}

const struct section_owner *const *section_owners(void)
{
	return registered;
}

bool section_begins(const struct section_owner *owner, const char *section)
{
	if (!owner->sections)
		return false;
	const size_t length = strlen(owner->sections[0]);
	return strncmp(section, owner->sections[0], length) == 0 &&
	       (section[length] == '\0' || (owner->variants && section[length] == '.'));
}

bool section_is_of(const struct section_owner *owner, const char *section)
{
	bool is = section_begins(owner, section);
	for (const char *const *own = owner->sections; own && *own && !is; own++)
		is = strcmp(*own, section) == 0;
	return is;
}

const struct section_owner *section_owner_of(const char *section)
{
	const struct section_owner *const *owner = registered;
	while (*owner && !section_is_of(*owner, section))
		owner++;
	return *owner;
}

bool section_is_foreign(const char *section)
{
	const struct section_owner *owner = section_owner_of(section);
	return owner && section_begins(owner, section);
}

bool section_owners_refuse(
	const char *path, const char *name, enum section_wanted wanted, struct error *err)
{
	for (const struct section_owner *const *owner = registered; *owner; owner++)
		if ((*owner)->refuse && (*owner)->not_a == wanted && (*owner)->is(path)) {
			(*owner)->refuse(name, err);
			return true;
		}
	return false;
}
