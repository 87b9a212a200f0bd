// page_tool [--runs] FILE: writes the page of some_page.hpp, or of some runs, for browser_test.py.
#include <cstdio>
#include <filesystem>
#include <string>

#include "ddprun/error.hpp"
#include "tools/report/report.hpp"
#include "tools/report/some_page.hpp"
#include "tools/report/some_run.hpp"

using namespace ddprun;

namespace {

constexpr const char* kTrace = R"([
  {"name": "forward", "ph": "X", "pid": 0, "ts": 0, "dur": 900, "args": {"step": 6}},
  {"name": "backward", "ph": "X", "pid": 0, "ts": 900, "dur": 2100, "args": {"step": 6}},
  {"name": "allreduce", "ph": "X", "pid": 0, "ts": 2000, "dur": 1500, "args": {"step": 6, "bucket": 0, "bytes": 4096}},
  {"name": "optimizer", "ph": "X", "pid": 0, "ts": 3500, "dur": 300, "args": {"step": 6}}])";

report::Page page_of_runs() {
  const testing::TempDir folder;
  testing::SomeRun one, two, dp;
  one.ranks = dp.ranks = 1;
  one.summary.strategy = "single";
  one.summary.throughput = 600;
  two.steps = 2000;
  two.change = [](record::StepRecord& step) { step.lr = 1.0 / static_cast<double>(step.step); };
  dp.summary.strategy = "dp";
  dp.summary.devices = 2;
  dp.summary.split.replicate = 1e-3;
  dp.summary.memory_by_device = {3 << 20, 1 << 20};
  std::vector<tools::Run> runs = {tools::read_run(write_run(folder, "one", one))};
  const std::string traced = write_run(folder, "two", two);
  std::filesystem::create_directory(traced + "/trace");
  folder.write("two/trace/trace.json", kTrace);
  runs.push_back(tools::read_run(traced));
  runs.push_back(tools::read_run(write_run(folder, "dp", dp)));
  return report::run_page(std::move(runs));
}

}  // namespace

int main(int argc, char** argv) {
  const bool runs = argc == 3 && std::string(argv[1]) == "--runs";
  if (argc != 2 && !runs) return 2;
  try {
    report::write_page(argv[argc - 1], runs ? page_of_runs() : testing::some_page());
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
