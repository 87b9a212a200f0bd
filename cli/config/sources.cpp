// The places of keys, and errors and notes about keys after load().
#include "cli/config/errors.hpp"
#include "cli/config/value.hpp"

namespace ddprun::config {
namespace {

bool used(const Key& key, const Experiment& experiment) {
  switch (key.user) {
    case User::all: return true;
    case User::ddp: return experiment.strategy.kind == "ddp";
    case User::dp: return experiment.strategy.kind == "dp";
    case User::gpu: return experiment.launch.device == "cuda";
    case User::sgd: return experiment.optimizer.name == "sgd";
    case User::adam: return experiment.optimizer.name != "sgd";
    case User::shuffler: return experiment.data.sampler == "auto" || experiment.data.sampler == "distributed";
    case User::curriculum: return experiment.data.sampler == "curriculum";
    case User::step_schedule: return experiment.train.schedule == "step";
    case User::cosine_schedule: return experiment.train.schedule == "cosine";
    case User::early_stop: return !experiment.train.early_stop.empty();
    case User::faults: return experiment.faults.kind != "none";
  }
  return true;
}

}  // namespace

const std::string& Sources::where(const std::string& key) const {
  const Place* place = find(key);
  return place == nullptr ? file_ : place->where;
}

const Place* Sources::find(const std::string& key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? nullptr : &found->second;
}

Place place_of(const Sources& sources, const std::string& key) {
  if (const Place* place = sources.find(key)) return *place;
  Place place{.where = sources.file(), .value = "", .order = {0, 0}};
  if (const Key* known = find_key(key); known != nullptr && !holds_options(*known) && known->default_note.empty()) {
    Experiment defaults;
    place.value = value_text(*known, defaults) + " (the default)";
  }
  return place;
}

std::string error(const Sources& sources, const std::string& key, const std::string& what) {
  const Place place = place_of(sources, key);
  return place.where + ": " + error_text(place, key, what);
}

std::vector<std::string> unused_keys(const Experiment& experiment, const Sources& sources) {
  std::vector<std::string> names;
  for (const auto& [name, place] : sources.places()) {
    const Key* key = find_key(name);
    if (key != nullptr && !used(*key, experiment)) names.push_back(name);
  }
  return names;
}

}  // namespace ddprun::config
