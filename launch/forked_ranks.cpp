#include "launch/forked_ranks.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

using Words = std::vector<std::string>;

// What exec would do.
void close_on_exec(int kept) {
  std::vector<int> open;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    open.push_back(std::stoi(entry.path().filename()));
  }
  for (const int fd : open) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (fd != kept && flags >= 0 && (flags & FD_CLOEXEC) != 0) ::close(fd);
  }
}

// As spawn() does it.
void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGUSR2) ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The number of words of the command, the command and the environment, each word with a final 0.
std::string packed(const Words& command, const Words& environment) {
  std::string text = std::to_string(command.size()) + '\0';
  for (const Words* words : {&command, &environment}) {
    for (const std::string& word : *words) text += word + '\0';
  }
  return text;
}

std::pair<Words, Words> unpacked(const std::string& text) {
  Words words;
  for (std::size_t begin = 0; begin < text.size(); begin = text.find('\0', begin) + 1) {
    words.emplace_back(text.c_str() + begin);
  }
  const auto environment = words.begin() + 1 + std::stol(words.at(0));
  return {{words.begin() + 1, environment}, {environment, words.end()}};
}

// False at the end of the pipe.
bool read_all(int fd, char* bytes, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = ::read(fd, bytes + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

// "" if the launcher has ended, or does not need this rank. Other processes that the launcher has forked may keep the
// pipe open, so its end does not mark that of the message.
std::string read_orders(int fd) {
  std::size_t size = 0;
  if (!read_all(fd, reinterpret_cast<char*>(&size), sizeof size)) return "";
  std::string text(size, '\0');
  return read_all(fd, text.data(), size) ? text : "";
}

// The kernel shows the memory of the first environment as /proc/PID/environ, by which people and tools find a rank.
void show(const Words& environment) {
  std::ifstream file("/proc/self/stat");
  std::string stat((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  Words values{std::istream_iterator<std::string>(fields), {}};
  constexpr std::size_t kBegin = 47, kEnd = 48;  // env_start and env_end of proc(5), counted from the field after comm
  if (values.size() <= kEnd) return;
  const auto begin = std::stoull(values[kBegin]), end = std::stoull(values[kEnd]);
  auto* place = reinterpret_cast<char*>(begin);
  auto* const limit = reinterpret_cast<char*>(end);
  if (begin == 0 || place >= limit) return;
  std::fill(place, limit, '\0');
  // A rank's own variables come last.
  for (auto variable = environment.rbegin(); variable != environment.rend(); ++variable) {
    if (limit - place <= static_cast<std::ptrdiff_t>(variable->size())) continue;
    place = std::copy(variable->begin(), variable->end(), place) + 1;
  }
}

// The process that waits, and then is a rank.
[[noreturn]] void be_rank(int orders, const ForkedRanks::Main& main) {
  reset_signals();
  close_on_exec(orders);
  const std::string text = read_orders(orders);
  ::close(orders);
  if (text.empty()) ::_exit(0);
  auto [command, environment] = unpacked(text);
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  environ = variables.data();
  show(environment);
  ::_exit(main(command));
}

}  // namespace

ForkedRanks::ForkedRanks(int count, Main main) {
  std::cout.flush();
  std::fflush(nullptr);  // otherwise each rank would write it too
  for (int i = 0; i < count; ++i) {
    Pipe out = make_pipe(), err = make_pipe(), orders = make_pipe();
    ::fcntl(orders.read.get(), F_SETFL, 0);
    Child child{::fork(), {}, {}};
    if (child.pid < 0) throw Error(ExitCode::failure, std::string("cannot start a rank: ") + std::strerror(errno));
    if (child.pid == 0) {
      ::setpgid(0, 0);
      const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      ::dup2(null, STDIN_FILENO);
      ::dup2(out.write.get(), STDOUT_FILENO);
      ::dup2(err.write.get(), STDERR_FILENO);
      be_rank(orders.read.get(), main);
    }
    ::setpgid(child.pid, child.pid);  // before anybody sends a signal to the group
    child.out = std::move(out.read);
    child.err = std::move(err.read);
    waiting_.push_back({std::move(child), std::move(orders.write)});
  }
  std::reverse(waiting_.begin(), waiting_.end());
}

ForkedRanks::~ForkedRanks() {
  for (Waiting& one : waiting_) {
    one.orders.reset();
    while (::waitpid(one.child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

std::optional<Child> ForkedRanks::start(const Words& command, const Words& environment) {
  if (waiting_.empty()) return std::nullopt;
  Waiting one = std::move(waiting_.back());
  waiting_.pop_back();
  const std::string words = packed(command, environment);
  const std::size_t size = words.size();
  const std::string text = std::string(reinterpret_cast<const char*>(&size), sizeof size) + words;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(one.orders.get(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) break;  // it was killed, and its parent will see that
    done += static_cast<std::size_t>(std::max<ssize_t>(wrote, 0));
  }
  return std::move(one.child);
}

}  // namespace ddprun::launch
