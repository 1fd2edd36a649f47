/* Samples of threads by the kernel's perf events, in small rings that are emptied now and then; and what they belong to. */
#include "harness/measure/job_sampler.h"

#include "harness/base/bounded.h"
#include "harness/base/text.h"
#include "harness/measure/code_map.h"
#include "harness/measure/proc_text.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#if defined(MLBENCH_WITH_libdw)
#include <elfutils/libdwfl.h>
#endif

enum {
	SAMPLED_THREADS_MAX = 192,
	SAMPLER_RING_PAGES = 8, /* a power of two */
	ADDRESSES_MAX = 1 << 15,
	SAMPLER_RATE_HZ = 97,  /* in step with nothing */
	SAMPLER_MAPS_MAX = 64, /* processes whose code is looked up */
	SAMPLER_SYMBOLS_MAX = 1 << 20,
	SAMPLER_STACK_MAX = 24,       /* return addresses, of processes with a perf map */
	STRING_FUNCTION_BYTES = 2048, /* what memcpy and the like take, at most */
#if defined(__x86_64__)
	SAMPLER_USER_IP = 8, /* PERF_REG_X86_IP */
#elif defined(__aarch64__)
	SAMPLER_USER_IP = 32, /* PERF_REG_ARM64_PC */
#endif
};

/* --- classes ------------------------------------------------------------------------------------ */

const char *job_class_name(enum job_class class)
{
	static const char *const names[JOB_CLASSES] = {"decoding", "resize", "copy",
		"serialisation", "python", "reading", "writing", "queue", "blas", "tensor", "libc",
		"kernel", "other"};
	return names[class];
}

const char *job_class_words(enum job_class class)
{
	static const char *const words[JOB_CLASSES] = {
		[JOB_CLASS_DECODE] = "image decoding",
		[JOB_CLASS_RESIZE] = "resize and transforms",
		[JOB_CLASS_COPY] = "collate and copies",
		[JOB_CLASS_SERIAL] = "serialisation",
		[JOB_CLASS_PYTHON] = "Python interpreter",
		[JOB_CLASS_READ] = "kernel read path",
		[JOB_CLASS_WRITE] = "kernel write path",
		[JOB_CLASS_QUEUE] = "queues and locks",
		[JOB_CLASS_BLAS] = "matrix products (BLAS)",
		[JOB_CLASS_TENSOR] = "tensor library",
		[JOB_CLASS_LIBC] = "C library, allocation",
		[JOB_CLASS_KERNEL] = "kernel, other",
		[JOB_CLASS_OTHER] = "other code",
	};
	return words[class];
}

