/* How long it takes to find what a folder of pictures is like, and what came of it: bench_folder FOLDER... */
#include "harness/base/clock.h"
#include "harness/fit/from_folder.h"

#include <stdio.h>

static int bench_folder(const char *path)
{
	struct findings findings;
	struct folder_seen seen;
	struct error err;
	const uint64_t start = clock_now_ns(), cpu = clock_process_cpu_ns();
	findings_open(&findings);
	const int code = folder_look(&findings, path, &folder_bounds_usual, &seen, &err);
	const double seconds = (double)(clock_now_ns() - start) / (double)NS_PER_S;
	const double busy = (double)(clock_process_cpu_ns() - cpu) / (double)NS_PER_S;
	struct buffer text = {0};
	if (code) {
		(void)printf("%s\n", err.text);
		return 1;
	}
	(void)printf("%.2f s (%.2f s of CPU time): %llu names listed%s, %llu files opened\n",
		seconds, busy, (unsigned long long)seen.entries,
		seen.cut     ? ", cut"
		: seen.drawn ? " in drawn folders"
			     : "",
		(unsigned long long)seen.opened);
	for (int id = FINDING_FILES; id <= FINDING_FILES_UNREAD; id++)
		(void)printf("%-20s %.6g (%.6g to %.6g) %s\n", finding_name(id),
			findings.known[id].value, findings.known[id].low, findings.known[id].high,
			finding_how_name(findings.known[id].how));
	(void)like_write(findings.like, findings.like_count, &text);
	(void)printf("%s\n", text.failed ? "" : text.data);
	buffer_release(&text);
	findings_close(&findings);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;
	for (int i = 1; i < argc; i++)
		failed |= bench_folder(argv[i]);
	return failed;
}
