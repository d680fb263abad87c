#include "packs/speech/kernels/greedy.h"

#include <algorithm>
#include <string>

#include "trireme/error.h"

namespace trireme::speech {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kInvalidArgument, "greedy decoding: " + what);
}

void check_lengths(std::span<const std::int32_t> num_frames) {
  const auto negative = std::ranges::find_if(num_frames, [](auto frames) { return frames < 0; });
  if (negative == num_frames.end()) return;
  refuse("sample " + std::to_string(negative - num_frames.begin()) + " has " +
         std::to_string(*negative) + " frames");
}

/// Where each sample of a batch is. One step is the same code for all: what differs is in
/// predicates.
class Batch {
 public:
  Batch(const GreedyOptions& options, std::span<const std::int32_t> num_frames)
      : options_(options),
        num_frames_(num_frames),
        frames_(num_frames.size()),
        symbols_here_(num_frames.size()),
        last_labels_(num_frames.size(), options.blank),
        has_new_label_(num_frames.size()),
        is_done_(num_frames.size()),
        labels_(num_frames.size()) {
    for (std::size_t b = 0; b < num_frames.size(); ++b) is_done_[b] = num_frames[b] == 0;
  }

  bool has_ended() const { return std::ranges::count(is_done_, 0) == 0; }
  GreedyRound round() const { return {frames_, last_labels_, has_new_label_, is_done_}; }
  std::vector<std::vector<std::int32_t>> take_labels() { return std::move(labels_); }

  void step(std::span<const std::int32_t> best) {
    for (std::size_t b = 0; b < best.size(); ++b) {
      const bool is_symbol = !is_done_[b] && best[b] != options_.blank;
      has_new_label_[b] = is_symbol;
      if (is_symbol) emit(b, best[b]);
      const bool moves_on =
          !is_done_[b] && (!is_symbol || symbols_here_[b] == options_.max_symbols_per_frame);
      symbols_here_[b] = moves_on ? 0 : symbols_here_[b];
      const bool is_last = moves_on && frames_[b] + 1 == num_frames_[b];
      frames_[b] += moves_on && !is_last;
      is_done_[b] |= is_last || std::ssize(labels_[b]) == options_.max_symbols;
    }
  }

 private:
  void emit(std::size_t b, std::int32_t label) {
    if (label < 0) {
      refuse("the model's best label for sample " + std::to_string(b) + " is " +
             std::to_string(label));
    }
    labels_[b].push_back(label);
    last_labels_[b] = label;
    ++symbols_here_[b];
  }

  const GreedyOptions& options_;
  const std::span<const std::int32_t> num_frames_;
  std::vector<std::int32_t> frames_, symbols_here_, last_labels_;
  std::vector<std::uint8_t> has_new_label_, is_done_;
  std::vector<std::vector<std::int32_t>> labels_;
};

}  // namespace

void internal::check_limits(const GreedyOptions& options) {
  if (options.max_symbols_per_frame >= 1 && options.max_symbols >= 1) return;
  refuse("expected limits of 1 symbol or more, got " +
         std::to_string(options.max_symbols_per_frame) + " a frame and " +
         std::to_string(options.max_symbols) + " a sample");
}

std::vector<std::vector<std::int32_t>> decode_greedily(const GreedyOptions& options,
                                                       std::span<const std::int32_t> num_frames,
                                                       GreedyModel& model) {
  internal::check_limits(options);
  check_lengths(num_frames);
  Batch batch(options, num_frames);
  std::vector<std::int32_t> best(num_frames.size(), options.blank);
  while (!batch.has_ended()) {
    model.best_labels(batch.round(), best);
    batch.step(best);
  }
  return batch.take_labels();
}

}  // namespace trireme::speech
