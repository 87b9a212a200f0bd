// The encoding of the store's messages: numbers in little-endian order, strings after their length. The fields of a
// struct, as std::tie() gives them, are written and read one after another.
#pragma once

#include <boost/endian/conversion.hpp>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>

namespace ddprun::launch {

class ByteWriter {
 public:
  // An integer or an enum.
  ByteWriter& number(auto value) {
    const uint64_t little = boost::endian::native_to_little(static_cast<uint64_t>(value));
    bytes_.append(reinterpret_cast<const char*>(&little), sizeof little);
    return *this;
  }
  ByteWriter& text(std::string_view value) {
    number(value.size());
    bytes_ += value;
    return *this;
  }
  template <typename... Fields>
  ByteWriter& fields(const std::tuple<Fields&...>& all) {
    std::apply([this](const auto&... field) { (put(field), ...); }, all);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void put(const std::string& value) { text(value); }
  void put(std::chrono::nanoseconds value) { number(value.count()); }
  void put(auto value) { number(value); }

  std::string bytes_;
};

// Does not own the bytes. Throws std::out_of_range if they end too early, and never allocates more than their size.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename Number = uint64_t>
  Number number() {
    return static_cast<Number>(boost::endian::load_little_u64(reinterpret_cast<const unsigned char*>(next(8).data())));
  }
  std::string text() { return std::string(next(number())); }
  template <typename... Fields>
  void fields(const std::tuple<Fields&...>& all) {
    std::apply([this](auto&... field) { (take(field), ...); }, all);
  }
  bool empty() const { return bytes_.empty(); }

 private:
  void take(std::string& value) { value = text(); }
  void take(std::chrono::nanoseconds& value) { value = std::chrono::nanoseconds(number<int64_t>()); }
  template <typename Number>
  void take(Number& value) {
    value = number<Number>();
  }

  std::string_view next(uint64_t size) {
    if (size > bytes_.size()) throw std::out_of_range("a message ends too early");
    const std::string_view part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }

  std::string_view bytes_;
};

}  // namespace ddprun::launch
