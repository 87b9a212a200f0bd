#include "failures.hpp"

#include "ddprun/plugin/words.hpp"

namespace ddprun::nccl_backend {
namespace {

constexpr char kMemory[] =
    "the GPU's memory is used up: try a smaller data.batch_size, train.accumulate, train.amp = \"bf16\"";
constexpr char kRoute[] =
    "name a network interface that all ranks reach in comm.options.interface (NCCL_SOCKET_IFNAME), try "
    "comm.options.ib_disable = true, and see comm.options.debug = \"info\"";

// What NCCL says, and what that means. The first that is found in the text counts.
struct Known {
  const char* words;
  ddprun_status status;
  const char* hint;
};
constexpr Known kKnown[] = {
    {"Duplicate GPU", DDPRUN_INVALID,
     "give each rank a GPU of its own: launch.nproc is at most the number of GPUs; for tests: "
     "comm.options.share_gpu = true"},
    {"out of memory", DDPRUN_NO_MEMORY, kMemory},
    {"no algorithm/protocol", DDPRUN_UNSUPPORTED,
     "NCCL has not this algorithm for this call on this machine: comm.algorithm = \"auto\" lets it choose"},
    {"no socket interface", DDPRUN_INVALID, kRoute},
    {"closed by remote peer", DDPRUN_PEER_LOST, "a peer has ended; its own last line says why"},
    {"remote process exited", DDPRUN_PEER_LOST, "a peer has ended; its own last line says why"},
    {"Connection closed by localRank", DDPRUN_PEER_LOST, "a peer has ended; its own last line says why"},
    {"Connection refused", DDPRUN_PEER_LOST, kRoute},
    {"Connection reset", DDPRUN_PEER_LOST, kRoute},
    {"Connection timed out", DDPRUN_PEER_LOST, kRoute},
    {"No route to host", DDPRUN_PEER_LOST, kRoute},
    {"message truncated", DDPRUN_MISMATCH, "the ranks called collectives of different sizes"},
};

Known meaning_of(ncclResult_t result, const std::string& detail) {
  for (const Known& known : kKnown) {
    if (detail.find(known.words) != std::string::npos) return known;
  }
  switch (result) {
    case ncclRemoteError: return {"", DDPRUN_PEER_LOST, "a peer has ended, or its network has"};
    case ncclInvalidArgument:
    case ncclInvalidUsage: return {"", DDPRUN_INVALID, ""};
    case ncclSystemError: return {"", DDPRUN_INTERNAL, kRoute};
    default: return {"", DDPRUN_INTERNAL, "comm.options.debug = \"info\" shows what NCCL did"};
  }
}

// The last of the lines that NCCL keeps: the others are where it passed through.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const auto at = text.rfind('\n');
  return printable(at == std::string::npos ? text : text.substr(at + 1));
}

}  // namespace

Failure failure_of(const std::string& what, ncclResult_t result, const std::string& detail) {
  const Known meaning = meaning_of(result, detail);
  std::string line = what + ": NCCL: " + ncclGetErrorString(result);
  if (const std::string words = last_line(detail); !words.empty()) line += ": " + words;
  return {meaning.status, *meaning.hint == '\0' ? line : line + "; " + meaning.hint};
}

Failure failure_of(const std::string& what, cudaError_t result) {
  const std::string line = what + ": CUDA: " + cudaGetErrorString(result);
  if (result == cudaErrorMemoryAllocation) return {DDPRUN_NO_MEMORY, line + "; " + kMemory};
  return {DDPRUN_INTERNAL, line};
}

Failure timeout_of(const std::string& what, std::chrono::milliseconds limit) {
  return {DDPRUN_TIMEOUT, what + ": not done within " + std::to_string(limit.count()) +
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
