#include "tools/conformance/job_ranks.hpp"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/log.hpp"
#include "ddprun/error.hpp"

namespace ddprun::testing {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, end, number, error, records)

}  // namespace ddprun::testing

namespace ddprun::conformance {
namespace {

using nlohmann::json;
using testing::Outcome;

constexpr std::chrono::milliseconds kMeeting{60'000};
constexpr std::chrono::milliseconds kGather{30'000};  // a rank that has failed comes no more

}  // namespace

std::unique_ptr<JobRanks> JobRanks::find(const std::string& identity) {
  auto job = tools::Job::find({});
  if (job == nullptr) return nullptr;
  job->meet({.timeout = kMeeting,
             .identity = identity,
             .differ = "do not test the same",
             .advice = "start all with the same arguments",
             .counts = {1}});
  return std::unique_ptr<JobRanks>(new JobRanks(std::move(job)));
}

JobRanks::~JobRanks() {
  try {
    job_->store().allgather("conformance ends", job_->index(), size(), "", kMeeting);
  } catch (const std::exception& error) {
    log::debug(error.what());
  }
}

std::vector<Outcome> JobRanks::run(const std::function<void(testing::Rank&)>& body) {
  const std::string world = "world " + std::to_string(++worlds_);
  const int index = job_->index();
  const auto gather = [&](int channel, uint32_t round, const void* send, std::size_t bytes, void* recv) {
    const std::string key = world + "/" + std::to_string(channel) + "/" + std::to_string(round);
    const std::string_view mine(static_cast<const char*>(send), bytes);
    std::vector<std::string> all;
    try {
      all = job_->store().allgather(key, index, size(), mine, kGather);
    } catch (const Error& error) {
      throw std::runtime_error(std::string("exchange: ") + error.what());  // as testing::Exchange
    }
    auto* at = static_cast<char*>(recv);
    for (const std::string& theirs : all) {
      if (theirs.size() != bytes) throw std::runtime_error("exchange: the ranks give different sizes");
      at = std::ranges::copy(theirs, at).out;
    }
  };
  Outcome own;
  std::mutex mutex;
  const auto take = [&](char kind, std::string_view text) {
    const std::lock_guard lock(mutex);
    own.take(kind, std::string(text));
  };
  testing::Rank(index, size(), gather, take).run(body);
  ::alarm(0);  // that of the last case; this process lives on
  std::vector<Outcome> outcomes;
  // A text may be in any encoding.
  const std::string text = json(own).dump(-1, ' ', false, json::error_handler_t::replace);
  for (const std::string& one : job_->store().allgather(world, index, size(), text, 3 * kGather)) {
    outcomes.push_back(json::parse(one));
    outcomes.back().rank = static_cast<int>(outcomes.size()) - 1;
  }
  return outcomes;
}

}  // namespace ddprun::conformance
