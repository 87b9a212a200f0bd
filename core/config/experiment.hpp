// config: TOML to plain structs, and back. The only room that sees a toml type.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ddprun::config {

// Free options of a plugin or data set: key -> the value's text (strings without quotes, "true", "3", "0.5").
using Options = std::map<std::string, std::string>;

// One experiment, as docs/config.md describes it key by key. The defaults are the members' initial values. The names of the
// members are the names of the keys.
struct Experiment {
  int64_t schema_version = 1;

  struct {
    std::string name;  // "": the file's stem
    int64_t seed = 42;
    std::string output = "runs";
  } experiment;

  struct {
    int64_t nproc = 1;  // 0: auto, one rank per core (or per device)
    int64_t threads = 0;  // 0: cores / nproc
    std::string device = "cpu";
    double timeout = 30;  // seconds
    int64_t max_restarts = 0;
    int64_t nnodes = 1;
    int64_t node_rank = 0;
    std::string master_addr;
    int64_t master_port = 0;
    std::string interface;
    std::string log_dir;  // "": the run folder
  } launch;

  struct {
    std::string backend = "gloo";  // a name or a path
    std::string algorithm = "auto";
    double timeout = 30;  // seconds
    bool deterministic = false;
    std::string check = "fingerprint";
    bool stage_through_host = false;
    Options options;
  } comm;

  struct {
    std::string kind = "single";
    int64_t devices = 2;
    double bucket_mb = 25;
    double first_bucket_mb = 1;
    std::string unused = "error";
    bool sync_buffers = true;
    int64_t hash_every = 0;
    std::string compression = "none";
  } strategy;

  struct {
    std::string name;  // required; a name or a path
    Options options;
  } model;

  struct {
    std::string name;  // required
    std::string root;
    int64_t batch_size = 64;
    std::string batch_per = "global";
    bool shuffle = true;
    int64_t workers = 2;
    int64_t prefetch = 2;
    std::string last = "pad";
    std::string sampler = "auto";
    Options options;
  } data;

  struct {
    std::string name = "sgd";
    double lr = 0.01;
    std::string scale_lr = "none";
    double momentum = 0;
    bool nesterov = false;
    double weight_decay = 0;
    std::vector<double> betas = {0.9, 0.999};
    double eps = 1e-8;
  } optimizer;

  struct {
    std::optional<int64_t> epochs;  // exactly one of epochs and steps; neither: 1 epoch
    std::optional<int64_t> steps;
    bool evaluate = true;
    std::string amp = "off";
    int64_t accumulate = 1;
    double clip_norm = 0;
    std::string schedule = "none";
  } train;

  struct {
    int64_t every = 1;  // epochs; 0: only at the end
    int64_t keep = 2;
    std::string best;
    std::string resume;
  } checkpoint;

  struct {
    int64_t every = 50;  // steps
    std::string level = "info";
    std::vector<int64_t> trace_steps;
  } log;
};

// Where each key's value came from, so that a fault found later (by a plugin, a data set) can still be pointed at.
class Sources {
 public:
  // "exp.toml:12:9", "--set comm.algorithm=rign", or "exp.toml" for a key that is not written down.
  std::string where(const std::string& key) const;
  // True when the file or --set gives the key.
  bool given(const std::string& key) const { return places_.contains(key); }

  std::string file;
  std::map<std::string, std::string> places_;
};

struct Loaded {
  Experiment experiment;
  Sources sources;
};

// Reads and checks a file, after applying overrides ("comm.algorithm=ring"; the value in TOML syntax, or a bare word taken
// as a string). Throws Error(usage) with one line per fault, `file:line:column: key: what; what to do`, all semantic faults
// at once; toml++ stops at the first fault of syntax. Keys of the scheme that this version does not build yet are refused
// ("not in this version") unless they hold their default.
Loaded load(const std::string& path, const std::vector<std::string>& overrides);

// One line in the form of load's for a fault found outside this room: `where: key = value: what`.
std::string fault(const Sources& sources, const std::string& key, const std::string& what);

// The nearest of `names` to `word` when it is near enough to be a slip of the hand: ` (did you mean "ring"?)`, else "".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names);

// The whole experiment as TOML, every key written; load() of it gives the same experiment.
std::string to_toml(const Experiment& experiment);

// docs/config.md, made from the same table of keys that load() reads by.
std::string to_markdown();

}  // namespace ddprun::config
