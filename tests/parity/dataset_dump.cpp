// For ddp_parity.py: `dataset_dump NAME SEED OUT [KEY=VALUE...]` opens a data set that ddprun computes and writes both
// splits, so that PyTorch trains on the same samples: train.inputs, train.targets, test.inputs and test.targets.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <list>
#include <numeric>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "data/datasets.hpp"

using namespace ddprun;

namespace {

using Bytes = std::vector<std::byte>;

checkpoint::TensorView view(const std::string& name, const Field& field, int64_t samples, const Bytes& bytes) {
  std::vector<int64_t> shape = field.shape;
  shape.insert(shape.begin(), samples);
  return {name, field.type == ElementType::float32 ? "F32" : "I64", shape, bytes.data(), bytes.size()};
}

// The views are of memory in `kept`.
void append(std::vector<checkpoint::TensorView>& views, std::list<Bytes>& kept, const std::string& split,
            const Dataset& dataset) {
  std::vector<int64_t> indices(static_cast<std::size_t>(dataset.size()));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  Bytes& inputs = kept.emplace_back(indices.size() * dataset.input().bytes());
  Bytes& targets = kept.emplace_back(indices.size() * dataset.target().bytes());
  dataset.fetch(indices, 0, inputs.data(), targets.data());
  views.push_back(view(split + ".inputs", dataset.input(), dataset.size(), inputs));
  views.push_back(view(split + ".targets", dataset.target(), dataset.size(), targets));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    DatasetContext context;
    context.seed = std::stoull(words.at(1));
    for (std::size_t i = 3; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      context.options[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
    const Splits splits = data::open_dataset({words.at(0), context}, plugin::Registry({}));
    std::vector<checkpoint::TensorView> views;
    std::list<Bytes> kept;
    append(views, kept, "train", *splits.train);
    append(views, kept, "test", *splits.test);
    checkpoint::write_safetensors(words.at(2), views, {});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
