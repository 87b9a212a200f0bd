// page_tool FILE: writes the page of some_page.hpp, for browser_test.py.
#include <cstdio>

#include "base/error.hpp"
#include "report/some_page.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    ddprun::report::write_page(argv[1], ddprun::testing::some_page());
  } catch (const ddprun::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
