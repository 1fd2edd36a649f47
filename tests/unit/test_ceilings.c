/* The data sheet as plain data: questions to it, JSON and back, the key of a node, when it is stale, and
 * the file it is kept in. */
#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "harness/measure/node_probes.h"
#include "harness/record/ceilings.h"
#include "harness/record/record.h"
#include "harness/report/ceilings_cache.h"
#include "harness/report/ceilings_sheet.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILE_LIMIT = 1 << 22, SHEET_COLUMNS = 100 };

static const double NOW = 1900000000;
static const double DAY_S = 86400;

static void assert_near(double is, double want, double tolerance)
{
	if (!(fabs(is - want) <= tolerance))
		fail_msg("%.17g is not %.17g", is, want);
}

static char root[] = "/tmp/mlbench-ceilings-XXXXXX";

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) && setenv("XDG_CACHE_HOME", root, 1) == 0 ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return files_remove_tree(root, NULL);
}

static struct ceiling_range range(struct rng *rng)
{
	const double low = 1 + rng_uniform(rng);
	return (struct ceiling_range){low, low + rng_uniform(rng), 5};
}

static void fill_reads(struct ceilings *c, struct rng *rng)
{
	static const double sizes[] = {4096, 131072, 98304};
	for (unsigned state = 0; state < 3; state++)
		for (unsigned size = 0; size < 3; size++)
			for (unsigned depth = 1; depth <= 64; depth *= 2)
				c->reads[c->read_count++] =
					(struct read_ceiling){.direct = state == 0,
						.cold = state < 2,
						.depth = depth,
						.request_bytes = sizes[size],
						.bytes_per_s = 1e9 * rng_uniform(rng),
						.requests_per_s = 1e4 * rng_uniform(rng),
						.latency_ns = 1e6 * rng_uniform(rng),
						.range = range(rng)};
}

static void fill_device(struct ceilings *c, struct rng *rng)
{
	struct device_ceiling *device = &c->device;
	c->has_device = true;
	*device = (struct device_ceiling){.index = 1,
		.count = 8,
		.memory_bytes = 140e9,
		.cache_bytes = 50e6,
		.seconds = 11.5,
		.memory_bytes_per_s = 4.1e12,
		.launch_ns = 2100,
		.kernel_ns = 1300,
		.graph_kernel_ns = 900,
		.round_trip_ns = 7100,
		.memory_range = range(rng),
		.launch_range = range(rng),
		.kernel_range = range(rng),
		.graph_kernel_range = range(rng),
		.round_trip_range = range(rng)};
	(void)snprintf(device->name, sizeof device->name, "A GPU");
	(void)snprintf(device->capability, sizeof device->capability, "9.0");
	(void)snprintf(device->versions, sizeof device->versions, "driver 13.0");
	for (unsigned i = 0; i < 9 * 4; i++)
		device->copies[device->copy_count++] = (struct copy_ceiling){.to_device = i % 2,
			.pinned = i / 2 % 2,
			.bytes = (double)(4096U << (2 * (i / 4))),
			.bytes_per_s = 1e9 * (i + 1),
			.range = {.low = 1e9 * i, .high = 2e9 * (i + 1), .repeats = 5}};
	for (unsigned i = 0; i < CEILING_GEMMS_MAX; i++) {
		struct device_gemm_ceiling *gemm = &device->gemms[device->gemm_count++];
		*gemm = (struct device_gemm_ceiling){.m = 8192 + i,
			.n = 8192,
			.k = 4096,
			.flops = 1e14 + i,
			.is_best = i < 4,
			.range = range(rng),
			.efficiency = 0.25};
		(void)snprintf(
			gemm->precision, sizeof gemm->precision, "%s", i % 2 ? "bf16" : "fp32");
		(void)snprintf(gemm->name, sizeof gemm->name, "layer%u", i);
	}
}

