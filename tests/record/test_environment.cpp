#include <doctest/doctest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/environment.hpp"
#include "support/read_file.hpp"
#include "support/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::testing;
using nlohmann::json;

TEST_CASE("the environment tells this machine and what the caller adds") {
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
