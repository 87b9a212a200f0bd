#include "session.hpp"

#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>

#include "ddprun/plugin/host.hpp"

namespace ddprun::nccl_backend {
namespace {

// Identifies a host: the boot id of the kernel, and the host name, which separates containers of one kernel.
std::string host_id() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return name.data() + (" " + boot);
}

}  // namespace

bool compare_ranks(const Host& host, const Device& device, const Settings& settings, const std::string& forced) {
  const auto hosts = host.allgather(host_id());
  const auto networks = host.allgather(network_identity());
  const auto buses = host.allgather(device.bus);
  // Ranks that differ here would wait for one another forever, or use different algorithms.
  const std::string algorithm = forced.empty() ? variable("NCCL_ALGO").value_or("") : forced;
  int number = 0;
  check("NCCL's version", ncclGetVersion(&number));
  const std::string version = "NCCL " + std::to_string(number) + ", NCCL_ALGO \"" + algorithm + "\"";
  const auto versions = host.allgather(version);
  bool one_network = !networks[0].empty();
  for (int rank = 0; rank < host.size(); ++rank) {
    if (versions[rank] != version) {
      throw CommError(CommStatus::mismatch, "rank " + std::to_string(rank) + " has " + versions[rank] + ", rank " +
                                                std::to_string(host.rank()) + " has " + version);
    }
    one_network = one_network && networks[rank] == networks[0];
    for (int other = 0; other < rank && !settings.share_gpu; ++other) {
      if (hosts[other] != hosts[rank] || buses[other] != buses[rank]) continue;
      throw CommError(CommStatus::invalid,
                      "ranks " + std::to_string(other) + " and " + std::to_string(rank) + " use one GPU (" +
                          buses[rank] +
                          "): give each one of its own; launch.nproc is at most the number of GPUs "
                          "(for tests: comm.options.share_gpu = true)");
    }
  }
  return one_network;
}

ncclUniqueId exchange_id(const Host& host) {
  constexpr char kId = 'i';  // prefix of an id; otherwise the text is the error
  std::string mine;
  if (host.rank() == 0) {
    ncclUniqueId id = {};
    const ncclResult_t result = ncclGetUniqueId(&id);
    mine = result == ncclSuccess
               ? kId + std::string(id.internal, sizeof id.internal)
               : std::string("-") + failure_of("making NCCL's id", result, ncclGetLastError(nullptr)).what();
  }
  const std::string theirs = host.allgather(mine).front();
  ncclUniqueId id = {};
  if (theirs.size() != 1 + sizeof id.internal || theirs[0] != kId) {
    throw CommError(CommStatus::internal, "rank 0: " + (theirs.empty() ? "gave no id" : theirs.substr(1)));
  }
  std::memcpy(id.internal, theirs.data() + 1, sizeof id.internal);
  return id;
}

}  // namespace ddprun::nccl_backend
