#include "plugin/library.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "ddprun/error.hpp"
#include "plugin/options.hpp"

namespace ddprun::plugin {
namespace {

// The sizes that version 1 fixed. Later fields are appended and optional, so the required size never grows.
constexpr uint32_t kCommSize = offsetof(ddprun_comm_plugin, free) + sizeof(void (*)());
constexpr uint32_t kAlgorithmSize = offsetof(ddprun_comm_algorithm, name) + sizeof(const char*);
constexpr uint32_t kOptionSize = offsetof(ddprun_option_spec, choices) + sizeof(const char*);
constexpr uint32_t kModelSize = offsetof(ddprun_model_plugin, destroy) + sizeof(void (*)());
constexpr uint32_t kDatasetSize = offsetof(ddprun_dataset_plugin, close) + sizeof(void (*)());
// The fields that are the same in every version: struct_size and abi.
constexpr uint32_t kHeadSize = 2 * sizeof(uint32_t);
constexpr uint64_t kKnownCapabilities = (DDPRUN_CAP_EXCHANGE << 1) - 1;  // it is the last one

[[noreturn]] void refuse_abi(const File& file, uint32_t theirs, uint32_t ours) {
  refuse(file, "wrong ABI: the plugin has version " + std::to_string(theirs) + ", this ddprun takes version " +
                   std::to_string(ours) + "; rebuild the plugin with this ddprun's headers");
}

std::string entry(Kind kind, uint32_t abi) {
  return std::string("ddprun_") + name_of(kind) + "_plugin_v" + std::to_string(abi);
}

// `what` has a struct_size below that of version `abi`.
[[noreturn]] void refuse_size(const File& file, const std::string& what, uint32_t theirs, uint32_t abi, uint32_t ours) {
  refuse(file, "wrong ABI: " + what + " has " + std::to_string(theirs) + " bytes, version " + std::to_string(abi) +
                   " has " + std::to_string(ours) + "; rebuild the plugin with this ddprun's headers");
}

[[noreturn]] void refuse_entry(const File& file, const Library& library, uint32_t ours) {
  std::string other = std::string("; is it a ") + name_of(file.kind) + " plugin of another version?";
  for (const Kind kind : kKinds) {
    if (library.symbol(entry(kind, 1)) != nullptr) other = std::string("; it is a ") + name_of(kind) + " plugin";
  }
  refuse(file, "no entry point: it does not export " + entry(file.kind, ours) + other);
}

// Finds the entry point and reads no more than struct_size bytes.
template <typename Table>
const Table* find_table(const File& file, const Library& library, uint32_t abi, uint32_t size) {
  const void* const symbol = library.symbol(entry(file.kind, abi));
  if (symbol == nullptr) refuse_entry(file, library, abi);
  const auto* const table = static_cast<const Table*>(symbol);
  if (table->struct_size >= kHeadSize && table->abi != abi) refuse_abi(file, table->abi, abi);
  if (table->struct_size < size) refuse_size(file, "its table", table->struct_size, abi, size);
  return table;
}

// Names the first missing function.
void require_set(const File& file, std::initializer_list<std::pair<const char*, bool>> fields) {
  for (const auto& [name, set] : fields) {
    if (!set) refuse(file, std::string("incomplete: ") + name + " is null");
  }
}

void require_name(const File& file, const std::string& name) {
  if (file.name.empty() || file.name == name) return;
  refuse(file,
         "wrong name: the plugin calls itself \"" + name + "\", its file \"" + file.name + "\"; rename one of the two");
}

void require_known(const File& file, const std::string& field, uint64_t bits, uint64_t known) {
  if ((bits & ~known) == 0) return;
  refuse(file, "wrong ABI: " + field + " has bits that this ddprun does not know: 0x" + hex(bits & ~known, 1) +
                   "; remove them, or install a newer ddprun");
}

void require_capabilities(const File& file, const ddprun_comm_plugin& table) {
  const auto has = [&](uint64_t bit) { return (table.capabilities & bit) != 0; };
  require_known(file, "capabilities", table.capabilities, kKnownCapabilities);
  if (!has(DDPRUN_CAP_HOST | DDPRUN_CAP_CUDA)) {
    refuse(file, "incomplete: capabilities has neither DDPRUN_CAP_HOST nor DDPRUN_CAP_CUDA");
  }
  if (has(DDPRUN_CAP_BLOCKING) && has(DDPRUN_CAP_STREAM_ORDERED)) {
    refuse(file, "contradiction: capabilities has both DDPRUN_CAP_BLOCKING and DDPRUN_CAP_STREAM_ORDERED");
  }
}

void require_algorithm(const File& file, const ddprun_comm_algorithm& algorithm, const std::string& which,
                       const std::vector<std::string>& before) {
  if (algorithm.name == nullptr) refuse(file, "incomplete: the name of " + which + " is null");
  const std::string name = algorithm.name;
  if (name.empty()) refuse(file, "incomplete: the name of " + which + " is empty");
  if (name == "auto") refuse(file, "wrong name: " + which + " is \"auto\", which means that the plugin chooses");
  if (std::find(before.begin(), before.end(), name) != before.end()) {
    refuse(file, "wrong name: " + which + " is \"" + name + "\" again");
  }
  const std::string of = which + " (" + name + ")";
  if (algorithm.dtypes == 0) refuse(file, "incomplete: " + of + " has no dtypes");
  if (algorithm.ops == 0) refuse(file, "incomplete: " + of + " has no ops");
  require_known(file, "dtypes of " + of, algorithm.dtypes, (1u << DDPRUN_DTYPE_COUNT) - 1);
  require_known(file, "ops of " + of, algorithm.ops, (1u << DDPRUN_OP_COUNT) - 1);
  require_known(file, "memory of " + of, algorithm.memory,
                1u << DDPRUN_HOST | 1u << DDPRUN_CUDA | 1u << DDPRUN_FROM_ALLOC);
  if (algorithm.struct_size <= offsetof(ddprun_comm_algorithm, canonical_order)) return;
  require_known(file, "canonical_order of " + of, algorithm.canonical_order, algorithm.dtypes);
}

void require_algorithms(const File& file, const ddprun_comm_plugin& table) {
  if (table.algorithm_count == 0) refuse(file, "incomplete: it declares no algorithm");
  std::vector<std::string> names;
  const auto* at = reinterpret_cast<const std::byte*>(table.algorithms);
  for (uint32_t i = 0; i < table.algorithm_count; ++i) {
    const auto& algorithm = *reinterpret_cast<const ddprun_comm_algorithm*>(at);
    const std::string which = "algorithms[" + std::to_string(i) + "]";
    if (algorithm.struct_size < kAlgorithmSize) {
      refuse_size(file, which, algorithm.struct_size, table.abi, kAlgorithmSize);
    }
    require_algorithm(file, algorithm, which, names);
    names.emplace_back(algorithm.name);
    at += algorithm.struct_size;
  }
}

// A function that a capability requires must be set; of a pair, both or none.
void require_optional(const File& file, const ddprun_comm_plugin& table) {
  const auto promises = [&](uint64_t bit) { return (table.capabilities & bit) != 0; };
  const bool waits_at_once = promises(DDPRUN_CAP_BLOCKING) || promises(DDPRUN_CAP_STREAM_ORDERED);
  const bool alloc = promises(DDPRUN_CAP_ALLOC) || table.free != nullptr;
  const bool free = promises(DDPRUN_CAP_ALLOC) || table.alloc != nullptr;
  const bool has_exchange = table.struct_size > offsetof(ddprun_comm_plugin, exchange) && table.exchange != nullptr;
  require_set(file, {{"reduce_scatter", table.reduce_scatter != nullptr || !promises(DDPRUN_CAP_REDUCE_SCATTER)},
                     {"test", table.test != nullptr || waits_at_once},
                     {"alloc", table.alloc != nullptr || !alloc},
                     {"free", table.free != nullptr || !free},
                     {"exchange", has_exchange || !promises(DDPRUN_CAP_EXCHANGE)}});
}

// Reads the entries one by one: the size of each says where the next begins.
template <typename Table>
void require_options(const File& file, const Table& table) {
  if (table.struct_size <= offsetof(Table, options)) return;  // of a version before options
  constexpr uint32_t kWhole = offsetof(Table, option_count) + sizeof table.option_count;
  if (table.struct_size < kWhole) refuse_size(file, "its table", table.struct_size, table.abi, kWhole);
  if (table.options == nullptr) return;
  std::vector<std::string> names;
  const auto* at = reinterpret_cast<const std::byte*>(table.options);
  for (uint32_t i = 0; i < table.option_count; ++i) {
    const auto& option = *reinterpret_cast<const ddprun_option_spec*>(at);
    const std::string which = "options[" + std::to_string(i) + "]";
    if (option.struct_size < kOptionSize) refuse_size(file, which, option.struct_size, table.abi, kOptionSize);
    if (option.name == nullptr || *option.name == '\0') {
      refuse(file, "wrong option: the name of " + which + " is null or empty");
    }
    const std::string name = option.name;
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      refuse(file, "wrong option: " + which + " is \"" + name + "\" again");
    }
    if (const std::string error = spec_error(option); !error.empty()) {
      refuse(file, "wrong option: " + which + " (" + name + "): " + error);
    }
    names.push_back(name);
    at += option.struct_size;
  }
}

std::string without_local_part(const std::string& version) {
  return version.substr(0, version.find('+'));
}

std::string torch_text(const std::string& version, int cxx11_abi) {
  return "Torch " + version + " with _GLIBCXX_USE_CXX11_ABI=" + std::to_string(cxx11_abi);
}

}  // namespace

