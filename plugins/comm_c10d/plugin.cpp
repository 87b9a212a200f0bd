// Starts a Python in this process. There, python/ddprun/as_plugin.py calls torch.distributed.
#include <dlfcn.h>

#include <clocale>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "ddprun/plugin/comm_plugin.hpp"

namespace {

ddprun_comm_plugin python{};  // as_plugin.py fills it in
char trouble[256];            // or says here why it cannot

// Prints the path of Python's library, and of the program that this Python takes itself for: it may be that of a venv.
constexpr const char* kAsk = R"("${DDPRUN_PYTHON:-python3}" -c 'import sys, sysconfig; v = sysconfig.get_config_var
print(v("LIBDIR") + "/libpython" + v("LDVERSION") + ".so.1.0", sys.executable, sep="\n")' 2>&1)";

void start() {
  char library[4096] = "", program[4096] = "";
  FILE* const asked = popen(kAsk, "re");
  const int found = asked == nullptr ? 0 : std::fscanf(asked, "%4095[^\n]\n%4095[^\n]", library, program);
  if (asked == nullptr || pclose(asked) != 0 || found != 2)
    throw std::runtime_error(std::string("no Python: ") + library);
  if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr) throw std::runtime_error("this program is already a Python");
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (loaded == nullptr) throw std::runtime_error(dlerror() + std::string("; install libpython for ") + program);
  static const std::wstring name = std::filesystem::path(program).wstring();
  const std::string locale = std::setlocale(LC_ALL, nullptr);  // Python changes it
  reinterpret_cast<void (*)(const wchar_t*)>(dlsym(loaded, "Py_SetProgramName"))(name.c_str());
  reinterpret_cast<void (*)(int)>(dlsym(loaded, "Py_InitializeEx"))(0);  // 0: the handlers of signals stay
  std::setlocale(LC_ALL, locale.c_str());
  Dl_info self{};
  dladdr(&python, &self);
  const std::string file = std::filesystem::path(self.dli_fname).parent_path() / "../python/ddprun/as_plugin.py";
  const std::string code = "import runpy\nrunpy.run_path('" + file + "')['fill'](" +
                           std::to_string(reinterpret_cast<std::uintptr_t>(&python)) + ", " +
                           std::to_string(reinterpret_cast<std::uintptr_t>(trouble)) + ")";
  const int failed = reinterpret_cast<int (*)(const char*)>(dlsym(loaded, "PyRun_SimpleString"))(code.c_str());
  reinterpret_cast<void* (*)()>(dlsym(loaded, "PyEval_SaveThread"))();
  if (failed != 0) throw std::runtime_error(file + " failed, and has said why on standard error");
  if (*trouble != '\0')
    throw std::runtime_error(program + std::string(": ") + trouble + "; set DDPRUN_PYTHON to a Python with torch");
}

constexpr ddprun_option_spec kOptions[] = {
    ddprun::name_option("backend", "gloo", "the name that torch.distributed has for it"),
    ddprun::text_option("module", "", "a Python module that registers it when it is imported")};
constexpr ddprun_comm_algorithm kAlgorithms[] = {
    ddprun::algorithm("c10d", ddprun::kAllDtypes & ~ddprun::bits(ddprun::DType::int16), ddprun::kAllOps)};

ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) try {
  std::string why;
  try {
    [[maybe_unused]] static const bool started = (start(), true);
  } catch (const std::exception& error) {
    why = error.what();
  }
  ddprun::Host(*host, "c10d", {}, kOptions).fail_together(why);
  return python.create(host, out);
} catch (const std::exception& error) {
  std::snprintf(host->error, host->error_size, "%s", error.what());
  return DDPRUN_UNSUPPORTED;
}

// The function of Python's table.
template <auto Field>
struct Python;
template <class Result, class... Arguments, Result (*ddprun_comm_plugin::*Field)(Arguments...)>
struct Python<Field> {
  static Result call(Arguments... arguments) { return (python.*Field)(arguments...); }
};

}  // namespace

#define PYTHON(field) .field = Python<&ddprun_comm_plugin::field>::call
DDPRUN_PLUGIN_EXPORT constinit const ddprun_comm_plugin ddprun_comm_plugin_v1 = {
    .struct_size = sizeof(ddprun_comm_plugin),
    .abi = DDPRUN_COMM_ABI,
    .name = "c10d",
    .version = "0.1.0",
    .library = "",
    .capabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_REDUCE_SCATTER,
    .algorithms = kAlgorithms,
    .algorithm_count = std::size(kAlgorithms),
    .reserved = 0,
    .create = create,
    PYTHON(destroy),
    PYTHON(allreduce),
    PYTHON(broadcast),
    PYTHON(allgather),
    PYTHON(barrier),
    PYTHON(wait),
    PYTHON(abort),
    PYTHON(last_error),
    PYTHON(reduce_scatter),
    PYTHON(test),
    .async_error = nullptr,
    .alloc = nullptr,
    .free = nullptr,
    .options = kOptions,
    .option_count = std::size(kOptions),
    .reserved_too = 0,
    .finish = nullptr};
