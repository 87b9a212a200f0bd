// Event files of TensorBoard: records of TFRecord, each a protobuf message tensorflow.Event (tensorflow/core/util/
// event.proto). The few fields that scalars need are encoded here: libtorch exports a protobuf of its own, which a
// second one must not meet in one process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun::exporter {

// The bytes of one such file, from its first record on. Copyable; one thread.
class EventFile {
 public:
  // `time` in seconds since 1970.
  explicit EventFile(double time);

  // A value of the scalar `tag` at a step. TensorBoard keeps float32.
  void scalar(double time, int64_t step, std::string_view tag, double value);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// What stands before and after the data of a TFRecord: CRC-32C (Castagnoli), rotated by 15 bits and shifted by a
// constant, so that a checksum of data that holds checksums is none of them.
uint32_t masked_crc32c(std::string_view data);

}  // namespace ddprun::exporter
