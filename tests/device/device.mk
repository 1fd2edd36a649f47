# The test double (the toolkit's libraries on the CPU, and the plug-in on them), and the tests and benches of devices.  Part of the
# Makefile; docs/TESTING.md says what the double proves.
# The same C; kernels by the C++ compiler; only files that mention the double are compiled anew.
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
$(B)/tests/test_error_counters $(B)/tests/test_check_expect: | $(FAKE_NVML)
$(B)/tests/test_doctor_device: | $(FAKE_NVML)
