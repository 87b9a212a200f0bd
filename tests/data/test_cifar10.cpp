#include <doctest/doctest.h>

#include <filesystem>

#include "data/cifar10_files.hpp"
#include "data/loader.hpp"
#include "data/opening.hpp"
#include "support/read_file.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

namespace {

using OptionMap = std::map<std::string, std::string>;

Splits open(const Cifar10Folder& folder, const OptionMap& options = {}) {
  return open_builtin({"cifar10", folder.root(), options, 7});
}

// The error of opening, without the folder's path.
std::string error_in(const Cifar10Folder& folder, const OptionMap& options = {}) {
  std::string text = builtin_error({"cifar10", folder.root(), options, 7});
  for (std::size_t at; (at = text.find(folder.root() + "/")) != std::string::npos;) {
    text.erase(at, folder.root().size() + 1);
  }
  return text;
}

std::string error_with(const std::string& name, const std::string& bytes) {
  const Cifar10Folder folder;
  folder.write(name, bytes);
  return error_in(folder);
}

// All samples of both splits, from plain files.
std::pair<Samples<int64_t>, Samples<int64_t>> all_of(const Splits& splits) {
  return {fetch_all<int64_t>(*splits.train), fetch_all<int64_t>(*splits.test)};
}

}  // namespace

TEST_CASE("CIFAR-10 samples are [3, 32, 32] from -1 to 1, plane by plane, in the order of the files") {
  const Cifar10Folder folder;
  const auto splits = open(folder);
  REQUIRE(splits.train->size() == 15);
  REQUIRE(splits.test->size() == 2);
  CHECK(splits.train->input().shape == std::vector<int64_t>{3, 32, 32});
  CHECK(splits.train->target().shape.empty());
  CHECK(splits.train->classes() == std::vector<std::string>{"airplane", "automobile", "bird", "cat", "deer", "dog",
                                                            "frog", "horse", "ship", "truck"});
  const auto [train, test] = all_of(splits);
  CHECK(train.targets == std::vector<int64_t>{0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5, 4, 5, 6});
  CHECK(test.targets == std::vector<int64_t>{0, 1});
  for (std::size_t i = 0; i < train.inputs.size(); ++i) {
    const std::size_t record = i / 3072, plane = i % 3072 / 1024;
    REQUIRE(train.inputs[i] == (static_cast<float>(record % 3 + plane) / 255.0f - 0.5f) / 0.5f);
  }
}

TEST_CASE("plain, packed, or unpacked in its own folder: the same samples") {
  const Cifar10Folder plain, packed(false), unpacked(false);
  std::filesystem::create_directory(unpacked.path() / cifar10_folder);
  for (const auto& entry : std::filesystem::directory_iterator(plain.path())) {
    const std::string name = entry.path().filename(), content = read_file(entry.path());
    packed.write(name + ".gz", gzip(content));
    unpacked.write(cifar10_folder + "/" + name, content);
  }
  const auto expected = all_of(open(plain));
  CHECK(all_of(open(packed)) == expected);
  CHECK(all_of(open(unpacked)) == expected);
}

TEST_CASE("a file in the folder precedes one in its subfolder, and plain precedes packed") {
  const Cifar10Folder folder;
  std::filesystem::create_directory(folder.path() / cifar10_folder);
  const auto label = [&] { return fetch<int64_t>(*open(folder).test, {0}).targets[0]; };
  folder.write(cifar10_folder + "/" + cifar10_test, records(1, 8));
  folder.write(cifar10_test + ".gz", gzip(records(1, 7)));
  CHECK(label() == 0);
  std::filesystem::remove(folder.file(cifar10_test));
  CHECK(label() == 7);
  std::filesystem::remove(folder.file(cifar10_test + ".gz"));
  CHECK(label() == 8);
}

TEST_CASE("the archive as it is published is not read: one line says how to unpack it") {
  const Cifar10Folder folder(false);
  const std::string archive = folder.file(cifar10_archive);
  folder.write(cifar10_archive, "packed");
  for (const std::string& root : {folder.root(), archive}) {
    CHECK(builtin_error({"cifar10", root, {}, 0}) == "root: " + archive + ": is packed; unpack it: tar -xf " + archive +
                                                         " -C " + folder.root() + "; data.root is that folder");
  }
}

TEST_CASE("train and test name the files of partial sets; samples and test_samples limit their numbers") {
  const Cifar10Folder folder(false);
  folder.write("some.bin", records(5, 3));
  folder.write("more.bin", records(4));
  const OptionMap files = {{"train", "some.bin, more.bin"}, {"test", "more.bin"}};
  const auto both = open(folder, files);
  CHECK(fetch_all<int64_t>(*both.train).targets == std::vector<int64_t>{3, 4, 5, 6, 7, 0, 1, 2, 3});
  CHECK(both.test->size() == 4);
  OptionMap few = files;
  few["samples"] = "7";
  few["test_samples"] = "1";
  const auto first = open(folder, few);
  CHECK(fetch_all<int64_t>(*first.train).targets == std::vector<int64_t>{3, 4, 5, 6, 7, 0, 1});
  CHECK(first.test->size() == 1);
  few["samples"] = "10";
  CHECK(error_in(folder, few) == "options.samples: the files hold 9 samples, no more");
  CHECK(error_in(folder, {{"train", "../some.bin"}}) ==
        "options.train: \"../some.bin\": expected names of files in data.root, without a folder");
  CHECK(error_in(folder, {{"trian", "some.bin"}}).find("(did you mean \"train\"?)") != std::string::npos);
}

