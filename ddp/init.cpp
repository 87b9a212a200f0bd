#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "base/text.hpp"
#include "comm/plugin_backend.hpp"
#include "ddp/join.hpp"
#include "ddp/joined_state.hpp"
#include "ddp/share.hpp"
#include "ddprun/error.hpp"
#include "elastic/survivor.hpp"
#include "launch/failure.hpp"
#include "launch/rendezvous.hpp"
#include "launch/world.hpp"
#include "plugin/registry.hpp"
#include "train/device/cuda.hpp"

namespace ddprun {
namespace {

// The group that a failure of this process ends.
std::mutex current_mutex;
std::weak_ptr<ddp::JoinedState> current;

// What the first init() has found, for the next ones. Never destroyed.
struct Job {
  launch::World world;
  std::unique_ptr<Store> store;  // of ddprun's launcher, for all groups; otherwise null
  int groups = 0;                // calls of init()
  const pid_t pid = ::getpid();
};
Job* job = nullptr;

std::terminate_handler handler_before = nullptr;
pid_t pid_of_rank = 0;

// For an exception that nothing catches. That of a forked process is not one of the rank.
[[noreturn]] void end_process() {
  if (std::current_exception() == nullptr || ::getpid() != pid_of_rank) {
    if (handler_before != nullptr) handler_before();
    std::abort();
  }
  Error error = ddp::current_error();
  std::shared_ptr<ddp::JoinedState> state;
  if (const std::unique_lock lock(current_mutex, std::try_to_lock); lock) state = current.lock();
  if (state != nullptr) error = ddp::first_cause(state->rendezvous, error);
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(launch::report_failure(error.code(), error.what())));
}

void exit_on_error() {
  if (std::get_terminate() == end_process) return;
  pid_of_rank = ::getpid();
  handler_before = std::set_terminate(end_process);
}

void finish_plugins(int status, void*) {
  if (status == 0 && ::getpid() == job->pid) comm::finish_plugins();
}

std::string backend_of(const GroupOptions& options) {
  const char* const variable = std::getenv("DDPRUN_BACKEND");
  const bool is_set = variable != nullptr && *variable != '\0';
  const bool is_compared = std::getenv("DDPRUN_TORCH_BACKEND") != nullptr;  // compare --vary backend=...
  if (is_set && (is_compared || options.backend.empty())) return variable;
  return options.backend.empty() ? "gloo" : options.backend;
}

// What must be equal on all ranks, one `name = value` per line.
std::string identity(const GroupOptions& options, const ddprun_comm_plugin& plugin) {
  std::string text = std::string("ddprun = ") + version() + "\nbackend = " + plugin.name + " " + plugin.version + ", " +
                     plugin.library + "\nalgorithm = " + options.algorithm +
                     "\ncheck = " + (options.check ? "on" : "off") + "\n";
  for (const auto& [key, value] : options.options) text += "option " + key + " = " + value + "\n";
  return text;
}

class NotJoined final : public CommBackend {
 public:
  explicit NotJoined(const launch::World& world) : CommBackend(world.rank, world.size, "none", {}) {}

  Work allreduce(const Collective&) override { refuse(); }
  Work broadcast(const Collective&) override { refuse(); }
  Work allgather(const Collective&) override { refuse(); }
  Work barrier() override { refuse(); }
  void abort() noexcept override {}

 private:
  [[noreturn]] static void refuse() {
    throw Error(ExitCode::usage,
                "this rank is not one of those that train, so its group has no collectives: it was started again, and "
                "train_elastic() has not let it join (Group::is_joining)");
  }
};

// Makes a GPU the current device. Loads CUDA if the program is not linked with it.
void use_device(torch::Device device) {
  if (device.is_cpu()) return;
  if (!device.is_cuda() || !device.has_index()) {
    throw Error(ExitCode::usage, "GroupOptions::device is " + device.str() + ": expected cpu, or cuda:N");
  }
  train::choose_device("cuda", device.index());
}

void refuse_next_group(const Job& job) {
  if (job.world.size == 1) return;
  if (::getpid() != job.pid) {
    throw Error(ExitCode::usage, "init() is called in a process that rank " + std::to_string(job.world.rank) +
                                     " has forked; only the rank itself can join a group");
  }
  if (job.world.is_own()) return;
  throw Error(ExitCode::usage, "init() is called a second time, and " + job.world.launcher +
                                   " has started the ranks: this works under `ddprun launch` only; keep the Group of "
                                   "the first call, or use its split()");
}

}  // namespace

