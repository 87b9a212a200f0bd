#include "tools/lib/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "launch/first_cause.hpp"
#include "launch/net/address.hpp"
#include "launch/net/net_store.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kAskAgain{1000};  // between two questions whether a part has failed
// How long process 0 waits for another part after its part has ended: longer than run_process() needs to kill a child.
constexpr milliseconds kEnds = kGrace + kAskAgain + milliseconds(10000);
constexpr milliseconds kAcknowledge{5000};  // until every running process has acknowledged a failure
constexpr milliseconds kLeave{5000};
// Between two runs. A process 0 that has ended is noticed at once.
constexpr milliseconds kNextRun = std::chrono::hours(24 * 365);

milliseconds since(Clock::time_point begin) {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
}

std::string text_of(const ChildEnd& end) {
  constexpr int kSignal = 128;
  const int code = end.process.code;
  if (!end.cause.empty()) return end.cause;
  if (code > kSignal && code != static_cast<int>(ExitCode::interrupted) &&
      code != static_cast<int>(ExitCode::terminated)) {
    return fmt::format("killed by signal {}", code - kSignal);
  }
  return last_line_of(end.log);
}

// For launch::first_cause(): times of several hosts cannot be compared.
launch::RankEnd rank_end_of(int index, const json& part) {
  launch::RankEnd end;
  end.rank = index;
  end.exit_code = part.at("code");
  end.killed_by_launcher = part.at("ending") == Ending::ended_early;
  if (end.exit_code > 128) end.signal = end.exit_code - 128;
  return end;
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CpuUse, machine, all, busy, own)

std::unique_ptr<Job> Job::find(const console::NodeOptions& options) {
  const auto world = console::discover(options, std::nullopt);
  if (world ? world->size == 1 : options.nnodes.value_or(1) == 1) return nullptr;
  launch::forget_launcher();
  std::unique_ptr<Job> job(new Job);
  job->options_ = options;
  job->world_ = world;
  return job;
}

void Job::open_store(bool insecure, milliseconds timeout) {
  if (world_) {
    world_->insecure = insecure;
    index_ = world_->rank;
    count_ = world_->size;
    store_ = launch::open_store(*world_, timeout);
    address_ = world_->address;
    at_ = world_->server;
    if (at_.host.empty()) at_ = {"127.0.0.1", 0, {}};  // the store is the folder of a job on one host
    return;
  }
  const launch::Nodes nodes = console::nodes_of(options_, insecure, timeout);
  index_ = nodes.rank;
  count_ = nodes.count;
  at_ = nodes.master;
  store_ = leads() ? launch::hosted_store(at_, timeout) : launch::net_store(at_, timeout);
  launch::World node;
  node.rank = index_;
  node.size = count_;
  node.master_addr = nodes.master.host;
  launch::locate(node, *store_, timeout);
  address_ = node.address;
}

std::vector<std::vector<int64_t>> Job::meet(Terms terms) {
  open_store(terms.insecure, terms.timeout);
  launch::compare_identities(*store_, index_, count_, terms.identity, terms.timeout,
                             {.process = process(), .differ = terms.differ, .advice = terms.advice});
  if (world_) std::fill(terms.counts.begin(), terms.counts.end(), 1);
  const json own = {{"host", launch::host_name()}, {"counts", terms.counts}};
  std::vector<std::vector<int64_t>> counts;
  for (const std::string& text : store_->allgather("parts", index_, count_, own.dump(), terms.timeout)) {
    const json part = json::parse(text);
    hosts_.push_back(part.at("host"));
    counts.push_back(part.at("counts"));
  }
  return counts;
}

// The place of this process's child in the run.
void Job::place(ProcessPlan& plan, int port) const {
  const auto add = [&](const std::string& name, const std::string& value) {
    if (world_) {
      plan.environment.push_back(name + "=" + value);
    } else {
      plan.command.insert(plan.command.end(), {name, value});
    }
  };
  if (world_) {
    add("RANK", std::to_string(index_));
    add("WORLD_SIZE", std::to_string(count_));
    add("LOCAL_RANK", std::to_string(world_->local_rank));
    add("LOCAL_WORLD_SIZE", std::to_string(world_->local_size));
    add("MASTER_ADDR", at_.host);
    add("MASTER_PORT", std::to_string(port));
    return;
  }
  add("--nnodes", std::to_string(count_));
  add("--node-rank", std::to_string(index_));
  add("--master-addr", at_.host);
  add("--master-port", std::to_string(port));
  if (options_.nproc) add("--nproc-per-node", std::to_string(*options_.nproc));
}

ChildEnd Job::run(json what, ProcessPlan plan) {
  ++run_;
  const int port = launch::free_port(at_.host);
  place(plan, port);
  what["port"] = port;
  what["log"] = plan.log;
  store_->set(key("run"), what.dump());
  plan.end_early = [this, asked = std::move(plan.end_early)] { return (asked && asked()) || failed(); };
  ChildEnd end = run_process(plan);
  collect(end);
  return end;
}

