// The cases of the conformance suite, and what a case sees when it runs on a rank.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/plugin_backend.hpp"
#include "ddprun/comm_backend.hpp"
#include "plugin/registry.hpp"
#include "tools/conformance/place.hpp"
#include "tools/conformance/ranks.hpp"

namespace ddprun::conformance {

using std::chrono::milliseconds;
using testing::Clock;

struct Settings {
  plugin::CommPlugin plugin;
  Capabilities capabilities;
  std::map<std::string, std::string> options;  // given to every join
  Memory memory = Memory::host;                // of the buffers
  std::vector<int> devices;                    // GPU of each rank; one: of all; none: a rank's own number
  bool networks = false;                       // each rank, a process, in a network namespace of its own
  bool large = false;                          // every dtype and op at the large count too
  milliseconds deadline{20'000};               // of a collective that is expected to end well
  milliseconds fault_deadline{1'000};          // of one that is expected to time out
  milliseconds slack{3'000};                   // granted to a loaded machine beyond any time that the contract gives
};

// What a case sees on its rank. Judgements are recorded and not thrown, so that a rank that has found a fault goes on
// to call what the others call. One thread; where a case starts others, they share no Context but for join().
class Context {
 public:
  Context(const Settings& settings, testing::Rank& rank) : settings_(settings), rank_(rank) {}

  const Settings& settings() const { return settings_; }
  testing::Rank& ranks() { return rank_; }
  int rank() const { return rank_.rank(); }
  int size() const { return rank_.size(); }
  bool is_last() const { return rank() == size() - 1; }

  // Where the buffers of this thread are: each has a stream of its own.
  const Place& place() const;

  // The communicator of an algorithm that the cases of this world share; joined when first asked for, by all ranks.
  CommBackend& shared(const std::string& algorithm);

  // A communicator of the case's own.
  struct JoinAs {
    std::string algorithm = "auto";
    milliseconds deadline{0};  // 0: settings().deadline
    bool deterministic = false;
    int channel = 0;                                        // of the exchange
    std::map<std::string, std::string> extra = {};          // options besides the settings'
    std::function<void()> before_gather = {};               // (optional) called before each out-of-band gather
    std::shared_ptr<std::atomic<int32_t>> abort_flag = {};  // (optional) what the case may raise instead of abort()
  };
  std::unique_ptr<CommBackend> join(const JoinAs& how);

  // Waits within settings().deadline.
  ExecutionInfo wait(Work work) { return work.wait(settings_.deadline); }

  // What the case found. The first failure of a rank is the one told.
  void fail(const std::string& text);
  void skip(const std::string& why);
  void note(const std::string& text);
  // A result that must be the same bits on every rank.
  void digest(const void* data, std::size_t bytes);

  // Runs one case and reports its start and its verdict to the parent, who reads them with read_report().
  void run(std::size_t index, const std::function<void(Context&)>& body);

 private:
  const Settings& settings_;
  testing::Rank& rank_;
  std::map<std::string, std::unique_ptr<CommBackend>> shared_;
  std::size_t index_ = 0;
  bool judged_ = false;
  uint64_t digest_ = 0;
};

// One line from a rank: "start 12", "pass 12 <digest>", "fail 12 <text>", "skip 12 <why>", "note 12 <text>".
struct Report {
  std::string kind;
  std::size_t index = 0;
  std::string text;
};
Report read_report(const std::string& record);

struct Case {
  std::string group;  // for the table
  std::string name;   // unique within a world
  std::function<void(Context&)> body;
  bool own_world = false;       // it leaves the ranks unfit for another case
  bool last_rank_dies = false;  // by SIGKILL, as the case wants
};

// A combination that the plugin has not declared, and so is not tested.
struct Skipped {
  std::string what;
  std::size_t combinations = 0;
};

// Every declared dtype, op and algorithm against the reference. cases_*.cpp, one a kind.
void add_collective_cases(const Settings& settings, int size, std::vector<Case>& cases);
// How communicators behave beyond one collective.
void add_usage_cases(const Settings& settings, int size, std::vector<Case>& cases);
// How communicators come and go.
void add_lifetime_cases(std::vector<Case>& cases);
// Collectives in CUDA graphs, of a plugin that declares them.
void add_graph_cases(const Settings& settings, std::vector<Case>& cases);
// A rank that stays away, an abort, a death. `thorough`: for every collective; else for allreduce only.
void add_fault_cases(const Settings& settings, int size, testing::As as, bool thorough, std::vector<Case>& cases);

// CUDA's ordinal of a rank's GPU; -1 where the buffers are in host memory.
int device_of(const Settings& settings, int rank);

std::vector<Skipped> undeclared(const Settings& settings);

// "auto" and the plugin's own names.
std::vector<std::string> algorithms_of(const Settings& settings);
// What an algorithm takes; under auto: what any of them takes.
bool takes(const Settings& settings, const std::string& algorithm, DType dtype, Op op);
bool takes(const Settings& settings, const std::string& algorithm, DType dtype);
// The first declared dtype of the list, which has float32 in front: for cases that are not about dtypes.
DType common_dtype(const Settings& settings, const std::string& algorithm);
// Likewise the first declared op, sum in front.
Op common_op(const Settings& settings, const std::string& algorithm);

// A case that takes longer has hung: the kernel ends its rank with SIGALRM. No case is meant to come near it.
inline constexpr unsigned kCaseSeconds = 90;

inline constexpr int kDTypes = 9;
inline constexpr int kOps = 5;

}  // namespace ddprun::conformance