/* The first whose file (its name begins so) and function (has it somewhere) fit. */
static const struct class_rule {
	const char *file, *function; /* NULL: any */
	enum job_class class;
} class_rules[] = {
	{"_imaging.", "Resample", JOB_CLASS_RESIZE},
	{"_imaging.", "Resize", JOB_CLASS_RESIZE},
	{"_imaging.", "Decode", JOB_CLASS_DECODE},
	{"_imaging.", "Unpack", JOB_CLASS_DECODE},
	{"_imaging.", "unpack", JOB_CLASS_DECODE},
	{"_imaging.", NULL, JOB_CLASS_RESIZE},
	{"libjpeg", NULL, JOB_CLASS_DECODE},
	{"libturbojpeg", NULL, JOB_CLASS_DECODE},
	{"libpng", NULL, JOB_CLASS_DECODE},
	{"libspng", NULL, JOB_CLASS_DECODE},
	{"libwebp", NULL, JOB_CLASS_DECODE},
	{"libtiff", NULL, JOB_CLASS_DECODE},
	{"libopenjp", NULL, JOB_CLASS_DECODE},
	{"libz.", NULL, JOB_CLASS_DECODE},
	{"libz-", NULL, JOB_CLASS_DECODE},
	{"libdeflate", NULL, JOB_CLASS_DECODE},
	{"libisal", NULL, JOB_CLASS_DECODE},
	{"libzstd", NULL, JOB_CLASS_DECODE},
	{"liblz4", NULL, JOB_CLASS_DECODE},
	{"libavcodec", NULL, JOB_CLASS_DECODE},
	{"libnvjpeg", NULL, JOB_CLASS_DECODE},
	{"libopencv_imgcodecs", NULL, JOB_CLASS_DECODE},
	{"libopencv_imgproc", NULL, JOB_CLASS_RESIZE},
	{"libswscale", NULL, JOB_CLASS_RESIZE},
	{"libopenblas", NULL, JOB_CLASS_BLAS},
	{"libmkl", NULL, JOB_CLASS_BLAS},
	{"libblas", NULL, JOB_CLASS_BLAS},
	{"libcblas", NULL, JOB_CLASS_BLAS},
	{"libatlas", NULL, JOB_CLASS_BLAS},
	{"libgomp", NULL, JOB_CLASS_QUEUE}, /* its threads spin at barriers */
	{"libiomp", NULL, JOB_CLASS_QUEUE},
	{"_pickle.", NULL, JOB_CLASS_SERIAL},
	{"_struct.", NULL, JOB_CLASS_SERIAL},
	{"_json.", NULL, JOB_CLASS_SERIAL},
	{"libprotobuf", NULL, JOB_CLASS_SERIAL},
	{"zlib.", NULL, JOB_CLASS_DECODE},
	{"_multiprocessing.", NULL, JOB_CLASS_QUEUE},
	{"libtorch", NULL, JOB_CLASS_TENSOR},
	{"libc10", NULL, JOB_CLASS_TENSOR},
	{"libtensorflow", NULL, JOB_CLASS_TENSOR},
	{"libdali", NULL, JOB_CLASS_RESIZE},
	{"libdnnl", NULL, JOB_CLASS_BLAS},
	{"_multiarray_umath.", "copy", JOB_CLASS_COPY},
	{"_multiarray_umath.", NULL, JOB_CLASS_TENSOR},
	{"python", NULL, JOB_CLASS_PYTHON},
	{"libpython", NULL, JOB_CLASS_PYTHON},
	/* This program's own pipeline. */
	{"mlbench", "unfilter", JOB_CLASS_DECODE},
	{"mlbench", "jpeg_", JOB_CLASS_DECODE},
	{"mlbench", "png_", JOB_CLASS_DECODE},
	{"mlbench", "decoder_", JOB_CLASS_DECODE},
	{"mlbench", "avx", JOB_CLASS_RESIZE},
	{"mlbench", "plain_", JOB_CLASS_RESIZE},
	{"mlbench", "resampl", JOB_CLASS_RESIZE},
	{"mlbench", "transform_", JOB_CLASS_RESIZE},
	{"mlbench", "filter_", JOB_CLASS_RESIZE},
	{"mlbench", "exchange_", JOB_CLASS_QUEUE},
	{"mlbench", "flow_", JOB_CLASS_QUEUE},
	{"libc.", "mem", JOB_CLASS_COPY},
	{"libc.", NULL, JOB_CLASS_LIBC},
	{"libc-", NULL, JOB_CLASS_LIBC},
	{"libjemalloc", NULL, JOB_CLASS_LIBC},
	{"libtcmalloc", NULL, JOB_CLASS_LIBC},
};

/* The C library's functions that call the kernel. */
static enum job_class class_of_call(const char *function)
{
	static const char reads[] =
		"read pread preadv readv open openat close stat fstat lstat fstatat "
		"statx lseek readdir getdents access readlink fopen fread fclose";
	static const char writes[] =
		"write pwrite writev pwritev fwrite fflush fsync fdatasync "
		"sync_file_range syncfs msync rename ftruncate fallocate posix_fallocate sendfile";
	static const char *const waits[] = {"poll", "ppoll", "select", "pselect", "epoll", "sem_",
		"pthread_", "futex", "recv", "send", "accept", "nanosleep", "clock_nanosleep",
		"sched_yield", "eventfd"};
	while (*function == '_')
		function++;
	if (strncmp(function, "libc_", 5) == 0)
		function += 5;
	char word[32];
	const size_t size = strlen(function);
	const bool large = size > 2 && strcmp(function + size - 2, "64") == 0;
	(void)snprintf(word, sizeof word, "%.*s", (int)(large ? size - 2 : size), function);
	if (word[0] && parse_has_word(reads, word))
		return JOB_CLASS_READ;
	if (word[0] && parse_has_word(writes, word))
		return JOB_CLASS_WRITE;
	for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
		if (strncmp(function, waits[i], strlen(waits[i])) == 0)
			return JOB_CLASS_QUEUE;
	return JOB_CLASS_KERNEL;
}

