#include "cli/run/event_writer.hpp"

#include <chrono>

#include "cli/run/callbacks.hpp"
#include "launch/net/address.hpp"
#include "record/event_file.hpp"
#include "record/run_dir.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::run {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

EventWriter::EventWriter(const std::string& run_dir, int world, int64_t log_every)
    : of_rank0_(world > 1 ? "_rank0" : ""),
      log_every_(log_every),
      file_(record::file_in(run_dir, record::event_file_name(seconds_since_1970(), launch::host_name()))) {
  file_.write(record::event_file_header(seconds_since_1970()));
}

void EventWriter::on_step_end(const record::StepRecord& record, int64_t step_of_epoch, train::LoopState& state) {
  if (!is_line_due(log_every_, step_of_epoch, state.train.steps())) return;
  std::string bytes;
  record::Scalars scalars(bytes, seconds_since_1970(), record.step);
  scalars.add("train/loss" + of_rank0_, record.loss);
  scalars.add("train/accuracy" + of_rank0_, record.accuracy);
  scalars.add("train/throughput" + of_rank0_, record.throughput);
  scalars.add("train/lr", record.lr);
  scalars.add("train/loss_scale", record.scale);
  file_.write(bytes);
}

void EventWriter::on_epoch_end(const record::EpochRecord& record, train::LoopState& state) {
  std::string bytes;
  record::add_epoch({bytes, seconds_since_1970(), state.at.step}, record);
  file_.write(bytes);
}

}  // namespace ddprun::run
