/* slowfs: a folder once more, read-only, as a storage whose limits are known.
 *
 *   slowfs FOLDER MOUNT [OPTION ...]        see usage below; stays in the foreground until it is ended
 *
 * One thread takes requests and waits for nothing.  A model in virtual time (store_*) says when each
 * is due, and a few threads answer then: so nothing but the planted limits holds a request up, however
 * many are in flight.  The kernel's own limit on them (max_background, 12 by default) is set far
 * higher.  An event that is handled late counts from when it was due, so rates do not drift.
 *
 * A read passes, in this order: the limit of requests (iops), a free slot, its latency, its transfer
 * (bytes_per_s).  It keeps its slot until the end.  Open, stat and readdir take their time and pass
 * none of these.  Whatever passes stands still in a stall or an outage.  Some files, or some requests
 * at random, may take longer (slow_share).  The folder is looked through once, at the start, and has
 * to stay as it is. */
#define FUSE_USE_VERSION 312
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000.0
#define NS_PER_MS 1000000.0
#define NS_PER_US 1000.0
#define NEVER UINT64_MAX

enum {
	ANSWERERS = 8, /* threads that copy bytes and answer; they wait for nothing but a core */
	IN_FLIGHT_MOST = 4096, /* requests that the kernel may have under way in the background */
	CACHED_S = 3600,  /* the kernel may keep names and attributes: the folder stays as it is */
	WINDOWS_MOST = 2, /* kinds of times in which nothing passes: stalls, an outage */
};

enum distribution { FIXED, EXPONENTIAL, LOGNORMAL };

struct limits {
	double latency_ns, sigma;
	double ageing_ns;           /* that the latency grows by in each second of the run */
	double slow_share, slow_ns; /* so many take so much longer, on average */
	enum distribution distribution;
	double open_ns, stat_ns, readdir_ns;
	double slots;                    /* 0: any number */
	double bytes_per_s, burst_bytes; /* 0: any rate */
	double requests_per_s, burst_requests;
	bool shared; /* transfers share the bandwidth instead of taking turns */
	double stall_every_ns, stall_for_ns;
	double outage_at_ns, outage_for_ns;
};

static struct {
	const char *folder, *mount;
	struct limits limits[2]; /* before and after the change */
	double change_at_ns;
	bool changes, direct_io, keep_cache;
	bool slow_random; /* each request draws; otherwise it is the same files always */
	bool slow_opens;  /* opening a slow file takes longer, not reading it */
	double cached_s;
	uint64_t seed;
} options = {.cached_s = CACHED_S, .seed = 1};

static const char usage[] =
	"usage: slowfs FOLDER MOUNT [OPTION ...]\n"
	"  --latency US           of a read; --distribution fixed|exponential|lognormal, --sigma S\n"
	"  --ageing US            that the latency grows by in each second\n"
	"  --slow-share S --slow US   some files take longer, half to one and a half of US, always the\n"
	"                         same; --slow-random: any read; --slow-opens: to open, not to read\n"
	"  --open US --stat US --readdir US\n"
	"  --slots N              reads that are worked on at once\n"
	"  --bytes-per-s B        --burst-bytes B; --shared: side by side, not one after the other\n"
	"  --iops N               --burst-requests N\n"
	"  --stall-every MS --stall-for MS\n"
	"  --outage-at S --outage-for S\n"
	"  --change-at S          options after this one hold from then on\n"
	"  --direct-io --keep-cache --cached S --seed N\n"
	"Ageing, outage and change count from the first SIGUSR1; until then there is none.\n";

static struct {
	uint64_t begun;           /* stalls count from here */
	_Atomic uint64_t started; /* the first SIGUSR1; 0: none yet */
} times;

static uint64_t clock_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- the folder -------------------------------------------------------------------------------------- */

struct node {
	char *path;
	const char *name; /* the end of path */
	struct stat stat;
	size_t first, count; /* its children lie side by side, by name */
	size_t number;       /* of a file among the files */
};

static struct {
	struct node *nodes; /* [0] is the folder itself, inode 1 */
	size_t count, room, files;
} tree;

