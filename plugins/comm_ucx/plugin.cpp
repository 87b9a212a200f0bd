#include <dlfcn.h>
#include <ucp/api/ucp_version.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "choice.hpp"
#include "entry.hpp"

namespace {

using namespace ddprun;

#define DDPRUN_TEXT_OF(number) #number
#define DDPRUN_TEXT(number) DDPRUN_TEXT_OF(number)
constexpr char kLibrary[] = "ucx " DDPRUN_TEXT(UCP_API_MAJOR) "." DDPRUN_TEXT(UCP_API_MINOR);

constexpr CommPluginInfo kUcx = {"ucx", "0.1.0", kLibrary, DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_ALLOC,
                                 ucx_backend::kAlgorithms};

// Beside this plugin. Never unloaded, as UCX is not made for that.
std::unique_ptr<Communicator> make(const Host& host) {
  // While it is being loaded UCX rewrites functions of glibc, to hear of memory that is given back: 0.4 s, and no
  // transport needs it that works on memory of the host. Who wants it nevertheless sets the variable.
  constexpr int keep = 0;
  setenv("UCX_MEM_MMAP_HOOK_MODE", "none", keep);
  Dl_info self = {};
  dladdr(&kUcx, &self);
  const auto path = std::filesystem::path(self.dli_fname).replace_filename("libddprun_ucx_backend.so");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const entry = library == nullptr ? nullptr : dlsym(library, "ddprun_ucx_backend_make");
  if (entry == nullptr) throw Failure(DDPRUN_INTERNAL, dlerror());
  return std::unique_ptr<Communicator>(reinterpret_cast<decltype(&ddprun_ucx_backend_make)>(entry)(host));
}

class Ucx final : public Communicator {
 public:
  explicit Ucx(const Host& host) : backend_(make(host)) {}

  Request& allreduce(const ddprun_collective& call) override { return backend_->allreduce(call); }
  Request& broadcast(const ddprun_collective& call) override { return backend_->broadcast(call); }
  Request& allgather(const ddprun_collective& call) override { return backend_->allgather(call); }
  Request& reduce_scatter(const ddprun_collective& call) override { return backend_->reduce_scatter(call); }
  Request& barrier() override { return backend_->barrier(); }
  void abort() noexcept override { backend_->abort(); }
  void* alloc(uint64_t bytes) override { return backend_->alloc(bytes); }
  void free(void* memory) noexcept override { backend_->free(memory); }

 private:
  const std::unique_ptr<Communicator> backend_;
};

}  // namespace

DDPRUN_COMM_PLUGIN(Ucx, kUcx);
