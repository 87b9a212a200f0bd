// doctor: examines a host, and the network between hosts. One part collects facts, one judges them by rules, one
// prints. Torch-free. This file: what the doctor knows about a host before it judges. Plain values; what the system
// does not report is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/plugin/network_interface.hpp"
#include "plugin/registry.hpp"

namespace ddprun::doctor {

struct Plugin {
  std::string kind;  // "comm", "model", "dataset"
  std::string name;
  std::string path;
  std::string version;
  std::string library;  // "UCX 1.22.0"; of a model its Torch
  std::string error;    // why it was refused, otherwise ""
};

struct Cores {
  int64_t online = 0;            // logical CPUs of the machine
  int64_t usable = 0;            // of these, in this process's affinity mask
  int64_t threads_per_core = 1;  // more than 1: simultaneous multithreading (SMT)
  std::string usable_list;       // "0-3,8"
};

struct Memory {
  std::optional<int64_t> total, available;  // bytes
};

// Of the cgroups that hold this process, version 1 or 2: the smallest limit of the group and those above it.
struct GroupLimits {
  std::optional<double> cpus;                    // CPU time
  std::optional<int64_t> memory, memory_in_use;  // bytes; in_use: of the group with the limit
  std::optional<int64_t> processes;
};

struct NumaNode {
  int number = 0;
  std::string cpus;               // "0-15"
  std::optional<int64_t> memory;  // bytes
  bool usable = false;            // the affinity mask has one of its CPUs
};

struct Gpu {
  std::string name, bus_id;
  int64_t memory = 0;             // bytes
  std::optional<int64_t> in_use;  // bytes, by all processes, from NVML
};

struct Gpus {
  bool driver = false;         // the kernel driver is installed
  std::string driver_version;  // "580.65.06"
  std::string cuda;            // what the driver supports: "13.0"
  std::vector<Gpu> list;
  std::string error;    // why there is no list
  bool hidden = false;  // CUDA_VISIBLE_DEVICES is empty or -1
};

struct Interface : NetworkInterface {  // without its link-local addresses
  int64_t mtu = 0;                     // 0: not reported
  std::optional<int64_t> speed;        // Mbit/s, of the link
  bool default_route = false;
};

// A name, and the result of resolving it.
struct Resolved {
  std::string name;
  std::vector<std::string> addresses;  // numeric
  std::string error;                   // why there are none, otherwise ""
};

struct Network {
  std::vector<Interface> interfaces;
  std::vector<std::string> rdma_devices;  // "mlx5_0"
  Resolved host;                          // this host's own name
  std::optional<Resolved> master;         // MASTER_ADDR, if it is set
};

// A limit of the process. Absent: unlimited.
using Limit = std::optional<uint64_t>;

struct Space {
  std::string path;
  int64_t size = 0, free = 0;  // bytes
  std::string error;           // why no file can be written there, otherwise ""
};

struct Limits {
  std::optional<Limit> memlock;    // bytes; no value: not reported
  std::optional<Limit> files;      // open files
  std::optional<Limit> processes;  // of this user
  Space shm;                       // /dev/shm
  Space job_folder;                // where ddprun makes the folder of a job
};

struct Launcher {
  std::string description;  // "torchrun: rank 3 of 8"; "" if none started this process
  std::string error;        // contradicting variables
};

using Variables = std::vector<std::pair<std::string, std::string>>;

struct Facts {
  std::string hostname;
  std::vector<std::string> plugin_folders;
  std::vector<Plugin> plugins;
  Cores cores;
  Memory memory;
  GroupLimits group;
  std::vector<NumaNode> numa;
  Gpus gpus;
  Network network;
  Limits limits;
  Variables variables;  // that change communication, sorted by name
  Launcher launcher;
};

// `root` is put before every path in /proc, /sys, /dev and /etc, so that a test can use a folder of its files; "" is
// the real system. Only collect() throws.

// Everything. Loads plugins and CUDA in child processes, so call it while there is only one thread. May wait half a
// minute for a plugin, a GPU driver or a name server that does not answer.
Facts collect(const std::string& root, const plugin::Registry& registry);

Cores cores(const std::string& root);
Memory memory(const std::string& root);
GroupLimits group_limits(const std::string& root);
std::vector<NumaNode> numa(const std::string& root, const Cores& cores);
std::string gpu_driver(const std::string& root);  // its version; "": none
Limits limits(const std::string& root, const std::string& job_folder);
std::vector<std::string> names_in(const std::string& folder);  // sorted; none if it cannot be read
// Those of this network namespace. Speed and MTU come from files below `root`.
std::vector<Interface> interfaces(const std::string& root);
void read_links(const std::string& root, std::vector<Interface>& interfaces);

std::vector<Plugin> plugins(const plugin::Registry& registry);
Gpus gpus();  // without the driver's version
// The addresses of a name. Waits at most 10 s.
Resolved resolve(const std::string& name);
// The variables in `environment` (as environ) that change communication, sorted by name.
Variables variables(const char* const* environment);
Launcher launcher();

// The CPUs of a list such as "0-3,8"; empty if it cannot be read.
std::vector<int> cpu_list(const std::string& text);

}  // namespace ddprun::doctor
