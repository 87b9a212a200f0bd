#include <dlfcn.h>
#include <nccl.h>

#include <filesystem>
#include <memory>
#include <string>

#include "algorithms.hpp"
#include "entry.hpp"

namespace {

using namespace ddprun;

#define DDPRUN_TEXT_OF(number) #number
#define DDPRUN_TEXT(number) DDPRUN_TEXT_OF(number)
constexpr char kLibrary[] = "nccl " DDPRUN_TEXT(NCCL_MAJOR) "." DDPRUN_TEXT(NCCL_MINOR) "." DDPRUN_TEXT(NCCL_PATCH);

constexpr CommPluginInfo kNccl = {"nccl", "0.1.0", kLibrary,
                                  DDPRUN_CAP_CUDA | DDPRUN_CAP_STREAM_ORDERED | DDPRUN_CAP_ALLOC,
                                  nccl_backend::kAlgorithms};

// Beside this plugin. Never unloaded, as NCCL's threads outlive a communicator.
std::unique_ptr<Communicator> make(const Host& host) {
  Dl_info self = {};
  dladdr(&kNccl, &self);
  const auto path = std::filesystem::path(self.dli_fname).replace_filename("libddprun_nccl_backend.so");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const entry = library == nullptr ? nullptr : dlsym(library, "ddprun_nccl_backend_make");
  if (entry == nullptr) {
    throw Failure(DDPRUN_UNSUPPORTED,
                  std::string("a library is missing: ") + dlerror() +
                      "; it was there when comm_nccl was built: install " +
                      "it again, name its folder in LD_LIBRARY_PATH, or build again with DDPRUN_NCCL_DIR and " +
                      "DDPRUN_CUDA_DIR");
  }
  return std::unique_ptr<Communicator>(reinterpret_cast<decltype(&ddprun_nccl_backend_make)>(entry)(host));
}

class Nccl final : public Communicator {
 public:
  explicit Nccl(const Host& host) : backend_(make(host)) {}

  Request& allreduce(const ddprun_collective& call) override { return backend_->allreduce(call); }
  Request& broadcast(const ddprun_collective& call) override { return backend_->broadcast(call); }
  Request& allgather(const ddprun_collective& call) override { return backend_->allgather(call); }
  Request& reduce_scatter(const ddprun_collective& call) override { return backend_->reduce_scatter(call); }
  Request& barrier() override { return backend_->barrier(); }
  void abort() noexcept override { backend_->abort(); }
  bool test(Request& request) override { return backend_->test(request); }
  void wait(Request& request, std::chrono::milliseconds timeout) override { backend_->wait(request, timeout); }
  void* alloc(uint64_t bytes) override { return backend_->alloc(bytes); }
  void free(void* memory) noexcept override { backend_->free(memory); }

 private:
  const std::unique_ptr<Communicator> backend_;
};

}  // namespace

DDPRUN_COMM_PLUGIN(Nccl, kNccl);
