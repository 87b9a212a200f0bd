// Starts a Python in this process. There, python/ddprun/as_plugin.py calls torch.distributed.
#include <dlfcn.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"

namespace {

ddprun_comm_plugin python{};                // as_plugin.py fills it in
char trouble[256] = "as_plugin.py failed";  // until then, or why it cannot
const std::string kCure = "; set DDPRUN_PYTHON to a Python with torch";

// Once in a process. Returns why Python cannot be used, or "".
std::string start() {
  Dl_info self{};
  dladdr(&python, &self);
  const std::string file = std::filesystem::path(self.dli_fname).parent_path() / "../python/ddprun/as_plugin.py";
  FILE* const asked = popen(("\"${DDPRUN_PYTHON:-python3}\" '" + file + "' 2>&1").c_str(), "re");
  char library[4096] = "", program[4096] = "";
  const int found = asked == nullptr ? 0 : std::fscanf(asked, "%4095[^\n]\n%4095[^\n]", library, program);
  if (asked == nullptr || pclose(asked) != 0 || found != 2) return library + kCure;
  if (dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr) return "this program is already a Python";
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (loaded == nullptr) return dlerror() + std::string("; install libpython for ") + program;
  static const std::wstring name = std::filesystem::path(program).wstring();
  const std::string locale = std::setlocale(LC_ALL, nullptr);
  struct sigaction interrupt {};
  sigaction(SIGINT, nullptr, &interrupt);
  reinterpret_cast<void (*)(const wchar_t*)>(dlsym(loaded, "Py_SetProgramName"))(name.c_str());
  reinterpret_cast<void (*)(int)>(dlsym(loaded, "Py_InitializeEx"))(0);
  const std::string code = "import runpy\nrunpy.run_path('" + file + "')['fill'](" +
                           std::to_string(reinterpret_cast<std::uintptr_t>(&python)) + ", " +
                           std::to_string(reinterpret_cast<std::uintptr_t>(trouble)) + ")";
  reinterpret_cast<int (*)(const char*)>(dlsym(loaded, "PyRun_SimpleString"))(code.c_str());
  reinterpret_cast<void* (*)()>(dlsym(loaded, "PyEval_SaveThread"))();
  sigaction(SIGINT, &interrupt, nullptr);  // Python has changed both
  std::setlocale(LC_ALL, locale.c_str());
  return *trouble == '\0' ? "" : program + (": " + (trouble + kCure));
}

constexpr ddprun_option_spec kOptions[] = {
    ddprun::name_option("backend", "gloo", "the name that torch.distributed has for it"),
    ddprun::text_option("module", "", "a Python module that registers it when it is imported")};
constexpr ddprun_comm_algorithm kAlgorithms[] = {
    ddprun::algorithm("c10d", ddprun::kAllDtypes & ~ddprun::bits(ddprun::DType::int16), ddprun::kAllOps)};

ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) try {
  static const std::string why = start();
  ddprun::Host(*host, "c10d", {}, kOptions).fail_together(why);
  return python.create(host, out);
} catch (const std::exception& error) {
  std::snprintf(host->error, host->error_size, "%s", error.what());
  return DDPRUN_UNSUPPORTED;
}

// A function of Python's table.
#define PYTHON(field) all.field = [](auto... arguments) { return python.field(arguments...); }

constexpr ddprun_comm_plugin table() {
  ddprun_comm_plugin all{};
  all.struct_size = sizeof all, all.abi = DDPRUN_COMM_ABI, all.name = "c10d", all.version = "0.1.0", all.library = "";
  all.capabilities = DDPRUN_CAP_HOST | DDPRUN_CAP_REDUCE_SCATTER;
  all.algorithms = kAlgorithms, all.algorithm_count = std::size(kAlgorithms);
  all.options = kOptions, all.option_count = std::size(kOptions), all.create = create;
  PYTHON(destroy), PYTHON(allreduce), PYTHON(broadcast), PYTHON(allgather), PYTHON(reduce_scatter), PYTHON(barrier);
  PYTHON(wait), PYTHON(test), PYTHON(abort), PYTHON(last_error);
  return all;
}

}  // namespace

DDPRUN_PLUGIN_EXPORT constinit const ddprun_comm_plugin ddprun_comm_plugin_v1 = table();
