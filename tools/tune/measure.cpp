#include "tools/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/console/table.hpp"
#include "comm/declared.hpp"
#include "ddprun/plugin/words.hpp"
#include "plugin/registry.hpp"
#include "tools/compare/runner.hpp"
#include "tools/compare/variant.hpp"
#include "tools/predict/recording.hpp"

namespace ddprun::tune {
namespace {

using Arguments = std::vector<std::string>;

// A run is long enough for clocks and threads to reach their speed, and has enough steps for a median.
constexpr double kRun = 2;  // seconds
constexpr int64_t kFewestSteps = 40, kMostSteps = 4000;

constexpr double kTinyBucket = 1e-9;  // MiB: each gradient fills it

DType dtype_of(const std::string& compression) {
  return compression == "none" ? DType::float32 : compression == "fp16" ? DType::float16 : DType::bfloat16;
}

void add_once(Arguments& words, const std::string& word) {
  if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
}

// 1 KiB, 4 KiB, ..., and all gradients together.
std::vector<int64_t> sizes_up_to(double bytes) {
  constexpr int64_t kLeast = 1024;
  const int64_t most = (static_cast<int64_t>(bytes) / kLeast + 1) * kLeast;
  std::vector<int64_t> sizes;
  for (int64_t size = kLeast; size < most; size *= 4) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

class Measurer {
 public:
  Measurer(const Request& request, const config::Experiment& experiment, Session& session)
      : request_(request),
        experiment_(experiment),
        session_(session),
        registry_(plugin::Registry::standard(request.running.plugin_paths)),
        backends_(request.backends),
        compressions_(request.compression) {
    result_.own = settings_of(experiment);
    result_.steps = request.steps > 0 ? request.steps : kFewestSteps;
    result_.hosts = session.hosts();
    result_.ranks = session.ranks();
    add_once(backends_, own_.backend);
    require_known_algorithms();
    for (const std::string& compression : {std::string("none"), own_.compression}) add_once(compressions_, compression);
    for (const std::string& backend : backends_) {
      for (const std::string& compression : compressions_) try_if_possible(backend, compression);
    }
  }

  Result run() {
    result_.folder = compare::new_folder(request_.running, experiment_, "tune");
    record_gradients();
    for (const auto& [backend, compression] : tried_) measure_links(backend, compression);
    for (const auto& [backend, compression] : tried_) record_step(backend, compression);
    fit();
    return std::move(result_);
  }

 private:
  std::vector<int64_t> traced() const {
    std::vector<int64_t> steps;
    for (int64_t part = 2; part < 8; ++part) steps.push_back(part * steps_ / 8);
    return steps;
  }

  // A traced run, and its folder.
  std::string traced_run(const std::string& name, const Arguments& more) {
    const std::string output = result_.folder + "/runs/" + name;
    Arguments overrides = more;
    overrides.push_back("train.steps=" + std::to_string(steps_));
    overrides.push_back("experiment.output=" + config::quoted(output));
    overrides.push_back(fmt::format("log.trace_steps=[{}]", fmt::join(traced(), ",")));
    Arguments arguments = {Session::kExperiment};
    for (const std::string& override_ : overrides) arguments.insert(arguments.end(), {"--set", override_});
    session_.run(result_.folder, name, arguments);
    return std::filesystem::directory_iterator(output)->path().string();
  }

  // Each gradient has a bucket of its own, so that the trace has their order, sizes and times.
  void record_gradients() {
    announce(request_, "a run with a bucket for each gradient");
    const std::string tiny = exact_text(kTinyBucket);
    const std::string dir = traced_run("gradients", {"strategy.bucket_cap_mb=" + tiny, "strategy.compression=none"});
    predict::Recording recording = predict::read_recording(dir);
    result_.name = recording.name;
    basis_.gradients = std::move(recording.buckets);
    calls_of_gradients_ = calls_of(dir);
    if (request_.steps > 0) return;
    const double step = step_of(dir, traced());
    steps_ = std::clamp(static_cast<int64_t>(kRun / step), kFewestSteps, kMostSteps);
    announce(request_, fmt::format("such a step takes {}, so each of the next runs has {} steps",
                                   console::human_time(step), steps_));
  }

  void require_known_algorithms() const {
    Arguments known;
    for (const std::string& backend : backends_) {
      for (const std::string& name : all_algorithms_of(backend, "none")) add_once(known, name);
    }
    for (const std::string& name : request_.algorithms) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      throw Error(ExitCode::usage, "--algorithm " + name + ": " + expected_one_of(name, known));
    }
  }

  // Those of the backend to try for such gradients.
  Arguments algorithms_of(const std::string& backend, const std::string& compression) const {
    Arguments names = all_algorithms_of(backend, compression);
    const Arguments& wanted = request_.algorithms;
    std::erase_if(names, [&](const std::string& name) {
      const bool is_own = backend == own_.backend && name == own_.algorithm;
      return !wanted.empty() && !is_own && std::find(wanted.begin(), wanted.end(), name) == wanted.end();
    });
    return names;
  }

  Arguments all_algorithms_of(const std::string& backend, const std::string& compression) const {
    const uint32_t dtype = 1U << static_cast<uint32_t>(dtype_of(compression));
    const uint32_t sum = 1U << static_cast<uint32_t>(Op::sum);
    Arguments names;
    for (const AlgorithmInfo& algorithm : comm::capabilities_of(*registry_.comm(backend).table).algorithms) {
      const bool can = algorithm.takes(Memory::host) && (algorithm.ops & sum) != 0 && (algorithm.dtypes & dtype) != 0;
      if (can) names.push_back(algorithm.name);
    }
    if (!names.empty()) names.insert(names.begin(), "auto");
    return names;
  }

  void try_if_possible(const std::string& backend, const std::string& compression) {
    if (!algorithms_of(backend, compression).empty()) return tried_.push_back({backend, compression});
    const bool can = !all_algorithms_of(backend, compression).empty();
    const std::string why = can ? "has none of the algorithms of --algorithm"
                                : fmt::format("cannot send {}", name_of(dtype_of(compression)));
    log::warning(fmt::format("tune: {} {}, so it is not tried with compression \"{}\"", backend, why, compression));
  }

  void measure_links(const std::string& backend, const std::string& compression) {
    const std::string type = name_of(dtype_of(compression));
    announce(request_, fmt::format("a benchmark of {} with {}", backend, type));
    const std::string name = "bench-" + compare::folder_name(backend) + "-" + compression;
    const std::string file = result_.folder + "/" + name + ".json";
    const auto sizes = sizes_up_to(basis_.gradient_bytes() * sent(compression));
    Arguments arguments = {"bench", "--backend", backend, "--json", file, "-d", type};
    const auto add = [&](const std::string& option, const std::string& value) {
      arguments.insert(arguments.end(), {option, value});
    };
    add("--algorithm", fmt::format("{}", fmt::join(algorithms_of(backend, compression), ",")));
    add("--sizes", fmt::format("{}", fmt::join(sizes, ",")));
    // Few samples: on a slow link, each of the large ones takes seconds.
    add("--rounds", "3");
    add("-n", "5");
    add("-w", "1");
    if (backend == own_.backend) arguments.push_back(Session::kOptions);
    if (session_.hosts() == 1) add("--ranks", std::to_string(session_.ranks()));
    if (session_.hosts() > 1 && experiment_.launch.insecure) arguments.push_back("--insecure");
    session_.run(result_.folder, name, arguments);
    for (const auto& [algorithm, curve] : curves_of(file)) {
      basis_.curves.emplace(Method{backend, algorithm, compression}, curve);
    }
  }

  // The config with its own buckets: the parts of a step, and how long it takes.
  void record_step(const std::string& backend, const std::string& compression) {
    Settings settings = own_;
    settings.backend = backend;
    if (backend != own_.backend) settings.algorithm = algorithms_of(backend, compression).front();
    settings.compression = compression;
    announce(request_, fmt::format("a run over {} with {}", backend, name_of(dtype_of(compression))));
    Arguments overrides;
    for (const Change& change : changes(own_, settings)) overrides.push_back(change.override_text());
    const std::string dir = traced_run("step-" + compare::folder_name(backend) + "-" + compression, overrides);
    if (settings == own_) basis_.parts = predict::typical_of(predict::read_recording(dir).steps);
    recorded_.push_back({settings, step_of(dir, traced())});
  }

  void fit() {
    basis_.per_call = extra_per_call(calls_of_gradients_, basis_.curves.at({own_.backend, own_.algorithm, "none"}));
    for (const auto& [settings, step] : recorded_) {
      basis_.per_byte[{settings.backend, settings.compression}] = fitted_per_byte(basis_, settings, step);
    }
  }

  const Request& request_;
  const config::Experiment& experiment_;
  Session& session_;
  const plugin::Registry registry_;
  Result result_;
  const Settings& own_ = result_.own;
  Basis& basis_ = result_.basis;
  int64_t& steps_ = result_.steps;  // of each run
  Arguments backends_, compressions_;
  std::vector<std::pair<std::string, std::string>> tried_;  // backend and compression
  std::vector<Call> calls_of_gradients_;
  std::vector<std::pair<Settings, double>> recorded_;  // steps, in seconds
};

}  // namespace

Result measure(const Request& request, const config::Experiment& experiment, Session& session) {
  return Measurer(request, experiment, session).run();
}

void announce(const Request& request, const std::string& what) {
  if (!request.running.quiet) log::info("tune: " + what);
}

}  // namespace ddprun::tune