static void die(const char *what, const char *subject)
{
	fprintf(stderr, "slowfs: %s '%s': %s\n", what, subject, strerror(errno));
	exit(1);
}

static void *must(void *allocated)
{
	if (!allocated)
		die("allocating", "memory");
	return allocated;
}

static void tree_add(const char *folder, const char *name)
{
	if (tree.count == tree.room) {
		tree.room = 2 * tree.room + 64;
		tree.nodes = must(realloc(tree.nodes, tree.room * sizeof(*tree.nodes)));
	}
	struct node node = {.count = 0};
	if (asprintf(&node.path, "%s%s%s", folder, *name ? "/" : "", name) < 0)
		die("allocating", name);
	if (stat(node.path, &node.stat) != 0)
		die("looking at", node.path);
	node.name = node.path + strlen(folder) + (*name ? 1 : 0);
	node.stat.st_ino = tree.count + 1;
	node.number = S_ISREG(node.stat.st_mode) ? tree.files++ : 0;
	if (S_ISDIR(node.stat.st_mode) || S_ISREG(node.stat.st_mode))
		tree.nodes[tree.count++] = node;
	else
		free(node.path);
}

/* Breadth first: that puts children side by side. */
static void tree_build(const char *folder)
{
	tree_add(folder, "");
	for (size_t i = 0; i < tree.count; i++) {
		if (!S_ISDIR(tree.nodes[i].stat.st_mode))
			continue;
		struct dirent **entries;
		const int found = scandir(tree.nodes[i].path, &entries, NULL, alphasort);
		if (found < 0)
			die("listing", tree.nodes[i].path);
		tree.nodes[i].first = tree.count;
		for (int k = 0; k < found; k++) {
			const char *const name = entries[k]->d_name;
			if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
				tree_add(tree.nodes[i].path, name);
			free(entries[k]);
		}
		free(entries);
		tree.nodes[i].count = tree.count - tree.nodes[i].first;
	}
}

static struct node *tree_node(fuse_ino_t ino)
{
	return &tree.nodes[ino - 1];
}

static int tree_compare(const void *name, const void *node)
{
	return strcoll(name, ((const struct node *)node)->name);
}

static struct node *tree_find(fuse_ino_t parent, const char *name)
{
	const struct node *const folder = tree_node(parent);
	return bsearch(
		name, tree.nodes + folder->first, folder->count, sizeof(struct node), tree_compare);
}

/* --- the store: when is a request due? ----------------------------------------------------------------- */

enum stage { ADMITTED, SERVED, FINISHED };

struct request {
	fuse_req_t fuse;
	void (*answer)(struct request *request);
	fuse_ino_t ino;
	struct fuse_file_info file;
	size_t size;
	off_t offset;
	struct limits *limits; /* as they were when it came */
	uint64_t came, due;    /* ns */
	enum stage next;
	bool has_slot, may_be_slow;
	double end; /* of its transfer, in bytes that each of those sharing has got by then */
	struct request *after;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed, finished;
	struct request **heap; /* by due */
	size_t count, room;
	struct request *waiting, **waiting_end; /* for a slot */
	double busy;                            /* slots */
	double request_tat, pipe_tat;           /* ns: when the buckets are level again (GCRA) */
	struct request *sharing;                /* by end */
	double shared_bytes;                    /* that each of them has got */
	uint64_t shared_at;
	size_t sharers;
	struct request *done, **done_end;
	uint64_t random, reads, read_bytes;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.finished = PTHREAD_COND_INITIALIZER,
	.waiting_end = &store.waiting,
	.done_end = &store.done};

