#include "support/torch_test.hpp"

#include <algorithm>

#include "comm/joined.hpp"
#include "train/fit.hpp"
#include "train/loop/tracer.hpp"
#include "train/reduce/bucketed_reducer.hpp"

namespace ddprun::train {
namespace {

using record::Span;
using testing::As;
using testing::failures;
using testing::run_ranks;


const Span* find(const std::vector<Span>& spans, const std::string& name) {
  const auto found = std::find_if(spans.begin(), spans.end(), [&](const Span& span) { return span.name == name; });
  return found == spans.end() ? nullptr : &*found;
}

int64_t count(const std::vector<Span>& spans, const std::string& name) {
  return std::count_if(spans.begin(), spans.end(), [&](const Span& span) { return span.name == name; });
}

int64_t argument(const Span& span, const std::string& name) {
  for (const auto& [key, value] : span.args) {
    if (key == name) return value;
  }
  return -1;
}

bool within(const Span& inner, const Span& outer) {
  return inner.begin >= outer.begin && inner.end <= outer.end && inner.begin <= inner.end;
}

TEST_CASE("a traced step has its phases; other steps have none") {
  Fit<LineModel> fit(0, 1, 12, 4, Last::pad);
  Tracer tracer({2, 4});
  fit.observers = {&tracer};
  fit.run_single(epochs(2));

  const auto trace = tracer.trace();
  CHECK(count(trace.spans, "step 2") == 1);
  CHECK(count(trace.spans, "step 4") == 1);
  for (const char* name : {"data", "forward", "backward", "optimizer"}) {
    CAPTURE(name);
    CHECK(count(trace.spans, name) == 2);
    REQUIRE(find(trace.spans, name) != nullptr);
    CHECK(within(*find(trace.spans, name), *find(trace.spans, "step 2")));
    CHECK(argument(*find(trace.spans, name), "step") == 2);
  }
  CHECK(find(trace.spans, "allreduce") == nullptr);
  CHECK(trace.threads.size() == 3);
}

TEST_CASE("nothing is traced if no step is chosen") {
  Fit<LineModel> fit(0, 1, 12, 4, Last::pad);
  Tracer tracer({100});
  fit.observers = {&tracer};
  fit.run_single(epochs(1));
  CHECK(tracer.trace().spans.empty());
}

TEST_CASE("each bucket's allreduce is a span with its bytes, in its step, and the ranks' spans overlap") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 24, 4, Last::pad);
          Tracer tracer({3});
          fit.observers = {&tracer};
          fit.reducer_options.bucket_bytes = fit.reducer_options.first_bucket_bytes = 4;
          fit.at_reducer = [&](BucketedReducer& reducer) { tracer.trace_allreduces_of(reducer); };
          fit.run_ddp(epochs(2), *backend);

          const auto spans = tracer.trace().spans;
          require(count(spans, "allreduce") == 2 && count(spans, "wait") == 2, "one for each bucket");
          const Span& first = *find(spans, "allreduce");
          require(within(first, *find(spans, "step 3")), "allreduce within its step");
          require(argument(first, "step") == 3 && argument(first, "bucket") == 0, "step and bucket");
          require(count(spans, "ready") == 2, "when each bucket was full");
          const Span& ready = *find(spans, "ready");
          require(ready.begin == ready.end && argument(ready, "bucket") == 0, "a point in time");
          require(within(ready, *find(spans, "backward")) && ready.begin <= first.begin, "full during backward");
          require(argument(first, "bytes") == 4 || argument(first, "bytes") == 8, "bytes");
          std::vector<int64_t> begins(2), ends(2);
          backend->allgather({.send = &first.begin, .recv = begins.data(), .count = 1, .dtype = DType::int64})
              .wait(kDeadline);
          backend->allgather({.send = &first.end, .recv = ends.data(), .count = 1, .dtype = DType::int64})
              .wait(kDeadline);
          require(std::max(begins[0], begins[1]) < std::min(ends[0], ends[1]), "one clock");
        })) == "");
}

}  // namespace
}  // namespace ddprun::train
