#include "tools/compare/agents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "launch/first_cause.hpp"
#include "launch/meeting.hpp"
#include "launch/net/address.hpp"
#include "launch/net/connection.hpp"

namespace ddprun::compare {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook{1000};  // between two questions whether a part has failed
// How long process 0 waits for another part after its part has ended: longer than run_process() needs to kill a child.
constexpr milliseconds kEnds = kGrace + kLook + milliseconds(10000);
constexpr milliseconds kHear{5000};  // until every running process has heard of a failure
constexpr milliseconds kLeave{5000};
// Between two runs. A process 0 that has ended is noticed at once.
constexpr milliseconds kNextRun = std::chrono::hours(24 * 365);

milliseconds since(Clock::time_point begin) {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
}

bool is_good(const ProcessEnd& end) {
  return end.ending == Ending::exited && end.code == 0;
}

std::string text_of(const ProcessEnd& end, const std::string& log) {
  constexpr int kSignal = 128;
  if (end.code > kSignal && end.code != static_cast<int>(ExitCode::interrupted) &&
      end.code != static_cast<int>(ExitCode::terminated)) {
    return fmt::format("killed by signal {}", end.code - kSignal);
  }
  return last_line_of(log);
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

CpuUse cpu_of(const json& part) {
  return {part.at("machine"), part.at("all"), part.at("busy"), part.at("own")};
}

}  // namespace

std::vector<std::string> Leg::arguments(const std::string& config) const {
  std::vector<std::string> arguments = {"--config", config};
  for (const std::string& override_ : overrides) arguments.insert(arguments.end(), {"--set", override_});
  return arguments;
}

std::string Leg::log_path(const std::string& process) const {
  return folder + "/logs/" + name + process + ".log";
}

std::unique_ptr<Agents> Agents::find(const console::NodeOptions& options) {
  console::use_local_rank(options);
  const auto world = console::discover(options, std::nullopt);
  if (world ? world->size == 1 : options.nnodes.value_or(1) == 1) return nullptr;
  launch::forget_launcher();
  std::unique_ptr<Agents> agents(new Agents);
  agents->options_ = options;
  agents->world_ = world;
  return agents;
}

void Agents::open_store(const Variant& first, milliseconds timeout) {
  const bool insecure = first.loaded.experiment.launch.insecure;
  if (world_) {
    world_->insecure = insecure;
    index_ = world_->rank;
    count_ = world_->size;
    store_ = launch::open_store(*world_, timeout);
    master_ = world_->on_one_host() ? "127.0.0.1" : world_->server.host;
    return;
  }
  const launch::Nodes nodes = console::nodes_of(options_, insecure, timeout);
  index_ = nodes.rank;
  count_ = nodes.count;
  master_ = nodes.master_addr;
  launch::StoreAddress address{nodes.master_addr, nodes.master_port, nodes.secret};
  store_ = index_ == 0 ? launch::hosted_store(address, timeout) : launch::net_store(address, timeout);
}

void Agents::meet(const std::string& identity, std::vector<Variant>& variants) {
  const milliseconds timeout(static_cast<int64_t>(variants.front().loaded.experiment.launch.timeout * 1000));
  open_store(variants.front(), timeout);
  launch::compare_identities(*store_, index_, count_, identity, timeout,
                             {.process = process(),
                              .differ = "do not make the same comparison",
                              .advice = "start all with the same arguments, configs and version"});
  std::vector<int64_t> ranks;
  for (const Variant& variant : variants) {
    ranks.push_back(world_ ? 1 : options_.nproc ? *options_.nproc : ranks_of(variant.loaded.experiment));
  }
  const json own = {{"host", launch::host_name()}, {"ranks", ranks}};
  std::fill(ranks.begin(), ranks.end(), 0);
  for (const std::string& text : store_->allgather("parts", index_, count_, own.dump(), timeout)) {
    const json part = json::parse(text);
    hosts_.push_back(part.at("host"));
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] += part.at("ranks").at(i).get<int64_t>();
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    config::Experiment& experiment = variants[i].loaded.experiment;
    if (experiment.strategy.kind == "ddp") experiment.launch.nproc = ranks[i];
  }
}

// The place of this process's child in the run.
void Agents::place(ProcessPlan& plan, int port) const {
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
    add("MASTER_ADDR", master_);
    add("MASTER_PORT", std::to_string(port));
    return;
  }
  add("--nnodes", std::to_string(count_));
  add("--node-rank", std::to_string(index_));
  add("--master-addr", master_);
  add("--master-port", std::to_string(port));
  if (options_.nproc) add("--nproc-per-node", std::to_string(*options_.nproc));
}