enum job_class job_class_of(const char *file, const char *function, bool kernel)
{
	const char *slash = strrchr(file, '/');
	const char *name = slash ? slash + 1 : file;
	if (kernel && strncmp(name, "libc.", 5) == 0) {
		const enum job_class called = class_of_call(function);
		if (called != JOB_CLASS_KERNEL)
			return called;
	}
	for (size_t i = 0; i < sizeof class_rules / sizeof class_rules[0]; i++) {
		const struct class_rule *rule = &class_rules[i];
		if (strncmp(name, rule->file, strlen(rule->file)) == 0 &&
			(!rule->function ||
				strstr(function,
					rule->function))) /* a fault counts for who met it */
			return kernel && rule->class == JOB_CLASS_LIBC ? JOB_CLASS_KERNEL
								       : rule->class;
	}
	return kernel ? JOB_CLASS_KERNEL : JOB_CLASS_OTHER;
}

/* --- sampling ----------------------------------------------------------------------------------- */

struct sampled_thread {
	int32_t tid;
	uint32_t process;
	uint32_t thread; /* indices */
	int fd;
	uint8_t *ring; /* the kernel's page, and SAMPLER_RING_PAGES */
	bool stacks;   /* its samples have the stack's return addresses */
};

struct sampled_address {
	uint64_t pc; /* of user code; 0: not known */
	uint32_t process;
	bool kernel;
	uint64_t
		made; /* where code begins that the process made, and that calls this; 0: none is known */
	uint64_t samples; /* 0: free */
	/* Of its code, once it is looked up: the process whose maps tell, and what they tell. */
	uint32_t code;
	char name[JOB_PLACE_BYTES];
	enum job_class class;
};

struct job_sampler {
	struct sampled_thread threads[SAMPLED_THREADS_MAX];
	size_t thread_count;
	struct sampled_address
		*addresses; /* (ADDRESSES_MAX) by hash; three quarters are used at most */
	size_t address_count;
	struct sampled_map {
		bool asked;
		struct code_map *map; /* NULL: it has none */
	} * maps;                     /* (JOB_PROCESSES_MAX) */
	struct job_profile profile;
	size_t page;
	bool user_only, refused;
	bool full; /* there is no more room for rings */
};

int job_sampler_open(struct job_sampler **out, struct error *err)
{
	struct job_sampler *sampler = calloc(1, sizeof *sampler);
	*out = NULL;
	if (sampler)
		sampler->addresses = calloc(ADDRESSES_MAX, sizeof *sampler->addresses);
	if (sampler)
		sampler->maps = calloc(JOB_PROCESSES_MAX, sizeof *sampler->maps);
	if (sampler)
		sampler->profile.classes =
			calloc(JOB_PROCESSES_MAX, sizeof *sampler->profile.classes);
	if (!sampler || !sampler->addresses || !sampler->maps || !sampler->profile.classes) {
		job_sampler_close(sampler);
		return error_set(err, -ENOMEM, "out of memory");
	}
	sampler->page = (size_t)sysconf(_SC_PAGESIZE);
	sampler->profile.kernel = true;
	sampler->profile.period_s = 1.0 / SAMPLER_RATE_HZ;
	*out = sampler;
	return 0;
}

static void sampler_end_thread(struct job_sampler *sampler, struct sampled_thread *thread)
{
	if (thread->ring)
		(void)munmap(thread->ring, (1 + SAMPLER_RING_PAGES) * sampler->page);
	if (thread->fd >= 0)
		(void)close(thread->fd);
}

void job_sampler_close(struct job_sampler *sampler)
{
	if (!sampler)
		return;
	for (size_t i = 0; i < sampler->thread_count; i++)
		sampler_end_thread(sampler, &sampler->threads[i]);
	for (size_t i = 0; sampler->maps && i < JOB_PROCESSES_MAX; i++)
		code_map_close(sampler->maps[i].map);
	free(sampler->maps);
	free(sampler->addresses);
	free(sampler->profile.classes);
	free(sampler);
}

static int sampler_event(int32_t tid, bool user_only, bool stacks)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000 / SAMPLER_RATE_HZ,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = UINT64_C(1) << SAMPLER_USER_IP,
		.exclude_kernel = user_only,
		.exclude_hv = 1,
	};
	if (stacks) {
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr.exclude_callchain_kernel = 1;
		attr.sample_max_stack = SAMPLER_STACK_MAX;
	}
	const long fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

