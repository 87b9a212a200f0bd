#include "base/text.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <sstream>
#include <vector>

namespace ddprun {
namespace {

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST_CASE("a long line is broken between words, if possible after a comma or a bracket") {
  CHECK(wrapped("epoch 1 [10/10] rank 0: time 601 us (3.23 ms) data 3.77 us (50.3 us) loss 2.3631", 50) ==
        "epoch 1 [10/10] rank 0: time 601 us (3.23 ms)\n"
        "  data 3.77 us (50.3 us) loss 2.3631");
  CHECK(wrapped("ddprun: failed: rank 1 has ended with code 1 in step 57", 30) ==
        "ddprun: failed: rank 1 has\n"
        "  ended with code 1 in step 57");
  CHECK(wrapped("/a/path/that/is/longer/than/the/terminal: is missing", 20) ==
        "/a/path/that/is/longer/than/the/terminal:\n"
        "  is missing");
}

TEST_CASE("the rest of a table's row is aligned with its text") {
  CHECK(wrapped("data        synthetic, 240 training samples, 48 test samples", 40) ==
        "data        synthetic, 240 training\n"
        "            samples, 48 test samples");
  CHECK(wrapped("            no GPU on this machine: everything", 40) ==
        "            no GPU on this machine:\n"
        "            everything");
}

TEST_CASE("short lines, lines to copy, lines with control characters and other files than terminals stay as they are") {
  const std::string line = "a line of more than twenty characters, much more";
  CHECK(wrapped(line, 48) == line);
  CHECK(wrapped(line, 0) == line);
  CHECK(wrapped("to resume: " + line, 30) == "to resume: " + line);
  CHECK(wrapped("\x1b[32m" + line, 30) == "\x1b[32m" + line);
  CHECK(wrapped("\x1b[2K\r" + line, 40) == "\x1b[2K\ra line of more than twenty characters,\n  much more");
  CHECK(wrapped_lines("one\ntwo", 20) == "one\ntwo\n");
  CHECK(columns_of(0x7fff) == 0);
}

TEST_CASE("wrapping changes only spaces, and a line is longer than the terminal only for a single word") {
  rc::check([] {
    const auto lengths = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 30)));
    std::string line;
    for (const int length : lengths)
      line += std::string(static_cast<std::size_t>(length), 'a') + (length % 3 == 0 ? ", " : " ");
    line.pop_back();
    const int columns = *rc::gen::inRange(20, 90);
    const std::string text = wrapped(line, columns);
    RC_ASSERT(words_in(text) == words_in(line));
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);) {
      RC_ASSERT(each.size() <= static_cast<std::size_t>(columns) || words_in(each).size() == 1);
    }
  });
}

TEST_CASE("the words of a list are separated by commas, the last two by an and") {
  CHECK(enumerated({}).empty());
  CHECK(enumerated({"a"}) == "a");
  CHECK(enumerated({"a", "b"}) == "a and b");
  CHECK(enumerated({"a", "b", "c"}) == "a, b and c");
}

}  // namespace
}  // namespace ddprun
