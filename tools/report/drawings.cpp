#include <boost/process/child.hpp>
#include <boost/process/io.hpp>
#include <boost/process/pipe.hpp>
#include <cstdlib>

#include "ddprun/error.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {
namespace {

[[noreturn]] void fail(const std::string& reason) {
  throw Error(ExitCode::failure,
              "cannot draw charts as PNG or SVG: " + reason +
                  "; ./ddprun in a clone of ddprun installs what draws them, or set DDPRUN_CHARTS_PYTHON to a Python "
                  "that has vl-convert-python 1.9");
}

std::vector<std::string> lines_of(std::istream& stream) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::vector<std::string> draw_charts(const std::string& page, const std::string& folder,
                                     const std::vector<std::string>& kinds) {
  namespace bp = boost::process;
  const char* chosen = std::getenv("DDPRUN_CHARTS_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : DDPRUN_CHARTS_PYTHON;
  if (python.empty()) fail("Python was not found");
  try {
    bp::ipstream out, err;
    bp::child child(python, asset_path("charts.py"), "draw", page, folder, kinds, bp::std_in<bp::null, bp::std_out> out,
                    bp::std_err > err);
    const std::vector<std::string> paths = lines_of(out), errors = lines_of(err);
    child.wait();
    if (child.exit_code() == 0) return paths;
    // The last line is Python's exception.
    fail(python + ": " + (errors.empty() ? "exit code " + std::to_string(child.exit_code()) : errors.back()));
  } catch (const bp::process_error& error) {
    fail("cannot start " + python + ": " + error.code().message());
  }
}

}  // namespace ddprun::report
