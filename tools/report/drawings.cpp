#include "tools/report/drawings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/process/child.hpp>
#include <boost/process/io.hpp>
#include <boost/process/pipe.hpp>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "tools/report/assets.hpp"
#include "tools/report/chart.hpp"

namespace ddprun::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kWidth = 720;  // pixels
constexpr int kScale = 2;    // of a PNG

std::string python() {
  const char* chosen = std::getenv("DDPRUN_CHARTS_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : DDPRUN_CHARTS_PYTHON;
}

[[noreturn]] void fail(const std::string& reason) {
  throw Error(ExitCode::failure,
              "cannot draw charts as PNG or SVG: " + reason +
                  "; ./ddprun in a clone of ddprun installs what draws them, or set DDPRUN_CHARTS_PYTHON to a Python "
                  "that has vl-convert-python 1.9");
}

// "03-test-accuracy"
std::string name_of(const std::string& title, std::size_t number) {
  std::string name = fmt::format("{:02}-", number);
  for (const char c : title) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (name.back() != '-') {
      name += '-';
    }
  }
  name.resize(std::min<std::size_t>(name.size(), 60));
  name.erase(name.find_last_not_of('-') + 1);
  return name;
}

json charts_of(const std::string& folder, const std::vector<std::string>& specifications,
               const std::vector<Drawing>& kinds) {
  json charts = json::array();
  std::size_t number = 0;
  for (const std::string& specification : specifications) {
    const json alone = json::parse(standalone(specification, kWidth));
    const std::string path = (fs::path(folder) / name_of(alone.at("description"), ++number)).string();
    for (const Drawing kind : kinds) {
      charts.push_back({{"path", path + (kind == Drawing::png ? ".png" : ".svg")}, {"spec", alone}});
    }
  }
  return charts;
}

// A temporary file with the request to Python.
class Request {
 public:
  explicit Request(const std::string& text) : path_((fs::temp_directory_path() / "ddprun-charts-XXXXXX").string()) {
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) throw_file_error("create", path_, errno);
    OutputFile file(path_, fd);
    file.write(text);
    file.close();
  }
  ~Request() { ::unlink(path_.c_str()); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Throws with the last line of its stderr, which is Python's exception.
void run_python(const std::string& request) {
  namespace bp = boost::process;
  std::string last;
  int code = 0;
  try {
    bp::ipstream said;
    bp::child child(python(), asset_path("charts.py"), "render", request, bp::std_in<bp::null, bp::std_out> bp::null,
                    bp::std_err > said);
    for (std::string line; std::getline(said, line);) {
      if (!line.empty()) last = line;
    }
    child.wait();
    code = child.exit_code();
  } catch (const bp::process_error& error) {
    fail("cannot start " + python() + ": " + error.code().message());
  }
  if (code != 0) fail(python() + ": " + (last.empty() ? "exit code " + std::to_string(code) : last));
}

}  // namespace

std::vector<std::string> write_drawings(const std::string& folder, const std::vector<std::string>& specifications,
                                        const std::vector<Drawing>& kinds) {
  if (python().empty()) fail("Python was not found");
  const json charts = charts_of(folder, specifications, kinds);
  if (charts.empty()) return {};
  const json request = {{"config", json::parse(chart_theme(false))}, {"scale", kScale}, {"charts", charts}};
  run_python(Request(request.dump()).path());
  std::vector<std::string> paths;
  for (const json& chart : charts) paths.push_back(chart.at("path"));
  return paths;
}

}  // namespace ddprun::report
