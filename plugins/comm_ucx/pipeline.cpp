#include "pipeline.hpp"

#include <algorithm>

#include "ddprun/topology.hpp"

namespace ddprun::ucx_backend {
namespace {

constexpr std::size_t kSegmentBytes = 512 * 1024;
constexpr std::size_t kWindow = 4;  // segments that are expected ahead of the one that is being reduced

}  // namespace

struct Pipeline::Cut {
  std::size_t element;
  std::size_t segments;
  reduction::Reduce reduce;
  int32_t dtype;
  bool average;

  // Of a vector of `count` elements; in elements.
  topology::Block segment(uint64_t count, std::size_t index) const {
    return topology::block(count, static_cast<int>(segments), static_cast<int>(index));
  }
};

Pipeline::Pipeline(Messages& messages, int ranks)
    : messages_(messages),
      ranks_(ranks),
      slots_(std::make_unique_for_overwrite<std::byte[]>(kWindow * kSegmentBytes)),
      arrivals_(kWindow) {}

std::byte* Pipeline::slot(std::size_t item) noexcept {
  return slots_.get() + item % kWindow * kSegmentBytes;
}

void Pipeline::expect(std::span<const Step> steps, const Cut& cut, std::size_t item) {
  const std::size_t number = item / cut.segments;
  if (number >= steps.size() || steps[number].from == Step::kNobody) return;
  const Step& step = steps[number];
  const auto [offset, length] = cut.segment(step.in_count, item % cut.segments);
  std::byte* const to = step.mine != nullptr ? slot(item) : step.in + offset * cut.element;
  arrivals_[item % kWindow] = messages_.receive(step.from, step.label, to, length * cut.element);
}

// This step, and those behind it that wait for nothing more.
void Pipeline::send_from(std::span<const Step> steps, const Cut& cut, std::size_t number, std::size_t segment) {
  for (; number < steps.size(); ++number) {
    const Step& step = steps[number];
    if (step.to != Step::kNobody) {
      const auto [offset, length] = cut.segment(step.out_count, segment);
      sends_[number * cut.segments + segment] =
          messages_.send(step.to, step.label, step.out + offset * cut.element, length * cut.element, step.confirmed);
    }
    if (step.from != Step::kNobody) return;
  }
}

void Pipeline::take(const Step& step, const Cut& cut, std::size_t item, std::size_t segment) {
  messages_.wait(arrivals_[item % kWindow]);
  if (step.mine == nullptr) return;
  if (step.exchanges) messages_.wait(sends_[item]);
  const auto [offset, length] = cut.segment(step.in_count, segment);
  std::byte* const to = step.in + offset * cut.element;
  const std::byte* const mine = step.mine + offset * cut.element;
  const std::byte* const arrived = slot(item);
  cut.reduce(to, step.mine_first ? mine : arrived, step.mine_first ? arrived : mine, length);
  if (step.completes && cut.average) reduction::divide(to, cut.dtype, length, ranks_);
}

void Pipeline::run(std::span<const Step> steps, int32_t dtype, int32_t op, uint64_t longest) {
  const std::size_t element = size_of(dtype), most = kSegmentBytes / element;
  const Cut cut = {element, std::max<std::size_t>(1, (longest + most - 1) / most),
                   reduction::reduce_function(dtype, op), dtype, op == DDPRUN_AVG};
  sends_.assign(steps.size() * cut.segments, {});

  for (std::size_t item = 0; item < kWindow; ++item) expect(steps, cut, item);
  std::size_t begun = 0;  // segments of the first step that have been sent
  for (std::size_t number = 0; number < steps.size(); ++number) {
    for (std::size_t segment = 0; segment < cut.segments; ++segment) {
      if (number == 0) {
        for (; begun < std::min(cut.segments, segment + kWindow); ++begun) send_from(steps, cut, 0, begun);
      }
      const std::size_t item = number * cut.segments + segment;
      if (steps[number].from != Step::kNobody) {
        take(steps[number], cut, item, segment);
        send_from(steps, cut, number + 1, segment);
      }
      expect(steps, cut, item + kWindow);
    }
  }
  for (auto& sent : sends_) messages_.wait(sent);
}

}  // namespace ddprun::ucx_backend
