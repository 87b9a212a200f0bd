// Exchanges in which each block has a size of its own: gather, scatter, and messages between two ranks are such.
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tools/conformance/collective.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

// How many bytes a rank sends to another one.
using Sizes = std::function<std::size_t(int from, int to)>;

// The blocks of one rank. They begin at any address.
class Blocks {
 public:
  Blocks(Context& context, const Sizes& sizes, uint64_t seed) : context_(context), seed_(seed) {
    for (int peer = 0; peer < context.size(); ++peer) {
      const auto shift = static_cast<std::size_t>(1 + peer % 3);
      Buffer& mine = send_.emplace_back(context.memory(), sizes(context.rank(), peer), shift);
      Buffer& theirs = recv_.emplace_back(context.memory(), sizes(peer, context.rank()), 2 * shift);
      fill(context.rank(), peer, mine.data(), mine.bytes());
      for (Buffer* one : {&mine, &theirs}) one->put();
    }
  }

  void run(CommBackend& backend) {
    const Collective call = context_.memory().call(nullptr, nullptr, 0, DType::uint8);
    const auto of = [](Buffer& one) { return Block{one.bytes() > 0 ? one.at(0) : nullptr, one.bytes()}; };
    std::vector<Block> send, recv;
    for (Buffer& one : send_) send.push_back(of(one));
    for (Buffer& one : recv_) recv.push_back(of(one));
    context_.wait(backend.exchange({send, recv, call.memory, call.stream}));
  }

  // Reads the result. What is wrong with it, or "".
  std::string fault() {
    for (int peer = 0; peer < context_.size(); ++peer) {
      Buffer &mine = send_[static_cast<std::size_t>(peer)], &theirs = recv_[static_cast<std::size_t>(peer)];
      std::vector<unsigned char> sent(mine.bytes()), expected(theirs.bytes());
      fill(context_.rank(), peer, sent.data(), sent.size());
      fill(peer, context_.rank(), expected.data(), expected.size());
      for (Buffer* one : {&mine, &theirs}) one->get();
      const std::string whose = " rank " + std::to_string(peer);
      if (!mine.holds(sent)) return "changed the block for" + whose;
      if (!theirs.holds(expected)) return "wrong bytes from" + whose;
      if (!mine.intact() || !theirs.intact()) return "wrote outside a block of" + whose;
    }
    return "";
  }

 private:
  void fill(int from, int to, unsigned char* data, std::size_t bytes) const {
    conformance::fill(DType::uint8, Op::sum, seed_ + static_cast<uint64_t>(to), from, 0, bytes, data);
  }

  Context& context_;
  uint64_t seed_;
  std::deque<Buffer> send_, recv_;
};

void exchanges(Context& context, const Sizes& sizes) {
  for (const uint64_t seed : {100, 200, 300}) {
    Blocks blocks(context, sizes, seed);
    blocks.run(context.shared());
    context.judge(blocks.fault());
  }
}

// The last rank has no blocks. It waits for nobody, and nobody waits for it.
void waits_for_nobody(Context& context) {
  const auto backend = context.join({.deadline = context.settings().fault_deadline});
  const int last = context.size() - 1;
  const Sizes sizes = [=](int from, int to) { return from == last || to == last ? 0 : 4'000; };
  for (const bool last_is_first : {true, false}) {
    Blocks blocks(context, sizes, 7);
    context.ranks().meet();
    if (context.is_last() == last_is_first) blocks.run(*backend);
    context.ranks().meet();
    if (context.is_last() != last_is_first) blocks.run(*backend);
    context.judge(blocks.fault());
  }
  context.ranks().meet();
}

}  // namespace

void add_exchange_cases(const World& world, std::vector<Case>& cases) {
  if (!world.settings.capabilities.exchange) return;
  const int last = world.size - 1;
  const auto add = [&](const std::string& what, const Sizes& sizes) {
    cases.push_back({"exchange", "exchange: " + what, [=](Context& context) { exchanges(context, sizes); }});
  };
  const auto number = [](int from, int to) { return static_cast<std::size_t>(from * 7 + to * 3 + 1); };
  add("blocks of different sizes", [=](int from, int to) { return number(from, to) * 997; });
  add("some empty blocks", [](int from, int to) { return (from + to) % 2 == 0 ? 0 : 5'003; });
  add("all blocks empty", [](int, int) { return 0; });
  add("only to oneself", [](int from, int to) { return from == to ? 70'001 : 0; });
  add("all to one rank", [=](int from, int to) { return to == last ? number(from, to) * 1'009 : 0; });
  add("from one rank to all", [=](int from, int to) { return from == last ? number(from, to) * 1'009 : 0; });
  add("only between two ranks", [=](int from, int to) { return from == 0 && to == last ? 20'011 : 0; });
  add("large blocks", [=](int from, int to) { return 3'000'017 + number(from, to); });
  add("large blocks one way", [](int from, int to) { return from < to ? 2'000'003 : 5; });
  if (world.size == 1) return;
  cases.push_back({"exchange", "exchange: a rank without blocks waits for nobody", waits_for_nobody, kOwnWorld});
}

}  // namespace ddprun::conformance
