// The CIFAR-10 reader on random bytes.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "data/builtin.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

using namespace ddprun;
using namespace ddprun::data;

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
