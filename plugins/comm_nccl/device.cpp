#include "device.hpp"

#include <link.h>
#include <nccl.h>

#include <set>
#include <string_view>

#include "settings.hpp"

namespace ddprun::nccl_backend {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw CommError(CommStatus::unsupported, why);
}

// The loaded libraries of this process whose name begins with this text.
std::set<std::string> loaded(std::string_view name) {
  struct Search {
    std::string_view name;
    std::set<std::string> found;
  } search = {name, {}};
  const auto visit = [](dl_phdr_info* info, std::size_t, void* data) {
    auto& into = *static_cast<Search*>(data);
    const std::string_view path = info->dlpi_name;
    if (path.substr(path.rfind('/') + 1).starts_with(into.name)) into.found.emplace(path);
    return 0;
  };
  dl_iterate_phdr(visit, &search);
  return search.found;
}

// Two copies, such as Torch's and ours with another SONAME, would each have their own state.
std::string only_copy(const char* what, std::string_view name) {
  const auto found = loaded(name);
  if (found.size() > 1) {
    refuse(std::string("this process has two copies of ") + what + ", " + *found.begin() + " and " + *found.rbegin() +
           ": build comm_nccl with the one that Torch brings (DDPRUN_NCCL_DIR, DDPRUN_CUDA_DIR)");
  }
  return found.empty() ? "" : *found.begin();
}

std::string nccl_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string cuda_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void require_same_major(const char* what, const std::string& have, int have_major, const std::string& built,
                        int built_major, const std::string& path) {
  if (have_major == built_major) return;
  refuse(std::string(what) + " is " + have + " (" + path + "), comm_nccl was built with " + built +
         ": their major versions must be equal; build it again with that one");
}

// The driver version that the runtime needs. The runtime reports 0 if there is no driver.
int driver_version(int runtime) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    refuse(
        "no NVIDIA driver on this machine: NCCL needs one, and a GPU; on a CPU take launch.device = \"cpu\" with "
        "another backend");
  }
  if (driver / 1000 < runtime / 1000) {
    refuse("the NVIDIA driver is for CUDA " + cuda_text(driver) + ", the runtime is " + cuda_text(runtime) +
           ": install a newer driver");
  }
  return driver;
}

void require_device(int ordinal) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  const auto visible = variable("CUDA_VISIBLE_DEVICES");
  const std::string limit = visible ? " (CUDA_VISIBLE_DEVICES=" + *visible + ")" : "";
  if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) {
    refuse("an NVIDIA driver, but no device" + limit + ": NCCL needs a GPU");
  }
  if (result != cudaSuccess) refuse(std::string("CUDA cannot list its devices: ") + cudaGetErrorString(result));
  if (ordinal >= count) {
    refuse("no device " + std::to_string(ordinal) + limit + ": CUDA has " + std::to_string(count) +
           (count == 1 ? " device" : " devices") + ", and each rank needs one of its own");
  }
}

}  // namespace

Device find_device(const Host& host) {
  const std::string nccl_path = only_copy("NCCL", "libnccl.so");
  const std::string cuda_path = only_copy("the CUDA runtime", "libcudart.so");
  int nccl = 0;
  int runtime = 0;
  check("NCCL's version", ncclGetVersion(&nccl));
  check("the CUDA runtime's version", cudaRuntimeGetVersion(&runtime));
  require_same_major("NCCL", nccl_text(nccl), nccl / 10000, nccl_text(NCCL_VERSION_CODE), NCCL_MAJOR, nccl_path);
  require_same_major("the CUDA runtime", cuda_text(runtime), runtime / 1000, cuda_text(CUDART_VERSION),
                     CUDART_VERSION / 1000, cuda_path);
  const int driver = driver_version(runtime);
  require_device(host.device());

  char bus[32] = "";
  check("the device's address", cudaDeviceGetPCIBusId(bus, sizeof bus, host.device()));
  Device device = {host.device(), bus, ""};
  device.versions = "NCCL " + nccl_text(nccl) + " (built with " + nccl_text(NCCL_VERSION_CODE) + ", " + nccl_path +
                    "), CUDA runtime " + cuda_text(runtime) + " (built with " + cuda_text(CUDART_VERSION) +
                    "), driver for CUDA " + cuda_text(driver) + ", device " + std::to_string(device.ordinal) + " at " +
                    device.bus;
  return device;
}

OnDevice::OnDevice(int ordinal) noexcept : ordinal_(ordinal) {
  if (cudaGetDevice(&before_) != cudaSuccess) before_ = ordinal;
  if (before_ != ordinal_) cudaSetDevice(ordinal_);
}

OnDevice::~OnDevice() {
  if (before_ != ordinal_) cudaSetDevice(before_);
}

}  // namespace ddprun::nccl_backend
