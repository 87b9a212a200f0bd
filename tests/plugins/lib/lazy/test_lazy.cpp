// A lazily loaded library is used only if it was built from the headers of its plugin.
#include <doctest/doctest.h>

#include "lazy/library.hpp"

namespace {

using ddprun::CommError;
using ddprun::CommStatus;

constexpr int kPlugin = 0;

ddprun::Host host_of_one() {
  ddprun_comm_host host = {};
  host.struct_size = sizeof host;
  host.size = 1;
  host.algorithm = "auto";
  return ddprun::Host(host);
}

std::unique_ptr<ddprun::CommBackend> join(const char* file) {
  ddprun::lazy::Library library = DDPRUN_LAZY_LIBRARY(alone, kPlugin, "build it");
  library.file = file;
  return ddprun::lazy::join(library, host_of_one());
}

std::string refusal(const char* file) {
  try {
    join(file);
  } catch (const CommError& error) {
    CHECK(error.status() == CommStatus::unsupported);
    return error.what();
  }
  return "not refused";
}

std::string built_from_others(const std::string& file, const std::string& version) {
  return file + " was built from other headers than its plugin (version " + version + ", the plugin has " +
         ddprun::lazy::kVersion + "): build and install both together";
}

}  // namespace

TEST_CASE("a library of the plugin's version creates the backend") {
  CHECK(join(LAZY_TEST_fitting)->barrier().wait(std::chrono::seconds(1)).algorithm == std::string("copy"));
}

TEST_CASE("a library of another version is refused before it is called") {
  CHECK(refusal(LAZY_TEST_older) == built_from_others(LAZY_TEST_older, "older"));
  CHECK(refusal(LAZY_TEST_unversioned) == built_from_others(LAZY_TEST_unversioned, "unknown"));
}

TEST_CASE("the error names a missing library, and what to do") {
  CHECK(refusal("/nowhere/libnone.so").starts_with("a library is missing: /nowhere/libnone.so"));
}
