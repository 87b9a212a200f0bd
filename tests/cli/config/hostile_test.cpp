// Invalid and malicious input gives one clear line, never a crash.
#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <unistd.h>

#include "written.hpp"

using namespace ddprun;
using testing::errors_of;
using testing::required;

namespace {

std::string error_of(const std::string& path) {
  try {
    config::load(path, {});
    return "";
  } catch (const Error& error) {
    return error.code() == ExitCode::usage ? error.what() : "wrong exit code";
  }
}

// Random bytes mixed with pieces of real files, so that some cases get past the parser.
rc::Gen<std::string> hostile_text() {
  const auto piece =
      rc::gen::oneOf(rc::gen::element<std::string>("[launch]\n", "[model]\nname = \"x\"\n", "[data]\nname = 'y'\n",
                                                   "nproc", "comm.options", " = ", "\"", "'''", "{", "}", "[", "]",
                                                   "[[", ",", ".", "\n", "# ", "1", "-", "0.5", "1e999", "nan", "true",
                                                   "2024-01-01", "\\u0000", "\"30s\"", "99999999999999999999"),
                     rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const std::vector<std::string>& pieces) {
    std::string text;
    for (const std::string& part : pieces) text += part;
    return text;
  });
}

}  // namespace

TEST_CASE("a file that cannot be read gives one line that says why") {
  const testing::TempDir dir;
  const std::string folder = dir.path().string();
  CHECK(error_of(folder + "/none.toml") ==
        folder + "/none.toml: cannot be read (No such file or directory); give a TOML file");
  CHECK(error_of(folder) == folder + ": cannot be read (Is a directory); give a TOML file");
  CHECK(error_of("/proc/self/mem") == "/proc/self/mem: cannot be read (Input/output error); give a TOML file");
  CHECK(error_of("") == ": cannot be read (No such file or directory); give a TOML file");
  const std::string locked = dir.write("locked.toml", "");
  if (geteuid() == 0) {
    MESSAGE("not tried: root reads every file, so that none is unreadable here");
    return;
  }
  chmod(locked.c_str(), 0);
  CHECK(error_of(locked) == locked + ": cannot be read (Permission denied); give a TOML file");
}

TEST_CASE("a syntax error names its location") {
  CHECK(errors_of("[train]\nepochs = \n").starts_with("exp.toml:2:10: Error while parsing key-value pair"));
  CHECK(errors_of("a = 1\na = 2\n").starts_with("exp.toml:2:"));
  const std::string unquoted = errors_of("[model]\nname = linear  # as in the tutorial\n");
  CHECK(unquoted.starts_with("exp.toml:2:"));
  CHECK_MESSAGE(unquoted.ends_with("; a text needs quotes"), unquoted);
  CHECK(errors_of("lr = 0.1.2\n").find("quotes") == std::string::npos);
  CHECK(errors_of("a = \"\xff\"").starts_with("exp.toml:1:"));
}

TEST_CASE("input made to exhaust stack or memory is refused") {
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  CHECK(errors_of(deep + " = 1") == "exp.toml: more than 1000 dots; this is no configuration");
  CHECK(errors_of("a = " + std::string(100000, '[')).starts_with("exp.toml:1:"));
  CHECK(errors_of(std::string(2 << 20, '#')) == "exp.toml: larger than 1 MiB; this is no configuration");
  CHECK(error_of("/dev/zero") == "/dev/zero: larger than 1 MiB; this is no configuration");
  CHECK(errors_of("model.name = '" + std::string(5000, 'x') + "'\ndata.name = 3") ==
        "exp.toml:2:13: data.name = 3: expected a string of at least one character");
  CHECK(errors_of("comm.check = '" + std::string(5000, 'x') + "'" + required) ==
        "exp.toml:1:14: comm.check = a long text: expected \"fingerprint\" or \"off\"");
}

TEST_CASE("random files and overrides load or give a usage error with a location in every line") {
  CHECK(rc::check([] {
    const std::string text = *hostile_text();
    const auto overrides = *rc::gen::container<std::vector<std::string>>(
        rc::gen::map(hostile_text(), [](const std::string& value) { return "comm.options.x=" + value; }));
    const std::string errors = errors_of(text, overrides);
    RC_ASSERT(errors != "wrong exit code");
    for (std::size_t begin = 0; begin < errors.size();) {
      const std::string line = errors.substr(begin, errors.find('\n', begin) - begin);
      RC_ASSERT(line.starts_with("exp.toml:") || line.starts_with("--set "));
      begin += line.size() + 1;
    }
  }));
}