void Agents::begin(Leg& leg, ProcessPlan& plan) {
  ++leg_;
  leg.port = launch::free_port(master_);
  place(plan, leg.port);
  const json text = {{"variant", leg.variant},
                     {"overrides", leg.overrides},
                     {"folder", leg.folder},
                     {"name", leg.name},
                     {"port", leg.port}};
  store_->set(key("run"), text.dump());
}

bool Agents::failed() {
  if (Clock::now() - looked_ < kLook) return false;
  looked_ = Clock::now();
  try {
    store_->get(key("failed"), milliseconds(0));
    hear();
    return true;
  } catch (const Error& error) {
    if (error.code() != ExitCode::rendezvous) throw;
    return false;
  }
}

// Reports to process 0 that this process runs, and has heard of the failure.
void Agents::hear() {
  if (heard_ == leg_) return;
  heard_ = leg_;
  store_->set(key("heard", index_), "");
}

// This process's part of the run has ended.
void Agents::announce(const ProcessEnd& end, const std::string& text, const std::string& log, const CpuUse& cpu) {
  if (!is_good(end)) {
    try {
      store_->set(key("failed"), "");
    } catch (const Error& error) {
      if (error.code() != ExitCode::rendezvous) throw;  // another one was first
    }
  }
  const json part = {{"ending", end.ending},
                     {"code", end.code},
                     {"text", text},
                     {"log", log},
                     {"cpu", {{"machine", cpu.machine}, {"all", cpu.all}, {"busy", cpu.busy}, {"own", cpu.own}}}};
  hear();
  store_->set(key("end", index_),
              part.dump(-1, ' ', false, json::error_handler_t::replace));  // a log may have any bytes
}

void Agents::collect(RunEnd& end, std::vector<CpuUse>& cpu) {
  announce(end.process, text_of(end.process, end.log), end.log, cpu.front());
  std::vector<json> parts;
  std::vector<launch::RankEnd> ends;
  const auto begin = Clock::now();
  for (int index = 0; index < count_; ++index) {
    json part;
    try {
      if (!is_good(end.process)) store_->get(key("heard", index), kHear - since(begin));
      part = json::parse(store_->get(key("end", index), kEnds - since(begin)));
    } catch (const Error& error) {
      if (error.code() != ExitCode::rendezvous) throw;
      part = {
          {"ending", Ending::exited}, {"code", ExitCode::peer}, {"text", "its process does not answer"}, {"log", ""}};
    }
    const Ending ending = part.at("ending");
    if (ending == Ending::interrupted || ending == Ending::terminated) end.process.ending = ending;
    ends.push_back(rank_end_of(index, part));
    if (index != index_ && part.contains("cpu")) cpu.push_back(cpu_of(part.at("cpu")));
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

void Agents::finish(ExitCode code, const std::string& message) noexcept {
  ++leg_;
  try {
    store_->set(key("run"), json{{"code", code}, {"message", message}}.dump());
    store_->allgather("finished", index_, count_, "", kLeave);
  } catch (const std::exception& error) {
    log::debug(error.what());  // the others are gone
  }
}

void Agents::run_part(const Leg& leg, const Running& running, const std::vector<Variant>& variants) {
  const auto is_it = [&](const Variant& variant) { return variant.name == leg.variant; };
  const Variant& variant = *std::find_if(variants.begin(), variants.end(), is_it);
  const std::string log = leg.log_path("." + process() + std::to_string(index_));
  ProcessPlan plan = plan_of(running, leg.arguments(variant.file), log);
  place(plan, leg.port);
  std::exception_ptr lost;  // process 0
  plan.end_early = [&] {
    try {
      return failed();
    } catch (const Error&) {
      lost = std::current_exception();
      return true;
    }
  };
  ProcessEnd end;
  std::string text;
  const CpuMeter meter;
  try {
    for (const char* part : {"/runs", "/logs"}) std::filesystem::create_directories(leg.folder + part);
    end = run_process(plan);
    text = text_of(end, log);
  } catch (const std::exception& error) {
    end.code = static_cast<int>(ExitCode::failure);
    text = error.what();
  }
  if (lost) std::rethrow_exception(lost);
  announce(end, text, log, meter.use());
}

ExitCode Agents::follow(const Running& running, const std::vector<Variant>& variants) {
  while (true) {
    ++leg_;
    const json text = json::parse(store_->get(key("run"), kNextRun));
    if (!text.contains("code")) {
      run_part({text.at("variant"), text.at("overrides"), text.at("folder"), text.at("name"), text.at("port")}, running,
               variants);
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

}  // namespace ddprun::compare
