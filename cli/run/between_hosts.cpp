#include "cli/run/between_hosts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "base/file.hpp"
#include "ddprun/error.hpp"

namespace ddprun::run {
namespace {

constexpr std::size_t kChunk = 4 << 20;
constexpr int kRounds = 16;  // allgathers that measure a clock

}  // namespace

Pass pass_from(const comm::Group& ranks, int root) {
  return [ranks, root](std::string text) {
    const auto broadcast = [&](void* bytes, std::size_t count) {
      ranks.backend()
          .broadcast({.recv = bytes, .count = count, .dtype = DType::uint8, .root = root})
          .wait(ranks.timeout());
    };
    uint64_t size = text.size();
    broadcast(&size, sizeof size);
    text.resize(size);
    broadcast(text.data(), text.size());
    return text;
  };
}

void send_file(int rank, const std::string& path, const Pass& pass) {
  const auto cannot_read = [&](const std::string& why) {
    return "rank " + std::to_string(rank) + " cannot read " + path + ": " + why;
  };
  std::ifstream file(path, std::ios::binary);
  const std::string error = file ? "" : cannot_read(std::strerror(errno));
  pass(error);
  if (!error.empty()) throw Error(ExitCode::failure, error);
  std::string chunk;
  do {
    chunk.resize(kChunk);
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    if (file.bad()) throw Error(ExitCode::failure, cannot_read("the disk failed"));
    chunk.resize(static_cast<std::size_t>(file.gcount()));
    pass(chunk);
  } while (!chunk.empty());  // an empty chunk ends the file
}

void receive_file(const std::string& target, const Pass& pass) {
  if (const std::string error = pass(""); !error.empty()) throw Error(ExitCode::failure, error);
  if (target.empty()) {
    while (!pass("").empty()) continue;
    return;
  }
  replace_by(target, [&](const std::string& aside) {
    OutputFile output(aside);
    for (std::string chunk; !(chunk = pass("")).empty();) output.write(chunk);
    output.sync();
    output.close();
  });
  const std::filesystem::path folder = std::filesystem::path(target).parent_path();
  sync_folder(folder.empty() ? "." : folder.string());
}

int64_t steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::chrono::nanoseconds clock_offset(const comm::Group& ranks, const std::function<int64_t()>& clock) {
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  // The begin of this round, and the end of the round before it.
  std::vector<int64_t> times{0, 0};
  int64_t begin_before = 0;
  for (int round = 0; round <= kRounds; ++round) {
    const int64_t begin = clock();
    times = {begin, times[1]};
    const std::vector<int64_t> all = ranks.gather(times);
    times[1] = clock();
    most = std::min(most, times[1] - all[0]);                       // rank 0 had begun before this rank ended
    if (round > 0) least = std::max(least, begin_before - all[1]);  // and this rank before rank 0 had ended
    begin_before = begin;
  }
  if (ranks.rank() == 0 || (least <= 0 && most >= 0)) return std::chrono::nanoseconds(0);
  return std::chrono::nanoseconds(least + (most - least) / 2);
}

}  // namespace ddprun::run
