#include "cli/run/assembly.hpp"

#include "cli/console/table.hpp"
#include "comm/plugin_backend.hpp"
#include "data/datasets.hpp"
#include "ddprun/error.hpp"
#include "plugin/options.hpp"
#include "train/tensor/parameters.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::run {
namespace {

struct Errors : config::Errors {
  const config::Sources& sources;

  void add(const std::string& key, const std::string& what, ExitCode code = ExitCode::usage) {
    add_key(config::location_of(sources, key), key, what, code);
  }
  // Runs `part` and adds its error.
  template <class Part>
  void collect(const std::string& key, Part part) {
    try {
      part();
    } catch (const data::DatasetError& error) {
      add("data." + error.key(), error.what(), error.code());
    } catch (const Error& error) {
      add(key, error.what(), error.code());
    }
  }
};

// Collects what the plugin's declaration does not allow; false if there is anything.
template <class Table>
bool collect_options(Errors& errors, const std::string& key, const Table& table,
                     const std::map<std::string, std::string>& options) {
  const auto found = plugin::option_errors(table, options);
  for (const OptionError& error : found) errors.add(key + "." + error.name, error.reason);
  return found.empty();
}

// If a model rejects an option, its message begins with the option's name ("model.options.hidden = ..."), which gives
// the location. Otherwise the location is model.name.
void add_model_error(Errors& errors, const Error& error) {
  const std::string reason = error.what();
  const config::Location* given = errors.sources.find(reason.substr(0, reason.find_first_of(": ")));
  if (given == nullptr) return errors.add("model.name", reason, error.code());
  errors.config::Errors::add(*given, reason, error.code());
}

void open_splits(Assembly& assembly) {
  const config::Experiment& experiment = assembly.experiment();
  const auto& data = experiment.data;
  const auto seed = static_cast<uint64_t>(experiment.experiment.seed);
  assembly.data = data::open_splits(*assembly.dataset_plugin.table, {data.root, data.options, seed});
  if (data.validation == 0) return;
  const int64_t samples = assembly.data.train->size();
  assembly.split = data::random_split(samples, data::validation_samples(data.validation, samples), seed);
}

train::ModelPtr create_model(const Assembly& assembly) {
  const auto context = train::model_context(assembly.experiment().model.options, *assembly.data.train);
  torch::manual_seed(static_cast<uint64_t>(assembly.experiment().experiment.seed));
  train::ModelPtr model = train::make_model(assembly.model_plugin, context);
  if (assembly.experiment().train.channels_last) train::use_channels_last(model->module());
  return model;
}

// Whether the model reports which samples are right. A model that fails here also fails in the first step, which
// reports the error.
bool has_accuracy(Model& model, const Dataset& dataset) {
  const torch::NoGradGuard no_grad;
  const auto sample_of = [](const Field& field) {
    std::vector<int64_t> shape{1};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    return torch::zeros(shape, field.type == ElementType::float32 ? torch::kFloat32 : torch::kInt64);
  };
  model.module().eval();
  bool found = true;
  try {
    found = model.correct(model.forward(sample_of(dataset.input())), sample_of(dataset.target())).defined();
  } catch (const std::exception&) {
  }
  model.module().train();
  return found;
}

// Collects errors of the keys that choose the best epoch, for this model and data set.
void collect_metrics(Errors& errors, const Assembly& assembly) {
  const config::Experiment& experiment = assembly.experiment();
  for (const auto& [key, metric] :
       {std::pair{"train.early_stop", experiment.train.early_stop}, {"checkpoint.best", experiment.checkpoint.best}}) {
    const std::string loss = metric.substr(0, metric.find('.')) + ".loss";
    std::string error;
    if (metric.starts_with("test.") && assembly.data.test == nullptr && !assembly.split.validation.empty()) {
      error = "the data set has no test split here; use \"validation.loss\" or \"train.loss\"";
    } else if (metric.ends_with(".accuracy") && !has_accuracy(*assembly.model, *assembly.data.train)) {
      error = "this model has no such metric; use \"" + loss + "\"";
    }
    if (!error.empty()) errors.add(key, error);
  }
}

}  // namespace

