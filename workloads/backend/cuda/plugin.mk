# The plug-in for NVIDIA devices: whether there is a toolkit for it, and how it is built.  Part of the Makefile.
# An installed toolkit, else the one that `make cuda-toolkit` assembled.
CUDA_HOME ?= $(or $(patsubst %/include/cublasLt.h,%,$(firstword $(wildcard $(foreach home,/usr/local/cuda $(CURDIR)/build/cuda-toolkit,$(home)/include/cublasLt.h)))),/usr/local/cuda)
export CUDA_HOME
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
ifneq ($(filter-out clean help format lint setup setup-check cuda-toolkit sweep check bank bank-quick bank-real bank-ranks real-tools bench,$(or $(MAKECMDGOALS),all)),)
  ifneq ($(and $(CUDA_WANTED),$(if $(SAN),,yes)),)
    include $(shell .ci/cuda $(CUDA_HOME) '$(CC)' '$(CXX_ALL)' '$(CUDA_ARCHS)' build/cuda $(NVCCFLAGS))
    ifneq ($(and $(CUDA_INSIST),$(CUDA_WHY)),)
      $(error CUDA=$(CUDA): $(CUDA_WHY))
    endif
  endif
endif
CUDA_NVCC := $(if $(CUDA_GENCODE),$(NVCC))

# C of ours, kernels by nvcc, and what it needs of the plain files: all position-independent, in folders of their own.
CUDA_C := $(sort $(wildcard workloads/backend/cuda/*.c))
CUDA_KERNELS := $(sort $(wildcard workloads/backend/cuda/*.cu))
DEVICE_KERNELS := $(sort $(wildcard tests/device/*.cu))
CUDA_PLAIN := $(addprefix harness/base/,error.c clock.c rng.c log.c buffer.c text.c units.c) $(addprefix workloads/model/,model.c models.c) \
              $(addprefix workloads/backend/,network_plan.c buckets.c)
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
# ALLOW_UNDEFINED=1: plug-in and device tests link although functions that they call are not written yet.
UNDEFINED := $(if $(ALLOW_UNDEFINED),-Wl$(comma)--unresolved-symbols=ignore-all,)
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
