
#include <doctest/doctest.h>

#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "tools/report/report.hpp"
#include "tools/report/some_run.hpp"

using namespace ddprun;
using namespace ddprun::report;
using comm::CallState;
using comm::Kind;
using comm::RankCollectives;
using comm::RecordedCall;
using testing::contains;

namespace {

// Call n starts at second n and ends half a second later; all ranks write at second 100.
RankCollectives rank_file(int64_t rank, int64_t world, uint64_t calls, uint64_t first = 1) {
  RankCollectives file{.rank = rank, .world = world, .host = "a", .backend = "gloo", .reason = "SIGUSR2"};
  file.written = 100;
  for (uint64_t number = first; number <= calls; ++number) {
    file.calls.push_back({.shape = {.number = number, .count = 100, .kind = Kind::allreduce},
                          .state = CallState::finished,
                          .step = static_cast<int64_t>(number) / 2,
                          .start = static_cast<double>(number),
                          .duration = 0.5});
  }
  return file;
}

void unfinish(RecordedCall& call) {
  call.state = CallState::started;
  call.duration = RecordedCall::kNotEnded;
}

CollectivesByRank files_of(std::vector<RankCollectives> files) {
  CollectivesByRank by_rank;
  for (RankCollectives& file : files) by_rank[file.rank] = file;
  return by_rank;
}

bool diverged(const std::vector<RankCollectives>& files) {
  return !find_divergence(files_of(files)).text.starts_with("all ranks with a file have finished the same calls");
}

}  // namespace

TEST_CASE("ranks that have finished the same calls did not diverge") {
  const auto files = files_of({rank_file(0, 2, 9), rank_file(1, 2, 9)});
  CHECK(find_divergence(files).number == 9);
  CHECK(collectives_line(files) == "All ranks with a file have finished the same calls, up to 9.");
  CHECK_FALSE(diverged({rank_file(0, 1, 0)}));
}

TEST_CASE("a rank that has not started a call is named, with its last call") {
  auto waiting = rank_file(0, 3, 8), other = rank_file(2, 3, 8);
  unfinish(waiting.calls.back());
  unfinish(other.calls.back());
  const auto files = files_of({waiting, rank_file(1, 3, 7), other});
  CHECK(find_divergence(files).number == 8);
  CHECK(collectives_line(files) ==
        "Rank 1 has not started allreduce 8 (float32 x 100, sum), which ranks 0 and 2 started up to 1 min 32 s before; "
        "the last call of rank 1 was allreduce 7 (float32 x 100, sum), in step 3.");
  const auto idle = files_of({waiting, rank_file(1, 3, 0)});
  CHECK(contains(collectives_line(idle), "Rank 1 has not started allreduce 1 ("));
  CHECK(contains(collectives_line(idle), "; rank 1 has called none. No file of rank 2."));
}

TEST_CASE("calls that differ are found, whether or not they have ended") {
  auto other = rank_file(1, 2, 9);
  other.calls[4].shape.count = 99;
  other.calls[6].shape.kind = Kind::barrier;
  const Divergence found = find_divergence(files_of({rank_file(0, 2, 9), other}));
  CHECK(found.number == 5);
  CHECK(found.text ==
        "call 5 differs: rank 0 called allreduce (float32 x 100, sum), rank 1 called allreduce (float32 x 99, sum)");
  const auto changed = [](auto change) {
    auto file = rank_file(1, 2, 9);
    change(file.calls[2]);
    return find_divergence(files_of({rank_file(0, 2, 9), file}));
  };
  CHECK(changed([](RecordedCall& call) { call.shape.dtype = DType::float64; }).number == 3);
  CHECK(changed([](RecordedCall& call) { call.shape.op = Op::max; }).number == 3);
  CHECK(changed([](RecordedCall& call) { call.shape.bucket = 1; }).number == 3);
  CHECK(changed([](RecordedCall& call) { call.step = 88; }).number == 9);
  auto one = rank_file(0, 2, 9), two = rank_file(1, 2, 9);
  for (RankCollectives* file : {&one, &two}) file->calls[2].shape.kind = Kind::broadcast;
  two.calls[2].shape.root = 1;
  CHECK(find_divergence(files_of({one, two})).number == 3);
}

