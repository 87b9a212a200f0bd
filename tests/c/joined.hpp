// Joins the ranks of a test by the C library; the test's own exchange is the allgather.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "ddprun/ddprun.h"
#include "testing/ranks.hpp"

namespace ddprun::c {

using namespace std::chrono_literals;
using testing::As;
using testing::failures;
using testing::Rank;
using testing::run_ranks;

inline constexpr auto kDeadline = 60s;

struct Free {
  void operator()(ddprun_group* group) const { ddprun_group_destroy(group); }
  void operator()(ddprun_work* work) const { ddprun_release(work); }
};
using OwnedGroup = std::unique_ptr<ddprun_group, Free>;
using OwnedWork = std::unique_ptr<ddprun_work, Free>;

// `what`: empty: the library's line.
inline void require(bool holds, const std::string& what = {}) {
  if (!holds) throw std::runtime_error(what.empty() ? ddprun_error() : what);
}

inline ddprun_group_options options_of(testing::Rank& rank, const char* backend) {
  ddprun_group_options options{};
  options.struct_size = sizeof options;
  options.rank = rank.rank();
  options.size = rank.size();
  options.device = -1;
  options.timeout_ms = 30'000;
  options.check = 1;
  options.backend = backend;
  options.context = &rank;
  options.allgather = [](void* context, const void* send, uint64_t bytes, void* recv) -> ddprun_status {
    static_cast<testing::Rank*>(context)->allgather(send, bytes, recv);
    return DDPRUN_OK;
  };
  return options;
}

// Throws the library's line.
inline OwnedGroup join(const ddprun_group_options& options) {
  ddprun_group* group = nullptr;
  require(ddprun_group_create(&options, &group) == DDPRUN_OK);
  return OwnedGroup(group);
}

template <class Number>
ddprun_collective in_place(std::vector<Number>& numbers, int32_t dtype) {
  ddprun_collective call{};
  call.struct_size = sizeof call;
  call.dtype = dtype;
  call.send = call.recv = numbers.data();
  call.count = numbers.size();
  return call;
}

inline OwnedWork start(ddprun_group* group, int32_t kind, const std::vector<ddprun_collective>& calls) {
  ddprun_work* work = nullptr;
  require(ddprun_start(group, kind, calls.data(), static_cast<uint32_t>(calls.size()), &work) == DDPRUN_OK);
  return OwnedWork(work);
}

// Its status; its text is ddprun_error().
inline ddprun_status finish(const OwnedWork& work) {
  require(ddprun_wait(work.get(), 30'000) == 1, "the work has not ended within 30 s");
  return ddprun_result(work.get(), nullptr);
}

inline ddprun_status allreduce(const OwnedGroup& group, std::vector<float>& numbers) {
  return finish(start(group.get(), DDPRUN_ALLREDUCE, {in_place(numbers, DDPRUN_FLOAT32)}));
}

}  // namespace ddprun::c
