// Event files of TensorBoard: TFRecord records, each a protobuf message tensorflow.Event (tensorflow/core/util/
// event.proto). The few fields that scalars need are encoded here: libtorch exports its own protobuf, and a second one
// in the same process would conflict.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ddprun/records.hpp"

namespace ddprun::record {

// All times are in seconds since 1970.

// "events.out.tfevents.1763772608.host", the name that TensorBoard expects.
std::string event_file_name(double time, std::string host);

// The bytes at the beginning of a file.
std::string event_file_header(double time);

// Appends the scalars of one step to `out`, which must outlive it. Single-threaded.
class Scalars {
 public:
  Scalars(std::string& out, double time, int64_t step) : out_(out), time_(time), step_(step) {}

  // Does nothing if the value is not finite. TensorBoard keeps float32.
  void add(std::string_view tag, double value);

 private:
  std::string& out_;
  const double time_;
  const int64_t step_;
};

// "epoch/train_loss", "epoch/test_accuracy", ...
void add_epoch(Scalars scalars, const EpochRecord& epoch);

// The header and footer checksum of a TFRecord: CRC-32C (Castagnoli), rotated by 15 bits and shifted by a constant, so
// that the checksum of data that contains checksums differs from them.
uint32_t masked_crc32c(std::string_view data);

}  // namespace ddprun::record
