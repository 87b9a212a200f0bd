#include "device.hpp"

#include "ddprun/plugin/words.hpp"

namespace ddprun::nccl_backend {
namespace {

constexpr char kMemory[] =
    "the GPU's memory is used up: try a smaller data.batch_size, train.accumulate, train.amp = \"bf16\"";
constexpr char kRoute[] =
    "name a network interface that all ranks reach in comm.options.interface (NCCL_SOCKET_IFNAME), try "
    "comm.options.ib_disable = true, and see comm.options.debug = \"info\"";

// NCCL's messages and their meaning. The first match in the text counts.
struct Known {
  const char* words;
  CommStatus status;
  const char* hint;
};
constexpr Known kKnown[] = {
    {"Duplicate GPU", CommStatus::invalid,
     "give each rank a GPU of its own: launch.nproc is at most the number of GPUs; for tests: "
     "comm.options.share_gpu = true"},
    {"out of memory", CommStatus::no_memory, kMemory},
    {"no algorithm/protocol", CommStatus::unsupported,
     "NCCL does not have this algorithm for this call on this machine: comm.algorithm = \"auto\" lets it choose"},
    {"no socket interface", CommStatus::invalid, kRoute},
    {"closed by remote peer", CommStatus::peer_lost, "a peer has ended; its own last line says why"},
    {"remote process exited", CommStatus::peer_lost, "a peer has ended; its own last line says why"},
    {"Connection closed by localRank", CommStatus::peer_lost, "a peer has ended; its own last line says why"},
    {"Connection refused", CommStatus::peer_lost, kRoute},
    {"Connection reset", CommStatus::peer_lost, kRoute},
    {"Connection timed out", CommStatus::peer_lost, kRoute},
    {"No route to host", CommStatus::peer_lost, kRoute},
    {"message truncated", CommStatus::mismatch, "the ranks called collectives of different sizes"},
};

Known meaning_of(ncclResult_t result, const std::string& detail) {
  for (const Known& known : kKnown) {
    if (detail.find(known.words) != std::string::npos) return known;
  }
  switch (result) {
    case ncclRemoteError: return {"", CommStatus::peer_lost, "a peer has ended, or its network has"};
    case ncclInvalidArgument:
    case ncclInvalidUsage: return {"", CommStatus::invalid, ""};
    case ncclSystemError: return {"", CommStatus::internal, kRoute};
    default: return {"", CommStatus::internal, "comm.options.debug = \"info\" shows what NCCL did"};
  }
}

// The last of the lines that NCCL keeps; the others are its call stack.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const auto at = text.rfind('\n');
  return printable(at == std::string::npos ? text : text.substr(at + 1));
}

}  // namespace

CommError failure_of(const std::string& what, ncclResult_t result, const std::string& detail) {
  const Known meaning = meaning_of(result, detail);
  std::string line = what + ": NCCL: " + ncclGetErrorString(result);
  if (const std::string words = last_line(detail); !words.empty()) line += ": " + words;
  return {meaning.status, *meaning.hint == '\0' ? line : line + "; " + meaning.hint};
}

CommError failure_of(const std::string& what, cudaError_t result) {
  const std::string line = what + ": CUDA: " + cudaGetErrorString(result);
  if (result == cudaErrorMemoryAllocation) return {CommStatus::no_memory, line + "; " + kMemory};
  return {CommStatus::internal, line};
}

CommError timeout_of(const std::string& what, std::chrono::milliseconds limit) {
  return {CommStatus::timeout,
          what + ": not done within " + std::to_string(limit.count()) +
              " ms; a rank that skips a collective or has less data, or no route between two hosts: "
              "comm.options.debug = \"info\" shows where each rank is"};
}

void check(const std::string& what, ncclResult_t result) {
  if (result != ncclSuccess) throw failure_of(what, result, ncclGetLastError(nullptr));
}

void check(const char* what, cudaError_t result) {
  if (result != cudaSuccess) throw failure_of(what, result);
}

}  // namespace ddprun::nccl_backend
