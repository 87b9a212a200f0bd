// The keys of each record's JSON with their members: one list for writing and reading.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include "ddprun/records.hpp"

namespace ddprun::record {

template <class Type, class Record>
concept Is = std::same_as<std::remove_const_t<Type>, Record>;

// Calls field(key, member) in the order of the file. `record` may be const.
void for_each_field(Is<StepRecord> auto& record, auto field) {
  field("epoch", record.epoch);
  field("step", record.step);
  field("samples", record.samples);
  field("loss", record.loss);
  field("correct", record.correct);
  field("accuracy", record.accuracy);
  field("data", record.data);
  field("forward", record.forward);
  field("backward", record.backward);
  field("comm", record.comm);
  field("optimizer", record.optimizer);
  field("total", record.total);
  field("throughput", record.throughput);
  field("scatter", record.scatter);
  field("replicate", record.replicate);
  field("gather", record.gather);
  field("reduce", record.reduce);
  field("lr", record.lr);
  field("scale", record.scale);
  field("skipped", record.skipped);
}

void for_each_field(Is<GpuRecord> auto& record, auto field) {
  field("step", record.step);
  field("device", record.device);
  field("allocated", record.allocated);
  field("reserved", record.reserved);
}

void for_each_field(Is<EpochRecord> auto& record, auto field) {
  field("epoch", record.epoch);
  field("train.loss", record.train_loss);
  field("train.accuracy", record.train_accuracy);
  field("train.loss_by_rank", record.per_rank_loss);
  field("validation.loss", record.validation_loss);
  field("validation.accuracy", record.validation_accuracy);
  field("test.loss", record.test_loss);
  field("test.accuracy", record.test_accuracy);
  field("seconds", record.seconds);
}

void for_each_field(Is<TensorDigest> auto& digest, auto field) {
  field("hash", digest.hash);
  field("norm", digest.norm);
  field("sketch", digest.sketch);
}

void for_each_field(Is<ParityRecord> auto& record, auto field) {
  field("step", record.step);
  field("parameter", record.parameter);
  field("elements", record.elements);
  field("gradient", record.gradient);
  field("value", record.value);
}

// A metric of an epoch by its key: "validation.loss", "test.accuracy". NaN if it was not measured.
inline double metric_of(const EpochRecord& epoch, std::string_view metric) {
  double found = kAbsent;
  for_each_field(epoch, [&](std::string_view key, const auto& value) {
    if constexpr (std::same_as<decltype(value), const double&>) found = key == metric ? value : found;
  });
  return found;
}

// All but `learned`, whose keys come from the model: "learned.<name>".
void for_each_field(Is<Summary> auto& summary, auto field) {
  field("test.accuracy", summary.test_accuracy);
  field("test.loss", summary.test_loss);
  field("validation.accuracy", summary.validation_accuracy);
  field("validation.loss", summary.validation_loss);
  field("train.loss", summary.train_loss);
  field("total_time", summary.total_time);
  field("avg_batch_time", summary.avg_batch_time);
  field("avg_data_time", summary.avg_data_time);
  field("avg_compute_time", summary.avg_compute_time);
  field("throughput", summary.throughput);
  field("split.forward", summary.split.forward);
  field("split.backward", summary.split.backward);
  field("split.comm", summary.split.comm);
  field("split.optimizer", summary.split.optimizer);
  field("split.scatter", summary.split.scatter);
  field("split.replicate", summary.split.replicate);
  field("split.gather", summary.split.gather);
  field("split.reduce", summary.split.reduce);
  field("steps", summary.steps);
  field("epochs", summary.epochs);
  field("world", summary.world);
  field("virtual_ranks", summary.virtual_ranks);
  field("weights.sha256", summary.weights_sha256);
  field("changes.after_step", summary.changes.after_step);
  field("changes.ranks", summary.changes.ranks);
  field("changes.seconds", summary.changes.seconds);
  field("devices", summary.devices);
  field("batch", summary.batch);
  field("samples_per_rank", summary.samples_per_rank);
  field("seed", summary.seed);
  field("model", summary.model);
  field("data", summary.data);
  field("strategy", summary.strategy);
  field("backend", summary.backend);
  field("algorithm", summary.algorithm);
  field("transport", summary.transport);
  field("comm.bytes", summary.comm_bytes);
  field("comm.time", summary.comm_time);
  field("comm.busbw", summary.comm_busbw);
  field("peak_memory_bytes", summary.peak_memory_bytes);
  field("memory_by_device", summary.memory_by_device);
  field("stopped", summary.stopped);
  field("best.epoch", summary.best_epoch);
}

}  // namespace ddprun::record