/* splitmix64, in (0, 1). */
static double store_hash(uint64_t z)
{
	z *= 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static double store_draw(void)
{
	return store_hash(store.random++);
}

/* The mean is latency_ns, and what it has aged by at t, whatever the distribution. */
static double store_latency(const struct limits *limits, double t)
{
	const uint64_t started = atomic_load(&times.started);
	const double age = started ? fmax(0, t - (double)started) / NS_PER_S : 0;
	const double mean = limits->latency_ns + limits->ageing_ns * age;
	switch (limits->distribution) {
	case EXPONENTIAL:
		return -mean * log(store_draw());
	case LOGNORMAL: {
		const double normal = sqrt(-2 * log(store_draw())) * cos(2 * M_PI * store_draw());
		const double sigma = limits->sigma;
		return mean * exp(sigma * normal - sigma * sigma / 2);
	}
	default:
		return mean;
	}
}

/* What it takes longer.  Of each 1 / slow_share files one is slow, and as slow each time. */
static double store_slowness(const struct request *request)
{
	const struct limits *const limits = request->limits;
	if (!request->may_be_slow || limits->slow_share <= 0)
		return 0;
	if (options.slow_random)
		return store_draw() < limits->slow_share ? limits->slow_ns * (0.5 + store_draw())
							 : 0;
	const size_t number = tree_node(request->ino)->number;
	const uint64_t row = (uint64_t)((double)number * limits->slow_share);
	const double place = store_hash(options.seed * tree.files + row);
	if ((size_t)(((double)row + place) / limits->slow_share) != number)
		return 0;
	return limits->slow_ns * (0.5 + store_hash(options.seed * tree.files + number + 1));
}

/* The next time at or after t in which nothing passes: [begin, end). */
static void store_closed(const struct limits *limits, double t, double *begin, double *end)
{
	*begin = *end = INFINITY;
	if (limits->stall_for_ns > 0) {
		const double phase = fmod(t - (double)times.begun, limits->stall_every_ns);
		*end = t - phase + limits->stall_every_ns;
		*begin = *end - limits->stall_for_ns;
	}
	const uint64_t started = atomic_load(&times.started);
	const double outage = (double)started + limits->outage_at_ns;
	if (started && limits->outage_for_ns > 0 && t < outage + limits->outage_for_ns &&
		outage < *begin) {
		*begin = outage;
		*end = outage + limits->outage_for_ns;
	}
}

/* When work that takes so long is done, begun at t: nothing is done in stalls and outages. */
static double store_work(const struct limits *limits, double t, double work)
{
	double begin, end;
	for (;;) {
		store_closed(limits, t, &begin, &end);
		const double open = fmax(0, begin - t);
		if (work < open || isinf(open))
			return t + work;
		work -= open;
		t = end;
	}
}

/* Of the time from t until `until`, that in which something passed. */
static double store_open_time(const struct limits *limits, double t, double until)
{
	double begin, end, sum = 0;
	while (t < until) {
		store_closed(limits, t, &begin, &end);
		if (begin > t)
			sum += fmin(begin, until) - t;
		t = end;
	}
	return sum;
}

static void store_push(struct request *request, enum stage next, double due)
{
	if (store.count == store.room) {
		store.room = 2 * store.room + 64;
		store.heap = must(realloc(store.heap, store.room * sizeof(struct request *)));
	}
	request->next = next;
	request->due = (uint64_t)due;
	size_t i = store.count++;
	for (; i > 0 && store.heap[(i - 1) / 2]->due > request->due; i = (i - 1) / 2)
		store.heap[i] = store.heap[(i - 1) / 2];
	store.heap[i] = request;
}

static struct request *store_pop(void)
{
	struct request *const first = store.heap[0], *const last = store.heap[--store.count];
	size_t i = 0;
	for (size_t child; (child = 2 * i + 1) < store.count; i = child) {
		if (child + 1 < store.count && store.heap[child + 1]->due < store.heap[child]->due)
			child++;
		if (store.heap[child]->due >= last->due)
			break;
		store.heap[i] = store.heap[child];
	}
	store.heap[i] = last;
	return first;
}

static void store_begin(struct request *request, double t)
{
	request->has_slot = true;
	store.busy++;
	store_push(request, SERVED,
		store_work(request->limits, t,
			store_latency(request->limits, t) + store_slowness(request)));
}

static bool store_has_room(const struct limits *limits)
{
	return limits->slots <= 0 || store.busy < limits->slots;
}

static void store_take_slot(struct request *request, double t)
{
	if (store_has_room(request->limits)) {
		store_begin(request, t);
		return;
	}
	request->after = NULL;
	*store.waiting_end = request;
	store.waiting_end = &request->after;
}

static void store_finish(struct request *request, double t)
{
	store.busy -= request->has_slot;
	while (store.waiting && store_has_room(store.waiting->limits)) {
		struct request *const next = store.waiting;
		store.waiting = next->after;
		if (!store.waiting)
			store.waiting_end = &store.waiting;
		store_begin(next, fmax(t, (double)next->came));
	}
	request->after = NULL;
	*store.done_end = request;
	store.done_end = &request->after;
	pthread_cond_signal(&store.finished);
}

/* Brings what sharers have got up to t; events may come a little out of order. */
static void store_share_until(double t)
{
	const double from = (double)store.shared_at;
	if (store.sharing && t > from) {
		const struct limits *const limits = store.sharing->limits;
		store.shared_bytes += store_open_time(limits, from, t) / NS_PER_S *
				      limits->bytes_per_s / (double)store.sharers;
	}
	if (t > from)
		store.shared_at = (uint64_t)t;
}

static double store_share_due(void)
{
	if (!store.sharing)
		return INFINITY;
	const struct limits *const limits = store.sharing->limits;
	const double left = fmax(0, store.sharing->end - store.shared_bytes);
	return store_work(limits, (double)store.shared_at,
		left * (double)store.sharers / limits->bytes_per_s * NS_PER_S);
}

static void store_share(struct request *request, double t)
{
	store_share_until(t);
	request->end = store.shared_bytes + (double)request->size;
	struct request **place = &store.sharing;
	while (*place && (*place)->end <= request->end)
		place = &(*place)->after;
	request->after = *place;
	*place = request;
	store.sharers++;
}

static void store_share_end(double t)
{
	struct request *const request = store.sharing;
	store_share_until(t);
	store.shared_bytes = fmax(store.shared_bytes, request->end);
	store.sharing = request->after;
	store.sharers--;
	store_finish(request, t);
}

/* A bucket that holds `burst` and takes `cost`: when it lets that pass.  All in ns. */
static double store_bucket(
	const struct limits *limits, double *tat, double t, double cost, double burst)
{
	*tat = store_work(limits, fmax(*tat, t), cost);
	return fmax(t, *tat - burst);
}

static void store_transfer(struct request *request, double t)
{
	const struct limits *const limits = request->limits;
	if (limits->bytes_per_s <= 0)
		store_finish(request, t);
	else if (limits->shared)
		store_share(request, t);
	else
		store_push(request, FINISHED,
			store_bucket(limits, &store.pipe_tat, t,
				(double)request->size / limits->bytes_per_s * NS_PER_S,
				limits->burst_bytes / limits->bytes_per_s * NS_PER_S));
}

static void store_handle(struct request *request)
{
	const double t = (double)request->due;
	if (request->next == ADMITTED)
		store_take_slot(request, t);
	else if (request->next == SERVED)
		store_transfer(request, t);
	else
		store_finish(request, t);
}

static void store_sleep(uint64_t until)
{
	if (until == NEVER) {
		pthread_cond_wait(&store.changed, &store.lock);
		return;
	}
	const struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
	pthread_cond_timedwait(&store.changed, &store.lock, &t);
}

static void *store_run(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&store.lock);
	for (;;) {
		const double shared = store_share_due();
		const uint64_t first = store.count ? store.heap[0]->due : NEVER;
		const uint64_t due = shared < (double)first ? (uint64_t)shared : first;
		if (due > clock_now())
			store_sleep(due);
		else if (due == first)
			store_handle(store_pop());
		else
			store_share_end(shared);
	}
	return NULL;
}

