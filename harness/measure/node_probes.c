/* Probes of a node's ceilings that need no workload, and what all probes share: rounds, medians and crews. */
#include "harness/measure/node_probes.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/measure/data_store.h"
#include "harness/measure/proc_text.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { CPUS_SPARE = 1024 };

bool probe_stopped(const struct probe_control *control)
{
	return control->stop && atomic_load_explicit(control->stop, memory_order_relaxed);
}

bool probe_time_over(const struct probe_control *control)
{
	return probe_stopped(control) ||
	       (control->deadline_ns && clock_now_ns() >= control->deadline_ns);
}

uint64_t probe_slot_end(const struct probe_control *control, uint64_t now)
{
	const uint64_t end = now + control->slot_ns;
	return control->deadline_ns && control->deadline_ns < end ? control->deadline_ns : end;
}

void probe_add(struct probe_values *values, double value)
{
	if (!isnan(value) && values->count < PROBE_ROUNDS_MAX)
		values->at[values->count++] = value;
}

double probe_median(const struct probe_values *values, struct ceiling_range *range)
{
	struct ceiling_range found = {.low = NAN, .high = NAN, .repeats = values->count};
	double sorted[PROBE_ROUNDS_MAX];
	double median = NAN;
	if (values->count > 0) {
		const unsigned n = values->count;
		memcpy(sorted, values->at, n * sizeof *sorted);
		sort_doubles(sorted, n);
		found.low = sorted[0];
		found.high = sorted[n - 1];
		median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
	}
	if (range)
		*range = found;
	return median;
}

/* --- crews ------------------------------------------------------------------------------------ */

/* The cores this process may use; free it with CPU_FREE.  NULL: not known. */
static cpu_set_t *allowed_cores(size_t *most)
{
	const long configured = sysconf(_SC_NPROCESSORS_CONF);
	*most = (size_t)(configured > 0 ? configured : 1) + CPUS_SPARE;
	cpu_set_t *set = CPU_ALLOC(*most);
	if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(*most), set) == 0)
		return set;
	CPU_FREE(set);
	return NULL;
}

unsigned probe_cores(void)
{
	size_t most;
	cpu_set_t *set = allowed_cores(&most);
	if (!set)
		return 1;
	const int count = CPU_COUNT_S(CPU_ALLOC_SIZE(most), set);
	CPU_FREE(set);
	return count > 0 ? (unsigned)count : 1;
}

unsigned probe_core_list(unsigned **cores)
{
	size_t most;
	unsigned count = 0;
	cpu_set_t *set = allowed_cores(&most);
	*cores = set ? calloc(most, sizeof **cores) : NULL;
	for (size_t cpu = 0; *cores && cpu < most; cpu++)
		if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(most), set))
			(*cores)[count++] = (unsigned)cpu;
	CPU_FREE(set);
	return count;
}

struct crew {
	probe_work *work;
	void *context;
	const unsigned *
		cores; /* (core_count): thread i on the i-th, and again from the first; NULL: anywhere */
	unsigned core_count;
	bool must; /* a core that refuses its thread is an error */
	/* Threads wait here until it is known whether there are enough of them. */
	pthread_mutex_t lock;
	pthread_cond_t begin;
	enum { CREW_WAITS, CREW_WORKS, CREW_GIVES_UP } phase;
};

struct member {
	struct crew *crew;
	unsigned index;
	pthread_t thread;
};

static void *member_main(void *argument)
{
	const struct member *member = argument;
	struct crew *crew = member->crew;
	(void)pthread_mutex_lock(&crew->lock);
	while (crew->phase == CREW_WAITS)
		(void)pthread_cond_wait(&crew->begin, &crew->lock);
	const bool works = crew->phase == CREW_WORKS;
	(void)pthread_mutex_unlock(&crew->lock);
	if (works)
		crew->work(crew->context, member->index);
	return NULL;
}

