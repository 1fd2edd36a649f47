/* The kind volume: every type, order and packing against what the array was made of; and files that
 * lie. */
#include "tests/unit/dataset_fixture.h"

#include "workloads/sample/npy.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <math.h>
#include <zlib.h>

enum {
	C = 2,
	D = 3,
	H = 4,
	W = 5,
	ELEMENTS = C * D * H * W,
	CROP_D = 2,
	CROP_H = 3,
	CROP_W = 4,
	OUT = C * CROP_D * CROP_H * CROP_W,
	FILE_MAX = 4096
};

struct file {
	uint8_t bytes[FILE_MAX];
	size_t size;
};

/* ---- files made by hand -------------------------------------------------------------------- */

static void put(struct file *file, const void *bytes, size_t size)
{
	assert_true(file->size + size <= FILE_MAX);
	memcpy(file->bytes + file->size, bytes, size);
	file->size += size;
}

static void put_number(struct file *file, uint64_t value, size_t size)
{
	uint8_t bytes[8];
	assert_true(size <= sizeof bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	put(file, bytes, size);
}

static void put_header(struct file *file, unsigned version, const char *dictionary)
{
	put(file, "\x93NUMPY", 6);
	put_number(file, version, 2);
	put_number(file, strlen(dictionary) + 1, version == 1 ? 2 : 4);
	put(file, dictionary, strlen(dictionary));
	put(file, "\n", 1);
}

static uint16_t half_of(unsigned value) /* a small whole number */
{
	unsigned exponent = 0;
	if (value == 0)
		return 0;
	while (value >> exponent > 1)
		exponent++;
	return (uint16_t)((exponent + 15) << 10 | ((value << (10 - exponent)) & 1023));
}

static void put_element(struct file *file, const char *descr, unsigned value)
{
	const size_t size = (size_t)(descr[2] - '0');
	uint8_t bytes[8] = {0};
	const float single = (float)value;
	const double twice = value;
	const uint16_t half = half_of(value);
	const uint64_t whole = value;
	if (descr[1] == 'f')
		memcpy(bytes,
			size == 2   ? (const void *)&half
			: size == 4 ? (const void *)&single
				    : (const void *)&twice,
			size);
	else
		memcpy(bytes, &whole, size);
	for (size_t i = 0; i < size; i++)
		put(file, &bytes[descr[0] == '>' ? size - 1 - i : i], 1);
}

/* (C, D, H, W), or (D, H, W) with one channel; each element is its own number. */
static void make_array(
	struct file *file, unsigned version, const char *descr, bool fortran, unsigned c)
{
	char text[160];
	char shape[64];
	*file = (struct file){.size = 0};
	if (c > 1)
		(void)snprintf(shape, sizeof shape, "%u, %d, %d, %d", c, D, H, W);
	else
		(void)snprintf(shape, sizeof shape, "%d, %d, %d", D, H, W);
	(void)snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }",
		descr, fortran ? "True" : "False", shape);
	put_header(file, version, text);
	if (!fortran) {
		for (unsigned i = 0; i < c * D * H * W; i++)
			put_element(file, descr, i);
		return;
	}
	for (unsigned w = 0; w < W; w++)
		for (unsigned h = 0; h < H; h++)
			for (unsigned d = 0; d < D; d++)
				for (unsigned i = 0; i < c; i++)
					put_element(file, descr, ((i * D + d) * H + h) * W + w);
}

/* How a zip is made wrong. */
struct lie {
	uint32_t flags, method, claim; /* method, claim: 0: the true ones */
	bool zip64;
	const char *name;
};

