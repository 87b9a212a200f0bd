// Numbers formatted for people.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun::console {

// Three significant digits: "532 ns", "4.21 us", "12.3 ms", "1.52 s", "2 min 05 s", "1 h 02 min". NaN gives "-".
std::string human_time(double seconds);
// Remaining time in whole seconds: "42 s left", "2 min 05 s left"; "" for NaN and if nothing is left.
std::string human_time_left(double seconds);
// Powers of 1024: "512 B", "1.50 KiB", "25.0 MiB".
std::string human_bytes(int64_t bytes);
// Thousands separated by commas: "60,000".
std::string human_count(int64_t count);
// "1 epoch", "3 epochs", "60000 samples".
std::string several(int64_t count, const std::string& thing);
// A loss or another figure with at least four significant digits: "0.4321", "2.3026", "0.009500", "1.234e-05".
std::string human_number(double value);
// Samples per second: "61,234 samples/s"; below 100 with decimals: "12.3 samples/s".
std::string human_rate(double samples_per_second);
// A share of 1: "12.3 %".
std::string percent(double share, int decimals);
// Powers of 1000, as nccl-tests counts bandwidth: "3.41 MB/s", "12.5 GB/s". NaN gives "-".
std::string human_bandwidth(double bytes_per_second);

}  // namespace ddprun::console
