// What image-folder finds in a folder, in which order, and the effect of its options.
#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "plugins/datasets/image_folder.hpp"
#include "support/error_of.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

// One pixel, whose red identifies the picture.
std::string dot(int red) {
  return png(1, 1, std::string{static_cast<char>(red), 0, 0});
}

// The red of each sample's first pixel.
std::vector<int> reds(const Dataset& dataset) {
  std::vector<int> values;
  for (int64_t i = 0; i < dataset.size(); ++i) values.push_back(pixels(dataset, i)[0]);
  return values;
}

std::vector<int64_t> targets(const Dataset& dataset) {
  return fetch_all<int64_t>(dataset).targets;
}

}  // namespace

TEST_CASE("classes are the sorted folders of train, pictures come by class and name") {
  const PictureFolder folder;
  folder.add("train/dog/b.png", dot(5));
  folder.add("train/dog/a.png", dot(4));
  folder.add("train/cat/10.png", dot(1));
  folder.add("train/cat/9.png", dot(2));
  folder.add("train/Zebra/x.png", dot(0));
  folder.add("test/dog/t.png", dot(7));
  folder.add("test/cat/t.png", dot(6));
  const Splits splits = open_folder(folder.root());
  CHECK(splits.train->classes() == std::vector<std::string>{"Zebra", "cat", "dog"});
  CHECK(splits.test->classes() == splits.train->classes());
  CHECK(reds(*splits.train) == std::vector<int>{0, 1, 2, 4, 5});
  CHECK(targets(*splits.train) == std::vector<int64_t>{0, 1, 1, 2, 2});
  CHECK(reds(*splits.test) == std::vector<int>{6, 7});
  CHECK(targets(*splits.test) == std::vector<int64_t>{1, 2});
  CHECK(splits.train->input().shape == std::vector<int64_t>{3, 1, 1});
  CHECK(splits.train->target().shape.empty());
  CHECK(splits.train->target().type == ElementType::int64);
}

TEST_CASE("files in subfolders are ordered by the subfolder's whole path, as with sorted(os.walk())") {
  const PictureFolder folder;
  folder.add("train/c/z.png", dot(0));
  folder.add("train/c/a-b/p.png", dot(1));
  folder.add("train/c/a/q.png", dot(2));
  folder.add("train/c/a/s/p.png", dot(3));
  // As strings "a" < "a-b" < "a/s", because '-' is less than '/'; a depth-first walk would give "a", "a/s", "a-b".
  CHECK(reds(*open_folder(folder.root()).train) == std::vector<int>{0, 2, 1, 3});
}

TEST_CASE("a file whose whole name is an ending is a picture too, as for ImageFolder") {
  const PictureFolder folder;
  const std::string bytes = png(1, 1, "abc");
  folder.add("train/a/.jpg", bytes);
  folder.add("train/a/.PNG", bytes);
  folder.add("train/a/jpg", bytes);
  CHECK(open_folder(folder.root()).train->size() == 2);
  folder.add("train/a/.webp", bytes);
  CHECK(opening_error(folder).starts_with("root: train/a/.webp: "));
}

TEST_CASE("file endings ignore case, a picture's kind comes from its bytes, and other files are no pictures") {
  const PictureFolder folder;
  folder.add("train/c/a.PNG", dot(1));
  folder.add("train/c/b.Jpeg", dot(2));
  folder.add("train/c/c.jpg", dot(3));
  folder.add("train/c/README.txt", "not a picture");
  folder.add("train/c/png", "not a picture");
  folder.add("train/lying-about.png", "in no class");
  CHECK(reds(*open_folder(folder.root()).train) == std::vector<int>{1, 2, 3});
}

TEST_CASE("val is the test split if there is no test; without both there is no test split") {
  const PictureFolder folder;
  folder.add("train/c/a.png", dot(1));
  CHECK(open_folder(folder.root()).test == nullptr);
  folder.add("val/c/a.png", dot(2));
  CHECK(reds(*open_folder(folder.root()).test) == std::vector<int>{2});
  folder.add("test/c/a.png", dot(3));
  CHECK(reds(*open_folder(folder.root()).test) == std::vector<int>{3});
}

