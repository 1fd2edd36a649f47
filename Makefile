# mlbench: two commands do everything on a fresh Debian 12 machine.
#   make sweep     set up, build, generate the data set, run the main job
#   make check     set up, build, run every test
#   make bank      plant every bottleneck, have it diagnosed, score the answers (half an hour)
#   make bank-ranks jobs of ranks with planted stragglers, stores and networks (root)
#   make bank-cases the public cases of configs/cases: cause, decoys, fixes
#   make bank-jobs what observe, fit and the twin make of real jobs, PyTorch and others
#   make bank-real the same with real conditions: FUSE, cgroups, a shaped link, hogs (root; an hour a half)
# The others: make, make install PREFIX=, dist, dist-device, device (what tests/device/run.sh needs on a machine with a GPU), bench, bank-quick, format, lint, clean; DEV=1, SAN=address,undefined, SAN=thread.
# WITHOUT="libdw ncursesw" builds without some of the optional libraries, as if they were not installed.
# CUDA=0 leaves the plug-in for NVIDIA devices out, CUDA=1 insists on it; CUDA_HOME=/usr/local/cuda is where the toolkit is;
# make cuda-toolkit assembles one from NVIDIA's wheels in build/cuda-toolkit (0.7 GB to download), where none is installed.
# CUDA_ARCHS=80,90 names the devices that it is for (native: those here; all: what dist and device take).

VERSION := 0.1.0
ifeq ($(origin CC),default)
  CC := gcc
endif
PREFIX ?= /usr/local
MAKEFLAGS += --no-builtin-rules
# One short line per file; V=1 shows the whole command.
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2))
.DEFAULT_GOAL := all

# --- variants: each builds into a folder of its own ---------------------------------------------
comma := ,
VARIANT := $(if $(SAN),san-$(subst $(comma),-,$(SAN)),$(if $(DEV),dev,release))$(if $(filter clang%,$(notdir $(CC))),-clang)
B := build/$(VARIANT)

PACKAGES := liburing libpng libjpeg inih jansson hwloc libisal libxxhash libsodium
# Libraries that the program does without where they are not installed, and says so (harness/base/program.c); WITHOUT="libdw ncursesw"
# leaves some out.  Code sees MLBENCH_WITH_<package>.
OPTIONAL := libwebp libtiff-4 ncursesw libmicrohttpd libdw libprotobuf-c yajl
wanted_libtiff-4 := >= 4.5
WITH := $(foreach package,$(filter-out $(WITHOUT),$(OPTIONAL)),$(shell pkg-config --exists '$(package) $(wanted_$(package))' 2>/dev/null && echo $(package)))
ifeq ($(shell command -v protoc-c),)
  WITH := $(filter-out libprotobuf-c,$(WITH))
endif
PACKAGES += $(WITH)
WITH_FLAGS := $(patsubst %,-DMLBENCH_WITH_%,$(subst -,_,$(WITH)))
PKG_CFLAGS := $(shell pkg-config --cflags $(PACKAGES) openblas 2>/dev/null) $(WITH_FLAGS)
PKG_LIBS := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null)

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wwrite-strings -Wpointer-arith -Wvla -Wundef -Wformat=2 -Wnull-dereference
# Clang says of tables with named entries, too, that what is not named is zero.
WARNINGS += $(if $(filter clang%,$(notdir $(CC))),-Wno-missing-field-initializers)
OPTIMISE := -O3 -g -fno-math-errno -ffp-contract=off
CFLAGS_ALL := -std=gnu17 -D_GNU_SOURCE -DMLBENCH_VERSION='"$(VERSION)"' -I. -fopenmp -pthread $(WARNINGS) \
              $(PKG_CFLAGS) -fno-omit-frame-pointer
