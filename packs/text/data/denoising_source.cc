#include "packs/text/data/denoising_source.h"

#include <cstring>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/base/random.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

using data::Token;

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "denoising: " + problem);
}

void copy(const std::vector<Token>& tokens, std::span<std::byte> destination) {
  const auto bytes = std::as_bytes(std::span(tokens));
  if (bytes.size() != destination.size()) {
    refuse("expected a destination of " + std::to_string(bytes.size()) + " bytes, got " +
           std::to_string(destination.size()));
  }
  std::memcpy(destination.data(), bytes.data(), bytes.size());
}

}  // namespace

DenoisingSource::DenoisingSource(TokenShards shards, const DenoisingOptions& options)
    : shards_(std::move(shards)),
      options_(options),
      lengths_(data::longest_span_lengths(options.inputs, options.spans)) {
  if (lengths_.spans > options.special.num_sentinels) {
    refuse(std::to_string(options.inputs) + " input tokens have " + std::to_string(lengths_.spans) +
           " hidden spans, and there are only " + std::to_string(options.special.num_sentinels) +
           " sentinels; ask for shorter inputs");
  }
  if (num_samples() == 0) {
    refuse("a sample of " + std::to_string(options.inputs) + " input tokens takes " +
           std::to_string(lengths_.tokens) + " tokens of text, and there are only " +
           std::to_string(shards_.num_tokens()) + "; give more text or ask for shorter inputs");
  }
  fields_ = {{"inputs", Dtype::kI32, {lengths_.inputs}},
             {"targets", Dtype::kI32, {lengths_.targets}}};
}

data::CorruptedText DenoisingSource::text_of(data::Sample sample) const {
  if (sample.index < 0 || sample.index >= num_samples()) {
    refuse("there is no sample " + std::to_string(sample.index) + " among " +
           std::to_string(num_samples()));
  }
  std::vector<Token> tokens(static_cast<std::size_t>(lengths_.tokens));
  shards_.read(sample.index * lengths_.tokens, tokens);
  const std::uint64_t stream = stream_seed(
      options_.seed,
      {static_cast<std::uint64_t>(sample.index), static_cast<std::uint64_t>(sample.visit)});
  return data::corrupt_spans(tokens, options_.special, options_.spans, stream);
}

void DenoisingSource::read(data::Sample sample,
                           std::span<const std::span<std::byte>> destinations) const {
  if (destinations.size() != fields_.size()) {
    refuse("expected 2 destinations, got " + std::to_string(destinations.size()));
  }
  const data::CorruptedText text = text_of(sample);
  copy(text.inputs, destinations[0]);
  copy(text.targets, destinations[1]);
}

std::string DenoisingSource::identity() const {
  return sha256(compact_text({{"kind", "denoising"},
                              {"tokens", shards_.sha256()},
                              {"inputs", options_.inputs},
                              {"noise_density", options_.spans.noise_density},
                              {"mean_span", options_.spans.mean_span},
                              {"end", options_.special.end},
                              {"first_sentinel", options_.special.first_sentinel},
                              {"num_sentinels", options_.special.num_sentinels},
                              {"seed", options_.seed}}));
}

}  // namespace trireme::text
