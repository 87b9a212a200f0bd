// Every collective, with every dtype, op and algorithm that the plugin declares.
#include <algorithm>
#include <cmath>
#include <random>

#include "tools/conformance/collective.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 7, 1024};
constexpr std::size_t kResidues = 16;
constexpr std::size_t kMostDrawn = 100'000;
constexpr std::size_t kLarge = 1'000'003;  // a prime: no algorithm's chunks divide it

class Collectives {
 public:
  Collectives(const Settings& settings, int size, std::vector<Case>& cases)
      : settings_(settings), size_(size), cases_(cases) {}

  void add_all() {
    for (const auto& algorithm : algorithms_of(settings_)) {
      for_each_reduction(algorithm, [&](DType dtype, Op op) { add_reduction(Kind::allreduce, algorithm, dtype, op); });
    }
    if (settings_.capabilities.reduce_scatter) {
      for_each_reduction("auto", [&](DType dtype, Op op) { add_reduction(Kind::reduce_scatter, "auto", dtype, op); });
    }
    for (int dtype = 0; dtype < kDTypes; ++dtype) {
      if (takes(settings_, "auto", static_cast<DType>(dtype))) add_movements(static_cast<DType>(dtype));
    }
    for (const auto& algorithm : algorithms_of(settings_)) {
      if (algorithm != "auto") add_others_under(algorithm);
      add_barrier(algorithm);
      add_drawn(algorithm);
      for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
        if (takes(settings_, algorithm, dtype, Op::sum)) add_subnormal(algorithm, dtype);
      }
    }
  }

 private:
  template <class Function>
  void for_each_reduction(const std::string& algorithm, Function function) {
    for (int dtype = 0; dtype < kDTypes; ++dtype) {
      for (int op = 0; op < kOps; ++op) {
        if (takes(settings_, algorithm, static_cast<DType>(dtype), static_cast<Op>(op))) {
          function(static_cast<DType>(dtype), static_cast<Op>(op));
        }
      }
    }
  }

  // Without --large: a float type whose rounding is visible, one that backends convert, and an exact type.
  bool runs_large(DType dtype, Op op) const {
    if (settings_.large) return true;
    return op == Op::sum && (dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::int64);
  }

  void add_reduction(Kind kind, const std::string& algorithm, DType dtype, Op op) {
    for (const bool in_place : {false, true}) {
      const TestCall what{.kind = kind, .dtype = dtype, .op = op, .in_place = in_place};
      for (const auto count : kCounts) add(algorithm, what, count);
    }
    if (!runs_large(dtype, op)) return;
    const bool in_place = dtype == DType::bfloat16 || dtype == DType::int64;
    // A reduce_scatter sends size * count elements: keep the total about the same.
    const std::size_t count = kind == Kind::allreduce ? kLarge : kLarge / static_cast<std::size_t>(size_);
    add(algorithm, {.kind = kind, .dtype = dtype, .op = op, .in_place = in_place}, count);
  }

  void add_movements(DType dtype) {
    for (const auto count : kCounts) {
      for (const bool in_place : {false, true}) {
        add("auto", {.kind = Kind::allgather, .dtype = dtype, .in_place = in_place}, count);
      }
      for (int root = 0; root < size_; ++root) {
        add("auto", {.kind = Kind::broadcast, .dtype = dtype, .root = root}, count);
      }
    }
    if (!settings_.large && dtype != common_dtype(settings_, "auto")) return;
    add("auto", {.kind = Kind::allgather, .dtype = dtype}, kLarge / static_cast<std::size_t>(size_));
    add("auto", {.kind = Kind::broadcast, .dtype = dtype, .root = size_ - 1}, kLarge);
  }

  // An algorithm is for allreduce; the other collectives must still work.
  void add_others_under(const std::string& algorithm) {
    const auto dtype = common_dtype(settings_, algorithm);
    const auto op = common_op(settings_, algorithm);
    if (settings_.capabilities.reduce_scatter)
      add(algorithm, {.kind = Kind::reduce_scatter, .dtype = dtype, .op = op}, 1024);
    add(algorithm, {.kind = Kind::allgather, .dtype = dtype}, 1024);
    for (int root = 0; root < size_; ++root) {
      add(algorithm, {.kind = Kind::broadcast, .dtype = dtype, .root = root}, 1024);
    }
  }

  void add(const std::string& algorithm, TestCall what, std::size_t count) {
    what.count = count;
    const std::string group = std::string(name_of(what.kind)) + " " + algorithm;
    const uint64_t seed = cases_.size() + 1;
    cases_.push_back({.group = group, .name = group + " " + describe(what), .body = [=](Context& context) {
                        auto& backend = context.shared(algorithm);
                        const auto checked = run_checked(context, backend, what, seed, &context);
                        if (!checked.fault.empty()) context.fail(checked.fault);
                        if (what.kind == Kind::allreduce && what.count > 0 && context.size() > 1) {
                          check_execution(context, algorithm, checked.execution);
                        }
                      }});
  }

  // Sizes between those of kCounts and beyond, from the seed.
  void add_drawn(const std::string& algorithm) {
    const DType common = common_dtype(settings_, algorithm);
    for (int i = 0; i < kDTypes; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!takes(settings_, algorithm, dtype)) continue;
      int op = 0;
      while (!takes(settings_, algorithm, dtype, static_cast<Op>(op))) ++op;
      const TestCall what{.kind = Kind::allreduce, .dtype = dtype, .op = static_cast<Op>(op)};
      add_drawn(algorithm, what, dtype == common ? 2 * kResidues : kResidues / 4, 1, kMostDrawn);
      if (settings_.large && dtype == common) {
        constexpr std::size_t kMebi = 1 << 20;
        add_drawn(algorithm, what, 4, kMebi / size_of(dtype), 64 * kMebi / size_of(dtype));
      }
    }
    if (algorithm != "auto") return;
    for (const Kind kind : {Kind::broadcast, Kind::allgather, Kind::reduce_scatter}) {
      if (kind == Kind::reduce_scatter && !settings_.capabilities.reduce_scatter) continue;
      const TestCall what{.kind = kind, .dtype = common, .op = common_op(settings_, algorithm), .root = size_ - 1};
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
    const uint64_t seed = cases_.size() + 1;
    cases_.push_back({.group = group, .name = name, .body = [=](Context& context) {
                        TestCall one = what;
                        for (const std::size_t count : counts) {
                          one.count = count;
                          one.in_place = count % 2 == 0;
                          const auto checked = run_checked(context, context.shared(algorithm), one, seed, &context);
                          if (!checked.fault.empty()) context.fail(describe(one) + ": " + checked.fault);
                        }
                      }});
  }

  // Multiples of the smallest number: their bit patterns are the multiples, and so are those of their sums.
  void add_subnormal(const std::string& algorithm, DType dtype) {
    const std::string group = "allreduce " + algorithm;
    cases_.push_back(
        {.group = group,
         .name = group + " " + name_of(dtype) + " sum of subnormal numbers",
         .body = [=](Context& context) {
           constexpr std::size_t kCount = 1'000;  // all of a vector loop, and a rest
           const std::size_t bytes = size_of(dtype);
           std::vector<unsigned char> buffer(kCount * bytes);
           const auto number = [](int rank, std::size_t i) { return (i + static_cast<std::size_t>(rank)) % 3; };
           for (std::size_t i = 0; i < kCount; ++i) {
             buffer[i * bytes] = static_cast<unsigned char>(number(context.rank(), i));  // little endian
           }
           const Image image(context.memory(), buffer.data(), buffer.size());
           image.put();
           void* const memory = image.at(buffer.data());
           context.wait(
               context.shared(algorithm).allreduce(context.memory().call(memory, memory, kCount, dtype, Op::sum)));
           image.get();
           for (std::size_t i = 0; i < kCount; ++i) {
             std::size_t expected = 0;
             for (int rank = 0; rank < context.size(); ++rank) expected += number(rank, i);
             std::vector<unsigned char> pattern(bytes);
             pattern[0] = static_cast<unsigned char>(expected);
             if (std::equal(pattern.begin(), pattern.end(), &buffer[i * bytes])) continue;
             return context.fail("element " + std::to_string(i) + ": expected " + std::to_string(expected) +
                                 " times the smallest number, got " + to_text(dtype, load(dtype, buffer.data(), i)));
           }
         }});
  }

  // The requested algorithm must not be replaced by another; with auto it must be one that is declared.
  static void check_execution(Context& context, const std::string& asked, const ExecutionInfo& execution) {
    for (const auto& algorithm : context.settings().capabilities.algorithms) {
      if (execution.algorithm == algorithm.name && (asked == "auto" || asked == algorithm.name)) return;
    }
    context.fail(std::string("carried out by algorithm \"") + execution.algorithm + "\", asked for \"" + asked + "\"");
  }

  // No rank may leave a barrier before the last rank has entered it. All ranks use the same clock.
  void add_barrier(const std::string& algorithm) {
    const std::string group = "barrier " + algorithm;
    cases_.push_back({.group = group, .name = group + " waits for the last rank", .body = [=](Context& context) {
                        auto& backend = context.shared(algorithm);
                        for (int last = 0; last < context.size(); ++last) {
                          context.ranks().meet();
                          if (context.rank() == last) std::this_thread::sleep_for(milliseconds(20));
                          struct Times {
                            Clock::time_point entered;
                            Clock::time_point left;
                          };
                          Times mine{Clock::now(), {}};
                          context.wait(backend.barrier());
                          mine.left = Clock::now();
                          std::vector<Times> all(context.size());
                          context.ranks().allgather(&mine, sizeof mine, all.data());
                          for (int rank = 0; rank < context.size(); ++rank) {
                            if (mine.left < all[rank].entered)
                              context.fail("left before rank " + std::to_string(rank) + " had come");
                          }
                        }
                      }});
  }

  const Settings& settings_;
  int size_;
  std::vector<Case>& cases_;
};

}  // namespace

void add_collective_cases(const Settings& settings, int size, std::vector<Case>& cases) {
  Collectives(settings, size, cases).add_all();
}

}  // namespace ddprun::conformance