# OpenBLAS is opened when a step needs it.  Several flavours may be installed: the OpenMP one that is here is looked for first.
OPENBLAS_DIR := $(patsubst %/,%,$(shell pkg-config --variable=libdir openblas 2>/dev/null))
LDFLAGS_ALL := -fopenmp -pthread
ifdef SAN
  OPTIMISE := -O1 -g1
  CFLAGS_ALL += -fsanitize=$(SAN) -fno-sanitize-recover=all
  LDFLAGS_ALL += -fsanitize=$(SAN)
endif
ifdef DEV
  CFLAGS_ALL += -Werror
endif
PLAIN_CFLAGS := $(CFLAGS_ALL)
CFLAGS_ALL += $(OPTIMISE) $(CFLAGS)
# Test programs spend their time in the library: what is optimised of them costs more to compile than it saves.  With DEV the
# warnings that only optimising finds are wanted there, too.
TEST_CFLAGS = $(PLAIN_CFLAGS) $(if $(DEV),$(OPTIMISE),-fno-math-errno -ffp-contract=off -O1 -g1) $(CFLAGS) -isystem $(GENERATED_B)
LIBS := -Wl,--as-needed $(PKG_LIBS) -lz -lm -ldl

# --- sources: every .c of the three folders; main.c apart, so that tests link the rest ------------
SOURCES := $(sort $(wildcard harness/*/*.c harness/report/html/*.c workloads/*/*.c pipelines/*.c))
OBJECTS := $(SOURCES:%.c=$(B)/%.o)
TEST_SOURCES := $(sort $(wildcard tests/unit/test_*.c))
# The tests of what this build is without: none of them can be linked.
test_of_libmicrohttpd := listen
test_of_ncursesw := terminal
test_of_libdw := flame
test_of_libprotobuf-c := export
test_of_yajl := from_trace
TESTS := $(filter-out $(foreach package,$(filter-out $(WITH),$(OPTIONAL)),$(B)/tests/test_$(test_of_$(package))),$(TEST_SOURCES:tests/unit/%.c=$(B)/tests/%))
BENCH_SOURCES := $(sort $(wildcard tests/bench/bench_*.c))
BENCHES := $(BENCH_SOURCES:tests/bench/%.c=$(B)/bench/%)

# Code that is made from descriptions, into the build's folder; it is not held to our warnings.
GENERATED_B := $(B)/generated
PROTOS := $(if $(filter libprotobuf-c,$(WITH)),$(sort $(wildcard harness/*/*.proto)))
GENERATED := $(PROTOS:%.proto=$(GENERATED_B)/%.pb-c.c)
GENERATED_OBJECTS := $(GENERATED:.c=.o)
CFLAGS_ALL += -isystem $(GENERATED_B)

include workloads/backend/cuda/plugin.mk
include workloads/ranks/mpi/plugin.mk

all: program $(B)/measuring_alone $(B)/bare/mlbench
# What a user needs; the two others are for tests.
program: $(B)/mlbench $(if $(CUDA_NVCC),$(PLUGIN),no-plugin) $(or $(MPI_PLUGIN),no-mpi)
	$(if $(CUDA_WHY),$(call say,NOTE,"no plug-in for NVIDIA devices: $(CUDA_WHY)"))
	$(if $(CUDA_NOTE),$(call say,NOTE,"plug-in for NVIDIA devices: $(CUDA_NOTE)"))
	$(if $(MPI_PLUGIN),,$(call say,NOTE,"no plug-in for ranks: no $(MPICC) (Debian's libopenmpi-dev)"))
no-plugin: # of an earlier build, which the program would find
	@rm -f $(B)/libmlbench-cuda.so
no-mpi:
	@rm -f $(B)/libmlbench-mpi.so

# What measures, and what reads: the first links without the second, and without its libraries (tests/measuring_alone.c).
MEASURING := $(filter harness/base/% harness/config/% harness/record/% harness/flow/% harness/measure/% workloads/% pipelines/%,$(SOURCES))
READING_PACKAGES := ncursesw libmicrohttpd libprotobuf-c yajl libsodium
MEASURING_LIBS = -Wl,--as-needed $(shell pkg-config --libs $(filter-out $(READING_PACKAGES),$(PACKAGES)) 2>/dev/null) -lz -lm -ldl
LIBRARIES := $(B)/libreading.a $(B)/libmeasuring.a
$(B)/libmeasuring.a: $(MEASURING:%.c=$(B)/%.o)
$(B)/libreading.a: $(filter-out $(MEASURING:%.c=$(B)/%.o),$(OBJECTS)) $(GENERATED_OBJECTS)
$(LIBRARIES):
	@rm -f $@
	@ar rcs $@ $^

