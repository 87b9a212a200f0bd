#include "comm/plugin_handle.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "plugin/call.hpp"
#include "plugin/options.hpp"

namespace ddprun::comm {
namespace {

static_assert(sizeof(std::atomic<int32_t>) == sizeof(int32_t) && std::atomic<int32_t>::is_always_lock_free,
              "plugins read the abort flag as an int32_t");

// The communicators of each plugin that has a `finish`, in this process.
std::mutex live_mutex;
std::map<void (*)(), int> live;

void count_live(const ddprun_comm_plugin& plugin, int more) {
  if (plugin.struct_size <= offsetof(ddprun_comm_plugin, finish) || plugin.finish == nullptr) return;  // it is older
  const std::lock_guard lock(live_mutex);
  live[plugin.finish] += more;
}

constexpr const char* kSilent = "the plugin does not say why";

// A peer that is lost while the ranks join is one that did not find the others.
ExitCode code_of_join(CommStatus status) {
  const ExitCode code = exit_code_of(status);
  return code == ExitCode::peer ? ExitCode::rendezvous : code;
}

}  // namespace

uint32_t table_milliseconds(std::chrono::milliseconds time) {
  constexpr int64_t longest = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp<int64_t>(time.count(), 0, longest));
}

PluginHandle::PluginHandle(const ddprun_comm_plugin& plugin, const JoinOptions& options)
    : table_(plugin),
      name_(plugin.name),
      abort_flag_(options.abort_flag ? options.abort_flag : std::make_shared<std::atomic<int32_t>>(0)) {
  create(options);
  count_live(table_, 1);
}

PluginHandle::~PluginHandle() {
  table_.destroy(handle_);
  count_live(table_, -1);
}

void finish_plugins() {
  const std::lock_guard lock(live_mutex);
  for (const auto& [finish, communicators] : std::exchange(live, {})) {
    if (communicators == 0) finish();
  }
}

void PluginHandle::create(const JoinOptions& options) {
  std::vector<ddprun_comm_option> table;
  for (const auto& [key, value] : options.options) table.push_back({key.c_str(), value.c_str()});
  std::array<char, 1024> error{};
  joining_ = &options;
  const ddprun_comm_host host{.struct_size = sizeof(ddprun_comm_host),
                              .rank = options.rank,
                              .size = options.size,
                              .device = options.device,
                              .deadline_ms = table_milliseconds(options.deadline),
                              .deterministic = options.deterministic ? 1 : 0,
                              .algorithm = options.algorithm.c_str(),
                              .options = table.data(),
                              .option_count = static_cast<uint32_t>(table.size()),
                              .error_size = static_cast<uint32_t>(error.size()),
                              .error = error.data(),
                              .context = this,
                              .abort_flag = reinterpret_cast<const int32_t*>(abort_flag_.get()),
                              .log = &PluginHandle::log,
                              .allgather = &PluginHandle::allgather,
                              .address = options.address.c_str()};
  const std::string where = name_ + ": rank " + std::to_string(options.rank) + ": joining " +
                            std::to_string(options.size) + (options.size == 1 ? " rank: " : " ranks: ");
  if (const auto errors = plugin::option_errors(table_, options.options); !errors.empty()) {
    const OptionError& wrong = errors.front();
    throw CommError(CommStatus::invalid, code_of_join(CommStatus::invalid),
                    where + name_of(CommStatus::invalid) + ": comm.options." + wrong.name + " = \"" +
                        options.options.at(wrong.name) + "\": " + wrong.reason);
  }
  const ddprun_status status = plugin::call_plugin(where, [&] { return table_.create(&host, &handle_); });
  joining_ = nullptr;
  if (status == DDPRUN_OK && handle_ != nullptr) return;
  // The first cause, not its echo in the plugin.
  if (allgather_failure_) std::rethrow_exception(allgather_failure_);
  error.back() = '\0';
  if (status == DDPRUN_OK) {
    throw CommError(CommStatus::internal, ExitCode::plugin, where + "the plugin said ok, but gave no communicator");
  }
  const std::string why = error.front() != '\0' ? error.data() : kSilent;
  const auto what = static_cast<CommStatus>(status);
  throw CommError(what, code_of_join(what), where + name_of(what) + ": " + why);
}

void PluginHandle::log(void* context, int32_t level, const char* message) {
  const auto& self = *static_cast<const PluginHandle*>(context);
  const std::string text = self.name_ + ": " + message;
  switch (level) {
    case DDPRUN_LOG_DEBUG: return log::debug(text);
    case DDPRUN_LOG_INFO: return log::info(text);
    case DDPRUN_LOG_WARNING: return log::warning(text);
    default: return log::error(text);
  }
}

ddprun_status PluginHandle::allgather(void* context, const void* send, uint64_t bytes, void* recv) {
  auto& self = *static_cast<PluginHandle*>(context);
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

void PluginHandle::abort() noexcept {
  abort_flag_->store(1);
  table_.abort(handle_);
}

std::string PluginHandle::error_text(ddprun_status status) const {
  const char* const text = table_.last_error(handle_);
  const bool silent = text == nullptr || *text == '\0';
  return name_of(static_cast<CommStatus>(status)) + ": " + (silent ? kSilent : text);
}

}  // namespace ddprun::comm
