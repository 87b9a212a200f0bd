// The reader must refuse damaged and malicious files.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "checkpoint/some_tensors.hpp"
#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::checkpoint;
using namespace ddprun::testing;

namespace {

// The bytes of a small valid checkpoint.
std::string small_checkpoint(const TempDir& dir) {
  const std::string path = dir.path() / "small.safetensors";
  const std::vector<float> weight = {0, -1.5, 3e30f};
  const std::vector<uint8_t> mask = {0x20, 0x20, 0x20};
  write_safetensors(path, {vector_of("fc1.weight", "F32", weight), vector_of("mask", "U8", mask)}, {{"step", "7"}});
  return read_file(path);
}

// A file of another program, with this header and `data_bytes` bytes of data: it has no checksums.
std::string foreign(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + std::string(data_bytes, '\x01');
}

std::string refusal(const TempDir& dir, const std::string& content) {
  const std::string path = dir.write("bad.safetensors", content);
  const std::string error = error_of([&] { read_safetensors(path, false); });
  const std::string before = "2: " + path + ": ";
  CHECK(error.starts_with(before));
  return error.substr(before.size());
}

// One entry of a header, and a header with such entries.
std::string tensor(const std::string& name, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"F32","shape":{},"data_offsets":{}}})", name, shape, offsets);
}
std::string object(const std::string& entries) {
  return fmt::format("{{{}}}", entries);
}

}  // namespace

TEST_CASE("a file truncated after any byte is refused") {
  const TempDir dir;
  const std::string good = small_checkpoint(dir);
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    CAPTURE(bytes);
    const std::string path = dir.write("cut.safetensors", good.substr(0, bytes));
    const std::string error = error_of([&] { read_safetensors(path); });
    if (!error.starts_with("2: " + path)) FAIL_CHECK(error);
  }
}

TEST_CASE("a file with any single flipped bit is refused") {
  const TempDir dir;
  const std::string good = small_checkpoint(dir);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    CAPTURE(bit);
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const std::string path = dir.write("flipped.safetensors", damaged);
    const std::string error = error_of([&] { read_safetensors(path); });
    if (!error.starts_with("2: " + path)) FAIL_CHECK(error);
  }
}

TEST_CASE("bytes after the last tensor are refused") {
  const TempDir dir;
  const std::string path = dir.write("long.safetensors", small_checkpoint(dir) + "x");
  CHECK(contains(error_of([&] { read_safetensors(path); }), "16 bytes of data where its tensors take 15"));
}

TEST_CASE("damaged data is reported with its tensor") {
  const TempDir dir;
  std::string damaged = small_checkpoint(dir);
  damaged[damaged.size() - 4] ^= 1;  // the last byte of fc1.weight: the three of mask follow
  const std::string path = dir.write("bad.safetensors", damaged);
  CHECK(error_of([&] { read_safetensors(path); }) ==
        "2: " + path + ": tensor \"fc1.weight\": its bytes do not match its checksum: the file is damaged");
}

TEST_CASE("a file without checksums is read only if the caller allows it") {
  const TempDir dir;
  const std::string path = dir.write("foreign.safetensors", foreign(object(tensor("w", "[2]", "[0,8]")), 8));
  CHECK(read_safetensors(path, false).at("w").data.size() == 8);
  CHECK(contains(error_of([&] { read_safetensors(path); }), "carries no checksum"));
}

TEST_CASE("impossible lengths of the header are refused") {
  const TempDir dir;
  std::string text = foreign("{}", 0);
  for (const uint64_t length : {uint64_t{3}, uint64_t{100'000'001}, uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{7}}) {
    CAPTURE(length);
    std::memcpy(text.data(), &length, sizeof length);
    CHECK(contains(refusal(dir, text), "the header's length"));
  }
}

TEST_CASE("metadata that is null counts as none, as for the safetensors library") {
  const TempDir dir;
  const File file = read_safetensors(dir.write("null.safetensors", foreign("{\"__metadata__\":null}", 0)), false);
  CHECK(file.metadata.empty());
  CHECK(file.tensors.empty());
}