$(B)/mlbench: $(B)/harness/main.o $(LIBRARIES)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(B)/measuring_alone: $(B)/tests/measuring_alone.o $(B)/libmeasuring.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--whole-archive $(B)/libmeasuring.a -Wl,--no-whole-archive $(MEASURING_LIBS)

$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# What looks at MLBENCH_WITH_… is compiled anew when a library came or went; and once more as if there were none, for a program
# that shows that the rest needs none of them (tests/cli/29_measuring_alone.sh).
LOOKS_AT_WITH := $(patsubst %.c,%.o,$(shell grep -l MLBENCH_WITH_ $(SOURCES)))
WITH_STAMP := $(B)/with
$(shell mkdir -p $(B); echo '$(WITH)' | cmp -s - $(WITH_STAMP) || echo '$(WITH)' >$(WITH_STAMP))
$(LOOKS_AT_WITH:%=$(B)/%): $(WITH_STAMP)
BARE_LIBS = -Wl,--as-needed $(shell pkg-config --libs $(filter-out $(OPTIONAL),$(PACKAGES)) 2>/dev/null) -lz -lm -ldl
$(B)/bare/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,BARE,$<)
	$(Q)$(CC) $(filter-out $(WITH_FLAGS),$(CFLAGS_ALL)) -MMD -MP -c -o $@ $<
$(B)/bare/mlbench: $(B)/harness/main.o $(LOOKS_AT_WITH:%=$(B)/bare/%) $(LIBRARIES)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(BARE_LIBS)

$(GENERATED_B)/%.pb-c.c $(GENERATED_B)/%.pb-c.h &: %.proto
	@mkdir -p $(@D)
	$(call say,PROTO,$<)
	$(Q)protoc-c --c_out=$(GENERATED_B) $<
$(GENERATED_B)/%.o: $(GENERATED_B)/%.c Makefile
	$(call say,CC,$<)
	$(Q)$(CC) $(filter-out $(WARNINGS) -Werror,$(CFLAGS_ALL)) -w -c -o $@ $<
$(B)/harness/report/tensorboard_events.o: | $(GENERATED)
$(B)/workloads/backend/openblas.o: CFLAGS_ALL += -DMLBENCH_OPENBLAS_FOLDER='"$(OPENBLAS_DIR)"'

# The runbook and the glossary are in the program (runbook.c and glossary.c take them in).
$(B)/harness/report/runbook.o: docs/runbook.md
$(B)/harness/command/glossary.o: docs/GLOSSARY.md

