#include "communicator.hpp"

namespace {

// 16-bit floats are rounded once, and not after each addition.
constexpr uint32_t kInOrder = ddprun::kAllDtypes & ~ddprun::bits(DDPRUN_FLOAT16, DDPRUN_BFLOAT16);
constexpr ddprun_comm_algorithm kAlgorithms[] = {
    ddprun::algorithm("direct", ddprun::kAllDtypes, ddprun::kAllOps, ddprun::bits(DDPRUN_HOST, DDPRUN_FROM_ALLOC),
                      kInOrder),
    ddprun::algorithm("staged", ddprun::kAllDtypes, ddprun::kAllOps, 0, kInOrder),
};
constexpr ddprun::CommPluginInfo kShm = {
    "shm", "0.1.0", "",
    DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_ALLOC | DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_EXCHANGE,
    kAlgorithms};

}  // namespace

DDPRUN_COMM_PLUGIN(ddprun::shm_backend::ShmCommunicator, kShm);
