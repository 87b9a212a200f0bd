// The program `libexec/ddprun-engine`: the part of `ddprun` that needs LibTorch.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "app/commands.hpp"
#include "app/run/torch_facts.hpp"
#include "console/program.hpp"

int main(int argc, char** argv) {
  using namespace ddprun;
  prctl(PR_SET_NAME, "ddprun");  // `ps` and `pgrep` show the command that the user has started
  const int code = console::run_program([&] { return app::run(argc, argv); }, run::error_message);
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);  // the destructors of LibTorch's static objects take 0.1 s, and free what the kernel frees
}
