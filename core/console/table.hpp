// console: output for the terminal: tables, lines, a progress bar, units. It formats; it measures nothing. Torch-free.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ddprun::console {

enum class Align { left, right };

// Plain text in aligned columns, two spaces apart; ASCII only, no trailing spaces. Single-threaded.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  // If no column has a title, no header is printed.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column; missing cells are empty, too many are a std::logic_error.
  void row(std::vector<std::string> cells);
  // Each line starts with `indent` spaces and ends with a newline. Widths count UTF-8 characters, not bytes.
  std::string text(int indent = 0) const;

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ddprun::console