static void make_zip(
	struct file *zip, const struct file *array, bool deflated, const struct lie *lie)
{
	uint8_t packed[FILE_MAX];
	uLongf stored = array->size;
	*zip = (struct file){.size = 0};
	if (deflated) {
		z_stream stream = {0};
		assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, 0), Z_OK);
		stream.next_in = (uint8_t *)(uintptr_t)array->bytes;
		stream.avail_in = (uInt)array->size;
		stream.next_out = packed;
		stream.avail_out = sizeof packed;
		assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
		stored = stream.total_out;
		(void)deflateEnd(&stream);
	}
	const char *const name = lie->name ? lie->name : "data.npy";
	const uint64_t method = lie->method ? lie->method : deflated ? 8 : 0;
	const uint64_t bytes = lie->claim ? lie->claim : array->size;
	for (int entry = 0; entry < 2; entry++) {
		const size_t directory = zip->size;
		put_number(zip, entry ? 0x02014b50 : 0x04034b50, 4);
		put_number(zip, 20, entry ? 4 : 2);
		put_number(zip, lie->flags, 2);
		put_number(zip, method, 2);
		put_number(zip, 0, 4); /* time */
		put_number(zip, crc32_z(0, array->bytes, array->size), 4);
		put_number(zip, lie->zip64 ? UINT32_MAX : stored, 4);
		put_number(zip, lie->zip64 ? UINT32_MAX : bytes, 4);
		put_number(zip, strlen(name), 2);
		put_number(zip, lie->zip64 ? 20 : 0, 2);
		if (entry) {
			put_number(zip, 0, 6);
			put_number(zip, 0, 8);
		}
		put(zip, name, strlen(name));
		if (lie->zip64) {
			put_number(zip, 1, 2);
			put_number(zip, 16, 2);
			put_number(zip, bytes, 8);
			put_number(zip, stored, 8);
		}
		if (!entry)
			put(zip, deflated ? packed : array->bytes, stored);
		if (!entry)
			continue;
		const size_t size = zip->size - directory;
		put_number(zip, 0x06054b50, 4);
		put_number(zip, 0, 4);
		put_number(zip, 1, 2);
		put_number(zip, 1, 2);
		put_number(zip, size, 4);
		put_number(zip, directory, 4);
		put_number(zip, 0, 2);
	}
}

/* ---- making samples of them ---------------------------------------------------------------- */

struct making {
	struct config config;
	struct sample_sizes sizes;
	struct sample_maker maker;
	struct sample sample;
	struct dataset dataset;
	const char *classes[1];
	float out[OUT];
	uint32_t label;
	struct error err;
};

static void open_making(
	struct making *making, const char *crop, const char *flip, const char *channels)
{
	*making = (struct making){.sample.label = 7};
	config_init(&making->config);
	fixture_set(&making->config, "sample.kind=volume");
	fixture_set(&making->config, crop);
	fixture_set(&making->config, flip);
	fixture_set(&making->config, channels);
	assert_int_equal(sample_validate(&making->config, &making->err), 0);
	sample_sizes_of(&making->config, NULL, &making->sizes);
	const struct sample_options options = {
		.config = &making->config, .dataset = &making->dataset};
	assert_int_equal(
		sample_maker_open(&making->maker, &options, &making->sizes, &making->err), 0);
}

static void close_making(struct making *making)
{
	sample_maker_close(&making->maker);
	config_release(&making->config);
}

/* The file lies at the end of its memory, so that a sanitizer sees a read behind it. */
static int make(struct making *making, const struct file *file, uint64_t seed)
{
	uint8_t *const bytes = malloc(file->size + 1);
	assert_non_null(bytes);
	memcpy(bytes + 1, file->bytes, file->size);
	const struct sample_task task = {.bytes = bytes + 1,
		.size = file->size,
		.seed = seed,
		.sample = &making->sample,
		.labels = (uint8_t *)&making->label,
		.sizes = &making->sizes,
		.out = (uint8_t *)making->out};
	making->label = 0;
	making->err.text[0] = '\0';
	const int code = making->maker.make(making->maker.worker, &task, &making->err);
	free(bytes);
	return code;
}

/* The sample is a box of the array, flipped or not; where it begins, as one number. */
static unsigned check_box(const struct making *making, unsigned c, bool flipped)
{
	const unsigned at = (unsigned)making->out[flipped ? (CROP_D * CROP_H * CROP_W) - 1 : 0];
	const unsigned d0 = at / (H * W);
	const unsigned h0 = at / W % H;
	const unsigned w0 = at % W;
	assert_true(d0 <= D - CROP_D && h0 <= H - CROP_H && w0 <= W - CROP_W);
	const float *out = making->out;
	for (unsigned i = 0; i < c; i++)
		for (unsigned d = 0; d < CROP_D; d++)
			for (unsigned h = 0; h < CROP_H; h++)
				for (unsigned w = 0; w < CROP_W; w++) {
					const unsigned dd = d0 + (flipped ? CROP_D - 1 - d : d);
					const unsigned hh = h0 + (flipped ? CROP_H - 1 - h : h);
					const unsigned ww = w0 + (flipped ? CROP_W - 1 - w : w);
					assert_true(*out++ ==
						    (float)(((i * D + dd) * H + hh) * W + ww));
				}
	return at;
}

