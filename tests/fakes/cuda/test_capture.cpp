// A capture on the fake GPU accepts and refuses what CUDA does, and replays repeat it.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "gpu_graph.hpp"

namespace ddprun::fake_gpu {
namespace {

constexpr Stream kDefault = -1;
constexpr Stream kMain = 1001;
constexpr Stream kSide = 1002;

// Ten bytes at a fixed address, and fresh ones for each test.
char memory[10];

struct Fresh {
  Fresh() {
    allocated(memory, sizeof memory, kMain);
    std::memset(memory, 1, sizeof memory);
  }
  ~Fresh() {
    for (const Stream stream : {kMain, kSide}) {
      if (is_capturing(stream)) CHECK_THROWS_AS(end_capture(kMain), Refused);
    }
    synchronize_device(0);
  }
};

// A piece that adds one.
void add(Stream stream, std::size_t place) {
  begin(stream);
  access(stream, memory + place, 1, true, "add");
  compute(stream, [place] { ++memory[place]; });
}

void read(Stream stream, std::size_t place) {
  begin(stream);
  access(stream, memory + place, 1, false, "read");
}

// `waiting` comes after all that `first` has begun.
void order(Stream waiting, Stream first) {
  const auto event = make_event();
  record(*event, first);
  block(waiting, *event);
}

std::shared_ptr<Graph> captured(const std::function<void()>& body) {
  begin_capture(kMain);
  body();
  return end_capture(kMain);
}

void run(const std::shared_ptr<Graph>& graph, Stream stream = kMain) {
  replay(graph, stream);
  synchronize(stream);
}

// CUDA's message for a refused call; then ends the capture, which fails too.
std::string refusal(const std::function<void()>& body) {
  std::string words;
  begin_capture(kMain);
  try {
    body();
  } catch (const Refused& refused) {
    words = refused.what();
  }
  CHECK_THROWS_WITH_AS(end_capture(kMain), "operation failed due to a previous error during capture", Refused);
  return words;
}

TEST_CASE_FIXTURE(Fresh, "a capture changes no memory, and each replay runs the captured work") {
  const auto graph = captured([] {
    add(kMain, 0);
    add(kMain, 0);
  });
  CHECK(memory[0] == 1);
  run(graph);
  CHECK(memory[0] == 3);
  run(graph, kSide);
  CHECK(memory[0] == 5);
}

TEST_CASE_FIXTURE(Fresh, "a stream that waits for the capture joins it, and must be waited for") {
  const auto graph = captured([] {
    order(kSide, kMain);
    CHECK(is_capturing(kSide));
    add(kSide, 0);
    order(kMain, kSide);
    add(kMain, 0);
  });
  CHECK_FALSE(is_capturing(kSide));
  run(graph);
  CHECK(memory[0] == 3);

  begin_capture(kMain);
  order(kSide, kMain);
  add(kSide, 0);
  CHECK_THROWS_WITH_AS(end_capture(kMain), "capturing stream has unjoined work", Refused);
  CHECK(memory[0] == 3);
}

TEST_CASE_FIXTURE(Fresh, "streams of a capture that do not wait for each other race") {
  begin_capture(kMain);
  order(kSide, kMain);
  add(kSide, 0);
  CHECK_THROWS_AS(read(kMain, 0), Race);
  read(kMain, 1);
  order(kMain, kSide);
  read(kMain, 0);
  end_capture(kMain);
}

TEST_CASE_FIXTURE(Fresh, "replays are ordered like other work, a capture is not") {
  add(kSide, 0);
  const auto graph = captured([] { add(kMain, 0); });
  CHECK_THROWS_AS(replay(graph, kMain), Race);
  order(kMain, kSide);
  replay(graph, kMain);
  CHECK_THROWS_AS(read(kSide, 0), Race);
  order(kSide, kMain);
  read(kSide, 0);
}

TEST_CASE_FIXTURE(Fresh, "calls that a capture forbids are allowed in another thread") {
  const auto event = make_event();
  record(*event, kDefault);
  const std::string unsupported = "operation not permitted when stream is capturing";
  CHECK(refusal([] { synchronize(kMain); }) == unsupported);
  CHECK(refusal([] { is_done(kMain); }) == unsupported);
  CHECK(refusal([] { synchronize(kDefault); }) == unsupported);
  CHECK(refusal([&] { is_done(*event); }) == unsupported);
  CHECK(refusal([] { synchronize_device(0); }) == unsupported);
  CHECK(refusal([] { refuse_in_capture(); }) == unsupported);
  const auto graph = captured([&] {
    std::thread([&] {
      CHECK(is_done(*event));
      synchronize(kDefault);
      refuse_in_capture();
      wait_for_device(0);
    }).join();
    add(kMain, 0);
  });
  run(graph);
  CHECK(memory[0] == 2);
  CHECK(refusal([] { std::thread([] { CHECK_THROWS_AS(synchronize_device(0), Refused); }).join(); }) == "");
}

TEST_CASE_FIXTURE(Fresh, "events do not cross the boundary of a capture") {
  const auto outside = make_event();
  record(*outside, kMain);
  CHECK(refusal([&] { block(kMain, *outside); }) == "dependency created on uncaptured work in another stream");

  const auto inside = make_event();
  const std::string captured_event = "operation not permitted on an event last recorded in a capturing stream";
  CHECK(refusal([&] {
          record(*inside, kMain);
          is_done(*inside);
        }) == captured_event);
  CHECK(refusal([&] {
          record(*inside, kMain);
          elapsed(*inside, *outside);
        }) == captured_event);
  captured([&] {
    record(*inside, kMain);
    block(kMain, *make_event());
  });
  CHECK_THROWS_WITH_AS(block(kSide, *inside), captured_event.c_str(), Refused);
  CHECK_THROWS_WITH_AS(synchronize(*inside), captured_event.c_str(), Refused);
  record(*inside, kMain);
  synchronize(*inside);
  CHECK(refusal([] { order(kDefault, kMain); }) ==
        "operation would make the legacy stream depend on a capturing blocking stream");
  begin_capture(kSide);
  CHECK(refusal([] { order(kSide, kMain); }) == "operation would result in a merge of separate capture sequences");
  CHECK_THROWS_AS(end_capture(kSide), Refused);
}

TEST_CASE_FIXTURE(Fresh, "a capture ends on its stream, in its thread, and once") {
  CHECK_THROWS_WITH_AS(begin_capture(kDefault), "operation not permitted when stream is capturing", Refused);
  CHECK_THROWS_WITH_AS(end_capture(kMain), "the operation cannot be performed in the present state", Refused);
  CHECK(refusal([] { std::thread([] { CHECK_THROWS_AS(end_capture(kMain), Refused); }).join(); }) == "");
  CHECK(refusal([] {
          order(kSide, kMain);
          end_capture(kSide);
        }) == "capture was not ended in the same stream as it began");
}

TEST_CASE_FIXTURE(Fresh, "the graph keeps the capture's memory, and other memory must not be freed") {
  char own[4] = {};
  bool is_released = false;
  auto graph = captured([&] {
    allocated(own, sizeof own, kMain);
    begin(kMain);
    access(kMain, own, sizeof own, true, "fill");
    compute(kMain, [&own] { std::memset(own, 7, sizeof own); });
    freed(own, [&] { is_released = true; });
    add(kMain, 0);
  });
  CHECK(own[0] == static_cast<char>(0xff));
  CHECK_FALSE(is_released);
  run(graph);
  CHECK(own[0] == 7);

  freed(memory, [] {});
  CHECK_THROWS_WITH_AS(replay(graph, kMain), "race: a graph's add writes memory that was given back", Race);
  allocated(memory, sizeof memory, kMain);
  CHECK_THROWS_AS(replay(graph, kMain), Race);
  graph.reset();
  CHECK(is_released);
}

TEST_CASE_FIXTURE(Fresh, "memory freed in a capture while another of its streams uses it is a race") {
  for (const bool recorded : {true, false}) {
    CAPTURE(recorded);
    char own[4] = {};
    begin_capture(kMain);
    allocated(own, sizeof own, kMain);
    order(kSide, kMain);
    begin(kSide);
    access(kSide, own, sizeof own, true, "fill");
    if (recorded) used_on(own, kSide);
    freed(own, [] {});
    if (recorded) {
      CHECK_NOTHROW(begin(kMain));
    } else {
      CHECK_THROWS_AS(begin(kMain), Race);
    }
    order(kMain, kSide);
    end_capture(kMain);
  }
}

TEST_CASE_FIXTURE(Fresh, "a replay is work that the host does not wait for") {
  std::atomic<bool> may_go{false};
  std::shared_ptr<Graph> graph = captured([&] {
    begin(kMain);
    on_launch(kMain, [&](Stream stream) {
      CHECK(stream == kSide);
      return [&] {
        while (!may_go) std::this_thread::yield();
      };
    });
    add(kMain, 0);
  });
  replay(graph, kSide);
  graph.reset();
  bool is_released = false;
  used_on(memory, kSide);
  freed(memory, [&] { is_released = true; });
  CHECK_FALSE(is_done(kSide));
  CHECK_FALSE(is_released);
  may_go = true;
  synchronize(kSide);
  CHECK(memory[0] == 2);
  CHECK(is_released);
}

TEST_CASE_FIXTURE(Fresh, "memory of a graph may be freed while a replay on another stream uses it") {
  char own[4] = {};
  const auto graph = captured([&] {
    allocated(own, sizeof own, kMain);
    begin(kMain);
    access(kMain, own, sizeof own, true, "fill");
  });
  replay(graph, kSide);
  freed(own, [] {});
  CHECK_NOTHROW(begin(kMain));
}

TEST_CASE_FIXTURE(Fresh, "the end of a capture does not change memory that was freed in it") {
  captured([] {
    add(kMain, 0);
    freed(memory, [] {});
  });
  CHECK(memory[0] == 2);
}

TEST_CASE_FIXTURE(Fresh, "a capture starts after earlier work of its stream is done") {
  const auto work = queue_work(kMain);
  std::atomic<bool> is_done{false};
  std::thread worker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    is_done = true;
    finish(work);
  });
  begin_capture(kMain);
  CHECK(is_done);
  worker.join();
  end_capture(kMain);
}

}  // namespace
}  // namespace ddprun::fake_gpu
