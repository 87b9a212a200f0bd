#include "reduction/loops.hpp"

namespace ddprun::reduction {
namespace {

struct Plain {
  static constexpr std::size_t kBytes = 16;
  static constexpr const char* kName = "plain";
  using Float16Conversion = PortableFloat16<kBytes>;
};

}  // namespace

constinit const Table kPlain = table_of<Plain>();

}  // namespace ddprun::reduction
