// Files that are not pictures, or are damaged ones: each is read, or refused by name; nothing worse happens.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "plugins/datasets/image_folder.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

constexpr unsigned side = 24;

std::string good_png() {
  return png(side, side, slope(side * side * 3));
}
std::string good_jpeg(JpegScans scans = JpegScans::baseline) {
  return jpeg({.width = side, .height = side, .rows = slope(side * side * 3), .scans = scans});
}
std::vector<std::string> good_pictures() {
  return {good_png(), good_jpeg(), good_jpeg(JpegScans::progressive)};
}

// A folder with one picture, which is opened and fetched again and again.
class OnePicture {
 public:
  OnePicture() { folder_.add("train/c/p.jpg", ""); }
  // "read", or the error.
  std::string outcome(const std::string& bytes) const {
    folder_.write("train/c/p.jpg", bytes);
    const std::string error = dataset_error(folder_.root(), [&] {
      const Splits splits = open_folder(folder_.root(), {{"image_size", "8"}});
      fetch<int64_t>(*splits.train, {0});
    });
    return error == "no error" ? "read" : error;
  }

 private:
  const PictureFolder folder_;
};

std::string outcome(const std::string& bytes) {
  return OnePicture().outcome(bytes);
}

std::string with(std::string bytes, std::size_t at, const std::string& replacement) {
  return bytes.replace(at, replacement.size(), replacement);
}

}  // namespace

TEST_CASE("files that are no pictures are refused when the folder is opened") {
  const auto opening = [](const std::string& bytes) {
    const PictureFolder folder;
    folder.add("train/c/p.png", bytes);
    return opening_error(folder);
  };
  CHECK(opening("") == "root: train/c/p.png: the file is empty");
  const std::string neither = "root: train/c/p.png: neither a PNG nor a JPEG picture, by its first bytes";
  CHECK(opening("x") == neither);
  CHECK(opening("<!DOCTYPE html>") == neither);
  CHECK(opening("GIF89a        ") == neither);
  CHECK(opening(good_png().substr(0, 8)).starts_with("root: train/c/p.png: damaged PNG: "));
  CHECK(opening(good_png().substr(0, 30)).starts_with("root: train/c/p.png: damaged PNG: "));
  CHECK(opening(good_jpeg().substr(0, 4)).starts_with("root: train/c/p.png: damaged JPEG: "));
  CHECK(opening(good_jpeg().substr(0, 100)).starts_with("root: train/c/p.png: damaged JPEG: "));
}

TEST_CASE("what is neither a file nor a link to one is refused without waiting") {
  const PictureFolder folder;
  folder.add("train/c/a.png", good_png());
  REQUIRE(mkfifo(folder.file("train/c/pipe.png").c_str(), 0600) == 0);
  CHECK(opening_error(folder) == "root: train/c/pipe.png: is no regular file");
}

TEST_CASE("a JPEG of two components is refused") {
  std::string two = jpeg({.width = 4, .height = 4, .components = 2, .rows = slope(32)});
  CHECK(outcome(two) == "root: train/c/p.jpg: a JPEG of 2 components; expected 1 (grey), 3 (colour) or 4 (CMYK)");
}

TEST_CASE("a picture that claims to be enormous is refused by its header, without allocating memory") {
  const std::string size = std::string("\x00\x00\xff\xff", 4);
  std::string header = with(with(good_png(), 16, size), 20, size);
  header = with(header, 29, std::string("\x39\x67\x4e\x07", 4));  // the header's checksum, of these extents
  CHECK(outcome(header) == "root: train/c/p.jpg: 65535 x 65535 pixels: more than the 100 million that are read");
  const std::string jpeg = good_jpeg();
  const std::size_t frame = jpeg.find(std::string("\xff\xc0\x00\x11\x08", 5));
  REQUIRE(frame != std::string::npos);
  CHECK(outcome(with(jpeg, frame + 5, std::string("\xff\x00\xff\x00", 4))) ==
        "root: train/c/p.jpg: 65280 x 65280 pixels: more than the 100 million that are read");
}

TEST_CASE("a file that is larger than any picture is refused unread") {
  const PictureFolder folder;
  folder.add("train/c/p.png", good_png());
  std::filesystem::resize_file(folder.file("train/c/p.png"), (std::uintmax_t{256} << 20) + 1);  // a hole
  CHECK(opening_error(folder) == "root: train/c/p.png: larger than the 256 MiB that are read");
}

TEST_CASE("a progressive JPEG with more scans than encoders write is refused: each scan costs as much as a picture") {
  CHECK(outcome(good_jpeg(JpegScans::one_per_coefficient)) == "root: train/c/p.jpg: damaged JPEG: more than 100 scans");
}

TEST_CASE("a file that is cut off anywhere is refused, and never filled with grey") {
  const OnePicture picture;
  for (const std::string& whole : good_pictures()) {
    REQUIRE(picture.outcome(whole) == "read");
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const std::string text = picture.outcome(whole.substr(0, length));
      CHECK_MESSAGE(text.starts_with("root: train/c/p.jpg: "), length, " of ", whole.size(), " bytes: ", text);
    }
  }
}

TEST_CASE("a flipped byte anywhere gives pixels or a refusal, nothing worse") {
  const OnePicture picture;
  int refused = 0;
  for (const std::string& whole : good_pictures()) {
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char mask : {'\x01', '\x80', '\xff'}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ mask);
        const std::string text = picture.outcome(bytes);
        if (text != "read") {
          CHECK_MESSAGE((text.starts_with("root: train/c/p.jpg: ")), text);
          ++refused;
        }
      }
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("damage that libjpeg would hide is an error, and extra bytes are not") {
  const std::string whole = good_jpeg();
  const std::size_t scan = whole.find(std::string("\xff\xda", 2));
  const std::string cut = whole.substr(0, scan + 30) + "\xff\xd9";  // a proper end, long before the end of its pixels
  CHECK(outcome(cut) == "root: train/c/p.jpg: damaged JPEG: Corrupt JPEG data: premature end of data segment");
  CHECK(outcome(whole + "trailing bytes") == "read");
  CHECK(outcome(whole.substr(0, whole.size() - 2) + "xx\xff\xd9") == "read");
}

TEST_CASE("a file that changes after the folder was opened is refused when it is fetched") {
  const PictureFolder folder;
  folder.add("train/c/a.png", good_png());
  const Splits splits = open_folder(folder.root());
  const auto fetching = [&] { return dataset_error(folder.root(), [&] { fetch<int64_t>(*splits.train, {0}); }); };
  folder.add("train/c/a.png", png(1, 1, "rgb"));
  CHECK(fetching() == "root: train/c/a.png: has changed its size since it was opened");
  folder.add("train/c/a.png", good_png().substr(0, good_png().size() / 2));
  CHECK(fetching().starts_with("root: train/c/a.png: damaged PNG: "));
  std::filesystem::remove(folder.file("train/c/a.png"));
  CHECK(fetching() == "root: train/c/a.png: No such file or directory");
}
