#include "pipeline.hpp"

#include <algorithm>

namespace ddprun::ucx_backend {
namespace {

constexpr std::size_t kWindow = MemorySpace::kWindow;

}  // namespace

struct Pipeline::Cut {
  MemorySpace& space;
  std::size_t element;
  std::size_t segments;
  DType dtype;
  Op op;
  std::size_t window = kWindow;  // segments that are expected at a time

  // In elements, of a vector of `count` elements.
  topology::Block segment(uint64_t count, const topology::Share& share, std::size_t index) const {
    const topology::Block whole = topology::block(count, static_cast<int>(segments), static_cast<int>(index));
    const topology::Block part = share.of(whole.length);
    return {whole.offset + part.offset, part.length};
  }
  topology::Block in(const Step& step, std::size_t index) const { return segment(step.in_count, step.in_share, index); }
  Message arriving(const Step& step, std::size_t index) const {
    return {step.from, step.label, in(step, index).length * element, step.confirmed};
  }
  std::byte* slot(std::size_t item) const noexcept { return space.slots() + item % kWindow * space.segment_bytes(); }
};

// Whether a segment is used as it arrives.
bool Pipeline::is_immediate(const Step& step, const Cut& cut, std::size_t segment) const {
  return (step.mine == nullptr || step.at_once) && messages_.is_active(cut.arriving(step, segment));
}

// Where each segment is used as it arrives, all segments of two steps are expected: a peer sends segment s of the next
// step once it has segment s of this one, so it may be that far ahead.
std::size_t Pipeline::window(std::span<const Step> steps, const Cut& cut) const {
  const bool has_others = std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    return step.from != Step::kNoRank && !(is_immediate(step, cut, 0) && is_immediate(step, cut, cut.segments - 1));
  });
  return has_others ? kWindow : 2 * cut.segments;
}

void Pipeline::expect(std::span<const Step> steps, const Cut& cut, std::size_t item) {
  const std::size_t number = item / cut.segments;
  if (number >= steps.size() || steps[number].from == Step::kNoRank) return;
  const Step& step = steps[number];
  const std::size_t segment = item % cut.segments;
  const Message message = cut.arriving(step, segment);
  Transfer& arrival = arrivals_[item % cut.window];
  if (step.mine != nullptr && is_immediate(step, cut, segment)) {
    arrival = messages_.receive(
        message, nullptr, [this, &step, &cut, segment](const std::byte* arrived) { add(step, cut, segment, arrived); });
    return;
  }
  std::byte* const in = step.in + cut.in(step, segment).offset * cut.element;
  arrival = messages_.receive(message, step.mine != nullptr ? cut.slot(item) : in);
}

// Sends the segment in this step, and in those after it up to the first one that receives.
void Pipeline::send_from(std::span<const Step> steps, const Cut& cut, std::size_t number, std::size_t segment) {
  for (; number < steps.size(); ++number) {
    const Step& step = steps[number];
    if (step.to != Step::kNoRank) {
      const auto [offset, length] = cut.segment(step.out_count, step.out_share, segment);
      sends_[number * cut.segments + segment] =
          messages_.send({step.to, step.label, length * cut.element, step.confirmed}, step.out + offset * cut.element);
    }
    if (step.from != Step::kNoRank) return;
  }
}

void Pipeline::take(const Step& step, const Cut& cut, std::size_t item, std::size_t segment) {
  messages_.wait(arrivals_[item % cut.window]);
  if (step.mine == nullptr || is_immediate(step, cut, segment)) return;
  if (step.exchanges) messages_.wait(sends_[item]);
  add(step, cut, segment, cut.slot(item));
}

void Pipeline::add(const Step& step, const Cut& cut, std::size_t segment, const std::byte* arrived) {
  const auto [offset, length] = cut.in(step, segment);
  std::byte* const to = step.in + offset * cut.element;
  const std::byte* const mine = step.mine + offset * cut.element;
  const bool divides = step.completes && cut.op == Op::avg;
  cut.space.reduce({cut.dtype, cut.op, divides ? ranks_ : 1}, to, step.mine_first ? mine : arrived,
                   step.mine_first ? arrived : mine, length);
}

void Pipeline::run(std::span<const Step> steps, MemorySpace& space, DType dtype, Op op, uint64_t longest) {
  const std::size_t element = size_of(dtype), most = space.segment_bytes() / element;
  Cut cut = {space, element, std::max<std::size_t>(1, (longest + most - 1) / most), dtype, op};
  cut.window = window(steps, cut);
  arrivals_.assign(cut.window, {});
  sends_.assign(steps.size() * cut.segments, {});

  try {
    run(steps, cut);
  } catch (...) {
    messages_.forget();  // what they would call is gone
    throw;
  }
}

void Pipeline::run(std::span<const Step> steps, const Cut& cut) {
  for (std::size_t item = 0; item < cut.window; ++item) expect(steps, cut, item);
  std::size_t begun = 0;  // segments of the first step that have been sent
  for (std::size_t number = 0; number < steps.size(); ++number) {
    for (std::size_t segment = 0; segment < cut.segments; ++segment) {
      if (number == 0) {
        for (; begun < std::min(cut.segments, segment + kWindow); ++begun) send_from(steps, cut, 0, begun);
      }
      const std::size_t item = number * cut.segments + segment;
      if (steps[number].from != Step::kNoRank) {
        take(steps[number], cut, item, segment);
        send_from(steps, cut, number + 1, segment);
      }
      expect(steps, cut, item + cut.window);
    }
  }
  for (auto& sent : sends_) messages_.wait(sent);
}

}  // namespace ddprun::ucx_backend
