#include "comm/plugin_backend.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "comm/call.hpp"
#include "comm/communicator.hpp"
#include "comm/pages.hpp"
#include "ddprun/plugin/words.hpp"
#include "plugin/call.hpp"

namespace ddprun::comm {
namespace {

using CommunicatorPtr = std::shared_ptr<Communicator>;

ExitCode code_of(ddprun_status status) {
  switch (status) {
    case DDPRUN_INVALID:
    case DDPRUN_UNSUPPORTED: return ExitCode::plugin;
    case DDPRUN_TIMEOUT:
    case DDPRUN_PEER_LOST:
    case DDPRUN_ABORTED:
    case DDPRUN_MISMATCH: return ExitCode::peer;
    default: return ExitCode::failure;
  }
}

[[noreturn]] void fail(const Communicator& communicator, const std::string& where, ddprun_status status) {
  throw Error(code_of(status), where + communicator.words(status));
}

uint32_t milliseconds(std::chrono::milliseconds time) {
  constexpr int64_t kLongest = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp<int64_t>(time.count(), 0, kLongest));
}

ddprun_collective collective_of(const Call& call) {
  return {.struct_size = sizeof(ddprun_collective),
          .dtype = static_cast<int32_t>(call.dtype),
          .op = static_cast<int32_t>(call.op),
          .root = call.root,
          .memory = static_cast<int32_t>(call.memory),
          .reserved = 0,
          .send = call.send,
          .recv = call.recv,
          .count = call.count,
          .stream = call.stream};
}

std::string text_of(const char* text) {
  return text != nullptr ? text : "";
}

// The text about a call is made only where something went wrong with it: small collectives take microseconds.
class PluginRequest : public Request {
 public:
  PluginRequest(CommunicatorPtr communicator, int rank, const Call& call, ddprun_request* handle)
      : communicator_(std::move(communicator)), rank_(rank), call_(call), handle_(handle) {}
  // Waiting is what releases a request; one that is dropped after abort() ends at once.
  ~PluginRequest() override {
    if (handle_ != nullptr) communicator_->plugin().wait(communicator_->handle(), handle_, 0, nullptr);
  }
  PluginRequest(const PluginRequest&) = delete;
  PluginRequest& operator=(const PluginRequest&) = delete;

  bool test() override {
    const auto& plugin = communicator_->plugin();
    int32_t done = 0;
    const auto where = [this] { return this->where(); };
    const auto status =
        plugin::call_plugin(where, [&] { return plugin.test(communicator_->handle(), handle_, &done); });
    if (status != DDPRUN_OK) fail(*communicator_, where(), status);
    return done != 0;
  }

  Served wait(std::chrono::milliseconds timeout) override {
    const auto& plugin = communicator_->plugin();
    ddprun_comm_served served{};
    served.struct_size = sizeof(served);
    ddprun_request* const released = std::exchange(handle_, nullptr);
    const auto where = [this] { return this->where(); };
    const auto status = plugin::call_plugin(
        where, [&] { return plugin.wait(communicator_->handle(), released, milliseconds(timeout), &served); });
    if (status != DDPRUN_OK) fail(*communicator_, where(), status);
    return {text_of(served.algorithm), text_of(served.transport)};
  }

 private:
  std::string where() const { return prefix(communicator_->name(), rank_, call_); }

