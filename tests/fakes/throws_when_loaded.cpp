// A plugin with a static constructor that throws.
#include <stdexcept>

namespace {

struct Throws {
  Throws() { throw std::runtime_error("no constructor today"); }
} throws;

}  // namespace
