#include "packs/speech/data/utterance_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "packs/speech/data/resample.h"
#include "trireme/base/json.h"
#include "trireme/base/random.h"
#include "trireme/base/sha256.h"
#include "trireme/data/read_parts.h"
#include "trireme/error.h"

namespace trireme::speech {
namespace {

/// The transforms by number, each with a stream of its own: one more changes no other.
enum class UtteranceTransform : std::uint8_t { kMasks };

[[noreturn]] void refuse_utterances(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "utterances: " + problem);
}

const UtteranceOptions& checked(const UtteranceOptions& options) {
  constexpr std::int64_t kMostStack = 64;
  constexpr double kMostSeconds = 3600;
  constexpr int kMostLengths = 64;
  const auto [stack, subsample] = options.stacking;
  if (stack < 1 || stack > kMostStack || subsample < 1 || subsample > kMostStack) {
    refuse_utterances("stack and subsample are from 1 to 64; got " + std::to_string(stack) +
                      " and " + std::to_string(subsample));
  }
  if (!(options.max_seconds > 0 && options.max_seconds <= kMostSeconds)) {
    refuse_utterances("max_seconds is above 0, up to 3600; got " +
                      std::to_string(options.max_seconds));
  }
  if (options.num_lengths < 1 || options.num_lengths > kMostLengths) {
    refuse_utterances("num_lengths is from 1 to 64; got " + std::to_string(options.num_lengths));
  }
  if (options.masks) check(*options.masks);
  return options;
}

template <typename T>
void copy_to(std::span<std::byte> to, std::span<const T> values) {
  if (!values.empty()) std::memcpy(to.data(), values.data(), values.size_bytes());
}

void copy_number(std::span<std::byte> to, std::int64_t number) {
  const auto narrow = static_cast<std::int32_t>(number);
  std::memcpy(to.data(), &narrow, sizeof narrow);
}

}  // namespace

UtteranceSource::UtteranceSource(Utterances utterances, const TextEncoder& encoder,
                                 const UtteranceOptions& options)
    : utterances_(std::move(utterances)),
      encoder_(encoder.identity),
      options_(checked(options)),
      log_mel_(options.features) {
  for (std::int64_t i = 0; i < utterances_.size(); ++i) {
    try {
      keep(i, encoder);
    } catch (const Error& error) {
      throw Error(error.kind(), utterances_.name(i) + ": " + error.message());
    }
  }
  choose_lengths();
  const std::int64_t frames = padded_.back().at("frames"), tokens = padded_.back().at("tokens");
  const std::int64_t width = options_.stacking.stack * options_.features.n_mels;
  fields_ = {{"features", Dtype::kF32, {frames, width}, {{0, "frames"}}},
             {"num_frames", Dtype::kI32, {}},
             {"tokens", Dtype::kI32, {tokens}, {{0, "tokens"}}},
             {"num_tokens", Dtype::kI32, {}}};
}

std::int64_t UtteranceSource::resampled(const AudioInfo& info) const {
  return resampled_length(info.num_frames,
                          {.from = static_cast<double>(info.sample_rate),
                           .to = static_cast<double>(options_.features.sample_rate)});
}

void UtteranceSource::keep(std::int64_t utterance, const TextEncoder& encoder) {
  Kept one{.utterance = utterance, .tokens = encoder.encode(utterances_.text(utterance))};
  if (utterances_.is_damaged(utterance)) {
    one.is_damaged = true;
    samples_.push_back(std::move(one));
    return;
  }
  const AudioInfo& info = utterances_.info(utterance);
  const auto rate = static_cast<double>(info.sample_rate);
  const bool is_long = static_cast<double>(info.num_frames) > options_.max_seconds * rate;
  const std::int64_t samples = resampled(info);
  if (is_long || samples < log_mel_.least_samples()) return;
  one.frames = stacked_frames(log_mel_.num_frames(samples), options_.stacking);
  samples_.push_back(std::move(one));
}

void UtteranceSource::choose_lengths() {
  std::vector<std::pair<std::int64_t, std::int64_t>> lengths;  // frames, tokens
  for (const Kept& one : samples_) {
    if (!one.is_damaged) lengths.emplace_back(one.frames, std::ssize(one.tokens));
  }
  if (lengths.empty()) {
    refuse_utterances("none of " + std::to_string(utterances_.size()) +
                      " is whole, long enough for a frame and at most " +
                      std::to_string(options_.max_seconds) + " seconds long");
  }
  std::ranges::sort(lengths);
  std::int64_t most_tokens = 1;
  std::size_t next = 0;
  for (std::int64_t part = 1; part <= options_.num_lengths; ++part) {
    const auto count = std::ssize(lengths);
    const std::int64_t last = std::max<std::int64_t>(part * count / options_.num_lengths, 1) - 1;
    const std::int64_t frames = lengths[static_cast<std::size_t>(last)].first;
    for (; next < lengths.size() && lengths[next].first <= frames; ++next) {
      most_tokens = std::max(most_tokens, lengths[next].second);
    }
    const data::Lengths padded = {{"frames", frames}, {"tokens", most_tokens}};
    if (padded_.empty() || padded_.back() != padded) padded_.push_back(padded);
  }
}