TEST_CASE("a call that all have started and some or all have not finished") {
  auto a = rank_file(0, 4, 9), b = rank_file(1, 4, 9);
  unfinish(b.calls.back());
  CHECK(collectives_line(files_of({a, b})) ==
        "All ranks with a file have started allreduce 9 (float32 x 100, sum), up to 1 min 31 s before, and rank 1 has "
        "not finished it. No file of ranks 2 and 3.");
  a.calls.back().state = CallState::failed;
  CHECK(contains(collectives_line(files_of({a, b})), "and none has finished it"));
}

TEST_CASE("ranks are compared at the time of the first file, so that a running job does not look diverged") {
  auto early = rank_file(0, 2, 6);
  early.written = 6.75;
  CHECK_FALSE(diverged({early, rank_file(1, 2, 9)}));
  CHECK(find_divergence(files_of({early, rank_file(1, 2, 9)})).number == 6);
  early.written = 6.25;  // in the middle of call 6
  unfinish(early.calls.back());
  CHECK(diverged({early, rank_file(1, 2, 9)}));
}

TEST_CASE("files of different requests are pointed out") {
  auto early = rank_file(0, 2, 9);
  early.written = 96;
  CHECK_FALSE(contains(collectives_line(files_of({early, rank_file(1, 2, 9)})), "apart"));
  early.written = 40;
  CHECK(contains(collectives_line(files_of({early, rank_file(1, 2, 9)})),
                 ". The files were written 1 min 00 s apart: some may be from an earlier SIGUSR2."));
}

TEST_CASE("calls that some ranks no longer have are not compared") {
  auto other = rank_file(1, 2, 600, 89);
  other.written = 99.75;
  const auto none = find_divergence(files_of({rank_file(0, 2, 600, 1), other}));
  CHECK(none.number == 99);
  CHECK(none.text == "all ranks with a file have finished the same calls, up to 99");
  other.written = 80;
  CHECK(find_divergence(files_of({rank_file(0, 2, 600, 1), other})).text ==
        "the files were written at different times and have no calls in common");
  auto late = rank_file(0, 2, 600, 89), behind = rank_file(1, 2, 20);
  late.written = behind.written = 1000;
  const auto found = find_divergence(files_of({late, behind}));
  CHECK(found.number == 89);
  CHECK(contains(found.text, "the last call of rank 1 was allreduce 20 ("));
}

TEST_CASE("a duration that the clock does not resolve is no figure") {
  auto first = rank_file(0, 2, 3), second = rank_file(1, 2, 2);
  for (auto* file : {&first, &second}) file->calls[1].duration = 0.002;
  const auto section = collectives_section(files_of({first, second}));
  CHECK(section.tables[0].table.rows()[1][5] == "< 10 ms");
}

TEST_CASE("a folder that has only such files has a page, and a run has a section") {
  const testing::TempDir folder;
  const std::string failed = folder.path() / "failed";
  std::filesystem::create_directories(failed);
  CHECK(contains(testing::error_of([&] { page_of({failed}); }), "no folder of a run"));
  write_collectives(failed, rank_file(1, 2, 9));
  const Page page = page_of({failed});
  CHECK(page.title == "failed");
  REQUIRE(page.sections.size() == 1);
  CHECK(page.sections[0].title == "Collectives");
  REQUIRE(page.notices.size() == 1);
  CHECK(contains(page.notices[0], ". No file of rank 0."));
  CHECK(make({failed}, "") == failed + "/report.html");
  CHECK(contains(testing::read_file(failed + "/report.html"), "No file of rank 0."));

  const std::string done = testing::write_run(folder, "done", {}), other = testing::write_run(folder, "other", {});
  CHECK(page_of({done}).notices.empty());
  write_collectives(done, rank_file(0, 2, 9));
  CHECK(page_of({done}).notices.size() == 1);
  CHECK(page_of({done, other}).notices.at(0).starts_with("done: "));
  CHECK(contains(testing::error_of([&] { page_of({done, failed}); }), "no folder of a run"));
  std::filesystem::remove(done + "/summary.json");
  folder.write("done/config.toml", "[model]\nname = \"linear\"\n[data]\nname = \"linear\"\n");
  const Page cut_off = page_of({done});
  CHECK(cut_off.notices.size() == 2);
  CHECK(cut_off.notices[0] == "done: the run is under way or ended without a summary: its figures go to step 6");
  CHECK(std::any_of(cut_off.sections.begin(), cut_off.sections.end(),
                    [](const Section& section) { return section.title == "Collectives"; }));
}
