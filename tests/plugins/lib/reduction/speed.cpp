// The speed of each table of plugins/lib/reduction: bytes read and written per second, with vectors in the caches.
//   reduction_speed [bytes of a vector]...
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "reduction/tables.hpp"

namespace {

using namespace ddprun::reduction;

// The median of nine rounds, each of which moves at least 200 MB.
template <class Body>
double gigabytes_per_second(double bytes, Body&& body) {
  const int calls = std::max(1, static_cast<int>(2e8 / bytes));
  std::vector<double> rates;
  for (int round = 0; round < 9; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) body();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    rates.push_back(bytes * calls / took.count() / 1e9);
  }
  std::nth_element(rates.begin(), rates.begin() + 4, rates.end());
  return rates[4];
}

struct Dtype {
  const char* name;
  int32_t number;
  std::size_t bytes;
};

void measure(const Table& table, const Dtype& dtype, std::size_t bytes) {
  std::vector<std::vector<uint8_t>> vectors(4, std::vector<uint8_t>(bytes));
  const std::size_t count = bytes / dtype.bytes;
  const Functions& functions = table.of_dtype[dtype.number];
  void* const to[] = {vectors[0].data(), vectors[1].data(), vectors[2].data(), vectors[3].data()};
  const void* const from[] = {to[0], to[1], to[2], to[3]};
  const auto size = static_cast<double>(bytes);
  const double two = gigabytes_per_second(3 * size, [&] { functions.reduce[DDPRUN_SUM](to[0], to[0], to[1], count); });
  const double apart =
      gigabytes_per_second(3 * size, [&] { functions.reduce[DDPRUN_SUM](to[2], to[0], to[1], count); });
  const double both = gigabytes_per_second(4 * size, [&] { functions.reduce_all[DDPRUN_SUM](to, 2, from, 2, count); });
  const double four = gigabytes_per_second(8 * size, [&] { functions.reduce_all[DDPRUN_SUM](to, 4, from, 4, count); });
  std::printf("%-8s %-9s %10zu %10.1f %10.1f %10.1f %10.1f\n", table.name, dtype.name, bytes, two, apart, both, four);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {64 << 10, 16 << 20};
  constexpr Dtype kDtypes[] = {
      {"float32", DDPRUN_FLOAT32, 4}, {"bfloat16", DDPRUN_BFLOAT16, 2}, {"float16", DDPRUN_FLOAT16, 2}};
  std::printf("%-8s %-9s %10s %10s %10s %10s %10s  GB/s\n", "set", "dtype", "bytes", "a += b", "c = a + b", "2 to 2",
              "4 to 4");
  for (const std::size_t size : sizes) {
    for (const Dtype& dtype : kDtypes) {
      for (const Table* table : usable_tables()) measure(*table, dtype, size);
    }
  }
}
