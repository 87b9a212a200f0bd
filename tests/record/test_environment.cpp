#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/environment.hpp"
#include "support/read_file.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::testing;
using nlohmann::json;

TEST_CASE("the environment describes this machine, and has the caller's additions") {
  const TempDir run;
  record::write_environment(run.path(),
                            record::collect_environment({{"torch", "2.11.0"}, {"library.gloo", "gloo 0.5"}}));
  const json object = json::parse(read_file(run.path() / "environment.json"));

  char host[256] = {};
  gethostname(host, sizeof host - 1);
  CHECK(object.at("host") == host);
  CHECK(object.at("torch") == "2.11.0");
  CHECK(object.at("library.gloo") == "gloo 0.5");
  CHECK(object.at("cores").get<int>() >= 1);
  CHECK(object.at("host_cores").get<int>() >= object.at("cores").get<int>());
  CHECK(object.at("memory_bytes").get<int64_t>() > (int64_t{1} << 26));
  for (const char* key : {"ddprun", "compiler", "date", "kernel"}) {
    CAPTURE(key);
    CHECK_FALSE(object.at(key).get<std::string>().empty());
  }
}

TEST_CASE("peak memory grows with what the process touches") {
  const int64_t before = record::peak_memory_bytes();
  REQUIRE(before > 0);
  const std::vector<char> touched(static_cast<size_t>(before) + (64 << 20), 'x');
  CHECK(record::peak_memory_bytes() >= before + (32 << 20));
  CHECK(touched.back() == 'x');
}

TEST_CASE("print this process's peak memory, for the case below" * doctest::skip()) {
  std::printf("peak %lld\n", static_cast<long long>(record::peak_memory_bytes()));
}

TEST_CASE("peak memory is that of the process itself, not of its parent") {
  const std::vector<char> large(std::size_t{256} << 20, 'x');
  const std::string command = "/proc/" + std::to_string(getpid()) + "/exe --no-skip --test-case='print this*'";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> child(popen(command.c_str(), "r"), pclose);
  REQUIRE(child);
  long long peak = -1;
  std::array<char, 256> line;
  while (std::fgets(line.data(), line.size(), child.get()) != nullptr) std::sscanf(line.data(), "peak %lld", &peak);
  CHECK(peak > 0);
  CHECK(peak < static_cast<long long>(large.size()));
}
