#include "tools/report/export.hpp"

#include <cstdio>

#include "app/commands.hpp"

namespace ddprun::app {

ExitCode export_run(const Arguments& arguments) {
  for (const std::string& path : report::export_run(arguments.exported)) std::printf("%s\n", path.c_str());
  return ExitCode::ok;
}

}  // namespace ddprun::app
