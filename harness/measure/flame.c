/* The sampler: which threads are whose, what counts, the thread that takes samples in, and the tree that they end in. */
#include "harness/measure/flame_parts.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	NODES_FIRST = 1 << 12,
	NODES_MAX = 1 << 20,
	NAMES_FIRST = 1 << 8,
};

static size_t mix_hash(uint64_t value, uint64_t parent)
{
	uint64_t x = (value ^ (parent * 0x9E3779B97F4A7C15ULL)) * 0xD6E8FEB86659FD93ULL;
	x ^= x >> 32;
	return (size_t)(x * 0xD6E8FEB86659FD93ULL >> 20);
}

/* --- the tree of addresses ------------------------------------------------------------------------------------------- */

static void close_tree(struct flame_tree *tree)
{
	free(tree->nodes);
	free(tree->slots);
	*tree = (struct flame_tree){0};
}

static int open_tree(struct flame_tree *tree)
{
	*tree = (struct flame_tree){.room = NODES_FIRST, .slot_count = 2 * NODES_FIRST};
	tree->nodes = calloc(tree->room, sizeof *tree->nodes);
	tree->slots = calloc(tree->slot_count, sizeof *tree->slots);
	if (!tree->nodes || !tree->slots) {
		close_tree(tree);
		return -ENOMEM;
	}
	tree->count = FLAME_STAGES_MAX;
	for (uint32_t i = 0; i < FLAME_STAGES_MAX; i++)
		tree->nodes[i].parent = FLAME_ROOT;
	return 0;
}

/* Where such a node's number is, or would be; slots keep the number + 1, stages are never looked for. */
static uint32_t *find_node(const struct flame_tree *tree, uint32_t parent, uint64_t pc, bool kernel)
{
	const size_t mask = tree->slot_count - 1;
	size_t i = mix_hash(pc, 2 * (uint64_t)parent + kernel) & mask;
	for (; tree->slots[i]; i = (i + 1) & mask) {
		const struct flame_node *node = &tree->nodes[tree->slots[i] - 1];
		if (node->pc == pc && node->parent == parent && node->kernel == kernel)
			break;
	}
	return &tree->slots[i];
}

static bool grow_tree(struct flame_tree *tree)
{
	struct flame_tree next = *tree;
	if (tree->room >= NODES_MAX)
		return false;
	next.room = 2 * tree->room;
	next.slot_count = 2 * next.room;
	next.slots = calloc(next.slot_count, sizeof *next.slots);
	if (!next.slots)
		return false;
	next.nodes = realloc(tree->nodes, next.room * sizeof *next.nodes);
	if (!next.nodes) {
		free(next.slots);
		return false;
	}
	for (uint32_t i = FLAME_STAGES_MAX; i < next.count; i++)
		*find_node(&next, next.nodes[i].parent, next.nodes[i].pc, next.nodes[i].kernel) =
			i + 1;
	free(tree->slots);
	*tree = next;
	return true;
}

/* The frame below parent; FLAME_ROOT without room for it. */
static uint32_t step_in_tree(struct flame_tree *tree, uint32_t parent, uint64_t pc, bool kernel)
{
	uint32_t *slot = find_node(tree, parent, pc, kernel);
	if (*slot)
		return *slot - 1;
	if (tree->count == tree->room) {
		if (!grow_tree(tree))
			return FLAME_ROOT;
		slot = find_node(tree, parent, pc, kernel);
	}
	const uint32_t number = (uint32_t)tree->count++;
	tree->nodes[number] = (struct flame_node){.pc = pc, .parent = parent, .kernel = kernel};
	*slot = number + 1;
	return number;
}

/* --- from addresses to names ------------------------------------------------------------------------------------------------- */

/* Frames of the profile while it is built: hashes over its frames and over its names. */
struct naming {
	struct flame_profile *out;
	struct flame_unwinder *unwinder;
	struct flame_kernel *kernel;
	size_t frame_room, name_room;
	uint32_t *frame_slots, *name_slots; /* number + 1 */
	size_t frame_slot_count, name_slot_count;
	bool failed;
};

static uint32_t *find_name(const struct naming *n, const char *name)
{
	uint64_t hash = 0xCBF29CE484222325ULL;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 0x100000001B3ULL;
	const size_t mask = n->name_slot_count - 1;
	size_t i = mix_hash(hash, 0) & mask;
	while (n->name_slots[i] && strcmp(n->out->names[n->name_slots[i] - 1], name) != 0)
		i = (i + 1) & mask;
	return &n->name_slots[i];
}

