#include "communicator.hpp"

#include <sched.h>

#include <algorithm>
#include <string>
#include <vector>

using ddprun::CommError;
using ddprun::CommStatus;

namespace {

// What a rank tells the others before they make a communicator.
struct Place {
  int world_rank = -1;  // in MPI_COMM_WORLD; -1: it could not start MPI
  int world_size = 0;
  int tag = 0;  // rank 0's separates communicators that two threads make at the same time
};

// Throws unless the ranks of ddprun are the processes of one MPI job. Without mpirun, each rank is a job of its own.
void refuse_other_world(const std::vector<Place>& places) {
  const std::size_t size = places.size();
  std::vector<int> ranks;
  bool fits = true;
  for (const Place& one : places) {
    if (one.world_rank < 0)
      throw CommError(CommStatus::unsupported, "a rank could not start MPI; its own error says why");
    fits = fits && one.world_size == static_cast<int>(size);
    ranks.push_back(one.world_rank);
  }
  std::sort(ranks.begin(), ranks.end());
  if (fits && std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end()) return;
  const std::string n = std::to_string(size);
  throw CommError(CommStatus::unsupported, "MPI has a job of " + std::to_string(places[0].world_size) +
                                               " processes, and ddprun has " + n +
                                               " ranks: start the job as mpirun -n " + n + " ddprun --config ...");
}

}  // namespace

Communicator::Communicator(const ddprun::Host& host, std::size_t piece)
    : host_(host), piece_(piece), memory_(std::make_unique<Memory>(piece)) {
  try {
    join();
  } catch (...) {
    leave();
    throw;
  }
}

Communicator::~Communicator() {
  leave();
}

// MPI_Init_thread and MPI_Comm_create_group have no deadline. So each is between two of the host's gathers, which have
// one: a rank that is missing is noticed there.
void Communicator::join() {
  static std::atomic<int> next_tag{0};
  constexpr int kTags = 1 << 15;  // MPI allows at least so many
  std::vector<Place> places(static_cast<std::size_t>(host_.size()));
  Place own;
  own.tag = next_tag++ % kTags;
  host_.allgather(&own, sizeof own, places.data());
  std::string why;
  try {
    start_mpi();
    MPI_Comm_rank(MPI_COMM_WORLD, &own.world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &own.world_size);
  } catch (const CommError& error) {
    why = error.what();
  }
  host_.allgather(&own, sizeof own, places.data());
  if (!why.empty()) throw CommError(CommStatus::unsupported, why);
  refuse_other_world(places);

  // The ranks of ddprun may be in another order than those of MPI_COMM_WORLD.
  std::vector<int> ranks;
  for (const Place& one : places) ranks.push_back(one.world_rank);
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, host_.size(), ranks.data(), &group);
  const int code = MPI_Comm_create_group(MPI_COMM_WORLD, group, places[0].tag, &memory_->comm);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  if (code == MPI_SUCCESS) MPI_Comm_set_errhandler(memory_->comm, MPI_ERRORS_RETURN);
  std::string failure;
  try {
    check(code, "MPI_Comm_create_group");
  } catch (const CommError& error) {
    failure = error.what();
  }
  host_.fail_together(failure);
}

// A request that has not ended cannot be taken back: MPI may still read and write its buffers, so they stay for the
// life of the process, and with them the communicator.
void Communicator::leave() noexcept {
  if (failed_) {
    static_cast<void>(memory_.release());
  } else if (memory_->comm != MPI_COMM_NULL) {
    MPI_Comm_free(&memory_->comm);
  }
}

void Communicator::wait(const char* what) {
  constexpr int kEager = 200;  // calls of MPI_Test before this thread offers its core to another rank
  for (int polls = 0;; ++polls) {
    int done = 0;
    check(MPI_Test(&memory_->request, &done, MPI_STATUS_IGNORE), what);
    if (done != 0) return;
    if (aborted_ || host_.aborted()) throw CommError(CommStatus::aborted, std::string("aborted in ") + what);
    if (Clock::now() > deadline_) {
      throw CommError(CommStatus::timeout,
                      std::string("the deadline passed in ") + what + ": a rank has not come; MPI does not say which");
    }
    if (polls > kEager) sched_yield();
  }
}
