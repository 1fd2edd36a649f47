/* A plan of `mlbench accept`: an INI file whose sections are checks.
 *
 *	[plan]
 *	name = node
 *
 *	[slow core]                          ; a check: any name
 *	kind = ceiling                       ; keys of plan_keys.def
 *	tier = quick
 *	decode.core = within 15 % of median  ; FIGURE = CRITERION: the check fails where it does not hold
 *	warn.decode.core = within 8 % of median
 *
 * A plan that includes another (include = node.ini) overrides its values; "decode.core = none" takes a criterion away, and
 * tier = never a check.  Read by the same reader as configurations (harness/config/ini.h). */
#ifndef MLBENCH_ACCEPT_PLAN_H
#define MLBENCH_ACCEPT_PLAN_H

#include "harness/accept/criterion.h"
#include "harness/accept/figures.h"
#include "harness/base/error.h"
#include "harness/config/section_owner.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum accept_tier { TIER_QUICK, TIER_STANDARD, TIER_BURN, TIER_NEVER };
#define ACCEPT_TIER_NAMES "quick|standard|burn|never"
const char *accept_tier_name(enum accept_tier tier);

/* Keys of a check, and of [plan]: plan_keys.def. */
enum plan_key_id {
#define PLAN_KEY(id, ...) PLAN_##id,
#include "harness/accept/plan_keys.def"
#undef PLAN_KEY
	PLAN_KEY_COUNT
};

enum plan_type {
	PLAN_TYPE_TEXT,
	PLAN_TYPE_CHOICE,
	PLAN_TYPE_INTEGER,
	PLAN_TYPE_SIZE,
	PLAN_TYPE_DURATION,
	PLAN_TYPE_BOOLEAN,
	PLAN_TYPE_SHARE
};

struct plan_key {
	const char *name;
	enum plan_type type;
	/* Bits of accept_kind whose checks have it; ACCEPT_OF_PLAN: it stands in [plan]. */
	unsigned kinds;
	const char *fallback, *choices;
	double min, max;
	const char *doc;
};
#define ACCEPT_KIND_BIT(kind) (1U << (kind))
#define ACCEPT_ALL_KINDS ((1U << ACCEPT_KINDS) - 1U)
#define ACCEPT_OF_PLAN (1U << ACCEPT_KINDS)

struct plan_value {
	int64_t integer; /* INTEGER, SIZE in bytes, DURATION in ns, CHOICE, BOOLEAN */
	double real;     /* SHARE, 0..1 */
	char *text;      /* TEXT, and of the others as written; owned; NULL: not set */
};

enum {
	ACCEPT_NAME_BYTES = 64,
	ACCEPT_CHECKS_MAX = 64,
	ACCEPT_CRITERIA_MAX = 64,
	ACCEPT_SETS_MAX = 32
};

struct accept_limit {
	const struct figure *figure;
	bool warns; /* else it fails */
	struct criterion criterion;
	int line;
};

struct accept_check {
	char name[ACCEPT_NAME_BYTES]; /* of its section */
	int line;                     /* of its section */
	enum accept_kind kind;
	struct plan_value values[PLAN_KEY_COUNT];
	struct accept_limit limits[ACCEPT_CRITERIA_MAX];
	size_t limit_count;
	/* pipeline: "decode.workers=4" of lines "set.decode.workers = 4"; owned */
	char *sets[ACCEPT_SETS_MAX];
	size_t set_count;
};

struct accept_plan {
	char *path;                               /* NULL: from text */
	struct plan_value values[PLAN_KEY_COUNT]; /* of [plan] */
	struct accept_check *checks;              /* in the file's order; owned */
	size_t check_count;
	size_t left_out; /* checks that --check took away */
};

/* -EINVAL: the plan is wrong, err says file, line, what, and the nearest valid choice.  On failure there is nothing to
 * release. */
int plan_read_file(struct accept_plan *plan, const char *path, struct error *err);
int plan_read_text(struct accept_plan *plan, const char *name, const char *text, size_t size,
	struct error *err);
void plan_release(struct accept_plan *plan); /* safe on {0} */

/* Whether the file is meant as a plan, right or wrong: a section of it has a kind of check. */
bool plan_is(const char *path);
extern const struct section_owner plan_owner; /* for section_owners_register */

/* -EINVAL: this cannot be the name of a plan, because results are kept in a folder of that name. */
int plan_check_name(const char *name, struct error *err);

/* The resolved plan as an INI file that reads back to the same plan; free it.  NULL without memory. */
char *plan_dump(const struct accept_plan *plan);
/* 16 hex digits over it. */
void plan_hash(const struct accept_plan *plan, char out[17]);

/* Of a check, or its default. */
int64_t check_integer(const struct accept_check *check, enum plan_key_id key);
const char *check_text(const struct accept_check *check, enum plan_key_id key); /* never NULL */
const char *plan_text(const struct accept_plan *plan, enum plan_key_id key);    /* of [plan] */
double plan_share(const struct accept_plan *plan, enum plan_key_id key);

/* Whether a check asks about that figure (by a limit of either level). */
bool check_asks(const struct accept_check *check, const char *figure);

/* Whether a check runs in that tier: `quick` checks run in every tier. */
bool check_in_tier(const struct accept_check *check, enum accept_tier tier);

/* Appends `help keys`'s part on plans: every key and figure, wrapped to width columns. */
void plan_document(struct buffer *out, size_t width);
/* Of one key or figure ("decode.core"); false: there is none of this name. */
bool plan_document_name(struct buffer *out, const char *name, size_t width);

#endif
