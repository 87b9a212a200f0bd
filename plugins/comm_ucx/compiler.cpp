#include "gpu.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun::ucx_backend {
namespace {

// As in nvrtc.h.
using Result = int;
using Program = void*;
constexpr Result kSuccess = 0;

struct Nvrtc {
  Result (*create)(Program*, const char* text, const char* name, int headers, const char* const* texts,
                   const char* const* names) = nullptr;
  Result (*compile)(Program, int options, const char* const*) = nullptr;
  Result (*log_size)(Program, std::size_t*) = nullptr;
  Result (*log)(Program, char*) = nullptr;
  Result (*cubin_size)(Program, std::size_t*) = nullptr;
  Result (*cubin)(Program, char*) = nullptr;
  Result (*destroy)(Program*) = nullptr;
  const char* (*words)(Result) = nullptr;
};

[[noreturn]] void refuse(const std::string& why) {
  throw CommError(CommStatus::unsupported,
                  why +
                      "; ./ddprun installs it where there is an NVIDIA driver (the wheel nvidia-cuda-nvrtc); "
                      "comm.stage_through_host = true works without it");
}

// The NVRTC that this process has loaded or the loader finds; else the one in the folder of this build's CUDA runtime.
void* open_library() {
  constexpr char kLibrary[] = "libnvrtc.so.13";
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen(DDPRUN_NVRTC, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    refuse(std::string("no NVRTC, which compiles the kernel for a GPU: neither ") + kLibrary + " nor " + DDPRUN_NVRTC +
           " can be opened");
  }
  return library;
}

template <class Function>
void bind(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) refuse(std::string("NVRTC has no ") + name);
}

// NVRTC opens its libnvrtc-builtins by name, which the loader does not find in the folder of a wheel.
void load_builtins(const void* function_of_nvrtc) {
  Dl_info nvrtc = {};
  if (dladdr(function_of_nvrtc, &nvrtc) == 0) return;
  const std::filesystem::path folder = std::filesystem::path(nvrtc.dli_fname).parent_path();
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    const bool is_it = entry.path().filename().string().starts_with("libnvrtc-builtins.so.");
    if (is_it) dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

Nvrtc load() {
  void* const library = open_library();
  Nvrtc nvrtc;
  bind(library, nvrtc.create, "nvrtcCreateProgram");
  load_builtins(reinterpret_cast<const void*>(nvrtc.create));
  bind(library, nvrtc.compile, "nvrtcCompileProgram");
  bind(library, nvrtc.log_size, "nvrtcGetProgramLogSize");
  bind(library, nvrtc.log, "nvrtcGetProgramLog");
  bind(library, nvrtc.cubin_size, "nvrtcGetCUBINSize");
  bind(library, nvrtc.cubin, "nvrtcGetCUBIN");
  bind(library, nvrtc.destroy, "nvrtcDestroyProgram");
  bind(library, nvrtc.words, "nvrtcGetErrorString");
  return nvrtc;
}

// What the headers use of the standard library: NVRTC has none of it.
constexpr char kIntegers[] = R"(
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
)";
constexpr char kBit[] = R"(
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}
}
)";
constexpr const char* kNames[] = {"ddprun/plugin/comm_plugin.h",
                                  "ddprun/plugin/export.h",
                                  "ddprun/plugin/option_spec.h",
                                  "reduction/float16.hpp",
                                  "bit",
                                  "cstdint",
                                  "stdint.h"};
constexpr const char* kTexts[] = {kCommPluginText,           kExportText, kOptionSpecText, kFloat16Text, kBit,
                                  "#include \"stdint.h\"\n", kIntegers};
static_assert(std::size(kNames) == std::size(kTexts));

// The first line of the compiler's log.
std::string first_line(const Nvrtc& nvrtc, Program program) {
  std::size_t size = 0;
  if (nvrtc.log_size(program, &size) != kSuccess || size < 2) return "";
  std::string log(size, '\0');
  nvrtc.log(program, log.data());
  return ": " + log.substr(0, log.find_first_of(std::string_view("\n\0", 2)));
}

// One rounding for each operation, as on the host: no fused multiply-adds.
std::string compile(const Nvrtc& nvrtc, const std::string& architecture) {
  const auto check = [&](Result result, Program program) {
    if (result == kSuccess) return;
    refuse("NVRTC cannot compile for " + architecture + ": " + nvrtc.words(result) +
           (program != nullptr ? first_line(nvrtc, program) : ""));
  };
  Program program = nullptr;
  check(nvrtc.create(&program, kKernelText, "kernel.cu", std::size(kNames), kTexts, kNames), nullptr);
  const auto destroy = [&](void* one) { nvrtc.destroy(&one); };
  const std::unique_ptr<void, decltype(destroy)> owner(program, destroy);
  const std::string target = "--gpu-architecture=" + architecture;
  const char* const options[] = {target.c_str(), "--std=c++20", "--fmad=false", "--device-as-default-execution-space"};
  check(nvrtc.compile(program, std::size(options), options), program);
  std::size_t size = 0;
  check(nvrtc.cubin_size(program, &size), nullptr);
  std::string image(size, '\0');
  check(nvrtc.cubin(program, image.data()), nullptr);
  return image;
}

}  // namespace

const std::string& compiled_kernel(const std::string& architecture) {
  static std::mutex mutex;
  static auto& compiled = *new std::map<std::string, std::string>;
  const std::lock_guard lock(mutex);
  auto found = compiled.find(architecture);
  if (found == compiled.end()) {
    static const Nvrtc nvrtc = load();
    found = compiled.emplace(architecture, compile(nvrtc, architecture)).first;
  }
  return found->second;
}

}  // namespace ddprun::ucx_backend
