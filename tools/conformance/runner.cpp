#include "tools/conformance/runner.hpp"

#include <unistd.h>

#include <csignal>
#include <map>

#include "tools/conformance/networks.hpp"

namespace ddprun::conformance {
namespace {

using testing::As;
using testing::Outcome;

// What one rank told about one case.
struct Told {
  bool started = false;
  bool passed = false;
  std::string digest;
  std::string failure;
  std::string skipped;
  std::vector<std::string> notes;

  bool ended() const { return passed || !failure.empty() || !skipped.empty(); }
};

std::map<std::size_t, Told> told_by(const Outcome& outcome) {
  std::map<std::size_t, Told> cases;
  for (const auto& record : outcome.records) {
    const Report report = read_report(record);
    Told& told = cases[report.index];
    if (report.kind == "start") told.started = true;
    if (report.kind == "pass") told.passed = true, told.digest = report.text;
    if (report.kind == "fail") told.failure = report.text;
    if (report.kind == "skip") told.skipped = report.text;
    if (report.kind == "note") told.notes.push_back(report.text);
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

// One run of ranks over some cases.
class WorldRun {
 public:
  WorldRun(const Settings& settings, int size, As as, const std::vector<Case>& cases, std::size_t first,
           std::size_t last, Leftovers& leftovers)
      : cases_(cases), first_(first), size_(size), as_(as) {
    const milliseconds deadline{(last - first + 1) * kCaseSeconds * 1000};
    outcomes_ = testing::run_ranks(size, as, deadline, [&](testing::Rank& rank) {
      if (settings.networks) testing::move_to_network(rank);
      {
        Context context(settings, rank);
        for (std::size_t i = first; i < last; ++i) context.run(i, cases[i].body);
      }
      alarm(kCaseSeconds);  // for leaving the world
    });
    std::vector<pid_t> pids;
    for (const auto& outcome : outcomes_) {
      told_.push_back(told_by(outcome));
      pids.push_back(outcome.pid);
    }
    left_ = leftovers.found(pids);
  }

  // How many of the cases have a verdict: up to and with the one that a rank did not survive.
  std::size_t done(std::size_t last) {
    for (std::size_t i = first_; i < last; ++i) {
      for (int rank = 0; rank < size_; ++rank) {
        if (!outcomes_[rank].ok() && !told_[rank][i].ended()) return i + 1;
      }
    }
    return last;
  }

  Result result(std::size_t index) {
    const Case& the_case = cases_[index];
    Result result{world_name(size_, as_), the_case.group, the_case.name, Result::State::passed, "", {}};
    for (int rank = 0; rank < size_; ++rank) {
      const Told& told = told_[rank][index];
      result.notes.insert(result.notes.end(), told.notes.begin(), told.notes.end());
      if (!told.skipped.empty()) result.state = Result::State::skipped, result.text = told.skipped;
    }
    std::string wrong = failures_of(index);
    if (wrong.empty()) wrong = different_digests(index);
    if (!wrong.empty()) result.state = Result::State::failed, result.text = wrong;
    return result;
  }

  // What is wrong with how the world ended, beyond its cases.
  std::string wrong_at_end(std::size_t last) {
    std::string text;
    for (const auto& outcome : outcomes_) {
      bool all_told = true;
      for (std::size_t i = first_; i < last; ++i) all_told &= told_[outcome.rank][i].ended();
      if (!outcome.ok() && all_told) add_line(text, how_it_ended(outcome) + ", after its last case");
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
      const Told& told = told_[rank][index];
      const bool dies = cases_[index].last_rank_dies && rank == size_ - 1;
      const bool killed = outcomes_[rank].end == Outcome::End::killed && outcomes_[rank].number == SIGKILL;
      if (!told.failure.empty()) add_line(text, "rank " + std::to_string(rank) + ": " + told.failure);
      if (dies && killed) continue;
      if (dies) add_line(text, "rank " + std::to_string(rank) + ": should have died in this case, but finished");
      if (told.ended()) continue;
      // A rank that waited out of band for one that was gone only echoes the cause.
      add_line(outcomes_[rank].error.starts_with("exchange: ") ? echoes : text, how_it_ended(outcomes_[rank]));
    }
    return text.empty() ? echoes : text;
  }

  std::string different_digests(std::size_t index) {
    for (int rank = 1; rank < size_; ++rank) {
      if (!told_[rank][index].passed || !told_[0][index].passed) continue;
      if (told_[rank][index].digest == told_[0][index].digest) continue;
      return "rank " + std::to_string(rank) + ": its result has other bits than that of rank 0";
    }
    return "";
  }

  const std::vector<Case>& cases_;
  std::size_t first_;
  int size_;
  As as_;
  std::vector<Outcome> outcomes_;
  std::vector<std::map<std::size_t, Told>> told_;
  std::vector<std::string> left_;
};

// Behind the last case of the world that starts with `first`.
std::size_t end_of_world(const std::vector<Case>& cases, std::size_t first) {
  if (cases[first].own_world) return first + 1;
  std::size_t last = first;
  while (last < cases.size() && !cases[last].own_world) ++last;
  return last;
}

}  // namespace

std::string world_name(int size, As as) {
  return "world " + std::to_string(size) + " " + testing::name_of(as);
}

void run_cases(const Settings& settings, int size, As as, const std::vector<Case>& cases, Leftovers& leftovers,
               const std::function<void(const Result&)>& sink) {
  constexpr int kMostBroken = 8;
  int broken = 0;
  std::string wrong_at_end;
  for (std::size_t first = 0; first < cases.size();) {
    const std::size_t last = end_of_world(cases, first);
    if (!cases[first].own_world && broken >= kMostBroken) {
      for (; first < last; ++first) {
        sink({world_name(size, as),
              cases[first].group,
              cases[first].name,
              Result::State::failed,
              "not run: " + std::to_string(broken) + " cases before it broke their world",
              {}});
      }
      continue;
    }
    WorldRun run(settings, size, as, cases, first, last, leftovers);
    const std::size_t done = run.done(last);
    for (std::size_t i = first; i < done; ++i) sink(run.result(i));
    const std::string wrong = run.wrong_at_end(done);
    if (!wrong.empty()) add_line(wrong_at_end, "after \"" + cases[done - 1].name + "\": " + wrong);
    if (done < last) ++broken;
    first = done;
  }
  sink({world_name(size, as),
        "end",
        "the ranks end and leave nothing behind",
        wrong_at_end.empty() ? Result::State::passed : Result::State::failed,
        wrong_at_end,
        {}});
}

}  // namespace ddprun::conformance
