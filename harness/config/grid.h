/* Within harness/config: the swept axes: sweep.zip as links between them, and sweep.exclude. */
#ifndef MLBENCH_CONFIG_GRID_H
#define MLBENCH_CONFIG_GRID_H

#include "harness/config/config.h"

/* Sets each axis's zip_with from sweep.zip, as far as it is right already: a file may name the keys
 * before it sweeps them.  config_grid_open refuses what is left. */
void grid_link_zips(struct config *config);

/* Refuses names in a zip text that are no keys; whether they are swept is seen later. */
int grid_check_zip(const char *text, struct error *err);

/* Refuses a text of sweep.exclude that cannot be read. */
int grid_check_exclude(const struct config *config, const char *text, struct error *err);

/* Takes a key that is no longer swept out of sweep.zip. */
void grid_unzip_key(struct config *config, enum key_id key);

/* Sets the swept keys of config to the values of one point; config's own axes stay as they are. */
int grid_apply_point(const struct config *from, const struct config_grid *grid, size_t point,
	struct config *config, struct error *err);

#endif