namespace ddp {

std::shared_ptr<JoinedState> JoinedState::make() {
  return {new JoinedState, [rank = ::getpid()](JoinedState* state) {
            if (::getpid() == rank) delete state;
          }};
}

JoinedState::~JoinedState() {
  joined.backend.reset();
  // A rank that an exception ends has not finished: the others see that it is lost.
  const bool finished = std::uncaught_exceptions() == 0;
  if (finished && parent == nullptr && rendezvous.link != nullptr) rendezvous.link->finish();
}

void JoinedState::set_progress(launch::Progress progress) const {
  if (parent != nullptr) return parent->set_progress(progress);
  if (table != nullptr) table->set(world.local_rank, progress);
  if (rendezvous.link != nullptr) rendezvous.link->progress().set(world.local_rank, progress);
}

void JoinedState::stay_out() {
  joined.backend = std::make_unique<NotJoined>(world);
  ranks = {*joined.backend, options.timeout};
}

void JoinedState::join(const GroupOptions& wanted, const std::string& whose) {
  use_device(wanted.device);
  options = wanted;
  if (parent == nullptr) options.backend = backend_of(wanted);
  device = options.device;
  local_rank = world.local_rank;
  if (world.size == 1) {
    joined.backend = comm::single_process_backend();
  } else {
    const auto plugin = plugin::Registry::standard({}).comm(options.backend);
    const std::string function = parent == nullptr ? "init()" : "split()";
    launch::compare_identities(
        *rendezvous.store, world.rank, world.size, identity(options, *plugin.table), options.timeout,
        {.differ = "do not form one group", .advice = "call " + function + " with the same options on all ranks"});
    const comm::JoinOptions how{
        .deadline = options.timeout, .algorithm = options.algorithm, .options = options.options, .whose = whose};
    joined = join_backend(*plugin.table, {how, device, false, options.check, name}, world, rendezvous);
  }
  ranks = {*joined.backend, options.timeout};
}

}  // namespace ddp

Group init(const GroupOptions& options) {
  if (options.exit_on_error) exit_on_error();
  const bool joins = elastic::Survivor::joins();
  auto state = ddp::JoinedState::make();
  launch::World& world = state->world;
  if (job == nullptr) {
    if (const auto found = launch::discover(std::nullopt)) world = *found;
    world.insecure = options.insecure;
    if (world.size > 1) {
      state->rendezvous = joins ? ddp::Rendezvous{launch::own_store(world, options.timeout), nullptr}
                                : ddp::join_rendezvous(world, options.timeout, options.exit_on_error);
      // The share of the host's cores; Torch's default would be all of them, in each rank.
      if (std::getenv("OMP_NUM_THREADS") == nullptr) torch::set_num_threads(launch::threads_of_rank(world));
    }
    job = new Job{world, world.is_own() ? std::move(state->rendezvous.store) : nullptr};
    ::on_exit(finish_plugins, nullptr);
  } else {
    refuse_next_group(*job);
    world = job->world;
  }
  const int number = job->groups++;
  state->job_rank = world.rank;
  {
    const std::lock_guard lock(current_mutex);
    current = state;
  }
  if (world.is_own() && world.size > 1) {
    if (launch::survives()) state->job = job->store.get();
    if (number > 0) state->name = "-init" + std::to_string(number);
    state->rendezvous.store = launch::prefixed_store(*job->store, "init" + std::to_string(number) + ":");
    state->table = std::make_unique<launch::ProgressTable>(world.job_dir, world.local_size);
  }
  state->set_progress({0, Phase::rendezvous, -1});
  if (joins && world.size > 1) {
    state->is_joining = true;
    state->options = options;
    state->device = options.device;
    state->local_rank = world.local_rank;
    state->stay_out();
    return Group(state);
  }
  state->join(options);
  state->set_progress({0, Phase::setup, -1});
  return Group(state);
}

}  // namespace ddprun
