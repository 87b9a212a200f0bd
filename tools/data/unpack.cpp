#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "tools/data/fetch.hpp"
#include "tools/lib/process.hpp"

namespace ddprun::fetch {
namespace {

namespace fs = std::filesystem;

// The folder of the archive is below it: a fresh one, so that nothing in it leads elsewhere. Removed at the end.
struct Workplace {
  const fs::path path;
  explicit Workplace(const std::string& at) : path(at) {
    if (std::error_code error; !fs::create_directory(path, error)) throw_file_error("create folder", at, error.value());
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

bool holds_all(const fs::path& folder, const std::vector<std::string>& members) {
  return std::all_of(members.begin(), members.end(), [&](const std::string& member) {
    std::error_code ignored;
    return fs::symlink_status(folder / member, ignored).type() == fs::file_type::regular;
  });
}

}  // namespace

std::string unpack(const RemoteFile& archive, const std::string& folder) {
  const std::string path = (fs::path(folder) / archive.name).string();
  const fs::path inner = fs::path(archive.members.front()).parent_path(), target = folder / inner;
  if (holds_all(folder, archive.members)) return "already unpacked in " + target.string();
  if (fs::exists(fs::symlink_status(target))) {
    throw Error(ExitCode::usage, target.string() + " is there, but it lacks files of " + path +
                                     "; move it away and run the command again");
  }
  const Workplace work(aside_path(target.string()));
  tools::ProcessPlan plan;
  plan.command = {"tar", "-xzf", path, "-C", work.path.string(), "--force-local", "--no-same-owner"};
  plan.command.insert(plan.command.end(), archive.members.begin(), archive.members.end());
  plan.log = (work.path / "tar.log").string();
  const tools::ChildEnd end = tools::run_process(plan);
  if (!end.is_good()) {
    const ExitCode code = end.was_asked() ? end.code() : ExitCode::failure;
    throw Error(code, "cannot unpack " + path + ": " + end.why());
  }
  if (!holds_all(work.path, archive.members)) {
    throw Error(ExitCode::failure, "cannot unpack " + path + ": a member is no regular file");
  }
  std::error_code error;
  fs::rename(work.path / inner, target, error);
  if (error) throw_file_error("move the unpacked files to", target.string(), error.value());
  return "unpacked into " + target.string();
}

}  // namespace ddprun::fetch
