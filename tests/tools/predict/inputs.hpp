// Files of `ddprun bench --json` and folders of traced runs, with times that a test chooses.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/predict/cost.hpp"
#include "tools/report/some_run.hpp"

namespace ddprun::testing {

using nlohmann::json;

// One row.
inline json bench_row(const std::string& backend, const std::string& algorithm, int64_t ranks, double bytes,
                      double seconds) {
  return {{"collective", "allreduce"},
          {"ranks", ranks},
          {"size", bytes},
          {"backend", backend},
          {"algorithm", algorithm},
          {"served", {{"algorithm", algorithm}, {"transport", "tcp"}}},
          {"buffer", "malloc"},
          {"in_place", true},
          {"median", seconds}};
}

// `hosts` with one rank each; 1: the ranks of the rows are on one host.
inline json bench_file(int64_t hosts, const std::vector<json>& rows) {
  json file = {{"ddprun_bench", 1}, {"hosts", json::array()}, {"rows", rows}};
  for (int64_t host = 0; hosts > 1 && host < hosts; ++host) {
    file["hosts"].push_back({{"name", "node" + std::to_string(host)}, {"ranks", {host}}});
  }
  return file;
}

inline const std::vector<double> kSizes = {4096, 65536, 1 << 20, 4 << 20};

// All sizes of an algorithm between hosts, as the link makes them.
inline std::vector<json> rows_between(const std::string& backend, const std::string& name, int64_t hosts,
                                      predict::Link link) {
  std::vector<json> rows;
  for (const double bytes : kSizes) {
    const auto path = predict::path_between(*predict::algorithm_of(backend, name), {hosts, 1}, bytes);
    rows.push_back(bench_row(backend, name, hosts, bytes, link.seconds(path)));
  }
  return rows;
}

inline json event(const std::string& name, int64_t rank, int64_t step, double begin, double end, json more = {}) {
  json args = {{"step", step}};
  if (!more.is_null()) args.update(more);
  return {{"name", name}, {"ph", "X"}, {"pid", rank}, {"tid", 1}, {"ts", begin}, {"dur", end - begin}, {"args", args}};
}

// A step of one rank, in milliseconds: forward 0 .. 2, backward 2 .. 6. Bucket 0 (1 MiB) is full in the middle of
// backward, bucket 1 (256 KiB) at its end.
inline std::vector<json> traced_step(int64_t rank, int64_t step) {
  return {event("forward", rank, step, 0, 2000),
          event("backward", rank, step, 2000, 6000),
          event("ready", rank, step, 4000, 4000, {{"bucket", 0}}),
          event("allreduce", rank, step, 4100, 5000, {{"bucket", 0}, {"bytes", 1 << 20}}),
          event("ready", rank, step, 6000, 6000, {{"bucket", 1}}),
          event("allreduce", rank, step, 6000, 7000, {{"bucket", 1}, {"bytes", 1 << 18}}),
          event("optimizer", rank, step, 7000, 8000)};
}

// Of 20 steps of 32 samples: data and forward 2 ms, backward 4 ms, optimizer and the rest 1 ms, and 3 ms in which it
// waits for the other ranks. Step 5 was traced.
inline SomeRun traced_run() {
  SomeRun run;
  run.steps = 20;
  run.change = [](record::StepRecord& step) {
    step.samples = 32;
    step.data = 0.0005;
    step.forward = 0.0015;
    step.backward = 0.004;
    step.comm = 0.003;
    step.optimizer = 0.0008;
    step.total = 0.010;
  };
  return run;
}

inline void write_trace(const TempDir& folder, const std::string& run, const std::vector<json>& events) {
  std::filesystem::create_directories(folder.path() / run / "trace");
  folder.write(run + "/trace/trace.json", json{{"traceEvents", events}}.dump());
}

inline constexpr const char* kConfig =
    "[model]\nname = \"simplenet\"\n[data]\nname = \"mnist\"\n[strategy]\nkind = \"ddp\"\n[comm]\nbackend = \"gloo\"\n";

// The folder of such a run.
inline std::string write_traced_run(const TempDir& folder, const SomeRun& run = traced_run()) {
  const std::string path = write_run(folder, "run", run);
  folder.write("run/config.toml", kConfig);
  std::vector<json> events;
  for (int rank = 0; rank < run.ranks; ++rank) {
    for (json& event : traced_step(rank, 5)) events.push_back(std::move(event));
  }
  write_trace(folder, "run", events);
  return path;
}

}  // namespace ddprun::testing