static void every_type_and_order_is_read(void **state)
{
	static const char *const types[] = {"|b1", "|u1", "|i1", "<u2", ">u2", "<i2", ">i2", "<f2",
		">f2", "<u4", ">u4", "<i4", ">i4", "<f4", ">f4", "<u8", ">u8", "<i8", ">i8", "<f8",
		">f8", "=f4"};
	struct file array;
	struct file zip;
	const struct lie honest = {0};
	const struct lie large = {.zip64 = true};
	(void)state;
	for (unsigned c = 1; c <= C; c++)
		for (int flipped = 0; flipped < 2; flipped++) {
			struct making making;
			open_making(&making, "volume.crop=2x3x4",
				flipped ? "volume.flip=100%" : "volume.flip=0",
				c == 1 ? "volume.channels=1" : "volume.channels=2");
			assert_int_equal(making.sizes.values, c * CROP_D * CROP_H * CROP_W);
			for (size_t i = 0; i < sizeof types / sizeof *types; i++)
				for (unsigned way = 0; way < 6; way++) {
					make_array(&array, 1 + way % 3, types[i], way >= 3, c);
					for (int packed = 0; packed < 4; packed++) {
						make_zip(&zip, &array, packed == 2,
							packed == 3 ? &large : &honest);
						const int code = make(&making,
							packed ? &zip : &array, i * 6 + way);
						if (code)
							fail_msg("%s: %s", types[i],
								making.err.text);
						assert_int_equal(making.label, 7);
						(void)check_box(&making, c, flipped);
					}
				}
			close_making(&making);
		}
}

/* Each place that a box may have comes, and the same for the same seed. */
static void boxes_are_anywhere_and_of_the_seed(void **state)
{
	struct making making;
	struct file array;
	bool seen[ELEMENTS] = {false};
	unsigned places = 0;
	(void)state;
	make_array(&array, 1, "<i2", false, 1);
	open_making(&making, "volume.crop=2x3x4", "volume.flip=0", "volume.channels=1");
	for (uint64_t seed = 0; seed < 300; seed++) {
		assert_int_equal(make(&making, &array, seed), 0);
		const unsigned at = check_box(&making, 1, false);
		places += !seen[at];
		seen[at] = true;
		assert_int_equal(make(&making, &array, seed), 0);
		assert_int_equal(check_box(&making, 1, false), at);
	}
	assert_int_equal(places, (D - CROP_D + 1) * (H - CROP_H + 1) * (W - CROP_W + 1));
	close_making(&making);
}

