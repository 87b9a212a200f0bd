#include "tools/conformance/suite.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <sstream>

#include "base/log.hpp"
#include "cli/console/table.hpp"
#include "cuda/driver.hpp"
#include "ddprun/error.hpp"
#include "testing/hosts.hpp"
#include "tools/conformance/job_ranks.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::conformance {
namespace {

using testing::Outcome;

// What one rank reported about one case.
struct CaseReport {
  bool passed = false;
  std::string failure;
  bool slow = false;  // the failure is only that it took a little too long

  bool ended() const { return passed || !failure.empty(); }
};

// By case.
std::map<std::size_t, CaseReport> reports_by(const Outcome& outcome) {
  std::map<std::size_t, CaseReport> cases;
  for (const auto& record : outcome.records) {
    std::istringstream words(record);
    std::string kind, text;
    std::size_t index = 0;
    std::getline(words >> kind >> index, text, '\0');
    text.erase(0, 1);  // the blank
    CaseReport& reported = cases[index];
    if (kind == "pass") reported.passed = true;
    if (kind == "fail" || kind == "slow") reported.failure = text;
    if (kind == "slow") reported.slow = true;
  }
  return cases;
}

std::string how_it_ended(const Outcome& outcome) {
  if (outcome.end == Outcome::End::killed && outcome.number == SIGALRM) {
    return "rank " + std::to_string(outcome.rank) + ": hung: did not end the case within " +
           std::to_string(kCaseSeconds) + " s, and was killed";
  }
  return outcome.describe();
}

void add_line(std::string& text, const std::string& line) {
  text += (text.empty() ? "" : "\n") + line;
}

// One run of the ranks over some cases.
class WorldRun {
 public:
  WorldRun(const World& world, const std::vector<Case>& cases, std::size_t first, std::size_t last,
           Leftovers& leftovers)
      : cases_(cases), first_(first), size_(world.size), world_(world.name()) {
    const Settings& settings = world.settings;
    const milliseconds deadline{(last - first + 1) * kCaseSeconds * 1000};
    const auto body = [&](testing::Rank& rank) {
      if (first > 0 && !settings.checks.verbose) log::set_level(log::Level::warning);
      {
        Context context(settings, rank);
        for (std::size_t i = first; i < last; ++i) context.run(i, cases[i].body);
      }
      if (!settings.checks.no_fork) alarm(kCaseSeconds);  // time for leaving the world
      if (world.as == testing::As::processes && settings.job == nullptr) comm::finish_plugins();
    };
    const auto placement = settings.hosts ? settings.hosts->placement(settings.per_host)
                                          : testing::Placement{.fork = !settings.checks.no_fork};
    outcomes_ = settings.job != nullptr ? settings.job->run(body)
                                        : testing::run_ranks(size_, world.as, deadline, body, placement);
    left_ = leftovers.found(tools::each(outcomes_, &Outcome::pid));
    reported_ = tools::each(outcomes_, reports_by);
  }

  // The number of cases with a verdict: up to and including the one that a rank did not survive.
  std::size_t done(std::size_t last) {
    for (std::size_t i = first_; i < last; ++i) {
      for (int rank = 0; rank < size_; ++rank) {
        if (!outcomes_[rank].ok() && !reported_[rank][i].ended()) return i + 1;
      }
    }
    return last;
  }

  Result result(std::size_t index) {
    const Case& the_case = cases_[index];
    Result result{world_, the_case.group, the_case.name, Result::State::passed, ""};
    const std::string wrong = failures_of(index);
    if (!wrong.empty()) result.state = Result::State::failed, result.text = wrong;
    return result;
  }

  // True if a busy machine may have failed the case: at least one rank was a little too slow, and nothing else is
  // wrong.
  bool only_slow(std::size_t index) {
    const auto slow = [&](auto& of_rank) { return of_rank[index].slow; };
    const auto fits = [&](auto& of_rank) { return of_rank[index].slow || of_rank[index].failure.empty(); };
    return std::ranges::any_of(reported_, slow) && std::ranges::all_of(reported_, fits);
  }

  // Errors at the end of the world, outside its cases.
  std::string wrong_at_end(std::size_t last) {
    std::string text;
    for (const auto& outcome : outcomes_) {
      bool all_reported = true;
      for (std::size_t i = first_; i < last; ++i) all_reported &= reported_[outcome.rank][i].ended();
      if (!outcome.ok() && all_reported) add_line(text, how_it_ended(outcome) + ", after its last case");
      if (outcome.left_processes) add_line(text, "rank " + std::to_string(outcome.rank) + ": left processes behind");
    }
    for (const auto& left : left_) add_line(text, "left behind: " + left);
    return text;
  }

