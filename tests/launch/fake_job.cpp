// A job without training. A test starts it as the launcher; it starts itself as the ranks:
//   fake_job NPROC LOG_DIR|- GRACE_MS STEP...
// FAKE_JOB_SURVIVES = "LEAST:RESTARTS": the job survives deaths until fewer nodes are left, and replaces so many ranks.
// FAKE_JOB_NODE = "NODE:NODES:PORT:RESTARTS" makes it one of several nodes, which meet at this port of 127.0.0.1.
// A step "1:exit=3" is for rank 1, "*:hang" for all; each rank runs its own, in order. kActions lists the actions.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "launch/failure.hpp"
#include "launch/progress.hpp"
#include "launch/rendezvous.hpp"
#include "launch/signals.hpp"
#include "launch/supervisor.hpp"
#include "launch/world.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using std::chrono::milliseconds;

struct Self {
  World world;
  std::unique_ptr<Store> store;
  std::unique_ptr<ProgressTable> table;
};

void print(FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

void pause_for(const std::string& ms) {
  std::this_thread::sleep_for(milliseconds(std::stol(ms)));
}

[[noreturn]] void hang() {
  while (true) pause();
}

// Steps as a trainer makes them: publish, work, exchange with the others whether to stop.
void train(Self& self, long steps) {
  static long done = 0;  // by earlier actions
  const long first = done + 1;
  done += steps;
  for (long step = first; step <= done; ++step) {
    self.table->set(self.world.local_rank, {step, Phase::forward, -1});
    std::this_thread::sleep_for(milliseconds(1 + (step + self.world.rank) % 3));
    self.table->set(self.world.local_rank, {step, Phase::allreduce, 0});
    const auto requests = self.store->allgather("step" + std::to_string(step), self.world.rank, self.world.size,
                                                self.table->stop_requested() ? "stop" : "", milliseconds(60000));
    if (std::count(requests.begin(), requests.end(), "stop") == 0) continue;
    print(stdout, "stopped after " + std::to_string(step) + "\n");
    return;
  }
}

void report(Self& self, const std::string& code_and_text) {
  const std::size_t comma = code_and_text.find(',');
  std::string text = code_and_text.substr(comma + 1);
  for (std::size_t at; (at = text.find('|')) != std::string::npos;) text[at] = '\n';
  report_failure(self.world.job_dir, self.world.rank, static_cast<ExitCode>(std::stoi(code_and_text)), text);
}

// Writes the pid of a child that never ends into a file. `apart`: in its own process group.
void start_grandchild(const std::string& file) {
  const pid_t pid = fork();
  if (pid == 0) hang();
  std::ofstream(file) << pid << std::endl;
}

void place(Self& self, const std::string& step_and_bucket) {
  const std::size_t comma = step_and_bucket.find(',');
  self.table->set(self.world.local_rank,
                  {std::stol(step_and_bucket), Phase::allreduce, std::stoi(step_and_bucket.substr(comma + 1))});
}

void flood(const std::string& megabytes) {
  const std::string line(99, 'x');
  for (long left = std::stol(megabytes) * 10486; left > 0; --left) std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void run_action(Self& self, const std::string& what);

using Action = std::function<void(Self&, const std::string&)>;

const std::map<std::string, Action>& actions() {
  static const std::map<std::string, Action> kActions = {
      {"print", [](Self&, const std::string& text) { print(stdout, text + "\n"); }},
      {"part", [](Self&, const std::string& text) { print(stdout, text); }},
      {"error", [](Self&, const std::string& text) { print(stderr, text + "\n"); }},
      {"redraw", [](Self&, const std::string& text) { print(stdout, "\r" + text); }},
      {"show",
       [](Self&, const std::string& name) {
         const char* value = std::getenv(name.c_str());
         print(stdout, name + "=" + (value == nullptr ? "(unset)" : value) + "\n");
       }},
      {"pid", [](Self&, const std::string& file) { std::ofstream(file) << getpid() << std::endl; }},
      {"at", place},
      {"sleep", [](Self&, const std::string& ms) { pause_for(ms); }},
      {"exit", [](Self&, const std::string& code) { std::exit(std::stoi(code)); }},
      {"signal", [](Self&, const std::string& number) { raise(std::stoi(number)); }},
      {"report", report},
      {"set", [](Self& self, const std::string& key) { self.store->set(key, "value"); }},
      {"get", [](Self& self, const std::string& key) { self.store->require(key, milliseconds(60000)); }},
      {"first",  // the following action only if this file does not exist, for a failure that a restart does not repeat
       [](Self& self, const std::string& file_and_action) {
         const std::size_t comma = file_and_action.find(',');
         if (::mkdir(file_and_action.substr(0, comma).c_str(), 0700) == 0) {
           run_action(self, file_and_action.substr(comma + 1));
         }
       }},
      {"stop",
       [](Self& self, const std::string&) {
         while (!self.table->stop_requested()) pause_for("1");
       }},
      {"usr2",  // prints the value of each SIGUSR2 from here on
       [](Self&, const std::string&) {
         hold_usr2();
         static const Usr2Thread thread([](int value) { print(stdout, "usr2 " + std::to_string(value) + "\n"); });
       }},
      {"request", [](Self& self, const std::string&) { self.table->request_stop(); }},
      {"train", [](Self& self, const std::string& steps) { train(self, std::stol(steps)); }},
      {"grandchild", [](Self&, const std::string& file) { start_grandchild(file); }},
      {"flood", [](Self&, const std::string& megabytes) { flood(megabytes); }},
      {"hang", [](Self&, const std::string&) { hang(); }},
  };
  return kActions;
}

void run_action(Self& self, const std::string& what) {
  const std::size_t equals = what.find('=');
  actions().at(what.substr(0, equals))(self, equals == std::string::npos ? "" : what.substr(equals + 1));
}

void run_step(Self& self, const std::string& step) {
  const std::size_t colon = step.find(':');
  const std::string who = step.substr(0, colon);
  if (who != "*" && who != std::to_string(self.world.rank)) return;
  run_action(self, step.substr(colon + 1));
}

int run_rank(World world, int argc, char** argv) try {
  if (const char* replaces = std::getenv(kReplaces)) {
    folder_store(world.job_dir)->set(replaces, "");
    print(stdout, "replaces a rank\n");
    return 0;
  }
  auto store = open_store(world, milliseconds(20000));
  if (!store) store = folder_store(world.job_dir);
  Self self{world, std::move(store), std::make_unique<ProgressTable>(world.job_dir, world.local_size)};
  for (int i = 4; i < argc; ++i) run_step(self, argv[i]);
  return 0;
} catch (const Error& error) {
  report_failure(world.job_dir, world.rank, error.code(), error.what());
  return static_cast<int>(error.code());
}

int run_launcher(int argc, char** argv) {
  Job job;
  job.command.assign(argv, argv + argc);
  job.command[0] = std::getenv("FAKE_JOB_PROGRAM") != nullptr ? std::getenv("FAKE_JOB_PROGRAM") : argv[0];
  job.nproc = std::stoi(argv[1]);
  job.log_dir = std::string(argv[2]) == "-" ? "" : argv[2];
  job.grace = milliseconds(std::stol(argv[3]));
  char colon;
  if (const char* survives = std::getenv("FAKE_JOB_SURVIVES")) {
    std::istringstream(survives) >> job.nodes.least >> colon >> job.max_restarts;
  }
  if (const char* node = std::getenv("FAKE_JOB_NODE")) {
    std::istringstream(node) >> job.nodes.rank >> colon >> job.nodes.count >> colon >> job.nodes.master.port >> colon >>
        job.max_restarts;
    job.nodes.master.secret = kKnownSecret;
    const char* timeout = std::getenv("FAKE_JOB_TIMEOUT");
    job.nodes.timeout = milliseconds(timeout == nullptr ? 20000 : std::stol(timeout));
  }
  return static_cast<int>(supervise(job));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) return 2;
  const auto world = discover(std::nullopt);
  return world ? run_rank(*world, argc, argv) : run_launcher(argc, argv);
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return static_cast<int>(error.code());
}