static struct limits *store_limits(uint64_t now)
{
	const uint64_t started = atomic_load(&times.started);
	const bool changed =
		options.changes && started && (double)now >= (double)started + options.change_at_ns;
	return &options.limits[changed ? 1 : 0];
}

/* Takes a request that costs `work`, or with `reads`, one that passes the limits of reads. */
static void store_take(struct request *request, bool reads, double work)
{
	struct limits *const limits = request->limits;
	const double now = (double)request->came;
	pthread_mutex_lock(&store.lock);
	if (reads) {
		store.reads++;
		store.read_bytes += request->size;
		double due = now;
		if (limits->requests_per_s > 0)
			due = store_bucket(limits, &store.request_tat, now,
				NS_PER_S / limits->requests_per_s,
				limits->burst_requests * NS_PER_S / limits->requests_per_s);
		store_push(request, ADMITTED, due);
	} else {
		store_push(
			request, FINISHED, store_work(limits, now, work + store_slowness(request)));
	}
	pthread_cond_signal(&store.changed);
	pthread_mutex_unlock(&store.lock);
}

static void *store_answer(void *unused)
{
	(void)unused;
	for (;;) {
		pthread_mutex_lock(&store.lock);
		while (!store.done)
			pthread_cond_wait(&store.finished, &store.lock);
		struct request *const request = store.done;
		store.done = request->after;
		if (!store.done)
			store.done_end = &store.done;
		pthread_mutex_unlock(&store.lock);
		request->answer(request);
		free(request);
	}
	return NULL;
}