/* It begins on its core and nowhere else; a core that is refused, or went offline, is an error of the start. */
static int start_pinned(struct member *member, unsigned core)
{
	const size_t most = (size_t)core + 1;
	const size_t size = CPU_ALLOC_SIZE(most);
	cpu_set_t *one = CPU_ALLOC(most);
	pthread_attr_t attributes;
	if (!one || pthread_attr_init(&attributes) != 0) {
		CPU_FREE(one);
		return ENOMEM;
	}
	CPU_ZERO_S(size, one);
	CPU_SET_S(core, size, one);
	int code = pthread_attr_setaffinity_np(&attributes, size, one);
	if (!code)
		code = pthread_create(&member->thread, &attributes, member_main, member);
	(void)pthread_attr_destroy(&attributes);
	CPU_FREE(one);
	return code;
}

static int start_member(struct member *member, struct error *err)
{
	const struct crew *crew = member->crew;
	if (crew->cores) {
		const unsigned core = crew->cores[member->index % crew->core_count];
		const int code = start_pinned(member, core);
		if (code == 0 || code == EAGAIN)
			return -code;
		if (crew->must)
			return error_set(err, -EPERM, "no thread can be kept on core %u: %s", core,
				strerror(code));
	}
	return pthread_create(&member->thread, NULL, member_main, member) ? -EAGAIN : 0;
}

