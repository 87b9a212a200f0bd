// The host of a backend in a test's rank: the other side of ddprun_comm_host.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/collective.hpp"
#include "ddprun/plugin/comm_plugin.hpp"
#include "testing/ranks.hpp"

namespace ddprun::testing {

class RankHost {
 public:
  // device: CUDA ordinal, or -1 for host memory.
  RankHost(Rank& rank, std::string algorithm, uint32_t deadline_ms, int device = -1,
           std::map<std::string, std::string> options = {})
      : rank_(rank),
        algorithm_(std::move(algorithm)),
        deadline_ms_(deadline_ms),
        device_(device),
        options_(std::move(options)) {
    for (const auto& [key, value] : options_) table_.push_back({key.c_str(), value.c_str()});
  }
  RankHost(const RankHost&) = delete;
  RankHost& operator=(const RankHost&) = delete;

  // Refers to this object, which must outlive it. specs: what the plugin declares.
  Host host(OptionSpecs specs = kNoOptions) {
    ddprun_comm_host host = {};
    host.struct_size = sizeof host;
    host.rank = rank_.rank();
    host.size = rank_.size();
    host.device = device_;
    host.deadline_ms = deadline_ms_;
    host.algorithm = algorithm_.c_str();
    host.context = this;
    host.abort_flag = reinterpret_cast<const int32_t*>(&flag_);
    host.log = [](void*, int32_t, const char*) {};
    host.allgather = gather;
    host.options = table_.data();
    host.option_count = static_cast<uint32_t>(table_.size());
    return Host(host, {}, {}, specs);
  }
  void raise_abort_flag() { flag_ = 1; }
  // Called after each allgather, with its number from 1.
  std::function<void(int number)> after_gather = [](int) {};

 private:
  static ddprun_status gather(void* context, const void* send, uint64_t bytes, void* recv) {
    try {
      auto& host = *static_cast<RankHost*>(context);
      host.rank_.allgather(send, bytes, recv);
      host.after_gather(++host.gathers_);
      return DDPRUN_OK;
    } catch (const std::exception&) {
      return DDPRUN_TIMEOUT;
    }
  }

  Rank& rank_;
  const std::string algorithm_;
  const uint32_t deadline_ms_;
  const int device_;
  const std::map<std::string, std::string> options_;
  std::vector<ddprun_comm_option> table_;
  std::atomic<int32_t> flag_{0};
  int gathers_ = 0;
};

inline Collective allreduce_of(DType dtype, Op op, const void* send, void* recv, std::size_t count) {
  return {.send = send, .recv = recv, .count = count, .dtype = dtype, .op = op};
}

}  // namespace ddprun::testing
