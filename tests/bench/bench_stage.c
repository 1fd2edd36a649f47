/* The decode stage inside the pipeline against a bare loop over the same calls on the same samples, in
 * turn; and two workers against one.  JPEGs in memory, crop 224, float32, batches of 64, null step.
 * Bars: the pipeline is within 2 % of the loop; two workers are 1.95 times one (on two free cores).
 *
 *   bench_stage [REPEATS [EPOCHS]]     of 256 pictures each */
#include "tests/pipeline_bench.h"

#include "pipelines/pipeline.h"
#include "workloads/image/transform.h"

#include <pthread.h>

enum { REPEATS = 7, REPEATS_MAX = 99, WORKERS_MAX = 2 };

/* The bare loop: tickets that are drawn beforehand, files in memory, as many slots as the pipeline's. */
struct loop {
	const struct pipeline_fixture *f;
	struct pipeline_plan plan;
	struct ticket *tickets;
	size_t count;
	atomic_size_t next;
	char **files;
	size_t *sizes;
	struct memory_block slots;
};

static void *run_loop(void *context)
{
	struct loop *loop = context;
	struct error err;
	struct transform *transform;
	const struct dataset *dataset = &loop->f->dataset;
	if (transform_open(&transform, &loop->f->config, &dataset->extents, NULL, &err))
		fixture_die(err.text);
	const size_t places = loop->plan.slots * (loop->plan.batch_bytes / loop->plan.sample.bytes);
	size_t i;
	while ((i = atomic_fetch_add(&loop->next, 1)) < loop->count) {
		const struct ticket *ticket = &loop->tickets[i];
		uint8_t *out = (uint8_t *)loop->slots.data + i % places * loop->plan.sample.bytes;
		if (transform_sample(transform, loop->files[ticket->sample],
			    loop->sizes[ticket->sample], ticket->seed, out, NULL, &err))
			fixture_die(err.text);
	}
	transform_close(transform);
	return NULL;
}

struct result {
	double rate, cpu_us;
};

static struct result bare(struct loop *loop, unsigned workers)
{
	pthread_t threads[WORKERS_MAX];
	atomic_store(&loop->next, 0);
	const double cpu = bench_cpu_seconds();
	const uint64_t start_ns = clock_now_ns();
	for (unsigned i = 0; i < workers; i++)
		if (pthread_create(&threads[i], NULL, run_loop, loop))
			fixture_die("no thread");
	for (unsigned i = 0; i < workers; i++)
		(void)pthread_join(threads[i], NULL);
	const double seconds = (double)(clock_now_ns() - start_ns) / 1e9;
	return (struct result){
		.rate = (double)loop->count / seconds,
		.cpu_us = (bench_cpu_seconds() - cpu) * 1e6 / (double)loop->count,
	};
}

static struct result piped(struct pipeline_fixture *f, unsigned workers)
{
	struct measurement m;
	struct error err = {""};
	fixture_set(f, KEY_DECODE_WORKERS, workers == 1 ? "1" : "2");
	if (pipeline_run(&f->config, &f->dataset, NULL, &m, &err))
		fixture_die(err.text);
	/* CPU time of all threads while the clock ran (loading the set into memory is before it), per sample
	 * that was decoded after the same cut. */
	double cpu = 0;
	for (size_t i = 0; i < m.stage_count; i++)
		cpu += m.stages[i].cpu_seconds;
	const struct result result = {
		.rate = m.throughput,
		.cpu_us = cpu * 1e6 / (double)m.stages[1].items,
	};
	measurement_release(&m);
	return result;
}

