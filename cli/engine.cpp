// The program `libexec/ddprun-engine`: the part of `ddprun` that needs LibTorch.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/console/program.hpp"
#include "cli/run/run.hpp"
#include "comm/plugin_backend.hpp"

namespace ddprun::app {

int engine(const std::function<ExitCode()>& body) {
  const int code = console::run_program([&] {
    try {
      return body();
    } catch (...) {
      throw run::current_error();
    }
  });
  if (code == 0) comm::finish_plugins();
  std::cout.flush();
  std::fflush(nullptr);
  return code;
}

ExitCode version(const Arguments&) {
  std::printf("ddprun %s\ntorch %s\ncompiler GCC %s\n", ddprun::version(), run::torch_version().c_str(), __VERSION__);
  return ExitCode::ok;
}

}  // namespace ddprun::app

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "ddprun");  // `ps` and `pgrep` show the command that the user has started
  // The destructors of LibTorch's static objects take 0.1 s, and free what the kernel frees.
  _exit(ddprun::app::engine([&] { return ddprun::app::run(argc, argv); }));
}
