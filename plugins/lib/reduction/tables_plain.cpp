#include "reduction/tables.hpp"

namespace ddprun::reduction {

std::span<const Table* const> usable_tables() noexcept {
  static constexpr const Table* kTables[] = {&kPlain};
  return kTables;
}

}  // namespace ddprun::reduction