/* Something in every member, and the arrays full. */
static struct ceilings *full(void)
{
	struct ceilings *c = malloc(sizeof *c);
	struct rng rng;
	assert_non_null(c);
	rng_init(&rng, 7, 0);
	ceilings_init(c);
	fill_reads(c, &rng);
	for (unsigned i = 0; i < CEILING_CORES_MAX; i++)
		c->decode[c->decode_count++] = (struct core_ceiling){
			.cores = 1U << i, .samples_per_s = 1000.0 * i + 1, .range = range(&rng)};
	for (unsigned i = 0; i < CEILING_GEMMS_MAX; i++) {
		struct gemm_ceiling *gemm = &c->gemms[c->gemm_count++];
		*gemm = (struct gemm_ceiling){.m = 5000000000LL + i,
			.n = 64,
			.k = i,
			.threads = 1 + i % 2,
			.flops = 1e11 + i,
			.is_best = i < 2,
			.range = range(&rng),
			.efficiency = 0.5,
			.share = i < 2 ? (double)NAN : 0.125};
		(void)snprintf(gemm->name, sizeof gemm->name, "layer%u", i);
	}
	double *const numbers[] = {&c->decode_one_core, &c->decode_all_cores, &c->cpu_scaling,
		&c->memory_bytes_per_s_one, &c->memory_bytes_per_s_all, &c->copy_bytes_per_s,
		&c->lock_handoff_ns, &c->clock_read_ns, &c->cpu_clock_read_ns, &c->seconds,
		&c->scratch_bytes, &c->file_bytes, &c->memory_array_bytes, &c->cache_bytes,
		&c->oversleep_p99_ns};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		*numbers[i] = 1e6 * (1 + rng_uniform(&rng));
	c->file_bytes = 98304;
	c->seconds = 26;
	struct ceiling_range *const ranges[] = {&c->memory_range_one, &c->memory_range_all,
		&c->copy_range, &c->lock_range, &c->clock_range, &c->cpu_clock_range};
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		*ranges[i] = range(&rng);
	fill_device(c, &rng);
	c->measured_at = NOW - 3 * 3600;
	c->cores = 2;
	c->batch = 64;
	c->quick = true;
	(void)snprintf(c->storage, sizeof c->storage, "ext4 on /dev/vda");
	(void)snprintf(c->host, sizeof c->host, "node-17");
	(void)snprintf(c->cpu, sizeof c->cpu, "A \"CPU\"");
	(void)snprintf(c->kernel, sizeof c->kernel, "6.1.0");
	(void)snprintf(c->engine, sizeof c->engine, "io_uring");
	(void)snprintf(c->model, sizeof c->model, "resnet50");
	(void)snprintf(c->decode_what, sizeof c->decode_what, "12 pictures");
	(void)snprintf(c->node, sizeof c->node, "0123456789abcdef-fedcba9876543210");
	ceilings_lack(c, "oversleep: %s", "no time");
	ceilings_note(c, "reads: by %s", "threads");
	return c;
}

static char *dump(const struct ceilings *c)
{
	json_t *object = ceilings_to_json(c, NOW);
	assert_non_null(object);
	char *text = json_dumps(object, JSON_REAL_PRECISION(17) | JSON_SORT_KEYS);
	json_decref(object);
	assert_non_null(text);
	return text;
}

/* --- questions ------------------------------------------------------------------------------- */

static void add_read(
	struct ceilings *c, bool direct, bool cold, unsigned depth, double request, double rate)
{
	c->reads[c->read_count++] = (struct read_ceiling){.direct = direct,
		.cold = cold,
		.depth = depth,
		.request_bytes = request,
		.bytes_per_s = rate};
}

static void the_best_read(void **state)
{
	(void)state;
	struct ceilings *c = malloc(sizeof *c);
	assert_non_null(c);
	ceilings_init(c);
	assert_true(isnan(ceilings_read_bytes_per_s(c, 1e5, 0, true)));
	add_read(c, true, true, 1, 4096, 1e7);
	add_read(c, true, true, 16, 4096, 4e7);
	add_read(c, true, true, 1, 131072, 1e8);
	add_read(c, true, true, 16, 131072, 9e8);
	add_read(c, false, true, 1, 131072, 2e8);
	add_read(c, false, true, 16, 131072, 7e8);
	add_read(c, false, false, 1, 131072, 2e10);
	add_read(c, false, false, 64, 131072, NAN);
	/* the better of direct and buffered, at any depth or up to one */
	assert_near(ceilings_read_bytes_per_s(c, 1e5, 0, true), 9e8, 0);
	assert_near(ceilings_read_bytes_per_s(c, 1e5, 15, true), 2e8, 0);
	assert_near(ceilings_read_bytes_per_s(c, 1e5, 16, true), 9e8, 0);
	/* warm is buffered only, and NAN is not measured */
	assert_near(ceilings_read_bytes_per_s(c, 1e5, 0, false), 2e10, 0);
	/* the size nearest by ratio: 4096 x 5.66 = 131072 / 5.66 */
	assert_near(ceilings_read_bytes_per_s(c, 8192, 0, true), 4e7, 0);
	assert_true(isnan(ceilings_read_bytes_per_s(c, 23000, 0, true)));
	assert_true(isnan(ceilings_read_bytes_per_s(c, 512, 0, true)));
	/* larger requests: as fast at any depth, unknown at a given one */
	assert_near(ceilings_read_bytes_per_s(c, 1e8, 0, true), 9e8, 0);
	assert_true(isnan(ceilings_read_bytes_per_s(c, 1e8, 1, true)));
	assert_true(isnan(ceilings_read_bytes_per_s(c, 0, 0, true)));
	assert_true(isnan(ceilings_read_bytes_per_s(c, NAN, 0, true)));
	free(c);
}

