// shm_direct: collectives in memory that the ranks of one host share. See backend.hpp.
#include "backend.hpp"
#include "reduce.hpp"

namespace {

constexpr ddprun_comm_algorithm kAlgorithms[] = {
    ddprun::algorithm("direct", shm_direct::kDTypes, ddprun::kAllOps),
};
constexpr ddprun_option_spec kOptions[] = {
    ddprun::size_option("slot", "256KiB", "4KiB", "64MiB", "bytes of each of the two slots that a rank has"),
};
// Without DDPRUN_CAP_BLOCKING: a call returns before its collective has ended.
constexpr ddprun::CommPluginInfo kInfo = {"shm_direct", "0.1.0", "", DDPRUN_CAP_HOST, kAlgorithms, kOptions};

}  // namespace

DDPRUN_COMM_PLUGIN(shm_direct::Backend, kInfo);
