// Preloaded into a rank of mpirun, it pretends an affinity mask of FAKE_CORES cores: the first ones, or, with
// FAKE_CORES_APART=1, those that come after the cores of the ranks before it.
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t* set) {
  (void)process;
  const int count = atoi(getenv("FAKE_CORES"));
  const char* const rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  const int apart = strcmp(getenv("FAKE_CORES_APART"), "1") == 0;
  const int first = apart && rank != NULL ? atoi(rank) * count : 0;
  CPU_ZERO_S(bytes, set);
  for (int core = first; core < first + count; ++core) CPU_SET_S((size_t)core, bytes, set);
  return 0;
}
