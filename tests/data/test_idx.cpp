#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "data/idx_files.hpp"
#include "data/opening.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

namespace {

// The error of opening with one of the four files replaced.
std::string error_with(const std::string& name, const std::string& bytes) {
  const IdxFolder folder;
  folder.write(name, bytes);
  std::string text = builtin_error({"mnist", folder.root(), {}, 0});
  for (std::size_t at; (at = text.find(folder.root() + "/")) != std::string::npos;) {
    text.erase(at, folder.root().size() + 1);
  }
  return text;
}

}  // namespace

TEST_CASE("IDX images are [1, rows, cols] in [0, 1] with their labels, in any order") {
  const IdxFolder folder;
  const auto splits = open_builtin({"mnist", folder.root(), {}, 0});
  CHECK(splits.train->size() == 5);
  CHECK(splits.test->size() == 2);
  CHECK(splits.train->input().shape == std::vector<int64_t>{1, 2, 3});
  CHECK(splits.train->target().shape.empty());
  CHECK(splits.train->target().type == ElementType::int64);
  CHECK(splits.train->classes().at(9) == "9");
  const auto samples = fetch<int64_t>(*splits.train, {4, 1});
  CHECK(samples.targets == std::vector<int64_t>{4, 1});
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(samples.inputs[i] == static_cast<float>(24 + i) / 255.0f);
    CHECK(samples.inputs[6 + i] == static_cast<float>(6 + i) / 255.0f);
  }
}

TEST_CASE("white is 1, black is 0, and mean and std normalise") {
  const IdxFolder folder;
  folder.write(train_images, idx({5, 1, 2}, std::string("\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff", 10)));
  folder.write(test_images, idx({2, 1, 2}, ramp(4)));
  const auto plain = open_builtin({"mnist", folder.root(), {}, 0});
  CHECK(fetch<int64_t>(*plain.train, {0}).inputs == std::vector<float>{0, 1});
  const auto normal = open_builtin({"mnist", folder.root(), {{"mean", "0.1307"}, {"std", "0.3081"}}, 0});
  CHECK(fetch<int64_t>(*normal.train, {0}).inputs ==
        std::vector<float>{(0 - 0.1307f) / 0.3081f, (1 - 0.1307f) / 0.3081f});
  CHECK(builtin_error({"mnist", folder.root(), {{"std", "0"}}, 0}) ==
        "options.std: expected a list of numbers from 1e-6 to 1e6");
}

TEST_CASE("packed files give the samples of plain ones, whatever their names") {
  const IdxFolder plain, packed, misnamed;
  const auto pack = [&](const std::string& name, const std::string& bytes) {
    std::filesystem::remove(packed.file(name));
    packed.write(name + ".gz", gzip(bytes));
    misnamed.write(name, gzip(bytes));
  };
  pack(train_images, idx({5, 2, 3}, ramp(30)));
  pack(train_labels, idx({5}, ramp(5)));
  const auto expected = fetch_all<int64_t>(*open_builtin({"mnist", plain.root(), {}, 0}).train);
  CHECK(fetch_all<int64_t>(*open_builtin({"mnist", packed.root(), {}, 0}).train) == expected);
  CHECK(fetch_all<int64_t>(*open_builtin({"mnist", misnamed.root(), {}, 0}).train) == expected);
}

TEST_CASE("a packed file may have several members, and may be larger than every buffer") {
  const IdxFolder folder;
  const std::string images = idx({3000, 28, 28}, ramp(3000 * 28 * 28));
  folder.write(train_images, gzip(images.substr(0, 1'000'000)) + gzip(images.substr(1'000'000)));
  folder.write(train_labels, idx({3000}, std::string(3000, '\7')));
  folder.write(test_images, idx({2, 28, 28}, ramp(2 * 28 * 28)));
  const auto splits = open_builtin({"mnist", folder.root(), {}, 0});
  const auto last = fetch<int64_t>(*splits.train, {2999});
  for (std::size_t i = 0; i < 784; ++i) {
    CHECK(last.inputs[i] == static_cast<float>((2999 * 784 + i) % 256) / 255.0f);
  }
}

TEST_CASE("fashion-mnist names its classes") {
  const IdxFolder folder;
  const auto splits = open_builtin({"fashion-mnist", folder.root(), {}, 0});
  CHECK(splits.test->classes() == std::vector<std::string>{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                           "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"});
}

TEST_CASE("idx reads its classes from the labels or the option") {
  const IdxFolder folder;
  CHECK(open_builtin({"idx", folder.root(), {}, 0}).train->classes().size() == 5);
  CHECK(open_builtin({"idx", folder.root(), {{"classes", "12"}}, 0}).train->classes().size() == 12);
  CHECK(builtin_error({"idx", folder.root(), {{"classes", "4"}}, 0}) ==
        "root: " + folder.file(train_labels) + ": offset 12: label 4 in a data set of 4 classes (0 to 3)");
  CHECK(builtin_error({"idx", folder.root(), {{"classes", "257"}}, 0}) ==
        "options.classes: expected an integer from 1 to 256");
  CHECK(builtin_error({"idx", "", {}, 0}).starts_with("root: expected the folder of train-images-idx3-ubyte"));
}

