// The minimum cost of an allreduce on one host: no plugin, no messages, no error handling.
//
//     limits shared|staged RANKS SAMPLES WARMUP SIZE...
//
// shared: the vectors are in shared memory. Each rank adds its part of all vectors, and writes the sum to all.
//
// staged: the vectors are private. Each rank copies its vector in chunks to a shared slot, where the others read it.
//
// Both forms send small vectors through slots, which needs only one barrier.
#include <string>

#include "measure.hpp"
#include "processes.hpp"

namespace {

using peers::SpinBarrier;

constexpr std::size_t kSmall = 256;                         // floats: up to this size every rank adds the whole vector
constexpr std::size_t kTile = 4096;                         // floats that fit into the L1 cache
constexpr std::size_t kChunk = 512 * 1024 / sizeof(float);  // of the staged form

void add(float* __restrict to, const float* __restrict from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

void copy(float* to, const float* from, std::size_t count) {
  std::memcpy(to, from, count * sizeof(float));
}

struct Part {
  std::size_t begin, length;
};

Part part_of(std::size_t count, int rank, int ranks) {
  const auto r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(ranks);
  return {count * r / n, count * (r + 1) / n - count * r / n};
}

// The shared memory of all ranks. Construct it before forking them.
struct Host {
  Host(int count, std::size_t floats, std::size_t samples) : ranks(count), barrier(count), table(count, samples + 1) {
    for (int rank = 0; rank < ranks; ++rank) {
      vectors.push_back(static_cast<float*>(peers::shared_memory(floats * sizeof(float))));
      small_slots.push_back(static_cast<float*>(peers::shared_memory(2 * kSmall * sizeof(float))));
    }
  }

  const int ranks;
  SpinBarrier barrier;
  peers::SharedTable table;
  std::vector<float*> vectors;      // of each rank: its buffer (shared), or its two slots (staged)
  std::vector<float*> small_slots;  // of each rank: two
};

class Rank {
 public:
  Rank(int own, Host& host) : rank(own), size(host.ranks), host_(host) {}

  const int rank, size;
  void prepare(float*, std::size_t) {}
  void barrier() { host_.barrier.wait(rank); }
  std::vector<int64_t> gather(const std::vector<int64_t>& mine) { return host_.table.gather(rank, mine); }

 protected:
  float* vector_of(int peer) const { return host_.vectors[static_cast<std::size_t>(peer)]; }

  // Two slots alternate: between two writes to a slot, its readers have passed a barrier.
  void add_small(float* data, std::size_t count) {
    copy(small_slot(rank), data, count);
    barrier();
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) add(data, small_slot(peer), count);
    }
    turn_ = 1 - turn_;
  }

 private:
  float* small_slot(int peer) const { return host_.small_slots[static_cast<std::size_t>(peer)] + turn_ * kSmall; }

  Host& host_;
  std::size_t turn_ = 0;
};

class Shared : public Rank {
 public:
  using Rank::Rank;

  float* allocate(std::size_t) { return vector_of(rank); }

  void allreduce(float* data, std::size_t count) {
    if (count <= kSmall) return add_small(data, count);
    barrier();
    const Part mine = part_of(count, rank, size);
    if (size == 2) {
      add_both(vector_of(0) + mine.begin, vector_of(1) + mine.begin, mine.length);
    } else {
      add_all(mine);
    }
    barrier();
  }

 private:
  static void add_both(float* __restrict a, float* __restrict b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) a[i] = b[i] = a[i] + b[i];
  }

  void add_all(Part mine) {
    for (std::size_t done = 0; done < mine.length; done += kTile) {
      const std::size_t at = mine.begin + done, length = std::min(kTile, mine.length - done);
      for (int peer = 1; peer < size; ++peer) add(vector_of(0) + at, vector_of(peer) + at, length);
      for (int peer = 1; peer < size; ++peer) copy(vector_of(peer) + at, vector_of(0) + at, length);
    }
  }
};

// The slots alternate from chunk to chunk, as above.
class Staged : public Rank {
 public:
  using Rank::Rank;

  float* allocate(std::size_t bytes) { return peers::page_aligned(bytes); }

  void allreduce(float* data, std::size_t count) {
    if (count <= kSmall) return add_small(data, count);
    for (std::size_t at = 0; at < count; at += kChunk) {
      const std::size_t length = std::min(kChunk, count - at);
      copy(slot(rank), data + at, length);
      barrier();
      if (size == 2) {
        add(data + at, slot(1 - rank), length);
      } else {
        add_parts(data + at, length);
      }
      turn_ = 1 - turn_;
    }
  }

 private:
  float* slot(int peer) const { return vector_of(peer) + turn_ * kChunk; }

  void add_parts(float* chunk, std::size_t length) {
    const Part mine = part_of(length, rank, size);
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) add(slot(rank) + mine.begin, slot(peer) + mine.begin, mine.length);
    }
    barrier();
    for (int peer = 0; peer < size; ++peer) {
      const Part part = part_of(length, peer, size);
      copy(chunk + part.begin, slot(peer) + part.begin, part.length);
    }
  }

  std::size_t turn_ = 0;
};

template <class Form>
int measure(int ranks, std::size_t floats, const peers::Options& options) {
  Host host(ranks, floats, static_cast<std::size_t>(options.samples));
  return peers::run_ranks(ranks, [&](int rank) {
    Form group(rank, host);
    peers::Measurement(group, options).run("");
  });
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string form = argc > 2 ? argv[1] : "";
  if (form != "shared" && form != "staged") throw std::invalid_argument("expected shared or staged, and RANKS");
  const int ranks = std::stoi(argv[2]);
  const peers::Options options = peers::parse(argc, argv, 3);
  if (form == "shared") return measure<Shared>(ranks, options.largest() / sizeof(float), options);
  return measure<Staged>(ranks, 2 * kChunk, options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "limits: %s\n", error.what());
  return 2;
}
