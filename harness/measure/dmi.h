/* The memory modules that the firmware tells of in its DMI (SMBIOS) table: structures of type 17, as DSP0134 of the DMTF
 * lays them out.  The table is foreign bytes: every length is checked. */
#ifndef MLBENCH_MEASURE_DMI_H
#define MLBENCH_MEASURE_DMI_H

#include <stdbool.h>
#include <stddef.h>

enum { DMI_TABLE_BYTES_MAX = 1 << 20, DMI_MODULES_MAX = 256 };

/* A slot for memory. */
struct dmi_module {
	char slot
		[48]; /* "DIMM_A1", with the bank where slots share a name; unique within a table */
	double bytes; /* 0: the slot is empty; NAN: the firmware does not know */
	double speed; /* million transfers/s that it runs at; NAN: not told */
	double rated; /* that it could run at */
	int corrects; /* errors (ECC): 1 yes, 0 no, -1 not told */
	char type[16];                        /* "DDR5"; "": not told */
	char maker[32], part[40], serial[40]; /* "": not told */
};

/* Whether a text of the firmware's says nothing: "To be filled by O.E.M." and the like. */
bool dmi_is_placeholder(const char *text);
/* Of a table's bytes; returns how many were written. */
size_t dmi_modules(
	const unsigned char *table, size_t size, struct dmi_module *modules, size_t room);
/* Of the table below a root ("" but in tests): 0, or -errno of reading it. */
int dmi_modules_read(const char *root, struct dmi_module *modules, size_t room, size_t *count);

#endif
