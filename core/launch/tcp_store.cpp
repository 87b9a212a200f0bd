#include "launch/tcp_store.hpp"

#include <c10/util/Flags.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "ddprun/error.hpp"

C10_DECLARE_int(caffe2_log_level);

namespace ddprun::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// TCPStore holds a lock while it waits. Short waits let another thread's set() run in between; a new key still ends the
// wait immediately.
constexpr milliseconds kSlice{50};

// Whether torchrun's agent hosts the store. Otherwise, rank 0 does.
bool has_agent() {
  const char* value = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return value != nullptr && std::string_view(value) == "True";
}

// TCPStore logs each wait and each failed attempt to connect, with a stack trace. Errors say the same in one line.
void silence_c10d() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
}

// The message without c10's stack trace, which begins after the first line break.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

class TcpStore : public Store {
 public:
  TcpStore(const World& world, milliseconds timeout)
      : name_(std::string(has_agent() ? "torchrun's" : "rank 0's") + " store at " + world.master_addr + ":" +
              std::to_string(world.master_port)),
        prefix_("ddprun/" + world.job + "/") {
    silence_c10d();
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(world.master_port);
    options.isServer = world.rank == 0 && !has_agent();
    options.waitWorkers = false;  // allgather() reports which ranks are missing; a count cannot
    options.timeout = timeout;
    try {
      store_ = c10::make_intrusive<c10d::TCPStore>(world.master_addr, options);
    } catch (const std::exception& error) {
      throw Error(ExitCode::rendezvous, std::string("cannot ") + (options.isServer ? "host" : "reach") + " " + name_ +
                                            " within " + std::to_string(timeout.count()) +
                                            " ms (MASTER_ADDR, MASTER_PORT): " + first_line(error));
    }
  }

  void set(const std::string& key, std::string_view value) override {
    bool first = false;
    speak([&] {
      first = store_->add(prefix_ + key + "/writers", 1) == 1;
      if (first) store_->set(prefix_ + key, std::vector<uint8_t>(value.begin(), value.end()));
    });
    if (!first) {
      throw Error(ExitCode::rendezvous, "store: the key \"" + key + "\" is set already; each is set once per job");
    }
  }

  std::string get(const std::string& key, milliseconds timeout) override {
    const auto begin = Clock::now();
    std::string value;
    while (true) {
      const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
      if (look(key, timeout - waited, value)) return value;
      if (waited < timeout) continue;
      throw Error(ExitCode::rendezvous, name_ + ": waited " + std::to_string(waited.count()) + " ms for the key \"" +
                                            key + "\"; nobody set it");
    }
  }

 private:
  // Waits for a slice of the remaining time. True if the key is set and `value` has been read.
  bool look(const std::string& key, milliseconds left, std::string& value) {
    bool there = false;
    speak([&] {
      there = store_->check({prefix_ + key});
      if (!there && left > milliseconds::zero()) there = wait(prefix_ + key, std::min(left, kSlice));
      if (!there) return;
      const std::vector<uint8_t> bytes = store_->get(prefix_ + key);
      value.assign(bytes.begin(), bytes.end());
    });
    return there;
  }

  bool wait(const std::string& key, milliseconds slice) try {
    store_->wait({key}, slice);
    return true;
  } catch (const c10::DistStoreError&) {
    return false;  // the slice is over; a broken connection is a DistNetworkError
  }

  // If an established connection breaks, the process that hosts the store has ended: a consequence of another failure.
  template <typename Action>
  void speak(Action action) try {
    action();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ExitCode::peer, "lost " + name_ + ": " + first_line(error));
  }

  const std::string name_;  // for messages
  const std::string prefix_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

std::unique_ptr<Store> tcp_store(const World& world, milliseconds timeout) {
  return std::make_unique<TcpStore>(world, timeout);
}

}  // namespace ddprun::launch