TEST_CASE("a root without train, test and val is itself the training split") {
  const PictureFolder folder;
  folder.add("cat/a.png", dot(1));
  folder.add("dog/a.png", dot(2));
  const Splits splits = open_folder(folder.root());
  CHECK(splits.train->classes() == std::vector<std::string>{"cat", "dog"});
  CHECK(reds(*splits.train) == std::vector<int>{1, 2});
  CHECK(splits.test == nullptr);
  folder.add("val/cat/a.png", dot(3));
  CHECK(opening_error(folder) == "root: " + folder.root() + ": has val/ and no train/");
}

TEST_CASE("the test split may lack a class, but must not add one") {
  const PictureFolder folder;
  folder.add("train/cat/a.png", dot(1));
  folder.add("train/dog/a.png", dot(2));
  folder.add("test/dog/a.png", dot(3));
  CHECK(targets(*open_folder(folder.root()).test) == std::vector<int64_t>{1});
  folder.add("test/dgo/a.png", dot(3));
  CHECK(opening_error(folder) == "root: test/dgo: the training split has no such class (did you mean \"dog\"?)");
}

TEST_CASE("empty folders are refused, with the expected layout") {
  const PictureFolder folder;
  const std::string layout = "expected <class>/*.png (.jpg, .jpeg), or train/<class>/ and test/<class>/ of the same";
  CHECK(dataset_error("", [] { open_folder(""); }) == "root: the folder of the pictures; " + layout);
  CHECK(dataset_error("", [] { open_folder("/nowhere/at/all"); }) ==
        "root: /nowhere/at/all: no such folder; " + layout);
  CHECK(opening_error(folder) == "root: " + folder.root() + ": holds no class folders; " + layout);
  folder.add("train/cat/notes.txt", "");
  CHECK(opening_error(folder) ==
        "root: train/cat: a class without pictures (*.png, *.jpg, *.jpeg); fill the folder or remove it");
  folder.add("train/cat/a.png", dot(1));
  std::filesystem::create_directories(folder.path() / "test/cat");
  CHECK(opening_error(folder) ==
        "root: test: holds no pictures; add <class>/*.png (.jpg, .jpeg), or remove the folder");
}

TEST_CASE("formats that only ImageFolder reads, and names that cannot be printed, are refused") {
  const PictureFolder folder;
  folder.add("train/cat/a.png", dot(1));
  folder.add("train/cat/b.WebP", "");
  CHECK(opening_error(folder) ==
        "root: train/cat/b.WebP: image-folder reads PNG and JPEG; convert the picture or move it away");
  for (const char* name : {"caf\xe9", "a\xc2\x9b", "\xed\xa0\x80", "\xe0\x80\xaf"}) {
    const PictureFolder unreadable;
    unreadable.add(std::string("train/") + name + "/a.png", dot(1));
    CHECK(opening_error(unreadable).ends_with("the name of a class must be UTF-8 without control characters"));
  }
  const PictureFolder readable;
  readable.add("train/caf\xc3\xa9/a.png", dot(1));
  CHECK(open_folder(readable.root()).train->classes() == std::vector<std::string>{"caf\xc3\xa9"});
}

TEST_CASE("links are followed, even out of the root; a link that leads back or nowhere is refused") {
  const PictureFolder folder, store;
  store.add("birds/a.png", dot(8));
  store.add("one.png", dot(9));
  folder.add("train/cat/a.png", dot(1));
  std::filesystem::create_directory_symlink(store.file("birds"), folder.file("train/bird"));
  std::filesystem::create_symlink(store.file("one.png"), folder.file("train/cat/b.png"));
  CHECK(reds(*open_folder(folder.root()).train) == std::vector<int>{8, 1, 9});
  std::filesystem::create_directory_symlink(folder.file("train"), folder.file("train/cat/again"));
  CHECK(opening_error(folder).ends_with("again/cat: a link that leads back to a folder above it"));
  std::filesystem::remove(folder.file("train/cat/again"));
  std::filesystem::create_symlink(store.file("gone.png"), folder.file("train/cat/c.png"));
  CHECK(opening_error(folder) == "root: train/cat/c.png: No such file or directory");
}

TEST_CASE("pictures of different sizes need image_size, in either split") {
  const PictureFolder folder;
  folder.add("train/c/a.png", png(2, 1, "abcdef"));
  folder.add("train/c/b.png", png(2, 1, "abcdef"));
  folder.add("test/c/t.png", png(1, 2, "abcdef"));
  CHECK(opening_error(folder) ==
        "options.image_size: is needed where pictures differ in size: train/c/a.png has 2 x 1 pixels, test/c/t.png has "
        "1 x 2 pixels");
  const Splits splits = open_folder(folder.root(), {{"image_size", "4"}});
  CHECK(splits.train->input().shape == std::vector<int64_t>{3, 4, 4});
  CHECK(splits.test->input().shape == std::vector<int64_t>{3, 4, 4});
}

