// The cases of the conformance suite, and the context of a case on a rank.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/plugin_backend.hpp"
#include "ddprun/comm_backend.hpp"
#include "ddprun/plugin/comm_plugin.h"
#include "plugin/registry.hpp"
#include "testing/hosts.hpp"
#include "testing/leftovers.hpp"
#include "testing/ranks.hpp"
#include "tools/conformance/printer.hpp"
#include "tools/conformance/process_state.hpp"
#include "tools/lib/buffer_memory.hpp"

namespace ddprun::conformance {

using std::chrono::milliseconds;
using testing::Clock;

class JobRanks;

struct Settings {
  plugin::CommPlugin plugin;
  Capabilities capabilities;
  std::map<std::string, std::string> options;   // passed to every join
  Memory memory = Memory::host;                 // of the buffers
  std::vector<int> devices;                     // GPU of each rank; one: for all; empty: rank i uses GPU i
  std::shared_ptr<const testing::Hosts> hosts;  // of the ranks, which are processes; null: this one
  int per_host = 1;                             // ranks on each of them
  JobRanks* job = nullptr;                      // the ranks of another launcher; null: this process starts them
  bool large = false;                           // every dtype and op at the large count too
  milliseconds deadline{20'000};                // of a collective that should succeed
  milliseconds fault_deadline{1'000};           // of a collective that should time out
  milliseconds slack{250};                      // for a loaded machine, added to each limit of the contract
  uint64_t seed = 0;                            // of the drawn sizes; 0: not drawn yet
  CheckOptions checks;                          // not verbose: print what the plugin logs in a world's first join only
  ProcessState before_load;                     // of this process, before it loaded the plugin

  // The latest end of what the contract asks for at once.
  milliseconds at_once() const { return kAtOnce + slack; }
  static constexpr milliseconds kAtOnce{1'000};
};

// The view of a case on its rank. Errors are recorded and not thrown, so that the rank continues to call what the other
// ranks call. One thread; if a case starts others, they may share no Context except for join().
class Context {
 public:
  Context(const Settings& settings, testing::Rank& rank) : settings_(settings), rank_(rank) {}

  const Settings& settings() const { return settings_; }
  testing::Rank& ranks() { return rank_; }
  int rank() const { return rank_.rank(); }
  int size() const { return rank_.size(); }
  bool is_last() const { return rank() == size() - 1; }

  // The memory of this thread's buffers; each thread has its own stream.
  const tools::BufferMemory& memory() const;

  // The shared communicator of this world's cases for an algorithm. All ranks join it on first use.
  CommBackend& shared(const std::string& algorithm = "auto");

  // A communicator of this case only.
  struct JoinAs {
    std::string algorithm = "auto";
    milliseconds deadline{0};  // 0: settings().deadline
    bool deterministic = false;
    int channel = 0;                                        // of the exchange that it uses
    std::map<std::string, std::string> extra = {};          // options in addition to the settings'
    std::function<void()> before_gather = {};               // (optional) called before each out-of-band gather
    std::function<void()> after_gather = {};                // (optional) called after it, before the plugin resumes
    std::shared_ptr<std::atomic<int32_t>> abort_flag = {};  // (optional) a flag that replaces abort()
  };
  std::unique_ptr<CommBackend> join(const JoinAs& how);

  // Waits, at most settings().deadline.
  ExecutionInfo wait(Work work) { return work.wait(settings_.deadline); }

  // The result of the case. Only the first failure of a rank is reported.
  void fail(const std::string& text) { fail("fail", text); }
  // Fails if `fault` is not empty, with `where` before it.
  void judge(const std::string& fault, const std::string& where = "") {
    if (!fault.empty()) fail(where + fault);
  }
  // Fails unless `took` is at most `latest`. The runner repeats a case in its own world that is only a little too slow.
  void judge_time(const std::string& what, milliseconds took, milliseconds latest);
  // Fails on the ranks whose result has other bits than that of rank 0. All ranks call it.
  void judge_same(DType dtype, const unsigned char* result, std::size_t count);

  // Runs one case and reports its verdict to the parent.
  void run(std::size_t index, const std::function<void(Context&)>& body);

 private:
  // One record: "pass 12 ", "fail 12 <text>", "slow 12 <text>".
  void report(const std::string& kind, const std::string& text) {
    rank_.report(kind + " " + std::to_string(index_) + " " + text);
  }
  void fail(const std::string& kind, const std::string& text);

  const Settings& settings_;
  testing::Rank& rank_;
  std::map<std::string, std::unique_ptr<CommBackend>> shared_;
  std::size_t index_ = 0;
  bool failed_ = false;
};

// The ranks of some cases. The settings outlive it.
struct World {
  const Settings& settings;
  int size = 1;
  testing::As as = testing::As::processes;
  bool thorough = true;  // all collectives in the cases about faults; else allreduce only

  std::string name() const;  // "world 3 processes", "world 2x2 hosts"
};

struct Case {
  std::string group;  // for the table
  std::string name;   // unique within a world
  std::function<void(Context&)> body;
  bool own_world = false;       // its ranks cannot run another case: kOwnWorld
  bool last_rank_dies = false;  // by SIGKILL, intended by the case
  bool required = false;        // if it fails, no other case is run
};
inline constexpr bool kOwnWorld = true;

// The first case: without communicators, all others would fail too.
Case joining_case();
// Every declared dtype, op and algorithm against the reference. One cases_*.cpp per kind.
void add_collective_cases(const World& world, std::vector<Case>& cases);
// Communicators beyond one collective.
void add_usage_cases(const World& world, std::vector<Case>& cases);
// What the plugin does with the buffers, the ddprun_collective and the request of a call.
void add_request_cases(const World& world, std::vector<Case>& cases);
// Creation and destruction of communicators.
void add_lifetime_cases(const World& world, std::vector<Case>& cases);
// What the plugin does to the process and to the machine.
void add_process_cases(const World& world, std::vector<Case>& cases);
// A missing rank, an abort, a death.
void add_fault_cases(const World& world, std::vector<Case>& cases);

// CUDA ordinal of a rank's GPU; -1 for buffers in host memory.
int device_of(const Settings& settings, int rank);

std::vector<Skipped> undeclared(const Settings& settings);

// "auto" and the plugin's algorithms.
std::vector<std::string> algorithms_of(const Settings& settings);
// What an algorithm supports; for auto: what any of them supports.
bool takes(const Settings& settings, const std::string& algorithm, DType dtype, Op op);
// The first op that it supports with this dtype.
std::optional<Op> first_op(const Settings& settings, const std::string& algorithm, DType dtype);
// The first declared dtype of the list, which starts with float32: for cases that are not about dtypes.
DType common_dtype(const Settings& settings, const std::string& algorithm);
// The first declared op for that dtype.
Op common_op(const Settings& settings, const std::string& algorithm);

// A case that takes longer has hung: the kernel ends its rank with SIGALRM. No case should come near this limit.
inline constexpr unsigned kCaseSeconds = 90;

inline constexpr DType kDTypes[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::int8,
                                    DType::int16,   DType::int32,    DType::int64,   DType::uint8};
inline constexpr Op kOps[] = {Op::sum, Op::min, Op::max, Op::product, Op::avg};
static_assert(std::size(kDTypes) == kDTypeCount && std::size(kOps) == kOpCount);

std::string text_of(milliseconds time);

// Watches a plugin at its C table, where ddprun's own classes would hide what it does.
namespace spy {

// A table whose functions call those of `plugin`. One plugin per process; both tables live as long as the process.
const ddprun_comm_plugin& watch(const ddprun_comm_plugin& plugin);

// All of the following is about the calling thread.

// What the plugin did wrong since the last call, one line each: an error without a text, or with several lines, a text
// that does not live long enough; and what any thread has done: a log line after destroy, or with a control character.
std::vector<std::string> take_faults();

// The communicator that was joined last, for calls of the plugin's table without ddprun.
ddprun_comm* last_joined();

// From now on, the plugin gets each ddprun_collective as a copy. After the call, `change` gets that copy, which the
// plugin must not read any more. Null ends this, and frees the copies.
void change_after_call(std::function<void(ddprun_collective&)> change);

// From now on, or no longer, the plugin gets each struct with no memory behind it (PageEnd).
void put_structs_at_ends(bool on);

}  // namespace spy

using Sink = std::function<void(const Result&)>;

// Runs the cases in one world, and starts a new world after a case that broke it; `sink` gets each result immediately.
// Returns "", or why the suite should run nothing more: a required case failed.
// It forks, so the caller must have only one thread.
std::string run_cases(const World& world, const std::vector<Case>& cases, Leftovers& leftovers, const Sink& sink);
// Passes the cases to the sink as not run.
void leave_out(const World& world, std::span<const Case> cases, const std::string& why, const Sink& sink);

struct Gpus {
  int count = 0;
  std::string missing;  // one line: why the plugin cannot be tested on them; or empty
};

// Runs in a separate process, because a process that has used CUDA cannot fork ranks that use a GPU. Tries a world of
// one rank on the first rank's GPU. It forks: call it while there is one thread. Throws Error if the plugin fails for
// another reason than a missing device or library.
Gpus find_gpus(const Settings& settings);
// Joins a world of this process alone, and leaves it.
void join_single(const Settings& settings);

// Why this world is not possible; empty if it is.
std::string why_not(const World& world, const Gpus& gpus);

}  // namespace ddprun::conformance
