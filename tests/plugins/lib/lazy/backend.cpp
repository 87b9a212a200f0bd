// Built as three libraries: one that fits its plugin, one of another version, and one that exports no version.
#include "lazy/library.hpp"

#ifdef LAZY_TEST_older
#undef DDPRUN_LAZY_VERSION
#define DDPRUN_LAZY_VERSION "older"
#endif

namespace {

class Alone final : public ddprun::CommBackend {
 public:
  explicit Alone(const ddprun::Host& host) : CommBackend(host) {}
  ddprun::Work allreduce(const ddprun::Collective&) override { return {*this, done_}; }
  ddprun::Work broadcast(const ddprun::Collective&) override { return {*this, done_}; }
  ddprun::Work allgather(const ddprun::Collective&) override { return {*this, done_}; }
  ddprun::Work barrier() override { return {*this, done_}; }
  void abort() noexcept override {}

 private:
  ddprun::Request done_{{"copy", "memory"}};
};

}  // namespace

#ifdef LAZY_TEST_unversioned
extern "C" __attribute__((visibility("default"))) ddprun::CommBackend* ddprun_alone_backend_make(
    const ddprun::Host& host) {
  return new Alone(host);
}
#else
DDPRUN_LAZY_BACKEND(alone, Alone);
#endif
