// MPI_Allreduce of the MPI that this program is compiled with, under its launcher:
//
//     mpirun -n RANKS mpi SAMPLES WARMUP SIZE...
#include <mpi.h>

#include "measure.hpp"
#include "processes.hpp"

namespace {

struct Mpi {
  Mpi() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }

  int rank = 0, size = 1;
  float* allocate(std::size_t bytes) { return peers::page_aligned(bytes); }
  void prepare(float*, std::size_t) {}
  void allreduce(float* data, std::size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  std::vector<int64_t> gather(const std::vector<int64_t>& mine) {
    std::vector<int64_t> all(mine.size() * static_cast<std::size_t>(size));
    const int count = static_cast<int>(mine.size());
    MPI_Allgather(mine.data(), count, MPI_INT64_T, all.data(), count, MPI_INT64_T, MPI_COMM_WORLD);
    return all;
  }
};

// "Open MPI v4.1.4, package: Debian OpenMPI, ...", "MPICH Version:\t4.0.2" up to the first comma or end of line.
std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string whole(text, static_cast<std::size_t>(length));
  std::replace(whole.begin(), whole.end(), '\t', ' ');
  return whole.substr(0, whole.find_first_of(",\n\"\\"));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);  // by default, MPI ends the job on an error
  try {
    const peers::Options options = peers::parse(argc, argv, 1);
    Mpi group;
    peers::Measurement(group, options).run(library());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
}
