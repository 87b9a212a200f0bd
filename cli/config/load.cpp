#include <filesystem>

#include "cli/config/check.hpp"
#include "cli/config/document.hpp"
#include "cli/config/parse.hpp"
#include "cli/config/paths.hpp"
#include "cli/config/text.hpp"
#include "cli/config/value.hpp"
#include "ddprun/error.hpp"

namespace ddprun::config {
namespace {

// A file with another schema version is not checked further, because its keys may have another meaning.
void check_schema_version(const Document& document) {
  const auto found = document.written().find("schema_version");
  if (found == document.written().end()) return;
  const Written& written = found->second;
  const auto version = written.value->value_exact<int64_t>();
  if (!version || *version == Experiment{}.schema_version) return;
  Errors other_scheme;
  other_scheme.add_key(written.place, "schema_version",
                       "this ddprun reads schema_version 1; use the ddprun that the file was written for");
  other_scheme.raise();
}

void read_all(const Document& document, Loaded& loaded, Errors& errors) {
  for (const auto& [name, written] : document.written()) {
    const std::string wrong = written.option
                                  ? read_option(*written.key, *written.option, *written.value, loaded.experiment)
                                  : read_value(*written.key, *written.value, loaded.experiment);
    if (!wrong.empty()) errors.add_key(written.place, name, wrong);
    loaded.sources.note(name, written.place);
  }
}

void check_missing(const Sources& sources, Errors& errors) {
  for (const Key& key : keys()) {
    const std::string name = key.full_name();
    if (!key.required || sources.given(name) || !errors.sound(key.table)) continue;
    errors.add_key({.where = sources.file(), .value = ""}, name,
                   "missing; give it under [" + key.table + "], as in " + key.example);
  }
}

void fill_in(const std::string& path, Experiment& experiment) {
  if (experiment.experiment.name.empty()) experiment.experiment.name = std::filesystem::path(path).stem().string();
  if (!experiment.train.epochs && !experiment.train.steps) experiment.train.epochs = 1;
}

}  // namespace

Loaded load(const std::string& path, const std::vector<std::string>& overrides, std::optional<int64_t> ranks,
            const Typed& typed) {
  return load_text(read_file(path), path, overrides, ranks, typed);
}

Loaded load_text(const std::string& text, const std::string& path, const std::vector<std::string>& overrides,
                 std::optional<int64_t> ranks, const Typed& typed) {
  Errors errors;
  Document document(text, path, errors);
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const auto other = typed.find(overrides[i]);
    document.apply(overrides[i], other == typed.end() ? "--set " + one_line(overrides[i]) : other->second,
                   static_cast<int64_t>(i));
  }
  check_schema_version(document);

  Loaded loaded{{}, Sources(path)};
  read_all(document, loaded, errors);
  check_missing(loaded.sources, errors);
  fill_in(path, loaded.experiment);
  check_together(loaded.experiment, ranks, loaded.sources, errors);
  errors.raise();
  find_from_config(loaded.experiment, loaded.sources);
  return loaded;
}

}  // namespace ddprun::config