static void sampler_refuse(struct job_sampler *sampler, int code)
{
	if (code == -ESRCH)
		return;
	sampler->refused = sampler->refused || code == -EACCES || code == -EPERM || code == -ENOSYS;
	(void)snprintf(sampler->profile.why, sizeof sampler->profile.why, "perf_event_open: %s%s",
		strerror(-code),
		code == -EACCES || code == -EPERM
			? " (kernel.perf_event_paranoid, a container, or another user's process)"
			: "");
}

static void sampler_say_full(struct job_sampler *sampler, const char *why)
{
	sampler->full = true;
	(void)snprintf(sampler->profile.why, sizeof sampler->profile.why,
		"no more than %zu threads are sampled at a time%s", sampler->thread_count, why);
}

static void sampler_add_thread(
	struct job_sampler *sampler, const struct job_record *record, uint32_t index)
{
	const int32_t tid = record->threads[index].tid;
	const uint32_t process = record->threads[index].process;
	struct sampled_thread thread = {.tid = tid,
		.process = process,
		.thread = index,
		.fd = -1,
		.stacks = sampler->maps[process].map != NULL};
	thread.fd = sampler_event(tid, sampler->user_only, thread.stacks);
	if ((thread.fd == -EACCES || thread.fd == -EPERM) && !sampler->user_only) {
		thread.fd = sampler_event(tid, true, thread.stacks);
		sampler->user_only = thread.fd >= 0;
		sampler->profile.kernel = sampler->profile.kernel && !sampler->user_only;
	}
	if (thread.fd < 0) {
		sampler_refuse(sampler, thread.fd);
		return;
	}
	void *ring = mmap(NULL, (1 + SAMPLER_RING_PAGES) * sampler->page, PROT_READ | PROT_WRITE,
		MAP_SHARED, thread.fd, 0);
	if (ring == MAP_FAILED) {
		if (errno == EPERM)
			sampler_say_full(sampler, " (kernel.perf_event_mlock_kb)");
		else
			sampler_refuse(sampler, -errno);
		(void)close(thread.fd);
		return;
	}
	thread.ring = ring;
	sampler->threads[sampler->thread_count++] = thread;
}

/* Whether it makes code with names is asked once, when its first thread is seen. */
static void sampler_ask_for_map(
	struct job_sampler *sampler, const struct job_record *record, uint32_t process)
{
	struct sampled_map *map = &sampler->maps[process];
	struct error ignored;
	if (map->asked)
		return;
	map->asked = true;
	if (code_map_open(&map->map, "", record->processes[process].pid, &ignored) == 0)
		sampler->profile.mapped++;
}

/* Threads of a pool that never work would take the room of others, where it is scarce. */
static bool sampler_works(const struct job_sampler *sampler, const struct job_thread *thread)
{
	static const double WORKED_S = 0.02; /* before it was first seen */
	return sampler->thread_count < SAMPLED_THREADS_MAX / 4 ||
	       thread->last[JOB_CPU_S] >= WORKED_S ||
	       job_grown(thread->first, thread->last, JOB_CPU_S) > 0;
}

static void sampler_drain_thread(struct job_sampler *sampler, const struct sampled_thread *thread);

static void sampler_drop_ended(struct job_sampler *sampler, const struct job_record *record)
{
	for (size_t i = 0; i < sampler->thread_count;) {
		struct sampled_thread *thread = &sampler->threads[i];
		const struct job_thread *of = &record->threads[thread->thread];
		if (!of->gone && of->tid == thread->tid) { /* else its place has been given away */
			i++;
			continue;
		}
		sampler_drain_thread(sampler, thread);
		sampler_end_thread(sampler, thread);
		*thread = sampler->threads[--sampler->thread_count];
		sampler->full = false;
	}
}

void job_sampler_follow(struct job_sampler *sampler, struct job_record *record)
{
	for (size_t i = 0; i < record->process_count; i++)
		if (sampler->maps[i].map)
			code_map_refresh(sampler->maps[i].map);
	sampler_drop_ended(sampler, record);
	for (uint32_t i = 0; i < record->thread_count && !sampler->refused && !sampler->full; i++) {
		struct job_thread *thread = &record->threads[i];
		if (thread->gone || thread->sampled || !sampler_works(sampler, thread))
			continue;
		if (sampler->thread_count == SAMPLED_THREADS_MAX) {
			sampler_say_full(sampler, "");
			return;
		}
		sampler_ask_for_map(sampler, record, thread->process);
		sampler_add_thread(sampler, record, i);
		thread->sampled = !sampler->full; /* else again, once others have ended */
	}
}

