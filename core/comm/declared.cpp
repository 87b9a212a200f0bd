#include "comm/declared.hpp"

#include <algorithm>
#include <vector>

#include "ddprun/plugin/detail/comm_convert.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::comm {

Capabilities capabilities_of(const ddprun_comm_plugin& plugin) {
  return detail::capabilities_of(plugin.capabilities, plugin.algorithms, plugin.algorithm_count);
}

std::optional<std::string> algorithm_error(const ddprun_comm_plugin& plugin, const std::string& algorithm,
                                           Memory memory) {
  std::vector<std::string> names{"auto"};
  std::string why;
  for (const auto& declared : capabilities_of(plugin).algorithms) {
    if (declared.takes(memory)) {
      names.push_back(declared.name);
    } else if (declared.name == algorithm) {
      why = memory == Memory::cuda ? "takes host memory only, and the buffers are on a GPU: "
                                   : "takes CUDA memory only, and the buffers are in host memory: ";
    }
  }
  if (std::find(names.begin(), names.end(), algorithm) != names.end()) return std::nullopt;
  return why + expected_one_of(algorithm, names);
}

std::optional<std::string> memory_error(const ddprun_comm_plugin& plugin, Memory memory, bool staged) {
  const Capabilities capabilities = capabilities_of(plugin);
  if (memory == Memory::host && !capabilities.host) {
    return "takes CUDA memory, and the tensors are on the CPU; set launch.device = \"cuda\", or take another backend";
  }
  if (memory == Memory::cuda && !capabilities.cuda && !staged) {
    return "takes host memory, and the tensors are on a GPU (launch.device); use \"nccl\", or in a config let ddprun "
           "copy them through the host with comm.stage_through_host = true";
  }
  return std::nullopt;
}

Memory memory_given(const ddprun_comm_plugin& plugin, Memory memory, bool staged) {
  return staged && capabilities_of(plugin).host ? Memory::host : memory;
}

}  // namespace ddprun::comm