TEST_CASE("headers that violate the format are refused") {
  const TempDir dir;
  CHECK(refusal(dir, "") == "truncated: 0 bytes are too few for a checkpoint");
  CHECK(refusal(dir, foreign("[1]", 0)) == "the header is not a JSON object");
  CHECK(refusal(dir, foreign("{\"a\":", 0)) == "the header is not a JSON object");
  CHECK(refusal(dir, foreign(std::string(100'000, '['), 0)) == "the header is not a JSON object");
  CHECK(refusal(dir, foreign("{\"__metadata__\":[]}", 0)) == "__metadata__ is not a JSON object");
  CHECK(refusal(dir, foreign("{\"__metadata__\":{\"a\":1}}", 0)) == "__metadata__: \"a\" is not a string");
  CHECK(refusal(dir, foreign("{\"w\":{}}", 0)) == "tensor \"w\": expected dtype, shape and data_offsets");
  CHECK(refusal(dir, foreign(R"({"w":{"dtype":"F99","shape":[],"data_offsets":[0,4]}})", 4)) ==
        "tensor \"w\": unknown dtype \"F99\"");
  CHECK(refusal(dir, foreign(R"({"__metadata__":{"two\nlines":1}})", 0)) ==
        R"(__metadata__: "two\nlines" is not a string)");
  CHECK(refusal(dir, foreign(R"({"w":{"dtype":"F\n\u007f","shape":[],"data_offsets":[0,4]}})", 4)) ==
        R"(tensor "w": unknown dtype "F\n?")");
  CHECK(contains(refusal(dir, foreign(object(tensor("two\\nlines", "1", "[0,4]")), 4)), "\"two\\nlines\": shape is"));
}

TEST_CASE("shapes whose size is invalid or overflows are refused") {
  const TempDir dir;
  for (const char* shape : {"[-1]", "[1.0]", "[\"2\"]", "[4611686018427387904,4]", "[9223372036854775808]",
                            "[18446744073709551616]", "[4294967296,4294967296]", "[null]"}) {
    CAPTURE(shape);
    CHECK(contains(refusal(dir, foreign(object(tensor("w", shape, "[0,0]")), 0)), "tensor \"w\": impossible shape"));
  }
}

TEST_CASE("a shape that is nested deeply or has many extents gives a short message") {
  const TempDir dir;
  const auto with = [&](const std::string& shape) {
    return refusal(dir, foreign(object(tensor("w", shape, "[0,0]")), 0));
  };
  const std::string open(1'000'000, '['), close(1'000'000, ']');
  for (const std::string& deep : {open + close, std::string("[[1]]"), std::string("[{}]")}) {
    CHECK(with(deep) == "the header is nested more deeply than the format allows");
  }
  std::string many = "[null";
  for (int i = 0; i < 10'000; ++i) many += ",1";
  CHECK(with(many + "]").size() < 300);
}

TEST_CASE("offsets that overlap, leave gaps, are reversed or exceed the file are refused") {
  const TempDir dir;
  const auto with = [&](const std::string& tensors, size_t bytes) {
    return refusal(dir, foreign(object(tensors), bytes));
  };
  CHECK(contains(with(tensor("w", "[2]", "[8,0]"), 8), "data_offsets are not [begin, end]"));
  CHECK(contains(with(tensor("w", "[2]", "[0,8,16]"), 8), "data_offsets are not [begin, end]"));
  CHECK(contains(with(tensor("w", "[2]", "[0,-8]"), 8), "data_offsets are not [begin, end]"));
  CHECK(contains(with(tensor("w", "[2]", "[0,8]"), 7), "ends at byte 8 of 7 bytes of data: the file is truncated"));
  CHECK(contains(with(tensor("w", "[2]", "[0,18446744073709551615]"), 8), "truncated"));
  CHECK(contains(with(tensor("w", "[2]", "[0,4]"), 4), "take 8 bytes, data_offsets give 4"));
  CHECK(contains(with(tensor("a", "[2]", "[0,8]") + "," + tensor("b", "[2]", "[4,12]"), 12),
                 "\"b\": a gap or an overlap"));
  CHECK(contains(with(tensor("a", "[1]", "[0,4]") + "," + tensor("b", "[1]", "[8,12]"), 12),
                 "\"b\": a gap or an overlap"));
  CHECK(contains(with(tensor("a", "[1]", "[0,4]") + "," + tensor("a", "[1]", "[4,8]"), 8), "gap or an overlap"));
  CHECK(contains(with(tensor("a", "[1]", "[0,4]"), 8), "8 bytes of data where its tensors take 4"));
}

TEST_CASE("empty tensors may have the same offset") {
  const TempDir dir;
  const std::string entries =
      tensor("a", "[1]", "[0,4]") + "," + tensor("b", "[0,7]", "[0,0]") + "," + tensor("c", "[0]", "[4,4]");
  CHECK(read_safetensors(dir.write("empty.safetensors", foreign(object(entries), 4)), false).tensors.size() == 3);
}

TEST_CASE("a path that is not a file is reported") {
  const TempDir dir;
  CHECK(contains(error_of([&] { read_safetensors(dir.path() / "none"); }), "no such checkpoint"));
  CHECK(contains(error_of([&] { read_safetensors(dir.path()); }), "not a file"));
  const std::string fifo = dir.path() / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(contains(error_of([&] { read_safetensors(fifo); }), "not a file"));
  const std::string loop = dir.path() / "loop";
  std::filesystem::create_symlink("loop", loop);
  CHECK(error_of([&] { read_safetensors(loop); }) == "1: cannot read " + loop + ": Too many levels of symbolic links");
}
