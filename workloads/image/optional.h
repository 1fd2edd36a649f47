/* Formats whose libraries may be missing where the program is built: it then says so of each file and
 * of the codec, and does all the rest. */
#ifndef MLBENCH_WORKLOADS_IMAGE_OPTIONAL_H
#define MLBENCH_WORKLOADS_IMAGE_OPTIONAL_H

#include "workloads/image/decoder.h"

/* NULL, or why the format cannot be decoded here. */
const char *webp_unavailable(void);
const char *tiff_unavailable(void);

/* As image_read_info, of a file with that signature. */
int webp_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err);
int tiff_read_info(const void *bytes, size_t size, struct image_info *info, struct error *err);

/* NULL where the format is not available. */
const struct decoder_ops *webp_decoder(void);
const struct decoder_ops *tiff_decoder(void);

#endif
