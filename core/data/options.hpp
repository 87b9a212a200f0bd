// Reading data.options: text to checked values. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/datasets.hpp"

namespace ddprun::data {

// The options of one data set. Every function throws DatasetError that names the key.
class OptionReader {
 public:
  // Refuses keys that are not in `known`. `data` must outlive the reader.
  OptionReader(const DataOptions& data, const std::vector<std::string>& known);

  bool given(const std::string& key) const { return data_.options.contains(key); }
  std::string text(const std::string& key, const std::string& fallback) const;
  // A whole number in [low, high].
  int64_t integer(const std::string& key, int64_t fallback, int64_t low, int64_t high) const;
  // A number in [low, high].
  double number(const std::string& key, double fallback, double low, double high) const;
  // `seed`, or else the experiment's seed.
  uint64_t seed() const;

 private:
  const DataOptions& data_;
};

// Throws DatasetError when a root is given to a data set that reads no files.
void refuse_root(const DataOptions& data);

}  // namespace ddprun::data
