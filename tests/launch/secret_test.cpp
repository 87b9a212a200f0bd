#include "launch/net/secret.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "support/error_of.hpp"
#include "support/process.hpp"
#include "support/text.hpp"
#include "support/variable.hpp"

namespace ddprun::launch {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;
using testing::Variable;

TEST_CASE("the secret is read from a file of the user, also through a link as Kubernetes makes it") {
  const testing::TempDir folder;
  const fs::path file = folder.path() / "data", link = folder.path() / "secret";
  const Secret secret = make_secret();
  std::ofstream(file) << to_hex(secret) << '\n';
  fs::permissions(file, fs::perms::owner_read);
  fs::create_symlink(file, link);
  const Variable none("DDPRUN_SECRET", std::nullopt);
  {
    const Variable named("DDPRUN_SECRET_FILE", file.string());
    CHECK(secret_of_environment() == secret);
  }
  const Variable linked("DDPRUN_SECRET_FILE", link.string());
  CHECK(secret_of_environment() == secret);
  fs::permissions(file, fs::perms::owner_read | fs::perms::group_read);
  CHECK(contains(error_of([] { secret_of_environment(); }), "can be read by other users: chmod 600 " + link.string()));
}

TEST_CASE("a file without a secret is refused in one line that names it") {
  const testing::TempDir folder;
  const Variable none("DDPRUN_SECRET", std::nullopt);
  const std::string missing = (folder.path() / "missing").string(), words = (folder.path() / "words").string();
  std::ofstream(words) << "not a secret";
  fs::permissions(words, fs::perms::owner_read);
  for (const auto& path : {missing, words, folder.path().string()}) {
    const Variable named("DDPRUN_SECRET_FILE", path);
    const std::string error = error_of([] { secret_of_environment(); });
    CHECK_MESSAGE(error.starts_with("4: "), error);
    CHECK_MESSAGE(contains(error, path), error);
    CHECK_MESSAGE(contains(error, "openssl rand -hex 32"), error);
  }
}

}  // namespace
}  // namespace ddprun::launch
