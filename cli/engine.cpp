// The program `libexec/ddprun-engine`: the part of `ddprun` that needs LibTorch.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/console/program.hpp"
#include "cli/run/run.hpp"

namespace ddprun::app {

int engine(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int argc = static_cast<int>(command.size());
  const int code = console::run_program([&] {
    try {
      return run(argc, argv.data());
    } catch (...) {
      throw run::current_error();
    }
  });
  std::cout.flush();
  std::fflush(nullptr);
  return code;
}

}  // namespace ddprun::app

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "ddprun");  // `ps` and `pgrep` show the command that the user has started
  // The destructors of LibTorch's static objects take 0.1 s, and free what the kernel frees.
  _exit(ddprun::app::engine({argv, argv + argc}));
}
