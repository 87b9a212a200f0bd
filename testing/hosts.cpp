#include "testing/hosts.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace ddprun::testing {
namespace {

constexpr int kOfHost = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

// In the new mount namespace: /proc with its processes, /sys with its network devices, and its own /dev/shm.
bool mount_own() {
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("proc", "/proc", "proc", 0, nullptr) == 0 && mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") == 0;
}

// A process that holds new namespaces until it is killed, or this process ends. In a PID namespace it is the first
// process, with whose end the kernel kills the others.
pid_t hold(int namespaces) {
  std::array<int, 2> ready{};
  if (pipe2(ready.data(), O_CLOEXEC) != 0) fail("hosts: pipe");
  const auto pid = static_cast<pid_t>(syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGCHLD, SIG_IGN);  // so that processes without a parent leave no entry behind
    setpgid(0, 0);
    if ((namespaces & CLONE_NEWNS) != 0 && !mount_own()) _exit(1);
    if (write(ready[1], "", 1) != 1) _exit(1);
    close(ready[1]);
    while (true) pause();
  }
  const int error = errno;
  char byte = 0;
  close(ready[1]);
  const bool is_ready = pid > 0 && read(ready[0], &byte, 1) == 1;
  close(ready[0]);
  if (is_ready) return pid;
  if (pid > 0) waitpid(pid, nullptr, 0);
  errno = pid > 0 ? EPERM : error;
  fail("hosts: no namespaces");
}

int open_namespace(pid_t process, const char* kind) {
  const int fd = open(("/proc/" + std::to_string(process) + "/ns/" + kind).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("hosts: namespace " + std::string(kind));
  return fd;
}

void enter(int space) {
  if (setns(space, 0) != 0) fail("hosts: setns");
}

}  // namespace

// Namespaces, and the process that holds them. Other processes enter them by descriptors: they need not see the
// process.
class Hosts::Namespaces {
 public:
  explicit Namespaces(int kinds) : holder_(hold(kinds)) {
    net_ = open_namespace(holder_, "net");
    if ((kinds & CLONE_NEWPID) == 0) return;
    pid_ = open_namespace(holder_, "pid");
    ipc_ = open_namespace(holder_, "ipc");
    mnt_ = open_namespace(holder_, "mnt");
  }
  ~Namespaces() {
    kill(holder_, SIGKILL);
    waitpid(holder_, nullptr, 0);
    for (const int space : {net_, pid_, ipc_, mnt_}) {
      if (space >= 0) close(space);
    }
  }
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  pid_t holder() const { return holder_; }
  // Of the children that this process forks from now on.
  void enter_pid() const { enter(pid_); }
  // A new mount namespace changes the working directory.
  void enter_others() const {
    enter(net_);
    if (mnt_ < 0) return;
    const auto folder = std::filesystem::current_path();
    enter(ipc_);
    enter(mnt_);
    std::filesystem::current_path(folder);
  }

 private:
  pid_t holder_;
  int net_ = -1, pid_ = -1, ipc_ = -1, mnt_ = -1;
};

Hosts::Hosts(int count, int devices) : switch_(std::make_unique<Namespaces>(CLONE_NEWNET)) {
  for (int device = 0; device < devices; ++device) {
    run_in(*switch_, "ip link add switch" + std::to_string(device) + " up type bridge");
  }
  for (int host = 0; host < count; ++host) {
    hosts_.push_back(std::make_unique<Namespaces>(kOfHost));
    run(host, "ip link set lo up");
    for (int device = 0; device < devices; ++device) join(host, device);
  }
}

Hosts::~Hosts() = default;

void Hosts::join(int host, int device) const {
  const std::string name = "eth" + std::to_string(device);
  run_in(*switch_, "ip link add " + port(host, device) + " type veth peer name " + name + " netns " +
                       std::to_string(hosts_[static_cast<std::size_t>(host)]->holder()));
  connect(host, device);
  run_in(*switch_, "ip link set " + port(host, device) + " up");
  run(host, "ip address add " + address(host, device) + "/24 dev " + name);
  run(host, "ip link set " + name + " up");
  run(host, "timeout 60 sh -c 'until grep -q up /sys/class/net/" + name + "/operstate; do sleep 0.01; done'");
}

std::string Hosts::port(int host, int device) {
  return "port" + std::to_string(host) + "-" + std::to_string(device);
}

std::string Hosts::address(int host, int device) const {
  return "10." + std::to_string(83 + device) + ".0." + std::to_string(10 + host);
}

void Hosts::connect(int host, int device) const {
  run_in(*switch_, "ip link set " + port(host, device) + " master switch" + std::to_string(device));
}

void Hosts::disconnect(int host, int device) const {
  run_in(*switch_, "ip link set " + port(host, device) + " nomaster");
}

Placement Hosts::placement(int per_host) const {
  const auto of = [this, per_host](int rank) { return hosts_.at(static_cast<std::size_t>(rank / per_host)).get(); };
  // A process cannot change its PID namespace, only that of its children.
  return {.before_fork = [=](int rank) { of(rank)->enter_pid(); },
          .after_fork =
              [] {
                const int own = open_namespace(getpid(), "pid");
                enter(own);
                close(own);
              },
          .in_rank = [=](int rank) { of(rank)->enter_others(); }};
}

std::vector<std::string> Hosts::prefix(int host, const std::vector<std::string>& namespaces) const {
  const pid_t holder = hosts_.at(static_cast<std::size_t>(host))->holder();
  std::vector<std::string> argv = {"/usr/bin/nsenter", "--target=" + std::to_string(holder)};
  argv.insert(argv.end(), namespaces.begin(), namespaces.end());
  argv.push_back("--");
  return argv;
}

void Hosts::run(int host, const std::string& command) const {
  run_in(*hosts_.at(static_cast<std::size_t>(host)), command);
}

void Hosts::run_in(const Namespaces& namespaces, const std::string& command) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) fail("hosts: fork");
  if (child == 0) {
    try {
      namespaces.enter_others();
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    } catch (const std::exception&) {
    }
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("hosts: failed: " + command);
}

std::string Hosts::why_not() {
  try {
    const Hosts hosts(1);
    return "";
  } catch (const std::runtime_error& error) {
    return "cannot make hosts from namespaces (needs CAP_SYS_ADMIN, `ip` of iproute2, and a process with one "
           "thread; TSan adds a thread): " +
           std::string(error.what());
  }
}

bool Hosts::are_possible() {
  const std::string why = why_not();
  if (!why.empty()) std::printf("skipped: %s\n", why.c_str());
  return why.empty();
}

}  // namespace ddprun::testing
