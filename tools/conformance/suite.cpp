#include "tools/conformance/suite.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"
#include "testing/arithmetic.hpp"

namespace ddprun::conformance {
namespace {

bool has_meaning(DType dtype, Op op) {
  return op != Op::avg || is_floating(dtype);
}

}  // namespace

const tools::BufferMemory& Context::memory() const {
  thread_local const tools::BufferMemory memory(device_of(settings_, rank()));
  return memory;
}

CommBackend& Context::shared(const std::string& algorithm) {
  auto& backend = shared_[algorithm];
  if (!backend) backend = join({.algorithm = algorithm});
  return *backend;
}

std::unique_ptr<CommBackend> Context::join(const JoinAs& how) {
  comm::JoinOptions options;
  options.rank = rank();
  options.size = size();
  options.device = device_of(settings_, rank());
  options.deadline = how.deadline.count() > 0 ? how.deadline : settings_.deadline;
  options.algorithm = how.algorithm;
  options.deterministic = how.deterministic;
  options.abort_flag = how.abort_flag;
  if (settings_.hosts) options.address = settings_.hosts->address(rank() / settings_.per_host);
  options.options = settings_.options;
  options.options.insert(how.extra.begin(), how.extra.end());
  options.allgather = [&](std::string_view mine) {
    if (how.before_gather) how.before_gather();
    std::string all(mine.size() * static_cast<std::size_t>(size()), '\0');
    rank_.allgather(mine.data(), mine.size(), all.data(), how.channel);
    if (how.after_gather) how.after_gather();
    std::vector<std::string> values;
    for (int peer = 0; peer < size(); ++peer) values.push_back(all.substr(peer * mine.size(), mine.size()));
    return values;
  };
  auto backend = comm::join(*settings_.plugin.table, options);
  if (!settings_.checks.verbose) log::set_level(log::Level::warning);
  return backend;
}

void Context::fail(const std::string& kind, const std::string& text) {
  if (!failed_) report(kind, text);
  failed_ = true;
}

void Context::judge_time(const std::string& what, milliseconds took, milliseconds latest) {
  constexpr int kClearly = 4;  // no busy machine explains that
  if (took <= latest) return;
  fail(took > kClearly * latest ? "fail" : "slow",
       what + " ended after " + text_of(took) + ", expected within " + text_of(latest));
}

void Context::judge_same(DType dtype, const unsigned char* result, std::size_t count) {
  const std::size_t element = size_of(dtype), bytes = count * element, ranks = static_cast<std::size_t>(size());
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits (Fowler, Noll, Vo)
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ result[i]) * 0x100000001b3;
  std::vector<uint64_t> hashes(ranks);
  rank_.allgather(&hash, sizeof hash, hashes.data());
  if (std::ranges::count(hashes, hash) == std::ssize(hashes)) return;
  constexpr std::size_t kPiece = testing::Exchange::kMaxBytes;  // of every element type
  std::vector<unsigned char> all(kPiece * ranks);
  for (std::size_t first = 0; first < bytes; first += kPiece) {
    const std::size_t piece = std::min(kPiece, bytes - first);
    rank_.allgather(result + first, piece, all.data());
    const auto differs = std::mismatch(all.data(), all.data() + piece, result + first).second;
    if (differs == result + first + piece) continue;
    const std::size_t index = static_cast<std::size_t>(differs - result) / element;
    fail("element " + std::to_string(index) + " is " + to_text(dtype, load(dtype, result, index)) + ", and on rank 0 " +
         to_text(dtype, load(dtype, all.data(), index - first / element)) + ": all ranks must get the same bits");
  }
}

void Context::run(std::size_t index, const std::function<void(Context&)>& body) {
  index_ = index;
  failed_ = false;
  if (!settings_.checks.no_fork) alarm(kCaseSeconds);
  spy::take_faults();
  body(*this);
  for (const auto& fault : spy::take_faults()) fail(fault);
  if (!failed_) report("pass", "");
}

std::string World::name() const {
  if (settings.job != nullptr) return "world " + std::to_string(size) + " launched";
  if (settings.hosts) {
    return "world " + std::to_string(size / settings.per_host) + "x" + std::to_string(settings.per_host) + " hosts";
  }
  return "world " + std::to_string(size) + " " + testing::name_of(as);
}

int device_of(const Settings& settings, int rank) {
  if (settings.memory == Memory::host) return -1;
  if (settings.devices.empty()) return rank;
  return settings.devices.size() == 1 ? settings.devices.front() : settings.devices.at(static_cast<std::size_t>(rank));
}

std::vector<std::string> algorithms_of(const Settings& settings) {
  std::vector<std::string> names{"auto"};
  for (const auto& algorithm : settings.capabilities.algorithms) names.push_back(algorithm.name);
  return names;
}

bool takes(const Settings& settings, const std::string& algorithm, DType dtype, Op op) {
  return has_meaning(dtype, op) && std::ranges::any_of(settings.capabilities.algorithms, [&](const AlgorithmInfo& one) {
           return (algorithm == "auto" || one.name == algorithm) && (one.dtypes & bits(dtype)) != 0 &&
                  (one.ops & bits(op)) != 0;
         });
}

std::optional<Op> first_op(const Settings& settings, const std::string& algorithm, DType dtype) {
  for (const Op op : kOps) {
    if (takes(settings, algorithm, dtype, op)) return op;
  }
  return std::nullopt;
}

DType common_dtype(const Settings& settings, const std::string& algorithm) {
  if (first_op(settings, algorithm, DType::float32)) return DType::float32;
  for (const DType dtype : kDTypes) {
    if (first_op(settings, algorithm, dtype)) return dtype;
  }
  return DType::uint8;
}

Op common_op(const Settings& settings, const std::string& algorithm) {
  return first_op(settings, algorithm, common_dtype(settings, algorithm)).value_or(Op::avg);
}

std::string text_of(milliseconds time) {
  return std::to_string(time.count()) + " ms";
}

std::vector<Skipped> undeclared(const Settings& settings) {
  std::vector<Skipped> skipped;
  for (const auto& algorithm : algorithms_of(settings)) {
    for (const DType dtype : kDTypes) {
      Skipped one{"allreduce " + algorithm + " " + name_of(dtype) + ":"};
      for (const Op op : kOps) {
        if (!has_meaning(dtype, op) || takes(settings, algorithm, dtype, op)) continue;
        one.what += std::string(" ") + name_of(op);
        ++one.combinations;
      }
      if (one.combinations > 0) skipped.push_back(one);
    }
  }
  return skipped;
}

}  // namespace ddprun::conformance