/* Where an address lies in the table does not matter any more once its process has ended. */
void job_sampler_join(struct job_sampler *sampler, uint32_t from, uint32_t to)
{
	for (size_t i = 0; i < sampler->thread_count; i++)
		if (sampler->threads[i].process == from) {
			sampler_drain_thread(sampler, &sampler->threads[i]);
			sampler->threads[i].process = to;
		}
	for (size_t i = 0; i < ADDRESSES_MAX; i++)
		if (sampler->addresses[i].samples && sampler->addresses[i].process == from)
			sampler->addresses[i].process = to;
	code_map_close(sampler->maps[from].map);
	sampler->maps[from] = (struct sampled_map){.asked = false};
}

static void sampler_count(struct job_sampler *sampler, const struct sampled_address *one)
{
	const uint64_t mixed = (one->pc + 3 * one->made) * UINT64_C(0x9E3779B97F4A7C15);
	size_t at = (size_t)((mixed ^ one->process ^ one->kernel) >> 20) % ADDRESSES_MAX;
	struct sampled_address *address = &sampler->addresses[at];
	while (address->samples &&
		(address->pc != one->pc || address->process != one->process ||
			address->kernel != one->kernel || address->made != one->made)) {
		at = (at + 1) % ADDRESSES_MAX;
		address = &sampler->addresses[at];
	}
	if (!address->samples && sampler->address_count == ADDRESSES_MAX / 4 * 3) {
		sampler->profile.lost++;
		return;
	}
	if (!address->samples) {
		sampler->address_count++;
		*address = *one;
	}
	address->samples++;
	sampler->profile.samples++;
}

static void sampler_copy(
	const struct job_sampler *sampler, const uint8_t *data, uint64_t at, void *out, size_t size)
{
	const size_t room = SAMPLER_RING_PAGES * sampler->page;
	const size_t from = (size_t)(at % room);
	const size_t first = size < room - from ? size : room - from;
	memcpy(out, data + from, first);
	memcpy((uint8_t *)out + first, data, size - first);
}

/* A record of the ring, as sampler_event asks for it. */
struct sampler_sample {
	struct perf_event_header header;
	uint64_t words[3 + 1 + SAMPLER_STACK_MAX + 1 + 2];
};

/* The innermost code that the process made, on the stack. */
static uint64_t sampler_made(struct job_sampler *sampler, uint32_t process, uint64_t ip,
	const uint64_t *stack, uint64_t count)
{
	struct code_map *map = sampler->maps[process].map;
	const struct code_entry *entry = map ? code_map_find(map, ip) : NULL;
	for (uint64_t i = 0; map && i < count && !entry; i++)
		entry = stack[i] < PERF_CONTEXT_MAX ? code_map_find(map, stack[i]) : NULL;
	return entry ? entry->begin : 0;
}

/* IP; PID and TID; with stacks their count and return addresses; the ABI of the registers and the user's IP. */
static void sampler_take_sample(struct job_sampler *sampler, const struct sampled_thread *thread,
	const struct sampler_sample *sample, bool user)
{
	const uint64_t *at = sample->words + 2;
	const uint64_t *const end =
		(const uint64_t *)(const void *)((const char *)sample + sample->header.size);
	struct sampled_address one = {
		.pc = sample->words[0], .process = thread->process, .kernel = !user};
	uint64_t count = 0;
	const uint64_t *stack = at;
	if (thread->stacks) {
		count = *at++;
		stack = at;
		if (count > SAMPLER_STACK_MAX + 1)
			return;
		at += count;
	}
	if (!user)
		one.pc = at + 1 < end && at[0] ? at[1] : 0;
	one.made = sampler_made(sampler, thread->process, one.pc, stack, count);
	sampler_count(sampler, &one);
}

static void sampler_take(struct job_sampler *sampler, const struct sampled_thread *thread,
	const struct sampler_sample *sample)
{
	const unsigned mode = sample->header.misc & PERF_RECORD_MISC_CPUMODE_MASK;
	if (sample->header.size > sizeof *sample)
		return;
	if (sample->header.type == PERF_RECORD_SAMPLE)
		sampler_take_sample(sampler, thread, sample, mode == PERF_RECORD_MISC_USER);
	else if (sample->header.type == PERF_RECORD_LOST)
		sampler->profile.lost += sample->words[1];
}

