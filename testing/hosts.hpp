// Simulated hosts on this machine: each has namespaces, as a container has, and a network connects them. They are not
// visible from outside, and end with the object.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "testing/ranks.hpp"

namespace ddprun::testing {

// Each host has its own network, PID, IPC and mount namespaces, and its own /dev/shm. So processes of two hosts share
// no memory, and may have equal process numbers. The network devices of a host are "eth0", "eth1", ... A switch
// connects the devices with the same name.
class Hosts {
 public:
  // Needs CAP_SYS_ADMIN and iproute2's `ip`. One thread. Throws std::runtime_error.
  explicit Hosts(int count, int devices = 1);
  ~Hosts();  // ends all processes on the hosts
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  int count() const { return static_cast<int>(hosts_.size()); }
  std::string address(int host, int device = 0) const;

  // For run_ranks: rank r runs on host r / per_host.
  Placement placement(int per_host) const;

  // A command prefix: the command then runs in these namespaces of the host, in the working directory "/".
  std::vector<std::string> prefix(int host, const std::vector<std::string>& namespaces = {"--net", "--pid", "--ipc",
                                                                                          "--mount"}) const;

  // These may be called in a rank, too. They throw std::runtime_error.
  // Runs a shell command in the host's namespaces.
  void run(int host, const std::string& command) const;
  // Disconnects the device from the switch, or connects it again. The device stays up, and what the host sends is lost.
  void disconnect(int host, int device = 0) const;
  void connect(int host, int device = 0) const;

  // Why hosts cannot be made here; "" if they can.
  static std::string why_not();
  // For tests: false, with a printed reason, if hosts cannot be made.
  static bool are_possible();

 private:
  class Namespaces;

  void join(int host, int device) const;
  static void run_in(const Namespaces& namespaces, const std::string& command);
  static std::string port(int host, int device);

  std::unique_ptr<Namespaces> switch_;
  std::vector<std::unique_ptr<Namespaces>> hosts_;
};

}  // namespace ddprun::testing
