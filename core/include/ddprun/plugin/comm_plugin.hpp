// ddprun/plugin/comm_plugin.hpp: writes a communication backend as a C++ class. Header-only, no torch; comm_plugin.h is the
// border itself. Whoever prefers C fills the table of comm_plugin.h by hand and needs nothing of this.
//
//   class MyBackend : public ddprun::Communicator {
//    public:
//     explicit MyBackend(const ddprun::Host& host);  // joins all ranks; throws ddprun::Failure
//     ddprun::Request& allreduce(const ddprun_collective& call) override;
//     ...
//   };
//   constexpr ddprun_comm_algorithm kAlgorithms[] = {ddprun::algorithm("ring", ddprun::kAllDtypes, ddprun::kAllOps)};
//   constexpr ddprun::CommPluginInfo kInfo = {"mine", "1.0", "", DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING, kAlgorithms};
//   DDPRUN_COMM_PLUGIN(MyBackend, kInfo);
//
// Build it as a shared library libddprun_comm_mine.so that exports nothing but the entry (-fvisibility=hidden and a
// version script). What the class need not do, because the adapter has done it before: check the arguments against the
// contract and against the declaration above, turn exceptions into a status with its text, answer calls after an abort
// or a failure.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddprun/plugin/comm_plugin.h"

namespace ddprun {

// What a backend throws: the status that the host sees, and one line that says what is wrong and what to do.
// std::bad_alloc becomes DDPRUN_NO_MEMORY, any other exception DDPRUN_INTERNAL.
class Failure : public std::runtime_error {
 public:
  Failure(ddprun_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  ddprun_status status() const noexcept { return status_; }

 private:
  ddprun_status status_;
};

// The host's side of a communicator, copied out of ddprun_comm_host: a backend may keep it by value as long as it
// lives.
class Host {
 public:
  explicit Host(const ddprun_comm_host& host);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  int device() const noexcept { return device_; }  // CUDA ordinal, or -1 for host memory
  bool deterministic() const noexcept { return deterministic_; }
  // Longest time for the constructor, and for one collective.
  std::chrono::milliseconds deadline() const noexcept { return deadline_; }
  // "auto", or one of the names that the plugin declares (the adapter has refused others).
  const std::string& algorithm() const noexcept { return algorithm_; }

  // The value of a `comm.options` entry, or `otherwise`.
  std::string option(std::string_view key, std::string_view otherwise) const;
  // Throws Failure(DDPRUN_INVALID) for the first option that is not in `known`; the line names the nearest known ones.
  // A backend calls it once, before anything else, so that a misspelt option is never ignored.
  void refuse_options_beyond(std::initializer_list<std::string_view> known) const;

  // Writes one line to the run's log; level is DDPRUN_LOG_... Any thread.
  void log(int32_t level, const std::string& message) const noexcept;
  // True once the host has raised its abort flag. Any thread; cheap enough for a polling loop.
  bool aborted() const noexcept;

  // Out of band, collective and blocking; during the backend's constructor only, on its thread. Gathers `bytes` bytes
  // of every rank into recv (size() * bytes), in rank order. Throws Failure with the host's status.
  void allgather(const void* send, uint64_t bytes, void* recv) const;
  // The same for texts whose lengths differ between the ranks (two rounds of the above).
  std::vector<std::string> allgather(const std::string& mine) const;

 private:
  int rank_;
  int size_;
  int device_;
  bool deterministic_;
  std::chrono::milliseconds deadline_;
  std::string algorithm_;
  std::vector<std::pair<std::string, std::string>> options_;
  void* context_;
  const int32_t* abort_flag_;
  void (*log_)(void*, int32_t, const char*);
  ddprun_status (*allgather_)(void*, const void*, uint64_t, void*);
};

// A collective that was started, and what serves it. It belongs to the backend; both strings live as long as the
// backend. A blocking backend keeps one constant object per way of serving ({"ring", "tcp"}) and returns it again and
// again: no memory is allocated per collective. Others derive from it and add what test and wait need.
struct Request {
  const char* algorithm;
  const char* transport;
};

// The collectives of one group of ranks. The meaning of each argument is that of ddprun_collective; on entry the
// adapter has checked struct_size, dtype, op, root, memory, pointers (not null where count > 0; no overlap but exactly
// in place) and that sizes in bytes fit into 63 bits. One thread at a time calls in, abort excepted. All functions but
// abort and free may throw.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  // Never communicates and never blocks on a peer.
  virtual ~Communicator() = default;

