#include "record/event_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/crc.hpp>
#include <cmath>

namespace ddprun::record {
namespace {

enum class Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Field numbers of the messages.
constexpr uint32_t kEventTime = 1, kEventStep = 2, kEventVersion = 3, kEventSummary = 5;
constexpr uint32_t kSummaryValue = 1, kValueTag = 1, kValueSimple = 2;

// Little-endian, as in protobuf and TFRecord.
void put_fixed(std::string& out, auto value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) out += static_cast<char>(value >> (8 * byte) & 0xFF);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, uint32_t field, Wire wire) {
  put_varint(out, field << 3 | static_cast<uint32_t>(wire));
}

void put_double(std::string& out, uint32_t field, double value) {
  put_key(out, field, Wire::fixed64);
  put_fixed(out, std::bit_cast<uint64_t>(value));
}

void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_record(std::string& out, const std::string& data) {
  std::string length;
  put_fixed(length, static_cast<uint64_t>(data.size()));
  out += length;
  put_fixed(out, masked_crc32c(length));
  out += data;
  put_fixed(out, masked_crc32c(data));
}

}  // namespace

uint32_t masked_crc32c(std::string_view data) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(data.data(), data.size());
  constexpr uint32_t kShift = 0xA282EAD8;
  return std::rotr(static_cast<uint32_t>(crc.checksum()), 15) + kShift;
}

std::string event_file_name(double time, std::string host) {
  std::replace(host.begin(), host.end(), '/', '-');
  return fmt::format("events.out.tfevents.{:010}.{}", static_cast<int64_t>(time), host);
}

std::string event_file_header(double time) {
  std::string out, event;
  put_double(event, kEventTime, time);
  put_bytes(event, kEventVersion, "brain.Event:2");
  put_record(out, event);
  return out;
}

void Scalars::add(std::string_view tag, double value) {
  if (!std::isfinite(value)) return;
  std::string entry, summary, event;
  put_bytes(entry, kValueTag, tag);
  put_key(entry, kValueSimple, Wire::fixed32);
  put_fixed(entry, std::bit_cast<uint32_t>(static_cast<float>(value)));
  put_bytes(summary, kSummaryValue, entry);
  put_double(event, kEventTime, time_);
  put_key(event, kEventStep, Wire::varint);
  put_varint(event, static_cast<uint64_t>(step_));
  put_bytes(event, kEventSummary, summary);
  put_record(out_, event);
}

void add_epoch(Scalars scalars, const EpochRecord& epoch) {
  scalars.add("epoch/train_loss", epoch.train_loss);
  scalars.add("epoch/train_accuracy", epoch.train_accuracy);
  scalars.add("epoch/validation_loss", epoch.validation_loss);
  scalars.add("epoch/validation_accuracy", epoch.validation_accuracy);
  scalars.add("epoch/test_loss", epoch.test_loss);
  scalars.add("epoch/test_accuracy", epoch.test_accuracy);
}

}  // namespace ddprun::record
