#include <doctest/doctest.h>

#include <stdexcept>

#include "cli/console/table.hpp"

using namespace ddprun::console;

TEST_CASE("columns are aligned left or right under their titles") {
  Table table({{"name", Align::left}, {"bytes", Align::right}, {"path", Align::left}});
  table.row({"gloo", "1", "/lib/a"});
  table.row({"a-longer-name", "1234567", "/b"});
  CHECK(table.text() ==
        "name             bytes  path\n"
        "gloo                 1  /lib/a\n"
        "a-longer-name  1234567  /b\n");
}

TEST_CASE("a table without titles has no header, and the indent applies to every line") {
  Table table({{"", Align::left}, {"", Align::right}});
  table.row({"loss", "0.5"});
  table.row({"time", "12"});
  CHECK(table.text(2) == "  loss  0.5\n  time   12\n");
}

TEST_CASE("missing cells are empty and leave no spaces at the end") {
  Table table({{"a", Align::left}, {"b", Align::left}});
  table.row({"x"});
  CHECK(table.text() == "a  b\nx\n");
  CHECK_THROWS_AS(table.row({"1", "2", "3"}), std::logic_error);
}

TEST_CASE("widths count characters, not bytes") {
  Table table({{"", Align::left}, {"", Align::left}});
  table.row({"caf\xc3\xa9", "x"});
  table.row({"tea!", "y"});
  CHECK(table.text() == "caf\xc3\xa9  x\ntea!  y\n");
}

TEST_CASE("a table without rows has only its header") {
  CHECK(Table({{"kind", Align::left}}).text() == "kind\n");
}

TEST_CASE("a table that is wider than the terminal breaks texts between words, and figures never") {
  Table findings({{"what"}, {"finding"}});
  findings.row({"memlock", "8.00 MiB"});
  findings.row({"", "-> UCX and NCCL with RDMA, and nothing else, need it"});
  CHECK(findings.text(0, 36) ==
        "what     finding\n"
        "memlock  8.00 MiB\n"
        "         -> UCX and NCCL with RDMA,\n"
        "            and nothing else, need\n"
        "            it\n");
  CHECK(findings.text(0, 200) == findings.text());

  Table figures({{"variant"}, {"total time", Align::right}, {"average step", Align::right}, {"busbw", Align::right}});
  figures.row({"ring", "12.5 s", "12.5 ms", "1.25 GB/s"});
  CHECK(figures.text(2, 36) == figures.text(2));
}
