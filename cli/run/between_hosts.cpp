#include "cli/run/between_hosts.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/file.hpp"
#include "ddprun/error.hpp"

namespace ddprun::run {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kChunk = 4 << 20;
constexpr auto kOneClock = 100ms;

}  // namespace

Pass pass_from(const comm::Group& ranks, int root) {
  return [ranks, root](const std::string& text) {
    const std::vector<char> bytes = ranks.from(root, {text.begin(), text.end()});
    return std::string(bytes.begin(), bytes.end());
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
  ranks.barrier();
  const int64_t now = clock();
  const std::chrono::nanoseconds ahead(now - ranks.gather(std::vector{now}).front());
  return std::chrono::abs(ahead) < kOneClock ? 0ns : ahead;
}

}  // namespace ddprun::run
