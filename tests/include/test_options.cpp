#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <string>

#include "ddprun/plugin/options.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

constexpr ddprun_option_spec kOptions[] = {
    text_option("peer", nullptr, "any text"),
    choice_option("mode", "small", "small|large", "one of two"),
    integer_option("port", "4000", "1024", "65535", "a whole number"),
    real_option("rate", "0.5", "0", nullptr, "a number"),
    flag_option("quiet", "true", "true or false"),
    duration_option("linger", "250ms", nullptr, "1m", "a time"),
    size_option("chunk", "64KiB", "1KiB", "1GiB", "a number of bytes"),
    list_of(real_option("scales", "1, 2", "0", "10", "numbers")),
    list_of(below_most(real_option("betas", nullptr, "0", "1", "two numbers")), 2),
    list_of(text_option("files", nullptr, "texts")),
    integer_option("seed", nullptr, nullptr, nullptr, "no default, no range"),
    name_option("label", "none", "a text that is not empty"),
    part_option("held_out", "0.1", "0", "1000", "a part of the samples"),
    or_word(integer_option("threads", "auto", "1", "8", "a number, or a word"), "auto"),
    above_least(real_option("step", nullptr, "0", nullptr, "a number above 0")),
};

std::string error_of(const std::string& name, const std::string& value) {
  try {
    Options("plugin \"x\"", kOptions, {{name, value}});
  } catch (const InvalidOption& error) {
    return error.name() + ": " + error.what();
  }
  return "right";
}

}  // namespace

TEST_CASE("durations have a unit, and are not negative") {
  CHECK(parse_duration("30s") == 30s);
  CHECK(parse_duration("250ms") == 250ms);
  CHECK(parse_duration("1.5h") == 90min);
  CHECK(parse_duration("2m") == 2min);
  CHECK(parse_duration("7us") == 7us);
  CHECK(parse_duration("0ns") == 0ns);
  for (const char* wrong : {"", "30", "s", "-1s", "1 s", "30S", "nans", "1e3s", "999999999h", "1s2ms", "."}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_duration(wrong).has_value());
  }
}

