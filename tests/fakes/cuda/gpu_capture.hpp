// A capture in progress, and the graph that it becomes. All of it under the lock of State.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu_graph.hpp"
#include "gpu_state.hpp"

namespace ddprun::fake_gpu {

class Graph {
 public:
  struct Use {
    std::uintptr_t begin;
    std::size_t bytes;
    bool writes;
    std::string what;
    std::uint64_t block;  // its number
  };
  struct Node {
    std::vector<Use> uses;
    Launch launch;
  };

  std::vector<Node> nodes;                    // in captured order, which is a valid order to run them
  std::vector<std::shared_ptr<void>> memory;  // the graph's own memory that was freed, in or after the capture
};

class Capture {
 public:
  explicit Capture(Stream origin_) : origin(origin_), lanes{{origin_, {}}} {}

  // Invalidates the capture, and throws.
  [[noreturn]] void refuse(CaptureError error);
  void require_valid() const;

  void begin(Stream stream);
  void access(const Block& block, Access now);
  void on_launch(Stream stream, Launch launch);
  void record(Event& event, Stream stream, const std::shared_ptr<Capture>& self) const;
  // `stream`, which may join the capture now, waits for an event of it.
  void join(Stream stream, const Event& event);

  bool owns(const Block& block) const { return !block.graph.expired() && block.graph.lock() == graph; }
  // The block is freed.
  void forget(const Block& block);

  // Restores memory to its content before the capture, and fills the capture's own memory with NaN.
  void put_back();
  bool has_unjoined() const;

  struct Lane {
    Clock clock;
    std::size_t node = 0;  // its last one
  };
  struct Saved {
    std::uint64_t block;
    std::uintptr_t begin;
    std::string bytes;
  };

  const Stream origin;
  const std::thread::id thread = std::this_thread::get_id();
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::map<Stream, Lane> lanes;
  std::map<std::uint64_t, std::vector<Access>> accesses;  // by the block's number
  std::vector<Saved> saved;                               // before the first piece that wrote there
  bool is_spoilt = false;
};

}  // namespace ddprun::fake_gpu
