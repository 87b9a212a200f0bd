#include "comm/copy_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "base/file.hpp"
#include "ddprun/error.hpp"

namespace ddprun::comm {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kChunk = 4 << 20;

void broadcast(CommBackend& backend, int root, void* bytes, std::size_t count, milliseconds timeout) {
  backend.broadcast({.recv = bytes, .count = count, .dtype = DType::uint8, .root = root}).wait(timeout);
}

struct Head {
  uint64_t size = 0;
  int64_t error = 0;  // the errno if the file cannot be read, otherwise 0
};

Head head_of(const std::string& path, std::ifstream& file) {
  file.open(path, std::ios::binary | std::ios::ate);
  if (!file) return {0, errno == 0 ? EIO : errno};
  const auto size = static_cast<uint64_t>(file.tellg());
  file.seekg(0);
  return {size, 0};
}

}  // namespace

std::string broadcast_text(CommBackend& backend, int root, std::string text, milliseconds timeout) {
  uint64_t size = text.size();
  broadcast(backend, root, &size, sizeof size, timeout);
  text.resize(size);
  broadcast(backend, root, text.data(), text.size(), timeout);
  return text;
}

void copy_file(CommBackend& backend, int root, const std::string& source, const std::string& target,
               milliseconds timeout) {
  const bool is_root = backend.rank() == root;
  std::ifstream file;
  Head head;
  if (is_root) head = head_of(source, file);
  broadcast(backend, root, &head, sizeof head, timeout);
  if (head.error != 0) {
    throw Error(ExitCode::failure, "rank " + std::to_string(root) + " cannot read " + source + ": " +
                                       std::strerror(static_cast<int>(head.error)));
  }
  const std::string part = target + ".part";
  std::optional<OutputFile> output;
  if (!target.empty() && !is_root) output.emplace(part);
  std::vector<char> chunk(std::min<std::size_t>(kChunk, head.size));
  for (uint64_t done = 0; done < head.size; done += chunk.size()) {
    chunk.resize(std::min<uint64_t>(kChunk, head.size - done));
    if (is_root) file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    broadcast(backend, root, chunk.data(), chunk.size(), timeout);
    if (output) output->write(chunk.data(), chunk.size());
  }
  if (!output) return;
  output->close();
  std::filesystem::rename(part, target);
}

}  // namespace ddprun::comm
