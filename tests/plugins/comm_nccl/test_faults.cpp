// Errors, hangs and aborts while comm_nccl joins and communicates, and how long they take.
#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <utility>

#include "host/liveness.hpp"
#include "plugins/comm_nccl/process.hpp"

namespace ddprun::testing {
namespace {

using namespace std::chrono_literals;

// Far longer than any of it takes, far shorter than the deadlines, which no test waits for.
constexpr auto kSoon = 30s;

comm::JoinOptions within(std::chrono::milliseconds deadline) {
  auto options = options_of(2);
  options.deadline = deadline;
  return options;
}

bool has(Fake& state, const std::string& call) {
  return calls(state).find(call + "\n") != std::string::npos;
}

// Returns body()'s text, and adds "not soon" if body() took too long.
std::string soon(const std::function<std::string()>& body) {
  const auto start = Clock::now();
  std::string text = body();
  return Clock::now() - start < kSoon ? text : text + ", and not soon";
}

// Waits until the watch thread has made this call.
void await(Fake& state, const std::string& call) {
  for (const auto limit = Clock::now() + kSoon; !has(state, call) && Clock::now() < limit;) {
    std::this_thread::sleep_for(1ms);
  }
}

std::string allreduced(CommBackend& backend, uintptr_t stream = 5) {
  return error_of([&] { backend.allreduce(on_stream(3, stream)).wait(1s); });
}

TEST_CASE("the deadline ends joining peers that never come, and the communicator is aborted") {
  CHECK(run_in_subprocess([](Fake& state) {
          state.turns = -1;
          const std::string text = soon([] { return error_of([] { comm::join(nccl(), within(300ms)); }); });
          return text.substr(0, text.find(';')) + (has(state, "ncclCommAbort") ? "" : ", and no abort");
        }) == "4: nccl: rank 0: joining 2 ranks: timeout: joining: not done within 300 ms");
}

TEST_CASE("the host's abort flag ends joining") {
  CHECK(run_in_subprocess([](Fake& state) {
          state.turns = -1;
          auto options = within(60s);
          options.abort_flag = std::make_shared<std::atomic<int32_t>>(0);
          std::thread other([&] {
            await(state, "ncclGetUniqueId interface =lo");
            *options.abort_flag = 1;
          });
          const std::string text = soon([&] { return error_of([&] { comm::join(nccl(), options); }); });
          other.join();
          return text + (has(state, "ncclCommAbort") ? "" : ", and no abort");
        }) == "4: nccl: rank 0: joining 2 ranks: aborted: the communicator was aborted");
}

TEST_CASE("a collective that the GPU does not complete is aborted at its deadline, and the next call reports it") {
  CHECK(run_in_subprocess([](Fake& state) {
          const auto backend = comm::join(nccl(), within(200ms));
          state.gpu_hangs = true;
          const std::string first = allreduced(*backend);
          await(state, "ncclCommAbort");
          const std::string second = soon([&] { return allreduced(*backend); });
          return first + " | " + second.substr(0, second.find(';'));
        }) ==
        "no error | 5: nccl: rank 0: allreduce 2 (float32 x 3, sum, cuda): timeout: allreduce: not done within 200 ms");
}

TEST_CASE("a barrier blocks until the GPU has completed it, at most for wait's timeout") {
  CHECK(run_in_subprocess([](Fake& state) {
          const auto backend = comm::join(nccl(), within(60s));
          state.gpu_hangs = true;
          Work barrier = backend->barrier();
          if (barrier.test()) return std::string("done");
          const std::string text = soon([&] { return error_of([&] { barrier.wait(200ms); }); });
          return text.substr(0, text.find(';'));
        }) == "5: nccl: rank 0: barrier 1: timeout: barrier: not done within 200 ms");
}

TEST_CASE("abort ends a wait that blocks in another thread") {
  CHECK(run_in_subprocess([](Fake& state) {
          const auto backend = comm::join(nccl(), within(60s));
          state.gpu_hangs = true;
          Work barrier = backend->barrier();
          std::thread other([&] {
            std::this_thread::sleep_for(50ms);
            backend->abort();
          });
          const std::string text = soon([&] { return error_of([&] { barrier.wait(60s); }); });
          other.join();
          await(state, "ncclCommAbort");
          return text + (has(state, "ncclCommAbort") ? "" : ", and no abort");
        }) == "5: nccl: rank 0: barrier 1: aborted: the communicator was aborted");
}

TEST_CASE("abort and the host's abort flag end the GPU's work while no thread waits in NCCL") {
  for (const bool by_flag : {false, true}) {
    CHECK(run_in_subprocess([by_flag](Fake& state) {
            auto options = within(60s);
            options.abort_flag = std::make_shared<std::atomic<int32_t>>(0);
            const auto backend = comm::join(nccl(), options);
            state.gpu_hangs = true;
            allreduced(*backend);
            by_flag ? static_cast<void>(*options.abort_flag = 1) : backend->abort();
            return soon([&] {
              await(state, "ncclCommAbort");
              return std::string(state.gpu_hangs ? "hangs" : "ended");
            });
          }) == "ended");
  }
}

TEST_CASE("the next call reports an error that NCCL finds between calls") {
  CHECK(
      run_in_subprocess([](Fake& state) {
        const auto backend = comm::join(nccl(), within(60s));
        {
          const std::lock_guard lock(state.mutex);
          state.message = "NET/Socket : socketProgress: Connection closed by remote peer 10.0.0.2<4711>\n";
        }
        state.async_error = 6;
        await(state, "ncclCommAbort");
        return allreduced(*backend);
      }) ==
      "5: nccl: rank 0: allreduce 1 (float32 x 3, sum, cuda): peer lost: between two collectives: NCCL: remote error: "
      "NET/Socket : "
      "socketProgress: Connection closed by remote peer 10.0.0.2<4711>; a peer has ended; its own last line says why");
}

// Rank 1 of two is a process that does nothing; NCCL does not notice its end.
class SilentPeer {
 public:
  SilentPeer() {
    const auto [out, in] = pipe_of();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const host::Process mine = host::this_process();
      const std::string text =
          std::to_string(mine.pid) + " " + std::to_string(mine.started) + "\n" + mine.host + "\n" + mine.network;
      if (write(in, text.data(), text.size()) < 0) _exit(1);
      for (;;) pause();
    }
    char text[200];
    place_.assign(text, static_cast<std::size_t>(std::max<ssize_t>(read(out, text, sizeof text), 0)));
    close(out);
    close(in);
  }
  ~SilentPeer() { end(); }

