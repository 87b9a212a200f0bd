#include "data/pass.hpp"

#include <algorithm>
#include <cmath>

#include "data/datasets.hpp"
#include "data/loader.hpp"
#include "data/sampler.hpp"

namespace ddprun::data {

void for_each_input(const Dataset& dataset, std::span<const int64_t> subset, int workers, const std::string& key,
                    const std::function<void(const float*)>& visit) {
  constexpr int64_t batch_size = 64;
  if (dataset.input().type != ElementType::float32) throw DatasetError(key, "needs inputs of type float32");
  const std::size_t elements = dataset.input().elements();
  const auto loader = make_loader(dataset, {workers, 2});
  const std::vector<int64_t> indices = subset.empty() ? sequential_sampler(dataset.size())->indices(0)
                                                      : std::vector<int64_t>(subset.begin(), subset.end());
  loader->start(cut_batches(indices, batch_size, false), 0);
  auto index = indices.begin();
  for (Batch batch; loader->next(batch);) {
    const auto* input = static_cast<const float*>(batch.inputs);
    for (int64_t i = 0; i < batch.size; ++i, ++index, input += elements) {
      if (!std::all_of(input, input + elements, [](float value) { return std::isfinite(value); })) {
        throw DatasetError(key, "sample " + std::to_string(*index) + " holds a value that is NaN or infinite");
      }
      visit(input);
    }
  }
}

}  // namespace ddprun::data