static void the_best_product(void **state)
{
	(void)state;
	struct ceilings *c = full();
	assert_near(ceilings_best_flops(c, 1), 1e11, 0);
	assert_near(ceilings_best_flops(c, 2), 1e11 + 1, 0);
	assert_true(isnan(ceilings_best_flops(c, 3)));
	free(c);
}

static void what_the_device_gives(void **state)
{
	(void)state;
	struct ceilings *c = full();
	assert_near(ceilings_device_flops(c, "fp32"), 1e14 + 2, 0);
	assert_near(ceilings_device_flops(c, "bf16"), 1e14 + 3, 0);
	assert_true(isnan(ceilings_device_flops(c, "fp8")));
	c->has_device = false;
	assert_true(isnan(ceilings_device_flops(c, "fp32")));
	free(c);
}

static void lines_have_bounds(void **state)
{
	(void)state;
	struct ceilings *c = full();
	for (int i = 0; i < 3 * NOTES_MAX; i++) {
		ceilings_lack(c, "%0400d", i);
		ceilings_note(c, "%0400d", i);
	}
	assert_int_equal(c->missing_count, NOTES_MAX);
	assert_int_equal(c->note_count, NOTES_MAX);
	assert_int_equal(strlen(c->notes[NOTES_MAX - 1]), NOTE_BYTES - 1);
	free(c);
}

static void ages(void **state)
{
	(void)state;
	static const struct {
		double age;
		const char *text;
	} cases[] = {{0, "probed less than a minute ago"}, {59, "probed less than a minute ago"},
		{60, "probed 1 min ago"}, {3599, "probed 59 min ago"}, {10800, "probed 3 h ago"},
		{47 * 3600.0, "probed 47 h ago"}, {48 * 3600.0, "probed 2 days ago"},
		{-3600, "probed in the future, by this clock"},
		{-30, "probed less than a minute ago"}, {NAN, "probed at an unknown time"}};
	struct ceilings *c = full();
	char text[64];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		c->measured_at = NOW - cases[i].age;
		assert_string_equal(ceilings_age(c, NOW, "ago", text, sizeof text), cases[i].text);
	}
	c->measured_at = NOW - 7200;
	assert_string_equal(ceilings_age(c, NOW, "before", text, sizeof text), "probed 2 h before");
	free(c);
}

