/* Blocks in a list, freed together. */
#include "workloads/dataset/manifest.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct owned {
	struct owned *next;
	void *memory;
};

struct arena {
	struct owned *blocks;
	char *at; /* free part of the newest block of ours */
	size_t room;
};

struct arena *arena_open(void)
{
	return calloc(1, sizeof(struct arena));
}

void arena_close(struct arena *arena)
{
	if (!arena)
		return;
	while (arena->blocks) {
		struct owned *block = arena->blocks;
		arena->blocks = block->next;
		free(block->memory);
		free(block);
	}
	free(arena);
}

bool arena_own(struct arena *arena, void *memory)
{
	struct owned *block = malloc(sizeof(*block));
	if (!block) {
		free(memory);
		return false;
	}
	*block = (struct owned){.next = arena->blocks, .memory = memory};
	arena->blocks = block;
	return true;
}

/* The next `size` bytes of the newest block, or of a fresh one. */
static char *arena_cut(struct arena *arena, size_t size)
{
	if (size > arena->room) {
		const size_t block = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		char *memory = malloc(block);
		if (!memory || !arena_own(arena, memory))
			return NULL;
		arena->at = memory;
		arena->room = block;
	}
	char *taken = arena->at;
	arena->at += size;
	arena->room -= size;
	return taken;
}

void *arena_take(struct arena *arena, size_t size)
{
	size = size ? size : 1;
	/* Texts may have left the free part unaligned. */
	const size_t skew = (uintptr_t)arena->at % ALIGNMENT;
	const size_t skip = skew ? ALIGNMENT - skew : 0;
	if (arena->room >= skip && arena->room - skip >= size) {
		arena->at += skip;
		arena->room -= skip;
	} else {
		arena->room = 0;
	}
	return arena_cut(arena, size);
}

char *arena_text(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_cut(arena, length + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}
