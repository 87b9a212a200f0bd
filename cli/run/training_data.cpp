#include <algorithm>

#include "cli/run/training.hpp"
#include "data/datasets.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/host.hpp"

namespace ddprun::run {
namespace {

constexpr int kMostAutoWorkers = 8;

int workers_of(const config::Experiment& experiment) {
  const int64_t workers = experiment.data.workers;
  return workers < 0 ? std::min(usable_cores(), kMostAutoWorkers) : static_cast<int>(workers);
}

Last last_of(const config::Experiment& experiment) {
  if (experiment.data.last == "drop") return Last::drop;
  return experiment.data.last == "exact" ? Last::exact : Last::pad;
}

// Of positions in the samples that are trained on. In a world of one, the distributed sampler is a sequential or a
// random one.
std::unique_ptr<Sampler> position_sampler(const Assembly& assembly, int rank, int world) {
  const config::Experiment& experiment = assembly.experiment();
  const auto& data = experiment.data;
  const bool shuffle = data.sampler == "random" || (data.sampler != "sequential" && data.shuffle);
  const auto seed = static_cast<uint64_t>(experiment.experiment.seed);
  return data::distributed_sampler(assembly.train_samples(), rank, world, seed, shuffle, last_of(experiment));
}

// sampler_of(rank): of one of training_ranks().
std::unique_ptr<train::DataLoader> loader_of(const Assembly& assembly, const launch::World& world,
                                             const Dataset& dataset, train::SamplerOf sampler_of,
                                             Last last = Last::pad) {
  const config::Experiment& experiment = assembly.experiment();
  const elastic::Range share = training_share(experiment, world.rank, world.size);
  const train::LoadedRanks ranks{share.first, training_ranks(experiment, world.size),
                                 has_virtual_ranks(experiment) ? share.count : 0};
  const data::LoaderOptions loading{workers_of(experiment), static_cast<int>(experiment.data.prefetch), {}};
  const train::Target target{assembly.device(), experiment.data.pin_memory};
  return std::make_unique<train::DataLoader>(dataset, std::move(sampler_of), rank_batch(assembly.loaded, world.size),
                                             ranks, loading, target, last);
}

// Every sample of `subset` (empty: of the data set) exactly once for any number of ranks: an average over padded
// samples would not be the model's accuracy.
std::unique_ptr<train::DataLoader> evaluation_loader(const Assembly& assembly, const launch::World& world,
                                                     const Dataset& dataset, std::span<const int64_t> subset) {
  const int64_t samples = subset.empty() ? dataset.size() : static_cast<int64_t>(subset.size());
  const int ranks = training_ranks(assembly.experiment(), world.size);
  return loader_of(assembly, world, dataset, [=](int rank) {
    return data::subset_sampler(data::distributed_sampler(samples, rank, ranks, 0, false, Last::exact), subset);
  });
}

}  // namespace

void standardize_data(Assembly& assembly) try {
  const config::Experiment& experiment = assembly.experiment();
  if (!experiment.data.standardize && !assembly.standardization) return;
  if (!assembly.standardization) {
    assembly.standardization =
        data::fit_standardization(*assembly.data.train, workers_of(experiment), assembly.split.train);
  }
  for (auto* split : {&assembly.data.train, &assembly.data.test}) {
    if (*split != nullptr) *split = data::standardized(std::move(*split), *assembly.standardization);
  }
} catch (const data::DatasetError& error) {
  throw Error(error.code(), config::error(assembly.loaded.sources, "data." + error.key(), error.what()));
}

void check_training_data(const Assembly& assembly, int world) {
  const int ranks = training_ranks(assembly.experiment(), world);
  const int64_t of_rank = rank_batch(assembly.loaded, world), batch = of_rank * ranks;
  const int64_t samples = assembly.train_samples();
  const Last last = last_of(assembly.experiment());
  if (last == Last::drop && samples < batch) {
    throw Error(ExitCode::usage,
                config::error(assembly.loaded.sources, "data.last",
                              "leaves nothing to train on: " + std::to_string(samples) +
                                  (samples == 1 ? " sample is" : " samples are") + " less than one batch of " +
                                  std::to_string(batch) + "; use \"pad\" or \"exact\", or a smaller data.batch_size"));
  }
  const int64_t steps = train::steps_of_epoch(*position_sampler(assembly, 0, ranks), of_rank, ranks, last);
  step_options(assembly.loaded, ranks, steps);
  steps_to_trace(assembly.loaded, steps);
}

std::unique_ptr<train::DataLoader> test_loader(const Assembly& assembly, const launch::World& world) {
  return evaluation_loader(assembly, world, *assembly.data.test, {});
}

DataLoaders make_loaders(const Assembly& assembly, const launch::World& world) {
  const auto sampler_of = [&assembly, ranks = training_ranks(assembly.experiment(), world.size)](int rank) {
    return data::subset_sampler(position_sampler(assembly, rank, ranks), assembly.split.train);
  };
  DataLoaders loaders;
  loaders.train = loader_of(assembly, world, *assembly.data.train, sampler_of, last_of(assembly.experiment()));
  if (assembly.has_validation()) {
    loaders.validation = evaluation_loader(assembly, world, *assembly.data.train, assembly.split.validation);
  }
  if (assembly.has_test()) loaders.test = test_loader(assembly, world);
  return loaders;
}

}  // namespace ddprun::run
