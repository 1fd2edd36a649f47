/* Within measure: copies of stacks become addresses, addresses a tree, and the tree a profile. */
#ifndef MLBENCH_MEASURE_FLAME_UNWIND_H
#define MLBENCH_MEASURE_FLAME_UNWIND_H

#include "harness/measure/flame.h"

enum {
	FLAME_DEPTH_MAX = 128, /* frames of a stack that are kept */
	FLAME_STAGES_MAX = 16, /* other, profiler, and what registers */
};

/* A stack as it was taken: registers, and stack[0 .. size) from sp upwards. */
struct flame_raw {
	uint64_t ip, sp, bp;
	uint64_t base; /* stacks end with the frame that holds this address; 0: not known */
	const uint8_t *stack;
	size_t size;
};

/* --- unwinding: one thread at a time ---------------------------------------------------------- */

struct flame_unwinder;
int flame_unwinder_open(struct flame_unwinder **out, struct error *err);
void flame_unwinder_close(struct flame_unwinder *unwinder); /* NULL is fine */

/* Fills pcs, innermost first, with addresses inside the calling instruction; returns how many.
 * *whole: the outermost is there. */
size_t flame_unwind(struct flame_unwinder *unwinder, const struct flame_raw *raw, uint64_t *pcs,
	size_t room, bool *whole);

/* --- the tree of addresses -------------------------------------------------------------------- */

/* A frame of the tree: pc below parent.  Stages are nodes 0 .. FLAME_STAGES_MAX - 1. */
struct flame_node {
	uint64_t pc; /* FLAME_PC_TRUNCATED: callers that are not known */
	uint32_t parent;
	uint64_t self;
};
#define FLAME_PC_TRUNCATED UINT64_MAX

struct flame_tree {
	struct flame_node *nodes;
	size_t count, room;
	uint32_t *slots; /* (slot_count) a hash of nodes; power of two */
	size_t slot_count;
};

int flame_tree_open(struct flame_tree *tree); /* 0 or -ENOMEM */
void flame_tree_close(struct flame_tree *tree);
/* The frame below parent; FLAME_ROOT without room for it. */
uint32_t flame_tree_step(struct flame_tree *tree, uint32_t parent, uint64_t pc);

/* Fills out's names and frames; -ENOMEM. */
int flame_tree_name(const struct flame_tree *tree, const char *const *stages,
	struct flame_unwinder *unwinder, struct flame_profile *out);

#endif
