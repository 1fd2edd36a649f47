# The plug-in for jobs of many ranks, where an MPI library is installed (libopenmpi-dev): part of the Makefile.  MPI=0: without.
MPI ?= auto
MPI_WANTED := $(filter-out 0 no off,$(MPI))
MPICC ?= mpicc
MPI_CC := $(if $(MPI_WANTED),$(shell command -v $(MPICC)))
MPI_PLUGIN := $(if $(MPI_CC),$(B)/libmlbench-mpi.so)
MPI_C := $(sort $(wildcard workloads/ranks/mpi/*.c))
MPI_PLAIN := harness/base/error.c
MPI_EXPORTS := workloads/ranks/mpi/exports.map
# The compiler is ours; Open MPI and MPICH have a variable each for it.  No sanitizer: MPI's own leaks would be all that it reports.
MPI_COMPILE = OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(MPICC)
MPI_FLAGS = $(filter-out -fsanitize=%,$(CFLAGS_ALL)) -fPIC

$(B)/mpi/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,"$< (plug-in)")
	$(Q)$(MPI_COMPILE) $(MPI_FLAGS) -MMD -MP -c -o $@ $<
$(B)/libmlbench-mpi.so: $(MPI_C:%.c=$(B)/mpi/%.o) $(MPI_PLAIN:%.c=$(B)/mpi/%.o) $(MPI_EXPORTS)
	$(call say,LINK,$@)
	$(Q)$(MPI_COMPILE) -shared -Wl,--version-script=$(MPI_EXPORTS) -Wl,-z,defs -o $@ $(filter %.o,$^) -lpthread
