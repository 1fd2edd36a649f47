/* NumPy's array files: the header of .npy, and where the arrays lie in .npz.  Written after NEP 1 and
 * numpy.lib.format (versions 1 to 3), and after PKWARE's APPNOTE.TXT for the zip directory, without
 * NumPy: a header is data here and never evaluated.  Both readers look at bytes alone and take nothing on
 * trust; tests/fuzz/fuzz_npy.c holds them to that. */
#ifndef MLBENCH_WORKLOADS_SAMPLE_NPY_H
#define MLBENCH_WORKLOADS_SAMPLE_NPY_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NPY_DIMENSIONS_MAX = 8,
	NPY_HEADER_MAX = 10000,  /* bytes of the dictionary: NumPy's own limit */
	NPY_HEAD_BYTES = 12,     /* in front of the dictionary, at most */
	NPZ_DEFLATE_MOST = 1032, /* bytes that one byte of deflate can stand for, at most */
	NPZ_STORED = 0,          /* methods of zip */
	NPZ_DEFLATED = 8,
};

/* No array of more bytes is taken: a claim must not cost time or memory. */
static const uint64_t NPY_BYTES_MAX = 16ULL << 30;

struct npy_array {
	char kind;     /* 'b', 'u', 'i' or 'f' */
	uint32_t size; /* bytes of an element: 1, 2, 4 or 8 */
	bool big;      /* its bytes are in big-endian order */
	bool fortran;  /* the first index runs fastest, not the last */
	uint32_t dimensions;
	uint64_t shape[NPY_DIMENSIONS_MAX]; /* each 1 or more */
	uint64_t bytes;                     /* of all elements, at most NPY_BYTES_MAX */
	size_t header_bytes;                /* where they begin */
};

/* Reads the header at the beginning of an array's bytes.  -EAGAIN: it is longer than size; -EINVAL with
 * the reason: it is none, or of an array that is not read here. */
int npy_read_header(const void *bytes, size_t size, struct npy_array *out, struct error *err);

/* 0, or -EINVAL: header and elements do not add up to so many bytes. */
int npy_check_bytes(const struct npy_array *array, uint64_t bytes, struct error *err);

bool npy_is_zip(const void *bytes, size_t size);

/* An array of an .npz: a file of its zip directory. */
struct npz_entry {
	uint32_t method;       /* NPZ_STORED or NPZ_DEFLATED */
	size_t offset, stored; /* its bytes in the zip */
	uint64_t bytes;        /* when unpacked: an .npy file of so many */
	uint32_t crc;          /* CRC-32 of them */
	const char *name; /* as np.load names it, without .npy; in the directory, not terminated */
	size_t name_size;
};

/* The directory of a zip, and how far it has been read. */
struct npz_directory {
	const uint8_t *file;
	uint64_t size; /* of the file */
	uint64_t offset, bytes, entries;
	uint64_t at, taken;
};

/* Both: -EINVAL with the reason where it is no zip, cut short, encrypted, of several disks, of an unknown
 * method, or has sizes that cannot be (the directory is held against the file's own header, against the
 * end of the file, and against what deflate can do at best).  bytes outlive the directory. */
int npz_open(struct npz_directory *zip, const void *bytes, size_t size, struct error *err);
/* The next entry whose name ends in .npy: 1; 0: there are no more. */
int npz_next_array(struct npz_directory *zip, struct npz_entry *out, struct error *err);

#endif