static void sampler_drain_thread(struct job_sampler *sampler, const struct sampled_thread *thread)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)(void *)thread->ring;
	const uint8_t *data = thread->ring + sampler->page;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail;
	while (tail < head) {
		struct sampler_sample sample = {0};
		sampler_copy(sampler, data, tail, &sample.header, sizeof sample.header);
		const size_t size = sample.header.size;
		if (size < sizeof sample.header)
			break;
		sampler_copy(
			sampler, data, tail, &sample, size < sizeof sample ? size : sizeof sample);
		sampler_take(sampler, thread, &sample);
		tail += size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

void job_sampler_drain(struct job_sampler *sampler)
{
	for (size_t i = 0; i < sampler->thread_count; i++)
		sampler_drain_thread(sampler, &sampler->threads[i]);
}

/* --- names -------------------------------------------------------------------------------------- */

static void sampler_name(struct sampled_address *address, const char *file, const char *function)
{
	const char *slash = strrchr(file, '/');
	(void)snprintf(address->name, sizeof address->name, "%.40s%s%.50s",
		slash ? slash + 1 : file, function[0] ? " " : "", function);
	utf8_make_plain(address->name, '?');
	address->class = job_class_of(file, function, address->kernel);
}

/* Code that the process made: a function of Python's is told by its name where the interpreter runs for it, and what
 * else it made has no place in a result. */
static void sampler_name_made(
	struct job_sampler *sampler, struct sampled_address **list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sampled_address *one = list[i];
		struct code_map *map = sampler->maps[one->process].map;
		const struct code_entry *entry =
			map && one->made ? code_map_find(map, one->made) : NULL;
		if (entry && entry->python && !one->name[0] && !one->kernel)
			one->class = JOB_CLASS_PYTHON;
		const bool interpreted = one->class == JOB_CLASS_PYTHON;
		if (map && interpreted)
			sampler->profile.interpreted += one->samples;
		if (!entry || !entry->python || !interpreted)
			continue;
		sampler->profile.named += one->samples;
		(void)snprintf(one->name, sizeof one->name, "Python %s", entry->name);
	}
}

#if defined(MLBENCH_WITH_libdw)

/* The file as the process sees it, which may be in a container. */
static int sampler_find_elf(
	Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
	char path[4200];
	char *const *root = (char *const *)data;
	(void)module;
	(void)base;
	(void)elf;
	*file = NULL;
	if (name[0] != '/' || !*root || !**root)
		return -1;
	(void)snprintf(path, sizeof path, "%s%.4096s", *root, name);
	/* Of a job whose storage has died no further file is asked for. */
	if (path_answers(path, NULL, NULL)) {
		**root = '\0';
		return -1;
	}
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int sampler_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module;
	(void)data;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)found;
	return -1;
}

static const Dwfl_Callbacks sampler_callbacks = {
	.find_elf = sampler_find_elf,
	.find_debuginfo = sampler_no_debuginfo,
};

static int sampler_set_root(
	Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, void *root)
{
	(void)module;
	(void)name;
	(void)base;
	*data = root;
	return DWARF_CB_OK;
}

static int sampler_by_address(const void *a, const void *b)
{
	const struct sampled_address *x = *(struct sampled_address *const *)a;
	const struct sampled_address *y = *(struct sampled_address *const *)b;
	if (x->code != y->code)
		return x->code < y->code ? -1 : 1;
	return (x->pc > y->pc) - (x->pc < y->pc);
}

/* Of files whose class depends on the function. */
static bool sampler_wants_symbols(const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *name = slash ? slash + 1 : file;
	return strncmp(name, "libc.", 5) == 0 || strncmp(name, "_imaging.", 9) == 0 ||
	       strncmp(name, "libjpeg", 7) == 0 || strncmp(name, "_multiarray", 11) == 0 ||
	       strncmp(name, "mlbench", 7) == 0;
}

/* Where this process's C library lies, if the job's is the same file. */
static uint64_t sampler_own_library(const char *root, const char *file)
{
	char path[4200];
	struct stat own;
	struct stat theirs;
	Dl_info info;
	void *(*const copy)(void *, const void *, size_t) = memcpy;
	(void)snprintf(path, sizeof path, "%s%.4096s", root, file);
	if (!dladdr((const void *)(uintptr_t)copy, &info) || stat(info.dli_fname, &own) ||
		stat(path, &theirs) || own.st_ino != theirs.st_ino || own.st_dev != theirs.st_dev)
		return 0;
	return (uint64_t)(uintptr_t)info.dli_fbase;
}

