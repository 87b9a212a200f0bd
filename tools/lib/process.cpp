#include "tools/lib/process.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "launch/child.hpp"
#include "launch/signals.hpp"

namespace ddprun::tools {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{100};

// The processes whose parents have ended are children of this one now.
void end_orphans() {
  const auto deadline = Clock::now() + kGrace;
  while (Clock::now() < deadline) {
    std::ifstream children("/proc/thread-self/children");
    pid_t child = 0;
    if (!(children >> child)) return;
    do ::kill(child, SIGKILL);
    while (children >> child);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    ::poll(nullptr, 0, 1);
  }
}

class RunningProcess {
 public:
  explicit RunningProcess(const ProcessPlan& plan) : plan_(plan), log_(plan.log), start_(Clock::now()) {
    if (plan.ends_orphans) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    child_ = launch::spawn(plan.command, launch::environment_with(plan.environment));  // it ends with this process
  }
  ~RunningProcess() {
    if (reaped_) return;
    ::kill(-child_.pid, SIGKILL);
    wait(0);
  }
  RunningProcess(const RunningProcess&) = delete;
  RunningProcess& operator=(const RunningProcess&) = delete;

  ProcessEnd run() {
    while (!wait(WNOHANG)) turn();
    if (plan_.ends_orphans) end_orphans();
    while (copy(child_.out) || copy(child_.err)) {
    }
    if (plan_.end_early && !asked_) plan_.end_early();
    log_.close();
    return {ending_, code_};
  }

 private:
  void turn() {
    std::array<pollfd, 3> entries{
        {{signals_.fd(), POLLIN, 0}, {child_.out.get(), POLLIN, 0}, {child_.err.get(), POLLIN, 0}}};
    ::poll(entries.data(), entries.size(), static_cast<int>(kTick.count()));
    copy(child_.out);
    copy(child_.err);
    while (const auto signal = signals_.next()) {
      if (*signal != SIGCHLD) on_signal(*signal);
    }
    const auto now = Clock::now();
    if (!asked_ && plan_.timeout && now - start_ >= *plan_.timeout) ask(Ending::timed_out);
    if (!asked_ && now - looked_ >= kTick) {
      looked_ = now;
      if (plan_.end_early && plan_.end_early()) ask(Ending::ended_early);
    }
    if (asked_ && now - *asked_ >= kGrace) ::kill(-child_.pid, SIGKILL);
  }

  void on_signal(int signal) {
    const Ending ending = signal == SIGINT ? Ending::interrupted : Ending::terminated;
    const bool again = ending_ == Ending::interrupted || ending_ == Ending::terminated;
    if (again) ::kill(-child_.pid, SIGKILL);
    if (asked_) {
      ending_ = ending;  // it is ending already
    } else {
      ask(ending);
    }
  }

  void ask(Ending why) {
    ending_ = why;
    asked_ = Clock::now();
    ::kill(child_.pid, SIGTERM);
  }

  // Reads one buffer of its output. True if there may be more.
  bool copy(UniqueFd& pipe) {
    if (!pipe) return false;
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
    if (got == 0) pipe.reset();
    if (got <= 0) return false;
    const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
    log_.write(text);
    if (plan_.echo) OutputFile("stderr", ::dup(STDERR_FILENO)).write(text);
    return true;
  }

  bool wait(int options) {
    siginfo_t info{};
    const auto id = static_cast<id_t>(child_.pid);
    int result = 0;
    while ((result = ::waitid(P_PID, id, &info, WEXITED | WNOWAIT | options)) < 0 && errno == EINTR) {
    }
    if (result != 0 || info.si_pid == 0) return false;
    ::kill(-child_.pid, SIGKILL);  // the rest of its group, while its process ID is still in use
    const int status = wait_for_child(child_.pid);
    reaped_ = true;
    code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  }

  const ProcessPlan& plan_;
  OutputFile log_;
  launch::Signals signals_;
  launch::Child child_;
  const Clock::time_point start_;
  Clock::time_point looked_{};
  std::optional<Clock::time_point> asked_;  // when its end was requested
  Ending ending_ = Ending::exited;
  bool reaped_ = false;
  int code_ = 0;
};

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// proc(5): "cpu  user nice system idle iowait irq softirq steal ...". Interrupts serve this comparison too.
CpuUse cpu_so_far() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  std::array<double, 8> ticks{};
  file >> cpu;
  for (double& value : ticks) file >> value;
  CpuUse use;
  if (!file) return use;
  const auto& [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
  const auto per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  use.busy = (user + nice + system + steal) / per_second;
  use.all = use.busy + (idle + iowait + irq + softirq) / per_second;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    use.own += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return use;
}

}  // namespace

ChildEnd run_process(const ProcessPlan& plan) {
  std::filesystem::create_directories(std::filesystem::path(plan.log).parent_path());
  const CpuMeter meter;
  const ProcessEnd end = RunningProcess(plan).run();
  return {end, plan.log, {meter.use()}};
}

void ChildEnd::stop_if_asked(const std::string& what, const std::string& more) const {
  if (!was_asked()) return;
  throw Error(code(), (code() == ExitCode::interrupted ? "interrupted in " : "terminated in ") + what + more);
}

ExitCode ChildEnd::code() const {
  if (process.ending == Ending::interrupted) return ExitCode::interrupted;
  if (process.ending == Ending::terminated) return ExitCode::terminated;
  return process.code >= 1 && process.code <= 6 ? static_cast<ExitCode>(process.code) : ExitCode::failure;
}

std::string ChildEnd::why() const {
  if (!cause.empty()) return cause;
  if (process.ending == Ending::timed_out) return "it took longer than --timeout";
  const std::string last = last_line_of(log);
  return last.empty() ? "exit code " + std::to_string(process.code) : last;
}

std::string last_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

CpuMeter::CpuMeter() : begin_(cpu_so_far()) {}

CpuUse CpuMeter::use() const {
  CpuUse use = cpu_so_far();
  std::ifstream("/proc/sys/kernel/random/boot_id") >> use.machine;
  use.all -= begin_.all;
  use.busy -= begin_.busy;
  use.own -= begin_.own;
  return use;
}

double other_share(const std::vector<CpuUse>& parts) {
  constexpr double kLeast = 0.05;  // seconds: a tick is 0.01
  std::map<std::string, CpuUse> machines;
  for (const CpuUse& part : parts) {
    CpuUse& machine = machines[part.machine];
    machine.own += part.own;
    if (part.all <= machine.all) continue;
    machine.all = part.all;  // the longest part covers the others
    machine.busy = part.busy;
  }
  double most = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [_, machine] : machines) {
    if (machine.all < kLeast) continue;
    most = std::fmax(most, std::clamp((machine.busy - machine.own) / machine.all, 0.0, 1.0));
  }
  return most;
}

}  // namespace ddprun::tools
