// save_checkpoint and load_checkpoint in a program that is not ours.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "ddp/launched.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::testing {
namespace {

ProcessResult run_at(int ranks, const std::string& act, const std::string& path, const std::string& backend = "gloo") {
  return run(ranks, act, backend, {path});
}

// All ranks have reported this error.
void check_reported(int ranks, const ProcessResult& result, const std::string& error) {
  const auto lines = sorted_lines(result);
  REQUIRE(lines.size() == static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(lines[static_cast<std::size_t>(rank)] == "rank " + std::to_string(rank) + ": " + error);
  }
}

std::size_t files_in(const std::string& dir) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(dir), std::filesystem::directory_iterator()));
}

TEST_CASE("a training continues bit for bit from a checkpoint that only rank 0 can read") {
  for (const auto& [ranks, backend] : {std::pair{1, "gloo"}, {2, "gloo"}, {3, "shm"}, {4, "gloo"}}) {
    CAPTURE(ranks);
    const TempDir dir;
    const std::string path = dir.path().string() + "/last.safetensors";
    const auto saved = run_at(ranks, "save", path, backend), resumed = run_at(ranks, "resume", path, backend);
    CHECK(lines_of(saved).size() == static_cast<std::size_t>(ranks));
    CHECK(sorted_lines(resumed) == sorted_lines(saved));
    CHECK(files_in(dir.path().string()) == 1);
  }
}

TEST_CASE("RMSprop and Adagrad continue bit for bit too") {
  for (const int ranks : {1, 2}) {
    const TempDir dir;
    const auto result = run_at(ranks, "optimizers", dir.path().string() + "/last.safetensors");
    CHECK(sorted_lines(result) == Words{"adagrad", "rmsprop", "rmsprop_plain"});
  }
}

TEST_CASE("a checkpoint of ZeRO is that of the optimizer without it, and loads into either") {
  const TempDir dir;
  const std::string plain = dir.path().string() + "/plain.safetensors",
                    zero = dir.path().string() + "/zero.safetensors";
  const auto expected = run_at(2, "save", plain);
  const auto saved = run_at(2, "save_zero", zero);
  REQUIRE_MESSAGE(saved.code == 0, saved.err);
  const auto a = checkpoint::read_safetensors(plain), b = checkpoint::read_safetensors(zero);
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (const auto& tensor : a.tensors) CHECK_MESSAGE(b.at(tensor.name).data == tensor.data, tensor.name);
  CHECK(a.metadata == b.metadata);
  for (const auto& [act, path] : {std::pair{"resume", zero}, {"resume_zero", plain}, {"resume_zero", zero}}) {
    const auto resumed = run_at(2, act, path);
    CHECK(sorted_lines(resumed) == sorted_lines(expected));
  }
  CHECK(run_at(3, "resume_zero", zero).code == 0);
}

TEST_CASE("the weights of a checkpoint with an optimizer load without it") {
  const TempDir dir;
  const std::string path = dir.path().string() + "/last.safetensors";
  REQUIRE(run_at(2, "save", path).code == 0);
  const auto loaded = run_at(3, "load_weights", path);
  REQUIRE_MESSAGE(loaded.code == 0, loaded.err);
  CHECK_MESSAGE(contains(loaded.out, "best = 0.1\nepoch = 2\n"), loaded.out);
}

TEST_CASE("rank 0 cannot write: all ranks report why, and the older file stays") {
  const TempDir dir;
  const std::string path = dir.path().string() + "/last.safetensors";
  check_reported(3, run_at(3, "report_save", dir.path().string() + "/none/last.safetensors"),
                 "1: cannot write " + dir.path().string() + "/none/last.safetensors: there is no folder " +
                     dir.path().string() + "/none");
  REQUIRE(run_at(1, "save_weights", path).code == 0);
  const auto before = std::filesystem::file_size(path);
  const auto full = run_at(3, "report_save_full", path);
  const auto lines = sorted_lines(full);
  REQUIRE(lines.size() == 3);
  for (const std::string& line : lines) {
    CHECK_MESSAGE(contains(line, ": 1: cannot write "), line);
    CHECK_MESSAGE(contains(line, "File too large"), line);
  }
  CHECK(std::filesystem::file_size(path) == before);
  CHECK(files_in(dir.path().string()) == 1);
}

TEST_CASE("an optimizer of another module, and a name that is ours, are refused") {
  const TempDir dir;
  const auto result = run_at(2, "report_foreign", dir.path().string() + "/last.safetensors");
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(contains(result.out, "rank 1: 2: 6 parameters of the optimizer are not the module's"), result.out);
  CHECK_MESSAGE(contains(result.out, "rank 1: 2: a number of a checkpoint cannot have the name \"optimizer.lr.0\""),
                result.out);
  CHECK(files_in(dir.path().string()) == 0);
}

