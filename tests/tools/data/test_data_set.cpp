// Whole data sets: the output, their use in a config, and the real MNIST if it is available.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "tools/data/fetch.hpp"
#include "tools/data/fetching.hpp"

using namespace ddprun;
using namespace ddprun::testing;

TEST_CASE("a mirror replaces the official bases, with or without its last slash") {
  Fetching fetching;
  const fetch::DataSet set{"some", "nowhere", true, {"http://127.0.0.1:1/"}, {fetching.file.remote()}};
  const std::string folder = fetching.file.folder().string();
  std::string mirror = fetching.server.base("plain");
  mirror.pop_back();
  CHECK(fetch::fetch(set, {folder, mirror}) ==
        "some is in " + folder + ": set data.name = \"some\" and data.root = \"" + folder + "\"");
  CHECK(fetching.file.arrived());
  CHECK(fetching.server.requests() == std::vector<std::string>{"/plain/some.gz - 200 300000"});
}

TEST_CASE("data.root is named only if it differs from the default") {
  Fetching fetching;
  const std::string folder = fetching.file.folder().string();
  const auto usage = [&](bool found_in_root) {
    return fetch::fetch({"some", folder, found_in_root, {fetching.server.base("plain")}, {fetching.file.remote()}}, {});
  };
  CHECK(usage(true) == "some is in " + folder + ": set data.name = \"some\"");
  CHECK(usage(false) == "some is in " + folder + ": set data.name = \"some\" and data.root = \"" + folder + "\"");
}

TEST_CASE("a mirror with an unsupported URL is a usage error") {
  for (const char* mirror : {"ftp://host/", "data/mnist", "file:/x"}) {
    const std::string error = error_of([&] { fetch::fetch(fetch::find_data_set("mnist"), {"/nowhere", mirror}); });
    CHECK(error ==
          std::string("2: --mirror ") + mirror + ": expected a URL that begins with http://, https:// or file:///");
  }
}

TEST_CASE("a mirror with a space is refused with advice") {
  const std::string error = error_of([] {
    fetch::fetch(fetch::find_data_set("mnist"), {"/nowhere", "file:///tmp/a b"});
  });
  CHECK(error == "2: --mirror file:///tmp/a b: a URL has no spaces; write %20 for each");
}

TEST_CASE("the real MNIST: fetched, verified, and refused if a bit is wrong") {
  const char* data = std::getenv("DDPRUN_TEST_DATA");
  if (data == nullptr || !std::filesystem::exists(std::filesystem::path(data) / "mnist")) {
    MESSAGE("skipped: DDPRUN_TEST_DATA names no folder that holds mnist/");
    return;
  }
  const fetch::DataSet& mnist = fetch::find_data_set("mnist");
  const Server server(std::filesystem::path(data) / "mnist");
  const TempDir root;
  const fetch::FetchOptions options{root.path().string(), server.base("plain")};
  fetch::fetch(mnist, options);
  for (const fetch::RemoteFile& file : mnist.files) {
    CHECK(std::filesystem::file_size(root.path() / file.name) == static_cast<std::uintmax_t>(file.bytes));
    CHECK(sha256_of(read_file(root.path() / file.name)) == file.sha256);
  }
  CHECK(server.requests().size() == 4);
  fetch::fetch(mnist, options);
  CHECK(server.requests().size() == 4);  // no further request

  const TempDir elsewhere;
  const std::string error = error_of([&] {
    fetch::fetch(mnist, {elsewhere.path().string(), server.base("corrupt-4000")});
  });
  CHECK_MESSAGE(error.starts_with("1: cannot download train-images-idx3-ubyte.gz: http://127.0.0.1:"), error);
  CHECK(contains(error, "SHA-256 expected " + mnist.files[0].sha256));
  CHECK(std::filesystem::is_empty(elsewhere.path()));
}
