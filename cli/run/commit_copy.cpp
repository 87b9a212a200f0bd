#include "cli/run/commit_copy.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "base/file.hpp"
#include "base/log.hpp"
#include "checkpoint/folder.hpp"
#include "ddprun/error.hpp"

namespace ddprun::run {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunkOfCommit = 8 << 20;
constexpr uint64_t kSlowest = 1 << 20;  // bytes per second; a slower copy fails
const std::string kCopies = "copies ";  // a rank that sends or receives; rank 0 appends the number of bytes

// The model file and the states of its ranks, the model file last: it completes the commit.
std::vector<std::string> files_of_commit(const std::string& path) {
  std::vector<std::string> files;
  if (const auto commit = checkpoint::commit_of(path)) {
    for (int rank = 0; fs::exists(checkpoint::state_path(*commit, rank)); ++rank) {
      files.push_back(checkpoint::state_path(*commit, rank));
    }
  }
  files.push_back(path);
  return files;
}

uint64_t size_of(const std::vector<std::string>& files) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const std::string& file : files) {
    const auto size = fs::file_size(file, error);
    if (!error) bytes += size;  // send() reports a file that cannot be read
  }
  return bytes;
}

// Rank 0 and one rank of each host that lacks the commit.
class Copy {
 public:
  Copy(Store& store, int index, int size, std::chrono::milliseconds timeout)
      : store_(store), index_(index), size_(size), timeout_(timeout) {}

  void send(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error(ExitCode::failure, "cannot read the checkpoint " + path);
    pass(fs::path(path).filename().string());
    std::string chunk;
    do {
      chunk.resize(kChunkOfCommit);
      file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
      chunk.resize(static_cast<std::size_t>(file.gcount()));
      pass(chunk);
    } while (!chunk.empty());  // an empty chunk ends the file
  }
  void end() { pass(""); }

  // False after the last file.
  bool receive(const fs::path& folder) {
    const std::string name = pass("");
    if (name.empty()) return false;
    fs::create_directories(folder);
    replace_by((folder / fs::path(name).filename()).string(), [&](const std::string& aside) {
      OutputFile output(aside);
      for (std::string chunk; !(chunk = pass("")).empty();) output.write(chunk);
      output.close();
    });
    return true;
  }

 private:
  // Rank 0's text. The store forgets it when all have it.
  std::string pass(const std::string& text) {
    return store_.allgather("checkpoint " + std::to_string(count_++), index_, size_, text, timeout_).front();
  }

  Store& store_;
  const int index_, size_;
  const std::chrono::milliseconds timeout_;
  int count_ = 0;
};

}  // namespace

void copy_commit(const std::string& path, const launch::World& world, Store& store,
                 std::chrono::milliseconds timeout) {
  const bool lacks = world.rank != 0 && !fs::exists(path);
  const bool copies = world.rank == 0 || (lacks && world.local_rank == 0);
  const uint64_t bytes = world.rank == 0 ? size_of(files_of_commit(path)) : 0;
  const std::string mine = copies ? kCopies + std::to_string(bytes) : "";
  const auto all = store.allgather("who has the checkpoint", world.rank, world.size, mine, timeout);
  const auto is_copier = [](const std::string& text) { return !text.empty(); };
  const auto copiers = static_cast<int>(std::count_if(all.begin(), all.end(), is_copier));
  if (copiers == 1) return;
  const auto index = static_cast<int>(std::count_if(all.begin(), all.begin() + world.rank, is_copier));
  Copy copy(store, index, copiers, timeout);
  if (world.rank == 0) {
    log::info("copying the checkpoint to " + std::to_string(copiers - 1) + " host" + (copiers == 2 ? "" : "s") +
              " without it: " + path);
    for (const std::string& file : files_of_commit(path)) copy.send(file);
    copy.end();
  } else if (copies) {
    while (copy.receive(fs::path(path).parent_path())) {
    }
  }
  // A rank that does not copy waits here for the others, on a slow network for minutes.
  const auto seconds = std::stoull(all.front().substr(kCopies.size())) / kSlowest;
  store.allgather("the checkpoint is here", world.rank, world.size, "", timeout + std::chrono::seconds(seconds));
}

}  // namespace ddprun::run
