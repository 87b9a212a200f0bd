#include "tools/conformance/printer.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>

#include "base/file.hpp"

namespace ddprun::conformance {
namespace {

std::string indented(const std::string& text) {
  std::string result = "        ";
  for (const char c : text) result += c == '\n' ? "\n        " : std::string(1, c);
  return result + '\n';
}

void require_folder(const std::string& option, const std::string& path) {
  if (path.empty()) return;
  const std::string missing = missing_folder(path);
  if (!missing.empty()) throw Error(ExitCode::usage, option + " " + path + ": there is no folder " + missing);
}

}  // namespace

Printer::Printer(const CheckOptions& options, Tested plugin)
    : verbose_(options.verbose), plugin_(std::move(plugin)), junit_path_(options.junit), json_path_(options.json) {
  require_folder("--junit", junit_path_);
  require_folder("--json", json_path_);
}

void Printer::add(const Result& result) {
  results_.push_back(result);
  const std::string name = result.world + ": " + result.name;
  for (const auto& note : result.notes) notes_.push_back(name + ": " + note);
  switch (result.state) {
    case Result::State::passed:
      ++passed_;
      ++line_of(result.group).passed;
      if (verbose_) std::cout << "passed  " << name << '\n';
      break;
    case Result::State::skipped:
      ++skipped_;
      skips_.push_back(name + ": " + result.text);
      break;
    case Result::State::not_run:
      ++not_run_;
      ++left_out_[{result.world, result.text}];
      break;
    case Result::State::failed:
      ++failed_;
      ++line_of(result.group).failed;
      std::cout << "FAILED  " << name << '\n' << indented(result.text) << std::flush;
  }
}

void Printer::skip(const std::string& what, std::size_t combinations) {
  skips_.push_back(what);
  undeclared_.push_back({what, combinations});
  skipped_ += combinations;
}

void Printer::end_world(const std::string& world) {
  for (const auto& line : lines_) {
    std::cout << std::left << std::setw(20) << world << std::setw(24) << line.group << std::right << std::setw(6)
              << line.passed << " passed";
    if (line.failed > 0) std::cout << std::setw(6) << line.failed << " FAILED";
    std::cout << '\n';
  }
  std::cout << std::flush;
  lines_.clear();
}

ExitCode Printer::close() {
  for (const auto& note : notes_) std::cout << "note: " << note << '\n';
  for (const auto& skip : skips_) std::cout << "skipped: " << skip << '\n';
  for (const auto& [where, count] : left_out_) {
    std::cout << "not run: " << where.first << ": " << count << " cases: " << where.second << '\n';
  }
  std::cout << passed_ << " passed, " << failed_ << " failed, " << skipped_ << " skipped";
  if (not_run_ > 0) std::cout << ", " << not_run_ << " not run";
  std::cout << std::endl;
  if (!junit_path_.empty()) replace_file(junit_path_, junit_of(plugin_, results_));
  if (!json_path_.empty()) replace_file(json_path_, json_of(plugin_, results_, undeclared_));
  return failed_ == 0 ? ExitCode::ok : ExitCode::gate;
}

Printer::Line& Printer::line_of(const std::string& group) {
  const auto found = std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) { return line.group == group; });
  return found != lines_.end() ? *found : lines_.emplace_back(Line{.group = group});
}

}  // namespace ddprun::conformance
