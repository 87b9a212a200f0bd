// The backend of the fake "good" as a non-blocking plugin: a thread of each communicator carries out its collectives.
// The option `fault` names the one thing that it does wrong; without it, the plugin keeps the contract.
// docs/conformance.md lists the faults with the case of the suite that finds each.
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "faulty_requests.hpp"
#include "slots_backend.hpp"

namespace fakes {
namespace {

using namespace std::chrono_literals;

constexpr auto kVeryLong = 5500ms;  // the suite does not blame a busy machine for it

constexpr ddprun_comm_algorithm kAlgorithms[] = {
    ddprun::algorithm("slots", kSlotsDTypes | ddprun::bits(ddprun::DType::float16), ddprun::kAllOps, 0, kSlotsDTypes)};
constexpr ddprun::CommPluginInfo kInfo = {
    "faulty", "1.0", "", DDPRUN_CAP_HOST | DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_ALLOC | DDPRUN_CAP_EXCHANGE,
    kAlgorithms};
constexpr ddprun::CommPluginInfo kBlocking = {
    "faulty", "1.0", "", DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING | DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_EXCHANGE,
    kAlgorithms};
constexpr ddprun_comm_plugin kGood = ddprun::comm_plugin<ddprun::make_comm_backend<SlotsBackend>, kBlocking>();

Communicator& of(ddprun_comm* comm) {
  return *reinterpret_cast<Communicator*>(comm);
}

// Changes something that belongs to the process, or keeps something.
void disturb_process(const Communicator& comm) {
  static int files = 0;
  if (comm.is("leaks_descriptor")) ::dup(2);
  if (comm.is("leaks_memory")) {
    void* volatile kept = std::malloc(100'000);  // volatile: the compiler must keep the call
    (void)kept;
  }
  if (comm.is("changes_rounding")) std::fesetround(FE_TOWARDZERO);
  if (comm.is("changes_locale")) std::setlocale(LC_ALL, "C.UTF-8");
  if (comm.is("changes_folder") && ::chdir("/") != 0) std::abort();
  if (comm.is("changes_signals")) std::signal(SIGUSR2, [](int) {});
  const std::string process = std::to_string(::getpid());
  if (comm.is("leaves_files")) {
    std::ofstream("/tmp/ddprun-faulty-leaves_files-" + process + "-" + std::to_string(++files));
  }
  if (comm.is("leaves_one_file")) std::ofstream("/tmp/ddprun-faulty-leaves_one_file-" + process);
  if (comm.is("prints")) std::printf("a word of the plugin\n");
  if (comm.is("changes_affinity")) {
    cpu_set_t cores{};
    CPU_SET(::sched_getcpu(), &cores);
    ::sched_setaffinity(0, sizeof cores, &cores);
  }
  if (comm.is("changes_priority")) ::setpriority(PRIO_PROCESS, 0, 5);
  if (comm.is("changes_mask")) {
    sigset_t signals{};
    sigaddset(&signals, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  }
  if (comm.is("changes_environment")) ::setenv("SOME_VARIABLE", "1", 1);
  if (comm.is("changes_limits")) {
    rlimit limit{};
    ::getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_cur == 0 && limit.rlim_max > 0 ? 1 : 0;
    limit.rlim_max = limit.rlim_max == 0 ? 0 : limit.rlim_max - 1;
    ::setrlimit(RLIMIT_CORE, &limit);
  }
  if (comm.is("sets_timer")) {
    const itimerval in_an_hour{{0, 0}, {3600, 0}};
    ::setitimer(ITIMER_PROF, &in_an_hour, nullptr);
  }
  if (comm.is("replaces_stdin")) ::dup2(::memfd_create("other", 0), 0);
}

// The deadline counts from create.
bool is_too_old(const Communicator& comm) {
  return comm.is("deadline_from_create") && std::chrono::steady_clock::now() - comm.created > comm.deadline;
}

std::atomic<bool> any_aborted{false}, crashes_at_the_end{false};

ddprun_status create(const ddprun_comm_host* host, ddprun_comm** out) {
  ddprun_comm_host inner = *host;
  std::vector<ddprun_comm_option> options;
  auto comm = std::make_unique<Communicator>(kGood);
  for (uint32_t i = 0; i < host->option_count; ++i) {
    if (host->options[i].key != std::string("fault")) {
      options.push_back(host->options[i]);
    } else {
      comm->fault = host->options[i].value;
    }
  }
  inner.options = options.data();
  inner.option_count = static_cast<uint32_t>(options.size());
  if (comm->is("garbage_status")) return 77;
  if (comm->is("create_deadline")) inner.deadline_ms *= 10;
  if (comm->is("doubles_deadline")) inner.deadline_ms *= 2;
  if (comm->is("reads_past_host")) comm->read = reinterpret_cast<const char*>(host)[host->struct_size];
  if (comm->is("crashes_in_finish")) crashes_at_the_end = true;
  if (comm->is("leaks_communicator")) comm->read = *new char[200'000];
  comm->log = [log = host->log, context = host->context](const char* line) { log(context, DDPRUN_LOG_DEBUG, line); };
  comm->rank = host->rank;
  comm->size = static_cast<std::size_t>(host->size);
  comm->deadline = std::chrono::milliseconds(host->deadline_ms);
  static constexpr int32_t kNever = 0;
  if (comm->is("ignores_flag")) inner.abort_flag = &kNever;
  ddprun_status status = kGood.create(&inner, &comm->inner);
  if (status == DDPRUN_OK) status = comm->meet();  // as if it connected
  if (status != DDPRUN_OK) {
    if (host->error[0] == '\0') std::snprintf(host->error, host->error_size, "%s", comm->error.c_str());
    return status;
  }
  comm->start();
  *out = reinterpret_cast<ddprun_comm*>(comm.release());
  return DDPRUN_OK;
}

void destroy(ddprun_comm* handle) {
  const std::unique_ptr<Communicator> comm(&of(handle));
  if (comm->is("destroy_sleeps")) std::this_thread::sleep_for(kVeryLong);
  if (comm->is("destroy_barrier")) comm->meet();
  if (comm->is("logs_after_destroy")) {
    std::thread([log = comm->log] {
      std::this_thread::sleep_for(5ms);
      log("a late line");
    }).detach();
  }
}

template <class Call>
ddprun_status start(Communicator& comm, ddprun_request** out, Call&& call) {
  if (comm.is("logs_control")) comm.log("\033[1mbold");
  ddprun_status status = comm.broken();
  if (status == DDPRUN_OK && is_too_old(comm)) status = DDPRUN_TIMEOUT;
  if (status == DDPRUN_OK && comm.is("breaks_others") && any_aborted) status = DDPRUN_PEER_LOST;
  if (status != DDPRUN_OK && comm.is("later_succeeds")) {
    *out = comm.finished();
    return DDPRUN_OK;
  }
  if (status != DDPRUN_OK && comm.is("later_blocks")) std::this_thread::sleep_for(kVeryLong);
  if (status != DDPRUN_OK) return status;
  *out = call();
  return DDPRUN_OK;
}

template <ddprun_collective_fn ddprun_comm_plugin::*function>
ddprun_status collective(ddprun_comm* handle, const ddprun_collective* call, ddprun_request** out) {
  Communicator& comm = of(handle);
  if (call->count > 0) disturb_process(comm);
  return start(comm, out, [&] { return comm.queue(kGood.*function, *call); });
}

ddprun_status exchange(ddprun_comm* handle, const ddprun_exchange* call, ddprun_request** out) {
  Communicator& comm = of(handle);
  return start(comm, out, [&] { return comm.queue(*call); });
}

ddprun_status wait(ddprun_comm* handle, ddprun_request* request, uint32_t timeout_ms,
                   ddprun_comm_execution* execution) {
  Communicator& comm = of(handle);
  auto timeout = comm.is("wait_ignores_timeout") ? 60s : std::chrono::milliseconds(timeout_ms);
  if (comm.is("doubles_deadline")) timeout *= 2;
  const ddprun_status status = comm.wait(request, timeout);
  if (status == DDPRUN_OK && execution != nullptr) {
    execution->algorithm = comm.is("unlisted_algorithm") ? "other" : "slots";
    execution->transport = comm.is("null_transport") ? nullptr : "memory";
    static char changing[] = "memory0";
    if (comm.is("dangling_transport")) execution->transport = (++changing[6], changing);
    if (comm.is("writes_past_execution")) execution[1].struct_size = 0;
  }
  if (status == DDPRUN_ABORTED && comm.is("slow_abort")) std::this_thread::sleep_for(1500ms);
  if (status == DDPRUN_PEER_LOST && comm.is("slow_death")) std::this_thread::sleep_for(1500ms);
  return status;
}

ddprun_status test(ddprun_comm* handle, ddprun_request* request, int32_t* done) {
  Communicator& comm = of(handle);
  *done = comm.is("test_always_1") ? 1 : comm.is("test_always_0") ? 0 : comm.is_done(request);
  return DDPRUN_OK;
}

void abort(ddprun_comm* handle) {
  Communicator& comm = of(handle);
  any_aborted = true;
  if (!comm.is("abort_by_flag_only")) kGood.abort(comm.inner);
}

const char* last_error(ddprun_comm* handle) {
  Communicator& comm = of(handle);
  if (comm.is("error_null")) return nullptr;
  if (comm.is("error_empty")) return "";
  if (comm.is("error_lines")) return "first line\nsecond line";
  if (comm.is("error_control")) return "\033[1mbold";
  if (comm.is("unnamed_death")) return "a peer has ended";
  return comm.error.c_str();
}

ddprun_status alloc(ddprun_comm* handle, uint64_t bytes, void** out) {
  Communicator& comm = of(handle);
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  comm.allocated_by = std::this_thread::get_id();
  return *out != nullptr ? DDPRUN_OK : DDPRUN_NO_MEMORY;
}

void free(ddprun_comm* handle, void* memory) {
  const Communicator& comm = of(handle);
  if (comm.is("frees_in_one_thread") && comm.allocated_by != std::this_thread::get_id()) std::abort();
  if (!comm.is("leaks_alloc")) std::free(memory);
}

void finish() {
  if (crashes_at_the_end) std::abort();
}

constexpr ddprun_comm_plugin make_table() {
  ddprun_comm_plugin table = ddprun::comm_plugin<ddprun::make_comm_backend<SlotsBackend>, kInfo>();
  table.options = nullptr;  // the suite checks that a plugin refuses what it does not know
  table.create = create;
  table.exchange = exchange;
  table.destroy = destroy;
  table.allreduce = collective<&ddprun_comm_plugin::allreduce>;
  table.broadcast = collective<&ddprun_comm_plugin::broadcast>;
  table.allgather = collective<&ddprun_comm_plugin::allgather>;
  table.barrier = collective<&ddprun_comm_plugin::barrier>;
  table.reduce_scatter = collective<&ddprun_comm_plugin::reduce_scatter>;
  table.wait = wait;
  table.test = test;
  table.abort = abort;
  table.last_error = last_error;
  table.alloc = alloc;
  table.free = free;
  table.finish = finish;
  return table;
}

}  // namespace
}  // namespace fakes

extern "C" {
__attribute__((visibility("default"))) extern const ddprun_comm_plugin ddprun_comm_plugin_v1;
constinit const ddprun_comm_plugin ddprun_comm_plugin_v1 = fakes::make_table();
}
