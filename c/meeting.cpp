#include "c/meeting.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "comm/shared_table.hpp"
#include "ddprun/plugin/host.hpp"

namespace ddprun::c {
namespace {

namespace fs = std::filesystem;

void allgather(const ddprun_group_options& options, const void* mine, std::size_t bytes, void* all) {
  if (options.allgather(options.context, mine, bytes, all) == DDPRUN_OK) return;
  throw CommError(CommStatus::peer_lost, ExitCode::rendezvous,
                  std::string(options.backend) + ": rank " + std::to_string(options.rank) +
                      ": joining: the allgather that the caller has given failed");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A new folder that only this user can enter. Throws Error(failure).
std::string private_folder() {
  std::string folder = (fs::temp_directory_path() / "ddprun-XXXXXX").string();
  if (::mkdtemp(folder.data()) != nullptr) return folder;
  throw Error(ExitCode::failure, "cannot make a folder in " + fs::temp_directory_path().string() + ": " +
                                     std::strerror(errno) + "; set TMPDIR to a folder that you can write");
}

// Runs body() and returns its error, or "".
template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Throws the first error of a rank on all ranks.
void fail_together(const Gather& gather, const comm::PluginBackend& backend, const std::string& mine) {
  const auto errors = gather(mine);
  const auto first = std::ranges::find_if(errors, [](const std::string& error) { return !error.empty(); });
  if (first == errors.end()) return;
  throw CommError(CommStatus::internal,
                  backend.name() + ": rank " + std::to_string(first - errors.begin()) + ": comparing calls: " + *first);
}

}  // namespace

Gather gather_over(const ddprun_group_options& options) {
  return [&options](std::string_view mine) {
    const auto ranks = static_cast<std::size_t>(options.size);
    const uint64_t size = mine.size();
    std::vector<uint64_t> sizes(ranks);
    allgather(options, &size, sizeof size, sizes.data());
    const std::size_t longest = *std::ranges::max_element(sizes);
    std::string padded(mine), all(longest * ranks, '\0');
    padded.resize(longest);
    allgather(options, padded.data(), longest, all.data());
    std::vector<std::string> texts;
    for (std::size_t rank = 0; rank < ranks; ++rank) texts.push_back(all.substr(rank * longest, sizes[rank]));
    return texts;
  };
}

void require_equal(const Gather& gather, const std::string& mine, const std::string& who) {
  const auto texts = gather(mine);
  const auto other = std::ranges::find_if(texts, [&](const std::string& text) { return text != texts.front(); });
  if (other == texts.end()) return;
  const auto first = lines_of(texts.front()), theirs = lines_of(*other);
  const auto [here, there] = std::ranges::mismatch(first, theirs);
  throw CommError(CommStatus::mismatch, ExitCode::rendezvous,
                  who + "rank 0 has " + (here == first.end() ? "no more settings" : *here) + ", rank " +
                      std::to_string(other - texts.begin()) + " has " +
                      (there == theirs.end() ? "no more settings" : *there) + "; they must be equal on all ranks");
}

std::unique_ptr<comm::FingerprintExchange> make_exchange(const Gather& gather, comm::PluginBackend& backend) {
  std::string folder, error;
  if (backend.rank() == 0) error = error_of([&] { folder = private_folder(); });
  const std::string host = host_identity();
  const auto texts = gather(host + '\n' + folder);
  const bool on_one_host = !host.empty() && std::ranges::all_of(texts, [&](const std::string& text) {
    return text.starts_with(host + '\n');
  });
  std::unique_ptr<comm::FingerprintExchange> exchange;
  if (on_one_host) {
    const std::string path = texts.front().substr(host.size() + 1) + "/table";
    if (error.empty()) {
      error = error_of([&] { exchange = comm::shared_table(comm::map_table(path, backend.size()), backend.rank()); });
    }
  } else {
    exchange = comm::exchange_over(backend);
  }
  // All ranks have opened the table when this has gathered: its name is no longer needed.
  const std::string failure = error_of([&] { fail_together(gather, backend, error); });
  if (!folder.empty()) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  if (!failure.empty()) throw CommError(CommStatus::internal, failure);
  return exchange;
}

}  // namespace ddprun::c