static bool grow_names(struct naming *n)
{
	const size_t room = n->name_room ? 2 * n->name_room : NAMES_FIRST;
	uint32_t *const slots = calloc(2 * room, sizeof *slots);
	char **const names = realloc(n->out->names, room * sizeof *names);
	if (names)
		n->out->names = names;
	if (!slots || !names) {
		free(slots);
		return false;
	}
	free(n->name_slots);
	n->name_slots = slots;
	n->name_slot_count = 2 * room;
	n->name_room = room;
	for (size_t i = 0; i < n->out->name_count; i++)
		*find_name(n, names[i]) = (uint32_t)i + 1;
	return true;
}

static uint32_t intern_name(struct naming *n, const char *name)
{
	if ((!n->name_slots || n->out->name_count == n->name_room) && !grow_names(n)) {
		n->failed = true;
		return 0;
	}
	uint32_t *const slot = find_name(n, name);
	if (*slot)
		return *slot - 1;
	char *const copy = strdup(name);
	if (!copy) {
		n->failed = true;
		return 0;
	}
	n->out->names[n->out->name_count++] = copy;
	*slot = (uint32_t)n->out->name_count;
	return *slot - 1;
}

static uint32_t *find_profile_frame(
	const struct naming *n, uint32_t parent, uint32_t name, bool kernel)
{
	const size_t mask = n->frame_slot_count - 1;
	size_t i = mix_hash(name, 2 * (uint64_t)parent + kernel) & mask;
	for (; n->frame_slots[i]; i = (i + 1) & mask) {
		const struct flame_frame *frame = &n->out->frames[n->frame_slots[i] - 1];
		if (frame->parent == parent && frame->name == name && frame->kernel == kernel)
			break;
	}
	return &n->frame_slots[i];
}

static bool grow_frames(struct naming *n)
{
	const size_t room = n->frame_room ? 2 * n->frame_room : NODES_FIRST;
	uint32_t *const slots = calloc(2 * room, sizeof *slots);
	struct flame_frame *const frames = realloc(n->out->frames, room * sizeof *frames);
	if (frames)
		n->out->frames = frames;
	if (!slots || !frames) {
		free(slots);
		return false;
	}
	free(n->frame_slots);
	n->frame_slots = slots;
	n->frame_slot_count = 2 * room;
	n->frame_room = room;
	for (size_t i = 0; i < n->out->frame_count; i++)
		*find_profile_frame(n, frames[i].parent, frames[i].name, frames[i].kernel) =
			(uint32_t)i + 1;
	return true;
}

static uint32_t frame_below(struct naming *n, uint32_t parent, const char *text, bool kernel)
{
	const uint32_t name = intern_name(n, text);
	if (n->failed ||
		((!n->frame_slots || n->out->frame_count == n->frame_room) && !grow_frames(n))) {
		n->failed = true;
		return 0;
	}
	uint32_t *const slot = find_profile_frame(n, parent, name, kernel);
	if (*slot)
		return *slot - 1;
	n->out->frames[n->out->frame_count++] =
		(struct flame_frame){.parent = parent, .name = name, .kernel = kernel};
	*slot = (uint32_t)n->out->frame_count;
	return *slot - 1;
}

/* What starts every thread and every program says nothing: its callees stand below the stage. */
static bool is_start(const char *name)
{
	static const char *const starts[] = {"clone3", "__clone3", "clone", "__clone",
		"start_thread", "_start", "__libc_start_main", "__libc_start_main_impl",
		"__libc_start_main@@GLIBC_2.34", "__libc_start_call_main"};
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		if (strcmp(name, starts[i]) == 0)
			return true;
	return false;
}

/* Functions without names that call each other are one: a pile of "[libx.so]" says no more than one does. */
static bool is_same_module(const struct naming *n, uint32_t parent, const char *name)
{
	const struct flame_frame *const frame = &n->out->frames[parent];
	return name[0] == '[' && frame->parent != FLAME_ROOT &&
	       strcmp(n->out->names[frame->name], name) == 0;
}

