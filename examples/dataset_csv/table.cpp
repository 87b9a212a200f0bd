#include "table.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string_view>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "ddprun/plugin/words.hpp"

namespace csv {
namespace {

struct Cell {
  std::string_view text;  // without the spaces around it
  Place place;
};

std::vector<Cell> cells_of(std::string_view line, std::size_t number, char delimiter) {
  std::vector<Cell> cells;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(delimiter, begin), line.size());
    std::size_t first = begin, last = end;
    while (first < last && line[first] == ' ') ++first;
    while (last > first && line[last - 1] == ' ') --last;
    cells.push_back({line.substr(first, last - first), {number, first + 1}});
    begin = end + 1;
  }
  return cells;
}

// In an error message: short, and nothing that a terminal would obey.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 40;
  return '"' + ddprun::printable(text.substr(0, kMost)) + (text.size() > kMost ? "...\"" : "\"");
}

double number_of(const Cell& cell, const std::string& file) {
  double value = 0;
  const char* const end = cell.text.data() + cell.text.size();
  const auto [stop, error] = std::from_chars(cell.text.data(), end, value);
  const bool is_number = error == std::errc() && stop == end && std::abs(value) <= std::numeric_limits<float>::max();
  if (!is_number) refuse(file, cell.place, quoted(cell.text) + ": expected a number");  // nan and inf included
  return value;
}

void read_header(const std::vector<Cell>& cells, const std::string& target, Table& table) {
  for (const Cell& cell : cells) {
    if (cell.text.empty()) refuse(table.file, cell.place, "expected the name of a column");
    const auto same = std::find(table.names.begin(), table.names.end(), cell.text);
    if (same != table.names.end())
      refuse(table.file, cell.place, quoted(cell.text) + ": the second column of this name");
    table.names.emplace_back(cell.text);
  }
  if (cells.size() < 2) refuse(table.file, {}, "expected two columns or more: features and the target");
  table.target = cells.size() - 1;
  if (target.empty()) return;
  const auto at = std::find(table.names.begin(), table.names.end(), target);
  if (at == table.names.end()) {
    throw ddprun::InvalidDataset("options.target", ddprun::expected_one_of(target, table.names));
  }
  table.target = static_cast<std::size_t>(at - table.names.begin());
}

void read_row(const std::vector<Cell>& cells, Table& table) {
  const std::size_t columns = table.names.size();
  if (cells.size() != columns) {
    refuse(table.file, cells.size() > columns ? cells[columns].place : cells.back().place,
           "expected " + std::to_string(columns) + " numbers, got " + std::to_string(cells.size()));
  }
  for (std::size_t column = 0; column < columns; ++column) {
    const double value = number_of(cells[column], table.file);
    if (column == table.target) {
      table.targets.push_back(value);
      table.target_places.push_back(cells[column].place);
    } else {
      table.features.push_back(static_cast<float>(value));
    }
  }
}

}  // namespace

void refuse(const std::string& file, Place place, const std::string& reason) {
  throw ddprun::InvalidDataset(
      "root", file + ':' + std::to_string(place.line) + ':' + std::to_string(place.column) + ": " + reason);
}

Table read_table(const std::string& path, char delimiter, const std::string& target) {
  Table table;
  table.file = path;
  std::ifstream file(path);
  if (!file) throw ddprun::InvalidDataset("root", path + ": " + std::strerror(errno));
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // a mark that some programs write
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const auto cells = cells_of(line, number, delimiter);
    if (table.names.empty()) {
      read_header(cells, target, table);
    } else {
      read_row(cells, table);
    }
  }
  if (file.bad()) throw ddprun::InvalidDataset("root", path + ": cannot be read");
  if (table.rows() == 0) refuse(path, {}, "expected a line with the names of the columns, and lines of numbers");
  return table;
}

}  // namespace csv
