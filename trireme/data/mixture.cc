#include "trireme/data/mixture.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "trireme/base/random.h"
#include "trireme/base/sha256.h"
#include "trireme/data/order.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::int64_t kMostInRound = std::int64_t{1} << 20;

[[noreturn]] void refuse_mixture(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "mixture: " + problem);
}

void check_part(const MixturePart& part, const MixturePart& first, std::size_t number) {
  const std::string name = "source " + std::to_string(number);
  if (!part.source) refuse_mixture(name + " is none");
  if (part.source->num_samples() < 1) refuse_mixture(name + " has no samples");
  if (part.weight < 1 || part.weight > kMostInRound) {
    refuse_mixture(name + " has weight " + std::to_string(part.weight) + "; expected 1 to 2^20");
  }
  if (part.source->repeats().times > 1) {
    refuse_mixture(name + " repeats its samples; repeat the mixture instead");
  }
  const auto &fields = part.source->fields(), &expected = first.source->fields();
  for (std::size_t f = 0; f < std::max(fields.size(), expected.size()); ++f) {
    if (f < fields.size() && f < expected.size() && fields[f] == expected[f]) continue;
    const Field& other = f < fields.size() ? fields[f] : expected[f];
    refuse_mixture(name + " differs from the first in field '" + other.name +
                   "'; expected the same names, dtypes and shapes in the same order");
  }
  if (part.source->padded_lengths() != first.source->padded_lengths()) {
    refuse_mixture(name + " has other padded lengths than the first; expected the same");
  }
}

/// Who comes at each place of a round: always the source that is furthest behind its share.
///
///     weights 2, 1:   behind by 2 1 -> a,  then 1 2 -> b,  then 3 0 -> a,  then all are even
std::vector<int> round_of(const std::vector<std::int64_t>& weights) {
  const std::int64_t total = std::reduce(weights.begin(), weights.end());
  std::vector<int> places;
  std::vector<std::int64_t> behind(weights.size());
  for (std::int64_t place = 0; place < total; ++place) {
    for (std::size_t s = 0; s < weights.size(); ++s) behind[s] += weights[s];
    const auto next = std::ranges::max_element(behind);  // the first of several
    *next -= total;
    places.push_back(static_cast<int>(next - behind.begin()));
  }
  return places;
}

class Mixture : public Source {
 public:
  Mixture(std::vector<MixturePart> parts, const MixtureOptions& options)
      : parts_(std::move(parts)), options_(options), num_samples_(options.num_samples) {
    if (parts_.empty()) refuse_mixture("there are no sources");
    for (std::size_t s = 0; s < parts_.size(); ++s) check_part(parts_[s], parts_.front(), s);
    if (num_samples_ < 0) refuse_mixture("the number of samples is negative");
    std::int64_t divisor = 0, total = 0;
    for (const MixturePart& part : parts_) divisor = std::gcd(divisor, part.weight);
    const OrderKind kind = options.shuffled ? OrderKind::kShuffled : OrderKind::kSequential;
    for (const MixturePart& part : parts_) {
      weights_.push_back(part.weight / divisor);
      total += weights_.back();
      const std::int64_t count = part.source->num_samples();
      if (options.num_samples == 0) num_samples_ += count;
      orders_.emplace_back(count, stream_seed(options.seed, {orders_.size()}), kind);
    }
    if (total > kMostInRound) refuse_mixture("the weights make more than 2^20; take coarser ones");
    fill_round();
  }

  std::int64_t num_samples() const override { return num_samples_; }
  const std::vector<Field>& fields() const override { return parts_.front().source->fields(); }
  std::vector<Lengths> padded_lengths() const override {
    return parts_.front().source->padded_lengths();
  }

  Lengths lengths_of(Sample sample) const override {
    const auto [part, own] = find(sample);
    return parts_[part].source->lengths_of(own);
  }

  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override {
    const auto [part, own] = find(sample);
    parts_[part].source->read(own, destinations);
  }

  void will_read(std::span<const Sample> samples) const override {
    std::vector<std::vector<Sample>> of_part(parts_.size());
    for (const Sample& sample : samples) {
      const auto [part, own] = find(sample);
      of_part[part].push_back(own);
    }
    for (std::size_t s = 0; s < parts_.size(); ++s) parts_[s].source->will_read(of_part[s]);
  }

  std::string reading() const override {
    std::string text;
    for (const MixturePart& part : parts_) {
      const std::string of_part = part.source->reading();
      if (of_part.empty() || text.find(of_part) != std::string::npos) continue;
      text += (text.empty() ? "" : "; ") + of_part;
    }
    return text;
  }

  SampleRepeats repeats() const override { return {.times = 0}; }

  /// Null where a part has an order of its own and is no mixture.
  std::shared_ptr<const Source> with_passes(std::int64_t times) const {
    auto copy = std::make_shared<Mixture>(*this);
    copy->passes_ = times;
    for (MixturePart& part : copy->parts_) {
      if (part.source->repeats().times != 0) continue;
      part.source = mixture_with_passes(*part.source, times);
      if (part.source == nullptr) return nullptr;
    }
    return copy;
  }

  std::string identity() const override {
    std::string text = "mixture of " + std::to_string(num_samples_) + " by " +
                       std::to_string(options_.seed) + (options_.shuffled ? " shuffled" : "");
    for (std::size_t s = 0; s < parts_.size(); ++s) {
      text += " " + std::to_string(weights_[s]) + " " + fingerprint(*parts_[s].source);
    }
    return sha256(text);
  }

 private:
  struct Place {
    int part = 0;
    std::int32_t met = 0;  ///< How often the part was met in this round before.
  };
  struct Found {
    std::size_t part = 0;
    Sample sample;
  };

  void fill_round() {
    std::vector<std::int32_t> met(parts_.size());
    for (const int part : round_of(weights_)) {
      round_.push_back({.part = part, .met = met[static_cast<std::size_t>(part)]++});
    }
  }

  Found find(Sample sample) const {
    if (sample.index < 0 || sample.index >= num_samples_ || sample.visit < 0) {
      refuse_mixture("there is no sample " + std::to_string(sample.index) + " among " +
                     std::to_string(num_samples_));
    }
    const std::int64_t place = sample.visit / passes_ * num_samples_ + sample.index;
    const auto [part, met] = round_[static_cast<std::size_t>(place % std::ssize(round_))];
    const auto s = static_cast<std::size_t>(part);
    const std::int64_t of_part = place / std::ssize(round_) * weights_[s] + met;
    return {.part = s,
            .sample = {.index = orders_[s].sample_at(of_part),
                       .visit = orders_[s].epoch_at(of_part) * passes_ + sample.visit % passes_}};
  }

  std::vector<MixturePart> parts_;
  MixtureOptions options_;
  std::int64_t num_samples_;
  std::vector<std::int64_t> weights_;  // without what divides all
  std::vector<SampleOrder> orders_;    // of the parts
  std::vector<Place> round_;
  std::int64_t passes_ = 1;  // visits of a place in an epoch
};

}  // namespace

std::shared_ptr<const Source> mix(std::vector<MixturePart> parts, const MixtureOptions& options) {
  return std::make_shared<Mixture>(std::move(parts), options);
}

std::shared_ptr<const Source> mixture_with_passes(const Source& source, std::int64_t times) {
  const auto* const mixture = dynamic_cast<const Mixture*>(&source);
  return mixture == nullptr ? nullptr : mixture->with_passes(times);
}

}  // namespace trireme::data