TEST_CASE("mean and std normalise; channels = 1 makes grey, with one mean and one std") {
  const PictureFolder folder;
  folder.add("train/c/a.png", png(1, 1, std::string("\xff\x00\x80", 3)));
  const OptionMap options = {{"mean", "0.5,0.4,0.3"}, {"std", "0.5,0.25,0.2"}};
  CHECK(fetch<int64_t>(*open_folder(folder.root(), options).train, {0}).inputs ==
        std::vector<float>{(1.0f - 0.5f) / 0.5f, (0.0f - 0.4f) / 0.25f, (128 / 255.0f - 0.3f) / 0.2f});
  const Splits grey = open_folder(folder.root(), {{"channels", "1"}});
  CHECK(grey.train->input().shape == std::vector<int64_t>{1, 1, 1});
  CHECK(pixels(*grey.train, 0) == std::vector<int>{91});  // (19595 * 255 + 7471 * 128 + 32768) >> 16
  CHECK(opening_error(folder, {{"channels", "1"}, {"mean", "0.5,0.4,0.3"}}).starts_with("options.mean: 3 numbers"));
}

TEST_CASE("crop and flip are random for the training split only, new in each epoch, and equal for equal seeds") {
  const PictureFolder folder;
  folder.add("train/c/a.png", png(8, 8, slope(192)));
  folder.add("test/c/a.png", png(8, 8, slope(192)));
  const OptionMap options = {{"random_crop", "2"}, {"random_flip", "true"}};
  const Splits one = open_folder(folder.root(), options, 1);
  const Splits same = open_folder(folder.root(), options, 1);
  const Splits other = open_folder(folder.root(), options, 2);
  const auto epochs = [](const Dataset& dataset) {
    std::vector<std::vector<float>> samples;
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      samples.emplace_back(dataset.input().elements());
      int64_t target = 0;
      dataset.fetch(std::vector<int64_t>{0}, epoch, samples.back().data(), &target);
    }
    return samples;
  };
  const auto drawn = epochs(*one.train);
  CHECK(std::set(drawn.begin(), drawn.end()).size() > 5);
  CHECK(epochs(*same.train) == drawn);
  CHECK(epochs(*other.train) != drawn);
  const auto still = epochs(*one.test);
  CHECK(std::set(still.begin(), still.end()).size() == 1);
}

TEST_CASE("an unknown option and a wrong value are refused") {
  const PictureFolder folder;
  folder.add("train/c/a.png", dot(1));
  CHECK(opening_error(folder, {{"chanels", "1"}}).ends_with("(did you mean \"channels\"?)"));
  CHECK(opening_error(folder, {{"channels", "4"}}) == "options.channels: expected \"3\" or \"1\"");
  CHECK(opening_error(folder, {{"image_size", "-1"}}).starts_with("options.image_size: expected an integer"));
}

TEST_CASE("an index out of range is not a user's error") {
  const PictureFolder folder;
  folder.add("train/c/a.png", dot(1));
  const Splits splits = open_folder(folder.root());
  CHECK(error_of([&] { fetch<int64_t>(*splits.train, {1}); }) ==
        "1: data set \"image-folder\": sample 1 of a data set that holds 1");
}

TEST_CASE("many threads fetch the same as one thread") {
  const PictureFolder folder;
  for (int i = 0; i < 20; ++i) {
    const unsigned side = 10 + static_cast<unsigned>(i);
    const std::string name = "train/" + std::to_string(i % 3) + "/" + std::to_string(i);
    folder.add(name + ".png", png(side, 12, slope(side * 36)));
    folder.add(name + ".jpg", jpeg({.width = side, .height = 12, .rows = slope(side * 36)}));
  }
  const Splits splits = open_folder(folder.root(), {{"image_size", "16"}, {"random_flip", "true"}});
  const auto expected = fetch_all<int64_t>(*splits.train);
  std::vector<Samples<int64_t>> got(4);
  std::vector<std::thread> threads;
  for (auto& samples : got) threads.emplace_back([&] { samples = fetch_all<int64_t>(*splits.train); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& samples : got) CHECK(samples == expected);
}
