#include "tools/conformance/suite.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"
#include "testing/arithmetic.hpp"

namespace ddprun::conformance {
namespace {

const AlgorithmInfo* find(const Settings& settings, const std::string& name) {
  const auto& all = settings.capabilities.algorithms;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool has(uint32_t mask, int bit) {
  return (mask >> bit & 1) != 0;
}

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
  if (settings_.job) options.address = settings_.job->address();
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

void Context::fail(const std::string& text) {
  if (!judged_) rank_.report("fail " + std::to_string(index_) + " " + text);
  judged_ = failed_ = true;
}

void Context::judge_time(const std::string& what, milliseconds took, milliseconds latest) {
  constexpr int kClearly = 4;  // no busy machine explains that
  if (took <= latest || judged_) return;
  const std::string text = what + " ended after " + std::to_string(took.count()) + " ms, expected within " +
                           std::to_string(latest.count()) + " ms";
  if (took > kClearly * latest) return fail(text);
  rank_.report("slow " + std::to_string(index_) + " " + text);
  judged_ = failed_ = true;
}

void Context::note(const std::string& text) {
  rank_.report("note " + std::to_string(index_) + " " + text);
}

void Context::digest(const void* data, std::size_t bytes) {
  // FNV-1a, 64 bits (Fowler, Noll, Vo); continues the previous digest.
  for (std::size_t i = 0; i < bytes; ++i) {
    digest_ = (digest_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
  }
}

bool Context::has_failed_anywhere() {
  struct Verdict {
    uint64_t failed, digest;
  };
  const Verdict mine{failed_, digest_};
  std::vector<Verdict> all(static_cast<std::size_t>(size()));
  try {
    rank_.allgather(&mine, sizeof mine, all.data(), testing::Exchange::kChannels - 1);
  } catch (const std::runtime_error&) {  // a rank is gone
    return true;
  }
  return std::any_of(all.begin(), all.end(),
                     [&](const Verdict& one) { return one.failed != 0 || one.digest != digest_; });
}

void Context::run(std::size_t index, const std::function<void(Context&)>& body) {
  index_ = index;
  judged_ = failed_ = false;
  digest_ = 0xcbf29ce484222325;
  rank_.report("start " + std::to_string(index));
  if (!settings_.checks.no_fork) alarm(kCaseSeconds);
  spy::take_faults();
  body(*this);
  for (const auto& fault : spy::take_faults()) fail(fault);
  if (!judged_) rank_.report("pass " + std::to_string(index) + " " + std::to_string(digest_));
}

Report read_report(const std::string& record) {
  const auto first = record.find(' ');
  const auto second = std::min(record.find(' ', first + 1), record.size());
  return {record.substr(0, first), std::stoul(record.substr(first + 1, second - first - 1)),
          second < record.size() ? record.substr(second + 1) : ""};
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
  const auto serves = [&](const AlgorithmInfo& one) {
    return has(one.dtypes, static_cast<int>(dtype)) && has(one.ops, static_cast<int>(op)) && has_meaning(dtype, op);
  };
  if (const auto* one = find(settings, algorithm)) return serves(*one);
  return std::any_of(settings.capabilities.algorithms.begin(), settings.capabilities.algorithms.end(), serves);
}

bool takes(const Settings& settings, const std::string& algorithm, DType dtype) {
  for (int op = 0; op < kOps; ++op) {
    if (takes(settings, algorithm, dtype, static_cast<Op>(op))) return true;
  }
  return false;
}

DType common_dtype(const Settings& settings, const std::string& algorithm) {
  if (takes(settings, algorithm, DType::float32)) return DType::float32;
  int dtype = 0;
  while (dtype < kDTypes - 1 && !takes(settings, algorithm, static_cast<DType>(dtype))) ++dtype;
  return static_cast<DType>(dtype);
}

Op common_op(const Settings& settings, const std::string& algorithm) {
  int op = 0;
  while (op < kOps - 1 && !takes(settings, algorithm, common_dtype(settings, algorithm), static_cast<Op>(op))) ++op;
  return static_cast<Op>(op);
}

std::vector<Skipped> undeclared(const Settings& settings) {
  std::vector<Skipped> skipped;
  for (const auto& algorithm : algorithms_of(settings)) {
    for (int dtype = 0; dtype < kDTypes; ++dtype) {
      Skipped one{"allreduce " + algorithm + " " + name_of(static_cast<DType>(dtype)) + ":"};
      for (int op = 0; op < kOps; ++op) {
        if (!has_meaning(static_cast<DType>(dtype), static_cast<Op>(op))) continue;
        if (takes(settings, algorithm, static_cast<DType>(dtype), static_cast<Op>(op))) continue;
        one.what += std::string(" ") + name_of(static_cast<Op>(op));
        ++one.combinations;
      }
      if (one.combinations > 0) skipped.push_back(one);
    }
  }
  return skipped;
}

}  // namespace ddprun::conformance
