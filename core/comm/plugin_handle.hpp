// A plugin's communicator and what must live as long as it does. Internal to plugin_backend.cpp.
#pragma once

#include <exception>
#include <string>

#include "comm/plugin_backend.hpp"

namespace ddprun::comm {

// As the table has a time: the nearest of 0 to 2^32 - 1.
uint32_t table_milliseconds(std::chrono::milliseconds time);

class PluginHandle {
 public:
  PluginHandle(const ddprun_comm_plugin& plugin, const JoinOptions& options);
  ~PluginHandle();
  PluginHandle(const PluginHandle&) = delete;
  PluginHandle& operator=(const PluginHandle&) = delete;

  const ddprun_comm_plugin& table() const { return table_; }
  ddprun_comm* get() const { return handle_; }

  // Any thread, any number of times.
  void abort() noexcept;

  // The plugin's text for its last failure, behind the status: "peer lost: connection reset by rank 2".
  std::string error_text(ddprun_status status) const;

 private:
  static void log(void* context, int32_t level, const char* message);
  static ddprun_status allgather(void* context, const void* send, uint64_t bytes, void* recv);
  void create(const JoinOptions& options);

  const ddprun_comm_plugin& table_;
  std::string name_;
  std::shared_ptr<std::atomic<int32_t>> abort_flag_;
  const JoinOptions* joining_ = nullptr;  // during create only
  std::exception_ptr allgather_failure_;  // what stopped the host's side of create
  ddprun_comm* handle_ = nullptr;
};

}  // namespace ddprun::comm