  CommunicatorPtr communicator_;
  int rank_;
  Call call_;
  ddprun_request* handle_;
};

class PluginBackend : public CallBackend {
 public:
  PluginBackend(const ddprun_comm_plugin& plugin, const JoinOptions& options)
      : capabilities_(capabilities_of(plugin)),
        rank_(options.rank),
        size_(options.size),
        algorithm_(options.algorithm),
        communicator_(std::make_shared<Communicator>(plugin, options)) {
    if (options.device < 0) capabilities_.cuda = false;
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name() const override { return communicator_->name(); }
  const Capabilities& capabilities() const override { return capabilities_; }
  void throw_if_failed() override;
  void abort() noexcept override { communicator_->abort(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override;

 protected:
  RequestPtr start(const Call& call) override;

 private:
  ddprun_collective_fn function_of(Kind kind) const;
  void require_declared(const Call& call) const;

  Capabilities capabilities_;
  int rank_;
  int size_;
  std::string algorithm_;
  CommunicatorPtr communicator_;
};

ddprun_collective_fn PluginBackend::function_of(Kind kind) const {
  const auto& plugin = communicator_->plugin();
  switch (kind) {
    case Kind::allreduce: return plugin.allreduce;
    case Kind::broadcast: return plugin.broadcast;
    case Kind::allgather: return plugin.allgather;
    case Kind::reduce_scatter: return plugin.reduce_scatter;
    case Kind::barrier: break;
  }
  return plugin.barrier;
}

// An allreduce that the asked-for algorithm (under auto: every one) has not declared is refused by the host, so that no
// plugin can serve it with something else.
void PluginBackend::require_declared(const Call& call) const {
  if (call.kind != Kind::allreduce) return;
  const uint32_t dtype = 1U << static_cast<uint32_t>(call.dtype);
  const uint32_t op = 1U << static_cast<uint32_t>(call.op);
  const auto serves = [&](const Algorithm& algorithm) {
    const bool chosen = algorithm_ == "auto" || algorithm.name == algorithm_;
    return chosen && (algorithm.dtypes & dtype) != 0 && (algorithm.ops & op) != 0 && algorithm.takes(call.memory);
  };
  if (std::any_of(capabilities_.algorithms.begin(), capabilities_.algorithms.end(), serves)) return;
  throw Error(ExitCode::plugin, prefix(call) + "unsupported: " +
                                    (algorithm_ == "auto" ? "no algorithm" : "algorithm \"" + algorithm_ + '"') +
                                    " of " + name() + " takes " + name_of(call.op) + " of " + name_of(call.dtype));
}

// By a collective of no elements, which has nobody to wait for.
void PluginBackend::throw_if_failed() {
  if (!capabilities_.stream_ordered) return;  // it fails in its calls
  Call nothing;
  nothing.kind = Kind::allreduce;
  nothing.dtype = DType::float32;
  nothing.memory = capabilities_.cuda ? Memory::cuda : Memory::host;
  nothing.recv = this;
  const ddprun_collective collective = collective_of(nothing);
  const auto& plugin = communicator_->plugin();
  const auto where = [this] { return name() + ": rank " + std::to_string(rank_) + ": "; };
  ddprun_request* request = nullptr;
  const auto status = plugin::call_plugin(where, [&] {
    const auto started = plugin.allreduce(communicator_->handle(), &collective, &request);
    return started == DDPRUN_OK ? plugin.wait(communicator_->handle(), request, 0, nullptr) : started;
  });
  if (status != DDPRUN_OK) fail(*communicator_, where(), status);
}

RequestPtr PluginBackend::start(const Call& call) {
  require_declared(call);
  const auto where = [&] { return prefix(call); };
  const ddprun_collective collective = collective_of(call);
  const auto function = function_of(call.kind);
  ddprun_request* request = nullptr;
  const auto status =
      plugin::call_plugin(where, [&] { return function(communicator_->handle(), &collective, &request); });
  if (status != DDPRUN_OK) fail(*communicator_, where(), status);
  if (request == nullptr) throw Error(ExitCode::plugin, where() + "the plugin said ok, but gave no request");
  return std::make_unique<PluginRequest>(communicator_, rank_, call, request);
}

std::shared_ptr<void> PluginBackend::allocate(std::size_t bytes) {
  if (!capabilities_.alloc) return allocate_pages(bytes);
  const auto& plugin = communicator_->plugin();
  const std::string where =
      name() + ": rank " + std::to_string(rank_) + ": allocating " + std::to_string(bytes) + " bytes: ";
  void* memory = nullptr;
  const auto status = plugin::call_plugin(where, [&] { return plugin.alloc(communicator_->handle(), bytes, &memory); });
  if (status != DDPRUN_OK) fail(*communicator_, where, status);
  return {memory,
          [communicator = communicator_](void* owned) { communicator->plugin().free(communicator->handle(), owned); }};
}

}  // namespace

Capabilities capabilities_of(const ddprun_comm_plugin& plugin) {
  const auto has = [&](uint64_t bit) { return (plugin.capabilities & bit) != 0; };
  Capabilities capabilities{.host = has(DDPRUN_CAP_HOST),
                            .cuda = has(DDPRUN_CAP_CUDA),
                            .blocking = has(DDPRUN_CAP_BLOCKING),
                            .stream_ordered = has(DDPRUN_CAP_STREAM_ORDERED),
                            .capture = has(DDPRUN_CAP_STREAM_ORDERED) && has(DDPRUN_CAP_CAPTURE),
                            .alloc = has(DDPRUN_CAP_ALLOC),
                            .alloc_memory = has(DDPRUN_CAP_HOST) ? Memory::host : Memory::cuda,
                            .algorithms = {}};
  // Steps by each entry's own size: a newer plugin's entries may be longer than ours.
  const auto* at = reinterpret_cast<const std::byte*>(plugin.algorithms);
  for (uint32_t i = 0; i < plugin.algorithm_count; ++i) {
    const auto& algorithm = *reinterpret_cast<const ddprun_comm_algorithm*>(at);
    capabilities.algorithms.push_back(
        {algorithm.name, algorithm.dtypes, algorithm.ops, algorithm.memory != 0 ? algorithm.memory : ~0U});
    at += algorithm.struct_size;
  }
  return capabilities;
}

std::optional<std::string> algorithm_error(const ddprun_comm_plugin& plugin, const std::string& algorithm,
                                           Memory memory) {
  std::vector<std::string> names{"auto"};
  std::string why;
  for (const auto& declared : capabilities_of(plugin).algorithms) {
    if (declared.takes(memory)) {
      names.push_back(declared.name);
    } else if (declared.name == algorithm) {
      why = memory == Memory::cuda ? "takes host memory only, and the buffers are on a GPU: "
                                   : "takes CUDA memory only, and the buffers are in the host's: ";
    }
  }
  if (std::find(names.begin(), names.end(), algorithm) != names.end()) return std::nullopt;
  return why + expected_one_of(algorithm, names);
}

std::optional<std::string> memory_error(const ddprun_comm_plugin& plugin, Memory memory, bool staged) {
  const Capabilities capabilities = capabilities_of(plugin);
  if (memory == Memory::host && !capabilities.host) {
    return "takes CUDA memory, and the tensors are on the CPU; set launch.device = \"cuda\", or take another backend";
  }
  if (memory == Memory::cuda && !capabilities.cuda && !staged) {
    return "takes host memory, and the tensors are on a GPU (launch.device); use \"nccl\", or let ddprun copy them "
           "through the host with comm.stage_through_host = true";
  }
  return std::nullopt;
}

Memory memory_given(const ddprun_comm_plugin& plugin, Memory memory, bool staged) {
  return staged && capabilities_of(plugin).host ? Memory::host : memory;
}

std::unique_ptr<CommBackend> join(const ddprun_comm_plugin& plugin, const JoinOptions& options) {
  const Memory memory = options.device < 0 ? Memory::host : Memory::cuda;
  if (const auto fault = algorithm_error(plugin, options.algorithm, memory)) {
    throw Error(ExitCode::plugin,
                std::string(plugin.name) + ": comm.algorithm = \"" + options.algorithm + "\": " + *fault);
  }
  return std::make_unique<PluginBackend>(plugin, options);
}

}  // namespace ddprun::comm
