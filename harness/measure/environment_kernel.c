/* The kernel: its release and the switches that decide what can be measured. */
#include "harness/measure/environment_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

void environment_kernel(struct fact_list *list)
{
	struct utsname name;
	if (uname(&name) == 0) {
		fact_text(list, "kernel", "nodename", "%s", name.nodename);
		fact_text(list, "kernel", "release", "%s", name.release);
		fact_text(list, "kernel", "machine", "%s", name.machine);
	} else {
		fact_missing(list, "kernel", "release", "uname: %s", strerror(errno));
		fact_missing(list, "kernel", "machine", "uname: %s", strerror(errno));
	}
	environment_line(list, "kernel", "clocksource",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource");
	environment_line(list, "kernel", "io_uring_disabled", "/proc/sys/kernel/io_uring_disabled");
	environment_line(
		list, "kernel", "perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid");
	environment_line(list, "kernel", "numa_balancing", "/proc/sys/kernel/numa_balancing");
	fact_text(list, "kernel", "pressure", "%s",
		access("/proc/pressure/cpu", R_OK) == 0 ? "yes" : "no /proc/pressure");
	const int slack = prctl(PR_GET_TIMERSLACK);
	if (slack >= 0)
		fact_number(list, "kernel", "timer_slack", slack, "ns");
	else
		fact_missing(list, "kernel", "timer_slack", "prctl: %s", strerror(errno));
}
