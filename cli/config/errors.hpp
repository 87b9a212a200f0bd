// Collects the errors of one load(), so that all are reported together, in the order of the file.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/config/experiment.hpp"

namespace ddprun::config {

// "comm.algorithm = \"rign\": what"; it follows the place.
std::string error_text(const Place& place, const std::string& key, const std::string& what);

class Errors {
 public:
  // `text` follows the place: "launch.nprocs: unknown key".
  void add(const Place& place, const std::string& text);
  // An error of a key. The key is no longer sound() then.
  void add_key(const Place& place, const std::string& key, const std::string& what);
  // False if the key already has an error: an error that follows from its value would only repeat it.
  bool sound(const std::string& key) const { return !unsound_.contains(key); }
  // Throws Error(usage) with all lines if there are any.
  void raise() const;

 private:
  struct Line {
    std::pair<int64_t, int64_t> order;
    std::string text;
  };
  std::vector<Line> lines_;
  std::set<std::string> unsound_;
};

// The key's place. For a key that is not set: the file, with the default's value.
Place place_of(const Sources& sources, const std::string& key);

}  // namespace ddprun::config
