// Runs a test's ranks, as processes or as threads, with a deadline: none outlives the call. Threads run in a separate
// child process, so that they can be killed too. It forks, so the test must have only one thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "testing/exchange.hpp"

namespace ddprun::testing {

using Clock = std::chrono::steady_clock;

enum class As { processes, threads };
const char* name_of(As as);

// How a rank ended, and what it reported.
struct Outcome {
  enum class End { finished, threw, exited, killed, hung };
  int rank = 0;
  pid_t pid = 0;  // of its process; one for all ranks that are threads
  End end = End::hung;
  int number = 0;     // threw: ExitCode of a ddprun::Error, else -1; exited: the exit status; killed: the signal
  std::string error;  // threw: what()
  bool left_processes = false;       // its process started others that outlived it; they were killed
  std::vector<std::string> records;  // what it reported, in order, up to its end

  bool ok() const { return end == End::finished; }
  // What a rank says of itself: 'R' a record, 'F' finished, 'E' the error that it threw, behind its number.
  void take(char kind, std::string text);
  // "rank 2: killed by signal 9 (Killed)"
  std::string describe() const;
};

// A rank's view of its world, for the body of the test. Any thread may call report(); on each channel, only one thread
// at a time may call allgather() and meet().
class Rank {
 public:
  // gather: Exchange::allgather() for this rank. send: passes what Outcome::take() takes.
  using Gather = std::function<void(int channel, uint32_t round, const void* send, std::size_t bytes, void* recv)>;
  using Send = std::function<void(char kind, std::string_view text)>;
  Rank(int rank, int size, Gather gather, Send send) : rank_(rank), size_(size), gather_(gather), send_(send) {}

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Out of band: `bytes` bytes of every rank into recv, in rank order. Throws std::runtime_error if a peer is missing.
  void allgather(const void* send, std::size_t bytes, void* recv, int channel = 0) {
    gather_(channel, ++rounds_.at(channel), send, bytes, recv);
  }
  // Out of band: returns when all ranks have called it.
  void meet(int channel = 0) { allgather(nullptr, 0, nullptr, channel); }

  // Adds a record to this rank's Outcome, even if the rank is killed immediately afterwards.
  void report(std::string_view record) { send_('R', record); }
  // The body, and how it ended.
  void run(const std::function<void(Rank&)>& body);

 private:
  int rank_;
  int size_;
  Gather gather_;
  Send send_;
  std::array<uint32_t, Exchange::kChannels> rounds_{};
};

// Where the processes of the ranks are: by default, here. The functions may throw std::runtime_error.
struct Placement {
  std::function<void(int rank)> before_fork = [](int) {};  // in the parent, before it forks the rank
  std::function<void()> after_fork = [] {};                // in the parent, after that
  std::function<void(int rank)> in_rank = [](int) {};      // in the rank, before its body
  bool fork = true;  // false, for a debugger: the ranks are threads of this process, and have no deadline
};

// Blocks SIGINT, SIGTERM and SIGHUP in the calling thread, and later ones of it: run_ranks() then throws Error when one
// is pending, so that its caller can clean up. Ranks are not affected.
void block_stops();

// Runs body once for each of `size` ranks and returns how each ended, in rank order. The body reports by Rank::report
// or by throwing: doctest's macros do not work in another process. Only processes can be placed elsewhere.
std::vector<Outcome> run_ranks(int size, As as, std::chrono::milliseconds deadline,
                               const std::function<void(Rank&)>& body, Placement placement = {});

// All failures, one line per rank; empty if every rank finished. For CHECK(failures(outcomes) == "").
std::string failures(const std::vector<Outcome>& outcomes);

}  // namespace ddprun::testing