TEST_CASE("sizes are whole numbers of bytes or of powers of 1024") {
  CHECK(parse_size("0") == 0);
  CHECK(parse_size("4096") == 4096);
  CHECK(parse_size("12B") == 12);
  CHECK(parse_size("64KiB") == 65'536);
  CHECK(parse_size("3MiB") == 3 << 20);
  CHECK(parse_size("2GiB") == uint64_t{2} << 30);
  CHECK(parse_size("1TiB") == uint64_t{1} << 40);
  CHECK(parse_size("18446744073709551615") == std::numeric_limits<uint64_t>::max());
  for (const char* wrong :
       {"", "KiB", "-1", "1.5KiB", "64 KiB", "64KB", "64kib", "18446744073709551616", "16777216TiB"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_size(wrong).has_value());
  }
}

TEST_CASE("numbers and flags take the whole text, and no number is infinite") {
  CHECK(parse_integer("-64") == -64);
  CHECK(parse_real("-1e-3") == -1e-3);
  CHECK(parse_flag("true") == true);
  CHECK(parse_flag("false") == false);
  for (const char* wrong : {"", " 1", "1 ", "1x", "inf", "nan", "true", "99999999999999999999999e999"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_integer(wrong).has_value());
    CHECK_FALSE(parse_real(wrong).has_value());
  }
  for (const char* wrong : {"", "1", "yes", "True"}) CHECK_FALSE(parse_flag(wrong).has_value());
}

TEST_CASE("an option that is not given has its declared default, or else the reader's") {
  const Options options("plugin \"x\"", kOptions, {});
  CHECK(options.text("peer") == "");
  CHECK(options.text("peer", "none") == "none");
  CHECK(options.text("mode") == "small");
  CHECK(options.integer("port") == 4000);
  CHECK(options.real("rate") == 0.5);
  CHECK(options.flag("quiet"));
  CHECK(options.duration("linger") == 250ms);
  CHECK(options.size("chunk") == 65'536);
  CHECK(options.reals("scales") == std::vector<double>{1, 2});
  CHECK(options.texts("files").empty());
  CHECK(options.integer("seed", 7) == 7);
  CHECK(options.text("label") == "none");
  CHECK(options.real("held_out") == 0.1);
  CHECK(options.integer("threads", 7) == 7);  // "auto"
  CHECK_FALSE(options.given("port"));
}

TEST_CASE("an option that is given has that value") {
  const Options options("plugin \"x\"", kOptions,
                        {{"peer", "a"},
                         {"mode", "large"},
                         {"port", "1024"},
                         {"rate", "2"},
                         {"quiet", "false"},
                         {"linger", "1m"},
                         {"chunk", "1GiB"},
                         {"scales", "3, 4"},
                         {"files", "a , b"},
                         {"seed", "-1"},
                         {"held_out", "500"},
                         {"threads", "3"}});
  CHECK(options.given("port"));
  CHECK(options.text("peer") == "a");
  CHECK(options.text("mode") == "large");
  CHECK(options.integer("port") == 1024);
  CHECK(options.real("rate") == 2);
  CHECK_FALSE(options.flag("quiet"));
  CHECK(options.duration("linger") == 1min);
  CHECK(options.size("chunk") == uint64_t{1} << 30);
  CHECK(options.reals("scales") == std::vector<double>{3, 4});
  CHECK(options.texts("files") == std::vector<std::string>{"a", "b"});
  CHECK(options.integer("seed", 7) == -1);
  CHECK(options.real("held_out") == 500);
  CHECK(options.integer("threads", 7) == 3);
}

TEST_CASE("what the declaration does not allow is refused, with what is expected") {
  CHECK(error_of("prot", "1") ==
        "prot: plugin \"x\" has no such option; expected \"peer\", \"mode\", \"port\", \"rate\", \"quiet\", "
        "\"linger\", \"chunk\", \"scales\", \"betas\", \"files\", \"seed\", \"label\", \"held_out\", \"threads\" or "
        "\"step\" (did you mean \"port\"?)");
  CHECK(error_of("mode", "smal") == "mode: expected \"small\" or \"large\" (did you mean \"small\"?)");
  for (const char* wrong : {"", "1023", "65536", "4e3"}) {
    CHECK(error_of("port", wrong) == "port: expected an integer from 1024 to 65535");
  }
  CHECK(error_of("rate", "-1") == "rate: expected a number of at least 0");
  CHECK(error_of("quiet", "1") == "quiet: expected true or false");
  CHECK(error_of("linger", "61s") == "linger: expected a duration of at most 1m, such as \"30s\"");
  CHECK(error_of("chunk", "1023") == "chunk: expected a size from 1KiB to 1GiB, such as \"64KiB\"");
  CHECK(error_of("scales", "1, 11") == "scales: expected a list of numbers from 0 to 10");
  CHECK(error_of("scales", "1,,2") == "scales: expected one value, or several with commas between them");
  CHECK(error_of("files", "") == "files: expected one value, or several with commas between them");
  CHECK(error_of("seed", "x") == "seed: expected an integer");
  for (const char* wrong : {"0.9", "0.9, 1", "0.9, 0.99, 0.5"}) {
    CHECK(error_of("betas", wrong) == "betas: expected a list of 2 numbers from 0 to below 1");
  }
  CHECK(error_of("label", "") == "label: expected a string of at least one character");
  for (const char* wrong : {"1.0", "0.0", "1.5", "-1", "1001", "x"}) {
    CHECK(error_of("held_out", wrong) ==
          "held_out: expected a fraction above 0 and below 1, or an integer from 0 to 1000");
  }
  CHECK(error_of("threads", "aut") == "threads: expected an integer from 1 to 8 or \"auto\" (did you mean \"auto\"?)");
  CHECK(error_of("threads", "9") == "threads: expected an integer from 1 to 8 or \"auto\"");
  CHECK(error_of("step", "0") == "step: expected a number above 0");
  CHECK(error_of("betas", "0, 0.999") == "right");
  CHECK(error_of("threads", "auto") == "right");
  CHECK(error_of("port", "65535") == "right");
  CHECK(option_errors("plugin \"x\"", kNoOptions, {{"a", "1"}}).at(0).reason ==
        "plugin \"x\" has no options; remove the key");
  CHECK(option_errors("plugin \"x\"", kOptions, {{"port", "0"}, {"rate", "x"}, {"peer", ""}}).size() == 2);
}

TEST_CASE("what is expected names the limits, and which of them are not allowed") {
  const auto number = [](const char* least, const char* most) {
    return real_option("x", nullptr, least, most, "a number");
  };
  CHECK(expectation(above_least(number("0", "1"))) == "a number above 0 and at most 1");
  CHECK(expectation(above_least(below_most(number("0", "1")))) == "a number above 0 and below 1");
  CHECK(expectation(below_most(number(nullptr, "1"))) == "a number below 1");
  CHECK(expectation(number(nullptr, "1")) == "a number of at most 1");
  CHECK(value_error(above_least(below_most(number("0", "1"))), "1") != "");
  CHECK(expectation(list_of(choice_option("x", nullptr, "a|b", "words"))) == "a list of \"a\" or \"b\"");
  CHECK(expectation(list_of(name_option("x", nullptr, "texts"))) == "a list of strings");
}

TEST_CASE("reading an option with another type than declared is an error of the plugin") {
  const Options options("plugin \"x\"", kOptions, {});
  CHECK_THROWS_AS(options.integer("rate"), std::logic_error);
  CHECK_THROWS_AS(options.reals("rate"), std::logic_error);
  CHECK_THROWS_AS(options.real("scales"), std::logic_error);
  CHECK_THROWS_AS(options.text("nothing"), std::logic_error);
}
