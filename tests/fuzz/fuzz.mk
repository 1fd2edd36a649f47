# Fuzzing: libFuzzer, clang.  Part of the Makefile.
FUZZ_CC ?= clang-14
FUZZ_B := build/fuzz
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZERS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(FUZZ_B)/%)
# What the targets reach first, instrumented: no threads, no OpenMP (whose header clang has in another package).  The rest is
# the program's own; for a long run FUZZ_MORE='harness/report/% harness/analyze/%' has more of it instrumented.
FUZZ_MORE ?=
FUZZ_REPORT := ceilings_sheet report report_text summary_json summary_tables columns medium table csv device_report diagnosis_text export_jsonl export_openmetrics
FUZZ_OBJECTS := $(patsubst %.c,$(FUZZ_B)/%.o,$(filter harness/base/% harness/config/% harness/record/% harness/lab/% harness/measure/timeline.c harness/measure/mountstats.c harness/measure/proc_text.c workloads/image/% workloads/sample/% workloads/dataset/manifest.c workloads/source/nfs_wire.c workloads/source/nfs_client.c workloads/dataset/container%.c workloads/source/gzip_view.c harness/fit/finding.c harness/fit/case.c harness/fit/case_read.c harness/fit/amount.c harness/fit/scrub.c harness/fit/busy_spans.c harness/fit/kineto.c harness/fit/step_means.c harness/fit/trace_marks.c harness/fit/from_trace.c harness/fit/from_step_log.c harness/fit/step_log.c harness/fit/step_lines.c harness/fit/json_mend.c harness/fit/step_names.c harness/fit/scalar_events.c \
                $(FUZZ_REPORT:%=harness/report/%.c) harness/analyze/summary.c harness/analyze/statistics.c $(FUZZ_MORE),$(SOURCES)))
FUZZ_FLAGS := -std=gnu17 -D_GNU_SOURCE -DMLBENCH_VERSION='"$(VERSION)"' -I. -g -O1 -pthread $(PKG_CFLAGS) \
              -isystem $(GENERATED_B) -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=all

$(FUZZ_B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -MMD -MP -c -o $@ $<
$(FUZZ_B)/libmlbench.a: $(FUZZ_OBJECTS)
	@rm -f $@
	@ar rcs $@ $^
$(FUZZ_B)/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ_B)/libmlbench.a $(LIBRARIES)
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer,address,undefined -o $@ $< $(FUZZ_B)/libmlbench.a $(LIBRARIES) $(LIBS) -lgomp
fuzzers: $(FUZZERS)
