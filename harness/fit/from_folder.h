/* Findings of a folder of pictures, or of a list of them (finding.h), with the bounds that a test sets low. */
#ifndef MLBENCH_FIT_FROM_FOLDER_H
#define MLBENCH_FIT_FROM_FOLDER_H

#include "harness/fit/finding.h"

#include <stdint.h>

/* What looking at a folder may take.  Times are looked at between two calls of the system: one that hangs is waited for. */
struct folder_bounds {
	uint64_t seed;    /* of what is drawn */
	uint64_t entries; /* names that are listed before folders are drawn at random instead */
	uint64_t drawn_entries; /* names that are listed of those */
	unsigned folders;       /* drawn for one estimate, of which FOLDER_ESTIMATES are made */
	unsigned files;         /* opened for their headers */
	uint64_t list_ns, draw_ns, open_ns;
};

/* What was seen, beside what became findings. */
struct folder_seen {
	uint64_t entries;             /* names listed */
	double files;                 /* regular files, counted or estimated */
	double files_low, files_high; /* 95 % interval of that; NAN: none is known */
	uint64_t dead_links, loops;   /* links to nothing; to a folder above them */
	uint64_t others;              /* pipes, devices, sockets: never opened */
	uint64_t folders_unread;      /* no permission, or nested too deep */
	uint64_t opened,
		headers; /* files that were opened, and those whose header was understood */
	double unknown, unread,
		empty; /* shares of the files: no known format or no right header; not to be read; without bytes */
	bool drawn; /* folders were drawn at random: the counts above are of those */
	bool cut;   /* not even that came to an end: shares are of what was found first */
};

extern const struct folder_bounds folder_bounds_usual; /* ten seconds */

int folder_look(struct findings *out, const char *path, const struct folder_bounds *bounds,
	struct folder_seen *seen, struct error *err);

#endif
