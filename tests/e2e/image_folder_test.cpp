// Training on images in folders, and errors for damaged ones.
#include <doctest/doctest.h>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "plugins/datasets/pictures.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kPictures = R"(
[launch]
nproc = 2
[comm]
backend = "gloo"
[strategy]
kind = "ddp"
[model]
name = "simplenet"
options = { hidden = 8 }
[data]
name = "image-folder"
root = "pictures"
batch_size = 8
options = { random_flip = true }
[optimizer]
name = "adam"
lr = 0.02
[train]
steps = 20
)";

// 8 x 8 pixels of one colour, slightly different in each image.
std::string plain(int red, int blue) {
  std::string rgb;
  for (int i = 0; i < 64; ++i) rgb += {static_cast<char>(red), static_cast<char>(i), static_cast<char>(blue)};
  return png(8, 8, rgb);
}

// Red images and blue ones: 32 for training, 10 for the test.
class RedAndBlue : public PictureFolder {
 public:
  RedAndBlue() {
    for (int i = 0; i < 21; ++i) {
      const std::string split = i < 16 ? "train/" : "test/";
      add(split + "red/" + std::to_string(i) + ".png", plain(150 + 5 * i, 40));
      add(split + "blue/" + std::to_string(i) + ".png", plain(40, 150 + 5 * i));
    }
  }
};

}  // namespace

TEST_CASE("two ranks learn to distinguish red from blue, from PNG files") {
  const RedAndBlue folder;
  Workplace place;
  const auto result = place.run(place.training(place.config(kPictures), {"data.root=" + folder.root()}));
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto run = place.new_run();
  CHECK(summary_of(run).at("world") == 2);
  CHECK(summary_of(run).at("test.accuracy") == 1.0);
  const auto losses = losses_of(run, 2);
  REQUIRE(losses.size() == 20);
  CHECK(losses.back() < losses.front() / 2);
  CHECK(place.leftovers().empty());
}

TEST_CASE("a file that is not an image is refused with 2 and its path, before any rank starts") {
  const RedAndBlue folder;
  folder.add("train/red/3.png", "<!DOCTYPE html>");
  Workplace place;
  const auto result = place.run(place.training(place.config(kPictures), {"data.root=" + folder.root()}));
  CHECK(result.code == 2);
  CHECK_MESSAGE(contains(last_line(result.err), "--set data.root=" + folder.root() + ": "), result.err);
  CHECK_MESSAGE(contains(last_line(result.err), "train/red/3.png: neither a PNG nor a JPEG picture"), result.err);
  CHECK_FALSE(std::filesystem::exists(place.runs()));
}

TEST_CASE("an image with damaged pixels ends the training with 2 and its path") {
  const RedAndBlue folder;
  const std::string whole = plain(200, 40);
  folder.add("train/red/3.png", whole.substr(0, whole.size() - 30));
  Workplace place;
  const auto result = place.run(place.training(place.config(kPictures), {"data.root=" + folder.root()}));
  CHECK(result.code == 2);
  CHECK_MESSAGE(contains(result.err, "train/red/3.png: damaged PNG: "), result.err);
  CHECK(place.leftovers().empty());
}

TEST_CASE("the shipped config works with a folder of images") {
  const RedAndBlue folder;
  Workplace place;
  const auto result = place.ddprun({"validate", source_dir() + "/configs/image_folder.toml", "--set",
                                    "data.root=" + folder.root()});
  CHECK_MESSAGE(result.code == 0, result.err);
}
