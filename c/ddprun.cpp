// The functions of ddprun/ddprun.h.
#include "ddprun/ddprun.h"

#include <memory>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "c/group.hpp"
#include "ddprun/plugin/detail/comm_convert.hpp"
#include "plugin/registry.hpp"

namespace {

using ddprun::c::Group;
using ddprun::c::Outcome;
using ddprun::c::Work;
using SharedWork = std::shared_ptr<Work>;

thread_local std::string text;  // what the functions of this thread return

ddprun_status report(Outcome outcome) {
  text = std::move(outcome.text);
  return outcome.status;
}

template <class Body>
ddprun_status guarded(const Body& body) {
  return report(ddprun::c::outcome_of(body));
}

void require(bool holds, const char* why) {
  if (!holds) throw ddprun::CommError(ddprun::CommStatus::invalid, why);
}

Group& of(ddprun_group* group) {
  return *reinterpret_cast<Group*>(group);
}

Work& of(ddprun_work* work) {
  return **reinterpret_cast<SharedWork*>(work);
}

template <class Struct>
void require_size(const Struct& given, const std::string& function, const char* type) {
  require(given.struct_size >= sizeof given, (function + ": struct_size is not that of " + type).c_str());
}

ddprun_work* start(ddprun_group* group, Work::Body body) {
  auto work = std::make_shared<Work>(std::move(body));
  auto owned = std::make_unique<SharedWork>(work);
  of(group).start(std::move(work));
  return reinterpret_cast<ddprun_work*>(owned.release());
}

}  // namespace

const char* ddprun_version(void) {
  return ddprun::version();
}

const char* ddprun_error(void) {
  return text.c_str();
}

const char* ddprun_backends(void) {
  std::string names;
  guarded([&] {
    for (const std::string& name : ddprun::plugin::Registry::standard({}).names(ddprun::plugin::Kind::comm)) {
      names += (names.empty() ? "" : "\n") + name;
    }
  });
  text = std::move(names);
  return text.c_str();
}

ddprun_status ddprun_backend(const char* name, ddprun_backend_info* info) {
  return guarded([&] {
    require_size(*info, "ddprun_backend", "ddprun_backend_info");
    const auto& plugin = *ddprun::plugin::Registry::standard({}).comm(name).table;
    *info = {info->struct_size, 0, plugin.capabilities, plugin.name, plugin.version, plugin.library};
  });
}

ddprun_status ddprun_group_create(const ddprun_group_options* options, ddprun_group** out) {
  return guarded([&] {
    require_size(*options, "ddprun_group_create", "ddprun_group_options");
    require(options->backend != nullptr, "ddprun_group_create: backend is null");
    require(options->allgather != nullptr, "ddprun_group_create: allgather is null");
    require(options->size >= 1 && options->rank >= 0 && options->rank < options->size,
            "ddprun_group_create: rank is not within 0 .. size - 1");
    *out = reinterpret_cast<ddprun_group*>(new Group(*options));
  });
}

void ddprun_group_destroy(ddprun_group* group) {
  auto* const owned = reinterpret_cast<Group*>(group);
  if (!owned->is_in_its_process()) return;
  if (!owned->is_own_thread()) {
    delete owned;
  } else {  // a callback of the group gives the group up: its thread cannot wait for itself
    std::thread([owned] { delete owned; }).detach();
  }
}

void ddprun_group_abort(ddprun_group* group) {
  of(group).abort();
}

ddprun_status ddprun_group_failure(ddprun_group* group) {
  return report(of(group).failure());
}

ddprun_status ddprun_group_write_collectives(ddprun_group* group, const char* folder, const char* reason) {
  return guarded([&] { of(group).write_collectives(folder, reason); });
}

ddprun_status ddprun_alloc(ddprun_group* group, uint64_t bytes, void** out) {
  return guarded([&] { *out = of(group).alloc(bytes); });
}

void ddprun_free(ddprun_group* group, void* memory) {
  of(group).free(memory);
}

ddprun_status ddprun_start(ddprun_group* group, int32_t kind, const ddprun_collective* calls, uint32_t count,
                           ddprun_work** out) {
  return guarded([&] {
    require(kind >= DDPRUN_ALLREDUCE && kind <= DDPRUN_BARRIER, "ddprun_start: this kind of collective does not exist");
    std::vector<ddprun::Collective> converted;
    for (uint32_t i = 0; i < count; ++i) {
      require_size(calls[i], "ddprun_start", "ddprun_collective");
      converted.push_back(ddprun::detail::from_table(calls[i]));
    }
    if (kind == DDPRUN_BARRIER) converted.resize(1);
    *out = start(group, [kind, converted = std::move(converted)](ddprun::CommBackend& backend, auto timeout) {
      ddprun::ExecutionInfo info;
      for (const ddprun::Collective& call : converted) {
        info = ddprun::comm::start(backend, static_cast<ddprun::comm::Kind>(kind), call).wait(timeout);
      }
      return info;
    });
  });
}

ddprun_status ddprun_start_exchange(ddprun_group* group, const ddprun_exchange* exchange, ddprun_work** out) {
  return guarded([&] {
    require_size(*exchange, "ddprun_start_exchange", "ddprun_exchange");
    *out =
        start(group, [call = ddprun::detail::from_table(*exchange, of(group).size())](
                         ddprun::CommBackend& backend, auto timeout) { return backend.exchange(call).wait(timeout); });
  });
}

int32_t ddprun_wait(ddprun_work* work, uint32_t timeout_ms) {
  return of(work).wait(std::chrono::milliseconds(timeout_ms)) ? 1 : 0;
}

void ddprun_then(ddprun_work* work, ddprun_done_fn done, void* context) {
  of(work).then(done, context);
}

ddprun_status ddprun_result(ddprun_work* work, ddprun_comm_execution* execution) {
  const Work& ended = of(work);
  if (execution != nullptr) {
    execution->algorithm = ended.execution.algorithm.c_str();
    execution->transport = ended.execution.transport.c_str();
  }
  return report(ended.outcome);
}

void ddprun_release(ddprun_work* work) {
  delete reinterpret_cast<SharedWork*>(work);
}

void ddprun_finish(void) {
  ddprun::comm::finish_plugins();
}
