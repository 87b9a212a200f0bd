// Lockstep: the parts of a step in turns, which wait for values of each other.
#include "support/torch_test.hpp"

#include <string>

#include "elastic/lockstep.hpp"
#include "support/error_of.hpp"

namespace ddprun::elastic {
namespace {

using testing::error_of;

torch::Tensor number(int64_t value) {
  return torch::full({}, value, torch::kInt64);
}

// With one rank, the rows of all are its own.
struct Turns {
  Lockstep lockstep{[this](const torch::Tensor& rows) {
    events += "exchange ";
    return rows;
  }};
  std::string events;

  void run(int count, const std::function<void(int)>& body) {
    const auto note = [this](const char* what, int part) { events += what + std::to_string(part) + " "; };
    lockstep.run(
        count, body, [=](int part, bool is_first) { note(is_first ? "begin" : "enter", part); },
        [=](int part, bool is_last) { note(is_last ? "end" : "leave", part); });
  }
};

TEST_CASE("parts take turns, and each gets the rows of all, in order") {
  Turns turns;
  for (int step = 0; step < 2; ++step) {
    turns.events.clear();
    std::vector<int64_t> sums(3);
    turns.run(3, [&](int part) {
      for (int64_t round = 1; round <= 2; ++round) {
        const torch::Tensor rows = turns.lockstep.gather(number(part * round));
        CHECK(torch::equal(rows, torch::arange(3) * round));
        sums[static_cast<std::size_t>(part)] += rows.sum().item<int64_t>();
      }
    });
    CHECK(sums == std::vector<int64_t>{9, 9, 9});
    CHECK(turns.events ==
          "begin0 leave0 begin1 leave1 begin2 leave2 exchange enter0 leave0 enter1 leave1 enter2 leave2 exchange "
          "enter0 end0 enter1 end1 enter2 end2 ");
  }
}

TEST_CASE("a single part runs in the calling thread, and exchanges what it gives") {
  Turns turns;
  turns.run(1, [&](int) { CHECK(torch::equal(turns.lockstep.gather(number(7)), torch::full({1}, 7))); });
  CHECK(turns.events == "begin0 exchange end0 ");
}

TEST_CASE("backward of each part waits for the others, and the caller's thread-local state is theirs") {
  Turns turns;
  struct Mean : torch::autograd::Function<Mean> {
    static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& input, Turns* turns) {
      context->saved_data["turns"] = reinterpret_cast<int64_t>(turns);
      return input.clone();
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   const torch::autograd::variable_list& gradients) {
      auto* const turns = reinterpret_cast<Turns*>(context->saved_data["turns"].toInt());
      return {turns->lockstep.gather(gradients[0]).mean(0), {}};
    }
  };
  std::vector<torch::Tensor> leaves;
  for (int part = 0; part < 4; ++part) leaves.push_back(torch::ones({2}, torch::requires_grad()));
  turns.run(4,
            [&](int part) { (Mean::apply(leaves[static_cast<std::size_t>(part)], &turns) * part).sum().backward(); });
  for (const torch::Tensor& leaf : leaves) CHECK(torch::equal(leaf.grad(), torch::full({2}, 1.5)));
  const torch::NoGradGuard no_grad;
  turns.run(2, [](int) { CHECK_FALSE(torch::GradMode::is_enabled()); });
}

TEST_CASE("the first error ends all parts, and the next step is as if it had not been") {
  Turns turns;
  bool has_gone_on = false;
  const auto error = error_of([&] {
    turns.run(3, [&](int part) {
      if (part == 1) throw Error(ExitCode::failure, "the loss is nan");
      turns.lockstep.gather(number(part));
      has_gone_on = true;
    });
  });
  CHECK(error == "1: the loss is nan");
  CHECK_FALSE(has_gone_on);
  Lockstep lost([](const torch::Tensor&) -> torch::Tensor { throw Error(ExitCode::peer, "rank 3 is lost"); });
  const auto ignore = [](int, bool) {};
  for (const int count : {1, 2}) {
    CHECK(error_of([&] {
            lost.run(
                count, [&](int part) { lost.gather(number(part)); }, ignore, ignore);
          }) == "5: rank 3 is lost");
  }
  turns.run(2, [&](int part) { CHECK(turns.lockstep.gather(number(part)).numel() == 2); });
}

TEST_CASE("parts that gather different numbers of times are an error, and nobody waits for ever") {
  Turns turns;
  const auto error = error_of([&] {
    turns.run(2, [&](int part) {
      for (int time = 0; time <= part; ++time) turns.lockstep.gather(number(time));
    });
  });
  CHECK(error.starts_with("2: the virtual ranks of a step do not compute the same synchronized BatchNorms"));
}

}  // namespace
}  // namespace ddprun::elastic
