// Event files of TensorBoard: TFRecord records, each a protobuf message tensorflow.Event (tensorflow/core/util/
// event.proto). The few fields that scalars need are encoded here: libtorch exports its own protobuf, and a second one
// in the same process would conflict.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun::exporter {

// The bytes of one such file. Copyable; one thread.
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

// The header and footer checksum of a TFRecord: CRC-32C (Castagnoli), rotated by 15 bits and shifted by a constant, so
// that the checksum of data that contains checksums differs from them.
uint32_t masked_crc32c(std::string_view data);

}  // namespace ddprun::exporter
