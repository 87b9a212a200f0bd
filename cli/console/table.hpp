// console: output for the terminal: tables, lines, a progress bar, units. It formats; it measures nothing. Torch-free.
#pragma once

#include <cstddef>
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