/* memcpy and the like are chosen for the CPU when a program starts, and what is chosen has no exported name.  Where the job
 * has this process's C library, its functions lie where ours do. */
static const char *sampler_string_function(uint64_t own, uint64_t offset)
{
	void *(*const copy)(void *, const void *, size_t) = memcpy;
	void *(*const move)(void *, const void *, size_t) = memmove;
	void *(*const fill)(void *, int, size_t) = memset;
	if (own && (offset - ((uint64_t)(uintptr_t)copy - own) < STRING_FUNCTION_BYTES ||
			   offset - ((uint64_t)(uintptr_t)move - own) < STRING_FUNCTION_BYTES))
		return "memmove";
	return own && offset - ((uint64_t)(uintptr_t)fill - own) < STRING_FUNCTION_BYTES / 2
		       ? "memset"
		       : "";
}

static void sampler_name_copies(
	Dwfl_Module *module, const char *file, struct sampled_address **list, size_t count)
{
	const char *slash = strrchr(file, '/');
	void **root;
	Dwarf_Addr base;
	(void)dwfl_module_info(module, &root, &base, NULL, NULL, NULL, NULL, NULL);
	if (!slash || strncmp(slash + 1, "libc.", 5) != 0)
		return;
	const uint64_t own = sampler_own_library(*root, file);
	for (size_t i = 0; i < count; i++)
		if (!strchr(list[i]->name, ' '))
			sampler_name(
				list[i], file, sampler_string_function(own, list[i]->pc - base));
}

/* Addresses of one module, ascending: one pass over its symbols. */
static void sampler_name_module(
	Dwfl_Module *module, const char *file, struct sampled_address **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sampler_name(list[i], file, "");
	if (!sampler_wants_symbols(file))
		return;
	const int all = dwfl_module_getsymtab(module);
	for (int s = 1; s < all && s < SAMPLER_SYMBOLS_MAX; s++) {
		GElf_Sym symbol;
		GElf_Addr begins;
		const char *name =
			dwfl_module_getsym_info(module, s, &symbol, &begins, NULL, NULL, NULL);
		if (!name || GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0)
			continue;
		size_t low = 0;
		size_t high = count;
		while (low < high) {
			const size_t middle = (low + high) / 2;
			if (list[middle]->pc < begins)
				low = middle + 1;
			else
				high = middle;
		}
		for (; low < count && list[low]->pc < begins + symbol.st_size; low++)
			sampler_name(list[low], file, name);
	}
	sampler_name_copies(module, file, list, count);
}

/* Itself, or, where it has ended, the nearest process above it that has not: a worker that was forked has its code at the same
 * addresses.  Addresses of one that began anew lie elsewhere (ASLR) and stay without a name. */
static const struct job_process *sampler_maps_of(
	const struct job_record *record, const struct job_process *process)
{
	for (size_t step = 0; process && process->gone && step < record->process_count; step++) {
		const struct job_process *above = NULL;
		for (size_t i = 0; i < record->process_count && !above; i++)
			if (record->processes[i].pid == process->parent)
				above = &record->processes[i];
		process = above;
	}
	return process && !process->gone ? process : NULL;
}

static void sampler_name_process(
	const struct job_record *record, struct sampled_address **list, size_t count)
{
	const struct job_process *process =
		sampler_maps_of(record, &record->processes[list[0]->code]);
	char root[32];
	Dwfl *dwfl = process ? dwfl_begin(&sampler_callbacks) : NULL;
	if (!dwfl)
		return;
	(void)snprintf(root, sizeof root, "/proc/%d/root", process->pid);
	dwfl_report_begin(dwfl);
	(void)dwfl_linux_proc_report(dwfl, process->pid);
	(void)dwfl_report_end(dwfl, NULL, NULL);
	(void)dwfl_getmodules(dwfl, sampler_set_root, root, 0);
	for (size_t i = 0; i < count;) {
		Dwfl_Module *module = dwfl_addrmodule(dwfl, list[i]->pc);
		GElf_Addr end = 0;
		const char *file =
			module ? dwfl_module_info(module, NULL, NULL, &end, NULL, NULL, NULL, NULL)
			       : NULL;
		size_t next = i + 1;
		while (file && next < count && list[next]->pc < end)
			next++;
		if (file)
			sampler_name_module(module, file, &list[i], next - i);
		i = next;
	}
	dwfl_end(dwfl);
}

