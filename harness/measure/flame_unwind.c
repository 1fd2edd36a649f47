/* From addresses to callers and names.  Copies of stacks are unwound by the tables that compilers leave in .eh_frame, read
 * by libdw.  Where the caller's frame and its frame pointer are holds for a range of addresses, mostly the body of a
 * function: it is looked up once and kept, since looking takes as long as unwinding some stacks. */
#include "harness/measure/flame_unwind.h"

#include "harness/base/clock.h"
#include "harness/base/program.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	NODES_FIRST = 1 << 12,
	NODES_MAX = 1 << 20,
	NAMES_FIRST = 1 << 8,
	FLAME_INLINED_MAX = 8,
	FLAME_NAME_BYTES = 256,
};

#if defined(MLBENCH_WITH_libdw)
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

enum {
	RULES_ROOM = 1 << 14, /* forgotten when it is full */
	CALLS_ROOM = 1 << 10,
	REGISTER_BP = 6, /* DWARF's numbers on x86-64 */
	REGISTER_SP = 7,
	REGISTER_IP = 16,
	PLT_OPS = 9,
	CALL_BYTES = 7,
	POINTERS_FOLLOWED = 2,
};

enum { FRAME_SP, FRAME_BP, FRAME_AT_BP, FRAME_PLT, FRAME_LAST, FRAME_NONE };
enum { BP_SAME, BP_AT_FRAME, BP_AT_BP };

/* Of addresses from `from` up to, not including, `to`. */
struct rule {
	uint64_t from, to;
	int32_t frame_offset, bp_offset;
	uint8_t frame, bp;
};

/* Whether pc, where there is code, is the last byte of a call. */
struct call {
	uint64_t pc; /* 0: free */
	bool is_one;
};

struct flame_unwinder {
	Dwfl *dwfl;
	uint64_t reported_ns;
	struct rule *rules; /* (rule_count of RULES_ROOM) by address; they do not overlap */
	size_t rule_count;
	struct call calls[CALLS_ROOM]; /* each in its own place: the last that came there */
};

struct registers {
	uint64_t ip, sp, bp;
};

/* --- modules ---------------------------------------------------------------------------------- */

/* Never over the network, which libdwfl would otherwise be told to ask by DEBUGINFOD_URLS. */
static int find_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)link;
	(void)crc;
	return dwfl_build_id_find_debuginfo(module, data, name, base, file, NULL, 0, found);
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = find_debuginfo,
};

static void report_modules(struct flame_unwinder *u)
{
	u->reported_ns = clock_now_ns();
	dwfl_report_begin_add(u->dwfl);
	(void)dwfl_linux_proc_report(u->dwfl, getpid());
	(void)dwfl_report_end(u->dwfl, NULL, NULL);
}

/* NULL: none. */
static Dwfl_Module *find_module(struct flame_unwinder *u, uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(u->dwfl, pc);
	/* A library that was opened since; but what is none is not asked about again and again. */
	if (!module && clock_now_ns() - u->reported_ns > NS_PER_S) {
		report_modules(u);
		module = dwfl_addrmodule(u->dwfl, pc);
	}
	return module;
}

/* --- what holds at an address ----------------------------------------------------------------- */

static bool is_register(const Dwarf_Op *op, unsigned number, int64_t *offset)
{
	if (op->atom == DW_OP_bregx && op->number == number) {
		*offset = (int64_t)op->number2;
		return true;
	}
	*offset = (int64_t)op->number;
	return op->atom == DW_OP_breg0 + number;
}

static bool fits(int64_t offset)
{
	return offset >= INT32_MIN && offset <= INT32_MAX;
}

static void read_frame(const Dwarf_Op *ops, size_t count, struct rule *rule)
{
	int64_t offset = 0;
	if (count == 1 && is_register(ops, REGISTER_SP, &offset))
		rule->frame = FRAME_SP;
	else if (count == 1 && is_register(ops, REGISTER_BP, &offset))
		rule->frame = FRAME_BP;
	else if (count == 2 && is_register(ops, REGISTER_BP, &offset) && ops[1].atom == DW_OP_deref)
		rule->frame = FRAME_AT_BP; /* a stack that was aligned anew */
	else if (count >= PLT_OPS && is_register(&ops[1], REGISTER_IP, &offset) &&
		 is_register(ops, REGISTER_SP, &offset))
		rule->frame =
			FRAME_PLT; /* 8, and 8 more behind the push in each entry of 16 bytes */
	if (fits(offset))
		rule->frame_offset = (int32_t)offset;
	else
		rule->frame = FRAME_NONE;
}

