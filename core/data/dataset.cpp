#include "data/dataset.hpp"

#include "base/error.hpp"

namespace ddprun::data {

std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::float32: return 4;
    case ElementType::int64: return 8;
  }
  throw Error(ExitCode::failure, "unknown element type " + std::to_string(static_cast<int>(type)));
}

std::size_t Field::elements() const {
  std::size_t product = 1;
  for (const int64_t extent : shape) product *= static_cast<std::size_t>(extent);
  return product;
}

void check_indices(std::span<const int64_t> indices, int64_t size) {
  for (const int64_t index : indices) {
    if (index < 0 || index >= size) {
      throw Error(ExitCode::failure,
                  "sample " + std::to_string(index) + " of a data set that holds " + std::to_string(size));
    }
  }
}

}  // namespace ddprun::data
