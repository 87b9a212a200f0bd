#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "tools/report/report.hpp"
#include "tools/report/some_run.hpp"

using namespace ddprun;
using testing::contains;
using testing::error_of;
namespace fs = std::filesystem;

namespace {

std::string line_of(const std::string& text, std::size_t number) {
  std::size_t begin = 0;
  for (; number > 0; --number) begin = text.find("\r\n", begin) + 2;
  return text.substr(begin, text.find("\r\n", begin) - begin);
}

}  // namespace

TEST_CASE("CSV has a line for every step of every rank, and empty fields for what was not measured") {
  const testing::TempDir folder;
  testing::SomeRun some;
  some.steps = 2;
  some.change = [](record::StepRecord& step) {
    step.lr = 0.1;
    step.correct = 24;
    step.complete();
  };
  const std::string text = report::steps_csv(tools::read_run(write_run(folder, "run", some)));
  CHECK(line_of(text, 0) ==
        "rank,epoch,step,samples,loss,correct,accuracy,data,forward,backward,comm,optimizer,total,throughput,"
        "scatter,replicate,gather,reduce,lr,scale,skipped");
  CHECK(line_of(text, 1) == "0,1,1,32,0,24,0.75,0,0,0,0,0,0.001,32000,,,,,0.1,,");
  CHECK(line_of(text, 4) == "1,1,2,64,1,24,0.375,0,0,0,0,0,0.003,21333.333333333332,,,,,0.1,,");
  CHECK(text.ends_with(",,\r\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 5);
}

TEST_CASE("CSV of epochs") {
  const testing::TempDir folder;
  const std::string text = report::epochs_csv(tools::read_run(write_run(folder, "run", {})));
  CHECK(line_of(text, 0) ==
        "epoch,train.loss,train.accuracy,validation.loss,validation.accuracy,test.loss,test.accuracy,seconds");
  CHECK(line_of(text, 2) == "2,0.5,,,,0.55,0.7,");
}

TEST_CASE("CSV goes to the given paths, and replaces older files") {
  const testing::InTempDir folder;
  const std::string run = write_run(folder, "run", {});
  CHECK(report::write_csv(run, "steps.csv") == std::vector<std::string>{"steps.csv"});
  fs::create_directory("here");
  folder.write("here/steps.csv", "old");
  CHECK(report::write_csv(run, "here") == std::vector<std::string>{"here/steps.csv", "here/epochs.csv"});
  CHECK(testing::read_file("here/steps.csv") == testing::read_file("steps.csv"));
}

TEST_CASE("CSV that cannot be written is refused with the reason") {
  const testing::InTempDir folder;
  const std::string run = write_run(folder, "run", {});
  CHECK(contains(error_of([&] { report::write_csv("nowhere", "a.csv"); }), "2: nowhere: no folder of a run"));
  CHECK(contains(error_of([&] { report::write_csv(run, "no/such/a.csv"); }), "1: cannot write no/such/a.csv"));
  folder.write("run/steps-rank1.jsonl", "{\n");
  CHECK(contains(error_of([&] { report::write_csv(run, "a.csv"); }), "2: " + run + "/steps-rank1.jsonl:1: "));
  fs::remove(run + "/steps-rank1.jsonl");
  CHECK(contains(error_of([&] { report::write_csv(run, "a.csv"); }), "2: " + run + "/steps-rank1.jsonl"));
  CHECK_FALSE(fs::exists("a.csv"));
}

TEST_CASE("CSV of a run that was killed in the middle of a line goes up to its last whole step") {
  const testing::InTempDir folder;
  const std::string run = write_run(folder, "run", {});
  fs::remove(run + "/summary.json");
  const std::string whole = testing::read_file(run + "/steps-rank1.jsonl");
  folder.write("run/steps-rank1.jsonl", whole.substr(0, whole.size() - 9));
  report::write_csv(run, "steps.csv");
  const std::string text = testing::read_file("steps.csv");
  CHECK(std::count(text.begin(), text.end(), '\n') == 1 + 2 * 5);
}