TEST_CASE("a missing file is named in both spellings, with what to do") {
  const IdxFolder folder;
  std::filesystem::remove(folder.file(test_labels));
  const std::string path = folder.file(test_labels);
  const std::string found_neither = "root: found neither " + path + " nor " + path + ".gz; ";
  CHECK(
      builtin_error({"mnist", folder.root(), {}, 0})
          .starts_with(found_neither + "\"ddprun data fetch mnist --root " + folder.root() + "\" gets the files; or"));
  CHECK(builtin_error({"idx", folder.root(), {}, 0}).starts_with(found_neither + "put train-images-idx3-ubyte"));
  CHECK(builtin_error({"fashion-mnist", folder.root(), {}, 0})
            .starts_with(found_neither + "\"ddprun data fetch fashion-mnist --root " + folder.root() + "\" gets the"));
}

TEST_CASE("a root that is missing or not a folder is reported") {
  const IdxFolder folder;
  const std::string nowhere = folder.file("nowhere");
  for (const std::string name : {"mnist", "fashion-mnist", "idx"}) {
    CHECK(builtin_error({name, nowhere, {}, 0}).starts_with("root: " + nowhere + ": no such folder; "));
    CHECK(builtin_error({name, folder.file(test_labels), {}, 0}) ==
          "root: " + folder.file(test_labels) + ": is no folder; give the folder that it is in");
  }
  CHECK(builtin_error({"mnist", nowhere, {}, 0})
            .ends_with("; \"ddprun data fetch mnist --root " + nowhere +
                       "\" gets the files; or give the folder that they are in, plain or "
                       ".gz"));
}

TEST_CASE("without a root mnist is searched in data/mnist") {
  const InTempDir here;
  CHECK(builtin_error({"mnist", "", {}, 0})
            .starts_with("root: data/mnist: no such folder; \"ddprun data fetch mnist\" gets"));
  const IdxFolder files;
  std::filesystem::create_directory(here.path() / "data");
  std::filesystem::create_directory_symlink(files.path(), here.path() / "data" / "mnist");
  CHECK(builtin_error({"mnist", "", {}, 0}) == "opened");
}

