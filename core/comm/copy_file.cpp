#include "comm/copy_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
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

// Rank `root` reads from `input`; the others write to `output` if it is not null.
void pass_bytes(CommBackend& backend, int root, uint64_t size, const std::string& source, std::ifstream* input,
                OutputFile* output, milliseconds timeout) {
  std::vector<char> chunk;
  for (uint64_t done = 0; done < size; done += chunk.size()) {
    chunk.resize(std::min<uint64_t>(kChunk, size - done));
    if (input != nullptr && !input->read(chunk.data(), static_cast<std::streamsize>(chunk.size()))) {
      throw Error(ExitCode::failure, "cannot read " + source + ": it ended early, or the disk failed");
    }
    broadcast(backend, root, chunk.data(), chunk.size(), timeout);
    if (output != nullptr) output->write(chunk.data(), chunk.size());
  }
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
  if (target.empty() || is_root) {
    pass_bytes(backend, root, head.size, source, is_root ? &file : nullptr, nullptr, timeout);
    return;
  }
  replace_by(target, [&](const std::string& aside) {
    OutputFile output(aside);
    pass_bytes(backend, root, head.size, source, nullptr, &output, timeout);
    output.sync();
    output.close();
  });
  const std::filesystem::path folder = std::filesystem::path(target).parent_path();
  sync_folder(folder.empty() ? "." : folder.string());
}

}  // namespace ddprun::comm
