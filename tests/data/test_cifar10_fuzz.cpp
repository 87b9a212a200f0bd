// The CIFAR-10 readers on random bytes.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "data/builtin.hpp"
#include "data/byte_file.hpp"
#include "data/cifar10_files.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

namespace {

// Whether the bytes are records; a refusal must be an error in the file.
bool readable(const std::string& bytes) {
  const std::vector<uint8_t> file(bytes.begin(), bytes.end());
  try {
    check_cifar10_records(file, "file");
    return true;
  } catch (const InvalidDataset& error) {
    RC_ASSERT(std::string(error.what()).starts_with("file: offset "));
    return false;
  }
}

// Reads arbitrary bytes as an archive: its members are within the limits, or the error names the archive.
void read_or_refuse(const TempDir& folder, const std::string& bytes) {
  const std::string path = folder.write("archive", bytes);
  try {
    for (const auto& [name, member] : read_members(path, {"a", "b"}, {20'000, 200'000})) {
      RC_ASSERT(member.size() <= std::size_t{20'000});
    }
  } catch (const InvalidDataset& error) {
    RC_ASSERT(std::string(error.what()).starts_with(path + ": "));
  }
}

std::string flipped(std::string bytes) {
  const auto flips = *rc::gen::inRange(1, 20);
  for (int i = 0; i < flips; ++i) {
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = static_cast<char>(*rc::gen::arbitrary<uint8_t>());
  }
  return bytes;
}

}  // namespace

TEST_CASE("records are read if and only if they are complete and every label is a class") {
  CHECK(rc::check([] {
    const auto labels = *rc::gen::container<std::vector<uint8_t>>(rc::gen::inRange<uint8_t>(0, 11));
    const auto rest = *rc::gen::weightedElement<std::size_t>({{3, 0}, {1, 1}, {1, 3072}});
    std::string bytes;
    for (const uint8_t label : labels) bytes += static_cast<char>(label) + std::string(3072, '\xff');
    const bool good = !labels.empty() && std::count(labels.begin(), labels.end(), 10) == 0;
    RC_ASSERT(readable(bytes + std::string(rest, '\0')) == (good && rest == 0));
  }));
}

TEST_CASE("a damaged tar archive is read or refused") {
  const TempDir folder;
  const std::string good = tar({{"a", ramp(700)}, {"folder/", "", '5'}, {"b", ramp(5'000)}});
  CHECK(rc::check([&] { read_or_refuse(folder, flipped(good)); }));
  CHECK(rc::check([&] { read_or_refuse(folder, gzip(flipped(good))); }));
  const std::string packed = gzip(good);
  CHECK(rc::check([&] { read_or_refuse(folder, flipped(packed)); }));
}

TEST_CASE("tar headers of any kind, size and name are read or refused") {
  const TempDir folder;
  CHECK(rc::check([&] {
    std::vector<TarMember> members;
    const auto count = *rc::gen::inRange(1, 6);
    for (int i = 0; i < count; ++i) {
      TarMember member{*rc::gen::element<std::string>("a", "b", "../a", "/a", "a/b", ""),
                       ramp(*rc::gen::inRange(0, 2'000))};
      member.type = *rc::gen::element('0', '1', '2', '3', '5', '7', 'L', 'K', 'S', 'x', 'g', 'V', '\0');
      member.size = *rc::gen::element<std::size_t>(member.content.size(), 0, 1'000, 30'000, 0777777777, 077777777777);
      members.push_back(member);
    }
    read_or_refuse(folder, tar(members));
  }));
}