 private:
  std::string failures_of(std::size_t index) {
    std::string text;
    std::string echoes;
    for (int rank = 0; rank < size_; ++rank) {
      const CaseReport& reported = reported_[rank][index];
      const bool dies = cases_[index].last_rank_dies && rank == size_ - 1;
      const bool killed = outcomes_[rank].end == Outcome::End::killed && outcomes_[rank].number == SIGKILL;
      if (!reported.failure.empty()) add_line(text, "rank " + std::to_string(rank) + ": " + reported.failure);
      if (dies && killed) continue;
      if (dies) add_line(text, "rank " + std::to_string(rank) + ": should have died in this case, but finished");
      if (reported.ended()) continue;
      // A rank that waited out of band for a dead rank only repeats the cause.
      add_line(outcomes_[rank].error.starts_with("exchange: ") ? echoes : text, how_it_ended(outcomes_[rank]));
    }
    return text.empty() ? echoes : text;
  }

  const std::vector<Case>& cases_;
  std::size_t first_;
  int size_;
  std::string world_;
  std::vector<Outcome> outcomes_;
  std::vector<std::map<std::size_t, CaseReport>> reported_;
  std::vector<std::string> left_;
};

// The result for the end of the world that starts with case `first`.
std::size_t end_of_world(const std::vector<Case>& cases, std::size_t first) {
  if (cases[first].own_world) return first + 1;
  std::size_t last = first;
  while (last < cases.size() && !cases[last].own_world) ++last;
  return last;
}

constexpr milliseconds kPatience{120'000};  // the first use of a GPU can take long

}  // namespace

void join_single(const Settings& settings) {
  comm::JoinOptions single{.device = device_of(settings, 0), .options = settings.options};
  single.allgather = [](std::string_view mine) { return std::vector<std::string>{std::string(mine)}; };
  comm::join(*settings.plugin.table, single);
}

void leave_out(const World& world, std::span<const Case> cases, const std::string& why, const Sink& sink) {
  for (const Case& one : cases) sink({world.name(), one.group, one.name, Result::State::not_run, why});
}

std::string run_cases(const World& world, const std::vector<Case>& cases, Leftovers& leftovers, const Sink& sink) {
  constexpr int kMostBroken = 8;
  constexpr int kTries = 3;  // of a case that is only slow
  int tries = 0;
  int broken = 0;
  std::string wrong_at_end, stopped;
  for (std::size_t first = 0; first < cases.size() && stopped.empty();) {
    const std::size_t last = end_of_world(cases, first);
    if (!cases[first].own_world && broken >= kMostBroken) {
      leave_out(world, std::span(cases).subspan(first, last - first),
                std::to_string(broken) + " cases before broke their world", sink);
      first = last;
      continue;
    }
    WorldRun run(world, cases, first, last, leftovers);
    if (cases[first].own_world && run.only_slow(first) && ++tries < kTries) continue;
    tries = 0;
    const std::size_t done = run.done(last);
    for (std::size_t i = first; i < done; ++i) {
      const Result result = run.result(i);
      sink(result);
      if (result.state == Result::State::failed && cases[i].required) stopped = "\"" + cases[i].name + "\" failed";
    }
    const std::string wrong = run.wrong_at_end(done);
    if (!wrong.empty()) add_line(wrong_at_end, "after \"" + cases[done - 1].name + "\": " + wrong);
    if (done < last) ++broken;
    first = done;
    if (!stopped.empty()) leave_out(world, std::span(cases).subspan(first), stopped, sink);
  }
  const auto state = wrong_at_end.empty() ? Result::State::passed : Result::State::failed;
  sink({world.name(), "end", "the ranks end and leave nothing behind", state, wrong_at_end});
  return stopped;
}

Gpus find_gpus(const Settings& settings) {
  const auto outcome = testing::run_ranks(1, testing::As::processes, kPatience, [&](testing::Rank& rank) {
                         const std::size_t count = cuda::gpus().size();
                         const tools::BufferMemory memory(device_of(settings, 0));
                         join_single(settings);
                         rank.report(std::to_string(count));
                       }).front();
  if (outcome.ok() && !outcome.records.empty()) return {std::stoi(outcome.records.front()), ""};
  if (outcome.end == testing::Outcome::End::threw && outcome.number == static_cast<int>(ExitCode::plugin)) {
    return {0, outcome.error};
  }
  throw Error(ExitCode::failure, "a world of one rank: " + outcome.describe());
}

std::string why_not(const World& world, const Gpus& gpus) {
  const Settings& settings = world.settings;
  if (settings.memory == Memory::host || settings.devices.size() == 1) return "";
  const bool named = !settings.devices.empty();
  const std::size_t count = named ? settings.devices.size() : static_cast<std::size_t>(gpus.count);
  if (static_cast<std::size_t>(world.size) <= count) return "";
  return std::string(named ? "--device names " : "this machine has ") +
         console::several(static_cast<int64_t>(count), "GPU") +
         "; with --device 0 all ranks share one, if the plugin allows it";
}

}  // namespace ddprun::conformance
