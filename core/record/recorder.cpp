#include "record/recorder.hpp"

#include <fmt/format.h>

#include <exception>
#include <filesystem>

#include "base/log.hpp"
#include "record/run_dir.hpp"

namespace ddprun::record {
namespace {

constexpr size_t kFlushBytes = 256 << 10;
constexpr std::chrono::seconds kFlushTime{1};

}  // namespace

Recorder::Recorder(const std::string& run_dir, int rank, bool continues)
    : run_dir_(run_dir), rank_(rank), steps_(file_in(run_dir, fmt::format("steps-rank{}.jsonl", rank)), continues) {
  lines_.reserve(kFlushBytes + 1024);
  if (rank == 0 && !continues) epochs_.emplace(file_in(run_dir, "epochs.jsonl"));
}

Recorder::~Recorder() {
  try {
    flush();
  } catch (const std::exception& fault) {
    log::error(fault.what());
  }
}

void Recorder::step(const StepRecord& record) {
  lines_ += line_of(record) + '\n';
  if (lines_.size() >= kFlushBytes || std::chrono::steady_clock::now() - written_ >= kFlushTime) flush();
}

void Recorder::gpu(const GpuRecord& record) {
  if (!gpus_) gpus_.emplace(file_in(run_dir_, fmt::format("gpus-rank{}.jsonl", rank_)));
  gpus_->write(line_of(record) + '\n');
}

void Recorder::epoch(const EpochRecord& record) {
  flush();
  epoch_line(line_of(record));
}

void Recorder::epoch_line(const std::string& line) {
  if (!epochs_ || line.empty()) return;
  const std::string number = line.substr(0, line.find_first_of(",}") + 1);  // {"epoch":7,
  if (read_text(epochs_->path()).find(number) == std::string::npos) epochs_->write(line + '\n');
}

void Recorder::summary(const Summary& summary) {
  flush();
  if (epochs_) replace_file(file_in(run_dir_, "summary.json"), to_json(summary));
}

void Recorder::lead(bool leads) {
  epochs_.reset();
  if (leads) epochs_.emplace(file_in(run_dir_, "epochs.jsonl"), true);
}

void Recorder::flush() {
  written_ = std::chrono::steady_clock::now();
  try {
    steps_.write(lines_);
  } catch (...) {
    lines_.clear();  // data that the disk rejected is neither written twice nor tried again in the destructor
    throw;
  }
  lines_.clear();
}

void write_program(Recorder& recorder, const Summary& seen, int64_t batch, int64_t threads, bool half) {
  recorder.summary(seen);
  if (recorder.rank() != 0) return;
  const auto folder = parse_run_name(std::filesystem::path(recorder.run_dir()).filename().string());
  replace_file(
      file_in(recorder.run_dir(), "config.toml"),
      fmt::format("# What was seen of a recorded program. No run can be started from this file.\n"
                  "experiment.name = \"{}\"\nlaunch.nproc = {}\nlaunch.threads = {}\nstrategy.kind = \"{}\"\n"
                  "comm.backend = \"{}\"\nmodel.name = \"unknown\"\ndata.name = \"unknown\"\ndata.batch_size = {}\n"
                  "data.batch_per = \"rank\"\ntrain.steps = {}\ntrain.amp = \"{}\"\n",
                  folder ? folder->name : "program", seen.world, threads, seen.strategy, seen.backend, batch,
                  seen.steps, half ? "bf16" : "off"));
}

}  // namespace ddprun::record
