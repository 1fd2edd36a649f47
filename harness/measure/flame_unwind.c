/* Unwinding copies of stacks by the tables that compilers leave in .eh_frame, read by libdw.  Where the caller's frame and
 * its frame pointer are holds for a range of addresses, mostly the body of a function: it is looked up once and kept, since
 * looking takes as long as unwinding some stacks. */
#include "harness/measure/flame_unwind.h"
#include "harness/base/clock.h"
#include "harness/base/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(MLBENCH_WITH_libdw)
#include <dwarf.h>
#include <elfutils/libdw.h>

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

/* --- modules ------------------------------------------------------------------------------------------- */

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

Dwfl_Module *flame_module(struct flame_unwinder *u, uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(u->dwfl, pc);
	/* A library that was opened since; but what is none is not asked about again and again. */
	if (!module && clock_now_ns() - u->reported_ns > NS_PER_S) {
		report_modules(u);
		module = dwfl_addrmodule(u->dwfl, pc);
	}
	return module;
}

/* --- what holds at an address -------------------------------------------------------------------------- */

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
		*call = (struct call){.pc = pc, .is_one = flame_module(u, pc) && ends_call(pc)};
	return call->is_one;
}

/* Where the tables say nothing of pc, of it alone. */
static struct rule find_rule(struct flame_unwinder *u, uint64_t pc)
{
	struct rule rule = {.from = pc, .to = pc + 1, .frame = FRAME_NONE};
	Dwfl_Module *const module = flame_module(u, pc);
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

/* --- unwinding ------------------------------------------------------------------------------------------- */

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

static bool find_frame(const struct flame_raw *raw, const struct rule *rule,
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
	if (!find_frame(raw, rule, r, &frame) || frame <= r->sp)
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

/* --- opening --------------------------------------------------------------------------------------------- */

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

size_t flame_user_names(
	struct flame_unwinder *unwinder, uint64_t pc, char (*names)[FLAME_NAME_BYTES], size_t room)
{
	(void)unwinder;
	(void)pc;
	(void)names;
	(void)room;
	return 0;
}

#endif
