// A fake CUDA-aware UCX: loaded before the real one (LD_PRELOAD, or linked), it reports support for CUDA memory, which
// is host memory on the fake GPU. It ends the process if a thread without a current GPU uses UCX although the process
// uses one: the real UCX would fail there.
#include <dlfcn.h>
#include <ucp/api/ucp.h>

#include <cstdio>
#include <cstdlib>

namespace {

void* required(void* in, const char* name) {
  void* const symbol = in == nullptr ? nullptr : dlsym(in, name);
  if (symbol != nullptr) return symbol;
  std::fprintf(stderr, "the fake CUDA-aware UCX finds no %s\n", name);
  std::abort();
}

void* library(const char* name) {
  return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

// Without a loaded driver, this process has used no GPU.
void require_current(const char* function) {
  void* const driver = library("libcuda.so.1");
  if (driver == nullptr) return;
  static auto* const without_current =
      reinterpret_cast<int (*)()>(required(driver, "ddprun_fake_cuda_without_current"));
  if (without_current() == 0) return;
  std::fprintf(stderr, "%s without a current GPU\n", function);
  std::abort();
}

template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(required(library("libucp.so.0"), name));
}

}  // namespace

// Calls UCX's real function of that name.
#define REAL(function, ...)                               \
  static auto* const behind = real(&function, #function); \
  require_current(#function);                             \
  return behind(__VA_ARGS__)

extern "C" {

ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t* answer) {
  static auto* const behind = real(&ucp_context_query, "ucp_context_query");
  const ucs_status_t status = behind(context, answer);
  if (std::getenv("DDPRUN_FAKE_UCX_WITHOUT_CUDA") != nullptr) return status;
  if ((answer->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) != 0) answer->memory_types |= 1u << UCS_MEMORY_TYPE_CUDA;
  return status;
}
ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t* wanted, ucp_worker_h* worker) {
  REAL(ucp_worker_create, context, wanted, worker);
}
void ucp_worker_destroy(ucp_worker_h worker) {
  REAL(ucp_worker_destroy, worker);
}
unsigned ucp_worker_progress(ucp_worker_h worker) {
  REAL(ucp_worker_progress, worker);
}
ucs_status_t ucp_worker_arm(ucp_worker_h worker) {
  REAL(ucp_worker_arm, worker);
}
ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h endpoint, const void* data, size_t count, ucp_tag_t tag,
                                  const ucp_request_param_t* how) {
  REAL(ucp_tag_send_nbx, endpoint, data, count, tag, how);
}
ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void* data, size_t count, ucp_tag_t tag, ucp_tag_t mask,
                                  const ucp_request_param_t* how) {
  REAL(ucp_tag_recv_nbx, worker, data, count, tag, mask, how);
}
}