  comm::JoinOptions options() const {
    auto options = within(60s);
    options.allgather = [echo = options.allgather, place = place_](std::string_view mine) {
      auto all = echo(mine);
      if (mine.starts_with(std::to_string(getpid()) + " ")) all[1] = place;
      return all;
    };
    return options;
  }

  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  static std::pair<int, int> pipe_of() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    return {ends[0], ends[1]};
  }

  pid_t pid_;
  std::string place_;
};

TEST_CASE("the end of a peer's process ends a wait for it, although NCCL does not notice it") {
  CHECK(run_in_subprocess([](Fake& state) {
          SilentPeer peer;
          const auto backend = comm::join(nccl(), peer.options());
          state.gpu_hangs = true;
          const std::string first = allreduced(*backend);
          peer.end();
          await(state, "ncclCommAbort");
          return first + " | " + soon([&] { return allreduced(*backend); });
        }) ==
        "no error | 5: nccl: rank 0: allreduce 2 (float32 x 3, sum, cuda): peer lost: allreduce: rank 1 has ended");
}

TEST_CASE("the end of a peer's process ends a slow first collective, in which NCCL connects the ranks") {
  CHECK(run_in_subprocess([](Fake& state) {
          SilentPeer peer;
          const auto backend = comm::join(nccl(), peer.options());
          state.turns = -1;
          std::thread other([&] {
            std::this_thread::sleep_for(50ms);
            peer.end();
          });
          const std::string text = soon([&] { return allreduced(*backend); });
          other.join();
          return text;
        }) == "5: nccl: rank 0: allreduce 1 (float32 x 3, sum, cuda): peer lost: allreduce: rank 1 has ended");
}

TEST_CASE("a peer that has left is no error as long as nothing waits for it") {
  CHECK(run_in_subprocess([](Fake&) {
          SilentPeer peer;
          const auto backend = comm::join(nccl(), peer.options());
          peer.end();
          std::this_thread::sleep_for(800ms);
          return allreduced(*backend);
        }) == "no error");
}

TEST_CASE("NCCL's error message becomes the right status, with a hint") {
  struct Case {
    int result;
    std::string message;
    std::string begin;
    std::string hint;
  };
  const Case cases[] = {
      {5, "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000", "3: ", "launch.nproc"},
      {1, "Cuda failure 2 'out of memory'", "1: ", "train.accumulate"},
      {5, "Error : no algorithm/protocol available for function AllReduce", "3: ", "comm.algorithm"},
      {2, "Call to connect failed: No route to host", "5: ", "comm.options.interface"},
      {2, "NET/Socket : peer message truncated : receiving 8 bytes instead of 4", "5: ", "different sizes"},
      {6, "", "5: ", "a peer has ended"},
      {3, "", "1: ", "comm.options.debug"},
  };
  for (const Case& one : cases) {
    const std::string error = run_in_subprocess([&](Fake& state) {
      const auto backend = comm::join(nccl(), within(60s));
      {
        const std::lock_guard lock(state.mutex);
        state.failing = "ncclAllReduce";
        state.result = one.result;
        state.message = one.message;
      }
      return allreduced(*backend);
    });
    CAPTURE(error);
    CHECK(error.starts_with(one.begin + "nccl: rank 0: allreduce 1 (float32 x 3, sum, cuda): "));
    CHECK(error.find(one.message) != std::string::npos);
    CHECK(error.find(one.hint) != std::string::npos);
  }
}

TEST_CASE("leaving waits forever for neither NCCL nor the GPU") {
  for (const bool gpu : {false, true}) {
    CHECK(run_in_subprocess([gpu](Fake& state) {
            auto backend = comm::join(nccl(), within(60s));
            state.gpu_hangs = gpu;
            state.destroy_hangs = true;
            allreduced(*backend);
            return soon([&] {
              backend.reset();
              return std::string(has(state, "ncclCommAbort") ? "aborted" : "left");
            });
          }) == (gpu ? "aborted" : "left"));
  }
}

}  // namespace
}  // namespace ddprun::testing
