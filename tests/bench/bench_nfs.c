/* libnfs's own synchronous calls: threads with a context each, which open, read and close whole files of a
 * folder that bench_source made.  What the nfs engine is measured against (bench_nfs.sh).
 *
 *   bench_nfs SERVER PORT EXPORT FILES BYTES SECONDS THREADS */
#include "harness/base/clock.h"

#include <nfsc/libnfs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { FOLDERS = 10, THREADS_MAX = 64, READ_MOST = 1 << 20 };

struct readers {
	char url[512];
	size_t files, bytes;
	uint64_t end_ns;
	pthread_mutex_t mounting; /* contexts that begin in one moment take equal names */
	atomic_uint_fast64_t next, read, failed;
	atomic_uint mounted;
};

static struct nfs_context *mount_one(struct readers *readers)
{
	char name[64];
	struct nfs_context *const nfs = nfs_init_context();
	if (!nfs)
		return NULL;
	struct nfs_url *const url = nfs_parse_url_dir(nfs, readers->url);
	(void)snprintf(name, sizeof name, "bench %p", (void *)nfs);
	(void)nfs_set_version(nfs, 4);
	nfs4_set_client_name(nfs, name);
	nfs_set_autoreconnect(nfs, 0);
	nfs_set_timeout(nfs, 5000);
	if (url && nfs_mount(nfs, url->server, url->path) == 0) {
		nfs_destroy_url(url);
		return nfs;
	}
	fprintf(stderr, "bench_nfs: %s\n", nfs_get_error(nfs));
	if (url)
		nfs_destroy_url(url);
	nfs_destroy_context(nfs);
	return NULL;
}

static int read_one(
	struct nfs_context *nfs, const struct readers *readers, size_t file, char *buffer)
{
	char path[64];
	struct nfsfh *handle;
	size_t got = 0;
	(void)snprintf(path, sizeof path, "/c%zu/%zu.bin", file % FOLDERS, file);
	if (nfs_open(nfs, path, 0, &handle) != 0)
		return -1;
	while (got < readers->bytes) {
		const size_t left = readers->bytes - got;
		const int n =
			nfs_read(nfs, handle, left < READ_MOST ? left : READ_MOST, buffer + got);
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return nfs_close(nfs, handle) == 0 && got == readers->bytes ? 0 : -1;
}

static void *run_one(void *context)
{
	struct readers *const readers = context;
	char *const buffer = malloc(readers->bytes);
	(void)pthread_mutex_lock(&readers->mounting);
	struct nfs_context *const nfs = mount_one(readers);
	(void)pthread_mutex_unlock(&readers->mounting);
	atomic_fetch_add(&readers->mounted, nfs && buffer);
	while (nfs && buffer && clock_now_ns() < readers->end_ns) {
		const size_t file =
			(size_t)(atomic_fetch_add(&readers->next, 1) * 7919) % readers->files;
		if (read_one(nfs, readers, file, buffer) == 0) {
			atomic_fetch_add(&readers->read, 1);
		} else if (atomic_fetch_add(&readers->failed, 1) == 0) {
			fprintf(stderr, "bench_nfs: %s\n", nfs_get_error(nfs));
		}
	}
	if (nfs)
		nfs_destroy_context(nfs);
	free(buffer);
	return NULL;
}

static double cpu_seconds(void)
{
	return (double)clock_process_cpu_ns() / (double)NS_PER_S;
}

int main(int argc, char **argv)
{
	if (argc != 8) {
		fprintf(stderr,
			"usage: bench_nfs SERVER PORT EXPORT FILES BYTES SECONDS THREADS\n");
		return 2;
	}
	struct readers readers = {.files = strtoul(argv[4], NULL, 10),
		.bytes = strtoul(argv[5], NULL, 10),
		.mounting = PTHREAD_MUTEX_INITIALIZER};
	pthread_t threads[THREADS_MAX];
	unsigned count = (unsigned)strtoul(argv[7], NULL, 10);
	count = count < THREADS_MAX ? count : THREADS_MAX;
	(void)snprintf(readers.url, sizeof readers.url, "nfs://%s%s/?version=4&nfsport=%s", argv[1],
		argv[3], argv[2]);
	const uint64_t start_ns = clock_now_ns();
	const double cpu = cpu_seconds();
	readers.end_ns = start_ns + (uint64_t)(strtod(argv[6], NULL) * (double)NS_PER_S);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, run_one, &readers) != 0)
			count = i;
	for (unsigned i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	const double seconds = (double)(clock_now_ns() - start_ns) / (double)NS_PER_S;
	const double read = (double)atomic_load(&readers.read);
	printf("MB/s %.1f cpu_us/file %.2f failed %llu mounted %u\n",
		read * (double)readers.bytes / 1e6 / seconds,
		read > 0 ? 1e6 * (cpu_seconds() - cpu) / read : 0.0,
		(unsigned long long)atomic_load(&readers.failed), atomic_load(&readers.mounted));
	return read > 0 ? 0 : 1;
}