/* Longer than the window that it is unpacked through, from the first run to the last. */
static void a_long_deflated_array_is_unpacked_through_its_window(void **state)
{
	enum { SLICES = 40, EDGE = 100, VALUES = SLICES * EDGE * EDGE };
	(void)state;
	struct making making;
	open_making(&making, "volume.crop=2x3x4", "volume.flip=0", "volume.channels=1");
	uint8_t *const plain = malloc(VALUES * 4 + 128);
	uint8_t *const zip = malloc(VALUES * 4 + 1024);
	assert_true(plain && zip);
	struct file head = {.size = 0};
	put_header(&head, 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (40, 100, 100)}");
	memcpy(plain, head.bytes, head.size);
	for (int32_t i = 0; i < VALUES; i++)
		memcpy(plain + head.size + (size_t)i * 4, &i, 4);
	const size_t size = head.size + VALUES * 4;
	/* A zip by Python's rules, around what zlib packs. */
	struct file front = {.size = 0};
	struct file back = {.size = 0};
	z_stream stream = {0};
	assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, -15, 8, 0), Z_OK);
	put_number(&front, 0x04034b50, 4);
	put_number(&front, 20, 4);
	put_number(&front, 8, 2);
	put_number(&front, 0, 8);
	put_number(&front, 0, 8);
	put_number(&front, 5, 4);
	put(&front, "a.npy", 5);
	stream.next_in = plain;
	stream.avail_in = (uInt)size;
	stream.next_out = zip + front.size;
	stream.avail_out = VALUES * 4;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	memcpy(zip, front.bytes, front.size);
	const size_t directory = front.size + stream.total_out;
	put_number(&back, 0x02014b50, 4);
	put_number(&back, 20, 4);
	put_number(&back, 0, 2);
	put_number(&back, 8, 2);
	put_number(&back, 0, 4);
	put_number(&back, crc32_z(0, plain, size), 4);
	put_number(&back, stream.total_out, 4);
	put_number(&back, size, 4);
	put_number(&back, 5, 4);
	put_number(&back, 0, 6);
	put_number(&back, 0, 8);
	put(&back, "a.npy", 5);
	const size_t entry = back.size;
	put_number(&back, 0x06054b50, 4);
	put_number(&back, 0, 4);
	put_number(&back, 1, 2);
	put_number(&back, 1, 2);
	put_number(&back, entry, 4);
	put_number(&back, directory, 4);
	put_number(&back, 0, 2);
	(void)deflateEnd(&stream);
	memcpy(zip + directory, back.bytes, back.size);
	for (uint64_t seed = 0; seed < 60; seed++) {
		const struct sample_task task = {.bytes = zip,
			.size = directory + back.size,
			.seed = seed,
			.sample = &making.sample,
			.labels = (uint8_t *)&making.label,
			.sizes = &making.sizes,
			.out = (uint8_t *)making.out};
		if (making.maker.make(making.maker.worker, &task, &making.err))
			fail_msg("%s", making.err.text);
		const int first = (int)making.out[0];
		for (int i = 0; i < CROP_D * CROP_H * CROP_W; i++)
			assert_int_equal(
				making.out[i], first + i / (CROP_H * CROP_W) * EDGE * EDGE +
						       i / CROP_W % CROP_H * EDGE + i % CROP_W);
	}
	free(plain);
	free(zip);
	close_making(&making);
}

/* ---- what lies ----------------------------------------------------------------------------- */

static void refused(struct making *making, const struct file *file, const char *why)
{
	const int code = make(making, file, 1);
	if (code != -EINVAL || !strstr(making->err.text, why))
		fail_msg("%d '%s' instead of '%s'", code, making->err.text, why);
}

/* The header promises so many bytes, and there are others. */
static void refused_sum(
	struct making *making, const struct file *file, size_t promised, size_t there)
{
	char why[96];
	(void)snprintf(why, sizeof why, "npy: its header stands for %zu bytes, and there are %zu",
		promised, there);
	refused(making, file, why);
}

static void headers_that_lie_are_refused(void **state)
{
	static const struct {
		const char *dictionary, *why;
	} headers[] = {
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999, 9), }",
			"more than 16 GiB"},
		{"{'descr': '<f8', 'fortran_order': False, 'shape': (16777216, 1024, 1), }",
			"more than 16 GiB"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616, 1, 1), }",
			"no tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4, 5), }", "no tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': ((3, 4), 5), }", "no tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4 5), }", "no tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': [3, 4, 5], }", "no tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5", "no tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4, 5), }", "empty array"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 3, 20), }",
			"more than 8 dimensions"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (60,), }", "1 dimensions"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (60, 1, 1), }",
			"smaller than volume.crop"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 4, 5), 'shape': (1), }",
			"twice"},
		{"{'descr': '<f4', 'fortran_order': False, }", "no 'shape'"},
		{"{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 4, 5), }", "neither True nor"},
		{"{'descr': '<c8', 'fortran_order': False, 'shape': (3, 4, 5), }", "'<c8'"},
		{"{'descr': '|O', 'fortran_order': False, 'shape': (3, 4, 5), }", "'|O'"},
		{"{'descr': '<f16', 'fortran_order': False, 'shape': (3, 4, 5), }", "'<f16'"},
		{"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3, 4, 5), }",
			"structures"},
		{"{'descr': __import__('os').system('id'), 'shape': (3, 4, 5), }", "no string"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5), 'more': 1, }",
			"'more'"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5), } + 1",
			"more behind"},
		{"{'de\\x73cr': '<f4'}", "no dictionary"},
		{"", "no dictionary"},
	};
	struct making making;
	struct file file;
	(void)state;
	open_making(&making, "volume.crop=2x3x4", "volume.flip=0", "volume.channels=1");
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		file.size = 0;
		put_header(&file, 1, headers[i].dictionary);
		for (unsigned k = 0; k < D * H * W; k++)
			put_element(&file, "<f4", k);
		refused(&making, &file, headers[i].why);
	}
	/* More elements than there are, and fewer. */
	for (unsigned promised = 1; promised <= 72; promised += 71) {
		char text[80];
		(void)snprintf(text, sizeof text,
			"{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }",
			promised == 1 ? "" : "3, 4, 6");
		file.size = 0;
		put_header(&file, 1, text);
		const size_t header = file.size;
		for (unsigned k = 0; k < D * H * W; k++)
			put_element(&file, "<f4", k);
		refused_sum(&making, &file, header + 4 * promised, file.size);
	}
	make_array(&file, 4, "<f4", false, 1);
	refused(&making, &file, "version 4");
	make_array(&file, 1, "<f4", false, 2);
	refused(&making, &file, "it has 2 channels, and volume.channels is 1");
	make_array(&file, 2, "<f4", false, 1);
	file.bytes[10] = 0xff; /* of the header's length: 16 MiB and more */
	refused(&making, &file, "and 10000 are allowed");
	make_array(&file, 1, "<f4", false, 1);
	for (size_t size = 0; size < file.size; size++) {
		struct file cut = file;
		cut.size = size;
		refused(&making, &cut, "");
	}
	close_making(&making);
}

