// ddprun-conformance: tests any plugin against its contract.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>

#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "data/datasets.hpp"
#include "ddprun/error.hpp"
#include "testing/hosts.hpp"
#include "tools/conformance/checks.hpp"
#include "tools/conformance/job_ranks.hpp"
#include "tools/conformance/printer.hpp"
#include "tools/conformance/suite.hpp"

namespace ddprun::conformance {
namespace {

using testing::As;

struct Arguments {
  std::string plugin;
  std::vector<std::string> plugin_path;
  std::vector<int> ranks;  // none: 1, 2, 3 and 5
  std::string as;          // "": both
  std::string memory;
  std::vector<std::string> options;
  std::vector<std::string> hosts;
  unsigned deadline_ms = 0;  // 0: not given
  unsigned fault_deadline_ms = 1'000;
  unsigned slack_ms = 250;
  Settings settings;  // devices, large, checks, and the seed; 0: drawn
};

// The error for a shape that is not like "2x2", or "".
std::string is_shape(const std::string& text) {
  const bool is_one =
      text.size() == 3 && text[0] > '1' && text[0] <= '8' && text[1] == 'x' && text[2] >= '1' && text[2] <= '8';
  return is_one ? "" : text + ": expected 2 to 8 hosts and 1 to 8 ranks on each, as 2x2";
}

void declare(CLI::App& app, Arguments& arguments) {
  app.add_option("--plugin", arguments.plugin, "The plugin: a name (\"gloo\"), a path, or c10d:NAME of PyTorch.")
      ->required();
  console::add_plugin_path(app, arguments.plugin_path);
  app.add_option("--ranks", arguments.ranks,
                 "The world sizes, from 1 to 16. The default is 1,2,3,5, and 4 if the plugin declares canonical_order.")
      ->delimiter(',')
      ->check(CLI::Range(1, 16));
  app.add_option("--as", arguments.as,
                 "Run ranks as processes or threads. The default is both. A death is tested only with processes.")
      ->check(CLI::IsMember({"processes", "threads"}));
  app.add_option("--memory", arguments.memory,
                 "Where the buffers are. The default is what the plugin supports, and host if it supports both.")
      ->check(CLI::IsMember({"host", "cuda"}));
  app.add_option(
         "--device", arguments.settings.devices,
         "With --memory cuda, the CUDA ordinal for each rank, or one for all ranks. By default, rank i uses GPU i.")
      ->delimiter(',')
      ->check(CLI::Range(0, 1023));
  app.add_option("--option", arguments.options, "An option for the plugin, as key=value. May be repeated.");
  app.add_option(
         "--hosts", arguments.hosts,
         "The numbers of hosts and of ranks on each, such as 2x2,3x2, instead of --ranks. Each host has its own "
         "network, PID, IPC and mount namespaces. That needs CAP_SYS_ADMIN, and without it the exit code is 77.")
      ->delimiter(',')
      ->check(CLI::Validator(is_shape, "HOSTSxRANKS"));
  app.add_flag("--large", arguments.settings.large,
               "Test a million elements with every dtype and op, not only with some.");
  add_check_options(app, arguments.settings.checks);
  app.add_option("--deadline", arguments.deadline_ms,
                 "Milliseconds for a collective that should succeed. The default is 20000, and an hour with --no-fork.")
      ->check(CLI::PositiveNumber);
  app.add_option("--fault-deadline", arguments.fault_deadline_ms,
                 "Milliseconds for a collective that should time out. The default is 1000.");
  app.add_option("--slack", arguments.slack_ms,
                 "Extra milliseconds beyond the contract, for a busy machine. The default is 250.");
  app.add_option("--seed", arguments.settings.seed,
                 "The seed of the drawn sizes. By default it is drawn, and the first line shows it.")
      ->check(CLI::PositiveNumber);
}

Memory memory_from(const Arguments& arguments, const Settings& settings) {
  const auto& capabilities = settings.capabilities;
  const bool host = arguments.memory.empty() ? capabilities.host : arguments.memory == "host";
  if (host ? capabilities.host : capabilities.cuda) return host ? Memory::host : Memory::cuda;
  throw Error(ExitCode::usage, "--memory " + arguments.memory + ": " + settings.plugin.table->name + " takes " +
                                   (host ? "CUDA" : "host") + " memory only");
}

// Keeps only algorithms that support the buffers' memory, which is not from the plugin's alloc. Returns the names of
// the other algorithms.
std::vector<std::string> without_algorithms_of_other_memory(Settings& settings) {
  Capabilities& can = settings.capabilities;
  std::vector<std::string> names;
  std::erase_if(can.algorithms, [&](const AlgorithmInfo& algorithm) {
    const bool takes = algorithm.takes(settings.memory) && !algorithm.from_alloc;
    if (!takes) names.push_back(algorithm.name);
    return !takes;
  });
  can.alloc = can.alloc && can.alloc_memory == settings.memory;
  return names;
}

Settings settings_from(const Arguments& arguments) {
  Settings settings = arguments.settings;
  settings.options = console::key_values("--option", arguments.options);
  if (settings.checks.no_fork) settings.deadline = std::chrono::hours(1);
  if (arguments.deadline_ms > 0) settings.deadline = milliseconds(arguments.deadline_ms);
  settings.fault_deadline = milliseconds(arguments.fault_deadline_ms);
  settings.slack = milliseconds(arguments.slack_ms);
  settings.before_load = ProcessState::now();
  const bool is_c10d = arguments.plugin.starts_with("c10d:");
  if (is_c10d) settings.options["backend"] = arguments.plugin.substr(5);
  settings.plugin = plugin::Registry::standard(arguments.plugin_path).comm(is_c10d ? "c10d" : arguments.plugin);
  settings.plugin.table = &spy::watch(*settings.plugin.table);
  settings.capabilities = comm::capabilities_of(*settings.plugin.table);
  settings.memory = memory_from(arguments, settings);
  if (settings.memory == Memory::host && !settings.devices.empty()) {
    throw Error(ExitCode::usage, "--device: the buffers are in host memory; add --memory cuda");
  }
  return settings;
}

// The cases of one world that the options choose, and first the one that they all need.
std::vector<Case> cases_of(const World& world) {
  std::vector<Case> all;
  for (const auto add : {add_collective_cases, add_usage_cases, add_request_cases, add_lifetime_cases,
                         add_process_cases, add_fault_cases}) {
    add(world, all);
  }
  std::erase_if(all, [&](const Case& one) { return !world.settings.checks.chooses(world.name() + ": " + one.name); });
  if (!all.empty()) all.insert(all.begin(), joining_case());
  return all;
}

// The exit status that ctest counts as a skip.
constexpr auto kSkipped = static_cast<ExitCode>(77);

// `words`: the command line, which the ranks of another launcher must have in common.
ExitCode run(const Arguments& arguments, const std::string& words) {
  if (arguments.settings.checks.no_fork && (arguments.as == "processes" || !arguments.hosts.empty())) {
    throw Error(ExitCode::usage, "--no-fork: the ranks are threads of this process; leave out " +
                                     std::string(arguments.hosts.empty() ? "--as processes" : "--hosts"));
  }
  Settings settings = settings_from(arguments);
  const auto job = settings.checks.no_fork ? nullptr : JobRanks::find(words);
  settings.job = job.get();
  if (job == nullptr && !settings.checks.no_fork) testing::block_stops();
  if (job != nullptr && !(arguments.ranks.empty() && arguments.as.empty() && arguments.hosts.empty())) {
    throw Error(ExitCode::usage, "--ranks, --as, --hosts: a launcher has started the ranks; leave these options out");
  }
  if (job != nullptr && !job->leads()) std::cout.setstate(std::ios::failbit);  // rank 0 prints
  if (settings.seed == 0) settings.seed = job != nullptr ? 1 : std::random_device()() | 1U;
  const auto of_other_memory = without_algorithms_of_other_memory(settings);
  const auto& table = *settings.plugin.table;
  const std::string library = *table.library == '\0' ? "" : std::string(" (") + table.library + ")";
  std::cout << table.name << ' ' << table.version << library << ", " << settings.plugin.path << ", seed "
            << settings.seed << std::endl;
  const Gpus gpus = settings.memory == Memory::host ? Gpus{} : find_gpus(settings);
  if (!gpus.missing.empty()) {
    std::cout << "skipped: no CUDA memory: " << gpus.missing << '\n';
    return kSkipped;
  }
  // Once, and not in each rank: that needs seconds.
  if (table.name == std::string_view("c10d") && !settings.checks.list) join_single(settings);
  Leftovers leftovers;
  CheckOptions output = settings.checks;
  if (output.list || (job != nullptr && !job->leads())) output.json = "";
  Printer report(output, {table.name, table.version, settings.plugin.path, settings.seed});
  const auto sink = [&](const Result& result) { report.add(result); };
  std::string stopped;
  for (const auto& skipped : undeclared(settings)) report.skip(skipped.what + ": not declared", skipped.combinations);
  if (!settings.capabilities.reduce_scatter) report.skip("reduce_scatter: not declared", 1);
  if (!settings.capabilities.exchange) report.skip("exchange: not declared", 1);
  for (const auto& name : of_other_memory) report.skip("allreduce " + name + ": does not support such memory", 1);
  std::size_t chosen = 0, left_out = 0;
  bool thorough = true;  // in the first world with more than one rank, of processes and of threads
  const auto test_world = [&](const Settings& of_world, int size, As as) {
    const World world{of_world, size, as, thorough};
    if (const std::string why = why_not(world, gpus); !why.empty()) {
      report.skip(world.name() + ": " + why, 1);
      ++left_out;
      return;
    }
    const auto cases = cases_of(world);
    thorough = thorough && size == 1;
    chosen += cases.size();
    if (settings.checks.list) {
      for (const auto& one : cases) std::cout << world.name() << ": " << one.name << '\n';
    } else if (!stopped.empty()) {
      leave_out(world, cases, stopped, sink);
    } else if (!cases.empty()) {
      stopped = run_cases(world, cases, leftovers, sink);
      report.end_world(world.name());
    }
  };
  for (const auto& text : arguments.hosts) {
    const int hosts = text[0] - '0';
    Settings on_hosts = settings;
    on_hosts.hosts = std::make_shared<testing::Hosts>(hosts);
    on_hosts.per_host = text[2] - '0';
    test_world(on_hosts, hosts * on_hosts.per_host, As::processes);
  }
  if (job != nullptr) test_world(settings, job->size(), As::processes);
  const std::string chosen_as = settings.checks.no_fork ? "threads" : arguments.as;
  for (const As as : {As::processes, As::threads}) {
    const bool is_chosen = chosen_as.empty() || chosen_as == testing::name_of(as);
    if (job != nullptr || !arguments.hosts.empty() || !is_chosen) continue;
    thorough = true;
    std::vector<int> sizes = arguments.ranks.empty() ? std::vector{1, 2, 3, 5} : arguments.ranks;
    // Two ranks have one order only.
    const bool has_order = std::ranges::any_of(settings.capabilities.algorithms,
                                               [](const AlgorithmInfo& one) { return one.canonical_order != 0; });
    if (arguments.ranks.empty() && has_order) sizes.push_back(4);
    for (const int size : sizes) test_world(settings, size, as);
  }
  if (job != nullptr) comm::finish_plugins();
  if (chosen == 0 && left_out > 0) {
    report.close();
    return kSkipped;
  }
  if (chosen == 0) throw Error(ExitCode::usage, kNoneChosen);
  return settings.checks.list ? ExitCode::ok : report.close();
}

ExitCode run_comm_program(int argc, char** argv) {
  const auto cli = console::tool_command("conformance");
  cli->footer(
      "For other plugins: ddprun conformance --dataset NAME --help; ddprun conformance --model NAME --help.\n"
      "Exit codes: 0 all passed, 2 usage, 3 plugin not found or refused, 6 a case failed, 77 skipped.");
  Arguments arguments;
  declare(*cli, arguments);
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  if (const std::string why = arguments.hosts.empty() ? "" : testing::Hosts::why_not(); !why.empty()) {
    std::cout << "skipped: " << why << '\n';
    return kSkipped;
  }
  std::string words;
  for (int i = 1; i < argc; ++i) words.append(argv[i]).append("\n");
  return run(arguments, words);
}

ExitCode run_dataset_program(int argc, char** argv) {
  const auto cli = console::make_command("Test a data set against the contract of ddprun/plugin/dataset_plugin.hpp.",
                                         "ddprun conformance");
  cli->footer("Exit codes: 0 all passed, 2 usage, 3 plugin not found or refused, 6 a check failed.");
  DatasetSettings settings;
  CheckOptions checks;
  std::string name;
  std::vector<std::string> plugin_path, options;
  cli->add_option("--dataset", name, "The data set to test: a name, or the path of a plugin.")->required();
  console::add_plugin_path(*cli, plugin_path);
  cli->add_option("--root", settings.context.root, "The folder of its files.")->type_name("DIR");
  console::add_key_values(*cli, "--option", options, "KEY=VALUE",
                          "An option of the data set, as in data.options. May be repeated.");
  cli->add_option("--seed", settings.context.seed, "The seed of its random parts. The default is 0.");
  cli->add_option("--samples", settings.samples, "Test at most this many samples of each split. The default is 64.")
      ->check(CLI::PositiveNumber);
  add_check_options(*cli, checks);
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  settings.context.options = console::key_values("--option", options);
  const auto plugin = data::find_dataset(name, plugin::Registry::standard(plugin_path));
  settings.table = plugin.table;
  const Tested tested{plugin.table->name, plugin.table->version, plugin.path, settings.context.seed};
  return run_checks(dataset_suite(settings), tested, checks);
}

// The checks of models need LibTorch, so they are a program of their own.
ExitCode run_model_program(char** argv) {
  const auto program =
      std::filesystem::path(console::this_program()).parent_path().parent_path() / "libexec/ddprun-conformance-model";
  argv[0] = const_cast<char*>(program.c_str());
  ::execv(program.c_str(), argv);
  throw Error(ExitCode::plugin, "--model: cannot start " + program.string() + ": " + std::strerror(errno) +
                                    "; it comes with a ddprun that was built with LibTorch");
}

ExitCode run_program(int argc, char** argv) {
  const auto has = [&](const std::string& option) {
    return std::any_of(argv + 1, argv + argc, [&](const std::string& argument) {
      return argument == option || argument.starts_with(option + "=");
    });
  };
  if (has("--model")) return run_model_program(argv);
  return has("--dataset") ? run_dataset_program(argc, argv) : run_comm_program(argc, argv);
}

}  // namespace
}  // namespace ddprun::conformance

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::conformance::run_program(argc, argv); });
}
