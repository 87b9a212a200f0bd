// A backend for a world of one rank: every collective is a copy.
#include <cstring>

#include "ddprun/plugin/comm_plugin.hpp"

class Lone : public ddprun::Communicator {
 public:
  explicit Lone(const ddprun::Host& host) {
    host.refuse_options_beyond({});
    if (host.size() != 1) throw ddprun::Failure(DDPRUN_UNSUPPORTED, "lone: launch.nproc: serves one rank only; set it to 1");
  }
  ddprun::Request& allreduce(const ddprun_collective& call) override { return copy(call); }
  ddprun::Request& broadcast(const ddprun_collective&) override { return served_; }
  ddprun::Request& allgather(const ddprun_collective& call) override { return copy(call); }
  ddprun::Request& reduce_scatter(const ddprun_collective& call) override { return copy(call); }
  ddprun::Request& barrier() override { return served_; }
  void abort() noexcept override {}

 private:
  ddprun::Request& copy(const ddprun_collective& call) {
    const auto bytes = call.count * ddprun::size_of(call.dtype);
    if (bytes > 0 && call.send != call.recv) std::memcpy(call.recv, call.send, bytes);
    return served_;
  }
  ddprun::Request served_{"copy", "memory"};
};

constexpr ddprun_comm_algorithm kAlgorithms[] = {ddprun::algorithm("copy", ddprun::kAllDtypes, ddprun::kAllOps)};
constexpr ddprun::CommPluginInfo kInfo = {"lone", "1.0", "", DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING, kAlgorithms};
DDPRUN_COMM_PLUGIN(Lone, kInfo);