bool Job::failed() {
  if (Clock::now() - asked_ < kAskAgain) return false;
  asked_ = Clock::now();
  if (!store_->get(key("failed"), milliseconds(0))) return false;
  acknowledge();
  return true;
}

// Reports to process 0 that this process runs, and knows of the failure.
void Job::acknowledge() {
  if (acknowledged_ == run_) return;
  acknowledged_ = run_;
  store_->set(key("acknowledged", index_), "");
}

// This process's part of the run has ended.
void Job::announce(const ChildEnd& end) {
  if (!end.is_good()) {
    try {
      store_->set(key("failed"), "");
    } catch (const Error& error) {
      if (error.code() != ExitCode::rendezvous) throw;  // another one was first
    }
  }
  const json part = {{"ending", end.process.ending},
                     {"code", end.process.code},
                     {"text", text_of(end)},
                     {"log", end.log},
                     {"cpu", end.cpu}};
  acknowledge();
  store_->set(key("end", index_),
              part.dump(-1, ' ', false, json::error_handler_t::replace));  // a log may have any bytes
}

// Waits until all parts have ended.
void Job::collect(ChildEnd& end) {
  announce(end);
  std::vector<json> parts;
  std::vector<launch::RankEnd> ends;
  const auto begin = Clock::now();
  for (int index = 0; index < count_; ++index) {
    json part = {{"ending", Ending::exited},
                 {"code", ExitCode::peer},
                 {"text", "its process does not answer"},
                 {"log", ""},
                 {"cpu", json::array()}};
    if (end.is_good() || store_->get(key("acknowledged", index), kAcknowledge - since(begin))) {
      if (const auto text = store_->get(key("end", index), kEnds - since(begin))) part = json::parse(*text);
    }
    const Ending ending = part.at("ending");
    if (ending == Ending::interrupted || ending == Ending::terminated) end.process.ending = ending;
    ends.push_back(rank_end_of(index, part));
    if (index != index_) std::ranges::copy(part.at("cpu"), std::back_inserter(end.cpu));
    parts.push_back(std::move(part));
  }
  const launch::RankEnd* cause = launch::first_cause(ends);
  if (cause == nullptr || cause->rank == index_ || end.process.ending == Ending::timed_out) return;
  const json& part = parts[static_cast<std::size_t>(cause->rank)];
  const std::string host = hosts_[static_cast<std::size_t>(cause->rank)];
  end.process.code = static_cast<int>(launch::exit_code_of(*cause));
  end.cause = fmt::format("{} {} ({}): {}", process(), cause->rank, host, part.at("text").get<std::string>());
  end.log = host + ":" + part.at("log").get<std::string>();
}

void Job::finish(ExitCode code, const std::string& message) noexcept {
  ++run_;
  try {
    store_->set(key("run"), json{{"code", code}, {"message", message}}.dump());
    store_->allgather("finished", index_, count_, "", kLeave);
  } catch (const std::exception& error) {
    log::debug(error.what());  // the others are gone
  }
}

ExitCode Job::lead(const std::function<ExitCode()>& work) try {
  const ExitCode code = work();
  finish(code, "");
  return code;
} catch (const Error& error) {
  finish(error.code(), error.what());
  throw;
} catch (const std::exception& error) {
  finish(ExitCode::failure, error.what());
  throw;
}

void Job::run_part(ProcessPlan plan, const json& what) {
  place(plan, what.at("port"));
  std::exception_ptr lost;  // process 0
  plan.end_early = [&] {
    try {
      return failed();
    } catch (const Error&) {
      lost = std::current_exception();
      return true;
    }
  };
  fs::path log = what.at("log").get<std::string>();
  plan.log = log.replace_extension(fmt::format(".{}{}.log", process(), index_)).string();
  ChildEnd end;
  try {
    fs::create_directories(log.parent_path().parent_path() / "runs");
    end = run_process(plan);
  } catch (const std::exception& error) {
    end = {{Ending::exited, static_cast<int>(ExitCode::failure)}, plan.log, {}, error.what()};
  }
  if (lost) std::rethrow_exception(lost);
  announce(end);
}

ExitCode Job::follow(const std::function<ProcessPlan(const json&)>& plan_of) {
  while (true) {
    ++run_;
    const json text = json::parse(store_->require(key("run"), kNextRun));
    if (!text.contains("code")) {
      run_part(plan_of(text), text);
      continue;
    }
    try {
      store_->allgather("finished", index_, count_, "", kLeave);
    } catch (const Error& error) {
      log::debug(error.what());  // process 0 has not waited
    }
    const ExitCode code = text.at("code");
    if (const std::string message = text.at("message"); !message.empty()) throw Error(code, message);
    return code;
  }
}

}  // namespace ddprun::tools
