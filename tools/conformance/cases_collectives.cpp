// Every collective, with every dtype, op and algorithm that the plugin declares.
#include "tools/conformance/collective.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 7, 1024};
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
