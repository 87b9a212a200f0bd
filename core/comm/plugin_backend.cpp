#include "comm/plugin_backend.hpp"

#include <algorithm>

#include "comm/plugin_handle.hpp"
#include "ddprun/plugin/detail/comm_convert.hpp"
#include "plugin/call.hpp"

namespace ddprun::comm {
namespace {

const char* text_of(const char* text) {
  return text != nullptr ? text : "";
}

Capabilities chosen_by(const JoinOptions& options, Capabilities capabilities) {
  capabilities.cuda = capabilities.cuda && options.device >= 0;
  std::erase_if(capabilities.algorithms,
                [&](const AlgorithmInfo& one) { return options.algorithm != "auto" && options.algorithm != one.name; });
  return capabilities;
}

}  // namespace

PluginBackend::PluginBackend(const ddprun_comm_plugin& plugin, const JoinOptions& options)
    : CommBackend(options.rank, options.size, plugin.name + options.whose, chosen_by(options, capabilities_of(plugin))),
      table_(plugin),
      algorithm_(options.algorithm),
      by_allreduce_(taken_by(capabilities())),
      by_reduce_scatter_(taken_by(capabilities_of(plugin))),
      deadline_(options.deadline),
      handle_(std::make_shared<PluginHandle>(plugin, options)) {}

PluginBackend::Taken PluginBackend::taken_by(const Capabilities& capabilities) {
  Taken taken{};
  for (const AlgorithmInfo& one : capabilities.algorithms) {
    for (std::size_t dtype = 0; dtype < kDTypeCount; ++dtype) {
      for (std::size_t op = 0; op < kOpCount; ++op) {
        if ((one.dtypes & bits(dtype)) != 0 && (one.ops & bits(op)) != 0) taken[dtype][op] |= one.memory;
      }
    }
  }
  return taken;
}

// The host refuses what the plugin has not declared, so that no plugin can serve it with something else.
void PluginBackend::check_declared(const CallShape& shape) const {
  const auto refuse = [&](const std::string& why) {
    throw CommError(CommStatus::unsupported, prefix(*this, shape) + "unsupported: " + why);
  };
  if (shape.kind == Kind::reduce_scatter && !capabilities().reduce_scatter) refuse(name() + " has no reduce_scatter");
  if (shape.kind == Kind::exchange && !capabilities().exchange) refuse(name() + " has no exchange");
  if (!reduces(shape.kind)) return;
  const Taken& taken = shape.kind == Kind::allreduce ? by_allreduce_ : by_reduce_scatter_;
  const uint32_t memory = taken[static_cast<std::size_t>(shape.dtype)][static_cast<std::size_t>(shape.op)];
  if ((memory & bits(shape.memory)) != 0) return;
  const bool chosen = shape.kind == Kind::allreduce && algorithm_ != "auto";
  refuse((chosen ? "algorithm \"" + algorithm_ + '"' : "no algorithm") + " of " + name() + " takes " +
         name_of(shape.op) + " of " + name_of(shape.dtype));
}

void PluginBackend::compare(const CallShape& mine) {
  if (disagreed_) {
    throw CommError(CommStatus::mismatch, prefix(*this, mine) + "the ranks have disagreed or lost one another before");
  }
  disagreed_ = comparing_ = true;  // until all have come and agreed
  const auto end = [](bool* comparing) { *comparing = false; };
  const std::unique_ptr<bool, decltype(end)> until_return(&comparing_, end);
  std::span<const CallShape> shapes;
  try {
    shapes = exchange_->exchange(mine, deadline_);
  } catch (const CommError& error) {
    throw CommError(error.status(), prefix(*this, mine) + error.what());
  }
  if (std::any_of(shapes.begin(), shapes.end(), [&](const CallShape& shape) { return shape != mine; })) {
    throw CommError(CommStatus::mismatch, where("mismatch: ") + describe_disagreement(shapes));
  }
  disagreed_ = false;
}

void PluginBackend::fail(const std::string& where, ddprun_status status) const {
  throw CommError(static_cast<CommStatus>(status), where + handle_->error_text(status));
}

PluginBackend::Started& PluginBackend::take_request() {
  if (free_.empty()) {
    requests_.push_back(std::make_unique<Started>());
    free_.reserve(requests_.size());  // giving one back must not fail
    return *requests_.back();
  }
  Started& started = *free_.back();
  free_.pop_back();
  return started;
}

template <class Function, class Call>
Work PluginBackend::start(Kind kind, Function* function, const Call& call) {
  Started& started = take_request();
  const CallShape& shape = started.shape = shape_of(kind, comparing_ ? calls_ : ++calls_, call);
  try {
    if (!comparing_) recorder_->start(shape);
    check(*this, shape, call);
    check_declared(shape);
    if (exchange_ != nullptr && !comparing_) compare(shape);
    started.handle = call_table(function, shape, call);
  } catch (...) {
    record_end(shape, CallState::failed);
    free_.push_back(&started);
    throw;
  }
  return {*this, started};
}

template Work PluginBackend::start(Kind, ddprun_collective_fn, const Collective&);
template Work PluginBackend::start(Kind, decltype(ddprun_comm_plugin::exchange), const Exchange&);

// Text about a call is made only where something went wrong with it: small collectives take microseconds.
ddprun_request* PluginBackend::call_table(auto* function, const CallShape& shape, const auto& call) {
  const auto given = detail::to_table(call);
  const auto where = [&] { return prefix(*this, shape); };
  ddprun_request* request = nullptr;
  const auto status = plugin::call_plugin(where, [&] { return function(handle_->get(), &given, &request); });
  if (status != DDPRUN_OK) fail(where(), status);
  if (request == nullptr) {
    throw CommError(CommStatus::internal, ExitCode::plugin, where() + "the plugin said ok, but gave no request");
  }
  return request;
}

bool PluginBackend::test(Request& request) {
  if (table_.test == nullptr) return true;
  const auto& started = static_cast<const Started&>(request);
  const auto where = [&] { return prefix(*this, started.shape); };
  int32_t done = 0;
  const auto status = plugin::call_plugin(where, [&] { return table_.test(handle_->get(), started.handle, &done); });
  if (status != DDPRUN_OK) fail(where(), status);
  return done != 0;
}

ExecutionInfo PluginBackend::wait(Request& request, std::chrono::milliseconds timeout) {
  auto& started = static_cast<Started&>(request);
  free_.push_back(&started);  // nobody takes it before this returns
  const auto where = [&] { return prefix(*this, started.shape); };
  ddprun_comm_execution execution{sizeof execution, 0, nullptr, nullptr};
  const auto status = plugin::call_plugin(
      where, [&] { return table_.wait(handle_->get(), started.handle, table_milliseconds(timeout), &execution); });
  const CallState ended = capabilities().stream_ordered ? CallState::queued : CallState::finished;
  record_end(started.shape, status == DDPRUN_OK ? ended : CallState::failed);
  if (status != DDPRUN_OK) fail(where(), status);
  return {text_of(execution.algorithm), text_of(execution.transport)};
}

void PluginBackend::async_error() {
  if (table_.async_error == nullptr) return;  // it fails in its calls
  const auto where = [this] { return this->where(); };
  const auto status = plugin::call_plugin(where, [&] { return table_.async_error(handle_->get()); });
  if (status != DDPRUN_OK) fail(where(), status);
}

void PluginBackend::abort() noexcept {
  if (exchange_ != nullptr) exchange_->abort();
  handle_->abort();
}

std::shared_ptr<void> PluginBackend::allocate(std::size_t bytes) {
  if (!capabilities().alloc) return CommBackend::allocate(bytes);
  const auto where = [&] { return this->where("allocating " + std::to_string(bytes) + " bytes: "); };
  void* memory = nullptr;
  const auto status = plugin::call_plugin(where, [&] { return table_.alloc(handle_->get(), bytes, &memory); });
  if (status != DDPRUN_OK) fail(where(), status);
  return {memory, [handle = handle_](void* owned) { handle->table().free(handle->get(), owned); }};
}

std::unique_ptr<PluginBackend> join(const ddprun_comm_plugin& plugin, const JoinOptions& options) {
  const auto require = [&](bool holds, const char* why) {
    if (!holds) throw CommError(CommStatus::invalid, std::string(plugin.name) + ": joining: " + why);
  };
  require(options.size >= 1 && options.rank >= 0 && options.rank < options.size, "rank is not within 0 .. size - 1");
  require(options.deadline.count() > 0, "the deadline is not positive");
  require(options.allgather != nullptr, "allgather is not set");
  const Memory memory = options.device < 0 ? Memory::host : Memory::cuda;
  const Capabilities capabilities = capabilities_of(plugin);
  if (!(memory == Memory::host ? capabilities.host : capabilities.cuda)) {
    throw CommError(CommStatus::unsupported, std::string(plugin.name) + ": this backend takes " +
                                                 (memory == Memory::host ? "CUDA" : "host") + " memory only");
  }
  if (const auto error = algorithm_error(plugin, options.algorithm, memory)) {
    throw CommError(CommStatus::unsupported,
                    std::string(plugin.name) + ": comm.algorithm = \"" + options.algorithm + "\": " + *error);
  }
  return std::make_unique<PluginBackend>(plugin, options);
}

}  // namespace ddprun::comm
