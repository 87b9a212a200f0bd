#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "checkpoint/some_tensors.hpp"
#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::checkpoint;
using namespace ddprun::testing;

TEST_CASE("a written file reads back: names, dtypes, shapes, bytes and metadata") {
  const TempDir dir;
  const std::string path = dir.path() / "a.safetensors";
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> steps = {469};
  write_safetensors(path, {{"fc1.weight", "F32", {2, 3}, weight.data(), 24}, {"step", "I64", {}, steps.data(), 8}},
                    {{"epoch", "1"}, {"note", "\"quoted\"\n"}});
  const File file = read_safetensors(path);
  CHECK(file.tensors.size() == 2);
  CHECK(file.at("fc1.weight").dtype == "F32");
  CHECK(file.at("fc1.weight").shape == std::vector<int64_t>{2, 3});
  CHECK(values_of<float>(file.at("fc1.weight")) == weight);
  CHECK(file.at("step").shape.empty());
  CHECK(values_of<int64_t>(file.at("step")) == steps);
  CHECK(file.metadata == Metadata{{"epoch", "1"}, {"note", "\"quoted\"\n"}});
}

TEST_CASE("every tensor starts at a multiple of its element's size") {
  const TempDir dir;
  const std::string path = dir.path() / "a.safetensors";
  const std::vector<uint8_t> bytes = {1, 2, 3};
  const std::vector<float> floats = {1.5};
  const std::vector<double> doubles = {2.5};
  write_safetensors(path, {vector_of("u", "U8", bytes), vector_of("f", "F32", floats), vector_of("d", "F64", doubles)},
                    {});
  const std::string text = read_file(path);
  uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  CHECK(length % 8 == 0);
  const auto header = nlohmann::json::parse(text.substr(8, length));
  CHECK(header["d"]["data_offsets"][0].get<size_t>() % 8 == 0);
  CHECK(header["f"]["data_offsets"][0].get<size_t>() % 4 == 0);
  CHECK(values_of<uint8_t>(read_safetensors(path).at("u")) == bytes);
}

TEST_CASE("any set of tensors is equal after writing and reading") {
  const TempDir dir;
  const std::string path = dir.path() / "any.safetensors";
  const bool held = rc::check([&] {
    const auto contents = *rc::gen::container<std::vector<std::string>>(rc::gen::string<std::string>());
    std::vector<TensorView> tensors;
    for (const std::string& content : contents) {
      const std::string name = std::string("tensor.").append(std::to_string(tensors.size()));
      tensors.push_back({name, "U8", {1, static_cast<int64_t>(content.size())}, content.data(), content.size()});
    }
    write_safetensors(path, tensors, {});
    const File file = read_safetensors(path);
    RC_ASSERT(file.tensors.size() == tensors.size());
    for (const TensorView& tensor : tensors) {
      const Tensor& got = file.at(tensor.name);
      const std::string bytes(reinterpret_cast<const char*>(got.data.data()), got.data.size());
      RC_ASSERT(got.shape == tensor.shape);
      RC_ASSERT(bytes == std::string(static_cast<const char*>(tensor.data), tensor.bytes));
    }
  });
  CHECK(held);
}

TEST_CASE("an inconsistent tensor is a logic error, and nothing is written") {
  const TempDir dir;
  const std::string path = dir.path() / "a.safetensors";
  const std::vector<float> values = {1, 2};
  const TensorView good = vector_of("w", "F32", values);
  TensorView wrong_bytes = good, wrong_dtype = good, wrong_name = good;
  wrong_bytes.shape = {3};
  wrong_dtype.dtype = "float32";
  wrong_name.name = "__metadata__";
  CHECK_THROWS_AS(write_safetensors(path, {wrong_bytes}, {}), std::logic_error);
  CHECK_THROWS_AS(write_safetensors(path, {wrong_dtype}, {}), std::logic_error);
  CHECK_THROWS_AS(write_safetensors(path, {wrong_name}, {}), std::logic_error);
  CHECK_THROWS_AS(write_safetensors(path, {good, good}, {}), std::logic_error);
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a missing tensor is reported with the file") {
  const TempDir dir;
  const std::string path = dir.path() / "a.safetensors";
  write_safetensors(path, {}, {});
  const std::string error = error_of([&] { read_safetensors(path).at("fc9.bias"); });
  CHECK(error.starts_with("2: "));
  CHECK(error == "2: " + path + ": has no tensor \"fc9.bias\"");
}
