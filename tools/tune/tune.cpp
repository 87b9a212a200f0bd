#include "tools/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "comm/declared.hpp"
#include "config/text.hpp"
#include "plugin/registry.hpp"
#include "record/run_dir.hpp"
#include "tools/compare/variant.hpp"
#include "tools/predict/recording.hpp"
#include "tools/tune/result.hpp"
#include "tools/tune/session.hpp"

namespace ddprun::tune {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

constexpr double kTinyBucket = 1e-9;  // MiB: each gradient fills it

DType dtype_of(const std::string& compression) {
  return compression == "none" ? DType::float32 : compression == "fp16" ? DType::float16 : DType::bfloat16;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ","));
}

void add_once(std::vector<std::string>& words, const std::string& word) {
  if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
}

// The overrides of the user for short runs of equal length.
Arguments overrides_of_runs(const Request& request) {
  Arguments overrides = request.overrides;
  std::erase_if(overrides, [](const std::string& override_) {
    return override_.starts_with("train.epochs=") || override_.starts_with("train.steps=");
  });
  overrides.push_back("train.steps=" + std::to_string(request.steps));
  // What has no part in the time of a step, but would need more steps or a file.
  for (const char* off : {"train.warmup=0", "train.evaluate=false", "train.early_stop=\"\"", "checkpoint.best=\"\"",
                          "checkpoint.resume=\"\"", "log.parity_steps=0"}) {
    overrides.push_back(off);
  }
  return overrides;
}

// 1 KiB, 4 KiB, ..., and all gradients together.
std::string sizes_up_to(double bytes) {
  constexpr int64_t kLeast = 1024;
  const int64_t most = (static_cast<int64_t>(bytes) / kLeast + 1) * kLeast;
  std::vector<std::string> sizes;
  for (int64_t size = kLeast; size < most; size *= 4) sizes.push_back(std::to_string(size));
  sizes.push_back(std::to_string(most));
  return joined(sizes);
}

// For config::load(): launch.nproc does not give the ranks of several hosts.
std::optional<int64_t> ranks_known(int hosts) {
  return hosts == 1 ? std::nullopt : std::optional<int64_t>(0);
}

class Tuner {
 public:
  Tuner(const Request& request, const config::Loaded& loaded, Session& session)
      : request_(request), experiment_(loaded.experiment), session_(session) {
    result_.own = result_.chosen = settings_of(experiment_);
    result_.hosts = session.hosts();
    result_.ranks = session.ranks();
    backends_ = request.backends.empty() ? Arguments{result_.own.backend} : request.backends;
    add_once(backends_, result_.own.backend);
    compressions_ = request.compression;
    add_once(compressions_, result_.own.compression);
    add_once(compressions_, "none");
    std::erase_if(compressions_,
                  [&](const std::string& one) { return algorithms_of(result_.own.backend, one).empty(); });
    const std::string& output = request.running.output;
    result_.folder = record::make_run_dir(output.empty() ? experiment_.experiment.output : output, "tune");
    for (const char* part : {"runs", "logs"}) fs::create_directories(fs::path(result_.folder) / part);
  }

  ExitCode run(const Arguments& command) {
    record_gradients();
    for (const std::string& backend : backends_) {
      for (const std::string& compression : compressions_) measure_links(backend, compression);
    }
    for (const std::string& compression : compressions_) record_step(compression);
    fit();
    result_.chosen = choose(result_.basis, result_.own);
    print(about_choice(result_));
    if (!result_.changes().empty()) verify();
    print(about_verdict(result_));
    if (!request_.json.empty()) replace_file(request_.json, to_json(result_, command));
    if (!request_.write.empty()) write();
    print("tune folder: " + result_.folder + "\n");
    return ExitCode::ok;
  }

 private:
  static void print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  void announce(const std::string& what) const {
    if (!request_.running.quiet) log::info("tune: " + what);
  }

  std::vector<int64_t> traced() const {
    std::vector<int64_t> steps;
    for (int64_t part = 2; part < 8; ++part) steps.push_back(part * request_.steps / 8);
    return steps;
  }

  // A traced run, and its folder.
  std::string traced_run(const std::string& name, const Arguments& more) {
    Arguments overrides = overrides_of_runs(request_);
    overrides.insert(overrides.end(), more.begin(), more.end());
    const std::string output = result_.folder + "/runs/" + name;
    overrides.push_back("experiment.output=" + config::quoted(output));
    overrides.push_back(fmt::format("log.trace_steps=[{}]", fmt::join(traced(), ",")));
    Arguments arguments = {"--config", Session::kConfig};
    for (const std::string& override_ : overrides) arguments.insert(arguments.end(), {"--set", override_});
    session_.run(result_.folder, name, arguments);
    return fs::directory_iterator(output)->path().string();
  }

