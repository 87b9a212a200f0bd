// ddprun/plugin/comm_plugin.hpp: a communication backend as a C++ class. No torch. Authors who prefer C
// fill the table of comm_plugin.h by hand and need nothing of this header. docs/writing-a-backend.md has an example.
//
// Build it as a shared library libddprun_comm_mine.so that exports nothing but the entry (-fvisibility=hidden and a
// version script). The class need not check the arguments of a collective: ddprun has done so before it calls the
// plugin. The adapter below turns exceptions into a status with its text (std::bad_alloc becomes no_memory, any other
// exception internal), and answers calls after an abort or a failure.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "ddprun/plugin/comm_plugin.h"
#include "ddprun/plugin/options.hpp"

namespace ddprun {

// The host's side of a communicator, copied out of ddprun_comm_host: a backend may keep it by value as long as it
// lives.
class Host {
 public:
  // name, capabilities, options: what the plugin declares; a CommBackend made from this host has the first two. Throws
  // CommStatus::invalid for an option that is not declared, or has another value.
  explicit Host(const ddprun_comm_host& host, std::string name = {}, Capabilities capabilities = {},
                OptionSpecs options = kNoOptions);

  const std::string& name() const noexcept { return name_; }
  const Capabilities& capabilities() const noexcept { return capabilities_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  int device() const noexcept { return device_; }  // CUDA ordinal, or -1 for host memory
  bool deterministic() const noexcept { return deterministic_; }
  // Longest time for the constructor, and for one collective.
  std::chrono::milliseconds deadline() const noexcept { return deadline_; }
  // "auto", or one of the names that the plugin declares (ddprun has refused others).
  const std::string& algorithm() const noexcept { return algorithm_; }
  // The same as the backend's enum, which has the declared algorithms in their order. Empty for "auto".
  template <class Enum>
  std::optional<Enum> algorithm_as(std::span<const ddprun_comm_algorithm> declared) const {
    for (std::size_t i = 0; i < declared.size(); ++i) {
      if (algorithm_ == declared[i].name) return static_cast<Enum>(i);
    }
    return std::nullopt;
  }
  // The address of this host by which the hosts of the job reach it, as a number; empty if it is not known. If all
  // ranks are on one host, it may be empty or a loopback address.
  const std::string& address() const noexcept { return address_; }

  // `comm.options`, as CommPluginInfo::options declares them.
  const Options& options() const noexcept { return options_; }

  // Writes one line to the run's log; level is DDPRUN_LOG_... Any thread.
  void log(int32_t level, const std::string& message) const noexcept;
  // True once the host has raised its abort flag. Any thread; cheap enough for a polling loop.
  bool aborted() const noexcept;

  // Out of band, collective and blocking; during the backend's constructor only, on its thread. Gathers `bytes` bytes
  // of every rank into recv (size() * bytes), in rank order. Throws CommError with the host's status.
  void allgather(const void* send, uint64_t bytes, void* recv) const;
  // The same for texts whose lengths differ between the ranks (two rounds of the above).
  std::vector<std::string> allgather(const std::string& mine) const;
  // Lets create fail on all ranks if it fails on one. Every rank calls it, as allgather, with its error, or with "".
  // Throws CommStatus::internal on every rank if one has an error, with the first such rank and its error.
  void fail_together(const std::string& why) const;

 private:
  std::string name_;
  Capabilities capabilities_;
  int rank_;
  int size_;
  int device_;
  bool deterministic_;
  std::chrono::milliseconds deadline_;
  std::string algorithm_;
  std::string address_;
  Options options_;
  void* context_;
  const int32_t* abort_flag_;
  void (*log_)(void*, int32_t, const char*);
  ddprun_status (*allgather_)(void*, const void*, uint64_t, void*);
};

// What a plugin declares. Strings and algorithms are constants of the plugin.
struct CommPluginInfo {
  const char* name;       // the <name> of libddprun_comm_<name>.so
  const char* version;    // of the plugin
  const char* library;    // the library underneath with its version, or ""
  uint64_t capabilities;  // DDPRUN_CAP_...
  std::span<const ddprun_comm_algorithm> algorithms;
  OptionSpecs options = kNoOptions;  // every entry of comm.options that it takes
  void (*finish)() = nullptr;        // as ddprun_comm_plugin::finish
};

// Masks for algorithm(): bits(DType::float32, DType::float64), kAllDtypes, kAllOps.
constexpr uint32_t kAllDtypes = (uint32_t{1} << kDTypeCount) - 1;
constexpr uint32_t kAllOps = (uint32_t{1} << kOpCount) - 1;

// One entry of CommPluginInfo::algorithms. memory: bits(Memory::host) for an algorithm that does not take all memory
// that the plugin takes. canonical_order: as in the C table.
constexpr ddprun_comm_algorithm algorithm(const char* name, uint32_t dtypes, uint32_t ops, uint32_t memory = 0,
                                          uint32_t canonical_order = 0) {
  return {sizeof(ddprun_comm_algorithm), dtypes, ops, memory, name, canonical_order, 0};
}

// Joins all ranks; throws CommError.
using MakeCommBackend = std::unique_ptr<CommBackend>(const Host&);

template <class T>
std::unique_ptr<CommBackend> make_comm_backend(const Host& host) {
  return std::make_unique<T>(host);
}

// The table of a backend that `make` makes; info has static storage duration.
template <MakeCommBackend make, const CommPluginInfo& info>
constexpr ddprun_comm_plugin comm_plugin();

}  // namespace ddprun

// Defines the one symbol that a communication plugin exports. Once per plugin, at namespace scope; `info` is the name
// of a constexpr ddprun::CommPluginInfo at namespace scope. `make` is a MakeCommBackend.
#define DDPRUN_COMM_PLUGIN_OF(make, info) \
  DDPRUN_PLUGIN_EXPORT constinit const ddprun_comm_plugin ddprun_comm_plugin_v1 = ::ddprun::comm_plugin<make, info>()

// The same for a class that is made from a const ddprun::Host&.
#define DDPRUN_COMM_PLUGIN(Class, info) DDPRUN_COMM_PLUGIN_OF(::ddprun::make_comm_backend<Class>, info)

#include "ddprun/plugin/detail/comm_adapter.hpp"