static uint32_t name_node(struct naming *n, const struct flame_node *node, uint32_t parent)
{
	if (node->pc == FLAME_PC_TRUNCATED)
		return frame_below(n, parent, FLAME_TRUNCATED, false);
	if (node->kernel)
		return frame_below(n, parent, flame_kernel_name(n->kernel, node->pc), true);
	char names[FLAME_INLINED_MAX][FLAME_NAME_BYTES];
	const size_t count = flame_user_names(n->unwinder, node->pc, names, FLAME_INLINED_MAX);
	const bool top = n->out->frames[parent].parent == FLAME_ROOT;
	for (size_t i = 0; i < count && !n->failed; i++)
		if (!(top && is_start(names[i])) && !is_same_module(n, parent, names[i]))
			parent = frame_below(n, parent, names[i], false);
	return parent;
}

static int name_all(struct naming *n, const struct flame_tree *tree, const char *const *stages)
{
	uint32_t *const frames = calloc(tree->count, sizeof *frames); /* of each node */
	if (!frames)
		return -ENOMEM;
	for (size_t i = 0; i < tree->count && !n->failed; i++) {
		const struct flame_node *node = &tree->nodes[i];
		if (node->parent != FLAME_ROOT)
			frames[i] = name_node(n, node, frames[node->parent]);
		else if (stages[i])
			frames[i] = frame_below(n, FLAME_ROOT, stages[i], false);
		else
			continue;
		if (!n->failed)
			n->out->frames[frames[i]].self += node->self;
	}
	free(frames);
	return n->failed ? -ENOMEM : 0;
}

static void add_up_frames(struct flame_profile *out)
{
	for (size_t i = out->frame_count; i-- > 0;) {
		struct flame_frame *frame = &out->frames[i];
		frame->total += frame->self;
		if (frame->parent != FLAME_ROOT)
			out->frames[frame->parent].total += frame->total;
	}
}

static bool has_kernel(const struct flame_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->nodes[i].kernel)
			return true;
	return false;
}

/* From addresses to names; -ENOMEM. */
static int name_tree(const struct flame_tree *tree, const char *const *stages,
	struct flame_unwinder *unwinder, struct flame_profile *out)
{
	struct naming n = {.out = out, .unwinder = unwinder};
	n.kernel = has_kernel(tree) ? flame_kernel_open() : NULL;
	const int code = name_all(&n, tree, stages);
	flame_kernel_close(n.kernel);
	free(n.frame_slots);
	free(n.name_slots);
	if (!code)
		add_up_frames(out);
	return code;
}

void flame_profile_release(struct flame_profile *profile)
{
	for (size_t i = 0; i < profile->name_count; i++)
		free(profile->names[i]);
	free(profile->names);
	free(profile->frames);
	*profile = (struct flame_profile){0};
}

enum { COMM_BYTES = 32, STAGE_OTHER = 0 };

/* Hooks hold the gate while they use it: a thread that outlives its run may end at any time. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct flame *) current;

static pid_t own_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

const char *flame_method_name(enum flame_method method)
{
	return method == FLAME_PERF ? "perf_event" : "clock signals";
}

/* --- threads, under the lock ------------------------------------------------------------------------------ */

struct flame_thread *flame_thread_slot(struct flame *flame, pid_t tid)
{
	struct flame_thread *unused = NULL;
	for (size_t i = 0; i < flame->thread_count; i++) {
		struct flame_thread *const thread = &flame->threads[i];
		if (thread->tid == tid)
			return thread;
		if (thread->tid == 0 && !unused)
			unused = thread;
	}
	if (!unused && flame->thread_count < FLAME_THREADS_MAX)
		unused = &flame->threads[flame->thread_count++];
	if (unused)
		*unused = (struct flame_thread){.tid = tid, .ring = unused->ring};
	return unused;
}

static uint32_t stage_number(struct flame *flame, const char *stage)
{
	for (uint32_t i = 0; i < flame->stage_count; i++)
		if (strcmp(flame->stages[i], stage) == 0)
			return i;
	if (flame->stage_count == FLAME_STAGES_MAX)
		return STAGE_OTHER;
	flame->stages[flame->stage_count] = stage;
	return flame->stage_count++;
}

static void register_sampled(struct flame *flame, const char *stage, uint64_t base)
{
	(void)pthread_mutex_lock(&flame->lock);
	struct flame_thread *const thread = flame_thread_slot(flame, own_tid());
	if (thread) {
		thread->stage = stage_number(flame, stage);
		thread->base = base;
		thread->registered = true;
		thread->ended = thread->leaving = false;
		flame->generation++;
		if (flame->signals)
			flame_signals_arm(flame, thread);
	} else {
		flame->profile.unsampled_threads++;
	}
	(void)pthread_mutex_unlock(&flame->lock);
}

