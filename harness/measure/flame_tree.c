/* The tree of sampled stacks: first of addresses, since samples must be taken in quickly, then of names, in which frames
 * of one function are one. */
#include "harness/measure/flame_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	NODES_FIRST = 1 << 12,
	NODES_MAX = 1 << 20,
	NAMES_FIRST = 1 << 8,
};

static size_t mix(uint64_t value, uint64_t parent)
{
	uint64_t x = (value ^ (parent * 0x9E3779B97F4A7C15ULL)) * 0xD6E8FEB86659FD93ULL;
	x ^= x >> 32;
	return (size_t)(x * 0xD6E8FEB86659FD93ULL >> 20);
}

/* --- addresses ------------------------------------------------------------------------------------------- */

int flame_tree_open(struct flame_tree *tree)
{
	*tree = (struct flame_tree){.room = NODES_FIRST, .slot_count = 2 * NODES_FIRST};
	tree->nodes = calloc(tree->room, sizeof *tree->nodes);
	tree->slots = calloc(tree->slot_count, sizeof *tree->slots);
	if (!tree->nodes || !tree->slots) {
		flame_tree_close(tree);
		return -ENOMEM;
	}
	tree->count = FLAME_STAGES_MAX;
	for (uint32_t i = 0; i < FLAME_STAGES_MAX; i++)
		tree->nodes[i].parent = FLAME_ROOT;
	return 0;
}

void flame_tree_close(struct flame_tree *tree)
{
	free(tree->nodes);
	free(tree->slots);
	*tree = (struct flame_tree){0};
}

/* Where such a node's number is, or would be; slots keep the number + 1, stages are never looked for. */
static uint32_t *find_slot(const struct flame_tree *tree, uint32_t parent, uint64_t pc, bool kernel)
{
	const size_t mask = tree->slot_count - 1;
	size_t i = mix(pc, 2 * (uint64_t)parent + kernel) & mask;
	for (; tree->slots[i]; i = (i + 1) & mask) {
		const struct flame_node *node = &tree->nodes[tree->slots[i] - 1];
		if (node->pc == pc && node->parent == parent && node->kernel == kernel)
			break;
	}
	return &tree->slots[i];
}

static bool grow(struct flame_tree *tree)
{
	struct flame_tree next = *tree;
	if (tree->room >= NODES_MAX)
		return false;
	next.room = 2 * tree->room;
	next.slot_count = 2 * next.room;
	next.slots = calloc(next.slot_count, sizeof *next.slots);
	if (!next.slots)
		return false;
	next.nodes = realloc(tree->nodes, next.room * sizeof *next.nodes);
	if (!next.nodes) {
		free(next.slots);
		return false;
	}
	for (uint32_t i = FLAME_STAGES_MAX; i < next.count; i++)
		*find_slot(&next, next.nodes[i].parent, next.nodes[i].pc, next.nodes[i].kernel) =
			i + 1;
	free(tree->slots);
	*tree = next;
	return true;
}

uint32_t flame_tree_step(struct flame_tree *tree, uint32_t parent, uint64_t pc, bool kernel)
{
	uint32_t *slot = find_slot(tree, parent, pc, kernel);
	if (*slot)
		return *slot - 1;
	if (tree->count == tree->room) {
		if (!grow(tree))
			return FLAME_ROOT;
		slot = find_slot(tree, parent, pc, kernel);
	}
	const uint32_t number = (uint32_t)tree->count++;
	tree->nodes[number] = (struct flame_node){.pc = pc, .parent = parent, .kernel = kernel};
	*slot = number + 1;
	return number;
}

/* --- names ------------------------------------------------------------------------------------------------- */

/* Frames of the profile while it is built: hashes over its frames and over its names. */
struct naming {
	struct flame_profile *out;
	struct flame_unwinder *unwinder;
	struct flame_kernel *kernel;
	size_t frame_room, name_room;
	uint32_t *frame_slots, *name_slots; /* number + 1 */
	size_t frame_slot_count, name_slot_count;
	bool failed;
};

static uint32_t *find_name(const struct naming *n, const char *name)
{
	uint64_t hash = 0xCBF29CE484222325ULL;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 0x100000001B3ULL;
	const size_t mask = n->name_slot_count - 1;
	size_t i = mix(hash, 0) & mask;
	while (n->name_slots[i] && strcmp(n->out->names[n->name_slots[i] - 1], name) != 0)
		i = (i + 1) & mask;
	return &n->name_slots[i];
}

static bool grow_names(struct naming *n)
{
	const size_t room = n->name_room ? 2 * n->name_room : NAMES_FIRST;
	uint32_t *const slots = calloc(2 * room, sizeof *slots);
	char **const names = realloc(n->out->names, room * sizeof *names);
	if (names)
		n->out->names = names;
	if (!slots || !names) {
		free(slots);
		return false;
	}
	free(n->name_slots);
	n->name_slots = slots;
	n->name_slot_count = 2 * room;
	n->name_room = room;
	for (size_t i = 0; i < n->out->name_count; i++)
		*find_name(n, names[i]) = (uint32_t)i + 1;
	return true;
}

static uint32_t intern(struct naming *n, const char *name)
{
	if ((!n->name_slots || n->out->name_count == n->name_room) && !grow_names(n)) {
		n->failed = true;
		return 0;
	}
	uint32_t *const slot = find_name(n, name);
	if (*slot)
		return *slot - 1;
	char *const copy = strdup(name);
	if (!copy) {
		n->failed = true;
		return 0;
	}
	n->out->names[n->out->name_count++] = copy;
	*slot = (uint32_t)n->out->name_count;
	return *slot - 1;
}

