#include "data/byte_file.hpp"

#include <doctest/doctest.h>

#include "data/cifar10_files.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

namespace {

constexpr ArchiveLimits limits{10'000, 1'000'000};

std::string text(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

// The result of reading the member "wanted" of an archive, without the archive's path.
std::string outcome(const std::string& bytes, const ArchiveLimits& allowed = limits) {
  const TempDir folder;
  const std::string path = folder.write("a.tar.gz", bytes);
  try {
    const auto members = read_members(path, {"wanted"}, allowed);
    return members.contains("wanted") ? "read: " + text(members.at("wanted")) : "not there";
  } catch (const InvalidDataset& error) {
    const std::string what = error.what();
    if (error.key() != "root" || !what.starts_with(path)) return "another error: " + what;
    return what.substr(path.size());
  }
}

const TarMember wanted{"wanted", "content"};

}  // namespace

TEST_CASE("named members are read from a packed or plain archive, others are skipped") {
  const std::string bytes = tar({{"folder/", "", '5'}, {"folder/other", "other"}, wanted, {"wanted2", "more"}});
  CHECK(outcome(gzip(bytes)) == "read: content");
  CHECK(outcome(bytes) == "read: content");
  CHECK(outcome(gzip(tar({{"folder/wanted", "content"}}))) == "not there");
  const TempDir folder;
  const auto path = folder.write("a.tar", bytes);
  const auto members = read_members(path, {"wanted2", "wanted", "folder/other", "nowhere"}, limits);
  CHECK(members.size() == 3);
  CHECK(text(members.at("folder/other")) == "other");
  CHECK(text(members.at("wanted2")) == "more");
}

TEST_CASE("a member longer than every buffer, and an empty one, are complete") {
  const std::string content = ramp(300'000);
  CHECK(outcome(gzip(tar({{"wanted", content}})), {300'000, 1'000'000}) == "read: " + content);
  CHECK(outcome(gzip(tar({{"wanted", ""}}))) == "read: ");
}

TEST_CASE("names that lead out of the folder are refused, requested or not") {
  const auto refused = [](const std::string& name) {
    return outcome(gzip(tar({wanted, {name, "x"}}))) ==
           ": member \"" + name + "\" has a name that leads out of the archive's folder";
  };
  CHECK(refused("../wanted"));
  CHECK(refused("a/../../wanted"));
  CHECK(refused("a/.."));
  CHECK(refused("/etc/passwd"));
  CHECK(outcome(gzip(tar({wanted, {"a..b/c..", "x"}}))) == "read: content");
}

TEST_CASE("links and devices are refused, requested or not") {
  const auto refused = [](const TarMember& member) {
    return outcome(gzip(tar({member}))) ==
           ": member \"" + member.name + "\" is a link or a device, which no data set holds";
  };
  CHECK(refused({"wanted", "", '2', "/etc/passwd"}));
  CHECK(refused({"wanted", "", '1', "other"}));
  CHECK(refused({"wanted", "", '3'}));
  CHECK(refused({"wanted", "", '4'}));
  CHECK(refused({"wanted", "", '6'}));
  CHECK(refused({"unwanted", "", '2', "wanted"}));
}

TEST_CASE("a name with control characters is printed on one line") {
  CHECK(outcome(gzip(tar({{"../a\n\x1b[2J", "x"}}))) ==
        ": member \"../a??[2J\" has a name that leads out of the archive's folder");
}

TEST_CASE("a member whose header has too large a size is refused before it is read") {
  CHECK(outcome(gzip(tar({{"wanted", "short", '0', "", 10'001}}))) ==
        ": member \"wanted\" has 10001 bytes, where at most 10000 are read");
  CHECK(outcome(gzip(tar({{"wanted", ramp(10'000)}}))) == "read: " + ramp(10'000));
}

TEST_CASE("unpacking a huge archive stops at the limit") {
  const std::string zeros(3'000'000, '\0');
  const std::string too_large = ": unpacks to more than the 1000000 bytes that are read";
  CHECK(outcome(gzip(tar({{"bomb", zeros}, wanted}))) == too_large);
  CHECK(outcome(gzip(tar({wanted}) + zeros)) == too_large);  // after the end of the archive
  CHECK(outcome(gzip(tar({{"bomb", "", '0', "", 077777777777}}) + zeros)) == too_large);
}

TEST_CASE("a duplicate member is refused") {
  CHECK(outcome(gzip(tar({wanted, {"wanted", "other"}}))) == ": holds the member \"wanted\" twice");
}

TEST_CASE("truncated or damaged archives are refused") {
  const std::string bytes = tar({wanted, {"other", ramp(5'000)}});
  const std::string packed = gzip(bytes);
  for (const std::size_t cut : {std::size_t{3}, packed.size() / 2, packed.size() - 1}) {
    CHECK(outcome(packed.substr(0, cut)).find("the gzip data ends early") != std::string::npos);
  }
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 8] ^= 1;
  CHECK(outcome(wrong_sum).find("the gzip data is damaged (incorrect data check)") != std::string::npos);
  CHECK(outcome(gzip(bytes.substr(0, 1'500))).starts_with(": the archive is damaged ("));
  CHECK(outcome(gzip(bytes.substr(0, 515))).starts_with(": "));
  std::string wrong_header = bytes;
  wrong_header[3] ^= 1;
  CHECK(outcome(gzip(wrong_header)).starts_with(": the archive is damaged ("));
  CHECK(outcome("").starts_with(": the archive is damaged ("));
  CHECK(outcome("<!DOCTYPE html><title>404</title>").starts_with(": the archive is damaged ("));
}
