// A plugin's communicator and what must live as long as it does. Internal to the adapter.
#pragma once

#include <exception>
#include <string>

#include "base/error.hpp"
#include "comm/plugin_backend.hpp"

namespace ddprun::comm {

// "timeout", "peer lost", ...
std::string name_of_status(ddprun_status status);

class Communicator {
 public:
  Communicator(const ddprun_comm_plugin& plugin, const JoinOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const ddprun_comm_plugin& plugin() const { return plugin_; }
  ddprun_comm* handle() const { return handle_; }
  const std::string& name() const { return name_; }

  // Any thread, any number of times.
  void abort() noexcept;

  // The plugin's text for its last failure, behind the status: "peer lost: connection reset by rank 2".
  std::string words(ddprun_status status) const;

 private:
  static void log(void* context, int32_t level, const char* message);
  static ddprun_status allgather(void* context, const void* send, uint64_t bytes, void* recv);
  void create(const JoinOptions& options);

  const ddprun_comm_plugin& plugin_;
  std::string name_;
  std::shared_ptr<std::atomic<int32_t>> abort_flag_;
  const JoinOptions* joining_ = nullptr;  // during create only
  std::exception_ptr allgather_failure_;  // what stopped the host's side of create
  ddprun_comm* handle_ = nullptr;
};

}  // namespace ddprun::comm
