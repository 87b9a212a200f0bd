#include "tools/bench/plan.hpp"

#include <charconv>
#include <cstdint>
#include <optional>

#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::bench {
namespace {

constexpr DType kDTypes[] = {DType::int8,    DType::uint8,   DType::int16,   DType::int32,   DType::int64,
                             DType::float16, DType::float32, DType::float64, DType::bfloat16};
constexpr Op kOps[] = {Op::sum, Op::product, Op::min, Op::max, Op::avg};
constexpr comm::Kind kKinds[] = {comm::Kind::allreduce, comm::Kind::broadcast, comm::Kind::allgather,
                                 comm::Kind::reduce_scatter};

// The value with this name: the first name that `names` gives, or another one.
template <class Values, class Names>
auto find_by_name(const std::string& option, const std::string& name, const Values& values, Names names) {
  std::vector<std::string> known;
  for (const auto value : values) {
    const std::vector<std::string> own = names(value);
    for (const std::string& each : own) {
      if (each == name) return value;
    }
    known.push_back(own[0]);
  }
  refuse(option, name, quoted_list(known) + did_you_mean(name, known));
}

// The power of 1024 that a suffix means.
std::optional<int> power_of(const std::string& suffix) {
  if (suffix.empty()) return 0;
  const std::size_t at = suffix.size() == 1 ? std::string("KMGkmg").find(suffix) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  return static_cast<int>(at % 3) + 1;
}

}  // namespace

void refuse(const std::string& option, const std::string& given, const std::string& expected) {
  throw Error(ExitCode::usage, option + " " + given + ": expected " + expected);
}

void require_known(const std::string& option, const std::string& given, const std::vector<std::string>& known) {
  for (const std::string& name : known) {
    if (name == given) return;
  }
  refuse(option, given, quoted_list(known) + did_you_mean(given, known));
}

std::size_t parse_bytes(const std::string& option, const std::string& text) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto power = power_of({end, text.data() + text.size()});
  const bool small = error == std::errc() && number >= 1 && number <= kMost;
  if (!small || !power || number > kMost >> (10 * *power)) {
    refuse(option, text, "a number of bytes from 1 to 1024G, such as 4, 64K, 1M or 2G");
  }
  return number << (10 * *power);
}

std::string type_name(DType dtype) {
  switch (dtype) {
    case DType::float16: return "half";
    case DType::float32: return "float";
    case DType::float64: return "double";
    default: return name_of(dtype);
  }
}

std::string op_name(Op op) {
  return op == Op::product ? "prod" : name_of(op);
}

DType parse_dtype(const std::string& name) {
  return find_by_name("-d", name, kDTypes, [](DType dtype) -> std::vector<std::string> {
    return {type_name(dtype), name_of(dtype)};
  });
}

Op parse_op(const std::string& name) {
  return find_by_name("-o", name, kOps, [](Op op) -> std::vector<std::string> { return {op_name(op), name_of(op)}; });
}

comm::Kind parse_collective(const std::string& name) {
  return find_by_name("--collective", name, kKinds,
                      [](comm::Kind kind) -> std::vector<std::string> { return {name_of(kind)}; });
}

}  // namespace ddprun::bench
