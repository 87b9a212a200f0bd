#include "plugin/library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/dll/shared_library.hpp>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/subprocess.hpp"
#include "ddprun/error.hpp"

namespace ddprun::plugin {
namespace {

namespace dll = boost::dll;

// A comm or dataset plugin must bind to its own libraries: libtorch_cpu exports another gloo::, protobuf and miniz. A
// model plugin must not: it uses the program's Torch. DEEPBIND bypasses the interceptors of sanitizers: their builds
// have DDPRUN_DEEPBIND false, and an author who uses one sets DDPRUN_NO_DEEPBIND=1.
bool deepbind(Kind kind) {
  const char* const no = std::getenv("DDPRUN_NO_DEEPBIND");
  return DDPRUN_DEEPBIND && kind != Kind::model && (no == nullptr || *no == '\0' || no == std::string_view("0"));
}

dll::load_mode::type mode_for(Kind kind) {
  using enum dll::load_mode::type;
  return deepbind(kind) ? rtld_now | rtld_local | rtld_deepbind : rtld_now | rtld_local;
}

// The runtimes of these sanitizers end a process that loads a library with RTLD_DEEPBIND.
void refuse_deepbind_of_sanitizer(const File& file) {
  if (!deepbind(file.kind)) return;
  for (const auto& [symbol, name] : {std::pair{"__asan_init", "AddressSanitizer"},
                                     {"__tsan_init", "ThreadSanitizer"},
                                     {"__msan_init", "MemorySanitizer"}}) {
    if (::dlsym(RTLD_DEFAULT, symbol) == nullptr) continue;
    refuse(file, std::string("not loaded: this process has ") + name +
                     ", which does not allow the flag RTLD_DEEPBIND; set DDPRUN_NO_DEEPBIND=1");
  }
}

std::unique_ptr<dll::shared_library> load(const File& file, const std::string& path) {
  boost::dll::fs::error_code error;
  auto library = std::make_unique<dll::shared_library>();
  // A library may handle signals from its start on, as UCX does, which Debian 13's Gloo loads: they are put back.
  struct sigaction before[NSIG] = {};
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, nullptr, &before[signal]);
  library->load(path, error, mode_for(file.kind));
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &before[signal], nullptr);
  if (const char* const why = ::dlerror(); error) refuse(file, "cannot be loaded: " + (why ? why : error.message()));
  return library;
}

// A crash of this process leaves no trace but its exit status: no output, no core file, no stack of a handler.
void be_silent() {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, output);
}

}  // namespace

void probe(const File& file, const std::function<void()>& load, std::chrono::seconds limit) {
  const auto try_it = [&] {
    be_silent();
    try {
      load();
    } catch (const Error&) {  // the caller will get it, too
    } catch (const std::exception& thrown) {
      throw std::runtime_error(std::string("it threw \"") + thrown.what() + '"');
    } catch (...) {
      throw std::runtime_error("it threw something unknown");
    }
    return std::string();
  };
  try {
    text_from_subprocess(try_it, limit);
  } catch (const Error& trouble) {
    refuse(file, "refused: while it was loaded, " + std::string(trouble.what()) +
                     "; if its file is whole, look at its static constructors and its table");
  }
}

Library Library::open(const File& file, const std::function<void(const Library&)>& check) {
  // Never destroyed, so that no static destructor unloads a plugin.
  static auto& mutex = *new std::mutex;
  static auto& opened = *new std::map<std::string, std::unique_ptr<dll::shared_library>>;

  const std::string path = std::filesystem::canonical(file.path).string();
  const std::scoped_lock lock(mutex);
  auto& library = opened[path];
  if (library == nullptr) {
    refuse_deepbind_of_sanitizer(file);
    probe(file, [&] { check(Library(load(file, path).release())); });
    library = load(file, path);
  }
  return Library(library.get());
}

const void* Library::symbol(const std::string& name) const {
  const auto& library = *static_cast<const dll::shared_library*>(handle_);
  return library.has(name) ? &library.get<const char>(name) : nullptr;
}

}  // namespace ddprun::plugin
