/* What the backends share among themselves: the list's members and one way to refuse a name. */
#ifndef MLBENCH_WORKLOADS_BACKEND_BACKENDS_H
#define MLBENCH_WORKLOADS_BACKEND_BACKENDS_H

#include "harness/config/tables.h"
#include "workloads/backend/backend.h"

#define BACKEND_DECLARE(ID, name) extern const struct backend_ops name##_backend_ops;
STEP_BACKENDS(BACKEND_DECLARE)
#undef BACKEND_DECLARE

/* The published step of a device by the name that its driver has for it, in words.  False: there is none. */
bool emulated_reference(const char *device, const struct config *config, char *out, size_t room);

/* The first key that is set and that an emulated step ignores; KEY_COUNT: none. */
enum key_id emulated_ignores(const struct config *config);

/* For tests, before any thread chooses a backend: stands where cuda's would; NULL: cuda's again. */
void backend_replace_device(const struct backend_ops *ops);

/* Fills err with "step.KIND: unknown KIND 'word'", the nearest of names or else all of them;
 * -EINVAL. */
int backend_refuse_name(struct error *err, const char *kind, const char *word,
	const char *const *names, size_t count);

/* For backends that compute: refuses a step.model that is none of ours; -EINVAL. */
int backend_check_model(const struct config *config, struct error *err);

/* Adds name to names (room of them) unless it is there; the new count. */
size_t backend_add_name(const char **names, size_t count, size_t room, const char *name);

enum { BACKEND_NAMES_MAX = 64 };

#endif
