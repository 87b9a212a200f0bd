// config: TOML to plain structs, and back. No other module uses toml types.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::config {

// Options of a plugin or data set: key -> the value as text (strings without quotes, "true", "3", "0.5").
using Options = std::map<std::string, std::string>;

// One experiment; docs/config.md describes every key. The members have the names and the defaults of the keys.
struct Experiment {
  struct Identity {
    std::string name;  // "": the file name without extension
    int64_t seed = 42;
    std::string output = "runs";
  } experiment;

  struct Launch {
    int64_t nproc = 1;    // 0: auto, one rank per core (or per GPU)
    int64_t threads = 0;  // 0: this rank's part of the cores
    std::string device = "cpu";
    std::vector<int64_t> devices;  // the GPU of each rank, or of each dp replica; empty: 0, 1, ...
    double timeout = 30;           // seconds
    double grace = 30;             // seconds
    int64_t max_restarts = 0;
    bool insecure = false;
    std::string log_dir;  // "": the run folder
  } launch;

  struct Comm {
    std::string backend = "gloo";  // a name or a path
    std::string algorithm = "auto";
    double timeout = 30;  // seconds
    std::string check = "fingerprint";
    bool stage_through_host = false;
    Options options;
  } comm;

  struct Strategy {
    std::string kind = "single";
    int64_t devices = 2;
    double bucket_cap_mb = 25;
    int64_t virtual_ranks = 0;  // 0: the ranks themselves
    bool find_unused_parameters = false;
    bool broadcast_buffers = true;
    std::string compression = "none";
    int64_t zero = 0;  // the stage of ZeRO; 0: off
    int64_t hash_every = 0;
  } strategy;

  struct Model {
    std::string name;     // required; a name or a path
    std::string weights;  // "": random, from the seed
    bool sync_batch_norm = false;
    Options options;
  } model;

  struct Data {
    std::string name;  // required
    std::string root;
    int64_t batch_size = 64;
    std::string batch_per = "global";
    bool shuffle = true;
    int64_t workers = 2;  // -1: auto, one per core, up to 8
    int64_t prefetch = 2;
    bool pin_memory = true;
    std::string last = "pad";
    std::string sampler = "auto";
    int64_t balance_steps = 0;
    bool standardize = false;
    double validation = 0;  // a fraction below 1, or a number of samples
    Options options;
  } data;

  struct Optimizer {
    std::string name = "sgd";
    double lr = 0.01;
    std::string scale_lr = "none";
    double momentum = 0;
    bool nesterov = false;
    double weight_decay = 0;
    std::vector<double> betas = {0.9, 0.999};
    double eps = 1e-8;
  } optimizer;

  struct Train {
    std::optional<int64_t> epochs;  // load() sets exactly one of epochs and steps
    std::optional<int64_t> steps;
    bool evaluate = true;
    std::string amp = "off";
    bool channels_last = false;
    bool cudnn_benchmark = false;
    bool deterministic = false;
    int64_t accumulate = 1;
    double clip_norm = 0;
    std::string check_gradients = "auto";
    std::string schedule = "none";
    int64_t warmup = 0;       // steps
    int64_t step_epochs = 0;  // 0: not given
    double step_factor = 0.1;
    double min_lr = 0;
    std::string early_stop;
    int64_t patience = 3;  // epochs
    double min_delta = 0;
  } train;

  struct Checkpoint {
    int64_t every_epochs = 1;  // 0: not by epochs; at the end in any case
    int64_t every_steps = 0;   // 0: not by steps
    double every_time = 0;     // seconds; 0: not by time
    int64_t keep = 2;          // 0: all
    std::string on_error = "stop";
    std::string best;
    std::string resume;
  } checkpoint;

  struct Log {
    int64_t every = 50;  // steps
    bool tensorboard = false;
    std::vector<int64_t> trace_steps;
    int64_t parity_steps = 0;
  } log;

  struct Faults {
    std::string kind = "none";
    int64_t rank = 0;
    int64_t step = 1;
    double seconds = 1;
  } faults;
};

// Where a value is set.
struct Location {
  std::string where;    // "exp.toml:12:9", "--set comm.algorithm=rign", or as Typed has it
  std::string value{};  // as TOML: "\"rign\""; a table or a long list is abbreviated
  // sort key of locations: line and column in the file, then the overrides in order
  std::pair<int64_t, int64_t> order{0, 0};

  bool on_command_line() const { return where.starts_with("--"); }
};

// Where each key was set, so that a later error (of a plugin or a data set) can still name the location. Options are
// keys of their own: "comm.options.interface". A value type; const functions are thread-safe.
struct Sources {
  std::string file;                           // its path, as it was passed to load()
  std::map<std::string, Location> locations;  // of all keys that are set

  // True if the file or --set sets the key.
  bool given(const std::string& key) const { return locations.contains(key); }
  // The key's location, or null if it is not set.
  const Location* find(const std::string& key) const;
};