static void end_thread(struct flame *flame)
{
	const pid_t tid = own_tid();
	(void)pthread_mutex_lock(&flame->lock);
	for (size_t i = 0; i < flame->thread_count; i++) {
		struct flame_thread *const thread = &flame->threads[i];
		if (thread->tid != tid)
			continue;
		if (flame->signals)
			flame_signals_disarm(flame, thread);
		thread->ended = true;
	}
	(void)pthread_mutex_unlock(&flame->lock);
}

/* What called the caller started the thread, and says nothing. */
__attribute__((noinline)) void flame_thread_begin(const char *stage)
{
	if (!atomic_load(&current))
		return;
	const uint64_t base = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(uint64_t);
	(void)pthread_mutex_lock(&gate);
	struct flame *const flame = atomic_load(&current);
	if (flame)
		register_sampled(flame, stage, base);
	(void)pthread_mutex_unlock(&gate);
}

void flame_thread_end(void)
{
	if (!atomic_load(&current))
		return;
	(void)pthread_mutex_lock(&gate);
	struct flame *const flame = atomic_load(&current);
	if (flame)
		end_thread(flame);
	(void)pthread_mutex_unlock(&gate);
}

/* --- whose a sample is: the drain --------------------------------------------------------------------------- */

static void read_comm(pid_t tid, char out[COMM_BYTES])
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)tid);
	(void)files_first_line(path, out, COMM_BYTES);
}

/* Under the lock: of a thread that did not say. The program's own first thread lends its name to many. */
static uint32_t guess_stage(struct flame *flame, pid_t tid)
{
	char name[COMM_BYTES];
	char other[COMM_BYTES];
	read_comm(tid, name);
	for (size_t i = 0; name[0] && i < flame->thread_count; i++) {
		const struct flame_thread *const thread = &flame->threads[i];
		if (!thread->tid || !thread->registered || thread->tid == flame->pid)
			continue;
		read_comm(thread->tid, other);
		if (strcmp(name, other) == 0)
			return thread->stage;
	}
	return STAGE_OTHER;
}

static struct flame_known find_thread(struct flame *flame, pid_t tid)
{
	struct flame_known known = {0};
	(void)pthread_mutex_lock(&flame->lock);
	for (size_t i = 0; i < flame->thread_count && !known.tid; i++) {
		const struct flame_thread *const thread = &flame->threads[i];
		if (thread->tid == tid && thread->registered)
			known = (struct flame_known){tid, thread->stage, thread->base};
	}
	if (!known.tid)
		known = (struct flame_known){tid, guess_stage(flame, tid), 0};
	(void)pthread_mutex_unlock(&flame->lock);
	return known;
}

static const struct flame_known *known_thread(struct flame *flame, pid_t tid)
{
	struct flame_known *const known = &flame->known[(unsigned)tid % FLAME_KNOWN];
	if (known->tid != tid)
		*known = find_thread(flame, tid);
	return known;
}

static bool is_counted(const struct flame *flame, uint64_t time_ns)
{
	for (size_t i = 0; i < FLAME_WINDOWS_KEPT && i < flame->copied_count; i++)
		if (time_ns >= flame->copied[i][0] && time_ns < flame->copied[i][1])
			return true;
	return false;
}

static uint32_t step_down(
	struct flame *flame, uint32_t node, const uint64_t *pcs, size_t count, bool kernel)
{
	while (count-- > 0 && node != FLAME_ROOT)
		node = step_in_tree(&flame->tree, node, pcs[count], kernel);
	return node;
}

static size_t kernel_depth(const struct flame_raw *raw)
{
	return raw->kernel_count < FLAME_DEPTH_MAX ? raw->kernel_count : FLAME_DEPTH_MAX;
}

/* Before anything counts stacks are unwound all the same: tables are read in the warm-up, and not in what is measured. */
bool flame_take(struct flame *flame, const struct flame_raw *raw)
{
	uint64_t pcs[FLAME_DEPTH_MAX];
	const bool counted = is_counted(flame, raw->time_ns);
	if (!counted) {
		flame->profile.outside += raw->weight;
		if (flame->copied_count > 0)
			return true;
	}
	const struct flame_known *const thread = known_thread(flame, raw->tid);
	struct flame_raw based = *raw;
	based.base = thread->base;
	bool whole = true;
	const size_t count =
		raw->has_user ? flame_unwind(flame->unwinder, &based, pcs, FLAME_DEPTH_MAX, &whole)
			      : 0;
	if (!counted)
		return whole;
	uint32_t node = thread->stage;
	if (!whole)
		node = step_in_tree(&flame->tree, node, FLAME_PC_TRUNCATED, false);
	node = step_down(flame, node, pcs, count, false);
	node = step_down(flame, node, raw->kernel, kernel_depth(raw), true);
	if (node == FLAME_ROOT) {
		flame->profile.lost += raw->weight;
		return whole;
	}
	flame->tree.nodes[node].self += raw->weight;
	flame->profile.samples += raw->weight;
	flame->profile.truncated += whole ? 0 : raw->weight;
	return whole;
}

