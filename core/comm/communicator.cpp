#include "comm/communicator.hpp"

#include <array>
#include <cstring>

#include "base/log.hpp"
#include "plugin/call.hpp"

namespace ddprun::comm {
namespace {

static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t) && std::atomic<int32_t>::is_always_lock_free,
              "plugins read the abort flag as an int32_t");

ExitCode code_of_join(ddprun_status status) {
  switch (status) {
    case DDPRUN_INVALID:
    case DDPRUN_UNSUPPORTED: return ExitCode::plugin;
    case DDPRUN_TIMEOUT:
    case DDPRUN_PEER_LOST:
    case DDPRUN_ABORTED:
    case DDPRUN_MISMATCH: return ExitCode::rendezvous;
    default: return ExitCode::failure;
  }
}

std::vector<ddprun_comm_option> as_table(const std::map<std::string, std::string>& options) {
  std::vector<ddprun_comm_option> table;
  for (const auto& [key, value] : options) table.push_back({key.c_str(), value.c_str()});
  return table;
}

}  // namespace

std::string name_of_status(ddprun_status status) {
  switch (status) {
    case DDPRUN_OK: return "ok";
    case DDPRUN_INVALID: return "invalid";
    case DDPRUN_UNSUPPORTED: return "unsupported";
    case DDPRUN_TIMEOUT: return "timeout";
    case DDPRUN_PEER_LOST: return "peer lost";
    case DDPRUN_ABORTED: return "aborted";
    case DDPRUN_MISMATCH: return "mismatch";
    case DDPRUN_NO_MEMORY: return "out of memory";
    case DDPRUN_INTERNAL: return "internal error";
    default: return "unknown status " + std::to_string(status);
  }
}

Communicator::Communicator(const ddprun_comm_plugin& plugin, const JoinOptions& options)
    : plugin_(plugin),
      name_(plugin.name),
      abort_flag_(options.abort_flag ? options.abort_flag : std::make_shared<std::atomic<int32_t>>(0)) {
  create(options);
}

Communicator::~Communicator() {
  plugin_.destroy(handle_);
}

void Communicator::create(const JoinOptions& options) {
  const auto table = as_table(options.options);
  std::array<char, 1024> error{};
  joining_ = &options;
  const ddprun_comm_host host{.struct_size = sizeof(ddprun_comm_host),
                              .rank = options.rank,
                              .size = options.size,
                              .device = options.device,
                              .deadline_ms = static_cast<uint32_t>(options.deadline.count()),
                              .deterministic = options.deterministic ? 1 : 0,
                              .algorithm = options.algorithm.c_str(),
                              .options = table.data(),
                              .option_count = static_cast<uint32_t>(table.size()),
                              .error_size = static_cast<uint32_t>(error.size()),
                              .error = error.data(),
                              .context = this,
                              .abort_flag = reinterpret_cast<const int32_t*>(abort_flag_.get()),
                              .log = &Communicator::log,
                              .allgather = &Communicator::allgather};
  const std::string where = name_ + ": rank " + std::to_string(options.rank) + ": joining " +
                            std::to_string(options.size) + (options.size == 1 ? " rank: " : " ranks: ");
  const ddprun_status status = plugin::call_plugin(where, [&] { return plugin_.create(&host, &handle_); });
  joining_ = nullptr;
  if (status == DDPRUN_OK && handle_ != nullptr) return;
  // The first cause, not its echo in the plugin.
  if (allgather_failure_) std::rethrow_exception(allgather_failure_);
  error.back() = '\0';
  if (status == DDPRUN_OK) throw Error(ExitCode::plugin, where + "the plugin said ok, but gave no communicator");
  throw Error(code_of_join(status), where + name_of_status(status) + ": " +
                                        (error.front() != '\0' ? error.data() : "the plugin does not say why"));
}

void Communicator::log(void* context, int32_t level, const char* message) {
  const auto& self = *static_cast<const Communicator*>(context);
  const std::string text = self.name_ + ": " + message;
  switch (level) {
    case DDPRUN_LOG_DEBUG: return log::debug(text);
    case DDPRUN_LOG_INFO: return log::info(text);
    case DDPRUN_LOG_WARNING: return log::warning(text);
    default: return log::error(text);
  }
}

ddprun_status Communicator::allgather(void* context, const void* send, uint64_t bytes, void* recv) {
  auto& self = *static_cast<Communicator*>(context);
  if (self.joining_ == nullptr) return DDPRUN_INVALID;  // the contract: during create only
  try {
    const auto& options = *self.joining_;
    const auto values = options.allgather(std::string_view(static_cast<const char*>(send), bytes));
    if (values.size() != static_cast<std::size_t>(options.size)) {
      throw Error(ExitCode::rendezvous, self.name_ + ": " + std::to_string(values.size()) + " of " +
                                            std::to_string(options.size) + " ranks answered");
    }
    for (std::size_t rank = 0; rank < values.size(); ++rank) {
      if (values[rank].size() != bytes) {
        throw Error(ExitCode::rendezvous, self.name_ + ": rank " + std::to_string(rank) + " sent " +
                                              std::to_string(values[rank].size()) + " bytes to join, rank " +
                                              std::to_string(options.rank) + " sent " + std::to_string(bytes) +
                                              " bytes; the ranks run different plugins or options");
      }
      if (bytes > 0) std::memcpy(static_cast<char*>(recv) + rank * bytes, values[rank].data(), bytes);
    }
    return DDPRUN_OK;
  } catch (...) {
    self.allgather_failure_ = std::current_exception();
    return DDPRUN_PEER_LOST;
  }
}

void Communicator::abort() noexcept {
  abort_flag_->store(1);
  plugin_.abort(handle_);
}

std::string Communicator::words(ddprun_status status) const {
  const char* const text = plugin_.last_error(handle_);
  const bool silent = text == nullptr || *text == '\0';
  return name_of_status(status) + ": " + (silent ? "the plugin does not say why" : text);
}

}  // namespace ddprun::comm
