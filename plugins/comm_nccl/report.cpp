#include "report.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "ddprun/plugin/words.hpp"
#include "settings.hpp"

namespace ddprun::nccl_backend {
namespace {

constexpr char kWhy[] = "comm.options.verify";

// One per process, because NCCL opens its file once. It is an anonymous file, so nothing is left of it.
int debug_memory() {
  static const int file = memfd_create("nccl-debug", MFD_CLOEXEC);
  if (file < 0) throw CommError(CommStatus::no_memory, "comm.options.verify: no memory for NCCL's report");
  return file;
}

}  // namespace

Report::Report(const Host& host, Algorithm asked, bool wanted)
    : asked_(asked), speaks_(wanted && host.rank() == 0 && host.size() > 1) {
  if (!wanted) return;
  if (asked_ == Algorithm::nccl) {
    throw CommError(CommStatus::invalid, std::string(kWhy) +
                                             " compares what NCCL does with comm.algorithm: that has to be "
                                             "\"ring\" or \"tree\"");
  }
  file_ = debug_memory();
  const std::string path = "/proc/self/fd/" + std::to_string(file_);
  const bool is_ours = variable("NCCL_DEBUG_FILE") == path;  // set by an earlier communicator
  for (const char* const name : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}) {
    if (is_ours || !variable(name)) continue;
    throw CommError(CommStatus::invalid, std::string(kWhy) + " needs NCCL's debug lines for itself: leave " + name +
                                             " and comm.options.debug unset");
  }
  fix_variable("NCCL_DEBUG", "INFO", kWhy);
  fix_variable("NCCL_DEBUG_SUBSYS", "TUNING", kWhy);
  fix_variable("NCCL_DEBUG_FILE", path, kWhy);
  read_ = lseek(file_, 0, SEEK_END);
}

std::string Report::new_lines() {
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t got; (got = pread(file_, piece.data(), piece.size(), read_)) > 0; read_ += got) {
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  // Frees the memory of the part that was read; NCCL continues to write after it.
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, read_);
  return text;
}

void Report::require_asked() {
  if (!speaks_) return;
  constexpr std::string_view kCall = "AllReduce: ";
  constexpr std::string_view kAlgorithm = " -> Algo ";
  const std::string text = new_lines();
  bool is_found = false;
  for (std::size_t at = text.find(kCall); at != std::string::npos; at = text.find(kCall, at + 1)) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t name = text.find(kAlgorithm, at);
    if (name >= end) continue;
    const std::size_t begin = name + kAlgorithm.size();
    const std::string used = text.substr(begin, text.find(' ', begin) - begin);
    if (used != (asked_ == Algorithm::ring ? "RING" : "TREE")) {
      throw CommError(CommStatus::internal, std::string("allreduce: comm.algorithm = \"") + name_of(asked_) +
                                                "\", but NCCL reports \"" + printable(used) + "\"");
    }
    is_found = true;
  }
  if (!is_found) throw CommError(CommStatus::internal, "allreduce: NCCL does not report which algorithm served it");
}

}  // namespace ddprun::nccl_backend
