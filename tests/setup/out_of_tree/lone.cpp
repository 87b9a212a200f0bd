// A backend for a world of one rank: every collective is a copy.
#include <cstring>

#include "ddprun/plugin/comm_plugin.hpp"

class Lone : public ddprun::CommBackend {
 public:
  explicit Lone(const ddprun::Host& host) : CommBackend(host) {
    if (host.size() != 1) {
      throw ddprun::CommError(ddprun::CommStatus::unsupported, "lone: launch.nproc: serves one rank only; set it to 1");
    }
  }
  ddprun::Work allreduce(const ddprun::Collective& call) override { return copy(call); }
  ddprun::Work broadcast(const ddprun::Collective&) override { return {*this, done_}; }
  ddprun::Work allgather(const ddprun::Collective& call) override { return copy(call); }
  ddprun::Work barrier() override { return {*this, done_}; }
  void abort() noexcept override {}

 private:
  ddprun::Work copy(const ddprun::Collective& call) {
    const auto bytes = call.count * ddprun::size_of(call.dtype);
    if (bytes > 0 && call.send != call.recv) std::memcpy(call.recv, call.send, bytes);
    return {*this, done_};
  }
  ddprun::Request done_{{"copy", "memory"}};
};

constexpr ddprun_comm_algorithm kAlgorithms[] = {ddprun::algorithm("copy", ddprun::kAllDtypes, ddprun::kAllOps)};
constexpr ddprun::CommPluginInfo kInfo = {"lone", "1.0", "", DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING, kAlgorithms};
DDPRUN_COMM_PLUGIN(Lone, kInfo);