// Collects errors, so that all are reported together, in the order of the file.
class Errors {
 public:
  // `text` follows the location: "launch.nprocs: unknown key".
  void add(const Location& location, const std::string& text, ExitCode code = ExitCode::usage);
  // An error of a key. The key is no longer sound() then.
  void add_key(const Location& location, const std::string& key, const std::string& what,
               ExitCode code = ExitCode::usage);
  // False if the key already has an error: an error that follows from its value would only repeat it.
  bool sound(const std::string& key) const { return !unsound_.contains(key); }
  bool empty() const { return lines_.empty(); }
  // Throws Error with all lines, and the code of the first, if there are any.
  void raise() const;

 private:
  std::multimap<std::pair<int64_t, int64_t>, Error> lines_;  // by Location::order
  std::set<std::string> unsound_;
};

// The key's location. For a key that is not set: the file, with the default's value.
Location location_of(const Sources& sources, const std::string& key);

// Overrides that do not come from --set -> what the user typed, for errors: "launch.nproc=2" -> "--nproc-per-node 2".
using Typed = std::map<std::string, std::string>;

struct Loaded {
  Experiment experiment;
  Sources sources;
};

// Reads and checks a file after applying overrides ("comm.algorithm=ring": the value in TOML syntax, or a bare word as
// a string; later ones win; train.epochs and train.steps replace each other). If they are not set, experiment.name
// becomes the file name without extension and train.epochs becomes 1. Throws Error(usage) with one line per error,
// `file:line:column: key = value: what; what to do`: all semantic errors at once, in the order of the file, but only
// the first syntax error.
// Opens no file other than `path`.
// `ranks`: the number of ranks of ddp if launch.nproc does not give it, on several hosts or under another launcher; 0
// if it is not known yet. Keys that depend on the number of ranks are checked for it.
Loaded load(const std::string& path, const std::vector<std::string>& overrides,
            std::optional<int64_t> ranks = std::nullopt, const Typed& typed = {});
// The same for the text of a file; `path` is its name.
Loaded load_text(const std::string& text, const std::string& path, const std::vector<std::string>& overrides,
                 std::optional<int64_t> ranks = std::nullopt, const Typed& typed = {});

// The keys that are set but not used by the chosen strategy and optimizer ("comm.backend" under single), sorted. They
// are allowed, so that one file can be varied; the caller logs them in one line.
std::vector<std::string> unused_keys(const Experiment& experiment, const Sources& sources);

// The checks of load() that need the number of ranks of the job, for a caller that learns it later. Throws as load().
void check_ranks(const Loaded& loaded, int64_t ranks);

// One line in load()'s format for an error found outside this module: `where: key = value: what`. A key that is not set
// is shown with its default.
std::string error(const Sources& sources, const std::string& key, const std::string& what);
// Calls `part`. What it throws as Error gets that line of the key as its text.
template <class Part>
auto at_key(const Sources& sources, const std::string& key, Part part) {
  try {
    return part();
  } catch (const Error& failed) {
    throw Error(failed.code(), error(sources, key, failed.what()));
  }
}

// The whole experiment as TOML with every key (only one of epochs and steps). load() of it gives the same experiment.
std::string to_toml(const Experiment& experiment);

// As to_toml(), without the keys and options that may differ between hosts: equal on all ranks of a run.
std::string shared_toml(const Experiment& experiment);

// comm.options without those that may differ between hosts, such as "interface". Of "tuning" it is compared only
// whether it is given: the path may differ, but with a table the ranks exchange its text as they join.
Options shared_options(Options options);

// Makes the input files and folders that the config names (data.root, model.weights, ...) absolute, for a config file
// in another folder.
void make_paths_absolute(Experiment& experiment);

// The value of each key, as TOML, by its full name. A key with options has its whole table.
std::map<std::string, std::string> key_values(const Experiment& experiment);

// How a key's change is treated when a run resumes from a checkpoint. An unknown key is free.
enum class Change {
  free,      // changes no result: folders, times, what is saved and logged
  reported,  // allowed with a warning: the run no longer continues bit for bit
  refused,   // makes it a different run
};
Change change_of(const std::string& key);

// Values and words as errors, the documentation and to_toml() show them.

// For a duration of the config, which is in seconds.
std::chrono::milliseconds milliseconds(double seconds);

// A TOML basic string with quotes and escapes, always one line.
std::string quoted(const std::string& text);
// A key as TOML writes it: bare if possible.
std::string key_text(const std::string& key);

// True if text holds a control character, which would break a line of the log, a path or a terminal.
bool has_control(const std::string& text);
// True if text is valid UTF-8, which TOML requires.
bool is_utf8(const std::string& text);
// The text, quoted if it would break a line.
std::string one_line(const std::string& text);

}  // namespace ddprun::config
