#include "tools/report/report.hpp"

#include <cstdio>

#include "app/commands.hpp"

namespace ddprun::app {

ExitCode report(const Arguments& arguments) {
  for (const std::string& path : report::make(arguments.report)) std::printf("%s\n", path.c_str());
  return ExitCode::ok;
}

}  // namespace ddprun::app
