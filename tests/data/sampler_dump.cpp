// Prints the indices of the samplers in core/data, for sampler_parity.py. Each line of stdin is a case,
//   distributed SIZE WORLD RANK SEED EPOCH SHUFFLE DROP    or    random SIZE SEED EPOCH    or    split SIZE PART SEED
// and each answer on stdout is the number of indices and then the indices, as native int64.
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "data/sampler.hpp"
#include "ddprun/error.hpp"

namespace {

using ddprun::Last;

std::vector<int64_t> answer(std::istringstream& words) {
  std::string kind;
  int64_t size = 0, epoch = 0;
  uint64_t seed = 0;
  words >> kind >> size;
  if (kind == "random") {
    words >> seed >> epoch;
    return ddprun::data::distributed_sampler(size, 0, 1, seed, true, Last::pad)->indices(epoch);
  }
  if (kind == "split") {
    double part = 0;
    words >> part >> seed;
    auto [train, validation] = ddprun::data::random_split(size, ddprun::data::validation_samples(part, size), seed);
    train.insert(train.end(), validation.begin(), validation.end());
    return train;
  }
  int world = 0, rank = 0;
  bool shuffle = false, drop = false;
  words >> world >> rank >> seed >> epoch >> shuffle >> drop;
  if (!words || kind != "distributed") throw std::runtime_error("cannot read the case: " + words.str());
  const auto sampler =
      ddprun::data::distributed_sampler(size, rank, world, seed, shuffle, drop ? Last::drop : Last::pad);
  const auto indices = sampler->indices(epoch);
  if (sampler->size(rank) != static_cast<int64_t>(indices.size())) throw std::runtime_error("size() disagrees");
  return indices;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    const auto indices = answer(words);
    const auto count = static_cast<int64_t>(indices.size());
    std::cout.write(reinterpret_cast<const char*>(&count), sizeof count);
    std::cout.write(reinterpret_cast<const char*>(indices.data()), static_cast<std::streamsize>(8 * indices.size()));
    std::cout.flush();
  }
}