static void staleness(void **state)
{
	(void)state;
	struct ceilings *c = full();
	char why[128];
	assert_false(ceilings_stale(c, NOW, 2, "6.1.0", "", why, sizeof why));
	assert_string_equal(why, "");
	assert_true(ceilings_stale(c, NOW, 4, "6.1.0", "", why, sizeof why));
	assert_non_null(strstr(why, "2 cores, now there are 4"));
	assert_true(ceilings_stale(c, NOW, 2, "6.2.0", "", why, sizeof why));
	assert_non_null(strstr(why, "6.1.0, this is 6.2.0"));
	assert_true(ceilings_stale(c, NOW, 2, "6.1.0", "A GPU, driver 1", why, sizeof why));
	assert_string_equal(why, "probed with no GPU, now there is A GPU, driver 1");
	(void)snprintf(c->gpu, sizeof c->gpu, "A GPU, driver 1");
	assert_false(ceilings_stale(c, NOW, 2, "6.1.0", "A GPU, driver 1", why, sizeof why));
	assert_true(ceilings_stale(c, NOW, 2, "6.1.0", "A GPU, driver 2", why, sizeof why));
	c->gpu[0] = '\0';
	c->measured_at = NOW - 29.9 * DAY_S;
	assert_false(ceilings_stale(c, NOW, 2, "6.1.0", "", why, sizeof why));
	c->measured_at = NOW - 31 * DAY_S;
	assert_true(ceilings_stale(c, NOW, 2, "6.1.0", "", why, sizeof why));
	assert_non_null(strstr(why, "31 days"));
	c->measured_at = NOW + DAY_S;
	assert_true(ceilings_stale(c, NOW, 2, "6.1.0", "", why, sizeof why));
	free(c);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void round_trip(void **state)
{
	(void)state;
	struct ceilings *c = full();
	struct ceilings *back = malloc(sizeof *back);
	struct error err = {0};
	assert_non_null(back);
	char *first = dump(c);
	json_t *object = json_loads(first, 0, NULL);
	assert_int_equal(ceilings_from_json(back, object, &err), 0);
	json_decref(object);
	char *second = dump(back);
	assert_string_equal(first, second);
	/* not by way of the same tables */
	assert_int_equal(back->read_count, c->read_count);
	assert_int_equal(back->reads[62].depth, 64);
	assert_near(back->reads[62].range.high, c->reads[62].range.high, 1e-12);
	assert_true(back->gemms[31].m == 5000000031LL);
	assert_true(isnan(back->gemms[0].share));
	assert_true(isnan(back->oversleep_ns));
	assert_true(back->quick && !back->interrupted);
	assert_string_equal(back->missing[0], "oversleep: no time");
	assert_string_equal(back->notes[0], "reads: by threads");
	assert_near(back->lock_range.low, c->lock_range.low, 1e-12);
	assert_near(back->cpu_clock_range.high, c->cpu_clock_range.high, 1e-12);
	assert_near(back->decode[15].samples_per_s, 15001, 1e-9);
	assert_true(back->has_device);
	assert_int_equal(back->device.copy_count, 36);
	assert_true(back->device.copies[3].to_device && back->device.copies[3].pinned);
	assert_near(back->device.copies[35].bytes, 268435456, 0);
	assert_near(back->device.copies[35].range.high, 72e9, 1);
	assert_string_equal(back->device.gemms[1].precision, "bf16");
	assert_near(back->device.gemms[31].flops, 1e14 + 31, 1);
	assert_near(back->device.graph_kernel_ns, 900, 1e-9);
	assert_near(back->device.round_trip_range.low, c->device.round_trip_range.low, 1e-12);
	assert_int_equal(back->device.count, 8);
	free(first);
	free(second);
	free(back);
	free(c);
}

/* Data sheets of nodes without a device, and those from before there were any. */
static void without_a_device(void **state)
{
	(void)state;
	struct ceilings *c = full();
	struct error err = {0};
	c->has_device = false;
	for (int absent = 0; absent < 2; absent++) {
		json_t *object = ceilings_to_json(c, NOW);
		assert_true(json_is_null(json_object_get(object, "device")));
		if (absent)
			assert_int_equal(json_object_del(object, "device"), 0);
		assert_int_equal(ceilings_from_json(c, object, &err), 0);
		assert_false(c->has_device);
		assert_true(isnan(c->device.launch_ns));
		json_decref(object);
	}
	free(c);
}

/* Changes a document by a python-like path and expects it to be refused. */
static void refuse(const char *member, json_t *value, const char *why)
{
	struct ceilings *c = full();
	struct error err = {0};
	json_t *object = ceilings_to_json(c, NOW);
	assert_int_equal(json_object_set_new(object, member, value), 0);
	assert_int_equal(ceilings_from_json(c, object, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
	json_decref(object);
	free(c);
}

static json_t *long_list(size_t count, json_t *entry)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		assert_int_equal(json_array_append(array, entry), 0);
	json_decref(entry);
	return array;
}

static void bad_documents(void **state)
{
	(void)state;
	refuse("schema", json_string("mlbench.ceilings/2"), "mlbench.ceilings/2");
	refuse("schema", json_null(), "(none)");
	refuse("cores", json_string("two"), "cores");
	refuse("cores", json_integer(-1), "cores");
	refuse("decode_one_core", json_string("fast"), "decode_one_core");
	refuse("reads", json_integer(3), "reads");
	refuse("reads", long_list(CEILING_READS_MAX + 1, json_object()), "at most 64");
	refuse("gemms", long_list(CEILING_GEMMS_MAX + 1, json_object()), "at most 32");
	refuse("decode", long_list(1, json_pack("{s:s}", "cores", "all")), "decode");
	refuse("notes", long_list(NOTES_MAX + 1, json_string("n")), "at most");
	refuse("missing", json_true(), "list");
	refuse("device", json_string("none"), "device");
	refuse("device", json_pack("{s:s}", "launch_ns", "short"), "launch_ns");
	refuse("device", json_pack("{s:[],s:i}", "copies", "gemms", 3), "gemms");
	refuse("device",
		json_pack("{s:o,s:[]}", "copies", long_list(CEILING_COPIES_MAX + 1, json_object()),
			"gemms"),
		"at most 64");
	struct ceilings *c = full();
	assert_int_equal(ceilings_from_json(c, NULL, NULL), -EINVAL);
	assert_int_equal(c->read_count, 0);
	free(c);
}

/* --- the node -------------------------------------------------------------------------------- */

static struct node_identity some_node(void)
{
	struct node_identity node = {.cores = 2};
	(void)snprintf(node.machine, sizeof node.machine, "abc");
	(void)snprintf(node.cpu, sizeof node.cpu, "cpu");
	(void)snprintf(node.kernel, sizeof node.kernel, "6.1.0");
	(void)snprintf(node.storage, sizeof node.storage, "ext4 on /dev/vda");
	return node;
}

static void keys(void **state)
{
	(void)state;
	char key[CEILINGS_NODE_BYTES];
	char other[CEILINGS_NODE_BYTES];
	struct node_identity node = some_node();
	node_key(&node, key);
	assert_int_equal(strlen(key), 2 * NODE_HARDWARE_DIGITS + 1);
	node_key(&node, other);
	assert_string_equal(key, other);
	/* state: the first part stays, the second changes */
	node.cores = 3;
	node_key(&node, other);
	assert_memory_equal(key, other, NODE_HARDWARE_DIGITS + 1);
	assert_string_not_equal(key, other);
	node = some_node();
	node.kernel[0] = '5';
	node_key(&node, other);
	assert_memory_equal(key, other, NODE_HARDWARE_DIGITS + 1);
	assert_string_not_equal(key, other);
	node = some_node();
	(void)snprintf(node.gpu, sizeof node.gpu, "A GPU, driver 1");
	node_key(&node, other);
	assert_memory_equal(key, other, NODE_HARDWARE_DIGITS + 1);
	assert_string_not_equal(key, other);
	/* hardware: the other way round */
	char *const parts[] = {node.machine, node.cpu, node.storage};
	for (size_t i = 0; i < 3; i++) {
		const char kept = parts[i][0];
		node = some_node();
		parts[i][0] = '#';
		node_key(&node, other);
		assert_memory_not_equal(key, other, NODE_HARDWARE_DIGITS);
		assert_string_equal(key + NODE_HARDWARE_DIGITS, other + NODE_HARDWARE_DIGITS);
		parts[i][0] = kept;
	}
	/* what is moved from one part to the next is another node */
	node = some_node();
	(void)snprintf(node.machine, sizeof node.machine, "ab");
	(void)snprintf(node.cpu, sizeof node.cpu, "ccpu");
	node_key(&node, other);
	assert_string_not_equal(key, other);
}

static void this_node(void **state)
{
	(void)state;
	struct node_identity node;
	struct node_identity below;
	struct error err;
	assert_int_equal(node_identify("/", &node, &err), 0);
	assert_true(node.cores >= 1);
	assert_true(node.kernel[0] && node.cpu[0] && node.machine[0] && node.storage[0]);
	/* what is not there yet lies where its nearest parent does */
	assert_int_equal(node_identify("/proc/self/none/at/all", &below, &err), 0);
	assert_non_null(strstr(below.storage, "proc"));
}

/* A plug-in asked for by name is part of the state: the end of its path tells two of them apart. */
static void plugins_differ(void **state)
{
	(void)state;
	char before[CEILINGS_NAME_BYTES];
	char one[CEILINGS_NAME_BYTES];
	char other[CEILINGS_NAME_BYTES];
	char path[4 * CEILINGS_NAME_BYTES];
	assert_int_equal(unsetenv("MLBENCH_CUDA_PLUGIN"), 0);
	node_gpus(before);
	(void)snprintf(path, sizeof path, "/%0*d/one.so", 3 * CEILINGS_NAME_BYTES, 0);
	assert_int_equal(setenv("MLBENCH_CUDA_PLUGIN", path, 1), 0);
	node_gpus(one);
	assert_int_equal(setenv("MLBENCH_CUDA_PLUGIN", "two.so", 1), 0);
	node_gpus(other);
	assert_int_equal(unsetenv("MLBENCH_CUDA_PLUGIN"), 0);
	assert_non_null(strstr(one, "one.so"));
	assert_non_null(strstr(other, "plug-in two.so"));
	assert_string_not_equal(one, other);
	assert_memory_equal(before, other, strlen(before));
}

/* --- the cache ------------------------------------------------------------------------------- */

static char *cache_file(const char *key)
{
	char name[2 * CEILINGS_NODE_BYTES];
	(void)snprintf(name, sizeof name, "mlbench/ceilings-%s.json", key);
	char *path = files_join(root, name);
	assert_non_null(path);
	return path;
}

static void write_file(const char *path, const char *text, size_t size)
{
	struct error err;
	assert_int_equal(files_write_atomic(path, text, size, &err), 0);
}

static void empty_cache(void)
{
	char *path = files_join(root, "mlbench");
	(void)files_remove_tree(path, NULL);
	free(path);
}

static void kept_and_found(void **state)
{
	(void)state;
	struct ceilings *c = full();
	struct ceilings *back = malloc(sizeof *back);
	struct error err;
	struct node_identity node = some_node();
	assert_non_null(back);
	empty_cache();
	assert_int_equal(ceilings_load_node(&node, back, &err), -ENOENT);
	assert_non_null(strstr(err.text, "not been probed"));
	node_describe(&node, c);
	assert_int_equal(ceilings_save(c, &err), 0);
	assert_int_equal(ceilings_load_node(&node, back, &err), 0);
	assert_string_equal(back->node, c->node);
	assert_int_equal(back->read_count, 63);
	assert_near(back->measured_at, c->measured_at, 1e-3);
	/* other storage has none */
	(void)snprintf(node.storage, sizeof node.storage, "nfs4 on server:/data");
	assert_int_equal(ceilings_load_node(&node, back, &err), -ENOENT);
	free(back);
	free(c);
}

/* After an update of the kernel there is an older data sheet of the same hardware: it is taken, the
 * newest first, and is stale. */
static void another_state_of_the_node(void **state)
{
	(void)state;
	struct ceilings *c = full();
	struct error err;
	char why[128];
	struct node_identity node = some_node();
	empty_cache();
	node_describe(&node, c);
	assert_int_equal(ceilings_save(c, &err), 0);
	(void)snprintf(node.kernel, sizeof node.kernel, "6.1.1");
	node_describe(&node, c);
	c->measured_at += 60;
	assert_int_equal(ceilings_save(c, &err), 0);
	(void)snprintf(node.kernel, sizeof node.kernel, "6.9.0");
	assert_int_equal(ceilings_load_node(&node, c, &err), 0);
	assert_string_equal(c->kernel, "6.1.1");
	assert_true(ceilings_stale(c, NOW, 2, "6.9.0", "", why, sizeof why));
	free(c);
}

static void torn_and_foreign_files(void **state)
{
	(void)state;
	struct ceilings *c = full();
	struct error err;
	struct node_identity node = some_node();
	char *text = NULL;
	size_t size = 0;
	empty_cache();
	node_describe(&node, c);
	assert_int_equal(ceilings_save(c, &err), 0);
	char *path = cache_file(c->node);
	assert_int_equal(files_read(path, FILE_LIMIT, &text, &size, &err), 0);
	for (size_t cut = 0; cut < size - 2;
		cut += size / 7) { /* the last two are "}" and a newline */
		write_file(path, text, cut);
		assert_int_equal(ceilings_load_node(&node, c, &err), -ENOENT);
	}
	/* whole, but of another node */
	write_file(path, text, size);
	struct node_identity other = some_node();
	(void)snprintf(other.machine, sizeof other.machine, "another");
	node_describe(&other, c);
	char *moved = cache_file(c->node);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(ceilings_load_node(&other, c, &err), -ENOENT);
	write_file(moved, "[]", 2);
	assert_int_equal(ceilings_load_node(&other, c, &err), -ENOENT);
	free(moved);
	free(path);
	free(text);
	free(c);
}

static void no_place_to_keep(void **state)
{
	(void)state;
	struct ceilings *c = full();
	struct error err;
	struct node_identity node = some_node();
	node_describe(&node, c);
	assert_int_equal(setenv("XDG_CACHE_HOME", "/proc/none", 1), 0);
	assert_true(ceilings_save(c, &err) < 0);
	assert_true(err.text[0] != '\0');
	assert_int_equal(ceilings_load_node(&node, c, &err), -ENOENT);
	/* without either variable there is none */
	char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
	assert_int_equal(unsetenv("XDG_CACHE_HOME") | unsetenv("HOME"), 0);
	assert_int_equal(ceilings_save(c, &err), -ENOENT);
	assert_int_equal(ceilings_load_node(&node, c, &err), -ENOENT);
	if (home)
		assert_int_equal(setenv("HOME", home, 1), 0);
	assert_int_equal(setenv("XDG_CACHE_HOME", root, 1), 0);
	free(home);
	free(c);
}

/* --- in a result, and on paper ---------------------------------------------------------------- */

static void a_record_keeps_a_copy(void **state)
{
	(void)state;
	struct error err = {0};
	struct ceilings *c = full();
	struct record *record = calloc(1, sizeof *record);
	struct record *back = calloc(1, sizeof *back);
	assert_true(record && back);
	record->folder = files_join(root, "run");
	record->started = NOW;
	record->ceilings = *c;
	record->has_ceilings = true;
	config_init(&record->config);
	assert_int_equal(config_grid_open(&record->config, &record->grid, &err), 0);
	assert_int_equal(record_create(record, &err), 0);
	assert_int_equal(record_open(back, record->folder, &err), 0);
	assert_true(back->has_ceilings);
	assert_int_equal(back->ceilings.read_count, 63);
	assert_near(back->ceilings.cpu_scaling, c->cpu_scaling, 1e-9 * c->cpu_scaling);
	assert_near(json_real_value(
			    json_object_get(json_object_get(back->header, "ceilings"), "age_s")),
		3 * 3600, 1);
	record_release(back);
	record_release(record);
	free(back);
	free(record);
	free(c);
}

static void the_sheet_fits(void **state)
{
	(void)state;
	const struct style style = {.width = SHEET_COLUMNS, .utf8 = true};
	struct ceilings *c = full();
	struct buffer text = {0};
	ceilings_sheet(c, NOW, &style, &text);
	assert_false(text.failed);
	static const char *const wanted[] = {"probed 3 h ago", "ext4 on /dev/vda", "4.00 KiB",
		"128 KiB", "96.0 KiB a request, the mean file", "cold, direct", "triad", "memcpy",
		"best square", "lock hand-off", "oversleep: no time", "reads: by threads",
		"node-17", "A GPU (device 1 of 8)", "to GPU", "from GPU", "pageable", "256 MiB",
		"launch", "2.10 us", "kernel in a graph", "round trip", "layer31", "100 TFLOP/s"};
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		if (!strstr(text.data, wanted[i]))
			fail_msg("no '%s' in:\n%s", wanted[i], text.data);
	assert_null(strchr(text.data, '\033'));
	for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n"))
		if (style_columns(line) > SHEET_COLUMNS)
			fail_msg("too wide: '%s'", line);
	buffer_release(&text);
	/* and of nothing measured, there is nothing but the head */
	ceilings_init(c);
	ceilings_sheet(c, NOW, &style, &text);
	assert_null(strstr(text.data, "nan"));
	assert_null(strstr(text.data, "triad"));
	buffer_release(&text);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_read),
		cmocka_unit_test(the_best_product),
		cmocka_unit_test(what_the_device_gives),
		cmocka_unit_test(lines_have_bounds),
		cmocka_unit_test(ages),
		cmocka_unit_test(staleness),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(without_a_device),
		cmocka_unit_test(bad_documents),
		cmocka_unit_test(keys),
		cmocka_unit_test(this_node),
		cmocka_unit_test(plugins_differ),
		cmocka_unit_test(kept_and_found),
		cmocka_unit_test(another_state_of_the_node),
		cmocka_unit_test(torn_and_foreign_files),
		cmocka_unit_test(no_place_to_keep),
		cmocka_unit_test(a_record_keeps_a_copy),
		cmocka_unit_test(the_sheet_fits),
	};
	return cmocka_run_group_tests(tests, make_root, remove_root);
}
