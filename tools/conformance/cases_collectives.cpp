// Every collective, with every dtype, op and algorithm that the plugin declares.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "tools/conformance/collective.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 7, 1024};
constexpr std::size_t kResidues = 16;
constexpr std::size_t kMostDrawn = 100'000;
constexpr std::size_t kLarge = 1'000'003;  // a prime: no algorithm's chunks divide it

// The requested algorithm must not be replaced by another; with auto it must be one that is declared.
void check_execution(Context& context, const std::string& asked, const ExecutionInfo& execution) {
  for (const auto& algorithm : context.settings().capabilities.algorithms) {
    if (execution.algorithm == algorithm.name && (asked == "auto" || asked == algorithm.name)) return;
  }
  context.fail(std::string("carried out by algorithm \"") + execution.algorithm + "\", asked for \"" + asked + "\"");
}

void run_one(Context& context, const std::string& algorithm, const TestCall& what, uint64_t seed) {
  const auto checked = run_checked(context, context.shared(algorithm), what, seed, &context);
  context.judge(checked.fault);
  if (what.kind == Kind::allreduce && what.count > 0 && context.size() > 1) {
    check_execution(context, algorithm, checked.execution);
  }
}

void run_drawn(Context& context, const std::string& algorithm, TestCall what, uint64_t seed,
               const std::vector<std::size_t>& counts) {
  for (const std::size_t count : counts) {
    what.count = count;
    what.in_place = count % 2 == 0;
    context.judge(run_checked(context, context.shared(algorithm), what, seed, &context).fault, describe(what) + ": ");
  }
}

// Sums numbers that are given as bits, and so are the sums that are expected.
using BitsAt = std::function<uint64_t(std::size_t index)>;
void sum_bits(Context& context, const std::string& algorithm, DType dtype, const BitsAt& mine, const BitsAt& expected,
              const std::string& what, bool in_canonical_order = false) {
  // All of a vector loop, and a rest; for one dtype, several segments.
  const std::size_t count = in_canonical_order && dtype == DType::float32 ? 300'007 : 1'007;
  const std::size_t bytes = size_of(dtype);
  Buffer buffer(context.memory(), count * bytes), sums(context.memory(), count * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const uint64_t number = mine(i), sum = expected(i);
    std::memcpy(buffer.data() + i * bytes, &number, bytes);  // little endian
    std::memcpy(sums.data() + i * bytes, &sum, bytes);
  }
  buffer.put();
  Collective call = context.memory().call(buffer.at(0), buffer.at(0), count, dtype, Op::sum);
  call.canonical_order = in_canonical_order;
  context.wait(context.shared(algorithm).allreduce(call));
  buffer.get();
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(buffer.data() + i * bytes, sums.data() + i * bytes, bytes) == 0) continue;
    return context.fail(
        "element " + std::to_string(i) + ": expected " +
        (what.empty() ? to_text(dtype, load(dtype, sums.data(), i)) : std::to_string(expected(i)) + what) + ", got " +
        to_text(dtype, load(dtype, buffer.data(), i)));
  }
}

// Multiples of the smallest number: their bits are the multiples, and so are those of their sums.
void sum_subnormals(Context& context, const std::string& algorithm, DType dtype) {
  const auto number = [](int rank, std::size_t i) -> uint64_t { return (i + static_cast<std::size_t>(rank)) % 3; };
  const auto sum = [&](std::size_t i) {
    uint64_t all = 0;
    for (int rank = 0; rank < context.size(); ++rank) all += number(rank, i);
    return all;
  };
  sum_bits(
      context, algorithm, dtype, [&](std::size_t i) { return number(context.rank(), i); }, sum,
      " times the smallest number");
}

// The largest number of each rank: the sum is infinite, as IEEE 754 rounds it.
void sum_overflows(Context& context, const std::string& algorithm, DType dtype) {
  const uint64_t infinity = dtype == DType::float16    ? 0x7c00
                            : dtype == DType::bfloat16 ? 0x7f80
                            : dtype == DType::float32  ? 0x7f800000
                                                       : 0x7ff0000000000000;
  const uint64_t sum = context.size() > 1 ? infinity : infinity - 1;
  sum_bits(
      context, algorithm, dtype, [&](std::size_t) { return infinity - 1; }, [&](std::size_t) { return sum; }, "");
}

