// The flight recorder's files, and what a report says about them.
#include "fuzz/target.hpp"

#include <algorithm>
#include <utility>

#include "ddprun/error.hpp"
#include "tools/lib/run.hpp"
#include "tools/report/report.hpp"

using namespace ddprun;

// The input has the files of one or two ranks, with a zero byte between them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static const std::string path = "file";
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), size);
  report::CollectivesByRank files;
  for (const std::string_view text : {input.substr(0, end), input.substr(std::min(end + 1, size))}) {
    try {
      auto file = tools::parse_collectives(std::string(text), path);
      const int64_t rank = file.rank;
      files[rank] = std::move(file);
    } catch (const Error& error) {
      fuzz::require(error.code() == ExitCode::usage, "a damaged file is a user's error", error.what());
      fuzz::require_message(error.what(), path + ": ");
    }
  }
  if (!files.empty()) report::collectives_section(files);
  return 0;
}