/* --- the file system ----------------------------------------------------------------------------------- */

static struct request *slow_request(
	fuse_req_t fuse, fuse_ino_t ino, void (*answer)(struct request *))
{
	struct request *const request = must(calloc(1, sizeof(*request)));
	request->fuse = fuse;
	request->ino = ino;
	request->answer = answer;
	request->came = clock_now();
	request->limits = store_limits(request->came);
	return request;
}

static void slow_init(void *unused, struct fuse_conn_info *conn)
{
	(void)unused;
	conn->max_background = IN_FLIGHT_MOST;
	conn->congestion_threshold = IN_FLIGHT_MOST;
}

static void slow_answer_entry(struct request *request)
{
	const struct node *const node = tree_node(request->ino);
	const struct fuse_entry_param entry = {.ino = request->ino,
		.attr = node->stat,
		.attr_timeout = options.cached_s,
		.entry_timeout = options.cached_s};
	fuse_reply_entry(request->fuse, &entry);
}

static void slow_lookup(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	const struct node *const node = tree_find(parent, name);
	if (!node) {
		fuse_reply_err(fuse, ENOENT);
		return;
	}
	struct request *const request = slow_request(fuse, node->stat.st_ino, slow_answer_entry);
	store_take(request, false, request->limits->stat_ns);
}

static void slow_answer_attr(struct request *request)
{
	fuse_reply_attr(request->fuse, &tree_node(request->ino)->stat, options.cached_s);
}

static void slow_getattr(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file)
{
	(void)file;
	struct request *const request = slow_request(fuse, ino, slow_answer_attr);
	store_take(request, false, request->limits->stat_ns);
}

static void slow_answer_open(struct request *request)
{
	const int fd = open(tree_node(request->ino)->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fuse_reply_err(request->fuse, errno);
		return;
	}
	request->file.fh = (uint64_t)fd;
	request->file.direct_io = options.direct_io;
	request->file.keep_cache = options.keep_cache;
	if (fuse_reply_open(request->fuse, &request->file) != 0)
		close(fd); /* nobody waits for it any more */
}

static void slow_open(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct request *const request = slow_request(fuse, ino, slow_answer_open);
	request->file = *file;
	request->may_be_slow = options.slow_opens;
	store_take(request, false, request->limits->open_ns);
}

static void slow_release(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *file)
{
	(void)ino;
	close((int)file->fh);
	fuse_reply_err(fuse, 0);
}

static void slow_answer_read(struct request *request)
{
	char *const bytes = must(malloc(request->size));
	const ssize_t got = pread((int)request->file.fh, bytes, request->size, request->offset);
	if (got < 0)
		fuse_reply_err(request->fuse, errno);
	else
		fuse_reply_buf(request->fuse, bytes, (size_t)got);
	free(bytes);
}

