#include "tools/conformance/hosts.hpp"

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

// In its mount namespace: a /proc of its processes, a /sys of its network devices, and a /dev/shm of its own.
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

void end(pid_t pid) {
  if (pid <= 0) return;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

// A descriptor of a process's namespace: "net", "pid", ...
int open_namespace(pid_t process, const char* kind) {
  const int fd = open(("/proc/" + std::to_string(process) + "/ns/" + kind).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("hosts: namespace " + std::string(kind));
  return fd;
}

void enter(pid_t process, const char* kind) {
  const int fd = open_namespace(process, kind);
  const int outcome = setns(fd, 0);
  close(fd);
  if (outcome != 0) fail("hosts: setns " + std::string(kind));
}

// The mount namespace comes last: the paths of the others are in the old one. It changes the working directory.
void enter_all(pid_t process) {
  const auto folder = std::filesystem::current_path();
  for (const char* kind : {"net", "ipc", "mnt"}) enter(process, kind);
  std::filesystem::current_path(folder);
}

}  // namespace

Hosts::Hosts(int count, int devices) : devices_(devices), hosts_(static_cast<std::size_t>(count), -1) {
  try {
    start();
  } catch (...) {
    stop();
    throw;
  }
}

Hosts::~Hosts() {
  stop();
}

void Hosts::stop() noexcept {
  for (const pid_t host : hosts_) end(host);
  end(switch_);
}

void Hosts::start() {
  switch_ = hold(CLONE_NEWNET);
  for (int device = 0; device < devices_; ++device) {
    run_in(switch_, "ip link add switch" + std::to_string(device) + " up type bridge");
  }
  for (int host = 0; host < count(); ++host) {
    hosts_[static_cast<std::size_t>(host)] = hold(kOfHost);
    run(host, "ip link set lo up");
    for (int device = 0; device < devices_; ++device) join(host, device);
  }
}

void Hosts::join(int host, int device) const {
  const std::string name = "eth" + std::to_string(device);
  run_in(switch_, "ip link add " + port(host, device) + " type veth peer name " + name + " netns " +
                      std::to_string(hosts_[static_cast<std::size_t>(host)]));
  connect(host, device);
  run_in(switch_, "ip link set " + port(host, device) + " up");
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
  run_in(switch_, "ip link set " + port(host, device) + " master switch" + std::to_string(device));
}

Placement Hosts::placement(int per_host) const {
  const auto host_of = [this, per_host](int rank) { return hosts_.at(static_cast<std::size_t>(rank / per_host)); };
  // A process cannot change its PID namespace, only that of its children.
  return {.before_fork = [=](int rank) { enter(host_of(rank), "pid"); },
          .after_fork = [] { enter(getpid(), "pid"); },
          .in_rank = [=](int rank) { enter_all(host_of(rank)); }};
}

void Hosts::run(int host, const std::string& command) const {
  run_in(hosts_.at(static_cast<std::size_t>(host)), command);
}

void Hosts::run_in(pid_t process, const std::string& command) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) fail("hosts: fork");
  if (child == 0) {
    try {
      enter_all(process);
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
    return "no hosts out of namespaces (CAP_SYS_ADMIN, and `ip` of iproute2): " + std::string(error.what());
  }
}

bool Hosts::are_possible() {
  const std::string why = why_not();
  if (!why.empty()) std::printf("skipped: %s\n", why.c_str());
  return why.empty();
}

}  // namespace ddprun::testing
