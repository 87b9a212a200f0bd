// A table of numbers from a CSV file: a line with the names of the columns, then a line of numbers for each row. One
// column is the target, the others are the features.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace csv {

// A place in a file, as compilers print it: both from 1.
struct Place {
  std::size_t line = 1, column = 1;
};

struct Table {
  std::string file;                  // for messages
  std::vector<std::string> names;    // of all columns
  std::size_t target = 0;            // its column
  std::vector<float> features;       // row after row, without the target
  std::vector<double> targets;       // of each row
  std::vector<Place> target_places;  // of each row

  std::size_t rows() const { return targets.size(); }
};

// Throws ddprun::InvalidDataset: "train.csv:3:7: reason".
[[noreturn]] void refuse(const std::string& file, Place place, const std::string& reason);

// target: the name of a column; empty: the last one. Throws ddprun::InvalidDataset if the file cannot be read, is not
// such a table, or does not have the target.
Table read_table(const std::string& path, char delimiter, const std::string& target);

}  // namespace csv