static void slow_read(
	fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file)
{
	const off_t end = tree_node(ino)->stat.st_size;
	if (offset >= end) {
		fuse_reply_buf(fuse, NULL, 0);
		return;
	}
	struct request *const request = slow_request(fuse, ino, slow_answer_read);
	request->file = *file;
	/* The kernel asks for whole pages; what a file does not have is not transferred. */
	request->size = (uint64_t)(end - offset) < size ? (size_t)(end - offset) : size;
	request->offset = offset;
	request->may_be_slow = !options.slow_opens;
	store_take(request, true, 0);
}

static void slow_answer_readdir(struct request *request)
{
	const struct node *const folder = tree_node(request->ino);
	char *const out = must(malloc(request->size));
	size_t used = 0;
	for (size_t i = (size_t)request->offset; i < folder->count; i++) {
		const struct node *const node = &tree.nodes[folder->first + i];
		const size_t length = fuse_add_direntry(request->fuse, out + used,
			request->size - used, node->name, &node->stat, (off_t)(i + 1));
		if (length > request->size - used)
			break;
		used += length;
	}
	fuse_reply_buf(request->fuse, out, used);
	free(out);
}

static void slow_readdir(
	fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file)
{
	(void)file;
	struct request *const request = slow_request(fuse, ino, slow_answer_readdir);
	request->size = size;
	request->offset = offset;
	store_take(request, false, request->limits->readdir_ns);
}

static const struct fuse_lowlevel_ops slow_ops = {
	.init = slow_init,
	.lookup = slow_lookup,
	.getattr = slow_getattr,
	.open = slow_open,
	.release = slow_release,
	.read = slow_read,
	.readdir = slow_readdir,
};

/* --- the command --------------------------------------------------------------------------------------- */

/* What takes a number, and what unit it is in; flags below. */
static const struct {
	const char *name;
	size_t field; /* of struct limits */
	double unit;
} numbers[] = {
	{"--latency", offsetof(struct limits, latency_ns), NS_PER_US},
	{"--sigma", offsetof(struct limits, sigma), 1},
	{"--ageing", offsetof(struct limits, ageing_ns), NS_PER_US},
	{"--slow-share", offsetof(struct limits, slow_share), 1},
	{"--slow", offsetof(struct limits, slow_ns), NS_PER_US},
	{"--open", offsetof(struct limits, open_ns), NS_PER_US},
	{"--stat", offsetof(struct limits, stat_ns), NS_PER_US},
	{"--readdir", offsetof(struct limits, readdir_ns), NS_PER_US},
	{"--slots", offsetof(struct limits, slots), 1},
	{"--bytes-per-s", offsetof(struct limits, bytes_per_s), 1},
	{"--burst-bytes", offsetof(struct limits, burst_bytes), 1},
	{"--iops", offsetof(struct limits, requests_per_s), 1},
	{"--burst-requests", offsetof(struct limits, burst_requests), 1},
	{"--stall-every", offsetof(struct limits, stall_every_ns), NS_PER_MS},
	{"--stall-for", offsetof(struct limits, stall_for_ns), NS_PER_MS},
	{"--outage-at", offsetof(struct limits, outage_at_ns), NS_PER_S},
	{"--outage-for", offsetof(struct limits, outage_for_ns), NS_PER_S},
};

static const struct {
	const char *name;
	bool *flag;
} flags[] = {{"--direct-io", &options.direct_io}, {"--keep-cache", &options.keep_cache},
	{"--slow-random", &options.slow_random}, {"--slow-opens", &options.slow_opens}};

static _Noreturn void refuse(const char *what, const char *subject)
{
	fprintf(stderr, "slowfs: %s '%s'\n%s", what, subject, usage);
	exit(2);
}

static double number(const char *text)
{
	char *end;
	errno = 0;
	const double value = text ? strtod(text, &end) : 0;
	if (!text || end == text || *end || errno || !(value >= 0) || isinf(value))
		refuse("no number of 0 or more:", text ? text : "");
	return value;
}