  // Each gradient has a bucket of its own, so that the trace has their order, sizes and times.
  void record_gradients() {
    announce("a run with a bucket for each gradient");
    const std::string tiny = config::number_text(kTinyBucket);
    const std::string dir = traced_run(
        "gradients",
        {"strategy.bucket_cap_mb=" + tiny, "strategy.first_bucket_cap_mb=" + tiny, "strategy.compression=none"});
    predict::Recording recording = predict::read_recording(dir);
    result_.name = recording.name;
    result_.basis.gradients = std::move(recording.buckets);
    calls_of_gradients_ = calls_of(dir);
  }

  // The config with its own buckets: the parts of a step, and how long it takes.
  void record_step(const std::string& compression) {
    announce("a run with strategy.compression = " + config::quoted(compression));
    Basis& basis = result_.basis;
    Settings settings = result_.own;
    settings.compression = compression;
    const std::string dir = traced_run("step-" + compression, {"strategy.compression=" + compression});
    if (settings == result_.own) basis.parts = predict::typical_of(predict::read_recording(dir).steps);
    steps_[compression] = step_of(dir, traced());
  }

  // The algorithms of the backend that can send such gradients.
  Arguments algorithms_of(const std::string& backend, const std::string& compression) const {
    const auto registry = plugin::Registry::standard(request_.running.plugin_paths);
    const uint32_t dtype = 1U << static_cast<uint32_t>(dtype_of(compression));
    Arguments names;
    for (const AlgorithmInfo& algorithm : comm::capabilities_of(*registry.comm(backend).table).algorithms) {
      const bool sums = (algorithm.ops & (1U << static_cast<uint32_t>(Op::sum))) != 0;
      if (algorithm.takes(Memory::host) && sums && (algorithm.dtypes & dtype) != 0) names.push_back(algorithm.name);
    }
    if (!names.empty()) names.insert(names.begin(), "auto");
    return names;
  }

  void measure_links(const std::string& backend, const std::string& compression) {
    const Arguments algorithms = algorithms_of(backend, compression);
    if (algorithms.empty()) return announce(backend + " cannot send gradients in " + compression + ": left out");
    announce(fmt::format("a benchmark of {} with {}", backend, name_of(dtype_of(compression))));
    const std::string name = "bench-" + compare::folder_name(backend) + "-" + compression;
    const std::string file = result_.folder + "/" + name + ".json";
    Arguments arguments = {"bench",
                           "--backend",
                           backend,
                           "--algorithm",
                           joined(algorithms),
                           "--sizes",
                           sizes_up_to(result_.basis.gradient_bytes() * sent(compression)),
                           "-d",
                           name_of(dtype_of(compression)),
                           "-n",
                           "5",
                           "-w",
                           "1",
                           "--rounds",
                           "3",
                           "--json",
                           file};
    if (backend == result_.own.backend) {
      for (const auto& [key, value] : experiment_.comm.options) {
        arguments.insert(arguments.end(), {"--option", key + "=" + value});
      }
    }
    if (session_.hosts() == 1) arguments.insert(arguments.end(), {"--ranks", std::to_string(session_.ranks())});
    if (session_.hosts() > 1 && experiment_.launch.insecure) arguments.push_back("--insecure");
    session_.run(result_.folder, name, arguments);
    for (const auto& [algorithm, curve] : curves_of(file)) {
      result_.basis.curves.emplace(Method{backend, algorithm, compression}, curve);
    }
  }

  // Makes the expected steps with the config's own buckets those that were recorded.
  void fit() {
    Basis& basis = result_.basis;
    Settings settings = result_.own;
    settings.compression = "none";
    const Curve& curve = basis.curves.at({settings.backend, settings.algorithm, settings.compression});
    basis.per_call = extra_per_call(calls_of_gradients_, curve);
    for (const auto& [compression, step] : steps_) {
      settings.compression = compression;
      basis.per_byte[compression] = fitted_per_byte(basis, settings, step);
    }
  }

