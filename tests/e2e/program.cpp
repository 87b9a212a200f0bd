#include "e2e/program.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace ddprun::e2e {

namespace fs = std::filesystem;
using namespace testing;

namespace {

constexpr std::chrono::seconds kLimit{240};  // for a whole run; the machine may be busy

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

// From the name of a process that the launcher has forked, or from a variable that a process was started with; "" if it
// is no rank.
std::string rank_of(pid_t pid, const std::string& variable) {
  const std::string process = "/proc/" + std::to_string(pid), forked = "ddprun-rank";
  std::string name;
  std::getline(std::ifstream(process + "/comm"), name);
  if (name.starts_with(forked)) return name.substr(forked.size());
  std::ifstream file(process + "/environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with(variable + "=")) return entry.substr(variable.size() + 1);
  }
  return "";
}

}  // namespace

Workplace::Workplace() {
  fs::create_directory(folder() / "tmp");
}

std::string Workplace::config(const std::string& text, const std::string& name) const {
  return folder_.write(name + ".toml", text);
}

std::vector<std::string> Workplace::training(const std::string& config,
                                             const std::vector<std::string>& overrides) const {
  std::vector<std::string> argv = {program(), "--config", config, "--set", "experiment.output=" + runs().string()};
  for (const std::string& override_ : overrides) argv.insert(argv.end(), {"--set", override_});
  return argv;
}

std::vector<std::string> Workplace::environment() const {
  const std::string temporary = (folder() / "tmp").string();
  return {"XDG_RUNTIME_DIR=" + temporary, "TMPDIR=" + temporary, "XDG_DATA_HOME=" + (folder() / "data").string()};
}

ProcessResult Workplace::run(const std::vector<std::string>& argv) const {
  return Process(argv, environment()).wait(kLimit);
}

ProcessResult Workplace::ddprun(const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv = {program()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run(argv);
}

fs::path Workplace::new_run() {
  std::vector<fs::path> found;
  if (fs::exists(runs())) {
    for (const auto& entry : fs::directory_iterator(runs())) {
      if (seen_.insert(entry.path()).second) found.push_back(entry.path());
    }
  }
  if (found.size() != 1) throw std::runtime_error(std::to_string(found.size()) + " new run folders instead of one");
  return found[0];
}

std::vector<std::string> Workplace::leftovers() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder() / "tmp")) names.push_back(entry.path().filename());
  return names;
}

Job::Job(const Workplace& place, const std::vector<std::string>& argv) : launcher_(argv, place.environment()) {}

void Job::wait_for_steps() {
  const auto has_step = [&] { return contains(launcher_.err(), "epoch 1 ["); };
  if (!eventually([&] { return has_step() || !is_alive(launcher_.pid()); }, kLimit) || !has_step()) {
    throw std::runtime_error("the job does not train; it printed:\n" + launcher_.err());
  }
}

std::map<int, pid_t> Job::ranks(int world, const std::string& variable) const {
  std::map<int, pid_t> ranks;
  eventually([&] {
    for (const pid_t child : children_of(launcher_.pid())) {
      const std::string rank = rank_of(child, variable);
      if (!rank.empty()) ranks[std::stoi(rank)] = child;
    }
    return ranks.size() == static_cast<std::size_t>(world);
  });
  if (ranks.size() != static_cast<std::size_t>(world)) throw std::runtime_error("the ranks cannot be found");
  return ranks;
}

std::vector<pid_t> Job::descendants() const {
  std::vector<pid_t> all = children_of(launcher_.pid());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const pid_t child : children_of(all[i])) all.push_back(child);
  }
  return all;
}

std::set<std::string> mapped_files(pid_t pid, const fs::path& within) {
  std::set<std::string> files;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at == std::string::npos) continue;
    const std::string path = line.substr(at);
    if (path.starts_with((within / "").string()) || path.starts_with("/dev/shm/")) files.insert(path);
  }
  return files;
}

int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool bound = bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(listener);
  if (!bound) throw std::runtime_error("no port is free");
  return ntohs(address.sin_port);
}

std::string program() {
  return DDPRUN_PROGRAM;
}

}  // namespace ddprun::e2e
