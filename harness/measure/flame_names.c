/* Names of addresses: functions and those inlined in them by DWARF where there is any, functions by the symbol table,
 * "[file]" of the module elsewhere; of the kernel, by /proc/kallsyms. */
#include "harness/measure/flame_unwind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(MLBENCH_WITH_libdw)
#include <dwarf.h>
#include <elfutils/libdw.h>

enum { NESTED_MAX = 3 }; /* blocks and functions that a function's DIE may be in */

/* --- the process ----------------------------------------------------------------------------------------- */

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
static bool step_in(Dwarf_Die *die, Dwarf_Addr pc)
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
	while (step_in(&die, pc - bias)) {
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

size_t flame_user_names(
	struct flame_unwinder *unwinder, uint64_t pc, char (*names)[FLAME_NAME_BYTES], size_t room)
{
	Dwfl_Module *const module = flame_module(unwinder, pc);
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

#endif

/* --- the kernel ------------------------------------------------------------------------------------------ */

enum { KERNEL_SYMBOLS_MAX = 1 << 20, KERNEL_LINE_BYTES = 512 };

struct kernel_symbol {
	uint64_t address;
	size_t name; /* into text */
};

struct flame_kernel {
	struct kernel_symbol *symbols; /* (count), by address */
	size_t count, room;
	char *text;
	size_t text_size, text_room;
};

static void *grow(void *data, size_t wanted, size_t *room, size_t each)
{
	if (wanted <= *room)
		return data;
	const size_t next = wanted * 2;
	void *const grown = realloc(data, next * each);
	if (grown)
		*room = next;
	return grown;
}

static bool add_symbol(struct flame_kernel *k, uint64_t address, const char *name)
{
	const size_t size = strlen(name) + 1;
	struct kernel_symbol *const symbols =
		grow(k->symbols, k->count + 1, &k->room, sizeof *symbols);
	if (!symbols)
		return false;
	k->symbols = symbols;
	char *const text = grow(k->text, k->text_size + size, &k->text_room, 1);
	if (!text)
		return false;
	k->text = text;
	memcpy(text + k->text_size, name, size);
	k->symbols[k->count++] = (struct kernel_symbol){address, k->text_size};
	k->text_size += size;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t left = ((const struct kernel_symbol *)a)->address;
	const uint64_t right = ((const struct kernel_symbol *)b)->address;
	return (left > right) - (left < right);
}

/* "ffffffff81000000 T _stext\t[module]"; all addresses are 0 for who may not see them. */
static void read_symbols(struct flame_kernel *k, FILE *file)
{
	char line[KERNEL_LINE_BYTES];
	while (k->count < KERNEL_SYMBOLS_MAX && fgets(line, sizeof line, file)) {
		char *end;
		const uint64_t address = strtoull(line, &end, 16);
		if (address == 0 || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) ||
			end[2] != ' ')
			continue;
		char *const name = end + 3;
		name[strcspn(name, " \t\n")] = '\0';
		if (!add_symbol(k, address, name))
			break;
	}
}

struct flame_kernel *flame_kernel_open(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	struct flame_kernel *k = file ? calloc(1, sizeof *k) : NULL;
	if (k)
		read_symbols(k, file);
	if (file)
		(void)fclose(file);
	if (k && k->count == 0) {
		flame_kernel_close(k);
		return NULL;
	}
	if (k)
		qsort(k->symbols, k->count, sizeof *k->symbols, by_address);
	return k;
}

void flame_kernel_close(struct flame_kernel *k)
{
	if (!k)
		return;
	free(k->symbols);
	free(k->text);
	free(k);
}

const char *flame_kernel_name(const struct flame_kernel *k, uint64_t pc)
{
	size_t low = 0;
	size_t high = k ? k->count : 0;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (k->symbols[middle].address <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? k->text + k->symbols[low - 1].name : "[kernel]";
}
