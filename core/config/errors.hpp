// Collects the errors of one load(), so that all are told at once, in the order of the file.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/experiment.hpp"

namespace ddprun::config {

// "comm.algorithm = \"rign\": what", after the place.
std::string error_text(const Place& place, const std::string& key, const std::string& what);

class Errors {
 public:
  // `text` follows the place: "launch.nprocs: unknown key".
  void add(const Place& place, const std::string& text);
  // A fault of a key; remembers the key as unsound.
  void add_key(const Place& place, const std::string& key, const std::string& what);
  // False when the key has a fault already: what follows from its value would be an echo.
  bool sound(const std::string& key) const { return !unsound_.contains(key); }
  // Throws Error(usage) with all lines when there are any.
  void raise() const;

 private:
  struct Line {
    std::pair<int64_t, int64_t> order;
    std::string text;
  };
  std::vector<Line> lines_;
  std::set<std::string> unsound_;
};

// The key's place, or for a key that is not written down the file as a whole, with the default's value.
Place place_of(const Sources& sources, const std::string& key);

}  // namespace ddprun::config
