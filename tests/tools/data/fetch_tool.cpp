// Fetches one file, for tests that need a separate process: fetch_tool FOLDER BASE NAME BYTES SHA256
#include <cstdio>
#include <cstdlib>

#include "ddprun/error.hpp"
#include "tools/data/fetch.hpp"

int main(int argc, char** argv) {
  using namespace ddprun;
  if (argc != 6) return static_cast<int>(ExitCode::usage);
  const fetch::DataSet set{"some", argv[1], true, {argv[2]}, {{argv[3], std::atoll(argv[4]), argv[5]}}};
  try {
    std::printf("%s\n", fetch::fetch(set, {}).c_str());
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