Assembly assemble(config::Loaded loaded, const plugin::Registry& registry) {
  Assembly made{std::move(loaded), {}, {}, {}, {}, {}, {}, {}, {}, {}};
  const config::Experiment& experiment = made.experiment();
  Errors errors{{}, made.loaded.sources};
  if (experiment.strategy.kind == "ddp") {
    errors.collect("comm.backend", [&] { made.comm = registry.comm(experiment.comm.backend); });
  }
  if (made.comm) {
    collect_options(errors, "comm.options", *made.comm->table, experiment.comm.options);
    const Memory memory = experiment.launch.device == "cuda" ? Memory::cuda : Memory::host;
    const bool staged = experiment.comm.stage_through_host;
    const Memory given = comm::memory_given(*made.comm->table, memory, staged);
    if (const auto error = comm::algorithm_error(*made.comm->table, experiment.comm.algorithm, given)) {
      errors.add("comm.algorithm", *error);
    }
    if (const auto error = comm::memory_error(*made.comm->table, memory, staged)) {
      errors.add("comm.backend", *error, ExitCode::plugin);
    }
  }
  errors.collect("model.name", [&] {
    made.model_plugin = registry.model(experiment.model.name, train::torch_version(), train::cxx11_abi());
  });
  const auto* const model = made.model_plugin.table;
  const bool model_can_be_made =
      model != nullptr && collect_options(errors, "model.options", *model, experiment.model.options);
  errors.collect("data.name", [&] {
    made.dataset_plugin = data::find_dataset(experiment.data.name, registry);
    if (collect_options(errors, "data.options", *made.dataset_plugin.table, experiment.data.options)) open_splits(made);
  });
  if (made.data.train != nullptr && made.data.test == nullptr && experiment.train.evaluate &&
      experiment.data.validation == 0) {
    errors.add("train.evaluate", "data set \"" + std::string(made.dataset_plugin.table->name) +
                                     "\" has no test split here; set it to false, or give data.validation");
  }
  if (made.data.train != nullptr && experiment.train.channels_last) {
    const auto dimensions = static_cast<int64_t>(made.data.train->input().shape.size());
    if (dimensions != 3) {
      errors.add("train.channels_last",
                 "is for pictures (channels, height, width), but a sample of this data set has " +
                     console::several(dimensions, "dimension") + "; set it to false");
    }
  }
  if (model_can_be_made && made.data.train != nullptr) {
    try {
      made.model = create_model(made);
    } catch (const Error& error) {
      add_model_error(errors, error);
    }
  }
  if (made.model != nullptr) collect_metrics(errors, made);
  if (made.model != nullptr && experiment.strategy.kind == "dp") {
    for (int64_t device = 1; device < experiment.strategy.devices; ++device)
      made.replicas.push_back(create_model(made));
  }
  // A resumed run gets its weights from the checkpoint.
  if (made.model != nullptr && !experiment.model.weights.empty() && experiment.checkpoint.resume.empty()) {
    errors.collect("model.weights", [&] { train::load_weights(made.model->module(), experiment.model.weights); });
  }
  errors.raise();
  return made;
}

void open_data(Assembly& assembly) {
  Errors errors{{}, assembly.loaded.sources};
  errors.collect("data.name", [&] { open_splits(assembly); });
  errors.raise();
}

bool has_virtual_ranks(const config::Experiment& experiment) {
  return experiment.strategy.kind == "ddp" && experiment.strategy.virtual_ranks > 0;
}

int training_ranks(const config::Experiment& experiment, int world) {
  return has_virtual_ranks(experiment) ? static_cast<int>(experiment.strategy.virtual_ranks) : world;
}

elastic::Range training_share(const config::Experiment& experiment, int rank, int world) {
  return elastic::share_of(rank, world, training_ranks(experiment, world));
}

int64_t rank_batch(const config::Loaded& loaded, int world) {
  config::check_ranks(loaded, world);
  const auto& data = loaded.experiment.data;
  return data.batch_per == "rank" ? data.batch_size : data.batch_size / training_ranks(loaded.experiment, world);
}

}  // namespace ddprun::run