// Of all ranks' numbers from `first` on, as ddprun_comm_algorithm::canonical_order.
Value sum_in_order(DType dtype, uint64_t seed, int first, int count, std::size_t index) {
  if (count == 1) return contribution(dtype, Op::sum, seed, first, index);
  const int half = count / 2;
  const long double sum =
      sum_in_order(dtype, seed, first, half, index).real + sum_in_order(dtype, seed, first + half, half, index).real;
  if (sum == 0) return {sum};  // maybe -0
  const long double last_place = std::ldexp(2 * unit_roundoff(dtype), std::ilogb(sum));
  return {std::nearbyint(sum / last_place) * last_place};
}

void sum_in_order(Context& context, const std::string& algorithm, DType dtype, uint64_t seed) {
  const auto bits_of = [&](const Value& value) {
    uint64_t bits = 0;
    store(dtype, value, &bits, 0);
    return bits;
  };
  sum_bits(
      context, algorithm, dtype,
      [&](std::size_t i) { return bits_of(contribution(dtype, Op::sum, seed, context.rank(), i)); },
      [&](std::size_t i) { return bits_of(sum_in_order(dtype, seed, 0, context.size(), i)); }, "", true);
}

// No rank may leave a barrier before the last rank has entered it. All ranks use the same clock.
void waits_for_last(Context& context, const std::string& algorithm) {
  struct Times {
    Clock::time_point entered, left;
  };
  auto& backend = context.shared(algorithm);
  for (int last = 0; last < context.size(); ++last) {
    context.ranks().meet();
    if (context.rank() == last) std::this_thread::sleep_for(milliseconds(20));
    Times mine{Clock::now(), {}};
    context.wait(backend.barrier());
    mine.left = Clock::now();
    std::vector<Times> all(context.size());
    context.ranks().allgather(&mine, sizeof mine, all.data());
    for (int rank = 0; rank < context.size(); ++rank) {
      if (mine.left < all[rank].entered) context.fail("left before rank " + std::to_string(rank) + " had come");
    }
  }
}

// The last rank has no data: it waits for nobody in an exchange, and nobody waits for it.
void waits_for_nobody(Context& context) {
  const auto backend = context.join({.deadline = context.settings().fault_deadline});
  const int last = context.size() - 1;
  const TestCall what{.kind = Kind::exchange, .dtype = DType::uint8, .sizes = [=](int from, int to) {
                        return from == last || to == last ? 0 : 4'000;
                      }};
  for (const bool last_is_first : {true, false}) {
    context.ranks().meet();
    if (context.is_last() == last_is_first) context.judge(run_checked(context, *backend, what, 7).fault);
    context.ranks().meet();
    if (context.is_last() != last_is_first) context.judge(run_checked(context, *backend, what, 7).fault);
  }
  context.ranks().meet();
}

class Collectives {
 public:
  Collectives(const World& world, std::vector<Case>& cases)
      : settings_(world.settings), size_(world.size), cases_(cases) {}

