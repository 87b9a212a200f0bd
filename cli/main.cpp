// The program `ddprun`. It is linked without LibTorch: the engine and the tools are programs of their own.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/console/program.hpp"

namespace ddprun::app {
namespace {

// "" in a build with DDPRUN_TORCH=OFF.
std::string find_engine() {
  const auto bin = std::filesystem::path(console::this_program()).parent_path();
  const std::string path = bin.parent_path() / "libexec/ddprun-engine";
  return ::access(path.c_str(), F_OK) == 0 ? path : "";
}

// Without LibTorch the loader ends the engine, with a line that says neither why nor what to do.
void require_torch() {
  const std::string folder = DDPRUN_TORCH_LIB, library = folder + "/libtorch_cpu.so";
  if (folder.empty() || ::access(library.c_str(), R_OK) == 0) return;  // empty: with_torch.in looks for it
  const std::string reason = std::strerror(errno);
  if (::dlopen("libtorch_cpu.so", RTLD_LAZY) != nullptr) return;  // where LD_LIBRARY_PATH or the system has it
  throw Error(ExitCode::failure, "cannot read LibTorch, " + library + ": " + reason +
                                     "; let this user read it, or build ddprun with a LibTorch that all users can read "
                                     "(DDPRUN_TORCH_DIR)");
}

[[noreturn]] void run_engine(const Arguments& arguments) {
  const std::string engine = find_engine();
  if (engine.empty()) {
    throw Error(ExitCode::failure,
                "this ddprun was built without LibTorch (DDPRUN_TORCH=OFF): it has the tools, `launch` and "
                "`plugins`; to train, `pip install ddprun-train`, or build it with LibTorch");
  }
  require_torch();
  run_tool(engine, {arguments.argv.begin() + 1, arguments.argv.end()});
}

}  // namespace

ExitCode train(const Arguments& arguments) {
  choose_wait_policy(arguments);
  run_engine(arguments);
}
ExitCode validate(const Arguments& arguments) {
  run_engine(arguments);
}
ExitCode evaluate(const Arguments& arguments) {
  ::setenv("OMP_WAIT_POLICY", "passive", 0);  // as choose_wait_policy(); unless launch.threads is small, all cores work
  run_engine(arguments);
}
ExitCode version(const Arguments& arguments) {
  if (!find_engine().empty()) run_engine(arguments);
  std::printf("ddprun %s\ntorch none\ncompiler GCC %s\n", ddprun::version(), __VERSION__);
  return ExitCode::ok;
}

}  // namespace ddprun::app

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::app::run(argc, argv); });
}