static void open_loop(struct loop *loop, const struct pipeline_fixture *f)
{
	struct error err = {""};
	*loop = (struct loop){.f = f};
	const struct sampler_options options = plan_sampler(&f->config, &f->dataset);
	struct sampler sampler;
	if (pipeline_plan(&f->config, &f->dataset, &loop->plan, &err))
		fixture_die(err.text);
	if (sampler_open(&sampler, &options) ||
		memory_map(&loop->slots, loop->plan.slot_pool_bytes, false))
		fixture_die("out of memory");
	loop->count = options.epochs * sampler.used;
	loop->tickets = calloc(loop->count, sizeof *loop->tickets);
	loop->files = calloc(f->dataset.count, sizeof *loop->files);
	loop->sizes = calloc(f->dataset.count, sizeof *loop->sizes);
	if (!loop->tickets || !loop->files || !loop->sizes)
		fixture_die("out of memory");
	for (size_t i = 0; i < loop->count; i++)
		loop->tickets[i] = sampler_take(&sampler, (struct flow_ticket){.number = i});
	sampler_close(&sampler);
	for (size_t i = 0; i < f->dataset.count; i++) {
		char path[512];
		(void)snprintf(path, sizeof path, "%s/%s", f->root, f->dataset.samples[i].path);
		if (files_read(path, 1 << 26, &loop->files[i], &loop->sizes[i], &err))
			fixture_die(err.text);
	}
}

static void close_loop(struct loop *loop)
{
	for (size_t i = 0; i < loop->f->dataset.count; i++)
		free(loop->files[i]);
	free(loop->files);
	free(loop->sizes);
	free(loop->tickets);
	memory_unmap(&loop->slots);
}

static void show(const char *what, double *ratios, size_t repeats, const char *bar)
{
	const double median = bench_median(ratios, repeats);
	printf("%-52s %7.3f [%.3f %.3f]  %s\n", what, median, ratios[0], ratios[repeats - 1], bar);
}

int main(int argc, char **argv)
{
	const size_t repeats = argc > 1 ? strtoul(argv[1], NULL, 10) % REPEATS_MAX | 1 : REPEATS;
	struct pipeline_fixture f;
	struct loop loop;
	double rate1[REPEATS_MAX], rate2[REPEATS_MAX], cpu1[REPEATS_MAX], cpu2[REPEATS_MAX];
	double scale[REPEATS_MAX], scale_bare[REPEATS_MAX];
	bench_open_jpegs(&f, "256");
	fixture_set(&f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(&f, KEY_MEASURE_EPOCHS, argc > 2 ? argv[2] : "5");
	open_loop(&loop, &f);
	(void)bare(&loop, 2);
	for (size_t i = 0; i < repeats; i++) {
		const struct result b1 = bare(&loop, 1);
		const struct result p1 = piped(&f, 1);
		const struct result p2 = piped(&f, 2);
		const struct result b2 = bare(&loop, 2);
		rate1[i] = p1.rate / b1.rate;
		rate2[i] = p2.rate / b2.rate;
		cpu1[i] = p1.cpu_us / b1.cpu_us;
		cpu2[i] = p2.cpu_us / b2.cpu_us;
		scale[i] = p2.rate / p1.rate;
		scale_bare[i] = b2.rate / b1.rate;
		printf("  bare 1: %.0f/s, %.0f us CPU; pipeline 1: %.0f/s, %.0f us; bare 2: %.0f/s, %.0f us; "
		       "pipeline 2: %.0f/s, %.0f us\n",
			b1.rate, b1.cpu_us, p1.rate, p1.cpu_us, b2.rate, b2.cpu_us, p2.rate,
			p2.cpu_us);
	}
	show("pipeline over bare loop, throughput, 1 worker", rate1, repeats, "bar 0.98");
	show("pipeline over bare loop, throughput, 2 workers", rate2, repeats, "bar 0.98");
	show("pipeline over bare loop, CPU a sample, 1 worker", cpu1, repeats, "bar 1.02");
	show("pipeline over bare loop, CPU a sample, 2 workers", cpu2, repeats, "bar 1.02");
	show("pipeline, 2 workers over 1", scale, repeats, "bar 1.95");
	show("bare loop, 2 workers over 1 (what the cores allow)", scale_bare, repeats, "");
	close_loop(&loop);
	bench_close_jpegs(&f);
	return 0;
}