TEST_CASE("the files have the names and folders of other copies of MNIST too") {
  const IdxFolder plain;
  const auto expected = fetch_all<int64_t>(*open_builtin({"mnist", plain.root(), {}, 0}).train);
  // Moves each file, packed or not, to where `place` says.
  const auto samples = [&](const std::string& data_set, const auto& place, bool packed) {
    const IdxFolder folder;
    for (const std::string name : {train_images, train_labels, test_images, test_labels}) {
      std::ifstream file(folder.file(name), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      std::filesystem::remove(folder.file(name));
      const std::filesystem::path to = folder.path() / place(name);
      std::filesystem::create_directories(to.parent_path());
      folder.write(std::filesystem::relative(to, folder.path()).string() + (packed ? ".gz" : ""),
                   packed ? gzip(bytes) : bytes);
    }
    return fetch_all<int64_t>(*open_builtin({data_set, folder.root(), {}, 0}).train);
  };
  const auto with_dot = [](std::string name) { return name.replace(name.find("-idx"), 1, "."); };
  const auto below = [](const std::string& folder) { return [=](const std::string& name) { return folder + name; }; };
  const auto of_kaggle = [](const std::string& name) { return name + "/" + name; };
  for (const bool packed : {false, true}) {
    CAPTURE(packed);
    CHECK(samples("mnist", with_dot, packed) == expected);
    CHECK(samples("idx", with_dot, packed) == expected);
    CHECK(samples("mnist", below("MNIST/raw/"), packed) == expected);
    CHECK(samples("fashion-mnist", below("FashionMNIST/raw/"), packed) == expected);
  }
  CHECK(samples("mnist", of_kaggle, false) == expected);
}

TEST_CASE("a folder in place of a file is refused") {
  const IdxFolder folder;
  std::filesystem::remove(folder.file(train_images));
  std::filesystem::create_directory(folder.file(train_images));
  CHECK(builtin_error({"mnist", folder.root(), {}, 0}) ==
        "root: " + folder.file(train_images) + ": is no regular file");
}

TEST_CASE("a file that is empty or ends in its header is refused with the offset") {
  CHECK(error_with(train_images, "") == "root: train-images-idx3-ubyte: offset 0: the file is empty");
  CHECK(error_with(train_images, "\x1f") ==
        "root: train-images-idx3-ubyte: offset 1: the file ends inside its header of 16 bytes");
  CHECK(error_with(test_labels, idx({2}, "").substr(0, 7)) ==
        "root: t10k-labels-idx1-ubyte: offset 7: the file ends inside its header of 8 bytes");
}

TEST_CASE("a wrong magic is refused with both numbers") {
  CHECK(error_with(train_images, idx({5}, ramp(30))) ==
        "root: train-images-idx3-ubyte: offset 0: magic 0x00000801: expected 0x00000803, an IDX file of unsigned bytes "
        "in 3 dimensions");
  CHECK(error_with(train_labels, idx({5, 2, 3}, ramp(30))) ==
        "root: train-labels-idx1-ubyte: offset 0: magic 0x00000803: expected 0x00000801, an IDX file of unsigned bytes "
        "in 1 dimension");
  CHECK(error_with(train_labels, "<!DOCTYPE html>").find("offset 0: magic 0x3c21444f") != std::string::npos);
}

TEST_CASE("extents that are 0 or too large for any file are refused before memory is allocated") {
  CHECK(error_with(train_images, idx({0, 2, 3}, "")) ==
        "root: train-images-idx3-ubyte: offset 4: an extent of 0: the file holds no data");
  CHECK(error_with(train_images, idx({5, 2, 0}, "")) ==
        "root: train-images-idx3-ubyte: offset 12: an extent of 0: the file holds no data");
  CHECK(
      error_with(train_images, idx({0xffffffff, 0xffffffff, 0xffffffff}, ramp(30))) ==
      "root: train-images-idx3-ubyte: offset 8: extent 4294967295 makes the file larger than the 8 GiB that are read");
  CHECK(error_with(train_images, idx({0x10000, 0x100, 0x100}, ramp(30))) ==
        "root: train-images-idx3-ubyte: offset 16: 4294967296 bytes of pixels expected, the file ends after 30");
}

TEST_CASE("a file that is too short or too long is refused with the expected size") {
  CHECK(error_with(train_images, idx({5, 2, 3}, ramp(29))) ==
        "root: train-images-idx3-ubyte: offset 16: 30 bytes of pixels expected, the file ends after 29");
  CHECK(error_with(train_images, idx({5, 2, 3}, ramp(31))) ==
        "root: train-images-idx3-ubyte: offset 46: 30 bytes of pixels expected, the file goes on after them");
  CHECK(error_with(test_labels, idx({2}, "")) ==
        "root: t10k-labels-idx1-ubyte: offset 8: 2 bytes of labels expected, the file ends after 0");
}

TEST_CASE("labels that do not fit the images are refused") {
  CHECK(error_with(train_labels, idx({4}, ramp(4))) ==
        "root: train-labels-idx1-ubyte: offset 4: 4 labels for the 5 images in train-images-idx3-ubyte");
  CHECK(error_with(train_labels, idx({5}, std::string("\0\1\x0a\1\0", 5))) ==
        "root: train-labels-idx1-ubyte: offset 10: label 10 in a data set of 10 classes (0 to 9)");
  CHECK(error_with(test_labels, idx({2}, "\1\xff")) ==
        "root: t10k-labels-idx1-ubyte: offset 9: label 255 in a data set of 10 classes (0 to 9)");
}

TEST_CASE("test images with another shape than the training images are refused") {
  CHECK(error_with(test_images, idx({2, 3, 3}, ramp(18))) ==
        "root: t10k-images-idx3-ubyte: offset 8: images with 3 rows, where train-images-idx3-ubyte has 2");
  CHECK(error_with(test_images, idx({2, 2, 4}, ramp(16))) ==
        "root: t10k-images-idx3-ubyte: offset 12: images with 4 columns, where train-images-idx3-ubyte has 3");
}

TEST_CASE("damaged gzip data is refused with the offset in the packed file") {
  const std::string good = gzip(idx({5, 2, 3}, ramp(30)));
  const std::string name = "root: train-images-idx3-ubyte: offset ";
  const auto end = std::to_string(good.size());

  std::string wrong_checksum = good;
  wrong_checksum[good.size() - 8] ^= 1;
  CHECK(error_with(train_images, wrong_checksum).find("the gzip data is damaged (incorrect data check)") !=
        std::string::npos);
  std::string wrong_length = good;
  wrong_length[good.size() - 1] ^= 1;
  CHECK(error_with(train_images, wrong_length) ==
        name + end + " of the packed file: the gzip data is damaged (incorrect length check); fetch the file again");
  CHECK(error_with(train_images, good.substr(0, good.size() - 1)) ==
        name + std::to_string(good.size() - 1) + " of the packed file: the gzip data ends early; fetch the file again");
  CHECK(error_with(train_images, good.substr(0, 2)) ==
        name + "2 of the packed file: the gzip data ends early; fetch the file again");
  CHECK(error_with(train_images, gzip(idx({5, 2, 3}, ramp(29)))) ==
        name + "16: 30 bytes of pixels expected, the file ends after 29");
  CHECK(error_with(train_images, gzip(idx({5, 2, 3}, ramp(31)))) ==
        name + "46: 30 bytes of pixels expected, the file goes on after them");
  CHECK(error_with(train_images, gzip("")) == name + "0: the file is empty");
}