static int start_members(struct crew *crew, struct member *members, unsigned threads,
	unsigned *started, struct error *err)
{
	sigset_t all;
	sigset_t before;
	int code = 0;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	for (*started = 0; *started < threads && !code; *started += !code) {
		members[*started] = (struct member){.crew = crew, .index = *started};
		code = start_member(&members[*started], err);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code == -EAGAIN ? error_set(err, code, "only %u of %u threads could be started",
					 *started, threads)
			       : code;
}

static int run_crew(struct crew *crew, unsigned threads, struct error *err)
{
	unsigned started;
	struct member *members = calloc(threads, sizeof *members);
	if (!members)
		return error_set(err, -ENOMEM, "out of memory for %u threads", threads);
	(void)pthread_mutex_init(&crew->lock, NULL);
	(void)pthread_cond_init(&crew->begin, NULL);
	const int code = start_members(crew, members, threads, &started, err);
	(void)pthread_mutex_lock(&crew->lock);
	crew->phase = code ? CREW_GIVES_UP : CREW_WORKS;
	(void)pthread_cond_broadcast(&crew->begin);
	(void)pthread_mutex_unlock(&crew->lock);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(members[i].thread, NULL);
	free(members);
	(void)pthread_cond_destroy(&crew->begin);
	(void)pthread_mutex_destroy(&crew->lock);
	return code;
}

int probe_crew(unsigned threads, bool pinned, probe_work *work, void *context, struct error *err)
{
	unsigned *cores = NULL;
	struct crew crew = {.work = work, .context = context};
	if (pinned)
		crew.core_count = probe_core_list(&cores);
	crew.cores = crew.core_count > 0 ? cores : NULL;
	const int code = run_crew(&crew, threads, err);
	free(cores);
	return code;
}

int probe_crew_on(
	const unsigned *cores, unsigned threads, probe_work *work, void *context, struct error *err)
{
	struct crew crew = {.work = work,
		.context = context,
		.cores = cores,
		.core_count = threads,
		.must = true};
	return run_crew(&crew, threads, err);
}

/* --- lock hand-off, clocks, oversleep --------------------------------------------------------- */

/* What waiting and looking at a clock cost on this node: the hand-off of a lock, two clocks, and how
 * far an absolute sleep goes beyond its end. */
enum {
	CLOCK_READS = 20000,
	CPU_CLOCK_READS = 2000,
	SLEEPS = 40, /* of a round */
	P99_PER_MILLE = 990,
	MEDIAN_PER_MILLE = 500,
	HANDOFFS_MAX = 1024, /* of a round */
};

static const uint64_t SLEEP_NS = 500 * NS_PER_US;
/* Held so long that the other thread sleeps on the lock before it is let go. */
static const uint64_t HOLD_NS = 50 * NS_PER_US;

double probe_clock_read_ns(void)
{
	const uint64_t begin = clock_now_ns();
	uint64_t end = begin;
	for (int i = 0; i < CLOCK_READS; i++)
		end = clock_now_ns();
	return (double)(end - begin) / CLOCK_READS;
}

static double cpu_clock_cost_ns(void)
{
	volatile uint64_t kept; /* so that the reads are not left out */
	const uint64_t begin = clock_now_ns();
	for (int i = 0; i < CPU_CLOCK_READS; i++)
		kept = clock_thread_cpu_ns();
	(void)kept;
	return (double)(clock_now_ns() - begin) / CPU_CLOCK_READS;
}

double probe_quantile(double *values, size_t count, size_t per_mille)
{
	if (count == 0)
		return NAN;
	sort_doubles(values, count);
	return values[(count - 1) * per_mille / 1000];
}

/* --- lock ------------------------------------------------------------------------------------- */

/* Two threads take the lock in turns: whoever lets go waits until the other has it. */
struct handoff {
	pthread_mutex_t lock;
	atomic_uint owner;              /* who had it last; written under the lock */
	uint64_t released_ns;           /* under the lock: when it was about to be let go */
	double waited_ns[HANDOFFS_MAX]; /* of each, under the lock */
	size_t count;
	uint64_t end_ns;
	const struct probe_control *control;
};

static bool handoff_over(const struct handoff *handoff)
{
	return clock_now_ns() >= handoff->end_ns || probe_stopped(handoff->control);
}

/* Under the lock. */
static void take_lock_over(struct handoff *handoff, unsigned me)
{
	const uint64_t now = clock_now_ns();
	if (handoff->released_ns && atomic_load(&handoff->owner) != me &&
		handoff->count < HANDOFFS_MAX)
		handoff->waited_ns[handoff->count++] = (double)(now - handoff->released_ns);
	atomic_store(&handoff->owner, me);
	while (clock_now_ns() < now + HOLD_NS)
		continue;
	handoff->released_ns = clock_now_ns();
}

static void take_turns(void *context, unsigned me)
{
	struct handoff *handoff = context;
	while (!handoff_over(handoff)) {
		(void)pthread_mutex_lock(&handoff->lock);
		take_lock_over(handoff, me);
		(void)pthread_mutex_unlock(&handoff->lock);
		while (atomic_load(&handoff->owner) == me && !handoff_over(handoff))
			(void)sched_yield();
	}
}

/* The median of a round's: the mean would be that of the few that met another process on their core.
 */
int probe_handoff_ns(const struct probe_control *control, double *out, struct error *err)
{
	struct handoff *handoff = calloc(1, sizeof *handoff);
	if (!handoff)
		return error_set(err, -ENOMEM, "out of memory");
	handoff->control = control;
	handoff->end_ns = probe_slot_end(control, clock_now_ns());
	(void)pthread_mutex_init(&handoff->lock, NULL);
	const int code = probe_crew(2, false, take_turns, handoff, err);
	(void)pthread_mutex_destroy(&handoff->lock);
	*out = probe_quantile(handoff->waited_ns, handoff->count, MEDIAN_PER_MILLE);
	free(handoff);
	return code;
}

/* --- sleep ------------------------------------------------------------------------------------ */

struct sleeps {
	double beyond[SLEEPS * PROBE_ROUNDS_MAX]; /* ns, of every sleep */
	size_t count;
};

unsigned probe_oversleep(const struct probe_control *control, double *beyond, unsigned count)
{
	unsigned slept = 0;
	for (; slept < count && !probe_time_over(control); slept++) {
		const uint64_t end = clock_now_ns() + SLEEP_NS;
		clock_sleep_until_ns(end);
		beyond[slept] = (double)(clock_now_ns() - end);
	}
	return slept;
}

/* The mean of one round; NAN where it was cut short. */
static double oversleep_ns(const struct probe_control *control, struct sleeps *sleeps)
{
	double sum = 0;
	const double *const beyond = sleeps->beyond + sleeps->count;
	const unsigned slept = probe_oversleep(control, sleeps->beyond + sleeps->count, SLEEPS);
	for (unsigned i = 0; i < slept; i++)
		sum += beyond[i];
	sleeps->count += slept;
	return slept == SLEEPS ? sum / SLEEPS : (double)NAN;
}

/* --- all -------------------------------------------------------------------------------------- */

struct timing {
	struct probe_values lock, clock, cpu_clock, oversleep;
	struct sleeps sleeps;
};

static int time_rounds(
	const struct probe_control *control, struct timing *timing, struct error *err)
{
	int code = 0;
	for (unsigned round = 0; round < control->rounds && !probe_time_over(control); round++) {
		double handed = NAN;
		probe_add(&timing->clock, probe_clock_read_ns());
		probe_add(&timing->cpu_clock, cpu_clock_cost_ns());
		if (!code)
			code = probe_handoff_ns(control, &handed, err);
		probe_add(&timing->lock, handed);
		probe_add(&timing->oversleep, oversleep_ns(control, &timing->sleeps));
	}
	return code;
}

int probe_timing(const struct probe_control *control, struct ceilings *out, struct error *err)
{
	struct timing *timing = calloc(1, sizeof *timing);
	if (!timing)
		return error_set(err, -ENOMEM, "out of memory");
	struct error why = {0};
	const int code = time_rounds(control, timing, &why);
	out->lock_handoff_ns = probe_median(&timing->lock, &out->lock_range);
	out->clock_read_ns = probe_median(&timing->clock, &out->clock_range);
	out->cpu_clock_read_ns = probe_median(&timing->cpu_clock, &out->cpu_clock_range);
	out->oversleep_ns = probe_median(&timing->oversleep, &out->oversleep_range);
	out->oversleep_p99_ns =
		probe_quantile(timing->sleeps.beyond, timing->sleeps.count, P99_PER_MILLE);
	free(timing);
	if (probe_stopped(control))
		return -EINTR;
	if (isnan(out->lock_handoff_ns))
		ceilings_lack(out, "lock hand-off: %s",
			code ? why.text : "no hand-over in the time allowed");
	if (isnan(out->oversleep_ns))
		ceilings_lack(out, "oversleep: no time was left for it");
	return 0;
}

/* --- which node it is ------------------------------------------------------------------------- */

/* Asking the system who this node is. */

static void read_node_cpu(struct node_identity *node)
{
	char flags[8192];
	char *cpuinfo = proc_text("/proc/cpuinfo");
	(void)snprintf(node->cpu, sizeof node->cpu, "unknown CPU");
	if (!cpuinfo)
		return;
	if (!parse_field(cpuinfo, "model name", node->cpu, sizeof node->cpu))
		(void)snprintf(node->cpu, sizeof node->cpu, "unknown CPU");
	node->is_virtual = parse_field(cpuinfo, "flags", flags, sizeof flags) &&
			   parse_has_word(flags, "hypervisor");
	free(cpuinfo);
}

static void read_node_names(struct node_identity *node)
{
	struct utsname name;
	if (uname(&name) != 0)
		return;
	(void)snprintf(node->kernel, sizeof node->kernel, "%s", name.release);
	(void)snprintf(node->host, sizeof node->host, "%s", name.nodename);
	if (files_first_line("/etc/machine-id", node->machine, sizeof node->machine) != 0 ||
		node->machine[0] == '\0')
		(void)snprintf(node->machine, sizeof node->machine, "%s", name.nodename);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul ..." -> "580.65.06"; "unknown". */
static void driver_version(char *out, size_t room)
{
	char *text = proc_text("/proc/driver/nvidia/version");
	(void)snprintf(out, room, "unknown");
	for (const char *at = text; at && *at && *at != '\n'; at++) {
		const size_t length = strspn(at, "0123456789.");
		const bool begins = at == text || isspace((unsigned char)at[-1]);
		if (begins && length >= 4 && isspace((unsigned char)at[length]) &&
			memchr(at, '.', length)) {
			(void)snprintf(out, room, "%.*s", (int)length, at);
			break;
		}
	}
	free(text);
}

/* The driver's files say which GPUs there are, without starting anything on them. */
static void read_gpus(char gpu[CEILINGS_NAME_BYTES])
{
	char model[48] = "";
	char version[24];
	glob_t found;
	size_t count = 0;
	if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
		count = found.gl_pathc;
		char *text = proc_text(found.gl_pathv[0]);
		if (!text || !parse_field(text, "Model", model, sizeof model))
			(void)snprintf(model, sizeof model, "unknown GPU");
		free(text);
		globfree(&found);
	}
	driver_version(version, sizeof version);
	if (count == 1)
		(void)snprintf(gpu, CEILINGS_NAME_BYTES, "%s, driver %s", model, version);
	else if (count > 1)
		(void)snprintf(
			gpu, CEILINGS_NAME_BYTES, "%zu x %.38s, driver %s", count, model, version);
}

/* The end of a long path tells two of them apart. */
static void add_plugin(char gpu[CEILINGS_NAME_BYTES])
{
	const char *path = getenv("MLBENCH_CUDA_PLUGIN");
	if (!path || !*path)
		return;
	const size_t used = strlen(gpu);
	const size_t room = CEILINGS_NAME_BYTES - used;
	const char *const head = used ? ", plug-in " : "plug-in ";
	const size_t length = strlen(path);
	const size_t fits = room > strlen(head) + 1 ? room - strlen(head) - 1 : 0;
	(void)snprintf(gpu + used, room, "%s%s", head, path + (length > fits ? length - fits : 0));
}

void node_gpus(char gpu[CEILINGS_NAME_BYTES])
{
	gpu[0] = '\0';
	read_gpus(gpu);
	add_plugin(gpu);
}

/* A sheet that was made under a limit is not that of a job without it, nor the reverse.  A group's name is left
 * out: each job may have another. */
static void add_read_limit_words(const struct mount_entry *mount, char storage[NOTE_BYTES])
{
	struct cgroup_read_limits limits;
	char words[READ_LIMIT_WORDS_BYTES];
	const size_t used = strlen(storage);
	struct block_disk *disk = malloc(sizeof *disk);
	if (!disk)
		return;
	block_disk_find(mount, disk);
	cgroup_read_limits(disk->numbers, disk->count, &limits);
	free(disk);
	if (cgroup_read_limit_words(&limits, words)[0])
		(void)snprintf(storage + used, NOTE_BYTES - used,
			" (a control group limits reads to %s)", words);
}

int node_identify(const char *data_path, struct node_identity *node, struct error *err)
{
	*node = (struct node_identity){.cores = probe_cores()};
	struct mount_entry *mount = malloc(sizeof *mount);
	if (!mount)
		return error_set(err, -ENOMEM, "out of memory");
	const int code = proc_mount_of(data_path, mount);
	/* Below a changed root no mount need be listed that holds the path. */
	if (!code) {
		(void)snprintf(node->storage, sizeof node->storage, "%.40s on %.200s", mount->type,
			mount->source);
		add_read_limit_words(mount, node->storage);
	} else if (code == -ENOENT)
		(void)snprintf(node->storage, sizeof node->storage, "unknown file system");
	free(mount);
	if (code && code != -ENOENT)
		return error_set_errno(
			err, -code, "cannot find the file system of '%s'", data_path);
	read_node_cpu(node);
	read_node_names(node);
	node_gpus(node->gpu);
	return 0;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(text, strlen(text) + 1, hash);
}

void node_key(const struct node_identity *node, char out[CEILINGS_NODE_BYTES])
{
	char cores[16];
	(void)snprintf(cores, sizeof cores, "%u", node->cores);
	const uint64_t hardware =
		hash_text(hash_text(hash_text(0, node->machine), node->cpu), node->storage);
	uint64_t state = hash_text(hash_text(0, cores), node->kernel);
	if (node->gpu[0])
		state = hash_text(state, node->gpu);
	(void)snprintf(out, CEILINGS_NODE_BYTES, "%016" PRIx64 "-%016" PRIx64, hardware, state);
}

void node_describe(const struct node_identity *node, struct ceilings *ceilings)
{
	node_key(node, ceilings->node);
	ceilings->cores = node->cores;
	(void)snprintf(ceilings->host, sizeof ceilings->host, "%s", node->host);
	(void)snprintf(ceilings->cpu, sizeof ceilings->cpu, "%s", node->cpu);
	(void)snprintf(ceilings->kernel, sizeof ceilings->kernel, "%s", node->kernel);
	(void)snprintf(ceilings->gpu, sizeof ceilings->gpu, "%s", node->gpu);
	(void)snprintf(ceilings->storage, sizeof ceilings->storage, "%s", node->storage);
}
