# mlbench: two commands do everything on a fresh Debian 12 machine.
#   make sweep     set up, build, generate the data set, run the main job
#   make check     set up, build, run every test
#   make bank      plant every bottleneck, have it diagnosed, score the answers (half an hour)
#   make bank-real the same with real conditions: FUSE, cgroups, a shaped link, hogs (root; an hour a half)
# The others: make, make install PREFIX=, dist, dist-device, device (what tests/device/run.sh needs on a machine with a GPU), bench, bank-quick, format, lint, clean; DEV=1, SAN=address,undefined, SAN=thread.
# CUDA=0 leaves the plug-in for NVIDIA devices out, CUDA=1 insists on it; CUDA_HOME=/usr/local/cuda is where the toolkit is;
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

PACKAGES := liburing libpng libjpeg inih jansson hwloc libisal libxxhash \
            sqlite3 ncursesw libmicrohttpd libdw libprotobuf-c
# Formats of pictures that the program does without where their libraries are not installed.
WEBP := $(shell pkg-config --exists libwebp 2>/dev/null && echo libwebp)
TIFF := $(shell pkg-config --exists 'libtiff-4 >= 4.5' 2>/dev/null && echo libtiff-4)
PACKAGES += $(WEBP) $(TIFF)
PKG_CFLAGS := $(shell pkg-config --cflags $(PACKAGES) openblas 2>/dev/null) $(WEBP:%=-DMLBENCH_WEBP) $(TIFF:%=-DMLBENCH_TIFF)
PKG_LIBS := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null)

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wwrite-strings -Wpointer-arith -Wvla -Wundef -Wformat=2 -Wnull-dereference
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
TESTS := $(TEST_SOURCES:tests/unit/%.c=$(B)/tests/%)
BENCH_SOURCES := $(sort $(wildcard tests/bench/bench_*.c))
BENCHES := $(BENCH_SOURCES:tests/bench/%.c=$(B)/bench/%)

