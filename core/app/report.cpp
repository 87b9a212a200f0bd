#include "report/report.hpp"

#include <cstdio>

#include "app/commands.hpp"

namespace ddprun::app {

ExitCode report(const Arguments& arguments) {
  const report::Page page = report::page_of(arguments.report.paths);
  for (const std::string& path : report::write(arguments.report, page)) std::printf("%s\n", path.c_str());
  return ExitCode::ok;
}

}  // namespace ddprun::app