  // With DDPRUN_CAP_BLOCKING the collective is over on return. Without it, it has been started, and the request stays
  // valid until wait has been called with it.
  virtual Request& allreduce(const ddprun_collective& call) = 0;
  virtual Request& broadcast(const ddprun_collective& call) = 0;
  virtual Request& allgather(const ddprun_collective& call) = 0;
  virtual Request& reduce_scatter(const ddprun_collective& call) = 0;
  virtual Request& barrier() = 0;

  // Ends a call that is blocked in another thread, at once, by making it throw whatever it likes: the adapter reports
  // DDPRUN_ABORTED, and calls in no more. Any thread, any number of times; never blocks.
  virtual void abort() noexcept = 0;

  // For backends without DDPRUN_CAP_BLOCKING; `request` is what a collective above returned. test: true when wait would
  // return at once. wait: at most `timeout`; throws Failure(DDPRUN_TIMEOUT) after it; takes the request back whatever
  // happens. On a stream-ordered backend wait returns as soon as the work is ordered on the stream.
  virtual bool test(Request& request);
  virtual void wait(Request& request, std::chrono::milliseconds timeout);

  // For backends with DDPRUN_CAP_ALLOC: page-aligned memory that they move fastest. alloc is collective: all ranks,
  // same sizes, same order. free is local; the destructor frees what is left.
  virtual void* alloc(uint64_t bytes);
  virtual void free(void* memory) noexcept;
};

// What a plugin declares. Strings and algorithms are constants of the plugin.
struct CommPluginInfo {
  const char* name;       // the <name> of libddprun_comm_<name>.so
  const char* version;    // of the plugin
  const char* library;    // the library underneath with its version, or ""
  uint64_t capabilities;  // DDPRUN_CAP_...
  std::span<const ddprun_comm_algorithm> algorithms;
};

// Masks for algorithm(): bits(DDPRUN_FLOAT32, DDPRUN_FLOAT64), kAllDtypes, kAllOps.
template <class... Values>
constexpr uint32_t bits(Values... values) {
  return ((uint32_t{1} << values) | ...);
}
constexpr uint32_t kAllDtypes = (uint32_t{1} << DDPRUN_DTYPE_COUNT) - 1;
constexpr uint32_t kAllOps = (uint32_t{1} << DDPRUN_OP_COUNT) - 1;

// One entry of CommPluginInfo::algorithms. memory: bits(DDPRUN_HOST) for one that does not take all that the plugin
// takes.
constexpr ddprun_comm_algorithm algorithm(const char* name, uint32_t dtypes, uint32_t ops, uint32_t memory = 0) {
  return {sizeof(ddprun_comm_algorithm), dtypes, ops, memory, name};
}
constexpr bool takes_memory(const ddprun_comm_algorithm& algorithm, int32_t memory) {
  return algorithm.memory == 0 || (algorithm.memory & bits(memory)) != 0;
}

// Size of one element in bytes; 0 for a number that is no dtype.
constexpr uint64_t size_of(int32_t dtype) {
  switch (dtype) {
    case DDPRUN_INT8:
    case DDPRUN_UINT8: return 1;
    case DDPRUN_FLOAT16:
    case DDPRUN_BFLOAT16:
    case DDPRUN_INT16: return 2;
    case DDPRUN_FLOAT32:
    case DDPRUN_INT32: return 4;
    case DDPRUN_FLOAT64:
    case DDPRUN_INT64: return 8;
    default: return 0;
  }
}
constexpr bool is_floating(int32_t dtype) {
  return dtype >= DDPRUN_FLOAT16 && dtype <= DDPRUN_FLOAT64;
}

// The table of a class: T is a Communicator made from a const Host&; info has static storage duration.
template <class T, const CommPluginInfo& info>
constexpr ddprun_comm_plugin comm_plugin();

}  // namespace ddprun

// Defines the one symbol that a communication plugin exports. Once per plugin, at namespace scope; `info` is the name
// of a constexpr ddprun::CommPluginInfo at namespace scope.
#define DDPRUN_COMM_PLUGIN(Class, info)                                                            \
  extern "C" {                                                                                     \
  __attribute__((visibility("default"))) extern const ddprun_comm_plugin ddprun_comm_plugin_v1;    \
  constinit const ddprun_comm_plugin ddprun_comm_plugin_v1 = ::ddprun::comm_plugin<Class, info>(); \
  }                                                                                                \
  static_assert(std::is_base_of_v<::ddprun::Communicator, Class>, "a backend derives from ddprun::Communicator")

#include "ddprun/plugin/detail/comm_adapter.hpp"
