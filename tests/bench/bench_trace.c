/* Reading a trace of 2 GB, as torch.profiler writes it, through a pipe: how fast, and in how much memory.  Its 1.6 million kernels
 * lie apart, and come after the operators that launch them.  Then one of more kernels than are kept apart.
 * Exits 1 when memory is above its bound or a planted value is missed. */
#include "harness/base/clock.h"
#include "harness/fit/finding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PERIOD_US = 50000, WAIT_US = 20000, KERNEL_SHARE_US = 24000 };
static const double BOUND_MB = 400;

struct bench_trace {
	const char *name;
	int steps, kernels; /* of each step */
};

static void write_event(FILE *out, const char *category, const char *name, int pid, double begin,
	double length, const char *args)
{
	(void)fprintf(out,
		"  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": 7,\n    \"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      %s\n    }\n  },\n",
		category, name, pid, 4818987873651.916 + begin, length, args);
}

static void write_step(FILE *out, const struct bench_trace *trace, int step)
{
	static const char operator_args[] =
		"\"External id\": 3,\"Sequence number\": 9870, \"Fwd thread id\": 0, \"Record function id\": 0, \"Concrete Inputs\": [\"\", \"6\", \"0\", \"\", \"\", \"True\", \"False\", \"\"], \"Input type\": [\"float\", \"Scalar\", \"Scalar\", \"\", \"\", \"Scalar\", \"Scalar\", \"\"], \"Input Strides\": [[150528, 50176, 224, 1], [], [], [], [], [], [], []], \"Input Dims\": [[128, 3, 224, 224], [], [], [], [], [], [], []], \"Ev Idx\": 2";
	static const char kernel_args[] =
		"\"External id\": 10, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": 32098, \"registers per thread\": 18, \"shared memory\": 0, \"blocks per SM\": 570.181824, \"warps per SM\": 2280.727295, \"grid\": [75264, 1, 1], \"block\": [128, 1, 1], \"est. achieved occupancy %\": 100";
	static const char kernel[] =
		"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3})>";
	const double begin = (double)step * PERIOD_US;
	const double busy = (double)KERNEL_SHARE_US / trace->kernels;
	const double each = (double)(PERIOD_US - WAIT_US - 1000) / trace->kernels;
	char name[32];
	(void)snprintf(name, sizeof name, "ProfilerStep#%d", step);
	write_event(out, "user_annotation", name, 2035, begin, PERIOD_US - 10, "\"Ev Idx\": 0");
	write_event(out, "user_annotation",
		"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 2035, begin,
		WAIT_US, "\"Ev Idx\": 0");
	for (int i = 0; i < trace->kernels; i++)
		write_event(out, "cpu_op", i % 8 ? "aten::empty" : "aten::conv2d", 2035,
			begin + WAIT_US + i * each, 5.5, operator_args);
	for (int i = 0; i < trace->kernels; i++)
		write_event(
			out, "kernel", kernel, 0, begin + WAIT_US + i * each, busy, kernel_args);
}

static int write_trace(FILE *out, const struct bench_trace *trace)
{
	(void)fputs("{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n", out);
	for (int step = 0; step < trace->steps; step++)
		write_step(out, trace, step);
	(void)fputs("  {\"ph\": \"i\"}\n  ],\n  \"traceName\": \"x\"\n}\n", out);
	return ferror(out);
}

struct bench_told {
	double period, wait, busy, cpu_s, resident_mb;
	char note[FINDINGS_NOTE_BYTES];
};

/* In a process of its own, so that its memory is its own. */
static int read_trace(int from, struct bench_told *told)
{
	struct findings findings;
	struct rusage usage;
	struct error err;
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", from);
	findings_open(&findings);
	if (findings_from_trace(&findings, path, &err)) {
		(void)fprintf(stderr, "bench_trace: %s\n", err.text);
		return 1;
	}
	(void)getrusage(RUSAGE_SELF, &usage);
	told->period = findings.known[FINDING_STEP_PERIOD].value;
	told->wait = findings.known[FINDING_STEP_WAIT].value;
	told->busy = findings.known[FINDING_DEVICE_BUSY].value;
	told->cpu_s = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
		      (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
	told->resident_mb = (double)usage.ru_maxrss / 1024;
	for (size_t i = 0; i < findings.note_count; i++)
		if (strstr(findings.notes[i], "too many"))
			(void)snprintf(told->note, sizeof told->note, "%s", findings.notes[i]);
	findings_close(&findings);
	return 0;
}

static double size_of(const struct bench_trace *trace)
{
	struct bench_trace few = *trace;
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	few.steps = 10;
	if (!memory || write_trace(memory, &few) || fclose(memory))
		exit(2);
	free(text);
	return (double)size * trace->steps / few.steps;
}

static void pass_through(const struct bench_trace *trace, struct bench_told *told)
{
	int text[2];
	int report[2];
	int written = 1;
	int was_read = 1;
	if (pipe(text) || pipe(report))
		exit(2);
	const pid_t reader = fork();
	if (reader == 0) {
		(void)close(text[1]);
		const int code = read_trace(text[0], told);
		_exit(code || write(report[1], told, sizeof *told) != (ssize_t)sizeof *told);
	}
	const pid_t writer = fork();
	if (writer == 0) {
		FILE *out = fdopen(text[1], "w");
		_exit(!out || write_trace(out, trace) || fclose(out));
	}
	(void)close(text[0]);
	(void)close(text[1]);
	(void)waitpid(writer, &written, 0);
	(void)waitpid(reader, &was_read, 0);
	if (written || was_read || read(report[0], told, sizeof *told) != (ssize_t)sizeof *told)
		exit(2);
}

/* 1: a bound or a planted value was missed. */
static int measure(const struct bench_trace *trace)
{
	struct bench_told told = {0};
	const double planted = (double)KERNEL_SHARE_US / PERIOD_US;
	const double megabytes = size_of(trace) / 1e6;
	pass_through(trace, &told);
	(void)printf(
		"%-18s %6.0f MB, %4.0f MB/s of CPU, %4.0f MB resident (bound: %.0f); busy %.4f, planted %.4f\n",
		trace->name, megabytes, megabytes / told.cpu_s, told.resident_mb, BOUND_MB,
		told.busy, planted);
	if (told.note[0])
		(void)printf("  %s\n", told.note);
	const bool right = fabs(told.period - PERIOD_US * 1e3) < 1e3 &&
			   fabs(told.wait - WAIT_US * 1e3) < 1e3 &&
			   (told.note[0] ? told.busy >= planted : fabs(told.busy - planted) < 1e-3);
	return !right || told.resident_mb > BOUND_MB;
}

int main(void)
{
	const struct bench_trace usual = {"1.6 million kernels", 1600, 1000};
	const struct bench_trace many = {"4 million kernels", 400, 10000};
	return measure(&usual) | measure(&many);
}