/* When they were lost is known to a moment: it counts if anything did. */
void flame_lose(struct flame *flame, uint64_t count)
{
	if (flame->copied_count > 0)
		flame->profile.lost += count;
}

/* --- what counts ----------------------------------------------------------------------------------------------- */

static void begin_window(struct flame *flame, uint64_t now_ns)
{
	uint64_t *const window = flame->windows[flame->window_count++ % FLAME_WINDOWS_KEPT];
	window[0] = now_ns;
	window[1] = UINT64_MAX;
	flame->window_cpu_ns = clock_process_cpu_ns();
	flame->profile.windows++;
}

static void end_window(struct flame *flame, uint64_t now_ns)
{
	uint64_t *const window = flame->windows[(flame->window_count - 1) % FLAME_WINDOWS_KEPT];
	window[1] = now_ns;
	flame->profile.seconds += (double)(now_ns - window[0]) / (double)NS_PER_S;
	flame->profile.cpu_s +=
		(double)(clock_process_cpu_ns() - flame->window_cpu_ns) / (double)NS_PER_S;
}

static void set_counting(struct flame *flame, bool on)
{
	(void)pthread_mutex_lock(&flame->lock);
	const uint64_t count = flame->window_count;
	const bool is_on =
		count > 0 && flame->windows[(count - 1) % FLAME_WINDOWS_KEPT][1] == UINT64_MAX;
	if (on && !is_on)
		begin_window(flame, clock_now_ns());
	else if (!on && is_on)
		end_window(flame, clock_now_ns());
	(void)pthread_mutex_unlock(&flame->lock);
}

void flame_count(bool on)
{
	if (!atomic_load(&current))
		return;
	(void)pthread_mutex_lock(&gate);
	struct flame *const flame = atomic_load(&current);
	if (flame)
		set_counting(flame, on);
	(void)pthread_mutex_unlock(&gate);
}

/* --- the drain --------------------------------------------------------------------------------------------------- */

static void copy_state(struct flame *flame)
{
	(void)pthread_mutex_lock(&flame->lock);
	memcpy(flame->copied, flame->windows, sizeof flame->copied);
	flame->copied_count = flame->window_count;
	if (flame->known_generation != flame->generation)
		memset(flame->known, 0, sizeof flame->known);
	flame->known_generation = flame->generation;
	for (size_t i = 0; i < flame->thread_count; i++)
		flame->threads[i].leaving = flame->threads[i].ended;
	(void)pthread_mutex_unlock(&flame->lock);
}

/* What ended before the rings were emptied has nothing in them any more. */
static void free_thread_slots(struct flame *flame)
{
	(void)pthread_mutex_lock(&flame->lock);
	for (size_t i = 0; i < flame->thread_count; i++) {
		struct flame_thread *const thread = &flame->threads[i];
		if (!thread->leaving)
			continue;
		if (flame->signals)
			flame_signals_disarm(flame, thread);
		*thread = (struct flame_thread){.ring = thread->ring};
		flame->generation++;
	}
	(void)pthread_mutex_unlock(&flame->lock);
}

static void drain_samples(struct flame *flame)
{
	copy_state(flame);
	if (flame->perf)
		flame_perf_drain(flame);
	else
		flame_signals_drain(flame);
	free_thread_slots(flame);
}

static void *drain_main(void *context)
{
	struct flame *const flame = context;
	register_sampled(flame, FLAME_SAMPLER, 0);
	while (!atomic_load(&flame->stopping)) {
		if (flame->perf)
			flame_perf_wait(flame);
		else
			flame_signals_wait(flame);
		drain_samples(flame);
	}
	end_thread(flame);
	return NULL;
}

/* --- opening and the end -------------------------------------------------------------------------------------- */