# So are the page's style, its script, its charts, and Vega, which draws them (assets.c): one for all variants, anew where it was not
# there before.  `make charts` compiles the charts that somebody has changed; that alone takes Node and npm.
CHARTS := build/charts/vega.js
ifneq ($(if $(wildcard /usr/share/javascript/vega/vega-view.min.js),$(shell head -c 3 $(CHARTS) 2>/dev/null)),//!)
  VEGA_CAME :=
else
  VEGA_CAME := vega-came
endif
$(CHARTS): .ci/charts $(VEGA_CAME)
	$(call say,VEGA,$@)
	$(Q).ci/charts $@
charts: $(CHARTS)
	.ci/compile-charts $(CHARTS) harness/report/charts
	.ci/compile-charts $(CHARTS) docs/workshop
$(B)/harness/report/html/assets.o: harness/report/html/page.css harness/report/html/page.js $(wildcard harness/report/charts/*.vg.json) $(CHARTS)

# Tests of what threads share, which every check runs under ThreadSanitizer.  There they are linked with the layers where threads
# work, and with what a test names above them (THREAD_ABOVE; the linker names what is missing): the others need not be
# compiled once more.
THREAD_TESTS := helpers checkpoints evaluations sample store container tokens read_depths timeline timeline_pipeline live live_feed listen flame nvml planted sample_cache sampler ready slots exchange reading_workers group pipeline_devices state_clock timed_lock trace_log histogram pipeline limiter source uring dataset scan probe ranks gradients
THREAD_TEST_PROGRAMS := $(filter $(THREAD_TESTS:%=$(B)/tests/test_%),$(TESTS))
THREAD_DEVICE_TESTS := runtime graphs session double_nccl group
THREAD_DEVICE_PROGRAMS := $(if $(CUDA_HEADERS),$(THREAD_DEVICE_TESTS:%=$(B)/double/test_%))
THREAD_ABOVE := live/listen.c live/look.c live/stall.c report/openmetrics.c report/openmetrics_names.c report/timeline_index.c command/probe_node.c
THREAD_SOURCES := $(MEASURING) $(filter $(THREAD_ABOVE:%=harness/%),$(SOURCES))
ON_THREADS_LIBRARY := $(if $(filter thread,$(SAN)),$(THREAD_TEST_PROGRAMS) $(THREAD_DEVICE_PROGRAMS))
$(ON_THREADS_LIBRARY): $(B)/libthreads.a
$(B)/libthreads.a: $(THREAD_SOURCES:%.c=$(B)/%.o)
	@rm -f $@
	@ar rcs $@ $^

# Unit tests: one cmocka program per file; `make unit-NAME` builds and runs one.
$(TESTS): $(B)/tests/%: tests/unit/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(TEST_CFLAGS) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(filter %.a,$^) $(LIBS) -lcmocka
$(filter-out $(ON_THREADS_LIBRARY),$(TESTS)): $(LIBRARIES)

unit-%: $(B)/tests/test_%
	$<

include tests/device/device.mk

# Programs of tests/compat, which compares with other software.
$(B)/compat/%: tests/compat/%.c $(LIBRARIES)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(LIBRARIES) $(LIBS)

$(B)/bench/%: tests/bench/%.c $(LIBRARIES)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(LIBRARIES) $(LIBS) -ldeflate

$(B)/bench/bench_nfs: LIBS += -lnfs
$(B)/bench/bench_reads_alone: LIBS += -lcmocka

unit-tests: $(TESTS) $(FAKE_NVML)
benches: $(BENCHES)

# --- the two commands ---------------------------------------------------------------------------
setup:
	@.ci/setup build
setup-check:
	@.ci/setup build check

cuda-toolkit:
	@.ci/setup cuda
	@.ci/cuda-toolkit build/cuda-toolkit

CONFIG ?= configs/imagenet_like.ini
sweep: setup
	@$(MAKE) --no-print-directory -j$$(nproc) program
	$(B)/mlbench sweep $(CONFIG) $(ARGS)

check: setup-check
	@$(MAKE) --no-print-directory -j$$(nproc) all unit-tests double-tests double-benches
	@$(if $(SAN),,$(MAKE) --no-print-directory -j$$(nproc) SAN=thread thread-tests)
	@tests/run.sh $(B) $(PARTS)

# Queues, pools and clocks under ThreadSanitizer, as part of every check; with SAN=thread, everything.
thread-tests: $(THREAD_TEST_PROGRAMS) $(THREAD_DEVICE_PROGRAMS)

include tests/fuzz/fuzz.mk
include tests/bank/bank.mk
include tests/labs/labs.mk

# --- benches: ratios in one run, and what the tests ask of rates, shares and times, on a quiet machine ------------------
bench:
	@.ci/setup build check bench
	@$(MAKE) --no-print-directory -j$$(nproc) all benches $(if $(BENCH),,unit-tests double-tests)
	@tests/bench/run.sh $(B) $(BENCH)
	@$(if $(BENCH),,tests/run.sh $(B) measured)

# --- documents ------------------------------------------------------------------------------------
$(B)/man/mlbench.1: $(B)/mlbench
	@mkdir -p $(@D)
	$(B)/mlbench help --man >$@
$(B)/man/mlbench.ini.5: $(B)/mlbench
	@mkdir -p $(@D)
	$(B)/mlbench help --man-keys >$@
man: $(B)/man/mlbench.1 $(B)/man/mlbench.ini.5
$(B)/completion/%: $(B)/mlbench
	@mkdir -p $(@D)
	$(B)/mlbench help --completion $* >$@
COMPLETIONS := $(B)/completion/bash $(B)/completion/zsh $(B)/completion/fish

include .ci/dist.mk

# --- style ----------------------------------------------------------------------------------------
STYLED := $(wildcard harness/*.c harness/*/*.[ch] harness/report/html/*.[ch] workloads/*/*.[ch] pipelines/*.[ch] tests/*/*.[ch] tests/bank/real/*.c \
                     workloads/backend/cuda/*.[ch] workloads/backend/cuda/*.cu tests/device/*.cu tests/device/double/*.cc tests/device/double/*.h tests/bench/device/*.[ch])
TIDY_FLAGS := -std=gnu17 -D_GNU_SOURCE -DMLBENCH_VERSION=\"$(VERSION)\" -I. -isystem $(GENERATED_B) -fopenmp $(PKG_CFLAGS)
format:
	@clang-format-14 -i $(STYLED)
lint: $(GENERATED)
	@clang-format-14 --dry-run -Werror $(STYLED)
	tests/layering.sh
	@printf '%s\n' $(SOURCES) harness/main.c | xargs -P 2 -n 4 sh -c 'clang-tidy-14 --quiet "$$@" -- $(TIDY_FLAGS)' tidy
	@$(if $(CUDA_HEADERS),printf '%s\n' $(CUDA_C) | xargs -r -P 2 -n 4 sh -c \
	        'clang-tidy-14 --quiet "$$@" -- $(TIDY_FLAGS) -isystem $(CUDA_HOME)/include -DMLBENCH_CUDA_TARGETS=\"\"' tidy)
	@$(if $(MPI_CC),clang-tidy-14 --quiet $(MPI_C) -- $(TIDY_FLAGS) $(patsubst -I%,-isystem %,$(filter -I%,$(shell $(MPICC) -show))))

clean:
	rm -rf build

help:
	@sed -n 's/^#  *\(make .*\)/\1/p' Makefile

.PHONY: all program no-plugin no-mpi cuda-toolkit double double-tests double-benches charts vega-came device device-tests device-benches setup setup-check sweep check bank bank-quick bank-real bank-ranks bank-cases bank-jobs jobs-venv real-tools unit-tests thread-tests fuzzers benches bench labs labs-plain man install dist dist-device format lint clean help
.SECONDARY:

-include $(CUDA_PIC:.o=.d) $(CUDA_PLAIN:%.c=$(B)/pic/%.d) $(CUDA_KERNELS:%.cu=$(B)/pic/%.cu.d) $(DOUBLE_PIC:.o=.d) \
         $(patsubst %,$(DOUBLE_B)/%.d,$(DOUBLE_CXX) $(DEVICE_KERNELS)) $(DEVICE_KERNELS:%=$(B)/pic/%.d) $(DOUBLE_TESTS:=.d) $(DEVICE_SOURCES:tests/device/%.c=$(B)/device/%.d) $(DEVICE_BENCH_OBJECTS:.o=.d)
-include $(MPI_C:%.c=$(B)/mpi/%.d) $(MPI_PLAIN:%.c=$(B)/mpi/%.d)
-include $(OBJECTS:.o=.d) $(B)/harness/main.d $(B)/tests/measuring_alone.d $(LOOKS_AT_WITH:%.o=$(B)/bare/%.d) $(TESTS:=.d) $(BENCHES:=.d) $(FUZZ_OBJECTS:.o=.d)