static void read_bp(Dwarf_Frame *frame, struct rule *rule)
{
	Dwarf_Op memory[3];
	Dwarf_Op *ops = NULL;
	size_t count = 0;
	int64_t offset = 0;
	if (dwarf_frame_register(frame, REGISTER_BP, memory, &ops, &count) || count == 0)
		return;
	if (ops[0].atom == DW_OP_call_frame_cfa && count <= 2) {
		rule->bp = BP_AT_FRAME;
		offset = count == 2 ? (int64_t)ops[1].number : 0;
	} else if (count == 1 && is_register(ops, REGISTER_BP, &offset)) {
		rule->bp = BP_AT_BP;
	}
	rule->bp_offset = fits(offset) ? (int32_t)offset : 0;
}

/* A function that nobody called, as a thread's first, says that its return address is undefined. */
static bool is_outermost(Dwarf_Frame *frame)
{
	Dwarf_Op memory[3];
	Dwarf_Op *ops = NULL;
	size_t count = 0;
	return dwarf_frame_register(frame, REGISTER_IP, memory, &ops, &count) == 0 && count == 0 &&
	       ops == memory;
}

/* A call through a register or memory is 2 to 7 bytes, FF with 2 in the middle of the next byte; a direct one 5 (Intel,
 * Software Developer's Manual vol. 2, CALL).  What is data may look like one, rarely. */
