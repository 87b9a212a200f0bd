// A small backend that works between threads and between processes. Built as "good"; as "off_by_one", whose allreduce
// makes the last element one too large, so that a conformance test must fail; and as both for CUDA memory, which is
// host memory with the fake CUDA runtime.
#include "slots_backend.hpp"

namespace fakes {
namespace {

constexpr ddprun_comm_algorithm kAlgorithms[] = {
    ddprun::algorithm("slots", kSlotsDTypes, ddprun::kAllOps, 0, kSlotsDTypes)};
constexpr ddprun::CommPluginInfo kInfo = {
    FAKE_NAME, "1.2.3", "slots 0.1",
    DDPRUN_CAP_BLOCKING | DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_EXCHANGE | FAKE_MEMORY, kAlgorithms};

}  // namespace
}  // namespace fakes

DDPRUN_COMM_PLUGIN(fakes::SlotsBackend, fakes::kInfo);