  void verify() {
    announce("a comparison of the config with and without these lines");
    const std::string output = result_.folder + "/compare";
    Arguments arguments = {"compare",  "--config", Session::kConfig, "--repeats", std::to_string(request_.rounds),
                           "--output", output,     "--parity-steps", "0"};
    for (const std::string& override_ : overrides_of_runs(request_)) {
      arguments.insert(arguments.end(), {"--set", override_});
    }
    for (const Change& change : result_.changes()) {
      arguments.insert(arguments.end(), {"--change", change.override_text()});
    }
    session_.run(result_.folder, "compare", arguments);
    result_.verified = read_comparison(output);
  }

  void write() const {
    if (!result_.is_better()) return print(request_.write + " is not written\n");
    replace_file(request_.write,
                 changed_config(request_.config, request_.overrides, result_.changes(), ranks_known(session_.hosts())));
    print(request_.write + " has the config with these lines; it has every key, and no comments\n");
  }

  const Request& request_;
  const config::Experiment& experiment_;
  Session& session_;
  Result result_;
  Arguments backends_, compressions_;
  std::vector<Call> calls_of_gradients_;
  std::map<std::string, double> steps_;  // recorded, in seconds, by compression
};

// Of one host, also launch.nproc.
Request with_node_options(Request request) {
  if (request.nodes.nnodes.value_or(1) == 1 && request.nodes.nproc) {
    request.overrides.push_back("launch.nproc=" + std::to_string(*request.nodes.nproc));
  }
  return request;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

}  // namespace

void check(const Request& request, const config::Loaded& loaded) {
  const config::Experiment& experiment = loaded.experiment;
  const auto refuse = [&](const char* key, const std::string& what) {
    throw Error(ExitCode::usage, config::error(loaded.sources, key, what));
  };
  const auto& strategy = experiment.strategy;
  if (strategy.kind != "ddp") refuse("strategy.kind", "sends no gradients that tune could time; use \"ddp\"");
  if (strategy.zero != 0) refuse("strategy.zero", "sends parameters too, which tune does not predict; use 0");
  if (experiment.launch.device != "cpu") {
    refuse("launch.device", "a trace does not say when buckets on a GPU are full; tune works with \"cpu\"");
  }
  if (strategy.compression == "powersgd") {
    refuse("strategy.compression", "tune cannot predict it; use \"none\", \"bf16\" or \"fp16\"");
  }
  const bool others = std::any_of(request.backends.begin(), request.backends.end(),
                                  [&](const std::string& name) { return name != experiment.comm.backend; });
  if (others && !experiment.comm.options.empty()) {
    throw Error(ExitCode::usage, "--backend " + joined(request.backends) + ": comm.options are those of " +
                                     experiment.comm.backend + "; leave out one of the two");
  }
  if (!request.write.empty() && is_same_file(request.write, request.config)) {
    throw Error(ExitCode::usage,
                "--write " + request.write + ": the comments of this config would be lost; choose another file");
  }
  for (const std::string& file : {request.write, request.json}) {
    const std::string folder = missing_folder(file);
    if (!file.empty() && !folder.empty()) throw Error(ExitCode::usage, file + ": there is no folder " + folder);
  }
}

ExitCode run(const Request& given, const std::vector<std::string>& command) {
  const Request request = with_node_options(given);
  const auto world = console::discover(request.nodes, std::nullopt);
  if (world && world->size > 1) {
    throw Error(ExitCode::usage, "tune: " + world->launcher + " has started " + std::to_string(world->size) +
                                     " ranks; start it once on each host, with --nnodes for several");
  }
  const config::Loaded loaded =
      config::load(request.config, request.overrides, ranks_known(request.nodes.nnodes.value_or(1)));
  check(request, loaded);
  const int64_t ranks = request.nodes.nproc ? *request.nodes.nproc : compare::ranks_of(loaded.experiment);
  const auto timeout = std::chrono::milliseconds(std::llround(loaded.experiment.launch.timeout * 1000));
  const std::string identity = "ddprun = " + std::string(version()) + "\n" + config::shared_toml(loaded.experiment);
  Session session(request, ranks, identity, loaded.experiment.launch.insecure, timeout);
  if (session.ranks() == 1) throw Error(ExitCode::usage, "tune: one rank sends nothing; give --nproc N");
  if (!session.leads()) return session.follow();
  try {
    const ExitCode code = Tuner(request, loaded, session).run(command);
    session.finish(code, "");
    return code;
  } catch (const Error& error) {
    session.finish(error.code(), error.what());
    throw;
  } catch (const std::exception& error) {
    session.finish(ExitCode::failure, error.what());
    throw;
  }
}

}  // namespace ddprun::tune
