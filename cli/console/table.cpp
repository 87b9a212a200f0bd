#include "cli/console/table.hpp"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/text.hpp"

namespace ddprun::console {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastText = 12;  // the least width of a column whose texts are broken

size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

// The text in lines of whole words; a further line of a text that begins with "-> " is indented.
std::vector<std::string> broken(const std::string& text, size_t width) {
  if (width_of(text) <= width) return {text};
  const std::string indent = text.starts_with("-> ") ? "   " : "";
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && width_of(lines.back()) + 1 + width_of(word) > width)
      lines.push_back(indent + word);
    else
      lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<Table::Column>& columns,
                    const std::vector<size_t>& widths, size_t indent) {
  std::string line(indent, ' ');
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(std::max(widths[i], width_of(cells[i])) - width_of(cells[i]), ' ');
    line += columns[i].align == Align::left ? cells[i] + padding : padding + cells[i];
    line.append(kGap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  if (cells.size() > columns_.size()) throw std::logic_error("a table row has more cells than the table has columns");
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(int indent, int columns) const {
  const auto margin = static_cast<size_t>(indent), limit = static_cast<size_t>(columns);
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    widths.push_back(width_of(titles[i]));
    for (const auto& cells : rows_) widths[i] = std::max(widths[i], width_of(cells[i]));
  }
  const auto others = std::accumulate(widths.begin(), widths.end() - 1, margin + kGap * (widths.size() - 1));
  const bool breaks = columns > 0 && columns_.back().align == Align::left && others + kLeastText <= limit;
  if (breaks && others + widths.back() > limit) {
    widths.back() = limit - others;
  }
  std::string text;
  const bool titled =
      std::any_of(titles.begin(), titles.end(), [](const std::string& title) { return !title.empty(); });
  if (titled) text += line_of(titles, columns_, widths, margin);
  for (auto cells : rows_) {
    for (std::string& line : broken(cells.back(), widths.back())) {
      cells.back() = std::move(line);
      text += line_of(cells, columns_, widths, margin);
      std::fill(cells.begin(), cells.end(), "");
    }
  }
  return text;
}

std::string Table::printed(int indent) const {
  return text(indent, columns_of(STDOUT_FILENO));
}

}  // namespace ddprun::console
