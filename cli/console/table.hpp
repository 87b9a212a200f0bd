// console: output for the terminal: tables, lines, a progress bar. It formats; it measures nothing. Torch-free. Here:
// numbers and tables for people.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ddprun::console {

// Three significant digits: "532 ns", "4.21 us", "12.3 ms", "1.52 s", "2 min 05 s", "1 h 02 min". NaN gives "-".
std::string human_time(double seconds);
// Remaining time in whole seconds: "42 s left", "2 min 05 s left"; "" for NaN and if nothing is left.
std::string human_time_left(double seconds);
// Powers of 1024: "512 B", "1.50 KiB", "25.0 MiB".
std::string human_bytes(int64_t bytes);
// Thousands separated by commas: "60,000".
std::string human_count(int64_t count);
// "1 epoch", "3 epochs", "60,000 samples".
std::string several(int64_t count, const std::string& thing);
// A loss or another figure with at least four significant digits: "0.4321", "2.3026", "0.009500", "1.234e-05".
std::string human_number(double value);
// Samples per second: "61,234 samples/s"; below 100 with decimals: "12.3 samples/s".
std::string human_rate(double samples_per_second);
// A share of 1: "12.3 %".
std::string percent(double share, int decimals);
// Powers of 1000, as nccl-tests counts bandwidth: "3.41 MB/s", "12.5 GB/s". NaN gives "-".
std::string human_bandwidth(double bytes_per_second);

enum class Align { left, right };

// Plain text in aligned columns, two spaces apart; ASCII only, no trailing spaces. Single-threaded.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  // right: the titles of those that are aligned right.
  static std::vector<Column> columns(const std::vector<std::string>& titles, const std::set<std::string>& right) {
    std::vector<Column> columns;
    for (const std::string& title : titles)
      columns.push_back({title, right.contains(title) ? Align::right : Align::left});
    return columns;
  }

  // If no column has a title, no header is printed.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column; missing cells are empty, too many are a std::logic_error.
  void row(std::vector<std::string> cells);
  // Each line starts with `indent` spaces and ends with a newline. Widths count UTF-8 characters, not bytes. A table
  // that is wider than `columns` (0: no limit) breaks the texts of its last column between words, if that column is
  // aligned left. No figure is broken.
  std::string text(int indent = 0, int columns = 0) const;

  // text() for stdout: within the columns of its terminal.
  std::string printed(int indent = 0) const;

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ddprun::console