TEST_CASE("images are resized and normalised by the options; only the training split is cropped and flipped") {
  const Cifar10Folder folder;
  std::string ramp_record = "\3" + ramp(3072);
  folder.write("data_batch_1.bin", ramp_record);
  folder.write(cifar10_test, ramp_record);
  const auto large = open(folder, {{"image_size", "224"}, {"mean", "0.49,0.48,0.45"}, {"std", "0.25"}});
  CHECK(large.train->input().shape == std::vector<int64_t>{3, 224, 224});
  CHECK(fetch<int64_t>(*large.train, {1}).inputs[0] == (0 / 255.0f - 0.49f) / 0.25f);
  const auto plain = open(folder), random = open(folder, {{"random_crop", "4"}, {"random_flip", "true"}});
  CHECK(fetch<int64_t>(*random.test, {0}) == fetch<int64_t>(*plain.test, {0}));
  std::vector<float> first(3072), second(3072);
  int64_t target = 0;
  const std::vector<int64_t> index = {0};
  bool differs = false;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    random.train->fetch(index, epoch, first.data(), &target);
    random.train->fetch(index, epoch, second.data(), &target);
    CHECK(first == second);
    differs = differs || first != fetch<int64_t>(*plain.train, {0}).inputs;
  }
  CHECK(differs);
}

TEST_CASE("a missing file is reported with all searched places, and how to get it") {
  const Cifar10Folder folder;
  std::filesystem::remove(folder.file("data_batch_3.bin"));
  CHECK(builtin_error({"cifar10", folder.root(), {}, 0}) ==
        "root: found neither data_batch_3.bin nor data_batch_3.bin.gz in " + folder.root() + " or " +
            folder.file(cifar10_folder) + "; \"ddprun data fetch cifar10 --root " + folder.root() +
            "\" gets the files; or give the folder that they are in; or name files that are there in options.train and "
            "options.test");
  CHECK(builtin_error({"cifar10", folder.file(cifar10_test), {}, 0}) ==
        "root: " + folder.file(cifar10_test) + ": is no folder; give the folder that it is in");
}

TEST_CASE("without a root CIFAR-10 is searched in data/cifar10") {
  const InTempDir here;
  CHECK(
      builtin_error({"cifar10", "", {}, 0}) ==
      "root: data/cifar10: no such folder; \"ddprun data fetch cifar10\" gets the files; or give the folder that they "
      "are in");
  const Cifar10Folder files;
  std::filesystem::create_directory(here.path() / "data");
  std::filesystem::create_directory_symlink(files.path(), here.path() / "data" / "cifar10");
  CHECK(builtin_error({"cifar10", "", {}, 0}) == "opened");
}

TEST_CASE("files that are empty, truncated or have a wrong label are refused with the offset") {
  CHECK(error_with("data_batch_1.bin", "") == "root: data_batch_1.bin: offset 0: the file is empty");
  CHECK(error_with("data_batch_2.bin", records(2) + "ab") ==
        "root: data_batch_2.bin: offset 6148: the file ends after 2 of the 3073 bytes of a record");
  CHECK(error_with("test_batch.bin", records(1) + '\x0a' + std::string(3072, 'x')) ==
        "root: test_batch.bin: offset 3073: label 10 in a data set of 10 classes (0 to 9)");
  const std::string packed = gzip(records(2));
  CHECK(error_with("data_batch_1.bin", packed.substr(0, packed.size() - 1)).find("the gzip data ends early") !=
        std::string::npos);
  const Cifar10Folder folder;
  std::filesystem::remove(folder.file(cifar10_test));
  std::filesystem::create_directory(folder.file(cifar10_test));
  CHECK(error_in(folder) == "root: test_batch.bin: is no regular file");
}

TEST_CASE("batches of resized, cropped and flipped images are equal whatever the number of workers") {
  const Cifar10Folder folder;
  const auto splits =
      open(folder, {{"image_size", "224"}, {"random_crop", "8"}, {"random_flip", "true"}, {"std", "0.25"}});
  const std::vector<std::vector<int64_t>> batches = {{14, 3, 5, 0}, {1, 2}, {4, 6, 7, 8, 9, 10, 11, 12, 13}};
  const auto read = [&](int workers) {
    const auto loader = make_loader(*splits.train, {workers, 2});
    std::vector<float> all;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      loader->start(batches, epoch);
      for (Batch batch; loader->next(batch);) {
        const auto* const inputs = static_cast<const float*>(batch.inputs);
        all.insert(all.end(), inputs, inputs + batch.size * 3 * 224 * 224);
      }
    }
    return all;
  };
  const auto expected = read(0);
  REQUIRE(expected.size() == std::size_t{2 * 15 * 3 * 224 * 224});
  for (const int workers : {1, 2, 4}) CHECK(read(workers) == expected);
}