const UtteranceSource::Kept& UtteranceSource::kept(std::int64_t index) const {
  if (index < 0 || index >= num_samples()) {
    refuse_utterances("there is no sample " + std::to_string(index) + " among " +
                      std::to_string(num_samples()));
  }
  return samples_[static_cast<std::size_t>(index)];
}

data::Lengths UtteranceSource::lengths_of(data::Sample sample) const {
  const Kept& one = kept(sample.index);
  utterances_.info(one.utterance);  // throws where it is damaged
  return {{"frames", one.frames}, {"tokens", std::ssize(one.tokens)}};
}

std::vector<float> UtteranceSource::features_of(data::Sample sample) const {
  const Kept& one = kept(sample.index);
  Audio audio = utterances_.decode(one.utterance);
  const MelOptions& mel = log_mel_.options();
  if (audio.sample_rate != mel.sample_rate) {
    const data::ReadTimer timer("resample");
    audio.samples = resample(audio.samples, {.from = static_cast<double>(audio.sample_rate),
                                             .to = static_cast<double>(mel.sample_rate)});
  }
  const data::ReadTimer timer("features");
  const FrameShape shape{.num_frames = log_mel_.num_frames(std::ssize(audio.samples)),
                         .num_features = mel.n_mels};
  std::vector<float> features(static_cast<std::size_t>(shape.num_frames * shape.num_features));
  log_mel_(audio.samples, features);
  if (options_.is_normalized) normalize_per_feature(shape, features.data());
  if (options_.masks) {
    const std::uint64_t stream =
        stream_seed(options_.seed, {static_cast<std::uint64_t>(sample.index),
                                    static_cast<std::uint64_t>(sample.visit),
                                    static_cast<std::uint64_t>(UtteranceTransform::kMasks)});
    mask_frames(*options_.masks, stream, shape, features.data());
  }
  std::vector<float> stacked(
      static_cast<std::size_t>(stacked_frames(shape.num_frames, options_.stacking) *
                               options_.stacking.stack * shape.num_features));
  stack_frames(shape, options_.stacking, features.data(), stacked.data());
  return stacked;
}

void UtteranceSource::read(data::Sample sample,
                           std::span<const std::span<std::byte>> destinations) const {
  const data::Lengths lengths = lengths_of(sample);
  if (destinations.size() != fields_.size()) {
    refuse_utterances("expected 4 destinations, got " + std::to_string(destinations.size()));
  }
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const std::int64_t expected = fields_[f].num_bytes(lengths);
    if (std::ssize(destinations[f]) == expected) continue;
    refuse_utterances("expected a destination of " + std::to_string(expected) + " bytes for '" +
                      fields_[f].name + "', got " + std::to_string(destinations[f].size()));
  }
  const Kept& one = kept(sample.index);
  const std::vector<float> features = features_of(sample);
  if (features.size() * sizeof(float) != destinations[0].size()) {
    throw Error(ErrorKind::kCorruptData, utterances_.name(one.utterance) +
                                             ": its length is another than when it was opened");
  }
  copy_to<float>(destinations[0], features);
  copy_number(destinations[1], one.frames);
  copy_to<std::int32_t>(destinations[2], one.tokens);
  copy_number(destinations[3], std::ssize(one.tokens));
}

std::string UtteranceSource::identity() const {
  const MelOptions& mel = log_mel_.options();
  Json json = {
      {"kind", "utterances"},
      {"utterances", utterances_.identity()},
      {"encoder", sha256(encoder_)},
      {"features",
       {mel.sample_rate, mel.n_fft, mel.win_length, mel.hop_length, mel.f_min, mel.f_max,
        mel.n_mels, mel.power, mel.center, mel.pad_mode, mel.norm, mel.mel_scale, mel.log_offset}},
      {"normalized", options_.is_normalized},
      {"stacking", {options_.stacking.stack, options_.stacking.subsample}},
      {"max_seconds", options_.max_seconds},
      {"num_lengths", options_.num_lengths}};
  if (const auto& masks = options_.masks) {
    json["masks"] = {masks->n_time_masks, masks->time_mask_param, masks->n_freq_masks,
                     masks->freq_mask_param, masks->p};
    json["seed"] = options_.seed;
  }
  return sha256(compact_text(json));
}

}  // namespace trireme::speech