static enum distribution distribution_of(const char *text)
{
	static const char *const names[] = {"fixed", "exponential", "lognormal"};
	for (unsigned i = 0; text && i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(text, names[i]) == 0)
			return (enum distribution)i;
	refuse("no distribution:", text ? text : "");
}

static bool take_flag(const char *name)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (strcmp(name, flags[i].name) == 0)
			return *flags[i].flag = true;
	return false;
}

static bool take_number(const char *name, const char *text, struct limits *limits)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (strcmp(name, numbers[i].name) == 0) {
			*(double *)((char *)limits + numbers[i].field) =
				number(text) * numbers[i].unit;
			return true;
		}
	return false;
}

static void take_other(const char *name, const char *text, struct limits *limits)
{
	if (strcmp(name, "--distribution") == 0)
		limits->distribution = distribution_of(text);
	else if (strcmp(name, "--cached") == 0)
		options.cached_s = number(text);
	else if (strcmp(name, "--seed") == 0)
		options.seed = (uint64_t)number(text);
	else
		refuse("no such option:", name);
}

static void check_limits(const struct limits *limits)
{
	if (limits->stall_for_ns > 0 && limits->stall_every_ns <= limits->stall_for_ns)
		refuse("a stall takes all the time that there is", "--stall-for");
	if (limits->slow_share >= 1)
		refuse("no file would be quick", "--slow-share");
	if (limits->shared && limits->burst_bytes > 0)
		refuse("shared transfers have no burst", "--burst-bytes");
}

static void parse_options(char **arguments)
{
	struct limits *limits = &options.limits[0];
	const char *folders[2] = {NULL, NULL};
	size_t count = 0;
	for (char **word = arguments; *word; word++) {
		if (strncmp(*word, "--", 2) != 0) {
			if (count == 2)
				refuse("one folder too many:", *word);
			folders[count++] = *word;
		} else if (strcmp(*word, "--shared") == 0) {
			limits->shared = true;
		} else if (strcmp(*word, "--change-at") == 0) {
			options.change_at_ns = number(*++word) * NS_PER_S;
			options.changes = true;
			options.limits[1] = *limits;
			limits = &options.limits[1];
		} else if (!take_flag(*word)) {
			const char *const name = *word++;
			if (!take_number(name, *word, limits))
				take_other(name, *word, limits);
		}
	}
	if (count != 2)
		refuse("a folder is missing after", count ? folders[0] : "slowfs");
	options.folder = folders[0];
	options.mount = folders[1];
	check_limits(&options.limits[0]);
	check_limits(&options.limits[1]);
}

static void on_start(int signal)
{
	(void)signal;
	uint64_t none = 0;
	atomic_compare_exchange_strong(&times.started, &none, clock_now());
}

static void start_threads(void)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&store.changed, &attributes);
	pthread_t thread;
	for (int i = 0; i <= ANSWERERS; i++)
		if (pthread_create(&thread, NULL, i ? store_answer : store_run, NULL) != 0)
			die("beginning", "a thread");
}

int main(int argc, char **argv)
{
	(void)argc;
	parse_options(argv + 1);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* no mount may outlive whoever asked for it */
	tree_build(options.folder);
	times.begun = clock_now();
	store.random = options.seed;
	sigaction(
		SIGUSR1, &(struct sigaction){.sa_handler = on_start, .sa_flags = SA_RESTART}, NULL);

	char option[] = "-o", mounted_as[] = "ro,fsname=slowfs,subtype=slowfs";
	char *fuse_argv[] = {argv[0], option, mounted_as, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, fuse_argv);
	struct fuse_session *const session =
		fuse_session_new(&args, &slow_ops, sizeof(slow_ops), NULL);
	if (!session || fuse_set_signal_handlers(session) != 0 ||
		fuse_session_mount(session, options.mount) != 0)
		return 1;
	start_threads();
	const int status = fuse_session_loop(session);
	fuse_session_unmount(session);
	fprintf(stderr, "slowfs: %llu reads, %llu bytes\n", (unsigned long long)store.reads,
		(unsigned long long)store.read_bytes);
	return status < 0;
}
