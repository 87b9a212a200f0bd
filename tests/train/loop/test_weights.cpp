#include "support/torch_test.hpp"

#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checkpoint/safetensors.hpp"
#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "testing/temp_dir.hpp"
#include "train/tensor/parameters.hpp"
#include "train/tensor/tensor_buffer.hpp"
#include "train/tensor/weights.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

// A convolution with BatchNorm: parameters, buffers, and a scalar of another dtype.
struct Layers final : torch::nn::Module {
  Layers() {
    register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 3, 3).bias(false)));
    register_module("bn", torch::nn::BatchNorm2d(3));
  }
};

using State = std::map<std::string, torch::Tensor>;

State state_of(const torch::nn::Module& module) {
  State state;
  for (const auto& [name, tensor] : train::state(module)) state[name] = tensor.detach().clone().contiguous();
  return state;
}

// As Python's safetensors writes it: without checksums.
std::string write_plain(const TempDir& dir, const State& state) {
  std::ostringstream entries;
  std::string data;
  for (const auto& [name, tensor] : state) {
    const std::size_t begin = data.size();
    data.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
    entries << (begin == 0 ? "{" : ",") << '"' << name << "\":{\"dtype\":\"" << train::safetensors_dtype(tensor)
            << "\",\"shape\":[";
    for (int64_t i = 0; i < tensor.dim(); ++i) entries << (i == 0 ? "" : ",") << tensor.size(i);
    entries << "],\"data_offsets\":[" << begin << ',' << data.size() << "]}";
  }
  const std::string header = entries.str() + "}";
  uint64_t length = header.size();
  return dir.write("plain.safetensors",
                   std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data);
}

// Weights that differ from every fresh module's.
State other_state() {
  State state = state_of(Layers());
  for (auto& [name, tensor] : state) tensor.add_(3);
  return state;
}

std::string fault_of(const State& state) {
  const TempDir dir;
  const std::string path = write_plain(dir, state);
  const Layers module;
  const State before = state_of(module);
  std::string error = error_of([&] { train::load_weights(module, path); });
  for (const auto& [name, tensor] : state_of(module)) CHECK(torch::equal(tensor, before.at(name)));
  const std::string start = "2: " + path + ": these are not the weights of this model: ";
  return error.starts_with(start) ? error.substr(start.size()) : "another error: " + error;
}

}  // namespace

TEST_CASE("weights from Python, without checksums, replace every parameter and buffer in place") {
  const TempDir dir;
  const State wanted = other_state();
  const Layers module;
  const void* memory = module.named_parameters()["conv.weight"].data_ptr();
  train::load_weights(module, write_plain(dir, wanted));
  const State loaded = state_of(module);
  REQUIRE(loaded.size() == 6);
  for (const auto& [name, tensor] : wanted) {
    CAPTURE(name);
    CHECK(torch::equal(loaded.at(name), tensor));
  }
  CHECK(module.named_parameters()["conv.weight"].data_ptr() == memory);
  CHECK(module.named_parameters()["conv.weight"].requires_grad());
}

TEST_CASE("a checkpoint of ddprun loads, into channels_last too, and a damaged one does not") {
  const TempDir dir;
  const Layers from;
  checkpoint::CheckpointFolder folder(dir.path(), 1);
  train::save_weights(from, folder, 1, 1, {});
  const std::string path = checkpoint::list_commits(dir.path()).back().path;
  const Layers to;
  for (torch::Tensor& parameter : to.parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.detach().contiguous(torch::MemoryFormat::ChannelsLast));
  }
  train::load_weights(to, path);
  for (const auto& [name, tensor] : state_of(from)) CHECK(torch::equal(state_of(to).at(name), tensor));
  CHECK(to.named_parameters()["conv.weight"].is_contiguous(torch::MemoryFormat::ChannelsLast));

  std::string bytes = read_file(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const std::string damaged = dir.write("damaged.safetensors", bytes);
  CHECK(error_of([&] {
          train::load_weights(to, damaged);
        }).ends_with("its bytes do not match its checksum: the file is damaged"));
}

TEST_CASE("num_batches_tracked, which old files of PyTorch lack, counts as 0 if it is missing") {
  const TempDir dir;
  State old = other_state();
  old.erase("bn.num_batches_tracked");
  const Layers module;
  module.named_buffers()["bn.num_batches_tracked"].fill_(7);
  train::load_weights(module, write_plain(dir, old));
  State loaded = state_of(module);
  CHECK(loaded["bn.num_batches_tracked"].item<int64_t>() == 0);
  CHECK(torch::equal(loaded["bn.running_var"], old["bn.running_var"]));
}

TEST_CASE("weights with a missing buffer or an extra tensor are refused, and nothing is loaded") {
  State state = other_state();
  state.erase("bn.running_mean");
  CHECK(fault_of(state) == "\"bn.running_mean\" is missing");
  state = other_state();
  state["fc.weight"] = torch::ones({1});
  CHECK(fault_of(state) == "\"fc.weight\" is not the model's");
}

TEST_CASE("weights of another shape or dtype are refused, although their bytes would fit") {
  State state = other_state();
  state["conv.weight"] = state["conv.weight"].view({3, 2, 9, 1});
  CHECK(fault_of(state) == "\"conv.weight\" is F32 [3, 2, 9, 1], and the model's is F32 [3, 2, 3, 3]");
  state = other_state();
  state["bn.bias"] = torch::ones({3}, torch::kInt32);
  CHECK(fault_of(state) == "\"bn.bias\" is I32 [3], and the model's is F32 [3]");
  state = other_state();
  state["bn.num_batches_tracked"] = torch::ones({1}, torch::kInt64);
  CHECK(fault_of(state) == "\"bn.num_batches_tracked\" is I64 [1], and the model's is I64 []");
}

TEST_CASE("of many differences the first few are named, and the others counted") {
  CHECK(fault_of({{"x", torch::ones({1})}}) ==
        "\"conv.weight\" is missing; \"bn.weight\" is missing; \"x\" is not the model's; and 3 more");
}

TEST_CASE("weights of a module in DistributedDataParallel are refused with what to save instead") {
  const TempDir dir;
  State state;
  for (const auto& [name, tensor] : other_state()) state["module." + name] = tensor;
  const std::string path = write_plain(dir, state);
  CHECK(error_of([&] { train::load_weights(Layers(), path); }) ==
        "2: " + path +
            ": every name begins with \"module.\": these are the weights of a DistributedDataParallel; save "
            "model.module's state_dict instead");
}

TEST_CASE("a weight that is not finite is refused, and nothing is loaded") {
  const TempDir dir;
  State state = other_state();
  state["bn.weight"][1] = std::numeric_limits<float>::quiet_NaN();
  const std::string path = write_plain(dir, state);
  const Layers module;
  const State before = state_of(module);
  CHECK(error_of([&] { train::load_weights(module, path); }) ==
        "2: " + path + ": tensor \"bn.weight\" holds a value that is NaN or infinite");
  for (const auto& [name, tensor] : state_of(module)) CHECK(torch::equal(tensor, before.at(name)));
}

TEST_CASE("a name from the file cannot control the terminal") {
  State state = other_state();
  state["\\u001b[31m"] = torch::ones({1});
  CHECK(fault_of(state) == "\"\\u001b[31m\" is not the model's");
}

TEST_CASE("missing weights are reported") {
  CHECK(error_of([] { train::load_weights(Layers(), "/nowhere/w.safetensors"); }) ==
        "2: /nowhere/w.safetensors: no such checkpoint");
}