static uint32_t *find_frame(const struct naming *n, uint32_t parent, uint32_t name, bool kernel)
{
	const size_t mask = n->frame_slot_count - 1;
	size_t i = mix(name, 2 * (uint64_t)parent + kernel) & mask;
	for (; n->frame_slots[i]; i = (i + 1) & mask) {
		const struct flame_frame *frame = &n->out->frames[n->frame_slots[i] - 1];
		if (frame->parent == parent && frame->name == name && frame->kernel == kernel)
			break;
	}
	return &n->frame_slots[i];
}

static bool grow_frames(struct naming *n)
{
	const size_t room = n->frame_room ? 2 * n->frame_room : NODES_FIRST;
	uint32_t *const slots = calloc(2 * room, sizeof *slots);
	struct flame_frame *const frames = realloc(n->out->frames, room * sizeof *frames);
	if (frames)
		n->out->frames = frames;
	if (!slots || !frames) {
		free(slots);
		return false;
	}
	free(n->frame_slots);
	n->frame_slots = slots;
	n->frame_slot_count = 2 * room;
	n->frame_room = room;
	for (size_t i = 0; i < n->out->frame_count; i++)
		*find_frame(n, frames[i].parent, frames[i].name, frames[i].kernel) =
			(uint32_t)i + 1;
	return true;
}

static uint32_t frame_below(struct naming *n, uint32_t parent, const char *text, bool kernel)
{
	const uint32_t name = intern(n, text);
	if (n->failed ||
		((!n->frame_slots || n->out->frame_count == n->frame_room) && !grow_frames(n))) {
		n->failed = true;
		return 0;
	}
	uint32_t *const slot = find_frame(n, parent, name, kernel);
	if (*slot)
		return *slot - 1;
	n->out->frames[n->out->frame_count++] =
		(struct flame_frame){.parent = parent, .name = name, .kernel = kernel};
	*slot = (uint32_t)n->out->frame_count;
	return *slot - 1;
}

/* What starts every thread and every program says nothing: its callees stand below the stage. */
static bool is_start(const char *name)
{
	static const char *const starts[] = {"clone3", "__clone3", "clone", "__clone",
		"start_thread", "_start", "__libc_start_main", "__libc_start_main_impl",
		"__libc_start_main@@GLIBC_2.34", "__libc_start_call_main"};
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		if (strcmp(name, starts[i]) == 0)
			return true;
	return false;
}

/* Functions without names that call each other are one: a pile of "[libx.so]" says no more than one does. */
static bool is_same_module(const struct naming *n, uint32_t parent, const char *name)
{
	const struct flame_frame *const frame = &n->out->frames[parent];
	return name[0] == '[' && frame->parent != FLAME_ROOT &&
	       strcmp(n->out->names[frame->name], name) == 0;
}

static uint32_t name_node(struct naming *n, const struct flame_node *node, uint32_t parent)
{
	if (node->pc == FLAME_PC_TRUNCATED)
		return frame_below(n, parent, FLAME_TRUNCATED, false);
	if (node->kernel)
		return frame_below(n, parent, flame_kernel_name(n->kernel, node->pc), true);
	char names[FLAME_INLINED_MAX][FLAME_NAME_BYTES];
	const size_t count = flame_user_names(n->unwinder, node->pc, names, FLAME_INLINED_MAX);
	const bool top = n->out->frames[parent].parent == FLAME_ROOT;
	for (size_t i = 0; i < count && !n->failed; i++)
		if (!(top && is_start(names[i])) && !is_same_module(n, parent, names[i]))
			parent = frame_below(n, parent, names[i], false);
	return parent;
}

static int name_all(struct naming *n, const struct flame_tree *tree, const char *const *stages)
{
	uint32_t *const frames = calloc(tree->count, sizeof *frames); /* of each node */
	if (!frames)
		return -ENOMEM;
	for (size_t i = 0; i < tree->count && !n->failed; i++) {
		const struct flame_node *node = &tree->nodes[i];
		if (node->parent != FLAME_ROOT)
			frames[i] = name_node(n, node, frames[node->parent]);
		else if (stages[i])
			frames[i] = frame_below(n, FLAME_ROOT, stages[i], false);
		else
			continue;
		if (!n->failed)
			n->out->frames[frames[i]].self += node->self;
	}
	free(frames);
	return n->failed ? -ENOMEM : 0;
}

static void add_up(struct flame_profile *out)
{
	for (size_t i = out->frame_count; i-- > 0;) {
		struct flame_frame *frame = &out->frames[i];
		frame->total += frame->self;
		if (frame->parent != FLAME_ROOT)
			out->frames[frame->parent].total += frame->total;
	}
}

static bool has_kernel(const struct flame_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->nodes[i].kernel)
			return true;
	return false;
}

int flame_tree_name(const struct flame_tree *tree, const char *const *stages,
	struct flame_unwinder *unwinder, struct flame_profile *out)
{
	struct naming n = {.out = out, .unwinder = unwinder};
	n.kernel = has_kernel(tree) ? flame_kernel_open() : NULL;
	const int code = name_all(&n, tree, stages);
	flame_kernel_close(n.kernel);
	free(n.frame_slots);
	free(n.name_slots);
	if (!code)
		add_up(out);
	return code;
}

void flame_profile_release(struct flame_profile *profile)
{
	for (size_t i = 0; i < profile->name_count; i++)
		free(profile->names[i]);
	free(profile->names);
	free(profile->frames);
	*profile = (struct flame_profile){0};
}
