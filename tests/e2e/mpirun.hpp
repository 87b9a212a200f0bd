// Runs a command under Open MPI's mpirun.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace ddprun::e2e {

inline bool has_mpirun() {
  if (std::system("command -v mpirun >/dev/null") == 0) return true;
  std::cout << "skipped: there is no mpirun on PATH (openmpi-bin)\n";
  return false;
}

// bind: what each rank is bound to: "none", "core".
inline std::vector<std::string> under_mpirun(int ranks, const std::vector<std::string>& argv,
                                             const std::string& bind = "none") {
  std::vector<std::string> command = {"/usr/bin/env", "mpirun"};
  if (geteuid() == 0) command.push_back("--allow-run-as-root");
  command.insert(command.end(), {"--oversubscribe", "--bind-to", bind, "-n", std::to_string(ranks)});
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

}  // namespace ddprun::e2e