# Code that is made from descriptions, into the build's folder; it is not held to our warnings.
GENERATED_B := $(B)/generated
PROTOS := $(sort $(wildcard harness/*/*.proto))
GENERATED := $(PROTOS:%.proto=$(GENERATED_B)/%.pb-c.c)
GENERATED_OBJECTS := $(GENERATED:.c=.o)
CFLAGS_ALL += -isystem $(GENERATED_B)

# --- the toolkit: is it there? ----------------------------------------------------------------------
CUDA_HOME ?= /usr/local/cuda
CUDA ?= auto
NVCC := $(CUDA_HOME)/bin/nvcc
CXX_ALL := $(subst gcc,g++,$(subst clang,clang++,$(CC)))
# Headers are enough for the test double; devices need nvcc.  A build with sanitizers has the double alone.
PLUGIN = $(if $(wildcard workloads/backend/cuda/plugin.c workloads/backend/cuda/plugin_table.c),$(B)/libmlbench-cuda.so)
CUDA_WANTED := $(filter-out 0 no off,$(CUDA))
CUDA_HEADERS := $(if $(CUDA_WANTED),$(if $(shell command -v $(CXX_ALL)),$(wildcard $(CUDA_HOME)/include/cublasLt.h)))
CUDA_INSIST := $(filter 1 yes on,$(CUDA))
# CUDA_ARCHS: devices that the plug-in is built for: numbers (90, or 80,90), all, or native; .ci/cuda asks nvcc what it can.
CUDA_ARCHS ?= $(if $(filter dist dist-device device,$(MAKECMDGOALS)),all,native)
CUDA_WHY :=
CUDA_NOTE :=
ifneq ($(filter-out clean help format lint setup setup-check sweep check bank bank-quick bank-real real-tools bench,$(or $(MAKECMDGOALS),all)),)
  ifneq ($(and $(CUDA_WANTED),$(if $(SAN),,yes)),)
    include $(shell .ci/cuda $(CUDA_HOME) $(CC) $(CXX_ALL) '$(CUDA_ARCHS)' build/cuda $(NVCCFLAGS))
    ifneq ($(and $(CUDA_INSIST),$(CUDA_WHY)),)
      $(error CUDA=$(CUDA): $(CUDA_WHY))
    endif
  endif
endif
CUDA_NVCC := $(if $(CUDA_GENCODE),$(NVCC))

all: $(B)/mlbench $(B)/measuring_alone $(if $(CUDA_NVCC),$(PLUGIN),no-plugin)
	$(if $(CUDA_WHY),$(call say,NOTE,"no plug-in for NVIDIA devices: $(CUDA_WHY)"))
	$(if $(CUDA_NOTE),$(call say,NOTE,"plug-in for NVIDIA devices: $(CUDA_NOTE)"))
no-plugin: # of an earlier build, which the program would find
	@rm -f $(B)/libmlbench-cuda.so
# ALLOW_UNDEFINED=1: plug-in and device tests link although functions that they call are not written yet.
UNDEFINED := $(if $(ALLOW_UNDEFINED),-Wl$(comma)--unresolved-symbols=ignore-all,)

# What measures, and what reads: the first links without the second, and without its libraries (tests/measuring_alone.c).
MEASURING := $(filter harness/base/% harness/config/% harness/record/% harness/flow/% harness/measure/% workloads/% pipelines/%,$(SOURCES))
READING_PACKAGES := sqlite3 ncursesw libmicrohttpd libprotobuf-c
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

$(GENERATED_B)/%.pb-c.c $(GENERATED_B)/%.pb-c.h &: %.proto
	@mkdir -p $(@D)
	$(call say,PROTO,$<)
	$(Q)protoc-c --c_out=$(GENERATED_B) $<
$(GENERATED_B)/%.o: $(GENERATED_B)/%.c Makefile
	$(call say,CC,$<)
	$(Q)$(CC) $(filter-out $(WARNINGS) -Werror,$(CFLAGS_ALL)) -w -c -o $@ $<
$(B)/harness/report/tensorboard_events.o: | $(GENERATED)
$(B)/workloads/backend/blas.o: CFLAGS_ALL += -DMLBENCH_OPENBLAS_FOLDER='"$(OPENBLAS_DIR)"'

# The runbook is in the program (runbook.c takes it in).
$(B)/harness/report/runbook.o: docs/runbook.md

# So are the page's style, its script, and the libraries that draw its charts (assets.c), one fetch for all variants.
CHARTS := build/npm/charts.js
$(CHARTS): .ci/charts .ci/charts.sha512
	$(call say,NPM,$@)
	$(Q).ci/charts $@
$(B)/harness/report/html/assets.o: harness/report/html/page.css harness/report/html/page.js $(CHARTS)

# Tests of what threads share, which every check runs under ThreadSanitizer.  There they are linked with the layers where threads
# work, and with what a test names above them (THREAD_ABOVE; the linker names what is missing): the others need not be
# compiled once more.
THREAD_TESTS := read_depths timeline timeline_pipeline live live_feed listen flame nvml planted sample_cache sampler ready slots exchange group pipeline_devices state_clock timed_lock trace_log histogram pipeline limiter source uring dataset scan probe
THREAD_TEST_PROGRAMS := $(filter $(THREAD_TESTS:%=$(B)/tests/test_%),$(TESTS))
THREAD_DEVICE_TESTS := runtime graphs session double_nccl group
THREAD_DEVICE_PROGRAMS := $(if $(CUDA_HEADERS),$(THREAD_DEVICE_TESTS:%=$(B)/double/test_%))
THREAD_ABOVE := live/listen.c live/look.c live/metrics.c live/stall.c report/openmetrics.c report/openmetrics_names.c report/timeline_index.c command/probe_node.c
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

# --- plug-in for NVIDIA devices ---------------------------------------------------------------------
# C of ours, kernels by nvcc, and what it needs of the plain files: all position-independent, in folders of their own.
CUDA_C := $(sort $(wildcard workloads/backend/cuda/*.c))
CUDA_KERNELS := $(sort $(wildcard workloads/backend/cuda/*.cu))
DEVICE_KERNELS := $(sort $(wildcard tests/device/*.cu))
CUDA_PLAIN := $(addprefix harness/base/,error.c clock.c rng.c log.c buffer.c utf8.c units.c units_format.c) $(sort $(wildcard workloads/model/*.c)) \
              $(addprefix workloads/backend/,network_plan.c)
CUDA_PIC := $(CUDA_C:%.c=$(B)/pic/%.o)
NVCC_HOST_FLAGS := -fPIC,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-Wall,-Wextra$(if $(DEV),$(comma)-Werror)
NVCC_FLAGS := -std=c++17 -O3 -lineinfo -I. $(CUDA_GENCODE) -Xcompiler $(NVCC_HOST_FLAGS) $(if $(DEV),-Werror all-warnings) $(NVCCFLAGS)
CUDA_C_FLAGS := $(CFLAGS_ALL) -fPIC -isystem $(CUDA_HOME)/include -DMLBENCH_CUDA_TARGETS='"$(CUDA_TARGETS)"'
CUDA_LIBS := -L$(CUDA_HOME)/lib64 -lcudart -lcublasLt -Wl,-rpath,$(CUDA_HOME)/lib64
PLUGIN_EXPORTS := workloads/backend/cuda/exports.map
# Another toolkit, or other devices: the same objects anew.  Written while this file is read, so that `make -n` says the truth.
ifneq ($(CUDA_NVCC),)
  CUDA_STAMP := $(B)/pic/toolkit
  $(shell mkdir -p $(B)/pic; echo '$(CUDA_HOME) $(CUDA_RELEASE) $(CUDA_GENCODE)' >$(CUDA_STAMP).new; \
          cmp -s $(CUDA_STAMP).new $(CUDA_STAMP) && rm $(CUDA_STAMP).new || mv $(CUDA_STAMP).new $(CUDA_STAMP))
endif
# What nvcc or the C compiler refuses of the plug-in, for a reason that .ci/cuda did not meet, is noted, and the plug-in left
# out: the program goes on without.  CUDA=1 stops there.
PLUGIN_REFUSED := $(B)/pic/refused
or_refused = $(if $(CUDA_INSIST)$(DEV),,|| { echo $@ >>$(PLUGIN_REFUSED); : >$@; })
PLUGIN_LDFLAGS := $(LDFLAGS_ALL) -shared -Wl,--version-script=$(PLUGIN_EXPORTS) $(if $(SAN)$(UNDEFINED),$(UNDEFINED),-Wl$(comma)-z$(comma)defs)

$(B)/pic/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,"$< (plug-in)")
	$(Q)$(CC) $(CUDA_C_FLAGS) -MMD -MP -c -o $@ $< $(or_refused)
$(B)/pic/%.cu.o: %.cu Makefile
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $< $(or_refused)
$(CUDA_PIC) $(CUDA_KERNELS:%.cu=$(B)/pic/%.cu.o) $(DEVICE_KERNELS:%.cu=$(B)/pic/%.cu.o): $(CUDA_STAMP)
$(B)/pic/plain.a: $(CUDA_PLAIN:%.c=$(B)/pic/%.o)
	@rm -f $@
	@ar rcs $@ $^
$(B)/pic/plugin.a: $(CUDA_PIC) $(CUDA_KERNELS:%.cu=$(B)/pic/%.cu.o) $(DEVICE_KERNELS:%.cu=$(B)/pic/%.cu.o)
	@rm -f $@
	@ar rcs $@ $^
$(B)/libmlbench-cuda.so: $(CUDA_PIC) $(CUDA_KERNELS:%.cu=$(B)/pic/%.cu.o) $(B)/pic/plain.a $(PLUGIN_EXPORTS)
	$(call say,LINK,$@)
	$(Q)if [ -s $(PLUGIN_REFUSED) ]; then \
	        echo "  NOTE  no plug-in for NVIDIA devices: with the toolkit of $(CUDA_HOME), $$(sed -n '1s|.*/\(.*\)\.o$$|\1|p' $(PLUGIN_REFUSED)) does not compile (CUDA=1 insists)"; \
	        xargs rm -f <$(PLUGIN_REFUSED); rm -f $(PLUGIN_REFUSED) $@; \
	else \
	        $(CC) $(PLUGIN_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(CUDA_LIBS) -lm -ldl$(if $(CUDA_INSIST)$(DEV),, || \
	                echo "  NOTE  no plug-in for NVIDIA devices: it cannot be linked with the libraries of $(CUDA_HOME) (CUDA=1 insists)"); \
	fi

# --- test double: the toolkit's libraries on the CPU, and the plug-in on them ---------------------------
# docs/TESTING.md says what it proves.  The same C; kernels by the C++ compiler; only files that mention the double are compiled anew.
DOUBLE_B := $(B)/double
DOUBLE_CXX := $(sort $(wildcard tests/device/double/*.cc))
DOUBLE_NCCL := $(filter tests/device/double/nccl%,$(DOUBLE_CXX))
DOUBLE_OWN := $(if $(CUDA_C),$(shell grep -l MLBENCH_CUDA_DOUBLE $(CUDA_C)))
DOUBLE_PIC := $(patsubst %.c,$(B)/pic/%.o,$(filter-out $(DOUBLE_OWN),$(CUDA_C))) $(DOUBLE_OWN:%.c=$(DOUBLE_B)/%.o) \
              $(CUDA_KERNELS:%.cu=$(DOUBLE_B)/%.cu.o)
DOUBLE_FLAGS := -std=c++17 $(if $(SAN),-O1,-O2) -g1 -fPIC -I. -isystem $(CUDA_HOME)/include -pthread -DMLBENCH_CUDA_DOUBLE -ffp-contract=off \
                -fno-omit-frame-pointer -Wall -Wextra $(if $(DEV),-Werror) \
                $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
DOUBLE_LIBS := -L$(DOUBLE_B) -lcuda-double '-Wl,-rpath,$$ORIGIN'

$(DOUBLE_B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,"$< (double)")
	$(Q)$(CC) $(CUDA_C_FLAGS) -DMLBENCH_CUDA_DOUBLE -MMD -MP -c -o $@ $<
$(DOUBLE_B)/%.cu.o: %.cu Makefile
	@mkdir -p $(@D)
	$(call say,CXX,"$< (double)")
	$(Q)$(CXX_ALL) $(DOUBLE_FLAGS) -x c++ -MMD -MP -c -o $@ $<
$(DOUBLE_B)/%.cc.o: %.cc Makefile
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX_ALL) $(DOUBLE_FLAGS) -Wpedantic -Wshadow -MMD -MP -c -o $@ $<
$(DOUBLE_B)/libcuda-double.so: $(patsubst %,$(DOUBLE_B)/%.o,$(filter-out $(DOUBLE_NCCL),$(DOUBLE_CXX)))
	$(call say,LINK,$@)
	$(Q)$(CXX_ALL) $(LDFLAGS_ALL) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -o $@ $^ -ldl
$(DOUBLE_B)/libnccl.so.2: $(patsubst %,$(DOUBLE_B)/%.o,$(DOUBLE_NCCL)) $(DOUBLE_B)/libcuda-double.so
	$(call say,LINK,$@)
	$(Q)$(CXX_ALL) $(LDFLAGS_ALL) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -o $@ $(filter %.o,$^) $(DOUBLE_LIBS)
$(DOUBLE_B)/libmlbench-cuda.so: $(DOUBLE_PIC) $(B)/pic/plain.a $(DOUBLE_B)/libcuda-double.so $(PLUGIN_EXPORTS)
	$(call say,LINK,$@)
	$(Q)$(CXX_ALL) $(PLUGIN_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(DOUBLE_LIBS) -lm -ldl
$(DOUBLE_B)/plugin.a: $(DOUBLE_PIC) $(DEVICE_KERNELS:%.cu=$(DOUBLE_B)/%.cu.o)
	@rm -f $@
	@ar rcs $@ $^
double: $(DOUBLE_B)/libnccl.so.2 $(if $(PLUGIN),$(DOUBLE_B)/libmlbench-cuda.so)

# Programs of tests/device, linked with what they use of the plug-in: once on the double (`make device-NAME` builds and runs
# one; test_double* need it), once on the real libraries, for tests/device/run.sh on a machine with a device.
DEVICE_SOURCES := $(sort $(wildcard tests/device/test_*.c))
DOUBLE_TESTS := $(DEVICE_SOURCES:tests/device/%.c=$(DOUBLE_B)/%)
DEVICE_TESTS := $(patsubst tests/device/%.c,$(B)/device/%,$(filter-out tests/device/test_double%,$(DEVICE_SOURCES)))
# What does not mention the double, itself or in a header of its own folder, is compiled once for both.
DEVICE_DOUBLE_HEADERS := $(shell grep -l MLBENCH_CUDA_DOUBLE tests/device/*.h)
DEVICE_OWN := $(shell grep -l -e MLBENCH_CUDA_DOUBLE $(DEVICE_DOUBLE_HEADERS:%=-e %) $(DEVICE_SOURCES))
DEVICE_C_FLAGS = $(TEST_CFLAGS) -isystem $(CUDA_HOME)/include
# They travel with `make dist`, whose libraries are in lib/ beside their folder.
DEVICE_LDFLAGS := $(LDFLAGS_ALL) $(UNDEFINED) -Wl,--disable-new-dtags '-Wl,-rpath,$$ORIGIN/../lib'

$(B)/device/test_%.o: tests/device/test_%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,"$< (device)")
	$(Q)$(CC) $(DEVICE_C_FLAGS) -MMD -MP -c -o $@ $<
$(DOUBLE_B)/test_%.o: tests/device/test_%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,"$< (double)")
	$(Q)$(CC) $(DEVICE_C_FLAGS) -DMLBENCH_CUDA_DOUBLE -MMD -MP -c -o $@ $<
double_object = $(if $(filter tests/device/$1.c,$(DEVICE_OWN)),$(DOUBLE_B),$(B)/device)/$1.o
$(foreach test,$(DEVICE_SOURCES:tests/device/%.c=%),$(eval $(DOUBLE_B)/$(test): $(call double_object,$(test))))
$(DOUBLE_TESTS): $(DOUBLE_B)/plugin.a $(DOUBLE_B)/libnccl.so.2
	$(call say,LINK,$@)
	$(Q)$(CXX_ALL) $(LDFLAGS_ALL) $(UNDEFINED) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(DOUBLE_LIBS) $(LIBS) -lcmocka
$(filter-out $(ON_THREADS_LIBRARY),$(DOUBLE_TESTS)): $(LIBRARIES)
$(DEVICE_TESTS): %: %.o $(B)/pic/plugin.a $(LIBRARIES)
	$(call say,LINK,$@)
	$(Q)$(CC) $(DEVICE_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(CUDA_LIBS) $(LIBS) -lcmocka
# Benches of a device: tests/device/run.sh runs them and judges their bars; on the double they only show that they run.
DEVICE_BENCHES := $(patsubst tests/bench/device/%.c,%,$(sort $(wildcard tests/bench/device/bench_*.c)))
DEVICE_BENCH_OBJECTS := $(DEVICE_BENCHES:%=$(B)/device/%.o) $(B)/device/device_bench.o
$(DEVICE_BENCH_OBJECTS): $(B)/device/%.o: tests/bench/device/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,"$< (device)")
	$(Q)$(CC) $(CFLAGS_ALL) -isystem $(CUDA_HOME)/include -MMD -MP -c -o $@ $<
$(DEVICE_BENCHES:%=$(DOUBLE_B)/%): $(DOUBLE_B)/%: $(B)/device/%.o $(B)/device/device_bench.o $(DOUBLE_B)/plugin.a $(LIBRARIES) $(DOUBLE_B)/libnccl.so.2
	$(call say,LINK,$@)
	$(Q)$(CXX_ALL) $(LDFLAGS_ALL) $(UNDEFINED) -o $@ $(filter %.o %.a,$^) $(DOUBLE_LIBS) $(LIBS)
$(DEVICE_BENCHES:%=$(B)/device/%): %: %.o $(B)/device/device_bench.o $(B)/pic/plugin.a $(LIBRARIES)
	$(call say,LINK,$@)
	$(Q)$(CC) $(DEVICE_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(CUDA_LIBS) $(LIBS)
double-benches: $(if $(CUDA_HEADERS),$(DEVICE_BENCHES:%=$(DOUBLE_B)/%))
device-benches: $(if $(CUDA_NVCC),$(DEVICE_BENCHES:%=$(B)/device/%))
# Everything that tests/device/run.sh needs on a machine with a GPU.
device: all device-tests device-benches

double-tests: $(if $(CUDA_HEADERS),$(DOUBLE_TESTS) double)
device-tests: $(if $(CUDA_NVCC),$(DEVICE_TESTS))
device-%: $(DOUBLE_B)/test_%
	LD_LIBRARY_PATH=$(abspath $(DOUBLE_B)):$$LD_LIBRARY_PATH $<
# A libnvidia-ml.so.1 that follows a script (tests/device/nvml), and one of an old driver: for tests of what
# is asked of NVML.  LD_LIBRARY_PATH=$(B)/nvml/new gives it to the program.
FAKE_NVML := $(B)/nvml/new/libnvidia-ml.so.1 $(B)/nvml/old/libnvidia-ml.so.1
$(B)/nvml/%/libnvidia-ml.so.1: tests/device/nvml/fake_nvml.c Makefile
	@mkdir -p $(@D)
	$(call say,FAKE,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(if $(filter old,$*),-DFAKE_NVML_OLD) -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 \
	        $(LDFLAGS_ALL) -o $@ $<
$(B)/tests/test_nvml: | $(FAKE_NVML)
$(B)/tests/test_doctor_device: | $(FAKE_NVML)

# Programs of tests/compat, which compares with other software.
$(B)/compat/%: tests/compat/%.c $(LIBRARIES)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(LIBRARIES) $(LIBS)

$(B)/bench/%: tests/bench/%.c $(LIBRARIES)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(LIBRARIES) $(LIBS) -ldeflate

unit-tests: $(TESTS) $(FAKE_NVML)
benches: $(BENCHES)

# --- the two commands ---------------------------------------------------------------------------
setup:
	@.ci/setup build
	@.ci/charts $(CHARTS)
setup-check:
	@.ci/setup build check
	@.ci/charts $(CHARTS)

CONFIG ?= configs/imagenet_like.ini
sweep: setup
	@$(MAKE) --no-print-directory all
	$(B)/mlbench sweep $(CONFIG) $(ARGS)

check: setup-check
	@$(MAKE) --no-print-directory -j2 all unit-tests double-tests double-benches
	@$(if $(SAN),,$(MAKE) --no-print-directory -j2 SAN=thread thread-tests)
	@tests/run.sh $(B) $(PARTS)

# Queues, pools and clocks under ThreadSanitizer, as part of every check; with SAN=thread, everything.
thread-tests: $(THREAD_TEST_PROGRAMS) $(THREAD_DEVICE_PROGRAMS)

# --- fuzzing: libFuzzer, clang ------------------------------------------------------------------
FUZZ_CC ?= clang-14
FUZZ_B := build/fuzz
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZERS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(FUZZ_B)/%)
# What the targets reach first, instrumented: no threads, no OpenMP (whose header clang has in another package).  The rest is
# the program's own; for a long run FUZZ_MORE='harness/report/% harness/analyze/%' has more of it instrumented.
FUZZ_MORE ?=
FUZZ_REPORT := ceilings_reads ceilings_device report summary_json device_summary_json csv terminal device_text stage_table points_table export_jsonl export_markdown export_openmetrics
FUZZ_OBJECTS := $(patsubst %.c,$(FUZZ_B)/%.o,$(filter harness/base/% harness/config/% harness/record/% harness/measure/timeline.c workloads/image/% \
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

# --- benches: ratios in one run, and what the tests ask of rates, shares and times, on a quiet machine ------------------
bench:
	@.ci/setup build check bench
	@$(MAKE) --no-print-directory -j2 all benches $(if $(BENCH),,unit-tests double-tests)
	@tests/bench/run.sh $(B) $(BENCH)
	@$(if $(BENCH),,tests/run.sh $(B) measured)

# --- the bank of planted bottlenecks: how often the diagnosis is right --------------------------------
# BANK="--only lock,worker --seeds 5" passes options on; the score lands in results/bank/.
bank: setup-check
	@$(MAKE) --no-print-directory all
	tests/bank/bank.py $(B)/mlbench $(BANK)
bank-quick: setup-check
	@$(MAKE) --no-print-directory all
	tests/bank/bank.py $(B)/mlbench --quick --out $(B)/bank-quick $(BANK)

# Real plants: a storage in user space whose limits are known, cgroups, a shaped link, hogs.  Needs root, and packages of its own;
# begins by measuring that storage.  BANK="--half train --only quota --advice" passes options on.
REAL_TOOLS := $(B)/real/slowfs $(B)/real/hog
$(B)/real/slowfs: REAL_FLAGS = $$(pkg-config --cflags --libs fuse3) -lm
$(REAL_TOOLS): $(B)/real/%: tests/bank/real/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -O2 -g -pthread $(WARNINGS) $(if $(DEV),-Werror) -o $@ $< $(REAL_FLAGS)
real-tools: $(REAL_TOOLS)
bank-real:
	@.ci/setup build bank
	@$(MAKE) --no-print-directory all real-tools
	tests/bank/real/store_check.py $(B)/real || [ $$? -eq 3 ]
	tests/bank/real/real_bank.py $(B)/mlbench $(B)/real $(BANK)

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

# --- install and dist -----------------------------------------------------------------------------
install: all man $(COMPLETIONS)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5 \
	        $(DESTDIR)$(PREFIX)/share/mlbench/configs/emulated
	install -m 755 $(B)/mlbench $(DESTDIR)$(PREFIX)/bin/mlbench
	$(if $(and $(CUDA_NVCC),$(PLUGIN)),install -d $(DESTDIR)$(PREFIX)/lib/mlbench)
	$(if $(and $(CUDA_NVCC),$(PLUGIN)),install -m 755 $(B)/libmlbench-cuda.so $(DESTDIR)$(PREFIX)/lib/mlbench/)
	install -m 644 $(B)/man/mlbench.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 $(B)/man/mlbench.ini.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	install -m 644 configs/*.ini $(DESTDIR)$(PREFIX)/share/mlbench/configs/
	install -m 644 configs/emulated/*.ini $(DESTDIR)$(PREFIX)/share/mlbench/configs/emulated/
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/mlbench README.md LICENSE
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/mlbench/docs $(wildcard docs/*.*)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/mlbench/docs/prometheus $(wildcard docs/prometheus/*)
	install -D -m 644 $(B)/completion/bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/mlbench
	install -D -m 644 $(B)/completion/zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_mlbench
	install -D -m 644 $(B)/completion/fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/mlbench.fish

# Everything beside glibc, libgcc_s and the CUDA libraries travels in lib/; DT_RPATH (not RUNPATH) holds for libraries' libraries
# too.  .ci/old_glibc.py has all of it run on glibc 2.28; the program names libpthread, libdl and librt, which were
# libraries of their own then.  The programs that tests/device/run.sh runs where there is a device are a tarball of their own,
# which unpacks into the same folder.
DIST := mlbench-$(VERSION)-linux-$(shell uname -m)
DIST_B := $(B)/dist/$(DIST)
DIST_PLUGIN := $(if $(and $(CUDA_NVCC),$(PLUGIN)),$(PLUGIN))
DIST_PROGRAMS := $(if $(DIST_PLUGIN),$(DEVICE_TESTS) $(DEVICE_BENCHES:%=$(B)/device/%))
DIST_LEVEL ?= 6
DIST_OUT ?= build/dist
DIST_BLAS := $(OPENBLAS_DIR)/libopenblas.so.0
NODES_OWN := libc|libm|libpthread|libdl|librt|libresolv|libgcc_s|libcuda|libcudart|libcublas|libcublasLt|libnccl
OLD_PARTS = $(foreach library,pthread.so.0 dl.so.2 rt.so.1,$(shell $(CC) -print-file-name=lib$(library)))
pack = mkdir -p $(DIST_OUT) && tar -C $(B)/dist -I 'xz -T0 -$(DIST_LEVEL)' -cf $(DIST_OUT)/$1.tar.xz $(DIST) && echo $(DIST_OUT)/$1.tar.xz
libraries_of = ldd $1 | awk '$$3 ~ /^\// && $$1 !~ /^($(NODES_OWN))\.so/ { print $$3 }' | sort -u | xargs -I{} install -m 644 {} $2
OLD_GLIBC := $(B)/dist/old_glibc.o
OLD_LDFLAGS = $$(.ci/old_glibc.py --exports) -Wl,--disable-new-dtags '-Wl,-rpath,$$ORIGIN/../lib'
$(OLD_GLIBC): .ci/old_glibc.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE $(WARNINGS) -O2 -c -o $@ $<
dist: all man $(COMPLETIONS) $(DIST_PLUGIN) $(OLD_GLIBC)
	rm -rf $(DIST_B)
	install -d $(DIST_B)/bin $(DIST_B)/lib $(DIST_B)/man $(DIST_B)/completion
	$(CC) $(LDFLAGS_ALL) $(OLD_LDFLAGS) -Wl,-S -o $(DIST_B)/bin/mlbench $(B)/harness/main.o $(OLD_GLIBC) $(LIBRARIES) $(LIBS) -Wl,--no-as-needed $(OLD_PARTS)
	@$(call libraries_of,$(B)/mlbench $(DIST_BLAS),$(DIST_B)/lib/)
	install -m 644 $(DIST_BLAS) $(DIST_B)/lib/
	$(if $(DIST_PLUGIN),install -D -m 644 -t $(DIST_B)/lib/mlbench $(PLUGIN))
	.ci/old_glibc.py $(DIST_B)/bin/mlbench $(DIST_B)/lib/*.so* $(if $(DIST_PLUGIN),$(DIST_B)/lib/mlbench/*.so)
	cp -r configs docs README.md LICENSE $(DIST_B)/
	cp $(B)/man/* $(DIST_B)/man/
	cp $(COMPLETIONS) $(DIST_B)/completion/
	@$(call pack,$(DIST))
dist-device: device $(OLD_GLIBC)
	rm -rf $(DIST_B)
	install -d $(DIST_B)/device $(DIST_B)/tests/device $(DIST_B)/tests/bank
	$(if $(DIST_PROGRAMS),,@echo 'dist-device: $(or $(CUDA_WHY),CUDA=$(CUDA)): there is nothing to pack' >&2; false)
	$(Q)$(foreach program,$(DIST_PROGRAMS),$(CC) $(LDFLAGS_ALL) $(OLD_LDFLAGS) -s -o $(DIST_B)/device/$(notdir $(program)) $(program).o \
	        $(if $(filter bench_%,$(notdir $(program))),$(B)/device/device_bench.o) $(OLD_GLIBC) $(B)/pic/plugin.a $(LIBRARIES) \
	        $(CUDA_LIBS) $(LIBS) -lcmocka -Wl$(comma)--no-as-needed $(OLD_PARTS) && ) true
	install -d $(DIST_B)/lib
	@$(call libraries_of,$(DIST_PROGRAMS),$(DIST_B)/lib/)
	.ci/old_glibc.py $(DIST_B)/device/* $(DIST_B)/lib/*.so*
	cp tests/device/run.sh tests/device/judge.py $(DIST_B)/tests/device/
	cp tests/bank/*.py $(DIST_B)/tests/bank/
	@$(call pack,$(DIST)-device)

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

clean:
	rm -rf build

help:
	@sed -n 's/^#  *\(make .*\)/\1/p' Makefile

.PHONY: all no-plugin double double-tests double-benches device device-tests device-benches setup setup-check sweep check bank bank-quick bank-real real-tools unit-tests thread-tests fuzzers benches bench man install dist dist-device format lint clean help
.SECONDARY:

-include $(CUDA_PIC:.o=.d) $(CUDA_PLAIN:%.c=$(B)/pic/%.d) $(CUDA_KERNELS:%.cu=$(B)/pic/%.cu.d) $(DOUBLE_PIC:.o=.d) \
         $(patsubst %,$(DOUBLE_B)/%.d,$(DOUBLE_CXX) $(DEVICE_KERNELS)) $(DEVICE_KERNELS:%=$(B)/pic/%.d) $(DOUBLE_TESTS:=.d) $(DEVICE_SOURCES:tests/device/%.c=$(B)/device/%.d) $(DEVICE_BENCH_OBJECTS:.o=.d)
-include $(OBJECTS:.o=.d) $(B)/harness/main.d $(TESTS:=.d) $(BENCHES:=.d) $(FUZZ_OBJECTS:.o=.d)