static int open_method(struct flame *flame, struct error *err)
{
	struct error why = {0};
	flame->profile.period_ns = NS_PER_S / FLAME_RATE_HZ;
	const enum flame_method wanted = flame->options.method;
	if (wanted != FLAME_SIGNALS) {
		flame->profile.method = FLAME_PERF;
		const int code = flame_perf_open(flame, wanted == FLAME_PERF ? err : &why);
		if (!code || wanted == FLAME_PERF)
			return code;
	} else {
		(void)snprintf(why.text, sizeof why.text, "signals were asked for");
	}
	flame->profile.method = FLAME_SIGNALS;
	(void)snprintf(flame->profile.why_not_perf, sizeof flame->profile.why_not_perf, "%.*s",
		FLAME_WHY_BYTES - 1, why.text);
	return flame_signals_open(flame, err);
}

static void stop_sampling(struct flame *flame)
{
	if (flame->perf)
		flame_perf_stop(flame);
	if (flame->signals)
		flame_signals_stop(flame);
	if (!flame->drains)
		return;
	atomic_store(&flame->stopping, true);
	(void)pthread_join(flame->drain, NULL);
	flame->drains = false;
	drain_samples(flame); /* what came between its last look and the stop */
	if (flame->perf)
		flame_perf_lose_rest(flame);
}

static int open_sampler(struct flame *flame, struct error *err)
{
	int code = open_tree(&flame->tree);
	if (code)
		return error_set(err, code, "out of memory");
	code = flame_unwinder_open(&flame->unwinder, err);
	if (code)
		return code;
	code = open_method(flame, err);
	if (code)
		return error_prefix(err, -ENOTSUP, "cannot sample the CPU time");
	code = pthread_create(&flame->drain, NULL, drain_main, flame);
	if (code)
		return error_set_errno(err, code, "cannot start the sampler's thread");
	flame->drains = true;
	(void)pthread_setname_np(flame->drain, "mlb-flame");
	return 0;
}

static size_t stack_bytes(const struct flame_options *options)
{
	const size_t bytes = options->stack_bytes ? options->stack_bytes : FLAME_STACK_BYTES;
	return (bytes > FLAME_STACK_BYTES_MAX ? FLAME_STACK_BYTES_MAX : bytes) / 8 * 8;
}

int flame_open(struct flame **out, const struct flame_options *options, struct error *err)
{
#if !defined(__x86_64__)
	(void)options;
	*out = NULL;
	return error_set(err, -ENOTSUP, "flame graphs are known to x86-64 only");
#else
	struct flame *flame = calloc(1, sizeof *flame);
	*out = NULL;
	if (!flame || pthread_mutex_init(&flame->lock, NULL)) {
		free(flame);
		return error_set(err, -ENOMEM, "out of memory");
	}
	flame->options = *options;
	flame->options.stack_bytes = stack_bytes(options);
	flame->pid = getpid();
	(void)stage_number(flame, FLAME_OTHER);
	register_sampled(flame, FLAME_CONTROL, 0);
	struct flame *none = NULL;
	if (!atomic_compare_exchange_strong(&current, &none, flame)) {
		(void)pthread_mutex_destroy(&flame->lock);
		free(flame);
		return error_set(err, -EBUSY, "the CPU time is being sampled already");
	}
	const int code = open_sampler(flame, err);
	if (code)
		flame_close(flame);
	else
		*out = flame;
	return code;
#endif
}

void flame_facts(const struct flame *flame, struct flame_profile *out)
{
	*out = (struct flame_profile){
		.method = flame->profile.method, .period_ns = flame->profile.period_ns};
	memcpy(out->why_not_perf, flame->profile.why_not_perf, sizeof out->why_not_perf);
}

int flame_finish(struct flame *flame, struct flame_profile *out, struct error *err)
{
	*out = (struct flame_profile){0};
	set_counting(flame, false);
	stop_sampling(flame);
	struct flame_profile profile = flame->profile;
	const int code = name_tree(&flame->tree, flame->stages, flame->unwinder, &profile);
	*out = profile;
	return code ? error_set(err, code, "out of memory for the names of what was sampled") : 0;
}

void flame_close(struct flame *flame)
{
	if (!flame)
		return;
	stop_sampling(flame);
	(void)pthread_mutex_lock(&gate);
	atomic_store(&current, NULL);
	(void)pthread_mutex_unlock(&gate);
	flame_perf_close(flame);
	flame_signals_close(flame);
	flame_unwinder_close(flame->unwinder);
	close_tree(&flame->tree);
	(void)pthread_mutex_destroy(&flame->lock);
	free(flame);
}
