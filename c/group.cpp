#include "c/group.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <new>
#include <utility>

#include "base/log.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "c/meeting.hpp"
#include "ddprun/plugin/futex.hpp"
#include "plugin/registry.hpp"

namespace ddprun::c {
namespace {

comm::JoinOptions join_options(const ddprun_group_options& options) {
  const auto text = [](const char* given) { return std::string(given != nullptr ? given : ""); };
  comm::JoinOptions join{.rank = options.rank,
                         .size = options.size,
                         .device = options.device,
                         .deadline = std::chrono::milliseconds(options.timeout_ms),
                         .algorithm = options.algorithm != nullptr ? options.algorithm : "auto",
                         .deterministic = options.deterministic != 0,
                         .address = text(options.address),
                         .allgather = gather_over(options),
                         .whose = text(options.name)};
  for (uint32_t i = 0; i < options.option_count; ++i) join.options[options.options[i].key] = options.options[i].value;
  return join;
}

// What must be equal on all ranks.
std::string identity(const comm::JoinOptions& options, const ddprun_comm_plugin& plugin, bool check) {
  std::string text = std::string("ddprun = ") + version() + "\nbackend = " + plugin.name + " " + plugin.version + " " +
                     plugin.library + "\nalgorithm = " + options.algorithm + "\ncheck = " + (check ? "on" : "off") +
                     "\ndeterministic = " + (options.deterministic ? "on" : "off") + "\n";
  for (const auto& [key, value] : options.options) text += "option " + key + " = " + value + "\n";
  return text;
}

// Waits for something that comes within microseconds, if it comes soon: a thread that sleeps in the kernel takes ten
// times as long to wake. Yields, because the thread that it waits for may need this core.
template <class Condition>
void yield_until(const Condition& holds) {
  constexpr int kYields = 50;
  for (int i = 0; i < kYields && !holds(); ++i) ::sched_yield();
}

// After these, the ranks can go on: nothing was sent, or all have failed alike.
bool is_harmless(ddprun_status status) {
  return status == DDPRUN_OK || status == DDPRUN_INVALID || status == DDPRUN_UNSUPPORTED || status == DDPRUN_NO_MEMORY;
}

}  // namespace

Outcome outcome_of(const std::function<void()>& body) noexcept {
  try {
    body();
    return {};
  } catch (const CommError& error) {
    return {static_cast<ddprun_status>(error.status()), error.what()};
  } catch (const Error& error) {
    return {error.code() == ExitCode::plugin ? DDPRUN_UNSUPPORTED : DDPRUN_INTERNAL, error.what()};
  } catch (const std::bad_alloc&) {
    return {DDPRUN_NO_MEMORY, "out of memory"};
  } catch (const std::exception& error) {
    return {DDPRUN_INTERNAL, error.what()};
  } catch (...) {
    return {DDPRUN_INTERNAL, "an exception that is no std::exception"};
  }
}

void Work::end() noexcept {
  const uint32_t before = state_.exchange(ended);
  futex_wake_all(state_);
  if (before == awaited) done_(context_);
}

void Work::then(ddprun_done_fn done, void* context) noexcept {
  done_ = done;
  context_ = context;
  uint32_t before = running;
  if (!state_.compare_exchange_strong(before, awaited)) done(context);
}

bool Work::wait(std::chrono::milliseconds timeout) const noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kSlice{100};
  const auto latest = Clock::now() + timeout;
  if (timeout.count() > 0) yield_until([this] { return state_.load() == ended; });
  while (true) {
    const uint32_t seen = state_.load();
    if (seen == ended) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(latest - Clock::now());
    if (left.count() <= 0) return false;
    futex_wait(state_, seen, std::min(left, kSlice));
  }
}

Group::Group(const ddprun_group_options& options)
    : process_(::getpid()), timeout_(std::chrono::milliseconds(options.timeout_ms)) {
  log::set_level(log::Level::warning);  // the program owns the output
  const comm::JoinOptions join = join_options(options);
  const auto plugin = plugin::Registry::standard({}).comm(options.backend);
  const bool check = options.check != 0;
  require_equal(
      join.allgather, identity(join, *plugin.table, check),
      std::string(plugin.table->name) + join.whose + ": rank " + std::to_string(options.rank) + ": joining: ");
  backend_ = comm::join(*plugin.table, join);
  if (check && options.size > 1) backend_->compare_calls(make_exchange(join.allgather, *backend_));
  thread_ = quiet_thread([this] { run(); });
}

Group::~Group() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (unfinished_ > 0) backend_->abort();
  }
  wake_.notify_one();
  thread_.join();
}

bool Group::is_in_its_process() const noexcept {
  return ::getpid() == process_;
}

void Group::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    yield_until([this] { return unfinished_ > 0; });
    lock.lock();
  }
}

void Group::submit(Job job) {
  ++unfinished_;
  if (backend_->capabilities().stream_ordered) return job();  // puts it on a stream, and does not block
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

Outcome Group::attempt(const std::function<void()>& body) {
  Outcome outcome = failure();
  if (outcome.status == DDPRUN_OK) {
    outcome = outcome_of(body);
    const std::lock_guard lock(mutex_);
    if (!is_harmless(outcome.status)) failure_ = outcome;
  }
  --unfinished_;  // before anybody learns of the end, and may destroy the group
  return outcome;
}

void Group::carry_out(Work& work) {
  work.outcome = attempt([&] { work.execution = work.body(*backend_, timeout_); });
  work.end();
}

void Group::start(std::shared_ptr<Work> work) {
  submit([this, work = std::move(work)] { carry_out(*work); });
}

Outcome Group::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void* Group::alloc(std::size_t bytes) {
  std::shared_ptr<void> memory;
  std::promise<Outcome> ended;
  submit([&] { ended.set_value(attempt([&] { memory = backend_->allocate(bytes); })); });
  const Outcome outcome = ended.get_future().get();
  if (outcome.status != DDPRUN_OK) throw CommError(static_cast<CommStatus>(outcome.status), outcome.text);
  const std::lock_guard lock(mutex_);
  memory_.emplace_back(memory.get(), memory);
  return memory.get();
}

void Group::free(void* memory) {
  std::shared_ptr<void> freed;  // outside the lock: freeing may take its time
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(memory_, memory, &std::pair<void*, std::shared_ptr<void>>::first);
  if (found == memory_.end()) return;
  freed = std::move(found->second);
  memory_.erase(found);
}

void Group::write_collectives(const std::string& folder, const std::string& reason) const {
  comm::write_collectives(
      folder, {.rank = backend_->rank(),
               .world = backend_->size(),
               .pid = process_,
               .backend = backend_->name(),
               .reason = reason,
               .written = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(),
               .calls = backend_->recorder()->calls()});
}

}  // namespace ddprun::c