/* The first that has its code at the same addresses: workers that were forked from one process. */
static uint32_t sampler_first_alike(const struct job_record *record, uint32_t index)
{
	const struct job_process *process = &record->processes[index];
	for (uint32_t i = 0; i < index && process->stack > 0; i++) {
		const struct job_process *other = &record->processes[i];
		if (!other->gone && other->parent == process->parent &&
			!(other->stack < process->stack) && !(other->stack > process->stack) &&
			strcmp(other->name, process->name) == 0)
			return i;
	}
	return index;
}

static void sampler_find_names(struct job_sampler *sampler, const struct job_record *record)
{
	struct sampled_address **list = calloc(sampler->address_count + 1, sizeof(*list));
	uint32_t alike[JOB_PROCESSES_MAX];
	size_t count = 0;
	for (uint32_t i = 0; i < record->process_count; i++)
		alike[i] = sampler_first_alike(record, i);
	for (size_t i = 0; list && i < ADDRESSES_MAX; i++)
		if (sampler->addresses[i].samples) {
			sampler->addresses[i].code = alike[sampler->addresses[i].process];
			list[count++] = &sampler->addresses[i];
		}
	if (count)
		qsort(list, count, sizeof(*list), sampler_by_address);
	size_t processes = 0;
	for (size_t i = 0; i < count && processes < SAMPLER_MAPS_MAX; processes++) {
		size_t next = i + 1;
		while (next < count && list[next]->code == list[i]->code)
			next++;
		sampler_name_process(record, &list[i], next - i);
		sampler_name_made(sampler, &list[i], next - i);
		i = next;
	}
	free(list);
}

#else

static void sampler_find_names(struct job_sampler *sampler, const struct job_record *record)
{
	(void)record;
	(void)sampler_name;
	(void)sampler_name_made;
	(void)snprintf(sampler->profile.why, sizeof sampler->profile.why,
		"this build lacks libdw, which names code");
}

#endif

static void sampler_add_place(
	const struct sampled_address *address, struct job_place *all, size_t *count, size_t room)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(all[i].name, address->name) == 0 && all[i].class == address->class) {
			all[i].samples += address->samples;
			return;
		}
	if (*count == room)
		return;
	all[*count] = (struct job_place){.class = address->class, .samples = address->samples};
	memcpy(all[*count].name, address->name, sizeof all[*count].name);
	(*count)++;
}

static int sampler_by_samples(const void *a, const void *b)
{
	const struct job_place *x = a;
	const struct job_place *y = b;
	return (x->samples < y->samples) - (x->samples > y->samples);
}

const struct job_profile *job_sampler_finish(
	struct job_sampler *sampler, const struct job_record *record)
{
	enum { PLACES_ROOM = 512 };
	struct job_profile *profile = &sampler->profile;
	struct job_place *places = calloc(PLACES_ROOM, sizeof *places);
	size_t count = 0;
	for (size_t i = 0; i < sampler->thread_count; i++)
		(void)ioctl(sampler->threads[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	job_sampler_drain(sampler);
	for (size_t i = 0; i < ADDRESSES_MAX; i++)
		sampler->addresses[i].class =
			sampler->addresses[i].kernel ? JOB_CLASS_KERNEL : JOB_CLASS_OTHER;
	sampler_find_names(sampler, record);
	for (size_t i = 0; i < ADDRESSES_MAX; i++) {
		const struct sampled_address *address = &sampler->addresses[i];
		if (!address->samples)
			continue;
		profile->classes[address->process][address->class] += address->samples;
		/* What no rule knows may be the user's own, whose name is nobody's business. */
		if (places && address->name[0] && address->class != JOB_CLASS_OTHER)
			sampler_add_place(address, places, &count, PLACES_ROOM);
	}
	if (places && count)
		qsort(places, count, sizeof *places, sampler_by_samples);
	profile->place_count = count < JOB_PLACES_MAX ? count : JOB_PLACES_MAX;
	for (size_t i = 0; i < profile->place_count; i++)
		profile->places[i] = places[i];
	free(places);
	return profile;
}
