#include "comm/single_process_backend.hpp"

#include <atomic>
#include <cstring>

#include "base/error.hpp"
#include "comm/call.hpp"
#include "comm/pages.hpp"

namespace ddprun::comm {
namespace {

class SingleProcessBackend : public CallBackend {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& name() const override { return name_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  void abort() noexcept override { aborted_ = true; }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return allocate_pages(bytes); }

 protected:
  RequestPtr start(const Call& call) override {
    if (aborted_) throw Error(ExitCode::peer, prefix(call) + "aborted");
    const bool in_place = call.send == nullptr || call.send == call.recv;
    if (!in_place && call.count > 0) {
      if (call.memory == Memory::cuda) throw Error(ExitCode::plugin, prefix(call) + "CUDA memory must be in place");
      std::memcpy(call.recv, call.send, call.count * size_of(call.dtype));
    }
    return finished({"identity", "memory"});
  }

 private:
  static constexpr uint32_t kAll = ~0U;
  std::string name_ = "single-process";
  Capabilities capabilities_{.host = true,
                             .cuda = true,
                             .blocking = true,
                             .stream_ordered = true,
                             .capture = true,
                             .alloc = false,
                             .alloc_memory = Memory::host,
                             .algorithms = {{"identity", kAll, kAll}}};
  std::atomic<bool> aborted_ = false;
};

}  // namespace

std::unique_ptr<CommBackend> single_process_backend() {
  return std::make_unique<SingleProcessBackend>();
}

}  // namespace ddprun::comm