const ddprun_comm_plugin* comm_table(const File& file, const Library& library) {
  const auto* const table = find_table<ddprun_comm_plugin>(file, library, DDPRUN_COMM_ABI, kCommSize);
  require_set(file, {{"name", table->name != nullptr},
                     {"version", table->version != nullptr},
                     {"library", table->library != nullptr},
                     {"algorithms", table->algorithms != nullptr},
                     {"create", table->create != nullptr},
                     {"destroy", table->destroy != nullptr},
                     {"allreduce", table->allreduce != nullptr},
                     {"broadcast", table->broadcast != nullptr},
                     {"allgather", table->allgather != nullptr},
                     {"barrier", table->barrier != nullptr},
                     {"wait", table->wait != nullptr},
                     {"abort", table->abort != nullptr},
                     {"last_error", table->last_error != nullptr}});
  require_capabilities(file, *table);
  require_optional(file, *table);
  require_name(file, table->name);
  require_algorithms(file, *table);
  require_options(file, *table);
  return table;
}

const ddprun_model_plugin* model_table(const File& file, const Library& library) {
  const auto* const table = find_table<ddprun_model_plugin>(file, library, DDPRUN_MODEL_ABI, kModelSize);
  require_set(file, {{"name", table->name != nullptr},
                     {"version", table->version != nullptr},
                     {"torch_version", table->torch_version != nullptr},
                     {"create", table->create != nullptr},
                     {"destroy", table->destroy != nullptr}});
  require_name(file, table->name);
  require_options(file, *table);
  return table;
}

const ddprun_dataset_plugin* dataset_table(const File& file, const Library& library) {
  const auto* const table = find_table<ddprun_dataset_plugin>(file, library, DDPRUN_DATASET_ABI, kDatasetSize);
  require_set(file, {{"name", table->name != nullptr},
                     {"version", table->version != nullptr},
                     {"summary", table->summary != nullptr},
                     {"open", table->open != nullptr},
                     {"describe", table->describe != nullptr},
                     {"fetch", table->fetch != nullptr},
                     {"close", table->close != nullptr}});
  require_name(file, table->name);
  require_options(file, *table);
  return table;
}

void require_torch(const File& file, const ddprun_model_plugin& table, const std::string& torch_version,
                   int cxx11_abi) {
  const bool same = without_local_part(table.torch_version) == without_local_part(torch_version);
  if (same && table.cxx11_abi == cxx11_abi) return;
  refuse(file, "wrong Torch: the plugin was built for " + torch_text(table.torch_version, table.cxx11_abi) +
                   ", this program has " + torch_text(torch_version, cxx11_abi) +
                   "; rebuild the plugin with this program's Torch");
}

}  // namespace ddprun::plugin