  void add_all() {
    for (const auto& algorithm : algorithms_of(settings_)) add_reductions(Kind::allreduce, algorithm);
    if (settings_.capabilities.reduce_scatter) add_reductions(Kind::reduce_scatter, "auto");
    for (const DType dtype : kDTypes) {
      if (first_op(settings_, "auto", dtype)) add_movements(dtype);
    }
    if (settings_.capabilities.exchange) add_exchanges();
    for (const auto& algorithm : algorithms_of(settings_)) {
      if (algorithm != "auto") add_others_under(algorithm);
      const std::string barrier = "barrier " + algorithm, allreduce = "allreduce " + algorithm;
      cases_.push_back({barrier, barrier + " waits for the last rank",
                        [=](Context& context) { waits_for_last(context, algorithm); }});
      add_drawn(algorithm);
      for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
        if (!takes(settings_, algorithm, dtype, Op::sum)) continue;
        cases_.push_back({allreduce, allreduce + " " + name_of(dtype) + " sum of subnormal numbers",
                          [=](Context& context) { sum_subnormals(context, algorithm, dtype); }});
        cases_.push_back({allreduce, allreduce + " " + name_of(dtype) + " sum that overflows",
                          [=](Context& context) { sum_overflows(context, algorithm, dtype); }});
        const bool has_order = std::ranges::any_of(settings_.capabilities.algorithms, [&](const AlgorithmInfo& one) {
          return (algorithm == "auto" || algorithm == one.name) && (one.canonical_order & bits(dtype)) != 0;
        });
        if (!has_order || !std::has_single_bit(unsigned(size_))) continue;
        cases_.push_back(
            {allreduce, allreduce + " " + name_of(dtype) + " sum in canonical order",
             [=, seed = settings_.seed](Context& context) { sum_in_order(context, algorithm, dtype, seed); }});
      }
    }
  }

 private:
  // Without --large: a float type whose rounding is visible, one that backends convert, and an exact type.
  bool runs_large(DType dtype, Op op) const {
    if (settings_.large) return true;
    return op == Op::sum && (dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::int64);
  }

  void add_reductions(Kind kind, const std::string& algorithm) {
    for (const DType dtype : kDTypes) {
      for (const Op op : kOps) {
        if (takes(settings_, algorithm, dtype, op)) add_reduction(algorithm, {.kind = kind, .dtype = dtype, .op = op});
      }
    }
  }

  void add_reduction(const std::string& algorithm, TestCall what) {
    for (const bool in_place : {false, true}) {
      what.in_place = in_place;
      for (const auto count : kCounts) add(algorithm, what, count);
    }
    if (!runs_large(what.dtype, what.op)) return;
    for (const bool in_place : {false, true}) {
      what.in_place = in_place;
      if (!settings_.large && in_place != (what.dtype == DType::bfloat16 || what.dtype == DType::int64)) continue;
      // A reduce_scatter sends size * count elements: keep the total about the same.
      add(algorithm, what, what.kind == Kind::allreduce ? kLarge : kLarge / static_cast<std::size_t>(size_));
    }
  }

  void add_broadcasts(const std::string& algorithm, DType dtype, std::size_t count) {
    for (int root = 0; root < size_; ++root) {
      add(algorithm, {.kind = Kind::broadcast, .dtype = dtype, .root = root}, count);
    }
  }

  void add_movements(DType dtype) {
    for (const auto count : kCounts) {
      for (const bool in_place : {false, true}) {
        add("auto", {.kind = Kind::allgather, .dtype = dtype, .in_place = in_place}, count);
      }
      if (settings_.capabilities.exchange) add("auto", {.kind = Kind::exchange, .dtype = dtype}, count);
      add_broadcasts("auto", dtype, count);
    }
    if (!settings_.large && dtype != common_dtype(settings_, "auto")) return;
    add("auto", {.kind = Kind::allgather, .dtype = dtype}, kLarge / static_cast<std::size_t>(size_));
    add_broadcasts("auto", dtype, kLarge);
  }

  // Blocks of different sizes: gather, scatter, and messages between two ranks are such exchanges.
  void add_exchanges() {
    const int last = size_ - 1;
    const auto add = [&](const std::string& what, std::function<std::size_t(int from, int to)> sizes, int times = 3) {
      const TestCall call{.kind = Kind::exchange, .dtype = DType::uint8, .sizes = std::move(sizes)};
      cases_.push_back({"exchange auto", "exchange auto " + what, [=, seed = cases_.size() + 1](Context& context) {
                          for (int i = 0; i < times; ++i) run_one(context, "auto", call, seed + 100 * i);
                          context.ranks().meet();  // a rank may be done while others still exchange
                        }});
    };
    const auto number = [](int from, int to) { return static_cast<std::size_t>(from * 7 + to * 3 + 1); };
    add("of different sizes", [=](int from, int to) { return number(from, to) * 997; });
    add("with empty blocks", [](int from, int to) { return (from + to) % 2 == 0 ? 0 : 5'003; });
    add("without data", [](int, int) { return 0; });
    add("with oneself", [](int from, int to) { return from == to ? 70'001 : 0; });
    add("from all to one rank", [=](int from, int to) { return to == last ? number(from, to) * 1'009 : 0; });
    add("from one rank to all", [=](int from, int to) { return from == last ? number(from, to) * 1'009 : 0; });
    add("from one rank to another", [=](int from, int to) { return from == 0 && to == last ? 20'011 : 0; });
    const auto large = [=](int from, int to) { return 1'300'021 + number(from, to); };
    const auto large_one_way = [](int from, int to) { return from < to ? 1'200'007 : 5; };
    add("of large blocks", large, 1);
    add("of large blocks one way", large_one_way, 1);
    if (size_ == 1) return;
    cases_.push_back({"exchange auto", "exchange auto of a rank that has no data", waits_for_nobody, kOwnWorld});
  }

  // An algorithm is for allreduce; the other collectives must still work.
  void add_others_under(const std::string& algorithm) {
    TestCall what = common_call(settings_, algorithm, 1024);
    what.kind = Kind::reduce_scatter;
    if (settings_.capabilities.reduce_scatter) add(algorithm, what, what.count);
    add(algorithm, {.kind = Kind::allgather, .dtype = what.dtype}, what.count);
    add_broadcasts(algorithm, what.dtype, what.count);
  }

  void add(const std::string& algorithm, TestCall what, std::size_t count) {
    what.count = count;
    const std::string group = std::string(name_of(what.kind)) + " " + algorithm;
    cases_.push_back({group, group + " " + describe(what),
                      [=, seed = cases_.size() + 1](Context& context) { run_one(context, algorithm, what, seed); }});
  }

  // Sizes between those of kCounts and beyond, from the seed.
  void add_drawn(const std::string& algorithm) {
    const DType common = common_dtype(settings_, algorithm);
    for (const DType dtype : kDTypes) {
      const auto op = first_op(settings_, algorithm, dtype);
      if (!op) continue;
      const TestCall what{.dtype = dtype, .op = *op};
      add_drawn(algorithm, what, dtype == common ? 2 * kResidues : kResidues / 4, 1, kMostDrawn);
      if (settings_.large && dtype == common) {
        constexpr std::size_t kMebi = 1 << 20;
        add_drawn(algorithm, what, 4, kMebi / size_of(dtype), 64 * kMebi / size_of(dtype));
      }
    }
    if (algorithm != "auto") return;
    for (TestCall what : calls_of_each_kind(settings_, common_call(settings_, algorithm, 0))) {
      what.root = size_ - 1;
      if (what.kind == Kind::allreduce) continue;
      add_drawn(algorithm, what, kResidues / 2, 1, kMostDrawn / static_cast<std::size_t>(size_));
    }
  }

  // `times` sizes of `least` to `most` elements: one half small, the other large. If there are enough, each half has
  // all residues modulo kResidues, because kernels and chunks treat the rest of a buffer differently.
  void add_drawn(const std::string& algorithm, TestCall what, std::size_t times, std::size_t least, std::size_t most) {
    std::mt19937_64 engine(settings_.seed + 1000 * cases_.size());
    const double from = std::log2(least), step = (std::log2(most) - from) / 2;
    std::uniform_real_distribution<double> exponent(from, from + step);
    std::vector<std::size_t> counts;
    for (std::size_t i = 0; i < times; ++i) {
      const bool every = times >= 2 * kResidues;
      const bool large = every ? i >= kResidues : i % 2 == 1;
      const auto about = static_cast<std::size_t>(std::exp2(exponent(engine) + (large ? step : 0)));
      const std::size_t residue = every ? i % kResidues : engine() % kResidues;
      counts.push_back(about / kResidues * kResidues + residue);
    }
    const std::string group = std::string(name_of(what.kind)) + " " + algorithm;
    std::string name = group + " " + name_of(what.dtype);
    if (what.kind == Kind::allreduce) name += std::string(" ") + name_of(what.op);
    name += std::string(" with drawn sizes") + (least > 1 ? ", large" : "");
    cases_.push_back({group, name, [=, seed = cases_.size() + 1](Context& context) {
                        run_drawn(context, algorithm, what, seed, counts);
                      }});
  }

  const Settings& settings_;
  int size_;
  std::vector<Case>& cases_;
};

}  // namespace

void add_collective_cases(const World& world, std::vector<Case>& cases) {
  Collectives(world, cases).add_all();
}

}  // namespace ddprun::conformance
