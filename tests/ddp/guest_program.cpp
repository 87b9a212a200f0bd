// A program that uses the library as a guest: with its own signals, handlers, processes and groups. The test starts it
// as ranks. The first argument says what it does.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "ddprun/ddp.hpp"
#include "ddprun/error.hpp"

namespace {

volatile std::sig_atomic_t stop = 0;

void sum(const ddprun::Group& group, const char* name) {
  const torch::Tensor one = torch::ones({1});
  group.allreduce(one);
  std::printf("%s: %g\n", name, one.item<double>());
}

void train_in_group_of_its_own() {
  const ddprun::Group group = ddprun::init();
  torch::nn::Linear net(4, 2);
  const ddprun::DistributedDataParallel ddp(*net, group);
  net(torch::ones({2, 4})).sum().backward();
  sum(group, "trained");
}

int twice() {
  train_in_group_of_its_own();
  train_in_group_of_its_own();
  const ddprun::Group first = ddprun::init(), second = ddprun::init();
  sum(first, "first");
  sum(second, "second");
  sum(*second.split(0), "part of the second");
  sum(first, "first again");
  return 0;
}

int set_terminate(bool before_init) {
  const auto mine = [] {
    std::fputs("my crash handler\n", stderr);
    std::abort();
  };
  if (before_init) std::set_terminate(mine);
  const ddprun::Group group = ddprun::init();
  if (!before_init) std::set_terminate(mine);
  if (group.rank() == 1) throw std::runtime_error("the disk is on fire");
  group.barrier();
  return 0;
}

std::map<int, struct sigaction> dispositions() {
  std::map<int, struct sigaction> all;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, nullptr, &all[signal]);
  return all;
}

// Prints what init() has changed.
int dispositions_after_init() {
  const auto before = dispositions();
  const std::terminate_handler handler = std::get_terminate();
  const ddprun::Group group = ddprun::init();
  if (std::get_terminate() != handler) std::printf("std::set_terminate\n");
  for (const auto& [signal, now] : dispositions()) {
    if (now.sa_handler != before.at(signal).sa_handler) std::printf("signal %d\n", signal);
  }
  return 0;
}

// `work` runs in a process that rank 1 forks. The ranks communicate during and after it.
int with_child(const std::function<int()>& work, const ddprun::GroupOptions& options) {
  const ddprun::Group group = ddprun::init(options);
  const pid_t child = group.rank() == 1 ? ::fork() : -1;
  if (child == 0) return work();
  if (child > 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("child: %s %d\n", WIFSIGNALED(status) ? "signal" : "code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  for (int i = 0; i < 20; ++i) {
    group.barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  sum(group, "sum");
  return 0;
}

int throw_in_child() {
  throw std::runtime_error("only the child fails");
}

int join_in_child() {
  try {
    const ddprun::Group group = ddprun::init();
  } catch (const ddprun::Error& error) {
    std::printf("%s\n", error.what());
    std::fflush(stdout);
  }
  return 0;
}

// Rank 1 ends with a code of its own, and the others wait for it in a collective.
int exit_alone() {
  const ddprun::Group group = ddprun::init();
  group.barrier();
  if (group.rank() == 1) std::_Exit(7);
  group.barrier();
  return 0;
}

// Steps until a rank has got a signal; then rank 0 saves.
int train_until_signal() {
  const ddprun::Group group = ddprun::init();
  if (group.stop_requested()) return 1;
  std::printf("ready\n");
  std::fflush(stdout);
  for (int step = 0; step < 6000; ++step) {
    if (group.stop_requested()) {
      if (group.rank() == 0) std::printf("saved\n");
      return 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 1;
}

// Rank 0 saves for a while after the signal. Meanwhile rank 1 ends by it, and rank 2 loses rank 1.
int save_alone() {
  const ddprun::Group group = ddprun::init({.exit_on_error = true});
  if (group.rank() == 0) std::signal(SIGTERM, [](int) { stop = 1; });
  if (group.rank() == 2) std::signal(SIGTERM, SIG_IGN);
  group.barrier();
  std::printf("ready\n");
  std::fflush(stdout);
  if (group.rank() == 2) group.barrier();
  while (stop == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  std::printf("saved\n");
  return 0;
}

// Ignores SIGTERM, or has no handler.
int hang(bool ignores) {
  const ddprun::Group group = ddprun::init();
  if (ignores) std::signal(SIGTERM, SIG_IGN);
  group.barrier();
  std::printf("ready\n");
  std::fflush(stdout);
  while (true) ::pause();
}

const std::map<std::string, std::function<int()>> kActs = {
    {"twice", twice},
    {"set_terminate_before", [] { return set_terminate(true); }},
    {"set_terminate_after", [] { return set_terminate(false); }},
    {"dispositions", dispositions_after_init},
    {"child_throws", [] { return with_child(throw_in_child, {}); }},
    {"child_throws_exit_on_error", [] { return with_child(throw_in_child, {.exit_on_error = true}); }},
    {"child_returns", [] { return with_child([] { return 7; }, {}); }},
    {"child_joins", [] { return with_child(join_in_child, {}); }},
    {"train_until_signal", train_until_signal},
    {"exit_alone", exit_alone},
    {"save_alone", save_alone},
    {"hang", [] { return hang(false); }},
    {"hang_on", [] { return hang(true); }},
};

}  // namespace

int main(int, char** arguments) {
  return kActs.at(arguments[1])();
}