static int make_flipped(struct making *making, const struct file *file, size_t at)
{
	struct file other = *file;
	other.bytes[at] ^= 0x80;
	return make(making, &other, 1);
}

static void zips_that_lie_are_refused(void **state)
{
	static const struct {
		struct lie lie;
		bool deflated;
		const char *why;
	} zips[] = {
		{{.flags = 1}, false, "encrypted"}, {{.method = 12}, false, "method 12"},
		{{.claim = 4000000000U}, true,
			"claims 4000000000 bytes"}, /* a bomb of more than 1032 : 1 */
		{{.claim = 300}, false, "claims 300 bytes"},
		{{.claim = 100000}, true, "of 100000 bytes"},
		{{.claim = 100000, .zip64 = true}, true, "of 100000 bytes"},
		{{.name = "readme.txt"}, false, "no .npy"},
		{{.method = 8}, false, "ends after"}, /* what its first bytes say as deflate */
	};
	struct making making;
	struct file array;
	struct file zip;
	(void)state;
	open_making(&making, "volume.crop=2x3x4", "volume.flip=0", "volume.channels=1");
	make_array(&array, 1, "<f4", false, 1);
	for (size_t i = 0; i < sizeof zips / sizeof *zips; i++) {
		make_zip(&zip, &array, zips[i].deflated, &zips[i].lie);
		refused(&making, &zip, zips[i].why);
	}
	const struct lie honest = {0};
	for (int deflated = 0; deflated < 2; deflated++) {
		make_zip(&zip, &array, deflated, &honest);
		for (size_t size = 0; size < zip.size; size++) {
			struct file cut = zip;
			cut.size = size;
			refused(&making, &cut, "");
		}
		/* Whatever a byte of it becomes: a sample or a reason; of the array itself, always a reason. */
		size_t data = 30 + strlen("data.npy");
		while (data < zip.size && make_flipped(&making, &zip, data) == -EINVAL)
			data++;
		assert_true(data >= 30 + strlen("data.npy") + (deflated ? 60 : array.size));
		for (size_t at = 0; at < zip.size; at++) {
			const int code = make_flipped(&making, &zip, at);
			assert_true(code == 0 || (code == -EINVAL && making.err.text[0]));
		}
		struct file other = zip;
		other.bytes[deflated ? 60 : 30 + 8 + 140] ^= 1; /* behind the box */
		refused(&making, &other, deflated ? "npz: " : "CRC-32");
	}
	/* The array ends before it should. */
	struct file torn = array;
	torn.size -= 8;
	const struct lie claim = {.claim = (uint32_t)array.size};
	make_zip(&zip, &torn, true, &claim);
	refused(&making, &zip, "ends after");
	make_zip(&zip, &array, true, &honest);
	zip.bytes[30 + 8] |= 6; /* a block of the type that deflate does not have */
	refused(&making, &zip, "cannot be unpacked");
	/* There is more than it says. */
	const struct lie less = {.claim = (uint32_t)array.size - 8};
	make_zip(&zip, &array, true, &less);
	refused_sum(&making, &zip, array.size, array.size - 8);
	close_making(&making);
}

