// What the user reads about a wrong config: errors.txt has each config and its errors.
#include <doctest/doctest.h>

#include "support/golden.hpp"
#include "support/paths.hpp"
#include "support/read_file.hpp"
#include "written.hpp"

using namespace ddprun::testing;

namespace {

const std::vector<std::string> kNames = {"model.name=linear", "data.name=linear"};

}  // namespace

// A block of errors.txt is a config, overrides (--set), and the result of loading them (=>). More overrides give the
// two keys that every experiment needs, unless the config has the comment "# no names".
TEST_CASE("each config of errors.txt is accepted, or refused with its lines") {
  std::string text, config;
  std::vector<std::string> overrides;
  for (const std::string& line : read_lines(source_dir() + "/tests/cli/config/errors.txt")) {
    if (line.starts_with("=> ")) {
      if (config.empty() && overrides.empty()) continue;  // another line of the same result
      if (config.find("# no names\n") == std::string::npos) {
        overrides.insert(overrides.begin(), kNames.begin(), kNames.end());
      }
      const std::string errors = errors_of(config, overrides);
      std::istringstream lines(errors.empty() ? "accepted" : errors);
      for (std::string error; std::getline(lines, error);) text += "=> " + error + "\n";
      config.clear();
      overrides.clear();
      continue;
    }
    text += line + "\n";
    if (line.starts_with("--set ")) {
      overrides.push_back(line.substr(6));
    } else if (!line.empty() && !line.starts_with("## ")) {
      config += line + "\n";
    }
  }
  check_golden("cli/config/errors.txt", text);
}

TEST_CASE("a duration needs a unit and must be in its range") {
  const std::string expected = ": expected a duration from 1ms to 24h, such as \"30s\"";
  for (const std::string value : {"30", "\"30\"", "\"-1s\"", "\"0s\"", "\"25h\"", "\"inf s\"", "\"1e3s\"", "\"s\"",
                                  "\"\"", "\"1 s\"", "\"1d\""}) {
    CHECK(errors_of("comm.timeout = " + value + required) == "exp.toml:1:16: comm.timeout = " + value + expected);
  }
}

TEST_CASE("the validation set is a fraction or a number of samples") {
  for (const std::string good : {"0", "0.1", "1", "5000"}) CHECK(errors_of("data.validation = " + good, kNames) == "");
  for (const std::string wrong :
       {"0.0", "-0.0", "1.0", "2.5", "-1", "-0.1", "nan", "inf", "true", "'0.1'", "[0.1]", "1099511627777"}) {
    const std::string error = errors_of("data.validation = " + wrong, kNames);
    INFO(error);
    CHECK(error.starts_with("exp.toml:1:19: data.validation = "));
    CHECK(error.ends_with(": expected a fraction above 0 and below 1, or an integer from 0 to 1099511627776"));
  }
}

TEST_CASE("a name that cannot be a folder, and a file name that is no UTF-8, are refused") {
  CHECK(errors_of("experiment.name = \"" + std::string(201, 'x') + "\"" + required) != "");
  const TempDir dir;
  CHECK_THROWS_AS(ddprun::config::load(dir.write("x\xff.toml", required), {}), ddprun::Error);
}
