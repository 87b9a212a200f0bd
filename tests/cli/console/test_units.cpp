#include <doctest/doctest.h>

#include <limits>

#include "cli/console/table.hpp"

using namespace ddprun::console;

TEST_CASE("times have three digits, and change the unit before a fourth") {
  CHECK(human_time(0) == "0 s");
  CHECK(human_time(5.32e-7) == "532 ns");
  CHECK(human_time(9.996e-7) == "1.00 us");
  CHECK(human_time(4.214e-6) == "4.21 us");
  CHECK(human_time(99.96e-6) == "100 us");
  CHECK(human_time(0.0123) == "12.3 ms");
  CHECK(human_time(0.9994) == "999 ms");
  CHECK(human_time(0.9996) == "1.00 s");
  CHECK(human_time(9.996) == "10.0 s");
  CHECK(human_time(59.94) == "59.9 s");
  CHECK(human_time(59.96) == "1 min 00 s");
  CHECK(human_time(125) == "2 min 05 s");
  CHECK(human_time(3599.6) == "1 h 00 min");
  CHECK(human_time(3725) == "1 h 02 min");
  CHECK(human_time(-0.5) == "-500 ms");
}

TEST_CASE("the remaining time is in whole seconds, and empty if it is over or unknown") {
  CHECK(human_time_left(0.2) == "1 s left");
  CHECK(human_time_left(59) == "59 s left");
  CHECK(human_time_left(59.5) == "1 min 00 s left");
  CHECK(human_time_left(3725) == "1 h 02 min left");
  CHECK(human_time_left(0) == "");
  CHECK(human_time_left(-1) == "");
  CHECK(human_time_left(std::numeric_limits<double>::quiet_NaN()) == "");
}

TEST_CASE("a loss has at least four significant digits, also if it is small") {
  CHECK(human_number(0) == "0.0000");
  CHECK(human_number(2.302585) == "2.3026");
  CHECK(human_number(0.1) == "0.1000");
  CHECK(human_number(0.0095) == "0.009500");
  CHECK(human_number(-0.0123456) == "-0.01235");
  CHECK(human_number(0.00001234) == "1.234e-05");
  CHECK(human_number(123456789) == "1.235e+08");
  CHECK(human_number(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("a value that is not a number is a dash") {
  CHECK(human_time(std::numeric_limits<double>::quiet_NaN()) == "-");
  CHECK(human_rate(std::numeric_limits<double>::infinity()) == "-");
}

TEST_CASE("bytes count in powers of 1024") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1536) == "1.50 KiB");
  CHECK(human_bytes(25 << 20) == "25.0 MiB");
  CHECK(human_bytes((int64_t{1} << 30) - 1) == "1.00 GiB");
  CHECK(human_bytes(int64_t{5000} << 40) == "5000 TiB");
}

TEST_CASE("counts have thousands separators") {
  CHECK(human_count(0) == "0");
  CHECK(human_count(999) == "999");
  CHECK(human_count(1000) == "1,000");
  CHECK(human_count(60000) == "60,000");
  CHECK(human_count(1234567) == "1,234,567");
  CHECK(human_count(-1234) == "-1,234");
  CHECK(human_count(-123) == "-123");
}

TEST_CASE("rates are in samples per second, with decimals where they are low") {
  CHECK(human_rate(61234.4) == "61,234 samples/s");
  CHECK(human_rate(12.34) == "12.3 samples/s");
  CHECK(human_rate(99.96) == "100 samples/s");
}

TEST_CASE("a percentage has the decimals that are asked for") {
  CHECK(percent(0.98765, 2) == "98.77 %");
  CHECK(percent(-0.021, 1) == "-2.1 %");
  CHECK(percent(1, 0) == "100 %");
}

TEST_CASE("several things are plural") {
  CHECK(several(0, "step") == "0 steps");
  CHECK(several(1, "step") == "1 step");
  CHECK(several(60000, "step") == "60,000 steps");
}