// Changes a file that a program has written; no checksums of ours are kept, as in a file of another program.
void change(const std::string& path, const std::function<void(checkpoint::File&)>& edit) {
  checkpoint::File file = checkpoint::read_safetensors(path);
  edit(file);
  std::vector<checkpoint::TensorView> views;
  for (const auto& tensor : file.tensors) {
    views.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.data.data(), tensor.data.size()});
  }
  checkpoint::write_safetensors(path, views, file.metadata);
}

checkpoint::Tensor& tensor_of(checkpoint::File& file, const std::string& name) {
  return *std::find_if(file.tensors.begin(), file.tensors.end(), [&](const auto& one) { return one.name == name; });
}

TEST_CASE("a file that does not fit is one line with file and tensor on all ranks, and the weights stay") {
  const TempDir dir;
  const std::string good = dir.path().string() + "/good.safetensors", path = dir.path().string() + "/bad.safetensors";
  REQUIRE(run_at(1, "save", good).code == 0);
  const std::string other = "2: " + path + ": these are not the weights of this model: ";
  const std::vector<std::pair<std::function<void(checkpoint::File&)>, std::string>> cases = {
      {[](auto& file) { std::erase_if(file.tensors, [](const auto& one) { return one.name == "norm.bias"; }); },
       other + "\"norm.bias\" is missing"},
      {[](auto& file) {
         file.tensors.push_back({"extra", "F32", {0}, {}});
       },
       other + "\"extra\" is not the model's"},
      {[](auto& file) {
         tensor_of(file, "first.weight").shape = {4, 8};
       },
       other + "\"first.weight\" is F32 [4, 8], and the model's is F32 [8, 4]"},
      {[](auto& file) { tensor_of(file, "first.weight").dtype = "I32"; },
       other + "\"first.weight\" is I32 [8, 4], and the model's is F32 [8, 4]"},
      {[](auto& file) {
         std::erase_if(file.tensors, [](const auto& one) { return one.name == "optimizer.first.bias.exp_avg"; });
       },
       "2: " + path + ": has no tensor \"optimizer.first.bias.exp_avg\""},
      {[](auto& file) {
         file.tensors.push_back({"optimizer.third.bias.exp_avg", "F32", {0}, {}});
       },
       "2: " + path +
           ": tensor \"optimizer.third.bias.exp_avg\" is of another kind of optimizer, or of a parameter that the "
           "model does not have"},
      {[](auto& file) {
         std::erase_if(file.tensors, [](const auto& one) { return one.name.starts_with("optimizer."); });
         file.metadata.clear();
       },
       "2: " + path + ": it has no state of an optimizer; load it without one"},
  };
  for (const auto& [edit, error] : cases) {
    std::filesystem::copy_file(good, path, std::filesystem::copy_options::overwrite_existing);
    change(path, edit);
    check_reported(3, run_at(3, "report_load", path), error);
  }
  std::filesystem::copy_file(good, path, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
  const auto cut = run_at(3, "report_load", path);
  CHECK_MESSAGE(contains(cut.out, "rank 2: 2: " + path + ": "), cut.out);
  check_reported(2, run_at(2, "report_load", dir.path().string() + "/none"),
                 "2: " + dir.path().string() + "/none: no such checkpoint");
  const auto kind = run_at(2, "report_load_sgd", good);
  CHECK_MESSAGE(contains(kind.out, "rank 1: 2: " + good + ": tensor \"optimizer."), kind.out);
  std::filesystem::copy_file(good, path, std::filesystem::copy_options::overwrite_existing);
  change(path, [](checkpoint::File& file) {  // as saved without amsgrad
    std::erase_if(file.tensors, [](const auto& tensor) { return tensor.name.ends_with(".max_exp_avg_sq"); });
  });
  const auto amsgrad = run_at(2, "report_load", path);
  CHECK_MESSAGE(contains(amsgrad.out, ".max_exp_avg_sq"), amsgrad.out);
  // Only the last rank has another module.
  const auto module = run_at(3, "report_load_other", good);
  for (const std::string rank : {"0", "1", "2"}) {
    CHECK_MESSAGE(contains(module.out, "rank " + rank + ": 2: " + good + ": these are not the weights of this model"),
                  module.out);
  }
  const auto ends = run_at(2, "load", path);
  CHECK(ends.code == 2);
  CHECK_MESSAGE(contains(ends.err, path), ends.err);
}

TEST_CASE("rank 0 is killed while it saves: the file is complete, and the next save removes what stays") {
  const TempDir dir;
  const std::string path = dir.path().string() + "/last.safetensors";
  for (int trial = 0; trial < 3; ++trial) {
    Process program({USER_PROGRAM, "die", path}, {"OMP_NUM_THREADS=1"});
    REQUIRE(eventually([&] { return std::filesystem::exists(path); }));
    // Another moment of a save each time.
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * trial));
    program.send(SIGKILL);
    CHECK(program.wait(std::chrono::seconds(60)).code == 128 + SIGKILL);
    CHECK(checkpoint::read_safetensors(path).metadata.contains("i"));
  }
  REQUIRE(run_at(1, "save_weights", path).code == 0);
  CHECK(files_in(dir.path().string()) == 1);
}

}  // namespace
}  // namespace ddprun::testing
