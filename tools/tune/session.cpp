#include "tools/tune/session.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "launch/meeting.hpp"
#include "launch/net/address.hpp"
#include "launch/net/connection.hpp"
#include "launch/world.hpp"
#include "tools/compare/runner.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::tune {
namespace {

using compare::Ending;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{1000};  // between two questions whether host 0 has failed
// How long host 0 waits at its end for the others, whose children end at SIGTERM.
constexpr milliseconds kLeave = kLook + milliseconds(4000);
// Between two children. A host 0 that has ended is noticed at once.
constexpr milliseconds kNextChild = std::chrono::hours(24 * 365);

std::string key_of(int child) {
  return fmt::format("child {}", child);
}

// Throws if the child did not end well.
void require_good(const compare::ProcessEnd& end, const std::string& name, const std::string& log) {
  if (end.ending == Ending::interrupted) throw Error(ExitCode::interrupted, "interrupted in " + name);
  if (end.ending == Ending::terminated) throw Error(ExitCode::terminated, "terminated in " + name);
  if (end.ending == Ending::exited && end.code == 0) return;
  throw Error(compare::code_of(end), fmt::format("{}: {}; its log: {}", name, compare::cause_of(end, log), log));
}

// The overrides of the request for short runs. Their length is an argument of each child.
std::vector<std::string> overrides_of_runs(const Request& request) {
  std::vector<std::string> overrides = compare::without_length(request.overrides);
  // What has no part in the time of a step, but would need more steps or a file.
  for (const char* off : {"train.warmup=0", "train.evaluate=false", "train.early_stop=\"\"", "checkpoint.best=\"\"",
                          "checkpoint.resume=\"\"", "log.parity_steps=0"}) {
    overrides.push_back(off);
  }
  return overrides;
}

}  // namespace

Session::Session(const Request& request, const config::Experiment& experiment, int64_t ranks,
                 const std::string& identity, milliseconds timeout)
    : request_(request),
      experiment_(experiment),
      nodes_(console::nodes_of(request.nodes, experiment.launch.insecure, timeout)),
      ranks_(ranks),
      all_ranks_(ranks) {
  if (nodes_.count == 1) return;
  launch::forget_launcher();
  launch::StoreAddress address{nodes_.master_addr, nodes_.master_port, nodes_.secret};
  store_ = leads() ? launch::hosted_store(address, timeout) : launch::net_store(address, timeout);
  launch::compare_identities(*store_, nodes_.rank, nodes_.count, identity, timeout,
                             {.process = "node",
                              .differ = "do not tune the same experiment",
                              .advice = "start all with the same arguments, config and version"});
  all_ranks_ = 0;
  for (const std::string& text :
       store_->allgather("ranks", nodes_.rank, nodes_.count, std::to_string(ranks_), timeout)) {
    all_ranks_ += std::stoll(text);
  }
}

compare::ProcessPlan Session::plan_of(const std::vector<std::string>& arguments, const std::string& log,
                                      int port) const {
  std::vector<std::string> all;
  const auto add = [&](const char* option, const std::string& value) { all.insert(all.end(), {option, value}); };
  for (const std::string& argument : arguments) {
    if (argument == kExperiment) {
      add("--config", request_.config);
      for (const std::string& override_ : overrides_of_runs(request_)) add("--set", override_);
    } else if (argument == kOptions) {
      for (const auto& [key, value] : experiment_.comm.options) add("--option", key + "=" + value);
    } else {
      all.push_back(argument);
    }
  }
  if (store_ != nullptr) {
    all.insert(all.end(),
               {"--nnodes", std::to_string(nodes_.count), "--node-rank", std::to_string(nodes_.rank), "--master-addr",
                nodes_.master_addr, "--master-port", std::to_string(port), "--nproc-per-node", std::to_string(ranks_)});
  }
  compare::ProcessPlan plan = compare::plan_of(request_.running, all, log);
  if (request_.running.timeout > 0) plan.timeout = milliseconds(std::llround(request_.running.timeout * 1000));
  return plan;
}

void Session::run(const std::string& folder, const std::string& name, const std::vector<std::string>& arguments) {
  ++number_;
  const int port = store_ == nullptr ? 0 : launch::free_port(nodes_.master_addr);
  if (store_ != nullptr) {
    store_->set(key_of(number_),
                json{{"arguments", arguments}, {"folder", folder}, {"name", name}, {"port", port}}.dump());
  }
  const std::string log = folder + "/logs/" + name + ".log";
  require_good(compare::run_process(plan_of(arguments, log, port)), name, log);
}

void Session::finish(ExitCode code, const std::string& message) noexcept {
  if (store_ == nullptr) return;
  try {
    store_->set(key_of(number_ + 1), json{{"code", code}, {"message", message}}.dump());
    store_->allgather("finished", nodes_.rank, nodes_.count, "", kLeave);
  } catch (const std::exception& error) {
    log::debug(error.what());  // the others are gone
  }
}

// Whether host 0 has ended with an error, so that the child of this host waits in vain.
bool Session::has_failed() {
  if (Clock::now() - looked_ < kLook) return false;
  looked_ = Clock::now();
  try {
    const json next = json::parse(store_->get(key_of(number_ + 1), milliseconds(0)));
    return next.contains("code") && next.at("code") != ExitCode::ok;
  } catch (const Error& error) {
    return error.code() != ExitCode::rendezvous;  // lost; otherwise there is no next child yet
  }
}

void Session::run_part(const std::vector<std::string>& arguments, const std::string& folder, const std::string& name,
                       int port) {
  for (const char* part : {"/runs", "/logs"}) std::filesystem::create_directories(folder + part);
  const std::string log = fmt::format("{}/logs/{}.node{}.log", folder, name, nodes_.rank);
  compare::ProcessPlan plan = plan_of(arguments, log, port);
  plan.end_early = [this] { return has_failed(); };
  const compare::ProcessEnd end = compare::run_process(plan);
  if (end.ending == Ending::ended_early) return;  // follow() has the cause
  try {
    require_good(end, name, log);
  } catch (const Error& error) {
    if (error.code() == ExitCode::interrupted || error.code() == ExitCode::terminated) throw;
    log::error(error.what());  // host 0 reports the end of its own child
  }
}

ExitCode Session::follow() {
  while (true) {
    const json next = json::parse(store_->get(key_of(++number_), kNextChild));
    if (!next.contains("code")) {
      run_part(next.at("arguments"), next.at("folder"), next.at("name"), next.at("port"));
      continue;
    }
    try {
      store_->allgather("finished", nodes_.rank, nodes_.count, "", kLeave);
    } catch (const Error& error) {
      log::debug(error.what());  // host 0 has not waited
    }
    const ExitCode code = next.at("code");
    if (const std::string message = next.at("message"); !message.empty()) throw Error(code, message);
    return code;
  }
}

}  // namespace ddprun::tune
