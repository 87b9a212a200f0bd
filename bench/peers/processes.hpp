// Starts ranks as child processes, for peers without a launcher, and gives them shared memory.
#pragma once

#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <vector>

namespace peers {

// Zeroed memory that is shared with children forked later.
inline void* shared_memory(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

// Ordinary memory in whole pages, like the buffer "malloc" of `ddprun bench`.
inline float* page_aligned(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<float*>(memory);
}

// A barrier that spins before it yields: briefly if there are more ranks than cores, otherwise long enough to yield
// only when another process uses a core.
class SpinBarrier {
 public:
  // Construct it before forking the children.
  explicit SpinBarrier(int ranks) : ranks_(ranks), arrived_(static_cast<Flag*>(shared_memory(sizeof(Flag) * size()))) {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) < ranks) spins_ = 50;
  }

  void wait(int rank) {
    arrived_[rank].times.store(++times_, std::memory_order_release);
    for (int peer = 0; peer < ranks_; ++peer) {
      for (int spin = 0; arrived_[peer].times.load(std::memory_order_acquire) < times_; ++spin) {
        _mm_pause();
        if (spin >= spins_) sched_yield();
      }
    }
  }

 private:
  struct alignas(128) Flag {  // two cache lines, because processors fetch pairs
    std::atomic<uint64_t> times;
  };

  std::size_t size() const { return static_cast<std::size_t>(ranks_); }

  const int ranks_;
  Flag* const arrived_;
  uint64_t times_ = 0;
  int spins_ = 1000;
};

// A table in shared memory through which ranks exchange values.
class SharedTable {
 public:
  // `most`: the largest number of values of a rank. Construct it before forking the children.
  SharedTable(int ranks, std::size_t most)
      : ranks_(static_cast<std::size_t>(ranks)),
        most_(most),
        barrier_(ranks),
        values_(static_cast<int64_t*>(shared_memory(ranks_ * most * sizeof(int64_t)))) {}

  std::vector<int64_t> gather(int rank, const std::vector<int64_t>& own) {
    std::copy(own.begin(), own.end(), values_ + static_cast<std::size_t>(rank) * most_);
    barrier_.wait(rank);
    std::vector<int64_t> all;
    for (std::size_t peer = 0; peer < ranks_; ++peer) {
      const int64_t* const row = values_ + peer * most_;
      all.insert(all.end(), row, row + own.size());
    }
    barrier_.wait(rank);
    return all;
  }

 private:
  const std::size_t ranks_, most_;
  SpinBarrier barrier_;
  int64_t* const values_;
};

// Runs body(rank) in a child for each rank, and waits for them. If one fails, kills the others. Returns the exit code.
template <class Body>
int run_ranks(int ranks, Body body) {
  std::vector<pid_t> children;
  const pid_t parent = getpid();
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("cannot start another process");
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    try {
      body(rank);
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      _exit(1);
    }
  }
  int code = 0, status = 0;
  while (wait(&status) > 0) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (code == 0) {
      for (const pid_t child : children) kill(child, SIGKILL);  // one that has ended is at most a zombie
    }
    code = 1;
  }
  return code;
}

}  // namespace peers