static void settings_that_cannot_be_are_refused(void **state)
{
	static const char *const bad[] = {"volume.crop=64", "volume.crop=64x64",
		"volume.crop=64x64x64x64", "volume.crop=0x64x64", "volume.crop=64x64x5000",
		"volume.crop= 64 x 64 x 64", "volume.crop=ax64x64", "volume.crop=4096x4096x4096",
		"volume.crop=-1x64x64"};
	struct config config;
	struct error err;
	(void)state;
	config_init(&config);
	fixture_set(&config, "sample.kind=volume");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		fixture_set(&config, bad[i]);
		assert_int_equal(sample_validate(&config, &err), -EINVAL);
		assert_non_null(strstr(err.text, "volume.crop"));
	}
	fixture_set(&config, "sample.kind=image");
	assert_int_equal(sample_validate(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'volume.crop' is about sample.kind = volume"));
	config_release(&config);
}

/* ---- what gen makes ------------------------------------------------------------------------- */

static void generated_volumes_are_found_and_the_same_for_any_threads(void **state)
{
	static const char *const formats[] = {"npy", "npz", "npz-deflated"};
	uint64_t first = 0;
	(void)state;
	for (size_t format = 0; format < 3; format++)
		for (unsigned threads = 1; threads <= 3; threads += 2) {
			char name[32];
			char key[64];
			struct config config;
			struct dataset dataset;
			struct dataset_generated made;
			struct error err = {""};
			(void)snprintf(name, sizeof name, "set-%s-%u", formats[format], threads);
			(void)snprintf(
				key, sizeof key, "dataset.volume_format=%s", formats[format]);
			fixture_config(&config, name, "dataset.recipe=volume", "sample.kind=volume",
				"dataset.samples=6", "dataset.classes=2", "dataset.depth=12",
				"dataset.height=20", "dataset.width=18", "volume.crop=4x4x4", key,
				NULL);
			const struct dataset_control control = {.threads = threads};
			if (dataset_generate(&config, &control, &made, &err) ||
				dataset_open(&config, NULL, &dataset, &err))
				fail_msg("%s", err.text);
			assert_int_equal(made.made, 6);
			assert_int_equal(dataset.count, 6);
			assert_int_equal(dataset.class_count, 2);
			uint64_t all = 0;
			for (size_t i = 0; i < dataset.count; i++)
				all = all * 31 + dataset.samples[i].checksum;
			if (threads == 1)
				first = all;
			assert_true(all == first);
			struct dataset_verified verified;
			assert_int_equal(dataset_verify(&config, NULL, &verified, &err), 0);
			assert_int_equal(verified.good, 6);
			dataset_close(&dataset);
			/* The same folder as a user's own: every file is taken. */
			fixture_set(&config, "dataset.recipe=none");
			fixture_set(&config, "dataset.samples=0");
			if (dataset_open(&config, NULL, &dataset, &err))
				fail_msg("%s", err.text);
			assert_int_equal(dataset.count, 6);
			assert_int_equal(dataset.bad_count, 0);
			dataset_close(&dataset);
			fixture_set(&config, "sample.kind=image");
			fixture_set(&config, "dataset.recipe=volume");
			fixture_set(&config, "dataset.samples=6");
			assert_int_equal(dataset_open(&config, NULL, &dataset, &err), -EINVAL);
			assert_non_null(strstr(err.text, "sample.kind = image reads"));
			config_release(&config);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_and_order_is_read),
		cmocka_unit_test(boxes_are_anywhere_and_of_the_seed),
		cmocka_unit_test(a_long_deflated_array_is_unpacked_through_its_window),
		cmocka_unit_test(headers_that_lie_are_refused),
		cmocka_unit_test(zips_that_lie_are_refused),
		cmocka_unit_test(settings_that_cannot_be_are_refused),
		cmocka_unit_test(generated_volumes_are_found_and_the_same_for_any_threads),
	};
	return cmocka_run_group_tests_name("volume", tests, fixture_setup, fixture_teardown);
}