static bool ends_call(uint64_t pc)
{
	uint8_t code[CALL_BYTES];
	const struct iovec into = {code, sizeof code};
	const struct iovec from = {(void *)(uintptr_t)(pc + 1 - sizeof code), sizeof code};
	if (process_vm_readv(getpid(), &into, 1, &from, 1, 0) != (ssize_t)sizeof code)
		return false;
	if (code[CALL_BYTES - 5] == 0xE8)
		return true;
	for (size_t i = 0; i + 1 < CALL_BYTES; i++)
		if (code[i] == 0xFF && (code[i + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

static bool is_call(struct flame_unwinder *u, uint64_t pc)
{
	struct call *const call = &u->calls[(pc * 0x9E3779B97F4A7C15ULL) >> 54];
	if (call->pc != pc)
		*call = (struct call){.pc = pc, .is_one = find_module(u, pc) && ends_call(pc)};
	return call->is_one;
}

/* Where the tables say nothing of pc, of it alone. */
static struct rule find_rule(struct flame_unwinder *u, uint64_t pc)
{
	struct rule rule = {.from = pc, .to = pc + 1, .frame = FRAME_NONE};
	Dwfl_Module *const module = find_module(u, pc);
	Dwarf_Addr bias = 0;
	Dwarf_CFI *const cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	Dwarf_Frame *frame = NULL;
	if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame))
		return rule;
	Dwarf_Addr from = 0;
	Dwarf_Addr to = 0;
	if (dwarf_frame_info(frame, &from, &to, NULL) >= 0 && from + bias <= pc && pc < to + bias) {
		rule.from = from + bias;
		rule.to = to + bias;
	}
	Dwarf_Op *ops = NULL;
	size_t count = 0;
	if (is_outermost(frame)) {
		rule.frame = FRAME_LAST;
	} else if (dwarf_frame_cfa(frame, &ops, &count) == 0 && count > 0) {
		read_frame(ops, count, &rule);
		read_bp(frame, &rule);
	}
	free(frame);
	return rule;
}

/* How many rules begin at pc or below. */
static size_t rules_up_to(const struct flame_unwinder *u, uint64_t pc)
{
	size_t low = 0;
	size_t high = u->rule_count;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (u->rules[middle].from <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Valid until the next call.  Another module may have come to where one was: what is known already stays. */
static const struct rule *rule_at(struct flame_unwinder *u, uint64_t pc)
{
	size_t at = rules_up_to(u, pc);
	if (at > 0 && pc < u->rules[at - 1].to)
		return &u->rules[at - 1];
	if (u->rule_count == RULES_ROOM)
		at = u->rule_count = 0;
	struct rule rule = find_rule(u, pc);
	if (at > 0 && rule.from < u->rules[at - 1].to)
		rule.from = u->rules[at - 1].to;
	if (at < u->rule_count && rule.to > u->rules[at].from)
		rule.to = u->rules[at].from;
	memmove(&u->rules[at + 1], &u->rules[at], (u->rule_count - at) * sizeof *u->rules);
	u->rules[at] = rule;
	u->rule_count++;
	return &u->rules[at];
}

/* --- unwinding -------------------------------------------------------------------------------- */

static bool read_word(const struct flame_raw *raw, uint64_t address, uint64_t *out)
{
	const uint64_t offset = address - raw->sp; /* huge below it */
	if (raw->size < sizeof *out || offset > raw->size - sizeof *out)
		return false;
	memcpy(out, raw->stack + offset, sizeof *out);
	return true;
}

/* Code without tables, as libjpeg's in assembler, keeps a frame pointer, or its callers are not known.  Where it aligned
 * the stack, the pointer leads to another, which leads to the caller.  What is no return address is not taken for one. */
static bool step_by_pointer(
	struct flame_unwinder *u, const struct flame_raw *raw, struct registers *r)
{
	uint64_t bp = r->bp;
	for (int i = 0; i < POINTERS_FOLLOWED && bp >= r->sp; i++) {
		struct registers caller = {.sp = bp + 2 * sizeof(uint64_t)};
		if (!read_word(raw, bp, &caller.bp) ||
			!read_word(raw, bp + sizeof(uint64_t), &caller.ip))
			return false;
		if (caller.ip > 1 && is_call(u, caller.ip - 1)) {
			*r = caller;
			return true;
		}
		bp = caller.bp;
	}
	return false;
}

static bool find_caller_frame(const struct flame_raw *raw, const struct rule *rule,
	const struct registers *r, uint64_t *frame)
{
	const uint64_t offset = (uint64_t)(int64_t)rule->frame_offset;
	switch (rule->frame) {
	case FRAME_SP:
		*frame = r->sp + offset;
		return true;
	case FRAME_BP:
		*frame = r->bp + offset;
		return true;
	case FRAME_AT_BP:
		return read_word(raw, r->bp + offset, frame);
	case FRAME_PLT:
		*frame = r->sp + offset + ((r->ip & 15) >= 11 ? sizeof(uint64_t) : 0);
		return true;
	default:
		return false;
	}
}

/* By the rule of a function with tables; *whole: it was the outermost that counts. */
static bool step_by_rule(
	const struct flame_raw *raw, const struct rule *rule, struct registers *r, bool *whole)
{
	uint64_t frame;
	struct registers caller = {.bp = r->bp};
	if (!find_caller_frame(raw, rule, r, &frame) || frame <= r->sp)
		return false;
	*whole = raw->base && frame > raw->base;
	if (*whole || !read_word(raw, frame - sizeof(uint64_t), &caller.ip))
		return false;
	const uint64_t bp_offset = (uint64_t)(int64_t)rule->bp_offset;
	/* At a function's end gcc's tables go on to name the place that the register was popped from: it has its value back. */
	const bool popped = frame + bp_offset < r->sp;
	if (rule->bp == BP_AT_FRAME && !popped && !read_word(raw, frame + bp_offset, &caller.bp))
		return false;
	if (rule->bp == BP_AT_BP && !read_word(raw, r->bp + bp_offset, &caller.bp))
		return false;
	caller.sp = frame;
	*r = caller;
	return true;
}

size_t flame_unwind(struct flame_unwinder *u, const struct flame_raw *raw, uint64_t *pcs,
	size_t room, bool *whole)
{
	struct registers r = {.ip = raw->ip, .sp = raw->sp, .bp = raw->bp};
	size_t count = 0;
	*whole = false;
	while (count < room && r.ip > 1) {
		/* A return address is behind its call, which may be the last instruction of a function. */
		const uint64_t pc = count == 0 ? r.ip : r.ip - 1;
		pcs[count++] = pc;
		const struct rule *const rule = rule_at(u, pc);
		*whole = rule->frame == FRAME_LAST;
		if (*whole || !(rule->frame == FRAME_NONE ? step_by_pointer(u, raw, &r)
							  : step_by_rule(raw, rule, &r, whole)))
			break;
	}
	return count;
}

/* --- opening ---------------------------------------------------------------------------------- */

int flame_unwinder_open(struct flame_unwinder **out, struct error *err)
{
	struct flame_unwinder *u = calloc(1, sizeof *u);
	if (!u)
		return error_set(err, -ENOMEM, "out of memory");
	u->rules = calloc(RULES_ROOM, sizeof *u->rules);
	u->dwfl = u->rules ? dwfl_begin(&callbacks) : NULL;
	if (!u->dwfl) {
		flame_unwinder_close(u);
		return error_set(err, -ENOMEM, "out of memory");
	}
	report_modules(u);
	*out = u;
	return 0;
}

void flame_unwinder_close(struct flame_unwinder *u)
{
	if (!u)
		return;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	free(u->rules);
	free(u);
}

/* Functions and those inlined in them by DWARF where there is any, functions by the symbol table, "[file]" of the module
 * elsewhere. */

enum { NESTED_MAX = 3 }; /* blocks and functions that a function's DIE may be in */

/* --- names of the process --------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static void copy_name(char (*out)[FLAME_NAME_BYTES], const char *name)
{
	(void)snprintf(*out, FLAME_NAME_BYTES, "%s", name);
}

static void name_module(Dwfl_Module *module, char (*out)[FLAME_NAME_BYTES])
{
	const char *file = NULL;
	const char *const name =
		module ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &file, NULL) : NULL;
	if (!name)
		copy_name(out, "[unknown]");
	else if (name[0] == '[') /* "[vdso: 1234]" */
		(void)snprintf(*out, FLAME_NAME_BYTES, "%.*s]", (int)strcspn(name, ":]"), name);
	else
		(void)snprintf(*out, FLAME_NAME_BYTES, "[%.200s]", base_name(file ? file : name));
}

/* The nearest symbol before pc says nothing where its function has ended. */
static const char *symbol_at(Dwfl_Module *module, uint64_t pc)
{
	GElf_Off offset = 0;
	GElf_Sym symbol;
	const char *const name =
		dwfl_module_addrinfo(module, pc, &offset, &symbol, NULL, NULL, NULL);
	return name && (symbol.st_size == 0 || offset < symbol.st_size) ? name : NULL;
}

static const char *function_name(Dwarf_Die *die)
{
	Dwarf_Attribute memory;
	const char *const name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &memory));
	return name ? name : "[unnamed]";
}

/* The function around pc among a DIE's children; nested: also among theirs, where what OpenMP took out of a function
 * stands. */
static bool find_function(Dwarf_Die *parent, Dwarf_Addr pc, int nested, Dwarf_Die *out)
{
	Dwarf_Die child;
	if (dwarf_child(parent, &child))
		return false;
	do {
		const int tag = dwarf_tag(&child);
		if (tag == DW_TAG_subprogram && dwarf_haspc(&child, pc) > 0) {
			*out = child;
			return true;
		}
		if (nested > 0 && (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block) &&
			find_function(&child, pc, nested - 1, out))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* From a function, or a block in it, to the next around pc. */
static bool step_into_inlined(Dwarf_Die *die, Dwarf_Addr pc)
{
	Dwarf_Die child;
	if (dwarf_child(die, &child))
		return false;
	do {
		const int tag = dwarf_tag(&child);
		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
			dwarf_haspc(&child, pc) > 0) {
			*die = child;
			return true;
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* Outermost first: the function at pc, and those inlined around pc. */
static size_t functions_at(
	Dwfl_Module *module, uint64_t pc, char (*names)[FLAME_NAME_BYTES], size_t room)
{
	Dwarf_Addr bias = 0;
	Dwarf_Die *const unit = dwfl_module_addrdie(module, pc, &bias);
	Dwarf_Die die;
	if (!unit || !(find_function(unit, pc - bias, 0, &die) ||
			     find_function(unit, pc - bias, NESTED_MAX, &die)))
		return 0;
	size_t count = 0;
	copy_name(&names[count++], function_name(&die));
	while (step_into_inlined(&die, pc - bias)) {
		/* Artificial: the vector intrinsics, which are instructions rather than functions. */
		if (dwarf_tag(&die) != DW_TAG_inlined_subroutine ||
			dwarf_hasattr_integrate(&die, DW_AT_artificial))
			continue;
		/* Of too many, the innermost. */
		copy_name(&names[count < room ? count : room - 1], function_name(&die));
		count += count < room;
	}
	return count;
}

/* Names of an address, outermost first (functions that were inlined there follow), at most room; at
 * least 1. */
static size_t flame_user_names(
	struct flame_unwinder *unwinder, uint64_t pc, char (*names)[FLAME_NAME_BYTES], size_t room)
{
	Dwfl_Module *const module = find_module(unwinder, pc);
	const char *const symbol = module ? symbol_at(module, pc) : NULL;
	const size_t count = module ? functions_at(module, pc, names, room) : 0;
	if (count > 0)
		return count;
	if (symbol)
		copy_name(&names[0], symbol);
	else
		name_module(module, &names[0]);
	return 1;
}

#else

int flame_unwinder_open(struct flame_unwinder **out, struct error *err)
{
	*out = NULL;
	return part_require(PART_FLAME, err);
}

/* Nobody has one to pass to these. */
void flame_unwinder_close(struct flame_unwinder *u)
{
	(void)u;
}

size_t flame_unwind(struct flame_unwinder *u, const struct flame_raw *raw, uint64_t *pcs,
	size_t room, bool *whole)
{
	(void)u;
	(void)raw;
	(void)pcs;
	(void)room;
	*whole = false;
	return 0;
}

static size_t flame_user_names(
	struct flame_unwinder *unwinder, uint64_t pc, char (*names)[FLAME_NAME_BYTES], size_t room)
{
	(void)unwinder;
	(void)pc;
	(void)names;
	(void)room;
	return 0;
}

#endif

static size_t mix_hash(uint64_t value, uint64_t parent)
{
	uint64_t x = (value ^ (parent * 0x9E3779B97F4A7C15ULL)) * 0xD6E8FEB86659FD93ULL;
	x ^= x >> 32;
	return (size_t)(x * 0xD6E8FEB86659FD93ULL >> 20);
}

/* --- the tree of addresses -------------------------------------------------------------------- */

void flame_tree_close(struct flame_tree *tree)
{
	free(tree->nodes);
	free(tree->slots);
	*tree = (struct flame_tree){0};
}

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

/* Where such a node's number is, or would be; slots keep the number + 1, stages are never looked for. */
static uint32_t *find_node(const struct flame_tree *tree, uint32_t parent, uint64_t pc)
{
	const size_t mask = tree->slot_count - 1;
	size_t i = mix_hash(pc, parent) & mask;
	for (; tree->slots[i]; i = (i + 1) & mask) {
		const struct flame_node *node = &tree->nodes[tree->slots[i] - 1];
		if (node->pc == pc && node->parent == parent)
			break;
	}
	return &tree->slots[i];
}

static bool grow_tree(struct flame_tree *tree)
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
		*find_node(&next, next.nodes[i].parent, next.nodes[i].pc) = i + 1;
	free(tree->slots);
	*tree = next;
	return true;
}

uint32_t flame_tree_step(struct flame_tree *tree, uint32_t parent, uint64_t pc)
{
	uint32_t *slot = find_node(tree, parent, pc);
	if (*slot)
		return *slot - 1;
	if (tree->count == tree->room) {
		if (!grow_tree(tree))
			return FLAME_ROOT;
		slot = find_node(tree, parent, pc);
	}
	const uint32_t number = (uint32_t)tree->count++;
	tree->nodes[number] = (struct flame_node){.pc = pc, .parent = parent};
	*slot = number + 1;
	return number;
}

/* --- from addresses to names ------------------------------------------------------------------ */

struct known_name {
	const char *text; /* the profile's */
	uint32_t number;
};

/* Frames below the same one are a list; 0, which is a stage, ends it. */
struct frame_links {
	uint32_t first_below, next_beside;
};

/* The profile while it is built. */
struct naming {
	struct flame_profile *out;
	struct flame_unwinder *unwinder;
	size_t name_room, frame_room, link_room;
	void *known;               /* names by their text, tsearch(3)'s */
	struct frame_links *links; /* of each frame */
	bool failed;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct known_name *)a)->text, ((const struct known_name *)b)->text);
}

/* An array with room for one more than count; NULL without memory. */
static void *with_room(void *array, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return array;
	const size_t more = *room ? 2 * *room : NAMES_FIRST;
	void *larger = realloc(array, more * size);
	if (larger)
		*room = more;
	return larger;
}

static uint32_t intern_name(struct naming *n, const char *text)
{
	const struct known_name key = {.text = text};
	struct known_name *const *found = tfind(&key, &n->known, by_text);
	if (found)
		return (*found)->number;
	const uint32_t number = (uint32_t)n->out->name_count;
	char **names = with_room(n->out->names, number, &n->name_room, sizeof *names);
	if (names)
		n->out->names = names;
	struct known_name *name = names ? malloc(sizeof *name) : NULL;
	char *copy = name ? strdup(text) : NULL;
	if (copy) {
		names[n->out->name_count++] = copy;
		*name = (struct known_name){copy, number};
	}
	if (!copy || !tsearch(name, &n->known, by_text)) {
		free(name);
		n->failed = true;
	}
	return number;
}

/* A stage, whose parent is FLAME_ROOT, is there once. */
static uint32_t frame_below(struct naming *n, uint32_t parent, const char *text)
{
	const uint32_t name = intern_name(n, text);
	const bool top = parent == FLAME_ROOT;
	for (uint32_t i = top ? 0 : n->links[parent].first_below; i; i = n->links[i].next_beside)
		if (n->out->frames[i].name == name)
			return i;
	const uint32_t number = (uint32_t)n->out->frame_count;
	struct flame_frame *frames =
		with_room(n->out->frames, number, &n->frame_room, sizeof *frames);
	struct frame_links *links = with_room(n->links, number, &n->link_room, sizeof *links);
	if (frames)
		n->out->frames = frames;
	if (links)
		n->links = links;
	if (n->failed || !frames || !links) {
		n->failed = true;
		return 0;
	}
	frames[number] = (struct flame_frame){.parent = parent, .name = name};
	links[number] = (struct frame_links){.next_beside = top ? 0 : links[parent].first_below};
	if (!top)
		links[parent].first_below = number;
	n->out->frame_count++;
	return number;
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
		return frame_below(n, parent, FLAME_TRUNCATED);
	char names[FLAME_INLINED_MAX][FLAME_NAME_BYTES];
	const size_t count = flame_user_names(n->unwinder, node->pc, names, FLAME_INLINED_MAX);
	const bool top = n->out->frames[parent].parent == FLAME_ROOT;
	for (size_t i = 0; i < count && !n->failed; i++)
		if (!(top && is_start(names[i])) && !is_same_module(n, parent, names[i]))
			parent = frame_below(n, parent, names[i]);
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
			frames[i] = frame_below(n, FLAME_ROOT, stages[i]);
		else
			continue;
		if (!n->failed)
			n->out->frames[frames[i]].self += node->self;
	}
	free(frames);
	return n->failed ? -ENOMEM : 0;
}

static void add_up_frames(struct flame_profile *out)
{
	for (size_t i = out->frame_count; i-- > 0;) {
		struct flame_frame *frame = &out->frames[i];
		frame->total += frame->self;
		if (frame->parent != FLAME_ROOT)
			out->frames[frame->parent].total += frame->total;
	}
}

int flame_tree_name(const struct flame_tree *tree, const char *const *stages,
	struct flame_unwinder *unwinder, struct flame_profile *out)
{
	struct naming n = {.out = out, .unwinder = unwinder};
	const int code = name_all(&n, tree, stages);
	free(n.links);
	tdestroy(n.known, free);
	if (!code)
		add_up_frames(out);
	return code;
}
