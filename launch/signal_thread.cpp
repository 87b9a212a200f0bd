#include "launch/signal_thread.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>

namespace ddprun::launch {
namespace {

std::array<std::atomic<bool>, NSIG> is_held{};

sigset_t only(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  return set;
}

}  // namespace

void ignore_signal(int signal) {
  ::signal(signal, SIG_IGN);
}

void hold_signal(int signal) {
  const sigset_t set = only(signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // For a thread that exists already, for example of a library: the signal must not end the process.
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  nothing.sa_flags = SA_RESTART;
  ::sigaction(signal, &nothing, nullptr);
  is_held.at(static_cast<std::size_t>(signal)) = true;
}

void send_held_signal(int signal, int value) {
  if (is_held.at(static_cast<std::size_t>(signal))) ::sigqueue(::getpid(), signal, {.sival_int = value});
}

SignalThread::SignalThread(int signal, std::function<void(int)> handle)
    : signal_(signal), handle_(std::move(handle)), thread_([this] { run(); }) {}

SignalThread::~SignalThread() {
  stopping_ = true;
  ::pthread_kill(thread_.native_handle(), signal_);
  thread_.join();
}

void SignalThread::run() {
  const sigset_t set = only(signal_);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  while (true) {
    siginfo_t info{};
    if (::sigwaitinfo(&set, &info) != signal_) continue;
    if (stopping_) return;
    handle_(info.si_code == SI_QUEUE ? info.si_value.sival_int : 0);
  }
}

}  // namespace ddprun::launch
