#include "tools/conformance/job.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "ddprun/error.hpp"
#include "launch/failure.hpp"
#include "launch/net/net_store.hpp"
#include "launch/rendezvous.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

using nlohmann::json;

constexpr milliseconds kConnectLimit{30'000};
constexpr milliseconds kOutcomes{2 * kCaseSeconds * 1000};  // between the first and the last process with its outcomes
constexpr milliseconds kPollInterval{100};                  // how often to ask whether a rank is gone

// Each rank connects to the store itself, after the fork.
class StoreExchange : public testing::Exchange {
 public:
  StoreExchange(launch::StoreAddress at, int size, int world)
      : Exchange(size), at_(std::move(at)), name_("world " + std::to_string(world) + " ") {}

  void give_up() override {
    try {
      store().set(name_ + "gone", "");
    } catch (const Error&) {
      // It is known already; or the store is lost, which ends the job.
    }
  }

 private:
  // Rank and parent do not share it: both call this only after the fork.
  Store& store() {
    const std::lock_guard lock(mutex_);
    if (!store_) store_ = launch::net_store(at_, kConnectLimit);
    return *store_;
  }

  std::string key_of(int channel, int rank, uint32_t round) const {
    return name_ + std::to_string(channel) + " " + std::to_string(round) + "/" + std::to_string(rank);
  }
  void post(int channel, int rank, uint32_t round, std::string_view bytes) override {
    store().set(key_of(channel, rank, round), bytes);
  }
  std::optional<std::string> find(int channel, int rank, uint32_t round) override {
    return store().get(key_of(channel, rank, round), kPollInterval);
  }
  bool has_given_up() override { return store().get(name_ + "gone", milliseconds(0)).has_value(); }

  const launch::StoreAddress at_;
  const std::string name_;
  std::mutex mutex_;
  std::unique_ptr<Store> store_;
};

}  // namespace

Job::Job(std::unique_ptr<tools::Job> all, const console::NodeOptions& options, const std::string& identity)
    : processes_(std::move(all)) {
  const auto ranks = processes_->meet({.insecure = options.insecure,
                                       .timeout = kConnectLimit,
                                       .identity = identity,
                                       .differ = "do not test the same",
                                       .advice = "start all with the same arguments and version",
                                       .counts = {options.nproc.value_or(1)}});
  const int index = processes_->index();
  for (int process = 0; process < processes_->count(); ++process) {
    const auto count = static_cast<int>(ranks[static_cast<std::size_t>(process)][0]);
    if (process == index) first_rank_ = size_, ranks_here_ = count;
    size_ += count;
  }
  if (size_ > 16) throw Error(ExitCode::usage, "conformance: " + std::to_string(size_) + " ranks: expected at most 16");
  at_ = processes_->store_address();
  store_ = &processes_->store();
  if (processes_->ranks() > 0) {  // of another launcher, in whose store the ranks cannot be more processes
    at_.port = 0;
    if (leads()) own_store_ = launch::hosted_store(at_, kConnectLimit);
    if (leads()) store_->set("port", std::to_string(at_.port));
    at_.port = std::stoi(store_->require("port", kConnectLimit));
    if (!leads()) own_store_ = launch::net_store(at_, kConnectLimit);
    store_ = own_store_.get();
  }
  launch::World processes;
  processes.rank = index;
  processes.size = processes_->count();
  link_ =
      std::make_unique<launch::RankWatch>(at_, processes, kConnectLimit, [](ExitCode code, const std::string& cause) {
        std::_Exit(static_cast<int>(launch::report_failure(code, cause)));  // its ranks end with it
      });
  gather_texts("");  // from here on each process can name one that is killed
}

testing::Placement Job::placement() {
  testing::Placement placement;
  placement.first = first_rank_;
  placement.world = size_;
  placement.exchange = std::make_shared<StoreExchange>(at_, size_, ++worlds_);
  return placement;
}

std::vector<std::string> Job::gather_texts(const std::string& own) try {
  return store_->allgather("texts " + std::to_string(++gathers_), processes_->index(), processes_->count(), own,
                           kOutcomes);
} catch (const Error& error) {
  // Process 0 hosts the store. If it is killed, the link knows which ranks were lost; the store does not.
  if (const auto cause = link_->failed(error)) throw Error(*cause);
  throw;
}

std::vector<testing::Outcome> Job::gather(const std::vector<testing::Outcome>& own) {
  json list = json::array();
  for (const testing::Outcome& one : own) {
    list.push_back({one.rank, one.pid, one.end, one.number, one.error, one.left_processes, one.records});
  }
  std::vector<testing::Outcome> all;
  for (const std::string& text : gather_texts(list.dump(-1, ' ', false, json::error_handler_t::replace))) {
    for (const json& one : json::parse(text)) {
      all.push_back({one[0], one[1], one[2].get<testing::Outcome::End>(), one[3], one[4], one[5], one[6]});
    }
  }
  return all;
}

std::vector<std::string> Job::gather(const std::vector<std::string>& own) {
  std::vector<std::string> all;
  for (const std::string& text : gather_texts(json(own).dump())) {
    for (const std::string one : json::parse(text)) {  // processes of one host see the same
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    }
  }
  return all;
}

}  // namespace ddprun::conformance
